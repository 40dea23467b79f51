"""Chapter 1's reference functions against PyTorch, against loops, against known answers."""

import itertools

import numpy as np
import pytest
import torch

from autograde import specimens
from autograde.figures.ch01_autoregressive import show_steps
from autograde.reference.ch01_autoregressive import (
    influence,
    perplexity,
    sequence_log_prob,
    teacher_forcing,
)

X = np.array([[1.0, 2.0], [-0.5, 0.25], [3.0, 3.0]])
PAST = np.tri(3, dtype=bool)


def some_text(*shape, vocab, dtype=np.float64):
    rng = np.random.default_rng(0)
    log_probs = np.log(rng.dirichlet(np.ones(vocab), size=shape)).astype(dtype)
    return log_probs, rng.integers(vocab, size=shape)


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_against_torch(shape, dtype):
    log_probs, tokens = some_text(*shape, vocab=7, dtype=dtype)
    table, ids = torch.from_numpy(log_probs), torch.from_numpy(tokens)
    theirs = table.gather(-1, ids[..., None])[..., 0].sum(-1)
    np.testing.assert_allclose(sequence_log_prob(log_probs, tokens), theirs, rtol=1e-6)
    loss = torch.nn.functional.cross_entropy(table.flatten(0, -2), ids.flatten())
    assert perplexity(log_probs, tokens) == pytest.approx(loss.exp().item(), rel=1e-6)


def test_the_chain_rule_gives_a_distribution_over_whole_sequences():
    rng = np.random.default_rng(1)
    tables = {}  # the next token's log probabilities after each prefix

    def after(prefix):
        return tables.setdefault(prefix, np.log(rng.dirichlet(np.ones(3))))

    texts = list(itertools.product(range(3), repeat=4))
    log_probs = np.array([[after(text[:t]) for t in range(4)] for text in texts])
    total = np.exp(sequence_log_prob(log_probs, np.array(texts))).sum()
    assert total == pytest.approx(1)


def test_perplexity_counts_equally_likely_choices():
    for vocab in (2, 10):
        uniform = np.full((2, 5, vocab), -np.log(vocab))
        assert perplexity(uniform, np.zeros((2, 5), dtype=int)) == pytest.approx(vocab)
    with np.errstate(divide="ignore"):
        certain = np.log([[0.0, 1.0], [1.0, 0.0]])
    assert perplexity(certain, np.array([1, 0])) == 1
    assert perplexity(certain, np.array([1, 1])) == np.inf
    assert sequence_log_prob(certain, np.array([1, 1])) == -np.inf
    assert type(perplexity(certain, np.array([1, 0]))) is float


def test_a_long_text_does_not_underflow():
    log_probs = np.full((5000, 2), np.log(0.5))
    tokens = np.zeros(5000, dtype=int)
    assert sequence_log_prob(log_probs, tokens) == pytest.approx(5000 * np.log(0.5))
    assert perplexity(log_probs, tokens) == pytest.approx(2)


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (2, 3, 1), (2, 3, 4)])
def test_teacher_forcing_against_a_loop(shape):
    tokens = np.arange(np.prod(shape)).reshape(shape) + 10
    before = tokens.copy()
    inputs, targets = teacher_forcing(tokens, 7)
    for row in np.ndindex(shape[:-1]):
        assert inputs[row].tolist() == [7, *tokens[row].tolist()[:-1]]
    assert np.array_equal(targets, before)
    assert np.array_equal(tokens, before)
    assert inputs.dtype == targets.dtype == tokens.dtype


def test_the_influence_of_known_functions():
    rng = np.random.default_rng(2)
    pattern = rng.random((5, 5)) < 0.5
    x = rng.normal(size=(5, 2))
    kept = x.copy()
    assert np.array_equal(influence(specimens.reads.using(pattern=pattern), x), pattern)
    assert np.array_equal(x, kept)
    assert not influence(specimens.ignores, X).any()
    assert np.array_equal(influence(specimens.attends.using(fill=-np.inf), X), PAST)
    assert influence(specimens.masks_weights, X).all()
    assert influence(specimens.whispers.using(loudness=1e-12), X).all()


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (specimens.excess.using(level=10_000), X),
        (specimens.counter, np.full((3, 2), 500.0)),
        (specimens.contrasts, np.ones((3, 2))),
        (specimens.one_feature.using(feature=1), X),
        (specimens.products, np.zeros((3, 2))),
        (specimens.signs, np.full((3, 2), 2.0)),
        (specimens.smallest, np.array([[1.0], [2.0], [3.0]])),
        (specimens.magnitudes, X),
    ],
)
def test_a_dependence_that_one_kind_of_change_misses_is_found(function, x):
    assert np.array_equal(influence(function, x), PAST)


def test_influence_agrees_with_the_gradients_of_a_network():
    """A recurrent network, a causal and a centred convolution: where autograd sees a path."""
    torch.manual_seed(0)
    rnn = torch.nn.RNN(3, 4, batch_first=True).double()
    convolution = torch.nn.Conv1d(3, 2, 3, padding=1).double()
    x = torch.randn(6, 3, dtype=torch.float64)
    networks = {
        "rnn": lambda x: rnn(x[None])[0][0],
        "centred": lambda x: convolution(x.T[None])[0].T,
        "causal": lambda x: convolution(torch.nn.functional.pad(x.T, (2, 0))[None])[0].T[1:-1],
    }
    for network in networks.values():
        jacobian = torch.autograd.functional.jacobian(network, x)  # (seq, d_out, seq, d_in)
        paths = (jacobian != 0).any(dim=1).any(dim=-1).numpy()
        with torch.no_grad():
            found = influence(lambda x, f=network: f(torch.from_numpy(x)).numpy(), x.numpy())
        assert np.array_equal(found, paths)


def test_the_strip_of_steps_shows_who_is_read_and_asked():
    words = ["The", "model", "predicts", "well"]
    figure = show_steps(words)
    states = [[patch.get_gid().split() for patch in ax.patches] for ax in figure.axes]
    for step, panel in enumerate(states[:-1]):
        assert [int(p[1]) for p in panel if p[0] == "target"] == [step]
        assert [int(p[1]) for p in panel if p[0] == "read"] == list(range(step + 1))
        assert sum(p[0] == "hidden" for p in panel) == 3 - step
    arrows = {(int(p[1]), int(p[2])) for p in states[-1] if p[0] == "arrow"}
    assert arrows == {(target, source) for target in range(4) for source in range(target + 1)}
    written = [text.get_text() for text in figure.axes[-1].texts]
    assert set(words) | {"<s>"} <= set(written)
