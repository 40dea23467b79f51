"""Calling a function that lives in another process.

The student's side runs `answer(namespace, request)`, or `answer_all` for several at once; the
grader's side makes a request with `ask` and reads the reply with `wire.decode_outcome`. How
the two texts travel (a pipe, a kernel's channel) is somebody else's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import monotonic
from typing import Any

from autograde.calls import Outcome, call
from autograde.wire import decode, encode, encode_outcome


def ask(
    name: str, args: tuple, kwargs: dict[str, Any], seconds: float, measured: bool = False
) -> str:
    """The request to call `name` with these arguments, as one line of text."""
    given = {"args": encode(args), "kwargs": encode(kwargs)}
    return json.dumps({"name": name, **given, "seconds": seconds, "measured": measured})


# Made before any code of the student's runs: afterwards nothing here may work any more.
BROKEN = encode_outcome(
    Outcome("raised", "Exception", "the check cannot work in this process: is numpy or a "
            "function of Python's replaced?")
)  # fmt: skip
INTERRUPTED = encode_outcome(Outcome("raised", "KeyboardInterrupt"))


def answer(namespace: Mapping[str, Any], request: str) -> str:
    """Carry out a request in the student's process; the reply as one line of text."""
    try:
        return _answer(namespace, request)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:
        return BROKEN


def _answer(namespace: Mapping[str, Any], request: str) -> str:
    asked = json.loads(request)
    name = asked["name"]
    if name not in namespace:
        return encode_outcome(Outcome("missing"))
    function = namespace[name]
    if not callable(function):
        text = f"{name} is no function but a {type(function).__name__}"
        return encode_outcome(Outcome("raised", "TypeError", text))
    args, kwargs = decode(asked["args"], True), decode(asked["kwargs"], True)
    how = asked["seconds"], asked["measured"]
    return encode_outcome(call(function, tuple(args), kwargs, *how))


def answer_all(namespace: Mapping[str, Any], text: str) -> str:
    """Carry the requests out, in the student's process, up to one that hangs or exits."""
    asked, replies, begun = json.loads(text), [], monotonic()
    for request in asked["requests"]:
        replies.append(answer(namespace, request))
        hopeless = replies[-1].startswith(('{"how": "timeout"', '{"how": "exited"'))
        if hopeless or monotonic() - begun > asked["seconds"]:
            break
    return json.dumps(replies)
