"""The judge: runs a submission in its kernel, and the test cells out of its reach.

It stands in the place of nbgrader's `Execute`. The submission's own cells run in a Jupyter
kernel in a sandbox. A test cell, `check(f)` and `grade(f)`, runs here, in the grader's process:
its source comes from the gradebook, `check` and `grade` are the judge's own, and `f` is but the
name of a function in that kernel. Arguments and results cross as text (`autograde.wire`).
Whatever the submission patches, prints or catches, the verdict is not reached where it could be
seen.
"""

from __future__ import annotations

import builtins
import math
import os
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import Execute
from nbgrader.utils import is_solution
from traitlets import Bool, Float, Integer, List

from autograde.calls import Outcome
from autograde.checking import GRADE_SEEDS
from autograde.examination import examine
from autograde.exercise import Exercise, find
from autograde.grading.batch import Ahead, foreseen
from autograde.grading.doctor import why_no_sandbox
from autograde.grading.kernel import Kernel, KernelUnavailable
from autograde.grading.outputs import TEXT, Outputs, failure
from autograde.grading.sandbox import SandboxUnavailable
from autograde.grading.staging import linked
from autograde.grading.workspace import OutOfPatience, Workspace
from autograde.remote import ask
from autograde.report import Report, Told, report

KEY = "no_peeking"  # our metadata, of notebooks and of cells
# Modules that take long to import: {module: the word that shows that a notebook needs it}.
WARM = {"torch": "torch", "torch._dynamo": "optim"}
_told: Told = {}  # in this process
PATIENCE = 5  # all calls of one exercise may take that many times the limit of one call
HUNG = 2.0  # seconds for a cell that is no answer and names a function that did not return


@dataclass(frozen=True)
class Named:
    """A function of the student's kernel, known here by its name alone."""

    name: str


class Names(dict):
    """The names of a test cell: the judge's own, and for all others whatever the student has."""

    def __init__(self, own: dict[str, Any]):
        super().__init__(own)
        self.own = frozenset(own)

    def __missing__(self, name: str) -> Named:
        if hasattr(builtins, name):
            raise KeyError(name)
        return Named(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self.own:  # `from autograde import check` changes nothing
            super().__setitem__(name, value)


class Judge(Execute):
    """nbgrader's `Execute`, with the verdict reached outside the kernel."""

    notebook_seconds = Float(600.0, help="Time for one notebook, in seconds.").tag(config=True)
    call_seconds = Float(
        None, allow_none=True, help="Upper limit for one call; None: the exercise's own."
    ).tag(config=True)
    sandboxed = Bool(
        True, help="Run submissions in a sandbox. False: their code may do whatever you may do."
    ).tag(config=True)
    seeds = List(
        Integer(min=0), [*GRADE_SEEDS], minlen=1, help="The inputs are drawn anew for each."
    ).tag(config=True)
    max_output = Integer(TEXT, help="Printed characters that are kept of a cell.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any, km: Any = None) -> tuple[Any, Any]:
        """Run and judge every cell of the notebook."""
        tests = _tests(resources["nbgrader"])
        ours = nb.metadata.get(KEY, {})
        self.assignment = resources["nbgrader"].get("assignment", "")
        start = partial(self._kernel, nb, resources)
        with Workspace(start, self.timeout or 3600, self.notebook_seconds) as self.space:
            self.count, self.wrong, self.hung = 0, set(), set()
            for cell in nb.cells:
                if cell.cell_type != "code":
                    continue
                cell.outputs = []
                test = tests.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
                if ours.get("unreadable"):
                    cell.outputs = [failure("NotGraded", ours["unreadable"])] if test else []
                elif test:
                    self._judge(cell, *test)
                elif cell.source.strip():
                    self._run(cell)
        nb.metadata["language_info"] = {"name": "python"}
        return nb, resources

    def _kernel(self, nb: Any, resources: Any) -> Kernel:
        name = self.kernel_name or nb.metadata.get("kernelspec", {}).get("name") or "python3"
        folder = os.path.abspath(resources["metadata"]["path"] or ".")
        settings = None
        if self.sandboxed:
            course = getattr(getattr(self.parent, "parent", None), "coursedir", None)
            words = "\n".join(cell.source for cell in nb.cells)
            modules = [name for name, word in WARM.items() if word in words]
            settings = {
                "hidden": [course.root] if course else [],
                "without": linked(course, resources["nbgrader"]) if course else [],
                "modules": modules,
            }
        try:
            return Kernel(name, folder, self.config, self.startup_timeout, settings)
        except SandboxUnavailable as reason:
            raise SandboxUnavailable(why_no_sandbox() or str(reason)) from None

    def _run(self, cell: Any) -> None:
        """Run a cell of the submission's own."""
        outputs = Outputs(self.max_output)
        self.count += 1
        cell.execution_count = self.count
        try:
            problem = self.space.run(cell.source, outputs, self._seconds(cell))
        except OutOfPatience:
            problem = self._too_late()
        cell.outputs = outputs.outputs()
        if problem:
            cell.outputs.append(failure("Stopped", problem))

    def _seconds(self, cell: Any) -> float:
        """What an ordinary cell may take: little, if it is bound to hang."""
        hangs = any(re.search(rf"\b{name}\b", cell.source) for name in self.hung)
        return HUNG if hangs and not is_solution(cell) else math.inf

    def _judge(self, cell: Any, source: str, most: float) -> None:
        """Run a test cell and write its verdict. What goes wrong gives 0 points, and is said."""
        reports: list[Report] = []
        problem = ""
        try:
            code = compile(source, cell.metadata.nbgrader.grade_id, "exec")
            exec(code, {"__builtins__": builtins}, Names(self._own(reports)))
        except OutOfPatience:
            problem = self._too_late()
        except (OSError, KernelUnavailable, SandboxUnavailable):
            raise  # this machine is at fault, not the submission
        except (Exception, SystemExit) as error:
            problem = f"the test cell could not be run ({type(error).__name__}: {error})"
        if not reports and not problem:
            problem = "the test cell graded nothing; its hidden part should call grade(...)"
        cell.outputs = [_shown(found) for found in reports]
        points = 0.0 if problem else sum(float(found.examination.points) for found in reports)
        if problem:
            cell.outputs.append(failure("NotGraded", problem))
        if points > most:
            self.log.warning(
                "%s: the claims give %g points, the notebook %g: build it again",
                cell.metadata.nbgrader.grade_id,
                points,
                most,
            )
            points = most
        if not problem:
            self.count += 1
            cell.execution_count = self.count
            cell.outputs.append(
                new_output(
                    "execute_result", {"text/plain": repr(points)}, execution_count=self.count
                )
            )
        cell.metadata[KEY] = [_summary(found) for found in reports]

    def _own(self, reports: list[Report]) -> dict[str, Any]:
        """What the words of a test cell mean here."""

        def grade(function: Any, name: str | None = None) -> float:
            if not isinstance(function, Named):
                raise TypeError("grade wants the function itself, as in grade(causal_mask)")
            exercise = find(name or function.name, self.assignment)
            call = self._caller(function.name, exercise)
            found = report(examine(exercise, call, tuple(self.seeds)), self.wrong, _told)
            self.wrong |= set() if found.passed else {found.name}
            if any(record.outcome.how == "timeout" for record in found.examination.records):
                self.hung.add(function.name)
            reports.append(found)
            return float(found.examination.points)

        def nothing(*args: Any, **kwargs: Any) -> None:
            """`check` and `hint` are for the student; `grade` tries all claims, and more."""

        return {"check": nothing, "hint": nothing, "grade": grade}

    def _caller(self, name: str, exercise: Exercise):
        """The function as `examine` calls it, with a limit for all calls together."""
        limit = min(exercise.seconds, self.call_seconds or exercise.seconds)
        end = self.space.spent + PATIENCE * limit
        answer = Ahead(self.space.call, foreseen(exercise, name, limit, tuple(self.seeds)))

        def call(
            args: tuple, kwargs: dict[str, Any], seconds: float, measured: bool = False
        ) -> Outcome:
            left = end - self.space.spent
            if left <= 0:
                return Outcome("timeout", text=f"{PATIENCE * limit:g}")
            short = min(seconds, limit, max(left, 0.1))
            outcome = answer(ask(name, args, kwargs, short, measured), short)
            if outcome.how == "timeout" and short < min(seconds, limit):  # all together: too slow
                return Outcome("timeout", text=f"{PATIENCE * limit:g}")
            return outcome

        return call

    def _too_late(self) -> str:
        return f"not run: the {self.notebook_seconds:g} s for the whole notebook were used up"


def _tests(where: dict[str, str]) -> dict[str, tuple[str, float]]:
    """{grade_id: (source, points)} of the notebook's test cells, from the gradebook."""
    with Gradebook(where["db_url"]) as gradebook:
        notebook = gradebook.find_notebook(where["notebook"], where["assignment"])
        sources = {cell.name: cell for cell in notebook.source_cells}
        answers = {cell.name for cell in notebook.solution_cells}
        return {
            cell.name: (sources[cell.name].source, float(cell.max_score))
            for cell in notebook.grade_cells
            if cell.cell_type == "code" and cell.name not in answers
        }


def _shown(found: Report) -> Any:
    data = {"text/plain": found.text(), "text/html": found._repr_html_()}
    return new_output("display_data", data)


def _summary(found: Report) -> dict[str, Any]:
    return {
        "exercise": found.name,
        "points": found.examination.points,
        "headline": found.headline,
        "stopped": found.examination.stopped,
        "misconception": found.misconception.id if found.misconception else None,
    }
