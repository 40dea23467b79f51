"""The exercises in JupyterLite: opened, run and checked in a real browser, without a net."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from web.lite.__main__ import CannotBuild, build, with_wheels
from web.lite.run_all import go_on_where_asked
from web.serve import serving
from web.sheet import chapters

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = "03-causal-mask/causal-mask.ipynb"
RIGHT = """def causal_mask(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    return np.tril(np.ones((n_query, n_key), bool), n_key - n_query)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with pyodide/ and lite/, as in the site."""
    try:
        build(ROOT)
    except CannotBuild as error:
        pytest.skip(f"NOT TESTED, no JupyterLite here: {error}")
    folder = tmp_path_factory.mktemp("site")
    (folder / "pyodide").symlink_to(ROOT / "_build/vendor/pyodide")
    (folder / "lite").symlink_to(ROOT / "_build/lite/lite")
    return folder


@pytest.fixture(scope="module")
def page(site, running):
    """A page of that site, in a browser that reaches nothing else."""
    with serving(site) as address:
        page = running.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.asked_elsewhere = []

        def answer(route):
            if route.request.url.startswith((address, "data:", "blob:")):
                return route.continue_()
            page.asked_elsewhere.append(route.request.url)
            return route.abort()

        page.context.route("**/*", answer)
        page.set_default_timeout(240_000)
        page.goto(f"{address}/lite/lab/index.html?path={NOTEBOOK}")
        yield page


def test_a_notebook_is_completed_in_the_browser(page):
    page.get_by_text(re.compile(r"Python \(Pyodide\) \| Idle")).first.wait_for()
    outputs = page.locator(".jp-OutputArea-output")

    def run(source, text=None):
        cell = page.locator(".jp-CodeCell").filter(has_text=source).first
        cell.locator(".cm-content").click()
        if text:
            page.keyboard.press("Control+a")
            page.keyboard.insert_text(text)
        page.keyboard.press("Control+Enter")

    page.locator("li.lm-MenuBar-item").get_by_text("Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()  # as it was given
    for name in (task.name for task in chapters()["03-causal-mask"].tasks):
        outputs.filter(has_text=f"{name}: not written yet").first.wait_for()
    run("def causal_mask(", RIGHT)
    run("check(causal_mask)")
    outputs.filter(has_text="causal_mask: all 3 claims hold").first.wait_for()
    assert page.asked_elsewhere == []


def test_scripts_of_another_kind_are_not_mended(tmp_path):
    (tmp_path / "kernel.js").write_text("async execute(e) { return this.run(e); }")
    with pytest.raises(CannotBuild, match="executeRequest"):
        go_on_where_asked([*tmp_path.iterdir()])


def test_all_exercises_that_need_numpy_only_are_there(site):
    wanted = {c.path.relative_to("exercises").as_posix() for c in chapters().values()
              if c.in_browser}  # fmt: skip
    there = {p.relative_to(site / "lite/files").as_posix() for p in site.glob("lite/files/*/*")}
    assert there == wanted
    assert not [
        name for name in there if "/book/" in (site / "lite/files" / name).read_text("utf-8")
    ]
    assert not [name for name in there if name.startswith(("06", "11", "12", "13"))]


def test_nothing_of_this_environment_is_taken_along(site):
    config = json.loads((site / "lite/jupyter-lite.json").read_text("utf-8"))
    extensions = [e["name"] for e in config["jupyter-config-data"]["federated_extensions"]]
    assert extensions == ["@jupyterlite/pyodide-kernel-extension"]


def test_the_lock_file_names_what_it_adds(tmp_path):
    for name in ("no_peeking-1.0-py3-none-any.whl", "comm-2-py3-none-any.whl"):
        (tmp_path / name).write_text(name)
    ours, comm = sorted(tmp_path.iterdir(), reverse=True)
    packages = with_wheels({"packages": {}}, ours, comm)["packages"]
    assert packages["no-peeking"]["imports"] == ["autograde"]
    assert packages["no-peeking"]["file_name"] == "../lite/no_peeking-1.0-py3-none-any.whl"
    assert len(packages["comm"]["sha256"]) == 64


def test_without_pyodide_it_says_so(tmp_path):
    with pytest.raises(CannotBuild, match="web.vendor"):
        build(tmp_path)
