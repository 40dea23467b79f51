"""What each student handed in, found in what was downloaded: nothing is written here."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath

from dateutil import parser
from nbgrader.utils import parse_utc

from autograde.grading.archives import CannotRead, File, Refused, blocks, source_files, unpacked
from autograde.grading.roster import Person, Roster, folded, slug
from autograde.grading.whose import Whose, way_of

LARGEST = 200 * 10**6  # bytes of one submission
MOST = 1000  # files of one submission
TIME = "timestamp.txt"  # nbgrader's file with the time of handing in


@dataclass(frozen=True)
class Remark:
    """A line of the report: what was done, with whose work or with what, and why."""

    what: str  # taken, replaced, unchanged, older, not taken, refused, note, nothing
    who: str
    text: str

    @property
    def finding(self) -> bool:
        return self.what in ("not taken", "refused")


@dataclass(frozen=True)
class Found:
    """What one student handed in, in one source.

    when: the time of handing in, if it is known; changed: the newest of the files, as they say.
    late: marked so by the LMS, which need not tell the time.
    """

    student: str
    files: dict[str, File]
    source: str
    way: str
    name: str = ""
    number: str = ""
    when: datetime | None = None
    late: bool = False
    order: tuple[int, ...] = ()
    remarks: tuple[Remark, ...] = field(default=(), compare=False)

    @property
    def age(self) -> tuple:
        """Greater for what was handed in later, as well as can be known."""
        changed = max((file.changed for file in self.files.values()), default=datetime.min)
        return (self.when.timestamp() if self.when else 0, changed, self.order)


@dataclass(frozen=True)
class Looking:
    """What is known before a source is opened."""

    assignment: str
    notebooks: list[str]
    roster: Roster
    students: set[str]  # who is known: from the list of the class, or from earlier work
    pattern: str = ""
    zone: tzinfo | None = None  # of times that do not say it; None: this machine's


def gather(
    source: Path, looking: Looking, stack: contextlib.ExitStack
) -> tuple[list[Found], list[Remark]]:
    """What lies in a folder, a zip file or a single file, by student."""
    try:
        files, refused = source_files(source, stack)
    except CannotRead as error:
        raise CannotRead(f"{source}: {error}") from None
    remarks = [Remark("refused", each.path, each.why) for each in refused]
    way = way_of(files, looking.assignment, looking.notebooks, looking.students, looking.pattern)
    groups: dict[tuple[str, ...], list[tuple[Whose, File]]] = defaultdict(list)
    for file in files:
        whose = way(str(file.path))
        if whose is None:
            remarks.append(Remark("not taken", str(file.path), _nobody(looking)))
        elif not whose.file:
            who = f"{whose.name or whose.student}: {file.path}"
            if whose.why.startswith("of another"):
                remarks.append(Remark("note", str(file.path), whose.why))
            else:
                remarks.append(Remark("not taken", who, f"{whose.why}; ask for the notebook"))
        else:
            groups[whose.key].append((whose, file))
    names = _names(groups, looking)
    found = []
    for key, group in groups.items():
        if names[key]:
            found.append(_found(names[key], group, source.name, looking, stack))
        else:
            path = str(group[0][1].path)
            remarks.append(Remark("not taken", path, "its name gives no student's name"))
    return found, remarks


def _nobody(looking: Looking) -> str:
    return (
        f"nothing in its name or place says whose it is; put it into a folder STUDENT/, call it "
        f"STUDENT-{looking.assignment}-{looking.notebooks[0]}.ipynb, or give --pattern"
    )


def _names(groups: dict, looking: Looking) -> dict[tuple[str, ...], str]:
    """The student's name here, for each key; two people of one name get their numbers, too."""
    names = {}
    for key, group in groups.items():
        whose = group[0][0]
        listed = _listed(whose, looking.roster)
        anonymous = whose.number.startswith("anon_") or whose.name == whose.number
        made = slug(whose.student or whose.name)
        if whose.way == "Canvas" and not anonymous:
            made = slug(f"{whose.name}-{whose.number}")
        names[key] = listed.student if listed else made
    taken = [*names.values()]
    for key, name in names.items():
        if taken.count(name) > 1 and key[1]:
            names[key] = slug(f"{name}-{key[1]}")
    return names


def _listed(whose: Whose, roster: Roster) -> Person | None:
    """Who this is in the list of the class, if it says.

    Numbers count only in the list of the same system. Moodle's are others in each assignment, so
    there the name has to agree.
    """
    if roster.kind == whose.way.lower() and whose.number:
        person = roster.find(number=whose.number)
        if person and (whose.way == "Canvas" or folded(person.name) == folded(whose.name)):
            return person
    return roster.find(name=whose.name, student=whose.student)


def _found(
    student: str,
    group: list[tuple[Whose, File]],
    source: str,
    looking: Looking,
    stack: contextlib.ExitStack,
) -> Found:
    whose, remarks = group[0][0], []
    files: dict[str, tuple[int, datetime, File]] = {}
    for mark, file in group:
        if ".." in mark.file.split("/"):  # "Name_1_assignsubmission_file_../x" came to that
            remarks.append(Remark("refused", str(file.path), "its name leads out of its folder"))
            continue
        inside = replace(file, path=PurePosixPath(mark.file.lstrip("/")))
        for each in _opened(inside, stack):
            if isinstance(each, Refused):
                remarks.append(Remark("refused", f"{student}: {each.path}", each.why))
                continue
            path, age = _right_name(str(each.path), mark.way, looking), (mark.order, each.changed)
            older = files.get(path)
            if older:
                remarks.append(
                    Remark("note", student, f"{path} is there twice; the newer is taken")
                )
            if not older or older[:2] <= age:
                files[path] = (*age, each)
    kept = {path: file for path, (_, _, file) in files.items()}
    when = _when(student, group, kept, looking, remarks)
    late, order = any(m.late for m, _ in group), tuple(sorted(m.order for m, _ in group))
    found = Found(student, kept, source, whose.way, whose.name, whose.number, when, late, order)
    return replace(found, remarks=tuple(remarks))


def _opened(file: File, stack: contextlib.ExitStack) -> list[File | Refused]:
    """The file, or what is in it where it is a zip file."""
    if file.path.suffix.lower() != ".zip":
        return [file]
    return unpacked(file, LARGEST, stack)


def _right_name(path: str, way: str, looking: Looking) -> str:
    """Canvas calls a notebook that is handed in again work-1.ipynb, browsers work (1).ipynb."""
    stem = re.sub(r"(-\d+| ?\(\d+\))$", "", path.removesuffix(".ipynb"))
    again = path.endswith(".ipynb") and path[:-6] not in looking.notebooks
    return f"{stem}.ipynb" if again and stem in looking.notebooks else path


def _when(
    student: str,
    group: list[tuple[Whose, File]],
    files: dict[str, File],
    looking: Looking,
    remarks: list[Remark],
) -> datetime | None:
    """The time of handing in, from the list, the name, or nbgrader's file.

    That file counts only where no student can have put it: not in what an LMS let them upload.
    """
    whose = group[0][0]
    listed = _listed(whose, looking.roster)
    texts = [(whose.when, looking.zone), (listed.handed_in if listed else "", looking.zone)]
    if TIME in files:
        file = files.pop(TIME)
        if whose.way in ("folders", "exchange"):
            try:
                said = b"".join(blocks(file, 1000)).decode("utf-8", "replace").strip()
            except CannotRead as error:
                said = str(error)
            texts.insert(0, (said, UTC))
        else:
            text = f"the student's own {TIME} was left out: it could say any time"
            remarks.append(Remark("note", student, text))
    for text, zone in texts:
        if text and text != "-":
            try:
                return _time(text, zone)
            except (ValueError, OverflowError):
                remarks.append(Remark("note", student, f"“{text[:40]}” is not a time"))
    return None


def _time(text: str, zone: tzinfo | None) -> datetime:
    """A time in UTC; one that does not say where it was read is of `zone`."""
    if re.search(r" [A-Za-z_]+(/[A-Za-z_]+)?$", text) and not re.search(r"(?i) [ap]m$", text):
        return parse_utc(text).replace(tzinfo=UTC)  # "2026-01-30 20:30 Europe/Berlin"
    found = parser.parse(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone) if zone else found.astimezone()
    return found.astimezone(UTC)
