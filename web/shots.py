"""Screenshots of every page in four forms, to look at: `make shots` writes _build/shots/index.html.

python -m web.shots [PAGE ...]      # such as 03-causal-mask; else all
"""

from __future__ import annotations

import sys
from pathlib import Path

from web.browse import FORMS, browser, pages
from web.serve import SITE, serving

INTO = Path("_build/shots")
WHOLE = """() => {
    document.documentElement.classList.remove("in-parts");
    return document.documentElement.scrollHeight;
}"""
STRIP = 3000  # pixels; a taller picture is cut, or its letters could not be read


def shoot(page, address: str, form: str, name: str) -> list[str]:
    """The page from top to bottom, in strips; gives their file names."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    small, height = page.viewport_size, page.evaluate(WHOLE)
    page.set_viewport_size({**small, "height": height})  # so that all of it is in view, and drawn
    page.wait_for_load_state("networkidle")
    files = []
    for number, top in enumerate(range(0, height, STRIP)):
        files.append(f"{name}-{form}-{number}.png")
        clip = {"x": 0, "y": top, "width": small["width"], "height": min(STRIP, height - top)}
        page.screenshot(path=str(INTO / files[-1]), clip=clip)
    page.set_viewport_size(small)
    return files


def index(shots: dict[str, dict[str, list[str]]]) -> str:
    parts = ['<!doctype html><meta charset="utf-8"><title>Every page, four times</title>']
    parts.append("<style>td { vertical-align: top; } img { width: 320px; display: block; }</style>")
    for name, forms in shots.items():
        cells = "".join(f"<th>{form}</th>" for form in forms)
        parts.append(f"<h2>{name}</h2><table><tr>{cells}</tr><tr>")
        for files in forms.values():
            images = "".join(
                f'<a href="{f}"><img src="{f}" alt="" loading="lazy"></a>' for f in files
            )
            parts.append(f"<td>{images}</td>")
        parts.append("</tr></table>")
    return "\n".join(parts)


def main(wanted: list[str] | None = None) -> int:
    """0: they are made. 2: a page is not there."""
    there = {Path(path).stem: path for path in pages(SITE)}
    wanted = wanted or list(there)
    if missing := [name for name in wanted if name not in there]:
        told = ", ".join(there) or "none; build the book: make"
        print(f"no page is called {', '.join(missing)}; there are: {told}", file=sys.stderr)
        return 2
    INTO.mkdir(parents=True, exist_ok=True)
    shots: dict[str, dict[str, list[str]]] = {}
    with serving(SITE) as site, browser() as chromium:
        for form, options in FORMS.items():
            page = chromium.new_page(**options)
            for name in wanted:
                files = shoot(page, f"{site}/{there[name]}", form, name)
                shots.setdefault(name, {})[form] = files
            page.close()
    (INTO / "index.html").write_text(index(shots), encoding="utf-8")
    print(f"{INTO}/index.html: {len(shots)} pages in {len(FORMS)} forms")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
