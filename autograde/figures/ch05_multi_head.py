"""Pictures that only chapter 5 draws. They follow the rules of `autograde.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from autograde.figures import (
    CARD,
    GREY,
    INK,
    VERMILION,
    WIDEST,
    blue,
    cell,
    grid,
    matrix,
    panels,
    readable_on,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxtyping import Bool, Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Map(NamedTuple):
    """One attention to draw: its weights, what stands beside the rows and above the columns."""

    title: str
    weights: Float[np.ndarray, "query key"]
    queries: Sequence[str]
    keys: Sequence[str]
    allowed: Bool[np.ndarray, "query key"] | None = None


def show_splits(
    words: Sequence[str], d_model: int, n_heads: int, ways: dict[str, Callable]
) -> Figure:
    """Draw which numbers of which token each way to split puts into each head.

    Each number is written as the first letter of its token and its column; the darker the
    blue, the later the token. A heavy orange frame: the row belongs to another token.

    Parameters
    ----------
    words: the tokens, with different first letters.
    d_model, n_heads: sizes; d_model is a multiple of n_heads.
    ways: title -> function of (x, n_heads) that gives (heads, seq, d_head).
    """
    import matplotlib.pyplot as plt

    seq = len(words)
    x = np.arange(seq * d_model).reshape(seq, d_model)  # which number is which
    rows = [["x"] * n_heads] + [[f"{way} {head}" for head in range(n_heads)] for way in ways]
    figure, axes = plt.subplot_mosaic(
        rows, figsize=(WIDEST, 0.95 + (len(ways) + 1) * (0.3 * seq + 0.42)), layout="constrained"
    )
    figure.set_facecolor(CARD)
    plt.close(figure)
    _numbers(axes["x"], x, words, d_model, "x: one row for each token")
    for way, split in ways.items():
        for head, numbers in enumerate(split(x, n_heads)):
            _numbers(axes[f"{way} {head}"], numbers, words, d_model, f"{way}: head {head}")
    return figure


def _numbers(ax: Axes, numbers, words, d_model, title):
    """Rows of numbers, each with its token's shade; strangers to their row are framed."""
    grid(numbers.shape, words, range(numbers.shape[1]), title, ax, "", "")
    ax.tick_params(top=False, labeltop=False, labelsize=8)
    ax.title.set_fontsize(9)
    for row, column in np.ndindex(*numbers.shape):
        token, place = divmod(int(numbers[row, column]), d_model)
        face = blue(0.12 + 0.76 * token / max(len(words) - 1, 1))
        mark, ink = f"{words[token][0]}{place}", readable_on(face)
        if token == row:
            cell(ax, row, column, "own", face, mark, ink)
        else:
            cell(ax, row, column, "stranger", face, mark, ink, frame=2.5)
            ax.patches[-1].set_edgecolor(VERMILION)


def show_maps(maps: Sequence[Map]) -> Figure:
    """Draw learned attentions side by side: the darker, the more weight.

    A dot marks the largest weight of a row; hatched = closed; orange and framed = a leak.

    Parameters
    ----------
    maps: one for each panel, up to four.
    """
    import matplotlib.pyplot as plt

    ratios = [len(each.keys) for each in maps]
    tallest = max(len(each.queries) for each in maps)
    figure, axes = plt.subplots(
        1, len(maps), squeeze=False, layout="constrained", width_ratios=ratios,
        figsize=(WIDEST, 0.65 + tallest * (WIDEST - 0.3 * len(maps)) / sum(ratios)),
    )  # fmt: skip
    figure.set_facecolor(CARD)
    plt.close(figure)
    for ax, each in zip(axes[0], maps, strict=True):
        _map(ax, each)
    return figure


def _map(ax: Axes, each: Map):
    weights = matrix(each.weights, float)
    allowed = np.ones(weights.shape, bool) if each.allowed is None else matrix(each.allowed, bool)
    grid(weights.shape, each.queries, each.keys, each.title, ax, "", "")
    ax.tick_params(labelsize=8, pad=1)
    ax.title.set_fontsize(9)
    for query, key in np.ndindex(*weights.shape):
        weight = weights[query, key]
        if not allowed[query, key] and weight == 0:
            cell(ax, query, key, "closed", GREY, hatch="//////", frame=0.4)
            continue
        largest = "●" if weight == weights[query].max() else ""
        if allowed[query, key]:
            face = blue(weight)
            cell(ax, query, key, "open", face, largest, readable_on(face), frame=0.4)
        else:
            cell(ax, query, key, "leak", VERMILION, largest, frame=2)
    for text in ax.texts:
        text.set_fontsize(6)


def show_layers() -> Figure:
    """Draw one layer of an encoder and one of a decoder, with their three attentions."""
    (ax,) = panels(1, 1, height=3.3)[1]
    ax.set(xlim=(0, 10), ylim=(0, 8.2), facecolor=CARD)
    ax.axis("off")
    source, target = 2.3, 7.4  # the two columns
    ax.text(source, 7.9, "encoder layer", color=INK, fontsize=10, ha="center")
    ax.text(target, 7.9, "decoder layer", color=INK, fontsize=10, ha="center")
    _box(ax, source, 0.5, "source", data=True)
    _box(ax, source, 2.5, "self-attention\nno causal mask")
    _box(ax, source, 4.5, "memory", data=True)
    _box(ax, target, 0.5, "target so far", data=True)
    _box(ax, target, 2.5, "self-attention\ncausal mask")
    _box(ax, target, 4.5, "cross-attention\nno causal mask")
    _box(ax, target, 6.5, "next token", data=True)
    for x, bottom, top in (
        (source, 0.9, 1.8),
        (source, 3.2, 4.1),
        (target, 0.9, 1.8),
        (target, 3.2, 3.8),
        (target, 5.2, 6.1),
    ):
        _arrow(ax, (x, bottom), (x, top))
    _arrow(ax, (3.3, 4.5), (5.4, 4.5))
    ax.text(4.3, 4.65, "keys,\nvalues", color=INK, fontsize=8, ha="center", va="bottom")
    ax.text(target + 0.2, 3.45, "queries", color=INK, fontsize=8, va="center")
    return ax.figure


def _box(ax: Axes, x, y, text, data=False):
    """A box around text: dashed and white = data, solid and blue = an attention."""
    look = {"facecolor": "white" if data else blue(0.2), "ls": "--" if data else "-"}
    look |= {"boxstyle": "round,pad=0.4", "edgecolor": INK}
    ax.text(x, y, text, ha="center", va="center", fontsize=9, color=INK, bbox=look)


def _arrow(ax: Axes, start, end):
    look = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=look)
