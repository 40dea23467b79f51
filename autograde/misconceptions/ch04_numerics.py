"""Wrong answers to chapter 4."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.reference import ch04_numerics as reference
from autograde.reference.ch03_causal_mask import masked_attention, masked_softmax

# log_softmax ---------------------------------------------------------------------------


def softmax(scores, axis=-1):
    """An ordinary, stable softmax, for the mistakes that are made around it."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


@wrong("log_softmax", "pytorch/executorch#18407")
def log_of_overflowing_sum(scores, axis=-1):
    """exp overflows from about 710 on (89 in float32), and underflows to 0 on the other side: the
    logarithm of the sum is then infinite. Shift each slice by its largest score first."""
    return scores - np.log(np.exp(scores).sum(axis=axis, keepdims=True))


@wrong("log_softmax", same_as="log_of_overflowing_sum")
def log_of_overflowing_quotient(scores, axis=-1):
    exponentials = np.exp(scores)
    return np.log(exponentials / exponentials.sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def log_of_the_softmax(scores, axis=-1):
    """You take the logarithm of the finished softmax. A weight below about 1e-323 (1e-45 in
    float32) has been rounded to 0 by then, and log 0 is -inf. Leave the quotient out: the
    logarithm of a quotient is a difference."""
    return np.log(softmax(scores, axis))


@wrong("log_softmax")
def log_of_softmax_and_a_little(scores, axis=-1):
    """A small number is added to the weights before the logarithm (or they are cut off at it), so
    that it cannot be -inf. Now no result lies below the logarithm of that number, whatever the
    scores are. Compute the logarithm from the scores instead."""
    return np.log(softmax(scores, axis) + 1e-9)


@wrong("log_softmax", same_as="log_of_softmax_and_a_little")
def log_of_softmax_and_less(scores, axis=-1):
    return np.log(softmax(scores, axis) + 1e-12)


@wrong("log_softmax", same_as="log_of_softmax_and_a_little")
def log_of_clipped_softmax(scores, axis=-1):
    return np.log(np.clip(softmax(scores, axis), 1e-12, 1))


@wrong("log_softmax", same_as="log_of_softmax_and_a_little")
def log_of_softmax_and_eps(scores, axis=-1):
    return np.log(softmax(scores, axis) + 1e-8)


@wrong("log_softmax")
def maximum_forgotten_in_the_end(scores, axis=-1):
    """You take the logarithm of the sum of the shifted exponentials, and subtract it from the
    scores as they were. Both must be shifted, or neither: subtract it from the shifted scores."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return scores - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax", same_as="log_of_overflowing_sum")
def maximum_subtracted_too_late(scores, axis=-1):
    total = np.exp(scores).sum(axis=axis, keepdims=True)
    largest = scores.max(axis=axis, keepdims=True)
    return (scores - largest) - (np.log(total) - largest)


@wrong("log_softmax")
def one_maximum_for_all(scores, axis=-1):
    """You subtract the largest score of the whole array. A slice whose scores lie far below it
    underflows: its sum is 0, and log 0 is -inf. Subtract each slice's own largest score."""
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax", "FluxML/NNlib.jl#43")
def maximum_never_below_zero(scores, axis=-1):
    """What you subtract is never below 0. A slice of very negative scores then underflows: its
    sum is 0, and log 0 is -inf. Subtract the largest score, also when it is negative."""
    shifted = scores - np.maximum(scores.max(axis=axis, keepdims=True), 0)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def largest_magnitude(scores, axis=-1):
    """You subtract the largest absolute value. Where it belongs to a negative score, all
    exponentials of the slice may underflow; where it belongs to -inf, it is infinite. Subtract the
    largest score, sign and all."""
    shifted = scores - np.abs(scores).max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def not_the_largest(scores, axis=-1):
    """What you subtract from a slice is not its largest score (but its mean, say, or its smallest).
    A score that lies far above it still overflows, and -inf drags a mean or a smallest score with
    it."""
    shifted = scores - scores.mean(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax", same_as="not_the_largest")
def the_smallest_subtracted(scores, axis=-1):
    shifted = scores - scores.min(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def scores_clipped(scores, axis=-1):
    """The scores are cut off at a limit. Beyond it all look alike, so differences are lost, and
    -inf becomes finite. Shifted by the largest score, none is too large for exp, and exp of a very
    low one may be 0."""
    return reference.log_softmax(np.clip(scores, -700, 700), axis)


@wrong("log_softmax", same_as="scores_clipped")
def shifted_scores_clipped(scores, axis=-1):
    shifted = np.clip(scores - scores.max(axis=axis, keepdims=True), -700, 0)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax", "CASIA-IVA-Lab/DANet#48")
def largest_minus_scores(scores, axis=-1):
    """You compute largest - score; it is score - largest. The order is turned round: the lowest
    score comes out as the most probable."""
    shifted = scores.max(axis=axis, keepdims=True) - scores
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def axis_always_last(scores, axis=-1):
    """`axis` has no effect: the last axis is used whatever it says."""
    return reference.log_softmax(scores, -1)


@wrong("log_softmax")
def axis_not_moved_back(scores, axis=-1):
    """You move `axis` to the end, and leave it there: the numbers are right, but their axes are in
    another order than those of the scores."""
    return reference.log_softmax(np.moveaxis(scores, axis, -1), -1)


@wrong("log_softmax")
def maximum_always_last(scores, axis=-1):
    """The sum follows `axis`, but the largest score is taken along the last axis, whatever `axis`
    says. The same number must be subtracted from all scores that share one sum."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(shifted)
    return shifted - np.log(exponentials.sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def sum_always_last(scores, axis=-1):
    """The largest score follows `axis`, but the sum is taken along the last axis, whatever `axis`
    says."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@wrong("log_softmax", "PetrochukM/PyTorch-NLP#2")
def first_axis_by_default(scores, axis=0):
    """Without an `axis` you take the first one; the signature promises the last, axis=-1. With one
    axis both are the same."""
    return reference.log_softmax(scores, axis)


@wrong("log_softmax", "FudanNLP/fastNLP#254")
def second_axis_by_default(scores, axis=1):
    """Without an `axis` you take axis 1, which is the last one of a matrix only. Count from the
    back: axis=-1."""
    return reference.log_softmax(scores, axis)


@wrong("log_softmax")
def summed_over_everything(scores, axis=-1):
    """Maximum and sum are taken over the whole array, so that all exponentials together add up
    to 1, and not those of each slice. Pass axis=axis, keepdims=True to both."""
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


@wrong("log_softmax")
def axes_dropped(scores, axis=-1):
    """A maximum or a sum is taken without keepdims=True: it then lines up with the wrong axis, or
    with none."""
    shifted = scores - scores.max(axis=axis)
    return shifted - np.log(np.exp(shifted).sum(axis=axis))


@wrong("log_softmax", same_as="axes_dropped")
def axis_of_the_sum_dropped(scores, axis=-1):
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis))


@wrong("log_softmax")
def softmax_without_the_logarithm(scores, axis=-1):
    """This is the softmax; its logarithm is asked for."""
    return softmax(scores, axis)


@wrong("log_softmax")
def negative_log_likelihood(scores, axis=-1):
    """The sign is wrong: a probability is at most 1, so its logarithm is at most 0. With the
    opposite sign it is a loss."""
    return -reference.log_softmax(scores, axis)


@wrong("log_softmax")
def logarithm_of_the_scores(scores, axis=-1):
    """The logarithm is taken of the scores. It belongs to the sum of the exponentials; the scores
    themselves are already the logarithms of the exponentials."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return np.log(shifted) - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def divided_by_the_logarithm(scores, axis=-1):
    """You divide by the logarithm of the sum; the logarithm of a quotient is a difference."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted / np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def base_two(scores, axis=-1):
    """The result is in bits: you take the logarithm to base 2. Here, as in NumPy's np.log, it is
    the natural one."""
    return reference.log_softmax(scores, axis) / np.log(2)


@wrong("log_softmax")
def one_added_in_the_logarithm(scores, axis=-1):
    """np.log1p(x) is log(1 + x): the exponential of the largest score, which is 1, is counted
    twice. Either leave it out of the sum, or use np.log."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted - np.log1p(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("log_softmax")
def mean_of_the_exponentials(scores, axis=-1):
    """You take the mean of the exponentials; a softmax divides by their sum."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).mean(axis=axis, keepdims=True))


@wrong("log_softmax")
def infinities_made_finite(scores, axis=-1):
    """-inf is replaced by a finite number. An impossible entry has the probability 0, and its
    logarithm is -inf, which is what should come back."""
    return np.nan_to_num(reference.log_softmax(scores, axis))


@wrong("log_softmax", same_as="infinities_made_finite")
def scores_made_finite(scores, axis=-1):
    return reference.log_softmax(np.where(np.isneginf(scores), -1e9, scores), axis)


@wrong("log_softmax", same_as="infinities_made_finite")
def results_cut_off(scores, axis=-1):
    return np.maximum(reference.log_softmax(scores, axis), np.finfo(np.float32).min)


@wrong("log_softmax", same_as="infinities_made_finite")
def infinities_made_zero(scores, axis=-1):
    return np.nan_to_num(reference.log_softmax(scores, axis), neginf=0.0)


@wrong("log_softmax")
def stand_in_for_infinity(scores, axis=-1):
    """Inside, a large negative number stands in for -inf. A score can lie lower still, and then
    the entry that is ruled out is taken for the largest. -inf needs no stand-in: its exponential
    is 0."""
    finite = reference.log_softmax(np.where(np.isneginf(scores), -1e9, scores), axis)
    return np.where(np.isneginf(scores), -np.inf, finite)


@wrong("log_softmax", same_as="stand_in_for_infinity")
def lower_stand_in_for_infinity(scores, axis=-1):
    finite = reference.log_softmax(np.where(np.isneginf(scores), -1e30, scores), axis)
    return np.where(np.isneginf(scores), -np.inf, finite)


@wrong("log_softmax")
def shifts_the_scores_in_place(scores, axis=-1):
    """The caller's scores are shifted in place: the result is right, but whoever uses the scores
    afterwards finds them changed. `scores = scores - ...` makes a new array, `-=` does not."""
    scores -= scores.max(axis=axis, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=axis, keepdims=True))


# fill_value ----------------------------------------------------------------------------


@wrong("fill_value", "NVIDIA/apex#1052")
def minus_1e9(dtype):
    """-1e9 is a habit, and no limit of any format: in float16, which ends at -65504, it becomes
    -inf, and float32 and float64 go much lower."""
    return -1e9


@wrong("fill_value", same_as="minus_1e9")
def minus_1e9_as_dtype(dtype):
    return dtype(-1e9)


@wrong("fill_value", "facebookresearch/fairseq#3575")
def minus_1e8(dtype):
    """-1e8 is no limit of any format: in float16, which ends at -65504, it becomes -inf, and
    float32 and float64 go much lower."""
    return -1e8


@wrong("fill_value")
def minus_infinity(dtype):
    """-inf is not a finite number. Asked is the last number before it."""
    return -np.inf


@wrong("fill_value", same_as="minus_infinity")
def minus_infinity_as_dtype(dtype):
    return dtype(-np.inf)


@wrong("fill_value", "huggingface/transformers#14859")
def minus_ten_thousand(dtype):
    """-10000 fits every format, but it is the lowest number of none; real models have had scores
    below it."""
    return -1e4


@wrong("fill_value")
def minus_1e9_unless_half(dtype):
    """float16 is right, but the others get -1e9, which is not their lowest number: float32 goes
    down to about -3.4e38."""
    return -65504.0 if dtype == np.float16 else -1e9


@wrong("fill_value")
def ten_thousand_when_half(dtype):
    """-1e4 and -1e9 are habits, not limits. Ask NumPy where the format ends instead of
    remembering numbers."""
    return -1e4 if dtype == np.float16 else -1e9


@wrong("fill_value")
def highest_value(dtype):
    """The sign is missing: this is the highest finite number, the lowest is asked for. Filled
    into closed scores it would give them all the weight."""
    return np.finfo(dtype).max


@wrong("fill_value")
def closest_to_zero(dtype):
    """This is one of the numbers closest to 0 (`tiny` and its relatives). The lowest number is the
    one furthest below 0, at the end of the format's range."""
    return np.finfo(dtype).tiny


@wrong("fill_value", same_as="closest_to_zero")
def closest_to_zero_from_below(dtype):
    return -np.finfo(dtype).tiny


@wrong("fill_value", same_as="closest_to_zero")
def smallest_subnormal_value(dtype):
    return np.finfo(dtype).smallest_subnormal


@wrong("fill_value", same_as="closest_to_zero")
def minus_smallest_subnormal_value(dtype):
    return -np.finfo(dtype).smallest_subnormal


@wrong("fill_value")
def machine_epsilon(dtype):
    """`eps` is the distance from 1 to the next number, a measure of the format's digits. Asked is
    the end of its range."""
    return np.finfo(dtype).eps


@wrong("fill_value", same_as="machine_epsilon")
def minus_machine_epsilon(dtype):
    return -np.finfo(dtype).eps


@wrong("fill_value")
def always_single(dtype):
    """`dtype` has no effect: this is the lowest number of float32, whatever was asked. Stored as
    float16 it becomes -inf."""
    return np.finfo(np.float32).min


@wrong("fill_value", "dotnet/TorchSharp#1135", same_as="always_single")
def minus_highest_single(dtype):
    return -float(np.finfo(np.float32).max)


@wrong("fill_value")
def always_double(dtype):
    """`dtype` has no effect: this is the lowest number of float64, Python's float. Stored as
    float32 or float16 it becomes -inf."""
    return np.finfo(float).min


@wrong("fill_value")
def always_half(dtype):
    """`dtype` has no effect: this is the lowest number of float16, whatever was asked. It fits
    the others too, but they go much lower."""
    return -65504.0


@wrong("fill_value", "huggingface/transformers#31303")
def half_of_the_lowest(dtype):
    """This is half of the lowest number. That is wise where something is still added to it; but
    the lowest number itself is asked for."""
    return np.finfo(dtype).min / 2


@wrong("fill_value")
def lowest_integer(dtype):
    """This is the lowest integer of as many bits. Floating-point numbers reach further, and are
    described by np.finfo, not np.iinfo."""
    bits = np.dtype(dtype).itemsize * 8
    return float(np.iinfo(f"int{bits}").min)


@wrong("fill_value")
def lowest_of_some_integer(dtype):
    """This is the lowest 32-bit integer, whatever the format. Floating-point formats have limits
    of their own: np.finfo describes them."""
    return float(np.iinfo(np.int32).min)


@wrong("fill_value")
def format_itself(dtype):
    """np.finfo(dtype) describes the format; the number that is asked for is one of its
    attributes."""
    return np.finfo(dtype)


@wrong("fill_value")
def integer_limits(dtype):
    """np.iinfo describes integers only, np.finfo floating-point formats only. Here `dtype` is a
    floating-point format."""
    return np.iinfo(dtype).min


@wrong("fill_value")
def rounded_half(dtype):
    """-65500 is float16's lowest number as NumPy may print it, rounded: the exact one is -65504.
    Ask NumPy for the number instead of typing it."""
    return {np.float16: -65500.0}.get(dtype, float(np.finfo(dtype).min))


@wrong("fill_value")
def power_of_two(dtype):
    """-2**16 and -2**128 are the first numbers that do not fit any more (they become -inf); the
    lowest finite number is the one before."""
    return {np.float16: -(2.0**16), np.float32: -(2.0**128), np.float64: -np.inf}[dtype]


@wrong("fill_value")
def lowest_power_of_two(dtype):
    """This is the lowest power of two, -2**15 in float16. From there the numbers go on, step by
    step, almost to twice as low."""
    return -(2.0 ** (np.finfo(dtype).maxexp - 1))


# softmax_backward ----------------------------------------------------------------------


@wrong("softmax_backward")
def diagonal_only(weights, d_weights):
    """w (1 - w) is how a weight changes with its own score. It changes with every other score of
    its row, too, because the row shares one sum: these terms are missing."""
    return weights * (1 - weights) * d_weights


@wrong("softmax_backward")
def row_sum_forgotten(weights, d_weights):
    """weights * d_weights is the first half. When one exponential grows, so does the sum by which
    all are divided: what this takes from the row is still to be subtracted."""
    return weights * d_weights


@wrong("softmax_backward")
def passed_straight_through(weights, d_weights):
    """The gradient comes back unchanged, as if the softmax were not there."""
    return d_weights.copy()


@wrong("softmax_backward")
def not_times_the_weights(weights, d_weights):
    """The bracket is right, but it must still be multiplied by the weights: a score whose weight
    is 0 has no influence."""
    return d_weights - (weights * d_weights).sum(axis=-1, keepdims=True)


@wrong("softmax_backward")
def unweighted_sum(weights, d_weights):
    """The number that is subtracted is the plain sum of d_weights; it is their sum weighted with
    the weights."""
    return weights * (d_weights - d_weights.sum(axis=-1, keepdims=True))


@wrong("softmax_backward")
def unweighted_mean(weights, d_weights):
    """You subtract the plain mean of d_weights. What must be subtracted is their mean weighted
    with the weights of the row."""
    return weights * (d_weights - d_weights.mean(axis=-1, keepdims=True))


@wrong("softmax_backward")
def mean_for_sum(weights, d_weights):
    """You take the mean of weights * d_weights; it is their sum. The weights add up to 1, so the
    sum is already a weighted mean."""
    return weights * (d_weights - (weights * d_weights).mean(axis=-1, keepdims=True))


@wrong("softmax_backward")
def sign_of_everything(weights, d_weights):
    """The sign is wrong everywhere: the sum of the row is subtracted from d_weights, not the
    reverse."""
    return -reference.softmax_backward(weights, d_weights)


@wrong("softmax_backward")
def plus_the_row_sum(weights, d_weights):
    """The sum of the row is added; it must be subtracted: a score that grows takes weight away
    from the others."""
    return weights * (d_weights + (weights * d_weights).sum(axis=-1, keepdims=True))


@wrong("softmax_backward")
def row_sum_outside_the_bracket(weights, d_weights):
    """The sum of the row is subtracted after the multiplication by the weights. It belongs to
    d_weights, and both are multiplied by the weights."""
    product = weights * d_weights
    return product - product.sum(axis=-1, keepdims=True)


@wrong("softmax_backward")
def gradient_of_cross_entropy(weights, d_weights):
    """softmax minus target is the gradient of the softmax and the cross-entropy together. Here
    the second argument is no target: it is any gradient that arrives at the weights."""
    return weights - d_weights


@wrong("softmax_backward")
def through_the_log_softmax(weights, d_weights):
    """This is the way back through the log-softmax. Here `d_weights` is the gradient of the weights
    themselves, not of their logarithms."""
    return d_weights - weights * d_weights.sum(axis=-1, keepdims=True)


@wrong("softmax_backward")
def softmax_taken_again(weights, d_weights):
    """A softmax is taken of `weights`, which are the results of a softmax already. Use them as
    they are."""
    return reference.softmax_backward(softmax(weights), d_weights)


@wrong("softmax_backward")
def arguments_swapped(weights, d_weights):
    """weights and d_weights have changed places in the formula."""
    return reference.softmax_backward(d_weights, weights)


@wrong("softmax_backward")
def axis_of_row_sum_dropped(weights, d_weights):
    """The sum is taken without keepdims=True: it then lines up with the columns, and each row
    loses another row's sum."""
    return weights * (d_weights - (weights * d_weights).sum(axis=-1))


@wrong("softmax_backward", "labmlai/annotated_deep_learning_paper_implementations#146")
def summed_over_the_queries(weights, d_weights):
    """The sum runs over the queries (down the columns). The softmax was taken along the last axis,
    the keys, and so is the sum."""
    return weights * (d_weights - (weights * d_weights).sum(axis=-2, keepdims=True))


@wrong("softmax_backward", "FudanNLP/fastNLP#254")
def summed_over_axis_one(weights, d_weights):
    """axis=1 is the last axis of a matrix, but not of an array with batch axes in front. Count
    from the back: axis=-1."""
    return weights * (d_weights - (weights * d_weights).sum(axis=1, keepdims=True))


@wrong("softmax_backward", "PetrochukM/PyTorch-NLP#2")
def summed_over_axis_zero(weights, d_weights):
    """The sum runs over the first axis. With a batch that mixes the sequences, without one the
    queries. The softmax was taken along the last axis: axis=-1."""
    return weights * (d_weights - (weights * d_weights).sum(axis=0, keepdims=True))


@wrong("softmax_backward")
def summed_over_all(weights, d_weights):
    """One sum is taken over the whole array. Every row has a softmax, and a sum, of its own:
    axis=-1, keepdims=True."""
    return weights * (d_weights - (weights * d_weights).sum())


@wrong("softmax_backward", same_as="summed_over_all")
def one_jacobian_for_all(weights, d_weights):
    w = weights.ravel()
    return ((np.diag(w) - np.outer(w, w)) @ d_weights.ravel()).reshape(weights.shape)


@wrong("softmax_backward")
def jacobian_of_one_row(weights, d_weights):
    """This is the Jacobian of a single row at best, and each row has one of its own. (np.diag of a
    matrix takes its diagonal out, instead of making a diagonal matrix.)"""
    w = weights
    return (np.diag(w) - np.outer(w, w)) @ d_weights


@wrong("softmax_backward")
def jacobian_loop_over_two_axes(weights, d_weights):
    """This works for a matrix, and not with batch axes in front of it. Rows are what the last axis
    holds, however many axes there are before it."""
    out = np.zeros(weights.shape)
    for i, (w, d) in enumerate(zip(weights, d_weights, strict=True)):
        out[i] = (np.diag(w) - np.outer(w, w)) @ d
    return out


@wrong("softmax_backward")
def jacobian_with_plus(weights, d_weights):
    """Outside the diagonal the Jacobian is negative, -w_i w_j: when one score grows, the other
    weights shrink. Yours has a plus there."""
    w = weights
    own = w * (1 - w) * d_weights
    return own + w * ((w * d_weights).sum(axis=-1, keepdims=True) - w * d_weights)


@wrong("softmax_backward")
def diagonal_without_the_square(weights, d_weights):
    """The diagonal of the Jacobian is w_i (1 - w_i); yours is w_i alone, while the other entries
    are right."""
    w = weights
    return w * d_weights - w * ((w * d_weights).sum(axis=-1, keepdims=True) - w * d_weights)


@wrong("softmax_backward")
def rows_made_to_sum_to_one(weights, d_weights):
    """You divide each row of weights by its sum first. In a row of zeros, a query with no allowed
    key, that is 0 / 0. The weights are ready as they come."""
    with np.errstate(all="ignore"):
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return reference.softmax_backward(weights, d_weights)


@wrong("softmax_backward", same_as="rows_made_to_sum_to_one")
def scores_recovered(weights, d_weights):
    with np.errstate(all="ignore"):
        weights = softmax(np.log(weights))
    return reference.softmax_backward(weights, d_weights)


@wrong("softmax_backward")
def weights_kept_from_zero(weights, d_weights):
    """A small number is added to the weights, or they are cut off at it, so that none is 0. Nothing
    here divides by a weight: a closed key's may stay 0, and so must its gradient."""
    return reference.softmax_backward(np.maximum(weights, 1e-9), d_weights)


@wrong("softmax_backward", same_as="weights_kept_from_zero")
def weights_kept_further_from_zero(weights, d_weights):
    return reference.softmax_backward(weights + 1e-8, d_weights)


@wrong("softmax_backward", same_as="weights_kept_from_zero")
def weights_kept_less_from_zero(weights, d_weights):
    return reference.softmax_backward(weights + 1e-12, d_weights)


@wrong("softmax_backward")
def closed_keys_get_minus_infinity(weights, d_weights):
    """Where a weight is 0 you return -inf, as if the mask belonged in the gradient. It closes
    scores, in the forward pass; a closed score's gradient is 0."""
    return np.where(weights == 0, -np.inf, reference.softmax_backward(weights, d_weights))


@wrong("softmax_backward")
def works_in_place(weights, d_weights):
    """The caller's d_weights is changed by an operation in place (`-=`, `*=`). Make a new array:
    d_weights = d_weights - ..."""
    d_weights -= (weights * d_weights).sum(axis=-1, keepdims=True)
    d_weights *= weights
    return d_weights


# masked_attention_backward -------------------------------------------------------------


def backward(q, k, v, allowed, d_out, *, weights=None, d_scores=None, scale=None, softmax=None):
    """The reference in pieces, of which a mistake replaces one."""
    root = q.shape[-1] ** 0.5
    with np.errstate(all="ignore"):
        if weights is None:
            weights = (softmax or masked_softmax)(q @ np.swapaxes(k, -2, -1) / root, allowed)
        d_weights = d_out @ np.swapaxes(v, -2, -1)
        back = d_scores or reference.softmax_backward
        d = back(weights, d_weights) * (1 / root if scale is None else scale)
        return d @ k, np.swapaxes(d, -2, -1) @ q, np.swapaxes(weights, -2, -1) @ d_out


@wrong("masked_attention_backward")
def scale_forgotten(q, k, v, allowed, d_out):
    """dq and dk are not divided by the square root of d_head. The forward pass divides the scores
    by it, so their gradients are divided as well."""
    return backward(q, k, v, allowed, d_out, scale=1)


@wrong("masked_attention_backward")
def scale_squared(q, k, v, allowed, d_out):
    """In all, dq and dk are divided by d_head. Divide once, by its square root."""
    return backward(q, k, v, allowed, d_out, scale=1 / q.shape[-1])


@wrong("masked_attention_backward")
def scale_upside_down(q, k, v, allowed, d_out):
    """dq and dk are multiplied by the square root of d_head. The scores were divided by it, and a
    gradient is divided by the same number."""
    return backward(q, k, v, allowed, d_out, scale=q.shape[-1] ** 0.5)


@wrong("masked_attention_backward")
def scale_in_dq_only(q, k, v, allowed, d_out):
    """dk is not divided by the square root of d_head; dq is. The scale stands in the scores, on
    which both depend."""
    dq, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dq, dk * q.shape[-1] ** 0.5, dv


@wrong("masked_attention_backward")
def scale_in_dk_only(q, k, v, allowed, d_out):
    """dq is not divided by the square root of d_head; dk is. The scale stands in the scores, on
    which both depend."""
    dq, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dq * q.shape[-1] ** 0.5, dk, dv


@wrong("masked_attention_backward")
def scale_in_dv_too(q, k, v, allowed, d_out):
    """dv is divided by the square root of d_head. The scale belongs to the scores, and the values
    have no part in them."""
    dq, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dq, dk, dv / q.shape[-1] ** 0.5


@wrong("masked_attention_backward")
def scores_not_scaled(q, k, v, allowed, d_out):
    """The weights are computed from scores that were not divided by the square root of d_head, so
    they are not the weights of the forward pass."""
    weights = masked_softmax(q @ np.swapaxes(k, -2, -1), allowed)
    return backward(q, k, v, allowed, d_out, weights=weights)


@wrong("masked_attention_backward")
def no_scale_anywhere(q, k, v, allowed, d_out):
    """The square root of d_head is missing, in the weights and in the gradients: this is the
    backward pass of attention without a scale."""
    weights = masked_softmax(q @ np.swapaxes(k, -2, -1), allowed)
    return backward(q, k, v, allowed, d_out, weights=weights, scale=1)


@wrong("masked_attention_backward")
def mask_ignored(q, k, v, allowed, d_out):
    """The mask has no effect: the gradients are those of attention to every key, the future
    included."""
    return backward(q, k, v, np.ones_like(allowed), d_out)


@wrong("masked_attention_backward", "rasbt/LLMs-from-scratch#1061")
def mask_turned_round(q, k, v, allowed, d_out):
    """The polarity is turned round: these are the gradients of attention to the closed keys. True
    means may attend."""
    return backward(q, k, v, ~allowed, d_out)


@wrong("masked_attention_backward")
def mask_on_scores_gradient_only(q, k, v, allowed, d_out):
    """The mask is applied to the gradient of the scores, but not to the scores themselves: the
    weights are not those of the forward pass."""

    def masked(weights, d_weights):
        return np.where(allowed, reference.softmax_backward(weights, d_weights), 0)

    return backward(q, k, v, np.ones_like(allowed), d_out, d_scores=masked)


@wrong("masked_attention_backward")
def mask_after_softmax(q, k, v, allowed, d_out):
    """The weights are masked after the softmax, so that their rows do not add up to 1. They must
    be the weights of the forward pass: close the scores before the softmax."""
    return backward(q, k, v, allowed, d_out, softmax=lambda s, a: np.where(a, softmax(s), 0))


@wrong("masked_attention_backward", "georg-wolflein/good-features#1")
def closed_scores_are_zero(q, k, v, allowed, d_out):
    """Closed scores are set to 0, and exp(0) is 1: the closed keys keep a weight, and get a
    gradient."""
    return backward(q, k, v, allowed, d_out, softmax=lambda s, a: softmax(np.where(a, s, 0)))


@wrong("masked_attention_backward")
def gradient_filled_with_minus_infinity(q, k, v, allowed, d_out):
    """-inf is filled into the gradient of the closed scores. It belongs in the scores; where a
    score is closed its gradient is 0."""

    def filled(weights, d_weights):
        return np.where(allowed, reference.softmax_backward(weights, d_weights), -np.inf)

    return backward(q, k, v, allowed, d_out, d_scores=filled)


@wrong("masked_attention_backward", "pytorch/pytorch#41508")
def blind_query_is_nan(q, k, v, allowed, d_out):
    """A query with no allowed key has the weights 0 / 0. Its NaN is multiplied into dk and dv, and
    so spreads to every key: 0 times NaN is NaN. Such a query must have weights of 0."""
    return backward(q, k, v, allowed, d_out, softmax=lambda s, a: softmax(np.where(a, s, -np.inf)))


@wrong("masked_attention_backward")
def blind_query_attends_to_all(q, k, v, allowed, d_out):
    """A query with no allowed key gets weights all the same, as from a finite fill, or from a mask
    that was opened for it. So it changes the gradients of keys that it may not see; it must add
    nothing."""

    def filled(scores, allowed):
        return softmax(np.where(allowed, scores, np.finfo(scores.dtype).min))

    return backward(q, k, v, allowed, d_out, softmax=filled)


@wrong("masked_attention_backward", same_as="blind_query_attends_to_all")
def mask_opened_for_a_blind_query(q, k, v, allowed, d_out):
    opened = allowed | ~allowed.any(axis=-1, keepdims=True)
    return backward(q, k, v, opened, d_out)


@wrong("masked_attention_backward", "TransformerLensOrg/TransformerLens#385")
def filled_with_minus_1e9(q, k, v, allowed, d_out):
    """-1e9 closes the scores, in place of -inf. A query with no allowed key then attends to all of
    its closed keys, and a query whose open scores lie below -1e9 to the closed ones only. The
    first must have weights of 0, and only -inf closes a key whatever the scores are."""
    return backward(q, k, v, allowed, d_out, softmax=lambda s, a: softmax(np.where(a, s, -1e9)))


@wrong("masked_attention_backward")
def filled_with_minus_1e9_and_cleared(q, k, v, allowed, d_out):
    """-1e9 closes the scores, in place of -inf. Where all open scores lie below it, a closed one is
    the largest of its row, and the open keys lose their weights. Only -inf closes a key whatever
    the scores are."""

    def cleared(scores, allowed):
        filled = softmax(np.where(allowed, scores, -1e9))
        return np.where(allowed.any(axis=-1, keepdims=True), filled, 0)

    return backward(q, k, v, allowed, d_out, softmax=cleared)


@wrong("masked_attention_backward", same_as="filled_with_minus_1e9_and_cleared")
def filled_with_minus_1e9_and_multiplied(q, k, v, allowed, d_out):
    def multiplied(scores, allowed):
        return softmax(np.where(allowed, scores, -1e9)) * allowed

    return backward(q, k, v, allowed, d_out, softmax=multiplied)


@wrong("masked_attention_backward")
def minus_1e9_added(q, k, v, allowed, d_out):
    """-1e9 is added to the closed scores. A query with no allowed key has it added to all of them,
    and the softmax takes it out again: the query attends as if there were no mask. And a closed
    score that is more than 1e9 higher stays above the open ones. Close with -inf, not by a
    distance."""

    def added(scores, allowed):
        return softmax(scores + np.where(allowed, 0, -1e9).astype(scores.dtype))

    return backward(q, k, v, allowed, d_out, softmax=added)


@wrong("masked_attention_backward")
def weights_not_quite_zero(q, k, v, allowed, d_out):
    """A small number is added to the weights, or they are cut off at it, so that none is 0. A
    closed key then keeps a little weight, and a gradient. Nothing here divides by a weight: 0 may
    stay 0."""
    weights = np.maximum(_weights(q, k, allowed), 1e-9)
    return backward(q, k, v, allowed, d_out, weights=weights)


@wrong("masked_attention_backward", same_as="weights_not_quite_zero")
def weights_less_than_quite_zero(q, k, v, allowed, d_out):
    return backward(q, k, v, allowed, d_out, weights=_weights(q, k, allowed) + 1e-12)


@wrong("masked_attention_backward", "pytorch/executorch#18407")
def exponentials_overflow(q, k, v, allowed, d_out):
    """The exponentials are taken of the scores as they are: large ones overflow, and inf / inf is
    NaN. Subtract each row's largest score first, or use masked_softmax."""

    def overflowing(scores, allowed):
        exponentials = np.where(allowed, np.exp(scores), 0)
        total = exponentials.sum(axis=-1, keepdims=True)
        return exponentials / np.where(total == 0, 1, total)

    return backward(q, k, v, allowed, d_out, softmax=overflowing)


@wrong("masked_attention_backward", same_as="exponentials_overflow")
def exponentials_overflow_times_the_mask(q, k, v, allowed, d_out):
    def overflowing(scores, allowed):
        exponentials = np.exp(scores) * allowed
        total = exponentials.sum(axis=-1, keepdims=True)
        return exponentials / np.where(total == 0, 1, total)

    return backward(q, k, v, allowed, d_out, softmax=overflowing)


@wrong("masked_attention_backward")
def softmax_diagonal_only(q, k, v, allowed, d_out):
    """The backward pass of the softmax is taken to be w (1 - w). A weight changes with the other
    scores of its row, too; dv, which does not go through the softmax, is right."""
    return backward(q, k, v, allowed, d_out, d_scores=lambda w, d: w * (1 - w) * d)


@wrong("masked_attention_backward")
def softmax_without_row_sum(q, k, v, allowed, d_out):
    """The gradient of the scores is taken to be weights * d_weights. The sum by which the row was
    divided changes as well: the backward pass of the softmax has a second term."""
    return backward(q, k, v, allowed, d_out, d_scores=lambda w, d: w * d)


@wrong("masked_attention_backward")
def softmax_skipped(q, k, v, allowed, d_out):
    """The gradient of the weights is used as the gradient of the scores: between them lies the
    softmax, which has a backward pass of its own."""
    return backward(q, k, v, allowed, d_out, d_scores=lambda w, d: d)


@wrong("masked_attention_backward")
def softmax_skipped_where_allowed(q, k, v, allowed, d_out):
    """The gradient of the weights, masked, is used as the gradient of the scores: between them
    lies the softmax, which has a backward pass of its own."""
    return backward(q, k, v, allowed, d_out, d_scores=lambda w, d: np.where(allowed, d, 0))


@wrong("masked_attention_backward")
def dk_not_transposed(q, k, v, allowed, d_out):
    """For dk the gradient of the scores must be transposed: its rows are queries, and dk has a
    row for each key. With as many queries as keys the shapes fit, and the numbers do not."""
    dq, _, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dq, _d_scores(q, k, v, allowed, d_out) @ q, dv


@wrong("masked_attention_backward")
def dv_not_transposed(q, k, v, allowed, d_out):
    """For dv the weights must be transposed: their rows are queries, and dv has a row for each
    key. With as many queries as keys the shapes fit, and the numbers do not."""
    dq, dk, _ = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dq, dk, _weights(q, k, allowed) @ d_out


@wrong("masked_attention_backward")
def neither_transposed(q, k, v, allowed, d_out):
    """For dk and dv the matrix must be transposed: its rows are queries, while dk and dv have a
    row for each key. With as many queries as keys the shapes fit, and the numbers do not."""
    d_scores = _d_scores(q, k, v, allowed, d_out)
    return d_scores @ k, d_scores @ q, _weights(q, k, allowed) @ d_out


@wrong("masked_attention_backward")
def dq_transposed_too(q, k, v, allowed, d_out):
    """For dq the gradient of the scores is not transposed: dq has a row for each query, and so
    has that gradient."""
    _, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return np.swapaxes(_d_scores(q, k, v, allowed, d_out), -2, -1) @ k, dk, dv


@wrong("masked_attention_backward")
def dq_from_the_queries(q, k, v, allowed, d_out):
    """dq is made from the queries. A score is a query times a key, so its derivative with respect
    to the query is the key, and the reverse."""
    _, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return _d_scores(q, k, v, allowed, d_out) @ q, dk, dv


@wrong("masked_attention_backward")
def dk_from_the_keys(q, k, v, allowed, d_out):
    """dk is made from the keys. A score is a query times a key, so its derivative with respect to
    the key is the query."""
    dq, _, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dq, np.swapaxes(_d_scores(q, k, v, allowed, d_out), -2, -1) @ k, dv


@wrong("masked_attention_backward")
def q_and_k_swapped(q, k, v, allowed, d_out):
    """dq is made from the queries and dk from the keys. A score is a query times a key: its
    derivative with respect to one of them is the other one."""
    d_scores = _d_scores(q, k, v, allowed, d_out)
    dv = reference.masked_attention_backward(q, k, v, allowed, d_out)[2]
    return d_scores @ q, np.swapaxes(d_scores, -2, -1) @ k, dv


@wrong("masked_attention_backward")
def values_not_transposed(q, k, v, allowed, d_out):
    """d_weights is d_out times the transposed values: (query, d_value) times (d_value, key). You
    multiply by v itself."""
    weights = _weights(q, k, allowed)
    d_scores = reference.softmax_backward(weights, d_out @ v) / q.shape[-1] ** 0.5
    dk = np.swapaxes(d_scores, -2, -1) @ q
    return d_scores @ k, dk, np.swapaxes(weights, -2, -1) @ d_out


@wrong("masked_attention_backward", "HsiaoYetGun/ESIM#5")
def all_axes_reversed(q, k, v, allowed, d_out):
    """.T reverses all axes, those of the batch, too. Only the last two change places:
    np.swapaxes(x, -2, -1)."""
    weights = _weights(q, k, allowed)
    d_scores = reference.softmax_backward(weights, d_out @ v.T) / q.shape[-1] ** 0.5
    return d_scores @ k, d_scores.T @ q, weights.T @ d_out


@wrong("masked_attention_backward")
def reshaped_for_transposed(q, k, v, allowed, d_out):
    """A matrix is reshaped where it should be transposed: that keeps the numbers in reading order
    and mixes queries with keys. Exchange the axes: np.swapaxes(x, -2, -1)."""
    weights, d_scores = _weights(q, k, allowed), _d_scores(q, k, v, allowed, d_out)
    turned = (*weights.shape[:-2], weights.shape[-1], weights.shape[-2])
    return d_scores @ k, d_scores.reshape(turned) @ q, weights.reshape(turned) @ d_out


@wrong("masked_attention_backward")
def d_out_ignored(q, k, v, allowed, d_out):
    """d_out has no effect: these are the gradients of the sum of all outputs. Every output has a
    gradient of its own, given in d_out."""
    return reference.masked_attention_backward(q, k, v, allowed, np.ones_like(d_out))


@wrong("masked_attention_backward")
def values_first(q, k, v, allowed, d_out):
    """You return (dv, dk, dq), in the order in which they are computed; the order is
    (dq, dk, dv)."""
    return reference.masked_attention_backward(q, k, v, allowed, d_out)[::-1]


@wrong("masked_attention_backward")
def keys_first(q, k, v, allowed, d_out):
    """You return (dk, dq, dv); the order is (dq, dk, dv)."""
    dq, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    return dk, dq, dv


@wrong("masked_attention_backward")
def mask_gradient_returned(q, k, v, allowed, d_out):
    """Four things come back; the mask has no gradient. Return (dq, dk, dv)."""
    return (*reference.masked_attention_backward(q, k, v, allowed, d_out), None)


@wrong("masked_attention_backward")
def out_taken_for_the_weights(q, k, v, allowed, d_out):
    """masked_attention returns (out, weights), and you use the first as the weights."""
    out, _ = masked_attention(q, k, v, allowed)
    return backward(q, k, v, allowed, d_out, weights=out)


@wrong("masked_attention_backward")
def out_for_gradients(q, k, v, allowed, d_out):
    """What comes back is the forward pass of attention, with d_out in it nowhere; its gradients
    are asked for."""
    weights = _weights(q, k, allowed)
    return weights @ v


@wrong("masked_attention_backward", "awslabs/sockeye#731")
def keys_taken_for_values(q, k, v, allowed, d_out):
    """d_weights is made from the keys. out = weights @ v, so the gradient of the weights is made
    from the values."""
    return *reference.masked_attention_backward(q, k, k, allowed, _fit(d_out, k))[:2], (
        reference.masked_attention_backward(q, k, v, allowed, d_out)[2]
    )


@wrong("masked_attention_backward", "labmlai/annotated_deep_learning_paper_implementations#146")
def softmax_over_the_queries(q, k, v, allowed, d_out):
    """The weights are normalised over the queries (their columns add up to 1). Each query shares
    its attention among the keys, the last axis."""

    def over_queries(scores, allowed):
        scores = np.where(allowed, scores, -np.inf)
        return np.nan_to_num(softmax(scores, axis=-2))

    return backward(q, k, v, allowed, d_out, softmax=over_queries)


@wrong("masked_attention_backward")
def summed_over_the_batch(q, k, v, allowed, d_out):
    """dk and dv are added up over the batch axes. Every sequence has keys and values of its own,
    and so a gradient of its own."""
    dq, dk, dv = reference.masked_attention_backward(q, k, v, allowed, d_out)
    batch = tuple(range(k.ndim - 2))
    return dq, dk.sum(axis=batch), dv.sum(axis=batch)


@wrong("masked_attention_backward")
def scales_the_queries_in_place(q, k, v, allowed, d_out):
    """The caller's q is scaled in place. Write q = q / ..., which makes a new array."""
    q /= q.shape[-1] ** 0.5
    weights = masked_softmax(q @ np.swapaxes(k, -2, -1), allowed)
    d_scores = reference.softmax_backward(weights, d_out @ np.swapaxes(v, -2, -1))
    dv = np.swapaxes(weights, -2, -1) @ d_out
    return d_scores @ k / q.shape[-1] ** 0.5, np.swapaxes(d_scores, -2, -1) @ q, dv


@wrong("masked_attention_backward")
def mask_of_the_same_shape_only(q, k, v, allowed, d_out):
    """This needs a mask of the very shape of the scores. One mask serves a whole batch: np.where
    broadcasts it, and an index such as scores[~allowed] does not."""
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    scores[~allowed] = -np.inf
    weights = masked_softmax(scores, np.isfinite(scores))
    return backward(q, k, v, allowed, d_out, weights=weights)


def _weights(q, k, allowed):
    return masked_softmax(q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5, allowed)


def _d_scores(q, k, v, allowed, d_out):
    d_weights = d_out @ np.swapaxes(v, -2, -1)
    return reference.softmax_backward(_weights(q, k, allowed), d_weights) / q.shape[-1] ** 0.5


def _fit(d_out, k):
    """d_out as it is, or an error where its last axis does not fit the keys."""
    d_out @ np.swapaxes(k, -2, -1)
    return d_out
