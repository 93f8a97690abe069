"""The files of a run: their names and layout, whether they are whole, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import polars as pl

from crosslens.core.errors import CrosslensError, InputError
from crosslens.core.input_files.stored import require_entries
from crosslens.core.input_files.tables import require_columns
from crosslens.core.integrity import Manifest, verification
from crosslens.core.output.layout import Layout
from crosslens.core.output.reading import state_of
from crosslens.core.ranking import RANKING_LAYOUT, Ranking
from crosslens.core.runs.metric_values import MetricValues, Statistic, read_facts, split_name
from crosslens.core.storage import HEADER_FILE

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


def check_stored(content: Mapping[str, Any], queries: pl.DataFrame, folder: Path) -> None:
    """Raise for a figure of another type, or a metric without its values per query."""
    file = folder / RUN_FILE
    require_entries(content, {"name": str, "provenance": dict, "protocol": dict}, file)
    check_stored_protocol(content.get("protocol", {}), file)
    require_columns(queries, QUERY_COLUMNS, folder / QUERIES_FILE)
    directions = set(queries["direction"])
    for name, figures in content["metrics"].items():
        require_entries(figures, {"statistic": str, "level": float}, file, inside=name)
        numbers = {part: float for part in ("mean", "low", "high") if figures.get(part) is not None}
        require_entries(figures, numbers, file, inside=name)
        direction, metric = split_name(name)
        if figures.get("statistic") not in get_args(Statistic) or direction not in directions:
            problem = f"{name} has the statistic {figures.get('statistic')!r:.40}, and queries of {sorted(directions)}"
            raise InputError(
                problem, file=file, expected="the figures that crosslens wrote", fix="repeat the evaluation"
            )
        require_columns(queries, {metric: _NUMBERS}, folder / QUERIES_FILE)


def check_stored_protocol(protocol: Mapping[str, Any], file: Path) -> None:
    """Raise unless a stored protocol is one: its name, its paper, φ and conventions as texts."""
    if not protocol:
        return
    types = {"name": str, "paper": str, "phi": list, "tokens": dict, "conventions": list}
    require_entries(protocol, types, file, inside="protocol")
    for convention in protocol.get("conventions", []):
        require_entries(convention, {"key": str, "value": str, "about": str}, file, inside="protocol")


def stored_values(name: str, figures: Mapping[str, Any], queries: Mapping[Any, pl.DataFrame]) -> MetricValues:
    """A metric of a stored run, from its figures and the rows of the queries by direction."""
    direction, metric = split_name(name)
    table = queries[direction]
    mean, low, high = (
        float("nan") if figures.get(part) is None else float(figures[part]) for part in ("mean", "low", "high")
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
        figures.get("level", 0.95),
        read_facts(name, figures),
    )


def _stored_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir()) if folder.is_dir() else 0


def ranking_header(direction: str) -> str:
    """The file that stands for a ranking in a run's list of files: it holds the hashes of the ranking's own."""
    return f"ranking-{direction}/{HEADER_FILE}"


_SMALL = 16 << 20
"""Bytes of rankings that are read with their run, so that they are of the same run whatever is written meanwhile."""


class StoredRankings(Mapping[str, Ranking]):
    """The rankings of a run folder. Large ones are read on demand: most viewers never need them."""

    def __init__(self, folder: Path, manifest: Manifest, verify: bool) -> None:
        directions = (part.name.removeprefix("ranking-") for part in sorted(folder.glob("ranking-*")))
        known = manifest.hashes
        self._folders = {
            direction: folder / f"ranking-{direction}"
            for direction in directions
            if known is None or ranking_header(direction) in known
        }
        self._manifest, self._verify = manifest, verify
        self._loaded: dict[str, Ranking] = {}
        self._state = state_of(manifest.source)
        if sum(_stored_bytes(part) for part in self._folders.values()) <= _SMALL:
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
