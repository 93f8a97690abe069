"""Captions beside vectors: precomputed features as VSE++ and SCAN publish them, folders that clip-retrieval wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError, reading
from crosslens.data.files import read_lines
from crosslens.data.loading import READERS
from crosslens.data.rows import (
    TEXT_COLUMNS,
    caption_table,
    check_texts,
    check_unique,
    number_within,
    on_lines,
    require_column,
)
from crosslens.data.vectors import METADATA, METADATA_IMAGES, metadata_columns, numbered_files, read_array
from crosslens.storage import Array
from crosslens.values import Dataset, Embeddings

_BLOCK = 1_024


@READERS.register("precomputed")
def read_precomputed_captions(folder: str | Path, split: str, captions_per_image: int = 5) -> Dataset:
    """Precomputed features, ``{split}_ims.npy`` + ``{split}_caps.txt``: the images and their captions.

    folder: the folder that holds both files
    split: which pair of files to read, such as ``test``
    captions_per_image: how many captions, one per line and together, each image has

    Image rows may come once per image or repeated once per caption; repeated rows are counted once. Image ids are read
    from ``{split}_ids.txt`` where it exists, otherwise images are called ``0``, ``1``, … The features themselves:
    :func:`crosslens.data.read_precomputed`.
    """
    return _read(Path(folder), split, captions_per_image)[0]


def read_precomputed(folder: str | Path, split: str, captions_per_image: int = 5) -> tuple[Dataset, Embeddings]:
    """Images and captions of a precomputed split, and the images' features: one row per image, in their order."""
    dataset, rows = _read(Path(folder), split, captions_per_image)
    with reading(Path(folder) / f"{split}_ims.npy"):
        return dataset, Embeddings(dataset.image_ids, rows)


def _read(folder: Path, split: str, each: int) -> tuple[Dataset, Array]:
    if each < 1:
        raise UsageError(f"captions_per_image is {each}", fix="use 1 or more")
    caption_file, image_file = folder / f"{split}_caps.txt", folder / f"{split}_ims.npy"
    with reading(caption_file):
        lines = read_lines(caption_file)
        texts = check_texts([line.strip() for line in lines], on_lines(range(1, len(lines) + 1)))
        if len(texts) % each:
            fix = "check that no line is missing, or pass captions_per_image="
            raise InputError(f"{len(texts)} captions", expected=f"{each} captions for every image", fix=fix)
    rows = _image_rows(image_file, len(texts), each)
    images = len(rows)
    ids = [str(number) for number in range(images)]
    id_file = folder / f"{split}_ids.txt"
    if id_file.exists():
        with reading(id_file):
            ids = [line.strip() for line in read_lines(id_file)]
            if len(ids) not in (images, images * each):
                expected = f"{images} lines (one per image) or {images * each} lines (one per caption)"
                fix = "check that the file is of the same split, or remove it to number the images"
                raise InputError(f"{len(ids)} ids for {images} images", expected=expected, fix=fix)
            step = len(ids) // images
            ids = ids[::step]
            check_unique(ids, "image", on_lines(range(1, step * images + 1, step)))
    owners = [image for image in ids for _ in range(each)]
    dataset = Dataset(
        f"{folder.name}/{split}",
        pl.DataFrame({"image": ids}),
        pl.DataFrame({"caption": number_within(owners), "image": owners, "text": texts}),
    )
    return dataset, rows


def _image_rows(file: Path, captions: int, each: int) -> Array:
    """One row per image; where rows are repeated per caption, they must really be repeated."""
    rows = read_array(file)
    if rows.ndim < 2 or len(rows) not in (captions, captions // each):
        raise InputError(
            f"an array of shape {rows.shape} beside {captions} captions",
            file=file,
            expected=f"{captions // each} rows (one per image) or {captions} rows (one per caption)",
            fix="check that both files are of the same split, or pass captions_per_image=",
        )
    if len(rows) < captions or each == 1:
        return rows
    for start in range(0, captions, _BLOCK * each):
        block = rows[start : start + _BLOCK * each]
        same = np.equal(block.reshape(-1, each, *block.shape[1:]), block[::each, None])
        differs = ~same.reshape(len(block), -1).all(axis=1)
        if differs.any():
            raise InputError(
                f"this row differs from row {start + int(np.argmax(differs)) // each * each}",
                file=file,
                row=start + int(np.argmax(differs)),
                expected=f"every image's row {each} times in a row, as there are as many rows as captions",
                fix="pass captions_per_image=1 if every image has one caption",
            )
    return rows[::each]


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
        caption_at = "caption_id" if "caption_id" in frame.columns else None
        captions = caption_table(frame, row_name, image_at, text_at, caption_at)
    return Dataset(Path(folder).resolve().name, captions.select(pl.col("image").unique(maintain_order=True)), captions)
