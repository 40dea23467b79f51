"""Where a class stands in an assignment: everybody's points, findings and times, read only.

The points come from nbgrader's gradebook, changes by a person included; what was recognised
comes from the graded notebooks and the record beside them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.api import MissingEntry

from autograde.exercise import exercises_of
from autograde.grading.course import Course, GradingError
from autograde.grading.plugin import KEY

if TYPE_CHECKING:
    from nbgrader.api import Assignment, Gradebook, SubmittedAssignment


@dataclass(frozen=True)
class Standing:
    """One student.

    status: "graded"; "failed", nothing could be graded (0 points); "waiting", for a person to
        grade the `waiting` answers; "error", the grader could not do its work; "new", handed in
        and not graded; "nothing", nothing was handed in.
    points: None unless graded or failed. penalty: for being late, already taken off.
    parts: {exercise: points, or None}. found: {exercise: what the judge wrote of it}.
    """

    student: str
    status: str
    points: float | None = None
    penalty: float = 0.0
    late: float = 0.0  # seconds
    parts: dict[str, float | None] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    note: str = ""
    name: str = ""
    number: str = ""  # in the learning management system
    email: str = ""


@dataclass(frozen=True)
class ClassStanding:
    """All of them, by name, and what there is to earn: {exercise: points}."""

    assignment: str
    most: dict[str, float]
    students: tuple[Standing, ...]

    @property
    def max_points(self) -> float:
        return sum(self.most.values())


def class_standing(course: Course, assignment: str) -> ClassStanding:
    """Read the gradebook and the records.

    Raises
    ------
    GradingError: no such assignment, no gradebook or a locked one, nothing graded in it.
    """
    url = str(course.directory.db_url)
    file = Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None
    known = sorted(path.parent.name for path in course.folder("source").glob("*/*.ipynb"))
    if assignment not in known:
        there = ", ".join(known) or "none"
        raise GradingError(f"there is no assignment {assignment!r}; there are: {there}")
    if file and not file.is_file():
        raise GradingError(f"there is no gradebook {file}; run `autograde grade {assignment}`")
    with course.gradebook() as gradebook:
        try:
            found = gradebook.find_assignment(assignment)
        except MissingEntry:
            raise GradingError(
                f"the gradebook {course.database} does not know {assignment}; is this the "
                f"course's folder? If so: `autograde grade {assignment}`"
            ) from None
        students = {each.student: each for each in _graded(course, found)}
        students = {
            **{each.student: each for each in _others(course, gradebook, found)},
            **students,
        }
        most = _most(found)
    return ClassStanding(assignment, most, tuple(students[who] for who in sorted(students)))


def _most(assignment: Assignment) -> dict[str, float]:
    """{exercise: its points}, in the order of the course."""
    cells = [cell for notebook in assignment.notebooks for cell in notebook.grade_cells]
    points = {cell.name.removeprefix("test_"): float(cell.max_score) for cell in cells}
    order = [exercise.name for exercise in exercises_of(assignment.name)]
    return {
        name: points[name] for name in [*order, *sorted(set(points) - {*order})] if name in points
    }


def _graded(course: Course, assignment: Assignment) -> Iterator[Standing]:
    for submission in assignment.submissions:
        grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
        if grades:
            yield _standing(course, submission, grades)


def _standing(course: Course, submission: SubmittedAssignment, grades: list) -> Standing:
    student, parts, waiting = submission.student, {}, []
    for grade in grades:
        name = grade.name.removeprefix("test_")
        known = grade.auto_score is not None or grade.manual_score is not None
        parts[name] = float(grade.score) if known else None
        waiting += [] if known else [name]
    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)
    total = sum(points or 0.0 for points in parts.values()) - penalty
    record, found = _record(course, student.id, submission.name), {}
    status = record.get("status", "graded")
    if status != "error":
        found = _found(course, student.id, submission.name)
        status = "waiting" if waiting else status
    return Standing(
        student.id,
        status,
        total if status in ("graded", "failed") else None,
        penalty,
        submission.total_seconds_late,
        parts,
        tuple(waiting),
        found,
        record.get("note", ""),
        f"{student.first_name or ''} {student.last_name or ''}".strip(),
        student.lms_user_id or "",
        student.email or "",
    )


def _others(course: Course, gradebook: Gradebook, assignment: Assignment) -> Iterator[Standing]:
    """Those without a grade: known to the gradebook, or with a folder in submitted/."""
    for student in gradebook.students:
        name = f"{student.first_name or ''} {student.last_name or ''}".strip()
        status = "nothing"
        yield Standing(student.id, status, name=name, number=student.lms_user_id or "")
    for folder in course.folder("submitted").glob("[!.]*"):
        if (folder / assignment.name).is_dir():
            record = _record(course, folder.name, assignment.name)
            status = "error" if record.get("status") == "error" else "new"
            yield Standing(folder.name, status, note=record.get("note", ""))
        elif folder.is_dir():
            yield Standing(folder.name, "nothing")


def _record(course: Course, student: str, assignment: str) -> dict[str, Any]:
    path = course.root / "results" / assignment / f"{student}.json"
    with contextlib.suppress(OSError, ValueError):
        record = json.loads(path.read_text("utf-8"))
        return record if isinstance(record, dict) else {}
    return {}


def _found(course: Course, student: str, assignment: str) -> dict[str, dict[str, Any]]:
    """{exercise: what the judge wrote into the graded notebook}."""
    found = {}
    for path in (course.folder("autograded") / student / assignment).glob("*.ipynb"):
        with contextlib.suppress(OSError, ValueError, KeyError, AttributeError, TypeError):
            for cell in json.loads(path.read_text("utf-8"))["cells"]:
                found |= {each["exercise"]: each for each in cell["metadata"].get(KEY, ())}
    return found
