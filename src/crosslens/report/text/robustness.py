"""A robustness study as tables, for a terminal or in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from crosslens.core import PAGE_WIDTH, Grid, UnknownNameError, percent, split_name
from crosslens.metrics import format_count, format_figure, unit_sentence
from crosslens.pipeline import (
    CHANGE_FIGURES,
    CHANGE_GROUPS,
    Robustness,
    direction_rsum,
    drop_table,
    higher_is_better,
)
from crosslens.report.export.tables import grid_markdown
from crosslens.report.text.comparison import CORRECTIONS, floor_of_p, p_value
from crosslens.report.text.drop_table import (
    PERCENT_SENTENCE,
    drop_grid,
    model_tests_grid,
    model_tests_sentence,
    percent_cells,
)
from crosslens.report.text.protocols import protocol_text
from crosslens.report.text.robustness_captions import MIN_CAPTIONS, brittle_lines, spread_grids, word_grids
from crosslens.report.text.runs import difference_cells

DEFAULT_TABLES = ("models", "drops", "applied", "seeds", "changes", "overlap", "words", "captions")
"""The sections that are printed unless others are chosen."""


@dataclass(frozen=True)
class TableSection:
    """A heading, tables each with a line above it, sentences that say what is shown, and lines that are no table."""

    title: str
    grids: tuple[tuple[str, Grid], ...] = ()
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def robustness_text(study: Robustness, names: Iterable[str] | None = None, width: int | None = PAGE_WIDTH) -> str:
    """The sections as plain text; tables up to ``width``."""
    parts = [study_summary(study)]
    for section in table_sections(study, names):
        parts.append(section.title)
        parts += [f"{above}\n{grid.text(width)}" if above else grid.text(width) for above, grid in section.grids]
        parts += ["\n".join(section.lines)] if section.lines else []
        parts += ["\n".join(line for note in section.notes for line in textwrap.wrap(note, PAGE_WIDTH))]
    parts.append(protocol_text(study.about.get("protocol", {}), width))
    return "\n\n".join(part for part in parts if part)


def robustness_markdown(study: Robustness, names: Iterable[str] | None = None) -> str:
    """The sections as a page."""
    parts = [study_summary(study)]
    for section in table_sections(study, names):
        parts += [f"## {section.title}", *section.notes]
        for above, grid in section.grids:
            parts += [f"**{above}**" if above else "", grid_markdown(grid).rstrip()]
        parts += ["```text\n" + "\n".join(section.lines) + "\n```"] if section.lines else []
    return "\n\n".join(part for part in parts if part) + "\n"


def study_summary(study: Robustness) -> str:
    """The dataset, the queries, how many models and perturbations."""
    data = study.about.get("dataset", {})
    rows = study.drops.filter(pl.col("metric") == direction_rsum(study.direction))
    queries = format_count(rows["queries"][0], "image" if study.direction == "i2t" else "caption")
    protocol = study.about.get("protocol", {})
    label = f", protocol {protocol['name']}" if protocol else ""
    phrases = {"t2t": "query the other captions of their images", "t2i": "query their images"}
    if sets := study.about.get("text_sets"):
        queries = format_count(rows["queries"][0], "query")
        phrases["t2t"] = f"from {sets['queries']['name']} for the texts of its images"
    return (
        f"{data.get('name', 'Ranked lists')}: {queries} {phrases.get(study.direction, 'query their captions')}, "
        f"{format_count(len(study.models), 'model')}, {format_count(len(study.perturbations), 'perturbation')}{label}"
    )


def table_sections(study: Robustness, names: Iterable[str] | None = None) -> list[TableSection]:
    """The sections by name, those without content left out."""
    chosen = list(names) if names is not None else list(DEFAULT_TABLES)
    for name in chosen:
        if name not in ROBUSTNESS_TABLES:
            raise UnknownNameError("table", name, ROBUSTNESS_TABLES)
    sections = [ROBUSTNESS_TABLES[name](study) for name in chosen]
    return [section for section in sections if section.grids or section.lines]


def _drops(study: Robustness) -> TableSection:
    grids = []
    for model, rows in _by_model(study, _of_metric(study, study.headline)):
        columns = {
            "perturbation": [row["perturbation"] for row in rows],
            "points": difference_cells((study.headline, row["drop"], row["low"], row["high"]) for row in rows),
            "percent": percent_cells((row["percent"], row["percent_low"], row["percent_high"]) for row in rows),
            "applied": [percent(row["applied_share"], unit="%") for row in rows],
            "p": [_p(study, row) for row in rows],
        }
        if not _knows_changes(study):
            del columns["applied"]
        above = f"{model}: {study.headline} {format_figure(study.headline, rows[0]['before'])} before"
        align = "".join("r" if name in ("applied", "p") else "l" for name in columns)
        grids.append((above, Grid(tuple(columns), tuple(zip(*columns.values(), strict=True)), align)))
    return TableSection(f"Drop of {study.headline}", tuple(grids), _about_drops(study))


def _about_drops(study: Robustness) -> tuple[str, ...]:
    testing = study.about.get("testing", {})
    share = f"{100 * testing.get('level', 0.95):g}%"
    direction, name = split_name(study.headline)
    half = f" It is Hit@1 + Hit@5 + Hit@10 of {direction}, in percent." if name != study.headline else ""
    tests = len(study.models) * study.drops.select("perturbation", "seed").n_unique()
    permutations = testing.get("permutations", 10_000)
    floor = floor_of_p(permutations, testing.get("correction", "none"), tests)
    least = f"; {permutations:,} permutations give no p below {floor:.4f}"
    applied = "Applied: the share of captions that changed. " if _knows_changes(study) else ""
    corrected = CORRECTIONS.get(testing.get("correction", ""), CORRECTIONS["none"])
    return (
        f"Drop: before − after, in points and in {PERCENT_SENTENCE} Above 0 is worse.{half} In brackets: {share} "
        "interval over images; that of percent is of the ratio, with the figures before and after from the same "
        f"images. {applied}"
        f"p: paired permutation test over images, two-sided, {corrected} for {format_count(tests, 'test')}{least}.",
    )


def _applied(study: Robustness) -> TableSection:
    """The drop over the queries that changed, where some did not; of one direction, as images mix their captions."""
    grids = []
    metric = direction_rsum(study.direction)
    for model, every in _by_model(study, _of_metric(study, metric)):
        rows = [row for row in every if row["applied_share"] < 1 and row["applied"]]
        drops = difference_cells((metric, row["applied_drop"], row["applied_low"], row["applied_high"]) for row in rows)
        lines = tuple((row["perturbation"], f"{row['applied']:,}", drop) for row, drop in zip(rows, drops, strict=True))
        if lines:
            grids.append((model, Grid(("perturbation", "applied to", "drop over those"), lines, "lrl")))
    return TableSection(f"Drop of {metric} where it applied", tuple(grids))


def _models(study: Robustness) -> TableSection:
    """The heat map as a table, where there are several models."""
    if len(study.models) < 2:
        return TableSection("")
    table = drop_table({"": study}, study.headline)
    grids = [("", drop_grid(table, intervals=False))]
    notes = []
    if table.tests:
        grids.append(("Do models differ?", model_tests_grid(table)))
        notes.append(model_tests_sentence(table))
    return TableSection(f"Drop of {study.headline}, all models", tuple(grids), tuple(notes))


def _metrics(study: Robustness) -> TableSection:
    """Every chosen metric after, and its drop."""
    names = [name for name in study.drops["metric"].unique(maintain_order=True) if name != study.headline]
    grids = []
    for model, rows in _by_model(study, _first_seed(study.drops).to_dicts()):
        cells = {(row["perturbation"], row["metric"]): row for row in rows}
        first = study.perturbations[0]
        lines = [("original", *(format_figure(name, cells[first, name]["before"]) for name in names))]
        lines += [(variant, *(_after(cells[variant, name]) for name in names)) for variant in study.perturbations]
        titles = tuple(name + ("" if higher_is_better(name) else " ↓") for name in names)
        grids.append((model, Grid(("perturbation", *titles), tuple(lines), "l" + "r" * len(names))))
    about = f"The figure after, and in brackets after − before. {unit_sentence(names)}" if names else ""
    return TableSection("Every metric", tuple(grids), (about,))


def _changes(study: Robustness) -> TableSection:
    grids = []
    for model, rows in _by_model(study, study.changes.to_dicts()):
        moves = tuple(
            (row["perturbation"], f"{row['changed']:,}",
             *(percent(row[way], unit="%") for way in ("lower", "higher", "same")),
             _count(row["up_while_similarity_down"]))
            for row in rows
        )  # fmt: skip
        grids.append((model, Grid(("perturbation", "changed", "lower", "higher", "same", "odd"), moves, "lrrrrr")))
        lines = [("original", *(percent(rows[0][f"{name} before"], unit="%") for name in CHANGE_FIGURES))]
        lines += [
            (row["perturbation"], *(percent(row[f"{name} after"], unit="%") for name in CHANGE_FIGURES)) for row in rows
        ]
        header = ("over all queries", *CHANGE_FIGURES[:-1], "Fails ↓")
        grids.append(("", Grid(header, tuple(lines), "l" + "r" * len(CHANGE_FIGURES))))
    notes = (
        "Changed: queries that the perturbation applied to. Lower, higher, same: the share of those whose right answer "
        "is ranked lower (a larger rank), higher, or the same. Odd: ranked higher although its own "
        "similarity to the query went down.",
    )
    return TableSection("Where changed queries go", tuple(grids), notes)


def _groups(study: Robustness) -> TableSection:
    grids = []
    for model, rows in _by_model(study, study.changes.to_dicts()):
        lines = tuple((row["perturbation"], *(f"{row[group]:,}" for group in CHANGE_GROUPS)) for row in rows)
        grids.append((model, Grid(("perturbation", *CHANGE_GROUPS), lines, "lrrr")))
    notes = ("The score of a query is Hit@1 + Hit@5 + Hit@10, from 0 to 3.",)
    return TableSection("Queries by score", tuple(grids), notes)


def _overlap(study: Robustness) -> TableSection:
    values = {(row["model"], row["group"]): row for row in study.overlap.to_dicts()}
    if not values:
        return TableSection("")
    known = _knows_changes(study)
    cells = [(group, column) for column in ("jaccard", "among_changed")[: 1 + known] for group in CHANGE_GROUPS]
    rows = tuple((model, *(_number(values[model, group][column]) for group, column in cells)) for model in study.models)
    header = ("model", *CHANGE_GROUPS, *(("decr.*", "incr.*", "unch.*") if known else ()))
    starred = "With *: only queries that both of a pair changed. " if known else ""
    notes = (
        "Jaccard similarity of the sets of queries whose score (Hit@1 + Hit@5 + Hit@10) decreased, increased or "
        f"stayed, mean over all pairs of perturbations but those whose sets are both empty. {starred}Scores and groups "
        "are those of the paper on brittleness; which pairs its table averages is not published.",
    )
    grid = Grid(header, rows, "l" + "r" * len(cells))
    return TableSection("Do perturbations hit the same queries?", (("", grid),), notes)


def _words(study: Robustness) -> TableSection:
    notes = (
        "Mean change of the score of a caption when a word of this kind is edited, in points of half an Rsum (a "
        "caption at rank 1 scores 300), with its interval; decreased: the share of those captions that lose "
        f"score. Parts of speech with fewer than {MIN_CAPTIONS} captions are left out.",
    )
    return TableSection("Which words matter most?", tuple(word_grids(study)), notes)


def _captions(study: Robustness) -> TableSection:
    notes = ("Mean drop: of Hit@1 + Hit@5 + Hit@10, over all perturbations.",)
    what = "images" if study.direction == "i2t" else "captions"
    return TableSection(f"The most brittle {what}", lines=tuple(brittle_lines(study)), notes=notes)


def _seeds(study: Robustness) -> TableSection:
    notes = ("The drop under several seeds of the perturbations; the other tables are of the first seed.",)
    return TableSection(f"Drop of {study.headline} over seeds", tuple(spread_grids(study)), notes)


def _after(row: Mapping[str, Any]) -> str:
    change = float(row["after"]) - float(row["before"])
    return f"{format_figure(row['metric'], row['after'])} ({format_figure(row['metric'], change, signed=True)})"


def _first_seed(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("seed") == table["seed"][0]) if table.height else table


def _of_metric(study: Robustness, metric: str) -> list[dict[str, Any]]:
    """The drops of a metric; over several seeds, the first one's."""
    return _first_seed(study.drops).filter(pl.col("metric") == metric).to_dicts()


def _by_model(study: Robustness, rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    each = [(model, [row for row in rows if row["model"] == model]) for model in study.models]
    return [(model, own) for model, own in each if own]


def _knows_changes(study: Robustness) -> bool:
    """Whether it is known which captions changed: not from ranked lists alone."""
    return bool(study.drops["applied_share"].is_finite().any())


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _number(value: float | None) -> str:
    return f"{value:.4f}" if value is not None and isfinite(value) else "–"


def _p(study: Robustness, row: Mapping[str, Any]) -> str:
    permutations = study.about.get("testing", {}).get("permutations", 10_000)
    # A tenth: one decimal less than the test could give.
    return "–" if row["adjusted_p"] is None else p_value(row["adjusted_p"], permutations // 10)


ROBUSTNESS_TABLES: dict[str, Callable[[Robustness], TableSection]] = {
    "models": _models,
    "drops": _drops,
    "applied": _applied,
    "metrics": _metrics,
    "changes": _changes,
    "groups": _groups,
    "overlap": _overlap,
    "words": _words,
    "captions": _captions,
    "seeds": _seeds,
}
"""Name → section."""
