"""The sandbox, the provisioner, and what is said where there is none. See also test_attacks.py."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from time import monotonic

import pytest

pytest.importorskip("nbgrader")

from traitlets.config import Config

from autograde import cli
from autograde.grading import assignment, doctor, provisioner, sandbox
from autograde.grading.inside import seccomp
from autograde.grading.judge import Judge
from autograde.grading.kernel import Kernel, KernelGone
from autograde.grading.outputs import Outputs
from autograde.grading.page import clean, clean_data, policy
from autograde.grading.sandbox import SandboxUnavailable

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def start(sandbox, tmp_path):
    """Start a kernel in a sandbox; they are ended afterwards."""
    started = []

    def kernel(**settings):
        config = Config({"SandboxProvisioner": {"disk": 16, "memory": 500, **settings}})
        started.append(Kernel("python3", str(tmp_path), config, sandbox={}))
        return started[-1]

    provisioner.close_all()
    yield kernel
    for each in started:
        each.close()
    provisioner.close_all()


def said(kernel, source):
    outputs = Outputs()
    assert kernel.run(source, 20, outputs) == "ok", outputs.outputs()
    return "".join(output.get("text", "") for output in outputs.outputs())


def test_the_next_kernel_comes_from_the_same_process_and_sees_nothing_of_the_last(start):
    first = start()
    said(first, "open('mine.txt', 'w').write('x'); open('/dev/shm/mine', 'w').write('x')")
    first.close()
    ((_, box),) = provisioner._waiting
    begun = monotonic()
    second = start()
    assert monotonic() - begun < 20
    assert second.manager.provisioner.box is box
    shown = said(second, "import os; print(os.listdir('.'), os.listdir('/dev/shm'))")
    assert "mine" not in shown


def test_kernels_are_forked_from_a_process_with_one_thread(start):
    pytest.importorskip("torch")
    box = start(modules=["torch", "torch._dynamo"]).manager.provisioner.box
    servers = [
        path.parent
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"inside.forkserver" in path.read_bytes() and descends(path.parent, box.process.pid)
    ]
    (server,) = [path for path in servers if b"python" in (path / "comm").read_bytes()][:1]
    assert len(list((server / "task").iterdir())) == 1


def descends(process, ancestor):
    """Is it a child of that process's child?"""
    parents = []
    while process.name != "0" and process.exists():
        parents.append(process.name)
        process = Path("/proc", (process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    return str(ancestor) in parents[1:3]


def test_without_warm_kernels_each_has_a_sandbox_of_its_own(start):
    first = start(warm=False)
    assert said(first, "print(2 + 2)") == "4\n"
    assert not first.manager.provisioner.box.isolated
    process = first.manager.provisioner.box.process
    first.close()
    assert process.poll() is not None
    assert provisioner._waiting == []


def test_the_folders_files_are_there_and_writing_changes_them_not(start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("before")
    (tmp_path / "link").symlink_to(ROOT)
    kernel = start()
    shown = said(
        kernel,
        "import os; print(open('data/a.txt').read(), os.path.lexists('link'))\n"
        "open('data/a.txt', 'w').write('after')",
    )
    assert "before False" in shown
    assert (tmp_path / "data/a.txt").read_text() == "before"


def test_on_a_full_disk_no_file_is_left_out_in_silence(tmp_path):
    (tmp_path / "data.txt").write_bytes(bytes(10**6))
    no_space = pytest.raises(OSError, match="No space")
    with Path("/dev/full").open("wb", buffering=0) as full, no_space:
        sandbox.packed(tmp_path, full)


def test_a_kernel_that_holds_too_much_is_ended_and_it_is_said(start):
    kernel = start(memory=500)
    many = (
        "import os, time, numpy\nfor _ in range(8):\n    if os.fork() == 0:\n"
        "        held = numpy.ones(10**7)\n        time.sleep(60)\ntime.sleep(30)"
    )
    with pytest.raises(KernelGone, match="more than 0.49 GB of memory"):
        kernel.run(many, 30)


def test_a_sandbox_that_died_is_replaced(start):
    first = start()
    first.manager.provisioner.box.process.kill()
    with pytest.raises(KernelGone):
        first.run("import time; time.sleep(30)", 40)
    first.close()
    assert said(start(), "print(2 + 2)") == "4\n"


def test_a_warm_sandbox_that_fails_is_replaced_by_a_cold_one(start, monkeypatch):
    start().close()
    ((_, box),) = provisioner._waiting

    def fails(*arguments):
        raise SandboxUnavailable("out of order")

    monkeypatch.setattr(box, "start", fails)
    kernel = start()
    assert kernel.manager.provisioner.box is not box
    assert box.process.poll() is not None
    assert said(kernel, "print(2 + 2)") == "4\n"


def test_kernels_that_would_need_a_network_are_refused():
    from jupyter_client.manager import KernelManager

    manager = KernelManager(transport="tcp")
    refused = provisioner.SandboxProvisioner(parent=manager, kernel_spec=None)
    with pytest.raises(RuntimeError, match="no network"):
        asyncio.run(refused.pre_launch())


def test_what_lies_in_a_visible_folder_is_covered(sandbox_program):
    import numpy

    course = os.path.realpath(Path(numpy.__file__).parent)
    options = sandbox.command(0, 1, [course])
    assert options[options.index(course) - 1] == "--tmpfs"


def test_neither_the_course_nor_its_answers_are_among_what_is_mounted(sandbox_program):
    options = " ".join(sandbox.command(0, 1, [str(ROOT)]))
    for word in ("reference", "claims", "misconceptions", "solutions", "gradebook", "/judge.py"):
        assert word not in options
    assert f"-bind {ROOT} " not in options  # an empty folder, where a .venv in it is seen


@pytest.fixture
def sandbox_program(monkeypatch):
    monkeypatch.setattr(sandbox, "_bubblewrap", lambda: ["bwrap"])


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_denies_what_it_lists_and_allows_the_rest(machine):
    column, architecture = seccomp.MACHINES[machine]
    for numbers in seccomp.DENIED.values():
        assert filtered(machine, architecture, numbers[column]) == seccomp.EPERM
    namespaces, threads = 0x10000000, 0x3D0F00
    assert filtered(machine, architecture, seccomp.CLONE[column], namespaces) == seccomp.EPERM
    assert filtered(machine, architecture, seccomp.CLONE[column], threads) == seccomp.ALLOW
    assert filtered(machine, architecture, seccomp.CLONE3[column]) == seccomp.ENOSYS
    assert filtered(machine, architecture, {"x86_64": 0, "aarch64": 63}[machine]) == seccomp.ALLOW
    assert filtered(machine, 0x40000003, 0) == seccomp.EPERM


def filtered(machine, architecture, number, argument=0):
    """What the program answers; a small model of the kernel's interpreter."""
    memory, held, place = {4: architecture, 0: number, 16: argument}, 0, 0
    steps = seccomp.program(machine)
    while True:
        code, yes, no, value = steps[place]
        if code == seccomp.RETURN:
            return value
        if code == seccomp.LOAD:
            held = memory[value]
            place += 1
        else:
            true = {
                seccomp.EQUAL: held == value,
                seccomp.AT_LEAST: held >= value,
                seccomp.ANY_BIT: bool(held & value),
            }[code]
            place += 1 + (yes if true else no)


def as_nobody():
    """A Python with the same packages that an ordinary user may run, or None."""
    version = f"python3.{sys.version_info[1]}"
    for python in (sys.executable, f"/usr/bin/{version}"):
        try:
            done = subprocess.run([python, "-c", "import sqlite3"], user=65534, capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    return None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="not root: no change")
def test_it_works_as_an_ordinary_user(sandbox, tmp_path):
    python = as_nobody()
    if python is None:
        pytest.skip("this Python lies where only root may go")
    import numpy

    path = os.pathsep.join([str(ROOT), str(Path(numpy.__file__).parents[1])])
    code = "from autograde.grading.sandbox import Sandbox; b = Sandbox(1 << 20); print(b.isolated)"
    env = {"PYTHONPATH": path, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [python, "-c", code], user=65534, env=env, cwd="/", capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


# Where there is none ----------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch):
    """bubblewrap that cannot do its work, as in many containers."""
    command = [sys.executable, "-c", "raise SystemExit('bwrap: No permissions to create it')"]
    monkeypatch.setattr(sandbox, "command", lambda *a, **k: command)
    provisioner.close_all()
    doctor.why_no_sandbox.cache_clear()
    yield
    doctor.why_no_sandbox.cache_clear()


def test_the_reason_is_said_with_what_to_do(broken):
    reason = doctor.why_no_sandbox()
    if sys.platform == "linux":
        assert "No permissions" in reason
    assert "--unsandboxed" in reason
    assert "c.Judge.sandboxed = False" in reason


def test_grading_is_refused_before_anything_is_touched(broken, capsys, tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()")
    assert cli.main(["grade", "03-causal-mask", "--root", str(tmp_path)]) == 2
    assert "run in a sandbox" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["nbgrader_config.py"]


def test_it_can_be_graded_without(broken, monkeypatch):
    seen = []
    monkeypatch.setattr(assignment, "alone", lambda root: seen.append(root) or nullcontext())
    with pytest.raises(assignment.GradingError, match="no assignment"):
        assignment.grade_assignment("none", ROOT, sandboxed=False)
    assert seen == [ROOT]


def test_nbgraders_own_command_is_refused_too(broken, tmp_path):
    from nbformat.v4 import new_code_cell, new_notebook

    nb = new_notebook(cells=[new_code_cell("1")])
    judge = Judge()
    judge.sandboxed = True
    resources = {"metadata": {"path": str(tmp_path)}, "nbgrader": {}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograde.grading.judge._tests", lambda where: {})
        with pytest.raises(SandboxUnavailable, match="run in a sandbox"):
            judge.preprocess(nb, resources)


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("win32", "Windows")])
def test_other_systems_are_told(monkeypatch, platform, name):
    monkeypatch.setattr(sys, "platform", platform)
    doctor.why_no_sandbox.cache_clear()
    assert f"{name} has none" in doctor.why_no_sandbox()
    doctor.why_no_sandbox.cache_clear()


def test_the_doctor_says_what_there_is(capsys):
    code = cli.main(["doctor"])
    text = capsys.readouterr().out
    assert "nbgrader 0.9.6" in text
    assert (code == 0) == ("missing" not in text)


def test_the_doctor_finds_what_is_missing(broken, capsys):
    assert cli.main(["doctor"]) == 1
    assert "missing  submissions are run in a sandbox" in capsys.readouterr().out


# Pages ------------------------------------------------------------------------------------------


def test_what_is_harmless_stays():
    html = '<table><tbody><tr><td style="color:red;">1 &lt; 2 &amp; 3</td></tr></tbody></table>'
    assert clean(html) == html
    assert clean("$a &lt; b$") == "$a &lt; b$"
    assert clean_data({"text/html": "<b>x</b>", "image/png": "iVBO\n"}) == {
        "text/html": "<b>x</b>",
        "image/png": "iVBO\n",
    }


@pytest.mark.parametrize(
    "html",
    [
        "<script>evil</script>x", "<img src=x onerror=evil>", "<a href='java\nscript:evil'>x</a>",
        "<a href='data:text/html,evil'>x</a>", "<img src='http://evil/x.png'>",
        "<img src='data:image/svg+xml;base64,evil'>", "<div style='position:fixed'>x</div>",
        "<p style='background-color:url(http://evil)'>x</p>",
    ],
)  # fmt: skip
def test_what_acts_goes(html):
    kept = clean(html)
    for word in ("script:", "<script", "onerror", "http", "data:", "position", "url("):
        assert word not in kept


def test_too_much_is_left_out_before_it_takes_time():
    begun = monotonic()
    assert clean_data({"text/html": "<div>" * 10**5, "text/plain": "x"}) == {"text/plain": "x"}
    assert monotonic() - begun < 5


def test_the_policy_names_the_pages_scripts():
    found = policy('<script src="https://cdn.org/a/b.js?x"></script><script>one()</script>')
    assert "https://cdn.org/a/" in found
    assert found.count("'sha256-") == 1
    assert "'unsafe-inline'" not in found.partition("script-src")[2].partition(";")[0]


def test_an_unknown_signal_ends_the_kernel(start):
    kernel = start()
    asyncio.run(kernel.manager.provisioner.send_signal(signal.SIGTERM))
    assert not kernel.alive
