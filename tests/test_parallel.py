"""Grading many submissions at once, here and on a cluster, and going on after whatever ended it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.api import Gradebook

from autograde.grading import executors, workers
from autograde.grading.assignment import GradingError, grade_assignment
from autograde.grading.sample_class import (
    ASSIGNMENT,
    NOTEBOOK,
    expected,
    in_gradebook,
    make_sample_class,
)

ROOT = Path(__file__).resolve().parent.parent
STUDENTS = ("broken-file", "deleted-test-cell", "other-styles", "solved", "three-mistakes",
            "untouched")  # fmt: skip
LONG = 240.0  # seconds for what takes a few on an idle machine
KILLER = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are ended as on Linux")


@pytest.fixture(scope="module")
def sample(tmp_path_factory, sandboxed):
    """A class of six, not graded."""
    into = tmp_path_factory.mktemp("sample") / "class"
    make_sample_class(ROOT, into)
    with (into / "nbgrader_config.py").open("a") as file:
        file.write(f"\nc.Judge.sandboxed = {sandboxed}\n")
    for path in (into / "submitted").iterdir():
        if path.name not in STUDENTS:
            shutil.rmtree(path)
    return into


@pytest.fixture
def course(sample, tmp_path):
    shutil.copytree(sample, tmp_path / "class")
    return tmp_path / "class"


def points_in(folder):
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        return in_gradebook(gradebook)


def check_everything(folder, results, students=STUDENTS):
    """Everybody has exactly the points that the answers deserve, everywhere."""
    wanted = {who: expected()[who] for who in students}
    assert {result.student: result.exercises for result in results} == wanted
    assert points_in(folder) == wanted
    for who in students:
        graded = folder / "autograded" / who / ASSIGNMENT / NOTEBOOK
        assert json.loads(graded.read_text(encoding="utf-8"))["cells"]
        page = folder / "feedback" / who / ASSIGNMENT / "causal-mask.html"
        assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")


def until(happened, process=None):
    end = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_many_at_once_give_what_one_after_the_other_gives(course):
    lines = []
    results = grade_assignment(ASSIGNMENT, course, progress=lines.append, jobs=2)
    assert [result.student for result in results] == sorted(STUDENTS)
    assert [line.split()[3] for line in lines] == sorted(STUDENTS)
    check_everything(course, results)
    assert not workers._all
    again = grade_assignment(ASSIGNMENT, course, progress=print, jobs=2)
    assert all(result.kept for result in again)


def test_a_submission_that_kills_its_grader_costs_nobody_else_a_grade(course):
    nb = json.loads((course / "submitted/solved" / ASSIGNMENT / NOTEBOOK).read_text())
    nb["cells"][-1] = {**nb["cells"][1], "id": "killer", "metadata": {}, "source": KILLER}
    nb["cells"].insert(1, nb["cells"].pop())
    path = course / "submitted/killer" / ASSIGNMENT / NOTEBOOK
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(nb))
    students = ["killer", "solved", "untouched"]
    results = grade_assignment(
        ASSIGNMENT, course, students, progress=print, sandboxed=False, jobs=2
    )
    killer, *others = results
    assert (killer.status, killer.points) == ("error", None)
    assert "ended twice (signal SIGKILL)" in killer.note
    check_everything(course, others, ("solved", "untouched"))


class Grading:
    """`autograde grade` in a process of its own, which can be ended."""

    def __init__(self, folder):
        self.records = folder / "results" / ASSIGNMENT
        command = [sys.executable, "-m", "autograde.cli", "grade", ASSIGNMENT, "--jobs", "2"]
        self.process = subprocess.Popen(
            [*command, "--root", str(folder)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def count(self):
        return len(list(self.records.glob("[!.]*.json")))

    def end(self, how):
        """Send the signal once one more submission is graded; what was printed."""
        before = self.count()
        until(lambda: self.count() > before, self.process)
        children = _descendants(self.process.pid)
        assert children
        self.process.send_signal(how)
        _, told = self.process.communicate(timeout=LONG)
        until(lambda: not any(map(_lives, children)))
        return told


def _descendants(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            child = int(path.parent.name)
            found += [child, *_descendants(child)]
    return found


def _lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ended_in_mid_class_it_goes_on_where_it_was(course):
    first = Grading(course)
    assert "stopped" in first.end(signal.SIGINT)
    assert first.process.returncode == 2
    second = Grading(course)
    second.end(signal.SIGKILL)
    done = second.count()
    assert done >= 2
    results = grade_assignment(ASSIGNMENT, course, progress=print, jobs=2)
    assert sum(result.kept for result in results) == done
    check_everything(course, results)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers as processes of their own: (address, workers)."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("cluster")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = []

    def dask(*arguments):
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        log = (folder / f"{len(started)}.log").open("w")
        started.append(subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log))
        return started[-1]

    file = folder / "scheduler.json"
    here = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    dask("scheduler", *here, "--scheduler-file", str(file))
    until(lambda: file.is_file() and file.stat().st_size)
    address = json.loads(file.read_text())["address"]
    worker = ("worker", address, "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    yield address, [dask(*worker, "--nthreads", "1") for _ in range(2)]
    for process in started:
        process.kill()
        process.wait()


def test_a_cluster_with_another_version_is_refused(course, cluster, monkeypatch):
    monkeypatch.setattr(workers.platform, "python_version", lambda: "2.7.18")
    with pytest.raises(GradingError, match="another version of the course"):
        grade_assignment(ASSIGNMENT, course, progress=print, scheduler=cluster[0])


def test_a_cluster_that_loses_a_worker_gives_the_same(course, cluster):
    address, (doomed, _) = cluster
    lines = []

    def progress(line):
        lines.append(line)
        if len(lines) == 1:
            doomed.kill()

    results = grade_assignment(ASSIGNMENT, course, progress=progress, scheduler=address)
    assert doomed.wait(LONG) == -signal.SIGKILL
    check_everything(course, results)
    assert [line.split()[3] for line in lines] == sorted(STUDENTS)


def test_where_there_is_no_scheduler_it_is_said(course, monkeypatch):
    monkeypatch.setattr(executors, "SOON", 1)
    with pytest.raises(GradingError, match=r"no scheduler at tcp://127\.0\.0\.1:9 "):
        grade_assignment(ASSIGNMENT, course, scheduler="tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(GradingError, match=r"pip install 'no-peeking\[distributed\]'"):
        grade_assignment(ASSIGNMENT, course, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(GradingError, match="--jobs wants"):
        grade_assignment(ASSIGNMENT, course, jobs=0)
