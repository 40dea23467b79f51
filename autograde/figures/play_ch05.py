"""Chapter 5 to play with: where every number goes when heads are split, and what they attend to."""

from __future__ import annotations

import numpy as np

from autograde.figures.play import Play, texts
from autograde.reference.ch03_causal_mask import causal_mask, masked_attention
from autograde.reference.ch05_multi_head import merge_heads, split_heads

WORDS = ["The", "model", "predicts", "well"]
N_HEADS, D_MODEL = 2, 6


def reshape_alone(x, n_heads: int):
    """The wrong way: the shape is right, the numbers are another token's."""
    seq, d_model = x.shape
    return x.reshape(n_heads, seq, d_model // n_heads)


def play() -> Play:
    """Both ways to split: where numbers lie after each move, and each head's weights."""
    names = np.arange(len(WORDS) * D_MODEL).reshape(len(WORDS), D_MODEL)  # which is which
    rng = np.random.default_rng(2)  # the page's x and projections
    x = rng.normal(size=(4, 6))
    w_q, w_k, w_v, _ = 1.5 * rng.normal(size=(4, 6, 6)) / np.sqrt(6)
    ways = {}
    for way, split in (("split_heads", split_heads), ("reshape alone", reshape_alone)):
        q, k, v = (split(x @ w, N_HEADS) for w in (w_q, w_k, w_v))
        _, weights = masked_attention(q, k, v, causal_mask(4))
        held = split(names, N_HEADS)
        ways[way] = {
            "held": held.tolist(),  # [head][row]: numbers of x, counted row by row
            "owners": owners(held),
            "weights": [[texts(row, 2) for row in head] for head in weights],
        }
    assert np.array_equal(merge_heads(np.array(ways["split_heads"]["held"])), names)
    data = {"words": WORDS, "heads": N_HEADS, "width": D_MODEL, "ways": ways}
    rows = [
        [
            WORDS[row],
            *(numbers(ways[way]["held"][h][row]) for way in ways for h in range(N_HEADS)),
        ]
        for row in range(len(WORDS))
    ]
    head = ["row", *(f"{way}, head {h}" for way in ways for h in range(N_HEADS))]
    return Play("Where every number goes", data, head, rows, (556, 645))


def owners(held) -> list[list[list[int]]]:
    """[head][row]: the tokens whose numbers lie there."""
    return [[sorted({int(n) // D_MODEL for n in row}) for row in head] for head in held]


def numbers(row) -> str:
    """T2 is the third number of “The”."""
    return " ".join(f"{WORDS[n // D_MODEL][0]}{n % D_MODEL}" for n in row)
