"""Grading by hand in nbgrader's own formgrader, in a real browser: the capstone's written answers.

With the gradebook on a PostgreSQL server where there is one, for the formgrader must know it, too.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")
pytest.importorskip("playwright", reason="NOT TESTED: playwright is not installed")


from autograde.cli import main
from bench.postgres import Server, programs

ROOT = Path(__file__).resolve().parents[1]
WORK = "13-capstone"
WRITTEN = ("cache_measured", "loss_explained", "many_processes")


@pytest.fixture
def database():
    """The URL of a gradebook on a server; without one, the default's."""
    if programs() is None or find_spec("psycopg") is None:
        yield "sqlite:///gradebook.db"
    else:
        with Server() as server:
            yield server.url("formgrader")


@pytest.fixture
def course(tmp_path, sandboxed, database):
    """A course with one submission, whose functions are not written and whose answers are."""
    (tmp_path / "solutions" / WORK).mkdir(parents=True)
    text = (ROOT / "solutions" / WORK / "capstone.md").read_text("utf-8")
    (tmp_path / "solutions" / WORK / "capstone.md").write_text(text, "utf-8")
    settings = (ROOT / "nbgrader_config.py").read_text("utf-8")
    settings += f"\nc.Judge.sandboxed = {sandboxed}\nc.CourseDirectory.db_url = {database!r}\n"
    (tmp_path / "nbgrader_config.py").write_text(settings, "utf-8")
    assert main(["build", "--root", str(tmp_path)]) == 0
    nb = json.loads((tmp_path / f"exercises/{WORK}/capstone.ipynb").read_text("utf-8"))
    for cell in nb["cells"]:
        if cell["id"] in WRITTEN:
            cell["source"] = "The old keys and values are **kept**, so a step is one row."
    handed_in = tmp_path / "submitted/ada" / WORK / "capstone.ipynb"
    handed_in.parent.mkdir(parents=True)
    handed_in.write_text(json.dumps(nb), "utf-8")
    return tmp_path


@pytest.fixture
def server(course):
    """The address of a Jupyter server in the course's folder."""
    home = course / "home"
    home.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "jupyter", "server", "--no-browser", "--allow-root",
               "--port=0", "--IdentityProvider.token=x"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=course, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"(http://(?:localhost|127\.0\.0\.1):\d+)/", line):
                break
        else:
            raise AssertionError("".join(said))
        yield found[1]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


@pytest.fixture
def page(running):
    page = running.new_page()
    page.set_default_timeout(120_000)  # a busy machine
    return page


def grade(course):
    """Run the command; (its status, the row of grades.csv, the feedback page)"""
    status = main(["grade", WORK, "--root", str(course)])
    with (course / "grades.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    return status, row, (course / f"feedback/ada/{WORK}/capstone.html").read_text("utf-8")


def test_a_person_grades_the_written_answers(page, course, server):
    _, before, feedback = grade(course)
    assert before["points"] == ""
    assert "waits for a person" in before["note"]
    assert "See me" not in feedback

    page.goto(f"{server}/formgrader?token=x")
    page.get_by_role("link", name="Manual Grading").click()
    page.get_by_role("link", name=WORK).click()
    page.get_by_role("link", name="capstone").click()
    page.get_by_role("link", name="Submission #1").click()
    page.locator("input#test_shard[placeholder]").wait_for()  # the page's script has begun
    page.locator("#many_processes-comment[placeholder]").wait_for()
    for name in WRITTEN:
        score = page.locator(f"input.score#{name}")
        score.fill("3")
        with page.expect_response(lambda reply: "/api/grade/" in reply.url) as saved:
            score.blur()
        assert saved.value.ok
    comment = page.locator("#many_processes-comment")
    comment.fill("See me about the last one")
    with page.expect_response(lambda reply: "/api/comment/" in reply.url) as saved:
        comment.blur()
    assert saved.value.ok
    if shots := os.environ.get("SHOTS"):
        page.screenshot(path=f"{shots}/formgrader.png", full_page=True)

    page.goto(f"{server}/formgrader/manage_students/ada")
    page.get_by_text("9 / 60").wait_for()

    status, after, feedback = grade(course)
    assert status == 0
    assert float(after["points"]) == 9
    assert [float(after[name]) for name in WRITTEN] == [3, 3, 3]
    assert after["note"] == ""
    assert "See me about the last one" in feedback
