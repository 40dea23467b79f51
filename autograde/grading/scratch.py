"""A gradebook for one submission: a small SQLite file that is thrown away.

nbgrader opens the gradebook anew in each of its steps, and compiles its statements each time.
While a scratch gradebook is in use, its steps share one engine, which remembers them, and one
connection.
"""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import nbgrader.api
from nbgrader.api import Gradebook
from sqlalchemy import Engine, StaticPool, create_engine

from autograde.grading.rows import add

_file: list[Path] = []  # the gradebook in use


@contextlib.contextmanager
def scratch_gradebook(path: Path, assignment: bytes, student: bytes) -> Iterator[str]:
    """Make a gradebook with these pickled rows; its URL."""
    path.write_bytes(_template(assignment))
    url = f"sqlite:///{path}"

    def engine(wanted: str, **options: Any) -> Engine:
        return _engine() if wanted == url else own(wanted, **options)

    own, nbgrader.api.create_engine = nbgrader.api.create_engine, engine
    _file.append(path)
    try:
        with Gradebook(url) as gradebook:
            add(gradebook, pickle.loads(student))
        yield url
    finally:
        _engine().dispose()
        _file.pop()
        nbgrader.api.create_engine = own


@cache
def _engine() -> Engine:
    return create_engine("sqlite://", creator=_connect, poolclass=StaticPool)


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(_file[-1])
    connection.execute("PRAGMA synchronous = OFF")  # nobody wants it back after a power cut
    return connection


@lru_cache(maxsize=2)
def _template(assignment: bytes) -> bytes:
    """A gradebook file with the assignment in it."""
    with tempfile.TemporaryDirectory(prefix="no-peeking-") as folder:
        url = f"sqlite:///{Path(folder, 'gradebook.db')}"
        # For a file without tables nbgrader asks Alembic, in seconds and in a process of its own,
        # for the version to upgrade from. This one will not be upgraded.
        tables = create_engine(url)
        nbgrader.api.Base.metadata.create_all(tables)
        tables.dispose()
        with Gradebook(url) as gradebook:
            add(gradebook, pickle.loads(assignment))
        return Path(folder, "gradebook.db").read_bytes()
