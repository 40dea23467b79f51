"""What may be true of a result and of what was expected, and says less, in a sentence each."""

from __future__ import annotations

import numpy as np

from autograde.diagnosis.pairs import Holds, agree, both_numbers, finite
from autograde.values import differing

CLOSE = 1e-2


def _all_nan(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype.kind == "f" and bool(got.size and np.isnan(got).all() > np.isnan(want).all())


def _same_numbers(got: np.ndarray, want: np.ndarray) -> bool:
    if got.size != want.size or want.size < 3 or len(np.unique(want)) < 2 or want.dtype == bool:
        return False
    return agree(np.sort(got, axis=None), np.sort(want, axis=None))


def _each(axis: int, factor: bool) -> Holds:
    """Is each row (or column) the expected one but for a factor, or a difference, of its own?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if not both_numbers(got, want) or want.ndim < -axis or want.shape[axis] < 2:
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
    if not both_numbers(got, want) or want.dtype.kind != "f":
        return False
    return not differing(got, want, rtol=CLOSE, atol=CLOSE * 1e-3).any()


def _affine(got: np.ndarray, want: np.ndarray) -> bool:
    """Is each row the expected one but for a factor and a difference of its own?"""
    if not both_numbers(got, want) or want.ndim < 1 or want.shape[-1] < 4:
        return False
    got, want = (x.astype(float) - x.mean(axis=-1, keepdims=True) for x in (got, want))
    scale = (got * want).sum(-1, keepdims=True) / (want * want).sum(-1, keepdims=True)
    return bool(np.isfinite(scale).all() and scale.any()) and agree(got, scale * want)


def _normalised(got: np.ndarray, want: np.ndarray) -> bool:
    """Mean 0 and variance 1 in every row of both."""
    if not both_numbers(got, want) or want.ndim < 1 or want.shape[-1] < 3:
        return False
    return all(
        np.allclose(x.mean(axis=-1), 0, atol=1e-3) and np.allclose(x.var(axis=-1), 1, atol=1e-2)
        for x in (got, want)
    )


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


def _sided(sign: int) -> Holds:
    """Are all numbers that are wrong too large (or small)?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        got, want = finite(got, want)
        return want.size > 0 and not (differing(got, want) & (sign * got < sign * want)).any()

    return holds


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
    "Each row is the expected one but for a factor and a number that is added to it.": _affine,
    "Each row has mean 0 and variance 1, as it should; look at what is normalised.": _normalised,
    "The numbers of each row sum to 1, as those of a softmax do.": _sums_to_one(-1),
    "The numbers of each column sum to 1, as those of a softmax do.": _sums_to_one(-2),
    "All entries of a result are the same number.": _one_number,
    "Some entries are True that should be False, and none the other way round.": _only_open,
    "Some entries are False that should be True, and none the other way round.": _only_closed,
    "Every number is close to the expected one (within 1 %), but further off than by rounding.": (
        _close
    ),
    "Every number that is wrong is too large.": _sided(1),
    "Every number that is wrong is too small.": _sided(-1),
}
