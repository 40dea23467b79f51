"""How well a decoder foretells a text: the loss of a whole split."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy


@torch.no_grad()
def evaluate(
    model: nn.Module, tokens: torch.Tensor, block: int, precision: str = "float32"
) -> float:
    """The mean loss over a whole split: deterministic, each token foretold once.

    Parameters
    ----------
    tokens: ids (n,), n >= 2. They are cut into windows of `block`, one after the
        other; the last may be shorter. So a token is foretold from 1 to `block`.
    precision: as in a Recipe.

    Returns
    -------
    nats per token: the mean over the n - 1 tokens that have one before them. Under
    torchrun each process computes all of it.
    """
    device, n = next(model.parameters()).device, len(tokens) - 1
    if n < 1:
        raise ValueError(f"{n + 1} tokens: to foretell one, at least 2 are needed")
    tokens = tokens.to(device)
    # As many rows at once as a CPU's caches like, or as keep a GPU busy.
    width = block * max(1, (2**12 if device.type == "cpu" else 2**16) // block)
    total = torch.zeros((), dtype=torch.float64, device=device)
    with autocast(resolve(precision, device), device):
        for start, end in _spans(n, width, block):
            row = min(block, end - start)
            inputs, targets = tokens[start:end], tokens[start + 1 : end + 1]
            total += loss_of(
                model, inputs.view(-1, row), targets.view(-1, row), "sum"
            )
    return total.item() / n


def _spans(n: int, width: int, block: int):
    """Cut n tokens into spans of whole rows, at most `width` long, and a rest."""
    whole = n - n % block
    for start in range(0, whole, width):
        yield start, min(start + width, whole)
    if whole < n:
        yield whole, n


def loss_of(model, inputs, targets, reduction: str = "mean") -> torch.Tensor:
    """Nats per token, computed in float32 whatever the model gives."""
    logits = model(inputs).flatten(0, 1).float()
    return cross_entropy(logits, targets.flatten(), reduction=reduction)


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """The context in which a model runs in this precision."""
    dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
    return torch.autocast(device.type, dtype, enabled=dtype is not None)


def resolve(precision: str, device: torch.device | str) -> str:
    """What "auto" means there: bfloat16 on a GPU that has it, else float32."""
    if precision != "auto":
        return precision
    has_it = torch.device(device).type == "cuda" and torch.cuda.is_bf16_supported(
        including_emulation=False
    )
    return "bfloat16" if has_it else "float32"
