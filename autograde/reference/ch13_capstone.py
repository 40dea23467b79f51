"""Chapter 13: a decoder with a cache, its training, and its share of the work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from autograde.reference.ch06_decoder import decoder_logits, layer_norm
from autograde.reference.ch11_training import (
    cross_entropy,
    get_batch,
    learning_rate,
    split_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int
    from torch import Tensor

    Pair = tuple[
        Float[Tensor, "*batch heads seq d_head"],
        Float[Tensor, "*batch heads seq d_head"],
    ]


def decoder_step(
    tokens: Int[Tensor, "*batch new"],
    params: dict[str, Any],
    n_heads: int,
    cache: list[Pair] | None = None,
) -> tuple[Float[Tensor, "*batch new vocab"], list[Pair]]:
    """The decoder of chapter 6 for the next tokens of a text; a cache has the rest.

    The logits are the rows that `decoder_logits` has for these tokens in the whole
    text, the exact (erf) GELU included. Each token sees all those in the cache,
    itself, and the new ones before it.

    Parameters
    ----------
    tokens: token ids, at least one: the beginning of a text, a piece of it, or one
        token. Their positions go on where the cache ends; in all there are at most
        max_seq of them.
    params, n_heads: as `decoder_logits` takes them.
    cache: what the call before returned; None at the beginning of a text. The
        caller keeps it: neither the list nor a tensor in it is changed.

    Returns
    -------
    logits, cache: the logits of the new tokens, and for each block the pair (k, v)
    of all tokens so far, (*batch, heads, seq + new, d_head) each, new ones last.
    """
    past = 0 if cache is None else cache[0][0].shape[-2]
    position = torch.arange(past + tokens.shape[-1], device=tokens.device)
    sees = position <= position[past:, None]  # (new, all of them)

    def heads(y, w):  # (*batch, heads, new, d_head)
        return (y @ w).unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    # A slice of the table would end silently where the positions do; this raises.
    x = params["position_embedding"][position[past:]]
    x = x + params["token_embedding"][tokens]
    longer = []
    for i, block in enumerate(params["blocks"]):
        y = layer_norm(x, block["norm1_gain"], block["norm1_bias"])
        q, k, v = (heads(y, block[name]) for name in ("w_q", "w_k", "w_v"))
        if cache is not None:
            k = torch.cat([cache[i][0], k], dim=-2)
            v = torch.cat([cache[i][1], v], dim=-2)
        longer.append((k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        out = scores.masked_fill(~sees, -torch.inf).softmax(dim=-1) @ v
        x = x + out.transpose(-2, -3).flatten(-2) @ block["w_o"]
        y = layer_norm(x, block["norm2_gain"], block["norm2_bias"])
        hidden = torch.nn.functional.gelu(y @ block["w_up"] + block["b_up"])
        x = x + hidden @ block["w_down"] + block["b_down"]
    out = layer_norm(x, params["norm_gain"], params["norm_bias"])
    return out @ params["token_embedding"].T, longer


def train_decoder(
    tokens: Int[Tensor, " n"], config: dict[str, int], seed: int, seconds: float
) -> tuple[dict[str, Any], float]:
    """Train a decoder of any size, and say honestly how good it is.

    The weights are judged by their cross-entropy on text of the same source that
    was never shown, in windows of max_seq tokens, with `decoder_logits`.

    Parameters
    ----------
    tokens: the text, token ids, some ten thousand of them.
    config: vocab, d_model, n_layers, n_heads, d_ff, max_seq, as in chapter 6.
    seed: of all randomness in here.
    seconds: how long this may take. Shortly after that the call has returned.

    Returns
    -------
    params, val_loss: the weights, as `decoder_logits` takes them; and their loss in
    nats per token on the last tenth of `tokens`, which is kept for that, in windows
    of max_seq tokens.
    """
    end, steps, block = time.monotonic() + 0.7 * seconds, 150, config["max_seq"]
    d_model, d_ff, n_heads = config["d_model"], config["d_ff"], config["n_heads"]
    generator = torch.Generator().manual_seed(seed)

    def matrix(*shape):
        return 0.1 * torch.randn(shape, generator=generator)

    def norm(name):
        zeros = torch.zeros(d_model)
        return {f"{name}_gain": torch.ones(d_model), f"{name}_bias": zeros}

    def layer():
        square = {n: matrix(d_model, d_model) for n in ("w_q", "w_k", "w_v", "w_o")}
        up = {"w_up": matrix(d_model, d_ff), "b_up": torch.zeros(d_ff)}
        down = {"w_down": matrix(d_ff, d_model), "b_down": torch.zeros(d_model)}
        return norm("norm1") | square | norm("norm2") | up | down

    around = {"token_embedding": matrix(config["vocab"], d_model)}
    around |= {"position_embedding": matrix(block, d_model)} | norm("norm")
    blocks = [layer() for _ in range(config["n_layers"])]
    params = {**around, "blocks": blocks}
    leaves = [p for part in (around, *blocks) for p in part.values()]
    leaves = [leaf.requires_grad_() for leaf in leaves]

    def loss_on(text, starts):
        inputs, targets = get_batch(text, starts, block)
        return cross_entropy(decoder_logits(inputs, params, n_heads), targets)

    train, val = split_tokens(tokens, 0.1)
    optimizer = torch.optim.AdamW(leaves, betas=(0.9, 0.95), weight_decay=0.01)
    for step in range(steps):
        if time.monotonic() > end:
            break
        starts = torch.randint(len(train) - block, (16,), generator=generator)
        optimizer.zero_grad()
        loss_on(train, starts).backward()
        torch.nn.utils.clip_grad_norm_(leaves, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, 1e-2, 1e-3, 15, steps)
        optimizer.step()
    with torch.no_grad():
        val_loss = loss_on(val, torch.arange(0, len(val) - block, block))
    return params, float(val_loss)


def generate_with_cache(
    step: Callable[[Tensor, Any], tuple[Tensor, Any]],
    prompt: Int[Tensor, " seq"],
    uniforms: Float[Tensor, " n_new"],
    temperature: float = 1.0,
) -> Int[Tensor, " total"]:
    """Continue a prompt with a decoder that has a cache.

    A uniform number u draws a token: the probabilities are added up in the order of
    the ids, and the first token with which the sum is greater than u is taken.

    Parameters
    ----------
    step: (tokens, cache) -> (logits, cache): reads the next tokens of the text, an
        int tensor (new,). Gives their logits, (new, vocab), in which -inf stands
        for "never", and what to pass to the next call. The first cache is None.
    prompt: token ids, at least one.
    uniforms: random numbers, 0 <= u < 1, one for each token to be added.
    temperature: at least 0; the logits are divided by it. 0 is greedy: the token
        with the largest logit, of several the one with the lowest id.

    Returns
    -------
    int tensor: the prompt, then a new token for each of `uniforms`. Each token has
    been read once, in order, the last one not at all: nobody asks what follows.
    """
    text, unread, cache = prompt, prompt, None
    for uniform in uniforms.tolist():
        logits, cache = step(unread, cache)
        last = logits[-1].double()  # in float32, many small sums add up to errors
        if temperature == 0:
            new = last.argmax()
        else:
            mass = (last / temperature).softmax(dim=-1).cumsum(dim=-1)
            new = (mass <= uniform * mass[-1]).sum()  # mass[-1] is about 1
        unread = new[None]
        text = torch.cat([text, unread])
    return text


def shard(
    batch: Int[Tensor, "n ..."], rank: int, world: int
) -> Int[Tensor, "rows ..."]:
    """Which rows of a batch are this process's share?

    All processes together have each row once. The first one has the first rows, the
    next one those that follow, and so on. When the rows do not come out even, each
    of the first n % world processes has one row more than the others.

    Parameters
    ----------
    batch: n rows.
    rank: the number of this process, 0 <= rank < world.
    world: how many processes there are, at least 1, and maybe more than rows.

    Returns
    -------
    the rows of process `rank`; none, (0, *rest), if there are not enough.
    """
    size, longer = divmod(len(batch), world)
    start = rank * size + min(rank, longer)
    return batch[start : start + size + (rank < longer)]


def average_gradients(
    grads: list[list[Float[Tensor, "*shape"]]], counts: list[int]
) -> list[Float[Tensor, "*shape"]]:
    """The gradients of the whole batch, from those of its parts.

    Each process has taken the mean loss over the tokens of its own part, and the
    gradients of that. This gives the gradients of the mean over all tokens.

    Parameters
    ----------
    grads: for each process the list of its gradients, one for each parameter.
    counts: how many tokens each process had, at least one of them above 0. Without
        tokens there is a mean over nothing, and gradients that may be NaN.

    Returns
    -------
    list of tensors, one for each parameter.
    """
    total = sum(counts)
    parts = [(g, n / total) for g, n in zip(grads, counts, strict=True) if n > 0]
    return [
        sum(share * grad[i] for grad, share in parts) for i in range(len(grads[0]))
    ]
