"""Pictures of masks and attention weights, for the chapters and the checks.

Every function draws on a light card, so that a picture reads the same on a light and on
a dark page, and says with a mark or a hatch whatever it says with a colour. Each returns
the matplotlib figure; as the last line of a notebook cell that shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Bool, Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CARD = "#fcfcfa"
INK = "#1b1f24"
BLUE = "#2166ac"
GREY = "#e6e6e6"
HATCH = "#8d8d8d"
VERMILION = "#e66101"
CELL = 0.5  # inches
WIDEST = 4.2  # inches: a phone shows this without shrinking the letters much


def panels(n: int, columns: int = 2, width: float = WIDEST, height: float = 2.1):
    """Make n empty panels on one card.

    Parameters
    ----------
    n: number of panels.
    columns: panels side by side; two still fit a phone.
    width: of the whole card, in inches.
    height: of one row of panels, in inches.

    Returns
    -------
    figure, list of n axes. Draw on them with the `ax` argument of the other functions.
    """
    import matplotlib.pyplot as plt

    rows = -(-n // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, rows * height), squeeze=False, layout="constrained"
    )
    figure.set_facecolor(CARD)
    plt.close(figure)  # the notebook shows the returned figure once, not twice
    for unused in axes.flat[n:]:
        unused.remove()
    return figure, list(axes.flat[:n])


def show_mask(
    allowed: Bool[np.ndarray, "query key"],
    query_labels: Sequence[str] | None = None,
    key_labels: Sequence[str] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw who may see whom: a dot on blue = may attend, hatched grey = closed.

    Parameters
    ----------
    allowed: bool array (query, key), True = may attend.
    query_labels, key_labels: names of the rows and columns; 0, 1, 2, ... when None.
    """
    allowed = matrix(allowed, bool)
    ax = grid(allowed.shape, query_labels, key_labels, title, ax)
    for query, key in np.ndindex(*allowed.shape):
        if allowed[query, key]:
            cell(ax, query, key, "open", BLUE, mark="●", ink="white")
        else:
            cell(ax, query, key, "closed", GREY, hatch="////")
    return ax.figure


def show_weights(
    weights: Float[np.ndarray, "query key"],
    allowed: Bool[np.ndarray, "query key"] | None = None,
    query_labels: Sequence[str] | None = None,
    key_labels: Sequence[str] | None = None,
    title: str = "",
    digits: int = 2,
    ax: Axes | None = None,
) -> Figure:
    """Draw attention weights: the darker the blue, the larger the number in the cell.

    Parameters
    ----------
    weights: array (query, key) of numbers from 0 to 1.
    allowed: bool array (query, key). Where it is False a weight of 0 is drawn hatched
        grey, and any other weight (nan too) orange with a heavy frame: a leak.
    digits: decimals written in the cells.
    """
    weights = matrix(weights, float)
    allowed = np.ones(weights.shape, bool) if allowed is None else matrix(allowed, bool)
    ax = grid(weights.shape, query_labels, key_labels, title, ax)
    for query, key in np.ndindex(*weights.shape):
        weight, number = weights[query, key], f"{weights[query, key]:.{digits}f}"
        if allowed[query, key]:
            face = blue(weight)
            cell(ax, query, key, "open", face, mark=number, ink=readable_on(face))
        elif weight == 0:
            cell(ax, query, key, "closed", GREY, hatch="////")
        else:
            cell(ax, query, key, "leak", VERMILION, mark=number, frame=2.5)
    return ax.figure


def show_influence(
    influence: Bool[np.ndarray, "output input"],
    allowed: Bool[np.ndarray, "output input"],
    output_labels: Sequence[str] | None = None,
    input_labels: Sequence[str] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw which inputs reach which outputs, against what the mask allows.

    Dot on blue = reaches and may; hatched grey = does not and may not; cross on orange =
    reaches but may not (a leak); white with a dash = may, but does not (lost).

    Parameters
    ----------
    influence: bool array (output, input), True = a change of the input changes the output.
    allowed: bool array (output, input), True = it may.
    """
    influence, allowed = matrix(influence, bool), matrix(allowed, bool)
    looks = {
        (True, True): {"state": "open", "face": BLUE, "mark": "●", "ink": "white"},
        (False, False): {"state": "closed", "face": GREY, "hatch": "////"},
        (True, False): {"state": "leak", "face": VERMILION, "mark": "✕", "frame": 2.5},
        (False, True): {"state": "lost", "face": "white", "mark": "–"},
    }
    ax = grid(influence.shape, output_labels, input_labels, title, ax, "output", "input")
    for output, source in np.ndindex(*influence.shape):
        cell(
            ax,
            output,
            source,
            **looks[bool(influence[output, source]), bool(allowed[output, source])],
        )
    return ax.figure


def show_reach(
    allowed: Bool[np.ndarray, "query key"],
    query: int,
    labels: Sequence[str],
    ax: Axes | None = None,
) -> Figure:
    """Draw the connections of one query: solid arrow = may attend, dashed and crossed = closed.

    Parameters
    ----------
    allowed: square bool array (query, key), True = may attend.
    query: the row to draw, counted from 0.
    labels: the tokens, one for each position.
    """
    row = matrix(allowed, bool)[query]
    if ax is None:
        ax = panels(1, 1, height=2.1)[1][0]
    ax.set(xlim=(-0.6, len(row) - 0.4), ylim=(-0.35, 1.55), facecolor=CARD)
    ax.axis("off")
    for key, is_open in enumerate(row):
        box(ax, key, 0, labels[key], key + 1, filled=bool(is_open))
        arrow(ax, (query, 0.93), (key, 0.27), bool(is_open))
    box(ax, query, 1.2, labels[query], query + 1, filled=True)
    ax.text(-0.55, 1.52, "query", color=INK, fontsize=9, va="top")
    ax.text(-0.55, 0.52, "keys", color=INK, fontsize=9, va="top")
    return ax.figure


def show_lines(
    x: Float[np.ndarray, " point"],
    lines: Mapping[str, Float[np.ndarray, " point"]],
    x_label: str,
    y_label: str,
    ax: Axes | None = None,
) -> Figure:
    """Draw curves that differ in colour, dash and marker, with their names in a legend.

    Parameters
    ----------
    x: positions of the points. A nan in a curve leaves a gap.
    lines: name -> values at these positions.
    """
    if ax is None:
        ax = panels(1, 1, height=2.7)[1][0]
    looks = [(BLUE, "-", "o"), (VERMILION, "--", "s"), (INK, ":", "^"), ("#7b3294", "-.", "D")]
    if len(lines) > len(looks):
        raise ValueError(f"show_lines tells {len(looks)} curves apart, got {len(lines)}")
    every = max(1, len(x) // 10)
    for (name, y), (colour, dash, marker) in zip(lines.items(), looks, strict=False):
        ax.plot(x, y, color=colour, ls=dash, marker=marker, markevery=every, ms=5, label=name)
    ax.set_facecolor("white")
    ax.set_xlabel(x_label, color=INK)
    ax.set_ylabel(y_label, color=INK)
    ax.tick_params(colors=INK)
    ax.grid(color="#dddddd", lw=0.6)
    ax.legend(
        fontsize=9,
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
        ncols=2,
        frameon=False,
        labelcolor=INK,
    )
    return ax.figure


def matrix(array, kind):
    array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(
            f"one picture shows one (query, key) matrix, got shape {array.shape}: "
            "pick one batch entry and one head first"
        )
    return array.astype(kind)


def blue(weight: float):
    """From white at 0 to BLUE at 1; nan is white."""
    from matplotlib.colors import to_rgb

    share = min(max(np.nan_to_num(weight), 0.0), 1.0)
    return tuple(1 - share * (1 - channel) for channel in to_rgb(BLUE))


def readable_on(face) -> str:
    """White or INK, whichever has the higher contrast (WCAG 2 relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in face]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.063 else INK


def grid(shape, row_names, column_names, title, ax, row_axis="query", column_axis="key"):
    """Axes with one unit square for each cell, row 0 at the top, columns named above."""
    n_row, n_column = shape
    row_names = range(n_row) if row_names is None else row_names
    column_names = range(n_column) if column_names is None else column_names
    if len(row_names) != n_row or len(column_names) != n_column:
        raise ValueError(f"{len(row_names)} and {len(column_names)} names for shape {shape}")
    if ax is None:
        width = min(WIDEST, CELL * n_column + 1.2)
        ax = panels(1, 1, width, (width - 1.2) * n_row / n_column + (1.0 if title else 0.8))[1][0]
    ax.set(xlim=(0, n_column), ylim=(n_row, 0), aspect="equal", facecolor=CARD)
    ax.set_yticks(np.arange(n_row) + 0.5, [str(name) for name in row_names])
    ax.set_xticks(np.arange(n_column) + 0.5, [str(name) for name in column_names])
    longest = max((len(str(name)) for name in column_names), default=0)
    if longest > 4:
        ax.tick_params(axis="x", labelrotation=40)
    ax.tick_params(
        length=0, labelsize=9, colors=INK, top=True, labeltop=True, bottom=False, labelbottom=False
    )
    ax.set_ylabel(row_axis, color=INK, fontsize=9)
    ax.set_xlabel(column_axis, color=INK, fontsize=9)
    ax.xaxis.set_label_position("top")
    ax.spines[:].set_visible(False)
    if title:
        ax.set_title(title, color=INK, fontsize=10)
    return ax


def cell(ax, row, column, state, face, mark="", ink=INK, hatch=None, frame=0.8):
    """One square; its gid "state row column" names it, in the SVG and for the tests."""
    from matplotlib.patches import Rectangle

    edge = HATCH if hatch else INK
    inset = 0.04 if frame > 1 else 0
    square = Rectangle(
        (column + inset, row + inset), 1 - 2 * inset, 1 - 2 * inset,
        facecolor=face, edgecolor=edge, hatch=hatch, lw=frame, gid=f"{state} {row} {column}",
    )  # fmt: skip
    ax.add_patch(square)
    if mark:
        ax.text(column + 0.5, row + 0.5, mark, color=ink, fontsize=9, ha="center", va="center")


def box(ax, x, y, token, position, filled):
    ax.text(
        x, y, f"{token}\n{position}", ha="center", va="center", fontsize=9,
        color="white" if filled else INK,
        bbox={"boxstyle": "round,pad=0.35", "facecolor": BLUE if filled else GREY, "edgecolor": INK,
                  "ls": "-" if filled else "--"},
    )  # fmt: skip


def arrow(ax, start, end, is_open):
    from matplotlib.patches import FancyArrowPatch

    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=14, lw=2 if is_open else 1.4,
        color=BLUE if is_open else HATCH, ls="-" if is_open else (0, (4, 3)),
        gid=f"{'open' if is_open else 'closed'} {end[0]}",
    )  # fmt: skip
    ax.add_patch(arrow)
    if not is_open:
        middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
        ax.text(*middle, "✕", color=VERMILION, fontsize=14, weight="bold", ha="center", va="center")
