"""Chapter 8's pictures show the numbers that they are given."""

import numpy as np
import pytest

from autograde.figures import WIDEST
from autograde.figures.ch08_kv_cache import (
    STATES,
    show_cuts,
    show_growth,
    show_probabilities,
    show_states,
)


def written(figure):
    (ax,) = figure.axes
    return [text.get_text() for text in ax.texts]


def test_bars_are_as_long_as_the_probabilities():
    figure = show_probabilities(np.array([0.75, 0.25]), ["a", "b"], "title")
    (ax,) = figure.axes
    assert [bar.get_width() for bar in ax.patches] == [0.75, 0.25]
    assert written(figure) == ["0.75", "0.25"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    low, high = ax.get_ylim()
    assert low > high  # the first token at the top


def test_cuts_fill_the_bar_and_hatch_what_is_dropped():
    p = np.array([0.5, 0.3, 0.2])
    figure = show_cuts({"all": (p, 3, None), "top-p": (p, 2, 0.6)}, ["x", "y", "z"])
    (ax,) = figure.axes
    bars = {tuple(bar.get_gid().split()): bar for bar in ax.patches}
    assert len(bars) == 6
    for row in "01":
        ends = [bar.get_x() + bar.get_width() for (r, *_), bar in bars.items() if r == row]
        assert max(ends) == pytest.approx(1)
    hatched = {(row, token) for (row, token, _), bar in bars.items() if bar.get_hatch()}
    assert hatched == {("1", "2")}
    assert "top_p = 0.6" in written(figure)
    assert [line.get_xdata()[0] for line in ax.lines] == [0.6]
    assert figure.get_figwidth() <= WIDEST


def test_states_differ_in_mark_and_not_only_in_colour():
    figure = show_states([["new", "none"], ["again", "kept"]], ["a", "b"])
    (ax,) = figure.axes
    drawn = {tuple(patch.get_gid().split()) for patch in ax.patches}
    assert drawn == {("new", "0", "0"), ("none", "0", "1"), ("again", "1", "0"), ("kept", "1", "1")}
    assert written(figure) == ["●", "✕", "○"]
    looks = {(state.get("mark"), state.get("hatch")) for state in STATES.values()}
    assert len(looks) == len(STATES)


def test_growth_draws_marks_and_lines():
    x = np.array([1.0, 2.0, 4.0])
    figure = show_growth(x, {"a": x, "b": 2 * x}, {"a": x + 1, "b": x}, "n", "s")
    (ax,) = figure.axes
    lines = {line.get_label(): line for line in ax.lines}
    assert np.array_equal(lines["a: formula"].get_ydata(), x + 1)
    assert np.array_equal(lines["b: measured"].get_ydata(), 2 * x)
    assert lines["a: formula"].get_linestyle() != lines["b: formula"].get_linestyle()
    assert lines["a: measured"].get_marker() != lines["b: measured"].get_marker()
    assert lines["a: measured"].get_linestyle() == "None"
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert show_growth(x, {"a": x}, {"a": x}, "n", "s", log="").axes[0].get_xscale() == "linear"
