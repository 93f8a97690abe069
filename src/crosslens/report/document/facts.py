"""Single facts as sentences, for the first screen: each from a number of a run or of a stage; empty without one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crosslens.metrics import facts_of, format_count, format_figure
from crosslens.pipeline import CAPTION_LENGTH, NO_VALUE, StageResult
from crosslens.report.document.context import ReportContext

_SPREAD = 0.0005
"""Of a share: less is not seen in a table."""
_SMALLEST = 10
"""Queries that a group must have to be called weak."""
_CAUSE_WORDS = {
    "object": "shows another object than the query names",
    "count": "shows another number of things than the query says",
    "colour": "shows another colour than the query names",
    "size": "shows another size than the query names",
    "position": "shows things in another position than the query says",
    "action": "shows another action than the query names",
    "detail": "lacks a detail that the query names",
    "near miss": "contradicts nothing that the query says: it may be right, too",
}


def weakest_group(context: ReportContext, name: str) -> str:
    """The group that is clearly below the whole, by most; which is a group whose whole interval is below it."""
    run = context.inputs.runs[name]
    metric = context.headline(run)
    columns = context.columns(run)
    if metric is None or not columns or facts_of(metric).unit != "share" or not facts_of(metric).higher_is_better:
        return ""
    whole = run[metric].mean
    weak = [
        (values.mean, column, group, values)
        for column in columns
        for group, values in context.grouped(name, column, metric).items()
        if group != NO_VALUE and values.n >= _SMALLEST and values.high < whole
    ]
    if not weak:
        listed = ", ".join(columns)
        return f"No group by {listed} is clearly below the {metric} of all queries, {format_figure(metric, whole)}."
    mean, column, group, values = min(weak, key=lambda entry: entry[0])
    interval = f"{format_figure(metric, values.low)} to {format_figure(metric, values.high)}"
    return (
        f"The weakest group is {group_words(column, group)}: {metric} {format_figure(metric, mean)} ({interval}, "
        f"{format_count(values.n, 'query')}), against {format_figure(metric, whole)} over all."
    )


def group_words(column: str, group: str) -> str:
    """What a group is called in a sentence."""
    lengths = re.fullmatch(r"\[(\d+), (\d+)([)\]])", group) if column == CAPTION_LENGTH else None
    if lengths is None:
        return f"{column} = {group}"
    shortest, longest = int(lengths[1]), int(lengths[2]) - (lengths[3] == ")")
    return f"captions of {shortest} to {longest} words" if shortest < longest else f"captions of {shortest} words"


def stage_of(context: ReportContext, stage: str, name: str) -> StageResult | None:
    """What a stage computed of a run, or of its dataset."""
    results = context.inputs.stage(stage)
    dataset = context.dataset_label(context.inputs.runs[name])
    own = [result for result in results if result.model == name]
    about = [result for result in results if not result.model and result.dataset in ("", dataset)]
    return next(iter([*own, *about]), None)


def cause_sentence(context: ReportContext, name: str) -> str:
    """The most frequent cause of failures."""
    result = stage_of(context, "explain", name)
    causes: list[Mapping[str, Any]] = list(result.payload.get("causes", ())) if result else []
    if result is None or not causes:
        return ""
    known = [cause for cause in causes if cause.get("share") and cause["cause"] in _CAUSE_WORDS]
    if not known:
        return ""
    top = max(known, key=lambda cause: float(cause["share"]))
    words = _CAUSE_WORDS[str(top["cause"])]
    interval = f"{100 * top['low']:.0f} to {100 * top['high']:.0f}"
    failures = format_count(result.payload["failures"], "failure")
    return f"In {100 * top['share']:.0f} % ({interval}) of {failures}, the first hit {words}."


def main_drops(payload: Mapping[str, Any], direction: str) -> tuple[str, list[Mapping[str, Any]]]:
    """The drops of the metric that a study is read by: Hit@1 where it has that."""
    drops: list[Mapping[str, Any]] = list(payload.get("drops", ()))
    names = dict.fromkeys(str(row["metric"]) for row in drops)
    wanted = (f"{direction}/Hit@1", str(payload.get("headline", "")), *names)
    metric = next((name for name in wanted if name in names), "")
    return metric, [row for row in drops if row["metric"] == metric]


def cost_sentence(context: ReportContext, name: str) -> str:
    """The change that costs most."""
    result = stage_of(context, "robustness", name)
    if result is None:
        return ""
    metric, rows = main_drops(result.payload, context.direction)
    known = [row for row in rows if row.get("drop") is not None]
    if not known:
        return ""
    top = max(known, key=lambda row: float(row["drop"]))
    if float(top["drop"]) <= 0:
        return f"No tried change lowers {metric}."
    drop = format_figure(metric, float(top["drop"]))
    span = ""
    if top.get("low") is not None and top.get("high") is not None:
        span = f" ({format_figure(metric, top['low'])} to {format_figure(metric, top['high'])})"
    return f"The change that costs most is {top['perturbation']}: {drop} points of {metric}{span}."


def annotation_sentence(context: ReportContext, name: str) -> str:
    """How many failures are the annotation's rather than the model's."""
    result = stage_of(context, "label-quality", name)
    rows = list(result.payload.get("runs", ())) if result else []
    own = next((row for row in rows if row.get("run") == name), rows[0] if len(rows) == 1 else {})
    if result is None or not own.get("failures"):
        return ""
    failures = format_count(own["failures"], "failure")
    suspects = format_count(result.payload["suspects"], "suspect label")
    return f"{own['annotation']:,} of {failures} come from the {suspects} of the dataset, not from the model."


def missing_sentence(context: ReportContext, name: str) -> str:
    """How many matches nobody annotated."""
    result = stage_of(context, "missing-positives", name)
    if result is None or not result.payload.get("pairs"):
        return ""
    return (
        f"{format_count(result.payload['pairs'], 'pair')} outside the ground truth are as similar as annotated ones "
        f"(φ = {result.payload['phi']}): some failures may be right answers."
    )


def tie_sentence(context: ReportContext, name: str, metric: str) -> str:
    """What tied scores change, if they do."""
    result = stage_of(context, "ties", name)
    modes = result.payload.get("modes", {}) if result else {}
    figures = [
        mode[metric]["mean"] for mode in modes.values() if metric in mode and mode[metric].get("mean") is not None
    ]
    if len(figures) < 2:
        return ""
    spread = max(figures) - min(figures)
    return "" if spread < _SPREAD else f"The rule for tied scores changes {metric} by up to {100 * spread:.1f} points."
