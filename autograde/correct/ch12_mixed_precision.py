"""Right answers to chapter 12 that look different."""

from __future__ import annotations

import contextlib
import math
import struct

import numpy as np
import torch

from autograde.bank import right
from autograde.reference import ch12_mixed_precision as reference

# round_to_bfloat16 -----------------------------------------------------------------------


@right("round_to_bfloat16")
def rounded_by_torch(x):
    return x.bfloat16().float()


@right("round_to_bfloat16")
def rounded_by_numpy(x):
    bits = x.numpy().view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    rounded = bits.astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x.numpy()), np.float32("nan"), rounded)


@right("round_to_bfloat16")
def rounded_number_by_number(x):
    """With struct, and with the three cases written out."""
    rounded = []
    for number in x.flatten().tolist():
        if math.isfinite(number):
            bits = struct.unpack("<I", struct.pack("<f", number))[0]
            upper, lower = divmod(bits, 0x10000)
            upper += lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1)
            number = struct.unpack("<f", struct.pack("<I", upper << 16))[0]
        rounded.append(number)
    return torch.tensor(rounded, dtype=torch.float32).reshape(x.shape)


@right("round_to_bfloat16")
def rounded_by_cases(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    upper, lower = bits >> 16, bits & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper & 1 == 1))
    bits = (upper + up) << 16
    signed = torch.where(bits >= 2**31, bits - 2**32, bits).int()
    return torch.where(torch.isnan(x), x, signed.view(torch.float32))


@right("round_to_bfloat16")
def rounded_by_steps_of_their_size(x):
    """The steps of bfloat16 near x, from its exponent; torch.round goes to even numbers."""
    wide = x.double()
    exponent = torch.frexp(wide).exponent - 1
    step = torch.ldexp(torch.ones_like(wide), exponent.clamp(min=-126) - 7)
    rounded = torch.round(wide / step) * step
    return torch.where(torch.isfinite(x) & (x != 0), rounded.float(), x)


@right("round_to_bfloat16")
def rounded_by_looking_up(x):
    """In the list of all that bfloat16 has; infinity stands where the next number would be."""
    numbers = (torch.arange(0x7F81) << 16).int().view(torch.float32).double()
    numbers[-1] = 2.0**128
    middles = (numbers[1:] + numbers[:-1]) / 2
    size = x.double().abs()
    place = torch.searchsorted(middles, size)  # of the lower neighbour, for a tie
    tie = torch.isin(size, middles)
    rounded = numbers[(place + (tie & (place % 2 == 1))).clamp(max=0x7F80)]
    rounded[rounded == 2.0**128] = torch.inf
    return torch.where(x.isnan(), x, rounded.copysign(x).float())


# unscale -------------------------------------------------------------------------------


@right("unscale")
def unscaled_by_the_inverse(grads, scale):
    wide = [grad.to(torch.float32) * (1 / scale) for grad in grads]
    return wide, any(not torch.isfinite(grad).all() for grad in grads)


@right("unscale")
def unscaled_in_double(grads, scale):
    bad = torch.zeros((), dtype=torch.bool)
    for grad in grads:
        bad |= (grad.isinf() | grad.isnan()).any()
    return tuple((grad.double() / scale).float() for grad in grads), bad


@right("unscale")
def unscaled_as_numpy(grads, scale):
    arrays = [grad.float().numpy() for grad in grads]
    found_inf = not np.isfinite(np.concatenate([array.ravel() for array in arrays])).all()
    return [array / np.float32(scale) for array in arrays], found_inf


@right("unscale")
def nothing_where_it_cannot_be_used(grads, scale):
    found_inf = any(not math.isfinite(x) for grad in grads for x in grad.flatten().tolist())
    if found_inf:
        return [], True
    return [grad.clone().float().div_(scale) for grad in grads], False


@right("unscale")
def left_alone_where_they_cannot_be_used(grads, scale):
    found_inf = any(bool((grad - grad != 0).any()) for grad in grads)  # inf - inf is NaN
    if found_inf:
        return grads, found_inf
    return torch._foreach_div([grad.float() for grad in grads], scale), found_inf


@right("unscale")
def unscaled_by_torchs_own_kernel(grads, scale):
    grads, found_inf = [grad.float().clone() for grad in grads], torch.zeros(1)
    inverse = torch.tensor(1.0 / scale)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inverse)
    return grads, bool(found_inf)


# update_scale --------------------------------------------------------------------------


@right("update_scale")
def scale_by_torchs_own_kernel(
    scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000
):
    scale, count = torch.tensor(scale), torch.tensor(good_steps, dtype=torch.int32)
    found_inf = torch.tensor(float(found_inf))
    torch._amp_update_scale_(scale, count, found_inf, growth, backoff, interval)
    return scale, count


@right("update_scale")
def scale_by_early_returns(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    if found_inf is True:
        return [scale * backoff, 0]
    good_steps += 1
    if good_steps == interval:
        bigger = np.float32(scale) * np.float32(growth)
        return [bigger if np.isfinite(bigger) else scale, 0]
    return [scale, good_steps]


@right("update_scale")
def scale_by_arithmetic(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    count = (good_steps + 1) * (not found_inf)
    full = count >= interval
    factor = backoff if found_inf else growth if full else 1.0
    return (scale * factor if scale * factor < 2.0**128 else scale), count % interval


@right("update_scale")
def scale_by_packing(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """struct refuses what float32 cannot hold."""
    if found_inf:
        return scale * backoff, np.int64(0)
    count = (good_steps + 1) % interval
    if count == 0:
        with contextlib.suppress(OverflowError):
            (scale,) = struct.unpack("<f", struct.pack("<f", scale * growth))
    return scale, count


# mixed_precision_step ------------------------------------------------------------------


@right("mixed_precision_step")
def step_on_copies(loss_fn, params, batch, scale, dtype):
    """backward() fills the .grad of copies."""
    copies = [param.detach().clone().requires_grad_() for param in params]
    with torch.autocast("cpu", dtype=dtype):
        loss = loss_fn(copies, batch)
    (scale * loss.float()).backward()
    grads = [copy.grad / scale for copy in copies]
    return loss.detach(), grads, any(not grad.isfinite().all() for grad in grads)


@right("mixed_precision_step")
def step_with_everything_under_autocast(loss_fn, params, batch, scale, dtype):
    """Discouraged, but the numbers are the same: backward follows the dtypes of forward."""
    with torch.amp.autocast(device_type="cpu", dtype=dtype):
        loss = loss_fn(params, batch)
        grads = torch.autograd.grad(loss.float() * scale, params)
        grads, found_inf = reference.unscale(grads, scale)
    return float(loss), tuple(grads), found_inf


@right("mixed_precision_step")
def step_by_grad_outputs(loss_fn, params, batch, scale, dtype):
    """The backward pass may as well start from the scale itself."""
    with torch.autocast("cpu", dtype):
        loss = loss_fn(params, batch)
    start = torch.full_like(loss, scale)
    grads = torch.autograd.grad([loss], params, grad_outputs=[start])
    found_inf = not all(torch.isfinite(grad).all() for grad in grads)
    if found_inf:
        return loss.item(), None, True
    return loss.item(), [grad.mul(1 / scale) for grad in grads], False


@right("mixed_precision_step")
def step_that_puts_grad_back(loss_fn, params, batch, scale, dtype):
    kept = [param.grad for param in params]
    for param in params:
        param.grad = None
    with torch.autocast("cpu", dtype=dtype):
        loss = loss_fn(params, batch)
    (loss.float() * scale).backward()
    grads, found_inf = reference.unscale([param.grad for param in params], scale)
    for param, grad in zip(params, kept, strict=True):
        param.grad = grad
    return loss.item(), [grad.numpy() for grad in grads], found_inf


@right("mixed_precision_step")
def step_by_a_transformed_function(loss_fn, params, batch, scale, dtype):
    @torch.amp.autocast("cpu", dtype=dtype, cache_enabled=False)
    def scaled(params):
        loss = loss_fn(params, batch)
        return loss.float() * scale, loss

    values = [param.detach() for param in params]
    grads, loss = torch.func.grad(scaled, has_aux=True)(values)
    return (loss, *reference.unscale(grads, scale))


# training_bytes ------------------------------------------------------------------------


@right("training_bytes")
def bytes_by_one_formula(n_params, optimizer="adamw", precision="mixed"):
    return n_params * 16 if optimizer == "adamw" else n_params * 8


@right("training_bytes")
def bytes_by_itemsize(n_params, optimizer="adamw", precision="mixed"):
    four, two = torch.float32.itemsize, torch.bfloat16.itemsize
    kept = [four, four] if precision == "float32" else [two, two, four]
    kept += [four] * (2 if optimizer == "adamw" else 0)
    return np.int64(n_params) * sum(kept)


@right("training_bytes")
def bytes_by_meta_tensors(n_params, optimizer="adamw", precision="mixed"):
    dtypes = [torch.float32, torch.float32]
    if precision == "mixed":
        dtypes = [torch.float16, torch.float16, torch.float32]
    if optimizer == "adamw":
        dtypes += [torch.float32, torch.float32]
    tensors = [torch.empty(n_params, dtype=dtype, device="meta") for dtype in dtypes]
    return sum(tensor.nbytes for tensor in tensors)
