"""Collecting submissions as they come: whose they are, what is refused, what is kept."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import zipfile
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("nbgrader")

from autograde.cli import main
from autograde.grading import collect as module
from autograde.grading.collect import collect
from autograde.grading.course import Course, GradingError, alone
from autograde.grading.roster import BadRoster, read_roster, slug

WORK, NOTEBOOK = "03-causal-mask", "causal-mask.ipynb"
EMPTY = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
OTHER = EMPTY.replace(b"5}", b"4}")


@pytest.fixture
def course(tmp_path):
    """An empty course, with one assignment."""
    root = tmp_path / "course"
    (root / "solutions" / WORK).mkdir(parents=True)
    (root / "solutions" / WORK / NOTEBOOK).write_bytes(EMPTY)
    (root / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.source_directory = 'solutions'\n"
    )
    return Course(root)


def packed(path, files, dates=()):
    """A zip file; a name that ends in "@" is a link."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name.rstrip("@"), dict(dates).get(name, (2026, 1, 2, 3, 4, 6)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16 if name.endswith("@") else 0
            archive.writestr(entry, content)
    return path


def laid(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def there(course):
    """{path in submitted/: content} of what has been collected."""
    folder = course.folder("submitted")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".collected" not in path.parts
    }


def said(done, what):
    return {remark.who: remark.text for remark in done.remarks if remark.what == what}


def work(student, name=NOTEBOOK):
    return f"{student}/{WORK}/{name}"


NAMINGS = {
    "moodle-folders": ("Ada Lovelace_101_assignsubmission_file_/causal-mask.ipynb", "Ada-Lovelace"),
    "moodle-4": ("Ada Lovelace_101_assignsubmission_file/causal-mask.ipynb", "Ada-Lovelace"),
    "moodle-flat": ("Ada Lovelace_101_assignsubmission_file_causal-mask.ipynb", "Ada-Lovelace"),
    "moodle-inside": ("all/Zoë Ö_7_assignsubmission_file_/causal-mask.ipynb", "Zoë-Ö"),
    "canvas": ("lovelaceada_501_9001_causal-mask.ipynb", "lovelaceada-501"),
    "canvas-late": ("lovelaceada_LATE_501_9001_causal-mask.ipynb", "lovelaceada-501"),
    "canvas-again": ("lovelaceada_501_9001_causal-mask-2.ipynb", "lovelaceada-501"),
    "canvas-anonymous": ("anon_x9Yz1_9001_causal-mask.ipynb", "anon_x9Yz1"),
    "canvas-wrapped": ("submissions/lovelaceada_501_9001_causal-mask.ipynb", "lovelaceada-501"),
    "nbgrader-joined": (f"ada-{WORK}-causal-mask.ipynb", "ada"),
    "nbgrader-underscore": ("ada_l_causal-mask.ipynb", "ada_l"),
    "nbgrader-attempt": ("ps3_ada_attempt_2026-01-30-20-30-10_causal-mask.ipynb", "ada"),
    "nbgrader-exchange": (f"ada+{WORK}+2026-01-30 20:30:10 UTC+x/causal-mask.ipynb", "ada"),
    "nbgrader-submitted": (f"submitted/ada/{WORK}/causal-mask.ipynb", "ada"),
    "folder": ("ada/causal-mask.ipynb", "ada"),
    "browser-copy": ("ada/causal-mask (1).ipynb", "ada"),
}


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_ways_of_naming(course, tmp_path, naming):
    name, student = NAMINGS[naming]
    done = collect(course, WORK, [packed(tmp_path / "all.zip", {name: EMPTY})])
    assert done.fine, done.remarks
    files = there(course)
    files.pop(work(student, "timestamp.txt"), None)
    assert files == {work(student): EMPTY}


def test_a_folder_for_each_student_with_whatever_is_in_it(course, tmp_path):
    source = laid(
        tmp_path / "class",
        {
            f"ada/{NOTEBOOK}": EMPTY,
            "ada/data/x.csv": b"1",
            "ada/.ipynb_checkpoints/x.ipynb": b"",
            f"bob/{WORK}/{NOTEBOOK}": EMPTY,
            "bob/02-self-attention/self-attention.ipynb": EMPTY,
            "carol/notes.txt": b"sorry",
            "lost.ipynb": EMPTY,
        },
    )
    done = collect(course, WORK, [source])
    assert set(there(course)) == {
        work("ada"), work("ada", "data/x.csv"), work("bob"), work("carol", "notes.txt")
    }  # fmt: skip
    assert "no notebook among them" in said(done, "taken")["carol"]
    assert "STUDENT/" in said(done, "not taken")["lost.ipynb"]  # says what to do
    assert "another assignment" in said(done, "note")["bob/02-self-attention/self-attention.ipynb"]
    assert not done.fine


def test_times_are_kept_for_nbgrader(course, tmp_path):
    name = "x_ada_attempt_2026-01-30-20-30-10_causal-mask.ipynb"
    berlin = ZoneInfo("Europe/Berlin")
    collect(course, WORK, [packed(tmp_path / "a.zip", {name: EMPTY})], zone=berlin)
    assert there(course)[work("ada", "timestamp.txt")] == b"2026-01-30 19:30:10 UTC\n"
    folder = laid(
        tmp_path / "f",
        {f"bob/{NOTEBOOK}": EMPTY, "bob/timestamp.txt": b"2026-01-30 20:30:10 +0200"},
    )
    collect(course, WORK, [folder])
    assert there(course)[work("bob", "timestamp.txt")] == b"2026-01-30 18:30:10 UTC\n"


def test_a_students_own_timestamp_is_worth_nothing(course, tmp_path):
    files = {
        f"Ada_1_assignsubmission_file_/{NOTEBOOK}": EMPTY,
        "Ada_1_assignsubmission_file_/timestamp.txt": b"1999-01-01",
    }
    done = collect(course, WORK, [packed(tmp_path / "a.zip", files)])
    assert set(there(course)) == {work("Ada")}
    assert "could say any time" in said(done, "note")["Ada"]


def test_of_two_submissions_the_newest_is_taken_and_said(course, tmp_path):
    old, new = "x_ada_attempt_2026-01-30-20-30-10_", "x_ada_attempt_2026-01-31-08-00-00_"
    one = packed(tmp_path / "one.zip", {new + NOTEBOOK: OTHER})
    two = packed(tmp_path / "two.zip", {old + NOTEBOOK: EMPTY})
    done = collect(course, WORK, [one, two], zone=UTC)
    assert there(course)[work("ada")] == OTHER
    assert "two.zip (2026-01-30 20:30 UTC) is left out" in said(done, "note")["ada"]
    done = collect(course, WORK, [two], zone=UTC)  # and later, when the newer one is there already
    assert there(course)[work("ada")] == OTHER
    assert "handed in later" in said(done, "older")["ada"]


@pytest.mark.parametrize(
    "name",
    [
        "x_ada_attempt_2026-01-{}-20-30-10_causal-mask.ipynb",
        f"ada+{WORK}+2026-01-{{}} 20:30:10 UTC/causal-mask.ipynb",
    ],
)
def test_of_two_attempts_in_one_download_the_newest_is_taken(course, tmp_path, name):
    dates = {name.format(30): (2026, 5, 1, 0, 0, 0)}  # when it was packed says nothing
    files = {name.format(31): OTHER, name.format(30): EMPTY}
    done = collect(course, WORK, [packed(tmp_path / "a.zip", files, dates)], zone=UTC)
    assert there(course)[work("ada")] == OTHER
    assert there(course)[work("ada", "timestamp.txt")] == b"2026-01-31 20:30:10 UTC\n"
    assert "the newest is taken" in said(done, "note")["ada"]


def test_of_one_file_twice_in_canvas_the_later_upload_is_taken(course, tmp_path):
    files = {
        "lovelaceada_501_9002_causal-mask-1.ipynb": OTHER,
        "lovelaceada_501_9001_causal-mask.ipynb": EMPTY,
    }
    done = collect(course, WORK, [packed(tmp_path / "a.zip", files)])
    assert there(course) == {work("lovelaceada-501"): OTHER}
    assert "there twice" in said(done, "note")["lovelaceada-501"]


def test_again_changes_nothing_and_a_new_one_keeps_the_old(course, tmp_path):
    collect(course, WORK, [laid(tmp_path / "a", {f"ada/{NOTEBOOK}": EMPTY})])
    before = (course.folder("submitted") / work("ada")).stat().st_mtime_ns
    assert "ada" in said(collect(course, WORK, [tmp_path / "a"]), "unchanged")
    assert (course.folder("submitted") / work("ada")).stat().st_mtime_ns == before
    done = collect(course, WORK, [laid(tmp_path / "b", {f"ada/{NOTEBOOK}": OTHER})])
    assert "ada" in said(done, "replaced")
    assert there(course) == {work("ada"): OTHER}
    (kept,) = (course.folder("submitted") / ".collected/replaced").rglob(NOTEBOOK)
    assert kept.read_bytes() == EMPTY


def test_a_dry_run_says_the_same_and_writes_nothing(course, tmp_path, capsys):
    source = packed(tmp_path / "a.zip", {f"ada/{NOTEBOOK}": EMPTY, "lost.txt": b""})
    dry = collect(course, WORK, [source], dry_run=True)
    assert not course.folder("submitted").exists()
    assert collect(course, WORK, [source]).remarks == dry.remarks


TRICKS = {
    "up": "../ada/causal-mask.ipynb",
    "up-inside": "ada/../../causal-mask.ipynb",
    "absolute": "/tmp/ada/causal-mask.ipynb",
    "windows": "..\\ada\\causal-mask.ipynb",
    "drive": "C:/ada/causal-mask.ipynb",
    "cut-up": "Ada_1_assignsubmission_file_../causal-mask.ipynb",
    "cut-deeper": "Ada_1_assignsubmission_file_../../../causal-mask.ipynb",
    "link": "ada/causal-mask.ipynb@",
    "control": "ada/causal\x1b[31m-mask.ipynb",
    "long": f"ada/{'x' * 250}.ipynb",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_with_names_are_refused(course, tmp_path, trick):
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    source = packed(tmp_path / "a.zip", {TRICKS[trick]: b"/etc/passwd", "bob/x.txt": b""})
    done = collect(course, WORK, [source])
    assert done.count("refused")
    assert {path for path in there(course) if "bob" not in path} == set()
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before - {source}
    assert all(path.is_relative_to(course.root) for path in written)


def test_links_in_folders_are_refused(course, tmp_path):
    source = laid(tmp_path / "class", {"ada/notes.txt": b"", "secret/x": b"hidden"})
    (source / "ada" / NOTEBOOK).symlink_to(source / "secret/x")
    (source / "eve").symlink_to(source / "secret", target_is_directory=True)
    os.mkfifo(source / "ada/pipe")
    done = collect(course, WORK, [source])
    assert set(said(done, "refused")) == {f"ada/{NOTEBOOK}", "eve", "ada/pipe"}
    assert set(there(course)) == {work("ada", "notes.txt"), work("secret", "x")}


def zip_bytes(files):
    stream = io.BytesIO()
    packed(stream, files)
    return stream.getvalue()


def test_a_zip_in_a_submission_is_unpacked(course, tmp_path):
    inner = zip_bytes({f"work/{NOTEBOOK}": EMPTY, "__MACOSX/._x": b"", "../up": b""})
    files = {"Ada_1_assignsubmission_file_/work.zip": inner}
    done = collect(course, WORK, [packed(tmp_path / "a.zip", files)])
    assert there(course) == {work("Ada", f"work/{NOTEBOOK}"): EMPTY}
    assert "leads out" in said(done, "refused")["Ada: work.zip: ../up"]


def test_bombs_are_refused_and_nobody_else_suffers(course, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 10**6)
    monkeypatch.setattr("autograde.grading.gather.LARGEST", 10**6)
    monkeypatch.setattr(module, "MOST", 20)
    big = b"\0" * (10**6 + 1)
    files = {
        "bomb/x.ipynb": big,
        "nested/x.zip": zip_bytes({"y": big}),
        "inner/x.zip": zip_bytes({"y": zip_bytes({"z": big})}),
        **{f"many/{n}": b"" for n in range(21)},
        f"bob/{NOTEBOOK}": EMPTY,
    }
    done = collect(course, WORK, [packed(tmp_path / "a.zip", files)])
    assert {"bomb", "nested", "many"} <= set(said(done, "refused"))
    assert all("the limits are" in text for text in said(done, "refused").values()), done
    assert {path.split("/")[0] for path in there(course)} == {"bob", "inner"}


def test_a_zip_that_lies_about_its_size_is_refused(course, tmp_path):
    """The list of a zip file may say anything; what is unpacked is what counts."""
    source = packed(tmp_path / "a.zip", {f"ada/{NOTEBOOK}": EMPTY * 100, "bob/x.txt": b"1"})
    data = bytearray(source.read_bytes())
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = (5).to_bytes(4, "little")
    source.write_bytes(data)
    done = collect(course, WORK, [source])
    assert "damaged" in said(done, "refused")["ada"]
    assert set(there(course)) == {work("bob", "x.txt")}


def test_damaged_and_encrypted_entries_are_refused(course, tmp_path):
    source = packed(tmp_path / "a.zip", {f"ada/{NOTEBOOK}": EMPTY, f"bob/{NOTEBOOK}": EMPTY})
    data = bytearray(source.read_bytes())
    place = data.rindex(b"PK\x01\x02")
    data[place + 8] |= 1
    data[data.index(b"ipynb") + 8] ^= 255
    source.write_bytes(data)
    done = collect(course, WORK, [source])
    assert "encrypted" in said(done, "refused")[f"bob/{NOTEBOOK}"]
    assert "damaged" in said(done, "refused")["ada"]
    assert there(course) == {}


@pytest.mark.parametrize("how", ["deflate", "bzip2", "lzma", "method", "list", "cut", "both"])
def test_a_submissions_own_broken_zip_stops_nobody(course, tmp_path, how):
    """Python's reader fails in many ways, with errors of many kinds."""
    methods = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", methods.get(how, zipfile.ZIP_DEFLATED)) as archive:
        archive.writestr(NOTEBOOK, os.urandom(3000).hex())
        if how == "both":
            archive.writestr(f"{NOTEBOOK}/x", b"")
    data = bytearray(stream.getvalue())
    central = data.index(b"PK\x01\x02")
    if how in ("deflate", "bzip2", "lzma"):
        data[60:90] = b"\xff" * 30
    elif how == "method":
        data[8] = data[central + 10] = 97
    elif how == "list":
        data[central + 46] = 255
    elif how == "cut":
        data = data[: central + 10]
    files = {"Ada_1_assignsubmission_file_/w.zip": bytes(data),
             f"Bob_2_assignsubmission_file_/{NOTEBOOK}": EMPTY}  # fmt: skip
    done = collect(course, WORK, [packed(tmp_path / "a.zip", files)])
    assert done.count("refused") >= 1
    assert there(course) == {work("Bob"): EMPTY}


def test_an_unreadable_notebook_is_taken_and_said(course, tmp_path):
    done = collect(course, WORK, [packed(tmp_path / "a.zip", {f"ada/{NOTEBOOK}": b"{"})])
    assert "is not a notebook" in said(done, "taken")["ada"]
    assert there(course) == {work("ada"): b"{"}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.zip", b"no zip file", "damaged"),
        ("a.tar.gz", b"", "pack it again as zip"),
        ("absent.zip", None, "no such file"),
    ],
)
def test_a_source_that_cannot_be_read_changes_nothing(course, tmp_path, name, content, says):
    good = laid(tmp_path / "good", {f"ada/{NOTEBOOK}": EMPTY})
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(GradingError, match=says):
        collect(course, WORK, [good, tmp_path / name])
    assert there(course) == {}


def test_a_full_disk_changes_nothing(course, tmp_path, monkeypatch):
    collect(course, WORK, [laid(tmp_path / "a", {f"ada/{NOTEBOOK}": EMPTY})])
    laid(tmp_path / "a", {f"ada/{NOTEBOOK}": OTHER, f"bob/{NOTEBOOK}": OTHER})
    copy = module._copy

    def full(each, beside):
        if each.student == "bob":
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(each, beside)

    monkeypatch.setattr(module, "_copy", full)
    with pytest.raises(GradingError, match=r"bob: No space left on device; nothing was changed"):
        collect(course, WORK, [tmp_path / "a"])
    assert there(course) == {work("ada"): EMPTY}
    assert [p for p in course.folder("submitted").iterdir() if p.name.startswith(".collect-")] == []


def test_what_fails_while_moving_leaves_whole_submissions(course, tmp_path, monkeypatch):
    collect(course, WORK, [laid(tmp_path / "a", {f"{w}/{NOTEBOOK}": EMPTY for w in "abc"})])
    laid(tmp_path / "a", {f"{w}/{NOTEBOOK}": OTHER for w in "abc"})
    replace = os.replace

    def fails(source, target):
        if f"b/{WORK}" in str(target) and ".collect-" in str(source):
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(module.os, "replace", fails)
    with pytest.raises(OSError, match="Input/output"):
        collect(course, WORK, [tmp_path / "a"])
    assert there(course) == {work("a"): OTHER, work("b"): EMPTY, work("c"): EMPTY}
    monkeypatch.undo()
    done = collect(course, WORK, [tmp_path / "a"])  # and again, it goes on
    assert set(said(done, "unchanged")) == {"a"}
    assert set(said(done, "replaced")) == {"b", "c"}


def test_two_people_of_one_name_are_told_apart(course, tmp_path):
    name = "Ada_{}_assignsubmission_file_/" + NOTEBOOK
    both = {name.format(1): EMPTY, name.format(2): OTHER}
    collect(course, WORK, [packed(tmp_path / "a.zip", both)])
    assert there(course) == {work("Ada-1"): EMPTY, work("Ada-2"): OTHER}


def test_a_namesake_later_does_not_replace_the_first(course, tmp_path):
    name = "Ada_{}_assignsubmission_file_/" + NOTEBOOK
    collect(course, WORK, [packed(tmp_path / "a.zip", {name.format(1): EMPTY})])
    done = collect(course, WORK, [packed(tmp_path / "b.zip", {name.format(2): OTHER})])
    assert "--roster" in said(done, "not taken")["Ada"]
    assert there(course) == {work("Ada"): EMPTY}


WORKSHEET = (
    '\ufeffIdentifier,"Full name","Email address",Grade,"Maximum Grade",'
    '"Last modified (submission)","Last modified (grade)"\n'
    'Participant 101,"Ada Lovelace",ada@x.org,,36.00,'
    '"Monday, 30 November 2026, 6:02 PM",-\n'
    "Participant 102,Alan Turing,alan@x.org,,36.00,-,-\n"
)


def test_moodles_worksheet_gives_ids_and_times(course, tmp_path):
    (tmp_path / "w.csv").write_text(WORKSHEET, "utf-8")
    files = {f"Ada Lovelace_101_assignsubmission_file_/{NOTEBOOK}": EMPTY}
    source = packed(tmp_path / "a.zip", files)
    done = collect(
        course, WORK, [source], read_roster(tmp_path / "w.csv"), zone=ZoneInfo("Europe/Berlin")
    )
    assert there(course)[work("ada@x.org")] == EMPTY
    assert there(course)[work("ada@x.org", "timestamp.txt")] == b"2026-11-30 17:02:00 UTC\n"
    assert set(said(done, "nothing")) == {"alan@x.org"}


def test_the_worksheet_of_another_assignment_confuses_nobody(course, tmp_path):
    """Moodle's numbers are others there; names decide."""
    (tmp_path / "w.csv").write_text(WORKSHEET, "utf-8")
    files = {
        f"Alan Turing_101_assignsubmission_file_/{NOTEBOOK}": EMPTY,
        f"Ada Lovelace_999_assignsubmission_file_/{NOTEBOOK}": OTHER,
    }
    collect(course, WORK, [packed(tmp_path / "a.zip", files)], read_roster(tmp_path / "w.csv"))
    files = {path: text for path, text in there(course).items() if path.endswith("ipynb")}
    assert files == {work("alan@x.org"): EMPTY, work("ada@x.org"): OTHER}


def test_namesakes_in_a_list_get_their_numbers(tmp_path):
    lines = "Identifier,Full name,Grade\nParticipant 1,Ada,\nParticipant 2,Ada,\n"
    (tmp_path / "w.csv").write_text(lines)
    people = read_roster(tmp_path / "w.csv").people
    assert [person.student for person in people] == ["Ada-1", "Ada-2"]


def test_moodles_numbers_are_not_canvass(course, tmp_path):
    (tmp_path / "g.csv").write_text(CANVAS_CSV, "utf-8")
    files = {f"Zoe Z_501_assignsubmission_file_/{NOTEBOOK}": EMPTY}
    collect(course, WORK, [packed(tmp_path / "a.zip", files)], read_roster(tmp_path / "g.csv"))
    assert there(course) == {work("Zoe-Z"): EMPTY}


CANVAS_CSV = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Causal mask (77)\n"
    "    Points Possible,,,,,36\n"
    '"Lovelace, Ada",501,S1,ada,A,\n"Turing, Alan",502,S2,alan,A,\n'
)


def test_canvass_gradebook_gives_login_ids(course, tmp_path):
    (tmp_path / "g.csv").write_text(CANVAS_CSV, "utf-8")
    source = packed(tmp_path / "a.zip", {f"lovelaceada_LATE_501_9001_{NOTEBOOK}": EMPTY})
    done = collect(course, WORK, [source], read_roster(tmp_path / "g.csv"))
    assert there(course) == {work("ada"): EMPTY}
    assert "late" in said(done, "taken")["ada"]
    record = json.loads((course.folder("submitted") / f".collected/{WORK}.json").read_text())
    assert (record["ada"]["number"], record["ada"]["late"]) == ("501", True)


def test_a_pattern_of_ones_own(course, tmp_path):
    source = packed(tmp_path / "a.zip", {"hw3--2026-01-02--ada--final.ipynb": EMPTY})
    pattern = r"hw3--(?P<timestamp>[\d-]+)--(?P<student_id>\w+)--(?P<file_id>.*)"
    assert not collect(course, WORK, [source]).fine
    assert collect(course, WORK, [source], pattern=pattern, zone=UTC).fine
    assert there(course)[work("ada", "timestamp.txt")] == b"2026-01-02 00:00:00 UTC\n"
    assert there(course)[work("ada", "final.ipynb")] == EMPTY
    course.config.FileNameCollectorPlugin.named_regexp = pattern  # as for nbgrader zip_collect
    assert set(said(collect(course, WORK, [source], zone=UTC), "unchanged")) == {"ada"}


def test_ids_cannot_be_paths():
    for text in ("..", "../x", "/etc", "a/../b", "-rf", ".hidden", "=cmd()", "a\x00b", "  "):
        made = slug(text)
        assert "/" not in made
        assert not made.startswith((".", "-", "=", "@"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "none of the columns"),
        ("student\n", "no line"),
        ("student\nada\nada\n", "more than one line for ada"),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_a_list_that_cannot_be_used_is_said(tmp_path, text, says):
    path = tmp_path / "list.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadRoster, match=says):
        read_roster(path)


def test_the_command(course, tmp_path, capsys):
    source = packed(tmp_path / "a.zip", {f"ada/{NOTEBOOK}": EMPTY, "lost.txt": b""})
    command = ["collect", WORK, str(source), "--root", str(course.root)]
    assert main(command) == 1  # something could not be matched
    assert "1 taken, 1 not taken" in capsys.readouterr().out
    assert main([*command, "--timezone", "Nowhere/Here"]) == 2
    assert main(["collect", "no-such", str(source), "--root", str(course.root)]) == 2
    assert "there is no assignment 'no-such'" in capsys.readouterr().err
    with alone(course.root):
        assert main(command) == 2
    assert main([*command[:3], "--root", str(tmp_path)]) == 2
    assert "nbgrader_config.py is missing" in capsys.readouterr().err
