"""Right answers to chapter 2, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch02_self_attention as reference

# softmax -------------------------------------------------------------------------------


@right("softmax", "fchollet/keras-resources#53")
def softmax_slice_by_slice(scores, axis=-1):
    def one(row):
        largest = max(row)
        exponentials = [math.exp(score - largest) for score in row]
        return [e / sum(exponentials) for e in exponentials]

    return np.apply_along_axis(one, axis, scores)


@right("softmax")
def softmax_with_the_axis_moved(scores, axis=-1):
    rows = np.moveaxis(scores, axis, -1)
    exponentials = np.exp(rows - rows.max(axis=-1)[..., None])
    weights = exponentials / np.einsum("...k->...", exponentials)[..., None]
    return np.moveaxis(weights, -1, axis)


@right("softmax")
def softmax_by_log_sum_exp(scores, axis=-1):
    return np.exp(scores - np.logaddexp.reduce(scores, axis=axis, keepdims=True))


@right("softmax")
def softmax_in_lists_of_base_two(scores, axis=-1):
    exponents = (scores - np.max(scores, axis, keepdims=True)) * math.log2(math.e)
    powers = np.exp2(exponents)
    return (powers / np.sum(powers, axis, keepdims=True)).tolist()


@right("softmax")
def softmax_by_torch(scores, axis=-1):
    import torch

    return torch.softmax(torch.from_numpy(scores), dim=axis)


@right("softmax")
def softmax_in_single_precision(scores, axis=-1):
    return reference.softmax(scores.astype(np.float32), axis)


@right("softmax")
def softmax_in_place_on_a_copy(scores, axis=-1):
    weights = np.array(scores, dtype=np.longdouble, order="F")
    weights -= weights.max(axis=axis, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=axis, keepdims=True)
    return weights


@right("softmax")
def softmax_with_a_tiny_denominator(scores, axis=-1):
    exponentials = np.exp(scores - np.expand_dims(scores.max(axis), axis))
    return exponentials / (np.expand_dims(exponentials.sum(axis), axis) + 1e-12)


@right("softmax")
def softmax_of_replaced_infinities(scores, axis=-1):
    scores = np.where(np.isneginf(scores), np.finfo(scores.dtype).min, scores)
    with np.errstate(over="ignore"):
        return reference.softmax(scores, axis)


@right("softmax")
def softmax_by_pairs(scores, axis=-1):
    """1 over the sum of e to the differences."""
    rows = np.moveaxis(scores, axis, -1)
    with np.errstate(all="ignore"):
        differences = rows[..., None, :] - rows[..., :, None]
        weights = 1 / np.exp(np.nan_to_num(differences, posinf=np.inf, neginf=-np.inf)).sum(-1)
    return np.moveaxis(weights, -1, axis)


# scaled_scores -------------------------------------------------------------------------


@right("scaled_scores")
def scores_by_einsum(q, k):
    return np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])


@right("scaled_scores")
def scores_by_loops(q, k):
    if q.ndim > 2:
        return [scores_by_loops(*pair) for pair in zip(q, k, strict=True)]
    root = math.sqrt(len(q[0]))
    return [[sum(a * b for a, b in zip(x, y, strict=True)) / root for y in k] for x in q]


@right("scaled_scores", "pytorch/pytorch#60940")
def scores_of_scaled_queries_and_keys(q, k):
    root = q.shape[-1] ** -0.25
    return (q * root) @ np.swapaxes(k * root, -1, -2)


@right("scaled_scores")
def scores_by_broadcasting(q, k):
    return (q[..., :, None, :] * k[..., None, :, :]).sum(axis=-1) * q.shape[-1] ** -0.5


@right("scaled_scores", "lsdefine/attention-is-all-you-need-keras#6")
def scores_turned_at_the_end(q, k):
    return np.swapaxes(k @ np.swapaxes(q, -1, -2), -1, -2) / math.sqrt(k.shape[-1])


@right("scaled_scores")
def scores_by_torch(q, k):
    import torch

    return torch.from_numpy(q) @ torch.from_numpy(k).mT / q.shape[-1] ** 0.5


@right("scaled_scores")
def scores_by_squares(q, k):
    """Four dot products are the difference of two squared lengths."""
    q, k = q[..., :, None, :].astype(float), k[..., None, :, :].astype(float)
    return (((q + k) ** 2).sum(-1) - ((q - k) ** 2).sum(-1)) / 4 / math.sqrt(q.shape[-1])


# attention -----------------------------------------------------------------------------


@right("attention")
def attention_by_einsum(q, k, v):
    scores = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    return np.einsum("...qk,...kd->...qd", weights, v), weights


@right("attention")
def attention_divided_at_the_end(q, k, v):
    scores = reference.scaled_scores(q, k)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    total = exponentials.sum(-1, keepdims=True)
    return [exponentials @ v / total, exponentials / total]


@right("attention")
def attention_by_torch(q, k, v):
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    eye = torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], -1)
    return sdpa(q, k, v), sdpa(q, k, eye)


@right("attention")
def attention_query_by_query(q, k, v):
    if q.ndim > 2:
        pairs = [attention_query_by_query(*three) for three in zip(q, k, v, strict=True)]
        return [out for out, _ in pairs], [weights for _, weights in pairs]
    out, weights = [], []
    for query in q:
        row = reference.softmax(k @ query / math.sqrt(len(query)))
        weights.append(row.tolist())
        out.append(sum(w * value for w, value in zip(row, v, strict=True)).tolist())
    return out, weights


@right("attention")
def attention_in_fortran_order(q, k, v):
    out, weights = reference.attention(q, k, v)
    return np.asfortranarray(out), np.asfortranarray(weights)


@right("attention")
def attention_with_a_column_of_ones(q, k, v):
    """The values get a column of ones, whose weighted sum is what all is divided by."""
    scores = reference.scaled_scores(q, k)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    out = exponentials @ np.concatenate([v, np.ones((*v.shape[:-1], 1))], axis=-1)
    return out[..., :-1] / out[..., -1:], exponentials / out[..., -1:]


@right("attention")
def attention_key_by_key(q, k, v):
    """One key at a time, with a running maximum (the online softmax of chapter 10)."""
    scores = reference.scaled_scores(q, k)
    largest = scores[..., :1]
    total, out = np.ones_like(largest), np.ones_like(largest) * v[..., None, 0, :]
    for j in range(1, k.shape[-2]):
        score = scores[..., j : j + 1]
        higher = np.maximum(largest, score)
        shrink, new = np.exp(largest - higher), np.exp(score - higher)
        total, out = total * shrink + new, out * shrink + new * v[..., None, j, :]
        largest = higher
    return out / total, np.exp(scores - largest) / total


@right("attention")
def attention_in_single_precision(q, k, v):
    return reference.attention(*(x.astype(np.float32) for x in (q, k, v)))


# entropy -------------------------------------------------------------------------------


@right("entropy")
def entropy_by_loops(weights):
    if weights.ndim > 1:
        return [entropy_by_loops(row) for row in weights]
    return sum(-w * math.log(w) for w in weights.tolist() if w > 0)


@right("entropy")
def entropy_by_log_where(weights):
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -np.einsum("...k,...k->...", weights, logarithms)


@right("entropy")
def entropy_with_zeros_mended(weights):
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nan_to_num(weights * np.log(weights)).sum(-1)


@right("entropy")
def entropy_mended_after_a_warning(weights):
    return np.where(weights > 0, -weights * np.log(weights), 0).sum(axis=-1)


@right("entropy")
def entropy_with_a_tiny_number(weights):
    return -np.sum(weights * np.log(weights + 1e-9), axis=-1)


@right("entropy")
def entropy_of_clipped_weights(weights):
    return -np.sum(weights * np.log(np.clip(weights, 1e-12, 1)), axis=-1)


@right("entropy")
def entropy_by_powers(weights):
    """The product of w to the w is e to minus the entropy, and 0 to the 0 is 1."""
    return -np.log(np.prod(weights.astype(float) ** weights, axis=-1))


@right("entropy")
def entropy_of_masked_arrays(weights):
    weights = np.ma.masked_equal(weights, 0)
    return -(weights * np.ma.log(weights)).sum(axis=-1).filled(0)


@right("entropy")
def entropy_without_its_nan(weights):
    with np.errstate(all="ignore"):
        return np.nansum(weights * -np.log(weights), axis=-1)


@right("entropy")
def entropy_from_bits(weights):
    bits = weights * np.log2(np.where(weights == 0, 1, weights))
    return -bits.sum(-1) * math.log(2)


@right("entropy")
def entropy_by_torch(weights):
    import torch

    return torch.special.entr(torch.from_numpy(weights)).sum(-1)


@right("entropy")
def entropy_from_the_distance_to_uniform(weights):
    n = weights.shape[-1]
    excess = (weights * np.log(np.where(weights > 0, weights * n, 1))).sum(-1)
    return np.log(n) * weights.any(-1) - excess
