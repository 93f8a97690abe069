"""A run: the metrics of one evaluation and its provenance. Saved as a folder that viewers only read.

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
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core.errors import ConflictError, InputError, UnknownNameError, argument
from crosslens.core.hashing import fingerprint
from crosslens.core.ids import Ids, frozen
from crosslens.core.ranking import Ranking
from crosslens.core.rendering import PAGE_WIDTH, Grid
from crosslens.core.storage import FORMAT_VERSION, atomic_file, json_form, read_header, remove_partial_files, write_text

Statistic = Literal["mean", "median", "floor-median"]


@dataclass(frozen=True, eq=False)
class MetricValues:
    """One metric of one run: one number per query (NaN: excluded, as it has no relevant item), and its figure.

    ``clusters`` names the image each query belongs to: intervals and tests resample images, not queries.
    ``mean`` is the headline figure; where the metric is a median (``MedR``) it is that median: see ``statistic``.
    """

    name: str
    query_ids: Ids
    values: np.ndarray[Any, np.dtype[np.float64]]
    clusters: np.ndarray[Any, np.dtype[np.int64]]
    mean: float
    low: float
    high: float
    statistic: Statistic = "mean"
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "clusters", frozen(self.clusters))

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def n(self) -> int:
        """How many queries count."""
        return int(np.isfinite(self.values).sum())

    @property
    def excluded(self) -> int:
        """How many queries have no relevant item, or (graded metrics) nothing to compare with."""
        return len(self.values) - self.n

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent."""
        names = ("mean", "low", "high", "n", "excluded", "statistic", "level")
        return {name: json_form(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        return f"MetricValues({self.name}: {self.mean:.4f} [{self.low:.4f}, {self.high:.4f}], n={self.n})"


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

    ``columns`` are, per direction, the dataset's columns aligned with that direction's queries. ``home`` is the folder
    that it was read from, to which the paths of its recipe are relative; not part of the run.
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
        return fingerprint("run", {name: metric.values for name, metric in self.values.items()})

    def as_dict(self) -> dict[str, Any]:
        """The content of ``run.json``, which ``--json`` prints too."""
        return {
            "format": "crosslens/run",
            "version": FORMAT_VERSION,
            "name": self.name,
            "metrics": {name: metric.as_dict() for name, metric in self.values.items()},
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
        """Write the folder, ``run.json`` last. A different run in it is replaced only with ``overwrite``."""
        path = Path(path)
        if (path / RUN_FILE).exists() and Run.load(path).fingerprint != self.fingerprint:
            if not overwrite:
                fix = f"choose another path, or pass {argument('overwrite', True)}"
                raise ConflictError(f"{path} already contains a different run", fix=fix)
            (path / RUN_FILE).unlink()
            for stored in path.glob("ranking-*"):
                shutil.rmtree(stored)
        path.mkdir(parents=True, exist_ok=True)
        remove_partial_files(path)
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
        """Read a run folder; rankings are read when first used."""
        path = Path(path)
        content = read_header(path / RUN_FILE, "run")
        try:
            queries = pl.read_parquet(path / QUERIES_FILE)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"unreadable: {error}", file=path / QUERIES_FILE, fix="repeat the evaluation") from error
        recipe = path / RECIPE_FILE
        metrics = content.get("metrics")
        if not isinstance(metrics, dict):
            expected = "an entry 'metrics'"
            raise InputError("no metrics", file=path / RUN_FILE, expected=expected, fix="repeat the evaluation")
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
        """The figures as fractions, not the percent of tables for people."""
        header = ("metric", "figure", "low", "high", "queries")
        rows = [
            (name, *(f"{number:.4f}" for number in (metric.mean, *metric.interval)), f"{metric.n:,}")
            for name, metric in self.values.items()
        ]
        return f"{self.name}\n\n{Grid(header, tuple(rows), 'lrrrr').text(PAGE_WIDTH)}"


def _values(name: str, figures: Mapping[str, Any], queries: Mapping[Any, pl.DataFrame]) -> MetricValues:
    direction, metric = split_name(name)
    table = queries[direction]
    mean, low, high = (
        float("nan") if figures[part] is None else float(figures[part]) for part in ("mean", "low", "high")
    )
    return MetricValues(
        name,
        tuple(table["query"]),
        table[metric].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        table["cluster"].to_numpy(),
        mean,
        low,
        high,
        figures["statistic"],
        figures["level"],
    )


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
