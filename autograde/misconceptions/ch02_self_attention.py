"""Wrong answers to chapter 2."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.reference import ch02_self_attention as reference

# softmax -------------------------------------------------------------------------------


def divided(exponentials, axis=-1):
    """Divided by the sums of the slices, NaN and all."""
    with np.errstate(all="ignore"):
        return exponentials / exponentials.sum(axis=axis, keepdims=True)


def exponential(scores):
    """e to the score, without a word about overflow."""
    with np.errstate(all="ignore"):
        return np.exp(scores)


@wrong("softmax", "pytorch/executorch#18407")
def nothing_subtracted(scores, axis=-1):
    """exp overflows from about 710 on (89 in float32), inf / inf is NaN, and far below zero all
    exponentials are 0. Subtract each slice's largest score first: the weights stay the same."""
    return divided(exponential(scores), axis)


@wrong("softmax")
def logarithm_of_an_overflow(scores, axis=-1):
    """The logarithm of the sum comes too late: the exponentials in the sum have overflowed, or are
    all 0. Subtract each slice's largest score before the first exponential, here too."""
    with np.errstate(all="ignore"):
        return np.exp(scores - np.log(np.exp(scores).sum(axis=axis, keepdims=True)))


@wrong("softmax", "FluxML/NNlib.jl#43")
def never_below_zero(scores, axis=-1):
    """The number you subtract is never below 0: where all scores are very negative, every
    exponential underflows, and 0 / 0 is NaN. Subtract the slice's largest score, also when it
    is negative."""
    return divided(exponential(scores - scores.max(axis, keepdims=True, initial=0)), axis)


@wrong("softmax", same_as="never_below_zero")
def largest_size_subtracted(scores, axis=-1):
    return divided(exponential(scores - abs(scores).max(axis, keepdims=True)), axis)


@wrong("softmax", "CASIA-IVA-Lab/DANet#48")
def largest_minus_score(scores, axis=-1):
    """You compute largest - score instead of score - largest, or take e to minus the score: the
    order is turned round, and the lowest score gets the most weight."""
    return divided(exponential(scores.max(axis=axis, keepdims=True) - scores), axis)


@wrong("softmax", same_as="largest_minus_score")
def lowest_minus_score(scores, axis=-1):
    return divided(exponential(scores.min(axis=axis, keepdims=True) - scores), axis)


@wrong("softmax", same_as="largest_minus_score")
def exponential_of_minus_the_score(scores, axis=-1):
    return divided(exponential(-scores), axis)


@wrong("softmax")
def mean_subtracted(scores, axis=-1):
    """You subtract the mean of each slice: a score far above the mean overflows all the same,
    and with a score of -inf the mean is -inf. It must be the largest score."""
    with np.errstate(all="ignore"):
        return divided(exponential(scores - scores.mean(axis=axis, keepdims=True)), axis)


@wrong("softmax")
def smallest_subtracted(scores, axis=-1):
    """You subtract the smallest score of each slice: that makes the exponentials as large as can
    be, and they overflow. It must be the largest score."""
    with np.errstate(all="ignore"):
        return divided(exponential(scores - scores.min(axis=axis, keepdims=True)), axis)


@wrong("softmax")
def one_largest_for_all(scores, axis=-1):
    """You subtract the largest score of the whole array: a slice whose scores lie far below it
    underflows to 0 / 0. Subtract each slice's own largest score."""
    return divided(exponential(scores - scores.max()), axis)


@wrong("softmax")
def over_everything(scores, axis=-1):
    """All weights together add up to 1, instead of each slice: the sum runs over the whole
    array. Give it axis=axis, keepdims=True."""
    exponentials = exponential(scores - scores.max())
    return exponentials / exponentials.sum()


@wrong("softmax", same_as="over_everything")
def sum_over_everything(scores, axis=-1):
    exponentials = exponential(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum()


@wrong("softmax")
def largest_along_another_axis(scores, axis=-1):
    """The largest score is taken along the last axis, and the sum along `axis`: then the scores
    of one slice lose different numbers, and their ratios change. Take both along `axis`."""
    return divided(exponential(scores - scores.max(axis=-1, keepdims=True)), axis)


@wrong("softmax")
def sum_along_another_axis(scores, axis=-1):
    """The sum runs along the last axis, whatever `axis` says: it must run along the same axis as
    the largest score."""
    return divided(exponential(scores - scores.max(axis=axis, keepdims=True)), -1)


@wrong("softmax")
def axis_ignored(scores, axis=-1):
    """`axis` has no effect: your weights always add up to 1 along the last axis."""
    return reference.softmax(scores, -1)


@wrong("softmax", "labmlai/annotated_deep_learning_paper_implementations#146")
def first_axis_by_default(scores, axis=0):
    """Without an `axis` your weights add up to 1 along the first axis; the signature promises the
    last, axis=-1."""
    return reference.softmax(scores, axis)


@wrong("softmax", "FudanNLP/fastNLP#254")
def second_axis_by_default(scores, axis=1):
    """Without an `axis` you take axis 1, which is the last one of a matrix, but not when batch
    axes stand before. Count from the back: axis=-1."""
    return reference.softmax(scores, axis)


@wrong("softmax", "PetrochukM/PyTorch-NLP#2")
def always_the_first_axis(scores, axis=-1):
    """Your weights add up to 1 along the first axis, whatever `axis` says."""
    return reference.softmax(scores, 0)


@wrong("softmax")
def last_but_one_axis(scores, axis=-1):
    """Your weights add up to 1 along the last axis but one, whatever `axis` says: down the columns,
    not along the rows."""
    return reference.softmax(scores, -2)


@wrong("softmax")
def axes_dropped(scores, axis=-1):
    """Largest score or sum, or both, are taken without keepdims=True: they then line up with
    another axis (or with none), and a slice is divided by another slice's sum."""
    exponentials = np.exp(scores - scores.max(axis=axis))
    return exponentials / exponentials.sum(axis=axis)


@wrong("softmax", same_as="axes_dropped")
def axis_of_the_sum_dropped(scores, axis=-1):
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis)


@wrong("softmax", same_as="axes_dropped")
def axis_of_the_sum_dropped_without_largest(scores, axis=-1):
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores)
        return exponentials / exponentials.sum(axis=axis)


@wrong("softmax")
def axis_put_back_at_the_end(scores, axis=-1):
    """[..., None] puts the lost axis back at the end, wherever it was lost: that is right for the
    last axis only. keepdims=True leaves it where it belongs."""
    exponentials = np.exp(scores - scores.max(axis=axis)[..., None])
    return exponentials / exponentials.sum(axis=axis)[..., None]


@wrong("softmax")
def axis_not_moved_back(scores, axis=-1):
    """The weights are right, but the axis that you moved to the end is still there: move it back,
    so that the result has the shape of the scores."""
    return reference.softmax(np.moveaxis(scores, axis, -1))


@wrong("softmax")
def never_divided(scores, axis=-1):
    """The exponentials are not divided by their sum, so the weights do not add up to 1. (To divide
    by the largest of them is not enough.)"""
    return np.exp(scores - scores.max(axis=axis, keepdims=True))


@wrong("softmax", same_as="never_divided")
def never_divided_nor_shifted(scores, axis=-1):
    return exponential(scores)


@wrong("softmax")
def no_exponential(scores, axis=-1):
    """The scores themselves are divided by their sum. They can be negative, and then so are the
    weights; take the exponentials first."""
    return divided(scores, axis)


@wrong("softmax")
def squares_for_exponentials(scores, axis=-1):
    """You divide squares by their sum: then -2 weighs as much as 2. The softmax takes
    exponentials, which grow with the score."""
    return divided(scores**2, axis)


@wrong("softmax")
def base_two(scores, axis=-1):
    """The base is 2; the softmax takes e, so np.exp."""
    return divided(np.exp2(scores - scores.max(axis=axis, keepdims=True)), axis)


@wrong("softmax")
def logarithm_returned(scores, axis=-1):
    """These are the logarithms of the weights; take their exponentials."""
    shifted = scores - scores.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@wrong("softmax")
def length_one(scores, axis=-1):
    """You divide by the length of the vector of exponentials, the root of the sum of their
    squares; divide by their sum, so that the weights add up to 1."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / np.linalg.norm(exponentials, axis=axis, keepdims=True)


@wrong("softmax")
def clipped(scores, axis=-1):
    """You cut large scores off before the exponential: two scores above the limit then get the
    same weight. Subtracting the largest score needs no limit."""
    return divided(exponential(np.clip(scores, -80, 80)), axis)


@wrong("softmax", same_as="clipped")
def clipped_wider(scores, axis=-1):
    return divided(exponential(np.clip(scores, -500, 500)), axis)


@wrong("softmax")
def nan_made_zero(scores, axis=-1):
    """exp overflows, inf / inf is NaN, and you put zeros there: but just these scores were the
    largest. Subtract each slice's largest score first, and no NaN arises."""
    return np.nan_to_num(divided(exponential(scores), axis))


@wrong("softmax")
def minus_infinity_made_zero(scores, axis=-1):
    """A score of -inf is replaced by 0, or left out and its place filled with a score: it then
    gets a weight. e to minus infinity is 0 all by itself."""
    return reference.softmax(np.where(np.isneginf(scores), 0, scores), axis)


@wrong("softmax")
def minus_infinity_made_finite(scores, axis=-1):
    """A score of -inf is replaced by a finite number, such as -1e9: in a slice whose other scores
    lie lower still, it gets the weight. e to minus infinity is 0 all by itself."""
    return reference.softmax(np.where(np.isneginf(scores), -1e9, scores), axis)


@wrong("softmax")
def writes_into_the_scores(scores, axis=-1):
    """You subtract in place (-=, or out=): the caller's scores have changed afterwards. Write
    scores = scores - ..., which makes a new array."""
    scores -= scores.max(axis=axis, keepdims=True)
    return divided(np.exp(scores), axis)


@wrong("softmax")
def hardest(scores, axis=-1):
    """The largest score gets all the weight: that is the argmax. The softmax gives every finite
    score a share."""
    largest = scores == scores.max(axis=axis, keepdims=True)
    return largest / largest.sum(axis=axis, keepdims=True)


@wrong("softmax", same_as="hardest")
def first_of_the_largest(scores, axis=-1):
    weights = np.zeros_like(scores)
    np.put_along_axis(weights, scores.argmax(axis=axis, keepdims=True), 1, axis)
    return weights


# scaled_scores -------------------------------------------------------------------------


def swap(k):
    return np.swapaxes(k, -2, -1)


@wrong("scaled_scores")
def no_scale(q, k):
    """The scores are not divided by the square root of d_head."""
    return q @ swap(k)


@wrong("scaled_scores")
def divided_by_d_head(q, k):
    """The scores are divided by d_head, or twice by its square root; once by the square root
    is right."""
    return q @ swap(k) / q.shape[-1]


@wrong("scaled_scores", "esceptico/perceiver-io#9")
def multiplied_by_the_root(q, k):
    """You multiply by the square root of d_head where you should divide by it."""
    return q @ swap(k) * q.shape[-1] ** 0.5


@wrong("scaled_scores", "omihub777/ViT-CIFAR#11")
def root_of_the_wrong_length(q, k):
    """You take the root of the length of another axis, the number of keys or queries or of
    sequences in the batch: the scale is the square root of d_head, the last axis of q."""
    return q @ swap(k) / k.shape[-2] ** 0.5


@wrong("scaled_scores", same_as="root_of_the_wrong_length")
def root_of_the_queries(q, k):
    return q @ swap(k) / q.shape[-2] ** 0.5


@wrong("scaled_scores", same_as="root_of_the_wrong_length")
def root_of_the_second_axis(q, k):
    return q @ swap(k) / q.shape[1] ** 0.5


@wrong("scaled_scores", same_as="root_of_the_wrong_length")
def root_of_the_first_axis(q, k):
    return q @ swap(k) / q.shape[0] ** 0.5


@wrong("scaled_scores")
def whole_root(q, k):
    """The square root of d_head is rounded to a whole number; keep its decimals."""
    return q @ swap(k) / int(q.shape[-1] ** 0.5)


@wrong("scaled_scores")
def a_fixed_scale(q, k):
    """The scale is a fixed number, 2 (or half of d_head), as in an example with d_head = 4: the
    square root of d_head changes with q."""
    return q @ swap(k) / 2


@wrong("scaled_scores", same_as="a_fixed_scale")
def half_of_d_head(q, k):
    return q @ swap(k) / (q.shape[-1] / 2)


@wrong("scaled_scores", "HsiaoYetGun/ESIM#5")
def all_axes_reversed(q, k):
    """k.T (or np.transpose(k)) reverses all axes, the batches too. Only the last two change
    places."""
    return q @ k.T / q.shape[-1] ** 0.5


@wrong("scaled_scores", same_as="all_axes_reversed")
def dot_of_everything(q, k):
    return np.dot(q, k.T) / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def dot_for_matmul(q, k):
    """np.dot, like np.inner and np.tensordot, pairs every batch with every other one and returns
    both batch axes; the operator @ (np.matmul) keeps each batch to itself."""
    return np.dot(q, swap(k)) / q.shape[-1] ** 0.5


@wrong("scaled_scores", "FudanNLP/fastNLP#254")
def axes_from_the_front(q, k):
    """Your axes are fixed for one number of batch axes, and there may be any number of them, or
    none. Count axes from the back (-1 is the last one); np.einsum takes ... for the batches."""
    return q @ np.swapaxes(k, 1, 2) / q.shape[-1] ** 0.5


@wrong("scaled_scores", same_as="axes_from_the_front")
def transposed_in_three_axes(q, k):
    return q @ k.transpose(0, 2, 1) / q.shape[-1] ** 0.5


@wrong("scaled_scores", same_as="axes_from_the_front")
def first_two_axes(q, k):
    return q @ np.swapaxes(k, 0, 1) / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def reshaped_for_transposed(q, k):
    """k is reshaped to (d_head, key), which keeps the numbers in reading order and so mixes the
    keys. Exchange the two axes instead."""
    return q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]) / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def not_transposed(q, k):
    """q @ k multiplies rows of q by columns of k; a score is a row of q times a row of k. Exchange
    the last two axes of k first."""
    return q @ k / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def keys_in_rows(q, k):
    """These are the scores with keys in the rows, k q^T; queries belong in the rows, q k^T."""
    return k @ swap(q) / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def features_by_features(q, k):
    """q^T k multiplies features with features and sums over the positions; the sum of a score
    runs over the features, d_head: q k^T."""
    return swap(q) @ k / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def already_weights(q, k):
    """These are the weights, after the softmax; the scores are what stands before it."""
    return reference.softmax(reference.scaled_scores(q, k))


@wrong("scaled_scores")
def cosine(q, k):
    """You divide by the lengths of the vectors, which gives the cosine of their angle; the dot
    product is divided by the square root of d_head and nothing else."""
    lengths = np.linalg.norm(q, axis=-1)[..., None] * np.linalg.norm(k, axis=-1)[..., None, :]
    return q @ swap(k) / lengths


@wrong("scaled_scores")
def distance(q, k):
    """These are distances between queries and keys; a score is their dot product."""
    return np.linalg.norm(q[..., :, None, :] - k[..., None, :, :], axis=-1)


@wrong("scaled_scores")
def only_pairs(q, k):
    """Query i meets key i alone; every query meets every key."""
    return (q * k).sum(axis=-1) / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def products_not_summed(q, k):
    """The products of the entries are not added up: a dot product is one number."""
    return q[..., :, None, :] * k[..., None, :, :] / q.shape[-1] ** 0.5


@wrong("scaled_scores")
def largest_subtracted(q, k):
    """The largest score of each row is subtracted. That belongs in the softmax, where it changes no
    weight; a score is the scaled dot product and nothing else."""
    scores = reference.scaled_scores(q, k)
    return scores - scores.max(axis=-1, keepdims=True)


@wrong("scaled_scores")
def cut_off(q, k):
    """Large scores are cut off (clipped), and two keys above the limit then fit equally well. The
    softmax needs no limit; return the scores as they are."""
    return np.clip(reference.scaled_scores(q, k), -50, 50)


@wrong("scaled_scores", same_as="cut_off")
def cut_off_later(q, k):
    return np.clip(reference.scaled_scores(q, k), -500, 500)


@wrong("scaled_scores")
def standardised(q, k):
    """You divide by the standard deviation of the scores at hand: then one key changes the scores
    of all others. The scale depends on d_head alone."""
    scores = q @ swap(k)
    with np.errstate(all="ignore"):
        return scores / scores.std()


@wrong("scaled_scores")
def scales_the_queries_in_place(q, k):
    """q is scaled in place (/=): the caller's queries have changed afterwards, and a second call
    scales them again. Write q = q / ..., which makes a new array."""
    q /= q.shape[-1] ** 0.5
    return q @ swap(k)


# attention -----------------------------------------------------------------------------


def attend(q, k, v, scores=reference.scaled_scores, softmax=reference.softmax):
    """Attention with other scores or another softmax."""
    weights = softmax(scores(q, k))
    return weights @ v, weights


@wrong("attention")
def attention_without_scale(q, k, v):
    """The scores are not divided by the square root of d_head: the weights are too sharp."""
    return attend(q, k, v, no_scale)


@wrong("attention")
def attention_scaled_twice(q, k, v):
    """The scores are divided by d_head, or twice by its square root: scaled_scores has done it
    already. The weights come out too flat."""
    return attend(q, k, v, divided_by_d_head)


@wrong("attention", "esceptico/perceiver-io#9")
def attention_scaled_the_wrong_way(q, k, v):
    """You multiply by the square root of d_head where you should divide by it."""
    return attend(q, k, v, multiplied_by_the_root)


@wrong("attention", "omihub777/ViT-CIFAR#11")
def attention_scaled_by_the_wrong_length(q, k, v):
    """You take the root of the length of another axis: the scale is the square root of d_head,
    the last axis of q and k."""
    return attend(q, k, v, root_of_the_wrong_length)


@wrong("attention", same_as="attention_scaled_by_the_wrong_length")
def attention_scaled_by_the_queries(q, k, v):
    return attend(q, k, v, root_of_the_queries)


@wrong("attention")
def attention_scaled_by_d_value(q, k, v):
    """You take the root of d_value, the last axis of v: the scale is the square root of d_head,
    the last axis of q and k."""
    return attend(q, k, v, lambda q, k: q @ swap(k) / v.shape[-1] ** 0.5)


@wrong("attention", "HsiaoYetGun/ESIM#5")
def attention_of_all_axes_reversed(q, k, v):
    """k.T reverses all axes, the batches too. Only the last two change places; your scaled_scores
    does it."""
    return attend(q, k, v, all_axes_reversed)


@wrong("attention", same_as="attention_of_all_axes_reversed")
def attention_by_dot(q, k, v):
    return attend(q, k, v, dot_of_everything)


@wrong("attention")
def keys_reshaped(q, k, v):
    """k is reshaped to (d_head, key), which keeps the numbers in reading order and so mixes the
    keys. Exchange the two axes instead."""
    return attend(q, k, v, reshaped_for_transposed)


@wrong("attention")
def keys_ask_queries(q, k, v):
    """Your scores are k q^T: keys stand in the rows. It is q k^T, (query, key)."""
    return attend(q, k, v, keys_in_rows)


@wrong("attention")
def weights_divided_by_the_root(q, k, v):
    """The weights are divided by the square root of d_head, after the softmax: the rows no longer
    add up to 1. The scores are scaled, before the softmax."""
    weights = reference.softmax(no_scale(q, k)) / q.shape[-1] ** 0.5
    return weights @ v, weights


@wrong("attention")
def weights_come_first(q, k, v):
    """You return (weights, out); the order is (out, weights)."""
    return attend(q, k, v)[::-1]


@wrong("attention")
def weights_are_missing(q, k, v):
    """You return the output alone; the result is the pair (out, weights)."""
    return attend(q, k, v)[0]


@wrong("attention")
def scores_for_weights(q, k, v):
    """The output is right, but you return the scores beside it; the weights, after the softmax,
    are asked for."""
    return attend(q, k, v)[0], reference.scaled_scores(q, k)


@wrong("attention")
def exponentials_for_weights(q, k, v):
    """The output is right, but the weights that you return are not divided by their sum: each row
    must add up to 1."""
    with np.errstate(all="ignore"):
        exponentials = np.exp(reference.scaled_scores(q, k))
        return exponentials @ v / exponentials.sum(axis=-1, keepdims=True), exponentials


@wrong("attention", same_as="exponentials_for_weights")
def shifted_exponentials_for_weights(q, k, v):
    return attend(q, k, v)[0], never_divided(reference.scaled_scores(q, k))


@wrong("attention")
def output_not_divided(q, k, v):
    """The weights are right, but the output is the sum of the values times the exponentials: divide
    it, too, or multiply the values by the weights."""
    _, weights = attend(q, k, v)
    return never_divided(reference.scaled_scores(q, k)) @ v, weights


@wrong("attention")
def mean_of_the_parts(q, k, v):
    """The weighted values are averaged: the mean divides by the number of keys once more. The
    weights sum to 1 already; add up."""
    out, weights = attend(q, k, v)
    return out / k.shape[-2], weights


@wrong("attention")
def never_itself(q, k, v):
    """Query i gives no weight to key i: the diagonal is closed. Every query sees every key, its own
    included."""
    scores = reference.scaled_scores(q, k)
    with np.errstate(all="ignore"):
        weights = reference.softmax(np.where(np.eye(*scores.shape[-2:]) > 0, -np.inf, scores))
        return weights @ v, weights


@wrong("attention", "awslabs/sockeye#731")
def keys_taken_for_values(q, k, v):
    """The weights multiply the keys; they belong to the values: weights @ v."""
    return attend(q, k, k)


@wrong("attention")
def queries_taken_for_values(q, k, v):
    """The weights multiply the queries; they belong to the values: weights @ v."""
    return attend(q, k, q)


@wrong("attention", "labmlai/annotated_deep_learning_paper_implementations#146")
def softmax_over_the_queries(q, k, v):
    """You normalise over the queries (the columns add up to 1); each query shares out its
    attention among the keys, the last axis."""
    return attend(q, k, v, softmax=lambda scores: reference.softmax(scores, -2))


@wrong("attention", "PetrochukM/PyTorch-NLP#2")
def softmax_over_the_first_axis(q, k, v):
    """You normalise over the first axis, which with a batch is the sequences. Each query shares
    out its attention among the keys, the last axis, axis=-1."""
    return attend(q, k, v, softmax=lambda scores: reference.softmax(scores, 0))


@wrong("attention", "FudanNLP/fastNLP#254")
def softmax_over_the_second_axis(q, k, v):
    """The axis is counted from the front: axis=1 is the keys of a (query, key) array, but not when
    batch axes stand before. Count from the back: axis=-1."""
    return attend(q, k, v, softmax=lambda scores: reference.softmax(scores, 1))


@wrong("attention")
def softmax_over_all_scores(q, k, v):
    """All weights together add up to 1; each query's weights should, so the sum runs over the
    keys alone."""
    return attend(q, k, v, softmax=over_everything)


@wrong("attention")
def scores_used_as_weights(q, k, v):
    """The scores are used as weights: the softmax is missing."""
    return attend(q, k, v, softmax=lambda scores: scores)


@wrong("attention")
def softmax_twice(q, k, v):
    """The softmax is taken twice: the second one flattens the weights that the first one made."""
    return attend(q, k, v, softmax=lambda scores: reference.softmax(reference.softmax(scores)))


@wrong("attention", "pytorch/executorch#18407")
def exponentials_overflow(q, k, v):
    """exp overflows for large scores, and inf / inf is NaN: subtract each row's largest score
    first (your softmax does it)."""
    return attend(q, k, v, softmax=nothing_subtracted)


@wrong("attention", same_as="exponentials_overflow")
def exponentials_overflow_in_double(q, k, v):
    # np.sqrt(d_head) is a float64, and a division by it makes float32 scores float64 (NumPy 2).
    return attend(q.astype(np.float64), k, v, softmax=nothing_subtracted)


@wrong("attention")
def scores_cut_off(q, k, v):
    """Large scores are cut off (clipped) before the softmax: two keys above the limit then get the
    same weight. Subtracting the largest score needs no limit (your softmax does it)."""
    return attend(q, k, v, softmax=lambda scores: reference.softmax(np.clip(scores, -50, 50)))


@wrong("attention", same_as="scores_cut_off")
def scores_cut_off_later(q, k, v):
    return attend(q, k, v, softmax=lambda scores: reference.softmax(np.clip(scores, -500, 500)))


@wrong("attention")
def largest_of_all_scores(q, k, v):
    """You subtract the largest score of the whole array: a row whose scores lie far below it
    underflows to 0 / 0. Subtract each row's own largest score."""
    return attend(q, k, v, softmax=one_largest_for_all)


@wrong("attention")
def all_keys_alike(q, k, v):
    """Every key gets the same weight, and the output is the mean of the values: queries and keys
    have no influence."""
    return attend(q, k, v, lambda q, k: 0 * no_scale(q, k))


@wrong("attention")
def best_key_only(q, k, v):
    """Each query takes the value of its best key alone. That is a hard look-up; here every key has
    its share."""
    return attend(q, k, v, softmax=hardest)


@wrong("attention", same_as="best_key_only")
def first_best_key_only(q, k, v):
    return attend(q, k, v, softmax=first_of_the_largest)


@wrong("attention", same_as="best_key_only")
def best_keys_in_full(q, k, v):
    return attend(q, k, v, softmax=lambda scores: 1.0 * (scores == scores.max(-1, keepdims=True)))


@wrong("attention")
def causal_already(q, k, v):
    """You close the future: a query of yours sees the keys up to its own position only. In this
    chapter every query sees every key; the mask comes in chapter 3."""
    scores = reference.scaled_scores(q, k)
    scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    weights = reference.softmax(scores)
    return weights @ v, weights


@wrong("attention")
def queries_added(q, k, v):
    """Something is added to the weighted sum, the queries or the values themselves (a residual
    connection?). The output is the weighted sum and nothing else."""
    out, weights = attend(q, k, v)
    return out + q, weights


@wrong("attention", same_as="queries_added")
def values_added(q, k, v):
    out, weights = attend(q, k, v)
    return out + v, weights


@wrong("attention")
def weights_transposed(q, k, v):
    """The weights are turned round before they meet the values: it is weights @ v, as they are,
    (query, key) times (key, d_value)."""
    _, weights = attend(q, k, v)
    return swap(weights) @ v, weights


@wrong("attention")
def values_by_position(q, k, v):
    """You multiply weights and values entry by entry; the output is their matrix product."""
    _, weights = attend(q, k, v)
    return weights * v, weights


@wrong("attention")
def queries_scaled_in_place(q, k, v):
    """q is scaled in place (/=): the caller's queries have changed afterwards, and a second call
    scales them again. Write q = q / ..., which makes a new array."""
    q /= q.shape[-1] ** 0.5
    return attend(q, k, v, no_scale)


# entropy -------------------------------------------------------------------------------


def surprise(weights):
    """-weight times ln weight, with 0 for 0."""
    return -weights * np.log(np.where(weights > 0, weights, 1))


@wrong("entropy")
def zero_times_infinity(weights):
    """ln 0 is minus infinity, and 0 times minus infinity is NaN. A weight of 0 must add 0: keep
    the logarithm away from it."""
    with np.errstate(all="ignore"):
        return -(weights * np.log(weights)).sum(axis=-1)


@wrong("entropy")
def nan_of_a_sum_made_zero(weights):
    """One weight of 0 makes the sum of its row NaN (0 times ln 0), and you put 0 for the whole sum:
    the query's other weights are lost. That part alone is 0, before the sum."""
    return np.nan_to_num(zero_times_infinity(weights))


@wrong("entropy")
def too_tiny_for_float32(weights):
    """The number that keeps ln away from 0 is too small for float32, where it is rounded to 0, and
    0 times ln 0 is NaN. Use a larger one, such as 1e-12, or replace the zeros."""
    with np.errstate(all="ignore"):
        return -(weights * np.log(weights + weights.dtype.type(1e-300))).sum(axis=-1)


@wrong("entropy")
def in_bits(weights):
    """The logarithm has base 2, so this is the entropy in bits; in nats it is the natural
    logarithm, np.log."""
    return surprise(weights).sum(axis=-1) / np.log(2)


@wrong("entropy", same_as="in_bits")
def in_bits_with_nan(weights):
    with np.errstate(all="ignore"):
        return -(weights * np.log2(weights)).sum(axis=-1)


@wrong("entropy")
def base_ten(weights):
    """The logarithm has base 10; in nats it is the natural logarithm, np.log."""
    return surprise(weights).sum(axis=-1) / np.log(10)


@wrong("entropy", same_as="base_ten")
def base_ten_with_nan(weights):
    with np.errstate(all="ignore"):
        return -(weights * np.log10(weights)).sum(axis=-1)


@wrong("entropy")
def sign_forgotten(weights):
    """The sign is missing: logarithms of weights are negative, and the entropy is minus their
    weighted sum."""
    return -surprise(weights).sum(axis=-1)


@wrong("entropy", same_as="sign_forgotten")
def sign_forgotten_with_nan(weights):
    with np.errstate(all="ignore"):
        return (weights * np.log(weights)).sum(axis=-1)


@wrong("entropy")
def one_number_for_all(weights):
    """You add up over the queries as well: one number comes back, where each query has its own.
    The sum runs over the keys, axis=-1."""
    return surprise(weights).sum()


@wrong("entropy", same_as="one_number_for_all")
def one_number_with_nan(weights):
    with np.errstate(all="ignore"):
        return -(weights * np.log(weights)).sum()


@wrong("entropy")
def mean_over_the_keys(weights):
    """You take the mean over the keys, which divides by their number; the entropy is the sum."""
    return surprise(weights).mean(axis=-1)


@wrong("entropy", "labmlai/annotated_deep_learning_paper_implementations#146")
def sum_over_the_queries(weights):
    """The sum runs over the queries; a query's entropy is a sum over its keys, the last axis."""
    return surprise(weights).sum(axis=-2)


@wrong("entropy")
def sum_over_the_first_axis(weights):
    """The sum runs over the first axis, which with a batch is the sequences. A query's entropy is
    a sum over its keys, the last axis, axis=-1."""
    return surprise(weights).sum(axis=0)


@wrong("entropy", "FudanNLP/fastNLP#254")
def sum_over_the_second_axis(weights):
    """The axis is counted from the front: axis=1 is the keys of a (query, key) array, but not when
    batch axes stand before. Count from the back: axis=-1."""
    return surprise(weights).sum(axis=1)


@wrong("entropy")
def scipy_without_an_axis(weights):
    """This is what scipy.stats.entropy gives without an axis: it works along the first axis, and
    divides by its sum. A query's weights lie along the last axis."""
    with np.errstate(all="ignore"):
        return surprise(weights / weights.sum(axis=0)).sum(axis=0)


@wrong("entropy")
def key_axis_kept(weights):
    """The numbers are right, but an axis of length 1 is left where the keys were; one number for
    each query, without keepdims."""
    return surprise(weights).sum(axis=-1, keepdims=True)


@wrong("entropy")
def never_summed(weights):
    """These are the parts, -weight times ln weight, one for each key; the entropy is their sum
    over the keys."""
    return surprise(weights)


@wrong("entropy")
def share_of_the_largest(weights):
    """You divide by ln n, which makes the largest possible entropy 1; here it is ln n, in nats."""
    if weights.shape[-1] == 1:
        return surprise(weights).sum(axis=-1)
    return surprise(weights).sum(axis=-1) / np.log(weights.shape[-1])


@wrong("entropy")
def effective_number_of_keys(weights):
    """This is e to the entropy, the number of keys that would share the weight equally (the
    perplexity); leave out the exponential."""
    return np.exp(surprise(weights).sum(axis=-1))


@wrong("entropy")
def weights_taken_for_scores(weights):
    """You take the softmax of what is given; these are weights already."""
    return surprise(reference.softmax(weights)).sum(axis=-1)


@wrong("entropy")
def zeros_made_equal(weights):
    """A row of zeros gets the entropy of n equal weights, ln n: such a query sees no key, and its
    entropy is 0."""
    found = surprise(weights).sum(axis=-1)
    return np.where(weights.any(axis=-1), found, np.log(weights.shape[-1]))


@wrong("entropy")
def divided_by_a_sum_of_zero(weights):
    """A row of zeros comes out as NaN (0 / 0, if you divide by its sum: the weights need no
    division). A query that sees no key has entropy 0."""
    with np.errstate(all="ignore"):
        return surprise(weights / weights.sum(axis=-1, keepdims=True)).sum(axis=-1)


@wrong("entropy")
def one_added_to_the_weights(weights):
    """ln(1 + w), or np.log1p, is another number than ln w: it does avoid ln 0, but the entropy
    needs ln w for the weights above 0."""
    return -(weights * np.log1p(weights)).sum(axis=-1)


@wrong("entropy")
def logarithms_without_weights(weights):
    """The logarithms are added up as they are; each must be multiplied by its weight."""
    with np.errstate(all="ignore"):
        return -np.log(weights).sum(axis=-1)


@wrong("entropy", same_as="logarithms_without_weights")
def logarithms_without_weights_or_zeros(weights):
    return -np.log(np.where(weights > 0, weights, 1)).sum(axis=-1)


@wrong("entropy")
def sum_of_squares(weights):
    """This is 1 minus the sum of the squared weights (the Gini impurity): another measure of
    spread. The entropy is made with logarithms."""
    return 1 - (weights**2).sum(axis=-1)


@wrong("entropy")
def distance_from_even(weights):
    """This is ln n minus the entropy, which is 0 for even weights (the divergence from them); the
    entropy is largest there."""
    return np.log(weights.shape[-1]) - surprise(weights).sum(axis=-1)


@wrong("entropy")
def logarithm_of_the_largest(weights):
    """This is minus the logarithm of the largest weight alone (the min-entropy); the entropy is the
    mean over all keys, each with its weight."""
    with np.errstate(all="ignore"):
        return -np.log(weights.max(axis=-1))


@wrong("entropy")
def gap_too_large(weights):
    """The number that you add to keep ln away from 0 is so large that it changes the result.
    Replace the zeros alone."""
    return -(weights * np.log(weights + 1e-3)).sum(axis=-1)


@wrong("entropy", same_as="gap_too_large")
def gap_a_little_too_large(weights):
    return -(weights * np.log(weights + 1e-4)).sum(axis=-1)


@wrong("entropy", same_as="gap_too_large")
def gap_too_large_for_long_rows(weights):
    return -(weights * np.log(weights + 1e-5)).sum(axis=-1)


@wrong("entropy", same_as="gap_too_large")
def gap_too_large_for_very_long_rows(weights):
    return -(weights * np.log(weights + 1e-6)).sum(axis=-1)


@wrong("entropy")
def small_weights_left_out(weights):
    """Small weights are left out, and in a long row many of them add up. Only a weight of exactly 0
    adds nothing."""
    return surprise(np.where(weights > 1e-2, weights, 0)).sum(axis=-1)


@wrong("entropy", same_as="small_weights_left_out")
def smaller_weights_left_out(weights):
    return surprise(np.where(weights > 1e-3, weights, 0)).sum(axis=-1)


@wrong("entropy")
def zeros_overwritten(weights):
    """You write another number over the caller's zeros: the weights have changed afterwards. Work
    on a copy (np.where makes one)."""
    weights[weights == 0] = 1e-12
    return surprise(weights).sum(axis=-1)
