"""Pictures that only chapter 6 draws. They follow the rules of `autograde.figures`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import BLUE, CARD, GREY, HATCH, INK, VERMILION, WIDEST, panels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STREAM, ASIDE = 2.7, 7.0  # where the stream runs, and what reads from it


def show_architecture() -> Figure:
    """Draw the decoder: the stream from the embeddings up to the logits, and one block."""
    from matplotlib.patches import FancyBboxPatch

    (ax,) = panels(1, 1, WIDEST, 6.6)[1]
    ax.set(xlim=(0, 10), ylim=(0, 16.2), facecolor=CARD)
    ax.axis("off")
    frame = FancyBboxPatch(
        (1.5, 4.15), 8.3, 7.75, boxstyle="round,pad=0,rounding_size=0.4",
        facecolor="white", edgecolor=INK, ls="--", lw=1, gid="block",
    )  # fmt: skip
    ax.add_patch(frame)
    _say(ax, 9.6, 11.45, "a block,\nn_layers times", ha="right")
    _say(ax, STREAM, 0.35, "token ids")
    _say(ax, ASIDE, 0.35, "positions 0, 1, 2, …")
    _line(ax, (STREAM, 0.7), (STREAM, 1.0))
    _line(ax, (STREAM, 1.6), (STREAM, 15.35), thick=True)
    _line(ax, (ASIDE, 0.7), (ASIDE, 3.2), (STREAM + 0.3, 3.2))
    _part(ax, STREAM, 1.6, "token_\nembedding", "white", width=3.0)
    _part(ax, ASIDE, 1.6, "position_\nembedding", "white", width=3.2)
    _plus(ax, 3.2)
    for low, norm, layer, text in (
        (5.0, "norm 1", "attention", "causal attention,\nn_heads heads"),
        (8.6, "norm 2", "mlp", "MLP: w_up,\nGELU, w_down"),
    ):
        _line(ax, (STREAM, low), (ASIDE - 1.4, low))
        _line(ax, (ASIDE, low), (ASIDE, low + 2.5), (STREAM + 0.3, low + 2.5))
        _part(ax, ASIDE, low, norm, GREY, width=2.8, height=0.8)
        _part(ax, ASIDE, low + 1.3, text, BLUE, width=4.4, ink="white", name=layer)
        _plus(ax, low + 2.5)
    _part(ax, STREAM, 12.6, "last norm", GREY, width=2.9, height=0.8)
    _part(ax, STREAM, 14.1, "@ token_\nembedding.T", "white", width=3.0)
    _say(ax, STREAM, 15.75, "logits (seq, vocab)")
    _line(ax, (1.15, 1.6), (0.55, 1.6), (0.55, 14.1), (1.15, 14.1), dashed=True)
    _say(ax, 0.3, 8.0, "the same matrix (tied)", rotation=90)
    _say(ax, 2.2, 8.0, "the stream (seq, d_model)", rotation=90)
    return ax.figure


def _say(ax, x, y, text, **how):
    ax.text(x, y, text, **{"ha": "center", "va": "center", "color": INK, "fontsize": 9, **how})


def _part(ax, x, y, text, face, width, height=1.2, ink=INK, name=""):
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height,
        boxstyle="round,pad=0,rounding_size=0.2", facecolor=face, edgecolor=INK, lw=1,
        gid=name or text.replace("\n", ""), zorder=3,
    )  # fmt: skip
    ax.add_patch(box)
    ax.text(x, y, text, ha="center", va="center", color=ink, fontsize=9, zorder=4)


def _plus(ax, y):
    from matplotlib.patches import Circle

    ax.add_patch(Circle((STREAM, y), 0.3, facecolor="white", edgecolor=INK, zorder=3, gid="plus"))
    ax.text(STREAM, y - 0.02, "+", ha="center", va="center", color=INK, fontsize=12, zorder=4)


def _line(ax, *points, thick=False, dashed=False):
    """A path with an arrow at its end."""
    for start, end in pairwise(points[:-1]):
        ax.plot(*zip(start, end, strict=True), color=INK, lw=1, ls="--" if dashed else "-")
    ax.annotate(
        "", points[-1], points[-2],
        arrowprops={"arrowstyle": "-|>", "color": VERMILION if thick else INK,
                    "lw": 3 if thick else 1, "ls": "--" if dashed else "-",
                    "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14 if thick else 10},
    )  # fmt: skip


def show_clocks(
    frequencies: Sequence[float], positions: Sequence[int], labels: Sequence[str]
) -> Figure:
    """Draw how far each pair of dimensions has turned at each position: a dial for each pair.

    Parameters
    ----------
    frequencies: radians for each position, one for each pair.
    positions: integers, ascending; a hand for each. Where the hands are too close for all
        numbers, the first and the last have theirs.
    labels: what stands above the dials.
    """
    from matplotlib.patches import Circle

    figure, axes = panels(len(frequencies), columns=2, height=2.2)
    for ax, frequency, label in zip(axes, frequencies, labels, strict=True):
        ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
        ax.axis("off")
        ax.add_patch(Circle((0, 0), 1, facecolor="white", edgecolor=HATCH))
        ax.set_title(label, color=INK, fontsize=10)
        apart = 2 * abs(np.sin(np.diff(positions) * frequency / 2)).min(initial=2)
        for position in positions:
            x, y = np.cos(position * frequency), np.sin(position * frequency)
            ax.plot([0, x], [0, y], color=BLUE, lw=1.6, gid=f"hand {position}")
            if apart > 0.2 or position in (positions[0], positions[-1]):
                ax.text(1.2 * x, 1.2 * y, str(position), color=INK, fontsize=9, ha="center",
                        va="center" if apart > 0.2 else "top" if y <= 0 else "bottom")  # fmt: skip
    return figure


def show_heat(
    values: Float[np.ndarray, "row column"],
    row_axis: str,
    column_axis: str,
    title: str = "",
    bar: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draw a large table as an image, from white (smallest) to dark blue (largest).

    Parameters
    ----------
    row_axis, column_axis: what the rows and columns are; both count from 0.
    bar: draw the scale beside it.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        ax = panels(1, 1, height=3.2)[1][0]
    shades = LinearSegmentedColormap.from_list("blue", ["white", BLUE, "#0b2742"])
    values = np.asarray(values)
    square = values.shape[0] == values.shape[1]
    image = ax.imshow(
        values, cmap=shades, aspect="equal" if square else "auto", interpolation="nearest"
    )
    if bar:
        scale = ax.figure.colorbar(image, ax=ax, location="bottom", shrink=0.9)
        scale.locator = MaxNLocator(4)
        scale.update_ticks()
        scale.ax.tick_params(colors=INK, labelsize=8)
        scale.outline.set_visible(False)
    ax.set_xlabel(column_axis, color=INK, fontsize=9)
    ax.set_ylabel(row_axis, color=INK, fontsize=9)
    ax.tick_params(colors=INK, labelsize=8)
    if title:
        ax.set_title(title, color=INK, fontsize=10)
    return ax.figure
