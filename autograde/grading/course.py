"""A course's folder: its settings, its gradebook, its assignments and what was handed in."""

from __future__ import annotations

import ast
import contextlib
import glob
import hashlib
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from traitlets.config import ConfigFileNotFound, PyFileConfigLoader

from autograde.build import BuildError, build
from autograde.exercise import exercises_of
from autograde.grading.accidents import GradingError, opened, shown
from autograde.grading.staging import Submission

try:
    import fcntl
except ImportError:  # Windows, where nothing keeps a second run out
    fcntl = None

# All modules that no verdict depends on: a change of any other means grading again.
ASIDE = {
    "accidents",
    "archives",
    "build",
    "classpage",
    "classreport",
    "cli",
    "collect",
    "doctor",
    "exports",
    "figures",
    "gather",
    "gradesheet",
    "host",
    "instructor",
    "roster",
    "runner",
    "sample_class",
    "sheet",
    "standalone",
    "standing",
    "whose",
}


class Course:
    """A course's folder, with nbgrader's configuration for it.

    sandboxed: None leaves it to the configuration.
    """

    def __init__(self, root: Path, sandboxed: bool | None = None):
        self.root = root
        try:
            self.config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        except ConfigFileNotFound:
            raise GradingError(
                f"{root}: nbgrader_config.py is missing; is this the course's folder?"
            ) from None
        if sandboxed is not None:
            self.config.Judge.sandboxed = sandboxed
        self.sandboxed = bool(self.config.Judge.get("sandboxed", True))
        self.directory = self.for_student("*", "")

    def for_student(self, student: str, assignment: str, **more: str) -> CourseDirectory:
        given = {"student_id": glob.escape(student) if student != "*" else "*"}
        given |= {"assignment_id": assignment, "root": str(self.root), **more}
        return CourseDirectory(config=self.config, **given)

    def folder(self, step: str) -> Path:
        return self.root / getattr(self.directory, f"{step}_directory")

    @property
    def database(self) -> str:
        """The gradebook's URL, without the password in it."""
        return shown(str(self.directory.db_url))

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Gradebook]:
        """The gradebook, open. `GradingError` says what keeps it from being used."""
        url = str(self.directory.db_url)
        with opened(url, self.directory.course_id, self.root) as gradebook:
            yield gradebook

    def register(self, assignment: str) -> None:
        """See to it that the gradebook knows the assignment."""
        with self.gradebook() as gradebook:
            try:
                if gradebook.find_assignment(assignment).notebooks:
                    return
            except MissingEntry:
                pass
        try:
            build(self.root, [assignment])
        except BuildError as error:
            raise GradingError(f"{assignment} could not be built: {error}") from None

    def fingerprint(self, assignment: str) -> str:
        """A hash of all that a verdict depends on, but for the submission."""
        total = hashlib.sha256()
        with self.gradebook() as gradebook:
            for notebook in gradebook.find_assignment(assignment).notebooks:
                for cell in sorted(notebook.source_cells, key=lambda cell: cell.name):
                    total.update(repr((notebook.name, cell.name, cell.source)).encode())
                for cell in sorted(notebook.grade_cells, key=lambda cell: cell.name):
                    total.update(repr((cell.name, cell.max_score)).encode())
        for section in ("Judge", "Execute", "SandboxProvisioner"):
            total.update(repr(sorted(self.config.get(section, {}).items())).encode())
        here = Path(__file__).parents[1]
        parts = ("*.py", "diagnosis/*.py", "grading/**/*.py")
        modules = sorted(path for part in parts for path in here.glob(part))
        modules = [path for path in modules if path.stem not in ASIDE]
        if exercises := exercises_of(assignment):
            name = exercises[0].module
            parts = ("claims", "reference", "misconceptions")
            modules += sorted(_with_imports({here / part / f"{name}.py" for part in parts}))
        for path in modules:
            total.update(path.read_bytes())
        return total.hexdigest()


def _with_imports(paths: set[Path]) -> set[Path]:
    """Those modules of a chapter, and what they import of claims, references and the decoder."""
    package, found, coming = Path(__file__).parents[1], set(), set(paths)
    while coming:
        found.add(path := coming.pop())
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("autograde."):
                place = package.joinpath(*node.module.split(".")[1:])
                files = {place.with_suffix(".py"), *(place / f"{n.name}.py" for n in node.names)}
                coming |= {f for f in files if f.exists() and f.parent != package} - found
    return found


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Keep a second run out of the folder while this one is at work."""
    with (root / ".grading.lock").open("w") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise GradingError(
                    f"another run is grading in {root}; wait for it, or stop it"
                ) from None
        yield


def missing_from(course: Course, assignment: str) -> list[str]:
    """Students who have a folder, but no work for this assignment in it."""
    folders = [path for path in course.folder("submitted").glob("[!.]*") if path.is_dir()]
    return sorted(path.name for path in folders if not (path / assignment).is_dir())


def submissions_of(course: Course, assignment: str, students: list[str] | None) -> list[Submission]:
    """What is to be graded, or the error that says what is missing."""
    sources = course.folder("source")
    known = sorted(path.name for path in sources.glob("*") if path.is_dir())
    if assignment not in known:
        there = ", ".join(known) or "none"
        raise GradingError(
            f"there is no assignment {assignment!r}; in {sources} there are: {there}"
        )
    submitted = course.folder("submitted")
    if not submitted.is_dir():
        raise GradingError(
            f"there is no folder {submitted}; put what students hand in into "
            f"submitted/<student>/{assignment}/"
        )
    found = {
        folder.parent.name: Submission(folder.parent.name, assignment, folder)
        for folder in sorted(submitted.glob(f"*/{glob.escape(assignment)}"))
        if folder.is_dir() and not folder.parent.name.startswith(".")
    }
    if missing := [name for name in students or [] if name not in found]:
        raise GradingError(
            f"nothing of {assignment} was handed in by {', '.join(missing)}; "
            f"in {submitted} there is work of {', '.join(found) or 'nobody'}"
        )
    if not found:
        raise GradingError(
            f"nobody has handed in {assignment}: {submitted}/*/{assignment} is empty"
        )
    return [found[name] for name in dict.fromkeys(students or found)]
