"""What must be true of the functions of chapter 5."""

from __future__ import annotations

import numpy as np

from autograde.claims.shared import blind_queries_get_zeros, some_mask
from autograde.diagnosis import inside
from autograde.exercise import Exercise
from autograde.reference import ch05_multi_head as reference

PAGE = "05-multi-head"


def tokens(rng, *shape: int, dtype=np.float64) -> np.ndarray:
    """Random vectors, one for each token."""
    return rng.normal(size=shape).astype(dtype)


def projections(rng, d_model: int, dtype=np.float64) -> tuple[np.ndarray, ...]:
    """Random w_q, w_k, w_v and w_o that keep the size of what goes through them."""
    shape = (4, d_model, d_model)
    return tuple((rng.normal(size=shape) / np.sqrt(d_model)).astype(dtype))


def small_projections(d_model: int) -> tuple[np.ndarray, ...]:
    """w_q to w_o in whole numbers, none like its transpose or like another."""
    eye, above = np.eye(d_model), np.eye(d_model, k=1)
    return eye + above, eye - above, 2 * eye + above, eye + above.T


def named(*shape: int) -> np.ndarray:
    """Every entry of row t is t, so that a number says which token it came from."""
    rows = np.arange(float(shape[-2]))[:, None]
    return np.broadcast_to(rows, shape).copy()


# split_heads ---------------------------------------------------------------------------

split_heads = Exercise(
    reference.split_heads,
    read=(f"{PAGE}#ch05-split-heads", "Split the heads, and merge them"),
    hints=(
        "Take one token, a row of d_model numbers. Which of them belong to head 0? Write down "
        "the result for two tokens, d_model = 4 and two heads, then look at your array.",
        "A reshape may only cut the last axis, into (n_heads, d_head). After that the axes are "
        "(*batch, seq, heads, d_head), and two of them stand in the wrong order.",
        "*batch, seq, d_model = x.shape; reshape to (*batch, seq, n_heads, d_model // n_heads), "
        "then exchange the axes -3 and -2 with np.swapaxes.",
    ),
)


@split_heads.claim("head h holds columns h d_head to (h + 1) d_head of every token", points=2)
def _(probe, rng):
    probe.equals(np.array([[1.0, 2.0]]), 1)
    probe.equals(np.array([[1.0, 2.0]]), 2)
    probe.equals(np.array([[1.0, 2.0], [3.0, 4.0]]), 2)
    probe.equals(np.arange(8.0).reshape(2, 4), 2)
    probe.equals(np.arange(12.0).reshape(3, 4), 2)
    for seq, d_model, n_heads in ((2, 6, 3), (3, 6, 2), (4, 6, 6), (5, 12, 3), (7, 12, 4)):
        probe.equals(tokens(rng, seq, d_model), n_heads)
        probe.equals(tokens(rng, seq, d_model, dtype=np.float32), n_heads)


@split_heads.claim("row t of every head holds numbers of token t, and of no other")
def _(probe, rng):
    for seq, d_model, n_heads in ((2, 2, 2), (2, 4, 2), (3, 6, 2), (3, 6, 3), (5, 8, 2)):
        x = named(seq, d_model)
        heads = probe(x, n_heads)
        for head, row in np.argwhere((heads != named(*heads.shape)).any(axis=-1))[:1]:
            strangers = heads[head, row][heads[head, row] != row]
            detail = f"row {row} of head {head} holds a number of token {strangers[0]:g}"
            probe.fail(detail, x, n_heads, expected=named(*heads.shape), got=heads)


@split_heads.claim("any number of batch axes may stand in front")
def _(probe, rng):
    probe.equals(np.arange(8.0).reshape(2, 2, 2), 2)
    for batch in ((1,), (2,), (3,), (2, 3), (2, 1, 2)):
        for seq, d_model, n_heads in ((3, 4, 2), (2, 6, 3)):
            probe.equals(tokens(rng, *batch, seq, d_model), n_heads)


# merge_heads ---------------------------------------------------------------------------

merge_heads = Exercise(
    reference.merge_heads,
    read=(f"{PAGE}#ch05-split-heads", "Split the heads, and merge them"),
    hints=(
        "The result has one row for each token. What stands in row 0, if there are two heads of "
        "width 2? Write it down, then look at your array.",
        "Before a reshape can glue the heads together, the two axes that it makes into one must "
        "stand next to each other, the head first: (*batch, seq, heads, d_head).",
        "Exchange the axes -3 and -2, then reshape to (*batch, seq, heads * d_head).",
    ),
)


@merge_heads.claim("row t is row t of head 0, then row t of head 1, and so on", points=2)
def _(probe, rng):
    probe.equals(np.array([[[1.0, 2.0]]]))
    probe.equals(np.array([[[1.0]], [[2.0]]]))
    probe.equals(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]))
    probe.equals(np.arange(8.0).reshape(2, 2, 2))
    probe.equals(np.arange(12.0).reshape(2, 3, 2))
    for shape in ((3, 2, 2), (2, 3, 3), (6, 4, 1), (3, 5, 4), (4, 7, 3)):
        probe.equals(tokens(rng, *shape))
        probe.equals(tokens(rng, *shape, dtype=np.float32))


@merge_heads.claim("row t of the result holds numbers of token t, and of no other")
def _(probe, rng):
    for shape in ((2, 2, 1), (2, 2, 2), (2, 3, 3), (3, 3, 2), (2, 5, 4)):
        x = named(*shape)
        merged = probe(x)
        for (row,) in np.argwhere((merged != named(*merged.shape)).any(axis=-1))[:1]:
            strangers = merged[row][merged[row] != row]
            detail = f"row {row} holds a number of token {strangers[0]:g}"
            probe.fail(detail, x, expected=named(*merged.shape), got=merged)


@merge_heads.claim("any number of batch axes may stand in front")
def _(probe, rng):
    probe.equals(np.arange(8.0).reshape(2, 2, 2, 1))
    for batch in ((1,), (2,), (3,), (2, 3), (2, 1, 2)):
        for shape in ((2, 3, 2), (3, 2, 2)):
            probe.equals(tokens(rng, *batch, *shape))


# multi_head_attention ------------------------------------------------------------------

multi_head_attention = Exercise(
    reference.multi_head_attention,
    read=(f"{PAGE}#ch05-seven-steps", "Seven steps, seven lines"),
    hints=(
        "Seven steps: project, score, mask, softmax, weighted sum, merge, project. "
        "masked_attention does four of them, for any number of batch axes in front: heads count "
        "as one more.",
        "Multiply by the big matrix first and split afterwards. The mask needs an axis of length 1 "
        "where the others have their heads: allowed[..., None, :, :].",
        "q = split_heads(x @ w_q, n_heads), the same for k and v; out, _ = masked_attention(q, k, "
        "v, allowed with its heads axis); return merge_heads(out) @ w_o.",
    ),
    uses=("split_heads", "merge_heads"),
    steps=inside.of_heads,
)


@multi_head_attention.claim("without a mask, every head attends on its own slice", points=3)
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    everything = np.ones((2, 2), dtype=bool)
    probe.equals(x[:1], *small_projections(2), 1, everything[:1, :1])
    probe.equals(x, *small_projections(2), 1, everything)
    probe.equals(x, *small_projections(2), 2, everything)
    small = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    probe.equals(small, *small_projections(4), 2, np.ones((3, 3), dtype=bool))
    for seq, d_model, n_heads in (
        (2, 4, 2),
        (3, 6, 2),
        (3, 6, 3),
        (3, 8, 2),
        (4, 8, 8),
        (5, 12, 3),
    ):
        for dtype in (np.float64, np.float32):
            arrays = tokens(rng, seq, d_model, dtype=dtype), *projections(rng, d_model, dtype)
            probe.equals(*arrays, n_heads, np.ones((seq, seq), dtype=bool))


@multi_head_attention.claim("the mask holds in every head")
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    probe.equals(x, *small_projections(2), 2, np.tri(2, dtype=bool))
    for seq, d_model, n_heads in ((3, 4, 2), (3, 8, 2), (4, 6, 3), (5, 8, 2)):
        arrays = tokens(rng, seq, d_model), *projections(rng, d_model)
        probe.equals(*arrays, n_heads, np.tri(seq, dtype=bool))
        probe.equals(*arrays, n_heads, some_mask(rng, seq, seq))
        _no_head_sees_the_future(probe, rng, seq, d_model, n_heads)


def _no_head_sees_the_future(probe, rng, seq, d_model, n_heads):
    """With w_v = w_o = 1 the columns of the output belong to one head each."""
    w_q, w_k, *_ = projections(rng, d_model)
    same, d_head = np.eye(d_model), d_model // n_heads
    x, causal = tokens(rng, seq, d_model), np.tri(seq, dtype=bool)
    before = probe(x, w_q, w_k, same, same, n_heads, causal)
    for t in range(1, seq):
        changed = x.copy()
        changed[t:] += rng.normal(scale=30, size=x[t:].shape)
        after = probe(changed, w_q, w_k, same, same, n_heads, causal)
        moved = ~np.isclose(after[:t], before[:t], rtol=1e-5, atol=1e-6)
        if moved.any():
            head = int(np.argwhere(moved)[0, 1]) // d_head
            detail = f"tokens from {t} on were changed, and an earlier output moved, in head {head}"
            args = (changed, w_q, w_k, same, same, n_heads, causal)
            probe.fail(detail, *args, expected=before[:t], got=after[:t])


@multi_head_attention.claim("batches: one mask for all sequences, or one for each")
def _(probe, rng):
    sizes = (((2,), 2, 2, 2), ((2,), 3, 4, 2), ((3,), 3, 4, 2), ((2, 3), 3, 6, 3))
    for batch, seq, d_model, n_heads in sizes:
        arrays = tokens(rng, *batch, seq, d_model), *projections(rng, d_model)
        probe.equals(*arrays, n_heads, np.tri(seq, dtype=bool))
        probe.equals(*arrays, n_heads, some_mask(rng, *batch, seq, seq))
        probe.equals(*arrays, n_heads, some_mask(rng, *batch, 1, seq))


@multi_head_attention.claim("a query with no allowed key gets zeros")
def _(probe, rng):
    arrays = tokens(rng, 2, 2), *projections(rng, 2)
    blind_queries_get_zeros(probe, *arrays, 2, np.tri(2, k=-1, dtype=bool))
    arrays = tokens(rng, 2, 3, 4), *projections(rng, 4)
    allowed = some_mask(rng, 2, 3, 3)
    allowed[1, 1] = False
    blind_queries_get_zeros(probe, *arrays, 2, allowed)
    blind_queries_get_zeros(probe, *arrays, 2, np.zeros((3, 3), dtype=bool))


@multi_head_attention.claim("large scores are safe")
def _(probe, rng):
    for dtype in (np.float64, np.float32):
        for heights, allowed in STEEP:
            x = np.repeat(np.array(heights, dtype)[:, None], 4, axis=1)
            eye = np.eye(4, dtype=dtype)
            probe.equals(x, eye, eye, eye, eye, 2, np.array(allowed, dtype=bool))


# Token heights (scores are products of two, times the root of 2) and who may see whom. So steep
# that one key gets all, whatever the rounding.
STEEP = (
    ([-30, 30], np.ones((2, 2))),
    ([-30, 30], [[0, 1], [1, 0]]),
    ([-120, 120], [[0, 1], [1, 0]]),  # far below a fill of -10000
    ([-30, 30, 10], np.tri(3)),
    ([10, -30, 20, -40], np.tri(4)),
)


# cross_attention -----------------------------------------------------------------------

cross_attention = Exercise(
    reference.cross_attention,
    read=(f"{PAGE}#ch05-cross-attention", "Cross-attention"),
    hints=(
        "Who asks, and who is asked? Only one of q, k and v is made from x.",
        "Start from your multi_head_attention and make keys and values from memory. Without "
        "memory_allowed nothing is closed, neither future nor past.",
        "memory_allowed = np.ones((1, memory.shape[-2]), dtype=bool) stands for None; then it "
        "gets its heads axis, as in multi_head_attention.",
    ),
    uses=("split_heads", "merge_heads"),
    steps=inside.of_heads,
)


@cross_attention.claim("x asks, and all of memory answers, in every head", points=3)
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    memory = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    probe.equals(x[:1], memory[:1], *small_projections(2), 1)
    probe.equals(x, memory[:1], *small_projections(2), 2)
    probe.equals(x[:1], memory[:2], *small_projections(2), 2)
    probe.equals(x, memory[:2], *small_projections(2), 2)
    probe.equals(x, memory, *small_projections(2), 2)
    for n_query, n_key, d_model, n_heads in (
        (2, 3, 4, 2),
        (4, 2, 6, 3),
        (3, 5, 6, 2),
        (4, 4, 8, 4),
    ):
        for dtype in (np.float64, np.float32):
            arrays = tokens(rng, n_query, d_model, dtype=dtype), tokens(rng, n_key, d_model)
            probe.equals(
                arrays[0], arrays[1].astype(dtype), *projections(rng, d_model, dtype), n_heads
            )


@cross_attention.claim("memory_allowed closes keys of the memory")
def _(probe, rng):
    x, memory = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [2.0, 0.0]])
    probe.equals(x, memory, *small_projections(2), 2, np.array([[False, True]]))
    for n_query, n_key, d_model, n_heads in (
        (2, 3, 4, 2),
        (4, 2, 6, 3),
        (3, 5, 6, 2),
        (3, 3, 4, 4),
    ):
        arrays = tokens(rng, n_query, d_model), tokens(rng, n_key, d_model)
        allowed = some_mask(rng, n_query, n_key)
        probe.equals(*arrays, *projections(rng, d_model), n_heads, allowed)


@cross_attention.claim("batches, each memory with padding of its own")
def _(probe, rng):
    for batch, n_query, n_key in ((2, 2, 3), (3, 3, 2), (2, 4, 4)):
        arrays = tokens(rng, batch, n_query, 4), tokens(rng, batch, n_key, 4)
        lengths = rng.permutation(np.arange(batch) % n_key + 1)  # not all alike
        real = np.arange(n_key) < lengths[:, None, None]
        probe.equals(*arrays, *projections(rng, 4), 2)
        probe.equals(*arrays, *projections(rng, 4), 2, real)
        probe.equals(*arrays, *projections(rng, 4), 2, some_mask(rng, n_query, n_key))
    probe.equals(tokens(rng, 2, 3, 2, 6), tokens(rng, 2, 3, 4, 6), *projections(rng, 6), 3)


@cross_attention.claim("an output depends on its own row of x, and on no other row")
def _(probe, rng):
    x, memory = tokens(rng, 3, 4), tokens(rng, 4, 4)
    weights = projections(rng, 4)
    before = probe(x, memory, *weights, 2)
    for j in range(3):
        changed = x.copy()
        changed[j] += rng.normal(scale=3, size=4)
        after = probe(changed, memory, *weights, 2)
        moved = ~np.isclose(after, before, rtol=1e-5, atol=1e-6).all(axis=-1)
        moved[j] = False
        for i in np.flatnonzero(moved)[:1]:
            detail = f"row {j} of x was changed, and row {i} of the output moved with it"
            probe.fail(detail, changed, memory, *weights, 2, expected=before[i], got=after[i])


@cross_attention.claim("a query with no allowed key gets zeros")
def _(probe, rng):
    closed = np.array([[False, False], [True, False]])
    arrays = tokens(rng, 2, 4), tokens(rng, 2, 4), *projections(rng, 4)
    blind_queries_get_zeros(probe, *arrays, 2, closed)
    arrays = tokens(rng, 2, 3, 4), tokens(rng, 2, 4, 4), *projections(rng, 4)
    nothing_in_the_second = np.arange(4) < np.array([3, 0])[:, None, None]
    blind_queries_get_zeros(probe, *arrays, 2, nothing_in_the_second)


@cross_attention.claim("large scores are safe")
def _(probe, rng):
    for dtype in (np.float64, np.float32):
        for heights, _ in STEEP:
            memory = np.repeat(np.array(heights, dtype)[:, None], 4, axis=1)
            x, eye = memory[:2], np.eye(4, dtype=dtype)
            probe.equals(x, memory, eye, eye, eye, eye, 2)
            probe.equals(x[:1], memory, eye, eye, eye, eye, 2, np.arange(len(heights))[None] == 1)


# attention_parameters ------------------------------------------------------------------

attention_parameters = Exercise(
    reference.attention_parameters,
    read=(f"{PAGE}#ch05-parameters", "More heads, the same parameters"),
    hints=(
        "Which arrays does multi_head_attention take besides x and the mask? How many numbers "
        "does each hold?",
        "The heads share out the columns of matrices that are there anyway: no new numbers.",
        "Four matrices, d_model by d_model; with bias also four vectors of length d_model.",
    ),
    takes_arrays=False,
)


@attention_parameters.claim("one head, no biases: four square matrices")
def _(probe, rng):
    for d_model in (1, 2, 3, 8, int(rng.integers(9, 99)), 512):
        probe.equals(d_model, 1)
    probe.equals(8, 1, False)


@attention_parameters.claim("the number of heads makes no difference")
def _(probe, rng):
    for d_model, n_heads in ((2, 2), (4, 2), (6, 3), (8, 4), (8, 8), (512, 8), (12288, 96)):
        probe.equals(d_model, n_heads)
    n_heads = int(rng.integers(2, 9))
    probe.equals(n_heads * int(rng.integers(2, 9)), n_heads)


@attention_parameters.claim("biases add four vectors of length d_model")
def _(probe, rng):
    for d_model, n_heads in ((1, 1), (2, 1), (4, 2), (6, 3), (8, 8), (512, 8)):
        probe.equals(d_model, n_heads, True)
    n_heads = int(rng.integers(2, 9))
    probe.equals(n_heads * int(rng.integers(2, 9)), n_heads, bias=True)
