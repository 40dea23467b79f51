"""Judge every chapter of the built book with Lighthouse: `make lighthouse` (Node and Chromium)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from web.browse import chromium, pages
from web.serve import SITE, serving

HERE = Path(__file__).parent


def main() -> int:
    node, browser = shutil.which("node"), chromium()
    missing = {"node": node, "chromium": browser, "npm": shutil.which("npm")}
    if not all(missing.values()):
        names = ", ".join(name for name, path in missing.items() if not path)
        print(f"not found: {names} (on Debian: apt install nodejs npm chromium)", file=sys.stderr)
        return 2
    if not (HERE / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True)
    chapters = [path for path in pages(SITE) if re.match(r"book/\d\d-", path)]
    with serving(SITE) as site:
        command = [node, str(HERE / "run.js"), site, *chapters]
        return subprocess.run(command, env={**os.environ, "CHROME_PATH": browser}).returncode


if __name__ == "__main__":
    sys.exit(main())
