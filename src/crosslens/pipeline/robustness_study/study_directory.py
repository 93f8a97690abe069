"""The folder of a robustness study: a run per model and variant inside, tables and ``robustness.json`` beside them.

``pending.json`` names unfinished work. A study can be extended by models and perturbations; one that would lose some,
or that has other settings, replaces it only with ``overwrite``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import (
    FORMAT_VERSION,
    ConflictError,
    InputError,
    argument,
    atomic_file,
    json_form,
    read_header,
    remove_partial_files,
    write_text,
)

ROBUSTNESS_FILE = "robustness.json"
PENDING_FILE = "pending.json"
PICTURES = ".pictures"
"""No model's folder has this name: theirs do not begin with a dot."""
_OVERWRITE = f"choose another output folder, or pass {argument('overwrite', True)}"


class StudyDirectory:
    """``setting`` is the fingerprint of what all runs of the study share."""

    def __init__(self, folder: str | Path, setting: str, *, overwrite: bool = False) -> None:
        self.folder, self.setting, self.overwrite = Path(folder), setting, overwrite
        if self.folder.exists() and not self.folder.is_dir():
            raise ConflictError(f"{self.folder} is a file", fix="choose another output folder")
        self.stored: dict[str, Any] = {}
        if (self.folder / ROBUSTNESS_FILE).exists():
            self.stored = read_header(self.folder / ROBUSTNESS_FILE, "robustness")
            self._require(
                self.stored.get("setting") == setting,
                "already contains a different robustness study (other data, metrics or options)",
            )
        elif (self.folder / PENDING_FILE).exists():
            self._require(
                self._pending() == setting,
                "already contains a different, unfinished robustness study (other data, metrics or options)",
            )
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            raise ConflictError(
                f"{self.folder}: the folder is not empty, and is not a robustness study",
                fix="choose another output folder",
            )

    def _require(self, condition: bool, problem: str, fix: str = _OVERWRITE) -> None:
        if not (condition or self.overwrite):
            raise ConflictError(f"{self.folder}: {problem}", fix=fix)

    def _pending(self) -> Any:
        """The setting of the unfinished work; None where it cannot be read."""
        try:
            return json.loads((self.folder / PENDING_FILE).read_text(encoding="utf-8"))["setting"]
        except (ValueError, KeyError, TypeError):
            return None

    def refuse_fewer_seeds(self, seeds: int) -> None:
        """Raise where the stored study has more seeds, whose tables would be lost."""
        stored = self.stored.get("options", {}).get("seeds", 1)
        fix = f"use {stored} seeds, {_OVERWRITE}"
        self._require(seeds >= stored, f"the stored study has {stored} seeds, and this one {seeds}", fix)

    def refuse_loss(self, kind: str, kept: Collection[str], unnamed: int = 0) -> None:
        """Raise where the stored study has ``models`` or ``perturbations`` that the new one does not have.

        With ``unnamed`` ones whose names are not known yet, only where those cannot be all that is missing.
        """
        lost = [name for name in self.stored.get(kind, ()) if name not in kept]
        problem = f"the stored study also has {', '.join(lost)}, which would be lost from its tables"
        self._require(len(lost) <= unnamed, problem, f"name them too, {_OVERWRITE}")

    def begin(self) -> None:
        """Mark the folder as holding unfinished work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_partial_files(self.folder)
        if self.stored.get("setting", self.setting) != self.setting:  # a different study is overwritten
            (self.folder / ROBUSTNESS_FILE).unlink()
            for model in self.stored.get("models", ()):
                shutil.rmtree(self.folder / folder_name(model), ignore_errors=True)
        write_text(self.folder / PENDING_FILE, json.dumps({"setting": self.setting}) + "\n")

    def run_folder(self, model: str, label: str) -> Path:
        """The folder of the run of a model on a variant."""
        return self.folder / folder_name(model) / label

    def finish(self) -> None:
        """The study is complete: nothing is pending, and perturbed pictures are not needed any more."""
        shutil.rmtree(self.folder / PICTURES, ignore_errors=True)
        (self.folder / PENDING_FILE).unlink(missing_ok=True)


def folder_name(model: str) -> str:
    """A model's name as a folder name."""
    return re.sub(r"[^\w.@+-]+", "-", model).strip("-.") or "model"


TABLES = ("drops", "spread", "changes", "overlap", "overlap_pairs", "words", "brittle", "captions", "queries")
_LARGE = ("overlap_pairs", "captions", "queries")
"""Tables that are in the folder and in Python only: too long for a page of JSON."""


@dataclass(frozen=True, eq=False)
class Robustness:
    """Models × perturbations; every table is a polars table.

    ``drops``          per model, perturbation, seed and metric: before, after, drop, its interval and p-value
    ``spread``         with several seeds: mean, standard deviation and extremes of the drop over them
    ``changes``        per model and perturbation: queries changed, ranked lower, higher, same; figures before and after
    ``overlap``        per model: how similar the sets of queries are that perturbations decrease, increase or leave
    ``overlap_pairs``  the same for each pair of perturbations
    ``words``          the drop by the part of speech of the edited word
    ``brittle``        the most brittle queries, with every perturbation of them
    ``captions``       every caption before and after, with its edits
    ``queries``        every query before and after: rank, hits, score of its relevant item

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
            "version": FORMAT_VERSION,
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
        (folder / ROBUSTNESS_FILE).unlink(missing_ok=True)
        for name, table in self.tables.items():
            with atomic_file(folder / f"{name}.parquet") as partial:
                table.write_parquet(partial)
        write_text(folder / ROBUSTNESS_FILE, json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n")
        return folder

    @staticmethod
    def load(folder: str | Path) -> Robustness:
        """Read a folder that a study wrote."""
        folder = Path(folder)
        header = read_header(folder / ROBUSTNESS_FILE, "robustness")
        tables = {}
        for name in TABLES:
            file = folder / f"{name}.parquet"
            try:
                tables[name] = pl.read_parquet(file)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise InputError(f"unreadable: {error}", file=file, fix="run the same command again") from error
        models, perturbations = tuple(header.pop("models")), tuple(header.pop("perturbations"))
        headline, direction = header.pop("headline"), header.pop("direction")
        about = {key: value for key, value in header.items() if key not in ("format", "version", *TABLES)}
        return Robustness(models, perturbations, headline, direction, tables, about)

    def __repr__(self) -> str:
        return f"Robustness({len(self.models)} models × {len(self.perturbations)} perturbations, {self.headline})"
