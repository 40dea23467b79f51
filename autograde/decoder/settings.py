"""From the words of a command line to a corpus, a model and a recipe."""

from __future__ import annotations

import ast
import difflib
import os
from argparse import Namespace
from dataclasses import asdict, fields

import torch

from autograde.decoder.model import Config
from autograde.decoder.recipe import Recipe

MODEL = {"d_model": 128, "n_layers": 4, "n_heads": 4}
RECIPE_KEYS = [field.name for field in fields(Recipe)]
CONFIG_KEYS = [field.name for field in fields(Config) if field.name != "vocab"]


def parse(pairs: list[str]) -> dict:
    """{"d_model": 64} of ["d_model=64"]; raises a ValueError for unknown keys."""
    return dict(_parse(pair) for pair in pairs)


def _parse(pair: str) -> tuple[str, object]:
    key, equals, text = pair.partition("=")
    known = CONFIG_KEYS + RECIPE_KEYS
    if not equals:
        raise ValueError(
            f"--config {pair}: give key=value, as in --config d_model=64"
        )
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        hint = (
            f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        )
        raise ValueError(f"--config {pair}: there is no {key!r}; {hint}")
    if text.lower() in ("true", "false", "none"):
        text = text.capitalize()
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text  # a name, such as rotary
    value = tuple(value) if isinstance(value, list) else value
    types = {field.name: field.type for field in (*fields(Config), *fields(Recipe))}
    if types[key] == "bool" and not isinstance(value, bool):
        raise ValueError(f"--config {pair}: give true or false")
    return key, value


def asked_for(options: Namespace) -> dict:
    """What the options ask for: those of --config and those of their own name."""
    asked = parse(options.config)
    for key in ("steps", "seed", "precision", "compile", "val_fraction"):
        if getattr(options, key) is not None:
            asked[key] = getattr(options, key)
    if not 0 < asked.get("val_fraction", 0.1) < 1:
        raise ValueError(f"--val-fraction {asked['val_fraction']}: between 0 and 1")
    return asked


def build(given: dict, vocab: int) -> tuple[Config, Recipe]:
    """The settings of model and training: what is given, defaults for the rest."""
    recipe = Recipe(**{key: given[key] for key in RECIPE_KEYS if key in given})
    sizes = MODEL | {"vocab": vocab, "max_seq": recipe.block}
    sizes |= {key: given[key] for key in CONFIG_KEYS if key in given}
    if isinstance(sizes["d_model"], int):  # else Config says what is wrong
        sizes.setdefault("d_ff", 4 * sizes["d_model"])
    return Config(**{"d_ff": 1, **sizes}), recipe


def check_same(given: dict, made: dict) -> None:
    """Raise a ValueError if a checkpoint was made with other settings."""
    settings = made["config"] | made["recipe"] | made
    for key, value in given.items():
        if value != settings[key] and (key, value) != ("precision", "auto"):
            raise ValueError(
                f"{key}={value} is asked for, and the checkpoint was made with "
                f"{key}={settings[key]}. Leave it out to go on as before, or train "
                "anew into another --out"
            )


def as_data(config: Config, recipe: Recipe, val_fraction: float) -> dict:
    """What a checkpoint keeps of them."""
    data = {"config": asdict(config), "recipe": asdict(recipe)}
    return data | {"val_fraction": val_fraction}


def find_device(name: str) -> torch.device:
    """The device of this name; "auto": a GPU if there is one. torchrun gives each
    process its own. ValueError: there is no such device.
    """
    gpus = torch.cuda.device_count()
    if name == "auto":
        name = "cuda" if gpus else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"--device {name}: choose auto, cpu, cuda, or cuda:1 and so on"
        )
    if device.type == "cpu":
        return device
    if device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    if device.index >= gpus:
        raise ValueError(
            f"--device {name}: this PyTorch ({torch.__version__}) sees {gpus} GPUs "
            "here. Use --device auto or cpu; under torchrun, a process for each GPU"
        )
    return device
