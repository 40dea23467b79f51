"""Chapter 4 to play with: a softmax under a temperature, in the numbers of a format."""

from __future__ import annotations

import numpy as np

from autograde.figures.play import Play, text, texts

# The chapter's three rows of scores.
SCORES = {
    "1, 2": [1.0, 2.0],
    "−40, −30, −32": [-40.0, -30.0, -32.0],
    "1000, 1001": [1000.0, 1001.0],
}
TEMPERATURES = [0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7,
                1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100]  # fmt: skip
FORMATS = {"float16": np.float16, "float32": np.float32}


def play() -> Play:
    """The softmax of scores / T, plain and shifted, with every number on the way."""
    data = {
        "scores": {name: texts(scores) for name, scores in SCORES.items()},
        "temperatures": [f"{t:g}" for t in TEMPERATURES],
        "formats": {name: limits(dtype) for name, dtype in FORMATS.items()},
        "states": {
            f"{name} {way} {dtype}": [
                softmax_by_hand(np.array(scores), t, FORMATS[dtype], way == "shifted")
                for t in TEMPERATURES
            ]
            for name, scores in SCORES.items()
            for way in ("plain", "shifted")
            for dtype in FORMATS
        },
    }
    rows = []
    for t in (10, 1, 0.1, 0.05):
        for way in ("plain", "shifted"):
            state = data["states"][f"1, 2 {way} float16"][TEMPERATURES.index(t)]
            cells = (", ".join(state[part]) for part in ("exponents", "powers", "weights"))
            rows.append([f"{t:g}", way, *cells])
    head = ["temperature", "softmax", "exponents", "exponentials in float16", "weights"]
    return Play("A softmax under a temperature", data, head, rows, (500, 594))


def limits(dtype) -> dict[str, float]:
    """Between which exponents e^x is neither 0 nor infinite in this format."""
    info = np.finfo(dtype)
    return {
        "low": round(float(np.log(float(info.smallest_subnormal) / 2)), 1),  # below: rounds to 0
        "high": round(float(np.log(float(info.max))), 1),
    }


def softmax_by_hand(scores, temperature: float, dtype, shifted: bool) -> dict[str, list[str]]:
    """All numbers of one softmax, each rounded to `dtype`, as the chapter's two functions do."""
    with np.errstate(all="ignore"):
        scaled = (scores / temperature).astype(dtype)
        exponents = scaled - scaled.max() if shifted else scaled
        powers = np.exp(exponents)
        total = powers.sum()
        weights = powers / total
    return {
        "scaled": [size(x) for x in scaled],
        "exponents": [size(x) for x in exponents],
        "powers": [size(x) for x in powers],
        "total": size(total),
        "weights": [text(x) for x in weights.astype(float)],
    }


def size(x) -> str:
    """About three digits, whatever the size."""
    x = float(x)
    if not np.isfinite(x) or x == 0:
        return text(x)
    mantissa, power = f"{x:.2e}".split("e")
    if -3 <= int(power) <= 4:
        return f"{x:.{max(0, 2 - int(power))}f}".replace("-", "−")
    return f"{float(mantissa):.1f}e{int(power)}".replace("-", "−")
