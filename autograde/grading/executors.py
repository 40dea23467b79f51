"""Where the work is done, as a `concurrent.futures.Executor`: here, on all cores, on a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from autograde.grading.accidents import GradingError
from autograde.grading.submission import Order, grade_submission
from autograde.grading.workers import code, grade_apart, stop

PATIENCE = 60.0  # seconds for a scheduler that has no workers left to get some
SOON = 15.0  # seconds for a scheduler and its first worker to answer
LOOK = 5.0


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Here(Executor):
    """Does it at once, in this process."""

    def submit(self, function: Callable, /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def graded(
    orders: Iterable[Order], run: str, jobs: int, scheduler: str | None
) -> Iterator[tuple[Order, Future]]:
    """The orders with what came of them, as they are done; few are under way at a time.

    Raises
    ------
    GradingError: the scheduler cannot be used.
    """
    if scheduler:
        with cluster(scheduler) as client:
            executor = client.get_executor(pure=False)
            try:
                yield from _each(executor, grade_apart, orders, lambda: _width(client))
            except OSError as error:
                raise GradingError(f"the scheduler {scheduler} was lost ({error})") from None
            finally:
                with contextlib.suppress(Exception):  # it may be gone
                    client.run(stop, run)
    elif jobs == 1:
        yield from _each(_Here(), grade_submission, orders, lambda: 1)
    else:
        with ThreadPoolExecutor(jobs) as executor:
            try:
                yield from _each(executor, grade_apart, orders, lambda: jobs)
            finally:
                stop(run)


def _each(
    executor: Executor, function: Callable, orders: Iterable[Order], width: Callable[[], int]
) -> Iterator[tuple[Order, Future]]:
    running: dict[Future, Order] = {}
    orders, idle = iter(orders), 0.0
    while True:
        for order in islice(orders, max(width() - len(running), 0)):
            running[executor.submit(function, order)] = order
        if not running and (order := next(orders, None)) is None:
            return
        elif not running:
            running[executor.submit(function, order)] = order
        done, _ = wait(running, LOOK, FIRST_COMPLETED)
        idle = 0.0 if done or width() else idle + LOOK
        if idle > PATIENCE:
            raise GradingError("the scheduler has no workers any more; start some, and run again")
        for future in done:
            yield running.pop(future), future


def _width(client: Any) -> int:
    """How many to have under way: each thread's, and one that waits for it."""
    return 2 * sum(client.nthreads().values())


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A client of the scheduler at that address, which has workers that can do the work."""
    try:
        from distributed import Client
    except ImportError:
        raise GradingError(
            "--scheduler needs dask.distributed: pip install 'no-peeking[distributed]'"
        ) from None
    try:
        client = Client(address, timeout=SOON, set_as_default=False)
    except (OSError, ValueError) as error:
        raise GradingError(
            f"there is no scheduler at {address} ({error}); `dask scheduler` starts one, and "
            "`dask worker ADDRESS` a worker"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SOON)
            found = client.run(code)
        except TimeoutError:
            raise GradingError(
                f"the scheduler at {address} has no workers; `dask worker {address}` starts one"
            ) from None
        except Exception as error:  # from a worker, so of any kind
            raise GradingError(
                f"the workers of {address} cannot run the grader ({type(error).__name__}: "
                f"{error}); install the course there, of the same version"
            ) from None
        if other := sorted(worker for worker, version in found.items() if version != code()):
            raise GradingError(
                f"the workers {', '.join(other)} have another version of the course, of Python or "
                "of NumPy; install the same there and start them again"
            )
        yield client
