"""What fully tells a result from what was expected in its place, in a sentence each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograde.diagnosis.pairs import Holds, agree


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


def _all(value: bool) -> Holds:
    return lambda got, want: got.dtype == bool and (got == value).all() and (want != value).any()


def _piece(end: bool) -> Holds:
    """Is it the expected one without its beginning (or end), along one axis?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool:
        if got.ndim != want.ndim or not 0 < got.size < want.size:
            return False
        shorter = [axis for axis in range(want.ndim) if got.shape[axis] < want.shape[axis]]
        if len(shorter) != 1:
            return False
        n = got.shape[shorter[0]]
        places = np.arange(want.shape[shorter[0]])
        return agree(got, np.take(want, places[-n:] if end else places[:n], axis=shorter[0]))

    return holds


def _numbers_in_another_shape(got: np.ndarray, want: np.ndarray) -> bool:
    return got.shape != want.shape and got.size == want.size and agree(got.ravel(), want.ravel())


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
    "The order of the heads, or whatever the last axis but two is, is turned round.": _flipped(-3),
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
    "What came back is right, but its beginning is missing.": _piece(end=True),
    "What came back is right, but its end is missing.": _piece(end=False),
}
