"""Graded metrics through a whole evaluation: every kind of input, folds, files, and what goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.comparisons import compare
from crosslens.core import ConflictError, InputError, UnknownNameError, UsageError
from crosslens.pipeline import evaluate, group_metrics
from crosslens.similarity import relevance_matrix
from crosslens.values import Run
from tests.pipeline.graded_data import CAPTIONS, DATASET, IMAGES, METRICS, PHI, RANDOM, SCORES, check, expected


def test_scores() -> None:
    run = evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics=METRICS)
    check(run)
    assert run.provenance["options"]["depth"] == 10
    assert run.provenance["similarities"]["mine"].keys() == {"name", "revision", "fingerprint"}


def test_lists_are_kept_as_deep_as_metrics_need() -> None:
    run = evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics="NCS[mine, non-gt]@3", depth=1)
    assert run.rankings["i2t"].depth == 3 + 3, "three captions of an image may stand before"
    check(evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics=METRICS, depth=1))


def test_embeddings() -> None:
    images, captions = RANDOM.normal(size=(IMAGES, 8)), RANDOM.normal(size=(CAPTIONS, 8))
    run = evaluate(DATASET, images=images, captions=captions, phi={"mine": PHI}, metrics=METRICS)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, captions)]
    check(run, unit[0] @ unit[1].T)


def test_lists() -> None:
    """Lists of all items, and lists that end before the metrics do."""
    whole = {
        image: {caption: float(score) for caption, score in zip(DATASET.caption_ids, row, strict=True)}
        for image, row in zip(DATASET.image_ids, SCORES, strict=True)
    }
    check(evaluate(DATASET, run=whole, phi={"mine": PHI}, metrics=METRICS, directions=["i2t"]))
    short = {image: dict(sorted(row.items(), key=lambda pair: -pair[1])[:2]) for image, row in whole.items()}
    with pytest.raises(InputError, match=r"i2t/NCS\[mine\]@3 cannot be computed: the list of query 'i0' has 2 items"):
        evaluate(DATASET, run=short, phi={"mine": PHI}, metrics="NCS[mine]@3", directions=["i2t"])


def test_a_named_similarity() -> None:
    run = evaluate(DATASET, scores=SCORES, metrics="NCS@3 Nsum")
    matrix = relevance_matrix(DATASET, "cider")
    by_hand = expected("NCS@3", "t2i", SCORES, matrix, DATASET.caption_image)
    np.testing.assert_allclose(run["t2i/NCS[cider]@3"].values, by_hand, rtol=1e-5)
    assert run.provenance["similarities"]["cider"]["name"] == "cider"
    assert run["Nsum[cider]"].mean > 0
    with pytest.raises(UnknownNameError, match="cidre"):
        evaluate(DATASET, scores=SCORES, metrics="NCS[cidre]@3")


def test_a_function_of_ones_own() -> None:
    def words_shared(references: list[str], caption: str) -> float:
        return float(max(len(set(reference.split()) & set(caption.split())) for reference in references))

    run = evaluate(DATASET, scores=SCORES, phi={"words": words_shared}, metrics="NCS[words]@3")
    texts = DATASET.texts
    captions_of = [[texts[c] for c in np.flatnonzero(DATASET.caption_image == image)] for image in range(IMAGES)]
    matrix = np.array([[words_shared(references, caption) for caption in texts] for references in captions_of])
    by_hand = expected("NCS@3", "i2t", SCORES, matrix, DATASET.caption_image)
    np.testing.assert_allclose(run["i2t/NCS[words]@3"].values, by_hand, rtol=1e-5)


def test_folds() -> None:
    """Similar items are looked for within the fold; the figure is the mean over folds."""
    run = evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics=METRICS + " SR[mine, m=2, by-image]@3", folds=3)
    for name, values in run.values.items():
        if "by-image" in name:
            continue
        direction, metric = name.split("/", 1)
        means = []
        for fold in range(3):
            images = np.arange(4 * fold, 4 * fold + 4)
            captions = np.flatnonzero(np.isin(DATASET.caption_image, images))
            part = np.ix_(images, captions)
            by_hand = expected(metric, direction, SCORES[part], PHI[part], DATASET.caption_image[captions] - 4 * fold)
            rows = images if direction == "i2t" else captions
            np.testing.assert_allclose(values.values[rows], by_hand, rtol=1e-5, err_msg=name)
            means.append(np.nanmean(by_hand))
        assert values.mean == pytest.approx(np.mean(means), rel=1e-5)


def test_a_query_that_nothing_is_similar_to_is_counted() -> None:
    phi = PHI.copy()
    phi[3] = 0
    run = evaluate(DATASET, scores=SCORES, phi={"mine": phi}, metrics="Hit@1 NCS[mine]@3")
    assert (run["i2t/NCS[mine]@3"].excluded, run["i2t/Hit@1"].excluded) == (1, 0)
    assert "i2t/NCS[mine]@3: 1 more query skipped, as nothing is similar to them." in run.text()


def test_a_query_that_nothing_is_similar_to_may_count_as_zero() -> None:
    phi = PHI.copy()
    phi[3] = 0
    metrics = "NCS[mine]@3 NCS[mine, zero]@1 NCS[mine, zero]@3 Nsum[mine, zero]"
    run = evaluate(DATASET, scores=SCORES, phi={"mine": phi}, metrics=metrics)
    zero, skipped = run["i2t/NCS[mine, zero]@3"], run["i2t/NCS[mine]@3"]
    assert (zero.values[3], zero.excluded) == (0, 0)
    assert zero.mean == pytest.approx(skipped.mean * (IMAGES - 1) / IMAGES)
    assert [note for note in run.provenance["notes"] if "counted as 0" in note] == [
        "i2t/NCS[mine, zero]: 1 query counted as 0, as nothing is similar"
    ]


def test_relevance_encoders() -> None:
    encoder_scores = RANDOM.normal(size=SCORES.shape).astype(np.float32)
    run = evaluate(
        DATASET, scores=SCORES, scores_from={"other": encoder_scores}, metrics="DCGcm[scores_from=other]@2 DCGcm@2"
    )
    discount = 1 / np.log2([2, 3])
    for direction, ours, theirs in (("i2t", SCORES, encoder_scores), ("t2i", SCORES.T, encoder_scores.T)):
        truth = (DATASET.caption_image == np.arange(IMAGES)[:, None]) if direction == "i2t" else (
            DATASET.caption_image == np.arange(IMAGES)[:, None]).T  # fmt: skip
        top = np.argsort(-ours, axis=1)[:, :2]
        rows = np.arange(len(top))[:, None]
        for source, scores in (("other", theirs), ("own", ours)):
            by_hand = (np.where(truth, 1, scores)[rows, top] * discount).sum(axis=1)
            np.testing.assert_allclose(run[f"{direction}/DCGcm[scores_from={source}]@2"].values, by_hand, rtol=1e-5)
    assert "fingerprint" in json.dumps(run.provenance["scores_from"]["other"])
    with pytest.raises(UsageError, match="scores_from=clip is not defined"):
        evaluate(DATASET, scores=SCORES, metrics="DCGcm[scores_from=clip]@2")


def test_own_scores_that_are_not_cosines_are_noted() -> None:
    loud = evaluate(DATASET, scores=100 * SCORES, metrics="DCGcm@2")
    assert any("they are not cosines" in note for note in loud.provenance["notes"])
    assert not evaluate(DATASET, scores=SCORES, metrics="DCGcm@2").provenance["notes"]


def test_without_a_dataset_there_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match=r"NCS\[cider\]@3 requires the captions and images themselves"):
        evaluate(run={"q": ["a", "b"]}, relevance={"q": ["a"]}, metrics="nDCG@3 NCS@3")
    with pytest.raises(UsageError, match=r"DCGcm\[scores_from=x\]@3 requires the captions and images themselves"):
        evaluate(run={"q": ["a", "b"]}, relevance={"q": ["a"]}, metrics="nDCG@3 DCGcm@3 DCGcm[scores_from=x]@3")
    graded = evaluate(run={"q": ["a", "b", "c"]}, relevance={"q": {"a": 1, "b": 3}}, metrics="nDCG@2")
    assert graded["i2t/nDCG@2"].mean == pytest.approx((1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (PHI.T, "transpose it"),
        (PHI[:, 1:], f"expected: {IMAGES} images × {CAPTIONS} captions"),
        (np.where(PHI[2, 5] == PHI, np.nan, PHI), "row 2.*nan in column 5"),
    ],
)
def test_bad_matrices(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=f"φ 'mine'[\\s\\S]*{message}"):
        evaluate(DATASET, scores=SCORES, phi={"mine": matrix}, metrics="NCS[mine]@3")


def test_groups_comparison_and_resuming(tmp_path: Path) -> None:
    captions = DATASET.captions.with_columns(kind=pl.Series([f"k{n % 2}" for n in range(CAPTIONS)]))
    dataset = replace(DATASET, captions=captions)
    options = {"phi": {"mine": PHI}, "metrics": "NCS[mine]@3 SR[mine, m=4]@3"}
    first = evaluate(dataset, scores=SCORES, output=tmp_path / "one", **options)
    groups = group_metrics(first, "kind", "t2i/NCS[mine]@3").values["t2i/NCS[mine]@3"]
    assert sum(group.n for group in groups.values()) == CAPTIONS
    second = evaluate(dataset, scores=SCORES[::-1], output=tmp_path / "other", **options)
    names = [result.metric for result in compare(first, second, permutations=99).results]
    assert "i2t/SR[mine, m=4]@3" in names
    stored = Run.load(tmp_path / "one")
    np.testing.assert_array_equal(stored["t2i/NCS[mine]@3"].values, first["t2i/NCS[mine]@3"].values)
    before = (tmp_path / "one" / "run.json").stat().st_mtime_ns
    evaluate(dataset, scores=SCORES, output=tmp_path / "one", **options)
    assert (tmp_path / "one" / "run.json").stat().st_mtime_ns == before
    with pytest.raises(ConflictError):
        evaluate(dataset, scores=SCORES, output=tmp_path / "one", **{**options, "phi": {"mine": PHI + 1}})


def test_nan_and_infinity_are_refused_wherever_they_come_from() -> None:
    broken = PHI.copy()
    broken[:] = np.nan
    with pytest.raises(InputError, match="nan"):
        evaluate(DATASET, scores=SCORES, metrics="DCGcm[scores_from=other]@3", scores_from={"other": broken})
    broken[:] = np.inf
    with pytest.raises(InputError, match="inf"):
        evaluate(DATASET, scores=SCORES, metrics="DCGcm[scores_from=other]@3", scores_from={"other": broken})


def test_runs_with_different_similarities_are_not_compared() -> None:
    first, second = (
        evaluate(DATASET, scores=SCORES, metrics="Hit@1 NCS[mine]@3", phi={"mine": phi}, name=name)
        for name, phi in (("one", PHI), ("other", PHI[::-1].copy()))
    )
    with pytest.raises(InputError, match="'mine' has different values"):
        compare(first, second, metrics="NCS[mine]@3")
    comparison = compare(first, second)
    assert {result.metric for result in comparison.results} == {"i2t/Hit@1", "t2i/Hit@1"}
    assert any("NCS[mine]@3" in note for note in comparison.notes)


@pytest.mark.parametrize("seed", range(6))
def test_the_sum_is_that_of_the_six_even_where_each_skips_other_queries(seed: int) -> None:
    phi = np.random.default_rng(seed).standard_normal((IMAGES, CAPTIONS)).astype(np.float32) - 0.2
    run = evaluate(DATASET, scores=SCORES, metrics="NCS[mine]@1 NCS[mine]@5 NCS[mine]@10 Nsum[mine]", phi={"mine": phi})
    six = [run[f"{side}/NCS[mine]@{k}"] for side in ("i2t", "t2i") for k in (1, 5, 10)]
    assert len({values.n for values in six[3:]}) > 1  # or nothing is tested
    assert run["Nsum[mine]"].mean == pytest.approx(100 * sum(values.mean for values in six))


def test_a_query_without_anything_similar_is_not_said_to_lack_ground_truth() -> None:
    phi = PHI.copy()
    phi[3] = 0
    run = evaluate(DATASET, scores=SCORES, metrics="i2t/NCS[mine]@3", phi={"mine": phi})
    assert f"{IMAGES - 1} image queries (1 more without a relevant or a similar item)" in run.text()
    run = evaluate(DATASET, scores=SCORES, metrics="i2t/NCS[mine]@3 i2t/Hit@1", phi={"mine": phi})
    assert f"{IMAGES} image queries." in run.text()
