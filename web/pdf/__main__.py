"""Print the built book to one PDF: python -m web.pdf

Chromium prints the site's pages, so that paper and screen show the same: pictures and formulas stay
vectors, and every heading becomes a bookmark. It prints twice, for only the first printing tells on
which page each heading stands, which the contents are to say.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from web.browse import browser
from web.pdf.assemble import Book, read_toc
from web.serve import serving

HERE = Path(__file__).resolve().parent
PDF = Path("_build/no-peeking.pdf")
WIDTH = 643  # CSS pixels between the margins of A4, 170 mm


class CannotPrint(Exception):
    """Something is missing; the text says what, and how to get it."""


def print_book(root: Path = Path(), into: Path | None = None) -> tuple[Path, int]:
    """Print `root/_build/html` and give the PDF's path and number of pages."""
    site, target = root / "_build/html", root / PDF if into is None else into
    if not (site / "book").is_dir():
        raise CannotPrint(f"{site} holds no book; build it first: make book")
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    book = Book(site, read_toc(root / "_toc.yml"), config["title"], "../html/")
    with tempfile.TemporaryDirectory(prefix="print-", dir=site.parent) as folder:
        document = Path(folder) / "book.html"
        with serving(site.parent) as address:
            url = f"{address}/{document.parent.name}/book.html"
            numbers: dict[str, int] = {}
            for _ in range(2):  # the second time with the numbers that the first one gave
                style = (HERE / "book.css").read_text(encoding="utf-8")
                document.write_text(book.text(_cover(config), style, numbers), encoding="utf-8")
                _print(url, Path(folder) / "book.pdf")
                numbers, count = _numbers(Path(folder) / "book.pdf")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(folder) / "book.pdf", target)
    return target, count


def _cover(config: dict) -> str:
    return (
        f'<header class="cover"><p class="title">{config["title"]}</p>'
        "<p>Masked self-attention, from the autoregressive constraint to a trained decoder</p>"
        f"<p>{config['author']}, {config['copyright']}. Text and figures: CC BY 4.0. Code: BSD "
        "3-Clause.</p><p>Printed from the site, where one can also try, be checked and play. "
        "Answers that are folded there stand at the end here; code that only draws a picture "
        "is left out.</p></header>"
    )


def _print(url: str, path: Path) -> None:
    with browser() as opened:
        page = opened.new_page(viewport={"width": WIDTH, "height": 900})
        page.set_default_timeout(300_000)
        page.emulate_media(media="print", color_scheme="light")
        page.goto(url, wait_until="load")
        page.evaluate("async () => { await window.MathJax?.startup?.promise; }")
        page.evaluate("() => document.fonts.ready.then(() => true)")
        page.evaluate((HERE / "fit.js").read_text(encoding="utf-8"))
        page.pdf(path=path, prefer_css_page_size=True, print_background=True, outline=True,
                 tagged=True)  # fmt: skip


def _numbers(path: Path) -> tuple[dict[str, int], int]:
    """On which page each linked id stands, counted from 1, and how many pages there are."""
    from pypdf import PdfReader

    reader = PdfReader(path)
    order = {page.indirect_reference.idnum: n for n, page in enumerate(reader.pages, start=1)}
    targets = reader.named_destinations.items()
    return {name.lstrip("/"): order[target.page.idnum] for name, target in targets}, len(order)


def main(arguments: list[str] | None = None) -> int:
    """0: printed. 2: it could not be."""
    parser = argparse.ArgumentParser(prog="python -m web.pdf", description=__doc__.split("\n")[0])
    parser.add_argument("--into", type=Path, help=f"the file to write (default: {PDF})")
    options = parser.parse_args(arguments)
    try:
        path, count = print_book(into=options.into)
    except (CannotPrint, FileNotFoundError) as error:
        print(f"The book cannot be printed: {error}", file=sys.stderr)
        return 2
    print(f"{path}: {count} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
