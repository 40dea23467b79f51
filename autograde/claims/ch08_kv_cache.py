"""What must be true of the functions of chapter 8."""

from __future__ import annotations

import numpy as np

from autograde import specimens
from autograde.claims.ch05_multi_head import STEEP, projections, small_projections, tokens
from autograde.conformance import calls, random_schedule, under_mask, wanted
from autograde.exercise import Exercise
from autograde.reference import ch08_kv_cache as reference
from autograde.reference.ch03_causal_mask import causal_mask
from autograde.reference.ch05_multi_head import multi_head_attention
from autograde.values import Mismatch, conform, describe, difference, differing, plain

PAGE = "08-kv-cache"
BOTH = (np.float64, np.float32)


# next_token_distribution ---------------------------------------------------------------

next_token_distribution = Exercise(
    reference.next_token_distribution,
    read=(f"{PAGE}#ch08-next-token", "From logits to a token"),
    hints=(
        "Sort the tokens by their logits, the largest first, and keep the order in which you "
        "sorted them: what top_k and top_p drop are then tails of that list.",
        "np.argsort(-logits, kind='stable') is that order, ties included. In it, top_k sets all "
        "probabilities from index top_k on to 0. For top_p, np.cumsum tells the mass: drop a token "
        "when the tokens before it have reached top_p already.",
        "Divide by the sum after every cut. At the end put the probabilities back where their "
        "tokens stand: result[order] = p. Temperature 0 is the same as top_k=1.",
    ),
)


def well_apart(rng, vocab: int) -> np.ndarray:
    """Logits in random order, no two of which are close."""
    steps = rng.uniform(0.2, 0.8, size=vocab)
    return rng.permutation(np.cumsum(steps) - steps.sum() / 2)


def between(logits, temperature=1.0, top_k=None, share=0.5) -> float:
    """A top_p that is far from every sum of probabilities, which rounding could decide."""
    p = np.sort(reference.next_token_distribution(logits, temperature, top_k))[::-1]
    reached = np.cumsum(p[p > 1e-2])
    place = int(share * len(reached))
    return float(reached[place] - p[place] / 2)


SMALL = np.array([1.0, 3.0, 2.0])


@next_token_distribution.claim("without any option it is the softmax of the logits", points=2)
def _(probe, rng):
    probe.equals(np.array([0.0, 1.0]))
    probe.equals(SMALL)
    for vocab in (1, 2, 5, 30):
        for dtype in BOTH:
            probe.equals(well_apart(rng, vocab).astype(dtype))


@next_token_distribution.claim("the logits are divided by the temperature")
def _(probe, rng):
    for temperature in (2.0, 0.5, 3, 0.1):
        probe.equals(np.array([0.0, 1.0]), temperature)
        probe.equals(SMALL, temperature=temperature)
        probe.equals(well_apart(rng, 6), temperature)


@next_token_distribution.claim("temperature 0 gives probability 1 to the largest logit")
def _(probe, rng):
    probe.equals(np.array([0.0, 1.0]), 0)
    probe.equals(SMALL, temperature=0.0)
    probe.equals(SMALL, 0.0, 2, 0.5)
    for dtype in BOTH:
        probe.equals(well_apart(rng, 7).astype(dtype), 0.0)


@next_token_distribution.claim("top_k keeps the k most likely tokens, and no more")
def _(probe, rng):
    for top_k in (1, 2, 3, 5):
        probe.equals(SMALL, top_k=top_k)
    for vocab in (2, 6, 12):
        for top_k in (1, vocab // 2, vocab, vocab + 3):
            probe.equals(well_apart(rng, vocab), top_k=max(top_k, 1))
    probe.equals(well_apart(rng, 8).astype(np.float32), 1.0, 3)


@next_token_distribution.claim("top_p keeps the smallest set of tokens whose mass reaches it")
def _(probe, rng):
    probe.equals(np.array([0.0, 1.0]), top_p=0.5)
    probe.equals(np.array([0.0, 1.0]), top_p=0.9)
    for top_p in (1e-3, 0.5, 0.8, 0.97):
        probe.equals(SMALL, top_p=top_p)
    # Ten equal probabilities add up to a little less than 1 in float64.
    for logits in (SMALL, np.zeros(10)):
        probe.equals(logits, top_p=1.0)
    for vocab in (2, 6, 12):
        logits = well_apart(rng, vocab)
        for share in (0, 0.4, 0.8):
            probe.equals(logits, top_p=between(logits, share=share))
    probe.equals(logits.astype(np.float32), top_p=between(logits))


@next_token_distribution.claim("first temperature, then top_k, then top_p of what is left")
def _(probe, rng):
    probe.equals(SMALL, 3.0, top_p=0.6)
    probe.equals(SMALL, top_k=2, top_p=0.7)
    probe.equals(np.log([0.2, 0.4, 0.1, 0.3]), top_k=2, top_p=0.5)
    for _ in range(3):
        logits = well_apart(rng, int(rng.integers(5, 9)))
        temperature, top_k = float(rng.choice([0.4, 2.0, 4.0])), int(rng.integers(2, 5))
        for share in (0.2, 0.5, 0.8):
            top_p = between(logits, temperature, top_k, share)
            probe.equals(logits, temperature, top_k, top_p)
            probe.equals(logits, temperature, None, between(logits, temperature, share=share))


@next_token_distribution.claim("of equal logits the one with the lower index is kept")
def _(probe, rng):
    probe.equals(np.array([0.0, 0.0]), top_k=1)
    probe.equals(np.array([1.0, 1.0]), 0)
    probe.equals(np.zeros(3), top_p=0.4)
    probe.equals(np.array([1.0, 2.0, 2.0, 0.0, 2.0]), top_k=2)
    probe.equals(np.array([1.0, 2.0, 2.0, 0.0, 2.0]), 0)
    logits = rng.choice([-1.0, 0.0, 1.0], size=9)
    for top_k in (2, 5, 8):
        probe.equals(logits, top_k=top_k)
    probe.equals(np.zeros(20), top_p=float(rng.integers(2, 19)) / 20 - 0.02)


@next_token_distribution.claim("a logit of -inf gets probability 0")
def _(probe, rng):
    inf = np.inf
    probe.equals(np.array([0.0, -inf]))
    probe.equals(np.array([-inf, 1.0, -inf, 3.0]), 0.5)
    probe.equals(np.array([-inf, 1.0, -inf, 3.0]), top_k=3)
    probe.equals(np.array([-inf, 1.0, -inf, 3.0]), top_p=1.0)
    probe.equals(np.array([-inf, -inf, -2.0]), 0)
    logits = well_apart(rng, 7)
    logits[rng.permutation(7)[:3]] = -inf
    probe.equals(logits, 2.0, 5, 1.0)


@next_token_distribution.claim("logits of any size give finite probabilities")
def _(probe, rng):
    # In float32 a rounded log-sum-exp of logits near 1000 is off by 1e-4, and right.
    for dtype in BOTH:
        for logits in ([1000.0, 1001.0], [-1000.0, -1001.0], [-1e4, 1e4], [900.0, -900.0, 902.0]):
            probe.equals(np.array(logits, dtype=dtype), atol=1e-3)
            probe.equals(np.array(logits, dtype=dtype), 0.5, atol=1e-3)


# prefill -------------------------------------------------------------------------------

SIZES = ((2, 4, 2), (3, 6, 3), (4, 6, 2), (5, 8, 8), (7, 12, 3), (2, 4, 1))  # seq, d_model, heads


def alternating(cases):
    """The cases in float64 and in float32 by turns."""
    return zip(cases, BOTH * len(cases), strict=False)


def equals_part(probe, part: str, *args) -> None:
    """Compare only the output, or only the cache, with the reference's: a slip in one costs
    nothing in the other."""
    exercise = probe.exercise
    returned, right = probe.attempt(*args), plain(exercise.reference(*args))
    if not isinstance(returned, tuple | np.ndarray) or len(returned) != 2:
        detail = f"{describe(returned)} came back; return two things, `out, (k, v)`"
        probe.fail(detail, *args, expected=right, got=returned)
        return
    index = exercise.returns.index(part)
    got, want = returned[index], right[index]
    try:
        text = difference(conform(got, want), want, exercise.rtol, exercise.atol)
    except Mismatch as mismatch:
        text = str(mismatch)
    if text:
        for number, name in enumerate(("keys", "values")):
            text = text.replace(f"value {number} of the tuple", name)
        probe.fail(f"{part}: {text}", *args, expected=want, got=got)


def full_pass(weights, n_heads):
    """Causal attention over one whole sequence, as the conformance kit wants it."""
    return lambda x: multi_head_attention(x, *weights, n_heads, causal_mask(len(x)))


def conforms(probe, rng, step, start, dtype=np.float64) -> None:
    """A random schedule, through the conformance kit: `step(args of decode_step)`.

    start: (x_new, weights, n_heads) -> what the first call gets as its cache.
    """
    schedule = random_schedule(rng, padded=False, longest=5)
    d_model, n_heads = ((4, 2), (6, 3), (6, 2), (4, 1))[rng.integers(4)]
    weights = projections(rng, d_model, dtype)
    x = tokens(rng, *schedule.shape, d_model, dtype=dtype)
    full = np.stack(wanted(schedule, full_pass(weights, n_heads), x))

    def feed(x_new, cache):
        return step(x_new, cache, *weights, n_heads)

    first = start(x, weights, n_heads)
    for columns, cache, out in calls(schedule, feed, x, first):
        if differing(out, full[:, columns]).any():
            where = f"the tokens from {columns.start} to {columns.stop - 1}"
            detail = f"{where} do not get what one pass over all {columns.stop} gives them"
            args = (x[:, columns], cache, *weights, n_heads)
            if cache is None:
                args = (x[:, columns], *weights, n_heads)
            elif probe.exercise is prefill:
                ahead = schedule.pieces[0]
                detail += f", when they follow these {ahead} step by step"
                args = (x[:, :ahead], *weights, n_heads)
            probe.fail(detail, *args, expected=full[:, columns], got=out)
            return


prefill = Exercise(
    reference.prefill,
    read=(f"{PAGE}#ch08-prefill", "Prefill: the whole prompt at once"),
    hints=(
        "The output is causal multi-head attention, as in chapter 5. What of it could the next "
        "token need again: queries, keys, values, weights?",
        "q, k and v are split_heads(x @ w, n_heads) with the three matrices. k and v are the "
        "cache, just as they come out of split_heads.",
        "out, _ = masked_attention(q, k, v, causal_mask(number of tokens)); return "
        "merge_heads(out) @ w_o, (k, v).",
    ),
    returns=("out", "cache"),
)


@prefill.claim("out is causal multi-head attention", points=2)
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    equals_part(probe, "out", x[:1], *small_projections(2), 1)
    equals_part(probe, "out", x, *small_projections(2), 1)
    equals_part(probe, "out", x, *small_projections(2), 2)
    small = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    equals_part(probe, "out", small, *small_projections(4), 2)
    for (seq, d_model, n_heads), dtype in alternating(SIZES):
        x = tokens(rng, seq, d_model, dtype=dtype)
        equals_part(probe, "out", x, *projections(rng, d_model, dtype), n_heads)


@prefill.claim("the cache holds the keys and the values of every head")
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    equals_part(probe, "cache", x[:1], *small_projections(2), 1)
    equals_part(probe, "cache", x[:1], *small_projections(2), 2)
    equals_part(probe, "cache", x, *small_projections(2), 2)
    for (seq, d_model, n_heads), dtype in alternating(SIZES):
        x = tokens(rng, seq, d_model, dtype=dtype)
        equals_part(probe, "cache", x, *projections(rng, d_model, dtype), n_heads)


@prefill.claim("any number of batch axes may stand in front")
def _(probe, rng):
    probe.equals(np.arange(8.0).reshape(2, 2, 2) % 3, *small_projections(2), 2)
    for batch, seq, d_model, n_heads in (((2,), 3, 4, 2), ((3,), 3, 6, 3), ((2, 3), 4, 6, 2)):
        probe.equals(tokens(rng, *batch, seq, d_model), *projections(rng, d_model), n_heads)


@prefill.claim("a sequence that goes on from your cache gets what one pass over it gives")
def _(probe, rng):
    def start_or_go_on(x_new, cache, *rest):
        return probe(x_new, *rest) if cache is None else reference.decode_step(x_new, cache, *rest)

    for dtype in (*BOTH, *BOTH, np.float64, np.float64):
        conforms(probe, rng, start_or_go_on, lambda *sizes: None, dtype)


@prefill.claim("changing a later token changes no earlier output")
def _(probe, rng):
    for seq, d_model, n_heads in ((2, 2, 1), (4, 4, 2), (5, 6, 3)):
        x, weights = tokens(rng, seq, d_model), projections(rng, d_model)
        before, _ = probe(x, *weights, n_heads)
        for t in range(1, seq):
            changed = x.copy()
            changed[t:] += rng.normal(scale=30, size=x[t:].shape)
            after, _ = probe(changed, *weights, n_heads)
            if not np.allclose(after[:t], before[:t], rtol=1e-5, atol=1e-5):
                detail = f"tokens from {t} on were changed, and out[:{t}] moved"
                args = (changed, *weights, n_heads)
                probe.fail(detail, *args, expected=before[:t], got=after[:t])


@prefill.claim("large scores are safe")
def _(probe, rng):
    for dtype in BOTH:
        for heights, _ in STEEP:
            x = np.repeat(np.array(heights, dtype)[:, None], 4, axis=1)
            probe.equals(x, *[np.eye(4, dtype=dtype)] * 4, 2)


# decode_step ---------------------------------------------------------------------------

decode_step = Exercise(
    reference.decode_step,
    read=(f"{PAGE}#ch08-decode", "Decode: only what is new"),
    hints=(
        "The new tokens need queries, keys and values of their own; the old tokens' keys and "
        "values are in the cache. Who may the new tokens see?",
        "Split x_new @ w_q, x_new @ w_k and x_new @ w_v into heads, and append the new keys and "
        "values to those in the cache along the axis of the tokens, axis -2 (np.concatenate).",
        "causal_mask(new, old + new) is aligned at the bottom right, which is what you need here. "
        "Return the merged output times w_o, and the longer keys and values.",
    ),
    returns=("out", "cache"),
)


def past_of(rng, weights, n_heads, *shape, dtype=np.float64):
    """The cache of random tokens."""
    x = tokens(rng, *shape, weights[0].shape[0], dtype=dtype)
    return reference.prefill(x, *weights, n_heads)[1]


def empty_cache(x, weights, n_heads):
    """The cache of no tokens, for sequences like x."""
    *batch, _, d_model = x.shape
    nothing = np.zeros((*batch, n_heads, 0, d_model // n_heads), x.dtype)
    return nothing, nothing.copy()


def small_step(past: int, new: int, n_heads: int):
    """Arguments in whole numbers: `past` tokens in the cache, `new` ones to come."""
    x = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    weights = small_projections(2)
    k, v = reference.prefill(x, *weights, n_heads)[1]
    cache = k[:, :past].copy(), v[:, :past].copy()
    return (x[past : past + new], cache, *weights, n_heads)


@decode_step.claim("a new token attends to the whole cache and to itself", points=3)
def _(probe, rng):
    for past, n_heads in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2)):
        equals_part(probe, "out", *small_step(past, 1, n_heads))
    for (seq, d_model, n_heads), dtype in alternating(SIZES):
        weights = projections(rng, d_model, dtype)
        cache = past_of(rng, weights, n_heads, seq, dtype=dtype)
        x_new = tokens(rng, 1, d_model, dtype=dtype)
        equals_part(probe, "out", x_new, cache, *weights, n_heads)


@decode_step.claim("of several new tokens, each sees the cache, those before it, and itself")
def _(probe, rng):
    for past, new in ((0, 2), (1, 2), (1, 3), (2, 2)):
        for n_heads in (1, 2):
            equals_part(probe, "out", *small_step(past, new, n_heads))
    for new, (seq, d_model, n_heads) in zip((2, 3, 4, 5, 6, 3), SIZES, strict=True):
        weights = projections(rng, d_model)
        cache = past_of(rng, weights, n_heads, seq)
        equals_part(probe, "out", tokens(rng, new, d_model), cache, *weights, n_heads)


@decode_step.claim("the returned cache is the old one, with the new keys and values at its end")
def _(probe, rng):
    for past, new in ((1, 1), (2, 1), (1, 2)):
        equals_part(probe, "cache", *small_step(past, new, 2))
    for new, ((seq, d_model, n_heads), dtype) in zip(range(1, 7), alternating(SIZES), strict=True):
        weights = projections(rng, d_model, dtype)
        cache = past_of(rng, weights, n_heads, seq, dtype=dtype)
        x_new = tokens(rng, new, d_model, dtype=dtype)
        equals_part(probe, "cache", x_new, cache, *weights, n_heads)


@decode_step.claim("a cache may be empty")
def _(probe, rng):
    for n_heads in (1, 2):
        probe.equals(*small_step(0, 1, n_heads))
    for batch, d_model, n_heads in (((), 4, 2), ((), 6, 3), ((2,), 4, 2)):
        x, weights = tokens(rng, *batch, 1, d_model), projections(rng, d_model)
        probe.equals(x, empty_cache(x, weights, n_heads), *weights, n_heads)


@decode_step.claim("any number of batch axes may stand in front")
def _(probe, rng):
    sizes = (((2,), 2, 2, 1), ((2,), 3, 4, 2), ((3,), 3, 6, 3), ((2, 3), 2, 6, 2))
    for batch, seq, d_model, n_heads in sizes:
        weights = projections(rng, d_model)
        cache = past_of(rng, weights, n_heads, *batch, seq)
        probe.equals(tokens(rng, *batch, 1, d_model), cache, *weights, n_heads)


@decode_step.claim("in whatever pieces a sequence comes, it gets what one pass gives", points=2)
def _(probe, rng):
    for dtype in (*BOTH, *BOTH, np.float64, np.float64):
        conforms(probe, rng, probe, empty_cache, dtype)


@decode_step.claim("what comes out depends on the cache that goes in, not on earlier calls")
def _(probe, rng):
    weights = projections(rng, 4)
    both = [past_of(rng, weights, 2, seq) for seq in (2, 3)]
    for new in (1, 2, 1):
        x_new = tokens(rng, new, 4)
        for conversation, cache in enumerate(both):
            out, longer = probe(x_new, cache, *weights, 2)
            want, _ = reference.decode_step(x_new, cache, *weights, 2)
            if differing(out, want).any():
                detail = "two sequences take turns, and this is not what the cache passed in gives"
                probe.fail(detail, x_new, cache, *weights, 2, expected=want, got=out)
                return
            both[conversation] = longer


@decode_step.claim("large scores are safe")
def _(probe, rng):
    for dtype in BOTH:
        eye = [np.eye(4, dtype=dtype)] * 4
        for heights, _ in STEEP:
            x = np.repeat(np.array(heights, dtype)[:, None], 4, axis=1)
            probe.equals(x[-1:], reference.prefill(x[:-1], *eye, 2)[1], *eye, 2)


# cache_bytes ---------------------------------------------------------------------------

cache_bytes = Exercise(
    reference.cache_bytes,
    read=(f"{PAGE}#ch08-memory", "What a cache weighs"),
    hints=(
        "Start with one token in one layer. What is kept of it, in every head, and how many "
        "numbers is that?",
        "A head keeps a key and a value, each d_head numbers. Every layer does so, for every token "
        "of every sequence.",
        "It is a product of seven factors: the six arguments, and a 2.",
    ),
    takes_arrays=False,
)


@cache_bytes.claim("a key and a value for each layer, head, token and sequence", points=2)
def _(probe, rng):
    probe.equals(1, 1, 1, 1, 1, 1)
    probe.equals(1, 1, 3, 1, 1, 1)
    probe.equals(1, 2, 3, 1, 1, 4)
    probe.equals(2, 3, 5, 7, 11, 4)
    for _ in range(3):
        layers, heads, d_head, seq, batch = (int(n) for n in rng.integers(2, 60, size=5))
        probe.equals(layers, heads, d_head, seq, batch, int(rng.choice([1, 2, 4, 8])))


@cache_bytes.claim("doubling any one of the six numbers doubles the bytes")
def _(probe, rng):
    sizes = [int(n) for n in rng.choice([2, 3, 5, 7, 9], size=6)]
    before = probe(*sizes)
    for index, name in enumerate(probe.exercise.parameters):
        doubled = [size * (1 + (i == index)) for i, size in enumerate(sizes)]
        after = probe(*doubled)
        if after != 2 * before:
            detail = f"{name} was doubled, and {before} bytes became {after}"
            probe.fail(detail, *doubled, expected=2 * before, got=after)


@cache_bytes.claim("caches of many gigabytes are counted to the byte")
def _(probe, rng):
    probe.equals(32, 32, 128, 4096, 1, 2)
    probe.equals(79, 7, 127, 131071 + 2 * int(rng.integers(1, 999)), 3, 2)


# left_padding_mask ---------------------------------------------------------------------

left_padding_mask = Exercise(
    reference.left_padding_mask,
    read=(f"{PAGE}#ch08-left-padding", "Batches, padded on the left"),
    hints=(
        "A sequence of length 2 in a row of 5 columns: which of the columns are real? Write its "
        "5 by 5 mask on paper.",
        "Column j is real when j >= n - length. A key must be real and not in the future; what "
        "does that leave for the queries that are pads?",
        "(np.arange(n) >= n - lengths[:, None]) is (batch, key); with a new axis for the queries "
        "it goes together with causal_mask(n) by &.",
    ),
)


@left_padding_mask.claim("a real query sees the real keys up to itself", points=2)
def _(probe, rng):
    for lengths, n in (([1], 1), ([2], 2), ([1], 2), ([2, 1], 2), ([2, 4], 4), ([3, 1, 2], 3)):
        probe.equals(np.array(lengths), n)
    n = int(rng.integers(4, 8))
    probe.equals(rng.integers(1, n + 1, size=4), n)
    probe.equals(rng.integers(1, n + 1, size=n).astype(np.int32), n)
    probe.equals(np.array([150, 131, 12, 140, 77]), 150)


@left_padding_mask.claim("a sequence as long as the batch is causal, an empty one is all False")
def _(probe, rng):
    probe.equals(np.array([3]), 3)
    probe.equals(np.array([0]), 1)
    probe.equals(np.array([0, 3, 1]), 3)
    probe.equals(np.array([0, 0, 5]), 5)


@left_padding_mask.claim("pads see nothing, and nobody sees them")
def _(probe, rng):
    for lengths, n in (([1], 2), ([1, 2], 3), (rng.integers(1, 6, size=4), 6)):
        lengths = np.array(lengths)
        mask = probe(lengths, n)
        pad = np.arange(n) < n - lengths[:, None]
        for what, wrong in (
            ("the query at pad", mask & pad[:, :, None]),
            ("the key at pad", mask & pad[:, None, :]),
        ):
            if wrong.any():
                sequence, query, key = (int(i) for i in np.argwhere(wrong)[0])
                pad_at = query if what.startswith("the query") else key
                detail = f"{what} {pad_at} of sequence {sequence} is open"
                probe.fail(detail, lengths, n, expected=reference.left_padding_mask(lengths, n))
                break


@left_padding_mask.claim("under it, each sequence of a padded batch gets what it gets alone")
def _(probe, rng):
    for _ in range(4):
        schedule = random_schedule(rng, longest=5)
        weights, n = projections(rng, 4), schedule.shape[1]
        x = tokens(rng, *schedule.shape, 4)
        mask = probe(schedule.lengths, n)
        alone = wanted(schedule, full_pass(weights, 2), x)
        for columns, _, out in calls(schedule, under_mask(mask, weights, 2), x):
            for i, pads in enumerate(schedule.pads):
                real = slice(max(columns.start - pads, 0), max(columns.stop - pads, 0))
                got, want = out[i][max(pads - columns.start, 0) :], alone[i][real]
                if differing(got, want).any():
                    detail = f"sequence {i} does not get what it gets alone"
                    right = reference.left_padding_mask(schedule.lengths, n)
                    probe.fail(detail, schedule.lengths, n, expected=right, got=mask)
                    return


# generate ------------------------------------------------------------------------------

generate = Exercise(
    reference.generate,
    read=(f"{PAGE}#ch08-generate", "One token after the other"),
    hints=(
        "A loop with n_new turns. What does next_logits need in the first turn, and what in the "
        "second?",
        "Keep one array of tokens. In each turn give all of it to next_logits, find the position "
        "of the largest logit, and append that number.",
        "np.argmax returns the first position of the largest; np.append(tokens, best) makes a "
        "longer array and leaves the prompt as it was.",
    ),
)


@generate.claim("the prompt, and after it n_new tokens, each the most likely one", points=2)
def _(probe, rng):
    length = specimens.says_the_length
    probe.equals(length.using(vocab=4), np.array([0]), 1)
    probe.equals(length.using(vocab=4), np.array([3, 1]), 1)
    probe.equals(length.using(vocab=4), np.array([3, 1]), 3)
    vocab = int(rng.integers(5, 9))
    for dtype in (np.int64, np.int32):
        prompt = rng.integers(vocab, size=int(rng.integers(3, 6))).astype(dtype)
        probe.equals(length.using(vocab=vocab), prompt, int(rng.integers(4, 8)))


@generate.claim("next_logits is given all the tokens so far, in their order")
def _(probe, rng):
    digits = specimens.digits.using(vocab=7)
    probe.equals(digits, np.array([1]), 2)
    probe.equals(digits, np.array([1, 2]), 2)
    probe.equals(digits, np.array([2, 1]), 2)
    for size in (3, 5, 8):
        probe.equals(digits, rng.integers(7, size=size), 6)
        probe.equals(specimens.prefers_rare.using(vocab=6), rng.integers(6, size=size), 8)


@generate.claim("of equally likely tokens the lowest id is taken")
def _(probe, rng):
    probe.equals(specimens.all_alike.using(vocab=3), np.array([2]), 2)
    probe.equals(specimens.prefers_rare.using(vocab=3), np.array([0]), 4)
    probe.equals(specimens.prefers_rare.using(vocab=7), rng.integers(7, size=4), 9)


@generate.claim("logits may be negative, and -inf")
def _(probe, rng):
    probe.equals(specimens.never_twice.using(vocab=3), np.array([0]), 3)
    probe.equals(specimens.prefers_rare.using(vocab=3), np.array([0, 1, 2, 0]), 2)
    probe.equals(specimens.never_twice.using(vocab=5), rng.integers(5, size=3), 4)


@generate.claim("n_new may be 0: the prompt comes back")
def _(probe, rng):
    probe.equals(specimens.says_the_length.using(vocab=4), np.array([2]), 0)
    probe.equals(specimens.digits.using(vocab=7), rng.integers(7, size=4), 0)
