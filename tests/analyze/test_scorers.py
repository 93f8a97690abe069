"""Two scorers: figures against slow references, pairs without a score, forms of CLIPScore, φ without the caption."""

from __future__ import annotations

import statistics as plain
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from crosslens.analyze import CLIPSCORES, ImageCaptionPairs, clipscore, compare_scorers
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.similarity import Cider
from crosslens.values import Dataset

LEVELS = ["easy", "medium", "hard"]


def world(images: int = 12) -> tuple[Dataset, np.ndarray[Any, Any], np.ndarray[Any, Any], pl.DataFrame]:
    dataset = Dataset.of({f"i{n}": [f"a picture {n} {k}" for k in range(3)] for n in range(images)})
    random = np.random.default_rng(1)
    first = np.round(random.normal(size=3 * images), 1)
    second = np.round(first + random.normal(size=3 * images), 1)
    return dataset, first, second, pl.DataFrame({"caption": dataset.caption_ids, "difficulty": LEVELS * images})


def test_figures_equal_slow_references() -> None:
    dataset, first, second, levels = world()
    result = compare_scorers(dataset, {"a": first, "b": second}, levels, resamples=50)
    for category in LEVELS:
        rows = [row for row in range(len(first)) if LEVELS[row % 3] == category]
        values = [float(second[row]) for row in rows]
        row = result.distributions.filter(pl.col("scorer") == "b", pl.col("category") == category).row(0, named=True)
        assert row["pairs"] == len(values)
        assert row["mean"] == pytest.approx(plain.mean(values))
        assert row["sd"] == pytest.approx(plain.stdev(values))
        quartiles = plain.quantiles(values, n=4, method="inclusive")
        assert [row["lower_quartile"], row["median"], row["upper_quartile"]] == pytest.approx(quartiles)
        expected = stats.kendalltau(first[rows], second[rows]).statistic
        assert result.correlations[category]["kendall-b"].mean == pytest.approx(expected)
    figures = result.correlations["total"]
    assert figures["pearson"].mean == pytest.approx(stats.pearsonr(first, second).statistic)
    assert figures["spearman"].mean == pytest.approx(stats.spearmanr(first, second).statistic)
    assert figures["spearman"].low <= figures["spearman"].mean <= figures["spearman"].high
    differences = (second - first).tolist()
    assert result.agreement["raw"].mean.mean == pytest.approx(plain.mean(differences))
    assert result.agreement["raw"].upper.mean == pytest.approx(
        plain.mean(differences) + 1.96 * plain.stdev(differences)
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_disagreement_is_the_difference_of_ranks(pairs: list[tuple[int, int]]) -> None:
    dataset = Dataset.of({f"i{n}": [f"text {n}"] for n in range(len(pairs))})
    first, second = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    result = compare_scorers(dataset, {"a": first, "b": second}, resamples=0)

    def share_below(values: list[float], value: float) -> float:
        return (sum(score < value for score in values) + values.count(value) / 2) / len(values)

    slow = {
        caption: share_below(second, b) - share_below(first, a)
        for caption, a, b in zip(dataset.caption_ids, first, second, strict=True)
    }
    listed = result.disagreements(len(pairs))
    assert dict(listed.select("caption", "rank_difference").iter_rows()) == pytest.approx(slow)
    sizes = listed["rank_difference"].abs().to_list()
    assert sizes == sorted(sizes, reverse=True)


def test_pairs_without_a_score_are_left_out_and_counted() -> None:
    dataset, first, second, levels = world()
    second[4] = np.nan
    result = compare_scorers(dataset, {"a": first, "b": second}, levels, resamples=0)
    assert (len(result), result.left_out) == (35, 1)
    assert dataset.caption_ids[4] not in result.table["caption"].to_list()


def test_a_matrix_gives_the_score_of_each_captions_own_image() -> None:
    dataset, first, second, _ = world()
    matrix = np.zeros((12, 36))
    matrix[dataset.caption_image, np.arange(36)] = first
    result = compare_scorers(dataset, {"a": matrix, "b": second}, resamples=0)
    assert result.scores("a").tolist() == first.tolist()


def test_clipscore_in_its_three_forms() -> None:
    cosines = [-0.2, 0.0, 0.25]
    assert clipscore(cosines).tolist() == [0.0, 0.0, 25.0]
    assert clipscore(cosines, "hessel").tolist() == [0.0, 0.0, 0.625]
    assert clipscore(cosines, "cosine").tolist() == cosines
    assert set(CLIPSCORES) == {"cosine", "clipscore", "hessel"}
    with pytest.raises(UnknownNameError, match="sine"):
        clipscore(cosines, "sine")


def test_phi_compares_a_caption_with_the_images_other_captions() -> None:
    dataset = Dataset.of(
        {"a": ["a red dog runs", "the red dog runs fast", "a cat"], "b": ["two boats at sea"], "c": ["a hat", "a hat"]}
    )
    scores = ImageCaptionPairs.of_captions(dataset).from_similarity("cider")
    texts, owners = dataset.texts, dataset.caption_image.tolist()
    others = [[texts[o] for o in range(6) if owners[o] == owners[c] and o != c] for c in range(6)]
    with_others = [c for c in range(6) if others[c]]
    prepared = Cider().prepare([others[c] for c in with_others], [texts[c] for c in with_others])
    expected = prepared.pairs(np.arange(5), np.arange(5))
    assert np.isnan(scores[3])  # the only caption of its image
    np.testing.assert_allclose(scores[with_others], expected)
    assert scores[4] > scores[0] > scores[2]  # equal texts; some words; none


def test_bad_input() -> None:
    dataset, first, second, _ = world()
    with pytest.raises(UsageError, match="exactly two"):
        compare_scorers(dataset, {"a": first})
    with pytest.raises(InputError, match="one score per pair"):
        compare_scorers(dataset, {"a": first[:3], "b": second})
    with pytest.raises(InputError, match="0 of 36 pairs have a score of both"):
        compare_scorers(dataset, {"a": first, "b": np.full(36, np.nan)})
    with pytest.raises(InputError, match="as inf"):
        compare_scorers(dataset, {"a": first, "b": np.full(36, np.inf)})
    with pytest.raises(InputError, match="has a difficulty"):
        compare_scorers(dataset, {"a": first, "b": second}, pl.DataFrame({"caption": ["x"], "difficulty": ["easy"]}))
