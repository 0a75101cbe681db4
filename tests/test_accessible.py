"""Every wing's page, from kept results, for those who don't see it, use a keyboard or a phone."""

import importlib
import re
import shutil
from pathlib import Path

import pytest

from evidence import figures

KEPT = Path(__file__).parents[1] / "benchmarks/results"
PAGES = {
    "goodharts_jax": "phase_diagram",
    "kubku": "kubku",
    "epistemic": "epistemic/rivers_licence",
}

pytestmark = pytest.mark.browser

CUT = """[...document.querySelectorAll(".scroll")].filter(one => one.scrollWidth > one.clientWidth)
    .map(one => one.getAttribute("aria-label"))"""
TEXT = """[...document.querySelectorAll("figure svg")].flatMap(svg => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll("text")]
        .map(text => parseFloat(getComputedStyle(text).fontSize) * scale);
})"""
FIRST = """[...document.querySelectorAll(".scroll")].flatMap(one => {
    one.scrollLeft = 1000;
    const first = one.querySelector("tbody tr :is(th, td):first-child:not([colspan], .prose)");
    return one.scrollLeft && first
        ? [first.getBoundingClientRect().left - one.getBoundingClientRect().left] : [];
})"""


@pytest.fixture(scope="module", params=PAGES)
def page(request, browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    shutil.copy(KEPT / PAGES[request.param] / "results.json", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "save", lambda *_: [])  # of files there are other tests
        path = importlib.import_module(f"{request.param}.report").write(folder)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(path.as_uri())
    # What folds away is read by somebody, too.
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    yield page
    page.close()


def test_axe_finds_no_fault(page, accessible):
    accessible(page)


def test_everything_that_scrolls_is_a_region_with_a_name_of_its_own(page):
    regions = page.locator(".scroll").evaluate_all(
        "all => all.map(one => [one.tabIndex, one.role, one.ariaLabel])"
    )
    assert regions and all(region[:2] == [0, "region"] for region in regions)
    names = [name for *_, name in regions]
    assert all(names) and len(set(names)) == len(names)


def test_figures_say_their_numbers(page):
    told = page.locator("figure svg").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert told and all(re.search(r"\d", text) for text in told)


def test_nothing_is_cut_at_1280_and_at_390_figures_are_read_and_rows_keep_their_names(page):
    assert page.evaluate(CUT) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert min(page.evaluate(TEXT)) > 8
    assert {round(left) for left in page.evaluate(FIRST)} == {0}


def test_a_page_of_every_learner_is_read_in_five_screens(browser, tmp_path, monkeypatch):
    """With what folds away folded: 5,000 pixels at 1280."""
    shutil.copy(KEPT / "kubku/results.json", tmp_path)
    monkeypatch.setattr(figures, "save", lambda *_: [])
    path = importlib.import_module("kubku.report").write(tmp_path)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= 5000
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert page.evaluate(CUT) == []
    page.close()
