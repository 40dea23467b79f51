"""What one sees of a training: a line a report, a file of metrics, a plot."""

from __future__ import annotations

import io
import json
import math
from datetime import timedelta
from pathlib import Path
from time import monotonic

from autograde.decoder.checkpoint import write

PLOT_EVERY = 30  # seconds


class Diverged(ArithmeticError):
    """The loss is not a number any more."""


class Progress:
    """Called with each row of `fit`.

    folder: where metrics.jsonl and loss.png go. None: only look at the loss.
    steps: of the whole training. state: what it goes on from, if any.
    floor: the lowest loss possible, if it is known.
    """

    def __init__(self, folder: Path | None, steps: int, state=None, floor=None):
        self.folder, self.steps, self.floor = folder, steps, floor
        self.rows = list(state["rows"]) if state else []
        self.first_step = state["step"] if state else 0
        self.begin = self.drawn = monotonic()

    def __call__(self, row: dict) -> None:
        before = self.rows[-1] if self.rows else {"tokens": 0, "seconds": 0.0}
        self.rows.append(row)
        if self.folder is not None:
            print(self.line(row, before), flush=True)
            lines = [json.dumps(_finite(row)) + "\n" for row in self.rows]
            write(self.folder / "metrics.jsonl", "".join(lines).encode())
            if monotonic() - self.drawn > PLOT_EVERY:
                self.draw()
        if not math.isfinite(row["loss"]):
            raise Diverged(
                f"the loss is {row['loss']} after step {row['step']}: the training "
                "has diverged. A lower max_lr, a longer warmup or clipping may help"
            )

    def line(self, row: dict, before: dict) -> str:
        speed = (row["tokens"] - before["tokens"]) / (
            row["seconds"] - before["seconds"]
        )
        pace = (monotonic() - self.begin) / (row["step"] - self.first_step)
        left = timedelta(seconds=round(pace * (self.steps - row["step"])))
        return (
            f"step {row['step']:>{len(str(self.steps))}}/{self.steps}  "
            f"loss {row['loss']:.4f}  val {row['val_loss']:.4f}  "
            f"lr {row['lr']:.1e}  norm {row['norm']:.2f}  "
            f"{speed:,.0f} tokens/s  {left} left"
        )

    def draw(self) -> None:
        """Write loss.png: the loss of both splits against the steps."""
        self.drawn = monotonic()
        try:
            from matplotlib.figure import Figure
        except ImportError:
            print("no loss.png: matplotlib is not installed", flush=True)
            return
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        steps = [row["step"] for row in self.rows]
        for name, style in (("loss", "-"), ("val_loss", "--o")):
            label = {"loss": "training", "val_loss": "validation"}[name]
            values = [row[name] for row in self.rows]
            axes.plot(steps, values, style, markersize=3, label=label)
        if self.floor is not None:
            axes.axhline(
                self.floor, color="black", linestyle=":", label="entropy floor"
            )
        axes.set(xlabel="step", ylabel="loss (nats per token)")
        axes.legend()
        axes.grid(alpha=0.3)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=150)
        write(self.folder / "loss.png", picture.getbuffer())


def _finite(row: dict) -> dict:
    """JSON knows no NaN."""
    return {
        name: None
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for name, value in row.items()
    }
