"""Right answers to chapter 10, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch10_memory as reference
from autograde.reference.ch03_causal_mask import causal_mask

# merge_softmax -------------------------------------------------------------------------


@right("merge_softmax")
def merged_in_loops(a, b):
    m, total, o = (np.array(part, dtype=float) for part in a)
    for i in np.ndindex(m.shape):
        if b[1][i] == 0:
            continue
        if total[i] == 0:
            m[i], total[i], o[i] = (part[i] for part in b)
            continue
        largest = max(m[i], b[0][i])
        old, new = math.exp(m[i] - largest), math.exp(b[0][i] - largest)
        m[i] = largest
        total[i] = old * total[i] + new * b[1][i]
        o[i] = old * o[i] + new * b[2][i]
    return m, total, o


@right("merge_softmax")
def merged_as_two_keys(a, b):
    m, total, o = (np.stack(parts) for parts in zip(a, b, strict=True))
    largest = m.max(axis=0)
    scale = np.exp2((m - np.nan_to_num(largest, neginf=0.0)) * math.log2(math.e))
    return [largest, (scale * total).sum(0), np.einsum("s...,s...d->...d", scale, o)]


@right("merge_softmax")
def merged_without_guarding_what_nan_removes(a, b):
    with np.errstate(invalid="ignore"):
        m = np.maximum(a[0], b[0])
        old, new = (np.nan_to_num(np.exp(state[0] - m)) for state in (a, b))
    o = np.expand_dims(old, -1) * a[2] + np.expand_dims(new, -1) * b[2]
    return m, old * a[1] + new * b[1], o


@right("merge_softmax")
def merged_in_single_precision(a, b):
    a, b = (tuple(part.astype(np.float32) for part in state) for state in (a, b))
    return reference.merge_softmax(a, b)


@right("merge_softmax")
def merged_by_choosing(a, b):
    """Where one is empty the other is the answer; exponentials only elsewhere."""
    both = (a[1] > 0) & (b[1] > 0)
    m = np.maximum(a[0], b[0])
    old = np.exp(np.subtract(a[0], m, where=both, out=np.zeros_like(m)))
    new = np.exp(np.subtract(b[0], m, where=both, out=np.zeros_like(m)))
    return m, old * a[1] + new * b[1], old[..., None] * a[2] + new[..., None] * b[2]


@right("merge_softmax")
def merged_by_torch(a, b):
    import torch

    (m_a, l_a, o_a), (m_b, l_b, o_b) = (map(torch.from_numpy, state) for state in (a, b))
    m = torch.maximum(m_a, m_b)
    scale_a, scale_b = ((m_x - m).exp().nan_to_num(0.0) for m_x in (m_a, m_b))
    o = scale_a.unsqueeze(-1) * o_a + scale_b.unsqueeze(-1) * o_b
    return m, scale_a * l_a + scale_b * l_b, o


# flash_attention -----------------------------------------------------------------------


@right("flash_attention")
def flash_with_keys_outside(q, k, v, block_query, block_key, causal=True):
    """The order of the first FlashAttention: key blocks outside, all states kept."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    m = np.full(q.shape[:-1], -np.inf)
    total, out = np.zeros(q.shape[:-1]), np.zeros((*q.shape[:-1], v.shape[-1]))
    for left in range(0, n_key, block_key):
        key = np.arange(left, min(left + block_key, n_key))
        for first in range(0, n_query, block_query):
            rows = np.s_[..., first : first + block_query]
            scores = np.einsum(
                "...qd,...kd->...qk", q[..., first : first + block_query, :], k[..., key, :]
            ) / math.sqrt(q.shape[-1])
            if causal:
                query = np.arange(first, first + scores.shape[-2])[:, None] + n_key - n_query
                scores += np.where(key <= query, 0, -np.inf)
            new = np.maximum(m[rows], scores.max(-1))
            safe = np.where(np.isfinite(new), new, 0)
            scale, weights = np.exp(m[rows] - safe), np.exp(scores - safe[..., None])
            total[rows] = scale * total[rows] + weights.sum(-1)
            block = out[..., first : first + block_query, :]
            block[...] = scale[..., None] * block + weights @ v[..., key, :]
            m[rows] = new
    return out / np.maximum(total, 1e-30)[..., None]


@right("flash_attention")
def flash_key_by_key_in_lists(q, k, v, block_query, block_key, causal=True):
    """Blocks of one score, plain floats."""
    if q.ndim > 2:
        return [flash_key_by_key_in_lists(*x, 1, 1, causal) for x in zip(q, k, v, strict=True)]
    shift, root = len(k) - len(q), math.sqrt(q.shape[-1])
    q, k, v = q.tolist(), k.tolist(), v.tolist()
    out = []
    for i, query in enumerate(q):
        m, total, o = -math.inf, 0.0, [0.0] * len(v[0])
        for j in range(min(i + 1 + shift, len(k)) if causal else len(k)):
            score = sum(a * b for a, b in zip(query, k[j], strict=True)) / root
            if score > m:
                scale = math.exp(m - score)
                m, total, o = score, total * scale, [x * scale for x in o]
            weight = math.exp(score - m)
            total += weight
            o = [x + weight * y for x, y in zip(o, v[j], strict=True)]
        out.append([x / total for x in o] if total else o)
    return out


@right("flash_attention")
def flash_from_the_last_key(q, k, v, block_query, block_key, causal=True):
    """Backwards, and with a mask that is a triangle."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    blocks = []
    for first in range(0, n_query, block_query):
        here = q[..., first : first + block_query, :]
        state = None
        for left in reversed(range(0, n_key, block_key)):
            scores = here @ np.swapaxes(k[..., left : left + block_key, :], -1, -2)
            scores = scores * here.shape[-1] ** -0.5
            rows, columns = scores.shape[-2:]
            if causal:
                triangle = np.tri(rows, columns, first + n_key - n_query - left, dtype=bool)
                scores = np.where(triangle, scores, -np.inf)
            m = scores.max(-1)
            weights = np.exp(scores - np.where(m == -np.inf, 0, m)[..., None])
            new = m, weights.sum(-1), weights @ v[..., left : left + block_key, :]
            state = new if state is None else reference.merge_softmax(new, state)
        with np.errstate(invalid="ignore"):
            blocks.append(np.nan_to_num(state[2] / state[1][..., None]))
    return np.concatenate(blocks, axis=-2)


@right("flash_attention")
def flash_in_two_passes(q, k, v, block_query, block_key, causal=True):
    """First the maximum over all blocks, then the sums: nothing is ever rescaled."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=np.float32)

    def blocks(rows):
        for left in range(0, n_key, block_key):
            key = slice(left, left + block_key)
            scores = q[..., rows, :] @ np.swapaxes(k[..., key, :], -1, -2) / q.shape[-1] ** 0.5
            if causal:
                position = np.arange(n_query)[rows] + (n_key - n_query)
                scores[..., np.arange(n_key)[key] > position[:, None]] = -np.inf
            yield scores, v[..., key, :]

    for first in range(0, n_query, block_query):
        rows = slice(first, first + block_query)
        m = np.full((*q.shape[:-2], 1), -np.inf)
        for scores, _ in blocks(rows):
            m = np.maximum(m, scores.max(-1))
        m[np.isneginf(m)] = 0
        total = o = 0
        for scores, values in blocks(rows):
            weights = np.exp(scores - m[..., None])
            total, o = total + weights.sum(-1, keepdims=True), o + weights @ values
        out[..., rows, :] = np.divide(o, total, where=total > 0, out=np.zeros_like(o))
    return out


@right("flash_attention")
def flash_by_halving(q, k, v, block_query, block_key, causal=True):
    """Recursion: the state of many keys is merged from those of its halves."""
    n_query, n_key = q.shape[-2], k.shape[-2]

    def state(rows, left, right):
        if right - left > block_key:
            middle = (left + right) // 2
            return reference.merge_softmax(state(rows, left, middle), state(rows, middle, right))
        scores = q[..., rows, :] @ np.swapaxes(k[..., left:right, :], -1, -2) / q.shape[-1] ** 0.5
        if causal:
            scores[..., ~causal_rows(rows, left, right)] = -np.inf
        m = scores.max(-1)
        weights = np.exp(scores - np.nan_to_num(m, neginf=0)[..., None])
        return m, weights.sum(-1), weights @ v[..., left:right, :]

    def causal_rows(rows, left, right):
        query = np.arange(rows.start, rows.stop)[:, None]
        return np.arange(left, right) <= query + n_key - n_query

    out = []
    for first in range(0, n_query, block_query):
        _, total, o = state(slice(first, min(first + block_query, n_query)), 0, n_key)
        out.append(o / (total + (total == 0))[..., None])
    return np.concatenate(out, axis=-2)


@right("flash_attention")
def flash_with_normalised_outputs(q, k, v, block_query, block_key, causal=True):
    """Kept per query: the mean so far, and the logarithm of its sum."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for first in range(0, n_query, block_query):
        rows = np.arange(n_query)[first : first + block_query]
        mean = np.zeros(out[..., rows, :].shape)
        log_sum = np.full((*q.shape[:-2], rows.size), -np.inf)
        for left in range(0, n_key, block_key):
            columns = np.arange(n_key)[left : left + block_key]
            scores = q[..., rows, :] @ np.swapaxes(k[..., columns, :], -1, -2) / q.shape[-1] ** 0.5
            if causal:
                scores = np.where(columns <= rows[:, None] + n_key - n_query, scores, -np.inf)
            new = np.logaddexp(log_sum, np.logaddexp.reduce(scores, axis=-1))
            safe = np.where(np.isneginf(new), 0, new)[..., None]
            weights = np.exp(scores - safe)
            mean = np.exp(log_sum[..., None] - safe) * mean + weights @ v[..., columns, :]
            log_sum = new
        out[..., rows, :] = mean
    return out


@right("flash_attention")
def flash_on_padded_blocks(q, k, v, block_query, block_key, causal=True):
    """Everything filled up to whole blocks; float32 and -1e30 inside."""
    n_query, n_key = q.shape[-2], k.shape[-2]

    def padded(x, block):
        more = -x.shape[-2] % block
        return np.pad(x.astype(np.float32), [(0, 0)] * (x.ndim - 2) + [(0, more), (0, 0)])

    q, k, v = padded(q, block_query), padded(k, block_key), padded(v, block_key)
    out = np.zeros((*q.shape[:-1], v.shape[-1]), np.float32)
    for i in range(q.shape[-2] // block_query):
        rows = slice(i * block_query, (i + 1) * block_query)
        query = np.arange(rows.start, rows.stop)[:, None]
        m = np.full((*q.shape[:-2], block_query, 1), -1e30, np.float32)
        total, o = np.zeros_like(m), out[..., rows, :]
        for j in range(k.shape[-2] // block_key):
            columns = slice(j * block_key, (j + 1) * block_key)
            key = np.arange(columns.start, columns.stop)
            allowed = (key < n_key) & ((key <= query + n_key - n_query) | (not causal))
            if not allowed.any():
                continue
            scores = q[..., rows, :] @ k[..., columns, :].swapaxes(-1, -2)
            scores = np.where(allowed, scores / np.float32(q.shape[-1]) ** 0.5, np.float32(-1e30))
            new = np.maximum(m, scores.max(-1, keepdims=True))
            weights = np.exp(scores - new) * allowed
            scale = np.exp(m - new)
            total, m = total * scale + weights.sum(-1, keepdims=True), new
            o *= scale
            o += weights @ v[..., columns, :]
        o /= np.where(total == 0, 1, total)
    return out[..., :n_query, :]


@right("flash_attention")
def flash_by_torch(q, k, v, block_query, block_key, causal=True):
    """What PyTorch's fused kernel computes; the mask is a tensor, for the kernel takes one."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    n_query, n_key = q.shape[-2], k.shape[-2]
    mask = torch.ones(n_query, n_key, dtype=torch.bool)
    mask = mask.tril(n_key - n_query) if causal else mask
    q, k, v = (torch.from_numpy(np.ascontiguousarray(x)).double() for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v, attn_mask=mask).nan_to_num(0.0)


# visible_blocks ------------------------------------------------------------------------


@right("visible_blocks")
def blocks_by_looking_at_the_mask(n, block_query, block_key):
    mask = causal_mask(n)
    rows, columns = range(0, n, block_query), range(0, n, block_key)
    return sum(mask[i : i + block_query, j : j + block_key].any() for i in rows for j in columns)


@right("visible_blocks")
def blocks_as_a_set_of_pairs(n, block_query, block_key):
    seen = ((i // block_query, j // block_key) for i in range(n) for j in range(0, i + 1))
    return len(set(seen))


@right("visible_blocks")
def blocks_by_numpy(n, block_query, block_key):
    last = np.minimum(np.arange(block_query, n + block_query, block_query), n) - 1
    return (last // block_key + 1).sum()


@right("visible_blocks")
def blocks_by_first_key(n, block_query, block_key):
    """Column by column: the rows of blocks that reach down to the first key or beyond."""
    rows = math.ceil(n / block_query)
    return np.array(sum(rows - first // block_query for first in range(0, n, block_key)))
