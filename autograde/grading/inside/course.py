"""What `from autograde import check` finds in the sandbox: the checks are made elsewhere."""

from __future__ import annotations

from typing import Any

__all__ = ["check", "grade", "hint"]


def check(function: Any, name: str | None = None) -> None:
    """Nothing: when a notebook is graded, its functions are examined outside of it."""


def grade(function: Any, name: str | None = None) -> float:
    """No points: they are given outside."""
    return 0.0


def hint(function: Any, name: str | None = None) -> None:
    """Nothing: hints are for working."""
