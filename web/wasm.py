"""Fit the checks to a browser's Python: no signals, no floating-point flags, 32-bit integers."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
from warned import warnings_of

from autograde import calls, checking, recalled
from autograde.calls import Outcome

OURS = (__file__, calls.__file__, contextlib.__file__)


class Deadline:
    """A time limit without signals: looked at whenever a loop turns or a call starts.

    What hangs inside NumPy is not seen here; the page's own clock, which `tell("limit", seconds)`
    sets, then ends the worker. patience: how many times as long calls may take.
    """

    patience = 1.0

    def __init__(self, tell: Callable[[str, Any], None]):
        self.at, self.tell, watch = None, tell, sys.monitoring
        watch.use_tool_id(watch.DEBUGGER_ID, "autograde")
        for event in (watch.events.JUMP, watch.events.PY_START):
            watch.register_callback(watch.DEBUGGER_ID, event, self._look)
        watch.set_events(watch.DEBUGGER_ID, watch.events.JUMP | watch.events.PY_START)

    def _look(self, code: types.CodeType, *where: object) -> None:
        if self.at is None or time.perf_counter() < self.at:
            return
        if code.co_filename not in OURS:  # which are about to end the call themselves
            self.at += 1.0  # again after a second: `except:` may eat one
            raise calls.OutOfTime

    @contextlib.contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """As `autograde.calls.time_limit`."""
        self.tell("limit", self.patience * seconds)
        self.at = time.perf_counter() + self.patience * seconds
        try:
            yield
        finally:
            self.at = None
            self.tell("limit", 0)


def fit(tell: Callable[[str, Any], None]) -> Deadline:
    """Change the checks, once; the clock that they now obey."""
    clock = Deadline(tell)
    calls.time_limit = clock.limit
    calls.NOT_THEIRS += (os.path.dirname(np.__file__),)
    quiet = _watch_quiet_exercises()
    own = calls.call

    @wraps(own)
    def call(function: Callable, args: tuple, kwargs: dict, *limits: Any, **more: Any) -> Outcome:
        outcome = own(function, args, kwargs, *limits, **more)
        if not (quiet() and outcome.returned):
            return outcome
        with contextlib.suppress(calls.OutOfTime), clock.limit(calls.SECONDS):
            return replace(outcome, warned=warnings_of(function, args, kwargs))
        return outcome

    for name, module in list(sys.modules.items()):
        if name.startswith("autograde.") and getattr(module, "call", None) is own:
            module.call = call
    for name in ("bincount", "repeat"):  # they take no integers of 64 bits on 32
        setattr(np, name, _narrowing(getattr(np, name)))
    return clock


def _watch_quiet_exercises() -> Callable[[], bool]:
    """Is the exercise that is being examined, or reported on, one that forbids warnings?"""
    now = reported = False
    examine, report = checking.examine, checking.report

    def examining(exercise, *args):
        nonlocal now
        now = exercise.quiet
        return examine(exercise, *args)

    def reporting(examination, *args):
        nonlocal now, reported
        # With a worse fault around, warnings do not tell one mistake from another.
        faults = {record.fault for record in examination.records}
        now = examination.exercise.quiet and faults <= {"warned", ""}
        if now != reported:
            recalled.forget()  # what wrong answers did: the warnings were not looked for
        reported = now
        return report(examination, *args)

    checking.examine, checking.report = examining, reporting
    return lambda: now


def _narrowing(function: Callable) -> Callable:
    def narrow(value: Any) -> Any:
        wide = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        return value.astype(np.intp) if wide else value

    @wraps(function)
    def wrapped(array: Any, *args: Any, **kwargs: Any) -> Any:
        if function.__name__ == "bincount":
            array = narrow(array)
        return function(array, *map(narrow, args), **kwargs)

    return wrapped
