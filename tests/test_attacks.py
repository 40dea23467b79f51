"""Attacks on the grader: none earns what it does not deserve, none has an effect outside.

Each attack in `attacks/*.md`, and each of `FILES` below, is a submission. All are graded by one
run of the real command, and an honest submission after each. What a heading says is what the
attack starts from: an untouched notebook, which must get nothing, or one in which two exercises
are solved, which must get all of their points, but for those that the attack itself loses.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.api import Gradebook

from autograde.exercise import find
from autograde.grading.sample_class import ASSIGNMENT, NOTEBOOK, make_sample_class

ROOT = Path(__file__).resolve().parent.parent
SOLVED = ("causal_mask", "additive_mask")
POINTS = {name: float(find(name).points) for name in SOLVED}
CONFIG = """
import autograde.grading.kernel, autograde.grading.workspace
autograde.grading.kernel.GRACE = autograde.grading.workspace.GRACE = 0.5
c.Judge.timeout = 3
c.Judge.call_seconds = 2.0
c.Judge.notebook_seconds = 40.0
c.SandboxProvisioner.memory = 700
c.SandboxProvisioner.disk = 48
c.SandboxProvisioner.file = 24
c.SandboxProvisioner.processes = 60
"""
# The first cell of every submission: does it find anything of the one before?
PROBE = """
import os
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if b"{{MARK}}" in file.read():
            print("LEFT a process")
for folder in ("/tmp", "/dev/shm", os.environ["TMPDIR"], "."):
    if any(n.startswith(("MARKED", "big", "file")) for n in os.listdir(folder)):
        print("LEFT files in", folder)
"""


@dataclass(frozen=True)
class Attack:
    """A submission: what it starts from, code by the cell that it replaces, what it must get."""

    name: str
    solved: bool = True
    loses: tuple[str, ...] = ()
    code: dict[str, str] = field(default_factory=dict)

    @property
    def deserves(self) -> dict[str, float]:
        wanted = set(SOLVED) - set(self.loses) if self.solved else ()
        return {name: POINTS[name] for name in wanted}


def read(path: Path) -> list[Attack]:
    """The attacks of one file."""
    found = []
    for part in path.read_text("utf-8").split("\n## ")[1:]:
        heading = part.split("\n", 1)[0]
        name, base, lost = re.fullmatch(
            r"([\w-]+) \((solved|untouched)(?:, loses (.+))?\)", heading
        ).groups()
        blocks = re.findall(r"```python (\w+)\n(.*?)```", part, re.S)
        loses = tuple(lost.split(", ")) if lost else ()
        found.append(Attack(f"{path.stem}-{name}", base == "solved", loses, dict(blocks)))
    return found


# Attacks by the files themselves ----------------------------------------------------------------


def cells_of(nb: dict) -> dict[str, dict]:
    return {cell["id"]: cell for cell in nb["cells"]}


def edited_tests(nb, folder):
    for name, cell in cells_of(nb).items():
        if name.startswith("test_"):
            cell["source"] = "100.0"
            cell["metadata"]["nbgrader"] |= {"points": 1000, "locked": False, "checksum": "0"}


def deleted_tests(nb, folder):
    nb["cells"] = [cell for cell in nb["cells"] if not cell["id"].startswith("test_")]


def doubled_tests(nb, folder):
    for cell in list(nb["cells"]):
        if cell["id"].startswith("test_"):
            for number in range(3):
                twin = {**copy.deepcopy(cell), "id": f"twin-{number}-{cell['id']}"[:60]}
                nb["cells"].append({**twin, "source": "4.0"})


def swapped_names(nb, folder):
    """The easy answer under the name of every other exercise."""
    for name, cell in cells_of(nb).items():
        mark = cell["metadata"].get("nbgrader", {})
        if name.startswith("test_"):
            mark["grade_id"] = "test_causal_mask"
        elif mark.get("solution"):
            mark["grade_id"] = "test_" + name


def answers_as_tests(nb, folder):
    """A student's cell that claims to be the test cell, to run where the tests run."""
    cell = cells_of(nb)["causal_mask"]
    cell["metadata"]["nbgrader"] |= {
        "grade": True,
        "solution": False,
        "grade_id": "test_causal_mask",
    }
    cell["source"] = f"open({str(folder.parent / 'IN-THE-GRADER')!r}, 'w')\n100.0"


def graded_already(nb, folder):
    """The judge's own notes, written by the student."""
    nb["metadata"]["no_peeking"] = {"notes": ["34 of 34"], "unreadable": ""}
    for cell in nb["cells"]:
        cell["metadata"]["no_peeking"] = [{"exercise": "causal_mask", "points": 100}]
        if cell["cell_type"] == "code":
            data = {"text/plain": "4.0"}
            cell["outputs"] = [
                {
                    "output_type": "execute_result",
                    "data": data,
                    "metadata": {},
                    "execution_count": 1,
                }
            ]


def strange_names(nb, folder):
    for mark in (cell["metadata"].get("nbgrader", {}) for cell in nb["cells"]):
        if "grade_id" in mark:
            mark["grade_id"] = "../../" + "x" * 300 + "'; DROP TABLE grade; --"


def active_text(nb, folder):
    """Markdown and raw cells with all that acts."""
    evil = (
        "<script>EVIL()</script><img src=x onerror='EVIL()'><iframe src='javascript:EVIL()'>"
        "</iframe>\n\n[x](javascript:EVIL()) ![x](http://EVIL/x.png) <base href='//EVIL'>"
        "<meta http-equiv=refresh content='0;url=//EVIL'>"
        "\n\n$\\href{javascript:EVIL()}{x}$ <style>@import '//EVIL'</style>"
    )
    for kind in ("markdown", "raw"):
        cell = {"cell_type": kind, "id": f"evil-{kind}", "metadata": {}, "source": evil}
        nb["cells"].insert(0, {**cell, "metadata": {"raw_mimetype": "text/html"}})
    nb["cells"][0]["attachments"] = {"x.png": {"text/html": "<script>EVIL()</script>"}}


def other_modules(nb, folder):
    """Files beside the notebook with the names of what the kernel or the grader imports."""
    for name in ("numpy", "random", "json", "autograde", "inside", "sitecustomize", "zmq"):
        (folder / f"{name}.py").write_text("print('FOUND', __name__)\nraise SystemExit")
    (folder / "autograde").mkdir()
    (folder / "autograde/__init__.py").write_text("check = grade = hint = lambda *a: 4.0")
    (folder / "nbgrader_config.py").write_text("1 / 0")
    (folder / ".ipython/profile_default/startup").mkdir(parents=True)
    (folder / ".ipython/profile_default/startup/x.py").write_text("1 / 0")


def links(nb, folder):
    """Links to a neighbour's work, to the gradebook and out of the course."""
    root = folder.parents[2]
    (folder / "neighbour").symlink_to(root / "submitted")
    (folder / "book.txt").symlink_to(root / "gradebook.db")
    (folder / "canary.txt").symlink_to(root.parent / "canary" / "canary.txt")
    (folder / "loop").symlink_to(folder)
    cells_of(nb)["causal_mask"]["source"] += (
        "\nimport os\nfor path in ('book.txt', 'canary.txt', 'neighbour', 'loop'):\n"
        "    print('FOUND ' + path if os.path.exists(path) else 'nothing')"
    )


def not_files(nb, folder):
    """A pipe that nobody writes to, a socket, a file of a petabyte, and an odd name."""
    os.mkfifo(folder / "pipe")
    socket.socket(socket.AF_UNIX).bind(str(folder / "s"))
    with (folder / "huge").open("wb") as file:
        file.truncate(2**42)
    (folder / "new\nline; rm -rf $HOME .txt").write_text("x")


def a_neighbours_notebook(nb, folder):
    """The notebook is a link to one that earns something; returns that it is written already."""
    neighbour = folder.parents[1] / "zzz-neighbour" / ASSIGNMENT
    (folder / NOTEBOOK).symlink_to(neighbour / NOTEBOOK)
    return True


def deep(nb, folder):
    (folder / NOTEBOOK).write_text('{"nbformat": 4, "cells": ' + "[" * 10**5)
    return True


FILES = [
    (Attack("files-edited-tests", False), edited_tests),
    (Attack("files-deleted-tests", False), deleted_tests),
    (Attack("files-doubled-tests", False), doubled_tests),
    (Attack("files-swapped-names", False), swapped_names),
    (Attack("files-answers-as-tests", False), answers_as_tests),
    (Attack("files-graded-already", False), graded_already),
    (Attack("files-strange-names"), strange_names),
    (Attack("files-active-text"), active_text),
    (Attack("files-other-modules"), other_modules),
    (Attack("files-links"), links),
    (Attack("files-not-files"), not_files),
    (Attack("files-a-neighbours-notebook", False), a_neighbours_notebook),
    (Attack("files-deep", False), deep),
]
WRITTEN = [
    attack for path in sorted(Path(__file__).parent.glob("attacks/*.md")) for attack in read(path)
]
ALL = {attack.name: attack for attack in [*WRITTEN, *(attack for attack, _ in FILES)]}


# The class --------------------------------------------------------------------------------------


@dataclass
class Graded:
    """What came of the one run."""

    root: Path
    students: dict[str, str]  # {attack: its student}
    points: dict[str, dict[str, float | None]]
    connections: list[str]
    said: str
    session: int  # of the processes that the run has started

    def outputs(self, student: str) -> str:
        """All that the cells of a graded notebook show."""
        path = self.root / "autograded" / student / ASSIGNMENT / NOTEBOOK
        cells = json.loads(path.read_text("utf-8"))["cells"] if path.exists() else []
        return json.dumps([cell.get("outputs") for cell in cells])

    def page(self, student: str) -> str:
        path = self.root / "feedback" / student / ASSIGNMENT / NOTEBOOK.replace("ipynb", "html")
        return path.read_text("utf-8")


def notebook(released: dict, attack: Attack) -> dict:
    """The notebook that is handed in: of the answers, only those that matter here."""
    nb = copy.deepcopy(released)
    solved = {name: inspect.getsource(find(name).reference) for name in SOLVED}
    answers = {**(solved if attack.solved else {}), **attack.code}
    kept = {*SOLVED, *answers, "setup"}
    nb["cells"] = [
        cell for cell in nb["cells"] if cell["id"] in kept or cell["id"].startswith("test_")
    ]
    for name, cell in cells_of(nb).items():
        cell["source"] = answers.get(name, cell["source"])
    for source in (PROBE, attack.code.get("first", "")):
        place = 1 if source is PROBE else 2
        cell = {"cell_type": "code", "id": f"own-{place}", "metadata": {}, "source": source}
        nb["cells"].insert(place, {**cell, "outputs": [], "execution_count": None})
    return nb


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """What must not be touched: a folder, and sockets that note whoever connects."""
    folder, seen = tmp_path_factory.mktemp("o") / "canary", []
    folder.mkdir()
    (folder / "canary.txt").write_text("the CANARY sings")
    tcp = socket.create_server(("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", port))
    named, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    named.bind(str(folder.parent / "s"))
    abstract.bind(f"\0no-peeking-{port}")
    for server in (named, abstract):
        server.listen()

    def watch(server, kind):
        with contextlib.suppress(OSError):
            while True:
                server.recv(100) if kind == "udp" else server.accept()[0].close()
                seen.append(kind)

    for server, kind in ((tcp, "tcp"), (udp, "udp"), (named, "named"), (abstract, "abstract")):
        threading.Thread(target=watch, args=(server, kind), daemon=True).start()
    values = {"PORT": port, "CANARY": folder, "SOCKET": folder.parent / "s", "COURSE": ROOT}
    values["MARK"] = 98 * 10**5 + port  # seconds to sleep that nobody else sleeps
    yield folder, values, seen
    for server in (tcp, udp, named, abstract):
        server.close()


@pytest.fixture(scope="module")
def graded(sandbox, outside, tmp_path_factory):
    """Every attack, graded, with an honest submission behind each."""
    canary, values, seen = outside
    root = canary.parent / "class"
    make_sample_class(ROOT, root)
    for folder in (root / "submitted").iterdir():
        subprocess.run(["rm", "-rf", folder], check=True)
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(CONFIG)
    released = json.loads((root / "exercises" / ASSIGNMENT / NOTEBOOK).read_text("utf-8"))
    students, edits = {}, {attack.name: edit for attack, edit in FILES}
    values["ROOT"] = root

    def hand_in(student, attack, edit=None):
        folder = root / "submitted" / student / ASSIGNMENT
        folder.mkdir(parents=True)
        nb = notebook(released, attack)
        for cell in nb["cells"]:
            cell["source"] = re.sub(
                r"\{\{([A-Z]+)\}\}", lambda m: str(values[m[1]]), "".join(cell["source"])
            )
        if not (edit and edit(nb, folder)):
            (folder / NOTEBOOK).write_text(json.dumps(nb), "utf-8")

    for number, attack in enumerate(ALL.values()):
        students[attack.name] = f"{number:03}a-{attack.name}"
        hand_in(students[attack.name], attack, edits.get(attack.name))
        hand_in(f"{number:03}b-honest", Attack("honest"))
    hand_in("zzz-neighbour", Attack("neighbour"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "CANARY": "sings"}
    command = [sys.executable, "-m", "autograde.cli", "grade", ASSIGNMENT, "--root", str(root)]
    with subprocess.Popen(
        command, env=env, stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as run:
        out, err = run.communicate()
    assert run.returncode in (0, 1), err[-2000:]
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        points = {
            submission.student.id: {
                grade.name.removeprefix("test_"): grade.auto_score
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in gradebook.assignment_submissions(ASSIGNMENT)
        }
    return Graded(root, students, points, seen, out + err, run.pid)


# What must be true ------------------------------------------------------------------------------


def unearned(points: dict[str, float | None], attack: Attack) -> dict[str, float | None]:
    """The exercises whose points are not those that the attack's notebook deserves."""
    wanted = {name: attack.deserves.get(name, 0.0) for name in points}
    return {name: got for name, got in points.items() if got != wanted[name]}


def test_there_are_enough_attacks_of_every_kind():
    assert len(ALL) >= 40
    assert len({name.partition("-")[0] for name in ALL}) == 10


@pytest.mark.parametrize("name", ALL)
def test_it_earns_what_it_deserves_and_the_next_one_too(graded, name):
    student, honest = graded.students[name], graded.students[name][:3] + "b-honest"
    assert graded.points[student], graded.said
    assert not unearned(graded.points[student], ALL[name])
    assert not unearned(graded.points[honest], Attack("honest"))


@pytest.mark.parametrize("name", ALL)
def test_it_finds_nothing_and_leaves_nothing(graded, name):
    student, honest = graded.students[name], graded.students[name][:3] + "b-honest"
    for shown in (graded.outputs(student), graded.outputs(honest)):
        assert "FOUND" not in shown
        assert "LEFT" not in shown


@pytest.mark.parametrize("name", ALL)
def test_its_page_does_not_act(graded, name):
    """Of all that a page can do, nothing is left of what the submission wrote."""
    page = acting(graded.page(graded.students[name]))
    assert not page


def acting(page: str) -> list[str]:
    """Parts of a page that would act, and that its template does not have."""
    tags = re.findall(r"<[a-zA-Z][^>]*>", re.sub(r"(?s)<style.*?</style>", "", page))
    bad = r"\son\w+\s*=|javascript:|<(iframe|object|embed|form|base|link|svg|math)|EVIL"
    found = [tag for tag in tags if re.search(bad, tag)]
    scripts = re.findall(r"(?is)<script.*?</script>", page)
    own = [script for script in scripts if "mathjax" in script.lower() and "EVIL" not in script]
    return [*found, *(script for script in scripts if script not in own or len(own) > 2)]


def test_no_page_runs_more_than_its_own_scripts(graded):
    for student in graded.students.values():
        page = graded.page(student)
        assert page.index("Content-Security-Policy") < page.index("<script")
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        assert "default-src 'none'" in policy
        assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]


def test_nobody_got_out(graded, outside):
    folder, values, _ = outside
    assert graded.connections == []
    assert [path.name for path in folder.iterdir()] == ["canary.txt"]
    assert (folder / "canary.txt").read_text() == "the CANARY sings"
    assert not list(graded.root.rglob("IN-THE-GRADER"))
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", values["PORT"] + 1), timeout=1)


def test_no_process_is_left(graded, outside):
    _, values, _ = outside
    end = time.monotonic() + 10  # one that was killed may take a moment to be gone
    while left := running(str(values["MARK"]), graded.session):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def running(mark, leader):
    """The processes that this leader (as setsid has it) started, and those with this mark in
    their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command, stat = (path / "cmdline").read_text(), (path / "stat").read_text()
            if mark in command or int(stat.rsplit(")", 1)[1].split()[3]) == leader:
                found.append((path.name, command))
    return found


def test_no_submission_is_changed_and_no_copy_of_a_neighbours_is_made(graded):
    digest = hashlib.sha256((graded.root / "gradebook.db").read_bytes()[:16]).digest()
    for path in (graded.root / "autograded").rglob("*"):
        assert path.name not in ("book.txt", "canary.txt", "neighbour")
        assert not path.is_file() or hashlib.sha256(path.read_bytes()[:16]).digest() != digest


# These tests can fail ---------------------------------------------------------------------------


def test_what_is_unearned_is_seen():
    honest = {"causal_mask": 4.0, "additive_mask": 4.0, "masked_softmax": 0.0}
    assert not unearned(honest, Attack("x"))
    assert unearned(honest, Attack("x", False)) == {"causal_mask": 4.0, "additive_mask": 4.0}
    assert unearned({**honest, "additive_mask": None}, Attack("x"))
    assert unearned(honest, Attack("x", loses=("additive_mask",)))


@pytest.mark.parametrize(
    "html",
    ["<script>EVIL()</script>", "<img src=x onerror='x()'>", "<a href='javascript:x'>", "<svg/x>",
     "<meta content='0;url=//EVIL'>"],
)  # fmt: skip
def test_a_page_that_acts_is_seen(html):
    assert acting(f"<p>{html}</p>")


def test_a_process_that_is_left_is_seen():
    left = subprocess.Popen(["sleep", "60.125"], start_new_session=True)
    try:
        assert [name for name, _ in running("60.125", -1)] == [str(left.pid)]
        assert [name for name, _ in running("no such mark", left.pid)] == [str(left.pid)]
    finally:
        left.kill()
        left.wait()
    assert not running("60.125", left.pid)
