"""A decoder on one page: GPT-2's architecture, and a choice of what came after it.

The parameters have the names that chapter 6 gives them; with the same ones
`decoder_logits` computes the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import (
    gelu,
    layer_norm,
    linear,
    rms_norm,
    scaled_dot_product_attention,
)

from autograde.reference.ch06_decoder import rotary


def check(config: Config) -> None:
    """Raise a ValueError for sizes and choices of which no decoder can be made."""
    names = ["vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_seq"]
    names += [n for n in ("window", "kv_heads") if getattr(config, n) is not None]
    for name in names:
        size = getattr(config, name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name}={size!r}: give an integer of at least 1")
    for name, known in (
        ("positions", ("learned", "sinusoidal", "rotary", "alibi")),
        ("norm", ("layer", "rms")),
        ("gelu", ("exact", "tanh")),
    ):
        if (choice := getattr(config, name)) not in known:
            raise ValueError(f"{name}={choice!r}: choose from {', '.join(known)}")
    d_model, n_heads = config.d_model, config.n_heads
    if d_model % n_heads:
        raise ValueError(f"d_model={d_model} cannot be cut into {n_heads} heads")
    if n_heads % config.n_kv_heads:
        raise ValueError(
            f"kv_heads={config.kv_heads}: {n_heads} query heads cannot share them "
            "evenly; give a divisor of n_heads"
        )
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
    positions: str = "learned"  # or "sinusoidal", "rotary", "alibi"
    norm: str = "layer"  # or "rms"
    gelu: str = "exact"  # or "tanh"
    attention_bias: bool = False
    window: int | None = None  # a query sees this many keys at most; None: all
    kv_heads: int | None = None  # heads of keys and values; None: n_heads

    def __post_init__(self):
        check(self)

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads

    @property
    def n_kv_heads(self) -> int:
        return self.kv_heads or self.n_heads

    @property
    def endless(self) -> bool:
        """Whether it may read more than max_seq: no table ends, no cache grows."""
        return self.window is not None and self.positions in ("rotary", "alibi")


def normal(*shape: int, std: float = 0.02) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape) * std)


def zeros(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


def gain_and_bias(config: Config) -> tuple[nn.Parameter, nn.Parameter | None]:
    gain = nn.Parameter(torch.ones(config.d_model))
    return gain, zeros(config.d_model) if config.norm == "layer" else None


def normalise(x, gain, bias):
    if bias is None:
        return rms_norm(x, gain.shape, gain, eps=1e-6)
    return layer_norm(x, gain.shape, gain, bias, eps=1e-5)


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
        d_kv = config.n_kv_heads * config.d_head
        self.w_q = normal(d_model, d_model)
        self.w_k, self.w_v = normal(d_model, d_kv), normal(d_model, d_kv)
        self.w_o = normal(d_model, d_model, std=std)
        self.b_q, self.b_k, self.b_v, self.b_o = (
            zeros(width) if config.attention_bias else None
            for width in (d_model, d_kv, d_kv, d_model)
        )
        self.norm2_gain, self.norm2_bias = gain_and_bias(config)
        self.w_up, self.b_up = normal(d_model, d_ff), zeros(d_ff)
        self.w_down, self.b_down = normal(d_ff, d_model, std=std), zeros(d_model)

    def forward(self, x, positions, allowed, past=None):
        """(*batch, seq, d_model) in and out; allowed: (query, key), see `mask`.

        allowed=None: what is causal; a single query sees all keys.
        past: adds earlier keys and values to these (a KV cache, chapter 8).
        """
        q, k, v = self.heads(x, positions)
        if past is not None:
            k, v = past(k, v)
        out = scaled_dot_product_attention(
            q, k, v, attn_mask=allowed,
            is_causal=allowed is None and q.shape[-2] > 1,
            enable_gqa=self.config.n_kv_heads < self.config.n_heads,
        )  # fmt: skip
        x = x + linear(out.transpose(-2, -3).flatten(-2), self.w_o.T, self.b_o)
        y = normalise(x, self.norm2_gain, self.norm2_bias)
        approximate = "tanh" if self.config.gelu == "tanh" else "none"
        hidden = gelu(linear(y, self.w_up.T, self.b_up), approximate=approximate)
        return x + linear(hidden, self.w_down.T, self.b_down)

    def heads(self, x, positions):
        """Queries, keys and values, (*batch, heads or kv_heads, seq, d_head)."""

        def split(y, w, b):
            y = linear(y, w.T, b).unflatten(-1, (-1, self.config.d_head))
            return y.transpose(-2, -3)

        y = normalise(x, self.norm1_gain, self.norm1_bias)
        q, k = split(y, self.w_q, self.b_q), split(y, self.w_k, self.b_k)
        if self.config.positions == "rotary":
            q, k = rotary(q, positions), rotary(k, positions)
        return q, k, split(y, self.w_v, self.b_v)

    def attention_weights(self, x, positions, allowed):
        """What `forward` weighs the values with, (*batch, heads, query, key)."""
        q, k, _ = self.heads(x, positions)
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
        scores = q @ k.mT / self.config.d_head**0.5
        if allowed.dtype == torch.bool:
            return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        return (scores + allowed).softmax(dim=-1)


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
        return self.logits(self.hidden(tokens))

    def hidden(self, tokens):
        """What the last block gives, (*batch, seq, d_model)."""
        x, positions, allowed = self.embed(tokens)
        if self.config.window is None and self.config.positions != "alibi":
            allowed = None  # plainly causal: kernels are faster if told so
        for block in self.blocks:
            x = block(x, positions, allowed)
        return x

    def logits(self, x):
        """How well each token of the vocabulary fits what the last block gives."""
        return normalise(x, self.norm_gain, self.norm_bias) @ self.token_embedding.T

    def embed(self, tokens):
        """What enters the first block: the stream, positions, the mask."""
        seq, config = tokens.shape[-1], self.config
        if seq > config.max_seq and not config.endless:
            raise ValueError(
                f"{seq} tokens are too many for max_seq={config.max_seq}: give the "
                "last ones, or make a decoder with a larger max_seq"
            )
        positions = torch.arange(seq, device=tokens.device)
        x = self.stream(tokens, positions)
        return x, positions, self.mask(positions, positions)

    def mask(self, query, key, real=True):
        """Which keys the queries see, by their positions; real: which are no pads.

        bool, (query, key): the past, or the newest `window` of it. With ALiBi the
        bias of each head, (heads, query, key), and -inf where a key is closed.
        """
        distance, n_heads = query[:, None] - key, self.config.n_heads
        allowed = (distance >= 0) & real
        if self.config.window is not None:
            allowed = allowed & (distance < self.config.window)
        if self.config.positions != "alibi":
            return allowed
        head = torch.arange(1, n_heads + 1, dtype=torch.float64, device=key.device)
        slope = (2 ** (-8 * head / n_heads)).to(self.token_embedding.dtype)
        bias = -slope[:, None, None] * distance
        return bias.masked_fill(~allowed, -torch.inf)

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
