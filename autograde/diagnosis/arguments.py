"""The arguments of a call, one by one: what stands where, and a call with another value there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from autograde.examination import Record
from autograde.exercise import Exercise

Known = dict[str, Any]  # the arguments of a call by name
Path = tuple[Any, ...]  # where a value stands in them: ("params", "w_q")


def known_arguments(exercise: Exercise, record: Record) -> Known:
    """The arguments of a call by name, the defaults included."""
    given = inspect.signature(exercise.reference).bind_partial(*record.args, **record.kwargs)
    given.apply_defaults()
    return given.arguments


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of everything that stands in dicts and tuples of arguments."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, tuple | list) and path:
        parts = enumerate(value)
    else:
        yield path, value
        return
    for key, part in parts:
        yield from leaves(part, (*path, key))


def lists(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where the lists stand among the arguments."""
    if isinstance(value, list):
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from lists(part, (*path, key))


def name_of(path: Path) -> str:
    """A value among the arguments as one would write it in Python."""
    first, *rest = path
    return f"`{first}{''.join(f'[{key!r}]' for key in rest)}`"


def get(known: Any, path: Path) -> Any:
    for key in path:
        known = known[key]
    return known


def put(known: Any, path: Path, value: Any) -> Any:
    """A copy of the arguments with another value there."""
    if not path:
        return value
    key, *rest = path
    parts = dict(known) if isinstance(known, dict) else list(known)
    parts[key] = put(known[key], tuple(rest), value)
    return tuple(parts) if isinstance(known, tuple) else parts
