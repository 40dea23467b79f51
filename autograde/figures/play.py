"""What the pictures that one can play with are made of.

A module `play_chNN.py` computes, with the course's own functions, all that the picture of
chapter NN can show. `web/figures/chNN.js` only shows it: it does no arithmetic, so a number
in a picture is a number of Python's. Numbers that are shown are texts, rounded here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Play:
    """A picture to play with, and the table that stands for it on paper.

    Attributes
    ----------
    title: what it shows, in a few words.
    data: all its states, of the types that JSON has.
    head, rows: the table shown in print, in a PDF, and where no script runs.
    tall: its height in pixels on a wide screen and on a phone, kept free from the start.
    """

    title: str
    data: dict[str, Any]
    head: Sequence[str]
    rows: Sequence[Sequence[str]] = field(repr=False)
    tall: tuple[int, int]


def text(number: float, digits: int = 3) -> str:
    """A number as the pages write it: rounded, with a real minus sign, ∞ and NaN.

    Whole numbers have no decimals, and what rounds to 0 has no sign.
    """
    number = float(number)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "∞" if number > 0 else "−∞"
    short = f"{number:.0f}" if number == round(number) else f"{number:.{digits}f}"
    if float(short) == 0:
        short = short.lstrip("-")
    return short.replace("-", "−")


def texts(numbers, digits: int = 3) -> list[str]:
    """`text` of each number of a vector."""
    return [text(number, digits) for number in np.asarray(numbers)]
