"""The book's pages and pictures, without building it. Each check has a case it must reject."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from autograde import figures
from autograde.exercise import exercises
from autograde.reference.ch03_causal_mask import causal_mask

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "book").rglob("*.md"))
CODE_COLUMNS = 84  # what fits beside the sidebars of a 1280 pixel screen

# --- the checks -----------------------------------------------------------------------


def sections(text: str) -> dict[str, str]:
    """{label: heading} of the headings with a label directly before them."""
    return dict(re.findall(r"^\(([\w-]+)\)=\n+#{1,6} (.*)$", text, flags=re.M))


def leads_nowhere(read: tuple[str, str], pages: dict[str, str]) -> bool:
    """Does no page have the section, label and title, that feedback sends a student to?"""
    page, label = read[0].split("#")
    heading = sections(pages.get(page, "")).get(label, "")
    return heading != re.sub("[“”]", '"', read[1])


def code_cells(text: str) -> list[tuple[dict, str]]:
    """(metadata, code) of every code cell of a MyST notebook."""
    cells = []
    for body in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", text, flags=re.M | re.S):
        metadata = {}
        if body.startswith("---\n"):
            header, body = body[4:].split("\n---\n", 1)
            metadata = yaml.safe_load(header)
        options = re.match(r"(?::[\w-]+:.*\n)+", body)
        if options:
            metadata = yaml.safe_load(re.sub(r"^:", "", options[0], flags=re.M))
            body = body[options.end() :]
        cells.append((metadata, body))
    return cells


def statements(code: str) -> list[ast.stmt]:
    """The cell's Python, without notebook magics."""
    return ast.parse(re.sub(r"^%.*$", "", code, flags=re.M)).body


def draws(code: str, drawers: set[str]) -> bool:
    """Does the cell end by showing a figure?"""
    body = statements(code)
    if not body or not isinstance(body[-1], ast.Expr):
        return False
    first = ast.unparse(body[-1]).split("(")[0].split(".")[0]
    return first in {"figure", "figures", "plt", *drawers}


def figure_faults(text: str) -> list[str]:
    """What the figures of a page lack: a name, a caption, a description."""
    faults, drawers = [], set()
    for metadata, code in code_cells(text):
        drawers |= {
            node.name
            for node in statements(code)
            if isinstance(node, ast.FunctionDef) and "figures." in ast.unparse(node)
        }
        if not draws(code, drawers):
            continue
        about = metadata.get("mystnb", {})
        wanted = [("image", "alt"), ("figure", "caption"), ("figure", "name")]
        faults += [
            f"no {part}.{key}: {code.strip().splitlines()[-1]}"
            for part, key in wanted
            if not str(about.get(part, {}).get(key) or "").strip()
        ]
    faults += [f"no alt: {image}" for image in re.findall(r"!\[\s*\]\([^)]*\)", text)]
    for kind, body in re.findall(r"^```+\{(figure|image)\}(.*?)^```+$", text, flags=re.M | re.S):
        if not re.search(r"^:alt: *\S", body, flags=re.M):
            faults.append(f"no alt: {kind} {body.strip().splitlines()[0]}")
    return faults


def wide_code(text: str) -> list[str]:
    return [
        line
        for _, code in code_cells(text)
        for line in code.splitlines()
        if len(line) > CODE_COLUMNS
    ]


def toc_files(toc: dict) -> set[str]:
    """Every page that a jb-book table of contents names, without suffix."""
    chapters = [*toc.get("chapters", [])]
    for part in toc.get("parts", []):
        chapters += part["chapters"]
    nested = [section for chapter in chapters for section in chapter.get("sections", [])]
    return {toc["root"], *(entry["file"] for entry in chapters + nested if "file" in entry)}


def toc_faults(toc: dict, pages: list[str]) -> dict[str, list[str]]:
    named = toc_files(toc)
    return {
        "not in _toc.yml": sorted(set(pages) - named),
        "no such page": sorted(named - set(pages)),
    }


def drawn(figure, state: str) -> set[tuple[int, int]]:
    """(row, column) of the cells that a figure of one panel draws in this state."""
    (ax,) = figure.axes
    names = [(patch.get_gid() or "").split() for patch in ax.patches]
    return {(int(row), int(column)) for word, row, column in names if word == state}


def extension(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the pages ------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", list(exercises()), ids=lambda exercise: exercise.name)
def test_feedback_leads_to_a_section(exercise):
    pages = {page.stem: page.read_text() for page in PAGES}
    assert not leads_nowhere(exercise.read, pages), (
        f"{exercise.name} sends readers to {exercise.read}, a (page#label, heading) that the book "
        f"does not have; the sections are {sections(pages.get(exercise.chapter, ''))}"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_have_name_caption_and_description(page):
    assert figure_faults(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_fits_the_page(page):
    assert wide_code(page.read_text()) == []


def test_every_figure_has_a_name_of_its_own():
    named = re.compile(r"^    name: (fig-[\w-]+)$", flags=re.M)
    names = [name for page in PAGES for name in named.findall(page.read_text())]
    assert len(names) > 50
    assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}


def test_every_page_is_in_the_contents():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    pages = [page.relative_to(ROOT).with_suffix("").as_posix() for page in PAGES]
    assert not any(toc_faults(toc, pages).values())


def test_python_warnings_fail_the_build():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert config["execute"]["stderr_output"] == "warn"
    assert config["execute"]["allow_errors"] is False
    assert config["only_build_toc_files"] is True


# --- what the checks must reject ------------------------------------------------------

FIGURE_CELL = """```{code-cell} ipython3
---
mystnb:
  image:
    alt: A grid.
  figure:
    name: fig-grid
    caption: A grid.
---
figures.show_mask(allowed)
```
"""


def test_a_label_must_stand_before_a_heading():
    assert sections("(here)=\n## Title\n") == {"here": "Title"}
    assert sections("(here)=\nText.\n\n(there)\n# Title\n") == {}
    pages = {"page": '(here)=\n## A "Title"\n'}
    assert not leads_nowhere(("page#here", "A “Title”"), pages)
    for read in (("page#there", "A “Title”"), ("page#here", "Title"), ("other#here", "Title")):
        assert leads_nowhere(read, pages)


@pytest.mark.parametrize(
    "lost", ["    alt: A grid.\n", "    caption: A grid.\n", "    name: fig-grid\n"]
)
def test_a_figure_without_one_of_them_is_found(lost):
    assert figure_faults(FIGURE_CELL) == []
    (fault,) = figure_faults(FIGURE_CELL.replace(lost, lost.split(":")[0] + ":\n"))
    assert lost.split(":")[0].strip() in fault


@pytest.mark.parametrize(
    "page",
    [
        "```{code-cell} ipython3\n%config X = 1\nfigures.show_mask(allowed)\n```\n",
        "```{code-cell} ipython3\n:tags: [hide-input]\nfigure, ax = f()\nfigure\n```\n",
        "```{code-cell} ipython3\ndef show(x):\n    return figures.show_mask(x)\n```\n"
        "```{code-cell} ipython3\nshow(1)\n```\n",
        "![](picture.png)",
        "```{figure} picture.png\n:name: x\nCaption\n```\n",
    ],
)
def test_a_bare_figure_is_found_however_it_is_made(page):
    assert figure_faults(page)


def test_wide_code_is_found():
    assert wide_code("```{code-cell} ipython3\n" + "x" * (CODE_COLUMNS + 1) + "\n```\n")
    assert not wide_code("x" * 100)  # prose wraps


def test_missing_and_unknown_pages_are_found():
    toc = {"root": "a", "parts": [{"chapters": [{"file": "b", "sections": [{"file": "c"}]}]}]}
    assert not any(toc_faults(toc, ["a", "b", "c"]).values())
    assert toc_faults(toc, ["a", "b", "d"]) == {"not in _toc.yml": ["d"], "no such page": ["c"]}


# --- the pictures ---------------------------------------------------------------------


def cells(array) -> set[tuple[int, int]]:
    return {(int(row), int(column)) for row, column in np.argwhere(array)}


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 5), (5, 2)])
def test_show_mask_draws_the_mask(shape):
    allowed = causal_mask(*shape)
    figure = figures.show_mask(allowed)
    assert drawn(figure, "open") == cells(allowed)
    assert drawn(figure, "closed") == cells(~allowed)
    assert drawn(figures.show_mask(~allowed), "open") != cells(allowed)
    assert figure.axes[0].get_ylim() == (shape[0], 0)  # query 0 at the top


def test_marks_say_what_colours_say():
    (ax,) = figures.show_mask(causal_mask(3)).axes
    assert {bool(patch.get_hatch()) for patch in ax.patches if "closed" in patch.get_gid()} == {
        True
    }
    assert {bool(patch.get_hatch()) for patch in ax.patches if "open" in patch.get_gid()} == {False}
    assert len(ax.texts) == 6  # a dot in each open cell


def test_show_weights_writes_the_numbers_and_finds_leaks():
    weights = np.array([[1.0, 0.0, 0.25], [0.4, 0.6, np.nan], [0.2, 0.3, 0.5]])
    figure = figures.show_weights(weights, causal_mask(3), list("abc"), list("xyz"))
    assert drawn(figure, "leak") == {(0, 2), (1, 2)}
    assert drawn(figure, "closed") == {(0, 1)}
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written == ["1.00", "0.25", "0.40", "0.60", "nan", "0.20", "0.30", "0.50"]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == list("abc")


def test_show_influence_tells_four_states_apart():
    influence = np.array([[1, 1], [0, 1]], bool)
    figure = figures.show_influence(influence, causal_mask(2))
    assert drawn(figure, "leak") == {(0, 1)}
    assert drawn(figure, "lost") == {(1, 0)}
    assert drawn(figure, "open") == {(0, 0), (1, 1)}
    assert not drawn(figure, "closed")


@pytest.mark.parametrize("query", range(4))
def test_show_reach_draws_one_row(query):
    allowed = causal_mask(4)
    (ax,) = figures.show_reach(allowed, query, ["The", "model", "predicts", "well"]).axes
    arrows = {int(key): state for state, key in (patch.get_gid().split() for patch in ax.patches)}
    assert arrows == {key: "open" if allowed[query, key] else "closed" for key in range(4)}
    assert sum(text.get_text() == "✕" for text in ax.texts) == 3 - query


def test_show_lines_draws_each_curve_differently():
    x = np.arange(5.0)
    (ax,) = figures.show_lines(x, {"a": x, "b": x**2}, "x", "y").axes
    first, second = ax.lines
    assert np.array_equal(first.get_ydata(), x)
    assert np.array_equal(second.get_ydata(), x**2)
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_marker() != second.get_marker()
    with pytest.raises(ValueError, match="got 5"):
        figures.show_lines(x, dict.fromkeys("abcde", x), "x", "y")


def test_panels_share_one_card_that_fits_a_phone():
    figure, axes = figures.panels(3)
    assert len(axes) == len(figure.axes) == 3
    assert figure.get_figwidth() <= figures.WIDEST
    assert figures.show_mask(causal_mask(16)).get_figwidth() <= figures.WIDEST


@pytest.mark.parametrize("show", [figures.show_mask, figures.show_weights])
def test_pictures_refuse_what_they_cannot_draw(show):
    with pytest.raises(ValueError, match="pick one batch entry"):
        show(np.ones((2, 3, 3), bool))
    with pytest.raises(ValueError, match="names"):
        show(np.ones((3, 3), bool), query_labels=["a"])


# --- the extensions -------------------------------------------------------------------


def test_other_hosts_assets_are_dropped():
    is_wanted = extension("offline").is_wanted
    assert is_wanted("_static/book.css")
    assert not is_wanted("https://fonts.googleapis.com/css?family=Lato")
    assert not is_wanted("_static/sphinx-thebe.js")


def test_bibliography_entries_become_list_items():
    repair = extension("bibliography_roles").repair
    broken = '<div role="list" class="citation-list"><div role="doc-biblioentry">x</div></div>'
    assert 'role="listitem"' in repair(broken)
    assert "doc-biblioentry" not in repair(broken)
    assert repair("<p>role</p>") == "<p>role</p>"


# --- the table of the sources -----------------------------------------------------------

SECTIONS = {"article-one": 23, "article-two": 5, "article-three": 8}


def source_faults(articles: list[dict], pages: dict[str, str]) -> list[str]:
    """What is wrong with the table that says where the book treats each source's sections."""
    counts = {article["key"]: len(article["section"]) for article in articles}
    faults = [f"{counts} are not the sections {SECTIONS}"] if counts != SECTIONS else []
    for section in (section for article in articles for section in article["section"]):
        faults += [f"{section['heading']}: nowhere"] if not section["where"] else []
        for where in section["where"]:
            page, _, label = where.partition("#")
            known = sections(pages.get(page, ""))
            faults += [f"{section['heading']}: {where}"] if label not in known else []
    return faults


def test_every_section_of_the_sources_has_its_place():
    articles = tomllib.loads((ROOT / "book/sources.toml").read_text("utf-8"))["article"]
    pages = {page.stem: page.read_text("utf-8") for page in PAGES}
    assert source_faults(articles, pages) == []
    first = articles[0]["section"][0]
    for damage in ([], ["03-causal-mask"], ["03-causal-mask#ch03-nowhere"], ["08-kv#somewhere"]):
        changed = [{**articles[0], "section": [{**first, "where": damage}]}, *articles[1:]]
        assert len(source_faults(changed, pages)) == 2  # the count, and the place
