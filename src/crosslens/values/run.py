"""A run: the metrics of one evaluation and its provenance. Saved as a folder that viewers only read.

``run.json``         metrics, provenance and hashes of the other files
``queries.parquet``  one row per query: its direction, id, cluster, the dataset's columns, one column per metric
``ranking-i2t/`` …   the rankings behind the metrics
``recipe.toml``      what ``crosslens run`` repeats
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from polars import selectors

from crosslens.core import (
    ENDINGS,
    CrosslensError,
    InputError,
    Presented,
    Registry,
    UnknownNameError,
    UsageError,
    address_of,
)
from crosslens.storage import (
    FORMAT_VERSION,
    HEADER_FILE,
    FloatArray,
    IntArray,
    Layout,
    Manifest,
    atomic_folder,
    fingerprint,
    frozen,
    json_form,
    local_copy,
    local_output,
    other_content,
    parquet_bytes,
    read_manifest,
    read_parquet_file,
    read_text_file,
    read_whole,
    require_columns,
    require_entries,
    state_of,
    verification,
    write_header,
)
from crosslens.values.ids import Ids
from crosslens.values.ranking import RANKING_LAYOUT, Ranking

Statistic = Literal["mean", "median", "floor-median"]
Unit = Literal["share", "rank", "points", "number"]


@dataclass(frozen=True)
class MetricFacts:
    """What a reader of a metric's values has to know: its direction, its unit, whether it is taken over pairs.

    Stored with every run, for a run may be read where the metric itself is not installed.
    """

    higher_is_better: bool = True
    unit: Unit = "share"
    pooled: bool = False


ASSUMED_FACTS = MetricFacts()
"""Those of a metric that nobody knows, neither this crosslens nor the run: nearly all metrics are shares."""

_STORED_FACTS: dict[str, MetricFacts] = {}


def stored_facts(name: str) -> MetricFacts | None:
    """What the runs and studies that were loaded say about a metric."""
    return _STORED_FACTS.get(name)


@dataclass(frozen=True, eq=False)
class MetricValues:
    """One metric of one run: one number per query (NaN: excluded, as it has no relevant item), and its figure.

    ``clusters`` names the image each query belongs to: intervals and tests resample images, not queries.
    ``mean`` is the headline figure; where the metric is a median (``MedR``) it is that median: see ``statistic``.
    """

    name: str
    query_ids: Ids
    values: FloatArray
    clusters: IntArray
    mean: float
    low: float
    high: float
    statistic: Statistic = "mean"
    level: float = 0.95
    facts: MetricFacts | None = None
    """None in a run of a version that did not store them."""

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
        return {name: json_form(getattr(self, name)) for name in names} | (asdict(self.facts) if self.facts else {})

    def __repr__(self) -> str:
        return f"MetricValues({self.name}: {self.mean:.4f} [{self.low:.4f}, {self.high:.4f}], n={self.n})"


BOTH = "both"
"""The direction of a metric that sums over both, such as ``Rsum``; its queries are the images."""
DIRECTION_LABELS = {"i2t": "image → text", "t2i": "text → image", BOTH: "both directions"}


def split_name(name: str) -> tuple[str, str]:
    """``t2i/Hit@5`` is the metric ``Hit@5`` of the direction ``t2i``; without a direction it spans both."""
    direction, slash, metric = name.partition("/")
    # An option may hold a slash of its own: NCS[embed:some/model]@10.
    return (direction, metric) if slash and "[" not in direction else (BOTH, name)


def read_facts(name: str, figures: Mapping[str, Any]) -> MetricFacts | None:
    """The facts of a metric among its stored figures, if they are there; from then on :func:`stored_facts` has them."""
    values = {entry.name: figures[entry.name] for entry in fields(MetricFacts) if entry.name in figures}
    if values.get("unit", "share") not in get_args(Unit):
        del values["unit"]  # of a later version
    if not values:
        return None
    _STORED_FACTS[name] = MetricFacts(**values)
    return _STORED_FACTS[name]


METRIC_NAMES: Registry[Callable[[str, Iterable[str]], list[str]]] = Registry(
    "reading of metric names", "metric_names", ("crosslens.metrics.request",)
)
"""``stored`` → which of the names in a run a person means: only the package of the metrics can read what is written."""

RUN_FILE = "run.json"
QUERIES_FILE = "queries.parquet"
RECIPE_FILE = "recipe.toml"
_THRESHOLDS_FILE = "thresholds.json"
"""Where a person may keep the thresholds of the run's model: it goes when the run is replaced."""
RUN_LAYOUT = Layout(
    "a run", RUN_FILE, (QUERIES_FILE, RECIPE_FILE, _THRESHOLDS_FILE, *RANKING_LAYOUT.within("ranking-*"))
)

_NUMBERS = (pl.Float64, pl.Float32, pl.Int64, pl.Int32, pl.Boolean, pl.Null)
QUERY_COLUMNS = {"direction": pl.String, "query": pl.String, "cluster": (pl.Int64, pl.Int32, pl.UInt32, pl.UInt64)}
RESERVED = tuple(QUERY_COLUMNS)


def check_stored_protocol(protocol: Mapping[str, Any], file: Path) -> None:
    """Raise unless a stored protocol is one: its name, its paper, φ and conventions as texts."""
    if not protocol:
        return
    types = {"name": str, "paper": str, "phi": list, "tokens": dict, "conventions": list}
    require_entries(protocol, types, file, inside="protocol")
    for convention in protocol.get("conventions", []):
        require_entries(convention, {"key": str, "value": str, "about": str}, file, inside="protocol")


def stored_values(name: str, figures: Mapping[str, Any], table: pl.DataFrame, queries: Ids) -> MetricValues:
    """A metric of a stored run, from its figures and the rows of the queries of its direction."""
    mean, low, high = (
        float("nan") if figures.get(part) is None else float(figures[part]) for part in ("mean", "low", "high")
    )
    return MetricValues(
        name,
        queries,
        table[split_name(name)[1]].to_numpy(),
        table["cluster"].to_numpy(),
        mean,
        low,
        high,
        figures["statistic"],
        figures.get("level", 0.95),
        read_facts(name, figures),
    )


def ranking_header(direction: str) -> str:
    """The file that stands for a ranking in a run's list of files: it holds the hashes of the ranking's own."""
    return f"ranking-{direction}/{HEADER_FILE}"


_SMALL = 16 << 20
"""Bytes of rankings that are read with their run, so that they are of the same run whatever is written meanwhile."""


class StoredRankings(Mapping[str, Ranking]):
    """The rankings of a run folder. Large ones are read on demand: most viewers never need them."""

    def __init__(self, folder: Path, manifest: Manifest, verify: bool) -> None:
        directions = (part.name.removeprefix("ranking-") for part in sorted(folder.glob("ranking-*")))
        hashes = manifest.hashes
        self._folders = {
            direction: folder / f"ranking-{direction}"
            for direction in directions
            if hashes is None or ranking_header(direction) in hashes
        }
        self._manifest, self._verify = manifest, verify
        self._loaded: dict[str, Ranking] = {}
        self._state = state_of(manifest.source)
        stored = (file for folder in self._folders.values() if folder.is_dir() for file in folder.iterdir())
        if sum(file.stat().st_size for file in stored) <= _SMALL:
            for direction in self._folders:
                with suppress(CrosslensError, OSError):  # a damaged one concerns those who use it
                    self[direction]

    def __getitem__(self, direction: str) -> Ranking:
        if direction not in self._loaded:
            folder = self._folders[direction]
            try:
                with verification(self._verify):
                    self._manifest.check_folder((ranking_header(direction),))
                    ranking = Ranking.load(folder)
            finally:
                if self._state != state_of(self._manifest.source):
                    raise InputError(
                        "the run was replaced or removed after it was opened, before its rankings were read",
                        file=folder.parent, fix="open it again", code="replaced",
                    )  # fmt: skip
            self._loaded[direction] = ranking
        return self._loaded[direction]

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


@dataclass(frozen=True, eq=False)
class Run(Presented):
    """``values`` maps names such as ``t2i/Hit@5`` to :class:`MetricValues`; ``run["t2i/Hit@5"]`` is the same.

    ``run["t2i/R@5"]`` reads the name as ``metrics="R@5"`` does: it is ``t2i/Hit@5``.

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

    @property
    def title(self) -> str:
        return self.label

    def __getitem__(self, metric: str) -> MetricValues:
        if metric in self.values:
            return self.values[metric]
        matches = METRIC_NAMES["stored"].value(metric, self.values)
        if len(matches) != 1:
            raise UnknownNameError("metric in this run", metric, matches or self.values)
        return self.values[matches[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def protocol(self) -> Mapping[str, Any]:
        """The paper's protocol that it follows, as it was stored; empty for crosslens' own conventions."""
        protocol: Mapping[str, Any] = self.provenance.get("protocol", {})
        return protocol

    @property
    def published(self) -> tuple[str, ...]:
        """The files of others that its figures were read from, where these are all there is: no values of queries."""
        files = self.provenance.get("published")
        return tuple(map(str, files)) if isinstance(files, list) else ()

    @property
    def label(self) -> str:
        """The name as tables and figures show it, with the protocol; it says so where figures were published."""
        if self.published:
            return f"{self.name} (published)"
        return f"{self.name} (protocol {self.protocol['name']})" if self.protocol else self.name

    @property
    def fingerprint(self) -> str:
        """Changes when any value of any query does; not with provenance."""
        return fingerprint("run", {name: metric.values for name, metric in self.values.items()})

    def as_dict(self) -> dict[str, Any]:
        """The content of ``run.json``, which ``--json`` prints too."""
        provenance = {key: value for key, value in self.provenance.items() if key != "protocol"}
        return {
            "format": "crosslens/run",
            "version": FORMAT_VERSION,
            "name": self.name,
            **({"protocol": dict(self.protocol)} if self.protocol else {}),
            "metrics": {name: metric.as_dict() for name, metric in self.values.items()},
            "provenance": provenance,
        }

    def queries(self) -> pl.DataFrame:
        """One row per query and direction; a metric that does not apply to a row is null."""
        frames = []
        by_direction: dict[str, list[str]] = {}
        for name in self.values:
            by_direction.setdefault(split_name(name)[0], []).append(name)
        for direction, names in by_direction.items():
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
                reserved = {*RESERVED, *(split_name(name)[1] for name in self.values)}
                extra = extra.rename({c: f"{c}_" for c in extra.columns if c in reserved})
                frame = pl.concat([frame, extra], how="horizontal")
            metrics = {split_name(name)[1]: self.values[name].values for name in names}
            frames.append(frame.with_columns(**{n: pl.Series(v, nan_to_null=True) for n, v in metrics.items()}))
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the folder, or with the ending of a form (``.html``, ``.tex``, …) the figures alone.

        A different run in it is replaced only with ``overwrite``. The folder may be an address (``s3://…``, ``gs://…``).
        """
        if address_of(path) is None and Path(path).suffix.lower() in ENDINGS:
            return super().save(path, overwrite=overwrite)
        if self.published:
            raise UsageError(
                f"{self.name!r} has published figures alone, and a run folder holds values of queries",
                fix=f"keep {', '.join(self.published)}, or save it as a page or table, such as {Path(path).name}.html",
            )
        with local_output(path, RUN_LAYOUT) as target:
            assert target is not None
            with atomic_folder(target, RUN_LAYOUT) as folder:
                if not overwrite and (target / RUN_FILE).exists() and Run.load(target).fingerprint != self.fingerprint:
                    raise other_content(target, "run")
                self.write_into(folder)
        return Path(path)

    def write_into(self, folder: Path) -> None:
        """Write the same files into a folder that is being prepared; rankings that are there already are kept."""
        for direction, ranking in self.rankings.items():
            if not (folder / f"ranking-{direction}").exists():
                ranking.save(folder / f"ranking-{direction}")
        (folder / QUERIES_FILE).write_bytes(parquet_bytes(self.queries()))
        if self.recipe:
            (folder / RECIPE_FILE).write_text(self.recipe, encoding="utf-8")
        files = [QUERIES_FILE, *([RECIPE_FILE] if self.recipe else []), *map(ranking_header, self.rankings)]
        write_header(folder / RUN_FILE, self.as_dict(), files)

    @staticmethod
    def load(path: str | Path, *, verify: bool = True) -> Run:
        """Read a run folder, or one at an address, as one writer left it. ``verify`` refuses files that have changed.

        Large rankings are read when they are first used, which fails if the run has been replaced by then.
        """
        address = address_of(path)
        path = Path(path) if address is None else local_copy(address)
        try:
            return read_whole(path, path / RUN_FILE, read=lambda: Run._read(path, verify))
        except CrosslensError as error:
            error.rename(str(path), address or str(path))
            raise

    @staticmethod
    def _read(path: Path, verify: bool) -> Run:
        recipe = path / RECIPE_FILE
        with verification(verify):
            content, manifest = read_manifest(path / RUN_FILE, "run")
            # Recipe and rankings may be removed, as before sharing a run; nothing is computed without them.
            manifest.check_folder((QUERIES_FILE, *([RECIPE_FILE] if recipe.exists() else [])))
        try:
            queries = read_parquet_file(path / QUERIES_FILE)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"unreadable: {error}", file=path / QUERIES_FILE, fix="repeat the evaluation") from error
        has_recipe = recipe.exists() and (manifest.hashes is None or RECIPE_FILE in manifest.hashes)
        metrics = content.get("metrics")
        if not isinstance(metrics, dict):
            expected = "an entry 'metrics'"
            raise InputError("no metrics", file=path / RUN_FILE, expected=expected, fix="repeat the evaluation")
        # Raise for a figure of another type, or a metric without its values per query.
        file = path / RUN_FILE
        require_entries(content, {"name": str, "provenance": dict, "protocol": dict}, file)
        check_stored_protocol(content.get("protocol", {}), file)
        require_columns(queries, QUERY_COLUMNS, path / QUERIES_FILE)
        directions = set(queries["direction"])
        for name, figures in content["metrics"].items():
            require_entries(figures, {"statistic": str, "level": float}, file, inside=name)
            numbers = {part: float for part in ("mean", "low", "high") if figures.get(part) is not None}
            require_entries(figures, numbers, file, inside=name)
            direction, metric = split_name(name)
            if figures.get("statistic") not in get_args(Statistic) or direction not in directions:
                problem = (
                    f"{name} has the statistic {figures.get('statistic')!r:.40}, and queries of {sorted(directions)}"
                )
                raise InputError(
                    problem, file=file, expected="the figures that crosslens wrote", fix="repeat the evaluation"
                )
            require_columns(queries, {metric: _NUMBERS}, path / QUERIES_FILE)
        plain = {split_name(name)[1] for name in metrics}
        values = selectors.by_name(*plain.difference(RESERVED)).cast(pl.Float64).fill_null(float("nan"))
        queries = queries.with_columns(values)
        per_direction = {key[0]: part for key, part in queries.partition_by("direction", as_dict=True).items()}
        ids = {direction: tuple(part["query"]) for direction, part in per_direction.items()}  # once for all metrics
        free = [name for name in queries.columns if name not in plain and name not in RESERVED]
        return Run(
            content.get("name", path.name),
            {
                name: stored_values(name, figures, per_direction[direction], ids[direction])
                for name, figures in metrics.items()
                for direction in (split_name(name)[0],)
            },
            StoredRankings(path, manifest, verify),
            {str(direction): part.select(free) for direction, part in per_direction.items()} if free else {},
            content.get("provenance", {}) | ({"protocol": content["protocol"]} if content.get("protocol") else {}),
            read_text_file(recipe) if has_recipe else "",
            path,
        )

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self.values)} metrics)"
