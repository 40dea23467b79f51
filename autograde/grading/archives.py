"""The files of a folder or a zip file, from people who may mean harm.

Nothing is written here. A name that leads out of its folder, a link, an encrypted or a damaged
entry is refused with a reason, and no more is unpacked than the limits allow.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO

ENTRIES = 200_000  # of a zip file; Python reads the list of them at once
JUNK = {"__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini"}
WITHIN = 10_000  # of one in a submission


class CannotRead(Exception):
    """A source, or a file in it, that is damaged or not what it says.

    Whatever reading raises becomes this: a zip file can make Python's reader fail in many ways.
    """


@dataclass(frozen=True)
class File:
    """A regular file, which is opened when it is read.

    path: within its source. changed: when, by the clock of whoever packed it. open: for bytes.
    """

    path: PurePosixPath
    size: int
    changed: datetime
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True)
class Refused:
    """Something in a source that is not touched, and why."""

    path: str
    why: str


def source_files(source: Path, stack: contextlib.ExitStack) -> tuple[list[File], list[Refused]]:
    """What lies in a folder or a zip file; a zip file stays open as long as `stack`."""
    if source.is_dir():
        found = [*_folder(source)]
    elif zipfile.is_zipfile(source):
        found = zip_files(source, stack)
    elif re.search(r"(?i)\.(zip|gz|tar|tgz|7z|rar|bz2|xz)$", source.name) and source.is_file():
        raise CannotRead("it is no zip file, or a damaged one; download or pack it again as zip")
    elif source.is_file():
        found = [_file(source, PurePosixPath(source.name))]
    else:
        raise CannotRead("there is no such file or folder")
    return (
        [each for each in found if isinstance(each, File)],
        [each for each in found if isinstance(each, Refused)],
    )


def zip_files(
    file: Path | IO[bytes], stack: contextlib.ExitStack, most: int = ENTRIES
) -> list[File | Refused]:
    """The entries of a zip file."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
    except Exception as error:
        raise CannotRead(f"it cannot be read as a zip file ({error})") from None
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > most:
        raise CannotRead(f"it holds {len(entries):,} files; {most:,} are the limit")
    found = [_entry(archive, entry) for entry in entries]
    return [each for each in found if not _is_junk(each.path)]


def unpacked(file: File, largest: int, stack: contextlib.ExitStack) -> list[File | Refused]:
    """The files of a zip file that lies in a submission, as if they lay beside it."""
    copy = stack.enter_context(SpooledTemporaryFile(max_size=2**20))  # noqa: SIM115
    try:
        for block in blocks(file, largest):
            copy.write(block)
        found = zip_files(copy, stack, WITHIN)
    except CannotRead as error:
        return [Refused(str(file.path), str(error))]
    parent = file.path.parent
    return [
        replace(each, path=parent / each.path)
        if isinstance(each, File)
        else replace(each, path=f"{file.path}: {each.path}")
        for each in found
    ]


def blocks(file: File, largest: int) -> Iterator[bytes]:
    """The file's content; CannotRead when it is longer than `largest`, however long it said."""
    read, stream = 0, None
    try:
        stream = _opened(file)
        while block := _read(stream):
            read += len(block)
            if read > largest:
                raise CannotRead(f"it is longer than {largest:,} bytes")
            yield block
    finally:
        if stream:
            stream.close()


def _opened(file: File) -> IO[bytes]:
    try:
        return file.open()
    except Exception as error:
        raise CannotRead(f"it cannot be opened ({error})") from None


def _read(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(2**20)
    except Exception as error:
        raise CannotRead(f"it is damaged ({error})") from None


def _folder(folder: Path) -> Iterator[File | Refused]:
    def failed(error: OSError) -> None:
        raise error

    for where, folders, names in os.walk(folder, onerror=failed):
        for name in sorted(folders):
            if Path(where, name).is_symlink():
                names.append(name)
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            inside = PurePosixPath(path.relative_to(folder).as_posix())
            if _is_junk(inside):
                continue
            if path.is_symlink():
                yield Refused(str(inside), "it is a link; hand in the file itself")
            elif not path.is_file():
                yield Refused(str(inside), "it is no regular file")
            else:
                yield _file(path, inside)


def _file(path: Path, inside: PurePosixPath) -> File:
    about = path.stat()
    changed = datetime.fromtimestamp(int(about.st_mtime))
    return File(inside, about.st_size, changed, lambda: path.open("rb"))


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> File | Refused:
    name = entry.filename.replace("\\", "/")
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name):
        return Refused(name, "its name leads out of its folder")
    if re.search(r"[\x00-\x1f\x7f]", name) or any(len(p.encode()) > 200 for p in parts):
        return Refused(name[:80], "its name is too long, or holds control characters")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return Refused(name, "it is a link, or no regular file; hand in the file itself")
    if entry.flag_bits & 1:
        return Refused(name, "it is encrypted; hand it in without a password")
    path = PurePosixPath(*(part for part in parts if part not in ("", ".")))
    try:
        changed = datetime(*entry.date_time)
    except ValueError:
        changed = datetime(1980, 1, 1)
    return File(path, entry.file_size, changed, lambda: archive.open(entry))


def _is_junk(path: PurePosixPath | str) -> bool:
    """Is it what editors and systems leave behind, and nobody handed in?"""
    parts = [part for part in str(path).split("/") if part not in ("", ".", "..")]
    return any(part in JUNK or part.startswith(".") for part in parts)
