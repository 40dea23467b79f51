"""Chapter 10 to play with: a softmax that reads its scores block by block."""

from __future__ import annotations

import numpy as np

from autograde.figures.play import Play, text, texts
from autograde.reference.ch10_memory import merge_softmax

POWERS = np.array([1.0, 3, 6, 2])  # e^s of the chapter's four keys
SCORES, VALUES = np.log(POWERS), np.array([8.0, 4, 2, 6])
BLOCKS = (1, 2, 4)


def play() -> Play:
    """For each block size the state before and after every block."""
    data = {
        "powers": texts(POWERS),
        "scores": texts(SCORES),
        "values": texts(VALUES),
        "blocks": {str(size): walk(size) for size in BLOCKS},
    }
    rows = []
    for size in (2, 1):
        for number, step in enumerate(data["blocks"][str(size)]):
            if number:
                rows.append([f"{size}", f"{number}", *step["factors"], *step["state"], step["out"]])
    head = ["keys in a block", "block", "old state times", "block times", "m", "ℓ", "o", "o / ℓ"]
    return Play("A softmax, block by block", data, head, rows, (548, 612))


def state_of(scores, values):
    """(m, l, o) of one block of keys, for one query and values of one number."""
    m = scores.max()
    e = np.exp(scores - m)
    return np.array([m]), np.array([e.sum()]), np.array([[e @ values]])


def walk(size: int) -> list[dict]:
    """The empty state, then one entry for each block that is merged in."""
    state = np.array([-np.inf]), np.zeros(1), np.zeros((1, 1))
    steps = [describe(state, [], None, None)]
    for start in range(0, len(SCORES), size):
        keys = slice(start, start + size)
        block, before = state_of(SCORES[keys], VALUES[keys]), state
        state = merge_softmax(before, block)
        terms = np.exp(SCORES[: start + size] - state[0])  # each key's share of l by now
        steps.append(describe(state, terms, before, block))
    return steps


def describe(state, terms, before, block) -> dict:
    """Texts of a state, of what it was merged from, and of the two factors."""
    m, total, o = (float(part.squeeze()) for part in state)
    shown = {
        "state": texts([m, total, o]),
        "terms": texts(terms),
        "out": text(o / total) if total else "–",
    }
    if block is None:
        return shown
    return shown | {
        "before": texts([part.squeeze() for part in before]),
        "block": texts([part.squeeze() for part in block]),
        "factors": [text(np.exp(part[0] - state[0])[0]) for part in (before, block)],
    }
