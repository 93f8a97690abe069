"""ECCV Caption and CxC positives, read from the package's files, against what the package itself loads."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from crosslens.core.errors import MissingExtraError, UsageError
from crosslens.data import load_dataset, read_eccv

eccv_caption = pytest.importorskip("eccv_caption", reason="needs the extra 'eccv'")


@pytest.fixture(scope="module")
def package():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eccv_caption.Metrics()


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("kind", ["eccv", "cxc", "coco"])
def test_the_package_says_the_same(package, kind: str, direction: str) -> None:
    relevance = read_eccv(kind, direction)
    found: dict[int, set[int]] = {}
    for row, item in zip(relevance.rows, relevance.items, strict=True):
        found.setdefault(int(relevance.query_ids[row]), set()).add(int(relevance.item_ids[item]))
    expected = getattr(package, f"{kind}_gts")[direction]
    assert found == {query: set(items) for query, items in expected.items()}
    assert relevance.source == kind


def test_ids_are_those_of_the_test_split(shared_data: Path) -> None:
    dataset = load_dataset(
        "plain",
        captions=shared_data / "coco_karpathy_test" / "captions.tsv.gz",
        image_column="coco_image_id",
        caption_column="coco_caption_id",
        text_column="raw_caption",
    )
    relevance = read_eccv("cxc", "i2t")
    assert relevance.query_ids == dataset.image_ids
    assert relevance.item_ids == dataset.caption_ids
    # Two of ECCV Caption's positives are captions that the split leaves out.
    whole, inside = read_eccv("eccv", "i2t"), read_eccv("eccv", "i2t", outside=False)
    assert set(whole.item_ids) - set(dataset.caption_ids) == {"144675", "467259"}
    assert inside.item_ids == dataset.caption_ids
    assert whole.item_ids[:25000] == dataset.caption_ids


def test_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="use one of: eccv, cxc, coco"):
        read_eccv("pm")
    with pytest.raises(UsageError, match="use 'i2t' or 't2i'"):
        read_eccv("eccv", "t2t")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosslens\[eccv\]'"):
        read_eccv()
