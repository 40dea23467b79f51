"""Chapter 4: masked attention in floating point, and its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.reference.ch03_causal_mask import masked_attention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def log_softmax(
    scores: Float[np.ndarray, "*shape"], axis: int = -1
) -> Float[np.ndarray, "*shape"]:
    """The logarithm of the softmax, right also where the softmax rounds to 0.

    Parameters
    ----------
    scores: numbers of any magnitude, in an array with one axis or more. -inf is
        allowed; each slice along `axis` holds at least one finite number.
    axis: the axis along which the softmax sums to 1, an integer.

    Returns
    -------
    array of the shape of `scores`; -inf where the score is -inf.
    """
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def fill_value(dtype: type) -> float:
    """The lowest finite number that a floating-point format can hold.

    Parameters
    ----------
    dtype: np.float16, np.float32 or np.float64.

    Returns
    -------
    that number, as a Python or NumPy number.
    """
    return float(np.finfo(dtype).min)


def softmax_backward(
    weights: Float[np.ndarray, "*batch query key"],
    d_weights: Float[np.ndarray, "*batch query key"],
) -> Float[np.ndarray, "*batch query key"]:
    """From the gradient of the weights to the gradient of the scores.

    Parameters
    ----------
    weights: result of a softmax along the last axis. A row of zeros belongs to a
        query with no allowed key.
    d_weights: gradient of the loss with respect to `weights`, of the same shape.

    Returns
    -------
    gradient of the loss with respect to the scores, of the same shape; 0 where
    `weights` is 0, so that a row of zeros gives a row of zeros.
    """
    row_sum = (weights * d_weights).sum(axis=-1, keepdims=True)
    return weights * (d_weights - row_sum)


def masked_attention_backward(
    q: Float[np.ndarray, "*batch query d_head"],
    k: Float[np.ndarray, "*batch key d_head"],
    v: Float[np.ndarray, "*batch key d_value"],
    allowed: Bool[np.ndarray, "*batch query key"],
    d_out: Float[np.ndarray, "*batch query d_value"],
) -> tuple[
    Float[np.ndarray, "*batch query d_head"],
    Float[np.ndarray, "*batch key d_head"],
    Float[np.ndarray, "*batch key d_value"],
]:
    """The gradients of masked attention with respect to q, k and v.

    The forward pass is out, weights = masked_attention(q, k, v, allowed).

    Parameters
    ----------
    q, k, v: finite queries, keys and values.
    allowed: bool array that broadcasts to (*batch, query, key), True = may attend.
    d_out: finite gradient of the loss with respect to `out`.

    Returns
    -------
    dq, dk, dv, of the shapes of q, k and v. The row of dq of a query with no
    allowed key is zero, and such a query adds nothing to dk and dv.
    """
    _, weights = masked_attention(q, k, v, allowed)
    dv = np.swapaxes(weights, -2, -1) @ d_out
    d_weights = d_out @ np.swapaxes(v, -2, -1)
    d_scores = softmax_backward(weights, d_weights) / q.shape[-1] ** 0.5
    dq = d_scores @ k
    dk = np.swapaxes(d_scores, -2, -1) @ q
    return dq, dk, dv
