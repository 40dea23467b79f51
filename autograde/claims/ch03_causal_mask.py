"""What must be true of the functions of chapter 3."""

from __future__ import annotations

import numpy as np

from autograde.claims.shared import (
    blind_queries_get_zeros,
    broadcasts,
    makes_no_difference,
    nothing_leaks,
    qkv,
    some_mask,
)
from autograde.exercise import Exercise
from autograde.reference import ch03_causal_mask as reference
from autograde.values import Mismatch, conform, describe, plain

PAGE = "03-causal-mask"


# causal_mask ---------------------------------------------------------------------------

causal_mask = Exercise(
    reference.causal_mask,
    read=(f"{PAGE}#ch03-causal-mask", "Who may see whom"),
    hints=(
        "Take one query i. Which keys j may it see? Write the condition on paper first.",
        "np.arange(n_query)[:, None] and np.arange(n_key) hold every i and every j; compared "
        "with each other they broadcast to a (query, key) array.",
        "The last query, i = n_query - 1, must see the last key, j = n_key - 1. By how much "
        "does that shift the condition j <= i?",
    ),
    takes_arrays=False,
)


@causal_mask.claim("a query sees itself and everything before it, and nothing after", points=2)
def _(probe, rng):
    for n in (1, 2, 3, 5, int(rng.integers(6, 12)), int(rng.integers(260, 300))):
        probe.equals(n)


@causal_mask.claim("with more keys than queries, the last query sees every key")
def _(probe, rng):
    small = [(n_query, n_key) for n_key in range(2, 6) for n_query in range(1, n_key)]
    for n_query, n_key in small:
        probe.equals(n_query, n_key)
    n = int(rng.integers(2, 7))
    probe.equals(n, n + int(rng.integers(4, 9)))
    probe.equals(20 + n, 300)


@causal_mask.claim("with fewer keys than queries, the first queries see nothing")
def _(probe, rng):
    small = [(n_query, n_key) for n_query in range(2, 6) for n_key in range(n_query)]
    for n_query, n_key in small:
        probe.equals(n_query, n_key)
    n = int(rng.integers(2, 7))
    probe.equals(n + int(rng.integers(4, 9)), n)
    probe.equals(300, 20 + n)


# additive_mask -------------------------------------------------------------------------

additive_mask = Exercise(
    reference.additive_mask,
    read=(f"{PAGE}#ch03-additive-mask", "The matrix M"),
    hints=(
        "Two numbers suffice: one that leaves a score as it is when added, and one that "
        "no score can bring back.",
        "Multiplying a 0/1 mask by infinity gives 0 * inf, which is NaN: choose between the two "
        "numbers instead of multiplying.",
        "np.where chooses entry by entry; `.astype(dtype)` sets the dtype.",
    ),
    exact_dtype=True,
)


@additive_mask.claim("0 where attention is allowed, minus infinity elsewhere", points=2)
def _(probe, rng):
    for n in (1, 2, 3):
        probe.equals(np.tri(n, dtype=bool))
    probe.equals(some_mask(rng, 3, 5))
    for shape in ((2, 1, 4), (2, 1, 3, 5), (40, 50)):
        probe.equals(some_mask(rng, *shape))
    probe.equals(np.zeros((2, 2), dtype=bool))
    probe.equals(np.ones((2, 3), dtype=bool))


@additive_mask.claim("the result has the dtype that was asked for")
def _(probe, rng):
    for dtype in (np.float64, np.float32, np.float16):
        probe.equals(np.tri(2, dtype=bool), dtype)
        probe.equals(some_mask(rng, 2, 3, 3), dtype)


# masked_softmax ------------------------------------------------------------------------

masked_softmax = Exercise(
    reference.masked_softmax,
    read=(f"{PAGE}#ch03-masked-softmax", "The mask goes before the softmax"),
    hints=(
        "A key that may not be seen must be out of the race before the exponentials are "
        "added up, and the number that stands at its score must not matter.",
        "Replace the closed scores by -inf (np.where), then subtract each row's largest "
        "score before np.exp, so that nothing overflows.",
        "In a row without any allowed key the largest score is -inf and the sum is 0: put "
        "another number in their place, for that row only, before subtracting and dividing.",
    ),
    quiet=True,
    weights_at=0,
)


@masked_softmax.claim("each row is the softmax of its allowed scores, and 0 elsewhere", points=2)
def _(probe, rng):
    probe.equals(np.array([[0.0, 1.0]]), np.array([[True, True]]))
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]), np.tri(2, dtype=bool))
    probe.equals(np.array([[-5.0, -6.0], [-7.0, -5.0]]), np.tri(2, dtype=bool))
    probe.equals(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]]), np.tri(3) > 0)
    for shape in ((3, 3), (2, 4), (3, 2, 4), (2, 3, 4, 5)):
        allowed = some_mask(rng, *shape)
        for dtype in (np.float64, np.float32):
            scores = rng.normal(scale=2, size=shape).astype(dtype)
            probe.equals(scores, allowed)
    nothing_leaks(probe, np.array([[1.0, 2.0], [3.0, 5.0]]), np.tri(2, dtype=bool))
    nothing_leaks(probe, scores, allowed)


@masked_softmax.claim("scores of any size give finite weights")
def _(probe, rng):
    open_, triangle = np.ones((2, 2), dtype=bool), np.tri(2, dtype=bool)
    for dtype in (np.float64, np.float32):
        for low, high in ((1000, 1001), (-1e4, -1e4), (-1000, 1000), (-1e5, 1e5), (1e5, -1e5)):
            scores = np.array([[low, high], [high, low]], dtype=dtype)
            # In float32 a rounded log-sum-exp of scores near 1000 is off by 1e-4, and right.
            probe.equals(scores, open_, atol=1e-3)
            probe.equals(scores, triangle, atol=1e-3)
        probe.equals(np.array([[1000, 1001], [-1000, -1001]], dtype=dtype), open_, atol=1e-3)
    probe.equals(rng.normal(scale=1e3, size=(2, 4, 5)), some_mask(rng, 2, 4, 5))


@masked_softmax.claim("a query with no allowed key gets all zeros")
def _(probe, rng):
    blind_queries_get_zeros(probe, np.array([[1.0, 2.0]]), np.zeros((1, 2), dtype=bool))
    scores = np.array([[0.5, 1.0], [2.0, 3.0]])
    blind_queries_get_zeros(probe, scores, np.array([[False, False], [True, True]]))
    allowed = some_mask(rng, 2, 3, 4)
    allowed[0, 1] = False
    blind_queries_get_zeros(probe, rng.normal(size=(2, 3, 4)).astype(np.float32), allowed)


@masked_softmax.claim("whatever stands at a closed score has no effect")
def _(probe, rng):
    allowed = np.tri(2, dtype=bool)
    for junk in (1e30, np.inf, np.nan, -np.inf, -1e30):
        makes_no_difference(probe, np.array([[1.0, 0.0], [2.0, 3.0]]), junk, allowed)
        makes_no_difference(probe, np.array([[1.0, 2.0]]), junk, np.zeros((1, 2), dtype=bool))
    for dtype in (np.float64, np.float32):
        allowed = some_mask(rng, 2, 4, 5)
        junk = rng.choice([1e30, np.inf, np.nan, -np.inf], size=allowed.shape)
        scores = rng.normal(size=allowed.shape).astype(dtype)
        makes_no_difference(probe, scores, junk.astype(dtype), allowed)


@masked_softmax.claim("the mask broadcasts to the shape of the scores")
def _(probe, rng):
    for shape, mask in (((2, 2, 3), (2, 3)), ((2, 3, 4), (2, 1, 4)), ((2, 3, 4, 5), (2, 1, 4, 5))):
        broadcasts(probe, (rng.normal(size=shape),), some_mask(rng, *mask), shape)


# masked_attention ----------------------------------------------------------------------

masked_attention = Exercise(
    reference.masked_attention,
    read=(f"{PAGE}#ch03-masked-attention", "Masked attention"),
    hints=(
        "Three lines: scores, weights, output. Your masked_softmax makes the weights.",
        "Only the last two axes of k are exchanged for the scores; the axes before them are "
        "batches. d_head is the length of q's last axis.",
        "scores = q @ np.swapaxes(k, -2, -1), divided by the square root of d_head; "
        "return the output first, then the weights.",
    ),
    weights_at=1,
    returns=("out", "weights"),
    uses=("masked_softmax",),
)


@masked_attention.claim("out is the weighted sum of the values that each query may see", points=3)
def _(probe, rng):
    x = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    probe.equals(x[:1], x[:1], x[:1], np.array([[True]]))
    probe.equals(x[:2], x[:2], 2 * x[:2], np.tri(2, dtype=bool))
    probe.equals(np.array([[2.0, 0, 0, 0]]), np.eye(4)[:2], np.eye(2), np.array([[True, True]]))
    probe.equals(x, x, x, np.tri(3, dtype=bool))
    small = np.arange(8.0).reshape(2, 2, 2) % 3
    probe.equals(small, small[::-1].copy(), small + 1, np.ones((2, 2, 2), dtype=bool))
    sizes = (((), 3, 3, 2, 2), ((), 2, 4, 3, 5), ((3,), 3, 3, 3, 3), ((2, 3), 4, 5, 6, 2))
    for batch, n_query, n_key, d_head, d_value in sizes:
        for dtype in (np.float64, np.float32):
            allowed = some_mask(rng, *batch, n_query, n_key)
            arrays = qkv(rng, batch, n_query, n_key, d_head, d_value, dtype)
            probe.equals(*arrays, allowed)
    nothing_leaks(probe, x, x, x, np.tri(3, dtype=bool))
    nothing_leaks(probe, *arrays, allowed)


@masked_attention.claim("the mask broadcasts over batches and heads")
def _(probe, rng):
    broadcasts(probe, qkv(rng, (2,), 3, 3, 2, 2), np.tri(3, dtype=bool), (2, 3, 3))
    broadcasts(probe, qkv(rng, (2, 3), 2, 4, 3, 2), some_mask(rng, 2, 1, 2, 4), (2, 3, 2, 4))
    broadcasts(probe, qkv(rng, (3,), 2, 4, 3, 2), some_mask(rng, 3, 1, 4), (3, 2, 4))


@masked_attention.claim("a query with no allowed key gets zeros, in output and weights")
def _(probe, rng):
    blind_queries_get_zeros(probe, *qkv(rng, (), 1, 2, 2, 2), np.zeros((1, 2), dtype=bool))
    closed = np.broadcast_to(np.tri(3, 2, -1, dtype=bool), (2, 3, 2))
    blind_queries_get_zeros(probe, *qkv(rng, (2,), 3, 2, 2, 3), closed)


@masked_attention.claim("large scores are safe")
def _(probe, rng):
    # So steep that one key gets all, whatever the scale; integers, exact in float32 too.
    for heights in ([-180, 180], [-180, -90], [180, 90], [-170, -90, 0, 100]):
        for dtype in (np.float64, np.float32):
            n = len(heights)
            k = np.repeat(np.array(heights, dtype=dtype)[:, None], 4, axis=1)
            probe.equals(np.full((n, 4), 180, dtype), k, np.eye(n, dtype=dtype), np.tri(n) > 0)
            mask = some_mask(rng, n, n)
            probe.equals(np.full((n, 4), 90, dtype), k, rng.normal(size=(n, 2)).astype(dtype), mask)


@masked_attention.claim("changing the future changes no earlier output")
def _(probe, rng):
    n = 5
    q, k, v = qkv(rng, (), n, n, 3, 3)
    allowed = np.tri(n, dtype=bool)
    before, _ = probe(q, k, v, allowed)
    for t in range(1, n):
        changed_k, changed_v = k.copy(), v.copy()
        changed_k[t:] += rng.normal(scale=50, size=k[t:].shape)
        changed_v[t:] = rng.choice([-1e12, 1e12], size=v[t:].shape)
        after, _ = probe(q, changed_k, changed_v, allowed)
        if not np.allclose(after[:t], before[:t], rtol=1e-5, atol=1e-6):
            detail = f"keys and values from position {t} on were changed, and out[:{t}] moved"
            probe.fail(detail, q, changed_k, changed_v, allowed, expected=before[:t], got=after[:t])


# padding_mask --------------------------------------------------------------------------

padding_mask = Exercise(
    reference.padding_mask,
    read=(f"{PAGE}#ch03-padding-masks", "Padding"),
    hints=(
        "Take one sequence of length 2 in a row of 5 keys. Which key numbers are real?",
        "Compare np.arange(n_key), which has one axis, with lengths, which must get two new "
        "ones, so that the comparison has the axes (batch, query, key).",
        "lengths[:, None, None] has shape (batch, 1, 1), and key j is real when j < length.",
    ),
)


@padding_mask.claim(
    "True for the first `length` keys of each sequence, in shape (batch, 1, key)", 2
)
def _(probe, rng):
    for lengths, n_key in (([1], 2), ([2, 1], 2), ([1, 3], 3), ([4, 2, 3], 5)):
        probe.equals(np.array(lengths), n_key)
    n_key = int(rng.integers(4, 9))
    probe.equals(rng.integers(0, n_key + 1, size=4), n_key)
    probe.equals(rng.integers(0, n_key + 1, size=n_key).astype(np.int32), n_key)
    probe.equals(np.array([300, 129, 260]), 300)


@padding_mask.claim("an empty sequence has no real key, a full one has only real keys")
def _(probe, rng):
    probe.equals(np.array([0]), 1)
    probe.equals(np.array([0, 3]), 3)
    probe.equals(np.array([0, 0]), 4)


# causal_padding_mask -------------------------------------------------------------------

causal_padding_mask = Exercise(
    reference.causal_padding_mask,
    read=(f"{PAGE}#ch03-padding-masks", "Padding"),
    hints=(
        "You have written two masks already that know all that is needed here.",
        "causal_mask(n) is (query, key), padding_mask(lengths, n) is (batch, 1, key): they "
        "broadcast to (batch, query, key).",
        "Combine them with &. Rows of padded queries stay as they come out.",
    ),
    uses=("causal_mask", "padding_mask"),
)


@causal_padding_mask.claim("a key is open when it is not in the future and not padding", points=2)
def _(probe, rng):
    for lengths, n in (([1], 1), ([2], 2), ([1], 2), ([1, 3], 3), ([2, 4], 4), ([3, 1, 2], 3)):
        probe.equals(np.array(lengths), n)
    n = int(rng.integers(4, 8))
    probe.equals(rng.integers(1, n + 1, size=4), n)
    probe.equals(np.array([150, 131]), 150)


@causal_padding_mask.claim("padded queries keep their row, and an empty sequence has no key")
def _(probe, rng):
    probe.equals(np.array([2]), 4)
    probe.equals(np.array([0]), 2)
    probe.equals(np.array([0, 3, 1]), 3)


# dog_by_hand ---------------------------------------------------------------------------

dog_by_hand = Exercise(
    reference.dog_by_hand,
    read=(f"{PAGE}#ch03-i-love-dog", "“I love dog”, number by number"),
    hints=(
        "A score is the dot product of two rows of X, divided by 2. “dog” is the last token: "
        "what does the mask close in its row?",
        "Raise e to each of the three scores. A weight is one of these numbers, divided by the "
        "sum of all three.",
        "The output is weight 1 times the row of “I”, plus weight 2 times the row of “love”, "
        "plus weight 3 times the row of “dog”.",
    ),
    takes_arrays=False,
    secret=True,
    returns=("weights", "output"),
)


@dog_by_hand.claim("the three weights of “dog” are right to three decimals")
def _(probe, rng):
    _compare_part(probe, 0)


@dog_by_hand.claim("the four numbers of its output are right to three decimals")
def _(probe, rng):
    _compare_part(probe, 1)


def _compare_part(probe, index):
    """The lists are looked at one by one: a slip in one costs nothing in the other."""
    returned, wanted = probe.attempt(), probe.exercise.reference()[index]
    name = probe.exercise.returns[index]
    if not isinstance(returned, tuple | np.ndarray) or len(returned) != 2:
        detail = f"{describe(returned)} came back; return two lists, `return weights, output`"
        probe.fail(detail, got=returned)
        return
    try:
        got = conform(plain(returned[index]), plain(wanted))
    except Mismatch as mismatch:
        probe.fail(f"{name}: {mismatch}", got=returned[index])
        return
    if not np.allclose(got, wanted, rtol=0, atol=6e-4):
        probe.fail(f"{name}: at least one number is not right to three decimals", got=got)
