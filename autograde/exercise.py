"""Exercises: what must be true of a student's function, and how to find out.

A claims module holds, for each function of its chapter, an `Exercise` and its claims:

    masked_softmax = Exercise(reference.masked_softmax, read=..., hints=(...))

    @masked_softmax.claim("masked keys get weight exactly 0", points=2)
    def _(probe, rng):
        probe.equals(scores, allowed)            # as the reference, on this input
        weights = probe(scores, allowed)         # or: call it, and look at the result
        if weights[~allowed].any():
            probe.fail("a masked key has weight", scores, allowed, got=weights)

The first claim is the core: without it there are no points. Cases go from small to large.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from autograde.calls import SECONDS, Outcome, call
from autograde.values import ATOL, RTOL, Mismatch, conform, difference, plain, size

Call = Callable[[tuple, dict[str, Any], float], Outcome]  # (args, kwargs, seconds)


@dataclass(frozen=True)
class Finding:
    """One input on which a claim does not hold."""

    args: tuple
    kwargs: dict[str, Any]
    detail: str
    expected: Any = None
    got: Any = None

    @property
    def size(self) -> int:
        return size(self.args) + size(self.kwargs)


@dataclass(frozen=True)
class Record:
    """One examined call: what came of it, and what the reference gives.

    fault: "value" (another result, or none), else "changed" (an argument), else "warned"
        (where that is forbidden), else "".
    """

    args: tuple
    kwargs: dict[str, Any]
    outcome: Outcome
    expected: Any
    fault: str


@dataclass(frozen=True)
class Claim:
    name: str
    points: int
    body: Callable[[Probe, np.random.Generator], None]


class ClaimBroken(Exception):
    """Ends a claim whose next step needs a result that did not come."""


class CannotGoOn(Exception):
    """Ends the examination: the function hangs, exits, or is not written yet."""


@dataclass(eq=False)
class Exercise:
    """A function that students write, with all that the course knows about it."""

    reference: Callable
    read: tuple[str, str]  # (page#label, title of the section)
    hints: tuple[str, str, str]
    takes_arrays: bool = True  # and so could change its arguments
    quiet: bool = False  # warnings are forbidden
    exact_dtype: bool = False  # the exercise names the result's dtype
    weights_at: int | None = None  # where attention weights stand in the result; 0 alone, too
    secret: bool = False  # the expected numbers are the exercise, and stay unsaid
    seconds: float = SECONDS  # for one call
    rtol: float = RTOL
    atol: float = ATOL
    claims: list[Claim] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def module(self) -> str:
        """The name that a chapter's modules share, such as "ch03_causal_mask"."""
        return self.reference.__module__.rpartition(".")[2]

    @property
    def chapter(self) -> str:
        """The name of chapter and assignment, such as "03-causal-mask"."""
        return self.module.removeprefix("ch").replace("_", "-")

    @property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.reference).parameters)

    @property
    def points(self) -> int:
        return sum(claim.points for claim in self.all_claims())

    def claim(self, name: str, points: int = 1) -> Callable:
        """Decorator: add a claim, a sentence that is true of every right answer."""

        def add(body: Callable) -> Callable:
            self.claims.append(Claim(name, points, body))
            return body

        return add

    def side_effect(self, outcome: Outcome) -> str:
        """What a call did besides returning that it should not: "changed", "warned" or ""."""
        return "changed" if outcome.changed else "warned" if self.quiet and outcome.warned else ""

    def all_claims(self) -> list[Claim]:
        """The claims as written, then those that are made for a whole kind of exercise."""
        return self.claims + [QUIET] * self.quiet + [UNTOUCHED] * self.takes_arrays


class Probe:
    """A student's function in a claim's hands: calls are recorded, failures collected."""

    def __init__(self, exercise: Exercise, call: Call):
        self.exercise, self._call = exercise, call
        self.records: list[Record] = []
        self.findings: list[Finding] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain result, in the kind and shape that the reference returns."""
        usable, value = self._examine(args, kwargs)
        if not usable:
            raise ClaimBroken
        return value

    def equals(self, *args: Any, rtol: float | None = None, atol: float | None = None, **kwargs):
        """Call the function and compare with the reference, up to rounding."""
        self._examine(args, kwargs, compare=True, rtol=rtol, atol=atol)

    def fail(self, detail: str, *args: Any, expected: Any = None, got: Any = None, **kwargs):
        """Report that the claim does not hold for these arguments."""
        self.findings.append(Finding(args, kwargs, detail, expected, got))

    def _examine(self, args, kwargs, compare=False, rtol=None, atol=None) -> tuple[bool, Any]:
        """(could the result be read as what the exercise returns?, the result)"""
        exercise = self.exercise
        args, kwargs = copy.deepcopy((args, kwargs))  # the claim may go on with its arrays
        outcome = self._call(args, kwargs, exercise.seconds)
        expected = plain(exercise.reference(*args, **kwargs))
        text, value, usable = outcome.says(), outcome.value, False
        if outcome.returned:
            try:
                value, usable = conform(value, expected, exercise.exact_dtype), True
                text = difference(value, expected, rtol or exercise.rtol, atol or exercise.atol)
            except Mismatch as mismatch:
                text = str(mismatch)
        fault = "value" if text else exercise.side_effect(outcome)
        self.records.append(Record(args, kwargs, outcome, expected, fault))
        if text and (compare or not usable):
            got = value if outcome.returned else None
            told = None if exercise.secret else expected
            self.findings.append(Finding(args, kwargs, text, told, got))
        if outcome.final:
            raise CannotGoOn(text)
        return usable, value


def _untouched(probe: Probe, rng: np.random.Generator) -> None:
    names = probe.exercise.parameters
    for record in probe.records:
        for index in record.outcome.changed:
            probe.fail(
                f"the call changed its argument `{names[index]}`; work on a copy",
                *record.args,
                **record.kwargs,
            )


def _quiet(probe: Probe, rng: np.random.Generator) -> None:
    for record in probe.records:
        if record.outcome.warned:
            detail = f"the call warned: {record.outcome.warned[0]}"
            probe.fail(detail, *record.args, **record.kwargs)


QUIET = Claim("no warning is raised", 1, _quiet)
UNTOUCHED = Claim("the arguments are left as they were", 1, _untouched)


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    finding: Finding | None = None
    reached: bool = True  # False: an earlier failure kept the claim from being tried

    @property
    def holds(self) -> bool:
        return self.reached and self.finding is None


@dataclass(frozen=True)
class Examination:
    """What is true of one student's function."""

    exercise: Exercise
    results: tuple[ClaimResult, ...]
    records: tuple[Record, ...]
    stopped: str = ""  # why the examination could not go on, if it could not

    @property
    def passed(self) -> bool:
        return all(result.holds for result in self.results)

    @property
    def started(self) -> bool:
        """False for a function that still raises NotImplementedError."""
        return not (self.records and self.records[-1].outcome.unwritten)

    @property
    def points(self) -> int:
        """The points of the claims that hold; none if the core does not."""
        if not self.results[0].holds:
            return 0
        return sum(result.claim.points for result in self.results if result.holds)


def examine(exercise: Exercise, call: Call, seeds: tuple[int, ...] = (0,)) -> Examination:
    """Try every claim with each seed, and keep the smallest input that breaks it."""
    found: dict[int, Finding] = {}
    reached, records, stopped = set(), [], ""
    claims = exercise.all_claims()
    for seed in seeds:
        probe = Probe(exercise, call)
        for index, claim in enumerate(claims):
            probe.findings = []
            reached.add(index)
            try:
                claim.body(probe, np.random.default_rng([seed, index]))
            except ClaimBroken:
                pass
            except CannotGoOn as reason:
                stopped = str(reason)
            if probe.findings and index not in found:
                found[index] = min(probe.findings, key=lambda finding: finding.size)
            if stopped:
                break
        records += probe.records
        if stopped:
            break
    results = (ClaimResult(c, found.get(i), i in reached) for i, c in enumerate(claims))
    return Examination(exercise, tuple(results), tuple(records), stopped)


def local(function: Callable) -> Call:
    """Examine a function of this very process."""
    return lambda args, kwargs, seconds: call(function, args, kwargs, seconds)


@cache
def chapters() -> dict[str, list[Exercise]]:
    """Every chapter's exercises, in the order of the book and of the claims modules.

    A chapter whose library is not installed (torch in a browser) is left out.
    """
    import autograde.claims

    found = {}
    for info in sorted(pkgutil.iter_modules(autograde.claims.__path__), key=lambda i: i.name):
        try:
            module = importlib.import_module(f"autograde.claims.{info.name}")
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            continue
        exercises = [value for value in vars(module).values() if isinstance(value, Exercise)]
        found[exercises[0].chapter] = exercises
    return found


def exercises() -> Iterator[Exercise]:
    for chapter in chapters().values():
        yield from chapter


def find(name: str) -> Exercise:
    """The exercise of that function name, or `LookupError` with the names there are."""
    known = {exercise.name: exercise for exercise in exercises()}
    if name not in known:
        raise LookupError(f"no exercise is called {name!r}; the exercises are {', '.join(known)}")
    return known[name]
