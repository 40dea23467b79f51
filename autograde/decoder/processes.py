"""Training in several processes at once, of one machine or many, under torchrun.

Without torchrun there is one process, and nothing here sends a message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def joined(device: torch.device) -> Iterator[None]:
    """Meet the others that torchrun started: by NCCL on GPUs, else by gloo."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def processes() -> tuple[int, int]:
    """This process's rank, and how many processes there are: (0, 1) when alone."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share_weights(model: torch.nn.Module) -> None:
    """Give every process the weights of the first."""
    if processes()[1] > 1:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, 0)


def average(gradients: list[torch.Tensor], loss: torch.Tensor) -> torch.Tensor:
    """Replace gradients by their mean over the processes; return the mean loss.

    All goes in one message: at the sizes of this course its delay is what costs.
    """
    world = processes()[1]
    if world == 1:
        return loss
    message = torch.cat([g.flatten() for g in gradients] + [loss.view(1)])
    dist.all_reduce(message)
    message /= world
    *parts, loss = message.split([g.numel() for g in gradients] + [1])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))
    return loss[0].clone()


def any_process(answer: bool, device: torch.device) -> bool:
    """Whether the answer of at least one process is yes; all get the same."""
    if processes()[1] == 1:
        return answer
    asked = torch.tensor(float(answer), device=device)
    dist.all_reduce(asked)
    return bool(asked)
