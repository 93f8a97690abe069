"""Run folders below a folder: where they are, what their headers say, and names for them in addresses."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslens.core import (
    QUERIES_FILE,
    RECIPE_FILE,
    RUN_FILE,
    CrosslensError,
    Run,
    read_manifest,
    read_text_file,
    read_whole,
)
from crosslens.pipeline import ROBUSTNESS_FILE, dataset_label

_DEEPEST = 6
_MOST_FOLDERS = 20_000
"""Folders looked into: a served home directory must not keep the server busy for minutes."""
_PLAIN = re.compile(r"[A-Za-z0-9._~-]+")
_LONGEST_SLUG = 80


@dataclass(frozen=True)
class RunSummary:
    """What a run's header says; of a folder that cannot be read, ``problem`` says why.

    ``signature`` changes when the files do. ``dataset`` is the id of its dataset in addresses, empty where the run does
    not say its content: ``dataset_name`` is then what leaderboards call it.
    """

    id: str
    folder: Path
    location: str
    name: str
    signature: tuple[int, ...]
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    dataset: str = ""
    dataset_name: str = ""
    problem: str | None = None


def address_name(text: str) -> str:
    """A text as a part of an address: as it is where it is plain, else with a hash that keeps different texts apart."""
    plain = text.replace("/", "~")
    if _PLAIN.fullmatch(plain) and len(plain) <= _LONGEST_SLUG and not set(plain) <= {"."} and "~" not in text:
        return plain
    slug = re.sub(r"[^A-Za-z0-9._~-]+", "_", plain).strip("._")[:_LONGEST_SLUG]
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def dataset_id(name: str, fingerprint: str) -> str:
    """A dataset in addresses: its name, and as much of its fingerprint as tells it from others."""
    return f"{address_name(name)}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:8]}"


def folders_below(root: Path) -> Iterator[Path]:
    """The folder itself and those below it, sorted; links and hidden folders are not followed."""
    waiting, seen = [(root, 0)], 0
    while waiting and seen < _MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        seen += 1
        yield folder
        if depth < _DEEPEST:
            waiting += [(child, depth + 1) for child in _child_folders(folder)]


def _child_folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # removed meanwhile, or not ours to read
        return []
    return [folder / name for name in sorted(names) if not name.startswith((".", "ranking-"))]


@dataclass(frozen=True)
class StoredFolders:
    """What is below a folder: runs, and robustness studies."""

    runs: tuple[Path, ...]
    studies: tuple[Path, ...]


def stored_folders(root: Path) -> StoredFolders:
    """The runs and studies below ``root``, which may be one itself. The runs inside a study are parts of it."""
    runs, studies = [], []
    for folder in folders_below(root):
        if (folder / ROBUSTNESS_FILE).is_file():
            studies.append(folder)
        elif (folder / RUN_FILE).is_file() and not any(
            folder.is_relative_to(study) for study in studies if study != root
        ):
            runs.append(folder)
    return StoredFolders(tuple(runs), tuple(studies))


def file_signature(*files: Path) -> tuple[int, ...]:
    """Times and sizes of files: equal where nothing was written."""
    numbers: list[int] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            numbers += [0, 0]
        else:
            numbers += [status.st_mtime_ns, status.st_size]
    return tuple(numbers)


def run_signature(folder: Path) -> tuple[int, ...]:
    """Changes when a run is replaced."""
    return file_signature(folder / RUN_FILE, folder / QUERIES_FILE, folder / RECIPE_FILE)


def read_summary(root: Path, folder: Path, signature: tuple[int, ...]) -> RunSummary:
    """The header of a run, its checksums compared with its files; whatever is wrong becomes its ``problem``."""
    location = "." if folder == root else folder.relative_to(root).as_posix()
    identity = address_name(root.resolve().name if folder == root else location)

    def read() -> dict[str, Any]:
        content, manifest = read_manifest(folder / RUN_FILE, "run")
        # Recipes may be removed, as before sharing a run.
        manifest.check_folder((QUERIES_FILE, *([RECIPE_FILE] if (folder / RECIPE_FILE).exists() else [])))
        return content

    try:
        content = read_whole(folder, folder / RUN_FILE, read=read)
        return _summary(identity, folder, location, signature, content)
    except (CrosslensError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem = error.problem if isinstance(error, CrosslensError) else f"unreadable: {error}"
        return RunSummary(identity, folder, location, folder.name, signature, problem=problem.splitlines()[0])


def _summary(
    identity: str, folder: Path, location: str, signature: tuple[int, ...], content: Mapping[str, Any]
) -> RunSummary:
    metrics, provenance = content["metrics"], content.get("provenance", {})
    figures = {str(name): dict(values) for name, values in metrics.items()}
    for name, values in figures.items():
        for part in ("mean", "low", "high"):
            if values.get(part) is not None and not isinstance(values[part], int | float):
                raise ValueError(f"{name} has the {part} {values[part]!r:.40}")
    known = provenance.get("dataset") or {}
    name, fingerprint = str(known.get("name", "")), str(known.get("fingerprint", ""))
    return RunSummary(
        identity, folder, location, str(content.get("name", folder.name)), signature, figures, dict(provenance),
        dataset_id(name, fingerprint) if fingerprint else "", name if fingerprint else dataset_label(provenance),
    )  # fmt: skip


def recipe_alone(summary: RunSummary) -> Run:
    """A run with nothing but its recipe: enough to find its dataset and pictures, and read at once."""
    file = summary.folder / RECIPE_FILE
    if not file.is_file():
        return Run(summary.name, {}, home=summary.folder)

    def read() -> str:
        read_manifest(summary.folder / RUN_FILE, "run")[1].check_folder((RECIPE_FILE,))
        return read_text_file(file)

    recipe = read_whole(summary.folder, summary.folder / RUN_FILE, read=read)
    return Run(summary.name, {}, recipe=recipe, home=summary.folder)
