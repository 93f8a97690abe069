"""The three recalls, graded metrics, and all other figures of the runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crosslens.core import DIRECTION_LABELS, Bars, Cell, Chart, Figure, Lines, Run, Table, split_name
from crosslens.metrics import family_of, spec_of, unit_sentence
from crosslens.pipeline import DEFINITIONS
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import (
    Content,
    ReportSection,
    figure_of,
    series_of,
    side_by_side,
    stored_figure,
)
from crosslens.report.forms.page import paragraph

_RECALLS = ("Hit", "Recall", "CappedRecall")
_MOST_SHOWN = 2
"""Tables that are open from the start."""
_AT = re.compile(r"(\w+)@(\d+)$")


def recalls(context: ReportContext) -> ReportSection | None:
    """Hit, Recall and CappedRecall beside each other: three quantities that papers call R@k."""
    parts: list[Content] = []
    for name, run in context.inputs.runs.items():
        names = [metric for metric in run if _family(metric) in _RECALLS]
        if len({_family(metric) for metric in names}) < 2:
            continue
        table = _recall_table(run, names)
        parts.append(replace(table, title=f"Three recalls of {name}", folded=len(parts) >= _MOST_SHOWN))
    if not parts:
        return None
    lead = "Papers call three quantities R@k. " + " ".join(f"{name}@k: {DEFINITIONS[name]}." for name in _RECALLS)
    same = "They are equal where a query has one relevant item. In percent, with intervals in brackets."
    return ReportSection("recalls", "Three recalls", (paragraph(lead), paragraph(same), *parts))


def _family(metric: str) -> str:
    spec = spec_of(metric)
    return spec.family if spec is not None else ""


def _recall_table(run: Run, names: Sequence[str]) -> Table:
    """Rows: direction and recall; columns: k."""
    parsed = {name: match for name in names if (match := _AT.search(split_name(name)[1]))}
    cutoffs = sorted({int(match[2]) for match in parsed.values()})
    rows = dict.fromkeys((split_name(name)[0], match[1]) for name, match in parsed.items())
    order = sorted(rows, key=lambda row: (row[0] != "t2i", row[0], _RECALLS.index(row[1])))
    cells: list[tuple[Cell, ...]] = [
        (f"{DIRECTION_LABELS.get(side, side)}: {kind}",
         *(figure_of(run.values.get(name), name) for name in (f"{side}/{kind}@{k}" for k in cutoffs)))
        for side, kind in order
    ]  # fmt: skip
    return Table(("", *(f"@{k}" for k in cutoffs)), tuple(cells), "l" * (1 + len(cutoffs)))


def graded(context: ReportContext) -> ReportSection | None:
    """Metrics that know more and less relevant items, and how they depend on what counts as relevant."""
    runs = context.inputs.runs
    names = list(dict.fromkeys(name for run in runs.values() for name in run if _is_graded(name)))
    parts: list[Content] = []
    if names:
        parts.append(_metrics_table("Graded metrics", names, runs))
        families = dict.fromkeys(map(_family, names))
        words = " ".join(f"{name}@k: {DEFINITIONS[name]}." for name in families if name in DEFINITIONS)
        parts.append(paragraph(f"{words} {unit_sentence(names)}".strip(), "facts"))
    parts.append(side_by_side(_curves(context)))
    shown = tuple(part for part in parts if part)
    lead = paragraph(
        "Captions of other images often fit too. Graded metrics ask how similar the retrieved items are to what the "
        "query says (φ), not only whether they are the annotated ones."
    )
    return ReportSection("graded", "Graded metrics", (lead, *shown)) if shown else None


def _metrics_table(title: str, names: Sequence[str], runs: Mapping[str, Run]) -> Table:
    """A row per metric, a column per run."""
    rows: list[tuple[Cell, ...]] = [
        (name, *(figure_of(run.values.get(name), name) for run in runs.values())) for name in names
    ]
    return Table(("metric", *runs), tuple(rows), "l" * (1 + len(runs)), title=title)


def _is_graded(name: str) -> bool:
    spec = spec_of(name)
    return spec is not None and family_of(spec).graded


def _curves(context: ReportContext) -> list[Chart]:
    """Semantic recall against m, from the stage ``curve``."""
    charts: list[Chart] = []
    for result in context.inputs.stage("curve"):
        payload = result.payload
        where = f" on {payload['dataset']}" if payload.get("dataset") else ""
        for family in ("SR", "SRhit"):
            series = {
                run: [stored_figure(entry, Figure.percent(None)) for entry in entries[family]]
                for run, entries in payload["runs"].items()
                if entries.get(family)
            }
            if series and payload["m"]:
                charts.append(Lines(
                    title=f"{family}[{payload['phi']}]@{payload['k']} against m{where}", across=tuple(payload["m"]),
                    series=series_of(series), axis="m", limits=(0, 1),
                    about=f"{family}: {DEFINITIONS[family]}, for each m; in percent.",
                ))  # fmt: skip
    return charts


def everything(context: ReportContext) -> ReportSection | None:
    """Every metric of every run: a chart where they are shares, and the table."""
    runs = context.inputs.runs
    names = list(dict.fromkeys(name for run in runs.values() for name in run))
    if not names:
        return None
    levels = " and ".join(sorted({f"{100 * run[name].level:g} %" for run in runs.values() for name in run}))
    about = f"{unit_sentence(names)} In brackets: {levels} intervals over images."
    hits = [name for name in names if _family(name) == "Hit"]
    charts = [
        Bars(
            title=f"Hit rates, {DIRECTION_LABELS.get(side, side)}",
            groups=tuple(split_name(name)[1] for name in own),
            series=series_of({run: [figure_of(values.values.get(name), name) for name in own]
                              for run, values in runs.items()}),
            heading="metric", axis="percent", limits=(0, 1),
        )
        for side in dict.fromkeys(split_name(name)[0] for name in hits)
        if (own := [name for name in hits if split_name(name)[0] == side])
    ]  # fmt: skip
    table = replace(_metrics_table("All metrics", names, runs), folded=True)
    parts = (side_by_side(charts), table, paragraph(about, "facts"))
    return ReportSection("figures", "All figures", tuple(part for part in parts if part))
