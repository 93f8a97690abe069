"""Flickr8k and Flickr30k token files: ``photo.jpg#0<TAB>caption``, one caption per line."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core import Dataset, InputError, reading
from crosslens.data.io.checks import check_texts, check_unique, on_lines
from crosslens.data.io.files import read_lines
from crosslens.data.registries import READERS


@READERS.register("flickr", suggested_for=(".token", ".txt"))
def read_flickr(captions: str | Path, images: str | Path | None = None) -> Dataset:
    """Flickr token files: a photo's name, ``#`` and a number, a tab, and the caption.

    captions: the token file, such as ``Flickr8k.token.txt`` or ``results_20130124.token`` (may be .gz)
    images: a file that lists the photos to keep, one name per line, such as ``Flickr_8k.testImages.txt``; the images
        then come in its order

    An image's id is the photo's name as the token file spells it; a caption's id is ``photo.jpg#0``.
    """
    with reading(captions):
        lines = [(number, line) for number, line in enumerate(read_lines(captions), start=1) if line.strip()]
        row_name = on_lines([number for number, _ in lines])
        ids, owners, texts = [], [], []
        for number, line in lines:
            caption, tab, text = line.partition("\t")
            # Names may hold further dots and hashes (Flickr8k has photo.jpg.1#0): only the last # counts.
            image, mark, count = caption.rpartition("#")
            if not (tab and mark and image and count.strip().isdigit()):
                raise InputError(
                    f"{line!r:.60} is not a caption",
                    row=f"line {number}",
                    expected="photo.jpg#0, a tab, and the caption",
                    fix="check that the file is a token file, and that the tab was not lost",
                )
            ids.append(caption.strip())
            owners.append(image.strip())
            texts.append(text)
        check_texts(texts, row_name)
        check_unique(ids, "caption", row_name)
        photos = list(dict.fromkeys(owners))
        dataset = Dataset(
            Path(captions).name.partition(".")[0],
            pl.DataFrame({"image": photos, "file": photos}),
            pl.DataFrame({"caption": ids, "image": owners, "text": texts}),
        )
    return dataset if images is None else dataset.select(_listed(images, dataset))


def _listed(images: str | Path, dataset: Dataset) -> list[str]:
    """The photos of a split list, by the ids of the dataset; lists without ``.jpg`` are understood."""
    with reading(images):
        lines = [(number, line.strip()) for number, line in enumerate(read_lines(images), start=1) if line.strip()]
        known = set(dataset.image_ids)
        photos = []
        for number, name in lines:
            photo = next((spelling for spelling in (name, f"{name}.jpg") if spelling in known), None)
            if photo is None:
                raise InputError(
                    f"photo {name!r} has no captions in the token file",
                    row=f"line {number}",
                    expected=f"one of the {len(known)} photos",
                    fix="check that the list and the token file belong together, or remove this line",
                )
            photos.append(photo)
        check_unique(photos, "image", on_lines([number for number, _ in lines]))
    return photos
