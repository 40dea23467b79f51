"""Draw the icons that the pages use, and no others.

The theme brings all of Font Awesome as 1.5 MB of JavaScript. The shapes of those few that occur
are taken from it and become masks in a style sheet. (Font Awesome Free, icons CC BY 4.0.)
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

SHEET = "icons.css"
SOURCE = "_static/scripts/fontawesome.js"
USED = re.compile(r"\bfa-([a-z][a-z0-9-]*)")
SHAPE = r'[{{,]"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"\]'
RULES = """
:is({all}) {{ display: inline-block; flex: none; width: 1em; height: 1em; vertical-align: -.125em;
  background: currentcolor; mask: var(--icon) center / contain no-repeat; }}
:is({all})::before {{ content: none; }}
.fa-lg {{ font-size: 1.25em; vertical-align: -.075em; }}
@media (forced-colors: active) {{
  :is({all}) {{ forced-color-adjust: none; background: CanvasText; }} }}
"""


def mask(name: str, library: str) -> str | None:
    """The icon as the value of a CSS property; None where there is none of this name."""
    shapes = re.findall(SHAPE.format(name=re.escape(name)), library)
    if not shapes:
        return None
    width, height, path = shapes[-1]  # brands and outlines come before the solid shapes
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    svg = quote(f'<svg {box}><path d="{path}"/></svg>', safe=" =:/")
    return f'url("data:image/svg+xml,{svg}")'


def write(app, error) -> None:
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    library = (site / SOURCE).read_text(encoding="utf-8")
    pages = [*site.glob("*.html"), *site.glob("book/*.html")]
    names = {name for page in pages for name in USED.findall(page.read_text(encoding="utf-8"))}
    masks = {name: mask(name, library) for name in sorted(names)}
    drawn = {name: shape for name, shape in masks.items() if shape}
    rules = [f".fa-{name} {{ --icon: {shape}; }}" for name, shape in drawn.items()]
    css = RULES.format(all=", ".join(f".fa-{name}" for name in drawn)) + "\n".join(rules)
    (site / "_static" / SHEET).write_text(css, encoding="utf-8")


def setup(app) -> dict:
    app.add_css_file(SHEET)
    app.connect("build-finished", write, priority=800)  # before _ext/styles.py
    return {"parallel_read_safe": True, "parallel_write_safe": True}
