"""Links that open a chapter's exercise notebook: Colab, Binder, JupyterLite, download.

Where `_config.yml` names a repository, they are a menu at the top of the chapter. Colab opens the
committed notebook in exercises/, which installs what it needs; a page's own source is no notebook.
JupyterLite is offered where the site has it (`make lite` leaves it in _build/lite) and for
chapters that need NumPy only. The chapter's section "Exercises" says all this in a line, too, and
JupyterLite there without a repository.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from docutils import nodes

import exercises  # noqa: F401, lets `web` be found
from autograde.repository import repository_of
from web.lite.__main__ import INTO as LITE  # holds lite/, which the build copies into the site

FOLDER = "exercises"


def notebook_of(app, page: str) -> str | None:
    """The exercise notebook of a page such as book/03-causal-mask, from the course's folder."""
    chapter = PurePosixPath(page).name
    path = f"{FOLDER}/{chapter}/{chapter.partition('-')[2]}.ipynb"
    return path if (Path(app.confdir) / path).is_file() else None


def own_links(app, page: str) -> list[tuple[str, str]]:
    """(text, address relative to the page) of what the site serves itself."""
    notebook = notebook_of(app, page)
    if not notebook:
        return []
    links, up = [], "../" * page.count("/")
    inside = notebook.removeprefix(f"{FOLDER}/")
    if app.config.launch_lite and (Path(app.confdir) / LITE / "lite/files" / inside).is_file():
        links.append(("JupyterLite", f"{up}lite/lab/index.html?path={quote(inside)}"))
    return [*links, ("Download", f"{up}{notebook}")]


def foreign_links(app, page: str) -> list[tuple[str, str]]:
    """The same on other hosts, if the repository is known."""
    notebook, repository = notebook_of(app, page), repository_of(Path(app.confdir))
    if not notebook or not repository:
        return []
    both = [("Colab", repository.colab(notebook)), ("Binder", repository.binder(notebook))]
    return [(text, address) for text, address in both if address]


def find_lite(app, config) -> None:
    """Take JupyterLite into the site if it was built; a change of that rewrites the pages."""
    config.launch_lite = (Path(app.confdir) / LITE / "lite/index.html").is_file()
    if config.launch_lite:
        config.html_extra_path = [*config.html_extra_path, str(LITE)]


def add_menu(app, pagename, templatename, context, doctree) -> None:
    elsewhere = foreign_links(app, pagename)
    if not elsewhere:
        return
    icons = {"JupyterLite": "fas fa-feather", "Download": "fas fa-download"}
    logos = {"Colab": "_static/images/logo_colab.png", "Binder": "_static/images/logo_binder.svg"}
    context["header_buttons"].append(
        {
            "type": "group",
            "tooltip": "Open the exercise notebook",
            "icon": "fas fa-rocket",
            "label": "launch-buttons",
            "buttons": [
                {
                    "type": "link",
                    "text": text,
                    "tooltip": "Download the exercise notebook"
                    if text == "Download"
                    else f"Open the exercise notebook in {text}",
                    "icon": (icons | logos)[text],
                    "url": address,
                }
                for text, address in elsewhere + own_links(app, pagename)
            ],
        }
    )


def add_line(app, doctree, docname) -> None:
    """Put, below the first paragraph of the section "Exercises", the ways to open the notebook."""
    links = [*foreign_links(app, docname), *own_links(app, docname)]
    links = [each for each in links if each[0] != "Download"]  # which that paragraph offers
    sections = [each for each in doctree.findall(nodes.section) if each[0].astext() == "Exercises"]
    if app.builder.format != "html" or not links or not sections:
        return
    line = nodes.paragraph("", "Open the notebook in ", classes=["launch"])
    for number, (text, address) in enumerate(links):
        last = number == len(links) - 1
        line += nodes.Text("" if not number else " or " if last else ", ")
        line += nodes.reference("", text, refuri=address, internal="://" not in address)
    line += nodes.Text(".")
    first = next(i for i, each in enumerate(sections[0]) if isinstance(each, nodes.paragraph))
    sections[0].insert(first + 1, line)


def copy_notebooks(app, error) -> None:
    """What the links to download lead to, and what the page runs and exports (web/static)."""
    if error or app.builder.format != "html":
        return
    for page in app.env.found_docs:
        if notebook := notebook_of(app, page):
            target = Path(app.outdir) / notebook
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(app.confdir) / notebook, target)


def setup(app) -> dict:
    app.add_config_value("launch_lite", False, "html")
    app.connect("config-inited", find_lite)
    app.connect("doctree-resolved", add_line)
    app.connect("html-page-context", add_menu, priority=900)  # once the theme has its buttons
    app.connect("build-finished", copy_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
