"""The same wrong attention functions, put to our checks and to those of a public package.

    pip install torch-judge==0.1.1
    python -m autograde.audit.elsewhere book/exam-elsewhere.json

Each function here is one mistake in causal attention, in PyTorch, so that both can judge it: ours
as an answer to `masked_attention`, theirs as one to its task "causal_attention".
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autograde.audit.exam import killed_by
from autograde.exercise import find

PACKAGE, TASK = "torch-judge", "causal_attention"


def attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, *,
    scale: Callable = lambda d: d**-0.5,
    scores: Callable = lambda q, k: q @ k.mT,
    close: Callable = lambda s, allowed: s.masked_fill(~allowed, -torch.inf),
    softmax: Callable = lambda s: s.softmax(dim=-1),
    after: Callable = lambda weights, allowed: weights.masked_fill(~allowed, 0),
    value: Callable = lambda k, v: v,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Masked attention in which one step can be another; as it stands, a right one."""
    s = scores(q, k) * scale(q.shape[-1])
    weights = after(softmax(close(s, allowed)), allowed)
    return weights @ value(k, v), weights


def _not_itself(s: Tensor, allowed: Tensor) -> Tensor:
    itself = torch.eye(*allowed.shape[-2:], dtype=torch.bool)
    return s.masked_fill(~allowed | itself, -torch.inf)


def _window(s: Tensor, allowed: Tensor) -> Tensor:
    n_query, n_key = allowed.shape[-2:]
    near = torch.ones(n_query, n_key, dtype=torch.bool).triu(n_key - n_query - 1)
    return s.masked_fill(~(allowed & near), -torch.inf)


def _unstable(s: Tensor) -> Tensor:
    return s.exp() / s.exp().sum(dim=-1, keepdim=True)


WRONG: dict[str, dict[str, Callable]] = {
    "the mask is forgotten": {"close": lambda s, a: s, "after": lambda w, a: w},
    "the mask is used the wrong way round": {
        "close": lambda s, a: s.masked_fill(a, -torch.inf),
        "after": lambda w, a: w.masked_fill(a, 0),
    },
    "a token may not see itself": {"close": _not_itself},
    "only the token itself and the one before it are seen": {"close": _window},
    "the mask of ones and zeros is added": {"close": lambda s, a: s + a, "after": lambda w, a: w},
    "closed scores become 0": {"close": lambda s, a: s * a, "after": lambda w, a: w},
    "the mask is applied after the softmax": {"close": lambda s, a: s},
    "the scores are not scaled": {"scale": lambda d: 1.0},
    "the scores are divided by d, not by its root": {"scale": lambda d: 1 / d},
    "the scores are multiplied by the root of d": {"scale": lambda d: d**0.5},
    "keys and queries are exchanged": {"scores": lambda q, k: k @ q.mT},
    "queries are compared with queries": {"scores": lambda q, k: q @ q.mT + 0 * (q @ k.mT)},
    "the weights are all alike": {"scores": lambda q, k: 0 * (q @ k.mT)},
    "the softmax runs over the queries": {"softmax": lambda s: s.softmax(dim=-2)},
    "the softmax overflows for large scores": {"softmax": _unstable},
    "the keys are summed up, not the values": {"value": lambda k, v: k + 0 * v},
}


def ours(different: dict[str, Callable]) -> str:
    """The claim that rejects a function, or ""."""

    def masked_attention(q: Any, k: Any, v: Any, allowed: Any) -> tuple:
        arrays = (torch.as_tensor(x) for x in (q, k, v, allowed))
        return attention(*arrays, **different)

    return killed_by(find("masked_attention"), masked_attention)


def theirs(different: dict[str, Callable]) -> str:
    """The test of the package that rejects a function, or ""."""
    from torch_judge.tasks import get_task

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        return attention(q, k, v, causal, **different)[0]

    for test in get_task(TASK)["tests"]:
        try:
            exec(test["code"].replace("{fn}", "function"), {"function": function})
        except Exception:  # as its own engine does: whatever is raised fails the test
            return test["name"]
    return ""


def main(path: Path) -> None:
    if ours({}) or theirs({}):
        raise SystemExit("the right attention is rejected: no verdict on wrong ones counts")
    found = {name: {"ours": ours(d), "theirs": theirs(d)} for name, d in WRONG.items()}
    version = importlib.metadata.version(PACKAGE)
    data = {"package": PACKAGE, "version": version, "task": TASK, "wrong": found}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
