"""Chapter 12: numbers of 16 bits, and what it takes to train with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float
    from torch import Tensor


def round_to_bfloat16(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Round every number to the nearest one that bfloat16 has.

    A bfloat16 is the upper half of a float32: sign, 8 bits of exponent, 7 of
    fraction. A number in the middle between two goes to the one whose last bit is
    0 (round to nearest even, as IEEE 754 does and PyTorch's own conversion).

    Parameters
    ----------
    x: a float32 tensor with at least one axis; any numbers, subnormal ones, -0.0,
        infinities and NaN included.

    Returns
    -------
    a float32 tensor of that shape, right in every bit: signs are kept, -0.0 too.
    Numbers beyond the range become infinities, infinities stay, NaN stays NaN
    (with any payload).
    """
    bits = x.view(torch.int32)
    last = (bits >> 16) & 1  # the last bit that stays
    rounded = (bits + 0x7FFF + last) & -0x10000  # carries if the rest is large
    return torch.where(x.isnan(), torch.nan, rounded.view(torch.float32))


def unscale(grads: list[Tensor], scale: float) -> tuple[list[Tensor], bool]:
    """Divide gradients by the loss scale, and see whether they can be used.

    Parameters
    ----------
    grads: gradients of the loss times `scale`: tensors of any shapes, each
        float32, float16 or bfloat16. At least one.
    scale: above 0, the same for all.

    Returns
    -------
    grads: list of float32 tensors, in the same order. No precision is lost before
        they are float32. When found_inf is True their values are free.
    found_inf: bool, True when any number of any gradient is infinite or NaN.
    """
    wide = [grad.float() for grad in grads]
    found_inf = not all(bool(grad.isfinite().all()) for grad in wide)
    return [grad / scale for grad in wide], found_inf


def update_scale(
    scale: float,
    good_steps: int,
    found_inf: bool,
    growth: float = 2.0,
    backoff: float = 0.5,
    interval: int = 2000,
) -> tuple[float, int]:
    """What the loss scale is for the next step: the rule of torch.amp.GradScaler.

    After a step that overflowed the scale is multiplied by `backoff`, and counting
    starts anew. After `interval` steps in a row without overflow it is multiplied
    by `growth`, and counting starts anew. Where that would be infinite in float32,
    the scale stays as it is, and counting starts anew all the same.

    Parameters
    ----------
    scale: the one that was used for this step.
    good_steps: steps without overflow since the scale last changed or counting
        last started anew, this step not included: 0 to interval - 1.
    found_inf: did this step overflow?

    Returns
    -------
    scale: there is no smallest one.
    good_steps: to be passed in after the next step.
    """
    if found_inf:
        return scale * backoff, 0
    if good_steps + 1 < interval:
        return scale, good_steps + 1
    grown = scale * growth
    fits = grown <= torch.finfo(torch.float32).max
    return (grown if fits else scale), 0


def mixed_precision_step(
    loss_fn: Callable[[list[Tensor], Any], Tensor],
    params: list[Tensor],
    batch: Any,
    scale: float,
    dtype: torch.dtype,
) -> tuple[float, list[Tensor], bool]:
    """Loss and gradients of one training step in mixed precision.

    The forward pass runs under autocast in `dtype`; the backward pass starts from
    the loss times `scale`; then the gradients are unscaled.

    Parameters
    ----------
    loss_fn: loss_fn(params, batch) is the loss, a scalar tensor that depends on
        every one of params.
    params: float32 tensors on the CPU that require gradients. Neither they nor
        their `.grad` are touched, whether there is something in it or None.
    batch: handed on to loss_fn as it is.
    scale: the loss scale, above 0.
    dtype: torch.float16 or torch.bfloat16.

    Returns
    -------
    loss: a number, that of loss_fn, not scaled.
    grads: list of float32 tensors, d loss / d param in the order of params. Free
        when found_inf is True.
    found_inf: bool, True when a gradient of the scaled loss is infinite or NaN.
    """
    with torch.autocast(params[0].device.type, dtype=dtype):
        loss = loss_fn(params, batch)
    scaled_grads = torch.autograd.grad(loss.float() * scale, params)
    grads, found_inf = unscale(scaled_grads, scale)
    return loss.item(), grads, found_inf


def training_bytes(
    n_params: int, optimizer: str = "adamw", precision: str = "mixed"
) -> int:
    """How many bytes do weights, gradients and optimizer take in training?

    Activations are not counted. A float32 number has 4 bytes, one of 16 bits 2.

    Parameters
    ----------
    n_params: how many numbers the model learns.
    optimizer: "adamw" keeps two moments for each parameter, in float32 whatever
        the precision; "sgd" (without momentum) keeps nothing.
    precision: "float32": weights and gradients in float32. "mixed": weights and
        gradients in 16 bits, and a master copy of the weights in float32.

    Returns
    -------
    the number of bytes.
    """
    weights_and_grads = {"mixed": 2 + 2 + 4, "float32": 4 + 4}[precision]
    moments = {"adamw": 4 + 4, "sgd": 0}[optimizer]
    return n_params * (weights_and_grads + moments)
