"""Chapter 13's functions against one pass, against PyTorch, and against what they promise."""

import re
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from autograde import specimens  # noqa: E402
from autograde.claims import ch13_capstone as claims  # noqa: E402
from autograde.claims.ch06_decoder import decoder, ids  # noqa: E402
from autograde.claims.trained import BLOCK, Language, nats, symptom  # noqa: E402
from autograde.conformance import disagreement, random_schedule  # noqa: E402
from autograde.correct.ch13_capstone import step_token_by_token  # noqa: E402
from autograde.decoder import Config, Decoder  # noqa: E402
from autograde.examination import examine, local  # noqa: E402
from autograde.figures.ch13_capstone import show_draw  # noqa: E402
from autograde.misconceptions.ch13_capstone import (  # noqa: E402
    mask_aligned_top_left,
    positions_start_again,
)
from autograde.reference import ch13_capstone as reference  # noqa: E402
from autograde.reference.ch06_decoder import decoder_logits  # noqa: E402

ROOT = Path(__file__).parents[1]
LONG = 600.0  # seconds: no training is cut off, however busy the machine is
close = torch.testing.assert_close

# decoder_step --------------------------------------------------------------------------


def worst(step, n=12) -> float:
    """The largest difference from one pass, over texts that come in random pieces."""
    rng, found = np.random.default_rng(0), []
    params = decoder(rng, 9, 6, 8, 40, 3)
    for _ in range(n):
        schedule = random_schedule(rng, padded=False)
        feed = partial(lambda new, cache: step(new, params, 3, cache))
        full = partial(lambda row: decoder_logits(row, params, 3))
        found.append(disagreement(schedule, feed, full, ids(rng, 9, *schedule.shape)))
    return max(found)


def test_in_whatever_pieces_a_text_comes():
    assert worst(reference.decoder_step) < 1e-11
    assert worst(step_token_by_token) < 1e-11
    assert worst(positions_start_again) > 1e-2  # the kit finds it
    assert worst(mask_aligned_top_left) > 1e-2


def test_the_whole_context_fits_and_no_more():
    params = decoder(np.random.default_rng(1), 5, 4, 6, 8, 2)
    text = ids(np.random.default_rng(2), 5, 8)
    _, cache = reference.decoder_step(text[:7], params, 2)
    logits, _ = reference.decoder_step(text[7:], params, 2, cache)
    close(logits, decoder_logits(text, params, 2)[7:])
    with pytest.raises(IndexError):
        reference.decoder_step(text[:2], params, 2, cache)


def test_a_trained_modules_weights_fit():
    """What `python -m autograde.decoder train` makes with learned positions."""
    model = Decoder(Config(vocab=7, d_model=8, n_layers=2, n_heads=2, d_ff=16, max_seq=9))
    tokens = ids(np.random.default_rng(0), 7, 3, 9)
    with torch.no_grad():
        logits, cache = reference.decoder_step(tokens, model.params(), 2)
        close(logits, model(tokens))
    assert cache[1][0].shape == (3, 2, 9, 4)


# train_decoder -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    language = Language(3)
    tokens = language.sample(20_000, 5)
    params, val_loss = reference.train_decoder(tokens, claims.MAIN, 5, LONG)
    for part in (params, *params["blocks"]):
        part.update({n: p.detach() for n, p in part.items() if n != "blocks"})
    return language, tokens, (params, val_loss)


def test_the_reference_is_good_and_honest(trained):
    language, tokens, (params, val_loss) = trained
    loss, floor = nats(params, language.sample(20_000, 1), n_heads=4), language.floor(BLOCK)
    assert floor - 0.03 < loss < floor + 0.12  # the bar leaves 0.2
    assert val_loss == pytest.approx(nats(params, tokens[-2000:], n_heads=4), abs=0.03)
    assert symptom(params, language.sample(8_000, 1), tokens, 4) == ""


def test_the_same_seed_trains_the_same_weights(trained):
    _, tokens, _ = trained
    few = {"n_layers": 3, "d_model": 9, "n_heads": 3, "vocab": 8, "d_ff": 5, "max_seq": 6}
    one, same, other = (reference.train_decoder(tokens, few, seed, -1.0)[0] for seed in (1, 1, 2))
    assert torch.equal(one["token_embedding"], same["token_embedding"])
    assert not torch.equal(one["token_embedding"], other["token_embedding"])
    assert len(one["blocks"]) == 3
    assert one["blocks"][2]["w_up"].shape == (9, 5)


def test_who_ignores_the_time_is_told(monkeypatch):
    monkeypatch.setattr(claims, "PATIENCE", 1.0)
    once = {}

    def slow(tokens, config, seed, seconds):
        if seconds < 1:
            time.sleep(5)
        key = repr(config)
        once[key] = once.get(key) or reference.train_decoder(tokens, config, seed, 0.5)
        return once[key]

    found = examine(claims.train_decoder, local(slow))
    result = found.results[5]
    assert not result.holds
    assert "with seconds=0.3 nothing had come back after 1.3 seconds" in result.finding.detail


def test_a_claimed_loss_is_compared(monkeypatch, trained):
    language, _, (params, val_loss) = trained
    monkeypatch.setattr(claims, "Language", lambda seed: language)

    def says(number):
        def train_decoder(tokens, config, seed, seconds):
            if config != claims.MAIN:
                return reference.train_decoder(tokens, config, seed, -1.0)
            return params, number

        return examine(claims.train_decoder, local(train_decoder)).results[3]

    assert says(val_loss).holds
    assert not says(val_loss + 0.3).holds
    assert "No model can get less than" in says(0.4).finding.detail
    assert "val_loss: " in says("1.1").finding.detail


# generate_with_cache -------------------------------------------------------------------


def step_of(params, n_heads):
    return lambda tokens, cache: reference.decoder_step(tokens, params, n_heads, cache)


def without_a_cache(params, n_heads):
    def step(tokens, text):
        text = tokens if text is None else torch.cat([text, tokens])
        return decoder_logits(text, params, n_heads)[-len(tokens) :], text

    return step


@pytest.mark.parametrize("temperature", [0, 0.5, 1.0])
def test_the_same_text_with_the_cache_and_without(temperature):
    rng = np.random.default_rng(7)
    params = decoder(rng, 11, 8, 16, 40, 2)
    prompt, uniforms = ids(rng, 11, 5), torch.from_numpy(rng.random(36))
    texts = [
        reference.generate_with_cache(make(params, 2), prompt, uniforms, temperature)
        for make in (step_of, without_a_cache)
    ]
    assert torch.equal(*texts)
    assert len(texts[0]) == 41  # the last one has no position, and needs none
    assert len(texts[0].unique()) > 2


def test_numbers_draw_tokens_as_often_as_their_probabilities_say():
    logits = torch.tensor([[0.1, 0.4, -torch.inf, 0.2, 0.3]]).log()
    logits[0, 2] = -torch.inf

    def step(tokens, cache):
        return logits, None

    uniforms = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    drawn = reference.generate_with_cache(step, torch.tensor([0]), uniforms)[1:]
    share = drawn.bincount(minlength=5) / len(drawn)
    p = logits[0].softmax(dim=-1)
    assert float((share - p).abs().max()) < 0.015
    assert share[2] == 0
    sharper = reference.generate_with_cache(step, torch.tensor([0]), uniforms, 0.5)[1:]
    p = (2 * logits[0]).softmax(dim=-1)
    assert float((sharper.bincount(minlength=5) / 20_000 - p).abs().max()) < 0.015


def test_the_specimen_refuses_second_readings():
    step = specimens.reads_on.using(vocab=3, prompt=2, room=3)
    text = torch.tensor([0, 1, 2, 0])
    _, cache = step(text[:2], None)
    step(text[2:3], cache)
    with pytest.raises(ValueError, match="a second time"):
        step(text[:3], None)
    with pytest.raises(ValueError, match="3 will do"):
        step(text[2:], cache)
    with pytest.raises(ValueError, match="int tensor"):
        step(text[:0], None)
    free = specimens.reads_on.using(vocab=3)
    close(free(text, None)[0][2:], free(text[2:], free(text[:2], None)[1])[0])


def test_the_drawing_shows_what_is_drawn():
    (ax,) = show_draw(np.array([0.5, 0.25, 0.25]), ["one", "two", "six"], [0.0, 0.5, 0.99]).axes
    names = [text.get_gid() for text in ax.texts if text.get_gid()]
    assert names == ["draw 0", "draw 1", "draw 2"]
    shares = [patch.get_width() for patch in ax.patches if "share" in (patch.get_gid() or "")]
    assert shares == [0.5, 0.25, 0.25]


# shard, average_gradients --------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 12, 13])
@pytest.mark.parametrize("world", [1, 2, 3, 5, 8])
def test_shards_against_torch(n, world):
    batch = torch.arange(3 * n).reshape(n, 3)
    pieces = [reference.shard(batch, rank, world) for rank in range(world)]
    close(pieces, list(torch.tensor_split(batch, world)))
    assert torch.equal(torch.cat(pieces), batch)


@pytest.mark.parametrize("world", [1, 3, 6])
def test_shares_of_a_batch_make_the_gradients_of_the_batch(world):
    """With padding that does not count, and processes that have no row."""
    torch.manual_seed(0)
    config = Config(vocab=7, d_model=8, n_layers=1, n_heads=2, d_ff=8, max_seq=6)
    model = Decoder(config).double()
    tokens = ids(np.random.default_rng(0), 7, 5, 7)
    inputs, targets = tokens[:, :-1], tokens[:, 1:].clone()
    targets[3:, 2:] = -100

    def gradients(inputs, targets):
        loss = torch.nn.functional.cross_entropy(
            model(inputs).flatten(0, 1), targets.flatten(), ignore_index=-100
        )
        return list(torch.autograd.grad(loss, list(model.parameters())))

    parts = [[reference.shard(t, rank, world) for t in (inputs, targets)] for rank in range(world)]
    grads = [gradients(*part) for part in parts]
    counts = [int((part[1] != -100).sum()) for part in parts]
    assert (0 in counts) == (world == 6)
    whole = gradients(inputs, targets)
    close(reference.average_gradients(grads, counts), whole, rtol=1e-10, atol=1e-12)
    if world == 3:  # without the counts it is something else
        plain = reference.average_gradients(grads, [1] * world)
        assert (plain[0] - whole[0]).norm() > 0.01 * whole[0].norm()


# The written part ----------------------------------------------------------------------


def rubric(text: str) -> list[str]:
    """The lines that say what earns a point."""
    points = re.findall(r"^- 1 point: (.*(?:\n  .*)*)", text, flags=re.M)
    return [" ".join(point.split()) for point in points]


def test_the_page_has_the_rubric_of_the_sheet():
    sheet = (ROOT / "solutions/13-capstone/capstone.md").read_text("utf-8")
    page = (ROOT / "book/13-capstone.md").read_text("utf-8")
    assert rubric(page) == rubric(sheet)
    points = [int(n) for n in re.findall(r"^:points: (\d+)", sheet, flags=re.M)]
    assert len(rubric(sheet)) == sum(points) == 12
    assert rubric("- 1 point: a\n  b\n- 1 point: c\n") == ["a b", "c"]
