"""What can be said of a wrong result when no known mistake explains it."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograde.exercise import Finding
from autograde.values import differing


def observe(finding: Finding) -> str:
    """One true sentence about how `finding.got` relates to what was expected, or ""."""
    pairs = [(finding.got, finding.expected)]
    if isinstance(finding.expected, tuple) and isinstance(finding.got, tuple):
        pairs = list(zip(finding.got, finding.expected, strict=False))
    for got, want in pairs:
        if isinstance(got, np.ndarray) and isinstance(want, np.ndarray) and want.size > 1:
            for look in (_transposed, _opposite, _not_finite, _leak, _row_sums, _factor):
                if sentence := look(got, want):
                    return sentence
    return ""


def _agree(got: Any, want: Any) -> bool:
    return got.shape == want.shape and not differing(got, want).any()


def _transposed(got: np.ndarray, want: np.ndarray) -> str:
    if got.ndim >= 2 and _agree(np.swapaxes(got, -1, -2), want) and not _agree(got, want):
        return "The result is the transpose of the expected one: queries are rows, keys columns."
    return ""


def _opposite(got: np.ndarray, want: np.ndarray) -> str:
    if got.dtype == bool == want.dtype and _agree(~got, want):
        return "Every entry is the opposite of the expected one: True means may attend."
    return ""


def _not_finite(got: np.ndarray, want: np.ndarray) -> str:
    if got.shape != want.shape or got.dtype.kind != "f" or not np.isfinite(want).all():
        return ""
    for name, bad in (("NaN", np.isnan(got)), ("infinite", np.isinf(got))):
        if bad.any() and got.ndim >= 2:
            rows = [int(i) for i in np.unique(np.argwhere(bad)[:, -2])]
            part = "every row" if len(rows) == got.shape[-2] else f"row {rows[0]}"
            return f"The result is {name} in {part}."
    return ""


def _leak(got: np.ndarray, want: np.ndarray) -> str:
    if got.shape != want.shape or want.dtype.kind != "f" or want.ndim < 2:
        return ""
    closed = (want == 0) & (got != 0)
    if _is_weights(want) and closed.any():
        *_, query, key = (int(i) for i in np.argwhere(closed)[0])
        return f"Query {query} gives weight to key {key}, which the mask closes."
    return ""


def _row_sums(got: np.ndarray, want: np.ndarray) -> str:
    if got.shape != want.shape or not _is_weights(want) or np.isnan(got).any():
        return ""
    sums = got.sum(axis=-1)
    wrong = differing(sums, want.sum(axis=-1))
    if wrong.any():
        down = "; the columns sum to 1 instead" if np.allclose(got.sum(axis=-2), 1) else ""
        return f"A row of weights sums to {float(sums[wrong][0]):.4g}, not to 1{down}."
    return ""


def _factor(got: np.ndarray, want: np.ndarray) -> str:
    if got.shape != want.shape or want.dtype.kind != "f" or not np.isfinite(got).all():
        return ""
    used = want != 0
    if used.any() and np.isfinite(want).all():
        ratio = float(np.median(got[used] / want[used]))
        if ratio and not np.isclose(ratio, 1) and _agree(got, ratio * want):
            return f"Every number is {ratio:.4g} times the expected one."
    return ""


def _is_weights(want: np.ndarray) -> bool:
    """Are these attention weights: rows that sum to 1, or to 0 for a query without keys?"""
    if want.ndim < 2 or want.dtype.kind != "f" or not np.isfinite(want).all():
        return False
    sums = want.sum(axis=-1)
    return bool((want >= 0).all() and (np.isclose(sums, 1) | (sums == 0)).all())
