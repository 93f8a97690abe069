"""Writing datasets in the formats that other tools read."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core import Dataset, UsageError, argument
from crosslens.data.io.files import refuse_existing
from crosslens.data.registries import WRITERS


def write_dataset(
    dataset: Dataset, path: str | Path, to: str = "plain", *, images: str | Path | None = None, overwrite: bool = False
) -> Path:
    """Write a dataset in the format ``to``; gzipped where the name ends in ``.gz``.

    ``coco``            captions JSON, with the columns of images and captions
    ``coco_instances``  instances JSON: the objects, their names as categories
    ``karpathy``        ``dataset_*.json``; the split is the images' column ``split``, or ``test``
    ``visual_genome``   a folder of five JSON files: captions as regions, objects, attributes and relationships
    ``flickr``          token file ``image#0<TAB>caption``, image by image; line breaks inside captions become spaces
    ``plain``           .jsonl, .csv, .tsv or .parquet, one row per caption; ``images`` names a second file with one row
                        per image, and in JSONL its objects and relations
    ``folder``          the folder of Parquet tables that ``Dataset.load`` reads

    A format keeps what it has a field for (:func:`crosslens.data.left_out` says what it drops); but a file that would
    lose an image, or give the images another order, is refused.
    """
    writer = WRITERS[to]
    if images is not None and not writer.details.get("second_file"):
        raise UsageError(f"the format {to!r} has no second file", fix=f"leave out {argument('images')}")
    refuse_existing(path, overwrite)
    if images is None:
        writer.value(dataset, Path(path))
    else:
        writer.value(dataset, Path(path), images=refuse_existing(images, overwrite))
    return Path(path)


def check_image_order(dataset: Dataset, owners: pl.Series, path: str | Path, fix: str) -> None:
    """A file of captions alone gives its images the order in which they appear; that must be the dataset's."""
    if tuple(dict.fromkeys(owners)) == dataset.image_ids:
        return
    lost = len(set(dataset.image_ids) - set(owners))
    problem = f"images without a caption: {lost}" if lost else "the captions do not come in the order of the images"
    raise UsageError(f"{problem}; read back from {path} the images would not be the same", fix=fix)
