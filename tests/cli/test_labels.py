"""``crosslens analyze labels`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.data import load_dataset, write_dataset
from crosslens.values import Dataset, Embeddings
from tests.cli.conftest import Call


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captions, one of them on the wrong image, and two runs that find the right one."""
    from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe

    folder = tmp_path_factory.mktemp("labels")
    texts = {
        name: [f"A {name} stands here.", f"The {name} is big.", f"One {name} alone."]
        for name in ("dog", "boat", "pear")
    }
    texts["pear"][0] = "A boat is there."
    dataset = Dataset.of(texts)
    write_dataset(dataset, folder / "captions.jsonl")
    owner = dataset.caption_image.copy()
    owner[6] = 1
    for name in ("one", "two"):
        scores = 0.1 * np.random.default_rng(len(name)).random((3, 9))
        scores[owner, np.arange(9)] += 1
        np.save(folder / f"{name}.npy", scores)
        recipe = Recipe(
            dataset=str(folder / "captions.jsonl"),
            inputs=InputOptions(scores=str(folder / f"{name}.npy")),
            options=EvaluateOptions(resamples=0, metrics=("Hit@1",)),
        )
        run_recipe(recipe, folder / "runs" / name)
    Embeddings(dataset.image_ids, np.array([[1, 0], [1, 0], [0, 1]], np.float32)).save(folder / "vectors")
    return folder


def test_the_list_and_the_way_back(call: Call, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    review, proposed, out = tmp_path / "review.csv", tmp_path / "p.qrels", tmp_path / "out.txt"
    runs = [root / "runs" / name for name in ("one", "two")]
    outcome = call("analyze", "labels", *runs, "-o", review, "--qrels", proposed, "--leave-out", out, "--limit", "1")
    assert outcome.code == 0, outcome.err
    assert "0 labels to correct, 2 more worth a look" in outcome.out
    assert "1. image pear, caption pear#0: words + far → worth a look" in outcome.out
    assert "A boat is there." in outcome.out
    assert not out.read_text().split(), "what is worth a look is not left out"
    table = pl.read_csv(review)
    assert table.select("caption", "proposal", "suggested_image", "certain").row(0) == ("pear#0", "keep", None, False)
    assert table.height == 1
    assert call("analyze", "labels", *runs, "-o", review).code == 5
    person = {"verdict": pl.lit("move"), "suggested_image": pl.lit("boat")}
    table.with_columns(**person).write_csv(review)
    again = call(
        "analyze", "labels", "--dataset", root / "captions.jsonl", "--apply", review,
        "--cleaned", tmp_path / "cleaned", "--qrels", tmp_path / "r.qrels",
    )  # fmt: skip
    assert again.code == 0
    assert again.out.startswith("1 move: 3 images, 9 captions, 9 relevant pairs")
    assert load_dataset(str(tmp_path / "cleaned")).captions["image"].to_list().count("boat") == 4
    for data, qrels, hit in (
        ("captions.jsonl", None, 8 / 9),
        ("captions.jsonl", proposed, 8 / 9),
        (None, tmp_path / "r.qrels", 1.0),
    ):
        path = tmp_path / "cleaned" if data is None else root / data
        judged = [] if qrels is None else ["--qrels", qrels]
        words = [
            "evaluate",
            "--dataset",
            path,
            "--scores",
            root / "one.npy",
            *judged,
            "--metrics",
            "Hit@1",
            "--resamples",
            "0",
        ]
        evaluated = call(*words, "--direction", "t2i", "--json")
        assert evaluated.code == 0, evaluated.err
        assert evaluated.json["metrics"]["t2i/Hit@1"]["mean"] == pytest.approx(hit)


def test_json_and_vectors_without_words(call: Call, root: Path, tmp_path: Path) -> None:
    """Equal vectors say nothing of pictures; pixels do."""
    words = ("analyze", "labels", "--no-words", "--json", "--dataset")
    outcome = call(*words, root / "captions.jsonl", "--no-pictures", "--image-embeddings", root / "vectors")
    assert outcome.code == 0, outcome.err
    assert outcome.json["review"] == outcome.json["runs"] == []
    assert "the keyword filter was left out" in outcome.json["notes"]
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")
    pixels = np.random.default_rng(0).integers(0, 255, (2, 32, 32, 3), np.uint8)
    for name, picture in (("a.png", 0), ("b.png", 0), ("c.png", 1)):
        image.fromarray(pixels[picture]).save(tmp_path / name)
    Dataset.of({f"{name}.png": [f"this one is called {name}"] for name in "abc"}).save(tmp_path / "data")
    (row,) = call(*words, tmp_path / "data", "--image-folder", tmp_path).json["review"]
    assert {row["image"], row["suggested_image"]} == {"a.png", "b.png"}
    assert row["reason"] == "same picture"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "neither runs nor a dataset"),
        (["--dataset", "captions.jsonl", "--cleaned", "x"], 2, "--cleaned requires --apply"),
        (["--dataset", "captions.jsonl", "--apply", "captions.jsonl"], 2, "--apply requires --cleaned or --qrels"),
        (
            ["--dataset", "captions.jsonl", "--apply", "captions.jsonl", "--qrels", "new.qrels"],
            3,
            "no column 'verdict'",
        ),
        (["--dataset", "captions.jsonl", "-o", "review.txt"], 2, ".csv, .parquet or .jsonl"),
        (["--dataset", "captions.jsonl", "--threshold", "7", "--no-words"], 2, "threshold = 7"),
        (["runs/none"], 3, "no such folder"),
        (["runs/one", "--image-folder", "nowhere"], 3, "no such folder"),
    ],
)
def test_mistakes(
    call: Call, root: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(root)
    outcome = call("analyze", "labels", *words)
    assert outcome.code == code
    assert message in outcome.err
