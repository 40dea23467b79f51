"""How fast a class is graded: nbgrader alone, Otter-Grader, and `autograde grade`.

One class after the other, the same answers for each way (see bench/grading_class.py), in folders
of their own, and the time from the command's start to its end: submissions per minute, CPU
seconds of all its processes, peak memory of all of them at once. From the bank it is known which
answers are right, so it is counted, too, how many wrong ones got all points and how many right
ones did not. In classes of 32 and more, one of 32 has an endless loop. Linux only.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from bench.grading_cases import ASSIGNMENTS
from bench.grading_class import EVERY, Student, drawn
from bench.grading_meter import measured
from bench.grading_ways import WAYS, Points, cores, environment

OURS, SERVED = "autograde", {"nbgrader": "nbgrader", "otter": "otter-grader"}
STUDENTS, AGAINST = (8, 64, 256), 64


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--students", type=int, nargs="+", metavar="N", default=STUDENTS,
                        help="sizes of the class (8 64 256)")  # fmt: skip
    parser.add_argument("--assignments", nargs="+", choices=ASSIGNMENTS, default=ASSIGNMENTS)
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS))
    parser.add_argument("--against", type=int, metavar="N", default=AGAINST,
                        help="the largest class for the others (64)")  # fmt: skip


def run(
    quick: bool = False,
    students: tuple[int, ...] = STUDENTS,
    assignments: tuple[str, ...] = ASSIGNMENTS,
    ways: tuple[str, ...] = tuple(WAYS),
    against: int = AGAINST,
) -> dict[str, Any]:
    """Grade every class every way; the others only classes of at most `against`.

    The largest class is graded once more without endless loops, by ours, so that it can be
    compared with one that is too small to have any.
    """
    if quick:
        students, assignments = (2,), assignments[:1]
    _ready(ways)
    rows = []
    for assignment in assignments:
        for number, way in product(sorted(set(students)), ways):
            if way == OURS or number <= against:
                rows.append(graded(way, assignment, number))
        if OURS in ways and max(students) >= EVERY:
            rows.append(graded(OURS, assignment, max(students), endless=False))
    return {
        "cores_used": cores(),
        "versions": {way: version(SERVED[way]) for way in ways if way in SERVED},
        "rows": rows,
        "ratios": ratios(rows),
        "growth": growth(rows),
    }


def _ready(ways: tuple[str, ...]) -> None:
    """Say before the first hour that something is missing."""
    if not sys.platform.startswith("linux"):
        raise OSError("it measures processes by /proc, which only Linux has")
    if "otter" in ways and importlib.util.find_spec("otter") is None:
        raise ModuleNotFoundError(
            "Otter-Grader is missing: pip install -r bench/requirements.txt (make bench does it), "
            "or leave it out with --ways nbgrader autograde"
        )
    from autograde.grading.doctor import why_no_sandbox

    if OURS in ways and (reason := why_no_sandbox()):
        raise OSError(reason)


def graded(way: str, assignment: str, number: int, endless: bool = True) -> dict[str, Any]:
    """One class, graded one way."""
    loops = number // EVERY if endless else 0
    print(f"grading: {assignment}, {number} students, {way} ...", flush=True)
    students = drawn(assignment, number, endless)
    folder = Path(tempfile.mkdtemp(prefix="no-peeking-bench-")).resolve()
    try:
        command = WAYS[way].prepare(folder, assignment, students)
        cost = measured(command, folder, environment(folder), folder / "log")
        points = WAYS[way].points(folder, assignment)
        if not points:
            said = (folder / "log").read_text(errors="replace")[-2000:]
            raise OSError(f"{way} has graded nobody:\n{said}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    row = {"assignment": assignment, "students": number, "endless_loops": loops, "way": way}
    row |= {"per_minute": 60 * number / cost["seconds"], **cost, **judged(students, points)}
    print(line(row), flush=True)
    return row


def judged(students: list[Student], points: Points) -> dict[str, int]:
    """How many were not graded; how many wrong answers got all points, and right ones did not."""
    found = {"not_graded": 0, "right": 0, "right_refused": 0, "wrong": 0, "wrong_accepted": 0}
    for student in students:
        if student.name not in points:
            found["not_graded"] += 1
            continue
        for exercise, right in student.right.items():
            full = points[student.name].get(exercise, False)
            found["right" if right else "wrong"] += 1
            found["right_refused"] += right and not full
            found["wrong_accepted"] += full and not right
    return found


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Our submissions per minute to those of each other way, for the same class."""
    found = []
    for ours, other in product(rows, rows):
        same = all(ours[k] == other[k] for k in ("assignment", "students", "endless_loops"))
        if same and ours["way"] == OURS != other["way"]:
            key = {k: ours[k] for k in ("assignment", "students")}
            times = {k: ours[k] / other[k] for k in ("per_minute", "cpu_seconds", "peak_bytes")}
            found.append({**key, "against": other["way"], **times})
    return found


def growth(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cost of a submission and peak memory, in the largest class to the smallest.

    Of classes without endless loops: a small class has none.
    """
    found = []
    for assignment, way in dict.fromkeys((row["assignment"], row["way"]) for row in rows):
        calm = [row for row in rows if (row["assignment"], row["way"]) == (assignment, way)]
        calm = sorted((r for r in calm if not r["endless_loops"]), key=lambda r: r["students"])
        if len(calm) < 2:
            continue
        small, large = calm[0], calm[-1]
        found.append({
            "assignment": assignment, "way": way,
            "from": small["students"], "to": large["students"],
            "seconds_each": small["per_minute"] / large["per_minute"],
            "cpu_seconds_each": (large["cpu_seconds"] / large["students"])
            / (small["cpu_seconds"] / small["students"]),
            "peak_bytes": large["peak_bytes"] / small["peak_bytes"],
        })  # fmt: skip
    return found


TITLES = ("assignment", "class", "loops", "way", "per minute", "CPU s each", "peak MB",
          "not graded", "right refused", "wrong accepted")  # fmt: skip
WIDTHS = (15, 7, 7, 11, 12, 12, 9, 12, 15, 16)


def line(row: dict[str, Any]) -> str:
    cells = (
        row["assignment"], row["students"], row["endless_loops"], row["way"],
        f"{row['per_minute']:.1f}", f"{row['cpu_seconds'] / row['students']:.2f}",
        f"{row['peak_bytes'] / 1e6:.0f}", row["not_graded"],
        f"{row['right_refused']} of {row['right']}", f"{row['wrong_accepted']} of {row['wrong']}",
    )  # fmt: skip
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def show(data: dict[str, Any]) -> str:
    """A line for each class and way; then ours against the others, and how the cost grows."""
    found = ["".join(f"{t:>{w}}" for t, w in zip(TITLES, WIDTHS, strict=True))]
    found += map(line, data["rows"])
    for r in data["ratios"]:
        found.append(
            f"{r['assignment']}, {r['students']} students: {r['per_minute']:.1f} times as many a "
            f"minute as {r['against']}, with {r['cpu_seconds']:.2f} of its CPU time and "
            f"{r['peak_bytes']:.2f} of its memory"
        )
    for g in data["growth"]:
        found.append(
            f"{g['assignment']}, {g['way']}, {g['to']} students to {g['from']}: a submission takes "
            f"{g['seconds_each']:.2f} times as long and {g['cpu_seconds_each']:.2f} times the CPU "
            f"time, the class {g['peak_bytes']:.2f} times the memory"
        )
    return "\n".join(found)
