"""The report on a class as one page that needs nothing else: no script, no request, no image.

Readable on a phone, in light and in dark, printed, and without colours: every bar has its number
beside it.
"""

from __future__ import annotations

import math
import re
from html import escape

from autograde.exercise import exercises_of
from autograde.grading.classreport import WORDS, ClassReport, Item, Mistake

STYLE = """
:root { color-scheme: light dark; --bar: #0072b2; --rest: #dfe5ea; --line: #9aa5ae;
  --text: #1b1f23; --soft: #57606a; --page: #ffffff; --card: #f4f6f8; }
@media (prefers-color-scheme: dark) { :root { --bar: #56b4e9; --rest: #333b44;
  --line: #6e7a86; --text: #e6e9ec; --soft: #a5b0ba; --page: #14181c; --card: #1d2329; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 54rem; background: var(--page);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p.soft, .soft { color: var(--soft); font-size: .9rem; }
svg { display: block; width: 100%; height: auto; max-width: 24rem; }
svg.wide { max-width: 36rem; }
svg text { fill: var(--text); font: 14px system-ui, sans-serif; }
svg.wide text { font-size: 11px; }
.bar { fill: var(--bar); } .rest { fill: var(--rest); } .axis { stroke: var(--line); }
.card { background: var(--card); border-radius: 8px; padding: .8rem 1rem; margin: .8rem 0; }
.card p { margin: .3rem 0; overflow-wrap: anywhere; }
.numbers { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; padding: 0; list-style: none; }
.numbers b { font-size: 1.3rem; } code { font-family: ui-monospace, monospace; font-size: .92em; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
@media print { body { max-width: none; } .card { break-inside: avoid; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(report: ClassReport, anonymous: bool) -> str:
    """The whole page; `anonymous`: nobody is named."""
    parts = [
        f"<h1>{escape(report.assignment)}: what the class got right and wrong</h1>",
        _numbers(report),
        "<h2>Mistakes that were recognised</h2>",
        _mistakes(report, anonymous),
        "<h2>The exercises</h2>",
        _items(report),
        "<h2>Scores</h2>",
        histogram(report.scores, report.max_points),
        "<h2>What did not run, and what is not graded</h2>",
        _trouble(report, anonymous),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.assignment)}: class report</title><style>{STYLE}</style></head>\n"
        f"<body>{chr(10).join(parts)}\n</body></html>\n"
    )


def _numbers(report: ClassReport) -> str:
    scores = sorted(report.scores)
    shown = [(str(report.examined), "examined")]
    if scores:
        middle = (scores[(len(scores) - 1) // 2] + scores[len(scores) // 2]) / 2
        shown += [
            (f"{sum(scores) / len(scores):.1f}", f"mean of {report.max_points:g} points"),
            (f"{middle:g}", "median"),
        ]
    shown += [(str(len(who)), WORDS[status].lower()) for status, who in report.others.items()]
    shown += [(str(len(report.late)), "late")] if report.late else []
    items = "".join(f"<li><b>{value}</b> {escape(what)}</li>" for value, what in shown)
    return f'<ul class="numbers">{items}</ul>'


def _mistakes(report: ClassReport, anonymous: bool) -> str:
    if not report.mistakes:
        return "<p>None was recognised.</p>"
    intro = (
        '<p class="soft">The most frequent first. The sentence is what its author reads; an '
        "answer shows one mistake at a time, so others may stand behind it.</p>"
    )
    return intro + "".join(_mistake(each, report, anonymous) for each in report.mistakes)


def _mistake(each: Mistake, report: ClassReport, anonymous: bool) -> str:
    read = {e.name: e.read[1] for e in exercises_of(report.assignment)}
    where = f" · <i>{escape(read[each.exercise])}</i>" if each.exercise in read else ""
    count = len(each.students)
    return (
        f'<div class="card"><p><code>{escape(each.exercise)}</code>{where}</p>'
        f"{bar(count / max(report.examined, 1), f'{count} of {report.examined}')}"
        f"<p>{_code(each.text)}</p>{'' if anonymous else _names(each.students)}</div>"
    )


def _items(report: ClassReport) -> str:
    intro = (
        '<p class="soft">The bar is the share of the points that the class got: the shorter, the '
        "harder. Discrimination is the correlation of an exercise's points with those of all "
        "others together (point-biserial where it is all or nothing): 0.3 and more is usual; near "
        "0 or below, the exercise asks for something else than the others do, or is unclear.</p>"
    )
    return intro + "".join(map(_item, report.items))


def _item(item: Item) -> str:
    share = item.share or 0.0
    label = "no one yet" if item.share is None else f"{share:.0%}"
    told = "cannot be told" if item.discrimination is None else f"{item.discrimination:+.2f}"
    facts = [f"{item.right} all right", f"{item.nothing} without a point"]
    facts += [f"{item.unwritten} not written"] if item.unwritten else []
    facts += [f"{item.unnamed} wrong in a way not recognised"] if item.unnamed else []
    return (
        f'<div class="card"><p><code>{escape(item.name)}</code> · {item.points:g} points</p>'
        f'{bar(share, label)}<p class="soft">of {item.students}: {", ".join(facts)} · '
        f"discrimination {told}</p></div>"
    )


def _trouble(report: ClassReport, anonymous: bool) -> str:
    parts = []
    for each in report.stopped:
        who = "" if anonymous else _names(each.students)
        count = len(each.students)
        parts.append(
            f'<div class="card"><p><b>{count}</b> · <code>{escape(each.exercise)}</code>: '
            f"{_code(each.text)}</p>{who}</div>"
        )
    for status, who in report.others.items():
        lines = "" if anonymous else _names([f"{s.student}: {_reason(s)}" for s in who], False)
        parts.append(f'<div class="card"><p><b>{len(who)}</b> · {WORDS[status]}</p>{lines}</div>')
    return "".join(parts) or "<p>Everything ran, and everything is graded.</p>"


def _reason(student) -> str:
    return ", ".join(student.waiting) if student.status == "waiting" else student.note or "–"


def _names(names: tuple[str, ...] | list[str], together: bool = True) -> str:
    """Who it is, out of sight until it is asked for: such pages are shown to classes."""
    text = ", ".join(map(escape, names)) if together else "<br>".join(map(escape, names))
    return f"<details><summary>who</summary><p>{text}</p></details>"


def _code(text: str) -> str:
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text))


def bar(share: float, label: str) -> str:
    """A share of the whole as a bar, with its number beside it."""
    filled = 230 * min(max(share, 0.0), 1.0)
    return (
        f'<svg class="bars" viewBox="0 0 320 22" role="img" aria-label="{escape(label)}">'
        '<rect class="rest" x="0" y="3" width="230" height="16" rx="3"/>'
        f'<rect class="bar" x="0" y="3" width="{filled:.1f}" height="16" rx="3"/>'
        f'<text x="240" y="16">{escape(label)}</text></svg>'
    )


def histogram(scores: tuple[float, ...], most: float) -> str:
    """How many have how many points, in about ten steps; all points are in the last one."""
    if not scores or not most:
        return "<p>No grade is complete yet.</p>"
    step = max(math.ceil(most / 10), 1)
    bins = math.ceil(most / step)
    counts = [0] * bins
    for score in scores:
        counts[min(max(int(score / step), 0), bins - 1)] += 1
    edges = [f"{min(index * step, most):g}" for index in range(bins + 1)]
    spoken = ", ".join(
        f"{count} from {edges[i]} to {edges[i + 1]}" for i, count in enumerate(counts) if count
    )
    width = 320 / bins
    bars = (_column(20 + i * width, width, count, max(counts)) for i, count in enumerate(counts))
    marks = (
        f'<text x="{20 + i * width:.1f}" y="158" text-anchor="middle">{edge}</text>'
        for i, edge in enumerate(edges)
    )
    return (
        f'<svg class="wide" viewBox="0 0 360 178" role="img" '
        f'aria-label="Students by points: {spoken}">'
        f'<line class="axis" x1="20" y1="142" x2="340" y2="142"/>{"".join(bars)}{"".join(marks)}'
        '<text x="180" y="174" text-anchor="middle">points</text></svg>'
    )


def _column(x: float, width: float, count: int, top: int) -> str:
    high = 120 * count / top
    return (
        f'<rect class="bar" x="{x + 1.5:.1f}" y="{142 - high:.1f}" width="{width - 3:.1f}" '
        f'height="{high:.1f}"/><text x="{x + width / 2:.1f}" y="{138 - high:.1f}" '
        f'text-anchor="middle">{count or ""}</text>'
    )
