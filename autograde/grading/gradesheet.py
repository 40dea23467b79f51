"""The table of grades, grades.csv, and the record of what has been graded."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any

from autograde.grading.accidents import AGAIN, GradingError

FIRST, LAST = (
    ("student", "assignment", "points", "max_points"),
    ("status", "note", "misconceptions"),
)


@dataclass(frozen=True)
class Result:
    """What came of grading one submission.

    points: None when there are none yet: the grader failed, or a person has still to grade.
    exercises: {exercise: points}; misconceptions: {exercise: the mistake that was recognised}.
    status: "graded"; "failed", when nothing in the submission could be graded (0 points, the
        note says why); "error", when the grader could not do its work (to be tried again).
    by_hand: what a person gave in the gradebook: points and comments by cell, in one text.
    kept: it had been graded before and nothing has changed.
    """

    student: str
    assignment: str
    points: float | None
    max_points: float
    exercises: dict[str, float | None] = field(default_factory=dict)
    status: str = "graded"
    note: str = ""
    misconceptions: dict[str, str] = field(default_factory=dict)
    by_hand: str = ""
    seconds: float = 0.0
    kept: bool = False

    def line(self) -> str:
        """The result in one line, for a terminal."""
        points = "?" if self.points is None else f"{self.points:g}"
        how = "unchanged" if self.kept else f"{self.seconds:.1f} s"
        status = "" if self.status == "graded" else f"{self.status}: "
        note = shorten(f"{status}{self.note}", 160, placeholder=" …")
        return f"{points:>4} of {self.max_points:g}  {how:>9}  {note}".rstrip()


def write_grades(path: Path, results: list[Result], submitted: Path) -> None:
    """Write grades.csv whole or not at all; rows of other assignments and students stay.

    A row whose submission is no longer in `submitted` goes.
    """
    new = {(result.student, result.assignment): _row(result) for result in results}
    old = {(row.get("student", ""), row.get("assignment", "")): row for row in _rows(path)}
    kept = {key: row for key, row in old.items() if submitted.joinpath(*key).is_dir()}
    rows = [row for _, row in sorted({**kept, **new}.items(), key=lambda item: item[0][::-1])]
    exercises = dict.fromkeys(name for row in rows for name in row if name not in FIRST + LAST)
    text = io.StringIO()
    table = csv.DictWriter(text, [*FIRST, *exercises, *LAST], restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, text.getvalue())


def _row(result: Result) -> dict[str, str]:
    wrong = "; ".join(f"{name}: {what}" for name, what in result.misconceptions.items())
    return {
        "student": result.student,
        "assignment": result.assignment,
        "points": _number(result.points),
        "max_points": _number(result.max_points),
        **{name: _number(points) for name, points in result.exercises.items()},
        "status": result.status,
        "note": result.note,
        "misconceptions": wrong,
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _rows(path: Path) -> Iterable[dict[str, str]]:
    try:
        rows = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
        known = {"student", "assignment"} <= set(rows.fieldnames or ())
        found = [{k: v for k, v in row.items() if k and v} for row in rows]
    except FileNotFoundError:
        return []
    except (UnicodeError, csv.Error):
        known = False
    if not known:  # another program saved it in its own way: its rows are not to be lost
        raise GradingError(f"{path} is not as it was written; move it away, and {AGAIN}")
    return found


def write_whole(path: Path, text: str) -> None:
    """The file is the old one or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    try:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def remember(path: Path, key: str, result: Result) -> None:
    """Record that this has been graded; the points themselves stand in the gradebook."""
    record = {
        "key": key,
        "status": result.status,
        "note": result.note,
        "misconceptions": result.misconceptions,
        "by_hand": result.by_hand,
        "seconds": round(result.seconds, 2),
    }
    write_whole(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def remembered(path: Path, key: str) -> dict[str, Any] | None:
    """The record of the same submission and the same assignment, if there is one."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return record if record["key"] == key and record["status"] != "error" else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
