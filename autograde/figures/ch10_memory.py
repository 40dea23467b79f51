"""Pictures of chapter 10: blocks of scores, and memory against length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import BLUE, CARD, GREY, HATCH, INK, VERMILION, panels, show_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = "#bcd3ea"


def show_blocks(
    n: int, block_query: int, block_key: int, title: str = "", ax: Axes | None = None
) -> Figure:
    """Draw the blocks of a causal n x n mask: open, cut by the diagonal, or all future.

    Dot on blue = open everywhere; half-filled dot on pale blue = open in part; hatched grey =
    skipped. The heavy stairs are the edge of the mask: what lies below them is open.

    Parameters
    ----------
    n: number of queries and of keys.
    block_query, block_key: size of a block.
    """
    ax = _square(n, ax, title)
    for top in range(0, n, block_query):
        last = min(top + block_query, n) - 1
        for left in range(0, n, block_key):
            right = min(left + block_key, n) - 1
            state = "skipped" if left > last else "open" if right <= top else "cut"
            _block(ax, state, top, left, last + 1 - top, right + 1 - left)
    stairs = [(i + step, i) for i in range(n) for step in (0, 1)]  # (key, query)
    ax.plot(*zip(*stairs, (n, n), strict=True), color=INK, lw=1.8, solid_joinstyle="miter")
    _numbers(ax, range(0, n, block_query), range(0, n, block_key))
    return ax.figure


def show_tiling(rows: int, columns: int, now: tuple[int, int], ax: Axes | None = None) -> Figure:
    """Draw tiled attention at work: what is held while one block of scores is computed.

    Tick = done and forgotten; heavy orange frame = held now; white = still to come; hatched
    grey = skipped. The keys and values of the columns stand above, the queries to the left,
    the output to the right.

    Parameters
    ----------
    rows, columns: blocks of queries, blocks of keys (as many, so that the diagonal is drawn).
    now: (row, column) of the block that is being computed.
    """
    ax = panels(1, 1, height=2.9)[1][0] if ax is None else ax
    ax.set(xlim=(-1.5, columns + 2.2), ylim=(rows + 0.1, -1.5), aspect="equal", facecolor=CARD)
    ax.axis("off")
    for row, column in np.ndindex(rows, columns):
        done = (row, column) < now
        state = "skipped" if column > row else "now" if (row, column) == now else ""
        _block(ax, state or ("done" if done else "waiting"), row, column, 1, 1)
    for column in range(columns):
        _block(ax, "now" if column == now[1] else "input", -1.2, column, 0.8, 1, f"k, v {column}")
    for row in range(rows):
        done = "done" if row < now[0] else "now" if row == now[0] else "waiting"
        _block(ax, "now" if row == now[0] else "input", row, -1.2, 1, 0.8, f"q {row}")
        text = {"done": f"out {row}", "now": "m, l, o", "waiting": ""}[done]
        _block(ax, done, row, columns + 0.4, 1, 1.5, text)
    return ax.figure


def show_memory(
    n: Float[np.ndarray, " point"],
    lines: Mapping[str, Float[np.ndarray, " point"]],
    ax: Axes | None = None,
) -> Figure:
    """Draw bytes against n, both on logarithmic scales, with guides of slope 1 and 2.

    Parameters
    ----------
    n: sequence lengths.
    lines: name -> peak in bytes at these lengths; nan leaves a gap.
    """
    ax = panels(1, 1, height=3.3)[1][0] if ax is None else ax
    show_lines(n, lines, "n, the number of tokens", "peak, MiB", ax=ax)
    for line in ax.lines:
        line.set(ydata=np.asarray(line.get_ydata()) / 2**20, markevery=1)
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(n, [f"{int(x):,}" for x in n], fontsize=8, rotation=40)
    ax.minorticks_off()
    ends = np.array([n[0], n[-1]], dtype=float)
    for slope, start in ((1, 0.02), (2, 30.0)):
        height = start * (ends / ends[0]) ** slope
        ax.plot(ends, height, color=HATCH, lw=0.9, ls=(0, (1, 2)), gid=f"slope {slope}")
    ax.text(ends[0] * 1.1, 0.02 * 1.45, "slope 1", color=INK, fontsize=8)
    ax.text(ends[0] * 1.1, 30.0 * 2.2, "slope 2", color=INK, fontsize=8)
    ax.set_ylim(0.01, 3000)
    return ax.figure


def _square(n: int, ax: Axes | None, title: str) -> Axes:
    ax = panels(1, 1, 3.2, 3.0)[1][0] if ax is None else ax
    ax.set(xlim=(-0.1, n + 0.1), ylim=(n + 0.1, -0.1), aspect="equal", facecolor=CARD)
    ax.set_ylabel("query", color=INK, fontsize=9)
    ax.set_xlabel("key", color=INK, fontsize=9)
    ax.xaxis.set_label_position("top")
    ax.spines[:].set_visible(False)
    if title:
        ax.set_title(title, color=INK, fontsize=10)
    return ax


def _numbers(ax: Axes, rows: range, columns: range) -> None:
    """The first query and the first key of each block, at its edge."""
    ax.set_yticks([row + 0.5 for row in rows], [str(row) for row in rows])
    ax.set_xticks([column + 0.5 for column in columns], [str(column) for column in columns])
    ax.tick_params(
        length=0, labelsize=9, colors=INK, top=True, labeltop=True, bottom=False, labelbottom=False
    )


LOOKS = {  # state: (face, mark, colour of the mark, hatch, edge, width of the frame)
    "open": (BLUE, "●", "white", None, INK, 0.8),
    "cut": (PALE, "◐", INK, None, INK, 0.8),
    "skipped": (GREY, "", INK, "////", HATCH, 0.8),
    "done": ("white", "✓", INK, None, INK, 0.8),
    "waiting": ("white", "", INK, None, INK, 0.8),
    "now": ("#fde0c5", "", INK, None, VERMILION, 2.5),
    "input": (PALE, "", INK, None, INK, 0.8),
}


def _block(ax, state, top, left, height, width, text=""):
    """One rectangle; its gid "state top left" names it, for the tests."""
    from matplotlib.patches import Rectangle

    face, mark, ink, hatch, edge, frame = LOOKS[state]
    inset = 0.05 if frame > 1 else 0
    size = width - 2 * inset, height - 2 * inset
    name, order = f"{state} {top} {left}", 2 if frame > 1 else 1
    ax.add_patch(
        Rectangle((left + inset, top + inset), *size, fc=face, ec=edge, hatch=hatch, lw=frame,
                  gid=name, zorder=order)
    )  # fmt: skip
    ax.text(
        left + width / 2, top + height / 2, text or mark, color=ink, fontsize=8 if text else 10,
        ha="center", va="center", zorder=3,
    )  # fmt: skip
