"""What a class got right and wrong: how hard each exercise was, who makes which mistake."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autograde.bank import misconceptions
from autograde.exercise import Exercise, exercises_of
from autograde.grading.roster import harmless
from autograde.grading.standing import ClassStanding, Standing

FEWEST = 3  # students, for a correlation to be said at all
WORDS = {
    "failed": "Nothing could be graded",
    "waiting": "Waits for a person",
    "error": "The grader could not do its work",
    "new": "Handed in, not graded yet",
    "nothing": "Nothing handed in",
}


@dataclass(frozen=True)
class Item:
    """An exercise, as the class did it.

    students: those with points for it. share: the mean of the points, of 1 ("difficulty").
    right, nothing, unwritten: how many got all, got no points, left it as it was.
    discrimination: the correlation of its points with those of all other exercises together
        (point-biserial where it is all or nothing); None where it cannot be told.
    unnamed: how many are wrong in a way that was not recognised.
    """

    name: str
    points: float
    students: int
    share: float | None
    right: int
    nothing: int
    unwritten: int
    discrimination: float | None
    unnamed: int


@dataclass(frozen=True)
class Mistake:
    """A misconception, its sentence, and who holds it."""

    exercise: str
    id: str
    text: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class ClassReport:
    """All that the page shows. scores: total points, of those whose grade is complete."""

    assignment: str
    max_points: float
    scores: tuple[float, ...]
    items: tuple[Item, ...]
    mistakes: tuple[Mistake, ...]
    stopped: tuple[Mistake, ...]  # time outs and dead processes; `text` is what was said
    others: dict[str, tuple[Standing, ...]]  # {status: who}, of those without a complete grade
    examined: int  # students whose work was examined
    late: tuple[str, ...]


def class_report(standing: ClassStanding) -> ClassReport:
    """Work out the report."""
    examined = [s for s in standing.students if s.status in ("graded", "failed", "waiting")]
    others = defaultdict(list)
    for student in standing.students:
        others[student.status].append(student)
    return ClassReport(
        standing.assignment,
        standing.max_points,
        tuple(s.points for s in examined if s.points is not None),
        tuple(_item(name, most, examined) for name, most in standing.most.items()),
        _mistakes(standing, examined),
        _stopped(standing, examined),
        {status: tuple(others[status]) for status in WORDS if others[status]},
        len(examined),
        tuple(s.student for s in standing.students if s.late),
    )


def _item(name: str, most: float, students: list[Standing]) -> Item:
    done = [s for s in students if s.parts.get(name) is not None]
    points = np.array([s.parts[name] for s in done], float)
    rest = np.array([sum(p or 0 for n, p in s.parts.items() if n != name) for s in done], float)
    wrong = [s.found.get(name, {}) for s in done if s.parts[name] < most]
    unwritten = sum(_unwritten(found) for found in wrong)
    named = sum(bool(found.get("misconception") or found.get("stopped")) for found in wrong)
    lost = sum(not found for found in wrong)
    return Item(
        name,
        most,
        len(done),
        float(points.mean() / most) if done and most else None,
        int((points >= most).sum()),
        int((points == 0).sum()),
        unwritten,
        discrimination(points, rest),
        len(wrong) - named - lost,
    )


def discrimination(points: np.ndarray, rest: np.ndarray) -> float | None:
    """Pearson's correlation; None for fewer than three students, or where all are the same."""
    if len(points) < FEWEST or np.ptp(points) == 0 or np.ptp(rest) == 0:
        return None
    return float(np.corrcoef(points, rest)[0, 1])


def _unwritten(found: dict) -> bool:
    return str(found.get("headline", "")).endswith("not written yet")


def _mistakes(standing: ClassStanding, students: list[Standing]) -> tuple[Mistake, ...]:
    exercises = {e.name: e for e in exercises_of(standing.assignment)}

    def text(name: str, which: str) -> str:
        return _sentence(exercises.get(name), which)

    return _grouped(standing, students, lambda found: found.get("misconception") or "", text)


def _stopped(standing: ClassStanding, students: list[Standing]) -> tuple[Mistake, ...]:
    return _grouped(
        standing,
        students,
        lambda found: "" if _unwritten(found) else str(found.get("stopped") or ""),
        lambda name, which: which,
    )


def _grouped(
    standing: ClassStanding,
    students: list[Standing],
    what: Callable[[dict], str],
    text: Callable[[str, str], str],
) -> tuple[Mistake, ...]:
    """Who share something, in the order of how many they are, then of the course."""
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in standing.most:
        for student in students:
            if which := what(student.found.get(name, {})):
                held[name, which].append(student.student)
    order = sorted(held.items(), key=lambda item: -len(item[1]))
    return tuple(
        Mistake(name, which, text(name, which), tuple(who)) for (name, which), who in order
    )


def _sentence(exercise: Exercise | None, which: str) -> str:
    """What a misconception's author is told."""
    answers = {answer.id: answer for answer in misconceptions(exercise)} if exercise else {}
    answer = answers.get(which)
    if answer and not answer.text and answer.same_as:
        answer = answers.get(answer.same_as, answer)
    return answer.text if answer and answer.text else which.replace("_", " ")


def as_csv(report: ClassReport, anonymous: bool) -> str:
    """The same as a table: a line for each thing that the page says."""
    table = io.StringIO()
    write = csv.writer(table, lineterminator="\n").writerow
    write(("what", "exercise", "item", "students", "of", "value", "text", "names"))
    for points, count in sorted(Counter(report.scores).items()):
        write(("score", "", f"{points:g}", count, len(report.scores), f"{points:g}", "", ""))
    for item in report.items:
        for what, value in _values(item):
            write(("exercise", item.name, what, "", item.students, value, "", ""))
        for what in ("right", "nothing", "unwritten", "unnamed"):
            write(("exercise", item.name, what, getattr(item, what), item.students, "", "", ""))
    for what, mistakes in (("misconception", report.mistakes), ("stopped", report.stopped)):
        for each in mistakes:
            names = "" if anonymous else " ".join(each.students)
            item = each.id if what == "misconception" else ""
            row = (
                what,
                each.exercise,
                item,
                len(each.students),
                report.examined,
                "",
                harmless(each.text),
            )
            write((*row, names))
    for status, who in report.others.items():
        names = "" if anonymous else " ".join(student.student for student in who)
        write(("status", "", status, len(who), "", "", WORDS[status], names))
    return table.getvalue()


def _values(item: Item) -> list[tuple[str, str]]:
    both = (("share", item.share), ("discrimination", item.discrimination))
    return [(what, "" if value is None else f"{value:.3f}") for what, value in both]
