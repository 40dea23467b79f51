"""What the book shows of the grader's exam is of the banks and claims that there are."""

import json
from pathlib import Path

from autograde.audit.elsewhere import WRONG, ours
from autograde.audit.findings import banks
from autograde.exercise import exercises

BOOK = Path(__file__).parents[1] / "book"


def shown():
    return {e["exercise"]: e for e in json.loads((BOOK / "exam.json").read_text("utf-8"))}


def test_the_exam_that_the_book_shows_is_of_these_banks_and_claims():
    exam = shown()
    stale = [
        exercise.name
        for exercise in exercises()
        if exercise.name not in exam
        or exam[exercise.name]["banks"] != banks(exercise)
        or [(c["claim"], c["points"]) for c in exam[exercise.name]["claims"]]
        != [(claim.name, claim.points) for claim in exercise.all_claims()]
    ]
    command = f"autograde audit --no-mutants --json book/exam.json {' '.join(stale)}"
    assert not stale, f"run: {command}"
    assert list(exam) == [exercise.name for exercise in exercises()]


def test_the_exam_that_the_book_shows_was_passed():
    for name, each in shown().items():
        assert not each["faults"], name
        assert each["wrong"]["named"] == each["wrong"]["rejected"] == each["wrong"]["forms"]
        assert each["right"]["accepted"] == each["right"]["all"]


def test_our_checks_reject_what_is_put_to_another_check_too():
    """What the other package says is not run again: it is not among what the course needs."""
    data = json.loads((BOOK / "exam-elsewhere.json").read_text("utf-8"))
    assert list(data["wrong"]) == list(WRONG)
    assert ours({}) == ""
    for name, different in WRONG.items():
        assert ours(different) == data["wrong"][name]["ours"] != "", name
