"""What must be true of the functions of chapter 1."""

from __future__ import annotations

import numpy as np

from autograde import specimens
from autograde.exercise import Exercise
from autograde.reference import ch01_autoregressive as reference

PAGE = "01-autoregressive"


def some_text(rng, *shape, vocab, dtype=np.float64):
    """Random normalised log probabilities (*shape, vocab), and random tokens (*shape)."""
    log_probs = np.log(rng.dirichlet(np.ones(vocab), size=shape)).astype(dtype)
    return log_probs, rng.integers(vocab, size=shape)


def with_zeros(rng, *shape, vocab):
    """As `some_text`, and about half of the tokens that did not occur have probability 0."""
    probs = rng.dirichlet(np.ones(vocab), size=shape)
    tokens = rng.integers(vocab, size=shape)
    occurred = np.arange(vocab) == tokens[..., None]
    probs = np.where(occurred | (rng.random(probs.shape) < 0.5), probs, 0)
    with np.errstate(divide="ignore"):
        return np.log(probs / probs.sum(axis=-1, keepdims=True)), tokens


def with_an_impossible_token(rng, *shape, vocab):
    """As `some_text`, but one token that occurred has probability 0."""
    log_probs, tokens = some_text(rng, *shape, vocab=vocab)
    where = tuple(int(rng.integers(size)) for size in shape)
    probs = np.exp(log_probs[where])
    probs[tokens[where]] = 0
    with np.errstate(divide="ignore"):
        log_probs[where] = np.log(probs / probs.sum())
    return log_probs, tokens


HALF = np.log([[0.5, 0.5]])
WORDS = np.log([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
with np.errstate(divide="ignore"):
    CERTAIN = np.log([[0.0, 1.0], [1.0, 0.0]])
    OPEN = np.log([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])


# sequence_log_prob ---------------------------------------------------------------------

sequence_log_prob = Exercise(
    reference.sequence_log_prob,
    read=(f"{PAGE}#ch01-chain-rule", "One word at a time"),
    hints=(
        "Row t of the table has a number for every word of the vocabulary. Only one of them "
        "belongs to the word that did occur.",
        "The probability of the whole is a product. What becomes of a product when you take "
        "the logarithm?",
        "np.take_along_axis(log_probs, tokens[..., None], axis=-1) picks one entry from each "
        "row, in any number of batch axes, and keeps an axis of length 1 at the end. Then add "
        "along the axis of the positions.",
    ),
)


@sequence_log_prob.claim("the log probabilities of the tokens that occurred are added", points=2)
def _(probe, rng):
    probe.equals(HALF, np.array([1]))
    probe.equals(WORDS, np.array([2, 1]))
    probe.equals(WORDS, np.array([0, 0]))
    for seq, vocab in ((3, 3), (4, 2), (3, 7), (12, 30)):
        for dtype in (np.float64, np.float32):
            probe.equals(*some_text(rng, seq, vocab=vocab, dtype=dtype))


@sequence_log_prob.claim("each sequence of a batch gets its own number")
def _(probe, rng):
    probe.equals(np.stack([WORDS, WORDS]), np.array([[2, 1], [0, 0]]))
    for shape in ((3, 2), (2, 3), (3, 3), (1, 4), (2, 3, 4), (2, 2, 2, 3)):
        probe.equals(*some_text(rng, *shape, vocab=3))
        probe.equals(*some_text(rng, *shape, vocab=5, dtype=np.float32))


@sequence_log_prob.claim("an impossible token makes it -inf, other zeros do no harm")
def _(probe, rng):
    probe.equals(CERTAIN, np.array([1, 0]))
    probe.equals(CERTAIN, np.array([1, 1]))
    probe.equals(OPEN, np.array([1, 2]))
    probe.equals(OPEN, np.array([0, 1]))
    for shape in ((4,), (2, 3)):
        probe.equals(*with_zeros(rng, *shape, vocab=6))
        probe.equals(*with_an_impossible_token(rng, *shape, vocab=6))


@sequence_log_prob.claim("a long sequence keeps its value, however improbable it is")
def _(probe, rng):
    probe.equals(np.full((1200, 2), np.log(0.5)), rng.integers(2, size=1200))
    probe.equals(*some_text(rng, 2, 500, vocab=30))
    probe.equals(*some_text(rng, 400, vocab=20, dtype=np.float32))


# perplexity ----------------------------------------------------------------------------

perplexity = Exercise(
    reference.perplexity,
    read=(f"{PAGE}#ch01-perplexity", "Surprise, and its floor"),
    hints=(
        "If every token has probability 1/8, the perplexity is 8. What do you do with 1/8 to "
        "get 8, when several tokens have different probabilities?",
        "Take the mean of the tokens' log probabilities, over every token of every sequence; "
        "change its sign; np.exp undoes the logarithm.",
        "The sum of your sequence_log_prob over the whole batch, divided by the number of "
        "tokens (np.size), is that mean. Return a single number.",
    ),
    uses=("sequence_log_prob",),
)


@perplexity.claim("exp of minus the mean log probability of the tokens", points=2)
def _(probe, rng):
    probe.equals(HALF, np.array([1]))
    probe.equals(np.log(np.full((3, 8), 0.125)), np.array([5, 0, 7]))
    probe.equals(WORDS, np.array([2, 1]))
    for seq, vocab in ((3, 3), (5, 2), (3, 7), (12, 30)):
        for dtype in (np.float64, np.float32):
            probe.equals(*some_text(rng, seq, vocab=vocab, dtype=dtype))


@perplexity.claim("the mean goes over every token of every sequence")
def _(probe, rng):
    probe.equals(np.stack([WORDS, WORDS]), np.array([[2, 1], [0, 0]]))
    for shape in ((3, 2), (2, 3), (3, 3), (1, 4), (2, 3, 4), (2, 2, 2, 3)):
        probe.equals(*some_text(rng, *shape, vocab=3))
        probe.equals(*some_text(rng, *shape, vocab=5, dtype=np.float32))


@perplexity.claim("an impossible token makes it infinite, other zeros do no harm")
def _(probe, rng):
    probe.equals(CERTAIN, np.array([1, 0]))
    probe.equals(CERTAIN, np.array([1, 1]))
    probe.equals(OPEN, np.array([1, 2]))
    for shape in ((4,), (2, 3)):
        probe.equals(*with_zeros(rng, *shape, vocab=6))
        probe.equals(*with_an_impossible_token(rng, *shape, vocab=6))
    probe.equals(*with_an_impossible_token(rng, 1200, vocab=3))  # a large loss, divided by 1200


@perplexity.claim("a long text is no harder than a short one")
def _(probe, rng):
    probe.equals(np.full((1200, 2), np.log(0.5)), rng.integers(2, size=1200))
    probe.equals(*some_text(rng, 3, 400, vocab=30))
    probe.equals(*some_text(rng, 400, vocab=20, dtype=np.float32))


# teacher_forcing -----------------------------------------------------------------------

teacher_forcing = Exercise(
    reference.teacher_forcing,
    read=(f"{PAGE}#ch01-teacher-forcing", "Teacher forcing: shift right"),
    hints=(
        "Write the tokens on a line, and below each one what the model has just read when it "
        "must predict it. What stands below the first? Which token is never read?",
        "The inputs are one step behind: bos, then all tokens but the last. In a batch that is "
        "so for each row: count axes from the back, tokens[..., :-1].",
        "np.full_like(tokens[..., :1], bos) is a column of start tokens of the right shape and "
        "dtype; np.concatenate(..., axis=-1) joins it to the rest.",
    ),
    returns=("inputs", "targets"),
)


@teacher_forcing.claim("inputs are bos and then the tokens without the last", points=2)
def _(probe, rng):
    probe.equals(np.array([5, 6]), 1)
    probe.equals(np.array([3, 1, 2]), 0)
    probe.equals(np.array([4, 4, 7, 9]), 8)
    for size in (5, 30):
        probe.equals(rng.integers(1, 99, size=size), int(rng.integers(100, 200)))


@teacher_forcing.claim("every sequence of a batch is shifted by itself")
def _(probe, rng):
    probe.equals(np.array([[5, 6], [7, 8]]), 1)
    for shape in ((3, 2), (2, 3), (3, 3), (2, 3, 4), (1, 2, 2, 3)):
        probe.equals(rng.integers(1, 99, size=shape), int(rng.integers(100, 200)))


@teacher_forcing.claim("sequences of one token, and every integer dtype")
def _(probe, rng):
    probe.equals(np.array([5]), 1)
    probe.equals(np.array([[5], [6], [7]]), 0)
    for dtype in (np.int32, np.uint8, np.uint16, np.int64):
        probe.equals(rng.integers(1, 99, size=(2, 4)).astype(dtype), 100)


# influence -----------------------------------------------------------------------------

influence = Exercise(
    reference.influence,
    read=(f"{PAGE}#ch01-influence", "Who influences whom"),
    hints=(
        "Compute f(x) once. Then change one row of a copy of x, compute f again, and see which "
        "rows of the output are no longer what they were. Do that for every row.",
        "One kind of change overlooks things. 1e6 added to a whole row, 0.001 added to it, the "
        "same for one feature alone, and the row times -1: what any of them moves counts.",
        "For each row j and each new version of it: changed = x.copy(); changed[j] = new; "
        "result[:, j] |= (f(changed) != before).any(axis=-1).",
    ),
)


def reads(pattern):
    return specimens.reads.using(pattern=np.array(pattern, dtype=bool))


@influence.claim("[i, j] says whether a change of input j reaches output i", points=3)
def _(probe, rng):
    one, two = np.array([[1.0]]), np.array([[1.0], [2.0]])
    for pattern in ([[1]], [[0]]):
        probe.equals(reads(pattern), one)
    for pattern in ([[1, 0], [1, 1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]], [[1, 1], [0, 1]]):
        probe.equals(reads(pattern), two)
    probe.equals(specimens.running_mean, np.zeros((2, 1)))
    probe.equals(specimens.running_mean, np.array([[1.0, 2.0], [0.1, -0.3], [0.7, 0.2]]))
    probe.equals(specimens.ignores, np.array([[1.0, 2.0], [3.0, 4.0]]))
    for n, d_in, dtype in ((3, 2, "float64"), (4, 1, "float64"), (4, 3, "float32")):
        pattern = rng.random((n, n)) < 0.5
        probe.equals(reads(pattern), rng.normal(size=(n, d_in)).astype(dtype))
    x = rng.normal(size=(3, 2))  # small ones: the function is called for every change of every row
    probe.equals(specimens.magnitudes, x)
    probe.equals(specimens.attends.using(fill=-np.inf), x)
    probe.equals(specimens.masks_weights, x)


@influence.claim("what only a large change shows is found")
def _(probe, rng):
    far = specimens.excess.using(level=10_000)
    probe.equals(far, np.array([[1.0]]))
    probe.equals(far, np.array([[2.0, -1.0], [-3.0, 0.0]]))
    probe.equals(far, rng.normal(size=(3, 2)))


@influence.claim("what only a small change shows is found")
def _(probe, rng):
    probe.equals(specimens.counter, np.array([[0.0]]))
    probe.equals(specimens.counter, np.array([[500.0], [0.0]]))
    probe.equals(specimens.counter, rng.integers(0, 3, size=(3, 2)) * 500.0)


@influence.claim("what only a change of a single feature shows is found")
def _(probe, rng):
    probe.equals(specimens.contrasts, np.array([[1.0, 1.0]]))
    probe.equals(specimens.contrasts, np.repeat([[2.0], [0.0], [-1.0]], 2, axis=1))
    for feature in (0, 1, 2):
        probe.equals(specimens.one_feature.using(feature=feature), rng.normal(size=(2, 3)))
    probe.equals(specimens.contrasts, np.repeat(rng.integers(1, 9, size=(3, 1)), 3, 1) * 1.0)


@influence.claim("what only a change of all features at once shows is found")
def _(probe, rng):
    probe.equals(specimens.products, np.array([[0.0, 0.0]]))
    probe.equals(specimens.products, np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]))
    probe.equals(specimens.products, np.zeros((2, 3)))


@influence.claim("what only a change of sign shows is found")
def _(probe, rng):
    probe.equals(specimens.signs, np.array([[2.0]]))
    probe.equals(specimens.smallest, np.array([[1.0], [2.0], [3.0]]))
    probe.equals(specimens.signs, rng.integers(1, 9, size=(3, 2)) * 1.0)


@influence.claim("the slightest difference counts")
def _(probe, rng):
    faint = specimens.whispers.using(loudness=1e-12)
    probe.equals(faint, np.array([[1.0], [2.0]]))
    probe.equals(faint, rng.uniform(1, 3, size=(3, 2)))
    probe.equals(specimens.whispers.using(loudness=1e-20), np.zeros((3, 1)))
