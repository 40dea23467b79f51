"""Changes of a call's arguments, in words and as functions: which input would it have to be?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np

from autograde.diagnosis.arguments import (
    Known,
    Path,
    get,
    known_arguments,
    leaves,
    lists,
    name_of,
    put,
)
from autograde.examination import Record
from autograde.exercise import Exercise
from autograde.values import is_bfloat16, is_tensor, numbers_of

Change = Callable[[Known], Known]

MANY = 40  # values in one call; beyond, exchanging them in pairs takes too long


def changes(exercise: Exercise, records: list[Record]) -> Iterator[tuple[str, Change]]:
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
        kinds |= dict.fromkeys(lists(known_arguments(exercise, record)), "list")
    if len(kinds) <= MANY:
        alike = [
            (a, b) for a, b in permutations(kinds, 2) if kinds[a] == kinds[b] not in ("", "list")
        ]
        for a, b in combinations(kinds, 2):
            if (a, b) in alike:
                yield f"{name_of(a)} and {name_of(b)} had changed places", _swap(a, b)
        for a, b in alike:
            yield f"{name_of(b)} stood in the place of {name_of(a)}", _replace(a, b)
    for path, kind in kinds.items():
        for words, change in CHANGES.get(kind, {}).items():
            yield f"{name_of(path)} were {words}", _set(path, change)


def _kind(value: Any) -> str:
    """Of what sort it is; values of one sort may stand for each other. "" of what has no sort."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.kind}"
    if is_tensor(value):
        return "" if is_bfloat16(value) else f"array {numbers_of(value).dtype.kind}"
    kinds = {bool: "bool", int: "int", float: "float"}
    return kinds.get(type(value), "")


def _swap(a: Path, b: Path) -> Change:
    return lambda known: put(put(known, a, get(known, b)), b, get(known, a))


def _replace(a: Path, b: Path) -> Change:
    return lambda known: put(known, a, get(known, b))


def _set(path: Path, change: Callable[[Any], Any]) -> Change:
    def changed(known: Known) -> Known:
        value = get(known, path)
        if value is None:
            return known
        if not is_tensor(value):
            return put(known, path, change(value))
        new = np.array(change(numbers_of(value)), order="C")  # PyTorch takes no negative strides
        return put(known, path, value.new_tensor(new, dtype=value.dtype))

    return changed


def _turned(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


def _backwards(array: np.ndarray) -> np.ndarray:
    return np.flip(array, axis=-2 if array.ndim > 1 else -1)


def _first_axis_backwards(array: np.ndarray) -> np.ndarray:
    return np.flip(array, axis=0) if array.ndim else array


def _first_sample(array: np.ndarray) -> np.ndarray:
    return np.broadcast_to(array[:1], array.shape) if array.ndim > 2 else array


def _identity(array: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(*array.shape[-2:], dtype=array.dtype), array.shape)


# Two of them, or one and a mistake, can cancel.
COUNTING = (
    "larger by one", "smaller by one", "shifted by one place to the left",
    "shifted by one place to the right",
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
        "in the opposite order along its first axis": _first_axis_backwards,
        "twice what it is": lambda array: 2 * array,
        "half of what it is": lambda array: array / 2,
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
        "in the opposite order along its first axis": _first_axis_backwards,
        "twice what it is": lambda array: 2 * array,
        "half of what it is": lambda array: array // 2,
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
    "list": {
        "without its last entry": lambda entries: entries[:-1],
        "without its first entry": lambda entries: entries[1:],
        "in the opposite order": lambda entries: entries[::-1],
        "there twice, one after the other": lambda entries: entries * 2,
    },
}
