"""What small changes cost, as a heat map; and captions that are nearly right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crosslens.analyze import ACCURACY
from crosslens.core import Bars, Figure, Heat, Table, split_name
from crosslens.metrics import format_count, metric_figure, unit_of
from crosslens.pipeline import StageResult, percent_figure
from crosslens.report.document.context import ReportContext
from crosslens.report.document.facts import main_drops
from crosslens.report.document.parts import Content, ReportSection, series_of, stored_figure
from crosslens.report.forms.page import paragraph

_MOST_BRITTLE = 6
_ABOUT = (
    "Points lost when captions or pictures are changed a little: red is a loss, green a gain, a deeper colour is more. "
    "In brackets: the interval includes 0, so there may be no loss at all."
)


def robustness(context: ReportContext) -> ReportSection | None:
    """A heat map, the captions that lost most, and hard negatives."""
    results = context.inputs.stage("robustness")
    parts: list[Content] = [*_map(context, results), *_brittle(results)]
    parts = [paragraph(_ABOUT), *parts] if parts else []
    parts += [part for result in context.inputs.stage("hard-negatives") for part in _hard_negatives(result)]
    return ReportSection("robustness", "Robustness", tuple(parts)) if parts else None


def _map(context: ReportContext, results: Sequence[StageResult]) -> Iterator[Content]:
    """Several models: a column each. One: a column per metric."""
    rows = [
        (_model(result, row), row) for result in results for row in main_drops(result.payload, context.direction)[1]
    ]
    if not rows:
        return
    metric = str(rows[0][1]["metric"])
    names = list(dict.fromkeys(str(row["perturbation"]) for _, row in rows))
    columns = list(dict.fromkeys(model for model, _ in rows))
    cells = {(row["perturbation"], model): row for model, row in rows}
    title = f"Drop of {metric}"
    if len(columns) == 1:
        direction, title = split_name(metric)[0], f"Drops of {columns[0]}"
        every = [row for result in results for row in result.payload["drops"]]
        kept = [row for row in every if split_name(row["metric"])[0] == direction and unit_of(row["metric"]) == "share"]
        cells |= {(row["perturbation"], row["metric"]): row for row in kept}
        columns = list(dict.fromkeys(str(row["metric"]) for row in kept)) or columns
    points = [
        [stored_figure(cells.get((name, column)), metric_figure(metric, None), "drop") for column in columns]
        for name in names
    ]
    order = sorted(range(len(names)), key=lambda row: -_first(points[row]))
    yield Heat(
        title=title, rows=tuple(names[row] for row in order), columns=tuple(columns),
        cells=tuple(tuple(points[row]) for row in order), heading="change", worse=True,
        about="Rows are changes, the costliest first; positive numbers are losses.",
    )  # fmt: skip
    before, change = metric_figure(metric, None), metric_figure(metric, None, signed=True)
    drops = tuple(
        (
            str(row["perturbation"]),
            model,
            replace(before, value=row.get("before")),
            stored_figure(row, change, "drop"),
            percent_figure(*(row.get(f"percent{end}") for end in ("", "_low", "_high"))),
        )
        for model, row in rows
    )
    title = f"Drop of {metric}, in points and in percent of the figure before"
    yield Table(("change", "run", "before", "points", "percent"), drops, "llrll", title=title)


def _model(result: StageResult, row: Mapping[str, Any]) -> str:
    """The name of the run in the report; a study of several models has names of its own."""
    alone = len(result.payload.get("models", ())) == 1
    return result.model if alone and result.model else str(row["model"])


def _first(figures: Sequence[Figure]) -> float:
    return figures[0].value if figures and figures[0].value is not None else float("-inf")


def _brittle(results: Sequence[StageResult]) -> Iterator[Content]:
    rows: list[Mapping[str, Any]] = [row for result in results for row in result.payload.get("brittle", ())]
    changed = [row for row in rows if row.get("text") and row["text"] != row.get("original")]
    worst = sorted(changed, key=lambda row: -(row.get("drop") or 0.0))[:_MOST_BRITTLE]
    if worst:
        cells = tuple(
            (str(row["original"]), str(row["text"]), str(row["perturbation"]), _rank(row["rank_before"]),
             _rank(row["rank_after"]), str(row["model"]))
            for row in worst
        )  # fmt: skip
        header = ("caption", "changed to", "change", "rank before", "rank after", "run")
        yield Table(header, cells, "lllrrl", title="Captions that lost most")


def _rank(value: Any) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _hard_negatives(stage: StageResult) -> Iterator[Content]:
    results = stage.payload["results"]
    kinds: dict[str, dict[str, Figure]] = {}
    for result in results:
        for row in result["figures"]:
            name = str(row["category"] or "all cases")
            measure = "" if row["measure"] in ACCURACY else f" ({row['measure']})"
            if row["grouping"] != "macro":
                kinds.setdefault(f"{name}{measure}", {})[result["model"]] = stored_figure(
                    row, Figure.percent(None), "value"
                )
    if not kinds:
        return
    models = list(dict.fromkeys(result["model"] for result in results))
    series = {model: [own.get(model, Figure.percent(None)) for own in kinds.values()] for model in models}
    first = results[0]
    chance = dict.fromkeys(f"{100 * row['chance']:.0f} %" for row in first["figures"] if row.get("chance") is not None)
    yield Bars(
        title=f"Captions that are nearly right: {first['set']}", groups=tuple(kinds), series=series_of(series),
        heading="cases", axis="percent", limits=(0, 1),
    )  # fmt: skip
    yield paragraph(
        f"How often the right caption scores higher than a wrong one, over {format_count(first['cases'], 'case')}; "
        f"chance: {', '.join(chance)}.",
        "facts",
    )
