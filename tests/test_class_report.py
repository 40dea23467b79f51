"""The report on a class: its numbers, its sentences, and the page that shows them."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("nbgrader")

from autograde.grading.classpage import bar, histogram, page
from autograde.grading.classreport import as_csv, class_report, discrimination
from autograde.grading.standing import ClassStanding, Standing

WORK = "03-causal-mask"
MOST = {"causal_mask": 4.0, "additive_mask": 4.0, "masked_softmax": 8.0}
TOP_LEFT = {"misconception": "aligned_top_left", "headline": "causal_mask: 1 of 3", "stopped": ""}
NOT_WRITTEN = {"headline": "additive_mask: not written yet", "stopped": "is not written yet",
               "misconception": None}  # fmt: skip
ENDLESS = {"headline": "x", "stopped": "did not return within 4 s", "misconception": None}
UNKNOWN = {"headline": "x", "stopped": "", "misconception": None}


def student(name, points, status="graded", found=None, **more):
    parts = dict(zip(MOST, points, strict=True))
    whole = status in ("graded", "failed")
    total = sum(p or 0 for p in points) if whole else None
    return Standing(name, status, total, parts=parts, found=found or {}, **more)


@pytest.fixture
def standing():
    students = (
        student("ada", (4, 4, 8), late=3600.0),
        student("bob", (0, 4, 8), found={"causal_mask": TOP_LEFT}),
        student("cat", (0, 0, 2), found={"causal_mask": TOP_LEFT, "additive_mask": NOT_WRITTEN}),
        student("dan", (4, 0, 0), found={"additive_mask": UNKNOWN, "masked_softmax": ENDLESS}),
        student("eve", (4, 4, None), "waiting", waiting=("masked_softmax",)),
        student("<b>fay</b>", (0, 0, 0), "failed", note="not a notebook <script>"),
        Standing("gus", "error", note="no kernel"),
        Standing("hal", "nothing"),
    )
    return ClassStanding(WORK, MOST, students)


def items(report):
    return {item.name: item for item in report.items}


def test_difficulty_is_the_share_of_the_points(standing):
    found = items(class_report(standing))
    assert found["causal_mask"].share == pytest.approx(12 / 24)
    assert found["masked_softmax"].share == pytest.approx(18 / 40)  # eve's is not known yet
    assert found["masked_softmax"].students == 5
    assert (found["causal_mask"].right, found["causal_mask"].nothing) == (3, 3)
    assert (found["additive_mask"].unwritten, found["additive_mask"].unnamed) == (1, 1)


def test_discrimination_is_the_point_biserial_correlation_with_the_rest():
    """Against its textbook formula, (M1 - M0) / s * sqrt(p q), with the rest of the test."""
    right = np.array([0, 0, 1, 1, 1, 0, 1, 1], float)
    rest = np.array([3, 5, 6, 9, 10, 1, 4, 12], float)
    p = right.mean()
    gap = rest[right == 1].mean() - rest[right == 0].mean()
    assert discrimination(right, rest) == pytest.approx(gap / rest.std() * (p * (1 - p)) ** 0.5)
    assert discrimination(8 * right, rest) == pytest.approx(discrimination(right, rest))
    assert discrimination(right[:2], rest[:2]) is None
    assert discrimination(np.ones(8), rest) is None


def test_the_rest_does_not_hold_the_exercise_itself(standing):
    (item, *_) = class_report(standing).items
    mine = np.array([4, 0, 0, 4, 4, 0], float)
    rest = np.array([12, 12, 2, 0, 4, 0], float)
    assert item.discrimination == pytest.approx(np.corrcoef(mine, rest)[0, 1])


def test_misconceptions_are_counted_with_their_sentence(standing):
    (mistake,) = class_report(standing).mistakes
    assert mistake.students == ("bob", "cat")
    assert "aligned at the top left" in mistake.text


def test_the_most_frequent_comes_first(standing):
    extra = {"misconception": "zero_times_infinity", "headline": "x", "stopped": ""}
    more = [student(f"s{i}", (4, 0, 8), found={"additive_mask": extra}) for i in range(3)]
    report = class_report(ClassStanding(WORK, MOST, (*standing.students, *more)))
    assert [len(mistake.students) for mistake in report.mistakes] == [3, 2]


def test_time_outs_and_failures_are_said(standing):
    report = class_report(standing)
    (stopped,) = report.stopped  # not that of an answer that was not written
    assert (stopped.exercise, stopped.students) == ("masked_softmax", ("dan",))
    assert {status: len(who) for status, who in report.others.items()} == {
        "failed": 1, "waiting": 1, "error": 1, "nothing": 1
    }  # fmt: skip
    assert report.late == ("ada",)
    assert sorted(report.scores) == [0, 2, 4, 12, 16]  # eve's is not complete


class Page(HTMLParser):
    """Tags and attributes of a page; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes = [], set(), []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "rect", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


def test_the_page_stands_alone(standing):
    text = page(class_report(standing), anonymous=False)
    parsed = Page(text)
    assert not parsed.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not {"src", "href", "action", "srcset"} & {name for name, _ in parsed.attributes}
    assert not any(name.startswith("on") for name, _ in parsed.attributes)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "width=device-width" in text
    assert "prefers-color-scheme: dark" in text


def test_what_students_write_cannot_act(standing):
    text = page(class_report(standing), anonymous=False)
    assert "<script" not in text
    assert "&lt;b&gt;fay" in text


def test_every_bar_has_its_number_as_text(standing):
    text = page(class_report(standing), anonymous=True)
    for picture in re.findall(r"<svg.*?</svg>", text, flags=re.S):
        spoken = re.search('aria-label="(.*?)"', picture)[1]
        written = re.findall("<text[^>]*>(.*?)</text>", picture)
        assert spoken
        assert spoken in written or "points" in written
    assert "2 of 6" in text


NAMES = ("ada", "bob", "cat", "dan", "eve", "fay", "gus", "hal")


def test_anonymous_names_nobody(standing):
    report = class_report(standing)
    both = page(report, True) + as_csv(report, True)
    assert not [name for name in NAMES if re.search(rf"\b{name}\b", both)]
    open_ = page(report, False) + as_csv(report, False)
    # Who is simply right is in no list, anonymous or not.
    assert [name for name in NAMES if re.search(rf"\b{name}\b", open_)] == [*NAMES[1:]]


def test_the_table_says_the_same(standing):
    report = class_report(standing)
    rows = list(csv.DictReader(io.StringIO(as_csv(report, False))))
    found = {(row["what"], row["exercise"], row["item"]): row for row in rows}
    for item in report.items:
        assert float(found["exercise", item.name, "share"]["value"]) == pytest.approx(
            item.share, abs=1e-3
        )
        assert int(found["exercise", item.name, "right"]["students"]) == item.right
    row = found["misconception", "causal_mask", "aligned_top_left"]
    assert (row["students"], row["of"], row["names"]) == ("2", "6", "bob cat")
    assert row["text"] == report.mistakes[0].text


@pytest.mark.parametrize("scores", [(), (0.0,), (34.0,), (0.0, 3.5, 4.0, 33.9, 34.0), (40.0, -1.0)])
def test_the_histogram_counts_everybody(scores):
    text = histogram(scores, 34.0)
    counts = re.findall(r"<rect.*?<text[^>]*>(\d+)</text>", text)
    assert sum(map(int, counts)) == len(scores)


def test_bars_stay_in_their_frame():
    for share in (-0.2, 0.0, 0.5, 1.0, 1.7):
        widths = [float(width) for width in re.findall(r'width="([\d.]+)"', bar(share, "x"))]
        assert widths[1] == pytest.approx(widths[0] * min(max(share, 0), 1))


def test_an_empty_class_and_an_unknown_mistake_are_no_trouble():
    report = class_report(ClassStanding(WORK, MOST, ()))
    assert "No grade is complete yet" in page(report, False)
    assert items(report)["causal_mask"].share is None
    odd = {"misconception": "gone_since_then", "headline": "x", "stopped": ""}
    one = ClassStanding(WORK, MOST, (student("ada", (0, 0, 0), found={"causal_mask": odd}),))
    assert class_report(one).mistakes[0].text == "gone since then"
