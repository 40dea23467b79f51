"""An exercise sheet: the text that people edit, and the notebook that it describes.

The text is a MyST notebook. In its code cells' options stand the course's own words:

    :exercise: causal_mask     (empty cell) the function to write, then the cell that tests it
    :given: softmax            (empty cell) a function of the course, to use and not to change
    :written: essay            (with `:points: 3`) an answer in words, graded by a person;
                               the cell holds the model answer

In the text between, `{number:causal_mask}`, `{points:causal_mask}`, `{section:causal_mask}`
and `{points:total}` are filled in. The first code cell sets the notebook up, and is locked.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from autograde.exercise import Exercise, exercises_of, find

if TYPE_CHECKING:
    from nbformat import NotebookNode

SETUP = "from __future__ import annotations"  # the signatures' shapes are not to be evaluated
KINDS = ("exercise", "given", "written")
OPTIONS = {*KINDS, "points", "tags"}
PLACEHOLDER = re.compile(r"\{(number|points|section):([\w-]+)\}")
STUB = "YOUR ANSWER HERE"
# Fixed, so that every version of Python builds the same bytes.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


class BuildError(Exception):
    """What is wrong with an exercise's text, where, and what to do about it."""


def notebook(text: str, chapter: str) -> NotebookNode:
    """The notebook, with solutions and hidden tests, that the text of a chapter describes."""
    from nbformat.v4 import new_notebook

    cells, points = [], {}
    for line, cell in _cells(text):
        with at(f"line {line}"):
            made = _expand(cell, chapter, first=all(c.cell_type != "code" for c in cells))
            _reserve(made, cells, points)
            cells += made
    missing = [e.name for e in exercises_of(chapter) if e.name not in points]
    if missing:
        raise BuildError(
            f"no cell for {', '.join(missing)}, which the claims of {chapter} examine; add an "
            f"empty code cell with the option `:exercise: {missing[0]}`"
        )
    there = [name for name in points if name in {e.name for e in exercises_of(chapter)}]
    if there != [e.name for e in exercises_of(chapter)]:
        raise BuildError(
            f"the exercises stand in the order {', '.join(there)}; the claims of {chapter} have "
            f"them in the order {', '.join(e.name for e in exercises_of(chapter))}; let both agree"
        )
    for cell in cells:
        if cell.cell_type == "markdown" and "nbgrader" not in cell.metadata:
            cell.source = PLACEHOLDER.sub(_filler(chapter, points), cell.source)
    _name(cells)
    return new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5)


def _cells(text: str) -> Iterator[tuple[int, NotebookNode]]:
    """The cells of a MyST notebook, each with the line on which it starts."""
    from jupytext.myst import MystMetadataParsingError, myst_to_notebook

    try:
        parsed = myst_to_notebook(text, add_source_map=True)
    except MystMetadataParsingError as error:
        raise BuildError(f"this is no MyST notebook: {error}") from None
    return zip(parsed.metadata.source_map, parsed.cells, strict=True)


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
    """Say where it was that something was wrong."""
    try:
        yield
    except BuildError as error:
        raise BuildError(f"{place}: {error}") from None


def _filler(chapter: str, points: dict[str, int]) -> Callable[[re.Match], str]:
    """Replace a placeholder by what it stands for."""

    def fill(match: re.Match) -> str:
        what, name = match.groups()
        if (what, name) == ("points", "total"):
            return _points(sum(points.values()))
        if name not in points:
            raise BuildError(
                f"{match[0]} stands in the text, and nothing here is called {name!r}; "
                f"what has a cell is {', '.join(points)}"
            )
        if what == "section":
            return _known(name).read[1]
        number = f"{int(chapter.partition('-')[0])}.{list(points).index(name) + 1}"
        return number if what == "number" else _points(points[name])

    return fill


def _points(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"


# The cells ------------------------------------------------------------------------------


def _expand(cell: NotebookNode, chapter: str, first: bool) -> list[NotebookNode]:
    """The notebook's cells for one cell of the text."""
    unknown = set(cell.metadata) - OPTIONS
    if unknown:
        known = ", ".join(sorted(OPTIONS))
        raise BuildError(f"the option `{min(unknown)}` is not known; known are {known}")
    kinds = [kind for kind in KINDS if kind in cell.metadata]
    if cell.cell_type == "code" and first:
        return [_setup(cell)]
    if not kinds:
        return [cell]
    if len(kinds) > 1:
        raise BuildError(f"`{kinds[0]}` and `{kinds[1]}` in one cell; make two cells of it")
    name, options = str(cell.metadata[kinds[0]]), cell.metadata
    if kinds == ["written"]:
        return [_written(name, options.get("points"), cell.source)]
    if "points" in options:
        raise BuildError(f"the points of `{name}` are those of its claims; remove `:points:`")
    if cell.source.strip():
        raise BuildError(
            f"the cell of `{name}` has a body; empty it: the source comes from the course"
        )
    return _exercise(name, chapter) if kinds == ["exercise"] else [_given(name)]


def _setup(cell: NotebookNode) -> NotebookNode:
    if not cell.source.startswith(SETUP):
        raise BuildError(f"the first code cell sets the notebook up; begin it with `{SETUP}`")
    return _graded("code", cell.source, "setup", locked=True)


def _exercise(name: str, chapter: str) -> list[NotebookNode]:
    exercise = _known(name)
    if exercise.chapter != chapter:
        raise BuildError(
            f"`{name}` is an exercise of {exercise.chapter}, not of {chapter}; "
            f"to show its source, write `:given: {name}`"
        )
    answer = _graded("code", _with_markers(exercise.reference), name, solution=True)
    if exercise.broken:
        answer.metadata["starter"] = _starter(exercise)  # see autograde.grading.plugin
    test = f"check({name})\n### BEGIN HIDDEN TESTS\ngrade({name})\n### END HIDDEN TESTS"
    test = _graded("code", test, f"test_{name}", grade=True, locked=True, points=exercise.points)
    test.metadata["tags"] = ["raises-exception"]  # "Run all" goes on after a failed check
    return [answer, test]


def _starter(exercise: Exercise) -> str:
    """The source that students are to mend; only its body may differ from the right one."""
    broken, right = exercise.broken, exercise.reference
    for what, look in (("name", lambda f: f.__name__), ("signature", inspect.signature),
                       ("docstring", inspect.getdoc)):  # fmt: skip
        if look(broken) != look(right):
            raise BuildError(
                f"the broken `{broken.__name__}` has another {what} than the reference; "
                "students are to mend its body alone, so let both agree"
            )
    return inspect.getsource(broken).rstrip()


def _given(name: str) -> NotebookNode:
    source = inspect.getsource(_known(name).reference).rstrip()
    return _graded("code", source, f"given_{name}", locked=True)


def _written(name: str, points: Any, model_answer: str) -> NotebookNode:
    if not isinstance(points, int) or points < 1:
        raise BuildError(f"the written answer `{name}` needs its points, as in `:points: 3`")
    source = model_answer.strip() or STUB
    return _graded("markdown", source, name, grade=True, solution=True, points=points)


def _known(name: str) -> Exercise:
    try:
        return find(name)
    except LookupError as error:
        raise BuildError(f"{error.args[0]}; correct the name, or write its claims first") from None


def _with_markers(function: Any) -> str:
    """The function's source, its body between nbgrader's marks; signature and docstring stay."""
    source = inspect.getsource(function).rstrip()
    lines, body = source.split("\n"), ast.parse(source).body[0].body
    if not function.__doc__ or len(body) == 1:
        raise BuildError(
            f"the reference `{function.__name__}` needs a docstring, and a body after it"
        )
    start, indent = body[0].end_lineno, " " * body[1].col_offset
    begin, end = f"{indent}### BEGIN SOLUTION", f"{indent}### END SOLUTION"
    return "\n".join([*lines[:start], begin, *lines[start:], end])


def _graded(cell_type: str, source: str, grade_id: str, **flags: Any) -> NotebookNode:
    """A cell that nbgrader knows, with its id for the cell's."""
    from nbformat.v4 import new_code_cell, new_markdown_cell

    known = {"grade": False, "locked": False, "solution": False, "task": False, **flags}
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", grade_id):
        raise BuildError(f"{grade_id!r} is no name for a cell; use letters, digits, - and _")
    new = new_code_cell if cell_type == "code" else new_markdown_cell
    data = {"grade_id": grade_id, "schema_version": 3, **known}
    return new(source, id=grade_id, metadata={"nbgrader": data})


def _reserve(made: list[NotebookNode], cells: list[NotebookNode], points: dict[str, int]) -> None:
    """Note what the new cells are worth; no name may be used twice."""
    used = {cell.metadata.nbgrader.grade_id for cell in cells if "nbgrader" in cell.metadata}
    for cell in made:
        data = cell.metadata.get("nbgrader", {})
        if data.get("grade_id") in used:
            raise BuildError(
                f"`{data['grade_id']}` is there already; every cell needs its own name"
            )
        if data.get("grade"):
            points[data["grade_id"].removeprefix("test_")] = data["points"]


def _name(cells: list[NotebookNode]) -> None:
    """Ids for the other cells: they follow the content, so that a new cell renames no other."""
    used = {cell.metadata.nbgrader.grade_id for cell in cells if "nbgrader" in cell.metadata}
    for cell in cells:
        if "nbgrader" in cell.metadata:
            continue
        digest, again = hashlib.sha256(cell.source.encode()).hexdigest()[:8], 0
        while (name := f"{cell.cell_type}-{digest}" + f"-{again}" * bool(again)) in used:
            again += 1
        cell.id = name
        used.add(name)
