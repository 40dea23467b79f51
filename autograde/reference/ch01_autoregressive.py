"""Chapter 1: the autoregressive constraint, scores, and who may influence whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def sequence_log_prob(
    log_probs: Float[np.ndarray, "*batch seq vocab"],
    tokens: Int[np.ndarray, "*batch seq"],
) -> Float[np.ndarray, "*batch"]:
    """The log probability of whole sequences, by the chain rule.

    Parameters
    ----------
    log_probs: row t is log p(. | the tokens before t), the natural logarithm of the
        model's probabilities for token t. Its exponentials sum to 1; a probability
        of 0 is -inf.
    tokens: the ids of the tokens that did occur.

    Returns
    -------
    one log probability for each sequence: the sum over its tokens. A sequence with
    a token of probability 0 gets -inf.
    """
    ids = np.asarray(tokens)[..., None]
    of_tokens = np.take_along_axis(log_probs, ids, axis=-1)[..., 0]
    return of_tokens.sum(axis=-1, dtype=np.float64)


def perplexity(
    log_probs: Float[np.ndarray, "*batch seq vocab"],
    tokens: Int[np.ndarray, "*batch seq"],
) -> float:
    """How many equally likely tokens would puzzle as much as this text did?

    exp of minus the mean log probability per token, over all tokens of all
    sequences.

    Parameters
    ----------
    log_probs, tokens: as in sequence_log_prob.

    Returns
    -------
    one number, at least 1; inf if a token has probability 0.
    """
    total = sequence_log_prob(log_probs, tokens).sum()
    return float(np.exp(-total / np.size(tokens)))


def teacher_forcing(
    tokens: Int[np.ndarray, "*batch seq"], bos: int
) -> tuple[Int[np.ndarray, "*batch seq"], Int[np.ndarray, "*batch seq"]]:
    """What a model reads and what it must predict when it is taught with the truth.

    Position t reads the token before t and must predict token t. The first
    position reads the start token.

    Parameters
    ----------
    tokens: token ids; not modified.
    bos: id of the start token ("beginning of sequence"), which fits their dtype.

    Returns
    -------
    inputs, targets: integer arrays of the shape of `tokens`. inputs are bos, then
    the tokens without the last; targets are the tokens.
    """
    tokens = np.asarray(tokens)
    start = np.full_like(tokens[..., :1], bos)
    inputs = np.concatenate([start, tokens[..., :-1]], axis=-1)
    return inputs, tokens


def influence(
    f: Callable[[np.ndarray], np.ndarray], x: Float[np.ndarray, "seq d_in"]
) -> Bool[np.ndarray, "output input"]:
    """Which inputs can reach which outputs? Found by trying, without opening f.

    Change one row of x at a time and compare f's outputs exactly with what they
    were. One change is not enough: try large ones (up to 1e6) and small ones, of
    all features together and of single features, and flipped signs.

    Parameters
    ----------
    f: maps (seq, d_in) to (seq, d_out); gives the same output for the same input,
        leaves its argument alone and returns a fresh array.
    x: the inputs around which f is tried; not modified.

    Returns
    -------
    bool array (seq, seq): [i, j] is True when some change of row j of x changes row
    i of f(x).
    """
    before = f(x)
    d_in = x.shape[1]
    # all features together, then each by itself
    directions = np.concatenate([np.ones((1, d_in)), np.eye(d_in)])
    reached = np.zeros((len(x), len(x)), dtype=bool)
    for j, row in enumerate(x):
        steps = [size * which for size in (1e6, 1.0, 1e-3) for which in directions]
        ups, downs = [row + step for step in steps], [row - step for step in steps]
        for new in [-row, *ups, *downs]:
            changed = x.copy()
            changed[j] = new
            reached[:, j] |= (f(changed) != before).any(axis=-1)
    return reached
