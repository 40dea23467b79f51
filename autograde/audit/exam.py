"""The exam: every answer of the banks and every systematic mutant is put to the checks.

A question to the exam is a plain value and so is its result: they cross to worker processes.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from autograde.audit.mutants import Mutant, mutants
from autograde.bank import Answer, canonical, correct_variants, misconceptions
from autograde.calls import call
from autograde.checking import CHECK_SEEDS, GRADE_SEEDS
from autograde.examination import Record, examine, local
from autograde.exercise import Exercise, find
from autograde.report import Report, call_text, report
from autograde.values import is_tensor, same, size

SITTINGS = (CHECK_SEEDS, GRADE_SEEDS)  # as a student checks, and as a grader grades
FURTHER = tuple(range(1000, 1016))  # seeds of inputs that no check has used
TRIES = 3  # of a right answer that runs out of time, as any may on a busy machine
CHANGES = 3  # of each such input, to search beyond what the claims try
ANY = "any input, for it gives other numbers; that these are right must be said"
PATIENCE = 10.0  # seconds that the search for one mutant may take
ACCEPTED = tomllib.loads(Path(__file__).with_name("accepted.toml").read_text())["accepted"]


@dataclass(frozen=True)
class Sat:
    """How one answer of the bank fared.

    right: should it pass? passed: at every sitting? named: the misconception that was reported
    (the same at every sitting, or ""); wanted: the one that it is. only: the claim that alone
    rejected it, or "". seconds: of all sittings.
    """

    exercise: str
    answer: str
    right: bool
    passed: bool
    rejected: bool
    wanted: str = ""
    named: str = ""
    failed: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def well(self) -> bool:
        return self.passed if self.right else self.rejected and self.named == self.wanted


@dataclass(frozen=True)
class Tried:
    """How one mutant fared.

    killed_by: the claim that rejected it, "" if none did. separated_by: for one that was not
    killed, an input on which it differs from the reference, as text; "" if none was found.
    Where many results are right, that cannot be searched for, and is presumed.
    accepted: why it is right all the same, by `accepted.toml`.
    """

    exercise: str
    change: str
    killed_by: str
    separated_by: str = ""
    inputs: int = 0  # searched in vain
    accepted: str = ""

    @property
    def equivalent(self) -> bool:
        """Believed to be: no claim and no search tells it from the reference."""
        return not self.killed_by and not self.separated_by


def sit(name: str, answer_id: str) -> Sat:
    """Put an answer of the banks to the checks of its exercise."""
    exercise, answer, right = _answer(name, answer_id)
    start = time.perf_counter()
    for _ in range(TRIES if right else 1):
        found = [report(examine(exercise, local(answer.function), seeds)) for seeds in SITTINGS]
        if not any(_out_of_time(each) for each in found):
            break
    names = {f.misconception.id if f.misconception else "" for f in found}
    last = found[-1].examination
    return Sat(
        name,
        answer_id,
        right,
        passed=all(f.passed and f.examination.points == exercise.points for f in found),
        rejected=not any(f.passed for f in found),
        wanted="" if right else canonical(exercise, answer).id,
        named=names.pop() if len(names) == 1 else "",
        failed=tuple(r.claim.name for r in last.results if r.reached and not r.holds),
        seconds=time.perf_counter() - start,
    )


def _out_of_time(found: Report) -> bool:
    return any(record.outcome.how == "timeout" for record in found.examination.records)


def _answer(name: str, answer_id: str) -> tuple[Exercise, Answer, bool]:
    exercise = find(name)
    for right, bank in ((False, misconceptions), (True, correct_variants)):
        for answer in bank(exercise):
            if answer.id == answer_id:
                return exercise, answer, right
    raise LookupError(f"{name} has no answer {answer_id!r} in the banks")


def try_mutants(name: str, start: int = 0, step: int = 1) -> list[Tried]:
    """Put every step-th mutant of an exercise's reference to its checks, and search for inputs
    that tell those that survive from the reference."""
    exercise = find(name)
    tried, inputs = [], None
    for mutant in islice(mutants(exercise.reference), start, None, step):
        killer = killed_by(exercise, mutant.function)
        if killer:
            tried.append(Tried(name, mutant.change, killer))
            continue
        if exercise.many_right:  # no input tells: a right answer, too, gives other numbers
            why = _accepted(mutant, exercise)
            tried.append(Tried(name, mutant.change, "", ANY, accepted=why))
            continue
        inputs = inputs or list(further_inputs(exercise))
        tried.append(_searched(exercise, mutant, inputs))
    return tried


def killed_by(exercise: Exercise, function: Callable) -> str:
    """The first claim that rejects a function, when it is graded; "" if none does."""
    if exercise.many_right:  # the claims share what takes long, such as a training
        for seed in GRADE_SEEDS:
            found = examine(exercise, local(function), (seed,))
            if not found.passed:
                return next(result.claim.name for result in found.results if not result.holds)
        return ""
    for claim in exercise.claims:
        found = examine(replace(exercise, claims=[claim]), local(function), GRADE_SEEDS)
        if not found.passed:
            return next(result.claim.name for result in found.results if not result.holds)
    return ""


def _searched(exercise: Exercise, mutant: Mutant, inputs: list[Record]) -> Tried:
    end, searched = time.monotonic() + PATIENCE, 0
    for record in inputs:
        if time.monotonic() > end:
            break
        searched += 1
        if not agrees(exercise, mutant.function, record) and _valid(exercise, record):
            shown, values = call_text(record, exercise)
            where = "; ".join([shown, *(f"{key} = {value}" for key, value in values)])
            return Tried(
                exercise.name, mutant.change, "", where, searched, _accepted(mutant, exercise)
            )
    return Tried(exercise.name, mutant.change, "", inputs=searched)


def _accepted(mutant: Mutant, exercise: Exercise) -> str:
    """Why a mutant that differs from the reference is right, if it is."""
    for each in ACCEPTED:
        if each["exercise"] == exercise.name and each["change"] in mutant.change:
            return each["reason"]
    return ""


def agrees(exercise: Exercise, function: Callable, record: Record) -> bool:
    """Does a function do on this input what the reference does, up to rounding?

    A call that ran out of time tells nothing: on a busy machine any may.
    """
    seen = call(function, record.args, record.kwargs, exercise.seconds)
    if seen.how == "timeout":
        return True
    alike = partial(same, exact_dtype=exercise.exact_dtype, rtol=exercise.rtol, atol=exercise.atol)
    return (
        seen.returned
        and alike(seen.value, record.expected)
        and not exercise.side_effect(seen, None)
    )


def _valid(exercise: Exercise, record: Record) -> bool:
    """Is it an input on which all right answers agree? Rounding may part them on a changed one."""
    return all(agrees(exercise, a.function, record) for a in correct_variants(exercise))


def further_inputs(exercise: Exercise) -> Iterator[Record]:
    """Inputs that the claims make with seeds that no check uses, and changes of them; the small
    ones first."""
    found = examine(exercise, local(exercise.reference), FURTHER)
    records = sorted(found.records, key=lambda record: size(record.args))
    yield from records
    rng = np.random.default_rng(0)
    for record in (r for r in records if _finite(r)):
        for _ in range(CHANGES):
            args = tuple(_changed(value, rng) for value in record.args)
            kwargs = {key: _changed(value, rng) for key, value in record.kwargs.items()}
            outcome = call(exercise.reference, args, kwargs)
            if outcome.returned:  # else the change has made it no valid input
                yield replace(record, args=args, kwargs=kwargs, expected=outcome.value)


def _changed(value: Any, rng: np.random.Generator) -> Any:
    """An argument of the same kind and shape with other numbers. What holds infinities, or is a
    distribution, stays: changed, it might be nothing that an exercise promises to take."""
    if isinstance(value, list | tuple):
        return type(value)(_changed(part, rng) for part in value)
    if isinstance(value, dict):
        return {key: _changed(part, rng) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return value ^ (rng.random(value.shape) < 0.2)
    numbers = value.detach() if is_tensor(value) else value
    floats = (
        numbers.is_floating_point() and numbers.numel() > 0
        if is_tensor(value)
        else _kind(value) == "f"
    )
    if not floats or not -np.inf < float(numbers.min()) < 0 or float(numbers.max()) == np.inf:
        return deepcopy(value)
    scale = float(rng.choice([-1.0, 0.01, 3.0, 30.0]))
    if is_tensor(value):
        return (numbers * scale).requires_grad_(value.requires_grad)
    return value * scale


def _kind(value: Any) -> str:
    """The kind of an array's dtype; "" of what is no array, or has no numbers."""
    return value.dtype.kind if isinstance(value, np.ndarray) and value.size else ""


def _finite(record: Record) -> bool:
    """No infinity or NaN: where there are any, other arguments may not change freely."""
    arrays = [value for value in (*record.args, *record.kwargs.values()) if _kind(value) == "f"]
    return all(np.isfinite(array).all() for array in arrays)
