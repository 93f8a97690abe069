"""All failures of a run as text: concept metrics, causes, rules, the most frequent confusions."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from crosslens.core import PAGE_WIDTH, Grid, decimal
from crosslens.explanations import SCOPES, ConceptTable, Overview, OverviewComparison, synset_word
from crosslens.metrics import format_count

METRIC_NAMES: Mapping[str, str] = {
    "CA": "CA, %",
    "NonCommonSimilarity": "concept similarity",
    "CE": "CE",
    "SD": "SD",
    "SD[binary]": "SD[binary], %",
    "object_hit": "objects hit",
    "object_miss": "objects missed",
    "object_extra": "objects extra",
    "matched_synsets": "matched, %",
    "wrong_count": "wrong count, %",
    "attribute_agreement": "attributes, %",
    "spatial_agreement": "places, %",
}
"""How tables call the metrics."""
_PERCENT = tuple(name for name, words in METRIC_NAMES.items() if words.endswith("%"))
_SHOWN = 10
GROUND_TRUTH = "ground_truth"


@dataclass(frozen=True)
class TitledTable:
    """A table under its title, with the lines that explain it."""

    title: str
    grid: Grid
    notes: tuple[str, ...] = ()


def overview_text(overview: Overview, width: int | None = None, *, shown: int = _SHOWN) -> str:
    """All tables of an overview."""
    return _text(_head(overview), overview_sections(overview, shown), overview.notes, width)


def comparison_text(comparison: OverviewComparison, width: int | None = None, *, shown: int = _SHOWN) -> str:
    """Where two runs fail differently."""
    return _text(comparison_head(comparison), comparison_sections(comparison, shown), comparison.first.notes, width)


def overview_sections(overview: Overview, shown: int = _SHOWN) -> list[TitledTable]:
    """The tables of an overview; those that would be empty are left out."""
    kinds = "" if overview.depth is None else f", {overview.depth} steps below the top of WordNet's tree"
    sections = [
        TitledTable("Right and retrieved image, mean over failures", metric_grid(overview), _metric_notes(overview)),
        TitledTable("Over all failures together", total_grid(overview.metrics.to_dicts(), overview.totals.to_dicts()), (
            "Synsets, matchings and multiplicities as EXPL counts them: non-common synsets of both images, matched in "
            "pairs; common synsets with as many objects in both images, or not.",)),
        TitledTable("Causes", cause_grid(overview), (
            "asked: failures whose query mentions it; open: of these, undecided; main: counted once per failure, by "
            "the first that applies from above.",)),
        TitledTable("Number of causes", cause_number_grid(overview), (
            "of caused: of the failures with a cause; near misses and unclear ones have none.",)),
        TitledTable("Rules", rule_grid(overview.rules, shown), (
            "p: Fisher's exact test that A makes B likelier, corrected for all rules tested.",)),
        TitledTable(f"Confused with{kinds}", atlas_grid(overview.atlas, shown, overview.names), (
            "times: failures whose right image has the first and whose retrieved image has the second instead; lift: "
            "how much more often than chance; (2): the word's second sense in WordNet.",)),
        TitledTable(
            f"Query concepts, and what was retrieved instead{kinds}",
            atlas_grid(overview.query_atlas, shown, overview.names)),
        TitledTable("Correlations over failures", correlation_grid(overview)),
    ]  # fmt: skip
    return [section for section in sections if section.grid.rows]


def metric_grid(overview: Overview) -> Grid:
    """Metrics down; query-agnostic and query-informed side by side."""
    by_scope = {(row["scope"], row["metric"]): row for row in overview.metrics.to_dicts()}
    rows = []
    for metric, words in METRIC_NAMES.items():
        cells = [by_scope["all", metric], by_scope["query", metric]]
        if any(row["mean"] is not None for row in cells):
            rows.append(
                (words, *(cell for row in cells for cell in (metric_cell(metric, row), f"{row['undefined']:,}")))
            )
    return Grid(("", "every object", "skipped", "query concepts", "skipped"), tuple(rows), "lrrrr")


def total_grid(metrics: Sequence[Mapping[str, Any]], totals: Sequence[Mapping[str, Any]]) -> Grid:
    """Sums and pooled shares down, query-agnostic and query-informed side by side."""
    by_metric = {(row["scope"], row["metric"]): row for row in metrics}
    columns = []
    for row in totals:
        hit, missed = (by_metric[row["scope"], name]["total"] for name in ("object_hit", "object_miss"))
        agreement, sizes = (by_metric[row["scope"], name]["pooled"] for name in ("CA", "SD[binary]"))
        matched = row["matchings"] / row["non_common_synsets"] if row["non_common_synsets"] else None
        most = "–" if row["most_common_CE"] is None else f"{row['most_common_CE']:,}"
        columns.append({
            "objects hit": f"{hit:,.0f}",
            "objects missed": f"{missed:,.0f}",
            "common synsets": f"{row['common_synsets']:,}",
            "non-common synsets": f"{row['non_common_synsets']:,}",
            "matchings (% of non-common)": _counted(row["matchings"], matched),
            "same multiplicity (% of common)": _counted(row["same_multiplicity"], row["same_share"]),
            "different multiplicities (% of common)": _counted(row["different_multiplicities"], row["different_share"]),
            "most common CE (failures)": f"{most} ({row['most_common_CE_failures']:,})",
            "CA, %": "–" if agreement is None else f"{100 * agreement:.1f}",
            "SD[binary], %": "–" if sizes is None else f"{100 * sizes:.1f}",
        })  # fmt: skip
    rows = tuple((name, *(column[name] for column in columns)) for name in columns[0])
    return Grid(("", "every object", "query concepts"), rows, "lrr")


def _counted(number: int, share: float | None) -> str:
    return f"{number:,}" if share is None else f"{number:,} ({100 * share:.1f})"


def metric_cell(metric: str, row: Mapping[str, Any]) -> str:
    """A mean with its interval."""
    if row["mean"] is None:
        return "–"
    scale, digits = (100, 1) if metric in _PERCENT else (1, 3 if metric == "NonCommonSimilarity" else 2)
    return with_interval(row, scale, digits)


def with_interval(
    row: Mapping[str, Any], scale: float = 1, digits: int = 2, name: str = "mean", *, signed: bool = False
) -> str:
    """A figure and its interval, where it has one."""
    if row[name] is None:
        return "–"
    numbers = [row[name]] if row["low"] is None else [row[name], row["low"], row["high"]]
    figure, *bounds = (decimal(scale * number, digits, signed=signed) for number in numbers)
    return f"{figure} [{', '.join(bounds)}]" if bounds else figure


def _metric_notes(overview: Overview) -> tuple[str, ...]:
    return (
        "CA: concepts of the right image that the retrieved one has; concept similarity: path similarity of the "
        "others, matched in pairs; CE: difference of counts; SD: difference of box areas; matched: synsets in such a "
        "pair, of all not in common; wrong count: of common concepts; attributes, places: agreement of common objects.",
        *size_notes(overview.settings, overview.metrics),
        f"skipped: failures in which a metric is undefined. {100 * overview.level:g}% intervals over images.",
    )


def size_notes(settings: Mapping[str, Any], metrics: pl.DataFrame) -> tuple[str, ...]:
    """What the base of SD hides: relative to the right image's box, a smaller box differs by less than 1."""
    measured = metrics.filter((pl.col("metric") == "SD[binary]") & pl.col("mean").is_not_null()).height > 0
    if not measured or settings.get("base", GROUND_TRUTH) != GROUND_TRUTH or settings.get("threshold", 1.0) < 1:
        return ()
    return (
        "SD[binary] counts boxes that differ from those of the right image by at least "
        f"{100 * settings.get('threshold', 1.0):g}% of their area: a box that shrank never does, however small it "
        "became; the base min (--size-base min) is symmetric.",
    )


def cause_grid(overview: Overview) -> Grid:
    """Causes down."""
    rows = [
        (
            row["cause"],
            "" if row["asked"] is None else f"{row['asked']:,}",
            "" if row["asked"] is None else f"{row['open']:,}",
            f"{row['count']:,}",
            with_interval(row, 100, 1, "share"),
            f"{100 * row['main_share']:.1f}",
        )
        for row in overview.causes.to_dicts()
    ]
    return Grid(("cause", "asked", "open", "failures", "% of failures", "main, %"), tuple(rows), "lrrrrr")


def cause_number_grid(overview: Overview) -> Grid:
    """How many failures have no cause, one, two …"""
    rows = [
        (
            f"{row['causes']}", f"{row['count']:,}", with_interval(row, 100, 1, "share"),
            "" if row["of_caused"] is None else f"{100 * row['of_caused']:.1f}",
        )
        for row in overview.cause_numbers.to_dicts()
    ]  # fmt: skip
    return Grid(("causes", "failures", "% of failures", "of caused, %"), tuple(rows), "lrrr")


def rule_grid(rules: pl.DataFrame, shown: int) -> Grid:
    """Rules that chance does not explain first; only those that make something likelier."""
    rows = [
        (
            " and ".join(row["if"]), row["then"], f"{row['count']:,}", f"{100 * row['support']:.1f}",
            f"{100 * row['confidence']:.1f}", f"{row['lift']:.2f}", _p(row["p_adjusted"]),
        )
        for row in rules.filter(pl.col("lift") > 1).head(shown).to_dicts()
    ]  # fmt: skip
    return Grid(("if wrong", "then wrong", "times", "support, %", "confidence, %", "lift", "p"), tuple(rows), "llrrrrr")


def atlas_grid(atlas: pl.DataFrame, shown: int, names: Mapping[str, str] | None = None) -> Grid:
    """The most frequent confusions."""
    rows = [
        (
            synset_label(row["expected"], names), synset_label(row["shown"], names), f"{row['count']:,}",
            f"{100 * row['share_of_expected']:.0f}", f"{row['lift']:.1f}", f"{row['similarity']:.2f}",
        )
        for row in atlas.head(shown).to_dicts()
    ]  # fmt: skip
    return Grid(("expected", "shown", "times", "of expected, %", "lift", "similarity"), tuple(rows), "llrrrr")


def correlation_grid(overview: Overview) -> Grid:
    """Each two metrics, Spearman and Kendall."""
    rows = []
    for row in overview.correlations.filter(pl.col("spearman").is_not_null()).to_dicts():
        cells = [
            with_interval({"mean": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]})
            for name in ("spearman", "kendall-b")
        ]
        names = (METRIC_NAMES.get(row[side], row[side]).removesuffix(", %") for side in ("first", "second"))
        rows.append((", ".join(names), *cells, f"{row['failures']:,}"))
    return Grid(("", "Spearman ρ", "Kendall τ-b", "failures"), tuple(rows), "lrrr")


_TABLE_3: Mapping[str, str] = {
    "Fails": "fails, % ↓",
    "CA": "CA, % ↑",
    "NonCommonSimilarity": "NCS ↑",
    "CE": "CE ↓",
    "SD[binary]": "SD, % ↓",
    "object_hit": "hit ↑",
    "object_miss": "missed ↓",
    "matched_synsets": "matched, % ↑",
    "wrong_counts": "wrong counts ↓",
}
"""The columns of the table of several runs, which are those of EXPL's Table 3."""


def concepts_text(table: ConceptTable, width: int | None = None) -> str:
    """Several runs in one table, query-agnostic and query-informed; intervals where they fit."""
    grids = [concepts_grid(table, scope) for scope in SCOPES]
    if width is not None and any(grid.width > width for grid in grids):
        grids = [concepts_grid(table, scope, intervals=False) for scope in SCOPES]
    titles = ("Concept metrics, every object", "Concept metrics, query concepts")
    first = next(iter(table.overviews.values()))
    notes = (
        "A row per run, over its own failures: runs fail on different queries. hit, missed: objects in all; matched: "
        "over all failures together; wrong counts: common concepts of another count, per failure; others: means.",
        *size_notes(first.settings, table.metrics),
        f"NCS: concept similarity (NonCommonSimilarity). {100 * first.level:g}% intervals over images.",
    )
    sections = [TitledTable(title, grid) for title, grid in zip(titles, grids, strict=True)]
    sections[-1] = replace(sections[-1], notes=notes)
    head = f"{len(table.overviews)} runs on {first.dataset}, {table.direction}; concepts from {first.source}"
    return _text(head, sections, first.notes, width)


def concepts_grid(table: ConceptTable, scope: str = "all", *, intervals: bool = True) -> Grid:
    """Runs down, the columns of EXPL's Table 3 across."""
    rows = []
    for run in table.overviews:
        own = table.metrics.filter((pl.col("run") == run) & (pl.col("scope") == scope)).to_dicts()
        by_metric = {row["metric"]: row for row in own}
        shown = [name for name in _TABLE_3 if scope == SCOPES[0] or name != "Fails"]
        rows.append((run, *(_concept_cell(name, by_metric[name], intervals) for name in shown)))
    header = tuple(words for name, words in _TABLE_3.items() if scope == SCOPES[0] or name != "Fails")
    return Grid(("run", *header), tuple(rows), "l" + "r" * len(header))


def _concept_cell(metric: str, row: Mapping[str, Any], intervals: bool) -> str:
    """Totals of objects, the share over all failures of matched synsets, means of the others."""
    if metric in ("object_hit", "object_miss"):
        return f"{row['total']:,.0f}"
    if metric == "matched_synsets":
        return "–" if row["pooled"] is None else f"{100 * row['pooled']:.1f}"
    figure = with_interval(row, 100, 1) if metric == "Fails" else metric_cell(metric, row)
    return figure if intervals else figure.partition(" ")[0]


def comparison_sections(comparison: OverviewComparison, shown: int = _SHOWN) -> list[TitledTable]:
    """Causes and confusions, side by side."""
    rows = [("all failures", *_sides(comparison.failed.to_dicts()[0]))]
    rows += [(row["cause"], *_sides(row)) for row in comparison.causes.to_dicts()]
    names = comparison.first.names
    head = ("first", "second", "difference", "only first", "only second")
    pairs = [
        (f"{synset_label(row['expected'], names)} → {synset_label(row['shown'], names)}", *_sides(row))
        for row in comparison.confusions.head(shown).to_dicts()
    ]
    sections = [
        TitledTable("Failures by cause", Grid(("", *head), tuple(rows), "lrrrrr")),
        TitledTable("Confused with", Grid(("", *head), tuple(pairs), "lrrrrr"), ("The largest differences first.",)),
    ]
    return [section for section in sections if section.grid.rows]


def comparison_head(comparison: OverviewComparison) -> str:
    """Which runs, over how many queries."""
    return (
        f"first: {comparison.first.run}, second: {comparison.second.run}; "
        f"{format_count(comparison.queries, 'query')} in both "
        f"({comparison.first.direction}); difference: second − first, in percent of them"
    )


def synset_label(synset: str, names: Mapping[str, str] | None = None) -> str:
    """A synset as the dataset calls it (``names``), else its first word; with its number if it is a later sense."""
    if names and synset in names:
        return names[synset]
    word, number = synset_word(synset), synset.rsplit(".", 1)[-1]
    return word if number == "01" else f"{word} ({number.lstrip('0')})"


def _sides(row: Mapping[str, Any]) -> tuple[str, ...]:
    difference = with_interval(row, 100, 1, "difference", signed=True)
    return f"{row['first']:,}", f"{row['second']:,}", difference, f"{row['only_first']:,}", f"{row['only_second']:,}"


def _head(overview: Overview) -> str:
    whole, failed = overview.queries.height, overview.failures.height
    return (
        f"{overview.run} on {overview.dataset}: {failed:,} of {format_count(whole, 'query')} failed "
        f"({100 * failed / whole:.1f}%), {overview.direction}; concepts from {overview.source}"
    )


def _text(head: str, sections: Sequence[TitledTable], notes: Sequence[str], width: int | None) -> str:
    room = width or PAGE_WIDTH
    parts = [textwrap.fill(head, room)]
    for section in sections:
        under = [textwrap.fill(note, room) for note in section.notes]
        parts.append("\n".join([section.title, "", section.grid.text(width), *(["", *under] if under else [])]))
    if notes:
        listed = [textwrap.fill(note, room, initial_indent="- ", subsequent_indent="  ") for note in notes]
        parts.append("\n".join(["Limits of these facts", "", *listed]))
    return "\n\n\n".join(parts)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
