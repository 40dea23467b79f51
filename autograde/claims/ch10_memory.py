"""What must be true of the functions of chapter 10."""

from __future__ import annotations

import numpy as np

from autograde.claims.shared import qkv
from autograde.exercise import Exercise
from autograde.reference import ch10_memory as reference
from autograde.values import differing

PAGE = "10-memory"
BOTH = (np.float64, np.float32)


def some_state(scores, values):
    """The state (m, l, o) of a group of keys, for each query: scores (*batch, query, key),
    values (*batch, query, key, d_value)."""
    m = scores.max(axis=-1)
    weights = np.exp(scores - m[..., None])
    return m, weights.sum(axis=-1), (weights[..., None] * values).sum(axis=-2)


def random_state(rng, shape, d_value, dtype=np.float64, scale=2.0):
    """The state of a few random keys."""
    scores = rng.normal(scale=scale, size=(*shape, 3))
    state = some_state(scores, rng.normal(size=(*shape, 3, d_value)))
    return tuple(part.astype(dtype) for part in state)


def empty_state(*shape):
    """The state of no keys at all; the last number is d_value."""
    return np.full(shape[:-1], -np.inf), np.zeros(shape[:-1]), np.zeros(shape)


def one_key(score, *value):
    """The state of a single key, seen by a single query."""
    return np.array([float(score)]), np.array([1.0]), np.array([value], dtype=float)


# merge_softmax -------------------------------------------------------------------------

merge_softmax = Exercise(
    reference.merge_softmax,
    read=(f"{PAGE}#ch10-online-softmax", "One softmax, read in pieces"),
    hints=(
        "Both sums are measured against a maximum of their own. Before you may add them, "
        "measure them against the same one. Which?",
        "A sum of exp(s - m_a) becomes a sum of exp(s - m) when it is multiplied by "
        "exp(m_a - m). That holds for l and for o, and for both states.",
        "Where both maxima are -inf, m_a - m is -inf - -inf, which is NaN. Subtract 0 instead of m "
        "there, and still return -inf. For o the factor needs one more axis, [..., None].",
    ),
    returns=("m", "l", "o"),
)


@merge_softmax.claim("the result is the state of both groups taken together", points=3)
def _(probe, rng):
    probe.equals(one_key(0, 1), one_key(0, 3))
    probe.equals(one_key(1, 2), one_key(3, 5))
    probe.equals(one_key(3, 5), one_key(1, 2))
    two = some_state(np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    probe.equals(two, one_key(2, 4, -4))
    probe.equals(one_key(-1, 4, -4), two)
    for shape, d_value in (((2,), 1), ((3,), 3), ((2, 3), 2), ((2, 2, 2), 2), ((2, 3, 40), 5)):
        for dtype in BOTH:
            a, b = (random_state(rng, shape, d_value, dtype) for _ in range(2))
            probe.equals(a, b)


@merge_softmax.claim("an empty group adds nothing, and two empty ones make an empty one", points=2)
def _(probe, rng):
    probe.equals(empty_state(1, 1), one_key(1, 2))
    probe.equals(one_key(1, 2), empty_state(1, 1))
    probe.equals(one_key(-30, 2), empty_state(1, 1))
    probe.equals(empty_state(1, 1), empty_state(1, 1))
    probe.equals(empty_state(2, 3, 2), random_state(rng, (2, 3), 2))
    for dtype in BOTH:  # some queries have seen keys, others have not
        a, b = (random_state(rng, (4,), 2, dtype) for _ in range(2))
        for state, blind in ((a, [0, 2]), (b, [0, 1])):
            for part, nothing in zip(state, (-np.inf, 0, 0), strict=True):
                part[blind] = nothing
        probe.equals(a, b)


@merge_softmax.claim("maxima of any size are safe")
def _(probe, rng):
    for low, high in ((1000, 1001), (-1001, -1000), (-1000, 1000), (-1e5, 1e5), (-1e5, -1e5)):
        for pair in ((low, high), (high, low)):
            a, b = (one_key(score, value) for score, value in zip(pair, (1, 3), strict=True))
            probe.equals(a, b)
            if abs(low) < 2000:  # in float32 a rounded log-sum-exp is off by 1e-4, and right
                a, b = (tuple(part.astype(np.float32) for part in state) for state in (a, b))
                probe.equals(a, b, atol=1e-3)
    probe.equals(*(random_state(rng, (3, 2), 2, scale=1e3) for _ in range(2)))


@merge_softmax.claim("the order in which groups are merged makes no difference")
def _(probe, rng):
    for shape, d_value in (((1,), 1), ((2, 3), 2)):
        a, b, c = (random_state(rng, shape, d_value) for _ in range(3))
        first = probe(probe(a, b), c)
        for x, rest in ((a, (b, c)), (c, (b, a)), (b, (a, c))):
            other = probe(x, probe(*rest))
            if any(differing(p, q).any() for p, q in zip(other, first, strict=True)):
                detail = "three groups, merged in two orders, give two different states"
                probe.fail(detail, x, probe(*rest), expected=first, got=other)


# flash_attention -----------------------------------------------------------------------

flash_attention = Exercise(
    reference.flash_attention,
    read=(f"{PAGE}#ch10-tiling", "One block of scores at a time"),
    hints=(
        "Two loops: over blocks of queries, and inside over blocks of keys. What must be kept of "
        "the key blocks that are done is a state (m, l, o) for each query of the block.",
        "The state of one block is made from its scores alone: their maximum, the sum of their "
        "exponentials, and the exponentials times the block's values. merge_softmax adds it to "
        "what was there; the empty state is where you begin, and o / l is where you end.",
        "Query i stands at position i + n_key - n_query. A block whose first key lies after the "
        "position of the block's last query can be skipped. In the others, put -inf where the "
        "key is later than the query. Where l stays 0, the output is 0.",
    ),
    uses=("merge_softmax",),
    seconds=20.0,  # plain Python is slow, and much slower while its memory is measured
)

BLOCKS = ((1, 1), (2, 1), (1, 2), (2, 2))


@flash_attention.claim("the output is that of attention over all keys at once", points=3)
def _(probe, rng):
    one = np.ones((1, 1))
    probe.equals(one, one, 2 * one, 1, 1, True)
    x = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    for causal in (False, True):
        for blocks in BLOCKS:
            probe.equals(x[:2], x[:2], 3 * x[:2], *blocks, causal)
    for blocks in ((2, 2), (4, 1), (1, 4)):
        probe.equals(x, x, 3 * x, *blocks, True)
    probe.equals(*qkv(rng, (), 4, 4, 3, 5, np.float32), 2, 1, False)
    probe.equals(*qkv(rng, (2,), 6, 6, 3, 3), 2, 2, False)
    probe.equals(*qkv(rng, (2, 3), 6, 6, 4, 2, np.float32), 3, 2, True)
    probe.equals(*qkv(rng, (2, 4), 6, 6, 3, 2), 6, 3)  # causal is the default
    probe.equals(*qkv(rng, (), 64, 64, 4, 4), 16, 32)


@flash_attention.claim("the blocks need not divide the numbers of queries and keys")
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]])
    for causal in (False, True):
        for blocks in ((1, 2), (2, 1), (2, 2), (4, 5)):
            probe.equals(x, x, 3 * x, *blocks, causal)
        probe.equals(*qkv(rng, (2,), 7, 7, 3, 2), 3, 2, causal)
        probe.equals(*qkv(rng, (2,), 9, 9, 3, 2), 4, 20, causal)


@flash_attention.claim("with more keys than queries, the last query sees every key")
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    for n_query in (1, 3):
        for size in (1, 2):
            probe.equals(x[:n_query], x, 3 * x, size, size)
    probe.equals(*qkv(rng, (2,), 3, 7, 4, 2), 2, 2, False)
    probe.equals(*qkv(rng, (), 4, 13, 2, 3), 4, 3)
    probe.equals(*qkv(rng, (), 5, 9, 2, 3), 3, 4)


@flash_attention.claim("a query that sees no key gets zeros")
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]])
    for blocks in BLOCKS:
        probe.equals(x, x[:1], 3 * x[:1], *blocks)
    probe.equals(x, x[:2], 3 * x[:2], 2, 2)
    probe.equals(*qkv(rng, (2,), 7, 4, 3, 2, np.float32), 2, 2)
    probe.equals(*qkv(rng, (), 9, 5, 2, 3), 6, 2)
    probe.equals(*qkv(rng, (2,), 7, 4, 3, 2), 2, 3, False)  # here they all see something


@flash_attention.claim("scores of any size are safe")
def _(probe, rng):
    k, v = np.array([[1.0], [0.0]]), np.array([[1.0], [100.0]])
    near = 1 + np.array([[0.0], [1e-3], [2e-3], [-1e-3]])
    for dtype in BOTH:
        for height in (-20000.0, -200.0, 20000.0):  # the future has the larger score, or not
            q = np.full((2, 1), height, dtype)
            size = 1 if dtype is np.float64 else 2
            probe.equals(q, k.astype(dtype), v.astype(dtype), size, size)
        for height in (-1000.0, 1000.0):  # all far from 0, and yet close together
            q, values = np.full((4, 1), height, dtype), np.arange(4.0).reshape(4, 1)
            probe.equals(q, near.astype(dtype), values, 2, 2, False, atol=1e-3)
    for heights in ([180, 90], [-170, -90, 0, 100], [100, 0, -90, -170]):
        n = len(heights)
        k = np.repeat(np.array(heights, dtype=float)[:, None], 4, axis=1)
        probe.equals(np.full((n, 4), 180.0), k, np.eye(n), 1, 1, False)
        probe.equals(np.full((n, 4), 180.0), k, rng.normal(size=(n, 2)), 2, 1)


@flash_attention.claim("no more than one block of scores is held at a time", points=2)
def _(probe, rng):
    # A block of scores is 32 KiB in float32. In the first two cases the scores of all queries, or
    # of all keys, are 1 MiB; in the third a mask alone is. (Most of it is closed: that is quick.)
    enough = 3 * 2**18
    for n_query, n_key, *how in (
        (512, 512, 16, 512, False),
        (512, 512, 512, 16, True),
        (2048, 512, 32, 256, True),
    ):
        probe.holds_at_most(enough, *qkv(rng, (), n_query, n_key, 1, 1, np.float32), *how)


# visible_blocks ------------------------------------------------------------------------

visible_blocks = Exercise(
    reference.visible_blocks,
    read=(f"{PAGE}#ch10-visible-blocks", "Blocks that nobody may see"),
    hints=(
        "Draw a 5 x 5 causal mask and cut it into blocks of 2 rows and 2 columns. In which "
        "blocks is at least one entry open?",
        "Take one row of blocks. Of its queries the last one sees most: it sees the keys 0 to "
        "its own position. How many blocks of keys do these touch?",
        "The last query of the rows start, start + 1, ... is min(start + block_query, n) - 1. "
        "It touches the blocks 0 to last // block_key. Add that up over the rows of blocks.",
    ),
    takes_arrays=False,
)


@visible_blocks.claim("square blocks that divide n are counted right", points=2)
def _(probe, rng):
    for n, block in ((1, 1), (2, 1), (2, 2), (3, 1), (4, 2), (4, 1), (4, 4), (6, 2), (6, 3)):
        probe.equals(n, block, block)
    block, count = int(rng.integers(2, 9)), int(rng.integers(5, 12))
    probe.equals(block * count, block, block)
    probe.equals(512, 64, 64)


@visible_blocks.claim("smaller blocks at the right and at the bottom count, too")
def _(probe, rng):
    for n, block in ((1, 2), (3, 2), (5, 2), (5, 3), (5, 4), (7, 3), (2, 9)):
        probe.equals(n, block, block)
    block = int(rng.integers(3, 9))
    probe.equals(block * int(rng.integers(5, 9)) + 1, block, block)
    probe.equals(300, 64, 64)


@visible_blocks.claim("the blocks need not be square")
def _(probe, rng):
    small = [(1, 2), (2, 1), (2, 4), (4, 2), (1, 4), (4, 1)]
    for n in (2, 4, 8):
        for blocks in small:
            probe.equals(n, *blocks)
    for n, *blocks in ((5, 2, 3), (5, 3, 2), (7, 2, 3), (7, 5, 2), (9, 4, 6), (3, 5, 1), (3, 1, 5)):
        probe.equals(n, *blocks)
    for _ in range(4):
        probe.equals(*(int(size) for size in (*rng.integers(20, 60, 1), *rng.integers(2, 12, 2))))
    probe.equals(300, 128, 32)
    probe.equals(300, 32, 128)
