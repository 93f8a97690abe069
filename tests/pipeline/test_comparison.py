"""Comparing runs: figures, tests and winners; runs that cannot be compared say why."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.comparisons import Comparison, compare
from crosslens.core import Folded, InputError, Intervals, PairedBars, UnknownNameError, UsageError
from crosslens.metrics import measure
from crosslens.statistics import correct, holm, paired_permutation
from crosslens.values import MetricValues, Run
from tests.metrics.brute import rank

IMAGES, CAPTIONS = 30, 75
IMAGE_OF = np.sort(np.random.default_rng(0).integers(0, IMAGES, CAPTIONS))
METRICS = "Hit@1 Hit@5 MRR MedR MedR[all] MeanR[all] Fails Rsum"


def run(name: str, noise: float, metrics: str = METRICS, order: np.ndarray | None = None, **options: Any) -> Run:
    """Images and captions on a circle, seen through noise; ``order`` hands the captions in differently."""
    random = np.random.default_rng(1)
    truth = random.normal(size=(IMAGES, 4))
    scores = truth @ (truth[IMAGE_OF] + noise * random.normal(size=(CAPTIONS, 4))).T
    order = np.arange(CAPTIONS) if order is None else order
    of, scores = IMAGE_OF[order], scores[:, order]
    rankings = {
        "i2t": rank(scores, [set(np.flatnonzero(of == image).tolist()) for image in range(IMAGES)]),
        "t2i": rank(scores.T, [{int(row)} for row in of], "t2i", ids=[f"c{row}" for row in order]),
    }
    values = measure(rankings, {"i2t": np.arange(IMAGES), "t2i": of}, metrics, resamples=50)
    return Run(name, values, rankings, provenance={"options": options} if options else {})


@pytest.fixture(scope="module")
def good() -> Run:
    return run("good", 0.3)


@pytest.fixture(scope="module")
def bad() -> Run:
    return run("bad", 1.5)


@pytest.fixture(scope="module")
def comparison(good: Run, bad: Run) -> Comparison:
    return compare(bad, good, permutations=2000)


def test_figures(comparison: Comparison, good: Run, bad: Run) -> None:
    assert [result.metric for result in comparison.results] == list(bad)
    for result in comparison.results:
        assert (result.baseline_mean, result.other_mean) == (bad[result.metric].mean, good[result.metric].mean)
        assert result.difference == pytest.approx(result.other_mean - result.baseline_mean, abs=1e-12)
        assert result.low <= result.difference <= result.high
        assert result.wins + result.losses + result.ties == result.n == bad[result.metric].n


def test_p_values(comparison: Comparison, good: Run, bad: Run) -> None:
    result = comparison["t2i/MRR"]
    test = paired_permutation(
        good["t2i/MRR"].values, bad["t2i/MRR"].values, good["t2i/MRR"].clusters, permutations=2000, bounds=(0, 1)
    )
    assert (result.p_value, result.low, result.high) == (test.p_value, test.low, test.high)
    raw = [result.p_value for result in comparison.results]
    for correction in ("holm", "bh", "none"):
        corrected = compare(bad, good, permutations=2000, correction=correction).results
        counted = [result for result in corrected if not result.primary and result.same_as is None]
        expected = correct([result.p_value for result in counted], correction)
        np.testing.assert_array_equal([result.adjusted_p for result in counted], expected)
        assert [result.p_value for result in corrected] == raw
    assert [result.adjusted_p for result in corrected] == raw


def test_the_primary_metric_is_corrected_for_pairs_alone(comparison: Comparison, good: Run, bad: Run) -> None:
    assert [result.metric for result in comparison.results if result.primary] == ["t2i/Hit@1"]
    assert comparison["t2i/Hit@1"].adjusted_p == comparison["t2i/Hit@1"].p_value
    content = comparison.as_dict()
    assert content["primary"] == "t2i/Hit@1"
    assert [row["metric"] for row in content["comparisons"] if row["primary"]] == ["t2i/Hit@1"]
    by_mrr = compare(bad, good, primary="MRR", permutations=100)
    assert [result.metric for result in by_mrr.results if result.primary] == ["t2i/MRR"], (
        "of t2i where there is a choice"
    )
    assert str(by_mrr).startswith("good is better than bad by ")
    assert " points of MRR (" in str(by_mrr)
    for metrics, primary in (("i2t/MRR i2t/Hit@1", "i2t/Hit@1"), ("i2t/MRR Rsum", "i2t/MRR"), ("Hit@5", "t2i/Hit@5")):
        by_metric = compare(bad, good, metrics=metrics, permutations=50)
        assert [result.metric for result in by_metric.results if result.primary] == [primary]
    with pytest.raises(UnknownNameError, match="unknown metric among those compared 't2i/MRR'"):
        compare(bad, good, metrics="Hit@1", primary="t2i/MRR", permutations=50)


def test_metrics_that_are_the_same_here_count_once() -> None:
    """With one relevant item per query, Hit@1 = mAP@R = RPrecision = 1 − Fails: equal tests, found from the values."""
    metrics = "t2i/Hit@1 t2i/mAP@R t2i/RPrecision t2i/Fails t2i/MRR"
    first, second = run("a", 1.0, metrics), run("b", 1.2, metrics)
    alone = compare(first, second, metrics="t2i/Hit@1").results[0]
    every = compare(first, second)
    assert every["t2i/Hit@1"].adjusted_p == alone.adjusted_p == alone.p_value
    for name in ("t2i/mAP@R", "t2i/RPrecision", "t2i/Fails"):
        assert (every[name].same_as, every[name].adjusted_p) == ("t2i/Hit@1", alone.p_value)
    assert every["t2i/MRR"].same_as is None
    assert every["t2i/MRR"].adjusted_p == every["t2i/MRR"].p_value, "one secondary test is left"
    text = str(every).replace("\n", " ")
    assert "The same test as t2i/Hit@1 here, counted once: t2i/mAP@R, t2i/RPrecision, t2i/Fails." in text
    assert "t2i/Hit@1 is the primary metric, corrected by Holm for 1 test; the others are secondary" in text
    # Among secondary metrics, too.
    ranks = compare(first, second, primary="t2i/MRR")
    assert {name: ranks[name].same_as for name in ranks.as_dict()["figures"]["a"]} == {
        "t2i/Hit@1": None, "t2i/mAP@R": "t2i/Hit@1", "t2i/RPrecision": "t2i/Hit@1", "t2i/Fails": "t2i/Hit@1",
        "t2i/MRR": None,
    }  # fmt: skip
    assert ranks["t2i/Fails"].adjusted_p == ranks["t2i/Hit@1"].p_value
    # Images have several captions: there the metrics differ, and all are counted.
    images = compare(
        *(run(name, noise, "i2t/Hit@1 i2t/RPrecision i2t/mAP@R") for name, noise in (("a", 1.0), ("b", 1.2)))
    )
    assert [result.same_as for result in images.results] == [None] * 3


def test_five_images_cannot_decide() -> None:
    def tiny(name: str, value: float) -> Run:
        values = {
            metric: MetricValues(metric, tuple("abcde"), np.full(5, value), np.arange(5), value, value, value)
            for metric in ("t2i/Hit@1", "t2i/Hit@5")
        }
        return Run(name, values)

    result = compare(tiny("bad", 0.0), tiny("good", 1.0), metrics="t2i/Hit@1")
    assert result["t2i/Hit@1"].smallest_p == 2 / 32
    text = str(result).replace("\n", " ")
    assert "Whether bad or good is better cannot be decided with 5 images: the difference (good − bad) is" in text
    assert "No difference can be seen in 5 images." in text
    assert "Cannot be decided with 5 images, as no corrected p is below 0.062: t2i/Hit@1." in text
    assert "is better than" not in text


def test_who_wins_on_which_queries(comparison: Comparison, good: Run, bad: Run) -> None:
    result = comparison["t2i/MedR"]
    change = good["t2i/MedR"].values - bad["t2i/MedR"].values
    assert (result.wins, result.losses) == ((change < 0).sum(), (change > 0).sum()), "a lower rank wins"


def test_pooled_metrics_are_tested_over_pairs(comparison: Comparison) -> None:
    result = comparison["i2t/MedR[all]"]
    assert result.statistic == "median"
    assert result.difference == result.other_mean - result.baseline_mean
    assert result.p_value < 0.05


def test_queries_are_matched_by_id(good: Run, bad: Run, comparison: Comparison) -> None:
    moved = run("good", 0.3, order=np.random.default_rng(2).permutation(CAPTIONS))
    again = compare(bad, moved, permutations=2000)
    for result, repeated_result in zip(comparison.results, again.results, strict=True):
        assert (result.p_value, result.wins, result.losses) == (
            repeated_result.p_value,
            repeated_result.wins,
            repeated_result.losses,
        )
        assert (result.difference, result.low, result.high) == pytest.approx(
            (repeated_result.difference, repeated_result.low, repeated_result.high), abs=1e-12
        )


def test_a_run_does_not_differ_from_itself(good: Run) -> None:
    same = compare(good, good, permutations=200)
    assert (same.baseline, same.others) == ("good", ("good (2)",))
    assert all(result.p_value == 1 and result.difference == 0 and result.ties == result.n for result in same.results)
    assert "good and good (2) give the same lists." in str(same)
    assert "is better than" not in str(same)


def test_several_runs_against_the_first(good: Run, bad: Run) -> None:
    middling = run("middling", 0.8)
    three = compare(bad, good, middling, metrics="t2i/Hit@1 i2t/MRR", permutations=500)
    assert [(result.other, result.metric) for result in three.results] == [
        ("good", "t2i/Hit@1"),
        ("good", "i2t/MRR"),
        ("middling", "t2i/Hit@1"),
        ("middling", "i2t/MRR"),
    ]
    for metric in ("t2i/Hit@1", "i2t/MRR"):  # the primary one, and the secondary one
        results = [result for result in three.results if result.metric == metric]
        np.testing.assert_array_equal(
            [result.adjusted_p for result in results], holm([result.p_value for result in results])
        )
    assert "good is better than bad" in str(three)
    assert "bad or middling is better cannot be decided" in str(three) or "middling is better than bad" in str(three)


def test_metrics_can_be_chosen(good: Run, bad: Run) -> None:
    comparison = compare(bad, good, metrics="R@1 t2i/MRR Rsum", permutations=100)
    assert [result.metric for result in comparison.results] == ["i2t/Hit@1", "t2i/Hit@1", "t2i/MRR", "Rsum"]
    assert "R@1 read as Hit@1" in comparison.notes[0]
    assert "R@1 read as Hit@1" in str(comparison)


def test_saved_runs(good: Run, bad: Run, comparison: Comparison, tmp_path) -> None:
    loaded = [Run.load(run.save(tmp_path / run.name)) for run in (bad, good)]
    assert compare(*loaded, permutations=2000) == comparison


def test_folds_are_kept_apart() -> None:
    dataset = {"images": IMAGES}
    strata = np.repeat([0, 1, 2], 10)
    folded = []
    for name, noise in (("bad", 1.5), ("good", 0.3)):
        whole = run(name, noise)
        values = measure(
            whole.rankings,
            {"i2t": np.arange(IMAGES), "t2i": IMAGE_OF},
            "Hit@1 MedR MedR[all] Rsum",
            strata={"i2t": strata, "t2i": strata[IMAGE_OF]},
            resamples=20,
        )
        folded.append(replace(whole, values=values, provenance={"options": {"folds": 3}, "dataset": dataset}))
    for result in compare(*folded, permutations=200).results:
        assert result.difference == pytest.approx(result.other_mean - result.baseline_mean, abs=1e-12)
    with pytest.raises(InputError, match=r"'bad' has 3 folds, 'plain' has 1\n  expected: galleries of the same size"):
        compare(folded[0], run("plain", 0.3))


def test_charts_show_both_figures_and_the_sets_of_queries(comparison: Comparison) -> None:
    strip, bars = (chart for section in comparison.sections() for chart in section.charts)
    assert isinstance(strip, Intervals)
    assert isinstance(bars, PairedBars)
    assert [row.name for row in strip.rows] == list(comparison.runs)
    figure = strip.rows[1].figure
    assert (figure.value, figure.low, figure.high) == comparison.figures["good"]["t2i/Hit@1"]
    hit, (bar,) = comparison["t2i/Hit@1"], bars.rows
    assert bar.counts[:2] == (hit.losses, hit.wins)
    assert sum(bar.counts) == hit.n
    assert bar.counts == tuple(map(len, comparison.as_dict()["queries"]["good"]["sets"].values()))
    assert [tone for _, tone in bars.levels][:2] == ["bad", "good"]
    targets = {section.target for section in comparison.sections()} | {
        part.target for section in comparison.sections() for part in section.parts if isinstance(part, Folded)
    }
    led = [address for address, count in zip(bar.addresses, bar.counts, strict=True) if count]
    assert {address.removeprefix("#") for address in led} <= targets, "each piece of the bar leads to its queries"


def test_text(comparison: Comparison) -> None:
    text = str(comparison)
    assert text.startswith("good is better than bad: of 100 captions, it finds the image of ")
    counted = sum(result.same_as is None for result in comparison.results) - 1
    assert f"the others are secondary, corrected by Holm for {counted} tests." in text.replace("\n", " ")
    assert "In percent, MedR, MedR[all], MeanR[all] as a rank, Rsum as a sum of percentages." in text
    hit = comparison["t2i/Hit@1"]
    row = next(line for line in text.splitlines() if line.startswith("t2i/Hit@1  "))
    assert row.split()[1] == "primary"
    assert row.split()[2:5] == [
        f"{100 * hit.baseline_mean:.1f}",
        f"{100 * hit.other_mean:.1f}",
        f"{100 * hit.difference:+.1f}",
    ]


def test_json(comparison: Comparison) -> None:
    content = json.loads(json.dumps(comparison.as_dict(), allow_nan=False))
    assert (content["baseline"], content["others"], content["correction"]) == ("bad", ["good"], "holm")
    result = content["comparisons"][0]
    assert result["metric"] == "i2t/Hit@1"
    assert 0 <= result["baseline_mean"] <= 1
    assert {"difference", "low", "high", "p_value", "adjusted_p", "n", "wins", "losses", "ties"} <= set(result)


def test_same_seed_same_answer(good: Run, bad: Run) -> None:
    options: dict[str, Any] = {"metrics": "t2i/Hit@5", "permutations": 300}
    assert compare(bad, good, **options) == compare(bad, good, **options)


# What cannot be compared


def test_one_run(good: Run) -> None:
    with pytest.raises(UsageError, match="a comparison requires two runs"):
        compare(good)


def test_unknown_correction(good: Run, bad: Run) -> None:
    with pytest.raises(UnknownNameError, match="unknown correction 'homl'\n  fix: did you mean holm"):
        compare(bad, good, correction="homl")


def test_other_queries(good: Run, bad: Run) -> None:
    hit = bad["t2i/Hit@1"]
    renamed = replace(hit, query_ids=("other", *hit.query_ids[1:]))
    with pytest.raises(InputError) as caught:
        compare(good, replace(bad, values={"t2i/Hit@1": renamed}))
    assert str(caught.value) == (
        "t2i/Hit@1: 1 of the 75 queries of 'good' are not in 'bad', the first is 'c0'\n"
        "  expected: the same queries in both runs\n"
        "  fix: evaluate both runs on the same dataset with the same relevance"
    )
    fewer = replace(hit, query_ids=hit.query_ids[1:], values=hit.values[1:], clusters=hit.clusters[1:])
    with pytest.raises(InputError, match="1 of the 75 queries of 'bad' are not in 'fewer', the first is 'c0'"):
        compare(Run("fewer", {"t2i/Hit@1": fewer}), bad)


def test_other_relevance(good: Run, bad: Run) -> None:
    hit = bad["t2i/Hit@1"]
    excluded = replace(hit, values=np.concatenate([[np.nan], hit.values[1:]]))
    with pytest.raises(InputError, match="1 queries count in only one of 'good' and 'bad', the first is 'c0'"):
        compare(good, replace(bad, values={"t2i/Hit@1": excluded}))


def test_missing_metrics(good: Run, bad: Run) -> None:
    with pytest.raises(UnknownNameError, match="unknown metric in 'bad' 't2i/Hit@10'"):
        compare(bad, good, metrics="t2i/Hit@10")
    with pytest.raises(UnknownNameError, match="unknown metric in 'bad' 'i2t/Hit@10'"):
        compare(bad, good, metrics="Hit@10")
    few = replace(good, values={"t2i/Hit@1": good["t2i/Hit@1"]})
    with pytest.raises(UnknownNameError, match="unknown metric in 'good' 'i2t/Hit@1'"):
        compare(bad, few, metrics="Hit@1")
    shared = compare(bad, few, permutations=100)
    assert [result.metric for result in shared.results] == ["t2i/Hit@1"]
    assert shared.notes[0].startswith("Left out, as not all runs have them: i2t/Hit@1, ")
    with pytest.raises(UsageError, match="the runs have no metric in common"):
        compare(replace(bad, values={"i2t/MRR": bad["i2t/MRR"]}), few)


def test_pooled_metrics_without_rankings(good: Run, bad: Run) -> None:
    bare = replace(good, rankings={})
    with pytest.raises(UsageError, match=r"i2t/MedR\[all\] is computed over pairs, and 'good' has no i2t ranking"):
        compare(bad, bare, metrics="i2t/MedR[all]")
    assert "Left out: i2t/MedR[all]" in str(compare(bad, bare, permutations=50))


def test_other_tie_modes_are_pointed_out(good: Run) -> None:
    other_ties = run("other", 0.5, "Hit@1", ties="expected")
    assert compare(good, other_ties, permutations=50).notes[-1] == (
        "The runs break ties differently: good stable, other expected."
    )


def test_all_pairs(good: Run, bad: Run) -> None:
    """Every run against every other one, corrected for all of them; a run beats those it is significantly above."""
    middle = run("middle", 0.7)
    every = compare(bad, middle, good, metrics="t2i/MRR t2i/MedR", all_pairs=True, permutations=2000)
    pairs = [(result.baseline, result.other) for result in every.results[::2]]
    assert pairs == [("bad", "middle"), ("bad", "good"), ("middle", "good")]
    assert every.beaten("good", "t2i/MRR") == ("bad", "middle")
    assert every.beaten("middle", "t2i/MedR") == ("bad",), "lower is better"
    assert every.beaten("bad", "t2i/MRR") == ()
    alone = compare(bad, good, metrics="t2i/MRR", permutations=2000, correction="none")
    assert every.results[2].p_value == alone["t2i/MRR"].p_value
    assert every.results[2].adjusted_p >= every.results[2].p_value
    figures = every.as_dict()["figures"]["good"]["t2i/MRR"]
    assert figures == {name: getattr(good["t2i/MRR"], name) for name in ("mean", "low", "high")}


def test_no_marks_without_a_difference(good: Run) -> None:
    same = compare(good, run("again", 0.3), metrics="t2i/MRR", all_pairs=True, permutations=200)
    assert same.beaten("good", "t2i/MRR") == same.beaten("again", "t2i/MRR") == ()


def test_a_larger_gallery_is_compared_on_the_queries_that_count() -> None:
    """Images without captions have no relevant item: they are no queries of i2t, and more items of t2i."""
    random = np.random.default_rng(3)
    captions = {f"i{n}": [f"a {n}", f"b {n}"] for n in range(8)}
    small = cl.Dataset.of(captions)
    large = cl.Dataset.of({"first": [], **captions, "last": []})
    before, after = random.normal(size=(8, 16)), random.normal(size=(10, 16))
    metrics = "Hit@1 MedR MeanR[all]"
    first = cl.evaluate(small, scores=before, metrics=metrics, resamples=20, name="small")
    second = cl.evaluate(large, scores=after, metrics=metrics, resamples=20, name="large")
    for runs in ((first, second), (second, first)):
        comparison = compare(*runs, permutations=200)
        for result in comparison.results:
            means = {run.name: run[result.metric].mean for run in (first, second)}
            assert result.difference == pytest.approx(means[result.other] - means[result.baseline])
            assert result.n == (8 if result.metric.startswith("i2t") else 16)
        assert any("The galleries of t2i differ" in note and "8" in note and "10" in note for note in comparison.notes)
        assert not any("galleries of i2t" in note for note in comparison.notes), "both have 16 captions"
    same = cl.evaluate(large, scores=np.vstack([after[:1], before, after[-1:]]), metrics=metrics, resamples=20)
    for result in compare(first, same, metrics="i2t/Hit@1 i2t/MeanR[all]", permutations=200).results:
        assert (result.difference, result.wins, result.losses) == (0, 0, 0), "the captions are the same"


def test_a_run_in_a_smaller_gallery_is_ahead_and_not_better() -> None:
    captions = {f"i{n}": [f"a {n}"] for n in range(60)}
    others = {f"other{n}": [] for n in range(40)}
    scores = np.eye(60) + 0.1 * np.random.default_rng(4).normal(size=(60, 60))
    within = np.vstack([scores, np.where(np.arange(60) % 2, 2.0, 0.0) * np.ones((40, 1))])
    runs = [
        cl.evaluate(cl.Dataset.of(gallery), scores=matrix, metrics="t2i/Hit@1", resamples=20, name=name)
        for name, gallery, matrix in (("small", captions, scores), ("large", captions | others, within))
    ]
    for compared in (runs, runs[::-1]):
        (sentence,) = compare(*compared, permutations=2000).verdicts
        assert sentence.startswith(
            "small, among 60 images, is ahead of large, among 100: of 100 captions, it finds the image of 50 more ("
        )


def test_the_same_lists_differ_by_exactly_nothing(good: Run) -> None:
    for result in compare(good, replace(good, name="again"), permutations=100).results:
        assert (result.difference, result.low, result.high) == (0, 0, 0), result.metric
    # Equal values of other lists may differ on other queries: nobody knows by how much.
    others = {
        direction: replace(ranking, top_items=ranking.top_items[:, ::-1])
        for direction, ranking in good.rankings.items()
    }
    for rankings in ({}, others):
        result = compare(good, replace(good, name="other", rankings=rankings), metrics="t2i/Hit@1", permutations=100)[
            "t2i/Hit@1"
        ]
        assert result.difference == 0
        assert result.low < 0 < result.high
