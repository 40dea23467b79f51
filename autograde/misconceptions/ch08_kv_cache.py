"""Wrong answers to chapter 8."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.misconceptions import ch03_causal_mask as chapter3
from autograde.misconceptions import ch05_multi_head as chapter5
from autograde.misconceptions.ch05_multi_head import attend
from autograde.reference import ch08_kv_cache as reference
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax
from autograde.reference.ch05_multi_head import merge_heads, split_heads

# next_token_distribution ---------------------------------------------------------------

NTD = "next_token_distribution"


def ranking(logits):
    """Most likely first; of equals the lower index."""
    return np.argsort(-logits, kind="stable")


def ranked(logits, temperature=1.0):
    """The probabilities, most likely first."""
    scaled = np.sort(logits)[::-1] / temperature
    exponentials = np.exp(scaled - scaled[0])
    return exponentials / exponentials.sum()


def put_back(p, order):
    """Each probability where its token stands."""
    result = np.zeros_like(p)
    result[order] = p
    return result


def cut(logits, temperature, top_k, top_p, *, first=None, nucleus=None, order=ranking):
    """As it should be, but for the steps that are handed in."""
    if temperature == 0:
        temperature, top_k = 1.0, 1
    p = ranked(logits, temperature)
    if top_k is not None:
        p = (first or keep_first)(p, top_k)
    if top_p is not None:
        p = (nucleus or keep_nucleus)(p, top_p)
    with np.errstate(invalid="ignore"):
        return put_back(p / p.sum(), order(logits))


def keep_first(p, top_k):
    return np.where(np.arange(len(p)) < top_k, p, 0) / p[:top_k].sum()


def keep_nucleus(p, top_p):
    return np.where(np.cumsum(p) - p < top_p, p, 0)


@wrong(NTD, "rasbt/reasoning-from-scratch#164")
def crossing_token_dropped(logits, temperature=1.0, top_k=None, top_p=None):
    """The token with which the mass reaches top_p is dropped, so that less than top_p is kept, and
    nothing at all when the first token alone exceeds it. A token stays when the tokens *before* it
    have not reached top_p."""
    return cut(
        logits, temperature, top_k, top_p, nucleus=lambda p, m: np.where(np.cumsum(p) <= m, p, 0)
    )


@wrong(NTD, "fishaudio/fish-speech#1171", same_as="crossing_token_dropped")
def crossing_token_dropped_unless_first(logits, temperature=1.0, top_k=None, top_p=None):
    def nucleus(p, mass):
        keep = np.cumsum(p) <= mass
        keep[0] = True
        return np.where(keep, p, 0)

    return cut(logits, temperature, top_k, top_p, nucleus=nucleus)


@wrong(NTD, same_as="crossing_token_dropped")
def crossing_token_dropped_from_a_reversed_list(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return cut(logits, 0, None, None)
    return cut(
        logits, temperature, top_k, top_p,
        nucleus=lambda p, m: np.where(np.cumsum(p) <= m, p, 0),
        order=lambda z: np.argsort(z, kind="stable")[::-1],
    )  # fmt: skip


@wrong(NTD, same_as="crossing_token_dropped")
def crossing_token_dropped_unless_first_from_a_reversed_list(
    logits, temperature=1.0, top_k=None, top_p=None
):
    if temperature == 0:
        return cut(logits, 0, None, None)

    def nucleus(p, mass):
        return np.where((np.cumsum(p) <= mass) | (np.arange(len(p)) == 0), p, 0)

    def order(z):
        return np.argsort(z, kind="stable")[::-1]

    return cut(logits, temperature, top_k, top_p, nucleus=nucleus, order=order)


@wrong(NTD)
def one_token_more_than_needed(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p keeps one token too many: the one that crosses the threshold is the last to stay."""

    def nucleus(p, mass):
        return np.where(np.arange(len(p)) < np.searchsorted(np.cumsum(p), mass) + 2, p, 0)

    return cut(logits, temperature, top_k, top_p, nucleus=nucleus)


@wrong(NTD, "kingoflolz/mesh-transformer-jax#164")
def one_more_than_k(logits, temperature=1.0, top_k=None, top_p=None):
    """top_k keeps k + 1 tokens. Ranks count from 0, so that rank k is the first to go."""
    return cut(logits, temperature, top_k, top_p, first=lambda p, k: keep_first(p, k + 1))


@wrong(NTD)
def left_in_sorted_order(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities come out sorted, the largest first. Each belongs to a token, and has to go
    back to the index of that token."""
    return cut(logits, temperature, top_k, top_p, order=lambda z: np.arange(len(z)))


@wrong(NTD, "lucidrains/PaLM-rlhf-pytorch#60")
def put_back_the_wrong_way_round(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities land on the wrong tokens: `order[i]` is the token of rank i, and you use it
    as if it were the rank of token i."""
    return cut(logits, temperature, top_k, top_p, order=lambda z: np.argsort(ranking(z)))


@wrong(NTD)
def multiplied_by_the_temperature(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are multiplied by the temperature. They are divided by it: a high temperature
    makes the distribution flat."""
    inverse = 1 / temperature if temperature else 0
    return cut(logits, inverse, top_k, top_p)


@wrong(NTD, "RL-Align/RL-Kernel#81")
def temperature_twice(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are divided by the temperature twice."""
    return cut(logits, temperature**2, top_k, top_p)


@wrong(NTD)
def root_of_the_temperature(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are divided by the square root of the temperature; it is the temperature
    itself."""
    return cut(logits, temperature**0.5, top_k, top_p)


@wrong(NTD, "sameersingh/uci-statnlp#26")
def temperature_without_effect(logits, temperature=1.0, top_k=None, top_p=None):
    """The temperature has no effect on your result. It must act on the logits, before the
    softmax: to divide all probabilities and renormalise them cancels out."""
    return cut(logits, 1.0 if temperature else 0, top_k, top_p)


@wrong(NTD, same_as="temperature_without_effect")
def temperature_ignored(logits, temperature=1.0, top_k=None, top_p=None):
    return cut(logits, 1.0, top_k, top_p)


@wrong(NTD, same_as="temperature_without_effect")
def probabilities_divided(logits, temperature=1.0, top_k=None, top_p=None):
    with np.errstate(all="ignore"):
        p = cut(logits, 1.0, top_k, top_p) / temperature
        return p / p.sum()


@wrong(NTD, "ggml-org/llama.cpp#4091")
def temperature_after_the_cuts(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p is measured before the temperature acts. First the temperature, then the cuts, or the
    set that is kept is that of another distribution."""
    if temperature == 0:
        return reference.next_token_distribution(logits, 0)
    p = reference.next_token_distribution(logits, 1.0, top_k, top_p) ** (1 / temperature)
    return p / p.sum()


@wrong(NTD)
def zero_divides(logits, temperature=1.0, top_k=None, top_p=None):
    """Temperature 0 is divided by: infinities, and NaN. It means greedy, and needs a case of its
    own."""
    with np.errstate(all="ignore"):
        scaled = logits / temperature
        p = np.exp(scaled - scaled.max())
        p = p / p.sum()
    if temperature == 0:
        return p
    return cut(logits, temperature, top_k, top_p)


@wrong(NTD, same_as="zero_divides")
def zero_divides_as_a_number(logits, temperature=1.0, top_k=None, top_p=None):
    scale = 1.0 / temperature
    return cut(logits, 1 / scale, top_k, top_p)


@wrong(NTD)
def zero_taken_for_not_given(logits, temperature=1.0, top_k=None, top_p=None):
    """Temperature 0 does what temperature 1 does. It is a request of its own: all probability for
    the largest logit. (0 is false in Python.)"""
    return cut(logits, temperature or 1.0, top_k, top_p)


@wrong(NTD)
def equals_share_at_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """At temperature 0, equal largest logits share the probability. The first of them gets all of
    it."""
    if temperature == 0:
        p = (logits == logits.max()).astype(float)
        return p / p.sum()
    return cut(logits, temperature, top_k, top_p)


@wrong(NTD, same_as="equals_share_at_zero")
def zero_made_a_little_larger(logits, temperature=1.0, top_k=None, top_p=None):
    return cut(logits, max(temperature, 1e-8), top_k, top_p)


@wrong(NTD)
def last_of_the_largest(logits, temperature=1.0, top_k=None, top_p=None):
    """At temperature 0 the last of equal largest logits wins; it should be the first."""
    if temperature == 0:
        return put_back(np.eye(len(logits))[0], np.argsort(logits, kind="stable")[::-1])
    return cut(logits, temperature, top_k, top_p)


@wrong(NTD)
def equals_at_the_cut_kept(logits, temperature=1.0, top_k=None, top_p=None):
    """You keep every logit that is as large as the k-th largest: with equal logits these are more
    than k tokens. Of equals, those with the lower index come first."""
    if temperature == 0:
        return cut(logits, 0, 1, None)
    if top_k is not None:
        smallest = np.sort(logits)[::-1][min(top_k, len(logits)) - 1]
        logits = np.where(logits < smallest, -np.inf, logits)
    return cut(logits, temperature, None, top_p)


@wrong(NTD)
def dropped_logits_set_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits that top_k drops are set to 0, and e to the 0 is 1: they keep a share. -inf is
    the logit of a token that cannot come."""
    if temperature == 0:
        return cut(logits, 0, 1, None)
    if top_k is not None:
        logits = np.where(np.argsort(ranking(logits)) < top_k, logits, 0)
    return cut(logits, temperature, None, top_p)


@wrong(NTD)
def k_beyond_the_vocabulary(logits, temperature=1.0, top_k=None, top_p=None):
    """top_k may be larger than the vocabulary, and then keeps everything; your index points
    outside of the array."""
    if temperature and top_k is not None:
        np.sort(logits)[-top_k]
    return cut(logits, temperature, top_k, top_p)


@wrong(NTD)
def least_likely_kept(logits, temperature=1.0, top_k=None, top_p=None):
    """top_k keeps the k tokens with the *smallest* logits: np.argsort begins with the smallest."""
    if temperature == 0:
        return cut(logits, 0, 1, None)
    if top_k is not None:
        keep = np.isin(np.arange(len(logits)), np.argsort(logits, kind="stable")[:top_k])
        logits = np.where(keep, logits, -np.inf)
    with np.errstate(all="ignore"):
        return cut(logits, temperature, None, top_p)


@wrong(NTD)
def tail_kept(logits, temperature=1.0, top_k=None, top_p=None):
    """The mass of top_p is added up from the least likely token on, so that the tail is kept. It
    is added up from the most likely one."""

    def nucleus(p, mass):
        rising = p[::-1]
        return np.where(np.cumsum(rising) - rising < mass, rising, 0)[::-1]

    return cut(logits, temperature, top_k, top_p, nucleus=nucleus)


@wrong(NTD)
def nucleus_before_top_k(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p is measured before top_k cuts: it should be the mass of those that top_k leaves,
    renormalised."""
    if temperature == 0:
        return cut(logits, 0, None, None)
    p = ranked(logits, temperature)
    keep = np.ones(len(p), dtype=bool)
    if top_p is not None:
        keep &= np.cumsum(p) - p < top_p
    if top_k is not None:
        keep &= np.arange(len(p)) < top_k
    p = np.where(keep, p, 0)
    return put_back(p / p.sum(), ranking(logits))


@wrong(NTD)
def never_renormalised(logits, temperature=1.0, top_k=None, top_p=None):
    """What is left after a cut does not sum to 1. Divide by its sum."""
    if temperature == 0:
        return cut(logits, 0, None, None)
    p = ranked(logits, temperature)
    if top_k is not None:
        p = np.where(np.arange(len(p)) < top_k, p, 0)
    if top_p is not None:
        p = keep_nucleus(p / p.sum(), top_p) * p.sum()
    return put_back(p, ranking(logits))


@wrong(NTD, same_as="never_renormalised")
def never_renormalised_nor_between(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return cut(logits, 0, None, None)
    p = ranked(logits, temperature)
    if top_k is not None:
        p = np.where(np.arange(len(p)) < top_k, p, 0)
    if top_p is not None:
        p = keep_nucleus(p, top_p)
    return put_back(p, ranking(logits))


@wrong(NTD)
def nucleus_not_renormalised(logits, temperature=1.0, top_k=None, top_p=None):
    """What top_p leaves does not sum to 1. Divide by its sum, as after top_k."""
    if temperature == 0:
        return cut(logits, 0, None, None)
    p = cut(logits, temperature, top_k, None)[ranking(logits)]
    return put_back(p if top_p is None else keep_nucleus(p, top_p), ranking(logits))


@wrong(NTD)
def compared_with_single_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p is compared with the single probabilities. It is a mass: add them up, the most likely
    first, until they reach it."""
    return cut(
        logits, temperature, top_k, top_p,
        nucleus=lambda p, m: np.where((p >= m) | (np.arange(len(p)) == 0), p, 0),
    )  # fmt: skip


@wrong(NTD, same_as="compared_with_single_probabilities")
def share_of_the_largest(logits, temperature=1.0, top_k=None, top_p=None):
    return cut(
        logits, temperature, top_k, top_p, nucleus=lambda p, m: np.where(p >= m * p[0], p, 0)
    )


@wrong(NTD, same_as="compared_with_single_probabilities")
def compared_and_nothing_left(logits, temperature=1.0, top_k=None, top_p=None):
    return cut(logits, temperature, top_k, top_p, nucleus=lambda p, m: np.where(p >= m, p, 0))


@wrong(NTD)
def higher_index_first(logits, temperature=1.0, top_k=None, top_p=None):
    """Of equal logits you keep the one with the higher index: a sorted list turned round turns the
    equal ones round, too."""
    return cut(
        logits, temperature, top_k, top_p,
        order=lambda z: np.argsort(z, kind="stable")[::-1],
    )  # fmt: skip


@wrong(NTD, same_as="higher_index_first")
def higher_index_first_but_greedy(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return reference.next_token_distribution(logits, 0)
    return higher_index_first(logits, temperature, top_k, top_p)


@wrong(NTD)
def mass_never_reached(logits, temperature=1.0, top_k=None, top_p=None):
    """With top_p = 1 your function can keep a single token: rounded probabilities may add up to a
    little less than 1, then no sum reaches top_p, and np.argmax of nothing but False is 0."""

    def nucleus(p, mass):
        last = int(np.argmax(np.cumsum(p) >= mass))
        return np.where(np.arange(len(p)) <= last, p, 0)

    return cut(logits, temperature, top_k, top_p, nucleus=nucleus)


@wrong(NTD)
def logarithms_returned(logits, temperature=1.0, top_k=None, top_p=None):
    """These are the logarithms of the probabilities."""
    with np.errstate(divide="ignore"):
        return np.log(reference.next_token_distribution(logits, temperature, top_k, top_p))


@wrong(NTD)
def scaled_logits_returned(logits, temperature=1.0, top_k=None, top_p=None):
    """These are still logits. The softmax makes probabilities of them."""
    p = reference.next_token_distribution(logits, temperature, top_k, top_p)
    return np.where(p > 0, logits / (temperature or 1), -np.inf)


@wrong(NTD)
def exponentials_overflow(logits, temperature=1.0, top_k=None, top_p=None):
    """e to a large logit overflows, and inf / inf is NaN; far below zero all are 0, and 0 / 0 is
    NaN, too. Subtract the largest logit first."""
    with np.errstate(all="ignore"):
        if temperature == 0:
            return cut(logits, 0, None, None)
        p = np.exp(np.sort(logits)[::-1] / temperature)
        p = p / p.sum()
        if top_k is not None:
            p = keep_first(p, top_k)
        if top_p is not None:
            p = keep_nucleus(p, top_p)
        return put_back(p / p.sum(), ranking(logits))


@wrong(NTD, same_as="exponentials_overflow")
def exponentials_overflow_first(logits, temperature=1.0, top_k=None, top_p=None):
    with np.errstate(all="ignore"):
        p = np.exp(logits / (temperature or 1))
        p = p / p.sum()
        return reference.next_token_distribution(np.log(p), 1.0 if temperature else 0, top_k, top_p)


@wrong(NTD)
def softmax_of_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """The softmax is taken twice, the second time of probabilities: what was dropped, a 0, gets a
    share again."""
    p = np.exp(reference.next_token_distribution(logits, temperature, top_k, top_p))
    return p / p.sum()


@wrong(NTD)
def token_returned(logits, temperature=1.0, top_k=None, top_p=None):
    """You return a token. The exercise wants the whole distribution, one probability for each
    token; drawing from it comes later."""
    return int(np.argmax(logits))


@wrong(NTD)
def always_greedy(logits, temperature=1.0, top_k=None, top_p=None):
    """All probability goes to the largest logit, whatever the temperature is. That is right at
    temperature 0 only."""
    return cut(logits, 0, None, None)


@wrong(NTD)
def logits_divided_in_place(logits, temperature=1.0, top_k=None, top_p=None):
    """The caller's logits have changed after the call. `logits /= temperature` and
    `logits[...] = ...` write into the array that was passed in."""
    p = reference.next_token_distribution(logits, temperature, top_k, top_p)
    logits /= temperature or 1
    return p


@wrong(NTD, same_as="logits_divided_in_place")
def dropped_in_place(logits, temperature=1.0, top_k=None, top_p=None):
    p = reference.next_token_distribution(logits, temperature, top_k, top_p)
    if top_k is not None:
        logits[ranking(logits)[top_k:]] = -np.inf
    return p


@wrong(NTD)
def top_k_ignored(logits, temperature=1.0, top_k=None, top_p=None):
    """top_k has no effect on your result: every token keeps its share."""
    return cut(logits, temperature, None if temperature else 1, top_p)


@wrong(NTD)
def top_p_ignored(logits, temperature=1.0, top_k=None, top_p=None):
    """top_p has no effect on your result: every token that top_k leaves keeps its share."""
    return cut(logits, temperature, top_k, None)


@wrong(NTD)
def one_cut_or_the_other(logits, temperature=1.0, top_k=None, top_p=None):
    """Where both top_k and top_p are given, only one of them acts. Both do, one after the
    other."""
    return cut(logits, temperature, top_k, top_p if top_k is None else None)


@wrong(NTD, same_as="one_cut_or_the_other")
def the_other_cut_or_the_one(logits, temperature=1.0, top_k=None, top_p=None):
    return cut(logits, temperature, top_k if top_p is None else None, top_p)


@wrong(NTD)
def mean_subtracted(logits, temperature=1.0, top_k=None, top_p=None):
    """The mean of the logits is subtracted: where one of them is -inf, so is the mean, and
    -inf - -inf is NaN. It must be the largest."""
    with np.errstate(all="ignore"):
        return (
            reference.next_token_distribution(logits - logits.mean(), temperature, top_k, top_p)
            + 0 * np.exp(logits - logits.mean()).sum()
        )


@wrong(NTD)
def equal_shares(logits, temperature=1.0, top_k=None, top_p=None):
    """The tokens that stay get equal probabilities. They keep their proportions: divide by the
    sum."""
    p = reference.next_token_distribution(logits, temperature, top_k, top_p)
    return p if top_k is None and top_p is None else (p > 0) / (p > 0).sum()


# prefill -------------------------------------------------------------------------------


def prefilled(
    x, weights, n_heads, *,
    split=split_heads, merge=merge_heads, mask=causal_mask, attention=attend, kept=None,
):  # fmt: skip
    """prefill in which one thing or another can be wrong."""
    w_q, w_k, w_v, w_o = weights
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    out = merge(attention(q, k, v, mask(x.shape[-2]))) @ w_o
    return out, (kept(q, k, v) if kept else (k, v))


@wrong("prefill", "Mikyx-1/TinyLLM#17")
def prompt_sees_its_future(x, w_q, w_k, w_v, w_o, n_heads):
    """There is no mask: the tokens of the prompt see those after them. All are there already, but
    the model was trained with the mask, and so are the keys and values of its later layers."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, mask=lambda n: np.ones((n, n), dtype=bool))


@wrong("prefill")
def prompt_sees_only_its_future(x, w_q, w_k, w_v, w_o, n_heads):
    """The mask is the wrong triangle, or the wrong way round: each token sees those after it."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, mask=lambda n: causal_mask(n).T)


@wrong("prefill", same_as="prompt_sees_only_its_future")
def polarity_turned(x, w_q, w_k, w_v, w_o, n_heads):
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, mask=lambda n: ~causal_mask(n))


@wrong("prefill", "pbloem/former#10")
def token_does_not_see_itself(x, w_q, w_k, w_v, w_o, n_heads):
    """The diagonal of the mask is closed: no token sees itself, and the first one sees nothing."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, mask=lambda n: np.tri(n, k=-1) > 0)


@wrong("prefill", same_as="token_does_not_see_itself")
def first_token_is_nan(x, w_q, w_k, w_v, w_o, n_heads):
    attention = chapter5.softmax_is(chapter5.nan_for_empty_rows)
    weights = w_q, w_k, w_v, w_o
    return prefilled(x, weights, n_heads, mask=lambda n: np.tri(n, k=-1) > 0, attention=attention)


@wrong("prefill")
def prompt_sees_one_ahead(x, w_q, w_k, w_v, w_o, n_heads):
    """The mask is open one key too far: each token sees the next one."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, mask=lambda n: np.tri(n, k=1) > 0)


@wrong("prefill", "omihub777/ViT-CIFAR#11")
def prefill_divides_by_root_of_d_model(x, w_q, w_k, w_v, w_o, n_heads):
    """The scores are divided by the square root of d_model; it is that of d_head."""
    attention = chapter5.scaled_by_d_model(x)
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong("prefill")
def prefill_without_scale(x, w_q, w_k, w_v, w_o, n_heads):
    """The scores are not divided by the square root of d_head."""
    attention = chapter5.with_scale(1.0)
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong("prefill")
def prefill_scales_twice(x, w_q, w_k, w_v, w_o, n_heads):
    """The scores are divided by the square root of d_head twice; masked_attention does it
    already."""
    attention = chapter5.width(lambda d: 1 / d)
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong("prefill")
def cache_before_the_split(x, w_q, w_k, w_v, w_o, n_heads):
    """The cache holds x @ w_k and x @ w_v as they are. The heads are to be split in it: (*batch,
    heads, seq, d_head)."""
    out, _ = prefilled(x, (w_q, w_k, w_v, w_o), n_heads)
    return out, (x @ w_k, x @ w_v)


@wrong("prefill")
def cache_with_tokens_first(x, w_q, w_k, w_v, w_o, n_heads):
    """The axes of the cache are (seq, heads, d_head); the heads come before the tokens."""
    return prefilled(
        x,
        (w_q, w_k, w_v, w_o),
        n_heads,
        kept=lambda q, k, v: (np.swapaxes(k, -2, -3), np.swapaxes(v, -2, -3)),
    )


@wrong("prefill")
def cached_keys_transposed(x, w_q, w_k, w_v, w_o, n_heads):
    """The keys are cached transposed, as the scores use them. The cache wants them as they came
    out of split_heads: (*batch, heads, seq, d_head)."""
    return prefilled(
        x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (np.swapaxes(k, -2, -1), v)
    )


@wrong("prefill")
def values_first(x, w_q, w_k, w_v, w_o, n_heads):
    """Keys and values have changed places in the cache: it is (k, v)."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (v, k))


@wrong("prefill", "awslabs/sockeye#731")
def keys_cached_twice(x, w_q, w_k, w_v, w_o, n_heads):
    """The second part of the cache holds the keys again; it should hold the values."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (k, k))


@wrong("prefill")
def queries_cached(x, w_q, w_k, w_v, w_o, n_heads):
    """The queries are cached. Nobody asks for an old token's query again: keys and values are
    what later tokens look at."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (q, k))


@wrong("prefill", same_as="queries_cached")
def queries_and_values_cached(x, w_q, w_k, w_v, w_o, n_heads):
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (q, v))


@wrong("prefill")
def only_the_newest_cached(x, w_q, w_k, w_v, w_o, n_heads):
    """The cache holds the last token alone. The next token looks at all of them."""
    return prefilled(
        x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (k[..., -1:, :], v[..., -1:, :])
    )


@wrong("prefill")
def the_newest_not_cached(x, w_q, w_k, w_v, w_o, n_heads):
    """The last token of the prompt is missing in the cache."""
    return prefilled(
        x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (k[..., :-1, :], v[..., :-1, :])
    )


@wrong("prefill")
def scaled_keys_cached(x, w_q, w_k, w_v, w_o, n_heads):
    """The keys in the cache have been divided by the square root of d_head. Whoever uses them
    divides the scores again; cache x @ w_k, split."""
    return prefilled(
        x, (w_q, w_k, w_v, w_o), n_heads, kept=lambda q, k, v: (k / k.shape[-1] ** 0.5, v)
    )


@wrong("prefill")
def outputs_cached(x, w_q, w_k, w_v, w_o, n_heads):
    """The second part of the cache holds the heads' outputs, not their values: later tokens weigh
    the values anew."""

    def kept(q, k, v):
        return k, attend(q, k, v, causal_mask(q.shape[-2]))

    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, kept=kept)


@wrong("prefill", "reczoo/FuxiCTR#30")
def prompt_split_by_reshape(x, w_q, w_k, w_v, w_o, n_heads):
    """q, k and v are cut into heads by a reshape alone, so that a row of a head holds numbers of
    other tokens. split_heads exchanges two axes as well."""
    split = chapter5.split_by_reshape_alone
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, split=split)


@wrong("prefill", same_as="prompt_split_by_reshape")
def prompt_split_and_merged_by_reshape(x, w_q, w_k, w_v, w_o, n_heads):
    return prefilled(
        x, (w_q, w_k, w_v, w_o), n_heads,
        split=chapter5.split_by_reshape_alone, merge=chapter5.merged_by_reshape_alone,
    )  # fmt: skip


@wrong("prefill", "ajhalthor/Transformer-Neural-Network#4")
def prompt_merged_by_reshape(x, w_q, w_k, w_v, w_o, n_heads):
    """The heads' outputs are merged by a reshape alone, so that a row mixes tokens. merge_heads
    exchanges two axes first."""
    merge = chapter5.merged_by_reshape_alone
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, merge=merge)


@wrong("prefill", "Kyubyong/transformer#117")
def w_o_not_used(x, w_q, w_k, w_v, w_o, n_heads):
    """w_o is not used: the merged heads are multiplied by it at the end."""
    return prefilled(x, (w_q, w_k, w_v, np.eye(x.shape[-1])), n_heads)


@wrong("prefill")
def prefill_transposes_weights(x, w_q, w_k, w_v, w_o, n_heads):
    """The weights are used transposed, x @ w.T. Here they are used as they come: x @ w."""
    return prefilled(x, (w_q.T, w_k.T, w_v.T, w_o.T), n_heads)


@wrong("prefill")
def one_wide_head(x, w_q, w_k, w_v, w_o, n_heads):
    """n_heads has no effect on the output: this is a single head of width d_model."""
    out, _ = prefilled(x, (w_q, w_k, w_v, w_o), 1)
    return out, prefilled(x, (w_q, w_k, w_v, w_o), n_heads)[1]


@wrong("prefill", same_as="one_wide_head")
def one_wide_head_cached(x, w_q, w_k, w_v, w_o, n_heads):
    return prefilled(x, (w_q, w_k, w_v, w_o), 1)


@wrong("prefill")
def three_things_returned(x, w_q, w_k, w_v, w_o, n_heads):
    """Three things come back. There are two: the output and the cache, and the cache is the pair
    (k, v)."""
    out, (k, v) = prefilled(x, (w_q, w_k, w_v, w_o), n_heads)
    return out, k, v


@wrong("prefill")
def no_cache_returned(x, w_q, w_k, w_v, w_o, n_heads):
    """The output alone comes back. The cache belongs to the result: out, (k, v)."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads)[0]


@wrong("prefill")
def cache_returned_first(x, w_q, w_k, w_v, w_o, n_heads):
    """The cache comes back first. The output is first, then the cache."""
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads)[::-1]


@wrong("prefill")
def output_of_the_last_token(x, w_q, w_k, w_v, w_o, n_heads):
    """Only the last token's output comes back. A next layer needs the outputs of all of them, for
    its own keys and values."""
    out, cache = prefilled(x, (w_q, w_k, w_v, w_o), n_heads)
    return out[..., -1:, :], cache


@wrong("prefill")
def prefill_wants_one_batch_axis(x, w_q, w_k, w_v, w_o, n_heads):
    """Your function wants exactly one batch axis. Batch axes may be absent, or several: count axes
    from the back."""
    n_batch, seq, d_model = x.shape
    return prefilled(x.reshape(n_batch, seq, d_model), (w_q, w_k, w_v, w_o), n_heads)


@wrong("prefill")
def prefill_wants_no_batch_axis(x, w_q, w_k, w_v, w_o, n_heads):
    """Your function takes one sequence only. Any number of batch axes may stand in front: count
    axes from the back."""
    seq, d_model = x.shape
    return prefilled(x.reshape(seq, d_model), (w_q, w_k, w_v, w_o), n_heads)


@wrong("prefill")
def prefill_overflows(x, w_q, w_k, w_v, w_o, n_heads):
    """exp overflows for large scores, and inf / inf is NaN: subtract the row's largest allowed
    score first (masked_softmax does it)."""
    attention = chapter5.softmax_is(chapter3.nothing_subtracted)
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong("prefill", same_as="prefill_overflows")
def prefill_overflows_zeros_kept(x, w_q, w_k, w_v, w_o, n_heads):
    attention = chapter5.softmax_is(chapter3.nothing_subtracted_zeros_kept)
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong("prefill", same_as="prefill_overflows")
def prefill_overflows_and_nan(x, w_q, w_k, w_v, w_o, n_heads):
    attention = chapter5.softmax_is(chapter3.nothing_subtracted_and_nan)
    return prefilled(x, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


# decode_step ---------------------------------------------------------------------------

STEP = "decode_step"


def append(old, new):
    return np.concatenate([old, new], axis=-2)


def stepped(
    x_new, cache, weights, n_heads, *,
    split=split_heads, merge=merge_heads, mask=causal_mask, attention=attend, join=append,
    kept=None,
):  # fmt: skip
    """decode_step in which one thing or another can be wrong."""
    w_q, w_k, w_v, w_o = weights
    q, k_new, v_new = (split(x_new @ w, n_heads) for w in (w_q, w_k, w_v))
    k, v = join(cache[0], k_new), join(cache[1], v_new)
    out = merge(attention(q, k, v, mask(q.shape[-2], k.shape[-2]))) @ w_o
    return out, (kept(k, v, k_new, v_new) if kept else (k, v))


@wrong(STEP, "pytorch/pytorch#144858")
def aligned_at_the_top_left(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The mask is aligned at the top left, as PyTorch's is_causal=True: the newest tokens see the
    oldest keys only. The last query must see the last key."""
    return stepped(
        x_new, cache, (w_q, w_k, w_v, w_o), n_heads, mask=lambda new, n: np.tri(new, n, dtype=bool)
    )


@wrong(STEP, "mlx-node/mlx-node#24")
def no_mask_for_new_tokens(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Nothing is masked. For a single new token that is right; of several, the first would see
    those after it."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        mask=lambda new, n: np.ones((new, n), dtype=bool),
    )


@wrong(STEP, "mlx-node/mlx-node#24", same_as="no_mask_for_new_tokens")
def mask_only_where_square(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        mask=lambda new, n: np.tri(n, dtype=bool) if new == n else np.ones((new, n), dtype=bool),
    )


@wrong(STEP)
def no_mask_for_an_empty_cache(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """With an empty cache nothing is masked. The new tokens are causal among themselves then,
    too."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        mask=lambda new, n: causal_mask(new, n) | (new == n),
    )


@wrong(STEP)
def new_token_not_seen(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new token does not see itself: its own key and value belong to those that it attends
    to."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        mask=lambda new, n: np.tri(new, n, n - new - 1, dtype=bool),
    )


@wrong(STEP, same_as="new_token_not_seen")
def appended_after_attending(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k_new, v_new = (split_heads(x_new @ w, n_heads) for w in (w_q, w_k, w_v))
    out = attend(q, *cache, np.ones((1, cache[0].shape[-2]), dtype=bool))
    return merge_heads(out) @ w_o, (append(cache[0], k_new), append(cache[1], v_new))


@wrong(STEP, same_as="new_token_not_seen")
def attends_to_the_cache_if_there_is_one(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    if cache[0].shape[-2] == 0:
        return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)
    return appended_after_attending(x_new, cache, w_q, w_k, w_v, w_o, n_heads)


@wrong(STEP)
def only_each_other_seen(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new tokens see each other, but not the cache: all earlier tokens are lost to them."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        mask=lambda new, n: causal_mask(new, n) & (np.arange(n) >= n - new),
    )


@wrong(STEP)
def new_tokens_see_one_ahead(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The mask is open one key too far: of several new tokens, each sees the next one."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        mask=lambda new, n: np.tri(new, n, n - new + 1, dtype=bool),
    )


@wrong(STEP)
def new_tokens_see_only_the_cache_and_themselves(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Of several new tokens, none sees the new ones before it: only the cache and itself are
    open."""

    def mask(new, n):
        key = np.arange(n)
        return (key < n - new) | (key == np.arange(n - new, n)[:, None])

    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, mask=mask)


@wrong(STEP)
def mask_polarity_turned(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """True and False have changed places in the mask, or its triangle is the wrong one: the new
    tokens see their future and not their past."""
    return stepped(
        x_new, cache, (w_q, w_k, w_v, w_o), n_heads, mask=lambda new, n: ~causal_mask(new, n)
    )


@wrong(STEP)
def cache_replaced(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The returned cache holds the new keys and values only: the next token would have lost all
    that came before."""
    return stepped(
        x_new, cache, (w_q, w_k, w_v, w_o), n_heads, kept=lambda k, v, k_new, v_new: (k_new, v_new)
    )


@wrong(STEP)
def cache_returned_as_it_came(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The cache comes back as it went in: the new keys and values are missing, so that the next
    token would not see this one."""
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)[0], cache


@wrong(STEP, "ekryski/mlx-swift-lm#90")
def newest_overwritten(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new keys and values are written over the last ones of the cache. They come after them,
    and the caller's arrays stay as they are."""
    new = x_new.shape[-2]
    q, k_new, v_new = (split_heads(x_new @ w, n_heads) for w in (w_q, w_k, w_v))
    cache[0][..., -new:, :] = k_new
    cache[1][..., -new:, :] = v_new
    out = attend(q, *cache, causal_mask(new, cache[0].shape[-2]))
    return merge_heads(out) @ w_o, cache


@wrong(STEP)
def new_ones_first(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new keys and values stand in front of the old ones. A cache is in the order of the
    tokens, and the mask counts on it."""
    return stepped(
        x_new, cache, (w_q, w_k, w_v, w_o), n_heads, join=lambda old, new: append(new, old)
    )


@wrong(STEP)
def appended_twice(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new keys and values are in the returned cache twice."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        kept=lambda k, v, k_new, v_new: (append(k, k_new), append(v, v_new)),
    )


@wrong(STEP)
def old_values_forgotten(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The old keys are kept, the old values are not: a value is missing for each of these keys,
    and the weights do not fit. Both grow in the same way."""
    q, k_new, v_new = (split_heads(x_new @ w, n_heads) for w in (w_q, w_k, w_v))
    k = append(cache[0], k_new)
    out = attend(q, k, v_new, causal_mask(q.shape[-2], k.shape[-2]))
    return merge_heads(out) @ w_o, (k, v_new)


@wrong(STEP)
def cache_has_values_first(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Keys and values have changed places in the returned cache: it is (k, v)."""
    return stepped(
        x_new, cache, (w_q, w_k, w_v, w_o), n_heads, kept=lambda k, v, k_new, v_new: (v, k)
    )


@wrong(STEP)
def cache_read_as_values_first(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The cache is taken for (v, k): the old keys are used as values, and the old values as
    keys."""
    return stepped(x_new, cache[::-1], (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP, "awslabs/sockeye#731")
def values_made_of_keys(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new values are made with w_k, or copied from the keys: they are x_new @ w_v."""
    return stepped(x_new, cache, (w_q, w_k, w_k, w_o), n_heads)


@wrong(STEP, "awslabs/sockeye#731", same_as="values_made_of_keys")
def old_keys_for_old_values(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    return stepped(x_new, (cache[0], cache[0]), (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP)
def appended_along_axis_one(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The axis of the tokens is counted from the front, as axis 1. With batch axes in front, axis
    1 is another one: count from the back."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        join=lambda old, new: np.concatenate([old, new], axis=1),
    )


@wrong(STEP)
def appended_along_axis_two(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The axis of the tokens is counted from the front, as axis 2. That is right with exactly one
    batch axis: count from the back."""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        join=lambda old, new: np.concatenate([old, new], axis=2),
    )


@wrong(STEP)
def appended_along_the_first_axis(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The new keys and values are joined to the old ones along another axis than that of the
    tokens, which is the last but one. (Without an `axis`, np.concatenate takes the first.)"""
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        join=lambda old, new: np.concatenate([old, new]),
    )


@wrong(STEP, same_as="appended_along_the_first_axis")
def appended_along_the_width(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    return stepped(
        x_new,
        cache,
        (w_q, w_k, w_v, w_o),
        n_heads,
        join=lambda old, new: np.concatenate([old, new], axis=-1),
    )


@wrong(STEP)
def only_the_last_new_token(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Only the last of the new tokens gets an output. Every new token does, for the next layer
    needs all of them."""
    out, cache = stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)
    return out[..., -1:, :], cache


@wrong(STEP)
def only_one_token_taken(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Of several new tokens only one is used. There may be more than one: a chunk of a prompt, for
    example."""
    return stepped(x_new[..., -1:, :], cache, (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP, same_as="only_one_token_taken")
def only_the_first_token_taken(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    return stepped(x_new[..., :1, :], cache, (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP)
def token_axis_lost(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The axis of the new tokens is missing in the output. It stays, even if it is 1 long:
    (*batch, new, d_model)."""
    out, cache = stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)
    return (out[..., 0, :] if out.shape[-2] == 1 else out), cache


@wrong(STEP)
def empty_cache_not_expected(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Your function fails for an empty cache, one with no token in it. A sequence may start that
    way."""
    cache[0][..., -1, :]  # the newest key, which need not exist
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP, "omihub777/ViT-CIFAR#11")
def step_divides_by_root_of_d_model(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The scores are divided by the square root of d_model; it is that of d_head."""
    attention = chapter5.scaled_by_d_model(x_new)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong(STEP)
def step_without_scale(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The scores are not divided by the square root of d_head."""
    attention = chapter5.with_scale(1.0)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong(STEP)
def step_scales_twice(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The scores are divided by the square root of d_head twice; masked_attention does it
    already."""
    attention = chapter5.width(lambda d: 1 / d)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong(STEP, "labmlai/annotated_deep_learning_paper_implementations#146")
def shared_among_the_queries(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The softmax runs over the queries: with a single new token every weight is 1. Each query
    shares out its weight among the keys."""

    def over_queries(scores, allowed):
        return np.swapaxes(masked_softmax(np.swapaxes(scores, -1, -2), allowed.T), -1, -2)

    attention = chapter5.softmax_is(over_queries)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong(STEP, "Kyubyong/transformer#117")
def step_without_w_o(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """w_o is not used: the merged heads are multiplied by it at the end."""
    return stepped(x_new, cache, (w_q, w_k, w_v, np.eye(x_new.shape[-1])), n_heads)


@wrong(STEP)
def step_transposes_weights(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The weights are used transposed, x @ w.T. Here they are used as they come: x @ w."""
    return stepped(x_new, cache, (w_q.T, w_k.T, w_v.T, w_o.T), n_heads)


@wrong(STEP, "reczoo/FuxiCTR#30")
def chunk_split_by_reshape(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """q, k and v are cut into heads by a reshape alone. With one new token that is right; with
    several, a row of a head holds numbers of other tokens."""
    split = chapter5.split_by_reshape_alone
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, split=split)


@wrong(STEP, same_as="chunk_split_by_reshape")
def chunk_split_and_merged_by_reshape(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    return stepped(
        x_new, cache, (w_q, w_k, w_v, w_o), n_heads,
        split=chapter5.split_by_reshape_alone, merge=chapter5.merged_by_reshape_alone,
    )  # fmt: skip


@wrong(STEP, "ajhalthor/Transformer-Neural-Network#4")
def chunk_merged_by_reshape(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The heads' outputs are merged by a reshape alone. With one new token that is right; with
    several, a row mixes tokens."""
    merge = chapter5.merged_by_reshape_alone
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, merge=merge)


@wrong(STEP)
def step_returns_three_things(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Three things come back. There are two: the output and the cache, and the cache is the pair
    (k, v)."""
    out, (k, v) = stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)
    return out, k, v


@wrong(STEP)
def step_returns_no_cache(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The output alone comes back. The longer cache belongs to the result: out, (k, v)."""
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)[0]


@wrong(STEP)
def step_returns_the_cache_first(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """The cache comes back first. The output is first, then the cache."""
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads)[::-1]


@wrong(STEP)
def step_wants_one_batch_axis(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Your function wants exactly one batch axis. Batch axes may be absent, or several: count axes
    from the back."""
    n_batch, new, d_model = x_new.shape
    return stepped(x_new.reshape(n_batch, new, d_model), cache, (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP)
def step_wants_no_batch_axis(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """Your function takes one sequence only. Any number of batch axes may stand in front: count
    axes from the back."""
    new, d_model = x_new.shape
    return stepped(x_new.reshape(new, d_model), cache, (w_q, w_k, w_v, w_o), n_heads)


@wrong(STEP)
def step_overflows(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    """exp overflows for large scores, and inf / inf is NaN: subtract the row's largest allowed
    score first (masked_softmax does it)."""
    attention = chapter5.softmax_is(chapter3.nothing_subtracted)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong(STEP, same_as="step_overflows")
def step_overflows_zeros_kept(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    attention = chapter5.softmax_is(chapter3.nothing_subtracted_zeros_kept)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


@wrong(STEP, same_as="step_overflows")
def step_overflows_and_nan(x_new, cache, w_q, w_k, w_v, w_o, n_heads):
    attention = chapter5.softmax_is(chapter3.nothing_subtracted_and_nan)
    return stepped(x_new, cache, (w_q, w_k, w_v, w_o), n_heads, attention=attention)


# cache_bytes ---------------------------------------------------------------------------

BYTES = "cache_bytes"


@wrong(BYTES)
def keys_alone(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """Half is missing: a head keeps a key and a value of each token."""
    return n_layers * n_kv_heads * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def queries_too(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """The queries are counted as well. They are used once, and not kept."""
    return 3 * n_layers * n_kv_heads * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def one_layer(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """This is one layer's cache: every layer has its own keys and values."""
    return 2 * n_kv_heads * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def one_head(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """This is the cache of a single head: n_kv_heads of them have keys and values of their own."""
    return 2 * n_layers * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def one_sequence(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """This is the cache of one sequence: each sequence of the batch has its own."""
    return 2 * n_layers * n_kv_heads * d_head * seq * bytes_per_value


@wrong(BYTES)
def numbers_counted(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """These are numbers, not bytes: each takes bytes_per_value bytes."""
    return 2 * n_layers * n_kv_heads * d_head * seq * batch


@wrong(BYTES)
def four_bytes_each(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """Every number is taken for a float32, 4 bytes. How wide a number is, bytes_per_value says."""
    return 2 * n_layers * n_kv_heads * d_head * seq * batch * 4


@wrong(BYTES)
def counted_in_bits(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """This is the number of bits; bytes are asked for."""
    return 16 * n_layers * n_kv_heads * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def counted_in_kibibytes(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """The bytes are divided by 1024, or by a power of it; plain bytes are asked for."""
    return reference.cache_bytes(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value) / 1024


@wrong(BYTES, same_as="counted_in_kibibytes")
def counted_in_mebibytes(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    size = reference.cache_bytes(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value)
    return size / 2**20


@wrong(BYTES)
def a_score_for_each_pair(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """The size grows with the square of seq. Scores are a square, and are not kept; a cache holds
    a key and a value for each token."""
    return 2 * n_layers * n_kv_heads * d_head * seq**2 * batch * bytes_per_value


@wrong(BYTES)
def d_head_squared(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """d_head counts twice, as in a weight matrix. A key has d_head numbers."""
    return 2 * n_layers * n_kv_heads * d_head**2 * seq * batch * bytes_per_value


@wrong(BYTES)
def heads_squared(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """The heads count twice. Each head keeps keys of width d_head: together they are
    n_kv_heads * d_head numbers."""
    return 2 * n_layers * n_kv_heads**2 * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def sequences_added(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """seq and batch are added. There are seq tokens in each of the batch sequences: seq times
    batch."""
    return 2 * n_layers * n_kv_heads * d_head * (seq + batch) * bytes_per_value


@wrong(BYTES)
def one_token_more(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """One token too many is counted: seq tokens are in the cache."""
    return 2 * n_layers * n_kv_heads * d_head * (seq + 1) * batch * bytes_per_value


@wrong(BYTES)
def bytes_as_a_float(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """A float is at work: it comes back, or it has rounded the number on the way. Count bytes in
    whole numbers."""
    return 2.0 * n_layers * n_kv_heads * d_head * seq * batch * bytes_per_value


@wrong(BYTES)
def narrow_integers(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    """Your integers are 32 bits wide and overflow for large caches; Python's own int does not."""
    sizes = [2, n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value]
    return int(np.prod(sizes, dtype=np.int32))


# left_padding_mask ---------------------------------------------------------------------

LEFT = "left_padding_mask"


def real(lengths, n):
    """(batch, n): True for the real columns, which are the last."""
    return np.arange(n) >= n - lengths[:, None]


@wrong(LEFT)
def padded_on_the_right(lengths, n):
    """Here the padding stands on the left: the real tokens are in the last columns."""
    return causal_mask(n) & (np.arange(n) < lengths[:, None])[:, None, :]


@wrong(LEFT, same_as="padded_on_the_right")
def padded_on_the_right_rows_closed(lengths, n):
    there = np.arange(n) < lengths[:, None]
    return causal_mask(n) & there[:, None, :] & there[:, :, None]


@wrong(LEFT)
def as_wide_as_the_longest(lengths, n):
    """The mask is as wide as the longest sequence. The padded length is n, and all sequences may
    be shorter than that."""
    width = int(np.max(lengths))
    there = real(lengths, width)
    return causal_mask(width)[None, :, :width] & there[:, None, :] & there[:, :, None]


@wrong(LEFT)
def lengths_taken_for_pads(lengths, n):
    """`lengths` is used as the number of pads. It is the number of real tokens; n - length columns
    are pads."""
    return causal_mask(n) & (np.arange(n) >= lengths[:, None])[:, None, :]


@wrong(LEFT)
def future_left_open(lengths, n):
    """The future is open: real tokens see each other in both directions. The mask is causal as
    well."""
    return real(lengths, n)[:, None, :] & real(lengths, n)[:, :, None]


@wrong(LEFT, same_as="future_left_open")
def future_left_open_to_pads(lengths, n):
    return np.repeat(real(lengths, n)[:, None, :], n, axis=1)


@wrong(LEFT)
def pads_left_open(lengths, n):
    """The mask is causal, but the pads are open: real tokens would attend to nothing but
    filling."""
    return np.repeat(causal_mask(n)[None], len(lengths), axis=0)


@wrong(LEFT, "lsdefine/attention-is-all-you-need-keras#16")
def only_queries_closed(lengths, n):
    """The rows of the pads are closed, but their columns are open: it is as keys that pads do
    harm."""
    return causal_mask(n) & real(lengths, n)[:, :, None]


@wrong(LEFT)
def pads_see_themselves(lengths, n):
    """Pads see themselves: the diagonal is open. Here a pad's row is all False, and attention
    gives it zeros."""
    return reference.left_padding_mask(lengths, n) | np.eye(n, dtype=bool)


@wrong(LEFT)
def everything_closed_opened(lengths, n):
    """The rows of pads are open, all of them or all up to the diagonal. They are all False
    here."""
    mask = reference.left_padding_mask(lengths, n)
    return mask | ~mask.any(axis=-1, keepdims=True)


@wrong(LEFT, same_as="everything_closed_opened")
def causal_for_pads(lengths, n):
    return np.where(
        real(lengths, n)[:, :, None], reference.left_padding_mask(lengths, n), np.tri(n) > 0
    )


@wrong(LEFT)
def closed_instead_of_open(lengths, n):
    """True and False have changed places: True means may attend."""
    return ~reference.left_padding_mask(lengths, n)


@wrong(LEFT)
def one_or_the_other(lengths, n):
    """You combine the two masks with "or". A key is open when both allow it: "and"."""
    return causal_mask(n) | real(lengths, n)[:, None, :]


@wrong(LEFT)
def last_pad_open(lengths, n):
    """One pad stays open, the last before the real tokens: these begin at column n - length."""
    return causal_mask(n) & (np.arange(n) >= n - lengths[:, None] - 1)[:, None, :]


@wrong(LEFT)
def first_token_closed(lengths, n):
    """The first real token is closed: the real ones begin at column n - length, this one
    included."""
    return causal_mask(n) & (np.arange(n) > n - lengths[:, None])[:, None, :]


@wrong(LEFT)
def diagonal_shut(lengths, n):
    """The diagonal is closed: a token sees itself."""
    return reference.left_padding_mask(lengths, n) & ~np.eye(n, dtype=bool)


@wrong(LEFT)
def future_instead_of_past(lengths, n):
    """The triangle is the upper one, or rows and columns have changed places: each token sees
    itself and what comes after it. Rows are queries, and the past lies to the left."""
    return causal_mask(n).T & real(lengths, n)[:, None, :] & real(lengths, n)[:, :, None]


@wrong(LEFT, same_as="future_instead_of_past")
def future_instead_of_past_pads_too(lengths, n):
    return causal_mask(n).T & real(lengths, n)[:, None, :]


@wrong(LEFT)
def minus_zero(lengths, n):
    """In an empty sequence everything is open up to the diagonal. (One way to get there: with a
    length of 0 a slice [-length:] is [-0:], which is everything.)"""
    mask = np.zeros((len(lengths), n, n), dtype=bool)
    for one, length in zip(mask, lengths, strict=True):
        one[:, -length:] = True
    return mask & causal_mask(n)


@wrong(LEFT, same_as="minus_zero")
def minus_zero_on_both_sides(lengths, n):
    mask = np.zeros((len(lengths), n, n), dtype=bool)
    for one, length in zip(mask, lengths, strict=True):
        one[-length:, -length:] = causal_mask(n if length == 0 else int(length))
    return mask


@wrong(LEFT)
def numbers_not_booleans(lengths, n):
    """The pattern is right, but the entries are numbers; a mask is bool."""
    return reference.left_padding_mask(lengths, n).astype(float)


@wrong(LEFT)
def added_to_the_scores(lengths, n):
    """These are 0 and -inf, to be added to the scores. The exercise wants the boolean mask."""
    return np.where(reference.left_padding_mask(lengths, n), 0, -np.inf)


@wrong(LEFT)
def with_an_axis_for_heads(lengths, n):
    """The result has an axis for the heads; it is (batch, query, key), and whoever uses it inserts
    that axis."""
    return reference.left_padding_mask(lengths, n)[:, None]


@wrong(LEFT)
def one_row_for_all_queries(lengths, n):
    """One row for all queries cannot be causal: each query sees up to itself, so that there are n
    rows."""
    return real(lengths, n)[:, None, :]


@wrong(LEFT)
def lengths_without_an_axis(lengths, n):
    """`lengths` is compared with the columns without an axis of its own: the batch then lines up
    with the columns, and fits only by chance."""
    return causal_mask(n) & (np.arange(n) >= n - lengths)


# generate ------------------------------------------------------------------------------


def best_of(logits):
    return int(np.argmax(logits))


def continued(next_logits, prompt, n_new, *, seen=lambda tokens, prompt: tokens, best=best_of):
    """The loop, in which one thing or another can be wrong."""
    tokens = np.array(prompt)
    for _ in range(n_new):
        tokens = np.append(tokens, best(next_logits(seen(tokens, prompt))))
    return tokens


@wrong("generate")
def only_the_last_token_given(next_logits, prompt, n_new):
    """next_logits is given the last token alone. Without a cache it has no memory: give it all the
    tokens so far."""
    return continued(next_logits, prompt, n_new, seen=lambda tokens, prompt: tokens[-1:])


@wrong("generate")
def always_the_prompt_given(next_logits, prompt, n_new):
    """next_logits is given the prompt each time, so that every new token is the same. Each turn
    also has the tokens that are new since the last."""
    return continued(next_logits, prompt, n_new, seen=lambda tokens, prompt: prompt)


@wrong("generate")
def prompt_forgotten(next_logits, prompt, n_new):
    """After the first step next_logits is given only the new tokens. The prompt belongs to what it
    is given."""
    return continued(
        next_logits,
        prompt,
        n_new,
        seen=lambda tokens, prompt: tokens[len(prompt) :] if len(tokens) > len(prompt) else prompt,
    )


@wrong("generate")
def last_few_tokens_given(next_logits, prompt, n_new):
    """next_logits is given the last few tokens only. Give it all of them, however many there
    are."""
    return continued(next_logits, prompt, n_new, seen=lambda tokens, prompt: tokens[-4:])


@wrong("generate", same_as="last_few_tokens_given")
def window_of_the_prompt(next_logits, prompt, n_new):
    return continued(next_logits, prompt, n_new, seen=lambda tokens, p: tokens[-len(p) :])


@wrong("generate")
def first_token_left_out(next_logits, prompt, n_new):
    """The first token is left out of what next_logits is given, as if it stood for nothing."""
    return continued(
        next_logits,
        prompt,
        n_new,
        seen=lambda tokens, prompt: tokens[1:] if len(tokens) > 1 else tokens,
    )


@wrong("generate", "ml-explore/mlx-examples#977")
def unused_places_given(next_logits, prompt, n_new):
    """next_logits is given the places that are still empty, as if they held tokens. Give it only
    those that have been written."""
    tokens = np.zeros(len(prompt) + n_new, dtype=prompt.dtype)
    tokens[: len(prompt)] = prompt
    for i in range(n_new):
        tokens[len(prompt) + i] = best_of(next_logits(tokens))
    return tokens


@wrong("generate")
def newest_token_first(next_logits, prompt, n_new):
    """The new tokens are put in front of the others. They come at the end."""
    tokens = np.array(prompt)
    for _ in range(n_new):
        tokens = np.insert(tokens, 0, best_of(next_logits(tokens)))
    return tokens


@wrong("generate")
def given_in_reverse(next_logits, prompt, n_new):
    """next_logits is given the tokens in reverse order."""
    return continued(next_logits, prompt, n_new, seen=lambda tokens, prompt: tokens[::-1])


@wrong("generate")
def without_the_prompt(next_logits, prompt, n_new):
    """Only the new tokens come back. The result begins with the prompt."""
    return continued(next_logits, prompt, n_new)[len(prompt) :]


@wrong("generate")
def one_token_too_many(next_logits, prompt, n_new):
    """There is one new token too many."""
    return continued(next_logits, prompt, n_new + 1)


@wrong("generate")
def one_token_too_few(next_logits, prompt, n_new):
    """There is one new token too few."""
    return continued(next_logits, prompt, max(n_new - 1, 0))


@wrong("generate")
def at_least_one_token(next_logits, prompt, n_new):
    """A token comes even when n_new is 0: ask whether another one is wanted before you make it."""
    return continued(next_logits, prompt, max(n_new, 1))


@wrong("generate")
def n_new_taken_for_the_total(next_logits, prompt, n_new):
    """n_new is taken for the length of the whole. So many tokens are added to the prompt."""
    return continued(next_logits, prompt, max(n_new - len(prompt), 0))


@wrong("generate")
def last_of_equals(next_logits, prompt, n_new):
    """Of equally likely tokens you take the highest id; it should be the lowest."""
    return continued(
        next_logits,
        prompt,
        n_new,
        best=lambda logits: len(logits) - 1 - int(np.argmax(logits[::-1])),
    )


@wrong("generate", same_as="last_of_equals")
def last_of_the_sorted(next_logits, prompt, n_new):
    return continued(
        next_logits, prompt, n_new, best=lambda logits: int(np.argsort(logits, kind="stable")[-1])
    )


@wrong("generate")
def least_likely_token(next_logits, prompt, n_new):
    """You take the token with the smallest logit."""
    return continued(next_logits, prompt, n_new, best=lambda logits: int(np.argmin(logits)))


@wrong("generate")
def largest_size(next_logits, prompt, n_new):
    """You take the logit with the largest absolute value. A very negative logit means a token that
    hardly ever comes."""
    return continued(next_logits, prompt, n_new, best=lambda logits: best_of(np.abs(logits)))


@wrong("generate")
def logit_appended(next_logits, prompt, n_new):
    """The largest logit is appended. Append the index at which it stands: that is the token's
    id."""
    tokens = np.array(prompt)
    for _ in range(n_new):
        tokens = np.append(tokens, np.int64(np.nan_to_num(np.max(next_logits(tokens)))))
    return tokens


@wrong("generate", same_as="logit_appended")
def logit_appended_as_a_float(next_logits, prompt, n_new):
    tokens = list(prompt)
    for _ in range(n_new):
        tokens.append(float(np.max(next_logits(np.array(tokens, dtype=int)))))
    return tokens


@wrong("generate")
def ids_as_floats(next_logits, prompt, n_new):
    """The tokens are right, but they are floats: ids are integers."""
    return continued(next_logits, prompt, n_new).astype(float)


@wrong("generate")
def search_starts_at_zero(next_logits, prompt, n_new):
    """Your search for the largest logit starts from 0, so that negative logits never win. Start
    from -inf, or from the first logit."""

    def best(logits):
        largest, token = 0, 0
        for i, logit in enumerate(logits):
            if logit > largest:
                largest, token = logit, i
        return token

    return continued(next_logits, prompt, n_new, best=best)


@wrong("generate")
def all_from_one_call(next_logits, prompt, n_new):
    """All new tokens come from one call: the n_new largest logits after the prompt. Each token
    must be chosen after the one before it is known."""
    order = np.argsort(-next_logits(np.array(prompt)), kind="stable")
    return np.concatenate([prompt, np.resize(order, n_new)]).astype(int)


@wrong("generate")
def stops_at_token_zero(next_logits, prompt, n_new):
    """Your text ends when token 0 comes. There is no stop token here: n_new tokens are added."""
    tokens = np.array(prompt)
    for _ in range(n_new):
        tokens = np.append(tokens, best_of(next_logits(tokens)))
        if tokens[-1] == 0:
            break
    return tokens


@wrong("generate")
def prompt_shifted_in_place(next_logits, prompt, n_new):
    """The caller's prompt has changed after the call; work on a copy."""
    tokens = continued(next_logits, prompt, n_new)
    prompt[:] = tokens[-len(prompt) :]
    return tokens


@wrong("generate")
def with_a_batch_axis(next_logits, prompt, n_new):
    """The result has a batch axis; it is one row of tokens, (total,)."""
    return continued(next_logits, prompt, n_new)[None]


@wrong("generate")
def batch_axis_given(next_logits, prompt, n_new):
    """next_logits is given an array with a batch axis; it takes the tokens as one row, (seq,)."""
    return continued(next_logits, prompt, n_new, seen=lambda tokens, prompt: tokens[None])


@wrong("generate")
def drawn_at_random(next_logits, prompt, n_new):
    """Tokens are drawn at random here. Greedy means: always the one with the largest logit."""
    rng = np.random.default_rng(0)

    def best(logits):
        p = np.exp(logits - np.max(logits))
        return int(rng.choice(len(logits), p=p / p.sum()))

    return continued(next_logits, prompt, n_new, best=best)
