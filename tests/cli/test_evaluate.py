"""From files to a run on the command line, and the same run repeated from its recipe."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from crosslens.values import Run

from .conftest import Call, flags


def test_the_table(study: Path, call: Call) -> None:
    outcome = call("evaluate", *flags(study), "--name", "my model")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "my model"
    assert lines[2].split("   ")[0] == "metric"
    assert lines[3].startswith("Hit@1 ")
    assert "Rsum (both)" in outcome.out
    assert "40 image queries, 120 caption queries." in lines
    assert max(map(len, lines)) <= 80
    assert outcome.err == "", "quiet when piped: no bars, no colours"
    assert "\x1b" not in outcome.out


@pytest.mark.filterwarnings("error::crosslens.core.MetricNameWarning")  # it is a note here
def test_json_is_pure_and_complete(study: Path, call: Call) -> None:
    outcome = call("evaluate", *flags(study), "--metrics", "R@5, i2t/CappedRecall@1", "--json")
    content = outcome.json
    assert set(content["metrics"]) == {"i2t/Hit@5", "t2i/Hit@5", "i2t/CappedRecall@1"}
    figures = content["metrics"]["t2i/Hit@5"]
    assert {"mean", "low", "high", "n"} <= set(figures)
    assert 0 <= figures["low"] <= figures["mean"] <= figures["high"] <= 1
    assert figures["n"] == 120
    (note,) = content["notes"]
    assert "R@5 read as Hit@5" in note
    assert outcome.err == f"note: {note}\n"


def test_writing_resuming_and_conflict(study: Path, call: Call, tmp_path: Path) -> None:
    first = call("evaluate", *flags(study), "-o", tmp_path / "run")
    assert f"written to {tmp_path / 'run'}" in first.err
    before = (tmp_path / "run" / "run.json").read_bytes()
    again = call("evaluate", *flags(study), "-o", tmp_path / "run")
    assert (again.code, again.out) == (0, first.out)
    assert again.err == f"up to date: {tmp_path / 'run'} (nothing to do)\n"
    renamed = call("evaluate", *flags(study), "-o", tmp_path / "run", "--name", "other")
    assert renamed.err.startswith("note: the existing run keeps its name, 'run'\nup to date: ")
    assert "nothing to do" in call("run", tmp_path / "run", "-o", tmp_path / "run").err
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    second_run = call("evaluate", *flags(study, "model-b"), "-o", tmp_path / "run")
    assert second_run.code == 5
    assert "--overwrite" in second_run.err
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    assert call("evaluate", *flags(study, "model-b"), "-o", tmp_path / "run", "--overwrite").code == 0
    assert Run.load(tmp_path / "run")["i2t/Hit@1"].n == 40


def test_scores_and_options(study: Path, call: Call) -> None:
    words = ("--dataset", "coco", "--captions", study / "captions.json", "--scores", study / "scores.npy")
    outcome = call("evaluate", *words, "--direction", "t2i", "--ties", "expected", "--resamples", "0", "--json")
    content = outcome.json["metrics"]
    assert all(name.startswith("t2i/") for name in content)
    assert content["t2i/Hit@1"]["low"] is None


def test_both_directions_by_name(study: Path, call: Call) -> None:
    words = ("evaluate", *flags(study), "--metrics", "Hit@1", "--json")
    assert list(call(*words, "--direction", "both").json["metrics"]) == ["i2t/Hit@1", "t2i/Hit@1"]
    assert list(call(*words, "--direction", "t2i").json["metrics"]) == ["t2i/Hit@1"]
    assert "use i2t (image to text), t2i (text to image), or both" in call(*words, "--direction", "t2x").err


def test_the_result_is_written_in_every_form(study: Path, call: Call, tmp_path: Path) -> None:
    files = [tmp_path / f"result{ending}" for ending in (".html", ".csv", ".svg")]
    words = [word for file in files for word in ("--write", file)]
    outcome = call("evaluate", *flags(study), "-o", tmp_path / "run", *words, "--json")
    assert json.loads(outcome.out)["files"] == [str(tmp_path / "run"), *map(str, files)]
    assert "Hit@1" in files[0].read_text("utf-8")
    call("show", tmp_path / "run", "--write", tmp_path / "shown.csv")
    assert files[1].read_text("utf-8") == (tmp_path / "shown.csv").read_text("utf-8")
    again = call("evaluate", *flags(study), "-o", tmp_path / "run", *words)
    assert again.code == 0, "the files hold the same"
    assert "up to date" in again.err
    assert call("evaluate", *flags(study), "--metrics", "Hit@1", "--write", files[0]).code == 5, "it holds more"


def test_rows_in_the_wrong_order_are_noted(study: Path, call: Call, tmp_path: Path) -> None:
    scores = np.load(study / "scores.npy")
    np.save(tmp_path / "scores.npy", np.roll(scores, 1, axis=0))
    words = ("--dataset", "coco", "--captions", study / "captions.json", "--scores", tmp_path / "scores.npy")
    noted = "note: i2t and t2i: no better than chance: are the rows in the dataset's order?\n"
    assert noted in call("evaluate", *words, "--resamples", "20", "-o", tmp_path / "run").err
    assert noted in call("show", tmp_path / "run").out


def test_a_run_and_qrels_without_a_dataset(tmp_path: Path, call: Call) -> None:
    (tmp_path / "m.run.gz").write_bytes(gzip.compress(b"q1 Q0 d1 1 2.5 sys\nq1 Q0 d2 2 1.5 sys\n"))
    (tmp_path / "qrels.txt").write_text("q1 0 d2 1\n")
    outcome = call(
        "evaluate",
        "--run",
        tmp_path / "m.run.gz",
        "--qrels",
        tmp_path / "qrels.txt",
        "--metrics",
        "Hit@1 Hit@2",
        "--json",
    )
    assert {name: entry["mean"] for name, entry in outcome.json["metrics"].items()} == {"i2t/Hit@1": 0, "i2t/Hit@2": 1}


def test_the_published_figures(shared_data: Path, tmp_path: Path, call: Call) -> None:
    """ALIGN on COCO 5K, the five captions of an image being relevant: known to four decimals."""
    with gzip.open(shared_data / "coco_karpathy_test" / "captions.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        pairs = [line.split("\t")[:2] for line in lines]
    (tmp_path / "qrels.txt").write_text("".join(f"{image} 0 {caption} 1\n" for caption, image in pairs))
    outcome = call(
        *("evaluate", "--run", shared_data / "runs" / "align-coco5k-i2t.run.gz", "--qrels", tmp_path / "qrels.txt"),
        *("--metrics", "CappedRecall@1 CappedRecall@5 CappedRecall@10", "--json"),
    )
    means = [round(entry["mean"], 4) for entry in outcome.json["metrics"].values()]
    assert next(iter(outcome.json["metrics"])) == "i2t/CappedRecall@1"
    assert means == [0.6044, 0.4220, 0.5440]


def test_reader_options_of_any_kind(study: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("pic,words\na,one two three\nb,four five six\n")
    np.save(tmp_path / "s.npy", np.eye(2, dtype=np.float32))
    words = (
        "evaluate",
        "--dataset",
        tmp_path / "t.csv",
        "--scores",
        tmp_path / "s.npy",
        "--metrics",
        "Hit@1",
        "--json",
    )
    outcome = call(*words, "-D", "image_column=pic", "-D", "text_column=words")
    assert outcome.json["metrics"]["i2t/Hit@1"]["mean"] == 1
    assert call(*words, "-D", "image_column").code == 2
    assert "given twice" in call(*words, "-D", "split=a", "--split", "b").err
    np.save(tmp_path / "test_ims.npy", np.ones((2, 3)))
    (tmp_path / "test_caps.txt").write_text("a b c\nd e f\n")
    numbers = ("data", "describe", "precomputed", "-D", f"folder={tmp_path}", "--split", "test", "-D")
    assert call(*numbers, "captions_per_image=1").code == 0
    assert "a whole number" in call(*numbers, "captions_per_image=one").err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--metrics", "Hti@5"), 2, "did you mean Hit"),
        (("--folds", "0"), 2, "greater than or equal to 1"),
        (("--ties", "stabel"), 2, "stable"),
        (("--score", "cosin"), 2, "cosine"),
        (("--backend", "nunpy"), 2, "numpy"),
        (("--direction", "up"), 2, "i2t"),
        (("--image-ids", "{study}/nothing.txt"), 3, "no such file"),
        (("--level", "95"), 2, "below 1"),
        (("--run", "{study}/captions.json"), 2, "both embeddings and runs"),
        (("-D", "colour=red"), 2, "no option 'colour'"),
    ],
)
def test_mistakes(words: tuple[str, ...], code: int, message: str, study: Path, call: Call) -> None:
    outcome = call("evaluate", *flags(study), *(word.format(study=study) for word in words))
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"hello"), "a .npy file of plain numbers"),
        (lambda path: np.save(path, np.array([{}], object), allow_pickle=True), "a .npy file of plain numbers"),
        (lambda path: np.save(path, np.ones((40, 64)))
            or path.write_bytes(path.read_bytes()[:500]), "a .npy file of plain numbers"),
        (lambda path: np.save(path, np.ones((39, 64))), "39 rows of image embeddings for 40 images"),
        (lambda path: np.save(path, np.ones(40)), "n×d"),
        (lambda path: np.save(path, np.full((40, 64), np.nan)), "NaN in vectors"),
        (lambda path: np.save(path, np.ones((40, 3))), "64"),
        (lambda path: np.save(path, np.array([["x"] * 64] * 40)), "real numbers"),
    ],
)  # fmt: skip
def test_broken_embeddings_are_named(write, message: str, study: Path, tmp_path: Path, call: Call) -> None:  # type: ignore[no-untyped-def]
    bad = tmp_path / "bad.npy"
    write(bad)
    words = flags(study)
    words[words.index("--image-embeddings") + 1] = bad
    outcome = call("evaluate", *words)
    assert outcome.code == 3
    assert message in outcome.err
    if message != "64":
        assert str(bad) in outcome.err


def test_run_repeats_a_stored_recipe(runs: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    folder = runs[0]
    outcome = call("run", folder / "recipe.toml")
    assert outcome.code == 0
    assert f"every query has the same value as in {folder}" in outcome.err
    assert outcome.out == call("show", folder).out
    copied = call("run", folder, "-o", tmp_path / "again", "--json")
    assert copied.json["metrics"] == json.loads((folder / "run.json").read_text())["metrics"]
    assert (tmp_path / "again" / "recipe.toml").exists()


def test_run_refuses_changed_inputs(study: Path, call: Call, tmp_path: Path) -> None:
    words = flags(study)
    mine = tmp_path / "img.npy"
    mine.write_bytes((study / "model-a-img.npy").read_bytes())
    words[words.index("--image-embeddings") + 1] = mine
    call("evaluate", *words, "-o", tmp_path / "run")
    np.save(mine, np.load(mine)[::-1])
    outcome = call("run", tmp_path / "run" / "recipe.toml")
    assert outcome.code == 3
    assert "changed since the recipe was stored" in outcome.err
    outcome = call("run", tmp_path / "run" / "recipe.toml", "--allow-changed")
    assert outcome.code == 0
    assert "the values differ from those in" in outcome.err


def test_a_recipe_written_by_hand(study: Path, call: Call) -> None:
    recipe = study / "by-hand.toml"
    recipe.write_text(
        'name = "mine"\n[dataset]\nsource = "coco"\ncaptions = "captions.json"\n'
        '[inputs]\nscores = "scores.npy"\n[options]\nmetrics = ["Hit@1", "MedR"]\nresamples = 10\n'
    )
    outcome = call("run", recipe, "--json")
    assert outcome.json["name"] == "mine"
    assert set(outcome.json["metrics"]) == {"i2t/Hit@1", "t2i/Hit@1", "i2t/MedR", "t2i/MedR"}
    recipe.write_text(recipe.read_text().replace("resamples", "resample"))
    broken = call("run", recipe)
    assert broken.code == 3
    assert f"{recipe}, line 9: unknown key 'resample' in [options]" in broken.err
