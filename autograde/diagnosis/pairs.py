"""A result and what was expected in its place: when do they agree, and may be compared?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograde.values import ATOL, differing

Pair = tuple[np.ndarray, np.ndarray]  # (got, expected)
Holds = Callable[[np.ndarray, np.ndarray], bool | None]  # None: of such a pair it tells nothing
ENOUGH = 2  # pairs that must tell, where there are as many


def holds_throughout(holds: Holds, pairs: list[Pair]) -> bool:
    """Does it hold for every pair of which it tells anything?"""
    found = [holds(*pair) for pair in pairs]
    return False not in found and found.count(True) >= min(ENOUGH, len(found))


def unless(trivial: bool, true: bool) -> bool | None:
    """None for what holds, and would hold of nearly anything of that size."""
    return None if true and trivial else bool(true)


def agree(got: np.ndarray, want: np.ndarray) -> bool:
    """Up to rounding; that of small numbers is small."""
    if got.shape != want.shape:
        return False
    largest = np.abs(want[np.isfinite(want)]).max(initial=0.0) if want.dtype.kind == "f" else 1.0
    return not differing(got, want, atol=ATOL * min(1.0, largest)).any()


def both_numbers(got: np.ndarray, want: np.ndarray) -> bool:
    both = got.shape == want.shape and want.dtype.kind in "iuf" and got.dtype.kind in "iuf"
    return both and bool(np.isfinite(want).all() and np.isfinite(got).all())


def finite(got: np.ndarray, want: np.ndarray) -> Pair:
    """The numbers of both, where the infinite ones agree; else none."""
    if got.shape != want.shape or want.dtype.kind not in "iuf" or got.dtype.kind not in "iuf":
        return np.zeros(0), np.zeros(0)
    there = np.isfinite(want)
    alike = np.isfinite(got[there]).all() and agree(got[~there], want[~there])
    return (got[there], want[there]) if alike else (np.zeros(0), np.zeros(0))
