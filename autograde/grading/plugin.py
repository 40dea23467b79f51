"""What this course changes in nbgrader, all through its configuration.

`configure(c)` in nbgrader_config.py makes `nbgrader autograde` read any file as a notebook,
restore its cells, judge it outside the student's kernel, and keep hidden tests and whatever acts
off the feedback pages.
"""

from __future__ import annotations

import os
import warnings
from html import escape
from typing import TYPE_CHECKING, Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions as Clear
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Dict

from autograde.grading.notebooks import Unreadable, read_notebook

if TYPE_CHECKING:
    from traitlets.config import Config

KEY = "no_peeking"


def configure(c: Config) -> None:
    """Set nbgrader up for this course.

    As names, not classes: so the other commands of nbgrader need not import the judge.
    """
    # nbgrader's own use of SQLAlchemy; harmless, and many lines for each student
    warnings.filterwarnings("ignore", "Object of type .* not in session")
    steps = GenerateAssignment.class_traits()["preprocessors"].default()
    c.GenerateAssignment.preprocessors = [
        "autograde.grading.plugin.ClearSolutions" if step is Clear else step for step in steps
    ]
    c.Autograde.exporter_class = "autograde.grading.plugin.AnyNotebook"
    # nbgrader's DeduplicateIds is not among them: it leaves empty metadata behind, and then
    # the check of the metadata ends the grading of the whole class.
    c.Autograde.sanitize_preprocessors = [
        "autograde.grading.restore.Restore",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
        "autograde.grading.restore.HideTests",
    ]
    c.Autograde.autograde_preprocessors = [
        "autograde.grading.judge.Judge",
        "nbgrader.preprocessors.IgnorePattern",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
    ]
    c.Exporter.optimistic_validation = True  # once, when all steps are done, not after each
    c.HTMLExporter.filters = {"markdown2html": "autograde.grading.page.markdown"}
    c.GenerateFeedback.exporter_class = "autograde.grading.page.FeedbackPage"
    c.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        "autograde.grading.plugin.Notes",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]


class ClearSolutions(Clear):
    """nbgrader's own, but where a function is to be mended, its broken form takes the place."""

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        starter = cell.metadata.pop("starter", None)
        cell, resources = super().preprocess_cell(cell, resources, index)
        if starter:
            cell.source = starter
        return cell, resources


class AnyNotebook(NotebookExporter):
    """Reads whatever was handed in. A file that holds no notebook is an empty one, with a reason.

    told: {notebook: {"notes": remarks for its author, "unreadable": why it is no notebook}},
        what is known about a submission before it is read.
    """

    told = Dict().tag(config=True)

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> tuple[Any, Any]:
        resources = ResourcesDict() if resources is None else resources
        path, name = os.path.split(os.path.splitext(filename)[0])
        resources["metadata"] = ResourcesDict(name=name, path=path)
        told = dict(self.told.get(name, {}))
        try:
            if os.path.islink(filename):
                raise Unreadable(f"{name}.ipynb is a link, not a notebook")
            nb = read_notebook(filename)
        except Unreadable as reason:
            nb, told["unreadable"] = new_notebook(), told.get("unreadable") or str(reason)
        resources[KEY] = told
        return self.from_notebook_node(nb, resources, **kw)


class Notes(NbGraderPreprocessor):
    """Puts what was noted about a submission at the top of its feedback page."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        ours = nb.metadata.get(KEY, {})
        notes = [*filter(None, [ours.get("unreadable")]), *ours.get("notes", ())]
        if notes:
            lines = "\n".join(f"- {escape(note)}" for note in notes)
            nb.cells.insert(0, new_markdown_cell(f"**About your file**\n\n{lines}"))
        return nb, resources
