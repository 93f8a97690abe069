"""Validation and test figures by any metric: the same numbers as an evaluation gives, from relevance computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from crosslens.engine import SilentProgress
from crosslens.pipeline import evaluate
from crosslens.similarity import relevance_matrix
from crosslens.train import TrainingData, TrainingRecipe, evaluation, train_model, trainer
from crosslens.train.evaluation import SplitMetrics
from crosslens.train.training import Training

from .conftest import changed
from .test_trainer import stop_after, weights

METRICS = "Rsum Hit@1 Hit@20 NCS@5 NCS[non-gt]@12 NCS[rouge-l]@5 SR[m=5]@5 nDCG[cider]@10 nDCG@5 DCGcm@5 Nsum MedR[all]"


def test_figures_equal_those_of_an_evaluation(data: TrainingData) -> None:
    dataset = data.test.dataset
    scores = np.random.default_rng(0).standard_normal((20, 100)).astype(np.float32)
    values = SplitMetrics(dataset, METRICS, progress=SilentProgress())(scores)
    run = evaluate(dataset, scores=scores, metrics=METRICS, resamples=0)
    assert values.keys() == run.values.keys()
    for name, value in values.items():
        assert value == pytest.approx(run.values[name].mean, abs=1e-12), name


def test_ncs_equals_loops(data: TrainingData) -> None:
    dataset = data.validation.dataset
    scores = np.random.default_rng(1).standard_normal((20, 100))
    phi = relevance_matrix(dataset, "cider").astype(float)
    expected = []
    for image in range(20):
        retrieved = sorted(range(100), key=lambda caption: -scores[image, caption])[:5]
        expected.append(sum(phi[image, caption] for caption in retrieved) / sum(sorted(phi[image])[-5:]))
    values = SplitMetrics(dataset, "i2t/NCS[cider]@5", progress=SilentProgress())(scores.astype(np.float32))
    assert values == {"i2t/NCS[cider]@5": pytest.approx(np.mean(expected))}


def test_checkpoints_are_chosen_by_a_graded_metric(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = list[Any]()

    def counted(dataset: Any, phi: str, **options: Any) -> Any:
        datasets.append(dataset)
        return relevance_matrix(dataset, phi, **options)

    monkeypatch.setattr(evaluation, "relevance_matrix", counted)
    recipe = changed(recipe, epochs=2, metric="NCS@5", test_metrics="Nsum NCS@10")
    trained = train_model(recipe, data, tmp_path / "model")
    assert datasets == [data.validation.dataset, data.test.dataset], "once per split"
    rows = trained.card["history"]
    assert all(0 < row["value"] <= 1 for row in rows)
    assert trained.card["validation"] == {"NCS@5": max(row["value"] for row in rows)}
    assert {"Rsum", "i2t/Hit@1", "Nsum[cider]", "t2i/NCS[cider]@10"} <= trained.test.keys()
    with pytest.raises(KeyboardInterrupt):
        train_model(recipe, data, tmp_path / "resumed", watch=stop_after(0))
    assert weights(train_model(recipe, data, tmp_path / "resumed").path) == weights(trained.path)


def test_further_metrics_of_a_finished_training_take_no_step(
    tmp_path: Path, recipe: TrainingRecipe, data: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = changed(recipe, epochs=1)
    first = train_model(recipe, data, tmp_path / "model")
    before = weights(first.path)
    asked = train_model(changed(recipe, test_metrics="mAP@R NCS@5"), data, tmp_path / "whole").test
    monkeypatch.setattr(Training, "run", None)
    again = train_model(changed(recipe, test_metrics="mAP@R NCS@5"), data, first.path)
    assert weights(first.path) == before
    assert again.test == asked
    assert {**again.test, **first.test} == again.test
    assert again.card["history"] == first.card["history"]
    monkeypatch.setattr(trainer, "Training", None)
    assert train_model(changed(recipe, test_metrics="NCS@5"), data, first.path).test == again.test
