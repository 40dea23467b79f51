"""The exercise notebooks: rebuilt from the text to the same bytes, and giving nothing away."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from pathlib import Path

import nbformat
import numpy as np
import pytest

pytest.importorskip("nbgrader")

from autograde.build import BuildError, build
from autograde.checking import GRADE_SEEDS
from autograde.examination import examine, local
from autograde.exercise import chapters, exercises, find

# nbgrader's own use of SQLAlchemy, when a submission is added.
pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted")
ROOT = Path(__file__).resolve().parent.parent
BUILT = sorted(path.parent.name for path in ROOT.glob("solutions/*/*.md"))

SHEET = textwrap.dedent(
    """\
    ---
    kernelspec: {display_name: Python 3, language: python, name: python3}
    ---

    # A sheet of {points:total}

    ```{code-cell} ipython3
    from __future__ import annotations
    import numpy as np
    ```

    ## {number:essay} In words ({points:essay})

    ```{code-cell} ipython3
    :given: causal_mask
    ```

    ```{code-cell} ipython3
    :written: essay
    :points: 3

    The model answer: no peeking.
    ```
    """
)


def copy_of_course(folder: Path) -> Path:
    for name in ("solutions", "exercises"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("nbgrader_config.py", "_config.yml"):  # which may name a repository
        shutil.copy(ROOT / name, folder)
    return folder


def small_course(folder: Path, text: str, chapter: str = "02-demo") -> Path:
    (folder / "solutions" / chapter).mkdir(parents=True, exist_ok=True)
    (folder / "solutions" / chapter / f"{chapter[3:]}.md").write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small course, built, with its gradebook. Copy it before you change it."""
    root = small_course(tmp_path_factory.mktemp("built"), SHEET)
    build(root)
    return root


def notebooks(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.ipynb")}


def read(kind: str, chapter: str, root: Path = ROOT) -> nbformat.NotebookNode:
    return nbformat.read(root / kind / chapter / f"{chapter[3:]}.ipynb", as_version=4)


# What may not be found in a notebook: each of these gives a list of findings ------------------


def remains(notebook) -> list[str]:
    """Traces of a run, or of a person's editor."""
    found = [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("attachments")]
    found += [cell.id for cell in notebook.cells if cell.get("execution_count") is not None]
    return found + sorted(set(notebook.metadata) - {"kernelspec", "language_info"})


def body(exercise) -> set[str]:
    """The lines that answer an exercise: those of its reference that no student sees."""
    source = inspect.getsource(exercise.reference)
    visible, _, answer = source.rpartition('"""')
    visible += inspect.getsource(exercise.broken) if exercise.broken else ""
    lines = {line.strip() for line in answer.splitlines() if len(line.strip()) > 7}
    return {line for line in lines if line not in visible}


def given_away(notebook, exercises) -> list[str]:
    """Lines of solutions and of hidden tests that a student could read."""
    secrets = {"BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "grade("}
    secrets = secrets.union(*map(body, exercises))
    return sorted(s for s in secrets for cell in notebook.cells if s in cell.source)


def strangers(folder: Path) -> list[str]:
    """Files in the students' folder that are not its notebooks."""
    expected = {f"{name}/{name[3:]}.ipynb" for name in BUILT}
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    return sorted(there ^ expected)


def misgraded(notebook, exercises) -> list[str]:
    """Exercises that do not have exactly one answer cell and one test cell with their points."""
    graded = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    found = []
    for exercise in exercises:
        answers = [c for c in graded if c.metadata.nbgrader.grade_id == exercise.name]
        tests = [c for c in graded if c.source.startswith(f"check({exercise.name})")]
        points = [c.metadata.nbgrader.points for c in tests if c.metadata.nbgrader.grade]
        solved = [c.metadata.nbgrader.solution for c in answers]
        if solved != [True] or points != [exercise.points]:
            found.append(exercise.name)
    return found


@pytest.mark.parametrize("chapter", BUILT)
def test_students_notebook_is_clean(chapter):
    notebook, exercises = read("exercises", chapter), chapters()[chapter]
    assert remains(notebook) == []
    assert given_away(notebook, exercises) == []
    assert misgraded(notebook, exercises) == []
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("locked"):
            assert cell.metadata.editable is False
            assert cell.metadata.deletable is False
    assert strangers(ROOT / "exercises") == []


@pytest.mark.parametrize("chapter", BUILT)
def test_solved_notebook_is_clean(chapter):
    notebook = read("solutions", chapter)
    assert remains(notebook) == []
    assert misgraded(notebook, chapters()[chapter]) == []
    assert given_away(notebook, chapters()[chapter])  # it does hold the answers


def test_output_is_found():
    notebook = read("exercises", "03-causal-mask")
    cell = next(cell for cell in notebook.cells if cell.id == "test_causal_mask")
    cell.outputs = [nbformat.v4.new_output("stream", text="4 points")]
    assert remains(notebook) == ["test_causal_mask"]
    cell.outputs, cell.execution_count = [], 3
    assert remains(notebook) == ["test_causal_mask"]
    notebook.metadata["widgets"], cell.execution_count = {}, None
    assert remains(notebook) == ["widgets"]


@pytest.mark.parametrize("line", ["    ### END SOLUTION", "grade(dog_by_hand)"])
def test_answer_is_found(line):
    notebook, exercises = read("exercises", "03-causal-mask"), chapters()["03-causal-mask"]
    notebook.cells[-1].source += f"\n{line}"
    assert given_away(notebook, exercises)


@pytest.mark.parametrize("exercise", chapters()["03-causal-mask"], ids=lambda e: e.name)
def test_every_line_of_a_body_is_found(exercise):
    assert body(exercise)
    for line in body(exercise):
        notebook = read("exercises", "03-causal-mask")
        notebook.cells[-1].source += f"\nSo {line}  # as in the book"
        assert line in given_away(notebook, [exercise])


def test_companion_file_is_found(tmp_path):
    shutil.copytree(ROOT / "exercises", tmp_path / "exercises")
    (tmp_path / "exercises" / BUILT[0] / "notes.md").touch()
    assert strangers(tmp_path / "exercises") == [f"{BUILT[0]}/notes.md"]


@pytest.mark.parametrize("damage", ["twice", "gone", "points", "unmarked"])
def test_wrong_grading_is_found(damage):
    notebook, exercises = read("exercises", "03-causal-mask"), chapters()["03-causal-mask"]
    cell = next(cell for cell in notebook.cells if cell.id == "test_padding_mask")
    if damage == "twice":
        notebook.cells.append(cell)
    if damage == "gone":
        notebook.cells.remove(cell)
    if damage == "points":
        cell.metadata.nbgrader.points += 1
    if damage == "unmarked":
        next(c for c in notebook.cells if c.id == "padding_mask").metadata.nbgrader.solution = False
    assert misgraded(notebook, exercises) == ["padding_mask"]


# Building ---------------------------------------------------------------------------------------


def test_every_chapter_with_claims_has_an_exercise_text():
    assert set(chapters()) <= {path.name for path in (ROOT / "solutions").iterdir()}


def test_rebuilding_changes_nothing(tmp_path):
    root = copy_of_course(tmp_path)
    before = notebooks(root)
    assert before
    for _ in range(2):
        changed = [path.relative_to(root).as_posix() for path in build(root)]
        assert not changed, "these are not in step with their text: run `autograde build`, commit"
        assert notebooks(root) == before


def test_building_from_nothing_gives_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # nbgrader finds alembic all the same
    root = copy_of_course(tmp_path)
    before = notebooks(root)
    for path in before:
        (root / path).unlink()
    assert sorted(p.relative_to(root).as_posix() for p in build(root)) == sorted(before)
    assert notebooks(root) == before
    assert not list(root.rglob("*.tmp"))


def test_changed_text_changes_both_notebooks(tmp_path):
    root = copy_of_course(tmp_path)
    source = root / "solutions/03-causal-mask/causal-mask.md"
    source.write_text(source.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")
    assert [path.parent.parent.name for path in build(root)] == ["exercises", "solutions"]
    assert "One more line." in read("exercises", "03-causal-mask", root).cells[-1].source


def test_only_the_chapters_asked_for(tmp_path):
    root = small_course(copy_of_course(tmp_path), SHEET)
    assert build(root, ["03-causal-mask"]) == []
    assert len(build(root, ["02-demo"])) == 2


def test_nbgraders_own_command_copies_no_text(tmp_path):
    """As when somebody runs `nbgrader generate_assignment` in the course's folder."""
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import find_all_files
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    course = CourseDirectory(config=config, root=str(ROOT))
    (tmp_path / "answers.md").touch()
    (tmp_path / ".answers.ipynb.tmp").touch()
    (tmp_path / "data.csv").touch()
    found = find_all_files(str(tmp_path), course.ignore)
    assert [Path(path).name for path in found] == ["data.csv"]
    assert (course.source_directory, course.release_directory) == ("solutions", "exercises")


def test_given_and_written(built):
    setup, given, answer = (
        next(c for c in read("exercises", "02-demo", built).cells if c.id == name)
        for name in ("setup", "given_causal_mask", "essay")
    )
    assert given.metadata.nbgrader.locked
    assert setup.metadata.nbgrader.locked
    assert "return key <= query" in given.source  # a given function is given whole
    assert answer.cell_type == "markdown"
    assert answer.source == "YOUR ANSWER HERE"
    assert (answer.metadata.nbgrader.points, answer.metadata.nbgrader.solution) == (3, True)
    solved = read("solutions", "02-demo", built)
    assert "no peeking" in next(cell for cell in solved.cells if cell.id == "essay").source
    text = "\n".join(cell.source for cell in solved.cells)
    assert "# A sheet of 3 points" in text
    assert "## 2.1 In words (3 points)" in text


CELL = "\n```{code-cell} ipython3\n%s\n```\n"
WRONG = {
    "unknown name": (
        SHEET + CELL % ":exercise: casual_mask",
        "no exercise is called 'casual_mask'",
    ),
    "elsewhere": (SHEET + CELL % ":exercise: causal_mask", "exercise of 03-causal-mask, not of"),
    "body": (SHEET + CELL % ":given: padding_mask\n\npass", "has a body"),
    "points": (SHEET + CELL % ":given: padding_mask\n:points: 4", "those of its claims"),
    "twice": (SHEET + CELL % ":given: causal_mask", "`given_causal_mask` is there already"),
    "misspelt option": (SHEET + CELL % ":exercice: causal_mask", "option `exercice` is not known"),
    "two kinds": (SHEET + CELL % ":given: softmax\n:written: b\n:points: 1", "make two cells"),
    "no points": (SHEET + CELL % ":written: b", "needs its points"),
    "nonsense points": (SHEET + CELL % ":written: b\n:points: none", "needs its points"),
    "bad id": (SHEET + CELL % ":written: my essay\n:points: 1", "no name for a cell"),
    "no setup": (SHEET.replace("from __future__ import annotations\n", ""), "sets the notebook up"),
    "placeholder": (SHEET + "\n{points:esay}\n", "nothing here is called 'esay'"),
    "section": (SHEET + "\n{section:essay}\n", "no exercise is called 'essay'"),
    "options": (SHEET + CELL % ":tags: [a", "no MyST notebook"),
    "solution by hand": (
        SHEET + CELL % "### BEGIN SOLUTION\n1\n### END SOLUTION",
        "nbgrader could",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_text_is_refused(what, built, tmp_path):
    text, message = WRONG[what]
    root = small_course(shutil.copytree(built, tmp_path / "course"), text)
    before = notebooks(root)
    with pytest.raises(BuildError, match="02-demo") as caught:
        build(root)
    assert message in str(caught.value)
    assert notebooks(root) == before
    assert not list(root.rglob("*.tmp"))


def test_error_names_the_line(tmp_path):
    root = small_course(tmp_path, SHEET + CELL % ":exercise: casual_mask")
    line = len(SHEET.splitlines()) + 2
    with pytest.raises(BuildError, match=rf"^solutions/02-demo/demo.md: line {line}: "):
        build(root)


def test_broken_code_is_shown_to_students(monkeypatch, tmp_path):
    """Where a function is to be mended, its broken form stands in the students' cell."""

    def broken_padding_mask(lengths, n_key):
        return np.arange(n_key) <= np.asarray(lengths)[:, None, None]

    exercise = find("padding_mask")
    monkeypatch.setattr(exercise, "broken", broken_padding_mask)
    root = copy_of_course(tmp_path)
    with pytest.raises(BuildError, match="has another name than the reference"):
        build(root, ["03-causal-mask"])
    broken_padding_mask.__name__ = "padding_mask"
    broken_padding_mask.__signature__ = inspect.signature(exercise.reference)
    broken_padding_mask.__doc__ = exercise.reference.__doc__
    build(root, ["03-causal-mask"])
    for kind, line in (("exercises", "<= np.asarray"), ("solutions", "< np.asarray")):
        cells = read(kind, "03-causal-mask", root).cells
        (cell,) = [cell for cell in cells if cell.id == "padding_mask"]
        assert line in cell.source
        assert ("starter" in cell.metadata) == (kind == "solutions")


def test_one_bad_chapter_leaves_the_others_as_they_were(tmp_path):
    root = copy_of_course(tmp_path)
    source = root / "solutions/03-causal-mask/causal-mask.md"
    source.write_text(source.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")
    small_course(root, SHEET + CELL % ":written: b", "04-bad")
    before = notebooks(root)
    with pytest.raises(BuildError, match="needs its points"):
        build(root)
    assert notebooks(root) == before


def test_missing_exercise_is_refused(tmp_path):
    root = copy_of_course(tmp_path)
    source = root / "solutions/03-causal-mask/causal-mask.md"
    text = source.read_text(encoding="utf-8").replace(":exercise: padding_mask\n", "")
    source.write_text(text, encoding="utf-8")
    with pytest.raises(BuildError, match="no cell for padding_mask"):
        build(root)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(BuildError, match="no chapter there"):
        build(tmp_path)
    root = small_course(tmp_path, SHEET)
    with pytest.raises(BuildError, match="'99-x'; the chapters are 02-demo"):
        build(root, ["99-x"])
    (root / "nbgrader_config.py").unlink()
    with pytest.raises(BuildError, match=r"nbgrader_config\.py is missing"):
        build(root)
    (root / "solutions/02-demo/demo.md").unlink()
    with pytest.raises(BuildError, match=r"demo\.md: this file is missing"):
        build(root)


# The gradebook ----------------------------------------------------------------------------------


@pytest.fixture
def graded_course(built, tmp_path):
    """A course whose one student has 2 of 3 points for the essay."""
    from nbgrader.api import Gradebook

    root = shutil.copytree(built, tmp_path / "course")
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission("02-demo", "ada")
        gradebook.find_grade("essay", "demo", "02-demo", "ada").manual_score = 2
        gradebook.db.commit()
    return root


def essay(root):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        grade = gradebook.find_grade("essay", "demo", "02-demo", "ada")
        return grade.manual_score, grade.max_score


def test_new_points_reach_the_gradebook_and_grades_stay(graded_course):
    assert essay(graded_course) == (2, 3)
    small_course(graded_course, SHEET.replace(":points: 3", ":points: 5"))
    assert len(build(graded_course)) == 2
    assert essay(graded_course) == (2, 5)


def test_new_cell_after_handing_in_is_refused(graded_course):
    before = notebooks(graded_course)
    small_course(graded_course, SHEET + CELL % ":given: padding_mask")
    with pytest.raises(BuildError, match="Work has been handed in"):
        build(graded_course)
    assert notebooks(graded_course) == before
    assert essay(graded_course) == (2, 3)


# Running ----------------------------------------------------------------------------------------


def errors(kind: str, chapter: str) -> list[tuple[str, str]]:
    """(cell, what it raised) for each error when all cells are run, as a person would run them."""
    from nbclient import NotebookClient

    notebook = read(kind, chapter)
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    assert all(c.execution_count for c in notebook.cells if c.cell_type == "code" and c.source)
    return [
        (cell.id, f"{output.ename}: {output.evalue}")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


@pytest.mark.parametrize("chapter", BUILT)
def test_solved_notebook_runs(chapter):
    assert errors("solutions", chapter) == []


@pytest.mark.parametrize("chapter", BUILT)
def test_untouched_notebook_runs_to_its_end(chapter):
    found = errors("exercises", chapter)
    checks = [error for error in found if error[0].startswith("test_")]
    for exercise, (cell, text) in zip(chapters()[chapter], checks, strict=True):
        assert cell == f"test_{exercise.name}"
        says = "claims hold" if exercise.broken else "not written yet"
        assert text.startswith(f"ClaimsFail: {exercise.name}: ")
        assert text.endswith(says)
    others = {text for cell, text in found if not cell.startswith("test_")}
    assert others <= {"NotImplementedError: "}


@pytest.mark.parametrize("exercise", [e for e in exercises() if e.broken], ids=lambda e: e.name)
def test_broken_code_earns_nothing(exercise):
    assert examine(exercise, local(exercise.broken), GRADE_SEEDS).points == 0
