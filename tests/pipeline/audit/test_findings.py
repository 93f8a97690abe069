"""Findings: constructed payloads, and the sentences that they must lead to."""

from __future__ import annotations

from typing import Any

import pytest

from crosslens.pipeline.audit.findings import (
    brittle,
    counted_relevance,
    diverse_captions,
    evaluated,
    explained,
    findings_of,
    fine_grained,
    grouped,
    hard_cases,
    hard_pairs,
    percent,
    points,
    ranked_models,
    tied,
)
from crosslens.pipeline.audit.results import StageResult


def figure(mean: float, low: float | None = None, high: float | None = None, n: int = 100) -> dict[str, Any]:
    return {"mean": mean, "low": low, "high": high, "n": n}


def texts(statements: Any) -> list[str]:
    return [statement.text for statement in statements]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (figure(0.434, 0.41, 0.459), "43 % [41, 46]"),
        (figure(0.0046, 0.0026, 0.0075), "0.5 % [0.3, 0.8]"),
        (figure(0.997, 0.98, 1.0), "99.7 % [98.0, 100.0]"),
        (figure(1.0, 0.95, 1.0), "100 % [95, 100]"),
        (figure(0.0), "0 %"),
    ],
)
def test_figures_read_as_people_write_them(value: dict[str, Any], shown: str) -> None:
    assert percent(value) == shown


def test_points() -> None:
    assert points(0.18) == "18 points"
    assert points(0.18, figure(0.18, 0.15, 0.21)) == "18 points [15, 21]"
    assert points(0.002) == "0.2 points"


def test_the_headline() -> None:
    payload = {"metrics": {"t2i/Hit@1": figure(0.43, 0.41, 0.46), "t2i/Hit@10": figure(0.8, 0.78, 0.82)}}
    assert texts(evaluated(payload)) == [
        "The top result is right for 43 % [41, 46] of captions; one of the first ten is right for 80 % [78, 82]."
    ]


def test_recalls_that_differ_are_named_and_equal_ones_are_not() -> None:
    far = {"i2t/Hit@5": figure(0.8), "i2t/Recall@5": figure(0.4), "i2t/CappedRecall@5": figure(0.5)}
    assert texts(evaluated({"metrics": far})) == [
        "“R@5” of images may mean Hit@5 (80 %), Recall@5 (40 %) or CappedRecall@5 (50 %): say which."
    ]
    near = {name: figure(0.8) for name in far}
    assert not texts(evaluated({"metrics": near}))


def test_ties_are_mentioned_where_they_decide() -> None:
    modes = {"optimistic": {"t2i/Hit@1": figure(0.5)}, "pessimistic": {"t2i/Hit@1": figure(0.3)}}
    (statement,) = tied({"modes": modes})
    assert statement.text.startswith("Ties decide 20 points of t2i/Hit@1: it is 30 % if they are all lost and 50 %")
    assert not list(tied({"modes": {mode: {"t2i/Hit@1": figure(0.5)} for mode in modes}}))
    assert not list(tied({"modes": {"stable": {}}})), "cut-off lists have no such modes"


def test_groups_count_only_where_intervals_lie_apart() -> None:
    def payload(best: dict[str, Any]) -> dict[str, Any]:
        groups = {"cats": figure(0.3, 0.2, 0.4), "dogs": best, "few": figure(0.0, 0.0, 0.1, n=3)}
        return {"groups": [{"by": "kind", "metrics": {"t2i/Hit@1": groups}}]}

    assert texts(grouped(payload(figure(0.8, 0.7, 0.9)))) == [
        "By kind, t2i/Hit@1 is lowest for cats: 30 % [20, 40], against 80 % [70, 90] for dogs."
    ]
    assert not texts(grouped(payload(figure(0.45, 0.35, 0.55))))


def test_models_side_by_side() -> None:
    cell = {"dataset": "coco", "metric": "t2i/Hit@1", "low": 0.4, "high": 0.5, "significant": None, "difference": None}
    cells = [
        {**cell, "model": "a", "mean": 0.45, "best": True},
        {**cell, "model": "b", "mean": 0.35, "best": False, "difference": -0.1, "significant": True},
        {**cell, "model": "c", "mean": 0.25, "best": False, "difference": -0.2, "significant": True},
    ]
    payload = {"metrics": {"t2i/Hit@1": {}}, "datasets": ["coco"], "cells": cells}
    text = "a is best by t2i/Hit@1 with 45 % [40, 50], 10 points ahead of b: more than chance explains."
    assert texts(ranked_models(payload)) == [text]
    cells[1]["significant"] = False
    assert texts(ranked_models(payload))[0].endswith("ahead of b: which may be chance.")
    assert not texts(ranked_models({**payload, "cells": cells[:1]})), "one model is not best of anything"


def drop(name: str, value: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    row = {"metric": "t2i/Hit@1", "perturbation": name, "drop": value, "low": low, "high": high, "before": 0.6}
    return {**row, "applied_share": 1.0, **more}


def test_what_changes_cost() -> None:
    payload = {
        "drops": [
            drop("char_swap", 0.18, 0.15, 0.21),
            drop("shuffle_all_words", 0.001, -0.01, 0.012),
            drop("synonym_noun", 0.001, -0.01, 0.012),
            drop("mine", 0.3, 0.2, 0.4),
            drop("char_swap", 9.0, 8.0, 10.0, metric="t2i/Rsum"),
        ]
    }
    assert texts(brittle(payload)) == [
        "Swapping two letters costs 18 points [15, 21] of t2i/Hit@1, which was 60 %.",
        "Shuffling all words costs nothing measurable: the model hardly reads word order.",
        "The change mine costs 30 points [20, 40] of t2i/Hit@1, which was 60 %.",
    ]


def test_causes_and_confusions() -> None:
    causes = [
        {"cause": "object", "main_share": 0.3},
        {"cause": "not explained", "main_share": 0.9},
        {"cause": "size", "main_share": 0.0},
    ]
    atlas = [{"expected": "traffic_light.n.01", "shown": "dog.n.01", "count": 1200}]
    payload = {"failures": 40, "causes": causes, "query_atlas": atlas}
    assert texts(explained(payload)) == [
        "In 30 % of the 40 misses an object that the caption names is missing.",
        "The most frequent confusion: asked for traffic light, shown dog (1,200 times).",
    ]
    assert "of the 40 misses of a sample an object" in texts(explained({**payload, "sampled": True}))[0]
    assert not texts(explained({"failures": 0, "causes": [], "query_atlas": []}))


def test_hard_negatives() -> None:
    def row(grouping: str, category: str, value: float) -> dict[str, Any]:
        return {"grouping": grouping, "category": category, "value": value, "low": 0.5, "high": 0.9, "chance": 0.5}

    figures = [row("all", "", 0.8), row("macro", "kind", 0.7), row("kind", "swap", 0.6), row("kind", "add", 0.9)]
    assert texts(hard_cases({"results": [{"figures": figures}]})) == [
        "Against captions that are nearly right, the right one wins in 80 % [50, 90] of cases (chance: 50 %), least "
        "often for swap: 60 % [50, 90]."
    ]


def test_the_dataset() -> None:
    features = {"words": {"mean": 10.46}, "adjectives": {"mean": 0.77}}
    (statement,) = fine_grained({"datasets": [{"name": "coco", "features": features}]})
    assert statement.text == "Captions of coco have 10.5 words and 0.8 adjectives on average."
    (short,) = fine_grained({"datasets": [{"name": "coco", "features": {**features, "words": {"mean": 5.0}}}]})
    assert short.text.endswith(": too few to tell similar images apart.")
    assert short.importance > statement.importance
    levels = {"hard": {"share": 0.3, "low": 0.2, "high": 0.4}}
    assert texts(hard_pairs({"models": ["a"], "levels": levels})) == [
        "30 % [20, 40] of pairs are hard: the model does not score them as a match."
    ]
    assert "none of the 2 models does" in texts(hard_pairs({"models": ["a", "b"], "levels": levels}))[0]
    curves = [{"R": size, "caption_distance": {"mean": mean}} for size, mean in ((1, 0.5), (10, 0.8))]
    assert "1.60 times as far" in texts(diverse_captions({"datasets": [{"curves": curves}]}))[0]


def test_curves_that_cross() -> None:
    def runs(*second: float) -> dict[str, Any]:
        return {"a": {"SR": [figure(0.5), figure(0.4)]}, "b": {"SR": [figure(value) for value in second]}}

    (text,) = texts(counted_relevance({"m": [1, 10], "runs": runs(0.4, 0.6)}))
    assert text == "Which model is ahead by semantic recall depends on m: a at 1, b at 10."
    assert not texts(counted_relevance({"m": [1, 10], "runs": runs(0.4, 0.3)}))
    assert not texts(counted_relevance({"m": [1], "runs": {"a": {"SR": [figure(0.5)]}}}))


def test_what_surprises_comes_before_the_mean() -> None:
    """A group far below, a change that halves the figure, a lead that is chance, doubtful labels: then the mean."""
    groups = {"cats": figure(0.1, 0.05, 0.15, n=40), "dogs": figure(0.5, 0.45, 0.55, n=160)}
    cell = {"dataset": "d", "metric": "t2i/Hit@1", **figure(0.42, 0.38, 0.46)}
    cells = [{**cell, "model": "a", "best": True, "difference": None, "significant": None},
             {**cell, "model": "b", "best": False, "difference": -0.01, "significant": False}]  # fmt: skip
    labels = {"runs": [{"run": "tiny", "queries": 200, "failures": 100, "annotation": 40}], "reasons": {}}
    results = [
        StageResult("evaluate", {"metrics": {"t2i/Hit@1": figure(0.42, 0.38, 0.46)}}, "", model="tiny"),
        StageResult("groups", {"groups": [{"by": "kind", "metrics": {"t2i/Hit@1": groups}}]}, "", model="tiny"),
        StageResult("robustness", {"drops": [drop("char_swap", 0.35, 0.3, 0.4)]}, "", model="tiny"),
        StageResult("leaderboard", {"metrics": ["t2i/Hit@1"], "datasets": ["d"], "cells": cells}, ""),
        StageResult("label-quality", labels, "", dataset="d"),
    ]
    findings = findings_of(results)
    assert findings[-1].stage == "evaluate"
    assert findings[0].stage in ("groups", "leaderboard")
    halved = next(finding for finding in findings if finding.stage == "robustness")
    assert halved.text.endswith("of t2i/Hit@1, which was 60 %: more than half of it.")


def test_a_larger_share_lost_is_a_larger_surprise() -> None:
    (small,), (large,) = (
        list(brittle({"drops": [drop("char_swap", lost, lost - 0.02, lost + 0.02)]})) for lost in (0.06, 0.3)
    )
    assert 0.5 < small.importance < large.importance < 1


def test_the_most_important_comes_first_and_one_stage_does_not_fill_the_list() -> None:
    drops = {"drops": [drop(f"mine{number}", 0.3, 0.2, 0.4) for number in range(12)]}
    atlas = {"failures": 10, "causes": [{"cause": "object", "main_share": 0.6}], "query_atlas": []}
    results = [
        StageResult("robustness", drops, "", model="tiny"),
        StageResult("explain", atlas, "", model="tiny", dataset="scenes"),
        StageResult("evaluate", {"metrics": {"t2i/Hit@1": figure(0.4)}}, "", model="tiny"),
        StageResult("of a newer crosslens", {}, ""),
    ]
    findings = findings_of(results)
    assert [finding.importance for finding in findings] == sorted(
        (finding.importance for finding in findings), reverse=True
    )
    assert findings[0].stage == "robustness"
    assert {"explain", "evaluate"} <= {finding.stage for finding in findings[:5]}
    assert {finding.model for finding in findings} == {"tiny"}
    assert all(0 <= finding.importance <= 1 for finding in findings)


def test_of_several_models_the_comparison_comes_first_and_the_best_before_the_others() -> None:
    runs = {"weak-a": ("a", 0.3), "strong-a": ("a", 0.6), "only-b": ("b", 0.2)}
    results = [
        StageResult("evaluate", {"metrics": {"t2i/Hit@1": figure(mean)}}, "", run, dataset)
        for run, (dataset, mean) in runs.items()
    ]
    cells = [
        {"dataset": "a", "metric": "t2i/Hit@1", "model": "strong", "best": True, "difference": None, **figure(0.6)},
        {"dataset": "a", "metric": "t2i/Hit@1", "model": "weak", "best": False, "difference": -0.3, "significant": True,
         **figure(0.3)},
    ]  # fmt: skip
    results.append(StageResult("leaderboard", {"metrics": ["t2i/Hit@1"], "datasets": ["a"], "cells": cells}, ""))
    found = findings_of(results)
    assert found[0].text.startswith("strong is best by t2i/Hit@1")
    assert [finding.model for finding in found[1:]] == ["strong-a", "only-b", "weak-a"]
