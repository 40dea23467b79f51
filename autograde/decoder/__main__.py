"""Train a decoder, sample from it: `python -m autograde.decoder train | generate`.

Exit status: 0 all well, 1 the training diverged, 2 it could not run or was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import torch

from autograde.decoder import commands
from autograde.decoder.progress import Diverged
from autograde.decoder.recipe import PRECISIONS, Recipe


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except Diverged as error:
        return _say(error, 1)
    except BrokenPipeError:  # who read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        return _say(error, 2)
    except torch.OutOfMemoryError:
        return _say("out of memory: give a smaller batch, or more accumulation", 2)
    except RuntimeError as error:
        if not type(error).__module__.startswith(
            ("torch._dynamo", "torch._inductor")
        ):
            raise
        why = str(error).strip().splitlines()[0]
        return _say(f"torch.compile failed: {why}. Leave --compile out", 2)
    except KeyboardInterrupt:
        return _say("stopped", 2)


def _say(what: Exception | str, status: int) -> int:
    if isinstance(what, OSError) and what.filename is not None:
        what = f"{what.filename}: {what.strerror}"
    print(f"autograde.decoder: {what}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m autograde.decoder", description=__doc__
    )
    commands_ = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_train(commands_.add_parser("train", help="train a decoder on a text"))
    _add_generate(commands_.add_parser("generate", help="sample from a checkpoint"))
    return parser


def _add_train(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--corpus",
        metavar="topics|synthetic|FILE",
        help="Python's own reference (the default), a made-up source of known "
        "entropy, or a UTF-8 text file",
    )
    train.add_argument(
        "--config",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="of model and recipe, such as d_model=64 positions=rotary batch=32",
    )
    train.add_argument("--steps", type=int, help=f"default: {Recipe.steps}")
    train.add_argument(
        "--seed", type=int, help="of weights and batches; default: 0"
    )
    train.add_argument("--precision", choices=PRECISIONS, help="default: auto")
    train.add_argument(
        "--compile", action="store_true", default=None, help="with torch.compile"
    )
    train.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:1 ..."
    )
    train.add_argument("--out", metavar="DIR", help="default: runs/ and the corpus")
    train.add_argument(
        "--resume", action="store_true", help="go on with what is in DIR"
    )
    train.add_argument(
        "--save-every", type=int, metavar="STEPS", help="default: eval_every"
    )
    train.add_argument(
        "--val-fraction",
        type=float,
        help="how much of the text is for testing: 0.1",
    )
    train.set_defaults(run=commands.train)


def _add_generate(generate: argparse.ArgumentParser) -> None:
    generate.add_argument("checkpoint", help="what train wrote: DIR/checkpoint.pt")
    generate.add_argument("--prompt", help="default: a line end")
    generate.add_argument("--n-new", type=int, default=500, help="default: 500")
    generate.add_argument(
        "--temperature", type=float, default=0.8, help="0: greedy"
    )
    generate.add_argument("--top-k", type=int)
    generate.add_argument("--top-p", type=float)
    generate.add_argument("--seed", type=int, default=0)
    generate.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:1 ..."
    )
    generate.set_defaults(run=commands.sample)


if __name__ == "__main__":
    sys.exit(main())
