"""What the course's own functions did before: a class makes the same mistakes on the same inputs.

Naming a mistake calls many wrong answers on the inputs of the claims, which are the same for
every student. Each such call is made once in a process.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from autograde.calls import Outcome, call
from autograde.values import is_tensor, numbers_of, size

MOST = 5_000_000  # numbers in all results that are remembered; then it begins anew
LARGEST = 50_000  # numbers in one
NO_VALUE = (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError)

_known: dict[tuple, Outcome] = {}
_held = 0


def recalled(
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    measured: bool = False,
    given: bytes | None = None,
) -> Outcome:
    """As `calls.call`, of a function that does the same each time. Its results are shared: do
    not change them.

    given: what `arguments` makes of args and kwargs, if it is known: that can take longer than the
    call.
    """
    global _held
    given = given or arguments(args, kwargs)
    if given is None or not hasattr(function, "__qualname__"):
        return call(function, args, kwargs, measured=measured)
    key = (function.__module__, function.__qualname__, given, measured)
    if key not in _known:
        outcome = call(function, args, kwargs, measured=measured)
        count = 1 + size(outcome.value)
        # How long a call takes depends on the moment.
        if outcome.how not in ("returned", "raised") or count > LARGEST:
            return outcome
        if _held + count > MOST:
            forget()
        _known[key] = outcome
        _held += count
    return _known[key]


def forget() -> None:
    """Begin anew, as when calls are carried out in another way from now on."""
    global _held
    _known.clear()
    _held = 0


def arguments(args: tuple, kwargs: dict[str, Any]) -> bytes | None:
    """Stands for these arguments; None where they cannot be written down."""
    try:
        return digest((args, kwargs))
    except NO_VALUE:
        return None


def digest(value: Any) -> bytes:
    """Stands for a value with all that a function can see of it.

    Raises
    ------
    one of `NO_VALUE`: it cannot be written down.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.fast = True  # what stands there twice is written twice, be it one object or two
    pickler.dump(value)
    return hashlib.blake2b(file.getbuffer(), digest_size=16).digest()


class _Pickler(pickle.Pickler):
    """Writes arrays as a function sees them, and tensors much quicker than PyTorch does."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            look = (value.dtype.str, value.shape, value.strides, value.flags.writeable)
            return tuple, ((*look, value.tobytes()),)
        if is_tensor(value):
            look = (str(value.dtype), value.stride(), value.requires_grad)
            grad = value.grad if value.is_leaf else None
            return tuple, ((*look, numbers_of(value), grad),)
        return NotImplemented
