"""The folder of a robustness study: a run per model and variant inside, tables and ``robustness.json`` beside them.

``pending.json`` says whose unfinished work stands there. More models and more perturbations may be added to a study;
one that would lose some, or of other settings, takes its place only if asked.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from crosslens.core.atomic import sweep, write_text
from crosslens.core.bundle import read_header
from crosslens.core.errors import ConflictError

RESULT_FILE = "robustness.json"
PENDING_FILE = "pending.json"
PICTURES = ".pictures"
"""No model's folder is called so: their names begin otherwise."""


class Place:
    """``setting`` is the fingerprint of what all runs of the study share."""

    def __init__(self, folder: str | Path, setting: str, *, overwrite: bool = False) -> None:
        self.folder, self.setting, self.overwrite = Path(folder), setting, overwrite
        if self.folder.exists() and not self.folder.is_dir():
            raise ConflictError(f"{self.folder} is a file", fix="choose another output")
        self.there: dict[str, Any] = {}
        if (self.folder / RESULT_FILE).exists():
            self.there = read_header(self.folder / RESULT_FILE, "robustness")
            if self.there.get("setting") != setting and not overwrite:
                raise ConflictError(
                    f"{self.folder}: another robustness study stands there (other data, metrics or options)",
                    fix="choose another output, or pass --overwrite (overwrite=True)",
                )
        elif (self.folder / PENDING_FILE).exists():
            if self._pending() != setting and not overwrite:
                raise ConflictError(
                    f"{self.folder}: another robustness study stands there unfinished (other data, metrics or options)",
                    fix="finish it, choose another output, or pass --overwrite (overwrite=True)",
                )
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            raise ConflictError(
                f"{self.folder}: the folder is not empty, and is no robustness study", fix="choose another output"
            )

    def _pending(self) -> Any:
        """The setting of the unfinished work; None where it cannot be read."""
        try:
            return json.loads((self.folder / PENDING_FILE).read_text(encoding="utf-8"))["setting"]
        except (ValueError, KeyError, TypeError):
            return None

    def refuse_fewer_seeds(self, seeds: int) -> None:
        """Raise where the study that stands there is of more seeds, whose tables would be lost."""
        there = self.there.get("options", {}).get("seeds", 1)
        if seeds < there and not self.overwrite:
            raise ConflictError(
                f"{self.folder}: the study there is of {there} seeds, and this one of {seeds}",
                fix=f"ask for {there} (--seeds), choose another output, or pass --overwrite (overwrite=True)",
            )

    def refuse_loss(self, kind: str, kept: Collection[str], to_come: int = 0) -> None:
        """Raise where the study that stands there has ``models`` or ``perturbations`` that the new one has not.

        With some ``to_come`` whose names are not known yet, only where those cannot be all that is missing.
        """
        lost = [one for one in self.there.get(kind, ()) if one not in kept]
        if len(lost) > to_come and not self.overwrite:
            raise ConflictError(
                f"{self.folder}: the study there also has {', '.join(lost)}, which would be lost from its tables",
                fix="name them too, choose another output, or pass --overwrite (overwrite=True)",
            )

    def begin(self) -> None:
        """Claim the folder for work that is not finished."""
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        if self.there.get("setting", self.setting) != self.setting:  # asked to take the place of another study
            (self.folder / RESULT_FILE).unlink()
            for model in self.there.get("models", ()):
                shutil.rmtree(self.folder / folder_name(model), ignore_errors=True)
        write_text(self.folder / PENDING_FILE, json.dumps({"setting": self.setting}) + "\n")

    def run_folder(self, model: str, label: str) -> Path:
        """Where the run of a model on a variant stands."""
        return self.folder / folder_name(model) / label

    def outcome_file(self, model: str, label: str) -> Path:
        """What stands beside that run."""
        return self.folder / folder_name(model) / f"{label}.parquet"

    def finish(self) -> None:
        """The study is complete: nothing is pending, and changed pictures are not needed any more."""
        shutil.rmtree(self.folder / PICTURES, ignore_errors=True)
        (self.folder / PENDING_FILE).unlink(missing_ok=True)


def folder_name(model: str) -> str:
    """A model's name as a folder can be called."""
    return re.sub(r"[^\w.@+-]+", "-", model).strip("-.") or "model"
