"""Names of metrics: they print as they are written, and every wrong one says what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import MetricNameWarning, UnknownNameError, UsageError
from crosslens.metrics import (
    DEFAULT_METRICS,
    METRICS,
    Family,
    MetricRequest,
    MetricSpec,
    Option,
    family_of,
    matching_names,
    parse_metric,
    parse_metrics,
    read_spec,
)
from tests.tables import each_row

ONE_DIRECTION = [
    "Hit@5",
    "Recall@10",
    "CappedRecall@5",
    "MRR@10",
    "MRR",
    "MedR",
    "MedR[floor]",
    "MedR[all]",
    "MeanR",
    "MeanR[all]",
    "mAP@R",
    "AP",
    "AP@10",
    "Precision@5",
    "RPrecision",
    "Fails",
]
BOTH = ["Rsum", "Rsum[capped]"]


@each_row("text", [*ONE_DIRECTION, *BOTH, *(f"t2i/{metric}" for metric in ONE_DIRECTION)])
def test_prints_as_it_is_written(text: str) -> None:
    assert str(parse_metric(text)) == text


GRADED = ("NCS[cider]@10", "nDCG@10", "nDCG[spice, exp]@5", "SR[cider, m=5]@10", "NCS[embed:Org/Model-V1, non-gt]@10")


@each_row("text", [*ONE_DIRECTION, *BOTH, *GRADED, *(f"t2i/{text}" for text in (*ONE_DIRECTION, *GRADED))])
def test_case_alone_is_no_error(text: str) -> None:
    canonical = str(parse_metric(text))
    source = "embed:Org/Model-V1"  # the name of a model keeps its case
    for written in (text.lower(), text.upper(), text.swapcase()):
        for folded in (source.lower(), source.upper(), source.swapcase()):
            written = written.replace(folded, f"{folded[:5]}:{source[6:]}")
        assert str(parse_metric(written)) == canonical
        assert [str(request) for request in parse_metrics(f"{written}, {text}")] == [canonical]


def test_every_family_in_any_case() -> None:
    for entry in METRICS:
        cutoff = "" if entry.value.cutoff == "none" else "@10"
        for written in (entry.name.lower(), entry.name.upper()):
            try:
                expected = str(parse_metric(f"{entry.name}{cutoff}"))
            except UsageError as error:  # it needs an option: the same error, under the same name
                with pytest.raises(UsageError, match=error.problem.partition(" ")[2]):
                    parse_metric(f"{written}{cutoff}")
            else:
                assert str(parse_metric(f"{written}{cutoff}")) == expected


def test_results_are_found_in_any_case_and_exact_names_first() -> None:
    names = ["i2t/Hit@5", "t2i/Hit@5", "t2i/mine@5", "t2i/MINE@5", "t2i/Other"]
    assert matching_names("hit@5", names) == ["i2t/Hit@5", "t2i/Hit@5"]
    assert matching_names("T2I/HIT@5", names) == ["t2i/Hit@5"]
    assert matching_names("r@5", names) == ["i2t/Hit@5", "t2i/Hit@5"]
    assert matching_names("mine@5", names) == ["t2i/mine@5"]  # metrics of a plugin that is not loaded
    assert matching_names("other", names) == ["t2i/Other"]


def test_a_matrix_named_as_a_similarity_in_another_case_is_the_matrix() -> None:
    dataset = cl.Dataset.of({"a": ["a dog"], "b": ["a cat"]})
    scores = np.array([[2.0, 1.0], [1.0, 2.0]])
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    runs = [
        cl.evaluate(dataset, scores=scores, metrics=metric, phi={"CIDEr": matrix}, resamples=0)
        for metric in ("NCS[CIDEr]@1", "ncs[cider]@1")
    ]
    figures = [{name: values.mean for name, values in run.values.items()} for run in runs]
    assert figures[0] == figures[1]
    assert set(figures[0]) == {"i2t/NCS[cider]@1", "t2i/NCS[cider]@1"}
    with_matrix = cl.evaluate(dataset, scores=scores, metrics="NCS[cider]@1", resamples=0)
    assert with_matrix["i2t/NCS[cider]@1"].mean != figures[0]["i2t/NCS[cider]@1"]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("NCS[cider]@10", MetricSpec("NCS", ("cider",), 10)),
        ("SR[spice, m=20]@5", MetricSpec("SR", ("spice", "m=20"), 5)),
        ("NCS[cider, non-gt]@10", MetricSpec("NCS", ("cider", "non-gt"), 10)),
        ("SR[embed:org/model-v1.5, by-image]@5", MetricSpec("SR", ("embed:org/model-v1.5", "by-image"), 5)),
    ],
)
def test_grammar_of_options(text: str, spec: MetricSpec) -> None:
    assert read_spec(text) == spec
    assert str(spec) == text
    assert read_spec("SR[spice,m = 20]@5").setting("m") == "20"
    assert spec.has(spec.options[0])


def test_several_in_one_text() -> None:
    requests = parse_metrics("t2i/Hit@1, i2t/mAP@R  MedR[floor, all]\nMRR")
    assert [str(request) for request in requests] == ["t2i/Hit@1", "i2t/mAP@R", "MedR[floor, all]", "MRR"]
    assert [request.direction for request in requests] == ["t2i", "i2t", None, None]


def test_several_in_a_list() -> None:
    mixed = ["Hit@1 Hit@5", MetricSpec("MRR"), MetricRequest(MetricSpec("AP"), "t2i"), "Hit@1"]
    assert [str(request) for request in parse_metrics(mixed)] == ["Hit@1", "Hit@5", "MRR", "t2i/AP"]


def test_defaults() -> None:
    assert tuple(str(request) for request in parse_metrics()) == DEFAULT_METRICS
    assert "Hit@1" in DEFAULT_METRICS


def test_options_are_put_in_order() -> None:
    assert str(parse_metric("MedR[all,floor]")) == "MedR[floor, all]"


def test_names_of_results() -> None:
    assert parse_metric("Hit@5").names(["i2t", "t2i"]) == ("i2t/Hit@5", "t2i/Hit@5")
    assert parse_metric("t2i/Hit@5").names(["i2t", "t2i"]) == ("t2i/Hit@5",)
    assert parse_metric("Rsum").names(["i2t", "t2i"]) == ("Rsum",)


def test_ambiguous_recall_is_hit_and_says_so() -> None:
    (request,) = parse_metrics("t2i/R@5")
    assert str(request) == "t2i/Hit@5"
    assert request.notes[0].startswith("R@5 read as Hit@5, ")
    assert "for the IR definition write Recall@5" in request.notes[0]
    assert "CappedRecall@5" in request.notes[0]
    assert parse_metrics("Hit@5")[0].notes == ()
    (merged,) = parse_metrics("Hit@5 R@5")
    assert len(merged.notes) == 1


def test_python_says_how_a_recall_is_read_and_finds_it_again() -> None:
    dataset = cl.Dataset.of({f"image {n}": [f"caption {n}"] for n in range(4)})
    with pytest.warns(MetricNameWarning, match=r"^R@1 read as Hit@1, .* write Recall@1") as told:
        run = cl.evaluate(dataset, scores=np.eye(4)[[1, 0, 2, 3]], metrics="R@1 Hit@1 t2i/MRR", resamples=0)
    assert [Path(warning.filename) for warning in told] == [Path(__file__)], "it is about the caller's line"
    assert run["t2i/R@1"] is run["t2i/Hit@1"]
    assert run["MRR"] is run["t2i/MRR"], "there is one direction of it"
    comparison = cl.compare(run, run, metrics="R@1", permutations=10)
    assert comparison["t2i/R@1"] is comparison["t2i/Hit@1"]
    for holder in (run, comparison):
        with pytest.raises(UnknownNameError, match=r"fix: known: i2t/Hit@1, t2i/Hit@1$"):
            holder["R@1"]
        with pytest.raises(UnknownNameError, match=r"unknown metric in this (run|comparison) 't2i/R@5'"):
            holder["t2i/R@5"]


def test_an_initial_suggests_what_begins_with_it() -> None:
    assert UnknownNameError("metric", "P", METRICS.names()).fix == "did you mean Precision or AP?"
    assert UnknownNameError("metric", "Recal", METRICS.names()).suggestions[0] == "Recall"
    assert UnknownNameError("metric", "", METRICS.names()).suggestions == []


def test_names_of_ir_measures_are_read_and_explained() -> None:
    requests = parse_metrics("P@5 t2i/RR RR@10 Rprec Success@1 AP AP@10 nDCG@10")
    assert [str(request) for request in requests] == [
        "Precision@5", "t2i/MRR", "MRR@10", "RPrecision", "Hit@1", "AP", "AP@10", "nDCG@10",
    ]  # fmt: skip
    assert requests[0].notes == ("P@5 read as Precision@5: relevant items in the top k / k",)
    assert requests[1].notes[0].startswith("RR read as MRR: 1 / rank of the first relevant item")
    assert not any(request.notes for request in requests[-3:]), "the same names"
    assert "Recall@5 (R@5 of ir_measures)" in parse_metrics("R@5")[0].notes[0]
    assert matching_names("RR", ["t2i/MRR", "t2i/MRR@10"]) == ["t2i/MRR"]


@each_row(
    ("text", "error", "message"),
    [
        ("Hits@5", UnknownNameError, "unknown metric 'Hits'\n  fix: did you mean Hit"),
        ("mAPP@R", UnknownNameError, "did you mean mAP@R"),
        ("mAP@10", UnknownNameError, "did you mean AP or mAP@R"),
        ("recal@5", UnknownNameError, "did you mean Recall"),
        ("i2i/Hit@5", UnknownNameError, "unknown direction 'i2i'"),
        ("Hit", UsageError, "Hit needs a cutoff\n  fix: write Hit@10, for example"),
        ("Hit@", UsageError, "the cutoff of 'Hit@' is missing"),
        ("Hit@0", UsageError, "the cutoff of 'Hit@0' is '0'\n  fix: write a whole number from 1"),
        ("Hit@-1", UsageError, "the cutoff of 'Hit@-1' is '-1'"),
        ("Hit@2.5", UsageError, "the cutoff of 'Hit@2.5' is '2.5'"),
        ("Hit@ten", UsageError, "the cutoff of 'Hit@ten' is 'ten'"),
        ("R@0", UsageError, "the cutoff of 'Hit@0' is '0'"),
        ("MedR@5", UsageError, "MedR takes no cutoff\n  fix: write MedR without @5"),
        ("MedR[flor]", UsageError, "unknown option 'flor' of MedR.flor.\n  fix: did you mean floor"),
        ("MedR[floor=1]", UsageError, "unknown option 'floor=1'"),
        ("MedR[all, all]", UsageError, "gives 'all' twice"),
        ("AP[floor]", UsageError, "unknown option 'floor' of AP.floor.\n  fix: AP has no options"),
        ("MedR[]", UsageError, "cannot read the option ''"),
        ("MedR[floor", UsageError, "cannot read the metric"),
        ("Hit@5@6", UsageError, "cannot read the metric"),
        ("5", UsageError, "cannot read the metric '5'"),
        ("", UsageError, "no metrics were named"),
    ],
)
def test_wrong_names(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_metrics(text)


def test_a_free_name_does_not_swallow_flags_and_settings() -> None:
    options = (Option("φ", "the similarity", "name"), Option("m", "how many", "setting"), Option("non-gt", "without"))
    family = Family("SR", lambda ranks, spec: ranks.first(), "required", options, "mean", True, (0, 1), False, "", "")
    assert family.checked(read_spec("SR[non-gt, m=20, spice]@5")) == read_spec("SR[spice, m=20, non-gt]@5")
    with pytest.raises(UsageError, match="gives 'φ' twice"):
        family.checked(read_spec("SR[spice, cider]@5"))
    with pytest.raises(UsageError, match="unknown option 'k=3'"):
        family.checked(read_spec("SR[spice, k=3]@5"))


def test_what_is_known_about_metrics() -> None:
    for entry in METRICS:
        family = entry.value
        assert entry.summary
        assert family.definition
        assert family.source
        assert all(option.summary for option in family.options)
    assert family_of(read_spec("MedR")).statistic_of(read_spec("MedR")) == "median"
    assert family_of(read_spec("MedR")).statistic_of(read_spec("MedR[floor]")) == "floor-median"
    assert family_of(read_spec("MedR")).pooled(read_spec("MedR[all]"))
    lower = {entry.name for entry in METRICS if not entry.value.higher_is_better}
    assert lower == {"MedR", "MeanR", "Fails"}
    assert [entry.name for entry in METRICS if entry.value.across] == ["Nsum", "Rsum"]
