"""The owner's pages in a real browser: adjudicate, export, refuse annotators, a telephone, assistive technology."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosslens.web import load_answers
from crosslens.web.judging.accounts import open_session
from crosslens.web.judging.context import SESSION_COOKIE
from crosslens.web.judging.tasks import Answer
from tests.report.browser import Watched
from tests.web.judging.owned import Owned
from tests.web.judging.served import running

pytestmark = pytest.mark.slow

SHOTS = os.environ.get("CROSSLENS_SCREENSHOTS")
"""A folder to which the pages are saved as pictures, to be looked at."""
PAGES = {
    "results": "", "people": "/people", "disagreements": "/disagreements?shown=all", "correlations":
    "/correlations?run=model-a", "models": "/models", "items": "/items", "log": "/log",
}  # fmt: skip


@pytest.fixture(scope="module")
def address(owned: Owned) -> Iterator[str]:
    with running(owned.site) as where:
        yield where


Opening = Callable[..., Watched]


@pytest.fixture
def open_as(browser: Any, owned: Owned, address: str) -> Iterator[Opening]:
    """A page of somebody who is logged in; at the end there are neither complaints nor requests to elsewhere."""
    contexts = []

    def opening(account: int, path: str, **options: Any) -> Watched:
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        token = open_session(owned.site.database, account)
        context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": address}])
        watched = Watched(context.new_page())
        watched.page.goto(address + path)
        opened.append(watched)
        return watched

    opened: list[Watched] = []
    yield opening
    for watched in opened:
        assert [line for line in watched.complaints if "403" not in line] == []
        assert {request for request in watched.requests if not request.startswith((address, "data:"))} == set()
    for context in contexts:
        context.close()


def shoot(page: Any, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SHOTS}/owner-{name}.png", full_page=True)


def test_the_owner_adjudicates_and_exports(owned: Owned, open_as: Opening, tmp_path: Path) -> None:
    page = open_as(owned.owner, f"/projects/{owned.project}").page
    page.get_by_role("link", name="Results and settings").click()
    page.get_by_role("link", name="Disagreements", exact=True).click()
    assert page.locator("section.case").count() == 2
    first = page.locator("section.case").first
    item = first.get_attribute("id").removeprefix("item-")
    first.get_by_label("Colour").check()
    first.get_by_label("Count").check()
    first.get_by_label("How well does the retrieved picture fit").select_option("4")
    first.get_by_role("button", name="Decide").click()
    page.wait_for_url("**/disagreements?shown=open&start=0")
    assert page.locator("section.case").count() == 1
    assert load_answers(owned.site.database, owned.project).adjudicated == {item: Answer(("colour", "count"), 4)}
    page.get_by_role("link", name="Decided items, too").click()
    assert page.locator(f"#item-{item} .badge").inner_text() == "decided"
    shoot(page, "decided")
    page.get_by_role("link", name="Items and export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download qrels").click()
    download.value.save_as(tmp_path / "judgements.parquet")
    table = pl.read_parquet(tmp_path / "judgements.parquet")
    pair = load_answers(owned.site.database, owned.project).pairs[item]
    decided = table.filter((pl.col("image") == pair[0]) & (pl.col("caption") == pair[1]))
    assert (set(decided["grade"]), set(decided["by"])) == ({0.0}, {"adjudicated"})
    with page.expect_download() as download:
        page.get_by_role("link", name="answers.csv").click()
    assert download.value.suggested_filename == f"project-{owned.project}-answers.csv"


def test_an_annotator_is_refused(owned: Owned, open_as: Opening) -> None:
    page = open_as(owned.people["ann"], f"/projects/{owned.project}").page
    assert page.get_by_role("link", name="Results and settings").count() == 0
    for path in PAGES.values():
        assert page.goto(page.url.split("/projects")[0] + owned.address(path)).status == 403


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_on_a_telephone_and_for_assistive_technology(
    owned: Owned, open_as: Opening, name: str, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'crosslens[test]'").Axe()
    page = open_as(
        owned.owner, owned.address(PAGES[name]), viewport={"width": 390, "height": 844}, color_scheme=scheme,
        has_touch=True, is_mobile=True,
    ).page  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shoot(page, f"{name}-telephone-{scheme}")
    violations = axe.run(page).response["violations"]
    serious = [
        (entry["id"], [node["html"][:200] for node in entry["nodes"]])
        for entry in violations
        if entry["impact"] in ("serious", "critical")
    ]
    assert serious == []
    page.set_viewport_size({"width": 1280, "height": 800})
    shoot(page, f"{name}-{scheme}")
