"""Right answers to chapter 5, in many forms."""

from __future__ import annotations

import numpy as np

from autograde.bank import right
from autograde.reference import ch03_causal_mask as earlier
from autograde.reference import ch05_multi_head as reference

# split_heads ---------------------------------------------------------------------------


@right("split_heads")
def split_by_numpys_split(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)


@right("split_heads")
def split_by_loops(x, n_heads):
    *batch, seq, d_model = x.shape
    d_head = d_model // n_heads
    out = np.empty((*batch, n_heads, seq, d_head))
    for head in range(n_heads):
        for token in range(seq):
            out[..., head, token, :] = x[..., token, head * d_head : (head + 1) * d_head]
    return out


@right("split_heads")
def split_into_lists(x, n_heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], n_heads, -1), -2, -3).tolist()


@right("split_heads")
def split_as_a_list_of_arrays(x, n_heads):
    if x.ndim > 2:
        return [split_as_a_list_of_arrays(one, n_heads) for one in x]
    return np.split(x, n_heads, axis=1)


@right("split_heads")
def split_by_strides(x, n_heads):
    x = np.ascontiguousarray(x)
    *batch, seq, d_model = x.shape
    d_head = d_model // n_heads
    *outer, row, item = x.strides
    shape, strides = (*batch, n_heads, seq, d_head), (*outer, d_head * item, row, item)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


@right("split_heads")
def split_by_a_matrix(x, n_heads):
    d_model = x.shape[-1]
    choose = np.eye(d_model).reshape(d_model, n_heads, d_model // n_heads)
    return np.einsum("...sm,mhd->...hsd", x, choose)


@right("split_heads")
def split_by_torch(x, n_heads):
    import torch

    return torch.from_numpy(x).unflatten(-1, (n_heads, -1)).transpose(-2, -3)


@right("split_heads")
def split_by_picking_columns(x, n_heads):
    columns = np.arange(x.shape[-1]).reshape(n_heads, 1, -1)
    rows = np.arange(x.shape[-2])[:, None]
    return x[..., rows, columns]


# merge_heads ---------------------------------------------------------------------------


@right("merge_heads")
def merge_by_concatenation(x):
    return np.concatenate([x[..., head, :, :] for head in range(x.shape[-3])], axis=-1)


@right("merge_heads")
def merge_by_loops(x):
    *batch, heads, seq, d_head = x.shape
    out = np.zeros((*batch, seq, heads * d_head), dtype=x.dtype)
    for head in range(heads):
        out[..., head * d_head : (head + 1) * d_head] = x[..., head, :, :]
    return out


@right("merge_heads")
def merge_in_fortran_order(x):
    return np.asfortranarray(np.moveaxis(x, -3, -2).reshape(*x.shape[:-3], x.shape[-2], -1))


@right("merge_heads")
def merge_into_lists(x):
    if x.ndim > 3:
        return [merge_into_lists(one) for one in x]
    return [[number for head in x for number in head[t]] for t in range(x.shape[1])]


@right("merge_heads")
def merge_by_torch(x):
    import torch

    return torch.from_numpy(x).transpose(-3, -2).flatten(-2)


@right("merge_heads")
def merge_by_a_sum(x):
    heads, _, d_head = x.shape[-3:]
    place = np.eye(heads * d_head).reshape(heads, d_head, -1)
    return np.einsum("...hsd,hdm->...sm", x, place)


# multi_head_attention ------------------------------------------------------------------


def head_by_head(x, memory, weights, n_heads, allowed):
    """Yields the output of each head, computed with its own columns of the weights."""
    d_head = x.shape[-1] // n_heads
    for head in range(n_heads):
        own = slice(head * d_head, (head + 1) * d_head)
        q, k, v = (a @ w[:, own] for a, w in zip((x, memory, memory), weights, strict=True))
        yield own, earlier.masked_attention(q, k, v, allowed)[0]


@right("multi_head_attention", "neetcode-gh/leetcode#5130")
def heads_of_their_own_concatenated(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    heads = head_by_head(x, x, (w_q, w_k, w_v), n_heads, allowed)
    return np.concatenate([out for _, out in heads], axis=-1) @ w_o


@right("multi_head_attention", "fundamentalvision/Deformable-DETR#15")
def heads_through_their_rows_of_w_o(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    heads = head_by_head(x, x, (w_q, w_k, w_v), n_heads, allowed)
    return sum(out @ w_o[own] for own, out in heads)


@right("multi_head_attention")
def one_product_for_q_k_v(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    fused = x @ np.concatenate([w_q, w_k, w_v], axis=1)
    q, k, v = (reference.split_heads(y, n_heads) for y in np.split(fused, 3, axis=-1))
    out, _ = earlier.masked_attention(q, k, v, np.expand_dims(allowed, -3))
    return reference.merge_heads(out) @ w_o


@right("multi_head_attention")
def all_by_einsum(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    q, k, v = (
        np.einsum("...sm,mhd->...shd", x, w.reshape(w.shape[0], n_heads, -1))
        for w in (w_q, w_k, w_v)
    )
    scores = np.einsum("...qhd,...khd->...hqk", q, k) * q.shape[-1] ** -0.5
    weights = earlier.masked_softmax(scores, allowed[..., np.newaxis, :, :])
    out = np.einsum("...hqk,...khd->...qhd", weights, v)
    return np.einsum("...qhd,hdm->...qm", out, w_o.reshape(n_heads, -1, w_o.shape[-1]))


@right("multi_head_attention")
def values_projected_to_the_end_first(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    q, k, v = (reference.split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    v = v @ w_o.reshape(n_heads, -1, w_o.shape[-1])
    return earlier.masked_attention(q, k, v, allowed[..., None, :, :])[0].sum(axis=-3)


@right("multi_head_attention")
def batch_and_heads_folded(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    *batch, seq, d_model = x.shape
    q, k, v = (
        reference.split_heads(x @ w, n_heads).reshape(-1, seq, d_model // n_heads)
        for w in (w_q, w_k, w_v)
    )
    allowed = np.broadcast_to(allowed, (*batch, seq, seq)).reshape(-1, seq, seq)
    out, _ = earlier.masked_attention(q, k, v, np.repeat(allowed, n_heads, axis=0))
    return reference.merge_heads(out.reshape(*batch, n_heads, seq, -1)) @ w_o


@right("multi_head_attention")
def in_single_precision(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    arrays = (a.astype(np.float32) for a in (x, w_q, w_k, w_v, w_o))
    return reference.multi_head_attention(*arrays, n_heads, allowed)


@right("multi_head_attention")
def by_a_quadratic_form_for_each_head(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    d_model = x.shape[-1]
    d_head = d_model // n_heads
    q, k, v = (w.reshape(d_model, n_heads, d_head) for w in (w_q, w_k, w_v))
    form = np.einsum("ahd,bhd->hab", q, k) / np.sqrt(d_head)
    scores = np.einsum("...ia,hab,...jb->...hij", x, form, x)
    weights = earlier.masked_softmax(scores, np.expand_dims(allowed, -3))
    through = np.einsum("ahd,hdo->hao", v, w_o.reshape(n_heads, d_head, d_model))
    return np.einsum("...hij,...ja,hao->...io", weights, x, through)


@right("multi_head_attention")
def with_a_large_finite_fill(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    q, k, v = (reference.split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    allowed = allowed[..., None, :, :]
    scores = np.where(allowed, q @ np.swapaxes(k, -2, -1) / np.sqrt(q.shape[-1]), -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allowed
    total = weights.sum(axis=-1, keepdims=True)
    return reference.merge_heads(weights / np.where(total > 0, total, 1) @ v) @ w_o


@right("multi_head_attention")
def by_torchs_sdpa(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    x, w_q, w_k, w_v, w_o = (torch.from_numpy(a) for a in (x, w_q, w_k, w_v, w_o))
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(-2, -3) for w in (w_q, w_k, w_v))
    mask = torch.from_numpy(np.ascontiguousarray(allowed[..., None, :, :]))
    mask = mask.expand(*q.shape[:-1], k.shape[-2])
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask).nan_to_num(0.0)
    return out.transpose(-3, -2).flatten(-2) @ w_o


@right("multi_head_attention")
def by_torchs_multi_head(x, w_q, w_k, w_v, w_o, n_heads, allowed):
    import torch

    *batch, seq, d_model = x.shape
    packed = torch.from_numpy(np.concatenate([w_q.T, w_k.T, w_v.T]))
    rows = torch.from_numpy(x.reshape(-1, seq, d_model)).transpose(0, 1)
    closed = ~np.broadcast_to(allowed, (*batch, seq, seq)).reshape(-1, seq, seq)
    blind = closed.all(axis=-1)
    out, _ = torch.nn.functional.multi_head_attention_forward(
        rows, rows, rows, d_model, n_heads, packed, None, None, None, False, 0.0,
        torch.from_numpy(np.ascontiguousarray(w_o.T)), None, training=False,
        attn_mask=torch.from_numpy(closed & ~blind[..., None]).repeat_interleave(n_heads, dim=0),
    )  # fmt: skip
    out = np.where(blind[..., None], 0, out.transpose(0, 1).numpy())
    return out.reshape(x.shape)


# cross_attention -----------------------------------------------------------------------


def seen(x, memory, memory_allowed):
    """The mask, written out where there is none."""
    if memory_allowed is None:
        return np.full((x.shape[-2], memory.shape[-2]), True)
    return memory_allowed


@right("cross_attention")
def cross_head_by_head(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    allowed = seen(x, memory, memory_allowed)
    heads = head_by_head(x, memory, (w_q, w_k, w_v), n_heads, allowed)
    return np.concatenate([out for _, out in heads], axis=-1) @ w_o


@right("cross_attention")
def cross_query_by_query(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    allowed = seen(x, memory, memory_allowed)
    allowed = np.broadcast_to(allowed, (*x.shape[:-1], memory.shape[-2]))
    rows = []
    for i in range(x.shape[-2]):
        heads = head_by_head(
            x[..., i : i + 1, :], memory, (w_q, w_k, w_v), n_heads, allowed[..., i : i + 1, :]
        )
        rows.append(np.concatenate([out for _, out in heads], axis=-1) @ w_o)
    return np.concatenate(rows, axis=-2)


@right("cross_attention")
def cross_from_one_function_for_both(
    x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None, *, weights_too=False
):
    q = reference.split_heads(x @ w_q, n_heads)
    k, v = (reference.split_heads(memory @ w, n_heads) for w in (w_k, w_v))
    allowed = seen(x, memory, memory_allowed)[..., None, :, :]
    out, weights = earlier.masked_attention(q, k, v, allowed)
    out = reference.merge_heads(out) @ w_o
    return (out, weights) if weights_too else out


@right("cross_attention")
def cross_by_torchs_sdpa(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    x, memory, w_q, w_k, w_v, w_o = map(torch.from_numpy, (x, memory, w_q, w_k, w_v, w_o))
    q, k, v = (
        (a @ w).unflatten(-1, (n_heads, -1)).transpose(-2, -3)
        for a, w in ((x, w_q), (memory, w_k), (memory, w_v))
    )
    mask = None
    if memory_allowed is not None:
        mask = torch.from_numpy(np.ascontiguousarray(memory_allowed[..., None, :, :]))
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask).nan_to_num(0.0)
    return out.transpose(-3, -2).flatten(-2) @ w_o


@right("cross_attention")
def cross_as_lists(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    out = reference.cross_attention(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed)
    return out.astype(np.float32).tolist()


@right("cross_attention")
def cross_as_self_attention_of_both(x, memory, w_q, w_k, w_v, w_o, n_heads, memory_allowed=None):
    n, m = x.shape[-2], memory.shape[-2]
    if memory_allowed is None:
        memory_allowed = np.ones((n, m), dtype=bool)
    allowed = np.zeros((*memory_allowed.shape[:-2], n + m, n + m), dtype=bool)
    allowed[..., :n, n:] = memory_allowed
    both = np.concatenate([x, memory], axis=-2)
    out = reference.multi_head_attention(both, w_q, w_k, w_v, w_o, n_heads, allowed)
    return out[..., :n, :]


# attention_parameters ------------------------------------------------------------------


@right("attention_parameters")
def parameters_head_by_head(d_model, n_heads, bias=False):
    d_head = d_model // n_heads
    count = 0
    for _ in range(n_heads):
        count += 3 * (d_model + bias) * d_head + d_head * d_model
    return count + d_model if bias else count


@right("attention_parameters")
def parameters_of_arrays(d_model, n_heads, bias=False):
    shapes = [(d_model, d_model), (d_model,) if bias else (0,)] * 4
    return sum(np.prod(shape, dtype=np.int64) for shape in shapes)


@right("attention_parameters")
def parameters_of_torchs_module(d_model, n_heads, bias=False):
    import torch

    module = torch.nn.MultiheadAttention(d_model, n_heads, bias=bias, device="meta")
    return sum(p.numel() for p in module.parameters())


@right("attention_parameters")
def parameters_in_a_formula(d_model, n_heads, bias=False):
    return np.asarray(4 * d_model * (d_model + int(bias)))
