"""Muon: momentum, made equally long in all of its directions (Jordan et al. 2024).

torch.optim.Muon (torch 2.9 and later) makes the same update in bfloat16, one matrix
at a time. Here all matrices of one shape go through the same products, in their own
precision: faster for small ones, and on a CPU without bfloat16.
"""

from __future__ import annotations

from collections import defaultdict

import torch

from autograde.decoder.model import Decoder
from autograde.decoder.recipe import Recipe

QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan's: small singular values grow fast
ADAMW_SCALE = 1 / 8  # AdamW's learning rate, in Muon's: found by trying


def muon(model: Decoder, recipe: Recipe) -> Muon:
    """Muon for the matrices of a decoder's blocks, AdamW for all else.

    recipe.max_lr is Muon's. As with AdamW alone, vectors do not decay.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    of_blocks = set(model.blocks.parameters())
    matrices = [p for p in parameters if p.dim() > 1 and p in of_blocks]
    rest = [p for p in parameters if p.dim() < 2 or p not in of_blocks]
    embeddings = [p for p in rest if p.dim() > 1]
    vectors = [p for p in rest if p.dim() < 2]
    groups = [
        {"params": matrices, "muon": True},
        {"params": embeddings, "lr_scale": ADAMW_SCALE},
        {"params": vectors, "lr_scale": ADAMW_SCALE, "weight_decay": 0.0},
    ]
    how = {"lr": recipe.max_lr, "betas": recipe.betas}
    # Not fused: a GradScaler would then leave it to `step` to skip an overflow.
    return Muon(groups, **how, weight_decay=recipe.weight_decay, foreach=True)


class Muon(torch.optim.AdamW):
    """Muon for the groups that have muon=True, AdamW for the others.

    Muon is for the matrices of the blocks, (in, out) each; its momentum is the
    first of the betas. Embeddings, gains and biases belong to AdamW.
    """

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            if group.get("muon"):
                self.step_matrices(group)
        super().step()  # passes over what has no gradient any more

    def step_matrices(self, group: dict) -> None:
        """Update these matrices, and drop their gradients."""
        lr, beta = group["lr"], group["betas"][0]
        of_shape = defaultdict(list)
        for matrix in group["params"]:
            if matrix.grad is not None:
                of_shape[matrix.shape].append(matrix)
        for (n_in, n_out), matrices in of_shape.items():
            means = [self.running_mean(matrix, beta) for matrix in matrices]
            updates = orthogonalize(torch.stack(means))
            scale = max(1.0, n_out / n_in) ** 0.5
            torch._foreach_mul_(matrices, 1 - lr * group["weight_decay"])
            torch._foreach_add_(matrices, updates.unbind(), alpha=-lr * scale)
            for matrix in matrices:
                matrix.grad = None

    def running_mean(self, matrix, beta: float) -> torch.Tensor:
        """Nesterov's: the mean of the gradients so far, a step ahead."""
        state, grad = self.state[matrix], matrix.grad
        if not state:  # named as AdamW names its own
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(matrix)
        state["step"] += 1
        mean = state["exp_avg"].lerp_(grad, 1 - beta)
        return grad.lerp(mean, beta)


def orthogonalize(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """About U V^T of each matrix U S V^T: its directions, nearly equally long.

    (batch, m, n) in and out. A Newton-Schulz iteration, of three products a step:
    cheaper than a singular value decomposition, and near enough to it.
    """
    a, b, c = QUINTIC
    is_wide = matrices.shape[-2] <= matrices.shape[-1]
    x = matrices if is_wide else matrices.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, factor, x, beta=a)
    return x if is_wide else x.mT
