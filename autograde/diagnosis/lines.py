"""Rows and columns as wholes: are they the right ones, of the right length, of the right sum?"""

from __future__ import annotations

import numpy as np

from autograde.diagnosis.pairs import Holds, agree, both_numbers, unless

CLEAR = 1e-2  # a number that rounding does not make
MANY = 50  # rows; beyond, looking for each takes too long


def rearranged(axis: int) -> Holds:
    """Are the right rows (or columns) there, in another order?"""

    def holds(got: np.ndarray, want: np.ndarray) -> bool | None:
        if got.shape != want.shape or want.ndim < 2:
            return False
        matrices = (
            np.moveaxis(x, axis, -2).reshape(-1, x.shape[axis], x.shape[-3 - axis])
            for x in (got, want)
        )
        found = all(_same_lines(a, b) for a, b in zip(*matrices, strict=True))
        return unless(want.shape[-3 - axis] < 2, found)  # lines of one number each

    return holds


def _same_lines(got: np.ndarray, want: np.ndarray) -> bool:
    """Has each line of a matrix its like in the other one, each another?"""
    if len(got) > MANY:
        return False
    free = list(range(len(want)))
    for line in got:
        match = next((i for i in free if agree(line, want[i])), None)
        if match is None:
            return False
        free.remove(match)
    return True


def all_rows_alike(got: np.ndarray, want: np.ndarray) -> bool | None:
    """Is there no difference between the rows of a matrix, where there should be one?"""
    if not both_numbers(got, want) or want.ndim < 2:
        return False
    return unless(_alike(want), _alike(got))


def _alike(x: np.ndarray) -> bool:
    return agree(x, np.broadcast_to(x[..., :1, :], x.shape))


def same_lengths(got: np.ndarray, want: np.ndarray) -> bool | None:
    """Has each vector along the last axis its right length?"""
    if not both_numbers(got, want) or want.ndim < 1:
        return False
    lengths = (np.linalg.norm(x.astype(float), axis=-1) for x in (got, want))
    return unless(want.shape[-1] < 2, agree(*lengths))


def right_sums(got: np.ndarray, want: np.ndarray) -> bool:
    """Is the sum of each row right, and not 1, as of all weights?"""
    if not both_numbers(got, want) or want.ndim < 1 or want.dtype.kind != "f":
        return False
    a, b = (x.astype(float).sum(axis=-1) for x in (got, want))
    return bool(np.abs(want).max() > CLEAR) and not np.allclose(b, 1) and agree(a, b)


def symmetric(got: np.ndarray, want: np.ndarray) -> bool | None:
    if got.shape != want.shape or want.ndim < 2 or want.shape[-1] != want.shape[-2]:
        return False
    ours, theirs = (agree(x, np.swapaxes(x, -1, -2)) for x in (got, want))
    return unless(theirs, ours)
