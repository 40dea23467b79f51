"""Pictures of chapter 12: numbers to scale, halves of a float32, sizes of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import BLUE, CARD, GREY, HATCH, INK, VERMILION, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float, Int
    from matplotlib.figure import Figure


def show_numbers(
    formats: Mapping[str, Float[np.ndarray, " number"]], low: float, high: float
) -> Figure:
    """Draw the numbers that each format has between low and high, each as a stroke, to scale.

    Parameters
    ----------
    formats: name -> its numbers. An empty array: so many that the strokes would touch.
    """
    (ax,) = panels(1, 1, height=1.9)[1]
    ax.set(xlim=(low - 0.3, high + 0.3), ylim=(len(formats) - 0.1, -0.75), facecolor=CARD)
    for row, (name, numbers) in enumerate(formats.items()):
        ax.text(low, row - 0.2, name, color=INK, fontsize=9)
        ax.plot([low, high], [row + 0.25] * 2, color=HATCH, lw=0.8)
        if len(numbers):
            ax.vlines(numbers, row, row + 0.5, color=BLUE, lw=1.6, gid=f"numbers {row}")
        else:
            ax.fill_between([low, high], row, row + 0.5, color=BLUE, gid=f"dense {row}")
    ax.set_yticks([])
    ax.tick_params(colors=INK, labelsize=9)
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.spines["bottom"].set_color(INK)
    return ax.figure


def show_halves(bits: Sequence[int], labels: Sequence[str]) -> Figure:
    """Draw the 32 bits of float32 numbers: the half that bfloat16 keeps, and the one that goes.

    Parameters
    ----------
    bits: as integers from 0 to 2^32 - 1.
    labels: what stands above each row of bits.
    """
    from matplotlib.patches import Rectangle

    (ax,) = panels(1, 1, height=0.75 * len(bits) + 0.35)[1]
    ax.set(xlim=(-0.3, 32.3), ylim=(len(bits) + 0.15, -0.55), facecolor=CARD)
    ax.axis("off")
    for row, (number, label) in enumerate(zip(bits, labels, strict=True)):
        ax.text(0, row - 0.1, label, color=INK, fontsize=9)
        for place in range(32):
            bit = number >> (31 - place) & 1
            part = "sign" if place == 0 else "exponent" if place < 9 else "fraction"
            part = part if place < 16 else "lower"
            face = {"sign": INK, "exponent": BLUE, "fraction": "white", "lower": GREY}[part]
            ink = "white" if part in ("sign", "exponent") else INK
            box = Rectangle(
                (place, row), 1, 0.5, fc=face, ec=INK, lw=0.5, gid=f"{part} {row} {bit}"
            )
            ax.add_patch(box)
            ax.text(place + 0.5, row + 0.27, bit, color=ink, fontsize=7, ha="center", va="center")
        ax.plot([16, 16], [row - 0.08, row + 0.58], color=VERMILION, lw=2)
    ax.text(8, len(bits) + 0.05, "kept by bfloat16", color=INK, fontsize=9, ha="center")
    ax.text(24, len(bits) + 0.05, "lower half", color=INK, fontsize=9, ha="center")
    return ax.figure


def show_sizes(
    exponents: Mapping[str, Int[np.ndarray, " number"]],
    lost: int,
    fewer: int,
    most: int,
) -> Figure:
    """Draw how large numbers are, by powers of two, and what float16 makes of them.

    Parameters
    ----------
    exponents: title -> the exponent of each number. A panel for each.
    lost: below this exponent numbers become 0 (grey, hatched).
    fewer: below this one they have fewer digits (grey).
    most: from this one on they are infinite (orange).
    """
    figure, axes = panels(len(exponents), columns=1, height=1.9)
    low = min(e.min() for e in exponents.values())
    edges = np.arange(low, most + 4)
    for ax, (title, found) in zip(axes, exponents.items(), strict=True):
        share = np.array([(found == edge).mean() for edge in edges])
        ax.axvspan(low, lost, facecolor=GREY, ec=HATCH, hatch="////", lw=0, gid="lost")
        ax.axvspan(lost, fewer, facecolor=GREY, lw=0, gid="fewer")
        ax.axvspan(most, most + 4, facecolor=VERMILION, alpha=0.6, lw=0, gid="infinite")
        ax.bar(edges, 100 * share, width=0.85, align="edge", color=BLUE, gid="sizes", zorder=2)
        ax.set_title(title, color=INK, fontsize=10)
        ax.set_ylabel("percent", color=INK, fontsize=9)
        ax.set(xlim=(low, most + 4), facecolor="white")
        ax.tick_params(colors=INK, labelsize=9)
    axes[-1].set_xlabel("size of the gradient, power of 2", color=INK, fontsize=9)
    return figure


def show_scale(steps: Sequence[int], scales: Sequence[float], skipped: Sequence[int]) -> Figure:
    """Draw the loss scale over the steps of a training, and which steps were skipped."""
    from matplotlib.ticker import MaxNLocator

    (ax,) = panels(1, 1, height=2.3)[1]
    ax.step(steps, np.log2(scales), where="post", color=BLUE, lw=1.8, label="scale")
    marks = np.log2(np.asarray(scales)[list(skipped)])
    ax.plot(skipped, marks, ls="", marker="x", ms=7, mew=2, color=VERMILION, label="step skipped")
    ax.set_facecolor("white")
    ax.set_xlabel("step", color=INK)
    ax.set_ylabel("scale, power of 2", color=INK)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(colors=INK)
    ax.grid(color="#dddddd", lw=0.6)
    ax.legend(fontsize=9, frameon=False, labelcolor=INK, loc="lower center",
              bbox_to_anchor=(0.5, 1), ncols=2)  # fmt: skip
    return ax.figure
