"""Figures with intervals, and what a new metric takes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from crosslens.core import InputError, UsageError
from crosslens.metrics import (
    DEFAULT_METRICS,
    METRICS,
    MetricSpec,
    RelevantRanks,
    compute,
    compute_across,
    measure,
    metric,
    parse_metric,
)
from crosslens.statistics import estimate
from crosslens.storage import FloatArray
from tests.metrics.brute import rank

RANDOM = np.random.default_rng(0)
IMAGE_OF = np.repeat(np.arange(8), 3)
SCORES = RANDOM.normal(size=(8, 24))
RANKINGS = {
    "i2t": rank(SCORES, [set(np.flatnonzero(image == IMAGE_OF).tolist()) for image in range(8)]),
    "t2i": rank(SCORES.T, [{int(image)} for image in IMAGE_OF], "t2i"),
}
CLUSTERS = {"i2t": np.arange(8), "t2i": IMAGE_OF}


def test_figures_and_intervals() -> None:
    results = measure(RANKINGS, CLUSTERS, "Hit@5 t2i/MedR", seed=3, level=0.9)
    assert list(results) == ["i2t/Hit@5", "t2i/Hit@5", "t2i/MedR"]
    median = results["t2i/MedR"]
    figure = estimate(median.values, IMAGE_OF, statistic="median", seed=3, level=0.9)
    assert (median.mean, median.low, median.high) == (figure.mean, figure.low, figure.high)
    assert (median.name, median.statistic, median.level) == ("t2i/MedR", "median", 0.9)
    np.testing.assert_array_equal(median.values, compute(MetricSpec("MedR"), RANKINGS["t2i"]))
    np.testing.assert_array_equal(median.clusters, IMAGE_OF)


def test_defaults() -> None:
    results = measure(RANKINGS, CLUSTERS, resamples=10)
    assert set(results) == {"Rsum", *(f"{d}/{m}" for d in RANKINGS for m in DEFAULT_METRICS if m != "Rsum")}
    one_way = measure({"i2t": RANKINGS["i2t"]}, CLUSTERS, resamples=10)
    assert "Rsum" not in one_way
    assert "i2t/Hit@1" in one_way


def test_what_cannot_be_had_raises() -> None:
    one_way = {"i2t": RANKINGS["i2t"]}
    with pytest.raises(UsageError, match=r"t2i/Hit@1 needs a direction that was not ranked\n  fix: ranked .*: i2t"):
        measure(one_way, CLUSTERS, "t2i/Hit@1")
    with pytest.raises(UsageError, match="and t2i is missing\n  fix: evaluate both directions, or write i2t/Rsum"):
        measure(one_way, CLUSTERS, "Rsum")
    with pytest.raises(UsageError, match="MRR belongs to one direction"):
        compute_across(MetricSpec("MRR"), RANKINGS, CLUSTERS)


def test_both_directions_are_over_the_same_images() -> None:
    shifted = {"i2t": np.arange(8), "t2i": IMAGE_OF + 1}
    with pytest.raises(InputError, match="the image of t2i query 'q21' is not among the i2t queries"):
        compute_across(MetricSpec("Rsum"), RANKINGS, shifted)
    with pytest.raises(InputError, match="two i2t queries have the same cluster"):
        compute_across(MetricSpec("Rsum"), RANKINGS, {"i2t": np.zeros(8, int), "t2i": IMAGE_OF})


def test_clusters_may_have_any_names() -> None:
    values = compute_across(MetricSpec("Rsum"), RANKINGS, CLUSTERS)
    names = RANDOM.permutation(100)[:8]
    renamed = {"i2t": names, "t2i": names[IMAGE_OF]}
    np.testing.assert_array_equal(compute_across(MetricSpec("Rsum"), RANKINGS, renamed), values)


def test_rankings_are_not_kept_alive() -> None:
    ranking = rank(SCORES, [{0}] * 8)
    for ties in ("stable", "expected"):
        compute(MetricSpec("MRR"), ranking, ties)
    alive = weakref.ref(ranking)
    del ranking
    gc.collect(1)  # it is young; all objects would take a second
    assert alive() is None


def test_a_new_metric_is_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METRICS, "_entries", dict(METRICS._entries))

    @metric("Density", cutoff="required", definition="relevant items in the top k / k")
    def density(ranks: RelevantRanks, spec: MetricSpec) -> FloatArray:
        """The share of the top k that is relevant."""
        return ranks.relevant_retrieved(spec.k) / spec.k

    spec = parse_metric("i2t/Density@4").spec
    ranking = rank([[4, 3, 3, 1], [1, 1, 1, 1], [4, 3, 2, 1]], [{1}, {0, 1}, set()])
    np.testing.assert_array_equal(compute(spec, ranking), [0.25, 0.5, np.nan])
    np.testing.assert_allclose(compute(MetricSpec("Density", cutoff=2), ranking, "expected"), [0.25, 0.5, np.nan])
    assert METRICS["Density"].summary == "The share of the top k that is relevant."
