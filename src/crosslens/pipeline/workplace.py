"""The folder an evaluation works in: resumes its own work, never replaces another's unasked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from crosslens.core.atomic import refuse_strangers, replace_folder, sweep, write_text
from crosslens.core.errors import ConflictError, CrosslensError
from crosslens.core.ranking import Ranking
from crosslens.core.run import QUERIES_FILE, RECIPE_FILE, RUN_FILE, Run

PENDING_FILE = "pending.json"
"""Says whose unfinished work stands in a folder; gone when ``run.json`` is there."""
OWN_FILES = (RUN_FILE, QUERIES_FILE, RECIPE_FILE, PENDING_FILE, "ranking-*", "checkpoint*")
"""All that an evaluation writes into its folder."""


class Workplace:
    """``key`` is the fingerprint of everything the result depends on: same key, same work.

    Unfinished work of another key is nobody's result and makes way. A finished run of another key is replaced only if
    asked, and only when the new one is complete: until then the work goes on in a folder beside it.
    """

    def __init__(self, folder: str | Path, key: str, *, overwrite: bool = False) -> None:
        self.target = self.folder = Path(folder)
        self.key = key
        self.finished: Run | None = None
        if self._stands_complete():
            if self._owner() == key:
                (self.folder / PENDING_FILE).unlink(missing_ok=True)
                self.finished = Run.load(self.folder)
                return
            if not overwrite:
                raise ConflictError(
                    f"{self.target}: another run stands there",
                    fix="choose another output, or pass --overwrite (overwrite=True)",
                )
            refuse_strangers(self.target, OWN_FILES)
            self.folder = self.target.with_name(f".{self.target.name}.new")
        self._claim()

    @property
    def checkpoint(self) -> Path:
        """Where a long ranking keeps what it has."""
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

    def finish(self, run: Run) -> None:
        """Write the run; from here on the folder is complete."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        run.save(self.folder)
        (self.folder / PENDING_FILE).unlink(missing_ok=True)
        if self.folder != self.target:
            replace_folder(self.folder, self.target)

    def _stands_complete(self) -> bool:
        if self.target.exists() and not self.target.is_dir():
            raise ConflictError(f"{self.target} is a file", fix="choose another output")
        return (self.target / RUN_FILE).exists()

    def _claim(self) -> None:
        """Make the folder ours: empty, new, or with unfinished work, which goes on if it is the same."""
        if self.folder.is_dir():
            sweep(self.folder)
            if any(self.folder.iterdir()):
                owner = self._owner()
                if owner is None:
                    raise ConflictError(
                        f"{self.folder}: the folder is not empty, and is not a run", fix="choose another output"
                    )
                if owner != self.key:
                    shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / PENDING_FILE, json.dumps({"key": self.key}) + "\n")

    def _owner(self) -> str | None:
        """The key of the work that stands in the folder; None if nothing of ours does, '' if it cannot be told."""
        for name in (RUN_FILE, PENDING_FILE):
            if (self.folder / name).exists():
                try:
                    content = json.loads((self.folder / name).read_text(encoding="utf-8"))
                    return str((content["provenance"] if name == RUN_FILE else content)["key"])
                except (ValueError, KeyError, TypeError):
                    return ""
        return None
