"""Inputs and properties that the claims of several chapters need."""

from __future__ import annotations

import numpy as np

from autograde.values import differing


def some_mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """A random mask, no triangle, in which every query has a key."""
    allowed = rng.random(shape) < 0.6
    allowed[..., 0] |= ~allowed.any(axis=-1)
    return allowed


def qkv(rng, batch, n_query, n_key, d_head, d_value, dtype=np.float64):
    """Random queries, keys and values of those sizes."""
    shapes = ((n_query, d_head), (n_key, d_head), (n_key, d_value))
    return tuple(rng.normal(size=(*batch, *shape)).astype(dtype) for shape in shapes)


def nothing_leaks(probe, *args: np.ndarray) -> None:
    """The weights, the last of what is returned, are exactly 0 where the mask, the last
    argument, is closed."""
    result = probe(*args)
    weights = result[-1] if isinstance(result, tuple) else result
    closed = ~np.broadcast_to(args[-1], weights.shape) & (weights != 0)
    if closed.any():
        weight = weights[closed][0]
        detail = f"the weight at {_first(closed)} is {weight:.3g}, and that key is closed"
        probe.fail(detail, *args)


def blind_queries_get_zeros(probe, *args: np.ndarray) -> None:
    """Queries to which the mask, the last argument, leaves no key get zeros in all that is
    returned, and the other queries get what they get without them."""
    allowed = args[-1]
    blind = ~allowed.any(axis=-1)
    with_blind = probe(*args)
    without = probe(*args[:-1], allowed | blind[..., None])
    if not isinstance(with_blind, tuple):
        with_blind, without = (with_blind,), (without,)
    for got, other in zip(with_blind, without, strict=True):
        wanted = np.where(blind[..., None], 0, other)
        if (got[np.broadcast_to(blind, got.shape[:-1])] != 0).any():  # NaN, too
            detail = f"the query {_first(blind)} has no allowed key, and its row is not zero"
        elif differing(got, wanted).any():
            detail = "another query's row changes because of the one that has no allowed key"
        else:
            continue
        probe.fail(detail, *args, expected=wanted, got=got)
        return


def broadcasts(probe, args: tuple, allowed: np.ndarray, shape: tuple[int, ...]) -> None:
    """A mask of fewer axes gives what the same mask, written out in full, gives."""
    full = probe(*args, np.broadcast_to(allowed, shape).copy())
    short = probe(*args, allowed)
    if not isinstance(full, tuple):
        full, short = (full,), (short,)
    for wanted, got in zip(full, short, strict=True):
        if differing(got, wanted).any():
            detail = f"a mask of shape {allowed.shape} gives another result than one of {shape}"
            probe.fail(detail, *args, allowed, expected=wanted, got=got)
            return


def makes_no_difference(probe, scores, junk, allowed) -> None:
    """Closed scores are replaced by junk: the weights stay what they were."""
    before = probe(np.where(allowed, scores, 0), allowed)
    changed = np.where(allowed, scores, junk)
    after = probe(changed, allowed)
    if differing(after, before).any():
        detail = "closed scores were changed, and the weights changed with them"
        probe.fail(detail, changed, allowed, expected=before, got=after)


def _first(where: np.ndarray) -> list[int]:
    return [int(i) for i in np.argwhere(where)[0]]
