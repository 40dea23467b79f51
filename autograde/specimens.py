"""Functions that are handed to students' functions: `influence(f, x)` needs an f.

A function cannot cross to a student's process, but its name can. So a check hands over a
specimen, a function of this module, with settings that are plain values:

    influence(specimens.running_mean, x)
    influence(specimens.reads.using(pattern=allowed), x)

Specimens are deterministic, leave their arguments alone, and return fresh arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_known: dict[str, Callable] = {}


@dataclass(frozen=True, eq=False)
class Specimen:
    """A function of this module by its name, with the settings that it is called with."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in _known:
            raise ValueError(f"no specimen is called {self.name!r}; there are {', '.join(_known)}")

    def __call__(self, *args: Any) -> Any:
        return _known[self.name](*args, **self.settings)

    def using(self, **settings: Any) -> Specimen:
        """The same function with these settings."""
        return Specimen(self.name, {**self.settings, **settings})

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __doc__(self) -> str:
        return inspect.getdoc(_known[self.name]) or ""

    def __repr__(self) -> str:
        return f"specimens.{self.name}"


def specimen(function: Callable) -> Specimen:
    """Decorator: make a function of this module a specimen. Its settings are keyword-only."""
    _known[function.__name__] = function
    return Specimen(function.__name__)


# (seq, d_in) -> (seq, d_out) -------------------------------------------------------------


@specimen
def running_mean(x):
    """Output i is the mean of inputs 0 to i."""
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


@specimen
def reads(x, *, pattern):
    """Output i is the sum of the inputs j with pattern[i, j] (bool, (seq, seq))."""
    return np.asarray(pattern, dtype=float) @ x


@specimen
def ignores(x):
    """Output i is the number i, whatever the inputs are."""
    return np.arange(len(x), dtype=float)[:, None]


@specimen
def one_feature(x, *, feature):
    """The running sum of one feature; the others are not read, and all their outputs are 0."""
    x = np.asarray(x, dtype=float)
    return np.where(np.arange(x.shape[1]) == feature, np.cumsum(x, axis=0), 0)


@specimen
def excess(x, *, level):
    """The running sum of what each input exceeds `level` by, up or down; less counts as 0."""
    return np.cumsum(np.maximum(np.abs(np.asarray(x, dtype=float)) - level, 0), axis=0)


@specimen
def counter(x):
    """The running sum of x as a counter with three digits shows it: 1000 is 0 again."""
    return np.cumsum(np.asarray(x, dtype=float), axis=0) % 1000


@specimen
def contrasts(x):
    """The running sum of x, after each input has lost the mean of its own features."""
    x = np.asarray(x, dtype=float)
    return np.cumsum(x - x.mean(axis=1, keepdims=True), axis=0)


@specimen
def products(x):
    """The running sum of the product of each input's features."""
    return np.cumsum(np.prod(np.asarray(x, dtype=float), axis=1, keepdims=True), axis=0)


@specimen
def signs(x):
    """The running sum of the signs of x, each -1, 0 or 1."""
    return np.cumsum(np.sign(np.asarray(x, dtype=float)), axis=0)


@specimen
def magnitudes(x):
    """The running sum of the absolute values of x."""
    return np.cumsum(np.abs(np.asarray(x, dtype=float)), axis=0)


@specimen
def smallest(x):
    """Output i is the smallest of the inputs 0 to i, feature by feature."""
    return np.minimum.accumulate(np.asarray(x, dtype=float), axis=0)


@specimen
def attends(x, *, fill):
    """Attention of x to itself; `fill` is added to the scores of later keys."""
    scores = x @ x.T / x.shape[1] ** 0.5
    scores = scores + np.where(np.tri(len(x), dtype=bool), 0, fill)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ x


@specimen
def masks_weights(x):
    """Attention of x to itself; weights of later keys become 0, after the softmax."""
    scores = x @ x.T / x.shape[1] ** 0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.tril(weights / weights.sum(axis=1, keepdims=True)) @ x


@specimen
def whispers(x, *, loudness):
    """The running mean of x, plus `loudness` times the sum of all inputs."""
    return running_mean(x) + loudness * x.sum(axis=0)


@specimen
def reads_largest(x, *, pattern):
    """As `reads`, but of each input only which feature is the largest."""
    largest = np.eye(x.shape[1])[x.argmax(axis=1)]
    return np.asarray(pattern, dtype=float) @ largest


@specimen
def reads_positive(x, *, pattern):
    """As `reads`, but negative numbers count as 0."""
    return np.asarray(pattern, dtype=float) @ np.maximum(x, 0)


@specimen
def overflows(x, *, pattern):
    """The running mean of x, plus 0 times 1e300 x summed as in `reads`: 0 times infinity is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        huge = 1e300 * np.asarray(x, dtype=float)
        spoilt = np.array([0 * huge[row].sum(axis=0) for row in np.asarray(pattern, dtype=bool)])
        return running_mean(x) + spoilt


# array -> number -------------------------------------------------------------------------


@specimen
def sum_of_squares(x):
    """The sum of the squares of all entries; its gradient is 2 x."""
    return (x**2).sum()


@specimen
def sum_of_cubes(x):
    """The sum of the cubes of all entries; its gradient is 3 x^2."""
    return (x**3).sum()


@specimen
def weighted_sum(x, *, weights):
    """The sum of weights * x; its gradient is `weights`."""
    return (np.asarray(weights) * x).sum()


@specimen
def product(x):
    """The product of all entries."""
    return np.prod(x)


@specimen
def log_sum_exp(x):
    """The logarithm of the sum of the exponentials; its gradient is the softmax."""
    return np.log(np.exp(x - x.max()).sum()) + x.max()


# int (seq,) -> (vocab,), the logits of the next token ---------------------------------------


def _tokens(tokens):
    """The token ids as an array, if they are ids of one sequence."""
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or not tokens.size:
        raise ValueError(f"next_logits takes token ids in an array (seq,), not {tokens.shape}")
    if tokens.dtype.kind not in "iu":
        raise ValueError(f"next_logits takes integers, not {tokens.dtype}")
    return tokens


@specimen
def digits(tokens, *, vocab):
    """The most likely token is the number that has the tokens as its digits, modulo vocab."""
    number = 0
    for token in _tokens(tokens).tolist():
        number = 10 * number + token
    return np.eye(vocab)[number % vocab]


@specimen
def says_the_length(tokens, *, vocab):
    """The most likely token is the number of tokens so far, modulo vocab."""
    return np.eye(vocab)[len(_tokens(tokens)) % vocab]


@specimen
def prefers_rare(tokens, *, vocab):
    """A token's logit is minus the number of times that it has occurred so far."""
    counts = np.bincount(_tokens(tokens).astype(np.intp), minlength=vocab)  # 32 bits in a browser
    return -counts.astype(float)


@specimen
def all_alike(tokens, *, vocab):
    """All logits are 0, whatever the tokens are."""
    return np.zeros(vocab) * len(_tokens(tokens))


@specimen
def never_twice(tokens, *, vocab):
    """All logits are 0, but that of the last token is -inf."""
    return np.where(np.arange(vocab) == _tokens(tokens)[-1], -np.inf, 0.0)


# (params, batch) -> loss, a scalar tensor -----------------------------------------------------


@specimen
def squared_error(params, batch, *, weight=1.0):
    """`weight` times the mean squared error of x @ w + b; params are w and b, batch is x and y."""
    (w, b), (x, y) = params, batch
    return weight * ((x @ w + b - y) ** 2).mean()


@specimen
def squared_error_of_two_layers(params, batch):
    """The mean squared error of tanh(x @ w1 + b1) @ w2 + b2; batch is x and y."""
    w1, b1, w2, b2 = params
    x, y = batch
    return (((x @ w1 + b1).tanh() @ w2 + b2 - y) ** 2).mean()


@specimen
def mean_output(params, batch):
    """The mean of x @ w; params is [w], batch is x. The loss has the dtype of the product."""
    (w,) = params
    return (batch @ w).mean()


# (tokens, cache) -> (logits, cache), a decoder with a cache -------------------------------------


@specimen
def reads_on(tokens, cache, *, vocab, apart=1.0, never=(), prompt=None, room=None):
    """The logits follow from a number that all tokens so far make; the cache is that number.

    The logits of each position lie `apart`, in an order of their own; those of `never` are -inf.
    prompt: more tokens than this at the beginning have been read before, and are refused.
    room: more than this in all are refused.
    """
    import torch

    if tokens.ndim != 1 or not len(tokens) or tokens.is_floating_point():
        raise ValueError(f"step reads token ids in an int tensor (new,), not {tokens!r}")
    number, read = cache or (0, 0)
    if cache is None and len(tokens) > (prompt or len(tokens)):
        raise ValueError(
            f"step got {len(tokens)} tokens without a cache, and the prompt has {prompt}: "
            "the others are read a second time"
        )
    read += len(tokens)
    if read > (room or read):
        raise ValueError(f"step has to read {read} tokens in all; for this text {room} will do")
    logits = torch.empty(len(tokens), vocab)
    for row, token in zip(logits, tokens.tolist(), strict=True):
        number = (31 * number + token + 1) % 1009
        order = np.random.default_rng(number).permutation(vocab)
        row[:] = apart * torch.from_numpy(order)
    logits[:, list(never)] = -torch.inf
    return logits, (number, read)
