"""Caption tables as Kaggle hosts them: ``image,caption`` (Flickr8k) and ``image_name| comment_number| comment``."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from crosslens.core import Dataset, InputError, reading
from crosslens.data.io.checks import check_ids, check_texts, check_unique, counted_noun, number_within, on_lines
from crosslens.data.io.dataset_tables import text_columns
from crosslens.data.io.files import format_stem, read_lines
from crosslens.data.io.tables import split_csv
from crosslens.data.registries import READERS

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
    first = read_lines(captions)[0]
    if "|" in first:
        header, rows, lines = _split_pipes(captions)
    else:
        header, rows, lines = split_csv(captions)
    for index, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) < len(header):
            raise InputError(
                counted_noun(len(row), "column"),
                row=f"line {line}",
                expected=f"{len(header)} columns: {', '.join(header)}",
                fix="add what is missing, or remove the line",
            )
        if len(row) > len(header):
            # The caption comes last, so whatever follows belongs to it: it was written without quotes.
            mark = "|" if "|" in first else ","
            rows[index] = [*row[: len(header) - 1], mark.join(row[len(header) - 1 :])]
    return header, rows, lines


def _split_pipes(captions: str | Path) -> tuple[list[str], list[list[str]], list[int]]:
    numbered = [(number, line) for number, line in enumerate(read_lines(captions), start=1) if line.strip()]
    rows = [line.split("|") for _, line in numbered]
    for row in rows:
        # Every copy of Flickr30k's results.csv has one line that lost its second mark: "photo.jpg| 4   A dog …".
        lost = re.fullmatch(r"\s*(\d+)\s+(\S.*)", row[1]) if len(row) == 2 and len(rows[0]) == 3 else None
        if lost:
            row[1:] = [lost[1], lost[2]]
    return [name.strip() for name in rows[0]], rows[1:], [number for number, _ in numbered][1:]


def _columns(header: list[str]) -> tuple[int, int | None]:
    """The columns of the photo's name and of the caption's number."""
    named = [name.lower() for name in header]
    image = next((named.index(name) for name in _IMAGE if name in named), None)
    if image is None or named[-1] not in _TEXT:
        raise InputError(
            f"the first line is {', '.join(header)!r:.80}",
            row="line 1",
            expected="a header such as image,caption or image_name| comment_number| comment, the caption last",
            fix="add the header, or read the file as 'plain' with image_column= and text_column=",
        )
    return image, next((named.index(name) for name in _NUMBER if name in named), None)
