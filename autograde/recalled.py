"""What the course's own functions did before: a class makes the same mistakes on the same inputs.

Naming a mistake calls many wrong answers on the inputs of the claims, which are the same for
every student. Each such call is made once in a process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from autograde.calls import Outcome, call
from autograde.specimens import Specimen
from autograde.values import DType, is_tensor, numbers_of, size

MOST = 5_000_000  # numbers in all results that are remembered; then it begins anew
LARGEST = 50_000  # numbers in one
PLAIN = (bool, int, float, complex, str, np.generic, np.dtype, type, DType, type(None))

_known: dict[bytes, Outcome] = {}
_held = 0


def recalled(
    function: Callable, args: tuple, kwargs: dict[str, Any], measured: bool = False
) -> Outcome:
    """As `calls.call`, of a function that does the same each time. Its results are shared: do
    not change them."""
    global _held
    parts: list[bytes] = []
    try:
        _write(parts, (function.__module__, function.__qualname__, args, kwargs, measured))
    except TypeError:
        return call(function, args, kwargs, measured=measured)
    key = hashlib.blake2b(b" ".join(parts), digest_size=16).digest()
    if key not in _known:
        outcome = call(function, args, kwargs, measured=measured)
        count = 1 + size(outcome.value)
        # How long a call takes depends on the moment.
        if outcome.how not in ("returned", "raised") or count > LARGEST:
            return outcome
        if _held + count > MOST:
            _known.clear()
            _held = 0
        _known[key] = outcome
        _held += count
    return _known[key]


def _write(parts: list[bytes], value: Any) -> None:
    """A value with all that a function can see of it; `TypeError` for what is no value."""
    if isinstance(value, np.ndarray):
        look = (value.dtype.str, value.shape, value.strides, value.flags.writeable)
        parts += (repr(look).encode(), value.tobytes())
    elif isinstance(value, PLAIN):
        parts += (type(value).__name__.encode(), repr(value).encode())
    elif is_tensor(value):
        grad = value.grad if value.is_leaf else None
        parts.append(f"{value.dtype} {value.stride()} {value.requires_grad}".encode())
        _write(parts, numbers_of(value))
        if grad is not None:
            _write(parts, grad)
    elif isinstance(value, list | tuple):
        parts.append(f"{type(value).__name__} {len(value)}".encode())
        for item in value:
            _write(parts, item)
    elif isinstance(value, dict):
        parts.append(f"dict {len(value)}".encode())
        for key, item in value.items():
            parts.append(repr(key).encode())
            _write(parts, item)
    elif isinstance(value, Specimen):
        _write(parts, (value.name, value.settings))
    elif type(value).__module__ == "torch":  # a dtype, say
        parts.append(repr(value).encode())
    else:
        raise TypeError(type(value).__name__)
