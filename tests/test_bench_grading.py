"""bench/grading.py: the class and its tests, the meter, and each way once on two submissions."""

import importlib.util
import json
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nbgrader")

from autograde.exercise import chapters, find  # noqa: E402
from autograde.grading.doctor import why_no_sandbox  # noqa: E402
from bench import grading, grading_ways  # noqa: E402
from bench.__main__ import main  # noqa: E402
from bench.grading_cases import ASSIGNMENTS, lines  # noqa: E402
from bench.grading_class import EVERY, Student, drawn, pools  # noqa: E402
from bench.grading_meter import Tree, measured  # noqa: E402


def passes(exercise, cell):
    """Does the answer, in a notebook whose other functions are right, pass the hidden asserts?"""
    names = {"np": np, "torch": torch}
    names |= {each.name: each.reference for each in chapters()[exercise.chapter]}
    setup = "from __future__ import annotations\n"
    exec(setup + "\n\n".join(cell.values()), names)
    try:
        with np.errstate(all="ignore"):
            exec("\n".join(lines(exercise)), names)
    except Exception:
        return False
    return True


def test_there_is_an_assignment_in_numpy_and_one_in_torch():
    assert ASSIGNMENTS == ("03-causal-mask", "06-decoder")


@pytest.mark.parametrize("name", [e.name for a in ASSIGNMENTS for e in chapters()[a]])
def test_plain_asserts_accept_what_is_right_and_refuse_most_of_what_is_wrong(name):
    right, wrong = pools(find(name))
    assert len(right) > 1  # the reference, and what others write
    assert all(passes(find(name), cell) for cell in right)
    assert sum(passes(find(name), cell) for cell in wrong) <= len(wrong) / 5


def test_a_class_is_half_right_and_always_the_same():
    students = drawn("03-causal-mask", 2 * EVERY)
    assert students == drawn("03-causal-mask", 2 * EVERY)
    assert students[:8] == drawn("03-causal-mask", 8)
    verdicts = [right for student in students for right in student.right.values()]
    assert 0.4 < np.mean(verdicts) < 0.6
    endless = [s.name for s in students if any("while True" in a for a in s.answers.values())]
    assert endless == ["student-032", "student-064"]
    (calm,) = drawn("03-causal-mask", EVERY, endless=False)[EVERY - 1 :]
    assert not any("while True" in answer for answer in calm.answers.values())


def test_what_calls_a_wrong_answer_is_not_judged():
    for student in drawn("03-causal-mask", EVERY):
        if student.right.get("masked_attention"):
            assert student.right["masked_softmax"]


def test_verdicts_are_counted():
    students = [Student(name, {}, {"f": True, "g": False}) for name in "abc"]
    points = {"a": {"f": True, "g": False}, "b": {"f": False, "g": True}}
    assert grading.judged(students, points) == {
        "not_graded": 1, "right": 2, "right_refused": 1, "wrong": 2, "wrong_accepted": 1,
    }  # fmt: skip


def row(way, students, per_minute, cpu, peak, loops=0):
    counted = dict.fromkeys(
        ("not_graded", "right", "right_refused", "wrong", "wrong_accepted", "status"), 0
    )
    return counted | {
        "assignment": "a", "students": students, "endless_loops": loops, "way": way,
        "per_minute": per_minute, "cpu_seconds": cpu, "peak_bytes": peak,
    }  # fmt: skip


def test_a_ratio_is_of_the_same_class_and_growth_of_classes_without_loops():
    rows = [
        row("nbgrader", 8, 10, 40, 100), row("autograde", 8, 80, 10, 200),
        row("nbgrader", 64, 9, 320, 100, 2), row("autograde", 64, 99, 80, 200, 2),
        row("autograde", 256, 70, 999, 300, 8), row("autograde", 256, 100, 256, 210),
    ]  # fmt: skip
    found = [(r["students"], r["against"], r["per_minute"]) for r in grading.ratios(rows)]
    assert found == [(8, "nbgrader", 8), (64, "nbgrader", 11)]
    assert grading.ratios(rows)[0]["cpu_seconds"] == 0.25
    (found,) = grading.growth(rows)
    assert (found["from"], found["to"], found["way"]) == (8, 256, "autograde")
    assert found["seconds_each"] == 0.8
    assert found["cpu_seconds_each"] == 0.8
    assert found["peak_bytes"] == 1.05
    data = {"rows": rows, "ratios": grading.ratios(rows), "growth": [found]}
    assert len(grading.show(data).splitlines()) == 1 + 6 + 2 + 1


# A parent that ends at once; its child computes for half a second, and lives on.
ORPHAN = """
import os, sys, time
told, tell = os.pipe()
if os.fork() == 0:
    while time.process_time() < 0.5:
        pass
    os.write(tell, b"x")
    time.sleep(600)
os.read(told, 1)
sys.exit(3)
"""


def test_the_meter_counts_whose_parent_has_gone_and_ends_them(tmp_path):
    file = tmp_path / "pid"
    script = ORPHAN.replace(
        "    os.write", f"    open({str(file)!r}, 'w').write(str(os.getpid()))\n    os.write"
    )
    found = measured([sys.executable, "-c", script], tmp_path, {}, tmp_path / "log")
    assert found["status"] == 3
    assert found["cpu_seconds"] >= 0.5
    assert found["seconds"] >= 0.5
    assert found["peak_bytes"] > 2**20
    assert gone(int(file.read_text()))


def gone(pid, seconds=30):
    """Has it ended? A killed process may take a moment, and stays a zombie if nobody waits."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_shared_pages_count_once():
    script = (
        "import os, sys; held = os.urandom(100 << 20); os.fork(); "
        "print(flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) as process:
        process.stdout.readline()
        process.stdout.readline()  # of both
        tree = Tree(process.pid)
        tree.look()
        assert len(tree.alive) == 2
        assert 100 * 2**20 < tree.memory() < 170 * 2**20
        process.stdin.close()


def test_what_is_missing_is_said_at_once(monkeypatch, capsys):
    monkeypatch.setattr(grading.importlib.util, "find_spec", lambda name: None)
    assert main(["grading", "--quick"]) == 2
    assert "pip install -r bench/requirements.txt" in capsys.readouterr().err


@pytest.fixture(scope="module")
def quick():
    if reason := why_no_sandbox():
        pytest.skip(f"NOT TESTED, no sandbox: {reason}")
    return grading.run(quick=True, ways=("nbgrader", "autograde"))


def test_two_submissions_are_graded_by_nbgrader_and_by_us(quick):
    assert json.loads(json.dumps(quick, allow_nan=False)) == quick
    nbgrader, ours = quick["rows"]
    assert (nbgrader["way"], ours["way"]) == ("nbgrader", "autograde")
    judged = sum(len(student.right) for student in drawn("03-causal-mask", 2))
    for row in quick["rows"]:
        assert row["students"] == 2
        assert row["right"] + row["wrong"] == judged
        assert row["per_minute"] == pytest.approx(120 / row["seconds"])
        assert row["cpu_seconds"] > 1
        assert row["peak_bytes"] > 50e6
    assert ours["not_graded"] == ours["right_refused"] == ours["wrong_accepted"] == 0
    assert nbgrader["wrong_accepted"] < nbgrader["wrong"]
    (ratio,) = quick["ratios"]
    assert ratio["per_minute"] == ours["per_minute"] / nbgrader["per_minute"]
    assert set(quick["versions"]) == {"nbgrader"}


@pytest.mark.skipif(
    importlib.util.find_spec("otter") is None,
    reason="NOT TESTED, Otter-Grader is missing: pip install -r bench/requirements.txt",
)
def test_two_submissions_are_graded_by_otter(monkeypatch):
    monkeypatch.setattr(grading_ways, "LIMIT", 900)  # however busy this machine is
    (row,) = grading.run(quick=True, ways=("otter",))["rows"]
    assert row["not_graded"] == 0
    assert row["wrong_accepted"] < row["wrong"]
    assert row["right_refused"] < row["right"]
