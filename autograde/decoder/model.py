"""A decoder on one page: GPT-2's architecture, and a choice of positions and norms.

The parameters have the names that chapter 6 gives them; with the same ones
`decoder_logits` computes the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

from autograde.reference.ch06_decoder import layer_norm, rms_norm, rotary


def check(config: Config) -> None:
    """Raise a ValueError for sizes and choices of which no decoder can be made."""
    for name in ("vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_seq"):
        size = getattr(config, name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name}={size!r}: give an integer of at least 1")
    for name, known in (
        ("positions", ("learned", "sinusoidal", "rotary")),
        ("norm", ("layer", "rms")),
        ("gelu", ("exact", "tanh")),
    ):
        if (choice := getattr(config, name)) not in known:
            raise ValueError(f"{name}={choice!r}: choose from {', '.join(known)}")
    d_model, n_heads = config.d_model, config.n_heads
    if d_model % n_heads:
        raise ValueError(f"d_model={d_model} cannot be cut into {n_heads} heads")
    if config.positions == "rotary" and config.d_head % 2:
        raise ValueError(f"d_head={config.d_head} is odd: rotary turns pairs")
    if config.positions == "sinusoidal" and d_model % 2:
        raise ValueError(f"d_model={d_model} is odd: sinusoidal needs pairs")


@dataclass(frozen=True)
class Config:
    """The sizes of a decoder, and what it is made of.

    GPT-2: learned positions, LayerNorm, gelu="tanh", attention_bias=True.
    """

    vocab: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    max_seq: int
    positions: str = "learned"  # or "sinusoidal", "rotary"
    norm: str = "layer"  # or "rms"
    gelu: str = "exact"  # or "tanh"
    attention_bias: bool = False

    def __post_init__(self):
        check(self)

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


def normal(*shape: int, std: float = 0.02) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape) * std)


def zeros(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


def gain_and_bias(config: Config) -> tuple[nn.Parameter, nn.Parameter | None]:
    gain = nn.Parameter(torch.ones(config.d_model))
    return gain, zeros(config.d_model) if config.norm == "layer" else None


def normalise(x, gain, bias):
    return rms_norm(x, gain) if bias is None else layer_norm(x, gain, bias)


def sinusoidal(n: int, d_model: int) -> torch.Tensor:
    """(n, d_model): sines and cosines (Vaswani et al. 2017, section 3.5)."""
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    angle = torch.arange(n)[:, None] * 10000.0 ** (-2 * pair / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).float()


class Block(nn.Module):
    """Attention, then an MLP; each reads through a norm and adds to the stream."""

    def __init__(self, config: Config):
        super().__init__()
        self.config, d_model, d_ff = config, config.d_model, config.d_ff
        std = 0.02 / (2 * config.n_layers) ** 0.5  # of what adds to the stream
        self.norm1_gain, self.norm1_bias = gain_and_bias(config)
        self.w_q, self.w_k, self.w_v = (normal(d_model, d_model) for _ in range(3))
        self.w_o = normal(d_model, d_model, std=std)
        self.b_q, self.b_k, self.b_v, self.b_o = (
            zeros(d_model) if config.attention_bias else None for _ in range(4)
        )
        self.norm2_gain, self.norm2_bias = gain_and_bias(config)
        self.w_up, self.b_up = normal(d_model, d_ff), zeros(d_ff)
        self.w_down, self.b_down = normal(d_ff, d_model, std=std), zeros(d_model)

    def forward(self, x, positions, allowed, past=None):
        """(*batch, seq, d_model) in and out; allowed: (query, key).

        past: adds earlier keys and values to these (a KV cache, chapter 8).
        """
        q, k, v = self.heads(x, positions)
        if past is not None:
            k, v = past(k, v)
        out = scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        x = x + linear(out.transpose(-2, -3).flatten(-2), self.w_o.T, self.b_o)
        y = normalise(x, self.norm2_gain, self.norm2_bias)
        approximate = "tanh" if self.config.gelu == "tanh" else "none"
        hidden = gelu(linear(y, self.w_up.T, self.b_up), approximate=approximate)
        return x + linear(hidden, self.w_down.T, self.b_down)

    def heads(self, x, positions):
        """Queries, keys and values, (*batch, heads, seq, d_head) each."""

        def split(y, w, b):
            y = linear(y, w.T, b).unflatten(-1, (self.config.n_heads, -1))
            return y.transpose(-2, -3)

        y = normalise(x, self.norm1_gain, self.norm1_bias)
        q, k = split(y, self.w_q, self.b_q), split(y, self.w_k, self.b_k)
        if self.config.positions == "rotary":
            q, k = rotary(q, positions), rotary(k, positions)
        return q, k, split(y, self.w_v, self.b_v)

    def attention_weights(self, x, positions, allowed):
        """What `forward` weighs the values with, (*batch, heads, query, key)."""
        q, k, _ = self.heads(x, positions)
        scores = q @ k.mT / self.config.d_head**0.5
        return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)


class Decoder(nn.Module):
    """Token ids in, logits of the next token out; tied to the token embedding."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.token_embedding = normal(config.vocab, config.d_model)
        if config.positions == "learned":
            self.position_embedding = normal(config.max_seq, config.d_model)
        elif config.positions == "sinusoidal":
            table = sinusoidal(config.max_seq, config.d_model)
            self.register_buffer("position_table", table, persistent=False)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm_gain, self.norm_bias = gain_and_bias(config)

    def forward(self, tokens):
        """(*batch, seq) -> (*batch, seq, vocab); row t knows the tokens 0 to t."""
        x, positions, allowed = self.embed(tokens)
        for block in self.blocks:
            x = block(x, positions, allowed)
        return self.logits(x)

    def logits(self, x):
        """How well each token of the vocabulary fits what the last block gives."""
        return normalise(x, self.norm_gain, self.norm_bias) @ self.token_embedding.T

    def embed(self, tokens):
        """What enters the first block: the stream, positions, the causal mask."""
        seq, config = tokens.shape[-1], self.config
        if seq > config.max_seq:
            raise ValueError(
                f"{seq} tokens are too many for max_seq={config.max_seq}: give the "
                "last ones, or make a decoder with a larger max_seq"
            )
        positions = torch.arange(seq, device=tokens.device)
        x = self.stream(tokens, positions)
        return x, positions, positions <= positions[:, None]

    def stream(self, tokens, positions):
        """The embeddings of tokens at these positions, (*batch, seq, d_model)."""
        x = self.token_embedding[tokens]
        if self.config.positions == "learned":
            x = x + self.position_embedding[positions]
        elif self.config.positions == "sinusoidal":
            x = x * self.config.d_model**0.5  # as in that paper, section 3.4
            x = x + self.position_table[positions]
        return x

    @torch.no_grad()
    def attention_weights(self, tokens) -> list[torch.Tensor]:
        """Who looks at whom: for each layer, (*batch, heads, query, key)."""
        x, positions, allowed = self.embed(tokens)
        found = []
        for block in self.blocks:
            found.append(block.attention_weights(x, positions, allowed))
            x = block(x, positions, allowed)
        return found

    def params(self) -> dict:
        """The parameters in the form that `decoder_logits` takes them."""
        blocks = [dict(block.named_parameters()) for block in self.blocks]
        return {**dict(self.named_parameters(recurse=False)), "blocks": blocks}
