"""Is it an argument, or the length of one, by which the results are off?

Added, multiplied, or in the place of the temperature of a softmax: each sentence holds for all
results that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograde.diagnosis.arguments import known_arguments, leaves, name_of
from autograde.diagnosis.pairs import agree
from autograde.diagnosis.relations import ratio
from autograde.examination import Record
from autograde.exercise import Exercise
from autograde.values import is_tensor, plain

Wrong = tuple[Any, Any, Record]  # (got, expected, where)
NEAR = 1e-3
DIFFERENT = 3  # values of an argument that tell a multiple of it from chance

SUMS: dict[str, Callable[[Any, Any], Any]] = {  # what is expected, from the result and an argument
    "the expected one plus {}": lambda got, a: got - a,
    "the expected one minus {}": lambda got, a: got + a,
    "{} minus the expected one": lambda got, a: a - got,
    "the expected one times {}": lambda got, a: got / a,
    "the expected one divided by {}": lambda got, a: got * a,
}
POWERS = {
    1.0: "{}", 0.5: "the square root of {}", 2.0: "the square of {}",
    -1.0: "1 over {}", -0.5: "1 over the square root of {}", -2.0: "1 over the square of {}",
}  # fmt: skip


def by_argument(exercise: Exercise, wrong: list[Wrong], weights: bool = False) -> str:
    """How an argument accounts for what is wrong in one part of the results; or "".

    weights: is it made of weights or probabilities, whose softmax may be too sharp or too flat?
    """
    if len(wrong) < 2 or any(np.asarray(x).dtype.kind not in "iuf" for w in wrong for x in w[:2]):
        return ""
    given = [dict(_numbers(exercise, record)) for *_, record in wrong]
    names = [name for name in given[0] if all(name in each for each in given)]
    with np.errstate(all="ignore"):
        return (
            _sum(wrong, given, names)
            or _factor(wrong, given, names)
            or (_sharpness(wrong, given, names) if weights else "")
        )


def _numbers(exercise: Exercise, record: Record) -> Iterator[tuple[str, Any]]:
    """The arguments that are numbers or arrays of them, and the lengths of these."""
    for path, value in leaves(known_arguments(exercise, record)):
        value = plain(value) if is_tensor(value) else value
        name = name_of(path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "iuf":
                yield name, value
            for axis, place in ((-1, "last axis"), (-2, "last axis but one"), (0, "first axis")):
                if value.ndim >= max(-axis, axis + 1) and (axis or value.ndim > 2):
                    yield f"the length of the {place} of {name}", value.shape[axis]


def _sum(wrong: list[Wrong], given: list[dict], names: list[str]) -> str:
    for name in names:
        for words, undo in SUMS.items():
            if all(
                _right(got, want, undo, each[name])
                for (got, want, _), each in zip(wrong, given, strict=True)
            ):
                return f"The result is {words.format(name)}."
    return ""


def _right(got: Any, want: Any, undo: Callable, argument: Any) -> bool:
    got, want = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    if not np.isfinite(got).all() or np.shape(got) != np.shape(want):
        return False
    try:
        return agree(np.asarray(undo(got, argument)), want)
    except ValueError:  # shapes that do not fit
        return False


def _factor(wrong: list[Wrong], given: list[dict], names: list[str]) -> str:
    ratios = [ratio(np.asarray(got), np.asarray(want)) for got, want, _ in wrong]
    if not all(ratios):
        return ""
    name = _quantity(ratios, given, names)
    if name:
        return f"The result is the expected one times {name}."
    sizes = [np.size(want) for _, want, _ in wrong]
    if min(sizes) < 2 or max(sizes) < 3:
        return ""  # any number is a multiple of any other
    return "Each result is a multiple of the expected one; the factor differs from input to input."


def _quantity(numbers: list[float], given: list[dict], names: list[str]) -> str:
    """Which argument or length, or power of it, these numbers are."""
    for name in names:
        values = [each[name] for each in given]
        if any(np.ndim(value) or value <= 0 for value in values) or len(set(values)) < 2:
            continue
        multiples: dict[float, str] = {}
        for power, words in POWERS.items():
            found = numbers / np.array(values, dtype=float) ** power
            if np.allclose(found, 1, rtol=NEAR, atol=0):
                return words.format(name)
            if len(set(values)) >= DIFFERENT and np.allclose(found, found[0], rtol=NEAR, atol=0):
                factor, text = f"{found[0]:.4g}", words.format(name)
                over = text.replace("1 over", f"{factor} over", 1)
                multiples[power] = over if power < 0 else f"{factor} times {text}"
        if multiples:
            return multiples[min(multiples, key=abs)]
    return ""


def _sharpness(wrong: list[Wrong], given: list[dict], names: list[str]) -> str:
    """Are the weights those of a softmax of larger, or smaller, scores?"""
    found = [_power(np.asarray(got), np.asarray(want)) for got, want, _ in wrong]
    told = [(power, each) for power, each in zip(found, given, strict=True) if power]
    if len(told) < 2 or None in found or 2 * len(told) < len(found):
        return ""
    powers = [power for power, _ in told]
    name = _quantity(powers, [each for _, each in told], names)
    if np.allclose(powers, powers[0], rtol=NEAR, atol=0):
        name = f"{powers[0]:.4g}"
    if name:
        return f"These would be the right weights if all scores were multiplied by {name}."
    if min(powers) > 1:
        return "The weights are too sharp: as if all scores were larger."
    return "The weights are too flat: as if all scores were smaller." if max(powers) < 1 else ""


def _power(got: np.ndarray, want: np.ndarray) -> float | None:
    """By which number the logarithms are multiplied, but for what each row's sum takes out again;
    0 where no row tells, None where there is no such number."""
    if got.shape != want.shape or want.ndim < 1 or not np.isfinite(got).all():
        return None
    there = (want > 1e-12) & (got > 1e-12)
    lost = (np.maximum(got, want) > 1e-3) & ~there
    if agree(got, want) or (lost & (want != 0)).any():
        return 0.0  # rounded to 0: nothing can be told
    if lost.any():
        return None
    logs = [np.where(there, np.log(np.where(there, x, 1)), 0) for x in (got, want)]
    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    a, b = (np.where(there, x - x.sum(axis=-1, keepdims=True) / count, 0) for x in logs)
    if not (b * b).sum() > 1e-6:
        return None
    power = float((a * b).sum() / (b * b).sum())
    scaled = np.where(there, np.exp(power * logs[1]), 0)
    total = scaled.sum(axis=-1, keepdims=True)
    scaled = scaled / np.where(total == 0, 1, total)
    return power if abs(power - 1) > NEAR and np.allclose(scaled, got, atol=1e-4) else None
