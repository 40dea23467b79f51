"""Whose is this file? The ways in which Moodle, Canvas, Blackboard and nbgrader name them.

A download names all of its files in one way, so the way is found for all of them together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from autograde.grading.archives import File

Way = Callable[[str], "Whose | None"]


@dataclass(frozen=True)
class Whose:
    """What a file's name says.

    student: their id, or ""; name: their full name, or what Canvas makes of it; number: their
    number there. file: its path in the submission; "" when it is none (`why` says what it is).
    when: the time as it stands in the name. order: greater for what was handed in later.
    """

    way: str
    file: str
    student: str = ""
    name: str = ""
    number: str = ""
    when: str = ""
    late: bool = False
    order: int = 0
    why: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for all files that were handed in together."""
        return (self.student or self.name, self.number, self.when)


MOODLE = re.compile(
    r"(?:^|.*/)(?P<name>[^/]+?)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)"
    r"(?:_?/|_)(?P<file>.+)"
)
CANVAS = re.compile(
    r"(?P<name>[^/]+?)(?P<late>_LATE)?_(?P<number>\d+)_"
    r"(?:(?P<order>\d+)_(?P<file>[^/]+)|(?P<typed>text|link)\.html)"
)
CANVAS_ANONYMOUS = re.compile(
    r"(?P<late>LATE_)?(?P<number>anon_[A-Za-z0-9]+)_"
    r"(?:(?P<order>\d+)_(?P<file>[^/]+)|(?P<typed>text|link)\.html)"
)
ATTEMPT = re.compile(
    r"(?:[^/]*?_)?(?P<student>[^/_]+)_attempt_(?P<when>\d{4}(?:-\d\d){5})_(?P<file>[^/]+)"
)


def moodle(path: str) -> Whose | None:
    """Full Name_12345_assignsubmission_file_/work.ipynb, or with no folder."""
    if not (found := MOODLE.fullmatch(path)):
        return None
    typed = "" if found["kind"] == "file" else "text typed into Moodle, not a file"
    return Whose(
        "Moodle",
        "" if typed else found["file"].lstrip("/"),
        name=found["name"],
        number=found["number"],
        why=typed,
    )


def canvas(path: str) -> Whose | None:
    """lovelaceada_LATE_12345_67890_work-1.ipynb"""
    name = path.rpartition("/")[2]
    found = CANVAS_ANONYMOUS.fullmatch(name) or CANVAS.fullmatch(name)
    if not found:
        return None
    typed = f"a {found['typed']} typed into Canvas, not a file" if found["typed"] else ""
    return Whose(
        "Canvas",
        found["file"] or "",
        name=found.groupdict().get("name") or found["number"],
        number=found["number"],
        late=bool(found["late"]),
        order=int(found["order"] or 0),
        why=typed,
    )


def attempt(path: str) -> Whose | None:
    """ps1_ada_attempt_2016-01-30-20-30-10_work.ipynb: Blackboard's, and nbgrader's example."""
    found = ATTEMPT.fullmatch(path.rpartition("/")[2])
    if not found:
        return None
    day, clock = found["when"][:10], found["when"][11:].replace("-", ":")
    return Whose("attempts", found["file"], student=found["student"], when=f"{day} {clock}")


def exchange(assignment: str) -> Way:
    """ada+ps1+2016-01-30 20:30:10 UTC/work.ipynb, as in nbgrader's exchange."""
    pattern = re.compile(
        rf"(?:.*/)?(?P<student>[^/+]+)\+{re.escape(assignment)}\+(?P<when>[^/+]+)[^/]*/(?P<file>.+)"
    )

    def way(path: str) -> Whose | None:
        found = pattern.fullmatch(path)
        return found and Whose("exchange", **found.groupdict())

    return way


def joined(assignment: str, notebooks: Iterable[str]) -> Way:
    """ada-ps1-work.ipynb, ada_work.ipynb: the student's id, and what they were given."""
    names = "|".join(re.escape(name) for name in notebooks)
    pattern = re.compile(
        rf"(?P<student>[^/]+?)[-_+](?:{re.escape(assignment)}[-_+])?(?P<file>(?:{names})\.ipynb)"
    )

    def way(path: str) -> Whose | None:
        found = pattern.fullmatch(path.rpartition("/")[2])
        return found and Whose("joined names", **found.groupdict())

    return way


def written(pattern: str) -> Way:
    """By an instructor's own regular expression, with the groups of nbgrader's zip_collect."""
    expression = re.compile(pattern)

    def way(path: str) -> Whose | None:
        found = expression.match(path)
        said = {key: value or "" for key, value in found.groupdict().items()} if found else {}
        if not said.get("student_id"):
            return None
        name = f"{said.get('first_name', '')} {said.get('last_name', '')}".strip()
        file = said.get("file_id") or path.rpartition("/")[2]
        file += "" if "." in file.rpartition("/")[2] else PurePosixPath(path).suffix
        when = said.get("timestamp", "")
        return Whose("your pattern", file, said["student_id"], name, when=when)

    return way


def folders(assignment: str, known: set[str], paths: list[str]) -> Way:
    """A folder for each student, perhaps with one for each assignment in it.

    known: students' ids that tell a student's folder from one that holds all of them.
    """
    wrapper = _wrapper(assignment, known, paths)

    def way(path: str) -> Whose | None:
        parts = path.removeprefix(wrapper).split("/")
        if len(parts) < 2:
            student = parts[0].rpartition(".")[0]
            return Whose("folders", parts[0], student=student) if student in known else None
        student, rest = parts[0], parts[1:]
        if len(rest) > 1 and rest[0] == assignment:
            rest = rest[1:]
        elif len(rest) > 1 and re.fullmatch(r"\d\d-[a-z-]+", rest[0]):
            return Whose("folders", "", student, why=f"of another assignment, {rest[0]}")
        return Whose("folders", "/".join(rest), student=student)

    return way


def _wrapper(assignment: str, known: set[str], paths: list[str]) -> str:
    """The folders in which all students' folders lie, such as "class/"."""
    wrapper = ""
    while paths and all("/" in path.removeprefix(wrapper) for path in paths):
        tops = {path.removeprefix(wrapper).split("/")[0] for path in paths}
        inside = [path.removeprefix(wrapper).split("/", 1)[1] for path in paths]
        (top, *others) = tops
        whose = others or top in known or any("/" not in path for path in inside)
        if whose or all(path.startswith(f"{assignment}/") for path in inside):
            break
        wrapper += f"{top}/"
    return wrapper


def way_of(
    files: list[File],
    assignment: str,
    notebooks: list[str],
    known: set[str],
    pattern: str = "",
) -> Way:
    """The way in which most of these files are named."""
    paths = [str(file.path) for file in files]
    if pattern:
        return written(pattern)
    ways = (moodle, exchange(assignment), canvas, attempt, joined(assignment, notebooks))
    named = {way: [path for path in paths if way(path)] for way in ways}
    for way in ways[:2]:
        if named[way]:
            return way
    best = max(ways[2:], key=lambda way: len(named[way]))
    beside = {path.rpartition("/")[0] for path in named[best]}
    if len(beside) == 1 and 2 * len(named[best]) > len(paths):
        return best
    return folders(assignment, known, paths)
