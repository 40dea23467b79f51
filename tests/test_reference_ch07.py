"""Chapter 7's reference functions against PyTorch and loops, and the museum against the reports."""

import inspect

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from autograde import specimens
from autograde.broken import ch07_debugging as museum
from autograde.figures.ch07_debugging import show_heads
from autograde.reference import ch07_debugging as reference
from autograde.reference.ch03_causal_mask import causal_mask, masked_attention, padding_mask
from autograde.reference.ch07_debugging import first_bad, leaks, numerical_gradient

EXHIBITS = [name for name in vars(museum) if name.startswith("repair_")]
rng = np.random.default_rng(7)


def qkv(*shape, d_value=None):
    return [rng.normal(size=(*shape[:-1], d)) for d in (shape[-1], shape[-1], d_value or shape[-1])]


def torch_attention(q, k, v, allowed):
    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    mask = torch.from_numpy(np.broadcast_to(allowed, (q.shape[-2], k.shape[-2])).copy())
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()


# leaks, numerical_gradient, first_bad ---------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_leaks_finds_what_a_pattern_reads_of_the_future(dtype):
    pattern = rng.random((5, 5)) < 0.5
    x = rng.normal(size=(5, 3)).astype(dtype)
    above = [(i, j) for i in range(5) for j in range(i + 1, 5) if pattern[i, j]]
    assert sorted(leaks(specimens.reads.using(pattern=pattern), x)) == above
    assert leaks(specimens.running_mean, x) == []


def test_leaks_of_a_finite_fill_appear_with_large_changes_only():
    """-1e9 is added to the closed scores: a change of 1e12 overcomes it, one of 1e6 does not."""
    x = rng.uniform(1, 2, size=(3, 2))
    honest, finite = (specimens.attends.using(fill=fill) for fill in (-np.inf, -1e9))
    every = [(0, 1), (0, 2), (1, 2)]
    assert leaks(honest, x) == []
    assert sorted(leaks(finite, x)) == every
    for size, moved in ((1e6, False), (1e12, True)):
        changed = x.copy()
        changed[2] += size
        assert (finite(changed)[0] != finite(x)[0]).any() == moved


def test_leaks_agrees_with_a_jacobian_of_autograd():
    x = rng.normal(size=(4, 3))
    weights = torch.from_numpy(rng.normal(size=(3, 3)))

    def attend(x, allowed):
        q, k, v = x @ weights, x, x
        scores = (q @ k.mT).masked_fill(~torch.from_numpy(allowed), -torch.inf)
        return scores.softmax(-1) @ v

    for allowed in (causal_mask(4), np.tri(4, 4, 1, dtype=bool)):
        jacobian = torch.autograd.functional.jacobian(
            lambda x, a=allowed: attend(x, a), torch.from_numpy(x)
        )
        reaches = (jacobian != 0).numpy().any(axis=(1, 3))
        wanted = [(i, j) for i in range(4) for j in range(i + 1, 4) if reaches[i, j]]
        found = leaks(lambda x, a=allowed: attend(torch.from_numpy(x), a).numpy(), x)
        assert sorted(found) == wanted


def test_leaks_looks_for_nan_too():
    x = rng.normal(size=(3, 2))
    pattern = np.tri(3, 3, 1, dtype=bool)
    assert leaks(specimens.overflows.using(pattern=pattern), x) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2)])
def test_numerical_gradient_against_autograd(shape):
    x = rng.normal(size=shape)
    for f, g in (
        (specimens.log_sum_exp, lambda x: torch.logsumexp(x.flatten(), 0)),
        (specimens.sum_of_cubes, lambda x: (x**3).sum()),
        (specimens.product, torch.prod),
    ):
        tensor = torch.from_numpy(x).requires_grad_()
        g(tensor).backward()
        np.testing.assert_allclose(numerical_gradient(f, x), tensor.grad.numpy(), atol=1e-8)


def test_numerical_gradient_of_a_cube_has_the_error_of_central_differences():
    """((x + e)^3 - (x - e)^3) / (2 e) = 3 x^2 + e^2."""
    x = np.array([1.0, -2.0], dtype=np.float32)
    got = numerical_gradient(specimens.sum_of_cubes, x, eps=0.5)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, 3 * x**2 + 0.25)


def test_first_bad_keeps_the_order_and_takes_any_array():
    nan, good = np.array([np.nan]), np.array([1, 2])
    assert first_bad({"z": good, "b": nan, "a": nan}) == "b"
    assert first_bad({"e": np.zeros((0, 2)), "m": np.tri(2, dtype=bool), "f": np.ones(1)}) is None
    assert first_bad({"x": np.array([65504.0, 65504.0], np.float16)}) is None
    assert first_bad({"x": np.array([0, -np.inf])}) == "x"


# The mended functions ------------------------------------------------------------------


def test_the_scale_against_torch():
    q, k, _ = qkv(2, 3, 4, 8)
    allowed = causal_mask(4)
    ours = reference.repair_scale(q, k, allowed)
    np.testing.assert_allclose(ours @ k, torch_attention(q, k, k, allowed), atol=1e-12)


@pytest.mark.parametrize("window", [1, 2, 3, 9])
def test_the_window_counts_its_keys(window):
    n = 6
    seen = reference.repair_window(np.zeros((n, 2)), np.zeros((n, 2)), np.eye(n), window) > 0
    assert seen.sum(axis=1).tolist() == [min(t + 1, window) for t in range(n)]
    assert all(seen[t, t] for t in range(n))


def test_the_softmax_against_torch():
    scores = rng.normal(size=(3, 4)) - 1000
    weights, log_sum = reference.repair_softmax(scores, np.ones(4, dtype=bool))
    theirs = torch.from_numpy(scores)
    np.testing.assert_allclose(weights, theirs.softmax(-1), atol=1e-12)
    np.testing.assert_allclose(log_sum, theirs.logsumexp(-1), rtol=1e-15)
    allowed = np.array([[True, False], [False, False]])
    weights, log_sum = reference.repair_softmax(np.zeros((2, 2)), allowed)
    assert weights.tolist() == [[1, 0], [0, 0]]
    assert log_sum.tolist() == [0, -np.inf]


def test_unused_slots_have_no_say():
    q, k, v = qkv(2, 5, 4)
    for junk in (0.0, 1e30, np.inf, np.nan):
        k[:, 3:], v[:, 3:] = junk, junk
        out = reference.repair_unused_slots(q[:, :1], k, v, 3)
        np.testing.assert_allclose(out, torch_attention(q[:, :1], k[:, :3], v[:, :3], True))


def test_the_norm_against_torch():
    x, gain, bias = rng.normal(size=(2, 3, 4)), rng.normal(size=4), rng.normal(size=4)
    as_tensors = [torch.from_numpy(array) for array in (x, gain, bias)]
    theirs = F.layer_norm(as_tensors[0], (4,), *as_tensors[1:])
    np.testing.assert_allclose(reference.repair_norm(x, gain, bias), theirs, atol=1e-12)


def test_the_heads_against_torch():
    x = rng.normal(size=(2, 5, 6))
    w_q, w_k, w_v, w_o = rng.normal(size=(4, 6, 6))
    mha = torch.nn.MultiheadAttention(6, 3, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        mha.in_proj_weight[:] = torch.from_numpy(np.concatenate([w_q.T, w_k.T, w_v.T]))
        mha.out_proj.weight[:] = torch.from_numpy(w_o.T)
    tensor = torch.from_numpy(x)
    theirs, _ = mha(tensor, tensor, tensor, attn_mask=~torch.from_numpy(causal_mask(5)))
    ours = reference.repair_merge(x, w_q, w_k, w_v, w_o, 3)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-12)


def test_head_masks_give_what_single_samples_give():
    scores, allowed = rng.normal(size=(6, 4, 4)), padding_mask(np.array([4, 2]), 4)
    together = reference.repair_head_masks(scores, allowed, 3)
    alone = [reference.repair_head_masks(scores[3 * b :][:3], allowed[[b]], 3) for b in (0, 1)]
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_both_paths_against_masked_attention():
    q, k, v = qkv(2, 5, 4, d_value=3)
    out, weights = masked_attention(q, k, v, causal_mask(5))
    np.testing.assert_allclose(reference.repair_return_weights(q, k, v), out, atol=1e-12)
    both = reference.repair_return_weights(q, k, v, return_weights=True)
    np.testing.assert_allclose(both[0], out, atol=1e-12)
    np.testing.assert_allclose(both[1], weights, atol=1e-12)


def test_chunks_with_a_cache_give_what_the_whole_gives():
    q, k, v = qkv(2, 8, 4, d_value=3)
    whole = torch_attention(q, k, v, causal_mask(8))
    cache, out = (k[:, :0], v[:, :0]), []
    for start, end in ((0, 3), (3, 4), (4, 7), (7, 8)):
        part = slice(start, end)
        got, cache = reference.repair_prefill(q[:, part], k[:, part], v[:, part], cache)
        out.append(got)
    np.testing.assert_allclose(np.concatenate(out, axis=1), whole, atol=1e-12)
    assert np.array_equal(cache[0], k)
    assert np.array_equal(cache[1], v)


def test_the_loss_against_torch():
    logits, tokens = rng.normal(size=(3, 5, 7)), rng.integers(0, 7, size=(3, 5))
    flat = torch.from_numpy(logits[:, :-1].reshape(-1, 7))
    theirs = F.cross_entropy(flat, torch.from_numpy(tokens[:, 1:].ravel()))
    assert reference.repair_loss(logits, tokens) == pytest.approx(theirs.item())
    assert reference.repair_loss(np.zeros((2, 7)), np.array([0, 3])) == pytest.approx(np.log(7))


# The museum: each exhibit does what was reported ----------------------------------------


@pytest.mark.parametrize("name", EXHIBITS)
def test_only_the_body_is_broken(name):
    broken, right = getattr(museum, name), getattr(reference, name)
    assert inspect.signature(broken) == inspect.signature(right)
    assert inspect.getdoc(broken) == inspect.getdoc(right)
    assert len(inspect.getsource(broken).splitlines()) <= 40


def test_there_are_ten_exhibits():
    assert len(EXHIBITS) == 10


def test_the_broken_scale_saturates():
    """esceptico/perceiver-io#9: divides by a factor that is d_head ** -0.5 already."""
    q, k, _ = qkv(50, 64)
    allowed = np.ones((50, 50), dtype=bool)
    sharp, right = museum.repair_scale(q, k, allowed), reference.repair_scale(q, k, allowed)
    assert sharp.max(axis=-1).mean() > 0.95 > 0.5 > right.max(axis=-1).mean()
    one = [rng.normal(size=(4, 1)) for _ in "qk"]
    hidden = museum.repair_scale(*one, causal_mask(4)), reference.repair_scale(*one, causal_mask(4))
    np.testing.assert_allclose(*hidden)  # d_head = 1 hides it


def test_the_broken_window_has_one_key_too_many():
    """huggingface/transformers#26792: triu(-window)."""
    seen = museum.repair_window(np.zeros((6, 2)), np.zeros((6, 2)), np.eye(6), 2) > 0
    assert seen.sum(axis=1).tolist() == [1, 2, 3, 3, 3, 3]


def test_the_broken_softmax_loses_negative_rows():
    """FluxML/NNlib.jl#43: softmax([-10000, -10000])."""
    weights, _ = museum.repair_softmax(np.full((1, 2), -10000.0), np.ones(2, dtype=bool))
    assert not weights.any()


def test_the_broken_buffer_is_poisoned_by_nan():
    """Dao-AILab/flash-attention#2374: 0 * NaN in P V."""
    q, k, v = qkv(4, 3)
    v[2:] = np.nan
    assert np.isnan(museum.repair_unused_slots(q[:1], k, v, 2)).all()


def test_the_broken_norm_leaks():
    """google-deepmind/dm-haiku#700: statistics over the sequence, too."""
    x, ones, zeros = rng.normal(size=(3, 4)), np.ones(4), np.zeros(4)
    assert len(leaks(lambda x: museum.repair_norm(x, ones, zeros), x)) == 3
    assert leaks(lambda x: reference.repair_norm(x, ones, zeros), x) == []


def test_the_broken_merge_leaks():
    """jsbaan/transformer-from-scratch#6: reshape without the transpose."""
    x, weights = rng.normal(size=(4, 6)), rng.normal(size=(4, 6, 6))
    assert leaks(lambda x: museum.repair_merge(x, *weights, 2), x)
    assert leaks(lambda x: reference.repair_merge(x, *weights, 2), x) == []


def test_the_broken_head_masks_come_from_the_neighbours():
    """line/lighthouse#77: tiled, not repeated; one sample, or one head, hides it."""
    scores, allowed = np.zeros((4, 1, 2)), np.array([[[True, True]], [[True, False]]])
    weights = museum.repair_head_masks(scores, allowed, 2)
    assert (weights[:, 0, 1] > 0).tolist() == [True, False, True, False]
    for n_heads, masks in ((2, allowed[:1]), (1, allowed)):
        part = rng.normal(size=(n_heads * len(masks), 1, 2))
        args = part, masks, n_heads
        assert np.array_equal(museum.repair_head_masks(*args), reference.repair_head_masks(*args))


def test_the_broken_slow_path_has_no_mask():
    """keras-team/keras#23038: no causal mask when the weights are asked for."""
    x = rng.normal(size=(4, 3))
    assert leaks(lambda x: museum.repair_return_weights(x, x, x), x) == []
    assert len(leaks(lambda x: museum.repair_return_weights(x, x, x, True)[0], x)) == 6


def test_the_broken_prefill_leaks_with_a_cache_only():
    """Mikyx-1/TinyLLM#17: the mask is skipped whenever a cache object exists."""
    x = rng.normal(size=(4, 3))
    assert leaks(lambda x: museum.repair_prefill(x, x, x)[0], x) == []
    assert len(leaks(lambda x: museum.repair_prefill(x, x, x, (x[:0], x[:0]))[0], x)) == 6


def test_the_broken_loss_wants_the_token_after_the_next():
    """huggingface/transformers#47394: t + 2, and across the rows of the batch."""
    tokens = np.array([[0, 1, 2, 3], [1, 3, 0, 2]])
    sure = 50 * np.eye(4)
    assert museum.repair_loss(sure[np.roll(tokens, -1, axis=1)], tokens) > 10
    ahead = sure[np.roll(tokens, -2, axis=1)]
    assert reference.repair_loss(ahead, tokens) > 10
    assert museum.repair_loss(ahead[0], tokens[0]) < 1e-6
    ahead[0, 2] = sure[tokens[1, 1]]  # the first sequence is asked for the second one's tokens
    assert museum.repair_loss(ahead, tokens) < 1e-6


# The picture ---------------------------------------------------------------------------


def test_show_heads_draws_the_past_and_marks_the_largest_weight_of_each_row():
    weights = np.array([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.2, 0.7, 0.1]])
    figure = show_heads({"one": weights, "two": np.tri(3) / 3}, list("abc"))
    one, two = figure.axes
    assert (one.get_title(), two.get_title()) == ("one", "two")
    drawn = {tuple(patch.get_gid().split()) for patch in one.patches if patch.get_gid()}
    assert drawn == {("weight", str(i), str(j)) for i in range(3) for j in range(i + 1)}
    dots = [(line.get_xdata()[0], line.get_ydata()[0]) for line in one.lines]
    assert dots == [(0.5, 0.5), (1.5, 1.5), (1.5, 2.5)]
    assert any(patch.get_hatch() for patch in one.patches)  # the future
