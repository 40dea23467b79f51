"""A Jupyter kernel that runs a submission: cells and requests go in, outputs and replies out.

Transport only: nothing here knows of exercises or points, and nothing that comes from the
kernel is evaluated. Which kernel it is (a plain one, a sandboxed one) is the kernel spec's
business.
"""

from __future__ import annotations

import ast
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

from autograde.grading.outputs import Outputs

if TYPE_CHECKING:
    from traitlets.config import Config

LARGEST = 64 * 2**20  # bytes of one message; a larger one is dropped before it is read
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

    def __init__(self, name: str, folder: str, config: Config | None = None, startup: float = 60.0):
        self.sockets = tempfile.mkdtemp(prefix="no-peeking-")  # short: a socket's path is limited
        transport = {"transport": "ipc", "ip": f"{self.sockets}/k"} if os.name == "posix" else {}
        self.manager = KernelManager(kernel_name=name, config=config, **transport)
        self.client, self.idle = None, ""
        try:
            self.manager.start_kernel(
                cwd=folder,
                env=_environment(),
                stdout=subprocess.DEVNULL,  # what a process writes past Jupyter is not for us
                stderr=subprocess.DEVNULL,
                extra_arguments=["--HistoryManager.hist_file=:memory:"],
            )
            self._connect(startup)
            self._request(PREPARE, startup, silent=True)
        except Exception as error:
            self.close()
            raise KernelUnavailable(
                f"the kernel {name!r} did not start ({type(error).__name__}: {error}); "
                "`jupyter kernelspec list` shows the kernels there are"
            ) from error

    def _connect(self, startup: float) -> None:
        self.client = self.manager.client()
        self.client.context.setsockopt(zmq.MAXMSGSIZE, LARGEST)
        self.client.start_channels()
        self.client.wait_for_ready(timeout=startup)
        self.shell, self.iopub = self.client.shell_channel, self.client.iopub_channel
        self.poller = zmq.Poller()
        for channel in (self.shell, self.iopub):
            self.poller.register(channel.socket, zmq.POLLIN)

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
        payloads = reply.get("payload") or []
        if any(isinstance(p, dict) and p.get("source") == "ask_exit" for p in payloads):
            return "exit"  # `exit()` or `quit()`: the kernel stops in a moment
        return "ok" if reply.get("status") == "ok" else "error"

    def ask(self, request: str, seconds: float) -> str:
        """Send a request of `batch.together`; the text of the reply, whatever it is."""
        expression = {"reply": ANSWER.format(request=request)}
        reply = self._request("", seconds, silent=True, user_expressions=expression)
        try:
            shown = reply["user_expressions"]["reply"]["data"]["text/plain"]
            return str(ast.literal_eval(shown))
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
                if reply.get("parent_header", {}).get("msg_id") == message:
                    self._drain(message, outputs)
                    return reply["content"]
            if not ready and not self.alive:
                raise KernelGone(self._ending())
        raise NoReply

    def _drain(self, message: str, outputs: Outputs | None) -> None:
        """Read what was shown before the reply; without `outputs`, what has arrived so far."""
        wait, deadline = (
            (1000, monotonic() + GRACE) if outputs is not None else (0, monotonic() + 1)
        )
        while self.idle != message and monotonic() < deadline and self.iopub.socket.poll(wait):
            self._shown(message, outputs)

    def _shown(self, message: str, outputs: Outputs | None) -> None:
        """Take one message of the output channel."""
        received = self._receive(self.iopub)
        if received.get("parent_header", {}).get("msg_id") != message:
            return
        if received["content"].get("execution_state") == "idle":
            self.idle = message  # nothing more will come of this request
        elif outputs is not None:
            outputs.add(received)

    def _receive(self, channel: Any) -> dict[str, Any]:
        try:
            received = channel.get_msg(timeout=0)
            if not isinstance(received["content"], dict):
                raise TypeError("content")
            return received
        except Exception as error:
            raise KernelGone(f"its messages make no sense: {type(error).__name__}") from None

    def _ending(self) -> str:
        """How the process ended, in words."""
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
