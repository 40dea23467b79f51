"""Examine the functions of a student's file, which runs in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from autograde.calls import Outcome
from autograde.examination import Call
from autograde.remote import ask
from autograde.wire import decode_outcome

LOADING = 60.0  # seconds that a file may take to run
GRACE = 5.0  # seconds beyond a call's own limit before its process is killed


class CannotRun(Exception):
    """The file could not be run at all; the text says why."""


class StudentFile:
    """A `.py` file or notebook, run in a child process that can die without harm.

    names: the callables that the file defines. problems: what failed while it ran.
    """

    def __init__(self, path: Path):
        self.path = path.resolve()
        self.process: subprocess.Popen | None = None
        hello = self._start()
        self.names: list[str] = [str(name) for name in hello["names"]]
        self.problems: list[str] = [str(text)[:300] for text in hello["problems"]]

    def __enter__(self) -> StudentFile:
        return self

    def __exit__(self, *reason: object) -> None:
        self._stop()

    def function(self, name: str) -> Call:
        """The function of that name, as `examine` wants it."""

        def call(
            args: tuple, kwargs: dict[str, Any], seconds: float, measured: bool = False
        ) -> Outcome:
            if name not in self.names:
                return Outcome("missing")
            if self.process is None:
                try:
                    self._start()
                except CannotRun as error:
                    return Outcome("died", text=str(error))
            return self._call(ask(name, args, kwargs, seconds, measured), seconds)

        return call

    def _start(self) -> dict[str, Any]:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "autograde.host", str(self.path)],
            cwd=self.path.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self.replies: queue.Queue[str] = queue.Queue()
        threading.Thread(
            target=_read, args=(self.process.stdout, self.replies), daemon=True
        ).start()
        try:
            line = self.replies.get(timeout=LOADING)
        except queue.Empty:
            self._stop()
            raise CannotRun(
                f"{self.path.name} did not finish running within {LOADING:g} s: "
                "is there an endless loop outside the functions?"
            ) from None
        if not line:
            text = self._ending()
            raise CannotRun(f"{self.path.name} ended Python while it ran ({text})")
        try:
            hello = json.loads(line)
            if "error" in hello:
                self._stop()
                raise CannotRun(str(hello["error"])[:1000])
            return {"names": list(hello["names"]), "problems": list(hello["problems"])}
        except (ValueError, TypeError, KeyError):
            self._stop()
            raise CannotRun(f"{self.path.name} wrote where only the grader writes") from None

    def _call(self, request: str, seconds: float) -> Outcome:
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            line = self.replies.get(timeout=seconds + GRACE)
        except queue.Empty:
            self._stop()
            return Outcome("timeout", text=f"{seconds:g}")
        except OSError:
            line = ""
        outcome = decode_outcome(line) if line else Outcome("died", text=self._ending())
        if outcome.how == "died":
            self._stop()  # whatever it still has to say belongs to no request
        return outcome

    def _ending(self) -> str:
        """How the process ended, in words."""
        try:
            code = self.process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        finally:
            self._stop()
        if code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit status {code}"

    def _stop(self) -> None:
        if self.process is not None:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)  # and what it has started
            self.process.kill()
            self.process.wait()
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process = None  # its reader closes the other end


def _read(stream: Any, replies: queue.Queue[str]) -> None:
    """Pass lines on; "" when the process has closed its end."""
    with stream:
        for line in stream:
            replies.put(line)
    replies.put("")
