"""Wrong answers to chapter 1."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.reference import ch01_autoregressive as right


def picked(log_probs, tokens):
    """The log probability of each token that occurred."""
    return np.take_along_axis(log_probs, np.asarray(tokens)[..., None], axis=-1)[..., 0]


# sequence_log_prob ---------------------------------------------------------------------


@wrong("sequence_log_prob")
def mean_instead_of_sum(log_probs, tokens):
    """You return the mean over the tokens. The log probability of the whole is the sum: each
    token multiplies the probability by another factor."""
    return picked(log_probs, tokens).mean(axis=-1)


@wrong("sequence_log_prob")
def probability_instead_of_its_logarithm(log_probs, tokens):
    """You return the probability itself; its logarithm is asked for. A long text's probability
    is too small for a float."""
    return np.exp(picked(log_probs, tokens).sum(axis=-1))


@wrong("sequence_log_prob")
def logarithm_of_the_product(log_probs, tokens):
    """On paper this is right, but you multiply the probabilities before you take the logarithm:
    the product of a few hundred of them underflows to 0, whose logarithm is -inf. Stay with
    logarithms."""
    with np.errstate(divide="ignore"):
        return np.log(np.prod(np.exp(picked(log_probs, tokens)), axis=-1))


@wrong("sequence_log_prob")
def product_of_logarithms(log_probs, tokens):
    """You multiply the logarithms. Probabilities are multiplied; their logarithms are added."""
    return np.prod(picked(log_probs, tokens), axis=-1)


@wrong("sequence_log_prob")
def loss_instead_of_log_probability(log_probs, tokens):
    """The sign is that of a loss. The logarithm of a probability is never positive."""
    return -picked(log_probs, tokens).sum(axis=-1)


@wrong("sequence_log_prob")
def shifted_once_more(log_probs, tokens):
    """You pair row t with token t + 1, as one must when row t predicts the next token. Here row
    t is log p(. | x_<t), so it belongs to token t, and the first token counts, too."""
    return picked(log_probs[..., :-1, :], tokens[..., 1:]).sum(axis=-1)


@wrong("sequence_log_prob")
def first_token_left_out(log_probs, tokens):
    """The first token is left out. It has a row as well, p(x_1) with nothing before it, and the
    chain rule starts there."""
    return picked(log_probs, tokens)[..., 1:].sum(axis=-1)


@wrong("sequence_log_prob")
def one_hot_times_table(log_probs, tokens):
    """You multiply the table by ones and zeros and add up. 0 times -inf is NaN, so a word of
    probability 0 that did not even occur spoils the sum. Pick the entries instead."""
    one_hot = np.eye(log_probs.shape[-1])[tokens]
    with np.errstate(invalid="ignore"):
        return (one_hot * log_probs).sum(axis=(-2, -1))


@wrong("sequence_log_prob", same_as="one_hot_times_table")
def one_hot_by_einsum(log_probs, tokens):
    one_hot = np.eye(log_probs.shape[-1])[tokens]
    with np.errstate(invalid="ignore"):
        return np.einsum("...tv,...tv->...", one_hot, log_probs)


@wrong("sequence_log_prob")
def most_probable_tokens(log_probs, tokens):
    """You add the largest entry of each row: that scores the words that the model likes best.
    The words that did occur are to be scored."""
    return log_probs.max(axis=-1).sum(axis=-1)


@wrong("sequence_log_prob")
def one_number_for_the_batch(log_probs, tokens):
    """You add over the batch, too, so that its sequences become one number. Add over the
    positions only, the last axis of `tokens`."""
    return picked(log_probs, tokens).sum()


@wrong("sequence_log_prob")
def added_over_the_batch(log_probs, tokens):
    """You add along axis 0. With batch axes in front that is not the axis of the positions:
    count from the back, axis=-1."""
    return picked(log_probs, tokens).sum(axis=0)


@wrong("sequence_log_prob")
def one_sequence_only(log_probs, tokens):
    """This works for one sequence alone. With a batch axis in front, `np.arange(len(tokens))`
    counts sequences, not positions."""
    return log_probs[np.arange(len(tokens)), tokens].sum()


@wrong("sequence_log_prob")
def every_row_with_every_token(log_probs, tokens):
    """`log_probs[..., tokens]` takes all the tokens from every row, so each row counts once for
    each token. Row t belongs to token t alone."""
    return log_probs[..., tokens].sum(axis=(-2, -1))


@wrong("sequence_log_prob")
def zero_made_finite(log_probs, tokens):
    """A token of probability 0 gets a finite number from you. Its log probability is -inf, and
    so is that of the whole sequence: the model called this text impossible."""
    return np.maximum(picked(log_probs, tokens), -100).sum(axis=-1)


@wrong("sequence_log_prob", same_as="zero_made_finite")
def zero_made_the_lowest_number(log_probs, tokens):
    return np.nan_to_num(picked(log_probs, tokens)).sum(axis=-1)


@wrong("sequence_log_prob", same_as="zero_made_finite")
def zero_plus_a_little(log_probs, tokens):
    return np.log(np.exp(picked(log_probs, tokens)) + 1e-12).sum(axis=-1)


@wrong("sequence_log_prob")
def impossible_tokens_skipped(log_probs, tokens):
    """You leave out the tokens of probability 0. They make the whole sequence impossible: its
    log probability is -inf."""
    values = picked(log_probs, tokens)
    return np.where(np.isfinite(values), values, 0).sum(axis=-1)


@wrong("sequence_log_prob")
def zero_taken_for_padding(log_probs, tokens):
    """You leave out the tokens with id 0, as if they were padding. Here 0 is a word like any
    other."""
    return np.where(np.asarray(tokens) != 0, picked(log_probs, tokens), 0).sum(axis=-1)


@wrong("sequence_log_prob")
def logarithm_of_a_logarithm(log_probs, tokens):
    """You take the logarithm of what is a logarithm already, and negative: that is NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(picked(log_probs, tokens)).sum(axis=-1)


@wrong("sequence_log_prob")
def probabilities_added(log_probs, tokens):
    """You add the probabilities of the tokens. The chain rule multiplies them, which means
    adding their logarithms."""
    with np.errstate(divide="ignore"):
        return np.log(np.exp(picked(log_probs, tokens)).sum(axis=-1))


@wrong("sequence_log_prob")
def in_bits(log_probs, tokens):
    """You have divided by log 2, which gives bits. The table holds natural logarithms, and the
    result is to be one."""
    return picked(log_probs, tokens).sum(axis=-1) / np.log(2)


@wrong("sequence_log_prob")
def one_value_for_each_token(log_probs, tokens):
    """You return one number for each token; add them up, so that each sequence has one."""
    return picked(log_probs, tokens)


# perplexity ----------------------------------------------------------------------------


@wrong("perplexity")
def exponential_forgotten(log_probs, tokens):
    """This is the cross-entropy, in nats. The perplexity is its exponential."""
    return float(-picked(log_probs, tokens).mean())


@wrong("perplexity")
def minus_forgotten(log_probs, tokens):
    """The sign is missing, so you return 1 divided by the perplexity. It is never below 1."""
    return float(np.exp(picked(log_probs, tokens).mean()))


@wrong("perplexity")
def two_to_the_power_of_nats(log_probs, tokens):
    """You raise 2 to a mean of natural logarithms. The base must fit the logarithm: exp for
    natural ones, 2 for bits."""
    return float(2 ** -picked(log_probs, tokens).mean())


@wrong("perplexity")
def not_divided_by_the_tokens(log_probs, tokens):
    """You take exp of the sum. Divide it by the number of tokens first: perplexity is what one
    token costs, and does not grow with the length."""
    return float(np.exp(-picked(log_probs, tokens).sum()))


@wrong("perplexity")
def mean_of_the_perplexities(log_probs, tokens):
    """You compute a perplexity for each sequence and average those. Average the log
    probabilities over all tokens first, and take exp once, at the end."""
    return float(np.mean(np.exp(-picked(log_probs, tokens).mean(axis=-1))))


@wrong("perplexity")
def divided_by_the_number_of_sequences(log_probs, tokens):
    """You divide the sum by the length of axis 0. That is the number of sequences when there is
    a batch; divide by the number of tokens, all of them."""
    return float(np.exp(-picked(log_probs, tokens).sum() / len(tokens)))


@wrong("perplexity")
def divided_by_the_length_alone(log_probs, tokens):
    """You add over the whole batch but divide by the length of one sequence. Divide by the
    number of all tokens."""
    return float(np.exp(-picked(log_probs, tokens).sum() / tokens.shape[-1]))


@wrong("perplexity")
def one_perplexity_for_each_sequence(log_probs, tokens):
    """You return a perplexity for each sequence; one number for everything is asked for."""
    return np.exp(-picked(log_probs, tokens).mean(axis=-1))


@wrong("perplexity")
def mean_of_the_inverse_probabilities(log_probs, tokens):
    """You average 1/p over the tokens. The perplexity is the geometric mean of 1/p: average the
    logarithms, then take exp."""
    return float(np.mean(np.exp(-picked(log_probs, tokens))))


@wrong("perplexity")
def inverse_of_the_mean_probability(log_probs, tokens):
    """You average the probabilities and invert. Average their logarithms: a text is as
    improbable as the product of its tokens, not as their sum."""
    return float(1 / np.mean(np.exp(picked(log_probs, tokens))))


@wrong("perplexity")
def table_instead_of_tokens(log_probs, tokens):
    """You average over the whole table, words that did not occur included. Only the tokens that
    did occur count."""
    return float(np.exp(-log_probs.mean()))


@wrong("perplexity")
def entropy_of_the_model(log_probs, tokens):
    """This is exp of the entropy of the model's own distributions: how uncertain the model says
    it is. The tokens that did occur have no part in it, and they are what is to be scored."""
    probs = np.exp(log_probs)
    terms = np.where(probs > 0, probs * np.where(probs > 0, log_probs, 0), 0)
    return float(np.exp(-terms.sum(axis=-1).mean()))


@wrong("perplexity")
def perplexity_shifted_once_more(log_probs, tokens):
    """You pair row t with token t + 1. Here row t is log p(. | x_<t), so it belongs to token t,
    and the first token counts, too."""
    values = picked(log_probs[..., :-1, :], tokens[..., 1:])
    return float(np.exp(-values.mean())) if values.size else float("nan")


@wrong("perplexity")
def first_token_not_counted(log_probs, tokens):
    """The first token is left out. It has a row as well, the model's prediction with nothing
    before it, and the mean goes over every token."""
    values = picked(log_probs, tokens)[..., 1:]
    return float(np.exp(-values.mean())) if values.size else float("nan")


@wrong("perplexity")
def divided_by_the_whole_table(log_probs, tokens):
    """You divide the sum by the number of entries of the table, vocabulary included, as a mean
    over ones and zeros times the table does. Divide by the number of tokens."""
    return float(np.exp(-picked(log_probs, tokens).sum() / log_probs.size))


@wrong("perplexity")
def zero_not_counted_as_padding(log_probs, tokens):
    """You leave out the tokens with id 0, as if they were padding. Here 0 is a word like any
    other."""
    values = picked(log_probs, tokens)[np.asarray(tokens) != 0]
    return float(np.exp(-values.mean())) if values.size else 1.0


@wrong("perplexity")
def one_hot_mean(log_probs, tokens):
    """You multiply the table by ones and zeros. 0 times -inf is NaN, so a word of probability 0
    that did not even occur spoils the sum. Pick the entries instead."""
    one_hot = np.eye(log_probs.shape[-1])[tokens]
    with np.errstate(invalid="ignore"):
        return float(np.exp(-(one_hot * log_probs).sum(axis=-1).mean()))


@wrong("perplexity")
def root_of_the_product(log_probs, tokens):
    """You multiply the probabilities and take the root. On paper that is right; but the product
    of a few hundred underflows to 0, and the result becomes infinite. Stay with logarithms."""
    values = picked(log_probs, tokens)
    with np.errstate(divide="ignore"):
        return float(np.prod(np.exp(values)) ** (-1 / values.size))


@wrong("perplexity", same_as="root_of_the_product")
def root_of_one_over_the_product(log_probs, tokens):
    values = picked(log_probs, tokens)
    with np.errstate(divide="ignore"):
        return float((1 / np.prod(np.exp(values))) ** (1 / values.size))


@wrong("perplexity")
def infinity_avoided(log_probs, tokens):
    """A token of probability 0 gets a finite penalty from you. A model that calls impossible
    what did occur has infinite perplexity."""
    return float(np.exp(-np.maximum(picked(log_probs, tokens), -100).mean()))


@wrong("perplexity", same_as="infinity_avoided")
def infinity_avoided_by_a_little(log_probs, tokens):
    return float(np.exp(-np.log(np.exp(picked(log_probs, tokens)) + 1e-12).mean()))


@wrong("perplexity", same_as="infinity_avoided")
def infinity_avoided_by_a_large_loss(log_probs, tokens):
    return float(np.exp(-np.maximum(picked(log_probs, tokens), -1e4).mean()))


@wrong("perplexity", same_as="infinity_avoided")
def infinity_avoided_by_a_bound(log_probs, tokens):
    return float(np.exp(min(20.0, -picked(log_probs, tokens).mean())))


@wrong("perplexity")
def impossible_tokens_not_counted(log_probs, tokens):
    """You leave out the tokens of probability 0. They are what the model got most wrong: the
    perplexity is infinite."""
    values = picked(log_probs, tokens)
    values = values[np.isfinite(values)]
    return float(np.exp(-values.mean())) if values.size else 1.0


# teacher_forcing -----------------------------------------------------------------------


@wrong("teacher_forcing")
def cut_instead_of_shifted(tokens, bos):
    """You return tokens[:-1] and tokens[1:], as one does without a start token. That loses a
    prediction: the first token is never a target. Here both have the shape of `tokens`."""
    return tokens[..., :-1], tokens[..., 1:]


@wrong("teacher_forcing")
def not_shifted(tokens, bos):
    """The inputs are the tokens themselves: position t reads the very token that it must
    predict, and no mask can hide that. The inputs must be one step behind."""
    return tokens.copy(), tokens.copy()


@wrong("teacher_forcing")
def rolled_around(tokens, bos):
    """np.roll brings the last token round to the front, so the first position reads the end of
    the text. That place belongs to bos."""
    return np.roll(tokens, 1, axis=-1), tokens


@wrong("teacher_forcing")
def rolled_through_the_batch(tokens, bos):
    """You shift the flattened array, as np.roll does without `axis`: each row but the first begins
    with the last token of the row before. Shift along the last axis."""
    inputs = np.roll(tokens, 1)
    inputs.reshape(-1)[0] = bos
    return inputs, tokens


@wrong("teacher_forcing")
def first_token_overwritten(tokens, bos):
    """You put bos over the first token without moving the others: from the second position on,
    each reads the token that it must predict."""
    inputs = tokens.copy()
    inputs[..., 0] = bos
    return inputs, tokens


@wrong("teacher_forcing")
def shifted_to_the_left(tokens, bos):
    """You shift to the left: position t reads token t + 1, the future. The inputs run one step
    behind the targets, so the tokens move to the right and bos stands first."""
    return np.concatenate([tokens[..., 1:], np.full_like(tokens[..., :1], bos)], axis=-1), tokens


@wrong("teacher_forcing")
def bos_at_the_end(tokens, bos):
    """The start token stands at the end. It is what the model reads when it has read nothing
    yet, so it comes first."""
    return np.concatenate([tokens[..., :-1], np.full_like(tokens[..., :1], bos)], axis=-1), tokens


@wrong("teacher_forcing")
def last_token_kept(tokens, bos):
    """Your inputs are bos and then all tokens: one too many. Nothing is left to predict after
    the last token, so it is never read."""
    return np.concatenate([np.full_like(tokens[..., :1], bos), tokens], axis=-1), tokens


@wrong("teacher_forcing")
def one_prediction_too_many(tokens, bos):
    """Both results are one too long: you also predict what comes after the last token, and
    nobody has said what that is. Both have the shape of `tokens`."""
    edge = np.full_like(tokens[..., :1], bos)
    return np.concatenate([edge, tokens], axis=-1), np.concatenate([tokens, edge], axis=-1)


@wrong("teacher_forcing")
def bos_forgotten(tokens, bos):
    """The tokens have moved, but the first place still holds the first token, which is what the
    first position must predict. It belongs to bos."""
    return np.concatenate([tokens[..., :1], tokens[..., :-1]], axis=-1), tokens


@wrong("teacher_forcing")
def shifted_twice(tokens, bos):
    """Inputs and targets are both shifted: after reading token t your model must predict token
    t + 2. Shift the inputs to the right, or the targets to the left, not both."""
    start = np.full_like(tokens[..., :1], bos)
    inputs = np.concatenate([start, tokens[..., :-1]], axis=-1)
    return inputs, np.concatenate([tokens[..., 1:], start], axis=-1)


@wrong("teacher_forcing")
def targets_one_ahead(tokens, bos):
    """You keep the inputs and move the targets. With a start token it is the inputs that move:
    they are bos and then the tokens without the last, and the targets are the tokens."""
    return tokens, np.concatenate([tokens[..., 1:], np.full_like(tokens[..., :1], bos)], axis=-1)


@wrong("teacher_forcing")
def changed_places(tokens, bos):
    """The two have changed places: inputs come first, then targets."""
    return right.teacher_forcing(tokens, bos)[::-1]


@wrong("teacher_forcing")
def targets_shifted_as_well(tokens, bos):
    """Your targets are shifted just as the inputs are, so position t must predict what it reads.
    The targets are the tokens as they are. (Shifting in place moves both at once.)"""
    inputs, _ = right.teacher_forcing(tokens, bos)
    return inputs, inputs


@wrong("teacher_forcing")
def shifted_along_the_batch(tokens, bos):
    """You shift along axis 0. In a batch that moves whole sequences: each reads the sequence
    before it. Shift along the last axis."""
    return np.concatenate([np.full_like(tokens[:1], bos), tokens[:-1]]), tokens


@wrong("teacher_forcing")
def one_list_only(tokens, bos):
    """This works for a single sequence. In a batch, [bos] has no batch axes to be joined to,
    and tokens[:-1] cuts off a sequence; count axes from the back."""
    return np.concatenate([[bos], tokens[:-1]]), tokens


@wrong("teacher_forcing")
def flattened(tokens, bos):
    """The batch is lost: without `axis`, np.append and np.insert flatten what they are given."""
    return np.insert(tokens, 0, bos)[:-1], tokens


@wrong("teacher_forcing")
def numbers_with_a_point(tokens, bos):
    """Your inputs are floats (np.zeros, np.ones and np.empty make them unless told otherwise).
    Token ids are looked up in a table, so they stay integers."""
    inputs = np.zeros(tokens.shape)
    inputs[..., 0] = bos
    inputs[..., 1:] = tokens[..., :-1]
    return inputs, tokens


@wrong("teacher_forcing", same_as="targets_shifted_as_well")
def overwritten_in_place(tokens, bos):
    tokens[..., 1:] = tokens[..., :-1].copy()
    tokens[..., 0] = bos
    return tokens, tokens


@wrong("teacher_forcing")
def caller_loses_the_tokens(tokens, bos):
    """The result is right, but the caller's array is changed: the shift happens in place. Make
    the inputs a new array."""
    targets = tokens.copy()
    tokens[..., 1:] = targets[..., :-1]
    tokens[..., 0] = bos
    return tokens, targets


@wrong("teacher_forcing")
def starts_with_zero(tokens, bos):
    """Your inputs start with 0 whatever `bos` says; the start token's id is an argument."""
    return right.teacher_forcing(tokens, 0)


@wrong("teacher_forcing")
def inputs_alone(tokens, bos):
    """You return the inputs alone; return both, `return inputs, targets`."""
    return right.teacher_forcing(tokens, bos)[0]


# influence -----------------------------------------------------------------------------


def tried(f, x, versions, moved=lambda after, before: (after != before).any(axis=-1)):
    """Try versions(row) of each row, and collect which outputs `moved`."""
    before = f(x)
    result = np.zeros((len(x), len(x)), dtype=bool)
    with np.errstate(all="ignore"):
        for j in range(len(x)):
            for new in versions(x[j]):
                changed = x.astype(np.float64)
                changed[j] = new
                result[:, j] |= moved(f(changed), before)
    return result


def plenty(row):
    """All the versions that are needed."""
    directions = np.vstack([np.ones(len(row)), np.eye(len(row))])
    steps = np.concatenate([1e6 * directions, directions, 1e-3 * directions])
    return [*(row + steps), *(row - steps), -row]


@wrong("influence")
def inputs_in_rows(f, x):
    """Rows and columns have changed places: [i, j] is about output i and input j, so a change of
    row j of x fills column j."""
    return right.influence(f, x).T


@wrong("influence")
def nearly_equal_is_equal(f, x):
    """You compare with a tolerance, as np.allclose does. An influence may be tiny, and a leak of
    a trillionth is a leak: compare exactly."""
    return tried(f, x, plenty, lambda after, before: ~np.isclose(after, before).all(axis=-1))


@wrong("influence", same_as="nearly_equal_is_equal")
def differences_above_a_threshold(f, x):
    return tried(f, x, plenty, lambda after, before: np.abs(after - before).max(axis=-1) > 1e-6)


@wrong("influence", same_as="nearly_equal_is_equal")
def differences_above_a_tiny_threshold(f, x):
    return tried(f, x, plenty, lambda after, before: np.abs(after - before).max(axis=-1) > 1e-10)


@wrong("influence", same_as="nearly_equal_is_equal")
def nearly_equal_in_numbers_only(f, x):
    return tried(f, x, plenty, lambda after, before: np.abs(after - before).sum(axis=-1) > 1e-8)


@wrong("influence")
def only_huge_changes(f, x):
    """You try huge changes only. Where a function repeats itself or saturates, a huge step can
    land on the same output, and a small one does not."""
    return tried(
        f,
        x,
        lambda row: [
            -row,
            *(row + s * d for s in (1e6, -1e6) for d in (np.ones(len(row)), *np.eye(len(row)))),
        ],
    )


@wrong("influence", same_as="only_huge_changes")
def a_million_for_each_feature(f, x):
    return tried(f, x, lambda row: [row + 1e6 * d for d in np.eye(len(row))])


@wrong("influence")
def only_modest_changes(f, x):
    """You try changes of ordinary size only. A function may have a threshold that they do not
    reach: go up to a million."""
    return tried(
        f,
        x,
        lambda row: [
            -row,
            *(
                row + s * d
                for s in (1.0, -1.0, 1e-3, 10.0)
                for d in (np.ones(len(row)), *np.eye(len(row)))
            ),
        ],
    )


@wrong("influence")
def one_added_to_the_row(f, x):
    """Your result shows what one ordinary change of the whole row does, such as 1 added to it, and
    no more. Thresholds, flips of sign and differences between features do not show it: try
    several changes, and join what they find, |=."""
    return tried(f, x, lambda row: [row + 1])


@wrong("influence")
def a_million_added_to_the_row(f, x):
    """Your result shows what one huge change of the whole row does, such as a million added to it,
    and no more. What repeats itself, has saturated, or depends on a difference of features does
    not show it: try several changes, and join what they find, |=."""
    return tried(f, x, lambda row: [row + 1e6])


@wrong("influence")
def a_million_added_and_a_tolerance(f, x):
    """Your result shows what one huge change of the whole row does, such as a million added to it,
    and you compare with a tolerance. Try several changes, small ones and single features
    included, join what they find, |=, and compare exactly."""
    return tried(
        f, x, lambda row: [row + 1e6], lambda after, before: ~np.isclose(after, before).all(axis=-1)
    )


@wrong("influence")
def random_noise_once(f, x):
    """You add random numbers of ordinary size. They do not cross a threshold and seldom change a
    sign: add large changes and flipped signs."""
    noise = np.random.default_rng(0).normal(size=x.shape[1])
    return tried(f, x, lambda row: [row + noise])


@wrong("influence")
def all_features_alike(f, x):
    """You change all features of a row by the same amount. A function that reads only their
    differences, as a layer norm does, does not notice: change single features, too."""
    return tried(f, x, lambda row: [-row, *(row + s for s in (1e6, -1e6, 1.0, -1.0, 1e-3, -1e-3))])


@wrong("influence")
def one_feature_at_a_time(f, x):
    """You change one feature at a time. Where features are multiplied and one is 0, the others
    alone change nothing: change the whole row, too."""
    return tried(
        f, x, lambda row: [row + s * d for s in (1e6, -1e6, 1.0, 1e-3) for d in np.eye(len(row))]
    )


@wrong("influence")
def first_feature_only(f, x):
    """You change only the first feature of a row; the output may depend on another."""
    return tried(
        f,
        x,
        lambda row: [row + s * np.eye(len(row))[0] for s in (1e6, -1e6, 1.0, -1.0, 1e-3, -1e-3)],
    )


@wrong("influence")
def upwards_only(f, x):
    """All your changes make the numbers larger. What has reached its limit, such as a sign or a
    minimum, moves only when you go down or flip the sign."""
    return tried(
        f,
        x,
        lambda row: [
            row + s * d for s in (1e6, 1.0, 1e-3) for d in (np.ones(len(row)), *np.eye(len(row)))
        ],
    )


@wrong("influence")
def row_set_to_zero(f, x):
    """You set the row to 0 and see what is missing. A row that is 0 already then does not change
    at all, and other dependences need other changes: try several."""
    return tried(f, x, lambda row: [np.zeros(len(row))])


@wrong("influence")
def row_scaled(f, x):
    """You multiply the row. A row of zeros stays what it is, so it seems to have no influence:
    add something."""
    return tried(f, x, lambda row: [-row, 1e6 * row, 1.001 * row])


@wrong("influence", same_as="row_scaled")
def row_doubled(f, x):
    return tried(f, x, lambda row: [2 * row])


@wrong("influence")
def sign_flipped_only(f, x):
    """You only flip the sign of the row. A row of zeros stays what it is, and so does whatever
    depends on sizes alone: try other changes as well."""
    return tried(f, x, lambda row: [-row])


@wrong("influence")
def poisoned_with_nan(f, x):
    """You put NaN or an infinity into the row. 0 times either is NaN, so outputs that give the row
    a weight of 0 look influenced; a finite change would not reach them."""
    return tried(f, x, lambda row: [np.full(len(row), np.nan)])


@wrong("influence", same_as="poisoned_with_nan")
def poisoned_with_nan_and_searched(f, x):
    return tried(
        f,
        x,
        lambda row: [np.full(len(row), np.nan)],
        lambda after, before: np.isnan(after).any(axis=-1),
    )


@wrong("influence", same_as="poisoned_with_nan")
def poisoned_with_infinity(f, x):
    return tried(f, x, lambda row: [np.full(len(row), np.inf)])


@wrong("influence")
def everything_from_there_on(f, x):
    """You change row j and all rows after it, so that input j is blamed for what the later ones
    do. Change one row at a time."""
    before = f(x)
    result = np.zeros((len(x), len(x)), dtype=bool)
    for j in range(len(x)):
        for size in (1e6, -1e6, 1.0, 1e-3):
            for direction in (np.ones(x.shape[1]), *np.eye(x.shape[1])):
                changed = np.array(x, dtype=np.float64)
                changed[j:] += size * direction
                result[:, j] |= (f(changed) != before).any(axis=-1)
    return result


@wrong("influence")
def changes_pile_up(f, x):
    """The earlier rows keep their changes while you try the next one, so later columns hold the
    influence of all rows so far. Start from a fresh copy of x each time."""
    before = f(x)
    result = np.zeros((len(x), len(x)), dtype=bool)
    changed = np.array(x, dtype=np.float64)
    for j in range(len(x)):
        for new in list(plenty(x[j])):
            changed[j] = new
            result[:, j] |= (f(changed) != before).any(axis=-1)
    return result


@wrong("influence")
def added_and_subtracted_again(f, x):
    """You add to x itself and subtract again. Rounding keeps 0.1 + 1e6 - 1e6 from being 0.1, so
    x stays changed, for your caller and for the rows that you try next. Work on a copy."""
    before = f(x)
    result = np.zeros((len(x), len(x)), dtype=bool)
    for j in range(len(x)):
        for size in (1e6, 1.0, 1e-3):
            for direction in (np.ones(x.shape[1]), *np.eye(x.shape[1])):
                for sign in (1, -1):
                    step = (sign * size * direction).astype(x.dtype)
                    x[j] += step
                    result[:, j] |= (f(x) != before).any(axis=-1)
                    x[j] -= step
    return result


@wrong("influence")
def x_keeps_the_change(f, x):
    """You change the caller's x and do not put it back, and `changed = x` is no copy. Use
    x.copy() for each change."""
    before = f(x)
    result = np.zeros((len(x), len(x)), dtype=bool)
    for j in range(len(x)):
        changed = x
        changed[j] += 1e6
        result[:, j] |= (f(changed) != before).any(axis=-1)
    return result


@wrong("influence")
def any_output_counts(f, x):
    """When any output moves, you mark the whole column. Each output has its own entry: compare
    row by row, .any(axis=-1)."""
    return tried(f, x, plenty, lambda after, before: np.full(len(before), (after != before).any()))


@wrong("influence")
def all_features_must_move(f, x):
    """You ask that all features of an output move, .all(axis=-1). One that moves is enough."""
    return tried(f, x, plenty, lambda after, before: (after != before).all(axis=-1))


@wrong("influence")
def first_output_feature_only(f, x):
    """You compare one feature of the outputs. An output has moved when any of its features has."""
    return tried(f, x, plenty, lambda after, before: after[:, 0] != before[:, 0])


@wrong("influence")
def differences_that_cancel(f, x):
    """You add up the differences over an output's features, and they can cancel: +1 and -1 make
    0. Ask whether any feature moved."""
    return tried(f, x, plenty, lambda after, before: (after - before).sum(axis=-1) != 0)


@wrong("influence", same_as="differences_that_cancel")
def sums_that_cancel(f, x):
    return tried(f, x, plenty, lambda after, before: after.sum(axis=-1) != before.sum(axis=-1))


@wrong("influence")
def slope_at_x(f, x):
    """Your result shows what a tiny step of a single feature does, and no more. A function that is
    flat around x still lets larger changes through. (If you do try others: each result joins
    the earlier ones, |=, and must not replace them.)"""
    return tried(f, x, lambda row: [row + 1e-3 * d for d in np.eye(len(row))])


@wrong("influence")
def triangle_taken_for_granted(f, x):
    """You return the causal triangle without a look at f. This function is there to find out
    whether f keeps to it."""
    return np.tri(len(x), dtype=bool)


@wrong("influence")
def past_only(f, x):
    """You try only the inputs up to each output (j <= i). A leak is an influence of a later
    input: try all."""
    return right.influence(f, x) & np.tri(len(x), dtype=bool)


@wrong("influence")
def future_only(f, x):
    """You report only what comes from later inputs (j > i). The matrix shows every influence,
    that of the past and of the input itself included."""
    return right.influence(f, x) & ~np.tri(len(x), dtype=bool)


@wrong("influence")
def itself_left_out(f, x):
    """The diagonal is empty: you do not count the influence of input i on output i."""
    return right.influence(f, x) & ~np.eye(len(x), dtype=bool)


@wrong("influence")
def itself_taken_for_granted(f, x):
    """The diagonal is True whatever f does. An output need not depend on the input of its own
    position: that, too, is found by trying."""
    return right.influence(f, x) | np.eye(len(x), dtype=bool)


@wrong("influence")
def unmoved_instead_of_moved(f, x):
    """True and False have changed places: True means that the change did reach the output."""
    return ~right.influence(f, x)


@wrong("influence")
def how_far_it_moved(f, x):
    """You return how far each output moved, as numbers. Only whether it moved is asked: bools."""
    before = f(x)
    result = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        for new in plenty(x[j]):
            changed = np.array(x, dtype=np.float64)
            changed[j] = new
            moved = np.abs(f(changed) - before).max(axis=-1)
            result[:, j] = np.maximum(result[:, j], moved)
    return result


@wrong("influence")
def ones_for_true(f, x):
    """The entries are the numbers 0 and 1; the matrix is to hold bools."""
    return right.influence(f, x).astype(np.float64)


@wrong("influence")
def compared_with_the_input(f, x):
    """You compare f of the changed x with x. Compare with f(x), what the outputs were before."""
    result = np.zeros((len(x), len(x)), dtype=bool)
    for j in range(len(x)):
        for new in plenty(x[j]):
            changed = np.array(x, dtype=np.float64)
            changed[j] = new
            result[:, j] |= (f(changed) != x).any(axis=-1)
    return result
