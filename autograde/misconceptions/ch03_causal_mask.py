"""Wrong answers to chapter 3."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax

# causal_mask ---------------------------------------------------------------------------


@wrong("causal_mask", "pbloem/former#10")
def starts_on_the_diagonal(n_query, n_key=None):
    """Your mask closes the diagonal as well: a query may see itself (j <= i, not j < i),
    and without it the first query has no key at all."""
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, n_key - n_query - 1, dtype=bool)


@wrong("causal_mask")
def one_key_ahead(n_query, n_key=None):
    """Every query of yours sees one key too many: key i + 1 is the answer that position i
    is trained to predict, so the loss would fall for the wrong reason."""
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, n_key - n_query + 1, dtype=bool)


@wrong("causal_mask", "rasbt/LLMs-from-scratch#1061")
def opposite_polarity(n_query, n_key=None):
    """True and False have changed places: here True means "may attend", as in PyTorch's
    scaled_dot_product_attention. You return which keys are blocked, as
    nn.MultiheadAttention wants it."""
    return ~causal_mask(n_query, n_key)


@wrong("causal_mask")
def looks_at_the_future(n_query, n_key=None):
    """Your triangle is the upper one, diagonal included: each query sees itself and what
    comes after it. Rows are queries and columns are keys; the past lies to the left."""
    n_key = n_query if n_key is None else n_key
    return np.triu(np.ones((n_query, n_key), dtype=bool), n_key - n_query)


@wrong("causal_mask", same_as="looks_at_the_future")
def upper_triangle_unshifted(n_query, n_key=None):
    return np.triu(np.ones((n_query, n_query if n_key is None else n_key), dtype=bool))


@wrong("causal_mask")
def slice_end_below_zero(n_query, n_key=None):
    """A slice [:end] with a negative end counts from the back: the queries before all keys get
    some. Cut it off at 0."""
    n_key = n_query if n_key is None else n_key
    mask = np.zeros((n_query, n_key), dtype=bool)
    for i, row in enumerate(mask):
        row[: i + 1 + n_key - n_query] = True
    return mask


@wrong("causal_mask", "stanford-cs336/assignment1-basics#51")
def no_mask_at_all(n_query, n_key=None):
    """Every query sees every key: nothing is closed. Only the last query may see all."""
    return np.ones((n_query, n_query if n_key is None else n_key), dtype=bool)


@wrong("causal_mask", "pytorch/pytorch#144858")
def aligned_top_left(n_query, n_key=None):
    """Your mask is aligned at the top left (j <= i), so with more keys than queries the
    newest query sees only the oldest keys. Align the last query with the last key."""
    return np.tri(n_query, n_query if n_key is None else n_key, dtype=bool)


@wrong("causal_mask")
def shifted_the_wrong_way(n_query, n_key=None):
    """The shift between queries and keys has the wrong sign: extra keys are an earlier
    past, so they open more of each row (j <= i + n_key - n_query)."""
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, n_query - n_key, dtype=bool)


@wrong("causal_mask", "mlx-node/mlx-node#24")
def open_when_not_square(n_query, n_key=None):
    """Your mask is causal only when there are as many queries as keys, and fully open
    otherwise: a chunk of several new tokens would then see its own future."""
    n_key = n_query if n_key is None else n_key
    return causal_mask(n_query) if n_key == n_query else np.ones((n_query, n_key), dtype=bool)


@wrong("causal_mask")
def shift_never_negative(n_query, n_key=None):
    """With fewer keys than queries the shift n_key - n_query is negative, and you cut it
    off at 0: the first queries then see keys that come after them."""
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, max(n_key - n_query, 0), dtype=bool)


@wrong("causal_mask", same_as="shift_never_negative")
def shift_without_its_sign(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return np.tri(n_query, n_key, abs(n_key - n_query), dtype=bool)


@wrong("causal_mask")
def always_a_key(n_query, n_key=None):
    """You leave every query at least one key. With fewer keys than queries the first queries
    come before all keys, and see nothing."""
    return causal_mask(n_query, n_key) | (np.arange(n_query if n_key is None else n_key) == 0)


@wrong("causal_mask", "rasbt/LLMs-from-scratch#1061", same_as="opposite_polarity")
def blocked_triangle(n_query, n_key=None):
    return np.triu(np.ones((n_query, n_query if n_key is None else n_key)), 1).astype(bool)


@wrong("causal_mask")
def zero_keys_taken_for_none(n_query, n_key=None):
    """0 keys is not "no number given": `if not n_key` and `n_key or n_query` are true of 0
    as well. Ask `n_key is None`."""
    return causal_mask(n_query, n_key or None)


@wrong("causal_mask")
def always_square(n_query, n_key=None):
    """n_key has no effect on your mask: it is always square. With a KV cache there are more
    keys than queries."""
    return causal_mask(n_query)


@wrong("causal_mask")
def keys_in_rows(n_query, n_key=None):
    """Your mask has keys in rows and queries in columns; it should be (query, key)."""
    return causal_mask(n_query, n_key).T


@wrong("causal_mask", "pytorch/pytorch#21518")
def ones_and_zeros(n_query, n_key=None):
    """The pattern is right, but the entries are numbers. A mask is bool: `~` of an integer
    1 is -2, and added to the scores a 1 closes nothing."""
    return causal_mask(n_query, n_key).astype(float)


@wrong("causal_mask")
def already_additive(n_query, n_key=None):
    """This is M, the matrix that is added to the scores (0 and -inf). causal_mask returns
    the boolean mask; additive_mask makes M from it."""
    return np.where(causal_mask(n_query, n_key), 0.0, -np.inf)


@wrong("causal_mask")
def only_itself(n_query, n_key=None):
    """Each query sees itself alone: the past is closed too. Causal means no future, not no
    past."""
    n_key = n_query if n_key is None else n_key
    return np.eye(n_query, n_key, n_key - n_query, dtype=bool)


# additive_mask -------------------------------------------------------------------------


@wrong("additive_mask")
def zero_where_closed(allowed, dtype=np.float64):
    """The two values have changed places: 0 leaves a score as it is, so it belongs where
    attention is allowed; -inf closes."""
    return np.where(allowed, -np.inf, 0).astype(dtype)


@wrong("additive_mask")
def zero_times_infinity(allowed, dtype=np.float64):
    """0 times infinity is NaN: multiplying a 0/1 mask by -inf spoils the entries that are
    allowed. Choose between the two values with np.where."""
    return ((1 - np.asarray(allowed).astype(float)) * -np.inf).astype(dtype)


@wrong("additive_mask", same_as="zero_times_infinity")
def zero_times_infinity_as_it_comes(allowed, dtype=np.float64):
    return (1 - np.asarray(allowed)) * -np.inf


@wrong("additive_mask")
def large_but_finite(allowed, dtype=np.float64):
    """-1e9 is not minus infinity: a large enough score beats it, and in float16 it does not
    exist (it becomes -inf by overflow). M is exactly -inf here."""
    return np.where(allowed, 0, -1e9).astype(dtype)


@wrong("additive_mask", "huggingface/transformers#17306")
def lowest_finite_value(allowed, dtype=np.float64):
    """The lowest finite value of the dtype is not minus infinity: a sum with it can round
    back to a score that counts, and a row closed everywhere becomes uniform."""
    return np.where(allowed, 0, np.finfo(dtype).min).astype(dtype)


@wrong("additive_mask", "lucidrains/memory-compressed-attention#2")
def plus_infinity(allowed, dtype=np.float64):
    """The sign is wrong: +inf gives a closed key all the weight (and inf / inf is NaN).
    It is -inf whose exponential is 0."""
    return np.where(allowed, 0, np.inf).astype(dtype)


@wrong("additive_mask", "pytorch/pytorch#21518")
def one_and_zero(allowed, dtype=np.float64):
    """A 0/1 matrix closes nothing when it is added to the scores: M is 0 where allowed and
    -inf elsewhere."""
    return np.asarray(allowed).astype(dtype)


@wrong("additive_mask")
def zero_and_minus_one(allowed, dtype=np.float64):
    """Subtracting 1 makes a score a little smaller; its weight stays. Only -inf has the
    exponential 0."""
    return (np.asarray(allowed).astype(float) - 1).astype(dtype)


@wrong("additive_mask")
def one_where_allowed(allowed, dtype=np.float64):
    """Where attention is allowed M must be 0: adding 1 to a score changes it."""
    return np.where(allowed, 1, -np.inf).astype(dtype)


@wrong("additive_mask")
def dtype_forgotten(allowed, dtype=np.float64):
    """The values are right, but the result is float64 whatever `dtype` says (a list becomes
    float64, too): added to float16 scores it would make them float64."""
    return np.where(allowed, 0.0, -np.inf)


@wrong("additive_mask", same_as="large_but_finite")
def not_even_large(allowed, dtype=np.float64):
    return ((1 - np.asarray(allowed).astype(float)) * -10000.0).astype(dtype)


@wrong("additive_mask")
def nan_where_closed(allowed, dtype=np.float64):
    """NaN is not minus infinity: added to a score it makes the whole row NaN."""
    return np.where(allowed, 0, np.nan).astype(dtype)


@wrong("additive_mask")
def single_by_default(allowed, dtype=np.float32):
    """Without a `dtype` the result is float32; the signature promises float64."""
    return np.where(allowed, 0, -np.inf).astype(dtype)


@wrong("additive_mask")
def always_single(allowed, dtype=np.float64):
    """The values are right, but `dtype` has no effect: the result is always float32."""
    return np.where(allowed, 0.0, -np.inf).astype(np.float32)


# masked_softmax ------------------------------------------------------------------------


def softmax(scores, axis=-1):
    """An ordinary softmax, for the mistakes that are made around it."""
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return exponentials / exponentials.sum(axis=axis, keepdims=True)


def zero_empty_rows(weights, allowed):
    """Zeros for the queries with no allowed key."""
    return np.where(np.any(allowed, axis=-1, keepdims=True), weights, 0)


def divided(exponentials):
    """Divided by the sums of the rows, NaN and all."""
    with np.errstate(all="ignore"):
        return exponentials / exponentials.sum(axis=-1, keepdims=True)


def divided_where_possible(exponentials):
    """As `divided`, but a row whose sum is 0 stays 0."""
    total = exponentials.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        return exponentials / np.where(total == 0, 1, total)


@wrong("masked_softmax", "georg-wolflein/good-features#1")
def scores_times_mask(scores, allowed):
    """A closed score is set to 0, and exp(0) is 1: the closed keys keep a weight, a large
    one where the other scores are negative. Set them to -inf."""
    return zero_empty_rows(softmax(np.where(allowed, scores, 0)), allowed)


@wrong("masked_softmax")
def scores_times_mask_and_nothing_else(scores, allowed):
    """A closed score is multiplied by 0, and exp(0) is 1: the closed keys keep a weight.
    Set them to -inf, which no multiplication can do."""
    with np.errstate(all="ignore"):
        return softmax(scores * allowed)


@wrong("masked_softmax", same_as="scores_times_mask")
def scores_filled_with_zero(scores, allowed):
    return softmax(np.where(allowed, scores, 0))


@wrong("masked_softmax")
def filled_with_plus_infinity(scores, allowed):
    """The sign of the fill is wrong: +inf wins against every score (and inf - inf is NaN).
    It is -inf whose exponential is 0."""
    with np.errstate(all="ignore"):
        return softmax(np.where(allowed, scores, np.inf))


@wrong("masked_softmax", "pytorch/pytorch#21518")
def mask_added_to_scores(scores, allowed):
    """A 0/1 mask is added to the scores: that raises the allowed ones by 1 and closes
    nothing. Closed scores must become -inf."""
    with np.errstate(all="ignore"):
        return softmax(scores + allowed)


@wrong("masked_softmax")
def axes_dropped(scores, allowed):
    """Maximum or sum, or both, are taken without keepdims=True: they then line up with the
    columns, and a row is divided by another row's sum."""
    scores = np.where(allowed, scores, -np.inf)
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores - scores.max(axis=-1))
        return np.nan_to_num(exponentials / exponentials.sum(axis=-1))


@wrong("masked_softmax", same_as="axes_dropped")
def axes_dropped_zeros_kept(scores, allowed):
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max(axis=-1)
    exponentials = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = exponentials.sum(axis=-1)
    return exponentials / np.where(total == 0, 1, total)


@wrong("masked_softmax", "FudanNLP/fastNLP#254")
def second_axis(scores, allowed):
    """The axis is counted from the front: axis=1 is the keys of a (query, key) array, but not
    when batch axes stand before. Count from the back: axis=-1."""
    return np.nan_to_num(softmax(np.where(allowed, scores, -np.inf), axis=1))


@wrong("masked_softmax")
def exponential_of_everything(scores, allowed):
    """The values are right, but the exponential is taken of closed scores too, before
    np.where chooses: a large one overflows, and NumPy warns. Replace them first."""
    largest = np.where(allowed, scores, -np.inf).max(axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)
    return divided_where_possible(np.where(allowed, np.exp(scores - largest), 0))


@wrong("masked_softmax")
def mask_after_softmax(scores, allowed):
    """You mask after the softmax: the closed keys have already taken their share of the sum,
    so the rows no longer add up to 1. Close them before the exponentials are added."""
    return np.where(allowed, softmax(scores), 0)


@wrong("masked_softmax", same_as="mask_after_softmax")
def mask_after_softmax_without_maximum(scores, allowed):
    with np.errstate(all="ignore"):
        return divided(np.exp(scores)) * allowed


@wrong("masked_softmax")
def mask_times_softmax(scores, allowed):
    """You multiply the weights by the mask, after the softmax: the rows no longer add up to
    1, and 0 times NaN is NaN. Close the keys before the exponentials are added."""
    return softmax(scores) * allowed


@wrong("masked_softmax")
def renormalised_after_softmax(scores, allowed):
    """Closed scores take part in the exponentials: you mask afterwards and divide again, or
    subtract a maximum taken over all keys. On paper that is right; but one closed score far
    above the rest makes all the others 0, and then 0 / 0. Close first."""
    weights = np.where(allowed, softmax(scores), 0)
    with np.errstate(all="ignore"):
        return zero_empty_rows(weights / weights.sum(axis=-1, keepdims=True), allowed)


@wrong("masked_softmax", same_as="renormalised_after_softmax")
def renormalised_where_possible(scores, allowed):
    return divided_where_possible(np.where(allowed, softmax(scores), 0))


@wrong("masked_softmax", same_as="renormalised_after_softmax")
def renormalised_product(scores, allowed):
    return divided_where_possible(softmax(scores) * allowed)


@wrong("masked_softmax", same_as="renormalised_after_softmax")
def renormalised_product_with_nan(scores, allowed):
    return divided(softmax(scores) * allowed)


@wrong("masked_softmax", same_as="nothing_subtracted")
def nothing_subtracted_zeros_kept(scores, allowed):
    with np.errstate(all="ignore"):
        exponentials = np.exp(np.where(allowed, scores, -np.inf))
    return divided_where_possible(exponentials)


@wrong("masked_softmax", same_as="nothing_subtracted")
def nothing_subtracted_and_nan(scores, allowed):
    with np.errstate(all="ignore"):
        return divided(np.exp(np.where(allowed, scores, -np.inf)))


@wrong("masked_softmax", same_as="nothing_subtracted")
def nothing_subtracted_times_mask(scores, allowed):
    with np.errstate(all="ignore"):
        return divided_where_possible(np.exp(scores) * allowed)


@wrong("masked_softmax", same_as="nothing_subtracted")
def nothing_subtracted_product_and_nan(scores, allowed):
    with np.errstate(all="ignore"):
        return divided(np.exp(scores) * allowed)


@wrong("masked_softmax", "pytorch/executorch#18407")
def nothing_subtracted(scores, allowed):
    """exp overflows from about 710 on (89 in float32), and inf / inf is NaN. Subtract each
    row's largest allowed score first: the weights stay the same."""
    with np.errstate(all="ignore"):
        exponentials = np.where(allowed, np.exp(scores), 0)
        return zero_empty_rows(exponentials / exponentials.sum(-1, keepdims=True), allowed)


@wrong("masked_softmax")
def added_minus_1e9(scores, allowed):
    """Adding -1e9 keeps the closed score in the sum: 1e30 - 1e9 is still enormous, and
    inf and NaN stay what they are. Replace the closed scores instead of adding to them."""
    scores = scores + np.where(allowed, 0, -1e9).astype(scores.dtype)
    return zero_empty_rows(softmax(scores), allowed)


@wrong("masked_softmax")
def added_minus_infinity(scores, allowed):
    """Adding -inf works for finite scores only: inf - inf and NaN - inf are NaN. What stands
    at a closed score must not matter: replace it (np.where)."""
    with np.errstate(all="ignore"):
        scores = scores + np.where(allowed, 0, -np.inf).astype(scores.dtype)
        return zero_empty_rows(softmax(scores), allowed)


@wrong("masked_softmax", same_as="added_minus_infinity")
def added_minus_infinity_and_nan(scores, allowed):
    with np.errstate(all="ignore"):
        return softmax(scores + np.where(allowed, 0, -np.inf).astype(scores.dtype))


@wrong("masked_softmax", same_as="added_minus_1e9")
def added_minus_1e9_and_uniform(scores, allowed):
    return softmax(scores + np.where(allowed, 0, -1e9).astype(scores.dtype))


@wrong("masked_softmax", "ohdearquant/lattice#373")
def fill_too_small(scores, allowed):
    """Your fill value is finite and too small: where the allowed scores are lower than it,
    the closed keys win. -inf is lower than every score."""
    return zero_empty_rows(softmax(np.where(allowed, scores, -1e4)), allowed)


@wrong("masked_softmax", "pytorch/pytorch#41508")
def empty_row_is_nan(scores, allowed):
    """In a row with no allowed key every score is -inf: -inf - -inf is NaN, and so is 0 / 0.
    Such a query should get zeros."""
    return softmax(np.where(allowed, scores, -np.inf))


@wrong("masked_softmax")
def empty_row_is_uniform(scores, allowed):
    """A row with no allowed key comes out uniform: the query attends to exactly the keys that
    are closed to it. Such a query should get zeros."""
    return softmax(np.where(allowed, scores, np.finfo(scores.dtype).min))


@wrong("masked_softmax")
def nan_mended_afterwards(scores, allowed):
    """The values are right, but NaN is made on the way and mended afterwards, so NumPy warns.
    Give the rows with no allowed key a harmless maximum and sum before dividing."""
    scores = np.where(allowed, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.nan_to_num(exponentials / exponentials.sum(axis=-1, keepdims=True))


@wrong("masked_softmax", "labmlai/annotated_deep_learning_paper_implementations#146")
def over_the_queries(scores, allowed):
    """You normalise over the queries (the columns add up to 1). Each query shares out one
    unit of attention among the keys: the last axis."""
    weights = softmax(np.where(allowed, scores, -np.inf), axis=-2)
    return np.nan_to_num(weights)


@wrong("masked_softmax", "PetrochukM/PyTorch-NLP#2")
def over_the_first_axis(scores, allowed):
    """You normalise over the first axis: with a batch, that mixes the sequences. The keys are
    the last axis, axis=-1, however many batch axes there are."""
    return np.nan_to_num(softmax(np.where(allowed, scores, -np.inf), axis=0))


@wrong("masked_softmax")
def over_everything(scores, allowed):
    """All weights together add up to 1, instead of each row: maximum and sum are taken over
    the whole array. Use axis=-1, keepdims=True."""
    scores = np.where(allowed, scores, -np.inf)
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores - scores.max())
        return exponentials / exponentials.sum()


@wrong("masked_softmax")
def one_largest_for_all_rows(scores, allowed):
    """You subtract the largest score of the whole array: a row whose scores lie far below
    it underflows to 0 / 0. Subtract each row's own largest score."""
    scores = np.where(allowed, scores, -np.inf)
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores - scores.max())
        return zero_empty_rows(exponentials / exponentials.sum(-1, keepdims=True), allowed)


@wrong("masked_softmax", same_as="one_largest_for_all_rows")
def one_largest_zeros_kept(scores, allowed):
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max() if np.isfinite(scores.max()) else 0
    return divided_where_possible(np.exp(scores - largest))


@wrong("masked_softmax", same_as="never_below_zero")
def never_below_zero_zeros_kept(scores, allowed):
    scores = np.where(allowed, scores, -np.inf)
    largest = np.maximum(scores.max(-1, keepdims=True), 0)
    return divided_where_possible(np.exp(scores - largest))


@wrong("masked_softmax", "FluxML/NNlib.jl#43")
def never_below_zero(scores, allowed):
    """The number you subtract is never below 0: a row of very negative scores underflows to
    0 / 0. Subtract the row's largest score, also when it is negative."""
    scores = np.where(allowed, scores, -np.inf)
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), 0))
        return zero_empty_rows(exponentials / exponentials.sum(-1, keepdims=True), allowed)


@wrong("masked_softmax")
def mask_ignored(scores, allowed):
    """The mask has no effect: every key, the future included, keeps its weight."""
    return softmax(scores)


@wrong("masked_softmax", "hkproj/pytorch-transformer#19")
def closes_what_is_allowed(scores, allowed):
    """The polarity is turned round: you close the keys that are allowed. True means may
    attend."""
    return masked_softmax(scores, ~allowed)


@wrong("masked_softmax", same_as="closes_what_is_allowed")
def closes_what_is_allowed_and_nan(scores, allowed):
    return np.nan_to_num(softmax(np.where(allowed, -np.inf, scores)))


@wrong("masked_softmax", "CASIA-IVA-Lab/DANet#48")
def largest_minus_score(scores, allowed):
    """You compute largest - score instead of score - largest: the order is turned round, and
    the lowest score gets the most weight."""
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    with np.errstate(all="ignore"):
        exponentials = np.where(allowed, np.exp(largest - scores), 0)
        return zero_empty_rows(exponentials / exponentials.sum(-1, keepdims=True), allowed)


@wrong("masked_softmax")
def never_divided(scores, allowed):
    """The exponentials are not divided by their sum, so the rows do not add up to 1."""
    scores = np.where(allowed, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    return np.exp(scores - np.where(np.isfinite(largest), largest, 0))


@wrong("masked_softmax")
def writes_into_the_scores(scores, allowed):
    """You write -inf into the caller's scores. The weights are right, but whoever uses the
    scores afterwards finds them changed: work on a copy (np.where makes one)."""
    scores[np.broadcast_to(~allowed, scores.shape)] = -np.inf
    return masked_softmax(scores, allowed)


@wrong("masked_softmax")
def mask_of_the_same_shape_only(scores, allowed):
    """scores[~allowed] needs a mask of the very shape of the scores. One mask serves a whole
    batch: np.where broadcasts it."""
    scores = scores.copy()
    scores[~allowed] = -np.inf
    return masked_softmax(scores, np.ones_like(scores, dtype=bool) & np.isfinite(scores))


# masked_attention ----------------------------------------------------------------------


def attend(q, k, v, allowed, scale=None, softmax=masked_softmax):
    """Masked attention with another scale or another softmax."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    weights = softmax(q @ np.swapaxes(k, -2, -1) * scale, allowed)
    return weights @ v, weights


@wrong("masked_attention")
def no_scale(q, k, v, allowed):
    """The scores are not divided by the square root of d_head: the weights are too sharp."""
    return attend(q, k, v, allowed, 1.0)


@wrong("masked_attention")
def divided_by_d_head(q, k, v, allowed):
    """The scores are divided by d_head, or twice by its square root; once by the square root
    is right. The weights come out too flat."""
    return attend(q, k, v, allowed, 1 / q.shape[-1])


@wrong("masked_attention", "esceptico/perceiver-io#9")
def multiplied_by_the_root(q, k, v, allowed):
    """You multiply by the square root of d_head where you should divide by it."""
    return attend(q, k, v, allowed, q.shape[-1] ** 0.5)


@wrong("masked_attention", "omihub777/ViT-CIFAR#11")
def root_of_the_wrong_length(q, k, v, allowed):
    """You take the root of the length of another axis: the scale is the square root of
    d_head, the last axis of q."""
    return attend(q, k, v, allowed, k.shape[-2] ** -0.5)


@wrong("masked_attention")
def root_of_d_value(q, k, v, allowed):
    """You take the root of d_value, the last axis of v: the scale is the square root of
    d_head, the last axis of q."""
    return attend(q, k, v, allowed, v.shape[-1] ** -0.5)


@wrong("masked_attention", "HsiaoYetGun/ESIM#5")
def all_axes_reversed(q, k, v, allowed):
    """k.T reverses all axes. Only the last two change places: np.swapaxes(k, -2, -1)."""
    weights = masked_softmax(q @ k.T / q.shape[-1] ** 0.5, allowed)
    return weights @ v, weights


@wrong("masked_attention", same_as="all_axes_reversed")
def dot_of_everything(q, k, v, allowed):
    weights = masked_softmax(np.dot(q, k.T) / q.shape[-1] ** 0.5, allowed)
    return np.matmul(weights, v), weights


@wrong("masked_attention")
def reshaped_for_transposed(q, k, v, allowed):
    """k is reshaped to (d_head, key), which keeps the numbers in reading order and so mixes
    the keys. Exchange the two axes: np.swapaxes(k, -2, -1)."""
    turned = k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    weights = masked_softmax(q @ turned / q.shape[-1] ** 0.5, allowed)
    return weights @ v, weights


@wrong("masked_attention", same_as="root_of_the_wrong_length")
def root_of_the_second_axis(q, k, v, allowed):
    return attend(q, k, v, allowed, q.shape[1] ** -0.5)


@wrong("masked_attention", same_as="root_of_the_wrong_length")
def root_of_the_queries(q, k, v, allowed):
    return attend(q, k, v, allowed, q.shape[-2] ** -0.5)


@wrong("masked_attention")
def weights_scaled_instead_of_scores(q, k, v, allowed):
    """The weights are divided by the square root of d_head, after the softmax: the rows no
    longer add up to 1. The scores are scaled, before the softmax."""
    _, weights = attend(q, k, v, allowed, 1.0)
    weights = weights / q.shape[-1] ** 0.5
    return weights @ v, weights


@wrong("masked_attention")
def writes_into_the_queries(q, k, v, allowed):
    """q is scaled in place: the caller's queries have changed afterwards, and a second call
    scales them again. Write q = q / ..., which makes a new array."""
    q /= q.shape[-1] ** 0.5
    return attend(q, k, v, allowed, 1.0)


@wrong("masked_attention")
def attention_ignores_the_mask(q, k, v, allowed):
    """The mask has no effect: every query sees every key."""
    return attend(q, k, v, np.ones_like(allowed))


@wrong("masked_attention", "rasbt/LLMs-from-scratch#1061")
def attention_to_what_is_closed(q, k, v, allowed):
    """The polarity is turned round: each query attends to the keys that are closed to it.
    True means may attend."""
    return attend(q, k, v, ~allowed)


@wrong("masked_attention")
def weights_masked_after_softmax(q, k, v, allowed):
    """You mask after the softmax: the rows no longer add up to 1. Close the keys before the
    exponentials are added."""
    return attend(q, k, v, allowed, softmax=mask_after_softmax)


@wrong("masked_attention", "georg-wolflein/good-features#1")
def closed_scores_are_zero(q, k, v, allowed):
    """A closed score is set to 0, and exp(0) is 1: the closed keys keep a weight."""
    return attend(q, k, v, allowed, softmax=scores_times_mask_and_nothing_else)


@wrong("masked_attention", "pytorch/pytorch#21518")
def mask_added_as_ones(q, k, v, allowed):
    """A 0/1 mask is added to the scores: that raises the allowed ones by 1 and closes
    nothing. Add 0 and -inf, or use masked_softmax."""
    return attend(q, k, v, allowed, softmax=lambda s, a: softmax(s + a))


@wrong("masked_attention")
def weights_come_first(q, k, v, allowed):
    """You return (weights, out); the order is (out, weights)."""
    return attend(q, k, v, allowed)[::-1]


@wrong("masked_attention")
def weights_are_missing(q, k, v, allowed):
    """You return the output alone; the result is the pair (out, weights)."""
    return attend(q, k, v, allowed)[0]


@wrong("masked_attention", "awslabs/sockeye#731")
def keys_taken_for_values(q, k, v, allowed):
    """The weights multiply the keys; they belong to the values: weights @ v."""
    return attend(q, k, k, allowed)


@wrong("masked_attention", "labmlai/annotated_deep_learning_paper_implementations#146")
def softmax_over_the_queries(q, k, v, allowed):
    """You normalise over the queries (the columns add up to 1); each query shares out its
    attention among the keys, the last axis."""
    return attend(q, k, v, allowed, softmax=over_the_queries)


@wrong("masked_attention")
def keys_ask_queries(q, k, v, allowed):
    """Your scores are k q^T: keys stand in the rows. It is q k^T, (query, key)."""
    weights = masked_softmax(k @ np.swapaxes(q, -2, -1) / q.shape[-1] ** 0.5, allowed)
    return weights @ v, weights


@wrong("masked_attention", "pytorch/pytorch#41508")
def blind_query_is_nan(q, k, v, allowed):
    """A query with no allowed key gets NaN (0 / 0), and NaN spreads to everything that is
    computed from it. It should get zeros."""
    return attend(q, k, v, allowed, softmax=empty_row_is_nan)


@wrong("masked_attention")
def blind_query_is_uniform(q, k, v, allowed):
    """A query with no allowed key gets equal weights on exactly the keys that are closed to
    it. It should get zeros."""
    return attend(q, k, v, allowed, softmax=empty_row_is_uniform)


@wrong("masked_attention")
def exponentials_overflow(q, k, v, allowed):
    """exp overflows for large scores and inf / inf is NaN: subtract the row's largest
    allowed score first (your masked_softmax does it)."""
    return attend(q, k, v, allowed, softmax=nothing_subtracted)


@wrong("masked_attention", same_as="exponentials_overflow")
def exponentials_overflow_zeros_kept(q, k, v, allowed):
    return attend(q, k, v, allowed, softmax=nothing_subtracted_zeros_kept)


@wrong("masked_attention", same_as="exponentials_overflow")
def exponentials_overflow_and_nan(q, k, v, allowed):
    return attend(q, k, v, allowed, softmax=nothing_subtracted_and_nan)


@wrong("masked_attention", "ohdearquant/lattice#373")
def fill_beaten_by_scores(q, k, v, allowed):
    """Your fill value is finite and too small: where the allowed scores are lower than it,
    the closed keys win. -inf is lower than every score."""
    return attend(q, k, v, allowed, softmax=fill_too_small)


@wrong("masked_attention", same_as="fill_beaten_by_scores")
def small_fill_added(q, k, v, allowed):
    def fill(scores, allowed):
        return zero_empty_rows(softmax(scores + np.where(allowed, 0, -1e4)), allowed)

    return attend(q, k, v, allowed, softmax=fill)


@wrong("masked_attention")
def no_softmax(q, k, v, allowed):
    """The scores are used as weights: the softmax is missing."""
    return attend(q, k, v, allowed, softmax=lambda s, a: np.where(a, s, 0))


@wrong("masked_attention")
def uniform_over_the_past(q, k, v, allowed):
    """Every allowed key gets the same weight: the queries and keys have no influence."""
    return attend(q, k, v, allowed, 0.0)


# padding_mask --------------------------------------------------------------------------


@wrong("padding_mask")
def true_for_padding(lengths, n_key):
    """True and False have changed places: True marks a real key (may attend), not a padded
    one."""
    return np.arange(n_key) >= lengths[:, None, None]


@wrong("padding_mask")
def one_pad_too_many(lengths, n_key):
    """One padded key stays open: key j is real when j < length (they count from 0)."""
    return np.arange(n_key) <= lengths[:, None, None]


@wrong("padding_mask")
def one_real_key_closed(lengths, n_key):
    """The last real key is closed: with `length` real keys, those are 0 to length - 1."""
    return np.arange(n_key) < lengths[:, None, None] - 1


@wrong("padding_mask")
def padding_on_the_left(lengths, n_key):
    """Here the padding stands on the right: the real keys come first."""
    return np.arange(n_key) >= n_key - lengths[:, None, None]


@wrong("padding_mask")
def query_axis_missing(lengths, n_key):
    """The shape is (batch, key): against scores (batch, query, key) the batch would be taken
    for the queries. Put an axis of length 1 between them: (batch, 1, key)."""
    return np.arange(n_key) < lengths[:, None]


@wrong("padding_mask", "lsdefine/attention-is-all-you-need-keras#16")
def closes_queries(lengths, n_key):
    """The padding lies along the query axis, (batch, key, 1): that closes whole rows and
    leaves the padded keys open."""
    return (np.arange(n_key) < lengths[:, None])[:, :, None]


@wrong("padding_mask")
def padding_in_numbers(lengths, n_key):
    """The pattern is right, but the entries are numbers; a mask is bool."""
    return (np.arange(n_key) < lengths[:, None, None]).astype(int)


@wrong("padding_mask")
def slice_from_the_end(lengths, n_key):
    """The slice [-length:] is the end of the row, and for length 0 all of it; the real keys
    come first: [:length]."""
    mask = np.zeros((len(lengths), 1, n_key), dtype=bool)
    for row, length in zip(mask, lengths, strict=True):
        row[0, -length:] = True
    return mask


@wrong("padding_mask")
def padding_already_additive(lengths, n_key):
    """These are 0 and -inf, the numbers that are added to the scores; here the boolean mask is
    asked for, True for a real key."""
    return np.where(np.arange(n_key) < lengths[:, None, None], 0.0, -np.inf)


@wrong("padding_mask")
def slice_from_minus_zero(lengths, n_key):
    """The sequences without padding are closed altogether; nothing in them is padding. (One way
    to get there: with no pads a slice [-pads:] is [-0:], which is everything.)"""
    mask = np.ones((len(lengths), 1, n_key), dtype=bool)
    for row, length in zip(mask, lengths, strict=True):
        row[0, -(n_key - length) :] = False
    return mask


@wrong("padding_mask")
def as_long_as_the_longest(lengths, n_key):
    """Your mask ends with the longest sequence; it must have n_key columns, so that it fits
    the scores."""
    return np.arange(max(lengths)) < lengths[:, None, None]


@wrong("padding_mask")
def blown_up_to_square(lengths, n_key):
    """The result has n_key rows for each sequence; one row is enough, (batch, 1, key): it
    broadcasts over any number of queries."""
    return np.broadcast_to(np.arange(n_key) < lengths[:, None, None], (len(lengths), n_key, n_key))


# causal_padding_mask -------------------------------------------------------------------


def real(lengths, n):
    """(batch, n): True for the real positions."""
    return np.arange(n) < lengths[:, None]


@wrong("causal_padding_mask")
def padding_forgotten(lengths, n):
    """The mask is causal, but the padded keys are open."""
    return np.broadcast_to(causal_mask(n), (len(lengths), n, n))


@wrong("causal_padding_mask")
def future_forgotten(lengths, n):
    """The padded keys are closed, but the future is open: both masks must agree."""
    return np.broadcast_to(real(lengths, n)[:, None, :], (len(lengths), n, n))


@wrong("causal_padding_mask", "lsdefine/attention-is-all-you-need-keras#16")
def padded_queries_closed(lengths, n):
    """You close the rows of padded queries. Only keys are closed: a row without a key has no
    softmax, and nobody reads a padded query's output anyway."""
    return causal_mask(n) & real(lengths, n)[:, :, None]


@wrong("causal_padding_mask")
def one_of_the_two_suffices(lengths, n):
    """You combine the masks with "or"; a key may be seen only if both allow it: "and"."""
    return causal_mask(n) | real(lengths, n)[:, None, :]


@wrong("causal_padding_mask")
def blocked_instead_of_allowed(lengths, n):
    """True and False have changed places: True means may attend."""
    return ~(causal_mask(n) & real(lengths, n)[:, None, :])


@wrong("causal_padding_mask")
def pads_on_the_left(lengths, n):
    """Here the padding stands on the right: the real keys come first."""
    return causal_mask(n) & (np.arange(n) >= n - lengths[:, None])[:, None, :]


@wrong("causal_padding_mask")
def diagonal_always_open(lengths, n):
    """The diagonal is open even where the key is padding. Padded queries keep the row that the
    two masks give them, no more."""
    return (causal_mask(n) & real(lengths, n)[:, None, :]) | np.eye(n, dtype=bool)


@wrong("causal_padding_mask")
def first_key_always_open(lengths, n):
    """The first key is open even in an empty sequence, where it is padding: such a sequence
    has no key at all."""
    mask = causal_mask(n) & real(lengths, n)[:, None, :]
    mask[..., 0] = True
    return mask


@wrong("causal_padding_mask")
def product_of_numbers(lengths, n):
    """The pattern is right, but the entries are numbers; a mask is bool."""
    return np.tri(n) * real(lengths, n)[:, None, :]


@wrong("causal_padding_mask")
def queries_in_columns(lengths, n):
    """Rows and columns have changed places: the result is (batch, key, query), and should be
    (batch, query, key)."""
    return np.swapaxes(causal_mask(n) & real(lengths, n)[:, None, :], 1, 2)


@wrong("causal_padding_mask")
def first_pad_open(lengths, n):
    """One padded key stays open: key j is real when j < length (they count from 0)."""
    return causal_mask(n) & (np.arange(n) <= lengths[:, None])[:, None, :]


@wrong("causal_padding_mask")
def diagonal_closed(lengths, n):
    """The diagonal is closed: a query may see itself."""
    return np.tri(n, k=-1, dtype=bool) & real(lengths, n)[:, None, :]


@wrong("causal_padding_mask")
def future_instead_of_past(lengths, n):
    """The triangle is the upper one: each query sees its future. Rows are queries and
    columns are keys; the past lies to the left."""
    return causal_mask(n).T & real(lengths, n)[:, None, :]


# dog_by_hand ---------------------------------------------------------------------------


@wrong("dog_by_hand")
def by_hand_without_the_scale():
    """These are the weights of the scores 1, 1, 2: divide by the square root of 4 first."""
    return [0.212, 0.212, 0.576], [0.788, 0.788, 0.212, 0.212]


@wrong("dog_by_hand")
def by_hand_divided_by_four():
    """The scores were divided by 4; the scale is the square root of d_head, which is 2."""
    return [0.304, 0.304, 0.391], [0.696, 0.696, 0.304, 0.304]


@wrong("dog_by_hand")
def by_hand_without_exponentials():
    """The scores are divided by their sum; the softmax divides their exponentials."""
    return [0.25, 0.25, 0.5], [0.75, 0.75, 0.25, 0.25]


@wrong("dog_by_hand")
def by_hand_scores_for_weights():
    """These are the scaled scores; the softmax is still to come."""
    return [0.5, 0.5, 1.0], [1.5, 1.5, 0.5, 0.5]


@wrong("dog_by_hand")
def by_hand_second_row():
    """This is the row of "love"; the third row, that of "dog", is asked for."""
    return [0.269, 0.731, 0.0], [0.269, 0.731, 0.269, 0.731]


@wrong("dog_by_hand")
def by_hand_future_closed_too_far():
    """Here "dog" does not see itself: the last query sees every token, its own included."""
    return [0.5, 0.5, 0.0], [0.5, 0.5, 0.5, 0.5]


@wrong("dog_by_hand")
def by_hand_output_is_the_dog():
    """The weights are right, but the output is the row of "dog" itself: it is the sum of all
    three rows of V, each times its weight."""
    return [0.274, 0.274, 0.452], [1.0, 1.0, 0.0, 0.0]


@wrong("dog_by_hand")
def by_hand_first_row():
    """This is the row of "I"; the third row, that of "dog", is asked for."""
    return [1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]


@wrong("dog_by_hand")
def by_hand_two_decimals():
    """Two decimals are too few: type three of each number."""
    return [0.27, 0.27, 0.45], [0.73, 0.73, 0.27, 0.27]


@wrong("dog_by_hand")
def by_hand_output_first():
    """The order is (weights, output): the three weights first, then the four numbers."""
    return [0.726, 0.726, 0.274, 0.274], [0.274, 0.274, 0.452]


@wrong("dog_by_hand")
def by_hand_weights_alone():
    """These are the weights alone; return both lists, (weights, output)."""
    return [0.274, 0.274, 0.452]
