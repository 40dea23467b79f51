"""Keep the pages free of other hosts' style sheets and scripts.

The theme links Google's fonts, and sphinx-thebe (which Jupyter Book always loads) puts its
loader on every page twice. We use neither.
"""

UNWANTED = ("fonts.googleapis.com", "unpkg.com", "sphinx-thebe")


def is_wanted(asset) -> bool:
    """Is this style sheet or script (a file name, or an asset with inline text) one of ours?"""
    name = str(getattr(asset, "filename", asset) or "")
    text = str(getattr(asset, "attributes", {}).get("body", ""))
    return not any(host in name + text for host in UNWANTED)


def drop_unwanted(app, pagename, templatename, context, doctree) -> None:
    for kind in ("css_files", "script_files"):
        context[kind] = [asset for asset in context.get(kind, []) if is_wanted(asset)]


def setup(app) -> dict:
    app.connect("html-page-context", drop_unwanted, priority=999)  # after all the others
    return {"parallel_read_safe": True, "parallel_write_safe": True}
