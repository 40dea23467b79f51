"""What must be true of the functions of chapter 2."""

from __future__ import annotations

import numpy as np

from autograde.claims.shared import qkv, some_mask
from autograde.exercise import Exercise
from autograde.reference import ch02_self_attention as reference
from autograde.values import differing

PAGE = "02-self-attention"
X = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])  # I love dog


# softmax -------------------------------------------------------------------------------

softmax = Exercise(
    reference.softmax,
    read=(f"{PAGE}#ch02-softmax", "Step 3: the softmax"),
    hints=(
        "Two steps: the exponential of every score, and each of them divided by the sum of its "
        "slice. Which number can you subtract first, so that no exponential becomes too large?",
        "Adding the same number to all scores of a slice changes no weight. So subtract the "
        "slice's own largest score: then the largest exponential is 1.",
        "Maximum and sum both take axis=axis, keepdims=True; keepdims leaves an axis of length 1 "
        "in place, so that the result still lines up with the scores.",
    ),
)


@softmax.claim("each row becomes e to the score, divided by the sum of these in the row", points=2)
def _(probe, rng):
    probe.equals(np.array([[0.0, 1.0]]))
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]))
    probe.equals(np.array([[-5.0, -6.0], [-7.0, -5.0]]))
    probe.equals(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]]))
    probe.equals(np.array([[0.1, 0.2, 0.3, 0.4]]))
    for shape in ((3, 3), (2, 4), (5, 3), (3, 2, 4), (2, 3, 4, 5)):
        for dtype in (np.float64, np.float32):
            probe.equals(rng.normal(scale=2, size=shape).astype(dtype))


@softmax.claim("the axis is the one that is asked for")
def _(probe, rng):
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]), 0)
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]), 1)
    probe.equals(np.array([[0.0], [1.0]]), -2)
    for shape in ((3, 4), (2, 3, 4), (3, 3, 3)):
        for axis in range(-len(shape), len(shape)):
            probe.equals(rng.normal(scale=2, size=shape), axis)
    for axis in (-4, -2, 1):
        probe.equals(rng.normal(scale=2, size=(2, 3, 4, 2)).astype(np.float32), axis)


@softmax.claim("adding one number to all scores of a row changes nothing")
def _(probe, rng):
    # Whole numbers, so that the sums are exact in float32, too.
    scores = rng.integers(-4, 5, size=(3, 4)).astype(np.float64)
    for first in (np.array([[1.0, 3.0]]), scores, scores.astype(np.float32)):
        shift = rng.integers(5, 12, size=(len(first), 1)) * rng.choice([-1, 1], (len(first), 1))
        changed = first + shift.astype(first.dtype)
        before, after = probe(first), probe(changed)
        if differing(after, before).any():
            detail = "each row is a row of an earlier call plus one number; the weights must be "
            detail += "those that came out there"
            probe.fail(detail, changed, expected=before, got=after)


@softmax.claim("scores of any size give finite weights")
def _(probe, rng):
    # In float32 a rounded log-sum-exp of scores near 1000 is off by 1e-4, and right.
    for dtype in (np.float64, np.float32):
        for low, high in ((1000, 1001), (151, 150), (-1000, 1000), (-1e5, 1e5), (0, 1e30)):
            probe.equals(np.array([[low, high]], dtype=dtype), atol=1e-3)
        probe.equals(np.array([[-1e4, -1e4]], dtype=dtype), atol=1e-3)
        heights = np.array([[1000, 1001], [-1000, -1001]], dtype=dtype)
        probe.equals(heights, atol=1e-3)
        probe.equals(heights.T.copy(), 0, atol=1e-3)
        probe.equals(np.array([[-900, 900, 0], [1800, 0, 900]], dtype=dtype), 1, atol=1e-3)
    for axis in (-1, 0):
        scores = rng.normal(scale=50, size=(3, 4, 5))
        heights = rng.choice([-9e3, -9e2, 9e2, 9e3], size=scores.max(axis, keepdims=True).shape)
        probe.equals(scores + heights, axis, atol=1e-3)


@softmax.claim("a score of -inf gets weight exactly 0, and leaves the others alone")
def _(probe, rng):
    inf = np.inf
    _closed(probe, np.array([[-inf, 0.0]]), -1)
    _closed(probe, np.array([[1.0, -inf, 2.0], [-inf, -3.0, -inf]]), -1)
    _closed(probe, np.array([[1.0, -inf], [-inf, 2.0], [3.0, 0.5]]), 0)
    for low in (-1e10, -1e30):  # lower than the number, often -1e9, that is put for -inf
        for dtype in (np.float64, np.float32):
            _closed(probe, np.array([[-inf, low]], dtype=dtype), -1)
    for shape, axis in (((3, 4), -1), ((2, 3, 4), -1), ((2, 3, 4), 1)):
        keep = np.moveaxis(some_mask(rng, *np.delete(shape, axis), shape[axis]), -1, axis)
        for dtype in (np.float64, np.float32):
            scores = rng.normal(scale=2, size=shape).astype(dtype)
            _closed(probe, np.where(keep, scores, -inf).astype(dtype), axis)


def _closed(probe, scores, axis):
    """Weights as expected, and those of -inf not merely small."""
    probe.equals(scores, axis)
    weights = probe(scores, axis)
    if (weights[np.isneginf(scores)] != 0).any():  # NaN, too
        detail = "the weight of a score of -inf is not 0"
        probe.fail(detail, scores, axis, expected=reference.softmax(scores, axis), got=weights)


# scaled_scores -------------------------------------------------------------------------

scaled_scores = Exercise(
    reference.scaled_scores,
    read=(f"{PAGE}#ch02-scores", "Step 2: scores"),
    hints=(
        "Start with one query and one key: multiply them entry by entry, add up, divide by the "
        "square root of their length. Then think of all pairs at once.",
        "The matrix product q @ (k with its last two axes exchanged) holds every dot product, "
        "and treats the axes in front as batches.",
        "np.swapaxes(k, -2, -1) exchanges the last two axes. d_head is q.shape[-1], and the "
        "scores are divided by its square root, once.",
    ),
)


@scaled_scores.claim("each score is query times key, divided by the square root of d_head", 2)
def _(probe, rng):
    probe.equals(np.array([[2.0]]), np.array([[3.0]]))
    probe.equals(np.array([[1.0, 2.0, 0.0, 1.0]]), np.array([[3.0, 1.0, 5.0, 1.0]]))
    probe.equals(X, X.copy())
    probe.equals(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [3.0, 1.0]]))
    probe.equals(np.array([[1.0, 2.0, 4.0]]), np.array([[1.0, 0.0, 2.0], [3.0, 1.0, -1.0]]))
    probe.equals(np.array([[30.0, -40.0]]), np.array([[50.0, -20.0], [-60.0, 10.0]]))
    for n_query, n_key, d_head in ((3, 3, 3), (2, 4, 3), (4, 2, 5), (3, 5, 64), (1, 6, 8)):
        for dtype in (np.float64, np.float32):
            probe.equals(*_qk(rng, (), n_query, n_key, d_head, dtype))


@scaled_scores.claim("batches stay apart, however many batch axes there are")
def _(probe, rng):
    small = np.arange(8.0).reshape(2, 2, 2) % 3
    probe.equals(small[:1, :1], small[:1] + 1)
    probe.equals(small, small[::-1] + 1)
    for batch, n_query, n_key, d_head in (
        ((2,), 3, 3, 3),
        ((3,), 3, 3, 3),
        ((2,), 4, 3, 5),
        ((2, 3), 4, 5, 6),
        ((2, 2), 3, 3, 4),
    ):
        for dtype in (np.float64, np.float32):
            probe.equals(*_qk(rng, batch, n_query, n_key, d_head, dtype))


@scaled_scores.claim("a query moves only its own row of scores, a key only its own column")
def _(probe, rng):
    q, k = _qk(rng, (), 3, 4, 2)
    before = probe(q, k)
    for name, size in (("query", 3), ("key", 4)):
        for index in range(size):
            changed_q, changed_k = q.copy(), k.copy()
            (changed_q if name == "query" else changed_k)[index] += rng.normal(scale=5, size=2)
            after = probe(changed_q, changed_k)
            line = (index, slice(None)) if name == "query" else (slice(None), index)
            other = differing(after, before)
            other[line] = False
            if other.any():
                expected = before.copy()
                expected[line] = after[line]
                detail = f"{name} {index} was changed, and scores of another {name} moved"
                probe.fail(detail, changed_q, changed_k, expected=expected, got=after)


def _qk(rng, batch, n_query, n_key, d_head, dtype=np.float64):
    return qkv(rng, batch, n_query, n_key, d_head, 1, dtype)[:2]


# attention -----------------------------------------------------------------------------

attention = Exercise(
    reference.attention,
    read=(f"{PAGE}#ch02-attention", "Step 4: the weighted sum"),
    hints=(
        "You have two of the three steps already: scores, and weights from scores. The third is "
        "a weighted sum of the rows of v.",
        "Row i of a matrix product a @ b is the sum of the rows of b, each times one entry of row "
        "i of a.",
        "weights is your softmax of your scaled_scores, over the keys; out is weights @ v. Return "
        "the output first, then the weights.",
    ),
    weights_at=1,
    returns=("out", "weights"),
    uses=("softmax", "scaled_scores"),
)


@attention.claim("each query gets the sum of all values, weighted by its weights", points=3)
def _(probe, rng):
    probe.equals(X[:1], X[:1], X[:1])
    probe.equals(X[:2], X[:2], 2 * X[:2])
    probe.equals(np.array([[2.0, 0.0, 0.0, 0.0]]), np.eye(4)[:2], np.eye(2))
    probe.equals(X, X.copy(), X.copy())
    for sizes in ((3, 3, 2, 2), (3, 3, 3, 3), (2, 4, 3, 5), (4, 2, 5, 1), (3, 5, 64, 2)):
        for dtype in (np.float64, np.float32):
            probe.equals(*qkv(rng, (), *sizes, dtype))


@attention.claim("batches stay apart, however many batch axes there are")
def _(probe, rng):
    small = np.arange(8.0).reshape(2, 2, 2) % 3
    probe.equals(small[:1, :1], small[:1] + 1, 2 * small[:1])
    probe.equals(small, small[::-1] + 1, 2 * small - 1)
    for batch, *sizes in (
        ((3,), 3, 3, 3, 3),
        ((2,), 2, 4, 3, 5),
        ((2, 3), 4, 5, 6, 2),
        ((2, 2), 3, 3, 4, 4),
    ):
        for dtype in (np.float64, np.float32):
            probe.equals(*qkv(rng, batch, *sizes, dtype))


@attention.claim("where all values are the same, that value comes out")
def _(probe, rng):
    for sizes in ((1, 2, 2, 1), (3, 3, 3, 3), (2, 5, 4, 3)):
        q, k, v = qkv(rng, (), *sizes)
        v[:] = v[0]
        out, _ = probe(q, k, v)
        wanted = np.broadcast_to(v[0], out.shape)
        if differing(out, wanted).any():
            detail = "all values are the same row, and another one comes out"
            probe.fail(detail, q, k, v, expected=wanted, got=out)


@attention.claim("the order of the keys, with their values, does not matter")
def _(probe, rng):
    for sizes in ((2, 2, 2, 1), (4, 4, 3, 3), (3, 5, 2, 4)):
        q, k, v = qkv(rng, (), *sizes)
        before, weights = probe(q, k, v)
        order = np.roll(np.arange(len(k)), 1)
        after, moved = probe(q, k[order], v[order])
        if differing(after, before).any() or differing(moved, weights[:, order]).any():
            detail = "the last key and its value were moved to the front, and the result changed"
            expected = (before, weights[:, order])
            probe.fail(detail, q, k[order], v[order], expected=expected, got=(after, moved))


@attention.claim("large scores are safe")
def _(probe, rng):
    # So steep that one key gets all, whatever the scale; integers, exact in float32 too.
    for heights in ([-180, 180], [-180, -90], [180, 90], [-170, -90, 0, 100]):
        for dtype in (np.float64, np.float32):
            n = len(heights)
            k = np.repeat(np.array(heights, dtype=dtype)[:, None], 4, axis=1)
            probe.equals(np.full((n, 4), 180, dtype), k, np.eye(n, dtype=dtype))
            probe.equals(np.full((2, 4), -90, dtype), k, rng.normal(size=(n, 2)).astype(dtype))
            # The second query's scores lie far below those of the first.
            q = np.array([[180] * 4, [2] * 4], dtype=dtype)
            probe.equals(q, k, rng.normal(size=(n, 3)).astype(dtype))


# entropy -------------------------------------------------------------------------------

entropy = Exercise(
    reference.entropy,
    read=(f"{PAGE}#ch02-entropy", "How spread out? The entropy"),
    hints=(
        "For one query: multiply each weight by its logarithm, add up, change the sign. The sum "
        "runs over the keys, so that one number is left for each query.",
        "ln 0 is minus infinity, and 0 times minus infinity is NaN. A weight of 0 must add 0: "
        "give np.log another number in its place.",
        "np.where(weights > 0, weights, 1) puts a 1 wherever there is a 0, and ln 1 is 0.",
    ),
    atol=1e-5,  # whoever keeps ln away from 0 with a tiny number is right
)


@entropy.claim("minus the sum of weight times ln weight, for each query", points=2)
def _(probe, rng):
    probe.equals(np.array([[0.25, 0.75]]))
    probe.equals(np.array([[0.2, 0.1, 0.3, 0.2, 0.2], [0.1, 0.4, 0.1, 0.2, 0.2]]))
    probe.equals(np.array([[0.5, 0.5], [0.125, 0.875]]))
    for shape in ((2, 3), (3, 3), (4, 2), (1, 5), (6, 40), (3, 300)):
        for dtype in (np.float64, np.float32):
            probe.equals(_weights(rng, *shape).astype(dtype))


@entropy.claim("n equal weights have entropy ln n, and no n weights have more")
def _(probe, rng):
    for n in (2, 3, 5, 128):
        probe.equals(np.full((2, n), 1 / n))
    for n in (2, 5, 7):
        weights = _weights(rng, 3, n)
        got = probe(weights)
        if not (got <= np.log(n) + 1e-4).all():
            probe.fail(f"{n} weights have an entropy above ln {n}", weights, got=got)


@entropy.claim("a weight of 0 adds nothing, and one key with all the weight has entropy 0")
def _(probe, rng):
    probe.equals(np.array([[1.0, 0.0]]))
    probe.equals(np.array([[0.0, 1.0], [0.5, 0.5]]))
    probe.equals(np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]))
    for dtype in (np.float64, np.float32):
        weights = np.where(some_mask(rng, 4, 6), _weights(rng, 4, 6), 0)
        probe.equals((weights / weights.sum(-1, keepdims=True)).astype(dtype))


@entropy.claim("a row of zeros, of a query that sees no key, has entropy 0")
def _(probe, rng):
    probe.equals(np.array([[0.0, 0.0]]))
    probe.equals(np.array([[0.0, 0.0, 0.0], [0.25, 0.75, 0.0]]))
    for dtype in (np.float64, np.float32):
        weights = _weights(rng, 4, 5).astype(dtype)
        weights[[0, 2]] = 0
        probe.equals(weights)


@entropy.claim("batch axes stay, the key axis goes")
def _(probe, rng):
    probe.equals(np.array([[[0.25, 0.75]], [[0.5, 0.5]]]))
    for shape in ((1, 2, 2), (2, 3, 4), (3, 3, 3), (2, 3, 4, 5)):
        for dtype in (np.float64, np.float32):
            probe.equals(_weights(rng, *shape).astype(dtype))


def _weights(rng, *shape):
    return reference.softmax(rng.normal(scale=1.5, size=shape))
