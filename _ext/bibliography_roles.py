"""Repair the roles of the bibliography for screen readers.

Sphinx marks a bibliography as a list whose children are not list items. Browsers then
announce an empty list (axe: aria-required-children).
"""

BROKEN = '<div role="list" class="citation-list">'
ENTRY = 'role="doc-biblioentry"'


def repair(body: str) -> str:
    """Make the entries of every citation list items of that list."""
    if BROKEN not in body:
        return body
    return body.replace(ENTRY, 'role="listitem"')


def repair_page(app, pagename, templatename, context, doctree) -> None:
    if "body" in context:
        context["body"] = repair(context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", repair_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
