"""Chapter 4's reference functions against PyTorch, against differences, against known numbers."""

import warnings

import numpy as np
import pytest
import torch

from autograde.reference.ch03_causal_mask import causal_mask, masked_attention, masked_softmax
from autograde.reference.ch04_numerics import (
    fill_value,
    log_softmax,
    masked_attention_backward,
    softmax_backward,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), [((5,), -1), ((3, 4), 0), ((2, 3, 4), 1)])
def test_log_softmax_against_torch(dtype, shape, axis):
    scores = np.random.default_rng(0).normal(scale=300, size=shape).astype(dtype)
    ours = log_softmax(scores, axis)
    theirs = torch.log_softmax(torch.from_numpy(scores), axis).numpy()
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_log_softmax_at_the_edges():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert log_softmax(np.array([0.0, -1000.0])).tolist() == [0, -1000]
        assert log_softmax(np.array([1000.0, 1000.0])).tolist() == [-np.log(2), -np.log(2)]
        assert log_softmax(np.array([-1e4, -np.inf, -1e4])).tolist() == [
            -np.log(2), -np.inf, -np.log(2),
        ]  # fmt: skip
        assert log_softmax(np.array([[1e30], [-1e30]]), axis=0).tolist() == [[0], [-2e30]]


@pytest.mark.parametrize(
    ("dtype", "digits", "exponent"),
    [(np.float16, 11, 15), (np.float32, 24, 127), (np.float64, 53, 1023)],
)
def test_the_fill_value_is_the_last_number_before_minus_infinity(dtype, digits, exponent):
    """IEEE 754 in formulas: p binary digits and a largest exponent give (2 - 2^(1 - p)) 2^emax."""
    value = fill_value(dtype)
    assert value == -(2 - 2.0 ** (1 - digits)) * 2.0**exponent
    with np.errstate(over="ignore"):
        assert np.nextafter(np.asarray(value, dtype), -np.inf, dtype=dtype) == -np.inf


@pytest.mark.parametrize("shape", [(1, 4), (3, 5), (2, 3, 4)])
def test_softmax_backward_against_torch_and_the_jacobian(shape):
    rng = np.random.default_rng(1)
    scores, d_weights = rng.normal(size=(2, *shape))
    variable = torch.from_numpy(scores).requires_grad_()
    variable.softmax(-1).backward(torch.from_numpy(d_weights))
    weights = variable.softmax(-1).detach().numpy()
    d_scores = softmax_backward(weights, d_weights)
    np.testing.assert_allclose(d_scores, variable.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(d_scores.sum(-1), 0, atol=1e-12)
    for row in np.ndindex(shape[:-1]):
        w = weights[row]
        jacobian = np.diag(w) - np.outer(w, w)
        np.testing.assert_allclose(d_scores[row], jacobian @ d_weights[row], atol=1e-12)


def test_softmax_backward_at_the_edges():
    weights = np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    d_weights = np.array([[3.0, 7.0], [3.0, 7.0], [1.0, 0.0]])
    assert softmax_backward(weights, d_weights).tolist() == [[0, 0], [0, 0], [0.25, -0.25]]


def setting(batch, n_query, n_key, d_head, d_value, seed=2):
    rng = np.random.default_rng(seed)
    shapes = ((n_query, d_head), (n_key, d_head), (n_key, d_value), (n_query, d_value))
    q, k, v, d_out = (rng.normal(size=(*batch, *shape)) for shape in shapes)
    allowed = rng.random((*batch, n_query, n_key)) < 0.6
    allowed[..., 0] |= ~allowed.any(-1)
    return q, k, v, allowed, d_out


@pytest.mark.parametrize(
    "sizes", [((), 3, 3, 4, 4), ((2,), 4, 6, 3, 5), ((2, 3), 5, 2, 4, 1), ((), 1, 1, 1, 1)]
)
def test_masked_attention_backward_against_torch(sizes):
    q, k, v, allowed, d_out = setting(*sizes)
    variables = [torch.from_numpy(x).requires_grad_() for x in (q, k, v)]
    torch.nn.functional.scaled_dot_product_attention(
        *variables, attn_mask=torch.from_numpy(allowed)
    ).backward(torch.from_numpy(d_out))
    for ours, variable in zip(
        masked_attention_backward(q, k, v, allowed, d_out), variables, strict=True
    ):
        np.testing.assert_allclose(ours, variable.grad.numpy(), atol=1e-12)


def test_masked_attention_backward_against_central_differences():
    *arrays, allowed, d_out = setting((2,), 3, 4, 3, 2)
    allowed[1, 2] = False  # a query with no key

    def loss():
        return (masked_attention(*arrays, allowed)[0] * d_out).sum()

    for array, gradient in zip(
        arrays, masked_attention_backward(*arrays, allowed, d_out), strict=True
    ):
        for place in np.ndindex(array.shape):
            here = array[place]
            array[place] = here + 1e-5
            above = loss()
            array[place] = here - 1e-5
            below = loss()
            array[place] = here
            assert gradient[place] == pytest.approx((above - below) / 2e-5, abs=1e-8)


def test_no_gradient_where_the_mask_is_closed():
    q, k, v, _, d_out = setting((), 4, 4, 3, 2)
    for query in range(4):
        only = np.zeros_like(d_out)
        only[query] = d_out[query]
        dq, dk, dv = masked_attention_backward(q, k, v, causal_mask(4), only)
        assert not dk[query + 1 :].any()
        assert not dv[query + 1 :].any()
        assert not np.delete(dq, query, axis=0).any()
        assert dv[: query + 1].all()


def test_a_query_with_no_key_has_no_gradient():
    q, k, v, allowed, d_out = setting((), 3, 4, 3, 2)
    allowed[1] = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients = masked_attention_backward(q, k, v, allowed, d_out)
    keep = [0, 2]
    others = masked_attention_backward(q[keep], k, v, allowed[keep], d_out[keep])
    assert not gradients[0][1].any()
    np.testing.assert_allclose(gradients[0][keep], others[0])
    for ours, theirs in zip(gradients[1:], others[1:], strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_the_gradient_of_a_closed_score_is_zero_with_minus_infinity_and_not_with_minus_five():
    """Source 1, section 5.1: the mask must stop the gradient where it is closed, only there."""
    scores = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    d_weights = torch.randn(3, 3, dtype=torch.float64)
    allowed = torch.from_numpy(causal_mask(3))
    for fill, stopped in ((-torch.inf, True), (-5.0, False)):
        masked = scores + torch.where(allowed, 0.0, fill)
        (gradient,) = torch.autograd.grad(masked.softmax(-1), scores, d_weights)
        assert bool((gradient[~allowed] == 0).all()) == stopped
        assert (gradient[allowed][1:] != 0).all()  # a query with one key has no choice
    ours = softmax_backward(
        masked_softmax(scores.detach().numpy(), causal_mask(3)), d_weights.numpy()
    )
    assert not ours[~causal_mask(3)].any()
