"""A report as HTML: the claims, a small counterexample, and a picture of it.

Plain tables with inline styles, so that it looks the same in a notebook, in a feedback page
and in a browser, in light and in dark.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from autograde.examination import ClaimResult, Examination, Finding
from autograde.report import WIDEST, brief, call_text, indent, mark, show, why
from autograde.values import differing

if TYPE_CHECKING:
    from autograde.report import Report

CODE = "font-family:monospace;overflow-x:auto;"
CELL = "text-align:right;padding:2px 8px;min-width:1.5em;"


def html(report: Report) -> str:
    """The report for a notebook's output or a feedback page."""
    parts = [f"<p><strong>{escape(report.headline)}</strong></p>"]
    examination = report.examination
    if examination.started:
        items = "".join(_claim_html(result, report) for result in examination.results)
        parts.append(f"<ul style='list-style:none;padding-left:0'>{items}</ul>")
        if report.first and report.first.finding:
            parts.append(_finding_html(report.first.finding, examination))
        for title, text in report.lessons:
            code = re.sub("`(.+?)`", r"<code>\1</code>", escape(text))
            parts.append(f"<p><strong>{escape(title)}.</strong> {code}</p>")
    return f"<div class='no-peeking-report'>{''.join(parts)}</div>"


def _claim_html(result: ClaimResult, report: Report) -> str:
    reason = "" if result.holds else why(result, report.examination)
    if result.finding and result is not report.first:
        reason = brief(result.finding, report.examination)
    text = f"<br><small>{escape(reason)}</small>" if reason else ""
    sign = "✓" if result.holds else "✗" if result.reached else "–"
    name = escape(result.claim.name)
    return f"<li>{sign} <span>{mark(result).strip('-') or 'not tried'}: {name}{text}</span></li>"


def _finding_html(finding: Finding, examination: Examination) -> str:
    call, values = call_text(finding, examination.exercise)
    lines = "\n".join(f"{name} = {indent(text, len(name) + 3)}" for name, text in values)
    shown = f"<pre style='{CODE}'>{escape(call)}\n{escape(lines)}</pre>"
    parts = [f"<p>A small input that shows it:</p>{shown}"]
    name, got, want = _pictured(finding, examination.exercise.returns)
    if want is not None:
        wrong = differing(got, want) if got is not None else np.zeros(want.shape, bool)
        pictures = [_grid_html(f"expected{name}", want, np.zeros(want.shape, bool))]
        if got is not None:
            pictures.append(_grid_html(f"your{name}" if name else "yours", got, wrong))
        parts.append(
            f"<div style='display:flex;flex-wrap:wrap;gap:1.5em'>{''.join(pictures)}</div>"
        )
    elif finding.expected is not None:
        texts = f"expected {indent(show(finding.expected), 9)}"
        if finding.got is not None:
            texts += f"\ngot      {indent(show(finding.got), 9)}"
        parts.append(f"<pre style='{CODE}'>{escape(texts)}</pre>")
    return "".join(parts)


def _pictured(
    finding: Finding, names: tuple[str, ...]
) -> tuple[str, np.ndarray | None, np.ndarray | None]:
    """(name, got, expected) of the first part that differs, if it is small enough to draw."""
    gots = finding.got if isinstance(finding.got, tuple) else (finding.got,)
    wants = finding.expected if isinstance(finding.expected, tuple) else (finding.expected,)
    for part, (got, want) in enumerate(zip(gots, wants, strict=False)):
        if not isinstance(want, np.ndarray) or want.ndim < 2:
            continue
        comparable = isinstance(got, np.ndarray) and got.shape == want.shape
        if comparable and not differing(got, want).any():
            continue
        index = np.argwhere(differing(got, want))[0][:-2] if comparable else [0] * (want.ndim - 2)
        want = want[tuple(index)]
        if max(want.shape) <= WIDEST and want.size:
            name = f" {names[part]}" if names else ""
            return name, (got[tuple(index)] if comparable else None), want
    return "", None, None


def _grid_html(caption: str, array: np.ndarray, wrong: np.ndarray) -> str:
    """A matrix as a table: shaded by value, wrong entries outlined and marked."""
    finite = np.abs(array[np.isfinite(array)].astype(float))
    top = finite.max(initial=0) or 1.0
    rows = []
    for values, marks in zip(array, wrong, strict=True):
        cells = []
        for value, bad in zip(values, marks, strict=True):
            share = min(abs(float(value)) / top, 1) if np.isfinite(value) else 0
            style = f"background:rgba(0,114,178,{0.5 * share:.2f});{CELL}"
            style += "outline:3px solid #d55e00;outline-offset:-3px;" if bad else ""
            text = ("1" if value else "0") if array.dtype == bool else f"{float(value):.3g}"
            cells.append(f"<td style='{style}'>{'✗ ' if bad else ''}{text}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"
