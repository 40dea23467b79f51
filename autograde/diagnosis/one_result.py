"""What is seen in one wrong result: NaN somewhere, a look ahead, weights of another sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograde.diagnosis.pairs import agree

SMALL = 1e-6  # a weight that can be rounded to 0


def look(got: Any, want: Any, weights: bool, axes: str = "batch") -> str:
    """One sentence about it, or "". axes: what those in front of queries and keys are called."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or agree(got, want):
        return ""
    leak = _leak(got, want, axes) if weights else ""
    looks = [_row_sums, _one_key, _not_finite] if weights and want.ndim else [_not_finite]
    return leak or next((text for text in (each(got, want) for each in looks) if text), "")


def _not_finite(got: np.ndarray, want: np.ndarray) -> str:
    if got.dtype.kind != "f" or want.dtype.kind not in "iuf" or not np.isfinite(want).all():
        return ""
    for name, bad in (("NaN", np.isnan(got)), ("infinite", np.isinf(got))):
        if bad.any():
            place = "" if not bad.ndim else "everywhere" if bad.all() else f"at {_index(bad)}"
            return f"The result is {name} {place}".rstrip() + "."
    return ""


def _leak(got: np.ndarray, want: np.ndarray, axes: str) -> str:
    closed = (want == 0) & (got != 0) & np.isfinite(got)
    if want.ndim < 2 or not closed.any():
        return ""
    *batch, query, key = _index(closed)
    where = f" ({axes} {batch})" if batch else ""
    return f"Query {query} gives weight to key {key}, which should get none{where}."


def _row_sums(got: np.ndarray, want: np.ndarray) -> str:
    sums, right = got.sum(axis=-1), want.sum(axis=-1)
    wrong = np.abs(sums - right) > 1e-3
    if not wrong.any():
        return ""
    columns = got.ndim > 1 < got.shape[-2] and sums.all() and _ones(got.sum(axis=-2))
    down = "; the columns sum to 1 instead" if columns else ""
    if got.ndim == 1:
        return f"What should sum to 1 sums to {sums:.4g}."
    return f"A row of weights sums to {sums[wrong][0]:.4g}, not to {right[wrong][0]:g}{down}."


def _ones(sums: np.ndarray) -> bool:
    """Are they all 1, but for the 0 of keys that nobody sees?"""
    return bool(sums.any()) and np.allclose(sums[sums != 0], 1)


def _one_key(got: np.ndarray, want: np.ndarray) -> str:
    hard, soft = (((x == 0) | (x == 1)).all() for x in (got, want))
    if hard and not soft and got.any() and (got.ndim < 2 or got.shape[-2] > 1):
        return "All the weight goes to a single one."
    missed = (got == 0) & (want > SMALL)
    if want.ndim < 2 or not missed.any():
        return ""
    query, key = _index(missed)[-2:]
    return f"Query {query} gives no weight to key {key}, which should get some."


def _index(marks: np.ndarray) -> list[int]:
    return [int(i) for i in np.argwhere(marks)[0]]
