"""The folder of a robustness study: a run per model and variant inside, tables and ``robustness.json`` beside them.

A study can be extended by models and perturbations: the extended one is prepared beside it, sharing the files of the
runs, and takes its place when it is complete. One that would lose some models or perturbations, or that has other
settings, replaces it only with ``overwrite``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.core import (
    RUN_LAYOUT,
    ConflictError,
    InputError,
    Layout,
    Manifest,
    Workspace,
    argument,
    link_tree,
    read_manifest,
    require_entries,
    workspace,
)

if TYPE_CHECKING:
    from crosslens.pipeline.robustness_study.study import Robustness

ROBUSTNESS_FILE = "robustness.json"
_OVERWRITE = f"choose another output folder, or pass {argument('overwrite', True)}"


TABLES = ("drops", "spread", "changes", "overlap", "overlap_pairs", "words", "brittle", "captions", "queries",
          "headline_queries")  # fmt: skip
STUDY_LAYOUT = Layout(
    "a robustness study",
    ROBUSTNESS_FILE,
    (*(f"{name}.parquet" for name in TABLES), "*/*.parquet", *RUN_LAYOUT.within("*/*")),
)


def read_study_header(file: Path) -> tuple[dict[str, Any], Manifest]:
    """What ``robustness.json`` says, and the files that it lists."""
    header, manifest = read_manifest(file, "robustness")
    types = {"models": list, "perturbations": list, "headline": str, "direction": str, "options": dict}
    require_entries(header, types, file)
    for name in ("models", "perturbations", "headline", "direction"):
        if name not in header or not all(isinstance(text, str) for text in header[name]):
            problem = f"{name!r} is {header.get(name)!r:.60}"
            raise InputError(problem, file=file, expected="names", fix="run the same command again")
    return header, manifest


class StudyDirectory:
    """The study in a folder, and the new one that replaces it; ``setting`` is the fingerprint of what its runs share.

    ``folder`` is where the new one is prepared, ``pictures`` where perturbed pictures are kept until it is complete.
    """

    def __init__(self, work: Workspace, target: Path, setting: str, *, overwrite: bool = False) -> None:
        self._work, self.folder, self.pictures = work, work.new, work.beside("pictures")
        self.target, self.setting, self.overwrite = target, setting, overwrite
        self.changed = False
        """Whether the new study differs from the stored one."""
        self.stored: dict[str, Any] = {}
        if STUDY_LAYOUT.holds(target):
            self.stored = self._header()
            self._require(
                self.stored.get("setting") == setting,
                "already contains a different robustness study (other data, metrics or options)",
            )
            STUDY_LAYOUT.refuse_foreign_files(target)

    def _header(self) -> dict[str, Any]:
        """The header of the stored study; a damaged one counts as none where it is to be replaced."""
        try:
            return read_study_header(self.target / ROBUSTNESS_FILE)[0]
        except InputError:
            if self.overwrite:
                return {}
            raise

    def _require(self, condition: bool, problem: str, fix: str = _OVERWRITE) -> None:
        if not (condition or self.overwrite):
            raise ConflictError(f"{self.target}: {problem}", fix=fix)

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
        """Make the new folder, with the runs of the stored study if they are of the same setting."""
        if self.folder.is_dir():  # interrupted work of the same setting
            return
        if self.stored.get("setting") == self.setting:
            link_tree(self.target, self.folder)
        else:
            self.folder.mkdir()

    def run_folder(self, model: str, label: str) -> Path:
        """The folder of the run of a model on a variant."""
        return self.folder / folder_name(model) / label

    def finish(self, result: Robustness) -> None:
        """Put the study in place, if anything about it is new."""
        if self.changed:
            result.write_into(self.folder)
            self._work.publish(STUDY_LAYOUT)
        else:
            self._work.discard()


@contextmanager
def study_directory(
    output: str | Path | None, setting: str, *, overwrite: bool = False
) -> Iterator[StudyDirectory | None]:
    """Lock and prepare the folder of a study; interrupted work of the same setting is continued."""
    if output is None:
        yield None
        return
    STUDY_LAYOUT.holds(Path(output))  # refused before anything is made beside it
    with workspace(output, setting) as work:
        yield StudyDirectory(work, Path(output), setting, overwrite=overwrite)


def folder_name(model: str) -> str:
    """A model's name as a folder name; that of a perturbation may have brackets."""
    return re.sub(r"[^\w.@+\[\]-]+", "-", model).strip("-.") or "model"
