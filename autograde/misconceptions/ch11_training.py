"""Wrong answers to chapter 11."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from autograde.bank import wrong
from autograde.reference import ch11_training as right
from autograde.reference.ch06_decoder import decoder_block, decoder_logits, layer_norm

# split_tokens --------------------------------------------------------------------------


@wrong("split_tokens")
def val_from_the_beginning(tokens, val_fraction):
    """The beginning of the text went to val. It is the end that the model is tested on: what
    comes after all that it was trained on."""
    n_val = int(len(tokens) * val_fraction)
    return tokens[n_val:], tokens[:n_val]


@wrong("split_tokens", "marin-community/marin#2700")
def shuffled_first(tokens, val_fraction):
    """The tokens were shuffled before the cut. Their order is what the model is to learn; keep
    it, in both parts."""
    order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(1))
    return right.split_tokens(tokens[order], val_fraction)


@wrong("split_tokens", same_as="shuffled_first")
def random_places_in_order(tokens, val_fraction):
    order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(2))
    n_val = int(len(tokens) * val_fraction)
    return tokens[order[n_val:].sort().values], tokens[order[:n_val].sort().values]


@wrong("split_tokens", "HelenGuohx/logbert#57")
def trains_on_everything(tokens, val_fraction):
    """train holds the whole text, val included. What was trained on cannot test whether the
    model learnt something that holds elsewhere."""
    n_train = len(tokens) - int(len(tokens) * val_fraction)
    return tokens, tokens[n_train:]


@wrong("split_tokens")
def slice_from_minus_zero(tokens, val_fraction):
    """When nothing is left for val, your slices turn around: `tokens[-0:]` is the whole text,
    because -0 is 0. Count from the front instead."""
    n_val = int(len(tokens) * val_fraction)
    return tokens[:-n_val], tokens[-n_val:]


@wrong("split_tokens")
def train_rounded_down(tokens, val_fraction):
    """It is the length of train that you round down, so val gets one token more wherever the
    fraction does not come out even. (nanoGPT cuts so; here it is val that is rounded down.)"""
    n_train = int(len(tokens) * (1 - val_fraction))
    return tokens[:n_train], tokens[n_train:]


@wrong("split_tokens")
def rounded_to_the_nearest(tokens, val_fraction):
    """The number of validation tokens is rounded to the nearest integer; int() drops what is
    after the point."""
    n_train = len(tokens) - round(len(tokens) * val_fraction)
    return tokens[:n_train], tokens[n_train:]


@wrong("split_tokens")
def fraction_of_train(tokens, val_fraction):
    """val_fraction was taken as the share of train. It is the share of val."""
    n_train = int(len(tokens) * val_fraction)
    return tokens[:n_train], tokens[n_train:]


@wrong("split_tokens")
def val_returned_first(tokens, val_fraction):
    """The two parts are right and stand in the wrong order: train is returned first."""
    train, val = right.split_tokens(tokens, val_fraction)
    return val, train


@wrong("split_tokens", "TalwalkarLab/leaf#19")
def every_other_token(tokens, val_fraction):
    """Tokens for val are picked out all over the text. Then neither part is text, and each
    validation token has neighbours in train: cut once."""
    n_val = int(len(tokens) * val_fraction)
    step = max(len(tokens) // n_val, 1) if n_val else len(tokens) + 1
    chosen = torch.arange(len(tokens)) % step == step - 1
    return tokens[~chosen], tokens[chosen]


# get_batch -----------------------------------------------------------------------------


def windows(tokens, starts, block, ahead=0):
    return torch.stack([tokens[s + ahead : s + ahead + block] for s in starts.tolist()])


@wrong("get_batch")
def targets_are_the_inputs(tokens, starts, block):
    """Targets are the same tokens as the inputs: the model would learn to copy what it sees.
    Each target is the token after."""
    return windows(tokens, starts, block), windows(tokens, starts, block)


@wrong("get_batch")
def two_ahead(tokens, starts, block):
    """Targets are two tokens ahead of the inputs; they are one ahead."""
    index = starts[:, None] + torch.arange(block)
    return tokens[index], tokens[(index + 2).clamp(max=len(tokens) - 1)]


@wrong("get_batch")
def targets_one_behind(tokens, starts, block):
    """Inputs and targets have changed places: the targets are one behind the inputs, and the
    model would learn to say the past."""
    inputs, targets = right.get_batch(tokens, starts, block)
    return targets, inputs


@wrong("get_batch")
def rolled_within_the_window(tokens, starts, block):
    """The targets are made from the window alone, so the last target of each row is the
    window's first token come round. It must be the token of the text after the window."""
    inputs = windows(tokens, starts, block)
    return inputs, inputs.roll(-1, dims=-1)


@wrong("get_batch")
def last_target_is_a_pad(tokens, starts, block):
    """The last target of each row is 0, as if the text ended with the window. It goes on: take
    the token after the window from the text."""
    inputs = windows(tokens, starts, block)
    return inputs, F.pad(inputs[:, 1:], (0, 1))


@wrong("get_batch")
def one_token_short(tokens, starts, block):
    """Rows are block - 1 long: a window of `block` tokens was split into inputs and targets. It
    takes block + 1 tokens of the text to make both of them `block` long."""
    chunk = windows(tokens, starts, block)
    return chunk[:, :-1], chunk[:, 1:]


@wrong("get_batch")
def starts_ignored(tokens, starts, block):
    """Row b does not begin at starts[b]: your windows follow each other from the beginning of
    the text."""
    begin = torch.arange(len(starts)) * block % max(len(tokens) - block, 1)
    return windows(tokens, begin, block), windows(tokens, begin, block, 1)


@wrong("get_batch")
def first_start_for_all(tokens, starts, block):
    """Every row begins where the first one does. Row b begins at starts[b]."""
    return right.get_batch(tokens, starts[:1].expand(len(starts)), block)


@wrong("get_batch")
def positions_down_the_rows(tokens, starts, block):
    """Your result is (block, batch), with a window in each column. A window is a row."""
    inputs, targets = right.get_batch(tokens, starts, block)
    return inputs.T, targets.T


@wrong("get_batch")
def next_id_instead_of_next_token(tokens, starts, block):
    """1 was added to the tokens themselves. It is the place in the text that moves by 1."""
    inputs = windows(tokens, starts, block)
    return inputs, inputs + 1


@wrong("get_batch", "AOSSIE-Org/OpenVerifiableLLM#92")
def last_window_moved(tokens, starts, block):
    """A window that reaches the end of the text was moved forward. The last start that is
    possible is len(tokens) - block - 1: its last target is the last token."""
    return right.get_batch(tokens, starts.clamp(max=max(len(tokens) - block - 2, 0)), block)


# cross_entropy -------------------------------------------------------------------------


def log_p(logits, targets, ignore_index):
    """(kept log-probabilities of the targets, which targets are kept)"""
    kept = targets != ignore_index
    safe = targets.masked_fill(~kept, 0)[..., None]
    return logits.log_softmax(-1).gather(-1, safe)[..., 0], kept


@wrong("cross_entropy")
def summed_up(logits, targets, ignore_index=-100):
    """This is the sum over all targets. The mean does not depend on how many there are, so that
    losses of different batches can be compared."""
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=ignore_index, reduction="sum"
    )


@wrong("cross_entropy")
def in_bits(logits, targets, ignore_index=-100):
    """The logarithm has base 2, which gives bits. Here it is the natural one, which gives
    nats."""
    return right.cross_entropy(logits, targets, ignore_index) / math.log(2)


@wrong("cross_entropy")
def sign_kept(logits, targets, ignore_index=-100):
    """The result is the mean of log p, which is negative. The loss is minus that: training makes
    it smaller."""
    return -right.cross_entropy(logits, targets, ignore_index)


@wrong("cross_entropy")
def softmax_over_the_batch(logits, targets, ignore_index=-100):
    """The softmax runs over the first axis, a batch axis. The probabilities of a row's tokens
    add up to 1: softmax over the last axis, the vocabulary."""
    kept = targets != ignore_index
    found = logits.log_softmax(0)[kept]
    return -found.gather(-1, targets[kept][:, None]).mean()


@wrong("cross_entropy")
def logarithm_of_the_mean(logits, targets, ignore_index=-100):
    """You take the logarithm of the mean probability. It is the mean of the logarithms: each
    target has its own loss."""
    found, kept = log_p(logits, targets, ignore_index)
    return -found[kept].exp().mean().log()


@wrong("cross_entropy")
def softmax_twice(logits, targets, ignore_index=-100):
    """A softmax has been applied to the logits before a loss that applies its own (as
    F.cross_entropy does). Give it the logits as they are."""
    return right.cross_entropy(logits.softmax(-1), targets, ignore_index)


@wrong("cross_entropy")
def exponentials_overflow(logits, targets, ignore_index=-100):
    """The exponential of a large logit is infinite. Subtract the largest logit of each row
    first, or let logsumexp do it."""
    kept = targets != ignore_index
    e = logits[kept].exp()
    p = e / e.sum(-1, keepdim=True)
    return -p.gather(-1, targets[kept][:, None]).log().mean()


@wrong("cross_entropy", same_as="exponentials_overflow")
def logarithm_of_summed_exponentials(logits, targets, ignore_index=-100):
    kept = targets != ignore_index
    found = logits[kept].gather(-1, targets[kept][:, None])[:, 0]
    return (logits[kept].exp().sum(-1).log() - found).mean()


@wrong("cross_entropy")
def logarithm_of_a_zero(logits, targets, ignore_index=-100):
    """The softmax is rounded to 0 for a very unlikely target, and its logarithm is -inf. Take
    the logarithm before the rounding can happen: log_softmax, or logsumexp."""
    kept = targets != ignore_index
    return -logits[kept].softmax(-1).gather(-1, targets[kept][:, None]).log().mean()


@wrong("cross_entropy")
def small_number_in_the_logarithm(logits, targets, ignore_index=-100):
    """A small number is added to p before the logarithm. That keeps it finite, but no loss can
    then be larger than the logarithm of that number allows: use log_softmax."""
    kept = targets != ignore_index
    p = logits[kept].softmax(-1).gather(-1, targets[kept][:, None])
    return -(p + 1e-9).log().mean()


@wrong("cross_entropy")
def divided_by_all_targets(logits, targets, ignore_index=-100):
    """What is ignored adds nothing to the sum, but it is still counted in the number that you
    divide by."""
    found, kept = log_p(logits, targets, ignore_index)
    return -(found * kept).mean()


@wrong("cross_entropy", "huggingface/transformers#24725")
def mean_of_the_rows_means(logits, targets, ignore_index=-100):
    """The mean is taken of each row first, and then of the rows. When rows have different
    numbers of targets that count, those of short rows weigh more: divide once, by all."""
    found, kept = log_p(logits, targets, ignore_index)
    rows = -(found * kept).sum(-1) / kept.sum(-1)
    return rows[kept.any(-1)].mean()


@wrong("cross_entropy")
def always_minus_100(logits, targets, ignore_index=-100):
    """Only -100 is ignored; the argument ignore_index is not used."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


@wrong("cross_entropy")
def negative_targets_ignored(logits, targets, ignore_index=-100):
    """Every negative target is ignored, and nothing else. It is the targets that equal
    ignore_index, which may be an ordinary token, the pad for instance."""
    kept = targets >= 0
    return F.cross_entropy(logits[kept], targets[kept])


@wrong("cross_entropy")
def nothing_ignored(logits, targets, ignore_index=-100):
    """No target is ignored: those that equal ignore_index are looked up like the others."""
    return -logits.log_softmax(-1).gather(-1, targets[..., None]).mean()


@wrong("cross_entropy")
def classes_on_the_second_axis(logits, targets, ignore_index=-100):
    """F.cross_entropy takes the vocabulary from axis 1. Where there are several batch axes that
    is a batch axis: flatten them into one first."""
    return F.cross_entropy(logits, targets, ignore_index=ignore_index)


@wrong("cross_entropy")
def mean_over_the_vocabulary_too(logits, targets, ignore_index=-100):
    """The mean was taken over the vocabulary, too, although only one entry of each row counts:
    the loss is too small by a factor of vocab."""
    kept = targets != ignore_index
    one_hot = F.one_hot(targets[kept], logits.shape[-1])
    return -(one_hot * logits[kept].log_softmax(-1)).mean()


# learning_rate -------------------------------------------------------------------------


def cosine(done, max_lr, min_lr):
    return min_lr + (max_lr - min_lr) * (1 + math.cos(math.pi * done)) / 2


def after_warmup(step, warmup, total):
    return min((step - warmup) / (total - warmup), 1)


@wrong("learning_rate")
def first_step_without_effect(step, max_lr, min_lr, warmup, total):
    """During the warm-up the rate is max_lr * step / warmup, which is 0 at step 0: the first
    update does nothing. Count the step that is being made."""
    if step < warmup:
        return max_lr * step / warmup
    return right.learning_rate(step, max_lr, min_lr, warmup, total)


@wrong("learning_rate")
def whole_number_division(step, max_lr, min_lr, warmup, total):
    """During the warm-up (step + 1) // warmup drops the fraction, so the rate stays at 0 until
    the last step of it. Divide with a single slash."""
    if step < warmup:
        return max_lr * ((step + 1) // warmup)
    return right.learning_rate(step, max_lr, min_lr, warmup, total)


@wrong("learning_rate")
def warmup_from_min_lr(step, max_lr, min_lr, warmup, total):
    """The warm-up begins at min_lr. It begins near 0: max_lr * (step + 1) / warmup."""
    if step < warmup:
        return min_lr + (max_lr - min_lr) * (step + 1) / warmup
    return right.learning_rate(step, max_lr, min_lr, warmup, total)


@wrong("learning_rate", "PaddlePaddle/PaddleDetection#4611")
def decay_counts_from_zero(step, max_lr, min_lr, warmup, total):
    """The cosine counts from step 0, not from the end of the warm-up: there the rate falls all
    at once. Let it begin at `warmup`."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return cosine(min(step / total, 1), max_lr, min_lr)


@wrong("learning_rate")
def decay_lasts_total_steps(step, max_lr, min_lr, warmup, total):
    """The cosine takes `total` steps after the warm-up and reaches its end too late: it has
    total - warmup steps."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return cosine(min((step - warmup) / total, 1), max_lr, min_lr)


@wrong("learning_rate")
def down_to_zero(step, max_lr, min_lr, warmup, total):
    """The cosine ends at 0. It ends at min_lr."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return cosine(after_warmup(step, warmup, total), max_lr, 0)


@wrong("learning_rate")
def max_lr_above_min_lr(step, max_lr, min_lr, warmup, total):
    """At its highest the cosine reaches min_lr + max_lr: what swings is the difference,
    max_lr - min_lr."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return min_lr + max_lr * (1 + math.cos(math.pi * after_warmup(step, warmup, total))) / 2


@wrong("learning_rate")
def floor_by_maximum(step, max_lr, min_lr, warmup, total):
    """The cosine runs down to 0 and is cut off at min_lr. It should be scaled, so that it
    reaches min_lr at `total` and not before."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return max(cosine(after_warmup(step, warmup, total), max_lr, 0), min_lr)


@wrong("learning_rate")
def straight_line_down(step, max_lr, min_lr, warmup, total):
    """The rate falls along a straight line; it should follow half a cosine, flat at both
    ends."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return max_lr + (min_lr - max_lr) * after_warmup(step, warmup, total)


@wrong("learning_rate")
def quarter_of_a_cosine(step, max_lr, min_lr, warmup, total):
    """Only a quarter of a cosine's period is used, from 1 to 0. Half a period runs from 1 to
    -1: add 1 and halve."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    done = after_warmup(step, warmup, total)
    return min_lr + (max_lr - min_lr) * math.cos(math.pi / 2 * done)


@wrong("learning_rate")
def whole_cosine(step, max_lr, min_lr, warmup, total):
    """A whole period of the cosine fits in: half-way the rate is at its lowest, and at the end
    at its highest again. It should be half a period."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return cosine(2 * after_warmup(step, warmup, total), max_lr, min_lr)


@wrong("learning_rate")
def rises_again(step, max_lr, min_lr, warmup, total):
    """After `total` the cosine goes on and the rate rises again. It stays at min_lr."""
    if step < warmup:
        return max_lr * (step + 1) / warmup
    return cosine((step - warmup) / (total - warmup), max_lr, min_lr)


@wrong("learning_rate")
def nothing_after_the_end(step, max_lr, min_lr, warmup, total):
    """After `total` the rate is 0. It stays at min_lr."""
    return 0.0 if step > total else right.learning_rate(step, max_lr, min_lr, warmup, total)


@wrong("learning_rate")
def warmup_one_step_longer(step, max_lr, min_lr, warmup, total):
    """The warm-up lasts one step too long: at step = warmup it gives more than max_lr (and
    divides by 0 when there is no warm-up). That step is the cosine's first."""
    if step <= warmup:
        return max_lr * (step + 1) / warmup
    return right.learning_rate(step, max_lr, min_lr, warmup, total)


# clip_by_global_norm -------------------------------------------------------------------


def joint_norm(grads):
    return torch.sqrt(sum(g.square().sum() for g in grads))


@wrong("clip_by_global_norm")
def each_by_itself(grads, max_norm):
    """Each tensor is clipped by a norm of its own, so the direction of the whole gradient
    changes. There is one norm, of all of them together."""
    clipped = [g * min(1, max_norm / max(float(g.norm()), 1e-30)) for g in grads]
    return clipped, float(joint_norm(grads))


@wrong("clip_by_global_norm")
def each_number_clamped(grads, max_norm):
    """Each number is cut off at max_norm (clipping by value). That bends the gradient's
    direction; clipping by norm multiplies all numbers by one factor."""
    return [g.clamp(-max_norm, max_norm) for g in grads], float(joint_norm(grads))


@wrong("clip_by_global_norm")
def sum_of_the_norms(grads, max_norm):
    """The norms of the tensors are added up. Norms do not add; squares do: add up the squares
    of all tensors, then take one root."""
    norm = sum(float(g.norm()) for g in grads)
    return [g * min(1, max_norm / max(norm, 1e-30)) for g in grads], norm


@wrong("clip_by_global_norm")
def root_forgotten(grads, max_norm):
    """The root is missing: what you call the norm is the sum of the squares."""
    norm = float(sum(g.square().sum() for g in grads))
    return [g * min(1, max_norm / max(norm, 1e-30)) for g in grads], norm


@wrong("clip_by_global_norm")
def mean_of_the_squares(grads, max_norm):
    """The mean of the squares is taken where the norm has their sum."""
    squares = torch.cat([g.flatten().square() for g in grads])
    norm = float(squares.mean().sqrt())
    return [g * min(1, max_norm / max(norm, 1e-30)) for g in grads], norm


@wrong("clip_by_global_norm")
def largest_number(grads, max_norm):
    """Your norm is the largest absolute value (the maximum norm). Here it is the root of the sum
    of squares."""
    norm = max(float(g.abs().max()) for g in grads)
    return [g * min(1, max_norm / max(norm, 1e-30)) for g in grads], norm


@wrong("clip_by_global_norm")
def short_ones_stretched(grads, max_norm):
    """Short gradients are stretched to max_norm. Clipping shortens; what is short stays as it
    is."""
    norm = max(float(joint_norm(grads)), 1e-30)
    return [g * (max_norm / norm) for g in grads], float(joint_norm(grads))


@wrong("clip_by_global_norm")
def divided_by_the_norm_only(grads, max_norm):
    """Gradients that are too long get norm 1, whatever max_norm is: multiply by max_norm,
    too."""
    norm = float(joint_norm(grads))
    return [g / norm if norm > max_norm else g for g in grads], norm


@wrong("clip_by_global_norm")
def norm_after_clipping(grads, max_norm):
    """The norm that is returned is the one after clipping, which is never more than max_norm.
    The one before is what tells how the training goes."""
    clipped, _ = right.clip_by_global_norm(grads, max_norm)
    return clipped, float(joint_norm(clipped))


@wrong("clip_by_global_norm")
def zero_by_zero(grads, max_norm):
    """When all gradients are 0, you divide 0 by 0, which is NaN. Divide only what is too
    long."""
    norm = joint_norm(grads)
    return [g / norm * norm.clamp(max=max_norm) for g in grads], float(norm)


@wrong("clip_by_global_norm")
def clipped_in_place(grads, max_norm):
    """The tensors that were passed in are changed (`*=`, `mul_`, or torch's clip_grad_norm_).
    Make new ones."""
    norm = float(joint_norm(grads))
    for g in grads:
        g.mul_(min(1.0, max_norm / max(norm, 1e-30)))
    return grads, norm


# adamw_step ----------------------------------------------------------------------------


def adamw(param, grad, m, v, step, lr, betas, eps, weight_decay, root=None, corrected=True):
    """The update with another denominator, or without correction."""
    m = betas[0] * m + (1 - betas[0]) * grad
    v = betas[1] * v + (1 - betas[1]) * grad**2
    a, b = (1 - betas[0] ** step, 1 - betas[1] ** step) if corrected else (1, 1)
    below = root(v / b, eps) if root else (v / b).sqrt() + eps
    return param - lr * (m / a / below + weight_decay * param), m, v


@wrong("adamw_step", "nntrainer/nntrainer#3565")
def decay_in_the_gradient(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The decay is added to the gradient and then divided by the root of v like it (Adam with an
    L2 penalty). In AdamW it goes past m and v, straight to the weights: that is the W."""
    grad = grad + weight_decay * param
    return right.adamw_step(param, grad, m, v, step, lr, betas, eps, 0.0)


@wrong("adamw_step", "joennlae/tensorli#1")
def decay_without_the_rate(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """weight_decay * param is subtracted without lr. The decay follows the learning rate, too."""
    new, m, v = right.adamw_step(param, grad, m, v, step, lr, betas, eps, 0.0)
    return new - weight_decay * param, m, v


@wrong("adamw_step")
def decay_left_out(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """weight_decay has no effect: this is Adam."""
    return right.adamw_step(param, grad, m, v, step, lr, betas, eps, 0.0)


@wrong("adamw_step")
def decay_of_the_new_weights(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The decay takes its share of the weights after the update. It is the old weights that
    decay."""
    new, m, v = right.adamw_step(param, grad, m, v, step, lr, betas, eps, 0.0)
    return new * (1 - lr * weight_decay), m, v


@wrong("adamw_step")
def not_corrected(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """m and v are used without the correction. As they began at zero, they are too small in the
    first steps; divide them by 1 - beta^step."""
    return adamw(param, grad, m, v, step, lr, betas, eps, weight_decay, corrected=False)


@wrong("adamw_step")
def corrected_ones_returned(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The corrected m and v are returned. The next step needs the running means themselves, and
    corrects them anew."""
    new, m, v = right.adamw_step(param, grad, m, v, step, lr, betas, eps, weight_decay)
    return new, m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)


@wrong("adamw_step")
def step_from_zero(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """Your correction takes the first step for the second (beta to the power step + 1). `step`
    is 1 in the first step already."""
    a, b = 1 - betas[0] ** (step + 1), 1 - betas[1] ** (step + 1)
    m = betas[0] * m + (1 - betas[0]) * grad
    v = betas[1] * v + (1 - betas[1]) * grad**2
    return param - lr * (m / a / ((v / b).sqrt() + eps) + weight_decay * param), m, v


@wrong("adamw_step")
def corrected_by_beta_alone(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The correction divides by 1 - beta in every step. That is right in the first step only:
    later it is 1 - beta^step."""
    m = betas[0] * m + (1 - betas[0]) * grad
    v = betas[1] * v + (1 - betas[1]) * grad**2
    direction = m / (1 - betas[0]) / ((v / (1 - betas[1])).sqrt() + eps)
    return param - lr * (direction + weight_decay * param), m, v


@wrong("adamw_step")
def eps_in_the_root(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """eps is added under the root. It is added to the root."""
    return adamw(
        param, grad, m, v, step, lr, betas, eps, weight_decay, lambda v, eps: (v + eps).sqrt()
    )


@wrong("adamw_step")
def eps_before_the_correction(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """eps is added to the root of the uncorrected v, so that the correction scales it, too. Add
    it to the root of the corrected one."""
    m = betas[0] * m + (1 - betas[0]) * grad
    v = betas[1] * v + (1 - betas[1]) * grad**2
    rate = lr * (1 - betas[1] ** step) ** 0.5 / (1 - betas[0] ** step)
    return param - rate * m / (v.sqrt() + eps) - lr * weight_decay * param, m, v


@wrong("adamw_step")
def root_of_v_forgotten(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """m is divided by v, not by its root. Only with the root does the size of the gradient drop
    out."""
    return adamw(param, grad, m, v, step, lr, betas, eps, weight_decay, lambda v, eps: v + eps)


@wrong("adamw_step")
def betas_exchanged(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The two betas have changed places: the first is for m, the second for v."""
    return right.adamw_step(param, grad, m, v, step, lr, tuple(betas)[::-1], eps, weight_decay)


@wrong("adamw_step")
def gradient_in_full(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The gradient is added to m in full, as in SGD with momentum. In a running mean its share
    is 1 - beta1."""
    m = betas[0] * m + grad
    v = betas[1] * v + (1 - betas[1]) * grad**2
    a, b = 1 - betas[0] ** step, 1 - betas[1] ** step
    return param - lr * (m / a / ((v / b).sqrt() + eps) + weight_decay * param), m, v


@wrong("adamw_step")
def shares_exchanged(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """beta and 1 - beta have changed places: with beta1 = 0.9 the running mean keeps nine tenths
    of its old value, and takes one tenth of the new."""
    betas = 1 - betas[0], 1 - betas[1]
    return right.adamw_step(param, grad, m, v, step, lr, betas, eps, weight_decay)


@wrong("adamw_step")
def square_of_the_mean(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """v gets the square of m. It is the running mean of the squares of the gradients."""
    m = betas[0] * m + (1 - betas[0]) * grad
    v = betas[1] * v + (1 - betas[1]) * m**2
    a, b = 1 - betas[0] ** step, 1 - betas[1] ** step
    return param - lr * (m / a / ((v / b).sqrt() + eps) + weight_decay * param), m, v


@wrong("adamw_step")
def uphill(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The update has the wrong sign: it makes the loss larger. Go against the gradient."""
    new, m, v = right.adamw_step(param, -grad, -m, v, step, lr, betas, eps, weight_decay)
    return new, -m, v


@wrong("adamw_step")
def moments_changed_in_place(param, grad, m, v, step, lr, betas, eps, weight_decay):
    """The tensors that were passed in are changed (`mul_`, `add_`, `-=` and the like). Make new
    ones, and return those."""
    m.mul_(betas[0]).add_((1 - betas[0]) * grad)
    v.mul_(betas[1]).add_((1 - betas[1]) * grad**2)
    a, b = 1 - betas[0] ** step, 1 - betas[1] ** step
    return param - lr * (m / a / ((v / b).sqrt() + eps) + weight_decay * param), m, v


@wrong("adamw_step", same_as="moments_changed_in_place")
def parameter_changed_in_place(param, grad, m, v, step, lr, betas, eps, weight_decay):
    new, m, v = right.adamw_step(param, grad, m, v, step, lr, betas, eps, weight_decay)
    return param.copy_(new), m, v


# train: what is observable, quickly ----------------------------------------------------


def logits_of(tokens, params, causal):
    """`decoder_logits`, with a mask or without one."""
    if causal:
        return decoder_logits(tokens, params, 2)
    seq = tokens.shape[-1]
    x = params["token_embedding"][tokens] + params["position_embedding"][:seq]
    x = decoder_block(x, params["blocks"][0], 2, torch.ones(seq, seq, dtype=torch.bool))
    return layer_norm(x, params["norm_gain"], params["norm_bias"]) @ params["token_embedding"].T


_known: dict[tuple, dict] = {}  # an exam trains the same again and again


def fitted(tokens, seed, **how):
    """Weights after a plain training by PyTorch, which takes some tenths of a second."""
    key = tokens.numpy().tobytes(), seed, *how.items()
    if key not in _known:
        _known[key] = _fitted(tokens, seed, **how)
    return _known[key]


def _fitted(tokens, seed, steps=100, ahead=1, causal=True, lr=1e-2, up=False, block=16):
    params = right.train(tokens, seed, -1.0)  # no time, no step
    (layer,) = params["blocks"]
    leaves = [*(p for name, p in params.items() if name != "blocks"), *layer.values()]
    leaves = [p.requires_grad_() for p in leaves]
    optimizer = torch.optim.AdamW(leaves, lr=lr, betas=(0.9, 0.95), maximize=up)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(1, len(tokens) - block - 2, (16,), generator=generator)
        inputs, _ = right.get_batch(tokens, starts, block)
        targets, _ = right.get_batch(tokens, starts + ahead, block)
        logits = logits_of(inputs, params, causal)
        optimizer.zero_grad()
        right.cross_entropy(logits, targets).backward()
        optimizer.step()
    return params


@wrong("train")
def untrained(tokens, seed, seconds):
    """These are the weights that a training starts from. Was a step made at all? And did its
    result go into the dict that you return, and not into a variable of the loop?"""
    return right.train(tokens, seed, -1.0)


@wrong("train")
def all_zeros(tokens, seed, seconds):
    """With all matrices at 0 no gradient reaches them: every position of every layer is the
    same, and stays so. Start from small random numbers."""
    params = right.train(tokens, seed, -1.0)
    (block,) = params["blocks"]
    for part in (params, block):
        for name in part.keys() - {"blocks"}:
            part[name] = torch.full_like(part[name], float(name.endswith("gain")))
    return params


@wrong("train")
def one_head(tokens, seed, seconds):
    """The model was trained with one head, and these weights are worse when two heads share
    them. Give decoder_logits its n_heads = 2 in training, too."""
    params = right.train(tokens, seed, -1.0)
    (block,) = params["blocks"]
    block |= {name: 2 * w for name, w in block.items() if w.ndim == 2}
    leaves = [*(p for name, p in params.items() if name != "blocks"), *block.values()]
    leaves = [p.requires_grad_() for p in leaves]
    optimizer = torch.optim.SGD(leaves, lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(150):
        starts = torch.randint(len(tokens) - 16, (16,), generator=generator)
        inputs, targets = right.get_batch(tokens, starts, 16)
        optimizer.zero_grad()
        right.cross_entropy(decoder_logits(inputs, params, 1), targets).backward()
        torch.nn.utils.clip_grad_norm_(leaves, 1.0)
        optimizer.step()
    return params


@wrong("train")
def learns_to_copy(tokens, seed, seconds):
    """The model has learnt to say the token that it sees: targets and inputs were the same.
    Each target is the token after."""
    return fitted(tokens, seed, steps=40, ahead=0)


@wrong("train")
def learns_the_token_after(tokens, seed, seconds):
    """The model has learnt to say the token after the next one: the targets were shifted
    twice, once by get_batch and once more in the loss."""
    return fitted(tokens, seed, ahead=2)


@wrong("train")
def learns_the_token_before(tokens, seed, seconds):
    """The model has learnt to say the token before: inputs and targets have changed places."""
    return fitted(tokens, seed, steps=60, ahead=-1)


@wrong("train")
def peeks(tokens, seed, seconds):
    """The model was trained without the causal mask. It copied the next token from the position
    where it stands, and that position is closed when it is judged."""
    return fitted(tokens, seed, causal=False)


@wrong("train")
def layout_of_linear_layers(tokens, seed, seconds):
    """The square matrices are transposed. nn.Linear keeps its weight as (out, in) and computes
    x @ weight.T; here matrices are used as x @ w: transpose them all before you return them."""
    params = fitted(tokens, seed)
    (block,) = params["blocks"]
    turned = {name: block[name].T for name in ("w_q", "w_k", "w_v", "w_o")}
    return {**params, "blocks": [{**block, **turned}]}


@wrong("train")
def all_matrices_transposed(tokens, seed, seconds):
    """The matrices of the MLP come as nn.Linear keeps them, (out, in). Here they are used as
    x @ w: w_up is (d_model, d_ff) and w_down (d_ff, d_model). The square ones need the same."""
    params = layout_of_linear_layers(tokens, seed, seconds)
    (block,) = params["blocks"]
    turned = {name: block[name].T for name in ("w_up", "w_down")}
    return {**params, "blocks": [{**block, **turned}]}


@wrong("train")
def sees_one_token(tokens, seed, seconds):
    """The model was trained on windows of a single token. So it never had anything to look back
    at, and most positions never had a gradient."""
    return fitted(tokens, seed, block=1)


@wrong("train")
def trained_on_noise(tokens, seed, seconds):
    """The tokens were shuffled before the training, and with their order went everything that
    could be learnt. Shuffle the starts of the windows, not the text."""
    order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(seed))
    return fitted(tokens[order], seed, steps=40)


@wrong("train")
def one_batch_again_and_again(tokens, seed, seconds):
    """A single small piece of the text was trained on, again and again. The model knows it by
    heart, and little else. Draw new starts for every step."""
    return fitted(tokens[:40], seed, steps=80)


@wrong("train")
def rate_far_too_high(tokens, seed, seconds):
    """The steps were so large that the weights flew apart. Lower the learning rate, warm up, and
    clip the gradients; a loss that rises in the first steps is the sign."""
    return fitted(tokens, seed, steps=20, lr=3.0)


@wrong("train")
def climbs(tokens, seed, seconds):
    """The loss was made larger, not smaller: somewhere a sign is wrong. Look at the loss of the
    first ten steps; it should fall."""
    return fitted(tokens, seed, steps=30, up=True)
