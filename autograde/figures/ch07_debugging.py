"""Pictures that only chapter 7 draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import BLUE, CARD, GREY, HATCH, INK, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float
    from matplotlib.figure import Figure


def show_heads(
    heads: Mapping[str, Float[np.ndarray, "query key"]], labels: Sequence[str]
) -> Figure:
    """Draw the weights of causal heads side by side, without numbers.

    The darker the blue, the larger the weight; a dot marks the largest weight of each
    row; hatched grey = the future.

    Parameters
    ----------
    heads: title -> weights of one head for the same sequence.
    labels: the tokens, one for each position.
    """
    figure, axes = panels(len(heads), columns=2, height=2.4)
    for ax, (title, weights) in zip(axes, heads.items(), strict=True):
        _head(ax, np.asarray(weights, dtype=float), labels)
        ax.set_title(title, color=INK, fontsize=10)
    return figure


def _head(ax, weights, labels):
    from matplotlib.patches import Rectangle

    n = len(labels)
    ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal", facecolor=CARD)
    ax.fill(*zip(*_staircase(n), strict=True), facecolor=GREY, edgecolor=HATCH, hatch="////", lw=0)
    for query in range(n):
        largest = weights[query].argmax()
        for key in range(query + 1):
            weight = float(np.clip(weights[query, key], 0, 1))
            square = Rectangle((key, query), 1, 1, facecolor=blue(weight), edgecolor=INK, lw=0.3)
            square.set_gid(f"weight {query} {key}")
            ax.add_patch(square)
        dark = weights[query, largest] > 0.55
        ax.plot(largest + 0.5, query + 0.5, "o", ms=2.6, color="white" if dark else INK)
    ax.set_xticks(np.arange(n) + 0.5, labels)
    ax.set_yticks(np.arange(n) + 0.5, labels)
    ax.tick_params(
        length=0, labelsize=7, colors=INK, top=True, labeltop=True, bottom=False, labelbottom=False
    )
    ax.spines[:].set_visible(False)


def _staircase(n):
    """The corners of the area above the diagonal."""
    corners = [(1, 0), (n, 0), (n, n - 1)]
    for step in range(n - 1, 0, -1):
        corners += [(step, step), (step, step - 1)]
    return corners


def blue(weight: float):
    from matplotlib.colors import to_rgb

    return tuple(1 - weight * (1 - channel) for channel in to_rgb(BLUE))
