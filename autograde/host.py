"""A process that holds a student's file: it runs the file, then answers calls.

Started by `autograde.runner`. The protocol is one line of JSON at a time over the standard
streams, which are taken away from the student's code first. Output is thrown away.
"""

from __future__ import annotations

import ast
import asyncio
import codeop
import inspect
import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY = 8 * 2**30  # bytes of address space: a runaway allocation fails, and is reported
TIMED = ("time", "timeit", "capture", "prun")  # cell magics around ordinary Python


class NotANotebook(Exception):
    """The file ends in .ipynb but holds no notebook."""


class Shell:
    """Stands where IPython's shell stands in a notebook; magics do nothing here."""

    def __init__(self, run: Callable[[str], None]):
        self._run = run

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        if name in TIMED:
            self._run(cell)

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


def cells(path: Path) -> list[tuple[str, str]]:
    """(label, source) of each piece of code of a `.py` file or a notebook.

    The locked test cells of a notebook are left out: they are the grader's, not the student's.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotANotebook(f"{path.name} is not UTF-8 text ({error.reason})") from None
    if path.suffix != ".ipynb":
        return [(path.name, text)]
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        raise NotANotebook("a notebook needs IPython here: pip install ipython") from None
    python = TransformerManager().transform_cell
    return [
        (f"cell {number}", python("".join(cell["source"])))
        for number, cell in enumerate(notebook_cells(path.name, text), start=1)
        if cell["cell_type"] == "code" and not is_test(cell)
    ]


def notebook_cells(name: str, text: str) -> list[dict[str, Any]]:
    """The cells of a notebook, or `NotANotebook`."""
    try:
        found = json.loads(text)["cells"]
        if all(isinstance("".join(cell["source"]) + cell["cell_type"], str) for cell in found):
            return found
    except (ValueError, KeyError, TypeError) as error:
        raise NotANotebook(f"{name} is no notebook ({type(error).__name__})") from None


def mark(cell: dict[str, Any]) -> dict[str, Any]:
    """nbgrader's metadata of a cell; empty where there is none."""
    metadata = cell.get("metadata")
    found = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def is_test(cell: dict[str, Any]) -> bool:
    """Is this nbgrader's test cell, that grades another cell?"""
    return bool(mark(cell).get("grade") and not mark(cell).get("solution"))


def load(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Run the file; its names, and what went wrong on the way (a cell each)."""
    module = types.ModuleType("student")
    sys.modules["student"] = module  # dataclasses and pickle look a class's module up
    namespace, problems = vars(module), []
    compiler = codeop.Compile()  # carries `from __future__` over to later cells
    compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def run(source: str, label: str = "cell") -> None:
        code = compiler(source, label, "exec")
        result = eval(code, namespace)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(result)

    shell = Shell(run)
    namespace.update(__file__=str(path), display=lambda *a, **k: None, get_ipython=lambda: shell)
    for label, source in cells(path):
        try:
            run(source, label)
        except BaseException as error:
            problems.append(f"{label}: {type(error).__name__}: {error}"[:300])
    return namespace, problems


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(path: str) -> None:
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    _limit_memory()
    os.environ["MPLBACKEND"] = "Agg"
    sys.path.insert(0, os.getcwd())
    sys.argv = [path]
    from autograde.remote import answer

    def reply(text: str, write=replies.write, flush=replies.flush) -> None:
        write(text + "\n")
        flush()

    process = os.getpid()
    try:
        namespace, problems = load(Path(path))
    except (OSError, NotANotebook) as error:
        reply(json.dumps({"error": str(error)}))
        return
    if os.getpid() != process:
        os._exit(0)  # a child that the file forked has come to the end of it
    names = [name for name, value in namespace.items() if callable(value)]
    reply(json.dumps({"names": names, "problems": problems}))
    for request in requests:
        reply(answer(namespace, request))


if __name__ == "__main__":
    main(sys.argv[1])
