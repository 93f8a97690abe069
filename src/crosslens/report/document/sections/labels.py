"""Problems of the labels: suspect captions, matches that nobody annotated, tied scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crosslens.analyze import REASONS
from crosslens.core import Grid
from crosslens.metrics import format_count, format_figure
from crosslens.pipeline import StageResult
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Section, TableHtml, notes, paragraph

_MOST_LISTED = 10


def labels(context: ReportContext) -> Section | None:
    """What a person should look at before the model is blamed."""
    parts = [
        *(part for result in context.inputs.stage("label-quality") for part in _quality(result)),
        *(part for result in context.inputs.stage("missing-positives") for part in _missing(result)),
        *_ties(context),
    ]
    return Section("labels", "Label problems", tuple(part for part in parts if part)) if parts else None


def _quality(result: StageResult) -> Iterator[str]:
    payload = result.payload
    where = f" of {payload['dataset']}" if payload.get("dataset") else ""
    yield paragraph(f"{format_count(payload['suspects'], 'suspect label')}{where} should be reviewed by a person.")
    reasons = tuple((name, REASONS.get(name, ""), f"{count:,}") for name, count in payload["reasons"].items())
    if reasons:
        yield TableHtml("Why labels are suspect", Grid(("reason", "meaning", "labels"), reasons, "llr"))
    runs = tuple(
        (row["run"], f"{row['failures']:,}", f"{row['annotation']:,}", f"{row['model']:,}") for row in payload["runs"]
    )
    if runs:
        header = ("run", "failures", "from suspect labels", "the model's")
        yield TableHtml("Whose failures they are", Grid(header, runs, "lrrr"))
    review = tuple(
        (str(row["caption"]), str(row["text"]), str(row["reason"]), str(row["evidence"]), str(row["proposal"]))
        for row in payload["review"][:_MOST_LISTED]
        if row["signals"]
    )
    if review:
        columns = ("caption", "text", "reason", "evidence", "proposal")
        yield TableHtml("The most suspect labels", Grid(columns, review, "lllll"), shown=False)
    yield notes(payload.get("notes", ()))


def _missing(result: StageResult) -> Iterator[str]:
    payload = result.payload
    where = f" in {payload['dataset']}" if payload.get("dataset") else ""
    yield paragraph(
        f"Likely missing positives{where}: {format_count(payload['pairs'], 'pair')} outside the ground truth with "
        f"φ ({payload['phi']}) of at least {payload['threshold']:.3g}, as high as annotated pairs have it."
    )
    levels = tuple((f"{row['threshold']:.3g}", f"{row['pairs']:,}") for row in payload["levels"])
    if levels:
        grid = Grid(("φ at least", "pairs"), levels, "rr")
        yield TableHtml("Likely missing positives by threshold", grid, shown=False)
    misses: Mapping[str, Any] = payload.get("misses") or {}
    rows = tuple((name, f"{row['misses']:,}", f"{row['fitting']:,}") for name, row in misses.items())
    if rows:
        header = ("run", "failures", "first hit is a likely missing positive")
        yield TableHtml("Failures that may be right answers", Grid(header, rows, "lrr"))


def _ties(context: ReportContext) -> Iterator[str]:
    for result in context.inputs.stage("ties"):
        modes = result.payload.get("modes", {})
        names = list(dict.fromkeys(name for figures in modes.values() for name in figures))
        spread = {name: _spread(modes, name) for name in names}
        if not any(spread.values()):
            continue
        rows = tuple(
            (name, *(_figure(figures.get(name), name) for figures in modes.values())) for name in names if spread[name]
        )
        title = f"What the rule for ties changes{f', {result.model}' if result.model else ''}"
        yield TableHtml(title, Grid(("metric", *modes), rows, "l" + "r" * len(modes)))


def _spread(modes: Mapping[str, Any], name: str) -> bool:
    shown = {_figure(figures.get(name), name) for figures in modes.values()}
    return len(shown - {"–"}) > 1


def _figure(figures: Mapping[str, Any] | None, name: str) -> str:
    return "–" if figures is None or figures.get("mean") is None else format_figure(name, figures["mean"])
