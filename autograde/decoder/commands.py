"""The two commands: train a decoder, and sample from it."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from autograde.decoder import checkpoint, corpus, settings
from autograde.decoder.evaluation import resolve
from autograde.decoder.generation import generate
from autograde.decoder.model import Config, Decoder
from autograde.decoder.processes import joined, processes
from autograde.decoder.progress import Progress
from autograde.decoder.recipe import Recipe
from autograde.decoder.training import fit
from autograde.reference.ch11_training import split_tokens

_GO_ON = "python -m autograde.decoder train --resume --out"


def train(options: Namespace) -> int:
    """Train, or go on with it. Exit status: 0 done, 2 stopped before the end."""
    device = settings.find_device(options.device)
    if options.save_every is not None and options.save_every < 1:
        raise ValueError(f"--save-every {options.save_every}: at least 1 is wanted")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        # The same bits every time: see "Reproducibility" in PyTorch's notes.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
    out = Path(options.out or f"runs/{Path(options.corpus or 'topics').stem}")
    with joined(device):
        if processes()[0] != 0:
            return _train(options, device, out)
        is_new = not out.exists()
        if not options.resume:
            out.mkdir(parents=True, exist_ok=True)
            if (out / "checkpoint.pt").exists():
                raise ValueError(
                    f"{out} holds a checkpoint already: go on with it (--resume), "
                    "or give another --out"
                )
        try:
            with checkpoint.locked(out) if out.is_dir() else nullcontext():
                return _train(options, device, out)
        finally:
            if is_new and out.is_dir() and not any(out.iterdir()):
                out.rmdir()  # the training never began


def _train(options: Namespace, device: torch.device, out: Path) -> int:
    """Train in this process; the first one writes and prints."""
    content = checkpoint.load(out) if options.resume else None
    prepare = _start if content is None else _resume
    text, config, recipe, val_fraction = prepare(options, device, content)
    torch.manual_seed(recipe.seed)
    model = Decoder(config).to(device)
    splits = split_tokens(text.tokens, val_fraction)
    is_first, state = processes()[0] == 0, content and content["training"]
    floor = text.source and text.source.floor(recipe.block)
    progress = Progress(out if is_first else None, recipe.steps, state, floor)
    about = settings.as_data(config, recipe, val_fraction)
    about["save_every"] = options.save_every or (content and content["save_every"])
    about["symbols"] = text.characters.symbols
    about["threads"] = torch.get_num_threads()
    about["corpus"] = {"name": text.name, "fingerprint": text.fingerprint()}

    def save(state: dict) -> None:
        try:
            checkpoint.save(out / "checkpoint.pt", about | {"training": state})
        except OSError as error:
            raise OSError(f"{error}. Mend that, then {_GO_ON} {out}") from error

    if is_first:
        _introduce(text, splits, model, recipe, device, content)
    with _signals() as stop:
        rows = fit(
            model,
            *splits,
            recipe,
            progress,
            state=state,
            save=save if is_first else None,
            save_every=about["save_every"],
            stop=stop,
        )
    is_done = bool(rows) and rows[-1]["step"] == recipe.steps
    if is_first:
        progress.draw()
        _conclude(out, is_done, rows, floor)
    return 0 if is_done else 2


def _start(options: Namespace, device: torch.device, content: None):
    """Corpus, model, recipe and split of a new training."""
    text = corpus.load(options.corpus or "topics")
    given = {"val_fraction": 0.1} | settings.asked_for(options)
    config, recipe = settings.build(given, len(text.characters))
    recipe = replace(recipe, precision=resolve(recipe.precision, device))
    return text, config, recipe, given["val_fraction"]


def _resume(options: Namespace, device: torch.device, content: dict):
    """The same of a checkpoint, once it agrees with what the options ask for."""
    config, recipe = Config(**content["config"]), Recipe(**content["recipe"])
    made = settings.as_data(config, recipe, content["val_fraction"])
    settings.check_same(settings.asked_for(options), made)
    was = content["corpus"]
    text = corpus.load(options.corpus or was["name"])
    if text.fingerprint() != was["fingerprint"]:
        raise ValueError(
            f"corpus {text.name} is not what the checkpoint was made from "
            f"({was['name']}): the text differs. Give that text, or train anew "
            "into another --out"
        )
    return text, config, recipe, content["val_fraction"]


def _introduce(text, splits, model, recipe, device, content) -> None:
    n_parameters = sum(p.numel() for p in model.parameters())
    print(
        f"corpus {text.name}: {len(text.tokens):,} characters, "
        f"{len(text.characters)} different; {len(splits[0]):,} to train on, "
        f"{len(splits[1]):,} to test on\n"
        f"decoder: {n_parameters:,} parameters; {recipe.steps:,} steps of "
        f"{recipe.batch} x {recipe.block} tokens, {recipe.precision} on {device}, "
        f"processes: {processes()[1]}, CPU threads: {torch.get_num_threads()}",
        flush=True,
    )
    if content is not None:
        print(f"goes on after step {content['training']['step']}", flush=True)
        was, now = content.get("threads"), torch.get_num_threads()
        if was and was != now and device.type == "cpu":
            print(
                f"it was saved at {was} CPU threads and goes on at {now}: the last "
                "bits differ from those of one run at one number",
                flush=True,
            )


def _conclude(
    out: Path, is_done: bool, rows: list[dict], floor: float | None
) -> None:
    if not is_done:
        print(f"stopped, and saved. To go on:\n  {_GO_ON} {out}")
        return
    if floor is not None:
        ratio = rows[-1]["val_loss"] / floor
        print(
            f"the entropy floor is {floor:.4f}: the loss is {ratio:.4f} times that"
        )
    print(
        f"wrote checkpoint.pt, metrics.jsonl and loss.png in {out}. To sample:\n"
        f"  python -m autograde.decoder generate {out / 'checkpoint.pt'}"
    )


@contextmanager
def _signals() -> Iterator:
    """A function that says whether SIGINT or SIGTERM has come."""
    asked = []

    def ask(number, frame) -> None:
        # torchrun passes on what the terminal has sent to all: there twice is once.
        if asked and processes()[1] == 1:
            raise KeyboardInterrupt
        asked.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def sample(options: Namespace) -> int:
    """Print a prompt and what the model of a checkpoint makes of it."""
    device = settings.find_device(options.device)
    content = checkpoint.load(Path(options.checkpoint))
    model = checkpoint.model_of(content).to(device)
    characters = corpus.Characters(content["symbols"])
    prompt = options.prompt
    if prompt is None:
        prompt = "\n" if "\n" in characters.symbols else characters.symbols[0]
    ids = characters.encode(prompt).to(device)
    if options.n_new < 0 or not len(ids):
        raise ValueError(
            "give a prompt of at least 1 character, and --n-new from 0 on"
        )
    how = {
        name: getattr(options, name) for name in ("temperature", "top_k", "top_p")
    }
    for new in continued(model, ids, options.n_new, options.seed, **how):
        print(prompt + characters.decode(new), end="", flush=True)
        prompt = ""
    print(prompt)
    return 0


def continued(
    model: Decoder, ids: torch.Tensor, n_new: int, seed: int, **how
) -> Iterator:
    """Continue token ids (n,) by n_new, however many; yields the new ones in parts.

    Each piece fills the model's context. The next starts with its second half, read
    anew into an empty cache. how: as in `generate`.
    """
    is_endless, max_seq = model.config.endless, model.config.max_seq
    context = ids if is_endless else ids[-max_seq:]
    while n_new > 0:
        n = n_new if is_endless else min(n_new, max_seq + 1 - len(context))
        (out,) = generate(model, [context], n, seed=seed, **how)
        yield out[len(context) :]
        context, n_new, seed = out[-((max_seq + 1) // 2) :], n_new - n, seed + 1
