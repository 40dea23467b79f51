"""Wrong answers to chapter 6."""

from __future__ import annotations

import torch
from torch.nn.functional import gelu, relu

from autograde.bank import wrong
from autograde.reference import ch06_decoder as right
from autograde.reference.ch06_decoder import decoder_block, layer_norm

# layer_norm ----------------------------------------------------------------------------


def moments(x, dim=-1):
    """Mean and population variance, with the axis kept."""
    mean = x.mean(dim=dim, keepdim=True)
    return mean, (x - mean).square().mean(dim=dim, keepdim=True)


@wrong("layer_norm", "harvardnlp/annotated-transformer#119")
def variance_of_a_sample(x, gain, bias, eps=1e-5):
    """The squared distances are divided by the number of features minus 1 (what torch.var and
    torch.std do unless told otherwise); here they are divided by the number of features."""
    mean = x.mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(x.var(dim=-1, keepdim=True) + eps) * gain + bias


@wrong("layer_norm", "harvardnlp/annotated-transformer#122")
def std_of_a_sample_plus_eps(x, gain, bias, eps=1e-5):
    """Two things at once: torch.std divides by the number of features minus 1 unless told
    otherwise, and eps belongs to the variance, under the root, not to the standard deviation."""
    mean = x.mean(dim=-1, keepdim=True)
    return (x - mean) / (x.std(dim=-1, keepdim=True) + eps) * gain + bias


@wrong("layer_norm", "hkproj/pytorch-transformer#31")
def eps_outside_the_root(x, gain, bias, eps=1e-5):
    """eps is added to the standard deviation; it belongs to the variance, under the root. For
    vectors that hardly vary the two differ a lot."""
    mean, variance = moments(x)
    return (x - mean) / (variance.sqrt() + eps) * gain + bias


@wrong("layer_norm", "131250208/TPlinker-joint-extraction#37")
def squared_instead_of_rooted(x, gain, bias, eps=1e-5):
    """You divide by the square of the variance; the root of the variance is what brings the
    variance to 1."""
    mean, variance = moments(x)
    return (x - mean) / (variance + eps) ** 2 * gain + bias


@wrong("layer_norm")
def divided_by_the_variance(x, gain, bias, eps=1e-5):
    """You divide by the variance; it takes its root, the standard deviation, to bring the
    variance to 1."""
    mean, variance = moments(x)
    return (x - mean) / (variance + eps) * gain + bias


@wrong("layer_norm", "mosaicml/llm-foundry#372")
def multiplied_by_the_deviation(x, gain, bias, eps=1e-5):
    """You multiply by the standard deviation (or divide by torch.rsqrt, which is 1 over the
    root already): what is large becomes larger."""
    mean, variance = moments(x)
    return (x - mean) * torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", "google-deepmind/dm-haiku#700")
def one_mean_for_all_positions(x, gain, bias, eps=1e-5):
    """Mean and variance are taken over the positions, too. Each position needs its own: in a
    decoder, the future would leak into the past through a shared mean."""
    mean, variance = moments(x, tuple(range(-min(x.ndim, 2), 0)))
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", same_as="one_mean_for_all_positions")
def one_mean_for_everything(x, gain, bias, eps=1e-5):
    mean, variance = moments(x, tuple(range(x.ndim)))
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm")
def each_feature_over_the_positions(x, gain, bias, eps=1e-5):
    """Mean and variance are taken along the wrong axis: over the positions, for each feature.
    A layer norm looks at the features of one position."""
    mean, variance = moments(x, 0 if x.ndim == 1 else -2)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", same_as="each_feature_over_the_positions")
def each_feature_over_the_batch(x, gain, bias, eps=1e-5):
    mean, variance = moments(x, 0)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm")
def second_axis(x, gain, bias, eps=1e-5):
    """The axis is written as 1, which is the last one only if x has two: with a batch in front
    it is the positions. Count from the end: -1."""
    mean, variance = moments(x, 1)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm")
def axis_not_kept(x, gain, bias, eps=1e-5):
    """Mean and variance have lost the last axis, so they broadcast along the wrong one (or not
    at all): keep it, with length 1."""
    mean, variance = x.mean(dim=-1), x.var(dim=-1, correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm")
def mean_stays(x, gain, bias, eps=1e-5):
    """The mean is not subtracted: you divide by the root mean square, as rms_norm does."""
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps) * gain + bias


@wrong("layer_norm")
def divided_but_not_centred(x, gain, bias, eps=1e-5):
    """You divide by the standard deviation, but the mean is still in x: subtract it first."""
    return x / torch.sqrt(moments(x)[1] + eps) * gain + bias


@wrong("layer_norm")
def gain_and_bias_first(x, gain, bias, eps=1e-5):
    """gain and bias are used before the normalisation, which then undoes most of what they do;
    they come last."""
    return layer_norm(x * gain + bias, torch.ones_like(gain), torch.zeros_like(bias), eps)


@wrong("layer_norm")
def gain_and_bias_forgotten(x, gain, bias, eps=1e-5):
    """The vectors are normalised, but gain and bias are not used."""
    return layer_norm(x, torch.ones_like(gain), torch.zeros_like(bias), eps)


@wrong("layer_norm")
def bias_forgotten(x, gain, bias, eps=1e-5):
    """The bias is not added."""
    return layer_norm(x, gain, torch.zeros_like(bias), eps)


@wrong("layer_norm")
def gain_and_bias_swapped(x, gain, bias, eps=1e-5):
    """gain and bias have changed places: the gain multiplies, the bias is added."""
    return layer_norm(x, bias, gain, eps)


@wrong("layer_norm")
def bias_scaled_too(x, gain, bias, eps=1e-5):
    """The gain multiplies the bias as well: multiply first, then add the bias."""
    return (layer_norm(x, torch.ones_like(gain), torch.zeros_like(bias), eps) + bias) * gain


@wrong("layer_norm")
def eps_left_out(x, gain, bias, eps=1e-5):
    """eps is not used: a constant vector divides 0 by 0, and a vector that hardly varies is
    blown up."""
    mean, variance = moments(x)
    return (x - mean) / torch.sqrt(variance) * gain + bias


@wrong("layer_norm", "ggml-org/llama.cpp#2373")
def eps_always_the_same(x, gain, bias, eps=1e-5):
    """Your eps is always 1e-5; use the argument."""
    return layer_norm(x, gain, bias)


@wrong("layer_norm", "vllm-project/vllm#24500")
def layer_norm_in_place(x, gain, bias, eps=1e-5):
    """The result is right, but x itself is changed on the way (-=, /=, *= or +=): the residual
    stream still needs it."""
    x -= x.mean(dim=-1, keepdim=True)
    x /= torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    return x * gain + bias


# rms_norm ------------------------------------------------------------------------------


@wrong("rms_norm")
def a_layer_norm(x, gain, eps=1e-6):
    """This is a layer norm without bias: rms_norm subtracts no mean."""
    return layer_norm(x, gain, torch.zeros_like(gain), eps)


@wrong("rms_norm")
def divided_by_the_deviation(x, gain, eps=1e-6):
    """You divide by the standard deviation. The root mean square is measured from 0, not from
    the mean."""
    return x / torch.sqrt(moments(x)[1] + eps) * gain


@wrong("rms_norm", same_as="divided_by_the_deviation")
def divided_by_the_deviation_of_a_sample(x, gain, eps=1e-6):
    return x / torch.sqrt(x.var(dim=-1, keepdim=True) + eps) * gain


@wrong("rms_norm")
def sum_instead_of_mean(x, gain, eps=1e-6):
    """You divide by the length of the vector, the root of the *sum* of squares; the root mean
    square takes their mean."""
    return x / torch.sqrt(x.square().sum(dim=-1, keepdim=True) + eps) * gain


@wrong("rms_norm")
def root_forgotten(x, gain, eps=1e-6):
    """You divide by the mean square; its root is missing."""
    return x / (x.square().mean(dim=-1, keepdim=True) + eps) * gain


@wrong("rms_norm", "mosaicml/llm-foundry#372")
def multiplied_by_the_root(x, gain, eps=1e-6):
    """You multiply by the root mean square (or divide by torch.rsqrt, which is 1 over the root
    already): what is large becomes larger."""
    return x * torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps) * gain


@wrong("rms_norm", "allenai/OLMo#281")
def rms_eps_outside_the_root(x, gain, eps=1e-6):
    """eps is added to the root; it belongs to the mean square, under the root."""
    return x / (x.square().mean(dim=-1, keepdim=True).sqrt() + eps) * gain


@wrong("rms_norm")
def rms_eps_left_out(x, gain, eps=1e-6):
    """eps is not used: a vector of zeros divides 0 by 0."""
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True)) * gain


@wrong("rms_norm", "ggml-org/llama.cpp#2373")
def rms_eps_always_the_same(x, gain, eps=1e-6):
    """Your eps is always 1e-6; use the argument."""
    return right.rms_norm(x, gain)


@wrong("rms_norm", "Lightning-AI/lit-llama#339")
def eps_of_the_layer_norm(x, gain, eps=1e-5):
    """The default of eps is 1e-6 here; 1e-5 is that of layer_norm."""
    return right.rms_norm(x, gain, eps)


@wrong("rms_norm")
def root_of_the_mean(x, gain, eps=1e-6):
    """You take the mean first and square it; square the numbers first, then take their mean."""
    return x / torch.sqrt(x.mean(dim=-1, keepdim=True).square() + eps) * gain


@wrong("rms_norm")
def mean_of_the_sizes(x, gain, eps=1e-6):
    """You divide by the mean of the absolute values; the root mean square squares the numbers
    before the mean and takes the root after it."""
    return x / (x.abs().mean(dim=-1, keepdim=True) + eps) * gain


@wrong("rms_norm", "linkedin/Liger-Kernel#74")
def gain_plus_one(x, gain, eps=1e-6):
    """You multiply by 1 + gain. Some models store their gains so that this is right (Gemma);
    here the gain is the factor itself."""
    return right.rms_norm(x, 1 + gain, eps)


@wrong("rms_norm")
def gain_first(x, gain, eps=1e-6):
    """The gain is used before the normalisation; it comes last."""
    return right.rms_norm(x * gain, torch.ones_like(gain), eps)


@wrong("rms_norm")
def gain_forgotten(x, gain, eps=1e-6):
    """The vectors are normalised, but the gain is not used."""
    return right.rms_norm(x, torch.ones_like(gain), eps)


@wrong("rms_norm", "google-deepmind/dm-haiku#700")
def one_root_for_all_positions(x, gain, eps=1e-6):
    """The mean square is taken over the positions, too. Each position needs its own: in a
    decoder, the future would leak into the past through it."""
    axes = tuple(range(-min(x.ndim, 2), 0))
    return x / torch.sqrt(x.square().mean(dim=axes, keepdim=True) + eps) * gain


@wrong("rms_norm", same_as="one_root_for_all_positions")
def one_root_for_everything(x, gain, eps=1e-6):
    return x / torch.sqrt(x.square().mean() + eps) * gain


@wrong("rms_norm")
def rms_axis_not_kept(x, gain, eps=1e-6):
    """The mean square has lost the last axis, so it broadcasts along the wrong one (or not at
    all): keep it, with length 1."""
    return x / torch.sqrt(x.square().mean(dim=-1) + eps) * gain


@wrong("rms_norm")
def rms_along_the_positions(x, gain, eps=1e-6):
    """The mean square is taken along the wrong axis: over the positions, for each feature. It
    belongs to the features of one position."""
    axis = 0 if x.ndim == 1 else -2
    return x / torch.sqrt(x.square().mean(dim=axis, keepdim=True) + eps) * gain


@wrong("rms_norm")
def rms_norm_in_place(x, gain, eps=1e-6):
    """The result is right, but x itself is changed on the way (/= or *=): the residual stream
    still needs it."""
    x /= torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    return x * gain


# rotary --------------------------------------------------------------------------------


def turn(a, b, angle):
    """The points (a, b), turned."""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos


def angles(positions, d_head, base=10000.0, power=-1.0):
    """(seq, d_head / 2)"""
    half = d_head // 2
    return positions[:, None] * base ** (power * torch.arange(half, dtype=torch.float64) / half)


def halves(x):
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


@wrong("rotary", "EleutherAI/gpt-neox#834")
def neighbours_are_pairs(x, positions, base=10000.0):
    """You pair neighbours, dimensions 2i and 2i + 1, as the paper does. Here dimension i is
    paired with i + d_head / 2. Each is right in a model that was trained with it; mixed, they
    give other scores."""
    pairs = turn(x[..., 0::2], x[..., 1::2], angles(positions, x.shape[-1], base))
    return torch.stack(pairs, dim=-1).flatten(-2)


@wrong("rotary")
def neighbours_in_halves_out(x, positions, base=10000.0):
    """You read neighbours as pairs and write the result as halves: the numbers come back in
    another order. Pair dimension i with i + d_head / 2, and leave each in its place."""
    pairs = turn(x[..., 0::2], x[..., 1::2], angles(positions, x.shape[-1], base))
    return torch.cat(pairs, dim=-1)


@wrong("rotary", "raiyanyahya/how-to-train-your-gpt#6")
def each_angle_twice_in_a_row(x, positions, base=10000.0):
    """The angles are laid out for neighbours (each twice in a row), but the pairs are halves:
    the two dimensions of a pair turn by different angles."""
    angle = angles(positions, x.shape[-1], base).repeat_interleave(2, dim=-1)
    a, b = halves(x)
    return x * angle.cos().to(x.dtype) + torch.cat([-b, a], dim=-1) * angle.sin().to(x.dtype)


@wrong("rotary")
def turned_backwards(x, positions, base=10000.0):
    """The sign of the sine is wrong: your pairs turn backwards. It is a cos - b sin and
    a sin + b cos."""
    return right.rotary(x, -positions, base)


@wrong("rotary")
def first_half_already_turned(x, positions, base=10000.0):
    """The second half is computed from the first one after it was turned: keep the old a for
    the new b."""
    a, b = halves(x)
    angle = angles(positions, x.shape[-1], base)
    a, _ = turn(a, b, angle)
    return torch.cat([a, turn(a, b, angle)[1]], dim=-1)


@wrong("rotary")
def mirrored(x, positions, base=10000.0):
    """Both sines have the same sign: that is no rotation, and lengths change. One of them is
    negative."""
    a, b = halves(x)
    angle = angles(positions, x.shape[-1], base)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([a * cos + b * sin, a * sin + b * cos], dim=-1)


@wrong("rotary")
def frequencies_fall_too_slowly(x, positions, base=10000.0):
    """The exponent is -i / d_head; it is -2i / d_head, so that the frequencies fall from 1 to
    nearly 1 / base over the d_head / 2 pairs."""
    return torch.cat(turn(*halves(x), angles(positions, x.shape[-1], base, -0.5)), dim=-1)


@wrong("rotary")
def frequencies_fall_too_fast(x, positions, base=10000.0):
    """The exponent falls twice as fast as it should: it is -2i / d_head, which is
    -i / (d_head / 2), not -2i / (d_head / 2)."""
    return torch.cat(turn(*halves(x), angles(positions, x.shape[-1], base, -2.0)), dim=-1)


@wrong("rotary")
def frequencies_rise(x, positions, base=10000.0):
    """The exponent has the wrong sign: the frequencies fall with i, from 1 towards 1 / base."""
    return torch.cat(turn(*halves(x), angles(positions, x.shape[-1], base, 1.0)), dim=-1)


@wrong("rotary")
def all_pairs_alike(x, positions, base=10000.0):
    """Every pair turns by the position itself: the frequency of pair i is
    base ** (-2 i / d_head), and only the first is 1."""
    return torch.cat(turn(*halves(x), angles(positions, x.shape[-1], 1.0)), dim=-1)


@wrong("rotary", "mosaicml/examples#244")
def counted_from_zero(x, positions, base=10000.0):
    """The positions that you were given are not used: you count 0, 1, 2, ... along the
    sequence. With a KV cache the newest token does not stand at position 0."""
    return right.rotary(x, torch.arange(x.shape[-2]), base)


@wrong("rotary")
def counted_from_one(x, positions, base=10000.0):
    """Every position is one too large: position 0 does not turn at all."""
    return right.rotary(x, positions + 1, base)


@wrong("rotary", "mlfoundations/open_lm#4")
def heads_for_positions(x, positions, base=10000.0):
    """The angles run along the heads instead of the sequence: x is (..., heads, seq, d_head)."""
    return right.rotary(x.transpose(-2, -3), positions, base).transpose(-2, -3)


@wrong("rotary")
def base_always_the_same(x, positions, base=10000.0):
    """The base is always 10000; use the argument."""
    return right.rotary(x, positions)


@wrong("rotary", "huggingface/transformers#29285")
def positions_in_bfloat16(x, positions, base=10000.0):
    """Positions or angles are rounded to bfloat16, which holds 8 binary digits: 257 becomes
    256. Use float32 for them, whatever the model computes in."""
    angle = angles(positions.bfloat16(), x.shape[-1], base)
    return torch.cat(turn(*halves(x), angle), dim=-1)


@wrong("rotary", same_as="positions_in_bfloat16")
def angles_in_bfloat16(x, positions, base=10000.0):
    angle = angles(positions, x.shape[-1], base).bfloat16().double()
    return torch.cat(turn(*halves(x), angle), dim=-1)


@wrong("rotary")
def added_instead_of_turned(x, positions, base=10000.0):
    """You add sines and cosines to x, as sinusoidal positions do; rotary positions turn pairs
    of its dimensions."""
    angle = angles(positions, x.shape[-1], base)
    return x + torch.cat([angle.sin(), angle.cos()], dim=-1).to(x.dtype)


@wrong("rotary")
def rotary_in_place(x, positions, base=10000.0):
    """The result is right, but x itself is changed on the way (x[..., :half] = ... or +=):
    make a new tensor."""
    x.copy_(right.rotary(x, positions, base))
    return x


# decoder_block -------------------------------------------------------------------------


def split(y, n_heads):
    return y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def merge(y):
    return y.transpose(-2, -3).flatten(-2)


def weigh(scores, allowed):
    allowed = allowed.unsqueeze(-3)
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    return weights.masked_fill(~allowed, 0)


def attention(y, p, n_heads, allowed, *, split=split, merge=merge, weigh=weigh, scale=1.0):
    q, k, v = (split(y @ p[name], n_heads) for name in ("w_q", "w_k", "w_v"))
    scores = scale * (q @ k.mT) / q.shape[-1] ** 0.5
    return merge(weigh(scores, allowed) @ v) @ p["w_o"]


def mlp(y, p, activation=gelu):
    return activation(y @ p["w_up"] + p["b_up"]) @ p["w_down"] + p["b_down"]


def norm(x, p, which):
    return layer_norm(x, p[f"norm{which}_gain"], p[f"norm{which}_bias"])


def with_attention(x, p, n_heads, allowed, **changes):
    """A block that is right, apart from these changes to its attention."""
    x = x + attention(norm(x, p, 1), p, n_heads, allowed, **changes)
    return x + mlp(norm(x, p, 2), p)


def with_mlp(x, p, n_heads, allowed, changed):
    """A block that is right, apart from its MLP."""
    x = x + attention(norm(x, p, 1), p, n_heads, allowed)
    return x + changed(norm(x, p, 2), p)


@wrong("decoder_block")
def norm_after_the_sum(x, params, n_heads, allowed):
    """This is post-norm, as in the first Transformer: the sum is normalised. Here only what
    attention and MLP read is normalised, and the stream is not."""
    x = norm(x + attention(x, params, n_heads, allowed), params, 1)
    return norm(x + mlp(x, params), params, 2)


@wrong("decoder_block", "pytorch/pytorch#61165")
def normalised_stream(x, params, n_heads, allowed):
    """x is overwritten by its normalised form, and that is what attention and MLP are added
    to. Keep x: it is x + f(norm(x)), not norm(x) + f(norm(x))."""
    x = norm(x, params, 1)
    x = x + attention(x, params, n_heads, allowed)
    x = norm(x, params, 2)
    return x + mlp(x, params)


@wrong("decoder_block")
def output_normalised(x, params, n_heads, allowed):
    """Attention's and the MLP's *outputs* are normalised; here it is what they read."""
    x = x + norm(attention(x, params, n_heads, allowed), params, 1)
    return x + norm(mlp(x, params), params, 2)


@wrong("decoder_block")
def nothing_normalised(x, params, n_heads, allowed):
    """Neither attention nor the MLP reads through a norm: the four norm parameters are not
    used."""
    x = x + attention(x, params, n_heads, allowed)
    return x + mlp(x, params)


@wrong("decoder_block")
def mlp_not_normalised(x, params, n_heads, allowed):
    """The MLP reads the stream as it is: it needs a norm of its own, norm2."""
    x = x + attention(norm(x, params, 1), params, n_heads, allowed)
    return x + mlp(x, params)


@wrong("decoder_block", "ml-explore/mlx#1636")
def first_norm_twice(x, params, n_heads, allowed):
    """The first norm's gain and bias are used before the MLP, too: that is what norm2_gain and
    norm2_bias are for."""
    x = x + attention(norm(x, params, 1), params, n_heads, allowed)
    return x + mlp(norm(x, params, 1), params)


@wrong("decoder_block")
def no_residual(x, params, n_heads, allowed):
    """What goes in is lost: attention and MLP *replace* the stream, and should be added to
    it."""
    x = attention(norm(x, params, 1), params, n_heads, allowed)
    return mlp(norm(x, params, 2), params)


@wrong("decoder_block", "kyegomez/BitNet#32")
def no_residual_around_attention(x, params, n_heads, allowed):
    """Attention replaces the stream, and should be added to it."""
    x = attention(norm(x, params, 1), params, n_heads, allowed)
    return x + mlp(norm(x, params, 2), params)


@wrong("decoder_block", "kyegomez/BitNet#32", same_as="no_residual_around_attention")
def attention_added_to_itself(x, params, n_heads, allowed):
    x = attention(norm(x, params, 1), params, n_heads, allowed)
    x = x + x
    return x + mlp(norm(x, params, 2), params)


@wrong("decoder_block")
def no_residual_around_the_mlp(x, params, n_heads, allowed):
    """The MLP replaces the stream, and should be added to it."""
    x = x + attention(norm(x, params, 1), params, n_heads, allowed)
    return mlp(norm(x, params, 2), params)


@wrong("decoder_block", "strutive07/transformer-tensorflow2.0#14")
def mlp_added_to_the_input(x, params, n_heads, allowed):
    """The MLP is added to what went into the block: attention's own contribution is lost from
    the stream. Add it to the stream after attention."""
    after = x + attention(norm(x, params, 1), params, n_heads, allowed)
    return x + mlp(norm(after, params, 2), params)


@wrong("decoder_block")
def side_by_side(x, params, n_heads, allowed):
    """Attention and MLP both read the stream that enters the block, side by side (some models
    are built so). Here the MLP reads it after attention has been added."""
    y = attention(norm(x, params, 1), params, n_heads, allowed)
    return x + y + mlp(norm(x, params, 2), params)


@wrong("decoder_block")
def mlp_first(x, params, n_heads, allowed):
    """The order is attention, then MLP; yours runs the MLP first."""
    x = x + mlp(norm(x, params, 2), params)
    return x + attention(norm(x, params, 1), params, n_heads, allowed)


@wrong("decoder_block")
def gelu_by_tanh(x, params, n_heads, allowed):
    """This is the tanh approximation of the GELU, as in GPT-2. It differs from the exact one,
    which has the error function, in the fourth decimal."""
    activation = torch.nn.GELU(approximate="tanh")
    return with_mlp(x, params, n_heads, allowed, lambda y, p: mlp(y, p, activation))


@wrong("decoder_block")
def gelu_by_sigmoid(x, params, n_heads, allowed):
    """This is the approximation y sigmoid(1.702 y) of the GELU, which is off by up to 0.02: the
    exact one has the error function."""
    return with_mlp(
        x, params, n_heads, allowed, lambda y, p: mlp(y, p, lambda h: h * torch.sigmoid(1.702 * h))
    )


@wrong("decoder_block")
def relu_for_gelu(x, params, n_heads, allowed):
    """The MLP has a ReLU, as in the first Transformer; here it is a GELU."""
    return with_mlp(x, params, n_heads, allowed, lambda y, p: mlp(y, p, relu))


@wrong("decoder_block")
def silu_for_gelu(x, params, n_heads, allowed):
    """The MLP has a SiLU (swish), y sigmoid(y); here it is a GELU."""
    return with_mlp(x, params, n_heads, allowed, lambda y, p: mlp(y, p, torch.nn.SiLU()))


@wrong("decoder_block")
def no_activation(x, params, n_heads, allowed):
    """There is no GELU between the two matrices of the MLP; without one they are no more than
    a single matrix."""
    return with_mlp(x, params, n_heads, allowed, lambda y, p: mlp(y, p, lambda h: h))


@wrong("decoder_block")
def activation_at_the_end(x, params, n_heads, allowed):
    """The GELU comes after w_down; it belongs between the two matrices."""
    return with_mlp(x, params, n_heads, allowed, lambda y, p: gelu(mlp(y, p, lambda h: h)))


@wrong("decoder_block")
def mlp_without_biases(x, params, n_heads, allowed):
    """b_up and b_down are not used."""
    return with_mlp(x, params, n_heads, allowed, lambda y, p: gelu(y @ p["w_up"]) @ p["w_down"])


@wrong("decoder_block")
def last_bias_forgotten(x, params, n_heads, allowed):
    """b_down is not used: it is added after the last matrix of the MLP."""
    return with_mlp(x, params, n_heads, allowed, lambda y, p: mlp(y, p) - p["b_down"])


@wrong("decoder_block", "omihub777/ViT-CIFAR#11")
def scaled_by_d_model(x, params, n_heads, allowed):
    """The scores are divided by the root of d_model; with several heads it is that of d_head,
    the length of one head's queries."""
    return with_attention(x, params, n_heads, allowed, scale=n_heads**-0.5)


@wrong("decoder_block")
def not_scaled(x, params, n_heads, allowed):
    """The scores are not divided by the root of d_head."""
    return with_attention(
        x, params, n_heads, allowed, scale=(x.shape[-1] // n_heads) ** 0.5
    )  # fmt: skip


@wrong("decoder_block")
def one_head(x, params, n_heads, allowed):
    """Your attention has a single head, whatever n_heads says."""
    return decoder_block(x, params, 1, allowed)


@wrong("decoder_block", "jsbaan/transformer-from-scratch#6")
def heads_not_moved_back(x, params, n_heads, allowed):
    """The heads are joined while they still stand in front of the sequence: the numbers of
    different positions get mixed. Move the axis back first."""
    return with_attention(x, params, n_heads, allowed, merge=lambda y: y.reshape(x.shape))


@wrong("decoder_block")
def heads_cut_from_the_sequence(x, params, n_heads, allowed):
    """A reshape straight to (heads, seq, d_head) cuts the sequence into pieces instead of the
    features: split the last axis, then move the heads in front."""

    def cut(y, n_heads):
        *batch, seq, d_model = y.shape
        return y.reshape(*batch, n_heads, seq, d_model // n_heads)

    return with_attention(x, params, n_heads, allowed, split=cut)


@wrong("decoder_block", same_as="heads_cut_from_the_sequence")
def heads_cut_and_joined(x, params, n_heads, allowed):
    def cut(y, n_heads):
        *batch, seq, d_model = y.shape
        return y.reshape(*batch, n_heads, seq, d_model // n_heads)

    return with_attention(
        x, params, n_heads, allowed, split=cut, merge=lambda y: y.reshape(x.shape)
    )  # fmt: skip


@wrong("decoder_block")
def heads_take_turns(x, params, n_heads, allowed):
    """The features are dealt out to the heads in turn (0, 2, ... and 1, 3, ...): each head owns
    d_head neighbours."""
    return with_attention(
        x, params, n_heads, allowed,
        split=lambda y, n: y.unflatten(-1, (-1, n)).movedim(-1, -3),
    )  # fmt: skip


@wrong("decoder_block")
def output_matrix_forgotten(x, params, n_heads, allowed):
    """w_o is not used: the joined heads go through it before they are added."""
    return decoder_block(x, {**params, "w_o": torch.eye(x.shape[-1]).to(x)}, n_heads, allowed)


@wrong("decoder_block")
def matrices_transposed(x, params, n_heads, allowed):
    """The matrices are used as nn.Linear keeps them, transposed: here a projection is
    x @ w."""
    squares = {name: params[name].T for name in ("w_q", "w_k", "w_v", "w_o")}
    return decoder_block(x, {**params, **squares}, n_heads, allowed)


@wrong("decoder_block")
def values_not_normalised(x, params, n_heads, allowed):
    """The values are made from the stream as it is: queries, keys and values all read through
    the norm."""
    y = norm(x, params, 1)
    q, k, v = (split(z @ params[w], n_heads) for z, w in ((y, "w_q"), (y, "w_k"), (x, "w_v")))
    weights = weigh(q @ k.mT / q.shape[-1] ** 0.5, allowed)
    x = x + merge(weights @ v) @ params["w_o"]
    return x + mlp(norm(x, params, 2), params)


@wrong("decoder_block", "stanford-cs336/assignment1-basics#51")
def mask_forgotten(x, params, n_heads, allowed):
    """The mask has no effect: every query sees every key, the future included."""
    return decoder_block(x, params, n_heads, torch.ones_like(allowed))


@wrong("decoder_block", "rasbt/LLMs-from-scratch#1061")
def mask_upside_down(x, params, n_heads, allowed):
    """The mask is read the wrong way round: True means may attend."""
    return decoder_block(x, params, n_heads, ~allowed)


@wrong("decoder_block", same_as="mask_upside_down")
def mask_upside_down_with_nan(x, params, n_heads, allowed):
    return with_attention(
        x, params, n_heads, allowed,
        weigh=lambda scores, m: scores.masked_fill(m.unsqueeze(-3), -torch.inf).softmax(-1),
    )  # fmt: skip


@wrong("decoder_block")
def mask_after_the_softmax(x, params, n_heads, allowed):
    """The mask is applied after the softmax: closed keys no longer count, but they have already
    taken weight from the others. Close them before it."""
    return with_attention(
        x, params, n_heads, allowed, weigh=lambda s, m: s.softmax(-1) * m.unsqueeze(-3)
    )  # fmt: skip


@wrong("decoder_block", "georg-wolflein/good-features#1")
def closed_scores_zero(x, params, n_heads, allowed):
    """Closed scores are set to 0, which is a score like any other: exp(0) = 1."""
    return with_attention(
        x, params, n_heads, allowed, weigh=lambda s, m: (s * m.unsqueeze(-3)).softmax(-1)
    )  # fmt: skip


@wrong("decoder_block", "nerminnuraydogan/vision-transformer#1")
def softmax_over_queries(x, params, n_heads, allowed):
    """The softmax runs over the queries: each *key's* weights sum to 1. It belongs to the last
    axis, the keys."""

    def over_queries(scores, allowed):
        scores = scores.masked_fill(~allowed.unsqueeze(-3), -torch.inf)
        return scores.softmax(dim=-2).nan_to_num(0.0)

    return with_attention(x, params, n_heads, allowed, weigh=over_queries)


@wrong("decoder_block", "pytorch/pytorch#41508")
def nan_without_keys(x, params, n_heads, allowed):
    """A query with no allowed key gets NaN: the softmax of nothing but -inf is 0 / 0. Set its
    weights to 0."""
    return with_attention(
        x, params, n_heads, allowed,
        weigh=lambda s, m: s.masked_fill(~m.unsqueeze(-3), -torch.inf).softmax(-1),
    )  # fmt: skip


@wrong("decoder_block")
def mean_without_keys(x, params, n_heads, allowed):
    """A query with no allowed key gets the mean of all values, because a row of equal large
    negative scores has equal weights. Set the weights of closed keys to 0 after the softmax."""
    return with_attention(
        x, params, n_heads, allowed,
        weigh=lambda s, m: s.masked_fill(~m.unsqueeze(-3), -1e9).softmax(-1),
    )  # fmt: skip


@wrong("decoder_block")
def heads_axis_forgotten(x, params, n_heads, allowed):
    """The mask has no axis for the heads: with a batch, its first axis meets the heads instead
    of the sequences. Insert an axis before the queries."""

    def without_axis(scores, allowed):
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        return weights.masked_fill(~allowed, 0)

    return with_attention(x, params, n_heads, allowed, weigh=without_axis)


@wrong("decoder_block", "vllm-project/vllm#24500")
def stream_in_place(x, params, n_heads, allowed):
    """The result is right, but x itself is changed on the way: `x += ...` writes into the
    caller's tensor. Write x = x + ..."""
    x += attention(norm(x, params, 1), params, n_heads, allowed)
    x += mlp(norm(x, params, 2), params)
    return x


# decoder_logits ------------------------------------------------------------------------


def embedded(tokens, params):
    return params["token_embedding"][tokens] + params["position_embedding"][: tokens.shape[-1]]


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def run(x, params, n_heads, allowed=None):
    """The blocks."""
    allowed = causal(x.shape[-2]) if allowed is None else allowed
    for block in params["blocks"]:
        x = decoder_block(x, block, n_heads, allowed)
    return x


def read_off(x, params):
    """Last norm and logits."""
    x = layer_norm(x, params["norm_gain"], params["norm_bias"])
    return x @ params["token_embedding"].T


@wrong("decoder_logits", "stanford-cs336/assignment1-basics#51")
def no_mask_at_all(tokens, params, n_heads):
    """Every position sees the whole sequence, the token that it is to predict included: the
    blocks need a causal mask."""
    seq = tokens.shape[-1]
    everything = torch.ones(seq, seq, dtype=torch.bool)
    return read_off(run(embedded(tokens, params), params, n_heads, everything), params)


@wrong("decoder_logits")
def upper_triangle(tokens, params, n_heads):
    """The triangle is the upper one: each position sees its future, and not its past."""
    seq = tokens.shape[-1]
    return read_off(run(embedded(tokens, params), params, n_heads, causal(seq).T), params)


@wrong("decoder_logits", "pbloem/former#10")
def not_even_itself(tokens, params, n_heads):
    """The mask closes the diagonal as well: a position may see its own token, which is known;
    it predicts the next one."""
    mask = causal(tokens.shape[-1]).tril(-1)
    return read_off(run(embedded(tokens, params), params, n_heads, mask), params)


@wrong("decoder_logits")
def blocked_polarity(tokens, params, n_heads):
    """The mask says which keys are blocked; here True means may attend."""
    mask = ~causal(tokens.shape[-1])
    return read_off(run(embedded(tokens, params), params, n_heads, mask), params)


@wrong("decoder_logits", "linkedin/Liger-Kernel#269")
def first_block_again_and_again(tokens, params, n_heads):
    """The first block's parameters are used for every block (as with [block] * n): each has
    its own."""
    again = {**params, "blocks": params["blocks"][:1] * len(params["blocks"])}
    return read_off(run(embedded(tokens, params), again, n_heads), params)


@wrong("decoder_logits", "TrenTorch/TrenTorch#141", same_as="first_block_again_and_again")
def last_block_again_and_again(tokens, params, n_heads):
    again = {**params, "blocks": params["blocks"][-1:] * len(params["blocks"])}
    return read_off(run(embedded(tokens, params), again, n_heads), params)


@wrong("decoder_logits")
def only_one_block(tokens, params, n_heads):
    """Only one block runs; all of them do, one after the other (is the `return` inside the
    loop, or does each block read the embeddings anew?)."""
    one = {**params, "blocks": params["blocks"][:1]}
    return read_off(run(embedded(tokens, params), one, n_heads), params)


@wrong("decoder_logits", same_as="only_one_block")
def blocks_read_the_embeddings(tokens, params, n_heads):
    last = {**params, "blocks": params["blocks"][-1:]}
    return read_off(run(embedded(tokens, params), last, n_heads), params)


@wrong("decoder_logits")
def blocks_backwards(tokens, params, n_heads):
    """The blocks run from the last to the first."""
    return read_off(
        run(embedded(tokens, params), {**params, "blocks": params["blocks"][::-1]}, n_heads), params
    )


@wrong("decoder_logits", "PaddlePaddle/PaddleNLP#571")
def last_norm_forgotten(tokens, params, n_heads):
    """The stream goes to the logits as it is; a pre-norm decoder has one more norm, after its
    last block."""
    return run(embedded(tokens, params), params, n_heads) @ params["token_embedding"].T


@wrong("decoder_logits")
def norm_after_each_block(tokens, params, n_heads):
    """The last norm is used after each block; it comes once, after all of them."""
    x = embedded(tokens, params)
    for block in params["blocks"]:
        x = decoder_block(x, block, n_heads, causal(x.shape[-2]))
        x = layer_norm(x, params["norm_gain"], params["norm_bias"])
    return x @ params["token_embedding"].T


@wrong("decoder_logits")
def norm_before_the_blocks(tokens, params, n_heads):
    """norm_gain and norm_bias normalise the embeddings, before the blocks; they belong after
    the last block."""
    x = layer_norm(embedded(tokens, params), params["norm_gain"], params["norm_bias"])
    return run(x, params, n_heads) @ params["token_embedding"].T


@wrong("decoder_logits")
def positions_forgotten(tokens, params, n_heads):
    """No positions are added to the token embeddings."""
    return read_off(run(params["token_embedding"][tokens], params, n_heads), params)


@wrong("decoder_logits", "DiffPoseTalk/DiffPoseTalk#20")
def one_position_for_all(tokens, params, n_heads):
    """One row of position_embedding is added at every position ([seq] picks a row, [:seq] cuts
    the table): each position has its own row."""
    seq = tokens.shape[-1]
    x = params["token_embedding"][tokens] + params["position_embedding"][seq - 1]
    return read_off(run(x, params, n_heads), params)


@wrong("decoder_logits", same_as="one_position_for_all")
def position_one_past_the_end(tokens, params, n_heads):
    x = params["token_embedding"][tokens] + params["position_embedding"][tokens.shape[-1]]
    return read_off(run(x, params, n_heads), params)


@wrong("decoder_logits")
def positions_looked_up_by_token(tokens, params, n_heads):
    """The position embedding is looked up with the token ids; its rows are the positions 0,
    1, 2, ..."""
    x = params["token_embedding"][tokens] + params["position_embedding"][tokens]
    return read_off(run(x, params, n_heads), params)


@wrong("decoder_logits")
def positions_from_one(tokens, params, n_heads):
    """The positions start at 1; they count from 0."""
    table = params["position_embedding"].roll(-1, 0)
    return read_off(run(embedded(tokens, {**params, "position_embedding": table}), params, n_heads),
                    params)  # fmt: skip


@wrong("decoder_logits")
def positions_on_the_batch(tokens, params, n_heads):
    """The position embedding follows the first axis, the batch, instead of the sequence."""
    rows = params["position_embedding"][: tokens.shape[0]]
    if tokens.ndim > 1:
        rows = rows.unflatten(0, (-1, *[1] * (tokens.ndim - 1)))
    return read_off(run(params["token_embedding"][tokens] + rows, params, n_heads), params)


@wrong("decoder_logits")
def positions_in_every_block(tokens, params, n_heads):
    """The positions are added before every block; they are added once, to the embeddings."""
    x = params["token_embedding"][tokens]
    for block in params["blocks"]:
        x = x + params["position_embedding"][: x.shape[-2]]
        x = decoder_block(x, block, n_heads, causal(x.shape[-2]))
    return read_off(x, params)


@wrong("decoder_logits")
def embeddings_scaled(tokens, params, n_heads):
    """The token embeddings are multiplied by the root of d_model, as in the first Transformer;
    here they are used as they are."""
    root = params["token_embedding"].shape[-1] ** 0.5
    x = root * params["token_embedding"][tokens] + params["position_embedding"][: tokens.shape[-1]]
    return read_off(run(x, params, n_heads), params)


@wrong("decoder_logits", "bkitano/llama-from-scratch#5")
def probabilities(tokens, params, n_heads):
    """These are probabilities, or the logarithms of some; logits are what goes into the softmax,
    and the loss takes the softmax itself."""
    return right.decoder_logits(tokens, params, n_heads).softmax(dim=-1)


@wrong("decoder_logits", same_as="probabilities")
def log_probabilities(tokens, params, n_heads):
    return right.decoder_logits(tokens, params, n_heads).log_softmax(dim=-1)


@wrong("decoder_logits")
def last_position_only(tokens, params, n_heads):
    """Only the last position's logits come back. Training needs those of every position, and
    generation picks the last itself."""
    return right.decoder_logits(tokens, params, n_heads)[..., -1, :]


@wrong("decoder_logits")
def stream_instead_of_logits(tokens, params, n_heads):
    """This is the stream after the last norm; compared with all token embeddings it gives the
    logits, one for each token of the vocabulary."""
    x = run(embedded(tokens, params), params, n_heads)
    return layer_norm(x, params["norm_gain"], params["norm_bias"])


@wrong("decoder_logits")
def next_token(tokens, params, n_heads):
    """These are the ids of the most likely tokens; the logits themselves are wanted."""
    return right.decoder_logits(tokens, params, n_heads).argmax(dim=-1)


@wrong("decoder_logits")
def single_head(tokens, params, n_heads):
    """The blocks run with a single head, whatever n_heads says."""
    return right.decoder_logits(tokens, params, 1)


@wrong("decoder_logits")
def batch_attends_to_itself(tokens, params, n_heads):
    """The sequences of a batch reach each other: flattened into one long sequence, a token
    sees those of other sequences. Attention stays within the seq axis."""
    x = embedded(tokens, params)
    return read_off(run(x.flatten(0, -2), params, n_heads).reshape(x.shape), params)


@wrong("decoder_logits")
def blocks_used_up(tokens, params, n_heads):
    """The logits are right, but the call empties params["blocks"] (pop, or reverse): read from
    it only, or the next call finds a decoder without blocks."""
    logits = right.decoder_logits(tokens, params, n_heads)
    while params["blocks"]:
        params["blocks"].pop(0)
    return logits


# decoder_parameters --------------------------------------------------------------------


def counted(config, **changes):
    """The number of parameters, from its parts, with some of them changed."""
    vocab, d_model, n_layers, _, d_ff, max_seq = (
        config[name] for name in ("vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_seq")
    )
    parts = {
        "tokens": vocab * d_model,
        "positions": max_seq * d_model,
        "layers": n_layers,
        "attention": 4 * d_model**2,
        "mlp": 2 * d_model * d_ff + d_ff + d_model,
        "norms": 4 * d_model,
        "last_norm": 2 * d_model,
        "output": 0,
    } | changes
    layer = parts["attention"] + parts["mlp"] + parts["norms"]
    around = parts["tokens"] + parts["positions"] + parts["last_norm"] + parts["output"]
    return parts["layers"] * layer + around


@wrong("decoder_parameters", "karpathy/llama2.c#378")
def output_layer_counted_again(config):
    """The token embedding is counted twice; the output layer is tied to it, and adds
    nothing."""
    return counted(config, output=config["vocab"] * config["d_model"])


@wrong("decoder_parameters")
def positions_not_counted(config):
    """The position embedding is missing: max_seq rows of d_model numbers."""
    return counted(config, positions=0)


@wrong("decoder_parameters")
def embeddings_not_counted(config):
    """The embeddings are missing: only the layers and the last norm are counted."""
    return counted(config, positions=0, tokens=0)


@wrong("decoder_parameters")
def last_norm_not_counted(config):
    """The last norm, after the blocks, is missing."""
    return counted(config, last_norm=0)


@wrong("decoder_parameters")
def norms_not_counted(config):
    """The norms are missing: each has a gain and a bias."""
    return counted(config, norms=0, last_norm=0)


@wrong("decoder_parameters")
def norms_without_bias(config):
    """Each norm is counted with a gain only, as an RMSNorm; these are LayerNorms, which have a
    bias, too."""
    d_model = config["d_model"]
    return counted(config, norms=2 * d_model, last_norm=d_model)


@wrong("decoder_parameters")
def one_norm_in_a_layer(config):
    """Each layer is counted with one norm; it has two, one before attention and one before the
    MLP."""
    return counted(config, norms=2 * config["d_model"])


@wrong("decoder_parameters")
def attention_with_biases(config):
    """The attention matrices are counted with biases, as in GPT-2; this decoder's attention
    has none."""
    d_model = config["d_model"]
    return counted(config, attention=4 * d_model**2 + 4 * d_model)


@wrong("decoder_parameters")
def three_matrices(config):
    """Each layer has four square matrices: w_q, w_k, w_v, and w_o, which is missing."""
    return counted(config, attention=3 * config["d_model"] ** 2)


@wrong("decoder_parameters")
def matrices_for_each_head(config):
    """You count full matrices for every head; the heads share them, each using d_head of their
    columns."""
    return counted(config, attention=4 * config["d_model"] ** 2 * config["n_heads"])


@wrong("decoder_parameters")
def heads_divide_the_matrices(config):
    """You count the matrices of one head only: all heads together fill (d_model, d_model)."""
    return counted(config, attention=4 * config["d_model"] ** 2 // config["n_heads"])


@wrong("decoder_parameters")
def mlp_without_its_biases(config):
    """The MLP's biases are missing: d_ff and d_model numbers."""
    return counted(config, mlp=2 * config["d_model"] * config["d_ff"])


@wrong("decoder_parameters")
def mlp_bias_of_one_width(config):
    """The two biases of the MLP differ in length: b_up has d_ff numbers, b_down has
    d_model."""
    d_model, d_ff = config["d_model"], config["d_ff"]
    return counted(config, mlp=2 * d_model * d_ff + 2 * d_ff)


@wrong("decoder_parameters")
def one_matrix_in_the_mlp(config):
    """The MLP has two matrices, up and down."""
    d_model, d_ff = config["d_model"], config["d_ff"]
    return counted(config, mlp=d_model * d_ff + d_ff + d_model)


@wrong("decoder_parameters")
def four_times_d_model(config):
    """The MLP is counted as 4 d_model wide; use d_ff."""
    return counted({**config, "d_ff": 4 * config["d_model"]})


@wrong("decoder_parameters")
def a_single_layer(config):
    """One layer is counted; there are n_layers of them."""
    return counted(config, layers=1)


@wrong("decoder_parameters")
def embeddings_in_every_layer(config):
    """Everything is multiplied by n_layers; embeddings and last norm are there once."""
    return config["n_layers"] * counted(config, layers=1)


@wrong("decoder_parameters")
def layers_share_their_norms(config):
    """The norms of the layers are counted once; each layer has its own two."""
    return counted(config, norms=0) + 4 * config["d_model"]


@wrong("decoder_parameters")
def sizes_used_up(config):
    """The count is right, but the call changes `config` (pop, or assigning to a key): read
    from it only."""
    found = right.decoder_parameters(config)
    config.pop("n_heads")
    return found
