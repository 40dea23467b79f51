"""Grading with nbgrader: a class's notebooks into points, feedback pages and a table.

Everything here runs on the grader's side and needs nbgrader; `plugin.configure` is what
nbgrader_config.py calls, `assignment.grade_assignment` what `autograde grade` calls.
"""
