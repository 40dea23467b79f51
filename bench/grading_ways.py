"""Three ways to grade the same class: each makes its assignment, grades it, and tells the points.

nbgrader    nbgrader alone: `nbgrader autograde`, then `nbgrader generate_feedback`, each of them
            one process for the class. Feedback pages, no sandbox. A cell may take 30 s (default).
otter       Otter-Grader without Docker: `otter run` for each submission, on all cores at once.
            Results as JSON; no feedback page, no sandbox. It ends no endless loop, so `ulimit`
            does, after 60 s of the processor, and that submission gets no points.
autograde   `autograde grade` of this course as it comes, on all cores, in the sandbox. Feedback
            pages that name the misconception. A call may take 10 s, a cell 30 s.

All get the same answers in the same notebook, the course's own. The tests of the first two are
those of `bench.grading_cases`: asserts on a few inputs for each function. The third tries its
claims, on some dozens. None of them needs the network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_raw_cell
from nbgrader.api import Gradebook

from autograde.build import build
from autograde.exercise import find
from autograde.sheet import notebook
from bench.grading_cases import lines
from bench.grading_class import Student

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 60  # CPU seconds for a process, where the grader has no limit of its own
Points = dict[str, dict[str, bool]]  # {student: {exercise: did it get all its points?}}


@dataclass(frozen=True)
class Way:
    """prepare(folder, assignment, students) makes the class and returns the command that grades
    it; points(folder, assignment) reads what came of it."""

    prepare: Callable[[Path, str, list[Student]], list[str]]
    points: Callable[[Path, str], Points]


def environment(folder: Path) -> dict[str, str]:
    """This Python's commands, one thread each, and none of this user's own settings."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    own = {"JUPYTER_CONFIG_DIR": str(folder / "jupyter"), "IPYTHONDIR": str(folder / "ipython")}
    return {**os.environ, **own, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def run(folder: Path, *arguments: str) -> None:
    """Run a module of Python that only prepares."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True
    )
    if done.returncode:
        raise OSError(f"{' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def hand_in(
    folder: Path, released: Path, assignment: str, students: Iterable[Student], whose: Callable
) -> None:
    """Fill in the released notebook for each student: submitted/STUDENT/ASSIGNMENT/.

    whose: tells of a cell's metadata which exercise it is for.
    """
    text = released.read_text(encoding="utf-8")
    for student in students:
        nb = json.loads(text)
        for cell in nb["cells"]:
            answer = student.answers.get(whose(cell["metadata"]))
            cell["source"] = answer or cell["source"]
        place = folder / "submitted" / student.name / assignment
        place.mkdir(parents=True)
        (place / released.name).write_text(json.dumps(nb), encoding="utf-8")


def by_grade_id(metadata: dict[str, Any]) -> str:
    return metadata.get("nbgrader", {}).get("grade_id", "")


def in_gradebook(folder: Path, assignment: str) -> Points:
    """The points as nbgrader's gradebook has them."""
    found: Points = {}
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        for submission in gradebook.assignment_submissions(assignment):
            grades = [grade for nb in submission.notebooks for grade in nb.grades]
            if grades and all(grade.auto_score is not None for grade in grades):
                found[submission.student_id] = {
                    grade.name.removeprefix("test_"): grade.auto_score == grade.max_score
                    for grade in grades
                }
    return found


# autograde --------------------------------------------------------------------------------


def prepare_autograde(folder: Path, assignment: str, students: list[Student]) -> list[str]:
    shutil.copytree(ROOT / "solutions" / assignment, folder / "solutions" / assignment)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    build(folder, [assignment])
    (released,) = (folder / "exercises" / assignment).glob("*.ipynb")
    hand_in(folder, released, assignment, students, by_grade_id)
    return [sys.executable, "-m", "autograde.cli", "grade", assignment]


# nbgrader ---------------------------------------------------------------------------------


def plain(assignment: str) -> tuple[str, Any]:
    """(name, notebook): the course's, with hidden asserts in place of its checks."""
    (source,) = (ROOT / "solutions" / assignment).glob("*.md")
    nb = notebook(source.read_text(encoding="utf-8"), assignment)
    cells = []
    for cell in nb.cells:
        name = by_grade_id(cell.metadata)
        if name.startswith("test_"):
            tests = "\n".join(lines(find(name.removeprefix("test_"))))
            cell.source = f"### BEGIN HIDDEN TESTS\n{tests}\n### END HIDDEN TESTS"
        elif name == "setup":
            kept = [line for line in cell.source.split("\n") if "autograde" not in line]
            cell.source = "\n".join(kept)
        elif cell.cell_type == "code" and cell.source.startswith("# hint("):
            continue
        cells.append(cell)
    nb.cells = cells
    return source.stem, nb


def prepare_nbgrader(folder: Path, assignment: str, students: list[Student]) -> list[str]:
    import nbformat

    name, nb = plain(assignment)
    source = folder / "source" / assignment / f"{name}.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(nb, source)
    run(folder, "nbgrader", "generate_assignment", assignment)
    released = folder / "release" / assignment / source.name
    hand_in(folder, released, assignment, students, by_grade_id)
    steps = (f"{sys.executable} -m nbgrader {step} {assignment}"
             for step in ("autograde", "generate_feedback"))  # fmt: skip
    return ["sh", "-c", "; ".join(steps)]


# Otter-Grader -----------------------------------------------------------------------------


def master(name: str, nb: Any) -> Any:
    """The notebook in the format of `otter assign`."""
    cells = [_raw("ASSIGNMENT CONFIG", f"name: {name}\ngenerate: true\nexport_cell: false")]
    for cell in nb.cells:
        known = cell.metadata.get("nbgrader", {})
        if known.get("solution"):
            exercise = find(known["grade_id"])
            question = f"name: {exercise.name}\npoints: {exercise.points}"
            answer = cell.source.replace("### BEGIN", "# BEGIN").replace("### END", "# END")
            cells += [_raw("BEGIN QUESTION", question), _raw("BEGIN SOLUTION"),
                      new_code_cell(answer), _raw("END SOLUTION")]  # fmt: skip
        elif known.get("grade"):
            test = "\n".join(cell.source.split("\n")[1:-1])
            config = '""" # BEGIN TEST CONFIG\nhidden: true\n""" # END TEST CONFIG\n'
            cells += [_raw("BEGIN TESTS"), new_code_cell(config + test), _raw("END TESTS"),
                      _raw("END QUESTION")]  # fmt: skip
        else:
            cell.metadata.pop("nbgrader", None)
            cells.append(cell)
    nb.cells = cells
    return nb


def _raw(mark: str, config: str = "") -> Any:
    return new_raw_cell(f"# {mark}\n{config}".rstrip())


def prepare_otter(folder: Path, assignment: str, students: list[Student]) -> list[str]:
    import nbformat

    name, nb = plain(assignment)
    nbformat.write(master(name, nb), folder / f"{name}.ipynb")
    run(folder, "otter", "assign", f"{name}.ipynb", "dist", "--no-pdfs")
    released = folder / "dist" / "student" / f"{name}.ipynb"
    hand_in(
        folder, released, assignment, students, lambda m: m.get("otter", {}).get("tests", [""])[0]
    )
    for student in students:
        (folder / "results" / student.name).mkdir(parents=True)
    (folder / "names").write_text("".join(f"{student.name}\n" for student in students))
    each = (
        f"ulimit -t {LIMIT}; {sys.executable} -m otter run --no-logo "
        f"-a dist/autograder/*.zip -o results/{{}} submitted/{{}}/{assignment}/{name}.ipynb; true"
    )
    return ["xargs", "-a", "names", "-P", str(cores()), "-I{}", "sh", "-c", each]


def cores() -> int:
    return len(os.sched_getaffinity(0))


def in_results(folder: Path, assignment: str) -> Points:
    """The points as `otter run` has written them."""
    found: Points = {}
    for path in (folder / "results").glob("*/results.json"):
        tests = json.loads(path.read_text())["tests"]
        found[path.parent.name] = {
            test["name"]: test["score"] == test["max_score"] for test in tests if "score" in test
        }
    return found


WAYS = {
    "nbgrader": Way(prepare_nbgrader, in_gradebook),
    "otter": Way(prepare_otter, in_results),
    "autograde": Way(prepare_autograde, in_gradebook),
}
