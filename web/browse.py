"""The browser that looks at the built book in tests and screenshots: Debian's Chromium."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path

DESKTOP = {"viewport": {"width": 1600, "height": 1000}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
FORMS = {
    "desktop-light": {**DESKTOP, "color_scheme": "light"},
    "desktop-dark": {**DESKTOP, "color_scheme": "dark"},
    "phone-light": {**PHONE, "color_scheme": "light"},
    "phone-dark": {**PHONE, "color_scheme": "dark"},
}
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def chromium() -> str | None:
    """Where a Chromium is installed; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser():
    """A Chromium without a window.

    Raises
    ------
    FileNotFoundError: there is none here.
    """
    from playwright.sync_api import sync_playwright

    path = chromium()
    if path is None:
        raise FileNotFoundError("no Chromium here (on Debian: apt install chromium)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=QUIET)
        try:
            yield running
        finally:
            running.close()


def pages(site: Path) -> list[str]:
    """The paths of all pages that a reader opens, in the order of their names."""
    found = [*site.glob("book/*.html"), site / "search.html", site / "genindex.html"]
    return sorted(path.relative_to(site).as_posix() for path in found)
