"""Are the results right for another input? That is what many a slip comes down to.

An argument may be ignored, taken for another, or be used the wrong way round: then every result
is what the reference gives when that argument is exchanged. Each sentence here has been tried
on every input, and is true of all of them.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations, islice, permutations, product
from typing import Any

import numpy as np

from autograde.bank import Answer
from autograde.calls import call
from autograde.examination import Examination, Record
from autograde.exercise import Exercise
from autograde.values import is_bfloat16, is_tensor, numbers_of, same, size

Known = dict[str, Any]  # the arguments of a call by name
Path = tuple[Any, ...]  # where a value stands in them: ("params", "w_q")
Change = Callable[[Known], Known]

QUICK = 0.1  # seconds of one call; what trains is not called again and again
TELLING = 4  # results with fractions that a mistake on another input must explain
TRIALS = 1000  # of a misconception with a change, on one small input
MANY = 40  # values in one call; beyond, exchanging them in pairs takes too long


def other_input(examination: Examination) -> str:
    """What would have to be true of the arguments for all results to be right; or ""."""
    exercise, records = examination.exercise, _usable(examination)
    found = (
        words
        for words, change in _changes(exercise, records)
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
    changes = [each for each in _changes(exercise, records) if not each[0].endswith(COUNTING)]
    answers = list(answers)
    if len(answers) * len(changes) > TRIALS:
        changes = [each for each in changes if "place" not in each[0]]  # not in pairs
    for answer, (words, change) in islice(product(answers, changes), TRIALS):
        does = partial(_does, exercise, answer.function)
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
    outcomes = ((call(function, r.args, r.kwargs), r.expected) for r in records)
    return sum(
        seen.returned and not same(seen.value, expected, rtol=exercise.rtol, atol=exercise.atol)
        for seen, expected in outcomes
    )


def _usable(examination: Examination) -> list[Record]:
    """The records to try a change on, the small failed ones first; none if it cannot be tried."""
    exercise = examination.exercise
    if exercise.secret:
        return []
    failed = [r for r in examination.records if r.fault == "value" and r.limit is None]
    rest = [r for r in examination.records if r.fault != "value" and r.limit is None]
    if len(failed) < 2 or 2 * sum(r.outcome.returned for r in failed) < len(failed):
        return []
    records = [*sorted(failed, key=lambda record: size(record.args)), *rest]
    start = time.process_time()
    call(exercise.reference, records[0].args, records[0].kwargs)
    return records if time.process_time() - start < QUICK else []


def _does(exercise: Exercise, function: Callable, change: Change, record: Record) -> bool:
    """Was what was seen on this input what `function` does on the changed one?"""
    try:
        arguments = tuple(change(known_arguments(exercise, record)).values())
    except Exception:  # there is no such value in this call, or it cannot be changed in this way
        return False
    theirs = call(function, arguments, {})
    if not theirs.returned:
        return not record.outcome.returned  # it need not fail with the same error
    return record.outcome.returned and same(
        record.outcome.value, theirs.value, exercise.exact_dtype, exercise.rtol, exercise.atol
    )


def has_fractions(value: Any) -> bool:
    """Does a part of a result hold several numbers that are not whole?"""
    if isinstance(value, tuple):
        return any(map(has_fractions, value))
    numbers = np.ravel(value) if isinstance(value, np.ndarray | float) else np.zeros(0)
    if numbers.dtype.kind != "f":
        return False
    numbers = numbers[np.isfinite(numbers)]
    return len(np.unique(numbers[numbers != np.round(numbers)])) >= 2


def known_arguments(exercise: Exercise, record: Record) -> Known:
    """The arguments of a call by name, the defaults included."""
    given = inspect.signature(exercise.reference).bind_partial(*record.args, **record.kwargs)
    given.apply_defaults()
    return given.arguments


def _changes(exercise: Exercise, records: list[Record]) -> Iterator[tuple[str, Change]]:
    """(what is changed, in words; the change of the arguments)"""
    if not records:
        return
    signature = inspect.signature(exercise.reference).parameters
    for name, parameter in signature.items():
        if parameter.default is not parameter.empty:
            yield f"`{name}` were not given", _set((name,), lambda _, d=parameter.default: d)
    kinds: dict[Path, str] = {}
    for record in records:
        for path, value in leaves(known_arguments(exercise, record)):
            kinds[path] = kinds.get(path) or _kind(value)  # an optional one may be None first
    if len(kinds) <= MANY:
        alike = [(a, b) for a, b in permutations(kinds, 2) if kinds[a] == kinds[b] != ""]
        for a, b in combinations(kinds, 2):
            if (a, b) in alike:
                yield f"{name_of(a)} and {name_of(b)} had changed places", _swap(a, b)
        for a, b in alike:
            yield f"{name_of(b)} stood in the place of {name_of(a)}", _replace(a, b)
    for path, kind in kinds.items():
        for words, change in CHANGES.get(kind, {}).items():
            yield f"{name_of(path)} were {words}", _set(path, change)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of everything that stands in dicts and tuples of arguments."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, tuple | list) and path:
        parts = enumerate(value)
    else:
        yield path, value
        return
    for key, part in parts:
        yield from leaves(part, (*path, key))


def name_of(path: Path) -> str:
    """A value among the arguments as one would write it in Python."""
    first, *rest = path
    return f"`{first}{''.join(f'[{key!r}]' for key in rest)}`"


def _kind(value: Any) -> str:
    """Of what sort it is; values of one sort may stand for each other. "" of what has no sort."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.kind}"
    if is_tensor(value):
        return "" if is_bfloat16(value) else f"array {numbers_of(value).dtype.kind}"
    kinds = {bool: "bool", int: "int", float: "float"}
    return kinds.get(type(value), "")


# Changing one value ----------------------------------------------------------------------


def _get(known: Any, path: Path) -> Any:
    for key in path:
        known = known[key]
    return known


def _put(known: Any, path: Path, value: Any) -> Any:
    """A copy of the arguments with another value there."""
    if not path:
        return value
    key, *rest = path
    parts = dict(known) if isinstance(known, dict) else list(known)
    parts[key] = _put(known[key], tuple(rest), value)
    return tuple(parts) if isinstance(known, tuple) else parts


def _swap(a: Path, b: Path) -> Change:
    return lambda known: _put(_put(known, a, _get(known, b)), b, _get(known, a))


def _replace(a: Path, b: Path) -> Change:
    return lambda known: _put(known, a, _get(known, b))


def _set(path: Path, change: Callable[[Any], Any]) -> Change:
    def changed(known: Known) -> Known:
        value = _get(known, path)
        if value is None:
            return known
        if not is_tensor(value):
            return _put(known, path, change(value))
        new = np.ascontiguousarray(change(numbers_of(value)))
        return _put(known, path, value.new_tensor(new, dtype=value.dtype))

    return changed


def _turned(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


def _backwards(array: np.ndarray) -> np.ndarray:
    return np.flip(array, axis=-2 if array.ndim > 1 else -1)


def _first_sample(array: np.ndarray) -> np.ndarray:
    return np.broadcast_to(array[:1], array.shape) if array.ndim > 2 else array


def _identity(array: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(*array.shape[-2:], dtype=array.dtype), array.shape)


COUNTING = (
    "of the opposite sign", "all zeros", "all ones", "its reciprocal", "its square",
    "its square root", "its negative", "twice what it is", "half of what it is",
)  # fmt: skip
CHANGES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "array f": {
        "all zeros": np.zeros_like,
        "all ones": np.ones_like,
        "the identity matrix": _identity,
        "transposed": _turned,
        "of the opposite sign": np.negative,
        "in the opposite order": _backwards,
        "the same for the whole batch as for its first sample": _first_sample,
    },
    "array b": {
        "True everywhere": np.ones_like,
        "False everywhere": np.zeros_like,
        "the opposite of what it is": np.logical_not,
        "transposed": _turned,
        "the same for the whole batch as for its first sample": _first_sample,
    },
    "array i": {
        "larger by one": lambda array: array + 1,
        "smaller by one": lambda array: array - 1,
        "all zeros": np.zeros_like,
        "in the opposite order": np.flip,
        "shifted by one place to the left": lambda array: np.roll(array, -1, axis=-1),
        "shifted by one place to the right": lambda array: np.roll(array, 1, axis=-1),
    },
    "int": {
        "larger by one": lambda number: number + 1,
        "smaller by one": lambda number: number - 1,
        "0": lambda number: 0,
        "1": lambda number: 1,
        "twice what it is": lambda number: 2 * number,
        "half of what it is": lambda number: number // 2,
    },
    "float": {
        "0": lambda number: 0.0,
        "1": lambda number: 1.0,
        "its reciprocal": lambda number: 1 / number,
        "its square": lambda number: number**2,
        "its square root": lambda number: abs(number) ** 0.5,
        "its negative": lambda number: -number,
    },
    "bool": {
        "True": lambda value: True,
        "False": lambda value: False,
        "the opposite of what it is": lambda value: not value,
    },
}
