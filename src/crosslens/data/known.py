"""Datasets under the names people know them by: which files they are, where those lie, and where they come from.

They are listed in ``known.toml``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from crosslens.core import InputError, UnknownNameError, UsageError, argument
from crosslens.storage import HEADER_FILE


@dataclass(frozen=True)
class FileForm:
    """One form in which a dataset is found on disks: a folder, the files in it, and the reader that takes them.

    ``files`` maps options of the reader to paths below one of ``folders``; those in ``optional`` may be missing. Every
    text file may be compressed (.gz). With ``is_folder`` the folder is meant, and the file tells that it is the right
    one. Without a ``reader`` what is under ``""`` is loaded as it is. ``pictures`` are folders that the dataset's file
    names start from, each with a path that exists if the pictures are there.
    """

    folders: Sequence[str]
    files: Mapping[str, str]
    reader: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    optional: Sequence[str] = ()
    is_folder: bool = False
    pictures: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Download:
    """A part of a dataset: where it comes from, as a text, and where its files go below the folder of datasets."""

    what: str
    source: str
    to: Sequence[str] = ()


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that has a name.

    ``relevance`` and ``folds`` are what an evaluation under this name implies. ``images`` is how many images the whole
    dataset has; 0 where that is not fixed. ``called`` is the name of the dataset itself where this one is a way to
    evaluate it.
    """

    name: str
    title: str
    forms: Sequence[FileForm]
    downloads: Sequence[Download]
    licence: str
    purpose: Literal["retrieval", "hard negatives"] = "retrieval"
    images: int = 0
    relevance: str | None = None
    folds: int = 1
    called: str = ""


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _entry(name: str, forms: list[str], downloads: list[str], licences: list[str], **facts: Any) -> KnownDataset:
    return KnownDataset(
        name,
        forms=[FileForm(**_TABLES["forms"][form]) for form in forms],
        downloads=[Download(**_TABLES["downloads"][part]) for part in downloads],
        licence="; ".join(_TABLES["licences"][licence] for licence in licences),
        **facts,
    )


KNOWN = {name: _entry(name, **entry) for name, entry in _TABLES["datasets"].items()}
"""Name → what is known of the dataset, in the order in which people read them."""


DATA_VARIABLE = "CROSSLENS_DATA"
DATA_FOLDER = "data_folder"


@dataclass(frozen=True)
class KnownFiles:
    """A dataset that was found: its reader (none: ``path`` is loaded as it is) with its options, and its pictures."""

    entry: KnownDataset
    root: Path
    """The folder of datasets that it is in."""
    reader: str
    options: Mapping[str, Any]
    path: Path
    """The folder or file that was recognised."""
    pictures: Path | None = None


def is_known(source: str, base: Path = Path()) -> bool:
    """Whether a source is the name of a known dataset; a saved dataset of that name in ``base`` is meant before."""
    return _name_of(source) in KNOWN and not (base / source / HEADER_FILE).exists()


def _name_of(source: str) -> str:
    """The known name that a source is in another case, if any."""
    return source if source in KNOWN else next((name for name in KNOWN if name.lower() == source.lower()), source)


def data_roots(folder: str | Path | None = None) -> list[Path]:
    """Where datasets are looked for: the folder given, or that of the environment and the current one."""
    if folder is not None:
        return [Path(folder).expanduser()]
    variable = os.environ.get(DATA_VARIABLE)
    return [*([Path(variable).expanduser()] if variable else []), Path()]


def look_for_known(name: str, folder: str | Path | None = None) -> KnownFiles | None:
    """The files of a known dataset; None where they are not there."""
    entry = known_dataset(name)
    for root, form in ((root, form) for root in data_roots(folder) for form in entry.forms):
        for home in (root / below for below in form.folders):
            paths: dict[str, Path] = {}
            for option, file in form.files.items():
                path = next((path for path in (home / file, home / f"{file}.gz") if path.is_file()), None)
                if path is not None:
                    paths[option] = path.parent if form.is_folder else path
            if all(option in paths for option in form.files if option not in form.optional):
                options = {**form.options, **{option: str(path) for option, path in paths.items() if option}}
                pictures = next((home / folder for folder, probe in form.pictures if (home / probe).is_dir()), None)
                return KnownFiles(entry, root, form.reader, options, next(iter(paths.values())), pictures)
    return None


def find_known(name: str, folder: str | Path | None = None) -> KnownFiles:
    """Where :func:`look_for_known` finds nothing, the error says what to download from where, to which path."""
    files = look_for_known(name, folder)
    if files is not None:
        return files
    entry, roots = known_dataset(name), data_roots(folder)
    searched = " or ".join("the current folder" if root == Path() else str(root) for root in roots)
    first = entry.forms[0]
    needed = (file for option, file in first.files.items() if option not in first.optional)
    expected = " and ".join(str(Path(first.folders[0]) / file) for file in needed)
    elsewhere = f"or, if it is elsewhere, pass {argument(DATA_FOLDER)} or set {DATA_VARIABLE}"
    other = look_for_known(entry.called, folder) if entry.called else None
    without_ids = f": {other.path} is there, and has no ids of captions, by which its judgements go" if other else ""
    raise InputError(
        f"the dataset {entry.name} ({entry.title}) is not in {searched}{without_ids}",
        expected=f"{expected} there",
        fix="\n    ".join(["get it,", *where_to_get(entry, roots[0]), *([elsewhere] if folder is None else [])]),
        code="missing-dataset",
        subject=entry.name,
    )


def known_dataset(name: str) -> KnownDataset:
    """What is known under a name."""
    if (canonical := _name_of(name)) not in KNOWN:
        raise UnknownNameError("dataset", name, KNOWN)
    return KNOWN[canonical]


def require_captions(entry: KnownDataset) -> None:
    """Raise for a known dataset that is not for retrieval."""
    if entry.purpose != "retrieval":
        raise UsageError(
            f"{entry.name} is a set of hard negatives, not a dataset for retrieval",
            fix=f"see crosslens hard-negatives {entry.name}",
        )


def where_to_get(entry: KnownDataset, root: Path) -> list[str]:
    """What to download from where, to which path, as lines; the last one is the licence."""
    lines = []
    for part in entry.downloads:
        targets = " and ".join(str(root / path) for path in part.to)
        lines.append(f"{part.what}: {part.source}" + (f" → {targets}" if targets else ""))
    return [*lines, f"licence: {entry.licence}"]
