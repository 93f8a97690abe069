"""A run: the metrics of one evaluation and its provenance. Saved as a folder that viewers only read.

``run.json``         metrics, provenance and hashes of the other files
``queries.parquet``  one row per query: its direction, id, cluster, the dataset's columns, one column per metric
``ranking-i2t/`` …   the rankings behind the metrics
``recipe.toml``      what ``crosslens run`` repeats
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.errors import ConflictError, InputError, UnknownNameError, argument
from crosslens.core.hashing import fingerprint
from crosslens.core.input_files.json_text import read_text_file
from crosslens.core.input_files.tables import read_parquet_file
from crosslens.core.integrity import verification
from crosslens.core.output.reading import read_whole
from crosslens.core.output.workspace import atomic_folder
from crosslens.core.parts import ENDINGS, Presented
from crosslens.core.ranking import Ranking
from crosslens.core.runs.metric_values import MetricValues, split_name
from crosslens.core.runs.stored_run import (
    QUERIES_FILE,
    RECIPE_FILE,
    RESERVED,
    RUN_FILE,
    RUN_LAYOUT,
    StoredRankings,
    check_stored,
    ranking_header,
    stored_values,
)
from crosslens.core.storage import FORMAT_VERSION, parquet_bytes, read_manifest, write_header


@dataclass(frozen=True, eq=False)
class Run(Presented):
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

    @property
    def title(self) -> str:
        """The heading of a page."""
        return self.label

    def __getitem__(self, metric: str) -> MetricValues:
        if metric not in self.values:
            raise UnknownNameError("metric in this run", metric, self.values)
        return self.values[metric]

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
    def label(self) -> str:
        """The name as tables and figures show it, with the protocol."""
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
                taken = {*RESERVED, *(split_name(name)[1] for name in self.values)}
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
        """Write the folder, or with the ending of a form (``.html``, ``.tex``, …) the figures alone.

        A different run in it is replaced only with ``overwrite``.
        """
        path = Path(path)
        if path.suffix.lower() in ENDINGS:
            return super().save(path, overwrite=overwrite)
        with atomic_folder(path, RUN_LAYOUT) as folder:
            if not overwrite and (path / RUN_FILE).exists() and Run.load(path).fingerprint != self.fingerprint:
                fix = f"choose another path, or pass {argument('overwrite', True)}"
                raise ConflictError(f"{path} already contains a different run", fix=fix)
            self.write_into(folder)
        return path

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
        """Read a run folder, all of it as one writer left it. ``verify`` refuses files that have changed.

        Large rankings are read when they are first used, which fails if the run has been replaced by then.
        """
        path = Path(path)
        return read_whole(path, path / RUN_FILE, read=lambda: Run._read(path, verify))

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
        check_stored(content, queries, path)
        plain = {split_name(name)[1] for name in metrics}
        per_direction = {key[0]: part for key, part in queries.partition_by("direction", as_dict=True).items()}
        free = [name for name in queries.columns if name not in plain and name not in RESERVED]
        return Run(
            content.get("name", path.name),
            {name: stored_values(name, figures, per_direction) for name, figures in metrics.items()},
            StoredRankings(path, manifest, verify),
            {str(direction): part.select(free) for direction, part in per_direction.items()} if free else {},
            content.get("provenance", {}) | ({"protocol": content["protocol"]} if content.get("protocol") else {}),
            read_text_file(recipe) if has_recipe else "",
            path,
        )

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self.values)} metrics)"
