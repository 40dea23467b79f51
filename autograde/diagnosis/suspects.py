"""Misconceptions as suspects: how far does each agree with what was seen?

A result is compared part by part: one part of a tuple may be right and another wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from autograde import bank
from autograde.calls import Outcome
from autograde.diagnosis.other_input import has_fractions
from autograde.examination import Record
from autograde.exercise import Exercise
from autograde.recalled import recalled
from autograde.values import same

Item = tuple[int, int]  # (number of the record, part of its result)


class Suspect:
    """A misconception, and how far it agrees with what was seen.

    shows: where it differs from the reference. explained: where what was seen is what it does.
    contradicted: where it is not. values: what it gives there.
    """

    def __init__(self, answer: bank.Answer, exercise: Exercise, records: list[Record], worst: str):
        self.answer, self.exercise, self.records = answer, exercise, records
        self.worst, self.looked = worst, 0
        self.shows, self.explained, self.contradicted = set(), set(), set()
        self.values: dict[Item, Any] = {}

    @property
    def shown_in(self) -> set[int]:
        return {number for number, _ in self.shows}

    @property
    def inputs(self) -> set[int]:
        """Those with a result that it explains and that nobody gives by chance: of fractions."""
        return {item[0] for item in self.explained if has_fractions(self.values[item])}

    def look(self, upto: int | None = None, stop: bool = False) -> None:
        """Compare further records; stop: at the first that contradicts."""
        for number in range(self.looked, len(self.records[:upto])):
            if stop and self.contradicted:
                return
            self.looked = number + 1
            for part, fault, alike, value in self._compared(self.records[number]):
                item = number, part
                self.shows.add(item)
                self.values[item] = value
                if alike is False:
                    self.contradicted.add(item)
                elif alike and fault == self.worst:
                    self.explained.add(item)

    def _compared(self, record: Record) -> Iterator[tuple[int, str, bool | None, Any]]:
        """(part, fault, does what was seen look like it?, value) of each part in which it shows.

        None: both raised an error of one kind, with other words, or both ran out of time: no
        sign either way.
        """
        exercise, seen = self.exercise, record.outcome
        agree = partial(equal, exercise)
        theirs = recalled(
            self.answer.function, record.args, record.kwargs, _limited(record), record.given
        )
        unknown = "cut off" in (theirs.how, seen.how)  # only the memory can be compared
        right = unknown or (theirs.returned and agree(theirs.value, record.expected))
        if right:
            fault = exercise.side_effect(theirs, record.limit)
            if fault:
                alike = _side_effect_alike(record, theirs, fault)
                for part, _ in enumerate(parts_of(seen, record)):
                    yield part, fault, alike, None
        elif not (theirs.returned and seen.returned):
            alike = seen.how == theirs.how and seen.value == theirs.value
            # On a busy machine any call may run out of time.
            telling = seen.text == theirs.text and seen.how != "timeout"
            alike = alike and (True if telling else None)
            for part, _ in enumerate(parts_of(seen, record)):
                yield part, "value", alike, None
        else:
            yield from _values_compared(parts_of(seen, record), parts_of(theirs, record), agree)


def _values_compared(
    seen: list[tuple], theirs: list[tuple], agree: Callable
) -> Iterator[tuple[int, str, bool, Any]]:
    if len(seen) != len(theirs):
        yield from ((part, "value", False, None) for part, _ in enumerate(seen))
        return
    for part, ((got, _), (other, want)) in enumerate(zip(seen, theirs, strict=True)):
        if not agree(other, want):
            yield part, "value", agree(got, other), other


def parts_of(outcome: Outcome, record: Record) -> list[tuple]:
    """(got, expected) of each part of a tuple; of the whole, where they do not correspond."""
    got, want = outcome.value, record.expected
    fits = outcome.returned and isinstance(got, tuple) and isinstance(want, tuple)
    if fits and len(got) == len(want):
        return list(zip(got, want, strict=True))
    return [(got, want)]


def equal(exercise: Exercise, got: Any, want: Any) -> bool:
    """Do two results say the same, up to the rounding that the exercise allows?"""
    return same(got, want, exercise.exact_dtype, exercise.rtol, exercise.atol)


def _limited(record: Record) -> bool:
    return record.limit is not None


def _side_effect_alike(record: Record, theirs: Outcome, fault: str) -> bool:
    if fault == "hungry":
        return record.outcome.exceeds(record.limit)
    return getattr(record.outcome, fault) == getattr(theirs, fault)
