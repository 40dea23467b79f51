"""A Jupyter kernel that runs a submission: cells and requests go in, outputs and replies out.

Transport only: nothing here knows of exercises or points, and nothing that comes from the
kernel is evaluated. Whether it is a plain kernel or one in a sandbox is the provisioner's business.
"""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import zmq
from jupyter_client.manager import KernelManager
from jupyter_client.utils import run_sync

from autograde.grading.outputs import RICH, Outputs
from autograde.grading.provisioner import SandboxedSpecs
from autograde.grading.sandbox import SandboxUnavailable

if TYPE_CHECKING:
    from traitlets.config import Config

LARGEST = 64 * 2**20  # bytes of one reply; a larger one is dropped before it is read
SHOWN = 2 * RICH  # bytes of one message that shows something, likewise
WAITING = 8  # messages that may wait to be read, so that a flood fills no memory here
GRACE = 5.0  # seconds for an interrupted kernel to answer before it is killed
STEP = 0.2  # seconds between two looks at whether the kernel still lives
PACKAGE = Path(__file__).resolve().parents[2]  # the folder that autograde is imported from
# Imported before any code of the student's, and without the student's folder on the path, so
# that a file of theirs called random.py cannot get in the way.
PREPARE = (
    "exec('import sys; path = sys.path[:]; sys.path[:] = [p for p in path if p]; "
    "import autograde.remote; sys.path[:] = path', {})"
)
ANSWER = (
    "__import__('autograde.remote').remote.answer_all("
    "__import__('sys').modules['__main__'].__dict__, {request!r})"
)


class KernelGone(Exception):
    """The kernel has ended; the text says how."""


class NoReply(Exception):
    """The kernel is busy and did not answer in time."""


class KernelUnavailable(Exception):
    """No kernel could be started: the grader's machine is at fault, not the submission."""


class Kernel:
    """One kernel process, from its start to its end."""

    def __init__(
        self,
        name: str,
        folder: str,
        config: Config | None = None,
        startup: float = 60.0,
        sandbox: dict[str, Any] | None = None,
    ):
        """Start it. sandbox: settings of the `SandboxProvisioner`; None: a plain kernel."""
        self.sockets = tempfile.mkdtemp(prefix="no-peeking-")  # short: a socket's path is limited
        transport = {"transport": "ipc", "ip": f"{self.sockets}/k"} if os.name == "posix" else {}
        self.manager = KernelManager(kernel_name=name, config=config, **transport)
        if sandbox is not None:
            self.manager.kernel_spec_manager = SandboxedSpecs(config=config, settings=sandbox)
        self.client, self.idle = None, ""
        try:
            self.manager.start_kernel(
                cwd=folder,
                env=_environment(),
                stdout=subprocess.DEVNULL,  # what a process writes past Jupyter is not for us
                stderr=subprocess.DEVNULL,
                extra_arguments=["--HistoryManager.hist_file=:memory:"],
            )
            self._connect()
            self._prepare(startup)
        except SandboxUnavailable:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise KernelUnavailable(
                f"the kernel {name!r} did not start ({type(error).__name__}: {error}); "
                "`jupyter kernelspec list` shows the kernels there are"
            ) from error

    def _connect(self) -> None:
        self.client = self.manager.client()
        context = self.client.context
        context.setsockopt(zmq.RCVHWM, WAITING)
        for size, channels in ((LARGEST, ("shell", "control")), (SHOWN, ("iopub",))):
            context.setsockopt(zmq.MAXMSGSIZE, size)
            for channel in channels:
                getattr(self.client, f"{channel}_channel").start()
        self.shell, self.iopub = self.client.shell_channel, self.client.iopub_channel
        self.poller = zmq.Poller()
        for channel in (self.shell, self.iopub):
            self.poller.register(channel.socket, zmq.POLLIN)

    def _prepare(self, startup: float) -> None:
        """Wait until the kernel answers, on its output channel as well."""
        deadline, message = monotonic() + startup, ""
        while not message or self.idle != message:
            message = self._send(PREPARE, store_history=False, silent=True)
            self._reply(message, deadline - monotonic())
            self._drain(message, 0.1)

    @property
    def alive(self) -> bool:
        return self.client is not None and self.manager.is_alive()

    def run(self, source: str, seconds: float, outputs: Outputs | None = None) -> str:
        """Run a cell: "ok", "error", "timeout" (and the kernel may be gone) or "exit".

        Raises `KernelGone` when the cell ends the kernel.
        """
        message = self._send(source, store_history=True)
        try:
            reply = self._reply(message, seconds, outputs)
        except NoReply:
            self._interrupt(message, outputs)
            return "timeout"
        payload = reply.get("payload")
        payload = payload if isinstance(payload, list) else []
        if any(isinstance(p, dict) and p.get("source") == "ask_exit" for p in payload):
            return "exit"  # `exit()` or `quit()`: the kernel stops in a moment
        return "ok" if reply.get("status") == "ok" else "error"

    def ask(self, request: str, seconds: float) -> str:
        """Send a request of `batch.together`; the text of the reply, whatever it is."""
        expression = {"reply": ANSWER.format(request=request)}
        reply = self._request("", seconds, silent=True, user_expressions=expression)
        try:
            shown = reply["user_expressions"]["reply"]["data"]["text/plain"]
            # The text of a string, with its quotes. A parser could be crashed by what is none.
            return codecs.decode(shown[1:-1].encode("ascii"), "unicode_escape")
        except Exception:  # written by the student's process: anything is possible
            return ""

    def close(self) -> None:
        """End the kernel and all that it started."""
        if self.client is not None:
            self.client.stop_channels()
            self.client = None
        try:
            if self.manager.has_kernel:
                self.manager.shutdown_kernel(now=True)
        finally:
            self.manager.cleanup_resources()
            shutil.rmtree(self.sockets, ignore_errors=True)

    def _interrupt(self, message: str, outputs: Outputs | None) -> None:
        """Stop a cell that runs too long; if it does not stop, end the kernel."""
        try:
            self.manager.interrupt_kernel()
            self._reply(message, GRACE, outputs)
        except (NoReply, KernelGone):
            self.close()

    def _request(self, source: str, seconds: float, **options: Any) -> dict[str, Any]:
        return self._reply(self._send(source, store_history=False, **options), seconds)

    def _send(self, source: str, **options: Any) -> str:
        return self.client.execute(source, allow_stdin=False, stop_on_error=False, **options)

    def _reply(
        self, message: str, seconds: float, outputs: Outputs | None = None
    ) -> dict[str, Any]:
        """The content of the reply to that message; what is shown meanwhile goes to `outputs`."""
        deadline = monotonic() + seconds
        while (left := deadline - monotonic()) > 0:
            ready = dict(self.poller.poll(1000 * min(left, STEP)))
            if self.iopub.socket in ready:
                self._shown(message, outputs)
            if self.shell.socket in ready:
                reply = self._receive(self.shell)
                if reply["parent_header"].get("msg_id") == message:
                    if outputs is not None:
                        self._drain(message, GRACE, outputs)
                    return reply["content"]
            if not ready and not self.alive:
                raise KernelGone(self._ending())
        raise NoReply

    def _drain(self, message: str, seconds: float, outputs: Outputs | None = None) -> None:
        """Read what was shown before the reply."""
        deadline = monotonic() + seconds
        while self.idle != message and (left := deadline - monotonic()) > 0:
            if self.iopub.socket.poll(1000 * min(left, 1.0)):
                self._shown(message, outputs)
            elif left > 1.0:
                return

    def _shown(self, message: str, outputs: Outputs | None) -> None:
        """Take one message of the output channel."""
        received = self._receive(self.iopub)
        if received["parent_header"].get("msg_id") != message:
            return
        if received["content"].get("execution_state") == "idle":
            self.idle = message  # nothing more will come of this request
        elif outputs is not None:
            outputs.add(received)

    def _receive(self, channel: Any) -> dict[str, Any]:
        try:
            received = channel.get_msg(timeout=0)
            for part in ("header", "parent_header", "content"):
                if not isinstance(received[part], dict):
                    raise TypeError(part)
            return received
        except Exception as error:
            raise KernelGone(f"its messages make no sense: {type(error).__name__}") from None

    def _ending(self) -> str:
        """How the process ended, in words."""
        if why := getattr(self.manager.provisioner, "why", ""):
            return why
        code = run_sync(self.manager.provisioner.poll)()
        if not isinstance(code, int) or code >= 0:
            return f"exit status {code}"
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"


def _environment() -> dict[str, str]:
    """The kernel must find this package, installed or not."""
    path = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": ""}
