"""Generating with the decoder: a KV cache, prompts of several lengths, sampling.

    generate(model, [prompt, another], n_new=50, temperature=0.8, top_p=0.9, seed=1)

Shorter prompts are padded on the left, so that all sequences end in one column and
go on together. The cache's buffers are made once, as long as they will ever be.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from autograde.decoder.model import Decoder


class Cache:
    """The keys and values of all layers, for at most `capacity` columns of tokens.

    length: how many columns it has been given.
    pads: for each sequence, how many of its first columns are padding; None: none.
    buffers: (layer, keys and values, batch, kv_heads, slot, d_head). Without a
        window there is a slot for each column; what was never written is never
        read. With a window the slots are a ring, no longer than it (chapter 9).
    """

    def __init__(self, model: Decoder, batch: int, capacity: int, pads=None):
        config, like = model.config, model.token_embedding
        if capacity > config.max_seq and not config.endless:
            raise ValueError(
                f"capacity={capacity}: the model has max_seq={config.max_seq}"
            )
        self.model, self.length, self.capacity = model, 0, capacity
        self.slots = min(capacity, config.window or capacity)
        heads, d_head = config.n_kv_heads, config.d_head
        shape = (config.n_layers, 2, batch, heads, self.slots, d_head)
        self.buffers = torch.empty(shape, dtype=like.dtype, device=like.device)
        self.held = torch.empty(self.slots, 1, dtype=torch.long, device=like.device)
        self.pads = None
        if pads is not None and any(pads):
            self.pads = torch.tensor(pads, device=like.device)[:, None]

    def past(self, layer: int):
        """A function that writes keys and values, and returns all to look at."""
        keys, values = self.buffers[layer]
        return lambda k, v: (self.keep(keys, k), self.keep(values, v))

    def keep(self, ring: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Write (..., new, feature) into (..., slot, feature); return what to see.

        That is what the ring held, and the new ones; it may be a view of the ring.
        """
        start, n = self.length, new.shape[-2]
        if n == 1 or start + n <= self.slots:  # no query still needs what was there
            slot = start % self.slots
            ring[..., slot : slot + n, :] = new
            return ring[..., : start + n, :]
        # Else look first, write afterwards: the first queries need what will go.
        seen = torch.cat([ring[..., :start, :], new], dim=-2)
        newest = torch.arange(max(start, start + n - self.slots), start + n)
        ring[..., newest % self.slots, :] = new[..., -len(newest) :, :]
        return seen

    def allowed(self, column: torch.Tensor) -> torch.Tensor | None:
        """Which keys the queries in these new columns see; None: all, or causal."""
        key = self.keep(self.held, column[:, None])[:, 0]  # kept beside the keys
        config, n = self.model.config, len(column)
        if self.pads is None:
            single, whole = n == 1, n == len(key) and config.window is None
            if config.positions != "alibi" and (single or whole):
                return None
            return self.model.mask(column, key)
        # A pad sees itself: without any key its row would be NaN, and spread.
        real = (key >= self.pads[..., None]) | (key == column[:, None])
        return self.model.mask(column, key, real[:, None])  # (batch, heads, ...)


@torch.no_grad()
def feed(model: Decoder, tokens: torch.Tensor, cache: Cache) -> torch.Tensor:
    """Run new tokens through the model; their keys and values go into the cache.

    Parameters
    ----------
    tokens: (batch, new): the whole prompt, a piece of it, or one token for each
        sequence. They take the next columns of the cache.

    Returns
    -------
    (batch, new, d_model): what the last block gives; `model.logits` reads it.
    """
    end = cache.length + tokens.shape[-1]
    if end > cache.capacity:
        raise ValueError(
            f"the cache has room for {cache.capacity} tokens, and these would make "
            f"{end}: make a Cache with a larger capacity"
        )
    column = torch.arange(cache.length, end, device=tokens.device)
    positions = column
    # Pads do not count. To rotary scores only differences matter: columns will do.
    if cache.pads is not None and model.config.positions != "rotary":
        positions = (column - cache.pads).clamp(min=0)  # (batch, new)
    x, allowed = model.stream(tokens, positions), cache.allowed(column)
    for layer, block in enumerate(model.blocks):
        x = block(x, positions, allowed, cache.past(layer))
    cache.length = end  # once, after the last layer: all of them wrote there
    return x


def distribution(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """`next_token_distribution` of chapter 8, for each row of (batch, vocab)."""
    if temperature == 0:
        temperature, top_k = 1.0, 1
    scaled, order = logits.sort(dim=-1, descending=True, stable=True)
    p = (scaled / temperature).softmax(dim=-1)
    if top_k is not None:
        p[..., top_k:] = 0
        p = p / p.sum(dim=-1, keepdim=True)
    if top_p is not None:
        p = p.masked_fill(p.cumsum(dim=-1) - p >= top_p, 0)
        p = p / p.sum(dim=-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, p)


@torch.no_grad()
def generate(
    model: Decoder,
    prompts: Sequence[Sequence[int] | torch.Tensor],
    n_new: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cached: bool = True,
    chunk: int | None = None,
) -> list[torch.Tensor]:
    """Continue each prompt by n_new tokens.

    Parameters
    ----------
    prompts: token ids of each prompt, at least one; the lengths may differ.
    temperature, top_k, top_p: as in `next_token_distribution`; 0 is greedy.
    seed: of a random generator of this call's own. The same call gives the same.
    cached: False: every step runs every sequence anew, one by one.
    chunk: how many columns of the prompts are read at a time; None: all at once.

    Returns
    -------
    a tensor (prompt + n_new,) for each prompt: its ids, then the new ones.

    Raises
    ------
    ValueError: if the longest prompt and its new tokens do not fit. The model reads
        all of them but the last one, and at most max_seq. (With a window, rotary
        and ALiBi positions have no end, and neither has the text.)
    """
    device = model.token_embedding.device
    rows = [torch.as_tensor(prompt, device=device) for prompt in prompts]
    _check(model, rows, n_new, temperature, top_k, top_p)
    width = max(len(row) for row in rows)
    pads = [width - len(row) for row in rows]
    tokens = torch.stack(
        [torch.cat([row.new_zeros(width - len(row)), row]) for row in rows]
    )
    cache = (
        Cache(model, len(rows), width + n_new - 1, pads)
        if cached and n_new
        else None
    )
    generator = torch.Generator(device).manual_seed(seed)
    for _ in range(n_new):
        if cache is not None:
            for piece in tokens[:, cache.length :].split(chunk or width, dim=1):
                last = feed(model, piece, cache)[:, -1]
        else:
            each = (row[None, n:] for row, n in zip(tokens, pads, strict=True))
            last = torch.cat([model.hidden(row)[:, -1] for row in each])
        logits = model.logits(last)
        if temperature == 0:
            new = logits.argmax(dim=-1, keepdim=True)  # the first one, of several
        else:
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            p = distribution(logits, temperature, top_k, top_p)
            new = torch.multinomial(p, 1, generator=generator)
        tokens = torch.cat([tokens, new], dim=1)
    return [row[n:] for row, n in zip(tokens, pads, strict=True)]


def _check(model, rows, n_new, temperature, top_k, top_p) -> None:
    """Raise a ValueError for what cannot be generated."""
    if not rows or any(row.dim() != 1 or not len(row) for row in rows):
        raise ValueError(
            "prompts is a list of sequences of token ids, none of them empty; "
            "for a single prompt write [prompt]"
        )
    longest, max_seq = max(len(row) for row in rows), model.config.max_seq
    too_long = longest + n_new - 1 > max_seq and not model.config.endless
    if n_new < 0 or too_long:
        raise ValueError(
            f"{n_new} new tokens after a prompt of {longest}: the model would read "
            f"{longest + n_new - 1}, and max_seq={max_seq}. Ask for at most "
            f"{max(max_seq + 1 - longest, 0)} (at least 0), or shorten the prompt"
        )
    if temperature < 0:
        raise ValueError(
            f"temperature={temperature}: 0 is greedy, and none is lower"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k}: keep at least 1 token")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p}: a mass greater than 0, at most 1")
