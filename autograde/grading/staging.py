"""What a student handed in, laid out as nbgrader wants it.

The submission itself is never changed: it is copied, under the notebook's right name, into a
folder of its own. Only regular files are copied, so that no link leads to someone else's.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.utils import parse_utc

LARGEST = 100 * 10**6  # bytes of all companion files together


@dataclass(frozen=True)
class Submission:
    """The folder that one student handed in for one assignment."""

    student: str
    assignment: str
    folder: Path

    def files(self) -> Iterator[Path]:
        """Its regular files, in a fixed order."""
        for folder, folders, names in os.walk(self.folder):
            folders[:] = sorted(set(folders) - {".ipynb_checkpoints", "__pycache__"})
            for name in sorted(names):
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path

    def digest(self) -> str:
        """A hash of all that was handed in."""
        total = hashlib.sha256()
        for path in self.files():
            name = path.relative_to(self.folder).as_posix()
            size = path.stat().st_size
            total.update(f"{len(name)} {name} {size} ".encode(errors="replace"))
            if size > LARGEST:  # it will be left out
                continue
            with path.open("rb") as file:
                while block := file.read(2**20):
                    total.update(block)
        return total.hexdigest()


def stage(submission: Submission, notebooks: list[str], into: Path) -> dict[str, dict[str, Any]]:
    """Copy the submission to `into/<student>/<assignment>/`, with a file for each notebook.

    Returns what was found out: {notebook: {"notes": [...], "unreadable": "..."}}.
    """
    target = into / submission.student / submission.assignment
    target.mkdir(parents=True)
    found_out, notes, room = {}, [], LARGEST
    for path in submission.files():
        room -= path.stat().st_size if path.suffix != ".ipynb" else 0
        if path == submission.folder / "timestamp.txt" and not _is_time(path):
            notes.append("timestamp.txt is not a date and was passed over.")
        elif path.suffix != ".ipynb" and room >= 0:
            copy = target / path.relative_to(submission.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    if room < 0:
        notes.append(f"Files beyond {LARGEST:,} bytes in all were left out.")
    for name in notebooks:
        told = found_out[name] = {"notes": [*notes], "unreadable": ""}
        found = _notebook(submission, name, set(notebooks), told)
        if found is None:
            (target / f"{name}.ipynb").touch()  # nothing to read; the reason is told
        else:
            shutil.copyfile(found, target / f"{name}.ipynb")
    return found_out


def linked(course: Any, where: dict[str, str]) -> list[str]:
    """Names in a submission's folder that lead elsewhere, in nbgrader's course directory.

    nbgrader copies what such links lead to, whosever it is.
    """
    step, student = course.submitted_directory, where["student"]
    folder = Path(course.format_path(step, student, where["assignment"]))
    links = []
    for place, folders, names in os.walk(folder):
        found = (Path(place, name) for name in (*folders, *names))
        links += [str(path.relative_to(folder)) for path in found if path.is_symlink()]
    return links


def _is_time(path: Path) -> bool:
    """Can nbgrader read this file as the time of handing in?"""
    try:
        text = path.read_text(encoding="utf-8").strip()
        return bool(parse_utc(text) if text else True)
    except (ValueError, OverflowError):
        return False


def _listed(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths[:5]) or "an empty folder"


def _notebook(submission: Submission, name: str, names: set[str], told: dict) -> Path | None:
    """The file that is meant to be this notebook, if there is no doubt about it."""
    wanted = submission.folder / f"{name}.ipynb"
    if wanted.is_symlink() or (wanted.exists() and not wanted.is_file()):
        what = "a link" if wanted.is_symlink() else "a folder" if wanted.is_dir() else "a device"
        told["unreadable"] = f"{wanted.name} is {what}, not a notebook"
        return None
    if wanted.exists():
        return wanted
    there = list(submission.files())
    others = [p for p in there if p.suffix.lower() == ".ipynb"]
    others = [p for p in others if p.parent != submission.folder or p.name[:-6] not in names]
    others = [p for p in others if p.parent == submission.folder] or others
    if len(others) == 1:
        name = others[0].name.encode(errors="replace").decode()
        told["notes"].append(f"The notebook is called “{name}”, not “{wanted.name}”.")
        return others[0]
    called = ", ".join(sorted(path.name for path in others)[:5])
    told["unreadable"] = (
        f"none of the notebooks ({called}) is called {wanted.name}"
        if others
        else f"no notebook was handed in, only {_listed(there)}"
    )
    return None
