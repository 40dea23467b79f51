"""What must be true of the functions of chapter 12."""

from __future__ import annotations

import numpy as np
import torch

from autograde import specimens
from autograde.exercise import Exercise
from autograde.reference import ch12_mixed_precision as reference
from autograde.values import Mismatch, conform

PAGE = "12-mixed-precision"


def numbers(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def integers(rng, *shape, most=2):
    """Small integers: all that is computed with them is exact in 16 bits, or nearly."""
    return torch.from_numpy(rng.integers(-most, most + 1, shape)).float()


# round_to_bfloat16 -----------------------------------------------------------------------

round_to_bfloat16 = Exercise(
    reference.round_to_bfloat16,
    read=(f"{PAGE}#ch12-rounding", "Rounding to bfloat16 by hand"),
    hints=(
        "Cutting the lower 16 bits off rounds towards zero. What must be added to the bits first, "
        "so that a lower half above 0x8000 carries into the upper one and one below does not?",
        "x.view(torch.int32) shows the same bits as integers, and .view(torch.float32) leads back. "
        "Add 0x7FFF, and 1 more if the last bit that stays is 1: then exactly 0x8000 carries only "
        "to make that bit even.",
        "bits + 0x7FFF + ((bits >> 16) & 1), then & -0x10000 to clear the lower half. For NaN that "
        "sum may carry too far: choose with torch.where and x.isnan().",
    ),
    exact_dtype=True,
    rtol=0,
    atol=0,
)


def floats(*bits):
    """The float32 numbers with these bits."""
    return torch.from_numpy(np.array(bits, np.uint32).view(np.float32))


def halves(uppers, lower):
    return floats(*((np.asarray(uppers, np.uint32) << 16) | np.asarray(lower, np.uint32)))


NORMAL = np.concatenate([np.arange(0x0080, 0x7F7F), np.arange(0x8080, 0xFF7F)])  # upper halves


@round_to_bfloat16.claim("a number becomes the nearest one that bfloat16 has", points=2)
def _(probe, rng):
    probe.equals(numbers(1, -1.5, 0.25, 0))
    probe.equals(numbers(3.14159))
    probe.equals(numbers(-3.14159, 1.005))
    probe.equals(numbers(100.3, -100.3, 1e-30, 1e30, -1e-30))
    probe.equals(numbers([1000, 1001, 1003], [2049, -12345, 70001]))
    for shape in ((5,), (2, 3, 4), (40, 5)):
        normal = rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, shape)
        probe.equals(torch.from_numpy(normal).float())
    lower = rng.integers(1, 0x10000, NORMAL.size)
    probe.equals(halves(NORMAL, np.where(lower == 0x8000, 0x8001, lower)))


@round_to_bfloat16.claim("a number in the middle between two goes to the one that is even")
def _(probe, rng):
    for middles in ((1 + 2**-8,), (1 + 3 * 2**-8,), (-1 - 2**-8, -1 - 3 * 2**-8), (257, 259)):
        probe.equals(numbers(*middles))
    probe.equals(halves(NORMAL, 0x8000))


@round_to_bfloat16.claim("infinities stay, and what lies beyond the largest number becomes one")
def _(probe, rng):
    probe.equals(numbers(torch.inf, 1))
    probe.equals(numbers(-torch.inf))
    probe.equals(numbers(3.3e38, -3.3e38))
    probe.equals(floats(0x7F7F7FFF, 0xFF7F7FFF))  # just below the middle
    probe.equals(floats(0x7F7F8000))
    probe.equals(floats(0xFF7F8000, 0x7F7FFFFF, 0xFF7FFFFF))


@round_to_bfloat16.claim("NaN stays NaN, whatever its bits are")
def _(probe, rng):
    probe.equals(numbers(torch.nan, 1))
    for bits in (0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF800001, 0x7F808000, 0xFF80FFFF):
        probe.equals(floats(bits))
    for upper in (0x7F80, 0xFF80):
        probe.equals(halves(rng.integers(upper, upper + 0x80, 500), rng.integers(1, 0x10000, 500)))


@round_to_bfloat16.claim("tiny numbers are rounded, too, and zeros keep their signs")
def _(probe, rng):
    probe.equals(numbers(1e-39, -1e-39))
    probe.equals(floats(1, 0x8001, 0x18000, 0x8000FFFF))
    for lower in (1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        probe.equals(halves([*range(0x80), *range(0x8000, 0x8080)], lower))
    for x in (numbers(-0.0, 0.0, 1), floats(0x80000001, 0x80008000, 1)):
        got = probe(x)
        wrong = np.signbit(got) != np.signbit(x.numpy())
        if wrong.any():
            place = np.flatnonzero(wrong)[0]
            wanted = "-0.0" if np.signbit(x[place].item()) else "0.0"
            probe.fail(f"at [{place}] the zero has the wrong sign; {wanted} was expected", x)


# unscale -------------------------------------------------------------------------------

unscale = Exercise(
    reference.unscale,
    read=(f"{PAGE}#ch12-loss-scaling", "Loss scaling"),
    hints=(
        "What is 6e-8 / 65536 in float16? So what must happen to a gradient before it is divided?",
        "Tensor.float() gives float32. torch.isfinite is False for infinities and for NaN alike.",
        "[grad.float() / scale for grad in grads], and found_inf is True unless "
        "torch.isfinite(grad).all() holds for every one of them.",
    ),
    exact_dtype=True,
    returns=("grads", "found_inf"),
    atol=0,
)


@unscale.claim("gradients are divided by the scale, each in its place", points=2)
def _(probe, rng):
    probe.equals([numbers(2, -4)], 2.0)
    probe.equals([numbers(1), numbers([3, 6], [9, 12])], 3.0)
    probe.equals([numbers(1), numbers(2)], 0.5)
    for shapes in (((4,), (3, 2)), ((2, 2), (2, 2), (5,)), ((1,), (2, 3, 4))):
        for scale in (1024.0, 65536.0, 7.0):
            grads = [torch.from_numpy(rng.normal(size=shape)).float() for shape in shapes]
            probe.equals(grads, scale)


@unscale.claim("gradients of 16 bits become float32 first, then they are divided")
def _(probe, rng):
    half, brain = torch.float16, torch.bfloat16
    probe.equals([numbers(2, -4, dtype=half)], 2.0)
    probe.equals([numbers(1, dtype=half)], 65536.0)
    probe.equals([numbers(1, dtype=brain)], 3.0)
    probe.equals([numbers(1, dtype=brain), numbers(60000, dtype=half), numbers(5)], 2.0**20)
    for scale in (65536.0, 2.0**24, 7.0):
        grads = [torch.from_numpy(rng.normal(size=(3, 4))).to(dtype) for dtype in (half, brain)]
        probe.equals(grads, scale)


def found(probe, wanted, grads):
    """Is found_inf that? The gradients may be anything."""
    scale = 8.0  # with 2 a gradient's half would also be what is left of it
    result = probe.attempt(grads, scale)
    if not isinstance(result, tuple) or len(result) != 2:
        probe.fail("two things should come back, the list of gradients and found_inf", grads, scale)
        return
    try:
        got = conform(result[1], True)
    except Mismatch as mismatch:
        probe.fail(f"found_inf: {mismatch}", grads, scale)
        return
    if got != wanted:
        probe.fail(f"found_inf is {got}; {wanted} was expected", grads, scale)


@unscale.claim("found_inf is True for one infinite number or NaN anywhere")
def _(probe, rng):
    for bad in (torch.inf, -torch.inf, torch.nan):
        found(probe, True, [numbers(bad)])
        found(probe, True, [numbers(1, bad), numbers(2)])
        found(probe, True, [numbers(1), numbers([2, 3], [bad, 4])])
        found(probe, True, [numbers(bad, dtype=torch.float16), numbers(1)])
        found(probe, True, [numbers(1), numbers(1, bad, dtype=torch.bfloat16), numbers(2, 2)])
    found(probe, True, [numbers(torch.inf, -torch.inf)])
    found(probe, True, [numbers(torch.inf, torch.nan)])


@unscale.claim("found_inf is False for finite numbers, however large")
def _(probe, rng):
    found(probe, False, [numbers(1)])
    found(probe, False, [numbers(0, 0), numbers(-1)])
    found(probe, False, [numbers(1e5)])
    found(probe, False, [numbers(3e38)])
    found(probe, False, [numbers(3e38, 3e38, -3e38, -3e38), numbers(3e38)])
    found(probe, False, [numbers(65504, 65504, dtype=torch.float16)])
    found(probe, False, [numbers(1e-8, dtype=torch.float16), numbers(3e38, dtype=torch.bfloat16)])


# update_scale --------------------------------------------------------------------------

update_scale = Exercise(
    reference.update_scale,
    read=(f"{PAGE}#ch12-dynamic", "A scale that finds itself"),
    hints=(
        "There are three cases: the step overflowed; it did not, and is the last of `interval` "
        "good ones; it did not, and is not. Write down scale and counter for each.",
        "good_steps does not count this step yet. Both a smaller and a larger scale set it to 0.",
        "If found_inf: scale * backoff, 0. Else count = good_steps + 1; below interval: scale, "
        "count; otherwise scale * growth (unless that exceeds torch.finfo(torch.float32).max), 0.",
    ),
    takes_arrays=False,
    returns=("scale", "good_steps"),
    atol=0,
)


@update_scale.claim("overflow makes the scale smaller, enough good steps make it larger", points=2)
def _(probe, rng):
    probe.equals(1024.0, 0, True)
    probe.equals(1024.0, 7, False)
    probe.equals(1024.0, 1999, False)
    for _ in range(5):
        scale = 2.0 ** int(rng.integers(-3, 24))
        for good_steps in (int(rng.integers(1, 1990)), 1999):
            probe.equals(scale, good_steps, False)
            probe.equals(scale, good_steps, True)


@update_scale.claim("this step counts: the scale grows with the last of `interval` good ones")
def _(probe, rng):
    probe.equals(8.0, 0, False, interval=3)
    probe.equals(8.0, 1, False, interval=3)
    probe.equals(8.0, 2, False, interval=3)
    probe.equals(8.0, 0, False, interval=1)
    probe.equals(8.0, 1998, False)


@update_scale.claim("growth, backoff and interval are those that are given")
def _(probe, rng):
    probe.equals(100.0, 4, False, growth=3.0, interval=5)
    probe.equals(100.0, 4, True, backoff=0.25)
    probe.equals(100.0, 4, True, 3.0, 0.1, 5)
    probe.equals(100.0, 4, False, 3.0, 0.1, 5)
    probe.equals(100.0, 4, False, 3.0, 0.1, 6)


@update_scale.claim("the scale may fall below 1, and never grows to infinity")
def _(probe, rng):
    probe.equals(1.0, 3, True)
    probe.equals(2.0**-10, 3, True)
    probe.equals(0.25, 1999, False)
    probe.equals(2.0**30, 1999, False)
    probe.equals(2.0**126, 1999, False)
    probe.equals(2.0**127, 1999, False)


# mixed_precision_step ------------------------------------------------------------------

mixed_precision_step = Exercise(
    reference.mixed_precision_step,
    read=(f"{PAGE}#ch12-step", "One step of training"),
    hints=(
        "Four things in this order: the loss under autocast; the loss times the scale; gradients "
        "of that; unscale. Which of them belong inside the `with`?",
        'torch.autocast("cpu", dtype=dtype) is the context. torch.autograd.grad(y, params) returns '
        "the gradients and leaves .grad alone; y.backward() does not.",
        "Compute loss = loss_fn(params, batch) inside the `with`; outside, torch.autograd.grad("
        "loss.float() * scale, params), then your unscale. Return loss.item() with them.",
    ),
    exact_dtype=True,
    returns=("loss", "grads", "found_inf"),
    uses=("unscale",),
    rtol=1e-2,  # of a product of 16 bits that is rounded once
    atol=1e-12,
)

HALF, BRAIN = torch.float16, torch.bfloat16
ERROR, TWO_LAYERS = specimens.squared_error, specimens.squared_error_of_two_layers


def learned(*values, grad=None):
    """Parameters; `grad` is what their .grad is filled with."""
    params = [torch.as_tensor(value, dtype=torch.float32).requires_grad_() for value in values]
    for param in params:
        param.grad = None if grad is None else torch.full_like(param, grad)
    return params


def linear_problem(rng, n=4, d_in=3, d_out=2, grad=None):
    """(params, batch) for `squared_error`; powers of two keep the means exact."""
    params = learned(integers(rng, d_in, d_out) / 2, integers(rng, d_out), grad=grad)
    return params, (integers(rng, n, d_in), integers(rng, n, d_out, most=8))


@mixed_precision_step.claim("loss and gradients are right, whatever the scale", points=2)
def _(probe, rng):
    one = learned([[2.0]], [1.0]), (numbers([3.0]), numbers([5.0]))
    for dtype in (HALF, BRAIN):
        probe.equals(ERROR, *one, 1.0, dtype)
        probe.equals(ERROR, *one, 64.0, dtype)
        for n, d_in, d_out in ((1, 2, 1), (4, 3, 2), (8, 4, 4)):
            problem = linear_problem(rng, n, d_in, d_out)
            for scale in (1.0, 3.0, 256.0):
                probe.equals(ERROR, *problem, scale, dtype)
        layers = learned(integers(rng, 3, 4) / 4, integers(rng, 4), integers(rng, 4, 2), [0.5, 1])
        batch = integers(rng, 4, 3), integers(rng, 4, 2, most=8)
        probe.equals(TWO_LAYERS, layers, batch, 128.0, dtype, rtol=0.05, atol=0.05)


@mixed_precision_step.claim("gradients that float16 would lose are there, thanks to the scale")
def _(probe, rng):
    one = learned([[2.0]], [1.0]), (numbers([3.0]), numbers([5.0]))
    for exponent, scale in ((-27, 2.0**16), (-32, 2.0**20), (-26, 2.0**12)):
        faint = ERROR.using(weight=2.0**exponent)
        for dtype in (HALF, BRAIN):
            probe.equals(faint, *one, scale, dtype)
            probe.equals(faint, *linear_problem(rng), scale, dtype)


def step_found(probe, wanted, loss_fn, params, batch, scale, dtype):
    """Are found_inf and the loss right? The gradients may be anything."""
    args = loss_fn, params, batch, scale, dtype
    loss, _, _ = reference.mixed_precision_step(*args)
    result = probe.attempt(*args)
    if not isinstance(result, tuple) or len(result) != 3:
        probe.fail("three things should come back: the loss, the gradients and found_inf", *args)
        return
    try:
        got_loss, got = conform(result[0], loss), conform(result[2], True)
    except Mismatch as mismatch:
        probe.fail(str(mismatch), *args)
        return
    if got != wanted:
        probe.fail(f"found_inf is {got}; {wanted} was expected", *args)
    elif not np.isclose(got_loss, loss, rtol=1e-2, equal_nan=True):
        probe.fail(f"the loss is {got_loss:.6g}; {loss:.6g} was expected", *args)


@mixed_precision_step.claim("found_inf tells whether a gradient overflowed")
def _(probe, rng):
    one = learned([[2.0]], [1.0]), (numbers([3.0]), numbers([5.0]))
    step_found(probe, True, ERROR, *one, 2.0**16, HALF)
    step_found(probe, False, ERROR, *one, 2.0**16, BRAIN)
    step_found(probe, False, ERROR, *one, 2.0**10, HALF)
    step_found(probe, True, ERROR, *one, 2.0**127, BRAIN)  # too much for any format
    few = learned([[2.0], [3.0]], [1.0]), (numbers([0, 1]), numbers([2]))  # one of w overflows
    step_found(probe, True, ERROR, *few, 2.0**16, HALF)
    beyond = learned([[300.0]], [1.0]), (numbers([300.0]), numbers([5.0]))  # forwards, already
    step_found(probe, True, ERROR, *beyond, 1.0, HALF)
    problem = linear_problem(rng)
    for scale, dtype, wanted in ((2.0**24, HALF, True), (2.0**24, BRAIN, False)):
        step_found(probe, wanted, ERROR, *problem, scale, dtype)


@mixed_precision_step.claim("products are computed in dtype, and the rest stays in float32")
def _(probe, rng):
    ones = [[1.0], [1.0]]
    probe.equals(ERROR, learned(ones, [0]), (numbers([256, 1]), numbers([250])), 1.0, BRAIN)
    probe.equals(ERROR, learned(ones, [0]), (numbers([256, 1]), numbers([250])), 1.0, HALF)
    probe.equals(ERROR, learned(ones, [0]), (numbers([2048, 1]), numbers([2040])), 1.0, HALF)
    # a sum and a square that 16 bits could not hold
    probe.equals(ERROR, learned([[1.0]], [1]), (numbers([2048]), numbers([2040])), 1.0, HALF)
    probe.equals(ERROR, learned([[1.0]], [1]), (numbers([256]), numbers([250])), 1.0, BRAIN)
    probe.equals(ERROR, learned([[300]], [1]), (numbers([1]), numbers([1])), 1.0, HALF)
    # the bias sums four gradients of 2^14: finite in float32 alone
    signs, far = numbers([1], [-1], [1], [-1]), numbers([-8], [-8], [-8], [-8])
    probe.equals(ERROR, learned([[0.0]], [0.0]), (signs, far), 2.0**12, HALF)


@mixed_precision_step.claim("a loss of 16 bits is returned as it is, however large the scale")
def _(probe, rng):
    for dtype in (HALF, BRAIN):
        probe.equals(specimens.mean_output, learned([[1.0]]), numbers([3.0]), 4.0, dtype)
        probe.equals(specimens.mean_output, learned([[100.0]]), numbers([2.0]), 1024.0, dtype)
        weights = integers(rng, 3, 2, most=8)
        x = integers(rng, 4, 3, most=8) + 9
        probe.equals(specimens.mean_output, learned(weights + 9), x, 2048.0, dtype)


@mixed_precision_step.claim("what stands in .grad, or nothing, makes no difference and stays")
def _(probe, rng):
    for grad in (None, 7.0):
        for dtype in (HALF, BRAIN):
            probe.equals(ERROR, *linear_problem(rng, 2, 2, 1, grad=grad), 64.0, dtype)
            record = probe.records[-1]
            if record.outcome.changed:
                probe.fail("the parameters or their .grad have changed", *record.args)


# training_bytes ------------------------------------------------------------------------

training_bytes = Exercise(
    reference.training_bytes,
    read=(f"{PAGE}#ch12-memory", "What training keeps in memory"),
    hints=(
        "Make a list of what exists once for each parameter, and of how many bytes each takes.",
        "In mixed precision: weight 2, gradient 2, master weight 4, two moments of 4 each.",
        "With AdamW both precisions come to 16 bytes for each parameter; without moments to 8.",
    ),
    takes_arrays=False,
)


@training_bytes.claim("mixed precision with AdamW, as it is without arguments", points=2)
def _(probe, rng):
    for n_params in (1, 10, 1000, 124_439_808, 7_000_000_000, int(rng.integers(1, 10**9))):
        probe.equals(n_params)
        probe.equals(n_params, "adamw", "mixed")


@training_bytes.claim("float32 has no second copy of the weights")
def _(probe, rng):
    for n_params in (1, 1000, int(rng.integers(1, 10**9))):
        probe.equals(n_params, precision="float32")
        probe.equals(n_params, "sgd", "float32")


@training_bytes.claim("sgd keeps no moments")
def _(probe, rng):
    for n_params in (1, 1000, int(rng.integers(1, 10**9))):
        probe.equals(n_params, "sgd")
        probe.equals(n_params, optimizer="sgd", precision="float32")
        probe.equals(n_params, optimizer="adamw", precision="mixed")
