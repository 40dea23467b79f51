"""python -m bench           runs all benchmarks of the CPU and writes bench/results/
python -m bench NAME ...  runs one; --help tells its options

A benchmark is a module of this folder: `run(**options) -> dict` measures, `show(data) -> str`
makes a table of what was found, `options(parser)` adds its own options, if it has any.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from bench.record import RESULTS, write

CPU = ("decode", "memory", "train", "grading")
NAMES = (*CPU, "gpu", "faults")


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        print(f"NAME is one of {', '.join(NAMES)}")
        return 0
    names, rest = CPU, arguments
    if arguments and not arguments[0].startswith("-"):
        names, rest = arguments[:1], arguments[1:]
    if names[0] not in NAMES:
        print(f"bench: no benchmark {names[0]!r}: there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in names:
        try:
            bench(name, rest)
        except (ModuleNotFoundError, OSError, ValueError) as error:
            print(f"bench {name}: {error}", file=sys.stderr)
            return 2
    return 0


def bench(name: str, arguments: list[str]) -> None:
    """Run one; a quick trial leaves the results as they are, unless --out says where else."""
    module = importlib.import_module(f"bench.{name}")
    parser = argparse.ArgumentParser(prog=f"python -m bench {name}", description=module.__doc__)
    parser.add_argument("--out", type=Path, help="folder for the results (bench/results)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    if hasattr(module, "options"):
        module.options(parser)
    chosen = vars(parser.parse_args(arguments))
    out = chosen.pop("out")
    data = module.run(**chosen)
    print(module.show(data), flush=True)
    if out or not chosen["quick"]:
        write(name, data, out or RESULTS)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("bench: stopped")
