"""MSCOCO-FG and Flickr30K-FG: finer captions for known photos, ``{file stem: [caption, …]}``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, reading
from crosslens.data.checks import check_texts, check_unique, number_within
from crosslens.data.files import format_stem, read_json
from crosslens.data.readers import READERS

LAYOUT = '{"file stem": ["caption", …], …}'


@READERS.register("fine_grained")
def read_fine_grained(captions: str | Path, coco_ids: bool = False, extension: str = ".jpg") -> Dataset:
    """MSCOCO-FG and Flickr30K-FG captions: a JSON object from file stems to lists of captions.

    captions: the JSON file (may be .gz)
    coco_ids: call ``COCO_val2014_000000391895`` by its COCO id, ``391895``, to match other COCO files
    extension: what the photos' names end in after the stem

    A caption's id is its image's id, ``#``, and its place in the list.
    """
    content = read_json(captions)
    with reading(captions):
        _check_layout(content)
        stems = list(content)
        ids = [_coco_id(stem) for stem in stems] if coco_ids else stems
        check_unique(ids, "image", lambda index: f"image {stems[index]!r}")
        owners = [image for image, stem in zip(ids, stems, strict=True) for _ in content[stem]]
        place_of = [f"image {stem!r}, caption {n}" for stem in stems for n in range(len(content[stem]))]
        texts = check_texts([text for stem in stems for text in content[stem]], place_of.__getitem__)
        return Dataset(
            format_stem(captions),
            pl.DataFrame({"image": ids, "file": [stem + extension for stem in stems]}),
            pl.DataFrame(
                {"caption": number_within(owners), "image": owners, "text": texts},
                schema={"caption": pl.String, "image": pl.String, "text": pl.String},
            ),
        )


def _check_layout(content: Any) -> None:
    if not isinstance(content, dict) or not content:
        found = "an empty object" if content == {} else f"{type(content).__name__}"
        raise InputError(f"the file holds {found} at its top", expected=LAYOUT, fix="check that it is of this format")
    for stem, texts in content.items():
        if not isinstance(texts, list):
            raise InputError(
                f"the captions are {type(texts).__name__}",
                row=f"image {stem!r}",
                expected="a list of captions",
                fix="put the captions in a list",
            )


def _coco_id(stem: str) -> str:
    found = re.search(r"(\d+)$", stem)
    if found is None:
        raise InputError(
            f"the file stem {stem!r} does not end in a number",
            row=f"image {stem!r}",
            expected="a stem such as COCO_val2014_000000391895",
            fix="pass coco_ids=False to use the stems as ids",
        )
    return str(int(found[1]))
