"""What runs in the sandbox, around a submission's own code. Nothing here is the grader's.

`autograde.grading.sandbox` shows these files to the sandbox, as the package `inside`, together
with the few modules of `autograde` that a notebook imports. They import nothing else.
"""
