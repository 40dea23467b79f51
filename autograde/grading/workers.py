"""Many submissions at once: on the cores of this machine, or on those of many by dask.distributed.

Either way a thread hands its orders to a process of its own, `python -m autograde.grading.workers`,
one after the other. When that process is killed, the order is given to a new one, once.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import os
import pickle
import platform
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograde.grading.accidents import GradingError
from autograde.grading.submission import Graded, Order, grade_submission

PACKAGE = Path(__file__).resolve().parents[1]
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")  # each process has one: there is one for each core
SET_PARENT_DEATH_SIGNAL = 1
ENDING = 5.0  # seconds for a process that has no more to do

_mine = threading.local()  # .worker, of the thread that asks
_all: set[Worker] = set()
_stopped: set[str] = set()  # runs that were given up


class Worker:
    """A process that grades, for one run of the grader."""

    def __init__(self, run: str):
        self.run = run
        self.room = tempfile.TemporaryDirectory(prefix="no-peeking-", ignore_cleanup_errors=True)
        path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
        one = {f"{name}_NUM_THREADS": "1" for name in THREADS}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "autograde.grading.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **one, "PYTHONPATH": path, "TMPDIR": self.room.name},
            cwd=self.room.name,
            start_new_session=True,  # Ctrl-C is for the grader; it ends the others
        )
        _all.add(self)

    def ask(self, order: Order) -> Graded | Exception:
        """What came of it. `EOFError` or `OSError` when the process has ended."""
        pickle.dump(order, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def close(self, patience: float = ENDING) -> str:
        """End the process, what it has started and what it has written; how it ended."""
        _all.discard(self)
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # it ends when it is idle
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        self.room.cleanup()
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"exit status {code}"


def grade_apart(order: Order) -> Graded:
    """Grade a submission in a process of this thread's own.

    Raises
    ------
    GradingError: what kept the worker from grading anything.
    """
    how = ""
    for _ in range(2):
        worker = _worker(order.run)
        try:
            if order.run in _stopped:
                raise EOFError
            answer = worker.ask(order)
        except (OSError, EOFError, pickle.UnpicklingError):
            how = worker.close()
            if order.run in _stopped:
                raise GradingError("the run was stopped") from None
            continue
        if isinstance(answer, Exception):
            raise answer
        return answer
    return order.failed(
        f"the process that graded it was ended twice ({how}): for lack of memory? Run this again, "
        "perhaps with fewer --jobs"
    )


def _worker(run: str) -> Worker:
    """This thread's, made anew for each run: the course and this package may have changed."""
    worker = getattr(_mine, "worker", None)
    if worker is None or worker.run != run or worker.process.poll() is not None:
        if worker is not None:
            worker.close()
        worker = _mine.worker = Worker(run)
    return worker


def stop(run: str) -> None:
    """End the workers of a run at once."""
    _stopped.add(run)
    for worker in [worker for worker in _all if worker.run == run]:
        worker.close(0)


@atexit.register
def _stop_all() -> None:
    for run in {worker.run for worker in _all}:
        stop(run)


def code() -> str:
    """Which grader this is: a hash of the package, and the versions of what it stands on."""
    import numpy

    total = hashlib.sha256(f"{platform.python_version()} {numpy.__version__}".encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        total.update(f"{path.relative_to(PACKAGE)} ".encode() + path.read_bytes())
    return total.hexdigest()


def _answer(order: Order, own: str) -> Graded | Exception:
    where = platform.node()
    if order.code not in ("", own):
        return GradingError(
            f"the worker on {where} has another version of the course, of Python or of NumPy; "
            "install the same there"
        )
    if not order.root.is_dir():
        return GradingError(
            f"the worker on {where} does not see the course's folder {order.root}; "
            "it must be there under the same path"
        )
    try:
        return grade_submission(order)
    except GradingError as error:
        return error


def _orders(stream: Any) -> Iterator[Order]:
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(stream)


def main() -> None:
    """Grade what comes in on standard input, until there is no more."""
    if sys.platform == "linux":  # whatever kills the grader kills this, too
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    own = code()
    with contextlib.suppress(BrokenPipeError):  # the grader has gone, and wants no answer
        for order in _orders(sys.stdin.buffer):
            pickle.dump(_answer(order, own), replies)
            replies.flush()
    os._exit(0)  # what is still to be written goes nowhere


if __name__ == "__main__":
    from autograde.grading import workers  # so that what is pickled is known by its own name

    workers.main()
