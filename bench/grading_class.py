"""A class for the benchmark of graders: right and wrong answers of the bank, drawn with a seed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from autograde.bank import correct_variants, misconceptions
from autograde.exercise import Exercise, chapters
from autograde.grading.sample_class import ENDLESS
from autograde.standalone import NotAlone, sources

EVERY = 32  # one student of so many hands in an endless loop


@dataclass(frozen=True)
class Student:
    """What one student hands in.

    answers: {exercise: the text of its cell}. right: {exercise: is it right?}; an answer that calls
    functions of other exercises is in it only where these are the reference's: what is right by
    itself need not be right together (a transposed mask, transposed again).
    """

    name: str
    answers: dict[str, str]
    right: dict[str, bool]


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
    answers, right, helpers, plain = {}, {}, {}, set()
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
        plain |= {exercise.name} if is_right and chosen is right_ones[0] else set()
        if plain.issuperset(exercise.uses):
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
            cell = sources(function, mates - {exercise.name})
        except NotAlone:
            continue
        if exercise.name in cell:  # it mends or breaks the right answer
            continue
        found.append(cell | {exercise.name: f"{exercise.name} = {function.__name__}"})
    return found
