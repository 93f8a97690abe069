"""Missing positives: the same pairs as a slow search over the whole matrix; precision and recall as in sklearn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.analyze import held_out_similarity
from crosslens.core import InputError, UsageError
from crosslens.similarity import references_of

from .overlap import Overlap, made_dataset, overlap


@pytest.fixture(autouse=True)
def only_similarity(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Most tests here are of φ: made-up words deny nothing, and no control takes part."""
    if "controlled" not in request.node.name:
        monkeypatch.setattr("crosslens.analyze.missing_positives.contradicts", lambda first, second: None)
        monkeypatch.setattr("crosslens.analyze.missing_positives.check_similarity", lambda *_: None)


DATASET = cl.Dataset.of(made_dataset(20, 3))
OWN = DATASET.caption_image[None] == np.arange(20)[:, None]


def matrix() -> np.ndarray:
    references = references_of(DATASET)
    return np.array([[overlap(texts, text) for text in DATASET.texts] for texts in references], np.float32)


def verified(seed: int = 0, direction: str = "i2t") -> cl.Relevance:
    """People confirmed some pairs of the same topic, for half of the queries."""
    random = np.random.default_rng(seed)
    same = (np.arange(20) % 5)[:, None] == (DATASET.caption_image % 5)[None]
    rows, columns = np.nonzero(same & (random.random(same.shape) < 0.5))
    if direction == "t2i":
        rows, columns = rows[columns % 2 == 0], columns[columns % 2 == 0]
        return cl.Relevance.from_indices(DATASET.caption_ids, DATASET.image_ids, columns, rows)
    rows, columns = rows[rows % 2 == 0], columns[rows % 2 == 0]
    return cl.Relevance.from_indices(DATASET.image_ids, DATASET.caption_ids, rows, columns)


@pytest.mark.parametrize("cells", [1, 170, 1 << 20])
def test_the_same_pairs_as_a_slow_search(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.missing_positives._CELLS", cells)
    phi = Overlap()
    result = cl.analyze.find_missing_positives(DATASET, phi, threshold=0.6)
    values = matrix()
    expected = {(i, c) for i, c in np.argwhere((values >= np.float32(0.6)) & ~OWN).tolist()}
    assert set(zip(result.images.tolist(), result.captions.tolist(), strict=True)) == expected
    assert len(result) == len(expected) > 5
    assert result.values.tolist() == values[result.images, result.captions].tolist()
    assert (np.diff(result.values) <= 0).all()
    assert phi.largest == max(1, min(20, cells // 60))


def test_the_highest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.missing_positives._CELLS", 1)
    whole = cl.analyze.find_missing_positives(DATASET, Overlap(), threshold=0.3)
    some = cl.analyze.find_missing_positives(DATASET, Overlap(), threshold=0.3, most=25)
    for name in ("images", "captions", "values"):
        assert np.array_equal(getattr(some, name), getattr(whole, name)[:25])
    assert some.left_out == len(whole) - 25
    assert "Compared: the 25 highest" in some.text()
    assert len(cl.analyze.find_missing_positives(DATASET, Overlap(), threshold=0.3, most=0)) == 0
    for wrong in ({"threshold": 0.3, "most": -1}, {"threshold": float("nan")}, {"threshold": float("inf")}):
        with pytest.raises(UsageError):
            cl.analyze.find_missing_positives(DATASET, Overlap(), **wrong)


def test_the_threshold_leaves_the_caption_out() -> None:
    """Each image gives up one caption; with it among its own references every φ would be higher."""
    annotated = held_out_similarity(DATASET, Overlap(), seed=3)
    assert len(annotated) == 20
    texts = [
        [t for t, i in zip(DATASET.texts, DATASET.caption_image, strict=True) if i == image] for image in range(20)
    ]
    for value, texts_of_image in zip(annotated.tolist(), texts, strict=True):
        possible = [overlap(texts_of_image[:n] + texts_of_image[n + 1 :], texts_of_image[n]) for n in range(3)]
        assert any(value == pytest.approx(candidate) for candidate in possible)
    result = cl.analyze.find_missing_positives(DATASET, Overlap(), quantile=0.25, seed=3)
    assert result.threshold == pytest.approx(np.quantile(annotated, 0.25))
    assert annotated.mean() < matrix()[OWN].mean()


def test_judgements_to_evaluate_with(tmp_path: Path) -> None:
    result = cl.analyze.find_missing_positives(DATASET, Overlap(), threshold=0.6)
    cl.write_qrels(result.relevance(), tmp_path / "completed.qrels")
    cl.write_qrels(result.relevance(extra_only=True), tmp_path / "extra.qrels")
    completed, extra = cl.read_qrels(tmp_path / "completed.qrels"), cl.read_qrels(tmp_path / "extra.qrels")
    assert len(extra.items) == len(result)
    assert len(completed.items) == len(result) + 60
    scores = matrix()
    before = cl.evaluate(DATASET, scores=scores, metrics=["Hit@1"], resamples=0)
    after = cl.evaluate(DATASET, scores=scores, relevance=completed, metrics=["Hit@1"], resamples=0)
    for direction in ("i2t", "t2i"):
        assert after[f"{direction}/Hit@1"].mean >= before[f"{direction}/Hit@1"].mean


def test_the_table_reads_back(tmp_path: Path) -> None:
    import polars as pl

    result = cl.analyze.find_missing_positives(DATASET, Overlap(), threshold=0.7)
    table = pl.read_csv(result.write_table(tmp_path / "missing.csv"))
    assert table.columns == ["image", "caption", "phi", "text", "caption_of", "image_caption"]
    assert table.height == len(result)
    assert table["text"].to_list() == [DATASET.texts[row] for row in result.captions]
    assert (table["image"] != table["caption_of"]).all()


@pytest.mark.parametrize("both", [True, False])
def test_precision_and_recall_as_sklearn_has_them(both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    monkeypatch.setattr("crosslens.analyze.missing_positives._CELLS", 200)
    people: dict[str, cl.Relevance] = {"i2t": verified()} | ({"t2i": verified(1, "t2i")} if both else {})
    missing = cl.analyze.find_missing_positives(
        DATASET, Overlap(), threshold=0.5, verified=people if both else people["i2t"]
    )
    judged, positive = np.zeros((20, 60), bool), np.zeros((20, 60), bool)
    judged[np.unique(people["i2t"].rows)] = True
    positive[people["i2t"].rows, people["i2t"].items] = True
    if both:
        judged[:, np.unique(people["t2i"].rows)] = True
        positive[people["t2i"].items, people["t2i"].rows] = True
    judged &= ~OWN
    labels, values = positive[judged], matrix()[judged]
    result = missing.verification
    assert result is not None
    assert (result.pairs, result.positives) == (judged.sum(), labels.sum())
    assert result.average_precision == pytest.approx(metrics.average_precision_score(labels, values))
    assert result.precision.mean == pytest.approx(metrics.precision_score(labels, values >= np.float32(0.5)))
    assert result.recall.mean == pytest.approx(metrics.recall_score(labels, values >= np.float32(0.5)))
    assert result.precision.low < result.precision.mean < result.precision.high
    for point in missing.levels:
        assert point.found == (values >= np.float32(point.threshold)).sum()
        assert point.hits == (labels & (values >= np.float32(point.threshold))).sum()
    for entry, point in zip(missing.as_dict()["verification"]["points"], missing.levels, strict=True):
        assert entry["recall"] == point.hits / labels.sum()
        assert entry["precision"] == (point.hits / point.found if point.found else None)
    assert result.chance == pytest.approx(labels.mean())
    assert missing.as_dict()["verification"]["recall"]["value"] == result.recall.mean
    assert "lower bound" in missing.text(80)
    assert max(map(len, missing.text(80).splitlines())) <= 80


SCENES = {
    "sofa": ["A brown dog sleeps on a red sofa.", "The dog lies on the couch.", "A brown dog asleep on a red couch."],
    "couch": ["A brown dog lies on a red sofa.", "A dog rests on the couch.", "A brown dog on a red couch."],
    "cat": ["A white cat sleeps on a red sofa.", "The cat lies on the couch.", "A white cat asleep on a red couch."],
    "boat": ["A boat sails on the sea.", "The sailboat crosses the ocean.", "A white boat on blue water."],
}


def test_controlled_pairs_are_denied_by_what_captions_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.missing_positives.check_similarity", lambda *_: None)
    result = cl.analyze.find_missing_positives(cl.Dataset.of(SCENES), Overlap(), threshold=0.4)
    listed = set(zip(result.table["image"], result.table["caption_of"], strict=True))
    assert listed == {("sofa", "couch"), ("couch", "sofa")}
    assert result.denied > 0
    assert len(result) + result.denied == result.compared


class _Blind(Overlap):
    """A φ to which everything fits."""

    def prepare(self, references, captions, *, progress=None, threads=None):
        prepared = super().prepare(references, captions)
        return _Same(np.ones(prepared.shape, np.float32))


class _Same:
    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def block(self, rows: slice) -> np.ndarray:
        return self.values[rows]

    def pairs(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        return self.values[images, captions]


def test_controlled_similarity_that_cannot_tell_says_so_and_nothing_else() -> None:
    things = ["table", "chair", "lamp", "stove", "spoon", "kettle"]
    beside = ["carpet", "window", "mirror", "pillow", "shelf", "vase"]
    scenes = {f"i{n}": [f"the {things[n % 6]} beside q{n}", f"z{n} {beside[n % 6]}"] for n in range(48)}
    result = cl.analyze.find_missing_positives(cl.Dataset.of(scenes), _Blind(), threshold=0.5)
    assert result.control is not None
    assert result.control.fails
    assert not result.control.can_tell
    assert len(result) == 0
    assert list(result.findings()) == []
    assert "similarity cannot tell on this data" in " ".join(result.text(80).split())
    assert "φ at least" not in result.text(80)


def test_bad_input() -> None:
    lonely = cl.Dataset.of({"a": ["x y"], "b": ["x z"]})
    with pytest.raises(UsageError, match="no image has two captions"):
        cl.analyze.find_missing_positives(lonely, Overlap())
    assert len(cl.analyze.find_missing_positives(lonely, Overlap(), threshold=0.4)) == 2
    with pytest.raises(UsageError, match="a matrix has no captions"):
        cl.analyze.find_missing_positives(DATASET, matrix())
    assert len(cl.analyze.find_missing_positives(DATASET, matrix(), threshold=0.6)) == len(
        cl.analyze.find_missing_positives(DATASET, Overlap(), threshold=0.6)
    )
    with pytest.raises(UsageError, match="quantile = 50"):
        cl.analyze.find_missing_positives(DATASET, Overlap(), quantile=50)
    with pytest.raises(InputError, match="no verified positive"):
        cl.analyze.find_missing_positives(DATASET, Overlap(), verified=cl.Relevance.of({"x": ["y"]}))
    with pytest.raises(UsageError, match="not over the images and captions"):
        cl.analyze.find_missing_positives(DATASET, Overlap(), ground_truth=cl.Relevance.of({"x": ["y"]}))
    broken = matrix()
    broken[2, 0] = np.nan
    with pytest.raises(InputError, match=r"image 'i2' and caption 'i0#0' is NaN"):
        cl.analyze.find_missing_positives(DATASET, _Broken(broken), threshold=0.5)


class _Broken:
    """A φ with a hole."""

    name, revision = "broken", "1"

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def prepare(self, references, captions, *, progress=None, threads=None):
        return self if len(captions) == 60 else Overlap().prepare(references, captions)

    def block(self, rows: slice) -> np.ndarray:
        return self.values[rows]

    def pairs(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        return self.values[images, captions]
