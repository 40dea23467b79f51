"""Chapter 8's reference functions against PyTorch, loops and the full pass; the conformance kit."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from autograde import specimens
from autograde.conformance import Schedule, calls, disagreement, random_schedule, under_mask
from autograde.reference.ch03_causal_mask import causal_mask
from autograde.reference.ch05_multi_head import multi_head_attention
from autograde.reference.ch08_kv_cache import (
    cache_bytes,
    decode_step,
    generate,
    left_padding_mask,
    next_token_distribution,
    prefill,
)

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-5}


def projections(rng, d_model, dtype=np.float64):
    return tuple((rng.normal(size=(4, d_model, d_model)) / d_model**0.5).astype(dtype))


# next_token_distribution ----------------------------------------------------------------


def by_the_book(logits, temperature, top_k, top_p):
    """The docstring, token by token, in Python."""
    ranking = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    largest = max(logits)
    mass = {token: np.exp((logits[token] - largest) / temperature) for token in ranking}
    kept = ranking[:top_k]
    total = sum(mass[token] for token in kept)
    if top_p is not None:
        reached, nucleus = 0.0, []
        for token in kept:
            if reached >= top_p:
                break
            nucleus.append(token)
            reached += mass[token] / total
        kept = nucleus
    total = sum(mass[token] for token in kept)
    return [mass[token] / total if token in kept else 0.0 for token in range(len(logits))]


@pytest.mark.parametrize("seed", range(20))
def test_the_distribution_against_a_loop(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2, size=int(rng.integers(1, 12)))
    if len(logits) > 2:
        logits[rng.integers(len(logits))] = -np.inf
    for temperature in (0.3, 1.0, 2.5):
        for top_k in (None, 1, 3, 50):
            for top_p in (None, 0.01, 0.63, 0.9, 1.0):
                got = next_token_distribution(logits, temperature, top_k, top_p)
                want = by_the_book(logits.tolist(), temperature, top_k, top_p)
                np.testing.assert_allclose(got, want, atol=1e-12)
                assert got.sum() == pytest.approx(1)


def test_without_options_it_is_the_softmax():
    logits = np.random.default_rng(0).normal(scale=3, size=30)
    theirs = torch.softmax(torch.from_numpy(logits), 0).numpy()
    np.testing.assert_allclose(next_token_distribution(logits), theirs, atol=1e-14)
    theirs = torch.softmax(torch.from_numpy(logits) / 0.4, 0).numpy()
    np.testing.assert_allclose(next_token_distribution(logits, 0.4), theirs, atol=1e-14)


def test_the_edges_of_the_distribution():
    log = np.log([0.2, 0.4, 0.1, 0.3])
    assert next_token_distribution(log, 0).tolist() == [0, 1, 0, 0]
    assert next_token_distribution(np.array([1.0, 5.0, 5.0]), 0).tolist() == [0, 1, 0]
    assert next_token_distribution(np.zeros(4), top_k=3).tolist() == [1 / 3, 1 / 3, 1 / 3, 0]
    assert next_token_distribution(np.zeros(4), top_p=0.5).tolist() == [0.5, 0.5, 0, 0]
    # W111: the token that crosses the threshold is kept, and top_p=1 keeps all.
    assert (next_token_distribution(log, top_p=0.8) > 0).tolist() == [True, True, False, True]
    assert (next_token_distribution(np.zeros(10), top_p=1.0) > 0).all()
    # The order: the mass is that of the two tokens which top_k has left.
    assert (next_token_distribution(log, top_k=2, top_p=0.5) > 0).sum() == 1
    assert (next_token_distribution(log, top_p=0.5) > 0).sum() == 2
    large = np.array([1e4, -np.inf, 1e4 - 1])
    np.testing.assert_allclose(next_token_distribution(large), [0.731059, 0, 0.268941], atol=1e-6)


# The cache ------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize(("seq", "d_model", "n_heads"), [(1, 4, 2), (5, 6, 3), (4, 8, 1)])
def test_prefill_is_causal_multi_head_attention(batch, seq, d_model, n_heads):
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(*batch, seq, d_model)), projections(rng, d_model)
    out, (k, v) = prefill(x, *weights, n_heads)
    full = multi_head_attention(x, *weights, n_heads, causal_mask(seq))
    np.testing.assert_allclose(out, full, atol=1e-12)
    for heads, w in ((k, weights[1]), (v, weights[2])):
        assert heads.shape == (*batch, n_heads, seq, d_model // n_heads)
        for head in range(n_heads):
            own = w[:, head * d_model // n_heads : (head + 1) * d_model // n_heads]
            np.testing.assert_allclose(heads[..., head, :, :], x @ own, atol=1e-12)


@pytest.mark.parametrize("new", [1, 3])
def test_a_step_against_torch(new):
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=(2, 7, 6)), projections(rng, 6)
    _, cache = prefill(x[:, :-new], *weights, 2)
    out, (k, v) = decode_step(x[:, -new:], cache, *weights, 2)
    whole = torch.from_numpy(x)
    q, their_k, their_v = (
        (whole @ torch.from_numpy(w)).unflatten(-1, (2, 3)).transpose(1, 2) for w in weights[:3]
    )
    theirs = scaled_dot_product_attention(q, their_k, their_v, is_causal=True)
    theirs = theirs.transpose(1, 2).flatten(-2) @ torch.from_numpy(weights[3])
    np.testing.assert_allclose(out, theirs[:, -new:].numpy(), atol=1e-12)
    np.testing.assert_allclose(k, their_k.numpy(), atol=1e-12)
    np.testing.assert_allclose(v, their_v.numpy(), atol=1e-12)


def test_an_empty_cache_makes_a_step_a_prefill():
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(3, 4, 6)), projections(rng, 6)
    nothing = np.zeros((3, 2, 0, 3))
    out, cache = decode_step(x, (nothing, nothing), *weights, 2)
    same, other = prefill(x, *weights, 2)
    np.testing.assert_allclose(out, same, atol=1e-12)
    np.testing.assert_allclose(cache, other, atol=1e-12)


def test_a_step_leaves_the_given_cache_alone():
    rng = np.random.default_rng(3)
    x, weights = rng.normal(size=(5, 4)), projections(rng, 4)
    _, cache = prefill(x, *weights, 2)
    before = [part.copy() for part in cache]
    first = decode_step(x[:1], cache, *weights, 2)
    again = decode_step(x[:1], cache, *weights, 2)
    assert np.array_equal(first[0], again[0])
    assert all(map(np.array_equal, cache, before))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bytes_are_those_of_the_arrays(dtype):
    rng = np.random.default_rng(4)
    x, weights = rng.normal(size=(3, 7, 6)).astype(dtype), projections(rng, 6, dtype)
    _, (k, v) = prefill(x, *weights, 2)
    assert cache_bytes(1, 2, 3, 7, 3, dtype().itemsize) == k.nbytes + v.nbytes
    assert cache_bytes(5, 2, 3, 7, 3, dtype().itemsize) == 5 * (k.nbytes + v.nbytes)


def test_the_size_of_llama_7b_per_token():
    """32 layers, 32 heads, 4096 dimensions (Touvron et al. 2023, table 2), two bytes a value."""
    assert cache_bytes(32, 32, 128, 1, 1, 2) == 512 * 1024


def test_left_padding_against_a_loop():
    lengths, n = np.array([0, 2, 4, 1]), 4
    loop = [
        [[n - length <= j <= i for j in range(n)] for i in range(n)] for length in lengths.tolist()
    ]
    mask = left_padding_mask(lengths, n)
    assert mask.dtype == bool
    assert mask.tolist() == loop
    assert mask[2].tolist() == causal_mask(4).tolist()
    for one, pads in zip(mask, n - lengths, strict=True):
        assert not one[:pads].any()
        assert not one[:, :pads].any()


# The conformance kit --------------------------------------------------------------------


def test_a_thousand_schedules_agree_with_the_full_pass():
    rng = np.random.default_rng(5)
    seen = {"padded": 0, "chunked": 0, "single": 0, "long": 0}
    for trial in range(1000):
        dtype = (np.float64, np.float32)[trial % 2]
        d_model, n_heads = ((4, 2), (6, 3), (8, 2), (6, 1))[rng.integers(4)]
        weights = projections(rng, d_model, dtype)
        schedule = random_schedule(rng, padded=trial % 3 > 0)
        x = rng.normal(size=(*schedule.shape, d_model)).astype(dtype)

        def full(row, weights=weights, n_heads=n_heads):
            return multi_head_attention(row, *weights, n_heads, causal_mask(len(row)))

        def plain(x_new, cache, weights=weights, n_heads=n_heads):
            if cache is None:
                return prefill(x_new, *weights, n_heads)
            return decode_step(x_new, cache, *weights, n_heads)

        feed = plain
        if any(schedule.pads):
            allowed = left_padding_mask(schedule.lengths, schedule.shape[1])
            feed = under_mask(allowed, weights, n_heads)
        assert disagreement(schedule, feed, full, x) < TOLERANCE[dtype], schedule
        seen["padded"] += any(schedule.pads)
        seen["chunked"] += schedule.pieces[0] < 8 and len(schedule.pieces) > 1
        seen["single"] += 1 in schedule.pieces
        seen["long"] += schedule.shape[1] > 8
    assert min(seen.values()) > 200, seen


def test_a_schedule_has_what_it_says():
    schedule = Schedule(pads=(0, 2), pieces=(3, 1, 2))
    assert schedule.shape == (2, 6)
    assert schedule.lengths.tolist() == [6, 4]
    x = np.arange(12).reshape(2, 6, 1)
    seen = list(calls(schedule, lambda x_new, cache: (x_new, (cache or 0) + 1), x))
    assert [columns for columns, _, _ in seen] == [slice(0, 3), slice(3, 4), slice(4, 6)]
    assert [cache for _, cache, _ in seen] == [None, 1, 2]
    assert np.concatenate([out for *_, out in seen], axis=1).tolist() == x.tolist()


def no_mask(x_new, cache):
    past = np.zeros((len(x_new), 0, 1)) if cache is None else cache
    seen = np.concatenate([past, x_new], axis=1)
    return x_new * 0 + seen.mean(axis=1, keepdims=True), seen


def forgets(x_new, cache):
    return np.cumsum(x_new, axis=1) / np.arange(1, x_new.shape[1] + 1)[:, None], None


def nans(x_new, cache):
    return x_new * np.nan, None


@pytest.mark.parametrize("broken", [no_mask, forgets, nans])
def test_the_kit_finds_what_does_not_conform(broken):
    rng = np.random.default_rng(6)

    def full(row):
        return np.cumsum(row, axis=0) / np.arange(1, len(row) + 1)[:, None]

    found = 0
    for _ in range(20):
        schedule = random_schedule(rng, padded=False)
        x = rng.normal(size=(*schedule.shape, 1))
        found += not disagreement(schedule, broken, full, x) < 1e-10  # NaN, too
    assert found >= 10


def test_pads_do_not_count():
    schedule = Schedule(pads=(0, 2), pieces=(3,))
    x = np.zeros((2, 3, 1))
    junk = x + np.array([[0, 0, 0], [np.nan, 7, 0]])[..., None]
    assert disagreement(schedule, lambda x_new, _: (junk, None), lambda row: row, x) == 0


# generate -------------------------------------------------------------------------------


def test_generating_with_every_specimen():
    prompt = np.array([2, 0, 1])
    assert generate(specimens.says_the_length.using(vocab=5), prompt, 4).tolist() == [
        2, 0, 1, 3, 4, 0, 1,
    ]  # fmt: skip
    assert generate(specimens.prefers_rare.using(vocab=4), prompt, 5).tolist() == [
        2, 0, 1, 3, 0, 1, 2, 3,
    ]  # fmt: skip
    assert generate(specimens.digits.using(vocab=7), prompt, 3).tolist() == [2, 0, 1, 5, 6, 3]
    assert generate(specimens.all_alike.using(vocab=3), prompt, 2).tolist() == [2, 0, 1, 0, 0]
    assert generate(specimens.never_twice.using(vocab=3), prompt, 3).tolist() == [2, 0, 1, 0, 1, 0]
    assert generate(specimens.all_alike.using(vocab=3), prompt, 0).tolist() == [2, 0, 1]
    assert prompt.tolist() == [2, 0, 1]


def test_the_specimens_depend_on_the_whole_prefix():
    rng = np.random.default_rng(7)
    for name in ("prefers_rare", "digits"):
        next_logits = getattr(specimens, name).using(vocab=7)
        tokens = rng.integers(7, size=6)
        before = next_logits(tokens)
        for place in range(6):
            changed = tokens.copy()
            changed[place] = (changed[place] + 1) % 7
            assert not np.array_equal(next_logits(changed), before), (name, place)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (np.zeros((1, 3), int), "an array (seq,), not (1, 3)"),
        (np.zeros(3), "integers, not float64"),
    ],
)
def test_the_specimens_say_what_they_take(tokens, words):
    with pytest.raises(ValueError, match="next_logits takes") as error:
        specimens.digits.using(vocab=3)(tokens)
    assert words in str(error.value)
