"""The overview of a run of the built-in scenes: every figure again, one failure at a time."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import ConflictError, EvidenceList, Figure, InputError, PairedBars
from crosslens.explanations import (
    CAUSES,
    Overview,
    cause_column,
    compare_overviews,
    explain_run,
    objects_of,
    save_overview,
    tabulate_overviews,
)
from crosslens.explanations.causes import OUTCOMES
from crosslens.explanations.concepts import METRICS, compare_images
from crosslens.explanations.mentions import mentioned_concepts
from crosslens.explanations.overview import confusion_bars
from crosslens.explanations.statistics import SCOPES, column_of, metric_means
from crosslens.statistics import Bootstrap
from crosslens.values import Run


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> cl.Dataset:
    from crosslens.synth import write_scenes

    folder = tmp_path_factory.mktemp("scenes") / "scenes"
    write_scenes(folder, images=36, seed=3, workers=1)
    return cl.load_dataset(str(folder))


def run_of(scenes: cl.Dataset, folder: Path, noise: float, name: str) -> Run:
    """A model that is right but for noise: images and their captions lie near each other."""
    draws = np.random.default_rng(1)
    images = draws.normal(size=(len(scenes.image_ids), 24))
    captions = images[scenes.caption_image] + noise * np.random.default_rng(2).normal(size=(scenes.captions.height, 24))
    return cl.evaluate(
        scenes,
        images=cl.Embeddings(scenes.image_ids, images),
        captions=cl.Embeddings(scenes.caption_ids, captions),
        metrics=["Hit@1"],
        resamples=0,
        output=folder / name,
    )


@pytest.fixture(scope="module")
def runs(scenes: cl.Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return run_of(scenes, folder, 1.6, "noisy"), run_of(scenes, folder, 1.1, "better")


@pytest.fixture(scope="module")
def overview(scenes: cl.Dataset, runs: tuple[Run, Run]) -> Overview:
    return explain_run(runs[0], scenes, "t2i", resamples=50)


def test_every_metric_is_that_of_its_failure(scenes: cl.Dataset, overview: Overview) -> None:
    objects = objects_of(scenes)
    words = mentioned_concepts(overview.failures["text"].to_list())
    for row, query in list(zip(overview.failures.to_dicts(), words, strict=True))[::5]:
        right, wrong = (int(row_number) for row_number in objects.rows([row["ground_truth"], row["retrieved"]]))
        for scope, mentioned in zip(SCOPES, (None, query.mentioned(objects.synsets)), strict=True):
            slow = compare_images(objects, right, wrong, mentioned=mentioned)
            fast = {name: row[column_of(name, scope)] for name in METRICS}
            assert fast == pytest.approx({name: slow[name] for name in METRICS}, nan_ok=True)


def test_means_are_over_the_failures_that_define_them(overview: Overview) -> None:
    for row in overview.metrics.to_dicts():
        values = overview.failures[column_of(row["metric"], row["scope"])].drop_nulls()
        assert (row["defined"], row["undefined"]) == (values.len(), overview.failures.height - values.len())
        assert row["mean"] == pytest.approx(values.mean()) if values.len() else row["mean"] is None
        if row["low"] is not None:
            assert row["low"] <= row["mean"] <= row["high"]
    hits = overview.metrics.filter((pl.col("scope") == "all") & (pl.col("metric") == "object_hit"))
    assert hits["total"][0] == overview.failures["object_hit"].sum()


def test_totals_are_sums_over_single_failures(scenes: cl.Dataset, overview: Overview) -> None:
    """Sets and counts of synsets by hand; the matchings of a complete bipartite graph fill its smaller side."""
    objects = objects_of(scenes)
    words = mentioned_concepts(overview.failures["text"].to_list())
    for scope in SCOPES:
        common = rest = matchings = same = 0
        errors = []
        for row, query in zip(overview.failures.to_dicts(), words, strict=True):
            sides = []
            for image in (row["ground_truth"], row["retrieved"]):
                synsets = [objects.synset(index) for index in objects.inside(int(objects.rows([image])[0]))]
                mentioned = query.mentioned(objects.synsets) if scope == "query" else objects.synsets
                sides.append([synset for synset in synsets if synset in mentioned])
            right, wrong = (set(side) for side in sides)
            common += len(right & wrong)
            rest += len(right ^ wrong)
            matchings += min(len(right - wrong), len(wrong - right))
            differences = [abs(sides[0].count(synset) - sides[1].count(synset)) for synset in right & wrong]
            same += differences.count(0)
            errors.append(sum(differences))
        expected = {
            "scope": scope, "common_synsets": common, "non_common_synsets": rest, "matchings": matchings,
            "same_multiplicity": same, "different_multiplicities": common - same,
            "most_common_CE": min(set(errors), key=lambda error: (-errors.count(error), error)),
        }  # fmt: skip
        (totals,) = overview.totals.filter(pl.col("scope") == scope).to_dicts()
        assert {name: totals[name] for name in expected} == expected
        assert totals["same_share"] == pytest.approx(same / common)
        assert totals["same_share"] + totals["different_share"] == pytest.approx(1)
        assert totals["most_common_CE_failures"] == errors.count(expected["most_common_CE"])
    assert overview.as_dict()["totals"] == overview.totals.to_dicts()
    text = overview.text()
    totals = overview.totals.row(0, named=True)
    assert re.search(rf"same multiplicity \(% of common\) +{totals['same_multiplicity']:,} \(", text)
    assert re.search(rf"most common CE \(failures\) +{totals['most_common_CE']} \(", text)


def test_all_failures_and_only_they(scenes: cl.Dataset, overview: Overview) -> None:
    assert overview.queries.height == scenes.captions.height
    assert (overview.failures["ground_truth"] != overview.failures["retrieved"]).all()
    assert overview.causes["main"].sum() == overview.failures.height
    assert overview.causes["cause"].to_list() == list(OUTCOMES)
    wrong = overview.causes.filter(pl.col("cause") == "object").row(0, named=True)
    assert 0 < wrong["count"] <= wrong["asked"]


def test_a_cause_that_most_failures_leave_undecided_is_open(overview: Overview) -> None:
    """Of 193 failures that ask for a position 187 cannot be decided: 0.0 % with a narrow interval would be false."""
    cause, asked, undecided = pl.col("cause"), pl.lit(193), pl.lit(187)
    planted = overview.causes.with_columns(
        asked=pl.when(cause.is_in(["position", "object"])).then(asked).otherwise("asked"),
        open=pl.when(cause == "position").then(undecided).when(cause == "object").then(6).otherwise("open"),
    )
    sections = {section.title: section for section in replace(overview, causes=planted).sections()}
    rows = {row[0]: row[1:] for row in sections["Causes"].tables[0].rows}
    assert rows["position"][:2] + rows["position"][3:] == (193, 187, "open", "open")
    assert [type(cell) for cell in rows["object"][3:]] == [Figure, Figure]


def test_failures_by_their_number_of_causes(overview: Overview) -> None:
    counts: dict[int, int] = {}
    for row in overview.failures.to_dicts():
        number = sum(row[cause_column(cause)] is True for cause in CAUSES)
        counts[number] = counts.get(number, 0) + 1
    assert len(counts) > 2, "the scenes have failures with none, one and two causes"
    table = overview.cause_numbers.to_dicts()
    assert [row["causes"] for row in table] == list(range(max(counts) + 1))
    assert {row["causes"]: row["count"] for row in table if row["count"]} == counts
    caused = sum(count for number, count in counts.items() if number)
    for row in table:
        assert row["share"] == pytest.approx(row["count"] / overview.failures.height)
        assert row["low"] <= row["share"] <= row["high"]
        assert row["of_caused"] == (pytest.approx(row["count"] / caused) if row["causes"] else None)
    alone = overview.causes["alone"].drop_nulls().sum()
    assert alone == counts.get(1, 0)
    assert "Number of causes" in overview.text()
    assert overview.as_dict()["cause_numbers"] == table


def test_several_runs_in_one_table(scenes: cl.Dataset, runs: tuple[Run, Run], overview: Overview) -> None:
    second_overview = explain_run(runs[1], scenes, "t2i", resamples=50)
    table = tabulate_overviews({"first": overview, "second": second_overview})
    for name, overview_of_run in (("first", overview), ("second", second_overview)):
        rows = table.metrics.filter((pl.col("run") == name) & (pl.col("scope") == "all"))
        by_metric = {row["metric"]: row for row in rows.to_dicts()}
        failures = overview_of_run.failures.to_dicts()
        assert by_metric["Fails"]["mean"] == pytest.approx(len(failures) / overview_of_run.queries.height)
        assert by_metric["object_hit"]["total"] == sum(row["object_hit"] for row in failures)
        wrong = [row["wrong_counts"] for row in failures]
        assert by_metric["wrong_counts"]["mean"] == pytest.approx(sum(wrong) / len(wrong))
        agreement = [row["CA"] for row in failures if row["CA"] is not None]
        assert by_metric["CA"]["mean"] == pytest.approx(sum(agreement) / len(agreement))
        ends = [by_metric["CA"][key] for key in ("low", "mean", "high")]
        assert ends == sorted(ends)
        assert name == "first" or by_metric["CE"]["low"] is None, "counts of too few failures have no interval"
        assert {row["failures"] for row in rows.to_dicts()} == {len(failures)}
    assert [row["run"] for row in table.as_dict()["runs"]] == ["first", "second"]
    text = table.text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert not any("[" in line for line in text.splitlines() if line.startswith("first")), "intervals do not fit here"
    assert "a box that shrank never does" in text.replace("\n", " ")
    wide = table.text().splitlines()
    assert all("[" in line for line in wide if line.startswith("first"))
    with pytest.raises(InputError, match="direction"):
        tabulate_overviews({"first": overview, "second": explain_run(runs[1], scenes, "i2t", resamples=0)})


def test_what_sd_does_not_see_is_said(scenes: cl.Dataset, runs: tuple[Run, Run], overview: Overview) -> None:
    shrank = "a box that shrank never does"
    assert shrank in overview.text().replace("\n", " ")
    symmetric = explain_run(runs[0], scenes, "t2i", base="min", resamples=0)
    assert shrank not in symmetric.text().replace("\n", " ")
    for query in overview.failures["query"][:20]:
        explained = cl.explain(runs[0], query, dataset=scenes, direction="t2i")
        shrunk = any(box["ratio"] < 0.5 for box in explained.boxes)
        assert any("SD divides by" in note for note in explained.notes) == shrunk


def test_confusions_and_pairs(overview: Overview) -> None:
    assert overview.confusions["count"].sum() == overview.pairs.height == overview.failures["concept_pairs"].sum()


def test_deterministic_and_atomic(
    scenes: cl.Dataset, runs: tuple[Run, Run], overview: Overview, tmp_path: Path
) -> None:
    again = explain_run(runs[0], scenes, "t2i", resamples=50)
    folders = [save_overview(item, tmp_path / name) for item, name in ((overview, "one"), (again, "two"))]
    names = sorted(file.name for file in folders[0].iterdir())
    assert names == ["confusions.parquet", "failures.parquet", "overview.json", "query-confusions.parquet", "rules.csv"]
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    content = json.loads((folders[0] / "overview.json").read_text())
    assert content["failures"] == pl.read_parquet(folders[0] / "failures.parquet").height
    save_overview(again, folders[0])
    second_overview = explain_run(runs[1], scenes, "t2i", resamples=50)
    with pytest.raises(ConflictError):
        save_overview(second_overview, folders[0])
    save_overview(second_overview, folders[0], overwrite=True)
    assert json.loads((folders[0] / "overview.json").read_text())["run"] == "better"
    (folders[1] / "mine.txt").write_text("keep")
    with pytest.raises(ConflictError):
        save_overview(second_overview, folders[1], overwrite=True)


def test_the_two_directions(scenes: cl.Dataset, runs: tuple[Run, Run]) -> None:
    overview = explain_run(runs[0], scenes, "i2t", resamples=0)
    assert overview.failures["text"].null_count() == overview.failures.height
    assert overview.failures["mentions"].sum() > 0
    assert overview.metrics["low"].null_count() == overview.metrics.height


def test_comparison_counts_shared_queries(scenes: cl.Dataset, runs: tuple[Run, Run], overview: Overview) -> None:
    second_overview = explain_run(runs[1], scenes, "t2i", resamples=50)
    compared = compare_overviews(overview, second_overview, minimum=1)
    for row in compared.causes.to_dicts():
        sides = [
            set(side.failures.filter(pl.col(cause_column(row["cause"])))["query"])
            for side in (overview, second_overview)
        ]
        assert (row["first"], row["second"]) == (len(sides[0]), len(sides[1]))
        assert (row["only_first"], row["only_second"]) == (len(sides[0] - sides[1]), len(sides[1] - sides[0]))
        assert row["difference"] == pytest.approx((len(sides[1]) - len(sides[0])) / compared.queries)
        assert set(row["first_examples"]) <= sides[0] - sides[1]
    assert compared.confusions["first"].sum() == overview.pairs.height
    same = compare_overviews(overview, overview)
    assert (same.causes["difference"] == 0).all()
    assert (same.causes["only_first"] == 0).all()


def test_what_a_person_reads(scenes: cl.Dataset, runs: tuple[Run, Run], overview: Overview) -> None:
    text = overview.text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert f"{overview.failures.height:,} of {overview.queries.height:,} queries failed" in " ".join(text.split())
    for cause in CAUSES:
        assert cause in text
    compared = compare_overviews(overview, explain_run(runs[1], scenes, "t2i", resamples=50))
    assert max(map(len, compared.text(80).splitlines())) <= 80


def test_a_run_without_failures(scenes: cl.Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no failures"):
        explain_run(run_of(scenes, tmp_path, 0.0, "perfect"), scenes, "t2i")


def test_runs_that_cannot_be_compared(scenes: cl.Dataset, runs: tuple[Run, Run], overview: Overview) -> None:
    with pytest.raises(InputError, match="direction"):
        compare_overviews(overview, explain_run(runs[0], scenes, "i2t", resamples=0))


def test_means_of_concept_metrics_stay_in_their_range() -> None:
    columns = {"attribute_agreement": [*[1.0] * 11, 0.7], "spatial_agreement": [1.0] * 12, "SD": [*[0.0] * 11, 3.0]}
    means = metric_means(pl.DataFrame(columns), Bootstrap(np.arange(12)))
    low, high = (dict(means.select("metric", end).iter_rows()) for end in ("low", "high"))
    assert 0.7 < low["attribute_agreement"] < high["attribute_agreement"] == 1
    assert 0.5 < low["spatial_agreement"] < high["spatial_agreement"] == 1, "equal values of a known range"
    assert low["SD"] == 0 < high["SD"]


def test_bars_say_how_often_of_how_many_is_confused(overview: Overview) -> None:
    behind = overview.failures.row(0, named=True)
    confused = {
        "expected": "dog.n.01", "shown": "cat.n.01", "count": 6, "share_of_expected": 0.75,
        "examples": [behind["query"]],
    }  # fmt: skip
    rare = {**confused, "expected": "cow.n.01", "count": 1, "share_of_expected": 1.0}
    folded = confusion_bars(replace(overview, query_confusions=pl.DataFrame([confused, rare])))
    assert folded is not None
    assert folded.title == "Asked for “dog”, 6 of 8 misses show “cat”"
    (chart,) = folded.parts
    assert isinstance(chart, PairedBars)
    (bar,) = chart.rows
    assert (bar.name, bar.counts) == ("dog → cat", (6, 2))
    assert bar.pictures == (behind["ground_truth"], behind["retrieved"])
    (listed,) = bar.details
    assert isinstance(listed, EvidenceList)
    assert [query for query, _ in listed.entries] == [behind["query"]]
    seldom = confusion_bars(replace(overview, query_confusions=pl.DataFrame([{**confused, "count": 3}])))
    assert seldom is not None
    assert seldom.title == "What is asked for, and what comes first instead", "three are no rule"
    assert confusion_bars(replace(overview, query_confusions=pl.DataFrame([rare]))) is None


def test_bars_call_things_as_queries_do(overview: Overview) -> None:
    confused = {
        "expected": "male_child.n.01",
        "shown": "cat.n.01",
        "count": 6,
        "share_of_expected": 1.0,
        "examples": [],
    }
    asked = overview.failures.with_columns(text=pl.lit("a boy and a dog"))
    for names, name in (({}, "boy → cat"), ({"male_child.n.01": "lad"}, "lad → cat")):
        own = replace(overview, names=names, failures=asked, query_confusions=pl.DataFrame([confused]))
        folded = confusion_bars(own)
        assert folded is not None
        (chart,) = folded.parts
        assert isinstance(chart, PairedBars)
        assert chart.rows[0].name == name, "WordNet's first word for it is “male child”"
