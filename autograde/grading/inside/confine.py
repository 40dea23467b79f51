"""How a kernel is kept to itself: users, processes and folders of its own, and limits."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource

from . import seccomp

NOBODY = 65534  # what a grader who is root becomes
ROOM = "/student"  # what a kernel can write lies here, wherever else it shows
NEWNS, NEWIPC, NEWUSER, NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
NOSUID, NODEV, BIND = 2, 4, 4096
SET_DUMPABLE, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 4, 24, 36, 38

libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library; `OSError` when it fails."""
    if getattr(libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def _mount(what: str, where: str, kind: str, flags: int, options: str = "") -> None:
    texts = (text.encode() for text in (what, where, kind))
    _call("mount", *texts, ctypes.c_ulong(flags), options.encode())


def drop_root() -> None:
    """Become an ordinary user: a root without capabilities still owns the system's files."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    libc.prctl(SET_DUMPABLE, 1, 0, 0, 0)  # else /proc/self is root's, and uid_map with it
    libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def isolate() -> None:
    """Users, mounts and messages of its own for this process; processes for its children."""
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", NEWUSER | NEWNS | NEWPID | NEWIPC)
    for name, text in (("setgroups", "deny"), ("uid_map", uid), ("gid_map", gid)):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text if text == "deny" else f"1000 {text} 1")


def own_folders(disk: int, places: list[str]) -> None:
    """Fresh folders, of limited size in all, in the place of those that kernels can write."""
    _mount("tmpfs", ROOM, "tmpfs", NOSUID | NODEV, f"size={disk},nr_inodes=20000,mode=755")
    for place in places:
        if place != ROOM:
            folder = f"{ROOM}/{os.path.basename(place)}"
            os.mkdir(folder)
            os.chmod(folder, 0o1777)
            _mount(folder, place, "", BIND)
    with contextlib.suppress(OSError):  # the old one shows other processes; nobody can touch them
        _mount("proc", "/proc", "proc", NOSUID | NODEV)


def make_folders() -> None:
    """What $HOME and $TMPDIR name."""
    for name in ("home", "tmp"):
        os.makedirs(f"{ROOM}/{name}", exist_ok=True)


def give_up_rights() -> None:
    """No capability is left, and none comes back."""
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(64):
        libc.prctl(CAPBSET_DROP, capability, 0, 0, 0)
    _call("capset", (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
    seccomp.install()


def set_limits(limits: dict[str, int]) -> None:
    """Limits for each process; what all hold together is watched by the fork server."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    # Before Linux 5.14 it counted the user's processes outside, too.
    own_count = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 14)
    values = {
        "AS": mapped + limits["memory"],
        "CPU": limits["cpu"],
        "FSIZE": limits["file"],
        "NOFILE": 1024,
        "CORE": 0,
        "MSGQUEUE": 0,
        **({"NPROC": limits["processes"]} if own_count else {}),
    }
    for name, value in values.items():
        if hasattr(resource, f"RLIMIT_{name}"):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the machine runs out of memory, this goes first


def memory(pid: int) -> int:
    """Bytes that a process holds, its part of what it shares included; 0 when it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:  # it hides itself
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0
