"""Peak memory of causal attention as the sequence grows: whole matrix, blocks, PyTorch's SDPA.

One head of 64 features in float32, one thread. Of NumPy's functions (chapters 3 and 10)
`tracemalloc` tells the peak, of PyTorch's its profiler: results included, inputs not.
"""

from __future__ import annotations

import json
import math
import tempfile
import tracemalloc
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.profiler import ProfilerActivity, profile

from autograde.reference.ch03_causal_mask import causal_mask, masked_attention
from autograde.reference.ch10_memory import flash_attention

LENGTHS = (512, 1024, 2048, 4096)
PAIRS = (("whole matrix", "blocks of 64"), ("SDPA, math", "SDPA, flash"))  # naive, tiled


def run(quick: bool = False) -> dict[str, Any]:
    """Peak bytes of each way at each length, and how many times the tiled one the naive needs."""
    torch.set_num_threads(1)  # each thread has a workspace of its own
    rows = []
    for n in LENGTHS[:2] if quick else LENGTHS:
        print(f"memory: n = {n} ...", flush=True)
        row = {"n": n, **{name: peak(n) for name, peak in WAYS.items()}}
        rows.append(row | {f"{a} / {b}": row[a] / row[b] for a, b in PAIRS})
    first, last = rows[-2:]  # each length is twice the one before
    slopes = {name: math.log2(last[name] / first[name]) for name in WAYS}
    return {"d_head": 64, "dtype": "float32", "rows": rows, "slopes": slopes}


def inputs(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(3, n, 64)).astype(np.float32)


def whole(q, k, v):
    return masked_attention(q, k, v, causal_mask(len(q)))[0]


def blocks(q, k, v):
    return flash_attention(q, k, v, 64, 64)


def numpy_peak(attend: Callable) -> Callable[[int], int]:
    """A function of n: the most bytes that Python and NumPy hold while `attend` runs."""

    def peak(n):
        x = inputs(n)
        tracemalloc.start()
        attend(*x)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    return peak


def torch_peak(backend: SDPBackend) -> Callable[[int], int]:
    """A function of n: the most bytes that PyTorch holds while this kernel runs."""

    def peak(n):
        x = torch.from_numpy(inputs(n))[:, None, None]  # batch 1, head 1
        with (
            sdpa_kernel(backend),
            profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen,
        ):
            sdpa(*x, is_causal=True)
        with tempfile.TemporaryDirectory() as folder:
            seen.export_chrome_trace(f"{folder}/trace.json")
            with open(f"{folder}/trace.json") as file:
                events = json.load(file)["traceEvents"]
        changes = sorted((e for e in events if e["name"] == "[memory]"), key=lambda e: e["ts"])
        return max(accumulate(e["args"]["Bytes"] for e in changes))

    return peak


WAYS = {
    "whole matrix": numpy_peak(whole),
    "blocks of 64": numpy_peak(blocks),
    "SDPA, math": torch_peak(SDPBackend.MATH),
    "SDPA, flash": torch_peak(SDPBackend.FLASH_ATTENTION),
}


def show(data: dict[str, Any]) -> str:
    """MiB for each way, and the ratio of naive to tiled; the last line has the slopes."""
    columns = [name for pair in PAIRS for name in (*pair, "times")]
    lines = [f"{'n':>6}" + "".join(f"{name:>14}" for name in columns)]
    for row in data["rows"]:
        cells = [f"{row['n']:>6,}"]
        for a, b in PAIRS:
            cells += [f"{row[name] / 2**20:>10.2f} MiB" for name in (a, b)]
            cells.append(f"{row[f'{a} / {b}']:>14.1f}")
        lines.append("".join(cells))
    slopes = (f"{data['slopes'][c]:>14.2f}" if c in data["slopes"] else " " * 14 for c in columns)
    return "\n".join([*lines, f"{'slope':>6}{''.join(slopes)}".rstrip()])
