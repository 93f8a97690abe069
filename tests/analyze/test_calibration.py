"""Thresholds from a calibration set, panels drawn again, and what filters lose: each against plain loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars.selectors as cs
import pytest

import crosslens as cl
from crosslens.analyze import (
    Difficulty,
    calibrate,
    measure_filter_loss,
    measure_left_out,
    measure_stability,
    read_thresholds,
    write_thresholds,
)
from crosslens.analyze.pair_difficulty.assignment import assign_levels
from crosslens.core import CrosslensError, InputError, Lines, UsageError
from crosslens.statistics import cohen_kappa
from crosslens.storage import random_stream
from tests.pipeline.small_world import world
from tests.statistics.test_match_threshold import slow_threshold


def slow_pairs(dataset: cl.Dataset, scores: np.ndarray, batches: list[list[int]] | None) -> tuple[list, list]:
    """Scores and labels of every pair that counts, one after the other."""
    owner = dataset.caption_image
    values, labels = [], []
    for caption in range(len(owner)):
        values.append(float(scores[owner[caption], caption]))
        labels.append(1)
    cells = (
        [(image, caption) for image in range(len(dataset.image_ids)) for caption in range(len(owner))]
        if batches is None
        else [(owner[first], second) for batch in batches for first in batch for second in batch]
    )
    for image, caption in cells:
        if owner[caption] != image:
            values.append(float(scores[image, caption]))
            labels.append(0)
    return values, labels


@pytest.mark.parametrize("negatives", ["all", "in-batch"])
@pytest.mark.parametrize("block", [1 << 20, 7])
def test_the_threshold_is_that_of_the_pairs(negatives: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.pair_difficulty.thresholds._CELLS", block)
    dataset, images, captions = world(9, seed=3)
    scores = (images @ captions.T).round(0)  # with ties
    batches = None
    if negatives == "in-batch":
        order = random_stream(5, "calibration batches").permutation(len(captions)).tolist()
        batches = [order[start : start + 8] for start in range(0, len(order), 8)]
    values, labels = slow_pairs(dataset, scores, batches)
    result = calibrate(dataset, scores, negatives=negatives, batch_size=8, seed=5)
    assert result.threshold == slow_threshold(values, labels)
    assert (result.matching, result.mismatches) == (sum(labels), len(labels) - sum(labels))
    matched = [label for value, label in zip(values, labels, strict=True) if value >= result.threshold]
    assert result.precision == pytest.approx(sum(matched) / len(matched))
    assert result.recall == pytest.approx(sum(matched) / sum(labels))


def test_the_seed_decides_the_batches() -> None:
    dataset, images, captions = world(30, seed=1)
    scores = images @ captions.T
    thresholds = {calibrate(dataset, scores, batch_size=4, seed=seed).threshold for seed in range(8)}
    assert len(thresholds) > 1
    assert calibrate(dataset, scores, batch_size=4, seed=2) == calibrate(dataset, scores, batch_size=4, seed=2)


def test_a_calibration_set_with_one_class_is_one_clear_error() -> None:
    dataset = cl.Dataset.of({"a": ["x", "y"]})
    with pytest.raises(InputError, match="no threshold for clip from captions: no mismatch to choose a threshold by"):
        calibrate(dataset, np.ones((1, 2)), model="clip")
    with pytest.raises(InputError, match="no matching pair"):
        calibrate(cl.Dataset.of({"a": []}), np.ones((1, 0)))
    with pytest.raises(CrosslensError, match="negatives"):
        calibrate(dataset, np.ones((1, 2)), negatives="some")


def test_thresholds_are_kept_with_what_they_come_from(tmp_path: Path) -> None:
    dataset, images, captions = world(9)
    thresholds = {"clip": calibrate(dataset, images @ captions.T, model="clip", seed=3)}
    write_thresholds(tmp_path / "thresholds.json", thresholds)
    assert read_thresholds(tmp_path / "thresholds.json") == thresholds
    assert read_thresholds(tmp_path) == thresholds
    (tmp_path / "thresholds.json").write_text(
        '{"format": "crosslens/thresholds", "version": 1, "models": {"clip": {"threshold": "high"}}}'
    )
    with pytest.raises(InputError, match="'threshold' of clip is 'high'"):
        read_thresholds(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_thresholds(tmp_path / "other.json")


def panel_of_five() -> Difficulty:
    dataset, images, captions = world(25, seed=4)
    random = np.random.default_rng(0)
    scores = {f"m{n}": images @ captions.T + n * random.normal(size=(25, len(captions))) for n in range(5)}
    thresholds = dict.fromkeys(scores, 6.0)
    return cl.difficulty(dataset, scores, thresholds)


def test_stability_equals_levels_assigned_again() -> None:
    result = panel_of_five()
    assert min(result.counts().values()) > 0
    stability = measure_stability(result, 3, repeats=4, seed=1)
    assert len(set(stability.panels)) == 4
    assigned = []
    for panel in stability.panels:
        assert len(set(panel)) == 3
        votes = np.sum([result.scores(model) >= 6.0 for model in panel], axis=0)
        assigned.append(np.where(votes == 3, 0.0, np.where(votes == 0, 2.0, 1.0)))
    expected = [cohen_kappa(np.stack(two, axis=1)) for two in combinations(assigned, 2)]
    assert stability.kappas == pytest.approx(expected)
    assert stability.mean == pytest.approx(np.mean(expected))
    assert (stability.lowest, stability.highest) == pytest.approx((min(expected), max(expected)))
    assert measure_stability(result, 3, repeats=4, seed=1) == stability
    assert len(measure_stability(result, 4, repeats=50).panels) == 5  # there are no more


def test_stability_needs_models_to_choose_from() -> None:
    with pytest.raises(UsageError, match="panels of 5 of 5 models"):
        measure_stability(panel_of_five(), 5)
    with pytest.raises(UsageError, match="does not say which votes give which level"):
        measure_stability(replace(panel_of_five(), mapping=""), 3)
    without_votes = replace(panel_of_five(), thresholds={})
    with pytest.raises(UsageError, match="does not say how m"):
        measure_stability(replace(without_votes, table=without_votes.table.drop(cs.starts_with("vote["))), 3)
    with pytest.raises(UsageError, match="1 panels to compare"):
        measure_stability(panel_of_five(), 3, repeats=1)


@pytest.mark.parametrize("tie_breaker", [None, "m4"])
def test_levels_without_one_model_equal_those_of_the_smaller_panel(tie_breaker: str | None) -> None:
    five = panel_of_five()
    scores = {model: five.scores(model) for model in five.models}
    ids = five.table["caption"].to_list(), five.table["image"].to_list()
    result = assign_levels(*ids, scores, five.thresholds, tie_breaker=tie_breaker)
    left_out = measure_left_out(result)
    assert [removal.model for removal in left_out] == list(five.models)
    rates = {model: sum(score >= 6.0 for score in scores[model]) / len(five) for model in result.panel}
    roles = {max(rates, key=rates.__getitem__): "strongest", min(rates, key=rates.__getitem__): "weakest"}
    whole = result.table["difficulty"].to_list()
    for removal in left_out:
        rest = {model: values for model, values in scores.items() if model != removal.model}
        breaker = tie_breaker if len(rest) - 1 in (2, 4) and removal.model != tie_breaker else None
        panel = {model: values for model, values in rest.items() if breaker or model != tie_breaker}
        smaller = assign_levels(*ids, panel, five.thresholds, tie_breaker=breaker).table["difficulty"].to_list()
        assert removal.role == ("tie-breaker" if removal.model == tie_breaker else roles.get(removal.model, ""))
        assert removal.changed == pytest.approx(sum(a != b for a, b in zip(whole, smaller, strict=True)) / len(whole))
        assert removal.shares == pytest.approx({name: smaller.count(name) / len(whole) for name in result.levels})
        observed = 1 - removal.changed
        chance = sum(whole.count(name) * smaller.count(name) for name in result.levels) / len(whole) ** 2
        assert removal.kappa == pytest.approx((observed - chance) / (1 - chance))
    assert max(removal.changed for removal in left_out) > 0
    # Fewer votes are unanimous more easily: no pair leaves easy or hard.
    whole_shares = {name: whole.count(name) / len(whole) for name in ("easy", "hard")}
    assert all(removal.shares[name] >= whole_shares[name] for removal in left_out for name in whole_shares)


def test_a_panel_without_one_model_needs_shares_of_votes() -> None:
    five = panel_of_five()
    scores = {model: five.scores(model) for model in five.models}
    ids = five.table["caption"].to_list(), five.table["image"].to_list()
    assert measure_left_out(assign_levels(*ids, scores, five.thresholds, mapping="easy=4-5 hard=0-3")) == ()
    assert measure_left_out(assign_levels(*ids, {"m0": scores["m0"]}, five.thresholds)) == ()
    shares = assign_levels(*ids, scores, five.thresholds, mapping="easy=80-100% hard=0-79%")
    assert len(measure_left_out(shares)) == 5


@pytest.mark.slow
def test_kappa_equals_scikit_learn_on_1000_random_cases() -> None:
    reference = pytest.importorskip("sklearn.metrics").cohen_kappa_score
    random = np.random.default_rng(2)
    for _ in range(1000):
        size = int(random.integers(2, 30))
        two = random.integers(0, 3, (size, 2)).astype(np.float64)
        if len(np.unique(two)) > 1:
            assert cohen_kappa(two) == pytest.approx(reference(*two.T.astype(int)), nan_ok=True)


def test_filter_loss_equals_counting() -> None:
    result = panel_of_five()
    web = np.arange(10) / 10
    loss = measure_filter_loss(result, "m1", thresholds=[0.5, 2.0], keep=[0.25, 1.0], web_scores=web)
    assert loss.table["threshold"].unique().sort().to_list() == [0.0, 0.5, 0.7, 2.0]
    scores, labels = result.scores("m1"), result.table["difficulty"].to_list()
    for row in loss.table.to_dicts():
        members = [n for n, label in enumerate(labels) if row["level"] in ("all", label)]
        lost = sum(scores[n] < row["threshold"] for n in members)
        assert row["pairs"] == len(members)
        assert row["lost"] == pytest.approx(lost / len(members), nan_ok=True)
        assert row["keeps"] == pytest.approx(np.mean([score >= row["threshold"] for score in web]))
    assert measure_filter_loss(result, "m1").table["threshold"].unique().to_list() == [0.28, 0.3]


def test_filter_loss_is_drawn_level_by_level() -> None:
    result = panel_of_five()
    loss = measure_filter_loss(result, "m1", thresholds=[0.5, 2.0])
    (section,) = loss.sections()
    (chart,) = section.charts
    assert isinstance(chart, Lines)
    assert [line.name for line in chart.series] == [*(level for level in loss.levels if level != "all"), "all"]
    for line in chart.series:
        expected = loss.curve.filter(level=line.name)["lost"].to_list()
        assert [figure.value for figure in line.figures] == expected
    (table,) = section.tables
    assert [row[0] for row in table.rows] == ["0.5", "2"]
    assert table.rows[0][1].value == loss.table["lost"][0]  # type: ignore[union-attr]


def test_filter_loss_of_what_does_not_fit() -> None:
    result = panel_of_five()
    with pytest.raises(UsageError, match="scores of 5 models"):
        measure_filter_loss(result)
    with pytest.raises(UsageError, match="no scores of 'clip'"):
        measure_filter_loss(result, "clip")
    with pytest.raises(UsageError, match="without their scores"):
        measure_filter_loss(result, "m1", keep=[0.5])
    with pytest.raises(UsageError, match=r"keep = 1\.5"):
        measure_filter_loss(result, "m1", keep=[1.5], web_scores=[1.0])
    with pytest.raises(InputError, match="nan among the web scores"):
        measure_filter_loss(result, "m1", keep=[0.5], web_scores=[1.0, float("nan")])
