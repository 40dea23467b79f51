"""Chapter 9's reference functions against PyTorch, against loops, against published numbers."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from autograde.figures import ch09_variants as pictures
from autograde.reference.ch03_causal_mask import causal_mask, masked_attention
from autograde.reference.ch09_variants import (
    alibi_bias,
    axial_causal_attention,
    grouped_query_attention,
    ring_append,
    ring_positions,
    sliding_window_mask,
    strided_mask,
)


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("window", [1, 2, 3, 6, 9])
def test_the_window_against_a_loop_and_by_counting(n, window):
    mask = sliding_window_mask(n, window)
    assert mask.dtype == bool
    assert mask.tolist() == [[i - window < j <= i for j in range(n)] for i in range(n)]
    assert mask.sum(axis=1).tolist() == [min(i + 1, window) for i in range(n)]


@pytest.mark.parametrize("n", [1, 4, 9])
@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("stride", [1, 2, 3, 12])
def test_the_strided_mask_against_a_loop(n, window, stride):
    mask = strided_mask(n, window, stride)
    loop = [
        [j <= i and (i - j < window or (i - j) % stride == 0) for j in range(n)] for i in range(n)
    ]
    assert mask.dtype == bool
    assert mask.tolist() == loop


def test_alibi_has_the_slopes_of_the_paper():
    """Press et al. 2022, section 3: 1/2, 1/4, ..., 1/256 for 8 heads; for 16, 2^-0.5, 2^-1, ..."""
    assert (-alibi_bias(2, 8)[:, 1, 0]).tolist() == [2.0**-h for h in range(1, 9)]
    np.testing.assert_allclose(-alibi_bias(2, 16)[:, 1, 0], 2.0 ** (-np.arange(1, 17) / 2))


@pytest.mark.parametrize("n_heads", [1, 3, 8, 12])
def test_alibi_against_a_loop(n_heads):
    n = 5
    loop = np.zeros((n_heads, n, n))
    for h, i, j in np.ndindex(loop.shape):
        loop[h, i, j] = -(2 ** (-8 * (h + 1) / n_heads)) * max(i - j, 0)
    np.testing.assert_allclose(alibi_bias(n, n_heads), loop, rtol=1e-12)
    assert not np.signbit(np.triu(alibi_bias(n, n_heads))).any()  # no -0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("batch", "heads", "kv_heads"), [((), 4, 2), ((2,), 6, 3), ((2, 3), 4, 1), ((3,), 2, 2)]
)
def test_grouped_query_attention_against_torch(dtype, batch, heads, kv_heads):
    rng = np.random.default_rng(0)
    q = rng.normal(size=(*batch, heads, 5, 4)).astype(dtype)
    k = rng.normal(size=(*batch, kv_heads, 5, 4)).astype(dtype)
    v = rng.normal(size=(*batch, kv_heads, 5, 3)).astype(dtype)
    out = grouped_query_attention(q, k, v, causal_mask(5))
    assert out.dtype == dtype
    four = (torch.from_numpy(x.reshape(-1, *x.shape[-3:])) for x in (q, k, v))
    theirs = scaled_dot_product_attention(*four, is_causal=True, enable_gqa=True)
    np.testing.assert_allclose(out, theirs.numpy().reshape(out.shape), atol=1e-5)


def test_grouped_query_attention_head_by_head_with_a_mask_for_each():
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(2, 6, 3, 4)), *rng.normal(size=(2, 2, 2, 5, 4))
    allowed = rng.random((2, 6, 3, 5)) < 0.5  # some queries may have no key
    out = grouped_query_attention(q, k, v, allowed)
    for h in range(6):
        alone, _ = masked_attention(q[:, h], k[:, h // 3], v[:, h // 3], allowed[:, h])
        np.testing.assert_allclose(out[:, h], alone)
    assert not out[~allowed.any(-1)].any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (3, 4), (4, 4)])
def test_axial_attention_against_two_masks_on_the_flat_grid(shape):
    rng = np.random.default_rng(2)
    q, k, v = rng.normal(size=(3, 2, *shape, 4))
    row, col = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    flat = [torch.from_numpy(x.reshape(2, -1, 4)) for x in (q, k, v)]
    past = causal_mask(len(row))
    theirs = sum(
        scaled_dot_product_attention(
            *flat, attn_mask=torch.from_numpy((axis[:, None] == axis) & past)
        )
        for axis in (row, col)
    )
    out = axial_causal_attention(q, k, v)
    np.testing.assert_allclose(out, theirs.numpy().reshape(out.shape), atol=1e-12)


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_the_ring_holds_what_ring_positions_says(capacity):
    """Positions themselves are written, in chunks of every size, round after round."""
    rng = np.random.default_rng(capacity)
    k = np.full((2, capacity, 1), -1.0)
    v, position = k - 1, 0
    for _ in range(30):
        new = int(rng.integers(1, capacity + 1))
        tokens = np.broadcast_to(position + np.arange(new, dtype=float)[:, None], (2, new, 1))
        before = k.copy(), v.copy()
        appended = ring_append(k, v, tokens, tokens - 1, position)
        assert np.array_equal(k, before[0])
        assert np.array_equal(v, before[1])
        k, v = appended
        position += new
        held = ring_positions(position - 1, capacity)
        assert held.dtype.kind == "i"
        assert np.array_equal(k[:, :, 0], [held, held])
        assert np.array_equal(v, k - 1)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_single_steps_through_a_ring_are_a_sliding_window(window):
    rng = np.random.default_rng(window)
    q, k, v = rng.normal(size=(3, 2, 9, 3))
    wanted, _ = masked_attention(q, k, v, sliding_window_mask(9, window))
    k_ring, v_ring = np.zeros((2, 2, window, 3))
    for p in range(9):
        now = slice(p, p + 1)
        k_ring, v_ring = ring_append(k_ring, v_ring, k[:, now], v[:, now], p)
        allowed = ring_positions(p, window)[None] >= 0
        out, _ = masked_attention(q[:, now], k_ring, v_ring, allowed)
        np.testing.assert_allclose(out[:, 0], wanted[:, p])


# How the chapter counts -------------------------------------------------------------------


def steps(allowed, most):
    """The fewest steps along open pairs from each output to each input, 0 = more than most."""
    path, fewest = np.eye(len(allowed), dtype=bool), np.zeros(allowed.shape, dtype=int)
    for step in range(1, most + 1):
        path = allowed @ path
        fewest[path & (fewest == 0)] = step
    return fewest


@pytest.mark.parametrize(
    "allowed", [causal_mask(7), sliding_window_mask(9, 3), strided_mask(12, 2, 4), np.eye(4) > 0]
)
def test_inputs_travel_one_open_pair_a_layer(allowed):
    found = pictures.fewest_layers(
        lambda q, k, v: masked_attention(q, k, v, allowed)[0], len(allowed)
    )
    assert np.array_equal(found, steps(allowed, 3))


def test_the_price_of_a_mask():
    assert pictures.price(causal_mask, 8) == (36, 8, [8, 8, 8])
    assert pictures.price(lambda n: sliding_window_mask(n, 3), 8) == (21, 2, [3, 5, 7])


def test_the_pictures_show_what_they_are_given():
    def drawn(figure):
        return {tuple(patch.get_gid().split()) for patch in figure.axes[0].patches}

    layers = np.array([[1, 2], [0, 3]])
    states = {("layer1", "0", "0"), ("leak", "0", "1"), ("lost", "1", "0"), ("layer3", "1", "1")}
    assert drawn(pictures.show_layers(layers)) == states
    held = np.array([[0, -1], [0, 1]])
    states = {("new", "0", "0"), ("empty", "0", "1"), ("kept", "1", "0"), ("new", "1", "1")}
    assert drawn(pictures.show_ring(held)) == states
    text = pictures.table(("a", "b"), [("1", "2")]).data
    assert text == "| a | b |\n| --- | --- |\n| 1 | 2 |"
