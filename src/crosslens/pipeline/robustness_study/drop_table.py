"""Several studies in one table: a row per perturbation, a column per model and dataset, or per dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core import UnknownNameError, UsageError, json_form
from crosslens.metrics import bounds_of
from crosslens.pipeline.comparison import unused_label
from crosslens.pipeline.robustness_study.study_directory import Robustness
from crosslens.pipeline.robustness_study.tables import direction_rsum
from crosslens.statistics import Bootstrap, difference_bounds, relative_interval

BY_DATASET = "dataset"
_FIGURES = ("drop", "low", "high", "percent", "percent_low", "percent_high", "before", "after")


@dataclass(frozen=True)
class Drop:
    """The drop of a figure in points and in percent of the figure before, with intervals; of several models, the means.

    NaN: not known.
    """

    drop: float
    low: float
    high: float
    percent: float
    percent_low: float
    percent_high: float
    before: float
    after: float
    models: int = 1
    applied_share: float = float("nan")
    adjusted_p: float = float("nan")


@dataclass(frozen=True)
class DropTable:
    """``cells[column, perturbation]``; a study without a perturbation has no cell there."""

    metric: str
    columns: tuple[str, ...]
    perturbations: tuple[str, ...]
    cells: Mapping[tuple[str, str], Drop]
    level: float = 0.95

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per cell: column, perturbation, metric and figures."""
        return [
            {"column": column, "perturbation": name, "metric": self.metric, **asdict(self.cells[column, name])}
            for column in self.columns
            for name in self.perturbations
            if (column, name) in self.cells
        ]

    def mean(self, column: str, figure: Literal["drop", "percent"] = "drop") -> float:
        """The mean drop over the perturbations that a column has."""
        cells = (self.cells.get((column, name)) for name in self.perturbations)
        return float(np.mean([getattr(cell, figure) for cell in cells if cell is not None]))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "metric": self.metric,
            "level": self.level,
            "columns": list(self.columns),
            "perturbations": list(self.perturbations),
            "drops": json_form(self.rows),
        }


@dataclass(frozen=True)
class _Part:
    """One model of one study."""

    label: str
    """The name of the study's folder."""
    study: Robustness
    model: str
    dataset: str
    fingerprint: str

    def rows(self, metric: str) -> dict[str, dict[str, Any]]:
        """By perturbation, the drops of the first seed."""
        own = self.study.drops.filter((pl.col("metric") == metric) & (pl.col("model") == self.model))
        return {row["perturbation"]: row for row in reversed(own.sort("seed", maintain_order=True).to_dicts())}


def drop_table(studies: Mapping[str, Robustness], metric: str | None = None, *, by: str | None = None) -> DropTable:
    """The drops of all models of all studies, which are named by their folders.

    ``by="dataset"`` takes the mean over the models of each dataset, as BRIT's Table 4 does, with an interval where the
    metric is the sum of a direction's hits. The default metric is the headline that all studies have.
    """
    if by not in (None, BY_DATASET):
        raise UnknownNameError("column of robustness studies", str(by), (BY_DATASET,))
    parts = [
        _Part(label, study, model, str(study.about.get("dataset", {}).get("name") or label),
              str(study.about.get("dataset", {}).get("fingerprint") or label))
        for label, study in studies.items()
        for model in study.models
    ]  # fmt: skip
    if not parts:
        raise UsageError("no studies", fix="pass at least one")
    chosen = _metric([part.study for part in parts], metric)
    columns = _columns(parts, by)
    names = tuple(dict.fromkeys(name for part in parts for name in part.study.perturbations))
    cells = {}
    for column, own in columns.items():
        drops = [part.rows(chosen) for part in own]
        for name in names:
            rows = [by_name[name] for by_name in drops if name in by_name]
            if len(rows) == len(own):
                cells[column, name] = _cell(chosen, name, rows, own)
    level = parts[0].study.about.get("testing", {}).get("level", 0.95)
    return DropTable(chosen, tuple(columns), names, cells, level)


def _metric(studies: Sequence[Robustness], metric: str | None) -> str:
    """The metric that is asked for, or the headline that all studies have; it must be in every study."""
    shared = [name for name in studies[0].drops["metric"].unique(maintain_order=True)
              if all((study.drops["metric"] == name).any() for study in studies)]  # fmt: skip
    if metric is not None:
        if metric not in shared:
            raise UnknownNameError("metric in all of these studies", metric, shared)
        return metric
    candidates = [name for study in studies for name in (study.headline, direction_rsum(study.direction))]
    chosen = next((name for name in candidates if name in shared), shared[0] if shared else None)
    if chosen is None:
        raise UsageError("the studies have no metric in common", fix="measure them with the same metrics")
    return chosen


def _columns(parts: Sequence[_Part], by: str | None) -> dict[str, list[_Part]]:
    """Each model of each study under a name of its own, or the models of each dataset together."""
    columns: dict[str, list[_Part]] = {}
    if by == BY_DATASET:
        groups: dict[str, list[_Part]] = {}
        for part in parts:
            groups.setdefault(part.fingerprint, []).append(part)
        for own in groups.values():
            columns[unused_label(own[0].dataset, columns)] = own
        return columns
    several_datasets = len({part.dataset for part in parts}) > 1
    several_models = len({part.model for part in parts}) > 1 or not several_datasets
    for part in parts:
        words = [part.model] * several_models + [part.dataset] * several_datasets
        name = ", ".join(words)
        columns[unused_label(f"{name} ({part.label})" if name in columns and part.label else name, columns)] = [part]
    return columns


def _cell(metric: str, name: str, rows: Sequence[Mapping[str, Any]], parts: Sequence[_Part]) -> Drop:
    if len(rows) == 1:
        own: dict[str, Any] = {key: _number(rows[0][key]) for key in (*_FIGURES, "applied_share", "adjusted_p")}
        return Drop(**own)
    means: dict[str, Any] = {
        key: float(np.mean([row[key] for row in rows])) for key in ("drop", "percent", "before", "after")
    }
    return Drop(**means | _intervals(metric, name, parts), models=len(rows))


def _intervals(metric: str, name: str, parts: Sequence[_Part]) -> dict[str, float]:
    """Of the mean drop over models, per query the mean of its drops; and of the mean of the models' percent."""
    nothing = dict.fromkeys(("low", "high", "percent_low", "percent_high"), float("nan"))
    testing = parts[0].study.about.get("testing", {})
    tables = []
    for part in parts:
        queries = part.study.queries.filter((pl.col("model") == part.model) & (pl.col("perturbation") == name))
        if metric != direction_rsum(part.study.direction) or "cluster" not in queries.columns or not queries.height:
            return nothing
        tables.append(queries.filter(pl.col("seed") == queries["seed"].min()).sort("query"))
    if any(table["query"].to_list() != tables[0]["query"].to_list() for table in tables):
        return nothing
    befores, afters = (
        np.stack([100.0 * table[side].to_numpy() for table in tables]) for side in ("hits_before", "hits_after")
    )
    clusters, bounds = tables[0]["cluster"].to_numpy(), bounds_of(metric)
    low, high = (
        Bootstrap(clusters, testing.get("resamples", 1000), testing.get("seed", 0))
        .estimate(
            np.mean(befores - afters, axis=0),
            level=testing.get("level", 0.95),
            bounds=bounds and difference_bounds(bounds),
        )
        .interval
    )
    relative_low, relative_high = relative_interval(list(befores), list(afters), clusters, -high, -low)
    return {"low": low, "high": high, "percent_low": -100 * relative_high, "percent_high": -100 * relative_low}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
