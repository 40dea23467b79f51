"""Set the formulas when the book is built, not in every reader's browser.

MathJax is a megabyte of JavaScript that takes seconds on a phone. It runs here instead, in V8
(mini-racer), and the pages hold what it makes: HTML, a style sheet, and MathML for screen readers.
Where MathJax is not laid (`python -m web.vendor`), the readers' browsers do the work.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number, wrap_displaymath

MATHJAX = "_build/vendor/mathjax/tex-mml-chtml.js"
STYLE = "mathjax.css"
SECONDS = 20
BEFORE = re.compile(r'([(\[“‘]+)(<span class="math notranslate[^>]*>)')
AFTER = re.compile(r"(?<=</mjx-container>)</span>((?:&\w+;|[^\s<&]){1,12})")
log = logging.getLogger(__name__)


class Setter:
    """MathJax, started once; every formula is set once."""

    def __init__(self, mathjax: Path):
        from py_mini_racer import MiniRacer

        self.engine = MiniRacer()
        for script in (Path(__file__).with_name("dom.js"), mathjax):
            self.engine.eval(script.read_text(encoding="utf-8") + ";0", timeout_sec=SECONDS)
        self.engine.eval(
            "const html = (tex, display) => MathJax.tex2chtml(tex, { display }).outerHTML; 0"
        )
        self.done: dict[tuple[str, bool], str] = {}

    def html(self, tex: str, display: bool) -> str:
        """The formula as HTML. What MathJax cannot read stands in an mjx-merror."""
        if (tex, display) not in self.done:
            self.done[tex, display] = self.engine.call("html", tex, display)
        return self.done[tex, display]

    def style(self) -> str:
        """The style sheet of all formulas so far."""
        return self.engine.eval("MathJax.chtmlStylesheet().textContent")


def source(node: nodes.math | nodes.math_block) -> tuple[str, bool]:
    """The formula's TeX, and whether it stands in a line of its own."""
    tex, display = node.astext(), isinstance(node, nodes.math_block)
    if display and not node.get("nowrap") and ("\n\n" in tex.strip() or r"\\" in tex):
        tex = wrap_displaymath(tex, None, numbering=False)
    return tex, display


def visit(translator, node: nodes.math | nodes.math_block) -> None:
    tex, display = source(node)
    html = translator.builder.app.setter.html(tex, display)
    if "<mjx-merror" in html:
        log.warning("MathJax cannot read this formula: %s", tex, location=node)
    tag = "div" if display else "span"
    translator.body.append(translator.starttag(node, tag, "", CLASS="math notranslate"))
    if display and node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(f"{html}</{tag}>")
    raise nodes.SkipNode


def start(app, config) -> None:
    """Take over from Sphinx's MathJax, if ours is there."""
    mathjax = Path(app.confdir) / MATHJAX
    # Where nothing is said, Sphinx takes the renderer that is not its own.
    config.html_math_renderer = "set" if mathjax.is_file() else "mathjax"
    if mathjax.is_file():
        app.setter = Setter(mathjax)
        app.add_css_file(STYLE)


def keep_together(app, pagename, templatename, context, doctree) -> None:
    """Take what stands right beside a formula into its span, so that no line begins with a comma.

    Browsers break lines on either side of a formula, which is a box to them, whatever follows.
    """
    if "body" in context:
        context["body"] = AFTER.sub(r"\1</span>", BEFORE.sub(r"\2\1", context["body"]))


def write_style(app, error) -> None:
    """The style sheet of all formulas, those of pages that were not written anew included."""
    if error or not hasattr(app, "setter") or app.builder.format != "html":
        return
    for name in app.env.found_docs:
        doctree = app.env.get_doctree(name)
        for node in [*doctree.findall(nodes.math), *doctree.findall(nodes.math_block)]:
            app.setter.html(*source(node))
    (Path(app.outdir) / "_static" / STYLE).write_text(app.setter.style(), encoding="utf-8")


def setup(app) -> dict:
    app.add_html_math_renderer("set", (visit, None), (visit, None))
    app.connect("config-inited", start)
    app.connect("html-page-context", keep_together)
    app.connect("build-finished", write_style)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
