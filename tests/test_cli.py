"""`autograde check FILE`: right and wrong files, and files that misbehave."""

import json
import subprocess
import sys
import time

import pytest

from autograde import runner
from autograde.cli import main
from autograde.exercise import chapters

RIGHT = """
import numpy as np

def causal_mask(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, n_key - n_query, dtype=bool)
"""
WRONG = """
def causal_mask(n_query, n_key=None):
    return [[True] * (n_query if n_key is None else n_key)] * n_query
"""


@pytest.fixture
def check(tmp_path, capsys):
    """Write a file, check it: (exit status, the JSON that was printed)."""

    def run(text, *options, name="answer.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        status = main(["check", str(path), "--json", *options])
        return status, json.loads(capsys.readouterr().out)

    return run


def notebook(*sources, cell_type="code", **marks):
    cells = [
        {"cell_type": cell_type, "source": source, "metadata": {"nbgrader": marks} if marks else {}}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_right_file(check):
    status, data = check(RIGHT)
    assert status == 0
    assert data["passed"]
    found = data["functions"]["causal_mask"]
    assert found["points"] == found["max_points"] == 4
    assert found["misconception"] is None
    assert all(claim["passed"] and not claim["message"] for claim in found["claims"])


def test_a_wrong_file(check):
    status, data = check(WRONG)
    assert status == 1
    found = data["functions"]["causal_mask"]
    assert not found["passed"]
    assert found["points"] == 0
    assert found["misconception"] == "no_mask_at_all"
    assert "Every query sees every key" in found["message"]
    assert set(found) == {"passed", "points", "max_points", "claims", "misconception", "message"}
    assert set(found["claims"][0]) >= {"name", "passed", "message"}


def test_a_notebook_with_magics_and_failing_cells(check):
    cells = (
        "from __future__ import annotations\n%matplotlib inline\n!ls\nimport numpy as np\nnp.tri?",
        "%%bash\nexit 3",
        "1 / 0",
        RIGHT.replace("n_query, n_key=None", "n_query: NotDefined, n_key: int | None = None"),
    )
    status, data = check(notebook(*cells), name="answer.ipynb")
    assert status == 0
    assert data["problems"] == ["cell 3: ZeroDivisionError: division by zero"]


def test_a_notebook_is_asked_for_all_that_it_asks(check):
    text = notebook("x = 1", grade_id="causal_mask", solution=True, grade=False)
    status, data = check(text, name="answer.ipynb")
    assert status == 1
    assert data["functions"]["causal_mask"]["message"].startswith(
        "causal_mask: there is no such function"
    )


def test_the_graders_own_cells_are_not_run(check):
    test_cell = json.loads(notebook("raise SystemExit", grade=True, solution=False))["cells"]
    text = json.loads(notebook(RIGHT))
    text["cells"] += test_cell
    assert check(json.dumps(text), name="answer.ipynb") == check(
        notebook(RIGHT), name="answer.ipynb"
    )


def test_one_function_ends_the_process_and_the_others_are_examined(check):
    text = RIGHT + "\nimport os\ndef additive_mask(allowed, dtype=float):\n    os._exit(3)\n"
    text += "\ndef padding_mask(lengths, n_key):\n    os.kill(os.getpid(), 9)\n"
    text += "\ndef dog_by_hand():\n    return [0.274, 0.274, 0.452], [0.726, 0.726, 0.274, 0.274]\n"
    status, data = check(text)
    assert status == 1
    found = data["functions"]
    assert found["causal_mask"]["passed"]
    assert found["dog_by_hand"]["passed"]
    assert "ended the Python process (exit status 3)" in found["additive_mask"]["message"]
    assert "ended the Python process (signal SIGKILL)" in found["padding_mask"]["message"]


def test_a_function_that_cannot_be_interrupted_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "GRACE", 0.5)
    path = tmp_path / "answer.py"
    path.write_text(
        "import signal\n"
        "def causal_mask(n_query, n_key=None):\n"
        "    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
        "    while True: pass\n"
        "def additive_mask(allowed, dtype=float): return 1\n"
    )
    with runner.StudentFile(path) as student:
        outcome = student.function("causal_mask")((2,), {}, 0.2)
        assert (outcome.how, outcome.text) == ("timeout", "0.2")
        assert student.process is None
        assert student.function("additive_mask")((2,), {}, 5).value == 1
        assert student.function("masked_softmax")((2,), {}, 5).how == "missing"


def test_patching_numpy_or_printing_or_asking_changes_nothing(check):
    text = """
import builtins, sys
import numpy as np
np.allclose = np.isclose = np.array_equal = lambda *a, **k: True
builtins.sum = builtins.len = None
print("passed " * 10000)
sys.stdout.close()
"""
    status, data = check(text + WRONG)
    assert status == 1
    assert data["functions"]["causal_mask"]["points"] == 0
    status, data = check("input('name? ')\n" + RIGHT)
    assert status == 2
    assert "EOFError" in data["error"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.py", "def causal_mask(:", "SyntaxError"),
        ("a.py", "x = 1", "defines no function of the course"),
        ("a.py", "import os; os._exit(0)", "ended Python while it ran (exit status 0)"),
        ("a.py", "raise SystemExit(0)", "SystemExit"),
        ("a.ipynb", "not json", "no notebook"),
        ("a.ipynb", "[]", "no notebook"),
        ("a.ipynb", "{}", "no notebook"),
        ("a.txt", "x", "a notebook (.ipynb) or a .py file is wanted"),
    ],
)
def test_files_that_cannot_be_run(check, name, text, says):
    status, data = check(text, name=name)
    assert status == 2
    assert says in data["error"]
    assert not data["passed"]


def test_a_file_that_never_ends(check, monkeypatch):
    monkeypatch.setattr(runner, "LOADING", 1.0)
    status, data = check("while True: pass")
    assert status == 2
    assert "did not finish running within 1 s" in data["error"]


def test_names_that_do_not_exist(check, capsys):
    assert check(RIGHT, "--only", "casual_mask")[0] == 2
    assert check(RIGHT, "--chapter", "3")[0] == 2
    assert main(["check", "nowhere.py"]) == 2
    assert "there is no file nowhere.py" in capsys.readouterr().err


def test_a_whole_chapter(check):
    status, data = check(RIGHT, "--chapter", "03-causal-mask")
    assert status == 1
    assert list(data["functions"]) == [e.name for e in chapters()["03-causal-mask"]]


def test_the_command_itself(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "autograde.cli", "check", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "0 of 1 functions are right; 0 of 4 points" in done.stdout


def test_what_a_notebook_gives_is_not_asked(check):
    cells = json.loads(notebook(RIGHT, locked=True, grade_id="given_causal_mask"))
    answer = json.loads(notebook("", solution=True, grade_id="masked_softmax"))
    cells["cells"] += answer["cells"]
    status, data = check(json.dumps(cells), name="answers.ipynb")
    assert status == 1
    assert list(data["functions"]) == ["masked_softmax"]


def test_what_notebooks_and_modules_may_do(check):
    cells = (
        "%%time\nimport numpy as np",
        "print('mask %d'\n      % 3)",
        "files = !ls\nhere = %pwd\n!pip install a \\\n    b",
        "import asyncio\nawait asyncio.sleep(0)\n" + RIGHT,
        "%%html\n<b>",
        "get_ipython().run_line_magic('matplotlib', 'inline')\ndisplay(1)",
    )
    status, data = check(notebook(*cells), name="answer.ipynb")
    assert (status, data["problems"]) == (0, [])
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\nimport pickle\n"
    text += "@dataclass\nclass Size:\n    n: int\n"
    text += "assert pickle.loads(pickle.dumps(Size(1))) == Size(1)\nassert __file__\n"
    assert check(text + RIGHT)[0] == 0
    status, data = check(RIGHT + "1 / 0\n")
    assert (status, data["passed"]) == (1, False)  # a file that fails is not well
    assert data["functions"]["causal_mask"]["passed"]


@pytest.mark.parametrize("metadata", ["null", "[]", '{"nbgrader": null}', '{"nbgrader": []}'])
def test_odd_metadata(check, metadata):
    text = notebook(RIGHT).replace('"metadata": {}', f'"metadata": {metadata}', 1)
    assert check(text, name="answer.ipynb")[0] == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("return np.ones((20000, 20000), bool)", "400,000,000 numbers, too many to look at"),
        ("raise Evil", "raised Evil"),
        ("builtins.isinstance = None; return 1", "is numpy or a function of Python's replaced?"),
        ("raise ValueError('a\\n\\x1b[31mb')", "raised ValueError: a [31mb"),
        ("shout(); return 1", "its reply made no sense"),
        ("os.close(3); os.close(4); return 1", ""),
    ],
)
def test_the_reason_is_the_true_one(check, body, says):
    text = f"""
import builtins, os
import numpy as np

class Evil(Exception):
    def __str__(self): raise RuntimeError

def shout():
    for fd in range(3, 9):
        try: os.write(fd, b"\\x80garbage\\n")
        except OSError: pass

def causal_mask(n_query, n_key=None):
    {body}

def dog_by_hand():
    return [0.274, 0.274, 0.452], [0.726, 0.726, 0.274, 0.274]
"""
    status, data = check(text)
    assert status == 1
    assert says in data["functions"]["causal_mask"]["message"]
    assert data["functions"]["dog_by_hand"]["passed"] or "builtins" in body


def test_a_child_left_behind_keeps_nobody_waiting(check):
    began = time.monotonic()
    text = (
        "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(20)\n    os._exit(0)\n"
    )
    assert check(text + RIGHT)[0] == 0
    assert time.monotonic() - began < 15
