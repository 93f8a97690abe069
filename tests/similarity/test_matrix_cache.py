"""φ kept between runs: the same measure of the same captions is computed once; anything else anew."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.encode import EncodeOptions
from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
from crosslens.similarity import SIMILARITIES, load_similarity, relevance_matrix

DATASET = cl.Dataset.of({"park": ["a dog runs", "a brown dog"], "sofa": ["a cat sleeps"]})


@dataclass
class Counted:
    """Counts how often it is computed; any text's value is its length."""

    revision: str = "1"
    name: str = "counted"
    calls: list[str] = field(default_factory=list)

    def prepare(self, references: Any, captions: Any, **_: Any) -> Counted:
        self.calls.append(self.revision)
        self.shape = (len(references), len(captions))
        self.captions = captions
        return self

    def block(self, rows: slice) -> Any:
        lengths = np.array([len(text) for text in self.captions], np.float32)
        return np.broadcast_to(lengths, (len(range(self.shape[0])[rows]), self.shape[1]))

    def pairs(self, images: Any, captions: Any) -> Any:
        return np.array([len(self.captions[caption]) for caption in captions], np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path))
    monkeypatch.setattr("crosslens.similarity.matrix.WORTH_KEEPING", 0.0)
    return tmp_path / "similarities"


def test_the_same_captions_are_computed_once(cache: Path) -> None:
    phi = Counted()
    first, again = relevance_matrix(DATASET, phi), relevance_matrix(DATASET, phi)
    assert phi.calls == ["1"]
    assert np.array_equal(first, again)
    assert (again.dtype, again.flags.writeable) == (first.dtype, first.flags.writeable)
    other_columns = replace(DATASET, images=DATASET.images.with_columns(pl.lit("x").alias("place")), name="other")
    relevance_matrix(other_columns, phi)
    assert phi.calls == ["1"], "only captions and measure count"
    assert len(list(cache.glob("*.npy"))) == len(list(cache.glob("*.json"))) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": cl.Dataset.of({"park": ["a dog runs", "a brown dog"], "sofa": ["a cat sits"]})},
        {"dataset": cl.Dataset.of({"park": ["a dog runs"], "sofa": ["a brown dog", "a cat sleeps"]})},
        {"phi": Counted(revision="2")},
        {"phi": Counted(name="other")},
        {"cache": False},
        {"cache": "elsewhere"},
    ],
    ids=["a caption", "the image of a caption", "the revision", "the measure", "no cache", "another folder"],
)
def test_anything_else_is_computed_anew(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    phi = Counted()
    relevance_matrix(DATASET, phi)
    changed = {"dataset": DATASET, "phi": phi, **change}
    changed["phi"].calls.clear()
    relevance_matrix(changed.pop("dataset"), **changed)
    assert len(changed["phi"].calls) == 1


def test_what_cannot_be_recognised_again_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relevance_matrix(DATASET, Counted(revision=""))
    relevance_matrix(DATASET, lambda references, caption: 1.0)
    relevance_matrix(DATASET, np.ones((2, 3), np.float32))
    assert not cache.exists()
    monkeypatch.setattr("crosslens.similarity.matrix.WORTH_KEEPING", 60.0)
    relevance_matrix(DATASET, Counted())
    assert not cache.exists(), "nothing is kept that is computed in no time"


@pytest.mark.parametrize("damage", ["numbers", "cut", "description", "nested description"])
def test_a_damaged_matrix_is_computed_again(damage: str, cache: Path) -> None:
    phi = Counted()
    good = relevance_matrix(DATASET, phi)
    (file,) = cache.glob("*.npy")
    if damage == "numbers":
        np.save(file, good + 1)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-4])
    else:
        file.with_suffix(".json").write_text("{" if damage == "description" else "[" * 100_000)
    assert np.array_equal(relevance_matrix(DATASET, phi), good)
    assert len(phi.calls) == 2
    relevance_matrix(DATASET, phi)
    assert len(phi.calls) == 2, "and kept again"


def test_an_evaluation_takes_it_from_the_cache(cache: Path) -> None:
    phi = Counted()
    scores = np.eye(2, 3, dtype=np.float32)
    options: dict[str, Any] = {"scores": scores, "metrics": "NCS[mine]@2", "phi": {"mine": phi}, "resamples": 0}
    values = [cl.evaluate(DATASET, **options)["i2t/NCS[mine]@2"].mean for _ in range(2)]
    assert values[0] == values[1]
    assert len(phi.calls) == 1
    cl.evaluate(DATASET, cache=False, **options)
    assert len(phi.calls) == 2


def test_no_cache_reaches_the_similarities_of_a_recipe(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches: list[Any] = []

    def load_watched(source: str, *, cache: Any = True) -> Counted:
        """Watches."""
        caches.append(cache)
        return Counted(name="watched")

    monkeypatch.setattr(SIMILARITIES, "_entries", {**SIMILARITIES._entries, "cider": SIMILARITIES["cider"]})
    SIMILARITIES.register("watched")(load_watched)
    DATASET.save(tmp_path / "dataset")
    np.save(tmp_path / "scores.npy", np.eye(2, 3, dtype=np.float32))
    recipe = Recipe(
        str(tmp_path / "dataset"),
        inputs=InputOptions(scores=str(tmp_path / "scores.npy")),
        options=EvaluateOptions(metrics=("NCS[watched]@2",), resamples=0),
    )
    run_recipe(recipe, encoding=EncodeOptions(cache=False))
    assert caches[-1] is False
    assert not cache.exists()
    run_recipe(recipe, encoding=EncodeOptions(cache=tmp_path / "elsewhere"))
    assert caches[-1] == tmp_path / "elsewhere"
    assert (tmp_path / "elsewhere" / "similarities").is_dir()
    assert load_similarity("cider", cache=False).name == "cider", "what keeps nothing has nothing to switch off"
