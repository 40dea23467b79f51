"""Chapter 2's reference functions against PyTorch, against loops, against the sources."""

import math
import warnings

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from autograde.reference.ch02_self_attention import attention, entropy, scaled_scores, softmax
from autograde.reference.ch03_causal_mask import masked_attention, masked_softmax

X = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])  # I love dog
TABLE = np.array(  # source 3: "I", "love", "Transformers", "!"
    [
        [0.2, 0.1, 0.3, 0.2, 0.2],
        [0.1, 0.4, 0.1, 0.2, 0.2],
        [0.3, 0.1, 0.2, 0.1, 0.3],
        [0.2, 0.2, 0.1, 0.2, 0.3],
    ]
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), [((5,), 0), ((3, 4), 0), ((2, 3, 4), -2), ((6, 7), -1)])
def test_softmax_against_torch(dtype, shape, axis):
    scores = np.random.default_rng(0).normal(scale=50, size=shape).astype(dtype)
    weights = softmax(scores, axis)
    assert weights.dtype == dtype
    theirs = torch.softmax(torch.from_numpy(scores), dim=axis).numpy()
    np.testing.assert_allclose(weights, theirs, atol=1e-6 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(weights.sum(axis), 1, atol=1e-6)


@pytest.mark.parametrize("height", [0, 1e3, -1e4, 1e5, 1e30])
def test_softmax_of_any_size_and_without_a_warning(height):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert softmax(np.array([height, height])).tolist() == [0.5, 0.5]
        assert softmax(np.array([-np.inf, height, height])).tolist() == [0, 0.5, 0.5]


def test_softmax_agrees_with_the_masked_one_of_chapter_3():
    scores = np.random.default_rng(1).normal(size=(2, 3, 4))
    np.testing.assert_array_equal(softmax(scores), masked_softmax(scores, np.ones((3, 4), bool)))


SIZES = [((), 3, 3, 4, 4), ((2,), 4, 6, 3, 5), ((2, 3), 5, 2, 4, 1)]


@pytest.mark.parametrize(("batch", "n_query", "n_key", "d_head", "d_value"), SIZES)
def test_scores_and_attention_against_torch_and_chapter_3(batch, n_query, n_key, d_head, d_value):
    rng = np.random.default_rng(2)
    q, k, v = (
        rng.normal(size=(*batch, n, d))
        for n, d in ((n_query, d_head), (n_key, d_head), (n_key, d_value))
    )
    for where in np.ndindex(*batch, n_query, n_key):
        *b, i, j = where
        product = sum(a * c for a, c in zip(q[(*b, i)], k[(*b, j)], strict=True))
        assert math.isclose(scaled_scores(q, k)[where], product / math.sqrt(d_head), abs_tol=1e-12)
    out, weights = attention(q, k, v)
    theirs = scaled_dot_product_attention(*(torch.from_numpy(x) for x in (q, k, v)))
    np.testing.assert_allclose(out, theirs.numpy(), atol=1e-12)
    np.testing.assert_allclose(weights.sum(-1), 1)
    masked, _ = masked_attention(q, k, v, np.ones((n_query, n_key), bool))
    np.testing.assert_allclose(out, masked, atol=1e-12)


def test_attention_does_not_know_the_order_of_a_sequence():
    x = np.random.default_rng(3).normal(size=(5, 4))
    order = np.array([3, 0, 4, 1, 2])
    out, weights = attention(x, x, x)
    shuffled, moved = attention(x[order], x[order], x[order])
    np.testing.assert_allclose(shuffled, out[order], atol=1e-12)
    np.testing.assert_allclose(moved, weights[order][:, order], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entropy_against_torch(dtype):
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.full(6, 0.3), size=(2, 3, 4)).astype(dtype)
    weights[0, 1] = 0
    weights[1, 2] = np.eye(6)[:4]
    theirs = torch.distributions.Categorical(torch.from_numpy(weights[1])).entropy()
    np.testing.assert_allclose(entropy(weights[1]), theirs.numpy(), atol=1e-5)
    by_entr = torch.special.entr(torch.from_numpy(weights)).sum(-1)
    np.testing.assert_allclose(entropy(weights), by_entr.numpy(), atol=1e-6)


def test_entropy_at_its_ends_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends = entropy(np.array([[1.0, 0, 0, 0], [0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]]))
    assert ends.tolist()[:2] == [0, 0]
    assert not np.signbit(ends).any()  # -0 would print as -0.
    assert math.isclose(ends[2], math.log(4))


def test_the_numbers_of_the_first_source_before_its_mask():
    """`I love dog`, sections 2.2 to 2.4: the products and the scaled scores."""
    assert (X @ X.T).tolist() == [[2, 0, 1], [0, 2, 1], [1, 1, 2]]
    assert scaled_scores(X, X).tolist() == [[1, 0, 0.5], [0, 1, 0.5], [0.5, 0.5, 1]]
    _, weights = attention(X, X, X)
    assert np.round(weights[2], 3).tolist() == [0.274, 0.274, 0.452]  # the row without a mask


def test_the_table_of_the_third_source():
    """Its rows sum to 1, and some queries and keys have just these weights."""
    np.testing.assert_allclose(TABLE.sum(axis=1), 1)
    q, k = np.log(TABLE) * np.sqrt(5), np.eye(5)
    out, weights = attention(q, k, np.eye(5))
    np.testing.assert_allclose(weights, TABLE)
    np.testing.assert_allclose(out, TABLE)
    assert (entropy(TABLE) < np.log(5)).all()
