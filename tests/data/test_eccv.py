"""ECCV Caption and CxC positives, read from the package's files, against what the package itself loads."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from crosslens.core import MissingExtraError, UsageError
from crosslens.data import load_dataset, read_eccv
from crosslens.pipeline import evaluate
from crosslens.values import Dataset, Relevance
from tests.tables import rest_slow

eccv_caption = pytest.importorskip("eccv_caption", reason="needs the extra 'eccv'")


@pytest.fixture(scope="module")
def package():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eccv_caption.Metrics()


@pytest.mark.parametrize(
    ("kind", "direction"),
    rest_slow([("eccv", "i2t"), ("cxc", "t2i"), ("coco", "i2t"), ("eccv", "t2i"), ("cxc", "i2t"), ("coco", "t2i")]),
)
def test_the_package_says_the_same(package, kind: str, direction: str) -> None:
    relevance = read_eccv(kind, direction, outside=True)
    captions_of: dict[int, set[int]] = {}
    for row, item in zip(relevance.rows, relevance.items, strict=True):
        captions_of.setdefault(int(relevance.query_ids[row]), set()).add(int(relevance.item_ids[item]))
    expected = getattr(package, f"{kind}_gts")[direction]
    assert captions_of == {query: set(items) for query, items in expected.items()}
    assert relevance.source == kind


@pytest.fixture(scope="module")
def split(shared_data: Path) -> Dataset:
    return load_dataset(
        "plain",
        captions=shared_data / "coco_karpathy_test" / "captions.tsv.gz",
        image_column="coco_image_id",
        caption_column="coco_caption_id",
        text_column="raw_caption",
    )


def test_ids_are_those_of_the_test_split(split: Dataset) -> None:
    relevance = read_eccv("cxc", "i2t")
    assert relevance.query_ids == split.image_ids
    assert relevance.item_ids == split.caption_ids
    # Two of ECCV Caption's positives are captions that the split leaves out.
    whole, inside = read_eccv("eccv", "i2t", outside=True), read_eccv("eccv", "i2t")
    assert set(whole.item_ids) - set(split.caption_ids) == {"144675", "467259"}
    assert inside.item_ids == split.caption_ids
    assert whole.item_ids[:25000] == split.caption_ids


def test_both_directions_go_with_the_split(split: Dataset) -> None:
    judged = {direction: read_eccv("eccv", direction) for direction in ("i2t", "t2i")}
    assert (judged["i2t"].query_ids, judged["i2t"].item_ids) == (split.image_ids, split.caption_ids)
    assert (judged["t2i"].query_ids, judged["t2i"].item_ids) == (split.caption_ids, split.image_ids)


def test_the_figure_of_the_package(package) -> None:
    """Two captions that the split leaves out count as relevant there: a system that finds all others is not perfect."""
    whole, inside = read_eccv("eccv", "i2t", outside=True), read_eccv("eccv", "i2t")
    lists = {
        query: [inside.item_ids[item] for item in inside.items[start:end]] + [f"filler-{n}" for n in range(3)]
        for query, start, end in zip(inside.query_ids, inside.offsets[:-1], inside.offsets[1:], strict=True)
        if start < end
    }
    theirs = package.compute_all_metrics(
        {int(query): [int(item) for item in items if item.isdigit()] + [0, 0, 0] for query, items in lists.items()},
        {int(query): [0] * len(items) for query, items in package.eccv_gts["t2i"].items()},
        target_metrics=("eccv_map_at_r",),
    )["eccv_map_at_r"]["i2t"]

    def ours(judgements: Relevance) -> float:
        judged = {query: [] for query in judgements.query_ids} | lists
        run = evaluate(run={"i2t": judged}, relevance={"i2t": judgements}, metrics="mAP@R", resamples=0)
        return run["i2t/mAP@R"].mean

    assert ours(inside) == 1
    assert ours(whole) == pytest.approx(theirs)
    assert 0.999 < theirs < 1


def test_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="use one of: eccv, cxc, coco"):
        read_eccv("pm")
    with pytest.raises(UsageError, match="use 'i2t' or 't2i'"):
        read_eccv("eccv", "t2t")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosslens\[eccv\]'"):
        read_eccv()
