"""Chapter 10's reference functions against PyTorch, against the whole matrix, against loops."""

import warnings

import numpy as np
import pytest
import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from autograde.calls import call
from autograde.figures.ch10_memory import show_blocks, show_memory, show_tiling
from autograde.reference.ch03_causal_mask import causal_mask, masked_attention
from autograde.reference.ch10_memory import flash_attention, merge_softmax, visible_blocks


def state(scores, values):
    """(m, l, o) by the definition; an empty group has no score."""
    m = scores.max(axis=-1, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(m), 0, m)[..., None])
    return m, weights.sum(axis=-1), weights @ values


def random_keys(n_key, seed=0, scale=3.0):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=scale, size=(2, 3, n_key)), rng.normal(size=(2, n_key, 4))


@pytest.mark.parametrize("cut", [0, 1, 5, 9])
def test_two_parts_make_the_whole(cut):
    scores, values = random_keys(9)
    parts = state(scores[..., :cut], values[:, :cut]), state(scores[..., cut:], values[:, cut:])
    for got, want in zip(merge_softmax(*parts), state(scores, values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)
    _, total, o = merge_softmax(*parts)
    theirs = torch.softmax(torch.from_numpy(scores), -1) @ torch.from_numpy(values)
    np.testing.assert_allclose(o / total[..., None], theirs.numpy(), rtol=1e-12)


def test_the_empty_state_is_neutral_and_nothing_warns():
    scores, values = random_keys(4)
    some, none = state(scores, values), state(scores[..., :0], values[:, :0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for a, b, want in ((some, none, some), (none, some, some), (none, none, none)):
            for got, part in zip(merge_softmax(a, b), want, strict=True):
                assert np.array_equal(got, part)


def test_the_order_does_not_matter():
    parts = [state(*random_keys(3, seed)) for seed in range(4)]
    a, b, c, d = parts
    one = merge_softmax(merge_softmax(merge_softmax(a, b), c), d)
    other = merge_softmax(merge_softmax(d, b), merge_softmax(c, a))
    for got, want in zip(one, other, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_scores_far_from_zero_are_safe():
    """The public report behind W215: real scores near -200 after a block that is closed."""
    scores, values = random_keys(6)
    for shift in (-2000.0, -200.0, 1000.0):
        first, second = scores[..., :3] + shift, scores[..., 3:] + shift
        _, total, o = merge_softmax(state(first, values[:, :3]), state(second, values[:, 3:]))
        want = state(scores, values)
        np.testing.assert_allclose(o / total[..., None], want[2] / want[1][..., None], rtol=1e-9)


SIZES = [
    ((), 1, 1, 2, 2),
    ((), 7, 7, 4, 4),
    ((2,), 5, 9, 3, 2),
    ((2, 3), 9, 5, 2, 4),
    ((), 33, 40, 8, 8),
]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("blocks", [(1, 1), (2, 3), (3, 2), (4, 4), (50, 2), (2, 50), (50, 50)])
@pytest.mark.parametrize(("batch", "n_query", "n_key", "d_head", "d_value"), SIZES)
def test_flash_attention_against_the_whole_matrix(
    batch, n_query, n_key, d_head, d_value, blocks, causal
):
    rng = np.random.default_rng(1)
    q, k, v = (
        rng.normal(size=(*batch, n, d))
        for n, d in ((n_query, d_head), (n_key, d_head), (n_key, d_value))
    )
    allowed = causal_mask(n_query, n_key) if causal else np.ones((n_query, n_key), dtype=bool)
    want, _ = masked_attention(q, k, v, allowed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = flash_attention(q, k, v, *blocks, causal)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    assert (got[..., ~allowed.any(axis=-1), :] == 0).all()


@pytest.mark.parametrize("n_query", [6, 11])
def test_flash_attention_against_torch(n_query):
    q, k, v = (torch.randn(2, 3, n, 4, dtype=torch.float64) for n in (n_query, 11, 11))
    theirs = scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(n_query, 11))
    ours = flash_attention(q.numpy(), k.numpy(), v.numpy(), 4, 3)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12)


def test_scores_of_any_size():
    """The public report behind W216: a finite fill is beaten by scores near -20000."""
    q, k, v = np.full((2, 1), -20000.0), np.array([[1.0], [0.0]]), np.array([[1.0], [100.0]])
    for blocks in ((1, 1), (2, 2), (1, 2), (2, 1)):
        assert flash_attention(q, k, v, *blocks)[0, 0] == 1


def test_memory_grows_with_n_and_not_with_its_square():
    def peak(function, n):
        q, k, v = np.random.default_rng(2).normal(size=(3, n, 8))
        return call(function, (q, k, v), {}, measured=True).peak

    def blocks(q, k, v):
        return flash_attention(q, k, v, 64, 64)

    def whole(q, k, v):
        return masked_attention(q, k, v, causal_mask(len(q)))[0]

    assert peak(blocks, 2048) / peak(blocks, 1024) < 2
    assert 3.9 < peak(whole, 2048) / peak(whole, 1024) < 4.1
    assert peak(blocks, 2048) < peak(whole, 2048) / 100


@pytest.mark.parametrize("n", [*range(1, 14), 40])
def test_visible_blocks_against_the_mask(n):
    mask = causal_mask(n)
    for block_query in (1, 2, 3, 5, 8, 20):
        for block_key in (1, 2, 3, 5, 8, 20):
            blocks = [
                mask[i : i + block_query, j : j + block_key].any()
                for i in range(0, n, block_query)
                for j in range(0, n, block_key)
            ]
            count = visible_blocks(n, block_query, block_key)
            assert type(count) is int
            assert count == sum(blocks)


def test_flash_attention_computes_the_visible_blocks_and_no_others():
    class Counting(np.ndarray):
        """Keys that count how often a block of them is taken."""

        taken = 0

        def __getitem__(self, index):
            if isinstance(index, tuple) and isinstance(index[-2], slice):
                Counting.taken += 1
            return np.asarray(super().__getitem__(index))

    q, k, v = np.random.default_rng(3).normal(size=(3, 23, 2))
    for blocks in ((4, 4), (5, 3), (3, 5), (23, 1), (30, 30)):
        Counting.taken = 0
        flash_attention(q, k.view(Counting), v, *blocks)
        assert Counting.taken == visible_blocks(23, *blocks)


def drawn(figure):
    """{(top, left): state} of the blocks that a picture of the chapter draws."""
    (ax,) = figure.axes
    names = [(patch.get_gid() or "").split() for patch in ax.patches]
    return {(float(top), float(left)): state for state, top, left in names}


@pytest.mark.parametrize(("n", "block_query", "block_key"), [(12, 3, 4), (7, 2, 3), (5, 5, 1)])
def test_the_picture_of_the_blocks_is_that_of_the_mask(n, block_query, block_key):
    mask, states = causal_mask(n), drawn(show_blocks(n, block_query, block_key))
    assert len(states) == -(-n // block_query) * -(-n // block_key)
    for (top, left), state in states.items():
        block = mask[int(top) :, int(left) :][:block_query, :block_key]
        assert state == ("open" if block.all() else "cut" if block.any() else "skipped")
    seen = sum(state != "skipped" for state in states.values())
    assert seen == visible_blocks(n, block_query, block_key)


def test_the_picture_of_tiling_holds_one_block():
    states = drawn(show_tiling(4, 4, now=(2, 1)))
    scores = {place: state for place, state in states.items() if 0 <= min(place) <= max(place) < 4}
    assert [place for place, state in scores.items() if state == "now"] == [(2, 1)]
    assert sum(state == "done" for state in scores.values()) == 4
    assert all((state == "skipped") == (left > top) for (top, left), state in scores.items())


def test_the_picture_of_memory_has_guides_of_slope_1_and_2():
    n = np.array([512.0, 1024.0])
    (ax,) = show_memory(n, {"a": n, "b": n**2}).axes
    assert ax.get_xscale() == ax.get_yscale() == "log"
    for slope in (1, 2):
        (guide,) = (line for line in ax.lines if line.get_gid() == f"slope {slope}")
        low, high = guide.get_ydata()
        assert np.isclose(high / low, 2**slope)
    assert np.allclose(ax.lines[1].get_ydata(), n**2 / 2**20)
