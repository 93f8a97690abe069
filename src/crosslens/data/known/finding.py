"""Where a dataset that has a name lies: below a folder of datasets, or an error that says what to get."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import HEADER_FILE, InputError, UnknownNameError, UsageError, argument
from crosslens.data.known.catalogue import KNOWN
from crosslens.data.known.entry import FileForm, KnownDataset

DATA_VARIABLE = "CROSSLENS_DATA"
DATA_FOLDER = "data_folder"


@dataclass(frozen=True)
class KnownFiles:
    """A dataset that was found: its reader (none: ``path`` is loaded as it is) with its options, and its pictures."""

    known: KnownDataset
    root: Path
    """The folder of datasets that it is in."""
    reader: str
    options: Mapping[str, Any]
    path: Path
    """The folder or file that was recognised."""
    pictures: Path | None = None


def is_known(source: str, base: Path = Path()) -> bool:
    """Whether a source is the name of a known dataset; a saved dataset of that name in ``base`` is meant before."""
    return source in KNOWN and not (base / source / HEADER_FILE).exists()


def data_roots(folder: str | Path | None = None) -> list[Path]:
    """Where datasets are looked for: the folder given, or that of the environment and the current one."""
    if folder is not None:
        return [Path(folder).expanduser()]
    variable = os.environ.get(DATA_VARIABLE)
    return [*([Path(variable).expanduser()] if variable else []), Path()]


def look_for_known(name: str, folder: str | Path | None = None) -> KnownFiles | None:
    """The files of a known dataset; None where they are not there."""
    known = known_dataset(name)
    for root in data_roots(folder):
        for form in known.forms:
            for below in form.folders:
                if (files := _files(known, form, root, root / below)) is not None:
                    return files
    return None


def find_known(name: str, folder: str | Path | None = None) -> KnownFiles:
    """The same; where they are not there, the error says what to download from where, to which path."""
    files = look_for_known(name, folder)
    if files is None:
        raise _missing(known_dataset(name), data_roots(folder), is_given=folder is not None)
    return files


def known_dataset(name: str) -> KnownDataset:
    """What is known under a name."""
    if name not in KNOWN:
        raise UnknownNameError("dataset", name, KNOWN)
    return KNOWN[name]


def require_captions(known: KnownDataset) -> None:
    """Raise for a known dataset that is not for retrieval."""
    if known.purpose != "retrieval":
        raise UsageError(
            f"{known.name} is a set of hard negatives, not a dataset for retrieval",
            fix=f"see crosslens hard-negatives {known.name}",
        )


def _files(known: KnownDataset, form: FileForm, root: Path, home: Path) -> KnownFiles | None:
    paths: dict[str, Path] = {}
    for option, name in form.files.items():
        path = next((path for path in (home / name, home / f"{name}.gz") if path.is_file()), None)
        if path is not None:
            paths[option] = path
        elif option not in form.optional:
            return None
    recognised = {option: path.parent if form.is_folder else path for option, path in paths.items()}
    options = {**form.options, **{option: str(path) for option, path in recognised.items() if option}}
    pictures = next((home / folder for folder, probe in form.pictures if (home / probe).is_dir()), None)
    return KnownFiles(known, root, form.reader, options, next(iter(recognised.values())), pictures)


def where_to_get(known: KnownDataset, root: Path) -> list[str]:
    """What to download from where, to which path, as lines; the last one is the licence."""
    lines = []
    for part in known.downloads:
        targets = " and ".join(str(root / path) for path in part.to)
        lines.append(f"{part.what}: {part.source}" + (f" → {targets}" if targets else ""))
    return [*lines, f"licence: {known.licence}"]


def _missing(known: KnownDataset, roots: Sequence[Path], *, is_given: bool) -> InputError:
    searched = " or ".join("the current folder" if root == Path() else str(root) for root in roots)
    first = known.forms[0]
    expected = " and ".join(
        str(Path(first.folders[0]) / name) for option, name in first.files.items() if option not in first.optional
    )
    elsewhere = f"or, if it is elsewhere, pass {argument(DATA_FOLDER)} or set {DATA_VARIABLE}"
    return InputError(
        f"the dataset {known.name} ({known.title}) is not in {searched}",
        expected=f"{expected} there",
        fix="\n    ".join(["get it,", *where_to_get(known, roots[0]), *([] if is_given else [elsewhere])]),
        code="missing-dataset",
        subject=known.name,
    )
