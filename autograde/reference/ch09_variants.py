"""Chapter 9: variants that see less, remember less, or share more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.reference.ch03_causal_mask import causal_mask, masked_attention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def sliding_window_mask(n: int, window: int) -> Bool[np.ndarray, "query key"]:
    """The causal mask of a sliding window: a query sees the newest `window` keys.

    Query i sees key j when i - window < j <= i (Beltagy et al. 2020, section 3.1,
    in its causal form).

    Parameters
    ----------
    n: number of queries, and of keys, at least 1.
    window: number of keys that a query sees, itself included; at least 1, and it
        may exceed n.

    Returns
    -------
    bool array (query, key), True = may attend. The first queries have fewer keys,
    because there is nothing before the sequence.
    """
    distance = np.arange(n)[:, None] - np.arange(n)
    return (distance >= 0) & (distance < window)


def strided_mask(n: int, window: int, stride: int) -> Bool[np.ndarray, "query key"]:
    """A sliding window, and beyond it every `stride`-th key, counted backwards.

    Query i sees key j when j <= i, and i - j < window or i - j is a multiple of
    stride (Child et al. 2019, section 4.3, both of its heads in one mask).

    Parameters
    ----------
    n: number of queries, and of keys, at least 1.
    window: number of newest keys that are all open, at least 1.
    stride: distance from one open key to the next, at least 1.

    Returns
    -------
    bool array (query, key), True = may attend.
    """
    distance = np.arange(n)[:, None] - np.arange(n)
    near, on_stride = distance < window, distance % stride == 0
    return (distance >= 0) & (near | on_stride)


def alibi_bias(n: int, n_heads: int) -> Float[np.ndarray, "heads query key"]:
    """Attention with linear biases: the farther the key, the lower its score.

    Head h = 1, ..., n_heads has the slope 2^(-8 h / n_heads), also where n_heads is
    no power of two. It adds -slope * (i - j) to the score of query i and key j <= i
    (Press et al. 2022, section 3).

    Parameters
    ----------
    n: number of queries, and of keys, at least 1.
    n_heads: number of heads, at least 1.

    Returns
    -------
    float array (heads, query, key), to be added to scores that are already scaled:
    0 on the diagonal, and 0 above it, which only a mask can close.
    """
    slopes = 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)
    distance = np.arange(n)[:, None] - np.arange(n)
    return slopes[:, None, None] * np.minimum(-distance, 0)


def grouped_query_attention(
    q: Float[np.ndarray, "*batch heads query d_head"],
    k: Float[np.ndarray, "*batch kv_heads key d_head"],
    v: Float[np.ndarray, "*batch kv_heads key d_value"],
    allowed: Bool[np.ndarray, "*batch heads query key"],
) -> Float[np.ndarray, "*batch heads query d_value"]:
    """Scaled dot-product attention; several query heads share keys and values.

    With 6 heads and 2 kv_heads, query heads 0, 1, 2 use kv head 0, and 3, 4, 5 use
    kv head 1 (Ainslie et al. 2023). One kv head is multi-query attention (Shazeer
    2019), as many as heads is ordinary multi-head attention.

    Parameters
    ----------
    q: finite queries of each head.
    k, v: finite keys and values of each kv head; kv_heads divides heads.
    allowed: bool array that broadcasts to (*batch, heads, query, key), True = may
        attend.

    Returns
    -------
    out, alone. A query with no allowed key gets zeros.
    """
    group = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(x, group, axis=-3) for x in (k, v))
    out, _ = masked_attention(q, k, v, allowed)
    return out


def axial_causal_attention(
    q: Float[np.ndarray, "*batch rows cols d_head"],
    k: Float[np.ndarray, "*batch rows cols d_head"],
    v: Float[np.ndarray, "*batch rows cols d_value"],
) -> Float[np.ndarray, "*batch rows cols d_value"]:
    """Attention on a grid, along rows and along columns, each of them causal.

    A cell attends once along its row, from the left edge to itself, and once along
    its column, from the top edge to itself: two softmaxes, on the same q, k and v
    (after Ho et al. 2019).

    Parameters
    ----------
    q, k, v: finite queries, keys and values of each cell.

    Returns
    -------
    the sum of both outputs.
    """
    rows, cols = q.shape[-3:-1]
    along_row, _ = masked_attention(q, k, v, causal_mask(cols))
    q, k, v = (np.swapaxes(x, -3, -2) for x in (q, k, v))
    along_column, _ = masked_attention(q, k, v, causal_mask(rows))
    return along_row + np.swapaxes(along_column, -3, -2)


def ring_append(
    k_cache: Float[np.ndarray, "*batch heads capacity d_head"],
    v_cache: Float[np.ndarray, "*batch heads capacity d_head"],
    k_new: Float[np.ndarray, "*batch heads new d_head"],
    v_new: Float[np.ndarray, "*batch heads new d_head"],
    position: int,
) -> tuple[
    Float[np.ndarray, "*batch heads capacity d_head"],
    Float[np.ndarray, "*batch heads capacity d_head"],
]:
    """Write new keys and values into a ring buffer, over the oldest ones.

    The token at position p goes into slot p mod capacity; every other slot keeps
    what it holds (the rolling buffer of Jiang et al. 2023).

    Parameters
    ----------
    k_cache, v_cache: what the ring holds; they are not changed.
    k_new, v_new: keys and values of 1 to capacity new tokens, oldest first.
    position: position of the first new token, counted from 0 since the start of
        the sequence.

    Returns
    -------
    the keys and the values of the ring after writing, two arrays.
    """
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    slots = (position + np.arange(new)) % capacity
    k_cache, v_cache = k_cache.copy(), v_cache.copy()
    k_cache[..., slots, :] = k_new
    v_cache[..., slots, :] = v_new
    return k_cache, v_cache


def ring_positions(position: int, capacity: int) -> Int[np.ndarray, " capacity"]:
    """Which position does each slot of a ring buffer hold?

    Positions 0, 1, ..., `position` have been written, in this order, each into slot
    p mod capacity.

    Parameters
    ----------
    position: the newest position, at least 0.
    capacity: number of slots, at least 1.

    Returns
    -------
    int array: for each slot the position of the token it holds, -1 = still empty.
    """
    age = (position - np.arange(capacity)) % capacity  # steps since it was written
    return np.maximum(position - age, -1)
