"""MSCOCO-FG and Flickr30K-FG: finer captions for known photos, ``{photo: [caption, …]}``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import Dataset, InputError, reading, without_image_ending
from crosslens.data.io.checks import check_texts, check_unique, coco_ids_of, number_within
from crosslens.data.io.files import format_stem, read_json
from crosslens.data.io.records import text_columns
from crosslens.data.loading import READERS, JsonFile

LAYOUT = '{"file stem": ["caption", …], …}'


def _holds_lists_of_texts(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and bool(content)
        and all(isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in content.values())
    )


@READERS.register(
    "fine_grained", json_files=(JsonFile("captions", "fine-grained captions", LAYOUT, _holds_lists_of_texts),)
)
def read_fine_grained(captions: str | Path, coco_ids: bool = False, extension: str = ".jpg") -> Dataset:
    """MSCOCO-FG and Flickr30K-FG captions: a JSON object from file stems to lists of captions.

    captions: the JSON file (may be .gz)
    coco_ids: call ``COCO_val2014_000000391895`` by its COCO id, ``391895``, to match other COCO files
    extension: what the photos' names end in after the stem, where the file does not say it

    A caption's id is its image's id, ``#``, and its index in the list.
    """
    content = read_json(captions)
    with reading(captions):
        _check_layout(content)
        stems = list(content)
        ids = coco_ids_of(stems, lambda index: f"image {stems[index]!r}") if coco_ids else stems
        check_unique(ids, "image", lambda index: f"image {stems[index]!r}")
        owners = [image for image, stem in zip(ids, stems, strict=True) for _ in content[stem]]
        row_names = [f"image {stem!r}, caption {n}" for stem in stems for n in range(len(content[stem]))]
        texts = check_texts([text for stem in stems for text in content[stem]], row_names.__getitem__)
        return Dataset(
            format_stem(captions),
            pl.DataFrame({"image": ids, "file": [_file(stem, extension) for stem in stems]}),
            pl.DataFrame(text_columns(caption=number_within(owners), image=owners, text=texts)),
        )


def _check_layout(content: Any) -> None:
    if not isinstance(content, dict) or not content:
        top = "an empty object" if content == {} else f"{type(content).__name__}"
        raise InputError(f"the file holds {top} at its top", expected=LAYOUT, fix="check that it is of this format")
    for stem, texts in content.items():
        if not isinstance(texts, list):
            problem = f"the captions are {type(texts).__name__}"
            fix = "put the captions in a list"
            raise InputError(problem, row=f"image {stem!r}", expected="a list of captions", fix=fix)


def _file(stem: str, extension: str) -> str:
    return stem if without_image_ending(stem) != stem else stem + extension
