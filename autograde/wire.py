"""How values cross between the grader and a student's process: text, and no pickle.

Arrays travel as dtype, shape, order and bytes in base64, everything else as JSON with a tag. What
arrives can only be a plain value (see `autograde.values`), whoever wrote it.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import numpy as np

from autograde.calls import Outcome
from autograde.specimens import Specimen
from autograde.values import DType, Opaque, is_bfloat16, is_tensor, numbers_of


def encode(value: Any) -> Any:
    """A value as JSON-able data. Arguments may hold arrays, tensors, dtypes, specimens."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and not isinstance(value, np.generic):
        return {"number": repr(value)}  # keeps inf and nan, which are not JSON
    if isinstance(value, complex):
        return {"array": _bytes(np.asarray(value))}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {key: encode(item) for key, item in value.items()}}
    if isinstance(value, type):
        return {"dtype": np.dtype(value).name}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Opaque):
        return {"opaque": value.kind}
    if isinstance(value, Specimen):
        return {"specimen": [value.name, encode(value.settings)]}
    if is_tensor(value):
        return _tensor(value)
    if _is_torch_dtype(value):
        return {"torch_dtype": str(value).removeprefix("torch.")}
    return {"array": _bytes(np.asarray(value))}


def _tensor(value: Any) -> dict[str, Any]:
    data = {"bfloat16" if is_bfloat16(value) else "tensor": _bytes(numbers_of(value))}
    return {"parameter": [data, encode(value.grad)]} if value.requires_grad else data


def _is_torch_dtype(value: Any) -> bool:
    return (type(value).__module__, type(value).__name__) == ("torch", "dtype")


def decode(data: Any, arguments: bool = False) -> Any:
    """The value that `encode` was given; `ValueError` for anything else.

    arguments: the student's side, where tensors, dtypes and functions are wanted as such.
    """
    if data is None or isinstance(data, bool | str):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError("not an encoded value")
    ((tag, body),) = data.items()
    if tag == "number":
        return int(body) if body.lstrip("-").isdigit() else float(body)
    if tag in ("list", "tuple"):
        items = (decode(item, arguments) for item in body)
        return list(items) if tag == "list" and arguments else tuple(items)
    if tag == "dict":
        return {key: decode(item, arguments) for key, item in body.items()}
    if tag == "dtype":
        return np.dtype(body).type if arguments else DType(body)
    if tag == "opaque":
        return Opaque(str(body))
    if tag == "specimen" and arguments:
        return Specimen(body[0], decode(body[1], arguments))
    if tag == "array":
        return _array(body)
    if arguments and tag in ("tensor", "bfloat16", "parameter", "torch_dtype"):
        return _decode_torch(tag, body)
    raise ValueError(f"unknown tag {tag!r}")


def _decode_torch(tag: str, body: Any) -> Any:
    import torch

    if tag == "torch_dtype":
        return getattr(torch, body)
    if tag == "parameter":
        parameter = decode(body[0], True).requires_grad_()
        parameter.grad = decode(body[1], True)
        return parameter
    tensor = torch.from_numpy(_array(body))
    return tensor.bfloat16() if tag == "bfloat16" else tensor


def _array(body: list) -> np.ndarray:
    dtype, shape, order, data = body
    dtype = np.dtype(str(dtype))
    # Of items without a size any number would fit into no bytes at all.
    if dtype.kind not in "biufcU" or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"no array of dtype {dtype} and shape {shape}")
    return np.ndarray(shape, dtype, base64.b64decode(data), order=order).copy(order="K")


def _bytes(array: np.ndarray) -> list:
    order = "F" if array.flags.fnc else "C"
    data = base64.b64encode(array.tobytes(order)).decode("ascii")
    return [array.dtype.str, array.shape, order, data]


def encode_outcome(outcome: Outcome) -> str:
    fields = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    return json.dumps({**fields, "value": encode(outcome.value)})


def decode_outcome(text: str) -> Outcome:
    """The outcome in a reply; one that "died" if the reply is none."""
    try:
        data = json.loads(text)
        how = data["how"]
        if how not in ("returned", "raised", "timeout", "exited", "missing", "cut off"):
            raise ValueError(how)
        return Outcome(
            how=how,
            value=decode(data["value"]),
            text=str(data["text"])[:300],
            line=str(data["line"])[:120],
            changed=tuple(int(index) for index in data["changed"]),
            printed=int(data["printed"]),
            warned=tuple(str(text)[:200] for text in data["warned"][:5]),
            peak=None if data["peak"] is None else int(data["peak"]),
        )
    except Exception as error:  # the reply comes from the student's process: trust nothing
        return Outcome("died", text=f"its reply made no sense: {type(error).__name__}")
