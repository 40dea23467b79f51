"""Functions that are handed to students' functions: `influence(f, x)` needs an f.

A function cannot cross to a student's process, but its name can. So a check hands over a
specimen, a function of this module, with settings that are plain values:

    influence(specimens.running_mean, x)
    influence(specimens.reads.using(pattern=allowed), x)

Specimens are deterministic, leave their arguments alone, and return fresh arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_known: dict[str, Callable] = {}


@dataclass(frozen=True, eq=False)
class Specimen:
    """A function of this module by its name, with the settings that it is called with."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in _known:
            raise ValueError(f"no specimen is called {self.name!r}; there are {', '.join(_known)}")

    def __call__(self, *args: Any) -> Any:
        return _known[self.name](*args, **self.settings)

    def using(self, **settings: Any) -> Specimen:
        """The same function with these settings."""
        return Specimen(self.name, {**self.settings, **settings})

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __doc__(self) -> str:
        return inspect.getdoc(_known[self.name]) or ""

    def __repr__(self) -> str:
        return f"specimens.{self.name}"


def specimen(function: Callable) -> Specimen:
    """Decorator: make a function of this module a specimen. Its settings are keyword-only."""
    _known[function.__name__] = function
    return Specimen(function.__name__)


# (seq, d_in) -> (seq, d_out) -------------------------------------------------------------


@specimen
def running_mean(x):
    """Output i is the mean of inputs 0 to i."""
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


@specimen
def reads(x, *, pattern):
    """Output i is the sum of the inputs j with pattern[i, j] (bool, (seq, seq))."""
    return np.asarray(pattern, dtype=float) @ x
