"""Which failures are the most telling: sure, far off, explained, of different kinds; and no doubtful label unsaid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.pipeline import StageResult
from crosslens.report import Report, ReportInputs, report_inputs
from crosslens.report.document.failures import TellingFailure, choose_telling, most_telling, telling_failures
from crosslens.report.document.inputs import ReportContext

from .conftest import Study
from .test_sections import plain


def failure(query: str, kind: str = "", doubt: str = "", image: str = "") -> TellingFailure:
    return TellingFailure({"query": query, "retrieved": image or query}, "", kind, doubt)


def chosen(*judged: TellingFailure) -> list[str]:
    return [telling.row["query"] for telling in choose_telling(judged)]


def test_kinds_differ_where_they_can() -> None:
    assert chosen(
        *(failure(query, kind) for query, kind in zip("abcd", ("name", "name", "count", "colour"), strict=True))
    ) == ["a", "c", "d"]
    assert chosen(*(failure(query, "name") for query in "abcd")) == ["a", "b", "c"]


def test_explained_failures_come_before_others_and_no_image_twice() -> None:
    assert chosen(failure("a"), failure("b"), failure("c", "name")) == ["c", "a", "b"]
    assert chosen(
        failure("a", "name", image="x"), failure("b", "name", image="x"), failure("c", "name"), failure("d")
    ) == ["a", "c", "b"]


def test_doubtful_labels_come_last_and_only_to_fill() -> None:
    assert chosen(failure("a", "name", "doubt"), *(failure(query) for query in "bcd")) == ["b", "c", "d"]
    assert chosen(failure("a", "name", "doubt"), failure("b")) == ["b", "a"]


@given(st.lists(st.tuples(st.integers(2, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_the_first_is_behind_no_other_in_both_respects(rows: list[tuple[int, int]]) -> None:
    table = pl.DataFrame({"query": [f"q{row:02}" for row in range(len(rows))], "rank": [rank for rank, _ in rows],
                          "margin": [margin / 10 for _, margin in rows], "margin_at_least": [None] * len(rows)},
                         schema_overrides={"margin_at_least": pl.Float64})  # fmt: skip
    first = most_telling(table).row(0, named=True)
    assert not any(rank > first["rank"] and margin / 10 > first["margin"] for rank, margin in rows)


def inputs_with(study: Study, *results: StageResult) -> ReportInputs:
    return replace(report_inputs([study.runs[0]], queries=2), results=results)


def test_a_suspect_label_is_said_to_be_one(study: Study) -> None:
    """Where all labels are suspect, the failures that are shown say so; one model's misses alone do not count."""
    run = cl.Run.load(study.runs[0])
    review = [{"caption": caption, "reason": "same caption + far"} for caption in study.dataset.caption_ids]
    inputs = inputs_with(study, StageResult("label-quality", {"review": review, "runs": []}, "", dataset="colours"))
    told = telling_failures(ReportContext(inputs), run.name)
    assert len(told) == 3
    assert all(telling.doubt == "Another image has this very caption." for telling in told)
    far = [{"caption": caption, "reason": "exchanged + words + far"} for caption in study.dataset.caption_ids]
    inputs = inputs_with(study, StageResult("label-quality", {"review": far, "runs": []}, "", dataset="colours"))
    assert not any("very caption" in telling.doubt for telling in telling_failures(ReportContext(inputs), run.name))


def test_a_pair_that_nobody_annotated_is_not_shown_as_a_failure(study: Study, tmp_path: Path) -> None:
    name = cl.Run.load(study.runs[0]).name
    before = telling_failures(ReportContext(inputs_with(study)), name)
    pairs = [(telling.row["retrieved"], telling.row["query"]) for telling in before if not telling.doubt]
    assert pairs
    pl.DataFrame(pairs, schema=["image", "caption"], orient="row").write_csv(tmp_path / "missing.csv")
    stage = StageResult("missing-positives", {"pairs": 0}, "", dataset="colours", folder=tmp_path)
    after = telling_failures(ReportContext(inputs_with(study, stage)), name)
    assert not {(telling.row["retrieved"], telling.row["query"]) for telling in after if not telling.doubt} & set(pairs)


def test_a_doubtful_label_is_marked_on_the_page(study: Study) -> None:
    review = [{"caption": caption, "reason": "same caption", "certain": False} for caption in study.dataset.caption_ids]
    payload = {"review": review, "runs": [], "suspects": 72, "worth_a_look": 0, "reasons": {}}
    assert "Doubtful label. Another image has this very caption." in plain(
        Report(inputs_with(study, StageResult("label-quality", payload, "", dataset="colours"))).page
    )
