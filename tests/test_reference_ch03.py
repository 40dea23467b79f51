"""Chapter 3's reference functions against PyTorch, against loops, against the sources."""

import warnings

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from autograde.reference.ch03_causal_mask import (
    additive_mask,
    causal_mask,
    causal_padding_mask,
    dog_by_hand,
    masked_attention,
    masked_softmax,
    padding_mask,
)

X = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])  # I love dog


@pytest.mark.parametrize("n_query", range(1, 6))
@pytest.mark.parametrize("n_key", [None, *range(7)])
def test_the_causal_mask_against_a_loop(n_query, n_key):
    keys = n_query if n_key is None else n_key
    loop = [[j <= i + keys - n_query for j in range(keys)] for i in range(n_query)]
    mask = causal_mask(n_query, n_key)
    assert mask.dtype == bool
    assert mask.shape == (n_query, keys)
    assert mask.tolist() == loop


def test_torch_aligns_rectangles_at_the_top_left_and_we_do_not():
    q, k = torch.randn(1, 2, 4), torch.randn(1, 5, 4)
    eye = torch.eye(5).expand(1, -1, -1)  # as values: the output is the weights
    theirs = scaled_dot_product_attention(q, k, eye, is_causal=True)[0] > 0
    assert theirs.tolist() == np.tri(2, 5, dtype=bool).tolist()
    assert causal_mask(2, 5)[-1].all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_additive_mask(dtype):
    mask = additive_mask(causal_mask(3), dtype)
    assert mask.dtype == dtype
    assert np.array_equal(mask == 0, causal_mask(3))
    assert np.isneginf(mask[~causal_mask(3)]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 4), (3, 2, 5), (2, 3, 4, 6)])
def test_masked_softmax_against_torch(dtype, shape):
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=50, size=shape).astype(dtype)
    allowed = rng.random(shape) < 0.5
    allowed[..., 0] |= ~allowed.any(-1)
    filled = torch.from_numpy(scores).masked_fill(~torch.from_numpy(allowed), -torch.inf)
    weights = masked_softmax(scores, allowed)
    assert weights.dtype == dtype
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(weights, filled.softmax(-1).numpy(), atol=tolerance)
    assert (weights[~allowed] == 0).all()


def test_what_stands_at_a_closed_score_has_no_effect_and_nothing_warns():
    allowed = np.array([[True, False, True], [False, False, False]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for junk in (1e30, np.inf, -np.inf, np.nan):
            scores = np.where(allowed, 1.0, junk)
            assert masked_softmax(scores, allowed).tolist() == [[0.5, 0, 0.5], [0, 0, 0]]


@pytest.mark.parametrize(
    ("batch", "n_query", "n_key", "d_head", "d_value"),
    [((), 3, 3, 4, 4), ((2,), 4, 6, 3, 5), ((2, 3), 5, 2, 4, 1)],
)
def test_masked_attention_against_torch(batch, n_query, n_key, d_head, d_value):
    rng = np.random.default_rng(1)
    q, k, v = (
        rng.normal(size=(*batch, n, d))
        for n, d in ((n_query, d_head), (n_key, d_head), (n_key, d_value))
    )
    allowed = rng.random((n_query, n_key)) < 0.6
    allowed[:, 0] = True
    out, weights = masked_attention(q, k, v, allowed)
    theirs = scaled_dot_product_attention(
        *(torch.from_numpy(x) for x in (q, k, v)), attn_mask=torch.from_numpy(allowed)
    )
    np.testing.assert_allclose(out, theirs.numpy(), atol=1e-12)
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_a_query_with_no_allowed_key_gets_zeros():
    out, weights = masked_attention(X, X, X, np.zeros((3, 3), dtype=bool))
    assert not out.any()
    assert not weights.any()


def test_masks_of_padded_batches_against_loops():
    lengths, n = np.array([0, 2, 4, 1]), 4
    real = [[j < length for j in range(n)] for length in lengths]
    assert padding_mask(lengths, n).tolist() == [[row] for row in real]
    both = [[[j <= i and row[j] for j in range(n)] for i in range(n)] for row in real]
    assert causal_padding_mask(lengths, n).tolist() == both


def test_the_numbers_of_the_first_source():
    """`I love dog`, identity projections: every matrix of source 1, sections 2.3 to 2.5."""
    assert (X @ X.T).tolist() == [[2, 0, 1], [0, 2, 1], [1, 1, 2]]
    scores = X @ X.T / np.sqrt(4)
    assert scores.tolist() == [[1, 0, 0.5], [0, 1, 0.5], [0.5, 0.5, 1]]
    masked = scores + additive_mask(causal_mask(3))
    inf = np.inf
    assert masked.tolist() == [[1, -inf, -inf], [0, 1, -inf], [0.5, 0.5, 1]]
    out, weights = masked_attention(X, X, X, causal_mask(3))
    assert np.round(weights, 3).tolist() == [[1, 0, 0], [0.269, 0.731, 0], [0.274, 0.274, 0.452]]
    assert np.round(out, 3).tolist() == [
        [1, 0, 1, 0],
        [0.269, 0.731, 0.269, 0.731],
        [0.726, 0.726, 0.274, 0.274],
    ]
    by_hand = dog_by_hand()
    assert np.round(weights[2], 3).tolist() == by_hand[0]
    assert np.round(out[2], 3).tolist() == by_hand[1]


def test_the_four_token_mask_of_the_second_source():
    allowed = causal_mask(4)  # The model predicts well
    assert additive_mask(allowed).tolist() == [
        [0, -np.inf, -np.inf, -np.inf],
        [0, 0, -np.inf, -np.inf],
        [0, 0, 0, -np.inf],
        [0, 0, 0, 0],
    ]
