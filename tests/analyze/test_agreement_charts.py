"""Agreement as charts: the dots are the judged pairs, the line is what people said on average."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.analyze import HumanAgreement
from crosslens.core import Scatter, UsageError
from crosslens.data import Judgements

NASTY = "</script><b>φ</b>"


def measured(n: int = 300, names: tuple[str, ...] = ("first", NASTY)) -> HumanAgreement:
    dataset = cl.Dataset.of({f"i{image}": [f"caption {image} {number}" for number in range(2)] for image in range(40)})
    random = np.random.default_rng(0)
    rows = random.choice(40 * 80, n, replace=False)
    scores = random.integers(1, 5, n)
    people = Judgements.of(
        dataset,
        [dataset.image_ids[row // 80] for row in rows],
        [dataset.caption_ids[row % 80] for row in rows],
        scores.tolist(),
    )
    return cl.agreement(dataset, people, {name: scores + random.normal(size=n) for name in names}, resamples=20)


def charts(agreement: HumanAgreement) -> list[Scatter]:
    (section,) = agreement.sections()
    return [chart for chart in section.charts if isinstance(chart, Scatter)]


def test_dots_are_the_judged_pairs() -> None:
    agreement = measured()
    first, second = charts(agreement)
    assert (first.title, second.title) == ("first", NASTY)
    points = [point for cloud in first.clouds for point in cloud.points]
    assert sorted(points) == sorted(zip(agreement.values["first"], agreement.judgements.scores, strict=True))
    assert 0 < first.spread < 0.5, "the scores remain apart"
    for chart in (first, second):
        across, up = zip(*chart.trends[0].points, strict=True)
        assert np.corrcoef(across, up)[0, 1] > 0.8


def test_many_pairs_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.agreement._MOST_DOTS", 50)
    (chart,) = charts(measured(names=("first",)))
    counts = [len(cloud.points) for cloud in chart.clouds]
    assert max(counts) == 50
    assert f"300 judged pairs, {sum(counts)} of them drawn" in chart.about


def test_the_page_has_charts_and_tables(tmp_path: Path) -> None:
    agreement = measured()
    text = agreement.save(tmp_path / "agreement.html").read_text(encoding="utf-8")
    assert NASTY not in text
    assert "&lt;/script&gt;&lt;b&gt;φ" in text
    assert f"{agreement.figure('first').mean:.3f} <span" in text
    assert text.count('<svg class="chart"') == 2


def test_without_a_phi_there_are_tables_alone() -> None:
    agreement = measured(names=())
    assert charts(agreement) == []
    assert "binary" in agreement.text()


def test_intervals_of_coefficients_are_short() -> None:
    agreement = measured(names=("first",))
    low = agreement.figure("first").low
    assert f"[{low:.3f}".replace("0.", ".") in agreement.text()
    with pytest.raises(UsageError, match="use 'b' or 'c'"):
        replace(agreement, kendall="d").text()
