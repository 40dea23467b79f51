"""What can be said of wrong results when no known mistake explains them.

Each sentence must be true of what was seen, whatever the code was that made it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograde.diagnosis.by_argument import by_argument
from autograde.diagnosis.every_result import (
    as_it_came_in,
    entries,
    other_order,
    partly_as_it_came_in,
    right_parts,
    signs,
    stale,
)
from autograde.diagnosis.inside import WEIGHTS, inside
from autograde.diagnosis.one_result import look
from autograde.diagnosis.other_input import other_input
from autograde.diagnosis.pairs import agree
from autograde.diagnosis.places import where
from autograde.diagnosis.relations import relation, rough_relation, weak_relation
from autograde.diagnosis.rows import by_keys
from autograde.examination import Examination, Finding, Record
from autograde.exercise import Exercise
from autograde.values import Mismatch, conform, same

Path = tuple[Any, ...]  # of a part in a result: () for the whole, (0,) for the first of a tuple


def observe(examination: Examination, finding: Finding) -> str:
    """One true sentence about how the results relate to what was expected, or "".

    What is said of the function as a whole holds for every result that was wrong; what is
    said of a single result is said of `finding.got`, which the student is shown.
    """
    exercise, records = examination.exercise, examination.records
    if exercise.secret or exercise.many_right:
        return ""
    failed = [r for r in records if r.fault == "value" and r.outcome.returned]
    fine = [r for r in records if r.fault != "value" and r.outcome.returned]
    parts, right = _parts_of_all(failed, exercise), _parts_of_all(fine, exercise, wrong=False)
    pairs, right = (
        {path: [(got, want) for got, want, _ in some] for path, some in each.items()}
        for each in (parts, right)
    )
    shown = {path: (got, want) for path, got, want in _parts(finding.got, finding.expected)}
    weights = [(), (exercise.weights_at,)] if exercise.weights_at is not None else []
    scored = list(weights)
    # Then how the weights are made is not the question.
    well_weighed = exercise.weights_at and bool(parts) and (exercise.weights_at,) not in parts
    weights += [()] if _distributions(records) else []

    def of_parts(sentence: Callable, values: dict[Path, Any]) -> str:
        """The first sentence there is, with the name of the part that it speaks of."""
        found = ((path, sentence(path, value)) for path, value in values.items())
        path, text = next((each for each in found if each[1]), ((), ""))
        return f"In {_name(exercise, path)}: {text}" if path and text else text

    return (
        stale(records, failed)
        or as_it_came_in(failed, fine, exercise)
        or other_order(failed)
        or entries(failed, exercise)
        or of_parts(lambda path, pairs: relation(pairs, right.get(path, ())), pairs)
        or other_input(examination)
        or of_parts(lambda path, wrong: by_argument(exercise, wrong, path in weights), parts)
        or of_parts(lambda path, pair: look(*pair, weights=path in weights), shown)
        or _inside(exercise, failed)
        or partly_as_it_came_in(failed, exercise)
        or signs(records)
        or of_parts(lambda _, wrong: by_keys(exercise, wrong), {} if well_weighed else parts)
        or of_parts(lambda _, pairs: rough_relation(pairs), pairs)
        or of_parts(lambda _, pairs: f"{where(pairs)} {weak_relation(pairs)}".strip(), pairs)
        or of_parts(lambda path, pairs: _softmaxed(pairs) if path in scored else "", pairs)
        or right_parts(failed, parts, exercise)
        or of_parts(lambda _, pairs: _nan_aside(pairs), pairs)
    )


def _inside(exercise: Exercise, failed: list[Record]) -> str:
    """What is seen in a step inside the function, worked back from the results."""
    for name, wrong in inside(exercise, failed).items():
        wrong = [(got, want, record) for got, want, record in wrong if not agree(got, want)]
        pairs = [(got, want) for got, want, _ in wrong]
        weights = name == WEIGHTS
        text = (
            relation(pairs)
            or by_argument(exercise, wrong, weights)
            or rough_relation(pairs)
            or (where(pairs) if weights else "")  # rows are as wrong inside as in the result
            or weak_relation(pairs)
            or (_softmaxed(pairs) if weights and pairs else "")
        )
        if text:
            return f"In {name}, where they can be worked back from the results: {text}"
        text = look(*pairs[0], weights=True, axes="batch and head") if weights and pairs else ""
        if text:
            return f"In {name}, as worked back from one result: {text}"
    return ""


def _nan_aside(pairs: list) -> str:
    """That some results hold NaN; and what is true of those that do not."""
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    rest = [(got, want) for got, want in pairs if not (_nan(got) and not _nan(want))]
    if len(rest) == len(pairs):
        return ""
    text = relation(rest) or rough_relation(rest) or f"{where(rest)} {weak_relation(rest)}"
    others = f" Of the others: {text.strip()}" if text.strip() else ""
    return f"Some results hold NaN that should not.{others}"


def _nan(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _softmaxed(pairs: list) -> str:
    """Are the weights those of a softmax, only of other scores?"""
    for got, want in pairs:
        got, want = np.asarray(got), np.asarray(want)
        alike = got.shape == want.shape and np.allclose(got.sum(axis=-1), want.sum(axis=-1))
        if not alike or (got < 0).any():
            return ""
    return "Each row of weights sums to what it should; look at the scores that they are made of."


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


def _parts_of_all(
    records: list[Record], exercise: Exercise, wrong: bool = True
) -> dict[Path, list[tuple]]:
    """Of each part of the result the pairs that differ (or agree), of all results; none of a part
    that is missing in one of them."""
    found: dict[Path, list[tuple]] = {}
    for record in records:
        parts = {path: pair for path, *pair in _parts(record.outcome.value, record.expected)}
        if not parts:
            return {}
        for path, (got, want) in parts.items():
            if same(got, want, rtol=exercise.rtol, atol=exercise.atol) != wrong:
                found.setdefault(path, []).append((got, want, record))
    return found


def _distributions(records: tuple[Record, ...]) -> bool:
    """Is every result that is expected made of probabilities, whatever the exercise calls them?"""
    return all(
        isinstance(r.expected, np.ndarray)
        and r.expected.ndim > 0
        and r.expected.dtype.kind == "f"
        and np.allclose(r.expected.sum(axis=-1), 1, atol=1e-4)
        for r in records
    )
