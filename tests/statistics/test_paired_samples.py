"""Two samples over the same images: the paired test where queries match, enumeration where they do not."""

from __future__ import annotations

from itertools import product
from math import isnan

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UsageError
from crosslens.statistics import Bootstrap, Samples, aggregate, paired_permutation, paired_samples, relative_interval
from tests.statistics.test_permutation import permuted_figure


def unequal(seed: int, images: int = 8) -> Samples:
    """Images with one to four values before, and another number after."""
    random = np.random.default_rng(seed)
    owners = [np.repeat(np.arange(images), random.integers(1, 5, images)) for _ in range(2)]
    values = [random.integers(1, 9, len(pairs_of_image)).astype(float) for pairs_of_image in owners]
    return Samples(values[0], owners[0], values[1] + random.integers(0, 3, len(owners[1])), owners[1])


@pytest.mark.parametrize("statistic", ["mean", "median", "floor-median"])
@pytest.mark.parametrize("seed", range(3))
def test_one_value_of_each_query_on_both_sides_is_the_paired_test(statistic: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    clusters = random.integers(0, 12, 40)
    before = random.integers(1, 7, 40).astype(float)
    after = before + random.integers(-1, 3, 40)
    options = {"statistic": statistic, "permutations": 700, "resamples": 300, "seed": seed}
    ours = paired_samples(Samples(before, clusters, after, clusters), **options).test
    theirs = paired_permutation(after, before, clusters, **options)
    assert ours.p_value == theirs.p_value
    assert (ours.difference, ours.low, ours.high) == pytest.approx(
        (theirs.difference, theirs.low, theirs.high), abs=1e-12
    )
    assert (ours.n, ours.clusters) == (theirs.n, theirs.clusters)


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("seed", range(4))
def test_p_value_agrees_with_enumeration(statistic: str, seed: int) -> None:
    samples = unequal(seed)
    images = np.unique(samples.before_clusters)
    observed = abs(permuted_figure(samples.after, samples.before, statistic))
    extreme = 0
    for swaps in product([False, True], repeat=len(images)):
        moved = images[np.array(swaps)]
        first, second = np.isin(samples.before_clusters, moved), np.isin(samples.after_clusters, moved)
        before = np.concatenate([samples.before[~first], samples.after[second]])
        after = np.concatenate([samples.before[first], samples.after[~second]])
        extreme += abs(permuted_figure(after, before, statistic)) >= observed - 1e-9
    change = paired_samples(samples, statistic=statistic, permutations=20_000, resamples=0)
    assert change.test.p_value == pytest.approx(extreme / 2 ** len(images), abs=0.015)
    assert isnan(change.test.low)


@pytest.mark.parametrize("statistic", ["median", "floor-median"])
def test_interval_draws_an_image_with_all_that_is_its_own(statistic: str) -> None:
    samples = unequal(5, 9)
    differences, ratios = [], []
    for rows in Bootstrap(np.arange(0), 200, 3).weights(9):
        for weights in rows:
            before, after = (
                np.concatenate([np.repeat(values[owners == cluster], weights[cluster]) for cluster in range(9)])
                for values, owners in (
                    (samples.before, samples.before_clusters), (samples.after, samples.after_clusters),
                )
            )  # fmt: skip
            differences.append(aggregate(after, statistic) - aggregate(before, statistic))
            ratios.append(aggregate(after, statistic) / aggregate(before, statistic) - 1)
    change = paired_samples(samples, statistic=statistic, resamples=200, seed=3, permutations=10)
    assert change.test.interval == pytest.approx(np.quantile(differences, [0.025, 0.975]))
    assert (change.relative_low, change.relative_high) == pytest.approx(np.quantile(ratios, [0.025, 0.975]))
    assert change.relative == pytest.approx(
        aggregate(samples.after, statistic) / aggregate(samples.before, statistic) - 1
    )


def test_a_sum_of_parts_draws_them_together() -> None:
    """Twice the same part is twice the figure, with twice the interval and the same p-value."""
    samples = unequal(6, 12)
    once, twice = (paired_samples(parts, resamples=200, permutations=500) for parts in ([samples], [samples, samples]))
    assert twice.test.difference == pytest.approx(2 * once.test.difference)
    assert twice.test.interval == pytest.approx([2 * end for end in once.test.interval])
    assert twice.test.p_value == once.test.p_value
    assert twice.relative == pytest.approx(once.relative)


def test_parts_of_folds_are_weighted() -> None:
    first, second = unequal(7), unequal(8)
    parts = [
        Samples(part.before, part.before_clusters, part.after, part.after_clusters, stratum=number, weight=0.5)
        for number, part in enumerate((first, second))
    ]
    change = paired_samples(parts, resamples=50, permutations=50)
    means = [[np.mean(part.before), np.mean(part.after)] for part in (first, second)]
    assert (change.before, change.after) == pytest.approx(np.mean(means, axis=0))
    assert change.test.clusters == 16


def test_what_has_no_value_does_not_count() -> None:
    samples = unequal(9, 12)
    holes = Samples(
        np.append(samples.before, np.nan), np.append(samples.before_clusters, 99),
        np.append(samples.after, np.nan), np.append(samples.after_clusters, 0),
    )  # fmt: skip
    assert paired_samples(holes, permutations=99) == paired_samples(samples, permutations=99)


@given(st.integers(0, 10_000), st.integers(2, 14))
def test_swapping_the_sides_turns_the_sign(seed: int, images: int) -> None:
    samples = unequal(seed, images)
    swapped = Samples(samples.after, samples.after_clusters, samples.before, samples.before_clusters)
    there, back = (paired_samples(each, resamples=40, permutations=60, seed=seed) for each in (samples, swapped))
    assert back.test.difference == pytest.approx(-there.test.difference)
    assert back.test.interval == pytest.approx((-there.test.high, -there.test.low), nan_ok=True)
    ratios = (1 / (1 + there.relative_high) - 1, 1 / (1 + there.relative_low) - 1)
    assert (back.relative_low, back.relative_high) == pytest.approx(ratios, rel=0.05, nan_ok=True)
    assert back.test.p_value == there.test.p_value


def test_same_on_both_sides() -> None:
    samples = unequal(1)
    change = paired_samples(Samples(samples.before, samples.before_clusters, samples.before, samples.before_clusters))
    assert (change.test.difference, change.test.p_value) == (0, 1)
    assert isnan(change.test.low), "nothing varies, and no range says what else there may be"


def test_nothing_to_compare_is_not_a_number() -> None:
    empty = np.array([])
    change = paired_samples(Samples(empty, empty.astype(int), np.ones(3), np.arange(3)))
    assert isnan(change.test.difference)
    assert isnan(change.test.p_value)
    alone = paired_samples(Samples(np.ones(2), np.zeros(2, int), np.zeros(1), np.zeros(1, int)))
    assert alone.test.difference == -1
    assert isnan(alone.test.low)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="3 values for 2 clusters"):
        Samples(np.ones(3), np.arange(2), np.ones(1), np.arange(1))
    with pytest.raises(UsageError, match="permutations"):
        paired_samples(unequal(0), permutations=-1)
    with pytest.raises(UsageError, match="statistic"):
        paired_samples(unequal(0), statistic="mode")  # type: ignore[arg-type]


def several_models(
    seed: int, models: int = 2, images: int = 60
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Hits of 0 to 3 in points, before and after, five queries of each image, those of an image alike."""
    random = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(images), 5)
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for _ in range(models):
        ease = np.repeat(random.normal(0.8, 1.0, images), 5)
        for loss, side in zip((0.0, 0.5), sides, strict=True):
            side.append(100.0 * np.clip(np.round(ease - loss + random.normal(0, 0.7, len(ease)) + 1), 0, 3))
    return *sides, clusters


@pytest.mark.parametrize("models", [1, 2])
def test_the_interval_of_a_ratio_is_near_that_of_resampled_images(models: int) -> None:
    befores, afters, clusters = several_models(models, models)
    random = np.random.default_rng(1)
    members = [np.flatnonzero(clusters == image) for image in range(60)]
    differences, ratios = [], []
    for _ in range(1500):
        rows = np.concatenate([members[image] for image in random.integers(0, 60, 60)])
        figures = [(before[rows].mean(), after[rows].mean()) for before, after in zip(befores, afters, strict=True)]
        differences.append(np.mean([after - before for before, after in figures]))
        ratios.append(np.mean([after / before - 1 for before, after in figures]))
    low, high = relative_interval(befores, afters, clusters, *np.quantile(differences, [0.025, 0.975]))
    expected = np.quantile(ratios, [0.025, 0.975])
    assert (low, high) == pytest.approx(expected, abs=0.12 * np.ptp(expected))


def hits(chance: float, images: int, random: np.random.Generator) -> np.ndarray:
    return (random.random(images) < chance).astype(float)


def test_drops_in_percent_contain_the_truth_and_nothing_below_minus_100() -> None:
    """From 30 to 2 % of 50 images: 86.5 % of the intervals contained −93.3 %, and 67 % went below −100 %."""
    random, images, contained = np.random.default_rng(15), np.arange(50), []
    for _ in range(400):
        samples = Samples(hits(0.3, 50, random), images, hits(0.02, 50, random), images)
        change = paired_samples(samples, permutations=0, bounds=(0, 1))
        assert -1 <= change.relative_low <= change.relative <= change.relative_high
        contained.append(change.relative_low <= 0.02 / 0.3 - 1 <= change.relative_high)
    assert np.mean(contained) > 0.92


def test_a_drop_to_nothing_has_an_upper_limit() -> None:
    """No hit of 50 is no proof that there will be none: about 3 of them may still be one."""
    images, before = np.arange(50), (np.arange(50) < 15).astype(float)
    change = paired_samples(Samples(before, images, 0 * before, images), permutations=0, bounds=(0, 1))
    assert (change.relative, change.relative_low) == (-1, -1)
    assert 3 / 15 < 1 + change.relative_high < 0.5
    of_difference = relative_interval([before], [0 * before], images, *change.test.interval)
    assert of_difference == pytest.approx((change.relative_low, change.relative_high))


@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(1, 3), st.sampled_from([(0.0, 3.0), None]))
def test_no_drop_is_below_minus_100_percent(
    seed: int, images: int, models: int, bounds: tuple[float, float] | None
) -> None:
    random = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(images), 2)
    befores, afters = (
        [random.binomial(3, random.choice([0.0, 0.01, 0.5, 1.0]), 2 * images).astype(float) for _ in range(models)]
        for _ in range(2)
    )
    change = paired_samples(Samples(befores[0], clusters, afters[0], clusters), permutations=0, bounds=bounds)
    ends = change.relative_low, change.relative_high
    if not isnan(ends[0]):
        assert -1 <= ends[0] <= change.relative + 1e-12
        assert change.relative - 1e-12 <= ends[1]
    if not isnan(change.test.low) and all(before.any() for before in befores):
        low, high = relative_interval(befores, afters, clusters, *change.test.interval)
        assert -1 <= low <= high


def test_a_ratio_of_negative_figures_has_no_interval() -> None:
    values, images = np.random.default_rng(1).normal(-3, 1, 20), np.arange(20)
    change = paired_samples(Samples(values, images, values + 1, images), permutations=0)
    assert isnan(change.relative_low)
    assert isnan(change.relative_high)


def test_the_interval_of_a_ratio_is_that_of_paired_samples() -> None:
    (before,), (after,), clusters = several_models(3, 1)
    change = paired_samples(Samples(before, clusters, after, clusters), permutations=0, bounds=(0.0, 300.0))
    interval = relative_interval([before], [after], clusters, *change.test.interval)
    assert interval == pytest.approx((change.relative_low, change.relative_high))


def test_the_interval_of_a_ratio_where_nothing_varies() -> None:
    (before,), _, clusters = several_models(4, 1)
    same = relative_interval([before], [before], clusters, -1.0, 1.0)
    ends = np.expm1(np.array([-1, 1]) / before.mean())
    assert same == pytest.approx(ends), "as wide as that of the difference, on the scale of logarithms"
    assert all(map(isnan, relative_interval([0 * before], [before], clusters, 0.0, 1.0))), "of nothing"
    assert all(map(isnan, relative_interval([before], [before], clusters, float("nan"), float("nan"))))
