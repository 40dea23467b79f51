"""Pictures that only chapter 9 uses, and how it counts and measures what they show."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from autograde.figures import BLUE, GREY, VERMILION, blue, cell, grid, readable_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from IPython.display import Markdown
    from jaxtyping import Bool, Int
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = {1: 1.0, 2: 0.45, 3: 0.18}  # of blue: the fewer layers, the darker


def show_layers(
    layers: Int[np.ndarray, "row column"],
    may: Bool[np.ndarray, "row column"] | None = None,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    title: str = "",
    axes: tuple[str, str] = ("output", "input"),
    ax: Axes | None = None,
) -> Figure:
    """Draw through how many layers an input reaches an output.

    Dot on blue = through one layer (the mask itself); 2 or 3 on a lighter blue = through
    so many; white with a dash = it may, but does not; hatched grey = it may not and does
    not; cross on orange = it reaches and may not, a leak.

    Parameters
    ----------
    layers: the fewest layers, 1 to 3; 0 = not through three.
    may: bool array, True = it may; the causal triangle when None.
    axes: names of rows and columns.
    """
    layers = np.asarray(layers)
    may = np.tri(*layers.shape, dtype=bool) if may is None else np.asarray(may)
    ax = grid(layers.shape, row_labels, column_labels, title, ax, *axes)
    for row, column in np.ndindex(*layers.shape):
        n, place = int(layers[row, column]), (ax, row, column)
        if may[row, column] and n:
            face = blue(SHADES[n])
            mark = "●" if n == 1 else str(n)
            cell(*place, f"layer{n}", face, mark=mark, ink=readable_on(face))
        elif may[row, column]:
            cell(*place, "lost", "white", mark="–")
        elif n:
            cell(*place, "leak", VERMILION, mark="✕", frame=2.5)
        else:
            cell(*place, "closed", GREY, hatch="////")
    return ax.figure


def show_ring(held: Int[np.ndarray, "step slot"], ax: Axes | None = None) -> Figure:
    """Draw what a ring buffer holds, one line for each token written.

    White on blue = just written; the others keep the position they hold; hatched grey =
    still empty.

    Parameters
    ----------
    held: row t is what each slot holds after position t was written, -1 = empty.
    """
    held = np.asarray(held)
    ax = grid(held.shape, None, None, "", ax, "position written", "slot")
    for step, slot in np.ndindex(*held.shape):
        position = held[step, slot]
        if position < 0:
            cell(ax, step, slot, "empty", GREY, hatch="////")
        elif position == step:
            cell(ax, step, slot, "new", BLUE, mark=str(position), ink="white")
        else:
            cell(ax, step, slot, "kept", "white", mark=str(position))
    return ax.figure


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Markdown:
    """A table of computed cells; the notebook's cell says `markdown_format: myst`."""
    from IPython.display import Markdown

    lines = [titles, ["---"] * len(titles), *rows]
    return Markdown("\n".join("| " + " | ".join(cells) + " |" for cells in lines))


def fewest_layers(
    attend: Callable[..., np.ndarray], n: int, most: int = 3
) -> Int[np.ndarray, "output input"]:
    """Through how many layers does each input reach each output? Found by trying.

    Layers of attention with random projections are stacked; each adds to its input,
    as in a decoder. One input after the other is changed, and every output that is
    not exactly what it was before has been reached.

    Parameters
    ----------
    attend: maps q, k and v, each (n, 4), to (n, 4).
    n: number of tokens.
    most: number of layers.

    Returns
    -------
    [i, j]: after how many layers a change of input j moves output i; 0 = never.
    """
    rng = np.random.default_rng(9)
    projections = rng.normal(scale=0.5, size=(most, 3, 4, 4))

    def after_each_layer(x):
        streams = []
        for w_q, w_k, w_v in projections:
            x = x + attend(x @ w_q, x @ w_k, x @ w_v)
            streams.append(x)
        return np.array(streams)  # (layer, n, 4)

    x, layers = rng.normal(size=(n, 4)), np.zeros((n, n), dtype=int)
    before = after_each_layer(x)
    for j in range(n):
        changed = x.copy()
        changed[j] += rng.normal(size=4)
        moved = (after_each_layer(changed) != before).any(axis=-1)
        layers[:, j] = np.where(moved.any(axis=0), 1 + moved.argmax(axis=0), 0)
    return layers


def price(mask_of: Callable, n: int = 1024) -> tuple[int, int, list[int]]:
    """What does a mask cost? Found by counting.

    Parameters
    ----------
    mask_of: maps a length to the bool mask (query, key) of that length.
    n: number of tokens.

    Returns
    -------
    open pairs; keys that one of n further queries will still see, which must be kept;
    and how many inputs the last output sees through 1, 2 and 3 layers.
    """
    allowed, longer = mask_of(n), mask_of(2 * n)
    keep = int(longer[n:, :n].any(axis=0).sum())
    reached, seen = allowed[-1], []
    for _ in range(3):
        seen.append(int(reached.sum()))
        reached = reached @ allowed  # one step farther back
    return int(allowed.sum()), keep, seen


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU time, the best of several runs: the one that was disturbed least."""
    took = []
    for _ in range(times):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)
