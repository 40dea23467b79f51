"""Grades as Canvas, as Moodle and as a plain table takes them.

A grade that is not known is left out, never written as 0 or as an empty cell: Canvas takes an
empty cell for a grade that is to be deleted. Filling in the list that the system itself
exported is safest: every name and number is then the system's own.

Sources: Canvas reads `lib/gradebook_importer.rb`, Moodle
`mod/assign/feedback/offline/importgradeslib.php` (grading worksheet) and Grades > Import > CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograde.grading.collect import read_record
from autograde.grading.course import Course, GradingError
from autograde.grading.roster import Person, Roster, harmless
from autograde.grading.standing import ClassStanding, Standing, class_standing

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)")


@dataclass(frozen=True)
class Export:
    """The table's text, and what an instructor must know of it; `findings`: grades not in it."""

    text: str
    grades: int
    findings: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What is asked for. out_of: grades on another scale. column: the assignment's name there."""

    format: str = "csv"
    roster: Roster = field(default_factory=Roster)
    out_of: float | None = None
    column: str = ""
    missing_as_zero: bool = False


def export(course: Course, assignment: str, wanted: Wanted) -> Export:
    """The grades of an assignment in the format that is wanted: csv, canvas or moodle.

    Raises
    ------
    GradingError: no such assignment, no gradebook, a locked one, or nobody in it.
    """
    standing = _with_listed(class_standing(course, assignment), wanted.roster)
    if not standing.students:
        raise GradingError(f"nobody has handed in {assignment}, and the gradebook knows nobody")
    record = read_record(course.folder("submitted"), assignment)
    if wanted.missing_as_zero:
        students = [
            replace(s, points=0.0) if s.status == "nothing" else s for s in standing.students
        ]
        standing = replace(standing, students=tuple(students))
    make: Callable = {"csv": _plain, "canvas": _canvas, "moodle": _moodle}[wanted.format]
    made = make(standing, wanted, record)
    without = [each for each in standing.students if each.points is None]
    absent = [each.student for each in without if each.status == "nothing"]
    findings = [f"{s.student}: {_why(s)}" for s in without if s.status != "nothing"]
    notes = [f"nothing handed in, so left out (or --missing-as-zero): {', '.join(absent)}"]
    return replace(
        made,
        findings=(*findings, *made.findings),
        notes=(*(notes if absent else ()), *made.notes),
    )


def _with_listed(standing: ClassStanding, roster: Roster) -> ClassStanding:
    """With those of the list who have handed nothing in, and whom nothing else knows."""
    there = {each.student for each in standing.students}
    absent = [p for p in roster.people if p.student not in there]
    new = [Standing(person.student, "nothing", name=person.name) for person in absent]
    everybody = sorted([*standing.students, *new], key=lambda each: each.student)
    return replace(standing, students=tuple(everybody))


def _why(student: Standing) -> str:
    if student.status == "waiting":
        return f"no grade yet: {', '.join(student.waiting)} waits for a person (formgrader)"
    return {
        "error": f"no grade: {student.note or 'the grader could not do its work'}",
        "new": "no grade yet: `autograde grade` has not graded it",
    }.get(student.status, "no grade")


def _points(student: Standing, standing: ClassStanding, wanted: Wanted) -> str:
    """The grade as it is written: at most two decimals, as Canvas compares them."""
    if student.points is None:
        return ""
    scale = wanted.out_of / standing.max_points if wanted.out_of else 1.0
    return f"{max(student.points, 0.0) * scale:.2f}".rstrip("0").rstrip(".")


def _most(standing: ClassStanding, wanted: Wanted) -> str:
    return f"{wanted.out_of or standing.max_points:g}"


def _plain(standing: ClassStanding, wanted: Wanted, record: dict) -> Export:
    """Everybody, whatever their state, with the state."""
    heads = ("student", "name", "assignment", "points", "max_points", "late",
        "late_seconds",
             "penalty", "status", *standing.most)  # fmt: skip
    rows = []
    for each in standing.students:
        points = _points(each, standing, wanted)
        parts = [each.parts.get(name) for name in standing.most]
        rows.append(
            (
                each.student,
                harmless(each.name or record.get(each.student, {}).get("name", "")),
                standing.assignment,
                points,
                _most(standing, wanted),
                "yes" if each.late or record.get(each.student, {}).get("late") else "",
                f"{each.late:.0f}",
                f"{each.penalty:g}",
                each.status,
                *("" if part is None else f"{part:g}" for part in parts),
            )
        )
    return Export(_table(heads, rows), sum(bool(row[3]) for row in rows), ())


def _canvas(standing: ClassStanding, wanted: Wanted, record: dict) -> Export:
    """Canvas's gradebook: who, the points that are possible, a line for each grade."""
    roster = wanted.roster
    if roster.people and roster.kind != "canvas":
        raise GradingError("that list is not Canvas's: export the gradebook there, and give it")
    column, notes = _canvas_column(standing, wanted)
    heads = [*(c for c in (roster.columns or CANVAS) if c in CANVAS), column]
    possible = (roster.points or {}).get(column) or _most(standing, wanted)
    if _number(possible) not in (None, _number(_most(standing, wanted))):
        notes.append(
            f"{column} has {possible} points in Canvas and {_most(standing, wanted)} here; "
            f"--out-of {possible} converts"
        )
    rows: list[tuple] = [("    Points Possible", *[""] * (len(heads) - 2), possible)]
    findings = []
    for each in standing.students:
        points = _points(each, standing, wanted)
        person = roster.find(student=each.student)
        if points and roster.people and not person:
            findings.append(f"{each.student}: not in Canvas's list, so left out")
        elif points:
            rows.append((*_canvas_line(each, person, record, heads[:-1]), points))
    return Export(_table(heads, rows), len(rows) - 1, tuple(findings), tuple(notes))


def _canvas_column(standing: ClassStanding, wanted: Wanted) -> tuple[str, list[str]]:
    """The heading of the assignment's column, "Title (12345)" when Canvas knows it."""
    name = wanted.column or standing.assignment
    for column in wanted.roster.columns:
        if name in (column, column.rpartition(" (")[0]):
            return column, []
    return name, [f"Canvas will ask to which assignment {name!r} belongs, or make a new one"]


def _canvas_line(
    each: Standing, person: Person | None, record: dict, heads: list[str]
) -> tuple[str, ...]:
    if person:
        return tuple(person.row.get(head, "") for head in heads)
    about = record.get(each.student, {})
    canvas = about if about.get("way") == "Canvas" else {}
    number = each.number or canvas.get("number", "")
    name = harmless(each.name or canvas.get("name") or each.student)
    known = {"Student": name, "ID": number}
    known |= {} if number else {"SIS Login ID": each.student}
    return tuple(known.get(head, "") for head in heads)


def _moodle(standing: ClassStanding, wanted: Wanted, record: dict) -> Export:
    """Moodle's grading worksheet; or, where its numbers are not known, a table for its import."""
    roster = wanted.roster
    if roster.people and roster.kind == "moodle":
        return _worksheet(standing, wanted)
    numbers = {who: about for who, about in record.items() if about.get("way") == "Moodle"}
    if any(each.student in numbers for each in standing.students):
        return _new_worksheet(standing, wanted, numbers)
    people = {each.student: roster.find(student=each.student) for each in standing.students}
    mails = all("@" in who for who in people)
    heads = ("Email address" if mails else "Username", wanted.column or standing.assignment)
    graded = [each for each in standing.students if each.points is not None]
    rows = [(each.student, _points(each, standing, wanted)) for each in graded]
    note = f"in Moodle: Grades > Import > CSV file, map {heads[0]!r} to the user, then the grade"
    return Export(_table(heads, rows), len(rows), (), (note,))


def _worksheet(standing: ClassStanding, wanted: Wanted) -> Export:
    """The worksheet as Moodle exported it, with the grades filled in."""
    roster, rows, findings, notes = wanted.roster, [], [], []
    by_name = {each.student: each for each in standing.students}
    names = {column.casefold(): column for column in roster.columns}
    grade, most = names["grade"], names.get("maximum grade", "")
    for person in roster.people:
        each = by_name.pop(person.student, None)
        if each and each.points is not None:
            row = {**person.row, grade: _points(each, standing, wanted)}
            rows.append([row.get(column, "") for column in roster.columns])
    findings += [f"{who}: not in Moodle's list, so left out" for who, each in by_name.items()
                 if each.points is not None]  # fmt: skip
    theirs = _number(roster.people[0].row.get(most, ""))
    if theirs not in (None, _number(_most(standing, wanted))):
        notes.append(
            f"the maximum is {theirs:g} in Moodle and {_most(standing, wanted)} here; "
            f"set it there, or convert with --out-of {theirs:g}"
        )
    return Export(_table(roster.columns, rows), len(rows), tuple(findings), tuple(notes))


def _new_worksheet(standing: ClassStanding, wanted: Wanted, numbers: dict) -> Export:
    """A worksheet with the numbers that stood in the names of the files."""
    rows, findings = [], []
    for each in standing.students:
        points, about = _points(each, standing, wanted), numbers.get(each.student)
        if points and not about:
            findings.append(f"{each.student}: their number in Moodle is not known, so left out")
        elif points:
            who = (f"Participant {about['number']}", harmless(about["name"]))
            rows.append((*who, points, _most(standing, wanted), "-"))
    note = "Moodle keeps a grade that it has; tick “Allow updating records” there to change it"
    return Export(_table(MOODLE, rows), len(rows), tuple(findings), (note,))


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def _table(heads: list[str] | tuple[str, ...], rows: list) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    return text.getvalue()


def default_path(course: Course, assignment: str, format: str) -> Path:
    return course.root / "reports" / f"{assignment}-grades-{format}.csv"
