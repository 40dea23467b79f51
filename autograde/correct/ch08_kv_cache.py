"""Right answers to chapter 8, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch03_causal_mask as earlier
from autograde.reference import ch05_multi_head as heads
from autograde.reference import ch08_kv_cache as reference

# next_token_distribution ---------------------------------------------------------------


@right("next_token_distribution")
def distribution_in_plain_python(logits, temperature=1.0, top_k=None, top_p=None):
    ids = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if temperature == 0:
        return [1.0 if i == ids[0] else 0.0 for i in range(len(logits))]
    e = {i: math.exp((float(logits[i]) - float(logits[ids[0]])) / temperature) for i in ids}
    ids = ids[:top_k]
    if top_p is not None:
        total, mass, kept = sum(e[i] for i in ids), 0.0, []
        for i in ids:
            kept.append(i)
            mass += e[i] / total
            if mass >= top_p:
                break
        ids = kept
    total = sum(e[i] for i in ids)
    return [e[i] / total if i in ids else 0.0 for i in range(len(logits))]


@right("next_token_distribution")
def dropped_logits_are_minus_infinity(logits, temperature=1.0, top_k=None, top_p=None):
    def softmax(z):
        e = np.exp(z - np.max(z))
        return e / np.sum(e)

    if temperature == 0:
        return np.eye(len(logits))[np.argmax(logits)]
    z = np.array(logits) / temperature
    ranks = np.empty(len(z), dtype=int)
    ranks[np.argsort(-z, kind="stable")] = np.arange(len(z))
    if top_k is not None:
        z[ranks >= top_k] = -np.inf
    if top_p is not None:
        p = softmax(z)
        before = np.array([p[ranks < rank].sum() for rank in ranks])
        z[before >= top_p] = -np.inf
    return softmax(z)


@right("next_token_distribution")
def nucleus_by_a_search(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        temperature, top_k, top_p = 1, 1, None
    order = np.lexsort((np.arange(len(logits)), -logits))
    p = np.exp((logits[order] - logits[order][0]) / temperature)
    n = len(p) if top_k is None else min(top_k, len(p))
    if top_p is not None:
        cumulative = np.cumsum(p[:n] / p[:n].sum())
        n = min(int(np.searchsorted(cumulative, top_p)) + 1, n)
    out = np.zeros(len(p), dtype=np.float32)
    out[order[:n]] = p[:n] / p[:n].sum()
    return out


@right("next_token_distribution")
def distribution_by_torch(logits, temperature=1.0, top_k=None, top_p=None):
    import torch

    z = torch.from_numpy(logits)
    if temperature == 0:
        return torch.nn.functional.one_hot(z.argmax(), len(z)).double()
    z, order = torch.sort(z / temperature, descending=True, stable=True)
    if top_k is not None:
        z[top_k:] = -torch.inf
    p = z.softmax(0)
    if top_p is not None:
        late = torch.roll(p.cumsum(0) >= top_p, 1)
        late[0] = False
        p = z.masked_fill(late, -torch.inf).softmax(0)
    return torch.empty_like(p).scatter_(0, order, p)


@right("next_token_distribution")
def nucleus_from_the_tail(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return reference.next_token_distribution(logits, 0.0)
    worst_first = np.argsort(-logits, kind="stable")[::-1]
    z = logits[worst_first] / temperature
    if top_k is not None:
        z[: max(len(z) - top_k, 0)] = -np.inf
    p = np.exp(z - z[-1])
    p = p / p.sum()
    if top_p is not None:
        drop = np.cumsum(p) <= 1 - top_p
        drop[-1] = False
        p = np.where(drop, 0, p)
    out = np.empty_like(p)
    out[worst_first] = p / p.sum()
    return out


@right("next_token_distribution")
def distribution_by_logarithms(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, kind="stable")
    z = np.asarray(logits, np.float64)[order] / (temperature if temperature > 0 else 1)
    if temperature == 0:
        top_k = 1
    z = np.where(np.arange(len(z)) < (top_k or len(z)), z, -np.inf)
    p = np.exp(z - np.logaddexp.reduce(z))
    if top_p is not None:
        p = np.where(np.concatenate([[0], np.cumsum(p)[:-1]]) < top_p, p, 0)
        p = p / math.fsum(p)
    return p[np.argsort(order)]


# prefill -------------------------------------------------------------------------------


def projected(x, w, n_heads):
    return heads.split_heads(x @ w, n_heads)


@right("prefill")
def prefill_token_by_token(x, w_q, w_k, w_v, w_o, n_heads):
    *batch, seq, d_model = x.shape
    nothing = np.zeros((*batch, n_heads, 0, d_model // n_heads))
    cache, outs = (nothing, nothing), []
    for t in range(seq):
        out, cache = reference.decode_step(x[..., t : t + 1, :], cache, w_q, w_k, w_v, w_o, n_heads)
        outs.append(out)
    return np.concatenate(outs, axis=-2), list(cache)


@right("prefill")
def prefill_by_multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads):
    causal = earlier.causal_mask(x.shape[-2])
    out = heads.multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, causal)
    return [out, [projected(x, w_k, n_heads), projected(x, w_v, n_heads)]]


@right("prefill")
def prefill_by_einsum_stacked(x, w_q, w_k, w_v, w_o, n_heads):
    w = np.stack([w_q, w_k, w_v]).reshape(3, w_q.shape[0], n_heads, -1)
    q, k, v = np.einsum("...sm,cmhd->c...hsd", x, w)
    scores = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    weights = earlier.masked_softmax(scores, np.tri(x.shape[-2], dtype=bool))
    out = np.einsum("...hqk,...hkd,hdm->...qm", weights, v, w_o.reshape(n_heads, -1, w_o.shape[1]))
    return out, np.stack([k, v])


@right("prefill")
def prefill_by_torch(x, w_q, w_k, w_v, w_o, n_heads):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    x, w_q, w_k, w_v, w_o = map(torch.from_numpy, (x, w_q, w_k, w_v, w_o))
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(-2, -3) for w in (w_q, w_k, w_v))
    out = scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(-2, -3).flatten(-2) @ w_o, (k, v)


@right("prefill")
def prefill_in_single_precision(x, w_q, w_k, w_v, w_o, n_heads):
    x, w_q, w_k, w_v, w_o = (a.astype(np.float32) for a in (x, w_q, w_k, w_v, w_o))
    out, (k, v) = reference.prefill(x, w_q, w_k, w_v, w_o, n_heads)
    return np.asfortranarray(out), (np.asfortranarray(k), v.tolist())


# decode_step ---------------------------------------------------------------------------


@right("decode_step")
def step_token_by_token(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    k, v = cache
    outs = []
    for t in range(x_new.shape[-2]):
        one = x_new[..., t : t + 1, :]
        k = np.concatenate([k, projected(one, w_k, n_heads)], axis=-2)
        v = np.concatenate([v, projected(one, w_v, n_heads)], axis=-2)
        everything = np.ones((1, k.shape[-2]), dtype=bool)
        out, _ = earlier.masked_attention(projected(one, w_q, n_heads), k, v, everything)
        outs.append(heads.merge_heads(out) @ w_o)
    return np.concatenate(outs, axis=-2), (k, v)


@right("decode_step")
def step_into_a_new_buffer(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (projected(x_new, w, n_heads) for w in (w_q, w_k, w_v))
    old, new = cache[0].shape[-2], x_new.shape[-2]
    buffers = np.full((2, *k.shape[:-2], old + new + 5, k.shape[-1]), np.nan, k.dtype)
    for buffer, before, after in zip(buffers, cache, (k, v), strict=True):
        buffer[..., :old, :] = before
        buffer[..., old : old + new, :] = after
    keys, values = buffers[..., : old + new, :]
    allowed = np.arange(old + new) <= old + np.arange(new)[:, None]
    out, _ = earlier.masked_attention(q, keys, values, allowed)
    return heads.merge_heads(out) @ w_o, (keys, values)


@right("decode_step", "InfiniTensor/llaisys#5")
def step_in_two_parts(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (projected(x_new, w, n_heads) for w in (w_q, w_k, w_v))
    new = x_new.shape[-2]
    old_scores = q @ np.swapaxes(cache[0], -1, -2) / math.sqrt(q.shape[-1])
    new_scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    new_scores = np.where(np.tri(new) > 0, new_scores, -np.inf)
    largest = new_scores.max(-1, keepdims=True)
    if old_scores.size:
        largest = np.maximum(largest, old_scores.max(-1, keepdims=True))
    e_old, e_new = np.exp(old_scores - largest), np.exp(new_scores - largest)
    total = e_old.sum(-1, keepdims=True) + e_new.sum(-1, keepdims=True)
    out = (e_old @ cache[1] + e_new @ v) / total
    longer = [np.concatenate(pair, axis=-2) for pair in zip(cache, (k, v), strict=True)]
    return heads.merge_heads(out) @ w_o, longer


@right("decode_step")
def step_by_torchs_sdpa(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    x, w_q, w_k, w_v, w_o = map(torch.from_numpy, (x_new, w_q, w_k, w_v, w_o))
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(-2, -3) for w in (w_q, w_k, w_v))
    k = torch.cat([torch.from_numpy(np.ascontiguousarray(cache[0])), k], dim=-2)
    v = torch.cat([torch.from_numpy(np.ascontiguousarray(cache[1])), v], dim=-2)
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    mask = mask.tril(k.shape[-2] - q.shape[-2])
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.transpose(-2, -3).flatten(-2) @ w_o, (k, v)


@right("decode_step")
def step_with_a_finite_fill(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (projected(x_new, w, n_heads) for w in (w_q, w_k, w_v))
    k, v = np.append(cache[0], k, axis=-2), np.append(cache[1], v, axis=-2)
    new, n = q.shape[-2], k.shape[-2]
    scores = np.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    scores = scores + np.triu(np.full((new, n), -1e9), n - new + 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return heads.merge_heads(weights @ v) @ w_o, np.stack([k, v])


@right("decode_step")
def step_in_single_precision(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    arrays = (a.astype(np.float32) for a in (w_q, w_k, w_v, w_o))
    cache = [part.astype(np.float32) for part in cache]
    return reference.decode_step(x_new.astype(np.float32), cache, *arrays, n_heads)


# cache_bytes ---------------------------------------------------------------------------


@right("cache_bytes")
def bytes_of_shapes(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    return math.prod([n_layers, 2, batch, n_kv_heads, seq, d_head, bytes_per_value])


@right("cache_bytes")
def bytes_layer_by_layer(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    total = 0
    for _ in range(n_layers):
        keys = values = n_kv_heads * d_head * seq * batch
        total += (keys + values) * bytes_per_value
    return total


@right("cache_bytes")
def bytes_in_numpys_integers(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    sizes = [2, n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value]
    return np.prod(sizes, dtype=np.int64)


@right("cache_bytes")
def bytes_by_a_shift(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    return np.array(n_layers * n_kv_heads * d_head * seq * batch * bytes_per_value << 1)


# left_padding_mask ---------------------------------------------------------------------


@right("left_padding_mask")
def left_by_loops(lengths, n):
    return [[[n - m <= j <= i for j in range(n)] for i in range(n)] for m in lengths]


@right("left_padding_mask")
def left_by_corners(lengths, n):
    mask = np.zeros((len(lengths), n, n), dtype=bool)
    for one, length in zip(mask, lengths, strict=True):
        one[n - length :, n - length :] = np.tri(length, dtype=bool)
    return mask


@right("left_padding_mask")
def left_by_two_sides(lengths, n):
    i, j = np.indices((n, n))
    first = n - np.asarray(lengths)[:, None, None]
    return np.asfortranarray((first <= j) * (j <= i) * (i >= first))


@right("left_padding_mask")
def left_as_the_right_one_turned_round(lengths, n):
    anticausal = np.triu(np.ones((n, n))) > 0
    there = (np.arange(n) < np.reshape(lengths, (-1, 1)))[:, None]
    return (anticausal & there)[:, ::-1, ::-1] & np.tri(n, dtype=bool)


@right("left_padding_mask")
def left_by_torch(lengths, n):
    import torch

    real = torch.arange(n) >= n - torch.as_tensor(lengths)[:, None]
    return torch.ones(n, n, dtype=torch.bool).tril() & real.unsqueeze(1)


# generate ------------------------------------------------------------------------------


@right("generate")
def generated_in_a_list(next_logits, prompt, n_new):
    tokens = prompt.tolist()
    for _ in range(n_new):
        logits = next_logits(np.array(tokens)).tolist()
        tokens.append(logits.index(max(logits)))
    return tokens


@right("generate")
def generated_in_a_buffer(next_logits, prompt, n_new):
    start = len(prompt)
    tokens = np.empty(start + n_new, dtype=np.int32)
    tokens[:start] = prompt
    for i in range(start, start + n_new):
        tokens[i] = next_logits(tokens[:i]).argmax()
    return tokens


@right("generate")
def generated_by_recursion(next_logits, prompt, n_new):
    if not n_new:
        return prompt
    best = np.flatnonzero(next_logits(prompt) == next_logits(prompt).max())[0]
    return generated_by_recursion(next_logits, np.concatenate([prompt, [best]]), n_new - 1)


@right("generate")
def generated_by_the_distribution(next_logits, prompt, n_new):
    tokens = tuple(prompt)
    while len(tokens) < len(prompt) + n_new:
        p = reference.next_token_distribution(next_logits(np.array(tokens)), 0)
        tokens += (int(p.argmax()),)
    return tokens


@right("generate")
def generated_by_torch(next_logits, prompt, n_new):
    import torch

    tokens = torch.from_numpy(prompt.astype(np.int64))
    for _ in range(n_new):
        best = torch.from_numpy(next_logits(tokens.numpy())).argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, best])
    return tokens
