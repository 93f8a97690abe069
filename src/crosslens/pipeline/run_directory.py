"""The folder of one evaluation: resumes its own work, and never replaces a different run unless told to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from crosslens.core import (
    RUN_FILE,
    RUN_LAYOUT,
    ConflictError,
    CrosslensError,
    InputError,
    Ranking,
    Run,
    Workspace,
    argument,
    read_json_file,
    remove,
    tidy_output,
    workspace,
)


class RunDirectory:
    """A run that is being made in a workspace; or, without one, the run that is ``finished``."""

    def __init__(self, work: Workspace | None = None, finished: Run | None = None) -> None:
        self._work, self.finished = work, finished

    @property
    def checkpoint(self) -> Path | None:
        """The folder in which a long ranking stores its state."""
        return None if self._work is None else self._work.beside("checkpoint")

    @property
    def scratch(self) -> Path | None:
        """The folder for matrices that are too large for memory."""
        return None if self._work is None else self._work.beside("matrices")

    def rankings(self, directions: Iterable[str]) -> dict[str, Ranking]:
        """What an interrupted run of the same key has stored; nothing unless every direction is there."""
        stored = {direction: self._ranking(direction) for direction in directions}
        rankings = {direction: ranking for direction, ranking in stored.items() if ranking is not None}
        return rankings if len(rankings) == len(stored) else {}

    def _ranking(self, direction: str) -> Ranking | None:
        if self._work is None:
            return None
        folder = self._work.new / f"ranking-{direction}"
        try:
            return Ranking.load(folder) if folder.exists() else None
        except CrosslensError:  # damaged
            remove(folder)
            return None

    def store(self, rankings: dict[str, Ranking]) -> None:
        """Write rankings, so that an interrupted run resumes after them."""
        if self._work is not None:
            for direction, ranking in rankings.items():
                ranking.save(self._work.new / f"ranking-{direction}", overwrite=True)

    def finish(self, run: Run) -> None:
        """Write the run, and put it in place."""
        if self._work is not None:
            run.write_into(self._work.new)
            self._work.publish(RUN_LAYOUT)


@contextmanager
def run_directory(output: str | Path | None, key: str, *, overwrite: bool = False) -> Iterator[RunDirectory]:
    """The folder of the run of ``key``, the fingerprint of everything the result depends on: same key, same work.

    Unfinished work of another key is deleted. A finished run of another key is replaced only with ``overwrite``, and
    only when the new one is complete.
    """
    finished = None if output is None else _finished(Path(output), key, overwrite)
    if output is None or finished is not None:
        yield RunDirectory(finished=finished)
        return
    with workspace(output, key) as work:
        finished = _finished(Path(output), key, overwrite)  # another process may have completed it meanwhile
        if finished is None:
            work.new.mkdir(exist_ok=True)
        yield RunDirectory(work, finished)


def _finished(folder: Path, key: str, overwrite: bool) -> Run | None:
    """The run of this key in the folder; raises where it has something else that must not be replaced."""
    if not RUN_LAYOUT.holds(folder):
        return None
    if _stored_key(folder) == key:
        stored = _stored_run(folder, overwrite)
        if stored is not None:
            tidy_output(folder, key)
            return stored
    if not overwrite:
        raise ConflictError(
            f"{folder}: already contains a different run",
            fix=f"choose another output folder, or pass {argument('overwrite', True)}",
        )
    RUN_LAYOUT.refuse_foreign_files(folder)
    return None


def _stored_run(folder: Path, overwrite: bool) -> Run | None:
    """The run in the folder; None for a damaged one that is to be replaced."""
    try:
        return Run.load(folder)
    except InputError as error:
        if overwrite:
            return None
        error.fix = f"{error.fix}; {argument('overwrite', True)} repeats the evaluation"
        raise


def _stored_key(folder: Path) -> str | None:
    """The key of the run in the folder; None if it cannot be read."""
    try:
        return str(read_json_file(folder / RUN_FILE)["provenance"]["key"])
    except (InputError, KeyError, TypeError):
        return None


@contextmanager
def scratch_folder(path: Path | None) -> Iterator[Path]:
    """A folder for what is too large for memory: ``path``, so that interrupted work resumes, or a temporary one."""
    if path is not None:
        yield path
        return
    with TemporaryDirectory(prefix="crosslens-") as folder:
        yield Path(folder)
