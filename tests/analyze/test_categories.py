"""Results by category: both denominators and AUPRC against slow references, negatives that repeat, bad tables."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import ALL, CATEGORY, NO_CATEGORY, TOTAL, Categories, category_results, classification_pairs
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.values import Dataset, Run

Array = np.ndarray[Any, Any]
LEVELS = ("easy", "medium", "hard")


def drawn(seed: int, images: int = 7) -> tuple[Dataset, Array, list[str]]:
    """A dataset with 1 to 4 captions per image, scores with many ties, and a level per caption."""
    random = np.random.default_rng(seed)
    texts = {f"i{n}.jpg": [f"caption {n} {k}" for k in range(random.integers(1, 5))] for n in range(images)}
    dataset = Dataset.of(texts)
    scores = random.integers(0, 9, (images, len(dataset.caption_ids))).astype(float)
    scores[dataset.caption_image, np.arange(scores.shape[1])] += 3
    return dataset, scores, [LEVELS[k] for k in random.integers(0, 3, scores.shape[1])]


def table_of(dataset: Dataset, levels: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"caption": dataset.caption_ids, "difficulty": levels})


def evaluated(dataset: Dataset, scores: Array, **options: Any) -> Run:
    return cl.evaluate(dataset, scores=scores, metrics=["Hit@1"], resamples=0, **options)


def rank_in(row: Array, item: int) -> int:
    """Higher scores first, the lower position first among equal ones."""
    return 1 + sum(score > row[item] or (score == row[item] and at < item) for at, score in enumerate(row))


def slow_retrieval(dataset: Dataset, scores: Array, levels: list[str], level: str, k: int) -> dict[str, float]:
    """From the definitions, pair by pair."""
    result: dict[str, float] = {}
    owners = dataset.caption_image.tolist()
    ranks = {c: rank_in(scores[:, c], owners[c]) for c in range(len(owners)) if levels[c] == level}
    result["t2i all"] = sum(rank <= k for rank in ranks.values()) / len(owners)
    result["t2i category"] = sum(rank <= k for rank in ranks.values()) / len(ranks) if ranks else np.nan
    result["t2i MedR"] = median(ranks.values()) if ranks else np.nan
    hits, images, every, precisions = 0, 0, [], []
    for image in range(len(dataset.image_ids)):
        captions = [c for c in range(len(owners)) if owners[c] == image and levels[c] == level]
        if not captions:
            continue
        caption_ranks = sorted(rank_in(scores[image], c) for c in captions)
        images += 1
        hits += caption_ranks[0] <= k
        every += caption_ranks
        precisions.append(
            sum((n + 1) / r for n, r in enumerate(caption_ranks) if r <= len(caption_ranks)) / len(caption_ranks)
        )
    result["i2t all"] = hits / len(dataset.image_ids)
    result["i2t category"] = hits / images if images else np.nan
    result["i2t MeanR"] = float(np.mean(every)) if every else np.nan
    result["i2t mAP"] = float(np.mean(precisions)) if precisions else np.nan
    return result


@given(st.integers(0, 10_000), st.sampled_from([1, 2, 5]))
def test_every_figure_equals_the_slow_reference(seed: int, k: int) -> None:
    dataset, scores, levels = drawn(seed)
    metrics = [f"Hit@{k}", "MedR[all]", "MeanR[all]", "mAP@R"]
    result = category_results(
        {"m": evaluated(dataset, scores)}, table_of(dataset, levels), metrics=metrics, resamples=0
    )
    for level in set(levels):
        expected = slow_retrieval(dataset, scores, levels, level, k)

        def figure(metric: str, direction: str, denominator: str, level: str = level) -> float:
            return result.value("m", metric, level, direction=direction, denominator=denominator)

        for direction in ("t2i", "i2t"):
            for denominator in (ALL, CATEGORY):
                value = figure(f"Hit@{k}", direction, denominator)
                assert value == pytest.approx(expected[f"{direction} {denominator}"], abs=1e-12)
        assert figure("MedR[all]", "t2i", CATEGORY) == pytest.approx(expected["t2i MedR"])
        assert figure("MeanR[all]", "i2t", CATEGORY) == pytest.approx(expected["i2t MeanR"])
        assert figure("mAP@R", "i2t", CATEGORY) == pytest.approx(expected["i2t mAP"], abs=1e-12)


@given(st.integers(0, 10_000))
def test_the_columns_over_all_captions_add_up_exactly(seed: int) -> None:
    dataset, scores, levels = drawn(seed)
    unlabelled = [level if row % 4 else None for row, level in enumerate(levels)]
    if all(level is None for level in unlabelled):
        return
    run = evaluated(dataset, scores)
    result = category_results({"m": run}, table_of(dataset, unlabelled), resamples=0)
    for metric in ("Hit@1", "Hit@5", "Hit@10"):
        rows = result.retrieval.filter(pl.col("metric") == metric)
        t2i = rows.filter(pl.col("direction") == "t2i")
        parts = t2i.filter(pl.col("denominator") == ALL)
        total = t2i.filter(pl.col("category") == TOTAL).row(0, named=True)
        hits = [value * count for value, count in zip(parts["value"], parts["queries"], strict=True)]
        assert all(abs(number - round(number)) < 1e-9 for number in hits)
        assert sum(map(round, hits)) == round(total["value"] * total["queries"])
        assert NO_CATEGORY in parts["category"].to_list()
        i2t = rows.filter(pl.col("direction") == "i2t")
        over = i2t.filter(pl.col("denominator") == ALL)["value"].sum()
        # An image counts in the category of each of its captions.
        assert over >= i2t.filter(pl.col("category") == TOTAL)["value"][0] - 1e-12


def test_categories_of_images_and_of_pairs() -> None:
    dataset = Dataset.of({"a.jpg": ["one", "two"], "b.jpg": ["three"]})
    scores = np.array([[3.0, 0.0, 1.0], [1.0, 2.0, 0.5]])
    run = evaluated(dataset, scores)
    images = pl.DataFrame({"image": ["a", "b"], "place": ["sea", "town"]})
    result = category_results(run, images, by="place", metrics="Hit@1", resamples=0)
    assert result.categories == ("sea", "town")
    name = result.models[0]
    assert result.value(name, "Hit@1", "sea", direction="t2i", denominator=CATEGORY) == 0.5
    pairs = pl.DataFrame(
        {"caption": ["0", "0", "1", "2"], "image": ["a.jpg", "b.jpg", "a.jpg", "b.jpg"], "votes": [2, 0, 0, 10]}
    )
    pairs = pairs.with_columns(pl.col("caption").replace(dict(zip("012", dataset.caption_ids, strict=True))))
    result = category_results(run, pairs, by="votes", metrics="t2i/Hit@1", resamples=0)
    assert result.categories == ("0", "2", "10")  # by size, not by the alphabet
    assert result.value(name, "Hit@1", "2", direction="t2i", denominator=ALL) == pytest.approx(1 / 3)
    assert set(result.retrieval["direction"]) == {"t2i"}


def test_intervals_and_the_panel() -> None:
    dataset, scores, levels = drawn(3, images=40)
    runs = {"first": evaluated(dataset, scores), "second": evaluated(dataset, scores[:, ::-1].copy())}
    result = category_results(runs, table_of(dataset, levels), metrics=["Hit@5", "MedR[all]"])
    shares = result.retrieval.filter(pl.col("metric") == "Hit@5")
    assert (shares["low"] <= shares["value"]).all()
    assert (shares["value"] <= shares["high"]).all()
    assert (shares["low"] < shares["high"]).all()
    row = result.panel.filter(
        pl.col("direction") == "t2i", pl.col("metric") == "Hit@5", pl.col("category") == "hard",
        pl.col("denominator") == CATEGORY,
    ).row(0, named=True)  # fmt: skip
    two = [result.value(m, "Hit@5", "hard", direction="t2i", denominator=CATEGORY) for m in runs]
    assert row["mean"] == pytest.approx(np.mean(two))
    assert row["sd"] == pytest.approx(abs(two[0] - two[1]) / np.sqrt(2))
    assert row["models"] == 2
    again = category_results(runs, table_of(dataset, levels), metrics=["Hit@5", "MedR[all]"])
    assert again.retrieval.equals(result.retrieval)


def slow_average_precision(positive: list[float], negative: list[float]) -> float:
    """Over every distinct score: the gain in recall times the precision there."""
    area = before = 0.0
    for threshold in sorted({*positive, *negative}, reverse=True):
        hits, wrong = sum(s >= threshold for s in positive), sum(s >= threshold for s in negative)
        area += (hits / len(positive) - before) * hits / (hits + wrong)
        before = hits / len(positive)
    return area


@given(st.integers(0, 10_000))
def test_auprc_equals_the_slow_reference(seed: int) -> None:
    dataset, scores, levels = drawn(seed)
    categories = Categories.of(table_of(dataset, levels))
    pairs = classification_pairs(dataset, categories, negatives=2, seed=seed)
    result = category_results((), categories, pairs=pairs, scores={"m": scores}, resamples=0)
    matching_scores = scores[dataset.caption_image, np.arange(scores.shape[1])]
    negative = [float(scores[i, c]) for i, c in zip(pairs.pairs.images, pairs.pairs.captions, strict=True)][
        len(matching_scores) :
    ]
    assert len(negative) == 2 * len(dataset.image_ids)
    for level in set(levels):
        positive = [float(score) for score, name in zip(matching_scores, levels, strict=True) if name == level]
        assert result.value("m", "AUPRC", level) == pytest.approx(slow_average_precision(positive, negative))
        row = result.classification.filter(pl.col("category") == level).row(0, named=True)
        assert row["chance"] == pytest.approx(len(positive) / (len(positive) + len(negative)))


def test_mismatched_captions_are_of_other_images_and_depend_on_the_seed_and_the_image_alone() -> None:
    dataset = Dataset.of({"a": ["same", "one"], "b": ["same", "two"], "c": ["three"], "d": ["four"]})
    categories = Categories.of(table_of(dataset, ["easy"] * 6))
    for seed in range(20):
        pairs = classification_pairs(dataset, categories, seed=seed)
        for image, caption in list(zip(pairs.pairs.images, pairs.pairs.captions, strict=True))[6:]:
            texts = [text for text, owner in zip(dataset.texts, dataset.caption_image, strict=True) if owner == image]
            assert dataset.texts[caption] not in texts
    fewer = dataset.select(["a", "c", "d"])
    assert classification_pairs(dataset, categories).pairs.ids == classification_pairs(dataset, categories).pairs.ids
    assert len(classification_pairs(fewer, categories).pairs) == 4 + 3
    with pytest.raises(InputError, match="too few"):
        classification_pairs(dataset, categories, negatives=5)
    with pytest.raises(UsageError, match="without rejected captions"):
        classification_pairs(dataset, categories, negatives="all")
    with pytest.raises(UsageError, match="pass a number from 1"):
        classification_pairs(dataset, categories, negatives=0)


def test_rejected_captions_with_scores_of_their_own(tmp_path: Path) -> None:
    dataset = Dataset.of({"a.jpg": ["one", "two"], "b.jpg": ["three"]})
    table = table_of(dataset, ["easy", "hard", "hard"]).with_columns(pl.Series("score[m]", [0.9, 0.4, 0.5]))
    rejected = pl.DataFrame(
        {
            "image": ["a", "a", "b"],
            "text": ["wrong", "false", "bad"],
            "score[m]": [0.45, 0.1, 0.2],
            "note": ["", "", ""],
        }
    )
    rejected.write_csv(tmp_path / "rejected.csv")
    categories = Categories.of(table)
    pairs = classification_pairs(dataset, categories, tmp_path / "rejected.csv", negatives="all")
    assert pairs.pairs.ids[3:] == [("a.jpg", "rejected:1"), ("a.jpg", "rejected:2"), ("b.jpg", "rejected:3")]
    result = category_results((), categories, pairs=pairs, resamples=0)
    assert result.value("m", "AUPRC", "easy") == 1.0
    assert result.value("m", "AUPRC", "hard") == pytest.approx((1 + 2 / 3) / 2)
    single = classification_pairs(dataset, categories, rejected, seed=1)
    assert [image for image, _ in single.pairs.ids[3:]] == ["a.jpg", "b.jpg"]
    turned = classification_pairs(dataset, categories, rejected.reverse(), seed=1)
    texts = [
        {result.pairs.dataset.texts[caption] for caption in result.pairs.captions[3:]} for result in (single, turned)
    ]
    assert texts[0] == texts[1]  # the order of the file does not matter


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"image": ["nobody"], "text": ["x"]}, "unknown image id 'nobody'"),
        ({"image": ["a.jpg"], "text": ["one"]}, "is a caption of the image 'a.jpg'"),
        ({"image": ["a.jpg"], "text": [" "]}, "an empty caption"),
        ({"picture": ["a.jpg"], "text": ["x"]}, "expected: the columns image and text"),
    ],
)
def test_rejected_captions_that_cannot_be(frame: dict[str, list[str]], message: str) -> None:
    dataset = Dataset.of({"a.jpg": ["one", "two"], "b.jpg": ["three"]})
    categories = Categories.of(table_of(dataset, ["easy"] * 3))
    with pytest.raises(InputError, match=message):
        classification_pairs(dataset, categories, pl.DataFrame(frame))


def test_tables_that_are_no_categories() -> None:
    dataset, scores, levels = drawn(0)
    run = evaluated(dataset, scores)
    with pytest.raises(UnknownNameError, match="colour"):
        category_results(run, table_of(dataset, levels), by="colour")
    with pytest.raises(InputError, match="neither a column 'caption' nor 'image'"):
        category_results(run, pl.DataFrame({"difficulty": ["easy"]}))
    with pytest.raises(InputError, match="has several rows"):
        category_results(run, pl.DataFrame({"caption": ["x", "x"], "difficulty": ["easy", "hard"]}))
    with pytest.raises(InputError, match="no pair of the run"):
        category_results(run, pl.DataFrame({"caption": ["unknown"], "difficulty": ["easy"]}))
    with pytest.raises(UsageError, match="too many categories"):
        category_results(run, pl.DataFrame({"caption": [str(n) for n in range(30)], "difficulty": list(range(30))}))
    with pytest.raises(UsageError, match="cannot be split by category"):
        category_results(run, table_of(dataset, levels), metrics="Rsum")
    with pytest.raises(UsageError, match="neither runs nor scored pairs"):
        category_results((), table_of(dataset, levels))
    pairs = classification_pairs(dataset, Categories.of(table_of(dataset, levels)))
    with pytest.raises(InputError, match=r"scores image .* as nan"):
        category_results((), table_of(dataset, levels), pairs=pairs, scores={"m": np.full(len(pairs.pairs), np.nan)})
    with pytest.raises(InputError, match="one score per pair"):
        category_results((), table_of(dataset, levels), pairs=pairs, scores={"m": np.zeros(3)})
