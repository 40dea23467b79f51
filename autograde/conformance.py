"""A conformance kit for KV caches: however a sequence is fed to a cache, the outputs must be
those of one full pass over it.

    schedule = random_schedule(rng)
    x = rng.normal(size=(*schedule.shape, d_model))
    assert disagreement(schedule, feed, full, x) < 1e-10

A cache under test is a function `feed(x_new, cache) -> (out, cache)` that takes the next columns
of a batch, (batch, new, ...). The first call gets the cache None, or what else it begins with.
`full(x)` is the pass without a cache, over one sequence, (seq, ...) -> (seq, ...).

The tests run it, chapter 8 shows it, and the exercises of that chapter are graded with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograde.reference.ch03_causal_mask import masked_attention
from autograde.reference.ch05_multi_head import merge_heads, split_heads

Feed = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Schedule:
    """In which pieces a batch of sequences is fed to a cache.

    pads: how many columns of padding stand on the left of each sequence.
    pieces: how many columns each call gets; the first ones are the prompts', padded.
    """

    pads: tuple[int, ...]
    pieces: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(batch, columns)"""
        return len(self.pads), sum(self.pieces)

    @property
    def lengths(self) -> np.ndarray:
        """(batch,): the real columns of each sequence, all that come included."""
        return sum(self.pieces) - np.array(self.pads)


def random_schedule(rng: np.random.Generator, padded: bool = True, longest: int = 8) -> Schedule:
    """One to three prompts of up to `longest` tokens, whole or in chunks, and then some single
    tokens and small chunks. Without `padded` the prompts have one length."""
    batch, prompt = int(rng.integers(1, 4)), int(rng.integers(1, longest + 1))
    lengths = rng.integers(1, prompt + 1, size=batch)
    lengths[rng.integers(batch)] = prompt  # the longest one has no pads
    pads = tuple(int(prompt - length) for length in lengths) if padded else (0,) * batch
    pieces = [prompt]
    if prompt > 1 and rng.random() < 0.5:
        cuts = np.flatnonzero(rng.random(prompt - 1) < 0.4) + 1
        pieces = np.diff([0, *cuts, prompt]).tolist()
    for _ in range(rng.integers(0, 6)):
        pieces.append(1 if rng.random() < 0.7 else int(rng.integers(2, 4)))
    return Schedule(pads, tuple(pieces))


def calls(schedule: Schedule, feed: Feed, x: Any, cache: Any = None) -> Iterator[tuple]:
    """Feed x, (batch, columns, ...), piece by piece.

    Yields the columns of each call as a slice, the cache that it got, and its output.
    """
    end = 0
    for size in schedule.pieces:
        columns, before = slice(end, end + size), cache
        out, cache = feed(x[:, columns], cache)
        end += size
        yield columns, before, out


def wanted(schedule: Schedule, full: Callable, x: Any) -> list[np.ndarray]:
    """The outputs of the full pass, of each sequence alone and without its pads."""
    return [np.asarray(full(row[n:])) for row, n in zip(x, schedule.pads, strict=True)]


def disagreement(
    schedule: Schedule, feed: Feed, full: Callable, x: Any, cache: Any = None
) -> float:
    """The largest difference between a cache's outputs and those of the full pass.

    NaN if there is one anywhere. What comes out at a pad does not count.
    """
    outs = [np.asarray(out) for _, _, out in calls(schedule, feed, x, cache)]
    got = np.concatenate(outs, axis=1)
    pairs = zip(got, schedule.pads, wanted(schedule, full, x), strict=True)
    return float(np.max([np.abs(row[n:] - want).max() for row, n, want in pairs]))


def under_mask(allowed: np.ndarray, weights: tuple, n_heads: int) -> Feed:
    """`decode_step` under a mask (batch, columns, columns), of which each call gets its rows."""

    def feed(x_new, cache):
        q, k, v = (split_heads(x_new @ w, n_heads) for w in weights[:3])
        if cache is not None:
            k, v = (np.concatenate(pair, axis=-2) for pair in zip(cache, (k, v), strict=True))
        new, end = q.shape[-2], k.shape[-2]
        rows = allowed[:, None, end - new : end, :end]
        out, _ = masked_attention(q, k, v, rows)
        return merge_heads(out) @ weights[3], (k, v)

    return feed
