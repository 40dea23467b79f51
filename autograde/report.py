"""What a student reads about an examination: as text, as HTML, as data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np

from autograde.bank import Answer
from autograde.diagnosis.naming import explanation
from autograde.diagnosis.observe import observe
from autograde.diagnosis.patterns import pattern
from autograde.examination import ClaimResult, Examination, Finding, Record
from autograde.exercise import Exercise
from autograde.recalled import digest
from autograde.specimens import Specimen
from autograde.values import (
    DType,
    Opaque,
    is_bfloat16,
    is_tensor,
    number,
    numbers_of,
    size,
)

PRINTS = 2000  # characters; more than this in one call is worth a word
LONGEST = 40  # numbers of an array of three or more axes that is still written out
SMALL = 1e-2  # where no number is larger, four decimals do not show them
Lessons = list[tuple[str, str]]
Told = dict[bytes, tuple[Answer | None, str, Lessons]]  # what `report` has found out
WIDEST = 12  # rows and columns of an array that is still shown as a picture


@dataclass(frozen=True)
class Report:
    """An examination with what it tells its author. Displays itself in a notebook."""

    examination: Examination
    misconception: Answer | None
    broken: tuple[str, ...] = ()  # functions that this one may call and that are wrong
    besides: str = ""  # what else it takes, where the misconception is not enough
    known: Lessons | None = None  # its lessons, if they were found out before

    @property
    def passed(self) -> bool:
        return self.examination.passed

    @property
    def name(self) -> str:
        return self.examination.exercise.name

    @property
    def first(self) -> ClaimResult | None:
        """The first claim that does not hold."""
        return next((r for r in self.examination.results if not r.holds), None)

    @property
    def headline(self) -> str:
        results = self.examination.results
        if not self.examination.started:
            missing = self.examination.records[-1].outcome.how == "missing"
            return f"{self.name}: " + (
                "there is no such function" if missing else "not written yet"
            )
        if self.passed:
            return f"{self.name}: all {len(results)} claims hold"
        return f"{self.name}: {sum(r.holds for r in results)} of {len(results)} claims hold"

    @cached_property
    def lessons(self) -> Lessons:
        """(title, text): the recognised mistake or what is seen, notes, and where to read."""
        if self.known is not None:
            return self.known
        found = []
        finding = self.first.finding if self.first else None
        for name in self.broken:
            text = f"If your {self.name} calls your {name}, mend that one first: it is wrong."
            found.append(("Before anything else", text))
        if self.misconception:
            found.append(("What this looks like", self.misconception.text))
            if self.besides:
                found.append(("And besides", self.besides))
        elif finding and self.examination.started:
            what = observe(self.examination, finding)
            seen = (what, pattern(self.examination, fallback=not what))
            if any(seen):
                found.append(("What is seen", " ".join(filter(None, seen))))
        if notes := self._notes():
            found.append(("Note", notes))
        if not self.passed:
            page, title = self.examination.exercise.read
            address = page.replace("#", ".html#", 1)
            found.append(("Read again", f"{title} (book/{address})"))
        return found

    def _notes(self) -> str:
        outcomes = [record.outcome for record in self.examination.records]
        notes = []
        most = max((outcome.printed for outcome in outcomes), default=0)
        if most > PRINTS:
            notes.append(f"Your function prints {most:,} characters in one call; remove that.")
        warned = next((text for outcome in outcomes for text in outcome.warned), "")
        if warned:
            notes.append(f"A call warned: {warned}.")
        return " ".join(notes)

    def _lesson_lines(self) -> list[str]:
        both = (f"{title}: {text}" for title, text in self.lessons)
        return [fill(text, 96, initial_indent="  ", subsequent_indent="  ") for text in both]

    def text(self, only_failures: bool = False) -> str:
        """The report for a terminal or a plain-text notebook output."""
        lines = [self.headline]
        if self.examination.started:
            for result in self.examination.results:
                if not (only_failures and result.holds):
                    lines += _claim_lines(result, self.examination, full=result is self.first)
            lines += self._lesson_lines()
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from autograde.picture import html

        return html(self)

    def data(self) -> dict[str, Any]:
        """The report as JSON-able data (the format of `autograde check --json`)."""
        return {
            "passed": self.passed,
            "points": self.examination.points,
            "max_points": self.examination.exercise.points,
            "claims": [
                {
                    "name": result.claim.name,
                    "passed": result.holds,
                    "points": result.claim.points,
                    "message": "" if result.holds else why(result, self.examination),
                }
                for result in self.examination.results
            ],
            "misconception": self.misconception.id if self.misconception else None,
            "message": self.text(only_failures=True),
        }


def report(
    examination: Examination, wrong: Collection[str] = (), told: Told | None = None
) -> Report:
    """Find out what a failed examination has to tell.

    wrong: names of other functions by the same author that are known to be wrong.
    told: what was told before. In a class many functions do exactly the same on all inputs, and
        then the same is told, without looking for it again.
    """
    if examination.passed:
        return Report(examination, None)
    broken = tuple(name for name in examination.exercise.uses if name in wrong)
    results = [(record.given, record.came) for record in examination.records]
    if told is None or any(given is None for given, _ in results):
        return _report(examination, broken)
    key = digest((examination.exercise.name, broken, results))
    if key not in told:
        found = _report(examination, broken)
        told[key] = (found.misconception, found.besides, found.lessons)
    misconception, besides, lessons = told[key]
    return Report(examination, misconception, broken, besides, lessons)


def _report(examination: Examination, broken: tuple[str, ...]) -> Report:
    found = explanation(examination)
    if not found:
        return Report(examination, None, broken)
    return Report(examination, found.first, broken, found.besides)


def why(result: ClaimResult, examination: Examination) -> str:
    if result.finding:
        return result.finding.detail
    if not result.reached:
        return "" if examination.started else examination.stopped
    return ""


def brief(finding: Finding, examination: Examination) -> str:
    """A finding in one line; "" if it speaks of places in arrays that are not shown."""
    call, values = call_text(finding, examination.exercise)
    if not values:
        return f"{call}: {finding.detail}"
    return "" if ": expected " in finding.detail else finding.detail


def mark(result: ClaimResult) -> str:
    return "holds" if result.holds else "fails" if result.reached else "-----"


def _claim_lines(result: ClaimResult, examination: Examination, full: bool) -> list[str]:
    lines = [f"  {mark(result)}  {result.claim.name}"]
    finding = result.finding
    if finding is None:
        return lines
    if not full:
        return lines + [f"         {text}" for text in [brief(finding, examination)] if text]
    call, values = call_text(finding, examination.exercise)
    shown = [f"{call} with" if values else call]
    shown += [f"  {name} = {indent(value, len(name) + 5)}" for name, value in values]
    if finding.expected is not None:
        shown.append(f"expected {indent(show(finding.expected), 9)}")
    if finding.got is not None:
        shown.append(f"got      {indent(show(finding.got), 9)}")
    both = finding.expected is not None and finding.got is not None
    if not (both and finding.detail.startswith("expected ")):  # which would say the same again
        shown.append(finding.detail)
    return lines + [f"         {line}" for text in shown for line in text.split("\n")]


def call_text(finding: Finding | Record, exercise: Exercise) -> tuple[str, list[tuple[str, str]]]:
    """The call that failed, and the values of those arguments too long to stand in it."""
    names = exercise.parameters
    inside, below = [], []
    given = [*zip(names, finding.args, strict=False), *finding.kwargs.items()]
    for index, (name, value) in enumerate(given):
        text = show(value)
        if "\n" in text or len(text) > 30:
            below.append((name, text))
            text = name
        inside.append(text if index < len(finding.args) else f"{name}={text}")
    return f"{exercise.name}({', '.join(inside)})", below


def show(value: Any) -> str:
    """A value as a person would write it; a large array by its shape."""
    if isinstance(value, np.ndarray):
        if size(value) > (WIDEST**2 if value.ndim < 3 else LONGEST):
            return f"array of shape {value.shape}, {value.dtype}"
        if value.dtype.kind == "U":
            return np.array2string(value, separator=", ")
        value = value.astype(int) if value.dtype == bool else value
        with np.errstate(invalid="ignore"):  # of a signalling NaN
            value = value + 0.0 if value.dtype.kind == "f" else value  # no -0
        small = value.size and np.abs(value[np.isfinite(value)]).max(initial=0) < SMALL
        text = np.array2string(value, precision=4, suppress_small=not small, separator=", ")
        narrow = value.dtype.kind == "f" and value.dtype != np.float64 and value.size
        return f"{text}  ({value.dtype})" if narrow else text
    if isinstance(value, Specimen):
        return _specimen(value)
    if is_tensor(value):
        text = show(numbers_of(value))
        return text.replace("float32", "bfloat16") if is_bfloat16(value) else text
    if isinstance(value, dict):
        parts = [
            f"{key!r}: {indent(show(item), len(repr(key)) + 2)}" for key, item in value.items()
        ]
        return _together(value, parts, "{}")
    if isinstance(value, tuple | list):
        brackets = "[]" if isinstance(value, list) else "()"
        return _together(value, [show(part) for part in value], brackets)
    if isinstance(value, type):
        return f"np.{value.__name__}"
    if isinstance(value, DType | Opaque):
        return value.name if isinstance(value, DType) else f"something else (a {value.kind})"
    if isinstance(value, float | np.floating):
        return number(value)
    return repr(value)


def _together(value: Any, parts: list[str], brackets: str) -> str:
    """The parts of a value in one line, or in a line each where there are many."""
    long = size(value) > 8 or any("\n" in part for part in parts)
    inside = indent(",\n".join(parts), 1) if long else ", ".join(parts)
    inside += "," * (isinstance(value, tuple) and len(value) == 1)
    return f"{brackets[0]}{inside}{brackets[1]}"


def _specimen(function: Specimen) -> str:
    """The line that makes it in a notebook, and what it does."""
    made = f"{function!r}.using(" if function.settings else repr(function)
    width = len(made) + 1
    given = (f"{k}={indent(show(v), width + len(k))}" for k, v in function.settings.items())
    made += f",\n{' ' * (width - 1)}".join(given) + ")" * bool(function.settings)
    return f"{made}\n{' '.join(function.__doc__.split())}"


def indent(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)
