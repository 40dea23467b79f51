"""`check`, `grade` and `hint`: what stands in a notebook's cells."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from autograde.examination import examine, local
from autograde.exercise import Exercise, exercises, find
from autograde.report import Report, report

CHECK_SEEDS, GRADE_SEEDS = (0,), (1, 2, 3)
_hints_given: Counter[str] = Counter()


class ClaimsFail(AssertionError):
    """Some claims do not hold. A notebook shows the report, and no traceback."""

    def __init__(self, report: Report):
        super().__init__(report.headline)
        self.report = report

    def _render_traceback_(self) -> list[str]:
        return [f"{self.report.headline} (see above)"]


def check(function: Callable, name: str | None = None) -> None:
    """Tell what is true of your function, with a counterexample for what is not.

    Parameters
    ----------
    function: your answer to an exercise.
    name: the exercise's name, where it cannot be told from the function.

    Raises
    ------
    ClaimsFail: when a claim does not hold. LookupError: when there is no such exercise.
    """
    exercise = _exercise(function, name)
    examination = examine(exercise, local(function), CHECK_SEEDS)
    around = sys._getframe(1).f_globals
    found = report(examination, () if examination.passed else _wrong_among(exercise.uses, around))
    _display(found)
    if not found.passed:
        raise ClaimsFail(found)


def grade(function: Callable, name: str | None = None) -> float:
    """As `check`, on fresh inputs, for points: a float between 0 and the exercise's points."""
    found = report(examine(_exercise(function, name), local(function), GRADE_SEEDS))
    _display(found)
    return float(found.examination.points)


def hint(function: Callable | str, name: str | None = None) -> None:
    """Give the next of three hints; after the third it stays with the third."""
    exercise = find(function) if isinstance(function, str) else _exercise(function, name)
    before = _hints_given[exercise.name]
    _hints_given[exercise.name] += 1
    given = min(before, len(exercise.hints) - 1)
    print(f"Hint {given + 1} of {len(exercise.hints)}: {exercise.hints[given]}")
    if before > given:
        print(f"That was the last one. The section to read is {exercise.read[1]}.")


def _wrong_among(names: tuple[str, ...], around: dict[str, Any]) -> list[str]:
    """Which of these functions, as they stand around the check, do not pass their own?"""
    there = [name for name in names if callable(around.get(name))]
    return [n for n in there if not examine(find(n), local(around[n]), CHECK_SEEDS).passed]


def _exercise(function: Any, name: str | None) -> Exercise:
    """The exercise that this object answers: by the name given, or the name it is bound to."""
    if name is not None:
        return find(name)
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(f"check wants your function itself, as in check(causal_mask), not a {kind}")
    own = getattr(function, "__name__", "")
    bound = sys._getframe(2).f_globals
    names = [own] + [e.name for e in exercises() if bound.get(e.name) is function]
    known = {exercise.name: exercise for exercise in exercises()}
    for candidate in names:
        if candidate in known:
            return known[candidate]
    return find(own or type(function).__name__)  # raises, and says which names there are


def _display(found: Report) -> None:
    try:
        shell = sys.modules["IPython"].get_ipython()
    except (KeyError, AttributeError):
        shell = None
    if shell is None:
        print(found.text())
    else:
        from IPython.display import display

        display(found)
