"""What went into a result and is not seen in it, worked back from it where that can be done.

The last step of some functions can be undone, for it is a product with a matrix that was given.
What is found before it is compared with what should be there, as the results are. An exercise
names the function here that does it: `steps=inside.of_heads`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from autograde.diagnosis.arguments import Known, known_arguments
from autograde.examination import Record
from autograde.exercise import Exercise
from autograde.reference.ch05_multi_head import split_heads
from autograde.values import ATOL, RTOL, is_tensor, plain

HEADS, WEIGHTS = "the outputs of the heads, before `w_o`", "the weights of the heads"
VECTORS = "the vectors that are multiplied by `params['token_embedding'].T`"
NORMALISED = "the vectors of the last norm, before `params['norm_gain']` and `params['norm_bias']`"
BEFORE_BIAS, BEFORE_GAIN = "the vectors before `gain` and `bias`", "the vectors before `gain`"
Inside = dict[str, list[tuple[Any, Any, Record]]]  # name: (got, expected, where)


def inside(exercise: Exercise, failed: list[Record]) -> Inside:
    """Of each step inside that can be seen: what it gave and what it should have given, in those
    of the failed results from which both can be worked back."""
    found: Inside = {}
    look = exercise.steps
    for record in failed if look else ():
        known = {
            name: plain(value) if is_tensor(value) or isinstance(value, dict) else value
            for name, value in known_arguments(exercise, record).items()
        }
        if np.shape(record.outcome.value) != np.shape(record.expected):
            return {}
        got = dict(look(known, np.asarray(record.outcome.value)))
        for name, want in look(known, np.asarray(record.expected)):
            if name in got:
                found.setdefault(name, []).append((got[name], want, record))
    return found


def _undone(product: np.ndarray, matrix: np.ndarray) -> np.ndarray | None:
    """The x of x @ matrix = product, if there is one and only one."""
    if np.linalg.matrix_rank(matrix) < matrix.shape[-2] or not np.isfinite(product).all():
        return None
    x = product @ np.linalg.pinv(matrix)
    fits = np.allclose(x @ matrix, product, rtol=10 * RTOL, atol=10 * ATOL)
    return x if fits else None


def of_heads(known: Known, out: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The heads' outputs; and the weights, where there are no more keys than numbers in a value."""
    joined = _undone(out, known["w_o"])
    if joined is None or joined.dtype != np.float64:
        return
    heads = split_heads(joined, known["n_heads"])
    yield HEADS, heads
    values = split_heads(known.get("memory", known["x"]) @ known["w_v"], known["n_heads"])
    *_, n_key, d_head = values.shape
    ranks = np.linalg.matrix_rank(values)
    if n_key <= d_head and (ranks == n_key).all():
        weights = heads @ np.linalg.pinv(values)
        fits = np.allclose(weights @ values, heads, atol=1e-6)
        if fits and (n_key < d_head or np.allclose(weights.sum(axis=-1), 1, atol=1e-6)):
            yield WEIGHTS, weights.round(9) + 0.0


def of_logits(known: Known, logits: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """What the token embeddings are compared with, before and after gain and bias."""
    params = known["params"]
    vectors = _undone(logits, np.asarray(params["token_embedding"]).T)
    telling = vectors is not None and vectors.shape[-1] > 2  # two numbers become -1 and 1
    if telling and vectors.dtype == np.float64:
        yield VECTORS, vectors
        yield NORMALISED, (vectors - params["norm_bias"]) / params["norm_gain"]


def of_layer_norm(known: Known, out: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The normalised vectors."""
    if (known["gain"] != 0).all():
        yield BEFORE_BIAS, (out - known["bias"]) / known["gain"]


def of_rms_norm(known: Known, out: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The normalised vectors."""
    if (known["gain"] != 0).all():
        yield BEFORE_GAIN, out / known["gain"]
