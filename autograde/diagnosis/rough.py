"""What may be true of a result and of what was expected, and says less, in a sentence each."""

from __future__ import annotations

import numpy as np

from autograde.diagnosis.lines import (
    all_rows_alike,
    rearranged,
    right_sums,
    same_lengths,
    symmetric,
)
from autograde.diagnosis.pairs import Holds, agree, both_numbers, unless
from autograde.values import differing

CLOSE = 1e-2


def _all_nan(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype.kind == "f" and bool(got.size and np.isnan(got).all() > np.isnan(want).all())


def _same_numbers(got: np.ndarray, want: np.ndarray) -> bool:
    if got.size != want.size or want.size < 3 or len(np.unique(want)) < 2 or want.dtype == bool:
        return False
    return agree(np.sort(got, axis=None), np.sort(want, axis=None))


def _signs(got: np.ndarray, want: np.ndarray) -> bool:
    return both_numbers(got, want) and agree(np.abs(got), np.abs(want))


def _each(axis: int, factor: bool) -> Holds:
    """Is each row (or column) the expected one but for a factor, or a difference, of its own?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool | None:
        if not both_numbers(got, want) or want.ndim < -axis:
            return False
        single = want.shape[axis] < 2  # any number is a multiple of any other
        got, want = got.astype(float), want.astype(float)
        if not factor:
            return unless(single, agree(got, want + (got - want).mean(axis=axis, keepdims=True)))
        scale = (got * want).sum(axis, keepdims=True) / (want * want).sum(axis, keepdims=True)
        if not np.isfinite(scale).all() or not agree(got, scale * want):
            return False
        return unless(single or _close(got, want), True)  # or a little is added somewhere

    return holds


def _only_open(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype == bool == want.dtype and got.shape == want.shape and not (want & ~got).any()


def _only_closed(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype == bool == want.dtype and got.shape == want.shape and not (got & ~want).any()


def _close(got: np.ndarray, want: np.ndarray) -> bool:
    """Off by little, and by more than rounding."""
    if not both_numbers(got, want) or want.dtype.kind != "f":
        return False
    return not differing(got, want, rtol=CLOSE, atol=CLOSE * 1e-3).any()


def _affine(got: np.ndarray, want: np.ndarray) -> bool | None:
    """Is each row the expected one but for a factor and a difference of its own?"""
    if not both_numbers(got, want) or want.ndim < 1:
        return False
    got, want = (x.astype(float) - x.mean(axis=-1, keepdims=True) for x in (got, want))
    scale = (got * want).sum(-1, keepdims=True) / (want * want).sum(-1, keepdims=True)
    found = bool(np.isfinite(scale).all() and scale.any()) and agree(got, scale * want)
    return unless(want.shape[-1] < 4, found)


def _normalised(got: np.ndarray, want: np.ndarray) -> bool | None:
    """Mean 0 and variance 1 in every row of both."""
    if not both_numbers(got, want) or want.ndim < 1:
        return False
    found = all(
        np.allclose(x.mean(axis=-1), 0, atol=1e-3) and np.allclose(x.var(axis=-1), 1, atol=1e-2)
        for x in (got, want)
    )
    return unless(want.shape[-1] < 3, found)


def _sums_to_one(axis: int) -> Holds:
    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if not both_numbers(got, want) or want.ndim < -axis or got.dtype.kind != "f":
            return False
        sums, right = got.sum(axis=axis), want.sum(axis=axis)
        return (
            bool((got >= 0).all())
            and np.allclose(sums, 1, atol=1e-4)
            and not np.allclose(right, 1, atol=CLOSE)
        )

    return holds


def _one_number(got: np.ndarray, want: np.ndarray) -> bool:
    return got.size > 1 and got.dtype.kind == "f" and agree(got, np.full_like(got, got.flat[0]))


def _zero_where_wrong(got: np.ndarray, want: np.ndarray) -> bool:
    return both_numbers(got, want) and not got[differing(got, want)].any()


def _trues(sign: int) -> Holds:
    """Has each row that is wrong one True too many (or too few)?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if not (got.dtype == bool == want.dtype and got.shape == want.shape and want.ndim):
            return False
        more = got.sum(axis=-1) - want.sum(axis=-1)
        return bool((more[(got != want).any(axis=-1)] == sign).all())

    return holds


ROUGH: dict[str, Holds] = {
    "The result is NaN everywhere.": _all_nan,
    "Every number has the right size, and some have the wrong sign.": _signs,
    "Every number that is wrong is 0.": _zero_where_wrong,
    "The right rows are there, but not in the right order.": rearranged(-2),
    "The right columns are there, but not in the right order.": rearranged(-1),
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
    "Each row is the expected one but for a factor and a number that is added to it.": _affine,
    "Each row has mean 0 and variance 1, as it should; look at what is normalised.": _normalised,
    "All rows of a result are the same; they should differ.": all_rows_alike,
    "Each vector has the length that it should have; where it points is wrong.": same_lengths,
    "Each matrix of the result is symmetric; some should not be.": symmetric,
    "The numbers of each row sum to 1, as those of a softmax do.": _sums_to_one(-1),
    "The numbers of each column sum to 1, as those of a softmax do.": _sums_to_one(-2),
    "All entries of a result are the same number.": _one_number,
    "Each row that is wrong has one True too many.": _trues(1),
    "Each row that is wrong has one True too few.": _trues(-1),
    "Some entries are True that should be False, and none the other way round.": _only_open,
    "Some entries are False that should be True, and none the other way round.": _only_closed,
    "Every number is close to the expected one (within 1 %), but further off than by rounding.": (
        _close
    ),
    "The sum of each row is right; how it is shared out is not.": right_sums,
}
