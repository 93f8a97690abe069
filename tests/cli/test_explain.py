"""``crosslens explain`` as a person calls it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Call

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn scenes and a run over them, whose scores are those of a model that knows colours only."""
    import numpy as np

    from crosslens.pipeline.recipe import Inputs, Options, Recipe, execute
    from crosslens.synth import write_scenes

    folder = tmp_path_factory.mktemp("explain")
    dataset = write_scenes(folder / "scenes", 12, seed=7, version="v0", workers=1)
    random = np.random.default_rng(0)
    own = np.equal.outer(np.arange(len(dataset.image_ids)), dataset.caption_image)
    np.save(folder / "scores.npy", (random.random(own.shape) + 0.5 * own).astype(np.float32))
    recipe = Recipe(
        dataset=str(folder / "scenes"),
        inputs=Inputs(scores=str(folder / "scores.npy")),
        options=Options(resamples=10, metrics=("Hit@1",)),
    )
    execute(recipe, folder / "runs" / "made")
    return folder


@pytest.fixture(scope="module")
def failed(place: Path) -> list[str]:
    """The ids of queries that failed."""
    from crosslens.core.run import Run
    from crosslens.data import load_dataset
    from crosslens.explain.failures import failures_of

    found = failures_of(Run.load(place / "runs" / "made"), load_dataset(str(place / "scenes")))["query"].to_list()
    assert len(found) > 5
    return found


def test_one_query(call: Call, place: Path, failed: list[str]) -> None:
    outcome = call("explain", place / "runs" / "made", "--query", failed[0])
    assert outcome.code == 0
    assert outcome.out.startswith(f"{failed[0]} (text → image): “")
    assert "The right picture comes " in outcome.out.replace("\n", " ")
    for title in ("Pictures", "Words of the query", "Concepts", "The list", "Metrics"):
        assert f"\n{title}\n" in outcome.out


def test_several_as_json_and_as_a_page(call: Call, place: Path, failed: list[str], tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    words = ["explain", place / "runs" / "made", "--query", failed[0], "--query", failed[1], "--html", page]
    outcome = call(*words, "--json")
    assert outcome.code == 0
    assert [one["query"] for one in outcome.json["explanations"]] == failed[:2]
    assert outcome.json["written"] == [str(page)]
    written = page.read_text(encoding="utf-8")
    assert written.count("<article") == 2
    assert written.count("data:image/jpeg;base64,") == 4, "the pictures lie beside the dataset"
    again = call(*words)
    assert again.code == 5
    assert "already exists" in again.err
    assert call(*words, "--overwrite").code == 0


def test_pictures_elsewhere_are_not_a_reason_to_fail(
    call: Call, place: Path, failed: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "why.html"
    (tmp_path / "empty").mkdir()
    words = ("explain", place / "runs" / "made", "--query", failed[0], "--html", page)
    outcome = call(*words, "--image-folder", tmp_path / "empty")
    assert outcome.code == 0
    assert "note: boxes without pictures: " in outcome.err
    assert "data:image/jpeg" not in page.read_text(encoding="utf-8")


def test_an_image_asks_and_a_dataset_can_be_named(call: Call, place: Path) -> None:
    words = ("explain", place / "runs" / "made", "--dataset", place / "scenes", "--direction", "i2t", "--query", "3")
    outcome = call(*words)
    assert outcome.code == 0
    assert outcome.out.startswith("3 (image → text): ")


def test_unknown_queries_directions_and_runs(call: Call, place: Path) -> None:
    run = place / "runs" / "made"
    outcome = call("explain", run, "--query", "10l")
    assert outcome.code == 2
    assert "did you mean 10" in outcome.err
    assert call("explain", run, "--query", "101", "--direction", "t2x").code == 2
    assert "has no t2t ranking" in call("explain", run, "--query", "101", "--direction", "t2t").err
    assert "no such folder" in call("explain", place / "runs" / "other", "--query", "101").err


def test_a_dataset_that_changed_since_the_run_is_told(
    call: Call, place: Path, failed: list[str], tmp_path: Path
) -> None:
    from crosslens.data import load_dataset

    for name in ("scenes", "runs"):
        shutil.copytree(place / name, tmp_path / name)
    run = tmp_path / "runs" / "made"
    assert "changed since" not in call("explain", run, "--query", failed[0]).err
    whole = load_dataset(str(tmp_path / "scenes"))
    assert whole.objects is not None
    shutil.rmtree(tmp_path / "scenes")
    replace(whole, objects=whole.objects.head(5)).save(tmp_path / "scenes")
    told = call("explain", run, "--query", failed[0])
    assert told.code == 0
    assert "changed since" in told.err
    assert "changed since" not in call("explain", run, "--query", failed[0], "--dataset", tmp_path / "scenes").err
