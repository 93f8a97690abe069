"""Flickr token files: ``image#0<TAB>caption``."""

from __future__ import annotations

import re
from pathlib import Path

from crosslens.core import Dataset, InputError
from crosslens.data.conversion_loss import KEY_COLUMNS, by_image, lost_columns, lost_objects
from crosslens.data.io.checks import number_within
from crosslens.data.io.files import writing_text
from crosslens.data.registries import WRITERS
from crosslens.data.writing import check_image_order


def _lost(dataset: Dataset, path: Path, images: Path | None) -> list[str]:
    image_columns = lost_columns("image", dataset.images, (*KEY_COLUMNS, "file"))
    return lost_columns("caption", dataset.captions) + image_columns + lost_objects(dataset)


@WRITERS.register("flickr", loses=_lost, by_image=True, new_caption_ids=True)
def write_flickr(dataset: Dataset, path: Path) -> None:
    """Token file, image by image; line breaks inside captions become spaces."""
    captions = by_image(dataset)
    check_image_order(dataset, captions["image"], path, "write a format that lists images: coco, karpathy or folder")
    for image in dataset.image_ids:
        if re.search(r"[\t\n\r]", image):
            raise InputError(f"image id {image!r} holds a tab or line break", file=path, fix="rename the image")
    ids = number_within(captions["image"].to_list())
    with writing_text(path) as out:
        for caption, text in zip(ids, captions["text"], strict=True):
            out.write(f"{caption}\t{' '.join(text.split())}\n")
