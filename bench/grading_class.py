"""A class for the benchmark of graders: right and wrong answers of the bank, drawn with a seed."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from autograde.bank import correct_variants, misconceptions
from autograde.exercise import Exercise, chapters

EVERY = 32  # one student of so many hands in an endless loop
ENDLESS = "def {name}(*arguments, **more):\n    while True:\n        pass"


@dataclass(frozen=True)
class Student:
    """What one student hands in.

    answers: {exercise: the text of its cell}. right: {exercise: is it right?}; an answer that is
    right but calls one that is wrong is neither, and not in it.
    """

    name: str
    answers: dict[str, str]
    right: dict[str, bool]


class NotAlone(Exception):
    """An answer that uses what no notebook has."""


def drawn(assignment: str, number: int, endless: bool = True, seed: int = 0) -> list[Student]:
    """A class: each exercise is right or wrong by the toss of a coin.

    endless: the 32nd, 64th, ... student has an endless loop.
    The students of a smaller class are the first ones of a larger class.
    """
    exercises = chapters()[assignment]
    loop = next(e for e in exercises if not any(e.name in other.uses for other in exercises))
    found = []
    for i in range(number):
        rng = np.random.default_rng([seed, i])
        never = {loop.name} if endless and i % EVERY == EVERY - 1 else set()
        found.append(_student(f"student-{i + 1:03}", exercises, rng, never))
    return found


def _student(
    name: str, exercises: list[Exercise], rng: np.random.Generator, never: set[str]
) -> Student:
    answers, right, helpers = {}, {}, {}
    for exercise in exercises:
        is_right = bool(rng.integers(2))
        right_ones, wrong_ones = pools(exercise)
        pool = right_ones if is_right else wrong_ones
        chosen = pool[rng.integers(len(pool))]
        if any(helpers.get(key, text) != text for key, text in chosen.items()):
            is_right, chosen = True, right_ones[0]  # two helpers of one name
        helpers |= {key: text for key, text in chosen.items() if key != exercise.name}
        answers[exercise.name] = "\n\n".join(chosen.values())
        if exercise.name in never:
            is_right, answers[exercise.name] = False, ENDLESS.format(name=exercise.name)
        if not is_right or all(right.get(used) for used in exercise.uses):
            right[exercise.name] = is_right
    return Student(name, answers, right)


@cache
def pools(exercise: Exercise) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """(right answers, wrong answers), each as {name: source} of all that its cell defines."""
    mates = frozenset(each.name for each in chapters()[exercise.chapter])
    solved = {exercise.name: inspect.getsource(exercise.reference).rstrip()}
    right = _alone(exercise, mates, (a.function for a in correct_variants(exercise)))
    return [solved, *right], _alone(exercise, mates, (a.function for a in misconceptions(exercise)))


def _alone(
    exercise: Exercise, mates: frozenset[str], functions: Iterable[Callable]
) -> list[dict[str, str]]:
    found = []
    for function in functions:
        try:
            cell = _sources(function, mates - {exercise.name})
        except NotAlone:
            continue
        if exercise.name in cell:  # it mends or breaks the right answer
            continue
        found.append(cell | {exercise.name: f"{exercise.name} = {function.__name__}"})
    return found


def _sources(function: Any, mates: frozenset[str]) -> dict[str, str]:
    """{name: source} of a function of the bank and of all that it uses but `mates`."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        raise NotAlone from None
    if not isinstance(tree, ast.FunctionDef) or function.__closure__:
        raise NotAlone
    tree.decorator_list = []
    if ast.get_docstring(tree) and len(tree.body) > 1:
        del tree.body[0]  # it would tell the student what is wrong
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found: dict[str, str] = {}
    for name in sorted(used & set(function.__globals__) - mates - {function.__name__}):
        found |= _definition(name, function.__globals__[name], mates)
    return found | {function.__name__: ast.unparse(tree)}


def _definition(name: str, value: Any, mates: frozenset[str]) -> dict[str, str]:
    """The lines that bring one global name into a notebook."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    if isinstance(value, int | float | str | tuple) and not isinstance(value, type):
        return {name: f"{name} = {value!r}"}
    if isinstance(value, ModuleType) and not home.startswith("autograde"):
        return {name: f"import {home} as {name}"}
    if isinstance(value, FunctionType) and home.startswith("autograde"):
        if value.__name__ != name:
            raise NotAlone
        return _sources(value, mates)
    for place in filter(None, (home, "torch.nn.functional")):
        if not place.startswith("autograde") and getattr(import_module(place), name, 0) is value:
            return {name: f"from {place} import {name}"}
    raise NotAlone
