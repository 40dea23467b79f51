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
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

from autograde.calls import Outcome, call
from autograde.examination import Examination, Record
from autograde.exercise import Exercise, chapters
from autograde.values import same, size


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
    known = {each.name for each in chapters()[exercise.chapter]}
    for answer in bank:
        if answer.function.__module__ == module.__name__ and answer.exercise not in known:
            raise LookupError(
                f"{module.__name__}: {answer.id} answers {answer.exercise!r}, which is no exercise "
                f"of the chapter; these are {', '.join(sorted(known))}"
            )
    return tuple(answer for answer in bank if answer.exercise == exercise.name)


def recognise(examination: Examination) -> Answer | None:
    """The misconception that explains a failed examination, if one does.

    It must give what the student's function gave wherever it differs from the reference,
    and so explain at least half of the inputs that failed. Of several the one that
    explains most wins.
    """
    records = _distinct(examination.records)
    faults = {record.fault for record in records}
    order = ("value", "changed", "hungry", "warned")
    worst = next((fault for fault in order if fault in faults), None)
    if worst is None or not examination.started:
        return None
    failed = sum(record.fault == worst for record in records)
    best, most = None, failed / 2
    for answer in misconceptions(examination.exercise):
        explained = _explained(answer, examination.exercise, records, worst)
        if explained >= most and (best is None or explained > most):
            best, most = answer, explained
    return best and canonical(examination.exercise, best)


def canonical(exercise: Exercise, answer: Answer) -> Answer:
    """The first form of a mistake, the one with the text."""
    forms = {form.id: form for form in misconceptions(exercise)}
    return forms[answer.same_as] if answer.same_as else answer


def _distinct(records: Iterable[Record]) -> list[Record]:
    """Each input and its outcome once, the small ones first: many are tried with every seed."""
    found = {pickle.dumps((r.args, r.kwargs, r.outcome)): r for r in records}
    return sorted(found.values(), key=lambda record: size(record.args))


def _explained(answer: Answer, exercise: Exercise, records: list[Record], worst: str) -> int:
    """How many failed inputs the misconception explains; 0 if one contradicts it.

    Errors of one type agree, but many mistakes end in, say, a ValueError: there must also be
    an input on which more agrees than that.
    """
    explained, telling = 0, False
    agree = partial(same, exact_dtype=exercise.exact_dtype, rtol=exercise.rtol, atol=exercise.atol)
    for record in records:
        measured = record.limit is not None
        theirs = call(answer.function, record.args, record.kwargs, measured=measured)
        unknown = "cut off" in (theirs.how, record.outcome.how)  # only the memory can be compared
        right = unknown or (theirs.returned and agree(theirs.value, record.expected))
        fault = exercise.side_effect(theirs, record.limit) if right else "value"
        if not fault:
            continue  # on this input the mistake does not show
        if not _alike(record, theirs, fault, agree):
            return 0
        explained += fault == worst
        telling |= record.outcome.how != "raised" or record.outcome.text == theirs.text
    return explained if telling else 0


def _alike(record: Record, theirs: Outcome, fault: str, agree: Callable) -> bool:
    seen = record.outcome
    if fault == "hungry":
        return seen.exceeds(record.limit)
    if fault != "value":
        return getattr(seen, fault) == getattr(theirs, fault)
    if seen.how != theirs.how:
        return False
    if seen.returned:
        return agree(seen.value, theirs.value)
    return seen.value == theirs.value
