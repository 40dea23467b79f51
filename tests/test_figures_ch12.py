"""Chapter 12's pictures draw what they are given."""

import numpy as np
import pytest

from autograde.figures import WIDEST
from autograde.figures.ch12_mixed_precision import (
    show_halves,
    show_numbers,
    show_scale,
    show_sizes,
)


def test_each_number_is_a_stroke_at_its_place():
    figure = show_numbers({"few": np.array([1.0, 2, 4]), "many": np.array([])}, 0, 8)
    (ax,) = figure.axes
    few, many = ax.collections
    assert [path.vertices[0, 0] for path in few.get_paths()] == [1, 2, 4]
    assert (few.get_gid(), many.get_gid()) == ("numbers 0", "dense 1")
    assert figure.get_figwidth() <= WIDEST


def test_the_bits_of_a_number():
    (ax,) = show_halves([0x3F808000, 0xFFFFFFFF], ["one and a half step", "NaN"]).axes
    boxes = [patch.get_gid().split() for patch in ax.patches]
    first = [(part, bit) for part, row, bit in boxes if row == "0"]
    assert len(first) == 32
    assert [bit for _, bit in first] == list(f"{0x3F808000:032b}")
    assert [part for part, _ in first] == (
        ["sign"] + ["exponent"] * 8 + ["fraction"] * 7 + ["lower"] * 16
    )
    assert {bit for _, row, bit in boxes if row == "1"} == {"1"}


def test_shares_by_power_of_two():
    figure = show_sizes({"a": np.array([-30, -20, -20, 3])}, -25, -14, 16)
    (ax,) = figure.axes
    bars = {
        patch.get_x(): patch.get_height()
        for patch in ax.patches
        if patch.get_gid() == "sizes" and patch.get_height()
    }
    assert {round(x): y for x, y in bars.items()} == pytest.approx({-30: 25, -20: 50, 3: 25})
    spans = {p.get_gid(): p for p in ax.patches if p.get_gid() != "sizes"}
    assert set(spans) == {"lost", "fewer", "infinite"}
    assert spans["lost"].get_hatch()


def test_skipped_steps_are_marked_at_their_scale():
    (ax,) = show_scale([0, 1, 2], [8.0, 4.0, 4.0], [1]).axes
    line, marks = ax.lines
    assert line.get_ydata().tolist() == [3, 2, 2]
    assert (list(marks.get_xdata()), list(marks.get_ydata())) == ([1], [2])
