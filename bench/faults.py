"""A class that is graded undisturbed and once more with accidents, compared grade by grade.

The gradebook is on a PostgreSQL server. While the class is graded, a worker process is killed
every few seconds, and one after the other the server is stopped as in a crash, the grader is
killed, the disk is full (files of the grader's may not grow), and the grader is killed again. After
each, what an instructor would do: the same command once more. The class is the sample class,
again and again; the results say how often what happened, and that no grade differs.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import psutil

from autograde.grading.course import Course
from autograde.grading.doctor import why_no_sandbox
from autograde.grading.sample_class import ASSIGNMENT, in_gradebook, make_sample_class
from bench.postgres import Server

ROOT = Path(__file__).resolve().parent.parent
# When which part of the class has been graded, something happens.
ACCIDENTS = ((0.15, "database"), (0.35, "grader"), (0.55, "disk"), (0.75, "grader"))
MOST = 20  # runs; more are not needed unless something never gets done
SMALL = 40_000  # bytes: what the grader says has room, a feedback page has not
LOOK = 0.1  # seconds between two looks


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--students", type=int, default=256, help="in the class (256)")
    parser.add_argument("--every", type=float, default=10.0, metavar="SECONDS",
                        help="between two kills of a worker (10)")  # fmt: skip


def run(students: int = 256, every: float = 10.0, quick: bool = False) -> dict[str, Any]:
    """Grade the class twice and compare.

    Raises
    ------
    ValueError: a grade differs, or something was left behind.
    """
    with tempfile.TemporaryDirectory(prefix="faults-") as place, Server() as server:
        calm, rough = (
            _class(Path(place, name), server.url(name), 8 if quick else students)
            for name in ("calm", "rough")
        )
        begun = monotonic()
        status = _grade(calm).wait()
        undisturbed = monotonic() - begun
        print(f"faults: undisturbed, {undisturbed:.0f} s, exit status {status}", flush=True)
        runs, killed = disturbed(rough, server, every)
        found = differences(calm, rough)
        count = len(points(calm))
    for text in found:
        print(f"faults: {text}", file=sys.stderr)
    if found:
        raise ValueError(f"{len(found)} differences from the undisturbed run")
    return {
        "assignment": ASSIGNMENT,
        "students": count,
        "sandboxed": not why_no_sandbox(),
        "undisturbed": {"seconds": undisturbed},
        "disturbed": {
            "seconds": sum(each["seconds"] for each in runs),
            "runs": runs,
            "workers_killed": killed,
        },
        "differences": found,
    }


def _class(folder: Path, url: str, students: int) -> Path:
    """The sample class, its submissions repeated until there are so many, and this gradebook."""
    make_sample_class(ROOT, folder)
    submitted = folder / "submitted"
    kinds = sorted(submitted.iterdir())
    for number, kind in enumerate(islice(cycle(kinds), students)):
        shutil.copytree(kind, submitted / f"{number:04}-{kind.name}")
    for kind in kinds:
        shutil.rmtree(kind)
    (folder / "gradebook.db").unlink()
    with (folder / "nbgrader_config.py").open("a") as file:
        file.write(f"\nc.CourseDirectory.db_url = {url!r}\n")
    return folder


def _grade(folder: Path) -> subprocess.Popen:
    """The command, as an instructor types it; what it says goes to a file."""
    command = [sys.executable, "-m", "autograde.cli", "grade", ASSIGNMENT, "--root", str(folder)]
    command += ["--unsandboxed"] if why_no_sandbox() else []
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with folder.with_suffix(".log").open("wb") as said:
        return subprocess.Popen(
            command, stdout=said, stderr=said, env={**os.environ, "PYTHONPATH": path}
        )


def disturbed(folder: Path, server: Server, every: float) -> tuple[list[dict[str, Any]], int]:
    """Grade with accidents until all is done: (each run, how many workers were killed)."""
    cause: dict[str, Callable[[subprocess.Popen], None]] = {
        "database": lambda grader: server.stop(),
        "grader": lambda grader: grader.kill(),
        "disk": _full,
    }
    left, runs, killed, dice = list(ACCIDENTS), [], 0, random.Random(0)
    students = len(list((folder / "submitted").iterdir()))
    while len(runs) < MOST:
        before, happened, grader = _done(folder), "", _grade(folder)
        begun = last = monotonic()
        try:
            while grader.poll() is None:
                sleep(LOOK)
                due = left and not happened and _done(folder) >= left[0][0] * students
                if due and _done(folder) > before:  # it is at work
                    happened = left.pop(0)[1]
                    cause[happened](grader)
                if (left or happened) and monotonic() - last > every:
                    killed, last = killed + _kill_a_worker(grader.pid, every, dice), monotonic()
        finally:
            grader.kill()  # it has ended, unless this was stopped
        if happened == "database":
            server.start()
        seconds = monotonic() - begun
        runs.append({"seconds": seconds, "accident": happened, "status": grader.returncode})
        print(f"faults: {_told(runs[-1])}; {_done(folder)} of {students} graded", flush=True)
        if not happened and grader.returncode in (0, 1) and not _errors(folder):
            break
    return runs, killed


def _full(grader: subprocess.Popen) -> None:
    """No file of the grader's may grow beyond that, as feedback pages would."""
    resource.prlimit(grader.pid, resource.RLIMIT_FSIZE, (SMALL, SMALL))


def _kill_a_worker(pid: int, age: float, dice: random.Random) -> int:
    """How many: one, or none where the grader has none of that age in seconds."""
    try:
        workers = [
            child
            for child in psutil.Process(pid).children()
            if "autograde.grading.workers" in child.cmdline() and time() - child.create_time() > age
        ]
        if workers:
            dice.choice(workers).kill()
        return bool(workers)
    except psutil.Error:  # it has just ended
        return 0


def _done(folder: Path) -> int:
    return len(list((folder / "results" / ASSIGNMENT).glob("[!.]*.json")))


def _errors(folder: Path) -> list[str]:
    return [who for who, row in table(folder).items() if row["status"] == "error"]


def table(folder: Path) -> dict[str, dict[str, str]]:
    """{student: the row of grades.csv}"""
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def points(folder: Path) -> dict[str, dict[str, float | None]]:
    """{student: {exercise: points}} in the gradebook, wherever it is."""
    with Course(folder).gradebook() as gradebook:
        return in_gradebook(gradebook)


def differences(calm: Path, rough: Path) -> list[str]:
    """What is not the same in the two classes, a sentence each."""
    found = []
    for what, read in (("gradebook", points), ("grades.csv", table)):
        one, other = read(calm), read(rough)
        for who in sorted({*one, *other}):
            if one.get(who) != other.get(who):
                found.append(f"{what}: {who} has {other.get(who)} and had {one.get(who)}")
    for step in ("autograded", "feedback"):
        one, other = (
            {str(path.relative_to(root)) for path in (root / step).rglob("*")}
            for root in (calm, rough)
        )
        found += [f"{step}: {name} is there in one class only" for name in sorted(one ^ other)]
    found += [f"left behind: {path.name}" for path in rough.rglob(".*.tmp")]
    return found


def _told(run: dict[str, Any]) -> str:
    status, what = run["status"], run["accident"] or "no accident"
    return f"{what:<12} {run['seconds']:7.1f} s, exit status {status}"


def show(data: dict[str, Any]) -> str:
    """Each run of the class with accidents, and the comparison."""
    rough = data["disturbed"]
    return "\n".join(
        [
            f"{data['students']} submissions of {data['assignment']}",
            f"undisturbed  {data['undisturbed']['seconds']:7.1f} s",
            *map(_told, rough["runs"]),
            f"with accidents {rough['seconds']:5.1f} s in all, "
            f"{rough['workers_killed']} workers killed",
            f"differences: {', '.join(data['differences']) or 'none'}",
        ]
    )
