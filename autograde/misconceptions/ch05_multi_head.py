"""Wrong answers to chapter 5."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.misconceptions import ch03_causal_mask as earlier
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax
from autograde.reference.ch05_multi_head import merge_heads, split_heads

# split_heads ---------------------------------------------------------------------------


@wrong("split_heads", "reczoo/FuxiCTR#30")
def split_by_reshape_alone(x, n_heads):
    """One reshape to (heads, seq, d_head) keeps the numbers in reading order: head 0 gets the
    first tokens whole, and other heads the rest. Cut the last axis first, then exchange two
    axes."""
    *batch, seq, d_model = x.shape
    return x.reshape(*batch, n_heads, seq, d_model // n_heads)


@wrong("split_heads")
def heads_not_moved(x, n_heads):
    """The vectors are cut as they should be, but the axes are (seq, heads, d_head); the heads
    come before the tokens: (heads, seq, d_head)."""
    *batch, seq, d_model = x.shape
    return x.reshape(*batch, seq, n_heads, d_model // n_heads)


@wrong("split_heads")
def every_nth_column(x, n_heads):
    """Head h gets every n_heads-th column. A head owns neighbouring columns, d_head of them:
    reshape the last axis to (n_heads, d_head), in this order."""
    *batch, seq, d_model = x.shape
    slices = x.reshape(*batch, seq, d_model // n_heads, n_heads)
    return np.swapaxes(np.swapaxes(slices, -1, -2), -2, -3)


@wrong("split_heads")
def heads_and_width_exchanged(x, n_heads):
    """You make d_model / n_heads heads, each n_heads wide. It is the other way round: n_heads
    heads, each d_model / n_heads wide."""
    return split_heads(x, x.shape[-1] // n_heads)


@wrong("split_heads")
def tokens_split(x, n_heads):
    """You share out the tokens among the heads. Every head sees every token, and a slice of
    each token's vector."""
    *batch, seq, d_model = x.shape
    return x.reshape(*batch, n_heads, seq // n_heads, d_model)


@wrong("split_heads", "gazelle93/Transformer-Various-Positional-Encoding#1")
def heads_before_the_batch(x, n_heads):
    """The heads stand in front of the batch axes; they belong behind them, directly before the
    tokens: axis -3. Without a batch the two are the same."""
    return np.stack(np.split(x, n_heads, axis=-1))


@wrong("split_heads")
def exactly_one_batch_axis(x, n_heads):
    """Your function wants exactly one batch axis. Batch axes may be absent, or several: take
    them with *batch, seq, d_model = x.shape, and count axes from the back."""
    n_batch, seq, d_model = x.shape
    return x.reshape(n_batch, seq, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)


@wrong("split_heads")
def no_batch_axis(x, n_heads):
    """Your function takes one sequence only. Any number of batch axes may stand in front: take
    them with *batch, seq, d_model = x.shape, and count axes from the back."""
    seq, d_model = x.shape
    return x.reshape(seq, n_heads, d_model // n_heads).transpose(1, 0, 2)


@wrong("split_heads")
def split_along_axis_one(x, n_heads):
    """The axes are counted from the front, which is right for one sequence alone. With batch
    axes in front, the last axis is no longer axis 1: count from the back."""
    return np.stack(np.split(x, n_heads, axis=1))


@wrong("split_heads")
def first_two_axes_exchanged(x, n_heads):
    """The axes to be exchanged are counted from the front, which is right for one sequence
    alone. With batch axes in front it moves the batch: count from the back, -3 and -2."""
    *batch, seq, d_model = x.shape
    return np.swapaxes(x.reshape(*batch, seq, n_heads, d_model // n_heads), 0, 1)


@wrong("split_heads", same_as="first_two_axes_exchanged")
def second_and_third_axes_exchanged(x, n_heads):
    *batch, seq, d_model = x.shape
    return np.swapaxes(x.reshape(*batch, seq, n_heads, d_model // n_heads), 1, 2)


@wrong("split_heads", "HsiaoYetGun/ESIM#5")
def split_and_reversed(x, n_heads):
    """.T reverses all axes, so that d_head comes first and the tokens last. Exchange only the
    axes of the tokens and of the heads."""
    *batch, seq, d_model = x.shape
    return x.reshape(*batch, seq, n_heads, d_model // n_heads).T


@wrong("split_heads")
def a_copy_for_every_head(x, n_heads):
    """Every head gets the whole vector. The heads share it out: each gets d_model / n_heads
    columns."""
    return np.stack([x] * n_heads, axis=-3)


@wrong("split_heads")
def one_head_only(x, n_heads):
    """This is the first head alone; stack all n_heads of them on a new axis before the
    tokens."""
    return x[..., : x.shape[-1] // n_heads]


@wrong("split_heads")
def reshaped_in_place(x, n_heads):
    """Assigning to x.shape changes the caller's array, which has another shape afterwards.
    x.reshape(...) leaves it alone."""
    *batch, seq, d_model = x.shape
    x.shape = (*batch, seq, n_heads, d_model // n_heads)
    return np.swapaxes(x, -3, -2)


# merge_heads ---------------------------------------------------------------------------


@wrong("merge_heads", "jsbaan/transformer-from-scratch#6")
def merged_by_reshape_alone(x):
    """A reshape alone keeps the numbers in reading order: all tokens of head 0 come first, so
    that a row of the result mixes tokens. Bring token and head next to each other first."""
    *batch, heads, seq, d_head = x.shape
    return x.reshape(*batch, seq, heads * d_head)


@wrong("merge_heads")
def not_merged(x):
    """The axes are in the right order, but there are still three of them; make one of the last
    two, (heads, d_head)."""
    return np.swapaxes(x, -3, -2)


@wrong("merge_heads")
def columns_interleaved(x):
    """The heads alternate column by column. The whole row of head 0 comes first, then the row
    of head 1: the axes before the reshape are (seq, heads, d_head)."""
    *batch, heads, seq, d_head = x.shape
    return np.moveaxis(x, -3, -1).reshape(*batch, seq, heads * d_head)


@wrong("merge_heads")
def heads_averaged(x):
    """You take the mean over the heads. They are put side by side, so that nothing is lost: the
    rows are heads * d_head long."""
    return x.mean(axis=-3)


@wrong("merge_heads")
def heads_added(x):
    """You add the heads up. They are put side by side, so that nothing is lost: the rows are
    heads * d_head long."""
    return x.sum(axis=-3)


@wrong("merge_heads")
def heads_one_below_the_other(x):
    """The heads stand one below the other: heads * seq rows. They belong side by side: seq
    rows, each heads * d_head long."""
    *batch, heads, seq, d_head = x.shape
    return x.reshape(*batch, heads * seq, d_head)


@wrong("merge_heads", "gazelle93/Transformer-Various-Positional-Encoding#1")
def batch_taken_for_heads(x):
    """The axes are counted from the front, so that with a batch the wrong axes are joined. The
    heads stand directly before the tokens, at axis -3."""
    return np.concatenate(list(x), axis=-1)


@wrong("merge_heads", same_as="batch_taken_for_heads")
def first_two_exchanged(x):
    *batch, heads, seq, d_head = x.shape
    return np.swapaxes(x, 0, 1).reshape(*batch, seq, heads * d_head)


@wrong("merge_heads", same_as="batch_taken_for_heads")
def second_and_third_exchanged(x):
    *batch, heads, seq, d_head = x.shape
    return np.swapaxes(x, 1, 2).reshape(*batch, seq, heads * d_head)


@wrong("merge_heads")
def merges_one_batch_axis(x):
    """Your function wants exactly one batch axis. Batch axes may be absent, or several: take
    them with *batch, heads, seq, d_head = x.shape, and count axes from the back."""
    n_batch, heads, seq, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(n_batch, seq, heads * d_head)


@wrong("merge_heads")
def merges_no_batch_axis(x):
    """Your function takes one sequence only. Any number of batch axes may stand in front: take
    them with *batch, heads, seq, d_head = x.shape, and count axes from the back."""
    heads, seq, d_head = x.shape
    return x.transpose(1, 0, 2).reshape(seq, heads * d_head)


@wrong("merge_heads")
def batch_joined_with_the_tokens(x):
    """The batch axes are lost: -1 in a reshape joins them with the tokens. They stay in front:
    (*batch, seq, d_model)."""
    *_, heads, _, d_head = x.shape
    return np.swapaxes(x, -3, -2).reshape(-1, heads * d_head)


@wrong("merge_heads")
def merged_and_reversed(x):
    """.T reverses all axes: d_head comes first. Exchange only the axes of the heads and of the
    tokens before you reshape."""
    *batch, heads, seq, d_head = x.shape
    return x.T.reshape(*batch, seq, heads * d_head)


@wrong("merge_heads")
def last_head_first(x):
    """The heads stand in reverse order: head 0 comes first."""
    return merge_heads(np.flip(x, axis=-3))


@wrong("merge_heads")
def tokens_and_width_exchanged(x):
    """You exchange the tokens with d_head; it is the tokens and the heads that change places."""
    *batch, heads, seq, d_head = x.shape
    return np.swapaxes(x, -1, -2).reshape(*batch, seq, heads * d_head)


@wrong("merge_heads")
def rewritten_in_place(x):
    """Your function writes its result into x: the caller's array has changed afterwards."""
    merged = merge_heads(x).copy()
    x[...] = merged.reshape(x.shape)
    return merged


# multi_head_attention and cross_attention ----------------------------------------------


def attend(q, k, v, allowed, scale=None, softmax=masked_softmax):
    """Attention in which one thing or another can be wrong."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return softmax(q @ np.swapaxes(k, -2, -1) * scale, allowed) @ v


def several(
    x, memory, weights, n_heads, allowed, *,
    split=split_heads, merge=merge_heads, attention=attend, mask_heads=True,
):  # fmt: skip
    """Multi-head attention in which one thing or another can be wrong."""
    w_q, w_k, w_v, w_o = weights
    q, k, v = split(x @ w_q, n_heads), split(memory @ w_k, n_heads), split(memory @ w_v, n_heads)
    allowed = allowed[..., None, :, :] if mask_heads else allowed
    return merge(attention(q, k, v, allowed)) @ w_o


def alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, **different):
    """Self-attention in which one thing or another can be wrong."""
    return several(x, x, (w_q, w_k, w_v, w_o), n_heads, allowed, **different)


def scaled_by_d_model(x):
    """An attention whose scores are divided by the root of d_model."""
    return lambda q, k, v, allowed: attend(q, k, v, allowed, x.shape[-1] ** -0.5)


def softmax_is(softmax):
    """An attention with another softmax."""
    return lambda q, k, v, allowed: attend(q, k, v, allowed, softmax=softmax)


def with_scale(scale):
    """An attention with a fixed scale."""
    return lambda q, k, v, allowed: attend(q, k, v, allowed, scale)


def width(scale):
    """An attention whose scale is made from d_head."""
    return lambda q, k, v, allowed: attend(q, k, v, allowed, scale(q.shape[-1]))


def first_head_only(mask):
    """Head 0 gets the mask, the other heads see everything."""

    def attention(q, k, v, allowed):
        allowed = np.broadcast_to(allowed, (*q.shape[:-1], k.shape[-2])).copy()
        allowed[..., 1:, :, :] = True
        return mask(q, k, v, allowed)

    return attention


def no_heads_axis(q, k, v, allowed):
    """The mask as it came, without an axis for the heads."""
    return attend(q, k, v, allowed[..., 0, :, :])


def nan_for_empty_rows(scores, allowed):
    """A softmax that divides 0 by 0."""
    with np.errstate(all="ignore"):
        return earlier.softmax(np.where(allowed, scores, -np.inf))


def uniform_for_empty_rows(scores, allowed):
    """A softmax with a finite fill."""
    return earlier.softmax(np.where(allowed, scores, -1e9))


def largest_of_all_zeros_kept(scores, allowed):
    """A softmax that subtracts the largest score of the whole array; an empty sum stays 0."""
    weights = np.exp(scores - scores.max()) * allowed
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def small_fill(scores, allowed):
    """A softmax after -1e4 was added to the closed scores, with zeros in empty rows."""
    weights = earlier.softmax(scores + np.where(allowed, 0, -1e4))
    return earlier.zero_empty_rows(weights, allowed)


MHA = "multi_head_attention"


@wrong(MHA)
def no_heads_at_all(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """n_heads has no effect: this is one head of width d_model. Split q, k and v before you
    attend."""
    return alone(x, w_q, w_k, w_v, w_o, 1, allowed)


@wrong(MHA, "omihub777/ViT-CIFAR#11")
def root_of_d_model(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The scores are divided by the square root of d_model. Each dot product has only d_head
    terms, so it is the square root of d_head."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=scaled_by_d_model(x))


@wrong(MHA, "mlc-ai/mlc-llm#3426")
def scale_forgotten(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The scores are not scaled: divide them by the square root of d_head."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=with_scale(1.0))


@wrong(MHA)
def divided_by_d_head(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The scores are divided by d_head, not by its square root: is the root taken twice?
    masked_attention scales the scores already."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=width(lambda d: 1 / d))


@wrong(MHA, "esceptico/perceiver-io#9")
def multiplied_by_the_root(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The scores are multiplied by the square root of d_head; divide by it."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=width(np.sqrt))


@wrong(MHA, "reczoo/FuxiCTR#30")
def reshaped_on_both_sides(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """q, k and v are cut into heads by a reshape alone, and put together by another. The shapes
    fit, but a head gets a few tokens whole instead of a slice of every token: split and merge
    exchange two axes."""
    return alone(
        x, w_q, w_k, w_v, w_o, n_heads, allowed,
        split=split_by_reshape_alone, merge=merged_by_reshape_alone,
    )  # fmt: skip


@wrong(MHA, "hyunwoongko/transformer#15")
def reshaped_when_splitting(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """q, k and v are cut into heads by a reshape alone: a row of a head holds numbers of other
    tokens. Cut the last axis, then exchange the axes of the tokens and of the heads."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, split=split_by_reshape_alone)


@wrong(MHA, "ajhalthor/Transformer-Neural-Network#4")
def reshaped_when_merging(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The outputs of the heads are merged by a reshape alone, so that a row of the result mixes
    tokens. Exchange the axes of the heads and of the tokens first."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, merge=merged_by_reshape_alone)


@wrong(MHA)
def heads_interleaved(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Each head gets every n_heads-th column of the projections; a head owns neighbouring
    columns, d_head of them."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, split=every_nth_column)


@wrong(MHA)
def never_split(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Heads attend along the wrong axis: q, k and v are cut into heads, but the heads still
    stand behind the tokens, so that for each token the heads attend to each other. Exchange the
    two axes."""
    *batch, seq, d_model = x.shape
    q, k, v = (heads_not_moved(x @ w, n_heads) for w in (w_q, w_k, w_v))
    open_ = np.ones((n_heads, n_heads), dtype=bool)
    return attend(q, k, v, open_).reshape(*batch, seq, d_model) @ w_o


@wrong(MHA, "Kyubyong/transformer#117")
def last_projection_forgotten(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """w_o is not used: the merged heads are the result. The last step multiplies them by w_o,
    which lets the heads mix."""
    return alone(x, w_q, w_k, w_v, np.eye(x.shape[-1]), n_heads, allowed)


@wrong(MHA)
def weights_transposed(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You multiply by the transposed weights, x @ w.T, as PyTorch's nn.Linear does. Here they
    are used as they come: x @ w."""
    return alone(x, w_q.T, w_k.T, w_v.T, w_o.T, n_heads, allowed)


@wrong(MHA)
def rows_for_a_head(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """A head's weights are taken from the rows of w_q, w_k and w_v. x @ w has the head in its
    columns, so that a head owns columns of them."""
    return alone(x, w_q.T, w_k.T, w_v.T, w_o, n_heads, allowed)


@wrong(MHA)
def last_projection_transposed(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The last product uses w_o transposed; it is merged @ w_o."""
    return alone(x, w_q, w_k, w_v, w_o.T, n_heads, allowed)


@wrong(MHA, "MarcoMeter/episodic-transformer-memory-ppo#22")
def split_before_projection(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """x is split into heads before it is projected, so that a head never sees the other columns
    of x. Project first, with the whole matrix, then split."""
    d_head = x.shape[-1] // n_heads

    def block(w):
        slices = [slice(h * d_head, (h + 1) * d_head) for h in range(n_heads)]
        return np.stack([w[s, s] for s in slices])

    heads = split_heads(x, n_heads)
    q, k, v = heads @ block(w_q), heads @ block(w_k), heads @ block(w_v)
    return merge_heads(attend(q, k, v, allowed[..., None, :, :])) @ w_o


@wrong(MHA)
def mask_forgotten(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The mask has no effect: every query sees every key, in every head."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, np.ones_like(allowed))


@wrong(MHA, "rasbt/LLMs-from-scratch#1061")
def mask_turned_round(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Each query attends to the keys that are closed to it: True means may attend. The opposite
    is the convention of nn.MultiheadAttention."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, ~allowed)


@wrong(MHA)
def mask_in_the_first_head_only(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Only the first head is masked; through any other the future reaches the output. The mask
    holds in every head."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=first_head_only(attend))


@wrong(MHA)
def batch_of_masks_taken_for_heads(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """A mask for each sequence meets the scores without an axis for the heads, so that the batch
    of masks lines up with the heads. Give it an axis of length 1 before the queries."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=no_heads_axis)


@wrong(MHA)
def heads_axis_counted_from_the_front(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The mask's axis for the heads goes in at position 1, which is right for one batch axis and
    for no other number of them. Count it from the back: it stands before query and key."""
    allowed = allowed[None] if allowed.ndim == 2 else allowed[:, None]
    weights = (w_q, w_k, w_v, w_o)
    return several(x, x, weights, n_heads, allowed, mask_heads=False)


@wrong(MHA, same_as="heads_axis_counted_from_the_front")
def heads_axis_at_one_always(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    weights = (w_q, w_k, w_v, w_o)
    return several(x, x, weights, n_heads, allowed[:, None], mask_heads=False)


@wrong(MHA, "line/lighthouse#77")
def masks_in_the_order_of_heads(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Batch and heads are folded into one axis, the heads of a sequence next to each other; but
    the masks are repeated sequence after sequence, so that a head gets another sequence's mask.
    An axis of length 1 for the heads needs no repeating."""

    def attention(q, k, v, allowed):
        scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
        if allowed.ndim > 3:
            flat = allowed[..., 0, :, :].reshape(-1, *allowed.shape[-2:])
            flat = np.tile(flat, (n_heads, 1, 1))
            allowed = flat.reshape(*scores.shape[:-2], *allowed.shape[-2:])
        return masked_softmax(scores, allowed) @ v

    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA)
def always_causal(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You use a causal mask, whatever `allowed` says."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, causal_mask(x.shape[-2]))


@wrong(MHA)
def causal_besides(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You close the future besides what `allowed` closes. The mask says all: an encoder, for
    instance, sees the whole sequence."""
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed & causal_mask(x.shape[-2]))


@wrong(MHA)
def masked_late(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You mask after the softmax: the closed keys have taken their share of the sum. Close them
    before the exponentials are added."""
    attention = softmax_is(lambda s, a: np.where(a, earlier.softmax(s), 0))
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, "georg-wolflein/good-features#1")
def closed_scores_zero(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """A closed score is set to 0, and exp(0) is 1: the closed keys keep a weight."""
    attention = softmax_is(lambda s, a: earlier.softmax(s * a))
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, "pytorch/pytorch#41508")
def blind_queries_get_nan(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """A query with no allowed key gets NaN: where every score is -inf, the softmax makes
    -inf - -inf of them, or 0 / 0. It should get zeros; masked_softmax sees to it."""
    attention = softmax_is(nan_for_empty_rows)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA)
def blind_queries_get_the_mean(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """A query with no allowed key gets the mean of the values that are closed to it: the fill
    is finite, and equal everywhere. It should get zeros."""
    attention = softmax_is(uniform_for_empty_rows)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, same_as="blind_queries_get_the_mean")
def finite_fill_added(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    attention = softmax_is(lambda s, a: earlier.softmax(s + np.where(a, 0, -1e9)))
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, "pytorch/executorch#18407")
def exponentials_overflow(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """exp overflows for large scores, and inf / inf is NaN: subtract the row's largest allowed
    score first (masked_softmax does it)."""
    attention = softmax_is(earlier.nothing_subtracted)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, same_as="exponentials_overflow")
def exponentials_overflow_zeros_kept(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    attention = softmax_is(earlier.nothing_subtracted_zeros_kept)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, same_as="exponentials_overflow")
def exponentials_overflow_and_nan(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    attention = softmax_is(earlier.nothing_subtracted_and_nan)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA)
def largest_of_all_subtracted(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You subtract one number from all scores, the largest of them: a row whose own scores lie
    far below it underflows. Subtract from each row its own largest allowed score."""
    attention = softmax_is(earlier.one_largest_for_all_rows)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, same_as="largest_of_all_subtracted")
def largest_of_all_subtracted_zeros_kept(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    attention = softmax_is(largest_of_all_zeros_kept)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, "ohdearquant/lattice#373")
def fill_beaten_by_allowed_scores(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Your fill value is finite and too small: where the allowed scores are lower than it, the
    closed keys win. -inf is lower than every score."""
    attention = softmax_is(earlier.fill_too_small)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, same_as="fill_beaten_by_allowed_scores")
def small_fill_added(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    attention = softmax_is(small_fill)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, "labmlai/annotated_deep_learning_paper_implementations#146")
def softmax_over_queries(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You normalise over the queries. Each query shares out its attention among the keys, the
    last axis of the scores."""
    attention = softmax_is(earlier.over_the_queries)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA)
def softmax_over_heads(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You normalise over the heads. Each head has weights of its own, and each row of them adds
    up to 1 over the keys, the last axis."""

    def softmax(scores, allowed):
        scores = np.where(allowed, scores, -np.inf)
        with np.errstate(all="ignore"):
            return np.nan_to_num(earlier.softmax(scores, axis=-3))

    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=softmax_is(softmax))


@wrong(MHA)
def queries_and_keys_exchanged(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The queries are made with w_k and the keys with w_q: the scores are transposed."""
    return alone(x, w_k, w_q, w_v, w_o, n_heads, allowed)


@wrong(MHA)
def one_matrix_for_all(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Keys and values are made with w_q, too; each has a matrix of its own, w_k and w_v."""
    return alone(x, w_q, w_q, w_q, w_o, n_heads, allowed)


@wrong(MHA, "awslabs/sockeye#731")
def keys_for_values(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The weights multiply the keys; they belong to the values, x @ w_v."""
    return alone(x, w_q, w_k, w_k, w_o, n_heads, allowed)


@wrong(MHA)
def values_not_projected(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The values are x itself; they are x @ w_v."""
    return alone(x, w_q, w_k, np.eye(x.shape[-1]), w_o, n_heads, allowed)


@wrong(MHA)
def residual_added(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """x is added to the result. The residual connection belongs to the decoder block (chapter
    6), not to the attention."""
    return x + alone(x, w_q, w_k, w_v, w_o, n_heads, allowed)


@wrong(MHA)
def heads_not_concatenated(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The heads' outputs are averaged. They are put side by side, and w_o mixes them."""

    def mean(out):
        return np.concatenate([out.mean(axis=-3)] * n_heads, axis=-1)

    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, merge=mean)


@wrong(MHA)
def weights_averaged(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Every head uses the mean of all heads' weights. Each head has weights of its own, and its
    own values get them."""

    def attention(q, k, v, allowed):
        weights = masked_softmax(q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5, allowed)
        return weights.mean(axis=-3, keepdims=True) @ v

    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=attention)


@wrong(MHA, same_as="heads_not_concatenated")
def heads_averaged_and_narrow(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, merge=heads_averaged)


@wrong(MHA)
def weights_returned_too(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """You return a pair; the result is the output alone, one array."""
    q, k = split_heads(x @ w_q, n_heads), split_heads(x @ w_k, n_heads)
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    weights = masked_softmax(scores, allowed[..., None, :, :])
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed), weights


@wrong(MHA)
def heads_left_apart(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """The result still has its heads axis: merge the heads, then multiply by w_o."""
    q, k, v = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return attend(q, k, v, allowed[..., None, :, :])


@wrong(MHA)
def wants_one_batch_axis(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Your function wants exactly one batch axis. Batch axes may be absent, or several: take
    them with *batch, seq, d_model = x.shape, and count axes from the back."""
    n_batch, seq, d_model = x.shape
    x = x.reshape(n_batch, seq, d_model)
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed)


@wrong(MHA)
def wants_no_batch_axis(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """Your function takes one sequence only; any number of batch axes may stand in front."""
    seq, d_model = x.shape
    return alone(x.reshape(seq, d_model), w_q, w_k, w_v, w_o, n_heads, allowed)


@wrong(MHA)
def scales_a_weight_in_place(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    """w_q is scaled in place: the caller's weights have changed afterwards, and a second call
    scales them again. Make a new array, or scale the scores."""
    w_q *= (x.shape[-1] // n_heads) ** -0.5
    return alone(x, w_q, w_k, w_v, w_o, n_heads, allowed, attention=with_scale(1.0))


# cross_attention -----------------------------------------------------------------------

CROSS = "cross_attention"


def other(x, memory, weights, n_heads, memory_allowed, **different):
    """Cross-attention in which one thing or another can be wrong."""
    if memory_allowed is None:
        memory_allowed = np.ones((x.shape[-2], memory.shape[-2]), dtype=bool)
    return several(x, memory, weights, n_heads, memory_allowed, **different)


@wrong(CROSS, "keitakurita/Practical_NLP_in_PyTorch#1")
def memory_ignored(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """This is self-attention: keys and values are made from x. They are made from memory."""
    return other(x, x, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, "humza909/LLM_Survey#2")
def memory_asks(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Queries come from memory, keys and values from x. It is the other way round: the decoder's
    x asks, and the result has one row for each row of x."""
    return other(memory, x, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, same_as="memory_asks")
def memory_asks_under_the_mask(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    if memory_allowed is None:
        memory_allowed = np.ones((x.shape[-2], memory.shape[-2]), dtype=bool)
    return other(memory, x, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, "rexrex9/nlp_torchtext#2")
def queries_from_memory(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The queries are made from memory, so that memory attends to itself and x has no influence.
    The queries are x @ w_q."""
    return other(memory, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


def parts(x, memory, weights, n_heads, memory_allowed, keys, values):
    """Cross-attention with keys and values from where they may not come from."""
    w_q, w_k, w_v, w_o = weights
    if memory_allowed is None:
        memory_allowed = np.ones((1, keys.shape[-2]), dtype=bool)
    q, k, v = (split_heads(a @ w, n_heads) for a, w in ((x, w_q), (keys, w_k), (values, w_v)))
    return merge_heads(attend(q, k, v, memory_allowed[..., None, :, :])) @ w_o


@wrong(CROSS)
def values_from_x(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The values are made from x; what is read comes from memory: memory @ w_v."""
    return parts(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed, memory, x)


@wrong(CROSS)
def keys_from_x(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The keys are made from x; x only asks, and memory has the keys: memory @ w_k."""
    return parts(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed, x, memory)


@wrong(CROSS)
def cross_queries_and_keys_exchanged(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """w_q and w_k have changed places: the queries are x @ w_q, the keys memory @ w_k."""
    return other(x, memory, (w_k, w_q, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, "awslabs/sockeye#731")
def cross_keys_for_values(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The weights multiply the keys; they belong to the values, memory @ w_v."""
    return other(x, memory, (w_q, w_k, w_k, w_o), n_heads, memory_allowed)


@wrong(CROSS)
def causal_without_a_mask(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Without memory_allowed you use a causal mask. The memory is a finished sequence, and
    every query sees all of it."""
    if memory_allowed is None:
        memory_allowed = causal_mask(x.shape[-2], memory.shape[-2])
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, same_as="causal_without_a_mask")
def causal_top_left(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    if memory_allowed is None:
        memory_allowed = np.tri(x.shape[-2], memory.shape[-2], dtype=bool)
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS)
def causal_as_well(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """You close keys as if memory had a future: with and without memory_allowed. Memory is a
    finished sequence; only memory_allowed closes keys."""
    allowed = np.tri(x.shape[-2], memory.shape[-2], dtype=bool)
    if memory_allowed is not None:
        allowed = allowed & memory_allowed
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, allowed)


@wrong(CROSS, same_as="causal_as_well")
def causal_as_well_bottom_right(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    allowed = causal_mask(x.shape[-2], memory.shape[-2])
    if memory_allowed is not None:
        allowed = allowed & memory_allowed
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, allowed)


@wrong(CROSS)
def mask_of_memory_forgotten(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """memory_allowed has no effect: padding in the memory is attended to."""
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, None)


@wrong(CROSS, "rasbt/LLMs-from-scratch#1061")
def mask_of_memory_turned_round(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Each query attends to the keys that are closed: True means may attend. The opposite is the
    convention of nn.MultiheadAttention's key_padding_mask."""
    closed = None if memory_allowed is None else ~memory_allowed
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, closed)


@wrong(CROSS, same_as="mask_of_memory_turned_round")
def turned_round_and_none_closes(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    if memory_allowed is None:
        memory_allowed = np.ones((1, memory.shape[-2]), dtype=bool)
    return several(x, memory, (w_q, w_k, w_v, w_o), n_heads, ~memory_allowed)


@wrong(CROSS)
def square_without_a_mask(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Without memory_allowed the mask that you make does not fit: it has a row for each row of x
    (or one for all) and a column for each row of memory, and the two may differ in length."""
    if memory_allowed is None:
        memory_allowed = np.ones((x.shape[-2], x.shape[-2]), dtype=bool)
    return several(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, same_as="square_without_a_mask")
def square_of_memory_without_a_mask(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    if memory_allowed is None:
        memory_allowed = np.ones((memory.shape[-2], memory.shape[-2]), dtype=bool)
    return several(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS)
def mask_is_required(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Without memory_allowed (None) everything in memory may be seen; your function uses None
    as if it were a mask."""
    return several(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, same_as="mask_is_required")
def none_closes_everything(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    if memory_allowed is None:
        memory_allowed = np.zeros((1, memory.shape[-2]), dtype=bool)
    return several(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS)
def mask_of_memory_without_heads(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The mask meets the scores without an axis for the heads, so that the batch of masks lines
    up with the heads. Give it an axis of length 1 before the queries."""
    weights = (w_q, w_k, w_v, w_o)
    return other(x, memory, weights, n_heads, memory_allowed, attention=no_heads_axis)


@wrong(CROSS)
def heads_axis_of_memory_at_one(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The mask's axis for the heads goes in at position 1, which is right for (batch, 1, key)
    and comes between query and key in (query, key). Count it from the back: it stands before
    query and key."""
    if memory_allowed is None:
        memory_allowed = np.ones((x.shape[-2], memory.shape[-2]), dtype=bool)
    weights = (w_q, w_k, w_v, w_o)
    return several(x, memory, weights, n_heads, memory_allowed[:, None], mask_heads=False)


@wrong(CROSS, same_as="heads_axis_of_memory_at_one")
def heads_axis_of_memory_at_one_if_any(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    weights = (w_q, w_k, w_v, w_o)
    if memory_allowed is None:
        return other(x, memory, weights, n_heads, None)
    return several(x, memory, weights, n_heads, memory_allowed[:, None], mask_heads=False)


@wrong(CROSS)
def mask_in_one_head(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Only the first head is masked; the others attend to what is closed. The mask holds in
    every head."""
    weights, attention = (w_q, w_k, w_v, w_o), first_head_only(attend)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def heads_of_cross_ignored(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """n_heads has no effect: this is one head of width d_model. Split q, k and v before you
    attend."""
    return other(x, memory, (w_q, w_k, w_v, w_o), 1, memory_allowed)


@wrong(CROSS, "omihub777/ViT-CIFAR#11")
def cross_root_of_d_model(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The scores are divided by the square root of d_model. Each dot product has only d_head
    terms, so it is the square root of d_head."""
    weights, attention = (w_q, w_k, w_v, w_o), scaled_by_d_model(x)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def cross_scale_forgotten(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The scores are not scaled: divide them by the square root of d_head."""
    weights, attention = (w_q, w_k, w_v, w_o), with_scale(1.0)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def cross_weights_transposed(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """You multiply by the transposed weights, x @ w.T, as PyTorch's nn.Linear does. Here they
    are used as they come: x @ w."""
    return other(x, memory, (w_q.T, w_k.T, w_v.T, w_o.T), n_heads, memory_allowed)


@wrong(CROSS, "Kyubyong/transformer#117")
def cross_last_projection_forgotten(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """w_o is not used: the merged heads are the result. The last step multiplies them by
    w_o."""
    return other(x, memory, (w_q, w_k, w_v, np.eye(x.shape[-1])), n_heads, memory_allowed)


@wrong(CROSS, "reczoo/FuxiCTR#30")
def cross_reshaped_on_both_sides(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """q, k and v are cut into heads by a reshape alone, and put together by another. The shapes
    fit, but a head gets a few tokens whole instead of a slice of every token: split and merge
    exchange two axes."""
    return other(
        x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed,
        split=split_by_reshape_alone, merge=merged_by_reshape_alone,
    )  # fmt: skip


@wrong(CROSS, "ajhalthor/Transformer-Neural-Network#4")
def cross_reshaped_when_merging(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The outputs of the heads are merged by a reshape alone, so that a row of the result mixes
    tokens. Exchange the axes of the heads and of the tokens first."""
    weights = (w_q, w_k, w_v, w_o)
    return other(x, memory, weights, n_heads, memory_allowed, merge=merged_by_reshape_alone)


@wrong(CROSS)
def merged_with_memorys_length(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """An array is reshaped with the length of the other sequence. q and the output have as many
    rows as x, k and v as many as memory, and the two may differ."""

    def merge(out):
        *batch, heads, _, d_head = out.shape
        return np.swapaxes(out, -3, -2).reshape(*batch, memory.shape[-2], heads * d_head)

    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed, merge=merge)


@wrong(CROSS, same_as="merged_with_memorys_length")
def keys_cut_with_the_length_of_x(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    *batch, seq, d_model = x.shape

    def split(y, n_heads):
        slices = y.reshape(*batch, seq, n_heads, d_model // n_heads)
        return np.swapaxes(slices, -3, -2)

    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed, split=split)


@wrong(CROSS)
def residual_of_x_added(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """x is added to the result. The residual connection belongs to the decoder's layer, not to
    the attention."""
    return x + other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS, "pytorch/pytorch#41508")
def empty_memory_gives_nan(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """A query with no allowed key gets NaN: where every score is -inf, the softmax makes
    -inf - -inf of them, or 0 / 0. It should get zeros; masked_softmax sees to it."""
    weights, attention = (w_q, w_k, w_v, w_o), softmax_is(nan_for_empty_rows)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def empty_memory_gives_the_mean(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """A query with no allowed key gets the mean of the values that are closed to it: the fill
    is finite, and equal everywhere. It should get zeros."""
    weights, attention = (w_q, w_k, w_v, w_o), softmax_is(uniform_for_empty_rows)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS, same_as="empty_memory_gives_the_mean")
def cross_fill_added(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    attention = softmax_is(lambda s, a: earlier.softmax(s + np.where(a, 0, -1e9)))
    weights = (w_q, w_k, w_v, w_o)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def padded_queries_closed(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The mask lies along the queries: it closes rows and leaves the padded keys open. The last
    axis of a mask is the keys."""
    if memory_allowed is None:
        return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, None)
    turned = np.swapaxes(memory_allowed, -2, -1)
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, turned)


@wrong(CROSS)
def cross_overflows(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """exp overflows for large scores, and inf / inf is NaN: subtract the row's largest allowed
    score first (masked_softmax does it)."""
    weights, attention = (w_q, w_k, w_v, w_o), softmax_is(earlier.nothing_subtracted)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS, same_as="cross_overflows")
def cross_overflows_zeros_kept(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    attention = softmax_is(earlier.nothing_subtracted_zeros_kept)
    weights = (w_q, w_k, w_v, w_o)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS, same_as="cross_overflows")
def cross_overflows_and_nan(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    attention = softmax_is(earlier.nothing_subtracted_and_nan)
    weights = (w_q, w_k, w_v, w_o)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def cross_largest_of_all(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """You subtract one number from all scores, the largest of them: a row whose own scores lie
    far below it underflows. Subtract from each row its own largest allowed score."""
    weights, attention = (w_q, w_k, w_v, w_o), softmax_is(earlier.one_largest_for_all_rows)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS, same_as="cross_largest_of_all")
def cross_largest_of_all_zeros_kept(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    weights, attention = (w_q, w_k, w_v, w_o), softmax_is(largest_of_all_zeros_kept)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS, "ohdearquant/lattice#373")
def cross_fill_beaten(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Your fill value is finite and too small: where the allowed scores are lower than it, the
    closed keys win. -inf is lower than every score."""
    weights, attention = (w_q, w_k, w_v, w_o), softmax_is(earlier.fill_too_small)
    return other(x, memory, weights, n_heads, memory_allowed, attention=attention)


@wrong(CROSS)
def pair_returned(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """You return a pair; the result is the output alone, one array."""
    out = other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)
    return out, np.zeros(out.shape[:-1])


@wrong(CROSS, "lucidrains/reformer-pytorch#90")
def x_and_memory_joined(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """The queries see x as well as memory. In cross-attention keys and values come from memory
    alone; the decoder's own tokens have their own self-attention."""
    both = np.concatenate([x, memory], axis=-2)
    if memory_allowed is not None:
        own = np.ones((*memory_allowed.shape[:-1], x.shape[-2]), dtype=bool)
        memory_allowed = np.concatenate([own, memory_allowed], axis=-1)
    return other(x, both, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


@wrong(CROSS)
def cross_wants_one_batch_axis(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    """Your function wants exactly one batch axis. Batch axes may be absent, or several: take
    them with *batch, seq, d_model = x.shape, and count axes from the back."""
    n_batch, seq, d_model = x.shape
    x = x.reshape(n_batch, seq, d_model)
    return other(x, memory, (w_q, w_k, w_v, w_o), n_heads, memory_allowed)


# attention_parameters ------------------------------------------------------------------


@wrong("attention_parameters")
def matrices_for_every_head(d_model, n_heads, bias=False):
    """You count full matrices for every head. The heads share out the columns of one: a head
    has d_model * d_head of its numbers, and there are d_model / d_head heads."""
    return n_heads * (4 * d_model**2 + (4 * d_model if bias else 0))


@wrong("attention_parameters", same_as="matrices_for_every_head")
def matrices_for_every_head_but_one_bias(d_model, n_heads, bias=False):
    return 4 * n_heads * d_model**2 + (4 * d_model if bias else 0)


@wrong("attention_parameters")
def projections_for_every_head(d_model, n_heads, bias=False):
    """You count w_q, w_k and w_v anew, in full size, for every head. The heads share out the
    columns of one matrix each."""
    return (3 * n_heads + 1) * (d_model**2 + (d_model if bias else 0))


@wrong("attention_parameters", same_as="projections_for_every_head")
def projections_for_every_head_but_one_bias(d_model, n_heads, bias=False):
    return (3 * n_heads + 1) * d_model**2 + (4 * d_model if bias else 0)


@wrong("attention_parameters")
def one_head_counted(d_model, n_heads, bias=False):
    """You count the projections of one head. All heads together have d_model columns."""
    d_head = d_model // n_heads
    return 4 * d_model * d_head + (4 * d_head if bias else 0)


@wrong("attention_parameters", same_as="one_head_counted")
def one_head_and_w_o(d_model, n_heads, bias=False):
    d_head = d_model // n_heads
    own = 3 * d_model * d_head + (3 * d_head if bias else 0)
    return own + d_model**2 + (d_model if bias else 0)


@wrong("attention_parameters")
def squares_of_d_head(d_model, n_heads, bias=False):
    """You count d_head by d_head matrices, as if a head saw only its own slice of x. A head's
    projection takes all of x: d_model rows, d_head columns."""
    d_head = d_model // n_heads
    return 4 * n_heads * d_head**2 + (4 * d_model if bias else 0)


@wrong("attention_parameters", same_as="squares_of_d_head")
def squares_of_d_head_and_w_o(d_model, n_heads, bias=False):
    own = 3 * n_heads * (d_model // n_heads) ** 2
    return own + d_model**2 + (4 * d_model if bias else 0)


@wrong("attention_parameters")
def w_o_of_one_head(d_model, n_heads, bias=False):
    """w_o is counted with d_head rows. It takes the heads side by side, which are d_model
    numbers, so it has d_model rows."""
    own = 3 * d_model**2 + d_model // n_heads * d_model
    return own + (4 * d_model if bias else 0)


@wrong("attention_parameters")
def w_o_not_counted(d_model, n_heads, bias=False):
    """Three matrices are counted; the fourth is w_o, which mixes the heads."""
    return 3 * d_model**2 + (3 * d_model if bias else 0)


@wrong("attention_parameters")
def biases_not_counted(d_model, n_heads, bias=False):
    """The biases are missing: with bias=True each of the four products adds a vector of length
    d_model."""
    return 4 * d_model**2


@wrong("attention_parameters")
def biases_always_counted(d_model, n_heads, bias=False):
    """The biases are counted whatever `bias` says; without it there are none."""
    return 4 * d_model**2 + 4 * d_model


@wrong("attention_parameters")
def three_biases(d_model, n_heads, bias=False):
    """You count three biases; w_o has one as well."""
    return 4 * d_model**2 + (3 * d_model if bias else 0)


@wrong("attention_parameters")
def one_bias(d_model, n_heads, bias=False):
    """You count one bias; each of the four products has its own."""
    return 4 * d_model**2 + (d_model if bias else 0)


@wrong("attention_parameters")
def biases_of_length_one(d_model, n_heads, bias=False):
    """A bias is counted as one number; it is a vector of length d_model."""
    return 4 * d_model**2 + (4 if bias else 0)


@wrong("attention_parameters")
def biases_for_every_head(d_model, n_heads, bias=False):
    """You count biases of length d_model for every head. All heads together have d_model
    columns, and so one vector of that length for each product."""
    return 4 * d_model**2 + (4 * d_model * n_heads if bias else 0)


@wrong("attention_parameters", same_as="biases_for_every_head")
def biases_for_every_head_but_one_of_w_o(d_model, n_heads, bias=False):
    return 4 * d_model**2 + ((3 * n_heads + 1) * d_model if bias else 0)


@wrong("attention_parameters")
def biases_of_one_head(d_model, n_heads, bias=False):
    """You count biases of length d_head. The product has d_model columns, and so has its
    bias."""
    return 4 * d_model**2 + (4 * (d_model // n_heads) if bias else 0)


@wrong("attention_parameters")
def not_an_integer(d_model, n_heads, bias=False):
    """The number is right, but it is a float; a division / makes one. Count in whole numbers,
    with //."""
    return 4.0 * d_model * d_model + (4 * d_model if bias else 0)


@wrong("attention_parameters")
def block_counted(d_model, n_heads, bias=False):
    """You count the MLP of a decoder block as well; here it is the attention alone."""
    return 12 * d_model**2 + (9 * d_model if bias else 0)


@wrong("attention_parameters")
def one_matrix_counted(d_model, n_heads, bias=False):
    """You count one matrix; there are four: w_q, w_k, w_v and w_o."""
    return d_model**2 + (d_model if bias else 0)
