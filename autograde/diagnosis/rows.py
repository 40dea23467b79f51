"""Which rows of attention are wrong: those of queries that may see no key, one, or several?

A query that may see a single key gives it all the weight, whatever the scores are. So the rows
that are wrong tell weights that are wrong from what is done with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autograde.diagnosis.arguments import known_arguments
from autograde.examination import Record
from autograde.exercise import Exercise
from autograde.values import differing, is_tensor, plain

Wrong = tuple[Any, Any, Record]  # (got, expected, where)
ENOUGH = 2  # results that must have such a row

NOTHING = (
    "It is wrong even in the rows of queries that may see no key, where no weight should play "
    "a part."
)
SINGLE = (
    "It is wrong even in the rows of queries that may see a single key, which gets all the "
    "weight, whatever the scores are."
)
SEVERAL = (
    "The rows of queries that may see a single key are always right, those of queries that may see "
    "several are not: look first at how the weights are made."
)


def by_keys(exercise: Exercise, wrong: list[Wrong]) -> str:
    """What the number of keys that a query may see has to do with its row being wrong; or ""."""
    kinds: dict[int, list[bool]] = {0: [], 1: [], 2: []}
    for got, want, record in wrong:
        keys = _keys(exercise, record, want)
        if keys is None or np.shape(got) != np.shape(want):
            return ""
        bad = differing(got, want).any(axis=-1)
        for kind, rows in kinds.items():
            there = np.minimum(keys, 2) == kind
            if there.any():
                rows.append(bool(bad[there].any()))
    nothing, single, several = kinds.values()
    if len(nothing) >= ENOUGH and all(nothing) and any(several):
        return NOTHING
    if len(single) >= ENOUGH and all(single) and any(several):
        return SINGLE
    if len(single) >= ENOUGH and not any(single) and not any(nothing) and any(several):
        return SEVERAL
    return ""


def _keys(exercise: Exercise, record: Record, want: Any) -> np.ndarray | None:
    """How many keys the query of each row may see, by a mask among the arguments."""
    known = known_arguments(exercise, record)
    masks = [value for name, value in known.items() if "allowed" in name and value is not None]
    if len(masks) != 1 or np.ndim(want) < 2:
        return None
    mask = plain(masks[0]) if is_tensor(masks[0]) else np.asarray(masks[0])
    if mask.dtype != bool or mask.ndim < 2:
        return None
    try:
        return np.broadcast_to(mask.sum(axis=-1), np.shape(want)[:-1])
    except ValueError:  # it has other axes than the result
        return None
