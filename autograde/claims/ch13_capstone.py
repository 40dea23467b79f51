"""What must be true of the functions of chapter 13."""

from __future__ import annotations

import math

import numpy as np
import torch

from autograde import specimens
from autograde.claims.ch06_decoder import TINY, decoder, ids
from autograde.claims.ch11_training import normal, numbers
from autograde.claims.trained import (
    BLOCK,
    Language,
    foresees,
    nats,
    returns_within,
    weights,
    with_as_many_heads,
)
from autograde.conformance import calls, random_schedule, wanted
from autograde.examination import ClaimBroken
from autograde.exercise import Exercise
from autograde.reference import ch13_capstone as reference
from autograde.reference.ch06_decoder import decoder_logits
from autograde.reference.ch11_training import split_tokens
from autograde.values import Mismatch, conform, describe, difference, differing, plain

PAGE = "13-capstone"
BOTH = (torch.float64, torch.float32)

# decoder_step --------------------------------------------------------------------------

decoder_step = Exercise(
    reference.decoder_step,
    read=(f"{PAGE}#ch13-assemble", "Assemble: one function for prompt and token"),
    hints=(
        "Write the decoder of chapter 6 for a whole text first, without a cache: embeddings, "
        "blocks, norm, logits. Which three lines of it change when the text goes on?",
        "The three: positions start at past, the number of tokens in the cache; each block's keys "
        "and values are appended to those in the cache with torch.cat; the mask has `new` rows "
        "and past + new columns.",
        "past = cache[0][0].shape[-2], or 0. torch.ones(new, past + new, dtype=torch.bool)"
        ".tril(past) is the mask, the same for all blocks. Collect the (k, v) in a new list.",
    ),
    returns=("logits", "cache"),
    atol=1e-4,
)


def tensors_of(cache):
    """A cache as it came back, to be passed in again."""
    return [tuple(torch.from_numpy(np.array(part)) for part in pair) for pair in cache]


def part_equals(probe, part: str, *args) -> None:
    """Compare only the logits, or only the cache, with the reference's: a slip in one costs
    nothing in the other."""
    returned, right = probe.attempt(*args), plain(reference.decoder_step(*args))
    if not isinstance(returned, tuple) or len(returned) != 2:
        detail = f"{describe(returned)} came back; return two things, `logits, cache`"
        probe.fail(detail, *args, expected=right, got=returned)
        return
    index = ("logits", "cache").index(part)
    got, want = returned[index], right[index]
    try:
        text = difference(conform(got, want), want, decoder_step.rtol, decoder_step.atol)
    except Mismatch as mismatch:
        text = str(mismatch)
    if text:
        for i in range(len(right[1])):
            for j, name in enumerate(("keys", "values")):
                place = f"value {i} of the tuple: value {j} of the tuple"
                text = text.replace(place, f"the {name} of block {i}")
        probe.fail(f"{part}: {text}", *args, expected=want, got=got)


SMALL = decoder(np.random.default_rng(13), 3, 2, 2, 6, 2, digits=1)
SIZES = ((1, 4, 1), (1, 4, 2), (2, 4, 2), (2, 6, 3), (3, 8, 2))  # n_layers, d_model, n_heads


def models(rng, max_seq: int = 12):
    """(params, n_heads) of several sizes, in float64 and float32 by turns."""
    for i, (n_layers, d_model, n_heads) in enumerate(SIZES):
        yield decoder(rng, 7, d_model, 6, max_seq, n_layers, BOTH[i % 2]), n_heads


def after(tokens, params, n_heads, new):
    """Arguments for the last `new` of these tokens; the cache has the others."""
    _, cache = reference.decoder_step(tokens[..., :-new], params, n_heads)
    return tokens[..., -new:], params, n_heads, cache


@decoder_step.claim("at the beginning of a text, the logits are those of decoder_logits", points=3)
def _(probe, rng):
    for tokens in ([0], [2, 2], [0, 1, 2], [1, 0, 0, 2]):
        part_equals(probe, "logits", torch.tensor(tokens), TINY, 1)
        part_equals(probe, "logits", torch.tensor(tokens), SMALL, 2)
    for params, n_heads in models(rng):
        part_equals(probe, "logits", ids(rng, 7, 5), params, n_heads)


@decoder_step.claim("the cache has the keys and the values of each block and each head")
def _(probe, rng):
    for tokens in ([0], [2, 1]):
        part_equals(probe, "cache", torch.tensor(tokens), TINY, 1)
        part_equals(probe, "cache", torch.tensor(tokens), SMALL, 2)
    for params, n_heads in models(rng):
        part_equals(probe, "cache", ids(rng, 7, 4), params, n_heads)


@decoder_step.claim("a token that follows gets the logits that it has in the whole text", points=2)
def _(probe, rng):
    for tokens in ([0, 1], [2, 2], [0, 1, 2, 0]):
        part_equals(probe, "logits", *after(torch.tensor(tokens), SMALL, 1, 1))
        part_equals(probe, "logits", *after(torch.tensor(tokens), SMALL, 2, 1))
    for params, n_heads in models(rng):
        part_equals(probe, "logits", *after(ids(rng, 7, 6), params, n_heads, 1))


@decoder_step.claim("of several new tokens, each sees the cache, those before it, and itself")
def _(probe, rng):
    for past, new in ((1, 2), (1, 3), (2, 2), (3, 2)):
        part_equals(probe, "logits", *after(torch.arange(past + new) % 3, SMALL, 2, new))
    for new, (params, n_heads) in zip((2, 3, 4, 5, 3), models(rng), strict=True):
        part_equals(probe, "logits", *after(ids(rng, 7, 7), params, n_heads, new))


@decoder_step.claim("the returned cache is the old one, with the new keys and values at its end")
def _(probe, rng):
    for past, new in ((1, 1), (2, 1), (1, 2)):
        part_equals(probe, "cache", *after(torch.arange(past + new) % 3, SMALL, 2, new))
    for new, (params, n_heads) in zip((1, 2, 1, 3, 1), models(rng), strict=True):
        part_equals(probe, "cache", *after(ids(rng, 7, 6), params, n_heads, new))


@decoder_step.claim("any number of batch axes may stand in front")
def _(probe, rng):
    pair = torch.tensor([[0, 1], [2, 0]])
    probe.equals(pair, SMALL, 1)
    probe.equals(*after(pair, SMALL, 1, 1))
    for shape, n_heads in (((2, 4), 2), ((3, 3), 1), ((5, 4), 2), ((2, 3, 4), 2)):
        params = decoder(rng, 7, 4, 6, 5, 2)
        probe.equals(ids(rng, 7, *shape), params, n_heads)
        probe.equals(*after(ids(rng, 7, *shape), params, n_heads, int(rng.integers(1, 3))))


@decoder_step.claim("in whatever pieces a text comes, it gets what one pass gives", points=2)
def _(probe, rng):
    for params, n_heads in models(rng, max_seq=30):
        schedule = random_schedule(rng, padded=False, longest=5)

        def feed(tokens, cache, params=params, n_heads=n_heads):
            cache = None if cache is None else tensors_of(cache)
            return probe(tokens, params, n_heads, cache)

        def full(row, params=params, n_heads=n_heads):
            return decoder_logits(row, params, n_heads)

        tokens = ids(rng, 7, *schedule.shape)
        whole = np.stack(wanted(schedule, full, tokens))
        for columns, cache, out in calls(schedule, feed, tokens):
            if differing(out, whole[:, columns], atol=decoder_step.atol).any():
                where = f"the tokens from {columns.start} to {columns.stop - 1}"
                detail = f"{where} do not get what one pass over all {columns.stop} gives them"
                cache = None if cache is None else tensors_of(cache)
                args = (tokens[:, columns], params, n_heads, cache)
                probe.fail(detail, *args, expected=whole[:, columns], got=out)
                break


@decoder_step.claim("what comes out depends on the cache that goes in, not on earlier calls")
def _(probe, rng):
    params = decoder(rng, 7, 4, 6, 9, 2)
    texts = [ids(rng, 7, n) for n in (3, 4)]
    caches = [reference.decoder_step(text, params, 2)[1] for text in texts]
    for _ in range(2):
        for i in range(2):
            new = ids(rng, 7, 1)
            logits, _ = probe(new, params, 2, caches[i])
            want, caches[i] = reference.decoder_step(new, params, 2, caches[i])
            if differing(logits, want, atol=decoder_step.atol).any():
                detail = "two texts take turns, and this is not what the cache passed in gives"
                probe.fail(detail, new, params, 2, caches[i], expected=plain(want), got=logits)
                return


# train_decoder -------------------------------------------------------------------------

SECONDS = 60.0  # what a training may take; the reference needs about two
SHORT, PATIENCE = 0.3, 20.0
SLACK = 0.2  # nats above the floor
MAIN = dict(vocab=8, d_model=32, n_layers=2, n_heads=4, d_ff=64, max_seq=BLOCK)  # noqa: C408
OTHER = dict(vocab=11, d_model=18, n_layers=3, n_heads=3, d_ff=20, max_seq=7)  # noqa: C408
HONEST = 0.15  # nats, or that share of more; which windows are taken makes two thirds of it at most
SURPRISE = {**MAIN, "vocab": 15}  # 8 symbols of the language, and 7 more at the very end
GUESSING = math.log(15)

train_decoder = Exercise(
    reference.train_decoder,
    read=(f"{PAGE}#ch13-train", "Train, and say honestly how good it is"),
    hints=(
        "Take your `train` of chapter 11 and let every size come from config: how many blocks are "
        "there, how long is a window, how many heads does decoder_logits get? Then look at the "
        "loss before any step: near log(vocab).",
        "Cut the last tenth off first, with split_tokens. Train on the rest, and at the end, "
        "without gradients, take the cross-entropy of the returned weights on that tenth.",
        "Matrices from 0.1 * torch.randn, gains 1, biases 0; torch.optim.AdamW over all of them; "
        "150 steps of 16 windows, a rate of 0.01 with 15 steps of warm-up. val_loss: windows that "
        "start at 0, max_seq, 2 max_seq, ... of the last tenth, all in one batch.",
    ),
    returns=("params", "val_loss"),
    many_right=True,
    seconds=2 * SECONDS,
)


def read_weights(probe, record) -> dict:
    """The weights that a call returned, or the end of the claim."""
    value, expected = record.outcome.value, record.expected
    try:
        if not record.outcome.returned:
            raise Mismatch(record.outcome.says())
        if not isinstance(value, tuple) or len(value) != 2:
            raise Mismatch(f"{describe(value)} came back; return two things, `params, val_loss`")
        return weights(value[0], expected[0])
    except Mismatch as mismatch:
        probe.fail(str(mismatch), *record.args)
        raise ClaimBroken from None


def trained(probe, rng) -> tuple[Language, dict, object, tuple]:
    """A language, what one training on it gave, and its arguments; the same for all claims."""
    if not probe.records:
        seed = int(rng.integers(10**6))
        probe.attempt(Language(seed).sample(20_000, seed), MAIN, seed, SECONDS)
    record = probe.records[0]
    params = read_weights(probe, record)
    return Language(record.args[2]), params, record.outcome.value[1], record.args


def surprised(probe, rng) -> tuple[dict, object, tuple]:
    """What a training gave whose text ends in another way than it began, and its arguments.

    The last tenth goes round and round through symbols that do not occur before. No weights
    foresee them that have not seen it; and those that have do, after a few steps.
    """
    record = next((r for r in probe.records if r.args[1] == SURPRISE), None)
    if record is None:
        seed = int(rng.integers(10**6))
        tokens = Language(seed).sample(10_000, seed)
        tokens[9_000:] = 8 + torch.arange(1_000) % 7
        probe.attempt(tokens, SURPRISE, seed, SECONDS)
        record = probe.records[-1]
    return read_weights(probe, record), record.outcome.value[1], record.args


def better_than(probe, rng, level: int) -> None:
    language, params, _, args = trained(probe, rng)
    foresees(probe, language, params, args[2] + 1, level, SLACK, MAIN["n_heads"])


@train_decoder.claim("the weights foresee new text better than guessing does", points=2)
def _(probe, rng):
    better_than(probe, rng, 0)


@train_decoder.claim("better than who knows the present token alone")
def _(probe, rng):
    better_than(probe, rng, 1)


@train_decoder.claim("as well as anyone can, to 0.2 nats", points=2)
def _(probe, rng):
    better_than(probe, rng, 2)


@train_decoder.claim("val_loss is the loss of these very weights on the last tenth", points=2)
def _(probe, rng):
    language, *result = trained(probe, rng)
    honest(probe, *result, language.floor(BLOCK))
    honest(probe, *surprised(probe, rng), 0.0)


def honest(probe, params: dict, said, args: tuple, floor: float) -> None:
    """val_loss is what the weights get on the last tenth; on this text nobody gets less than
    `floor`."""
    try:
        said = conform(said, 1.0)
    except Mismatch as mismatch:
        probe.fail(f"val_loss: {mismatch}", *args)
        return
    rest, val = split_tokens(args[0], 0.1)
    loss, before = (nats(params, text, n_heads=MAIN["n_heads"]) for text in (val, rest))
    if abs(said - loss) < HONEST * max(loss, 1):
        return
    detail = f"val_loss is {said:.2f}; on the last tenth these weights get {loss:.2f}"
    if said < floor - HONEST:
        detail += (
            f". No model can get less than {floor:.2f} on this source: whoever measures less "
            "shows the model what it is to foresee, or counts in another unit"
        )
    elif args[1] == SURPRISE and abs(said - before) < 2 * HONEST:
        detail += f", and {before:.2f} on what stands before: was it measured there?"
    probe.fail(detail, *args)


@train_decoder.claim("the last tenth is kept for that: the weights have not seen it")
def _(probe, rng):
    params, _, args = surprised(probe, rng)
    loss = nats(params, split_tokens(args[0], 0.1)[1], n_heads=MAIN["n_heads"])
    if loss < GUESSING / 2:
        probe.fail(
            "the last tenth of this text goes through symbols that do not occur before it, yet "
            f"these weights foresee them: {loss:.2f} nats per token, where guessing gets "
            f"{GUESSING:.2f}. They were trained on it",
            *args,
        )


@train_decoder.claim("every size comes from config, and a short time is kept")
def _(probe, rng):
    language, params, _, args = trained(probe, rng)
    with_as_many_heads(probe, language, params, args[2] + 1, MAIN["n_heads"], (1, 2, 8))
    tokens = ids(np.random.default_rng(13), OTHER["vocab"], 3_000)
    returns_within(probe, SHORT + PATIENCE, tokens, OTHER, 0, SHORT)
    read_weights(probe, probe.records[-1])


# generate_with_cache -------------------------------------------------------------------

generate_with_cache = Exercise(
    reference.generate_with_cache,
    read=(f"{PAGE}#ch13-sample", "Sample, each token read once"),
    hints=(
        "A loop over uniforms. Keep three things: all tokens so far, those that step has not read "
        "yet, and the cache. What is unread at the beginning, and what after one token was drawn?",
        "Only the last row of the logits matters. To draw: softmax, torch.cumsum, and then the "
        "first place at which the sum is greater than u.",
        "(mass <= u).sum() is that place when mass is the cumulative sum. In float32 its last "
        "entry may stay a little below 1: compare with u * mass[-1], in float64.",
    ),
)
READS_ON = specimens.reads_on
BELOW_ONE = 1 - 2.0**-24  # the largest float32 below 1


def draws(rng, step, prompt, n_new, temperature=1.0):
    """Numbers that lie well within the share of the token that they draw, each in its turn."""
    chosen = []
    while len(chosen) < n_new:
        u = rng.uniform(0.01, 0.98)
        near = [
            reference.generate_with_cache(
                step, prompt, numbers(*chosen, max(u + d, 0)), temperature
            )
            for d in (-1e-3, 0, 1e-3)
        ]
        if all(torch.equal(near[1], other) for other in near):
            chosen.append(u)
    return torch.tensor(chosen)


@generate_with_cache.claim("at temperature 0: the prompt, then always the likeliest", points=2)
def _(probe, rng):
    step = READS_ON.using(vocab=3)
    probe.equals(step, torch.tensor([0]), torch.tensor([0.5]), 0)
    probe.equals(step, torch.tensor([2, 0]), torch.tensor([0.5]), 0)
    probe.equals(step, torch.tensor([2, 0]), torch.tensor([0.1, 0.9, 0.5]), 0)
    for vocab, n, n_new in ((4, 3, 5), (7, 1, 6), (9, 6, 8)):
        uniforms = torch.from_numpy(rng.random(n_new)).float()
        probe.equals(READS_ON.using(vocab=vocab), ids(rng, vocab, n), uniforms, 0.0)


@generate_with_cache.claim("each number draws the token into whose share it falls", points=2)
def _(probe, rng):
    two = READS_ON.using(vocab=2, apart=0.0)  # a half each
    for u in (0.25, 0.75):
        probe.equals(two, torch.tensor([0]), torch.tensor([u]))
    probe.equals(two, torch.tensor([1]), torch.tensor([0.75, 0.25, 0.75]))
    for vocab, n, n_new in ((3, 1, 2), (5, 3, 6), (9, 4, 8)):
        step, prompt = READS_ON.using(vocab=vocab, apart=0.4), ids(rng, vocab, n)
        probe.equals(step, prompt, draws(rng, step, prompt, n_new))


@generate_with_cache.claim("a temperature divides the logits")
def _(probe, rng):
    for temperature in (2, 0.5, 0.2, 5.0, 0.05):  # however small, several tokens have a share
        apart = 0.4 * min(temperature, 1)
        step, prompt = READS_ON.using(vocab=6, apart=apart), ids(rng, 6, 2)
        uniforms = draws(rng, step, prompt, 4, temperature)
        probe.equals(step, prompt, uniforms, temperature)


@generate_with_cache.claim("each token is read once, and the last one not at all")
def _(probe, rng):
    for n, n_new in ((1, 1), (1, 2), (2, 2), (3, 5), (5, 3)):
        step = READS_ON.using(vocab=4, prompt=n, room=n + n_new - 1)
        uniforms = torch.from_numpy(rng.random(n_new)).float()
        probe.equals(step, ids(rng, 4, n), uniforms, 0)


@generate_with_cache.claim("what has probability 0 is never drawn, and something always is")
def _(probe, rng):
    for never in ((0,), (0, 1), (3,), (1, 2)):
        step = READS_ON.using(vocab=4, apart=0.3, never=never)
        for u in (0.0, BELOW_ONE):
            probe.equals(step, torch.tensor([1]), torch.tensor([u]))
    for vocab in (41, 55, 97, 123, 243):  # whose shares, in float32, make less than 1
        step = READS_ON.using(vocab=vocab, apart=0.0)
        probe.equals(step, torch.tensor([1]), torch.tensor([BELOW_ONE, 0.0]))


@generate_with_cache.claim("at temperature 0, of the largest logits the lowest id is taken")
def _(probe, rng):
    for never in ((), (0,), (0, 1)):
        step = READS_ON.using(vocab=3, apart=0.0, never=never)
        probe.equals(step, torch.tensor([2]), torch.tensor([0.9, 0.9]), 0)


@generate_with_cache.claim("without numbers the prompt comes back")
def _(probe, rng):
    for n in (1, 3):
        probe.equals(READS_ON.using(vocab=5), ids(rng, 5, n), torch.zeros(0))
        probe.equals(READS_ON.using(vocab=5), ids(rng, 5, n), torch.zeros(0), 0)


# shard ---------------------------------------------------------------------------------

shard = Exercise(
    reference.shard,
    read=(f"{PAGE}#ch13-shard", "Each process its share"),
    hints=(
        "Ten rows and four processes: write down who gets how many rows, and at which row each "
        "begins.",
        "size, longer = divmod(n, world): everybody gets size rows, and the first `longer` "
        "processes one more. How many of those stand before process `rank`?",
        "start = rank * size + min(rank, longer). torch.tensor_split cuts in this way; "
        "torch.chunk does not.",
    ),
)


def rows(n: int, *rest: int):
    """A batch of numbers that are all different."""
    return torch.arange(n * int(np.prod(rest))).reshape(n, *rest)


def every_rank(probe, batch, world: int) -> None:
    for rank in range(world):
        probe.equals(batch, rank, world)


@shard.claim("rows that come out even are cut into equal pieces, in their order", points=2)
def _(probe, rng):
    for n, world in ((2, 1), (2, 2), (4, 2), (6, 3), (6, 2), (8, 4)):
        every_rank(probe, rows(n, 1), world)
    every_rank(probe, ids(rng, 50, 12, 5), 4)


@shard.claim("else each of the first n % world processes has one row more")
def _(probe, rng):
    for n, world in ((3, 2), (5, 2), (4, 3), (5, 3), (7, 4), (10, 4), (9, 8)):
        every_rank(probe, rows(n, 1), world)
    n, world = int(rng.integers(12, 30)), int(rng.integers(5, 8))
    every_rank(probe, rows(n, 2), world)


@shard.claim("with fewer rows than processes, the last ones get none")
def _(probe, rng):
    for n, world in ((1, 2), (1, 3), (2, 3), (3, 5)):
        every_rank(probe, rows(n, 2), world)


@shard.claim("it is rows that are cut, whatever they are made of")
def _(probe, rng):
    for rest in ((), (3,), (1,), (2, 2), (2, 3, 2)):
        every_rank(probe, rows(5, *rest), 2)
    every_rank(probe, ids(rng, 50, 4, 6), 3)


# average_gradients ---------------------------------------------------------------------

average_gradients = Exercise(
    reference.average_gradients,
    read=(f"{PAGE}#ch13-average", "The gradients of the whole batch"),
    hints=(
        "Two processes, one with 1 token and the gradient 0, one with 3 tokens and the gradient "
        "4. The mean over all 4 tokens is a sum of four numbers, divided by 4. What is it?",
        "A mean times its count is a sum. Add the sums of all processes, and divide by the number "
        "of all tokens.",
        "Leave out processes with a count of 0 (0 times NaN is NaN). For parameter i: the sum of "
        "grads[r][i] * counts[r] / sum(counts) over the others.",
    ),
)


def gradients(rng, world: int, shapes, dtype=torch.float64):
    return [[normal(rng, *shape, dtype=dtype) for shape in shapes] for _ in range(world)]


@average_gradients.claim("with equal counts it is the mean over the processes", points=2)
def _(probe, rng):
    probe.equals([[numbers(2)], [numbers(4)]], [1, 1])
    probe.equals([[numbers(2, 0)], [numbers(4, 6)]], [5, 5])
    probe.equals([[numbers(3)], [numbers(0)], [numbers(6)]], [2, 2, 2])
    for world, shape in ((2, (3,)), (3, (2, 3)), (4, (2, 1, 2))):
        for dtype in BOTH:
            probe.equals(gradients(rng, world, [shape], dtype), [7] * world)


@average_gradients.claim("each process counts in proportion to its tokens", points=2)
def _(probe, rng):
    probe.equals([[numbers(0)], [numbers(4)]], [1, 3])
    probe.equals([[numbers(4)], [numbers(0)]], [1, 3])
    probe.equals([[numbers(6)], [numbers(0)], [numbers(3)]], [1, 2, 3])
    for world in (2, 3, 5):
        counts = [int(n) for n in rng.integers(1, 40, size=world)]
        probe.equals(gradients(rng, world, [(2, 3)]), counts)


@average_gradients.claim("every parameter has its own, of its shape")
def _(probe, rng):
    probe.equals([[numbers(1), numbers(2)], [numbers(3), numbers(6)]], [1, 1])
    for world, counts in ((2, [3, 5]), (3, [4, 1, 2])):
        for dtype in BOTH:
            shapes = [(2, 3), (3,), (1, 2, 2), (2, 3)]
            probe.equals(gradients(rng, world, shapes, dtype), counts)


@average_gradients.claim("a process without tokens makes no difference, whatever it has")
def _(probe, rng):
    probe.equals([[numbers(2)], [numbers(9)]], [1, 0])
    probe.equals([[numbers(np.nan)], [numbers(2)]], [0, 1])
    probe.equals([[numbers(1)], [numbers(np.inf)], [numbers(4)]], [1, 0, 2])
    grads = gradients(rng, 4, [(3,), (2, 2)])
    grads[1] = [torch.full_like(g, torch.nan) for g in grads[1]]
    probe.equals(grads, [3, 0, 0, 4])


@average_gradients.claim("it is the gradient of the mean over all tokens")
def _(probe, rng):
    for sizes in ((1, 3), (2, 2, 5)):
        w = normal(rng, 3, 2).requires_grad_()
        b = normal(rng, 2).requires_grad_()
        x, y = normal(rng, sum(sizes), 3), normal(rng, sum(sizes), 2)

        def gradient(part, x=x, y=y, w=w, b=b):
            loss = (x[part] @ w + b - y[part]).square().mean()
            return list(torch.autograd.grad(loss, [w, b]))

        ends = np.cumsum(sizes)
        parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        args = [gradient(part) for part in parts], list(sizes)
        whole = plain(gradient(slice(None)))
        got = probe(*args)
        if difference(got, whole):
            detail = "one process with the whole batch gets other gradients"
            probe.fail(detail, *args, expected=whole, got=got)


@average_gradients.claim("one process alone keeps what it has")
def _(probe, rng):
    probe.equals([[numbers(2, 3)]], [4])
    probe.equals(gradients(rng, 1, [(2,), (3, 2)], torch.float32), [9])
