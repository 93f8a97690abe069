"""Results of judging against counting by hand, slow references and published figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import isnan

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from crosslens.core import InputError
from crosslens.statistics import krippendorff_alpha
from crosslens.web.judging.agreement import (
    ADJUDICATED,
    ALL,
    MAJORITY,
    UNDECIDED,
    compare_causes,
    decide,
    disagreements,
    judged_by,
    judgement_table,
    measure_project,
    metric_correlations,
    model_agreement,
    people_table,
    person_agreement,
)
from crosslens.web.judging.database.projects import StoredItem
from crosslens.web.judging.tasks import Answer, ItemContent
from tests.report.conftest import run as run  # a run made by hand
from tests.web.judging.judged import LABELS, drawn, results_of, stored_answers


def test_a_judge_judges_an_item_once() -> None:
    with pytest.raises(InputError, match="'ann' judged item '1' twice"):
        stored_answers([("1", "ann", ["colour"]), ("1", "ann", ["count"])])


# Agreement


def slow_nominal(units: list[list[object]]) -> float:
    """Krippendorff's α from its definition: every two answers of an item against every two answers at all."""
    units = [unit for unit in units if len(unit) > 1]
    everything = [answer for unit in units for answer in unit]
    observed = sum(2 * (a != b) / (len(unit) - 1) for unit in units for a, b in combinations(unit, 2)) / len(everything)
    expected = sum(2 * (a != b) for a, b in combinations(everything, 2)) / (len(everything) * (len(everything) - 1))
    return 1 - observed / expected if expected else float("nan")


@pytest.mark.parametrize("seed", range(3))
def test_alpha_of_answers_and_of_every_label(seed: int) -> None:
    table = drawn(seed)
    result = measure_project(table, LABELS)
    by_item: dict[str, list[frozenset[str]]] = {}
    for item, labels in table.select("item", "labels").iter_rows():
        by_item.setdefault(item, []).append(frozenset(labels))
    assert result.answers.alpha == pytest.approx(slow_nominal([list(unit) for unit in by_item.values()]))
    for label in LABELS:
        units: list[list[object]] = [[label in answer for answer in unit] for unit in by_item.values()]
        assert result.labels[label].alpha == pytest.approx(slow_nominal(units), nan_ok=True)
    assert (result.items, result.judges, result.judgements) == (len(by_item), 4, table.height)
    assert result.repeated == sum(len(unit) > 1 for unit in by_item.values())


def test_kappa_of_a_two_by_two_table() -> None:
    """Cohen's usual example: 20 both yes, 15 both no, 5 and 10 differ: p_o = 0.7, p_e = 0.5, κ = 0.4."""
    answers = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    table = stored_answers(
        (str(i), judge, [label]) for i, pair in enumerate(answers) for judge, label in zip("ab", pair, strict=True)
    )
    result = measure_project(table, ("yes", "no"))
    assert result.answers.kappa == pytest.approx(0.4)
    assert result.labels["yes"].kappa == pytest.approx(0.4)


def test_labels_with_an_order_are_scores() -> None:
    table = stored_answers(
        [("1", "a", ["3"]), ("1", "b", ["2"]), ("2", "a", ["0"]), ("2", "b", ["0"]), ("3", "a", ["1"])]
    )
    result = measure_project(table, grades={str(n): float(n) for n in range(4)})
    nan = float("nan")
    scores = np.array([[3, 2], [0, 0], [1, nan]])
    assert result.scores is not None
    assert result.scores.alpha == pytest.approx(krippendorff_alpha(scores, "interval"))
    assert result.ordinal == pytest.approx(krippendorff_alpha(scores, "ordinal"))
    assert measure_project(table).scores is None  # neither ratings nor grades


def test_mean_and_minimum_agreement_as_imp_counts() -> None:
    """IMP's Table 1 has the mean share of good over pairs, and the least: here 3/4 and 1 of four people."""
    table = stored_answers(
        (item, person, ["good" if (item, person) != ("1", "d") else "bad"]) for item in "12" for person in "abcd"
    )
    shares = measure_project(table, fits="good").by_item
    assert (shares.mean, shares.minimum, shares.least) == (0.875, 0.75, "1")
    assert measure_project(table).by_item.minimum == 0.75  # without a survey of pairs, the most frequent answer
    assert measure_project(table, fits="bad").by_item.mean == 0.125
    people = person_agreement(table)
    assert people.each == {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5}
    assert person_agreement(stored_answers([("1", "a", ["x"]), ("1", "b", ["y"]), ("1", "c", ["z"])])).each == {}


def test_a_pair_that_all_call_bad_has_no_agreement() -> None:
    """25 pairs, 10 of them bad for all four people and 15 good for all: 60 % on average, 0 % at least."""
    table = stored_answers((str(n), person, ["bad" if n < 10 else "good"]) for n in range(25) for person in "abcd")
    result = measure_project(table, ("good", "bad"), fits="good")
    assert (result.by_item.mean, result.by_item.minimum) == (pytest.approx(0.6), 0)
    assert result.as_dict()["fits"] == "good"
    assert measure_project(table, ("good", "bad")).by_item.minimum == 1


def test_no_judgements_are_no_agreement() -> None:
    result = measure_project(stored_answers([]), LABELS)
    assert result.items == 0
    assert isnan(result.answers.alpha)
    assert isnan(result.by_item.mean)
    assert result.as_dict()["answers"] == {"alpha": None, "kappa": None}


# Decisions


def test_majority_ties_and_adjudication() -> None:
    table = stored_answers(
        [
            ("all", "a", ["colour"], 4), ("all", "b", ["colour"], 6),
            ("most", "a", ["colour", "count"]), ("most", "b", ["colour"]), ("most", "c", ["colour", "count"]),
            ("half", "a", ["colour"]), ("half", "b", ["count"]),
            ("none", "a", ["colour"]), ("none", "b", ["count"]), ("none", "c", ["size"]),
            ("own", "a", ["colour"], 2), ("own", "b", ["count"], 4),
        ]
    )  # fmt: skip
    decided = decide(table, {"own": Answer(("size",), 9), "unseen": Answer(("count",))})
    rows = {item: (None if labels is None else set(labels), by) for item, labels, by in
            decided.select("item", "labels", "by").iter_rows()}  # fmt: skip
    assert rows == {
        "all": ({"colour"}, ALL),
        "most": ({"colour", "count"}, MAJORITY),
        "half": (None, UNDECIDED),
        "none": (None, UNDECIDED),
        "own": ({"size"}, ADJUDICATED),
        "unseen": ({"count"}, ADJUDICATED),
    }
    assert dict(decided.select("item", "rating").iter_rows())["all"] == 5
    assert dict(decided.select("item", "rating").iter_rows())["own"] == 9


@pytest.mark.parametrize("seed", range(3))
def test_majority_label_by_label(seed: int) -> None:
    table = drawn(seed, judges=3, missing=0)
    for item, labels, by in decide(table).select("item", "labels", "by").iter_rows():
        answers = table.filter(pl.col("item") == item)["labels"].to_list()
        held = {label for label in LABELS if sum(label in answer for answer in answers) >= 2}
        assert by == (UNDECIDED if not held else ALL if len({frozenset(a) for a in answers}) == 1 else MAJORITY)
        assert set(labels or ()) == held


def test_disagreements_the_most_disputed_first_adjudicated_last() -> None:
    table = stored_answers(
        [
            ("same", "a", ["colour"]), ("same", "b", ["colour"]),
            ("once", "a", ["colour"]), ("once", "b", ["colour"]), ("once", "c", ["count"]),
            ("all", "a", ["colour"], 1), ("all", "b", ["count"], 9),
            ("done", "a", ["colour"]), ("done", "b", ["count"]),
        ]
    )  # fmt: skip
    cases = disagreements(table, {"done": Answer(("colour",))})
    assert [case.item for case in cases] == ["all", "once", "done"]
    assert [case.share for case in cases] == pytest.approx([1, 2 / 3, 1])
    assert cases[0].spread == 8
    assert cases[0].answers["b"] == Answer(("count",), 9)
    assert cases[2].adjudicated == Answer(("colour",))


# Shares


def test_shares_of_labels_with_intervals() -> None:
    table = drawn(5)
    shares = results_of(table).shares
    counts = Counter(label for labels in table["labels"].to_list() for label in labels)
    assert shares["label"].to_list() == list(LABELS)
    for label, count, share, low, high in shares.iter_rows():
        assert count == counts[label]
        assert share == pytest.approx(count / table.height)
        assert low <= share <= high
        assert high - low > 0


def test_numbers_of_causes_as_in_the_paper() -> None:
    """EXPL: of 103 pairs, 85 have one wrong semantic class, 15 two, 3 three: 82.52, 14.56 and 2.91 %."""
    causes = LABELS[:6]
    rows = [("one", 1)] * 85 + [("two", 2)] * 15 + [("three", 3)] * 3 + [("none", 0)] * 24
    table = stored_answers(
        (str(i), "a", causes[:number] or ["successful alternative"]) for i, (_, number) in enumerate(rows)
    )
    numbers = results_of(table).numbers_of_causes
    assert numbers is not None
    assert numbers["causes"].to_list() == [0, 1, 2, 3]
    assert numbers["count"].to_list() == [24, 85, 15, 3]
    assert [round(100 * share, 2) for share in numbers["of_caused"].to_list()[1:]] == [82.52, 14.56, 2.91]
    assert numbers["share"].sum() == pytest.approx(1)


def test_labels_together_and_rules_between_them() -> None:
    answers = [["action", "details"]] * 6 + [["action"]] * 2 + [["details"]] * 4 + [["colour"]] * 8
    results = results_of(stored_answers((str(i), "a", labels) for i, labels in enumerate(answers)))
    together = {(a, b): (count, share) for a, b, count, share in results.together.iter_rows()}
    assert together["action", "details"] == (6, 0.3)
    assert together["colour", "count"] == (0, 0)
    rules = results.rules
    rule = rules.filter((pl.col("if") == ["action"]) & (pl.col("then") == "details")).row(0, named=True)
    assert (rule["count"], rule["support"], rule["confidence"]) == (6, 0.3, 0.75)
    back = rules.filter((pl.col("if") == ["details"]) & (pl.col("then") == "action")).row(0, named=True)
    assert back["confidence"] == 0.6


def test_ratings() -> None:
    table = stored_answers([("1", "a", [], 1), ("1", "b", [], 10), ("2", "a", [], 7.5), ("2", "b", [])])
    ratings = results_of(table).ratings
    assert ratings is not None
    counts = dict(ratings.select("rating", "count").iter_rows())
    assert counts == {**dict.fromkeys(range(1, 11), 0), 1: 1, 8: 1, 10: 1}
    assert results_of(table).mean_rating.mean == pytest.approx(18.5 / 3)
    assert isnan(results_of(stored_answers([])).mean_rating.mean)


# People


def test_people_speed_checks_and_agreement() -> None:
    rows = [
        ("1", "ann", ["good"], None, "real", 4.0), ("2", "ann", ["bad"], None, "real", 8.0),
        ("c", "ann", ["bad"], None, "check", 2.0), ("d", "ann", ["good"], None, "distractor", 2.0),
        ("1", "bob", ["good"], None, "real", 1.0), ("c", "bob", ["good"], None, "check", 1.0),
        ("p", "bob", ["good"], None, "practice", 1.0),
    ]  # fmt: skip
    people = people_table(stored_answers(rows), {"c": ["bad"], "d": ["bad"], "p": ["good"]})
    ann, bob = people.to_dicts()
    assert (ann["account"], ann["judged"], ann["seconds"], ann["agreement"]) == ("ann", 2, 6.0, 1.0)
    assert (ann["check_right"], ann["check_given"], ann["distractor_right"], ann["distractor_given"]) == (1, 1, 0, 1)
    assert (bob["check_right"], bob["check_given"], bob["practice_right"], bob["practice_given"]) == (0, 1, 1, 1)


def test_models_are_kept_apart() -> None:
    rows = [{"item": "1", "account": "ann", "labels": ["good"]},
            {"item": "1", "account": "gpt", "labels": ["bad"], "source": "model"}]  # fmt: skip
    table = judgement_table(rows)
    assert judged_by(table)["account"].to_list() == ["ann"]
    assert judged_by(table, "model")["account"].to_list() == ["gpt"]
    assert people_table(table)["account"].to_list() == ["ann"]


# Automatic metrics


def test_correlations_with_metrics_over_items_that_have_both() -> None:
    random = np.random.default_rng(0)
    ratings = {f"i{n}": float(value) for n, value in enumerate(random.integers(1, 11, 40))}
    metric = {item: value + random.normal() for item, value in list(ratings.items())[:30]} | {"i0": float("nan")}
    table = metric_correlations({"rating": ratings}, {"CA": metric, "few": {"i1": 1.0}}, resamples=50)
    row = table.row(0, named=True)
    both = [f"i{n}" for n in range(1, 30)]
    first, second = [ratings[item] for item in both], [metric[item] for item in both]
    assert (table.height, row["items"], row["metric"]) == (1, 29, "CA")
    assert row["pearson"] == pytest.approx(pearsonr(first, second).statistic)
    assert row["spearman"] == pytest.approx(spearmanr(first, second).statistic)
    assert row["pearson_low"] < row["pearson"] < row["pearson_high"]


def test_causes_of_people_against_derived_ones() -> None:
    random = np.random.default_rng(4)
    names = ("object_class", "colour", "successful_alternative", "smell")
    said_of = {str(n): [name for name in names if random.random() < 0.4] or ["smell"] for n in range(40)}
    table = stored_answers((item, "ann", labels) for item, labels in said_of.items())
    split = stored_answers([("split", "ann", ["colour"]), ("split", "bob", ["smell"])])
    derived: dict[str, dict[str, bool | None]] = {
        str(n): {cause: [True, False, None][random.integers(3)] for cause in ("object", "colour", "not explained")}
        for n in range(30)
    }
    result = compare_causes(decide(pl.concat([table, split])), names, derived | {"split": {"colour": True}})
    assert result is not None
    assert (result.items, result.causes) == (30, ["object", "colour", "not explained"])
    for row in result.table.to_dicts():
        judged_items = [item for item in derived if row["label"] in said_of[item]]
        assert row["items"] == len(judged_items)
        assert {cause: row[cause] for cause in result.causes} == {
            cause: sum(derived[item][cause] is True for item in judged_items) for cause in result.causes
        }
    pairs = {"object_class": "object", "colour": "colour"}
    assert dict(result.kappa.select("label", "cause").iter_rows()) == pairs
    for row in result.kappa.to_dicts():
        cells = Counter((row["label"] in said_of[item], holds) for item, causes in derived.items()
                        if (holds := causes[row["cause"]]) is not None)  # fmt: skip
        both, people, only, neither = (cells[c] for c in ((True, True), (True, False), (False, True), (False, False)))
        assert [row[name] for name in ("both", "people", "derived", "neither")] == [both, people, only, neither]
        total = both + people + only + neither
        chance = ((both + people) * (both + only) + (only + neither) * (people + neither)) / total**2
        assert row["kappa"] == pytest.approx(((both + neither) / total - chance) / (1 - chance))
        assert row["kappa_low"] < row["kappa"] < row["kappa_high"]
    assert compare_causes(decide(table), names, {}) is None
    constant = compare_causes(decide(stored_answers([("1", "ann", ["colour"])])), names, {"1": {"colour": True}})
    assert constant is not None
    assert constant.kappa.select("kappa", "kappa_low", "kappa_high").row(0) == (None, None, None)
    # Ten copies of every item, each group of copies one query: as little is known as of one.
    copies = {f"{item}.{n}": item for item in said_of for n in range(10)}
    many = compare_causes(
        decide(stored_answers((item, "ann", said_of[original]) for item, original in copies.items())),
        names,
        {item: derived[original] for item, original in copies.items() if original in derived},
        copies,
    )
    assert many is not None
    ends = ["kappa", "kappa_low", "kappa_high"]
    assert np.allclose(many.kappa.select(ends).to_numpy(), result.kappa.select(ends).to_numpy(), atol=0.05)


def test_shares_of_labels_by_item_and_metrics_of_a_run(run) -> None:  # type: ignore[no-untyped-def]
    table = stored_answers([("1", "a", ["good"]), ("1", "b", ["bad"]), ("2", "a", ["good"])])
    results = results_of(table, ("good", "bad", "unsure"))
    assert results._quantities == {"good": {"1": 0.5, "2": 1.0}, "bad": {"1": 0.5, "2": 0.0}}
    items = {
        name: StoredItem(ItemContent(about={"query": query}), id=int(name), project=1)
        for name, query in {"1": "img1#0", "2": "img2#0", "3": "elsewhere"}.items()
    }
    metrics = replace(results.answers, items=items).run_metrics(run)
    assert metrics["t2i/Hit@1"] == {"1": 1.0, "2": 0.0}
    assert not [name for name in metrics if name.startswith("i2t/")]


def test_a_model_against_what_people_decided() -> None:
    people = stored_answers([(i, judge, labels, rating) for i, labels, rating in
                   (("1", ["colour"], 2), ("2", ["count"], 4), ("3", ["colour"], 9)) for judge in ("ann", "bob")]
                  + [("4", "ann", ["size"], 1), ("4", "bob", ["count"], 1)])  # fmt: skip
    model = stored_answers([("1", "vlm", ["colour"], 1), ("2", "vlm", ["colour"], 5), ("3", "vlm", ["colour"], 8),
                  ("4", "vlm", ["size"], 3), ("5", "vlm", ["size"], 3)])  # fmt: skip
    (result,) = model_agreement(model, people, decide(people), ("colour", "count"))
    assert (result.model, result.judged, result.compared) == ("vlm", 5, 3)  # of item 4 nothing is decided
    assert result.same == pytest.approx(2 / 3)
    assert result.person == pytest.approx(3 / 4)
    assert result.kappa == pytest.approx(0)  # a model that always says the same
    assert result.score == pytest.approx(pearsonr([1, 5, 8, 3], [2, 4, 9, 1]).statistic)
    assert model_agreement(stored_answers([]), people, decide(people)) == ()
