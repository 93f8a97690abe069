"""All failures of a run in words: the table of concept metrics, causes, rules, the top of the atlas."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.explain.overview.comparison import OverviewComparison
from crosslens.explain.overview.overview import Overview
from crosslens.explain.words.kinship import plain_word
from crosslens.metrics.figures import count

METRIC_NAMES: Mapping[str, str] = {
    "CA": "CA, %",
    "NonCommonSimilarity": "NCS",
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


@dataclass(frozen=True)
class Section:
    """A table under its title, with the lines that explain it."""

    title: str
    grid: Grid
    notes: tuple[str, ...] = ()


def overview_text(found: Overview, width: int | None = None, *, shown: int = _SHOWN) -> str:
    """Everything that a terminal shows of an overview."""
    return _text(_head(found), overview_sections(found, shown), found.notes, width)


def comparison_text(found: OverviewComparison, width: int | None = None, *, shown: int = _SHOWN) -> str:
    """Where two runs fail differently."""
    return _text(comparison_head(found), comparison_sections(found, shown), found.first.notes, width)


def overview_sections(found: Overview, shown: int = _SHOWN) -> list[Section]:
    """The tables of an overview; those that would be empty are left out."""
    kinds = "" if found.depth is None else f", {found.depth} steps below the top of WordNet's tree"
    sections = [
        Section("Right and retrieved image, mean over failures", metric_grid(found), _metric_notes(found)),
        Section("Causes", cause_grid(found), (
            "asked: failures whose query mentions it; open: of these, not judged; main: counted once per failure, by "
            "the first that applies from above.",)),
        Section("Rules", rule_grid(found.rules, shown), (
            "p: Fisher's exact test that A makes B likelier, corrected for all rules tested.",)),
        Section(f"Taken for{kinds}", atlas_grid(found.atlas, shown), (
            "times: failures whose right image has the first and whose retrieved image has the second instead; lift: "
            "how much more often than chance; (2): the word's second sense in WordNet.",)),
        Section(f"Asked for, and shown instead{kinds}", atlas_grid(found.query_atlas, shown)),
        Section("Correlations over failures", correlation_grid(found)),
    ]  # fmt: skip
    return [one for one in sections if one.grid.rows]


def metric_grid(found: Overview) -> Grid:
    """Metrics down; query-agnostic and query-informed side by side."""
    by_scope = {(row["scope"], row["metric"]): row for row in found.metrics.to_dicts()}
    rows = []
    for metric, words in METRIC_NAMES.items():
        cells = [by_scope["all", metric], by_scope["query", metric]]
        if any(one["mean"] is not None for one in cells):
            rows.append((words, *(cell for one in cells for cell in (figure(metric, one), f"{one['undefined']:,}"))))
    return Grid(("", "every object", "skipped", "asked for only", "skipped"), tuple(rows), "lrrrr")


def figure(metric: str, row: Mapping[str, Any]) -> str:
    """A mean with its interval."""
    if row["mean"] is None:
        return "–"
    scale, digits = (100, 1) if metric in _PERCENT else (1, 3 if metric == "NonCommonSimilarity" else 2)
    return bounded(row, scale, digits)


def bounded(
    row: Mapping[str, Any], scale: float = 1, digits: int = 2, name: str = "mean", *, signed: bool = False
) -> str:
    """A figure and its interval, where it has one."""
    sign = "+" if signed else ""
    numbers = [row[name], row["low"], row["high"]]
    if numbers[0] is None:
        return "–"
    written = [None if one is None else f"{round(scale * one, digits) + 0.0:{sign}.{digits}f}" for one in numbers]
    return f"{written[0]} [{written[1]}, {written[2]}]" if written[1] is not None else str(written[0])


def _metric_notes(found: Overview) -> tuple[str, ...]:
    rows = {row["metric"]: row for row in found.metrics.filter(pl.col("scope") == "all").to_dicts()}
    pooled = {name: row["pooled"] for name, row in rows.items() if row["pooled"] is not None}
    totals = (f"{rows['object_hit']['total']:,.0f} objects hit, {rows['object_miss']['total']:,.0f} missed",)
    shares = (f"{METRIC_NAMES[name].removesuffix(', %')} {100 * share:.1f}%" for name, share in pooled.items())
    return (
        "CA: concepts of the right image that the retrieved one has; NCS: path similarity of the others, matched; CE: "
        "difference of counts; SD: difference of box areas; matched: synsets in a pair of NCS, of all not in common; "
        "wrong count: of common concepts; attributes, places: agreement of common objects.",
        f"skipped: failures in which a metric is undefined. {100 * found.level:g}% intervals resample images.",
        f"Over all failures together: {'; '.join((*totals, *shares))}.",
    )


def cause_grid(found: Overview) -> Grid:
    """Causes down."""
    rows = [
        (
            row["cause"],
            "" if row["asked"] is None else f"{row['asked']:,}",
            "" if row["asked"] is None else f"{row['open']:,}",
            f"{row['count']:,}",
            bounded(row, 100, 1, "share"),
            f"{100 * row['main_share']:.1f}",
        )
        for row in found.causes.to_dicts()
    ]
    return Grid(("cause", "asked", "open", "failures", "% of failures", "main, %"), tuple(rows), "lrrrrr")


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


def atlas_grid(atlas: pl.DataFrame, shown: int) -> Grid:
    """The most frequent confusions."""
    rows = [
        (
            named(row["expected"]), named(row["shown"]), f"{row['count']:,}",
            f"{100 * row['share_of_expected']:.0f}", f"{row['lift']:.1f}", f"{row['similarity']:.2f}",
        )
        for row in atlas.head(shown).to_dicts()
    ]  # fmt: skip
    return Grid(("expected", "shown", "times", "of expected, %", "lift", "similarity"), tuple(rows), "llrrrr")


def correlation_grid(found: Overview) -> Grid:
    """Each two metrics, Spearman and Kendall."""
    rows = []
    for row in found.correlations.filter(pl.col("spearman").is_not_null()).to_dicts():
        cells = [
            bounded({"mean": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]})
            for name in ("spearman", "kendall-b")
        ]
        names = (METRIC_NAMES.get(row[side], row[side]).removesuffix(", %") for side in ("first", "second"))
        rows.append((", ".join(names), *cells, f"{row['failures']:,}"))
    return Grid(("", "Spearman ρ", "Kendall τ-b", "failures"), tuple(rows), "lrrr")


def comparison_sections(found: OverviewComparison, shown: int = _SHOWN) -> list[Section]:
    """Causes and confusions, side by side."""
    rows = [("all failures", *_sides(found.failed.to_dicts()[0]))]
    rows += [(row["cause"], *_sides(row)) for row in found.causes.to_dicts()]
    head = ("first", "second", "difference", "only first", "only second")
    pairs = [
        (f"{named(row['expected'])} → {named(row['shown'])}", *_sides(row))
        for row in found.confusions.head(shown).to_dicts()
    ]
    sections = [
        Section("Failures by cause", Grid(("", *head), tuple(rows), "lrrrrr")),
        Section("Taken for", Grid(("", *head), tuple(pairs), "lrrrrr"), ("The largest differences first.",)),
    ]
    return [one for one in sections if one.grid.rows]


def comparison_head(found: OverviewComparison) -> str:
    """Which runs, over how many queries."""
    return (
        f"first: {found.first.run}, second: {found.second.run}; {count(found.queries, 'query')} answered by both "
        f"({found.first.direction}); difference: second − first, in percent of them"
    )


def named(synset: str) -> str:
    """A synset as people call it; with its number where it is not the first sense."""
    word, number = plain_word(synset), synset.rsplit(".", 1)[-1]
    return word if number == "01" else f"{word} ({number.lstrip('0')})"


def _sides(row: Mapping[str, Any]) -> tuple[str, ...]:
    difference = bounded(row, 100, 1, "difference", signed=True)
    return f"{row['first']:,}", f"{row['second']:,}", difference, f"{row['only_first']:,}", f"{row['only_second']:,}"


def _head(found: Overview) -> str:
    whole, failed = found.queries.height, found.failures.height
    return (
        f"{found.run} on {found.dataset}: {failed:,} of {count(whole, 'query')} failed ({100 * failed / whole:.1f}%), "
        f"{found.direction}; concepts from {found.source}"
    )


def _text(head: str, sections: Sequence[Section], notes: Sequence[str], width: int | None) -> str:
    room = width or PAGE_WIDTH
    parts = [textwrap.fill(head, room)]
    for one in sections:
        under = [textwrap.fill(note, room) for note in one.notes]
        parts.append("\n".join([one.title, "", one.grid.text(width), *(["", *under] if under else [])]))
    if notes:
        listed = [textwrap.fill(note, room, initial_indent="- ", subsequent_indent="  ") for note in notes]
        parts.append("\n".join(["What the facts cannot see", "", *listed]))
    return "\n\n\n".join(parts)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
