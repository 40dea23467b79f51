"""Pictures that only chapter 1 draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autograde.figures import BLUE, CARD, GREY, HATCH, INK, VERMILION, WIDEST, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def show_steps(words: Sequence[str], start: str = "<s>") -> Figure:
    """Draw teacher forcing as a strip: one panel for each word to predict, then all in one.

    Below stand the inputs: blue = read, hatched = hidden. Above, in a heavy orange frame,
    the word that must be predicted from them.

    Parameters
    ----------
    words: the sentence; the targets.
    start: the start token, which is the first input.
    """
    n = len(words)
    figure, axes = panels(n + 1, columns=1, width=WIDEST, height=0.92)
    inputs = [start, *words[:-1]]
    for step, ax in enumerate(axes[:n]):
        _strip(ax, inputs, words, read=range(step + 1), asked=[step], label=f"step {step + 1}")
    _strip(axes[n], inputs, words, read=range(n), asked=range(n), label="all at\nonce")
    return figure


def _strip(ax: Axes, inputs, targets, read: Sequence[int], asked: Sequence[int], label: str):
    ax.set(xlim=(-1.05, len(inputs) - 0.5), ylim=(-0.28, 1.28), facecolor=CARD)
    ax.axis("off")
    ax.text(-1.0, 0.5, label, color=INK, fontsize=9, va="center")
    for target in asked:
        for source in range(target + 1):
            arrow(ax, (source, 0.24), (target, 0.76), gid=f"arrow {target} {source}")
        box(ax, target, 1, targets[target], "white", VERMILION, 2.2, gid=f"target {target}")
    for place, word in enumerate(inputs):
        if place in read:
            box(ax, place, 0, word, BLUE, INK, 0.8, ink="white", gid=f"read {place}")
        else:
            box(ax, place, 0, "", GREY, HATCH, 0.8, hatch="////", gid=f"hidden {place}")


def arrow(ax: Axes, start, end, gid):
    from matplotlib.patches import FancyArrowPatch

    look = {"arrowstyle": "-|>", "mutation_scale": 10, "color": BLUE, "lw": 1.2}
    ax.add_patch(FancyArrowPatch(start, end, shrinkA=0, shrinkB=0, gid=gid, **look))


def box(ax: Axes, x, y, word, face, edge, width, ink=INK, hatch=None, gid=""):
    from matplotlib.patches import Rectangle

    box = Rectangle(
        (x - 0.43, y - 0.22), 0.86, 0.44,
        facecolor=face, edgecolor=edge, lw=width, hatch=hatch, gid=gid,
    )  # fmt: skip
    ax.add_patch(box)
    ax.text(x, y, word, color=ink, fontsize=9, ha="center", va="center")
