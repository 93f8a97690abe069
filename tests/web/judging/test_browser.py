"""Judging in a real browser: by keyboard, by two people at once, on a telephone, with assistive technology."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosslens.web import create_invitation
from crosslens.web.judging.accounts import open_session
from crosslens.web.judging.context import SESSION_COOKIE
from crosslens.web.judging.database.projects import join
from tests.report.browser import Watched
from tests.web.judging.samples import judgements, person, taken_back
from tests.web.judging.served import picture_project, pictures, running
from tests.web.judging.site import Site

pytestmark = pytest.mark.slow

SHOTS = os.environ.get("CROSSLENS_SCREENSHOTS")
"""A folder to which the pages are saved as pictures, to be looked at."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("judging")
    dataset = pictures(folder / "pictures")
    opened = Site(folder / "runs", datasets=(dataset,), image_folders=(folder / "pictures",))
    opened.owner()
    yield opened
    opened.database.close()


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with running(site) as where:
        yield where


Opening = Callable[..., Watched]


@pytest.fixture
def open_as(browser: Any, site: Site, address: str) -> Iterator[Opening]:
    """A page of somebody who is logged in, in a browser context of their own; fails on any complaint at the end."""
    opened: list[tuple[Any, Watched]] = []

    def open_page(account: int | None, path: str, **options: Any) -> Watched:
        context = browser.new_context(base_url=address, **options)
        if account is not None:
            token = open_session(site.database, account)
            context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": address, "httpOnly": True}])
        watched = Watched(context.new_page())
        opened.append((context, watched))
        watched.page.goto(path)
        return watched

    yield open_page
    for context, watched in opened:
        context.close()
        assert watched.complaints == []
        assert all(request.startswith(address) for request in watched.requests), "asked for something elsewhere"


def shoot(page: Any, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def answer(page: Any, *keys: str) -> None:
    """Press keys, the last of which sends the answer."""
    before = page.locator("[name=assignment]").input_value()
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function(
        "before => document.readyState === 'complete' && document.querySelector('[name=assignment]')?.value !== before",
        arg=before,
    )


def test_twenty_items_by_keyboard(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "pairs", 20)
    page = open_as(person(site.database, "keys", project=number), f"/projects/{number}/annotate").page
    page.wait_for_function("document.querySelector('.shown img').naturalWidth > 0")
    for n in range(20):
        answer(page, "1" if n % 3 else "2")
    assert page.get_by_text("Nothing is left for you").is_visible()
    labels = [entry.labels[0] for entry in judgements(site.database, number)]
    assert labels == ["good" if n % 3 else "bad" for n in range(20)]


def test_causes_and_rating_by_keyboard(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "failures", 3)
    watched = open_as(person(site.database, "causes", project=number), f"/projects/{number}/annotate")
    page = watched.page
    shoot(page, "failures")
    page.keyboard.press("7")
    answer(page, "2", "3", "Shift+Digit4", "Enter")
    answer(page, "3", "7", "Shift+Digit0", "Enter")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    assert "choose a number from 1 to 10" in page.get_by_role("alert").inner_text()
    watched.complaints.clear()  # the browser notes that the answer was refused
    assert page.get_by_role("checkbox", name="Object class").is_checked()
    page.keyboard.press("Shift+Digit9")
    page.keyboard.press("Enter")
    page.get_by_text("Nothing is left for you").wait_for()
    stored = [(entry.labels, entry.rating) for entry in judgements(site.database, number)]
    assert stored == [(("colour", "count"), 4), (("successful_alternative",), 10), (("object_class",), 9)]


def test_a_correction_by_keyboard(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "validity", 1)
    page = open_as(person(site.database, "corrects", project=number), f"/projects/{number}/annotate").page
    shoot(page, "validity")
    page.keyboard.press("t")
    page.keyboard.type("2 green balls, 1 bush")
    page.keyboard.press("Escape")
    answer(page, "2")
    assert [(entry.labels, entry.text) for entry in judgements(site.database, number)] == [
        (("bad",), "2 green balls, 1 bush")
    ]


def test_two_at_once(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "pairs", 6, overlap=2)
    accounts = [person(site.database, name, project=number) for name in ("first", "second")]
    pages = [open_as(account, f"/projects/{number}/annotate").page for account in accounts]
    for _ in range(6):
        for page, key in zip(pages, "12", strict=True):
            answer(page, key)
    stored = judgements(site.database, number)
    assert len({(entry.item, entry.account) for entry in stored}) == len(stored) == 12
    assert {entry.account: entry.labels for entry in stored} == {"first": ("good",), "second": ("bad",)}


def test_undo_and_guidelines_by_key(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "pairs", 3)
    page = open_as(person(site.database, "undoes", project=number), f"/projects/{number}/annotate").page
    first = page.locator("[name=assignment]").input_value()
    answer(page, "1")
    answer(page, "u")
    assert page.locator("[name=assignment]").input_value() == first
    assert page.get_by_text("Your last answer was taken back.").is_visible()
    answer(page, "2")
    page.keyboard.press("g")
    page.get_by_role("heading", name="Guidelines").wait_for()
    page.get_by_role("link", name="Back to the items").press("Enter")
    page.wait_for_url("**/annotate")
    assert [entry.labels for entry in judgements(site.database, number)] == [("bad",)]
    assert [labels for labels, _ in taken_back(site.database, number)] == [("good",)]


def test_resume_after_closing(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "pairs", 4)
    account = person(site.database, "resumes", project=number)
    first = open_as(account, f"/projects/{number}/annotate").page
    answer(first, "1")
    assignment = first.locator("[name=assignment]").input_value()
    first.close()
    again = open_as(account, f"/projects/{number}").page
    again.get_by_role("link", name="Go on").click()
    again.wait_for_url("**/annotate")
    assert again.locator("[name=assignment]").input_value() == assignment
    assert again.get_by_text("1 judged, up to 3 left").is_visible()


def test_the_next_picture_is_loaded_ahead(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "pairs", 2)
    watched = open_as(person(site.database, "ahead", project=number), f"/projects/{number}/annotate")
    watched.page.wait_for_load_state("networkidle")
    before = {request for request in watched.requests if "/pictures/" in request}
    assert len(before) == 2
    answer(watched.page, "1")
    assert {request for request in watched.requests if "/pictures/" in request} == before


def test_without_javascript(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "failures", 1, practice=1)
    account = person(site.database, "plain", project=number)
    page = open_as(account, f"/projects/{number}/annotate", java_script_enabled=False).page
    for _ in range(2):
        page.get_by_text("Object class").click()
        page.get_by_role("radio", name="8", exact=True).check()
        page.get_by_role("button", name="Next").click()
        if page.get_by_role("link", name="Continue").is_visible():
            page.get_by_role("link", name="Continue").click()
    assert page.get_by_text("Nothing is left for you").is_visible()
    assert [entry.rating for entry in judgements(site.database, number)] == [8, 8]


def test_an_invitation_is_followed(site: Site, open_as: Opening) -> None:
    number = picture_project(site, "pairs", 1, practice=1, name="Invited")
    path = f"/join/{create_invitation(site.database, number)}"
    page = open_as(None, path).page
    shoot(page, "join")
    page.get_by_label("Name, as others see it").fill("Grace")
    page.get_by_label("Password, at least 10 characters").fill("a long password")
    page.get_by_role("button", name="Make an account and join").click()
    page.get_by_role("link", name="Start").click()
    page.wait_for_url("**/annotate")
    page.keyboard.press("2")
    page.get_by_text("The expected answer is another one").wait_for()
    shoot(page, "feedback")
    page.keyboard.press("Enter")
    page.wait_for_url("**/annotate")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.get_by_label("Name").fill("grace")
    page.get_by_label("Password").fill("a long password")
    page.keyboard.press("Enter")
    page.wait_for_url("**/judging")
    assert page.get_by_role("link", name="Invited", exact=True).is_visible()


@pytest.fixture(scope="module")
def looked_at(site: Site) -> tuple[int, dict[str, str]]:
    """An account, and the pages that it sees."""
    number = picture_project(site, "failures", 3, practice=1)
    captions = picture_project(site, "validity", 3, name="Captions of a benchmark with a long name")
    pairs, grades = (picture_project(site, task, 3) for task in ("pairs", "relevance"))
    account = person(site.database, "looks", project=number)
    for project_id in (captions, pairs, grades):
        join(site.database, project_id, account)
    token = create_invitation(site.database, number)
    return account, {
        "projects": "/judging",
        "project": f"/projects/{number}",
        "guidelines": f"/projects/{number}/guidelines",
        "item": f"/projects/{number}/annotate",
        "caption": f"/projects/{captions}/annotate",
        "pair": f"/projects/{pairs}/annotate",
        "grade": f"/projects/{grades}/annotate",
        "account": "/account",
        "invitation": f"/join/{token}",
        "login": "/login",
    }


@pytest.mark.parametrize(
    "name", ["projects", "project", "guidelines", "item", "caption", "pair", "grade", "account", "invitation", "login"]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_on_a_telephone_and_for_assistive_technology(
    looked_at: tuple[int, dict[str, str]], open_as: Opening, name: str, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'crosslens[test]'").Axe()
    account, paths = looked_at
    page = open_as(
        account,
        paths[name],
        viewport={"width": 390, "height": 844},
        color_scheme=scheme,
        has_touch=True,
        is_mobile=True,
    ).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, f"{name}-telephone-{scheme}")
    violations = axe.run(page).response["violations"]
    serious = [
        (entry["id"], [node["html"] for node in entry["nodes"]])
        for entry in violations
        if entry["impact"] in ("serious", "critical")
    ]
    assert serious == []
    if SHOTS:
        page.set_viewport_size({"width": 1280, "height": 800})
        shoot(page, f"{name}-{scheme}")
