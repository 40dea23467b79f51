"""Where do the entries stand that are wrong?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograde.diagnosis.pairs import Holds, Pair
from autograde.values import differing


def where(pairs: list[Pair]) -> str:
    """In which places every pair differs, if these are special; or ""."""
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    if not pairs or any(got.shape != want.shape or want.ndim < 1 for got, want in pairs):
        return ""
    wrong = [(differing(got, want), want) for got, want in pairs]
    if max(marks.size for marks, _ in wrong) < 4 or not all(marks.any() for marks, _ in wrong):
        return ""
    found = (words for words, holds in PLACES.items() if all(holds(*pair) for pair in wrong))
    return next(found, "")


def _at(axis: int, place: int, inside: bool, line: bool = False) -> Holds:
    """Do all wrong entries stand at that place of an axis, or none? line: of a 1-d array."""

    def holds(wrong: np.ndarray, want: np.ndarray) -> bool:
        if wrong.ndim < -axis or (wrong.ndim == 1) != line:
            return False
        moved = np.moveaxis(wrong, axis, 0)
        others = np.delete(moved, place, axis=0)
        if inside:
            return others.size > 0 and not others.any()
        return not moved[place].any()

    return holds


def _diagonal(inside: bool) -> Holds:
    """The diagonal that ends in the last row and column."""

    def holds(wrong: np.ndarray, want: np.ndarray) -> bool:
        if wrong.ndim < 2 or max(wrong.shape[-2:]) < 2:
            return False
        rows, columns = wrong.shape[-2:]
        on = np.eye(rows, columns, columns - rows, dtype=bool)
        return not (wrong & (~on if inside else on)).any()

    return holds


def _side(below: bool) -> Holds:
    """Do all wrong entries stand below (or above) the diagonal that ends in the last corner?"""

    def holds(wrong: np.ndarray, want: np.ndarray) -> bool:
        if wrong.ndim < 2 or min(wrong.shape[-2:]) < 2:
            return False
        shift = wrong.shape[-1] - wrong.shape[-2]
        here = np.tri(*wrong.shape[-2:], shift - 1 if below else shift, dtype=bool)
        return not (wrong & ~(here if below else ~here)).any()

    return holds


def _where(special: Callable, inside: bool) -> Holds:
    def holds(wrong: np.ndarray, want: np.ndarray) -> bool:
        if want.dtype.kind != "f":
            return False
        there = special(want)
        return bool(there.any()) and not (wrong & (~there if inside else there)).any()

    return holds


def _zero(want: np.ndarray) -> np.ndarray:
    return want == 0


PLACES: dict[str, Holds] = {
    "Only the diagonal is wrong.": _diagonal(True),
    "Only the first entry is wrong.": _at(-1, 0, True, line=True),
    "Only the last entry is wrong.": _at(-1, -1, True, line=True),
    "The first entry is always right; what follows is not.": _at(-1, 0, False, line=True),
    "The last entry is always right; what comes before is not.": _at(-1, -1, False, line=True),
    "Only the first row is wrong.": _at(-2, 0, True),
    "Only the last row is wrong.": _at(-2, -1, True),
    "Only the first column is wrong.": _at(-1, 0, True),
    "Only the last column is wrong.": _at(-1, -1, True),
    "It is wrong only where 0 is expected.": _where(_zero, True),
    "It is wrong only where -inf is expected.": _where(np.isneginf, True),
    "Where 0 is expected, it is right; elsewhere it is not.": _where(_zero, False),
    "Only entries below the diagonal are wrong.": _side(below=True),
    "Only entries above the diagonal are wrong.": _side(below=False),
    "The first row is always right; what follows is not.": _at(-2, 0, False),
    "The last row is always right; what comes before is not.": _at(-2, -1, False),
    "The diagonal is always right; beside it there are wrong entries.": _diagonal(False),
    "The first column is always right; what follows is not.": _at(-1, 0, False),
    "The last column is always right; what comes before is not.": _at(-1, -1, False),
    "In the first head, or whatever is first along the last axis but two, it is always right; in "
    "the others it is not.": _at(-3, 0, False),
}
