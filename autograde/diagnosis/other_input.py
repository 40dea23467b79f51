"""Are the results right for another input? That is what many a slip comes down to.

An argument may be ignored, taken for another, or be used the wrong way round: then every result
is what the reference gives when that argument is exchanged. Each sentence here has been tried
on every input, and is true of all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np

from autograde.bank import Answer
from autograde.calls import call
from autograde.diagnosis.arguments import known_arguments
from autograde.diagnosis.changes import COUNTING, Change, changes
from autograde.examination import Examination, Record
from autograde.exercise import Exercise
from autograde.recalled import arguments, recalled
from autograde.values import same, size

QUICK = 0.1  # seconds of one call; what trains is not called again and again
TELLING = 4  # results with fractions that a mistake on another input must explain
TRIALS = 1000  # of a misconception with a change, on one small input
# {(change, record), by their ids: (changed arguments, what stands for them, change, record)}
Made = dict[tuple[int, int], tuple]


def other_input(examination: Examination) -> str:
    """What would have to be true of the arguments for all results to be right; or ""."""
    exercise, records = examination.exercise, _usable(examination)
    found = (
        words
        for words, change in changes(exercise, records)
        if all(_does(exercise, exercise.reference, change, record) for record in records)
    )
    words = next(found, "")
    return f"Every result would be right if {words}." if words else ""


def mistaken_on_other_input(
    examination: Examination, answers: Iterable[Answer]
) -> tuple[Answer, str] | None:
    """(a misconception, words) such that all results are what it gives if these words were true.

    Both must be needed, and only results with fractions speak for it: others agree by chance. A
    change that only counts, such as a sign, is left out: two of them can cancel.
    """
    exercise, records = examination.exercise, _usable(examination)
    failed = [r for r in records if r.fault == "value"]
    telling = [r for r in failed if has_fractions(r.outcome.value)]
    # What is said of code that was given broken speaks of all of it.
    if len(telling) < TELLING or exercise.broken or other_input(examination):
        return None
    tried = [each for each in changes(exercise, records) if not each[0].endswith(COUNTING)]
    answers = list(answers)
    if len(answers) * len(tried) > TRIALS:
        tried = [each for each in tried if "place" not in each[0]]  # not in pairs
    made: Made = {}
    for answer, (words, change) in islice(product(answers, tried), TRIALS):
        does = partial(_does, exercise, answer.function, made=made)
        if (
            does(change, telling[0])
            and all(does(change, record) for record in records)
            and _wrong(exercise, answer.function, failed) >= TELLING
            and sum(not does(dict, record) for record in failed) >= TELLING
            and sum(not _does(exercise, exercise.reference, change, r) for r in failed) >= TELLING
        ):
            return answer, f"The results are as if {words}."
    return None


def _wrong(exercise: Exercise, function: Callable, records: list[Record]) -> int:
    """On how many of these inputs does a function give a wrong result, as they are?"""
    seen = (recalled(function, r.args, r.kwargs, False, r.given) for r in records)
    outcomes = zip(seen, (r.expected for r in records), strict=True)
    return sum(
        seen.returned and not same(seen.value, expected, rtol=exercise.rtol, atol=exercise.atol)
        for seen, expected in outcomes
    )


def _usable(examination: Examination) -> list[Record]:
    """The records to try a change on, the small failed ones first; none if it cannot be tried."""
    exercise = examination.exercise
    if exercise.secret or exercise.many_right:
        return []
    failed = [r for r in examination.records if r.fault == "value" and r.limit is None]
    rest = [r for r in examination.records if r.fault != "value" and r.limit is None]
    if len(failed) < 2 or 2 * sum(r.outcome.returned for r in failed) < len(failed):
        return []
    records = [*sorted(failed, key=lambda record: size(record.args)), *rest]
    start = time.process_time()
    call(exercise.reference, records[0].args, records[0].kwargs)
    return records if time.process_time() - start < QUICK else []


def _does(
    exercise: Exercise, function: Callable, change: Change, record: Record, made: Made | None = None
) -> bool:
    """Was what was seen on this input what `function` does on the changed one?

    made: where changed arguments are kept, for the next function.
    """
    args, given, *_ = _changed(exercise, change, record, {} if made is None else made)
    if args is None:
        return False
    theirs = recalled(function, args, {}, False, given)
    if not theirs.returned:
        return not record.outcome.returned  # it need not fail with the same error
    return record.outcome.returned and same(
        record.outcome.value, theirs.value, exercise.exact_dtype, exercise.rtol, exercise.atol
    )


def _changed(exercise: Exercise, change: Change, record: Record, made: Made) -> tuple:
    key = id(change), id(record)  # which live as long as `made`, for they are in it
    if key not in made:
        try:
            args = tuple(change(known_arguments(exercise, record)).values())
        except Exception:  # there is no such value in this call, or it cannot be changed so
            args = None
        made[key] = (args, None if args is None else arguments(args, {}), change, record)
    return made[key]


def has_fractions(value: Any) -> bool:
    """Does a part of a result hold several numbers that are not whole?"""
    if isinstance(value, tuple):
        return any(map(has_fractions, value))
    numbers = np.ravel(value) if isinstance(value, np.ndarray | float) else np.zeros(0)
    if numbers.dtype.kind != "f":
        return False
    numbers = numbers[np.isfinite(numbers)]
    return len(np.unique(numbers[numbers != np.round(numbers)])) >= 2
