"""The grader's own exam: every wrong answer rejected and named, every right one accepted."""

from dataclasses import replace

import pytest

from autograde.bank import canonical, correct_variants, misconceptions
from autograde.checking import CHECK_SEEDS, GRADE_SEEDS
from autograde.examination import examine, local
from autograde.exercise import chapters, exercises, find
from autograde.report import report

ALL = list(exercises())
WRONG = [(e, answer) for e in ALL for answer in misconceptions(e)]
RIGHT = [(e, answer) for e in ALL for answer in correct_variants(e)]


def graded(exercise):
    """Seeds of a grading; of an exercise that trains a single one, for each takes seconds."""
    return GRADE_SEEDS[: 1 if exercise.many_right else None]


def label(value):
    return getattr(value, "id", None) or getattr(value, "name", None)


@pytest.mark.parametrize(("exercise", "answer"), WRONG, ids=label)
def test_a_wrong_answer_is_rejected_and_named(exercise, answer):
    for seeds in (CHECK_SEEDS, graded(exercise)):
        found = report(examine(exercise, local(answer.function), seeds))
        assert not found.passed
        assert found.examination.points < exercise.points
        assert found.misconception is canonical(exercise, answer), found.text()


@pytest.mark.parametrize(("exercise", "answer"), RIGHT, ids=label)
def test_a_right_answer_is_accepted(exercise, answer):
    for seeds in (CHECK_SEEDS, graded(exercise)):
        found = report(examine(exercise, local(answer.function), seeds))
        assert found.passed, found.text()
        assert found.examination.points == exercise.points


@pytest.mark.parametrize("exercise", ALL, ids=label)
def test_the_reference_is_accepted(exercise):
    found = report(examine(exercise, local(exercise.reference), graded(exercise)))
    assert found.passed, found.text()


def test_who_clips_each_tensor_by_itself_gets_no_points():
    """That is the mistake to make here, so that the core is about it."""
    exercise = find("clip_by_global_norm")
    answers = {answer.id: answer.function for answer in misconceptions(exercise)}
    assert examine(exercise, local(answers["each_by_itself"])).points == 0


@pytest.mark.parametrize("exercise", ALL, ids=label)
def test_the_banks_are_large_enough(exercise):
    mistakes = [answer for answer in misconceptions(exercise) if not answer.same_as]
    where = f"{exercise.module}.py has too few answers to {exercise.name}"
    assert len(mistakes) >= 5, f"misconceptions/{where}"
    assert len(correct_variants(exercise)) >= 3, f"correct/{where}"
    silent = [answer.id for answer in mistakes if len(answer.text.split()) < 5]
    assert not silent, "the docstring of a misconception is its feedback, and is missing here"
    assert len(exercise.hints) == 3, f"{exercise.name} needs three hints"
    assert exercise.claims[0].points > 0, "the core claim needs points"


@pytest.mark.parametrize("exercise", ALL, ids=label)
def test_an_exercise_says_which_others_its_answer_uses(exercise):
    """Or else a wrong helper would not be named as the first thing to mend."""
    others = {other.name for other in chapters()[exercise.chapter]} - {exercise.name}
    assert set(exercise.uses) == others & set(exercise.reference.__code__.co_names)


def test_an_answer_to_nothing_is_found(monkeypatch):
    exercise = find("causal_mask")
    (answer, *_) = misconceptions(exercise)
    misconceptions.cache_clear()
    monkeypatch.setattr("autograde.bank._wrong", [replace(answer, exercise="casual_mask")])
    with pytest.raises(LookupError, match="answers 'casual_mask', which is no exercise"):
        misconceptions(exercise)
    misconceptions.cache_clear()


def test_the_exam_can_fail():
    """With too few claims a wrong answer passes, with too strict ones a right one fails."""
    exercise = find("causal_mask")
    answers = {a.id: a.function for a in misconceptions(exercise) + correct_variants(exercise)}
    weak = replace(exercise, claims=exercise.claims[:1])  # square masks only
    assert examine(weak, local(answers["aligned_top_left"])).passed
    strict = replace(exercise, reference=answers["aligned_top_left"])
    assert not examine(strict, local(answers["mask_by_tri"])).passed


@pytest.mark.parametrize("exercise", ALL, ids=label)
def test_answers_have_names_of_their_own(exercise):
    names = [a.id for a in misconceptions(exercise) + correct_variants(exercise)]
    assert len(names) == len(set(names))
