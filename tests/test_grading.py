"""Grading a class: the sample class, by our command and by nbgrader's own."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.api import Gradebook

from autograde.grading import assignment, sample_class
from autograde.grading.assignment import GradingError, grade_assignment
from autograde.grading.course import alone
from autograde.grading.sample_class import (
    ASSIGNMENT,
    NOTEBOOK,
    expected,
    in_gradebook,
    make_sample_class,
    surprises,
)

ROOT = Path(__file__).resolve().parent.parent
# Enough for a comparison of the two commands. Not among them: a renamed file and none at all,
# because nbgrader's own command knows notebooks by their names alone.
BOTH = ("solved", "untouched", "three-mistakes", "never-ends", "cheats", "deleted-test-cell",
        "broken-file")  # fmt: skip


@pytest.fixture(scope="module")
def sample(tmp_path_factory, sandboxed):
    """The sample class, not graded."""
    into = tmp_path_factory.mktemp("sample") / "class"
    make_sample_class(ROOT, into)
    with (into / "nbgrader_config.py").open("a") as file:
        file.write(f"\nc.Judge.sandboxed = {sandboxed}\n")
    return into


@pytest.fixture(scope="module")
def graded(sample, tmp_path_factory):
    """A copy of the class, graded: (folder, results, lines of progress)."""
    folder, lines = copied(sample, tmp_path_factory), []
    return folder, grade_assignment(ASSIGNMENT, folder, progress=lines.append), lines


@pytest.fixture
def small(sample, tmp_path_factory):
    """A copy of the class with `solved` alone."""
    folder = copied(sample, tmp_path_factory)
    keep(folder, "solved")
    return folder


def copied(sample, factory):
    """A copy whose settings still find the course's."""
    folder = factory.mktemp("course") / "class"
    shutil.copytree(sample, folder)
    return folder


def keep(folder, *students):
    for path in (folder / "submitted").iterdir():
        if path.name not in students:
            shutil.rmtree(path)


def points_in(folder):
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        return in_gradebook(gradebook)


def test_everybody_gets_what_the_answers_deserve(graded):
    _, results, _ = graded
    assert surprises(results) == []


def test_the_solved_notebook_earns_all_and_the_untouched_one_nothing(graded):
    by_name = {result.student: result for result in graded[1]}
    assert by_name["solved"].points == by_name["solved"].max_points > 0
    assert by_name["other-styles"].points == by_name["solved"].points
    assert set(by_name["untouched"].exercises.values()) == {0}


def test_surprises_are_found(graded):
    """The comparison that `make` relies on can fail."""
    _, results, _ = graded
    assert surprises(results[1:])
    assert surprises([*results[1:], assignment.replace(results[0], points=1.0)])


@pytest.mark.parametrize("who", ["three-mistakes", "four-other-mistakes", "solved"])
def test_misconceptions_are_named(graded, who):
    (result,) = (result for result in graded[1] if result.student == who)
    assert result.misconceptions == sample_class.expected_misconceptions(who)
    assert (len(result.misconceptions) >= 3) == (who != "solved")


def test_the_gradebook_says_the_same(graded):
    folder, results, _ = graded
    assert points_in(folder) == expected() == {r.student: r.exercises for r in results}


def test_grades_csv_has_a_row_for_each_student(graded):
    folder, results, _ = graded
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert list(rows) == sorted(sample_class.students())
    for result in results:
        row = rows[result.student]
        assert float(row["points"]) == result.points
        assert float(row["max_points"]) == result.max_points
        assert row["status"] == result.status
        assert {name: float(row[name]) for name in result.exercises} == result.exercises
    assert "not a notebook" in rows["broken-file"]["note"]
    assert "endless loop" in rows["never-ends"]["note"]
    assert "exit status 3" in rows["ends-python"]["note"]
    assert "no notebook was handed in" in rows["no-notebook"]["note"]


def test_everybody_has_feedback_without_hidden_tests(graded):
    folder, results, _ = graded
    for result in results:
        page = folder / "feedback" / result.student / ASSIGNMENT / "causal-mask.html"
        text = page.read_text(encoding="utf-8")
        assert "HIDDEN TESTS" not in text
        assert '"n">grade</span><span class="p">(' not in text
        if result.status == "failed":
            assert result.note.rstrip(".") in text.replace("&#x27;", "'").replace("&quot;", '"')
    for path in (folder / "autograded").glob("*/*/*.ipynb"):
        assert "HIDDEN TESTS" not in path.read_text(encoding="utf-8")
    report = (folder / "feedback/three-mistakes" / ASSIGNMENT / "causal-mask.html").read_text(
        "utf-8"
    )
    assert "aligned at the top left" in report


def test_there_is_a_line_of_progress_for_each(graded):
    _, results, lines = graded
    assert len(lines) == len(results)
    assert "1 of" in lines[0]
    assert all(result.student in line for result, line in zip(results, lines, strict=True))


def test_a_second_run_grades_nothing_again(graded, monkeypatch):
    folder, results, _ = graded
    monkeypatch.setattr(assignment, "graded", None)
    before = (folder / "grades.csv").read_bytes()
    again = grade_assignment(ASSIGNMENT, folder, progress=lambda line: None)
    assert all(result.kept for result in again)
    assert [r.exercises for r in again] == [r.exercises for r in results]
    assert (folder / "grades.csv").read_bytes() == before


def test_nbgraders_own_command_gives_the_same_points(sample, tmp_path_factory):
    folder = copied(sample, tmp_path_factory)
    keep(folder, *BOTH)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    wanted = expected()
    assert points_in(folder) == {who: wanted[who] for who in BOTH}


def test_a_changed_submission_is_graded_again_and_nothing_else(small):
    def run(**more):
        (result,) = grade_assignment(ASSIGNMENT, small, progress=lambda line: None, **more)
        return result

    assert not run().kept
    assert run().kept
    assert not run(force=True).kept
    path = small / "submitted/solved" / ASSIGNMENT / NOTEBOOK
    path.write_bytes(
        path.read_bytes().replace(b"return np.where(allowed, 0", b"return (allowed, 0")
    )
    changed = run()
    assert not changed.kept
    assert changed.exercises["additive_mask"] == 0
    shutil.rmtree(small / "feedback")
    assert not run().kept


def test_what_a_person_gives_later_stands_in_the_table_and_on_the_page(small):
    def run():
        (result,) = grade_assignment(ASSIGNMENT, small, progress=lambda line: None)
        return result, (small / "feedback/solved" / ASSIGNMENT / "causal-mask.html").read_text()

    first, page = run()
    (again, same) = run()
    assert again.points == first.points
    assert same == page
    with Gradebook(f"sqlite:///{small}/gradebook.db") as gradebook:
        grade = gradebook.find_grade("test_causal_mask", "causal-mask", ASSIGNMENT, "solved")
        grade.manual_score = 1.5
        comment = gradebook.find_comment("causal_mask", "causal-mask", ASSIGNMENT, "solved")
        comment.manual_comment = "See me about this one"
        gradebook.db.commit()
    result, page = run()
    assert result.kept
    assert result.exercises["causal_mask"] == 1.5
    assert result.points == first.points - first.exercises["causal_mask"] + 1.5
    assert "See me about this one" in page
    assert run()[1] == page


STRANGE = {
    "a-folder": None,
    "binary": bytes(range(256)) * 40,
    "empty": b"",
    "a-list": b"[]",
    "no-cells": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
    "odd-cells": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1, null]}',
    "deep": b"[" * 10**5,
    "a-number": b"12",
}


def test_strange_files_get_0_points_and_a_reason_and_stop_nobody(small):
    for who, content in STRANGE.items():
        path = small / "submitted" / who / ASSIGNMENT / NOTEBOOK
        path.parent.mkdir(parents=True)
        path.mkdir() if content is None else path.write_bytes(content)
    (small / "submitted/linked" / ASSIGNMENT).mkdir(parents=True)
    link = small / "submitted/linked" / ASSIGNMENT / NOTEBOOK
    link.symlink_to(small / "submitted/solved" / ASSIGNMENT / NOTEBOOK)
    results = grade_assignment(ASSIGNMENT, small, progress=lambda line: None)
    for result in results:
        if result.student == "solved":
            assert result.points == result.max_points
        else:
            assert (result.status, result.points) == ("failed", 0)
            assert len(result.note) > 10
            assert any((small / "feedback" / result.student).rglob("*.html"))
    assert len(results) == len(STRANGE) + 2


def edited(small, who, change):
    """Hand in, as `who`, the solved notebook after `change` of its data."""
    nb = json.loads((small / "submitted/solved" / ASSIGNMENT / NOTEBOOK).read_text("utf-8"))
    change(nb)
    path = small / "submitted" / who / ASSIGNMENT / NOTEBOOK
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(nb), "utf-8")


def each_cell(change):
    return lambda nb: [change(cell) for cell in nb["cells"]]


def flip(cell):
    if cell["id"] in ("causal_mask", "test_causal_mask", "setup"):
        cell["cell_type"] = "markdown"
        cell.pop("outputs"), cell.pop("execution_count")


def garble(cell):
    cell["metadata"]["nbgrader"] = [1, "two"] if cell["id"].startswith("test") else "x"


def disguise(cell):
    """A solution cell that claims to be a test cell: it must not run in the grader."""
    if cell["id"] == "causal_mask":
        cell["metadata"]["nbgrader"].update(grade=True, solution=False, locked=True, points=100)
        cell["source"] = "GRADER = 1 / 0\n" + "".join(cell["source"])


def rewrite_tests(cell):
    if cell["id"].startswith("test_"):
        cell["source"] = "100.0"
        cell["metadata"]["nbgrader"]["points"] = 1000


def old_format(nb):
    nb["nbformat_minor"] = 2
    for cell in nb["cells"]:
        del cell["id"]


def put_tests_first(nb):
    nb["cells"].sort(key=lambda cell: not cell["id"].startswith("test_"))


def write_in_locked_cells(nb):
    """An import in the first cell, a helper beside a test: they ran for the student."""
    cells = {cell["id"]: cell for cell in nb["cells"]}
    text = {name: "".join(cell["source"]) for name, cell in cells.items()}
    cells["setup"]["source"] = text["setup"] + "\nimport math"
    cells["test_masked_softmax"]["source"] = "def root(d):\n    return math.sqrt(d)\n"
    attention = text["masked_attention"].replace("q.shape[-1] ** 0.5", "root(q.shape[-1])")
    assert attention != text["masked_attention"]
    cells["masked_attention"]["source"] = attention


def half_a_character(nb):
    nb["cells"][0]["source"] = "no \ud800 text"


def wild_metadata(nb):
    nb["metadata"] = {"kernelspec": 3, "language_info": [], "no_peeking": {"unreadable": "x"}}
    for cell in nb["cells"]:
        cell["metadata"].update(tags="no list", name=5, no_peeking=7, collapsed="?")
        cell.update(outputs=[{"output_type": "?"}], extra=1, attachments=3)


CHANGED = {
    "written-in-locked-cells": write_in_locked_cells,
    "half-a-character": half_a_character,
    "flipped": each_cell(flip),
    "garbled": each_cell(garble),
    "own-tests": each_cell(rewrite_tests),
    "old-format": old_format,
    "tests-first": put_tests_first,
    "wild-metadata": wild_metadata,
    "a-comment": lambda nb: nb["cells"][1].update(source=["### BEGIN HIDDEN TESTS"]),
    "unknown-id": lambda nb: nb["cells"][0]["metadata"].update(
        nbgrader={"grade_id": "x", "grade": 1}
    ),
    "disguised": each_cell(disguise),
}


def test_changed_cells_and_metadata_cost_nothing(small):
    for who, change in CHANGED.items():
        edited(small, who, change)
    results = grade_assignment(ASSIGNMENT, small, progress=lambda line: None)
    for result in results:
        lost = {"causal_mask", "causal_padding_mask"} if result.student == "disguised" else set()
        assert {n for n, points in result.exercises.items() if not points} == lost, result
        assert result.status == "graded"


def test_other_names_times_and_folders_are_understood_or_said(small):
    solved = small / "submitted/solved" / ASSIGNMENT / NOTEBOOK
    places = {"loud": "CAUSAL-MASK.IPYNB", "deep": f"work/{NOTEBOOK}", "late": NOTEBOOK}
    for who, place in places.items():
        path = small / "submitted" / who / ASSIGNMENT / place
        path.parent.mkdir(parents=True)
        path.write_bytes(solved.read_bytes())
    (small / "submitted/late" / ASSIGNMENT / "timestamp.txt").write_text("yesterday, sorry")
    (small / "submitted/wordy" / ASSIGNMENT).mkdir(parents=True)
    (small / "submitted/wordy" / ASSIGNMENT / "answers.py").write_text("x = 1")
    (small / "submitted/absent/another-assignment").mkdir(parents=True)
    lines = []
    results = grade_assignment(ASSIGNMENT, small, progress=lines.append)
    found = {result.student: result for result in results}
    for who in places:
        assert found[who].points == found[who].max_points, found[who]
    assert "timestamp.txt is not a date" in found["late"].note
    assert found["wordy"].note == "no notebook was handed in, only answers.py."
    assert lines[-1] == "nothing handed in: absent"


def test_a_second_run_at_the_same_time_is_refused(small):
    with alone(small), pytest.raises(GradingError, match="another run is grading"):
        grade_assignment(ASSIGNMENT, small, progress=print)


def test_a_damaged_gradebook_is_said(small):
    (small / "gradebook.db").write_bytes(b"no database" * 1000)
    with pytest.raises(GradingError, match="cannot be used.*move it away"):
        grade_assignment(ASSIGNMENT, small, progress=print)


def test_without_the_judge_the_cheat_would_win(sample, tmp_path_factory):
    """The comparison above can fail: with nbgrader's own Execute the patched notebook earns all."""
    folder = copied(sample, tmp_path_factory)
    keep(folder, "cheats")
    with (folder / "nbgrader_config.py").open("a") as file:
        file.write(
            "\nfrom nbgrader.converters import Autograde\n"
            "c.Autograde.autograde_preprocessors = Autograde.autograde_preprocessors.default()\n"
            "c.Autograde.sanitize_preprocessors = Autograde.sanitize_preprocessors.default()\n"
        )
    (result,) = grade_assignment(ASSIGNMENT, folder, progress=lambda line: None)
    assert result.points == result.max_points


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: shutil.rmtree(f / "submitted"), "no folder"),
        (lambda f: keep(f), "nobody has handed in"),
        (lambda f: shutil.rmtree(f / "solutions" / ASSIGNMENT), "no assignment"),
        (lambda f: (f / "nbgrader_config.py").unlink(), "nbgrader_config.py is missing"),
    ],
)
def test_what_is_missing_is_said(small, change, says):
    change(small)
    with pytest.raises(GradingError, match=says):
        grade_assignment(ASSIGNMENT, small)


def test_unknown_students_are_named(small):
    with pytest.raises(GradingError, match=r"by nobody-else; in .* solved"):
        grade_assignment(ASSIGNMENT, small, ["nobody-else"])


def test_a_locked_gradebook_is_said(small):
    lock = sqlite3.connect(small / "gradebook.db")
    lock.execute("BEGIN EXCLUSIVE")
    with pytest.raises(GradingError, match="locked by another program"):
        grade_assignment(ASSIGNMENT, small)
    lock.close()


def test_a_kernel_that_cannot_start_is_the_graders_fault(small):
    with (small / "nbgrader_config.py").open("a") as file:
        file.write("\nc.Judge.kernel_name = 'no-such-kernel'\n")
    (result,) = grade_assignment(ASSIGNMENT, small, progress=lambda line: None)
    assert (result.status, result.points) == ("error", None)
    assert "no-such-kernel" in result.note


def test_an_assignment_that_the_gradebook_does_not_know_is_built(small):
    (small / "gradebook.db").unlink()
    (result,) = grade_assignment(ASSIGNMENT, small, progress=lambda line: None)
    assert result.points == result.max_points


def test_a_folder_that_is_no_sample_class_is_left_alone(tmp_path):
    (tmp_path / "submitted").mkdir()
    with pytest.raises(FileExistsError, match="something else"):
        make_sample_class(ROOT, tmp_path)
