"""Kernels in a sandbox, for Jupyter: the provisioner `no-peeking-sandbox`.

Any kernelspec of a Python kernel may name it in its metadata; `sandboxed` does so on the fly.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Bool, Dict, Integer, List, Unicode

from autograde.grading import sandbox
from autograde.grading.sandbox import CHANNELS, Sandbox, SandboxUnavailable

NAME = "no-peeking-sandbox"
# What every kernel imports when it starts, and what most notebooks import.
MODULES = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.debugger",
    "IPython.core.completerlib",
    "IPython.extensions.storemagic",
    "numpy",
    "matplotlib.pyplot",
    "autograde.remote",
)
# Sandboxes of this process that wait for the next kernel: (what they were made for, sandbox).
_waiting: list[tuple[Any, Sandbox]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_waiting.clear)  # they belong to the parent


class SandboxProvisioner(KernelProvisionerBase):
    """Starts a kernel in a sandbox, in a warm one if there is one; ends all of it with it."""

    memory = Integer(4096, help="MB of memory for a submission, beyond its imports.").tag(
        config=True
    )
    disk = Integer(512, help="MB that a submission may write; they are memory, too.").tag(
        config=True
    )
    file = Integer(256, help="MB that one file may have.").tag(config=True)
    processes = Integer(128, help="Processes and threads of a submission.").tag(config=True)
    cpu = Integer(1200, help="Seconds of CPU time for each process.").tag(config=True)
    hidden = List(Unicode(), help="Folders to keep out of sight.").tag(config=True)
    warm = Bool(True, help="Fork kernels from a process with the imports done.").tag(config=True)
    without = List(Unicode(), help="Names in the kernel's folder to leave out.").tag(config=True)
    modules = List(Unicode(), help="Modules to import before the kernel starts.").tag(config=True)

    box: Sandbox | None = None
    listening: tuple[socket.socket, ...] = ()

    @property
    def has_process(self) -> bool:
        return self.box is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        manager = self.parent
        if manager.transport != "ipc":
            raise RuntimeError("kernels in a sandbox have no network: set transport = 'ipc'")
        manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        return {**await super().pre_launch(**kwargs), "cmd": []}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel; its folder begins as a copy of `cwd`."""
        wanted = (self.disk, tuple(self.hidden), self.warm)
        self.listening = tuple(self._listen(channel) for channel in CHANNELS)
        info = {**self.connection_info, "key": self.connection_info["key"].decode()}
        info = {name: info[name] for name in (*_plain(), "key")}
        limits = {name: getattr(self, name) * 2**20 for name in ("memory", "disk", "file")}
        limits |= {name: getattr(self, name) for name in ("processes", "cpu")}
        with tempfile.TemporaryFile() as companions:
            sandbox.packed(kwargs.get("cwd") or ".", companions, self.without)
            descriptors = [s.fileno() for s in self.listening]
            what = (info, descriptors, companions, limits, (*MODULES, *self.modules))
            self.box, self.made_for = _borrow(wanted), wanted
            try:
                if self.box is not None:
                    self.box.start(*what)
            except SandboxUnavailable:
                self.box.close()
                self.box = None
            if self.box is None:  # none is warm, or the one that was has failed
                self.box = _new(wanted)
                self.box.start(*what)
        return self.connection_info

    def _listen(self, channel: str) -> socket.socket:
        """A socket for the kernel to listen to, in our folder and not in the sandbox's."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(f"{self.connection_info['ip']}-{self.connection_info[f'{channel}_port']}")
        made.listen(16)
        made.setblocking(False)
        return made

    async def poll(self) -> int | None:
        how = self.box.poll() if self.box else ""
        return None if how is None else int(how) if how.lstrip("-").isdigit() else 1

    async def wait(self) -> int | None:
        while (code := await self.poll()) is None:
            await asyncio.sleep(0.05)
        self._release()
        return code

    async def send_signal(self, signum: int) -> None:
        if self.box and signum == signal.SIGINT:
            self.box.interrupt()
        elif self.box:
            self.box.end()

    async def kill(self, restart: bool = False) -> None:
        await self.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    async def terminate(self, restart: bool = False) -> None:
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        self._release()
        for made in self.listening:
            made.close()
        self.listening = ()

    @property
    def why(self) -> str:
        """Why the sandbox ended the kernel, if it did."""
        return self.box.why if self.box else ""

    def _release(self) -> None:
        if self.box:
            self.box.end()
            _give_back(self.made_for, self.box)
            self.box = None


def _plain() -> tuple[str, ...]:
    ports = (f"{channel}_port" for channel in (*CHANNELS, "hb"))
    return ("ip", "transport", "signature_scheme", *ports)


def _new(wanted: Any) -> Sandbox:
    disk, hidden, warm = wanted
    return Sandbox(disk * 2**20, hidden, warm)


def _borrow(wanted: Any) -> Sandbox | None:
    """A sandbox made for that which waits, if there is one."""
    for entry in [entry for entry in _waiting if entry[0] == wanted]:
        _waiting.remove(entry)
        if entry[1].reusable:
            return entry[1]
        entry[1].close()
    return None


def _give_back(made_for: Any, box: Sandbox) -> None:
    if box.reusable:
        _waiting.append((made_for, box))
    else:
        box.close()


def close_all() -> None:
    """End the sandboxes that wait; they end with this process, too."""
    while _waiting:
        _waiting.pop()[1].close()


class SandboxedSpecs(KernelSpecManager):
    """The kernels that are installed, each in a sandbox."""

    settings = Dict(help="Settings of the provisioner.")

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        spec = super().get_kernel_spec(kernel_name)
        provisioner = {"provisioner_name": NAME, "config": self.settings}
        spec.metadata = {**spec.metadata, "kernel_provisioner": provisioner}
        return spec
