"""Many calls in one message: what an examination will ask is known before it begins.

A message to a kernel takes longer than the call that it carries. An examination of the
reference shows which calls its claims make, so they can be sent ahead, a few at first and
then more at a time. Where a claim asks something else, it gets an answer of its own.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

from autograde import remote
from autograde.calls import Outcome
from autograde.examination import examine
from autograde.exercise import Exercise
from autograde.recalled import recalled

MOST, GROWTH = 256, 8  # calls in one message, and how many times those of the last one


def together(requests: list[str], seconds: float) -> str:
    """Requests of `remote.ask` as one text; after `seconds` no further one is begun."""
    return json.dumps({"requests": requests, "seconds": seconds})


def replies(text: str) -> list[str]:
    """The replies in what the student's process sent; none if it makes no sense."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(r, str) for r in found) else []


@cache
def foreseen(
    exercise: Exercise, name: str, seconds: float, seeds: tuple[int, ...]
) -> tuple[str, ...]:
    """The requests that examining a right answer makes."""
    requests: list[str] = []

    def call(args: tuple, kwargs: dict[str, Any], limit: float, measured: bool) -> Outcome:
        requests.append(remote.ask(name, args, kwargs, min(limit, seconds), measured))
        return recalled(exercise.reference, args, kwargs, measured)

    examine(exercise, call, seeds)
    return tuple(requests)


class Ahead:
    """Answers requests in order, from those that were sent ahead as long as they agree.

    A claim that breaks leaves out what else it would have asked; then those are passed over.
    """

    def __init__(
        self, send: Callable[[list[str], float], list[Outcome]], requests: tuple[str, ...]
    ):
        self.send, self.coming, self.size = send, deque(requests), 1
        self.answered: deque[tuple[str, Outcome]] = deque()

    def __call__(self, request: str, seconds: float) -> Outcome:
        if not any(known == request for known, _ in self.answered):
            if request not in self.coming:
                return self.send([request], seconds)[0]
            self.answered.clear()
            while self.coming[0] != request:
                self.coming.popleft()
            self._send(seconds)
        while self.answered:
            known, outcome = self.answered.popleft()
            if known == request:
                return outcome
        return self.send([request], seconds)[0]

    def _send(self, seconds: float) -> None:
        """Send the next few; what got no answer is asked again, one by one."""
        batch = [self.coming.popleft() for _ in range(min(self.size, len(self.coming)))]
        outcomes = self.send(batch, seconds)
        self.answered.extend(zip(batch, outcomes, strict=False))
        self.coming.extendleft(reversed(batch[len(outcomes) :]))
        if not outcomes:
            self.coming.clear()
        self.size = min(GROWTH * self.size, MOST)
