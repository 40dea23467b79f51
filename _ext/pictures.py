"""Tell the browser how large a picture is before it has come, and to fetch it when it is near.

Without the size, the text moves when the picture arrives.
"""

from __future__ import annotations

import re
from pathlib import Path

IMAGE = re.compile(r"<img(?P<rest>[^>]*? src=\"(?:\.\./)*_images/(?P<name>[^\"]+)\"[^>]*?)\s*/?>")
PIXELS = {"pt": 4 / 3, "px": 1, "": 1}


def size(path: Path) -> tuple[int, int] | None:
    """Width and height in CSS pixels of an SVG or PNG file; None for any other."""
    if path.suffix == ".png":
        head = path.read_bytes()[:24]
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if path.suffix != ".svg":
        return None
    tag = re.search(r"<svg\b[^>]*>", path.read_text(encoding="utf-8"))
    sides = [re.search(rf'\b{side}="([\d.]+)(pt|px|)"', tag[0]) for side in ("width", "height")]
    return tuple(round(float(s[1]) * PIXELS[s[2]]) for s in sides) if all(sides) else None


def add_sizes(app, pagename, templatename, context, doctree) -> None:
    files = {name: source for source, name in app.builder.images.items()}

    def sized(match: re.Match) -> str:
        found = size(Path(app.srcdir) / files[match["name"]]) if match["name"] in files else None
        known = found and "width=" not in match["rest"] and "height=" not in match["rest"]
        extra = f' width="{found[0]}" height="{found[1]}"' if known else ""
        return f'<img{match["rest"]}{extra} loading="lazy" decoding="async" />'

    if "body" in context:
        context["body"] = IMAGE.sub(sized, context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", add_sizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
