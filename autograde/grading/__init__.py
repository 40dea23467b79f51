"""Grading with nbgrader: a class's notebooks into points, feedback pages and a table.

Everything here runs on the grader's side and needs nbgrader; `plugin.configure` is what
nbgrader_config.py calls, `assignment.grade_assignment` what `autograde grade` calls.
"""

import sys

# jsonschema, which nbformat needs, looks for this package to know the format "iri", and its import
# takes more than a second, in every process that grades. No notebook's schema has that format.
if "jsonschema" not in sys.modules and "rfc3987_syntax" not in sys.modules:
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    import jsonschema  # noqa: F401

    del sys.modules["rfc3987_syntax"]
