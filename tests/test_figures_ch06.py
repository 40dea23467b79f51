"""Chapter 6's pictures show what they are given."""

import numpy as np

from autograde.figures import WIDEST
from autograde.figures.ch06_decoder import show_architecture, show_clocks, show_heat


def test_the_architecture_has_all_parts_and_fits_a_phone():
    figure = show_architecture()
    (ax,) = figure.axes
    parts = [patch.get_gid() for patch in ax.patches]
    assert parts.count("plus") == 3  # position, attention, MLP
    order = ["token_embedding", "norm 1", "attention", "norm 2", "mlp", "last norm"]
    heights = [ax.patches[parts.index(name)].get_extents().y0 for name in order]
    assert heights == sorted(heights)  # from the bottom to the top
    assert figure.get_figwidth() <= WIDEST


def test_the_hands_of_the_clocks_stand_at_their_angles():
    figure = show_clocks([1.0, 0.01], [0, 2, 5], ["fast", "slow"])
    fast, slow = figure.axes
    for ax, frequency in ((fast, 1.0), (slow, 0.01)):
        for line, position in zip(ax.lines, [0, 2, 5], strict=True):
            tip = [line.get_xdata()[1], line.get_ydata()[1]]
            np.testing.assert_allclose(
                tip, [np.cos(position * frequency), np.sin(position * frequency)]
            )
    assert [text.get_text() for text in fast.texts] == ["0", "2", "5"]
    assert [text.get_text() for text in slow.texts] == ["0", "5"]  # the others would cover them


def test_heat_is_the_table():
    values = np.arange(12.0).reshape(3, 4)
    figure = show_heat(values, "row", "column", "title")
    ax, _ = figure.axes
    assert np.array_equal(ax.images[0].get_array(), values)
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("row", "column", "title")
    assert len(show_heat(values, "row", "column", bar=False).axes) == 1
