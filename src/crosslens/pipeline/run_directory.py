"""The folder of one evaluation: resumes its own work, and never replaces a different run unless told to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from crosslens.core import (
    QUERIES_FILE,
    RECIPE_FILE,
    RUN_FILE,
    ConflictError,
    CrosslensError,
    Ranking,
    Run,
    argument,
    refuse_foreign_files,
    remove_partial_files,
    replace_folder,
    write_text,
)

PENDING_FILE = "pending.json"
"""Holds the key of unfinished work in a folder; removed once ``run.json`` is there."""
OWN_FILES = (RUN_FILE, QUERIES_FILE, RECIPE_FILE, PENDING_FILE, "ranking-*", "checkpoint*")
"""All that an evaluation writes into its folder."""


class RunDirectory:
    """``key`` is the fingerprint of everything the result depends on: same key, same work.

    Unfinished work of another key is deleted. A finished run of another key is replaced only with ``overwrite``, and
    only when the new one is complete: until then the new one is written to a folder beside it.
    """

    def __init__(self, folder: str | Path, key: str, *, overwrite: bool = False) -> None:
        self.target = self.folder = Path(folder)
        self.key = key
        self.finished: Run | None = None
        if self.target.exists() and not self.target.is_dir():
            raise ConflictError(f"{self.target} is a file", fix="choose another output folder")
        if (self.target / RUN_FILE).exists():
            if self._stored_key() == key:
                (self.folder / PENDING_FILE).unlink(missing_ok=True)
                self.finished = Run.load(self.folder)
                return
            if not overwrite:
                raise ConflictError(
                    f"{self.target}: already contains a different run",
                    fix=f"choose another output folder, or pass {argument('overwrite', True)}",
                )
            refuse_foreign_files(self.target, OWN_FILES)
            self.folder = self.target.with_name(f".{self.target.name}.new")
        self._claim()

    @property
    def checkpoint(self) -> Path:
        """The folder in which a long ranking stores its state."""
        return self.folder / "checkpoint"

    def rankings(self, directions: Iterable[str]) -> dict[str, Ranking]:
        """What an interrupted run of the same key has stored; nothing unless every direction is there."""
        stored = {direction: self._ranking(direction) for direction in directions}
        rankings = {direction: ranking for direction, ranking in stored.items() if ranking is not None}
        return rankings if len(rankings) == len(stored) else {}

    def _ranking(self, direction: str) -> Ranking | None:
        folder = self.folder / f"ranking-{direction}"
        try:
            return Ranking.load(folder) if folder.exists() else None
        except CrosslensError:  # damaged
            shutil.rmtree(folder, ignore_errors=True)
            return None

    def store(self, rankings: dict[str, Ranking]) -> None:
        """Write rankings, so that an interrupted run resumes after them."""
        for direction, ranking in rankings.items():
            ranking.save(self.folder / f"ranking-{direction}", overwrite=True)

    def finish(self, run: Run) -> None:
        """Write the run; from here on the folder is complete."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        run.save(self.folder)
        (self.folder / PENDING_FILE).unlink(missing_ok=True)
        if self.folder != self.target:
            replace_folder(self.folder, self.target)

    def _claim(self) -> None:
        """Mark the folder as pending; unfinished work in it is kept if it has the same key."""
        if self.folder.is_dir():
            remove_partial_files(self.folder)
            if any(self.folder.iterdir()):
                stored_key = self._stored_key()
                if stored_key is None:
                    raise ConflictError(
                        f"{self.folder}: the folder is not empty, and is not a run", fix="choose another output folder"
                    )
                if stored_key != self.key:
                    shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / PENDING_FILE, json.dumps({"key": self.key}) + "\n")

    def _stored_key(self) -> str | None:
        """The key of the work in the folder; None if there is none, '' if it is unreadable."""
        for name in (RUN_FILE, PENDING_FILE):
            if (self.folder / name).exists():
                try:
                    content = json.loads((self.folder / name).read_text(encoding="utf-8"))
                    return str((content["provenance"] if name == RUN_FILE else content)["key"])
                except (ValueError, KeyError, TypeError):
                    return ""
        return None


@contextmanager
def scratch_folder(path: Path | None) -> Iterator[Path]:
    """A folder for what is too large for memory: ``path``, so that interrupted work resumes, or a temporary one."""
    if path is not None:
        yield path
        return
    with TemporaryDirectory(prefix="crosslens-") as folder:
        yield Path(folder)
