"""Right answers to chapter 9, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch09_variants as reference
from autograde.reference.ch03_causal_mask import masked_attention, masked_softmax

# sliding_window_mask -------------------------------------------------------------------


@right("sliding_window_mask")
def window_by_two_triangles(n, window):
    return np.tri(n, dtype=bool) ^ np.tri(n, k=-window, dtype=bool)


@right("sliding_window_mask")
def window_by_slices(n, window):
    mask = np.zeros((n, n), dtype=bool)
    for i in range(n):
        mask[i, max(i - window + 1, 0) : i + 1] = True
    return mask


@right("sliding_window_mask")
def window_by_list_comprehension(n, window):
    return [[i - window < j <= i for j in range(n)] for i in range(n)]


@right("sliding_window_mask")
def window_by_torch(n, window):
    import torch

    return torch.ones(n, n, dtype=torch.bool).tril().triu(1 - window)


@right("sliding_window_mask")
def window_by_diagonals(n, window):
    mask = np.zeros((n, n), dtype=bool, order="F")
    for back in range(min(window, n)):
        mask |= np.eye(n, k=-back, dtype=bool)
    return mask


@right("sliding_window_mask")
def window_as_a_strided_view(n, window):
    row = np.zeros(2 * n - 1, dtype=bool)
    row[max(n - window, 0) : n] = True
    return np.lib.stride_tricks.sliding_window_view(row, n)[::-1]


# strided_mask --------------------------------------------------------------------------


@right("strided_mask")
def strided_by_loops(n, window, stride):
    return [
        [j <= i and (i - j < window or (i - j) % stride == 0) for j in range(n)] for i in range(n)
    ]


@right("strided_mask")
def strided_by_slices(n, window, stride):
    mask = np.zeros((n, n), dtype=bool)
    for i in range(n):
        mask[i, i::-stride] = True
        mask[i, max(i - window + 1, 0) : i + 1] = True
    return mask


@right("strided_mask")
def strided_by_a_set_of_distances(n, window, stride):
    open_ = np.union1d(np.arange(window), np.arange(0, n, stride))
    return np.isin(np.arange(n)[:, None] - np.arange(n), open_)


@right("strided_mask")
def strided_by_union(n, window, stride):
    i, j = np.indices((n, n))
    every = np.tri(n, dtype=bool) & (i % stride == j % stride)
    return reference.sliding_window_mask(n, window) | every


@right("strided_mask")
def strided_by_torch(n, window, stride):
    import torch

    distance = torch.arange(n)[:, None] - torch.arange(n)
    return (distance >= 0).logical_and((distance < window).logical_or(distance % stride == 0))


# alibi_bias ----------------------------------------------------------------------------


@right("alibi_bias")
def alibi_by_loops(n, n_heads):
    bias = np.zeros((n_heads, n, n))
    for h in range(1, n_heads + 1):
        for i in range(n):
            for j in range(i):
                bias[h - 1, i, j] = -(2 ** (-8 * h / n_heads)) * (i - j)
    return bias


@right("alibi_bias")
def alibi_by_a_running_product(n, n_heads):
    slopes = np.cumprod(np.full(n_heads, 2 ** (-8 / n_heads)))
    return np.tril(np.einsum("h,ij->hij", slopes, np.arange(n) - np.arange(n)[:, None]))


@right("alibi_bias")
def alibi_in_single_precision(n, n_heads):
    slopes = np.exp2(np.linspace(-8 / n_heads, -8, n_heads)).astype(np.float32)
    distance = np.arange(n, dtype=np.float32)[:, None] - np.arange(n, dtype=np.float32)
    return -slopes[:, None, None] * distance.clip(min=0)


@right("alibi_bias")
def alibi_by_counting_keys(n, n_heads):
    steps = np.tri(n, k=-1)[:, ::-1].cumsum(axis=1)[:, ::-1]  # how many keys lie between
    return [(-(256 ** (-h / n_heads)) * steps).tolist() for h in range(1, n_heads + 1)]


@right("alibi_bias")
def alibi_by_torch(n, n_heads):
    import torch

    slopes = torch.pow(2.0, -8 * torch.arange(1, n_heads + 1) / n_heads)
    distance = torch.arange(n)[:, None] - torch.arange(n)
    return -(slopes.view(-1, 1, 1) * distance).tril()


# grouped_query_attention ---------------------------------------------------------------


@right("grouped_query_attention")
def heads_one_by_one(q, k, v, allowed):
    heads, group = q.shape[-3], q.shape[-3] // k.shape[-3]
    allowed = np.broadcast_to(allowed, (*q.shape[:-1], k.shape[-2]))
    outs = []
    for h in range(heads):
        one = (q[..., h, :, :], k[..., h // group, :, :], v[..., h // group, :, :])
        outs.append(masked_attention(*one, allowed[..., h, :, :])[0])
    return np.stack(outs, axis=-3)


@right("grouped_query_attention")
def heads_split_in_groups(q, k, v, allowed):
    *batch, heads, n_query, d_head = q.shape
    n_kv, n_key = k.shape[-3:-1]
    split = q.reshape(*batch, n_kv, heads // n_kv, n_query, d_head)
    scores = np.einsum("...gqd,...kd->...gqk", split, k) / math.sqrt(d_head)
    full = np.broadcast_to(allowed, (*batch, heads, n_query, n_key))
    weights = masked_softmax(scores, full.reshape(scores.shape))
    out = np.einsum("...gqk,...kd->...gqd", weights, v)
    return out.reshape(*batch, heads, n_query, v.shape[-1])


@right("grouped_query_attention")
def groups_as_longer_queries(q, k, v, allowed):
    """The queries of a group stand below each other, as one head with more queries."""
    *batch, heads, n_query, d_head = q.shape
    n_kv, n_key = k.shape[-3:-1]
    long = q.reshape(*batch, n_kv, -1, d_head)
    full = np.broadcast_to(allowed, (*batch, heads, n_query, n_key))
    out, _ = masked_attention(long, k, v, full.reshape(*batch, n_kv, -1, n_key))
    return out.reshape(*batch, heads, n_query, -1)


@right("grouped_query_attention")
def grouped_by_torch(q, k, v, allowed):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    shape = (*q.shape[:-1], k.shape[-2])
    mask = torch.from_numpy(np.broadcast_to(allowed, shape).copy())
    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    group = q.shape[-3] // k.shape[-3]
    k, v = (x.repeat_interleave(group, dim=-3) for x in (k, v))
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return torch.where(mask.any(-1, keepdim=True), out, 0)


@right("grouped_query_attention")
def heads_by_broadcast(q, k, v, allowed):
    def spread(x):
        group = q.shape[-3] // x.shape[-3]
        wide = np.broadcast_to(x[..., None, :, :], (*x.shape[:-2], group, *x.shape[-2:]))
        return wide.reshape(*x.shape[:-3], -1, *x.shape[-2:])

    return np.asfortranarray(masked_attention(q, spread(k), spread(v), allowed)[0])


@right("grouped_query_attention")
def grouped_in_single_precision(q, k, v, allowed):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    return reference.grouped_query_attention(q, k, v, allowed).tolist()


# axial_causal_attention ----------------------------------------------------------------


@right("axial_causal_attention")
def cell_by_cell(q, k, v):
    out = np.zeros(v.shape)
    for row, col in np.ndindex(*q.shape[-3:-1]):
        one = q[..., row, [col], :]
        left = k[..., row, : col + 1, :], v[..., row, : col + 1, :]
        above = k[..., : row + 1, col, :], v[..., : row + 1, col, :]
        for keys, values in (left, above):
            out[..., row, col, :] += masked_attention(one, keys, values, True)[0][..., 0, :]
    return out


@right("axial_causal_attention")
def two_masks_on_the_flat_grid(q, k, v):
    rows, cols = q.shape[-3:-1]
    row, col = np.divmod(np.arange(rows * cols), cols)
    past = np.tri(rows * cols, dtype=bool)
    arrays = [x.reshape(*x.shape[:-3], rows * cols, x.shape[-1]) for x in (q, k, v)]
    masks = (past & (axis[:, None] == axis) for axis in (row, col))
    return sum(masked_attention(*arrays, mask)[0] for mask in masks).reshape(v.shape)


@right("axial_causal_attention")
def axial_by_einsum(q, k, v):
    rows, cols = q.shape[-3:-1]
    scale = q.shape[-1] ** -0.5
    along = masked_softmax(np.einsum("...rqd,...rkd->...rqk", q, k) * scale, np.tri(cols) > 0)
    down = masked_softmax(np.einsum("...qcd,...kcd->...cqk", q, k) * scale, np.tri(rows) > 0)
    out = np.einsum("...rqk,...rkd->...rqd", along, v)
    return out + np.einsum("...cqk,...kcd->...qcd", down, v)


@right("axial_causal_attention")
def axial_by_torch(q, k, v):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    turned = (x.transpose(-3, -2) for x in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, is_causal=True)
    return out + scaled_dot_product_attention(*turned, is_causal=True).transpose(-3, -2)


@right("axial_causal_attention")
def axial_in_single_precision(q, k, v):
    return reference.axial_causal_attention(*(x.astype(np.float32) for x in (q, k, v))).tolist()


# ring_append ---------------------------------------------------------------------------


@right("ring_append")
def ring_token_by_token(k_cache, v_cache, k_new, v_new, position):
    caches = [np.array(k_cache), np.array(v_cache)]
    for cache, new in zip(caches, (k_new, v_new), strict=True):
        for t in range(new.shape[-2]):
            cache[..., (position + t) % cache.shape[-2], :] = new[..., t, :]
    return caches


@right("ring_append")
def ring_by_rolling(k_cache, v_cache, k_new, v_new, position):
    def write(cache, new):
        turned = np.roll(cache, -position, axis=-2)  # the slot to write comes first
        turned = np.concatenate([new, turned[..., new.shape[-2] :, :]], axis=-2)
        return np.roll(turned, position, axis=-2)

    return write(k_cache, k_new), write(v_cache, v_new)


@right("ring_append")
def ring_in_two_pieces(k_cache, v_cache, k_new, v_new, position):
    k_cache, v_cache = k_cache.astype(np.float64), v_cache.astype(np.float64)
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    start = position % capacity
    fit = min(new, capacity - start)
    for cache, tokens in ((k_cache, k_new), (v_cache, v_new)):
        cache[..., start : start + fit, :] = tokens[..., :fit, :]
        cache[..., : new - fit, :] = tokens[..., fit:, :]
    return k_cache, v_cache


@right("ring_append")
def ring_by_choosing(k_cache, v_cache, k_new, v_new, position):
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    token = (np.arange(capacity) - position) % capacity  # which new token a slot would get
    is_new, token = (token < new)[:, None], np.minimum(token, new - 1)
    return tuple(
        np.where(is_new, tokens[..., token, :], cache).tolist()
        for cache, tokens in ((k_cache, k_new), (v_cache, v_new))
    )


@right("ring_append")
def ring_by_torch(k_cache, v_cache, k_new, v_new, position):
    import torch

    slots = torch.arange(position, position + k_new.shape[-2]) % k_cache.shape[-2]
    pairs = ((k_cache, k_new), (v_cache, v_new))
    return tuple(torch.tensor(c).index_copy(-2, slots, torch.tensor(x)) for c, x in pairs)


# ring_positions ------------------------------------------------------------------------


@right("ring_positions")
def positions_played_through(position, capacity):
    held = [-1] * capacity
    for p in range(max(0, position - capacity), position + 1):
        held[p % capacity] = p
    return held


@right("ring_positions")
def positions_by_rounds(position, capacity):
    base, newest = divmod(position, capacity)
    held = np.arange(capacity) + base * capacity
    held[newest + 1 :] -= capacity
    return np.where(held < 0, -1, held).astype(np.int32)


@right("ring_positions")
def positions_rolled(position, capacity):
    newest = np.arange(position - capacity + 1, position + 1)
    return np.maximum(np.roll(newest, (position + 1) % capacity), -1)


@right("ring_positions")
def positions_slot_by_slot(position, capacity):
    return tuple(max(range(s, position + 1, capacity), default=-1) for s in range(capacity))


@right("ring_positions")
def positions_by_torch(position, capacity):
    import torch

    slots = torch.arange(capacity)
    return (position - (position - slots).remainder(capacity)).clamp(min=-1)
