"""Grading a class: each submission into the gradebook, grades.csv and a feedback page.

`grade_submission` grades one, and shares nothing with any other. One submission that cannot
be graded never stops the rest, and what is graded and unchanged is not graded again.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from nbgrader.api import MissingEntry
from nbgrader.converters import Autograde, BaseConverter, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograde.build import scripts_on_path
from autograde.exercise import chapters
from autograde.grading.course import (
    LOCKED,
    Course,
    GradingError,
    alone,
    missing_from,
    submissions_of,
)
from autograde.grading.doctor import why_no_sandbox
from autograde.grading.gradesheet import Result, remember, remembered, write_grades
from autograde.grading.judge import KEY
from autograde.grading.staging import Submission, stage


def grade_assignment(
    assignment: str,
    root: Path,
    students: list[str] | None = None,
    force: bool = False,
    progress: Callable[[str], None] = print,
    sandboxed: bool | None = None,
) -> list[Result]:
    """Grade what is in `root/submitted/<student>/<assignment>/`.

    Parameters
    ----------
    root: the course's folder, with nbgrader_config.py and solutions/.
    students: grade these only; None means all who handed something in.
    force: grade again what has been graded and has not changed.
    progress: is given a line for each student.
    sandboxed: whether submissions run in a sandbox; None: as nbgrader_config.py says, or they do.

    Raises
    ------
    GradingError: before anything is graded, or when the gradebook cannot be written.
    """
    root = Path(root).resolve()
    course = Course(root, sandboxed)
    if course.sandboxed and (reason := why_no_sandbox()):
        raise GradingError(reason)
    with alone(root), scripts_on_path():
        submissions = submissions_of(course, assignment, students)
        course.register(assignment)
        standard = course.fingerprint(assignment)
        results: list[Result] = []
        width = max(len(s.student) for s in submissions)
        try:
            for number, submission in enumerate(submissions, start=1):
                result = _graded(course, submission, standard, force)
                results.append(result)
                place = f"{number} of {len(submissions)}".rjust(2 * len(f"{len(submissions)}") + 4)
                progress(f"{place}  {submission.student:<{width}}  {result.line()}")
        finally:
            write_grades(root / "grades.csv", results, course.folder("submitted"))
        if students is None and (missing := missing_from(course, assignment)):
            progress(f"nothing handed in: {', '.join(missing)}")
    return results


def _graded(course: Course, submission: Submission, standard: str, force: bool) -> Result:
    """The submission's result: from before, if nothing has changed, else fresh.

    standard: stands for all that a verdict depends on beside the submission.
    """
    try:
        key = f"{submission.digest()} {standard}"
    except OSError:  # a file that may not be read; grading will say which
        key, force = "", True
    path = course.root / "results" / submission.assignment / f"{submission.student}.json"
    before = None if force else remembered(path, key)
    if before and (kept := _kept(course, submission, before)):
        if kept.by_hand != before.get("by_hand", ""):  # the page shows what it was then
            here = course.for_student(submission.student, submission.assignment)
            _convert(GenerateFeedback, here, course.config)
            remember(path, key, kept)
        return kept
    result = grade_submission(submission, course.root, course.sandboxed)
    remember(path, key, result)
    return result


def _kept(course: Course, submission: Submission, before: dict[str, Any]) -> Result | None:
    """The earlier result, with the gradebook's points; None if some of it has been removed."""
    where = (submission.student, submission.assignment)
    pages = [course.folder(step).joinpath(*where) for step in ("autograded", "feedback")]
    if not all(any(page.glob("*")) for page in pages):
        return None
    try:
        result = _from_gradebook(course, submission)
    except MissingEntry:
        return None
    if result.points is None and before["status"] != "error" and "a person" not in before["note"]:
        return None  # the gradebook has been started anew
    return replace(
        result,
        status=before["status"],
        note=before["note"],
        misconceptions=before["misconceptions"],
        seconds=before["seconds"],
        kept=True,
    )


def grade_submission(submission: Submission, root: Path, sandboxed: bool | None = None) -> Result:
    """Grade one submission into the gradebook and write its feedback page."""
    course, begun = Course(root, sandboxed), monotonic()
    with tempfile.TemporaryDirectory(prefix="no-peeking-") as folder:
        with course.gradebook() as gradebook:
            assignment = gradebook.find_assignment(submission.assignment)
            names, most = [n.name for n in assignment.notebooks], float(assignment.max_score)
        try:
            told = stage(submission, names, Path(folder).resolve())
            course.config.AnyNotebook.told = told
            here = course.for_student(submission.student, submission.assignment)
            there = course.for_student(
                submission.student,
                submission.assignment,
                submitted_directory=str(Path(folder).resolve()),
            )
            _convert(Autograde, there, course.config)
            result = _with_findings(course, _from_gradebook(course, submission), names)
            _convert(GenerateFeedback, here, course.config)
        except GradingError:
            raise
        except Exception as error:  # whatever it is, the next student is to be graded
            if "database is locked" in str(error):
                raise GradingError(LOCKED) from None
            result = Result(
                submission.student,
                submission.assignment,
                None,
                most,
                status="error",
                note=f"not graded: {error}",
            )
    return replace(result, seconds=monotonic() - begun)


def _convert(converter: type[BaseConverter], course: CourseDirectory, config: Config) -> None:
    """Run a step of nbgrader, and if it fails, say what nbgrader only logs."""
    log, told = logging.Logger("nbgrader", logging.WARNING), _Told()
    log.addHandler(told)
    try:
        converter(coursedir=course, config=config, force=True, log=log).start()
    except NbGraderException as error:
        raise NbGraderException(told.reason() or str(error)) from error


class _Told(logging.Handler):
    """Keeps what nbgrader logs as errors."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def reason(self) -> str:
        """The last line of the first traceback: the exception that ended the step."""
        for text in self.texts:
            if text.startswith("Traceback"):
                lines = [line for line in text.splitlines() if line and not line[0].isspace()]
                known = [line for line in lines if "database is locked" in line]
                return (known or lines)[-1]
        return ""


def _from_gradebook(course: Course, submission: Submission) -> Result:
    """The points as the gradebook has them, a person's changes included."""
    with course.gradebook() as gradebook:
        found = gradebook.find_submission(submission.assignment, submission.student)
        grades, waiting, by_hand = {}, [], []
        for notebook in found.notebooks:
            for grade in notebook.grades:
                name = grade.name.removeprefix("test_")
                known = grade.auto_score is not None or grade.manual_score is not None
                grades[name] = float(grade.score) if known else None
                waiting += [] if known else [name]
            given = [(g.name, g.manual_score, g.extra_credit) for g in notebook.grades]
            by_hand += [each for each in given if each[1:] != (None, None)]
            by_hand += [(c.name, c.manual_comment) for c in notebook.comments if c.manual_comment]
        late = sum(notebook.late_submission_penalty or 0 for notebook in found.notebooks)
        points = None if waiting else float(found.score) - late
        most = float(found.max_score)
    order = [exercise.name for exercise in chapters().get(submission.assignment, ())]
    names = [*(n for n in order if n in grades), *sorted(set(grades) - set(order))]
    note = f"{', '.join(sorted(waiting))}: waits for a person." if waiting else ""
    return Result(
        submission.student,
        submission.assignment,
        points,
        most,
        {name: grades[name] for name in names},
        note=note,
        by_hand=repr(sorted(by_hand, key=repr)) if by_hand else "",
    )


def _with_findings(course: Course, result: Result, notebooks: list[str]) -> Result:
    """Add what the judge and the restoring wrote into the graded notebooks."""
    notes, misconceptions, status = [result.note] if result.note else [], {}, result.status
    for name in notebooks:
        folder = course.folder("autograded") / result.student / result.assignment
        text = (folder / f"{name}.ipynb").read_text(encoding="utf-8")
        nb = json.loads(text)
        ours = nb["metadata"].get(KEY, {})
        notes += ours.get("notes", ())
        if ours.get("unreadable"):
            notes.insert(0, ours["unreadable"])
            status = "failed"
        for cell in nb["cells"]:
            for found in cell["metadata"].get(KEY, ()):
                if found["misconception"]:
                    misconceptions[found["exercise"]] = found["misconception"]
                if found["stopped"] and not found["headline"].endswith("not written yet"):
                    notes.append(f"{found['exercise']}: {found['stopped'].rstrip('.')}")
    note = " ".join(text if text[-1] in ".?" else f"{text}." for text in notes)
    return replace(result, note=note, misconceptions=misconceptions, status=status)
