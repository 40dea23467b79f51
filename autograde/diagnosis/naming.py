"""Which misconceptions explain a failed examination? One, or two of them together.

What was seen is compared with what each misconception does on the same inputs, part by part of
a result. A name must be borne out wherever its mistake shows: one input that contradicts it is
enough to drop it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from autograde import bank
from autograde.diagnosis.other_input import mistaken_on_other_input
from autograde.diagnosis.suspects import Item, Suspect, equal, parts_of
from autograde.examination import Examination, Record
from autograde.exercise import Exercise
from autograde.values import differing, size

WORST_FIRST = ("value", "changed", "hungry", "warned")
FIRST_LOOK = 12  # failed inputs that decide whether a mistake is worth a closer look
EACH = 2  # inputs that each of two mistakes must explain where the other does not show


@dataclass(frozen=True)
class Explanation:
    """What explains a failed examination: a misconception, and what there is besides, if more
    is needed: the text of another one, or how its input seems to be another."""

    first: bank.Answer
    besides: str = ""


def recognise(examination: Examination) -> bank.Answer | None:
    """The misconception that explains a failed examination best, if one does."""
    found = explanation(examination)
    return found and found.first


def explanation(examination: Examination) -> Explanation | None:
    """One misconception, or two of which neither suffices, or one on another input; or None.

    One must give what the student's function gave wherever either differs from the reference.
    (Errors of one kind with other words tell nothing; at least half must tell.) Of several the
    one that explains most wins.
    """
    records = _distinct(examination.records)
    faults = {record.fault for record in records}
    worst = next((fault for fault in WORST_FIRST if fault in faults), None)
    if worst is None or not examination.started:
        return None
    # What failed comes first and what is small before that; measuring memory is slow: last.
    records.sort(key=lambda r: (r.fault != worst, r.limit is not None, size(r.args)))
    exercise, known = examination.exercise, bank.misconceptions(examination.exercise)
    failed = _failed(records, worst, exercise)
    suspects = [Suspect(answer, exercise, records, worst) for answer in known]
    found = _alone(suspects, failed) or _together(suspects, failed)
    first, *more = dict.fromkeys(bank.canonical(exercise, answer) for answer in found) or [None]
    if first:
        return Explanation(first, more[0].text if more else "")
    other = mistaken_on_other_input(examination, known)
    return other and Explanation(bank.canonical(exercise, other[0]), other[1])


def _alone(suspects: list[Suspect], failed: set[Item]) -> list[bank.Answer]:
    best, most = [], max(len(failed) / 2, 1)
    many = len({number for number, _ in failed})
    for suspect in suspects:
        suspect.look(many, stop=True)
        enough = len(suspect.explained) >= most and (not best or len(suspect.explained) > most)
        if enough and failed <= suspect.shows and not suspect.contradicted:
            suspect.look(stop=True)  # on the inputs that were right, too
            if not suspect.contradicted:
                best, most = [suspect.answer], len(suspect.explained)
    return best


def _together(suspects: list[Suspect], failed: set[Item]) -> list[bank.Answer]:
    """Two of which each explains what the other leaves; where both show, each must be seen in
    those numbers that the other leaves alone."""
    if len({number for number, _ in failed}) < 2 * EACH:
        return []
    for suspect in suspects:
        suspect.look(FIRST_LOOK)
    likely = [suspect for suspect in suspects if suspect.explained]
    for suspect in likely:
        suspect.look()
    best, most = [], 0
    for a, b in combinations(likely, 2):
        both = a.shows & b.shows
        explained = a.explained | b.explained
        fits = (
            min(len(a.inputs - b.shown_in), len(b.inputs - a.shown_in)) >= EACH
            and failed <= explained | both
            and (a.contradicted | b.contradicted) <= both & failed
            and 2 * len(explained) >= len(failed)
            and all(_mixed(a, b, item) for item in both - (a.explained & b.explained))
        )
        if fits and len(explained) > most:
            pair = sorted((a, b), key=lambda suspect: -len(suspect.explained))
            best, most = [suspect.answer for suspect in pair], len(explained)
    return best


def _mixed(a: Suspect, b: Suspect, item: Item) -> bool:
    """Where both show, is every number wrong in the way of the one that alone changes it?"""
    record = a.records[item[0]]
    seen, want = parts_of(record.outcome, record)[item[1]]
    one, other = a.values.get(item), b.values.get(item)
    arrays = [np.asarray(value) for value in (seen, want, one, other)]
    if any(x.shape != arrays[0].shape or x.dtype.kind not in "biuf" for x in arrays):
        return False
    seen, want, one, other = arrays
    by_one, by_other = differing(one, want), differing(other, want)
    wrong = (differing(seen, one) & ~by_other) | (differing(seen, other) & ~by_one)
    return not wrong.any()


def _distinct(records: tuple[Record, ...]) -> list[Record]:
    """Each input and its outcome once: many are tried with every seed."""
    return list({(r.given or id(r), r.came): r for r in records}.values())


def _failed(records: list[Record], worst: str, exercise: Exercise) -> set[Item]:
    """The parts of results that are wrong in the worst way that occurs."""
    return {
        (number, part)
        for number, record in enumerate(records)
        if record.fault == worst
        for part, (got, want) in enumerate(parts_of(record.outcome, record))
        if worst != "value" or not (record.outcome.returned and equal(exercise, got, want))
    }
