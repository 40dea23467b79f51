"""Grading one submission: a function of what was handed in and of the assignment alone.

`grade_submission` runs nbgrader's own steps in a temporary folder, with a small gradebook of its
own. So it can run in any process, on any machine that sees the course's folder, next to others of
its kind; and what comes of it is kept whole or not at all (`autograde.grading.assignment`).
"""

from __future__ import annotations

import json
import logging
import pickle
import sys
import tempfile
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, BaseConverter, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograde.exercise import exercises_of
from autograde.grading.accidents import GradingError, accident
from autograde.grading.course import Course
from autograde.grading.folders import Files, packed
from autograde.grading.gradesheet import Result
from autograde.grading.judge import KEY
from autograde.grading.rows import Rows, rows_of_student
from autograde.grading.scratch import scratch_gradebook
from autograde.grading.staging import Submission, stage


@dataclass(frozen=True)
class Order:
    """A submission to be graded, and what the gradebook says of it, pickled `Rows`.

    only_page: it has been graded; a person's points and comments are to be put on its page.
    run, code: which run of the grader asks, and which version of it (`autograde.grading.workers`).
    """

    submission: Submission
    root: Path
    sandboxed: bool | None
    assignment: bytes
    student: bytes
    most: float
    only_page: bool = False
    run: str = ""
    code: str = ""

    def failed(self, why: str, seconds: float = 0.0) -> Graded:
        """What is told of a submission that the grader could not grade."""
        who, what = self.submission.student, self.submission.assignment
        note = f"not graded: {why}"
        return Graded(
            Result(who, what, None, self.most, status="error", note=note, seconds=seconds)
        )


@dataclass(frozen=True)
class Graded:
    """The result, rows for the gradebook, and {step: the files of that step's folder}."""

    result: Result
    rows: Rows = field(default_factory=dict)
    folders: dict[str, Files] = field(default_factory=dict)


def grade_submission(order: Order) -> Graded:
    """Grade one submission and make its feedback page.

    Raises
    ------
    GradingError: the next submission would fare no better.
    """
    begun = monotonic()
    with tempfile.TemporaryDirectory(prefix="no-peeking-") as folder:
        try:
            place = Path(folder).resolve()
            graded = _graded(order, Course(order.root, order.sandboxed), place)
        except GradingError:
            raise
        except Exception as error:  # whatever it is, the next student is to be graded
            if reason := accident(error, "sqlite:///", order.root):
                raise GradingError(reason) from None
            return order.failed(str(error), monotonic() - begun)
    result = replace(graded.result, seconds=monotonic() - begun)
    return replace(graded, result=result)


def _graded(order: Order, course: Course, place: Path) -> Graded:
    submission, names = order.submission, notebooks_of(order.assignment)
    who, what = submission.student, submission.assignment
    steps = {step: str(place / step) for step in ("submitted", "autograded", "feedback")}
    if order.only_page:
        steps["autograded"] = str(course.folder("autograded"))
    else:
        course.config.AnyNotebook.told = stage(submission, names, place / "submitted")
    with scratch_gradebook(place / "gradebook.db", order.assignment, order.student) as url:
        here = course.for_student(
            who, what, db_url=url, **{f"{step}_directory": path for step, path in steps.items()}
        )
        if not order.only_page:
            _convert(Autograde, here, course.config)
        _convert(GenerateFeedback, here, course.config)
        with Gradebook(url) as gradebook:
            result = standing(gradebook, submission)
            rows = rows_of_student(gradebook, what, who)
    if order.only_page:
        return Graded(result, {}, {"feedback": packed(place / "feedback" / who / what)})
    folders = {step: packed(place / step / who / what) for step in ("autograded", "feedback")}
    return Graded(_with_findings(result, names, place / "autograded" / who / what), rows, folders)


@lru_cache(maxsize=2)
def notebooks_of(assignment: bytes) -> list[str]:
    return sorted(row["name"] for row in pickle.loads(assignment)["notebook"])


def _convert(converter: type[BaseConverter], course: CourseDirectory, config: Config) -> None:
    """Run a step of nbgrader, and if it fails, say what nbgrader only logs."""
    log, told = logging.Logger("nbgrader", logging.WARNING), _Told()
    log.addHandler(told)
    try:
        converter(coursedir=course, config=config, force=True, log=log).start()
    except NbGraderException as error:
        raise NbGraderException(told.reason() or str(error)) from (told.error or error)


class _Told(logging.Handler):
    """Keeps what nbgrader logs as errors."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts: list[str] = []
        self.error: BaseException | None = None  # the one that is being handled

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.error = self.error or sys.exception()

    def reason(self) -> str:
        """The last line of the first traceback: the exception that ended the step."""
        for text in self.texts:
            if text.startswith("Traceback"):
                lines = [line for line in text.splitlines() if line and not line[0].isspace()]
                return lines[-1]
        return ""


def standing(gradebook: Gradebook, submission: Submission) -> Result:
    """The points as a gradebook has them, a person's changes included.

    Raises
    ------
    MissingEntry: it does not know that submission.
    """
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
    gradebook.db.rollback()  # nothing was changed, and nothing is to stay locked
    order = [exercise.name for exercise in exercises_of(submission.assignment)]
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


def _with_findings(result: Result, notebooks: list[str], folder: Path) -> Result:
    """Add what the judge and the restoring wrote into the graded notebooks."""
    notes, misconceptions, status = [result.note] if result.note else [], {}, result.status
    for name in notebooks:
        nb: Any = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
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
