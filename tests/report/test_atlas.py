"""The atlas as a heat map: every number is where its concepts stand."""

from __future__ import annotations

import polars as pl
import pytest

from crosslens.core.errors import InputError
from crosslens.explanations.concepts.lexicon import hypernym_path
from crosslens.explanations.overview.confusions import ATLAS_COLUMNS
from crosslens.report.plots.heat_maps import atlas_figure
from crosslens.report.text.failures import synset_label

pytest.importorskip("plotly")

ROWS = [
    ("dog.n.01", "cat.n.01", 9), ("dog.n.01", "car.n.01", 2), ("truck.n.01", "car.n.01", 4),
    ("pizza.n.01", "cat.n.01", 1),
]  # fmt: skip


def atlas(rows: list[tuple[str, str, int]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(synset, other, count, 0.5, 0.5, 1.0, 0.2, ["q<1>"]) for synset, other, count in rows],
        schema=ATLAS_COLUMNS, orient="row",
    )  # fmt: skip


def test_every_count_is_in_its_cell() -> None:
    drawn = atlas_figure(atlas(ROWS), "title", "about").data[0]
    cells = {
        (down, across): drawn.text[row][column]
        for row, down in enumerate(drawn.y)
        for column, across in enumerate(drawn.x)
    }
    assert {key: int(text) for key, text in cells.items() if text} == {
        (synset_label(synset), synset_label(other)): count for synset, other, count in ROWS
    }


def test_like_things_stand_together_and_the_rarest_are_left_out() -> None:
    drawn = atlas_figure(atlas(ROWS), "title", "about", most=2).data[0]
    assert list(drawn.y) == [
        synset_label(synset)
        for synset in sorted(("dog.n.01", "truck.n.01"), key=lambda synset: hypernym_path(synset)[::-1])
    ]


def test_names_are_shown_literally() -> None:
    drawn = atlas_figure(atlas(ROWS[:1]), "<b>", "about")
    assert "&lt;b&gt;" in drawn.layout.title.text
    assert "q&lt;1&gt;" in drawn.data[0].hovertext[0][0]


def test_an_empty_atlas() -> None:
    with pytest.raises(InputError, match="empty"):
        atlas_figure(atlas([]), "title", "about")
