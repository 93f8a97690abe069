"""BLIP's and ALBEF's annotation files, ``[{"image": "folder/photo.jpg", "caption": ["…", …]}, …]``."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, reading
from crosslens.data.io.checks import check_texts, check_unique, coco_ids_of, number_within
from crosslens.data.io.files import format_stem, read_json
from crosslens.data.io.records import Records, text_columns
from crosslens.data.loading import READERS, JsonFile

LAYOUT = '[{"image": "folder/photo.jpg", "caption": ["caption", …]}, …]'


def _holds_images_with_captions(content: Any) -> bool:
    rows = content[:100] if isinstance(content, list) else []
    return bool(rows) and all(
        isinstance(row, dict) and isinstance(row.get("image"), str) and isinstance(row.get("caption"), str | list)
        for row in rows
    )


@READERS.register("blip", json_files=(JsonFile("captions", "BLIP annotations", LAYOUT, _holds_images_with_captions),))
def read_blip(captions: str | Path, coco_ids: bool = False) -> Dataset:
    """BLIP and ALBEF annotations: a JSON array of images with their captions.

    captions: the file, such as ``flickr30k_test.json`` or ``coco_karpathy_test.json`` (may be .gz)
    coco_ids: call ``COCO_val2014_000000391895.jpg`` by its COCO id, ``391895``, to match other COCO files

    Training files have an entry for each caption: entries of one image are joined. An image's id is the name of its
    file, without the folder unless two folders have a file of that name; a caption's id is its image's id, ``#``, and
    its index. Other single values in the entries become columns of the captions.
    """
    content = read_json(captions)
    with reading(captions):
        rows = Records.of(content, "entry", LAYOUT)
        files = rows.ids("image")
        if not files:
            raise InputError("no images", expected="at least one image", fix="check how the file was written")
        id_of = _image_ids(list(dict.fromkeys(files)), coco_ids)
        texts, indices, names = _captions(rows)
        owners = [id_of[files[index]] for index in indices]
        check_texts(texts, names.__getitem__)
        free = rows.free(("image", "caption", "text"))
        columns = text_columns(caption=number_within(owners), image=owners, text=texts)
        return Dataset(
            format_stem(captions),
            pl.DataFrame(text_columns(image=list(id_of.values()), file=list(id_of))),
            pl.DataFrame({**columns, **{name: values.gather(indices) for name, values in free.items()}}),
        )


def _image_ids(files: list[str], coco_ids: bool) -> dict[str, str]:
    """File → id of the image."""
    names = [PurePosixPath(file).name for file in files]
    ids = names if len(set(names)) == len(names) else files
    if coco_ids:
        ids = coco_ids_of(names, lambda index: f"image {files[index]!r}")
        check_unique(ids, "image", lambda index: f"image {files[index]!r}")
    return dict(zip(files, ids, strict=True))


def _captions(rows: Records) -> tuple[list[Any], list[int], list[str]]:
    """The captions, the entry of each, and what each is called in a message."""
    texts: list[Any] = []
    indices: list[int] = []
    names: list[str] = []
    for index, caption in enumerate(rows.values("caption")):
        row_name = str(rows.row_name(index))
        several = caption if isinstance(caption, list) else [caption]
        texts += several
        indices += [index] * len(several)
        names += [f"{row_name}, caption {n}" for n in range(len(several))] if isinstance(caption, list) else [row_name]
    return texts, indices, names
