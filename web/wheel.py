"""Build the package `autograde` as a wheel, for a browser: python -m web.wheel

It is the one that `pip wheel .` makes, built without the net and outside this folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INTO = Path("_build/wheel")
NEEDED = ("pyproject.toml", "README.md", "LICENSE")


class CannotBuild(Exception):
    """A part of the site cannot be built here; the text says why."""


def wheel(root: Path = Path(), into: Path | None = None) -> Path:
    """The wheel in `into` (ROOT/_build/wheel), built anew if a source is younger than it."""
    into = root / INTO if into is None else into
    sources = [root / name for name in NEEDED] + sorted(root.glob("autograde/**/*.py"))
    newest = max(path.stat().st_mtime_ns for path in sources)
    there = sorted(into.glob("*.whl"))
    if len(there) == 1 and there[0].stat().st_mtime_ns > newest:
        return there[0]
    with tempfile.TemporaryDirectory(prefix="no-peeking-") as folder:
        work = Path(folder)
        for name in NEEDED:
            shutil.copy(root / name, work)
        shutil.copytree(
            root / "autograde", work / "autograde", ignore=shutil.ignore_patterns("__pycache__")
        )
        built = _built(work)
        into.mkdir(parents=True, exist_ok=True)
        for old in there:
            old.unlink()
        return Path(shutil.move(built, into / built.name))


def _built(work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "-w", str(work / "out"), "."]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, env=_fixed())
    if done.returncode:
        raise CannotBuild(f"pip wheel failed; is setuptools installed?\n{done.stderr[-2000:]}")
    return next((work / "out").glob("*.whl"))


def _fixed() -> dict[str, str]:
    """An environment in which the same sources give the same bytes."""
    return os.environ | {"SOURCE_DATE_EPOCH": "1577836800"}


if __name__ == "__main__":
    print(wheel())
