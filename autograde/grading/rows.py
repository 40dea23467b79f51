"""What a gradebook holds of one assignment and of one student, as plain rows.

They go from one database into another, whatever kinds these are: so a submission can be graded
by nbgrader's own steps with a small gradebook of its own, on a machine that has none.
"""

from __future__ import annotations

from typing import Any

from nbgrader import api
from nbgrader.api import Gradebook
from sqlalchemy import Select, bindparam, insert, select, update

Rows = dict[str, list[dict[str, Any]]]  # {table: its rows}, in an order in which they can be added
TABLES = api.Base.metadata.tables
# What grading writes of a row that is there before; the rest is a person's.
WRITTEN = {
    "submitted_assignment": ("timestamp",),
    "submitted_notebook": ("late_submission_penalty",),
    "grade": ("auto_score", "needs_manual_grade"),
    "comment": ("auto_comment",),
}


def rows_of_assignment(gradebook: Gradebook, name: str) -> Rows:
    """The assignment with its notebooks and cells, without anybody's submission."""
    assignments = _where("assignment", "name", [name])
    notebooks = _where("notebook", "assignment_id", _ids(assignments))
    cells = _where("base_cell", "notebook_id", _ids(notebooks))
    kinds = ("grade_cells", "solution_cells", "task_cells")
    return _read(
        gradebook,
        [
            _where("course", "id", select(TABLES["assignment"].c.course_id).filter_by(name=name)),
            assignments,
            notebooks,
            cells,
            *(_where(kind, "id", _ids(cells)) for kind in kinds),
            _where("source_cell", "notebook_id", _ids(notebooks)),
        ],
    )


def rows_of_student(gradebook: Gradebook, name: str, student: str) -> Rows:
    """A student with what there is of the submission to that assignment."""
    assignments = _ids(_where("assignment", "name", [name]))
    submissions = _where("submitted_assignment", "student_id", [student]).where(
        TABLES["submitted_assignment"].c.assignment_id.in_(assignments)
    )
    notebooks = _where("submitted_notebook", "assignment_id", _ids(submissions))
    parts = (_where(part, "notebook_id", _ids(notebooks)) for part in ("grade", "comment"))
    return _read(gradebook, [_where("student", "id", [student]), submissions, notebooks, *parts])


def add(gradebook: Gradebook, rows: Rows) -> None:
    """Add the rows that are not there, and of the others what grading writes; all or nothing."""
    for name, given in rows.items():
        table = TABLES[name]
        there = {each for (each,) in gradebook.db.execute(
            select(table.c.id).where(table.c.id.in_([row["id"] for row in given]))
        )} if given else set()  # fmt: skip
        if new := [row for row in given if row["id"] not in there]:
            gradebook.db.execute(insert(table), new)
        old, columns = [row for row in given if row["id"] in there], WRITTEN.get(name, ())
        if old and columns:
            values = {column: bindparam(f"new_{column}") for column in columns}
            change = update(table).where(table.c.id == bindparam("its_id")).values(values)
            gradebook.db.connection().execute(
                change,
                [{"its_id": r["id"], **{f"new_{c}": r[c] for c in columns}} for r in old],
            )
    gradebook.db.commit()


def _where(table: str, column: str, values: Any) -> Select:
    return select(TABLES[table]).where(TABLES[table].c[column].in_(values))


def _ids(rows: Select) -> Select:
    return rows.with_only_columns(*(c for c in rows.selected_columns if c.name == "id"))


def _read(gradebook: Gradebook, wanted: list[Select]) -> Rows:
    rows = {
        query.get_final_froms()[0].name: [dict(row._mapping) for row in gradebook.db.execute(query)]
        for query in wanted
    }
    gradebook.db.rollback()  # nothing was changed, and nothing is to stay locked
    return rows
