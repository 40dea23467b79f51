"""No Peeking: the checks of a course on masked self-attention."""

from autograde.checking import check, grade, hint

__all__ = ["check", "grade", "hint"]
