"""Hidden tests as an instructor writes them who has only nbgrader or Otter-Grader.

For each function some arguments; what the reference gives for them is written down, and a test
compares with it. They look for what our claims look for: shapes, rectangles, rows that see
nothing, large and odd numbers, arguments that must not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from autograde.exercise import Exercise, chapters
from autograde.values import is_tensor, numbers_of


@dataclass(frozen=True)
class Hidden:
    """The tests of one function.

    calls: arguments, as text. before: lines that make what they use. after: further lines.
    atol: what a number may be off by.
    """

    calls: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    atol: float = 1e-5


X3 = "x = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])"
BLOCK = (
    "generator = torch.manual_seed(1)",
    'vectors = ["norm1_gain", "norm1_bias", "norm2_gain", "norm2_bias", "b_down"]',
    'sizes = {name: (4,) for name in vectors} | {"b_up": (6,), "w_up": (4, 6), "w_down": (6, 4)}',
    'sizes |= {name: (4, 4) for name in ["w_q", "w_k", "w_v", "w_o"]}',
    "block = {name: torch.randn(size, dtype=torch.float64) for name, size in sizes.items()}",
)
TESTS = {
    "causal_mask": Hidden(("1", "2", "5", "1, 4", "2, 5", "5, 2", "3, 1")),
    "additive_mask": Hidden(
        ("np.tri(1, dtype=bool)", "np.tri(3, dtype=bool)", "np.tri(2, 4, dtype=bool)",
         "np.zeros((2, 1, 2), dtype=bool)", "np.tri(2, dtype=bool), np.float16"),
        after=("assert additive_mask(np.tri(2, dtype=bool), np.float16).dtype == np.float16",),
    ),
    "masked_softmax": Hidden(
        ("np.array([[0.0, 1.0]]), np.array([[True, True]])", "scores, allowed",
         "np.array([[1000.0, 1001.0], [-1000.0, 1000.0]]), np.ones((2, 2), dtype=bool)",
         "np.array([[0.5, 1.0], [2.0, 3.0]]), np.array([[False, False], [True, True]])",
         "np.array([[1.0, np.nan], [2.0, 3.0]]), allowed",
         "np.array([[1.0, 1e30], [2.0, 3.0]]), allowed",
         "np.arange(12.0).reshape(2, 2, 3) % 5, np.tri(2, 3, 1, dtype=bool)"),
        before=("scores, allowed = np.array([[1.0, 2.0], [3.0, 5.0]]), np.tri(2, dtype=bool)",),
        after=("assert scores.tolist() == [[1, 2], [3, 5]]",),
    ),
    "masked_attention": Hidden(
        ("x, x, x, np.tri(3, dtype=bool)", "x[:2], x, x + 1, np.tri(2, 3, 1, dtype=bool)",
         "q, k, v, np.tri(3, dtype=bool)", "q, k, v, np.ones((2, 1, 3), dtype=bool)",
         "180 * x, -180 * x, x, np.tri(3, dtype=bool)", "x, x, x, np.tri(3, k=-1, dtype=bool)"),
        before=(X3, "q, k, v = np.random.default_rng(0).normal(size=(3, 2, 3, 4))"),
        after=("assert x.sum() == 6",),
    ),
    "padding_mask": Hidden(
        ("np.array([1]), 2", "np.array([1, 3]), 3", "np.array([4, 2, 3]), 5",
         "np.array([0, 2]), 2"),
        after=("assert np.asarray(padding_mask(np.array([1]), 2)).dtype == bool",),
    ),
    "causal_padding_mask": Hidden(
        ("np.array([1]), 1", "np.array([1, 3]), 3", "np.array([2, 4]), 4",
         "np.array([0, 3, 1]), 3"),
        after=("assert np.asarray(causal_padding_mask(np.array([1]), 2)).dtype == bool",),
    ),
    "dog_by_hand": Hidden(("",), atol=1e-3),
    "layer_norm": Hidden(
        ("x, torch.ones(2), torch.zeros(2)", "y, gain, gain - 2", "y[0], gain, gain, 0.5",
         "torch.full((2, 4), 3.0), gain, gain"),
        before=("x = torch.tensor([[1.0, 3.0], [10.0, 50.0]])",
                "gain = torch.tensor([0.5, 1.0, 2.0, 3.0])",
                "y = torch.arange(24.0).reshape(2, 3, 4) % 7"),
        after=("assert x.tolist() == [[1, 3], [10, 50]]",),
    ),
    "rms_norm": Hidden(
        ("torch.tensor([1.0, 7.0]), torch.ones(2)", "y, gain", "y[0], gain, 0.5",
         "torch.zeros(2, 4), gain"),
        before=("gain = torch.tensor([0.5, 1.0, 2.0, 3.0])",
                "y = torch.arange(24.0).reshape(2, 3, 4) % 7"),
        after=("assert y.sum() == 66",),
    ),
    "rotary": Hidden(
        ("torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]), torch.arange(2)", "y, torch.arange(3)",
         "y, torch.tensor([7, 2, 300])", "y, torch.arange(3), 100.0"),
        before=("y = torch.arange(24.0).reshape(2, 3, 4) % 7",),
        after=("assert y.sum() == 66",),
        atol=3e-4,
    ),
    "decoder_block": Hidden(
        ("x[0, :1], block, 1, torch.ones(1, 1, dtype=torch.bool)", "x[0], block, 2, causal",
         "x, block, 2, causal", "x, block, 4, torch.ones(2, 1, 3, dtype=torch.bool)",
         "x[0], block, 2, causal.tril(-1)"),
        before=(*BLOCK, "x = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4) % 7",
                "causal = torch.ones(3, 3, dtype=torch.bool).tril()"),
        after=("assert x.sum() == 66",),
    ),
    "decoder_logits": Hidden(
        ("torch.tensor([2]), params, 1", "torch.tensor([0, 1, 2]), params, 2",
         "torch.tensor([[0, 1], [4, 4]]), params, 2"),
        before=(*BLOCK, 'params = {"blocks": [block, {name: 2 * p for name, p in block.items()}]}',
                'sizes = {"token_embedding": (5, 4), "position_embedding": (6, 4)}',
                'sizes |= {"norm_gain": (4,), "norm_bias": (4,)}',
                "params |= {name: torch.randn(size, dtype=torch.float64)"
                " for name, size in sizes.items()}"),
    ),
    "decoder_parameters": Hidden(
        tuple(f"dict(vocab={vocab}, d_model={d}, n_layers={n}, n_heads=2, d_ff={ff}, max_seq=7)"
              for vocab, d, n, ff in ((5, 4, 1, 16), (5, 4, 3, 16), (11, 8, 2, 20)))
    ),
}  # fmt: skip
ASSIGNMENTS = tuple(
    name for name, exercises in chapters().items() if all(e.name in TESTS for e in exercises)
)


def lines(exercise: Exercise) -> list[str]:
    """The statements of a hidden test; each of them raises where the function is wrong."""
    tests, names = TESTS[exercise.name], _namespace()
    exec("\n".join(tests.before), names)
    found = [*tests.before]
    for call in tests.calls:
        names["reference"] = exercise.reference
        expected = eval(f"reference({call})", names)
        found.append(f"got = {exercise.name}({call})")
        if isinstance(expected, tuple):
            found += [_same(f"got[{i}]", part, tests.atol) for i, part in enumerate(expected)]
        else:
            found.append(_same("got", expected, tests.atol))
    return [*found, *tests.after]


def _namespace() -> dict[str, Any]:
    """What the notebooks have imported."""
    names: dict[str, Any] = {"np": np}
    try:
        import torch
    except ModuleNotFoundError:
        return names
    return names | {"torch": torch}


def _same(got: str, expected: Any, atol: float) -> str:
    """One comparison."""
    if isinstance(expected, int):
        return f"assert {got} == {expected}"
    if is_tensor(expected):
        numbers = np.round(numbers_of(expected).astype(float), 6).tolist()
        return (
            f"torch.testing.assert_close(torch.as_tensor({got}).double(), "
            f"torch.tensor({numbers}, dtype=torch.float64), rtol=1e-4, atol={atol:g})"
        )
    expected = np.asarray(expected)
    if expected.dtype == bool:
        return f"np.testing.assert_array_equal({got}, {expected.tolist()})"
    numbers = str(np.round(expected.astype(float), 6).tolist()).replace("inf", "np.inf")
    return f"np.testing.assert_allclose({got}, {numbers}, rtol=1e-4, atol={atol:g})"
