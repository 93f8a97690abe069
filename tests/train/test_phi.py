"""Any φ can be behind adaptive margins and graded targets: by name, or as a matrix on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosslens.core import CrosslensError
from crosslens.similarity import SIMILARITIES, prepare_dataset
from crosslens.train import TrainingData, TrainingRecipe, train_model
from tests.tables import rest_slow

from .conftest import changed

NAMES = ["cider", "cider:split", "cider-plain", "bleu:2", "rouge-l", "embed:tiny", "embed-max:tiny"]
SLOW = ["spice", "spice-object"]
ELSEWHERE = {"semantic", "spice-attribute", "spice-cardinality", "spice-colour", "spice-relation", "spice-size"}
"""The same code as another one, or an encoder that has to be there."""


def trained(
    recipe: TrainingRecipe, data: TrainingData, phi: str, loss: dict[str, object], output: Path, **settings: float
) -> float:
    pytest.importorskip("torch")
    whole = changed(replace(recipe, phi=phi, losses=(loss,)), epochs=1, **settings)
    return float(train_model(whole, data, output).card["history"][0]["loss"])


def test_every_kind_is_named_here() -> None:
    kinds = {name.partition(":")[0] for name in (*NAMES, *SLOW)} | ELSEWHERE
    assert {entry.name for entry in SIMILARITIES if not entry.plugin} <= kinds


LOSSES: list[dict[str, object]] = [{"kind": "sam"}, {"kind": "sam", "sampling": "all"}, {"kind": "graded-infonce"}]
FAST = {(NAMES[0], row) for row in range(len(LOSSES))} | {(name, row % len(LOSSES)) for row, name in enumerate(NAMES)}
"""Every φ with one loss, and one φ with every loss: a loss is given numbers, whichever φ they are of."""


@pytest.mark.parametrize(
    ("phi", "loss"),
    [
        pytest.param(phi, loss, marks=() if (phi, row) in FAST else pytest.mark.slow)
        for phi in (*NAMES, *SLOW)
        for row, loss in enumerate(LOSSES)
    ],
)
def test_it_trains(
    phi: str, loss: dict[str, object], recipe: TrainingRecipe, data: TrainingData, tmp_path: Path
) -> None:
    assert np.isfinite(trained(recipe, data, phi, loss, tmp_path / "model", fraction=0.25))


def test_a_matrix_on_disk_is_the_phi_it_was_made_with(
    recipe: TrainingRecipe, data: TrainingData, tmp_path: Path
) -> None:
    np.save(tmp_path / "phi.npy", prepare_dataset(data.train.dataset, "bleu").block(slice(None)))
    loss: dict[str, object] = {"kind": "graded-infonce"}
    stored, by_name = (
        trained(recipe, data, phi, loss, tmp_path / name)
        for phi, name in ((str(tmp_path / "phi.npy"), "stored"), ("bleu", "named"))
    )
    assert stored == by_name
    assert stored != trained(recipe, data, "cider", loss, tmp_path / "other")


def test_a_matrix_of_other_data(recipe: TrainingRecipe, data: TrainingData, tmp_path: Path) -> None:
    np.save(tmp_path / "phi.npy", np.zeros((3, 15), np.float32))
    with pytest.raises(CrosslensError, match=r"phi.npy|3"):
        trained(recipe, data, str(tmp_path / "phi.npy"), {"kind": "sam"}, tmp_path / "model")


@pytest.mark.slow  # as one of test_trainer
@pytest.mark.parametrize(
    "loss",
    rest_slow([{"kind": "sam", "sampling": "all"}, {"kind": "graded-infonce"}, {"kind": "sam-released"}]),
    ids=lambda loss: str(loss["kind"]),
)
def test_it_learns(loss: dict[str, object], recipe: TrainingRecipe, data: TrainingData, tmp_path: Path) -> None:
    """Chance is an Rsum of about 150 among 20 images with five captions each."""
    pytest.importorskip("torch")
    longer = changed(replace(recipe, losses=(loss,)), epochs=8, batch_size=20, learning_rate=0.03)
    history = train_model(longer, data, tmp_path / "model").card["history"]
    assert max(row["value"] for row in history) > 400
