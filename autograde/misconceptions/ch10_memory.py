"""Wrong answers to chapter 10."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.reference import ch10_memory as reference
from autograde.reference.ch03_causal_mask import causal_mask, masked_attention

# merge_softmax -------------------------------------------------------------------------


def scales(a, b):
    """m, and what the sums of either state are multiplied by; NaN where both are empty."""
    m = np.maximum(a[0], b[0])
    with np.errstate(all="ignore"):
        return m, np.exp(a[0] - m), np.exp(b[0] - m)


def combined(m, scale_a, a, scale_b, b):
    """Sums and outputs, each multiplied by its state's scale, and added."""
    with np.errstate(all="ignore"):
        o = scale_a[..., None] * a[2] + scale_b[..., None] * b[2]
        return m, scale_a * a[1] + scale_b * b[1], o


def safe_scales(a, b):
    """As `scales`, but 0 for an empty state."""
    m, scale_a, scale_b = scales(a, b)
    return m, np.nan_to_num(scale_a), np.nan_to_num(scale_b)


@wrong("merge_softmax")
def added_as_they_are(a, b):
    """Sums and outputs are added as they are. Each is measured against the maximum of its own
    group, so they must first be measured against the common one."""
    return np.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]


@wrong("merge_softmax")
def only_the_first_rescaled(a, b):
    """Only the first state is measured anew, the second is added as it is. That is right when b
    was made with the common maximum; here b has a maximum of its own."""
    m, scale_a, _ = safe_scales(a, b)
    return combined(m, scale_a, a, np.ones_like(m), b)


@wrong("merge_softmax")
def only_the_second_rescaled(a, b):
    """Only the second state is measured anew, the first is added as it is: when the maximum
    rises, everything from before must shrink."""
    m, _, scale_b = safe_scales(a, b)
    return combined(m, np.ones_like(m), a, scale_b, b)


@wrong("merge_softmax")
def output_not_rescaled(a, b):
    """The sums l are measured anew, the outputs o are not: o is a sum of the same
    exponentials, and needs the same factors."""
    m, scale_a, scale_b = safe_scales(a, b)
    return m, scale_a * a[1] + scale_b * b[1], a[2] + b[2]


@wrong("merge_softmax")
def sum_not_rescaled(a, b):
    """The outputs o are measured anew, the sums l are not: l is a sum of the same
    exponentials, and needs the same factors."""
    m, scale_a, scale_b = safe_scales(a, b)
    return m, a[1] + b[1], combined(m, scale_a, a, scale_b, b)[2]


@wrong("merge_softmax")
def rescaled_upside_down(a, b):
    """The factors are upside down: exp(m - m_a) is 1 or more, and makes the group with the
    smaller scores count for more. It should count for less."""
    m, _, _ = scales(a, b)
    with np.errstate(all="ignore"):
        scale_a, scale_b = np.exp(m - a[0]), np.exp(m - b[0])
        return combined(m, scale_a, a, scale_b, b)


@wrong("merge_softmax", same_as="rescaled_upside_down")
def rescaled_upside_down_empty_ones_guarded(a, b):
    m, _, _ = scales(a, b)
    with np.errstate(all="ignore"):
        scale_a, scale_b = (
            np.where(np.isneginf(part), 0, np.exp(m - part)) for part in (a[0], b[0])
        )
    return combined(m, scale_a, a, scale_b, b)


@wrong("merge_softmax")
def maximum_of_the_second(a, b):
    """The maximum of b is taken for that of both groups. Where a has the larger one, the
    exponentials grow beyond 1, and may overflow."""
    m = b[0]
    with np.errstate(all="ignore"):
        scale = np.exp(a[0] - np.where(np.isneginf(m), 0, m))
        return m, scale * a[1] + b[1], scale[..., None] * a[2] + b[2]


@wrong("merge_softmax")
def scales_change_places(a, b):
    """Each state is multiplied by the factor of the other one: exp(m_a - m) belongs to the sums
    that were measured against m_a."""
    m, scale_a, scale_b = scales(a, b)
    return combined(m, scale_b, a, scale_a, b)


@wrong("merge_softmax")
def two_empty_states_are_nan(a, b):
    """A query that is empty in both states gets NaN: both maxima are -inf, and -inf - -inf is NaN.
    Subtract something finite there; the maximum that you return is still -inf."""
    m, scale_a, scale_b = scales(a, b)
    return combined(m, scale_a, a, scale_b, b)


@wrong("merge_softmax", same_as="two_empty_states_are_nan")
def only_whole_states_taken_for_empty(a, b):
    if np.isneginf(a[0]).all():
        return b
    if np.isneginf(b[0]).all():
        return a
    return two_empty_states_are_nan(a, b)


@wrong("merge_softmax", "Dao-AILab/flash-attention#2082")
def empty_maximum_becomes_zero(a, b):
    """The maximum of two empty states comes back as a finite number. It may stand in for -inf
    inside the exponent, but kept as the maximum it makes later keys with low scores vanish."""
    m, scale_a, scale_b = safe_scales(a, b)
    m = np.where(np.isneginf(m), 0, m)
    return combined(m, scale_a, a, scale_b, b)


@wrong("merge_softmax", same_as="empty_maximum_becomes_zero")
def nan_and_inf_made_numbers(a, b):
    return tuple(np.nan_to_num(part) for part in two_empty_states_are_nan(a, b))


@wrong("merge_softmax", "flashinfer-ai/flashinfer#4267")
def maximum_never_below_a_bound(a, b):
    """Your maximum never falls below some bound, 0 or another finite number. Scores may be lower
    than any bound: the only neutral start for a maximum is -inf."""
    m = np.maximum(np.maximum(a[0], b[0]), 0)
    return combined(m, np.exp(a[0] - m), a, np.exp(b[0] - m), b)


@wrong("merge_softmax", same_as="maximum_never_below_a_bound")
def maximum_never_below_minus_1e4(a, b):
    m = np.maximum(np.maximum(a[0], b[0]), -1e4)
    return combined(m, np.exp(a[0] - m), a, np.exp(b[0] - m), b)


@wrong("merge_softmax", same_as="maximum_never_below_a_bound")
def maximum_never_below_minus_1e9(a, b):
    m = np.maximum(np.maximum(a[0], b[0]), -1e9)
    return combined(m, np.exp(a[0] - m), a, np.exp(b[0] - m), b)


@wrong("merge_softmax")
def output_already_divided(a, b):
    """The output comes back divided by the sum. In a state o is not normalised; the division is
    done once, when all keys have been seen."""
    m, total, o = reference.merge_softmax(a, b)
    with np.errstate(all="ignore"):
        return m, total, o / total[..., None]


@wrong("merge_softmax", same_as="output_already_divided")
def output_already_divided_where_possible(a, b):
    m, total, o = reference.merge_softmax(a, b)
    return m, total, o / np.where(total == 0, 1, total)[..., None]


@wrong("merge_softmax")
def outputs_taken_for_means(a, b):
    """The outputs are multiplied by their sums, as if o were a mean. o is a sum already:
    multiplied by l it counts the keys of a group twice."""
    m, scale_a, scale_b = safe_scales(a, b)
    total = scale_a * a[1] + scale_b * b[1]
    o = (scale_a * a[1])[..., None] * a[2] + (scale_b * b[1])[..., None] * b[2]
    return m, total, o


@wrong("merge_softmax")
def outputs_averaged(a, b):
    """The output is a mean of the two outputs, weighted by the sums. In a state o is not
    normalised, so nothing is divided before all keys have been seen."""
    m, scale_a, scale_b = safe_scales(a, b)
    total = scale_a * a[1] + scale_b * b[1]
    o = (scale_a * a[1])[..., None] * a[2] + (scale_b * b[1])[..., None] * b[2]
    with np.errstate(all="ignore"):
        return m, total, o / total[..., None]


@wrong("merge_softmax")
def exponentials_of_maxima(a, b):
    """The sums are multiplied by exp(m_a) and exp(m_b): then they are measured against 0, not
    against the maximum that you return, and large maxima overflow."""
    m = np.maximum(a[0], b[0])
    with np.errstate(all="ignore"):
        return combined(m, np.exp(a[0]), a, np.exp(b[0]), b)


@wrong("merge_softmax")
def exponentials_then_divided(a, b):
    """On paper your factors are right: exp(m_a) / exp(m). But exp of a large maximum overflows,
    and of a low one underflows. Subtract first, and take the exponential of the difference."""
    m = np.maximum(a[0], b[0])
    with np.errstate(all="ignore"):
        return combined(m, np.exp(a[0]) / np.exp(m), a, np.exp(b[0]) / np.exp(m), b)


@wrong("merge_softmax")
def smaller_maximum(a, b):
    """You keep the smaller of the two maxima: the exponents become positive, and overflow. The
    maximum of all the keys is the larger one."""
    m = np.minimum(a[0], b[0])
    with np.errstate(all="ignore"):
        return combined(m, np.exp(a[0] - m), a, np.exp(b[0] - m), b)


@wrong("merge_softmax")
def one_maximum_for_all(a, b):
    """One maximum is taken over all queries. Each query has its own; measured against another
    query's much larger one, its sums underflow to 0."""
    m = np.full_like(np.asarray(a[0]), max(np.max(a[0]), np.max(b[0])))
    with np.errstate(all="ignore"):
        return combined(m, np.exp(a[0] - m), a, np.exp(b[0] - m), b)


@wrong("merge_softmax", same_as="one_maximum_for_all")
def one_maximum_for_all_empty_ones_guarded(a, b):
    m = max(np.max(a[0]), np.max(b[0]))
    m = np.full_like(np.asarray(a[0]), 0 if np.isneginf(m) else m)
    return combined(m, np.exp(a[0] - m), a, np.exp(b[0] - m), b)


@wrong("merge_softmax")
def axis_forgotten(a, b):
    """The factors have no axis for d_value: they line up with the columns of o, not with its
    rows. Give them one more axis at the end, [..., None]."""
    m, scale_a, scale_b = safe_scales(a, b)
    return m, scale_a * a[1] + scale_b * b[1], scale_a * a[2] + scale_b * b[2]


@wrong("merge_softmax")
def log_sum_exp_returned(a, b):
    """The first part is the logarithm of the sum of exponentials, not the maximum. The sum l and
    the output o are measured against the maximum."""
    m, total, o = reference.merge_softmax(a, b)
    with np.errstate(all="ignore"):
        return m + np.log(total), total, o


@wrong("merge_softmax")
def log_sum_exp_and_mean(a, b):
    """What comes back says as much: the log-sum-exp, 1, and the finished mean of the values. But
    a state is the maximum, and the sum and the output measured against it, undivided."""
    m, total, o = reference.merge_softmax(a, b)
    there = np.where(total == 0, 1, total)
    return m + np.log(there), np.where(total == 0, 0.0, 1.0), o / there[..., None]


@wrong("merge_softmax")
def maximum_and_sum_change_places(a, b):
    """The parts come back in another order: it is (m, l, o)."""
    m, total, o = reference.merge_softmax(a, b)
    return total, m, o


@wrong("merge_softmax")
def maximum_forgotten(a, b):
    """Two parts are returned, and there are three: (m, l, o). Without m nobody can merge the
    result with a further group."""
    return reference.merge_softmax(a, b)[1:]


@wrong("merge_softmax")
def writes_into_the_first_state(a, b):
    """The first state is changed in place: the caller still needs it. Make new arrays."""
    m, total, o = reference.merge_softmax(a, b)
    a[0][...], a[1][...], a[2][...] = m, total, o
    return a


# flash_attention -----------------------------------------------------------------------


def seen(query, key, n_query, n_key):
    """The causal mask of one block, aligned at the bottom right."""
    return key <= query + n_key - n_query


def future(query, key, shift, blocks):
    """Does nobody see anything of this block?"""
    return key[0] > query[-1, 0] + shift


def nothing_is_skipped(query, key, shift, blocks):
    return False


def block_state(scores, v):
    """The state of one block; of queries that see nothing in it, the empty state."""
    m = scores.max(axis=-1)
    weights = np.exp(scores - np.where(np.isneginf(m), 0, m)[..., None])
    return m, weights.sum(axis=-1), weights @ v


def divided(state):
    """The output; 0 where nothing was seen."""
    _, total, o = state
    return o / np.where(total == 0, 1, total)[..., None]


def plainly_divided(state):
    _, total, o = state
    with np.errstate(all="ignore"):
        return o / total[..., None]


def tiled(q, k, v, block_query, block_key, causal=True, *, see=seen, skip=None, merge=None,
          state_of=block_state, lowest=-np.inf, fill=-np.inf, finish=divided,
          turn=lambda k: np.swapaxes(k, -2, -1), scale=None, queries=None, keys=None,
          added=False):  # fmt: skip
    """The tiled loop, with a place for each mistake. queries, keys: how many to look at."""
    merge = merge or reference.merge_softmax
    skip = skip or (future if see is seen else nothing_is_skipped)
    n_query, n_key = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    q = q * (q.shape[-1] ** -0.5 if scale is None else scale)
    for first in range(0, n_query if queries is None else queries, block_query):
        query = np.arange(first, min(first + block_query, n_query))[:, None]
        nothing = np.zeros(q[..., query[:, 0], :].shape[:-1])
        state = nothing + lowest, nothing, np.zeros(out[..., query[:, 0], :].shape)
        for left in range(0, n_key if keys is None else keys, block_key):
            key = np.arange(left, min(left + block_key, n_key))
            if causal and skip(query, key, n_key - n_query, (block_query, block_key)):
                continue
            scores = q[..., query[:, 0], :] @ turn(k[..., key, :])
            allowed = see(query, key, n_query, n_key) if causal else True
            closed = scores + fill if added else fill
            scores = np.where(allowed, scores, closed)
            state = merge(state, state_of(scores, v[..., key, :]))
        out[..., query[:, 0], :] = finish(state)
    return out


@wrong("flash_attention")
def whole_matrix(q, k, v, block_query, block_key, causal=True):
    """The output is right, but something with an entry for every query and every key is held at
    once: all the scores, for instance. Never hold more than one block of them."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    allowed = causal_mask(n_query, n_key) if causal else np.ones((1, 1), dtype=bool)
    return masked_attention(q, k, v, allowed)[0]


@wrong("flash_attention")
def whole_mask(q, k, v, block_query, block_key, causal=True):
    """The output is right, and not all scores are held at once; but another array, the mask it
    seems, has an entry for each query and key. Make each block's mask when it is its turn."""
    allowed = causal_mask(q.shape[-2], k.shape[-2])

    def see(query, key, *sizes):
        return allowed[query, key]

    return tiled(q, k, v, block_query, block_key, causal, see=see, skip=future)


@wrong("flash_attention", same_as="whole_mask")
def whole_mask_in_numbers(q, k, v, block_query, block_key, causal=True):
    n_query, n_key = q.shape[-2], k.shape[-2]
    positions = np.arange(n_key) - np.arange(n_query)[:, None] if causal else np.zeros((1, 1))

    def see(query, key, *sizes):
        return positions[query, key] <= n_key - n_query

    return tiled(q, k, v, block_query, block_key, causal, see=see, skip=future)


@wrong("flash_attention")
def all_keys_at_once(q, k, v, block_query, block_key, causal=True):
    """The queries are cut into blocks; but something with an entry for each query of a block and
    every key is held at once, the scores it seems. Cut the keys into blocks, too."""
    return tiled(q, k, v, block_query, k.shape[-2], causal)


@wrong("flash_attention")
def all_queries_at_once(q, k, v, block_query, block_key, causal=True):
    """The keys are cut into blocks; but something with an entry for every query and each key of
    a block is held at once, the scores it seems. Cut the queries into blocks, too."""
    return tiled(q, k, v, q.shape[-2], block_key, causal)


@wrong("flash_attention")
def old_state_not_rescaled(q, k, v, block_query, block_key, causal=True):
    """When a block brings a larger maximum, the sum and the output of the blocks before it must
    be measured against it, too: multiply both by exp(old maximum - new maximum)."""

    def merge(old, new):
        m, _, scale = safe_scales(old, new)
        return combined(m, np.ones_like(m), old, scale, new)

    return tiled(q, k, v, block_query, block_key, causal, merge=merge)


@wrong("flash_attention")
def output_of_old_blocks_not_rescaled(q, k, v, block_query, block_key, causal=True):
    """When a block brings a larger maximum, you measure the old sum against it, but not the old
    output: both are sums of the same exponentials, and both need the factor."""

    def merge(old, new):
        m, scale_old, scale = safe_scales(old, new)
        return m, scale_old * old[1] + scale * new[1], old[2] + scale[..., None] * new[2]

    return tiled(q, k, v, block_query, block_key, causal, merge=merge)


@wrong("flash_attention", "tile-ai/tilelang#1148")
def maximum_of_the_last_block(q, k, v, block_query, block_key, causal=True):
    """Everything is measured against the maximum of the newest block, not against the largest so
    far. On paper that cancels; but when a block has low scores, the factor for the old ones
    overflows."""

    def merge(old, new):
        m = np.where(new[1] > 0, new[0], old[0])
        with np.errstate(all="ignore"):
            scale = np.where(old[1] > 0, np.exp(old[0] - m), 0)
            return combined(m, scale, old, np.ones_like(m), new)

    return tiled(q, k, v, block_query, block_key, causal, merge=merge)


@wrong("flash_attention")
def states_added(q, k, v, block_query, block_key, causal=True):
    """Sums and outputs of the blocks are added as they are, although each block has a maximum
    of its own. merge_softmax measures them against a common one."""
    return tiled(q, k, v, block_query, block_key, causal, merge=added_as_they_are)


@wrong("flash_attention")
def rescaled_the_wrong_way(q, k, v, block_query, block_key, causal=True):
    """The factor for the older blocks is upside down: when the maximum rises they must shrink,
    by exp(old maximum - new maximum)."""

    def merge(old, new):
        m, _, scale = safe_scales(old, new)
        with np.errstate(all="ignore"):
            return combined(m, np.where(old[1] > 0, np.exp(m - old[0]), 0), old, scale, new)

    return tiled(q, k, v, block_query, block_key, causal, merge=merge)


def normalised(scores, v):
    m, total, o = block_state(scores, v)
    return m, total, o / np.where(total == 0, 1, total)[..., None]


@wrong("flash_attention")
def means_of_blocks_averaged(q, k, v, block_query, block_key, causal=True):
    """Each block gets a softmax of its own, and the results are averaged. A block whose scores are
    low would then count as much as one whose scores are high; one softmax runs over all keys."""

    def merge(old, new):
        return old[0], old[1] + (new[1] > 0), old[2] + new[2]

    return tiled(q, k, v, block_query, block_key, causal, merge=merge, state_of=normalised)


@wrong("flash_attention")
def means_of_blocks_added(q, k, v, block_query, block_key, causal=True):
    """Each block gets a softmax of its own, and the results are added: the weights of a query add
    up to the number of its blocks. One softmax runs over all keys."""

    def merge(old, new):
        return old[0], old[1] + (new[1] > 0), old[2] + new[2]

    return tiled(q, k, v, block_query, block_key, causal, merge=merge, state_of=normalised,
                 finish=lambda state: state[2])  # fmt: skip


@wrong("flash_attention")
def never_divided(q, k, v, block_query, block_key, causal=True):
    """The output is not divided by the sum of the exponentials; that is the last step, when all
    key blocks have been seen."""
    return tiled(q, k, v, block_query, block_key, causal, finish=lambda state: state[2])


@wrong("flash_attention")
def last_blocks_missing(q, k, v, block_query, block_key, causal=True):
    """The blocks at the end that are not full are left out: n // block counts the full ones only.
    range(0, n, block) reaches them all."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    whole = n_query // block_query * block_query, n_key // block_key * block_key
    return tiled(q, k, v, block_query, block_key, causal, queries=whole[0], keys=whole[1])


@wrong("flash_attention", same_as="last_blocks_missing")
def last_block_of_keys_missing(q, k, v, block_query, block_key, causal=True):
    return tiled(q, k, v, block_query, block_key, causal, keys=k.shape[-2] // block_key * block_key)


@wrong("flash_attention", same_as="last_blocks_missing")
def last_block_of_queries_missing(q, k, v, block_query, block_key, causal=True):
    whole = q.shape[-2] // block_query * block_query
    return tiled(q, k, v, block_query, block_key, causal, queries=whole)


@wrong("flash_attention", "FluxML/NNkernels.jl#16")
def padded_keys_take_part(q, k, v, block_query, block_key, causal=True):
    """The last block of keys is filled up with zeros, and these take part: their scores are 0,
    and exp(0) is 1. Close them, or cut the block off at the last key."""
    n_query, n_key = q.shape[-2], k.shape[-2]
    more = [(0, 0)] * (k.ndim - 2) + [(0, -n_key % block_key), (0, 0)]
    padded = np.pad(k, more), np.pad(v, more)

    def see(query, key, *sizes):
        return seen(query, key, n_query, n_key)

    return tiled(q, *padded, block_query, block_key, causal, see=see)


@wrong("flash_attention", "pytorch/pytorch#144858")
def aligned_at_the_top_left(q, k, v, block_query, block_key, causal=True):
    """The mask is aligned at the top left, j <= i. With more keys than queries the newest query
    must see every key: query i stands at position i + n_key - n_query."""
    return tiled(q, k, v, block_query, block_key, causal, see=lambda i, j, *sizes: j <= i)


@wrong("flash_attention")
def shift_of_the_wrong_sign(q, k, v, block_query, block_key, causal=True):
    """The shift between queries and keys has the wrong sign: query i stands at position
    i + n_key - n_query."""

    def see(query, key, n_query, n_key):
        return key <= query + n_query - n_key

    return tiled(q, k, v, block_query, block_key, causal, see=see)


@wrong("flash_attention")
def skipped_as_if_square(q, k, v, block_query, block_key, causal=True):
    """Blocks are skipped as if queries and keys began at the same position. With more keys than
    queries, a query sees keys with larger numbers than its own."""

    def skip(query, key, *others):
        return key[0] > query[-1, 0]

    return tiled(q, k, v, block_query, block_key, causal, skip=skip)


@wrong("flash_attention")
def skipped_by_block_number(q, k, v, block_query, block_key, causal=True):
    """Blocks are skipped by their numbers, but blocks of queries and of keys differ in size (or
    do not begin at the same position). Compare positions: the block's first key and last query."""

    def skip(query, key, shift, blocks):
        return key[0] // blocks[1] > query[0, 0] // blocks[0]

    return tiled(q, k, v, block_query, block_key, causal, skip=skip)


@wrong("flash_attention")
def skipped_by_the_first_query(q, k, v, block_query, block_key, causal=True):
    """Blocks are skipped although some of their queries see something: the last query of a block
    sees most. Skip a block only when its first key lies after the last query."""

    def skip(query, key, shift, blocks):
        return key[0] > query[0, 0] + shift

    return tiled(q, k, v, block_query, block_key, causal, skip=skip)


@wrong("flash_attention")
def partial_blocks_skipped(q, k, v, block_query, block_key, causal=True):
    """Blocks that are only partly in the future are skipped as a whole: their queries lose keys
    that they may see. Only a block that is all future is skipped."""

    def skip(query, key, shift, blocks):
        return key[-1] > query[0, 0] + shift

    return tiled(q, k, v, block_query, block_key, causal, skip=skip)


@wrong("flash_attention")
def partial_blocks_left_open(q, k, v, block_query, block_key, causal=True):
    """Whole blocks of the future are skipped, but in a block that is partly in the future
    everything is open. There the scores need the mask."""

    def see(*positions):
        return True

    return tiled(q, k, v, block_query, block_key, causal, see=see, skip=future)


@wrong("flash_attention")
def triangle_in_each_block(q, k, v, block_query, block_key, causal=True):
    """Each block gets a triangle of its own, as if it began at position 0. Where a block lies
    counts: compare the positions of its queries and keys in the whole sequence."""

    def see(query, key, *sizes):
        return key - key[0] <= query - query[0]

    return tiled(q, k, v, block_query, block_key, causal, see=see, skip=future)


@wrong("flash_attention", same_as="triangle_in_each_block")
def triangle_in_each_block_nothing_skipped(q, k, v, block_query, block_key, causal=True):
    def see(query, key, *sizes):
        return key - key[0] <= query - query[0]

    return tiled(q, k, v, block_query, block_key, causal, see=see)


@wrong("flash_attention")
def always_causal(q, k, v, block_query, block_key, causal=True):
    """`causal` has no effect: the future is closed even with causal=False."""
    return tiled(q, k, v, block_query, block_key, True)


@wrong("flash_attention")
def never_causal(q, k, v, block_query, block_key, causal=True):
    """The future is open with causal=True as well: `causal` has no effect."""
    return tiled(q, k, v, block_query, block_key, False)


@wrong("flash_attention")
def not_causal_by_default(q, k, v, block_query, block_key, causal=False):
    """Without the argument the mask is causal; yours is only when it is asked for. The signature
    says causal=True."""
    return tiled(q, k, v, block_query, block_key, causal)


@wrong("flash_attention", "pbloem/former#10")
def does_not_see_itself(q, k, v, block_query, block_key, causal=True):
    """The diagonal is closed, too: a query may see the key at its own position."""
    return tiled(
        q, k, v, block_query, block_key, causal, see=lambda i, j, n, m: j < i + m - n
    )  # fmt: skip


@wrong("flash_attention", "Dao-AILab/flash-attention#2082")
def maximum_starts_at_zero(q, k, v, block_query, block_key, causal=True):
    """Where all scores are far below 0 your output is lost: the running maximum is 0 there, or
    another number above the scores, and all exponentials underflow. It starts at -inf."""
    return tiled(q, k, v, block_query, block_key, causal, lowest=0.0, finish=plainly_divided)


@wrong("flash_attention", same_as="maximum_starts_at_zero")
def maximum_starts_at_zero_zeros_kept(q, k, v, block_query, block_key, causal=True):
    return tiled(q, k, v, block_query, block_key, causal, lowest=0.0)


@wrong("flash_attention", same_as="maximum_starts_at_zero")
def maximum_starts_at_minus_ten_thousand(q, k, v, block_query, block_key, causal=True):
    return tiled(q, k, v, block_query, block_key, causal, lowest=-1e4)


@wrong("flash_attention", "ohdearquant/lattice#373")
def fill_is_beaten(q, k, v, block_query, block_key, causal=True):
    """Closed scores are filled with a finite number that is too high: where the allowed scores
    are lower still, the future wins. -inf is lower than every score."""
    return tiled(q, k, v, block_query, block_key, causal, fill=-1e4)


@wrong("flash_attention", same_as="fill_is_beaten")
def fill_is_beaten_nothing_skipped(q, k, v, block_query, block_key, causal=True):
    return tiled(
        q, k, v, block_query, block_key, causal, fill=-1e4, skip=nothing_is_skipped
    )  # fmt: skip


@wrong("flash_attention")
def blind_queries_get_a_mean(q, k, v, block_query, block_key, causal=True):
    """A query that sees no key gets a mixture of values that are closed to it: a finite number
    stands for -inf, and such scores share the weight among themselves. It should get zeros."""
    return tiled(q, k, v, block_query, block_key, causal, fill=-1e9)


@wrong("flash_attention", same_as="blind_queries_get_a_mean")
def blind_queries_get_a_mean_nothing_skipped(q, k, v, block_query, block_key, causal=True):
    return tiled(
        q, k, v, block_query, block_key, causal, fill=-1e9, skip=nothing_is_skipped
    )  # fmt: skip


@wrong("flash_attention", same_as="blind_queries_get_a_mean")
def blind_queries_get_a_softmax(q, k, v, block_query, block_key, causal=True):
    return tiled(
        q, k, v, block_query, block_key, causal, fill=-1e9, added=True, skip=nothing_is_skipped
    )  # fmt: skip


@wrong("flash_attention")
def blind_queries_get_nan(q, k, v, block_query, block_key, causal=True):
    """A query that sees no key gets NaN: 0 / 0, or -inf - -inf. It should get zeros."""

    def merge(a, b):
        return tuple(np.nan_to_num(part, neginf=-np.inf) for part in reference.merge_softmax(a, b))

    return tiled(q, k, v, block_query, block_key, causal, merge=merge, finish=plainly_divided)


def state_or_nan(scores, v):
    """-inf - -inf for queries that see nothing in the block."""
    m = scores.max(axis=-1)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - m[..., None])
        return m, weights.sum(axis=-1), weights @ v


@wrong("flash_attention")
def closed_rows_of_a_block_are_nan(q, k, v, block_query, block_key, causal=True):
    """A query may see something and yet nothing in one of the blocks. Its maximum there is -inf,
    and -inf - -inf is NaN, which then stays in the sums."""
    return tiled(q, k, v, block_query, block_key, causal, state_of=state_or_nan)


@wrong("flash_attention", same_as="closed_rows_of_a_block_are_nan")
def closed_rows_of_any_block_are_nan(q, k, v, block_query, block_key, causal=True):
    return tiled(q, k, v, block_query, block_key, causal, state_of=state_or_nan,
                 skip=nothing_is_skipped)  # fmt: skip


@wrong("flash_attention")
def scale_forgotten(q, k, v, block_query, block_key, causal=True):
    """The scores are not divided by the square root of d_head."""
    return tiled(q, k, v, block_query, block_key, causal, scale=1.0)


@wrong("flash_attention")
def divided_by_d_head(q, k, v, block_query, block_key, causal=True):
    """The scores are divided by d_head itself; it is its square root."""
    return tiled(q, k, v, block_query, block_key, causal, scale=1 / q.shape[-1])


@wrong("flash_attention")
def scaled_by_a_block_size(q, k, v, block_query, block_key, causal=True):
    """The scores are divided by the square root of a block's size. It is d_head, the length of
    the last axis; the size of the blocks must not show in the output."""
    return tiled(q, k, v, block_query, block_key, causal, scale=block_key**-0.5)


@wrong("flash_attention")
def nothing_is_subtracted(q, k, v, block_query, block_key, causal=True):
    """The exponentials are taken of the scores as they are, and summed over the blocks: that needs
    no maximum, but exp overflows for large scores, and underflows for low ones."""

    def state_of(scores, v):
        with np.errstate(all="ignore"):
            weights = np.exp(scores)
            return scores.max(axis=-1), weights.sum(axis=-1), weights @ v

    def merge(old, new):
        with np.errstate(all="ignore"):
            return old[0], old[1] + new[1], old[2] + new[2]

    def finish(state):
        with np.errstate(all="ignore"):
            return divided(state)

    return tiled(
        q, k, v, block_query, block_key, causal, state_of=state_of, merge=merge, finish=finish
    )  # fmt: skip


@wrong("flash_attention", same_as="nothing_is_subtracted")
def nothing_is_subtracted_or_guarded(q, k, v, block_query, block_key, causal=True):
    def state_of(scores, v):
        with np.errstate(all="ignore"):
            weights = np.exp(scores)
            return scores.max(axis=-1), weights.sum(axis=-1), weights @ v

    def merge(old, new):
        with np.errstate(all="ignore"):
            return old[0], old[1] + new[1], old[2] + new[2]

    return tiled(q, k, v, block_query, block_key, causal, state_of=state_of, merge=merge,
                 finish=plainly_divided)  # fmt: skip


@wrong("flash_attention", same_as="nothing_is_subtracted")
def nothing_is_subtracted_in_float64(q, k, v, block_query, block_key, causal=True):
    wide = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    return nothing_is_subtracted(*wide, block_query, block_key, causal)


@wrong("flash_attention")
def output_shaped_like_the_queries(q, k, v, block_query, block_key, causal=True):
    """The output is made with the shape of q. Its last axis is that of v: d_value may differ
    from d_head."""
    out = np.zeros_like(q)
    out[...] = tiled(q, k, v, block_query, block_key, causal)
    return out


@wrong("flash_attention", "HsiaoYetGun/ESIM#5")
def all_axes_reversed(q, k, v, block_query, block_key, causal=True):
    """.T reverses all axes, the batch axes included. Exchange the last two only:
    np.swapaxes(k, -2, -1)."""
    return tiled(q, k, v, block_query, block_key, causal, turn=np.transpose)


@wrong("flash_attention")
def queries_scaled_in_place(q, k, v, block_query, block_key, causal=True):
    """q is scaled in place: the caller's queries have changed afterwards. Write q = q / ...,
    which makes a new array."""
    q *= q.shape[-1] ** -0.5
    return tiled(q, k, v, block_query, block_key, causal, scale=1.0)


@wrong("flash_attention")
def keys_for_values(q, k, v, block_query, block_key, causal=True):
    """The weights multiply the keys; they belong to the values."""
    return tiled(q, k, k, block_query, block_key, causal)


# visible_blocks ------------------------------------------------------------------------


def up(n, block):
    """n / block, rounded up."""
    return -(-n // block)


def counted(n, block_query, block_key, visible):
    """The blocks, given by first and last query and first and last key, that are visible."""
    return sum(
        bool(visible(i, min(i + block_query, n) - 1, j, min(j + block_key, n) - 1))
        for i in range(0, n, block_query)
        for j in range(0, n, block_key)
    )


@wrong("visible_blocks")
def every_block(n, block_query, block_key):
    """These are all blocks, the ones in the future included. Those need not be computed."""
    return up(n, block_query) * up(n, block_key)


@wrong("visible_blocks")
def only_full_blocks(n, block_query, block_key):
    """Blocks that the diagonal cuts are missing: they are open in part, so they must be computed.
    Yours are those with every entry allowed."""
    return counted(n, block_query, block_key, lambda i, last_i, j, last_j: last_j <= i)


@wrong("visible_blocks")
def only_blocks_that_are_cut(n, block_query, block_key):
    """These are the blocks that the diagonal cuts, open in part. The blocks below them, open
    everywhere, must be computed as well."""
    return counted(
        n, block_query, block_key, lambda i, last_i, j, last_j: j <= last_i and i < last_j
    )


@wrong("visible_blocks")
def small_blocks_left_out(n, block_query, block_key):
    """The blocks at the end that are smaller than the others are left out: n // block counts
    the full ones only."""
    rows, columns = n // block_query, n // block_key
    last = [(i + 1) * block_query - 1 for i in range(rows)]
    return sum(min(columns, position // block_key + 1) for position in last)


@wrong("visible_blocks")
def triangular_number(n, block_query, block_key):
    """m (m + 1) / 2 is right for square blocks. When block_query and block_key differ, there are
    more or fewer of them."""
    rows = up(n, block_query)
    return rows * (rows + 1) // 2


@wrong("visible_blocks", same_as="triangular_number")
def triangular_number_of_columns(n, block_query, block_key):
    columns = up(n, block_key)
    return columns * (columns + 1) // 2


@wrong("visible_blocks", same_as="triangular_number")
def triangular_number_of_rows_and_columns(n, block_query, block_key):
    return up(n, block_query) * (up(n, block_key) + 1) // 2


@wrong("visible_blocks")
def triangular_number_of_full_blocks(n, block_query, block_key):
    """m (m + 1) / 2 with m = n // block: that leaves out the smaller blocks at the end, and it is
    right for square blocks only."""
    rows = n // block_query
    return rows * (rows + 1) // 2


@wrong("visible_blocks")
def below_the_diagonal(n, block_query, block_key):
    """The blocks on the diagonal are missing: they are open in part."""
    rows = up(n, block_query)
    return rows * (rows - 1) // 2


@wrong("visible_blocks")
def by_the_first_query(n, block_query, block_key):
    """You ask what the first query of a block sees. The last one sees more: a block counts when
    its first key is not after its last query."""
    return counted(n, block_query, block_key, lambda i, last_i, j, last_j: j <= i)


@wrong("visible_blocks")
def by_block_number(n, block_query, block_key):
    """The numbers of the blocks are compared. Blocks of queries and of keys differ in size:
    compare positions."""
    return counted(
        n, block_query, block_key, lambda i, last_i, j, _: j // block_key <= i // block_query
    )


@wrong("visible_blocks")
def one_key_too_early(n, block_query, block_key):
    """A query sees itself: a block whose first key stands at the position of the last query
    counts, too."""
    return counted(n, block_query, block_key, lambda i, last_i, j, last_j: j < last_i)


@wrong("visible_blocks")
def last_row_taken_for_a_full_one(n, block_query, block_key):
    """The last row of blocks is counted as if it were full: its last query, and some of its blocks
    of keys, would lie beyond the end of the sequence."""
    return sum((i + block_query - 1) // block_key + 1 for i in range(0, n, block_query))


@wrong("visible_blocks")
def one_query_too_many(n, block_query, block_key):
    """You ask what the first query of the next row of blocks sees, position start + block_query.
    The last query of this row stands one position earlier."""
    return sum(min(i + block_query, n) // block_key + 1 for i in range(0, n, block_query))


@wrong("visible_blocks", same_as="one_query_too_many")
def one_query_too_many_in_a_loop(n, block_query, block_key):
    return counted(n, block_query, block_key, lambda i, last_i, j, last_j: j <= last_i + 1)


@wrong("visible_blocks")
def fully_masked_blocks(n, block_query, block_key):
    """These are the blocks that can be skipped; asked for are the others."""
    return counted(n, block_query, block_key, lambda i, last_i, j, last_j: j > last_i)


@wrong("visible_blocks")
def rows_and_columns_exchanged(n, block_query, block_key):
    """Rows and columns have changed places. A block has block_query rows and block_key columns, and
    the open entries lie below the diagonal: key j <= query i."""
    return reference.visible_blocks(n, block_key, block_query)


@wrong("visible_blocks")
def entries_instead_of_blocks(n, block_query, block_key):
    """These are the open entries of the mask, n (n + 1) / 2 of them. Asked for are the blocks."""
    return n * (n + 1) // 2


@wrong("visible_blocks")
def area_divided(n, block_query, block_key):
    """You divide the number of open entries by the size of a block. A block that is open in part
    counts as a whole."""
    return up(n * (n + 1) // 2, block_query * block_key)


@wrong("visible_blocks")
def half_of_all_blocks(n, block_query, block_key):
    """Half of all blocks is too few: the blocks that the diagonal cuts count as a whole."""
    return up(n, block_query) * up(n, block_key) // 2


@wrong("visible_blocks", same_as="rows_and_columns_exchanged")
def upper_triangle(n, block_query, block_key):
    return counted(n, block_query, block_key, lambda i, last_i, j, last_j: last_j >= i)


@wrong("visible_blocks")
def as_a_fraction(n, block_query, block_key):
    """This is the share of the blocks that are visible, a number up to 1. Asked for is how many
    they are."""
    return reference.visible_blocks(n, block_query, block_key) / every_block(
        n, block_query, block_key
    )


@wrong("visible_blocks")
def count_as_a_float(n, block_query, block_key):
    """The number is right, but it is a float: a count is an int. // divides whole numbers, and
    math.ceil rounds up to one."""
    return float(reference.visible_blocks(n, block_query, block_key))
