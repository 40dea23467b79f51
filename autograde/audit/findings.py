"""What the exam says of each exercise: as data, and as text."""

from __future__ import annotations

import hashlib
import inspect
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from autograde.audit.exam import Sat, Tried, sit, try_mutants
from autograde.audit.mutants import helpers
from autograde.bank import correct_variants, misconceptions
from autograde.checking import CHECK_SEEDS
from autograde.examination import examine, local
from autograde.exercise import Exercise, find

SLICES = 4  # of the mutants of one exercise, so that a long one does not keep all others waiting


@dataclass
class Findings:
    """The results of one exercise's exam."""

    exercise: Exercise
    sat: list[Sat] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    seconds: float = 0.0  # of a check of the reference

    @property
    def wrong(self) -> list[Sat]:
        return [s for s in self.sat if not s.right]

    @property
    def right(self) -> list[Sat]:
        return [s for s in self.sat if s.right]

    @property
    def survivors(self) -> list[Tried]:
        """Mutants that are wrong on an input that was found, and that the checks let pass."""
        return [t for t in self.tried if t.separated_by and not t.accepted]

    def faults(self) -> Iterator[str]:
        """What the grader of this exercise got wrong, a sentence each."""
        name = self.exercise.name
        for each in self.sat:
            if each.right and not each.passed:
                yield f"{name}: the right answer {each.answer} is rejected"
            elif not each.right and not each.rejected:
                yield f"{name}: the wrong answer {each.answer} passes"
            elif not each.well:
                instead = f"as {each.named}" if each.named else "as none"
                yield f"{name}: the wrong answer {each.answer} is named {instead}"
        for each in self.survivors:
            yield f"{name}: a mutant passes: {each.change}. It differs at {each.separated_by}"

    def claims(self) -> list[dict[str, Any]]:
        """Each claim, how many wrong answers of the bank it rejects, and how many it alone
        rejects. (What no claim but the first is reached by says nothing of the others.)"""
        rejects = Counter(name for each in self.wrong for name in each.failed)
        alone = Counter(each.failed[0] for each in self.wrong if len(each.failed) == 1)
        return [
            {
                "claim": c.name,
                "points": c.points,
                "rejects": rejects[c.name],
                "alone": alone[c.name],
            }
            for c in self.exercise.all_claims()
        ]

    def data(self) -> dict[str, Any]:
        """What a page or a program needs of it; without "mutants" if none was tried."""
        data = {
            "chapter": self.exercise.chapter,
            "exercise": self.exercise.name,
            "wrong": {
                "forms": len(self.wrong),
                "distinct": len({s.wanted for s in self.wrong}),
                "rejected": sum(s.rejected for s in self.wrong),
                "named": sum(s.well for s in self.wrong),
            },
            "right": {"all": len(self.right), "accepted": sum(s.passed for s in self.right)},
            "banks": banks(self.exercise),
            "claims": self.claims(),
            "check_seconds": round(self.seconds, 3),
            "faults": list(self.faults()),
        }
        if self.tried:
            data["mutants"] = {
                "checks": checks(self.exercise),
                "all": len(self.tried),
                "killed": sum(bool(t.killed_by) for t in self.tried),
                "survived": len(self.survivors),
                "accepted": [
                    {"change": t.change, "reason": t.accepted} for t in self.tried if t.accepted
                ],
                "believed_equivalent": [
                    {"change": t.change, "inputs": t.inputs} for t in self.tried if t.equivalent
                ],
            }
        return data


def banks(exercise: Exercise) -> str:
    """A hash of the names of all answers in the banks: which ones have sat the exam?"""
    return _hash(answer.id for answer in misconceptions(exercise) + correct_variants(exercise))


def checks(exercise: Exercise) -> str:
    """A hash of the reference and of its claims: what are the figures of its mutants about?"""
    functions = [exercise.reference, *helpers(exercise.reference)]
    functions += [claim.body for claim in exercise.claims]
    return _hash(map(inspect.getsource, functions))


def _hash(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def audit(
    exercises: Iterable[Exercise],
    jobs: int | None = None,
    with_mutants: bool = True,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Findings]:
    """Put the banks and the mutants of these exercises to their checks, in `jobs` processes."""
    import_module("torch._dynamo")  # late, in a timed call, the import could be cut off halfway
    found = {exercise.name: Findings(exercise) for exercise in exercises}
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        tasks: list[Future] = []
        for name in found:
            if with_mutants:
                tasks += [pool.submit(try_mutants, name, i, SLICES) for i in range(SLICES)]
            answers = misconceptions(find(name)) + correct_variants(find(name))
            tasks += [pool.submit(sit, name, answer.id) for answer in answers]
        for done, task in enumerate(as_completed(tasks), start=1):
            result = task.result()
            for each in result if isinstance(result, list) else [result]:
                part = found[each.exercise]
                (part.tried if isinstance(each, Tried) else part.sat).append(each)
            progress(done, len(tasks))
    for each in found.values():
        each.seconds = _seconds(each.exercise)
        each.sat.sort(key=lambda s: s.answer)
        each.tried.sort(key=lambda t: t.change)
    return list(found.values())


def _seconds(exercise: Exercise) -> float:
    """How long a student waits for a check of a right answer, imports done; of three times the
    shortest, for nothing but other work makes one longer."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        examine(exercise, local(exercise.reference), CHECK_SEEDS)
        taken.append(time.perf_counter() - start)
    return min(taken)


def text(found: list[Findings]) -> str:
    """A table, a line an exercise, and what is wrong below it."""
    head = ("exercise", "wrong", "rejected", "named", "right", "accepted", "mutants", "killed")
    head += ("equal", "check s")
    rows = [head, *(_row(each) for each in found)]
    rows.append(("all", *(_sum(column) for column in zip(*(r[1:] for r in rows[1:]), strict=True))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        row[0].ljust(widths[0])
        + "".join(f"  {c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    for each in found:
        idle = [c["claim"] for c in each.claims() if not c["rejects"]]
        lone = [c["claim"] for c in each.claims() if c["alone"] == 1]
        lines += [f"{each.exercise.name}: no wrong answer needs the claim “{c}”" for c in idle]
        lines += [f"{each.exercise.name}: a single one needs the claim “{c}”" for c in lone]
    faults = [fault for each in found for fault in each.faults()]
    return "\n".join([*lines, *faults, f"{len(faults) or 'no'} faults found"])


def _row(each: Findings) -> tuple[str, ...]:
    data = each.data()
    wrong, right = data["wrong"], data["right"]
    counts = (wrong["forms"], wrong["rejected"], wrong["named"], right["all"], right["accepted"])
    counts += (len(each.tried), sum(bool(t.killed_by) for t in each.tried))
    counts += (sum(t.equivalent for t in each.tried),)
    return (each.exercise.name, *map(str, counts), f"{each.seconds:.2f}")


def _sum(column: tuple[str, ...]) -> str:
    return f"{sum(map(float, column)):.2f}" if "." in column[0] else str(sum(map(int, column)))
