"""Which queries failed, against a reading of the scores that sorts every row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.explanations import failed_queries, query_outcomes
from crosslens.explanations.failures import DIRECTIONS
from crosslens.values import Dataset, Run

IMAGES, PER_IMAGE = 12, 2


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.of({f"i{n}": [f"caption {k} of {n}" for k in range(PER_IMAGE)] for n in range(IMAGES)})


@pytest.fixture(scope="module")
def scores(dataset: Dataset) -> np.ndarray:
    """Few distinct values, so that there are ties."""
    random = np.random.default_rng(3)
    is_own = np.equal.outer(np.arange(IMAGES), dataset.caption_image)
    return np.round(random.random((IMAGES, IMAGES * PER_IMAGE)) * 8 + 3 * is_own) / 8


@pytest.fixture(scope="module")
def run(dataset: Dataset, scores: np.ndarray) -> Run:
    return cl.evaluate(dataset, scores=scores, depth=5, metrics=["Hit@1"], resamples=10)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_outcomes_against_sorting_every_row(direction: str, run: Run, dataset: Dataset, scores: np.ndarray) -> None:
    table = query_outcomes(run, dataset, direction)
    matrix = scores.T if direction == "t2i" else scores
    for query, row in enumerate(table.iter_rows(named=True)):
        order = sorted(range(matrix.shape[1]), key=lambda item: (-matrix[query, item], item))
        first = order[0]
        if direction == "t2i":
            right = [int(dataset.caption_image[query])]
            assert row["text"] == dataset.texts[query]
            assert row["retrieved"] == row["item"] == dataset.image_ids[first]
            assert row["answer"] is None
        else:
            right = [int(item) for item in np.flatnonzero(dataset.caption_image == query)]
            assert row["text"] is None
            assert row["retrieved"] == dataset.image_ids[dataset.caption_image[first]]
            assert row["answer"] == dataset.texts[first]
            assert row["ground_truth"] == dataset.image_ids[query]
        best = min(right, key=order.index)
        rank = order.index(best) + 1
        assert row["rank"] == rank
        assert row["score"] == pytest.approx(matrix[query, first])
        if rank <= 5:
            assert row["margin"] == pytest.approx(matrix[query, first] - matrix[query, best])
            assert row["margin_at_least"] is None
        else:
            assert row["margin"] is None
            assert row["truth_score"] is None
            assert row["margin_at_least"] == pytest.approx(matrix[query, first] - matrix[query, order[4]])
            assert row["margin_at_least"] <= matrix[query, first] - matrix[query, best] + 1e-9


def test_failures_are_the_queries_that_hit_counts_out(run: Run, dataset: Dataset) -> None:
    for direction in ("t2i", "i2t"):
        hits = run[f"{direction}/Hit@1"]
        missed = {query for query, value in zip(hits.query_ids, hits.values, strict=True) if value == 0}
        assert 0 < len(missed) < len(hits.query_ids)
        assert set(failed_queries(run, dataset, direction)["query"]) == missed


def test_a_ready_made_list_that_ends_before_the_right_item(dataset: Dataset) -> None:
    lists = {caption: ["i3", "i4"] for caption in dataset.caption_ids}
    run = cl.evaluate(dataset, run=lists, metrics=["Hit@2"], resamples=10)
    table = query_outcomes(run, dataset, "t2i")
    missing = table.filter(~pl.col("ground_truth").is_in(["i3", "i4"]))
    assert missing["rank"].null_count() == missing.height == (IMAGES - 2) * PER_IMAGE
    assert missing["margin_at_least"].null_count() == missing.height, "why it was left out is not known"
    assert set(table.filter(pl.col("ground_truth") == "i3")["rank"]) == {1}
    assert set(table.filter(pl.col("ground_truth") == "i4")["rank"]) == {2}
    assert failed_queries(run, dataset).height == table.height - PER_IMAGE


def test_of_several_right_images_the_first_counts(dataset: Dataset, scores: np.ndarray) -> None:
    judged = {caption: ["i1", "i2"] for caption in dataset.caption_ids}
    run = cl.evaluate(dataset, scores=scores, relevance=judged, metrics=["Hit@1"], directions=["t2i"], resamples=10)
    for query, row in enumerate(query_outcomes(run, dataset).iter_rows(named=True)):
        better = max((1, 2), key=lambda item: (scores[item, query], -item))
        assert row["ground_truth"] == f"i{better}"


def test_runs_without_lists_or_of_another_dataset_are_refused(dataset: Dataset, run: Run) -> None:
    with pytest.raises(InputError, match="keeps no rankings"):
        failed_queries({}, dataset)
    ranking = run.rankings["t2i"]
    flat = replace(ranking, top_items=ranking.top_items[:, :0], top_scores=ranking.top_scores[:, :0])
    with pytest.raises(InputError, match="keeps no top-k lists"):
        failed_queries({"t2i": flat}, dataset)
    with pytest.raises(UsageError, match="unknown direction"):
        failed_queries(run, dataset, "t2x")
    with pytest.raises(UsageError, match="no t2t ranking"):
        failed_queries(run, dataset, DIRECTIONS[1])
    with pytest.raises(InputError, match="not in the dataset 'captions'"):
        failed_queries(run, dataset.select(["i0", "i1"]))


def test_the_unknown_id_is_named(dataset: Dataset, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def positions(*_: object) -> None:
        raise InputError("unknown image id 'i7'", code="unknown-id", subject="i7")

    monkeypatch.setattr("crosslens.explanations.failures.positions", positions)
    with pytest.raises(InputError, match="the run ranks image 'i7', which is not in the dataset 'captions'") as caught:
        failed_queries(run, dataset)
    assert (caught.value.code, caught.value.subject) == ("unknown-id", "i7")
