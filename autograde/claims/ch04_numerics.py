"""What must be true of the functions of chapter 4."""

from __future__ import annotations

import numpy as np

from autograde.claims.shared import qkv, some_mask
from autograde.exercise import Exercise
from autograde.reference import ch04_numerics as reference
from autograde.reference.ch03_causal_mask import masked_softmax
from autograde.values import Mismatch, conform, describe, difference, differing, plain

PAGE = "04-numerics"
FORMATS = (np.float16, np.float32, np.float64)


# log_softmax ---------------------------------------------------------------------------

log_softmax = Exercise(
    reference.log_softmax,
    read=(f"{PAGE}#ch04-overflow", "When the exponential overflows"),
    hints=(
        "The logarithm of a quotient is a difference. Write the logarithm of the softmax in that "
        "way first, on paper.",
        "Nothing changes when the same number is subtracted from every score of a slice. Which "
        "number keeps the exponentials from overflowing, and their sum from rounding to 0?",
        "Subtract each slice's largest score (keepdims=True). From what you get, subtract the "
        "logarithm of the sum of its exponentials.",
    ),
)


@log_softmax.claim("each entry is the logarithm of its softmax, along the last axis", points=2)
def _(probe, rng):
    probe.equals(np.array([0.0, 0.0]))
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]))
    probe.equals(np.array([[-1.0, 0.0, 3.0]]))
    for shape in ((3, 3), (2, 4), (3, 2, 4), (2, 3, 4, 5)):
        for dtype in (np.float64, np.float32):
            probe.equals(rng.normal(scale=2, size=shape).astype(dtype))


@log_softmax.claim("`axis` says along which axis the softmax is taken")
def _(probe, rng):
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]), 0)
    for shape, axis in (((2, 3), 0), ((2, 3), 1), ((3, 3, 3), 1), ((2, 3, 4), -2), ((2, 3, 4), 0)):
        probe.equals(rng.normal(scale=2, size=shape), axis)
    probe.equals(rng.normal(scale=2, size=(2, 3, 4, 5)), axis=-3)


@log_softmax.claim("large scores, positive or negative, do no harm")
def _(probe, rng):
    for dtype in (np.float64, np.float32):
        for low, high in ((1000, 1001), (-1001, -1000), (10000, 10000), (-10000, -10000)):
            # In float32 a rounded log-sum-exp of scores near 10000 is off by 5e-4, and right.
            probe.equals(np.array([[low, high]], dtype), atol=2e-3)
        probe.equals(np.array([[1000, 1001, 999], [-1000, -1001, -1000]], dtype), atol=2e-3)
        base = rng.integers(-2000, 2000, size=(3, 4, 1))
        probe.equals((base + rng.integers(0, 5, size=(3, 4, 5))).astype(dtype), atol=2e-3)


@log_softmax.claim("it is right also where the softmax itself rounds to 0")
def _(probe, rng):
    for dtype in (np.float64, np.float32):
        for low, high in ((0, 1000), (-120, 0), (-1e4, 1e4), (0, 1e30)):
            probe.equals(np.array([[low, high]], dtype))
            probe.equals(np.array([[high, low, low]], dtype))
    probe.equals(rng.normal(scale=1e3, size=(2, 4, 5)))


@log_softmax.claim("-inf stays -inf, and the other entries are the log-softmax without it")
def _(probe, rng):
    inf = np.inf
    probe.equals(np.array([0.0, -inf]))
    probe.equals(np.array([[1.0, -inf, 2.0], [-inf, -inf, -7.0]]))
    for low in (-2e9, -2e30):  # lower than what may stand in for -inf
        probe.equals(np.array([low, -inf]))
    for dtype in (np.float64, np.float32):
        scores = np.where(some_mask(rng, 2, 4, 5), rng.normal(scale=2, size=(2, 4, 5)), -inf)
        probe.equals(scores.astype(dtype))


# fill_value ----------------------------------------------------------------------------

fill_value = Exercise(
    reference.fill_value,
    read=(f"{PAGE}#ch04-formats", "Three formats for a number"),
    hints=(
        "Every floating-point format has a largest finite number, and the same with a minus sign. "
        "NumPy knows them.",
        "np.finfo(dtype) describes a format. Look at what it prints.",
        "Not `tiny`: that is the smallest number above 0. The lowest number of all lies at the "
        "other end, and its name is short.",
    ),
    takes_arrays=False,
    rtol=1e-7,
    atol=0.0,
)


@fill_value.claim("it is the lowest finite number of the format", points=2)
def _(probe, rng):
    for dtype in FORMATS:
        value, lowest = probe(dtype), probe.exercise.reference(dtype)
        # In eight digits a float32 is given exactly: -3.4028235e38 is right.
        if dtype(value) != dtype(lowest) or differing(value, lowest, 1e-7, 0).any():
            detail = f"the lowest finite number is {lowest:.9g}, this is {value:.9g}"
            probe.fail(detail, dtype, expected=lowest, got=value)


@fill_value.claim("it is finite, also once it is stored in the format")
def _(probe, rng):
    for dtype in FORMATS:
        value = probe(dtype)
        if not np.isfinite(dtype(value)):
            detail = f"as {dtype.__name__} this becomes {dtype(value)}"
            probe.fail(detail, dtype, got=value)


# softmax_backward ----------------------------------------------------------------------

softmax_backward = Exercise(
    reference.softmax_backward,
    read=(f"{PAGE}#ch04-softmax-backward", "Backward through the softmax"),
    hints=(
        "Take one row. How does weight j change when score i grows a little? There are two cases: "
        "j is i, or j is another one.",
        "The gradient of score i is a sum over all weights j: d_weights[j] times that change. "
        "Every term has the factor weights[i]; take it out of the sum.",
        "In the brackets remains d_weights[i] minus one number that the whole row shares: the sum "
        "of weights times d_weights. Let the sum keep its axis (keepdims=True).",
    ),
)


def _weights(rng, *shape: int) -> np.ndarray:
    """Rows of a softmax, with zeros for closed keys."""
    return masked_softmax(rng.normal(size=shape), some_mask(rng, *shape))


@softmax_backward.claim("each row is the gradient that comes back through its softmax", points=2)
def _(probe, rng):
    probe.equals(np.array([[1.0]]), np.array([[3.0]]))
    probe.equals(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))
    probe.equals(np.array([[0.25, 0.75]]), np.array([[2.0, -2.0]]))
    probe.equals(np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]), np.array([[1.0, 2, 4], [-1, 3, 5]]))
    for shape in ((2, 2), (3, 3), (3, 5), (4, 2)):
        for dtype in (np.float64, np.float32):
            probe.equals(_weights(rng, *shape).astype(dtype), rng.normal(size=shape).astype(dtype))


@softmax_backward.claim("batch axes in front make no difference")
def _(probe, rng):
    probe.equals(np.array([[[0.5, 0.5]], [[0.2, 0.8]]]), np.array([[[1.0, 0.0]], [[3.0, 1.0]]]))
    for shape in ((2, 2, 2), (3, 3, 3), (2, 3, 4), (2, 3, 4, 5)):
        probe.equals(_weights(rng, *shape), rng.normal(size=shape))


@softmax_backward.claim("the gradient of each row of scores adds up to 0")
def _(probe, rng):
    cases = [(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]))]
    cases += [(_weights(rng, *s), rng.normal(size=s)) for s in ((3, 4), (2, 3, 5))]
    for weights, d_weights in cases:
        d_scores = probe(weights, d_weights)
        sums = d_scores.sum(axis=-1)
        wrong = differing(sums, np.zeros(sums.shape), atol=1e-5)
        if wrong.any():
            detail = f"a row adds up to {sums[wrong][0]:.4g}; if all scores of a row grow by the "
            detail += "same amount, no weight changes, so the sum of its gradient must be 0"
            probe.fail(detail, weights, d_weights, got=d_scores)


@softmax_backward.claim("the same number added to a whole row of d_weights changes nothing")
def _(probe, rng):
    cases = [(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]), 1.0)]
    cases += [
        (_weights(rng, *s), rng.normal(size=s), rng.normal(size=(*s[:-1], 1)))
        for s in ((3, 4), (2, 3, 5))
    ]
    for weights, d_weights, number in cases:
        before, after = probe(weights, d_weights), probe(weights, d_weights + number)
        if differing(after, before).any():
            detail = "the weights of a row always add up to 1, so that a number added to all of "
            detail += "their gradients must cancel"
            probe.fail(detail, weights, d_weights + number, expected=before, got=after)


@softmax_backward.claim("a weight of 0 gets the gradient 0, and a row of zeros gives zeros")
def _(probe, rng):
    cases = [(np.array([[0.0, 1.0]]), np.array([[2.0, 3.0]]))]
    cases += [(np.array([[0.0, 0.0]]), np.array([[2.0, 3.0]]))]
    cases += [(np.array([[0.0, 1.0]]), np.array([[1e8, 3.0]]))]  # a weight of 1e-9 is not 0
    weights = _weights(rng, 2, 3, 4)
    weights[0, 1] = 0
    cases += [(weights, rng.normal(size=weights.shape))]
    for weights, d_weights in cases:
        d_scores = probe(weights, d_weights)
        wrong = (weights == 0) & differing(d_scores, np.zeros(weights.shape))
        if wrong.any():
            detail = f"the weight at {_first(wrong)} is 0, and its score gets a gradient"
            probe.fail(detail, weights, d_weights, got=d_scores)


# masked_attention_backward -------------------------------------------------------------

masked_attention_backward = Exercise(
    reference.masked_attention_backward,
    read=(f"{PAGE}#ch04-attention-backward", "Backward through masked attention"),
    hints=(
        "Write the forward pass in three lines (scores, weights, out) and go through them from the "
        "last to the first. A gradient has the shape of its array: that tells you what to "
        "multiply, and what to transpose.",
        "out = weights @ v has two gradients, dv (key, d_value) and d_weights (query, key). From "
        "d_weights your softmax_backward takes you to the gradient of the scores.",
        "The scores are q @ k^T, divided by the square root of d_head: so are dq and dk. One of "
        "them is the gradient of the scores times k, the other its transpose times q.",
    ),
    returns=("dq", "dk", "dv"),
    uses=("softmax_backward",),
    rtol=1e-4,  # five products in a row, in float32
    atol=1e-5,
)


def _setting(rng, batch, n_query, n_key, d_head, d_value, dtype=np.float64):
    """(q, k, v, allowed, d_out), in which every query has a key."""
    allowed = some_mask(rng, *batch, n_query, n_key)
    d_out = rng.normal(size=(*batch, n_query, d_value)).astype(dtype)
    return *qkv(rng, batch, n_query, n_key, d_head, d_value, dtype), allowed, d_out


def _part_is_right(probe, rng, index: int) -> None:
    """One of the three gradients is compared; a slip in one costs nothing in the others."""
    eye, open_ = np.eye(2), np.ones((2, 2), dtype=bool)
    one = np.array([[1.0]])
    _compare(probe, index, one, one, 2 * one, one > 0, 3 * one)
    _compare(probe, index, eye, eye, eye, open_, np.array([[1.0, 0.0], [0.0, 0.0]]))
    _compare(probe, index, eye, 2 * eye, eye, np.tri(2, dtype=bool), np.array([[1.0, 2], [3, 5]]))
    sizes = (((), 2, 2, 2, 2), ((), 3, 3, 4, 4), ((), 2, 4, 3, 5), ((), 4, 2, 3, 2))
    batched = (((2,), 2, 2, 2, 2), ((2,), 3, 3, 3, 3), ((3,), 3, 4, 4, 4), ((2, 3), 4, 5, 6, 2))
    for size in sizes + batched:
        for dtype in (np.float64, np.float32):
            _compare(probe, index, *_setting(rng, *size, dtype))


def _compare(probe, index: int, *args: np.ndarray, atol: float | None = None) -> None:
    exercise = probe.exercise
    wanted, returned = _right(probe, args), probe.attempt(*args)
    if not isinstance(returned, tuple | np.ndarray) or len(returned) != 3:
        detail = f"{describe(returned)} came back; return three arrays, `return dq, dk, dv`"
        probe.fail(detail, *args, got=returned)
        return
    try:
        got = conform(plain(returned[index]), wanted[index])
        text = difference(got, wanted[index], exercise.rtol, atol or exercise.atol)
    except Mismatch as mismatch:
        text = str(mismatch)
    if text:
        detail = f"{exercise.returns[index]}: {text}"
        probe.fail(detail, *args, expected=wanted, got=returned)


def _right(probe, args: tuple) -> tuple[np.ndarray, ...]:
    return plain(probe.exercise.reference(*args))


@masked_attention_backward.claim("dv, the gradient of the values, is right", points=2)
def _(probe, rng):
    _part_is_right(probe, rng, 2)


@masked_attention_backward.claim("dq, the gradient of the queries, is right", points=2)
def _(probe, rng):
    _part_is_right(probe, rng, 0)


@masked_attention_backward.claim("dk, the gradient of the keys, is right", points=2)
def _(probe, rng):
    _part_is_right(probe, rng, 1)


@masked_attention_backward.claim("no gradient reaches a key that a query may not see")
def _(probe, rng):
    for n in (2, 4):
        q, k, v, _, d_out = _setting(rng, (), n, n, 3, 2)
        for query in range(n):
            _no_gradient_after(probe, query, q, k, v, d_out)
    # A weight of 1e-9 is not 0: a large value shows it.
    eye, v = np.eye(2), np.array([[1.0, 2.0], [1e8, 0.0]])
    _no_gradient_after(probe, 0, eye, eye, v, np.ones((2, 2)))


def _no_gradient_after(probe, query: int, q, k, v, d_out) -> None:
    """Under a causal mask only out[query] has a gradient; none may reach a later key."""
    n = len(q)
    only = np.where(np.arange(n)[:, None] == query, d_out, 0)
    args = (q, k, v, np.tri(n, dtype=bool), only)
    got = probe(*args)
    for name, part in zip(probe.exercise.returns[1:], got[1:], strict=True):
        if differing(part[query + 1 :], np.zeros(part[query + 1 :].shape)).any():
            detail = f"only out[{query}] has a gradient, and query {query} does not see "
            detail += f"the keys after it; yet {name}[{query + 1}:] is not zero"
            probe.fail(detail, *args, expected=_right(probe, args), got=got)


@masked_attention_backward.claim("a query with no allowed key gets zeros and gives none to others")
def _(probe, rng):
    for size, blind in (
        (((), 1, 2, 2, 2), (0,)),
        (((), 3, 2, 2, 3), (1,)),
        (((2,), 3, 4, 3, 2), (1, 2)),
    ):
        q, k, v, allowed, d_out = _setting(rng, *size)
        silent = d_out.copy()
        silent[blind] = 0  # as good as blind: nothing comes back through this query
        wanted = probe(q, k, v, allowed, silent)
        closed = allowed.copy()
        closed[blind] = False
        args = (q, k, v, closed, d_out)
        got = probe(*args)
        for name, part, other in zip(probe.exercise.returns, got, wanted, strict=True):
            if differing(part, other, rtol=1e-4, atol=1e-5).any():
                detail = f"query {list(blind)} has no allowed key, and changes {name}"
                probe.fail(detail, *args, expected=_right(probe, args), got=got)
                break


@masked_attention_backward.claim("the mask broadcasts over batches and heads")
def _(probe, rng):
    cases = (
        ((2,), 3, 3, 2, 2, (3, 3)),
        ((2, 3), 2, 4, 3, 2, (2, 1, 2, 4)),
        ((3,), 2, 4, 3, 2, (3, 1, 4)),
    )
    for batch, n_query, n_key, d_head, d_value, shape in cases:
        q, k, v, _, d_out = _setting(rng, batch, n_query, n_key, d_head, d_value)
        short = some_mask(rng, *shape)
        wanted = probe(q, k, v, np.broadcast_to(short, (*batch, n_query, n_key)).copy(), d_out)
        got = probe(q, k, v, short, d_out)
        if any(differing(a, b, 1e-4, 1e-5).any() for a, b in zip(got, wanted, strict=True)):
            detail = (
                f"a mask of shape {short.shape} gives another result than one written out in full"
            )
            probe.fail(detail, q, k, v, short, d_out, expected=wanted, got=got)


@masked_attention_backward.claim("large scores are safe")
def _(probe, rng):
    for dtype in (np.float64, np.float32):  # query 0 has a score of -1e10, below a mask of -1e9
        columns = ([1e5, 1e5], [-1e5, 1e5], [1, 2], [1, 1])
        q, k, v, d_out = (np.array(column, dtype)[:, None] for column in columns)
        for index in range(3):
            _compare(probe, index, q, k, v, np.tri(2, dtype=bool), d_out)
    # So steep that one key gets all; integers, exact in float32 too. dq and dk are 0, or, where
    # two equal sums were rounded differently, nearly so.
    for heights in ([-180, 180], [180, 90], [-170, -90, 0, 100]):
        for dtype in (np.float64, np.float32):
            n = len(heights)
            q = np.full((n, 4), 180, dtype)
            k = np.repeat(np.array(heights, dtype=dtype)[:, None], 4, axis=1)
            for allowed in (np.tri(n, dtype=bool), some_mask(rng, n, n)):
                v, d_out = rng.normal(size=(2, n, 3)).astype(dtype)
                args = (q, k, v, allowed, d_out)
                for index in range(3):
                    _compare(probe, index, *args, atol=1e-3)


def _first(where: np.ndarray) -> list[int]:
    return [int(i) for i in np.argwhere(where)[0]]
