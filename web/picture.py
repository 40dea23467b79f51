"""Make README.md's picture of the book, from the book as it is built: python -m web.picture

Left a chapter; right the same chapter's exercise with a wrong answer, which the page has checked.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

from web.browse import browser
from web.serve import serving

SITE, INTO = Path("_build/html"), Path("book/images/no-peeking.png")
SIZE = {"width": 860, "height": 860}
WRONG = """def causal_mask(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return np.tril(np.ones((n_query, n_key), bool))"""


def take() -> Path:
    """Open the chapter twice, let the page check a wrong answer, and put both side by side."""
    with serving(SITE) as address, browser() as running:
        page = running.new_page(viewport=SIZE, color_scheme="light")
        page.goto(f"{address}/book/03-causal-mask.html")
        figure = page.locator("article figure").first
        figure.scroll_into_view_if_needed()
        figure.evaluate("each => window.scrollBy(0, each.getBoundingClientRect().top - 420)")
        page.wait_for_timeout(1000)
        left = page.screenshot()
        place = page.locator('.try-it[data-exercise="causal_mask"]')
        place.get_by_role("button", name="Try it here").click()
        place.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(WRONG)
        below = place.locator("xpath=following-sibling::*[1]")
        below.get_by_role("button", name="Check").click()
        below.get_by_text("What this looks like").wait_for(timeout=240_000)
        place.evaluate("each => window.scrollBy(0, each.getBoundingClientRect().top - 70)")
        page.wait_for_timeout(1000)
        right = page.screenshot()
    return side_by_side(left, right)


def side_by_side(left: bytes, right: bytes) -> Path:
    pictures = [Image.open(BytesIO(each)) for each in (left, right)]
    both = Image.new("RGB", (2 * SIZE["width"] + 20, SIZE["height"]), "#d0d7de")
    both.paste(pictures[0], (0, 0))
    both.paste(pictures[1], (SIZE["width"] + 20, 0))
    INTO.parent.mkdir(parents=True, exist_ok=True)
    both.quantize(128).save(INTO, optimize=True)  # a few colours: it is mostly text
    return INTO


if __name__ == "__main__":
    if not (SITE / "pyodide").is_dir():
        sys.exit(
            "The picture shows a check in the page, so Pyodide is needed: python -m web.vendor"
        )
    print(take())
