"""Every page of the built book, read in a real browser that can reach no other host.

`make test` builds the book first. Each page is opened once on a light desktop and once on a dark
phone, and everything is looked at there.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from autograde import figures
from web.browse import FORMS, pages
from web.serve import SITE, serving

MEGABYTE = 1_000_000
PAGES = pages(SITE) if SITE.is_dir() else []
CHAPTERS = [page for page in PAGES if re.match(r"book/\d\d-", page)]
HEAVY = """() => performance.getEntries().filter((e) => 'encodedBodySize' in e)
    .reduce((sum, e) => sum + e.encodedBodySize, 0)"""
# Each page as one has it who has scrolled to its end: all of it is laid out, and was near.
WHOLE = "document.documentElement.classList.remove('in-parts')"
HEIGHT = "document.documentElement.scrollHeight"
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ALT = "[...document.querySelectorAll('img')].map((image) => [image.getAttribute('src'), image.alt])"


@pytest.fixture(scope="module")
def site():
    if not PAGES:
        pytest.skip("NOT TESTED, the book is not built: make book")
    with serving(SITE) as address:
        yield address


class Reader:
    """A browser window that notes what a page does and should not."""

    def __init__(self, browser, site: str, **options):
        self.site, self.faults = site, []
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(60_000)
        self.size = self.page.viewport_size
        self.page.route(lambda url: not url.startswith(site), self.refuse)
        self.page.on("console", self.listen)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("response", self.answered)

    def refuse(self, route) -> None:
        if not route.request.url.startswith(("data:", "blob:")):
            self.faults.append(f"asks another host: {route.request.url}")
        route.abort()

    def listen(self, message) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def answered(self, response) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")

    def open(self, path: str):
        self.faults.clear()
        self.page.set_viewport_size(self.size)
        self.page.goto(f"{self.site}/{path}")
        self.page.wait_for_load_state("networkidle")
        return self.page

    def read_to_the_end(self) -> None:
        """Have all of the page in view, until the next one is opened."""
        self.page.evaluate(WHOLE)
        self.page.set_viewport_size({**self.size, "height": self.page.evaluate(HEIGHT)})
        self.page.wait_for_load_state("networkidle")


@pytest.fixture(scope="module")
def desktop(running, site):
    return Reader(running, site, **FORMS["desktop-light"])


@pytest.fixture(scope="module")
def phone(running, site):
    return Reader(running, site, **FORMS["phone-dark"])


@pytest.fixture(scope="module")
def axe():
    from axe_playwright_python.sync_playwright import Axe

    return Axe()


# Most elements of a page are strokes of formulas, which are hidden from screen readers and have the
# colour of the text around them, and coloured words of code. One word of each kind tells all.
THIN = """() => {
    document.querySelectorAll('mjx-math').forEach((math) => math.remove());
    const seen = new Set();
    for (const word of document.querySelectorAll('pre span[class]:not(:has(*))')) {
        const kind = [word.className, getComputedStyle(word).color].join();
        if (seen.has(kind)) word.replaceWith(word.textContent);
        seen.add(kind);
    }
}"""


def violations(axe, page) -> list[str]:
    """What axe-core finds, with all its rules, best practices too."""
    page.evaluate(THIN)
    found = axe.run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def bad_alternatives(pairs: list[list[str]]) -> list[str]:
    """Pictures without a text that says what is seen, or with a file's name instead."""
    return [source for source, alt in pairs if len(alt) < 20 or re.search(r"\.(png|svg)\b", alt)]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("form", ["desktop", "phone"])
def test_every_page(form, path, request, axe):
    reader = request.getfixturevalue(form)
    page = reader.open(path)
    assert reader.faults == []
    assert page.evaluate(HEAVY) < MEGABYTE, "the first view is too heavy"
    reader.read_to_the_end()
    assert page.evaluate(WIDE) <= 0, "the page is wider than the screen"
    assert bad_alternatives(page.evaluate(ALT)) == []
    assert violations(axe, page) == []


def test_the_checks_see_faults(running, site, axe):
    reader = Reader(running, site, **FORMS["phone-light"])
    reader.open("book/index.html")
    reader.page.set_content(
        "<html><body><img src='https://example.org/mask.svg' alt='mask.svg'>"
        "<p style='width: 900px; color: #ddd; background: #fff'>pale and wide</p></body></html>"
    )
    reader.page.wait_for_load_state("networkidle")
    assert any("asks another host" in fault for fault in reader.faults)
    assert reader.page.evaluate(WIDE) > 0
    assert any(fault.startswith("color-contrast") for fault in violations(axe, reader.page))
    assert bad_alternatives(reader.page.evaluate(ALT)) == ["https://example.org/mask.svg"]
    reader.page.close()


def test_the_menu_of_a_phone(phone):
    page = phone.open("book/03-causal-mask.html")
    menu = page.get_by_role("dialog")
    button = page.locator("button.primary-toggle:visible")
    button.tap()
    menu.get_by_role("link", name="4. Numerics").tap()
    page.wait_for_url("**/04-numerics.html")
    page.locator("button.primary-toggle:visible").press("Enter")
    menu.get_by_role("link", name="3. The causal mask").wait_for()
    page.keyboard.press("Escape")
    menu.wait_for(state="hidden")


def test_one_search_and_one_menu_on_a_desktop(desktop):
    page = desktop.open("book/03-causal-mask.html")
    assert page.locator("button.search-button__button:visible").count() == 1
    button, sidebar = page.locator("button.primary-toggle:visible"), page.locator("nav.bd-links")
    button.click()
    sidebar.wait_for(state="hidden")
    button.click()
    sidebar.wait_for(state="visible")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("causal mask", "03-causal-mask.html"),
        ("rectangular masks", "03-causal-mask.html#rectangular-masks"),
        ("masked_softmax", "03-causal-mask.html"),
        ("sqrt", "02-self-attention.html"),
    ],
)
def test_search_finds(desktop, words, place):
    page = desktop.open(f"search.html?q={words.replace(' ', '+')}")
    page.locator(f"#search-results a[href*='{place}']").first.wait_for()


def test_next_previous_copy_and_fold(desktop):
    page = desktop.open("book/03-causal-mask.html")
    assert page.locator("a.left-prev").get_attribute("href") == "02-self-attention.html"
    assert page.locator("a.right-next").get_attribute("href") == "04-numerics.html"
    assert page.locator("button.copybtn").count() == page.locator("div.highlight > pre").count()
    fold = page.locator("details.dropdown").first
    assert fold.get_attribute("open") is None
    fold.locator("summary").press("Enter")
    assert fold.get_attribute("open") is not None
    fold.locator("summary").press("Enter")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.dropdown:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.dropdown[open]").count() == 0


def test_a_jump_in_a_page_that_is_laid_out_in_parts_lands_right(phone):
    page = phone.open("book/10-memory.html")
    last = page.locator("article section section").last
    style = "each => getComputedStyle(each.parentElement).contentVisibility"
    assert last.evaluate(style) == "auto"
    place = last.get_attribute("id")
    page.evaluate("id => document.querySelector(`a[href='#${id}']`).click()", place)
    assert page.evaluate("document.documentElement.classList.contains('in-parts')") is False
    page.wait_for_function(
        "id => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 200", arg=place
    )
    phone.open("book/index.html")
    page = phone.open(f"book/10-memory.html#{place}")
    assert last.evaluate(style) == "visible"
    assert last.evaluate("each => Math.abs(each.getBoundingClientRect().top)") < 200


def test_terms_are_linked_where_they_first_occur(site):
    page = (SITE / "book/05-multi-head.html").read_text(encoding="utf-8")
    linked = re.findall(r'<a class="[^"]*\bterm\b[^"]*" href="glossary\.html#([^"]+)"', page)
    assert len(linked) == len(set(linked)) >= 3
    for heading in re.findall(r"<h\d>.*?</h\d>", page):
        assert "glossary.html" not in heading


@pytest.mark.parametrize("path", CHAPTERS)
def test_formulas_are_set_in_the_page(path):
    page = (SITE / path).read_text(encoding="utf-8")
    assert "<mjx-container" in page
    assert "mjx-merror" not in page
    assert "tex-mml-chtml.js" not in page
    assert not re.search(r"</mjx-container></span>[.,;:)]", page), "a line may begin with it"


def deuteranopic(colour: str) -> np.ndarray:
    """The colour in CIELAB, as a reader without green cones sees it (Machado et al. 2009)."""
    matrix = np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ]
    )
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(matrix @ linear, 0, 1) / np.array([0.9505, 1, 1.089])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_colours_of_figures_differ_for_the_colour_blind():
    together = [
        (figures.BLUE, figures.VERMILION),
        (figures.BLUE, figures.GREY),
        (figures.VERMILION, figures.GREY),
        (figures.BLUE, figures.INK),
        (figures.VERMILION, figures.INK),
    ]
    for one, other in together:
        assert np.linalg.norm(deuteranopic(one) - deuteranopic(other)) > 25, (one, other)
    assert np.linalg.norm(deuteranopic("#c1272d") - deuteranopic("#7a5c00")) < 25  # red and olive


def test_the_server_compresses(site):
    from urllib.request import Request, urlopen

    address = f"{site}/book/03-causal-mask.html"
    packed = urlopen(Request(address, headers={"Accept-Encoding": "gzip"}))
    assert packed.headers["Content-Encoding"] == "gzip"
    plain = urlopen(address).read()
    assert plain == (SITE / "book/03-causal-mask.html").read_bytes()
    assert len(packed.read()) < len(plain) / 3


def test_the_style_sheet_keeps_what_occurs_and_nothing_else(monkeypatch):
    monkeypatch.syspath_prepend("_ext")
    from styles import purged

    css = (
        "/* c */ .used, .gone { color: red } .gone { top: 0 } "
        "@media print { .gone { top: 0 } .used:not(.gone) { left: 0 } }"
    )
    assert purged(css, {"used"}) == ".used{color: red}\n@media print{.used:not(.gone){left: 0}}"
