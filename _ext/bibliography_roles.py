"""Repair the roles of the bibliography for screen readers.

Sphinx marks a bibliography as a list whose children are not list items. Browsers then
announce an empty list (axe: aria-required-children). And it makes a heading of a table's empty
corner, a name for nothing (axe: empty-table-header).
"""

import re

BROKEN = '<div role="list" class="citation-list">'
ENTRY = 'role="doc-biblioentry"'
EMPTY = re.compile(r'<th class="([^"]*)">(?:<p></p>)?</th>')


def repair(body: str) -> str:
    """Make a citation list's entries items of that list, and a table's empty headings cells."""
    body = EMPTY.sub(r'<td class="\1"></td>', body)
    if BROKEN not in body:
        return body
    return body.replace(ENTRY, 'role="listitem"')


def repair_page(app, pagename, templatename, context, doctree) -> None:
    if "body" in context:
        context["body"] = repair(context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", repair_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
