"""Pictures that only chapter 2 draws. They follow the rules of `autograde.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import (
    BLUE,
    CARD,
    CELL,
    GREY,
    INK,
    WIDEST,
    blue,
    cell,
    grid,
    matrix,
    panels,
    readable_on,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def show_bars(
    heights: Float[np.ndarray, " key"],
    labels: Sequence[str],
    title: str = "",
    digits: int = 2,
    top: float | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw one bar for each key, with its number above it.

    Parameters
    ----------
    heights: numbers of at least 0.
    labels: what stands below the bars.
    digits: decimals written above the bars.
    top: the number that a bar of full height stands for; the largest when None.
    """
    if ax is None:
        ax = panels(1, 1, width=2.6)[1][0]
    heights = np.asarray(heights, dtype=float)
    bars = ax.bar(range(len(heights)), heights, color=BLUE, edgecolor=INK, width=0.7)
    for index, (bar, height) in enumerate(zip(bars, heights, strict=True)):
        bar.set_gid(f"bar {index}")
        ax.annotate(
            f"{height:.{digits}f}", (index, height), (0, 2), textcoords="offset points",
            ha="center", va="bottom", color=INK, fontsize=9,
        )  # fmt: skip
    ax.set_xticks(range(len(heights)), [str(label) for label in labels])
    top = max(heights.max(), 1e-9) if top is None else top
    ax.set(ylim=(0, 1.25 * top), yticks=[], facecolor="white")
    ax.tick_params(colors=INK, labelsize=9, length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    ax.spines["bottom"].set_color(INK)
    if title:
        ax.set_title(title, color=INK, fontsize=10)
    return ax.figure


def show_scores(
    scores: Float[np.ndarray, "query key"],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    title: str = "",
    digits: int = 1,
    largest: float | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a table of scores: the darker the blue, the larger the number in the cell.

    Parameters
    ----------
    scores: array (query, key); numbers below 0 stay white.
    digits: decimals written in the cells.
    largest: the number that gets the darkest blue; that of the table when None.
    """
    scores = matrix(scores, float)
    largest = max(scores.max(), 1e-9) if largest is None else largest
    ax = grid(scores.shape, query_labels, key_labels, title, ax)
    for query, key in np.ndindex(*scores.shape):
        face = blue(scores[query, key] / largest)
        number = f"{scores[query, key]:.{digits}f}"
        cell(ax, query, key, "score", face, mark=number, ink=readable_on(face))
    return ax.figure


def show_mix(
    weights: Float[np.ndarray, " key"],
    v: Float[np.ndarray, "key d_value"],
    labels: Sequence[str],
    digits: int = 3,
) -> Figure:
    """Draw one weighted sum: each value with its weight in front, and below the line the output.

    Parameters
    ----------
    weights: the weights of one query.
    v: the values, one row for each key.
    labels: names of the keys.
    """
    n_key, d_value = v.shape
    width = min(WIDEST, CELL * (d_value + 2) + 1.2)
    _, (ax,) = panels(1, 1, width, CELL * (n_key + 1.6) + 0.4)
    ax.set(xlim=(-1.6, d_value + 1.4), ylim=(n_key + 1.7, -0.8), aspect="equal", facecolor=CARD)
    ax.axis("off")

    def write(x, y, text, side="center"):
        ax.text(x, y, text, color=INK, fontsize=9, ha=side, va="center")

    write(0.5, -0.4, "weight")
    write(d_value / 2 + 1.4, -0.4, "value")
    for key in range(n_key):
        face = blue(weights[key])
        mark = f"{weights[key]:.{digits}f}"
        write(-0.15, key + 0.5, labels[key], "right")
        cell(ax, key, 0, "weight", face, mark=mark, ink=readable_on(face))
        write(1.2, key + 0.5, "×")
        for column in range(d_value):
            cell(ax, key, column + 1.4, "value", "white", mark=f"{v[key, column]:g}")
    ax.plot([-1.5, d_value + 1.4], [n_key + 0.2] * 2, color=INK, lw=1)
    write(0.95, n_key + 0.95, "output", "right")
    for column, number in enumerate(weights @ v):
        mark = f"{number:.{digits}f}"
        cell(ax, n_key + 0.45, column + 1.4, "output", GREY, mark=mark, frame=2)
    return ax.figure


def show_flow() -> Figure:
    """Draw the way from the input to the output of self-attention, with all shapes."""
    _, (ax,) = panels(1, 1, WIDEST, 4.4)
    ax.set(xlim=(0, 6), ylim=(-0.45, 8.2), facecolor=CARD)
    ax.axis("off")
    boxes = {  # name: (x, y, first line, shape)
        "input": (3, 7.7, "input $X$", "(seq, d_model)"),
        "q": (1, 5.8, "$Q = XW_q$", "(query, d_head)"),
        "k": (3, 5.8, "$K = XW_k$", "(key, d_head)"),
        "v": (5, 5.8, "$V = XW_v$", "(key, d_value)"),
        "scores": (2, 3.8, r"scores: $QK^\top/\sqrt{d_{\mathrm{head}}}$", "(query, key)"),
        "weights": (2, 2.0, "weights: softmax of each row", "(query, key)"),
        "output": (3.5, 0.1, "output: weights times $V$", "(query, d_value)"),
    }
    arrows = (
        "input q, input k, input v, q scores, k scores, scores weights, weights output, v output"
    )
    for arrow in arrows.split(", "):
        start, end = arrow.split()
        _connect(ax, boxes[start][:2], boxes[end][:2], arrow)
    for name, (x, y, line, shape) in boxes.items():
        given = name in ("input", "output")
        ax.text(
            x, y, f"{line}\n{shape}", ha="center", va="center", fontsize=8.5, gid=name,
            color="white" if given else INK,
            bbox={"boxstyle": "round,pad=0.35", "facecolor": BLUE if given else "white",
                  "edgecolor": INK},
        )  # fmt: skip
    return ax.figure


def _connect(ax, start, end, name):
    from matplotlib.patches import FancyArrowPatch

    ax.add_patch(
        FancyArrowPatch(
            (start[0], start[1] - 0.4), (end[0], end[1] + 0.5), arrowstyle="-|>",
            mutation_scale=12, lw=1.5, color=INK, gid=name, shrinkA=0, shrinkB=0,
        )
    )  # fmt: skip
