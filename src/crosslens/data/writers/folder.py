"""crosslens' own format: a folder of Parquet tables."""

from __future__ import annotations

from pathlib import Path

from crosslens.core import Dataset
from crosslens.data.registries import WRITERS


@WRITERS.register("folder")
def write_folder(dataset: Dataset, path: Path) -> None:
    """The folder of Parquet tables that ``Dataset.load`` reads; keeps everything."""
    dataset.save(path, overwrite=True)
