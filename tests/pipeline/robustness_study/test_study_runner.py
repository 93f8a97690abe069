"""Studies that must not go wrong silently: contradicting arguments, names, and what is listed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.perturbations import perturb
from tests.pipeline.robustness_study.letters import QUICK, Letters, captions, text_study
from tests.tables import each_row

COLOURS = cl.Dataset.of(
    {
        "a": ["A red car.", "A blue bus."],
        "b": ["A red boat.", "A green field."],
        "c": ["A white dog.", "A yellow house."],
    }
)


def vectors(**more: Any) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        "images": random.normal(size=(4, 5)), "captions": random.normal(size=(12, 5)),
        "variants": {"mine": random.normal(size=(12, 5))}, **QUICK, **more,
    }  # fmt: skip


@each_row(
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
        ({"model": "tiny", "images": np.ones((4, 5))}, "both embeddings and a model"),
        ({"model": "tiny", "captions": np.ones((12, 5))}, "both embeddings and a model"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CrosslensError, match=message):
        cl.robustness(captions(4), **options)


def test_colours_of_all_captions_are_offered_in_text_only_retrieval() -> None:
    result = text_study(COLOURS, Letters(), "color_in", cache=False, seeds=4)
    rows = result.captions
    assert rows.height == 12
    for seed in range(4):
        whole = perturb("color_in", COLOURS, seed=seed)
        of_seed = rows.filter(pl.col("seed") == seed)
        assert of_seed["text"].to_list() == [caption.text for caption in whole[::2]]
    assert any(colour in text for text in rows["text"] for colour in ("blue", "green", "yellow"))


def test_brittle_images_are_not_called_captions() -> None:
    random = np.random.default_rng(0)
    result = cl.robustness(
        captions(4), directions=["i2t"], images=np.eye(4), captions=np.repeat(np.eye(4), 3, axis=0),
        variants={"mine": random.normal(size=(12, 4))}, **QUICK,
    )  # fmt: skip
    text = replace(result, shown=("captions",)).text()
    assert "The most brittle images" in text
    assert "captions\n\n" not in text.partition("The most")[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to evaluate"),
        ({"model": "tiny", "variants": {"v": np.ones((12, 4))}}, "both embeddings and a model"),
        ({"model": "tiny", "image_text": "mean", "perturbations": "blur@3"}, "changes pictures"),
        ({"model": "tiny", "perturbations": "char_swop"}, "did you mean char_swap"),
        ({"model": "tiny", "seeds": 0}, "seeds is 0"),
        ({"model": "tiny", "seedz": 2}, "did you mean seed or seeds"),
        ({"model": "tiny", "skip_bad": True}, "every image"),
        ({"model": "tiny", "perturbations": ""}, "perturbation"),
        ({"model": "tiny", "correction": "bonferoni"}, "correction"),
    ],
)
def test_mistakes_are_reported_before_the_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CrosslensError, match=message):
        cl.robustness(captions(4), **options)
