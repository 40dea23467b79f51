"""Finding out what is true of a student's function: every claim is tried on it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from autograde.calls import MEASURED, Outcome, call, copied
from autograde.exercise import Claim, Exercise
from autograde.recalled import arguments, digest, recalled
from autograde.values import Mismatch, conform, difference, plain, size

Call = Callable[[tuple, dict[str, Any], float, bool], Outcome]  # (args, kwargs, seconds, measured)


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

    fault: "value" (another result, or none), else "changed" (an argument), else "hungry" (it
        held more than `limit` bytes), else "warned" (where that is forbidden), else "".
    """

    args: tuple
    kwargs: dict[str, Any]
    outcome: Outcome
    expected: Any
    fault: str
    limit: int | None = None

    @cached_property
    def given(self) -> bytes | None:
        """Stands for the arguments; see `recalled`."""
        return arguments(self.args, self.kwargs)

    @cached_property
    def came(self) -> bytes:
        """Stands for what came of them."""
        return digest(self.outcome)


class ClaimBroken(Exception):
    """Ends a claim whose next step needs a result that did not come."""


class CannotGoOn(Exception):
    """Ends the examination: the function hangs, exits, or is not written yet."""


def _named(exercise: Exercise, text: str | None) -> str | None:
    """A difference with the part's own name."""
    for index, name in enumerate(exercise.returns if text else ()):
        text = re.sub(f"^value {index} of the tuple", name, text)
    return text


def _expected(exercise: Exercise, args: tuple, kwargs: dict[str, Any]) -> Any:
    if exercise.many_right:  # one training for all: no more than its shapes is looked at
        outcome = recalled(exercise.reference, args, kwargs)
        if outcome.returned:
            return outcome.value
    return plain(exercise.reference(*args, **kwargs))


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

    def attempt(self, *args: Any, **kwargs: Any) -> Any:
        """The plain result, whatever its kind and shape."""
        before = list(self.findings)
        self._examine(args, kwargs)
        outcome = self.records[-1].outcome
        if not outcome.returned:
            raise ClaimBroken
        self.findings = before  # whether it fits is the claim's to say
        return outcome.value

    def equals(self, *args: Any, rtol: float | None = None, atol: float | None = None, **kwargs):
        """Call the function and compare with the reference, up to rounding."""
        self._examine(args, kwargs, compare=True, rtol=rtol, atol=atol)

    def holds_at_most(self, limit: int, *args: Any, **kwargs: Any) -> None:
        """Call the function and see that it never holds more than `limit` bytes of its own.

        What Python and NumPy allocate is counted, the result included; PyTorch's tensors are not.
        After some seconds the call is cut off, and what it held until then counts.
        """
        self._examine(args, kwargs, limit=limit)
        outcome = self.records[-1].outcome
        if outcome.how in ("returned", "cut off") and outcome.exceeds(limit):
            detail = "its memory cannot be measured: does it end tracemalloc's tracing?"
            if outcome.peak is not None:
                held, enough = outcome.peak / 1e6, limit / 1e6
                detail = f"at its peak the call held {held:.1f} MB; {enough:.1f} MB are plenty"
            self.fail(detail, *args, **kwargs)

    def fail(self, detail: str, *args: Any, expected: Any = None, got: Any = None, **kwargs):
        """Report that the claim does not hold for these arguments."""
        self.findings.append(Finding(args, kwargs, detail, expected, got))

    def _examine(
        self, args, kwargs, compare=False, rtol=None, atol=None, limit=None
    ) -> tuple[bool, Any]:
        """(could the result be read as what the exercise returns?, the result)"""
        exercise = self.exercise
        args = tuple(map(copied, args))  # the claim may go on with its arrays
        kwargs = {key: copied(value) for key, value in kwargs.items()}
        measured = limit is not None
        seconds = min(exercise.seconds, MEASURED) if measured else exercise.seconds
        outcome = self._call(args, kwargs, seconds, measured)
        expected = _expected(exercise, args, kwargs)
        text, value, usable = outcome.says(), outcome.value, False
        if outcome.returned:
            try:
                value, usable = conform(value, expected, exercise.exact_dtype), True
                rtol = exercise.rtol if rtol is None else rtol
                atol = exercise.atol if atol is None else atol
                text = _named(exercise, difference(value, expected, rtol, atol))
                if text and exercise.secret:
                    text = "at least one number is not right"
            except Mismatch as mismatch:
                text = _named(exercise, str(mismatch))
        fault = "value" if text else exercise.side_effect(outcome, limit)
        self.records.append(Record(args, kwargs, outcome, expected, fault, limit))
        if text and (compare or not usable):
            got = value if outcome.returned else None
            told = None if exercise.secret else expected
            self.findings.append(Finding(args, kwargs, text, told, got))
        if outcome.final:
            raise CannotGoOn(text)
        return usable, value


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
        """False for a function that is missing, or still raises NotImplementedError."""
        last = self.records[-1].outcome if self.records else None
        return last is None or not (last.unwritten or last.how == "missing")

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
                with np.errstate(all="ignore"):  # whatever `np.seterr` says in a student's notebook
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
    return partial(call, function)
