"""Leave the words of code that have no colour of their own without an element of their own.

Names, punctuation and blanks have the colour of the text in both of the theme's styles. They are a
third of a chapter's elements, and a phone needs its time for each.
"""

import re

PLAIN = re.compile(r'<span class="(?:n|nn|p|w)">([^<]*)</span>')


def flatten(app, pagename, templatename, context, doctree) -> None:
    if "body" in context:
        context["body"] = PLAIN.sub(r"\1", context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", flatten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
