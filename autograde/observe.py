"""What can be said of a wrong result when no known mistake explains it.

Each sentence must be true of what was seen, whatever the code was that made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from autograde.examination import Examination, Finding, Record
from autograde.values import differing, same


def observe(examination: Examination, finding: Finding) -> str:
    """One true sentence about how `finding.got` relates to what was expected, or ""."""
    if stale := _stale(examination.records, finding):
        return stale
    at = examination.exercise.weights_at
    for index, got, want in _pairs(finding):
        if want.size < 2 or got.shape != want.shape:
            sentence = _misshapen(got, want)
        else:
            looks = [_transposed, _opposite, _not_finite, _factor]
            looks[2:2] = [_leak, _row_sums] if index == at else []
            sentence = next((text for look in looks if (text := look(got, want))), "")
        if sentence:
            where = "" if len(list(_pairs(finding))) == 1 else f"In value {index}: "
            return where + sentence
    return ""


def _pairs(finding: Finding) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """(index, got, expected) of the arrays of a result."""
    got, want = finding.got, finding.expected
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for index, (a, b) in enumerate(zip(got if isinstance(got, tuple) else (), want, strict=False)):
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            yield index, a, b


def _stale(records: tuple[Record, ...], finding: Finding) -> str:
    """Did the function give the result of an earlier call?"""
    here = next((i for i, record in enumerate(records) if record.args is finding.args), 0)
    record = records[here]
    for earlier in records[:here]:
        if earlier.fault or not record.outcome.returned or not _telling(earlier.expected):
            continue
        again = same(record.outcome.value, earlier.expected)
        if again and not same(earlier.expected, record.expected):
            return "This is the result of an earlier call: is something kept between calls?"
    return ""


def _telling(value: Any) -> bool:
    """Is the value so special that nobody returns it by chance?"""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(p, np.ndarray) and len(np.unique(p)) > 2 for p in parts)


def _agree(got: np.ndarray, want: np.ndarray) -> bool:
    return not differing(got, want).any()


def _misshapen(got: np.ndarray, want: np.ndarray) -> str:
    turned = got.ndim >= 2 and np.swapaxes(got, -1, -2).shape == want.shape != got.shape
    if turned and got.dtype.kind == want.dtype.kind and _agree(np.swapaxes(got, -1, -2), want):
        return "The result is the transpose of the expected one: queries are rows, keys columns."
    return ""


def _transposed(got: np.ndarray, want: np.ndarray) -> str:
    if got.ndim >= 2 and got.shape[-1] == got.shape[-2] and _agree(np.swapaxes(got, -1, -2), want):
        return "The result is the transpose of the expected one: queries are rows, keys columns."
    return ""


def _opposite(got: np.ndarray, want: np.ndarray) -> str:
    if got.dtype == bool == want.dtype and _agree(~got, want):
        return "Every entry is the opposite of the expected one: True means may attend."
    return ""


def _not_finite(got: np.ndarray, want: np.ndarray) -> str:
    if got.dtype.kind != "f" or not np.isfinite(want).all():
        return ""
    for name, bad in (("NaN", np.isnan(got)), ("infinite", np.isinf(got))):
        if bad.any():
            where = "everywhere" if bad.all() else f"at {_first(bad)}"
            return f"The result is {name} {where}."
    return ""


def _leak(got: np.ndarray, want: np.ndarray) -> str:
    closed = (want == 0) & (got != 0) & np.isfinite(got)
    if not closed.any():
        return ""
    *batch, query, key = _first(closed)
    where = f" (batch {batch})" if batch else ""
    return f"Query {query} gives weight to key {key}, which should get none{where}."


def _row_sums(got: np.ndarray, want: np.ndarray) -> str:
    sums, right = got.sum(axis=-1), want.sum(axis=-1)
    wrong = np.abs(sums - right) > 1e-3
    if not wrong.any():
        return ""
    down = "; the columns sum to 1 instead" if np.allclose(got.sum(axis=-2), 1) else ""
    return f"A row of weights sums to {sums[wrong][0]:.4g}, not to {right[wrong][0]:g}{down}."


def _factor(got: np.ndarray, want: np.ndarray) -> str:
    used = np.abs(want) > 0
    if want.dtype.kind != "f" or not used.any() or not np.isfinite(want).all():
        return ""
    ratio = float(np.median(got[used] / want[used]))
    if np.isfinite(ratio) and abs(ratio) > 0.01 < abs(ratio - 1) and _agree(got, ratio * want):
        return f"Every number is {ratio:.4g} times the expected one."
    return ""


def _first(where: np.ndarray) -> list[int]:
    return [int(i) for i in np.argwhere(where)[0]]
