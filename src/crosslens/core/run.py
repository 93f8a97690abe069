"""A run: everything one evaluation found, and where it came from. Saved as a folder that viewers only read.

``run.json``         metrics and provenance; written last, so a folder with it is complete
``queries.parquet``  one row per query: its direction, id, cluster, the dataset's columns, one column per metric
``ranking-i2t/`` …   the rankings behind the metrics
``recipe.toml``      what ``crosslens run`` repeats
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.atomic import atomic_file, sweep, write_text
from crosslens.core.bundle import VERSION, read_header
from crosslens.core.errors import ConflictError, InputError, UnknownNameError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.grid import PAGE_WIDTH, Grid
from crosslens.core.metric_values import MetricValues
from crosslens.core.ranking import Ranking

RUN_FILE = "run.json"
QUERIES_FILE = "queries.parquet"
RECIPE_FILE = "recipe.toml"
BOTH = "both"
"""The direction of a metric that sums over both, such as ``Rsum``; its queries are the images."""

_RESERVED = ("direction", "query", "cluster")


def split_name(name: str) -> tuple[str, str]:
    """``t2i/Hit@5`` is the metric ``Hit@5`` of the direction ``t2i``; without a direction it spans both."""
    direction, slash, metric = name.partition("/")
    # An option may hold a slash of its own: NCS[embed:some/model]@10.
    return (direction, metric) if slash and "[" not in direction else (BOTH, name)


@dataclass(frozen=True, eq=False)
class Run:
    """``values`` maps names such as ``t2i/Hit@5`` to :class:`MetricValues`; ``run["t2i/Hit@5"]`` is the same.

    ``columns`` holds, per direction, the dataset's columns aligned with that direction's queries. ``home`` is the
    folder that it was read from, where the paths of its recipe start; no part of what the run is.
    """

    name: str
    values: Mapping[str, MetricValues]
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    columns: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    recipe: str = ""
    home: Path | None = None

    def __getitem__(self, metric: str) -> MetricValues:
        if metric not in self.values:
            raise UnknownNameError("metric in this run", metric, self.values)
        return self.values[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def fingerprint(self) -> str:
        """Changes when any value of any query does; not with provenance."""
        return fingerprint("run", {name: one.values for name, one in self.values.items()})

    def as_dict(self) -> dict[str, Any]:
        """The content of ``run.json``, which ``--json`` prints too."""
        return {
            "format": "crosslens/run",
            "version": VERSION,
            "name": self.name,
            "metrics": {name: one.as_dict() for name, one in self.values.items()},
            "provenance": dict(self.provenance),
        }

    def queries(self) -> pl.DataFrame:
        """One row per query and direction; a metric that does not apply to a row is null."""
        frames = []
        for direction, names in self._by_direction().items():
            first = self.values[names[0]]
            frame = pl.DataFrame(
                {
                    "direction": [direction] * len(first.query_ids),
                    "query": pl.Series(first.query_ids, dtype=pl.String),
                    "cluster": first.clusters,
                }
            )
            extra = self.columns.get(direction)
            if extra is not None:
                taken = {*_RESERVED, *(split_name(name)[1] for name in self.values)}
                extra = extra.rename({c: f"{c}_" for c in extra.columns if c in taken})
                frame = pl.concat([frame, extra], how="horizontal")
            metrics = {split_name(name)[1]: self.values[name].values for name in names}
            frames.append(frame.with_columns(**{n: pl.Series(v, nan_to_null=True) for n, v in metrics.items()}))
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()

    def _by_direction(self) -> dict[str, list[str]]:
        grouped: dict[str, list[str]] = {}
        for name in self.values:
            grouped.setdefault(split_name(name)[0], []).append(name)
        return grouped

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the folder; ``run.json`` comes last. A different run that stands there is replaced only if asked."""
        path = Path(path)
        if (path / RUN_FILE).exists() and Run.load(path).fingerprint != self.fingerprint:
            if not overwrite:
                raise ConflictError(f"{path}: another run stands there", fix="choose another place, or overwrite=True")
            (path / RUN_FILE).unlink()
            for stored in path.glob("ranking-*"):
                shutil.rmtree(stored)
        path.mkdir(parents=True, exist_ok=True)
        sweep(path)
        for direction, ranking in self.rankings.items():
            if not (path / f"ranking-{direction}").exists():
                ranking.save(path / f"ranking-{direction}")
        with atomic_file(path / QUERIES_FILE) as partial:
            self.queries().write_parquet(partial)
        if self.recipe:
            write_text(path / RECIPE_FILE, self.recipe)
        write_text(path / RUN_FILE, json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n")
        return path

    @staticmethod
    def load(path: str | Path) -> Run:
        """Read a run folder; rankings are read when first asked for."""
        path = Path(path)
        content = read_header(path / RUN_FILE, "run")
        try:
            queries = pl.read_parquet(path / QUERIES_FILE)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"unreadable: {error}", file=path / QUERIES_FILE, fix="repeat the evaluation") from error
        recipe = path / RECIPE_FILE
        metrics = content.get("metrics")
        if not isinstance(metrics, dict):
            raise InputError(
                "no metrics", file=path / RUN_FILE, expected="an entry 'metrics'", fix="repeat the evaluation"
            )
        plain = {split_name(name)[1] for name in metrics}
        per_direction = {key[0]: part for key, part in queries.partition_by("direction", as_dict=True).items()}
        free = [name for name in queries.columns if name not in plain and name not in _RESERVED]
        return Run(
            content.get("name", path.name),
            {name: _values(name, figures, per_direction) for name, figures in metrics.items()},
            _StoredRankings(path),
            {str(direction): part.select(free) for direction, part in per_direction.items()} if free else {},
            content.get("provenance", {}),
            recipe.read_text(encoding="utf-8") if recipe.exists() else "",
            path,
        )

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self.values)} metrics)"

    def __str__(self) -> str:
        """The figures as they are in code: fractions, not the percent of tables for people."""
        header = ("metric", "figure", "low", "high", "queries")
        rows = [
            (name, *(f"{number:.4f}" for number in (one.mean, *one.interval)), f"{one.n:,}")
            for name, one in self.values.items()
        ]
        return f"{self.name}\n\n{Grid(header, tuple(rows), 'lrrrr').text(PAGE_WIDTH)}"


def _values(name: str, figures: Mapping[str, Any], queries: Mapping[Any, pl.DataFrame]) -> MetricValues:
    direction, metric = split_name(name)
    table = queries[direction]
    return MetricValues(
        name,
        tuple(table["query"]),
        table[metric].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        table["cluster"].to_numpy(),
        mean=_figure(figures["mean"]),
        low=_figure(figures["low"]),
        high=_figure(figures["high"]),
        statistic=figures["statistic"],
        level=figures["level"],
    )


def _figure(value: float | None) -> float:
    return float("nan") if value is None else float(value)


class _StoredRankings(Mapping[str, Ranking]):
    """The rankings of a run folder, read on demand: most viewers never need them."""

    def __init__(self, folder: Path) -> None:
        self._folders = {part.name.removeprefix("ranking-"): part for part in sorted(folder.glob("ranking-*"))}
        self._loaded: dict[str, Ranking] = {}

    def __getitem__(self, direction: str) -> Ranking:
        if direction not in self._loaded:
            self._loaded[direction] = Ranking.load(self._folders[direction])
        return self._loaded[direction]

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)
