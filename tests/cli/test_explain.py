"""``crosslens explain`` as a person calls it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import crosslens as cl
from tests.cli.conftest import Call

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn scenes and a run over them, whose scores are those of a model that knows colours only."""
    import numpy as np

    from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
    from crosslens.synth import write_scenes

    folder = tmp_path_factory.mktemp("explain")
    dataset = write_scenes(folder / "scenes", 12, seed=7, version="v0", workers=1)
    random = np.random.default_rng(0)
    is_own = np.equal.outer(np.arange(len(dataset.image_ids)), dataset.caption_image)
    np.save(folder / "scores.npy", (random.random(is_own.shape) + 0.5 * is_own).astype(np.float32))
    recipe = Recipe(
        dataset=str(folder / "scenes"),
        inputs=InputOptions(scores=str(folder / "scores.npy")),
        options=EvaluateOptions(resamples=10, metrics=("Hit@1",)),
    )
    run_recipe(recipe, folder / "runs" / "made")
    return folder


@pytest.fixture(scope="module")
def failed(root: Path) -> list[str]:
    """The ids of queries that failed."""
    from crosslens.data import load_dataset
    from crosslens.explanations import failed_queries
    from crosslens.values import Run

    failures = failed_queries(Run.load(root / "runs" / "made"), load_dataset(str(root / "scenes")))["query"].to_list()
    assert len(failures) > 5
    return failures


def test_one_query(call: Call, root: Path, failed: list[str]) -> None:
    outcome = call("explain", root / "runs" / "made", "--query", failed[0])
    assert outcome.code == 0
    assert outcome.out.startswith(f"{failed[0]} (text → image): “")
    assert "The right picture comes " in outcome.out.replace("\n", " ")
    for title in ("Pictures", "Words of the query", "Concepts", "The list", "Metrics"):
        assert f"\n{title}\n" in outcome.out


def test_several_as_json_and_as_a_page(call: Call, root: Path, failed: list[str], tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    words = ["explain", root / "runs" / "made", "--query", failed[0], "--query", failed[1], "--write", page]
    outcome = call(*words, "--json")
    assert outcome.code == 0
    assert [explained["query"] for explained in outcome.json["explanations"]] == failed[:2]
    assert outcome.json["files"] == [str(page)]
    written = page.read_text(encoding="utf-8")
    assert written.count("<section id=") == 2
    assert written.count("data:image/webp;base64,") == 4, "the pictures lie beside the dataset"
    assert call(*words).code == 0, "it holds the same"
    again = call(*words, "--query", failed[2])
    assert again.code == 5
    assert "already exists" in again.err
    assert call(*words, "--overwrite").code == 0


def test_pictures_elsewhere_are_not_a_reason_to_fail(call: Call, root: Path, failed: list[str], tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    (tmp_path / "empty").mkdir()
    words = ("explain", root / "runs" / "made", "--query", failed[0], "--write", page)
    outcome = call(*words, "--image-folder", tmp_path / "empty")
    assert outcome.code == 0
    assert "note: boxes without pictures: " in outcome.err
    assert "data:image/jpeg" not in page.read_text(encoding="utf-8")


def test_an_image_asks_and_a_dataset_can_be_named(call: Call, root: Path) -> None:
    words = (
        "explain",
        root / "runs" / "made",
        "--dataset",
        root / "scenes",
        "--direction",
        "i2t",
        "--query",
        "3",
    )
    outcome = call(*words)
    assert outcome.code == 0
    assert outcome.out.startswith("3 (image → text): ")


def test_unknown_queries_directions_and_runs(call: Call, root: Path) -> None:
    run = root / "runs" / "made"
    outcome = call("explain", run, "--query", "10l")
    assert outcome.code == 2
    assert "did you mean 10" in outcome.err
    assert call("explain", run, "--query", "101", "--direction", "t2x").code == 2
    assert "has no t2t ranking" in call("explain", run, "--query", "101", "--direction", "t2t").err
    assert "no such folder" in call("explain", root / "runs" / "other", "--query", "101").err


def test_a_dataset_that_changed_since_the_run_is_told(
    call: Call, root: Path, failed: list[str], tmp_path: Path
) -> None:
    from crosslens.data import load_dataset

    for name in ("scenes", "runs"):
        shutil.copytree(root / name, tmp_path / name)
    run = tmp_path / "runs" / "made"
    assert "changed since" not in call("explain", run, "--query", failed[0]).err
    whole = load_dataset(str(tmp_path / "scenes"))
    assert whole.objects is not None
    shutil.rmtree(tmp_path / "scenes")
    replace(whole, objects=whole.objects.head(5)).save(tmp_path / "scenes")
    output = call("explain", run, "--query", failed[0])
    assert output.code == 0
    assert "changed since" in output.err
    assert "changed since" not in call("explain", run, "--query", failed[0], "--dataset", tmp_path / "scenes").err


def test_python_takes_the_image_folder_as_the_command_does(root: Path, failed: list[str], tmp_path: Path) -> None:
    run, moved = root / "runs" / "made", tmp_path / "moved"
    (beside,) = cl.explain(run, failed[:1])
    assert beside.pictures
    for picture in beside.pictures.values():
        target = moved / Path(picture).relative_to(Path(picture).parents[1])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(picture).read_bytes())
    elsewhere = cl.explain(run, failed[0], image_folder=moved)
    assert set(elsewhere.pictures) == set(beside.pictures)
    assert all(Path(picture).is_relative_to(moved) for picture in elsewhere.pictures.values())
    nowhere = cl.explain(run, failed[0], image_folder=tmp_path / "none")
    assert not nowhere.pictures
    assert any(note.startswith("Boxes without pictures: ") for note in nowhere.notes)
    assert cl.explain(run, image_folder=moved).title
    with pytest.raises(cl.CrosslensError, match="image_folder"):
        cl.explain(run, failed[0], image_foldr=moved)
