"""Pictures that only chapter 11 draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autograde.figures import BLUE, GREY, HATCH, INK, WIDEST, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure


def show_window(symbols: Sequence[str], start: int, block: int) -> Figure:
    """Draw a text, one window of it, and the targets, each below the token that it follows.

    Parameters
    ----------
    symbols: the tokens of the text, a letter each.
    start, block: where the window begins, and its length.
    """
    figure, (ax,) = panels(1, 1, height=1.5)
    n = len(symbols)
    for place, symbol in enumerate(symbols):
        inside = start <= place < start + block
        _box(ax, place, 0, symbol, BLUE if inside else GREY, "white" if inside else INK)
    for t in range(block):
        _box(ax, start + t, -1.5, symbols[start + t + 1], "white", INK)
        ax.annotate("", (start + t + 0.55, -0.52), (start + t + 1.4, -0.03),
                    arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.8})  # fmt: skip
    for y, name in ((0.45, "text"), (-1.05, "targets")):
        ax.text(-0.3, y, name, ha="right", va="center", color=INK, fontsize=9)
    ax.set(xlim=(-3.2, n + 0.1), ylim=(-1.6, 1.05))
    ax.set_axis_off()
    return figure


def _box(ax, x, y, text, face, ink):
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y), 0.92, 0.95, facecolor=face, edgecolor=INK, lw=0.6))
    ax.text(x + 0.46, y + 0.45, text, ha="center", va="center", color=ink, fontsize=10)


def show_ladder(losses: Mapping[str, float], axis: str) -> Figure:
    """Draw a horizontal bar for each name, from the top, with its number beside it."""
    figure, (ax,) = panels(1, 1, width=WIDEST, height=0.34 * len(losses) + 0.6)
    names, values = list(losses), list(losses.values())
    ax.barh(range(len(names)), values, color=GREY, edgecolor=HATCH, height=0.6)
    for place, value in enumerate(values):
        ax.text(value, place, f" {value:.3f}", va="center", color=INK, fontsize=8)
    low, high = min(values), max(values)
    ax.set_xlim(low - 0.5 * (high - low) - 0.01, high + 0.35 * (high - low) + 0.01)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(axis, color=INK, fontsize=9)
    ax.tick_params(colors=INK, labelsize=8, length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return figure
