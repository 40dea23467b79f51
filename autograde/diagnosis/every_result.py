"""What may be true of all wrong results of a function, in a sentence each, or ""."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from autograde.diagnosis.arguments import known_arguments
from autograde.diagnosis.relations import only_there
from autograde.examination import Record
from autograde.exercise import Exercise
from autograde.recalled import digest
from autograde.values import differing, is_tensor, plain, same, size


def stale(records: tuple[Record, ...], failed: list[Record]) -> str:
    """Is each wrong result that of an earlier call?"""
    old: list[Any] = []  # the results expected of earlier calls
    again = set()
    for record in records:
        if record.fault == "value" and record.outcome.returned:
            value = record.outcome.value
            if not any(same(value, other) and not same(value, record.expected) for other in old):
                return ""
            again.add(digest(value) if _telling(value) else b"")
        old.append(record.expected)
    if len(again - {b""}) < 2 or len(failed) < sum(record.fault == "value" for record in records):
        return ""
    return "Every wrong result is that of an earlier call: is something kept between calls?"


def _telling(value: Any) -> bool:
    """Is the value so special that nobody returns it by chance?"""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(p, np.ndarray) and len(np.unique(p)) > 2 for p in parts)


def as_it_came_in(failed: list[Record], right: list[Record], exercise: Exercise) -> str:
    """Is each wrong result one of the arguments?"""

    def is_argument(record: Record, name: str) -> bool:
        value = _argument(record, exercise, name)
        return isinstance(value, np.ndarray) and same(record.outcome.value, value, atol=0)

    for name in exercise.parameters if len(failed) > 1 else ():
        largest = max(size(_argument(record, exercise, name)) for record in failed)
        if largest > 1 and all(is_argument(record, name) for record in failed):
            words = f"The result is the argument `{name}`, as it came in."
            always = all(is_argument(record, name) for record in right)
            return words if always else only_there(words)
    return ""


def partly_as_it_came_in(failed: list[Record], exercise: Exercise) -> str:
    """Do the results hold, wherever they are wrong, what an argument holds there?"""

    def unchanged(record: Record, name: str) -> float | None:
        """How large the numbers are that were left as they are; None if not all were."""
        got, want, value = record.outcome.value, record.expected, _argument(record, exercise, name)
        if not all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in (got, want, value)):
            return None
        if not got.shape == want.shape == value.shape:
            return None
        wrong = differing(got, want)
        alike = not differing(got[wrong], value[wrong]).any()
        return float(np.abs(value[wrong]).max(initial=0)) if alike else None

    for name in exercise.parameters if len(failed) > 1 else ():
        found = [unchanged(record, name) for record in failed]
        if None not in found and 2 * np.count_nonzero(found) > len(found):
            return f"Where the result is wrong, the numbers of `{name}` stand there, unchanged."
    return ""


def _argument(record: Record, exercise: Exercise, name: str) -> Any:
    value = known_arguments(exercise, record).get(name)
    return plain(value) if is_tensor(value) else value


def other_order(failed: list[Record]) -> str:
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


def entries(failed: list[Record], exercise: Exercise) -> str:
    """Of lists, as of pairs: is something missing, or is there something besides?"""
    both = [(r.outcome.value, r.expected) for r in failed]
    kinds = all(isinstance(x, tuple) and all(map(_plain, x)) for pair in both for x in pair)
    if len(both) < 2 or exercise.returns or not kinds:
        return ""
    if all(set(got) > set(want) for got, want in both):
        return "All that is expected is there, and something besides."
    if all(set(got) < set(want) for got, want in both):
        return "Something is missing; all that is there is right."
    return ""


def _plain(entry: Any) -> bool:
    """Is it a number, or a tuple of numbers?"""
    parts = entry if isinstance(entry, tuple) else (entry,)
    return all(isinstance(part, bool | int | float) for part in parts)


def right_parts(failed: list[Record], parts: dict[tuple, list], exercise: Exercise) -> str:
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


def signs(records: tuple[Record, ...]) -> str:
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
