"""Chapter 2's pictures show the numbers that they are given."""

import numpy as np

from autograde.figures import WIDEST
from autograde.figures.ch02_self_attention import show_bars, show_flow, show_mix, show_scores


def written(figure):
    (ax,) = figure.axes
    return [text.get_text() for text in ax.texts]


def test_bars_have_the_heights_and_say_them():
    figure = show_bars(np.array([0.25, 0.75]), ["a", "b"], digits=3, top=1)
    (ax,) = figure.axes
    assert [bar.get_height() for bar in ax.patches] == [0.25, 0.75]
    assert written(figure) == ["0.250", "0.750"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b"]
    assert ax.get_ylim() == (0, 1.25)
    assert show_bars(np.zeros(2), "ab").axes[0].get_ylim()[1] > 0


def test_scores_are_darker_where_they_are_larger():
    scores = np.array([[2.0, -1.0], [0.5, 1.0], [0.0, 2.0]])
    figure = show_scores(scores, "abc", "xy")
    assert written(figure) == ["2.0", "-1.0", "0.5", "1.0", "0.0", "2.0"]
    faces = [sum(patch.get_facecolor()[:3]) for patch in figure.axes[0].patches]
    assert faces[0] == faces[5] < faces[3] < faces[2] < faces[1] == faces[4] == 3
    paler = show_scores(scores, "abc", "xy", largest=4).axes[0].patches[0].get_facecolor()
    assert sum(paler[:3]) > faces[0]


def test_the_mix_adds_up():
    weights, v = np.array([0.25, 0.75]), np.array([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]])
    figure = show_mix(weights, v, ["first", "second"], digits=1)
    assert written(figure)[-3:] == ["1.0", "3.0", "8.0"]  # the output, below the line
    assert {"first", "second", "0.2", "0.8", "×"} < set(written(figure))


def test_the_flow_has_every_step():
    figure = show_flow()
    (ax,) = figure.axes
    arrows = {tuple(patch.get_gid().split()) for patch in ax.patches}
    assert {"q", "k", "v"} == {end for start, end in arrows if start == "input"}
    assert {("q", "scores"), ("k", "scores"), ("scores", "weights")} < arrows
    assert {("weights", "output"), ("v", "output")} < arrows
    assert figure.get_figwidth() <= WIDEST
