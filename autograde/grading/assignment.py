"""Grading a class: each submission into the gradebook, grades.csv and a feedback page.

Submissions are graded many at a time, wherever `autograde.grading.executors` has them graded;
what comes of them is kept here, by the one process that writes. One that cannot be graded never
stops the rest, and what is graded and unchanged is not graded again.
"""

from __future__ import annotations

import pickle
import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy.exc import DataError

from autograde.build import scripts_on_path
from autograde.grading.accidents import GradingError
from autograde.grading.course import Course, alone, missing_from, submissions_of
from autograde.grading.doctor import why_no_sandbox
from autograde.grading.executors import cores, graded
from autograde.grading.folders import install
from autograde.grading.gradesheet import Result, remember, remembered, write_grades
from autograde.grading.rows import add, rows_of_assignment, rows_of_student
from autograde.grading.staging import Submission
from autograde.grading.submission import Graded, Order, standing
from autograde.grading.workers import code

WAITS = re.compile(r"(\w+, )*\w+: waits for a person\. ?")


def grade_assignment(
    assignment: str,
    root: Path,
    students: list[str] | None = None,
    force: bool = False,
    progress: Callable[[str], None] = print,
    sandboxed: bool | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> list[Result]:
    """Grade what is in `root/submitted/<student>/<assignment>/`.

    Parameters
    ----------
    root: the course's folder, with nbgrader_config.py and solutions/.
    students: grade these only; None means all who handed something in.
    force: grade again what has been graded and has not changed.
    progress: is given a line for each student.
    sandboxed: whether submissions run in a sandbox; None: as nbgrader_config.py says, or they do.
    jobs: processes that grade; None: one a core, if it is worth it; 1: this process itself.
    scheduler: the address of a dask.distributed scheduler, whose workers grade instead.

    Raises
    ------
    GradingError: before anything is graded, or when the gradebook cannot be written.
    """
    if jobs is not None and jobs < 1:
        raise GradingError(f"--jobs wants the number of processes, 1 or more, not {jobs}")
    root = Path(root).resolve()
    course = Course(root, sandboxed)
    if course.sandboxed and not scheduler and (reason := why_no_sandbox()):
        raise GradingError(reason)
    with alone(root), scripts_on_path():
        submissions = submissions_of(course, assignment, students)
        course.register(assignment)
        standard = course.fingerprint(assignment)
        with course.gradebook() as gradebook:
            run = _Run(course, gradebook, submissions, standard, progress)
            try:
                run.keep(force)
                run.grade(jobs, scheduler)
            finally:
                write_grades(root / "grades.csv", run.results, course.folder("submitted"))
        if students is None and (missing := missing_from(course, assignment)):
            progress(f"nothing handed in: {', '.join(missing)}")
    return run.results


@dataclass
class _Run:
    """One grading of a class.

    standard: stands for all that a verdict depends on beside the submission.
    """

    course: Course
    gradebook: Gradebook
    submissions: list[Submission]
    standard: str
    progress: Callable[[str], None]
    keys: dict[str, str] = field(default_factory=dict)  # of those to be graded, by student
    pages: dict[str, Result] = field(default_factory=dict)  # graded, but for a newer page
    done: dict[str, Result] = field(default_factory=dict)
    shown: int = 0

    @property
    def results(self) -> list[Result]:
        """Those that there are, in the order of the submissions."""
        return [self.done[s.student] for s in self.submissions if s.student in self.done]

    def keep(self, force: bool) -> None:
        """Find out what has been graded and has not changed."""
        for submission in self.submissions:
            try:
                key, again = f"{submission.digest()} {self.standard}", force
            except OSError:  # a file that may not be read; grading will say which
                key, again = "", True
            before = None if again else remembered(self._record(submission), key)
            kept = before and self._kept(submission, before)
            if not kept:
                self.keys[submission.student] = key
            elif kept.by_hand != before.get("by_hand", ""):  # the page shows what it was then
                self.keys[submission.student] = key
                self.pages[submission.student] = kept
            else:
                self._tell(kept)

    def grade(self, jobs: int | None, scheduler: str | None) -> None:
        """Grade the others."""
        if not self.keys:
            return
        name, version = uuid.uuid4().hex, code() if scheduler else ""
        if jobs is None:  # for one or two, to start processes takes longer than to grade
            jobs = cores() if len(self.keys) > 2 else 1
        jobs = min(jobs, len(self.keys))
        with closing(graded(self._orders(name, version), name, jobs, scheduler)) as found:
            for order, future in found:
                self._take(order, _outcome(order, future))

    def _orders(self, run: str, version: str) -> Iterator[Order]:
        for submission in self.submissions:
            who, what = submission.student, submission.assignment
            if who in self.keys:
                yield Order(
                    submission,
                    self.course.root,
                    self.course.sandboxed,
                    self._assignment,
                    pickle.dumps(rows_of_student(self.gradebook, what, who)),
                    self._most,
                    who in self.pages,
                    run,
                    version,
                )

    @cached_property
    def _assignment(self) -> bytes:
        rows = rows_of_assignment(self.gradebook, self.submissions[0].assignment)
        return pickle.dumps(rows)

    @cached_property
    def _most(self) -> float:
        rows = pickle.loads(self._assignment)
        return float(sum(r["max_score"] for k in ("grade_cells", "task_cells") for r in rows[k]))

    def _take(self, order: Order, found: Graded) -> None:
        """Keep what came of a submission: rows, files, and the record that makes it final."""
        try:
            add(self.gradebook, found.rows)
        except DataError as error:  # such as a name that is too long for a server's column
            self.gradebook.db.rollback()
            found = order.failed(f"the gradebook does not take it ({error.orig})")
        submission, result = order.submission, found.result
        for step, files in found.folders.items():
            folder = self.course.folder(step) / submission.student / submission.assignment
            install(files, folder)
        if order.only_page and result.status != "error":
            result = replace(self.pages[submission.student], by_hand=result.by_hand)
        remember(self._record(submission), self.keys[submission.student], result)
        self._tell(result)

    def _record(self, submission: Submission) -> Path:
        folder = self.course.root / "results" / submission.assignment
        return folder / f"{submission.student}.json"

    def _kept(self, submission: Submission, before: dict[str, Any]) -> Result | None:
        """The earlier result, with the gradebook's points; None if some of it has been removed."""
        where = (submission.student, submission.assignment)
        pages = [self.course.folder(step).joinpath(*where) for step in ("autograded", "feedback")]
        if not all(any(page.glob("*")) for page in pages):
            return None
        try:
            result = standing(self.gradebook, submission)
        except MissingEntry:
            return None
        if (
            result.points is None
            and before["status"] != "error"
            and "a person" not in before["note"]
        ):
            return None  # the gradebook has been started anew
        others = WAITS.sub("", before["note"])  # whether one still waits, the gradebook knows
        return replace(
            result,
            status=before["status"],
            note=" ".join(filter(None, [result.note, others])),
            misconceptions=before["misconceptions"],
            seconds=before["seconds"],
            kept=True,
        )

    def _tell(self, result: Result) -> None:
        """A line for each, in the order of the class, however the results come in."""
        self.done[result.student] = result
        width, total = max(len(s.student) for s in self.submissions), len(self.submissions)
        for submission in self.submissions[self.shown :]:
            if submission.student not in self.done:
                break
            self.shown += 1
            place = f"{self.shown} of {total}".rjust(2 * len(f"{total}") + 4)
            line = self.done[submission.student].line()
            self.progress(f"{place}  {submission.student:<{width}}  {line}")


def _outcome(order: Order, future: Future) -> Graded:
    try:
        return future.result()
    except GradingError:
        raise
    except Exception as error:  # dask's own, mostly
        if type(error).__name__ == "KilledWorker":
            return order.failed("the workers that graded it were ended one after the other")
        raise GradingError(f"grading has failed ({type(error).__name__}: {error})") from error
