"""Chapter 3 to play with: the shapes of masks, and what a row of them leaves to its query."""

from __future__ import annotations

import numpy as np

from autograde.figures.play import Play, texts
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax, padding_mask

MOST = 5
SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5])  # the row of the article, as on the page


def play() -> Play:
    """Masks for up to five queries and keys, and the weights of every row they can have."""
    masks = {}
    for n_query in range(1, MOST + 1):
        for n_key in range(1, MOST + 1):
            causal = causal_mask(n_query, n_key)
            masks[f"causal {n_query} {n_key}"] = rows_of(causal)
            for length in range(n_key + 1):
                padding = np.broadcast_to(padding_mask(np.array([length]), n_key)[0], causal.shape)
                masks[f"padding {n_query} {n_key} {length}"] = rows_of(padding)
                masks[f"both {n_query} {n_key} {length}"] = rows_of(causal & padding)
    seen = sorted({row for mask in masks.values() for row in mask}, key=lambda row: (len(row), row))
    data = {
        "most": MOST,
        "scores": texts(SCORES, 1),
        "masks": masks,
        "weights": {row: texts(weights_of(row)) for row in seen},
    }
    rows = []
    for query, row in enumerate(masks["causal 3 5"]):
        weights = zip(row, data["weights"][row], strict=True)
        shown = [weight if key == "1" else "–" for key, weight in weights]
        rows.append([f"query {query}", *shown])
    head = ["weights", *(f"key {key}" for key in range(MOST))]
    return Play("Masks of every shape", data, head, rows, (440, 620))


def rows_of(allowed) -> list[str]:
    """Each row as a text, 1 = may attend."""
    return ["".join("1" if key else "0" for key in row) for row in allowed]


def weights_of(row: str):
    allowed = np.array([key == "1" for key in row])
    return masked_softmax(SCORES[: len(row)], allowed)
