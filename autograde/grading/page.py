"""What a submission may put on pages that its grader and its author open: no scripts, no links out.

A cell's output is cleaned when it comes from the kernel, Markdown when it is rendered, so pages
of the formgrader are clean, too. As a second wall a feedback page forbids, by its content
security policy, every script that is not its own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from copy import deepcopy
from functools import cache, lru_cache
from html import escape
from typing import Any, ClassVar

import bleach
from bleach.css_sanitizer import CSSSanitizer
from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat.v4 import new_notebook

TAGS = """
    a abbr b blockquote br caption center code col colgroup dd del details div dl dt em figcaption
    figure h1 h2 h3 h4 h5 h6 hr i img kbd li mark ol p pre q s samp small span strong sub summary
    sup table tbody td tfoot th thead tr u ul var
"""
ATTRIBUTES = "align alt class colspan height rowspan scope start style title width"
# No position, no z-index, no opacity, nothing with an address: a page must not be painted over.
STYLES = """
    background-color border border-collapse border-color border-style border-width color font-family
    font-size font-style font-weight height line-height max-width padding text-align text-decoration
    vertical-align white-space width
"""
KEPT = 500  # cells that are kept as they were rendered: most stand in every notebook of a class
LONGEST, TAGGED = 300_000, 5_000  # characters, and tags, of an output or a cell that is rendered
WITHOUT_TEXT = re.compile(r"<img\b(?![^>]*\salt\s*=)")
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "src":
        return tag == "img" and PICTURE.fullmatch(value) is not None
    if name == "href":
        return tag == "a" and value.strip().lower().startswith(("http:", "https:", "mailto:", "#"))
    if name == "style":  # no escapes, no addresses
        return (
            re.fullmatch(r"[\w\s:;,.#%()'\"+-]*", value) is not None and "url" not in value.lower()
        )
    return name in ATTRIBUTES.split()


def _small(text: str) -> bool:
    """Can it be cleaned in a second or two? That takes longer than its length suggests."""
    return len(text) <= LONGEST and text.count("<") <= TAGGED


def clean(html: str) -> str:
    """The text with nothing in it that acts: no script, form, frame, style sheet or address."""
    return bleach.clean(
        html,
        tags=frozenset(TAGS.split()),
        attributes=_allowed,
        protocols=("http", "https", "mailto", "data"),
        css_sanitizer=CSSSanitizer(allowed_css_properties=frozenset(STYLES.split())),
        strip=True,
    )


def clean_data(data: dict[str, Any]) -> dict[str, Any]:
    """Those forms of an output that are safe to show; an empty dict if there are none."""
    kept = {}
    for kind, value in data.items():
        text = "".join(map(str, value)) if isinstance(value, list) else str(value)
        if kind in ("text/plain", "text/latex"):
            kept[kind] = text
        elif kind in ("text/html", "text/markdown") and _small(text):
            kept[kind] = clean(text)
        elif PICTURE.fullmatch(f"data:{kind};base64,{text}"):
            kept[kind] = text
    return kept


@pass_context
def markdown(context: Any, source: str) -> str:
    """nbconvert's `markdown2html`, cleaned; the plain text of what cannot be rendered."""
    attached = context.get("cell", {}).get("attachments")
    if _small(source):
        try:
            return _rendered(context, source) if attached else _known(source)
        except Exception:  # a student wrote it: nested too deep, or worse
            pass
    return f"<pre>{escape(source[:LONGEST])}</pre>"


def _rendered(context: Any, source: str) -> str:
    return clean(_exporter().markdown2html(context, source))


@lru_cache(KEPT)
def _known(source: str) -> str:
    return _rendered({}, source)


@lru_cache(KEPT)
def _coloured(source: str, language: str | None) -> str:
    return Highlight2HTML(pygments_lexer="python")(source, language)


def highlight(source: str, language: str | None = None, metadata: Any = None) -> str:
    """Python in colours, or another language, if the template names one."""
    return _coloured(source, language)


@cache
def _exporter() -> HTMLExporter:
    return HTMLExporter()


class FeedbackPage(HTMLExporter):
    """A page that runs the scripts of its template and no others.

    nbgrader makes a new exporter for each student; what they need of templates is made once.
    """

    policies: ClassVar[dict[str, str]] = {}
    environments: ClassVar[dict[tuple[str, ...], Any]] = {}

    def _create_environment(self) -> Any:
        key = tuple(self.template_paths)
        if key not in self.environments:
            self.environments[key] = super()._create_environment()
        environment = self.environments[key]
        for name, made in (*self.default_filters(), *(self.filters or {}).items()):
            self._register_filter(environment, name, made)
        return environment

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> tuple[str, Any]:
        if self.template_name not in self.policies:
            empty, _ = self._page(new_notebook(), deepcopy(resources), **kw)
            self.policies[self.template_name] = policy(empty)
        html, resources = self._page(nb, resources, **kw)
        content = self.policies[self.template_name]
        tag = f'<meta http-equiv="Content-Security-Policy" content="{content}">'
        return html.replace("<head>", f"<head>\n{tag}", 1), resources

    def _page(self, nb: Any, resources: Any, **kw: Any) -> tuple[str, Any]:
        """As `HTMLExporter` makes it, but without parsing all of it for its pictures' sake."""
        resources = self._init_resources(resources)
        shown = WidgetsDataTypeFilter(
            notebook_metadata=self._nb_metadata, parent=self, resources=resources
        )
        self.register_filter("highlight_code", highlight)
        self.register_filter("filter_data_type", shown)
        html, resources = TemplateExporter.from_notebook_node(self, nb, resources, **kw)
        return WITHOUT_TEXT.sub(r'<img alt="A picture that this cell shows"', html), resources


def policy(html: str) -> str:
    """The content security policy that allows the scripts of this page, by address or content."""
    allowed = set()
    for attributes, body in re.findall(r"(?is)<script\b([^>]*)>(.*?)</script>", html):
        source = re.search(r"""src\s*=\s*["'](https://[^"'?]*/)""", attributes)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        allowed.add(source[1] if source else f"'sha256-{digest}'")
    scripts = " ".join(["'unsafe-eval'", *sorted(allowed)])  # MathJax reads its settings with it
    hosts = " ".join(sorted(address for address in allowed if address.startswith("https:")))
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline' {hosts}; "
        f"font-src data: {hosts}; img-src data: {hosts}; base-uri 'none'; "
        "form-action 'none'"
    )
