"""The pictures that one can play with show Python's numbers: by keyboard, touch, and on paper."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from autograde.figures.play import text, texts
from autograde.reference.ch02_self_attention import attention
from autograde.reference.ch03_causal_mask import causal_mask, masked_softmax

ROOT = Path(__file__).parent.parent
CHAPTERS = ["01", "02", "03", "04", "05", "08", "09", "10"]
PAGES = {c: next((ROOT / "book").glob(f"{c}-*.md")).read_text() for c in CHAPTERS}


def play_of(chapter):
    return import_module(f"autograde.figures.play_ch{chapter}").play()


def cells(chapter, *marks, **names):
    """What the page's own cells define: each cell that has one of the marks is run."""
    found = re.findall(
        r"```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n)?(.*?)```", PAGES[chapter], re.S
    )
    found = [cell for cell in found if any(mark in cell for mark in marks)]
    assert len(found) == len(marks), (chapter, marks)
    for cell in found:
        with np.errstate(all="ignore"):  # chapter 4 overflows on purpose
            exec(re.sub(r"(?m)^[:%].*$", "", cell), names)
    return names


# Python: the numbers are those of the page.


def test_each_page_has_its_picture_and_a_sentence_about_it():
    for chapter in CHAPTERS:
        assert re.findall(r"```\{play\} ch(\d\d)\n\w", PAGES[chapter]) == [chapter]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_table_has_a_cell_for_each_column(chapter):
    made = play_of(chapter)
    assert made.rows
    assert all(len(row) == len(made.head) for row in made.rows)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0.5, "0.500"), (-0.25, "−0.250"), (-1e-9, "0.000"), (2.0, "2"), (-0.0, "0"),
     (np.inf, "∞"), (-np.inf, "−∞"), (np.nan, "NaN")],
)  # fmt: skip
def test_numbers_are_written_as_on_the_pages(number, written):
    assert text(number) == written


def test_chapter_1_multiplies_what_the_page_multiplies():
    from autograde.reference.ch01_autoregressive import sequence_log_prob

    page = cells(
        "01", "ARTICLES, ADJECTIVES", "def log_table", np=np, sequence_log_prob=sequence_log_prob
    )
    data = play_of("01").data
    assert data["words"] == page["text"]
    assert data["vocabulary"] == page["WORDS"][1:]
    probs = np.exp(page["log_table"](page["text"]))[:, 1:]
    for row, step in zip(probs, data["honest"], strict=True):
        assert [eval(p) for p in step["probs"]] == pytest.approx(row)
    assert data["honest"][-1]["log"] == text(page["log_prob"])
    assert {(s["p"], s["product"], s["log"]) for s in data["peeking"]} == {("1", "1", "0")}


def test_chapter_2_ends_in_the_output_of_attention():
    x = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    out, weights = attention(x, x, x)
    for query, path in enumerate(play_of("02").data["queries"]):
        assert path[-1]["shows"] == texts(out[query])
        row = [step["shows"][0] for step in path if step["row"] == 4]
        assert row == [*texts(weights[query]), "1"]


def test_chapter_3_shares_the_weight_among_open_keys():
    data = play_of("03").data
    assert data["masks"]["causal 2 5"] == ["11110", "11111"]
    assert data["masks"]["causal 3 1"] == ["0", "0", "1"]
    assert data["masks"]["both 3 5 4"] == ["11100", "11110", "11110"]
    assert data["weights"]["11100"] == ["0.301", "0.332", "0.367", "0", "0"]  # as the page says
    assert data["weights"]["000"] == ["0", "0", "0"]
    for row, weights in data["weights"].items():
        allowed = np.array(list(row)) == "1"
        assert weights == texts(masked_softmax(np.arange(1, len(row) + 1) / 10, allowed))


def test_chapter_4_rounds_like_the_pages_functions():
    page = cells("04", "def plain_softmax", np=np)
    data = play_of("04").data
    for way in ("plain", "shifted"):
        for dtype in ("float16", "float32"):
            for scores in ([1.0, 2.0], [-40.0, -30.0, -32.0], [1000.0, 1001.0]):
                name = ", ".join(texts(scores))
                states = data["states"][f"{name} {way} {dtype}"]
                for t, state in zip(data["temperatures"], states, strict=True):
                    scaled = (np.array(scores) / float(t)).astype(dtype)
                    with np.errstate(all="ignore"):
                        want = page[f"{way}_softmax"](scaled)
                    assert state["weights"] == texts(want.astype(float))
    assert data["formats"]["float16"] == {"low": -17.3, "high": 11.1}


def test_chapter_5_has_the_weights_of_the_page():
    from autograde.reference import ch02_self_attention, ch03_causal_mask, ch05_multi_head

    names = vars(ch02_self_attention) | vars(ch03_causal_mask) | vars(ch05_multi_head)
    page = cells("05", "# 1 project", **names)
    ways = play_of("05").data["ways"]
    for head, shown in enumerate(ways["split_heads"]["weights"]):
        assert shown == [texts(row, 2) for row in page["weights"][head]]
    assert ways["split_heads"]["owners"] == [[[0], [1], [2], [3]]] * 2
    assert ways["reshape alone"]["owners"] == [[[0], [0], [1], [1]], [[2], [2], [3], [3]]]


def test_chapter_8_counts_what_its_caption_says():
    without, with_cache = play_of("08").data["ways"].values()
    assert (without[-1]["rows so far"], without[-1]["pairs so far"]) == (18, 52)
    assert (with_cache[-1]["rows so far"], with_cache[-1]["pairs so far"]) == (6, 21)
    assert [s["out"] for s in without] == [s["out"] for s in with_cache]
    assert re.search(r"18 tokens and 52 scores\..*6 and 21", PAGES["08"], re.S)


def test_chapter_9_reaches_as_far_as_the_formula():
    for window, found in play_of("09").data["windows"].items():
        for layers, seen in enumerate(found["seen"], 1):
            reach = layers * (int(window) - 1) + 1
            assert seen == [min(reach, output + 1) for output in range(12)]


def test_chapter_10_ends_where_the_page_ends():
    blocks = play_of("10").data["blocks"]
    assert {steps[-1]["out"] for steps in blocks.values()} == {text(11 / 3)}
    assert blocks["2"][1]["state"][1:] == texts([4 / 3, 20 / 3])
    assert blocks["2"][2]["factors"] == ["0.500", "1"]


# The browser: the figures of all chapters, on one page.

CONF = """
extensions = ["myst_parser", "interactive"]
myst_enable_extensions = ["dollarmath"]
html_theme = "basic"
"""
FIGURE = "\n## {0}\n\n```{{play}} ch{0}\nWhat to see.\n```\n"


def sphinx(folder, page):
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(page)
    (folder / "plain.md").write_text("---\norphan: true\n---\n# Nothing to play with\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", folder, folder / "out"]
    paths = f"{ROOT}:{ROOT / '_ext'}"
    return subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin"}
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play")
    built = sphinx(folder, "# Play\n" + "".join(FIGURE.format(c) for c in CHAPTERS))
    assert built.returncode == 0, built.stderr
    return folder / "out"


def test_only_pages_with_a_picture_load_anything(site):
    page = (site / "index.html").read_text()
    assert 'type="module" src="play/play.js"' in page
    assert 'href="play/play.css"' in page
    assert "play/" not in (site / "plain.html").read_text()


def test_nothing_in_the_numbers_ends_the_script_element(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "_ext")
    from interactive import as_json

    assert "<" not in as_json({"word": "</script><s>"})


def test_an_unknown_picture_fails_the_build(tmp_path):
    built = sphinx(tmp_path, "# Play\n" + FIGURE.format("99"))
    assert built.returncode != 0
    assert "web/figures/ch99.js is missing" in built.stderr


@pytest.fixture(scope="module")
def address(site):
    from web.serve import serving

    with serving(site) as where:
        yield where


@pytest.fixture(scope="module")
def opened(running, address):
    """A page for the keyboard and one for fingers, and what went wrong on either."""
    wrong = []

    def visit(**how):
        page = running.new_page(**how)
        page.set_default_timeout(15_000)
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: asked.url.startswith(address) or wrong.append(f"outside: {asked.url}"),
        )
        page.route("**/favicon.ico", lambda route: route.fulfill(body=""))
        page.goto(address + "/index.html")
        return page

    desk = visit(viewport={"width": 1200, "height": 800})
    phone = visit(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    return {"desk": desk, "phone": phone, "wrong": wrong}


class Picture:
    """One picture of an open page, as its reader has it."""

    def __init__(self, page, chapter):
        self.page = page
        self.root = page.locator(f".play[data-play=ch{chapter}]")
        self.root.scroll_into_view_if_needed()
        page.wait_for_selector(f".play.is-live[data-play=ch{chapter}]")

    def says(self):
        return self.root.get_by_role("status").inner_text()

    def press(self, control, *keys):
        control = self.root.get_by_role("slider", name=control, exact=True)
        control.focus()
        for key in keys:
            control.press(key)
        return self

    def choose(self, option):
        radio = self.root.get_by_role("radio", name=option, exact=True)
        radio.focus()
        radio.press("Space")
        return self

    def tap(self, role, name):
        self.root.get_by_role(role, name=name, exact=True).tap()
        return self

    def table(self, label):
        """The visible texts of a table's cells, without names of rows and columns."""
        return self.root.get_by_role("table", name=label, exact=True).evaluate(
            """table => [...table.tBodies[0].rows].map(row => [...row.querySelectorAll("td")].map(
              cell => (cell.querySelector("[aria-hidden] + span")?.previousSibling.innerText
                       || cell.innerText).trim().replaceAll("\\n", " ")))"""
        )


@pytest.fixture
def desk(opened):
    yield lambda chapter: Picture(opened["desk"], chapter)
    assert opened["wrong"] == []


@pytest.fixture
def phone(opened):
    yield lambda chapter: Picture(opened["phone"], chapter)
    assert opened["wrong"] == []


def test_pictures_begin_only_near_the_view(running, address):
    page = running.new_page(viewport={"width": 390, "height": 600})
    asked = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    page.goto(address + "/index.html")
    page.wait_for_selector(".play.is-live[data-play=ch01]")
    assert "ch01.js" in asked
    assert "ch10.js" not in asked
    kept_free = page.locator(".play[data-play=ch10] .play-stage").bounding_box()["height"]
    assert kept_free == play_of("10").tall[1]
    page.locator(".play[data-play=ch10]").scroll_into_view_if_needed()
    page.wait_for_selector(".play.is-live[data-play=ch10]")
    assert "ch10.js" in asked
    page.close()


def test_chapter_1_by_keyboard_and_touch(desk, phone):
    data, picture = play_of("01").data, desk("01")
    for at in (1, 4, 5):
        picture.press("Step", "Home", *["ArrowRight"] * at)
        step = data["honest"][at]
        assert f"Product so far: {step['product']}." in picture.says()
        assert f"log p = {step['log']}" in picture.root.inner_text()
        shown = picture.root.locator(".play-bars .play-number").all_inner_texts()
        assert shown == step["probs"]
    picture.choose("the whole text")
    assert "nothing was predicted" in picture.says()
    assert "log p = 0" in picture.root.inner_text()

    touched = phone("01").tap("button", "sees, hidden")
    assert data["honest"][2]["product"] in touched.says()
    assert "“sees” has 1/2" in touched.says()


def test_chapter_2_by_keyboard_and_touch(desk, phone):
    data = play_of("02").data
    picture = desk("02").choose("dog")
    for done in (1, 12, 17):
        picture.press("Step", "Home", *["ArrowRight"] * done)
        shown, path = picture.table("From scores to output"), data["queries"][2]
        assert picture.says() == path[done - 1]["says"]
        for i, step in enumerate(path):
            written = " ".join(step["shows"]) if i < done else ""
            assert shown[step["row"]][step["column"]] == written

    touched = phone("02").tap("radio", "love").tap("button", "Next")
    assert touched.says() == data["queries"][1][0]["says"]


def test_chapter_3_by_keyboard_and_touch(desk, phone):
    data, picture = play_of("03").data, desk("03")
    shown = picture.table("Mask")
    assert shown[:3] == [["●" if j <= i + 2 else "–" for j in range(5)] for i in range(3)]
    assert shown[-1] == data["weights"]["11100"]

    picture.press("queries", "End").press("keys", "Home", "ArrowRight", "ArrowRight")
    picture.root.get_by_role("button", name="query 1").press("Enter")
    assert picture.table("Mask")[1] == ["–"] * 3
    assert picture.table("Mask")[-1] == ["0"] * 3
    assert "1 + 3 − 5 = −1, before the first key: it sees no key at all" in picture.says()

    picture.root.get_by_role("button", name="query 4").press("Enter")
    picture.choose("causal and padding").press("real keys", "Home", "ArrowRight", "ArrowRight")
    assert picture.table("Mask")[4] == ["●", "●", "–"]
    assert picture.table("Mask")[-1] == data["weights"]["110"]

    picture.root.get_by_role("cell", name="open").first.hover()  # a mouse only points
    assert "Query 2" in picture.says()

    touched = phone("03").tap("button", "query 2")
    assert touched.table("Mask")[-1] == data["weights"]["11111"]
    assert [row.count("●") for row in touched.table("Mask")[:3]] == list(causal_mask(3, 5).sum(1))


def test_chapter_4_by_keyboard_and_touch(desk, phone):
    data, picture = play_of("04").data, desk("04")

    def agrees(picture, name, t):
        state = data["states"][name][data["temperatures"].index(t)]
        _, scaled, exponents, powers, weights = picture.table("Softmax")
        n = len(state["weights"])
        assert (scaled[:n], powers, weights[:n]) == (
            state["scaled"], [*state["powers"], state["total"]], state["weights"])  # fmt: skip
        assert exponents[:n] == (state["exponents"] if "shifted" in name else ["–"] * n)

    agrees(picture, "1, 2 plain float16", "1")
    picture.press("temperature T", *["ArrowLeft"] * 6)
    agrees(picture, "1, 2 plain float16", "0.1")
    assert "∞ / ∞ is NaN" in picture.says()
    picture.choose("shifted")
    agrees(picture, "1, 2 shifted float16", "0.1")
    picture.choose("plain").choose("float32").choose("−40, −30, −32")
    picture.press("temperature T", "Home")
    agrees(picture, "−40, −30, −32 plain float32", "0.02")
    assert "0 / 0 is NaN" in picture.says()

    agrees(phone("04").tap("radio", "1000, 1001"), "1000, 1001 plain float16", "1")


def test_chapter_5_by_keyboard_and_touch(desk, phone):
    ways, picture = play_of("05").data["ways"], desk("05")

    def grid(way, head):
        return [
            [weight if j <= i else "–" for j, weight in enumerate(row)]
            for i, row in enumerate(ways[way]["weights"][head])
        ]

    def held():
        """The names of the numbers as they lie, line by line."""
        return picture.root.evaluate(
            """root => [...root.querySelectorAll(".play-cell")]
              .map(cell => [...cell.style.transform.matchAll(/[\\d.]+(?=em)/g)].map(Number)
                .concat(cell.innerText))
              .sort((a, b) => a[1] - b[1] || a[0] - b[0]).map(([x, y, name]) => name)"""
        )

    assert picture.table("Weights") == grid("split_heads", 0)
    picture.choose("head 1").press("Step", "ArrowRight", "ArrowRight")
    assert picture.table("Weights") == grid("split_heads", 1)
    assert held()[:6] == ["T0", "T1", "T2", "T3", "T4", "T5"]
    assert "(2, 4, 3)" in picture.says()
    picture.choose("reshape alone").press("Step", "End")
    assert picture.table("Weights") == grid("reshape alone", 1)
    assert held()[:6] == ["T0", "T1", "T2", "p0", "p1", "p2"]

    touched = phone("05").tap("radio", "reshape alone").tap("button", "Next").tap("radio", "head 1")
    assert touched.table("Weights") == grid("reshape alone", 1)
    assert "row “The” holds the numbers of “predicts”, a later word" in touched.says()


def test_chapter_8_by_keyboard_and_touch(desk, phone):
    ways, picture = play_of("08").data["ways"], desk("08")

    def agrees(picture, way, at):
        keys = ("rows", "rows so far", "pairs", "pairs so far")
        both = (ways["without"][at], ways["with"][at])
        assert picture.table("Counts") == [[str(each[key]) for each in both] for key in keys]
        query, key, value = picture.table("Tokens in the layer")
        marks = "".join(query)
        assert marks.count("●") + marks.count("✕") == ways[way][at]["rows"]
        assert key == value
        assert "".join(key).count("○") == ways[way][at]["read"]
        scores = "".join(map("".join, picture.table("Scores of one head")))
        assert scores.count("●") + scores.count("✕") == ways[way][at]["pairs"]
        assert "  ".join(ways[way][at]["out"]) in picture.root.text_content()

    agrees(picture, "without", 0)
    agrees(picture.press("Step", "End"), "without", 3)
    agrees(picture.choose("with a cache"), "with", 3)
    agrees(picture.press("Step", "ArrowLeft"), "with", 2)
    agrees(phone("08").tap("radio", "with a cache").tap("button", "Next"), "with", 1)


def test_chapter_9_by_keyboard_and_touch(desk, phone):
    windows, picture = play_of("09").data["windows"], desk("09")

    def agrees(picture, window, layers, output):
        seen = windows[window]["seen"][layers - 1][output]
        assert f"Output {output} sees {seen} input" in picture.says()
        shown = picture.root.locator("svg text.is-on").all_text_contents()
        assert shown == [str(i) for i in range(output - seen + 1, output + 1)]

    agrees(picture, "3", 2, 11)
    agrees(picture.press("layers", "ArrowRight"), "3", 3, 11)
    assert "3 · (3 − 1) + 1 = 7" in picture.says()
    agrees(picture.press("window", "End"), "5", 3, 11)
    agrees(picture.press("output", "Home", "ArrowRight"), "5", 3, 1)

    touched = phone("09")
    box = touched.root.locator("svg").bounding_box()
    touched.root.locator("svg").tap(position={"x": box["width"] * 20 / 360, "y": 30})
    agrees(touched, "3", 2, 0)


def test_chapter_10_by_keyboard_and_touch(desk, phone):
    blocks, picture = play_of("10").data["blocks"], desk("10")

    def agrees(picture, size, at):
        step = blocks[size][at]
        terms = [*step["terms"], *["–"] * (4 - len(step["terms"]))]
        assert picture.table("Keys")[2] == terms
        m, times, total, o = picture.table("The merge")
        assert [m[2], total[2], o[2]] == step["state"]
        assert times[:2] == step.get("factors", ["", ""])
        assert f"= {step['out']}" in picture.root.inner_text()

    agrees(picture, "2", 0)
    agrees(picture.press("Step", "End"), "2", 2)
    assert "shrinks to 0.500 times" in picture.says()
    agrees(picture.choose("1"), "1", 0)
    agrees(picture.press("Step", "ArrowRight", "ArrowRight", "ArrowRight"), "1", 3)
    agrees(phone("10").tap("radio", "4").tap("button", "Next"), "4", 1)


@pytest.mark.parametrize("script", [True, False])
def test_on_paper_and_without_scripts_there_is_a_table(running, address, script):
    page = running.new_page(java_script_enabled=script, viewport={"width": 1200, "height": 800})
    page.goto(address + "/index.html")
    if script:
        assert page.locator(".play-stage").first.is_visible()
        assert not page.locator(".play-paper").first.is_visible()
        page.emulate_media(media="print")
    tables = page.locator(".play-paper table")
    assert tables.count() == len(CHAPTERS)
    for chapter, table in zip(CHAPTERS, tables.all(), strict=True):
        assert table.is_visible()
        assert table.locator("td").all_inner_texts() == [
            c for r in play_of(chapter).rows for c in r
        ]
    assert not any(stage.is_visible() for stage in page.locator(".play-stage").all())
    page.close()


def test_a_picture_that_cannot_begin_leaves_its_table(running, address):
    page = running.new_page()
    page.route("**/ch01.js", lambda route: route.abort())
    page.goto(address + "/index.html")
    page.wait_for_selector(".play.play-failed[data-play=ch01]")
    assert page.locator(".play-paper").first.is_visible()
    page.close()


def test_nothing_moves_when_the_reader_wants_no_motion(opened):
    page = opened["desk"]
    Picture(page, "05")
    how = "() => getComputedStyle(document.querySelector('.play-cell')).transitionDuration"
    assert page.evaluate(how) == "0.6s"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(how) == "0s"
    page.emulate_media(reduced_motion="no-preference")
