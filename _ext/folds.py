"""Fold what an author marks as a dropdown with the browser's own <details>.

It needs no script, works by keyboard, tells screen readers whether it is open, and does not move
the page when it loads. (sphinx-togglebutton folds with a script, after the page has shown it open.)
"""

from __future__ import annotations

from docutils import nodes
from sphinx.locale import admonitionlabels
from sphinx.transforms.post_transforms import SphinxPostTransform


class folded(nodes.General, nodes.Element):
    """Its first child is the title, which is always to be seen."""


class Fold(SphinxPostTransform):
    default_priority = 500
    formats = ("html",)

    def run(self, **_) -> None:
        for node in list(self.document.findall(nodes.Admonition)):
            if "dropdown" not in node.get("classes", []):
                continue
            title, *rest = node.children
            if not isinstance(title, nodes.title):
                name = admonitionlabels.get(node.tagname, node.tagname.capitalize())
                title, rest = nodes.title("", name), node.children
            classes = [*node["classes"], "admonition", node.tagname]
            fold = folded("", title, *rest, classes=list(dict.fromkeys(classes)), ids=node["ids"])
            node.replace_self(fold)


def visit(translator, node: folded) -> None:
    title = node.pop(0)
    translator.body.append(translator.starttag(node, "details"))
    translator.body.append('<summary class="admonition-title">')
    for child in title.children:
        child.walkabout(translator)
    translator.body.append("</summary>\n")


def depart(translator, node: folded) -> None:
    translator.body.append("</details>\n")


def setup(app) -> dict:
    app.add_node(folded, html=(visit, depart))
    app.add_post_transform(Fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
