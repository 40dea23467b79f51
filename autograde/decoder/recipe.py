"""How a decoder is trained, as data: what `fit` reads, and a checkpoint keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

PRECISIONS = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. `dataclasses.replace` changes one thing."""

    steps: int = 2000
    batch: int = 12  # sequences of one step, of all processes together
    block: int = 64  # tokens of a sequence
    max_lr: float = 1e-3
    min_lr: float = 1e-4
    warmup: int | None = None  # steps; None: a tenth of all, at most 100
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1  # of matrices and embeddings only
    clip: float | None = 1.0  # the largest norm of the gradients; None: any
    accumulation: int = 1  # a batch is run in so many pieces, to save memory
    eval_every: int = 250  # steps
    seed: int = 0  # of the order of the batches
    precision: str = "auto"  # or "float32", "bfloat16", "float16"
    optimizer: str = "adamw"
    compile: bool = False

    def __post_init__(self):
        _check(self)

    @property
    def warmup_steps(self) -> int:
        return min(100, self.steps // 10) if self.warmup is None else self.warmup


def _check_kinds(recipe: Recipe) -> None:
    """Raise a ValueError for a value that is not of its field's type."""
    for field in fields(recipe):
        name, value = field.name, getattr(recipe, field.name)
        if value is None and "None" in field.type:
            continue
        is_kind = {
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, int | float) and math.isfinite(value),
            "bool": isinstance(value, bool),
            "str": isinstance(value, str),
            "tuple": isinstance(value, tuple | list) and len(value) == 2,
        }
        if not is_kind[field.type.partition("[")[0].partition(" ")[0]]:
            raise ValueError(f"{name}={value!r}: wanted is {field.type}")


def _check(recipe: Recipe) -> None:
    """Raise a ValueError for what nothing can be trained with."""
    _check_kinds(recipe)
    least = dict.fromkeys(
        ("steps", "batch", "block", "accumulation", "eval_every"), 1
    )
    least |= dict.fromkeys(("max_lr", "min_lr", "weight_decay", "seed"), 0)
    for name, low in least.items():
        if getattr(recipe, name) < low:
            raise ValueError(
                f"{name}={getattr(recipe, name)}: at least {low} is wanted"
            )
    steps, batch, pieces = recipe.steps, recipe.batch, recipe.accumulation
    for is_wrong, what in (
        (recipe.seed >= 2**63, f"seed={recipe.seed}: less than 2**63 is wanted"),
        (
            not all(
                isinstance(b, int | float) and 0 <= b < 1 for b in recipe.betas
            ),
            f"betas={recipe.betas}: each is at least 0 and less than 1",
        ),
        (
            recipe.clip is not None and recipe.clip <= 0,
            f"clip={recipe.clip}: give a norm above 0, or None",
        ),
        (
            not 0 <= recipe.warmup_steps < steps,
            f"warmup={recipe.warmup}: at least 0, and fewer than steps={steps}",
        ),
        (batch % pieces, f"batch={batch}: accumulation={pieces} must divide it"),
        (
            recipe.precision not in PRECISIONS,
            f"precision={recipe.precision!r}: choose from {', '.join(PRECISIONS)}",
        ),
    ):
        if is_wrong:
            raise ValueError(what)
