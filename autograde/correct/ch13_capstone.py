"""Right answers to chapter 13, in many forms."""

from __future__ import annotations

import bisect
import itertools
import math
import time
from copy import deepcopy

import numpy as np
import torch
from torch.nn import functional as F

from autograde.bank import right
from autograde.decoder import Config, Decoder
from autograde.reference import ch13_capstone as reference
from autograde.reference.ch06_decoder import decoder_logits, layer_norm
from autograde.reference.ch11_training import adamw_step, cross_entropy, get_batch

# decoder_step --------------------------------------------------------------------------


def norm(x, where, name):
    return F.layer_norm(x, x.shape[-1:], where[f"{name}_gain"], where[f"{name}_bias"])


@right("decoder_step")
def step_by_sdpa(tokens, params, n_heads, cache=None):
    """PyTorch's attention, and a cache in one tensor (block, 2, *batch, heads, seq, d_head)."""
    new, d_model = tokens.shape[-1], params["token_embedding"].shape[-1]
    past = cache[0][0].shape[-2] if cache else 0
    x = F.embedding(tokens, params["token_embedding"])
    x = x + params["position_embedding"].narrow(0, past, new)
    allowed = torch.arange(past + new) <= torch.arange(past, past + new)[:, None]
    kept = []
    for n, block in enumerate(params["blocks"]):
        y = norm(x, block, "norm1")
        joined = y @ torch.cat([block["w_q"], block["w_k"], block["w_v"]], dim=1)
        q, *pair = (
            part.reshape(*x.shape[:-1], n_heads, d_model // n_heads).movedim(-2, -3)
            for part in joined.chunk(3, dim=-1)
        )
        if cache:
            pair = [torch.cat(both, dim=-2) for both in zip(cache[n], pair, strict=True)]
        kept.append(torch.stack(pair))
        out = F.scaled_dot_product_attention(q, *pair, attn_mask=allowed)
        x = x + out.movedim(-3, -2).reshape(x.shape) @ block["w_o"]
        hidden = F.gelu(norm(x, block, "norm2") @ block["w_up"] + block["b_up"])
        x = x + hidden @ block["w_down"] + block["b_down"]
    return norm(x, params, "norm") @ params["token_embedding"].T, torch.stack(kept)


@right("decoder_step")
def step_token_by_token(tokens, params, n_heads, cache=None):
    """New tokens one after the other: then no mask is needed."""
    rows = []
    for token in tokens.split(1, dim=-1):
        past = 0 if cache is None else cache[0][0].shape[-2]
        x = params["token_embedding"][token] + params["position_embedding"][past]
        pairs = []
        for i, block in enumerate(params["blocks"]):
            y = layer_norm(x, block["norm1_gain"], block["norm1_bias"])
            q, k, v = (
                torch.stack((y @ block[w]).chunk(n_heads, dim=-1), dim=-3)
                for w in ("w_q", "w_k", "w_v")
            )
            if cache is not None:
                k, v = (torch.cat(pair, dim=-2) for pair in zip(cache[i], (k, v), strict=True))
            pairs.append((k, v))
            weights = torch.softmax(q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5, dim=-1)
            out = torch.cat((weights @ v).unbind(-3), dim=-1)
            x = x + out @ block["w_o"]
            y = layer_norm(x, block["norm2_gain"], block["norm2_bias"])
            x = x + F.gelu(y @ block["w_up"] + block["b_up"]) @ block["w_down"] + block["b_down"]
        rows.append(layer_norm(x, params["norm_gain"], params["norm_bias"]))
        cache = pairs
    return torch.cat(rows, dim=-2) @ params["token_embedding"].T, cache


@right("decoder_step")
def step_with_a_finite_fill(tokens, params, n_heads, cache=None):
    """-1e9 added to closed scores, a recursion over the blocks, tuples of lists."""
    past = 0 if cache is None else len(cache[0][0][..., 0].movedim(-1, 0))
    end = past + tokens.shape[-1]
    bias = torch.full((end, end), -1e9).triu(1)[past:]

    def through(x, blocks, pairs):
        if not blocks:
            return x, []
        block, (old_k, old_v) = blocks[0], pairs[0]
        y = norm(x, block, "norm1")
        q, k, v = (
            torch.einsum("...sd,dhf->...hsf", y, block[w].unflatten(1, (n_heads, -1)))
            for w in ("w_q", "w_k", "w_v")
        )
        k = k if old_k is None else torch.cat([old_k, k], -2)
        v = v if old_v is None else torch.cat([old_v, v], -2)
        scores = torch.einsum("...qf,...kf->...qk", q, k) * q.shape[-1] ** -0.5
        out = torch.einsum("...hqk,...hkf->...qhf", (scores + bias).softmax(-1), v).flatten(-2)
        x = x + out @ block["w_o"]
        hidden = F.gelu(norm(x, block, "norm2") @ block["w_up"] + block["b_up"])
        x = x + hidden @ block["w_down"] + block["b_down"]
        x, rest = through(x, blocks[1:], pairs[1:])
        return x, [[k, v], *rest]

    x = params["token_embedding"][tokens] + params["position_embedding"][past:end]
    x, longer = through(x, params["blocks"], cache or [(None, None)] * len(params["blocks"]))
    return norm(x, params, "norm") @ params["token_embedding"].mT, tuple(longer)


# train_decoder -------------------------------------------------------------------------


@right("train_decoder")
def train_a_module(tokens, config, seed, seconds):
    """The course's decoder and PyTorch's loss; the loss on the last tenth from windows that
    overlap."""
    torch.manual_seed(seed)
    model, end = Decoder(Config(**config)), time.monotonic() + 0.8 * seconds
    block, cut = config["max_seq"], len(tokens) - len(tokens) // 10
    rows = tokens.unfold(0, block + 1, 1)

    def loss(rows):
        return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=301)
    for _ in range(300):
        if time.monotonic() > end:
            break
        optimizer.zero_grad()
        loss(rows[torch.randint(cut - block, (24,))]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return model.params(), loss(rows[cut::7]).numpy()


@right("train_decoder")
def train_and_keep_the_best(tokens, config, seed, seconds):
    """Of the weights on the way those that foresee the last tenth best. Where it ends in another
    way than it began, these are the first ones."""
    torch.manual_seed(seed)
    model, end = Decoder(Config(**config)), time.monotonic() + 0.8 * seconds
    block, cut = config["max_seq"], len(tokens) - len(tokens) // 10
    rows, best = tokens.unfold(0, block + 1, 1), (math.inf, None)

    def loss(rows):
        return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(201):
        late = time.monotonic() > end
        if step % 50 == 0 or late:
            with torch.no_grad():
                val_loss = loss(rows[cut::block]).item()
            best = min(best, (val_loss, deepcopy(model.params())), key=lambda pair: pair[0])
        if late:
            break
        optimizer.zero_grad()
        loss(rows[torch.randint(cut - block, (24,))]).backward()
        optimizer.step()
    return best[1], best[0]


def start(config, seed):
    """Parameters as arrays are drawn by NumPy, and a list of the leaves."""
    rng, (shapes, _) = np.random.default_rng(seed), reference.train_decoder(
        torch.zeros(10 * config["max_seq"] + 20, dtype=torch.long), config, 0, -1.0
    )  # fmt: skip

    def draw(name, like):
        if like.ndim == 1:
            return torch.full(like.shape, float(name.endswith("gain")))
        return torch.from_numpy(rng.normal(scale=0.15, size=like.shape)).float()

    blocks = [{n: draw(n, p) for n, p in b.items()} for b in shapes["blocks"]]
    params = {n: draw(n, p) for n, p in shapes.items() if n != "blocks"}
    places = [(params, n) for n in params] + [(b, n) for b in blocks for n in b]
    return {**params, "blocks": blocks}, places


@right("train_decoder")
def train_by_own_adamw(tokens, config, seed, seconds):
    """Chapter 11's own step, written back into the dicts; val_loss from pieces, as a tensor."""
    end, block = time.monotonic() + 0.6 * seconds, config["max_seq"]
    params, places = start(config, seed)
    around = {id(where) for where, _ in places if "w_q" not in where}
    generator = torch.Generator().manual_seed(seed)
    cut = len(tokens) - len(tokens) // 10
    train, val = tokens[:cut], tokens[cut:]
    moments = [(torch.zeros_like(where[name]),) * 2 for where, name in places]
    for step in range(1, 151):
        if time.monotonic() > end:
            break
        starts = torch.randint(len(train) - block, (16,), generator=generator)
        inputs, targets = get_batch(train, starts, block)
        leaves = [where[name].requires_grad_() for where, name in places]
        params |= {n: where[n] for where, n in places if id(where) in around}
        loss = cross_entropy(decoder_logits(inputs, params, config["n_heads"]), targets)
        grads = torch.autograd.grad(loss, leaves)
        lr = 1e-2 * min(step / 10, (151 - step) / 75, 1)
        for i, (where, name) in enumerate(places):
            where[name], *moments[i] = adamw_step(
                leaves[i].detach(), grads[i], *moments[i], step, lr, (0.9, 0.99), 1e-8, 0.0
            )
    params |= {n: where[n] for where, n in places if id(where) in around}
    total = count = 0
    for rows in val[: len(val) // (block + 1) * (block + 1)].view(-1, block + 1).split(10):
        losses = cross_entropy(decoder_logits(rows[:, :-1], params, config["n_heads"]), rows[:, 1:])
        total, count = total + losses * len(rows), count + len(rows)
    return params, total / count


@right("train_decoder")
def train_with_momentum(tokens, config, seed, seconds):
    """SGD with momentum on large batches; lists instead of tuples, arrays instead of tensors."""
    end, block, n_heads = time.monotonic() + 0.6 * seconds, config["max_seq"], config["n_heads"]
    params, places = start(config, seed)
    leaves = [where[name].requires_grad_() for where, name in places]
    rows = tokens.unfold(0, block + 1, 1)
    train, val = rows[: -len(tokens) // 10 - block], rows[-len(tokens) // 10 :: block]
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(leaves, lr=0.2, momentum=0.9)

    def loss(batch):
        logits = decoder_logits(batch[:, :-1], params, n_heads)
        return F.cross_entropy(logits.flatten(0, -2), batch[:, 1:].flatten())

    for step in itertools.count():
        if step == 220 or time.monotonic() > end:
            break
        for group in optimizer.param_groups:
            group["lr"] = 0.15 * min((step + 1) / 20, 1, (220 - step) / 110)
        optimizer.zero_grad()
        loss(train[torch.randint(len(train), (24,), generator=generator)]).backward()
        torch.nn.utils.clip_grad_norm_(leaves, 1.0)
        optimizer.step()
    with torch.no_grad():
        val_loss = loss(val).item()
    arrays = {n: p.detach().numpy() for n, p in params.items() if n != "blocks"}
    blocks = [{n: p.detach().numpy() for n, p in b.items()} for b in params["blocks"]]
    return [{**arrays, "blocks": blocks}, val_loss]


# generate_with_cache -------------------------------------------------------------------


@right("generate_with_cache")
def generate_by_lists(step, prompt, uniforms, temperature=1.0):
    """Python numbers all the way, and a list comes back."""
    text, cache, read = prompt.tolist(), None, 0
    for u in [float(u) for u in uniforms]:
        logits, cache = step(torch.tensor(text[read:]), cache)
        read, last = len(text), [float(z) for z in logits[-1]]
        if temperature == 0:
            text.append(last.index(max(last)))
            continue
        p = np.exp([(z - max(last)) / temperature for z in last])
        sums = list(itertools.accumulate(p.tolist()))
        text.append(bisect.bisect_right(sums, u * sums[-1]))
    return text


@right("generate_with_cache")
def generate_with_the_prompt_in_pieces(step, prompt, uniforms, temperature=1.0):
    """The prompt token by token; float32 probabilities, guarded at both ends."""
    tokens, cache, n = prompt.clone(), None, len(prompt)
    for i in range(n + len(uniforms) - 1 if len(uniforms) else 0):
        logits, cache = step(tokens[i : i + 1], cache)
        if i < n - 1:
            continue
        last, u = logits[0], uniforms[i - n + 1]
        if temperature == 0:
            new = (last == last.max()).int().argmax()
        else:
            p = F.softmax(last / temperature, dim=-1)
            possible = p.nonzero()[:, 0]
            place = torch.searchsorted(p[possible].cumsum(0), u.to(p.dtype), right=True)
            new = possible[min(int(place), len(possible) - 1)]
        tokens = torch.cat([tokens, new.reshape(1).to(tokens.dtype)])
    return tokens


@right("generate_with_cache")
def generate_by_recursion(step, prompt, uniforms, temperature=1.0):
    """The first token of a text whose rest is a call of its own; one buffer for the tokens."""
    text = torch.empty(len(prompt) + len(uniforms), dtype=torch.int32)
    text[: len(prompt)] = prompt

    def go_on(begin, end, cache):
        if end == len(text):
            return
        logits, cache = step(text[begin:end].long(), cache)
        z = logits[-1].numpy().astype(np.float64)
        if temperature == 0:
            text[end] = int(np.argmax(z))
        else:
            p = np.exp((z - z.max()) / temperature)
            mass = np.cumsum(p / p.sum())
            u = uniforms[end - len(prompt)].item()
            text[end] = int(np.searchsorted(mass / mass[-1], u, side="right"))
        go_on(end, end + 1, cache)

    go_on(0, len(prompt), None)
    return text


# shard ---------------------------------------------------------------------------------


@right("shard")
def shard_by_tensor_split(batch, rank, world):
    return torch.tensor_split(batch, world)[rank]


@right("shard")
def shard_by_array_split(batch, rank, world):
    return np.array_split(batch.numpy(), world)[rank]


@right("shard")
def shard_by_counting(batch, rank, world):
    """Row numbers in a list, and a gather."""
    sizes = [len(batch) // world + (r < len(batch) % world) for r in range(world)]
    chosen = range(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    return batch[torch.tensor(list(chosen), dtype=torch.long)]


@right("shard")
def shard_by_ownership(batch, rank, world):
    """A mask of the rows; the owner of row i is found by the sizes."""
    owner = torch.arange(world).repeat_interleave(
        torch.tensor([(len(batch) - r + world - 1) // world for r in range(world)])
    )
    return batch[owner == rank]


# average_gradients ---------------------------------------------------------------------


@right("average_gradients")
def average_of_sums(grads, counts):
    """Sums first, one division at the end."""
    found = []
    for each in zip(*grads, strict=True):
        total = torch.zeros_like(each[0])
        for grad, n in zip(each, counts, strict=True):
            if n:
                total += grad * n
        found.append(total / sum(counts))
    return found


@right("average_gradients")
def average_of_one_long_vector(grads, counts):
    """All parameters in one message, as an all-reduce would have them."""
    keep = torch.tensor(counts) > 0
    messages = torch.stack([torch.cat([g.flatten() for g in each]) for each in grads])[keep]
    weights = torch.tensor(counts, dtype=messages.dtype)[keep]
    mean = (weights / weights.sum()) @ messages
    parts = mean.split([g.numel() for g in grads[0]])
    return [part.view_as(g) for part, g in zip(parts, grads[0], strict=True)]


@right("average_gradients")
def average_by_numpy(grads, counts):
    """NumPy's own weighted average; zeros stand for what is not a number without tokens."""
    return tuple(
        np.average(
            [g.numpy() if n else np.zeros(g.shape) for g, n in zip(each, counts, strict=True)],
            axis=0,
            weights=counts,
        )
        for each in zip(*grads, strict=True)
    )


@right("average_gradients")
def average_of_a_running_mean(grads, counts):
    """A mean that takes in one process after the other."""
    mean, seen = None, 0
    for each, n in zip(grads, counts, strict=True):
        if n == 0:
            continue
        seen += n
        mean = each if mean is None else [a + (b - a) * n / seen for a, b in zip(mean, each)]  # noqa: B905
    return mean
