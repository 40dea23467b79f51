"""What may be true of a result and of what was expected, and says next to nothing by itself."""

from __future__ import annotations

import numpy as np

from autograde.diagnosis.pairs import Holds, both_numbers, unless
from autograde.values import differing

CLEAR = 1e-2  # of the largest number: a difference that rounding does not make


def _ordered(got: np.ndarray, want: np.ndarray) -> bool | None:
    """Is the order of the numbers, by size, the right one in each row?"""
    if not both_numbers(got, want) or want.ndim < 1 or want.dtype.kind != "f":
        return False
    a, b = (np.diff(np.take_along_axis(x, want.argsort(axis=-1), -1), axis=-1) for x in (got, want))
    clear = b > CLEAR * np.abs(want).max()
    trivial = want.shape[-1] < 4 or not clear.any()
    return unless(trivial, not (a[clear] <= 0).any())


def _sided(sign: int, size: bool = False) -> Holds:
    """Are all numbers that are wrong too large (or small)? size: whatever their signs."""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if got.shape != want.shape or not {got.dtype.kind, want.dtype.kind} <= set("iuf"):
            return False
        wrong = differing(got, want)
        got, want = got[wrong], want[wrong]
        if size:
            if (np.sign(got) * np.sign(want) < 0).any():
                return False
            got, want = np.abs(got), np.abs(want)
        return bool((sign * got > sign * want).all())

    return holds


# Said together with the places where it is so, if these are special.
WEAK: dict[str, Holds] = {
    "Every number that is wrong is too large.": _sided(1),
    "Every number that is wrong is too small.": _sided(-1),
    "Every number that is wrong has the right sign, and is too far from 0.": _sided(1, size=True),
    "Every number that is wrong has the right sign, and is too near to 0.": _sided(-1, size=True),
    "In each row the numbers have the right order, from the smallest to the largest; their sizes "
    "are wrong.": _ordered,
}
