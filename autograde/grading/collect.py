"""Collecting what was handed in into submitted/STUDENT/ASSIGNMENT/, where grading looks for it.

All of it is read and laid out beside first, and only then moved into place, one submission at a
time: whatever goes wrong, a submission is the old one or the new one, never half. What a newer
one replaces is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path

from autograde.grading.archives import CannotRead, blocks
from autograde.grading.course import Course, GradingError, alone
from autograde.grading.gather import LARGEST, MOST, TIME, Found, Looking, Remark, gather
from autograde.grading.gradesheet import write_whole
from autograde.grading.notebooks import Unreadable, read_notebook
from autograde.grading.roster import Roster
from autograde.grading.staging import Submission

KINDS = ("taken", "replaced", "unchanged", "older", "note", "nothing", "not taken", "refused")
ASIDE = ".collected"  # in submitted/: who is who in the LMS, and what was replaced


@dataclass(frozen=True)
class Collected:
    """What came of it: a line for each thing that was seen, and how many submissions came in."""

    remarks: tuple[Remark, ...]

    @property
    def fine(self) -> bool:
        return not any(remark.finding for remark in self.remarks)

    def count(self, what: str) -> int:
        return sum(remark.what == what for remark in self.remarks)


def collect(
    course: Course,
    assignment: str,
    sources: list[Path],
    roster: Roster | None = None,
    pattern: str = "",
    zone: tzinfo | None = None,
    dry_run: bool = False,
) -> Collected:
    """Take the submissions of an assignment out of folders and zip files.

    Parameters
    ----------
    sources: folders, zip files or single files, as they were downloaded.
    roster: the class; it gives the students' ids, and the times where the LMS lists them.
    pattern: a regular expression with the groups of `nbgrader zip_collect`; by default that of
        nbgrader_config.py, and without one the ways of naming that are known (see `whose`).
    zone: of times that do not say it; None means this machine's.
    dry_run: say what would be done and do nothing.

    Raises
    ------
    GradingError: before anything has been changed.
    """
    submitted = course.folder("submitted")
    configured = course.config.FileNameCollectorPlugin.get("named_regexp", "")
    known = {path.name for path in submitted.glob("[!.]*")} if submitted.is_dir() else set()
    roster = roster or Roster()
    known |= {person.student for person in roster.people}
    looking = Looking(
        assignment, _notebooks(course, assignment), roster, known, pattern or configured, zone
    )
    with contextlib.ExitStack() as stack:
        if not dry_run:
            submitted.mkdir(exist_ok=True)
            stack.enter_context(alone(course.root))
        found, remarks = [], []
        for source in sources:
            try:
                there, told = gather(source, looking, stack)
            except (CannotRead, OSError) as error:
                raise GradingError(f"{error}; nothing was changed") from None
            if not there:
                remarks.append(Remark("not taken", source.name, "no submission was found in it"))
            found += there
            remarks += told
        remarks += _write(submitted, looking, _newest(found, remarks), dry_run)
    missing = sorted({p.student for p in roster.people} - {each.student for each in found})
    missing = [who for who in missing if not (submitted / who / assignment).is_dir()]
    remarks += [
        Remark("nothing", who, "in the list, and nothing came from them") for who in missing
    ]
    return Collected(tuple(sorted(remarks, key=lambda remark: KINDS.index(remark.what))))


def _notebooks(course: Course, assignment: str) -> list[str]:
    """The names of the notebooks that students were given."""
    sources = course.folder("source")
    names = sorted(path.stem for path in (sources / assignment).glob("*.ipynb"))
    if not names:
        known = ", ".join(sorted({p.parent.name for p in sources.glob("*/*.ipynb")})) or "none"
        raise GradingError(
            f"there is no assignment {assignment!r}; in {sources} there are: {known}"
        )
    return names


def _newest(found: list[Found], remarks: list[Remark]) -> list[Found]:
    """One submission for each student; of several the newest, which is said."""
    by_student: dict[str, list[Found]] = defaultdict(list)
    for each in found:
        by_student[each.student].append(each)
    for student, several in by_student.items():
        several.sort(key=lambda each: each.age)  # the last of equals was named last
        for older in several[:-1]:
            text = f"of {len(several)} submissions the newest is taken, {_which(several[-1])}"
            remarks.append(Remark("note", student, f"{text}; {_which(older)} is left out"))
    return [by_student[student][-1] for student in sorted(by_student)]


def _which(each: Found) -> str:
    return f"{each.source} ({each.when:%Y-%m-%d %H:%M} UTC)" if each.when else each.source


def _write(submitted: Path, looking: Looking, found: list[Found], dry_run: bool) -> list[Remark]:
    """Lay the submissions out, and move them into place."""
    remarks, ready = [], []
    record = read_record(submitted, looking.assignment)
    parent = None if dry_run else submitted
    with tempfile.TemporaryDirectory(dir=parent, prefix=".collect-") as folder:
        for number, each in enumerate(found):
            beside = Path(folder, str(number))
            try:
                told, wanted = _lay_out(submitted, looking, each, beside, record)
            except OSError as error:
                raise GradingError(
                    f"{each.student}: {error.strerror or error}; nothing was changed"
                ) from None
            remarks += [*each.remarks, *told]
            if wanted:
                ready.append((each, beside))
        if ready and not dry_run:
            try:
                for each, beside in ready:
                    _move(submitted, looking.assignment, each.student, beside)
                    record[each.student] = _line(each)
            finally:
                _write_record(submitted, looking.assignment, record)
    return remarks


def _lay_out(
    submitted: Path, looking: Looking, each: Found, beside: Path, record: dict
) -> tuple[list[Remark], bool]:
    """Copy a submission's files to `beside`; (what to say, whether it is to be taken)."""

    def said(what: str, text: str) -> tuple[list[Remark], bool]:
        return [Remark(what, each.student, text)], what in ("taken", "replaced")

    before = record.get(each.student, {})
    if each.way == before.get("way") == "Moodle" and each.number != before.get("number"):
        return said(
            "not taken",
            f"{each.name} was Moodle's number {before['number']} before and is {each.number} now; "
            "if these are two people, tell them apart with --roster",
        )
    if not each.files:
        return said("refused", "nothing is left of it that could be taken; ask for it again")
    sizes = [file.size for file in each.files.values()]
    if sum(sizes) > LARGEST or len(sizes) > MOST:
        text = f"{len(sizes):,} files of {sum(sizes):,} bytes; the limits are {MOST:,}"
        return said("refused", f"{text} and {LARGEST:,}")
    try:
        _copy(each, beside)
    except CannotRead as error:
        return said("refused", f"{error}; ask for it again")
    what, text = _compared(submitted / each.student / looking.assignment, each, beside)
    text += f"{_about(each)}{_notebook_remark(looking, beside)}"
    return said(what, text)


def _copy(each: Found, beside: Path) -> None:
    beside.mkdir()
    for path, file in each.files.items():
        target = beside / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as copy:
                for block in blocks(file, LARGEST):
                    copy.write(block)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise CannotRead(f"{path} is both a file and a folder") from None
    if each.when:
        (beside / TIME).write_text(f"{each.when:%Y-%m-%d %H:%M:%S} UTC\n", "utf-8")


def _compared(there: Path, each: Found, beside: Path) -> tuple[str, str]:
    """Is it new, newer, the same as what is there, or older?"""
    if not there.is_dir():
        return "taken", ""
    old, new = (Submission("", "", folder).digest() for folder in (there, beside))
    if old == new:
        return "unchanged", ""
    before = _time_in(there)
    if before and each.when and f"{each.when:%Y-%m-%d %H:%M:%S}" < before:
        return "older", f"what is there was handed in later, {before} UTC; "
    return "replaced", "another one was there; "


def _time_in(folder: Path) -> str:
    from nbgrader.utils import parse_utc

    try:
        text = (folder / TIME).read_text("utf-8").strip()
        return f"{parse_utc(text):%Y-%m-%d %H:%M:%S}" if text else ""
    except (OSError, ValueError, OverflowError):
        return ""


def _about(each: Found) -> str:
    when = f", {each.when:%Y-%m-%d %H:%M} UTC" if each.when else ""
    late = ", late" + ("" if each.when else ", at a time that the file does not tell")
    late = late if each.late else ""
    return f"{len(each.files)} file{'s' * (len(each.files) != 1)}{when}{late}"


def _notebook_remark(looking: Looking, folder: Path) -> str:
    """What grading will have to say of the notebooks, or ""."""
    told = []
    for name in looking.notebooks:
        path = folder / f"{name}.ipynb"
        try:
            if path.is_file():
                read_notebook(path)
            elif not any(folder.rglob("*.ipynb")):
                told.append("no notebook among them")
        except Unreadable as reason:
            told.append(str(reason))
    return "".join(f"; {text}" for text in told)


def _move(submitted: Path, assignment: str, student: str, beside: Path) -> None:
    """Put a submission in place; what was there goes to .collected/replaced/."""
    there = submitted / student / assignment
    there.parent.mkdir(exist_ok=True)
    old = None
    if there.exists():
        stamp = f"{datetime.now():%Y%m%d-%H%M%S-%f}"
        old = submitted / ASIDE / "replaced" / student / assignment / stamp
        old.parent.mkdir(parents=True, exist_ok=True)
        os.replace(there, old)
    try:
        os.replace(beside, there)
    except OSError:
        if old:
            os.replace(old, there)
        raise


def _line(each: Found) -> dict:
    about = {"way": each.way, "from": each.source, "name": each.name, "number": each.number}
    return {**about, "late": each.late, "time": each.when.isoformat() if each.when else None}


def read_record(submitted: Path, assignment: str) -> dict[str, dict]:
    """{student: who they are in the LMS, when it came}, of what has been collected."""
    try:
        return json.loads((submitted / ASIDE / f"{assignment}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _write_record(submitted: Path, assignment: str, record: dict) -> None:
    text = json.dumps(dict(sorted(record.items())), indent=1, ensure_ascii=False)
    write_whole(submitted / ASIDE / f"{assignment}.json", f"{text}\n")
