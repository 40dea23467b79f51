"""Chapter 3: the causal mask, and the attention that obeys it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def causal_mask(
    n_query: int, n_key: int | None = None
) -> Bool[np.ndarray, "query key"]:
    """Which keys may each query see, if nobody may look ahead?

    The mask is aligned at the bottom right: the last query sees every key, and
    query i sees key j when j <= i + n_key - n_query.

    Parameters
    ----------
    n_query: number of queries, at least 1.
    n_key: number of keys, at least 0; n_query when it is None. With more keys than
        queries the first keys are an earlier past (a KV cache). With fewer, the
        first queries see nothing.

    Returns
    -------
    bool array (query, key), True = may attend.
    """
    if n_key is None:
        n_key = n_query
    query = np.arange(n_query)[:, None]
    key = np.arange(n_key)
    return key <= query + n_key - n_query


def additive_mask(
    allowed: Bool[np.ndarray, "*batch query key"], dtype: type = np.float64
) -> Float[np.ndarray, "*batch query key"]:
    """Turn a boolean mask into the matrix M that is added to the scores.

    Parameters
    ----------
    allowed: bool array of any shape, True = may attend.
    dtype: NumPy dtype class of the result, such as np.float16.

    Returns
    -------
    array of the shape of `allowed` and of that dtype: 0 where allowed, -inf
    elsewhere.
    """
    return np.where(allowed, 0, -np.inf).astype(dtype)


def masked_softmax(
    scores: Float[np.ndarray, "*batch query key"],
    allowed: Bool[np.ndarray, "*batch query key"],
) -> Float[np.ndarray, "*batch query key"]:
    """Softmax over the allowed keys; every other key gets weight exactly 0.

    Whatever stands at a masked score (1e30, inf, nan) has no effect, and no warning
    is raised. Allowed scores are finite.

    Parameters
    ----------
    scores: one score for each query and key.
    allowed: bool array that broadcasts to the shape of `scores`, True = may attend.

    Returns
    -------
    weights of the shape of `scores`. Each query's weights sum to 1; a query with
    no allowed key gets all zeros.
    """
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)  # -inf - -inf is nan
    weights = np.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def masked_attention(
    q: Float[np.ndarray, "*batch query d_head"],
    k: Float[np.ndarray, "*batch key d_head"],
    v: Float[np.ndarray, "*batch key d_value"],
    allowed: Bool[np.ndarray, "*batch query key"],
) -> tuple[
    Float[np.ndarray, "*batch query d_value"], Float[np.ndarray, "*batch query key"]
]:
    """Scaled dot-product attention; every query sees its allowed keys only.

    weights = masked softmax of q k^T / sqrt(d_head), out = weights v
    (Vaswani et al. 2017, section 3.2.1).

    Parameters
    ----------
    q, k, v: finite queries, keys and values; the number of keys may differ from the
        number of queries, and d_value from d_head.
    allowed: bool array that broadcasts to (*batch, query, key), True = may attend.

    Returns
    -------
    out, weights. A query with no allowed key gets zeros in both.
    """
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    weights = masked_softmax(scores, allowed)
    return weights @ v, weights


def padding_mask(
    lengths: Int[np.ndarray, " batch"], n_key: int
) -> Bool[np.ndarray, "batch 1 key"]:
    """Which keys are real tokens, in a batch of sequences padded on the right?

    Parameters
    ----------
    lengths: number of real tokens of each sequence, 0 to n_key.
    n_key: the padded length.

    Returns
    -------
    bool array (batch, 1, key), True for a real key; the axis of length 1 stands
    for the queries and broadcasts.
    """
    return np.arange(n_key) < np.asarray(lengths)[:, None, None]


def causal_padding_mask(
    lengths: Int[np.ndarray, " batch"], n: int
) -> Bool[np.ndarray, "batch query key"]:
    """Causal and padding mask in one: no future keys, and no padded keys.

    Only keys are closed. A padded query keeps its row, so that no row of a
    non-empty sequence is without a key.

    Parameters
    ----------
    lengths: number of real tokens of each sequence, 0 to n (padding on the right).
    n: the padded length, of queries and keys alike.

    Returns
    -------
    bool array (batch, query, key), True = may attend.
    """
    return causal_mask(n) & padding_mask(lengths, n)


def dog_by_hand() -> tuple[list[float], list[float]]:
    """The last row of the "I love dog" example, worked out with pencil and paper.

    Returns
    -------
    weights, output: the attention that "dog" (the third token) pays to each of the
    three tokens, and the four numbers of its output; each to three decimals.
    """
    weights = [0.274, 0.274, 0.452]
    output = [0.726, 0.726, 0.274, 0.274]
    return weights, output
