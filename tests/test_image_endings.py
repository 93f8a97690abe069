"""One file calls an image ``beach.jpg``, another ``beach``: they are matched wherever two sources meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import compare_granularity, find_missing_positives
from crosslens.core import MissingExtraError
from crosslens.data import read_judgements, rename_images
from crosslens.explanations import explain_queries, query_outcomes

IMAGES = 6
SCORES = np.kron(np.eye(IMAGES), np.ones((1, 2))) + 0.1 * np.random.default_rng(0).random((IMAGES, 2 * IMAGES))


def dataset_of(ending: str, name: str = "photos") -> cl.Dataset:
    return cl.Dataset(
        name,
        pl.DataFrame({"image": [f"im{n}{ending}" for n in range(IMAGES)]}),
        pl.DataFrame(
            [(f"c{n}", f"im{n // 2}{ending}", f"a {'red' if n % 3 else 'blue'} dog {n}") for n in range(2 * IMAGES)],
            schema=["caption", "image", "text"], orient="row",
        ),
    )  # fmt: skip


def no_parser(*_: Any, **__: Any) -> None:
    """Starting one takes long, and ids are not words."""
    raise MissingExtraError("parsing captions", "spacy", "language")


def test_flickr30k_and_its_fine_grained_captions(tmp_path: Path) -> None:
    (tmp_path / "f.token").write_text("".join(f"100712981{n}.jpg#0\tA dog {n}.\n" for n in range(IMAGES)))
    fine = {f"100712981{n}": [f"A small brown dog {n}."] for n in reversed(range(IMAGES))}
    (tmp_path / "fine.json").write_text(json.dumps(fine))
    sets = cl.compare_caption_sets(
        cl.load_dataset("flickr", captions=tmp_path / "f.token"), cl.load_dataset(tmp_path / "fine.json"),
        images=np.eye(IMAGES), captions=(np.eye(IMAGES), np.eye(IMAGES)[::-1]), granularity=False, resamples=0,
        permutations=10, metrics="Hit@1",
    )  # fmt: skip
    assert [(change.before, change.after) for change in sets.results] == [(1.0, 1.0)] * 2
    assert not sets.notes


def test_renaming_images_keeps_what_belongs_to_them() -> None:
    objects = pl.DataFrame({"image": ["a"], "object": ["o"], "name": ["dog"]})
    dataset = cl.Dataset.of({"a": ["A dog."], "b": ["A cat."]})
    dataset = cl.Dataset("two", dataset.images, dataset.captions, objects)
    renamed = rename_images(dataset, ["a.jpg", "b"])
    assert renamed.image_ids == ("a.jpg", "b")
    assert renamed.captions["image"].to_list() == ["a.jpg", "b"]
    assert renamed.objects is not None
    assert renamed.objects["image"].to_list() == ["a.jpg"]
    assert renamed.caption_ids == dataset.caption_ids
    assert rename_images(dataset, ["a", "b"]) is dataset


def test_runs_are_compared() -> None:
    runs = [
        cl.evaluate(dataset_of(ending), scores=SCORES, metrics="i2t/Hit@1", resamples=0, name=f"with {ending}")
        for ending in ("", ".jpg")
    ]
    assert cl.compare(*runs).results[0].difference == 0.0


def test_a_run_is_explained_with_another_copy_of_the_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.explanations.explainer.mentioned_concepts", no_parser)
    run = cl.evaluate(dataset_of(".jpg"), scores=SCORES[::-1], metrics="Hit@1", resamples=0)
    dataset = dataset_of("")
    for direction in ("i2t", "t2i"):
        outcomes = query_outcomes(run, dataset, direction)
        assert set(outcomes["ground_truth"]) | set(outcomes["retrieved"]) == set(dataset.image_ids)
    by_image = explain_queries(run, dataset, ["im1.jpg", "im1"])
    assert [explanation.query for explanation in by_image] == ["im1", "im1"]
    assert {item.image for item in explain_queries(run, dataset, ["c1"])[0].competitors} <= set(dataset.image_ids)


def test_items_that_only_lists_name_are_not_explained() -> None:
    images = 60
    dataset = cl.Dataset.of({f"im{n}": [f"dog {n}", f"cat {n}"] for n in range(images)})
    lists = {f"im{n}": [f"im{(n + n % 2) % images}#0", f"im{n}#0"] for n in range(images) if n % 2}
    lists |= {f"im{n}": [f"im{n}#0", f"im{(n + 1) % images}#1"] for n in range(images) if not n % 2}
    lists["im7"] = ["sixth caption", "im7#0"]
    run = cl.evaluate(dataset, run=lists, metrics="Hit@1", resamples=0)
    outcomes = query_outcomes(run, dataset)
    assert outcomes.height == images - 1
    assert "im7" not in outcomes["query"].to_list()
    with pytest.raises(
        cl.CrosslensError, match="'im7' has no relevant item in this run, or its list is empty or names"
    ):
        explain_queries(run, dataset, ["im7"])


def test_judgements_of_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("image,caption,score\nim0.jpg,c0,4\nim1.png,c5,1\n")
    judged = read_judgements(tmp_path / "pairs.csv", dataset_of(""))
    assert judged.images.tolist() == [0, 1]
    (tmp_path / "pairs.csv").write_text("image,caption,score\nim0,c0,4\nim1,c5,1\n")
    assert read_judgements(tmp_path / "pairs.csv", dataset_of(".jpg")).images.tolist() == [0, 1]


def test_similarities_from_a_file(tmp_path: Path) -> None:
    table = pl.DataFrame({"image": [f"im{n}" for n in range(IMAGES)], **{f"c{n}": SCORES[:, n] for n in range(12)}})
    table.write_csv(tmp_path / "phi.csv")
    run = cl.evaluate(
        dataset_of(".jpg"), scores=SCORES, phi={"mine": tmp_path / "phi.csv"}, metrics="NCS[mine]@2", resamples=0
    )
    assert run["i2t/NCS[mine]@2"].mean == pytest.approx(1.0, abs=1e-5)


def test_verified_positives() -> None:
    verified = cl.Relevance.of({"im0": ["c0", "c5"], "im1": ["c2", "c3"]})
    phi = np.full((IMAGES, 2 * IMAGES), 0.1)
    phi[0, 5] = 0.9
    result = find_missing_positives(dataset_of(".jpg"), phi, threshold=0.5, verified=verified)
    assert result.verification is not None
    assert (result.verification.positives, result.verification.recall.mean) == (1, 1.0)
    truth = cl.Relevance.of({f"c{n}": [f"im{n // 2}"] for n in range(2 * IMAGES)})
    again = find_missing_positives(dataset_of(".jpg"), phi, threshold=0.5, ground_truth=truth)
    assert list(again.table["image"]) == ["im0.jpg"]


@pytest.mark.slow
def test_sets_of_captions_are_paired() -> None:
    pytest.importorskip("spacy", reason="needs the extra 'language'")
    sides = [cl.granularity(dataset_of(ending, ending or "none")) for ending in ("", ".jpg")]
    comparison = compare_granularity(sides, resamples=10, permutations=10)
    assert all(change.paired for changes in comparison.changes.values() for change in changes.values())


def test_tables_and_lists_of_images(tmp_path: Path) -> None:
    (tmp_path / "captions.csv").write_text("image,text\na.jpg,A dog.\nb.jpg,A cat.\n")
    (tmp_path / "images.csv").write_text("image,kind\na,x\nb,y\nc,z\n")
    dataset = cl.load_dataset(tmp_path / "captions.csv", images=tmp_path / "images.csv")
    assert dataset.image_ids == ("a", "b", "c")
    assert dataset.captions.select("caption", "image").rows() == [("a.jpg#0", "a"), ("b.jpg#0", "b")]
    (tmp_path / "f.token").write_text("a#0\tA dog.\nb#0\tA cat.\n")
    (tmp_path / "list.txt").write_text("b.jpg\n")
    assert cl.load_dataset("flickr", captions=tmp_path / "f.token", images=tmp_path / "list.txt").image_ids == ("b",)


def test_scores_of_hard_negatives(tmp_path: Path) -> None:
    cases = tmp_path / "replace_obj.json"
    cases.write_text(json.dumps({"0": {"filename": "1.jpg", "caption": "A dog.", "negative_caption": "A cat."}}))
    (tmp_path / "scores.csv").write_text(
        "case,caption,image,score\nreplace_obj/0,right,1,0.9\nreplace_obj/0,wrong,1,0.1\n"
    )
    result = cl.analyze.score_hard_negatives(cases, scores=tmp_path / "scores.csv", resamples=0)
    assert result.cases["correct"].to_list() == [True]
