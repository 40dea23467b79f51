"""Right answers to chapter 1, in many forms."""

from __future__ import annotations

import math

import numpy as np

from autograde.bank import right
from autograde.reference import ch01_autoregressive as reference

# sequence_log_prob ---------------------------------------------------------------------


@right("sequence_log_prob")
def picked_by_loops(log_probs, tokens):
    if np.ndim(tokens) > 1:
        return [picked_by_loops(*pair) for pair in zip(log_probs, tokens, strict=True)]
    total = 0
    for row, token in zip(log_probs, tokens, strict=True):
        total += row[token]
    return float(total)


@right("sequence_log_prob")
def picked_by_a_mask(log_probs, tokens):
    occurred = np.arange(log_probs.shape[-1]) == tokens[..., None]
    return np.where(occurred, log_probs, 0).sum(axis=(-2, -1))


@right("sequence_log_prob", "bhanML/Co-teaching#4")
def normalised_once_more(log_probs, tokens):
    """Rows are normalised already, so that log_softmax leaves them as they are."""
    log_probs = log_probs - np.logaddexp.reduce(log_probs, axis=-1, keepdims=True)
    return reference.sequence_log_prob(log_probs, tokens)


@right("sequence_log_prob")
def picked_by_torch(log_probs, tokens):
    import torch

    table, ids = torch.from_numpy(log_probs), torch.from_numpy(tokens).long()
    return table.gather(-1, ids[..., None]).squeeze(-1).sum(-1)


@right("sequence_log_prob")
def added_where_they_occurred(log_probs, tokens):
    occurred = np.arange(log_probs.shape[-1]) == tokens[..., None]
    return np.sum(log_probs, axis=(-1, -2), where=occurred)


@right("sequence_log_prob")
def picked_from_a_flat_table(log_probs, tokens):
    vocab = log_probs.shape[-1]
    rows = np.arange(tokens.size) * vocab + tokens.ravel()
    return log_probs.ravel()[rows].reshape(tokens.shape).sum(-1)


@right("sequence_log_prob")
def added_in_single_precision(log_probs, tokens):
    picked = np.take_along_axis(log_probs.astype(np.float32), tokens[..., None], axis=-1)
    return picked.sum(axis=(-2, -1))


@right("sequence_log_prob")
def added_with_fsum(log_probs, tokens):
    flat = tokens.reshape(-1, tokens.shape[-1])
    tables = log_probs.reshape(len(flat), *log_probs.shape[-2:])
    sums = [
        math.fsum(t[i, w] for i, w in enumerate(ids)) for t, ids in zip(tables, flat, strict=True)
    ]
    return np.array(sums).reshape(tokens.shape[:-1])


# perplexity ----------------------------------------------------------------------------


@right("perplexity")
def perplexity_by_loops(log_probs, tokens):
    surprise, count = 0.0, 0
    for where in np.ndindex(tokens.shape):
        surprise -= log_probs[where][tokens[where]]
        count += 1
    return math.exp(surprise / count)


@right("perplexity")
def perplexity_in_bits(log_probs, tokens):
    bits = -np.take_along_axis(log_probs, tokens[..., None], axis=-1) / np.log(2)
    return 2 ** bits.mean()


@right("perplexity")
def one_over_the_geometric_mean(log_probs, tokens):
    picked = np.take_along_axis(log_probs.astype(np.float32), tokens[..., None], axis=-1)
    return 1 / np.exp(picked.mean(dtype=np.float64))


@right("perplexity")
def perplexity_by_torch(log_probs, tokens):
    import torch

    table = torch.from_numpy(log_probs).flatten(0, -2)
    ids = torch.from_numpy(tokens).long().flatten()
    return torch.nn.functional.nll_loss(table, ids).exp()


@right("perplexity")
def geometric_mean_of_inverse_probabilities(log_probs, tokens):
    inverse = np.exp(-np.take_along_axis(log_probs, tokens[..., None], axis=-1))
    return np.prod(inverse ** (1 / tokens.size))


@right("perplexity")
def mean_of_the_sequences_means(log_probs, tokens):
    """All sequences of an array are equally long, so the mean of their means is the mean."""
    per_sequence = reference.sequence_log_prob(log_probs, tokens) / tokens.shape[-1]
    return np.array(np.exp(-np.mean(per_sequence)), dtype=np.float32)


# teacher_forcing -----------------------------------------------------------------------


@right("teacher_forcing")
def rolled_and_replaced(tokens, bos):
    inputs = np.roll(tokens, 1, axis=-1)
    inputs[..., 0] = bos
    return inputs, tokens.copy()


@right("teacher_forcing")
def rolled_flat_and_replaced(tokens, bos):
    """What a flat roll brings over from the row before stands where bos goes."""
    inputs = np.roll(tokens, 1)
    inputs[..., 0] = bos
    return inputs, tokens


@right("teacher_forcing")
def forced_in_lists(tokens, bos):
    def shift(row):
        return [shift(r) for r in row] if isinstance(row[0], list) else [bos, *row[:-1]]

    tokens = tokens.tolist()
    return [shift(tokens), tokens]


@right("teacher_forcing")
def padded_in_front(tokens, bos):
    padding = [(0, 0)] * (tokens.ndim - 1) + [(1, 0)]
    longer = np.pad(tokens, padding, constant_values=bos)
    return longer[..., :-1], longer[..., 1:]


@right("teacher_forcing")
def forced_by_torch(tokens, bos):
    import torch

    targets = torch.from_numpy(tokens.astype(np.int64))
    return torch.nn.functional.pad(targets[..., :-1], (1, 0), value=bos), targets


@right("teacher_forcing")
def filled_into_an_empty_array(tokens, bos):
    both = np.empty((2, *tokens.shape), dtype=np.int64)
    both[0, ..., 0], both[0, ..., 1:], both[1] = bos, tokens[..., :-1], tokens
    return both


@right("teacher_forcing")
def forced_by_an_index(tokens, bos):
    before = np.maximum(np.arange(tokens.shape[-1]) - 1, 0)
    return np.where(np.arange(tokens.shape[-1]) == 0, bos, tokens[..., before]), tokens


# influence -----------------------------------------------------------------------------


@right("influence")
def influence_in_lists(f, x):
    n, d_in = x.shape
    result = [[False] * n for _ in range(n)]
    before = f(x).tolist()
    for j in range(n):
        for column in [None, *range(d_in)]:
            for change in (-1e6, -0.01, 0.01, 1e6):
                changed = x.astype(float)
                changed[j, slice(None) if column is None else column] += change
                for i, row in enumerate(f(changed).tolist()):
                    result[i][j] = result[i][j] or row != before[i]
    return result


@right("influence")
def influence_by_random_changes(f, x):
    rng = np.random.default_rng(0)
    x = x.astype(np.float64)
    before, moved = f(x), np.zeros((len(x), len(x)), dtype=bool)
    for j in range(len(x)):
        for size in [1e-3, 1.0, 1e3, 1e6] * 6:
            step = size * rng.normal(size=x.shape[1])
            for only in (1, rng.random(x.shape[1]) < 0.5):
                changed = x.copy()
                changed[j] = changed[j] + step * only
                moved[:, j] |= [
                    not np.array_equal(a, b) for a, b in zip(f(changed), before, strict=True)
                ]
    return moved


@right("influence")
def influence_upwards_with_flips(f, x):
    def versions(row):
        yield -row
        for size in (1e6, 1e-6):
            for which in (slice(None), *range(len(row))):
                new = row.copy()
                new[which] += size
                yield new

    before, columns = f(x), []
    for j in range(len(x)):
        column = np.zeros(len(x), dtype=bool)
        for new in versions(x[j].astype(np.float64)):
            after = f(np.vstack([x[:j], new, x[j + 1 :]]))
            column = column | np.any(after != before, axis=1)
        columns.append(column)
    return np.stack(columns, axis=1)


@right("influence")
def influence_restoring_a_row(f, x):
    """Changes its own copy, and puts the row back as it was."""
    work = np.array(x, dtype=np.float64, order="F")
    before, result = f(work), np.zeros((len(x), len(x)), dtype=bool, order="F")
    for j in range(len(x)):
        kept = work[j].copy()
        for size in (1e6, -1e6, 0.5, -0.5, 1e-4):
            for mask in np.vstack([np.ones(x.shape[1]), np.eye(x.shape[1])]):
                work[j] = kept + size * mask
                result[:, j] |= np.count_nonzero(f(work) - before, axis=-1) > 0
        work[j] = kept
    return result


@right("influence")
def influence_as_a_tensor(f, x):
    import torch

    return torch.from_numpy(np.ascontiguousarray(reference.influence(f, x.astype(np.float64))))


@right("influence")
def influence_by_bytes(f, x):
    result = np.zeros((len(x), len(x)), dtype=bool)
    before = [row.tobytes() for row in f(x) + 0.0]
    for j, row in enumerate(x):
        steps = [s * d for s in (1e6, 0.01) for d in (np.ones(len(row)), *np.eye(len(row)))]
        for new in [-row, *(row + step for step in steps), *(row - step for step in steps)]:
            changed = x.copy()
            changed[j] = new
            result[:, j] |= [
                a.tobytes() != b for a, b in zip(f(changed) + 0.0, before, strict=True)
            ]
    return result
