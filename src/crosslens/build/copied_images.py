"""Pictures copied into the folder of a benchmark, so that it can be moved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.core import Dataset
from crosslens.data import MEMBER_SEPARATOR, read_image_bytes

IMAGES = "images"
"""The folder of the copied pictures; datasets are folders beside it."""


def absolute_file(file: str) -> str:
    """The full path of a picture, also of one inside an archive."""
    archive, mark, member = file.partition(MEMBER_SEPARATOR)
    return f"{Path(archive).expanduser().resolve()}{mark}{member}"


def copy_pictures(dataset: Dataset, folder: Path) -> dict[str, str]:
    """Copy every picture once; returns each image's path, seen from the folder of a version."""
    folder.mkdir()
    files: dict[str, str] = {}
    used: set[str] = set()
    for image, file in dataset.images.select("image", "file").iter_rows():
        stem = re.sub(r"[^\w.-]+", "_", image)[:100].strip(".") or "image"
        ending = Path(file.partition(MEMBER_SEPARATOR)[2] or file).suffix
        stem = stem.removesuffix(ending) if ending else stem
        name, number = f"{stem}{ending}", 1
        while name.casefold() in used:
            number += 1
            name = f"{stem}-{number}{ending}"
        used.add(name.casefold())
        files[image] = f"../images/{name}"
        (folder / name).write_bytes(read_image_bytes(file))
    return files


def copied_paths(folder: Path) -> list[str]:
    """The files in the folder of pictures, seen from the benchmark's."""
    return [f"{folder.name}/{file.name}" for file in folder.iterdir()] if folder.is_dir() else []


def with_files(dataset: Dataset, files: Mapping[str, str], home: Path) -> Dataset:
    """The dataset, each image's file under its new path."""
    column = pl.Series("file", [files[image] for image in dataset.image_ids], dtype=pl.String)
    return replace(dataset, images=dataset.images.with_columns(column), home=home)
