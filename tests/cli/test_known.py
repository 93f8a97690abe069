"""Known datasets on the command line: listed, evaluated by name, and named in recipes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslens.cli.datasets import load_dataset_words
from crosslens.values import Run
from tests.data.test_known import coco_karpathy, sugar_crepe

from .conftest import Call


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CROSSLENS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    coco_karpathy(tmp_path / "data")
    np.save("vectors.npy", np.eye(2, dtype=np.float32))
    return tmp_path


VECTORS = ("--image-embeddings", "vectors.npy", "--caption-embeddings", "vectors.npy", "--metrics", "Hit@1")


def test_the_list(home: Path, call: Call) -> None:
    outcome = call("data", "known", "--data-folder", "data")
    assert outcome.code == 0
    assert "✓ coco-karpathy-5k" in outcome.out
    assert "\n  flickr30k" in outcome.out
    content = {
        entry["name"]: entry for entry in call("data", "known", "--data-folder", "data", "--json").json["datasets"]
    }
    assert content["coco-karpathy-5k"]["path"] == "data/coco/dataset_coco.json"
    assert content["flickr30k"]["path"] is None
    assert content["flickr30k"]["downloads"][0]["to"] == ["data/flickr30k/dataset_flickr30k.json"]
    listing = call("data", "known", "flickr30k").out
    assert "https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip" in listing
    assert call("data", "known", "flicker30k").code == 2


def test_evaluated_by_name_and_repeated_from_elsewhere(home: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("evaluate", "--dataset", "coco-karpathy-5k", "--data-folder", "data", *VECTORS, "-o", "runs/a")
    assert call(*words).code == 0
    assert Run.load("runs/a").provenance["dataset"]["name"] == "coco-karpathy-5k"
    recipe = Path("runs/a/recipe.toml").read_text(encoding="utf-8")
    assert 'source = "coco-karpathy-5k"' in recipe
    assert 'data_folder = "../../data"' in recipe
    (home / "away").mkdir()
    monkeypatch.chdir(home / "away")
    assert "every query has the same value" in call("run", home / "runs" / "a").err


def test_the_folder_of_the_environment_is_in_the_recipe(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSLENS_DATA", str(home / "data"))
    assert call("evaluate", "--dataset", "coco-karpathy-5k", *VECTORS, "-o", "runs/a").code == 0
    monkeypatch.delenv("CROSSLENS_DATA")
    assert "every query has the same value" in call("run", "runs/a").err


@pytest.mark.parametrize(
    "command",
    [("evaluate",), pytest.param(("audit", "--only", "evaluate", "-o", "audited"), marks=pytest.mark.slow)],
)
def test_what_a_name_implies(home: Path, call: Call, command: tuple[str, ...]) -> None:
    """The same note and the same reason to refuse two images, whichever command is asked."""
    folds = call(*command, "--dataset", "coco-karpathy-1k", "--data-folder", "data", *VECTORS)
    assert "note: coco-karpathy-1k is coco-karpathy-5k with 5 folds" in folds.err
    assert (folds.code, "folds" in folds.err.split("note:")[-1]) == (2, True)
    judged = call(*command, "--dataset", "eccv", "--data-folder", "data", *VECTORS)
    assert "note: eccv is coco-karpathy-5k with the judgements eccv" in judged.err


@pytest.mark.slow
def test_an_audit_by_name_has_the_figures_of_an_evaluation(home: Path, call: Call, shared_data: Path) -> None:
    pytest.importorskip("eccv_caption", reason="pip install 'crosslens[eccv]'")
    lists = shared_data / "runs" / "align-coco5k-i2t.run.gz"
    common = ("--dataset", "eccv", "--data-folder", shared_data, "--run", lists, "--metrics", "Hit@1 Hit@5")
    assert call("evaluate", *common, "-o", "evaluated").code == 0
    assert call("audit", *common, "--only", "soundness", "-o", "audited").code == 0
    evaluated, audited = Run.load("evaluated"), Run.load("audited/runs/lists")
    assert {name: audited[name].mean for name in evaluated} == {name: evaluated[name].mean for name in evaluated}
    assert evaluated["i2t/Hit@1"].excluded == 5000 - 1261, "ECCV judged 1,261 images"


def test_other_commands(home: Path, call: Call) -> None:
    assert call("data", "describe", "coco-karpathy-5k", "--data-folder", "data").code == 0
    assert load_dataset_words("coco-karpathy-5k data_folder=data").name == "coco-karpathy-5k"
    sugar_crepe(home / "data")
    outcome = call("hard-negatives", "sugar-crepe", "--data-folder", "data", "--blind", "shorter", "--json")
    assert outcome.code == 0


def test_mistakes(home: Path, call: Call) -> None:
    missing = call("evaluate", "--dataset", "flickr30k", *VECTORS)
    assert missing.code == 3
    assert "is not in the current folder" in missing.err
    assert "→ flickr30k/dataset_flickr30k.json" in missing.err
    assert "pass --data-folder or set CROSSLENS_DATA" in missing.err
    cases = call("evaluate", "--dataset", "sugar-crepe", *VECTORS)
    assert (cases.code, "see crosslens hard-negatives sugar-crepe" in cases.err) == (2, True)
    outcome = call("evaluate", "--dataset", "coco", "--captions", "x.json", "--data-folder", "data", *VECTORS)
    assert "--data-folder is for datasets that are known by a name" in outcome.err
    assert "has no hard negatives" in call("hard-negatives", "flickr30k").err
