"""A list of the class, as Canvas or Moodle exports it or as anybody writes it: who is who.

Known columns: Canvas's gradebook (Student, ID, SIS User ID, SIS Login ID), Moodle's grading
worksheet (Identifier, Full name, Email address, Last modified (submission)) and its lists of
participants (First name, Last name, ID number), and a plain one (student, name, email).
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

# What a student is called here: the first of these columns that is filled in.
IDS = ("student", "student_id", "username", "sis login id", "sis user id", "id number",
       "email address", "email")  # fmt: skip
NUMBERS = ("identifier", "id", "lms_user_id")  # the number that stands in a file's name
NAMES = ("full name", "name", "student")
HANDED_IN = "last modified (submission)"


class BadRoster(Exception):
    """A list of the class that cannot be used, and why."""


@dataclass(frozen=True)
class Person:
    """Someone in the list: `student` is the folder's name, `row` the line of the file."""

    student: str
    number: str
    name: str
    row: dict[str, str]

    @property
    def handed_in(self) -> str:
        """The time that Moodle's worksheet gives, as it stands there."""
        return next((text for key, text in self.row.items() if _plain(key) == HANDED_IN), "")


@dataclass(frozen=True)
class Roster:
    """The people of a list; `columns` are the file's own."""

    columns: tuple[str, ...] = ()
    people: tuple[Person, ...] = ()
    points: dict[str, str] | None = None  # Canvas's row of the points that are possible

    @property
    def kind(self) -> str:
        names = {_plain(column) for column in self.columns}
        if {"student", "id", "section"} <= names:
            return "canvas"
        return "moodle" if "identifier" in names and "grade" in names else "plain"

    def find(self, *, number: str = "", name: str = "", student: str = "") -> Person | None:
        """Who has this number, or else this name or id, if it is one person alone."""
        for wanted, key in (
            (number, lambda person: person.number),
            (folded(name), lambda person: folded(person.name)),
            (_plain(student), lambda person: _plain(person.student)),
        ):
            found = [person for person in self.people if wanted and key(person) == wanted]
            if len(found) == 1:
                return found[0]
        return None


def read_roster(path: Path) -> Roster:
    """Read a CSV file with a line of headings; commas, semicolons or tabs between."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        head = text[:4096].partition("\n")[0]
        comma = max(",;\t", key=head.count)
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=comma) if any(row)]
    except (OSError, UnicodeError, csv.Error) as error:
        raise BadRoster(f"{path} cannot be read as a CSV file in UTF-8: {error}") from None
    if len(rows) < 2:
        raise BadRoster(f"{path} has no line but its headings")
    columns = tuple(cell.strip() for cell in rows[0])
    lines = [dict(zip(columns, row, strict=False)) for row in rows[1:]]
    points = next((r for r in lines if "points possible" in _plain(r.get("Student", ""))), None)
    people = [person for row in lines if row is not points and (person := _person(row))]
    names = set(_twice(people))  # namesakes, in a list that knows them by name alone
    people = [
        replace(p, student=slug(f"{p.student}-{p.number}")) if p.student in names else p
        for p in people
    ]
    twice = _twice(people)
    if not people:
        raise BadRoster(f"{path} has none of the columns {', '.join(IDS)}, Full name")
    if twice:
        raise BadRoster(f"{path} has more than one line for {', '.join(twice[:5])}")
    return Roster(columns, tuple(people), points)


def _twice(people: list[Person]) -> list[str]:
    return [who for who, n in Counter(person.student for person in people).items() if n > 1]


def _person(row: dict[str, str]) -> Person | None:
    cells = {_plain(key): (value or "").strip() for key, value in row.items()}
    canvas = "section" in cells and "id" in cells
    name = next((cells[key] for key in NAMES if cells.get(key)), "")
    both = (cells.get("first name", ""), cells.get("last name") or cells.get("surname", ""))
    name = name if canvas or cells.get("full name") or cells.get("name") else " ".join(both).strip()
    ids = [key for key in IDS if not (canvas and key == "student")]
    number = next((cells[key] for key in NUMBERS if cells.get(key)), "")
    number = re.sub(r"^\D*(?=\d+$)", "", number)  # "Participant 12345"
    student = next((cells[key] for key in ids if cells.get(key)), "")
    student = slug(student) or slug(name) or slug(number)
    return Person(student, number, name, row) if student else None


def slug(text: str) -> str:
    """A name that can be a folder's: no spaces, no separators, no dot or sign first."""
    text = unicodedata.normalize("NFC", text)
    return re.sub(r"[^\w.@-]+", "-", text).strip("-.@")[:100]


def harmless(text: str) -> str:
    """A text from outside that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def folded(name: str) -> str:
    """A name's letters in a fixed order, whatever the order of first and last name."""
    text = unicodedata.normalize("NFKD", name).casefold()
    words = re.findall(r"\w+", "".join(c for c in text if not unicodedata.combining(c)))
    return " ".join(sorted(words))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
