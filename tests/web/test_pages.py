"""The pages of the explorer in a real browser: what they do, by keyboard too, on a phone, for screen readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosslens.web.explorer import queries as likely_positives
from tests.tables import rest_slow
from tests.web.browser import WatchedPage, running_server
from tests.web.conftest import copy_of, leave_out_control
from tests.web.test_explorer import write_study

PAGES = (
    "/",
    "/runs/model-a?outcome=failed&sort=MRR",
    "/runs/model-a?direction=i2t&where=kind%3Dodd&against=model-b",
    "/runs/model-a/query?id=img2%230&at=0",
    "/runs/model-a/query?id=img3&direction=i2t",
    "/compare?run=model-a&run=model-b",
    "/datasets",
    "/datasets/{dataset}",
    "/datasets/{dataset}/image?id=img3",
)


@pytest.fixture(scope="module")
def address(runs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    work = tmp_path_factory.mktemp("pages")
    folder = copy_of(runs_folder, work)
    write_study(folder / "study")
    with running_server(folder, work / "cache") as running, pytest.MonkeyPatch.context() as patch:
        leave_out_control(patch)
        yield running


@pytest.fixture(scope="module")
def window(browser: Any, address: str) -> Iterator[WatchedPage]:
    """One page for all tests: a new one is a new process of the browser."""
    page = browser.new_page()
    # The explanation loads a parser, which takes seconds: tests that want it ask for it.
    page.route("**/explanation?*", lambda route: route.fulfill(body="<p class='problem'>left out</p>"))
    yield WatchedPage(page, address)
    page.close()


@pytest.fixture
def watched(window: WatchedPage) -> Iterator[WatchedPage]:
    """The page in a wide window; whatever it complains about fails the test."""
    window.page.goto("about:blank")
    window.page.emulate_media(color_scheme="light")
    window.page.set_viewport_size({"width": 1280, "height": 800})
    window.complaints.clear()
    yield window
    assert not window.complaints


def dataset_of(watched: WatchedPage) -> str:
    rows = watched.page.request.get(f"{watched.address}/api/runs").json()["runs"]
    return str(rows[0]["dataset"])


def serious_findings(page: Any) -> list[tuple[str, str]]:
    """What axe-core finds that would keep somebody from using the page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'crosslens[test]'")
    rules = axe.Axe().run(page).response["violations"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in rules if rule["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("path", rest_slow([PAGES[0], PAGES[3], PAGES[1], PAGES[7]], fast=2))
def test_the_main_pages_are_accessible_and_fit_a_phone(watched: WatchedPage, path: str) -> None:
    page = watched.open(path.format(dataset=dataset_of(watched)))
    assert not serious_findings(page)
    page.set_viewport_size({"width": 390, "height": 800})
    assert not watched.scrolls_sideways


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_all_pages_are_accessible_and_fit_a_phone(watched: WatchedPage, path: str, scheme: str) -> None:
    page = watched.open(path.format(dataset=dataset_of(watched)))
    page.emulate_media(color_scheme=scheme)
    assert not serious_findings(page)
    assert page.locator("h1").count() == 1
    page.set_viewport_size({"width": 390, "height": 800})
    assert not watched.scrolls_sideways
    assert not serious_findings(page)


def test_choosing_and_comparing_two_runs(watched: WatchedPage) -> None:
    page = watched.open("/")
    menus = page.get_by_role("form", name="Compare two runs over toys").get_by_role("combobox")
    menus.nth(0).evaluate("menu => { menu.options[0].text += ' (audits/of/all/models/tiny-scenes-v1)'.repeat(2) }")
    page.set_viewport_size({"width": 390, "height": 800})
    assert not watched.scrolls_sideways, "a run deep in the folder has a long label"
    menus.nth(0).select_option("model-a")
    menus.nth(1).select_option("model-b")
    page.get_by_role("button", name="Compare on toys").click()
    page.wait_for_url("**/compare?*")
    assert page.locator("h1").inner_text().startswith("Whether model a or model b is better cannot be decided")
    assert "model b against model a" in page.locator(".crumbs").inner_text()
    page.get_by_text("All 8 metrics").click()
    metrics = page.locator("table", has_text="difference").last.locator("tbody tr")
    assert 0 < metrics.count() <= 8, "equal ones once"
    page.get_by_role("link", name="only model a finds").click()
    page.wait_for_url("**/runs/model-b?*against=model-a&side=only_other")
    page = watched.open("/compare?run=model-a&run=model-b")
    page.locator(".query-card a").first.click()
    page.wait_for_url("**/runs/model-b/query?*with=model-a*")


def test_finding_a_query(watched: WatchedPage) -> None:
    """Filter, sort, open, step on: by menus and keys."""
    page = watched.open("/runs/model-a")
    whole = page.locator(".headline b").inner_text()
    page.get_by_label("Order").select_option("MRR")
    page.wait_for_url("**sort=MRR**")
    page.get_by_role("link", name="all misses").click()
    page.wait_for_url("**outcome=failed**")
    assert (page.locator(".headline b").inner_text(), whole != "0.0 %") == ("0.0 %", True), "it follows the filter"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"
    page.keyboard.type("cats")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=cats**")
    assert page.get_by_text("the first item is relevant").count() == 0
    first = page.locator(".query-card a").first
    text = first.inner_text()
    first.press("Enter")
    page.wait_for_url("**/query?**")
    assert page.locator("h1").inner_text() == text
    page.keyboard.press("j")
    page.wait_for_url("**at=1**")
    page.keyboard.press("k")
    page.wait_for_url("**at=0**")


def test_a_query_shows_lists_truth_and_marks(watched: WatchedPage) -> None:
    page = watched.open("/runs/model-a/query?id=img8%230")
    assert page.locator("section.result").count() == 2
    assert page.locator("section.result").first.locator("li.item").count() == 10
    assert page.locator("ul.truth li.right").count() == 1
    broken = "[...document.images].filter(image => image.complete && !image.naturalWidth).length"
    assert page.evaluate(broken) == 0
    likely = page.locator("section.result").first.locator("li.likely")
    page.wait_for_function("document.querySelector('li.likely') !== null")
    assert likely.get_attribute("data-item") == "img9", "its captions are the same"
    assert "not in the ground truth" in page.locator(".likely-note").inner_text()


def test_marks_that_take_longer_come_by_themselves(watched: WatchedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page does not wait for them: it says so, and renews its lists."""
    patched = likely_positives.LikelyPositiveSearch.of_view
    answers = iter([0.0])  # the first page does not wait at all, and the dataset is "not prepared" for it
    monkeypatch.setattr(
        likely_positives.LikelyPositiveSearch,
        "of_view",
        lambda self, run, view: likely_positives.PageMarks(pending=True) if next(answers, None) is not None
        else patched(self, run, view),
    )  # fmt: skip
    monkeypatch.setattr(likely_positives, "_PATIENCE", 30)
    page = watched.page
    page.goto(f"{watched.address}/runs/model-a/query?id=img8%230")
    assert "for the first time" in page.locator("[data-results]").inner_text()
    page.wait_for_selector("li.likely")
    assert "for the first time" not in page.locator("[data-results]").inner_text()


def test_markup_in_captions_is_shown_as_it_is(watched: WatchedPage) -> None:
    page = watched.open("/runs/model-a/query?id=img3%231")
    assert page.locator("h1").inner_text().startswith("<script>alert('x')</script>")


@pytest.mark.slow
def test_the_explanation_comes_with_boxes(browser: Any, address: str) -> None:
    page = browser.new_page()
    watched = WatchedPage(page, address)
    page.goto(f"{address}/runs/model-a/query?id=img2%230")
    page.wait_for_selector(".explained svg .box", timeout=60_000)
    assert page.locator(".explained svg image").count() == 2
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert not serious_findings(page)
    page.set_viewport_size({"width": 390, "height": 800})
    assert not watched.scrolls_sideways
    page.close()
    assert not watched.complaints
