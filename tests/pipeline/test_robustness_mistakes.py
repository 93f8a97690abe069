"""Robustness studies that must not go wrong quietly: contradicting requests, names, damage, and what a folder loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core.errors import ConflictError
from crosslens.perturb import perturb
from crosslens.report.robustness import robustness_text
from tests.pipeline.test_robustness import QUICK, Letters, captions

COLOURS = cl.Dataset.of(
    {
        "a": ["A red car.", "A blue bus."],
        "b": ["A red boat.", "A green field."],
        "c": ["A white dog.", "A yellow house."],
    }
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))


def vectors(**more: Any) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        "images": random.normal(size=(4, 5)), "captions": random.normal(size=(12, 5)),
        "variants": {"mine": random.normal(size=(12, 5))}, **QUICK, **more,
    }  # fmt: skip


def text_study(dataset: cl.Dataset, encoder: Any, perturbations: str, **more: Any) -> cl.Robustness:
    return cl.robustness(dataset, model=encoder, perturbations=perturbations, image_text="mean", **QUICK, **more)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (vectors(variants={"original": np.ones((12, 5))}), "called 'original'"),
        (vectors(variants={"../mine": np.ones((12, 5))}), "called '../mine'"),
        (vectors(variants={"one/two": np.ones((12, 5))}), "called 'one/two'"),
        (vectors(seeds=2), "2 seeds, but one set of vectors"),
        (vectors(directions=["t2x"]), "unknown direction 't2x'"),
        (vectors(directions=["t2t"]), "t2t.*text-only"),
        (vectors(options={"k": 2}), "options"),
        ({"model": "tiny", "perturbations": "blur@3", "options": {"k": 2}}, "options"),
        ({"model": "tiny", "images": np.ones((4, 5))}, "both a model and embeddings"),
        ({"model": "tiny", "captions": np.ones((12, 5))}, "both a model and embeddings"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CrosslensError, match=message):
        cl.robustness(captions(4), **options)


def test_colours_of_all_captions_are_offered_in_text_only_retrieval() -> None:
    found = text_study(COLOURS, Letters(), "color_in", cache=False, seeds=4)
    rows = found.captions
    assert rows.height == 12
    for seed in range(4):
        whole = perturb("color_in", COLOURS, seed=seed)
        own = rows.filter(pl.col("seed") == seed)
        assert own["text"].to_list() == [one.text for one in whole[::2]]
    assert any(colour in text for text in rows["text"] for colour in ("blue", "green", "yellow"))


def test_a_model_that_would_be_lost_is_missed_before_the_work(tmp_path: Path) -> None:
    dataset = captions(6)
    text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob", cache=False)
    other = Letters()
    other.name = "others"
    with pytest.raises(ConflictError, match="also has letters"):
        text_study(dataset, other, "char_swap", output=tmp_path / "rob", cache=False)
    assert other.texts == []
    both = cl.robustness(
        dataset, models=[other, Letters()], perturbations="char_swap", image_text="mean", output=tmp_path / "rob",
        cache=False, **QUICK,
    )  # fmt: skip
    assert both.models == ("others", "letters")


def test_fewer_seeds_and_other_options_do_not_take_a_study_s_place(tmp_path: Path) -> None:
    dataset = captions(6)
    place: dict[str, Any] = {"output": tmp_path / "rob", "cache": False}
    text_study(dataset, Letters(), "synonym_noun", seeds=2, **place)
    before = (tmp_path / "rob" / "robustness.json").read_bytes()
    with pytest.raises(ConflictError, match="2 seeds"):
        text_study(dataset, Letters(), "synonym_noun", **place)
    with pytest.raises(ConflictError, match="another robustness study"):
        text_study(dataset, Letters(), "synonym_noun", seeds=2, options={"k": 2}, **place)
    assert (tmp_path / "rob" / "robustness.json").read_bytes() == before
    assert text_study(dataset, Letters(), "synonym_noun", seeds=3, **place).spread["seeds"].unique().to_list() == [3]
    again = text_study(dataset, Letters(), "synonym_noun", options={"k": 2}, overwrite=True, **place)
    assert again.about["options"]["perturbing"] == {"k": 2}
    assert not len(again.spread)


def test_unfinished_work_of_another_study_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "rob").mkdir()
    (tmp_path / "rob" / "pending.json").write_text(json.dumps({"setting": "another"}))
    with pytest.raises(ConflictError, match="unfinished"):
        text_study(captions(4), Letters(), "char_swap", output=tmp_path / "rob")
    text_study(captions(4), Letters(), "char_swap", output=tmp_path / "rob", overwrite=True)
    assert not (tmp_path / "rob" / "pending.json").exists()


@pytest.mark.parametrize(
    "damaged", ["drops.parquet", "letters/char_swap.parquet", "letters/char_swap/run.json", "letters/original.parquet"]
)
def test_what_is_damaged_is_made_again(tmp_path: Path, damaged: str) -> None:
    dataset = captions(6)
    whole = text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob")
    (tmp_path / "rob" / damaged).write_text("half a")
    again = text_study(dataset, Letters(), "char_swap", output=tmp_path / "rob")
    for name, table in whole.tables.items():
        assert again.tables[name].equals(table), name
        assert cl.Robustness.load(tmp_path / "rob").tables[name].equals(table), name


def test_a_model_may_be_called_pictures(tmp_path: Path) -> None:
    cl.robustness(
        captions(4), models={"pictures": Letters()}, perturbations="char_swap", image_text="mean",
        output=tmp_path / "rob", **QUICK,
    )  # fmt: skip
    assert cl.Run.load(tmp_path / "rob" / "pictures" / "char_swap")


def test_brittle_images_are_not_called_captions() -> None:
    random = np.random.default_rng(0)
    found = cl.robustness(
        captions(4), directions=["i2t"], images=np.eye(4), captions=np.repeat(np.eye(4), 3, axis=0),
        variants={"mine": random.normal(size=(12, 4))}, **QUICK,
    )  # fmt: skip
    text = robustness_text(found, ["captions"])
    assert "The most brittle images" in text
    assert "captions\n\n" not in text.partition("The most")[2]
