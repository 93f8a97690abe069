"""A dataset reader: a path and options in, a dataset out."""

from __future__ import annotations

from pathlib import Path

import crosslens as cl
from crosslens.data import READERS


@READERS.register("semicolons")
def read_semicolons(captions: str | Path) -> cl.Dataset:
    """One image per line: its id, then its captions, separated by semicolons.

    captions: the file
    """
    images: dict[str, list[str]] = {}
    for number, line in enumerate(Path(captions).read_text(encoding="utf-8").splitlines(), start=1):
        image, *texts = [part.strip() for part in line.split(";")]
        if not texts:
            raise cl.InputError(
                f"image {image!r} has no caption",
                file=captions,
                row=f"line {number}",
                expected="image; caption; caption; …",
                fix="add a caption, or remove the line",
            )
        images[image] = texts
    return cl.Dataset.of(images, name="semicolons")
