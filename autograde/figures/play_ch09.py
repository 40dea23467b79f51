"""Chapter 9 to play with: how far back a sliding window reaches through the layers."""

from __future__ import annotations

import numpy as np

from autograde.figures.ch09_variants import fewest_layers
from autograde.figures.play import Play
from autograde.reference.ch03_causal_mask import masked_attention
from autograde.reference.ch09_variants import sliding_window_mask

N, WINDOWS, LAYERS = 12, (1, 2, 3, 4, 5), 4


def play() -> Play:
    """For each window its mask and, found by trying, through how many layers each input arrives."""
    windows = {}
    for window in WINDOWS:
        allowed = sliding_window_mask(N, window)
        layers = fewest_layers(masked_by(allowed), N, LAYERS)
        windows[str(window)] = {
            "open": allowed.astype(int).tolist(),
            "layers": layers.tolist(),  # [output][input]; 0: not through LAYERS of them
            "seen": seen(layers),
        }
    data = {"n": N, "layers": LAYERS, "windows": windows}
    head = ["window", *(f"{n} layer{'s' * (n > 1)}" for n in range(1, LAYERS + 1))]
    rows = [
        [window, *(f"{row[-1]} inputs" for row in entry["seen"])]
        for window, entry in windows.items()
    ]
    return Play("How far back a window reaches", data, head, rows, (476, 482))


def masked_by(allowed):
    return lambda q, k, v: masked_attention(q, k, v, allowed)[0]


def seen(layers) -> list[list[int]]:
    """[layers - 1][output]: the number of inputs that reach it."""
    through = [(layers > 0) & (layers <= most) for most in range(1, LAYERS + 1)]
    return np.sum(through, axis=-1).tolist()
