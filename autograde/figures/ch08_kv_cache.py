"""Pictures that only chapter 8 draws. They follow the rules of `autograde.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import (
    BLUE,
    CARD,
    GREY,
    HATCH,
    INK,
    VERMILION,
    WIDEST,
    blue,
    cell,
    grid,
    panels,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def show_probabilities(
    p: Float[np.ndarray, " vocab"],
    labels: Sequence[str],
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw one horizontal bar for each token, with its probability beside it.

    Parameters
    ----------
    p: probabilities, in the order in which they are to stand, from the top.
    labels: the tokens.
    """
    if ax is None:
        ax = panels(1, 1, width=2.6)[1][0]
    for row, probability in enumerate(p):
        ax.barh(row, probability, color=BLUE, edgecolor=INK, height=0.7, gid=f"bar {row}")
        ax.text(probability + 0.03, row, f"{probability:.2f}", color=INK, fontsize=8, va="center")
    ax.set_yticks(range(len(p)), [str(label) for label in labels])
    ax.set(xlim=(0, 1.28), ylim=(len(p) - 0.4, -0.6), xticks=[], facecolor="white")
    ax.tick_params(colors=INK, labelsize=8, length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_color(INK)
    if title:
        ax.set_title(title, color=INK, fontsize=9)
    return ax.figure


def show_cuts(
    rows: Mapping[str, tuple[Float[np.ndarray, " vocab"], int, float | None]],
    labels: Sequence[str],
) -> Figure:
    """Draw each row as a bar of length 1, cut into the tokens, the most likely on the left.

    A token on blue is kept, one on hatched grey is dropped. A dashed line marks top_p.

    Parameters
    ----------
    rows: name -> (probabilities, the largest first; how many are kept; top_p or None).
    labels: the tokens in that order; each is written where there is room.
    """
    _, (ax,) = panels(1, 1, WIDEST, 0.62 * len(rows) + 0.25)
    for row, (name, (p, kept, top_p)) in enumerate(rows.items()):
        left = 0.0
        ax.text(0, row - 0.36, name, color=INK, fontsize=9, va="bottom")
        for token, share in enumerate(p):
            stays = token < kept
            ax.barh(
                row, share, left=left, height=0.5, lw=0.8, gid=f"{row} {token} {stays}",
                color=BLUE if stays else GREY, hatch=None if stays else "////",
                edgecolor="white" if stays else HATCH,
            )  # fmt: skip
            if share > 0.026 * len(labels[token]) + 0.01:
                box = None if stays else {"facecolor": GREY, "edgecolor": "none", "pad": 1}
                ax.text(
                    left + share / 2, row, labels[token], ha="center", va="center", fontsize=8,
                    color="white" if stays else INK, bbox=box,
                )  # fmt: skip
            left += share
        if top_p is not None:
            ax.plot([top_p] * 2, [row - 0.33, row + 0.33], color=VERMILION, lw=2, ls="--")
            ax.text(
                top_p, row - 0.36, f"top_p = {top_p:g}", color=INK, fontsize=8, va="bottom",
                ha="center",
            )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(len(rows) - 0.65, -0.75), facecolor=CARD)
    ax.axis("off")
    return ax.figure


STATES = {
    "new": {"face": BLUE, "mark": "●", "ink": "white"},
    "again": {"face": VERMILION, "mark": "✕", "frame": 2.5},
    "kept": {"face": blue(0.25), "mark": "○"},
    "none": {"face": GREY, "hatch": "////"},
}


def show_states(
    states: Sequence[Sequence[str]],
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    title: str = "",
    row_axis: str = "step",
    column_axis: str = "token",
    ax: Axes | None = None,
) -> Figure:
    """Draw what happens to each token in each step.

    Dot on blue = "new", computed for the first time; cross on orange = "again", computed
    once more; circle on pale blue = "kept", read from the cache; hatched grey = "none".

    Parameters
    ----------
    states: rows of these four words.
    row_names, column_names: 0, 1, 2, ... when None.
    """
    shape = len(states), len(states[0])
    ax = grid(shape, row_names, column_names, title, ax, row_axis, column_axis)
    for row, column in np.ndindex(*shape):
        state = states[row][column]
        cell(ax, row, column, state, **STATES[state])
    return ax.figure


def show_growth(
    x: Float[np.ndarray, " point"],
    measured: Mapping[str, Float[np.ndarray, " point"]],
    formula: Mapping[str, Float[np.ndarray, " point"]],
    x_label: str,
    y_label: str,
    log: str = "xy",
    legend: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draw measurements as marks, and over them formulas as lines, of one colour each pair.

    Parameters
    ----------
    x: positions of the points.
    measured, formula: name -> values at these positions; the same names in both.
    log: which axes are logarithmic: "", "x", "y" or "xy".
    """
    if ax is None:
        ax = panels(1, 1, height=2.9)[1][0]
    looks = [(BLUE, "-", "o"), (VERMILION, "--", "s"), (INK, ":", "^")]
    for (name, y), (colour, dash, marker) in zip(measured.items(), looks, strict=False):
        ax.plot(x, formula[name], color=colour, ls=dash, lw=1.5, label=f"{name}: formula")
        ax.plot(x, y, color=colour, ls="", marker=marker, ms=6, label=f"{name}: measured")
    if "x" in log:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if "y" in log:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_facecolor("white")
    ax.set_xlabel(x_label, color=INK)
    ax.set_ylabel(y_label, color=INK)
    ax.tick_params(which="both", colors=INK)
    ax.grid(color="#dddddd", lw=0.6)
    if legend:
        ax.legend(
            fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False,
            labelcolor=INK,
        )  # fmt: skip
    return ax.figure
