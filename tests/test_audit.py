"""The audit finds the faults of a grader: what it is there to find is put before it here."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from autograde import cli
from autograde.audit import exam
from autograde.audit.findings import Findings, audit, banks, checks, text
from autograde.audit.mutants import mutants
from autograde.bank import correct_variants
from autograde.calls import Outcome
from autograde.examination import examine, local
from autograde.exercise import find


def example(values, scale=2, offset=1):
    """A function of this module, to make mutants of."""
    total = 0
    for value in values:
        if value >= offset and value % 7:
            total += _larger(value, offset) * scale
    return total - offset


def _larger(a, b):
    return max(a, b)


CHANGES = {
    "if value > offset and value % 7:",
    "if value >= offset or value % 7:",
    "if value >= offset and value // 7:",
    "if value >= offset and value % 8:",
    "if value >= offset:",
    "if True:",
    "total -= _larger(value, offset) * scale",
    "total = _larger(value, offset) * scale",
    "total += _larger(value, offset) / scale",
    "total += _larger(offset, value) * scale",
    "total += _larger(value, scale) * scale",
    "total += value * scale",
    "for value in list(values)[1:]:",
    "return total + offset",
    "return offset - total",
    "return min(a, b)",  # in the helper
    "",  # a line that is gone
}


def test_mutants_are_the_slips_of_one_place():
    made = list(mutants(example))
    assert {m.after for m in made} >= CHANGES
    assert all(m.before != m.after and m.before for m in made)
    values = [3, 1, 7, 0, 5]
    wanted = {"return total + offset": example(values) + 2, "return offset - total": -17}
    assert example(values) == 17
    for mutant in made:
        if mutant.after in wanted:
            assert mutant.function(values) == wanted[mutant.after]


def test_neither_signature_nor_docstring_is_mutated():
    assert not any("def " in m.before or '"""' in m.before for m in mutants(example))


def test_a_mutant_is_killed_by_the_claim_that_rejects_it():
    exercise = find("causal_mask")
    tried = {t.change: t for t in exam.try_mutants("causal_mask")}
    strict = (
        "`return key <= query + n_key - n_query` becomes `return key < query + n_key - n_query`"
    )
    assert tried[strict].killed_by == exercise.claims[0].name
    assert all(t.killed_by for t in tried.values())


def test_a_survivor_is_shown_with_the_input_that_tells_it_from_the_reference():
    """A grader that tries square masks only lets those pass that are wrong for others."""
    exercise = find("causal_mask")
    weak = replace(exercise, claims=exercise.claims[:1])
    survivors = [m for m in mutants(exercise.reference) if not exam.killed_by(weak, m.function)]
    assert survivors
    inputs = list(exam.further_inputs(exercise))
    for mutant in survivors:
        tried = exam._searched(exercise, mutant, inputs)
        assert tried.separated_by.startswith("causal_mask(")
        assert not tried.equivalent
        fault = next(Findings(exercise, tried=[tried]).faults())
        assert mutant.change in fault
        assert tried.separated_by in fault


def test_what_nothing_tells_from_the_reference_is_believed_equivalent():
    tried = {t.change: t for t in exam.try_mutants("merge_softmax")}
    swapped = "`m = np.maximum(m_a, m_b)` becomes `m = np.maximum(m_b, m_a)`"
    assert tried[swapped].equivalent
    assert tried[swapped].inputs > 1000


def test_an_input_on_which_right_answers_disagree_accuses_nobody(monkeypatch):
    exercise = find("causal_mask")
    (mutant, *_) = mutants(exercise.reference)
    inputs = list(exam.further_inputs(exercise))
    weak = exam._searched(exercise, replace(mutant, function=lambda *a, **k: None), inputs)
    assert weak.separated_by
    dissenter = replace(correct_variants(exercise)[0], function=lambda *a, **k: 0)
    monkeypatch.setattr(exam, "correct_variants", lambda exercise: [dissenter])
    weak = exam._searched(exercise, replace(mutant, function=lambda *a, **k: None), inputs)
    assert weak.equivalent


def test_what_is_accepted_on_purpose_is_no_fault():
    """And each entry speaks of mutants that there are."""
    for each in exam.ACCEPTED:
        exercise = find(each["exercise"])
        spoken_of = [m for m in mutants(exercise.reference) if each["change"] in m.change]
        assert spoken_of, each
        reason = exam._accepted(spoken_of[0], exercise)
        assert reason == each["reason"]
        tried = exam.Tried(exercise.name, spoken_of[0].change, "", "an input", 1, reason)
        assert not list(Findings(exercise, tried=[tried]).faults())


def test_where_many_results_are_right_what_passes_needs_a_reason(monkeypatch):
    exercise = replace(find("padding_mask"), claims=[], many_right=True)
    monkeypatch.setattr(exam, "find", lambda name: exercise)
    free = {"exercise": "padding_mask", "change": "<=", "reason": "Nobody asks for it."}
    monkeypatch.setattr(exam, "ACCEPTED", [free])
    found = Findings(exercise, tried=exam.try_mutants("padding_mask"))
    assert {t.accepted for t in found.tried} == {"", free["reason"]}
    assert [t for t in found.tried if not t.accepted] == found.survivors
    assert any("that these are right must be said" in fault for fault in found.faults())


def test_a_call_that_runs_out_of_time_accuses_nobody():
    """On a busy machine any may; whoever hangs on an input of a claim is rejected by that."""
    exercise = find("causal_mask")
    (record, *_) = exam.further_inputs(exercise)

    def sleeping(*args, **kwargs):
        time.sleep(10)

    assert exam.agrees(replace(exercise, seconds=0.05), sleeping, record)
    assert not exam.agrees(exercise, lambda *args, **kwargs: None, record)


@pytest.mark.parametrize(("stalls", "passes"), [(1, True), (1000, False)])
def test_a_right_answer_that_ran_out_of_time_sits_again(monkeypatch, stalls, passes):
    """But not for ever."""
    sittings = []

    def stalling(exercise, call, seeds):
        sittings.append(0)
        if len(sittings) > stalls:
            return examine(exercise, call, seeds)
        failed = examine(exercise, local(lambda *args, **kwargs: None), seeds)
        record = replace(failed.records[0], outcome=Outcome("timeout", text="10"))
        return replace(failed, records=(record,))

    monkeypatch.setattr(exam, "examine", stalling)
    answer = correct_variants(find("padding_mask"))[0].id
    assert exam.sit("padding_mask", answer).passed is passes
    assert len(sittings) <= exam.TRIES * len(exam.SITTINGS)


def test_an_empty_argument_stays():
    rng = np.random.default_rng(0)
    assert exam._changed(np.zeros(0), rng).shape == (0,)
    assert exam._changed(torch.zeros(0), rng).shape == (0,)
    assert (exam._changed(torch.tensor([-1.0, 2.0]), rng) != torch.tensor([-1.0, 2.0])).all()


def test_figures_are_of_these_checks_and_these_banks(monkeypatch):
    exercise = find("causal_mask")
    before = checks(exercise), banks(exercise)
    assert before == (checks(exercise), banks(exercise))
    assert checks(replace(exercise, claims=exercise.claims[1:])) != before[0]
    assert checks(replace(exercise, reference=example)) != before[0]
    monkeypatch.setattr("autograde.audit.findings.correct_variants", lambda exercise: ())
    assert banks(exercise) != before[1]
    found = audit([find("padding_mask")], jobs=1)
    assert found[0].data()["mutants"]["checks"] == checks(find("padding_mask"))


def test_the_audit_reports_what_passes_and_what_is_rejected_wrongly(monkeypatch):
    exercise = find("causal_mask")
    wrong, right = "aligned_top_left", correct_variants(exercise)[0].id
    assert exam.sit("causal_mask", wrong).well
    assert exam.sit("causal_mask", right).well
    lenient = replace(exercise, claims=exercise.claims[:1])  # square masks only
    monkeypatch.setattr(exam, "find", lambda name: lenient)
    passed = exam.sit("causal_mask", wrong)

    def causal_mask(n_query, n_key=None):
        """Nothing that any answer of the bank is like."""

    causal_mask.__module__ = exercise.reference.__module__
    strict = replace(exercise, reference=causal_mask)
    monkeypatch.setattr(exam, "find", lambda name: strict)
    rejected = exam.sit("causal_mask", right)
    found = Findings(exercise, [passed, rejected])
    assert list(found.faults()) == [
        f"causal_mask: the wrong answer {wrong} passes",
        f"causal_mask: the right answer {right} is rejected",
    ]
    assert text([found]).endswith("2 faults found")
    assert found.data()["wrong"] == {"forms": 1, "distinct": 1, "rejected": 0, "named": 0}


def test_the_command_prints_a_table_writes_data_and_returns_what_it_found(
    tmp_path, capsys, monkeypatch
):
    path = tmp_path / "exam.json"
    assert cli.main(["audit", "padding_mask", "--jobs", "1", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "padding_mask" in printed
    assert "no faults found" in printed
    before = {"exercise": "causal_mask", "wrong": "of an earlier audit"}
    data = json.loads(path.read_text())
    path.write_text(json.dumps([{"exercise": "gone"}, *data, before]))
    assert cli.main(["audit", "padding_mask", "--jobs", "1", "--json", str(path)]) == 0
    assert [each["exercise"] for each in json.loads(path.read_text())] == [
        "causal_mask",
        "padding_mask",
    ]
    (data,) = data
    assert data["wrong"]["rejected"] == data["wrong"]["forms"] >= 5
    assert data["mutants"]["killed"] + len(data["mutants"]["believed_equivalent"]) == 7
    assert cli.main(["audit", "no_such_function"]) == 2

    fault = exam.Sat("padding_mask", "an_answer", right=True, passed=False, rejected=True)
    monkeypatch.setattr(
        "autograde.audit.findings.audit", lambda *a: [Findings(find("padding_mask"), [fault])]
    )
    assert cli.main(["audit", "padding_mask"]) == 1


def test_a_claim_that_no_wrong_answer_needs_is_told():
    (found,) = audit([find("padding_mask")], jobs=1, with_mutants=False)
    extra = replace(found.exercise, claims=[*found.exercise.claims])
    extra.claim("nothing of this is asked")(lambda probe, rng: None)
    told = text([replace(found, exercise=extra)])
    assert "no wrong answer needs the claim “nothing of this is asked”" in told
