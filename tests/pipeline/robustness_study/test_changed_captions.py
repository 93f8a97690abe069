"""Captions before and after a change: how many keep, lose and gain their picture, and which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import EvidenceList, Folded, Intervals, PairedBars, QueryCards
from crosslens.pipeline import Robustness, changed_captions, drop_strip
from crosslens.values import Ranking

PLANTED = {"c0": (1, 1), "c1": (1, 4), "c2": (1, 2), "c3": (3, 1), "c4": (2, 2), "c5": (1, None)}
"""Per caption the rank of its picture before and after; None: it is no longer in the list."""


def ranking() -> Ranking:
    """After the change: the picture at its rank, and others in their order."""
    images = [f"i{number}" for number in range(6)]
    dataset = cl.Dataset.of({image: [f"caption of {image}"] for image in images})
    scores = np.tile(-np.arange(6.0)[:, None], 6).astype(np.float32)
    for number, (_, after) in enumerate(PLANTED.values()):
        others = [row for row in range(6) if row != number]
        scores[number, number] = 1 if after == 1 else scores[others[(after or 6) - 2], number] - 0.5
    run = cl.evaluate(dataset, scores=scores, metrics="Hit@1", directions=("t2i",), resamples=0, name="m")
    return replace(run.rankings["t2i"], query_ids=tuple(PLANTED))


@pytest.fixture(scope="module")
def study() -> Robustness:
    keys = {"perturbation": "char_swap", "seed": 0}
    queries = pl.DataFrame(
        [{"model": "m", **keys, "query": query, "rank_before": float(before), "rank_after": after and float(after)}
         for query, (before, after) in PLANTED.items()]
    )  # fmt: skip
    texts = {query: f"a dog and {'a long ' * number}cat {query}" for number, query in enumerate(PLANTED)}
    captions = pl.DataFrame(
        [
            {**keys, "caption": query, "original": text, "text": text.replace("dog", "dgo")}
            for query, text in texts.items()
        ]
    )
    drops = pl.DataFrame({"model": ["m"], **{name: [value] for name, value in keys.items()},
                          "metric": ["t2i/Hit@1"], "drop": [2 / 6], "low": [0.1], "high": [0.6]})  # fmt: skip
    return Robustness(
        ("m",), ("char_swap",), "t2i/Hit@1", "t2i", queries=queries, captions=captions, drops=drops
    )  # fmt: skip


def test_captions_are_counted_by_what_became_of_them(study: Robustness) -> None:
    (folded,) = changed_captions(study, {"char_swap": ranking()}).parts
    assert isinstance(folded, Folded)
    assert folded.open, "few are shown at once"
    (chart,) = folded.parts
    assert isinstance(chart, PairedBars)
    (bar,) = chart.rows
    assert dict(zip((name for name, _ in chart.levels), bar.counts, strict=True)) == {
        "still first": 1, "no longer first": 3, "first only when changed": 1, "never first": 1
    }  # fmt: skip
    assert bar.about == "“a dog and a long cat c1” → “a dgo and a long cat c1”", "the shortest that was lost"
    assert bar.pictures == ("i0", "i1"), "what came first instead, and its own"
    cards, lost, gained = bar.details
    assert isinstance(cards, QueryCards)
    assert [card.facts for card in cards.cards] == [("caption c5",), ("caption c1",)], "the deepest fall first"
    assert [picture.title for picture in cards.cards[0].pictures] == ["first", "not in the list"]
    assert isinstance(lost, EvidenceList)
    assert isinstance(gained, EvidenceList)
    assert [query for query, _ in lost.entries] == ["c5", "c1", "c2"]
    assert [query for query, _ in gained.entries] == ["c3"]


def test_what_a_change_costs_leads_to_the_captions_that_it_loses(study: Robustness) -> None:
    (strip,) = drop_strip(study).parts
    assert isinstance(strip, Intervals)
    assert [row.address for row in strip.rows] == ["#lost-char-swap"]
    (row,) = strip.rows
    assert row.figure.number == "33.3", "3 of 6 lost, 1 gained; worse has no sign, as in every table of drops"
