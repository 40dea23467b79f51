"""Wrong answers to chapter 12."""

from __future__ import annotations

import torch

from autograde.bank import wrong
from autograde.reference import ch12_mixed_precision as right
from autograde.reference.ch12_mixed_precision import unscale

# round_to_bfloat16 -----------------------------------------------------------------------


def from_bits(bits, x):
    """The numbers with these bits; NaN where x is NaN."""
    return torch.where(x.isnan(), torch.nan, bits.to(torch.int32).view(torch.float32))


@wrong("round_to_bfloat16", "stillwater-sc/universal#1133")
def cut_off(x):
    """The lower half of the bits is cut off: that rounds towards zero, up to a whole step wrong.
    The upper half has to grow where the lower one is more than a half."""
    return from_bits(x.view(torch.int32) & -0x10000, x)


@wrong("round_to_bfloat16")
def half_goes_up(x):
    """A number in the middle between two always goes up in size. Ties go to the even neighbour,
    the one whose last bit is 0, so that sums do not drift."""
    return from_bits((x.view(torch.int32) + 0x8000) & -0x10000, x)


@wrong("round_to_bfloat16")
def half_goes_down(x):
    """A number in the middle between two always goes towards zero. Ties go to the even neighbour,
    the one whose last bit is 0: that is up in half of the cases."""
    return from_bits((x.view(torch.int32) + 0x7FFF) & -0x10000, x)


@wrong("round_to_bfloat16")
def half_goes_to_odd(x):
    """Ties go to the odd neighbour. Add one more when the last bit that stays is 1, not when it
    is 0."""
    bits = x.view(torch.int32)
    return from_bits((bits + 0x8000 - ((bits >> 16) & 1)) & -0x10000, x)


@wrong("round_to_bfloat16", same_as="half_goes_up")
def wrong_last_bit(x):
    bits = x.view(torch.int32)
    return from_bits((bits + 0x7FFF + ((bits >> 15) & 1)) & -0x10000, x)


@wrong("round_to_bfloat16", "ooples/AiDotNet.Tensors#355")
def nan_may_carry(x):
    """The rounding is right for numbers, but NaN is treated as one: added to its bits, the carry
    makes infinity, zero or a number of some NaNs. They need a case of their own."""
    bits = x.view(torch.int32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).view(torch.float32)


@wrong("round_to_bfloat16")
def nan_becomes_infinite(x):
    """All that has the largest exponent is treated as infinite. Infinity has the fraction 0; any
    other fraction with that exponent is NaN, and has to stay NaN."""
    return torch.where(x.isnan(), torch.inf, right.round_to_bfloat16(x))


@wrong("round_to_bfloat16")
def nan_becomes_zero(x):
    """NaN becomes a number. It has to stay NaN, or else nobody notices that something went
    wrong."""
    return torch.nan_to_num(
        right.round_to_bfloat16(x), nan=0.0, posinf=torch.inf, neginf=-torch.inf
    )


@wrong("round_to_bfloat16")
def by_way_of_float16(x):
    """These are the numbers of float16: more digits than bfloat16 has, and everything above 65504
    is infinite."""
    return x.half().float()


@wrong("round_to_bfloat16")
def by_way_of_float16_first(x):
    """On its way to bfloat16 the number passes through float16, whose range is far smaller:
    large numbers become infinite and small ones 0."""
    return x.half().bfloat16().float()


@wrong("round_to_bfloat16")
def largest_instead_of_infinite(x):
    """Infinities are clipped to the largest finite number. What lies beyond the range becomes
    infinite, and infinities stay."""
    largest = torch.finfo(torch.bfloat16).max
    return right.round_to_bfloat16(x).clamp(-largest, largest)


@wrong("round_to_bfloat16")
def overflow_stops_at_the_largest(x):
    """Numbers beyond the largest of bfloat16 are kept finite; the nearest of its numbers is
    infinity there, and the carry gives it without any further work."""
    largest = torch.finfo(torch.bfloat16).max
    rounded = right.round_to_bfloat16(x)
    return torch.where(x.isfinite(), rounded.clamp(-largest, largest), rounded)


@wrong("round_to_bfloat16")
def subnormals_flushed(x):
    """Numbers below 1.2e-38 become 0. bfloat16 has smaller ones, down to 9.2e-41, with fewer
    digits, and they are rounded like all others."""
    return torch.where(x.abs() < torch.finfo(torch.float32).tiny, x * 0, right.round_to_bfloat16(x))


@wrong("round_to_bfloat16", same_as="subnormals_flushed")
def subnormal_results_flushed(x):
    rounded = right.round_to_bfloat16(x)
    return torch.where(rounded.abs() < torch.finfo(torch.float32).tiny, rounded * 0, rounded)


@wrong("round_to_bfloat16")
def subnormals_with_all_digits(x):
    """Every number keeps 8 binary digits (frexp and round do that). Below 1.2e-38 the steps of
    bfloat16 get no smaller: what lies there has fewer digits."""
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(mantissa * 256) / 256, exponent)


@wrong("round_to_bfloat16")
def one_bit_too_many(x):
    """Eight bits of the fraction are kept. bfloat16 keeps seven; the eighth binary digit is the
    leading 1 that no format stores."""
    bits = x.view(torch.int32)
    return from_bits((bits + 0x3FFF + ((bits >> 15) & 1)) & -0x8000, x)


@wrong("round_to_bfloat16")
def one_bit_too_few(x):
    """Six bits of the fraction are kept; bfloat16 has seven: 1 for the sign, 8 for the exponent
    and 7 make 16."""
    bits = x.view(torch.int32)
    return from_bits((bits + 0xFFFF + ((bits >> 17) & 1)) & -0x20000, x)


@wrong("round_to_bfloat16")
def to_decimal_places(x):
    """You round decimal digits. bfloat16 has 8 binary digits, wherever the point stands, so the
    steps are small for small numbers and large for large ones."""
    return torch.round(x, decimals=2)


@wrong("round_to_bfloat16", same_as="to_decimal_places")
def to_three_decimal_places(x):
    return torch.round(x, decimals=3)


@wrong("round_to_bfloat16")
def up_for_negative_numbers(x):
    """Ties go up, towards plus infinity (floor(x + 1/2) does that): negative numbers are then
    rounded otherwise than positive ones. They go to the even neighbour, whatever the sign."""
    bits = x.view(torch.int32)
    more = torch.where(x < 0, 0x7FFF, 0x8000)
    return from_bits((bits + more) & -0x10000, x)


@wrong("round_to_bfloat16")
def bits_changed_in_place(x):
    """The result is right, but x itself has changed: a view shares its memory, and += (or an
    index on the left) writes there."""
    rounded = right.round_to_bfloat16(x)
    x.copy_(rounded)
    return rounded


@wrong("round_to_bfloat16")
def kept_as_bfloat16(x):
    """The numbers may be right, but their dtype is bfloat16. They are to come back as float32."""
    return x.bfloat16()


# unscale -------------------------------------------------------------------------------


def any_bad(grads):
    return any(not bool(grad.isfinite().all()) for grad in grads)


@wrong("unscale")
def divided_before_they_are_wide(grads, scale):
    """The division happens in 16 bits, and the result becomes float32 too late: small gradients
    have become 0, or have lost digits. Make them float32 first."""
    return [(grad / scale).float() for grad in grads], any_bad(grads)


@wrong("unscale", same_as="divided_before_they_are_wide")
def multiplied_by_a_narrow_inverse(grads, scale):
    narrow = [grad * torch.tensor(1 / scale, dtype=grad.dtype) for grad in grads]
    return [grad.float() for grad in narrow], any_bad(grads)


@wrong("unscale")
def stays_narrow(grads, scale):
    """Gradients of 16 bits come back with 16 bits. They are to be float32, already before the
    division."""
    return [grad / scale for grad in grads], any_bad(grads)


@wrong("unscale")
def multiplied_again(grads, scale):
    """You multiply by the scale. The loss was multiplied by it, so the gradients have it in them
    already: divide."""
    return [grad.float() * scale for grad in grads], any_bad(grads)


@wrong("unscale")
def left_as_they_are(grads, scale):
    """The gradients come back with the scale still in them."""
    return [grad.float() for grad in grads], any_bad(grads)


@wrong("unscale")
def divided_twice(grads, scale):
    """You divide by the scale twice. Gradients are linear in the loss: what was multiplied in once
    goes out with one division."""
    return [grad.float() / scale / scale for grad in grads], any_bad(grads)


@wrong("unscale")
def unscaled_in_place(grads, scale):
    """The result is right, but the gradients that were passed in have changed (/=, div_ or
    mul_). Make new ones."""
    found_inf = any_bad(grads)
    for grad in grads:
        grad /= scale if grad.dtype == torch.float32 else 1
    return [g.float() / (1 if g.dtype == torch.float32 else scale) for g in grads], found_inf


@wrong("unscale")
def nan_overlooked(grads, scale):
    """You look for infinities alone. inf - inf and 0 * inf give NaN, so an overflow often shows as
    NaN by the time it reaches a gradient."""
    found_inf = any(bool(grad.isinf().any()) for grad in grads)
    return [grad.float() / scale for grad in grads], found_inf


@wrong("unscale", same_as="nan_overlooked")
def largest_is_infinite(grads, scale):
    found_inf = any(bool(grad.abs().max() == torch.inf) for grad in grads)  # the max may be NaN
    return [grad.float() / scale for grad in grads], found_inf


@wrong("unscale")
def infinity_overlooked(grads, scale):
    """You look for NaN alone. A gradient that overflows is infinite, and not NaN."""
    found_inf = any(bool(grad.isnan().any()) for grad in grads)
    return [grad.float() / scale for grad in grads], found_inf


@wrong("unscale")
def both_kinds_at_once(grads, scale):
    """found_inf is True only when a gradient has infinities and NaN at once: one of them is
    enough."""
    bad = any(bool(g.isinf().any()) and bool(g.isnan().any()) for g in grads)
    return [grad.float() / scale for grad in grads], bad


@wrong("unscale")
def negative_infinity_overlooked(grads, scale):
    """Minus infinity is overlooked. torch.isfinite sees both infinities, and NaN."""
    bad = any(bool(((g == torch.inf) | g.isnan()).any()) for g in grads)
    return [grad.float() / scale for grad in grads], bad


@wrong("unscale")
def bad_numbers_replaced(grads, scale):
    """Infinite and NaN gradients are replaced by numbers (nan_to_num) before anybody looks at them,
    so found_inf says False. The step has to be skipped, not patched."""
    return right.unscale([grad.nan_to_num() for grad in grads], scale)


@wrong("unscale", same_as="bad_numbers_replaced")
def bad_numbers_replaced_in_float32(grads, scale):
    return right.unscale([grad.float().nan_to_num() for grad in grads], scale)


@wrong("unscale")
def sorted_by_dtype(grads, scale):
    """The gradients come back in another order, those of one dtype side by side. Each belongs to
    the parameter in its place."""
    grads = sorted(grads, key=lambda grad: str(grad.dtype))
    return right.unscale(grads, scale)


@wrong("unscale", same_as="sorted_by_dtype")
def float16_first(grads, scale):
    order = [torch.float16, torch.bfloat16, torch.float32]
    return right.unscale(sorted(grads, key=lambda grad: order.index(grad.dtype)), scale)


@wrong("unscale")
def only_the_first(grads, scale):
    """Only the first gradient is looked at."""
    return right.unscale(grads, scale)[0], any_bad(grads[:1])


@wrong("unscale")
def only_the_last(grads, scale):
    """found_inf is that of the last gradient: a later good one makes the earlier bad ones
    forgotten. Once True it has to stay True."""
    found_inf = False
    for grad in grads:
        found_inf = not bool(grad.isfinite().all())
    return right.unscale(grads, scale)[0], found_inf


@wrong("unscale")
def all_must_be_bad(grads, scale):
    """found_inf is True only if every gradient, or every number of one, is bad. One bad number
    anywhere is enough."""
    return right.unscale(grads, scale)[0], all(not bool(g.isfinite().any()) for g in grads)


@wrong("unscale", same_as="all_must_be_bad")
def all_gradients_must_be_bad(grads, scale):
    return right.unscale(grads, scale)[0], all(not bool(g.isfinite().all()) for g in grads)


@wrong("unscale", same_as="all_must_be_bad")
def all_numbers_of_one_must_be_bad(grads, scale):
    return right.unscale(grads, scale)[0], any(not bool(g.isfinite().any()) for g in grads)


@wrong("unscale")
def found_inf_negated(grads, scale):
    """found_inf is the wrong way round: it says True when all is finite."""
    return right.unscale(grads, scale)[0], not any_bad(grads)


@wrong("unscale")
def never_found(grads, scale):
    """found_inf is always False. A step with infinite or NaN gradients would spoil every
    weight."""
    return right.unscale(grads, scale)[0], False


@wrong("unscale")
def finite_sum(grads, scale):
    """You look at whether a sum, a mean or a norm of the numbers is finite. Large finite numbers
    overflow in a sum, and good steps would be thrown away. Look at each number."""
    found_inf = not all(bool(grad.sum().isfinite()) for grad in grads)
    return right.unscale(grads, scale)[0], found_inf


@wrong("unscale", same_as="finite_sum")
def finite_norm(grads, scale):
    found_inf = not all(bool(grad.norm().isfinite()) for grad in grads)
    return right.unscale(grads, scale)[0], found_inf


@wrong("unscale", same_as="finite_sum")
def finite_total(grads, scale):
    total = sum(grad.float().sum() for grad in grads)
    return right.unscale(grads, scale)[0], not bool(total.isfinite())


@wrong("unscale", same_as="finite_sum")
def finite_total_norm(grads, scale):
    total = sum(grad.float().square().sum() for grad in grads).sqrt()
    return right.unscale(grads, scale)[0], not bool(total.isfinite())


@wrong("unscale")
def too_large_counts_as_bad(grads, scale):
    """Numbers beyond the range of float16 count as an overflow. These gradients are float32, or
    bfloat16, and may well be that large: only infinities and NaN are bad."""
    bad = any(bool((~(grad.float().abs() <= 65504)).any()) for grad in grads)
    return right.unscale(grads, scale)[0], bad


@wrong("unscale")
def one_vector(grads, scale):
    """The gradients come back as one tensor, laid side by side. They are to come back one by one,
    each with the shape of its parameter."""
    return torch.cat([grad.flatten().float() for grad in grads]) / scale, any_bad(grads)


# update_scale --------------------------------------------------------------------------


def step(scale, good_steps, found_inf, growth, backoff, interval):
    return right.update_scale(scale, good_steps, found_inf, growth, backoff, interval)


@wrong("update_scale")
def grows_one_step_late(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """The scale grows one step too late: this step is one of the good ones, and good_steps does not
    count it yet."""
    if found_inf:
        return scale * backoff, 0
    if good_steps >= interval:
        return scale * growth, 0
    return scale, good_steps + 1


@wrong("update_scale", same_as="grows_one_step_late")
def grows_beyond_the_interval(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    if found_inf:
        return scale * backoff, 0
    good_steps += 1
    if good_steps > interval:
        return scale * growth, 0
    return scale, good_steps


@wrong("update_scale")
def counter_goes_on_after_growth(
    scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000
):
    """After the scale has grown, the counter goes on. It starts anew at 0, or else the scale would
    grow again at the next step, or never."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return new, count if found_inf else good_steps + 1


@wrong("update_scale")
def counter_starts_at_one(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """After the scale has grown, the counter starts at 1. The step that made it grow has been used
    up: it starts at 0."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return new, 1 if not found_inf and count == 0 else count


@wrong("update_scale")
def counter_survives_an_overflow(
    scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000
):
    """After an overflow the counter is not set to 0. The good steps have to come in a row."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return new, good_steps if found_inf else count


@wrong("update_scale", same_as="counter_survives_an_overflow")
def counter_counts_overflows(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return new, good_steps + 1 if found_inf else count


@wrong("update_scale")
def grows_with_every_good_step(
    scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000
):
    """The scale grows with every good step. It waits for `interval` of them in a row: growing too
    far costs a step."""
    _, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return (scale * backoff if found_inf else scale * growth), count


@wrong("update_scale")
def never_grows(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """The scale never grows. It would fall with each overflow and stay there, and small gradients
    would be lost again."""
    _, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return (scale * backoff if found_inf else scale), count


@wrong("update_scale")
def never_falls(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """After an overflow the scale stays as it is: the next step will overflow again."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return (scale if found_inf else new), count


@wrong("update_scale")
def divided_by_backoff(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """You divide by backoff. It is a factor below 1 already: multiply, or the scale grows when it
    should fall."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return (scale / backoff if found_inf else new), count


@wrong("update_scale")
def divided_by_growth(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """After an overflow you divide by growth. The factor for that is backoff; with the defaults the
    two come to the same."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return (scale / growth if found_inf else new), count


@wrong("update_scale")
def arguments_not_used(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """The factors or the interval are always those of the defaults; use the arguments."""
    return right.update_scale(scale, good_steps, found_inf)


@wrong("update_scale", same_as="arguments_not_used")
def factors_not_used(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    return right.update_scale(scale, good_steps, found_inf, interval=interval)


@wrong("update_scale", same_as="arguments_not_used")
def interval_not_used(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    return right.update_scale(scale, good_steps, found_inf, growth, backoff)


@wrong("update_scale", "tensorflow/tensorflow#38357")
def not_below_one(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """The scale is kept at 1 or above. Here it has no smallest value: where gradients are too
    large for float16 as they are, only a scale below 1 helps."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return max(new, 1.0), count


@wrong("update_scale")
def capped(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """The scale is capped at 65536 (or another round number). Nothing but the range of float32
    limits it; an overflow will bring it down when it is too large."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return min(new, 65536.0), count


@wrong("update_scale", same_as="capped")
def capped_higher(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return min(new, 2.0**24), count


@wrong("update_scale", same_as="capped")
def capped_by_float16(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    return (new if found_inf or new <= 65504 else scale), count


@wrong("update_scale")
def counts_on_at_the_top(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """Where the scale would become infinite it stays, and that is right; but counting goes on,
    beyond `interval`. It starts anew there, too."""
    new, count = step(scale, good_steps, found_inf, growth, backoff, interval)
    full = not found_inf and good_steps + 1 >= interval
    return new, good_steps + 1 if full and new == scale else count


@wrong("update_scale", "google/flax#2547")
def grows_to_infinity(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """The scale may grow beyond the range of float32, and an infinite scale never comes back: half
    of infinity is infinite. Leave out that last growth."""
    if found_inf:
        return scale * backoff, 0
    if good_steps + 1 >= interval:
        return scale * growth, 0
    return scale, good_steps + 1


@wrong("update_scale")
def overflow_grows_and_falls(scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000):
    """A step that overflows counts as a good one, too, so that at the end of an interval the scale
    falls and grows at once. With an overflow only `backoff` counts."""
    new = scale * backoff if found_inf else scale
    if good_steps + 1 >= interval:
        grown = new * growth
        return (grown if grown < 2.0**128 else new), 0
    return new, 0 if found_inf else good_steps + 1


@wrong("update_scale")
def found_inf_read_the_other_way(
    scale, good_steps, found_inf, growth=2.0, backoff=0.5, interval=2000
):
    """found_inf is read the wrong way round: the scale falls after good steps."""
    return step(scale, good_steps, not found_inf, growth, backoff, interval)


# mixed_precision_step ------------------------------------------------------------------


def forward(loss_fn, params, batch, dtype):
    with torch.autocast("cpu", dtype=dtype):
        return loss_fn(params, batch)


def gradients(loss, params, scale):
    return torch.autograd.grad(loss.float() * scale, params)


@wrong("mixed_precision_step")
def without_autocast(loss_fn, params, batch, scale, dtype):
    """The forward pass runs in float32: it is not under autocast, or under one for another kind of
    device, which does nothing on a CPU."""
    loss = loss_fn(params, batch)
    return (loss.item(), *unscale(gradients(loss, params, scale), scale))


@wrong("mixed_precision_step")
def dtype_not_used(loss_fn, params, batch, scale, dtype):
    """The forward pass always runs in bfloat16, which is what torch.autocast takes on a CPU unless
    told otherwise. Hand it the dtype."""
    loss = forward(loss_fn, params, batch, torch.bfloat16)
    return (loss.item(), *unscale(gradients(loss, params, scale), scale))


@wrong("mixed_precision_step")
def always_float16(loss_fn, params, batch, scale, dtype):
    """The forward pass always runs in float16; use the dtype that is given."""
    loss = forward(loss_fn, params, batch, torch.float16)
    return (loss.item(), *unscale(gradients(loss, params, scale), scale))


@wrong("mixed_precision_step")
def loss_not_scaled(loss_fn, params, batch, scale, dtype):
    """The loss is not multiplied by the scale before the backward pass, so what float16 cannot hold
    is lost, and what should overflow does not."""
    loss = forward(loss_fn, params, batch, dtype)
    return (loss.item(), *unscale(gradients(loss, params, 1.0), 1.0))


@wrong("mixed_precision_step")
def bfloat16_not_scaled(loss_fn, params, batch, scale, dtype):
    """With bfloat16 the scale is left out. It is seldom needed there, but who calls decides that:
    they pass 1, or want to know whether the scaled gradients overflow."""
    loss = forward(loss_fn, params, batch, dtype)
    scale = 1.0 if dtype == torch.bfloat16 else scale
    return (loss.item(), *unscale(gradients(loss, params, scale), scale))


@wrong("mixed_precision_step")
def scale_in_half(loss_fn, params, batch, scale, dtype):
    """The scale itself is made a number of 16 bits: in float16 a scale of 65536 is infinite. Keep
    it a float."""
    loss = forward(loss_fn, params, batch, dtype)
    grads = torch.autograd.grad(loss.float() * torch.tensor(scale, dtype=dtype), params)
    return (loss.item(), *unscale(grads, scale))


@wrong("mixed_precision_step")
def unscaled_but_never_scaled(loss_fn, params, batch, scale, dtype):
    """The gradients are divided by the scale, but the loss was never multiplied by it."""
    loss = forward(loss_fn, params, batch, dtype)
    return (loss.item(), *unscale(gradients(loss, params, 1.0), scale))


@wrong("mixed_precision_step", "nerfstudio-project/nerfacc#307")
def never_unscaled(loss_fn, params, batch, scale, dtype):
    """The gradients come back with the scale still in them. Adam hides that, for it divides by the
    size of the gradients; clipping and plain gradient descent do not."""
    loss = forward(loss_fn, params, batch, dtype)
    return (loss.item(), *unscale(gradients(loss, params, scale), 1.0))


@wrong("mixed_precision_step", "meta-pytorch/tnt#354")
def loss_returned_scaled(loss_fn, params, batch, scale, dtype):
    """The loss comes back multiplied by the scale. Keep the one that loss_fn gave for your
    curves."""
    loss = forward(loss_fn, params, batch, dtype).float() * scale
    return (loss.item(), *unscale(torch.autograd.grad(loss, params), scale))


@wrong("mixed_precision_step")
def loss_divided_by_the_scale(loss_fn, params, batch, scale, dtype):
    """The loss is divided by the scale, but loss_fn's own was never multiplied."""
    loss = forward(loss_fn, params, batch, dtype)
    grads = unscale(gradients(loss, params, scale), scale)
    return (loss.item() / scale, *grads)


@wrong("mixed_precision_step")
def everything_in_half(loss_fn, params, batch, scale, dtype):
    """Parameters, or the batch as well, are cast to dtype as a whole, so that more than the
    products has only 16 bits: the sum with a bias, for one. autocast narrows the products alone."""
    narrow = [param.detach().to(dtype).requires_grad_() for param in params]
    batch = [x.to(dtype) for x in batch] if isinstance(batch, tuple) else batch.to(dtype)
    loss = loss_fn(narrow, batch)
    return (loss.item(), *unscale(torch.autograd.grad(loss.float() * scale, narrow), scale))


@wrong("mixed_precision_step", same_as="everything_in_half")
def everything_in_half_under_autocast(loss_fn, params, batch, scale, dtype):
    batch = [x.to(dtype) for x in batch] if isinstance(batch, tuple) else batch.to(dtype)
    loss = forward(lambda p, b: loss_fn([w.to(dtype) for w in p], b), params, batch, dtype)
    return (loss.item(), *unscale(gradients(loss, params, scale), scale))


@wrong("mixed_precision_step", same_as="everything_in_half")
def parameters_in_half(loss_fn, params, batch, scale, dtype):
    narrow = [param.detach().to(dtype).requires_grad_() for param in params]
    loss = forward(loss_fn, narrow, batch, dtype)
    return (loss.item(), *unscale(torch.autograd.grad(loss.float() * scale, narrow), scale))


@wrong("mixed_precision_step")
def product_in_half(loss_fn, params, batch, scale, dtype):
    """A loss of 16 bits is multiplied by the scale in 16 bits, where it overflows; divided again,
    it is still infinite. Take loss_fn's number before anything happens to it."""
    loss = forward(loss_fn, params, batch, dtype) * scale
    grads, found_inf = unscale(torch.autograd.grad(loss, params), scale)
    return loss.item() / scale, grads, found_inf


@wrong("mixed_precision_step")
def gradients_unscaled_in_half(loss_fn, params, batch, scale, dtype):
    """The gradients are divided by the scale in 16 bits, or made narrow after it: what the scale
    has saved is lost there."""
    loss = forward(loss_fn, params, batch, dtype)
    grads = [grad.to(dtype) for grad in gradients(loss, params, scale)]
    return loss.item(), [(grad / scale).float() for grad in grads], unscale(grads, 1.0)[1]


@wrong("mixed_precision_step", same_as="gradients_unscaled_in_half")
def gradients_narrow_in_the_end(loss_fn, params, batch, scale, dtype):
    loss = forward(loss_fn, params, batch, dtype)
    grads, found_inf = unscale(gradients(loss, params, scale), scale)
    return loss.item(), [grad.to(dtype).float() for grad in grads], found_inf


@wrong("mixed_precision_step")
def gradients_narrowed_before_unscale(loss_fn, params, batch, scale, dtype):
    """The gradients are cast to dtype before they are unscaled. Autograd hands them over in
    float32, where sums such as a bias's fit that float16 makes infinite."""
    loss = forward(loss_fn, params, batch, dtype)
    grads = [grad.to(dtype) for grad in gradients(loss, params, scale)]
    return (loss.item(), *unscale(grads, scale))


@wrong("mixed_precision_step")
def found_inf_of_the_loss(loss_fn, params, batch, scale, dtype):
    """found_inf looks at the loss. It may be finite while gradients overflow on their way back:
    look at these."""
    loss = forward(loss_fn, params, batch, dtype)
    grads, _ = unscale(gradients(loss, params, scale), scale)
    return loss.item(), grads, not bool(loss.isfinite())


@wrong("mixed_precision_step")
def found_inf_never(loss_fn, params, batch, scale, dtype):
    """found_inf is always False. A step with infinite or NaN gradients would spoil every
    weight."""
    loss = forward(loss_fn, params, batch, dtype)
    return loss.item(), unscale(gradients(loss, params, scale), scale)[0], False


@wrong("mixed_precision_step")
def bad_numbers_made_zero(loss_fn, params, batch, scale, dtype):
    """Infinite and NaN gradients are replaced by numbers before anybody looks at them, so found_inf
    says False. The step has to be skipped, not patched."""
    loss = forward(loss_fn, params, batch, dtype)
    grads = [grad.nan_to_num(0, 0, 0) for grad in gradients(loss, params, scale)]
    return (loss.item(), *unscale(grads, scale))


@wrong("mixed_precision_step")
def left_in_grad(loss_fn, params, batch, scale, dtype):
    """backward() adds to the parameters' .grad: what was there before is in the result, or
    what you computed stays there. The parameters are to be left as they were."""
    loss = forward(loss_fn, params, batch, dtype)
    (loss.float() * scale).backward()
    grads, found_inf = unscale([param.grad for param in params], scale)
    return loss.item(), grads, found_inf


@wrong("mixed_precision_step")
def grad_emptied(loss_fn, params, batch, scale, dtype):
    """The result is right, but .grad of the parameters is emptied or overwritten: gradients that
    were being accumulated there are gone."""
    for param in params:
        param.grad = None
    loss = forward(loss_fn, params, batch, dtype)
    (loss.float() * scale).backward()
    grads, found_inf = unscale([param.grad for param in params], scale)
    for param in params:
        param.grad = None
    return loss.item(), grads, found_inf


@wrong("mixed_precision_step", same_as="grad_emptied")
def grad_overwritten(loss_fn, params, batch, scale, dtype):
    for param in params:
        param.grad = None
    loss = forward(loss_fn, params, batch, dtype)
    (loss.float() * scale).backward()
    return (loss.item(), *unscale([param.grad for param in params], scale))


@wrong("mixed_precision_step")
def gradients_of_the_last_first(loss_fn, params, batch, scale, dtype):
    """The gradients are in another order than the parameters."""
    loss = forward(loss_fn, params, batch, dtype)
    grads, found_inf = unscale(gradients(loss, params, scale), scale)
    return loss.item(), grads[::-1], found_inf


@wrong("mixed_precision_step")
def parameters_moved(loss_fn, params, batch, scale, dtype):
    """The parameters have changed: the step of gradient descent is not part of this function."""
    loss = forward(loss_fn, params, batch, dtype)
    grads, found_inf = unscale(gradients(loss, params, scale), scale)
    with torch.no_grad():
        for param, grad in zip(params, grads, strict=True):
            param -= 0.1 * grad
    return loss.item(), grads, found_inf


# training_bytes ------------------------------------------------------------------------


def per_parameter(optimizer, precision, mixed, float32, moments):
    return {"mixed": mixed, "float32": float32}[precision] + (
        moments if optimizer == "adamw" else 0
    )


@wrong("training_bytes")
def no_master_weights(n_params, optimizer="adamw", precision="mixed"):
    """The master copy of the weights is missing: in mixed precision they exist twice, with 16 bits
    for computing and with 32 for adding small updates."""
    return n_params * per_parameter(optimizer, precision, 4, 8, 8)


@wrong("training_bytes")
def moments_in_half(n_params, optimizer="adamw", precision="mixed"):
    """AdamW's moments have 16 bits in your count of mixed precision. They stay float32, 4 bytes
    each."""
    return n_params * per_parameter(optimizer, precision, 8, 8, 8 if precision != "mixed" else 4)


@wrong("training_bytes")
def one_moment(n_params, optimizer="adamw", precision="mixed"):
    """AdamW keeps two moments for each parameter, the mean of the gradients and that of their
    squares; you count one."""
    return n_params * per_parameter(optimizer, precision, 8, 8, 4)


@wrong("training_bytes")
def no_gradients(n_params, optimizer="adamw", precision="mixed"):
    """The gradients are missing: there is one for each parameter."""
    return n_params * per_parameter(optimizer, precision, 6, 4, 8)


@wrong("training_bytes")
def no_moments(n_params, optimizer="adamw", precision="mixed"):
    """The two moments of AdamW are missing, 8 bytes for each parameter."""
    return n_params * per_parameter(optimizer, precision, 8, 8, 0)


@wrong("training_bytes")
def weights_alone(n_params, optimizer="adamw", precision="mixed"):
    """These are the weights alone, as for inference. Training needs gradients, the optimizer's
    state and, in mixed precision, a second copy of the weights as well."""
    return n_params * per_parameter(optimizer, precision, 2, 4, 0)


@wrong("training_bytes")
def sgd_like_adamw(n_params, optimizer="adamw", precision="mixed"):
    """The optimizer plays no role in your count; sgd keeps no moments."""
    return n_params * 16


@wrong("training_bytes")
def sgd_with_momentum(n_params, optimizer="adamw", precision="mixed"):
    """sgd has one moment in your count, as with momentum; here it is plain, and keeps nothing."""
    return n_params * (16 if optimizer == "adamw" else 12)


@wrong("training_bytes")
def master_weights_in_float32_too(n_params, optimizer="adamw", precision="mixed"):
    """In float32 the weights are counted twice. They are their own master copy."""
    return n_params * per_parameter(optimizer, precision, 8, 12, 8)


@wrong("training_bytes")
def gradients_in_float32(n_params, optimizer="adamw", precision="mixed"):
    """In mixed precision the gradients have 16 bits here, 2 bytes, not 4."""
    return n_params * per_parameter(optimizer, precision, 10, 8, 8)


@wrong("training_bytes")
def everything_halved(n_params, optimizer="adamw", precision="mixed"):
    """Mixed precision is half of float32 in your count. Only weights and gradients are halved, and
    a master copy is added: it comes to the same."""
    whole = 16 if optimizer == "adamw" else 8
    return n_params * (whole // 2 if precision == "mixed" else whole)


@wrong("training_bytes")
def master_weights_with_adamw_alone(n_params, optimizer="adamw", precision="mixed"):
    """With sgd the master copy of the weights is missing. It belongs to mixed precision, whatever
    the optimizer."""
    return n_params * (16 if optimizer == "adamw" else {"mixed": 4, "float32": 8}[precision])


@wrong("training_bytes")
def bits_instead_of_bytes(n_params, optimizer="adamw", precision="mixed"):
    """These are bits. A byte has 8 of them."""
    return 8 * right.training_bytes(n_params, optimizer, precision)


@wrong("training_bytes")
def in_gigabytes(n_params, optimizer="adamw", precision="mixed"):
    """This is in GB; the answer is in bytes, an integer."""
    return right.training_bytes(n_params, optimizer, precision) / 1e9
