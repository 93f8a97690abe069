"""Two runs query by query: sets of queries, groups whose difference was planted, and what could have been noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.comparisons import pair_queries
from crosslens.statistics import detectable_difference, paired_permutation
from crosslens.values import MetricValues, Run
from tests.pipeline.small_world import world


def hits(name: str, values: np.ndarray, kinds: list[str], per_image: int = 4) -> Run:
    """Captions of images, found or not, with a kind and a text of each."""
    queries = tuple(f"q{row}" for row in range(len(values)))
    clusters = np.arange(len(values)) // per_image
    metric = MetricValues("t2i/Hit@1", queries, values.astype(float), clusters, float(values.mean()), np.nan, np.nan)
    columns = pl.DataFrame({"kind": kinds, "text": [f"text {query}" for query in queries]})
    return Run(name, {"t2i/Hit@1": metric}, columns={"t2i": columns})


def test_sets_of_queries() -> None:
    first, second = np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 0])
    kinds = ["same"] * 5
    paired = pair_queries(hits("a", first, kinds, 1), hits("b", second, kinds, 1), "t2i/Hit@1", level=0.95)
    assert paired.sets == {"only_first": ("q1", "q4"), "only_second": ("q2",), "both": ("q0",), "neither": ("q3",)}
    assert [card.asked for card in paired.examples["only_first"]] == ["text q1", "text q4"]


def test_what_you_would_lose_has_both_pictures() -> None:
    dataset, images, captions = world()
    rng = np.random.default_rng(3)
    noisy = captions + rng.standard_normal(captions.shape).astype(np.float32)
    runs = [
        cl.evaluate(dataset, images=images, captions=texts, metrics="Hit@1 MRR", resamples=20, name=name)
        for name, texts in (("clear", captions), ("noisy", noisy))
    ]
    paired = cl.compare(*runs, permutations=200).paired["noisy"]
    ranks = [dict(zip(run["t2i/MRR"].query_ids, 1 / run["t2i/MRR"].values, strict=True)) for run in runs]
    lost = [query for query in ranks[0] if ranks[0][query] == 1 and ranks[1][query] > 1]
    assert set(paired.sets["only_first"]) == set(lost)
    changes = [ranks[1][query] for query in paired.sets["only_first"]]
    assert changes == sorted(changes, reverse=True), "the largest change of rank first"
    owner = {
        caption: dataset.image_ids[row] for caption, row in zip(dataset.caption_ids, dataset.caption_image, strict=True)
    }
    for card in paired.examples["only_first"]:
        right, wrong = card.pictures
        assert (right.mark, right.image) == ("right", owner[card.query])
        assert wrong.mark == "wrong"
        assert wrong.image != owner[card.query]
        assert wrong.title == f"noisy · right at {ranks[1][card.query]:.0f}"
    by_image = pair_queries(*runs, "i2t/Hit@1", level=0.95)
    for card in by_image.examples["only_first"]:
        asked, right, _ = card.pictures
        assert asked.image == card.query
        assert right.lines[0] in dataset.texts


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_a_planted_group_differs_and_others_do_not(correction: str) -> None:
    """In one of eight kinds the second run finds 40 points more; elsewhere as many are won as lost."""
    rng, size = np.random.default_rng(5), 1600
    kinds = [f"kind {row // 4 % 8}" for row in range(size)]
    first, second = rng.random((2, size)) < 0.5
    planted = np.array(kinds) == "kind 3"
    second[planted] = rng.random(planted.sum()) < 0.9
    paired = pair_queries(
        hits("a", first, kinds), hits("b", second, kinds), "t2i/Hit@1", level=0.95, correction=correction
    )
    assert [group.group for group in paired.groups if group.differs(0.95)] == ["kind 3"]
    kind = paired.groups[0]
    assert (kind.group, kind.queries, kind.images) == ("kind 3", 200, 50)
    assert kind.difference == pytest.approx(second[planted].mean() - first[planted].mean())
    assert kind.low <= kind.difference <= kind.high
    assert {group.column for group in paired.groups} == {"kind"}, "texts of one length make no groups"


def test_titles_name_groups_in_words() -> None:
    """The second run finds long captions better, and then all of them."""
    rng, size = np.random.default_rng(7), 800
    kinds = ["same"] * size
    is_long = np.arange(size) % 2 > 0
    first = rng.random(size) < 0.3

    def title_where(second: np.ndarray) -> str:
        runs = [hits(name, values, kinds) for name, values in (("a", first), ("b", second))]
        texts = pl.Series("text", ["one two three" if long else "one" for long in is_long])
        runs = [replace(run, columns={"t2i": run.columns["t2i"].with_columns(texts)}) for run in runs]
        titles = [section.title for section in cl.compare(*runs, permutations=400).sections()]
        return next(title for title in titles if "ahead" in title)

    assert title_where(np.where(is_long, True, first)) == "b is ahead for captions of 3 words."
    assert title_where(rng.random(size) < 0.9) == "b is ahead in each of the 2 groups."


def test_groups_of_equal_runs_are_never_said_to_differ() -> None:
    """Over many pairs of runs that are as good as each other, 8 kinds each: at most a few in a hundred."""
    rng, false = np.random.default_rng(6), 0
    kinds = [f"kind {row // 4 % 8}" for row in range(640)]
    for _ in range(60):
        first, second = rng.random((2, 640)) < 0.6
        paired = pair_queries(
            hits("a", first, kinds), hits("b", second, kinds), "t2i/Hit@1", level=0.95, permutations=400
        )
        false += any(group.differs(0.95) for group in paired.groups)
    assert false <= 7, "5 % of 60 are 3; more than 7 would have a chance of 2 %"


@pytest.mark.parametrize(("images", "per_image", "agree"), [(10, 5, 0.6), (40, 5, 0.6), (150, 2, 0.8), (300, 1, 1.0)])
def test_a_detectable_difference_is_detected_in_four_of_five_datasets(
    images: int, per_image: int, agree: float
) -> None:
    """Datasets whose runs differ by exactly the difference that was computed from one without any."""
    rng = np.random.default_rng(images)
    size, clusters = images * per_image, np.repeat(np.arange(images), per_image)

    def changes(difference: float) -> np.ndarray:
        """Queries that change either way, half of them as their image does; with a mean of ``difference``."""
        if agree == 1:
            return (rng.random(size) < difference).astype(float)
        plus = 0.5 + difference / (1 - agree) / 2
        signs = np.where(rng.random((2, size)) < plus, 1.0, -1.0)
        alike = np.where(rng.random(size) < 0.5, signs[0][clusters], signs[1])
        return (rng.random(size) >= agree) * alike

    smallest = float(np.median([detectable_difference(changes(0.0), clusters, span=1.0) for _ in range(40)]))
    detections = 0
    for number in range(150):
        values = changes(smallest)
        test = paired_permutation(values, np.zeros(size), clusters, permutations=300, resamples=1, seed=number)
        detections += test.p_value < 0.05
    assert 0.7 <= detections / 150 <= 0.92


def test_what_cannot_be_detected_at_all() -> None:
    assert detectable_difference(np.ones(5), np.arange(5)) == np.inf, "no p of five images is below 0.05"
    assert np.isnan(detectable_difference(np.zeros(50), np.arange(50))), "nothing is known of an unbounded metric"
    few, more = (detectable_difference(np.zeros(size), np.arange(size), span=1.0) for size in (100, 400))
    assert 0 < more < few, "of shares, the number of queries bounds it"
    alone, among = (
        detectable_difference(np.resize([1.0, 0, -1], 300), np.arange(300), tests=tests) for tests in (1, 30)
    )
    assert alone < among
