"""The gates of `make test` can fail: each is given a case that it must reject."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()


def run(*command, folder):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("command", "source"),
    [
        (["format", "--check"], "x  =  1\n"),
        (["check"], "import os\n"),
        (["check"], "def f(x=[]):\n    return x\n"),
    ],
)
def test_ruff_rejects(tmp_path, command, source):
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    path = tmp_path / "module.py"
    path.write_text('"""Fine."""\n')
    assert run("ruff", *command, ".", folder=tmp_path).returncode == 0
    path.write_text(source)
    assert run("ruff", *command, ".", folder=tmp_path).returncode == 1


BOOK = re.search(r"^BOOK := (.*)$", MAKEFILE, re.MULTILINE).group(1).split()
PAGE = "---\njupytext:\n  text_representation: {extension: .md, format_name: myst}\n---\n# Page\n\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A reference to {ref}`nowhere`.\n", "undefined label"),
        ("```{code-cell} ipython3\n1 / 0\n```\n", "Executing notebook failed"),
        ("```{nodirective}\n```\n", "Unknown directive"),
    ],
)
def test_the_book_gate_rejects(tmp_path, text, says):
    """The Makefile's command, on a book of one page that is wrong."""
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    (tmp_path / "_config.yml").write_text("title: Book\nexecute: {execute_notebooks: force}\n")
    (tmp_path / "page.md").write_text(PAGE + text)
    done = run(*BOOK, folder=tmp_path)
    assert done.returncode != 0
    assert says in done.stdout + done.stderr


def test_the_book_gate_accepts_a_page_that_is_right(tmp_path):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    (tmp_path / "_config.yml").write_text("title: Book\nexecute: {execute_notebooks: force}\n")
    (tmp_path / "page.md").write_text(PAGE + "```{code-cell} ipython3\n1 + 1\n```\n")
    done = run(*BOOK, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_make_test_runs_every_gate():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "--dry-run", "test"], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    commands = done.stdout.splitlines()
    for gate in ("ruff format --check .", "ruff check .", shlex.join(BOOK)):
        assert gate in commands
    # What one pytest leaves out, the other runs.
    long = ["tests/test_bank.py", "tests/test_browser.py"]
    rest = " ".join(["pytest", *(f"--ignore={path}" for path in long)])
    assert {*(f"pytest {path}" for path in long), rest} <= set(commands)
    assert "make test" in (ROOT / ".ci/run").read_text()
    assert "make test" in (ROOT / "README.md").read_text()
