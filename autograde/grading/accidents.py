"""Accidents that no submission is to blame for: the gradebook's database is gone, the disk is full.

They end a run, for the next student would fare no better, and grading again goes on from there.
What has happened is told from the exceptions themselves: a student can choose the text of one.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError

AGAIN = "run this again: what has been graded is kept"
LOCKED = (
    "the gradebook is locked by another program, such as a second grading run or an open "
    f"formgrader; close it and {AGAIN}"
)
# nbgrader writes a hundred lines about each error of a database; `accident` says it in one.
logging.getLogger("tornado.application").addHandler(logging.NullHandler())
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


class GradingError(Exception):
    """What kept the class from being graded, where, and what to do about it."""


@contextlib.contextmanager
def opened(url: str, course_id: str, root: Path | None = None) -> Iterator[Gradebook]:
    """The gradebook, open; a new one is made where there is none.

    root: the course's folder.

    Raises
    ------
    GradingError: the database cannot be used, at the start or later.
    """
    try:
        with _open(url, course_id) as gradebook:
            yield gradebook
    except (DBAPIError, OSError) as error:
        if reason := accident(error, url, root):
            raise GradingError(reason) from None
        raise


def _open(url: str, course_id: str) -> Gradebook:
    # Without this, a part of the password is taken for the host, and shown in errors.
    on_server = not url.startswith("sqlite")
    ambiguous = on_server and (url.rpartition("?")[0] or url).count("@") > 1
    try:
        if not ambiguous:
            return Gradebook(url, course_id)
    except (ArgumentError, ValueError):
        pass
    except ImportError as error:
        raise GradingError(
            f"the gradebook {shown(url)} needs a driver that is not installed ({error}); "
            "for PostgreSQL: pip install 'psycopg[binary]'"
        ) from None
    raise GradingError(
        "c.CourseDirectory.db_url in nbgrader_config.py is not the URL of a database, as in "
        "postgresql://user:password@host/name; special characters of the password are written "
        "as %40 for @, %2F for / and so on"
    )


def shown(text: str) -> str:
    """A URL, or a text with one in it, without the password."""
    text = re.sub(r"(://[^:/@\s]*:)\S*@", r"\1***@", text)
    return re.sub(r"(password=)[^&\s'\"]+", r"\1***", text)


def accident(error: BaseException, url: str = "", root: Path | None = None) -> str:
    """What has happened and what to do; "" if a submission may have been the cause.

    url: of the gradebook. root: the course's folder.
    """
    for each in _chain(error):
        if isinstance(each, DBAPIError) and not isinstance(each, DataError | IntegrityError):
            return _of_database(each, url, root)
        if isinstance(each, OSError) and each.errno in FULL:
            where = f"{each.filename}: " if each.filename else ""
            return _of_disk(f"{where}{each.strerror}", each.errno, root)
    return ""


def said(error: BaseException, root: Path | None = None) -> str:
    """What an instructor is told of an error, whatever its kind."""
    return accident(error, root=root) or str(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and those that led to it, the last first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)


def _of_database(error: DBAPIError, url: str, root: Path | None) -> str:
    reason = shown(" ".join(str(error.orig).split()).rstrip(".?"))
    if not url.startswith("sqlite"):
        return (
            f"the gradebook {shown(url)} cannot be used: {reason}; see that the database runs "
            f"and that db_url in nbgrader_config.py is right, and {AGAIN}"
        )
    if "locked" in reason:
        return LOCKED
    if "full" in reason:
        return _of_disk(f"{url}: {reason}", errno.ENOSPC, root)
    if any(word in reason for word in ("readonly", "unable to open", "I/O")):
        return (
            f"the gradebook {url} cannot be used: {reason}; see that its folder is there, that "
            f"you may write in it and to the file, and that the disk is well, and {AGAIN}"
        )
    return (
        f"the gradebook {url} cannot be used: {reason}; if it is damaged, move it away, and run "
        "`autograde build` for a new one"
    )


def _of_disk(what: str, number: int, root: Path | None) -> str:
    if number == errno.EROFS:
        return f"{what}; write where it is allowed, and {AGAIN}"
    free = ""
    with contextlib.suppress(OSError):
        places = dict.fromkeys([(root or Path()).resolve(), Path(tempfile.gettempdir())])
        left = (f"{shutil.disk_usage(p).free / 1e6:,.0f} MB in {p}" for p in places)
        free = f"; there is {', '.join(left)}"
    return f"no room on the disk ({what}{free}); make room, and {AGAIN}"
