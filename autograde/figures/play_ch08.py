"""Chapter 8 to play with: a cache that fills up, token by token."""

from __future__ import annotations

import numpy as np

from autograde.figures.play import Play, texts
from autograde.reference.ch03_causal_mask import causal_mask
from autograde.reference.ch05_multi_head import multi_head_attention
from autograde.reference.ch08_kv_cache import decode_step, prefill

PROMPT, TOKENS = 3, 6  # the loop of the chapter: a prompt of three, four tokens made


def play() -> Play:
    """Every step with and without a cache: rows and scores computed, and the newest output."""
    rng = np.random.default_rng(0)  # the page's layer
    weights = tuple(rng.normal(size=(4, 8, 8)) / np.sqrt(8))
    x = rng.normal(size=(TOKENS, 8))
    ways = {"without": without_cache(x, weights), "with": with_cache(x, weights)}
    for steps in ways.values():
        rows = pairs = 0
        for step in steps:
            rows, pairs = rows + step["rows"], pairs + step["pairs"]
            step |= {"rows so far": rows, "pairs so far": pairs}
    data = {"prompt": PROMPT, "tokens": TOKENS, "ways": ways}
    table = []
    for number, (old, new) in enumerate(zip(*ways.values(), strict=True), 1):
        table.append([f"{number}", *(str(way[key]) for way in (old, new) for key in COUNTS)])
    head = ["step", "without a cache: rows", "so far", "scores", "so far",
            "with: rows", "so far", "scores", "so far"]  # fmt: skip
    return Play("The cache fills up", data, head, table, (482, 770))


COUNTS = ("rows", "rows so far", "pairs", "pairs so far")


def without_cache(x, weights) -> list[dict]:
    """Each step passes all tokens so far through the layer."""
    steps = []
    for n in range(PROMPT, TOKENS + 1):
        out = multi_head_attention(x[:n], *weights, 2, causal_mask(n))
        steps.append(count(len(out), 0, causal_mask(n), out))
    return steps


def with_cache(x, weights) -> list[dict]:
    """The prompt is prefilled, then each step passes its newest token through the layer."""
    out, cache = prefill(x[:PROMPT], *weights, 2)
    steps = [count(len(out), 0, causal_mask(PROMPT), out)]
    for t in range(PROMPT, TOKENS):
        read = cache[0].shape[-2]
        out, cache = decode_step(x[t : t + 1], cache, *weights, 2)
        steps.append(count(len(out), read, causal_mask(1, cache[0].shape[-2]), out))
    return steps


def count(rows: int, read: int, allowed, out) -> dict:
    """rows: tokens passed through. read: keys and values taken from the cache."""
    return {
        "rows": rows, "read": read, "pairs": int(allowed.sum()), "out": texts(out[-1, :4]),
    }  # fmt: skip
