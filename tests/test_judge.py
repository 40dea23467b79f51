"""The judge against notebooks that misbehave: each gets what it deserves, and nothing more."""

from __future__ import annotations

import inspect
from time import monotonic

import numpy as np
import pytest

pytest.importorskip("nbgrader")

from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import Execute
from nbgrader.utils import determine_grade
from traitlets import TraitError
from traitlets.config import Config

from autograde.calls import Outcome, call
from autograde.checking import GRADE_SEEDS
from autograde.examination import examine
from autograde.exercise import find
from autograde.grading import judge
from autograde.grading.batch import Ahead, foreseen
from autograde.grading.judge import Judge

MASK = inspect.getsource(find("causal_mask").reference)
ADD = inspect.getsource(find("additive_mask").reference)
SETUP = "from __future__ import annotations\nimport numpy as np\nfrom autograde import check, grade"
NAMES = ("causal_mask", "additive_mask")
POINTS = 4  # of each test cell
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}


def test_cell(name):
    mark = {"grade": True, "solution": False, "locked": True, "schema_version": 3, "task": False}
    mark |= {"grade_id": f"test_{name}", "points": POINTS, "cell_type": "code"}
    return new_code_cell(f"check({name})", metadata={"nbgrader": mark})


test_cell.__test__ = False


def notebook(*cells):
    """A notebook of these sources; "=name" stands for the test cell of that exercise."""
    made = [test_cell(c[1:]) if c[0] == "=" else new_code_cell(c) for c in (SETUP, *cells)]
    return new_notebook(cells=made, metadata=METADATA)


@pytest.fixture
def judged(monkeypatch, tmp_path, sandboxed):
    """Judge a notebook: {exercise: points}, and the cells afterwards."""
    tests = {f"test_{n}": (f"check({n})\ngrade({n})", float(find(n).points)) for n in NAMES}
    monkeypatch.setattr(judge, "_tests", lambda where: tests)
    monkeypatch.setattr("autograde.grading.kernel.GRACE", 1.0)
    monkeypatch.setattr("autograde.grading.workspace.GRACE", 1.0)

    def run(*cells, preprocessor=Judge, **options):
        config = Config()
        limits = {"timeout": 2, "call_seconds": 1.0, "notebook_seconds": 60.0, **options}
        limits["sandboxed"] = sandboxed
        config.Judge.update(limits if preprocessor is Judge else {})
        nb, resources = notebook(*cells), {"metadata": {"path": str(tmp_path)}, "nbgrader": {}}
        nb, _ = preprocessor(config=config).preprocess(nb, resources)
        points = {
            cell.metadata.nbgrader.grade_id.removeprefix("test_"): determine_grade(cell)[0]
            for cell in nb.cells
            if "nbgrader" in cell.metadata
        }
        return points, nb.cells

    return run


def said(cell):
    """All that a cell's outputs say."""
    return " ".join(str(output) for output in cell.outputs)


def test_right_and_wrong_answers_get_their_points(judged):
    wrong = (
        "def additive_mask(allowed, dtype=float):\n return np.where(allowed, 0, -1e9).astype(dtype)"
    )
    points, cells = judged(MASK, "=causal_mask", wrong, "=additive_mask")
    assert points == {"causal_mask": 4, "additive_mask": 0}
    assert [output.output_type for output in cells[2].outputs] == ["display_data", "execute_result"]
    assert cells[2].outputs[-1].data["text/plain"] == "4.0"
    assert cells[4].outputs[-1].data["text/plain"] == "0.0"
    assert cells[4].metadata.no_peeking[0]["misconception"] == "large_but_finite"


PATCHED = """
import importlib
for name in ("", ".checking", ".examination", ".remote", ".calls", ".wire", ".values"):
    try:
        module = importlib.import_module("autograde" + name)
    except ImportError:  # in the sandbox there are but a few of them
        continue
    for word in ("grade", "check", "examine", "call", "answer", "plain", "encode_outcome"):
        if hasattr(module, word):
            setattr(module, word, lambda *a, **k: 4.0)
grade = check = lambda *a, **k: 4.0
np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
get_ipython().showtraceback = lambda *a, **k: None
get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)
def causal_mask(*a): return 4.0
"""


def test_patching_the_checks_in_the_kernel_gains_nothing(judged):
    points, _ = judged(PATCHED, "=causal_mask")
    assert points == {"causal_mask": 0}


def test_without_the_judge_the_patched_notebook_would_earn_full_marks(judged):
    """So the tests here would see it if the judge were not in its place."""
    points, _ = judged(PATCHED, "=causal_mask", preprocessor=Execute)
    assert points == {"causal_mask": 4}


def test_who_knows_one_classs_inputs_does_not_know_those_of_another(judged):
    exercise, seen = find("additive_mask"), set()

    def watch(args, kwargs, *how):
        seen.add(np.asarray(args[0]).tobytes())
        return call(exercise.reference, args, kwargs, *how)

    examine(exercise, watch, GRADE_SEEDS)
    know = f"known = additive_mask\nseen = {seen}\ndef additive_mask(allowed, *more):\n"
    know += "    return known(allowed, *more) if allowed.tobytes() in seen else None"
    points, _ = judged(ADD, know, "=additive_mask")
    assert points == {"additive_mask": 4}
    points, _ = judged(ADD, know, "=additive_mask", seeds=[41, 42, 43])
    assert points == {"additive_mask": 0}
    points, _ = judged(ADD, "=additive_mask", seeds=[41, 42, 43])
    assert points == {"additive_mask": 4}
    with pytest.raises(TraitError):
        judged(ADD, "=additive_mask", seeds=[])


LOOPS = {
    "endless": "while True: pass",
    "stubborn": "while True:\n  try:\n   while True: pass\n  except BaseException: pass",
    "deaf": "import signal as s; s.pthread_sigmask(s.SIG_BLOCK, range(1, 32))\nwhile True: pass",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_function_that_never_returns_costs_its_own_points_only(judged, loop):
    body = LOOPS[loop].replace("\n", "\n ")
    points, cells = judged(f"def causal_mask(*a):\n {body}", "=causal_mask", ADD, "=additive_mask")
    assert points == {"causal_mask": 0, "additive_mask": 4}
    assert "did not return within 1 s" in said(cells[2])


@pytest.mark.parametrize("loop", LOOPS)
def test_a_cell_that_never_ends_is_stopped_and_said(judged, loop):
    points, cells = judged(MASK, LOOPS[loop], "=causal_mask", ADD, "=additive_mask")
    assert points == {"causal_mask": 4, "additive_mask": 4}
    assert "did not end within 2 s" in said(cells[2])


DEATHS = {
    "exit": ("import os; os._exit(3)", "exit status 3"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    "kill": ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_ending_the_process_costs_the_functions_own_points_only(judged, death):
    code, how = DEATHS[death]
    kills = f"def causal_mask(*a):\n {code}"
    points, cells = judged(kills, "=causal_mask", "causal_mask(2)", ADD, "=additive_mask")
    assert points == {"causal_mask": 0, "additive_mask": 4}
    assert how in said(cells[2])
    assert how in said(cells[3])


HARMLESS = (
    "import sys; sys.exit(1)", "raise SystemExit", "input('?')", "1 / 0", "def broken(:",
    "%matplotlib widget", "!false", "import os; os.chdir('/')", "%reset -f",
    "np = sum = print = check = grade = globals = vars = str = isinstance = None",
    "import sys; sys.stdout = sys.stderr = open('/dev/null', 'w')",
)  # fmt: skip


@pytest.mark.parametrize("codes", [HARMLESS, ["exit()"], ["quit()"], ["import os; os._exit(0)"]])
def test_what_a_cell_does_to_its_own_kernel_harms_no_later_answer(judged, codes):
    points, _ = judged(*codes, SETUP, MASK, "=causal_mask", ADD, "=additive_mask")
    assert points == {"causal_mask": 4, "additive_mask": 4}


def test_rebinding_common_names_harms_no_judgement(judged):
    own = (
        "import numpy\ndef causal_mask(n, m=None):\n return numpy.tri(n, m or n, (m or n) - n) > 0"
    )
    points, _ = judged(
        own, ADD.replace("np.", "numpy."), "import os; os.chdir('/')",
        "list = sum = print = check = grade = str = isinstance = None; np = 3",
        "=additive_mask",
    )  # fmt: skip
    assert points["additive_mask"] == 4


def test_what_a_cell_prints_is_kept_within_limits(judged):
    flood = "for i in range(10**5): print(i)\nprint('x' * 10**7)\ndisplay('y' * 10**7)"
    points, cells = judged(flood, MASK, "=causal_mask", timeout=20)
    assert points == {"causal_mask": 4}
    assert len(said(cells[1])) < 30_000
    assert "more characters were left out" in said(cells[1])


def test_a_flood_from_the_process_itself_is_read_or_stopped(judged):
    """A message beyond the limit is dropped; the cell ends at its own limit at the latest."""
    flood = f"import os\ndef causal_mask(*a): print('x' * 10**8); os.write(1, b'y' * 10**7)\n{ADD}"
    points, _ = judged(flood, "=causal_mask", "=additive_mask")
    assert points == {"causal_mask": 0, "additive_mask": 4}


NONSENSE = {
    "no reply": "autograde.remote.answer = lambda *a: 'nonsense'",
    "no text": "autograde.remote.answer = lambda *a: print",
    "raises": "def no(*a): raise ValueError\nautograde.remote.answer = no",
    "code": "class C:\n def __repr__(self): return '__import__(\"os\")._exit(1)'\n"
    "autograde.remote.answer = lambda *a: C()",
    "huge": "autograde.remote.answer = lambda *a: 'x' * 10**8",
}


@pytest.mark.parametrize("reply", NONSENSE)
def test_a_reply_that_makes_no_sense_is_no_answer(judged, reply):
    points, cells = judged(MASK, f"import autograde.remote\n{NONSENSE[reply]}", "=causal_mask")
    assert points == {"causal_mask": 0}
    assert any(text in said(cells[3]) for text in ("made no sense", "did not return"))


def test_a_missing_function_is_named(judged):
    points, cells = judged(MASK, "=additive_mask", "=causal_mask")
    assert points == {"causal_mask": 4, "additive_mask": 0}
    assert "there is no such function" in said(cells[2])


ODD = {
    "check(causal_mask)": "graded nothing",
    "1 / 0": "ZeroDivisionError",
    "grade(causal_mask); 1 / 0": "could not be run",
    "grade(": "SyntaxError",
    "grade(no_exercise)": "no exercise is called",
    "grade(print)": "TypeError",
    "raise SystemExit": "SystemExit",
}


def test_a_test_cell_that_goes_wrong_gives_no_points_and_says_why(judged, monkeypatch):
    tests = {f"test_{source}": (source, 4.0) for source in ODD}
    monkeypatch.setattr(judge, "_tests", lambda where: tests)
    points, cells = judged(MASK, *(f"={source}" for source in ODD))
    assert points == dict.fromkeys(ODD, 0)
    for cell, says in zip(cells[2:], ODD.values(), strict=True):
        assert says in said(cell)


def test_never_more_points_than_the_cell_has(judged, monkeypatch):
    monkeypatch.setattr(
        judge, "_tests", lambda where: {"test_causal_mask": ("grade(causal_mask)", 3.0)}
    )
    points, _ = judged(MASK, "=causal_mask")
    assert points == {"causal_mask": 3}


def test_the_notebooks_own_limit_ends_it(judged):
    begun = monotonic()
    slow = ["import time; time.sleep(1.5)"] * 10
    points, cells = judged(MASK, "=causal_mask", *slow, "=additive_mask", notebook_seconds=4.0)
    assert monotonic() - begun < 12
    assert points == {"causal_mask": 4, "additive_mask": 0}
    assert "were used up" in said(cells[-1])


def test_many_slow_calls_are_cut_off(judged):
    slow = "import time\ndef causal_mask(*a): time.sleep(0.9)"
    begun = monotonic()
    points, _ = judged(slow, "=causal_mask", ADD, "=additive_mask")
    assert points == {"causal_mask": 0, "additive_mask": 4}
    assert monotonic() - begun < 15


def test_parameters_loss_functions_and_dtypes_reach_the_kernel(judged, monkeypatch):
    pytest.importorskip("torch")
    names = ("unscale", "mixed_precision_step")
    tests = {f"test_{n}": (f"check({n})\ngrade({n})", float(find(n).points)) for n in names}
    monkeypatch.setattr(judge, "_tests", lambda where: tests)
    monkeypatch.setitem(globals(), "POINTS", 10)
    cells = [c for n in names for c in (inspect.getsource(find(n).reference), f"={n}")]
    limits = {"timeout": 60, "call_seconds": 10.0, "notebook_seconds": 120.0}
    points, found = judged("import torch", *cells, **limits)
    assert points == {name: find(name).points for name in names}
    touches = cells[2].replace("torch.autograd.grad(loss.float() * scale, params)", "[]")
    touches = touches.replace("scaled_grads =", "(loss.float() * scale).backward(); scaled_grads =")
    touches = touches.replace(
        "unscale(scaled_grads, scale)", "unscale([p.grad for p in params], scale)"
    )
    points, found = judged("import torch", cells[0], touches, cells[3], **limits)
    assert 0 < points["mixed_precision_step"] < find("mixed_precision_step").points
    assert "adds to the parameters" in said(found[-1])


def test_files_of_the_student_do_not_shadow_the_graders_imports(judged, tmp_path):
    for name in ("random", "json", "autograde"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('mine')")
    points, _ = judged(MASK, "=causal_mask")
    assert points == {"causal_mask": 4}


class Sent:
    """Stands for a kernel: answers every request by its own text, up to `most` in a message."""

    def __init__(self, most=1000):
        self.most, self.messages = most, []

    def __call__(self, requests, seconds):
        self.messages.append(len(requests))
        return [Outcome("returned", request) for request in requests[: self.most]]


def test_foreseen_calls_travel_together():
    requests = foreseen(find("masked_softmax"), "masked_softmax", 1.0, (1, 2, 3))
    sent = Sent()
    answer = Ahead(sent, requests)
    assert [answer(request, 1.0).value for request in requests] == list(requests)
    assert sum(sent.messages) == len(requests) > 100
    assert len(sent.messages) < 10


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_each_request_gets_its_own_answer_whatever_was_foreseen(most):
    requests = tuple("abcdefghijklmnopqrstuvwxyz")
    asked = [*requests[:9], "another", *requests[10:], "one more"]
    answer = Ahead(Sent(most), requests)
    assert [answer(request, 1.0).value for request in asked] == asked


def test_what_a_broken_claim_leaves_out_is_passed_over():
    requests = tuple(map(str, range(100)))
    asked, sent = [*requests[:3], *requests[50:]], Sent()
    answer = Ahead(sent, requests)
    assert [answer(request, 1.0).value for request in asked] == asked
    assert len(sent.messages) < 6


def test_a_lost_message_is_asked_again_one_by_one():
    sent = Sent()
    answer = Ahead(lambda r, s: [] if len(r) > 1 else sent(r, s), tuple("abcdefgh"))
    assert [answer(request, 1.0).value for request in "abcdefgh"] == list("abcdefgh")
    assert set(sent.messages) == {1}
