"""Flickr8k and Flickr30k: token files (``photo.jpg#0<TAB>caption``) and the tables that Kaggle hosts."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from crosslens.core import Dataset, InputError, argument, match_ids, reading, without_image_ending
from crosslens.data.io.checks import check_ids, check_texts, check_unique, number_within, on_lines, wrong_width
from crosslens.data.io.files import format_stem, numbered_lines, read_lines
from crosslens.data.io.records import text_columns
from crosslens.data.io.tables import split_csv, split_lines
from crosslens.data.loading import READERS


@READERS.register("flickr", suggested_for=(".token", ".txt"))
def read_flickr(captions: str | Path, images: str | Path | None = None) -> Dataset:
    """Flickr token files: a photo's name, ``#`` and a number, a tab, and the caption.

    captions: the token file, such as ``Flickr8k.token.txt`` or ``results_20130124.token`` (may be .gz)
    images: a file that lists the photos to keep, one name per line, such as ``Flickr_8k.testImages.txt``; the images
        then come in its order

    An image's id is the photo's name as the token file spells it; a caption's id is ``photo.jpg#0``.
    """
    with reading(captions):
        lines, numbers = numbered_lines(captions)
        row_name = on_lines(numbers)
        ids, owners, texts = [], [], []
        for number, line in zip(numbers, lines, strict=True):
            caption, tab, text = line.partition("\t")
            # Names may hold further dots and hashes (Flickr8k has photo.jpg.1#0): only the last # counts.
            image, mark, count = caption.rpartition("#")
            if not (tab and mark and image and count.strip().isdigit()):
                expected = "photo.jpg#0, a tab, and the caption"
                fix = "check that the file is a token file, and that the tab was not lost"
                raise InputError(f"{line!r:.60} is not a caption", row=f"line {number}", expected=expected, fix=fix)
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
        lines, numbers = numbered_lines(images)
        known, names = set(dataset.image_ids), [line.strip() for line in lines]
        # A name with and without its ending is one photo, listed twice.
        photos = []
        rows = match_ids([without_image_ending(name) for name in names], dataset.image_ids)
        for number, name, row in zip(numbers, names, rows, strict=True):
            if name not in known and row < 0:
                problem = f"photo {name!r} has no captions in the token file"
                fix = "check that the list and the token file belong together, or remove this line"
                raise InputError(problem, row=f"line {number}", expected=f"one of the {len(known)} photos", fix=fix)
            photos.append(name if name in known else dataset.image_ids[row])
        check_unique(photos, "image", on_lines(numbers))
    return photos


_IMAGE = ("image", "image_name", "image_id", "filename", "file_name")
_TEXT = ("caption", "comment", "text")
_NUMBER = ("comment_number", "caption_number")


@READERS.register("csv")
def read_kaggle_csv(captions: str | Path) -> Dataset:
    """Kaggle-style caption tables: ``image,caption`` or ``image_name| comment_number| comment``.

    captions: the file, such as Flickr8k's ``captions.txt`` or Flickr30k's ``results.csv`` (may be .gz)

    The first line names the columns, and the caption comes last; commas in it need no quotes. An image's id is the
    photo's name; a caption's id is ``photo.jpg#0``, with the number of the file where it has one.
    """
    with reading(captions):
        header, rows, lines = _split(captions)
        image_at, number_at = _columns(header)
        row_name = on_lines(lines)
        owners = check_ids([row[image_at].strip() for row in rows], "photo's name", row_name)
        texts = check_texts([row[-1].strip() for row in rows], row_name)
        if number_at is None:
            ids = number_within(owners)
        else:
            ids = [f"{image}#{row[number_at].strip()}" for image, row in zip(owners, rows, strict=True)]
        check_unique(ids, "caption", row_name)
        photos = list(dict.fromkeys(owners))
        return Dataset(
            format_stem(captions),
            pl.DataFrame(text_columns(image=photos, file=photos)),
            pl.DataFrame(text_columns(caption=ids, image=owners, text=texts)),
        )


def _split(captions: str | Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows as wide as the header, and their lines."""
    mark = "|" if "|" in read_lines(captions)[0] else ","
    header, rows, lines = split_lines(captions, mark) if mark == "|" else split_csv(captions)
    last = len(header) - 1
    for row, line in zip(rows, lines, strict=True):
        # Every copy of Flickr30k's results.csv has one line that lost its second mark: "photo.jpg| 4   A dog …".
        if mark == "|" and len(row) == 2 and last == 2 and (lost := re.fullmatch(r"\s*(\d+)\s+(\S.*)", row[1])):
            row[1:] = [lost[1], lost[2]]
        if len(row) < len(header):
            expected = f"{len(header)} columns: {', '.join(header)}"
            raise wrong_width(row, f"line {line}", expected, "add what is missing, or remove the line")
        # The caption comes last, so whatever follows belongs to it: it was written without quotes.
        row[last:] = [mark.join(row[last:])]
    return header, rows, lines


def _columns(header: list[str]) -> tuple[int, int | None]:
    """The columns of the photo's name and of the caption's number."""
    named = [name.lower() for name in header]
    image = next((named.index(name) for name in _IMAGE if name in named), None)
    if image is None or named[-1] not in _TEXT:
        expected = "a header such as image,caption or image_name| comment_number| comment, the caption last"
        fix = (
            f"add the header, or read the file as 'plain' with {argument('image_column')} and {argument('text_column')}"
        )
        raise InputError(f"the first line is {', '.join(header)!r:.80}", row="line 1", expected=expected, fix=fix)
    return image, next((named.index(name) for name in _NUMBER if name in named), None)
