"""Two caption sets of the same images: figures by brute force, tests by enumeration, and what is not comparable."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.pipeline import compare_caption_sets
from crosslens.pipeline.caption_sets import METRICS_OF_SETS, CaptionSets
from crosslens.statistics import Bootstrap
from tests.language.pipelines import needs_a_pipeline
from tests.tables import rest_slow

IMAGES = 9
COUNTS = {"coarse": (2, 1, 3, 2, 2, 1, 2, 3, 1), "fine": (1, 3, 1, 2, 4, 1, 1, 2, 2)}
NOISE = {"coarse": 1.6, "fine": 0.7}
POINTS = np.random.default_rng(3).normal(size=(IMAGES, 5))
SILENT: dict[str, Any] = {"granularity": False}


def one_set(name: str, order: list[int] | None = None) -> tuple[cl.Dataset, np.ndarray]:
    """Captions near their images: a dataset, and vectors in its order. Ids have nothing to do with the other set's."""
    random = np.random.default_rng(len(name))
    vectors = {
        image: POINTS[image] + NOISE[name] * random.normal(size=(COUNTS[name][image], 5)) for image in range(IMAGES)
    }
    order = list(range(IMAGES)) if order is None else order
    dataset = cl.Dataset.of(
        {f"i{image}": [f"{name} {image} {n}" for n in range(len(vectors[image]))] for image in order}, name
    )
    return dataset, np.concatenate([vectors[image] for image in order])


@pytest.fixture(scope="module")
def sets() -> CaptionSets:
    """The second set has its images the other way round, so that rows never match by chance."""
    coarse, before = one_set("coarse")
    fine, after = one_set("fine", list(reversed(range(IMAGES))))
    metrics = (*METRICS_OF_SETS, "MedR[all]", "MeanR[all]")
    return compare_caption_sets(
        coarse, fine, images=POINTS, captions=(before, after), metrics=metrics, resamples=200, permutations=4000,
        **SILENT,
    )  # fmt: skip


def cosines(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images × captions, and the image of each caption."""
    _, vectors = one_set(name)
    owner = np.repeat(np.arange(IMAGES), COUNTS[name])
    left, right = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (POINTS, vectors))
    return left @ right.T, owner


def hits(name: str, k: int) -> dict[str, tuple[list[float], list[int]]]:
    """Per direction, whether each query finds an own item among the first k, and the query's image."""
    scores, owner = cosines(name)
    i2t = [float(image in owner[np.argsort(-scores[image], kind="stable")[:k]]) for image in range(IMAGES)]
    t2i = [
        float(owner[caption] in np.argsort(-scores[:, caption], kind="stable")[:k].tolist())
        for caption in range(len(owner))
    ]
    return {"i2t": (i2t, list(range(IMAGES))), "t2i": (t2i, owner.tolist())}


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("k", [1, 5])
def test_figures_and_intervals_by_brute_force(sets: CaptionSets, direction: str, k: int) -> None:
    (before, before_of), (after, after_of) = (hits(name, k)[direction] for name in COUNTS)
    change = sets[f"{direction}/Hit@{k}"]
    assert (change.before, change.after) == pytest.approx((np.mean(before), np.mean(after)))
    assert change.difference == pytest.approx(change.after - change.before)
    differences = []
    for rows in Bootstrap(np.arange(0), 200, 0).weights(IMAGES):
        for weights in rows:
            first = [value for value, image in zip(before, before_of, strict=True) for _ in range(weights[image])]
            second = [value for value, image in zip(after, after_of, strict=True) for _ in range(weights[image])]
            differences.append(np.mean(second) - np.mean(first))
    _check_interval(change, differences, 0.05)


def _check_interval(change: Any, differences: list[float], slack: float) -> None:
    """Resampling so few images gives an interval that is too narrow, never one that is too wide."""
    low, high = np.quantile(differences, [0.025, 0.975])
    assert change.low <= low + slack
    assert change.high >= high - slack
    assert change.low < change.difference < change.high


def test_p_value_by_enumeration(sets: CaptionSets) -> None:
    (before, before_of), (after, after_of) = (hits(name, 1)["t2i"] for name in COUNTS)
    observed, extreme = abs(np.mean(after) - np.mean(before)), 0
    for swaps in product([False, True], repeat=IMAGES):
        first = [v for v, i in zip(before, before_of, strict=True) if not swaps[i]]
        first += [v for v, i in zip(after, after_of, strict=True) if swaps[i]]
        second = [v for v, i in zip(before, before_of, strict=True) if swaps[i]]
        second += [v for v, i in zip(after, after_of, strict=True) if not swaps[i]]
        extreme += abs(np.mean(second) - np.mean(first)) >= observed - 1e-9
    assert sets["t2i/Hit@1"].p_value == pytest.approx(extreme / 2**IMAGES, abs=0.03)


def test_rsum_draws_both_directions_together(sets: CaptionSets) -> None:
    every = {name: [hits(name, k) for k in (1, 5, 10)] for name in COUNTS}

    def rsum(name: str, weights: np.ndarray) -> float:
        total = 0.0
        for sides in every[name]:
            for values, owners in sides.values():
                drawn = weights[np.array(owners)]
                total += 100 * float((np.array(values) * drawn).sum() / drawn.sum())
        return total

    change = sets["Rsum"]
    ones = np.ones(IMAGES, int)
    assert (change.before, change.after) == pytest.approx((rsum("coarse", ones), rsum("fine", ones)))
    differences = [
        rsum("fine", row) - rsum("coarse", row)
        for rows in Bootstrap(np.arange(0), 200, 0).weights(IMAGES) for row in rows.astype(int)
    ]  # fmt: skip
    _check_interval(change, differences, 10)


def test_pooled_ranks_count_pairs(sets: CaptionSets) -> None:
    ranks = {}
    for name in COUNTS:
        scores, owner = cosines(name)
        ranks[name] = [
            1 + int((scores[owner[caption]] > scores[owner[caption], caption]).sum()) for caption in range(len(owner))
        ]
    change = sets["i2t/MedR[all]"]
    assert (change.before, change.after) == (np.median(ranks["coarse"]), np.median(ranks["fine"]))
    mean = sets["i2t/MeanR[all]"]
    assert mean.difference == pytest.approx(np.mean(ranks["fine"]) - np.mean(ranks["coarse"]))


def test_images_won_and_lost(sets: CaptionSets) -> None:
    means = []
    for name in COUNTS:
        values, owners = (np.array(column) for column in hits(name, 1)["t2i"])
        means.append(np.array([values[owners == image].mean() for image in range(IMAGES)]))
    change = sets["t2i/Hit@1"]
    assert (change.better, change.worse) == (int((means[1] > means[0]).sum()), int((means[1] < means[0]).sum()))
    assert not sets["t2i/MedR"].higher_is_better


def test_the_same_captions_twice_change_nothing() -> None:
    dataset, vectors = one_set("coarse")
    comparison = compare_caption_sets(
        dataset, dataset, images=POINTS, captions=(vectors, vectors), resamples=20, **SILENT
    )
    assert comparison.names == ("coarse (before)", "coarse (after)")
    assert {(result.difference, result.p_value) for result in comparison.results} == {(0, 1)}
    assert all(np.isnan(result.low) or result.low <= 0 <= result.high for result in comparison.results)
    assert {(result.better, result.worse) for result in comparison.results} == {(0, 0)}


@pytest.mark.parametrize(
    ("folds", "ties"), rest_slow([(1, "stable"), (3, "expected"), (3, "stable"), (1, "expected")], 2)
)
def test_captions_that_do_match_are_compared_as_runs_are(folds: int, ties: Any) -> None:
    """With the same captions, seen by two models, pairing by image is what ``compare`` does."""
    dataset = cl.Dataset.of({f"i{image}": [f"{image} {n}" for n in range(2)] for image in range(IMAGES)})
    random = np.random.default_rng(9)
    points = np.round(POINTS, 1)
    vectors = [np.repeat(points, 2, axis=0) + noise * random.normal(size=(2 * IMAGES, 5)) for noise in (2.0, 0.5)]
    options: dict[str, Any] = {"metrics": "Hit@1 MRR MedR mAP@R Rsum", "ties": ties, "folds": folds, "resamples": 100}
    runs = [
        cl.evaluate(dataset, images=points, captions=texts, name=str(n), **options) for n, texts in enumerate(vectors)
    ]
    theirs = cl.compare(*runs, permutations=500)
    ours = compare_caption_sets(
        dataset, dataset, images=points, captions=(vectors[0], vectors[1]), permutations=500, **options, **SILENT
    )
    for result in ours.results:
        expected = theirs[result.metric]
        assert (result.before, result.after) == pytest.approx((expected.baseline_mean, expected.other_mean)), (
            result.metric
        )
        assert result.difference == pytest.approx(expected.difference), result.metric
        assert result.p_value == pytest.approx(expected.p_value), result.metric
        assert result.adjusted_p == pytest.approx(expected.adjusted_p), result.metric


def test_embeddings_are_matched_by_id() -> None:
    coarse, before = one_set("coarse")
    fine, after = one_set("fine")
    plain = compare_caption_sets(coarse, fine, images=POINTS, captions=(before, after), resamples=20, **SILENT)
    order = np.random.default_rng(0).permutation(len(after))
    shuffled = cl.Embeddings(tuple(fine.caption_ids[row] for row in order), after[order])
    again = compare_caption_sets(coarse, fine, images=POINTS, captions=(before, shuffled), resamples=20, **SILENT)
    assert again.results == plain.results


# What cannot be compared


def test_other_images_are_refused_or_left_out() -> None:
    coarse, before = one_set("coarse")
    fine, after = one_set("fine")
    part = fine.select([f"i{n}" for n in range(6)])
    vectors = cl.Embeddings(fine.caption_ids, after)
    inputs: dict[str, Any] = {"images": POINTS, "captions": (before, vectors), "resamples": 20, **SILENT}
    with pytest.raises(InputError, match=r"3 of the 9 images of 'coarse' are not in 'fine', the first is 'i6'"):
        compare_caption_sets(coarse, part, **inputs)
    comparison = compare_caption_sets(coarse, part, **inputs, shared_images=True)
    assert comparison["Rsum"].images == 6
    assert "3 of the 9 images" in comparison.notes[0]
    assert {run.provenance["dataset"]["images"] for run in comparison.runs} == {6}


def test_images_captioned_on_one_side_only() -> None:
    coarse, before = one_set("coarse")
    fine, after = one_set("fine")
    bare = cl.Dataset("fine", fine.images, fine.captions.filter(pl.col("image") != "i4"))
    vectors = cl.Embeddings(fine.caption_ids, after)
    inputs: dict[str, Any] = {"images": POINTS, "captions": (before, vectors), "resamples": 20, **SILENT}
    with pytest.raises(InputError, match="1 of the 9 images of 'coarse' are without a caption in 'fine'"):
        compare_caption_sets(coarse, bare, **inputs)
    comparison = compare_caption_sets(coarse, bare, **inputs, shared_images=True)
    assert comparison["t2i/Hit@1"].images == 8
    assert comparison.runs[0].provenance["dataset"]["images"] == 9  # it is still there to be confused with


def test_no_image_in_common() -> None:
    coarse, before = one_set("coarse")
    fine = cl.Dataset.of({"COCO_val2014_000000000001": ["a dog"]}, "fine")
    with pytest.raises(InputError, match="share no image") as caught:
        compare_caption_sets(coarse, fine, images=POINTS, captions=(before, np.ones((1, 5))))
    assert "coco_ids" in str(caught.value)


def test_bad_calls() -> None:
    coarse, before = one_set("coarse")
    with pytest.raises(UsageError, match="nothing to evaluate"):
        compare_caption_sets(coarse, coarse)
    with pytest.raises(UsageError, match="both embeddings and a model"):
        compare_caption_sets(coarse, coarse, model="tiny", images=POINTS, captions=(before, before))
    with pytest.raises(UnknownNameError, match="bonferroni"):
        compare_caption_sets(coarse, coarse, images=POINTS, captions=(before, before), correction="bonferroni")
    with pytest.raises(InputError, match="caption embeddings of shape"):
        compare_caption_sets(coarse, coarse, images=POINTS, captions=(before, before[1:]))


# What comes out


def test_text_and_json(sets: CaptionSets) -> None:
    text = sets.text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "fine (after) against coarse (before)" in text
    assert "17 captions before and 17 captions after" in text
    assert [title for title in ("image → text", "text → image", "both directions") if title in text.splitlines()] == [
        "image → text", "text → image", "both directions",
    ]  # fmt: skip
    content = json.loads(json.dumps(sets.as_dict(), allow_nan=False))
    assert content["metrics"]["t2i/Hit@1"]["difference"] == sets["t2i/Hit@1"].difference
    assert content["granularity"] is None
    with pytest.raises(UnknownNameError, match="t2i/Hit@2"):
        sets["t2i/Hit@2"]


@needs_a_pipeline
def test_granularity_of_both_sets() -> None:
    coarse, before = one_set("coarse")
    fine, after = one_set("fine")
    comparison = compare_caption_sets(
        coarse, fine, images=POINTS, captions=(before, after), resamples=20, permutations=20
    )
    assert comparison.granularity is not None
    assert comparison.granularity.changes["fine"]["words"].paired
    assert "The captions themselves" in comparison.text()


def test_without_the_language_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from crosslens.core import MissingExtraError
    from crosslens.pipeline import caption_sets

    def missing(*_: Any, **__: Any) -> None:
        raise MissingExtraError("parsing captions", "spacy", "language")

    monkeypatch.setattr(caption_sets, "granularity_of", missing)
    dataset, vectors = one_set("coarse")
    inputs: dict[str, Any] = {"images": POINTS, "captions": (vectors, vectors), "resamples": 0, "permutations": 1}
    comparison = compare_caption_sets(dataset, dataset, **inputs)
    assert comparison.granularity is None
    assert "granularity is left out" in comparison.notes[0]
    with pytest.raises(MissingExtraError):
        compare_caption_sets(dataset, dataset, **inputs, granularity=True)


def test_metrics_by_own_captions_say_so() -> None:
    coarse, before = one_set("coarse")
    fine, after = one_set("fine")
    comparison = compare_caption_sets(
        coarse, fine, images=POINTS, captions=(before, after), metrics="NCS[cider]@5", resamples=0, permutations=9,
        **SILENT,
    )  # fmt: skip
    assert any("not on one scale" in note for note in comparison.notes)


def test_runs_are_written_and_found_again(tmp_path: Path) -> None:
    coarse, before = one_set("coarse")
    fine, after = one_set("fine")
    inputs: dict[str, Any] = {"images": POINTS, "captions": (before, after), "resamples": 20, **SILENT}
    first = compare_caption_sets(coarse, fine, **inputs, output=tmp_path)
    written = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("run.json")}
    assert {file.parent.name for file in written} == {"before", "after"}
    again = compare_caption_sets(coarse, fine, **inputs, output=tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("run.json")} == written
    assert again.results == first.results


def test_sets_of_one_name_are_distinguished() -> None:
    coarse, before = one_set("coarse")
    inputs: dict[str, Any] = {
        "images": POINTS,
        "captions": (before, before),
        "resamples": 9,
        "permutations": 9,
        **SILENT,
    }
    assert compare_caption_sets(coarse, coarse, **inputs).text().startswith("coarse (after) against coarse (before)\n")
    with pytest.raises(InputError, match=r"3 of the 9 images of 'coarse \(before\)' are not in 'coarse \(after\)'"):
        compare_caption_sets(coarse, coarse.select([f"i{n}" for n in range(6)]), model="tiny")


def test_brackets_are_explained_where_there_are_any(sets: CaptionSets) -> None:
    assert "In brackets" in sets.text()
    coarse, before = one_set("coarse")
    inputs: dict[str, Any] = {
        "images": POINTS,
        "captions": (before, before),
        "resamples": 0,
        "permutations": 9,
        **SILENT,
    }
    assert "In brackets" not in compare_caption_sets(coarse, coarse, **inputs).text()
