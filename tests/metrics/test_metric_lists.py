"""Ready-made lists: what is said when one is too short for a metric."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.metrics import compute, compute_across, parse_metric
from crosslens.values import Ranking
from tests.metrics.brute import rank

SCORES = [[9, 8, 7, 6, 5, 4], [9, 8, 7, 6, 5, 4]]


def message(metric: str, ranking: Ranking, ties: str = "stable") -> str:
    with pytest.raises(InputError) as caught:
        compute(parse_metric(metric).spec, ranking, ties)
    return str(caught.value)


def test_a_cutoff_past_the_end() -> None:
    lists = rank(SCORES, [{0}, {1, 5}], length=3)
    assert message("Hit@4", lists) == (
        "i2t/Hit@4 cannot be computed: the list of query 'q0' has 3 items\n"
        "  expected: at least 4 items\n"
        "  fix: use a cutoff of at most 3, or pass lists of at least 4 items"
    )
    assert compute(parse_metric("Hit@3").spec, lists).tolist() == [1, 1]
    assert compute(parse_metric("Recall@3").spec, lists).tolist() == [1, 0.5]


def test_the_first_short_list_that_counts_is_named() -> None:
    lists = rank(SCORES, [set(), {1}], length=3)
    assert "the list of query 'q1' has 3 items" in message("MRR@5", lists)


def test_r_places_are_needed() -> None:
    lists = rank(SCORES, [{0, 1, 2, 3}, {1}], length=3)
    for metric in ("mAP@R", "RPrecision"):
        text = message(metric, lists)
        assert "the list of query 'q0' has 3 items" in text
        assert "fix: pass lists of at least 4 items" in text
    assert compute(parse_metric("RPrecision").spec, rank(SCORES, [{0, 5}, {1}], length=3)).tolist() == [0.5, 0]


def test_the_first_relevant_item_must_be_there() -> None:
    lists = rank(SCORES, [{0}, {5, 4}], length=3)
    for metric in ("MRR", "MedR", "MeanR", "MedR[floor]"):
        assert message(metric, lists) == (
            f"i2t/{metric} cannot be computed: none of the relevant items is in the list of query 'q1', "
            "which has 3 items\n"
            "  expected: lists that reach down to the relevant items\n"
            "  fix: pass longer lists, or use a metric with a cutoff"
        )
    assert compute(parse_metric("MRR").spec, rank(SCORES, [{0}, {1, 5}], length=3)).tolist() == [1, 0.5]


@pytest.mark.parametrize("metric", ["AP", "MedR[all]", "MeanR[all]"])
def test_all_relevant_items_must_be_there(metric: str) -> None:
    text = message(metric, rank(SCORES, [{0}, {1, 5}], length=3))
    assert "not all relevant items are in the list of query 'q1', which has 3 items" in text


def test_a_tie_that_may_run_past_the_end() -> None:
    lists = rank([[9, 8, 8, 8]], [{2}], length=3)
    for ties in ("pessimistic", "expected"):
        text = message("Hit@3", lists, ties)
        assert "the list of query 'q0' may end within a tie, after 3 items" in text
        assert "use ties='stable'" in text
        assert compute(parse_metric("Hit@1").spec, lists, ties).tolist() == [0]
    for ties in ("stable", "optimistic"):
        assert compute(parse_metric("Hit@3").spec, lists, ties).tolist() == [1]


def test_an_unseen_relevant_item_may_be_tied_with_the_last() -> None:
    lists = rank([[9, 8, 7, 7]], [{3}], length=3)
    for ties in ("optimistic", "expected"):
        assert "may end within a tie" in message("Hit@3", lists, ties)
        assert compute(parse_metric("Hit@2").spec, lists, ties).tolist() == [0]
        assert "may end within a tie" in message("Hit@2", replace(lists, top_scores=lists.top_scores[:, :0]), ties)
    for ties in ("stable", "pessimistic"):
        assert compute(parse_metric("Hit@3").spec, lists, ties).tolist() == [0]


def test_both_directions() -> None:
    rankings = {"i2t": rank(SCORES, [{0}, {1}]), "t2i": rank(SCORES, [{0}, {1}], "t2i", length=3)}
    clusters = {"i2t": np.arange(2), "t2i": np.arange(2)}
    with pytest.raises(InputError, match="Rsum cannot be computed: the list of query 'q0' has 3 items"):
        compute_across(parse_metric("Rsum").spec, rankings, clusters)


def test_a_small_gallery_ranked_from_scores_is_no_short_list() -> None:
    """As in folds: a query's gallery is smaller than the list of items, and all of it is known."""
    fold = replace(rank(SCORES, [{0}, {1, 5}]), item_ids=tuple(f"d{number}" for number in range(30)))
    assert compute(parse_metric("Hit@10").spec, fold).tolist() == [1, 1]
    assert compute(parse_metric("Recall@10").spec, fold, "expected").tolist() == [1, 1]


def test_completeness_is_saved(tmp_path) -> None:
    lists = rank(SCORES, [{0}, {1}], length=3)
    assert not Ranking.load(lists.save(tmp_path / "lists")).complete
    assert lists.fingerprint != replace(lists, complete=True).fingerprint
