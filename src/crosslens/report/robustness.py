"""A robustness study as tables that people read, on a terminal or in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import polars as pl

from crosslens.core.errors import UnknownNameError
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.run import split_name
from crosslens.metrics.figures import beside, count, figure, interval, unit_sentence
from crosslens.pipeline.robustness import Robustness
from crosslens.pipeline.robustness.changes import FIGURES, GROUPS
from crosslens.pipeline.robustness.drops import half_sum, higher_is_better
from crosslens.report.export.markdown import grid_markdown
from crosslens.report.robustness_captions import FEWEST, brittle_lines, spread_grids, word_grids

USUAL = ("models", "drops", "applied", "seeds", "changes", "overlap", "words", "captions")
"""The sections of a terminal, of those there are."""


@dataclass(frozen=True)
class Section:
    """A heading, tables each with a line above it, sentences that say what is shown, and lines that are no table."""

    title: str
    grids: tuple[tuple[str, Grid], ...] = ()
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = field(default=())


def robustness_text(found: Robustness, names: Iterable[str] | None = None, width: int | None = PAGE_WIDTH) -> str:
    """The sections as plain text; tables up to ``width``."""
    parts = [study_line(found)]
    for section in sections(found, names):
        parts.append(section.title)
        parts += [f"{above}\n{grid.text(width)}" if above else grid.text(width) for above, grid in section.grids]
        parts += ["\n".join(section.lines)] if section.lines else []
        parts += ["\n".join(line for note in section.notes for line in textwrap.wrap(note, PAGE_WIDTH))]
    return "\n\n".join(part for part in parts if part)


def robustness_markdown(found: Robustness, names: Iterable[str] | None = None) -> str:
    """The sections as a page."""
    parts = [study_line(found)]
    for section in sections(found, names):
        parts += [f"## {section.title}", *section.notes]
        for above, grid in section.grids:
            parts += [f"**{above}**" if above else "", grid_markdown(grid).rstrip()]
        parts += ["```text\n" + "\n".join(section.lines) + "\n```"] if section.lines else []
    return "\n\n".join(part for part in parts if part) + "\n"


def study_line(found: Robustness) -> str:
    """Of what this is."""
    data = found.about.get("dataset", {})
    rows = found.drops.filter(pl.col("metric") == half_sum(found.direction))
    queries = count(rows["queries"][0], "image" if found.direction == "i2t" else "caption")
    asked = {"t2t": "ask for the other captions of their images", "t2i": "ask for their images"}
    return (
        f"{data.get('name', 'a dataset')}: {queries} {asked.get(found.direction, 'ask for their captions')}, "
        f"{count(len(found.models), 'model')}, {count(len(found.perturbations), 'perturbation')}"
    )


def sections(found: Robustness, names: Iterable[str] | None = None) -> list[Section]:
    """The sections by name, those without content left out."""
    chosen = list(names) if names is not None else list(USUAL)
    for name in chosen:
        if name not in SECTIONS:
            raise UnknownNameError("table", name, SECTIONS)
    return [one for one in (SECTIONS[name](found) for name in chosen) if one.grids or one.lines]


def _drops(found: Robustness) -> Section:
    grids = []
    for model, rows in _by_model(found, _of_headline(found)):
        drops = beside(
            [figure(found.headline, one["drop"], signed=True) for one in rows],
            [interval(found.headline, one["low"], one["high"], signed=True) for one in rows],
        )
        lines = tuple(
            (one["perturbation"], _percent(one["applied_share"]), drop, _percent(one["relative"]), _p(found, one))
            for one, drop in zip(rows, drops, strict=True)
        )
        above = f"{model}: {_called(found.headline)} {figure(found.headline, rows[0]['before'])} before"
        grids.append((above, Grid(("perturbation", "applied", "drop", "relative", "p"), lines, "lrlrr")))
    return Section(f"Drop of {_called(found.headline)}", tuple(grids), _about_drops(found))


def _about_drops(found: Robustness) -> tuple[str, ...]:
    testing = found.about.get("testing", {})
    share = f"{100 * testing.get('level', 0.95):g}%"
    half = (
        f" It is Hit@1 + Hit@5 + Hit@10 of {split_name(found.headline)[0]}, in percent."
        if "/" in found.headline
        else ""
    )
    tests = len(found.models) * found.drops.select("perturbation", "seed").n_unique()
    permutations = testing.get("permutations", 10_000)
    least = f"; {permutations:,} permutations give no p below {tests / (permutations + 1):.4f}"
    if testing.get("correction") != "holm":
        least = ""
    corrected = {"holm": "corrected by Holm", "bh": "corrected by Benjamini–Hochberg"}.get(
        testing.get("correction", ""), "not corrected"
    )
    return (
        f"Drop: before − after, in points; above 0 is worse.{half} In brackets: {share} interval, from resampling "
        "images. Relative: of the figure before. Applied: the share of captions that changed. "
        f"p: paired permutation test over images, two-sided, {corrected} for {count(tests, 'test')}{least}.",
    )


def _applied(found: Robustness) -> Section:
    """The drop over the queries that changed, where some did not; of one direction, as images mix their captions."""
    grids = []
    metric = half_sum(found.direction)
    for model, every in _by_model(found, _of_metric(found, metric)):
        rows = [one for one in every if one["applied_share"] < 1 and one["applied"]]
        drops = beside(
            [figure(metric, one["applied_drop"], signed=True) for one in rows],
            [interval(metric, one["applied_low"], one["applied_high"], signed=True) for one in rows],
        )
        lines = tuple((o["perturbation"], f"{o['applied']:,}", drop) for o, drop in zip(rows, drops, strict=True))
        if lines:
            grids.append((model, Grid(("perturbation", "applied to", "drop over those"), lines, "lrl")))
    return Section(f"Drop of {_called(metric)} where it applied", tuple(grids))


def _models(found: Robustness) -> Section:
    """The heat map as a table, where there are several models."""
    if len(found.models) < 2:
        return Section("")
    drops = {(one["model"], one["perturbation"]): one["drop"] for one in _of_headline(found)}
    rows = [
        (name, *(figure(found.headline, drops[model, name], signed=True) for model in found.models))
        for name in found.perturbations
    ]
    means = [pl.Series([drops[model, name] for name in found.perturbations]).mean() for model in found.models]
    rows.append(("mean", *(figure(found.headline, float(str(one)), signed=True) for one in means)))
    grid = Grid(("perturbation", *found.models), tuple(rows), "l" + "r" * len(found.models))
    return Section(f"Drop of {_called(found.headline)}, all models", (("", grid),))


def _metrics(found: Robustness) -> Section:
    """Every chosen metric after, and its drop."""
    names = [one for one in found.drops["metric"].unique(maintain_order=True) if one != found.headline]
    grids = []
    for model, rows in _by_model(found, _first_seed(found.drops).to_dicts()):
        cells = {(one["perturbation"], one["metric"]): one for one in rows}
        first = found.perturbations[0]
        lines = [("original", *(figure(name, cells[first, name]["before"]) for name in names))]
        for variant in found.perturbations:
            each = [cells[variant, name] for name in names]
            lines.append(
                (
                    variant,
                    *(
                        f"{figure(o['metric'], o['after'])} ({figure(o['metric'], _change(o), signed=True)})"
                        for o in each
                    ),
                )
            )
        titles = tuple(name + ("" if higher_is_better(name) else " ↓") for name in names)
        grids.append((model, Grid(("perturbation", *titles), tuple(lines), "l" + "r" * len(names))))
    about = f"The figure after, and in brackets after − before. {unit_sentence(names)}" if names else ""
    return Section("Every metric", tuple(grids), (about,))


def _changes(found: Robustness) -> Section:
    grids = []
    for model, rows in _by_model(found, found.changes.to_dicts()):
        moves = tuple(
            (one["perturbation"], f"{one['changed']:,}", *(_percent(one[way]) for way in ("lower", "higher", "same")),
             f"{one['up_while_similarity_down']:,}")
            for one in rows
        )  # fmt: skip
        grids.append((model, Grid(("perturbation", "changed", "lower", "higher", "same", "odd"), moves, "lrrrrr")))
        lines = [("original", *(_percent(rows[0][f"{name} before"]) for name in FIGURES))]
        lines += [(one["perturbation"], *(_percent(one[f"{name} after"]) for name in FIGURES)) for one in rows]
        grids.append(("", Grid(("over all queries", *FIGURES[:-1], "Fails ↓"), tuple(lines), "l" + "r" * len(FIGURES))))
    notes = (
        "Changed: queries that the perturbation applied to. Lower, higher, same: the share of those whose right answer "
        "is ranked lower (a larger place), higher, or at the same place. Odd: ranked higher although its own "
        "similarity to the query went down.",
    )
    return Section("Where changed queries go", tuple(grids), notes)


def _groups(found: Robustness) -> Section:
    grids = [
        (model, Grid(("perturbation", *GROUPS), tuple(map(_group_row, rows)), "lrrr"))
        for model, rows in _by_model(found, found.changes.to_dicts())
    ]
    return Section("Queries by score", tuple(grids), ("The score of a query is Hit@1 + Hit@5 + Hit@10, from 0 to 3.",))


def _group_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["perturbation"], *(f"{row[group]:,}" for group in GROUPS)


def _overlap(found: Robustness) -> Section:
    values = {(one["model"], one["group"]): one for one in found.overlap.to_dicts()}
    if not values:
        return Section("")
    rows = tuple(
        (model, *(_number(values[model, group][column]) for column in ("jaccard", "among_changed") for group in GROUPS))
        for model in found.models
    )
    header = ("model", *GROUPS, "decr.*", "incr.*", "unch.*")
    notes = (
        "Jaccard similarity of the sets of queries whose score (Hit@1 + Hit@5 + Hit@10) decreased, increased or "
        "stayed, mean over all pairs of perturbations. With *: only queries that both of a pair changed. The exact "
        "procedure of the paper's table is unpublished; this definition is ours.",
    )
    return Section("Do perturbations hit the same queries?", (("", Grid(header, rows, "lrrrrrr")),), notes)


def _words(found: Robustness) -> Section:
    notes = (
        "Mean change of the score of a caption when a word of this kind is edited, in points of half an Rsum (a "
        "caption at the first place scores 300), with its interval; decreased: the share of those captions that lose "
        f"score. Parts of speech with fewer than {FEWEST} captions are left out.",
    )
    return Section("Which words are dear?", tuple(word_grids(found)), notes)


def _captions(found: Robustness) -> Section:
    notes = ("Mean drop: of Hit@1 + Hit@5 + Hit@10, over all perturbations.",)
    what = "images" if found.direction == "i2t" else "captions"
    return Section(f"The most brittle {what}", lines=tuple(brittle_lines(found)), notes=notes)


def _seeds(found: Robustness) -> Section:
    notes = ("The drop under several seeds of the perturbations; the other tables are of the first seed.",)
    return Section(f"Drop of {_called(found.headline)} over seeds", tuple(spread_grids(found)), notes)


def _change(row: Mapping[str, Any]) -> float:
    return float(row["after"]) - float(row["before"])


def _first_seed(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("seed") == table["seed"][0]) if table.height else table


def _of_headline(found: Robustness) -> list[dict[str, Any]]:
    return _of_metric(found, found.headline)


def _of_metric(found: Robustness, metric: str) -> list[dict[str, Any]]:
    """The drops of a metric; over several seeds, the first one's."""
    return _first_seed(found.drops).filter(pl.col("metric") == metric).to_dicts()


def _by_model(found: Robustness, rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    each = [(model, [one for one in rows if one["model"] == model]) for model in found.models]
    return [(model, own) for model, own in each if own]


def _called(metric: str) -> str:
    return f"{metric} (half of Rsum)" if metric.endswith("/Rsum") else metric


def _percent(value: float | None) -> str:
    return f"{100 * value:.1f}%" if value is not None and isfinite(value) else "–"


def _number(value: float | None) -> str:
    return f"{value:.4f}" if value is not None and isfinite(value) else "–"


def _p(found: Robustness, row: Mapping[str, Any]) -> str:
    p = row["adjusted_p"]
    if p is None or not isfinite(p):
        return "–"
    decimals = max(3, len(str(found.about.get("testing", {}).get("permutations", 10_000))) - 2)
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if p < least / 2 else f"{p:.{decimals}f}"


SECTIONS: dict[str, Callable[[Robustness], Section]] = {
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
"""Every section by the name that asks for it."""
