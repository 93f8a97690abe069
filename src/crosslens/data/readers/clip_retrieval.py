"""The metadata of a folder that clip-retrieval wrote: a row per image with its caption."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core import Dataset, InputError, reading
from crosslens.data.io.checks import check_ids, check_texts, check_unique, number_within
from crosslens.data.io.records import TEXT_COLUMNS, text_columns
from crosslens.data.io.shards import METADATA, METADATA_IMAGES, metadata_columns, numbered_files
from crosslens.data.io.tables import require_column, typed
from crosslens.data.loading import READERS


@READERS.register("clip_retrieval", folders=(METADATA,))
def read_clip_retrieval(folder: str | Path, image_column: str | None = None, text_column: str | None = None) -> Dataset:
    """A folder that clip-retrieval wrote, ``metadata/metadata_0.parquet`` and so on: the images and their captions.

    folder: the folder that holds ``metadata``, or that one
    image_column: the column that names the image; by default ``image_path`` (or ``image``, ``image_id``, ``key``, …)
    text_column: the column that holds the caption; by default ``caption`` (or ``text``)

    The vectors are in the same folder: ``--image-embeddings FOLDER --caption-embeddings FOLDER``. Captions are called
    ``<image>#<n>``, unless a column ``caption_id`` names them. Further columns are kept.
    """
    metadata = Path(folder) / METADATA
    metadata = metadata if metadata.is_dir() else Path(folder)
    if not metadata.is_dir():
        raise InputError("no such folder", file=folder, expected="a folder with metadata", fix="check the path")
    frame, row_name = metadata_columns(list(numbered_files(metadata, (".parquet",)).values()))
    with reading(metadata):
        image_at = require_column(frame, "image", METADATA_IMAGES, image_column, "image_column")
        text_at = require_column(frame, "caption", ("caption", *TEXT_COLUMNS), text_column, "text_column")
        owners = check_ids(frame[image_at].to_list(), "image id", row_name)
        texts = check_texts(frame[text_at].to_list(), row_name)
        if "caption_id" in frame.columns:
            ids = check_ids(frame["caption_id"].to_list(), "caption id", row_name)
            check_unique(ids, "caption", row_name)
        else:
            ids = number_within(owners)
    used = (image_at, text_at, "caption_id")
    free = {
        f"{name}_" if name in ("caption", "image", "text") else name: typed(frame[name])
        for name in frame.columns
        if name not in used
    }
    captions = pl.DataFrame({**text_columns(caption=ids, image=owners, text=texts), **free})
    images = pl.DataFrame({"image": pl.Series(list(dict.fromkeys(owners)), dtype=pl.String)})
    return Dataset(Path(folder).resolve().name, images, captions)
