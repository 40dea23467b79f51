"""Chapter 5: several heads, and attention from one sequence to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.reference.ch03_causal_mask import masked_attention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def split_heads(
    x: Float[np.ndarray, "*batch seq d_model"], n_heads: int
) -> Float[np.ndarray, "*batch heads seq d_head"]:
    """Cut every token's vector into n_heads slices, one for each head.

    Head h gets columns h * d_head to (h + 1) * d_head of every token, where
    d_head = d_model / n_heads. The tokens keep their order.

    Parameters
    ----------
    x: one vector of length d_model for each token; any number of batch axes.
    n_heads: number of heads; it divides d_model.

    Returns
    -------
    array (*batch, heads, seq, d_head); a view of x will do.
    """
    *batch, seq, d_model = x.shape
    slices = x.reshape(*batch, seq, n_heads, d_model // n_heads)
    return np.swapaxes(slices, -3, -2)


def merge_heads(
    x: Float[np.ndarray, "*batch heads seq d_head"],
) -> Float[np.ndarray, "*batch seq d_model"]:
    """Put the slices of all heads side by side again, token by token.

    The inverse of split_heads: row t of the result is row t of head 0, then row t
    of head 1, and so on (the "Concat" of Vaswani et al. 2017, section 3.2.2).

    Parameters
    ----------
    x: one vector of length d_head for each head and token; any number of batch
        axes.

    Returns
    -------
    array (*batch, seq, d_model), with d_model = heads * d_head; a view will do.
    """
    *batch, heads, seq, d_head = x.shape
    return np.swapaxes(x, -3, -2).reshape(*batch, seq, heads * d_head)


def multi_head_attention(
    x: Float[np.ndarray, "*batch seq d_model"],
    w_q: Float[np.ndarray, "d_model d_model"],
    w_k: Float[np.ndarray, "d_model d_model"],
    w_v: Float[np.ndarray, "d_model d_model"],
    w_o: Float[np.ndarray, "d_model d_model"],
    n_heads: int,
    allowed: Bool[np.ndarray, "*batch query key"],
) -> Float[np.ndarray, "*batch seq d_model"]:
    """Masked self-attention in n_heads heads, all under the same mask.

    Queries, keys and values are x @ w_q, x @ w_k and x @ w_v, split into heads.
    Each head attends on its own, with scores divided by sqrt(d_head). The merged
    outputs of the heads are multiplied by w_o (Vaswani et al. 2017, section 3.2.2).

    Parameters
    ----------
    x: one vector for each token; any number of batch axes. Finite.
    w_q, w_k, w_v, w_o: weights, used as x @ w; there are no biases.
    n_heads: number of heads; it divides d_model.
    allowed: bool array, True = may attend. Either (query, key), for the whole
        batch, or (*batch, query, key), one mask for each sequence; then its query
        axis may be 1 long, as in padding_mask. It has no axis for the heads.

    Returns
    -------
    array (*batch, seq, d_model). A query with no allowed key gets zeros.
    """
    q = split_heads(x @ w_q, n_heads)
    k = split_heads(x @ w_k, n_heads)
    v = split_heads(x @ w_v, n_heads)
    out, _ = masked_attention(q, k, v, allowed[..., None, :, :])
    return merge_heads(out) @ w_o


def cross_attention(
    x: Float[np.ndarray, "*batch query d_model"],
    memory: Float[np.ndarray, "*batch key d_model"],
    w_q: Float[np.ndarray, "d_model d_model"],
    w_k: Float[np.ndarray, "d_model d_model"],
    w_v: Float[np.ndarray, "d_model d_model"],
    w_o: Float[np.ndarray, "d_model d_model"],
    n_heads: int,
    memory_allowed: Bool[np.ndarray, "*batch query key"] | None = None,
) -> Float[np.ndarray, "*batch query d_model"]:
    """Attention from one sequence to another: x asks, memory answers.

    As multi_head_attention, but keys and values are made from memory, the encoder's
    output. Nothing is causal here: without memory_allowed every query sees all of
    memory.

    Parameters
    ----------
    x: one vector for each token that asks; any number of batch axes. Finite.
    memory: one vector for each token that can be seen; it may be longer or shorter
        than x. Finite.
    w_q, w_k, w_v, w_o: weights, used as x @ w; there are no biases.
    n_heads: number of heads; it divides d_model.
    memory_allowed: bool array, True = may attend: (query, key), or (batch, 1, key)
        as padding_mask makes it for the lengths of the memories. None: all allowed.

    Returns
    -------
    array (*batch, query, d_model). A query with no allowed key gets zeros.
    """
    if memory_allowed is None:
        memory_allowed = np.ones((1, memory.shape[-2]), dtype=bool)
    q = split_heads(x @ w_q, n_heads)
    k = split_heads(memory @ w_k, n_heads)
    v = split_heads(memory @ w_v, n_heads)
    out, _ = masked_attention(q, k, v, memory_allowed[..., None, :, :])
    return merge_heads(out) @ w_o


def attention_parameters(d_model: int, n_heads: int, bias: bool = False) -> int:
    """How many numbers does one multi-head attention learn?

    They are the entries of w_q, w_k, w_v and w_o, each (d_model, d_model); with
    bias, also a vector of length d_model that is added after each of the four
    products.

    Parameters
    ----------
    d_model: width of a token's vector.
    n_heads: number of heads; it divides d_model.
    bias: are there biases?

    Returns
    -------
    the number of parameters, an int.
    """
    per_product = d_model * d_model + (d_model if bias else 0)
    return 4 * per_product
