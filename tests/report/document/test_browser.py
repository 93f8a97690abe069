"""The report in a real browser: from disk, in light and dark, on a phone, by keyboard, on paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosslens.report import Report, report_inputs
from tests.report.browser import Watched
from tests.tables import rest_slow

from .conftest import NASTY, Drawn, Study

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


def written(folder: Path, kind: str, request: pytest.FixtureRequest) -> Path:
    """A report of runs alone, or of everything that an audit may compute."""
    if kind == "runs":
        study: Study = request.getfixturevalue("study")
        inputs = report_inputs(study.runs, image_folder=study.folder / "photos", queries=2)
    else:
        drawn: Drawn = request.getfixturevalue("drawn")
        inputs = report_inputs([drawn.audit])
    file = folder / f"{kind}.html"
    file.write_text(Report(inputs).page, encoding="utf-8")
    return file


@pytest.fixture(scope="module", params=["runs", pytest.param("stages", marks=pytest.mark.slow)])
def page_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("pages"), request.param, request)


def serious(page: Any) -> list[tuple[str, str, str]]:
    """What axe finds that keeps people out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'crosslens[test]'")
    return [
        (rule["id"], node["html"][:200], node["failureSummary"])
        for rule in axe.Axe().run(page).response["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


Opened = Callable[..., Watched]


@pytest.fixture(scope="module")
def window(browser: Any) -> Iterator[Watched]:
    """For whoever needs no special one: a new window is a new process of the browser."""
    context = browser.new_context()
    yield Watched(context.new_page())
    context.close()


@pytest.fixture
def opened(browser: Any, window: Watched) -> Iterator[Opened]:
    """Opens a file, with options in a window of its own; all are closed in the end."""
    contexts = []

    def open_file(file: Path, size: dict[str, int] = DESK, **options: Any) -> Watched:
        if not options:
            window.page.goto("about:blank")
            window.page.set_viewport_size(size)
            window.requests.clear()
            window.complaints.clear()
            window.page.goto(file.as_uri())
            return window
        contexts.append(browser.new_context(viewport=size, **options))
        page = Watched(contexts[-1].new_page())
        page.page.goto(file.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()


def test_opens_from_disk_without_complaint_or_request(opened: Opened, page_file: Path) -> None:
    watched = opened(page_file)
    watched.page.wait_for_load_state("networkidle")
    asked = [address for address in watched.requests if not address.startswith("data:")]
    assert asked == [page_file.as_uri()]
    assert watched.complaints == []
    assert watched.page.locator("h2").count() >= 4


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_nothing_serious_for_people_who_see_or_use_it_differently(
    opened: Opened, page_file: Path, colours: str
) -> None:
    page = opened(page_file, color_scheme=colours).page
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (colours == "dark")
    assert serious(page) == []


@pytest.mark.parametrize("details", rest_slow([True, False]))
def test_a_phone_does_not_scroll_sideways(opened: Opened, page_file: Path, details: bool) -> None:
    page = opened(page_file, PHONE).page
    if details:
        page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    # Nothing is cut off either: what is wider than the screen scrolls by itself, and commands wrap.
    wide = page.evaluate(
        """() => Array.from(document.querySelectorAll('main *')).filter(element => {
             const box = element.getBoundingClientRect();
             return box.right > innerWidth + 1 && box.width > 0 && !element.closest('.wide, .chart-scroll, svg')
               && !element.classList.contains('unseen');
           }).map(element => element.outerHTML.slice(0, 120))"""
    )
    assert wide == []
    assert page.locator("pre").count()
    assert page.evaluate(
        "[...document.querySelectorAll('pre')].every(command => command.scrollWidth <= command.clientWidth)"
    )


def test_captions_with_markup_stay_text(opened: Opened, study: Study, tmp_path: Path) -> None:
    inputs = report_inputs(study.runs, queries=12)
    file = tmp_path / "r.html"
    file.write_text(Report(inputs).page, encoding="utf-8")
    watched = opened(file)
    assert watched.page.evaluate("window.hacked") is None
    texts_on_page = watched.page.locator(".query, q").all_inner_texts()
    assert NASTY in texts_on_page
    assert watched.page.locator("main img, main script, main b b").count() == 0
    assert watched.complaints == []


def test_the_button_changes_the_colours_and_is_remembered(opened: Opened, page_file: Path) -> None:
    page = opened(page_file, color_scheme="light").page
    ink = "getComputedStyle(document.body).color"
    before = page.evaluate(ink)
    button = page.get_by_role("button", name="Dark colours")
    button.click()
    after = page.evaluate(ink)
    assert after != before
    assert page.get_by_role("button", name="Light colours").is_visible()
    page.wait_for_timeout(300)  # another process of the browser stores the choice
    page.reload()
    assert page.evaluate(ink) == after
    page.get_by_role("button", name="Light colours").press("Enter")
    assert page.evaluate(ink) == before


def test_by_keyboard(opened: Opened, page_file: Path) -> None:
    page = opened(page_file).page
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    assert skip.bounding_box()["y"] >= 0, "seen when it has the focus"
    outline = skip.evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_answers_lead_to_their_evidence_and_open_it(opened: Opened, page_file: Path) -> None:
    page = opened(page_file).page
    links = page.locator("dl.answers a")
    assert links.count() > 0
    for number in range(links.count()):
        target = page.locator(f"[id='{links.nth(number).get_attribute('href')[1:]}']")
        assert target.count() == 1
        links.nth(number).click()
        assert target.is_visible()
        assert -5 <= target.bounding_box()["y"] < DESK["height"]


def test_facets_narrow_the_cards(opened: Opened, page_file: Path) -> None:
    page = opened(page_file).page
    cards = page.locator("#misses [data-values]")
    before = sum(card.is_visible() for card in cards.all())
    assert before > 0
    chip = page.locator("#misses button.chip").first
    chip.click()
    value = chip.get_attribute("data-value")
    assert chip.get_attribute("aria-pressed") == "true"
    for card in cards.all():
        assert card.is_visible() == (value in card.get_attribute("data-values").split("\n"))
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert sum(card.is_visible() for card in cards.all()) >= before


def test_prints_to_paper(opened: Opened, page_file: Path) -> None:
    page = opened(page_file, color_scheme="dark").page
    content = page.pdf(format="A4")
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type /Page\b", content)) <= 8
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#theme").is_visible()
    assert page.locator("#numbers table").first.is_visible()


def test_without_script_everything_is_there(opened: Opened, page_file: Path) -> None:
    page = opened(page_file, java_script_enabled=False).page
    assert page.locator("#theme").is_hidden(), "a button that would do nothing"
    assert page.locator("svg.chart").count() > 0
    assert page.locator("main section").count() >= 4
    assert page.locator("button.chip:enabled").count() == 0
