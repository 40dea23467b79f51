"""System calls that no notebook needs and that lead around the sandbox's limits.

New namespaces (in them a user is root and mounts what he likes), memory that belongs to no
process (it escapes the watch over memory), and interfaces of the kernel with a history of holes.
"""

from __future__ import annotations

import ctypes
import os
import struct

# name: (number on x86_64, number on aarch64)
DENIED = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432),
    "open_by_handle_at": (304, 265), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "ptrace": (101, 117), "process_vm_writev": (311, 271), "userfaultfd": (323, 282),
    "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
NAMESPACES = 0x7E020000  # the flags of `clone` that make namespaces
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in the kernel's `seccomp_data`
SET_SECCOMP, FILTER = 22, 2


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter, as instructions (code, jump if true, jump if false, value)."""
    column, architecture = MACHINES[machine]
    steps = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, EPERM),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, 0x40000000),  # another numbering of the same calls, on x86_64
        (RETURN, 0, 0, EPERM),
        (EQUAL, 0, 1, CLONE3[column]),
        (RETURN, 0, 0, ENOSYS),  # its flags cannot be seen; the C library then uses `clone`
    ]
    for numbers in DENIED.values():
        steps += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, EPERM)]
    return [
        *steps,
        (EQUAL, 0, 3, CLONE[column]),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (ANY_BIT, 0, 1, NAMESPACES),
        (RETURN, 0, 0, EPERM),
        (RETURN, 0, 0, ALLOW),
    ]


def install() -> bool:
    """Put the filter on this process and all that come from it; False where there is none."""
    machine = os.uname().machine
    if machine not in MACHINES:
        return False
    packed = b"".join(struct.pack("=HBBI", *step) for step in program(machine))
    buffer = ctypes.create_string_buffer(packed, len(packed))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    described = Program(len(packed) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (SET_SECCOMP, FILTER, ctypes.byref(described), 0, 0)
    if libc.prctl(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")
    return True
