"""What NumPy would have warned of, where it cannot: WebAssembly has no floating-point flags.

A function is called once more on arrays that look at each result themselves. That finds what
NumPy's own functions and operators make of arrays, which is enough for the one exercise that
forbids warnings; nothing but the warnings of this second call is used.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

MAKERS = ["array", "asarray", "asanyarray", "ascontiguousarray", "zeros", "ones", "empty", "full"]
MAKERS += ["arange", "linspace", "tri", "eye", "identity", "fromiter", "fromfunction"]
_array = np.asarray  # the real one, whatever `np.asarray` is for the time of a call
EXACT = {"maximum", "minimum", "fmax", "fmin", "isfinite", "isnan", "isinf", "negative", "absolute"}
DIVISIONS = {"divide": 1, "floor_divide": 1, "remainder": 1, "reciprocal": 0}
LOGARITHMS = {"log": 0, "log2": 0, "log10": 0, "log1p": -1}  # where they are infinite


class Watched(np.ndarray):
    """An array whose operations are watched; `seen` holds the warnings, in order."""

    seen: list[str] = []  # noqa: RUF012

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        inputs = [_plain(each) for each in inputs]
        options = {key: _plain(value) for key, value in options.items()}
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*inputs, **options)
        asked = np.geterr()
        with np.errstate(all="ignore"), contextlib.suppress(Exception):
            flags = _flags(ufunc.__name__, method, inputs, result, options)
            Watched.seen += [f"{text} encountered in {where}" for kind, text, where in flags
                             if asked[kind] != "ignore"]  # fmt: skip
        return out[0] if out is not None and len(out) == 1 else _watched(result)

    def __array_function__(self, function, types, args, kwargs):
        return _watched(super().__array_function__(function, types, args, kwargs))

    def __getitem__(self, key):
        return _watched(super().__getitem__(_plain(key)))

    def astype(self, *args, **kwargs):
        plain = _plain(self)
        result = plain.astype(*args, **kwargs)
        asked = np.geterr()
        if asked["over"] != "ignore" and np.any(np.isinf(result) & np.isfinite(plain)):
            Watched.seen.append("overflow encountered in cast")
        whole = result.dtype.kind in "iu"
        if asked["invalid"] != "ignore" and whole and not np.isfinite(plain).all():
            Watched.seen.append("invalid value encountered in cast")
        return _watched(result)


def warnings_of(function: Callable, args: tuple, kwargs: dict[str, Any]) -> tuple[str, ...]:
    """The texts of NumPy's warnings in a call of the function, each once."""
    Watched.seen = []
    given = [_watched(copy.deepcopy(each)) for each in args]
    options = {key: _watched(copy.deepcopy(value)) for key, value in kwargs.items()}
    heard = np.errstate(all="warn", under="ignore")
    silent = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with heard, _makers(), silent[0], silent[1], contextlib.suppress(Exception):
        function(*given, **options)
    return tuple(dict.fromkeys(Watched.seen))[:5]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def _watched(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = _array(value)
    if type(value) in (tuple, list):
        return type(value)(map(_watched, value))
    return value.view(Watched) if type(value) is np.ndarray else value


@contextlib.contextmanager
def _makers() -> Iterator[None]:
    """Let NumPy's makers of arrays make watched ones."""

    def watching(make: Callable) -> Callable:
        return wraps(make)(lambda *args, **kwargs: _watched(make(*args, **kwargs)))

    before = {name: getattr(np, name) for name in MAKERS}
    try:
        for name, make in before.items():
            setattr(np, name, watching(make))
        yield
    finally:
        for name, make in before.items():
            setattr(np, name, make)


def _flags(name: str, method: str, inputs: list, result: Any, options: dict) -> Iterator[tuple]:
    """(kind, text, place) of one operation's warnings, named and ordered as NumPy does."""
    arrays = [_array(each) for each in inputs]
    out = _array(result)
    if out.dtype.kind != "f" or name in EXACT or method not in ("__call__", "reduce", "accumulate"):
        return
    infinite = np.isinf(out) & _all(arrays, np.isfinite, name, method, options)
    where = options.get("where", True) if method == "__call__" else True
    divided = _divided(name, arrays) & infinite & where
    numbers = _all(arrays, lambda x: ~np.isnan(x), name, method, options)
    said = name if method == "__call__" else method
    if np.any(divided):
        yield "divide", "divide by zero", said
    if np.any(infinite & ~divided & where):
        yield "over", "overflow", said
    if np.any(np.isnan(out) & numbers & where):
        yield "invalid", "invalid value", said


def _all(arrays: list, holds: Callable, name: str, method: str, options: dict) -> np.ndarray:
    """Where does it hold of all numbers that went into a result?"""
    if method == "reduce":
        chosen = {k: v for k, v in options.items() if k in ("axis", "keepdims")} or {"axis": 0}
        return np.logical_and.reduce(
            holds(arrays[0]) | ~_array(options.get("where", True)), **chosen
        )
    if method == "accumulate" or name == "matmul":
        return _array(all(holds(array).all() for array in arrays))
    return np.logical_and.reduce(np.broadcast_arrays(*map(holds, arrays)))


def _divided(name: str, arrays: list) -> np.ndarray:
    if name in DIVISIONS:
        return arrays[DIVISIONS[name]] == 0
    if name in LOGARITHMS:
        return arrays[0] == LOGARITHMS[name]
    return (arrays[0] == 0) & (arrays[1] < 0) if name == "power" else _array(False)
