"""The three recalls, graded metrics, and all other figures of the runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosslens.core import Grid, Run, percent, split_name
from crosslens.metrics import family_of, spec_of, unit_sentence
from crosslens.report.charts.bars import bar_chart
from crosslens.report.charts.lines import line_chart
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import (
    Section,
    TableHtml,
    figure,
    paragraph,
    point_of,
    side_by_side,
    stored_point,
)
from crosslens.report.text.runs import DEFINITIONS, DIRECTION_LABELS, value_cells

_RECALLS = ("Hit", "Recall", "CappedRecall")
_MOST_SHOWN = 2
"""Tables that are open from the start."""
_AT = re.compile(r"(\w+)@(\d+)$")


def recalls(context: ReportContext) -> Section | None:
    """Hit, Recall and CappedRecall beside each other: three quantities that papers call R@k."""
    parts: list[str] = []
    for name, run in context.inputs.runs.items():
        names = [metric for metric in run if _family(metric) in _RECALLS]
        if len({_family(metric) for metric in names}) < 2:
            continue
        parts.append(TableHtml(f"Three recalls of {name}", _recall_grid(run, names), shown=len(parts) < _MOST_SHOWN))
    if not parts:
        return None
    lead = "Papers call three quantities R@k. " + " ".join(f"{name}@k: {DEFINITIONS[name]}." for name in _RECALLS)
    same = "They are equal where a query has one relevant item. In percent, with intervals in brackets."
    return Section("recalls", "Three recalls", (paragraph(lead), paragraph(same), *parts))


def _family(metric: str) -> str:
    spec = spec_of(metric)
    return spec.family if spec is not None else ""


def _recall_grid(run: Run, names: Sequence[str]) -> Grid:
    """Rows: direction and recall; columns: k."""
    parsed = {name: match for name in names if (match := _AT.search(split_name(name)[1]))}
    cutoffs = sorted({int(match[2]) for match in parsed.values()})
    rows = dict.fromkeys((split_name(name)[0], match[1]) for name, match in parsed.items())
    order = sorted(rows, key=lambda row: (row[0] != "t2i", row[0], _RECALLS.index(row[1])))
    columns = [value_cells([run.values.get(f"{side}/{kind}@{k}") for side, kind in order]) for k in cutoffs]
    titles = [f"{DIRECTION_LABELS.get(side, side)}: {kind}" for side, kind in order]
    header = ("", *(f"@{k}" for k in cutoffs))
    return Grid(header, tuple(zip(titles, *columns, strict=True)), "l" * len(header))


def graded(context: ReportContext) -> Section | None:
    """Metrics that know more and less relevant items, and how they depend on what counts as relevant."""
    runs = context.inputs.runs
    names = list(dict.fromkeys(name for run in runs.values() for name in run if _is_graded(name)))
    parts: list[str] = []
    if names:
        columns = [value_cells([run.values.get(name) for name in names]) for run in runs.values()]
        grid = Grid(("metric", *runs), tuple(zip(names, *columns, strict=True)), "l" * (1 + len(runs)))
        parts.append(TableHtml("Graded metrics", grid))
        families = dict.fromkeys(map(_family, names))
        words = " ".join(f"{name}@k: {DEFINITIONS[name]}." for name in families if name in DEFINITIONS)
        parts.append(paragraph(f"{words} {unit_sentence(names)}".strip(), "facts"))
    parts.append(side_by_side(_curves(context)))
    shown = tuple(part for part in parts if part)
    lead = paragraph(
        "Captions of other images often fit too. Graded metrics ask how similar the retrieved items are to what the "
        "query says (φ), not only whether they are the annotated ones."
    )
    return Section("graded", "Graded metrics", (lead, *shown)) if shown else None


def _is_graded(name: str) -> bool:
    spec = spec_of(name)
    return spec is not None and family_of(spec).graded


def _curves(context: ReportContext) -> list[str]:
    """Semantic recall against m, from the stage ``curve``."""
    charts: list[str] = []
    for result in context.inputs.stage("curve"):
        payload = result.payload
        where = f" on {payload['dataset']}" if payload.get("dataset") else ""
        for family in ("SR", "SRhit"):
            series = {
                run: [stored_point(entry) for entry in entries[family]]
                for run, entries in payload["runs"].items()
                if entries.get(family)
            }
            if series and payload["m"]:
                charts.append(line_chart(
                    f"{family}[{payload['phi']}]@{payload['k']} against m{where}", payload["m"], series, axis="m",
                    number=percent, limits=(0, 1),
                    about=f"{family}: {DEFINITIONS[family]}, for each m; in percent.",
                ))  # fmt: skip
    return charts


def everything(context: ReportContext) -> Section | None:
    """Every metric of every run: a chart where they are shares, and the table."""
    runs = context.inputs.runs
    names = list(dict.fromkeys(name for run in runs.values() for name in run))
    if not names:
        return None
    columns = [[cell or "–" for cell in value_cells([run.values.get(name) for name in names])] for run in runs.values()]
    grid = Grid(("metric", *runs), tuple(zip(names, *columns, strict=True)), "l" * (1 + len(runs)))
    levels = " and ".join(sorted({f"{100 * run[name].level:g} %" for run in runs.values() for name in run}))
    about = f"{unit_sentence(names)} In brackets: {levels} intervals over images."
    hits = [name for name in names if _family(name) == "Hit"]
    charts = [
        bar_chart(
            f"Hit rates, {DIRECTION_LABELS.get(side, side)}", [split_name(name)[1] for name in own],
            {run: [point_of(values[name]) if name in values.values else stored_point({}) for name in own]
             for run, values in runs.items()},
            number=figure(own[0]), heading="metric", axis="percent", limits=(0, 1),
        )
        for side in dict.fromkeys(split_name(name)[0] for name in hits)
        if (own := [name for name in hits if split_name(name)[0] == side])
    ]  # fmt: skip
    parts = (side_by_side(charts), TableHtml("All metrics", grid, shown=False), paragraph(about, "facts"))
    return Section("figures", "All figures", tuple(part for part in parts if part))
