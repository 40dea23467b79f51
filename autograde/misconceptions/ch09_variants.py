"""Wrong answers to chapter 9."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import wrong
from autograde.reference import ch09_variants as right
from autograde.reference.ch03_causal_mask import causal_mask, masked_attention, masked_softmax


def distances(n):
    """i - j for every query i and key j."""
    return np.arange(n)[:, None] - np.arange(n)


# sliding_window_mask -------------------------------------------------------------------


@wrong("sliding_window_mask", "huggingface/transformers#26792")
def one_key_too_many(n, window):
    """Your queries see window + 1 keys: i - j <= window is one step too far. The query's own
    key is one of the `window` keys."""
    return np.tril(np.triu(np.ones((n, n), dtype=bool), -window))


@wrong("sliding_window_mask")
def one_key_too_few(n, window):
    """Your queries see window - 1 keys, and none at all with a window of 1. The oldest key of
    the window lies window - 1 steps back, and it is open."""
    return (distances(n) >= 0) & (distances(n) < window - 1)


@wrong("sliding_window_mask", "microsoft/onnxruntime#25927")
def window_before_the_query(n, window):
    """Your window lies before the query and leaves the query itself out: j < i. A query sees
    itself, and the window counts it."""
    return (distances(n) > 0) & (distances(n) <= window)


@wrong("sliding_window_mask")
def own_key_closed(n, window):
    """Your diagonal is closed: the distance 0 is left out. A query sees itself, and the window
    counts it."""
    return (distances(n) > 0) & (distances(n) < window)


@wrong("sliding_window_mask")
def both_sides(n, window):
    """Your window reaches to both sides: the distance is taken without its sign, so keys of
    the future are open. A decoder's window looks back only."""
    return np.abs(distances(n)) < window


@wrong("sliding_window_mask")
def centred_on_the_query(n, window):
    """Your window is centred on the query, half of it in the future, as in Longformer's
    encoder. A decoder's window ends at the query."""
    return np.abs(distances(n)) <= window // 2


@wrong("sliding_window_mask")
def future_left_open(n, window):
    """The window closes the distant past, and nothing closes the future: i - j is negative
    there, and so less than the window. The causal condition is missing."""
    return distances(n) < window


@wrong("sliding_window_mask", "proger/hippogriff#7")
def window_has_no_effect(n, window):
    """This is the plain causal mask, whatever the window: keys farther back than window - 1
    steps must be closed."""
    return causal_mask(n)


@wrong("sliding_window_mask")
def blocks_of_the_window(n, window):
    """You cut the sequence into blocks, so the first query of a block sees itself alone. A
    sliding window moves with the query: always the newest `window` keys."""
    i = np.arange(n)
    return causal_mask(n) & (i[:, None] // window == i // window)


@wrong("sliding_window_mask")
def looks_ahead(n, window):
    """Your window lies ahead of the query: the band is above the diagonal. Rows are queries and
    columns are keys, so the past lies to the left."""
    return right.sliding_window_mask(n, window).T


@wrong("sliding_window_mask")
def outside_the_window(n, window):
    """Your mask opens the past outside the window and closes the window itself: the comparison
    with the window is the wrong way round."""
    return (distances(n) >= 0) & (distances(n) >= window)


@wrong("sliding_window_mask", "rasbt/LLMs-from-scratch#1061")
def closed_where_open(n, window):
    """True and False have changed places: here True means "may attend", and you return the
    keys that are closed."""
    return ~right.sliding_window_mask(n, window)


@wrong("sliding_window_mask")
def start_below_zero(n, window):
    """A slice [start:end] with a negative start counts from the back: the first queries, which
    have fewer keys than the window, lose them. Cut the start off at 0."""
    mask = np.zeros((n, n), dtype=bool)
    for i in range(n):
        mask[i, i - window + 1 : i + 1] = True
    return mask


@wrong("sliding_window_mask")
def full_windows_only(n, window):
    """The first queries have no key in your mask, because their window is not full yet. They
    see as many keys as there are."""
    return right.sliding_window_mask(n, window) & (np.arange(n)[:, None] >= window - 1)


@wrong("sliding_window_mask")
def window_filled_up_ahead(n, window):
    """The first queries have `window` keys in your mask, too, and so some of the future. They
    have fewer: nothing is before the sequence."""
    mask = np.zeros((n, n), dtype=bool)
    for i in range(n):
        start = max(0, i - window + 1)
        mask[i, start : start + window] = True
    return mask


@wrong("sliding_window_mask")
def window_as_numbers(n, window):
    """The pattern is right, but the entries are numbers. A mask is bool: `~` of an integer 1
    is -2, and added to the scores a 1 closes nothing."""
    return np.tri(n) - np.tri(n, k=-window)


@wrong("sliding_window_mask")
def window_as_an_additive_mask(n, window):
    """These are numbers to add to the scores, 0 and -inf. The boolean mask is asked for, True =
    may attend."""
    return np.where(right.sliding_window_mask(n, window), 0.0, -np.inf)


# strided_mask --------------------------------------------------------------------------


@wrong("strided_mask")
def stride_of_absolute_columns(n, window, stride):
    """You open the keys 0, stride, 2 * stride, ... for every query. The stride counts from the
    query: the keys whose distance i - j is a multiple of it."""
    columns = np.arange(n) % stride == 0
    return (distances(n) >= 0) & ((distances(n) < window) | columns)


@wrong("strided_mask", "facebookresearch/fairseq#894")
def fixed_pattern(n, window, stride):
    """This is the paper's other pattern, "fixed": blocks, and the last column of each block.
    Here the window moves with the query, and the stride counts from the query."""
    i = np.arange(n)
    same_block = i[:, None] // stride == i // stride
    return causal_mask(n) & (same_block | (i % stride == stride - 1))


@wrong("strided_mask")
def fixed_columns_and_a_window(n, window, stride):
    """Besides the window you open the last column of each block of `stride` keys, the same columns
    for every query. The stride counts from the query."""
    last_of_block = np.arange(n) % stride == stride - 1
    return causal_mask(n) & ((distances(n) < window) | last_of_block)


@wrong("strided_mask")
def one_stride_only(n, window, stride):
    """Besides the window a single key is open, one stride back. The keys at 2 * stride, 3 * stride
    and so on are open as well."""
    return (distances(n) >= 0) & ((distances(n) < window) | (distances(n) == stride))


@wrong("strided_mask")
def key_zero_left_out(n, window, stride):
    """Key 0 stays closed where the stride arrives at it. (One way to get there: a range or a slice
    that goes down to 0 ends before it.)"""
    mask = np.zeros((n, n), dtype=bool)
    for i in range(n):
        mask[i, i:0:-stride] = True
        mask[i, max(0, i - window + 1) : i + 1] = True
    return mask


@wrong("strided_mask")
def both_at_once(n, window, stride):
    """A key must meet both conditions in your mask, the window and the stride. Either one is
    enough."""
    return (distances(n) >= 0) & (distances(n) < window) & (distances(n) % stride == 0)


@wrong("strided_mask")
def parentheses_missing(n, window, stride):
    """Keys of the future are open, on the stride: `&` binds tighter than `|`, so the causal
    condition holds for the window alone. Put the two ways in into parentheses."""
    return (distances(n) >= 0) & (distances(n) < window) | (distances(n) % stride == 0)


@wrong("strided_mask")
def future_inside_the_window(n, window, stride):
    """The whole future is open: there i - j is negative, and so less than the window. The
    causal condition is missing."""
    return (distances(n) < window) | (distances(n) % stride == 0)


@wrong("strided_mask")
def strides_on_both_sides(n, window, stride):
    """The distance is taken without its sign, so keys of the future are open, near and on the
    stride. Both look back only."""
    distance = np.abs(distances(n))
    return (distance < window) | (distance % stride == 0)


@wrong("strided_mask", "openai/sparse_attention#7")
def stride_alone(n, window, stride):
    """Only the stride is there: the newest `window` keys must be open as well."""
    return (distances(n) >= 0) & (distances(n) % stride == 0)


@wrong("strided_mask", "openai/sparse_attention#7")
def window_alone(n, window, stride):
    """Only the window is there: beyond it every stride-th key must be open as well."""
    return right.sliding_window_mask(n, window)


@wrong("strided_mask", "huggingface/transformers#26792")
def window_too_long_by_one(n, window, stride):
    """The window is one key too long: i - j <= window. The query's own key is one of the
    `window` keys."""
    return (distances(n) >= 0) & ((distances(n) <= window) | (distances(n) % stride == 0))


@wrong("strided_mask")
def stride_from_the_window_on(n, window, stride):
    """You count the stride from the end of the window. It counts from the query: the distances
    stride, 2 * stride, 3 * stride, ... are open."""
    beyond = distances(n) - window
    return (distances(n) >= 0) & ((beyond < 0) | (beyond % stride == 0))


@wrong("strided_mask", same_as="stride_from_the_window_on")
def stride_from_the_oldest_of_the_window(n, window, stride):
    beyond = distances(n) - (window - 1)
    return (distances(n) >= 0) & ((beyond <= 0) | (beyond % stride == 0))


@wrong("strided_mask")
def stride_one_step_off(n, window, stride):
    """The strided keys are one step off: open are the distances stride, 2 * stride, ..., which
    leave the remainder 0, not stride - 1."""
    distance = distances(n)
    return (distance >= 0) & ((distance < window) | (distance % stride == stride - 1))


@wrong("strided_mask")
def window_and_stride_exchanged(n, window, stride):
    """Window and stride have changed places: the second argument is the window, the third the
    stride."""
    return right.strided_mask(n, stride, window)


@wrong("strided_mask")
def dilated_window(n, window, stride):
    """This is a dilated window: `window` keys with gaps of the stride between them. Here the
    newest `window` keys are all open, and the strided ones go back to the start."""
    distance = distances(n)
    return (distance >= 0) & (distance < window * stride) & (distance % stride == 0)


@wrong("strided_mask")
def strided_but_inverted(n, window, stride):
    """True and False have changed places: here True means "may attend", and you return the
    keys that are closed."""
    return ~right.strided_mask(n, window, stride)


@wrong("strided_mask")
def strided_as_numbers(n, window, stride):
    """The pattern is right, but the entries are numbers. A mask is bool, True = may attend."""
    return right.strided_mask(n, window, stride).astype(int)


@wrong("strided_mask")
def strided_looking_ahead(n, window, stride):
    """Your queries look ahead: the pattern lies above the diagonal. Rows are queries and
    columns are keys, so the past lies to the left."""
    return right.strided_mask(n, window, stride).T


# alibi_bias ----------------------------------------------------------------------------


def biases(slopes, distance):
    """-slope * distance for each head."""
    return -np.asarray(slopes, dtype=float)[:, None, None] * distance


def past(n):
    """The distance to each earlier key, 0 elsewhere."""
    return np.maximum(distances(n), 0)


def slopes_of(n_heads):
    return 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)


@wrong("alibi_bias", "paiml/aprender#2143")
def heads_counted_from_zero(n, n_heads):
    """Your first slope is 1: the heads are counted from 0. The formula counts h from 1, so
    that the last head has the slope 2^-8."""
    return biases(2.0 ** (-8 * np.arange(n_heads) / n_heads), past(n))


@wrong("alibi_bias")
def farther_is_higher(n, n_heads):
    """The sign is wrong: your bias rises with the distance, so the farthest key gains most.
    Distance must cost."""
    return -right.alibi_bias(n, n_heads)


@wrong("alibi_bias", "ml-explore/mlx#343")
def distance_without_sign(n, n_heads):
    """Above the diagonal your bias is not 0: there the distance is taken without its sign, as
    for an encoder. The future gets 0 here, and is closed by the mask."""
    return biases(slopes_of(n_heads), np.abs(distances(n)))


@wrong("alibi_bias")
def reward_for_the_future(n, n_heads):
    """Above the diagonal i - j is negative, and your bias becomes a reward that grows with the
    distance. The future gets 0 here, and is closed by the mask."""
    return biases(slopes_of(n_heads), distances(n))


@wrong("alibi_bias", "facebookresearch/multimodal#462")
def mask_folded_in(n, n_heads):
    """Above the diagonal you close the future, so that the bias is a causal mask as well. Here it
    is the bias alone: 0 above the diagonal, and the mask is applied apart."""
    bias = biases(slopes_of(n_heads), past(n))
    return np.where(np.tri(n, dtype=bool), bias, -np.inf)


@wrong("alibi_bias", same_as="mask_folded_in")
def large_mask_folded_in(n, n_heads):
    return np.maximum(mask_folded_in(n, n_heads), -1e9)


@wrong("alibi_bias", "ml-explore/mlx#3071")
def published_code_for_odd_heads(n, n_heads):
    """Where the number of heads is no power of two, your slopes are those of the authors' code,
    which takes some of them from a larger power of two. Here the formula of the paper holds
    for every number of heads."""
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [*slopes_of(power), *slopes_of(2 * power)[::2]][:n_heads]
    return biases(slopes, past(n))


@wrong("alibi_bias")
def counted_from_the_first_key(n, n_heads):
    """Your bias rises from key 0 on, slope * j. In each row that differs from the wanted one by
    a constant, which a softmax does not notice; but here the diagonal is 0 and the distance
    counts back from the query."""
    return biases(slopes_of(n_heads), np.broadcast_to(-np.arange(n), (n, n)))


@wrong("alibi_bias", same_as="counted_from_the_first_key")
def counted_from_the_first_key_and_masked(n, n_heads):
    return biases(slopes_of(n_heads), np.tril(np.broadcast_to(-np.arange(n), (n, n))))


@wrong("alibi_bias")
def halved_from_head_to_head(n, n_heads):
    """Your slopes are 1/2, 1/4, 1/8, ... for any number of heads, which is right for 8 heads
    alone. The exponent is -8 h / n_heads."""
    return biases(2.0 ** -np.arange(1, n_heads + 1), past(n))


@wrong("alibi_bias")
def exponent_without_fraction(n, n_heads):
    """The exponent -8 h / n_heads is rounded to a whole number, as // does. It may be a fraction,
    and where it is one, your slope is another."""
    return biases(2.0 ** -(8 * np.arange(1, n_heads + 1) // n_heads), past(n))


@wrong("alibi_bias", same_as="exponent_without_fraction")
def exponent_rounded_down(n, n_heads):
    return biases(2.0 ** (-8 * np.arange(1, n_heads + 1) // n_heads), past(n))


@wrong("alibi_bias")
def power_of_eight_alone(n, n_heads):
    """2 ** -8 is raised first, and then multiplied by h / n_heads: your slopes grow in equal
    steps. The whole of -8 h / n_heads is the exponent; it needs parentheses."""
    return biases(2.0**-8 * np.arange(1, n_heads + 1) / n_heads, past(n))


@wrong("alibi_bias")
def powers_of_e(n, n_heads):
    """Your slopes are powers of e (np.exp); they should be powers of 2."""
    return biases(np.exp(-8 * np.arange(1, n_heads + 1) / n_heads), past(n))


@wrong("alibi_bias")
def one_slope_for_all(n, n_heads):
    """Every head has the slope 1. Each has a slope of its own, from steep to almost flat."""
    return biases(np.ones(n_heads), past(n))


@wrong("alibi_bias")
def flat_heads_first(n, n_heads):
    """The slopes are right, in the wrong order: head 1 is the steepest, the last head the
    flattest."""
    return right.alibi_bias(n, n_heads)[::-1]


@wrong("alibi_bias")
def flatter_with_the_distance(n, n_heads):
    """The exponent holds the distance: your bias is not linear in it. The bias is the slope
    times the distance."""
    exponent = -8 * np.arange(1, n_heads + 1) / n_heads
    return -np.where(past(n) > 0, 2.0 ** (exponent[:, None, None] * past(n)), 0)


@wrong("alibi_bias")
def heads_last(n, n_heads):
    """Your heads are the last axis: the shape should be (heads, query, key)."""
    return np.moveaxis(right.alibi_bias(n, n_heads), 0, -1)


@wrong("alibi_bias")
def slopes_alone(n, n_heads):
    """These are the slopes. The bias is each slope times the distances, an array (heads, query,
    key)."""
    return slopes_of(n_heads)


@wrong("alibi_bias")
def keys_for_queries(n, n_heads):
    """Queries and keys have changed places: the bias lies above the diagonal, where the future
    is, and the past costs nothing."""
    return np.swapaxes(right.alibi_bias(n, n_heads), -1, -2)


# grouped_query_attention ---------------------------------------------------------------


def shared(q, k, v, allowed, which):
    """Attention in which query head h reads kv head which[h]."""
    return masked_attention(q, k[..., which, :, :], v[..., which, :, :], allowed)[0]


def own(q, k):
    """The right kv head for each query head."""
    return np.arange(q.shape[-3]) // (q.shape[-3] // k.shape[-3])


def plain_scores(q, k):
    return q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5


@wrong("grouped_query_attention", "onnx/onnx#7274")
def heads_tiled(q, k, v, allowed):
    """Your query heads take the kv heads in turn, 0, 1, 0, 1, as np.tile and `h % kv_heads` do.
    Consecutive heads share one: 0, 0, 1, 1."""
    return shared(q, k, v, allowed, np.arange(q.shape[-3]) % k.shape[-3])


@wrong("grouped_query_attention", "PrimeIntellect-ai/prime-rl#2681")
def repeated_over_axis_one(q, k, v, allowed):
    """The heads are axis 1 only when exactly one batch axis stands before them; you repeat
    over axis 1 always. Count from the back: the heads are axis -3."""
    group = q.shape[-3] // k.shape[-3]
    return masked_attention(q, np.repeat(k, group, 1), np.repeat(v, group, 1), allowed)[0]


@wrong("grouped_query_attention", "ByteDance-Seed/VeOmni#162")
def repeated_over_time(q, k, v, allowed):
    """You repeat the keys, not the heads: the sequence grows longer, and the heads stay too
    few. The axis of the heads is -3."""
    group = q.shape[-3] // k.shape[-3]
    return masked_attention(q, np.repeat(k, group, -2), np.repeat(v, group, -2), allowed)[0]


@wrong("grouped_query_attention")
def nothing_repeated(q, k, v, allowed):
    """q and k are multiplied as they are: unless there are as many kv heads as heads, or one,
    the axes do not fit. Each kv head must serve several query heads."""
    return masked_attention(q, k, v, allowed)[0]


@wrong("grouped_query_attention")
def first_head_for_all(q, k, v, allowed):
    """Every query head reads kv head 0, as in multi-query attention. With several kv heads each
    serves its own group."""
    return shared(q, k, v, allowed, np.zeros(q.shape[-3], dtype=int))


@wrong("grouped_query_attention")
def mean_of_the_heads(q, k, v, allowed):
    """You average the kv heads, and all query heads share the mean. With several kv heads each
    serves its own group."""
    k, v = k.mean(axis=-3, keepdims=True), v.mean(axis=-3, keepdims=True)
    return masked_attention(q, k, v, allowed)[0]


@wrong("grouped_query_attention")
def heads_in_reverse(q, k, v, allowed):
    """The groups read the kv heads in reverse: the first group of query heads reads the last kv
    head. It should read the first."""
    return shared(q, k, v, allowed, own(q, k)[::-1])


@wrong("grouped_query_attention")
def values_tiled(q, k, v, allowed):
    """Keys and values of a head do not belong together: the keys are shared by consecutive
    heads, and the values go round, 0, 1, 0, 1. Both go the same way."""
    k = k[..., own(q, k), :, :]
    v = v[..., np.arange(q.shape[-3]) % v.shape[-3], :, :]
    return masked_attention(q, k, v, allowed)[0]


@wrong("grouped_query_attention")
def group_sums_its_queries(q, k, v, allowed):
    """You make the queries fewer instead of sharing the keys: each group of query heads is
    averaged into one. Every query head keeps its own query and its own output."""
    pooled = q.reshape(*q.shape[:-3], k.shape[-3], -1, *q.shape[-2:]).mean(axis=-3)
    return masked_attention(pooled[..., own(q, k), :, :], k[..., own(q, k), :, :],
                            v[..., own(q, k), :, :], allowed)[0]  # fmt: skip


@wrong("grouped_query_attention", "awslabs/sockeye#731")
def keys_for_values(q, k, v, allowed):
    """The keys stand where the values belong: the weights are to be multiplied by v."""
    return shared(q, k, k, allowed, own(q, k))


@wrong("grouped_query_attention", "mlc-ai/mlc-llm#3426")
def grouped_without_scale(q, k, v, allowed):
    """The scores are not divided by the square root of d_head, so the softmax is too steep."""
    return shared(q * q.shape[-1] ** 0.5, k, v, allowed, own(q, k))


@wrong("grouped_query_attention", "omihub777/ViT-CIFAR#11")
def scaled_by_d_model(q, k, v, allowed):
    """The scores are divided by the square root of heads * d_head. A score is a dot product of
    d_head terms, so it is the square root of d_head."""
    return shared(q / q.shape[-3] ** 0.5, k, v, allowed, own(q, k))


@wrong("grouped_query_attention", "stanford-cs336/assignment1-basics#51")
def grouped_without_mask(q, k, v, allowed):
    """The mask has no effect: every query sees every key."""
    return shared(q, k, v, np.array(True), own(q, k))


@wrong("grouped_query_attention", "rasbt/LLMs-from-scratch#1061")
def grouped_with_inverted_mask(q, k, v, allowed):
    """The mask is used the wrong way round: your queries see exactly the keys that are closed.
    True means "may attend"."""
    return shared(q, k, v, ~allowed, own(q, k))


@wrong("grouped_query_attention")
def blind_query_is_nan(q, k, v, allowed):
    """A query with no allowed key comes out NaN: all its scores are -inf, and 0 / 0 is NaN. It
    should get zeros."""
    scores = np.where(allowed, plain_scores(q, k[..., own(q, k), :, :]), -np.inf)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    return weights @ v[..., own(q, k), :, :]


@wrong("grouped_query_attention")
def blind_query_takes_the_mean(q, k, v, allowed):
    """A query with no allowed key gets the mean of all values: the fill is finite, and equal
    scores share the weight. It should get zeros."""
    scores = np.where(allowed, plain_scores(q, k[..., own(q, k), :, :]), -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v[..., own(q, k), :, :]


@wrong("grouped_query_attention", "pytorch/executorch#18407")
def grouped_softmax_overflows(q, k, v, allowed):
    """exp overflows for large scores, and inf / inf is NaN. Subtract each row's largest allowed
    score first: the weights stay the same."""
    with np.errstate(all="ignore"):
        e = np.exp(np.where(allowed, plain_scores(q, k[..., own(q, k), :, :]), -np.inf))
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total) @ v[..., own(q, k), :, :]


@wrong("grouped_query_attention")
def mask_after_the_softmax(q, k, v, allowed):
    """You mask after the softmax: the closed keys have already taken their share, and the rows
    no longer add up to 1. Close them before."""
    weights = masked_softmax(plain_scores(q, k[..., own(q, k), :, :]), np.array(True))
    return weights * allowed @ v[..., own(q, k), :, :]


@wrong("grouped_query_attention", "labmlai/annotated_deep_learning_paper_implementations#146")
def softmax_over_the_queries(q, k, v, allowed):
    """You normalise over the queries: the columns add up to 1. Each query shares out its weight
    among the keys, the last axis."""
    scores = np.where(allowed, plain_scores(q, k[..., own(q, k), :, :]), -np.inf)
    weights = masked_softmax(np.swapaxes(scores, -1, -2), ~np.isneginf(np.swapaxes(scores, -1, -2)))
    return np.swapaxes(weights, -1, -2) @ v[..., own(q, k), :, :]


@wrong("grouped_query_attention")
def mask_without_the_group_axis(q, k, v, allowed):
    """You split the heads into two axes, (kv_heads, group), and the mask does not follow: a mask
    with a heads or batch axis then meets the wrong axes. Split its heads as well."""
    *batch, heads, n_query, d_head = q.shape
    split = q.reshape(*batch, k.shape[-3], -1, n_query, d_head)
    out, _ = masked_attention(split, k[..., None, :, :], v[..., None, :, :], allowed)
    return out.reshape(*batch, heads, n_query, -1)


@wrong("grouped_query_attention")
def weights_as_well(q, k, v, allowed):
    """The output is right, and the weights come with it. Return the output alone."""
    which = own(q, k)
    return masked_attention(q, k[..., which, :, :], v[..., which, :, :], allowed)


@wrong("grouped_query_attention")
def heads_already_merged(q, k, v, allowed):
    """The heads are merged into (*batch, query, heads * d_value). The output keeps its heads:
    (*batch, heads, query, d_value)."""
    out = np.swapaxes(shared(q, k, v, allowed, own(q, k)), -3, -2)
    return out.reshape(*out.shape[:-2], -1)


# axial_causal_attention ----------------------------------------------------------------


def turned(*arrays):
    """Rows and columns exchanged."""
    return tuple(np.swapaxes(x, -3, -2) for x in arrays)


def rows_only(q, k, v, mask=causal_mask):
    return masked_attention(q, k, v, mask(q.shape[-2]))[0]


def columns_only(q, k, v, mask=causal_mask):
    return turned(rows_only(*turned(q, k, v), mask=mask))[0]


def everything(n):
    return np.ones((n, n), dtype=bool)


def flat(x):
    """The grid as one sequence, row after row."""
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])


@wrong("axial_causal_attention")
def rows_alone(q, k, v):
    """This is the attention along the rows alone; the columns are missing from the sum."""
    return rows_only(q, k, v)


@wrong("axial_causal_attention")
def columns_alone(q, k, v):
    """This is the attention along the columns alone; the rows are missing from the sum."""
    return columns_only(q, k, v)


@wrong("axial_causal_attention")
def mean_of_both(q, k, v):
    """Your result is the mean of the two outputs; the sum is asked for."""
    return (rows_only(q, k, v) + columns_only(q, k, v)) / 2


@wrong("axial_causal_attention")
def columns_after_rows(q, k, v):
    """The column attention reads what the row attention gave, one after the other. Here both
    read the same v, and their outputs are added."""
    return columns_only(q, k, rows_only(q, k, v))


@wrong("axial_causal_attention", same_as="columns_after_rows")
def rows_after_columns(q, k, v):
    return rows_only(q, k, columns_only(q, k, v))


@wrong("axial_causal_attention", same_as="columns_after_rows")
def columns_after_rows_added(q, k, v):
    along_row = rows_only(q, k, v)
    return along_row + columns_only(q, k, along_row)


@wrong("axial_causal_attention")
def one_softmax_for_both(q, k, v):
    """Row and column share one softmax, so that they compete for a weight of 1. They are two
    attentions, each with a softmax of its own; the cell itself is in both."""
    rows, cols = q.shape[-3:-1]
    row, col = np.divmod(np.arange(rows * cols), cols)
    cross = (row[:, None] == row) | (col[:, None] == col)
    out, _ = masked_attention(*map(flat, (q, k, v)), cross & causal_mask(rows * cols))
    return out.reshape(v.shape)


@wrong("axial_causal_attention")
def row_after_row(q, k, v):
    """The grid is one long sequence here, row after row, and each cell sees all cells before
    it. Axial attention sees its own row and its own column only."""
    n = q.shape[-3] * q.shape[-2]
    return masked_attention(*map(flat, (q, k, v)), causal_mask(n))[0].reshape(v.shape)


@wrong("axial_causal_attention")
def columns_not_causal(q, k, v):
    """The columns are not causal: a cell sees what lies below it. It may look up to itself."""
    return rows_only(q, k, v) + columns_only(q, k, v, mask=everything)


@wrong("axial_causal_attention")
def rows_not_causal(q, k, v):
    """The rows are not causal: a cell sees what lies to its right. It may look up to itself."""
    return rows_only(q, k, v, mask=everything) + columns_only(q, k, v)


@wrong("axial_causal_attention")
def neither_causal(q, k, v):
    """Nothing is masked: a cell sees its whole row and its whole column, to the right and below
    as well."""
    return rows_only(q, k, v, mask=everything) + columns_only(q, k, v, mask=everything)


@wrong("axial_causal_attention", "AngeLouCN/CaraNet#11")
def columns_by_reshape(q, k, v):
    """For the columns you reshape to (cols, rows), and that does not turn the grid: it cuts the
    same row-by-row order at other places. Exchange the axes."""
    rows, cols = q.shape[-3:-1]
    turn = [x.reshape(*x.shape[:-3], cols, rows, x.shape[-1]) for x in (q, k, v)]
    return rows_only(q, k, v) + rows_only(*turn).reshape(v.shape)


@wrong("axial_causal_attention")
def not_turned_back(q, k, v):
    """The output of the columns still lies on its side when it is added: rows and columns must
    be exchanged once more. If the grid is not square, the shapes do not even fit."""
    return rows_only(q, k, v) + rows_only(*turned(q, k, v))


@wrong("axial_causal_attention")
def turned_back_by_reshape(q, k, v):
    """The output of the columns is put back with reshape, and that does not turn the grid: it
    cuts the same order at other places. Exchange the axes once more."""
    return rows_only(q, k, v) + rows_only(*turned(q, k, v)).reshape(v.shape)


@wrong("axial_causal_attention")
def one_mask_for_both(q, k, v):
    """The mask of the rows is used for the columns as well. A row has `cols` cells and a column
    has `rows`: unless the grid is square, the two masks differ in size."""
    mask = causal_mask(q.shape[-2])
    along_column = turned(masked_attention(*turned(q, k, v), mask)[0])[0]
    return rows_only(q, k, v) + along_column


@wrong("axial_causal_attention")
def masks_exchanged(q, k, v):
    """The two masks have changed places: along a row there are `cols` positions, along a column
    there are `rows`. In a square grid that does not show."""
    rows, cols = q.shape[-3:-1]
    along_row = masked_attention(q, k, v, causal_mask(rows))[0]
    return along_row + turned(masked_attention(*turned(q, k, v), causal_mask(cols))[0])[0]


@wrong("axial_causal_attention")
def turned_from_the_front(q, k, v):
    """Rows and columns are taken to be axes 0 and 1; with batch axes they are not. Count from
    the back: -3 and -2."""
    sideways = rows_only(*(np.swapaxes(x, 0, 1) for x in (q, k, v)))
    return rows_only(q, k, v) + np.swapaxes(sideways, 0, 1)


@wrong("axial_causal_attention")
def own_value_once(q, k, v):
    """You take the cell's own value off, so as not to count it twice. The plain sum of the two
    outputs is asked for."""
    return rows_only(q, k, v) + columns_only(q, k, v) - v


@wrong("axial_causal_attention")
def own_cell_closed_in_the_column(q, k, v):
    """In the columns a cell does not see itself (perhaps because its row has it already). The
    two attentions are independent, and the cell is in both."""
    return rows_only(q, k, v) + columns_only(q, k, v, mask=lambda n: np.tri(n, k=-1, dtype=bool))


@wrong("axial_causal_attention", "mlc-ai/mlc-llm#3426")
def axial_without_scale(q, k, v):
    """The scores are not divided by the square root of d_head, so both softmaxes are too
    steep."""
    q = q * q.shape[-1] ** 0.5
    return rows_only(q, k, v) + columns_only(q, k, v)


@wrong("axial_causal_attention")
def side_by_side(q, k, v):
    """The two outputs are joined side by side, twice as wide. Their sum is asked for."""
    return np.concatenate([rows_only(q, k, v), columns_only(q, k, v)], axis=-1)


@wrong("axial_causal_attention")
def two_outputs(q, k, v):
    """Two outputs come back, rows and columns. Their sum is asked for, one array."""
    return rows_only(q, k, v), columns_only(q, k, v)


# ring_append ---------------------------------------------------------------------------


def put(cache, new, slots):
    """A copy of the cache with the new tokens in those slots."""
    cache = cache.copy()
    cache[..., slots, :] = new
    return cache


def written(k_cache, v_cache, k_new, v_new, slots):
    return put(k_cache, k_new, slots), put(v_cache, v_new, slots)


@wrong("ring_append", "vllm-project/vllm#24500")
def caches_changed_in_place(k_cache, v_cache, k_new, v_new, position):
    """The result is right, but the caches that you were given are changed as well: whoever kept
    them finds them overwritten. Copy first."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    k_cache[..., slots, :] = k_new
    v_cache[..., slots, :] = v_new
    return k_cache, v_cache


@wrong("ring_append", "google-ai-edge/LiteRT-LM#2762")
def never_turns_round(k_cache, v_cache, k_new, v_new, position):
    """The slot is the position itself: as soon as the positions exceed the capacity, it lies
    outside the ring. Take it mod capacity."""
    return written(k_cache, v_cache, k_new, v_new, position + np.arange(k_new.shape[-2]))


@wrong("ring_append", same_as="never_turns_round")
def never_turns_round_and_drops(k_cache, v_cache, k_new, v_new, position):
    k_cache, v_cache = k_cache.copy(), v_cache.copy()
    for t in range(k_new.shape[-2]):
        if position + t < k_cache.shape[-2]:
            k_cache[..., position + t, :] = k_new[..., t, :]
            v_cache[..., position + t, :] = v_new[..., t, :]
    return k_cache, v_cache


@wrong("ring_append")
def only_the_first_written(k_cache, v_cache, k_new, v_new, position):
    """Of several new tokens only the first is written. All of them go into the ring, one slot
    after the other."""
    first = slice(0, 1)
    k_new, v_new = k_new[..., first, :], v_new[..., first, :]
    return right.ring_append(k_cache, v_cache, k_new, v_new, position)


@wrong("ring_append")
def keys_and_values_exchanged(k_cache, v_cache, k_new, v_new, position):
    """Keys are written into the cache of the values, and values into that of the keys."""
    return right.ring_append(k_cache, v_cache, v_new, k_new, position)


@wrong("ring_append")
def slice_past_the_end(k_cache, v_cache, k_new, v_new, position):
    """Only the first slot is taken mod capacity; the slice that starts there ends at the last
    slot, and the tokens that should go on at slot 0 do not fit. Each token needs its own mod."""
    start = position % k_cache.shape[-2]
    return written(k_cache, v_cache, k_new, v_new, slice(start, start + k_new.shape[-2]))


@wrong("ring_append", same_as="slice_past_the_end")
def slots_past_the_end(k_cache, v_cache, k_new, v_new, position):
    start = position % k_cache.shape[-2]
    return written(k_cache, v_cache, k_new, v_new, start + np.arange(k_new.shape[-2]))


@wrong("ring_append")
def cut_off_at_the_end(k_cache, v_cache, k_new, v_new, position):
    """Tokens that do not fit before the end of the ring are dropped. They go on at slot 0."""
    start = position % k_cache.shape[-2]
    fit = min(k_new.shape[-2], k_cache.shape[-2] - start)
    slots = slice(start, start + fit)
    return written(k_cache, v_cache, k_new[..., :fit, :], v_new[..., :fit, :], slots)


@wrong("ring_append")
def moved_back_to_fit(k_cache, v_cache, k_new, v_new, position):
    """When the new tokens do not fit before the end of the ring, you write them to its last
    slots. Each token has its own slot, position mod capacity, and the rest go on at slot 0."""
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    start = min(position % capacity, capacity - new)
    return written(k_cache, v_cache, k_new, v_new, slice(start, start + new))


@wrong("ring_append")
def starts_again_at_zero(k_cache, v_cache, k_new, v_new, position):
    """When the new tokens do not fit before the end of the ring, you write all of them from
    slot 0 on. Those that fit stay; only the rest go on at slot 0."""
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    start = position % capacity
    start = 0 if start + new > capacity else start
    return written(k_cache, v_cache, k_new, v_new, slice(start, start + new))


@wrong("ring_append")
def parts_exchanged(k_cache, v_cache, k_new, v_new, position):
    """Where the tokens go round the end of the ring, its two parts have changed places: the
    first tokens stand at slot 0, the last ones before the end. The oldest comes first."""
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    slots = np.sort((position + np.arange(new)) % capacity)
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append", "ml-explore/mlx-examples#1000")
def oldest_pushed_out(k_cache, v_cache, k_new, v_new, position):
    """You push the tokens through: the oldest falls out at the front, the new ones stand at the
    end. That keeps the right ones and copies the whole cache each time; in a ring a token stays
    in its slot, position mod capacity."""
    new = k_new.shape[-2]
    return (
        np.concatenate([k_cache[..., new:, :], k_new], axis=-2),
        np.concatenate([v_cache[..., new:, :], v_new], axis=-2),
    )


@wrong("ring_append", "ekryski/mlx-swift-lm#90")
def always_from_slot_zero(k_cache, v_cache, k_new, v_new, position):
    """You write from slot 0 on, wherever the sequence stands: each call overwrites the one
    before. The first slot is position mod capacity."""
    return written(k_cache, v_cache, k_new, v_new, slice(0, k_new.shape[-2]))


@wrong("ring_append", "google-ai-edge/LiteRT-LM#2762")
def stays_in_the_last_slot(k_cache, v_cache, k_new, v_new, position):
    """Once the ring is full, everything goes into its last slot. It goes on at slot 0: position
    mod capacity."""
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    return written(
        k_cache, v_cache, k_new, v_new, np.minimum(position + np.arange(new), capacity - 1)
    )


@wrong("ring_append", "microsoft/onnxruntime-genai#2354")
def one_slot_late(k_cache, v_cache, k_new, v_new, position):
    """You write one slot too late: `position` is that of the first new token, and its slot is
    position mod capacity, not position + 1."""
    slots = (position + 1 + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append")
def one_slot_early(k_cache, v_cache, k_new, v_new, position):
    """You write one slot too early: positions count from 0, and so do slots. The first new token
    goes into slot position mod capacity."""
    slots = (position - 1 + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append")
def position_of_the_last(k_cache, v_cache, k_new, v_new, position):
    """You take `position` for that of the last new token: several tokens land too early. It is
    that of the first one."""
    new, capacity = k_new.shape[-2], k_cache.shape[-2]
    slots = (position - new + 1 + np.arange(new)) % capacity
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append")
def newest_first(k_cache, v_cache, k_new, v_new, position):
    """The new tokens are written in reverse: the first of them, the oldest, belongs at
    `position`."""
    slots = (position + np.arange(k_new.shape[-2])[::-1]) % k_cache.shape[-2]
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append")
def all_in_one_slot(k_cache, v_cache, k_new, v_new, position):
    """All the new tokens go into one slot, and the last one stays. They go into slots that
    follow each other."""
    slots = np.full(k_new.shape[-2], position % k_cache.shape[-2])
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append", "huggingface/transformers#47708")
def one_slot_never_used(k_cache, v_cache, k_new, v_new, position):
    """You take the position mod capacity - 1, so that the last slot is never used. A ring of
    `capacity` slots goes round after `capacity` tokens."""
    slots = (position + np.arange(k_new.shape[-2])) % max(k_cache.shape[-2] - 1, 1)
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append")
def goes_round_after_the_new_ones(k_cache, v_cache, k_new, v_new, position):
    """You take the position mod the number of new tokens. The ring goes round after `capacity`
    slots, the length of the caches."""
    new = k_new.shape[-2]
    return written(k_cache, v_cache, k_new, v_new, (position + np.arange(new)) % new)


@wrong("ring_append")
def capacity_from_the_heads(k_cache, v_cache, k_new, v_new, position):
    """The capacity is read from an axis counted from the front (the heads, or a batch). It is
    the length of axis -2, however many axes stand before."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[1]
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append", same_as="capacity_from_the_heads")
def capacity_from_the_third_axis(k_cache, v_cache, k_new, v_new, position):
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[2]
    return written(k_cache, v_cache, k_new, v_new, slots)


@wrong("ring_append")
def slots_along_the_third_axis(k_cache, v_cache, k_new, v_new, position):
    """The slots are taken along axis 2, counted from the front, which is right for exactly one
    batch axis. Count from the back: [..., slots, :]."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    k_cache, v_cache = k_cache.copy(), v_cache.copy()
    k_cache[:, :, slots] = k_new
    v_cache[:, :, slots] = v_new
    return k_cache, v_cache


@wrong("ring_append")
def slots_along_the_second_axis(k_cache, v_cache, k_new, v_new, position):
    """The slots are taken along axis 1, counted from the front, which is right without batch
    axes only. Count from the back: [..., slots, :]."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    k_cache, v_cache = k_cache.copy(), v_cache.copy()
    k_cache[:, slots] = k_new
    v_cache[:, slots] = v_new
    return k_cache, v_cache


@wrong("ring_append", "awslabs/sockeye#731")
def keys_in_the_value_cache(k_cache, v_cache, k_new, v_new, position):
    """The new keys are written into the value cache as well. It gets v_new."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    return written(k_cache, v_cache, k_new, k_new, slots)


@wrong("ring_append")
def values_forgotten(k_cache, v_cache, k_new, v_new, position):
    """The value cache is as it was: the new values must be written, too."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    return put(k_cache, k_new, slots), v_cache


@wrong("ring_append")
def values_first(k_cache, v_cache, k_new, v_new, position):
    """The two caches come back in the wrong order: the keys first, then the values."""
    return right.ring_append(k_cache, v_cache, k_new, v_new, position)[::-1]


@wrong("ring_append")
def only_the_keys(k_cache, v_cache, k_new, v_new, position):
    """One array came back, the keys. Return both caches, keys and values."""
    return right.ring_append(k_cache, v_cache, k_new, v_new, position)[0]


@wrong("ring_append")
def added_to_what_was_there(k_cache, v_cache, k_new, v_new, position):
    """The new tokens are added to what the slots held. They replace it."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    return written(
        k_cache, v_cache, k_cache[..., slots, :] + k_new, v_cache[..., slots, :] + v_new, slots
    )


@wrong("ring_append")
def others_cleared(k_cache, v_cache, k_new, v_new, position):
    """All the other slots are zero: the earlier tokens are gone. Every slot that is not written
    keeps what it holds."""
    slots = (position + np.arange(k_new.shape[-2])) % k_cache.shape[-2]
    return written(np.zeros_like(k_cache), np.zeros_like(v_cache), k_new, v_new, slots)


@wrong("ring_append")
def ring_grows(k_cache, v_cache, k_new, v_new, position):
    """The new tokens are appended, and the cache grows. A ring keeps its size: they overwrite
    the oldest ones."""
    return (
        np.concatenate([k_cache, k_new], axis=-2),
        np.concatenate([v_cache, v_new], axis=-2),
    )


# ring_positions ------------------------------------------------------------------------


@wrong("ring_positions", "Lightning-AI/litgpt#2182")
def future_of_this_round(position, capacity):
    """Slots that this round has not reached yet are given positions of this round: the future.
    They still hold the round before, and a causal mask made from your numbers goes wrong."""
    return position // capacity * capacity + np.arange(capacity)


@wrong("ring_positions", "Lightning-AI/litgpt#2182")
def slots_for_positions(position, capacity):
    """These are the slot numbers 0, 1, 2, ... That is right until the ring goes round; from then
    on a slot holds a later position, and a mask made from your numbers opens the future."""
    return np.where(np.arange(capacity) <= position, np.arange(capacity), -1)


@wrong("ring_positions", "ROCm/hip-ep#851", same_as="slots_for_positions")
def slots_for_positions_all_full(position, capacity):
    return np.arange(capacity)


@wrong("ring_positions")
def in_order_of_time(position, capacity):
    """Your positions stand in the order of time, and not of the slots. Position p is in slot p mod
    capacity."""
    return np.maximum(np.arange(position - capacity + 1, position + 1), -1)


@wrong("ring_positions", same_as="in_order_of_time")
def in_order_of_time_from_the_front(position, capacity):
    held = np.arange(max(position - capacity + 1, 0), position + 1)
    return np.concatenate([held, np.full(capacity - len(held), -1)])


@wrong("ring_positions", same_as="in_order_of_time")
def in_order_of_time_below_minus_one(position, capacity):
    return np.arange(position - capacity + 1, position + 1)


@wrong("ring_positions")
def newest_comes_first(position, capacity):
    """Your positions go down from the newest, in slot 0. Position p stands in slot p mod
    capacity."""
    return np.maximum(position - np.arange(capacity), -1)


@wrong("ring_positions")
def last_round_forgotten(position, capacity):
    """Slots that this round has not reached yet are called empty. They still hold the round
    before, until they are overwritten."""
    held = position // capacity * capacity + np.arange(capacity)
    return np.where(held <= position, held, -1)


@wrong("ring_positions")
def position_not_yet_written(position, capacity):
    """You take `position` for the next one to be written. It has been written, and its slot
    holds it."""
    return np.maximum(position - 1 - (position - 1 - np.arange(capacity)) % capacity, -1)


@wrong("ring_positions")
def number_of_tokens(position, capacity):
    """You are one token ahead: `position` counts from 0, so position + 1 has not been written
    yet."""
    return np.maximum(position + 1 - (position + 1 - np.arange(capacity)) % capacity, -1)


@wrong("ring_positions")
def empty_slots_below_minus_one(position, capacity):
    """Empty slots get various negative numbers. Each of them should be -1."""
    return position - (position - np.arange(capacity)) % capacity


@wrong("ring_positions")
def empty_slots_are_zero(position, capacity):
    """Empty slots get 0, which is a position. They should be -1, or the mask will take them for
    the first token."""
    return np.maximum(position - (position - np.arange(capacity)) % capacity, 0)


@wrong("ring_positions")
def ages_of_the_slots(position, capacity):
    """These are ages: how many steps ago each slot was written. The position is `position` minus
    the age."""
    return (position - np.arange(capacity)) % capacity


@wrong("ring_positions")
def one_round_too_old(position, capacity):
    """The slots that this round has overwritten still show the round before. They hold the new
    positions."""
    held = (position // capacity - 1) * capacity + np.arange(capacity)
    return np.maximum(held, -1)


@wrong("ring_positions")
def filled_slots_alone(position, capacity):
    """The empty slots are left out. The result has one entry for each slot; an empty one is
    -1."""
    held = right.ring_positions(position, capacity)
    return held[held >= 0]


@wrong("ring_positions")
def positions_as_floats(position, capacity):
    """The positions are right, but they are floats. Positions are integers."""
    return right.ring_positions(position, capacity).astype(float)


@wrong("ring_positions")
def newest_slot_is_empty(position, capacity):
    """The slot of the newest token is called empty. `position` has been written, and its slot
    holds it."""
    held = right.ring_positions(position, capacity)
    return np.where(held == position, -1, held)


@wrong("ring_positions")
def only_the_newest(position, capacity):
    """Only the newest position is there. The other slots hold earlier ones."""
    return np.where(np.arange(capacity) == position % capacity, position, -1)
