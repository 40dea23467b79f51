"""Generating with the decoder: the cache changes nothing but the time."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from autograde.conformance import Schedule, disagreement, random_schedule  # noqa: E402
from autograde.decoder import Config, Decoder  # noqa: E402
from autograde.decoder.generation import Cache, distribution, feed, generate  # noqa: E402
from autograde.reference.ch08_kv_cache import (  # noqa: E402
    cache_bytes,
    next_token_distribution,
)
from autograde.reference.ch09_variants import ring_positions  # noqa: E402

POSITIONS = ("learned", "sinusoidal", "rotary", "alibi")
SIZES = {"vocab": 13, "d_model": 12, "n_layers": 2, "n_heads": 3, "d_ff": 20, "max_seq": 30}
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def shaken(dtype=torch.float64, seed=0, **kind):
    """A decoder with no parameter at its special first value."""
    torch.manual_seed(seed)
    model = Decoder(Config(**{**SIZES, **kind})).to(dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return model


def prompts(*lengths, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return [torch.randint(SIZES["vocab"], (n,), generator=rng) for n in lengths]


def as_lists(tokens):
    return [row.tolist() for row in tokens]


def cached(model, schedule, capacity=SIZES["max_seq"]):
    """The model with a cache, as the conformance kit takes it."""

    def run(tokens, cache):
        if cache is None:
            cache = Cache(model, len(schedule.pads), capacity, schedule.pads)
            cache.buffers.fill_(torch.nan)  # whoever reads what was never written gets NaN
        return model.logits(feed(model, tokens, cache)).detach().numpy(), cache

    return run


def uncached(model):
    def full(tokens):
        with torch.no_grad():
            return model(tokens).numpy()

    return full


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("positions", POSITIONS)
def test_every_schedule_agrees_with_the_full_pass(positions, dtype):
    """1,040 schedules in eight kinds; behind the columns in use the buffers are NaN."""
    rng = np.random.default_rng(POSITIONS.index(positions))
    models = [shaken(dtype, seed, positions=positions) for seed in range(3)]
    for trial in range(130):
        schedule, model = random_schedule(rng, padded=trial % 3 > 0), models[trial % 3]
        tokens = torch.from_numpy(rng.integers(SIZES["vocab"], size=schedule.shape))
        off = disagreement(schedule, cached(model, schedule), uncached(model), tokens)
        assert off < TOLERANCE[dtype], schedule


@pytest.mark.parametrize("kind", [{"norm": "rms"}, {"gelu": "tanh"}, {"attention_bias": True}])
def test_the_other_choices_of_a_decoder_agree_too(kind):
    rng = np.random.default_rng(3)
    model = shaken(**kind)
    for _ in range(20):
        schedule = random_schedule(rng)
        tokens = torch.from_numpy(rng.integers(SIZES["vocab"], size=schedule.shape))
        off = disagreement(schedule, cached(model, schedule), uncached(model), tokens)
        assert off < 1e-10, schedule


def drawn(rng):
    """A variant of chapter 9: a window, shared heads, or both, and any positions."""
    return {
        "positions": str(rng.choice(POSITIONS)),
        "window": int(rng.integers(1, 12)) if rng.random() < 0.8 else None,
        "kv_heads": int(rng.choice([1, 2, 3, 6])),
        "n_heads": 6,
        "d_model": 24,
        "attention_bias": bool(rng.random() < 0.5),
    }


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_variant_agrees_with_the_full_pass(dtype):
    """60 models, 8 schedules each. Rings begin as NaN, and most are overwritten."""
    rng, wrapped, in_chunks = np.random.default_rng(9), 0, 0
    for seed in range(60):
        kind = drawn(rng)
        model = shaken(dtype, seed, **kind)
        for trial in range(8):
            schedule = random_schedule(rng, padded=trial % 3 > 0, longest=20)
            tokens = torch.from_numpy(rng.integers(SIZES["vocab"], size=schedule.shape))
            feeder = cached(model, schedule, capacity=max(30, schedule.shape[1]))
            if schedule.shape[1] > 30:  # more than the learned positions have
                continue
            off = disagreement(schedule, feeder, uncached(model), tokens)
            assert off < TOLERANCE[dtype], (kind, schedule)
            wrapped += schedule.shape[1] > (kind["window"] or 99)
            in_chunks += schedule.pieces[0] > (kind["window"] or 99)
    assert wrapped > 150
    assert in_chunks > 75  # a prompt, or its first piece, is longer than the window


def test_the_kit_notices_a_ring_that_is_written_first():
    """The public break of causality (chapter 9): a prompt longer than the ring."""
    model, schedule = shaken(window=3), Schedule(pads=(0,), pieces=(6, 1))
    tokens = torch.arange(7)[None]

    class WrittenFirst(Cache):
        def keep(self, ring, new):
            for i in range(new.shape[-2]):
                ring[..., (self.length + i) % self.slots, :] = new[..., i, :]
            return ring[..., : self.length + new.shape[-2], :]

    def careless(tokens, cache):
        cache = cache or WrittenFirst(model, 1, 7)
        return model.logits(feed(model, tokens, cache)).detach().numpy(), cache

    assert disagreement(schedule, careless, uncached(model), tokens) > 1e-3
    single = Schedule(pads=(0,), pieces=(1,) * 7)  # one at a time it is right
    assert disagreement(single, careless, uncached(model), tokens) < 1e-10


def test_the_kit_notices_positions_that_begin_again():
    """W090: a cache that gives every call the positions 0, 1, 2, ..."""
    model, schedule = shaken(), Schedule(pads=(0,), pieces=(3, 1, 1))
    tokens = torch.arange(5)[None]

    def restarts(tokens, cache):
        cache = cache or Cache(model, 1, 5)
        column = torch.arange(cache.length, cache.length + tokens.shape[1])
        x, allowed = model.stream(tokens, column - cache.length), cache.allowed(column)
        with torch.no_grad():
            for layer, block in enumerate(model.blocks):
                x = block(x, column, allowed, cache.past(layer))
            cache.length += tokens.shape[1]
            return model.logits(x).numpy(), cache

    assert disagreement(schedule, restarts, uncached(model), tokens) > 1e-3
    with torch.no_grad():
        model.position_embedding.zero_()  # a model without positions hides it
    assert disagreement(schedule, restarts, uncached(model), tokens) < 1e-10


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_greedy_tokens_are_the_same_with_and_without_a_cache(positions, chunk):
    model = shaken(positions=positions)
    batch = prompts(7, 1, 4, 7)
    together = as_lists(generate(model, batch, 20, chunk=chunk))
    assert together == as_lists(generate(model, batch, 20, cached=False))
    alone = [generate(model, [prompt], 20, chunk=chunk)[0].tolist() for prompt in batch]
    assert together == alone
    by_hand = batch[1].tolist()
    for _ in range(20):
        with torch.no_grad():
            by_hand.append(int(model(torch.tensor(by_hand))[-1].argmax()))
    assert together[1] == by_hand
    assert len({tuple(row[-20:]) for row in together}) > 1  # they do not all say the same


@pytest.mark.parametrize("window", [1, 4, 9, None])
@pytest.mark.parametrize("kv_heads", [1, 3])
@pytest.mark.parametrize("positions", POSITIONS)
def test_greedy_tokens_of_the_variants_are_the_same_too(positions, kv_heads, window):
    model = shaken(positions=positions, kv_heads=kv_heads, window=window)
    batch = prompts(7, 1, 4, 7)
    plain = as_lists(generate(model, batch, 20, cached=False))
    for chunk in (None, 1, 3):
        assert as_lists(generate(model, batch, 20, chunk=chunk)) == plain
    assert len({tuple(row[-20:]) for row in plain}) > 1


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_with_a_window_a_text_has_no_end(positions):
    model = shaken(positions=positions, window=5, max_seq=8)
    batch = prompts(20, 3)
    got = as_lists(generate(model, batch, 60, chunk=7))
    assert got == as_lists(generate(model, batch, 60, cached=False))
    assert [len(row) for row in got] == [80, 63]
    assert Cache(model, 2, 10**9).buffers.shape[-2] == 5  # and the cache does not grow
    with pytest.raises(ValueError, match="read 79, and max_seq=8"):
        generate(shaken(positions=positions, max_seq=8), batch, 60)
    with pytest.raises(ValueError, match="read 79, and max_seq=8"):
        generate(shaken(positions="learned", window=5, max_seq=8), batch, 60)


def test_in_float32_too():
    model = shaken(torch.float32)
    batch = prompts(3, 6)
    assert as_lists(generate(model, batch, 15)) == as_lists(
        generate(model, batch, 15, cached=False)
    )


def test_one_call_leaves_nothing_for_the_next():
    model = shaken()
    first, second = prompts(4), prompts(6, seed=2)
    before = as_lists(generate(model, second, 9))
    generate(model, first, 9)
    assert as_lists(generate(model, second, 9)) == before


# Sampling -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_distribution_is_chapter_8s(seed):
    rng = np.random.default_rng(seed)
    logits = rng.integers(-3, 4, size=(6, 9)) * 0.5  # with ties
    logits[rng.random(logits.shape) < 0.1] = -np.inf
    logits[:, 0] = 0
    choices = itertools.product((0, 0.5, 1, 2), (None, 1, 3, 20), (None, 0.05, 0.63, 1.0))
    for temperature, top_k, top_p in choices:
        got = distribution(torch.from_numpy(logits), temperature, top_k, top_p).numpy()
        want = [next_token_distribution(row, temperature, top_k, top_p) for row in logits]
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_samples_follow_the_distribution():
    model, n = shaken(), 4000
    (prompt,) = prompts(3)
    tokens = torch.stack(generate(model, [prompt] * n, 1, temperature=1.5, top_k=8, top_p=0.9))
    counts = torch.bincount(tokens[:, -1], minlength=SIZES["vocab"]).numpy() / n
    with torch.no_grad():
        p = next_token_distribution(model(prompt)[-1].numpy(), 1.5, 8, 0.9)
    assert (counts[p == 0] == 0).all()
    assert (p > 0).sum() > 2
    np.testing.assert_allclose(counts, p, atol=5 * 0.5 / n**0.5)


def test_a_seed_gives_the_same_text_whatever_happens_around_it():
    model, batch = shaken(), prompts(5, 2)

    def sample(**options):
        return as_lists(generate(model, batch, 12, temperature=1.0, **options))

    torch.manual_seed(7)
    first = sample(seed=1)
    state = torch.get_rng_state()
    again = sample(seed=1)
    assert torch.equal(torch.get_rng_state(), state)  # it has a generator of its own
    assert first == again
    assert first == sample(seed=1, cached=False)
    assert first == sample(seed=1, chunk=2)
    assert first != sample(seed=2)
    assert sample(seed=1, top_k=1) == as_lists(generate(model, batch, 12))


# Memory and limits ----------------------------------------------------------------------


def test_the_buffers_are_made_once_and_have_the_size_of_the_formula(monkeypatch):
    made = []

    class Seen(Cache):
        def __init__(self, *args):
            super().__init__(*args)
            made.append((self, self.buffers.data_ptr()))

    monkeypatch.setattr("autograde.decoder.generation.Cache", Seen)
    generate(shaken(torch.float32), prompts(4, 6), 5)
    ((cache, address),) = made
    assert cache.buffers.data_ptr() == address
    assert cache.buffers.nbytes == cache_bytes(2, 3, 4, 6 + 5 - 1, 2, 4)
    assert cache.length == cache.capacity == 10


def test_shared_heads_and_a_window_make_the_cache_smaller():
    model = shaken(torch.float32, kv_heads=1, window=4)
    cache = Cache(model, 2, 10)
    assert cache.buffers.nbytes == cache_bytes(2, 1, 4, 4, 2, 4)
    assert Cache(model, 2, 3).buffers.nbytes == cache_bytes(2, 1, 4, 3, 2, 4)  # never full
    address = cache.buffers.data_ptr()
    feed(model, torch.zeros(2, 6, dtype=torch.long), cache)
    feed(model, torch.zeros(2, 1, dtype=torch.long), cache)
    assert cache.buffers.data_ptr() == address
    assert sorted(cache.held[:, 0].tolist()) == [3, 4, 5, 6]
    assert cache.held[:, 0].tolist() == ring_positions(6, 4).tolist()


def test_columns_behind_the_length_are_never_read():
    model = shaken()
    for junk in (torch.nan, 1e30, torch.inf):
        cache, clean = (Cache(model, 2, capacity, (0, 1)) for capacity in (30, 8))
        cache.buffers.fill_(junk)
        for piece in torch.arange(14).view(2, 7).remainder(13).split((3, 1, 2, 1), dim=1):
            assert torch.equal(feed(model, piece, cache), feed(model, piece, clean))
        assert (cache.buffers[..., 7:, :].isnan() | (cache.buffers[..., 7:, :] == junk)).all()


@pytest.mark.parametrize("is_cached", [True, False])
def test_max_seq_is_what_the_model_reads(is_cached):
    model = shaken(max_seq=8)
    full, more = generate(model, prompts(5, 3), 4, cached=is_cached)  # reads 5 + 3
    assert (len(full), len(more)) == (9, 7)
    with pytest.raises(ValueError, match=r"read 9, and max_seq=8. Ask for at most 4"):
        generate(model, prompts(3, 5), 5, cached=is_cached)
    with pytest.raises(ValueError, match=r"prompt of 9.*at most 0"):
        generate(model, prompts(9), 1, cached=is_cached)
    assert as_lists(generate(model, prompts(8), 0, cached=is_cached)) == as_lists(prompts(8))


def test_a_cache_says_when_it_is_full():
    model = shaken()
    cache = Cache(model, 1, 4)
    feed(model, torch.zeros(1, 3, dtype=torch.long), cache)
    with pytest.raises(ValueError, match="room for 4 tokens, and these would make 5"):
        feed(model, torch.zeros(1, 2, dtype=torch.long), cache)
    with pytest.raises(ValueError, match="capacity=31: the model has max_seq=30"):
        Cache(model, 1, 31)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prompts": []}, "a list of sequences"),
        ({"prompts": [[1, 2], []]}, "none of them empty"),
        ({"prompts": torch.tensor([1, 2])}, r"write \[prompt\]"),
        ({"n_new": -1}, "-1 new tokens"),
        ({"temperature": -0.5}, "temperature=-0.5: 0 is greedy"),
        ({"top_k": 0}, "top_k=0: keep at least 1"),
        ({"top_p": 0.0}, "top_p=0.0: a mass greater than 0"),
        ({"top_p": 1.5}, "top_p=1.5: a mass"),
    ],
)
def test_what_cannot_be_generated_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        generate(shaken(), **{"prompts": [[1, 2]], "n_new": 2, **change})


def test_lists_of_numbers_will_do():
    model = shaken()
    (prompt,) = prompts(4)
    assert (
        generate(model, [prompt.tolist()], 3)[0].tolist()
        == generate(model, [prompt], 3)[0].tolist()
    )
