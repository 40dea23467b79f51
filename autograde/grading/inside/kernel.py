"""An IPython kernel on sockets that the grader has made, in a process that was forked."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

CONNECTION = "../connection.json"  # beside the kernel's folder


def run(connection: dict[str, Any], sockets: dict[str, int]) -> None:
    """Serve the kernel until it is told to end.

    sockets: {channel: descriptor of a listening socket}. So the kernel makes no file that the
    grader would have to open.
    """
    import zmq
    from ipykernel.kernelapp import IPKernelApp

    class Kernel(IPKernelApp):
        outstream_class = "inside.stream.Stream"

        def _bind_socket(self, socket: Any, port: int) -> int:
            (channel,) = (name for name in sockets if connection[f"{name}_port"] == port)
            socket.setsockopt(zmq.USE_FD, sockets[channel])
            return super()._bind_socket(socket, port)

        def init_heartbeat(self) -> None:
            """Nobody listens to it: whether the process lives is known outside."""

    # A message that is not copied needs a thread, and by then there may be no more of them.
    zmq.COPY_THRESHOLD = never = 10**9
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(CONNECTION, "w") as file:
        json.dump(connection, file)
    app = Kernel.instance()
    options = ("HistoryManager.enabled=False", f"Session.copy_threshold={never}")
    app.initialize(["-f", os.path.abspath(CONNECTION), *(f"--{option}" for option in options)])
    for stream in (sys.stdout, sys.stderr):
        app.shell.events.register("pre_run_cell", stream.refill)
    app.shell._tee = lambda channel: contextlib.nullcontext()  # it keeps all that is printed
    app.start()
    os._exit(0)
