"""A folder as a value, and a value as a folder: whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

Files = dict[str, tuple[int, bytes | None]]  # {relative path: (mode, content; None: a folder)}


def packed(folder: Path) -> Files:
    """The folder itself, which is ".", and the regular files and folders in it."""
    files: Files = {".": (folder.stat().st_mode & 0o7777, None)}
    for where, folders, names in os.walk(folder):
        for path in (Path(where, name) for name in (*folders, *names)):
            if path.is_symlink():
                continue
            content = path.read_bytes() if path.is_file() else None
            files[str(path.relative_to(folder))] = (path.stat().st_mode & 0o7777, content)
    return files


def install(files: Files, folder: Path) -> None:
    """Make it what `folder` holds; killed in between, that is the old, the new or nothing."""
    beside = folder.with_name(f".{folder.name}.new")
    before = folder.with_name(f".{folder.name}.old")
    for old in (beside, before):
        shutil.rmtree(old, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        for name, (mode, content) in files.items():  # folders come before what is in them
            path = beside / name
            path.mkdir(exist_ok=True) if content is None else path.write_bytes(content)
            path.chmod(mode)
        if folder.exists():
            folder.rename(before)
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    shutil.rmtree(before, ignore_errors=True)
