"""Build JupyterLite with the exercises that need NumPy only: python -m web.lite

It goes to _build/lite, from where the book's build takes it into the site, as lite/. It runs on
the site's own Pyodide and asks no other host for anything. A cell that imports `autograde` gets it
by itself, as it gets NumPy: our lock file, Pyodide's with two wheels more, says where it lies.
`ignore_sys_prefix` keeps out this environment's extensions (nbgrader's), which break JupyterLite.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from web.lite.run_all import go_on_where_asked
from web.sheet import chapters
from web.vendor import INTO as VENDOR
from web.wheel import CannotBuild, wheel

HERE = Path(__file__).resolve().parent
INTO = Path("_build/lite")
CACHE = Path("_build/lite-wheels")
TO_BOOK = re.compile(r"\[([^][]+)\]\(\.\./\.\./book/[\w-]+\.md\)")  # leads nowhere in JupyterLite


def build(root: Path = Path()) -> bool:
    """Put JupyterLite into `root/_build/lite/lite`, and say whether anything had to be done.

    Raises
    ------
    CannotBuild: something that it needs is not there; the text says what to do.
    """
    pyodide = root / VENDOR / "pyodide" / "pyodide-lock.json"
    if not pyodide.is_file():
        raise CannotBuild("Pyodide is not there; python -m web.vendor says what to do")
    notebooks = [root / c.path for c in chapters(root.resolve()).values() if c.in_browser]
    kernel, comm = _wheels(root / CACHE)
    ours, stamp = wheel(root), root / CACHE / "made-from"
    inputs = [pyodide, ours, kernel, comm, *notebooks, *sorted(HERE.glob("*.*"))]
    made_from = "".join(f"{_sha256(path)} {path.name}\n" for path in inputs)
    target = root / INTO / "lite"
    if target.is_dir() and stamp.is_file() and stamp.read_text() == made_from:
        return False
    with tempfile.TemporaryDirectory(prefix="no-peeking-") as folder:
        made = _jupyterlite(Path(folder), kernel, notebooks)
        for each in (ours, comm):
            shutil.copy(each, made)
        lock = with_wheels(json.loads(pyodide.read_text(encoding="utf-8")), ours, comm)
        (made / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
    stamp.write_text(made_from)
    return True


def with_wheels(lock: dict, autograde: Path, comm: Path) -> dict:
    """Pyodide's lock file with two packages more, which lie in lite/."""
    for path, package, needs in ((autograde, "autograde", "numpy"), (comm, "comm", "traitlets")):
        name, version = path.name.split("-")[:2]
        name = name.replace("_", "-")
        lock["packages"][name] = {
            "name": name,
            "version": version,
            "file_name": f"../lite/{path.name}",  # seen from pyodide/
            "sha256": _sha256(path),
            "imports": [package],
            "depends": [needs],
            "install_dir": "site",
            "package_type": "package",
            "unvendored_tests": False,
        }
    return lock


def _wheels(folder: Path) -> tuple[Path, Path]:
    """The kernel and `comm`, from this folder or else from the package index."""
    names = ("jupyterlite_pyodide_kernel-*.whl", "comm-*.whl")
    if not all(any(folder.glob(name)) for name in names):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:"]
        command += ["-d", str(folder), "-r", str(HERE / "wheels.txt")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CannotBuild(f"pip could not download {HERE.name}/wheels.txt\n{done.stderr}")
    kernel, comm = (next(folder.glob(name)) for name in names)
    return kernel, comm


def _jupyterlite(work: Path, kernel: Path, notebooks: list[Path]) -> Path:
    """What `jupyter lite build` makes, far from its own leftovers of earlier runs."""
    for path in notebooks:
        place = work / "files" / path.parent.name / path.name
        place.parent.mkdir(parents=True)
        place.write_text(TO_BOOK.sub(r"\1", path.read_text("utf-8")), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--force"]
    command += ["--config", str(HERE / "jupyter_lite_config.json"), "--lite-dir", str(work / "src")]
    command += [f"--LiteBuildConfig.federated_extensions={kernel.resolve()}"]
    command += ["--contents", str(work / "files"), "--output-dir", str(work / "out")]
    (work / "src").mkdir()
    for name in ("jupyter-lite.json", "overrides.json"):
        shutil.copy(HERE / name, work / "src")
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode or not (work / "out/lab/index.html").is_file():
        raise CannotBuild(f"jupyter lite build failed\n{(done.stdout + done.stderr)[-3000:]}")
    go_on_where_asked(sorted(work.glob("out/build/*.js")))
    return work / "out"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """0: it is there. 1: it cannot be built here, and the site will do without."""
    try:
        changed = build()
    except CannotBuild as error:
        print(f"The site is built without JupyterLite: {error}", file=sys.stderr)
        return 1
    if changed:
        print(f"{INTO}/lite: JupyterLite with the exercises that need NumPy only")
    return 0


if __name__ == "__main__":
    sys.exit(main())
