"""One call of a function under examination, and everything that came of it."""

from __future__ import annotations

import contextlib
import copy
import io
import linecache
import os
import signal
import sysconfig
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograde.values import is_tensor, numbers_of, plain

NOT_THEIRS = (
    "<frozen",
    os.path.dirname(os.path.abspath(__file__)),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
SECONDS = 10.0  # what one call may take; exercises that train allow more
MEASURED = 2.0  # and one whose memory is measured: that makes plain Python twenty times slower


@dataclass(frozen=True)
class Outcome:
    """What came of a call.

    how: "returned", "raised", "timeout" (no result in time), "exited" (the function tried
        to end Python), "died" (it did end it), "missing" (there is no such function) or
        "cut off" (no result in time, because its memory was measured).
    value: the plain result; the exception's type name when it raised.
    text: the exception's message, or how the process ended.
    line: the source line that raised, when it is known.
    changed: indices of the arguments that the call modified.
    printed: number of characters written to stdout and stderr.
    warned: texts of the warnings that were raised.
    peak: bytes that the call held at most beyond what was there before; None if that was not
        measured.
    """

    how: str
    value: Any = None
    text: str = ""
    line: str = ""
    changed: tuple[int, ...] = ()
    printed: int = 0
    warned: tuple[str, ...] = ()
    peak: int | None = None

    @property
    def returned(self) -> bool:
        return self.how == "returned"

    @property
    def final(self) -> bool:
        """Is it pointless to call this function again?"""
        return self.how in ("timeout", "exited", "died", "missing") or self.unwritten

    @property
    def unwritten(self) -> bool:
        """Is this the stub that a student has not filled in yet?"""
        return self.how == "raised" and self.value == "NotImplementedError"

    def exceeds(self, limit: int | None) -> bool:
        """Did the call hold more bytes than that? True, too, where nobody knows."""
        return limit is not None and (self.peak is None or self.peak > limit)

    def says(self) -> str:
        """What went wrong, for a person; "" if nothing did."""
        match self.how:
            case "raised":
                where = f", at `{self.line}`" if self.line else ""
                return f"raised {self.value}: {self.text}{where}".rstrip(": ")
            case "timeout":
                return f"did not return within {self.text} s: an endless loop?"
            case "exited":
                return f"tried to end Python ({self.text}); return a value instead"
            case "died":
                return f"ended the Python process ({self.text})"
            case "missing":
                return "is not defined"
        return ""


class OutOfTime(BaseException):
    """Raised inside a call that has run too long; no `except Exception` catches it."""


class _Counter(io.TextIOBase):
    """A stream that counts what is written and keeps nothing."""

    written = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written += len(text)
        return len(text)


class Memory:
    """Measures what is allocated while it is open: `peak`, in bytes beyond the start.

    Python and NumPy tell tracemalloc what they allocate; PyTorch does not. `peak` stays None
    where the code inside ends the tracing.
    """

    peak: int | None = None

    def __enter__(self) -> Memory:
        self.begun = not tracemalloc.is_tracing()
        if self.begun:
            tracemalloc.start()
        tracemalloc.reset_peak()
        self.before, _ = tracemalloc.get_traced_memory()
        return self

    def __exit__(self, *reason: object) -> None:
        if tracemalloc.is_tracing():
            self.peak = max(tracemalloc.get_traced_memory()[1] - self.before, 0)
            if self.begun:
                tracemalloc.stop()


@contextlib.contextmanager
def time_limit(seconds: float):
    """Raise `OutOfTime` after `seconds` (main thread on Unix; elsewhere no limit)."""
    usable = hasattr(signal, "setitimer") and (
        threading.current_thread() is threading.main_thread()
    )
    if not usable:
        yield
        return

    def ring(signum, frame):
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again each second: `except:` may eat one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    seconds: float = SECONDS,
    measured: bool = False,
) -> Outcome:
    """Call `function` on copies of the arguments and report what came of it.

    measured: find out the call's peak of memory, too, which makes it slower.
    """
    # One by one: an array that is given twice does not change the other when it changes.
    given = tuple(map(copied, args))
    options, process = {key: copied(value) for key, value in kwargs.items()}, os.getpid()
    counter, memory = _Counter(), Memory()
    # The caller's own settings do not reach the student's code, nor the reverse.
    with (
        contextlib.redirect_stdout(counter),
        contextlib.redirect_stderr(counter),
        warnings.catch_warnings(record=True) as caught,
        np.errstate(all="warn", under="ignore"),
    ):
        warnings.simplefilter("always")
        try:
            with time_limit(seconds):
                with memory if measured else contextlib.nullcontext():
                    value = function(*given, **options)
                result = ("returned", plain(value), "", "")
        except KeyboardInterrupt:
            raise  # the person at the keyboard wants it to stop
        except OutOfTime:
            result = ("cut off" if measured else "timeout", None, f"{seconds:g}", "")
        except SystemExit as error:
            result = ("exited", None, f"SystemExit({error.code!r})", "")
        except BaseException as error:
            result = ("raised", type(error).__name__, _message(error), _line(error))
    if os.getpid() != process:
        os._exit(0)  # a child that the function forked has come back: only its parent counts
    changed = tuple(i for i, (a, b) in enumerate(zip(args, given, strict=True)) if _differ(a, b))
    warned = tuple(dict.fromkeys(_message(w.message) for w in caught))[:5]
    return Outcome(*result, changed, counter.written, warned, memory.peak)


def copied(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """`copy.deepcopy`, some hundred times as fast for the plain tensors of a model."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    kind = type(value)
    if kind is dict:
        copy_ = {key: copied(item, memo) for key, item in value.items()}
    elif kind in (list, tuple):
        copy_ = kind(copied(item, memo) for item in value)
    elif value is None or kind in (bool, int, float, str):
        return value
    elif kind is np.ndarray and value.dtype != object:
        copy_ = value.copy(order="K")
    elif (kind.__module__, kind.__name__) == ("torch", "Tensor") and _is_plain(value):
        copy_ = value.clone()
    else:
        return copy.deepcopy(value, memo)
    return memo.setdefault(id(value), copy_)


def _is_plain(tensor: Any) -> bool:
    return not tensor.requires_grad and tensor.grad is None and tensor.is_contiguous()


def _message(error: BaseException | str) -> str:
    """The text of an exception or a warning, in one printable line."""
    try:
        text = str(error)
    except Exception:  # whatever a `__str__` of the student's does
        return ""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:300]


def _line(error: BaseException) -> str:
    """The source line in which the student's own code stood when it raised."""
    line = ""
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(NOT_THEIRS):
            line = linecache.getline(name, trace.tb_lineno).strip() or line
        trace = trace.tb_next
    return line[:120]


def _differ(before: Any, after: Any) -> bool:
    """Did a call change this argument?"""
    if (before is None) != (after is None) or is_tensor(before) != is_tensor(after):
        return True
    if isinstance(before, np.ndarray):
        return before.shape != after.shape or before.tobytes() != after.tobytes()
    if isinstance(before, list | tuple):
        return len(before) != len(after) or any(map(_differ, before, after))
    if isinstance(before, dict):
        return before.keys() != after.keys() or any(_differ(before[k], after[k]) for k in before)
    if is_tensor(before):
        grad = after.grad if after.is_leaf else None  # PyTorch warns of asking others
        return _differ(numbers_of(before), numbers_of(after)) or _differ(before.grad, grad)
    return isinstance(before, bool | int | float | str) and repr(before) != repr(after)
