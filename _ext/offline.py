"""Let no page ask another host for anything, and none wait for a script.

The theme links Google's fonts, and sphinx-thebe (which Jupyter Book always loads) puts its
loader on every page twice. We use neither. Formulas need no script either (_ext/maths.py), but
where MathJax is not laid.
"""

UNWANTED = (
    "fonts.googleapis.com",
    "unpkg.com",
    "sphinx-thebe",
    "togglebutton",  # _ext/folds.py does it without a script
    "toggleHint",
    "toggleOpenOnPrint",
    "design-tabs",  # remembers open tabs; there are none
)


def is_wanted(asset) -> bool:
    """Is this style sheet or script (a file name, or an asset with inline text) one of ours?"""
    name = str(getattr(asset, "filename", asset) or "")
    text = str(getattr(asset, "attributes", {}).get("body", ""))
    return not any(host in name + text for host in UNWANTED)


def drop_unwanted(app, pagename, templatename, context, doctree) -> None:
    for kind in ("css_files", "script_files"):
        context[kind] = [asset for asset in context.get(kind, []) if is_wanted(asset)]
    for script in context["script_files"]:
        defer(script.attributes, script.filename)


def defer(attributes: dict, filename: str | None) -> None:
    """Run the script after the page is read, in its turn, and an inline one after what it reads."""
    if filename:
        attributes.setdefault("defer", "defer")
    elif "DOCUMENTATION_OPTIONS" in attributes.get("body", ""):
        attributes.setdefault("type", "module")


def defer_mathjax(app, config) -> None:
    config.mathjax_options = {"defer": "defer"}


def setup(app) -> dict:
    app.connect("config-inited", defer_mathjax)
    app.connect("html-page-context", drop_unwanted, priority=999)  # after all the others
    return {"parallel_read_safe": True, "parallel_write_safe": True}
