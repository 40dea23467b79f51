"""Checkpoints: written whole or not at all; to read one runs nothing in it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from autograde.decoder.model import Config, Decoder

FORMAT = "no-peeking decoder 1"


class BadCheckpoint(ValueError):
    """A file is no checkpoint, or not a whole one."""


def save(path: Path, content: dict) -> None:
    """Write a checkpoint; raises OSError, as `write` does."""
    # To memory first: torch.save turns a full disk into a RuntimeError of its own.
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **content}, buffer)
    write(path, buffer.getbuffer())


def write(path: Path, data: bytes | memoryview) -> None:
    """Replace a file at once: whoever looks sees all of the old or all of the new.

    OSError: it did not work (a full disk, say). Then the old file is as it was.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # the data first, then the name
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        old = "; the old one is as it was" if path.exists() else ""
        raise OSError(
            f"{path} could not be written: {error.strerror}{old}"
        ) from error


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others from training into a folder; the lock ends with the process."""
    if os.name != "posix":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ValueError(
            f"another training is writing into {folder}: wait for it, or give "
            "another --out"
        ) from None
    finally:
        os.close(descriptor)


def load(path: Path) -> dict:
    """Read a checkpoint, onto the CPU. A folder stands for its checkpoint.pt.

    Raises OSError (there is no such file, say) or BadCheckpoint.
    """
    path = path / "checkpoint.pt" if path.is_dir() else path
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}: train makes one")
    data = io.BytesIO(path.read_bytes())
    try:
        content = torch.load(data, map_location="cpu", weights_only=True)
    except Exception:  # bytes of any kind can lead to anything
        raise BadCheckpoint(
            f"{path} is no checkpoint, or only a part of one"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BadCheckpoint(
            f"{path} was saved by PyTorch, but is no checkpoint of this command"
        )
    return content


def model_of(content: dict) -> Decoder:
    """The decoder of a checkpoint, with its weights, on the CPU."""
    model = Decoder(Config(**content["config"]))
    model.load_state_dict(content["training"]["model"])
    return model
