"""How is what came back related to what was expected, in every result that is wrong?

Each relation is tried on all pairs (got, expected) of arrays or numbers that differ, and is
said only if it holds for each of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograde.values import differing

Pair = tuple[np.ndarray, np.ndarray]  # (got, expected)
Holds = Callable[[np.ndarray, np.ndarray], bool]

CLOSE = 1e-2


def relation(pairs: list[Pair]) -> str:
    """The first relation, in words, that every pair has; or ""."""
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    if not pairs or any(array.dtype.kind not in "biuf" for pair in pairs for array in pair):
        return ""
    with np.errstate(all="ignore"):
        if not _telling(pairs):
            return ""
        if any(agree(*pair) for pair in pairs):  # of another dtype, or less exact than asked for
            only_dtype = all(agree(*pair) for pair in pairs) and _others(pairs)
            return "The numbers are right; only their dtype is not." if only_dtype else ""
        exact = (words for words, holds in EXACT.items() if all(holds(*pair) for pair in pairs))
        return next(exact, "") or _by_a_number(pairs)


def rough_relation(pairs: list[Pair]) -> str:
    """The first relation that says less, but holds for every pair; or ""."""
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    if not pairs or any(array.dtype.kind not in "biuf" for pair in pairs for array in pair):
        return ""
    with np.errstate(all="ignore"):
        if not _telling(pairs) or any(agree(*pair) for pair in pairs):
            return ""
        found = (words for words, holds in ROUGH.items() if all(holds(*pair) for pair in pairs))
        return next(found, "") or (BOTH_WAYS if all(map(_bools, pairs)) else "")


def _bools(pair: Pair) -> bool:
    return pair[0].dtype == bool == pair[1].dtype and pair[0].shape == pair[1].shape


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


def agree(got: np.ndarray, want: np.ndarray) -> bool:
    return got.shape == want.shape and not differing(got, want).any()


def _telling(pairs: list[Pair]) -> bool:
    """Is there enough to tell a relation from chance: an array of some numbers, or some results?"""
    sizes = [want.size for _, want in pairs]
    return max(sizes) > 1 or len({(got.tobytes(), want.tobytes()) for got, want in pairs}) > 2


def _others(pairs: list[Pair]) -> bool:
    return all(got.dtype.kind != want.dtype.kind for got, want in pairs)


# By one number ---------------------------------------------------------------------------


def _by_a_number(pairs: list[Pair]) -> str:
    """A factor or a difference that is the same everywhere."""
    ratios = [ratio(got, want) for got, want in pairs]
    if ratios[0] and all(each and abs(each / ratios[0] - 1) < 1e-3 for each in ratios):
        if abs(ratios[0] + 1) < 1e-3:
            return "Every number has the opposite sign."
        return f"Every number is {ratios[0]:.4g} times the expected one."
    offsets = [_offset(got, want) for got, want in pairs]
    if offsets[0] and all(offset and abs(offset / offsets[0] - 1) < 1e-3 for offset in offsets):
        more = "larger" if offsets[0] > 0 else "smaller"
        return f"Every number is {more} by {abs(offsets[0]):.4g} than the expected one."
    return ""


def _numbers(got: np.ndarray, want: np.ndarray) -> bool:
    both = got.shape == want.shape and want.dtype.kind in "iuf" and got.dtype.kind in "iuf"
    return both and bool(np.isfinite(want).all() and np.isfinite(got).all())


def _finite(got: np.ndarray, want: np.ndarray) -> Pair:
    """The numbers of both, where the infinite ones agree; else none."""
    if got.shape != want.shape or want.dtype.kind not in "iuf" or got.dtype.kind not in "iuf":
        return np.zeros(0), np.zeros(0)
    there = np.isfinite(want)
    alike = np.isfinite(got[there]).all() and agree(got[~there], want[~there])
    return (got[there], want[there]) if alike else (np.zeros(0), np.zeros(0))


def ratio(got: np.ndarray, want: np.ndarray) -> float:
    """The factor between two arrays, if there is one, and it is far from 0 and 1; else 0."""
    got, want = _finite(got, want)
    used = np.abs(want) > 0
    if not used.any():
        return 0.0
    factor = float(np.median(got[used] / want[used]))
    plain = abs(factor) > 1e-4 and abs(factor - 1) > 0.01
    return factor if plain and agree(got.astype(float), factor * want) else 0.0


def _offset(got: np.ndarray, want: np.ndarray) -> float:
    got, want = _finite(got, want)
    if not want.size:
        return 0.0
    offset = float(np.median(got.astype(float) - want))
    return offset if abs(offset) > 1e-4 and agree(got.astype(float), want + offset) else 0.0


# What may be true of a pair --------------------------------------------------------------


def _transposed(got: np.ndarray, want: np.ndarray) -> bool:
    return got.ndim >= 2 and agree(np.swapaxes(got, -1, -2), want)


def _opposite(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype == bool == want.dtype and agree(~got, want)


def _flipped(axis: int) -> Holds:
    return lambda got, want: want.ndim >= -axis and agree(got, np.flip(want, axis))


def _shifted(axis: int, by: int) -> Holds:
    """Does each entry stand so many places further on, whatever has come in at the end?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if got.shape != want.shape or want.ndim < -axis or want.shape[axis] < 2:
            return False
        a, b = np.moveaxis(got, axis, 0), np.moveaxis(want, axis, 0)
        a, b = (a[by:], b[:-by]) if by > 0 else (a[:by], b[-by:])
        return agree(a, b) and not (b == b.flat[:1]).all()

    return holds


def _is(transform: Callable) -> Holds:
    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if want.dtype.kind != "f" or not np.isfinite(want).all() or not want.size:
            return False
        return (want.size == 1 or np.ptp(want) > 0) and agree(got, transform(want))

    return holds


def _all_zero(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype.kind in "iuf" and not got.any()


def _all_nan(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype.kind == "f" and bool(got.size and np.isnan(got).all() > np.isnan(want).all())


def _all(value: bool) -> Holds:
    return lambda got, want: got.dtype == bool and (got == value).all() and (want != value).any()


def _numbers_in_another_shape(got: np.ndarray, want: np.ndarray) -> bool:
    return got.shape != want.shape and got.size == want.size and agree(got.ravel(), want.ravel())


def _same_numbers(got: np.ndarray, want: np.ndarray) -> bool:
    if got.size != want.size or want.size < 3 or len(np.unique(want)) < 2 or want.dtype == bool:
        return False
    return agree(np.sort(got, axis=None), np.sort(want, axis=None))


def _each(axis: int, factor: bool) -> Holds:
    """Is each row (or column) the expected one but for a factor, or a difference, of its own?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if not _numbers(got, want) or want.ndim < -axis or want.shape[axis] < 2:
            return False
        got, want = got.astype(float), want.astype(float)
        if not factor:
            return agree(got, want + (got - want).mean(axis=axis, keepdims=True))
        if _close(got, want):
            return False  # by rounding, it seems, or a little that is added somewhere
        scale = (got * want).sum(axis, keepdims=True) / (want * want).sum(axis, keepdims=True)
        return bool(np.isfinite(scale).all()) and agree(got, scale * want)

    return holds


def _only_open(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype == bool == want.dtype and got.shape == want.shape and not (want & ~got).any()


def _only_closed(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype == bool == want.dtype and got.shape == want.shape and not (got & ~want).any()


def _close(got: np.ndarray, want: np.ndarray) -> bool:
    """Off by little, and by more than rounding."""
    if not _numbers(got, want) or want.dtype.kind != "f":
        return False
    return not differing(got, want, rtol=CLOSE, atol=CLOSE * 1e-3).any()


def _one_number(got: np.ndarray, want: np.ndarray) -> bool:
    return got.size > 1 and got.dtype.kind == "f" and agree(got, np.full_like(got, got.flat[0]))


def _sided(sign: int) -> Holds:
    """Are all numbers that are wrong too large (or small)?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        got, want = _finite(got, want)
        return want.size > 0 and not (differing(got, want) & (sign * got < sign * want)).any()

    return holds


EXACT: dict[str, Holds] = {
    "The result is the transpose of the expected one: rows and columns are swapped.": _transposed,
    "Every entry is the opposite of the expected one: True and False are swapped.": _opposite,
    "The result is 0 throughout.": _all_zero,
    "Every entry is True.": _all(True),
    "Every entry is False.": _all(False),
    "The numbers are right and stand in the right order; only the shape is not.": (
        _numbers_in_another_shape
    ),
    "The last axis runs the other way round.": _flipped(-1),
    "The rows (last axis but one) come in the opposite order.": _flipped(-2),
    "Everything stands one place too far to the right.": _shifted(-1, 1),
    "Everything stands one place too far to the left.": _shifted(-1, -1),
    "Everything stands one row too low.": _shifted(-2, 1),
    "Everything stands one row too high.": _shifted(-2, -1),
    "The result is the logarithm of the expected one.": _is(np.log),
    "The result is e to the power of the expected one.": _is(np.exp),
    "The result is the square of the expected one.": _is(np.square),
    "The result is the square root of the expected one.": _is(np.sqrt),
    "The result is the reciprocal of the expected one.": _is(np.reciprocal),
    "The result is the expected one without its signs.": _is(np.abs),
}
ROUGH: dict[str, Holds] = {
    "The result is NaN everywhere.": _all_nan,
    "The right numbers are there, but not in the right places.": _same_numbers,
    "Each row is a multiple of the expected one; the factor differs from row to row.": (
        _each(-1, factor=True)
    ),
    "Each row differs from the expected one by one number, added throughout the row.": (
        _each(-1, factor=False)
    ),
    "Each column is a multiple of the expected one; the factor differs from column to column.": (
        _each(-2, factor=True)
    ),
    "Each column differs from the expected one by one number, added throughout the column.": (
        _each(-2, factor=False)
    ),
    "All entries of a result are the same number.": _one_number,
    "Some entries are True that should be False, and none the other way round.": _only_open,
    "Some entries are False that should be True, and none the other way round.": _only_closed,
    "Every number is close to the expected one (within 1 %), but further off than by rounding.": (
        _close
    ),
    "Every number that is wrong is too large.": _sided(1),
    "Every number that is wrong is too small.": _sided(-1),
}


BOTH_WAYS = "Some entries are True that should be False, and some the other way round."


# Where the entries are that differ -------------------------------------------------------


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
    "The first row is always right; what follows is not.": _at(-2, 0, False),
    "The last row is always right; what comes before is not.": _at(-2, -1, False),
    "The diagonal is always right; beside it there are wrong entries.": _diagonal(False),
    "The first column is always right; what follows is not.": _at(-1, 0, False),
    "The last column is always right; what comes before is not.": _at(-1, -1, False),
}
