"""Exercises in the page: solved, checked and handed in from a real browser, without a net."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

import nbformat
import numpy as np
import pytest

from autograde.bank import correct_variants, misconceptions
from autograde.checking import CHECK_SEEDS, examine, local, report
from autograde.exercise import chapters as exercises_of
from autograde.exercise import find
from autograde.grading.assignment import grade_assignment
from autograde.grading.sample_class import ASSIGNMENT, NOTEBOOK, make_sample_class
from web import vendor
from web.serve import SITE, serving
from web.sheet import chapters
from web.site import lay

ROOT = Path(__file__).resolve().parent.parent
PYODIDE = ROOT / "_build/vendor/pyodide"
NUMPY = [name for name, chapter in chapters().items() if chapter.in_browser]
RIGHT = """def causal_mask(n_query, n_key=None):
n_key = n_query if n_key is None else n_key
return np.tri(n_query, n_key, n_key - n_query) > 0"""
TOP_LEFT = RIGHT.replace(", n_key - n_query", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A site with what the exercises need, as it is in this folder now."""
    if not (PYODIDE / "pyodide.js").is_file():
        pytest.skip("NOT TESTED, Pyodide is not here: python -m web.vendor")
    folder = lay(ROOT, tmp_path_factory.mktemp("site"))
    (folder / "pyodide").symlink_to(PYODIDE)
    (folder / "index.html").write_text("<!doctype html><title>empty</title>")
    return folder


@contextmanager
def opened(running, folder: Path):
    """A new visitor's window, and what it asked for; it fails on a request to another host."""
    with serving(folder) as address:
        page = running.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.set_default_timeout(180_000)
        asked, elsewhere = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.route(lambda url: not url.startswith((address, "data:", "blob:")),
                   lambda route: (elsewhere.append(route.request.url), route.abort()))  # fmt: skip
        yield page, address, asked
        assert not elsewhere
        page.context.close()


class Exercise:
    """One exercise of an open page, as a reader uses it."""

    def __init__(self, page, name: str):
        self.page, self.name = page, name
        place = page.locator(f".try-it[data-exercise={name}]")
        self.button, self.editor = place.get_by_role("button"), place.locator(".cm-content")
        self.below = place.locator("xpath=following-sibling::*[1]")
        self.output = self.below.get_by_role("status")

    def write(self, code: str) -> None:
        """Type it over what is there; the editor indents what follows on a colon."""
        self.editor.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(code)

    def press(self, button: str, until: str):
        """Press a button, and wait until the output says this."""
        self.below.get_by_role("button", name=button).click()
        return self.output.filter(has_text=re.compile(until, re.S)).inner_text()


def chapter(page, address: str, name: str = "03-causal-mask") -> None:
    page.goto(f"{address}/book/{name}.html")


@pytest.fixture(scope="module")
def book(folder, tmp_path_factory):
    """The built book, with this folder's scripts."""
    if not (SITE / "book/progress.html").is_file():
        pytest.skip("NOT TESTED, the book is not built: make book")
    site = tmp_path_factory.mktemp("book")
    for path in [*SITE.iterdir(), *folder.iterdir(), ROOT / "exercises"]:
        place = site / path.name
        place.unlink(missing_ok=True)
        place.symlink_to(path.resolve())
    return site


def test_a_reader_solves_an_exercise_and_hands_the_notebook_in(running, book, tmp_path):
    with opened(running, book) as (page, address, asked):
        chapter(page, address)
        assert not [url for url in asked if "/pyodide/" in url or "/web/" in url], "not light"
        exercise = Exercise(page, "causal_mask")
        exercise.button.click()
        assert "not written yet" in exercise.press("Check", "0 of 4 points")
        exercise.write(TOP_LEFT)
        page.keyboard.press("Shift+Enter")  # checks
        told = exercise.output.filter(has_text="2 of 4 points").inner_text()
        assert "1 of 3 claims hold" in told
        assert "aligned at the top left" in told
        assert "Who may see whom" in exercise.output.get_by_role("link").inner_text()
        assert "Hint 1 of 3" in exercise.press("Hint", "Hint")
        assert "Hint 2 of 3" in exercise.press("Hint", "Hint 2")
        exercise.write(RIGHT)
        assert "all 3 claims hold" in exercise.press("Check", "4 of 4 points: passed")
        assert "[1, 1, 1, 0]" in exercise.press("Run", r"array\(")

        page.reload()
        exercise.button.filter(has_text="Passed").click()
        assert "np.tri" in exercise.editor.inner_text()
        for task in chapters()["03-causal-mask"].tasks[1:]:
            text = json.dumps({"text": answer_of(task.name)})
            page.evaluate(f"localStorage.setItem('no-peeking:{task.name}', {json.dumps(text)})")
        with page.expect_download() as waiting:
            exercise.below.get_by_role("button", name="Export").click()
        waiting.value.save_as(tmp_path / NOTEBOOK)
        assert waiting.value.suggested_filename == NOTEBOOK

        page.goto(f"{address}/book/progress.html")
        row = page.locator("tr[data-exercise=causal_mask]")
        assert "passed" in row.filter(has_text="passed").inner_text()
        everything_is_saved_and_loaded(page, row, tmp_path)

    nbformat.validate(nbformat.read(tmp_path / NOTEBOOK, 4))
    make_sample_class(ROOT, tmp_path / "class")
    shutil.rmtree(tmp_path / "class/submitted")
    handed_in = tmp_path / "class/submitted/reader" / ASSIGNMENT
    handed_in.mkdir(parents=True)
    shutil.copy(tmp_path / NOTEBOOK, handed_in)
    (result,) = grade_assignment(ASSIGNMENT, tmp_path / "class", sandboxed=False, jobs=1)
    assert result.exercises == {t.name: t.points for t in chapters()[ASSIGNMENT].tasks}


def everything_is_saved_and_loaded(page, row, folder: Path) -> None:
    """On the page of the progress, where `row` says that its exercise has passed."""
    told = page.locator("#try-it-told")

    def press(name: str) -> None:
        page.get_by_role("button", name=name).click()

    def choose(file: Path, until: str) -> str:
        with page.expect_file_chooser() as waiting:
            press("Load a file")
        waiting.value.set_files(file)
        return told.filter(has_text=until).inner_text()

    with page.expect_download() as waiting:
        press("Save everything")
    saved = folder / waiting.value.suggested_filename
    waiting.value.save_as(saved)
    page.once("dialog", lambda dialog: dialog.accept())
    press("Forget everything")
    row.filter(has_text="–").wait_for()

    (folder / "half.json").write_text(saved.read_text()[:100])
    (folder / "other.json").write_text(
        '{"course": "No Peeking", "exercises": {"softmax": {"text": 1}}}'
    )
    assert "only a part of it" in choose(folder / "half.json", "Nothing was changed")
    assert "of softmax cannot be read: text" in choose(folder / "other.json", "softmax")
    assert "it is a notebook" in choose(folder / NOTEBOOK, "notebook")
    assert page.evaluate("localStorage.getItem('no-peeking:softmax')") is None
    count = len(chapters()[ASSIGNMENT].tasks)
    assert f"{count} exercises" in choose(saved, "Taken from")
    row.filter(has_text="passed").wait_for()
    choose(saved, "Taken from")  # the same again, so nothing to ask

    page.evaluate("""localStorage.setItem('no-peeking:causal_mask', '{"text": "mine"}')""")
    assert "for causal_mask." in choose(saved, "other work")
    press("Change nothing")
    told.filter(has_text="Nothing was changed").wait_for()
    choose(saved, "other work")
    press("Keep what is here")
    row.filter(has_text="begun").wait_for()
    choose(saved, "other work")
    press("Take the file")
    row.filter(has_text="passed").wait_for()


def answer_of(name: str) -> str:
    """The course's own function, as its solution notebook has it."""
    cells = nbformat.read(ROOT / "solutions" / ASSIGNMENT / NOTEBOOK, 4).cells
    return next(cell.source for cell in cells if cell.id == name)


def test_what_runs_without_end_is_stopped_and_nothing_is_lost(running, book):
    with opened(running, book) as (page, address, _):
        chapter(page, address)
        exercise = Exercise(page, "causal_mask")
        exercise.button.click()
        exercise.write("while True:\npass")
        exercise.below.get_by_role("button", name="Run").click()
        exercise.output.filter(has_text="Running").wait_for()
        assert "What you wrote is kept" in exercise.press("Stop", "Stopped")
        assert "while True" in exercise.editor.inner_text()

        exercise.write(QUICK + "def causal_mask(n_query, n_key=None):\nwhile True:\nn_query += 1")
        told = exercise.press("Check", "0 of 4 points")
        assert "did not return within 0.5 s: an endless loop?" in told
        assert "not tried" in told

        exercise.write("import os\nos.abort()")
        assert "Python ended while it ran causal_mask" in exercise.press("Run", "Python ended")
        exercise.write("print('alive', 6 * 7)")
        assert "alive 42" in exercise.press("Run", "alive")


QUICK = "from autograde.exercise import find\nfind('causal_mask').seconds = 0.5\n"


def test_the_editor_needs_no_mouse(running, book):
    with opened(running, book) as (page, address, _):
        chapter(page, address)
        exercise = Exercise(page, "causal_mask")
        exercise.button.focus()
        page.keyboard.press("Enter")
        exercise.editor.and_(page.locator(":focus")).wait_for()
        page.keyboard.press("Control+a")
        page.keyboard.type("if 1:\npass")
        assert exercise.editor.inner_text() == "if 1:\n    pass"
        page.keyboard.press("Home")
        page.keyboard.press("Tab")
        assert exercise.editor.inner_text() == "if 1:\n        pass"
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert not exercise.editor.and_(page.locator(":focus")).count()
        assert exercise.output.get_attribute("aria-label")


def test_chapters_say_where_their_exercises_can_be_solved(book):
    for name, chapter in chapters().items():
        page = (book / f"book/{name}.html").read_text(encoding="utf-8")
        opens = re.findall(r'data-exercise="(\w+)"', page)
        assert opens == [task.name for task in chapter.tasks] * chapter.in_browser
        assert ("does not run inside a web page" in page) is not chapter.in_browser
        for task in chapter.tasks:
            assert f'id="{task.id}"' in page
            assert re.search(rf'class="to-exercise">To try:.*?href="#{task.id}"', page, re.S)
            assert re.search(rf'id="{task.id}".*?<em>Section: <a ', page, re.S)


# The same verdicts ----------------------------------------------------------------------

IN_THE_BROWSER = """
import __main__, inspect, json
from autograde.bank import correct_variants, misconceptions
from autograde import checking
from autograde.exercise import chapters

__main__.session.clock.patience = 30  # whatever else this machine does
for exercise in chapters()[CHAPTER]:
    for answer in (misconceptions(exercise) + correct_variants(exercise))[PART::PARTS]:
        if "import torch" not in inspect.getsource(answer.function):
            examined = checking.examine(exercise, checking.local(answer.function), (0,))
            print(json.dumps([exercise.name, answer.id, checking.report(examined).data()]))
"""
ASK = """async ([index, code]) => {
    const { ask } = await import("/web/python.js");
    let text = "";
    const told = (kind, more) => { text += kind === "text" ? more : `${kind}: ${more}\\n`; };
    window.answers ??= [];
    const answer = ask("run", [[], [["bank", code]]], told);
    window.answers[index] = answer.then((end) => ({ ...end, text }));
}"""
PARTS = 3


def test_the_browser_gives_the_verdicts_of_the_desktop(running, folder):
    """All wrong and right answers of the chapters without PyTorch; those that use it are left out.

    The same must be: the points, which claims hold, the counterexample with its numbers (up to
    the last digit), the misconception and its text. Warnings of NumPy are not there in
    WebAssembly, but for the exercise that forbids them; integers there are of 32 bits, and arrays
    take a little less memory.
    """
    codes = [(name, part) for name in NUMPY for part in range(PARTS)]
    codes = [IN_THE_BROWSER.replace("CHAPTER", repr(n)).replace("PARTS", str(PARTS))
             .replace("PART", str(p)) for n, p in codes]  # fmt: skip
    with opened(running, folder) as (page, address, _):
        page.goto(f"{address}/index.html")
        for index, code in enumerate(codes):  # one after the other, while the desktop's are found
            page.evaluate(ASK, [index, code])
        wanted = {(e.name, a.id): verdict(e, a) for e, a in answers()}
        page.set_default_timeout(900_000)
        ended = page.evaluate("Promise.all(window.answers)")
    assert [each["ok"] for each in ended] == [True] * len(codes), ended
    lines = [json.loads(line) for each in ended for line in each["text"].splitlines()]
    got = {(exercise, answer): data for exercise, answer, data in lines}
    assert got.keys() == wanted.keys()
    different = {key: (got[key], wanted[key]) for key in got if not alike(got[key], wanted[key])}
    assert not different


def answers():
    for name in NUMPY:
        for exercise in exercises_of()[name]:
            for answer in misconceptions(exercise) + correct_variants(exercise):
                names = answer.function.__code__.co_names
                if "torch" not in names and "import torch" not in source(answer.function):
                    yield exercise, answer


def source(function) -> str:
    from inspect import getsource

    return getsource(function)


def verdict(exercise, answer) -> dict:
    return report(examine(exercise, local(answer.function), CHECK_SEEDS)).data()


NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def alike(a: dict, b: dict) -> bool:
    """The same verdict, and the same words about it?"""
    same = all(a[key] == b[key] for key in ("passed", "points", "max_points", "misconception"))
    held = [[claim["passed"] for claim in each["claims"]] for each in (a, b)]
    texts = [told(each["message"]) for each in (a, b)]
    words = [NUMBER.sub("#", text) for text in texts]
    numbers = [np.array(NUMBER.findall(text), float) for text in texts]
    return (
        same
        and held[0] == held[1]
        and words[0] == words[1]
        and np.allclose(*numbers, rtol=1e-3, atol=2e-4)
    )


def told(message: str) -> str:
    """A report without what may differ."""
    message = re.sub(r"(?s)\n  Note: A call warned.*?(?=\n  [A-Z][a-z ]+: |\Z)", "", message)
    message = re.sub(r"held [\d.]+ MB", "held # MB", message)
    return message.replace("int32", "int64")


def test_another_verdict_would_be_seen():
    exercise = find("causal_mask")
    first, second, *_ = misconceptions(exercise)
    one, other = verdict(exercise, first), verdict(exercise, second)
    assert alike(one, one)
    assert not alike(one, other)
    assert not alike(one, {**one, "message": one["message"].replace("1", "2", 1)})


# The files that are not ours ------------------------------------------------------------


@contextmanager
def release(folder: Path):
    """A server of this folder, in the place of the official one; and what it was asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *args):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        server.server_close()


def test_files_that_are_not_ours_are_laid_whole_and_right_or_not_at_all(tmp_path, monkeypatch):
    official, local, into = tmp_path / "official", tmp_path / "local", tmp_path / "site/vendor"
    for name in ("a.js", "fonts/b.woff"):
        (official / name).parent.mkdir(parents=True, exist_ok=True)
        (official / name).write_text(name)
    (local / "thing").mkdir(parents=True)
    shutil.copy(official / "a.js", local / "thing")
    hashes = {name: sha256(name.encode()).hexdigest() for name in ("a.js", "fonts/b.woff")}
    with release(official) as (url, asked):
        package = vendor.Package("thing", "1.0", "MIT", url, hashes)
        monkeypatch.setattr(vendor, "packages", lambda: [package])
        run = partial(vendor.main, ["--into", str(into), "--from", str(local)])

        (official / "fonts/b.woff").write_text("forged")
        assert run() == 2
        assert not (into / "thing").exists()
        (official / "fonts/b.woff").unlink()
        assert run() == 1
        assert not (into / "thing").exists()
        (official / "fonts/b.woff").write_text("fonts/b.woff")
        assert run() == 0
        assert {p.name for p in (into / "thing").rglob("*") if p.is_file()} == {"a.js", "b.woff"}
        assert asked == ["/fonts/b.woff"] * 3, "a.js lies in the local folder"
        assert run() == 0
        assert len(asked) == 3, "what is there is not asked for again"
        (into / "thing/a.js").write_text("changed")
        assert run() == 0
        assert (into / "thing/a.js").read_text() == "a.js"


def test_what_is_missing_is_said_in_one_line(tmp_path, monkeypatch, capsys):
    package = vendor.Package("thing", "1.0", "MIT", "http://127.0.0.1:9/", {"a.js": "0" * 64})
    monkeypatch.setattr(vendor, "packages", lambda: [package])
    assert vendor.main(["--into", str(tmp_path / "vendor")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("thing 1.0 cannot be had: http://127.0.0.1:9/a.js: ")
    assert "set VENDOR to a folder" in line
