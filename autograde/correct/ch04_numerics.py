"""Right answers to chapter 4, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch04_numerics as reference
from autograde.reference.ch03_causal_mask import masked_attention, masked_softmax

# log_softmax ---------------------------------------------------------------------------


@right("log_softmax")
def by_log_sum_exp(scores, axis=-1):
    return scores - np.logaddexp.reduce(scores, axis=axis, keepdims=True)


@right("log_softmax")
def maximum_added_again(scores, axis=-1):
    largest = np.max(scores, axis, keepdims=True)
    return scores - (largest + np.log(np.sum(np.exp(scores - largest), axis, keepdims=True)))


@right("log_softmax")
def slice_by_slice(scores, axis=-1):
    moved = np.moveaxis(scores, axis, -1)
    out = np.empty(moved.shape)
    for place in np.ndindex(moved.shape[:-1]):
        numbers = [float(x) for x in moved[place]]
        largest = max(numbers)
        total = math.log(math.fsum(math.exp(x - largest) for x in numbers))
        out[place] = [x - largest - total for x in numbers]
    return np.moveaxis(out, -1, axis)


@right("log_softmax")
def by_torch(scores, axis=-1):
    import torch

    return torch.log_softmax(torch.from_numpy(scores), dim=axis)


@right("log_softmax")
def without_the_largest_in_the_sum(scores, axis=-1):
    shifted = np.sort(scores - scores.max(axis=axis, keepdims=True), axis=axis)
    rest = np.delete(np.exp(shifted), -1, axis=axis).sum(axis=axis, keepdims=True)
    return scores - scores.max(axis=axis, keepdims=True) - np.log1p(rest)


@right("log_softmax")
def in_single_precision_as_lists(scores, axis=-1):
    return reference.log_softmax(scores.astype(np.float32), axis).tolist()


@right("log_softmax")
def in_base_two(scores, axis=-1):
    shifted = (scores - scores.max(axis=axis, keepdims=True)) * math.log2(math.e)
    total = np.exp2(shifted).sum(axis=axis, keepdims=True)
    return (shifted - np.log2(total)) * math.log(2)


@right("log_softmax")
def by_masked_arrays(scores, axis=-1):
    scores = np.ma.masked_invalid(scores)
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return (shifted - np.ma.log(np.ma.exp(shifted).sum(axis=axis, keepdims=True))).filled(-np.inf)


# fill_value ----------------------------------------------------------------------------


@right("fill_value")
def minus_the_largest(dtype):
    return -np.finfo(dtype).max


@right("fill_value")
def the_one_after_minus_infinity(dtype):
    return np.nextafter(dtype(-np.inf), dtype(0))


@right("fill_value")
def from_a_table(dtype):
    return {"float16": -65504, "float32": -3.4028235e38, "float64": -1.7976931348623157e308}[
        np.dtype(dtype).name
    ]


@right("fill_value")
def from_the_bits(dtype):
    info = np.finfo(dtype)
    return -(2 - 2.0**-info.nmant) * 2.0 ** (info.maxexp - 1)


@right("fill_value")
def as_an_array(dtype):
    return np.array(np.finfo(dtype).min, dtype=dtype)


@right("fill_value")
def as_a_whole_number(dtype):
    return -int(np.finfo(dtype).max)


@right("fill_value")
def by_doubling(dtype):
    step = dtype(1)
    with np.errstate(over="ignore"):
        while np.isfinite(step * dtype(2)):
            step = step * dtype(2)
    return -float(step) * (2 - float(np.finfo(dtype).eps))


# softmax_backward ----------------------------------------------------------------------


@right("softmax_backward")
def opened_bracket(weights, d_weights):
    product = weights * d_weights
    return product - weights * product.sum(axis=-1, keepdims=True)


@right("softmax_backward")
def by_jacobian(weights, d_weights):
    n = weights.shape[-1]
    jacobian = weights[..., None] * (np.eye(n) - weights[..., None, :])
    return np.einsum("...ij,...j->...i", jacobian, d_weights)


@right("softmax_backward")
def row_by_row(weights, d_weights):
    out = np.zeros_like(weights)
    for row in np.ndindex(weights.shape[:-1]):
        w, d = weights[row], d_weights[row]
        for i in range(len(w)):
            out[row][i] = sum(d[j] * w[i] * ((i == j) - w[j]) for j in range(len(w)))
    return out.tolist()


@right("softmax_backward")
def by_differences_of_pairs(weights, d_weights):
    differences = d_weights[..., :, None] - d_weights[..., None, :]
    return weights * (differences @ weights[..., None])[..., 0]


@right("softmax_backward")
def by_autograd(weights, d_weights):
    import torch

    scores = torch.from_numpy(weights).log().requires_grad_()
    empty = torch.from_numpy(weights == 0).all(-1, keepdim=True)
    scores.masked_fill(empty, 0).softmax(-1).backward(torch.from_numpy(d_weights))
    return scores.grad


@right("softmax_backward")
def by_complex_steps(weights, d_weights):
    """A score moves by an imaginary amount; the imaginary part of the loss is the derivative."""
    out = np.zeros(weights.shape)
    for j in range(weights.shape[-1]):
        moved = weights.astype(complex)
        moved[..., j] *= np.exp(1e-30j)
        total = moved.sum(axis=-1, keepdims=True)
        out[..., j] = (moved / np.where(total == 0, 1, total) * d_weights).sum(-1).imag / 1e-30
    return out


@right("softmax_backward")
def in_single_precision_and_fortran_order(weights, d_weights):
    weights, d_weights = weights.astype(np.float32), d_weights.astype(np.float32)
    return np.asfortranarray(reference.softmax_backward(weights, d_weights))


# masked_attention_backward -------------------------------------------------------------


@right("masked_attention_backward")
def by_einsum(q, k, v, allowed, d_out):
    scale = 1 / math.sqrt(q.shape[-1])
    weights = masked_softmax(np.einsum("...qd,...kd->...qk", q, k) * scale, allowed)
    d_weights = np.einsum("...qd,...kd->...qk", d_out, v)
    d_scores = reference.softmax_backward(weights, d_weights)
    return (
        np.einsum("...qk,...kd->...qd", d_scores, k) * scale,
        np.einsum("...qk,...qd->...kd", d_scores, q) * scale,
        np.einsum("...qk,...qd->...kd", weights, d_out),
    )


@right("masked_attention_backward")
def row_sum_from_the_output(q, k, v, allowed, d_out):
    """The sum of weights * d_weights is the dot product of out and d_out."""
    out, weights = masked_attention(q, k, v, allowed)
    row_sum = (out * d_out).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_out @ np.swapaxes(v, -1, -2) - row_sum) * q.shape[-1] ** -0.5
    return [d_scores @ k, np.swapaxes(d_scores, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ d_out]


@right("masked_attention_backward")
def by_torch_sdpa(q, k, v, allowed, d_out):
    import torch

    q, k, v = (torch.from_numpy(x).requires_grad_() for x in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    mask = torch.from_numpy(np.broadcast_to(allowed, scores.shape).copy())
    seen = mask.any(-1, keepdim=True)
    mask = mask | ~seen
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    (out * seen).backward(torch.from_numpy(d_out))
    return q.grad, k.grad, v.grad


@right("masked_attention_backward")
def query_by_query(q, k, v, allowed, d_out):
    allowed = np.broadcast_to(allowed, (*q.shape[:-1], k.shape[-2]))
    dq, dk, dv = (np.zeros(x.shape) for x in (q, k, v))
    for batch in np.ndindex(q.shape[:-2]):
        for i in range(q.shape[-2]):
            seen = np.flatnonzero(allowed[batch][i])
            if not len(seen):
                continue
            keys, values = k[batch][seen], v[batch][seen]
            scores = keys @ q[batch][i] / np.sqrt(q.shape[-1])
            weights = np.exp(scores - scores.max())
            weights = weights / weights.sum()
            d_weights = values @ d_out[batch][i]
            d_scores = weights * (d_weights - weights @ d_weights) / np.sqrt(q.shape[-1])
            dq[batch][i] = d_scores @ keys
            dk[batch][seen] += np.outer(d_scores, q[batch][i])
            dv[batch][seen] += np.outer(weights, d_out[batch][i])
    return dq, dk, dv


@right("masked_attention_backward")
def by_vectorize(q, k, v, allowed, d_out):
    def one(q, k, v, allowed, d_out):
        _, weights = masked_attention(q, k, v, allowed)
        d_scores = reference.softmax_backward(weights, d_out @ v.T) / np.sqrt(q.shape[-1])
        return d_scores @ k, d_scores.T @ q, weights.T @ d_out

    axes = "(q,d),(k,d),(k,e),(q,k),(q,e)->(q,d),(k,d),(k,e)"
    allowed = np.broadcast_to(allowed, (*q.shape[:-1], k.shape[-2]))
    return np.vectorize(one, signature=axes)(q, k, v, allowed, d_out)


@right("masked_attention_backward")
def with_scaled_queries(q, k, v, allowed, d_out):
    root = q.shape[-1] ** -0.5
    scaled = q * root
    scores = np.where(allowed, scaled @ np.swapaxes(k, -2, -1), -np.inf)
    lowest = np.finfo(scores.dtype).min  # for a query with no key, whose largest is -inf
    weights = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), lowest))
    weights /= np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
    d_scores = reference.softmax_backward(weights, d_out @ np.swapaxes(v, -2, -1))
    dk, dv = (np.swapaxes(x, -2, -1) for x in (d_scores, weights))
    return d_scores @ k * root, dk @ scaled, dv @ d_out


@right("masked_attention_backward")
def by_backward_in_single_precision(q, k, v, allowed, d_out):
    single = (x.astype(np.float32) for x in (q, k, v))
    return reference.masked_attention_backward(*single, allowed, d_out.astype(np.float32))


@right("masked_attention_backward")
def by_central_differences(q, k, v, allowed, d_out):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    gradients = []
    for array in (q, k, v):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            here, losses = array[place], []
            for step in (1e-5, -1e-5):
                array[place] = here + step
                losses.append((masked_attention(q, k, v, allowed)[0] * d_out).sum())
            array[place] = here
            gradient[place] = (losses[0] - losses[1]) / 2e-5
        gradients.append(gradient)
    return tuple(gradients)
