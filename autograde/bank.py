"""The banks: wrong answers that people really write, and right ones of every form.

    @wrong("causal_mask", source="pbloem/former#10")
    def below_the_diagonal(n_query, n_key=None):
        \"\"\"What its author needs to hear, in one or two sentences.\"\"\"
        ...

The check must reject every wrong answer and accept every right one. When a student's
outputs equal those of a wrong one, its docstring is the feedback.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from autograde.exercise import Exercise, exercises_of


@dataclass(frozen=True)
class Answer:
    """An answer to an exercise, wrong or right.

    id: the function's name, unique within its exercise.
    source: where it was seen in public ("" for a constructed one).
    same_as: another form of the mistake of that id, whose text is shown.
    """

    exercise: str
    function: Callable
    source: str = ""
    same_as: str = ""

    @property
    def id(self) -> str:
        return self.function.__name__

    @property
    def text(self) -> str:
        return " ".join((inspect.getdoc(self.function) or "").split())


_wrong: list[Answer] = []
_right: list[Answer] = []


def wrong(exercise: str, source: str = "", same_as: str = "") -> Callable:
    """Decorator: add a misconception of that exercise; the docstring is its feedback.

    One mistake can be made in several forms that fail differently; the further ones are
    `same_as` the first and need no text.
    """

    def add(function: Callable) -> Callable:
        _wrong.append(Answer(exercise, function, source, same_as))
        return function

    return add


def right(exercise: str, source: str = "") -> Callable:
    """Decorator: add an answer that must be accepted."""
    return lambda function: (_right.append(Answer(exercise, function, source)), function)[1]


@cache
def misconceptions(exercise: Exercise) -> tuple[Answer, ...]:
    return _answers(_wrong, "misconceptions", exercise)


@cache
def correct_variants(exercise: Exercise) -> tuple[Answer, ...]:
    return _answers(_right, "correct", exercise)


def _answers(bank: list[Answer], part: str, exercise: Exercise) -> tuple[Answer, ...]:
    """The bank's answers to an exercise. `LookupError` if its module names one that is none."""
    module = importlib.import_module(f"autograde.{part}.{exercise.module}")
    known = {each.name for each in exercises_of(exercise.chapter)}
    for answer in bank:
        if answer.function.__module__ == module.__name__ and answer.exercise not in known:
            raise LookupError(
                f"{module.__name__}: {answer.id} answers {answer.exercise!r}, which is no exercise "
                f"of the chapter; these are {', '.join(sorted(known))}"
            )
    return tuple(answer for answer in bank if answer.exercise == exercise.name)


def canonical(exercise: Exercise, answer: Answer) -> Answer:
    """The first form of a mistake, the one with the text."""
    forms = {form.id: form for form in misconceptions(exercise)}
    return forms[answer.same_as] if answer.same_as else answer
