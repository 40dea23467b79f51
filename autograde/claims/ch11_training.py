"""What must be true of the functions of chapter 11."""

from __future__ import annotations

import torch

from autograde.claims.trained import (
    Language,
    foresees,
    returns_within,
    weights,
    with_as_many_heads,
)
from autograde.examination import ClaimBroken
from autograde.exercise import Exercise
from autograde.reference import ch11_training as reference
from autograde.values import Mismatch

PAGE = "11-training"
BOTH = (torch.float64, torch.float32)


def normal(rng, *shape, dtype=torch.float64, scale=1.0):
    return torch.from_numpy(rng.normal(scale=scale, size=shape)).to(dtype)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def ids(rng, vocab, *shape):
    return torch.from_numpy(rng.integers(0, vocab, shape))


PI = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])

# split_tokens --------------------------------------------------------------------------

split_tokens = Exercise(
    reference.split_tokens,
    read=(f"{PAGE}#ch11-split", "The split"),
    hints=(
        "A text is cut once, so that what comes after the cut is new to the model. Which of the "
        "two parts stands first?",
        "Count first how many tokens go to the test: int(len(tokens) * val_fraction). int() "
        "drops what stands after the point.",
        "n_train = len(tokens) - n_val; the two parts are tokens[:n_train] and tokens[n_train:]. "
        "(A slice that starts at -n_val goes wrong when n_val is 0.)",
    ),
    returns=("train", "val"),
)


@split_tokens.claim("val is the end of the text, train all that comes before", points=2)
def _(probe, rng):
    probe.equals(torch.tensor([7, 5]), 0.5)
    probe.equals(PI, 0.25)
    probe.equals(PI, 0.5)
    for n, fraction in ((40, 0.25), (64, 0.125), (200, 0.75)):
        probe.equals(ids(rng, 30, n), fraction)


@split_tokens.claim("val has int(n * val_fraction) tokens: rounded down")
def _(probe, rng):
    for n in (2, 3, 5, 6, 7):
        probe.equals(PI[:n], 0.25)
    for n, fraction in ((7, 0.5), (13, 0.3), (999, 0.1), (1003, 0.05)):
        probe.equals(ids(rng, 30, n), fraction)


@split_tokens.claim("where no token is left for val, it is empty and train is everything")
def _(probe, rng):
    probe.equals(torch.tensor([7]), 0.0)
    probe.equals(PI, 0)
    probe.equals(PI, 0.1)
    probe.equals(ids(rng, 30, 50), 0.0)


# get_batch -----------------------------------------------------------------------------

get_batch = Exercise(
    reference.get_batch,
    read=(f"{PAGE}#ch11-batches", "Batches"),
    hints=(
        "Take tokens = 3 1 4 1 5 and one window of length 3 that starts at 1. What is the row of "
        "inputs? For each of its tokens, which one follows in the text?",
        "Row b of inputs is tokens[starts[b] : starts[b] + block]; targets is the same slice, one "
        "further. torch.stack makes a tensor of a list of rows.",
        "starts[:, None] + torch.arange(block) holds the place of every token of every window. "
        "Index tokens with it, and with it plus 1.",
    ),
    returns=("inputs", "targets"),
)


@get_batch.claim("inputs are a window, targets the token after each of its tokens", points=2)
def _(probe, rng):
    probe.equals(PI, torch.tensor([0]), 1)
    probe.equals(PI, torch.tensor([2]), 3)
    for n, block in ((9, 4), (20, 5), (60, 16)):
        probe.equals(ids(rng, 30, n), torch.from_numpy(rng.integers(0, n - block - 1, 1)), block)


@get_batch.claim("a row for each start, in their order")
def _(probe, rng):
    probe.equals(PI, torch.tensor([3, 0]), 2)
    probe.equals(PI, torch.tensor([2, 2]), 2)
    probe.equals(PI, torch.tensor([4, 1, 0]), 3)
    for batch, block in ((2, 6), (5, 5), (7, 3)):
        tokens = ids(rng, 30, 40)
        probe.equals(tokens, torch.from_numpy(rng.integers(0, 40 - block - 1, batch)), block)


@get_batch.claim("a window may reach up to the last token that has a successor")
def _(probe, rng):
    probe.equals(PI[:2], torch.tensor([0]), 1)
    probe.equals(PI, torch.tensor([4]), 3)
    probe.equals(PI, torch.tensor([0]), 7)
    tokens = ids(rng, 30, 33)
    probe.equals(tokens, torch.tensor([0, 24, 11]), 8)
    probe.equals(tokens, torch.tensor([0, 0]), 32)


# cross_entropy -------------------------------------------------------------------------

cross_entropy = Exercise(
    reference.cross_entropy,
    read=(f"{PAGE}#ch11-loss", "The loss"),
    hints=(
        "One row of logits and its target first: the loss is -log softmax(logits)[target]. What "
        "is it for the logits (0, 0)?",
        "-log softmax(logits)[target] = logsumexp(logits) - logits[target], and torch.logsumexp "
        "does not overflow. `gather` picks each row's target.",
        "kept = targets != ignore_index. logits[kept] is (n, vocab) and targets[kept] is (n,), "
        "however many batch axes there were. Take the mean of what is kept.",
    ),
)


@cross_entropy.claim("the mean of minus log p(target), in nats", points=2)
def _(probe, rng):
    probe.equals(numbers([0, 0]), torch.tensor([1]))
    probe.equals(numbers([2, 1, 0]), torch.tensor([1]))
    probe.equals(numbers([0, 0], [3, 0]), torch.tensor([0, 1]))
    for n, vocab in ((1, 5), (4, 3), (3, 3), (6, 40)):
        for dtype in BOTH:
            probe.equals(normal(rng, n, vocab, dtype=dtype, scale=2), ids(rng, vocab, n))


@cross_entropy.claim("any number of batch axes")
def _(probe, rng):
    probe.equals(numbers([[0, 0], [1, 0]]), torch.tensor([[0, 1]]))
    for shape in ((2, 3), (3, 3), (3, 2), (2, 3, 4)):
        for dtype in BOTH:
            logits = normal(rng, *shape, 3, dtype=dtype, scale=2)
            probe.equals(logits, ids(rng, 3, *shape))


@cross_entropy.claim("logits of any size give a finite loss")
def _(probe, rng):
    coarse = 1e-2  # what float32 has of 10,000
    probe.equals(numbers([1000, 0]), torch.tensor([0]), atol=coarse)
    probe.equals(numbers([1000, 0]), torch.tensor([1]))
    probe.equals(numbers([-1000, -1001], [1000, 1001]), torch.tensor([0, 0]), atol=coarse)
    for dtype in BOTH:
        probe.equals(normal(rng, 3, 5, dtype=dtype, scale=1e4), ids(rng, 5, 3))
        for shift in (1e4, -1e4):
            logits = normal(rng, 3, 5, dtype=dtype) + shift
            probe.equals(logits, ids(rng, 5, 3), atol=coarse)


@cross_entropy.claim("targets of -100 do not count, in the sum nor in the number")
def _(probe, rng):
    probe.equals(numbers([0, 0], [3, 0]), torch.tensor([-100, 1]))
    probe.equals(numbers([[0, 0], [1, 0]], [[5, 0], [0, 2]]), torch.tensor([[0, -100], [1, 1]]))
    logits, targets = normal(rng, 3, 6, 4), ids(rng, 4, 3, 6)
    targets[0, 1:], targets[1, 3:] = -100, -100
    probe.equals(logits, targets)
    targets[2] = -100
    probe.equals(logits.float(), targets)


@cross_entropy.claim("the target that does not count can be another one")
def _(probe, rng):
    probe.equals(numbers([0, 0], [3, 0]), torch.tensor([0, 1]), 0)
    probe.equals(numbers([0, 0, 1], [3, 0, 1]), torch.tensor([2, 1]), ignore_index=2)
    probe.equals(numbers([0, 0], [3, 0]), torch.tensor([-1, 1]), -1)
    for ignored in (0, 3, -1):
        targets = ids(rng, 4, 2, 8)
        targets[0, :2], targets[:, 2:4], targets[:, 7] = ignored, 1, ignored
        probe.equals(normal(rng, 2, 8, 4), targets, ignored)


# learning_rate -------------------------------------------------------------------------

learning_rate = Exercise(
    reference.learning_rate,
    read=(f"{PAGE}#ch11-learning-rate", "The learning rate"),
    hints=(
        "Draw the curve for warmup = 4 and total = 12: four steps up to max_lr, then down along "
        "half a cosine. Which steps are the highest point, the middle of the slope, the end?",
        "After the warm-up, let done run from 0 at step = warmup to 1 at step = total. "
        "(1 + cos(pi * done)) / 2 runs from 1 down to 0.",
        "min_lr + (max_lr - min_lr) * (1 + math.cos(math.pi * done)) / 2, where done = "
        "(step - warmup) / (total - warmup), but at most 1. Before: max_lr * (step + 1) / warmup.",
    ),
    takes_arrays=False,
)
PLANS = ((1.0, 0.1, 4, 12), (0.5, 0.0, 1, 3), (3.0, 1.0, 5, 6), (0.8, 0.8, 2, 9))
LONG = (0.3, 0.03, 100, 2000)


def schedule(rng):
    warmup = int(rng.integers(3, 30))
    return float(rng.uniform(1, 2)), float(rng.uniform(0, 0.5)), warmup, 2 * warmup + 31


@learning_rate.claim("after the warm-up, half a cosine from max_lr to min_lr", points=2)
def _(probe, rng):
    for plan in (*PLANS, schedule(rng)):
        *_, warmup, total = plan
        for step in range(warmup, total + 1):
            probe.equals(step, *plan)
    for step in (100, 101, 1050, 1999, 2000):
        probe.equals(step, *LONG)


@learning_rate.claim("during the warm-up, max_lr * (step + 1) / warmup")
def _(probe, rng):
    for plan in (*PLANS, schedule(rng)):
        for step in range(plan[2]):
            probe.equals(step, *plan)
    for step in (0, 1, 50, 99):
        probe.equals(step, *LONG)


@learning_rate.claim("without warm-up it starts at max_lr")
def _(probe, rng):
    for step in (0, 1, 2, 4):
        probe.equals(step, 1.0, 0.2, 0, 4)
    for step in (0, 1, int(rng.integers(2, 50)), 50):
        probe.equals(step, float(rng.uniform(1, 2)), 0.1, 0, 50)


@learning_rate.claim("after `total` it stays at min_lr")
def _(probe, rng):
    for plan in (*PLANS, schedule(rng)):
        for beyond in (1, 2, plan[3] - plan[2], 1000):
            probe.equals(plan[3] + beyond, *plan)


# clip_by_global_norm -------------------------------------------------------------------

clip_by_global_norm = Exercise(
    reference.clip_by_global_norm,
    read=(f"{PAGE}#ch11-clipping", "Clipping"),
    hints=(
        "One tensor, (3, 4): its norm is 5. With max_norm = 1 it becomes (0.6, 0.8). By which "
        "factor was it multiplied?",
        "With several tensors there is still one norm: square all numbers of all tensors, add "
        "everything up, take the root. And one factor for all of them.",
        "factor = max_norm / norm if norm > max_norm else 1.0. Return [g * factor for g in grads] "
        "and the norm from before.",
    ),
    returns=("clipped", "norm"),
    rtol=2e-5,  # torch divides by norm + 1e-6
)


@clip_by_global_norm.claim(
    "all tensors together have one norm, and shrink by one factor to max_norm", points=2
)
def _(probe, rng):
    probe.equals([numbers(3), numbers(4)], 1.0)
    probe.equals([numbers(3, 0), numbers(0, 0, 4)], 2.5)
    probe.equals([numbers(1, 2), numbers(2, 4), numbers([2, 2], [4, 4])], 3.5)
    for dtype in BOTH:
        grads = [normal(rng, 3, 2, dtype=dtype, scale=5), normal(rng, 4, dtype=dtype, scale=0.1)]
        probe.equals([*grads, normal(rng, 2, 1, 2, dtype=dtype)], 1.0)


@clip_by_global_norm.claim("a single tensor that is too long is shortened to max_norm")
def _(probe, rng):
    probe.equals([numbers(3, 4)], 1.0)
    probe.equals([numbers(3, 4)], 2.5)
    probe.equals([numbers(-6)], 2)
    for shape in ((3,), (2, 3), (4, 1, 2)):
        for dtype in BOTH:
            probe.equals([normal(rng, *shape, dtype=dtype, scale=3) + 1], 0.5)


@clip_by_global_norm.claim("what is not longer than max_norm stays as it is")
def _(probe, rng):
    probe.equals([numbers(3, 4)], 6.0)
    probe.equals([numbers(3, 4)], 5.0)
    probe.equals([numbers(0.3, 0.4)], 1.0)
    probe.equals([numbers(0.6, 0.6), numbers(0.3)], 1)
    for dtype in BOTH:
        probe.equals([normal(rng, 2, 3, dtype=dtype), normal(rng, 4, dtype=dtype)], 50.0)


@clip_by_global_norm.claim("gradients that are all zero stay zero")
def _(probe, rng):
    probe.equals([numbers(0, 0)], 1.0)
    probe.equals([torch.zeros(2, 3), torch.zeros(4)], 0.5)


# adamw_step ----------------------------------------------------------------------------

adamw_step = Exercise(
    reference.adamw_step,
    read=(f"{PAGE}#ch11-adamw", "AdamW"),
    hints=(
        "Do the first step by hand: m = v = 0, a gradient of 2, no decay. What are m and v, what "
        "are they after the correction, and by how much does the parameter move?",
        "Five lines: m, v, m / (1 - beta1**step), v / (1 - beta2**step), the new parameter. "
        "Return the m and v from before the correction: the next step goes on from them.",
        "param - lr * (m_corrected / (v_corrected.sqrt() + eps) + weight_decay * param). The decay "
        "has nothing to do with m and v.",
    ),
    returns=("param", "m", "v"),
    rtol=1e-4,
    atol=1e-5,  # 1 - 0.999 in float32
)
PLAIN = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}


def moments(rng, *shape, dtype=torch.float64):
    """(param, grad, m, v), as in the midst of a training."""
    param, grad, m = (normal(rng, *shape, dtype=dtype) for _ in range(3))
    return param, grad, m, normal(rng, *shape, dtype=dtype).square() + 0.1


@adamw_step.claim("from m = v = 0, the first step goes lr against the gradient's sign", points=2)
def _(probe, rng):
    zero = numbers(0)
    probe.equals(numbers(1), numbers(2), zero, zero, 1, 0.1, **PLAIN)
    probe.equals(numbers(1), numbers(-0.5), zero, zero, 1, 0.1, **PLAIN)
    for shape in ((3,), (2, 4), (2, 1, 3)):
        for dtype in BOTH:
            param, grad = normal(rng, *shape, dtype=dtype), normal(rng, *shape, dtype=dtype)
            zero = torch.zeros_like(param)
            probe.equals(param, grad, zero, zero, 1, 0.5, **PLAIN)


@adamw_step.claim("later steps: running means, corrected for the steps made so far")
def _(probe, rng):
    probe.equals(numbers(1), numbers(2), numbers(0.2), numbers(0.004), 2, 0.1, **PLAIN)
    probe.equals(numbers(1), numbers(2), numbers(1), numbers(1), 5, 0.1, **PLAIN)
    for step, betas in ((2, (0.9, 0.999)), (3, (0.5, 0.8)), (10, (0.8, 0.95)), (900, (0.9, 0.99))):
        for dtype in BOTH:
            drawn = moments(rng, 2, 3, dtype=dtype)
            probe.equals(*drawn, step, 0.5, **{**PLAIN, "betas": betas})


@adamw_step.claim("weight decay takes lr * weight_decay off each weight, whatever the gradient")
def _(probe, rng):
    zero = numbers(0)
    decay = {**PLAIN, "weight_decay": 0.1}
    probe.equals(numbers(3), zero, zero, zero, 1, 0.5, **decay)
    probe.equals(numbers(3), numbers(2), zero, zero, 1, 0.5, **decay)
    probe.equals(numbers(3, -1), numbers(2, 1), numbers(1, 0), numbers(1, 0.5), 4, 0.5, **decay)
    for rate, weight_decay in ((0.5, 0.4), (0.1, 3.0)):
        probe.equals(*moments(rng, 2, 3), 3, rate, **{**PLAIN, "weight_decay": weight_decay})


@adamw_step.claim("eps is added to the root")
def _(probe, rng):
    zero, large = numbers(0), {**PLAIN, "eps": 0.5}
    probe.equals(numbers(1), zero, zero, zero, 1, 0.1, **PLAIN)
    probe.equals(numbers(1), numbers(2), zero, zero, 1, 0.1, **large)
    probe.equals(numbers(1), numbers(0.04), zero, zero, 1, 0.1, **large)
    probe.equals(*moments(rng, 4), 7, 0.5, **large)


# train ---------------------------------------------------------------------------------

SECONDS = 10.0  # what a training may take; the reference needs one
SHORT, PATIENCE = 0.2, 10.0
SLACK = 0.3  # nats above the floor

train = Exercise(
    reference.train,
    read=(f"{PAGE}#ch11-loop", "The loop"),
    hints=(
        "Make the params first, all with random numbers, and look at the loss before any step: "
        "it should be near log 8 = 2.08. Then one batch, again and again: the loss must fall to "
        "nearly nothing. Only then the loop.",
        "Each step: random starts; get_batch; decoder_logits; cross_entropy; the gradients, by "
        "torch.autograd.grad or loss.backward(); clip; a step of AdamW. Write the new weights "
        "back into the dict: a new tensor in a local variable changes nothing.",
        "Matrices from 0.1 * torch.randn, gains 1, biases 0. Windows of 16, batches of 16, 150 "
        "steps, a rate of 0.01 with 15 steps of warm-up, betas (0.9, 0.95). Stop when "
        "time.monotonic() says that 0.8 * seconds are over.",
    ),
    uses=("get_batch", "cross_entropy", "learning_rate", "clip_by_global_norm", "adamw_step"),
    many_right=True,
    seconds=3 * SECONDS,
)


def trained(probe, rng) -> tuple[Language, dict]:
    """A language and the weights that one training on it gave, the same for all claims."""
    if not probe.records:
        seed = int(rng.integers(10**6))
        probe.attempt(Language(seed).sample(20_000, 0), seed, SECONDS)
    record = probe.records[0]
    try:
        if not record.outcome.returned:
            raise Mismatch(record.outcome.says())
        return Language(record.args[1]), weights(record.outcome.value, record.expected)
    except Mismatch as mismatch:
        probe.fail(str(mismatch), *record.args)
        raise ClaimBroken from None


@train.claim("the weights foresee new text better than guessing does", points=2)
def _(probe, rng):
    foresees(probe, *trained(probe, rng), 1, 0, SLACK)


@train.claim("better than who knows the present token alone", points=2)
def _(probe, rng):
    foresees(probe, *trained(probe, rng), 1, 1, SLACK)


@train.claim("as well as anyone can, to 0.3 nats")
def _(probe, rng):
    foresees(probe, *trained(probe, rng), 1, 2, SLACK)


@train.claim("they are the weights of two heads")
def _(probe, rng):
    with_as_many_heads(probe, *trained(probe, rng), 1, 2, (1,))


@train.claim("a short time is kept, too")
def _(probe, rng):
    returns_within(probe, SHORT + PATIENCE, Language(0).sample(20_000, 0), 0, SHORT)
