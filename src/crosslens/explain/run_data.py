"""The dataset that a run was made from, found by the recipe that the run keeps."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.run import Run
from crosslens.data import load_dataset
from crosslens.data.picture_files import image_files
from crosslens.data.reader_paths import path_options


def dataset_of(run: Run, dataset: Dataset | str | Path | None = None, **options: Any) -> Dataset:
    """The dataset named, or else that of the run's recipe; ``options`` are its reader's."""
    if isinstance(dataset, Dataset):
        return dataset
    if dataset is not None:
        return load_dataset(str(dataset), **options)
    table = _table(run, "dataset")
    source = table.pop("source", None)
    if source is None:
        raise UsageError(
            f"the run {run.name!r} does not say which dataset it is of", fix="name it: dataset=, --dataset"
        )
    base = run.home or Path()
    paths = path_options(source, table, base)
    moved = {key: str((base / value).absolute()) if key in paths else value for key, value in table.items()}
    return load_dataset(str((base / source).absolute()) if "source" in paths else source, **{**moved, **options})


def changed_since(run: Run, dataset: Dataset) -> str | None:
    """A sentence for who explains a run by a dataset that is no longer what the run was made from."""
    known = run.provenance.get("dataset")
    stored = known.get("fingerprint") if isinstance(known, Mapping) else None
    if stored is None or stored == dataset.fingerprint:
        return None
    return f"The dataset {dataset.name} has changed since the run was made: what is told is what it holds now."


def image_folder_of(run: Run) -> Path | None:
    """Where the run's model found the pictures, if its recipe says so."""
    folder = _table(run, "model").get("image_folder")
    return None if folder is None else (run.home or Path()) / folder


def _table(run: Run, name: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(run.recipe)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the recipe of the run {run.name!r} cannot be read: {error}", fix="name --dataset") from error
    table = content.get(name, {})
    return dict(table) if isinstance(table, Mapping) else {}


def picture_files_of(
    run: Run, dataset: Dataset, images: Iterable[str], folder: str | Path | None = None
) -> tuple[dict[str, str], str | None]:
    """The paths of these images' files, and why there are none where there are none.

    Looked for below ``folder``, else where the run's model found them, else beside the dataset.
    """
    wanted = [image for image in dataset.image_ids if image in set(images)]
    part = dataset.select(wanted)
    stated = image_folder_of(run)
    places = [folder] if folder is not None else [*([stated] if stated is not None and stated.is_dir() else []), None]
    problem = None
    for place in places:
        try:
            paths = image_files(part, place, skip_bad=True)
        except InputError as error:
            problem = str(error).splitlines()[0]
        else:
            return dict(zip(wanted, paths, strict=True)), None
    return {}, problem
