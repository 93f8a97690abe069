"""The sections of a report that are tables and charts, from runs and from the stored results of stages.

Each is a function of the context; one without content returns None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from crosslens import __version__
from crosslens.core import (
    DIRECTION_LABELS,
    Array,
    Bars,
    Cards,
    Cell,
    Chart,
    CrosslensError,
    Figure,
    Heat,
    Lines,
    MetricValues,
    Part,
    Row,
    Run,
    Series,
    Table,
    Text,
    split_name,
)
from crosslens.metrics import (
    SubGalleries,
    dataset_name,
    family_of,
    metric_figure,
    parse_metric,
    spec_of,
    unit_of,
    unit_sentence,
)
from crosslens.pipeline import (
    DEFINITIONS,
    Leaderboard,
    StageResult,
    add_columns,
    board_table,
    difference_figure,
    group_metrics,
    percent_figure,
    read_columns,
    round_sizes,
)
from crosslens.report.document.inputs import ReportContext
from crosslens.report.forms.page import folded
from crosslens.statistics import significance_sentence

Content = Part | str
"""A part, or HTML where pictures need it."""

_BOARD_COLUMNS = 8
_BOARD_METRICS = ("t2i/Hit@1", "i2t/Hit@1", "t2i/Hit@5", "i2t/Hit@5", "t2i/Hit@10", "i2t/Hit@10", "Rsum")
_RECALLS = ("Hit", "Recall", "CappedRecall")
_MOST_SHOWN = 2
"""Tables of recalls that are open from the start."""
_FEWER = 3
"""Columns of each dataset, where there are several."""
_MOST_BRITTLE = 6
_MOST_LISTED = 10
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_FIRST = parse_metric("Hit@1").spec
_PERCENT, _NUMBER = Figure.percent(None), Figure(None)


class Html(str):
    """HTML with charts in it, which are also written as files."""

    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class ReportSection:
    """A section of the report: its place in the address, its heading, and its content."""

    target: str
    title: str
    parts: tuple[Content, ...]

    def figures(self) -> Iterator[Chart | Table]:
        """Its charts and tables, which are written as files."""
        for part in self.parts:
            if isinstance(part, Row | Html):
                yield from part.charts
            elif isinstance(part, Chart | Table):
                yield part


def _section(target: str, title: str, parts: Sequence[Content], *lead: str) -> ReportSection | None:
    """A section with what leads into it; None where nothing else is in it."""
    shown = [part for part in parts if part and part != Row(())]
    return ReportSection(target, title, (*map(Text.of, lead), *shown)) if shown else None


def folded_notes(lines: Sequence[str], summary: str = "Notes") -> str:
    """Lines that not every reader needs, folded."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return folded(summary, f"<ul>{items}</ul>") if lines else ""


def series_of(figures: Mapping[str, Sequence[Figure]]) -> tuple[Series, ...]:
    """The figures of a chart by the names of their series."""
    return tuple(Series(name, tuple(own)) for name, own in figures.items())


def figure_of(values: MetricValues | None, metric: str = "") -> Figure:
    """A metric's value and interval; one that is absent where there are no values."""
    if values is None:
        return metric_figure(metric, None)
    return metric_figure(values.name, values.mean, values.low, values.high)


def _of(payload: Mapping[str, Any], word: str = "of") -> str:
    return f" {word} {payload['dataset']}" if payload.get("dataset") else ""


def leaderboard(context: ReportContext) -> ReportSection | None:
    """The leaderboard that an audit computed; without one, the runs of each dataset compared in pairs."""
    parts: list[Content] = []
    for result in context.inputs.stage("leaderboard"):
        board = Leaderboard.from_dict(result.payload)
        room = max(1, _BOARD_COLUMNS // len(board.datasets))
        chosen = ([name for name in _BOARD_METRICS if name in board.metrics] or list(board.metrics))[:room]
        columns = {
            f"{dataset}: {name}" if len(board.datasets) > 1 else name: (dataset, name)
            for dataset in board.datasets
            for name in chosen
        }
        shown = replace(board, metrics=tuple(chosen), notes=())
        parts += [board_table(shown, columns, "Models and datasets"), folded_notes(board.notes)]
    for dataset, comparison in context.comparisons.items() if not parts else ():
        rows = tuple(
            (
                entry.other,
                entry.baseline,
                entry.metric,
                metric_figure(entry.metric, entry.other_mean),
                metric_figure(entry.metric, entry.baseline_mean),
                difference_figure(entry),
                Figure.p(entry.adjusted_p, comparison.permutations),
                f"{entry.wins:,} : {entry.losses:,}",
            )
            for entry in comparison.results
        )
        header = ("run A", "run B", "metric", "A", "B", "A − B", "p", "A better : B better")
        test = "paired permutation test over images"
        about = (
            significance_sentence(test, comparison.permutations, comparison.correction, len(rows)),
            unit_sentence(entry.metric for entry in comparison.results),
        )
        title = f"Runs compared{f' on {dataset}' if dataset else ''}"
        parts += [Table(header, rows, "lllrrlrr", title=title, notes=about), folded_notes(comparison.notes)]
    return _section("leaderboard", "Leaderboard", parts)


def _stored(context: ReportContext, stage: str) -> list[Content]:
    """What a stage stored of how its results are shown, of every run."""
    parts: list[Content] = []
    for result in context.inputs.stage(stage):
        whose = result.model or result.dataset
        for section in result.sections:
            title = f"{section.title}: {whose}" if whose not in section.title else section.title
            shown = (replace(part, pictures={}) if isinstance(part, Cards) else part for part in section.parts)
            parts += [Text.of(title if len(context.inputs.runs) > 1 else ""), *shown]
    return parts


def soundness(context: ReportContext) -> ReportSection | None:
    """Whether what was evaluated is what was meant, as far as numbers can tell."""
    return _section("soundness", "Is the input sound?", _stored(context, "soundness"))


def reading(context: ReportContext) -> ReportSection | None:
    """What the model reads in a caption, by pairs of captions and of pictures that differ in one fact."""
    parts = [*_stored(context, "twins"), *_stored(context, "probes")]
    return _section("reading", "What the model reads", parts)


def sensitivity(context: ReportContext) -> ReportSection | None:
    """What this audit could have noticed, where that was measured; of several runs, whose each table is."""
    several, parts = len(context.inputs.runs) > 1, list[Content]()
    for section in (section for result in context.inputs.sensitivities for section in result.sections()):
        parts += [*([Text.of(section.title)] if several else []), *section.parts]
    return _section("sensitivity", "What this audit could have noticed", parts)


def _family(metric: str) -> str:
    spec = spec_of(metric)
    return spec.family if spec is not None else ""


def recalls(context: ReportContext) -> ReportSection | None:
    """Hit, Recall and CappedRecall beside each other, rows by direction and recall: papers call all three R@k."""
    tables: list[Content] = []
    for name, run in context.inputs.runs.items():
        parsed = [
            (split_name(metric)[0], match[1], int(match[2]))
            for metric in run
            if _family(metric) in _RECALLS and (match := re.search(r"(\w+)@(\d+)$", metric))
        ]
        if len({kind for _, kind, _ in parsed}) < 2:
            continue
        cutoffs = sorted({k for _, _, k in parsed})
        order = sorted({row[:2] for row in parsed}, key=lambda row: (row[0] != "t2i", row[0], _RECALLS.index(row[1])))
        rows: list[tuple[Cell, ...]] = [
            (
                f"{DIRECTION_LABELS.get(side, side)}: {kind}",
                *(figure_of(run.values.get(key), key) for key in (f"{side}/{kind}@{k}" for k in cutoffs)),
            )
            for side, kind in order
        ]
        header = ("", *(f"@{k}" for k in cutoffs))
        is_folded = len(tables) >= _MOST_SHOWN
        title = f"Three recalls of {name}"
        tables.append(Table(header, rows, "l" * len(header), title=title, folded=is_folded))
    return _section(
        "recalls",
        "Three recalls",
        tables,
        "Papers call three quantities R@k. " + " ".join(f"{name}@k: {DEFINITIONS[name]}." for name in _RECALLS),
        "They are equal where a query has one relevant item. In percent, with intervals in brackets.",
    )


def _metrics_table(title: str, names: Sequence[str], runs: Mapping[str, Run], *, is_folded: bool = False) -> Table:
    """A row per metric, a column per run."""
    return Table(
        ("metric", *runs),
        [(name, *(figure_of(run.values.get(name), name) for run in runs.values())) for name in names],
        "l" * (1 + len(runs)),
        title=title,
        folded=is_folded,
    )


def graded(context: ReportContext) -> ReportSection | None:
    """Metrics that know more and less relevant items; and semantic recall against what counts as relevant."""
    runs = context.inputs.runs
    every = dict.fromkeys(name for run in runs.values() for name in run)
    names = [name for name in every if (spec := spec_of(name)) is not None and family_of(spec).graded]
    parts: list[Content] = []
    if names:
        families = dict.fromkeys(map(_family, names))
        words = " ".join(f"{name}@k: {DEFINITIONS[name]}." for name in families if name in DEFINITIONS)
        about = f"{words} {unit_sentence(names)}".strip()
        parts += [_metrics_table("Graded metrics", names, runs), Text.of(about, note=True)]
    charts = []
    for result in context.inputs.stage("curve"):
        payload = result.payload
        for family in ("SR", "SRhit"):
            series = {
                run: [_PERCENT.of_row(entry) for entry in entries[family]]
                for run, entries in payload["runs"].items()
                if entries.get(family)
            }
            if series and payload["m"]:
                charts.append(Lines(
                    title=f"{family}[{payload['phi']}]@{payload['k']} against m{_of(payload, 'on')}",
                    across=tuple(payload["m"]), series=series_of(series), axis="m", limits=(0, 1),
                    about=f"{family}: {DEFINITIONS[family]}, for each m; in percent.",
                ))  # fmt: skip
    return _section(
        "graded",
        "Graded metrics",
        [*parts, Row(tuple(charts))],
        "Captions of other images often fit too. Graded metrics ask how similar the retrieved items are to what the "
        "query says (φ), not only whether they are the annotated ones.",
    )


def groups(context: ReportContext) -> ReportSection | None:
    """A chart per column and dataset, with the runs beside each other; and the levels of difficulty."""
    charts: list[Chart] = []
    by_dataset = context.inputs.by_dataset()
    several = len(by_dataset) > 1
    for dataset, runs in by_dataset.items():
        first = next(iter(runs.values()))
        metric = context.headline(first)
        for column in context.columns(first)[: _FEWER if several else None] if metric is not None else ():
            assert metric is not None
            grouped = {name: context.grouped(name, column, metric) for name in runs}
            values = {name: {} if own is None else own.values.get(metric, {}) for name, own in grouped.items()}
            names = list(dict.fromkeys(group for own in values.values() for group in own))
            sizes = {group: next(own[group].n for own in values.values() if group in own) for group in names}
            series = {name: [figure_of(own.get(group), metric) for group in names] for name, own in values.items()}
            if len(names) > 1:
                charts.append(Bars(
                    title=f"{metric} by {column}{f', {dataset}' if several and dataset else ''}",
                    groups=tuple(f"{group} ({sizes[group]:,})" for group in names), series=series_of(series),
                    heading=column, axis=metric, limits=(0, 1),
                    about=f"{metric} over the queries of each {column}; in brackets how many.",
                ))  # fmt: skip
    difficulty = [part for result in context.inputs.stage("difficulty") for part in _difficulty(context, result)]
    return _section(
        "groups",
        "Groups, tasks, difficulty",
        [Row(tuple(charts)), *difficulty],
        "The same metric over parts of the queries. Intervals of small groups are wide: groups whose intervals overlap "
        "widely may not differ.",
    )


def _difficulty(context: ReportContext, result: StageResult) -> Iterator[Content]:
    """How many pairs are easy or hard for the models together; where the table of pairs is there, the metric by it."""
    payload = result.payload
    rows = tuple((name, level["pairs"], _PERCENT.of_row(level, "share")) for name, level in payload["levels"].items())
    yield Table(("level", "pairs", "share, %"), rows, title=f"Pairs{_of(payload)} by difficulty")
    yield Text.of(
        "A level says how many models score a caption and its image above their thresholds: "
        f"{payload['mapping']} of {', '.join(payload['models'])}.",
        note=True,
    )
    table = next((Path(file) for file in payload.get("files", ()) if str(file).endswith(".parquet")), None)
    if result.folder is not None and (table is None or not table.exists()):
        table = next(iter(sorted(result.folder.glob("*.parquet"))), None)
    if table is None or not table.exists():
        return
    series: dict[str, Mapping[str, MetricValues]] = {}
    metric = None
    for name, run in context.inputs.runs.items():
        metric = context.headline(run)
        if metric is None or result.dataset not in ("", dataset_name(run)):
            continue
        try:
            grouped = group_metrics(add_columns(run, read_columns(table))[0], "difficulty", [metric])
        except CrosslensError:
            continue
        series[name] = grouped.values.get(metric, {})
    names = list(dict.fromkeys(group for own in series.values() for group in own))
    if metric is not None and names:
        shown = {name: [figure_of(own.get(group), metric) for group in names] for name, own in series.items()}
        yield Bars(
            title=f"{metric} by difficulty", groups=tuple(names), series=series_of(shown), heading="difficulty",
            limits=(0, 1),
        )  # fmt: skip


def robustness(context: ReportContext) -> ReportSection | None:
    """What small changes cost, as a heat map; the captions that lost most; and captions that are nearly right."""
    results = context.inputs.stage("robustness")
    changes: list[Content] = list(_drops(context, results))
    rows: list[Mapping[str, Any]] = [row for result in results for row in result.payload.get("brittle", ())]
    changed = [row for row in rows if row.get("text") and row["text"] != row.get("original")]
    worst = sorted(changed, key=lambda row: -(row.get("drop") or 0.0))[:_MOST_BRITTLE]
    if worst:
        rank = Figure(None, digits=0)
        cells = tuple(
            (str(row["original"]), str(row["text"]), str(row["perturbation"]), replace(rank, value=row["rank_before"]),
             replace(rank, value=row["rank_after"]), str(row["model"]))
            for row in worst
        )  # fmt: skip
        header = ("caption", "changed to", "change", "rank before", "rank after", "run")
        changes.append(Table(header, cells, title="Captions that lost most"))
    about = (
        "Points lost when captions or pictures are changed a little: red is a loss, green a gain, a deeper colour is "
        "more. In brackets: the interval includes 0, so there may be no loss at all."
    )
    negatives = _stored(context, "hard-negatives")
    return _section("robustness", "Robustness", [*changes, *negatives], *([about] if changes else []))


def _drops(context: ReportContext, results: Sequence[StageResult]) -> Iterator[Content]:
    """Several models: a column each. One: a column per metric."""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for result in results:
        drops = list(result.payload.get("drops", ()))
        known = dict.fromkeys(str(row["metric"]) for row in drops)
        wanted = (f"{context.direction}/Hit@1", str(result.payload.get("headline", "")), *known)
        metric = next((name for name in wanted if name in known), "")
        # The name of the run in the report; a study of several models has names of its own.
        alone = result.model if len(result.payload.get("models", ())) == 1 else ""
        rows += [(alone or str(row["model"]), row) for row in drops if row["metric"] == metric]
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
    unit = metric_figure(metric, None)
    points = {name: tuple(unit.of_row(cells.get((name, column)), "drop") for column in columns) for name in names}

    def cost(name: str) -> float:
        first = points[name][0].value
        return -math.inf if first is None else first

    order = sorted(names, key=lambda name: -cost(name))
    yield Heat(
        title=title, rows=tuple(order), columns=tuple(columns), cells=tuple(points[name] for name in order),
        heading="change", worse=True, about="Rows are changes, the costliest first; positive numbers are losses.",
    )  # fmt: skip
    drops_table = tuple(
        (
            str(row["perturbation"]),
            model,
            replace(unit, value=row.get("before")),
            replace(unit, signed=True).of_row(row, "drop"),
            percent_figure(row),
        )
        for model, row in rows
    )
    title = f"Drop of {metric}, in points and in percent of the figure before"
    yield Table(("change", "run", "before", "points", "percent"), drops_table, "llrll", title=title)


def gallery(context: ReportContext) -> ReportSection | None:
    """How results depend on k, and on how large the gallery is: both exact, from the ranks that a run keeps."""
    ranks = {name: context.first_ranks(run) for name, run in context.inputs.runs.items()}
    series = {name: own for name, own in ranks.items() if own is not None and len(own)}
    rankings = {name: context.inputs.runs[name].rankings[context.direction] for name in series}
    charts: list[Chart] = []
    cutoffs = [k for k in _CUTOFFS if any(k <= len(ranking.item_ids) for ranking in rankings.values())]
    if len(cutoffs) > 1:
        shown = {name: [Figure.percent(hit_rate(own, k)) for k in cutoffs] for name, own in series.items()}
        charts.append(Lines(
            title=f"Hit@k, {context.direction}", across=tuple(cutoffs), series=series_of(shown), axis="k",
            logarithmic=True, limits=(0, 1),
            about="The share of queries with a right item among the first k; in percent.",
        ))  # fmt: skip
    # Only over the whole gallery every rank is known.
    galleries = {
        name: SubGalleries(ranking)
        for name, ranking in rankings.items()
        if ranking.complete
        and not (ranking.known < len(ranking.item_ids)).any()
        and (ranking.relevant_counts > 0).any()
    }
    sizes = (own.gallery for own in galleries.values())
    across = round_sizes(max(own.smallest for own in galleries.values()), sizes) if galleries else ()
    if len(across) > 1:
        shown = {
            name: [
                Figure.percent(float(np.nanmean(own.values(_FIRST, size))) if size <= own.gallery else None)
                for size in across
            ]
            for name, own in galleries.items()
        }
        smallest = min(own.gallery for own in galleries.values())
        charts.append(Lines(
            title=f"Hit@1 against the size of the gallery, {context.direction}", across=tuple(across),
            series=series_of(shown), axis="items in the gallery", logarithmic=True, limits=(0, 1),
            about=f"The share of queries with a right item first; the whole gallery has {smallest:,} items or more.",
        ))  # fmt: skip
    return _section(
        "gallery",
        "Gallery and depth",
        [Row(tuple(charts))],
        "Hit@k is the share of queries with a right item among the first k. The other curve is Hit@1 if the gallery "
        "held only some of the items, drawn at random with the relevant ones kept: the mean over all such draws, "
        "computed from the ranks. Figures on galleries of different size cannot be compared; these curves can.",
    )


def hit_rate(ranks: Sequence[int] | Array, k: int) -> float:
    """The share of ranks from 1 to k; a rank of −1 (not listed) is none."""
    own = np.asarray(ranks)
    return float(((own >= 1) & (own <= k)).mean())


def captions(context: ReportContext) -> ReportSection | None:
    """What the captions are like: how fine-grained, as a table, and how diverse for similar images, as curves."""
    parts = [*_stored(context, "granularity"), *_stored(context, "polysemy")]
    return _section("granularity", "Granularity of the captions", parts)


def labels(context: ReportContext) -> ReportSection | None:
    """What may be said about the labels, and what a person should look at."""
    parts = [*_stored(context, "label-quality"), *_stored(context, "missing-positives")]
    return _section("labels", "Labels", parts)


def everything(context: ReportContext) -> ReportSection | None:
    """Every metric of every run: charts of the hit rates, and the table."""
    runs = context.inputs.runs
    names = list(dict.fromkeys(name for run in runs.values() for name in run))
    if not names:
        return None
    levels = " and ".join(sorted({f"{100 * run[name].level:g} %" for run in runs.values() for name in run}))
    about = f"{unit_sentence(names)} In brackets: {levels} intervals over images."
    hits: dict[str, list[str]] = {}
    for name in names:
        if _family(name) == "Hit":
            hits.setdefault(split_name(name)[0], []).append(name)
    charts = tuple(
        Bars(
            title=f"Hit rates, {DIRECTION_LABELS.get(side, side)}",
            groups=tuple(split_name(name)[1] for name in own),
            series=series_of({run: [figure_of(values.values.get(name), name) for name in own]
                              for run, values in runs.items()}),
            heading="metric", axis="percent", limits=(0, 1),
        )
        for side, own in hits.items()
    )  # fmt: skip
    table = _metrics_table("All metrics", names, runs, is_folded=True)
    return _section("figures", "All figures", [Row(charts), table, Text.of(about, note=True)])


def provenance(context: ReportContext) -> ReportSection | None:
    """What every run was made from."""
    runs = context.inputs.runs
    facts = {name: _facts(run) for name, run in runs.items()}
    rows = tuple(
        (label, *(own.get(label, "–") for own in facts.values()))
        for label in dict.fromkeys(label for own in facts.values() for label in own)
    )
    noted = [
        folded_notes([str(line) for line in run.provenance.get("notes", ())], f"Notes of {name}")
        for name, run in runs.items()
    ]
    table = Table(("", *runs), rows, title="Runs")
    lead = f"Written by crosslens {__version__}. Everything below is stored in the run folders."
    return _section("provenance", "Provenance", [table, *noted], lead)


def _facts(run: Run) -> dict[str, str]:
    known = run.provenance
    dataset, options, inputs, versions = (
        dict(known.get(key) or {}) for key in ("dataset", "options", "inputs", "versions")
    )
    relevance = known.get("relevance")
    models = (str(side["model"]) for side in inputs.values() if isinstance(side, Mapping) and side.get("model"))
    facts = {
        "dataset": dataset.get("name"),
        "images": dataset.get("images"),
        "captions": dataset.get("captions"),
        "fingerprint of the dataset": dataset.get("fingerprint"),
        "model": ", ".join(dict.fromkeys(models)),
        "protocol": run.protocol.get("name"),
        "score": known.get("score"),
        "relevance": relevance.get("source") if isinstance(relevance, Mapping) else None,
        "ties": options.get("ties"),
        "depth of lists": options.get("depth"),
        "seed": options.get("seed"),
        "resamples": options.get("resamples"),
        "fingerprint of the run": run.fingerprint,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
    }
    counts = ("images", "captions", "resamples")
    return {
        label: f"{value:,}" if label in counts and isinstance(value, int) else str(value)
        for label, value in facts.items()
        if value not in (None, "")
    }


def reproduction(context: ReportContext) -> ReportSection | None:
    """Commands, each of which computes a part of the report by itself; and the recipes."""
    inputs = context.inputs
    commands = [
        *(f"crosslens run {folder}/recipe.toml" for name, folder in inputs.sources.items() if inputs.runs[name].recipe),
        *(result.command for result in inputs.results),
        inputs.command,
    ]

    def code(text: str) -> str:
        return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'

    listed = "\n".join(dict.fromkeys(command for command in commands if command))
    lead = "The same seed gives the same numbers. Each of these commands computes a part of this report:"
    recipes = [folded(f"Recipe of {name}", code(run.recipe)) for name, run in inputs.runs.items() if run.recipe]
    shown = [code(listed), *recipes] if listed else recipes
    return _section("reproduce", "How to reproduce", shown, *([lead] if listed else []))
