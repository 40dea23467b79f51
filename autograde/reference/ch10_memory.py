"""Chapter 10: attention that never holds the whole matrix of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    # m, l, o: running maximum, sum, unnormalised output
    State = tuple[
        Float[np.ndarray, "*batch query"],
        Float[np.ndarray, "*batch query"],
        Float[np.ndarray, "*batch query d_value"],
    ]


def merge_softmax(a: State, b: State) -> State:
    """Put together what two groups of keys contribute to the same queries.

    A state (m, l, o) is all that must be kept of a group of keys. For a query with
    the scores s_j and the values v_j in that group,

        m = max s_j    l = sum of exp(s_j - m)    o = sum of exp(s_j - m) v_j

    (Milakov and Gimelshein 2018; Dao et al. 2022, section 3.1). A group without
    keys has the empty state (-inf, 0, 0).

    Parameters
    ----------
    a, b: states of two groups that share no key: m and l of one shape, o with one
        more axis at the end.

    Returns
    -------
    (m, l, o) of both groups taken together. Two empty states give an empty state.
    """
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = np.maximum(m_a, m_b)
    base = np.where(np.isneginf(m), 0, m)  # -inf - -inf is nan
    scale_a, scale_b = np.exp(m_a - base), np.exp(m_b - base)
    o = scale_a[..., None] * o_a + scale_b[..., None] * o_b
    return m, scale_a * l_a + scale_b * l_b, o


def flash_attention(
    q: Float[np.ndarray, "*batch query d_head"],
    k: Float[np.ndarray, "*batch key d_head"],
    v: Float[np.ndarray, "*batch key d_value"],
    block_query: int,
    block_key: int,
    causal: bool = True,
) -> Float[np.ndarray, "*batch query d_value"]:
    """Scaled dot-product attention, one block of scores at a time.

    The same output as masked_attention, to rounding (Dao et al. 2022). It never
    holds the scores of more than one block (*batch, block_query, block_key), nor
    an array (query, key) of any kind.

    Parameters
    ----------
    q, k, v: finite queries, keys and values; the number of keys may differ from the
        number of queries, and d_value from d_head.
    block_query, block_key: size of a block, at least 1; the last block of a row or
        column may be smaller, for they need not divide the numbers of queries and
        keys, and may be larger than these.
    causal: True: the mask is causal_mask(n_query, n_key), aligned at the bottom
        right. False: every query sees every key.

    Returns
    -------
    out. A query that sees no key gets zeros.
    """
    n_query, n_key = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for start in range(0, n_query, block_query):
        rows = slice(start, start + block_query)
        queries = np.arange(n_query)[rows] + n_key - n_query  # position among keys
        q_block = q[..., rows, :] / q.shape[-1] ** 0.5
        nothing = np.zeros(q_block.shape[:-1])
        state = nothing - np.inf, nothing, np.zeros_like(out[..., rows, :])
        for first in range(0, n_key, block_key):
            if causal and first > queries[-1]:
                break  # this block and all that follow lie in the future
            keys = slice(first, first + block_key)
            scores = q_block @ np.swapaxes(k[..., keys, :], -2, -1)
            if causal:
                future = np.arange(n_key)[keys] > queries[:, None]
                scores[..., future] = -np.inf
            m = scores.max(axis=-1)
            base = np.where(np.isneginf(m), 0, m)
            scores = np.exp(scores - base[..., None])
            here = m, scores.sum(axis=-1), scores @ v[..., keys, :]
            state = merge_softmax(state, here)
        _, total, o = state
        out[..., rows, :] = o / np.where(total == 0, 1, total)[..., None]
    return out


def visible_blocks(n: int, block_query: int, block_key: int) -> int:
    """How many blocks of the causal n x n mask must be computed at all?

    The mask is cut into blocks of block_query rows and block_key columns, from the
    top left; the last ones may be smaller. A block counts when at least one of its
    entries is allowed. The others are skipped.

    Parameters
    ----------
    n: number of queries, and of keys, at least 1.
    block_query, block_key: size of a block, at least 1; they need not divide n.

    Returns
    -------
    int, the number of blocks that are not fully masked.
    """
    count = 0
    for start in range(0, n, block_query):
        last = min(start + block_query, n) - 1  # the last query sees most
        count += last // block_key + 1
    return count
