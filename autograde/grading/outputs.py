"""What a cell shows, from a kernel's messages to a notebook's outputs, within limits."""

from __future__ import annotations

import contextlib
from typing import Any

import nbformat
from nbformat.v4 import new_output, output_from_msg

from autograde.grading.page import clean_data

TEXT = 20_000  # characters of printed text that are kept for one cell
RICH = 4_000_000  # characters of everything else: a few pictures
MANY = 500  # outputs of one cell, however small
KINDS = ("stream", "display_data", "execute_result", "error")


class Outputs:
    """Collects the messages of one cell; what goes beyond the limits is counted and dropped."""

    def __init__(self, text: int = TEXT, rich: int = RICH):
        self.room = {True: text, False: rich}
        self.kept: list[Any] = []
        self.dropped = 0

    def add(self, message: dict[str, Any]) -> None:
        """Take a message of the output channel; nonsense is passed over."""
        with contextlib.suppress(Exception):  # the student's process wrote it
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["header"].get("msg_type"), message["content"]
        if kind == "clear_output":
            self.kept.clear()
        if kind not in KINDS:
            return
        if len(self.kept) >= MANY:
            self.room = dict.fromkeys(self.room, 0)
        is_text = kind == "stream"
        size = len(content.get("text", "")) if is_text else len(repr(content))
        room = self.room[is_text]
        self.room[is_text] = max(room - size, 0)
        if is_text and room:
            self._stream(str(content["text"])[:room], str(content.get("name")))
            self.dropped += max(size - room, 0)
        elif not is_text and size <= room:
            self._rich(message)
        else:
            self.dropped += size

    def _stream(self, text: str, name: str) -> None:
        name = "stderr" if name == "stderr" else "stdout"
        last = self.kept[-1] if self.kept else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.kept.append(new_output("stream", name=name, text=text))

    def _rich(self, message: dict[str, Any]) -> None:
        output = output_from_msg(message)
        if "data" in output:
            output.data, output.metadata = clean_data(output.data), {}
        nbformat.validate(output, ref="output", version=4)
        if output.get("data", True):
            self.kept.append(output)

    def outputs(self) -> list[Any]:
        """What the notebook stores."""
        if self.dropped:
            text = f"\n... {self.dropped:,} more characters were left out here\n"
            return [*self.kept, new_output("stream", name="stdout", text=text)]
        return self.kept


def failure(name: str, text: str) -> Any:
    """An error output that says one sentence, without a traceback."""
    return new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
