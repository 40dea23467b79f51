"""The engine of the checks: calls, plain values, examinations, reports."""

import json
import os
import sys
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import autograde
from autograde import specimens
from autograde.bank import Answer
from autograde.calls import Outcome, call
from autograde.checking import ClaimsFail
from autograde.diagnosis.naming import recognise
from autograde.diagnosis.observe import observe
from autograde.examination import Examination, Finding, Record, examine, local
from autograde.exercise import Exercise, exercises, find
from autograde.reference import ch03_causal_mask as reference
from autograde.remote import answer, ask
from autograde.report import report, show
from autograde.values import Mismatch, Opaque, conform, difference, differing, plain
from autograde.wire import decode, decode_outcome, encode, encode_outcome

SOFTMAX = find("masked_softmax")


def examined(name, function, seeds=(0,)):
    return report(examine(find(name), local(function), seeds))


# Values --------------------------------------------------------------------------------


class Lying(np.ndarray):
    """An array that is equal to everything."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __array_ufunc__(self, *args, **kwargs):
        return np.True_

    def all(self, *args, **kwargs):
        return True


class Hostile:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


def test_complex_results_are_compared_without_a_warning():
    with warnings.catch_warnings(action="error"):
        assert difference(np.array([1j]), np.array([1.0]))
        assert difference(np.array([1 + 0j]), np.array([1.0])) is None


def test_lists_and_tuples_of_one_are_shown_as_such():
    assert show([1.5]) == "[1.5]"
    assert show((1.5,)) == "(1.5,)"
    assert show((1, [2, 3])) == "(1, [2, 3])"


def test_plain_values_have_no_behaviour():
    lying = np.zeros((2, 2)).view(Lying)
    assert type(plain(lying)) is np.ndarray
    assert isinstance(plain(Hostile()), Opaque)
    assert isinstance(plain(x for x in [1]), Opaque)
    assert plain([1, (2.0, None)]) == (1, (2.0, None))
    shared = np.zeros(2)
    kept = plain(shared)
    shared[0] = 1
    assert kept[0] == 0


@pytest.mark.parametrize(
    ("value", "like"),
    [
        ([[1.0, 2.0]], np.ones((1, 2))),
        (np.array([[1, 2]]), np.ones((1, 2))),
        (np.float32([[1, 2]]), np.ones((1, 2))),
        (np.longdouble([[1, 2]]), np.ones((1, 2))),
        ([[], []], np.ones((2, 0), dtype=bool)),
        (np.array(3), 3),
        (np.float32(3), 3.0),
        (np.True_, True),
        (np.ones((2, 3)), (np.ones(3), np.ones(3))),
        ([0.5, np.float64(0.5)], (0.5, 0.5)),
    ],
)
def test_equivalent_forms_conform(value, like):
    conform(plain(value), like)


@pytest.mark.parametrize(
    ("value", "like"),
    [
        (None, np.ones(2)),
        ([[1.0], [1.0, 2.0]], np.ones((2, 1))),
        (np.ones((2, 1)), np.ones(2)),
        (np.ones(2), np.ones(2, dtype=bool)),
        (np.ones(2), np.ones(2, dtype=int)),
        (np.ones(2, dtype=bool), np.ones(2)),
        (np.ones(2, dtype=np.float16), np.ones(2)),
        (np.ones(2, dtype=complex), np.ones(2)),
        (np.ones(1), 1.0),
        (True, 1),
        (1, True),
        ("1", 1.0),
        (np.ones(2), (np.ones(2), np.ones(2), np.ones(2))),
        ({"a": 1}, np.ones(1)),
    ],
)
def test_other_things_do_not_conform(value, like):
    with pytest.raises(Mismatch):
        conform(plain(value), like)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.001])
def test_nothing_passes_by_being_no_number(bad):
    want = np.ones((2, 2))
    assert difference(np.full((2, 2), bad), want)
    assert difference(np.array([[1, 1], [1, bad]]), want)
    assert not difference(want * (1 + 1e-7), want)
    assert not difference(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))
    assert difference(np.array([1.0]), np.array([bad if np.isfinite(bad) else np.nan]))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.complex128])
def test_numbers_differ_as_isclose_says(kind):
    numbers = [0.0, -0.0, 1e-7, 1.0, 1 + 1e-6, 1.1, -1.0, 3e4, np.nan, np.inf, -np.inf]
    got, want = np.meshgrid(np.array(numbers, kind), np.array(numbers))
    close = np.isclose(got, want, rtol=1e-5, atol=1e-6 * 3e4, equal_nan=True)
    assert np.array_equal(differing(got, want, 1e-5, 1e-6), ~close)


def test_values_cross_the_wire_unchanged():
    value = (1, -2.5, float("inf"), True, None, "x", np.float32([[1, np.nan]]), {"a": (1,)})
    assert repr(decode(json.loads(json.dumps(encode(value))))) == repr(value)
    assert decode(encode(np.float16), arguments=True) is np.float16
    assert decode(encode([1, 2]), arguments=True) == [1, 2]
    with pytest.raises(ValueError, match="tag"):
        decode({"pickle": "gASV"})


@pytest.mark.parametrize(
    "array",
    [
        np.float32(3),
        np.zeros((2, 0, 3)),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(24).reshape(2, 3, 4)[:, ::-1, ::2],
        np.array([["", "a"], ["bc", "d"]]),
        np.array([""]),
        np.array([1 + 2j, np.nan], ">c16"),
        np.array([[True], [False]]),
    ],
)
def test_arrays_cross_the_wire_with_dtype_shape_and_order(array):
    back = decode(json.loads(json.dumps(encode(np.asarray(array)))))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.fnc == np.asarray(array).flags.fnc
    assert back.flags.owndata
    assert back.flags.writeable


@pytest.mark.parametrize(
    "body",
    [
        ["|O", [1], "C", "AAAAAAAAAAA="],  # bytes that would be taken for a pointer
        ["<f8", [2], "C", "AAAAAAAAAAA="],  # one number too few
        ["<f8", [-1], "C", "AAAAAAAAAAA="],
        ["<f8", [10**15], "C", ""],
        ["<U0", [10**9], "C", ""],  # text without letters: four gigabytes, once it is copied
        ["f8,i4", [1], "C", "AAAAAAAAAAA="],
        ["<f8", [1], "?", "AAAAAAAAAAA="],
        ["<f8", [1], "C"],
        "k05VTVBZ",
    ],
)
def test_what_is_no_array_does_not_cross(body):
    with pytest.raises((ValueError, TypeError)):
        decode({"array": body})
    reply = json.loads(encode_outcome(Outcome("returned", 1.0)))
    outcome = decode_outcome(json.dumps(reply | {"value": {"array": body}}))
    assert outcome.how == "died"


def test_tensors_of_every_dtype_cross_the_wire_as_arguments():
    torch = pytest.importorskip("torch")
    w = torch.tensor([1.0, -0.0], requires_grad=True)
    w.grad = torch.tensor([3.0, 4.0])
    bits = torch.tensor([0x7F800001, -0x7FFFFF, 1], dtype=torch.int32)  # NaN, NaN, subnormal
    given = [w, torch.ones(2).bfloat16() / 3, torch.ones(1).half(), bits.view(torch.float32)]
    dtypes = [torch.float16, torch.bfloat16]
    back = decode(json.loads(json.dumps(encode([given, dtypes]))), arguments=True)
    assert back[1] == dtypes
    assert [t.dtype for t in back[0]] == [t.dtype for t in given]
    assert torch.equal(back[0][3].view(torch.int32), bits)
    assert all(torch.equal(a, b) for a, b in zip(back[0][:3], given[:3], strict=True))
    assert [back[0][0].requires_grad, back[0][0].is_leaf] == [True, True]
    assert not back[0][1].requires_grad
    assert torch.equal(back[0][0].grad, w.grad)
    with pytest.raises(ValueError, match="tag"):
        decode(encode(torch.float16))  # from a student's process only plain values come


def test_bfloat16_is_shown_and_is_no_float32():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.5, 2.0]).bfloat16()
    assert show(x) == "[1.5, 2. ]  (bfloat16)"
    assert plain(x[0]) == 1.5
    with pytest.raises(Mismatch, match="bfloat16"):
        conform(plain(x), np.ones(2, np.float32))


def test_a_touched_gradient_is_a_changed_argument():
    torch = pytest.importorskip("torch")

    def backward(params):
        (params[0] * 2).sum().backward()

    def forgets(params):
        params[0].grad = None

    def asks(params):
        return torch.autograd.grad((params[0] * 2).sum(), params)

    fresh, used = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    used.grad = torch.ones(2)
    for function, param, changed in (
        (backward, fresh, True), (backward, used, True),
        (forgets, fresh, False), (forgets, used, True),
        (asks, fresh, False), (asks, used, False),
    ):  # fmt: skip
        outcome = call(function, ([param],), {})
        assert outcome.changed == ((0,) if changed else ()), (function, param.grad)
    assert call(lambda params: params.clear(), ([fresh],), {}).changed == (0,)
    assert call(lambda params: params.__setitem__(0, 1), ([fresh],), {}).changed == (0,)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"how": "passed", "value": null}', "x" * 9])
def test_a_reply_without_sense_is_a_death(text):
    assert decode_outcome(text).how == "died"


def test_a_call_travels():
    request = ask("causal_mask", (2,), {"n_key": 3}, 5.0)
    outcome = decode_outcome(answer({"causal_mask": reference.causal_mask}, request))
    assert outcome.returned
    assert outcome.value.tolist() == [[True, True, False], [True, True, True]]
    assert decode_outcome(answer({}, request)).how == "missing"
    assert "no function" in decode_outcome(answer({"causal_mask": 3}, request)).text


# Calls ---------------------------------------------------------------------------------


def test_what_a_call_did_is_told():
    def changes(x):
        x[0] = 1
        return x

    def loops(x):
        while True:
            pass

    def loops_and_swallows(x):
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    assert call(changes, (np.zeros(2),), {}).changed == (0,)
    assert call(changes, ([0, 1],), {}).changed == (0,)
    assert call(lambda x: x + 1, (np.zeros(2),), {}).changed == ()
    assert call(loops, (1,), {}, 0.2).how == "timeout"
    assert call(loops_and_swallows, (1,), {}, 0.2).how == "timeout"
    assert call(lambda: print("x" * 5000), (), {}).printed == 5001
    assert call(lambda: np.log(np.zeros(1)), (), {}).warned
    outcome = call(lambda: 1 / 0, (), {})
    assert outcome.says().startswith("raised ZeroDivisionError: division by zero")
    assert call(lambda: sys.exit(3), (), {}).says() == (
        "tried to end Python (SystemExit(3)); return a value instead"
    )


def test_a_keyboard_interrupt_stops_the_check():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(interrupted, (), {})


# Examinations --------------------------------------------------------------------------


def test_a_name_that_is_no_exercise():
    with pytest.raises(LookupError, match=r"no exercise is called 'maks'.*causal_mask"):
        find("maks")


@pytest.mark.parametrize("exercise", list(exercises()), ids=lambda e: e.name)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda *a, **k: None, "None"),
        (lambda *a, **k: "text", "'text'"),
        (lambda *a, **k: np.full((2, 2), np.nan), ""),
        (lambda *a, **k: 1 / 0, "ZeroDivisionError"),
        (lambda: 1, ""),
    ],
)
def test_nonsense_gets_no_points_anywhere(exercise, answer, says):
    found = report(examine(exercise, local(answer)))
    assert not found.passed
    assert found.examination.points == 0
    assert says in found.text()


def test_a_numpy_string_is_a_string_and_an_array_of_strings_is_shown():
    exercise = find("first_bad")
    right = exercise.reference
    assert examine(exercise, local(lambda a: (n := right(a)) and np.str_(n))).passed
    several = report(examine(exercise, local(lambda a: np.array(["a", "b"])))).text()
    assert "got      ['a', 'b']" in several


def test_a_number_is_shown_once():
    exercise = find("cache_bytes")
    found = report(examine(exercise, local(lambda *a: exercise.reference(*a) // 2))).text()
    assert found.count("expected 2\n") == 1
    assert "expected 2, got 1" not in found


def test_an_unwritten_function_is_called_that():
    def masked_softmax(scores, allowed):
        raise NotImplementedError

    found = examined("masked_softmax", masked_softmax)
    assert found.text() == "masked_softmax: not written yet"
    assert found.examination.points == 0
    assert len(found.examination.records) == 1


def test_an_array_that_lies_is_seen_through():
    lying = examined("masked_softmax", lambda s, a: np.zeros(s.shape).view(Lying))
    assert lying.examination.points == 0


def test_the_core_must_hold_for_any_points():
    def right_but_for_one_row(scores, allowed):
        weights = reference.masked_softmax(scores, allowed)
        return np.nan_to_num(weights) if allowed.any(-1).all() else weights * np.nan

    found = examined("masked_softmax", right_but_for_one_row)
    assert 0 < found.examination.points < SOFTMAX.points
    core_only = examined("masked_softmax", lambda s, a: s * 0 + 0.123)
    assert any(result.holds for result in core_only.examination.results)
    assert core_only.examination.points == 0


def test_changing_the_arguments_is_reported_as_that():
    def changes(q, k, v, allowed):
        out = reference.masked_attention(q, k, v, allowed)
        v *= 2
        return out

    found = examined("masked_attention", changes)
    assert not found.passed
    assert "the call changed its argument `v`" in found.text()
    assert found.examination.points == find("masked_attention").points - 1


def test_a_function_that_never_returns_is_reported_as_that():
    quick = Exercise(reference.causal_mask, ("page#label", "Title"), ("", "", ""), seconds=0.2)
    quick.claims = find("causal_mask").claims

    def forever(n_query, n_key=None):
        while True:
            pass

    found = report(examine(quick, local(forever)))
    assert "did not return within 0.2 s" in found.text()
    assert len(found.examination.records) == 1


def test_a_wrong_helper_is_named_first(capsys):
    def masked_softmax(scores, allowed):
        return scores * 0.0

    def masked_attention(q, k, v, allowed):
        weights = masked_softmax(q @ np.swapaxes(k, -2, -1) / q.shape[-1] ** 0.5, allowed)
        return weights @ v, weights

    around = {"masked_softmax": masked_softmax, "masked_attention": masked_attention}
    around["check"] = autograde.check
    with pytest.raises(ClaimsFail):
        exec("check(masked_attention)", around)
    text = " ".join(capsys.readouterr().out.split())
    assert "calls your masked_softmax, mend that one first: it is wrong" in text
    around["masked_softmax"] = find("masked_softmax").reference
    with pytest.raises(ClaimsFail):
        exec("check(masked_attention)", around)
    assert "mend that one first" not in " ".join(capsys.readouterr().out.split())


def test_a_students_numpy_settings_do_not_reach_the_judgement():
    with np.errstate(all="raise"):
        assert examined("masked_softmax", reference.masked_softmax).passed
        assert examined("masked_attention", reference.masked_attention).passed
        wrong = examined("masked_softmax", lambda scores, allowed: np.exp(scores) * allowed)
    assert not wrong.passed


def test_printing_is_noted_and_does_not_make_a_right_answer_wrong(capsys):
    def noisy(n_query, n_key=None):
        print("masks\n" * 2000)
        return reference.causal_mask(n_query, n_key)

    found = examined("causal_mask", noisy)
    assert found.passed
    assert "prints 12,001 characters" in found.text()
    assert capsys.readouterr().out == ""


def test_feedback_comes_in_order():
    def opposite(n_query, n_key=None):
        return ~reference.causal_mask(n_query, n_key)

    text = examined("causal_mask", opposite).text()
    order = [
        "fails  a query sees itself",
        "causal_mask(1)",
        "expected [[1]]",
        "got      [[0]]",
        "What this looks like: True and False have changed places",
        "Read again: Who may see whom (book/03-causal-mask.html#ch03-causal-mask)",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_an_unknown_mistake_is_described_and_not_named():
    def factor(q, k, v, allowed):
        out, weights = reference.masked_attention(q, k, v, allowed)
        return 3 * out, weights

    found = examined("masked_attention", factor)
    assert found.misconception is None
    assert "Every number is 3 times the expected one" in found.text()


def test_one_mistake_is_named_beside_another():
    def two_mistakes(scores, allowed):
        scores[~np.broadcast_to(allowed, scores.shape)] = -np.inf  # changes its argument,
        weights = np.exp(scores - scores.max(-1, keepdims=True))  # and NaN in empty rows
        return weights / weights.sum(-1, keepdims=True)

    found = examined("masked_softmax", two_mistakes)
    assert found.misconception.id == "empty_row_is_nan"
    assert "the call changed its argument `scores`" in found.text()


def seen(got, want, name="masked_softmax", *, more=()):
    """The observation on one result of that exercise, after `more` (got, expected) ones."""
    finding = Finding((), {}, "", want, got)
    pairs = [*more, (got, want)]
    records = tuple(Record((), {}, Outcome("returned", g), w, "value") for g, w in pairs)
    return observe(Examination(find(name), (), records), finding)


def test_observations_are_true():
    mask = np.tri(3, dtype=bool)
    want = reference.masked_softmax(np.zeros((3, 3)), mask)
    assert seen(want, want) == ""
    assert "transpose" in seen(want.T, want)
    assert "transpose" in seen(np.ones((2, 3)), np.ones((3, 2)))
    assert "opposite" in seen(~mask, mask, "causal_mask")
    assert seen(want * np.nan, want) == "The result is NaN everywhere."
    nan_row = want.copy()
    nan_row[1, 2] = np.nan
    assert seen(nan_row, want) == "The result is NaN at [1, 2]."
    even = np.full((3, 3), 1 / 3)
    assert seen(even, want) == "Query 0 gives weight to key 1, which should get none."
    batch = seen(np.stack([want, even]), np.stack([want, want]))
    assert batch == "Query 0 gives weight to key 1, which should get none (batch [1])."
    assert seen(want / 2, want, more=[(want, want * 0)]) == (
        "A row of weights sums to 0.5, not to 1."
    )
    assert "close to the expected one (within 1 %)" in seen(want * 1.0001, want)
    assert seen(2 * np.ones(3), np.ones(3), "causal_mask") == (
        "Every number is 2 times the expected one."
    )


def test_what_is_said_of_the_function_is_true_of_all_results():
    mask, other = np.tri(3, dtype=bool), np.eye(3, dtype=bool)
    both = [(~other, other)]
    assert "opposite" in seen(~mask, mask, "causal_mask", more=both)
    for got, pair in ((~mask, (mask, other)), (mask.T, (~other, other))):
        text = seen(got, mask, "causal_mask", more=[pair])
        assert "opposite" not in text
        assert "transpose" not in text
    more = [(3 * np.ones(2), np.ones(2))]
    other = seen(2 * np.ones(3), np.ones(3), "causal_mask", more=more)
    assert "the factor differs from input to input" in other


def test_only_weights_are_called_weights():
    """An output or a mask may be all zeros, too; it gives no weight to anything."""
    zeros = np.zeros((2, 3))
    assert "weight" not in seen(zeros + 1, zeros, "additive_mask")
    assert "weight" not in seen((zeros + 1, zeros), (zeros, zeros), "masked_attention")
    some = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    inside = seen((zeros, some), (zeros, zeros), "masked_attention")
    assert inside == "In `weights`: Query 0 gives weight to key 0, which should get none."


@pytest.mark.parametrize(
    ("name", "wrong_for", "says"),
    [
        ("masked_softmax", lambda s, a: s.ndim > 2, "inputs with batch axes"),
        ("masked_softmax", lambda s, a: s.dtype == np.float32, "float32 inputs"),
        ("causal_mask", lambda n, m=None: m is not None and m > n, "more keys than queries"),
        ("causal_mask", lambda n, m=None: max(n, m or 0) > 64, "100 and more positions"),
        (
            "masked_attention",
            lambda q, k, v, a: not a.any(-1).all(),
            "queries that have no allowed",
        ),
        ("masked_attention", lambda q, k, v, a: q.shape[-1] == 3, ""),
    ],
)
def test_what_the_failing_inputs_have_in_common(name, wrong_for, says):
    right = find(name).reference

    def function(*arguments):
        result = right(*arguments)
        if not wrong_for(*arguments):
            return result
        return [r + 0.321 for r in result] if isinstance(result, tuple) else ~(result > 0.5)

    text = " ".join(examined(name, function).text().split())
    assert (f"it is wrong exactly for {says}" in text) if says else ("exactly" not in text)


def test_a_result_of_an_earlier_call_is_noticed():
    kept = {}

    def remembers(scores, allowed):
        return kept.setdefault(scores.shape, reference.masked_softmax(scores, allowed))

    text = " ".join(examined("masked_softmax", remembers).text().split())
    assert "Every wrong result is that of an earlier call" in text


def test_right_numbers_by_hand_count_whatever_the_others_are():
    weights, output = reference.dog_by_hand()
    short = examined("dog_by_hand", lambda: (weights, output[:3]))
    assert short.examination.points == 1
    assert "output: 3 values came back; 4 were expected" in short.text()
    assert examined("dog_by_hand", lambda: (weights, [0.5] * 4)).examination.points == 1
    assert "return two lists" in examined("dog_by_hand", lambda: 0.274).text()


def test_a_secret_stays_one_whatever_the_claim_does():
    secret = replace(find("dog_by_hand"), claims=[])

    @secret.claim("all numbers are right")
    def _(probe, rng):
        probe.equals(atol=6e-4)

    for weights, output in (([0.2, 0.3, 0.5], [0.7] * 4), ([0.274, 0.3, 0.452], [0.726] * 4)):
        text = report(examine(secret, local(lambda: (weights, output)))).text()  # noqa: B023
        assert "at least one number is not right" in text
        assert "expected" not in text


def test_the_solution_of_a_sum_by_hand_stays_unsaid():
    weights, output = reference.dog_by_hand()
    for value in (None, weights, (output, weights), (weights, output[:3]), "0.274", (1, 2)):
        text = examined("dog_by_hand", lambda value=value: value).text()
        got = [line for line in text.splitlines() if "got" not in line]
        assert "0.452" not in "".join(got)
        assert "0.726" not in "".join(got)


# In a notebook -------------------------------------------------------------------------


def causal_mask(n_query, n_key=None):
    return reference.causal_mask(n_query, n_key)


def test_check_prints_and_raises(capsys):
    assert autograde.check(causal_mask) is None
    assert capsys.readouterr().out.startswith("causal_mask: all 3 claims hold")
    with pytest.raises(ClaimsFail, match="0 of 3 claims hold") as caught:
        autograde.check(lambda n, m=None: np.ones((n, m or n), bool), "causal_mask")
    assert caught.value._render_traceback_() == ["causal_mask: 0 of 3 claims hold (see above)"]


def test_grade_returns_a_plain_float():
    points = autograde.grade(causal_mask)
    assert type(points) is float
    assert points == find("causal_mask").points
    assert autograde.grade(lambda *a: 1, "causal_mask") == 0.0


class Mask:
    def __call__(self, n_query, n_key=None, *, extra=0):
        return reference.causal_mask(n_query, n_key).tolist()


additive_mask = lambda allowed, dtype=np.float64: np.where(allowed, 0, -np.inf).astype(dtype)  # noqa: E731
padding_mask = Mask()


def test_a_callable_is_known_by_the_name_it_is_bound_to():
    autograde.check(Mask(), "causal_mask")
    autograde.check(additive_mask)  # a lambda has no name of its own
    with pytest.raises(ClaimsFail, match="padding_mask"):
        autograde.check(padding_mask)
    with pytest.raises(LookupError, match="no exercise is called 'sorted'"):
        autograde.check(sorted)
    with pytest.raises(TypeError, match="your function itself"):
        autograde.check(causal_mask(2))


def test_three_hints_one_after_the_other(capsys):
    for _ in range(4):
        autograde.hint("causal_padding_mask")
    lines = capsys.readouterr().out.splitlines()
    assert lines.pop() == "That was the last one. The section to read is Padding."
    assert [line[:12] for line in lines] == [f"Hint {n} of 3:" for n in (1, 2, 3, 3)]
    assert len(set(lines)) == 3


def test_the_picture_marks_the_wrong_entries():
    html = examined("causal_mask", lambda n, m=None: np.tri(n, m or n, 1, dtype=bool))
    text = html._repr_html_()
    assert text.count("<table>") == 2
    assert text.count("✗ 1") == 1
    hostile = examined("causal_mask", lambda n, m=None: 1 / 0 if n else "<script>")
    assert "<script>" not in hostile._repr_html_()
    assert "<script>" not in examined("causal_mask", lambda *a: "<script>")._repr_html_()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix process")
def test_a_child_that_a_function_forks_does_not_come_back():
    assert call(lambda: os.fork() and os.getpid(), (), {}).value == os.getpid()


def test_the_readme_shows_what_is_really_said():
    readme = " ".join((Path(__file__).parent.parent / "README.md").read_text().split())

    def causal_mask(n_query, n_key=None):
        return np.tri(n_query, n_query if n_key is None else n_key, dtype=bool)

    assert " ".join(examined("causal_mask", causal_mask).text().split()) in readme


# Functions as arguments ------------------------------------------------------------------


def test_a_specimen_crosses_to_another_process_and_shows_itself():
    pattern = np.tril(np.ones((2, 2), dtype=bool))
    sent = specimens.reads.using(pattern=pattern)
    received = decode(json.loads(json.dumps(encode(sent))), arguments=True)
    x = np.eye(2)
    assert np.array_equal(received(x), pattern @ x)
    assert "specimens.reads.using(pattern=[[1, 0]," in show(received)
    assert "Output i is the sum" in show(received)  # what it does, for the student
    with pytest.raises(ValueError, match="no specimen is called 'write'"):
        decode({"specimen": ["write", {"dict": {}}]}, arguments=True)
    with pytest.raises(ValueError, match="unknown tag"):  # a student's result is never one
        decode(encode(sent))


# Memory ----------------------------------------------------------------------------------


def test_the_peak_of_a_call_is_measured_where_it_is_asked_for():
    def hungry(n):
        return np.ones((n, n)).sum() + np.ones((n, n)).sum()  # one after the other

    assert call(hungry, (300,), {}).peak is None
    for _ in range(2):  # what an earlier call held does not count
        peak = call(hungry, (300,), {}, measured=True).peak
        assert 300 * 300 * 8 <= peak < 1.1 * 300 * 300 * 8
    assert call(lambda: 1 / 0, (), {}, measured=True).says().startswith("raised ZeroDivisionError")
    assert not tracemalloc.is_tracing()


def test_the_peak_does_not_depend_on_a_tracing_that_was_there_before():
    tracemalloc.start()
    try:
        kept = np.ones(10**6)
        np.ones(10**6)  # a peak of its own
        peak = call(lambda: np.ones(1000).sum(), (), {}, measured=True).peak
        assert 8000 <= peak < 20_000
        assert tracemalloc.is_tracing()
        assert kept.all()
    finally:
        tracemalloc.stop()


def test_a_peak_travels():
    request = ask("ones", (1000,), {}, 5.0, measured=True)
    outcome = decode_outcome(answer({"ones": np.ones}, request))
    assert 8000 <= outcome.peak < 20_000
    request = ask("ones", (1000,), {}, 5.0)
    assert decode_outcome(answer({"ones": np.ones}, request)).peak is None


def allocating(size):
    """A right answer to causal_mask that allocates some bytes on the way."""

    def causal_mask(n_query, n_key=None):
        return np.ones(size, dtype=bool)[0] & reference.causal_mask(n_query, n_key)

    return causal_mask


def stopping(n_query, n_key=None):
    tracemalloc.stop()
    return reference.causal_mask(n_query, n_key)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (allocating(50_000), ""),
        (allocating(900_000), "at its peak the call held 0.9 MB; 0.1 MB are plenty"),
        (stopping, "its memory cannot be measured"),
        (lambda n, m=None: None, "None (is a `return` missing?) came back"),
    ],
)
def test_a_claim_about_memory(function, says):
    frugal = replace(find("causal_mask"), claims=[])

    @frugal.claim("little memory is held")
    def _(probe, rng):
        probe.equals(2)  # is not measured
        probe.holds_at_most(100_000, 2, n_key=3)

    found = examine(frugal, local(function))
    assert found.passed == (not says)
    assert says in report(found).text()
    if "MB" in says:
        assert [record.fault for record in found.records] == ["", "hungry"]


def test_slow_code_is_cut_off_while_it_is_measured_and_not_called_wrong(monkeypatch):
    def slow(size):
        held = np.ones(size)
        while True:
            held.sum()

    frugal = replace(
        find("causal_mask"), claims=[], reference=lambda size: True, takes_arrays=False
    )

    @frugal.claim("little memory is held")
    def _(probe, rng):
        probe.holds_at_most(100_000, 1000)
        probe.holds_at_most(100_000, 20_000)

    monkeypatch.setattr("autograde.examination.MEASURED", 0.2)
    found = examine(frugal, local(slow))
    assert [record.outcome.how for record in found.records] == ["cut off"] * 2
    assert [record.fault for record in found.records] == ["", "hungry"]
    assert not found.stopped
    assert "at its peak the call held 0.2 MB" in found.results[0].finding.detail
    request = ask("slow", (1000,), {}, 0.2, measured=True)
    assert decode_outcome(answer({"slow": slow}, request)).how == "cut off"


def test_a_mistake_that_costs_memory_is_recognised(monkeypatch):
    frugal = replace(find("causal_mask"), claims=[])

    @frugal.claim("little memory is held")
    def _(probe, rng):
        probe.holds_at_most(100_000, 2)
        probe.holds_at_most(100_000, 9)

    def large_when_long(n_query, n_key=None):
        return allocating(200_000 if n_query > 2 else 1)(n_query, n_key)

    known = Answer("causal_mask", allocating(150_000)), Answer("causal_mask", large_when_long)
    monkeypatch.setattr("autograde.bank.misconceptions", lambda exercise: known)
    for size, answer_ in ((900_000, known[0]), (10, None)):
        assert recognise(examine(frugal, local(allocating(size)))) is answer_
    assert recognise(examine(frugal, local(large_when_long))) is known[1]


def test_an_argument_that_is_given_twice_is_two_arguments():
    """As it is in another process, where every argument is decoded by itself."""

    def halves_q(q, k):
        q /= 2
        return q @ k.T

    x = np.ones((1, 2))
    assert call(halves_q, (x, x), {}).value == 1
