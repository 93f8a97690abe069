"""The folder an evaluation works in: resumes its own work, never replaces another's unasked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from crosslens.core.atomic import sweep, write_text
from crosslens.core.errors import ConflictError, CrosslensError
from crosslens.core.ranking import Ranking
from crosslens.core.run import RUN_FILE, Run

PENDING_FILE = "pending.json"
"""Says whose unfinished work stands in a folder; gone when ``run.json`` is there."""


class Workplace:
    """``key`` is the fingerprint of everything the result depends on: same key, same work."""

    def __init__(self, folder: str | Path, key: str, *, overwrite: bool = False) -> None:
        self.folder, self.key = Path(folder), key
        self.finished = self._claim(overwrite)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def ranking(self, direction: str) -> Ranking | None:
        """A ranking that an interrupted run of the same work left here."""
        stored = self.folder / f"ranking-{direction}"
        try:
            return Ranking.load(stored) if stored.exists() else None
        except CrosslensError:
            shutil.rmtree(stored, ignore_errors=True)
            return None

    def keep(self, rankings: dict[str, Ranking]) -> None:
        """Store what ranking found, so that it need not be found again."""
        for direction, ranking in rankings.items():
            ranking.save(self.folder / f"ranking-{direction}", overwrite=True)
        shutil.rmtree(self.checkpoint, ignore_errors=True)

    def finish(self, run: Run) -> None:
        """Write the run; from here on the folder is complete."""
        run.save(self.folder)
        (self.folder / PENDING_FILE).unlink(missing_ok=True)

    def _claim(self, overwrite: bool) -> Run | None:
        """The finished run if this very work is done already; otherwise make the folder ours."""
        if self.folder.is_dir() and any(self.folder.iterdir()):
            owner = self._owner()
            if owner == self.key:
                if (self.folder / RUN_FILE).exists():
                    (self.folder / PENDING_FILE).unlink(missing_ok=True)
                    return Run.load(self.folder)
            elif owner is None or not overwrite:
                held = "another run stands there" if owner is not None else "the folder is not empty, and is not a run"
                fix = (
                    "choose another output, or pass --overwrite (overwrite=True)" if owner else "choose another output"
                )
                raise ConflictError(f"{self.folder}: {held}", fix=fix)
            else:
                shutil.rmtree(self.folder)
        elif self.folder.exists() and not self.folder.is_dir():
            raise ConflictError(f"{self.folder} is a file", fix="choose another output")
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        write_text(self.folder / PENDING_FILE, json.dumps({"key": self.key}) + "\n")
        return None

    def _owner(self) -> str | None:
        """The key of the work that stands in the folder; None if nothing of ours does, '' if it cannot be told."""
        readers: tuple[tuple[str, Callable[[dict[str, object]], object]], ...] = (
            (RUN_FILE, lambda content: content["provenance"]["key"]),  # type: ignore[index]
            (PENDING_FILE, lambda content: content["key"]),
        )
        found = False
        for name, key in readers:
            if (self.folder / name).exists():
                found = True
                try:
                    return str(key(json.loads((self.folder / name).read_text(encoding="utf-8"))))
                except (ValueError, KeyError, TypeError):
                    continue
        leftovers_only = all(part.name.startswith(".partial-") for part in self.folder.iterdir())
        return "" if found else self.key if leftovers_only else None
