"""The grader's own exam: what `autograde audit` finds out about the checks themselves."""
