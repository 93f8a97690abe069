"""Colours of points, each against a loop over the points."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import UnknownNameError
from crosslens.report import LEVEL_COLOURS
from crosslens.values import Run
from crosslens.web.map.colours import LEVELS, MOST_ROWS, NO_VALUE, ItemLookup, Palette, of_categories, of_numbers
from crosslens.web.map.maps import EmbeddingMap
from crosslens.web.map.projection import Region
from crosslens.web.map.routes import pack_colouring, pack_points

DATA = cl.Dataset.of({"b": ["Blue car", "fast car"], "a": ["A dog", "dog & <b>cat</b>"]}, images={"kind": ["x", None]})


def drawn() -> EmbeddingMap:
    """The order of the map is not that of the dataset, and one caption is not in the dataset."""
    points = np.arange(12, dtype=np.float32).reshape(6, 2) / 12
    regions = (Region(0, "dogs", 1, 2, 0.0, 0.0), Region(1, "cars", 1, 2, 1.0, 1.0))
    captions = ("a#1", "b#0", "a#0", "gone")
    return EmbeddingMap("k", "pca", ("a", "b"), captions, points, np.array([0, 1, 0, 1, 0, 1], np.uint8), regions)


@pytest.fixture
def run() -> Run:
    rng = np.random.default_rng(0)
    return cl.evaluate(DATA, scores=rng.normal(size=(2, 4)), metrics=["Hit@1", "MRR", "MedR"], resamples=10)


@given(values=st.lists(st.one_of(st.none(), st.integers(0, 20).map(str)), max_size=60))
def test_categories(values: list[str | None]) -> None:
    colouring = of_categories("column:x", "x", values)
    present = [value for value in values if value is not None]
    ordered = sorted(set(present), key=lambda value: (-present.count(value), value))
    for value, code in zip(values, colouring.codes.tolist(), strict=True):
        if value is None:
            assert code == NO_VALUE
        elif len(ordered) <= 12 or ordered.index(value) < 11:
            assert colouring.labels[code] == value
        else:
            assert colouring.labels[code] == f"{len(ordered) - 11} others"
    assert colouring.missing == values.count(None)
    assert sum(colouring.counts) == len(present)


def test_levels_have_the_colours_of_the_plots() -> None:
    colouring = of_categories("column:difficulty", "difficulty", ["hard", "easy", "odd", "hard"])
    expected = [LEVEL_COLOURS.get(label, "").lower() for label in ("hard", "easy", "odd")]
    assert (colouring.labels, list(colouring.colours)) == (("hard", "easy", "odd"), expected)


@given(values=st.lists(st.one_of(st.just(math.nan), st.floats(1, 1e6)), max_size=50), log=st.booleans())
def test_numbers(values: list[float], log: bool) -> None:
    colouring = of_numbers("rank", "rank", np.array(values), "logarithmic" if log else "linear")
    present = [value for value in values if not math.isnan(value)]
    if colouring.kind == "categories":
        assert set(present) == {0.0, 1.0}
        return
    if not present:
        assert set(colouring.codes.tolist()) <= {NO_VALUE}
        return
    low, high = (math.log(v) if log else v for v in (min(present), max(present)))
    for value, code in zip(values, colouring.codes.tolist(), strict=True):
        if math.isnan(value):
            assert code == NO_VALUE
        else:
            share = ((math.log(value) if log else value) - low) / ((high - low) or 1)
            assert abs(code - share * (LEVELS - 1)) <= 0.51


def test_hit_and_miss_are_two_categories() -> None:
    colouring = of_numbers("metric:Hit@1", "Hit@1", np.array([1, 0, np.nan, 1.0]))
    assert (colouring.kind, colouring.labels, colouring.counts) == ("categories", ("miss", "hit"), (1, 2))
    assert colouring.codes.tolist() == [1, 0, NO_VALUE, 1]
    assert of_numbers("metric:Hit@1", "Hit@1", np.array([1.0])).labels == ("miss", "hit")
    assert of_numbers("metric:MRR", "MRR", np.array([1.0, 1.0])).kind == "numbers"
    assert of_numbers("column:x", "x", np.array([0.0, 1.0])).labels == ("0", "1")


def test_every_colouring_of_a_run(run: Run) -> None:
    palette = Palette(drawn(), run, DATA)
    names = [name for name, _ in palette.names()]
    assert names == ["modality", "cluster", "rank", "metric:Hit@1", "metric:MRR", "metric:MedR", "column:kind"]
    assert palette.colouring("modality").codes.tolist() == [0, 0, 1, 1, 1, 1]
    assert palette.colouring("cluster").labels == ("dogs", "cars")
    kinds = palette.colouring("column:kind")  # a caption has the kind of its image; "gone" is of no image
    assert [None if code == NO_VALUE else kinds.labels[code] for code in kinds.codes] == [
        None,
        "x",
        None,
        "x",
        None,
        None,
    ]
    with pytest.raises(UnknownNameError, match="colouring"):
        palette.colouring("metric:Hit@7")


def test_metrics_and_ranks_are_those_of_each_query(run: Run) -> None:
    palette = Palette(drawn(), run, DATA)
    values = {
        **dict(zip(run["i2t/MedR"].query_ids, run["i2t/MedR"].values, strict=True)),
        **dict(zip(run["t2i/MedR"].query_ids, run["t2i/MedR"].values, strict=True)),
    }
    expected = [values.get(item, math.nan) for item in drawn().ids]
    for name in ("metric:MedR", "rank"):
        np.testing.assert_array_equal(palette._numbers(name), expected)


def test_columns_of_captions_and_numbers() -> None:
    captions = DATA.captions.with_columns(pl.Series("length", [2, 2, 2, 3]))
    data = cl.Dataset(DATA.name, DATA.images, captions)
    colouring = Palette(drawn(), Run("x", {}), data).colouring("column:length")
    assert [colouring.labels[code] for code in colouring.codes if code != NO_VALUE] == ["3", "2", "2"]
    assert Palette(drawn(), Run("x", {})).names() == [
        ("modality", "image or caption"),
        ("cluster", "region of the map"),
    ]


def test_bytes() -> None:
    packed = pack_points(drawn())
    length = int.from_bytes(packed[:4], "little")
    assert length % 4 == 0
    assert json.loads(packed[4 : 4 + length]) == {"points": 6, "images": 2, "method": "pca"}
    numbers = np.frombuffer(packed, "<f4", offset=4 + length)
    np.testing.assert_array_equal(numbers.reshape(2, 6).T, drawn().points)
    packed = pack_colouring(of_categories("c", "ü", ["x", None]))
    length = int.from_bytes(packed[:4], "little")
    assert json.loads(packed[4 : 4 + length])["label"] == "ü"
    assert packed[4 + length :] == bytes([0, NO_VALUE])


def test_items_and_finding() -> None:
    lookup = ItemLookup(drawn(), DATA)
    items = lookup.items([5, 0, 3])
    assert [(item.id, item.kind, item.text, item.image) for item in items] == [
        ("gone", "caption", None, None), ("a", "image", None, "a"), ("b#0", "caption", "Blue car", "b"),
    ]  # fmt: skip
    assert lookup.matching("CAR blue") == [3]
    assert lookup.matching("dog") == [2, 4]
    assert lookup.matching("<b>") == [2]
    assert lookup.matching("a#1") == [2]
    assert lookup.matching("  ") == []
    with pytest.raises(cl.InputError, match="no point 6"):
        lookup.items([6])
    with pytest.raises(cl.InputError, match="rows are asked for at once"):
        lookup.items([0] * (MOST_ROWS + 1))
