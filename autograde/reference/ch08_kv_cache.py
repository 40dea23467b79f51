"""Chapter 8: choosing the next token, and keeping the keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.reference.ch03_causal_mask import causal_mask, masked_attention
from autograde.reference.ch05_multi_head import merge_heads, split_heads

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int

    # keys and values of every token so far
    Cache = tuple[
        Float[np.ndarray, "*batch heads seq d_head"],
        Float[np.ndarray, "*batch heads seq d_head"],
    ]


def next_token_distribution(
    logits: Float[np.ndarray, " vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[np.ndarray, " vocab"]:
    """With which probability does each token come next?

    In this order: the logits are divided by the temperature; all but the top_k most
    likely tokens are dropped; of these, renormalised, only the smallest set is kept
    whose mass reaches top_p (Holtzman et al. 2020), renormalised again.

    Parameters
    ----------
    logits: a score for each token of the vocabulary; -inf (never this token) is
        allowed, and at least one is finite.
    temperature: at least 0. Below 1 the distribution is sharper, above 1 flatter.
        0 is greedy: probability 1 for the first of the largest logits.
    top_k: at least 1; more than the vocabulary keeps all. None: no limit.
    top_p: greater than 0, at most 1. The token with which the mass reaches top_p is
        kept. None: no limit.

    Returns
    -------
    probabilities (vocab,), with the sum 1. Of equally likely tokens, those with the
    lower index are kept first.
    """
    if temperature == 0:
        temperature, top_k = 1.0, 1
    order = np.argsort(-logits, kind="stable")  # most likely first
    scaled = logits[order] / temperature
    p = np.exp(scaled - scaled[0])
    if top_k is not None:
        p[top_k:] = 0
    p /= p.sum()
    if top_p is not None:
        before = np.cumsum(p) - p  # the mass of all that are more likely
        p[before >= top_p] = 0
        p /= p.sum()
    probabilities = np.zeros_like(p)
    probabilities[order] = p
    return probabilities


def prefill(
    x: Float[np.ndarray, "*batch seq d_model"],
    w_q: Float[np.ndarray, "d_model d_model"],
    w_k: Float[np.ndarray, "d_model d_model"],
    w_v: Float[np.ndarray, "d_model d_model"],
    w_o: Float[np.ndarray, "d_model d_model"],
    n_heads: int,
) -> tuple[Float[np.ndarray, "*batch seq d_model"], Cache]:
    """Causal multi-head attention over a prompt, which also hands out its cache.

    The output is that of multi_head_attention with a causal mask. The cache holds
    the keys and values of all heads, to be used when the sequence goes on.

    Parameters
    ----------
    x: one vector for each token of the prompt; any number of batch axes. Finite.
        Nothing is added for the positions.
    w_q, w_k, w_v, w_o: weights, used as x @ w; there are no biases.
    n_heads: number of heads; it divides d_model.

    Returns
    -------
    out, (k, v): the output (*batch, seq, d_model), and the keys and values of each
    head, (*batch, heads, seq, d_head).
    """
    q, k, v = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    out, _ = masked_attention(q, k, v, causal_mask(x.shape[-2]))
    return merge_heads(out) @ w_o, (k, v)


def decode_step(
    x_new: Float[np.ndarray, "*batch new d_model"],
    cache: Cache,
    w_q: Float[np.ndarray, "d_model d_model"],
    w_k: Float[np.ndarray, "d_model d_model"],
    w_v: Float[np.ndarray, "d_model d_model"],
    w_o: Float[np.ndarray, "d_model d_model"],
    n_heads: int,
) -> tuple[Float[np.ndarray, "*batch new d_model"], Cache]:
    """Causal multi-head attention for new tokens; the cache has the earlier ones.

    The output has the rows that a prefill of the whole sequence has for these
    tokens. Each sees all tokens in the cache, itself, and the new ones before it.

    Parameters
    ----------
    x_new: one vector for each new token, at least one; any number of batch axes.
        Finite.
    cache: the keys and values of all earlier tokens, (*batch, heads, seq, d_head)
        each; seq may be 0. The caller keeps its arrays: they are not changed.
    w_q, w_k, w_v, w_o: weights, used as x @ w; there are no biases.
    n_heads: number of heads; it divides d_model.

    Returns
    -------
    out, (k, v): the output of the new tokens, (*batch, new, d_model), and the cache
    of all tokens, (*batch, heads, seq + new, d_head) each, the new ones last.
    """
    q, k_new, v_new = (split_heads(x_new @ w, n_heads) for w in (w_q, w_k, w_v))
    k = np.concatenate([cache[0], k_new], axis=-2)
    v = np.concatenate([cache[1], v_new], axis=-2)
    out, _ = masked_attention(q, k, v, causal_mask(q.shape[-2], k.shape[-2]))
    return merge_heads(out) @ w_o, (k, v)


def cache_bytes(
    n_layers: int,
    n_kv_heads: int,
    d_head: int,
    seq: int,
    batch: int,
    bytes_per_value: int,
) -> int:
    """How much memory do the keys and values of a whole decoder take?

    Parameters
    ----------
    n_layers: number of layers; each has a cache of its own.
    n_kv_heads: number of heads that have keys and values.
    d_head: width of a key, and of a value.
    seq: number of tokens in each sequence.
    batch: number of sequences.
    bytes_per_value: of one number: 4 in float32, 2 in float16.

    Returns
    -------
    the number of bytes, an int.
    """
    per_token = 2 * n_layers * n_kv_heads * d_head  # a key and a value
    return per_token * seq * batch * bytes_per_value


def left_padding_mask(
    lengths: Int[np.ndarray, " batch"], n: int
) -> Bool[np.ndarray, "batch query key"]:
    """The causal mask of a batch of sequences that are padded on the left.

    All sequences end together, so that all go on in the same column. A sequence of
    length m has its tokens in the last m of the n columns.

    Parameters
    ----------
    lengths: number of real tokens of each sequence, 0 to n.
    n: the padded length, of queries and keys alike.

    Returns
    -------
    bool array (batch, query, key), True = may attend: a real query sees the real
    keys up to itself. Rows and columns of pads are all False.
    """
    real = np.arange(n) >= n - np.asarray(lengths)[:, None]  # (batch, key)
    return causal_mask(n) & real[:, None, :]


def generate(
    next_logits: Callable[[Int[np.ndarray, " seq"]], Float[np.ndarray, " vocab"]],
    prompt: Int[np.ndarray, " seq"],
    n_new: int,
) -> Int[np.ndarray, " total"]:
    """Continue a prompt greedily: always with the most likely token.

    Parameters
    ----------
    next_logits: gives the logits of the next token for all the tokens so far, an
        int array (seq,).
    prompt: token ids, at least one.
    n_new: how many tokens to add, at least 0. No token ends the text early.

    Returns
    -------
    int array: the prompt, then the n_new tokens. Of equally likely tokens the one
    with the lowest id is taken.
    """
    tokens = np.array(prompt)
    for _ in range(n_new):
        best = np.argmax(next_logits(tokens))  # of several the first
        tokens = np.append(tokens, best)
    return tokens
