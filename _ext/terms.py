"""Link each term of the glossary where a chapter's running text first uses it.

Authors write nothing. Headings, captions, tables, code, formulas and folds stay as they are, and so
do words that are as often meant in their everyday sense.
"""

from __future__ import annotations

import re

from docutils import nodes
from folds import folded
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

CHAPTER = re.compile(r"book/\d\d-")
EVERYDAY = {"backend", "block", "kernel", "parameter", "position", "value", "weights"}
CLOSED = (
    nodes.title, nodes.caption, nodes.table, nodes.reference, nodes.literal, nodes.literal_block,
    nodes.math, nodes.math_block, nodes.raw, nodes.figure, folded,
)  # fmt: skip


def pattern(term: str) -> str:
    """The term, or its plural; its first letter may be large, unless the term has large letters."""
    start, rest = re.escape(term[0]), re.escape(term[1:])
    plural = "(?:s|es)?" if term == term.lower() else "s?"
    return (f"(?i:{start})" if term == term.lower() else start) + rest + plural


def search_for(terms: list[str]) -> re.Pattern:
    """The longest term at a place, as a word of its own: group i + 1 is terms[i]."""
    return re.compile(r"(?<![\w-])(?:" + "|".join(f"({pattern(t)})" for t in terms) + r")(?![\w-])")


class LinkTerms(SphinxPostTransform):
    default_priority = 600
    formats = ("html",)

    def run(self, **_) -> None:
        if not CHAPTER.match(self.env.docname):
            return
        places = {
            name: (page, label)
            for (kind, name), (page, label) in self.env.get_domain("std").objects.items()
            if kind == "term" and name.lower() not in EVERYDAY
        }
        terms = sorted(places, key=len, reverse=True)
        found, linked = search_for(terms) if terms else None, self.linked_by_hand(places)
        for text in list(self.document.findall(nodes.Text)) if found else []:
            if is_running(text):
                self.link(text, found, terms, places, linked)

    def linked_by_hand(self, places: dict) -> set[str]:
        uris = {node.get("refuri", "") for node in self.document.findall(nodes.reference)}
        labels = {uri.partition("#")[2] for uri in uris}
        return {name for name, (_, label) in places.items() if label in labels}

    def link(self, text: nodes.Text, found: re.Pattern, terms, places, linked: set[str]) -> None:
        pieces, end = [], 0
        for match in found.finditer(text):
            name = terms[match.lastindex - 1]
            if name in linked:
                continue
            linked.add(name)
            pieces.append(nodes.Text(text[end : match.start()]))
            page, label = places[name]
            reference = make_refnode(
                self.app.builder, self.env.docname, page, label, nodes.Text(match[0])
            )
            reference["classes"] = ["term"]
            pieces.append(reference)
            end = match.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[end:])])


def is_running(text: nodes.Text) -> bool:
    """Does it stand in a paragraph, and in nothing that is to stay as it is?"""
    node, in_paragraph = text.parent, False
    while node is not None:
        if isinstance(node, CLOSED):
            return False
        in_paragraph = in_paragraph or isinstance(node, nodes.paragraph)
        node = node.parent
    return in_paragraph


def setup(app) -> dict:
    app.add_post_transform(LinkTerms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
