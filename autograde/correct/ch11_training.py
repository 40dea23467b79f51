"""Right answers to chapter 11, in many forms."""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from autograde.bank import right
from autograde.decoder import Config, Decoder
from autograde.reference import ch11_training as reference
from autograde.reference.ch06_decoder import decoder_logits

# split_tokens --------------------------------------------------------------------------


@right("split_tokens")
def split_by_split(tokens, val_fraction):
    n_val = int(len(tokens) * val_fraction)
    return tokens.split([len(tokens) - n_val, n_val])


@right("split_tokens")
def split_into_lists(tokens, val_fraction):
    train, val = tokens.tolist(), []
    for _ in range(math.floor(len(train) * val_fraction)):
        val.insert(0, train.pop())
    return train, val


@right("split_tokens")
def split_by_a_mask_in_numpy(tokens, val_fraction):
    n = tokens.numel()
    is_val = np.arange(n) >= n - int(n * val_fraction)
    return tokens.numpy()[~is_val], tokens.numpy()[is_val]


@right("split_tokens")
def split_by_tensor_split(tokens, val_fraction):
    cut = tokens.shape[0] - int(val_fraction * tokens.shape[0])
    return list(torch.tensor_split(tokens, [cut]))


# get_batch -----------------------------------------------------------------------------


@right("get_batch")
def batch_by_stack(tokens, starts, block):
    inputs = torch.stack([tokens[i : i + block] for i in starts])
    targets = torch.stack([tokens[i + 1 : i + 1 + block] for i in starts])
    return inputs, targets


@right("get_batch")
def batch_by_unfold(tokens, starts, block):
    """All windows of block + 1 tokens are views of the text."""
    chunk = tokens.unfold(0, block + 1, 1)[starts]
    return chunk[:, :-1], chunk[:, 1:]


@right("get_batch")
def batch_in_numpy(tokens, starts, block):
    view = np.lib.stride_tricks.sliding_window_view(tokens.numpy(), block)
    return view[starts.numpy()], view[starts.numpy() + 1]


@right("get_batch")
def batch_in_lists(tokens, starts, block):
    text = tokens.tolist()
    rows = [text[s : s + block + 1] for s in starts.tolist()]
    return [row[:-1] for row in rows], [row[1:] for row in rows]


@right("get_batch")
def batch_by_columns(tokens, starts, block):
    columns = [tokens[starts + t] for t in range(block + 1)]
    return torch.stack(columns[:-1], dim=1), torch.stack(columns[1:]).T


# cross_entropy -------------------------------------------------------------------------


@right("cross_entropy")
def loss_by_torch(logits, targets, ignore_index=-100):
    vocab = logits.shape[-1]
    return F.cross_entropy(
        logits.reshape(-1, vocab), targets.reshape(-1), ignore_index=ignore_index
    )


@right("cross_entropy")
def loss_by_one_hot_where(logits, targets, ignore_index=-100):
    kept = targets != ignore_index
    wanted = torch.arange(logits.shape[-1]) == targets[..., None]
    found = torch.where(wanted, logits.log_softmax(-1), 0.0).sum(-1)
    return -torch.where(kept, found, 0.0).sum() / kept.sum()


@right("cross_entropy")
def loss_by_a_loop(logits, targets, ignore_index=-100):
    losses = []
    for row, target in zip(logits.flatten(0, -2).tolist(), targets.flatten().tolist(), strict=True):
        if target == ignore_index:
            continue
        top = max(row)
        losses.append(top + math.log(sum(math.exp(a - top) for a in row)) - row[target])
    return sum(losses) / len(losses)


@right("cross_entropy")
def loss_in_numpy_single_precision(logits, targets, ignore_index=-100):
    logits, targets = logits.numpy().astype(np.float32), targets.numpy()
    logits = logits - logits.max(axis=-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    kept = targets != ignore_index
    return -log_p[kept, targets[kept]].mean()


@right("cross_entropy")
def loss_by_nll(logits, targets, ignore_index=-100):
    log_p = torch.log_softmax(logits, dim=-1).movedim(-1, 1) if logits.ndim > 2 else None
    if log_p is None:
        log_p = torch.log_softmax(logits, dim=-1)
    return nn.NLLLoss(ignore_index=ignore_index)(log_p, targets)


@right("cross_entropy")
def loss_as_a_weighted_mean(logits, targets, ignore_index=-100):
    weight = (targets != ignore_index).to(logits.dtype)
    safe = targets.where(targets != ignore_index, torch.zeros_like(targets))
    nll = logits.logsumexp(-1) - torch.take_along_dim(logits, safe[..., None], -1).squeeze(-1)
    return (nll * weight).sum().div(weight.sum()).item()


# learning_rate -------------------------------------------------------------------------


@right("learning_rate")
def rate_by_three_branches(step, max_lr, min_lr, warmup, total):
    if step < warmup:
        return max_lr * (step + 1) / warmup
    if step >= total:
        return min_lr
    coefficient = 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    return min_lr + coefficient * (max_lr - min_lr)


@right("learning_rate")
def rate_by_a_squared_cosine(step, max_lr, min_lr, warmup, total):
    """(1 + cos 2a) / 2 = cos^2 a."""
    if warmup > step:
        return (step + 1) * (max_lr / warmup)
    quarter = math.pi / 2 * min(step - warmup, total - warmup) / (total - warmup)
    return max_lr * math.cos(quarter) ** 2 + min_lr * math.sin(quarter) ** 2


@right("learning_rate")
def rate_in_numpy(step, max_lr, min_lr, warmup, total):
    up = max_lr * (step + 1) / max(warmup, 1)
    done = np.clip((step - warmup) / (total - warmup), 0, 1)
    return np.where(step < warmup, up, max_lr - (max_lr - min_lr) * (1 - np.cos(np.pi * done)) / 2)


@right("learning_rate")
def rate_by_torchs_scheduler(step, max_lr, min_lr, warmup, total):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=max_lr)
    if step < warmup:
        return max_lr * (step + 1) / warmup
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total - warmup, min_lr)
    for _ in range(min(step, total) - warmup):
        optimizer.step()
        falling.step()
    return falling.get_last_lr()[0]


@right("learning_rate")
def rate_in_single_precision(step, max_lr, min_lr, warmup, total):
    if step < warmup:
        return torch.tensor(max_lr * (step + 1) / warmup)
    done = torch.tensor(min((step - warmup) / (total - warmup), 1.0))
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + torch.cos(torch.pi * done))


# clip_by_global_norm -------------------------------------------------------------------


@right("clip_by_global_norm")
def clip_by_torch(grads, max_norm):
    holders = [nn.Parameter(torch.zeros_like(g)) for g in grads]
    for holder, g in zip(holders, grads, strict=True):
        holder.grad = g.clone()
    norm = nn.utils.clip_grad_norm_(holders, max_norm)
    return [holder.grad for holder in holders], norm


@right("clip_by_global_norm")
def clip_by_a_long_vector(grads, max_norm):
    norm = torch.linalg.vector_norm(torch.cat([g.reshape(-1) for g in grads]))
    if norm <= max_norm:
        return grads, norm.item()
    return [g / norm * max_norm for g in grads], norm.item()


@right("clip_by_global_norm")
def clip_by_the_norm_of_norms(grads, max_norm):
    norm = torch.stack([g.norm() for g in grads]).norm()
    coefficient = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    return [g.mul(coefficient) for g in grads], norm


@right("clip_by_global_norm")
def clip_in_numpy(grads, max_norm):
    arrays = [np.asarray(g, dtype=np.float32) for g in grads]
    norm = math.sqrt(sum(float((a.astype(np.float64) ** 2).sum()) for a in arrays))
    return tuple(a * np.float32(max_norm / max(norm, max_norm)) for a in arrays), norm


@right("clip_by_global_norm")
def clip_in_lists(grads, max_norm):
    norm = math.hypot(*(a for g in grads for a in g.flatten().tolist()))
    return [(g * (max_norm / norm) if norm > max_norm else g.clone()).tolist() for g in grads], norm


# adamw_step ----------------------------------------------------------------------------


@right("adamw_step")
def step_by_torch(param, grad, m, v, step, lr, betas, eps, weight_decay):
    p = nn.Parameter(param.clone())
    p.grad = grad.clone()
    optimizer = torch.optim.AdamW([p], lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
    optimizer.state[p] = {
        "step": torch.tensor(float(step - 1)), "exp_avg": m.clone(), "exp_avg_sq": v.clone()
    }  # fmt: skip
    optimizer.step()
    state = optimizer.state[p]
    return p.detach(), state["exp_avg"], state["exp_avg_sq"]


@right("adamw_step")
def step_with_decay_first(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The order of torch's own code, on copies."""
    param, m, v = param.clone(), m.clone(), v.clone()
    param.mul_(1 - lr * weight_decay)
    m.lerp_(grad, 1 - betas[0])
    v.mul_(betas[1]).addcmul_(grad, grad, value=1 - betas[1])
    denominator = (v.sqrt() / math.sqrt(1 - betas[1] ** step)).add_(eps)
    return param.addcdiv_(m, denominator, value=-lr / (1 - betas[0] ** step)), m, v


@right("adamw_step")
def step_in_numpy_single_precision(param, grad, m, v, step, lr, betas, eps, weight_decay):
    param, grad, m, v = (np.asarray(t, dtype=np.float32) for t in (param, grad, m, v))
    beta1, beta2 = betas
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    m_hat, v_hat = m / (1 - beta1**step), v / (1 - beta2**step)
    return param - lr * m_hat / (np.sqrt(v_hat) + eps) - lr * weight_decay * param, m, v


@right("adamw_step")
def step_number_by_number(param, grad, m, v, step, lr, betas, eps, weight_decay):
    shape, rows = param.shape, []
    for p, g, a, b in zip(*(t.flatten().tolist() for t in (param, grad, m, v)), strict=True):
        a += (1 - betas[0]) * (g - a)
        b += (1 - betas[1]) * (g * g - b)
        move = a / (1 - betas[0] ** step) / (math.sqrt(b / (1 - betas[1] ** step)) + eps)
        rows.append((p - lr * move - lr * weight_decay * p, a, b))
    return tuple(torch.tensor(column).reshape(shape) for column in zip(*rows, strict=True))


@right("adamw_step")
def step_with_the_epsilon_moved(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The rate carries both corrections, and eps is scaled to fit."""
    m = torch.lerp(m, grad, 1 - betas[0])
    v = torch.lerp(v, grad.square(), 1 - betas[1])
    root = (1 - betas[1] ** step) ** 0.5
    rate = lr * root / (1 - betas[0] ** step)
    return (1 - lr * weight_decay) * param - rate * m / (v.sqrt() + eps * root), m, v


# train ---------------------------------------------------------------------------------

SIZES = Config(vocab=8, d_model=32, n_layers=1, n_heads=2, d_ff=64, max_seq=16)


@right("train")
def train_a_module(tokens, seed, seconds):
    """The course's decoder, PyTorch's loss and optimizer; stops when its time is up."""
    torch.manual_seed(seed)
    model, end = Decoder(SIZES), time.monotonic() + 0.9 * seconds
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(200):
        if time.monotonic() > end:
            break
        starts = torch.randint(len(tokens) - 16, (32,))
        rows = torch.stack([tokens[s : s + 17] for s in starts])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.params()


def start(seed, dtype=torch.float32):
    """Another beginning: the same shapes, drawn by NumPy with other sizes."""
    rng, shapes = np.random.default_rng(seed), reference.train(torch.zeros(20), 0, -1.0)

    def draw(name, like):
        if name.endswith("gain"):
            return torch.ones_like(like, dtype=dtype)
        if like.ndim == 1:
            return torch.zeros_like(like, dtype=dtype)
        return torch.from_numpy(rng.normal(scale=len(like) ** -0.5, size=like.shape)).to(dtype)

    block = {name: draw(name, like) for name, like in shapes["blocks"][0].items()}
    params = {name: draw(name, like) for name, like in shapes.items() if name != "blocks"}
    leaves = [*params.values(), *block.values()]
    return {**params, "blocks": [block]}, [leaf.requires_grad_() for leaf in leaves]


@right("train")
def train_by_sgd(tokens, seed, seconds):
    """Momentum, a constant rate, no decay; windows in the order of the text; arrays out."""
    params, leaves = start(seed)
    optimizer = torch.optim.SGD(leaves, lr=0.1, momentum=0.9)
    rows = tokens[: (len(tokens) - 1) // 16 * 16 + 1].unfold(0, 17, 16)
    end = time.monotonic() + 0.8 * seconds
    for batch in rows[: 16 * (len(rows) // 16)].split(16) * 3:
        if time.monotonic() > end:
            break
        logits = decoder_logits(batch[:, :-1], params, 2)
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    as_arrays = {name: p.detach().numpy() for name, p in params["blocks"][0].items()}
    return {name: p.detach().numpy() for name, p in params.items() if name != "blocks"} | {
        "blocks": [as_arrays]
    }


@right("train")
def train_in_double_precision(tokens, seed, seconds):
    """Adam without decay or clipping, gradients accumulated over two pieces."""
    params, leaves = start(seed, torch.float64)
    optimizer = torch.optim.Adam(leaves, lr=1e-2)
    generator = torch.Generator().manual_seed(seed)
    end = time.monotonic() + 0.8 * seconds
    for step in range(150):
        if time.monotonic() > end:
            break
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * min(1, (step + 1) / 10, (150 - step) / 40)
        for _ in range(2):
            starts = torch.randint(len(tokens) - 16, (12,), generator=generator)
            inputs, targets = reference.get_batch(tokens, starts, 16)
            (reference.cross_entropy(decoder_logits(inputs, params, 2), targets) / 2).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return params
