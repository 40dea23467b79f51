"""Wrong answers to chapter 7."""

from __future__ import annotations

import numpy as np

from autograde.bank import wrong
from autograde.broken import ch07_debugging as museum
from autograde.reference import ch07_debugging as reference
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax

# leaks ---------------------------------------------------------------------------------


def search(f, x, changes, differs=lambda after, before: after != before):
    """The pairs (i, j) for which one of `changes(row)`, new rows for x[j], moves output i."""
    found, before = [], f(x.copy())
    for j in range(1, len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for row in changes(x[j]):
            changed = x.copy()
            changed[j] = row
            with np.errstate(all="ignore"):
                moved |= np.asarray(differs(f(changed), before)).any(axis=-1)
        found += [(i, j) for i in range(j) if moved[i]]
    return found


def changes(row, sizes=(1.0, 1e6, 1e12, 1e15)):
    """Many changes of a row: these sizes, in a few directions and their opposites."""
    directions = np.random.default_rng(5).uniform(-1, 1, size=(3, len(row)))
    return [row + size * d for size in sizes for d in (*directions, *-directions)]


@wrong("leaks")
def small_changes_only(f, x):
    """Your changes are too small: a finite fill such as -1e9 holds them all back, and a faint
    effect is lost in rounding. Go up to 1e15."""
    return search(f, x, lambda row: changes(row, sizes=(1.0,)))


@wrong("leaks", same_as="small_changes_only")
def changes_up_to_a_million(f, x):
    return search(f, x, lambda row: changes(row, sizes=(1.0, 1e3, 1e6)))


@wrong("leaks")
def compared_with_a_tolerance(f, x):
    """You compare with a tolerance, as np.allclose does. A leak may be as faint as the last
    digit, and training can still use it: compare exactly."""
    return search(f, x, changes, lambda a, b: ~np.isclose(a, b, equal_nan=False))


@wrong("leaks")
def difference_above_zero(f, x):
    """A comparison with NaN is False: where a change makes an output NaN, the size of the
    difference is NaN, and not above 0. That output has changed all the same."""
    return search(f, x, changes, lambda a, b: np.abs(a - b) > 0)


@wrong("leaks")
def upward_changes_only(f, x):
    """You only make inputs larger. Behind a finite fill, where the inputs are negative, only
    smaller ones get through: try both signs."""
    return search(f, x, lambda row: [row + np.abs(new - row) for new in changes(row)])


@wrong("leaks", same_as="upward_changes_only")
def one_upward_step(f, x):
    return search(f, x, lambda row: [row + size for size in (1e-3, 1.0, 1e6, 1e15)])


@wrong("leaks")
def all_features_alike(f, x):
    """You add the same number to every feature of a row. Some functions see only how the
    features differ, as a layer norm does: change them by different amounts, too."""
    return search(f, x, lambda row: [row + s * z for z in (1, 1e6, 1e12, 1e15) for s in (1, -1)])


@wrong("leaks")
def row_multiplied(f, x):
    """You multiply the row by numbers. A row of zeros stays what it is then: add something to
    it."""
    return search(f, x, lambda row: [row * s * z for z in (2, 1e6, 1e15) for s in (1, -1)])


@wrong("leaks")
def row_set_to_zero(f, x):
    """You change too little. What you do to a row is no change at all if the row is zero, and
    otherwise far too small to get past a finite fill."""
    return search(f, x, lambda row: [0 * row])


@wrong("leaks")
def nan_as_a_dye(f, x):
    """You put NaN (or infinity) into the row. An honest masked attention spreads it too, since
    0 * NaN is NaN: what is asked for are the effects of finite changes."""
    return search(f, x, lambda row: [row + np.nan])


@wrong("leaks", same_as="nan_as_a_dye")
def infinity_as_a_dye(f, x):
    return search(f, x, lambda row: [row + np.inf, row - np.inf])


@wrong("leaks")
def derivative_only(f, x):
    """A derivative tells what tiny changes do. Behind a finite fill, or where an effect is
    faint, it comes out as exactly 0, and a large change gets through."""
    found = []
    for j in range(1, len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for feature in range(x.shape[1]):
            up, down = x.astype(float), x.astype(float)
            up[j, feature] += 1e-5
            down[j, feature] -= 1e-5
            moved |= (np.abs(f(up) - f(down)) > 0).any(axis=-1)
        found += [(i, j) for i in range(j) if moved[i]]
    return found


@wrong("leaks")
def whole_future_at_once(f, x):
    """You change all rows from j on together, and put what moves down to row j. It may have
    been a later one: change one row at a time."""
    found, before = [], f(x.copy())
    for j in range(1, len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for row in changes(x[j]):
            changed = x.copy()
            changed[j:] = row
            moved |= (f(changed) != before).any(axis=-1)
        found += [(i, j) for i in range(j) if moved[i]]
    return found


@wrong("leaks")
def rows_left_changed(f, x):
    """You change x itself and leave it changed, so what row 1 does is also put down to row 2,
    and the caller's array is spoilt. Start from a fresh copy each time."""
    found, before = [], f(x.copy())
    for j in range(1, len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for row in changes(x[j].copy()):
            x[j] = row
            moved |= (f(x.copy()) != before).any(axis=-1)
        found += [(i, j) for i in range(j) if moved[i]]
    return found


@wrong("leaks")
def compared_across_dtypes(f, x):
    """x is float32, your changed copies are float64. The dtype alone changes the last digits of
    f, and every such digit looks like a leak: compute both results in one dtype."""
    found, before = [], f(x.copy())
    for j in range(1, len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for row in changes(x[j]):
            changed = x.astype(np.float64)
            changed[j] = row
            moved |= (f(changed) != before).any(axis=-1)
        found += [(i, j) for i in range(j) if moved[i]]
    return found


@wrong("leaks")
def past_and_present_too(f, x):
    """Your list has pairs with j <= i. An output may depend on its own and on earlier inputs;
    only later ones, j > i, are leaks."""
    found, before = [], f(x.copy())
    for j in range(len(x)):
        moved = np.zeros(len(x), dtype=bool)
        for row in changes(x[j]):
            changed = x.copy()
            changed[j] = row
            moved |= (f(changed) != before).any(axis=-1)
        found += [(i, j) for i in range(len(x)) if moved[i]]
    return found


@wrong("leaks")
def input_before_output(f, x):
    """Your pairs are (input, output). The order asked for is (i, j): first the output that
    moves, then the later input that moves it."""
    return [(j, i) for i, j in search(f, x, changes)]


@wrong("leaks")
def neighbours_only(f, x):
    """You only look at the output just before the changed input. A leak can reach any earlier
    output: compare all rows before j."""
    return [(i, j) for i, j in search(f, x, changes) if j == i + 1]


@wrong("leaks")
def last_input_only(f, x):
    """You only change the last input. Leaks between earlier positions stay hidden then: change
    each row in turn."""
    return [(i, j) for i, j in search(f, x, changes) if j == len(x) - 1]


@wrong("leaks")
def nothing_ever_found(f, x):
    """Your list is always empty. Either the changed input never reaches f, or the results are
    not compared with those from before the change."""
    return []


@wrong("leaks")
def a_matrix_of_leaks(f, x):
    """You return a matrix of what moves what; the result is a list of the pairs (i, j) that
    leak."""
    matrix = np.zeros((len(x), len(x)), dtype=bool)
    for i, j in search(f, x, changes):
        matrix[i, j] = True
    return matrix


# numerical_gradient --------------------------------------------------------------------


def entry_by_entry(f, x, slope):
    """slope(f, x, k) for the index k of every entry, of x in float64."""
    x = np.asarray(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for k in np.ndindex(x.shape):
        gradient[k] = slope(f, x, k)
    return gradient


def moved(x, k, step):
    x = x.copy()
    x[k] += step
    return x


@wrong("numerical_gradient")
def forward_difference(f, x, eps=1e-5):
    """You take the difference between a step forward and no step. Its error grows with eps,
    that of central differences with eps squared: step back as well as forward."""
    return entry_by_entry(f, x, lambda f, x, k: (f(moved(x, k, eps)) - f(x)) / eps)


@wrong("numerical_gradient")
def backward_difference(f, x, eps=1e-5):
    """You take the difference between no step and a step back. Its error grows with eps, that
    of central differences with eps squared: step forward as well as back."""
    return entry_by_entry(f, x, lambda f, x, k: (f(x) - f(moved(x, k, -eps))) / eps)


def central(f, x, k, eps):
    return (f(moved(x, k, eps)) - f(moved(x, k, -eps))) / (2 * eps)


@wrong("numerical_gradient")
def divided_by_one_step(f, x, eps=1e-5):
    """The gradient is twice too large: the two points are 2 * eps apart, not eps."""
    return entry_by_entry(f, x, lambda f, x, k: 2 * central(f, x, k, eps))


@wrong("numerical_gradient")
def half_steps(f, x, eps=1e-5):
    """You step by eps / 2 to either side, and so use half of the step that was asked for (and
    a wrong distance, if you divide by 2 * eps). The two points are x + eps and x - eps."""
    return entry_by_entry(f, x, lambda f, x, k: central(f, x, k, eps / 2))


@wrong("numerical_gradient", same_as="half_steps")
def half_steps_over_two(f, x, eps=1e-5):
    return entry_by_entry(f, x, lambda f, x, k: central(f, x, k, eps / 2) / 2)


@wrong("numerical_gradient")
def step_ignored(f, x, eps=1e-5):
    """With a large `eps` the result should be off by as much as the formula says, and yours is
    not: does your step depend on `eps`?"""
    return entry_by_entry(f, x, lambda f, x, k: central(f, x, k, 1e-5))


@wrong("numerical_gradient")
def left_in_float32(f, x, eps=1e-5):
    """You step in the dtype of x. In float32 an entry near 1 has steps of 1e-7 between its
    neighbours, and differences of f lose most of their digits: make x float64 first."""
    gradient = np.empty(x.shape)
    for k in np.ndindex(x.shape):
        gradient[k] = central(f, x, k, eps)
    return gradient


@wrong("numerical_gradient")
def steps_add_up(f, x, eps=1e-5):
    """The entries that were stepped stay stepped, so that later entries are taken at another
    place. Start from x itself for each entry."""
    up, down = np.array(x, dtype=np.float64), np.array(x, dtype=np.float64)
    gradient = np.empty_like(up)
    for k in np.ndindex(up.shape):
        up[k] += eps
        down[k] -= eps
        gradient[k] = (f(up) - f(down)) / (2 * eps)
    return gradient


@wrong("numerical_gradient", same_as="steps_add_up")
def left_one_step_down(f, x, eps=1e-5):
    x = np.array(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for k in np.ndindex(x.shape):
        x[k] += eps
        up = f(x)
        x[k] -= 2 * eps
        gradient[k] = (up - f(x)) / (2 * eps)
    return gradient


@wrong("numerical_gradient")
def all_entries_at_once(f, x, eps=1e-5):
    """You step all entries at once and so get the sum of the gradient's entries, everywhere
    the same. Step one entry at a time."""
    x = np.asarray(x, dtype=np.float64)
    return np.full(x.shape, (f(x + eps) - f(x - eps)) / (2 * eps))


@wrong("numerical_gradient")
def rows_at_once(f, x, eps=1e-5):
    """You go through the first axis only and step a whole row at once. Go through all entries,
    whatever the number of axes: np.ndindex(x.shape)."""
    x = np.asarray(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for i in range(len(x)):
        gradient[i] = central(f, x, i, eps)
    return gradient


@wrong("numerical_gradient")
def flat_gradient(f, x, eps=1e-5):
    """The numbers are right, but they come back in one row; the gradient has the shape of
    x."""
    return entry_by_entry(f, x, lambda f, x, k: central(f, x, k, eps)).ravel()


@wrong("numerical_gradient")
def downhill(f, x, eps=1e-5):
    """Every sign is turned round: the gradient is f(x + eps) minus f(x - eps), the direction in
    which f rises."""
    return entry_by_entry(f, x, lambda f, x, k: -central(f, x, k, eps))


@wrong("numerical_gradient")
def not_divided(f, x, eps=1e-5):
    """These are the differences of f; the gradient is difference divided by distance."""
    return entry_by_entry(f, x, lambda f, x, k: 2 * eps * central(f, x, k, eps))


@wrong("numerical_gradient")
def stepped_in_place(f, x, eps=1e-5):
    """You step in the caller's array and step back again. Adding and subtracting eps does not
    quite restore a number, and the array is not yours: work on a copy."""
    gradient = np.empty(x.shape)
    for k in np.ndindex(x.shape):
        x[k] += eps
        up = f(x.astype(float))
        x[k] -= 2 * eps
        down = f(x.astype(float))
        x[k] += eps
        gradient[k] = (up - down) / (2 * eps)
    return gradient


# first_bad -----------------------------------------------------------------------------


def first(named_arrays, bad):
    return next((name for name, array in named_arrays.items() if bad(array)), None)


@wrong("first_bad")
def nothing_found(named_arrays):
    """You return None for every input. Does the name, once found, reach a `return`?"""
    return None


@wrong("first_bad")
def nan_only(named_arrays):
    """You look for NaN only. An infinity is the step before it: inf - inf and 0 * inf are
    NaN."""
    return first(named_arrays, lambda a: np.isnan(a).any())


@wrong("first_bad")
def infinity_only(named_arrays):
    """You look for infinities only; NaN counts, too."""
    return first(named_arrays, lambda a: np.isinf(a).any())


@wrong("first_bad")
def positive_infinity_only(named_arrays):
    """You miss minus infinity: a log of 0 makes it, and it is as bad as the other one."""
    return first(named_arrays, lambda a: (np.isnan(a) | (a == np.inf)).any())


@wrong("first_bad")
def entirely_bad(named_arrays):
    """You name an array only when all of its entries are bad. One is enough."""
    return first(named_arrays, lambda a: a.size and not np.isfinite(a).any())


@wrong("first_bad")
def sum_of_the_entries(named_arrays):
    """You look at the sum of each array. Finite numbers can add up to infinity, so large
    arrays, and float16 ones, are accused wrongly."""
    with np.errstate(all="ignore"):
        return first(named_arrays, lambda a: not np.isfinite(np.sum(a)))


@wrong("first_bad")
def last_bad(named_arrays):
    """You return the last bad array. The first is where the trouble began; NaN spreads to
    whatever is computed from it."""
    found = None
    for name, array in named_arrays.items():
        if not np.isfinite(array).all():
            found = name
    return found


@wrong("first_bad")
def every_bad_name(named_arrays):
    """You return all bad names; only the first is asked for, as a string."""
    return [name for name, array in named_arrays.items() if not np.isfinite(array).all()]


@wrong("first_bad")
def alphabetical(named_arrays):
    """You go through the names in alphabetical order. The order of the dict is the order in
    which the arrays were computed."""
    return first(dict(sorted(named_arrays.items())), lambda a: not np.isfinite(a).all())


@wrong("first_bad")
def only_yes_or_no(named_arrays):
    """You say whether there is a bad array; the name of the first one is asked for, or
    None."""
    return any(not np.isfinite(array).all() for array in named_arrays.values())


@wrong("first_bad")
def position_of_the_first(named_arrays):
    """You return a number, the place of the first bad array; its name is asked for."""
    bad = [not np.isfinite(array).all() for array in named_arrays.values()]
    return bad.index(True) if any(bad) else None


@wrong("first_bad")
def empty_string_for_none(named_arrays):
    """When all arrays are finite the result is None, and not an empty string or another
    word."""
    return first(named_arrays, lambda a: not np.isfinite(a).all()) or ""


@wrong("first_bad")
def largest_of_nothing(named_arrays):
    """An empty array has no largest or smallest number, and asking for one raises an error.
    Ask whether all entries are finite: that is true of no entries."""
    return first(named_arrays, lambda a: not np.isfinite([np.max(a), np.min(a)]).all())


@wrong("first_bad")
def only_the_first_array(named_arrays):
    """You decide after the first array: the return for the good case stands inside the loop.
    The others are never looked at."""
    for name, array in named_arrays.items():
        return None if np.isfinite(array).all() else name
    return None


# repair_scale --------------------------------------------------------------------------


def weights_with(q, k, allowed, factor):
    return masked_softmax((q @ np.swapaxes(k, -2, -1)) * factor, allowed)


@wrong("repair_scale", "esceptico/perceiver-io#9")
def scale_as_given(q, k, allowed):
    """Your function still does what the code did as it was given: the scores come out d_head times
    too large, and nearly all the weight goes to a single key."""
    return museum.repair_scale(q, k, allowed)


@wrong("repair_scale")
def scale_removed(q, k, allowed):
    """You took the scale out altogether. The scores are then sqrt(d_head) times too large, and
    the weights still too sharp."""
    return weights_with(q, k, allowed, 1.0)


@wrong("repair_scale")
def scaled_twice(q, k, allowed):
    """The scale is applied twice, which divides by d_head: the scores are too small now, and
    the weights almost equal."""
    return weights_with(q, k, allowed, 1 / q.shape[-1])


@wrong("repair_scale", "omihub777/ViT-CIFAR#11")
def scaled_by_all_heads(q, k, allowed):
    """The square root is that of all heads' features together. Each head's dot product has
    d_head terms, the length of the last axis."""
    heads = q.shape[-3] if q.ndim > 2 else 1
    return weights_with(q, k, allowed, (heads * q.shape[-1]) ** -0.5)


@wrong("repair_scale")
def scaled_by_the_keys(q, k, allowed):
    """The square root is that of the number of keys. The length of the vectors counts, d_head:
    as many terms has each dot product."""
    return weights_with(q, k, allowed, k.shape[-2] ** -0.5)


@wrong("repair_scale")
def weights_scaled(q, k, allowed):
    """You scale the weights, after the softmax: the rows no longer sum to 1. The scores are
    scaled, before the softmax."""
    return weights_with(q, k, allowed, 1.0) * q.shape[-1] ** -0.5


@wrong("repair_scale")
def scale_for_one_size(q, k, allowed):
    """The scale is a fixed number, right for d_head = 64 alone."""
    return weights_with(q, k, allowed, 0.125)


@wrong("repair_scale")
def mask_lost_in_the_repair(q, k, allowed):
    """The scale is right now, but the mask has gone: every query sees every key."""
    return weights_with(q, k, np.ones_like(allowed), q.shape[-1] ** -0.5)


# repair_window -------------------------------------------------------------------------


def attend(q, k, v, allowed):
    scores = q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5
    return masked_softmax(scores, allowed) @ v


def distance(q):
    """(query, key): how far a key lies before its query."""
    positions = np.arange(q.shape[-2])
    return positions[:, None] - positions


@wrong("repair_window", "huggingface/transformers#26792")
def window_as_given(q, k, v, window):
    """Your function still does what the code did as it was given: a query sees one key more than
    the window allows. Count the keys of a late query."""
    return museum.repair_window(q, k, v, window)


@wrong("repair_window")
def window_one_too_short(q, k, v, window):
    """Now a query sees one key too few: `window` keys, its own included. With window = 1 it
    sees itself."""
    far = distance(q)
    return attend(q, k, v, (far >= 0) & (far < window - 1))


@wrong("repair_window", "microsoft/onnxruntime#25927")
def window_without_the_current_token(q, k, v, window):
    """The window has the right number of keys, but it ends before the query's own position. A
    query sees itself."""
    far = distance(q)
    return attend(q, k, v, (far > 0) & (far <= window))


@wrong("repair_window")
def window_to_both_sides(q, k, v, window):
    """The window reaches into the future: causal attention sees its own key and earlier ones
    only."""
    return attend(q, k, v, np.abs(distance(q)) < window)


@wrong("repair_window", "proger/hippogriff#7")
def window_gone(q, k, v, window):
    """The window has no effect any more: a query sees the whole past."""
    return attend(q, k, v, distance(q) >= 0)


@wrong("repair_window")
def window_in_blocks(q, k, v, window):
    """You cut the sequence into blocks of `window`. The window moves with the query: it always
    ends at the query's own position."""
    block = np.arange(q.shape[-2]) // window
    return attend(q, k, v, (distance(q) >= 0) & (block[:, None] == block))


@wrong("repair_window")
def window_of_the_first_keys(q, k, v, window):
    """Every query sees the first `window` keys. The window is that of the latest keys, and it
    moves with the query."""
    first_keys = np.arange(q.shape[-2]) < window
    return attend(q, k, v, (distance(q) >= 0) & first_keys)


@wrong("repair_window")
def window_from_the_wrong_side(q, k, v, window):
    """The sign of the diagonal is wrong: you keep the keys that lie at least window - 1 places
    after the query, and the causal mask closes those."""
    far = distance(q)
    return attend(q, k, v, (far >= 0) & (far <= 1 - window))


# repair_softmax ------------------------------------------------------------------------


def summed(exponentials, largest):
    """(weights, log_sum) of exponentials from which `largest` was taken; 0 / 0 is 0."""
    with np.errstate(all="ignore"):
        total = exponentials.sum(axis=-1, keepdims=True)
        log_sum = largest + np.log(total)
        return exponentials / np.where(total == 0, 1, total), log_sum[..., 0]


def softmax_below(scores, allowed, largest):
    """(weights, log_sum) of the allowed scores after `largest` was subtracted."""
    with np.errstate(all="ignore"):
        return summed(np.exp(np.where(allowed, scores - largest, -np.inf)), largest)


def largest_allowed(scores, allowed):
    return np.where(allowed, scores, -np.inf).max(axis=-1, keepdims=True)


@wrong("repair_softmax", "FluxML/NNlib.jl#43")
def softmax_as_given(scores, allowed):
    """Your function still does what the code did as it was given: rows of very negative scores
    come out as zeros, because each of their exponentials underflows to 0."""
    return museum.repair_softmax(scores, allowed)


@wrong("repair_softmax")
def zero_was_a_guard(scores, allowed):
    """The very negative rows are right now. But the 0 had a second use: a query with no allowed
    key has the largest score -inf, and -inf - -inf is NaN. It should get zeros."""
    closed = np.where(allowed, scores, -np.inf)
    largest = closed.max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        exponentials = np.exp(closed - largest)
        total = exponentials.sum(axis=-1, keepdims=True)
        return exponentials / total, (largest + np.log(total))[..., 0]


@wrong("repair_softmax")
def maximum_of_all_keys(scores, allowed):
    """The largest score is looked for among all keys, closed ones included. If a closed one
    lies far above the others, everything underflows again."""
    return softmax_below(scores, allowed, scores.max(axis=-1, keepdims=True))


@wrong("repair_softmax")
def maximum_of_all_rows(scores, allowed):
    """You subtract the largest score of the whole array. A row that lies far below it still
    underflows: each row needs its own."""
    largest = largest_allowed(scores, allowed).max()
    return softmax_below(scores, allowed, largest if np.isfinite(largest) else 0)


@wrong("repair_softmax")
def nothing_subtracted_any_more(scores, allowed):
    """You subtract nothing any more: very negative scores still underflow to 0, and large ones
    now overflow to infinity."""
    return softmax_below(scores, allowed, 0)


@wrong("repair_softmax")
def smallest_subtracted(scores, allowed):
    """You subtract the smallest score. What remains is positive, and its exponential overflows
    as soon as two scores are far apart."""
    smallest = np.where(allowed, scores, np.inf).min(axis=-1, keepdims=True)
    return softmax_below(scores, allowed, smallest)


@wrong("repair_softmax")
def mean_subtracted(scores, allowed):
    """You subtract the mean. A score far above it overflows, and if all the others lie far
    below it they are lost: only the largest score is safe."""
    with np.errstate(all="ignore"):
        total = np.where(allowed, scores, 0).sum(axis=-1, keepdims=True)
        mean = total / np.broadcast_to(allowed, scores.shape).sum(axis=-1, keepdims=True)
    return softmax_below(scores, allowed, mean)


@wrong("repair_softmax")
def largest_size_subtracted(scores, allowed):
    """You subtract the largest absolute value. For negative scores that makes them twice as
    negative: they underflow even earlier."""
    largest = np.where(allowed, np.abs(scores), 0).max(axis=-1, keepdims=True)
    return softmax_below(scores, allowed, largest)


@wrong("repair_softmax", "CASIA-IVA-Lab/DANet#48")
def difference_turned_round(scores, allowed):
    """You take the largest score minus the scores: the order is turned round, and the smallest
    score gets the most weight."""
    largest = largest_allowed(scores, allowed)
    largest = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(all="ignore"):
        return summed(np.exp(np.where(allowed, largest - scores, -np.inf)), largest)


@wrong("repair_softmax")
def scores_clipped(scores, allowed):
    """You cut the scores off below some number. Nothing underflows then, but scores that differ
    become equal, and so do their weights."""
    scores = np.maximum(scores, -700)
    largest = largest_allowed(scores, allowed)
    return softmax_below(scores, allowed, np.where(np.isfinite(largest), largest, 0))


@wrong("repair_softmax", same_as="scores_clipped")
def scores_clipped_under_zero(scores, allowed):
    scores = np.maximum(scores, -700)
    largest = np.maximum(largest_allowed(scores, allowed), 0)
    return softmax_below(scores, allowed, largest)


@wrong("repair_softmax")
def maximum_with_a_lower_floor(scores, allowed):
    """You subtract the largest score or some very low number, whichever is larger. That moves
    the bug to lower scores: below that number everything underflows as before."""
    return softmax_below(scores, allowed, np.maximum(largest_allowed(scores, allowed), -1e4))


@wrong("repair_softmax", same_as="maximum_with_a_lower_floor")
def maximum_with_the_lowest_usual_fill(scores, allowed):
    return softmax_below(scores, allowed, np.maximum(largest_allowed(scores, allowed), -1e9))


@wrong("repair_softmax", same_as="maximum_with_a_lower_floor")
def maximum_of_a_finite_fill(scores, allowed):
    filled = np.where(allowed, scores, -1e4)
    return softmax_below(scores, allowed, filled.max(axis=-1, keepdims=True))


@wrong("repair_softmax")
def small_number_below(scores, allowed):
    """A small number added to the sum avoids 0 / 0 and the logarithm of 0, but the exponentials
    are 0 already: the rows of very negative scores still do not sum to 1."""
    largest = np.maximum(largest_allowed(scores, allowed), 0)
    exponentials = np.exp(np.where(allowed, scores, -np.inf) - largest)
    total = exponentials.sum(axis=-1, keepdims=True) + 1e-9
    return exponentials / total, (largest + np.log(total))[..., 0]


@wrong("repair_softmax")
def equal_when_underflown(scores, allowed):
    """A row that underflows gets equal weights. That is right only if its scores are equal;
    avoid the underflow, do not paper over it."""
    weights, log_sum = museum.repair_softmax(scores, allowed)
    keys = np.broadcast_to(allowed, scores.shape)
    with np.errstate(all="ignore"):
        equal = np.nan_to_num(keys / keys.sum(axis=-1, keepdims=True))
    return np.where(weights.any(axis=-1, keepdims=True), weights, equal), log_sum


@wrong("repair_softmax")
def largest_not_added_back(scores, allowed):
    """The weights are right, but log_sum is that of the shifted scores: what was subtracted
    before the exponential has to be added after the logarithm."""
    weights, log_sum = reference.repair_softmax(scores, allowed)
    largest = largest_allowed(scores, allowed)[..., 0]
    return weights, log_sum - np.where(np.isfinite(largest), largest, 0)


@wrong("repair_softmax")
def logarithm_of_the_plain_sum(scores, allowed):
    """The weights are right, but log_sum is the logarithm of exponentials from which nothing
    was subtracted: they underflow, or overflow, as those of the weights did."""
    with np.errstate(all="ignore"):
        plain = np.log(np.exp(np.where(allowed, scores, -np.inf)).sum(axis=-1))
    return masked_softmax(scores, allowed), plain


@wrong("repair_softmax")
def weights_without_log_sum(scores, allowed):
    """You return the weights alone; the result is the pair (weights, log_sum)."""
    return masked_softmax(scores, allowed)


# repair_unused_slots -------------------------------------------------------------------


def to_buffer(q, k, v, filled):
    with np.errstate(all="ignore"):
        return attend(q, k, v, filled)


def filled_slots(k_buffer, length):
    return np.arange(k_buffer.shape[-2]) < length


@wrong("repair_unused_slots", "Dao-AILab/flash-attention#2374")
def slots_as_given(q, k_buffer, v_buffer, length):
    """Your function still does what the code did as it was given. The weights of the unused slots
    are exactly 0, and 0 times NaN is NaN."""
    with np.errstate(all="ignore"):
        return museum.repair_unused_slots(q, k_buffer, v_buffer, length)


@wrong("repair_unused_slots")
def result_cleaned(q, k_buffer, v_buffer, length):
    """The NaN is gone, but so is the answer: you return 0 where the filled slots have something
    to say. A sum to which NaN was added cannot be mended afterwards."""
    return np.nan_to_num(slots_as_given(q, k_buffer, v_buffer, length))


@wrong("repair_unused_slots")
def nan_cleaned_infinities_kept(q, k_buffer, v_buffer, length):
    """You take care of NaN, but an infinity is as bad: 0 times infinity is NaN."""
    k, v = (np.where(np.isnan(b), 0, b) for b in (k_buffer, v_buffer))
    return to_buffer(q, k, v, filled_slots(k, length))


@wrong("repair_unused_slots", "ml-explore/mlx-examples#977")
def emptied_but_not_closed(q, k_buffer, v_buffer, length):
    """You empty the unused slots, but you no longer close them: a key of zeros has the score 0,
    and exp(0) is 1, a weight like any other."""
    filled = filled_slots(k_buffer, length)[:, None]
    k, v = (np.where(filled, b, 0) for b in (k_buffer, v_buffer))
    return to_buffer(q, k, v, np.ones(k.shape[-2], dtype=bool))


@wrong("repair_unused_slots", same_as="slots_as_given")
def keys_cut_values_not(q, k_buffer, v_buffer, length):
    k = np.where(filled_slots(k_buffer, length)[:, None], k_buffer, 0)
    return to_buffer(q, k, v_buffer, filled_slots(k_buffer, length))


@wrong("repair_unused_slots")
def last_token_dropped(q, k_buffer, v_buffer, length):
    """You cut one slot too early: the first `length` slots are filled, and the newest token is
    in the last of them."""
    keep = max(length - 1, 1)
    return to_buffer(q, k_buffer[..., :keep, :], v_buffer[..., :keep, :], True)


@wrong("repair_unused_slots")
def one_slot_too_many(q, k_buffer, v_buffer, length):
    """You cut one slot too late: slot number `length`, counted from 0, is the first unused
    one."""
    keep = length + 1
    return to_buffer(q, k_buffer[..., :keep, :], v_buffer[..., :keep, :], True)


@wrong("repair_unused_slots")
def cut_from_the_end(q, k_buffer, v_buffer, length):
    """You take the last `length` slots. The filled ones are the first."""
    return to_buffer(q, k_buffer[..., -length:, :], v_buffer[..., -length:, :], True)


@wrong("repair_unused_slots")
def cut_along_the_batch(q, k_buffer, v_buffer, length):
    """You cut the first axis. That is the slots only if there is no batch: count the axes from
    the back."""
    if k_buffer.ndim == 2:
        return reference.repair_unused_slots(q, k_buffer, v_buffer, length)
    return to_buffer(q[:length], k_buffer[:length], v_buffer[:length], True)


@wrong("repair_unused_slots")
def buffers_emptied_for_good(q, k_buffer, v_buffer, length):
    """The result is right, but you write zeros into the caller's buffers. Those are not yours
    to change: work on a copy, or look at a part."""
    k_buffer[..., length:, :] = 0
    v_buffer[..., length:, :] = 0
    return museum.repair_unused_slots(q, k_buffer, v_buffer, length)


# repair_norm ---------------------------------------------------------------------------


def normed(x, gain, bias, eps, axis, ddof=0):
    mean = x.mean(axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        variance = x.var(axis=axis, keepdims=True, ddof=ddof)
        return gain * (x - mean) / np.sqrt(variance + eps) + bias


@wrong("repair_norm", "google-deepmind/dm-haiku#700")
def norm_as_given(x, gain, bias, eps=1e-5):
    """Your function still does what the code did as it was given: mean and variance are taken over
    the whole sequence, so that every later position changes every earlier one."""
    return museum.repair_norm(x, gain, bias, eps)


@wrong("repair_norm")
def norm_over_the_sequence(x, gain, bias, eps=1e-5):
    """You normalise each feature over the sequence, axis -2. That still mixes the positions:
    a position is normalised over its own features."""
    return normed(x, gain, bias, eps, -2)


@wrong("repair_norm")
def norm_over_everything(x, gain, bias, eps=1e-5):
    """Mean and variance are taken over the whole array, batch and all: now even other sequences
    have an influence."""
    return normed(x, gain, bias, eps, None)


@wrong("repair_norm")
def norm_counted_from_the_front(x, gain, bias, eps=1e-5):
    """The axis is counted from the front, axis=1: with batch axes in front that is not the
    features. Count from the back."""
    return normed(x, gain, bias, eps, 1)


@wrong("repair_norm")
def norm_of_the_first_axis(x, gain, bias, eps=1e-5):
    """Mean and variance are taken over the first axis, which is the batch or the sequence;
    a position is normalised over its own features, the last axis."""
    return normed(x, gain, bias, eps, 0)


@wrong("repair_norm")
def norm_half_mended(x, gain, bias, eps=1e-5):
    """The mean is each position's own now, but the variance is still taken over the whole
    sequence: the size of a later vector still changes earlier ones."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(-2, -1), keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + bias


@wrong("repair_norm")
def norm_other_half_mended(x, gain, bias, eps=1e-5):
    """The variance is each position's own now, but the mean is still that of the whole
    sequence."""
    mean = x.mean(axis=(-2, -1), keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + bias


@wrong("repair_norm")
def norm_over_the_past(x, gain, bias, eps=1e-5):
    """You normalise with the mean and variance of all positions so far. That leaks nothing,
    but it is no layer norm: a position is normalised by itself."""
    out = [normed(x[..., : t + 1, :], gain, bias, eps, (-2, -1)) for t in range(x.shape[-2])]
    return np.stack([part[..., -1, :] for part in out], axis=-2)


@wrong("repair_norm", "harvardnlp/annotated-transformer#119")
def norm_of_samples(x, gain, bias, eps=1e-5):
    """You divide the sum of squares by one less than the number of features. The variance here
    is their mean: divide by the number itself."""
    return normed(x, gain, bias, eps, -1, ddof=1)


@wrong("repair_norm", "hkproj/pytorch-transformer#31")
def norm_eps_outside(x, gain, bias, eps=1e-5):
    """eps is added after the square root; it belongs to the variance, under the root."""
    mean = x.mean(axis=-1, keepdims=True)
    return gain * (x - mean) / (x.std(axis=-1, keepdims=True) + eps) + bias


@wrong("repair_norm")
def norm_eps_lost(x, gain, bias, eps=1e-5):
    """eps has been lost in the repair: a position whose features are all equal divides 0 by
    0."""
    mean, std = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        return gain * (x - mean) / std + bias


@wrong("repair_norm")
def norm_gain_lost(x, gain, bias, eps=1e-5):
    """The positions are normalised rightly, but gain and bias have been lost in the repair."""
    return normed(x, np.ones_like(gain), np.zeros_like(bias), eps, -1)


# repair_merge --------------------------------------------------------------------------


def in_heads(x, n_heads):
    return np.swapaxes(x.reshape(*x.shape[:-1], n_heads, -1), -3, -2)


def head_outputs(x, w_q, w_k, w_v, n_heads, allowed=None, split=in_heads):
    """(*batch, heads, seq, d_head)"""
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return attend(q, k, v, causal_mask(q.shape[-2]) if allowed is None else allowed)


@wrong("repair_merge", "jsbaan/transformer-from-scratch#6")
def merge_as_given(x, w_q, w_k, w_v, w_o, n_heads):
    """Your function still does what the code did as it was given: the heads are joined in reading
    order, so that a position's output is made of one head at several positions, later ones
    included."""
    return museum.repair_merge(x, w_q, w_k, w_v, w_o, n_heads)


@wrong("repair_merge")
def merge_transposed_wrongly(x, w_q, w_k, w_v, w_o, n_heads):
    """You exchange the wrong two axes before joining: sequence and features of a head. It is
    sequence and heads that must change places."""
    heads = head_outputs(x, w_q, w_k, w_v, n_heads)
    return np.swapaxes(heads, -2, -1).reshape(x.shape) @ w_o


@wrong("repair_merge")
def merge_interleaved(x, w_q, w_k, w_v, w_o, n_heads):
    """The positions are right, but the heads' features alternate: first feature of each head,
    then the second of each. Each head's features stand together."""
    heads = head_outputs(x, w_q, w_k, w_v, n_heads)
    return np.moveaxis(heads, -3, -1).reshape(x.shape) @ w_o


@wrong("repair_merge")
def split_broken_to_fit(x, w_q, w_k, w_v, w_o, n_heads):
    """You left the joining as it is and made the splitting fit it. Each head then gets a stretch
    of the sequence instead of a part of the features."""

    def split(y, n_heads):
        return y.reshape(*y.shape[:-2], n_heads, y.shape[-2], -1)

    return head_outputs(x, w_q, w_k, w_v, n_heads, split=split).reshape(x.shape) @ w_o


@wrong("repair_merge", "awf/functional-transformer#8")
def merge_by_adding(x, w_q, w_k, w_v, w_o, n_heads):
    """You add the heads up. They stand side by side: head h multiplies its own rows of w_o."""
    heads = head_outputs(x, w_q, w_k, w_v, n_heads).sum(axis=-3)
    return np.concatenate([heads] * n_heads, axis=-1) @ w_o


@wrong("repair_merge")
def merge_in_reverse(x, w_q, w_k, w_v, w_o, n_heads):
    """The heads are joined in the reverse order. Head 0 comes first."""
    heads = head_outputs(x, w_q, w_k, w_v, n_heads)
    return np.concatenate(list(np.moveaxis(heads, -3, 0))[::-1], axis=-1) @ w_o


@wrong("repair_merge", "gazelle93/Transformer-Various-Positional-Encoding#1")
def merge_for_one_batch_axis(x, w_q, w_k, w_v, w_o, n_heads):
    """You name four axes, so it works with exactly one batch axis. There may be none, or
    two: count the axes from the back."""
    heads = head_outputs(x, w_q, w_k, w_v, n_heads)
    return heads.transpose(0, 2, 1, 3).reshape(x.shape) @ w_o


@wrong("repair_merge")
def one_head_only(x, w_q, w_k, w_v, w_o, n_heads):
    """You leave the splitting out, and so there is one large head. It mixes what the heads
    should look up separately."""
    return head_outputs(x, w_q, w_k, w_v, 1)[..., 0, :, :] @ w_o


@wrong("repair_merge")
def output_weights_lost(x, w_q, w_k, w_v, w_o, n_heads):
    """The heads are joined rightly, but the last multiplication, by w_o, has been lost in the
    repair."""
    return np.swapaxes(head_outputs(x, w_q, w_k, w_v, n_heads), -3, -2).reshape(x.shape)


@wrong("repair_merge")
def merge_without_mask(x, w_q, w_k, w_v, w_o, n_heads):
    """The heads are joined rightly, but the mask has been lost in the repair."""
    n = x.shape[-2]
    heads = head_outputs(x, w_q, w_k, w_v, n_heads, np.ones((n, n), dtype=bool))
    return np.swapaxes(heads, -3, -2).reshape(x.shape) @ w_o


# repair_head_masks ---------------------------------------------------------------------


@wrong("repair_head_masks", "line/lighthouse#77")
def masks_as_given(scores, allowed, n_heads):
    """Your function still does what the code did as it was given: the masks stand in the order m0
    m1 m0 m1, the scores in the order of samples, so that heads get the mask of another sample."""
    return museum.repair_head_masks(scores, allowed, n_heads)


@wrong("repair_head_masks")
def mask_of_the_first_sample(scores, allowed, n_heads):
    """Every sample gets the mask of the first one. Each has its own."""
    return masked_softmax(scores, allowed[:1])


@wrong("repair_head_masks")
def masks_joined(scores, allowed, n_heads):
    """All samples share one mask, open where every sample's is open. A sample's result then
    still depends on the company it is in."""
    return masked_softmax(scores, allowed.all(axis=0))


@wrong("repair_head_masks")
def masks_united(scores, allowed, n_heads):
    """All samples share one mask, open where any sample's is open: padding of one sample is
    open when another one is longer."""
    return masked_softmax(scores, allowed.any(axis=0))


@wrong("repair_head_masks")
def masks_repeated_in_reverse(scores, allowed, n_heads):
    """The masks come n_heads times in a row each, but the samples in the reverse order."""
    return masked_softmax(scores, np.repeat(allowed[::-1], n_heads, axis=0))


@wrong("repair_head_masks")
def masks_dropped(scores, allowed, n_heads):
    """The masks have no effect any more: every query sees every key."""
    return masked_softmax(scores, np.ones(scores.shape, dtype=bool))


@wrong("repair_head_masks")
def masks_divided_by_batch(scores, allowed, n_heads):
    """You find the sample by dividing the index by the number of samples. There are n_heads
    entries for each sample: divide by n_heads."""
    sample = np.arange(len(scores)) // len(allowed)
    return masked_softmax(scores, allowed[np.minimum(sample, len(allowed) - 1)])


@wrong("repair_head_masks")
def scores_reordered_instead(scores, allowed, n_heads):
    """You put the scores into the order of the masks and leave them there. The weights must
    come back in the order of the scores."""
    by_sample = scores.reshape(len(allowed), n_heads, *scores.shape[1:])
    reordered = np.swapaxes(by_sample, 0, 1).reshape(scores.shape)
    return masked_softmax(reordered, np.tile(allowed, (n_heads, 1, 1)))


@wrong("repair_head_masks")
def axes_left_apart(scores, allowed, n_heads):
    """The weights are right, but batch and heads have become two axes. They come in on one axis
    and go out on one."""
    by_sample = scores.reshape(len(allowed), n_heads, *scores.shape[1:])
    return masked_softmax(by_sample, allowed[:, None])


# repair_return_weights -----------------------------------------------------------------


def slow_path(q, k, v, allowed):
    weights = masked_softmax(q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5, allowed)
    return weights @ v, weights


def wrong_slow_path(change):
    """The right fast path, with another way to make (out, weights)."""

    def attention(q, k, v, return_weights=False):
        if not return_weights:
            return reference.repair_return_weights(q, k, v)
        return change(q, k, v)

    return attention


def open_mask(q):
    return np.ones(q.shape[-2], dtype=bool)


@wrong("repair_return_weights", "keras-team/keras#23038")
def path_as_given(q, k, v, return_weights=False):
    """Your function still does what the code did as it was given: the path that returns the
    weights has no mask. Look at the same input on both paths."""
    return museum.repair_return_weights(q, k, v, return_weights)


@wrong("repair_return_weights")
def only_the_picture_masked(q, k, v, return_weights=False):
    """The weights that you return are masked, the ones that made `out` are not. The picture
    looks right, and the future leaks."""

    def path(q, k, v):
        out, _ = slow_path(q, k, v, open_mask(q))
        return out, slow_path(q, k, v, causal_mask(q.shape[-2]))[1]

    return wrong_slow_path(path)(q, k, v, return_weights)


@wrong("repair_return_weights")
def only_out_masked(q, k, v, return_weights=False):
    """`out` is causal now, but the weights that you return are not those that made it."""

    def path(q, k, v):
        out, _ = slow_path(q, k, v, causal_mask(q.shape[-2]))
        return out, slow_path(q, k, v, open_mask(q))[1]

    return wrong_slow_path(path)(q, k, v, return_weights)


@wrong("repair_return_weights")
def masked_after_the_softmax(q, k, v, return_weights=False):
    """You mask the weights after the softmax: the rows no longer sum to 1, and the future still
    scales them. Close the scores before."""

    def path(q, k, v):
        weights = np.tril(slow_path(q, k, v, open_mask(q))[1])
        return weights @ v, weights

    return wrong_slow_path(path)(q, k, v, return_weights)


@wrong("repair_return_weights")
def diagonal_closed_too(q, k, v, return_weights=False):
    """Your mask closes the diagonal as well, so that the slow path does not let a query see
    itself. The fast path does."""

    def path(q, k, v):
        n = q.shape[-2]
        return slow_path(q, k, v, np.tri(n, k=-1, dtype=bool))

    return wrong_slow_path(path)(q, k, v, return_weights)


@wrong("repair_return_weights")
def triangle_turned_round(q, k, v, return_weights=False):
    """Your mask is the upper triangle: on the slow path each query sees itself and the
    future."""

    def path(q, k, v):
        return slow_path(q, k, v, causal_mask(q.shape[-2]).T)

    return wrong_slow_path(path)(q, k, v, return_weights)


@wrong("repair_return_weights")
def weights_always_returned(q, k, v, return_weights=False):
    """You return (out, weights) in any case. Without return_weights only `out` is wanted."""
    return slow_path(q, k, v, causal_mask(q.shape[-2]))


@wrong("repair_return_weights")
def weights_never_returned(q, k, v, return_weights=False):
    """You always take the fast path and return `out` alone. With return_weights the pair
    (out, weights) is wanted."""
    return reference.repair_return_weights(q, k, v)


@wrong("repair_return_weights")
def paths_agree_without_mask(q, k, v, return_weights=False):
    """Both paths agree now, because neither is causal: you opened the fast one."""
    out, weights = slow_path(q, k, v, open_mask(q))
    return (out, weights) if return_weights else out


@wrong("repair_return_weights")
def weights_before_out(q, k, v, return_weights=False):
    """You return (weights, out); the order is (out, weights)."""

    def path(q, k, v):
        return slow_path(q, k, v, causal_mask(q.shape[-2]))[::-1]

    return wrong_slow_path(path)(q, k, v, return_weights)


# repair_prefill ------------------------------------------------------------------------


def extended(k, v, cache):
    if cache is None:
        return k, v
    return np.concatenate([cache[0], k], axis=-2), np.concatenate([cache[1], v], axis=-2)


def with_mask(mask):
    """Attention to cache and new tokens, with mask(n_query, n_key)."""

    def attention(q, k, v, cache=None):
        k, v = extended(k, v, cache)
        return attend(q, k, v, mask(q.shape[-2], k.shape[-2])), (k, v)

    return attention


@wrong("repair_prefill", "Mikyx-1/TinyLLM#17")
def prefill_as_given(q, k, v, cache=None):
    """Your function still does what the code did as it was given: whenever there is a cache
    nothing is masked, so that the tokens of a prompt see the ones after them."""
    return museum.repair_prefill(q, k, v, cache)


@wrong("repair_prefill", "pytorch/pytorch#144858")
def prefill_top_left(q, k, v, cache=None):
    """Your mask is aligned at the top left: with earlier tokens in the cache, a new token sees
    the oldest keys instead of all up to itself."""
    return with_mask(lambda n, m: np.tri(n, m, dtype=bool))(q, k, v, cache)


@wrong("repair_prefill")
def prefill_only_when_empty(q, k, v, cache=None):
    """You mask when the cache holds nothing yet. The second chunk of a long prompt meets a
    cache that does, and leaks."""

    def mask(n, m):
        return causal_mask(n) if n == m else np.ones((n, m), dtype=bool)

    return with_mask(mask)(q, k, v, cache)


@wrong("repair_prefill")
def prefill_forgets_the_past(q, k, v, cache=None):
    """The new tokens see each other causally, but no longer the tokens in the cache."""
    keys, values = extended(k, v, cache)
    return attend(q, k, v, causal_mask(q.shape[-2])), (keys, values)


@wrong("repair_prefill")
def prefill_without_itself(q, k, v, cache=None):
    """Your mask is one key too short: a new token sees itself, too."""
    return with_mask(lambda n, m: np.tri(n, m, m - n - 1, dtype=bool))(q, k, v, cache)


@wrong("repair_prefill")
def prefill_one_too_far(q, k, v, cache=None):
    """Your mask is one key too long: each new token sees the one after it."""
    return with_mask(lambda n, m: np.tri(n, m, m - n + 1, dtype=bool))(q, k, v, cache)


@wrong("repair_prefill")
def new_before_old(q, k, v, cache=None):
    """You put the new keys and values before the old ones. The order is that of the text: the
    mask goes by it, and the next call, too."""
    if cache is not None:
        k = np.concatenate([k, cache[0]], axis=-2)
        v = np.concatenate([v, cache[1]], axis=-2)
    return attend(q, k, v, causal_mask(q.shape[-2], k.shape[-2])), (k, v)


@wrong("repair_prefill")
def only_the_new_ones_kept(q, k, v, cache=None):
    """The output is right, but the cache that you return holds only the new keys and values:
    the next token will have forgotten the others."""
    return reference.repair_prefill(q, k, v, cache)[0], (k, v)


@wrong("repair_prefill", "awslabs/sockeye#731")
def keys_in_place_of_values(q, k, v, cache=None):
    """The values in the cache that you return are keys: the second part must be the
    values."""
    out, (keys, _) = reference.repair_prefill(q, k, v, cache)
    return out, (keys, keys)


@wrong("repair_prefill")
def nothing_masked_at_all(q, k, v, cache=None):
    """Now nothing is masked, cache or not: the repair has taken away the mask that worked."""
    return with_mask(lambda n, m: np.ones((n, m), dtype=bool))(q, k, v, cache)


# repair_loss ---------------------------------------------------------------------------


def scores_of(logits, targets):
    """The log probability of each target."""
    largest = logits.max(axis=-1, keepdims=True)
    log_total = largest + np.log(np.exp(logits - largest).sum(axis=-1, keepdims=True))
    return np.take_along_axis(logits - log_total, targets[..., None], axis=-1)[..., 0]


@wrong("repair_loss", "huggingface/transformers#47394")
def loss_as_given(logits, tokens):
    """Your function still does what the code did as it was given: row t is compared with the token
    at position t + 2, and with tokens of the next sequence at the end of each."""
    with np.errstate(all="ignore"):
        return museum.repair_loss(logits, tokens)


@wrong("repair_loss")
def shifted_after_joining(logits, tokens):
    """The shift is single now, but it is made after the sequences have been joined: the last
    row of each sequence is compared with the first token of the next one."""
    flat = logits.reshape(-1, logits.shape[-1])
    return float(-scores_of(flat[:-1], tokens.reshape(-1)[1:]).mean())


@wrong("repair_loss")
def not_shifted_at_all(logits, tokens):
    """Both shifts are gone: row t is compared with the token at position t, which the model
    has just read. It would learn to copy."""
    return float(-scores_of(logits, tokens).mean())


@wrong("repair_loss")
def shifted_backwards(logits, tokens):
    """You shift the wrong way: row t is compared with the token before it."""
    return float(-scores_of(logits[..., 1:, :], tokens[..., :-1]).mean())


@wrong("repair_loss")
def two_ahead_within_the_sequence(logits, tokens):
    """The sequences no longer mix, but the shift is still made twice: row t is compared with
    the token at position t + 2."""
    with np.errstate(all="ignore"):
        return float(-scores_of(logits[..., :-2, :], tokens[..., 2:]).mean())


@wrong("repair_loss")
def summed_not_averaged(logits, tokens):
    """You add the losses up. They are averaged, or else a longer sequence is a worse one."""
    return float(-scores_of(logits[..., :-1, :], tokens[..., 1:]).sum())


@wrong("repair_loss", same_as="summed_not_averaged")
def summed_over_each_sequence(logits, tokens):
    return float(-scores_of(logits[..., :-1, :], tokens[..., 1:]).sum(axis=-1).mean())


@wrong("repair_loss")
def last_row_wraps_round(logits, tokens):
    """The last row of each sequence is compared with that sequence's first token, which np.roll
    puts there. It has no next token, and does not count."""
    return float(-scores_of(logits, np.roll(tokens, -1, axis=-1)).mean())


@wrong("repair_loss")
def averaged_over_all_positions(logits, tokens):
    """You divide by the number of all positions. The last one of each sequence has no next
    token, and does not count."""
    return float(-scores_of(logits[..., :-1, :], tokens[..., 1:]).sum() / tokens.size)


@wrong("repair_loss")
def only_the_first_sequence(logits, tokens):
    """You take only the first sequence of a batch into account."""
    logits, tokens = logits.reshape(-1, *logits.shape[-2:]), tokens.reshape(-1, tokens.shape[-1])
    return float(-scores_of(logits[0, :-1], tokens[0, 1:]).mean())


@wrong("repair_loss")
def log_likelihood(logits, tokens):
    """The sign has changed: a loss is minus the log probability, never below 0."""
    return float(scores_of(logits[..., :-1, :], tokens[..., 1:]).mean())


@wrong("repair_loss")
def largest_no_longer_subtracted(logits, tokens):
    """The shift is right, but the largest logit is no longer subtracted before the exponential:
    large logits overflow."""
    logits, targets = logits[..., :-1, :], tokens[..., 1:]
    with np.errstate(all="ignore"):
        log_total = np.log(np.exp(logits).sum(axis=-1))
    chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return float((log_total - chosen).mean())


@wrong("repair_loss", same_as="largest_no_longer_subtracted")
def logarithm_of_a_plain_softmax(logits, tokens):
    logits, targets = logits[..., :-1, :], tokens[..., 1:]
    with np.errstate(all="ignore"):
        weights = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        chosen = np.take_along_axis(weights, targets[..., None], axis=-1)
        return float(-np.log(chosen).mean())


@wrong("repair_loss", "bkitano/llama-from-scratch#5")
def softmax_twice(logits, tokens):
    """You hand probabilities to a loss that makes probabilities of them once more: perfect
    predictions no longer give a loss of 0."""
    logits, targets = logits[..., :-1, :], tokens[..., 1:]
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return float(-scores_of(weights, targets).mean())
