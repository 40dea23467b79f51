"""Judging trained weights: how well do they foresee a made-up language, and if badly, why?

The language has a known entropy, so that there is a best loss. What weights get under other
circumstances (with the future in view, say) tells how they were trained.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from autograde.decoder.corpus import Synthetic
from autograde.examination import CannotGoOn, Probe
from autograde.reference.ch06_decoder import decoder_block, layer_norm
from autograde.reference.ch11_training import cross_entropy, get_batch
from autograde.values import Mismatch, conform, describe

BLOCK = 16  # tokens of a window
CLEARLY = 0.015  # nats; how many heads judge them is all the same to some weights
SQUARE = ("w_q", "w_k", "w_v", "w_o")


class Language(Synthetic):
    """Eight symbols. What comes next follows from the last but one (in 60% of all cases),
    from the last one (25%), or from nothing (15%)."""

    def __init__(self, seed: int):
        rng, symbol = np.random.default_rng(seed), np.arange(8)
        self.vocab, self.order = 8, 2
        self.transitions = np.full((8, 8, 8), 0.15 / 8)  # [last but one, last, next]
        self.transitions[symbol, :, rng.permutation(8)] += 0.6
        self.transitions[:, symbol, rng.permutation(8)] += 0.25
        self.stationary = self._stationary()


def weights(value, like: dict, name: str = "params") -> dict:
    """A plain result as `decoder_logits` takes it. Raises Mismatch, with the place."""
    if not isinstance(value, dict) or not set(like) <= set(value):
        wanted = ", ".join(like)
        raise Mismatch(f"{name} is {describe(value)}; a dict of {wanted} was expected")
    found = {}
    for key, wanted in like.items():
        part, place = value[key], f'{name}["{key}"]'
        if key == "blocks":
            if not isinstance(part, tuple) or len(part) != len(wanted):
                dicts = "one dict" if len(wanted) == 1 else f"{len(wanted)} dicts"
                raise Mismatch(f"{place} is {describe(part)}; a list of {dicts} was expected")
            pairs = enumerate(zip(part, wanted, strict=True))
            found[key] = [weights(a, b, f"{place}[{i}]") for i, (a, b) in pairs]
            continue
        try:
            found[key] = torch.from_numpy(conform(part, wanted)).float()
        except Mismatch as mismatch:
            raise Mismatch(f"{place}: {mismatch}") from None
    return found


def nats(params: dict, tokens, ahead: int = 1, n_heads: int = 2, causal: bool = True) -> float:
    """Cross-entropy of the tokens `ahead` of those of every window of a text."""
    starts = torch.arange(1, len(tokens) - BLOCK - 2, BLOCK)
    inputs, _ = get_batch(tokens, starts, BLOCK)
    targets, _ = get_batch(tokens, starts + ahead, BLOCK)
    allowed = torch.ones(BLOCK, BLOCK, dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    x = params["token_embedding"][inputs] + params["position_embedding"]
    for block in params["blocks"]:
        x = decoder_block(x, block, n_heads, allowed)
    x = layer_norm(x, params["norm_gain"], params["norm_bias"])
    return float(cross_entropy(x @ params["token_embedding"].T, targets))


def foresees(
    probe: Probe, language: Language, params: dict, seed: int, level: int, slack: float,
    n_heads: int = 2,
) -> None:  # fmt: skip
    """On text that was not trained on, the loss is below a bar: that of guessing (level 0), of
    knowing the present token alone (1), or `slack` above what knowing everything gives (2).

    seed: of the new text.
    """
    floor, guessing, present = language.floor(BLOCK), language.entropy(0), language.entropy(1)
    bars = (guessing - 0.05, present - 0.05, floor + slack)
    held_out, args = language.sample(8_000, seed), probe.records[0].args
    loss = nats(params, held_out, n_heads=n_heads)
    if loss < bars[level]:
        return
    detail = f"on new text they get {loss:.2f} nats per token; below {bars[level]:.2f} is wanted"
    if level == 0 or loss < bars[level - 1]:  # the first claim that fails explains it
        detail += (
            f". Guessing gets {guessing:.2f}, knowing the present token alone "
            f"{present:.2f}, knowing everything {floor:.2f}. "
        )
        detail += symptom(params, held_out, args[0], n_heads)
    probe.fail(detail.strip(), *args)


def with_as_many_heads(
    probe: Probe, language: Language, params: dict, seed: int, n_heads: int, others: tuple[int, ...]
) -> None:
    """On new text, the weights are not clearly better with another number of heads.

    Of weights that foresee next to nothing this tells nothing.
    """
    held_out, args = language.sample(8_000, seed), probe.records[0].args
    usual = nats(params, held_out, n_heads=n_heads)
    if not usual < language.entropy(1):
        return
    losses = {other: nats(params, held_out, n_heads=other) for other in others}
    best = min(losses, key=losses.get)
    if losses[best] < usual - CLEARLY:
        heads = "one head" if best == 1 else f"{best} heads"
        detail = f"with {heads} they get {losses[best]:.2f} nats per token on new text, with "
        detail += f"{n_heads} heads {usual:.2f}: how many had attention when they were trained?"
        probe.fail(detail, *args)


def returns_within(probe: Probe, limit: float, *args) -> None:
    """Call the function, and cut it off after that many seconds. The call alone is timed: by a
    clock around it the reference would count, too, and when grading the calls sent with it."""
    whole = probe.exercise
    probe.exercise = replace(whole, seconds=limit)
    try:
        probe.attempt(*args)
    except CannotGoOn:
        if probe.records[-1].outcome.how == "timeout":
            probe.findings.clear()
            probe.fail(
                f"with seconds={args[-1]:g} nothing had come back after {limit:g} seconds", *args
            )
        raise
    finally:
        probe.exercise = whole


def transposed(params: dict) -> dict:
    turned = [{**block, **{n: block[n].T for n in SQUARE}} for block in params["blocks"]]
    return {**params, "blocks": turned}


def symptom(params: dict, held_out, trained_on, n_heads: int = 2) -> str:
    """Under which other circumstances are the weights much better? One sentence, or ""."""

    def loss(params=params, text=held_out, ahead=1, n_heads=n_heads, causal=True):
        return nats(params, text, ahead, n_heads, causal)

    usual = loss()
    if not np.isfinite(usual):
        return "Some weights are not finite, or so large that the loss is not."
    copies = "the right answer is the very token that stands there"
    ways = {
        "every position sees its whole window, the future too": loss(causal=False),
        copies: loss(ahead=0),
        "the right answer is the token before": loss(ahead=-1),
        "the right answer is the token after the next one": loss(ahead=2),
        "w_q, w_k, w_v and w_o are transposed": loss(transposed(params)),
        "attention has one head": loss(n_heads=1),
        "the text is the one that was given": loss(text=trained_on),
    }
    if ways[copies] > 0.5:  # tied embeddings lean that way untrained; trained so they get 0
        del ways[copies]
    best = min(ways, key=ways.get)
    if ways[best] > min(usual - 0.3, 1.5):
        return ""
    return f"When {best}, the same weights get {ways[best]:.2f}: is that how they were trained?"
