"""The demo: everything from nothing, and honest about it."""

from __future__ import annotations

from pathlib import Path

from crosslens.core.run import Run
from crosslens.synth.toy import toy_dataset

from .conftest import Call


def test_demo(call: Call, tmp_path: Path) -> None:
    outcome = call("demo", "-o", tmp_path, "--images", "40")
    assert outcome.code == 0
    assert outcome.out.startswith("This is generated data: 40 toy scenes")
    for text in ("model-a", "model-b", "Rsum", f"crosslens show {tmp_path / 'demo-b'} --by category"):
        assert text in outcome.out
    assert {path.name for path in tmp_path.iterdir()} == {"demo-a", "demo-b", "demo-data"}
    assert Run.load(tmp_path / "demo-a").name == "model-a"
    again = call("demo", "-o", tmp_path, "--images", "40")
    assert again.out == outcome.out
    other = call("demo", "-o", tmp_path, "--images", "41")
    assert other.code == 5
    assert call("run", tmp_path / "demo-a" / "recipe.toml").code == 0


def test_demo_as_json(call: Call, tmp_path: Path) -> None:
    content = call("demo", "-o", tmp_path, "--images", "30", "--json").json
    assert "generated" in content["note"]
    assert set(content["runs"]) == {str(tmp_path / "demo-a"), str(tmp_path / "demo-b")}
    assert content["comparison"]


def test_toy_data_is_the_same_everywhere_and_looks_real() -> None:
    dataset, models = toy_dataset()
    again, _ = toy_dataset()
    assert dataset.fingerprint == again.fingerprint
    assert dataset.fingerprint != toy_dataset(seed=1)[0].fingerprint
    assert (len(dataset.image_ids), len(dataset.caption_ids)) == (200, 1000)
    assert dataset.images["category"].n_unique() == 5
    from crosslens.pipeline.evaluate import evaluate

    hits = {
        name: evaluate(dataset, images=images, captions=captions, metrics="t2i/Hit@1", resamples=0)["t2i/Hit@1"].mean
        for name, (images, captions) in models.items()
    }
    assert 0.15 < hits["model-a"] < hits["model-b"] < 0.5
