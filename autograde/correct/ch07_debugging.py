"""Right answers to chapter 7, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch07_debugging as reference
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax

# leaks ---------------------------------------------------------------------------------


@right("leaks")
def leaks_by_large_random_changes(f, x):
    rng, before, found = np.random.default_rng(), np.array(f(x)), set()
    for j in range(1, len(x)):
        for _ in range(8):
            direction = rng.uniform(0.1, 1, x.shape[1]) * rng.choice([-1, 1], x.shape[1])
            for signed in (direction, -direction):
                changed = x.copy()
                changed[j] = x[j] + (1e15 * signed).astype(x.dtype)
                after = f(changed)
                found |= {(i, j) for i in range(j) if not np.array_equal(after[i], before[i])}
    return sorted(found, reverse=True)


@right("leaks")
def leaks_feature_by_feature(f, x):
    before, pairs = f(x).tobytes(), []
    width = len(before) // len(x)
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            tried = []
            for feature in range(x.shape[1]):
                for power in range(0, 16, 3):
                    for sign in (-1.0, 1.0):
                        changed = x.astype(np.float64) if x.dtype == np.float64 else x.copy()
                        changed[j, feature] += sign * 10.0**power
                        tried.append(f(changed).tobytes()[i * width : (i + 1) * width])
            if any(row != before[i * width : (i + 1) * width] for row in tried):
                pairs.append([i, j])
    return pairs


@right("leaks")
def leaks_as_an_array_of_pairs(f, x):
    n = len(x)
    matrix = np.zeros((n, n), dtype=bool)
    rng = np.random.default_rng(1)
    for j in range(n):
        for size in np.logspace(-4, 15, 20):
            for sign in (1, -1):
                changed = np.array(x)
                changed[j] = changed[j] + sign * size * rng.uniform(-1, 1, x.shape[1])
                matrix[:, j] |= (f(changed) != f(x)).any(axis=1)
    return np.argwhere(np.triu(matrix, 1))


@right("leaks")
def leaks_in_another_order_and_twice(f, x):
    pairs = reference.leaks(f, x)
    return [(np.int64(i), j) for i, j in pairs[::-1] + pairs]


# numerical_gradient --------------------------------------------------------------------


@right("numerical_gradient")
def gradient_of_a_flat_copy(f, x, eps=1e-5):
    flat = np.asarray(x, dtype=float).ravel()
    step = eps * np.eye(flat.size)
    ends = [(f((flat + s).reshape(x.shape)), f((flat - s).reshape(x.shape))) for s in step]
    return np.array([(up - down) / (2 * eps) for up, down in ends]).reshape(x.shape)


@right("numerical_gradient")
def gradient_by_nditer(f, x, eps=1e-5):
    work = x.astype(np.float64)
    gradient = np.zeros(x.shape)
    walk = np.nditer(work, flags=["multi_index"])
    for _ in walk:
        k = walk.multi_index
        kept = work[k]
        work[k] = kept + eps
        up = f(work)
        work[k] = kept - eps
        down = f(work)
        work[k] = kept
        gradient[k] = (up - down) / eps / 2
    return gradient


@right("numerical_gradient")
def gradient_in_long_doubles(f, x, eps=1e-5):
    wide = np.asarray(x, dtype=np.longdouble)

    def shifted(k, step):
        moved = wide.copy()
        moved[k] += step
        return moved.astype(np.float64)

    gradient = np.zeros(x.shape, dtype=np.longdouble, order="F")
    for k in np.ndindex(x.shape):
        up, down = shifted(k, eps), shifted(k, -eps)
        gradient[k] = (f(up) - f(down)) / (up[k] - down[k])
    return gradient


@right("numerical_gradient")
def gradient_in_lists(f, x, eps=1e-5):
    def slope(k):
        up, down = np.array(x, dtype=float), np.array(x, dtype=float)
        up[k], down[k] = up[k] + eps, down[k] - eps
        return float(f(up) - f(down)) / (2 * eps)

    return np.vectorize(lambda *k: slope(k))(*np.indices(x.shape)).tolist()


# first_bad -----------------------------------------------------------------------------


@right("first_bad")
def bad_by_next(named_arrays):
    bad = (name for name, a in named_arrays.items() if np.isnan(a).any() or np.isinf(a).any())
    return next(bad, None)


@right("first_bad")
def bad_by_minus_itself(named_arrays):
    for name in named_arrays:
        array = np.asarray(named_arrays[name]).astype(np.float64)
        with np.errstate(invalid="ignore"):
            if np.any(array - array != 0):
                return str(name)


@right("first_bad")
def bad_number_by_number(named_arrays):
    for name, array in named_arrays.items():
        for value in array.ravel().tolist():
            if math.isnan(value) or math.isinf(value):
                return name
    return None


@right("first_bad")
def bad_from_the_back(named_arrays):
    found = None
    for name, array in reversed(named_arrays.items()):
        if np.count_nonzero(np.isfinite(array)) < array.size:
            found = name
    return found


# repair_scale --------------------------------------------------------------------------


@right("repair_scale")
def scale_by_division(q, k, allowed):
    scale = math.sqrt(q.shape[-1])
    return masked_softmax(q @ np.swapaxes(k, -2, -1) / scale, allowed)


@right("repair_scale", "pytorch/pytorch#60940")
def scale_both_sides(q, k, allowed):
    root = q.shape[-1] ** -0.25
    return masked_softmax(np.einsum("...qd,...kd->...qk", q * root, k * root), allowed)


@right("repair_scale")
def scale_by_torch(q, k, allowed):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    mask = torch.from_numpy(np.atleast_2d(allowed))
    eye = torch.eye(k.shape[-2], dtype=torch.from_numpy(q).dtype).expand(*k.shape[:-1], -1)
    q, k = torch.from_numpy(q), torch.from_numpy(k)
    return scaled_dot_product_attention(q, k, eye, attn_mask=mask).nan_to_num(0.0)


# repair_window -------------------------------------------------------------------------


def attend(q, k, v, allowed):
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    return masked_softmax(scores, allowed) @ v


@right("repair_window")
def window_by_distance(q, k, v, window):
    positions = np.arange(q.shape[-2])
    far = positions[:, None] - positions
    return attend(q, k, v, (far >= 0) & (far < window))


@right("repair_window")
def window_by_slices(q, k, v, window):
    rows = []
    for t in range(q.shape[-2]):
        seen = slice(max(t + 1 - window, 0), t + 1)
        rows.append(attend(q[..., t : t + 1, :], k[..., seen, :], v[..., seen, :], True))
    return np.concatenate(rows, axis=-2)


@right("repair_window")
def window_as_a_difference_of_triangles(q, k, v, window):
    n = q.shape[-2]
    return attend(q, k, v, np.tri(n, dtype=bool) ^ np.tri(n, k=-window, dtype=bool))


@right("repair_window")
def window_by_list(q, k, v, window):
    n = q.shape[-2]
    allowed = [[i - window < j <= i for j in range(n)] for i in range(n)]
    return attend(q.astype(np.float32), k, v, np.array(allowed))


# repair_softmax ------------------------------------------------------------------------


@right("repair_softmax")
def softmax_with_finite_guard(scores, allowed):
    closed = np.where(allowed, scores, -np.inf)
    largest = np.maximum(closed.max(axis=-1, keepdims=True), np.finfo(scores.dtype).min)
    weights = np.exp(closed - largest)
    total = weights.sum(axis=-1, keepdims=True)
    log_sum = np.where(total > 0, np.log(np.maximum(total, 0.5)) + largest, -np.inf)
    return weights / np.maximum(total, 0.5), np.squeeze(log_sum, -1)


@right("repair_softmax", "fchollet/keras-resources#53")
def softmax_by_logaddexp(scores, allowed):
    closed = np.where(allowed, scores, -np.inf)
    log_sum = np.logaddexp.reduce(closed, axis=-1)
    safe = np.where(np.isneginf(log_sum), 0, log_sum)
    return [np.exp(closed - safe[..., None]), log_sum]


@right("repair_softmax")
def softmax_in_a_loop(scores, allowed):
    keys, weights = np.broadcast_to(allowed, scores.shape), np.zeros(scores.shape)
    log_sum = np.full(scores.shape[:-1], -math.inf)
    for row in np.ndindex(scores.shape[:-1]):
        seen = scores[row][keys[row]].astype(float)
        if seen.size:
            exponentials = np.exp(seen - max(seen))
            weights[row][keys[row]] = exponentials / sum(exponentials)
            log_sum[row] = max(seen) + math.log(sum(exponentials))
    return weights, log_sum.tolist()


@right("repair_softmax")
def softmax_by_torch(scores, allowed):
    import torch

    closed = torch.from_numpy(scores).masked_fill(~torch.from_numpy(allowed), -math.inf)
    return closed.softmax(-1).nan_to_num(0.0), closed.logsumexp(-1)


@right("repair_softmax")
def softmax_with_given_weights(scores, allowed):
    single = np.where(allowed, scores, -np.inf).astype(np.float32)
    largest = single.max(axis=-1)
    safe = np.where(largest == -np.inf, np.float32(0), largest)
    with np.errstate(divide="ignore"):
        log_sum = safe + np.log(np.exp(single - safe[..., None]).sum(axis=-1))
    return masked_softmax(scores, allowed), log_sum


# repair_unused_slots -------------------------------------------------------------------


@right("repair_unused_slots")
def slots_replaced_by_zeros(q, k_buffer, v_buffer, length):
    filled = np.arange(k_buffer.shape[-2]) < length
    k, v = (np.where(filled[:, None], buffer, 0) for buffer in (k_buffer, v_buffer))
    return attend(q, k, v, filled)


@right("repair_unused_slots")
def slots_only_values_cleaned(q, k_buffer, v_buffer, length):
    filled = np.arange(k_buffer.shape[-2]) < length
    with np.errstate(all="ignore"):
        return attend(q, k_buffer, np.where(filled[:, None], v_buffer, 0), filled)


@right("repair_unused_slots")
def slots_dropped_with_take(q, k_buffer, v_buffer, length):
    kept = range(length)
    k, v = np.take(k_buffer, kept, axis=-2), np.take(v_buffer, kept, axis=-2)
    scores = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("...qk,...kd->...qd", weights / weights.sum(-1, keepdims=True), v)


@right("repair_unused_slots")
def slots_split_off(q, k_buffer, v_buffer, length):
    (k, _), (v, _) = (np.split(buffer, [length], axis=-2) for buffer in (k_buffer, v_buffer))
    return attend(q, k, v, np.ones((1, length), dtype=bool))


# repair_norm ---------------------------------------------------------------------------


@right("repair_norm")
def norm_by_var(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


@right("repair_norm")
def norm_by_torch(x, gain, bias, eps=1e-5):
    import torch

    x, gain, bias = (torch.from_numpy(array) for array in (x, gain, bias))
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, eps)


@right("repair_norm")
def norm_row_by_row(x, gain, bias, eps=1e-5):
    out = np.empty(x.shape)
    for position in np.ndindex(x.shape[:-1]):
        row = x[position]
        mean = sum(row) / len(row)
        variance = sum((row - mean) ** 2) / len(row)
        out[position] = gain * (row - mean) * (variance + eps) ** -0.5 + bias
    return out


# repair_merge --------------------------------------------------------------------------


@right("repair_merge", "neetcode-gh/leetcode#5130")
def merge_head_by_head(x, w_q, w_k, w_v, w_o, n_heads):
    d_head, out = x.shape[-1] // n_heads, []
    for h in range(n_heads):
        part = slice(h * d_head, (h + 1) * d_head)
        q, k, v = (x @ w[:, part] for w in (w_q, w_k, w_v))
        out.append(attend(q, k, v, causal_mask(x.shape[-2])))
    return np.concatenate(out, axis=-1) @ w_o


@right("repair_merge")
def merge_by_sum_over_rows_of_w_o(x, w_q, w_k, w_v, w_o, n_heads):
    d_head = x.shape[-1] // n_heads
    q, k, v = ((x @ w).reshape(*x.shape[:-1], n_heads, d_head) for w in (w_q, w_k, w_v))
    scores = np.einsum("...qhd,...khd->...hqk", q, k) / math.sqrt(d_head)
    weights = masked_softmax(scores, causal_mask(x.shape[-2]))
    heads = np.einsum("...hqk,...khd->...hqd", weights, v)
    return np.einsum("...hqd,hdm->...qm", heads, w_o.reshape(n_heads, d_head, -1))


@right("repair_merge")
def merge_by_torch(x, w_q, w_k, w_v, w_o, n_heads):
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    x, w_q, w_k, w_v, w_o = (torch.from_numpy(a) for a in (x, w_q, w_k, w_v, w_o))
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(-3, -2) for w in (w_q, w_k, w_v))
    return sdpa(q, k, v, is_causal=True).transpose(-3, -2).flatten(-2) @ w_o


# repair_head_masks ---------------------------------------------------------------------


@right("repair_head_masks")
def masks_by_index(scores, allowed, n_heads):
    return masked_softmax(scores, allowed[np.arange(len(scores)) // n_heads])


@right("repair_head_masks")
def masks_by_two_axes(scores, allowed, n_heads):
    by_sample = scores.reshape(-1, n_heads, *scores.shape[1:])
    return masked_softmax(by_sample, allowed[:, None]).reshape(scores.shape)


@right("repair_head_masks")
def masks_sample_by_sample(scores, allowed, n_heads):
    parts = np.split(scores, len(allowed))
    weights = [masked_softmax(s, mask) for s, mask in zip(parts, allowed, strict=True)]
    return np.concatenate(weights).tolist()


@right("repair_head_masks")
def masks_tiled_and_turned(scores, allowed, n_heads):
    tiled = np.tile(allowed, (n_heads, 1, 1)).reshape(n_heads, *allowed.shape)
    return masked_softmax(scores, np.swapaxes(tiled, 0, 1).reshape(-1, *allowed.shape[1:]))


# repair_return_weights -----------------------------------------------------------------


@right("repair_return_weights")
def one_path_for_both(q, k, v, return_weights=False):
    scores = q @ np.swapaxes(k, -2, -1) / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores, np.tri(scores.shape[-1], dtype=bool))
    out = weights @ v
    return (out, weights) if return_weights else out


@right("repair_return_weights")
def weights_collected_row_by_row(q, k, v, return_weights=False):
    n = q.shape[-2]
    weights = np.zeros((*q.shape[:-1], n))
    for t in range(n):
        scores = np.einsum("...d,...kd->...k", q[..., t, :], k[..., : t + 1, :])
        exponentials = np.exp((scores - scores.max(-1, keepdims=True)) / q.shape[-1] ** 0.5)
        weights[..., t, : t + 1] = exponentials / exponentials.sum(-1, keepdims=True)
    return [weights @ v, weights] if return_weights else weights @ v


@right("repair_return_weights")
def minus_infinity_added(q, k, v, return_weights=False):
    if not return_weights:
        return reference.repair_return_weights(q, k, v)
    n = q.shape[-2]
    scores = q @ np.swapaxes(k, -2, -1) * q.shape[-1] ** -0.5
    scores = scores + np.triu(np.full((n, n), -np.inf), 1)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v, weights


# repair_prefill ------------------------------------------------------------------------


@right("repair_prefill")
def prefill_by_blocks(q, k, v, cache=None):
    if cache is not None:
        k, v = np.append(cache[0], k, axis=-2), np.append(cache[1], v, axis=-2)
    new, total = q.shape[-2], k.shape[-2]
    past = np.ones((new, total - new), dtype=bool)
    return attend(q, k, v, np.hstack([past, np.tri(new) > 0])), (k, v)


@right("repair_prefill")
def prefill_token_by_token(q, k, v, cache=None):
    old = (k[..., :0, :], v[..., :0, :]) if cache is None else cache
    keys = np.concatenate([old[0], k], axis=-2)
    values = np.concatenate([old[1], v], axis=-2)
    rows, past = [], old[0].shape[-2]
    for t in range(q.shape[-2]):
        seen = slice(0, past + t + 1)
        rows.append(attend(q[..., [t], :], keys[..., seen, :], values[..., seen, :], True))
    return [np.concatenate(rows, axis=-2), [keys, values]]


@right("repair_prefill")
def prefill_mask_only_where_it_matters(q, k, v, cache=None):
    past = 0 if cache is None else cache[0].shape[-2]
    if past:
        k, v = np.concatenate([cache[0], k], -2), np.concatenate([cache[1], v], -2)
    allowed = np.tri(q.shape[-2], k.shape[-2], past, dtype=bool) if q.shape[-2] > 1 else True
    return attend(q, k, v, allowed), (k, v)


# repair_loss ---------------------------------------------------------------------------


@right("repair_loss")
def loss_by_torch(logits, tokens):
    import torch

    logits, tokens = torch.from_numpy(logits), torch.from_numpy(tokens)
    flat, targets = logits[..., :-1, :].flatten(0, -2), tokens[..., 1:].flatten()
    return torch.nn.functional.cross_entropy(flat, targets)


@right("repair_loss")
def loss_by_logaddexp(logits, tokens):
    total = np.logaddexp.reduce(logits, axis=-1)
    chosen = np.take_along_axis(logits[..., :-1, :], tokens[..., 1:, None], axis=-1)[..., 0]
    return np.mean(total[..., :-1] - chosen)


@right("repair_loss")
def loss_in_a_loop(logits, tokens):
    losses = []
    for where in np.ndindex(tokens.shape):
        *batch, t = where
        if t + 1 == tokens.shape[-1]:
            continue
        row = logits[where].astype(np.float64) - logits[where].max()
        losses.append(math.log(np.exp(row).sum()) - row[tokens[(*batch, t + 1)]])
    return sum(losses) / len(losses)


@right("repair_loss")
def loss_with_the_inner_shift_kept(logits, tokens):
    def cross_entropy(logits, targets):
        logits, targets = logits[:-1], targets[1:]
        shifted = logits - logits.max(axis=-1, keepdims=True)
        log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return -log_probs[np.arange(len(targets)), targets].mean()

    rows, ids = logits.reshape(-1, *logits.shape[-2:]), tokens.reshape(-1, tokens.shape[-1])
    return np.array(np.mean(list(map(cross_entropy, rows, ids))))
