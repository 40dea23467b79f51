"""Chapter 7: tools that find bugs, and ten functions that once had one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int, Shaped


def leaks(f: Callable, x: Float[np.ndarray, "seq d_in"]) -> list[tuple[int, int]]:
    """Which later inputs reach which earlier outputs?

    Input j leaks into output i, j > i, when some finite change of row j of x, of
    any size up to 1e15, changes row i of f(x) at all, in the last bit or to NaN.

    Parameters
    ----------
    f: maps (seq, d_in) to (seq, d_out); the same input gives the same output, in a
        fresh array.
    x: the input to start from, in float32 or float64; f(x) is finite.

    Returns
    -------
    list of the pairs (i, j), in any order; empty when nothing leaks.
    """
    rng, found = np.random.default_rng(0), []
    before = f(x.copy())
    for j in range(1, len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for size in 10.0 ** np.arange(-3, 16, 3):
            for direction in rng.uniform(-1, 1, size=(4, x.shape[1])):
                for sign in (1, -1):
                    changed = x.copy()
                    changed[j] += sign * size * direction / np.abs(direction).max()
                    moved |= (f(changed) != before).any(axis=-1)  # exactly
        found += [(i, j) for i in range(j) if moved[i]]
    return found


def numerical_gradient(
    f: Callable, x: Float[np.ndarray, "*shape"], eps: float = 1e-5
) -> Float[np.ndarray, "*shape"]:
    """The gradient of f at x by central differences, to check a formula with.

    Entry k is (f(x + eps) - f(x - eps)) / (2 eps), where eps is added to, and
    subtracted from, entry k alone.

    Parameters
    ----------
    f: maps an array of the shape of x to a number, and takes float64.
    x: where to take the gradient.
    eps: the step.

    Returns
    -------
    gradient of the shape of x, computed in float64, whatever the dtype of x.
    """
    x = np.asarray(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += eps
        down[k] -= eps
        gradient[k] = (f(up) - f(down)) / (2 * eps)
    return gradient


def first_bad(named_arrays: dict[str, Shaped[np.ndarray, "*shape"]]) -> str | None:
    """Which array is the first to hold a NaN or an infinity?

    Parameters
    ----------
    named_arrays: name -> array, in the order in which they were computed. Arrays of
        any shape and of any float, integer or bool dtype; empty ones are fine.

    Returns
    -------
    the name of the first array with a NaN, inf or -inf; None when all are finite.
    """
    for name, array in named_arrays.items():
        if not np.isfinite(array).all():
            return name
    return None


# The bug museum, mended. The code with the bugs is in autograde/broken/. ----------


def repair_scale(
    q: Float[np.ndarray, "*batch query d_head"],
    k: Float[np.ndarray, "*batch key d_head"],
    allowed: Bool[np.ndarray, "*batch query key"],
) -> Float[np.ndarray, "*batch query key"]:
    """Attention weights: the masked softmax of q k^T / sqrt(d_head).

    Parameters
    ----------
    q, k: queries and keys; the axes before the last two are batches and heads.
    allowed: bool array that broadcasts to (*batch, query, key), True = may attend.

    Returns
    -------
    weights. A query with no allowed key gets zeros.
    """
    scale = q.shape[-1] ** -0.5
    scores = (q @ np.swapaxes(k, -2, -1)) * scale
    return masked_softmax(scores, allowed)


def repair_window(
    q: Float[np.ndarray, "*batch seq d_head"],
    k: Float[np.ndarray, "*batch seq d_head"],
    v: Float[np.ndarray, "*batch seq d_value"],
    window: int,
) -> Float[np.ndarray, "*batch seq d_value"]:
    """Causal attention that sees `window` keys: its own and those just before it.

    Parameters
    ----------
    q, k, v: queries, keys and values of the same positions.
    window: number of keys that a query sees, itself included, at least 1. The first
        queries have fewer. A window longer than the sequence closes nothing.

    Returns
    -------
    out.
    """
    n = q.shape[-2]
    past = np.tril(np.ones((n, n), dtype=bool))
    recent = np.triu(np.ones((n, n), dtype=bool), 1 - window)
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    return masked_softmax(scores, past & recent) @ v


def repair_softmax(
    scores: Float[np.ndarray, "*batch query key"],
    allowed: Bool[np.ndarray, "*batch query key"],
) -> tuple[
    Float[np.ndarray, "*batch query key"], Float[np.ndarray, "*batch query"]
]:
    """Softmax over the allowed keys for scores of any size, and the log of the sum.

    Parameters
    ----------
    scores: finite scores.
    allowed: bool array that broadcasts to the shape of `scores`, True = may attend.

    Returns
    -------
    weights, log_sum. Each query's weights sum to 1, and closed keys have weight 0.
    log_sum is the logarithm of the sum of e^score over the allowed keys. A query
    with no allowed key gets zeros, and -inf.
    """
    scores = np.where(allowed, scores, -np.inf)
    largest = np.max(scores, axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)  # a query without keys
    exponentials = np.exp(scores - largest)
    total = exponentials.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf
        log_sum = largest + np.log(total)
    return exponentials / np.where(total == 0, 1, total), log_sum[..., 0]


def repair_unused_slots(
    q: Float[np.ndarray, "*batch 1 d_head"],
    k_buffer: Float[np.ndarray, "*batch capacity d_head"],
    v_buffer: Float[np.ndarray, "*batch capacity d_value"],
    length: int,
) -> Float[np.ndarray, "*batch 1 d_value"]:
    """Attention of the newest token to a buffer that is filled up to `length`.

    Parameters
    ----------
    q: the query of the newest token; its own key and value are in the buffer.
    k_buffer, v_buffer: `capacity` slots. The first `length` hold the keys and
        values of all tokens so far. Whatever stands in the others (zeros, old
        numbers, inf, NaN) has no effect on the result.
    length: number of filled slots, 1 to capacity.

    Returns
    -------
    out, as if the buffer ended after the filled slots.
    """
    k, v = k_buffer[..., :length, :], v_buffer[..., :length, :]
    scores = q @ np.swapaxes(k, -2, -1) * q.shape[-1] ** -0.5
    weights = masked_softmax(scores, np.ones(length, dtype=bool))
    return weights @ v


def repair_norm(
    x: Float[np.ndarray, "*batch seq d_model"],
    gain: Float[np.ndarray, " d_model"],
    bias: Float[np.ndarray, " d_model"],
    eps: float = 1e-5,
) -> Float[np.ndarray, "*batch seq d_model"]:
    """Layer norm for a decoder: each position is normalised by itself.

    Parameters
    ----------
    x: the positions' vectors.
    gain, bias: what the normalised features are multiplied by, and what is added.
    eps: added to the variance (the mean squared distance from the mean), under the
        square root.

    Returns
    -------
    gain * (x - mean) / sqrt(variance + eps) + bias.
    """
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + bias


def repair_merge(
    x: Float[np.ndarray, "*batch seq d_model"],
    w_q: Float[np.ndarray, "d_model d_model"],
    w_k: Float[np.ndarray, "d_model d_model"],
    w_v: Float[np.ndarray, "d_model d_model"],
    w_o: Float[np.ndarray, "d_model d_model"],
    n_heads: int,
) -> Float[np.ndarray, "*batch seq d_model"]:
    """Causal self-attention with several heads.

    Head h has the features h * d_head to (h + 1) * d_head - 1 of q, k and v. The
    outputs of the heads stand side by side in that order, then comes w_o.

    Parameters
    ----------
    x: one vector for each position.
    w_q, w_k, w_v, w_o: used as x @ w.
    n_heads: divides d_model.

    Returns
    -------
    out.
    """

    def split(y):
        return np.swapaxes(y.reshape(*y.shape[:-1], n_heads, -1), -3, -2)

    q, k, v = split(x @ w_q), split(x @ w_k), split(x @ w_v)
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    heads = masked_softmax(scores, causal_mask(x.shape[-2])) @ v
    merged = np.swapaxes(heads, -3, -2).reshape(x.shape)
    return merged @ w_o


def repair_head_masks(
    scores: Float[np.ndarray, "batch_times_heads query key"],
    allowed: Bool[np.ndarray, "batch query key"],
    n_heads: int,
) -> Float[np.ndarray, "batch_times_heads query key"]:
    """Attention weights of several heads; batch and heads share the first axis.

    Parameters
    ----------
    scores: the scores of all heads of sample 0, then those of sample 1, and so on:
        head h of sample b stands at index b * n_heads + h.
    allowed: one mask for each sample, for all of its heads; True = may attend. It
        is (batch, query, key) or (batch, 1, key).
    n_heads: number of heads.

    Returns
    -------
    weights, in the order of `scores`. A query with no allowed key gets zeros.
    """
    return masked_softmax(scores, np.repeat(allowed, n_heads, axis=0))


def repair_return_weights(
    q: Float[np.ndarray, "*batch seq d_head"],
    k: Float[np.ndarray, "*batch seq d_head"],
    v: Float[np.ndarray, "*batch seq d_value"],
    return_weights: bool = False,
) -> Float[np.ndarray, "*batch seq d_value"] | tuple:
    """Causal attention, with the weights for those who want to look at them.

    Parameters
    ----------
    q, k, v: queries, keys and values of the same positions.
    return_weights: whether the weights are wanted, too.

    Returns
    -------
    out; or, if the weights are wanted, (out, weights), weights (*batch, seq, seq).
    """
    n, scale = q.shape[-2], q.shape[-1] ** -0.5
    if not return_weights:  # the fast path: never holds all the scores at once
        rows = []
        for t in range(n):
            scores = (
                q[..., [t], :] @ np.swapaxes(k[..., : t + 1, :], -2, -1) * scale
            )
            weights = masked_softmax(scores, np.ones(t + 1, dtype=bool))
            rows.append(weights @ v[..., : t + 1, :])
        return np.concatenate(rows, axis=-2)
    scores = q @ np.swapaxes(k, -2, -1) * scale
    weights = masked_softmax(scores, causal_mask(n))
    return weights @ v, weights


def repair_prefill(
    q: Float[np.ndarray, "*batch new d_head"],
    k: Float[np.ndarray, "*batch new d_head"],
    v: Float[np.ndarray, "*batch new d_value"],
    cache: tuple | None = None,
) -> tuple:
    """Causal attention of new tokens, with the keys and values of earlier ones.

    Parameters
    ----------
    q, k, v: queries, keys and values of the new tokens, one or more.
    cache: (keys, values) of all earlier tokens, (*batch, past, d_head) and
        (*batch, past, d_value). Before the first token it is None, or past is 0.

    Returns
    -------
    out, (keys, values). Each new token sees all earlier tokens, itself, and the new
    ones before it. The keys and values returned are those of all tokens.
    """
    if cache is not None:
        k = np.concatenate([cache[0], k], axis=-2)
        v = np.concatenate([cache[1], v], axis=-2)
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    allowed = causal_mask(q.shape[-2], k.shape[-2])
    return masked_softmax(scores, allowed) @ v, (k, v)


def repair_loss(
    logits: Float[np.ndarray, "*batch seq vocab"],
    tokens: Int[np.ndarray, "*batch seq"],
) -> float:
    """How badly does a language model predict the next token?

    Parameters
    ----------
    logits: row t of a sequence scores the token at position t + 1 of that sequence.
    tokens: the sequences, at least 2 tokens long.

    Returns
    -------
    minus the log probability (natural logarithm) of the next token, averaged over
    all sequences and all positions that have a next token.
    """

    def cross_entropy(logits, targets):
        largest = logits.max(axis=-1, keepdims=True)
        log_total = largest + np.log(
            np.exp(logits - largest).sum(-1, keepdims=True)
        )
        losses = np.take_along_axis(log_total - logits, targets[..., None], axis=-1)
        return float(losses.mean())

    return cross_entropy(logits[..., :-1, :], tokens[..., 1:])
