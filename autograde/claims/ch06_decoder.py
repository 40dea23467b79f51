"""What must be true of the functions of chapter 6."""

from __future__ import annotations

import numpy as np
import torch

from autograde.claims.shared import some_mask
from autograde.diagnosis import inside
from autograde.exercise import Exercise
from autograde.reference import ch06_decoder as reference
from autograde.values import differing

PAGE = "06-decoder"
BOTH = (torch.float64, torch.float32)


def normal(rng, *shape, dtype=torch.float64, scale=1.0, mean=0.0):
    return torch.from_numpy(rng.normal(mean, scale, size=shape)).to(dtype)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def spread(rng, *shape, dtype=torch.float64):
    """Vectors whose numbers lie well apart, so that a one-pass variance in float32 will do."""
    steps = np.broadcast_to(np.linspace(-3, 3, shape[-1]), shape)
    noise = rng.uniform(-0.4, 0.4, size=shape)
    return torch.from_numpy(rng.permuted(steps, axis=-1) + noise).to(dtype)


def mask(rng, *shape):
    return torch.from_numpy(some_mask(rng, *shape))


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


# layer_norm ----------------------------------------------------------------------------

layer_norm = Exercise(
    reference.layer_norm,
    read=(f"{PAGE}#ch06-norms", "LayerNorm and RMSNorm"),
    hints=(
        "Take the vector (1, 3). Its mean is 2, so it lies 1 below and 1 above its mean. What is "
        "its variance, and what does it become?",
        "keepdim=True keeps the axis of the mean, with length 1, so that it broadcasts against x. "
        "The variance is the mean of the squared distances from the mean.",
        "Subtract x.mean(dim=-1, keepdim=True), divide by torch.sqrt(variance + eps), and only "
        "then use gain and bias.",
    ),
    atol=1e-5,
    steps=inside.of_layer_norm,
)


@layer_norm.claim("a vector gets mean 0 and variance 1, then its gain and its bias", points=2)
def _(probe, rng):
    one, zero = torch.ones(2).double(), torch.zeros(2).double()
    probe.equals(numbers([1, 3]), one, zero)
    probe.equals(numbers([1, 3]), numbers(2, 1), numbers(0, 10))
    probe.equals(numbers([1, 0, 0, 0]), numbers(1, 1, 1, 1), numbers(0, 0, 0, 0))
    for features in (3, 4, 8):
        for dtype in BOTH:
            x = spread(rng, 1, features, dtype=dtype) + 1
            gain, bias = (normal(rng, features, dtype=dtype, mean=m) for m in (1, 0))
            probe.equals(x, gain, bias)


@layer_norm.claim("every vector is normalised by itself, however many axes there are in front")
def _(probe, rng):
    one, zero = numbers(1, 1), numbers(0, 0)
    probe.equals(numbers(1, 3), one, zero)
    probe.equals(numbers([1, 3], [10, 50]), one, zero)
    for shape in ((4,), (3, 3), (2, 5), (2, 3, 4), (3, 3, 3), (2, 1, 3, 5)):
        for dtype in BOTH:
            x = spread(rng, *shape, dtype=dtype)
            gain, bias = (normal(rng, shape[-1], dtype=dtype, mean=m) for m in (1, 0))
            probe.equals(x, gain, bias)


@layer_norm.claim("eps is added to the variance, under the root")
def _(probe, rng):
    one, zero = numbers(1, 1), numbers(0, 0)
    probe.equals(numbers([4, 4]), one, numbers(1, 2))
    probe.equals(numbers([5]), numbers(3), numbers(7))
    probe.equals(numbers([0, 0.002]), one, zero)
    probe.equals(numbers([0, 0.02]), one, zero, 1e-4)
    probe.equals(numbers([1, 3]), one, zero, eps=0.5)
    for scale in (1e-3, 1e-2, 1):
        x = scale * spread(rng, 2, 3, 4)
        gain, bias = normal(rng, 4), normal(rng, 4)
        probe.equals(x, gain, bias)
        probe.equals(x, gain, bias, eps=0.1)


# rms_norm ------------------------------------------------------------------------------

rms_norm = Exercise(
    reference.rms_norm,
    read=(f"{PAGE}#ch06-norms", "LayerNorm and RMSNorm"),
    hints=(
        "Read the name from the back: square the numbers, take their mean, take the root of it.",
        "As in layer_norm, keepdim=True lets the root mean square broadcast against x. But here "
        "nothing is subtracted.",
        "Divide x by torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps), then multiply by "
        "the gain.",
    ),
    steps=inside.of_rms_norm,
)


@rms_norm.claim(
    "a vector is divided by its root mean square, then multiplied by its gain", points=2
)
def _(probe, rng):
    probe.equals(numbers([1, 7]), numbers(1, 1))
    probe.equals(numbers([1, 7]), numbers(1, 10))
    probe.equals(numbers([3, 3]), numbers(1, 1))
    probe.equals(numbers([2, 0, 0, 0]), numbers(1, 1, 1, 1))
    probe.equals(numbers([-5]), numbers(3))
    for features in (3, 4, 8):
        for dtype in BOTH:
            x = spread(rng, 1, features, dtype=dtype) + 1
            probe.equals(x, normal(rng, features, dtype=dtype, mean=1))


@rms_norm.claim("every vector is normalised by itself, however many axes there are in front")
def _(probe, rng):
    probe.equals(numbers(1, 7), numbers(1, 1))
    probe.equals(numbers([1, 7], [30, 10]), numbers(1, 1))
    for shape in ((4,), (3, 3), (2, 5), (2, 3, 4), (3, 3, 3), (2, 1, 3, 5)):
        for dtype in BOTH:
            x = spread(rng, *shape, dtype=dtype)
            probe.equals(x, normal(rng, shape[-1], dtype=dtype, mean=1))


@rms_norm.claim("eps is added to the mean square, under the root")
def _(probe, rng):
    probe.equals(numbers([0, 0]), numbers(1, 1))
    probe.equals(numbers([0.0006, 0.0008]), numbers(1, 1))
    probe.equals(numbers([0.03, 0.04]), numbers(1, 1), 1e-3)
    probe.equals(numbers([1, 7]), numbers(1, 1), eps=11)
    for scale in (1e-3, 1e-2, 1):
        x, gain = scale * spread(rng, 2, 3, 4), normal(rng, 4)
        probe.equals(x, gain)
        probe.equals(x, gain, eps=0.1)


# rotary --------------------------------------------------------------------------------

rotary = Exercise(
    reference.rotary,
    read=(f"{PAGE}#ch06-rotary", "Rotary positions"),
    hints=(
        "With d_head = 2 there is one pair, and it turns by its position in radians. Which "
        "dimensions form the pairs when d_head = 4?",
        "Make the angles as a (seq, d_head / 2) array: positions in rows, frequencies in columns. "
        "It broadcasts against each half of x.",
        "a, b = x[..., :half], x[..., half:]; frequency i is base ** (-2 i / d_head). Join "
        "a cos - b sin and a sin + b cos with torch.cat along the last axis.",
    ),
    atol=1e-4,  # so that angles in float32 will do
)


@rotary.claim("each pair turns by its position times its frequency", points=2)
def _(probe, rng):
    probe.equals(numbers([[1, 0], [1, 0]]), torch.arange(2))
    probe.equals(numbers([[0, 1], [2, 1]]), torch.arange(2))
    probe.equals(numbers([[1, 0, 0, 0], [0, 1, 0, 0]]), torch.arange(2))
    probe.equals(numbers([[0, 0, 1, 0], [0, 0, 0, 1]]), torch.arange(2))
    for heads, seq, d_head in ((1, 3, 2), (2, 3, 4), (3, 5, 6), (2, 4, 10)):
        for dtype in BOTH:
            probe.equals(normal(rng, heads, seq, d_head, dtype=dtype), torch.arange(seq))


@rotary.claim("the positions are those that are given")
def _(probe, rng):
    probe.equals(numbers([[1, 0]]), torch.tensor([2]))
    probe.equals(numbers([[1, 0], [1, 0]]), torch.tensor([3, 1]))
    for positions in ([7, 8, 9], [0, 4, 2], [5, 5, 5], [40, 30, 20]):
        probe.equals(normal(rng, 2, 3, 4), torch.tensor(positions))
    probe.equals(normal(rng, 3, 6, 4), torch.from_numpy(rng.integers(0, 50, 6)))


@rotary.claim("positions in the hundreds are no worse than small ones")
def _(probe, rng):
    x = normal(rng, 1, 2, 4)
    probe.equals(x, torch.tensor([256, 257]), atol=1e-3)
    probe.equals(x.float(), torch.tensor([511, 513]), atol=1e-3)
    probe.equals(normal(rng, 2, 60, 6), torch.arange(400, 460), atol=1e-3)


@rotary.claim("the frequencies follow from the base and from d_head")
def _(probe, rng):
    probe.equals(numbers([[0, 0, 0, 0], [1, 1, 0, 0]]), torch.arange(2), 100.0)
    probe.equals(numbers([[0] * 6, [1, 1, 1, 0, 0, 0]]), torch.arange(2), 8)
    for base in (10.0, 500.0, 500000.0):
        probe.equals(normal(rng, 2, 4, 6), torch.arange(4), base=base)


@rotary.claim("all batches and all heads turn alike")
def _(probe, rng):
    for shape in ((2, 2, 2), (2, 1, 3, 4), (2, 3, 3, 4), (3, 3, 3, 2), (2, 2, 3, 4, 6)):
        for dtype in BOTH:
            probe.equals(normal(rng, *shape, dtype=dtype), torch.arange(shape[-2]))
    probe.equals(normal(rng, 2, 4, 3, 6).transpose(1, 2), torch.arange(4))


@rotary.claim("the score of a query and a key depends on the distance between them alone")
def _(probe, rng):
    q, k = normal(rng, 1, 1, 4), normal(rng, 1, 1, 4)

    def score(query, key):
        turned_q, turned_k = probe(q, torch.tensor([query])), probe(k, torch.tensor([key]))
        return float((turned_q * turned_k).sum())

    for distance in (0, 1, 5):
        here, there = score(3 + distance, 3), score(50 + distance, 50)
        if differing(there, here, atol=1e-3):
            detail = (
                f"positions {3 + distance} and 3 give the score {here:.4g}, positions "
                f"{50 + distance} and 50 give {there:.4g}, at the same distance"
            )
            probe.fail(detail, q, torch.tensor([50 + distance]))


# decoder_block -------------------------------------------------------------------------

# What a block computes is judged with a tolerance that lets a tanh GELU pass; one claim is about
# the GELU, and strict.
COARSE = 1e-3

decoder_block = Exercise(
    reference.decoder_block,
    read=(f"{PAGE}#ch06-block", "The block"),
    hints=(
        "Two steps, each of the form x = x + f(layer_norm(x)). What attention reads is "
        "normalised, what it is added to is not.",
        "Queries, keys and values: y @ w, then split the last axis into (n_heads, d_head) and "
        "move the heads in front of the sequence. The mask needs an axis for the heads, too.",
        "scores = q @ k.mT / sqrt(d_head); closed ones to -inf; softmax; weights of closed keys "
        "to 0, which also removes the NaN of a query without keys; @ v; heads back; @ w_o.",
    ),
    uses=("layer_norm",),
    atol=1e-5,
)


def block(rng, d_model, d_ff, dtype=torch.float64, digits=15):
    """Parameters of a block: all different, none of them symmetric or zero."""

    def vector(n, mean=0.0):
        return rng.normal(mean, 0.5, size=n)

    def matrix(n_in, n_out):
        return rng.normal(scale=n_in**-0.5, size=(n_in, n_out))

    drawn = {"norm1_gain": vector(d_model, 1.5), "norm1_bias": vector(d_model)}
    drawn |= {name: matrix(d_model, d_model) for name in ("w_q", "w_k", "w_v", "w_o")}
    drawn |= {"norm2_gain": vector(d_model, 1.5), "norm2_bias": vector(d_model)}
    drawn |= {"w_up": matrix(d_model, d_ff), "b_up": vector(d_ff)}
    drawn |= {"w_down": matrix(d_ff, d_model), "b_down": vector(d_model)}
    return tensors(drawn, dtype, digits)


def tensors(drawn, dtype, digits):
    """The arrays as tensors; short numbers are for small examples."""
    return {name: torch.from_numpy(a.round(digits) + 0.0).to(dtype) for name, a in drawn.items()}


SMALL = block(np.random.default_rng(6), 2, 2, digits=1)


@decoder_block.claim("x + attention(norm(x)), then the same with the MLP", points=3)
def _(probe, rng):
    probe.equals(numbers([1, 0]), SMALL, 1, causal(1), atol=COARSE)
    probe.equals(numbers([1, 0], [0, 2]), SMALL, 1, causal(2), atol=COARSE)
    for seq, d_model, d_ff in ((3, 3, 3), (4, 4, 8), (5, 3, 7)):
        for dtype in BOTH:
            x, params = normal(rng, seq, d_model, dtype=dtype), block(rng, d_model, d_ff, dtype)
            probe.equals(x, params, 1, causal(seq), atol=COARSE)


@decoder_block.claim("each head attends with features of its own")
def _(probe, rng):
    probe.equals(numbers([1, 0], [0, 2]), SMALL, 2, causal(2), atol=COARSE)
    for seq, d_model, n_heads in ((3, 4, 2), (2, 4, 2), (3, 6, 2), (3, 6, 3), (4, 8, 4)):
        for dtype in BOTH:
            x, params = normal(rng, seq, d_model, dtype=dtype), block(rng, d_model, 5, dtype)
            probe.equals(x, params, n_heads, causal(seq), atol=COARSE)


@decoder_block.claim("any batch axes, and a mask for all or one for each sequence")
def _(probe, rng):
    for batch in ((2,), (3,), (2, 3)):
        x, params = normal(rng, *batch, 3, 4), block(rng, 4, 6)
        probe.equals(x, params, 2, causal(3), atol=COARSE)
        for rows in (3, 1):
            probe.equals(x, params, 2, mask(rng, *batch, rows, 3), atol=COARSE)
    probe.equals(normal(rng, 3, 4), params, 2, mask(rng, 3, 3), atol=COARSE)


@decoder_block.claim("what a query may not see has no effect on its row")
def _(probe, rng):
    cases = [(numbers([1, 0], [0, 2]), SMALL, 1), (normal(rng, 2, 5, 4), block(rng, 4, 6), 2)]
    steep = block(rng, 8, 6)  # scores of 50 and more: no small number closes a key
    steep |= {"w_q": 4 * steep["w_q"], "w_k": 4 * steep["w_k"]}
    cases.append((normal(rng, 3, 4, 8), steep, 4))
    for x, params, n_heads in cases:
        seq = x.shape[-2]
        before = probe(x, params, n_heads, causal(seq))
        for j in range(1, seq):
            changed = x.clone()
            changed[..., j, 0] += 30
            after = probe(changed, params, n_heads, causal(seq))
            if differing(after[..., :j, :], before[..., :j, :]).any():
                detail = f"position {j} was changed, and a row before it changed with it"
                probe.fail(detail, changed, params, n_heads, causal(seq))
                break


@decoder_block.claim("where no key is allowed, attention adds nothing")
def _(probe, rng):
    probe.equals(numbers([1, 0]), SMALL, 1, causal(1) & False, atol=COARSE)
    probe.equals(numbers([1, 0], [0, 2]), SMALL, 1, causal(2).tril(-1), atol=COARSE)
    allowed = mask(rng, 2, 3, 3)
    allowed[0, 1] = allowed[1, 0] = False
    probe.equals(normal(rng, 2, 3, 4), block(rng, 4, 6), 2, allowed, atol=COARSE)


@decoder_block.claim("the GELU is the exact one")
def _(probe, rng):
    strong = {**SMALL, "b_up": numbers(2, -2), "w_down": numbers([1, 3], [-2, 2])}
    probe.equals(numbers([1, 0]), strong, 1, causal(1))
    params = block(rng, 4, 8)
    params["b_up"], params["w_down"] = normal(rng, 8, scale=2.5), normal(rng, 8, 4)
    probe.equals(normal(rng, 2, 3, 4), params, 2, causal(3))


# decoder_logits ------------------------------------------------------------------------

decoder_logits = Exercise(
    reference.decoder_logits,
    read=(f"{PAGE}#ch06-logits", "From the stream to the logits"),
    hints=(
        "Follow the figure of the architecture from the bottom to the top. What does the first "
        "block read?",
        'params["token_embedding"][tokens] looks up all tokens at once. The positions are those '
        "of the sequence, 0 to seq - 1, the same for every sequence of a batch.",
        "x = embeddings of tokens + the first seq rows of position_embedding; "
        "x = decoder_block(x, block, n_heads, causal mask) for each block; one layer_norm more; "
        "@ token_embedding.T.",
    ),
    uses=("layer_norm", "decoder_block"),
    atol=COARSE,  # what a block computes is the business of decoder_block
    steps=inside.of_logits,
)


def decoder(rng, vocab, d_model, d_ff, max_seq, n_layers, dtype=torch.float64, digits=15):
    """Parameters of a decoder."""
    drawn = {
        "token_embedding": rng.normal(size=(vocab, d_model)),
        "position_embedding": rng.normal(size=(max_seq, d_model)),
        "norm_gain": rng.normal(1.5, 0.5, size=d_model),
        "norm_bias": rng.normal(scale=0.5, size=d_model),
    }
    blocks = [block(rng, d_model, d_ff, dtype, digits) for _ in range(n_layers)]
    return {**tensors(drawn, dtype, digits), "blocks": blocks}


def ids(rng, vocab, *shape):
    return torch.from_numpy(rng.integers(0, vocab, shape))


TINY = decoder(np.random.default_rng(6), 3, 2, 2, 4, 1, digits=1)


@decoder_logits.claim("embeddings, a causal block, the last norm, a logit for each token", points=3)
def _(probe, rng):
    for tokens in ([0], [2, 2], [0, 1, 2], [1, 0, 0, 2]):
        probe.equals(torch.tensor(tokens), TINY, 1)
    for vocab, max_seq, seq in ((7, 6, 4), (4, 6, 5), (5, 5, 5)):
        for dtype in BOTH:
            params = decoder(rng, vocab, 4, 6, max_seq, 1, dtype)
            probe.equals(ids(rng, vocab, seq), params, 1)


@decoder_logits.claim("several blocks of several heads run one after the other")
def _(probe, rng):
    probe.equals(torch.tensor([0, 1]), decoder(rng, 3, 2, 2, 2, 2, digits=1), 1)
    for n_layers, d_model, n_heads in ((2, 4, 1), (2, 4, 2), (3, 6, 3)):
        params = decoder(rng, 7, d_model, 8, 6, n_layers)
        probe.equals(ids(rng, 7, 5), params, n_heads)


@decoder_logits.claim("no token changes the logits of an earlier position")
def _(probe, rng):
    cases = [
        (torch.tensor([0, 1, 2]), TINY, 1),
        (ids(rng, 9, 2, 6), decoder(rng, 9, 4, 6, 6, 2), 2),
    ]
    for tokens, params, n_heads in cases:
        vocab, seq = len(params["token_embedding"]), tokens.shape[-1]
        before = probe(tokens, params, n_heads)
        for j in range(1, seq):
            changed = tokens.clone()
            changed[..., j] = (tokens[..., j] + 1) % vocab
            after = probe(changed, params, n_heads)
            if differing(after[..., :j, :], before[..., :j, :]).any():
                detail = f"token {j} was changed, and logits at a position before it changed"
                probe.fail(detail, changed, params, n_heads)
                break


@decoder_logits.claim("any batch axes; each sequence is by itself")
def _(probe, rng):
    probe.equals(torch.tensor([[0, 1], [2, 0]]), TINY, 1)
    params = decoder(rng, 7, 4, 6, 5, 2)
    for shape in ((1, 1), (2, 3), (3, 3), (5, 4), (2, 3, 4)):
        probe.equals(ids(rng, 7, *shape), params, 2)


# decoder_parameters --------------------------------------------------------------------

decoder_parameters = Exercise(
    reference.decoder_parameters,
    read=(f"{PAGE}#ch06-parameters", "Counting the parameters"),
    hints=(
        "Write down the shape of everything in `params`, and how often it is there: once, or "
        "once in each layer.",
        "A layer has two norms (gain and bias each), four square matrices without bias, and an "
        "MLP of two matrices, each with its bias.",
        "Embeddings: (vocab + max_seq) d_model. Each layer: 4 d_model^2 + 2 d_model d_ff + "
        "d_ff + 5 d_model. Last norm: 2 d_model.",
    ),
    seconds=30,  # for those who build the model and count
)


def config(vocab, d_model, n_layers, n_heads, d_ff, max_seq):
    return {
        "vocab": vocab, "d_model": d_model, "n_layers": n_layers,
        "n_heads": n_heads, "d_ff": d_ff, "max_seq": max_seq,
    }  # fmt: skip


@decoder_parameters.claim("everything in one layer and around it is counted once", points=2)
def _(probe, rng):
    probe.equals(config(1, 1, 1, 1, 4, 1))
    probe.equals(config(5, 2, 1, 1, 8, 3))
    probe.equals(config(10, 4, 1, 1, 16, 7))
    vocab, max_seq, d_model = (int(rng.integers(50, 900)) for _ in range(3))
    probe.equals(config(vocab, d_model, 1, 1, 4 * d_model, max_seq))


@decoder_parameters.claim("each layer has its own")
def _(probe, rng):
    for n_layers in (2, 3, 6):
        probe.equals(config(10, 4, n_layers, 1, 16, 8))
    probe.equals(config(100, 32, int(rng.integers(7, 50)), 1, 128, 64))


@decoder_parameters.claim("the MLP is as wide as d_ff says")
def _(probe, rng):
    for d_ff in (1, 3, 17, int(rng.integers(60, 300))):
        probe.equals(config(10, 4, 2, 1, d_ff, 8))


@decoder_parameters.claim("the number of heads makes no difference")
def _(probe, rng):
    for n_heads in (2, 4, 8):
        probe.equals(config(10, 8, 2, n_heads, 32, 6))
    probe.equals(config(50257, 768, 12, 12, 3072, 1024))  # the sizes of GPT-2 small
