"""The instructor's guide: every command in it, as it stands there, in a class of three."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from time import sleep
from urllib.error import URLError
from urllib.request import urlopen

import pytest

pytest.importorskip("nbgrader")

from autograde.cli import main
from autograde.grading.course import Course
from autograde.grading.doctor import why_no_sandbox
from autograde.grading.sample_class import Student, _notebook, _wrong
from autograde.grading.standing import class_standing

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "book/instructors.md").read_text("utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", GUIDE, flags=re.M | re.S)
WORK = "03-causal-mask"
WORKSHEET = (
    "Identifier,Full name,Username,Status,Grade,Maximum Grade,Last modified (submission),"
    "Last modified (grade)\n"
    'Participant 7,Ada L,ada,Submitted,,34.00,"Monday, 1 February 2027, 10:00 AM",-\n'
    'Participant 8,Ben M,ben,Submitted,,34.00,"Sunday, 31 January 2027, 1:00 PM",-\n'
    "Participant 9,Cid N,cid,No submission,,34.00,-,-\n"
)


class Class:
    """A course's folder, a home with downloads, and a terminal that stands somewhere."""

    def __init__(self, folder):
        self.at = folder / "no-peeking"
        self.spring = folder / "spring"
        self.home = folder / "home"
        lay_out(self.at)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {**os.environ, "HOME": str(self.home), "PATH": path, "TZ": "UTC",
                    "PYTHONPATH": str(ROOT)}  # fmt: skip
        (self.home / ".jupyter").mkdir(parents=True)
        (self.home / ".jupyter/jupyter_server_config.py").write_text(
            "c.ServerApp.allow_root = True\nc.ServerApp.open_browser = False\n"
            "c.ServerApp.port = 18900\nc.IdentityProvider.token = 'x'\n"
        )
        self.said = []

    def run(self, block, monkeypatch, capsys):
        """Run the lines of a block; the course's own commands in this process, which is quicker."""
        lines = block.replace("\\\n", " ").rstrip("\n").split("\n")
        while lines:
            line = lines.pop(0)
            if "<<'END'" in line:
                end = lines.index("END") + 1
                line, lines = "\n".join([line, *lines[:end]]), lines[end:]
            if line.startswith("autograde "):
                monkeypatch.chdir(self.at)
                monkeypatch.setenv("HOME", str(self.home))
                words = [os.path.expanduser(word) for word in shlex.split(line)[1:]]
                self.said.append((line, main(words), capsys.readouterr().out))
            elif line == "jupyter lab":
                self.formgrader(line)
            else:
                self.shell(line)

    def shell(self, line):
        text = f"{line}\nstatus=$?\npwd > {self.home}/at\nexit $status\n"
        done = subprocess.run(
            ["bash", "-c", text], cwd=self.at, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        self.at = Path((self.home / "at").read_text().strip())

    def formgrader(self, line):
        """Start the server, open its page, stop it."""
        server = subprocess.Popen(
            shlex.split(line), cwd=self.at, env=self.env, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            address = next(
                found[1]
                for text in server.stderr
                if (found := re.search(r"(http://localhost:\d+)/lab", text))
            )
            assert "formgrade" in fetched(f"{address}/formgrader?token=x")
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            server.stderr.close()

    def rows(self, name):
        with (self.spring / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def fetched(address):
    """A page of a server that is just about to listen."""
    for _ in range(60):
        try:
            with urlopen(address, timeout=60) as page:
                return page.read().decode()
        except URLError:
            sleep(0.5)
    raise AssertionError(f"nothing answers at {address}")


def lay_out(folder):
    """What of the course's folder the guide uses."""
    (folder / "solutions" / WORK).mkdir(parents=True)
    text = (ROOT / "solutions" / WORK / "causal-mask.md").read_text("utf-8")
    (folder / "solutions" / WORK / "causal-mask.md").write_text(text, "utf-8")
    settings = (ROOT / "nbgrader_config.py").read_text("utf-8")
    (folder / "nbgrader_config.py").write_text(settings, "utf-8")


def downloads(home, released):
    """What Moodle gives: two of three have handed in, one of them a day late."""
    (home / "Downloads").mkdir()
    (home / "Downloads/class.csv").write_text(WORKSHEET, "utf-8")
    wrong = Student(_wrong(causal_mask="aligned_top_left"))
    with zipfile.ZipFile(home / "Downloads/submissions.zip", "w") as archive:
        for name, student in (("Ada L_7", Student()), ("Ben M_8", wrong)):
            path = f"{name}_assignsubmission_file_/causal-mask.ipynb"
            archive.writestr(path, _notebook(released, student))


@pytest.mark.skipif(bool(why_no_sandbox()), reason=f"NO SANDBOX HERE: {why_no_sandbox()}")
def test_every_command_works_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TZ", "UTC")
    course = Class(tmp_path)
    for block in BLOCKS:
        if "collect" in block and not (course.home / "Downloads").exists():
            released = course.spring / "exercises" / WORK / "causal-mask.ipynb"
            downloads(course.home, json.loads(released.read_text("utf-8")))
        if "dry-run" in block:
            assert not (course.spring / "submitted").exists()
        course.run(block, monkeypatch, capsys)
        if "--dry-run" in block:
            assert not (course.spring / "submitted").exists()
    _outcome(course)


def _outcome(course):
    status = {line: code for line, code, _ in course.said}
    for line, code in status.items():
        assert code == 0, (line, course.said)
    grades = {row["student"]: row for row in course.rows("grades.csv")}
    assert float(grades["ada"]["points"]) == 34
    assert grades["ben"]["misconceptions"] == "causal_mask: aligned_top_left"
    exported = {row["Username"]: row for row in course.rows(f"reports/{WORK}-grades-moodle.csv")}
    assert exported["ada"]["Grade"] == "34"
    assert "cid" not in exported
    assert "aligned at the top left" in (course.spring / f"reports/{WORK}.html").read_text("utf-8")
    assert (course.spring / f"feedback/ada/{WORK}/causal-mask.html").is_file()
    names = zipfile.ZipFile(course.spring / "causal-mask.zip").namelist()
    assert f"{WORK}/causal-mask.ipynb" in names
    late = {s.student: s.late for s in class_standing(Course(course.spring), WORK).students}
    assert late["ada"] == 0  # after the extension; before it, ten hours
    autumn = Course(course.spring.parent / "autumn")
    assert autumn.config.Judge.call_seconds == 5
    assert autumn.config.Judge.seeds == [41, 42, 43]
    assert (autumn.root / f"exercises/{WORK}/causal-mask.ipynb").is_file()
    assert (autumn.root / "gradebook.db").is_file()


def test_the_guide_names_every_option_and_command_rightly(capsys):
    """Commands that stand in its sentences, which the test above does not run."""
    for command in sorted(set(re.findall(r"`autograde ([a-z-]+)", GUIDE))):
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
    helps = []
    for command in ("collect", "grade", "report", "export"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        helps.append(capsys.readouterr().out)
    for option in set(re.findall(r"`(--[a-z-]+)", GUIDE)) - {"--help"}:
        assert any(option in text for text in helps), option


def test_the_guide_has_its_blocks():
    assert len(BLOCKS) >= 14
    assert sum("autograde" in block for block in BLOCKS) >= 10
