"""On which inputs does a function fail? One trait that tells them apart, if there is one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from autograde.diagnosis.arguments import get, known_arguments, leaves, lists, name_of
from autograde.examination import Examination, Record
from autograde.exercise import Exercise
from autograde.specimens import Specimen
from autograde.values import is_tensor, plain

LARGE, LONG = 50, 100
FEW = 3  # right results without a trait that are too few to say "only with it"


def pattern(examination: Examination, fallback: bool = False) -> str:
    """The trait that every input has that gave a wrong result, and no other input; or "".

    fallback: where there is none, a trait that all of these have and that some others have, too.
    """
    exercise = examination.exercise
    wrong = [traits(exercise, r) for r in examination.records if r.fault == "value"]
    right = [traits(exercise, r) for r in examination.records if r.fault != "value"]
    if len(wrong) < 2 or len(right) < 2:
        return ""
    shared = [trait for trait in wrong[0] if all(trait in each for each in wrong)]
    having = {trait: sum(trait in each for each in right) for trait in shared}
    telling = [trait for trait in shared if not having[trait]]
    if telling:
        first = next((trait for trait in TRAITS if trait in telling), telling[0])
        return f"Of the inputs tried, it is wrong exactly for {first}."
    shared = [trait for trait in shared if len(right) - having[trait] >= FEW]
    if not shared or not fallback:
        return ""
    rarest = min(shared, key=lambda trait: having[trait])
    return f"Of the inputs tried, it is wrong only for {rarest}, though not for all of these."


def traits(exercise: Exercise, record: Record) -> dict[str, None]:
    """What is true of the arguments of a call, in words; the more telling first."""
    known = known_arguments(exercise, record)
    known = {name: plain(value) if is_tensor(value) else value for name, value in known.items()}
    general = (trait for trait, holds in TRAITS.items() if holds(known))
    optional = inspect.signature(exercise.reference).parameters
    given = (
        f"calls with `{name}`"
        for name, value in known.items()
        if optional[name].default is None and value is not None
    )
    return dict.fromkeys([*general, *given, *_special(known)])


# Of any exercise -------------------------------------------------------------------------

TRAITS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "queries that have no allowed key": lambda known: _blind(known.get("allowed")),
    "inputs that hold inf or NaN": lambda known: any(
        not np.isfinite(a).all() for a in _floats(known)
    ),
    "inputs with batch axes": lambda known: any(a.ndim > 2 for a in _arrays(known)),
    "more keys than queries": lambda known: _surplus(known) > 0,
    "fewer keys than queries": lambda known: _surplus(known) < 0,
    "different numbers of queries and keys": lambda known: _surplus(known) != 0,
    "float32 inputs": lambda known: any(a.dtype == np.float32 for a in _floats(known)),
    f"inputs with a number of {LARGE} or more": lambda known: any(
        _large(a) for a in _floats(known)
    ),
    f"{LONG} and more positions": lambda known: _longest(known) >= LONG,
}


def _arrays(known: dict[str, Any]) -> list[np.ndarray]:
    return [value for value in known.values() if isinstance(value, np.ndarray)]


def _floats(known: dict[str, Any]) -> list[np.ndarray]:
    return [array for array in _arrays(known) if array.dtype.kind == "f"]


def _large(array: np.ndarray) -> bool:
    return bool((np.abs(array[np.isfinite(array)]) >= LARGE).any())


def _blind(allowed: Any) -> bool:
    return isinstance(allowed, np.ndarray) and not allowed.any(axis=-1).all()


def _surplus(known: dict[str, Any]) -> int:
    """Keys minus queries; 0 where the arguments do not say."""
    if isinstance(known.get("n_query"), int):
        keys = known.get("n_key")
        return 0 if keys is None else keys - known["n_query"]
    if all(isinstance(known.get(name), np.ndarray) for name in "qk"):
        return known["k"].shape[-2] - known["q"].shape[-2]
    if "allowed" not in known:
        return 0  # rows and columns of other arrays need not be queries and keys
    scores = known.get("scores", known["allowed"])
    matrix = isinstance(scores, np.ndarray) and scores.ndim > 1
    return scores.shape[-1] - scores.shape[-2] if matrix else 0


def _longest(known: dict[str, Any]) -> int:
    sizes = [size for array in _arrays(known) for size in array.shape]
    return max([*sizes, *(value for value in known.values() if isinstance(value, int))], default=0)


# Of one exercise: its own arguments ------------------------------------------------------


def _special(known: dict[str, Any]) -> Iterator[str]:
    for path in lists(known):
        entries = get(known, path)
        if len(entries) > 1:
            yield f"{name_of(path)} of more than one entry"
        if all(type(entry) in (int, float) for entry in entries):
            if len(set(entries)) > 1:
                yield f"{name_of(path)} with different numbers in it"
            if 0 in entries:
                yield f"{name_of(path)} with a 0 in it"
    values = {name_of(path): value for path, value in leaves(known)}
    for name, value in values.items():
        if value is None:
            yield f"calls without {name}"
        elif isinstance(value, bool | str | Specimen):
            yield f"{name} = {value!r}"
        elif isinstance(value, int | float):
            yield from _of_number(name, value)
        elif isinstance(value, np.ndarray):
            yield from _of_array(name, value)
    whole = {name: value for name, value in values.items() if type(value) is int}
    for a, b in permutations(whole, 2):
        if whole[a] > whole[b]:
            yield f"{a} greater than {b}"
        if whole[b] > 0 and whole[a] % whole[b]:
            yield f"{a} that is no multiple of {b}"
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    for (a, x), (b, y) in permutations(arrays.items(), 2):
        if x.ndim and y.ndim and x.shape[-1] > y.shape[-1]:
            yield f"{a} with a longer last axis than {b}"
        if x.ndim > y.ndim:
            yield f"{a} with more axes than {b}"


def _of_number(name: str, value: float) -> Iterator[str]:
    if value == 0:
        yield f"{name} = 0"
    if value != 1:
        yield f"{name} other than 1"
    if value > 1:
        yield f"{name} greater than 1"
    if value < 0:
        yield f"{name} below 0"


def _of_array(name: str, value: np.ndarray) -> Iterator[str]:
    places = ("last axis", "last axis but one", "last axis but two")
    for axis, place in enumerate(places[: value.ndim], start=1):
        if value.shape[-axis] > 1:
            yield f"{name} whose {place} is longer than 1"
    if value.dtype == bool:
        if not value.all():
            yield f"{name} with a False in it"
    elif value.size:
        if value.max() < 0:
            yield f"{name} with negative numbers only"
        if (value == 0).any():
            yield f"{name} with a 0 in it"
        if value.ndim == 1 and len(np.unique(value)) < value.size:
            yield f"{name} with equal numbers"
    else:
        yield f"an empty {name}"
