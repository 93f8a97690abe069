"""Pairs to be scored, from a table, and their scores as one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core.atomic import atomic_file
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, reading
from crosslens.core.ids import positions
from crosslens.data.files import existing_file
from crosslens.similarity.similarity import Array


def read_pairs(path: str | Path, dataset: Dataset) -> tuple[Array, Array]:
    """The positions of the images and captions that a CSV or TSV names in its columns ``image`` and ``caption``."""
    file = existing_file(path)
    with reading(file):
        try:
            table = pl.read_csv(file, infer_schema=False, separator="\t" if file.suffix == ".tsv" else ",")
        except pl.exceptions.PolarsError as error:
            raise InputError(
                f"cannot be read: {error}", expected="a CSV with a header", fix="save it as UTF-8"
            ) from error
        for column in ("image", "caption"):
            if column not in table.columns:
                raise InputError(
                    f"no column {column!r} (found: {', '.join(table.columns)})",
                    expected="the columns image and caption",
                    fix="rename the column that holds the ids",
                )
        images = positions(table["image"].fill_null("").to_list(), dataset.image_ids, "image")
        captions = positions(table["caption"].fill_null("").to_list(), dataset.caption_ids, "caption")
    return images, captions


def pairs_table(dataset: Dataset, images: Array, captions: Array, scores: Array) -> pl.DataFrame:
    """The columns image, caption, score."""
    return pl.DataFrame(
        {
            "image": [dataset.image_ids[one] for one in images.tolist()],
            "caption": [dataset.caption_ids[one] for one in captions.tolist()],
            "score": scores,
        }
    )


def write_pairs(table: pl.DataFrame, path: str | Path) -> None:
    """Write the table as CSV, whole or not at all."""
    with atomic_file(path) as partial:
        table.write_csv(partial)
