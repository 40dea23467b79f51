"""Chapter 2: self-attention without a mask, and how spread out its weights are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def softmax(
    scores: Float[np.ndarray, "*shape"], axis: int = -1
) -> Float[np.ndarray, "*shape"]:
    """Turn scores into positive weights that sum to 1 along one axis.

    Each score becomes e to the score, divided by the sum of these along the axis.

    Parameters
    ----------
    scores: array of any shape. The scores may have any size, and may be -inf, but
        every slice along the axis holds a finite one.
    axis: the axis along which the weights sum to 1.

    Returns
    -------
    weights of the shape of `scores`. A score of -inf gets weight 0.
    """
    largest = scores.max(axis=axis, keepdims=True)
    exponentials = np.exp(scores - largest)  # at most e^0 = 1: nothing overflows
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def scaled_scores(
    q: Float[np.ndarray, "*batch query d_head"],
    k: Float[np.ndarray, "*batch key d_head"],
) -> Float[np.ndarray, "*batch query key"]:
    """How well does each key fit each query? Their dot product over sqrt(d_head).

    Parameters
    ----------
    q, k: finite queries and keys of the same width, d_head. Their numbers may
        differ. There may be any number of batch axes, or none.

    Returns
    -------
    scores, one for each query (rows) and key (columns).
    """
    return q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5


def attention(
    q: Float[np.ndarray, "*batch query d_head"],
    k: Float[np.ndarray, "*batch key d_head"],
    v: Float[np.ndarray, "*batch key d_value"],
) -> tuple[
    Float[np.ndarray, "*batch query d_value"], Float[np.ndarray, "*batch query key"]
]:
    """Scaled dot-product attention: each query takes a weighted sum of the values.

    weights = softmax of q k^T / sqrt(d_head), out = weights v
    (Vaswani et al. 2017, section 3.2.1).

    Parameters
    ----------
    q, k, v: finite queries, keys and values; the number of keys may differ from the
        number of queries, and d_value from d_head.

    Returns
    -------
    out, weights. Every query may see every key.
    """
    weights = softmax(scaled_scores(q, k))
    return weights @ v, weights


def entropy(
    weights: Float[np.ndarray, "*batch query key"],
) -> Float[np.ndarray, "*batch query"]:
    """How spread out are the weights of each query? Their entropy, in nats.

    entropy = -(sum over the keys of weight * ln weight), where 0 ln 0 counts as 0:
    0 when one key has all the weight, ln n when n keys share it equally.

    Parameters
    ----------
    weights: each row sums to 1, or is all zeros (a query that sees no key).

    Returns
    -------
    one number for each query. A row of zeros has entropy 0.
    """
    logarithms = np.log(np.where(weights > 0, weights, 1))  # ln 1 = 0 for the zeros
    return 0 - (weights * logarithms).sum(axis=-1)  # 0 - 0 is 0, not -0.0
