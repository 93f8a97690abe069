"""What the report says is what the runs and the stages hold, and nothing is shown that is not there."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import Effect, Finding, Lines, Precision, Section, Table, Text
from crosslens.core.errors import UsageError
from crosslens.pipeline import NoticedDefect, Sensitivity, StageResult, percent_figure
from crosslens.report import Report, ReportInputs, report_inputs
from crosslens.report.document.inputs import ReportContext
from crosslens.report.document.sections import gallery, hit_rate

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


def finding(text: str, **more: object) -> Finding:
    return replace(Finding("hub", text, "likely", Effect(0.1, 0.05, 0.2, "share of queries"), 0.02, (), None), **more)


def listed(page: str) -> list[str]:
    """The findings of a page."""
    return [plain(item).strip() for item in re.findall(r"<li>(.*?)</li>", page.partition('<div class="findings">')[2])]


def test_findings_are_said_in_the_order_of_the_audit_with_their_certainty(inputs: ReportInputs) -> None:
    first = next(iter(inputs.runs))
    measured = Precision(0.97, 60, "drawn scenes")
    findings = [
        finding("the greater <i>", certainty="settled", p=0.0004, precision=measured, model=first, also=("flickr",)),
        finding("the lesser", certainty="open", p=None),
    ]
    page = report_page(replace(inputs, findings=findings))
    assert listed(page)[:2] == ["the greater <i> The same on flickr. settled", "the lesser open"]
    assert "What the audit found, the first thing first" in plain(page)
    why = "p = 0.0004 after correction over everything that was looked at; 97 % of 60 such sentences were true"
    assert f'<small title="{why} (drawn scenes)">settled</small>' in page
    assert '<small title="how often such sentences are true was not measured">open</small>' in page


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
    for panel, name in zip(panels(report), study.scores, strict=True):
        ranks = np.array(slow_ranks(study, name))
        assert f"{100 * (ranks == 1).mean():.1f} % of 72 captions have a right image first" in plain(panel)


def test_without_an_audit_runs_say_what_their_rankings_prove(inputs: ReportInputs, study: Study) -> None:
    """By the tests of an audit: of the same run twice that they do not differ; of two drawn alike nothing is said."""
    runs = dict(inputs.runs)
    page = report_page(inputs)
    assert not any("best" in line or "better" in line for line in listed(page))
    first = next(iter(runs.values()))
    twice = replace(inputs, runs={"one": first, "other": replace(first, name="other")}, sources={})
    sentences = [line.rpartition(" ")[0] for line in listed(report_page(twice))]  # without how sure it is
    assert "one and other do not differ in t2i/Hit@1: they give the same lists." in sentences
    upside_down = -study.scores["first model"]
    none = cl.evaluate(study.dataset, scores=upside_down, metrics="Hit@1", name="none", resamples=50)
    ahead = replace(inputs, runs={"one": first, "none": none}, sources={})
    assert any(line.startswith("t2i/Hit@1 of one is") for line in listed(report_page(ahead)))


def test_what_the_audit_found_is_not_found_again(inputs: ReportInputs) -> None:
    first = next(iter(inputs.runs.values()))
    findings = [finding(f"finding {number}") for number in range(12)]
    runs = {"one": first, "other": replace(first, name="other")}
    page = report_page(replace(inputs, runs=runs, sources={}, findings=findings))
    assert listed(page)[:10] == [f"finding {number} likely" for number in range(10)]
    assert "finding 10" not in page
    assert "do not differ" not in page
    quiet = StageResult("soundness", {}, "", "one")
    assert '<div class="findings">' not in report_page(replace(inputs, runs=runs, sources={}, results=[quiet]))


# What stages stored of how they are shown


def stored(stage: str, title: str, content: str, model: str = "") -> StageResult:
    section = Section(
        title, (Text.of(content), Table(("what", "value"), (("x", "1"),), "lr", title=f"Table of {title}"))
    )
    return StageResult(stage, {}, "", model, "colours", sections=(section,))


def test_soundness_and_reading_are_shown_as_they_were_stored(inputs: ReportInputs) -> None:
    first, second = inputs.runs
    results = [
        stored("soundness", "Is the input sound?", "nothing <i>", second),
        stored("probes", "Probes", "of words", first),
        stored("twins", "Pairs of images", "of twins", first),
    ]
    report = Report(replace(inputs, results=results))
    targets = [section.target for section in report.sections]
    assert targets[:3] == ["summary", "soundness", "leaderboard"], "unsound input comes first"
    assert targets.index("groups") < targets.index("reading") < targets.index("gallery")
    text = plain(report.page)
    assert f"Is the input sound?: {second} nothing <i> Table of Is the input sound?" in text
    assert text.index(f"Pairs of images: {first} of twins") < text.index(f"Probes: {first} of words")
    assert "nothing &lt;i&gt;" in report.page


def test_what_an_audit_could_have_noticed_is_shown_by_run(inputs: ReportInputs) -> None:
    rows = (NoticedDefect("hub", 0.05, "a hub of 5 % of the captions", 10, 10, 6),)
    sensitivities = [
        Sensitivity(name, rows, {"typos": "this data has nothing to plant it into"}) for name in inputs.runs
    ]
    report = Report(replace(inputs, sensitivities=sensitivities[:1]))
    section = next(section for section in report.sections if section.target == "sensitivity")
    assert section.title == "What this audit could have noticed"
    text = plain(report.page)
    assert "a hub of 5 % of the captions always (10 of 10) 6 of 10" in text
    assert "typos: this data has nothing to plant it into." in text
    both = plain(report_page(replace(inputs, sensitivities=sensitivities)))
    for name in inputs.runs:
        assert f"What this audit could have noticed: {name}" in both
    assert "sensitivity" not in [section.target for section in Report(inputs).sections]


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


# Stages


@pytest.fixture(scope="module")
def whole(drawn: Drawn) -> Report:
    return Report(report_inputs([drawn.audit]))


@pytest.mark.slow
def test_every_stage_has_its_section(whole: Report) -> None:
    assert [section.target for section in whole.sections] == [
        "summary", "soundness", "recalls", "graded", "groups", "reading", "robustness", "gallery", "granularity",
        "causes", "queries", "labels", "figures", "provenance", "reproduce",
    ]  # fmt: skip


@pytest.mark.slow
def test_numbers_of_stages_are_on_the_page(whole: Report, drawn: Drawn) -> None:
    text = plain(whole.page)
    payload = {result.stage: result.payload for result in drawn.results}
    drops = [row for row in payload["robustness"]["drops"] if row["metric"] == "t2i/Hit@1"]
    assert listed(whole.page)[: len(drawn.audit.findings[:10])] == [
        f"{finding.text} {finding.certainty}" for finding in drawn.audit.findings[:10]
    ]
    for row in drops:
        interval = f"{100 * row['drop']:.1f} [{100 * row['low'] + 0.0:.1f}, {100 * row['high']:.1f}]"
        assert interval.replace("-0.0", "0.0") in text
        assert str(percent_figure(row)) in text
    assert f"{payload['explain']['failures']} failures" in text
    for result in drawn.results:
        for section in result.sections if result.stage != "groups" else ():
            assert all(
                plain(line).strip() in text
                for part in section.parts
                if isinstance(part, Text)
                for line in part.sentences
            )
    words = payload["granularity"]["datasets"][0]["features"]["words"]
    assert f"words {words['mean']:.2f} [{words['low']:.2f}, {words['high']:.2f}]" in text
    cases = payload["hard-negatives"]["results"][0]
    assert f"{cases['cases']:,} cases" in text
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
