"""Give the pages one small style sheet in place of the theme's ten.

Together these are half a megabyte, most of it for things that this book does not have, and a phone
shows nothing before the last of them has come. The book's sheet holds the rules whose classes and
ids occur in a page or a script of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import tinycss2
from offline import is_wanted

SHEET = "_static/site.css"
THEME = ("_static/styles/theme.css", "_static/styles/pydata-sphinx-theme.css")  # first on a page
NESTED = ("media", "supports", "layer", "container")
FONTS = ("Font Awesome", "FontAwesome")  # _ext/icons.py draws the icons
ATTRIBUTE = re.compile(r"""\b(?:class|id)=["']([^"']*)["']""")
WORD = re.compile(r"[A-Za-z_][\w-]*")
NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
FUNCTION = re.compile(r":[\w-]+\((?:[^()]|\([^()]*\))*\)")
URL = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)""")
IMPORT = re.compile(r"""@import\s+(?:url\()?\s*["']([^"']+)["']\s*\)?\s*;""")


def used_words(site: Path) -> set[str]:
    """Classes and ids of the pages, and every word of their scripts, which may set one."""
    words: set[str] = set()
    for page in [*site.glob("*.html"), *site.glob("book/*.html")]:
        for value in ATTRIBUTE.findall(page.read_text(encoding="utf-8")):
            words.update(value.split())
    for script in [*site.glob("_static/*.js"), *site.glob("_static/scripts/*.js")]:
        words.update(WORD.findall(script.read_text(encoding="utf-8")))
    return words


def is_used(selector: str, words: set[str]) -> bool:
    """May this selector match anything? What stands inside :not(...) and the like may be unused."""
    names = NAME.findall(FUNCTION.sub("", selector))
    return all(name.replace("\\", "") in words for name in names)


def selectors(prelude: list) -> list[str]:
    """The parts of `a, b:is(c, d)`, cut at its outer commas."""
    parts: list[list] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [tinycss2.serialize(part).strip() for part in parts]


def short(tokens: list) -> str:
    """The text without comments, and with single blanks."""
    text = tinycss2.serialize([token for token in tokens if token.type != "comment"])
    return re.sub(r"\s+", " ", text).strip()


def purged(css: str | list, words: set[str]) -> str:
    """The rules of a style sheet that may match something in the site."""
    kept = []
    for rule in tinycss2.parse_rule_list(css, skip_comments=True, skip_whitespace=True):
        if rule.type == "qualified-rule":
            used = [each for each in selectors(rule.prelude) if is_used(each, words)]
            kept.append(f"{','.join(used)}{{{short(rule.content)}}}" if used else "")
        elif rule.type == "at-rule":
            kept.append(purged_at(rule, words))
    return "\n".join(filter(None, kept))


def purged_at(rule, words: set[str]) -> str:
    head = f"@{rule.at_keyword} {short(rule.prelude)}"
    if rule.content is None:
        return f"{head};"
    if rule.lower_at_keyword in NESTED:
        inner = purged(rule.content, words)
        return f"{head}{{{inner}}}" if inner else ""
    body = short(rule.content)
    if rule.lower_at_keyword == "font-face" and any(font in body for font in FONTS):
        return ""
    return f"{head}{{{body}}}"


def read(site: Path, name: str) -> str:
    """A style sheet with what it imports, its addresses as seen from the folder of SHEET."""
    folder = posixpath.dirname(name)

    def moved(match: re.Match) -> str:
        if match[1].startswith(("data:", "#")) or "://" in match[1]:
            return match[0]
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        return f'url("{posixpath.relpath(target, posixpath.dirname(SHEET))}")'

    css = (site / name).read_text(encoding="utf-8")
    imported = [posixpath.normpath(posixpath.join(folder, path)) for path in IMPORT.findall(css)]
    own = URL.sub(moved, IMPORT.sub("", css))
    return "\n".join([*(read(site, path) for path in imported), own])


def link_one(app, pagename, templatename, context, doctree) -> None:
    """Keep the sheets that only this page has, after the one that all pages share."""
    shared = {sheet.filename for sheet in app.builder._orig_css_files}
    own = [sheet for sheet in context["css_files"] if getattr(sheet, "filename", "") not in shared]
    context["css_files"] = [SHEET, *own]


def write(app, error) -> None:
    if error or not hasattr(app.builder, "_orig_css_files"):  # not HTML, or nothing was written
        return
    site = Path(app.outdir)
    named = [str(sheet.filename) for sheet in app.builder._orig_css_files if is_wanted(sheet)]
    sheets = [*THEME, *sorted(named, key=lambda name: name.endswith("book.css"))]
    words = used_words(site)
    css = "\n".join(purged(read(site, name), words) for name in sheets)
    (site / SHEET).write_text(css, encoding="utf-8")


def setup(app) -> dict:
    app.connect("html-page-context", link_one, priority=1000)  # after _ext/offline.py
    app.connect("build-finished", write, priority=900)  # after all who write a sheet
    return {"parallel_read_safe": True, "parallel_write_safe": True}
