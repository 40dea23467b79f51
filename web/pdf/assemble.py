"""The pages of the built site as one, for paper.

Each page's article stands in a section whose id is the page's name; all ids within begin with it,
and links between pages lead to them. What is folded on the site ("One way to write it") would give
the exercises away, so it stands at the end, among the answers, with a link from its place. Code
that only draws a picture, folded too, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

LEFT_OUT = ("progress",)  # a page that is for the browser alone
NOT_ON_PAPER = "script, style, .headerlink, .launch, .try-it, button, details.hide, .copybtn"
ANSWER = re.compile(r"^(One way|How it) ")


def pages(toc: dict) -> list[tuple[str | None, list[str]]]:
    """(caption, names) of the parts of _toc.yml, each name as book/03-causal-mask."""
    parts = [(None, [toc["root"]])]
    for part in toc.get("parts") or [{"chapters": toc.get("chapters", [])}]:
        names = [entry["file"] for entry in part["chapters"]]
        names = [name for name in names if PurePosixPath(name).name not in LEFT_OUT]
        parts.append((part.get("caption"), names))
    return parts


class Book:
    """One document made of the site's pages; `text` is its HTML.

    site: the built site. toc: _toc.yml, read. above: from the document to the site, as "../html/".
    """

    def __init__(self, site: Path, toc: dict, title: str, above: str):
        self.site, self.above, self.title = site, above, title
        self.soup = BeautifulSoup("<main></main>", "html.parser")
        self.parts = pages(toc)
        self.names = {PurePosixPath(name).name for _, names in self.parts for name in names}
        self.answers: list[Tag] = []
        self.heads: dict[str, None] = {}  # style sheets in the order of their first use
        self.headings: list[tuple[str | None, list[tuple[str, str, list]]]] = []
        for caption, names in self.parts:
            self.headings.append((caption, [self._add(name) for name in names]))
        self._add_answers()

    def _add(self, name: str) -> tuple[str, str, list]:
        """Add a page; gives its heading for the contents: (id, text, those of its sections)."""
        stem = PurePosixPath(name).name
        page = BeautifulSoup((self.site / f"{name}.html").read_text("utf-8"), "html.parser")
        for style in page.head.select('link[rel="stylesheet"], style'):
            if style.get("href"):
                style["href"] = self._from_document(style["href"], name)
            self.heads.setdefault(str(style))
        article = page.find("article")
        for each in article.select(NOT_ON_PAPER):
            each.decompose()
        for each in article.select("[id]"):
            each["id"] = f"{stem}--{each['id']}"
        for each in article.select("[for], [aria-labelledby], [aria-describedby]"):
            for key in ("for", "aria-labelledby", "aria-describedby"):
                if each.has_attr(key):
                    del each[key]
        for each in article.select("[src]"):
            each["src"] = self._from_document(each["src"], name)
            del each["loading"]
        for each in article.select("a[href]"):
            self._lead(each, stem)
        self._move_answers(article, page, stem)
        section = page.new_tag("section", id=stem, attrs={"class": "page bd-article"})
        section.extend(list(article.contents))
        self.soup.main.append(section)
        inner = [(h.parent.get("id", stem), _plain(h)) for h in section.select("h2")]
        return stem, _plain(section.h1), inner

    def _from_document(self, address: str, name: str) -> str:
        """The address of a page's picture or style sheet, seen from the document."""
        if urlsplit(address).scheme:
            return address
        parts = (PurePosixPath(name).parent / address).parts
        path: list[str] = []
        for part in parts:
            path = path[:-1] if part == ".." else [*path, part]
        return self.above + "/".join(path)

    def _lead(self, link: Tag, stem: str) -> None:
        """Let a link lead into this document, or out on the net; else it is plain text."""
        address = urlsplit(link["href"])
        target = PurePosixPath(address.path).stem if address.path else stem
        if address.scheme or address.netloc:
            return
        if target not in self.names or PurePosixPath(address.path).suffix not in ("", ".html"):
            link.unwrap()
            return
        link["href"] = f"#{target}--{address.fragment}" if address.fragment else f"#{target}"

    def _move_answers(self, article: Tag, page: BeautifulSoup, stem: str) -> None:
        for each in article.select(".dropdown"):
            title = each.select_one(".admonition-title")
            if title is None or not ANSWER.match(title.get_text(strip=True)):
                continue
            text = title.get_text(" ", strip=True)
            here, there = f"{stem}--asked-{len(self.answers)}", f"answer-{len(self.answers)}"
            line = page.new_tag("p", id=here)
            link = page.new_tag("a", href=f"#{there}")
            link.string = f"{text}, among the answers"
            line.append(link)
            each.replace_with(line)
            title.decompose()
            answer = page.new_tag("section", id=there, attrs={"class": "answer"})
            heading = page.new_tag("h3")
            heading.string = text
            back = page.new_tag("p")
            link = page.new_tag("a", href=f"#{here}")
            link.string = "Back to where it is asked"
            back.append(link)
            answer.extend([heading, *list(each.contents), back])
            answer["data-page"] = stem
            self.answers.append(answer)

    def _add_answers(self) -> None:
        """The answers after all pages, by chapter."""
        if not self.answers:
            return
        section = self.soup.new_tag("section", id="answers", attrs={"class": "page bd-article"})
        heading = self.soup.new_tag("h1")
        heading.string = "Answers"
        section.append(heading)
        titles = {stem: text for _, entries in self.headings for stem, text, _ in entries}
        inner, before = [], None
        for answer in self.answers:
            stem = answer.attrs.pop("data-page")
            if stem != before:
                below = self.soup.new_tag("h2", id=f"answers--{stem}")
                below.string = titles[stem]
                section.append(below)
                inner.append((f"answers--{stem}", titles[stem]))
                before = stem
            section.append(answer)
        self.soup.main.append(section)
        self.headings.append((None, [("answers", "Answers", inner)]))

    def text(self, front: str, style: str, numbers: dict[str, int]) -> str:
        """The whole document; `numbers` are the pages on which ids stand, where they are known."""
        rules = "\n".join(self._running_heads())
        return (
            '<!DOCTYPE html>\n<html lang="en" data-theme="light" data-mode="light"><head>'
            f'<meta charset="utf-8"><title>{self.title}</title>{"".join(self.heads)}'
            f"<style>{style}\n{rules}</style></head><body>{front}"
            f"{self._contents(numbers)}{self.soup.main}</body></html>"
        )

    def _running_heads(self) -> Iterator[str]:
        """Paper of its own for each page of the site, with its title at the top."""
        entries = (entry for _, part in self.headings for entry in part)
        for number, (stem, text, _) in enumerate(entries):
            head = f'content: "{_css(text)}"; font: 8.5pt sans-serif; color: #444;'
            yield f'[id="{stem}"] {{ page: p{number}; }}'
            yield f"@page p{number} {{ @top-center {{ {head} }} }}"

    def _contents(self, numbers: dict[str, int]) -> str:
        def line(target: str, text: str) -> str:
            number = numbers.get(target, "")
            return f'<a href="#{target}">{text}<span>{number}</span></a>'

        out = ['<nav class="book-contents"><h2>Contents</h2>']
        for caption, entries in self.headings:
            out.append(f'<p class="caption">{caption}</p><ol>' if caption else "<ol>")
            for stem, text, inner in entries:
                below = "".join(f"<li>{line(*each)}</li>" for each in inner)
                out.append(f"<li>{line(stem, text)}<ol>{below}</ol></li>")
            out.append("</ol>")
        return "".join([*out, "</nav>"])


def _plain(heading: Tag) -> str:
    return " ".join(heading.get_text(" ", strip=True).replace("&", "&amp;").split())


def _css(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


def read_toc(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
