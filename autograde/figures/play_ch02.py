"""Chapter 2 to play with: "I love dog" through the four steps, number by number."""

from __future__ import annotations

import numpy as np

from autograde.figures.play import Play, text, texts
from autograde.reference.ch02_self_attention import attention, scaled_scores

TOKENS = ["I", "love", "dog"]
X = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
ROWS = ["key k", "q · k", "score s", "eˢ", "weight", "weight × value"]
SUM = 3  # the column after the keys


def play() -> Play:
    """Each number of each query's way from its scores to its output, in order."""
    scores = scaled_scores(X, X)
    out, weights = attention(X, X, X)
    data = {
        "tokens": TOKENS,
        "rows": ROWS,
        "vectors": [texts(x) for x in X],
        "queries": [steps(i, scores[i], weights[i], out[i]) for i in range(len(TOKENS))],
    }
    head = ['query "I"', *(f'key "{token}"' for token in TOKENS), "sum"]
    cells = {(0, j): ", ".join(vector) for j, vector in enumerate(data["vectors"])}
    for step in data["queries"][0]:
        cells[step["row"], step["column"]] = ", ".join(step["shows"])
    rows = [[name, *(cells.get((r, c), "") for c in range(4))] for r, name in enumerate(ROWS)]
    return Play("One query, number by number", data, head, rows, (464, 500))


def steps(query: int, scores, weights, out) -> list[dict]:
    """All numbers of one query in the order of the computation; `says` how each is made.

    Each has its place (row, column), and in `from` the places of what it is made of.
    """
    e, total = np.exp(scores), np.exp(scores).sum()
    found = []

    def add(row, column, shows, says, made_of):
        shows = [shows] if isinstance(shows, str) else shows
        found.append({"row": row, "column": column, "shows": shows, "says": says, "from": made_of})

    for j, token in enumerate(TOKENS):
        terms = " + ".join(f"{a:g}·{b:g}" for a, b in zip(X[query], X[j], strict=True))
        product = text(X[query] @ X[j])
        add(1, j, product, f"“{TOKENS[query]}” · “{token}” = {terms} = {product}", [[0, j]])
    for j in range(3):
        product, score = text(X[query] @ X[j]), text(scores[j])
        add(2, j, score, f"score = {product} / √4 = {score}", [[1, j]])
    for j in range(3):
        add(3, j, text(e[j]), f"e^{text(scores[j])} = {text(e[j])}", [[2, j]])
    summed = " + ".join(texts(e))
    keys = range(3)
    add(3, SUM, text(total), f"sum = {summed} = {text(total)}", [[3, j] for j in keys])
    for j in range(3):
        says = f"weight = {text(e[j])} / {text(total)} = {text(weights[j])}"
        add(4, j, text(weights[j]), says, [[3, j], [3, SUM]])
    add(4, SUM, text(weights.sum()), "The weights of a query sum to 1.", [[4, j] for j in keys])
    for j, token in enumerate(TOKENS):
        says = f"{text(weights[j])} × the value of “{token}”, ({', '.join(texts(X[j]))})"
        add(5, j, texts(weights[j] * X[j]), says, [[4, j]])
    says = f"output of “{TOKENS[query]}” = ({', '.join(texts(out))}): add up along the line"
    add(5, SUM, texts(out), says, [[5, j] for j in keys])
    return found
