"""From text to notebooks: solutions/NN-topic/topic.md -> topic.ipynb -> exercises/.

The text (see `autograde.sheet`) becomes a notebook with solutions and hidden tests, and nbgrader
makes the students' notebook from it. Both are committed, hold no outputs, and come out the same,
byte for byte, each time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from autograde.repository import Repository, repository_of
from autograde.sheet import BuildError, at, notebook

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from traitlets.config import Config

__all__ = ["BuildError", "build"]

INSTALL = """\
# Installs the course's package where it is missing, as on Colab. Then go on with the next cell.
try:
    import autograde
except ImportError:
"""


def build(root: Path, chapters: list[str] | None = None) -> list[Path]:
    """Build the notebooks of these chapters, or of all, and enter them in the gradebook.

    Parameters
    ----------
    root: the course's folder, which holds solutions/ and nbgrader_config.py.
    chapters: names such as "03-causal-mask"; None means every folder in solutions/.

    Returns
    -------
    the notebooks that are new or have changed.

    Raises
    ------
    BuildError: then no notebook has been touched.
    """
    root = Path(root).resolve()
    sources, repository = _sources(root, chapters), _repository(root)
    with tempfile.TemporaryDirectory(prefix="no-peeking-") as folder:
        work = Path(folder).resolve()
        for source in sources:
            with at(source.relative_to(root).as_posix()):
                target = work / source.relative_to(root).with_suffix(".ipynb")
                target.parent.mkdir(parents=True)
                made = notebook(source.read_text(encoding="utf-8"), source.parent.name)
                _install(made, repository)
                _write(made, target)
        _release(root, work, [source.parent.name for source in sources])
        return _replace(root, work)


def _sources(root: Path, names: list[str] | None) -> list[Path]:
    """The text files to build, one for each chapter."""
    folder = root / "solutions"
    there = sorted(path.name for path in folder.glob("*") if path.is_dir())
    if not there:
        raise BuildError(f"{folder}: no chapter there; is this the course's folder?")
    wanted = list(dict.fromkeys(there if names is None else names))
    for name in wanted:
        if name not in there:
            raise BuildError(f"no chapter is called {name!r}; the chapters are {', '.join(there)}")
    sources = [folder / name / f"{name.partition('-')[2]}.md" for name in wanted]
    for source in sources:
        if not source.is_file():
            raise BuildError(f"{source.relative_to(root).as_posix()}: this file is missing")
    return sources


def _repository(root: Path) -> Repository | None:
    try:
        return repository_of(root)
    except ValueError as error:
        raise BuildError(str(error)) from None


def _install(made: NotebookNode, repository: Repository | None) -> None:
    """Let a notebook that is opened elsewhere, as on Colab, get the course's package by itself."""
    from nbformat.v4 import new_code_cell

    if repository is None:
        return
    first = next(i for i, cell in enumerate(made.cells) if cell.cell_type == "code")
    torch = "torch" if "import torch" in made.cells[first].source else ""
    source = f'{INSTALL}    %pip install --quiet "{repository.requirement(torch)}"'
    made.cells.insert(first, new_code_cell(source, id="install"))


def _write(built: NotebookNode, path: Path) -> None:
    import nbformat

    nbformat.validate(built)
    path.write_bytes(nbformat.writes(built).rstrip("\n").encode() + b"\n")


def _release(root: Path, work: Path, names: list[str]) -> None:
    """Let nbgrader make the students' notebooks, in `work`, and write the gradebook."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    from autograde.grading.accidents import GradingError, opened

    config = _config(root)
    course = CourseDirectory(config=config, root=str(root))
    course.db_url, course.root = str(course.db_url), str(work)  # the gradebook stays in root
    with scripts_on_path():
        try:
            with opened(course.db_url, course.course_id):
                pass  # nbgrader's account of a database that is down has a hundred lines
        except GradingError as error:
            raise BuildError(str(error)) from None
        for name in names:
            course.assignment_id = name
            result = capture_log(GenerateAssignment(coursedir=course, config=config, force=True))
            if not result["success"]:
                raise BuildError(f"{name}: nbgrader could not make the exercises.\n{_told(result)}")


def _config(root: Path) -> Config:
    from traitlets.config import ConfigFileNotFound, PyFileConfigLoader

    try:
        return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    except ConfigFileNotFound:
        raise BuildError(f"{root}: nbgrader_config.py is missing") from None


def _told(result: dict[str, str]) -> str:
    """nbgrader's own account, with what to do about the one that instructors will meet."""
    text = result.get("log", "") + result.get("error", "")
    if "there are submissions associated" in text:
        return (
            "Work has been handed in for this assignment, and its cells can no longer be added "
            "or removed. Undo that change, or start a new gradebook for a new class."
        )
    return text.strip()


@contextlib.contextmanager
def scripts_on_path() -> Iterator[None]:
    """nbgrader runs `alembic` for a new gradebook, which lies beside this Python."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _replace(root: Path, work: Path) -> list[Path]:
    """Move what has changed into place; each file is the old one or the new one, never half."""
    waiting = []
    for path in sorted(work.glob("*/*/*.ipynb")):
        target = root / path.relative_to(work)
        new = path.read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n"
        if not target.is_file() or target.read_bytes() != new:
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(f".{target.name}.tmp")
            beside.write_bytes(new)
            waiting.append((beside, target))
    for beside, target in waiting:  # only now that all of them are on this disk
        os.replace(beside, target)
    return [target for _, target in waiting]
