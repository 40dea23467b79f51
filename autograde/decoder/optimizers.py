"""The optimizers that a recipe can name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from autograde.decoder.muon import muon
from autograde.decoder.recipe import Recipe


def adamw(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW. Matrices and embeddings decay; gains and biases, whose job is to be
    of some size, do not.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {
            "params": [p for p in parameters if p.dim() > 1],
            "weight_decay": recipe.weight_decay,
        },
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=recipe.max_lr, betas=recipe.betas, fused=True
    )


OPTIMIZERS: dict[str, Callable[[nn.Module, Recipe], torch.optim.Optimizer]] = {
    "adamw": adamw,
    "muon": muon,
}


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """What recipe.optimizer names.

    `fit` sets each group's lr, every step: the schedule's, times its "lr_scale" if
    it has one. ValueError: there is no optimizer of that name.
    """
    if recipe.optimizer not in OPTIMIZERS:
        raise ValueError(
            f"optimizer={recipe.optimizer!r}: choose from {', '.join(OPTIMIZERS)}"
        )
    return OPTIMIZERS[recipe.optimizer](model, recipe)
