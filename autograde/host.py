"""A process that holds a student's file: it runs the file, then answers calls.

Started by `autograde.runner`. The protocol is one line of JSON at a time over the standard
streams, which are taken away from the student's code first. Output is thrown away.
"""

from __future__ import annotations

import codeop
import json
import os
import sys
from pathlib import Path
from typing import Any

MEMORY = 8 * 2**30  # bytes of address space: a runaway allocation fails, and is reported


class NotANotebook(Exception):
    """The file ends in .ipynb but holds no notebook."""


def cells(path: Path) -> list[tuple[str, str]]:
    """(label, source) of each piece of code of a `.py` file or a notebook.

    The locked test cells of a notebook are left out: they are the grader's, not the student's.
    """
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix != ".ipynb":
        return [(path.name, text)]
    try:
        notebook = json.loads(text)
        found = notebook["cells"]
        return [
            (f"cell {number}", without_magics("".join(cell["source"])))
            for number, cell in enumerate(found, start=1)
            if cell["cell_type"] == "code" and not is_test(cell)
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise NotANotebook(f"{path.name} is no notebook ({type(error).__name__})") from None


def is_test(cell: dict[str, Any]) -> bool:
    """Is this nbgrader's test cell, that grades another cell?"""
    mark = cell.get("metadata", {}).get("nbgrader", {})
    return bool(mark.get("grade") and not mark.get("solution"))


def without_magics(source: str) -> str:
    """The Python of a cell: IPython's own lines (%magic, !shell, help?) define no function."""
    lines = source.splitlines()
    magic = lines[0].split()[0] if source.startswith("%%") else ""
    if magic not in ("", "%%time", "%%timeit", "%%capture"):
        return ""  # another language
    kept = (
        line[: len(line) - len(line.lstrip())] + "pass"
        if line.lstrip().startswith(("%", "!", "?")) or line.rstrip().endswith("?")
        else line
        for line in lines
    )
    return "\n".join(kept)


def load(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Run the file; its names, and what went wrong on the way (a cell each)."""
    namespace: dict[str, Any] = {"__name__": "student", "display": lambda *a, **k: None}
    problems = []
    compiler = codeop.Compile()  # carries `from __future__` over to later cells
    for label, source in cells(path):
        try:
            exec(compiler(source, label, "exec"), namespace)
        except KeyboardInterrupt:
            raise
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

    def reply(text: str) -> None:
        replies.write(text + "\n")
        replies.flush()

    try:
        namespace, problems = load(Path(path))
    except (OSError, UnicodeDecodeError, NotANotebook) as error:
        reply(json.dumps({"error": str(error)}))
        return
    names = [name for name, value in namespace.items() if callable(value)]
    reply(json.dumps({"names": names, "problems": problems}))
    for request in requests:
        reply(answer(namespace, request))


if __name__ == "__main__":
    main(sys.argv[1])
