"""What a training step costs: operations, and bytes kept for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

from autograde.decoder.model import Config, Decoder


def flops_per_token(config: Config, seq: int) -> int:
    """Floating-point operations of one training step for each token.

    A product with a weight is a multiplication and an addition, and there are
    three of them: one forwards, two backwards. So 6 for each weight of a matrix,
    and as many for each number of a key or value that attention uses. Counted as
    if every query used all `seq` keys, which is the custom (Chowdhery et al. 2022,
    appendix B). Norms, GELU and softmax are left out: they are few.
    """
    d_model, d_kv = config.d_model, config.n_kv_heads * config.d_head
    block = 2 * d_model**2 + 2 * d_model * d_kv + 2 * d_model * config.d_ff
    weights = config.n_layers * block + config.vocab * d_model
    return 6 * (weights + 2 * config.n_layers * seq * d_model)


class Saved:
    """Memory that autograd holds for the backward pass, each piece once."""

    def __init__(self) -> None:
        self.pieces: dict[int, int] = {}  # where it begins -> its bytes

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self.pieces[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def bytes(self) -> int:
        return sum(self.pieces.values())


@contextmanager
def saved_for_backward(model: torch.nn.Module) -> Iterator[Saved]:
    """Count what is kept for the backward pass by all that runs inside.

    The model's own parameters do not count: they are there anyway. Copies of them
    in 16 bits do.
    """
    saved = Saved()
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(saved.add, lambda tensor: tensor):
        yield saved
    saved.pieces = {at: n for at, n in saved.pieces.items() if at not in own}


def checkpoint_blocks(model: Decoder) -> Decoder:
    """Let each block keep its input alone, and run anew in the backward pass.

    Activation checkpointing (Chen et al. 2016). The results are the same; the model
    is changed and returned.
    """
    for block in model.blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    return model
