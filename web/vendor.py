"""Lay the files that the site serves and that are not ours into _build/vendor.

    python -m web.vendor [--from FOLDER] [--into FOLDER]

`vendor.toml` beside this names them, with the sha256 of each. A file that lies in FOLDER
(or the one that the variable VENDOR names) is taken from there, any other is downloaded from the
official release. Nothing enters the site that is not, byte for byte, what the list says, and a
package is there whole or not at all. A second run gets only what the first one could not.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("vendor.toml")
INTO = Path("_build/vendor")
ADVICE = (
    "The book is built without it. Connect to the internet, or set VENDOR to a folder that holds "
    "it, and build again."
)
TIMEOUT = 20  # seconds without a byte


class CannotHave(Exception):
    """A file is neither there nor to be downloaded."""


class WrongFile(Exception):
    """A file is not the one that the list names."""


@dataclass(frozen=True)
class Package:
    """name: its folder in the site. url: where its files lie. files: sha256 by path."""

    name: str
    version: str
    licence: str
    url: str
    files: dict[str, str]


def packages(path: Path = LIST) -> list[Package]:
    return [Package(name, **each) for name, each in tomllib.loads(path.read_text()).items()]


def lay(package: Package, into: Path, local: Path | None = None) -> bool:
    """Put the package into `into/NAME`, and say whether anything had to be done.

    Raises
    ------
    CannotHave, WrongFile: then `into/NAME` is not there, rather than there in part.
    """
    target, waiting = into / package.name, into.parent / f".vendor-{package.name}"
    if target.is_dir():
        there = {path.relative_to(target).as_posix() for path in _files(target)}
        if there == set(package.files) and all(
            _is(target / f, s) for f, s in package.files.items()
        ):
            return False
        shutil.rmtree(waiting, ignore_errors=True)
        os.replace(target, waiting)
    for number, (name, wanted) in enumerate(package.files.items(), start=1):
        _say(f"{package.name} {package.version}: file {number} of {len(package.files)}")
        if not _is(waiting / name, wanted):
            _fetch(package, name, wanted, waiting / name, local)
    for path in _files(waiting):
        if path.relative_to(waiting).as_posix() not in package.files:
            path.unlink()
    into.mkdir(parents=True, exist_ok=True)
    os.replace(waiting, target)
    return True


def _fetch(package: Package, name: str, wanted: str, target: Path, local: Path | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(target.name + ".half")
    source = local / package.name / name if local else None
    if source and source.is_file():
        place = str(source)
        shutil.copyfile(source, half)
    else:
        place = package.url + name
        try:
            with urllib.request.urlopen(place, timeout=TIMEOUT) as reply, half.open("wb") as out:
                shutil.copyfileobj(reply, out)
        except (OSError, urllib.error.URLError) as error:
            half.unlink(missing_ok=True)
            raise CannotHave(f"{place}: {getattr(error, 'reason', error)}") from None
    if not _is(half, wanted):
        half.unlink()
        raise WrongFile(f"{place} is not the file whose sha256 is {wanted}; see {LIST.name}")
    os.replace(half, target)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _is(path: Path, wanted: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == wanted


def _say(text: str, end: str = "") -> None:
    """How far it is, in place on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """0: all is there. 1: something cannot be had. 2: a file is not the right one."""
    parser = argparse.ArgumentParser(
        prog="python -m web.vendor", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--from", dest="local", type=Path, default=os.environ.get("VENDOR") or None)
    parser.add_argument("--into", type=Path, default=INTO)
    options = parser.parse_args(arguments)
    worst = 0
    for package in packages():
        try:
            changed = lay(package, options.into, options.local and Path(options.local))
        except (CannotHave, WrongFile) as error:
            wrong = isinstance(error, WrongFile)
            worst = max(worst, 2 if wrong else 1)
            what = "is not the right one" if wrong else "cannot be had"
            _say("")
            print(f"{package.name} {package.version} {what}: {error}. {ADVICE}", file=sys.stderr)
        else:
            _say("")
            if changed:
                print(f"{options.into / package.name}: {package.version} ({package.licence})")
    return worst


if __name__ == "__main__":
    sys.exit(main())
