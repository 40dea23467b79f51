"""Chapter 11's reference functions against PyTorch, against loops, against what they promise."""

import math
import time

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from autograde.claims import ch11_training as claims  # noqa: E402
from autograde.claims.trained import BLOCK, Language, nats, symptom, weights  # noqa: E402
from autograde.examination import examine, local  # noqa: E402
from autograde.figures.ch11_training import show_ladder, show_window  # noqa: E402
from autograde.reference import ch11_training as reference  # noqa: E402
from autograde.values import Mismatch, plain  # noqa: E402

DOUBLE = torch.float64
LONG = 600.0  # seconds: no training is cut off, however busy the machine is
close = torch.testing.assert_close


def draw(*shape, seed=0, dtype=DOUBLE):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# Data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 10, 1003])
@pytest.mark.parametrize("fraction", [0, 0.05, 0.1, 0.25, 0.5, 0.99])
def test_a_split_loses_and_doubles_nothing(n, fraction):
    tokens = torch.arange(n)
    train, val = reference.split_tokens(tokens, fraction)
    assert torch.equal(torch.cat([train, val]), tokens)
    assert len(val) == int(n * fraction) < n


@pytest.mark.parametrize("block", [1, 3, 10])
def test_every_window_of_a_text(block):
    tokens = torch.arange(100, 120)
    starts = torch.arange(len(tokens) - block)  # all that are allowed
    inputs, targets = reference.get_batch(tokens, starts, block)
    for start, row, wanted in zip(starts, inputs, targets, strict=True):
        assert torch.equal(row, tokens[start : start + block])
        assert torch.equal(wanted, tokens[start + 1 : start + 1 + block])
    with pytest.raises(IndexError):
        reference.get_batch(tokens, starts[-1:] + 1, block)


# The loss ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_the_loss_and_its_gradient_against_torch(dtype, ignored):
    logits = draw(2, 5, 7, dtype=dtype).requires_grad_()
    targets = torch.randint(7, (2, 5), generator=torch.Generator().manual_seed(1))
    targets[0, 3:] = ignored
    ours = reference.cross_entropy(logits, targets, ignored)
    torchs = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=ignored)
    close(ours, torchs)
    close(*(torch.autograd.grad(loss, logits)[0] for loss in (ours, torchs)))


def test_known_losses():
    loss = reference.cross_entropy
    assert float(loss(torch.zeros(3, 8), torch.tensor([0, 5, 7]))) == pytest.approx(math.log(8))
    assert float(loss(torch.tensor([[1e4, 0.0]]), torch.tensor([1]))) == 1e4
    assert float(loss(torch.tensor([[1e4, 0.0]]), torch.tensor([0]))) == 0


# Steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("warmup", "total"), [(0, 5), (4, 12), (10, 11)])
def test_the_rate_against_torchs_schedulers(warmup, total):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total - warmup, 0.05)
    for step in range(total + 1):
        ours = reference.learning_rate(step, 0.5, 0.05, warmup, total)
        if step < warmup:
            assert ours == pytest.approx(0.5 * (step + 1) / warmup)
            continue
        assert ours == pytest.approx(falling.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        falling.step()
    assert reference.learning_rate(10 * total, 0.5, 0.05, warmup, total) == 0.05


@pytest.mark.parametrize("max_norm", [0.5, 3.0, 1e3])
def test_clipping_against_torch(max_norm):
    grads = [draw(3, 4), draw(5, seed=1), draw(2, 1, 2, seed=2)]
    holders = [nn.Parameter(torch.zeros_like(g)) for g in grads]
    for holder, grad in zip(holders, grads, strict=True):
        holder.grad = grad.clone()
    theirs = nn.utils.clip_grad_norm_(holders, max_norm)
    clipped, norm = reference.clip_by_global_norm(grads, max_norm)
    assert norm == pytest.approx(float(theirs))
    close(clipped, [holder.grad for holder in holders], rtol=1e-5, atol=0)
    zeros, norm = reference.clip_by_global_norm([torch.zeros(2)], 1.0)
    assert norm == 0
    assert zeros[0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_twenty_steps_of_adamw_against_torch(dtype, weight_decay):
    how = {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": weight_decay}
    start = draw(3, 4, dtype=dtype)
    theirs = nn.Parameter(start.clone())
    optimizer = torch.optim.AdamW([theirs], **how)
    param, m, v = start, torch.zeros_like(start), torch.zeros_like(start)
    for step in range(1, 21):
        theirs.grad = draw(3, 4, seed=step, dtype=dtype)
        optimizer.step()
        param, m, v = reference.adamw_step(param, theirs.grad, m, v, step, **how)
    close(param, theirs.detach())
    state = optimizer.state[theirs]
    close((m, v), (state["exp_avg"], state["exp_avg_sq"]))


# Training ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    language = Language(3)
    tokens = language.sample(20_000, 0)
    return language, tokens, reference.train(tokens, 5, LONG)


def test_the_reference_comes_near_the_floor_and_not_below(trained):
    language, _, params = trained
    loss, floor = nats(params, language.sample(20_000, 1)), language.floor(BLOCK)
    assert floor - 0.03 < loss < floor + 0.12  # the bar leaves 0.3


def test_the_same_seed_trains_the_same_weights(trained):
    _, tokens, params = trained
    again = reference.train(tokens, 5, LONG)
    assert torch.equal(again["blocks"][0]["w_q"], params["blocks"][0]["w_q"])
    one, other = (reference.train(tokens, seed, -1.0) for seed in (5, 6))
    assert not torch.equal(one["token_embedding"], other["token_embedding"])


def test_the_languages_numbers():
    """Three levels that lie well apart, and the shares that the docstring names."""
    language = Language(1)
    guess, one, two = (language.entropy(known) for known in (0, 1, 2))
    assert guess > one + 0.15 > two + 0.6
    tokens = language.sample(50_000, 2)
    pairs = torch.zeros(8, 8, 8)
    pairs.index_put_((tokens[:-2], tokens[1:-1], tokens[2:]), torch.ones(1), accumulate=True)
    found = pairs / pairs.sum(dim=-1, keepdim=True)
    assert float((found - torch.from_numpy(language.transitions)).abs().max()) < 0.1


def test_a_symptom_is_told_only_where_it_is_seen(trained):
    language, tokens, params = trained
    held_out = language.sample(8_000, 1)
    assert symptom(params, held_out, tokens) == ""
    turned = {**params["blocks"][0], "w_q": params["blocks"][0]["w_q"].T}
    turned |= {name: params["blocks"][0][name].T for name in ("w_k", "w_v", "w_o")}
    assert "transposed" in symptom({**params, "blocks": [turned]}, held_out, tokens)
    spoilt = {**params, "norm_gain": params["norm_gain"] * torch.nan}
    assert "not finite" in symptom(spoilt, held_out, tokens)


def test_weights_that_do_not_fit_are_named(trained):
    like = plain(trained[2])
    assert set(weights(like, like)) == set(like)
    (block,) = like["blocks"]
    for value, place in (
        (None, "params is None"),
        ({**like, "blocks": block}, 'params["blocks"] is'),
        ({**like, "blocks": (block, block)}, 'params["blocks"] is'),
        ({**like, "norm_gain": like["norm_gain"][:3]}, 'params["norm_gain"]: the shape'),
        ({**like, "blocks": ({**block, "w_up": block["w_up"].T},)}, '"blocks"][0]["w_up"]'),
    ):
        with pytest.raises(Mismatch) as caught:
            weights(value, like)
        assert place in str(caught.value)


def test_who_ignores_the_time_is_told(monkeypatch):
    monkeypatch.setattr(claims, "PATIENCE", 1.0)

    def slow(tokens, seed, seconds):
        time.sleep(3 if seconds < 1 else 0)
        return reference.train(tokens, seed, seconds)

    result = examine(claims.train, local(slow)).results[4]
    assert not result.holds
    assert "seconds=0.2" in result.finding.detail


# Pictures ------------------------------------------------------------------------------


def test_the_window_shows_each_target_below_the_token_that_it_follows():
    (ax,) = show_window(list("abcdef"), start=1, block=3).axes
    letters = [text.get_text() for text in ax.texts if len(text.get_text()) == 1]
    assert letters == [*"abcdef", *"cde"]


def test_the_ladder_has_a_bar_for_each_run():
    (ax,) = show_ladder({"first": 2.0, "second": 1.5}, "loss").axes
    assert [bar.get_width() for bar in ax.patches] == [2.0, 1.5]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "second"]
