"""Let no page ask another host for anything, and none wait for a script.

The theme links Google's fonts, and sphinx-thebe (which Jupyter Book always loads) puts its
loader on every page twice. We use neither. MathJax is the site's own where `python -m web.vendor`
has laid it.
"""

from pathlib import Path

UNWANTED = (
    "fonts.googleapis.com",
    "unpkg.com",
    "sphinx-thebe",
    "togglebutton",  # _ext/folds.py does it without a script
    "toggleHint",
    "toggleOpenOnPrint",
    "design-tabs",  # remembers open tabs; there are none
)
VENDOR = "_build/vendor"


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


def use_own_mathjax(app, config) -> None:
    if (Path(app.confdir) / VENDOR / "mathjax/tex-mml-chtml.js").is_file():
        config.mathjax_path = "../mathjax/tex-mml-chtml.js"  # as seen from _static
    config.mathjax_options = {"defer": "defer"}


def setup(app) -> dict:
    app.connect("config-inited", use_own_mathjax)
    app.connect("html-page-context", drop_unwanted, priority=999)  # after all the others
    return {"parallel_read_safe": True, "parallel_write_safe": True}
