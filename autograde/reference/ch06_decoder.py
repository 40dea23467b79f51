"""Chapter 6: a decoder, from its norms to its logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def layer_norm(
    x: Float[Tensor, "*batch feature"],
    gain: Float[Tensor, " feature"],
    bias: Float[Tensor, " feature"],
    eps: float = 1e-5,
) -> Float[Tensor, "*batch feature"]:
    """Give each vector mean 0 and variance 1, then scale and shift each feature.

    (x - mean) / sqrt(variance + eps) * gain + bias (Ba et al. 2016), with the mean
    and the population variance (divided by the number of features) of each vector.

    Parameters
    ----------
    x: vectors along the last axis; `*batch` are any axes in front of it, or none.
    gain, bias: one number for each feature.
    eps: added to the variance, so that a constant vector is not divided by 0.

    Returns
    -------
    tensor of the shape of `x`.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * gain + bias


def rms_norm(
    x: Float[Tensor, "*batch feature"],
    gain: Float[Tensor, " feature"],
    eps: float = 1e-6,
) -> Float[Tensor, "*batch feature"]:
    """Give each vector root mean square 1, then scale each feature.

    x / sqrt(mean of the squares + eps) * gain (Zhang and Sennrich 2019), with the
    mean over the vector's features. Nothing is subtracted.

    Parameters
    ----------
    x: vectors along the last axis; `*batch` are any axes in front of it, or none.
    gain: one number for each feature.
    eps: added to the mean square, so that a zero vector is not divided by 0.

    Returns
    -------
    tensor of the shape of `x`.
    """
    mean_square = x.square().mean(dim=-1, keepdim=True)
    return x / torch.sqrt(mean_square + eps) * gain


def rotary(
    x: Float[Tensor, "*batch heads seq d_head"],
    positions: Int[Tensor, " seq"],
    base: float = 10000.0,
) -> Float[Tensor, "*batch heads seq d_head"]:
    """Turn queries or keys by angles that grow with their positions.

    Dimensions i and i + d_head / 2 are the coordinates (a, b) of a point, and the
    point turns by t = position * base ** (-2 i / d_head) (after Su et al. 2021):
    (a, b) becomes (a cos t - b sin t, a sin t + b cos t).

    Parameters
    ----------
    x: queries or keys; d_head is even.
    positions: integers, the position of each vector along the `seq` axis.
    base: the larger it is, the slower the later pairs turn.

    Returns
    -------
    tensor of the shape of `x`. Angles in float32 are accurate enough.
    """
    half = x.shape[-1] // 2
    i = torch.arange(half, dtype=torch.float64, device=x.device)
    angle = positions[:, None] * base ** (-i / half)  # (seq, half)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def decoder_block(
    x: Float[Tensor, "*batch seq d_model"],
    params: dict[str, Tensor],
    n_heads: int,
    allowed: Bool[Tensor, "*batch query key"],
) -> Float[Tensor, "*batch seq d_model"]:
    """One layer of a decoder: attention, then an MLP, each added to the stream.

    Pre-norm: first x + attention(layer_norm(x)), then the same with the MLP and a
    norm of its own. Attention has n_heads heads and no bias. The MLP of y is
    gelu(y w_up + b_up) w_down + b_down, with the exact (erf) GELU.

    Parameters
    ----------
    x: the stream, one vector for each position.
    params: norm1_gain, norm1_bias, norm2_gain, norm2_bias, b_down: (d_model,);
        w_q, w_k, w_v, w_o: (d_model, d_model); w_up: (d_model, d_ff);
        b_up: (d_ff,); w_down: (d_ff, d_model). Matrices are used as x @ w.
    n_heads: divides d_model. Head h owns the features h * d_head, ...,
        (h + 1) * d_head - 1 of the queries, keys, values and joined outputs.
    allowed: bool tensor, True = may attend: (query, key), or (*batch, query, key)
        where the query axis may be 1. All heads share it.

    Returns
    -------
    tensor of the shape of `x`. Attention adds nothing where no key is allowed.
    """
    d_head = x.shape[-1] // n_heads

    def heads(y, w):  # (*batch, heads, seq, d_head)
        return (y @ w).unflatten(-1, (n_heads, d_head)).transpose(-2, -3)

    y = layer_norm(x, params["norm1_gain"], params["norm1_bias"])
    q, k, v = (heads(y, params[name]) for name in ("w_q", "w_k", "w_v"))
    closed = ~allowed.unsqueeze(-3)  # an axis for the heads
    scores = (q @ k.mT / d_head**0.5).masked_fill(closed, -torch.inf)
    weights = scores.softmax(dim=-1)  # NaN where no key is allowed
    out = weights.masked_fill(closed, 0) @ v
    x = x + out.transpose(-2, -3).flatten(-2) @ params["w_o"]

    y = layer_norm(x, params["norm2_gain"], params["norm2_bias"])
    hidden = torch.nn.functional.gelu(y @ params["w_up"] + params["b_up"])
    return x + hidden @ params["w_down"] + params["b_down"]


def decoder_logits(
    tokens: Int[Tensor, "*batch seq"], params: dict[str, Any], n_heads: int
) -> Float[Tensor, "*batch seq vocab"]:
    """A whole decoder: at each position a score for every token that may come next.

    Add the embeddings of token and position, run the blocks with a causal mask,
    and compare with all token embeddings: layer_norm(x) @ token_embedding.T.

    Parameters
    ----------
    tokens: token ids; seq is at most max_seq. Positions count from 0.
    params: token_embedding: (vocab, d_model); position_embedding: (max_seq,
        d_model); blocks: a list of dicts as `decoder_block` takes them;
        norm_gain, norm_bias: (d_model,).
    n_heads: of every block.

    Returns
    -------
    logits: one number for each position and each token of the vocabulary.
    """
    seq = tokens.shape[-1]
    x = params["token_embedding"][tokens] + params["position_embedding"][:seq]
    causal = torch.ones(seq, seq, dtype=torch.bool, device=x.device).tril()
    for block in params["blocks"]:
        x = decoder_block(x, block, n_heads, causal)
    x = layer_norm(x, params["norm_gain"], params["norm_bias"])
    return x @ params["token_embedding"].T


def decoder_parameters(config: dict[str, int]) -> int:
    """How many numbers does a decoder learn?

    Count what `decoder_logits` takes: the two embeddings, the blocks and the last
    norm. The output layer is the token embedding again, which counts once.

    Parameters
    ----------
    config: vocab, d_model, n_layers, n_heads, d_ff, max_seq.

    Returns
    -------
    the number of parameters.
    """
    d_model, d_ff = config["d_model"], config["d_ff"]
    embeddings = (config["vocab"] + config["max_seq"]) * d_model
    norm = 2 * d_model
    attention = 4 * d_model**2
    mlp = 2 * d_model * d_ff + d_ff + d_model
    return embeddings + config["n_layers"] * (attention + mlp + 2 * norm) + norm
