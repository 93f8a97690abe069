"""Pairs and matrices of scores from tasks: the batches, blocks and numbers of scoring without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, InputError
from crosslens.encode import (
    Cache,
    ReadImages,
    SecondStage,
    batches as tasks,
    load_encoder,
    load_pair_scorer,
    score_pairs,
    score_texts,
)
from crosslens.encode.encoder import loaded_as
from tests.engine.stand_in import Recorded, StandInEngine

Array = np.ndarray[Any, Any]
PAIRS = [(f"i{number % 7}", f"c{number * 5 % 11}") for number in range(50)]
TEXTS = {f"c{number}": "very " * (number % 4) + f"long {number}" for number in range(11)}


class Entangled:
    """Gives scores that depend on the batch they were computed in, as the last bits of real models do."""

    name, revision = "entangled", "1"

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        lengths = [len(str(image)) + len(text) for image, text in zip(images, texts, strict=True)]
        return np.asarray(lengths) + 1e-3 * np.mean(lengths) + 1e-4 * np.arange(len(lengths))


class Short(Entangled):
    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        return np.zeros(1)


def images(folder: Path) -> dict[str, str]:
    files = {f"i{number}": folder / f"{number}{'0' * number}.png" for number in range(7)}
    for file in files.values():
        file.touch()
    return {name: str(file) for name, file in files.items()}


@pytest.mark.parametrize("size", [1, 3, None])
def test_pairs(size: int | None, tmp_path: Path) -> None:
    progress, engine, files = Recorded(), StandInEngine(), images(tmp_path)
    with cl.use_engine(engine):
        scored = score_pairs(PAIRS, Entangled(), images=files, texts=TEXTS, batch_size=size, progress=progress)
    np.testing.assert_array_equal(scored, score_pairs(PAIRS, Entangled(), images=files, texts=TEXTS, batch_size=size))
    assert progress.steps["scoring pairs"] == len(PAIRS)
    assert engine.attempts["score_batches"]


def test_a_node_without_the_images(tmp_path: Path) -> None:
    files = images(tmp_path)
    Path(files["i3"]).unlink()
    with pytest.raises(CrosslensError, match=rf"{files['i3']} does not exist on the node"), \
            cl.use_engine(StandInEngine()):  # fmt: skip
        score_pairs(PAIRS, Entangled(), images=files, texts=TEXTS)


def test_wrong_scores_are_refused_where_they_are_made(tmp_path: Path) -> None:
    for engine in (StandInEngine(), "local"):
        with pytest.raises(InputError, match="entangled gave 1 scores for 16 pairs"), cl.use_engine(engine):
            score_pairs(PAIRS, Short(), images=images(tmp_path), texts=TEXTS)


# Matrices


class Blocks:
    """Scores a matrix in blocks of 3 images and 4 texts by their length; a score depends on its block."""

    name, revision, pixels = "blocks", "1", None

    def divide(self, features: Sequence[Any], texts: Sequence[str]) -> tuple[list[slice], list[Array]]:
        order = np.argsort([len(text) for text in texts], kind="stable")
        rows = [slice(start, min(start + 3, len(features))) for start in range(0, len(features), 3)]
        return rows, [order[start : start + 4] for start in range(0, len(texts), 4)]

    def score_matrix(self, features: Sequence[Any], texts: Sequence[str], progress: Any = None) -> Array:
        rows, columns = self.divide(features, texts)
        out = np.empty((len(features), len(texts)), np.float32)
        for block in rows:
            for part in columns:
                scores = np.array(
                    [[feature[0].sum() * len(texts[text]) for text in part] for feature in features[block]]
                )
                out[block, part] = scores + scores.mean() + np.arange(scores.size).reshape(scores.shape)
        return out


def read_images(features: Sequence[Any]) -> ReadImages:
    return ReadImages(cl.Dataset.of({"i": ["a"]}), features, {}, "")


@pytest.mark.parametrize("count", [1, 3, 10])
def test_matrices(count: int) -> None:
    features = [(np.random.default_rng(row).random(5, np.float32),) for row in range(count)]
    progress, engine, texts = Recorded(), StandInEngine(), list(TEXTS.values())
    with cl.use_engine(engine):
        scores = score_texts(Blocks(), read_images(features), texts, progress)
    np.testing.assert_array_equal(scores, score_texts(Blocks(), read_images(features), texts))
    assert engine.results == 3 * -(-count // 3)
    assert progress.steps["scoring pairs"] == progress.stages[0][1]


def test_a_model_that_cannot_be_divided_scores_here() -> None:
    class Whole:
        name, revision, pixels = "whole", "1", None

        def score_matrix(self, features: Sequence[Any], texts: Sequence[str], progress: Any = None) -> Array:
            return np.full((len(features), len(texts)), len(features) * len(texts), np.float32)

    engine = StandInEngine()
    with cl.use_engine(engine):
        scores = score_texts(Whole(), read_images([(np.zeros(2),)] * 5), ["a", "b"])
    assert (scores == 10).all()
    assert not engine.results


@pytest.fixture
def trained(tmp_path: Path) -> Iterator[tuple[Path, cl.Dataset]]:
    pytest.importorskip("torch")
    from tests.train.conftest import made_data, small_recipe
    from tests.train.trained_models import pair_model, train_on_files

    data = made_data()
    with pair_model() as kind:
        recipe = replace(small_recipe(), model=kind, model_settings={"dimension": 8})
        tasks._LOADED.clear()
        yield train_on_files(tmp_path, data, recipe, epochs=1).path, data.test.dataset
        tasks._LOADED.clear()


def test_a_trained_model(trained: tuple[Path, cl.Dataset], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Matrix and re-ranking, whose workers load the model by its name."""
    from crosslens.train import evaluation

    monkeypatch.setattr(evaluation, "_IMAGES", 6)
    monkeypatch.setattr(evaluation, "_CAPTIONS", 30)
    path, dataset = trained
    scorer: Any = load_encoder(f"path:{path}", device="cpu")
    read = ReadImages(dataset, scorer.features_of(dataset.image_ids), {}, "")
    second = SecondStage.over(dataset, load_pair_scorer(f"path:{path}", device="cpu"), cache=Cache(tmp_path / "c"))
    asked = [(image, dataset.caption_ids[row * 7 % 100]) for row, image in enumerate(dataset.image_ids)]
    engine = StandInEngine()
    with cl.use_engine(engine):
        scores, pairs = score_texts(scorer, read, dataset.texts), second.score(asked)
    np.testing.assert_array_equal(scores, score_texts(scorer, read, dataset.texts))
    assert engine.attempts["score_block"] >= 4 * 4
    local = replace(second, cache=None)
    np.testing.assert_array_equal(pairs, local.score(asked))
    np.testing.assert_array_equal(pairs, second.score(asked), "what the tasks gave is cached")
    assert loaded_as(second.scorer) is not None
    assert engine.travelled < 50_000, "the weights stay where they are"
