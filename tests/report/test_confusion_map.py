"""Confusions as a heat map: every number is where its concepts stand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from crosslens.explanations import hypernym_path, overview
from crosslens.explanations.overview import confusion_map, synset_label
from crosslens.explanations.statistics import CONFUSION_COLUMNS
from crosslens.report import SECTION_STYLE, chart_html
from tests.report.browser import Watched

ROWS = [
    ("dog.n.01", "cat.n.01", 9), ("dog.n.01", "car.n.01", 2), ("truck.n.01", "car.n.01", 4),
    ("pizza.n.01", "cat.n.01", 1),
]  # fmt: skip
OVERVIEW: Any = SimpleNamespace(
    run="model", dataset="set", source="annotations", names={}, failures=pl.DataFrame({"query": ["1", "2"]})
)
THIRTY = (
    "dog cat car truck pizza horse cow sheep bird boat train bus bicycle airplane chair table sofa bottle banana apple "
    "orange carrot cake clock book vase oven sink toaster umbrella"
)


def confusions(rows: list[tuple[str, str, int]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(synset, shown_synset, count, 0.5, 0.5, 1.0, 0.2, ["q<1>"]) for synset, shown_synset, count in rows],
        schema=CONFUSION_COLUMNS, orient="row",
    )  # fmt: skip


def test_every_count_is_in_its_cell() -> None:
    drawn = confusion_map(OVERVIEW, confusions(ROWS), "title")
    cells = {
        (down, across): drawn.cells[row][column].value
        for row, down in enumerate(drawn.rows)
        for column, across in enumerate(drawn.columns)
    }
    assert {key: count for key, count in cells.items() if count is not None} == {
        (synset_label(synset), synset_label(shown_synset)): count for synset, shown_synset, count in ROWS
    }
    assert "model on set, 2 failures" in drawn.about


def test_like_things_stand_together_and_the_rarest_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_MOST_CONCEPTS", 2)
    drawn = confusion_map(OVERVIEW, confusions(ROWS), "title")
    assert list(drawn.rows) == [
        synset_label(synset)
        for synset in sorted(("dog.n.01", "truck.n.01"), key=lambda synset: hypernym_path(synset)[::-1])
    ]


@pytest.mark.parametrize(("width", "scrolls"), [(1280, False), (400, True)])
def test_thirty_concepts_fit_a_desk_and_scroll_on_a_phone(browser_page: Watched, width: int, scrolls: bool) -> None:
    names = [f"{word}.n.01" for word in THIRTY.split()]
    drawn = chart_html(confusion_map(OVERVIEW, confusions([(name, name, 12) for name in names]), "title"))
    browser_page.page.set_viewport_size({"width": width, "height": 800})
    browser_page.page.set_content(f"<style>{SECTION_STYLE}</style><div class=sections>{drawn}</div>")
    box = browser_page.page.locator(".chart-scroll")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth") is scrolls
    assert box.locator("svg").bounding_box()["width"] > 700
