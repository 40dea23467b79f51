"""What a command costs, its whole process tree together: seconds, CPU seconds, peak memory.

Linux only: it looks into /proc. `wait4` alone would not do for the CPU: of processes that end
with their sandbox nobody is told the time. So every process is looked at ten times a second,
and the larger of both sums counts. Memory is PSS: pages that several processes share, as forked
ones do, count once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOOK = 0.1  # seconds between two looks
SHARE = 20  # measuring memory may take one twentieth of the time
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def measured(command: list[str], folder: Path, env: dict[str, str], log: Path) -> dict[str, Any]:
    """Run a command to its end.

    Returns {"seconds", "cpu_seconds", "peak_bytes", "status"}. What it leaves behind is ended.
    """
    begun, peak, due, usage = time.monotonic(), 0, 0.0, None
    with log.open("ab") as file:
        child = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
        tree = Tree(child.pid)
        try:
            while usage is None:
                time.sleep(LOOK)
                tree.look()
                if (now := time.monotonic()) >= due:
                    peak = max(peak, tree.memory())
                    due = now + SHARE * (time.monotonic() - now)
                pid, status, found = os.wait4(child.pid, os.WNOHANG)
                usage = found if pid else None
            seconds = time.monotonic() - begun
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            tree.end()
            child.wait()
    return {
        "seconds": seconds,
        "cpu_seconds": max(usage.ru_utime + usage.ru_stime, tree.cpu_seconds),
        "peak_bytes": peak,
        "status": child.returncode,
    }


class Tree:
    """A process and all that descend from it, also those whose parent has gone."""

    def __init__(self, root: int):
        self.root, self.alive = root, {root}
        self.ticks: dict[tuple[int, str], int] = {}  # {(process, when it began): CPU time}

    def look(self) -> None:
        """See who there is, and what each has used so far."""
        found = dict(_processes())
        alive = {pid for pid, (_, _, begun) in found.items() if (pid, begun) in self.ticks}
        alive |= {self.root} & set(found)
        while more := {pid for pid, (parent, _, _) in found.items() if parent in alive} - alive:
            alive |= more
        for pid in alive:
            _, ticks, begun = found[pid]
            self.ticks[pid, begun] = ticks
        self.alive = alive

    def memory(self) -> int:
        return sum(map(_memory, self.alive))

    @property
    def cpu_seconds(self) -> float:
        return sum(self.ticks.values()) / TICK

    def end(self) -> None:
        """Kill who is left."""
        self.look()
        for pid in self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, tuple[int, int, str]]]:
    """(process, (its parent, its own CPU time in ticks, when it began)), of all that there are."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            yield int(name), (int(fields[1]), int(fields[11]) + int(fields[12]), fields[19])


def _memory(pid: int) -> int:
    """Bytes of a process, its shared pages divided by who shares them; 0 if it has gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(s.split()[1]) for s in file if s.startswith("Pss:")) * 1024
    except PermissionError:  # then with what it shares
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, StopIteration):
        pass
    return 0
