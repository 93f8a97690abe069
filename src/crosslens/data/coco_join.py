"""Visual Genome and COCO joined: the images that both have, COCO's captions, Visual Genome's annotation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.core import Dataset, InputError
from crosslens.data.io.checks import check_unique
from crosslens.data.readers.coco import read_coco

COCO_ID = "coco_id"


def join_coco(genome: Dataset, captions: str | Path) -> Dataset:
    """The images of Visual Genome whose ``coco_id`` has captions in COCO, with those captions.

    ``captions`` is a captions file, or a folder of which every ``captions_*.json`` is read. Images keep the ids of
    Visual Genome, captions have those of COCO. Of several images with one ``coco_id`` the first is kept: a caption
    belongs to one image. What has no counterpart is counted in the notes of the dataset's card.
    """
    texts = _read_captions(Path(captions))
    described = dict.fromkeys(texts["image"])
    image_of: dict[str, str] = {}
    unlinked = absent = repeated = 0
    for image, coco in zip(genome.image_ids, _coco_ids(genome), strict=True):
        if coco is None:
            unlinked += 1
        elif coco not in described:
            absent += 1
        elif coco in image_of:
            repeated += 1
        else:
            image_of[coco] = image
    if not image_of:
        raise InputError(
            f"no {COCO_ID} of Visual Genome's {len(genome.image_ids):,} images has captions here",
            file=captions,
            expected="COCO captions of images that Visual Genome has",
            fix="name the captions of train2017 and val2017, or of train2014 and val2014: a folder with both files",
        )
    joined = texts.filter(pl.col("image").is_in(list(image_of)))
    joined = joined.with_columns(image=pl.col("image").replace_strict(image_of, return_dtype=pl.String))
    shared = replace(genome, name="visual_genome+coco", captions=joined).select(image_of.values())
    counts = {
        f"images of Visual Genome have no {COCO_ID}": unlinked,
        f"have a {COCO_ID} without captions here": absent,
        f"repeat the {COCO_ID} of an earlier image": repeated,
        "captioned images of COCO are not in Visual Genome": len(described) - len(image_of),
    }
    return replace(shared, card=replace(genome.card, notes=_note(len(image_of), counts)))


def _note(shared: int, counts: Mapping[str, int]) -> str:
    left_out = "; ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"{shared:,} images of Visual Genome have captions in COCO" + (f". Left out: {left_out}" if left_out else "")


def _coco_ids(genome: Dataset) -> Iterable[str | None]:
    if COCO_ID not in genome.images.columns:
        raise InputError(
            f"no image has a {COCO_ID}",
            expected=f"image_data.json with {COCO_ID}, as published",
            fix="use image_data.json of Visual Genome 1.2 or later",
        )
    return (None if value is None else str(value) for value in genome.images[COCO_ID])


def _read_captions(path: Path) -> pl.DataFrame:
    """The captions of a file, or of all captions files of a folder: caption, image and text."""
    files = sorted(path.glob("captions_*.json*")) if path.is_dir() else [path]
    if not files:
        raise InputError("no captions_*.json here", file=path, expected="COCO's captions files", fix="check the path")
    tables = [read_coco(file).captions.select("caption", "image", "text") for file in files]
    captions = pl.concat(tables)
    if len(files) > 1:
        names = [file.name for file, table in zip(files, tables, strict=True) for _ in range(table.height)]
        check_unique(captions["caption"].to_list(), "caption", lambda row: names[row])
    return captions
