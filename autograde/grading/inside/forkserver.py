"""Imports what kernels need, once, and forks a kernel for each notebook.

    python -m inside.forkserver DESCRIPTOR PLACE ...

The descriptor is a socket to the grader (`autograde.grading.sandbox`); no kernel ever gets it. The
places are the folders that a kernel may write.
A kernel lives in namespaces of its own: it sees no process but those that it started, and its
folders come and go with it. So it reaches neither this process nor the next kernel, and when
the first process of its namespace is killed, nothing of it is left. Where the host does not
allow that, `isolated` is false, and the grader uses a whole sandbox for one kernel.

One kernel at a time, and one thread: to fork is safe.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
import zipfile
from collections.abc import Callable
from typing import Any

from . import confine, kernel

LOOK = 0.25  # seconds between two looks at how much memory a kernel holds


class Running:
    """The kernel that is there: `first` is the first process of its namespace."""

    def __init__(self, first: int, pipe: int, limits: dict[str, int]):
        self.first, self.pipe, self.limits = first, pipe, limits

    def end(self) -> str:
        """Kill all of it; what its first process had to say about how the kernel ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.first, 0)
        os.set_blocking(self.pipe, False)
        try:
            return os.read(self.pipe, 64).decode("ascii", "replace")
        except BlockingIOError:
            return ""
        finally:
            os.close(self.pipe)


class Server:
    def __init__(self, control: socket.socket, places: list[str]):
        self.control, self.places, self.running = control, places, None
        self.pause = LOOK
        self.why = _in_a_child(_try_to_isolate, places) if places else "nobody asked for it"
        self.tell(event="ready", isolated=not self.why, why=self.why)

    def tell(self, **message: Any) -> None:
        self.control.send(json.dumps(message).encode())

    def serve(self) -> None:
        """Obey until the grader has gone."""
        while True:
            watched = [self.control, *([self.running.pipe] if self.running else [])]
            ready, _, _ = select.select(watched, [], [], self.pause if self.running else None)
            if self.control in ready:
                text, descriptors, _, _ = socket.recv_fds(self.control, 2**16, 8)
                if not text:
                    return
                self.obey(json.loads(text), descriptors)
            elif self.running and (ready or (why := self.hungry())):
                how = self.running.end()
                self.running = None
                self.tell(event="ended", how=how, why="" if ready else why)

    def hungry(self) -> str:
        """Does the kernel hold more memory than it may, all its processes together?"""
        begun, most = time.monotonic(), self.running.limits["memory"]
        theirs = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {1, os.getpid()}
        held = sum(map(confine.memory, theirs))
        self.pause = max(LOOK, 5 * (time.monotonic() - begun))  # looking at many slows them down
        return f"it used more than {most / 2**30:.2g} GB of memory" if held > most else ""

    def obey(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if message["do"] == "start":
            try:
                for name in message["modules"]:
                    importlib.import_module(name)
                self.running = self.start(message, descriptors)
                self.tell(event="started")
            except Exception as error:
                self.tell(event="failed", why=f"{type(error).__name__}: {error}")
            for descriptor in descriptors:
                os.close(descriptor)
        elif message["do"] == "interrupt" and self.running:
            os.kill(self.running.first, signal.SIGINT)
        elif message["do"] == "end":
            how = self.running.end() if self.running else ""
            self.running = None
            self.tell(event="ended", how=how, why="")

    def start(self, message: dict[str, Any], descriptors: list[int]) -> Running:
        gc.collect()
        gc.freeze()  # what is shared with the kernels stays shared
        told, tell = os.pipe()
        work = (message, descriptors, tell, [] if self.why else self.places)
        reply = json.loads(_in_a_child(_make_namespace, *work))
        os.close(tell)
        if "why" in reply:
            os.close(told)
            raise RuntimeError(reply["why"])
        return Running(reply["first"], told, message["limits"])


def _in_a_child(function: Callable[..., str], *arguments: Any) -> str:
    """The text that the function returns, or why it failed, from a process that then ends."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = function(*arguments)
        except BaseException as error:
            text = json.dumps({"why": f"{type(error).__name__}: {error}"})
        os.write(into, text.encode() + b"\n")
        os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with os.fdopen(out) as file:
        return file.readline().rstrip()


def _try_to_isolate(places: list[str]) -> str:
    """Can kernels be kept apart here? "", or why not."""
    confine.isolate()
    child = os.fork()
    if child == 0:
        try:
            confine.own_folders(2**20, places)
            confine.give_up_rights()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "" if status == 0 else os.strerror(status)


def _make_namespace(message: dict, descriptors: list[int], tell: int, places: list[str]) -> str:
    """Start the first process of a kernel's namespace, which outlives this one."""
    if places:
        confine.isolate()
    ready, begun = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            _first_process(message, descriptors, tell, places, begun)
        except BaseException as error:
            os.write(begun, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    os.close(begun)
    with os.fdopen(ready) as file:
        problem = file.read()  # it ends when the kernel begins
    return json.dumps({"why": problem} if problem else {"first": first})


def _first_process(message, descriptors, tell, places, begun) -> None:
    """Prepare the kernel's surroundings, start it, and wait for its end."""
    if places:
        confine.own_folders(message["limits"]["disk"], places)
    confine.make_folders()
    os.chdir(f"{confine.ROOM}/home")
    *sockets, files = descriptors
    with os.fdopen(os.dup(files), "rb") as file, zipfile.ZipFile(file) as companions:
        companions.extractall()
    confine.give_up_rights()
    child = os.fork()
    if child == 0:
        _become_kernel(message, dict(zip(message["channels"], sockets, strict=True)))
    signal.signal(signal.SIGINT, lambda *_: os.killpg(child, signal.SIGINT))
    os.close(begun)
    _keep_open({tell})
    while True:
        ended, status = os.wait()
        if ended == child:
            os.write(tell, str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)


def _become_kernel(message: dict, sockets: dict[str, int]) -> None:
    try:
        os.setsid()
        _keep_open(set(sockets.values()))
        confine.set_limits(message["limits"])
        kernel.run(message["connection"], sockets)
    finally:
        os._exit(1)


def _keep_open(wanted: set[int]) -> None:
    """Close every descriptor but these; the standard streams lead nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in wanted:
            with contextlib.suppress(OSError):
                os.close(int(name))


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    confine.drop_root()
    confine.make_folders()
    Server(control, sys.argv[2:]).serve()


if __name__ == "__main__":
    main()
