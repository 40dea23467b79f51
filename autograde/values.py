"""Plain values: what a student's function returned, stripped of every behaviour.

A result is turned into base-class arrays, numbers, strings, None, dtypes, tuples and
dicts of them, so that no array subclass, no `__eq__` and no later change of a shared
buffer can influence a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from autograde.specimens import Specimen

RTOL, ATOL = 1e-5, 1e-6  # float32 from end to end is a right answer
LONGEST = 10**6  # items of a list; more is not an answer to any exercise
LARGEST = 10**7  # numbers of an array, likewise


@dataclass(frozen=True)
class Opaque:
    """A result that is no plain value: what it is, for a sentence."""

    kind: str


@dataclass(frozen=True)
class DType:
    """A dtype (or dtype class) as a value."""

    name: str


class Mismatch(Exception):
    """A result that cannot be what the exercise asks for; the text says why."""


def is_tensor(value: Any) -> bool:
    """Is it a PyTorch tensor? (PyTorch need not be installed.)"""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def is_bfloat16(tensor: Any) -> bool:
    """NumPy has no such dtype."""
    return str(tensor.dtype) == "torch.bfloat16"


def numbers_of(tensor: Any) -> np.ndarray:
    """A tensor's numbers in NumPy; those of bfloat16 in float32, which holds them exactly."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if is_bfloat16(tensor) else tensor).numpy()


def plain(value: Any, depth: int = 0) -> Any:
    """Copy `value` into plain values; what cannot be copied becomes `Opaque`."""
    kind = type(value).__name__
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    try:
        if isinstance(value, str):
            return str.__str__(value)  # of np.str_, say: the text alone
        if isinstance(value, np.dtype):
            return DType(value.name)
        if isinstance(value, type) and issubclass(value, np.generic):
            return DType(np.dtype(value).name)
        if is_tensor(value):
            kind = f"tensor on {value.device} of dtype {value.dtype}".removeprefix("torch.")
            if is_bfloat16(value) and not value.ndim:
                return float(value)
            value = value.detach().cpu().numpy()  # which refuses bfloat16
        if depth and isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return float(value) if value.dtype.kind == "f" else value.item()
        if isinstance(value, list | tuple):
            if depth > 8 or len(value) > LONGEST:
                return Opaque(f"{kind} that is nested too deep or is too long")
            return tuple(plain(item, depth + 1) for item in list(value))
        if isinstance(value, dict):
            return {str(key): plain(item, depth + 1) for key, item in list(value.items())}
        if isinstance(value, Number) and not hasattr(value, "__array__"):
            return float(value)
        return _plain_array(value, kind)
    except Exception:  # a hostile or broken object: whatever it does, it is no value
        dtype = f" of dtype {value.dtype}" if isinstance(value, np.ndarray) else ""
        return Opaque(kind + dtype)


def _plain_array(value: Any, kind: str) -> Any:
    array = np.asarray(value)
    if array.size > LARGEST:
        return Opaque(f"{kind} of {array.size:,} numbers, too many to look at")
    if array.dtype == object:
        if array.ndim == 0:
            return Opaque(kind)
        array = array.astype(np.float64)  # numbers only, or it raises
    array = np.array(array, copy=True, subok=False)
    if array.dtype.kind not in "biufcU":
        return Opaque(f"{kind} of dtype {array.dtype}")
    return array


def conform(value: Any, like: Any, exact_dtype: bool = False) -> Any:
    """Read a plain `value` as the kind of thing `like` is, or raise `Mismatch`.

    Lists and arrays stand for each other where NumPy can convert them, a 0-d array for a
    number; `like` is the reference's result. With `exact_dtype` arrays must have its dtype;
    otherwise float32 or wider will do for floats.
    """
    if isinstance(like, tuple):
        if isinstance(value, np.ndarray) and value.ndim:
            value = tuple(np.asarray(part) for part in value)
        if not isinstance(value, tuple):
            raise Mismatch(f"{describe(value)} came back; {describe(like)} was expected")
        if len(value) != len(like):
            values = "1 value" if len(value) == 1 else f"{len(value)} values"
            raise Mismatch(f"{values} came back; {len(like)} were expected")
        pairs = enumerate(zip(value, like, strict=True))
        return tuple(_conform_part(i, a, b, exact_dtype) for i, (a, b) in pairs)
    if isinstance(like, dict):
        if not isinstance(value, dict) or set(value) != set(like):
            raise Mismatch(f"{describe(value)} came back; {describe(like)} was expected")
        return {key: conform(value[key], like[key], exact_dtype) for key in like}
    if isinstance(like, np.ndarray):
        return _conform_array(value, like, exact_dtype)
    if isinstance(like, bool | int | float):
        return _conform_number(value, like)
    if type(value) is not type(like):
        wanted = "None" if like is None else describe(like)
        raise Mismatch(f"{describe(value)} came back; {wanted} was expected")
    return value


def _conform_part(index: int, value: Any, like: Any, exact_dtype: bool) -> Any:
    try:
        return conform(value, like, exact_dtype)
    except Mismatch as mismatch:
        raise Mismatch(f"value {index} of the tuple: {mismatch}") from None


def _conform_array(value: Any, like: np.ndarray, exact_dtype: bool) -> np.ndarray:
    if isinstance(value, tuple):
        try:
            value = np.array(value)
            value = value if value.size else value.astype(like.dtype)  # [] has no dtype
        except (ValueError, TypeError):
            arrays = sum(isinstance(part, np.ndarray) for part in value)
            what = f"{describe(value)} came back" if arrays else "the rows differ in length"
            raise Mismatch(f"{what}; one array was expected") from None
    if isinstance(value, bool | int | float):
        value = np.array(value)
    if not isinstance(value, np.ndarray):
        raise Mismatch(f"{describe(value)} came back; an array was expected")
    if value.shape != like.shape:
        raise Mismatch(f"the shape is {value.shape}; {like.shape} was expected")
    if like.dtype.kind == "b" and value.dtype.kind != "b":
        raise Mismatch(f"the dtype is {value.dtype}; bool (True or False) was expected")
    if like.dtype.kind in "iu" and value.dtype.kind not in "iu":
        raise Mismatch(f"the dtype is {value.dtype}; integers were expected")
    if exact_dtype and value.dtype != like.dtype:
        raise Mismatch(f"the dtype is {value.dtype}; {like.dtype} was asked for")
    narrow = value.dtype.kind not in "fiu" or value.dtype == np.float16
    if like.dtype.kind == "f" and narrow and value.dtype != like.dtype:
        raise Mismatch(f"the dtype is {value.dtype}; float32 or wider was expected")
    return value


def _conform_number(value: Any, like: bool | int | float) -> bool | int | float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = float(value) if value.dtype.kind == "f" else value.item()
    wanted = {bool: bool, int: int, float: (int, float)}[type(like)]
    if not isinstance(value, wanted) or (type(value) is bool) != (type(like) is bool):
        kind = {bool: "True or False", int: "an int", float: "a number"}[type(like)]
        raise Mismatch(f"{describe(value)} came back; {kind} was expected")
    return type(like)(value)


def difference(got: Any, want: Any, rtol: float = RTOL, atol: float = ATOL) -> str | None:
    """Where two conformed values differ first, in words; None when they agree.

    NaN agrees with NaN only, an infinity with itself only. `atol` grows with the largest
    finite number of `want`, as rounding does.
    """
    if isinstance(want, tuple):
        parts = enumerate(zip(got, want, strict=True))
        found = ((i, difference(g, w, rtol, atol)) for i, (g, w) in parts)
        return next((f"value {i} of the tuple: {text}" for i, text in found if text), None)
    if isinstance(want, dict):
        found = ((key, difference(got[key], want[key], rtol, atol)) for key in want)
        return next((f"{key!r}: {text}" for key, text in found if text), None)
    if not isinstance(want, np.ndarray | int | float):
        return None if got == want else f"expected {want!r}, got {got!r}"
    wrong = differing(got, want, rtol, atol)
    if not wrong.any():
        return None
    if wrong.ndim == 0:
        return f"expected {number(want)}, got {number(got)}"
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    many = "differ, first at" if wrong.sum() > 1 else "differs, at"
    share = f"{wrong.sum()} of {wrong.size} entries {many} {list(where)}"
    return f"{share}: expected {number(want[where])}, got {number(got[where])}"


def differing(got: Any, want: Any, rtol: float = RTOL, atol: float = ATOL) -> np.ndarray:
    """Bool array: the entries in which two numbers or arrays of one shape differ."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype == want.dtype and got.tobytes() == want.tobytes():
        return np.zeros(want.shape, bool)
    if want.dtype.kind not in "fc":
        return np.asarray(got != want)
    with np.errstate(all="ignore"):  # even the cast warns, of a signalling NaN
        wide = np.result_type(got, want, np.float64)  # complex, if one is
        got, want = got.astype(wide), want.astype(wide)
        finite, magnitude = np.isfinite(want), np.abs(want)
        atol *= max(1.0, magnitude.max(initial=0.0, where=finite))
        near = finite & (np.abs(got - want) <= atol + rtol * magnitude)
        alike = (got == want) | (np.isnan(got) & np.isnan(want))
        return np.asarray(~(near | alike))


def same(a: Any, b: Any, exact_dtype: bool = False, rtol: float = RTOL, atol: float = ATOL) -> bool:
    """Do two plain values say the same, as lists or arrays, up to rounding?"""
    try:
        return difference(conform(a, b, exact_dtype), b, rtol, atol) is None
    except Mismatch:
        return False


def size(value: Any) -> int:
    """How many numbers a plain value holds: what makes one example smaller than another."""
    if isinstance(value, tuple | list):
        return sum(size(item) for item in value)
    if isinstance(value, dict):
        return sum(size(item) for item in value.values())
    if isinstance(value, Specimen):
        return 1 + size(value.settings)
    if is_tensor(value):
        return value.numel()
    return value.size if isinstance(value, np.ndarray) else 1


def number(value: Any) -> str:
    """A number for people: six digits, integers and booleans as they are."""
    value = value.item() if isinstance(value, np.ndarray | np.generic) else value
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def describe(value: Any) -> str:
    """A plain value by kind and shape, for a sentence."""
    if value is None:
        return "None (is a `return` missing?)"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple):
        return f"a tuple or list of {len(value)} values"
    if isinstance(value, dict):
        return f"a dict with the keys {sorted(value)}"
    if isinstance(value, Opaque):
        return f"something else (a {value.kind})"
    return f"{type(value).__name__} {value!r}"[:80]
