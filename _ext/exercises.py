"""The exercises of a chapter on its page, to be read there and, with NumPy alone, to be solved.

The text is that of the students' notebook, so authors write nothing twice: each chapter gets a
section "Exercises" at its end, and each section that teaches one a link to it. The directive
`try-it` is where the page's scripts (web/static) open an exercise; `progress` lists all of them.
Without Pyodide (see web/vendor.py) the pages have the exercises to read, and no button.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `web`, wherever Sphinx was started

from web.sheet import Chapter, Task, chapters, page_text  # noqa: E402
from web.site import lay  # noqa: E402
from web.vendor import INTO as VENDOR  # noqa: E402
from web.wheel import CannotBuild  # noqa: E402

logger = logging.getLogger(__name__)


def prepare(app, config) -> None:
    """Let the site hold what the scripts need, if Pyodide is there."""
    vendor = ROOT / VENDOR
    folders = [str(vendor)] if vendor.is_dir() else []
    config.exercises_run = (vendor / "pyodide" / "pyodide.js").is_file()
    if not config.exercises_run:
        logger.info("The exercises cannot be run in the page: see `python -m web.vendor`")
    try:
        folders.append(str(lay(ROOT)))
    except CannotBuild as error:
        config.exercises_run = False
        logger.info("The exercises cannot be run in the page: %s", error)
    config.html_extra_path = [*config.html_extra_path, *folders]


def add_exercises(app, docname: str, source: list[str]) -> None:
    """Put the section "Exercises" at the end of a chapter."""
    chapter = chapters().get(docname.removeprefix("book/"))
    if chapter:
        source[0] += page_text(chapter, source[0], app.config.exercises_run)


class TryIt(SphinxDirective):
    """The place of one exercise: a button, and later the editor."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        chapter = next(c for c in chapters().values() if name in {t.name for t in c.tasks})
        for source in (chapter.path, "web/sheet.py"):
            self.env.note_dependency(str(ROOT / source))
        if not (chapter.in_browser and self.config.exercises_run):
            return []
        after = nodes.container(classes=["try-it-after"])
        self.state.nested_parse(self.content, self.content_offset, after)
        where = f'data-notebook="{chapter.name}/{chapter.file}" data-exercise="{name}"'
        text = "Try it here"
        button = f'<button type="button" hidden aria-label="{text}: {name}">{text}</button>'
        return [nodes.raw("", f'<div class="try-it" {where}>{button}</div>', format="html"), after]


class Progress(SphinxDirective):
    """All exercises of the course; the page's script says which ones pass."""

    def run(self) -> list[nodes.Node]:
        rows = "".join(_rows(chapter) for chapter in chapters().values())
        head = "<tr><th>Exercise</th><th>Points</th><th>In this browser</th></tr>"
        table = f"<table class='table' id='try-it-progress'><thead>{head}</thead>{rows}</table>"
        texts = ("Save everything", "Load a file", "Forget everything")
        buttons = "".join(f"<button type='button'>{text}</button> " for text in texts)
        file = "<input type='file' accept='.json,application/json' hidden>"
        told = "<p id='try-it-told' role='status'></p>"
        after = f"<div id='try-it-all' hidden>{buttons}{file}{told}</div>"
        return [nodes.raw("", f"<div class='try-it-scroll'>{table}</div>{after}", format="html")]


def _rows(chapter: Chapter) -> str:
    link = f"<a href='{chapter.name}.html'>Chapter {int(chapter.name[:2])}</a>"
    last = "needs PyTorch, so a real machine"
    if chapter.in_browser:
        label = f"Export notebook of {chapter.name}"
        export = f"<button type='button' hidden aria-label='{label}'>Export notebook</button>"
        link += f" {export}"
        last = "<span class='try-it-sum'></span>"
    rows = f"<tr><th colspan='2' scope='rowgroup'>{link}</th><td>{last}</td></tr>"
    for task in chapter.tasks:
        name = task.name.replace("_", "_<wbr>")  # where a phone may break it
        link = f"<a href='{chapter.name}.html#{task.id}'>{task.number} <code>{name}</code></a>"
        rows += (
            f"<tr data-exercise='{task.name}'><td>{link}</td><td>{task.points}</td><td></td></tr>"
        )
    return f"<tbody data-notebook='{chapter.name}/{chapter.file}'>{rows}</tbody>"


def link_back(app, doctree: nodes.document) -> None:
    """End each section that teaches an exercise with a link to it."""
    chapter = chapters().get(app.env.docname.removeprefix("book/"))
    for task in chapter.tasks if chapter else ():
        section = next((s for s in doctree.findall(nodes.section) if _is(s, task)), None)
        if section is None:
            where = (app.env.docname, None)
            logger.warning("no section is called %r, where the exercise %s says to read",
                           task.section, task.name, location=where)  # fmt: skip
            continue
        line = next((n for n in section.children if "to-exercise" in n.get("classes", ())), None)
        if line is None:
            line = nodes.paragraph("", "To try: ", classes=["to-exercise"])
            inner = [i for i, n in enumerate(section.children) if isinstance(n, nodes.section)]
            section.insert(inner[0] if inner else len(section.children), line)
        else:
            line += nodes.Text(", ")
        text = nodes.literal("", task.name)
        line += nodes.reference("", f"{task.number} ", text, refid=task.id, internal=True)


def _is(section: nodes.section, task: Task) -> bool:
    return section[0].rawsource.strip() == task.section or section[0].astext() == task.section


def add_script(app, pagename: str, template: str, context: dict, doctree: object) -> None:
    """The loader and its style, on the pages that have something to load."""
    if app.config.exercises_run and pagename.removeprefix("book/") in {*chapters(), "progress"}:
        app.add_js_file("try-it.js", loading_method="defer")
        app.add_css_file("try-it.css")


def setup(app) -> dict:
    app.add_config_value("exercises_run", False, "env", bool)
    app.add_directive("try-it", TryIt)
    app.add_directive("progress", Progress)
    app.connect("config-inited", prepare)
    app.connect("source-read", add_exercises)
    app.connect("doctree-read", link_back)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
