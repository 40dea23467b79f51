"""What a student reads about an examination: as text, as HTML, as data."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from autograde.bank import Answer, recognise
from autograde.exercise import ClaimResult, Examination, Finding
from autograde.observe import observe
from autograde.values import DType, Opaque, differing, number, size

PRINTS = 2000  # characters; more than this in one call is worth a word
WIDEST = 12  # rows and columns of an array that is still shown as a picture


@dataclass(frozen=True)
class Report:
    """An examination with what it tells its author. Displays itself in a notebook."""

    examination: Examination
    misconception: Answer | None

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
            return f"{self.name}: not written yet"
        if self.examination.records and self.examination.records[-1].outcome.how == "missing":
            return f"{self.name}: there is no function of that name"
        if self.passed:
            return f"{self.name}: all {len(results)} claims hold"
        return f"{self.name}: {sum(r.holds for r in results)} of {len(results)} claims hold"

    @property
    def lessons(self) -> list[tuple[str, str]]:
        """(title, text): the recognised mistake or what is seen, notes, and where to read."""
        found = []
        finding = self.first.finding if self.first else None
        if self.misconception:
            found.append(("What this looks like", self.misconception.text))
        elif finding and (seen := observe(finding)):
            found.append(("What is seen", seen))
        if notes := self._notes():
            found.append(("Note", notes))
        if not self.passed:
            page, title = self.examination.exercise.read
            address = page.replace("#", ".html#", 1)
            found.append(("Read again", f"“{title}”, book/{address}"))
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

    def message(self) -> str:
        """The whole report as text, without the list of claims that hold."""
        lines = [self.headline]
        for result in self.examination.results:
            if not result.holds and self.examination.started:
                lines += _claim_lines(result, self.examination, full=result is self.first)
        lines += [f"  {title}: {text}" for title, text in self.lessons if self.examination.started]
        return "\n".join(lines)

    def text(self) -> str:
        """The report for a terminal or a plain-text notebook output."""
        lines = [self.headline]
        if self.examination.started:
            for result in self.examination.results:
                full = result is self.first
                lines += _claim_lines(result, self.examination, full)
            lines += [f"  {title}: {text}" for title, text in self.lessons]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{escape(self.headline)}</strong></p>"]
        if self.examination.started:
            items = (_claim_html(r, self.examination) for r in self.examination.results)
            parts.append(f"<ul style='list-style:none;padding-left:0'>{''.join(items)}</ul>")
            if self.first and self.first.finding:
                parts.append(_finding_html(self.first.finding, self.examination))
            for title, text in self.lessons:
                parts.append(f"<p><strong>{escape(title)}.</strong> {escape(text)}</p>")
        return f"<div class='no-peeking-report'>{''.join(parts)}</div>"

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
                    "message": "" if result.holds else _why(result, self.examination),
                }
                for result in self.examination.results
            ],
            "misconception": self.misconception.id if self.misconception else None,
            "message": self.message(),
        }


def report(examination: Examination) -> Report:
    """Find out what a failed examination has to tell."""
    return Report(examination, None if examination.passed else recognise(examination))


def _why(result: ClaimResult, examination: Examination) -> str:
    if result.finding:
        return result.finding.detail
    if not result.reached:
        return f"not tried: {examination.stopped}"
    return ""


def _mark(result: ClaimResult) -> str:
    return "holds" if result.holds else "fails" if result.reached else "-----"


def _claim_lines(result: ClaimResult, examination: Examination, full: bool) -> list[str]:
    lines = [f"  {_mark(result)}  {result.claim.name}"]
    finding = result.finding
    if finding is None:
        return lines
    if not full:
        return [*lines, f"         {finding.detail}"]
    call, values = _call_text(finding, examination)
    shown = [f"{call} with" if values else call]
    shown += [f"  {name} = {_indent(value, len(name) + 5)}" for name, value in values]
    if finding.expected is not None:
        shown.append(f"expected {_indent(show(finding.expected), 9)}")
    if finding.got is not None:
        shown.append(f"got      {_indent(show(finding.got), 9)}")
    shown.append(finding.detail)
    return lines + [f"         {line}" for text in shown for line in text.split("\n")]


def _call_text(finding: Finding, examination: Examination) -> tuple[str, list[tuple[str, str]]]:
    """The call that failed, and the values of those arguments too long to stand in it."""
    names = examination.exercise.parameters
    inside, below = [], []
    given = [*zip(names, finding.args, strict=False), *finding.kwargs.items()]
    for index, (name, value) in enumerate(given):
        text = show(value)
        if "\n" in text or len(text) > 30:
            below.append((name, text))
            text = name
        inside.append(text if index < len(finding.args) else f"{name}={text}")
    return f"{examination.exercise.name}({', '.join(inside)})", below


def show(value: Any) -> str:
    """A value as a person would write it; a large array by its shape."""
    if isinstance(value, np.ndarray):
        if size(value) > WIDEST**2:
            return f"array of shape {value.shape}, {value.dtype}"
        value = value.astype(int) if value.dtype == bool else value
        return np.array2string(value, precision=4, suppress_small=True, separator=", ")
    if isinstance(value, tuple | list):
        return "\n".join(show(part) for part in value) if size(value) > 8 else _flat(value)
    if isinstance(value, type):
        return f"np.{value.__name__}"
    if isinstance(value, DType | Opaque):
        return value.name if isinstance(value, DType) else f"a {value.kind}"
    if isinstance(value, float | np.floating):
        return number(value)
    return repr(value)


def _flat(values: Any) -> str:
    return f"({', '.join(show(value) for value in values)})"


def _indent(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def _claim_html(result: ClaimResult, examination: Examination) -> str:
    why = "" if result.holds else f"<br><small>{escape(_why(result, examination))}</small>"
    sign = "✓" if result.holds else "✗" if result.reached else "–"
    name = escape(result.claim.name)
    return f"<li>{sign} <span>{_mark(result).strip('-') or 'not tried'}: {name}{why}</span></li>"


def _finding_html(finding: Finding, examination: Examination) -> str:
    call, values = _call_text(finding, examination)
    lines = "\n".join(f"{name} = {_indent(text, len(name) + 3)}" for name, text in values)
    parts = [f"<p>The smallest input that shows it:</p><pre>{escape(call)}\n{escape(lines)}</pre>"]
    got, want = _pictured(finding)
    if want is not None:
        wrong = differing(got, want) if got is not None else np.zeros(want.shape, bool)
        pictures = [_grid_html("expected", want, np.zeros(want.shape, bool))]
        pictures += [_grid_html("yours", got, wrong)] if got is not None else []
        parts.append(
            f"<div style='display:flex;flex-wrap:wrap;gap:1.5em'>{''.join(pictures)}</div>"
        )
    elif finding.expected is not None:
        texts = f"expected {_indent(show(finding.expected), 9)}"
        if finding.got is not None:
            texts += f"\ngot      {_indent(show(finding.got), 9)}"
        parts.append(f"<pre>{escape(texts)}</pre>")
    return "".join(parts)


def _pictured(finding: Finding) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(got, expected) as matrices small enough to draw: the first pair that differs."""
    gots = finding.got if isinstance(finding.got, tuple) else (finding.got,)
    wants = finding.expected if isinstance(finding.expected, tuple) else (finding.expected,)
    for got, want in zip(gots, wants, strict=False):
        if not isinstance(want, np.ndarray) or want.ndim < 2:
            continue
        comparable = isinstance(got, np.ndarray) and got.shape == want.shape
        if comparable and not differing(got, want).any():
            continue
        index = np.argwhere(differing(got, want))[0][:-2] if comparable else [0] * (want.ndim - 2)
        want = want[tuple(index)]
        if max(want.shape) <= WIDEST and want.size:
            return (got[tuple(index)] if comparable else None), want
    return None, None


def _grid_html(caption: str, array: np.ndarray, wrong: np.ndarray) -> str:
    """A matrix as a table: shaded by value, wrong entries outlined and marked."""
    finite = np.abs(array[np.isfinite(array)].astype(float))
    top = finite.max(initial=0) or 1.0
    rows = []
    for values, marks in zip(array, wrong, strict=True):
        cells = []
        for value, bad in zip(values, marks, strict=True):
            share = min(abs(float(value)) / top, 1) if np.isfinite(value) else 0
            style = f"background:rgba(0,114,178,{0.5 * share:.2f});text-align:right;"
            style += "outline:3px solid #d55e00;outline-offset:-3px;" if bad else ""
            text = ("1" if value else "·") if array.dtype == bool else f"{float(value):.3g}"
            cells.append(f"<td style='{style}'>{'✗ ' if bad else ''}{text}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"
