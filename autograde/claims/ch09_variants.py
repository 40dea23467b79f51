"""What must be true of the functions of chapter 9."""

from __future__ import annotations

import numpy as np

from autograde.claims.shared import blind_queries_get_zeros, broadcasts, some_mask
from autograde.exercise import Exercise
from autograde.reference import ch09_variants as reference
from autograde.values import differing

PAGE = "09-variants"


# sliding_window_mask -------------------------------------------------------------------

sliding_window_mask = Exercise(
    reference.sliding_window_mask,
    read=(f"{PAGE}#ch09-sliding-window", "The sliding window"),
    hints=(
        "Take query 5 and a window of 3, and write down the keys that it sees. How far from 5 "
        "is the oldest of them?",
        "Everything depends on the distance i - j alone. np.arange(n)[:, None] - np.arange(n) "
        "holds it for every query and key.",
        "The distance is at least 0 (no future) and less than the window. Join the two "
        "conditions with &, each in parentheses.",
    ),
    takes_arrays=False,
)


@sliding_window_mask.claim("a query sees itself and the window - 1 keys before it", points=2)
def _(probe, rng):
    for n, window in ((2, 2), (3, 2), (4, 2), (4, 3), (5, 3), (6, 2), (7, 4)):
        probe.equals(n, window)
    n = int(rng.integers(8, 12))
    probe.equals(n, int(rng.integers(2, 7)))
    probe.equals(260 + n, int(rng.integers(20, 60)))


@sliding_window_mask.claim("with a window of 1 a query sees only itself")
def _(probe, rng):
    for n in (1, 2, 3, int(rng.integers(4, 9))):
        probe.equals(n, 1)


@sliding_window_mask.claim("a window as long as the sequence, or longer, is the causal mask")
def _(probe, rng):
    for n, window in ((1, 2), (2, 3), (3, 3), (3, 7), (4, 5)):
        probe.equals(n, window)
    n = int(rng.integers(5, 9))
    probe.equals(n, n + int(rng.integers(1, 300)))


# strided_mask --------------------------------------------------------------------------

strided_mask = Exercise(
    reference.strided_mask,
    read=(f"{PAGE}#ch09-strided", "Local and strided"),
    hints=(
        "Take query 9, a window of 2 and a stride of 4. The window gives keys 8 and 9. Which "
        "other keys lie 4, 8, 12, ... steps back?",
        "Three conditions on the distance i - j: not negative, less than the window, divisible "
        "by the stride. Which of them must hold, and which is one of two ways in?",
        "(distance >= 0) & ((distance < window) | (distance % stride == 0)): & binds tighter "
        "than |, so the inner parentheses count.",
    ),
    takes_arrays=False,
)


@strided_mask.claim("open are the newest `window` keys, and every stride-th key back", points=2)
def _(probe, rng):
    for n, window, stride in ((3, 1, 2), (4, 1, 3), (5, 2, 3), (6, 2, 4), (7, 3, 4), (9, 2, 3)):
        probe.equals(n, window, stride)
    n = int(rng.integers(9, 13))
    probe.equals(n, int(rng.integers(2, 4)), int(rng.integers(3, 6)))
    probe.equals(260 + n, int(rng.integers(3, 9)), int(rng.integers(10, 30)))


@strided_mask.claim("a stride that is longer than the sequence leaves the window alone")
def _(probe, rng):
    for n, window, stride in ((1, 1, 2), (3, 1, 3), (4, 2, 5), (6, 3, 7)):
        probe.equals(n, window, stride)
    n = int(rng.integers(6, 10))
    probe.equals(n, int(rng.integers(2, 6)), n + int(rng.integers(0, 300)))


@strided_mask.claim("with a stride of 1, or a long window, the whole past is open")
def _(probe, rng):
    for n, window, stride in ((2, 1, 1), (4, 2, 1), (3, 3, 2), (4, 9, 3)):
        probe.equals(n, window, stride)
    n = int(rng.integers(5, 9))
    probe.equals(n, n + int(rng.integers(1, 9)), int(rng.integers(2, 5)))


# alibi_bias ----------------------------------------------------------------------------

alibi_bias = Exercise(
    reference.alibi_bias,
    read=(f"{PAGE}#ch09-alibi", "ALiBi: a bias instead of a mask"),
    hints=(
        "First one head with slope 1: what does query 3 add to the scores of keys 0, 1, 2 and 3?",
        "The slopes are one number for each head. With shape (n_heads, 1, 1) they broadcast "
        "against distances of shape (n, n).",
        "h counts from 1: slopes = 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads). Above the "
        "diagonal the distance i - j is negative; put 0 in its place.",
    ),
    takes_arrays=False,
)


@alibi_bias.claim("each head lowers a score by its slope times the distance", points=2)
def _(probe, rng):
    for n, n_heads in ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 4), (5, 8)):
        probe.equals(n, n_heads)
    n = int(rng.integers(6, 10))
    probe.equals(n, 16)
    probe.equals(200 + n, 8)


@alibi_bias.claim("the formula holds for numbers of heads that are no power of two")
def _(probe, rng):
    for n, n_heads in ((2, 3), (3, 6), (4, 5)):
        probe.equals(n, n_heads)
    probe.equals(int(rng.integers(5, 9)), int(rng.integers(9, 16)))


@alibi_bias.claim("the bias is 0 on the diagonal and above it")
def _(probe, rng):
    for n, n_heads in ((1, 2), (2, 1), (3, 2), (int(rng.integers(4, 8)), 6)):
        bias = probe(n, n_heads)
        wrong = np.triu(np.ones((n, n), dtype=bool)) & ~(np.abs(bias) <= 1e-6)  # NaN, too
        if wrong.any():
            head, i, j = (int(x) for x in np.argwhere(wrong)[0])
            detail = f"head {head} has {bias[head, i, j]:.4g} for query {i} and key {j}; 0 belongs"
            where = "on the diagonal" if i == j else "above the diagonal, in the future"
            probe.fail(f"{detail} {where}", n, n_heads, got=bias)


# grouped_query_attention ---------------------------------------------------------------

grouped_query_attention = Exercise(
    reference.grouped_query_attention,
    read=(f"{PAGE}#ch09-grouped-query", "Grouped-query attention"),
    hints=(
        "With 6 query heads and 2 kv heads, write down which kv head each query head reads. "
        "How many query heads share one?",
        "If k and v had as many heads as q, masked_attention would do the rest. Each kv head "
        "must stand there several times, next to itself: 0, 0, 0, 1, 1, 1.",
        "np.repeat(k, group, axis=-3) repeats each head `group` times in place; group is the "
        "number of heads of q divided by that of k. Count axes from the end, for there may be "
        "any number of batch axes.",
    ),
)


def grouped(rng, batch, heads, kv_heads, n_query, n_key, d_head, d_value, dtype=np.float64):
    """Random queries, keys and values for so many heads."""
    shapes = ((heads, n_query, d_head), (kv_heads, n_key, d_head), (kv_heads, n_key, d_value))
    return tuple(rng.normal(size=(*batch, *shape)).astype(dtype) for shape in shapes)


@grouped_query_attention.claim("consecutive query heads share a kv head", points=3)
def _(probe, rng):
    # One key: the output is its value, so that the heads can be told apart at a glance.
    values = np.array([1.0, 2.0]).reshape(2, 1, 1)
    probe.equals(np.ones((4, 1, 1)), values, values + 4, np.array([[True]]))
    probe.equals(np.ones((6, 1, 1)), np.ones((3, 1, 1)), np.arange(3.0).reshape(3, 1, 1) + 1,
                 np.array([[True]]))  # fmt: skip
    small = grouped(rng, (), 4, 2, 2, 2, 2, 1)
    probe.equals(*(x.round(1) for x in small), np.tri(2, dtype=bool))
    sizes = (((), 4, 2, 3, 3, 2, 2), ((), 6, 3, 2, 4, 4, 3), ((2,), 6, 2, 3, 3, 4, 4),
             ((2, 3), 4, 2, 3, 4, 5, 2), ((4,), 8, 4, 4, 4, 3, 3))  # fmt: skip
    for batch, heads, kv_heads, n_query, n_key, d_head, d_value in sizes:
        for dtype in (np.float64, np.float32):
            arrays = grouped(rng, batch, heads, kv_heads, n_query, n_key, d_head, d_value, dtype)
            probe.equals(*arrays, some_mask(rng, *batch, heads, n_query, n_key))


@grouped_query_attention.claim("one kv head serves them all, and as many as heads is multi-head")
def _(probe, rng):
    for batch, heads, kv_heads in (((), 2, 1), ((), 2, 2), ((2,), 3, 1), ((2,), 3, 3), ((), 1, 1)):
        arrays = grouped(rng, batch, heads, kv_heads, 3, 3, 2, 2)
        probe.equals(*arrays, np.tri(3, dtype=bool))


@grouped_query_attention.claim("the mask broadcasts over batches and heads")
def _(probe, rng):
    arrays = grouped(rng, (), 4, 2, 2, 3, 2, 2)
    broadcasts(probe, arrays, some_mask(rng, 2, 3), (4, 2, 3))
    broadcasts(probe, arrays, some_mask(rng, 1, 2, 3), (4, 2, 3))
    arrays = grouped(rng, (3,), 6, 2, 3, 3, 2, 2)
    for shape in ((3, 3), (3, 1, 3, 3), (3, 1, 1, 3), (6, 3, 3)):
        broadcasts(probe, arrays, some_mask(rng, *shape), (3, 6, 3, 3))


@grouped_query_attention.claim("a query with no allowed key gets zeros")
def _(probe, rng):
    arrays = grouped(rng, (), 2, 1, 1, 2, 2, 2)
    blind_queries_get_zeros(probe, *arrays, np.zeros((1, 2), dtype=bool))
    arrays = grouped(rng, (2,), 4, 2, 3, 2, 2, 3)
    blind_queries_get_zeros(probe, *arrays, np.tri(3, 2, -1, dtype=bool))


@grouped_query_attention.claim("large scores are safe")
def _(probe, rng):
    # So steep that one key gets all, whatever the scale; integers, exact in float32 too.
    for heights in ([-180, 180], [-180, -90], [180, 90], [-170, -90, 0, 100]):
        n = len(heights)
        for dtype in (np.float64, np.float32):
            k = np.repeat(np.array(heights, dtype=dtype)[:, None], 4, axis=1)
            v = np.arange(n, dtype=dtype)[:, None]
            # Both kv heads are alike: which of them a head reads is another claim's matter.
            k, v = (np.stack([x, x]) for x in (k, v))
            probe.equals(np.full((4, n, 4), 180, dtype), k, v, np.tri(n) > 0)


@grouped_query_attention.claim("closed keys and values have no effect")
def _(probe, rng):
    n = 4
    q, k, v = grouped(rng, (), 4, 2, n, n, 3, 2)
    allowed = np.tri(n, dtype=bool)
    before = probe(q, k, v, allowed)
    for t in range(1, n):
        changed_k, changed_v = k.copy(), v.copy()
        changed_k[:, t:] += rng.normal(scale=50, size=changed_k[:, t:].shape)
        changed_v[:, t:] = rng.choice([-1e12, 1e12], size=changed_v[:, t:].shape)
        after = probe(q, changed_k, changed_v, allowed)
        if not np.allclose(after[:, :t], before[:, :t], rtol=1e-5, atol=1e-6):
            detail = f"keys and values from position {t} on were changed, and out[:, :{t}] moved"
            probe.fail(detail, q, changed_k, changed_v, allowed,
                       expected=before[:, :t], got=after[:, :t])  # fmt: skip


# axial_causal_attention ----------------------------------------------------------------

axial_causal_attention = Exercise(
    reference.axial_causal_attention,
    read=(f"{PAGE}#ch09-axial", "Axial attention"),
    hints=(
        "Begin with the rows alone. If the axis `rows` counts as a batch axis, you have causal "
        "attention over `cols` positions, and masked_attention does it.",
        "The columns are the rows of the grid with its two axes exchanged; exchange them back "
        "in the output. The two masks differ in size.",
        "np.swapaxes(x, -3, -2) exchanges rows and columns of q, k, v, and of the output; "
        "reshape would not. Add the two outputs.",
    ),
)


def cells(rng, batch, rows, cols, d_head, d_value, dtype=np.float64):
    """Random queries, keys and values for a grid of cells."""
    widths = (d_head, d_head, d_value)
    return tuple(rng.normal(size=(*batch, rows, cols, d)).astype(dtype) for d in widths)


@axial_causal_attention.claim("the sum of causal attention along rows and columns", points=3)
def _(probe, rng):
    # All scores equal: each of the two is a plain mean, to be checked in the head.
    for rows, cols in ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2)):
        zeros = np.zeros((rows, cols, 1))
        probe.equals(zeros, zeros, np.arange(rows * cols, dtype=float).reshape(rows, cols, 1) + 1)
    probe.equals(*(x.round(1) for x in cells(rng, (), 2, 2, 2, 1)))
    sizes = (((), 2, 3, 2, 2), ((), 4, 3, 3, 2), ((2,), 3, 3, 2, 2), ((2,), 3, 4, 3, 5),
             ((2, 3), 3, 2, 4, 4))  # fmt: skip
    for batch, rows, cols, d_head, d_value in sizes:
        for dtype in (np.float64, np.float32):
            probe.equals(*cells(rng, batch, rows, cols, d_head, d_value, dtype))


@axial_causal_attention.claim("in a grid of one row or one column, the other part is v itself")
def _(probe, rng):
    for rows, cols in ((1, 1), (1, 3), (3, 1), (1, 5), (4, 1)):
        probe.equals(*cells(rng, (2,), rows, cols, 2, 3))


@axial_causal_attention.claim("a cell reaches its row to the right and its column below, no more")
def _(probe, rng):
    rows, cols = 3, 4
    q, k, v = cells(rng, (), rows, cols, 3, 2)
    before = probe(q, k, v)
    for row, col in ((1, 1), (0, 2), (2, 0), (int(rng.integers(rows)), int(rng.integers(cols)))):
        changed_k, changed_v = k.copy(), v.copy()
        changed_k[row, col] += rng.normal(scale=50, size=k.shape[-1])
        changed_v[row, col] = rng.choice([-1e12, 1e12], size=v.shape[-1])
        after = probe(q, changed_k, changed_v)
        i, j = np.indices((rows, cols))
        reached = (i == row) & (j >= col) | (j == col) & (i >= row)
        moved = differing(np.where(reached[..., None], before, after), before).any(axis=-1)
        if moved.any():
            where = [int(x) for x in np.argwhere(moved)[0]]
            detail = f"the key and value of cell {[row, col]} were changed, and cell {where} moved"
            probe.fail(detail, q, changed_k, changed_v, got=after)


@axial_causal_attention.claim("large scores are safe")
def _(probe, rng):
    for heights in ([[-180, 180]], [[-180], [-90]], [[180, 90], [0, -90]], [[90, -90], [-180, 0]]):
        for dtype in (np.float64, np.float32):
            k = np.repeat(np.array(heights, dtype=dtype)[..., None], 4, axis=-1)
            v = np.arange(k[..., 0].size, dtype=dtype).reshape(*k.shape[:-1], 1)
            probe.equals(np.full(k.shape, 180, dtype), k, v)


# ring_append ---------------------------------------------------------------------------

ring_append = Exercise(
    reference.ring_append,
    read=(f"{PAGE}#ch09-ring-buffer", "A cache that is a ring"),
    hints=(
        "A ring of 4 slots, and the tokens at positions 6, 7 and 8 arrive. Into which slots do "
        "they go?",
        "An array of slot numbers can stand on the left of an assignment: "
        "cache[..., slots, :] = new. A slice cannot go round the end of the ring.",
        "slots = (position + np.arange(new)) % capacity. Copy both caches first, so that the "
        "arguments stay what they were, and return both.",
    ),
    returns=("k_cache", "v_cache"),
)


def ring(rng, batch, heads, capacity, new, d_head, dtype=np.float64):
    """Random caches and new tokens. No two numbers are alike, so none can be mixed up."""
    shapes = [(*batch, heads, n, d_head) for n in (capacity, capacity, new, new)]
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


def counted(capacity, new):
    """One head, d_head = 1: keys 1, 2, ..., values 11, ...; new keys 21, ..., values 31, ..."""
    sizes = ((1, capacity), (11, capacity), (21, new), (31, new))
    return tuple(np.arange(first, first + n, dtype=float).reshape(1, n, 1) for first, n in sizes)


@ring_append.claim("a new token goes into slot position mod capacity", points=2)
def _(probe, rng):
    for capacity, position in ((1, 0), (2, 0), (2, 1), (3, 1), (3, 3), (3, 5), (4, 6)):
        probe.equals(*counted(capacity, 1), position)
    for dtype in (np.float64, np.float32):
        for batch, heads in (((), 2), ((2,), 3), ((2, 2), 2)):
            capacity, position = (int(x) for x in rng.integers((4, 0), (7, 60)))
            probe.equals(*ring(rng, batch, heads, capacity, 1, 3, dtype), position)
    probe.equals(*ring(rng, (), 2, 5, 1, 3), int(rng.integers(10**4, 10**5)))


@ring_append.claim("several tokens go into the slots that follow")
def _(probe, rng):
    for capacity, new, position in ((3, 2, 0), (3, 2, 1), (4, 2, 5), (5, 3, 11), (2, 2, 4)):
        probe.equals(*counted(capacity, new), position)
    capacity, turns = int(rng.integers(5, 8)), int(rng.integers(2, 9))
    probe.equals(*ring(rng, (2,), 3, capacity, 4, 2), turns * capacity)


@ring_append.claim("behind the last slot comes the first")
def _(probe, rng):
    for capacity, new, position in ((3, 2, 2), (3, 2, 5), (4, 3, 6), (5, 4, 8), (3, 3, 1)):
        probe.equals(*counted(capacity, new), position)
    for batch, heads in (((), 2), ((3,), 2)):
        capacity, turns = int(rng.integers(5, 8)), int(rng.integers(2, 9))
        probe.equals(*ring(rng, batch, heads, capacity, 4, 2), turns * capacity - 2)
        probe.equals(*ring(rng, batch, heads, capacity, capacity, 2), turns * capacity + 3)


# ring_positions ------------------------------------------------------------------------

ring_positions = Exercise(
    reference.ring_positions,
    read=(f"{PAGE}#ch09-ring-buffer", "A cache that is a ring"),
    hints=(
        "Play it through on paper with 4 slots: write 0, 1, 2, ... into slot p mod 4, and look "
        "at the ring after each step.",
        "A slot holds the newest position that went into it: the largest p <= position with "
        "p mod capacity equal to the slot. If there is none, the slot is empty.",
        "(position - slot) % capacity is how many steps ago the slot was written. Subtract it "
        "from `position`; what is negative has never been written.",
    ),
    takes_arrays=False,
)


@ring_positions.claim("a full ring holds the newest `capacity` positions", points=2)
def _(probe, rng):
    for position, capacity in (
        (1, 2),
        (2, 2),
        (3, 2),
        (3, 3),
        (4, 3),
        (6, 4),
        (9, 4),
        (0, 1),
        (5, 1),
    ):
        probe.equals(position, capacity)
    capacity = int(rng.integers(5, 9))
    probe.equals(int(rng.integers(3, 30)) * capacity + int(rng.integers(1, capacity - 1)), capacity)
    probe.equals(int(rng.integers(10**4, 10**5)), int(rng.integers(100, 200)))


@ring_positions.claim("a slot that nothing was written to holds -1")
def _(probe, rng):
    for position, capacity in ((0, 2), (0, 3), (1, 3), (2, 4), (1, 5)):
        probe.equals(position, capacity)
    capacity = int(rng.integers(6, 10))
    probe.equals(int(rng.integers(1, capacity - 2)), capacity)


@ring_positions.claim("the ring just filled, and just turned round, is right")
def _(probe, rng):
    for capacity in (2, 3, 4, int(rng.integers(5, 9))):
        for position in (capacity - 2, capacity - 1, capacity, 2 * capacity - 1, 2 * capacity):
            probe.equals(position, capacity)
