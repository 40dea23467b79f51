"""Chapter 5's reference functions against PyTorch, against loops, against the paper."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from autograde.figures.ch05_multi_head import Map, show_layers, show_maps, show_splits
from autograde.reference.ch03_causal_mask import (
    additive_mask,
    causal_mask,
    masked_attention,
    padding_mask,
)
from autograde.reference.ch05_multi_head import (
    attention_parameters,
    cross_attention,
    merge_heads,
    multi_head_attention,
    split_heads,
)

SIZES = [((), 1, 2, 1), ((), 4, 6, 2), ((2,), 3, 8, 2), ((3,), 5, 6, 6), ((2, 2), 4, 12, 3)]


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def weights(d_model):
    return tuple(random(4, d_model, d_model) / np.sqrt(d_model))


def module(arrays, n_heads):
    """nn.MultiheadAttention with our weights: packed, and used as x @ w.T there."""
    w_q, w_k, w_v, w_o = arrays
    mha = torch.nn.MultiheadAttention(
        len(w_q), n_heads, bias=False, batch_first=True, dtype=torch.float64
    )
    with torch.no_grad():
        mha.in_proj_weight.copy_(torch.from_numpy(np.concatenate([w_q.T, w_k.T, w_v.T])))
        mha.out_proj.weight.copy_(torch.from_numpy(w_o.T))
    return mha


@pytest.mark.parametrize(("batch", "seq", "d_model", "n_heads"), SIZES)
def test_split_and_merge_against_loops(batch, seq, d_model, n_heads):
    x, d_head = random(*batch, seq, d_model), d_model // n_heads
    heads = split_heads(x, n_heads)
    assert heads.shape == (*batch, n_heads, seq, d_head)
    for head in range(n_heads):
        for column in range(d_head):
            slice_of_head = x[..., head * d_head + column]
            assert (heads[..., head, :, column] == slice_of_head).all()
    assert np.array_equal(merge_heads(heads), x)
    side_by_side = np.concatenate([heads[..., head, :, :] for head in range(n_heads)], axis=-1)
    assert np.array_equal(merge_heads(heads), side_by_side)


def test_a_reshape_alone_mixes_tokens():
    x = np.repeat([[0.0], [1.0], [2.0]], 4, axis=1)
    assert np.array_equal(split_heads(x, 2)[:, :, 0], [[0, 1, 2], [0, 1, 2]])
    assert not np.array_equal(x.reshape(2, 3, 2), split_heads(x, 2))


@pytest.mark.parametrize(("batch", "seq", "d_model", "n_heads"), SIZES)
def test_multi_head_attention_against_a_loop_over_heads(batch, seq, d_model, n_heads):
    """The paper's form: matrices of each head's own, outputs put side by side, then w_o."""
    x, (w_q, w_k, w_v, w_o) = random(*batch, seq, d_model), weights(d_model)
    d_head, outputs = d_model // n_heads, []
    for head in range(n_heads):
        own = slice(head * d_head, (head + 1) * d_head)
        q, k, v = x @ w_q[:, own], x @ w_k[:, own], x @ w_v[:, own]
        outputs.append(masked_attention(q, k, v, causal_mask(seq))[0])
    expected = np.concatenate(outputs, axis=-1) @ w_o
    ours = multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, causal_mask(seq))
    np.testing.assert_allclose(ours, expected, atol=1e-12)


@pytest.mark.parametrize(("batch", "seq", "d_model", "n_heads"), SIZES)
def test_multi_head_attention_against_torchs_sdpa(batch, seq, d_model, n_heads):
    x, arrays = random(*batch, seq, d_model), weights(d_model)
    allowed = causal_mask(seq)
    q, k, v = (torch.from_numpy(split_heads(x @ w, n_heads)) for w in arrays[:3])
    out = scaled_dot_product_attention(q, k, v, attn_mask=torch.from_numpy(allowed))
    theirs = merge_heads(out.numpy()) @ arrays[3]
    ours = multi_head_attention(x, *arrays, n_heads, allowed)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6])
def test_multi_head_attention_against_torchs_module(n_heads):
    x, arrays = random(3, 5, 6), weights(6)
    mha, rows = module(arrays, n_heads), torch.from_numpy(x)
    causal = torch.from_numpy(causal_mask(5))
    theirs, _ = mha(rows, rows, rows, attn_mask=~causal)
    ours = multi_head_attention(x, *arrays, n_heads, causal_mask(5))
    np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-12)

    each = causal_mask(5) & padding_mask(np.array([5, 2, 3]), 5)  # one mask for each sequence
    closed = ~torch.from_numpy(each).repeat_interleave(n_heads, dim=0)
    theirs, _ = mha(rows, rows, rows, attn_mask=closed)
    ours = multi_head_attention(x, *arrays, n_heads, each)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("n_heads", [1, 2, 3])
def test_cross_attention_against_torchs_module(n_heads):
    x, memory, arrays = random(2, 3, 6), random(2, 5, 6), weights(6)
    mha = module(arrays, n_heads)
    real = padding_mask(np.array([5, 2]), 5)
    queries, keys = torch.from_numpy(x), torch.from_numpy(memory)
    for ours, argument in (
        (cross_attention(x, memory, *arrays, n_heads), {}),
        (
            cross_attention(x, memory, *arrays, n_heads, real),
            {"key_padding_mask": ~torch.from_numpy(real[:, 0])},
        ),
    ):
        theirs, _ = mha(queries, keys, keys, **argument)
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-12)


def test_self_attention_is_cross_attention_with_itself():
    x, arrays, allowed = random(4, 6), weights(6), causal_mask(4)
    itself = cross_attention(x, x, *arrays, 2, allowed)
    np.testing.assert_allclose(itself, multi_head_attention(x, *arrays, 2, allowed))
    open_ = multi_head_attention(x, *arrays, 2, np.ones((4, 4), dtype=bool))
    np.testing.assert_allclose(cross_attention(x, x, *arrays, 2), open_)


def test_the_seven_steps_of_the_second_source():
    """Project, score, add M, softmax, weighted sum, concatenate, project."""
    x, (w_q, w_k, w_v, w_o), n_heads = random(4, 6), weights(6), 2
    q, k, v = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(3)
    scores = scores + additive_mask(causal_mask(4))
    shares = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    out = merge_heads(shares @ v) @ w_o
    ours = multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads, causal_mask(4))
    np.testing.assert_allclose(ours, out)


def test_a_query_with_no_allowed_key_gets_zeros():
    x, memory, arrays = random(2, 3, 4), random(2, 5, 4), weights(4)
    assert not multi_head_attention(x, *arrays, 2, np.zeros((3, 3), dtype=bool)).any()
    out = cross_attention(x, memory, *arrays, 2, padding_mask(np.array([0, 5]), 5))
    assert not out[0].any()
    assert out[1].any()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16])
def test_the_number_of_parameters_against_torchs_module(n_heads, bias):
    mha = torch.nn.MultiheadAttention(16, n_heads, bias=bias)
    count = sum(p.numel() for p in mha.parameters())
    assert attention_parameters(16, n_heads, bias) == count


def test_the_number_of_parameters_of_the_paper():
    """d_model 512 and 8 heads of 64 each: matrices of each head's own, and w_o."""
    of_one_head = 3 * 512 * 64
    assert attention_parameters(512, 8) == 8 * of_one_head + (8 * 64) * 512 == 1_048_576


# The chapter's own pictures -----------------------------------------------------------------


def drawn(ax):
    """{(row, column): state} of the cells of a panel."""
    names = [patch.get_gid().split() for patch in ax.patches]
    return {(int(row), int(column)): state for state, row, column in names}


def test_numbers_that_land_in_another_tokens_row_are_framed():
    ways = {"right": split_heads, "wrong": lambda x, n: x.reshape(n, len(x), -1)}
    x, *panels = show_splits(["a", "b", "c"], 4, 2, ways).axes
    assert [text.get_text() for text in x.texts][:5] == ["a0", "a1", "a2", "a3", "b0"]
    strangers = [{row for (row, _), s in drawn(p).items() if s == "stranger"} for p in panels]
    assert strangers == [set(), set(), {1, 2}, {0, 1}]
    assert [text.get_text() for text in panels[3].texts] == ["b2", "b3", "c0", "c1", "c2", "c3"]


def test_maps_show_the_largest_weight_what_is_closed_and_what_leaks():
    weights = np.array([[0.7, 0.3, 0.0], [0.1, 0.9, 0.0], [0.2, 0.2, 0.6]])
    open_, masked = show_maps(
        [Map("a", weights, "abc", "abc"), Map("b", weights, "abc", "abc", causal_mask(3))]
    ).axes
    assert set(drawn(open_).values()) == {"open"}
    assert len(open_.texts) == 3
    states = drawn(masked)
    assert states[0, 1] == "leak"
    assert states[0, 2] == states[1, 2] == "closed"


def test_only_the_decoders_self_attention_is_causal_in_the_picture():
    texts = [text.get_text() for text in show_layers().axes[0].texts]
    assert sum("\ncausal mask" in text for text in texts) == 1
    assert sum("no causal mask" in text for text in texts) == 2
