"""Results as data: bench/results/NAME.json, with what made them and where."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

RESULTS = Path(__file__).parent / "results"


def write(name: str, data: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write `data`, and where it comes from, to NAME.json, all of it or nothing."""
    text = json.dumps({"provenance": provenance(), **data}, indent=2, allow_nan=False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
    print(f"wrote {os.path.relpath(path)}", flush=True)
    return path


def provenance() -> dict[str, Any]:
    """What anyone needs to know before comparing with numbers of their own."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command(),
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
    }


def _command() -> str:
    """As it was typed, but of files outside only the names."""
    program = Path(sys.argv[0])
    typed = ["-m", program.parent.name] if program.name == "__main__.py" else [program.name]
    given = [Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:]]
    return shlex.join(["python", *typed, *given])


def _commit() -> str | None:
    """The commit, with -dirty if files differ from it; None outside of a repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, cwd=RESULTS.parent, env=quiet, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    """The processor's name, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
