"""The bug museum: functions with a bug, for students to mend.

A chapter's module has the name of its reference module, and functions of the same
names, signatures and docstrings; only the bodies differ. The docstring says what
the right function does.
"""
