"""The Python half of an exercise in the page: runs cells, checks functions, tells what came of it.

`worker.js` makes one `Session` and hands it requests. What the reader is to see goes out at once
through `tell(kind, text)`, of kind "text" (printed), "error", "html" (a report) or "image" (a PNG
in base 64); how it ended is the result.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import linecache
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from wasm import fit

from autograde import calls, checking
from autograde.checking import ClaimsFail
from autograde.report import Report

Cell = tuple[str, str]  # (name, source)
BEFORE = 5.0  # seconds for a cell that only prepares another one
PRINTED = 200_000  # characters of one request that are shown


class _Printed(io.TextIOBase):
    """Passes on what is printed, up to a length that a page can show."""

    def __init__(self, tell: Callable[[str, str], None]):
        self.tell, self.left = tell, PRINTED

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.left > 0:
            self.tell("text", text[: self.left])
            self.left -= len(text)
            if self.left <= 0:
                self.tell("text", f"\n(more than {PRINTED:,} characters; the rest is left out)\n")
        return len(text)


class Session:
    """One chapter's names, as in a notebook whose cells were run from the top."""

    def __init__(self, tell: Callable[[str, Any], None]):
        self.tell = tell
        self.prepared: list[Cell] | None = None
        self.preparing = False
        self.module = types.ModuleType("page")
        sys.modules["page"] = self.module  # dataclasses and pickle look a class's module up
        self.names = vars(self.module)
        self.fresh = {"__name__": "page", "__builtins__": __builtins__, "display": self._display}
        self.clock = fit(tell)
        checking._display = self._shown
        self.reports: list[Report] = []

    def run(self, before: list[Cell], cells: list[Cell]) -> dict[str, Any]:
        """Run the cells, after those that come before; stop at the first that fails.

        Returns
        -------
        ok: did all run? passed, points, of: of the last check among them, if there was one.
        """
        printed = _Printed(self.tell)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            self._prepare(before)
            self.reports.clear()
            ok = all(self._run(name, source) for name, source in cells)
            self._figures()
        ended = {"ok": ok}
        if self.reports:
            examination = self.reports[-1].examination
            ended |= {"passed": examination.passed, "points": examination.points}
            ended["of"] = examination.exercise.points
        return ended

    def hint(self, name: str, given: int) -> dict[str, Any]:
        """The hint that follows on `given` earlier ones."""
        checking._hints_given[name] = given
        with contextlib.redirect_stdout(_Printed(self.tell)):
            checking.hint(name)
        return {"ok": True}

    def _prepare(self, before: list[Cell]) -> None:
        """Bring the names to where those cells leave them; what fails there is told."""
        if before != self.prepared:
            self.names.clear()
            self.names.update(self.fresh)
            self.prepared, self.preparing = None, True
            for name, source in before:
                self._quietly(name, source)
            self.prepared, self.kept, self.preparing = before, dict(self.names), False
        self.names.clear()
        self.names.update(self.kept)

    def _quietly(self, name: str, source: str) -> None:
        try:
            with contextlib.redirect_stdout(None), self.clock.limit(BEFORE):
                self._execute(name, source, show=False)
        except ClaimsFail:
            pass
        except BaseException as error:
            if not isinstance(error, NotImplementedError):
                self.tell("error", f"Before this, {name} failed. {_last_line(error)}\n")

    def _run(self, name: str, source: str) -> bool:
        try:
            self._execute(name, source)
        except ClaimsFail:
            pass  # its report was shown
        except BaseException as error:
            self.tell("error", _traceback(error))
            return False
        return True

    def _execute(self, name: str, source: str, show: bool = True) -> None:
        """Run a cell, and show the value of its last line as a notebook does."""
        file = f"<{name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        body = ast.parse(source, file).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        flags = annotations.compiler_flag  # as the notebook's first cell says
        exec(compile(ast.Module(body, []), file, "exec", flags, True), self.names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), file, "eval", flags, True), self.names)
            if show and value is not None and not source.rstrip().endswith(";"):
                self._display(value)

    def _display(self, *values: Any) -> None:
        for value in values:
            self._shown(value) if isinstance(value, Report) else self.tell("text", f"{value!r}\n")

    def _shown(self, report: Report) -> None:
        self.reports.append(report)
        if not self.preparing:
            self.tell("html", report._repr_html_())

    def _figures(self) -> None:
        if "matplotlib.pyplot" not in sys.modules:
            return
        from matplotlib import pyplot

        for number in pyplot.get_fignums():
            file = io.BytesIO()
            pyplot.figure(number).savefig(file, format="png", dpi=96, bbox_inches="tight")
            self.tell("image", base64.b64encode(file.getvalue()).decode())
        pyplot.close("all")


def _traceback(error: BaseException) -> str:
    """As Python prints it, without the frames of this module."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _last_line(error: BaseException) -> str:
    if isinstance(error, calls.OutOfTime):
        return f"It did not end within {BEFORE:g} s: an endless loop?"
    return traceback.format_exception_only(error)[-1].strip()
