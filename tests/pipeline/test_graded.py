"""Graded metrics through a whole evaluation: every kind of input, folds, files, recipes, and what goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import ConflictError, CrosslensError, InputError, UnknownNameError, UsageError
from crosslens.core.run import Run
from crosslens.data import write_dataset
from crosslens.metrics import parse_metric
from crosslens.pipeline.compare import compare
from crosslens.pipeline.curve import curve, parse_counts
from crosslens.pipeline.evaluate import evaluate
from crosslens.pipeline.recipe import Encoding, Inputs, Options, Recipe, execute
from crosslens.report.groups import by
from crosslens.report.table import run_table
from crosslens.similarity import relevance_matrix
from tests.metrics.graded_reference import Query, value

RANDOM = np.random.default_rng(0)
NOUNS, PLACES = ("dog", "cat", "bird", "horse"), ("in the park", "on a street", "near the water")
DATASET = Dataset.of(
    {
        f"i{n}": [f"a {NOUNS[n % 4]} {PLACES[n % 3]}", f"the {NOUNS[n % 4]} number {n}", f"{n} times a bird"][
            : 1 + n % 3
        ]
        for n in range(12)
    }
)
IMAGES, CAPTIONS = len(DATASET.image_ids), len(DATASET.caption_ids)
SCORES = (RANDOM.permutation(IMAGES * CAPTIONS).reshape(IMAGES, CAPTIONS) / 1000).astype(np.float32)
PHI = (RANDOM.permutation(IMAGES * CAPTIONS).reshape(IMAGES, CAPTIONS) / 100).astype(np.float32)
METRICS = "NCS[mine]@3 NCS[mine, non-gt]@3 SR[mine, m=4]@3 SRhit[mine, m=2]@2 DCGcm@3 nDCG[mine]@3 nDCG@3"


def expected(metric: str, direction: str, scores: np.ndarray, phi: np.ndarray, owner: np.ndarray) -> list[float]:
    truth = owner == np.arange(len(scores))[:, None]
    sides = [one if direction == "i2t" else one.T for one in (scores, phi, truth)]
    queries = [
        Query(row.tolist(), worth.tolist(), dict.fromkeys(np.flatnonzero(own).tolist(), 1.0))
        for row, worth, own in zip(*sides, strict=True)
    ]
    return [value(parse_metric(metric).spec, query) for query in queries]


def check(run: Run, scores: np.ndarray = SCORES, phi: np.ndarray = PHI) -> None:
    assert len(run) >= 7
    for name, one in run.values.items():
        direction, metric = name.split("/", 1)
        by_hand = expected(metric, direction, scores, phi, DATASET.caption_image)
        np.testing.assert_allclose(one.values, by_hand, rtol=1e-5, err_msg=name)
        assert one.low <= one.mean <= one.high


def test_scores() -> None:
    run = evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics=METRICS)
    check(run)
    assert run.provenance["options"]["depth"] == 10
    assert run.provenance["similarities"]["mine"].keys() == {"name", "revision", "fingerprint"}


def test_the_places_a_metric_needs_are_kept() -> None:
    run = evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics="NCS[mine, non-gt]@3", depth=1)
    assert run.rankings["i2t"].depth == 3 + 3, "three captions of an image may stand before"
    check(evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics=METRICS, depth=1))


def test_embeddings() -> None:
    images, captions = RANDOM.normal(size=(IMAGES, 8)), RANDOM.normal(size=(CAPTIONS, 8))
    run = evaluate(DATASET, images=images, captions=captions, phi={"mine": PHI}, metrics=METRICS)
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (images, captions)]
    check(run, unit[0] @ unit[1].T)


def test_lists() -> None:
    """Lists of all items, and lists that end before the metrics do."""
    whole = {
        image: {caption: float(score) for caption, score in zip(DATASET.caption_ids, row, strict=True)}
        for image, row in zip(DATASET.image_ids, SCORES, strict=True)
    }
    check(evaluate(DATASET, run=whole, phi={"mine": PHI}, metrics=METRICS, directions=["i2t"]))
    short = {image: dict(sorted(row.items(), key=lambda one: -one[1])[:2]) for image, row in whole.items()}
    with pytest.raises(InputError, match=r"i2t/NCS\[mine\]@3 cannot be computed: the list of query 'i0' has 2 places"):
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
        return float(max(len(set(one.split()) & set(caption.split())) for one in references))

    run = evaluate(DATASET, scores=SCORES, phi={"words": words_shared}, metrics="NCS[words]@3")
    texts = DATASET.texts
    own = [[texts[c] for c in np.flatnonzero(DATASET.caption_image == image)] for image in range(IMAGES)]
    matrix = np.array([[words_shared(references, caption) for caption in texts] for references in own])
    by_hand = expected("NCS@3", "i2t", SCORES, matrix, DATASET.caption_image)
    np.testing.assert_allclose(run["i2t/NCS[words]@3"].values, by_hand, rtol=1e-5)


def test_folds() -> None:
    """Similar items are looked for within the fold; the figure is the mean over folds."""
    run = evaluate(DATASET, scores=SCORES, phi={"mine": PHI}, metrics=METRICS + " SR[mine, m=2, by-image]@3", folds=3)
    for name, one in run.values.items():
        if "by-image" in name:
            continue
        direction, metric = name.split("/", 1)
        means = []
        for fold in range(3):
            images = np.arange(4 * fold, 4 * fold + 4)
            captions = np.flatnonzero(np.isin(DATASET.caption_image, images))
            part = np.ix_(images, captions)
            found = expected(metric, direction, SCORES[part], PHI[part], DATASET.caption_image[captions] - 4 * fold)
            rows = images if direction == "i2t" else captions
            np.testing.assert_allclose(one.values[rows], found, rtol=1e-5, err_msg=name)
            means.append(np.nanmean(found))
        assert one.mean == pytest.approx(np.mean(means), rel=1e-5)


def test_a_query_that_nothing_is_similar_to_is_counted() -> None:
    phi = PHI.copy()
    phi[3] = 0
    run = evaluate(DATASET, scores=SCORES, phi={"mine": phi}, metrics="Hit@1 NCS[mine]@3")
    assert (run["i2t/NCS[mine]@3"].excluded, run["i2t/Hit@1"].excluded) == (1, 0)
    assert "i2t/NCS[mine]@3: 1 more query skipped, as nothing is similar to them." in run_table(run)


def test_relevance_encoders() -> None:
    other = RANDOM.normal(size=SCORES.shape).astype(np.float32)
    run = evaluate(DATASET, scores=SCORES, scores_from={"other": other}, metrics="DCGcm[scores_from=other]@2 DCGcm@2")
    discount = 1 / np.log2([2, 3])
    for direction, ours, theirs in (("i2t", SCORES, other), ("t2i", SCORES.T, other.T)):
        truth = (DATASET.caption_image == np.arange(IMAGES)[:, None]) if direction == "i2t" else (
            DATASET.caption_image == np.arange(IMAGES)[:, None]).T  # fmt: skip
        top = np.argsort(-ours, axis=1)[:, :2]
        rows = np.arange(len(top))[:, None]
        for source, scores in (("other", theirs), ("own", ours)):
            by_hand = (np.where(truth, 1, scores)[rows, top] * discount).sum(axis=1)
            np.testing.assert_allclose(run[f"{direction}/DCGcm[scores_from={source}]@2"].values, by_hand, rtol=1e-5)
    assert "fingerprint" in json.dumps(run.provenance["scores_from"]["other"])
    with pytest.raises(UsageError, match="nothing says whose scores 'clip' are"):
        evaluate(DATASET, scores=SCORES, metrics="DCGcm[scores_from=clip]@2")


def test_own_scores_that_are_no_cosines_are_pointed_out() -> None:
    loud = evaluate(DATASET, scores=100 * SCORES, metrics="DCGcm@2")
    assert any("they are no cosines" in note for note in loud.provenance["notes"])
    assert not evaluate(DATASET, scores=SCORES, metrics="DCGcm@2").provenance["notes"]


def test_without_a_dataset_there_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match=r"NCS\[cider\]@3 needs the captions and images themselves"):
        evaluate(run={"q": ["a", "b"]}, relevance={"q": ["a"]}, metrics="NCS@3")
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
    one = evaluate(dataset, scores=SCORES, output=tmp_path / "one", **options)
    groups = by(one, "kind", "t2i/NCS[mine]@3").values["t2i/NCS[mine]@3"]
    assert sum(group.n for group in groups.values()) == CAPTIONS
    other = evaluate(dataset, scores=SCORES[::-1], output=tmp_path / "other", **options)
    names = [result.metric for result in compare(one, other, permutations=99).results]
    assert "i2t/SR[mine, m=4]@3" in names
    stored = Run.load(tmp_path / "one")
    np.testing.assert_array_equal(stored["t2i/NCS[mine]@3"].values, one["t2i/NCS[mine]@3"].values)
    before = (tmp_path / "one" / "run.json").stat().st_mtime_ns
    evaluate(dataset, scores=SCORES, output=tmp_path / "one", **options)
    assert (tmp_path / "one" / "run.json").stat().st_mtime_ns == before
    with pytest.raises(ConflictError):
        evaluate(dataset, scores=SCORES, output=tmp_path / "one", **{**options, "phi": {"mine": PHI + 1}})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write_dataset(DATASET, tmp_path / "captions.jsonl")
    np.save(tmp_path / "scores.npy", SCORES)
    np.save(tmp_path / "phi.npy", PHI)
    return tmp_path


def recipe(study: Path, *metrics: str, **inputs: tuple[str, ...]) -> Recipe:
    return Recipe(
        "captions.jsonl", inputs=Inputs(scores="scores.npy", **inputs), options=Options(metrics=metrics), base=study
    )


def test_recipes_remember_similarities_and_sources(study: Path) -> None:
    Embeddings(DATASET.image_ids, RANDOM.normal(size=(IMAGES, 4))).save(study / "vectors" / "images")
    Embeddings(DATASET.caption_ids, RANDOM.normal(size=(CAPTIONS, 4))).save(study / "vectors" / "captions")
    execute(recipe(study, "Hit@1"), study / "runs" / "other")
    asked = recipe(
        study, "NCS[mine]@3", "NCS[cider]@3", *(f"DCGcm[scores_from={one}]@3" for one in ("v", "run", "file", "own")),
        phi=("mine=phi.npy",), scores_from=("v=vectors", "run=runs/other", "file=scores.npy"),
    )  # fmt: skip
    run = execute(asked, study / "runs" / "graded")
    # A run of these very scores, and these scores, are the model's own.
    for source in ("run", "file"):
        np.testing.assert_array_equal(
            run[f"i2t/DCGcm[scores_from={source}]@3"].values, run["i2t/DCGcm[scores_from=own]@3"].values
        )
    assert run["i2t/DCGcm[scores_from=v]@3"].mean != run["i2t/DCGcm[scores_from=own]@3"].mean
    stored = Recipe.read(study / "runs" / "graded" / "recipe.toml")
    assert stored.inputs.phi == ("mine=../../phi.npy",)
    assert stored.inputs.scores_from == ("v=../../vectors", "run=../other", "file=../../scores.npy")
    assert stored.fingerprints["similarities"][0].startswith("cider=")
    again = execute(stored, study / "again")
    assert again.fingerprint == run.fingerprint
    np.save(study / "phi.npy", PHI + 1)
    with pytest.raises(InputError, match="the phi changed since the recipe was stored"):
        execute(stored, study / "changed")


@pytest.mark.parametrize(
    ("metrics", "inputs", "message"),
    [
        ("NCS[phi.npy]@3", {}, "phi.npy is a file, and a metric's name should say what is in it"),
        ("Hit@1", {"phi": ("mine=phi.npy",)}, "--phi mine=… is not used by any metric"),
        ("NCS[mine]@3", {"phi": ("phi.npy",)}, "--phi phi.npy: no name with a source"),
        ("NCS[mine]@3", {"phi": ("mine=phi.npy", "mine=phi.npy")}, "--phi mine is given twice"),
        ("NCS[mine]@3", {"phi": ("mine=words.txt",)}, "--phi mine=.*words.txt is no matrix"),
        ("NCS[mine]@3", {"phi": ("mine=gone.npy",)}, "gone.npy"),
        ("DCGcm[scores_from=x]@3", {}, "nothing says whose scores 'x' are"),
        ("DCGcm[scores_from=x]@3", {"scores_from": ("x=lists",)}, "a run of ready-made lists"),
        ("DCGcm[scores_from=x]@3", {"scores_from": ("x=empty",)}, "neither a run nor embeddings"),
    ],
)
def test_mistakes_in_recipes(study: Path, metrics: str, inputs: dict[str, tuple[str, ...]], message: str) -> None:
    (study / "empty").mkdir()
    if "lists" in str(inputs):
        from crosslens.core.lists import RankedLists
        from crosslens.data import write_run

        rows = {image: dict(zip(DATASET.caption_ids, map(float, row), strict=True))
                for image, row in zip(DATASET.image_ids, SCORES, strict=True)}  # fmt: skip
        write_run(RankedLists.of(rows), study / "lists.run")
        made = Recipe(
            "captions.jsonl", inputs=Inputs(runs=("lists.run",)), options=Options(metrics=("Hit@1",)), base=study
        )
        execute(made, study / "lists")
    with pytest.raises(CrosslensError, match=message):
        execute(recipe(study, metrics, **inputs), encoding=Encoding(use_cache=False))


def test_curves_are_the_metrics_one_by_one() -> None:
    runs = [evaluate(DATASET, scores=one, name=name) for name, one in (("a", SCORES), ("b", SCORES[::-1]))]
    found = curve(runs, DATASET, PHI, m=(1, 3, 7), k=2, resamples=20)
    assert list(found.values) == ["a", "b"]
    for label, scores in (("a", SCORES), ("b", SCORES[::-1])):
        for family in ("SR", "SRhit"):
            for m, one in zip(found.counts, found.values[label][family], strict=True):
                by_hand = expected(f"{family}[m={m}, non-gt]@2", "t2i", scores, PHI, DATASET.caption_image)
                np.testing.assert_allclose(one.values, by_hand, rtol=1e-6)
    with_truth = curve(runs, DATASET, PHI, m=[2], k=2, non_gt=False, direction="i2t", resamples=0)
    by_hand = expected("SR[m=2]@2", "i2t", SCORES, PHI, DATASET.caption_image)
    np.testing.assert_allclose(with_truth.values["a"]["SR"][0].values, by_hand, rtol=1e-6)


def test_curves_need_runs_of_the_dataset() -> None:
    run = evaluate(DATASET, scores=SCORES, directions=["i2t"])
    with pytest.raises(UsageError, match="has no ranking of t2i"):
        curve([run], DATASET, PHI)
    part = Dataset.of({"x": ["a dog"], "y": ["a cat"]})
    with pytest.raises(InputError, match="is over other images or captions"):
        curve([run], part, direction="i2t")
    folded = evaluate(DATASET, scores=SCORES, folds=2)
    with pytest.raises(UsageError, match="within folds"):
        curve([folded], DATASET, PHI)


@pytest.mark.parametrize(
    ("text", "counts"), [("1..4", (1, 2, 3, 4)), ("1,5, 10", (1, 5, 10)), ("1..3,3,9", (1, 2, 3, 9)), ("7", (7,))]
)
def test_values_of_m(text: str, counts: tuple[int, ...]) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", "0..5", "5..1", "1-5", "a", "1..", "1..2000000000"])
def test_wrong_values_of_m(text: str) -> None:
    with pytest.raises(UsageError, match="values of m"):
        parse_counts(text)


def test_numbers_that_are_none_are_refused_wherever_they_come_from() -> None:
    broken = PHI.copy()
    broken[:] = np.nan
    with pytest.raises(InputError, match="nan"):
        evaluate(DATASET, scores=SCORES, metrics="DCGcm[scores_from=other]@3", scores_from={"other": broken})
    broken[:] = np.inf
    with pytest.raises(InputError, match="inf"):
        evaluate(DATASET, scores=SCORES, metrics="DCGcm[scores_from=other]@3", scores_from={"other": broken})


def test_runs_measured_by_different_numbers_are_not_compared() -> None:
    one, other = (
        evaluate(DATASET, scores=SCORES, metrics="Hit@1 NCS[mine]@3", phi={"mine": phi}, name=name)
        for name, phi in (("one", PHI), ("other", PHI[::-1].copy()))
    )
    with pytest.raises(InputError, match="different numbers by 'mine'"):
        compare(one, other, metrics="NCS[mine]@3")
    found = compare(one, other)
    assert {result.metric for result in found.results} == {"i2t/Hit@1", "t2i/Hit@1"}
    assert any("NCS[mine]@3" in note for note in found.notes)


@pytest.mark.parametrize("seed", range(6))
def test_the_sum_is_that_of_the_six_even_where_each_skips_other_queries(seed: int) -> None:
    phi = np.random.default_rng(seed).standard_normal((IMAGES, CAPTIONS)).astype(np.float32) - 0.2
    run = evaluate(DATASET, scores=SCORES, metrics="NCS[mine]@1 NCS[mine]@5 NCS[mine]@10 Nsum[mine]", phi={"mine": phi})
    six = [run[f"{side}/NCS[mine]@{k}"] for side in ("i2t", "t2i") for k in (1, 5, 10)]
    assert len({one.n for one in six[3:]}) > 1  # or nothing is tested
    assert run["Nsum[mine]"].mean == pytest.approx(100 * sum(one.mean for one in six))


def test_a_query_without_anything_similar_is_not_said_to_lack_ground_truth() -> None:
    phi = PHI.copy()
    phi[3] = 0
    run = evaluate(DATASET, scores=SCORES, metrics="i2t/NCS[mine]@3", phi={"mine": phi})
    assert f"{IMAGES - 1} image queries (1 more without a relevant or a similar item)" in run_table(run)
    run = evaluate(DATASET, scores=SCORES, metrics="i2t/NCS[mine]@3 i2t/Hit@1", phi={"mine": phi})
    assert f"{IMAGES} image queries." in run_table(run)
