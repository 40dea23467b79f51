"""A sample class: submissions as they come, with the grades that they must get.

Solved and untouched ones, real misconceptions, broken files, endless loops. It stands in a
folder of its own, a little course, so that a real class is never touched. `make` grades it
and fails when a grade is not the expected one.
"""

from __future__ import annotations

import copy
import inspect
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograde.bank import correct_variants, misconceptions
from autograde.build import build
from autograde.checking import GRADE_SEEDS
from autograde.examination import examine, local
from autograde.exercise import Exercise, exercises_of
from autograde.grading.gradesheet import Result
from autograde.report import report
from autograde.standalone import sources

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

ASSIGNMENT, NOTEBOOK = "03-causal-mask", "causal-mask.ipynb"
CONFIG = '''"""A sample class, graded by the course's own settings, with less patience."""

from pathlib import Path

c = get_config()  # noqa: F821 (nbgrader puts it here)
load_subconfig("nbgrader_config.py", path=str(Path(__file__).parent / {root!r}))  # noqa: F821

c.Judge.timeout = 4
c.Judge.call_seconds = 4.0
'''
CHEAT = """
import autograde, autograde.calls, autograde.remote


class Anything(np.ndarray):
    __eq__ = __le__ = __ge__ = lambda self, other: True


autograde.grade = autograde.check = grade = check = lambda *a, **k: "all claims hold"
autograde.remote.call = autograde.calls.call = lambda *a, **k: "all claims hold"
np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
causal_mask = additive_mask = masked_softmax = lambda *a, **k: np.ones(3).view(Anything)
get_ipython().showtraceback = lambda *a, **k: None
print("all claims hold")
"""
ENDLESS = "def {name}(*arguments, **more):\n    while True:\n        pass"
DEADLY = "def {name}(*arguments, **more):\n    import os\n    os._exit(3)"


@dataclass(frozen=True)
class Student:
    """One submission.

    answers: what stands in the cells of the exercises named; the others are solved.
    change: edits the finished notebook. write: (name, content) of a file that is none.
    worthless: deserves nothing, and its code must not run in this process.
    """

    answers: dict[str, str] | None = None
    change: Callable[[Any], None] | None = None
    write: tuple[str, bytes] | None = None
    name: str = NOTEBOOK
    worthless: bool = False


def exercises() -> dict[str, Exercise]:
    return {exercise.name: exercise for exercise in exercises_of(ASSIGNMENT)}


def students() -> dict[str, Student]:
    """The class: {who: what was handed in}."""
    stubs = dict.fromkeys(exercises(), "")
    return {
        "solved": Student(),
        "untouched": Student(stubs),
        "other-styles": Student(
            _right(
                causal_mask="mask_by_list_comprehension",
                additive_mask="additive_by_assignment",
                masked_softmax="softmax_row_by_row",
                masked_attention="attention_with_additive_minus_1e9",
                padding_mask="padding_by_loops",
                causal_padding_mask="combined_by_loops",
                dog_by_hand="by_hand_as_arrays",
            )
        ),
        "three-mistakes": Student(
            _wrong(
                causal_mask="aligned_top_left",
                additive_mask="zero_times_infinity",
                masked_softmax="empty_row_is_nan",
            )
        ),
        "four-other-mistakes": Student(
            _wrong(
                masked_attention="no_scale",
                padding_mask="padding_on_the_left",
                causal_padding_mask="padded_queries_closed",
                dog_by_hand="by_hand_divided_by_four",
            )
        ),
        "never-ends": Student({"additive_mask": ENDLESS.format(name="additive_mask")}),
        "ends-python": Student({"additive_mask": DEADLY.format(name="additive_mask")}),
        "cheats": Student({**stubs, "causal_mask": CHEAT}, worthless=True),
        "deleted-test-cell": Student(change=_without("test_masked_softmax", "setup")),
        "deleted-answer": Student(change=_without("additive_mask"), answers={"additive_mask": ""}),
        "duplicated-cell": Student(change=_with_copy("causal_mask")),
        "lost-metadata": Student(change=_without_metadata),
        "another-kernel": Student(change=_with_another_kernel),
        "renamed-file": Student(name="Übung 3 (fertig).ipynb"),
        "broken-file": Student(write=(NOTEBOOK, b'{"cells": [{"cell_type": "code", "sou')),
        "no-notebook": Student(write=("answers.txt", b"I had no time, sorry.\n")),
    }


def make_sample_class(root: Path, into: Path) -> list[str]:
    """Build the class in `into`, whose old contents go; the names of its students.

    root: the course whose exercises and settings are used.
    """
    root, into = Path(root).resolve(), Path(into).resolve()
    marker = into / "nbgrader_config.py"
    if into.exists() and any(into.iterdir()) and "A sample class" not in _text(marker):
        raise FileExistsError(
            f"{into} holds something else than a sample class; name another folder"
        )
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(root / "solutions" / ASSIGNMENT, into / "solutions" / ASSIGNMENT)
    marker.write_text(CONFIG.format(root=Path(os.path.relpath(root, into)).as_posix()), "utf-8")
    build(into, [ASSIGNMENT])
    released = json.loads((into / "exercises" / ASSIGNMENT / NOTEBOOK).read_text(encoding="utf-8"))
    for who, student in students().items():
        folder = into / "submitted" / who / ASSIGNMENT
        folder.mkdir(parents=True)
        name, content = student.write or (student.name, _notebook(released, student))
        (folder / name).write_bytes(content)
    return list(students())


@cache
def expected() -> dict[str, dict[str, float]]:
    """{student: {exercise: points}}, as examining the answers in this process gives them."""
    return {who: _deserved(student) for who, student in students().items()}


def in_gradebook(gradebook: Gradebook) -> dict[str, dict[str, float | None]]:
    """{student: {exercise: points}} as nbgrader's gradebook has them."""
    return {
        submission.student.id: {
            grade.name.removeprefix("test_"): grade.auto_score
            for notebook in submission.notebooks
            for grade in notebook.grades
        }
        for submission in gradebook.assignment_submissions(ASSIGNMENT)
    }


def surprises(results: list[Result]) -> list[str]:
    """Where the grades are not the expected ones, one sentence each."""
    wanted, found = expected(), {result.student: result for result in results}
    told = [f"{who} has not been graded" for who in wanted if who not in found]
    for who, result in found.items():
        points = wanted.get(who, {})
        if result.exercises != points or result.points != sum(points.values()):
            told.append(f"{who} got {result.exercises}, and {points} was expected ({result.note})")
        failed = students()[who].write is not None
        if result.status != ("failed" if failed else "graded"):
            told.append(f"{who} has the status {result.status!r} ({result.note})")
    return told


def expected_misconceptions(who: str) -> dict[str, str]:
    """{exercise: misconception} that the answers of that student show."""
    student = students()[who]
    reports = {} if student.write or student.worthless else _reports(student)
    return {name: r.misconception.id for name, r in reports.items() if r.misconception}


def _deserved(student: Student) -> dict[str, float]:
    if student.write or student.worthless:
        return dict.fromkeys(exercises(), 0.0)
    return {name: float(r.examination.points) for name, r in _reports(student).items()}


def _reports(student: Student) -> dict[str, Any]:
    """The reports on a student's answers, all of which live in one namespace here."""
    import numpy as np

    names: dict[str, Any] = {"np": np}
    never = {ENDLESS.format(name=name) for name in exercises()}
    never |= {DEADLY.format(name=name) for name in exercises()}
    for name, source in _answers(student).items():
        # What would hang or end this process counts as not written.
        body = "" if source in never else source
        exec("from __future__ import annotations\n" + (body or _stub(name)), names)
    return {
        name: report(examine(exercise, local(names[name]), GRADE_SEEDS))
        for name, exercise in exercises().items()
    }


def _answers(student: Student) -> dict[str, str]:
    """{exercise: source}; "" stands for an answer that was not written."""
    solved = {name: inspect.getsource(e.reference) for name, e in exercises().items()}
    return {**solved, **(student.answers or {})}


def _stub(name: str) -> str:
    return f"def {name}(*arguments, **more):\n    raise NotImplementedError()"


def _right(**chosen: str) -> dict[str, str]:
    return {name: _spliced(name, which, correct_variants) for name, which in chosen.items()}


def _wrong(**chosen: str) -> dict[str, str]:
    return {name: _spliced(name, which, misconceptions) for name, which in chosen.items()}


def _spliced(name: str, which: str, bank: Callable) -> str:
    """The source of an answer of the bank, under the exercise's name, with its helpers."""
    (answer,) = (answer for answer in bank(exercises()[name]) if answer.id == which)
    cell = sources(answer.function, exercises().keys() - {name})
    if name in cell:
        raise ValueError(f"{which} uses the right {name}; choose an answer that does not")
    return "\n\n".join([*cell.values(), f"{name} = {which}"])


def _notebook(released: Any, student: Student) -> bytes:
    """The released notebook with the student's answers in it."""
    nb, answers = copy.deepcopy(released), _answers(student)
    for cell in nb["cells"]:
        if answers.get(cell["id"]):
            cell["source"] = answers[cell["id"]]
    if student.change:
        student.change(nb)
    return (json.dumps(nb, indent=1, ensure_ascii=False) + "\n").encode()


def _without(*names: str) -> Callable:
    def change(nb: Any) -> None:
        nb["cells"] = [cell for cell in nb["cells"] if cell["id"] not in names]

    return change


def _with_copy(name: str) -> Callable:
    """An editor's copy of a cell has its metadata, nbgrader's name for it included."""

    def change(nb: Any) -> None:
        (place,) = (i for i, cell in enumerate(nb["cells"]) if cell["id"] == name)
        twin = {**copy.deepcopy(nb["cells"][place]), "id": "a-copy"}
        nb["cells"].insert(place, {**twin, "source": "# first try\n" + _stub(name)})

    return change


def _without_metadata(nb: Any) -> None:
    """As some web services save it: no metadata, new ids."""
    nb["metadata"] = {}
    for number, cell in enumerate(nb["cells"]):
        cell.update(metadata={}, id=f"cell-{number}")


def _with_another_kernel(nb: Any) -> None:
    nb["metadata"]["kernelspec"] = {
        "name": "my-laptop",
        "display_name": "My laptop",
        "language": "python",
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
