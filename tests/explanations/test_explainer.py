"""One query in full: the numbers are those of the raw annotations, whoever asked and however it went."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, InputError, MissingExtraError, UnknownNameError, UsageError
from crosslens.explanations import concept_metrics, explain_queries
from crosslens.pipeline import explain
from crosslens.values import Dataset, Run

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")

OBJECTS: list[tuple[str, str, str, tuple[float, float, float, float], list[str]]] = [
    ("park", "dog", "dog.n.01", (10, 60, 20, 20), ["brown"]),
    ("park", "dog", "dog.n.01", (40, 60, 10, 10), ["brown"]),
    ("park", "frisbee", "frisbee.n.01", (70, 10, 10, 5), ["red"]),
    ("beach", "dog", "dog.n.01", (10, 50, 40, 40), ["white"]),
    ("beach", "boat", "boat.n.01", (60, 10, 30, 20), []),
    ("street", "car", "car.n.01", (0, 50, 50, 30), ["red"]),
]
CAPTIONS = {
    "park": ["Two brown dogs and a red frisbee", "dogs playing in a park"],
    "beach": ["A white dog near a boat", "a dog on a beach"],
    "street": ["A red car", "a car in a street"],
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    without_objects = Dataset.of(CAPTIONS, images={"width": [100] * 3, "height": [100] * 3})
    rows = [
        (i, f"{n}", name, synset, *map(float, box), words) for n, (i, name, synset, box, words) in enumerate(OBJECTS)
    ]
    columns = ("image", "object", "name", "synset", "x", "y", "w", "h", "attributes")
    return replace(without_objects, objects=pl.DataFrame(rows, schema=list(columns), orient="row"))


@pytest.fixture(scope="module")
def run(dataset: Dataset) -> Run:
    """The first caption finds the beach, the third caption the beach; the park finds a caption of the beach."""
    scores = np.array(
        [[0.5, 0.9, 0.7, 0.1, 0.1, 0.1], [0.6, 0.2, 0.8, 0.9, 0.2, 0.1], [0.1, 0.3, 0.1, 0.2, 0.9, 0.8]], np.float32
    )
    scores[0] = [0.5, 0.6, 0.7, 0.1, 0.1, 0.1]
    return cl.evaluate(dataset, scores=scores, metrics=["Hit@1"], resamples=10, name="made")


def test_a_failure_in_full(run: Run, dataset: Dataset) -> None:
    explanation = explain(run, "park#0", dataset=dataset)
    assert (
        explanation.right.image,
        explanation.other.image,
        explanation.rank,
        explanation.gallery,
        explanation.succeeded,
    ) == ("park", "beach", 2, 3, False)
    assert explanation.margin == pytest.approx(0.1)
    assert explanation.summary == (
        "The query asks for a frisbee, but the retrieved picture has none; "
        "it also asks for two dogs, but the retrieved picture has one. "
        "The right picture comes second of 3 pictures, 0.1 behind the first in score; "
        "unlike the retrieved one, it has no boat."
    )
    verdicts = {(w.right.word.kind, w.right.word.noun): (w.right.verdict, w.other.verdict) for w in explanation.words}
    assert verdicts["object", "frisbee"] == ("satisfied", "violated")
    assert verdicts["count", "dog"] == ("satisfied", "violated")
    assert verdicts["colour", "dog"] == ("satisfied", "violated")
    assert explanation.comparison["counts"] == {"dog.n.01": (2, 1)}
    assert [(pair["right"], pair["other"], pair["ratio"]) for pair in explanation.boxes] == [(0, 0, pytest.approx(4.0))]
    assert explanation.paths[0]["path"][0] == "frisbee.n.01"
    assert explanation.paths[0]["path"][-1] == "boat.n.01"
    assert [(c.rank, c.item, c.right) for c in explanation.competitors] == [
        (1, "beach", False), (2, "park", True), (3, "street", False),
    ]  # fmt: skip


def test_the_numbers_are_those_of_the_metrics_on_plain_values(run: Run, dataset: Dataset) -> None:
    explanation = explain(run, "park#0", dataset=dataset).as_dict()
    sides: list[list[dict[str, Any]]] = [
        [{"synset": s, "box": list(box), "attributes": words} for i, _, s, box, words in OBJECTS if i == image]
        for image in ("park", "beach")
    ]
    plain = concept_metrics(*sides, sizes=((100, 100), (100, 100)))
    for name, value in explanation["metrics"].items():
        assert value == pytest.approx(plain[name]), name
    asked = concept_metrics(*sides, sizes=((100, 100), (100, 100)), mentioned=["dog.n.01", "frisbee.n.01"])
    for name, value in explanation["query_informed"].items():
        assert value == pytest.approx(asked[name]), name


def test_an_image_query(run: Run, dataset: Dataset) -> None:
    explanation = explain(run, "park", dataset=dataset)
    assert (explanation.direction, explanation.query_text, explanation.other_item) == ("i2t", None, "beach#0")
    assert explanation.spoken == "A white dog near a boat"
    assert explanation.summary.startswith("The retrieved caption speaks of a boat, but the query picture has none; ")
    assert "it also speaks of a white dog, but those in the query picture are brown." in explanation.summary
    assert "The best caption of the query picture comes second of 6 captions" in explanation.summary


def test_a_success_says_by_how_much(run: Run, dataset: Dataset) -> None:
    explanation = explain(run, "street#0", dataset=dataset)
    assert explanation.succeeded
    assert explanation.margin == pytest.approx(0.7)
    assert explanation.summary.startswith(
        "The right picture comes first of 3 pictures, 0.7 ahead of the next in score;"
    )
    assert "The query asks for a car, but the next picture has none." in explanation.summary


def test_text_only_retrieval(run: Run, dataset: Dataset) -> None:
    rankings = {"t2t": replace(run.rankings["t2i"], direction="t2t")}
    explanation = explain_queries(rankings, dataset, ["park#0"])[0]
    assert (explanation.direction, explanation.rank) == ("t2t", 2)
    assert "has none; it also asks for two dogs" in explanation.summary


def test_without_objects_captions_speak(run: Run, dataset: Dataset) -> None:
    bare = replace(dataset, objects=None)
    explanation = explain(run, "park#0", dataset=bare)
    assert explanation.source == "captions"
    assert "a frisbee, which no caption of the retrieved picture mentions" in explanation.summary
    assert " has " not in explanation.summary
    assert any("No objects are annotated" in note for note in explanation.notes)


def test_objects_without_boxes_and_pictures_without_objects(run: Run, dataset: Dataset) -> None:
    assert dataset.objects is not None
    boxless = replace(dataset, objects=dataset.objects.with_columns(*(pl.lit(None).alias(side) for side in "xywh")))
    explanation = explain(run, "park#0", dataset=boxless)
    assert not explanation.boxes
    assert any("no boxes" in note for note in explanation.notes)
    empty = replace(dataset, objects=dataset.objects.filter(pl.col("image") != "beach"))
    explanation = explain(run, "park#0", dataset=empty)
    assert explanation.comparison["common"] == []
    assert "No object of image beach is annotated." in explanation.notes


def test_without_a_parser_the_rest_is_still_there(run: Run, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise MissingExtraError("parsing captions", "spacy", "language")

    monkeypatch.setattr("crosslens.explanations.explainer.mentioned_concepts", missing)
    explanation = explain(run, "park#0", dataset=dataset)
    assert explanation.summary.startswith("The query was not read word by word.")
    assert explanation.words == ()
    assert explanation.comparison["common"] == ["dog.n.01"]
    assert any("crosslens[language]" in note for note in explanation.notes)


def test_everything_is_json(run: Run, dataset: Dataset) -> None:
    for query in ("park#0", "park", "street#0"):
        content = explain(run, query, dataset=dataset).as_dict()
        again = json.loads(json.dumps(content, allow_nan=False))
        assert again == content
        assert again["format"] == "crosslens/explanation"
        assert len(again["sentences"]) == 2
        claims = [claim for sentence in again["sentences"] for claim in sentence["claims"]]
        assert all(list(claim) == ["about", "kind", "name", "value"] for claim in claims)
        assert all(list(item) == ["place", "item", "image", "score", "right", "text"] for item in again["competitors"])


def test_several_queries_come_in_their_order(run: Run, dataset: Dataset) -> None:
    explanations = explain(run, ["street#0", "park", "park#0"], dataset=dataset)
    assert [explanation.query for explanation in explanations] == ["street#0", "park", "park#0"]


def test_unknown_queries_suggest_near_ones(run: Run, dataset: Dataset) -> None:
    with pytest.raises(UsageError, match=r"no query 'park#O' in this run\n  fix: did you mean park#1 or park#0"):
        explain(run, "park#O", dataset=dataset)
    with pytest.raises(UsageError, match="ids look like park#0"):
        explain(run, "0000000", dataset=dataset)
    with pytest.raises(UsageError, match="queries must be a list"):
        explain_queries(run, dataset, "park#0")


@pytest.mark.parametrize(("query", "option"), [("park#0", "threshhold"), ("park#0", "minimum"), (None, "competitors")])
def test_unknown_options_are_refused(run: Run, dataset: Dataset, query: str | None, option: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown option '{option}'"):
        explain(run, query, dataset=dataset, **{option: 2})


def test_a_query_that_nothing_is_relevant_to(dataset: Dataset) -> None:
    judged = {"park#0": ["park"]}
    scores = np.eye(3, 6, dtype=np.float32)
    run = cl.evaluate(dataset, scores=scores, relevance=judged, directions=["t2i"], metrics=["Hit@1"], resamples=10)
    with pytest.raises(CrosslensError, match="no relevant item"):
        explain(run, "street#0", dataset=dataset)


def test_the_dataset_comes_from_the_recipe_of_the_folder(dataset: Dataset, tmp_path: Path) -> None:
    dataset.save(tmp_path / "data")
    np.save(tmp_path / "scores.npy", np.array([[0.5, 0, 0, 0, 0, 0], [0.6, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]))
    from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe

    recipe = Recipe(
        dataset=str(tmp_path / "data"),
        inputs=InputOptions(scores=str(tmp_path / "scores.npy")),
        options=EvaluateOptions(resamples=10),
    )
    run_recipe(recipe, tmp_path / "runs" / "one")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("data", "runs"):
        (tmp_path / name).rename(moved / name)
    explanation = cl.explain(moved / "runs" / "one", "park#0")  # type: ignore[operator]
    assert explanation.other.image == "beach"
    assert not explanation.notes
    replace(dataset, objects=dataset.objects.head(4)).save(moved / "less")
    shutil.rmtree(moved / "data")
    (moved / "less").rename(moved / "data")
    for changed in (explain(moved / "runs" / "one", "park#0"), explain(moved / "runs" / "one")):
        assert "changed since" in changed.notes[0]
    with_dataset = explain(moved / "runs" / "one", "park#0", dataset=moved / "data")
    assert not with_dataset.notes, "who names a dataset means it"
    assert explain(str(moved / "runs" / "one"), "park#0").dataset == dataset.name


def test_a_changed_dataset_is_noted(dataset: Dataset, tmp_path: Path) -> None:
    from crosslens.explanations import dataset_change

    run = cl.evaluate(dataset, scores=np.eye(3, 6, dtype=np.float32), metrics=["Hit@1"], resamples=0)
    assert dataset.objects is not None
    fewer_objects = replace(dataset, objects=dataset.objects.head(3))
    assert dataset_change(run, dataset) is None
    assert "changed" in str(dataset_change(run, fewer_objects))
    assert dataset_change(replace(run, provenance={}), fewer_objects) is None, "nobody knows"


def test_a_run_without_a_dataset_requires_one(run: Run) -> None:
    with pytest.raises(UsageError, match="names no dataset"):
        explain(run, "park#0")
    with pytest.raises(InputError, match="not in the dataset"):
        explain(run, "park#0", dataset=Dataset.of({"a": ["b"]}))


def test_a_part_of_a_dataset_has_not_changed(dataset: Dataset) -> None:
    """Text-only retrieval evaluates the captions that are queries, and an unreadable image is left out."""
    from crosslens.encode import text_queries
    from crosslens.explanations import dataset_change

    vectors = np.eye(3, dtype=np.float32)
    text_only = cl.evaluate(
        text_queries(dataset, 1).dataset,
        images=vectors,
        captions=vectors,
        directions=["t2t"],
        metrics=["Hit@1"],
        resamples=0,
    )
    assert dataset_change(text_only, dataset) is None
    without = dataset.select(["street", "park"])
    images = np.eye(2, dtype=np.float32)
    part = cl.evaluate(without, images=images, captions=np.repeat(images, 2, 0), metrics=["Hit@1"], resamples=0)
    assert dataset_change(part, dataset) is None
    texts = dataset.captions.with_columns(pl.col("text").str.to_uppercase())
    for changed in (replace(dataset, captions=texts), dataset.select(["beach"])):
        for run in (text_only, part):
            assert "changed since" in str(dataset_change(run, changed))


def test_a_list_that_was_cut_off_says_only_its_length(dataset: Dataset) -> None:
    lists = {"park": ["beach#0", "park#0"], "beach": ["beach#1", "park#0"], "street": ["street#0", "beach#0"]}
    run = cl.evaluate(dataset, run={"i2t": lists}, metrics=["Hit@1"], resamples=0)
    explanation = explain(run, "park", dataset=dataset)
    assert "comes second in a list of 2 captions" in explanation.summary
    assert explanation.gallery is None
    assert explanation.as_dict()["gallery"] is None
    assert "comes first in a list of 2 captions" in str(explain(run, "street", dataset=dataset))
