"""Reading what students hand in: any file, as a valid notebook or with the reason why not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

LARGEST = 100 * 10**6  # bytes
MAKE = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}
CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Unreadable(Exception):
    """The file holds no notebook; the text, a sentence for its author, says why."""


def read_notebook(path: str | Path) -> Any:
    """The notebook in that file, in the newest format and valid, without its outputs."""
    path = Path(path)
    text = _text(path)
    try:
        data = json.loads(text)
        # nbformat's reader breaks on what cleaning mends; it is for the older formats only.
        return cleaned(data if data["nbformat"] == 4 else nbformat.reads(text, as_version=4))
    except Exception as error:  # whatever else a file can hold
        text = " ".join(str(error).split())[:120]
        raise Unreadable(
            f"{path.name} is not a notebook ({type(error).__name__}: {text})"
        ) from None


def _text(path: Path) -> str:
    if path.is_dir():
        raise Unreadable(f"{path.name} is a folder, not a notebook")
    size = path.stat().st_size
    if not size:
        raise Unreadable(f"{path.name} is empty")
    if size > LARGEST:
        raise Unreadable(
            f"{path.name} has {size:,} bytes; {LARGEST:,} are the limit: clear outputs"
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{path.name} is not UTF-8 text, as a notebook is") from None


def cleaned(notebook: Any) -> Any:
    """A valid notebook with the same cells, each with an id and without outputs.

    Of the metadata only what grading needs remains: editors write all sorts of things there,
    and one that breaks the format would stop nbgrader.
    """
    used: set[str] = set()
    cells = [_cell(cell, used) for cell in notebook["cells"]]
    old, metadata = notebook.get("metadata", {}), {}
    for key in ("kernelspec", "no_peeking"):
        if isinstance(old, dict) and isinstance(old.get(key), dict):
            metadata[key] = old[key]
    if not {"name", "display_name"} <= set(metadata.get("kernelspec", ())):
        metadata.pop("kernelspec", None)
    return nbformat.from_dict(new_notebook(cells=cells, metadata=metadata))


def _cell(cell: Any, used: set[str]) -> Any:
    source = cell.get("source", "")
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    source = source.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be stored
    kind = cell.get("cell_type")
    made = MAKE[kind if kind in MAKE else "raw"](source)
    name = cell.get("id")
    if isinstance(name, str) and CELL_ID.fullmatch(name) and name not in used:
        made.id = name
    used.add(made.id)
    metadata = cell.get("metadata")
    for key in ("nbgrader", "no_peeking"):
        if isinstance(metadata, dict) and key in metadata:
            made.metadata[key] = metadata[key]
    if made.cell_type == "markdown" and isinstance(cell.get("attachments"), dict):
        _attach(made, cell["attachments"])
    return made


def _attach(cell: Any, attachments: Any) -> None:
    cell.attachments = attachments
    try:
        nbformat.validate(cell, ref="markdown_cell", version=4, version_minor=5)
    except nbformat.ValidationError:
        del cell["attachments"]
