"""Pictures that one can play with: the directive `play`.

    ```{play} ch03
    What to see.
    ```

It calls `autograde.figures.play_ch03.play()` and writes what that computed into the page, for
`web/figures/ch03.js` to show, and a table for paper and for where no script runs. Pages
without such a picture get neither script nor style sheet.
"""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

FIGURES = Path(__file__).parent.parent / "web" / "figures"
SITES = ("html", "dirhtml", "singlehtml")  # the builders of pages that run scripts
IN_SITE = "play"  # not below _static: Jupyter Book puts every script there on every page

# Set before anything is drawn, so that the table never flashes up. Modules do not load from file:.
HEAD = """
<link rel="stylesheet" href="{path}/play.css">
<script>
if (location.protocol !== "file:") document.documentElement.classList.add("play-on")
</script>
<script type="module" src="{path}/play.js"
 onerror="document.documentElement.classList.remove('play-on')"></script>
"""


class play(nodes.General, nodes.Element):
    """Title, caption and `paper`; attributes: name, tall and data (JSON)."""


class paper(nodes.General, nodes.Element):
    """The table that stands for the picture."""


class PlayDirective(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if not (FIGURES / f"{name}.js").exists():
            raise self.error(f"no picture {name!r} to play with: web/figures/{name}.js is missing")
        module = import_module(f"autograde.figures.play_{name}")
        self.env.note_dependency(module.__file__)
        made = module.play()
        node = play(name=name, tall=made.tall, data=as_json(made.data))
        title = nodes.paragraph(classes=["play-title"], ids=[f"play-{name}"])
        title += nodes.strong(text=made.title)
        caption = nodes.paragraph(classes=["play-caption"])
        caption += self.parse_inline(" ".join(self.content), lineno=self.lineno)[0]
        node += [title, paper("", table(made.head, made.rows)), caption]
        return [node]


def as_json(data) -> str:
    """JSON that may stand in a script element: nothing in it ends that element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def table(head, rows) -> nodes.table:
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=100 // len(head)) for _ in head]
    group += [nodes.thead("", row(head)), nodes.tbody("", *map(row, rows))]
    return nodes.table("", group)


def row(cells) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


def visit_play(self, node) -> None:
    if self.builder.name not in SITES:
        return
    wide, phone = node["tall"]
    self.body.append(
        f'<div class="play" data-play="{node["name"]}" role="group" '
        f'aria-labelledby="play-{node["name"]}" style="--wide:{wide}px;--phone:{phone}px">\n'
    )


def depart_play(self, node) -> None:
    if self.builder.name in SITES:
        self.body.append(f'<script type="application/json">{node["data"]}</script>\n</div>\n')


def visit_paper(self, node) -> None:
    if self.builder.name in SITES:
        self.body.append('<div class="play-stage"></div>\n<div class="play-paper">\n')


def depart_paper(self, node) -> None:
    if self.builder.name in SITES:
        self.body.append("</div>\n")


def nothing(self, node) -> None:
    """On paper: what is inside."""


def add_to_head(app, pagename, templatename, context, doctree) -> None:
    """Script and style sheet, for the pages that have a picture."""
    if 'class="play"' in context.get("body", ""):
        path = context["pathto"](IN_SITE, resource=True)
        context["metatags"] = context.get("metatags", "") + HEAD.format(path=path)


def lay_files(app, exception) -> None:
    if exception is None and app.builder.name in SITES:
        into = Path(app.outdir, IN_SITE)
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(FIGURES, into)


def setup(app) -> dict:
    on_paper = dict.fromkeys(("latex", "text", "man", "texinfo"), (nothing, nothing))
    app.add_node(play, html=(visit_play, depart_play), **on_paper)
    app.add_node(paper, html=(visit_paper, depart_paper), **on_paper)
    app.add_directive("play", PlayDirective)
    app.connect("html-page-context", add_to_head)
    app.connect("build-finished", lay_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
