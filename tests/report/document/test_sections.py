"""What the report says is what the runs and the stages hold, and nothing is shown that is not there."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import Lines
from crosslens.core.errors import UsageError
from crosslens.pipeline import Finding, StageResult, findings_of, percent_figure
from crosslens.report import Report, ReportInputs, report_inputs
from crosslens.report.document.failures import choose_queries
from crosslens.report.document.inputs import ReportContext
from crosslens.report.document.sections import gallery, hit_rate
from tests.report.test_group_chart import made

from .conftest import IMAGES, NASTY, PER_IMAGE, Drawn, Study


def plain(page: str) -> str:
    """The text of a page, without its markup."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def report_page(inputs: ReportInputs) -> str:
    return Report(inputs).page


@pytest.fixture(scope="module")
def inputs(study: Study) -> ReportInputs:
    return report_inputs(study.runs, image_folder=study.folder / "photos", queries=2)


@pytest.fixture(scope="module")
def report(inputs: ReportInputs) -> Report:
    return Report(inputs)


# The whole


def test_sections_without_content_are_left_out(report: Report) -> None:
    targets = [section.target for section in report.sections]
    assert targets == [
        "summary", "leaderboard", "recalls", "graded", "groups", "gallery", "queries", "figures", "provenance",
        "reproduce",
    ]  # fmt: skip
    linked = re.findall(r'<li><a href="#(\w+)">', report.page)
    assert linked == targets
    assert not report.notes


def test_every_chart_has_its_table(report: Report) -> None:
    charts = re.findall(r'<figure class="chart-figure.*?</figure>', report.page, re.DOTALL)
    assert len(charts) >= 5
    for chart in charts:
        assert "<svg" in chart
        assert re.search(r"<details><summary>Table: .*<table>.*<td", chart, re.DOTALL)


def test_captions_and_names_stay_text(report: Report) -> None:
    assert "<script>window" not in report.page
    assert "<img" not in report.page
    assert "second &lt;b&gt;model" in report.page
    assert "second <b>model" not in report.page
    assert NASTY in plain(report.page)


def test_the_page_asks_for_nothing_else(report: Report) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]*)"', report.page)
    assert {address.partition(":")[0] for address in addresses if not address.startswith("#")} == {"data"}
    assert "url(" not in report.page
    assert "@import" not in report.page


def test_a_report_requires_a_run() -> None:
    with pytest.raises(UsageError, match="requires a run"):
        Report(ReportInputs("empty", {}))
    with pytest.raises(UsageError, match="requires a run"):
        report_inputs([])


def test_an_unknown_stage_is_left_out_and_a_damaged_one_noted(inputs: ReportInputs) -> None:
    unknown = StageResult("astrology", {"sign": "leo"}, "crosslens astrology")
    damaged = StageResult("robustness", {"drops": [{"model": "x"}]}, "crosslens robustness")
    report = Report(replace(inputs, results=(unknown, damaged)))
    assert "robustness" not in [section.target for section in report.sections]
    assert any("robustness" in note and "cannot be read" in note for note in report.notes)
    assert "leo" not in plain(report.page)


def test_findings_are_said_in_order_of_importance(inputs: ReportInputs) -> None:
    findings = [Finding("the lesser", 0.2, "ties"), Finding("the greater <i>", 0.9, "groups")]
    text = plain(report_page(replace(inputs, findings=findings)))
    assert text.index("the greater <i>") < text.index("the lesser")


def test_a_run_alone_is_enough() -> None:
    lists = cl.RankedLists.of({query: [item, "other"] for query, item in zip("abc", "xyz", strict=True)})
    relevance = cl.Relevance.from_pairs(list("abc"), list("xyz"))
    run = cl.evaluate(run=lists, relevance=relevance, metrics="Hit@1", resamples=0)
    report = Report(report_inputs([run]))
    assert "100.0 %" in plain(panels(report)[0])
    assert any("names no dataset" in note for note in report.notes)


# The first screen, against counting by hand


def slow_ranks(study: Study, name: str) -> list[int]:
    """The rank of each caption's own image, by sorting."""
    matrix = study.scores[name]
    ranks = []
    for caption in range(IMAGES * PER_IMAGE):
        order = sorted(range(IMAGES), key=lambda image: (-matrix[image, caption], image))
        ranks.append(1 + order.index(caption // PER_IMAGE))
    return ranks


def panels(report: Report) -> list[str]:
    return re.split(r'<div class="panel">', report.page.partition('<div class="findings">')[0])[1:]


def test_the_first_screen_has_a_panel_per_run(report: Report, inputs: ReportInputs) -> None:
    """A large figure with its interval drawn, the strip of ranks, and three failures with both pictures."""
    assert len(panels(report)) == 2
    for panel, run in zip(panels(report), inputs.runs.values(), strict=True):
        values = run["t2i/Hit@1"]
        text = plain(panel)
        assert f"{100 * values.mean:.1f} % of 72 captions have a right image first" in text
        drawn = re.findall(r"<svg class=.chart.*?</svg>", panel, re.DOTALL)
        assert len(drawn) == 2
        assert {f"{100 * values.low:.1f}", f"{100 * values.high:.1f}"} <= set(re.findall(r">([\d.]+)</text>", drawn[0]))
        assert "below 100" in drawn[1]
        cards = re.findall(r'<article class="miss">.*?</article>', panel, re.DOTALL)
        assert len(cards) == 3
        for card in cards:
            assert re.findall(r"<figcaption>(.*?)</figcaption>", card) == ["Expected", "Retrieved first"]
            assert len(re.findall(r'<use href="#p\d+"', card)) == 2
            assert re.search(r"The expected one is at rank \d+ of 24\.", plain(card))
    text = plain(report.page)
    assert text.index("What stands out") > text.index("The expected one"), "sentences come below"


def test_a_report_without_pictures_shows_captions_in_their_place(study: Study) -> None:
    page = Report(report_inputs([study.runs[0]], queries=2)).page
    assert "no picture" not in page
    assert 'class="missing"' not in page
    card = next(iter(re.findall(r'<article class="miss">.*?</article>', page, re.DOTALL)))
    assert "<svg" not in card
    query = re.search(r'<p class="query" dir="auto">(.*?)</p>', card)
    assert query is not None
    told = re.findall(r'<q dir="auto">(.*?)</q>', card)
    assert len(told) == 4, "two captions of each image"
    assert query[1] not in told


def test_of_many_runs_the_best_alone_has_its_failures_on_the_first_screen(study: Study, inputs: ReportInputs) -> None:
    first, second = inputs.runs.values()
    runs = {f"run {number}": replace(first if number else second, name=f"run {number}") for number in range(5)}
    shown = Report(replace(inputs, runs=runs, sources={}))
    assert len(panels(shown)) == 5
    best = ReportContext(replace(inputs, runs=runs)).best(runs)
    assert [('class="miss"' in panel) for panel in panels(shown)] == [name == best for name in runs]


def test_all_metrics_are_folded(report: Report) -> None:
    assert "<details><summary>All metrics</summary>" in report.page


def test_the_first_screen_says_what_counting_says(report: Report, study: Study) -> None:
    text = plain(report.page)
    for name in study.scores:
        ranks = np.array(slow_ranks(study, name))
        first, tenth = (100 * (ranks <= k).mean() for k in (1, 10))
        said = (
            rf"The top result is right for {first:.0f} % \[\d+, \d+\] of captions; one of the first ten is right for "
        )
        assert re.search(rf"{said}{tenth:.0f} %", text)


def test_a_lead_is_called_chance_or_not_by_its_p_value(inputs: ReportInputs) -> None:
    text = plain(report_page(inputs))
    comparison = cl.compare(*inputs.runs.values(), metrics="t2i/Hit@1")
    chance = comparison.results[0].adjusted_p >= 0.05
    best = ReportContext(inputs).best(dict(inputs.runs))
    assert f"{best} is best by t2i/Hit@1" in text
    assert ("which may be chance" in text) == chance
    assert ("more than chance explains" in text) != chance


def test_without_an_audit_the_worst_group_of_a_column_is_named() -> None:
    run = made("v0", 30)
    groups = cl.by(run, "task", "t2i/Hit@1").values["t2i/Hit@1"]
    worst, best = (choose(groups, key=lambda group: groups[group].mean) for choose in (min, max))
    assert groups[worst].high < groups[best].low
    text = plain(report_page(report_inputs([run])))
    assert f"By task, t2i/Hit@1 is lowest for {worst}: {100 * groups[worst].mean:.0f} %" in text
    assert "By things" not in text, "its groups do not differ"


def test_what_the_audit_found_is_not_found_again(inputs: ReportInputs) -> None:
    findings = [Finding(f"finding {number}", 1 - number / 100, "ties") for number in range(12)]
    page = report_page(replace(inputs, findings=findings))
    assert "The top result is right" not in page
    assert "<li>finding 9</li></ol>" in page, "ten of them"


# Sizes of galleries


def test_the_curve_over_sizes_ends_at_the_hit_rate(study: Study, inputs: ReportInputs) -> None:
    run = cl.Run.load(study.runs[0])
    section = gallery(ReportContext(inputs))
    assert section is not None
    *_, chart = section.figures()
    assert isinstance(chart, Lines)
    assert (chart.across[-1], chart.series[0].figures[-1].value) == (IMAGES, pytest.approx(run["t2i/Hit@1"].mean))
    ranks = slow_ranks(study, "first model")
    for k in (1, 5, 10):
        assert hit_rate(ranks, k) == pytest.approx(run[f"t2i/Hit@{k}"].mean)
    assert hit_rate([-1, 1], 10) == 0.5


# The most instructive queries


Outcomes = list[tuple[int, float]]


def outcomes(rows: Outcomes) -> pl.DataFrame:
    """Queries by their rank and margin; a margin is known down to rank 10."""
    table = {
        "query": [f"q{number:02}" for number in range(len(rows))],
        "rank": [rank for rank, _ in rows],
        "score": [1.0] * len(rows),
        "margin": [None if rank > 10 else 0.0 if rank == 1 else margin for rank, margin in rows],
        "margin_at_least": [margin if rank > 10 else None for rank, margin in rows],
    }
    kinds = {"query": pl.String, "rank": pl.Int64, "score": pl.Float64, "margin": pl.Float64,
             "margin_at_least": pl.Float64}  # fmt: skip
    return pl.DataFrame(table, schema=kinds)


ROWS = st.lists(st.tuples(st.integers(1, 15), st.sampled_from([0.1, 0.2, 0.3, 0.4])), min_size=1, max_size=20)


@given(ROWS, st.data(), st.integers(1, 4))
def test_queries_are_chosen_as_by_looking_at_all(first: Outcomes, data: st.DataObject, most: int) -> None:
    second = [(data.draw(st.integers(1, 15)), 0.1) for _ in first]
    phi = {f"q{number:02}": data.draw(st.sampled_from([0.0, 0.5, 1.0])) for number in range(len(first))}
    table = pl.DataFrame(
        {"query": list(phi), "phi": list(phi.values())}, schema={"query": pl.String, "phi": pl.Float64}
    )
    groups = choose_queries({"a": outcomes(first), "b": outcomes(second)}, "a", most, table)
    names = {f"q{number:02}": row for number, row in enumerate(first)}
    after = {f"q{number:02}": row for number, row in enumerate(second)}
    failed = [query for query, (rank, _) in names.items() if rank != 1]
    change = {query: 1 / after[query][0] - 1 / names[query][0] for query in names}
    wanted = {
        "Confident failures": sorted(failed, key=lambda query: (-names[query][1], query)),
        "First hits with similar captions": sorted(
            (q for q in failed if phi[q]), key=lambda query: (-phi[query], query)
        ),
        "Queries that b wins against a": sorted((q for q in names if change[q] > 0), key=lambda q: (-change[q], q)),
        "Queries that b loses against a": sorted((q for q in names if change[q] < 0), key=lambda q: (change[q], q)),
        "Near misses": sorted((q for q in failed if names[q][0] == 2), key=lambda query: (names[query][1], query)),
    }
    shown: list[str] = []
    expected = {}
    for title, order in wanted.items():
        chosen = [query for query in order if query not in shown][:most]
        shown += chosen
        expected |= {title: tuple(chosen)} if chosen else {}
    assert {group.title: group.queries for group in groups} == expected
    assert all(len(group.facts) == len(group.queries) for group in groups)


def test_queries_show_their_pictures_and_both_runs(report: Report) -> None:
    article = next(part for part in re.findall(r'<article class="one-query">.*?</article>', report.page, re.DOTALL))
    assert article.count("<figure") == 3
    assert len(re.findall(r'<use href="#p\d+"', article)) == 3
    assert 'aria-label="Right image picture' in article
    assert report.pictures == report.pictures_wanted > 3


# Stages


@pytest.fixture(scope="module")
def whole(drawn: Drawn) -> Report:
    return Report(replace(report_inputs([drawn.run]), results=drawn.results))


@pytest.mark.slow
def test_every_stage_has_its_section(whole: Report) -> None:
    assert not whole.notes
    assert [section.target for section in whole.sections] == [
        "summary", "recalls", "graded", "groups", "robustness", "gallery", "granularity", "causes", "queries", "labels",
        "figures", "provenance", "reproduce",
    ]  # fmt: skip


@pytest.mark.slow
def test_numbers_of_stages_are_on_the_page(whole: Report, drawn: Drawn) -> None:
    text = plain(whole.page)
    payload = {result.stage: result.payload for result in drawn.results}
    drops = [row for row in payload["robustness"]["drops"] if row["metric"] == "t2i/Hit@1"]
    for finding in sorted(findings_of(drawn.results), key=lambda finding: -finding.importance)[:10]:
        assert finding.text in text
    for row in drops:
        interval = f"{100 * row['drop']:.1f} [{100 * row['low'] + 0.0:.1f}, {100 * row['high']:.1f}]"
        assert interval.replace("-0.0", "0.0") in text
        assert str(percent_figure(row)) in text
    assert f"{payload['explain']['failures']} failures" in text
    assert f"{payload['missing-positives']['kept']:,} pairs outside the ground truth" in text
    assert f"{payload['label-quality']['suspects']:,} labels of scenes-v0 to correct" in text
    words = payload["granularity"]["datasets"][0]["features"]["words"]
    assert f"words {words['mean']:.2f} [{words['low']:.2f}, {words['high']:.2f}]" in text
    cases = payload["hard-negatives"]["results"][0]
    assert f"over {cases['cases']:,} cases" in text
    for result in drawn.results:
        assert result.command in text


@pytest.mark.slow
def test_failures_are_drawn_with_their_boxes(whole: Report) -> None:
    causes = next(section for section in whole.sections if section.target == "causes")
    section = "\n".join(part for part in causes.parts if isinstance(part, str))
    assert section.count('class="box"') > 3
    assert section.count('<article class="failure">') >= 2
    assert re.search(r'<div class="pair"><figure><svg.*?<use href="#p\d+"', whole.page, re.DOTALL)


def test_image_queries_are_shown_with_the_caption_that_they_retrieved(study: Study) -> None:
    matrix = study.scores["first model"]
    run = cl.evaluate(study.dataset, scores=matrix, metrics="Hit@1", directions=("i2t",), resamples=50)
    report = Report(report_inputs([run], dataset=study.dataset, image_folder=study.folder / "photos", queries=2))
    text = plain(report.page)
    hits = np.argmax(matrix, axis=1) // PER_IMAGE == np.arange(IMAGES)
    assert f"{100 * hits.mean():.1f} % of {IMAGES} images have a right caption first" in text
    article = next(part for part in re.findall(r"<article.*?</article>", report.page, re.DOTALL))
    assert "Query image" in article
    assert "<q dir" in article
    assert not report.notes
