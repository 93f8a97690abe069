"""Karpathy's split files, ``dataset_coco.json`` and ``dataset_flickr30k.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, UsageError, reading
from crosslens.data.io.checks import check_unique
from crosslens.data.io.files import read_json
from crosslens.data.io.records import Records, text_columns
from crosslens.data.loading import READERS, JsonFile

LAYOUT = '{"images": [{"filename", "split", "sentences": [{"raw", "sentid"}], …}], "dataset"}'
_KNOWN = ("image", "file", "filepath", "filename", "split", "sentids", "sentences", "imgid", "cocoid")


def _holds_sentences(content: Any) -> bool:
    images = content.get("images") if isinstance(content, dict) else None
    return isinstance(images, list) and any(isinstance(row, dict) and "sentences" in row for row in images[:100])


@READERS.register("karpathy", json_files=(JsonFile("captions", "Karpathy's dataset_*.json", LAYOUT, _holds_sentences),))
def read_karpathy(
    captions: str | Path, split: str | None = None, restval: bool = False, image_key: str | None = None
) -> Dataset:
    """Karpathy's ``dataset_*.json``: images with their sentences and the split they belong to.

    captions: ``dataset_coco.json``, ``dataset_flickr30k.json`` or another file of that form (may be .gz)
    split: keep the images of ``train``, ``val``, ``test`` or ``restval`` only; all of them by default
    restval: count the images of ``restval`` as training images, as most papers do
    image_key: which entry is an image's id: ``cocoid``, ``filename`` or ``imgid``; by default ``cocoid`` where every
        image has one, otherwise ``filename``

    A caption's id is its ``sentid``. The split of every image is kept in the column ``split``.
    """
    content = read_json(captions)
    with reading(captions):
        images = Records.under(content, "images", "image", LAYOUT)
        splits = images.strings("split")
        if restval:
            splits = ["train" if name == "restval" else name for name in splits]
        if split is not None:
            images, splits = _only(images, splits, split)
        key = image_key or ("cocoid" if all("cocoid" in row for row in images.rows) else "filename")
        ids = images.ids(key)
        check_unique(ids, "image", images.row_name)
        sentences, owners = images.nested("sentences", "sentence")
        caption_ids = sentences.ids("sentid")
        check_unique(caption_ids, "caption", sentences.row_name)
        _check_sentids(images)
        collection = content.get("dataset") or Path(captions).name.partition(".")[0].removeprefix("dataset_")
        return Dataset(
            f"{collection}/{split}" if split else str(collection),
            pl.DataFrame({**text_columns(image=ids, file=_files(images), split=splits), **images.free(_KNOWN)}),
            pl.DataFrame(
                text_columns(caption=caption_ids, image=[ids[owner] for owner in owners], text=sentences.texts("raw"))
                | sentences.free(("caption", "image", "text", "raw", "tokens", "imgid", "sentid"))
            ),
        )


def _only(images: Records, splits: list[str], split: str) -> tuple[Records, list[str]]:
    kept = [index for index, name in enumerate(splits) if name == split]
    if not kept:
        raise UsageError(f"no image has the split {split!r}", fix=f"use one of: {', '.join(dict.fromkeys(splits))}")
    return images.only(kept), [split] * len(kept)


def _files(images: Records) -> list[str]:
    folders = [folder if isinstance(folder, str) and folder else None for folder in images.optional("filepath")]
    names = images.strings("filename")
    return [f"{folder}/{name}" if folder else name for folder, name in zip(folders, names, strict=True)]


def _check_sentids(images: Records) -> None:
    """An image lists its sentence ids twice; both lists must be equal."""
    for index, row in enumerate(images.rows):
        listed = row.get("sentids")
        if listed is not None and listed != [sentence["sentid"] for sentence in row["sentences"]]:
            raise InputError(
                f"'sentids' is {listed!r:.60}, which are not the ids of its sentences",
                row=images.row_name(index),
                expected="the sentid of every sentence, in order",
                fix="correct 'sentids', or leave it out",
            )
