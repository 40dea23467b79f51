"""Chapter 11: training a small decoder, from the split to the weights."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import torch

from autograde.reference.ch06_decoder import decoder_logits

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


def split_tokens(
    tokens: Int[Tensor, " n"], val_fraction: float
) -> tuple[Int[Tensor, " n_train"], Int[Tensor, " n_val"]]:
    """Cut a text in two: a first part to learn from, a last one to be tested on.

    Parameters
    ----------
    tokens: token ids of the whole text, in its order.
    val_fraction: how much of it is for testing, 0 <= val_fraction < 1.

    Returns
    -------
    train, val: each a contiguous piece, in order. val holds the last
    int(n * val_fraction) tokens, and may be empty.
    """
    n_train = len(tokens) - int(len(tokens) * val_fraction)
    return tokens[:n_train], tokens[n_train:]


def get_batch(
    tokens: Int[Tensor, " n"], starts: Int[Tensor, " batch"], block: int
) -> tuple[Int[Tensor, "batch block"], Int[Tensor, "batch block"]]:
    """Windows of a text, and for each of their tokens the one that follows it.

    Parameters
    ----------
    tokens: token ids of the text.
    starts: where each window begins. 0 <= start <= n - block - 1, so that the
        last token of the window has a successor. Windows may overlap.
    block: length of a window.

    Returns
    -------
    inputs, targets: row b of inputs is the `block` tokens from starts[b] on, and
    targets[b, t] is the token after inputs[b, t].
    """
    index = starts[:, None] + torch.arange(block, device=starts.device)
    return tokens[index], tokens[index + 1]


def cross_entropy(
    logits: Float[Tensor, "*batch vocab"],
    targets: Int[Tensor, "*batch"],
    ignore_index: int = -100,
) -> Float[Tensor, ""]:
    """The mean of -log p(target), over all targets that count.

    p is the softmax of the logits over the vocabulary. Logits of any finite size
    give a finite loss.

    Parameters
    ----------
    logits: one score for each token of the vocabulary; at least one batch axis.
    targets: the id of the right token, or `ignore_index`.
    ignore_index: where targets equal it, nothing counts. At least one target
        does not.

    Returns
    -------
    one number: nats per target that counts.
    """
    kept = targets != ignore_index
    logits, targets = logits[kept], targets[kept]  # (n, vocab), (n,)
    right = logits.gather(-1, targets[:, None].long())[:, 0]
    return (logits.logsumexp(dim=-1) - right).mean()


def learning_rate(
    step: int, max_lr: float, min_lr: float, warmup: int, total: int
) -> float:
    """Linear warm-up, then half a cosine down (after Loshchilov and Hutter 2017).

    While step < warmup: max_lr * (step + 1) / warmup. Then half a period of a
    cosine leads from max_lr at step = warmup to min_lr at step = total, and the
    rate stays there.

    Parameters
    ----------
    step: the update that is about to be made, counted from 0.
    max_lr, min_lr: the highest rate and the last one.
    warmup, total: in steps, 0 <= warmup < total.

    Returns
    -------
    the learning rate of this step.
    """
    if step < warmup:
        return max_lr * (step + 1) / warmup
    done = min((step - warmup) / (total - warmup), 1.0)
    return min_lr + (max_lr - min_lr) * (1 + math.cos(math.pi * done)) / 2


def clip_by_global_norm(
    grads: list[Float[Tensor, "*shape"]], max_norm: float
) -> tuple[list[Float[Tensor, "*shape"]], float]:
    """Shrink gradients, all by the same factor, until their joint norm is max_norm.

    The norm is that of all their numbers in one long vector: the root of the sum
    of all squares (Pascanu et al. 2013).

    Parameters
    ----------
    grads: tensors of any shapes, at least one.
    max_norm: above 0. Gradients whose norm is at most this stay as they are.

    Returns
    -------
    clipped, norm: a new list of tensors of the same shapes, and the joint norm
    before clipping. A relative error of 1e-5 does not matter.
    """
    norm = torch.stack([grad.square().sum() for grad in grads]).sum().sqrt()
    factor = min(1.0, max_norm / max(float(norm), 1e-30))
    return [grad * factor for grad in grads], float(norm)


def adamw_step(
    param: Float[Tensor, "*shape"],
    grad: Float[Tensor, "*shape"],
    m: Float[Tensor, "*shape"],
    v: Float[Tensor, "*shape"],
    step: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> tuple[Float[Tensor, "*shape"], ...]:
    """One update by AdamW, as torch.optim.AdamW does it.

    m and v are running means of the gradient and of its square: m becomes
    beta1 m + (1 - beta1) grad, and v becomes beta2 v + (1 - beta2) grad^2. Both
    begin at zero; divided by 1 - beta^step they are free of that beginning
    (Kingma and Ba 2015; Loshchilov and Hutter 2019). The update subtracts
    lr * m / (sqrt(v) + eps), with m and v so corrected, and
    lr * weight_decay * param, with the parameter as it was before.

    Parameters
    ----------
    param, grad, m, v: of one shape; m and v as the step before returned them.
    step: counted from 1.
    lr, betas, eps, weight_decay: as above; betas = (beta1, beta2).

    Returns
    -------
    param, m, v after the step: new tensors. m and v are not the corrected ones.
    """
    beta1, beta2 = betas
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad.square()
    direction = (m / (1 - beta1**step)) / ((v / (1 - beta2**step)).sqrt() + eps)
    return param - lr * (direction + weight_decay * param), m, v


def train(tokens: Int[Tensor, " n"], seed: int, seconds: float) -> dict[str, Any]:
    """Train a decoder with one block and two heads on a text of eight symbols.

    It is judged by its cross-entropy on text of the same source that it has not
    seen, in windows of 16 tokens, by `decoder_logits(inputs, params, n_heads=2)`.

    Parameters
    ----------
    tokens: the text, token ids 0 to 7, some ten thousand of them.
    seed: of all randomness in here.
    seconds: how long this may take. Shortly after that the call has returned.

    Returns
    -------
    params, as `decoder_logits` takes them, of d_model 32: token_embedding (8, 32),
    position_embedding (16, 32), blocks: a list of one dict as `decoder_block`
    takes it, with d_ff 64; norm_gain and norm_bias (32,).
    """
    end, steps = time.monotonic() + 0.8 * seconds, 150
    generator = torch.Generator().manual_seed(seed)

    def matrix(*shape):
        return 0.1 * torch.randn(shape, generator=generator)

    block = {name: matrix(32, 32) for name in ("w_q", "w_k", "w_v", "w_o")}
    block |= {"w_up": matrix(32, 64), "b_up": torch.zeros(64)}
    block |= {"w_down": matrix(64, 32), "b_down": torch.zeros(32)}
    params = {
        "token_embedding": matrix(8, 32),
        "position_embedding": matrix(16, 32),
    }
    params["blocks"] = [block]
    for where, norm in ((block, "norm1"), (block, "norm2"), (params, "norm")):
        where[f"{norm}_gain"], where[f"{norm}_bias"] = (
            torch.ones(32),
            torch.zeros(32),
        )

    places = [(params, name) for name in params if name != "blocks"]
    places += [(block, name) for name in block]
    moments = [(torch.zeros_like(where[name]),) * 2 for where, name in places]
    for step in range(steps):
        if time.monotonic() > end:
            break
        starts = torch.randint(len(tokens) - 16, (16,), generator=generator)
        inputs, targets = get_batch(tokens, starts, 16)
        weights = [where[name].requires_grad_() for where, name in places]
        loss = cross_entropy(decoder_logits(inputs, params, 2), targets)
        grads = torch.autograd.grad(loss, weights)
        grads, _ = clip_by_global_norm(list(grads), 1.0)
        lr = learning_rate(step, 1e-2, 1e-3, 15, steps)
        for i, (where, name) in enumerate(places):
            where[name], *moments[i] = adamw_step(
                weights[i].detach(), grads[i], *moments[i], step + 1,
                lr=lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01,
            )  # fmt: skip
    return params
