"""Pictures of chapter 4: number formats, and scores that a finite mask cannot hold."""

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
    cell,
    grid,
    matrix,
    panels,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Bool, Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def show_bits(formats: Mapping[str, tuple[int, int]], ax: Axes | None = None) -> Figure:
    """Draw how the bits of each format are shared out: sign, exponent, fraction.

    Parameters
    ----------
    formats: name -> (bits of the exponent, bits of the fraction); the sign takes one more.
    """
    from matplotlib.patches import Rectangle

    ax = panels(1, 1, height=1.7)[1][0] if ax is None else ax
    longest = max(1 + sum(parts) for parts in formats.values())
    ax.set(xlim=(-0.35, longest + 0.35), ylim=(len(formats) - 0.1, -0.55), facecolor=CARD)
    ax.axis("off")
    for row, (name, (exponent, fraction)) in enumerate(formats.items()):
        ax.text(0, row - 0.12, name, color=INK, fontsize=9)
        left = 0
        for part, bits, face, ink in (
            ("sign", 1, INK, "white"),
            ("exponent", exponent, BLUE, "white"),
            ("fraction", fraction, "white", INK),
        ):
            box = Rectangle((left, row), bits, 0.5, fc=face, ec=INK, gid=f"{part} {row} {bits}")
            ax.add_patch(box)
            for bit in range(1, bits):
                ax.plot([left + bit] * 2, [row + 0.38, row + 0.5], color=ink, lw=0.6)
            text = "" if part == "sign" else f"{part} {bits}" if bits > 6 else f"{bits}"
            x, y = left + bits / 2, row + 0.22
            ax.text(x, y, text, color=ink, fontsize=8, ha="center", va="center")
            left += bits
    return ax.figure


def show_ranges(
    formats: Mapping[str, tuple[float, float, float]],
    marks: Mapping[str, float],
    ax: Axes | None = None,
) -> Figure:
    """Draw which sizes of numbers each format can hold, on a logarithmic axis.

    Parameters
    ----------
    formats: name -> (smallest number above 0, smallest with all its digits, largest number).
        Between the first two a number has fewer digits; that part is hatched.
    marks: label -> size to be marked by a line across all formats.
    """
    ax = panels(1, 1, height=1.9)[1][0] if ax is None else ax
    for row, (tiny, normal, largest) in enumerate(formats.values()):
        start, middle, end = np.log10([tiny, normal, largest])
        ax.barh(row, end - middle, left=middle, height=0.5, color=BLUE, ec=INK, gid=f"full {row}")
        ax.barh(
            row, middle - start, left=start, height=0.5, color=GREY, ec=HATCH, hatch="////",
            gid=f"fewer {row}",
        )  # fmt: skip
    for label, size in marks.items():
        ax.axvline(np.log10(size), color=VERMILION, ls="--", lw=1.6)
        ax.text(np.log10(size), -0.62, label, color=INK, fontsize=9, ha="center", va="bottom")
    ax.set_yticks(range(len(formats)), list(formats))
    powers = range(-40, 41, 20)
    ax.set_xticks(powers, [f"$10^{{{power}}}$" for power in powers])
    ax.set(xlim=(-48, 42), ylim=(len(formats) - 0.5, -0.55), facecolor="white")
    ax.tick_params(colors=INK, labelsize=9)
    ax.grid(axis="x", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
    return ax.figure


def show_masked_scores(
    scores: Float[np.ndarray, "query key"],
    allowed: Bool[np.ndarray, "query key"],
    query_labels: Sequence[str] | None = None,
    key_labels: Sequence[str] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw the numbers that enter the softmax, closed ones on grey.

    A closed score that is its row's largest, so that the mask is beaten, is orange and has a
    heavy frame.

    Parameters
    ----------
    scores: scores after masking; -inf leaves its cell hatched.
    allowed: bool array (query, key), True = may attend.
    """
    scores, allowed = matrix(scores, float), matrix(allowed, bool)
    ax = grid(scores.shape, query_labels, key_labels, title, ax)
    largest = scores.max(axis=-1, keepdims=True)
    for query, key in np.ndindex(*scores.shape):
        score = scores[query, key]
        number = "" if score == -np.inf else f"{round(score)}".replace("-", "−")
        if allowed[query, key]:
            cell(ax, query, key, "open", "white", mark=number)
        elif score == -np.inf:
            cell(ax, query, key, "closed", GREY, hatch="////")
        elif score == largest[query, 0]:
            cell(ax, query, key, "beaten", VERMILION, mark=number, frame=2.5)
        else:
            cell(ax, query, key, "closed", GREY, mark=number)
    return ax.figure


def add_floor(height: float, label: str, ax: Axes) -> Figure:
    """Draw a level line that no honest curve may cross, with its name above it."""
    ax.axhline(height, color=INK, lw=1.2)
    ax.annotate(
        label, (0.99, height), xycoords=("axes fraction", "data"), xytext=(0, 6),
        textcoords="offset points", color=INK, fontsize=9, ha="right",
    )  # fmt: skip
    return ax.figure
