"""How is what came back related to what was expected, in every result that is wrong?

Each relation is tried on all pairs (got, expected) of arrays or numbers that differ, and is
said only if it holds for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograde.diagnosis.exact import EXACT
from autograde.diagnosis.pairs import Holds, Pair, agree, finite, holds_throughout
from autograde.diagnosis.rough import ROUGH
from autograde.diagnosis.weak import WEAK

BOTH_WAYS = "Some entries are True that should be False, and some the other way round."


def relation(pairs: list[Pair], right: Sequence[Pair] = ()) -> str:
    """The first relation, in words, that every pair has; or "".

    right: pairs that agree. Where the relation does not hold for these, too, the words say so.
    """
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    if not pairs or any(array.dtype.kind not in "biuf" for pair in pairs for array in pair):
        return ""
    with np.errstate(all="ignore"):
        if not _telling(pairs):
            return ""
        if any(agree(*pair) for pair in pairs):  # of another dtype, or less exact than asked for
            only_dtype = all(agree(*pair) for pair in pairs) and _others(pairs)
            return "The numbers are right; only their dtype is not." if only_dtype else ""
        exact = (words for words, holds in EXACT.items() if all(holds(*pair) for pair in pairs))
        words = next(exact, "")
        if words:
            right = [(np.asarray(got), np.asarray(want)) for got, want in right]
            always = all(EXACT[words](*pair) for pair in right if pair[1].size)
            return words if always else only_there(words)
        return _by_a_number(pairs)


def only_there(sentence: str) -> str:
    """A sentence about results that is true of the wrong ones only."""
    return f"Where it is wrong, {sentence[0].lower()}{sentence[1:]}"


def rough_relation(pairs: list[Pair]) -> str:
    """The first relation that says less, but holds for every pair; or ""."""
    return _first(ROUGH, pairs) or _both_ways(pairs)


def weak_relation(pairs: list[Pair]) -> str:
    """The first one that says next to nothing; or ""."""
    return _first(WEAK, pairs)


def _first(relations: dict[str, Holds], pairs: list[Pair]) -> str:
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    if not pairs or any(array.dtype.kind not in "biuf" for pair in pairs for array in pair):
        return ""
    with np.errstate(all="ignore"):
        if not _telling(pairs) or any(agree(*pair) for pair in pairs):
            return ""
        found = (w for w, holds in relations.items() if holds_throughout(holds, pairs))
        return next(found, "")


def _both_ways(pairs: list[Pair]) -> str:
    pairs = [(np.asarray(got), np.asarray(want)) for got, want in pairs]
    bools = all(a.dtype == bool == b.dtype and a.shape == b.shape for a, b in pairs)
    return BOTH_WAYS if pairs and bools else ""


def _telling(pairs: list[Pair]) -> bool:
    """Is there enough to tell a relation from chance: an array of some numbers, or some results?"""
    sizes = [want.size for _, want in pairs]
    return max(sizes) > 1 or len({(got.tobytes(), want.tobytes()) for got, want in pairs}) > 2


def _others(pairs: list[Pair]) -> bool:
    return all(got.dtype.kind != want.dtype.kind for got, want in pairs)


def _by_a_number(pairs: list[Pair]) -> str:
    """A factor or a difference that is the same everywhere."""
    ratios = [ratio(got, want) for got, want in pairs]
    if ratios[0] and all(each and abs(each / ratios[0] - 1) < 1e-3 for each in ratios):
        if abs(ratios[0] + 1) < 1e-3:
            return "Every number has the opposite sign."
        return f"Every number is {ratios[0]:.4g} times the expected one."
    offsets = [_offset(got, want) for got, want in pairs]
    if offsets[0] and all(offset and abs(offset / offsets[0] - 1) < 1e-3 for offset in offsets):
        more = "larger" if offsets[0] > 0 else "smaller"
        return f"Every number is {more} by {abs(offsets[0]):.4g} than the expected one."
    return ""


def ratio(got: np.ndarray, want: np.ndarray) -> float:
    """The factor between two arrays, if there is one, and it is far from 0 and 1; else 0."""
    got, want = finite(got, want)
    used = np.abs(want) > 0
    if not used.any():
        return 0.0
    factor = float(np.median(got[used] / want[used]))
    plain = abs(factor) > 1e-4 and abs(factor - 1) > 0.01
    return factor if plain and agree(got.astype(float), factor * want) else 0.0


def _offset(got: np.ndarray, want: np.ndarray) -> float:
    got, want = finite(got, want)
    if not want.size:
        return 0.0
    offset = float(np.median(got.astype(float) - want))
    return offset if abs(offset) > 1e-4 and agree(got.astype(float), want + offset) else 0.0
