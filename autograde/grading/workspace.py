"""A submission while it is judged: its kernel, and what to run again when the kernel dies."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

from autograde.calls import Outcome
from autograde.grading.batch import replies, together
from autograde.grading.kernel import GRACE, Kernel, KernelGone, NoReply
from autograde.grading.outputs import Outputs
from autograde.wire import decode_outcome


class OutOfPatience(Exception):
    """The time for the whole notebook is used up."""


class Workspace:
    """The cells of one notebook, run in a kernel that is replaced when it dies.

    A new kernel first runs the cells that the old one ran, without the one that ended it:
    what is right in a notebook keeps its points, whatever else is in it.
    """

    def __init__(self, start: Callable[[], Kernel], cell_seconds: float, seconds: float):
        self.start, self.cell_seconds = start, cell_seconds
        self.seconds, self.deadline = seconds, monotonic() + seconds
        self.spent = 0.0  # seconds that calls have taken, without starting and decoding
        self.kernel: Kernel | None = None
        self.done: list[str] = []

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        if self.kernel is not None:
            self.kernel.close()
            self.kernel = None

    def run(self, source: str, outputs: Outputs, seconds: float = math.inf) -> str:
        """Run a cell of the submission; "", or what went wrong beyond an ordinary error.

        seconds: if it may take less than other cells.
        """
        self._ready()
        problem = self._try(source, outputs, seconds)
        if not problem:
            self.done.append(source)
        return problem

    def call(self, requests: list[str], seconds: float) -> list[Outcome]:
        """Carry out requests of `remote.ask`; whatever happens is the outcome.

        Of several, those after a slow or hanging one get no outcome, and none does when the
        kernel is lost: ask them one by one.
        """
        self._ready()
        alone, begun, text, lost = len(requests) == 1, monotonic(), "", None
        try:
            # The kernel itself ends a call after `seconds`. If it cannot, we end the kernel.
            limit = (seconds if alone else 2 * seconds) + GRACE
            text = self.kernel.ask(together(requests, seconds), limit)
        except NoReply:
            lost = Outcome("timeout", text=f"{seconds:g}")
        except KernelGone as reason:
            lost = Outcome("died", text=str(reason))
        self.spent += monotonic() - begun
        if lost:
            self.close()
            return [lost] * alone
        return [decode_outcome(reply) for reply in replies(text) or [""] * alone]

    def _ready(self) -> None:
        """See to it that there is a kernel in which the cells so far have run."""
        while True:
            if self.deadline < monotonic():
                raise OutOfPatience
            if self.kernel is not None and self.kernel.alive:
                return
            self.close()
            self.kernel = self.start()
            for index, source in enumerate(self.done):
                if self._try(source, None):
                    del self.done[index]  # it went well before; without it, from the start
                    self.close()
                    break

    def _try(self, source: str, outputs: Outputs | None, seconds: float = math.inf) -> str:
        seconds = min(seconds, self.cell_seconds, max(self.deadline - monotonic(), 1.0))
        try:
            how = self.kernel.run(source, seconds, outputs)
        except KernelGone as reason:
            self.close()
            return f"this cell ended the Python process ({reason})"
        if how == "timeout":
            return f"this cell did not end within {seconds:g} s and was stopped: an endless loop?"
        if how == "exit":
            self.close()
            return "this cell ends Python with exit() or quit(); it was left out"
        return ""
