"""What can be said of wrong results when no known mistake explains them.

Each sentence must be true of what was seen, whatever the code was that made it.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from autograde.by_argument import by_argument
from autograde.examination import Examination, Finding, Record
from autograde.exercise import Exercise
from autograde.other_input import other_input
from autograde.relations import agree, relation, rough_relation, where
from autograde.values import Mismatch, conform, is_tensor, plain, same, size

Path = tuple[Any, ...]  # of a part in a result: () for the whole, (0,) for the first of a tuple


def observe(examination: Examination, finding: Finding) -> str:
    """One true sentence about how the results relate to what was expected, or "".

    What is said of the function as a whole holds for every result that was wrong; what is
    said of a single result is said of `finding.got`, which the student is shown.
    """
    exercise, records = examination.exercise, examination.records
    if exercise.secret:
        return ""
    failed = [r for r in records if r.fault == "value" and r.outcome.returned]
    parts = _wrong_parts(failed, exercise)
    pairs = {path: [(got, want) for got, want, _ in wrong] for path, wrong in parts.items()}
    shown = {path: (got, want) for path, got, want in _parts(finding.got, finding.expected)}
    weights = [(), (exercise.weights_at,)] if exercise.weights_at is not None else []
    weights += [()] if _distributions(records) else []

    def of_parts(sentence: Callable, values: dict[Path, Any]) -> str:
        """The first sentence there is, with the name of the part that it speaks of."""
        found = ((path, sentence(path, value)) for path, value in values.items())
        path, text = next((each for each in found if each[1]), ((), ""))
        return f"In {_name(exercise, path)}: {text}" if path and text else text

    return (
        _stale(records, failed)
        or _as_it_came_in(failed, exercise)
        or _other_order(failed)
        or of_parts(lambda _, pairs: relation(pairs), pairs)
        or other_input(examination)
        or of_parts(lambda path, wrong: by_argument(exercise, wrong, path in weights), parts)
        or of_parts(lambda path, pair: _look(*pair, weights=path in weights), shown)
        or _signs(records)
        or of_parts(lambda _, pairs: rough_relation(pairs), pairs)
        or of_parts(lambda _, pairs: where(pairs), pairs)
        or _right_parts(failed, parts, exercise)
    )


def _name(exercise: Exercise, path: Path) -> str:
    names = exercise.returns
    first = f"`{names[path[0]]}`" if names else f"value {path[0]}"
    inside = "".join(f"[{key!r}]" for key in path[1:])
    return f"{first[:-1]}{inside}`" if names else first + inside


def _parts(got: Any, want: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """(path, got, expected) of every array and number in a result, where got has such a part."""
    if isinstance(want, tuple):
        if isinstance(got, tuple) and len(got) == len(want):
            for index, (a, b) in enumerate(zip(got, want, strict=True)):
                yield from _parts(a, b, (*path, index))
    elif isinstance(want, np.ndarray | bool | int | float):
        with contextlib.suppress(Mismatch):  # it may be of another shape
            got = conform(got, want)
        if isinstance(got, np.ndarray | bool | int | float):
            yield path, got, want


def _wrong_parts(failed: list[Record], exercise: Exercise) -> dict[Path, list[tuple]]:
    """Of each part of the result the pairs that differ, of all results; none of a part that is
    missing in one of them."""
    found: dict[Path, list[tuple]] = {}
    for record in failed:
        parts = {path: pair for path, *pair in _parts(record.outcome.value, record.expected)}
        if not parts:
            return {}
        for path, (got, want) in parts.items():
            if not same(got, want, rtol=exercise.rtol, atol=exercise.atol):
                found.setdefault(path, []).append((got, want, record))
    return found


# Of all wrong results --------------------------------------------------------------------


def _stale(records: tuple[Record, ...], failed: list[Record]) -> str:
    """Is each wrong result that of an earlier call?"""
    old: list[Any] = []  # the results expected of earlier calls
    again = set()
    for record in records:
        if record.fault == "value" and record.outcome.returned:
            value = record.outcome.value
            if not any(same(value, other) and not same(value, record.expected) for other in old):
                return ""
            again.add(pickle.dumps(value) if _telling(value) else b"")
        old.append(record.expected)
    if len(again - {b""}) < 2 or len(failed) < sum(record.fault == "value" for record in records):
        return ""
    return "Every wrong result is that of an earlier call: is something kept between calls?"


def _telling(value: Any) -> bool:
    """Is the value so special that nobody returns it by chance?"""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(p, np.ndarray) and len(np.unique(p)) > 2 for p in parts)


def _as_it_came_in(failed: list[Record], exercise: Exercise) -> str:
    """Is each wrong result one of the arguments?"""
    for name in exercise.parameters if len(failed) > 1 else ():
        given = [_argument(record, exercise, name) for record in failed]
        if max(map(size, given)) > 1 and all(
            isinstance(value, np.ndarray) and same(record.outcome.value, value)
            for record, value in zip(failed, given, strict=True)
        ):
            return f"The result is the argument `{name}`, as it came in."
    return ""


def _argument(record: Record, exercise: Exercise, name: str) -> Any:
    known = {**dict(zip(exercise.parameters, record.args, strict=False)), **record.kwargs}
    value = known.get(name)
    return plain(value) if is_tensor(value) else value


def _other_order(failed: list[Record]) -> str:
    """Are the parts of each result the right ones, in another order?"""
    count = len(failed[0].expected) if failed and isinstance(failed[0].expected, tuple) else 0
    if len(failed) < 2 or not 2 <= count <= 4:
        return ""
    for order in list(permutations(range(count)))[1:]:
        if all(
            isinstance(record.expected, tuple)
            and len(record.expected) == count
            and same(record.outcome.value, tuple(record.expected[i] for i in order))
            for record in failed
        ):
            return "The parts of the result come back in another order."
    return ""


def _right_parts(failed: list[Record], parts: dict[Path, list], exercise: Exercise) -> str:
    """Which of the named parts are right in all results, and which is not?"""
    wrong = {path[0] for path in parts if path}
    right = [name for index, name in enumerate(exercise.returns) if index not in wrong]
    if len(wrong) != 1 or not right or len(failed) < 2:
        return ""
    if any(len(r.outcome.value) != len(exercise.returns) for r in failed):
        return ""
    names = " and ".join(f"`{name}`" for name in right)
    verb = "is" if len(right) == 1 else "are"
    return f"{names} {verb} right every time; `{exercise.returns[wrong.pop()]}` is not."


# Of one result ---------------------------------------------------------------------------


def _look(got: Any, want: Any, weights: bool) -> str:
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or agree(got, want):
        return ""
    looks = [_leak, _row_sums, _one_key, _not_finite] if weights and want.ndim else [_not_finite]
    return next((text for text in (look(got, want) for look in looks) if text), "")


def _not_finite(got: np.ndarray, want: np.ndarray) -> str:
    if got.dtype.kind != "f" or want.dtype.kind not in "iuf" or not np.isfinite(want).all():
        return ""
    for name, bad in (("NaN", np.isnan(got)), ("infinite", np.isinf(got))):
        if bad.any():
            place = "" if not bad.ndim else "everywhere" if bad.all() else f"at {_index(bad)}"
            return f"The result is {name} {place}".rstrip() + "."
    return ""


def _leak(got: np.ndarray, want: np.ndarray) -> str:
    closed = (want == 0) & (got != 0) & np.isfinite(got)
    if want.ndim < 2 or not closed.any():
        return ""
    *batch, query, key = _index(closed)
    where = f" (batch {batch})" if batch else ""
    return f"Query {query} gives weight to key {key}, which should get none{where}."


def _row_sums(got: np.ndarray, want: np.ndarray) -> str:
    sums, right = got.sum(axis=-1), want.sum(axis=-1)
    wrong = np.abs(sums - right) > 1e-3
    if not wrong.any():
        return ""
    columns = got.ndim > 1 < got.shape[-2] and np.allclose(got.sum(axis=-2), 1)
    down = "; the columns sum to 1 instead" if columns else ""
    if got.ndim == 1:
        return f"What should sum to 1 sums to {sums:.4g}."
    return f"A row of weights sums to {sums[wrong][0]:.4g}, not to {right[wrong][0]:g}{down}."


def _one_key(got: np.ndarray, want: np.ndarray) -> str:
    hard, soft = (((x == 0) | (x == 1)).all() for x in (got, want))
    return "All the weight goes to a single one." if hard and not soft and got.any() else ""


def _distributions(records: tuple[Record, ...]) -> bool:
    """Is every result that is expected made of probabilities, whatever the exercise calls them?"""
    return all(
        isinstance(r.expected, np.ndarray)
        and r.expected.ndim > 0
        and r.expected.dtype.kind == "f"
        and np.allclose(r.expected.sum(axis=-1), 1, atol=1e-4)
        for r in records
    )


def _signs(records: tuple[Record, ...]) -> str:
    """Has a result a sign that no expected one has?"""
    expected = [r.expected for r in records if isinstance(r.expected, np.ndarray | float)]
    results = [r.outcome.value for r in records if r.outcome.returned]
    if len(expected) < len(records) or not all(isinstance(r, np.ndarray | float) for r in results):
        return ""
    with np.errstate(all="ignore"):
        low, high = (f(np.concatenate([np.ravel(e) for e in expected])) for f in (np.min, np.max))
        if low >= 0 and any(np.min(result, initial=0) < -1e-6 for result in results):
            return "Some results hold negative numbers; none should be."
        if high <= 0 and any(np.max(result, initial=0) > 1e-6 for result in results):
            return "Some results hold positive numbers; none should be."
    return ""


def _index(marks: np.ndarray) -> list[int]:
    return [int(i) for i in np.argwhere(marks)[0]]
