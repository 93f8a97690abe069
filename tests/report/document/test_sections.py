"""What the report says is what the runs and the stages hold, and nothing is shown that is not there."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape, unescape

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.audits import NoticedDefect, Sensitivity, StageResult
from crosslens.core import (
    EvidenceList,
    Figure,
    Folded,
    Heat,
    Intervals,
    Lines,
    Row,
    Section,
    SmallMultiples,
    Table,
    Text,
    UsageError,
    flat,
)
from crosslens.report import Report, ReportInputs, report_inputs
from crosslens.report.document.context import ReportContext, binned, common_edges
from crosslens.report.document.sections import groups, numbers, reading

from .conftest import COLOURS, IMAGES, NASTY, PER_IMAGE, Drawn, Study


def plain(page: str) -> str:
    """The text of a page, without its markup."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


@pytest.fixture(scope="module")
def inputs(study: Study) -> ReportInputs:
    return report_inputs(study.runs, image_folder=study.folder / "photos", queries=2)


@pytest.fixture(scope="module")
def report(inputs: ReportInputs) -> Report:
    return Report(inputs)


def folds(section: Section) -> list[str]:
    return [part.title for part in section.parts if isinstance(part, Folded)]


def section_of(report: Report, target: str) -> Section:
    return next(section for section in report.sections if section.target == target)


# The whole


def test_sections_without_content_are_left_out(report: Report) -> None:
    assert [section.target for section in report.sections] == ["answer", "better", "groups", "misses", "numbers"]
    assert not report.notes


def test_figures_on_one_scale_have_their_numbers_beside_them(report: Report) -> None:
    page = report.page
    for chart in re.findall(r'<figure class="chart-figure.*?</figure>', page, re.DOTALL):
        assert "<svg" in chart
        assert re.search(r"<details><summary>Table: .*<table>.*<td|class=\"value\"", chart, re.DOTALL)
    assert 'style="' not in page


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


def test_a_new_stage_needs_no_line_here(inputs: ReportInputs) -> None:
    """What a stage stored is shown; one that stored nothing is left out."""
    empty = StageResult("astrology", {"sign": "leo"}, "crosslens astrology")
    kept = StageResult("geology", {}, "", sections=(Section("Stones", (Text.of("granite <i>"),)),))
    report = Report(replace(inputs, results=(empty, kept)))
    section = section_of(report, "numbers")
    assert "geology" in folds(section)
    assert "astrology" not in folds(section)
    assert "granite &lt;i&gt;" in report.page
    assert "leo" not in plain(report.page)


def test_changes_are_called_by_their_phrases_in_folded_tables_too() -> None:
    """Commands ask for the names of perturbations; a page says what was done."""
    stored = Table(("perturbation", "lost"), [("original", 0), ("char_swap", 5), ("blur@2", 3), ("my_own", 1)])
    maps = Heat(title="Drop", rows=("char_swap", "mean"), columns=("m",), cells=((Figure(5.0),), (Figure(5.0),)))
    result = StageResult("robustness", {}, "", "m", sections=(Section("", (stored, Row((maps,)))),))
    run = cl.evaluate(
        cl.Dataset.of({f"i{row}": [f"caption {row}"] for row in range(4)}), scores=np.eye(4), metrics="Hit@1", name="m"
    )
    section = reading(ReportContext(ReportInputs("t", {"m": run}, (result,))))
    assert section is not None
    tables = [part for part in flat(section.parts) if isinstance(part, Table)]
    assert [[row[0] for row in table.rows] for table in tables] == [
        ["original", "swapped letters", "blur (severity 2)", "my own"]
    ]
    (heat,) = (chart for chart in section.charts if isinstance(chart, Heat))
    assert heat.rows == ("swapped letters", "mean")


def test_a_damaged_result_costs_its_section_alone(inputs: ReportInputs) -> None:
    damaged = StageResult("missing-positives", {}, "", sections=(Section("x", (3,)),))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Report(replace(inputs, results=(damaged,)))


def test_a_run_alone_is_enough() -> None:
    lists = cl.RankedLists.of({query: [item, "other"] for query, item in zip("abc", "xyz", strict=True)})
    relevance = cl.Relevance.from_pairs(list("abc"), list("xyz"))
    run = cl.evaluate(run=lists, relevance=relevance, metrics="Hit@1", resamples=0)
    report = Report(report_inputs([run]))
    assert "for 100 of 100" in report.sections[0].title
    assert any("names no dataset" in note for note in report.notes)


def test_of_lists_that_end_nothing_is_said_below_their_end() -> None:
    """Of ten items the lists have two: how many are among five or ten is not known."""
    others = [f"other {number}" for number in range(9)]
    ranked = {query: [item, others[row]] for row, (query, item) in enumerate(zip("abc", "xyz", strict=True))}
    ranked["d"] = others[3:5]
    relevance = cl.Relevance.from_pairs(list("abcd"), ["x", "y", "z", "other 8"])
    run = cl.evaluate(run=cl.RankedLists.of(ranked), relevance=relevance, metrics="Hit@1", resamples=0)
    section = numbers(ReportContext(report_inputs([run])))
    (folded,) = [part for part in section.parts if isinstance(part, Folded) and part.title.startswith("How deep")]
    (row, text) = folded.parts
    assert isinstance(row, Row)
    (chart,) = row.charts
    assert isinstance(chart, Lines)
    assert chart.across == (1, 2), "not 5 and 10, where more may be relevant"
    assert [figure.value for figure in chart.series[0].figures] == [0.75, 0.75]
    assert (folded.title, text) == ("How deep", Text.of("", note=True))


# Against counting by hand


def slow_ranks(study: Study, name: str) -> list[int]:
    """The rank of each caption's own image, by sorting."""
    matrix = study.scores[name]
    ranks = []
    for caption in range(IMAGES * PER_IMAGE):
        order = sorted(range(IMAGES), key=lambda image: (-matrix[image, caption], image))
        ranks.append(1 + order.index(caption // PER_IMAGE))
    return ranks


def test_the_answer_says_what_counting_says(report: Report, study: Study) -> None:
    means = {name: np.mean(np.array(slow_ranks(study, name)) == 1) for name in study.scores}
    best, second = sorted(means, key=lambda name: -means[name])
    beginning = f"{best} finds the right picture for {100 * means[best]:.0f} of 100 captions, {second} for"
    assert report.sections[0].title.startswith(beginning)
    (strip,) = report.sections[0].charts
    assert isinstance(strip, Intervals)
    assert {row.name: row.figure.value for row in strip.rows} == pytest.approx(means)


def test_every_metric_is_in_one_table(report: Report, inputs: ReportInputs) -> None:
    section = section_of(report, "numbers")
    for name in next(iter(inputs.runs.values())):
        short = name.partition("/")[2] or name
        assert short.split("@")[0] in " ".join(
            str(cell) for table in section.tables for row in table.rows for cell in row[:2]
        )
    titles = [part.title for part in flat(section.parts) if isinstance(part, Table)]
    assert len([title for title in titles if title]) == len({title for title in titles if title})


def test_groups_stand_on_one_scale_and_are_coloured_where_they_differ(study: Study, inputs: ReportInputs) -> None:
    section = groups(ReportContext(inputs))
    assert section is not None
    chart = next(part for part in section.parts if isinstance(part, SmallMultiples))
    rows = [row for row in chart.rows if row.group == "by colour"]
    assert {row.name for row in rows} == set(COLOURS)
    for number, name in enumerate(study.scores):
        hits = np.array(slow_ranks(study, name)) == 1
        for row in rows:
            inside = [COLOURS[caption // PER_IMAGE % 4] == row.name for caption in range(IMAGES * PER_IMAGE)]
            cell = row.cells[number]
            assert cell is not None
            assert cell.figure.value == pytest.approx(hits[inside].mean())
    assert rows[0].name == "grey", "the weakest first"
    assert "by file" not in {row.group for row in chart.rows}


def test_a_dot_opens_the_misses_of_its_group(study: Study, inputs: ReportInputs) -> None:
    section = groups(ReportContext(inputs))
    assert section is not None
    chart = next(part for part in section.parts if isinstance(part, SmallMultiples))
    (behind,) = (part for part in section.parts if isinstance(part, Folded) and part.title.startswith("The misses"))
    lists = {part.target: part for part in behind.parts if isinstance(part, EvidenceList)}
    assert len(lists) == len(behind.parts) > 4
    dots = [(number, row, cell) for row in chart.rows for number, cell in enumerate(row.cells) if cell is not None]
    for number, row, cell in dots:
        if row.group != "by colour":
            continue
        missed = np.flatnonzero(np.array(slow_ranks(study, list(study.scores)[number])) != 1)
        inside = {caption for caption in missed if COLOURS[caption // PER_IMAGE % 4] == row.name}
        listed = lists.pop(cell.address.removeprefix("#"))
        assert f"colour {row.name}" in listed.title
        assert f": {len(inside)} of " in listed.title
        ids = {study.dataset.caption_ids[caption] for caption in inside}
        assert {query for query, _ in listed.entries} <= ids
        assert len(listed.entries) == min(len(ids), 12)
    assert {cell.address for _, row, cell in dots if row.group != "by colour"} - {""} == {f"#{name}" for name in lists}


def test_groups_are_coloured_only_where_the_corrected_interval_leaves_out_the_mean() -> None:
    random = np.random.default_rng(0)
    hits = np.array([row % 2 == 0 or row % 4 == 1 for row in range(160)])  # of odd rows, half
    images = {"kind": ["even", "odd"] * 80, "noise": [f"part {part}" for part in random.integers(0, 8, 160)]}
    data = cl.Dataset.of({f"i{row}": [f"caption {row}"] for row in range(160)}, images=images, name="planted")
    scores = np.zeros((160, 160), np.float32)
    scores[np.where(hits, np.arange(160), (np.arange(160) + 1) % 160), np.arange(160)] = 1
    run = cl.evaluate(data, scores=scores, metrics="Hit@1", name="m", resamples=200)
    section = groups(ReportContext(ReportInputs("t", {"m": run})))
    assert section is not None
    chart = next(part for part in section.parts if isinstance(part, SmallMultiples))
    tones = {(row.group, row.name): row.cells[0].tone for row in chart.rows if row.cells[0] is not None}
    assert (tones["by kind", "even"], tones["by kind", "odd"]) == ("good", "bad")
    assert {tone for (group, _), tone in tones.items() if group == "by noise"} == {"unsure"}


def test_numbers_that_number_rows_are_no_groups_and_lengths_have_common_bins() -> None:
    runs = []
    for name, words in (("x", 3), ("y", 9)):
        captions = {f"i{row}": [" ".join(["word"] * (1 + (row % words) * 3)) + f" {row}"] for row in range(60)}
        data = cl.Dataset.of(captions, images={"Nr": list(range(60)), "width": [100 + row % 3 for row in range(60)]},
                             name=name)  # fmt: skip
        runs.append(cl.evaluate(data, scores=np.eye(60, dtype=np.float32), metrics="Hit@1", name=name, resamples=50))
    context = ReportContext(ReportInputs("t", {run.name: run for run in runs}))
    assert context.columns() == ["caption_length"]
    grouped = context.grouped("caption_length")
    bins = {name: set(groups) for name, groups in grouped.items()}
    assert bins["x"] <= bins["y"], "the same bins for both"
    assert all(re.fullmatch(r"\d+ to \d+|\d+", group) for groups in bins.values() for group in groups)
    assert sum(values.n for values in grouped["y"].values()) == 60


def test_without_an_audit_runs_say_what_their_rankings_prove(inputs: ReportInputs, study: Study) -> None:
    """By the tests of an audit: of the same run twice that they do not differ; of two drawn alike nothing is said."""
    first = next(iter(inputs.runs.values()))
    twice = replace(inputs, runs={"one": first, "other": replace(first, name="other")}, sources={})
    assert "one and other do not differ in t2i/Hit@1: they give the same lists." in plain(Report(twice).page)
    none = cl.evaluate(study.dataset, scores=-study.scores["first model"], metrics="Hit@1", name="none", resamples=50)
    ahead = Report(replace(inputs, runs={"one": first, "none": none}, sources={}))
    assert "t2i/Hit@1 of one is" in plain(ahead.page)
    assert "is open" not in ahead.sections[0].title


def test_what_an_audit_could_have_noticed_is_shown_by_run(inputs: ReportInputs) -> None:
    rows = (NoticedDefect("hub", 0.05, "a hub of 5 % of the captions", 10, 10, 6),)
    sensitivities = [
        Sensitivity(name, rows, {"typos": "this data has nothing to plant it into"}) for name in inputs.runs
    ]
    text = plain(Report(replace(inputs, sensitivities=sensitivities[:1])).page)
    assert "What this audit could have noticed" in text
    assert "a hub of 5 % of the captions always (10 of 10) 6 of 10" in text
    both = plain(Report(replace(inputs, sensitivities=sensitivities)).page)
    for name in inputs.runs:
        assert f"What this audit could have noticed: {name}" in both
    assert "What this audit could have noticed" not in plain(Report(inputs).page)


def test_the_curve_over_sizes_ends_at_the_hit_rate(study: Study, inputs: ReportInputs) -> None:
    run = cl.Run.load(study.runs[0])
    chart = next(chart for chart in numbers(ReportContext(inputs)).charts if "size of the gallery" in chart.title)
    assert isinstance(chart, Lines)
    assert (chart.across[-1], chart.series[0].figures[-1].value) == (IMAGES, pytest.approx(run["t2i/Hit@1"].mean))
    chart = next(chart for chart in numbers(ReportContext(inputs)).charts if chart.title == "Hit@k, t2i")
    assert isinstance(chart, Lines)
    at_k = dict(zip(chart.across, chart.series[0].figures, strict=True))
    for k in (1, 5, 10):
        assert at_k[k].value == pytest.approx(run[f"t2i/Hit@{k}"].mean)


def test_figures_open_the_queries_that_they_count_as_missed(study: Study, inputs: ReportInputs, report: Report) -> None:
    strip = next(part for part in flat(report.sections[0].parts) if isinstance(part, Intervals))
    assert [row.address for row in strip.rows] == [f"#misses-of-{name}" for name in inputs.runs]
    table = next(table for table in report.sections[-1].tables if table.drawn)
    figures = {str(row[0]).rpartition("(")[2].rstrip(")"): row[1] for row in table.rows}
    addresses = {metric: figure.address for metric, figure in figures.items() if isinstance(figure, Figure)}
    first = next(iter(inputs.runs))
    assert addresses["t2i/Hit@1"] == f"#misses-of-{first}"
    assert addresses["t2i/Hit@5"] == f"#misses-of-{first}-t2i-beyond-5"
    assert addresses["i2t/Hit@1"] == f"#misses-of-{first}-i2t-beyond-1", "pictures that ask, too"
    missed = round(IMAGES * (1 - inputs.runs[first]["i2t/Hit@1"].mean))
    assert f"i2t/Hit@1, {first}: {missed} of {IMAGES} missed" in plain(report.page)
    assert all(f'id="{escape(address[1:])}"' in report.page for address in addresses.values() if address)
    beyond = sum(rank > 5 for rank in slow_ranks(study, first))
    assert f"Hit@5, {first}: {beyond} of {IMAGES * PER_IMAGE} missed" in plain(report.page)


def test_bins_of_whole_numbers_are_whole() -> None:
    lengths = pl.Series("length", [None, *range(3, 41)])
    edges = common_edges([lengths])
    assert edges is not None
    names = binned(lengths, edges)
    assert names[0] is None
    assert names.drop_nulls().unique(maintain_order=True).to_list() == ["3 to 12", "13 to 21", "22 to 30", "31 to 40"]


# Stages


@pytest.fixture(scope="module")
def whole(drawn: Drawn) -> Report:
    return Report(report_inputs([drawn.audit]))


@pytest.mark.slow
def test_every_stage_has_its_place(whole: Report, drawn: Drawn) -> None:
    targets = [section.target for section in whole.sections]
    assert targets[0] == "answer"
    assert {"groups", "reading", "labels", "misses", "numbers"} <= set(targets)
    text = plain(whole.page)
    for finding in drawn.audit.findings:
        assert finding.text in text
    for result in drawn.results:
        assert result.command in text
        for section in result.sections:
            for table in section.tables:
                figures = [cell for row in table.rows for cell in row if isinstance(cell, Figure) and cell.known]
                assert all(figure.number in text for figure in figures[:5]), result.stage
