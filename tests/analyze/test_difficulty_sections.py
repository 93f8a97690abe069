"""How difficulty is shown: pairs in order with every model's verdict, curves, colours of the levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import crosslens as cl
from crosslens.analyze import DifficultyStudy, calibrate
from crosslens.core import Cards, Scatter, Shares
from crosslens.report import LEVEL_COLOURS

DATASET = cl.Dataset.of({"a": ["plain"], "b": ["<script>alert(1)</script>"], "c": ["odd & even"]})
SCORES = {
    "first": np.diag([0.9, 0.1, 0.8]),
    "<b>second</b>": np.diag([0.9, 0.2, 0.4]),
}
THRESHOLDS = {"first": 0.5, "<b>second</b>": 0.5}


@pytest.fixture
def study() -> DifficultyStudy:
    return DifficultyStudy(cl.difficulty(DATASET, SCORES, THRESHOLDS), dataset=DATASET, shown=2)


def cards_of(study: DifficultyStudy) -> Cards:
    (section,) = study.sections()
    (cards,) = (part for part in section.parts if isinstance(part, Cards))
    return cards


def test_pairs_come_hardest_first_with_every_verdict(study: DifficultyStudy) -> None:
    cards = cards_of(study).cards
    assert [card.title for card in cards] == ["0 of 2 votes, b", "1 of 2 votes, c", "2 of 2 votes, a"]
    assert [card.details[0].split(",")[0] for card in cards] == ["hard", "medium", "easy"]
    assert cards[1].details[1:] == ("✓ first: 0.8000 ≥ 0.5000", "✗ <b>second</b>: 0.4000 < 0.5000")
    assert study.text().count("of 2 votes,") == 2
    assert "Hardest pairs" not in replace(study, shown=0).text()


def test_without_pictures_the_other_captions_stand_for_them() -> None:
    dataset = cl.Dataset.of({"a": ["one <b>", "two", "two"], "b": ["alone"]})
    scores = {"only": np.array([[0.1, 0.2, 0.3, 0.0], [0.0, 0.0, 0.0, 0.9]])}
    study = DifficultyStudy(cl.difficulty(dataset, scores, {"only": 0.5}), dataset=dataset)
    told = [[line for line in card.details if line.startswith("also: ")] for card in cards_of(study).cards]
    assert told == [["also: two"], ["also: one <b>"], ["also: one <b>"], []]
    cards = cards_of(replace(study, pictures={"a": "a.jpg"})).cards
    assert not any(line.startswith("also: ") for card in cards for line in card.details)


def test_captions_and_names_are_not_markup(study: DifficultyStudy) -> None:
    page = study.content(".html").decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>second" not in page
    assert "odd &amp; even" in page


def test_of_equal_votes_the_furthest_below_come_first() -> None:
    scores = {"only": np.diag([0.1, 0.3, 0.2])}
    result = cl.difficulty(DATASET, scores, {"only": 0.5})
    assert result.hardest()["image"].to_list() == ["a", "c", "b"]
    assert result.hardest(1)["image"].to_list() == ["a"]


def test_a_level_has_one_colour_on_pages_and_in_files(study: DifficultyStudy) -> None:
    (section,) = study.sections()
    (shares,) = section.charts
    assert isinstance(shares, Shares)
    assert (shares.levels, shares.counts) == (("easy", "medium", "hard"), ((1, 1, 1),))
    for ending in (".html", ".svg"):
        drawn = study.content(ending).decode()
        for level, colour in LEVEL_COLOURS.items():
            assert f'class="strip level-{level}"' in drawn
            assert f".chart .strip.level-{level} {{ fill: {colour}; }}" in drawn
    assert "hard" in study.result.text()


def test_curves_pass_through_their_thresholds() -> None:
    random = np.random.default_rng(0)
    dataset = cl.Dataset.of({f"i{row}": [f"text {row}"] for row in range(40)})
    scores = {name: np.eye(40) + spread * random.normal(size=(40, 40)) for name, spread in (("a", 0.5), ("b", 0.9))}
    calibrations = {name: calibrate(dataset, scores_of_model, model=name) for name, scores_of_model in scores.items()}
    result = cl.difficulty(dataset, scores, {name: calibration.threshold for name, calibration in calibrations.items()})
    (section,) = DifficultyStudy(result, calibrations=calibrations).sections()
    chart = section.charts[1]
    assert isinstance(chart, Scatter)
    for cloud, trend in zip(chart.clouds, chart.trends, strict=True):
        calibration = calibrations[cloud.name]
        assert cloud.points[0] == pytest.approx((100 * calibration.recall, 100 * calibration.precision))
        assert cloud.points[0] in trend.points
    svg = DifficultyStudy(result, calibrations=calibrations).chart(1).svg
    assert svg.count('<g class="s2">\n<polyline class="curve"') == 1, "a curve has the colour of its point"
    given = replace(DifficultyStudy(result), calibrations={})
    assert len(next(iter(given.sections())).charts) == 1, "thresholds that were given have no curve"
