"""Lay what the exercises need in the page into a folder that becomes part of the site.

    python -m web.site      # to _build/site

The scripts of `web/static`, the Python half of them, and the wheel of `autograde`. The students'
notebooks come to the site's `exercises` by _ext/launch.py.
"""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from web.wheel import wheel

INTO = Path("_build/site")
PYTHON = ("session.py", "wasm.py", "warned.py")  # as worker.js loads them


def lay(root: Path = Path(), into: Path | None = None) -> Path:
    """Fill `into` (ROOT/_build/site): its folder `web` then holds all that is needed."""
    target = (root / INTO if into is None else into) / "web"
    wanted = {path.name: path for path in (root / "web" / "static").iterdir()}
    wanted |= {name: root / "web" / name for name in PYTHON} | {"autograde.whl": wheel(root)}
    for name, source in wanted.items():
        place = target / name
        if not place.is_file() or not filecmp.cmp(source, place, shallow=False):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
    for place in [path for path in target.rglob("*") if path.is_file()]:
        if place.relative_to(target).as_posix() not in wanted:
            place.unlink()
    return target.parent


if __name__ == "__main__":
    print(lay())
