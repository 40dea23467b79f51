"""Seconds to a validation loss of 1.88 on Tiny Shakespeare: our recipe against the plain one.

The plain one is nanoGPT's: its README trains a decoder of this size on a laptop's CPU, 2,000
steps of AdamW that end near that loss. Both recipes train the same `Decoder` in the same loop on
one thread, in turn, a hundredth each, so that what else the computer does slows both. Evaluating
is not timed. The processor's seconds are given, too: on a computer that does nothing else they
are the same. An ablation tells what each change is worth: one row for each, of equal steps.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict, replace
from statistics import median
from time import process_time
from typing import Any

import torch

from autograde.decoder.corpus import Corpus, load
from autograde.decoder.model import Config, Decoder
from autograde.decoder.training import Training
from autograde.reference.ch11_training import split_tokens
from bench.recipes import OURS, PLAIN, Setup, ablation

TARGET = 1.88  # nats per character: what nanoGPT's README says
SHAKESPEARE = (1_115_394, 65)  # its characters, and how many different ones
SIZES = {"d_model": 128, "n_layers": 4, "n_heads": 4, "d_ff": 512, "max_seq": 64}
PARTS = 100  # of a training, done in turn with others
TINY = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32, "max_seq": 64}
HOW_TO_GET_IT = """\
Tiny Shakespeare is needed and is not part of this project. It is data/tinyshakespeare/input.txt
in the repository karpathy/char-rnn on GitHub. Then: python -m bench train --corpus input.txt
(or say where it is in the environment variable TINYSHAKESPEARE).
Without it, --corpus topics races on a text that every Python has, to a target of its own."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--corpus", help="Tiny Shakespeare's file, another text, or topics")
    parser.add_argument("--seeds", type=int, default=3, help="races, each from its own weights")
    parser.add_argument("--threads", type=int, default=1, help="of the processor")


def run(
    quick: bool = False, corpus: str | None = None, seeds: int = 3, threads: int = 1
) -> dict[str, Any]:
    """Race as often as there are seeds; then the ablation, from the first seed's weights."""
    torch.set_num_threads(threads)
    found = find("topics" if quick else corpus)
    plain, ours, sizes, text = PLAIN, OURS, SIZES, found.tokens
    if quick:
        plain, ours, sizes = plain.but(steps=20, warmup=1), ours.but(steps=10, warmup=1), TINY
        seeds, text = 2, text[:3000]
    sizes = {"vocab": len(found.characters), **sizes}
    known = (len(text), len(found.characters)) == SHAKESPEARE
    splits = split_tokens(text, 0.1)
    races = [race(plain, ours, seed, sizes, splits) for seed in range(seeds)]
    target = TARGET if known else max(r["plain"]["val_loss"] for r in races)
    races = [with_times(r, target) for r in races]
    return {
        "corpus": "Tiny Shakespeare" if known else os.path.basename(found.name),
        "characters": len(text),
        "symbols": len(found.characters),
        "target": target,
        "target_is": "nanoGPT's" if known else "the last loss of plain",
        "model": sizes,
        "plain": asdict(plain),
        "ours": asdict(ours),
        "races": races,
        **{ratio: middle([r[ratio] for r in races]) for ratio in ("ratio", "processor_ratio")},
        "ablation": ablate(ablation(plain, ours), sizes, splits),
    }


def middle(ratios: list[float | None]) -> float | None:
    """The median; None if ours did not always reach the target."""
    return None if None in ratios else median(ratios)


def find(name: str | None) -> Corpus:
    """The corpus of this name or file; by default Tiny Shakespeare, wherever it is said to be."""
    name = name or os.environ.get("TINYSHAKESPEARE")
    if not name:
        raise ValueError(HOW_TO_GET_IT)
    return load(name)


def start(setup: Setup, seed: int, sizes: dict, splits) -> Training:
    """As nanoGPT's, the model has no biases: they stay zero."""
    torch.manual_seed(seed)
    model = Decoder(Config(**sizes, **setup.config))
    for name, parameter in model.named_parameters():
        if name.endswith("_bias") or ".b_" in name:
            parameter.requires_grad_(False)
    return Training(model, *splits, replace(setup.recipe, seed=seed))


def race(plain: Setup, ours: Setup, seed: int, sizes: dict, splits) -> dict[str, Any]:
    """Train both in turn, and evaluate after each tenth."""
    setups = {"plain": plain, "ours": ours}
    trainings = {name: start(setup, seed, sizes, splits) for name, setup in setups.items()}
    spent = dict.fromkeys(trainings, 0.0)
    for part in in_turn(trainings, [s.steps for s in setups.values()], spent):
        if part % (PARTS // 10):
            continue
        for name, training in trainings.items():
            row = training.measure()
            row["processor_seconds"] = spent[name]
            print(f"train: seed {seed}, {name:5} " + line(row), flush=True)
    return {"seed": seed, **{name: summary(t.rows) for name, t in trainings.items()}}


def in_turn(trainings: dict[str, Training], steps: list[int], spent: dict) -> Iterator[int]:
    """Advance each by a part of its steps; yield how many parts are done, until all are.

    The processor's seconds of each are added to those in `spent`.
    """
    for part in range(1, PARTS + 1):
        for (name, training), n in zip(trainings.items(), steps, strict=True):
            begin = process_time()
            while training.step < n * part // PARTS:
                training.advance()
            spent[name] += process_time() - begin
        yield part


def summary(rows: list[dict]) -> dict[str, Any]:
    last = rows[-1]
    return {
        "steps": last["step"],
        "seconds": last["seconds"],
        "processor_seconds": last["processor_seconds"],
        "tokens": last["tokens"],
        "tokens_per_second": last["tokens"] / last["seconds"],
        "val_loss": last["val_loss"],
        "curve": rows,
    }


def with_times(found: dict[str, Any], target: float) -> dict[str, Any]:
    """A race with both times to the target, and the ratio of ours to plain, by both clocks.

    Where plain ends above the target its whole time counts, which is too short for it: the
    ratio is then at least as good as the one given. None: ours does not reach the target.
    """
    found = {**found, **{name: dict(found[name]) for name in ("plain", "ours")}}
    for clock, ratio in (("seconds", "ratio"), ("processor_seconds", "processor_ratio")):
        for name in ("plain", "ours"):
            reached = seconds_to(found[name]["curve"], target, clock)
            found[name][f"{clock}_to_target"] = reached
        allowed = found["plain"][f"{clock}_to_target"] or found["plain"][clock]
        needed = found["ours"][f"{clock}_to_target"]
        found[ratio] = None if needed is None else needed / allowed
    return found


def seconds_to(rows: list[dict], target: float, clock: str = "seconds") -> float | None:
    """When the validation loss first came down to the target, by straight lines between rows.

    None: it never did. A first row that is there already counts with its own time.
    """
    before = None
    for row in rows:
        if row["val_loss"] <= target:
            if before is None:
                return row[clock]
            part = (before["val_loss"] - target) / (before["val_loss"] - row["val_loss"])
            return before[clock] + part * (row[clock] - before[clock])
        before = row
    return None


def ablate(setups: dict[str, Setup], sizes: dict, splits) -> list[dict[str, Any]]:
    """Train all in turn, from the first seed's weights; a row for each."""
    trainings = {name: start(setup, 0, sizes, splits) for name, setup in setups.items()}
    spent = dict.fromkeys(trainings, 0.0)
    for part in in_turn(trainings, [s.steps for s in setups.values()], spent):
        if part % (PARTS // 10) == 0:
            print(f"train: ablation, {len(setups)} rows, {part} of {PARTS} parts", flush=True)
    rows = []
    for name, training in trainings.items():
        row = training.measure()
        print(f"train: {name:30} " + line(row), flush=True)
        kept = {key: row[key] for key in ("step", "seconds", "loss", "val_loss")}
        rows.append({"name": name, **kept, "processor_seconds": spent[name]})
    return rows


def line(row: dict[str, Any]) -> str:
    seconds, loss = row["seconds"], row["val_loss"]
    return f"step {row['step']:5,}  {seconds:7.1f} s  validation loss {loss:.4f}"


def show(data: dict[str, Any]) -> str:
    """The races, then the ablation."""
    target = data["target"]
    lines = [f"{data['corpus']}: seconds to a validation loss of {target:.4f}"]
    if data["target_is"] != "nanoGPT's":
        lines.append("(not Tiny Shakespeare: this target is where the plain recipe ended)")
    for found in data["races"]:
        for name in ("plain", "ours"):
            lines.append(f"seed {found['seed']}  {name:5} " + told(found[name]))
        if found["ratio"] is not None:
            lines.append(f"seed {found['seed']}  ours / plain: {found['ratio']:.3f}")
    if data["ratio"] is not None:
        lines.append(
            f"median of the ratios: {data['ratio']:.3f} "
            f"(by the processor's seconds: {data['processor_ratio']:.3f})"
        )
    for row in data["ablation"]:
        lines.append(f"{row['name']:30} {row['val_loss']:8.4f} {row['seconds']:8.1f} s")
    return "\n".join(lines)


def told(run: dict[str, Any]) -> str:
    reached = run["seconds_to_target"]
    when = "not reached" if reached is None else f"{reached:.1f} s"
    return (
        f"{when:>11}; {run['steps']:5,} steps in {run['seconds']:6.1f} s, "
        f"{run['tokens_per_second']:7,.0f} tokens/s, loss {run['val_loss']:.4f}"
    )
