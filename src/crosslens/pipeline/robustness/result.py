"""What a robustness study found: tables, as a folder that viewers only read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.atomic import atomic_file, write_text
from crosslens.core.bundle import VERSION, read_header
from crosslens.core.errors import InputError
from crosslens.core.json_form import json_form
from crosslens.pipeline.robustness.place import RESULT_FILE

TABLES = ("drops", "spread", "changes", "overlap", "overlap_pairs", "words", "brittle", "captions", "queries")
_LARGE = ("overlap_pairs", "captions", "queries")
"""Tables that are in the folder and in Python only: too long for a page of JSON."""


@dataclass(frozen=True, eq=False)
class Robustness:
    """Models × perturbations, and what the perturbations did; every table is a polars table.

    ``drops``          per model, perturbation, seed and metric: before, after, drop, its interval and p-value
    ``spread``         with several seeds: mean, standard deviation and extremes of the drop over them
    ``changes``        per model and perturbation: queries changed, ranked lower, higher, same; figures before and after
    ``overlap``        per model: how alike are the sets of queries that perturbations decrease, increase, leave?
    ``overlap_pairs``  the same for each pair of perturbations
    ``words``          what an edit costs by the part of speech of the word
    ``brittle``        the most brittle queries, with every perturbation of them
    ``captions``       every caption before and after, with its edits
    ``queries``        every query before and after: place, hits, own similarity

    All but ``drops`` and ``spread`` are of the first seed.
    """

    models: tuple[str, ...]
    perturbations: tuple[str, ...]
    headline: str
    direction: str
    tables: Mapping[str, pl.DataFrame]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name in TABLES:
            return self.tables[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent; the long tables are left to Parquet."""
        return {
            "format": "crosslens/robustness",
            "version": VERSION,
            "models": list(self.models),
            "perturbations": list(self.perturbations),
            "headline": self.headline,
            "direction": self.direction,
            **self.about,
            **{name: json_form(self.tables[name].to_dicts()) for name in TABLES if name not in _LARGE},
        }

    def save(self, folder: str | Path) -> Path:
        """Write the tables, and ``robustness.json`` last."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RESULT_FILE).unlink(missing_ok=True)
        for name, table in self.tables.items():
            with atomic_file(folder / f"{name}.parquet") as partial:
                table.write_parquet(partial)
        write_text(folder / RESULT_FILE, json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n")
        return folder

    @staticmethod
    def load(folder: str | Path) -> Robustness:
        """Read a folder that a study wrote."""
        folder = Path(folder)
        header = read_header(folder / RESULT_FILE, "robustness")
        tables = {}
        for name in TABLES:
            file = folder / f"{name}.parquet"
            try:
                tables[name] = pl.read_parquet(file)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise InputError(f"unreadable: {error}", file=file, fix="run the same command again") from error
        own = ("models", "perturbations", "headline", "direction", "format", "version", *TABLES)
        return Robustness(
            tuple(header["models"]),
            tuple(header["perturbations"]),
            header["headline"],
            header["direction"],
            tables,
            {key: value for key, value in header.items() if key not in own},
        )

    def __repr__(self) -> str:
        return f"Robustness({len(self.models)} models × {len(self.perturbations)} perturbations, {self.headline})"
