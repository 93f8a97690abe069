"""What a tracker is told about a run: its figures and intervals, its recipe, its origin, its files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from crosslens.core import QUERIES_FILE, RECIPE_FILE, RUN_FILE, Run, fingerprint
from crosslens.metrics import dataset_name, dataset_revision, select_metrics

ENDS = ("low", "high")


@dataclass(frozen=True)
class TrackedRun:
    """A run as names and values: ``figures`` and ``intervals`` by metric, ``settings`` of the recipe, ``facts``."""

    name: str
    key: str
    """The same for the same values of all queries under the same name: exporting a run again finds it by this."""
    figures: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    settings: Mapping[str, str]
    facts: Mapping[str, str]
    files: tuple[Path, ...] = ()
    folder: Path | None = None


@dataclass(frozen=True)
class TrackedAt:
    """Where a run is now: the tracker's id of it, a text that says where, and whether it was there before."""

    tracker: str
    id: str
    location: str
    existed: bool = False


def tracked(run: Run, metrics: str | Sequence[str] | None = None, *, files: bool = True) -> TrackedRun:
    """What trackers get of a run: the chosen metrics that have a value, and the files of its folder."""
    chosen = {name: run[name] for name in select_metrics(run, metrics)}
    options = run.provenance.get("options", {})
    facts = {
        "values": run.fingerprint,
        "dataset": dataset_name(run),
        "dataset_fingerprint": dataset_revision(run),
        "protocol": str(run.protocol.get("name", "")),
        "ties": str(options.get("ties", "")),
        "level": ", ".join(sorted({f"{values.level:g}" for values in chosen.values()})),
        "crosslens": str(run.provenance.get("versions", {}).get("crosslens", "")),
    }
    return TrackedRun(
        run.name,
        fingerprint("tracked run", {"name": run.name, "values": run.fingerprint, "dataset": dataset_revision(run)}),
        {name: values.mean for name, values in chosen.items() if isfinite(values.mean)},
        {name: values.interval for name, values in chosen.items() if all(map(isfinite, values.interval))},
        _settings(run.recipe),
        {name: text for name, text in facts.items() if text},
        _files(run.home) if files and run.home is not None else (),
        run.home,
    )


def _settings(recipe: str) -> dict[str, str]:
    """The entries of a recipe under dotted names; its fingerprints say nothing to a reader."""
    content = tomllib.loads(recipe) if recipe else {}
    content.pop("fingerprints", None)
    return dict(_flat("", content))


def _flat(prefix: str, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in content.items():
        if isinstance(value, Mapping):
            rows += _flat(f"{prefix}{key}.", value)
        else:
            rows.append((f"{prefix}{key}", " ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return rows


def _files(folder: Path) -> tuple[Path, ...]:
    """The files of a run folder, and nothing else that lies there."""
    plain = [folder / name for name in (RUN_FILE, QUERIES_FILE, RECIPE_FILE)]
    rankings = sorted(path for path in folder.glob("ranking-*/*") if path.is_file())
    return tuple(path for path in (*plain, *rankings) if path.is_file())
