"""The students' notebooks as pages show them: which exercises there are, and their text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(r"^(?=##? )", re.M)
EMPTY = re.compile(r"^\|\s*\|(?=.*\n\|[-:| ]+\|$)", re.M)  # the first cell of a table's head
SECTION = re.compile(r"\*Section of the chapter: (.+?)\*\n*", re.S)
HERE = (
    "Write your functions here: Python runs in this page, and what you write stays in this "
    "browser. {{doc}}`progress` shows what passes. Or take {notebook} and work in Jupyter."
)
ELSEWHERE = "Take {notebook}, and write your functions there."  # on a site without Pyodide
WITH_TORCH = (
    "These functions need PyTorch, which does not run inside a web page, so they take a real "
    "machine. Get {notebook} and open it in Jupyter."
)
CURLY = str.maketrans("“”‘’", "\"\"''")
HINT = "A hint costs nothing."  # which a page has a button for


@dataclass
class Task:
    """An exercise: what its notebook says before the cell to fill (`text`), and after it."""

    title: str  # such as "3.1 The causal mask (4 points)"
    lead: str = ""  # for this one and those that follow
    name: str = ""
    points: int = 0
    section: str = ""
    text: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def number(self) -> str:
        return self.title.partition(" ")[0]

    @property
    def id(self) -> str:
        return f"try-{self.name.replace('_', '-')}"


@dataclass(frozen=True)
class Chapter:
    """path: of the notebook, from the course's folder."""

    path: Path
    in_browser: bool
    given: tuple[str, ...]
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        return self.path.parent.name

    @property
    def file(self) -> str:
        return self.path.name


@cache
def chapters(root: Path = ROOT) -> dict[str, Chapter]:
    paths = sorted(root.glob("exercises/*/*.ipynb"))
    return {path.parent.name: _chapter(path, root) for path in paths}


def _chapter(path: Path, root: Path) -> Chapter:
    tasks, given, lead = [], [], ""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for kind, text, mark in _pieces(cells):
        if kind == "markdown" and text.startswith("## "):
            title, _, text = text.partition("\n")
            tasks.append(Task(title[3:], lead))
            lead = ""
        elif kind == "markdown" and text.startswith("# "):
            lead = text if tasks else ""
            continue
        elif not tasks:
            given += re.findall(r"\Adef (\w+)", text)
            continue
        _add(tasks[-1], kind, text, mark)
    torch = any(c["cell_type"] == "code" and "import torch" in "".join(c["source"]) for c in cells)
    solved = tuple(task for task in tasks if task.name)
    return Chapter(path.relative_to(root), not torch, tuple(given), solved)


def _pieces(cells: list[dict]) -> Iterator[tuple[str, str, dict]]:
    """(kind, source, nbgrader's mark) of each cell, Markdown cut where a heading stands."""
    for cell in cells:
        source, mark = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
        markdown = cell["cell_type"] == "markdown" and not mark
        for text in HEADING.split(source) if markdown else [source]:
            if text.strip():
                yield cell["cell_type"], text.strip(), mark


def _add(task: Task, kind: str, text: str, mark: dict) -> None:
    if mark.get("solution") and kind == "code":
        task.name = mark["grade_id"]
    elif mark.get("grade") and kind == "code":
        task.points = mark["points"]
    elif kind == "markdown" and not mark and not text.startswith(HINT):
        if found := SECTION.search(text):
            task.section = " ".join(found[1].split())
        text = SECTION.sub("", text).replace("](../../book/", "](").strip()
        text = EMPTY.sub("| [row]{.visually-hidden} |", text)  # for those who hear the page
        (task.after if task.name else task.text).append(text)
    elif kind == "code" and not task.name:
        name = re.match(r"def (\w+)", text) if mark else None
        task.text.append(f"Given: `{name[1]}`." if name else f"```python\n{text}\n```")


def page_text(chapter: Chapter, page: str, runs: bool) -> str:
    """The section "Exercises" for the end of the chapter's page, as MyST.

    page: its text, in which the sections' labels stand. runs: can pages run Python?
    """
    notebook = f'<a href="../{chapter.path.as_posix()}" download>the notebook</a>'
    introduction = WITH_TORCH if not chapter.in_browser else HERE if runs else ELSEWHERE
    parts = ["\n", "## Exercises", introduction.format(notebook=notebook)]
    if chapter.given:
        given = ", ".join(f"`{name}`" for name in chapter.given)
        parts.append(f"Given, from earlier chapters, to be called wherever you like: {given}.")
    for task in chapter.tasks:
        if task.lead:
            parts.append(f"##{task.lead}")
        parts += [f"({task.id})=\n### {task.title}", f"*Section: {_link(task.section, page)}*"]
        parts += task.text
        joined = "\n\n".join(task.after)
        parts.append(f"````{{try-it}} {task.name}\n{joined}\n````")
    return "\n\n".join(parts) + "\n"


def _link(section: str, page: str) -> str:
    """A link to the section, if it has a label."""
    typed = section.translate(CURLY)  # the book's quotes are made curly later
    found = re.search(rf"^\(([\w-]+)\)=\n+#+ {re.escape(typed)}\s*$", page, re.M)
    return f"[{section}](#{found[1]})" if found else section
