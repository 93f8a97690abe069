"""Confusions as a heat map: every number is where its concepts stand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from crosslens.explanations import overview
from crosslens.explanations.lexicon import hypernym_path
from crosslens.explanations.overview import confusion_map, synset_label
from crosslens.explanations.statistics import CONFUSION_COLUMNS

ROWS = [
    ("dog.n.01", "cat.n.01", 9), ("dog.n.01", "car.n.01", 2), ("truck.n.01", "car.n.01", 4),
    ("pizza.n.01", "cat.n.01", 1),
]  # fmt: skip
OVERVIEW: Any = SimpleNamespace(
    run="model", dataset="set", source="annotations", names={}, failures=pl.DataFrame({"query": ["1", "2"]})
)


def confusions(rows: list[tuple[str, str, int]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(synset, other, count, 0.5, 0.5, 1.0, 0.2, ["q<1>"]) for synset, other, count in rows],
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
        (synset_label(synset), synset_label(other)): count for synset, other, count in ROWS
    }
    assert "model on set, 2 failures" in drawn.about


def test_like_things_stand_together_and_the_rarest_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_MOST_CONCEPTS", 2)
    drawn = confusion_map(OVERVIEW, confusions(ROWS), "title")
    assert list(drawn.rows) == [
        synset_label(synset)
        for synset in sorted(("dog.n.01", "truck.n.01"), key=lambda synset: hypernym_path(synset)[::-1])
    ]
