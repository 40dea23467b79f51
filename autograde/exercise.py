"""Exercises: what must be true of a student's function.

A claims module holds, for each function of its chapter, an `Exercise` and its claims:

    masked_softmax = Exercise(reference.masked_softmax, read=..., hints=(...))

    @masked_softmax.claim("masked keys get weight exactly 0", points=2)
    def _(probe, rng):
        probe.equals(scores, allowed)            # as the reference, on this input
        weights = probe(scores, allowed)         # or: call it, and look at the result
        if weights[~allowed].any():
            probe.fail("a masked key has weight", scores, allowed, got=weights)

The first claim is the core: without it there are no points. Cases go from small to large.
`autograde.examination` tries the claims.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from autograde.calls import SECONDS, Outcome
from autograde.values import ATOL, RTOL

if TYPE_CHECKING:
    from autograde.examination import Probe


@dataclass(frozen=True)
class Claim:
    name: str
    points: int
    body: Callable[[Probe, np.random.Generator], None]


@dataclass(eq=False)
class Exercise:
    """A function that students write, with all that the course knows about it."""

    reference: Callable
    read: tuple[str, str]  # (page#label, title of the section)
    hints: tuple[str, str, str]
    takes_arrays: bool = True  # and so could change its arguments
    quiet: bool = False  # warnings are forbidden
    exact_dtype: bool = False  # the exercise names the result's dtype
    weights_at: int | None = None  # where attention weights stand in the result; 0 alone, too
    secret: bool = False  # the expected numbers are the exercise, and stay unsaid
    many_right: bool = False  # as of a training: claims judge the result, no numbers are compared
    returns: tuple[str, ...] = ()  # names for the parts of a tuple
    broken: Callable | None = None  # what students get, to mend it; else an empty body
    steps: Callable | None = None  # what a result was made of, of `diagnosis.inside`
    uses: tuple[str, ...] = ()  # earlier exercises whose functions an answer may call
    seconds: float = SECONDS  # for one call
    rtol: float = RTOL
    atol: float = ATOL
    claims: list[Claim] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def module(self) -> str:
        """The name that a chapter's modules share, such as "ch03_causal_mask"."""
        return self.reference.__module__.rpartition(".")[2]

    @property
    def chapter(self) -> str:
        """The name of chapter and assignment, such as "03-causal-mask"."""
        return _chapter(self.module)

    @property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.reference).parameters)

    @property
    def points(self) -> int:
        return sum(claim.points for claim in self.all_claims())

    def claim(self, name: str, points: int = 1) -> Callable:
        """Decorator: add a claim, a sentence that is true of every right answer."""

        def add(body: Callable) -> Callable:
            self.claims.append(Claim(name, points, body))
            return body

        return add

    def side_effect(self, outcome: Outcome, limit: int | None = None) -> str:
        """What a call did besides returning that it should not.

        "changed" (an argument), "hungry" (held more than `limit` bytes), "warned" or "".
        """
        if outcome.changed:
            return "changed"
        if outcome.exceeds(limit):
            return "hungry"
        return "warned" if self.quiet and outcome.warned else ""

    def all_claims(self) -> list[Claim]:
        """The claims as written, then those that are made for a whole kind of exercise."""
        return self.claims + [QUIET] * self.quiet + [UNTOUCHED] * self.takes_arrays


def _untouched(probe: Probe, rng: np.random.Generator) -> None:
    names = probe.exercise.parameters
    for record in probe.records:
        for index in record.outcome.changed:
            probe.fail(
                f"the call changed its argument `{names[index]}`; work on a copy",
                *record.args,
                **record.kwargs,
            )


def _quiet(probe: Probe, rng: np.random.Generator) -> None:
    for record in probe.records:
        if record.outcome.warned:
            detail = f"the call warned: {record.outcome.warned[0]}"
            probe.fail(detail, *record.args, **record.kwargs)


QUIET = Claim("no warning is raised", 1, _quiet)
UNTOUCHED = Claim("the arguments are left as they were", 1, _untouched)


def _modules() -> dict[str, str]:
    """{chapter: its claims module}, in the order of the book."""
    import autograde.claims

    names = sorted(info.name for info in pkgutil.iter_modules(autograde.claims.__path__))
    return {_chapter(name): name for name in names if name.startswith("ch")}


@cache
def exercises_of(chapter: str) -> tuple[Exercise, ...]:
    """The exercises of one chapter; none where there is no such chapter, or no PyTorch for it.

    Only that chapter's claims are imported: those of others may take a second, with PyTorch.
    """
    name = _modules().get(chapter)
    if name is None:
        return ()
    try:
        module = importlib.import_module(f"autograde.claims.{name}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return ()
    return tuple(value for value in vars(module).values() if isinstance(value, Exercise))


@cache
def chapters() -> dict[str, list[Exercise]]:
    """Every chapter's exercises, in the order of the book and of the claims modules.

    A chapter whose library is not installed (torch in a browser) is left out.
    """
    found = {chapter: [*exercises_of(chapter)] for chapter in _modules()}
    return {chapter: there for chapter, there in found.items() if there}


def exercises() -> Iterator[Exercise]:
    for chapter in chapters().values():
        yield from chapter


def find(name: str, chapter: str = "") -> Exercise:
    """The exercise of that function name, or `LookupError` with the names there are.

    chapter: where to look first.
    """
    for exercise in exercises_of(chapter):
        if exercise.name == name:
            return exercise
    known = {exercise.name: exercise for exercise in exercises()}
    if name not in known:
        raise LookupError(f"no exercise is called {name!r}; the exercises are {', '.join(known)}")
    return known[name]


def _chapter(module: str) -> str:
    return module.removeprefix("ch").replace("_", "-")
