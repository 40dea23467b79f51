"""Putting a submission's notebook back into the shape that the gradebook knows.

Students delete, copy, move and convert cells, and editors drop metadata. Before anything is
run, every cell of the assignment is found again (by nbgrader's metadata, else by its id, else
by its text), gets its metadata from the gradebook, and what is missing is put back. What was
done is written into the notebook's metadata as notes for the student. No code is run here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearHiddenTests, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

KEY = "no_peeking"


@dataclass(frozen=True)
class Known:
    """A cell of the assignment, as the gradebook has it."""

    name: str
    cell_type: str
    source: str
    metadata: dict[str, Any]

    @property
    def locked(self) -> bool:
        return self.metadata["locked"]

    @property
    def is_test(self) -> bool:
        return self.metadata["grade"] and not self.metadata["solution"]


class Restore(NbGraderPreprocessor):
    """Sanitises a submission; the last resort is a notebook that says why it is worth 0."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        known = self._known(resources["nbgrader"])
        told = resources.get(KEY) or {}
        notes, unreadable = list(told.get("notes", ())), told.get("unreadable", "")
        try:
            nb.metadata.pop(KEY, None)
            for cell in nb.cells:
                cell.metadata.pop(KEY, None)
            if not unreadable:
                notes += restore(nb, known)
        except Exception as error:
            self.log.exception("restoring the cells")
            unreadable = f"its cells make no sense ({type(error).__name__}: {error})"
        if unreadable:
            nb = new_notebook(cells=[_made(cell) for cell in known if cell.locked])
        nb.metadata[KEY] = {"notes": notes, "unreadable": unreadable}
        return nb, resources

    def _known(self, where: dict[str, str]) -> list[Known]:
        with Gradebook(where["db_url"]) as gradebook:
            found = known_cells(gradebook, where["notebook"], where["assignment"])
        order = self._order(where)
        return sorted(found, key=lambda cell: order.get(cell.name, len(order)))

    def _order(self, where: dict[str, str]) -> dict[str, int]:
        """The cells' places, from the released notebook: the gradebook does not keep them."""
        course = self.parent.parent.coursedir
        folder = course.format_path(course.release_directory, ".", where["assignment"])
        try:
            text = Path(folder, f"{where['notebook']}.ipynb").read_text(encoding="utf-8")
            marks = [cell["metadata"].get("nbgrader", {}) for cell in json.loads(text)["cells"]]
        except (OSError, ValueError, KeyError):
            self.log.warning("%s holds no released notebook: missing cells go to the end", folder)
            return {}
        return {mark.get("grade_id"): index for index, mark in enumerate(marks)}


class HideTests(ClearHiddenTests):
    """Takes the hidden lines out of the test cells once the gradebook's text has been put in.

    The judge reads them from the gradebook. So they are neither in the kernel's folder nor on
    the feedback page.
    """

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        if is_grade(cell) and not is_solution(cell):
            self._remove_hidden_test_region(cell)
        return cell, resources


def known_cells(gradebook: Gradebook, notebook: str, assignment: str) -> list[Known]:
    """The cells of an assignment's notebook, from the gradebook, in no special order."""
    found = gradebook.find_notebook(notebook, assignment)
    points = {cell.name: float(cell.max_score) for cell in [*found.grade_cells, *found.task_cells]}
    grades = {cell.name for cell in found.grade_cells}
    answers = {cell.name for cell in found.solution_cells}
    tasks = {cell.name for cell in found.task_cells}
    known = []
    for cell in found.source_cells:
        metadata = {
            "grade_id": cell.name,
            "grade": cell.name in grades,
            "solution": cell.name in answers,
            "task": cell.name in tasks,
            "locked": bool(cell.locked),
            "schema_version": 3,
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
        }
        if cell.name in points:
            metadata["points"] = points[cell.name]
        known.append(Known(cell.name, cell.cell_type, cell.source, metadata))
    return known


def restore(nb: Any, known: list[Known]) -> list[str]:
    """Give the notebook its cells back, in place; what was done, in sentences."""
    notes: list[str] = []
    copies = _recognised(nb, {cell.name: cell for cell in known}, notes)
    for cell in known:
        if len(copies.get(cell.name, ())) > 1:
            notes.append(f"The cell “{cell.name}” is there more than once; all were run, in order.")
        for index, copy in enumerate(reversed(copies.get(cell.name, ()))):
            if index:
                copy.metadata.pop("nbgrader", None)
                continue
            written = _mark(copy, cell, notes)
            if written:
                # An import added to the first cell, a helper put beside a test: it ran for the
                # student, so it runs here, before a test and after any other cell.
                place = _places(nb, [copy])[0] + (0 if cell.is_test else 1)
                nb.cells.insert(place, new_code_cell(written))
    for cell in known:
        if cell.name not in copies and cell.locked:
            _put_back(nb, cell, known, copies, notes)
    for cell in known:
        if cell.is_test:
            _behind_its_answer(nb, cell, known, copies, notes)
    return notes


def _recognised(nb: Any, known: dict[str, Known], notes: list[str]) -> dict[str, list[Any]]:
    """{name: the cells of the notebook that are this one}, each in the notebook's order."""
    visible = {_visible(cell.source): name for name, cell in known.items() if cell.is_test}
    named = {_own_name(cell) for cell in nb.cells}
    found: dict[str, list[Any]] = {}
    for cell in nb.cells:
        name = _own_name(cell)
        if name not in known:
            cell.metadata.pop("nbgrader", None)
            guess = cell.id if cell.id in known else visible.get(cell.source.strip())
            name = guess if guess not in named else None
        if name is not None:
            found.setdefault(name, []).append(cell)
    if lost := [name for name in found if name not in named]:
        notes.append(f"nbgrader's marks were missing; found again: {', '.join(sorted(lost))}.")
    return found


def _own_name(cell: Any) -> str | None:
    mark = cell.metadata.get("nbgrader")
    name = mark.get("grade_id") if isinstance(mark, dict) else None
    return name if isinstance(name, str) else None


def _visible(source: str) -> str:
    """A test cell as students get it."""
    lines, hidden = [], False
    for line in source.split("\n"):
        hidden = hidden or "BEGIN HIDDEN TESTS" in line
        if not hidden:
            lines.append(line)
        hidden = hidden and "END HIDDEN TESTS" not in line
    return "\n".join(lines).strip()


def _mark(cell: Any, known: Known, notes: list[str]) -> str:
    """Metadata, kind and, where it is locked, text as the gradebook has them.

    Returns what a student has written into a locked code cell, "" if nothing.
    """
    written = ""
    if cell.cell_type != known.cell_type:
        notes.append(f"The cell “{known.name}” is {known.cell_type} again, not {cell.cell_type}.")
        _convert(cell, known.cell_type)
    if known.locked:
        if cell.source.strip() not in (known.source.strip(), _visible(known.source)):
            notes.append(
                f"You changed the locked cell “{known.name}”: the original was used, and yours was "
                "run beside it."
            )
            written = cell.source if known.cell_type == "code" else ""
        cell.source = known.source
    cell.metadata["nbgrader"] = dict(known.metadata)
    return written


def _convert(cell: Any, cell_type: str) -> None:
    cell.cell_type = cell_type
    cell.pop("attachments", None)
    if cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def _made(known: Known) -> Any:
    new = new_code_cell if known.cell_type == "code" else new_markdown_cell
    return new(known.source, metadata={"nbgrader": dict(known.metadata)})


def _put_back(nb, cell: Known, known: list[Known], copies: dict, notes: list[str]) -> None:
    """A test goes behind the answer that it tests, another locked cell before what follows it."""
    made, place = _made(cell), known.index(cell)
    if cell.is_test:
        before = _places(nb, copies.get(known[place - 1].name, ()) if place else ())
        # Without the answer's cell, at the end: wherever the function is, it is defined there.
        index = max(before) + 1 if before else len(nb.cells)
    else:
        after = _places(nb, (c for k in known[place + 1 :] for c in copies.get(k.name, ())))
        index = min(after, default=0)
    nb.cells.insert(index, made)
    copies[cell.name] = [made]
    notes.append(f"The cell “{cell.name}” was missing and has been put back.")


def _behind_its_answer(nb, cell: Known, known: list[Known], copies: dict, notes: list[str]) -> None:
    """Move a test down if it stands above every copy of the answer that it tests."""
    place = known.index(cell)
    answers = _places(nb, copies.get(known[place - 1].name, ()) if place else ())
    test = copies[cell.name][-1]
    (here,) = _places(nb, [test])
    if not answers or not known[place - 1].metadata["solution"] or min(answers) < here:
        return
    nb.cells.insert(min(answers) + 1, test)
    del nb.cells[here]
    notes.append(f"The cell “{cell.name}” stood above its answer and has been moved below.")


def _places(nb: Any, cells: Iterable[Any]) -> list[int]:
    wanted = {id(cell) for cell in cells}
    return [index for index, cell in enumerate(nb.cells) if id(cell) in wanted]
