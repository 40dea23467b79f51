"""Where a class stands by the gradebook, and the tables that Canvas and Moodle take."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from datetime import datetime, timedelta

import pytest

pytest.importorskip("nbgrader")

from nbgrader.api import Gradebook

from autograde.build import scripts_on_path
from autograde.cli import main
from autograde.grading import exports
from autograde.grading.course import Course, GradingError
from autograde.grading.exports import Wanted, export
from autograde.grading.roster import harmless, read_roster
from autograde.grading.standing import ClassStanding, Standing, class_standing

pytestmark = pytest.mark.filterwarnings("ignore:Object of type .* not in session")
WORK = "03-causal-mask"
MOST = {"causal_mask": 4.0, "essay": 6.0}
DUE = datetime(2026, 1, 31)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with a gradebook as grading leaves it, made by nbgrader's own interface."""
    root = tmp_path_factory.mktemp("course")
    (root / "solutions" / WORK).mkdir(parents=True)
    (root / "solutions" / WORK / "causal-mask.ipynb").write_text("{}")
    (root / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.source_directory = 'solutions'\n"
    )
    with scripts_on_path(), Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment(WORK, duedate=DUE)
        gradebook.add_notebook("causal-mask", WORK)
        for name, cell, most in (("test_causal_mask", "code", 4), ("essay", "markdown", 6)):
            gradebook.add_grade_cell(name, "causal-mask", WORK, max_score=most, cell_type=cell)
        points = {"ada": (4, 5), "bob": (2, None), "cat": (4, 6), "dan": (0, 0)}
        for who, (auto, manual) in points.items():
            gradebook.add_student(who, first_name=who.title(), lms_user_id=f"9{ord(who[0])}")
            when = DUE + timedelta(hours=2 if who == "cat" else -2)
            gradebook.add_submission(WORK, who, timestamp=when)
            gradebook.find_grade("test_causal_mask", "causal-mask", WORK, who).auto_score = auto
            grade = gradebook.find_grade("essay", "causal-mask", WORK, who)
            grade.manual_score = manual
        late = gradebook.find_submission_notebook("causal-mask", WORK, "cat")
        late.late_submission_penalty = 1.5
        gradebook.add_student("eve")
        gradebook.db.commit()
    for who in ("fay", "gus"):
        (root / "submitted" / who / WORK).mkdir(parents=True)
    (root / "submitted/hal").mkdir()
    (root / "results" / WORK).mkdir(parents=True)
    records = {"gus": ("error", "no kernel"), "dan": ("failed", "no notebook")}
    for who, (status, note) in records.items():
        text = json.dumps({"status": status, "note": note})
        (root / "results" / WORK / f"{who}.json").write_text(text)
    return Course(root)


def test_the_standing_is_what_the_gradebook_says(course):
    standing = class_standing(course, WORK)
    found = {student.student: student for student in standing.students}
    assert standing.most == MOST
    assert {who: (s.status, s.points) for who, s in found.items()} == {
        "ada": ("graded", 9.0),
        "bob": ("waiting", None),  # an answer waits for a person: no grade, never 0
        "cat": ("graded", 8.5),  # without the penalty for being late
        "dan": ("failed", 0.0),
        "eve": ("nothing", None),
        "fay": ("new", None),
        "gus": ("error", None),
        "hal": ("nothing", None),
    }
    assert found["cat"].late == 7200
    assert found["ada"].late == 0
    assert found["bob"].waiting == ("essay",)


def test_the_command_for_each_format(course, tmp_path, capsys):
    for format in ("csv", "canvas", "moodle"):
        out = tmp_path / f"{format}.csv"
        command = ["export", WORK, "--format", format, "--out", str(out)]
        assert main([*command, "--root", str(course.root)]) == 1  # not everybody has a grade
        told = capsys.readouterr().out
        assert "bob: no grade yet: essay waits for a person" in told
        assert "gus: no grade: no kernel" in told
        assert "3 grades" in told
        assert "9" in out.read_text()
    assert (
        main(["report", WORK, "--root", str(course.root), "--out", str(tmp_path / "r.html")]) == 0
    )
    assert (tmp_path / "r.csv").is_file()


@pytest.mark.parametrize("command", ["report", "export"])
def test_what_is_missing_is_said(course, tmp_path, capsys, command):
    root = ["--root", str(course.root)]
    assert main([command, "no-such", *root]) == 2
    assert "no assignment 'no-such'; there are: 03-causal-mask" in capsys.readouterr().err
    (tmp_path / "solutions" / WORK).mkdir(parents=True)
    (tmp_path / "solutions" / WORK / "causal-mask.ipynb").write_text("{}")
    (tmp_path / "nbgrader_config.py").write_text(
        (course.root / "nbgrader_config.py").read_text("utf-8")
    )
    assert main([command, WORK, "--root", str(tmp_path)]) == 2
    assert "there is no gradebook" in capsys.readouterr().err
    assert not (tmp_path / "gradebook.db").exists()  # asking made none
    (tmp_path / "gradebook.db").write_bytes(b"no database" * 1000)
    assert main([command, WORK, "--root", str(tmp_path)]) == 2
    assert "cannot be used" in capsys.readouterr().err


def test_an_empty_gradebook_is_said(course, tmp_path, capsys):
    for name in ("solutions", "nbgrader_config.py"):
        (tmp_path / name).symlink_to(course.root / name)
    shutil.copy(course.root / "gradebook.db", tmp_path)
    with sqlite3.connect(tmp_path / "gradebook.db") as database:
        database.execute("DELETE FROM assignment")
    database.close()
    assert main(["report", WORK, "--root", str(tmp_path)]) == 2
    assert "does not know 03-causal-mask" in capsys.readouterr().err


def test_a_locked_gradebook_is_said(course, capsys):
    lock = sqlite3.connect(course.root / "gradebook.db")
    lock.execute("BEGIN EXCLUSIVE")
    assert main(["export", WORK, "--root", str(course.root)]) == 2
    assert "locked by another program" in capsys.readouterr().err
    lock.close()


def test_a_disk_that_is_full_leaves_the_old_table(course, tmp_path, capsys, monkeypatch):
    out = tmp_path / "grades.csv"
    out.write_text("the old one")
    monkeypatch.setattr(
        "autograde.grading.gradesheet.os.replace",
        lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    assert main(["export", WORK, "--root", str(course.root), "--out", str(out)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert out.read_text() == "the old one"


# --- the tables -----------------------------------------------------------------------


STUDENTS = (
    Standing("ada", "graded", 9.0, parts={"causal_mask": 4.0, "essay": 5.0}),
    Standing("bob", "waiting", waiting=("essay",)),
    Standing("cat", "graded", 10 / 3, penalty=1.5, late=60.0),
    Standing("dan", "failed", 0.0),
    Standing("eve", "nothing"),
)


@pytest.fixture
def exported(monkeypatch, tmp_path):
    """Export for these students: (the text's rows, the export)."""

    def run(record=(), students=STUDENTS, **wanted):
        standing = ClassStanding(WORK, MOST, students)
        monkeypatch.setattr(exports, "class_standing", lambda *names: standing)
        monkeypatch.setattr(exports, "read_record", lambda *names: dict(record))
        if "roster" in wanted:
            (tmp_path / "roster.csv").write_text(wanted["roster"], "utf-8")
            wanted["roster"] = read_roster(tmp_path / "roster.csv")
        course = type("course", (), {"folder": lambda self, name: tmp_path})()
        made = export(course, WORK, Wanted(**wanted))
        return list(csv.reader(io.StringIO(made.text))), made

    return run


def test_the_plain_table_has_everybody_and_unknown_is_empty(exported):
    rows, made = exported({"dan": {"late": True}})
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    assert [(row["student"], row["points"], row["status"]) for row in table] == [
        ("ada", "9", "graded"),
        ("bob", "", "waiting"),
        ("cat", "3.33", "graded"),
        ("dan", "0", "failed"),
        ("eve", "", "nothing"),
    ]
    assert (table[2]["late_seconds"], table[2]["penalty"]) == ("60", "1.5")
    assert [row["late"] for row in table] == ["", "", "yes", "yes", ""]  # dan's, Canvas said
    assert made.grades == 3
    assert [text.split(":")[0] for text in made.findings] == ["bob"]
    assert "left out" in made.notes[0]
    assert made.notes[0].endswith(": eve")


def test_missing_as_zero_is_for_those_who_handed_nothing_in(exported):
    rows, made = exported(missing_as_zero=True, format="moodle")
    assert ["eve", "0"] in rows
    assert [text.split(":")[0] for text in made.findings] == ["bob"]
    rows, _ = exported(missing_as_zero=True, format="canvas", roster="".join(
        [GRADEBOOK, '"Zoe",504,S4,zoe,A,,,\n']))  # fmt: skip
    assert rows[-1] == ["Zoe", "504", "S4", "zoe", "A", "0"]  # whom only Canvas knows


def test_another_scale(exported):
    rows, _ = exported(out_of=100.0)
    assert [row[3:5] for row in rows[1:4]] == [["90", "100"], ["", "100"], ["33.33", "100"]]


GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Essay (7),03-causal-mask (77),Final Score\n"
    '    Points Possible,,,,,5,36,"(read only)"\n'
    '"Lovelace, Ada",0501,S1,ada,A,3,,90\n'
    '"Turing, Bob",502,S2,bob,A,4,8,80\n'
    '"Cat",503,S3,cat,A,,,70\n'
)


def test_canvas_gets_its_own_columns_and_only_known_grades(exported):
    rows, made = exported(format="canvas", roster=GRADEBOOK)
    assert rows == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "03-causal-mask (77)"],
        ["    Points Possible", "", "", "", "", "36"],
        ["Lovelace, Ada", "0501", "S1", "ada", "A", "9"],
        ["Cat", "503", "S3", "cat", "A", "3.33"],
    ]  # bob's 8 in Canvas stays: an empty cell would delete it
    assert "dan: not in Canvas's list, so left out" in made.findings
    assert any("36 points in Canvas and 10 here" in note for note in made.notes)


def importable(rows):
    """Canvas's own conditions for a header (lib/gradebook_importer.rb)."""
    head = rows[0]
    columns = 3
    if "SIS User ID" in head[2] and "SIS Login ID" in head[3]:
        columns += 2
    elif "SIS Login ID" in head[2]:
        columns += 1
    return (
        len(head) > 3
        and "Student" in head[0]
        and "ID" in head[1]
        and "Section" in head[columns - 1]
        and "Points Possible" in rows[1][0]
        and all(len(row) == len(head) for row in rows)
    )


def test_canvas_can_read_it_without_its_list_too(exported):
    record = {"ada": {"way": "Canvas", "number": "501", "name": "lovelaceada"}}
    rows, made = exported(record, format="canvas", column="Causal mask")
    assert importable(rows)
    assert not importable([["Student", "Name", "Section", "x"], *rows[1:]])
    assert rows[2] == ["lovelaceada", "501", "", "", "", "9"]
    assert rows[3] == ["cat", "", "", "cat", "", "3.33"]
    assert "'Causal mask'" in made.notes[-1]
    assert importable(exported(format="canvas", roster=GRADEBOOK)[0])


def test_canvas_does_not_take_moodles_list(exported):
    with pytest.raises(GradingError, match="not Canvas's"):
        exported(format="canvas", roster=WORKSHEET)


WORKSHEET = (
    "\ufeffIdentifier,Full name,Username,Status,Grade,Maximum Grade,Last modified (grade),"
    "Feedback comments\n"
    "Participant 101,Ada Lovelace,ada,Submitted,,36.00,-,\n"
    'Participant 102,Bob,bob,Submitted,4,36.00,"Monday, 1 June 2026",good\n'
    "Participant 103,Zoe,zoe,Submitted,,36.00,-,\n"
)


def test_moodles_worksheet_is_filled_in(exported):
    rows, made = exported(format="moodle", roster=WORKSHEET)
    assert rows == [
        ["Identifier", "Full name", "Username", "Status", "Grade", "Maximum Grade",
         "Last modified (grade)", "Feedback comments"],
        ["Participant 101", "Ada Lovelace", "ada", "Submitted", "9", "36.00", "-", ""],
    ]  # fmt: skip
    assert "cat: not in Moodle's list, so left out" in made.findings
    assert "--out-of 36" in made.notes[-1]


def test_moodles_numbers_from_the_names_of_files(exported):
    record = {"ada": {"way": "Moodle", "number": "101", "name": "=Ada()"}}
    rows, made = exported(record, format="moodle")
    assert rows[0] == ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)"]
    assert rows[1:] == [["Participant 101", "'=Ada()", "9", "10", "-"]]
    assert any(text.startswith("cat: their number in Moodle") for text in made.findings)


def test_moodles_import_of_grades_by_id(exported):
    rows, made = exported(format="moodle")
    assert rows == [["Username", WORK], ["ada", "9"], ["cat", "3.33"], ["dan", "0"]]
    assert "Grades > Import" in made.notes[-1]
    mails = tuple(Standing(f"{name}@x.org", "graded", 1.0) for name in "ab")
    assert exported(format="moodle", students=mails)[0][0] == ["Email address", WORK]


def test_names_are_no_formulas():
    assert harmless("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert harmless("Ada") == "Ada"


def test_nobody_at_all_is_said(exported):
    with pytest.raises(GradingError, match="nobody has handed in"):
        exported(students=())
