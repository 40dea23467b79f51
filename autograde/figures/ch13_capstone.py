"""Pictures that only chapter 13 draws. They follow the rules of `autograde.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import BLUE, CARD, INK, VERMILION, WIDEST, blue, panels, readable_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from matplotlib.figure import Figure


def show_draw(
    p: Float[np.ndarray, " vocab"], labels: Sequence[str], uniforms: Sequence[float]
) -> Figure:
    """Draw a bar of length 1, cut into the tokens' shares, and what numbers fall into.

    The darker the blue, the larger the share. An arrow points down from each number to its
    place; the token that it draws stands above it.

    Parameters
    ----------
    p: probabilities in the order of the ids.
    labels: the tokens; each is written where there is room.
    uniforms: numbers u, 0 <= u < 1.
    """
    _, (ax,) = panels(1, 1, WIDEST, 1.5)
    mass = np.cumsum(p)
    for token, share in enumerate(p):
        face, left = blue(float(share) / max(p)), mass[token] - share
        ax.barh(
            0, share, left=left, height=0.6, color=face, edgecolor=INK, lw=0.8,
            gid=f"share {token}",
        )  # fmt: skip
        if share > 0.03 * len(labels[token]):
            ax.text(
                left + share / 2, 0, labels[token], ha="center", va="center", fontsize=8,
                color=readable_on(face),
            )  # fmt: skip
    for u in uniforms:
        token = int(np.searchsorted(mass, u * mass[-1], side="right"))
        ax.annotate(
            f"u = {u:g}\n{labels[token]}", (u, 0.32), (u, 0.75), ha="center", va="bottom",
            fontsize=8, color=INK, arrowprops={"arrowstyle": "-|>", "color": VERMILION, "lw": 1.5},
            gid=f"draw {token}",
        )  # fmt: skip
    for tick in (0, 0.5, 1):
        ax.plot([tick, tick], [-0.38, -0.3], color=BLUE)
        ax.text(tick, -0.42, f"{tick:g}", ha="center", va="top", fontsize=8, color=INK)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.75, 1.6), facecolor=CARD)
    ax.axis("off")
    return ax.figure
