"""Ready-made lists: what is listed is ranked, what is not stays unknown."""

from __future__ import annotations

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.rank import ScoreMatrix, rank_both, rank_lists
from crosslens.values import UNRANKED, RankedLists, Relevance


def test_places_ties_and_cut_lists():
    lists = RankedLists.of({"q1": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0}, "q2": {"b": 1.0}})
    relevance = Relevance.from_pairs(["q1", "q1", "q2", "q3"], ["c", "e", "a", "a"])
    ranking = rank_lists(lists, relevance, "i2t")
    assert ranking.query_ids == ("q1", "q2", "q3")
    assert ranking.known.tolist() == [4, 1, 0]
    assert ranking.above.tolist() == [1, UNRANKED, UNRANKED, UNRANKED]
    assert ranking.tied.tolist() == [2, 0, 0, 0]
    assert ranking.tied_before.tolist() == [1, 0, 0, 0]
    assert not ranking.complete
    assert ranking.top("q1", 2) == [("a", 3.0), ("b", 2.0)]
    assert ranking.top("q3") == []


def test_a_query_without_judgement_is_kept_and_counted():
    ranking = rank_lists(RankedLists.of({"x": ["a"], "q": ["a", "b"]}), Relevance.from_pairs(["q"], ["b"]), "i2t")
    assert dict(zip(ranking.query_ids, ranking.relevant_counts.tolist(), strict=True)) == {"q": 1, "x": 0}


def test_an_item_outside_the_gallery_raises():
    lists, relevance = RankedLists.of({"q": ["a", "z"]}), Relevance.from_pairs(["q"], ["a"])
    with pytest.raises(InputError, match=r"item 'z' is not in the gallery\n  expected: one of its 2 ids") as raised:
        rank_lists(lists, relevance, "i2t", gallery=("a", "b"))
    assert (raised.value.code, raised.value.subject) == ("unknown-id", "z")


def test_no_list_at_all():
    ranking = rank_lists(RankedLists.of({}), Relevance.from_pairs(["q"], ["a"]), "i2t")
    assert ranking.above.tolist() == [UNRANKED]
    assert ranking.depth == 0


def test_full_lists_equal_ranking_from_scores():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, (7, 11)).astype(np.float32)
    queries, items = tuple(f"q{k}" for k in range(7)), tuple(f"i{k}" for k in range(11))
    rows, columns = np.nonzero(rng.random((7, 11)) < 0.3)
    relevance = Relevance.from_indices(queries, items, rows, columns)
    from_scores = rank_both(ScoreMatrix(scores), relevance)["i2t"]
    listed = {q: {i: float(scores[a, b]) for b, i in enumerate(items)} for a, q in enumerate(queries)}
    from_lists = rank_lists(RankedLists.of(listed), relevance, "i2t", gallery=items)
    assert from_lists.complete
    for name in ("top_items", "above", "tied", "tied_before", "known", "offsets", "relevant"):
        np.testing.assert_array_equal(getattr(from_lists, name), getattr(from_scores, name), err_msg=name)
