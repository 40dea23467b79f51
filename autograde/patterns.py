"""On which inputs does a function fail? One trait that tells them all apart, if there is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograde.examination import Examination, Record
from autograde.values import is_tensor, plain

LARGE, LONG = 50, 100


def pattern(examination: Examination) -> str:
    """The trait that every input has that gave a wrong result, and no other input; or ""."""
    wrong = [traits(examination, r) for r in examination.records if r.fault == "value"]
    right = [traits(examination, r) for r in examination.records if r.fault != "value"]
    if len(wrong) < 2 or len(right) < 2:
        return ""
    telling = set.intersection(*wrong) - set.union(*right)
    trait = next((trait for trait in TRAITS if trait in telling), "")
    return f"Of the inputs tried, it is wrong exactly for {trait}." if trait else ""


TRAITS = {
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


def traits(examination: Examination, record: Record) -> set[str]:
    """What is true of a record's arguments, in words."""
    names = examination.exercise.parameters
    known = {**dict(zip(names, record.args, strict=False)), **record.kwargs}
    known = {name: plain(value) if is_tensor(value) else value for name, value in known.items()}
    return {trait for trait, holds in TRAITS.items() if holds(known)}


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
