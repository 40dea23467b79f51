"""What must be true of the functions of chapter 7."""

from __future__ import annotations

import numpy as np

from autograde import specimens
from autograde.broken import ch07_debugging as museum
from autograde.claims.shared import blind_queries_get_zeros, broadcasts, qkv, some_mask
from autograde.diagnosis import inside
from autograde.exercise import Exercise
from autograde.reference import ch07_debugging as reference
from autograde.values import describe, differing

PAGE = "07-debugging"
MUSEUM = (f"{PAGE}#ch07-museum", "The bug museum")


# leaks ---------------------------------------------------------------------------------

leaks = Exercise(
    reference.leaks,
    read=(f"{PAGE}#ch07-leak-test", "Does the future leak?"),
    hints=(
        "Compute f(x) once. Then change one row of a copy of x, compute f again, and see which "
        "earlier rows of the result are different.",
        "One change is not enough: a finite fill such as -1e9 hides every change below about "
        "1e9, a tiny effect is lost in rounding when the change is small, and some functions "
        "see only one sign or only differences between features.",
        "Three loops: over j, over sizes from small to 1e15, and over a few random directions "
        "with both signs. Compare with !=, not with a tolerance, and note every i < j whose row "
        "differs at least once.",
    ),
)


def _leaks_are(probe, f, x):
    """The pairs that come back are those of the reference, in any order."""
    returned = probe.attempt(f, x)
    want = set(probe.records[-1].expected)
    pairs = _pairs(returned)
    if pairs is None:
        detail = f"{describe(returned)} came back; a list of pairs (i, j) was expected"
        probe.fail(detail, f, x, got=returned)
        return
    if missing := want - pairs:
        i, j = min(missing)
        detail = f"input {j} reaches output {i}, and the pair ({i}, {j}) is missing"
    elif extra := pairs - want:
        i, j = min(extra)
        why = f"input {j} does not reach output {i}" if j > i else "only later inputs count, j > i"
        detail = f"the pair ({i}, {j}) is among them, and {why}"
    else:
        return
    probe.fail(detail, f, x, expected=tuple(sorted(want)), got=tuple(sorted(pairs)))


def _pairs(returned):
    """{(i, j)} of a list or an array of pairs; None if it is no such thing."""
    try:
        array = np.array(returned, dtype=float).reshape(-1, 2)
        if len(array) != len(returned) or (array != array.round()).any():
            return None
        return {(int(i), int(j)) for i, j in array}
    except (ValueError, TypeError):
        return None


@leaks.claim("it finds every later input that reaches an output, and no other", points=3)
def _(probe, rng):
    x = np.array([[1.0, 2.0], [3.0, -1.0]])
    _leaks_are(probe, specimens.reads.using(pattern=np.ones((2, 2), dtype=bool)), x)
    _leaks_are(probe, specimens.reads.using(pattern=np.tri(2, dtype=bool)), x)
    for n in (3, 4):
        x = rng.normal(size=(n, 3))
        for pattern in (np.tri(n, n, 1) > 0, rng.random((n, n)) < 0.5):
            _leaks_are(probe, specimens.reads.using(pattern=pattern), x)
    _leaks_are(probe, specimens.reads.using(pattern=np.ones((4, 4)) > 0), np.zeros((4, 2)))
    _leaks_are(probe, specimens.running_mean, rng.normal(size=(4, 1)))
    _leaks_are(probe, specimens.running_mean, np.array([[1.0, 2.0]]))
    _leaks_are(probe, specimens.masks_weights, rng.normal(size=(4, 3)))


@leaks.claim("it tries large changes, up to 1e15, which a finite fill does not hold back")
def _(probe, rng):
    for fill, dtype in ((-1e4, np.float64), (-1e9, np.float32), (-1e12, np.float64)):
        x = rng.uniform(1, 2, size=(3, 2)).astype(dtype)
        _leaks_are(probe, specimens.attends.using(fill=fill), x)


@leaks.claim("a change in the last digit is a change, and so is one to NaN")
def _(probe, rng):
    x = rng.normal(size=(3, 2))
    for loudness in (1e-6, 1e-12, 1e-18, 1e-24):
        _leaks_are(probe, specimens.whispers.using(loudness=loudness), x)
    _leaks_are(probe, specimens.overflows.using(pattern=np.tri(3, 3, 1) > 0), x)


@leaks.claim("it tries changes of both signs, and some that differ from feature to feature")
def _(probe, rng):
    n = 3
    pattern = np.tri(n, n, 1) > 0
    x = rng.uniform(-2, -1, size=(n, 2))
    _leaks_are(probe, specimens.reads_positive.using(pattern=pattern), x)
    _leaks_are(probe, specimens.attends.using(fill=-1e9), x)
    x = 10.0 * np.array([rng.permutation(4) for _ in range(n)])
    _leaks_are(probe, specimens.reads_largest.using(pattern=pattern), x)


@leaks.claim("an honest function leaks nothing, whatever is done to it")
def _(probe, rng):
    for n, dtype in ((2, np.float64), (3, np.float32)):
        x = rng.normal(size=(n, 3)).astype(dtype)
        _leaks_are(probe, specimens.attends.using(fill=-np.inf), x)
        _leaks_are(probe, specimens.overflows.using(pattern=np.tri(n) > 0), x)


# numerical_gradient --------------------------------------------------------------------

numerical_gradient = Exercise(
    reference.numerical_gradient,
    read=(f"{PAGE}#ch07-gradient-check", "Is the gradient right?"),
    hints=(
        "Move one entry a little up and a little down, and look at how far f moves.",
        "np.ndindex(x.shape) goes through the indices of all entries, whatever the shape. "
        "Change a copy of x, so that the next entry starts from x itself.",
        "Make the copy float64 first: 1e-5 added to a float32 number loses most of its digits. "
        "The two points are 2 * eps apart.",
    ),
)


@numerical_gradient.claim("the gradient of simple functions is right to three digits", points=2)
def _(probe, rng):
    def nearly(f, x):
        probe.equals(f, x, rtol=1e-3, atol=1e-3)

    nearly(specimens.sum_of_squares, np.array([3.0]))
    nearly(specimens.sum_of_squares, np.array([1.0, -2.0]))
    weights = np.array([[1.0, -2.0], [0.0, 5.0]])
    nearly(specimens.weighted_sum.using(weights=weights), np.ones((2, 2)))
    for f in (specimens.sum_of_squares, specimens.sum_of_cubes, specimens.log_sum_exp):
        for shape in ((4,), (2, 3), (2, 3, 2)):
            nearly(f, rng.normal(size=shape))
    nearly(specimens.product, np.array([2.0, 0.0, 3.0]))


@numerical_gradient.claim("it takes central differences with the step that was asked for")
def _(probe, rng):
    for eps in (0.5, 0.1, 1.0):
        probe.equals(specimens.sum_of_squares, np.array([1.0]), eps)
        probe.equals(specimens.sum_of_cubes, np.array([1.0, 2.0]), eps=eps)
        probe.equals(specimens.product, np.array([2.0, 3.0]), eps=eps)  # the entries interact
        probe.equals(specimens.sum_of_cubes, rng.normal(size=(2, 3)), eps=eps)


@numerical_gradient.claim("float32 inputs are computed with in float64")
def _(probe, rng):
    probe.equals(specimens.sum_of_squares, np.array([1.0, 100.0], dtype=np.float32))
    for f in (specimens.sum_of_cubes, specimens.log_sum_exp):
        probe.equals(f, rng.normal(size=(2, 3)).astype(np.float32))


# first_bad -----------------------------------------------------------------------------

first_bad = Exercise(
    reference.first_bad,
    read=(f"{PAGE}#ch07-nan-watch", "Where did the NaN come from?"),
    hints=(
        "A dict remembers the order in which its entries were put in.",
        "np.isfinite is False for NaN, for inf and for -inf, and takes integers as well.",
        "Go through named_arrays.items() and return the name as soon as one array is not "
        "finite throughout; return None after the loop.",
    ),
)


def _names(probe, arrays):
    """The name that comes back is the reference's, or None is."""
    name, want = probe.attempt(arrays), probe.records[-1].expected
    if type(name) is not type(want) or name != want:
        shown = "None" if name is None else describe(name).removeprefix("str ")
        detail = f"{shown} came back; {want!r} was expected"
        probe.fail(detail, arrays, got=name)


@first_bad.claim("it names the first array with a NaN or an infinity", points=2)
def _(probe, rng):
    one, nan, inf = np.array([1.0]), np.array([np.nan]), np.array([np.inf])
    _names(probe, {"scores": nan})
    _names(probe, {"scores": one, "weights": inf})
    _names(probe, {"weights": nan, "scores": inf, "out": nan})
    _names(probe, {"v": one, "q": nan, "k": nan, "out": nan})
    for value in (np.nan, np.inf, -np.inf):
        for dtype in (np.float64, np.float32, np.float16):
            bad = rng.normal(size=(2, 3, 4)).astype(dtype)
            bad[1, 2, 0] = value
            good = rng.normal(size=(3, 3)).astype(dtype)
            _names(probe, {"q": good, "scores": bad, "a": good, "out": bad})
    both = np.array([np.inf, -np.inf])
    _names(probe, {"q": one, "b": both, "a": nan})


@first_bad.claim("None when all arrays are finite, large numbers included")
def _(probe, rng):
    _names(probe, {"scores": np.array([1.0])})
    _names(probe, {"scores": np.array([0.0, -1.0]), "out": np.zeros((2, 2))})
    _names(probe, {})
    for dtype in (np.float64, np.float32, np.float16):
        _names(probe, {"scores": np.full((2, 4), np.finfo(dtype).max), "out": np.ones(2, dtype)})
        _names(probe, {"scores": np.full(3, np.finfo(dtype).min)})


@first_bad.claim("integer, boolean and empty arrays are fine")
def _(probe, rng):
    nan = np.array([[np.nan]])
    _names(probe, {"tokens": np.array([1, 2])})
    _names(probe, {"empty": np.zeros((0, 3))})
    _names(probe, {"tokens": np.array([1, 2]), "allowed": np.tri(2) > 0, "out": nan})
    _names(probe, {"empty": np.zeros(0), "tokens": np.zeros((2, 0), dtype=int), "out": nan})


# repair_scale --------------------------------------------------------------------------

repair_scale = Exercise(
    reference.repair_scale,
    broken=museum.repair_scale,
    read=MUSEUM,
    hints=(
        "Print the scores for random queries and keys with d_head = 64. How large should they "
        "be, if those have variance 1?",
        "What number is `scale` for d_head = 64, and what does the formula do with the square "
        "root of d_head?",
        "`scale` is 1 / sqrt(d_head) already. Dividing by it is the wrong way round.",
    ),
    weights_at=0,
)


@repair_scale.claim("the weights are those of q k^T / sqrt(d_head)", points=2)
def _(probe, rng):
    probe.equals(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones((1, 2)) > 0)
    x = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    probe.equals(x, x, np.tri(3) > 0)
    sizes = (((), 2, 3, 5), ((2,), 3, 3, 4), ((2, 3), 4, 5, 8), ((3, 2), 6, 7, 64))
    for batch, n_query, n_key, d_head in sizes:
        for dtype in (np.float64, np.float32):
            q, k, _ = qkv(rng, batch, n_query, n_key, d_head, 1, dtype)
            probe.equals(q, k, some_mask(rng, *batch, n_query, n_key))


@repair_scale.claim("masks broadcast, and a query with no allowed key gets zeros")
def _(probe, rng):
    q, k, _ = qkv(rng, (2,), 3, 3, 2, 1)
    broadcasts(probe, (q, k), np.tri(3) > 0, (2, 3, 3))
    blind_queries_get_zeros(probe, q, k, np.tri(3, k=-1) > 0)


# repair_window -------------------------------------------------------------------------

repair_window = Exercise(
    reference.repair_window,
    broken=museum.repair_window,
    read=MUSEUM,
    hints=(
        "Take equal scores, so that every weight is 1 / (number of keys seen), and count the "
        "keys that each query sees.",
        "Print `recent` for n = 5 and window = 1: which keys does a query see, and how many?",
        "np.triu(..., -w) keeps the diagonal and w diagonals below it: w + 1 keys.",
    ),
)


def _windows(probe, rng, sizes):
    """Attention with windows; in the small cases every key has its own digit."""
    for n, window in sizes:
        if n < 5:
            zeros = np.zeros((n, 2))
            probe.equals(zeros, zeros, 10.0 ** np.arange(n)[:, None], window)
        for batch in ((), (2,), (2, 3)):
            probe.equals(*qkv(rng, batch, n, n, 3, 2), window)
        probe.equals(*qkv(rng, (2,), n, n, 4, 3, np.float32), window)


@repair_window.claim("a query sees its own key and the window - 1 keys before it", points=2)
def _(probe, rng):
    _windows(probe, rng, ((2, 1), (3, 1), (3, 2), (4, 2), (4, 3), (6, 2), (7, 4), (9, 3)))


@repair_window.claim("the first queries, and long windows, see the whole past")
def _(probe, rng):
    _windows(probe, rng, ((1, 1), (1, 4), (2, 2), (2, 5), (3, 3), (4, 4), (4, 9), (6, 10)))


# repair_softmax ------------------------------------------------------------------------

repair_softmax = Exercise(
    reference.repair_softmax,
    broken=museum.repair_softmax,
    read=MUSEUM,
    hints=(
        "Try the scores -1000 and -1000. What should come out, and what does?",
        "Which number is subtracted from scores that are all negative, and what is the "
        "exponential of what remains?",
        "Subtract the row's largest allowed score itself. A row without any allowed key has "
        "none, -inf, and only such a row needs another number in its place.",
    ),
    weights_at=0,
    returns=("weights", "log_sum"),
)


def _softmaxes(probe, scores, allowed):
    """In float32 a rounded log-sum-exp of scores near 10000 is off by 5e-4, and right."""
    probe.equals(np.array(scores, dtype=float), allowed, atol=1e-3)


@repair_softmax.claim("scores far below zero have a softmax like any others", points=2)
def _(probe, rng):
    open_ = np.ones((1, 2), dtype=bool)
    for low, high in ((-1000, -1000), (-1e4, -1e4), (-1001, -1000), (-2000, -1000), (-702, -699)):
        _softmaxes(probe, [[low, high]], open_)
    _softmaxes(probe, [[-3e4, -2e4]], open_)
    _softmaxes(probe, [[-3e4, -2e4, 0]], np.array([[True, True, False]]))
    _softmaxes(probe, [[-1000, -1001], [-1003, -1000]], np.tri(2) > 0)
    for shape in ((3, 4), (2, 3, 4)):
        _softmaxes(probe, rng.integers(-9, 9, size=shape) / 4 - 5000, some_mask(rng, *shape))
        scores = rng.integers(-9, 9, size=shape) / 4 - 1024
        probe.equals(scores.astype(np.float32), some_mask(rng, *shape), atol=1e-3)


@repair_softmax.claim("nothing is lost for other scores, of any size")
def _(probe, rng):
    probe.equals(np.array([[1.0, 2.0], [3.0, 5.0]]), np.tri(2) > 0)
    for low, high in ((-2e12, -1e12), (-2e30, -1e30)):
        _softmaxes(probe, [[low, high]], np.ones((1, 2), dtype=bool))
        _softmaxes(probe, [[low, high, 0]], np.array([[True, True, False]]))
    for a, b in ((1000, -1000), (1000, 1001), (-1e5, 1e5)):
        _softmaxes(probe, [[a, b], [-b, -a]], np.ones((2, 2)) > 0)
    _softmaxes(probe, [[-5, 2000], [-2000, 2000]], np.tri(2) > 0)
    for shape in ((3, 3), (2, 3, 4)):
        probe.equals(rng.normal(scale=2, size=shape), some_mask(rng, *shape))
    _softmaxes(probe, rng.integers(-3000, 3000, size=(2, 4, 5)), some_mask(rng, 2, 4, 5))


@repair_softmax.claim("a query with no allowed key still gets zeros, and -inf")
def _(probe, rng):
    probe.equals(np.array([[-1.0, 2.0]]), np.zeros((1, 2), dtype=bool))
    probe.equals(np.array([[0.5, 1.0], [2.0, 2.0]]), np.array([[False, False], [True, True]]))
    allowed = some_mask(rng, 2, 3, 4)
    allowed[1, 0] = False
    probe.equals(rng.normal(size=(2, 3, 4)), allowed)
    broadcasts(probe, (rng.normal(size=(2, 3, 3)),), np.tri(3, k=-1) > 0, (2, 3, 3))


# repair_unused_slots -------------------------------------------------------------------

repair_unused_slots = Exercise(
    reference.repair_unused_slots,
    broken=museum.repair_unused_slots,
    read=MUSEUM,
    hints=(
        "Fill the unused slots with NaN and look at the weights: are they right? Then look at "
        "the last line.",
        "A weight of exactly 0 does not silence a NaN: 0 * NaN is NaN.",
        "Cut both buffers after `length` slots before anything is computed with them.",
    ),
)


def _buffers(rng, batch, capacity, length, junk, d_head=3, d_value=2):
    """Arguments with junk (numbers to choose from) in the slots after `length`."""
    q, k, v = qkv(rng, batch, 1, capacity, d_head, d_value)
    for buffer in (k, v):
        tail = buffer[..., length:, :]
        tail[...] = rng.choice(junk, size=tail.shape)
    return q, k, v, length


@repair_unused_slots.claim("NaN and infinities in the unused slots have no effect", points=2)
def _(probe, rng):
    for junk in ([np.nan], [np.inf], [-np.inf]):
        ones = np.array([[1.0], [junk[0]]])
        probe.equals(np.array([[1.0]]), ones, 2 * ones, 1)
        probe.equals(*_buffers(rng, (), 3, 2, junk))
    for batch in ((2,), (2, 3)):
        probe.equals(*_buffers(rng, batch, 5, 3, [np.nan, np.inf, -np.inf, 0.0]))


@repair_unused_slots.claim("zeros and old numbers in the unused slots have none, either")
def _(probe, rng):
    for junk in ([0.0], [3.0], [-1.0, 1.0], [1e30]):
        for capacity, length in ((2, 1), (3, 2), (5, 2), (6, 5)):
            probe.equals(*_buffers(rng, (), capacity, length, junk))
        probe.equals(*_buffers(rng, (2, 2), 5, 3, junk))


@repair_unused_slots.claim("a full buffer is used to its last slot")
def _(probe, rng):
    for batch, capacity in (((), 1), ((), 2), ((2,), 4)):
        probe.equals(*_buffers(rng, batch, capacity, capacity, [np.nan]))


# repair_norm ---------------------------------------------------------------------------

repair_norm = Exercise(
    reference.repair_norm,
    broken=museum.repair_norm,
    read=MUSEUM,
    hints=(
        "Use your own tool: leaks(lambda x: repair_norm(x, gain, bias), x).",
        "Over which axes are mean and variance taken? Which axis is the sequence?",
        "A position's mean and variance are those of its own features: the last axis alone, "
        "with keepdims=True.",
    ),
    steps=inside.of_layer_norm,
)


def _norm_arguments(rng, *shape, dtype=np.float64):
    d_model = shape[-1]
    arrays = rng.normal(2, 3, size=shape), rng.normal(size=d_model), rng.normal(size=d_model)
    return [array.astype(dtype) for array in arrays]


@repair_norm.claim("each position is normalised by its own mean and variance", points=2)
def _(probe, rng):
    ones, zeros = np.ones(2), np.zeros(2)
    probe.equals(np.array([[1.0, 3.0], [10.0, 30.0]]), ones, zeros)
    probe.equals(np.array([[1.0, 3.0], [5.0, 5.0]]), ones, zeros)
    probe.equals(np.array([[1.0, 3.0], [-4.0, 0.0]]), 2 * ones, ones)
    for shape in ((2, 3), (3, 3), (2, 3, 4), (2, 3, 4, 5)):
        for dtype in (np.float64, np.float32):
            probe.equals(*_norm_arguments(rng, *shape, dtype=dtype))


@repair_norm.claim("a sequence of one position, as in generation, gets the same as in a longer one")
def _(probe, rng):
    for shape in ((3, 4), (2, 3, 5)):
        x, gain, bias = _norm_arguments(rng, *shape)
        together = probe(x, gain, bias)
        for t in range(shape[-2]):
            alone = probe(x[..., [t], :], gain, bias)
            if differing(together[..., [t], :], alone).any():
                detail = f"position {t} comes out differently without the other positions"
                wanted, got = alone, together[..., [t], :]
                probe.fail(detail, x, gain, bias, expected=wanted, got=got)


@repair_norm.claim("eps is added to the variance, under the root")
def _(probe, rng):
    for eps in (1.0, 0.1, 1e-8):
        probe.equals(np.array([[1.0, -1.0]]), np.ones(2), np.zeros(2), eps)
        probe.equals(*_norm_arguments(rng, 2, 3), eps=eps)
    probe.equals(np.array([[1e-3, -1e-3], [2.0, 2.0]]), np.ones(2), np.ones(2))


# repair_merge --------------------------------------------------------------------------

repair_merge = Exercise(
    reference.repair_merge,
    broken=museum.repair_merge,
    read=MUSEUM,
    hints=(
        "The mask is right, and the future leaks all the same. Follow the axes: what is the "
        "shape of `heads`, and which axis is the sequence?",
        "Reshape keeps the numbers in reading order. Take n_heads = 2, write the numbers 0, 1, "
        "2, ... into an array of the shape of `heads`, and reshape it.",
        "The sequence axis must stand before the heads axis again when the last two axes are "
        "joined: undo the swapaxes of `split` first.",
    ),
    steps=inside.of_heads,
)


def _projections(rng, d_model, dtype=np.float64):
    return [rng.normal(size=(d_model, d_model)).astype(dtype) / d_model**0.5 for _ in range(4)]


@repair_merge.claim("out is what several heads, side by side, give", points=2)
def _(probe, rng):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    eye = np.eye(2)
    probe.equals(x, 0 * eye, 0 * eye, eye, eye, 2)
    probe.equals(x, eye, eye, eye, np.array([[1.0, 0.0], [0.0, 2.0]]), 2)
    for shape, n_heads in (
        ((3, 4), 2),
        ((2, 6), 3),
        ((2, 3, 4), 2),
        ((2, 3, 2, 6), 3),
        ((4, 6), 6),
    ):
        for dtype in (np.float64, np.float32):
            x = rng.normal(size=shape).astype(dtype)
            probe.equals(x, *_projections(rng, shape[-1], dtype), n_heads)


@repair_merge.claim("one head, and one position, are right")
def _(probe, rng):
    for shape, n_heads in (((3, 4), 1), ((2, 3, 4), 1), ((1, 4), 2), ((2, 1, 6), 3)):
        probe.equals(rng.normal(size=shape), *_projections(rng, shape[-1]), n_heads)


@repair_merge.claim("changing a later position changes no earlier output")
def _(probe, rng):
    weights = _projections(rng, 4)
    x = rng.normal(size=(4, 4))
    before = probe(x, *weights, 2)
    for t in range(1, 4):
        changed = x.copy()
        changed[t] += rng.normal(scale=5, size=4)
        after = probe(changed, *weights, 2)
        if differing(after[:t], before[:t]).any():
            detail = f"position {t} was changed, and out[:{t}] moved"
            probe.fail(detail, changed, *weights, 2, expected=before[:t], got=after[:t])


# repair_head_masks ---------------------------------------------------------------------

repair_head_masks = Exercise(
    reference.repair_head_masks,
    broken=museum.repair_head_masks,
    read=MUSEUM,
    hints=(
        "With one sample all is well, and with samples of the same length, too. Which mask does "
        "head 1 of sample 0 get in a batch of two?",
        "Write down the order of the scores for two samples and three heads, and below it the "
        "order of the masks.",
        "np.tile makes m0 m1 m0 m1; the scores need m0 m0 m1 m1, each mask n_heads times in a row.",
    ),
    weights_at=0,
)


@repair_head_masks.claim("every head gets the mask of its own sample", points=2)
def _(probe, rng):
    allowed = np.array([[[True, True]], [[True, False]]])
    probe.equals(np.zeros((4, 1, 2)), allowed, 2)
    for batch, n_heads, n_query, n_key in ((2, 2, 2, 2), (2, 3, 3, 3), (3, 2, 2, 4), (3, 3, 4, 2)):
        for dtype in (np.float64, np.float32):
            scores = rng.normal(size=(batch * n_heads, n_query, n_key)).astype(dtype)
            probe.equals(scores, some_mask(rng, batch, n_query, n_key), n_heads)


@repair_head_masks.claim("one mask for all queries of a sample, (batch, 1, key), works, too")
def _(probe, rng):
    for lengths, n_heads in (([2, 1], 2), ([1, 3, 2], 2), ([3, 1], 3), ([2, 3, 1, 3], 1)):
        n = max(lengths)
        real = np.arange(n) < np.array(lengths)[:, None, None]
        probe.equals(rng.normal(size=(len(lengths) * n_heads, n, n)), real, n_heads)


@repair_head_masks.claim("one sample, and a query with no allowed key, are right")
def _(probe, rng):
    for n_heads in (1, 2, 3):
        probe.equals(rng.normal(size=(n_heads, 2, 3)), some_mask(rng, 1, 2, 3), n_heads)
    allowed = some_mask(rng, 2, 3, 3)
    allowed[1, 0] = False
    probe.equals(rng.normal(size=(4, 3, 3)), allowed, 2)


# repair_return_weights -----------------------------------------------------------------

repair_return_weights = Exercise(
    reference.repair_return_weights,
    broken=museum.repair_return_weights,
    read=MUSEUM,
    hints=(
        "Call it both ways on the same input: is `out` the same?",
        "The fast path never needs a mask, because it cuts the keys. Which keys does the other "
        "path let a query see?",
        "Give the slow path a causal mask. It must act on the weights before `out` is made of "
        "them.",
    ),
)


@repair_return_weights.claim("out and weights are causal when the weights are asked for", points=2)
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    probe.equals(x, x, x, True)
    for batch, n, d_head, d_value in (((), 3, 3, 3), ((2,), 4, 2, 3), ((3, 2), 3, 4, 2)):
        for dtype in (np.float64, np.float32):
            probe.equals(*qkv(rng, batch, n, n, d_head, d_value, dtype), return_weights=True)


@repair_return_weights.claim("without them, out alone comes back, and it is causal, too")
def _(probe, rng):
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    probe.equals(x, x, x)
    for batch, n in (((), 1), ((), 3), ((2,), 4), ((3, 2), 3)):
        arrays = qkv(rng, batch, n, n, 3, 2)
        probe.equals(*arrays)
        probe.equals(*arrays, return_weights=False)


@repair_return_weights.claim("changing the future changes no earlier output, on either path")
def _(probe, rng):
    n = 4
    q, k, v = qkv(rng, (), n, n, 2, 2)
    for asked in (False, True):
        results = []
        changed_k, changed_v = k.copy(), v.copy()
        changed_k[2:] += rng.normal(scale=5, size=(2, 2))
        changed_v[2:] += rng.normal(scale=5, size=(2, 2))
        for keys, values in ((k, v), (changed_k, changed_v)):
            got = probe(q, keys, values, asked)
            results.append(got[0] if asked else got)
        before, after = results
        if differing(after[:2], before[:2]).any():
            detail = "keys and values from position 2 on were changed, and out[:2] moved"
            wanted, moved = before[:2], after[:2]
            probe.fail(detail, q, changed_k, changed_v, asked, expected=wanted, got=moved)


# repair_prefill ------------------------------------------------------------------------

repair_prefill = Exercise(
    reference.repair_prefill,
    broken=museum.repair_prefill,
    read=MUSEUM,
    hints=(
        "Pass the same prompt once with cache=None and once with a cache that holds nothing "
        "yet. Which outputs differ?",
        "Everything in the cache is past, that is true. But what follows it, in the same array "
        "of keys, is not all past.",
        "One mask serves all cases: as many rows as there are new queries, as many columns as "
        "there are keys in the end, aligned at the bottom right.",
    ),
    returns=("out", "cache"),
)


def _cached(rng, batch, past, new, d_head=3, d_value=2, dtype=np.float64):
    """q, k, v of new tokens and a cache of past ones."""
    q, k, v = qkv(rng, batch, new, past + new, d_head, d_value, dtype)
    return q, k[..., past:, :], v[..., past:, :], (k[..., :past, :], v[..., :past, :])


@repair_prefill.claim("a prompt that meets an empty cache is attended to causally", points=2)
def _(probe, rng):
    zeros, nothing = np.zeros((2, 1)), np.zeros((0, 1))
    probe.equals(zeros, zeros, np.array([[1.0], [3.0]]), (nothing, nothing))
    for batch, new in (((), 2), ((), 3), ((2,), 4), ((2, 3), 3)):
        probe.equals(*_cached(rng, batch, 0, new))


@repair_prefill.claim("several new tokens see the past, themselves, and nothing after")
def _(probe, rng):
    zeros = np.zeros((2, 1))
    past = (np.zeros((1, 1)), np.array([[4.0]]))
    probe.equals(zeros, zeros, np.array([[1.0], [3.0]]), past)
    for batch, old, new in (((), 1, 2), ((), 3, 2), ((), 2, 3), ((2,), 3, 3), ((2, 3), 2, 4)):
        for dtype in (np.float64, np.float32):
            probe.equals(*_cached(rng, batch, old, new, dtype=dtype))


@repair_prefill.claim("one new token, and a prompt without a cache, are right")
def _(probe, rng):
    for batch, past in (((), 0), ((), 1), ((), 3), ((2,), 4), ((2, 3), 2)):
        probe.equals(*_cached(rng, batch, past, 1))
    for batch, new in (((), 1), ((), 3), ((2,), 4)):
        probe.equals(*_cached(rng, batch, 0, new)[:3])


@repair_prefill.claim("a sequence in pieces gives what it gives at once")
def _(probe, rng):
    q, k, v = qkv(rng, (2,), 7, 7, 3, 2)
    together, _ = probe(q, k, v)
    cache, start = None, 0
    for new in (3, 1, 1, 2):
        piece = slice(start, start + new)
        args = q[:, piece], k[:, piece], v[:, piece], cache
        out, cache = probe(*args)
        if differing(out, together[:, piece]).any():
            detail = f"tokens {start} to {start + new - 1} come out differently than in one go"
            probe.fail(detail, *args, expected=together[:, piece], got=out)
            return
        start += new


# repair_loss ---------------------------------------------------------------------------

repair_loss = Exercise(
    reference.repair_loss,
    broken=museum.repair_loss,
    read=MUSEUM,
    hints=(
        "Make logits that predict the next token perfectly, such as 50 * np.eye(vocab)[next]. "
        "The loss should be almost 0.",
        "Follow one row of the logits: with which token is it compared in the end? Then follow "
        "the last row of the first sequence of a batch.",
        "The shift is made twice. The one to remove is the one that is made after the "
        "sequences have been joined, where row t + 1 may belong to another sequence.",
    ),
)


def _predicting(tokens, vocab, ahead=1):
    """Logits that are almost sure of the token `ahead` places later."""
    return 20 * np.eye(vocab)[np.roll(tokens, -ahead, axis=-1)]


@repair_loss.claim("row t is compared with the token at position t + 1", points=2)
def _(probe, rng):
    probe.equals(np.zeros((2, 2)), np.array([0, 1]))
    probe.equals(np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([0, 1]))
    probe.equals(np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]), np.array([0, 1, 1]))
    tokens = np.array([0, 1, 2, 0, 2, 1])
    for ahead in (1, 0, 2):
        probe.equals(_predicting(tokens, 3, ahead), tokens)
    for n, vocab in ((3, 4), (5, 3), (8, 10)):
        for dtype in (np.float64, np.float32):
            logits = rng.normal(scale=2, size=(n, vocab)).astype(dtype)
            probe.equals(logits, rng.integers(0, vocab, size=n))


@repair_loss.claim("in a batch, no sequence is asked for the first token of the next one")
def _(probe, rng):
    tokens = np.array([[0, 1, 0], [2, 0, 2]])
    probe.equals(_predicting(tokens, 3), tokens)
    for shape in ((2, 2), (2, 4), (3, 3), (2, 3, 4)):
        vocab = int(rng.integers(3, 6))
        tokens = rng.integers(0, vocab, size=shape)
        probe.equals(rng.normal(scale=2, size=(*shape, vocab)), tokens)
        probe.equals(_predicting(tokens, vocab), tokens)


@repair_loss.claim("large logits are safe")
def _(probe, rng):
    probe.equals(np.array([[1000.0, 0.0], [0.0, 0.0]]), np.array([0, 0]))
    probe.equals(np.array([[1000.0, 0.0], [0.0, 0.0]]), np.array([0, 1]))
    tokens = rng.integers(0, 4, size=(2, 5))
    probe.equals(rng.normal(scale=1000, size=(2, 5, 4)), tokens)
    probe.equals(rng.integers(-9, 9, size=(2, 5, 4)) / 4 - 5000, tokens, atol=1e-3)
