"""Which mistake is named, what is said of an unknown one, and what must not be said."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from autograde.bank import Answer, canonical, misconceptions
from autograde.calls import Outcome
from autograde.diagnosis.inside import WEIGHTS, inside
from autograde.diagnosis.naming import explanation
from autograde.diagnosis.observe import observe
from autograde.diagnosis.places import where
from autograde.diagnosis.relations import relation, rough_relation, weak_relation
from autograde.diagnosis.rows import by_keys
from autograde.examination import Examination, Finding, Record, examine, local
from autograde.exercise import find
from autograde.reference import ch01_autoregressive as one
from autograde.reference import ch02_self_attention as two
from autograde.reference import ch03_causal_mask as three
from autograde.reference import ch05_multi_head as five
from autograde.reference import ch08_kv_cache as eight
from autograde.reference import ch09_variants as nine
from autograde.report import report

OPPOSITE = "closes_what_is_allowed"  # of masked_softmax


def turned(array):
    return np.swapaxes(array, -1, -2)


def told(name, function):
    """(id of the named mistake or "", all that is said in one line)"""
    found = report(examine(find(name), local(function)))
    assert not found.passed
    named = found.misconception.id if found.misconception else ""
    return named, " ".join(f"{title}: {text}" for title, text in found.lessons[:-1])


# Names -----------------------------------------------------------------------------------


def without_scale(q, k, v, allowed):
    weights = three.masked_softmax(q @ turned(k), allowed)
    return weights @ v, weights


def test_two_mistakes_are_named_together():
    """Where both act at once the numbers are neither one's: each is seen where it is alone."""

    def ignores_axis_and_overflows(scores, axis=-1):
        exponentials = np.exp(scores)
        return np.log(exponentials / exponentials.sum(axis=-1, keepdims=True))

    named, text = told("log_softmax", ignores_axis_and_overflows)
    assert named
    assert "`axis` has no effect" in text
    assert "overflow" in text


def test_a_mistake_is_named_on_another_input():
    named, text = told("masked_attention", lambda q, k, v, a: without_scale(q, k, v, ~a))
    assert named == "no_scale"
    assert "as if `allowed` were the opposite of what it is" in text
    named, text = told("masked_attention", without_scale)
    assert named == "no_scale"
    assert "as if" not in text


def test_where_another_input_suffices_no_mistake_is_named(monkeypatch):
    """With the mask turned round every mistake that does not show then would fit as well."""
    exercise = find("masked_softmax")
    known = [a for a in misconceptions(exercise) if canonical(exercise, a).id != OPPOSITE]
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: tuple(known))
    named, text = told("masked_softmax", lambda s, a: three.masked_softmax(s, ~a))
    assert named == ""
    assert "would be right if `allowed` were the opposite" in text


def test_a_mistake_without_wrong_values_is_not_named_beside_wrong_values(monkeypatch):
    """It makes the values right, and warns: that says nothing of values that are wrong."""
    exercise = find("masked_softmax")
    known = {answer.id: answer for answer in misconceptions(exercise)}
    some = (known["nan_mended_afterwards"], known["exponential_of_everything"])
    opposite = [a for a in known.values() if canonical(exercise, a).id == OPPOSITE]
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: some)
    assert opposite
    for answer in opposite:
        assert explanation(examine(exercise, local(answer.function))) is None


def test_a_name_that_one_input_contradicts_is_not_given():
    """Without scale, but right for one shape: whoever forgets the scale is wrong there, too."""

    def mixed(q, k, v, allowed):
        right = q.shape[-1] == 3
        return (three.masked_attention if right else without_scale)(q, k, v, allowed)

    named, _ = told("masked_attention", mixed)
    assert named != "no_scale"


def test_a_mistake_that_explains_only_some_of_the_failures_is_not_named(monkeypatch):
    """Open everywhere: that it is so where the mask is not square is half of the truth."""
    exercise = find("causal_mask")
    known = {answer.id: answer for answer in misconceptions(exercise)}
    part = known["open_when_not_square"]
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: (part,))
    seen = examine(exercise, local(known["no_mask_at_all"].function))
    assert explanation(seen) is None
    assert explanation(examine(exercise, local(part.function))).first is part


def test_errors_of_one_kind_with_other_words_name_nothing(monkeypatch):
    exercise = find("causal_mask")

    def raising(text):
        def function(n_query, n_key=None):
            raise ValueError(text)

        return function

    known = Answer("causal_mask", raising("the axes do not fit"))
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: (known,))
    assert explanation(examine(exercise, local(raising("the axes do not fit")))).first is known
    assert explanation(examine(exercise, local(raising("no such axis")))) is None


def test_two_calls_that_ran_out_of_time_have_nothing_in_common(monkeypatch):
    """On a busy machine any may."""
    exercise, late = find("causal_mask"), Outcome("timeout", text="10")
    known = {answer.id: answer for answer in misconceptions(exercise)}["no_mask_at_all"]
    seen = examine(exercise, local(known.function))
    assert explanation(seen).first is known
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: (known,))
    monkeypatch.setattr("autograde.diagnosis.suspects.recalled", lambda *args: late)
    stalled = tuple(replace(record, outcome=late) for record in seen.records)
    assert explanation(replace(seen, records=stalled)) is None


def test_masks_are_not_put_together_from_two_mistakes():
    """True and False agree by chance; a dilated window is neither a window nor a stride."""

    def dilated(n, window, stride):
        distance = np.arange(n)[:, None] - np.arange(n)
        return (distance >= 0) & (distance < window * stride) & (distance % stride == 0)

    exercise = find("strided_mask")
    found = explanation(examine(exercise, local(dilated)))
    assert found is None or not found.besides


# The right results of another input ------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        (
            "multi_head_attention",
            lambda x, q, k, v, o, n, a: five.multi_head_attention(x, q, q, o, v, n, a),
            "",
        ),
        (
            "cache_bytes",
            lambda layers, heads, width, seq, batch, size: eight.cache_bytes(
                layers, heads, width, seq - 1, batch, size
            ),
            "`seq` were smaller by one",
        ),
        (
            "decode_step",
            lambda x, cache, q, k, v, o, n: eight.decode_step(x, cache, q, k, o, v, n),
            "`w_v` and `w_o` had changed places",
        ),
        (
            "strided_mask",
            lambda n, window, stride: nine.strided_mask(n, stride, window),
            "`window` and `stride` had changed places",
        ),
        (
            "rotary",
            lambda x, positions, base=1e4: find("rotary").reference(x, positions + 1, base),
            "`positions` were larger by one",
        ),
        (
            "shard",
            lambda batch, rank, world: find("shard").reference(batch.flip(0), rank, world),
            "`batch` were in the opposite order along its first axis",
        ),
    ],
)
def test_what_would_make_the_results_right(monkeypatch, name, function, says):
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: ())
    _, text = told(name, function)
    if says:
        assert f"Every result would be right if {says}." in text
    else:
        assert "would be right" not in text


def test_an_input_that_could_undo_the_mistake_is_no_evidence():
    """The last token left out: as good as pairs shifted by one, and tokens shifted back."""

    def without_the_last(log_probs, tokens):
        return one.sequence_log_prob(log_probs[..., :-1, :], np.asarray(tokens)[..., :-1])

    named, text = told("sequence_log_prob", without_the_last)
    assert named == ""
    assert "Every number that is wrong is too large." in text


# Relations -------------------------------------------------------------------------------

ROWS = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda want: want[:, ::-1], "last axis runs the other way round"),
        (lambda want: want[::-1], "rows (last axis but one) come in the opposite order"),
        (lambda want: np.roll(want, 1, axis=-1), "one place too far to the right"),
        (lambda want: np.log(want), "the logarithm"),
        (lambda want: -want, "the opposite sign"),
        (lambda want: want + 0.5, "larger by 0.5"),
        (lambda want: want.reshape(3, 2), "only the shape is not"),
        (lambda want: want * 0, "0 throughout"),
        (lambda want: np.add(want, [[0.1, 0.2, 0.2], [0.1, 0.1, 0.7]]), ""),
        (lambda want: want, ""),
    ],
)
def test_relations(make, says):
    found = relation([(make(ROWS), ROWS)])
    assert (says in found) if says else (found == "")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda want: want[[1, 0]] * 1.0, "rows are there, but not in the right order"),
        (lambda want: want[:, [1, 0, 2]], "columns are there, but not in the right order"),
        (lambda want: want.ravel()[[3, 5, 1, 0, 2, 4]].reshape(2, 3), "not in the right places"),
        (lambda want: want * [[1, -1, 1], [1, 1, -1]], "some have the wrong sign"),
        (lambda want: want[:1] + 0 * want, "All rows of a result are the same"),
        (lambda want: want[:, ::-1] * [[1, 1, -1]], "has the length that it should have"),
        (lambda want: want * [[1, 0, 1], [0, 1, 1]], "Every number that is wrong is 0"),
        (lambda want: np.add(want, [[1, -1, 0], [0, 2, -2]]), "The sum of each row is right"),
        (lambda want: want * [[2.0], [3.0]], "Each row is a multiple"),
        (lambda want: np.add(want, [[2.0], [3.0]]), "Each row differs"),
        (lambda want: want * 1.004, "close to the expected one"),
        (lambda want: two.softmax(want), "numbers of each row sum to 1"),
        (lambda want: two.softmax(want, axis=0), "numbers of each column sum to 1"),
        (lambda want: np.add(want, [[0.1, 0.2, 0.2], [0.1, 0.1, 0.7]]), "is too large"),
        (lambda want: np.add(want, [[0.1, 0.2, -0.2], [0.1, 0.1, 0.7]]), ""),
    ],
)
def test_rough_relations(make, says):
    found = rough_relation([(make(ROWS), ROWS)]) or weak_relation([(make(ROWS), ROWS)])
    assert (says in found) if says else (found == "")


def test_a_relation_holds_for_every_result_or_is_not_said():
    assert relation([(-ROWS, ROWS), (2 * ROWS, ROWS)]) == ""
    assert relation([(-ROWS, ROWS), (-2 * ROWS, 2 * ROWS)]) != ""
    assert relation([(np.float64(3), np.float64(1))]) == ""  # any number is three times another


def test_what_is_true_of_the_wrong_results_only_is_said_of_them_only():
    wrong, right = [(0 * ROWS, ROWS), (0 * ROWS, 2 * ROWS)], [(ROWS, ROWS)]
    assert relation(wrong) == "The result is 0 throughout."
    assert relation(wrong, right) == "Where it is wrong, the result is 0 throughout."
    assert relation(wrong, [(0 * ROWS, 0 * ROWS)]) == "The result is 0 throughout."


def test_tiny_numbers_are_not_all_alike():
    """Two numbers below the tolerance of large ones can be as different as any."""
    tiny = 1e-310 * ROWS
    assert rough_relation([(tiny[:, [1, 0, 2]], tiny)]) != ""
    exercise, zeros = find("softmax"), Outcome("returned", 0 * ROWS)
    records = tuple(
        Record((scale * ROWS,), {}, zeros, two.softmax(scale * ROWS), "value")
        for scale in (1e-310, 2e-310)
    )
    seen = Examination(exercise, (), records)
    shown = Finding(records[0].args, {}, "", records[0].expected, 0 * ROWS)
    assert "as it came in" not in observe(seen, shown)
    echo = tuple(replace(r, outcome=Outcome("returned", r.args[0])) for r in records)
    assert "`scores`, as it came in" in observe(replace(seen, records=echo), shown)


def test_rows_that_are_normalised_though_they_are_others():
    rows = np.array([[1.0, 2.0, 4.0, 9.0], [3.0, -5.0, 9.0, 2.0]])
    normal = (rows - rows.mean(-1, keepdims=True)) / rows.std(-1, keepdims=True)
    others = -normal[:, ::-1]
    assert "mean 0 and variance 1" in rough_relation([(others, normal)])
    assert "a factor and a number" in rough_relation([(rows, normal)])


def test_ones_for_true_is_a_matter_of_dtype_alone():
    """It is no mirror image, though a single row is the same upside down."""
    mask = np.array([[True, False, True]])
    assert (
        relation([(mask.astype(float), mask)]) == "The numbers are right; only their dtype is not."
    )
    assert where([(mask.astype(float), mask)]) == ""


def test_places():
    wrong = ROWS.copy()
    wrong[0] += 1
    assert where([(wrong, ROWS)]) == "Only the first row is wrong."
    assert where([(wrong, ROWS), (ROWS + 1, ROWS)]) == ""
    assert "first entry is always right" in where(
        [(np.array([1, 0, 0, 0]), np.array([1, 2, 3, 4]))]
    )


# Rows of attention, and what is inside ---------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda out, keys: np.where(keys > 1, out + 1, out),
            "right, those of queries that may see several",
        ),
        (lambda out, keys: np.where(keys > 0, out + 1, out), "see a single key, which gets all"),
        (lambda out, keys: out + 1, "see no key"),
        (lambda out, keys: np.where(keys == 0, out + 1, out), ""),
    ],
)
def test_rows_are_wrong_by_the_number_of_keys(change, says):
    exercise, wrong = find("multi_head_attention"), []
    for allowed in (np.tri(3, k=-1, dtype=bool), np.tri(3, 4, dtype=bool), np.tri(3, 4, k=-1) > 0):
        args = (ROWS, *[np.eye(3)] * 4, 1, allowed)
        want = np.arange(9.0).reshape(3, 3)
        got = change(want, allowed.sum(axis=-1, keepdims=True))
        wrong.append((got, want, Record(args, {}, Outcome("returned", got), want, "value")))
    said = by_keys(exercise, wrong)
    assert (says in said) if says else (said == "")


def heads_with(weights=three.masked_softmax, order=1):
    def function(x, w_q, w_k, w_v, w_o, n_heads, allowed):
        q, k, v = (five.split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
        scores = q @ turned(k) / np.sqrt(q.shape[-1])
        out = weights(scores, allowed[..., None, :, :]) @ v
        return five.merge_heads(out[..., ::order, :, :]) @ w_o

    return function


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            heads_with(order=-1),
            "In the outputs of the heads, before `w_o`, where they can be worked",
        ),
        (
            heads_with(lambda s, a: three.masked_softmax(s / 3, a)),
            "right weights if all scores were multiplied by 0.3333",
        ),
        (heads_with(lambda s, a: three.masked_softmax(s, a) ** 2), "square of the expected one"),
    ],
)
def test_what_is_inside_is_worked_back_from_the_results(wrong, says):
    named, text = told("multi_head_attention", wrong)
    assert named == ""
    assert says in text


def test_the_weights_worked_back_are_those_of_the_function():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 6)), rng.normal(size=(4, 6, 6))
    args, allowed = (x, *w, 2), np.tri(3, dtype=bool)
    out = five.multi_head_attention(*args, allowed)
    record = Record((*args, allowed), {}, Outcome("returned", out + 1), out, "value")
    found = inside(find("multi_head_attention"), [record])
    assert WEIGHTS not in found  # what is wrong is no mean of values, so that no weights made it
    got = five.multi_head_attention(*args, np.ones((3, 3), dtype=bool))
    found = inside(
        find("multi_head_attention"), [replace(record, outcome=Outcome("returned", got))]
    )
    ((got, want, _),) = found[WEIGHTS]
    q, k = (five.split_heads(x @ w[i], 2) for i in (0, 1))
    _, weights = three.masked_attention(q, k, k, allowed)
    np.testing.assert_allclose(want, weights, atol=1e-6)
    assert (got[..., 0, 1] > 0).all()


# An argument or a length -----------------------------------------------------------------


def test_a_length_by_which_results_are_off(monkeypatch):
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: ())
    _, text = told("scaled_scores", lambda q, k: q @ turned(k))
    assert "times the square root of the length of the last axis of `q`" in text
    _, text = told("entropy", lambda weights: two.entropy(weights) / weights.shape[-1])
    assert "divided by the length of the last axis of `weights`" in text
    _, text = told("entropy", lambda weights: two.entropy(weights) ** 2 + 1)
    assert "the length" not in text


def test_weights_that_are_too_sharp(monkeypatch):
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: ())
    _, text = told("masked_attention", without_scale)
    assert "scores were multiplied by the square root of the length of the last axis of `q`" in text
    _, text = told("masked_softmax", lambda s, a: three.masked_softmax(s / 2, a))
    assert "would be the right weights if all scores were multiplied by 0.5" in text or (
        "Every result would be right" in text
    )
    even = lambda s, a: a / np.maximum(np.broadcast_to(a, s.shape).sum(-1, keepdims=True), 1)  # noqa: E731
    _, text = told("masked_softmax", lambda s, a: np.broadcast_to(even(s, a), s.shape))
    assert "multiplied by" not in text


# What is seen of mistakes that nobody has thought of -------------------------------------


def by_distance(q, k, v):
    squares = np.square(q[..., :, None, :] - k[..., None, :, :]).sum(axis=-1)
    weights = two.softmax(-squares / q.shape[-1] ** 0.5)
    return weights @ v, weights


def by_the_largest(x, gain, bias, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.abs().amax(dim=-1, keepdim=True) + eps) * gain + bias


def oldest_forgotten(x, cache, w_q, w_k, w_v, w_o, n_heads):
    rest = tuple(part[..., x.shape[-2] :, :] for part in cache)
    return eight.decode_step(x, rest, w_q, w_k, w_v, w_o, n_heads)


def second_half_left(x, positions, base=1e4):
    half, turned_x = x.shape[-1] // 2, find("rotary").reference(x, positions, base)
    return torch.cat([turned_x[..., :half], x[..., half:]], dim=-1)


def with_itself(f, x):
    return find("leaks").reference(f, x) + [(i, i) for i in range(len(x))]


def always_double(n_layers, n_kv_heads, d_head, seq, batch, bytes_per_value):
    return eight.cache_bytes(n_layers, n_kv_heads, d_head, seq, batch, 8)


def mean_of_values(q, k, v, allowed):
    """Right where a query may see a single key, though the weights are not to blame."""
    _, weights = three.masked_attention(q, k, v, allowed)
    seen = np.broadcast_to(allowed, weights.shape)
    return seen @ v / np.maximum(seen.sum(axis=-1, keepdims=True), 1), weights


def in_degrees(x, positions, base=1e4):
    return find("rotary").reference(x, positions.double() * np.pi / 180, base)


def zero_by_zero(logits, targets, ignore_index=-100):
    of_rows = logits.flatten(0, -3), targets.flatten(0, -2)
    rows = zip(*of_rows, strict=True) if targets.ndim > 1 else [(logits, targets)]
    reference = find("cross_entropy").reference
    return torch.stack([reference(*row, ignore_index) for row in rows]).mean()


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("attention", by_distance, "sums to what it should; look at the scores"),
        (
            "layer_norm",
            by_the_largest,
            "In the vectors before `gain` and `bias`, where they can be worked back from the "
            "results: Each row is a multiple of the expected one",
        ),
        ("decode_step", oldest_forgotten, "what came back is right, but its beginning is missing"),
        ("rotary", second_half_left, "the numbers of `x` stand there, unchanged"),
        ("rotary", in_degrees, "Each vector has the length that it should have"),
        ("leaks", with_itself, "All that is expected is there, and something besides."),
        ("cache_bytes", always_double, "the expected one times 8 over `bytes_per_value`"),
        ("masked_attention", mean_of_values, "`weights` is right every time; `out` is not."),
        ("cross_entropy", zero_by_zero, "Some results hold NaN that should not."),
    ],
)
def test_an_unknown_mistake_is_described(name, function, says):
    named, text = told(name, function)
    assert named == ""
    assert says in text


def test_a_relation_that_holds_of_anything_so_small_is_not_enough():
    """Any number is a multiple of any other; a column of several is not."""
    column = np.array([[1.0], [2.0], [5.0]])
    one_row, scaled = np.array([[2.0, 3.0]]), column * 3
    said = rough_relation([(scaled, column), (2 * scaled, 2 * column), (one_row + 1, one_row)])
    assert said.startswith("Each column is a multiple of the expected one")
    assert rough_relation([(np.add(one_row, [[1, 5]]), one_row)] * 2) == ""
    turned_round = [(column[[2, 1, 0]], column), (column + 1, column)]
    assert "rows" not in rough_relation(turned_round)


# Which inputs ----------------------------------------------------------------------------


def test_which_calls_go_wrong(monkeypatch):
    monkeypatch.setattr("autograde.bank.misconceptions", lambda _: ())
    right = find("next_token_distribution").reference

    def odd_with_top_p(logits, temperature=1.0, top_k=None, top_p=None):
        p = right(logits, temperature, top_k, top_p)
        return p if top_p is None else p[::-1] ** 2

    _, text = told("next_token_distribution", odd_with_top_p)
    assert "for calls with `top_p`" in text

    def odd_with_temperature_zero(logits, temperature=1.0, top_k=None, top_p=None):
        p = right(logits, temperature, top_k, top_p)
        return p if temperature else np.append(p[1:], 0.3)

    _, text = told("next_token_distribution", odd_with_temperature_zero)
    assert "for `temperature` = 0" in text
    assert "top_p" not in text
