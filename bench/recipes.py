"""What `bench/train.py` compares: nanoGPT's recipe, ours, and the steps from one to the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from autograde.decoder.model import Config
from autograde.decoder.recipe import Recipe


@dataclass(frozen=True)
class Setup:
    """How to train, and where the model differs from Config's defaults."""

    recipe: Recipe
    config: dict[str, Any] = field(default_factory=dict)
    stop: int | None = None  # after so many steps, whatever the schedule; None: at its end

    @property
    def steps(self) -> int:
        return self.stop or self.recipe.steps

    def but(self, **changes) -> Setup:
        """With these fields of Config or Recipe changed."""
        config = {k: v for k, v in changes.items() if k in Config.__dataclass_fields__}
        recipe = {k: v for k, v in changes.items() if k not in config}
        return replace(
            self, recipe=replace(self.recipe, **recipe), config={**self.config, **config}
        )


# nanoGPT's config/train_shakespeare_char.py, with what its README changes for a CPU.
PLAIN = Setup(
    Recipe(
        steps=2000, batch=12, block=64, max_lr=1e-3, min_lr=1e-4, warmup=100, betas=(0.9, 0.99),
        weight_decay=0.1, clip=1.0, precision="float32", optimizer="adamw",
    ),
    {"positions": "learned", "norm": "layer", "gelu": "exact"},
)  # fmt: skip
OURS = PLAIN.but(
    steps=320, max_lr=0.06, min_lr=0.0, warmup=5, betas=(0.85, 0.99), weight_decay=0.0,
    optimizer="muon", positions="rotary", norm="rms",
)  # fmt: skip


def ablation(plain: Setup, ours: Setup) -> dict[str, Setup]:
    """Equally many steps: from plain to ours one change after the other, then ours less one."""
    to, of = ours.recipe, plain.recipe
    stopped = replace(plain, stop=to.steps)
    short = plain.but(steps=to.steps, warmup=to.steps // 10)
    fast = short.but(max_lr=4 * of.max_lr, min_lr=4 * of.min_lr)
    rotary = fast.but(positions=ours.config["positions"])
    rms = rotary.but(norm=ours.config["norm"])
    muon = rms.but(
        optimizer="muon", max_lr=to.max_lr, min_lr=to.max_lr / 10, betas=to.betas, warmup=to.warmup
    )
    return {
        "plain, stopped there": stopped,
        "+ a schedule of that length": short,
        "+ 4 times the learning rate": fast,
        "+ rotary positions": rotary,
        "+ RMS norm": rms,
        "+ Muon": muon,
        "+ learning rate to zero": muon.but(min_lr=to.min_lr),
        "+ no weight decay (ours)": ours,
        "ours, but AdamW": rms.but(min_lr=to.min_lr, weight_decay=to.weight_decay),
        "ours, but learned positions": ours.but(positions=plain.config["positions"]),
        "ours, but layer norm": ours.but(norm=plain.config["norm"]),
    }
