"""Training a decoder: the loop, and the evaluation.

    train, val = split_tokens(tokens, 0.1)
    rows = fit(model, train, val, Recipe(steps=500), report=print)

The same loop serves the pages, the benchmarks and `python -m autograde.decoder`;
under torchrun each process takes its share of every batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter

import torch
from torch import nn

from autograde.decoder.evaluation import autocast, evaluate, loss_of, resolve
from autograde.decoder.optimizers import make_optimizer
from autograde.decoder.processes import (
    any_process,
    average,
    processes,
    share_weights,
)
from autograde.decoder.recipe import Recipe
from autograde.reference.ch11_training import get_batch, learning_rate

__all__ = ["Recipe", "Training", "evaluate", "fit", "resolve"]


def fit(
    model: nn.Module,
    train: torch.Tensor,
    val: torch.Tensor | None,
    recipe: Recipe,
    report: Callable[[dict], None] | None = None,
    *,
    state: dict | None = None,
    save: Callable[[dict], None] | None = None,
    save_every: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[dict]:
    """Train a model, where it is, as the recipe says.

    The same model, tokens, recipe, device and number of threads give the same, bit
    for bit (on a GPU with torch.use_deterministic_algorithms). No global random
    numbers are used.

    Parameters
    ----------
    model: takes tokens (batch, block), gives logits (batch, block, vocab).
    train, val: token ids (n,), each longer than recipe.block. val may be None:
        then there is no val_loss.
    report: is called with each row, before that step is saved. What it raises ends
        the training.
    state: what `save` was given: go on from there. The weights are in it, too.
    save: is called with all that the next step depends on, a dict that
        `torch.load(weights_only=True)` reads: before the first step, every
        `save_every` steps (None: eval_every), at the end, and on a stop. It holds
        the live tensors: write or copy them at once.
    stop: is asked after each step (of several processes: after every tenth); True
        saves and ends.

    Returns
    -------
    a row for each eval_every steps and for the last, a dict of
    step (how many were made), loss (nats per token of the training batches since
    the row before), val_loss (of the whole val), lr and norm (of the last step; the
    norm before clipping), tokens and seconds (so far; without evaluating and
    saving).

    Raises
    ------
    ValueError: too few tokens, ids that the model does not know, a block longer
        than it reads, or a batch that the processes cannot share equally.
    """
    training = Training(model, train, val, recipe)
    if state is not None:
        training.load_state_dict(state)
    if save is not None:
        save(training.state_dict())
    while training.step < recipe.steps:
        training.advance()
        step, stopped = training.step, training.stopped(stop)
        is_last = step == recipe.steps
        if is_last or step % recipe.eval_every == 0:
            row = training.measure()
            if report is not None:
                report(row)
        is_due = step % (save_every or recipe.eval_every) == 0
        if save is not None and (is_due or is_last or stopped):
            save(training.state_dict())
        if stopped:
            break
    return training.rows


class Training:
    """A training on its way: all that the next step depends on, and that step."""

    def __init__(self, model, train, val, recipe: Recipe):
        self.model, self.recipe = model, recipe
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = self.parameters[0].device
        _check(model, train, val, recipe)
        self.train = train.to(self.device)
        self.val = None if val is None else val.to(self.device)
        self.precision = resolve(recipe.precision, self.device)
        self.optimizer = make_optimizer(model, recipe)
        self.scaler = torch.amp.GradScaler(
            self.device.type, enabled=self.precision == "float16"
        )
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.loss = torch.compile(loss_of) if recipe.compile else loss_of
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.rows, self.losses = [], []
        self.rank, self.world = processes()
        share_weights(model)

    def advance(self) -> None:
        """Make one step."""
        begin, recipe = perf_counter(), self.recipe
        self.lr = learning_rate(
            self.step,
            recipe.max_lr,
            recipe.min_lr,
            recipe.warmup_steps,
            recipe.steps,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * group.get("lr_scale", 1.0)
        loss = self.backward()
        loss = average([p.grad for p in self.parameters], loss)
        self.scaler.unscale_(self.optimizer)
        most = math.inf if recipe.clip is None else recipe.clip
        self.norm = nn.utils.clip_grad_norm_(self.parameters, most)
        self.scaler.step(self.optimizer)  # not when float16 overflowed
        self.scaler.update()
        self.optimizer.zero_grad()
        self.losses.append(loss)
        self.step += 1
        self.tokens += recipe.batch * recipe.block
        self.seconds += perf_counter() - begin

    def backward(self) -> torch.Tensor:
        """Gradients of this process's share of the next batch; its loss."""
        recipe, n_starts = self.recipe, len(self.train) - self.recipe.block
        # Everyone draws the whole batch, so that one process draws what several do.
        starts = torch.randint(n_starts, (recipe.batch,), generator=self.generator)
        pieces = starts.view(recipe.accumulation, self.world, -1)[:, self.rank]
        total = torch.zeros((), device=self.device)
        for piece in pieces.to(self.device, non_blocking=True):
            inputs, targets = get_batch(self.train, piece, recipe.block)
            with autocast(self.precision, self.device):
                loss = self.loss(self.model, inputs, targets) / recipe.accumulation
            self.scaler.scale(loss).backward()
            total += loss.detach()
        return total

    def stopped(self, stop: Callable[[], bool] | None) -> bool:
        """Whether any process is asked to stop."""
        # On a GPU the answer waits for all that is under way: ask seldom.
        if stop is None or (self.world > 1 and self.step % 10):
            return False
        return any_process(stop(), self.device)

    def measure(self) -> dict:
        """The row of this step; it is kept in `rows`."""
        begin = perf_counter()
        loss = torch.stack(self.losses).double().mean().item()  # waits for the GPU
        self.seconds += perf_counter() - begin
        self.losses = []
        row = {"step": self.step, "loss": loss, "val_loss": None}
        if self.val is not None:
            block = self.recipe.block
            row["val_loss"] = evaluate(self.model, self.val, block, self.precision)
        row |= {"lr": self.lr, "norm": self.norm.item()}
        row |= {"seconds": self.seconds, "tokens": self.tokens}
        self.rows.append(row)
        return row

    def state_dict(self) -> dict:
        """All that the next step depends on; the tensors are the live ones."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "generator": self.generator.get_state(),  # of the batches to come
            "losses": torch.stack(self.losses) if self.losses else torch.empty(0),
            "rows": [dict(row) for row in self.rows],
            **{name: getattr(self, name) for name in ("step", "tokens", "seconds")},
        }

    def load_state_dict(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.generator.set_state(state["generator"])
        self.losses = list(state["losses"].to(self.device))
        self.rows = [dict(row) for row in state["rows"]]
        for name in ("step", "tokens", "seconds"):
            setattr(self, name, state[name])


def _check(model, train, val, recipe: Recipe) -> None:
    """Raise a ValueError for what cannot be trained."""
    block, world = recipe.block, processes()[1]
    for tokens, name in ((train, "training"), (val, "validation")):
        if tokens is None:
            continue
        if len(tokens) <= block:
            raise ValueError(
                f"the {name} split has {len(tokens)} tokens, and block={block} "
                f"needs at least {block + 1}: give a longer text or a shorter block"
            )
        low, high = (int(end) for end in tokens.aminmax())
        known = model.config.vocab
        if low < 0 or high >= known:
            raise ValueError(
                f"the {name} split has token ids from {low} to {high}, and with "
                f"vocab={known} the model knows 0 to {known - 1}"
            )
    if block > model.config.max_seq:
        raise ValueError(
            f"block={block}: the model has max_seq={model.config.max_seq}"
        )
    if recipe.batch % (world * recipe.accumulation):
        raise ValueError(
            f"batch={recipe.batch} cannot be shared by {world} processes in "
            f"{recipe.accumulation} pieces each: give a multiple of "
            f"{world * recipe.accumulation}"
        )
