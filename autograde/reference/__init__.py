"""The one implementation of every function of the course, a module a chapter.

The book shows this source and runs it, the solution notebooks are built from it,
the checks compare with its outputs, and `tests/` compares it with PyTorch.
"""
