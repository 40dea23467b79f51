"""What can be said of wrong results when no known mistake explains them.

Each sentence must be true of what was seen, whatever the code was that made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from autograde.examination import Examination, Finding, Record
from autograde.values import differing, plain, same

Pair = tuple[np.ndarray, np.ndarray]  # (got, expected)


def observe(examination: Examination, finding: Finding) -> str:
    """One true sentence about how the results relate to what was expected, or "".

    What is said of the function as a whole holds for every result that was wrong; what is
    said of a single result is said of `finding.got`, which the student is shown.
    """
    if stale := _stale(examination.records, finding):
        return stale
    exercise = examination.exercise
    failed = [r for r in examination.records if r.fault == "value" and r.outcome.returned]
    for index, (got, want) in _parts(finding.got, finding.expected):
        wrong = [dict(_parts(r.outcome.value, r.expected)).get(index) for r in failed]
        sentence = _of_all(wrong) if all(wrong) else ""
        if not sentence and got.shape == want.shape:
            looks = [_leak, _row_sums] if index == exercise.weights_at else []
            found = (look(got, want) for look in [*looks, _not_finite])
            sentence = next((text for text in found if text), "")
        if sentence:
            return f"In `{exercise.returns[index]}`: {sentence}" if exercise.returns else sentence
    return ""


def _parts(got: Any, want: Any) -> Iterator[tuple[int, Pair]]:
    """(index, pair) of the arrays of a result that is an array or a tuple of arrays."""
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for index, (a, b) in enumerate(zip(got if isinstance(got, tuple) else (), want, strict=False)):
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            yield index, (a, b)


def _stale(records: tuple[Record, ...], finding: Finding) -> str:
    """Did the function give the result of an earlier call?"""
    here = next((i for i, record in enumerate(records) if record.args is finding.args), 0)
    record = records[here]
    if any(same(plain(argument), record.outcome.value) for argument in record.args):
        return ""  # an argument, as it came in
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


# Of all wrong results --------------------------------------------------------------------


def _of_all(pairs: list[Pair]) -> str:
    """What is true of every pair that differs, if more than single numbers do."""
    pairs = [(got, want) for got, want in pairs if not _agree(got, want)]
    if max((want.size for _, want in pairs), default=0) < 2:
        return ""
    if all(got.ndim >= 2 and _agree(np.swapaxes(got, -1, -2), want) for got, want in pairs):
        return "The result is the transpose of the expected one: rows and columns are swapped."
    if all(got.dtype == bool == want.dtype and _agree(~got, want) for got, want in pairs):
        return "Every entry is the opposite of the expected one: True and False are swapped."
    ratios = [_ratio(got, want) for got, want in pairs]
    if ratios[0] and all(ratio and abs(ratio - ratios[0]) < 1e-3 for ratio in ratios):
        return f"Every number is {ratios[0]:.4g} times the expected one."
    return ""


def _agree(got: np.ndarray, want: np.ndarray) -> bool:
    return got.shape == want.shape and not differing(got, want).any()


def _ratio(got: np.ndarray, want: np.ndarray) -> float:
    """The factor between two arrays, if there is one, and it is far from 0 and 1; else 0."""
    used = np.abs(want) > 0
    if want.dtype.kind != "f" or got.shape != want.shape or not used.any():
        return 0.0
    if not np.isfinite(want).all() or not np.isfinite(got).all():
        return 0.0
    with np.errstate(all="ignore"):  # a number may be tiny
        ratio = float(np.median(got[used] / want[used]))
    plain = abs(ratio) > 0.01 < abs(ratio - 1)
    return ratio if plain and _agree(got, ratio * want) else 0.0


# Of one result ---------------------------------------------------------------------------


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


def _first(where: np.ndarray) -> list[int]:
    return [int(i) for i in np.argwhere(where)[0]]
