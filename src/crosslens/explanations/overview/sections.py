"""How failures are shown: confused concepts as heat maps, concept metrics, causes, rules; two runs, and several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING, Any

import polars as pl

from crosslens.core import Cell, Figure, Heat, Section, Table, Text
from crosslens.explanations.concepts.lexicon import hypernym_path, synset_word
from crosslens.explanations.overview.statistics import SCOPES
from crosslens.metrics import format_count

if TYPE_CHECKING:
    from crosslens.explanations.overview.comparison import OverviewComparison
    from crosslens.explanations.overview.models import ConceptTable
    from crosslens.explanations.overview.overview import Overview

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
_MOST_CONCEPTS = 30
"""Along each side of an atlas; the table has the most frequent confusions."""
GROUND_TRUTH = "ground_truth"


def overview_sections(overview: Overview) -> Iterator[Section]:
    """Both atlases, then a table per question; those that would be empty are left out."""
    whole, failed = overview.queries.height, overview.failures.height
    head = (
        f"{overview.run} on {overview.dataset}: {failed:,} of {format_count(whole, 'query')} failed "
        f"({100 * failed / whole:.1f}%), {overview.direction}; concepts from {overview.source}"
    )
    asked = "Query concepts, and what was retrieved instead"
    maps = [
        atlas_map(overview, atlas, title)
        for atlas, title in ((overview.atlas, "Confused concepts"), (overview.query_atlas, asked))
        if atlas.height
    ]
    yield Section("", (Text.of(head), *maps))
    kinds = "" if overview.depth is None else f", {overview.depth} steps below the top of WordNet's tree"
    confused = replace(table_of_confusions(overview.atlas, overview.listed, overview.names), notes=(
        "times: failures whose right image has the first and whose retrieved image has the second instead; lift: "
        "how much more often than chance; (2): the word's second sense in WordNet.",
    ))  # fmt: skip
    tables = {
        "Right and retrieved image, mean over failures": _table_of_metrics(overview),
        "Over all failures together": table_of_totals(overview.metrics.to_dicts(), overview.totals.to_dicts()),
        "Causes": _table_of_causes(overview),
        "Number of causes": _table_of_cause_numbers(overview),
        "Rules": table_of_rules(overview.rules, overview.listed),
        f"Confused with{kinds}": confused,
        f"{asked}{kinds}": table_of_confusions(overview.query_atlas, overview.listed, overview.names),
        "Correlations over failures": table_of_correlations(overview),
    }
    for title, table in tables.items():
        if table.rows:
            yield Section(title, (table,))
    yield from _limits(overview)


def _limits(overview: Overview) -> Iterator[Section]:
    if overview.notes:
        yield Section("Limits of these facts", (Text.of(*overview.notes, note=True),))


def atlas_map(overview: Overview, atlas: pl.DataFrame, title: str) -> Heat:
    """The most frequent concepts, related ones adjacent; a number says in how many failures."""
    downs, acrosses = (_frequent(atlas, side) for side in ("expected", "shown"))
    counts = {(row["expected"], row["shown"]): row["count"] for row in atlas.to_dicts()}
    failures = format_count(overview.failures.height, "failure")
    return Heat(
        title=title,
        about=f"{overview.run} on {overview.dataset}, {failures}, concepts from {overview.source}; expected down, "
        "shown instead across",
        rows=tuple(synset_label(synset, overview.names) for synset in downs),
        columns=tuple(synset_label(synset, overview.names) for synset in acrosses),
        cells=tuple(tuple(Figure(counts.get((down, across)), digits=0) for across in acrosses) for down in downs),
        heading="expected",
    )


def _frequent(atlas: pl.DataFrame, side: str) -> list[str]:
    """By their path down WordNet's tree, so that related concepts are adjacent."""
    totals = atlas.group_by(side).agg(pl.col("count").sum()).sort(["count", side], descending=[True, False])
    return sorted(totals[side].head(_MOST_CONCEPTS).to_list(), key=lambda synset: hypernym_path(synset)[::-1])


def _table_of_metrics(overview: Overview) -> Table:
    """Metrics down; query-agnostic and query-informed side by side."""
    by_scope = {(row["scope"], row["metric"]): row for row in overview.metrics.to_dicts()}
    rows: list[tuple[Cell, ...]] = []
    for metric, words in METRIC_NAMES.items():
        sides = [by_scope["all", metric], by_scope["query", metric]]
        if any(row["mean"] is not None for row in sides):
            rows.append((words, *(cell for row in sides for cell in (concept_figure(metric, row), row["undefined"]))))
    notes = (
        "CA: concepts of the right image that the retrieved one has; concept similarity: path similarity of the "
        "others, matched in pairs; CE: difference of counts; SD: difference of box areas; matched: synsets in such a "
        "pair, of all not in common; wrong count: of common concepts; attributes, places: agreement of common objects.",
        *size_notes(overview.settings, overview.metrics),
        f"skipped: failures in which a metric is undefined. {100 * overview.level:g}% intervals over images.",
    )
    return Table(("", "every object", "skipped", "query concepts", "skipped"), tuple(rows), "lrrrr", notes=notes)


def table_of_totals(metrics: Sequence[Mapping[str, Any]], totals: Sequence[Mapping[str, Any]]) -> Table:
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
    note = (
        "Synsets, matchings and multiplicities as EXPL counts them: non-common synsets of both images, matched in "
        "pairs; common synsets with as many objects in both images, or not."
    )
    return Table(("", "every object", "query concepts"), rows, "lrr", notes=(note,))


def _counted(number: int, share: float | None) -> str:
    return f"{number:,}" if share is None else f"{number:,} ({100 * share:.1f})"


def concept_figure(metric: str, row: Mapping[str, Any]) -> Figure:
    """The mean of a concept metric with its interval."""
    scale, digits = (100, 1) if metric in _PERCENT else (1, 3 if metric == "NonCommonSimilarity" else 2)
    return row_figure(row, scale, digits)


def row_figure(
    row: Mapping[str, Any], scale: float = 1, digits: int = 2, name: str = "mean", *, signed: bool = False
) -> Figure:
    """A figure of a table's row and its interval, where it has one."""
    low, high = (nan if row[end] is None else row[end] for end in ("low", "high"))
    return Figure(row[name], low, high, scale, digits, signed=signed)


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


def _table_of_causes(overview: Overview) -> Table:
    rows = tuple(
        (
            row["cause"], row["asked"], None if row["asked"] is None else row["open"], row["count"],
            row_figure(row, 100, 1, "share"), Figure.percent(row["main_share"]),
        )
        for row in overview.causes.to_dicts()
    )  # fmt: skip
    note = (
        "asked: failures whose query mentions it; open: of these, undecided; main: counted once per failure, by "
        "the first that applies from above."
    )
    return Table(("cause", "asked", "open", "failures", "% of failures", "main, %"), rows, "lrrrrr", notes=(note,))


def _table_of_cause_numbers(overview: Overview) -> Table:
    """How many failures have no cause, one, two …"""
    rows = tuple(
        (
            f"{row['causes']}", row["count"], row_figure(row, 100, 1, "share"),
            None if row["of_caused"] is None else Figure.percent(row["of_caused"]),
        )
        for row in overview.cause_numbers.to_dicts()
    )  # fmt: skip
    note = "of caused: of the failures with a cause; near misses and unclear ones have none."
    return Table(("causes", "failures", "% of failures", "of caused, %"), rows, "lrrr", notes=(note,))


def table_of_rules(rules: pl.DataFrame, listed: int) -> Table:
    """Rules that chance does not explain first; only those that make something likelier."""
    rows = tuple(
        (
            " and ".join(row["if"]), row["then"], row["count"], Figure.percent(row["support"]),
            Figure.percent(row["confidence"]), Figure(row["lift"]), Figure.p(row["p_adjusted"], 1000),
        )
        for row in rules.filter(pl.col("lift") > 1).head(listed).to_dicts()
    )  # fmt: skip
    header = ("if wrong", "then wrong", "times", "support, %", "confidence, %", "lift", "p")
    note = "p: Fisher's exact test that A makes B likelier, corrected for all rules tested."
    return Table(header, rows, "llrrrrr", notes=(note,))


def table_of_confusions(atlas: pl.DataFrame, listed: int, names: Mapping[str, str] | None = None) -> Table:
    """The most frequent confusions."""
    rows = tuple(
        (
            synset_label(row["expected"], names), synset_label(row["shown"], names), row["count"],
            Figure(row["share_of_expected"], scale=100, digits=0), Figure(row["lift"], digits=1),
            Figure(row["similarity"]),
        )
        for row in atlas.head(listed).to_dicts()
    )  # fmt: skip
    return Table(("expected", "shown", "times", "of expected, %", "lift", "similarity"), rows, "llrrrr")


def table_of_correlations(overview: Overview) -> Table:
    """Each two metrics, Spearman and Kendall."""
    rows = []
    for row in overview.correlations.filter(pl.col("spearman").is_not_null()).to_dicts():
        figures = [
            row_figure({"mean": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]})
            for name in ("spearman", "kendall-b")
        ]
        names = (METRIC_NAMES.get(row[side], row[side]).removesuffix(", %") for side in ("first", "second"))
        rows.append((", ".join(names), *figures, row["failures"]))
    return Table(("", "Spearman ρ", "Kendall τ-b", "failures"), tuple(rows), "lrrr")


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


def concept_sections(table: ConceptTable) -> Iterator[Section]:
    """Several runs in one table, query-agnostic and query-informed; intervals where they fit."""
    first = next(iter(table.overviews.values()))
    head = f"{len(table.overviews)} runs on {first.dataset}, {table.direction}; concepts from {first.source}"
    yield Section("", (Text.of(head),))
    notes = (
        "A row per run, over its own failures: runs fail on different queries. hit, missed: objects in all; matched: "
        "over all failures together; wrong counts: common concepts of another count, per failure; others: means.",
        *size_notes(first.settings, table.metrics),
        f"NCS: concept similarity (NonCommonSimilarity). {100 * first.level:g}% intervals over images.",
    )
    titles = ("Concept metrics, every object", "Concept metrics, query concepts")
    for scope, title, under in zip(SCOPES, titles, ((), notes), strict=True):
        yield Section(title, (_table_of_concepts(table, scope, under),))
    yield from _limits(first)


def _table_of_concepts(table: ConceptTable, scope: str, notes: tuple[str, ...]) -> Table:
    """Runs down, the columns of EXPL's Table 3 across."""
    shown = [name for name in _TABLE_3 if scope == SCOPES[0] or name != "Fails"]
    rows: list[tuple[Cell, ...]] = []
    for run in table.overviews:
        own = table.metrics.filter((pl.col("run") == run) & (pl.col("scope") == scope)).to_dicts()
        by_metric = {row["metric"]: row for row in own}
        rows.append((run, *(_concept_cell(name, by_metric[name]) for name in shown)))
    header = ("run", *(_TABLE_3[name] for name in shown))
    whole = Table(header, tuple(rows), "l" + "r" * len(shown), notes=notes)
    bare = tuple(
        tuple(replace(cell, low=nan, high=nan) if isinstance(cell, Figure) else cell for cell in row) for row in rows
    )
    return replace(whole, narrow=replace(whole, rows=bare))


def _concept_cell(metric: str, row: Mapping[str, Any]) -> Figure:
    """Totals of objects, the share over all failures of matched synsets, means of the others."""
    if metric in ("object_hit", "object_miss"):
        return Figure(row["total"], digits=0)
    if metric == "matched_synsets":
        return Figure.percent(row["pooled"])
    return row_figure(row, 100, 1) if metric == "Fails" else concept_figure(metric, row)


def comparison_sections(comparison: OverviewComparison) -> Iterator[Section]:
    """Causes and confusions, side by side."""
    head = (
        f"first: {comparison.first.run}, second: {comparison.second.run}; "
        f"{format_count(comparison.queries, 'query')} in both "
        f"({comparison.first.direction}); difference: second − first, in percent of them"
    )
    yield Section("", (Text.of(head),))
    header = ("", "first", "second", "difference", "only first", "only second")
    causes = [("all failures", *_sides(comparison.failed.to_dicts()[0]))]
    causes += [(row["cause"], *_sides(row)) for row in comparison.causes.to_dicts()]
    names = comparison.first.names
    pairs = tuple(
        (f"{synset_label(row['expected'], names)} → {synset_label(row['shown'], names)}", *_sides(row))
        for row in comparison.confusions.head(comparison.first.listed).to_dicts()
    )
    yield Section("Failures by cause", (Table(header, tuple(causes), "lrrrrr"),))
    if pairs:
        yield Section("Confused with", (Table(header, pairs, "lrrrrr", notes=("The largest differences first.",)),))
    yield from _limits(comparison.first)


def _sides(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    difference = row_figure(row, 100, 1, "difference", signed=True)
    return row["first"], row["second"], difference, row["only_first"], row["only_second"]


def synset_label(synset: str, names: Mapping[str, str] | None = None) -> str:
    """A synset as the dataset calls it (``names``), else its first word; with its number if it is a later sense."""
    if names and synset in names:
        return names[synset]
    word, number = synset_word(synset), synset.rsplit(".", 1)[-1]
    return word if number == "01" else f"{word} ({number.lstrip('0')})"
