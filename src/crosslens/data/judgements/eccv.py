"""Human-verified positives of the COCO 5K test split, from the files inside the ``eccv_caption`` package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    IMAGE_TO_TEXT,
    TEXT_TO_IMAGE,
    Ids,
    InputError,
    MissingExtraError,
    Relevance,
    UsageError,
    reading,
)
from crosslens.data.io.arrays import read_array
from crosslens.data.io.files import read_json

KINDS = {"eccv": "eccv", "cxc": "cxc", "coco": "original"}
_SPLIT = "coco_test_ids.npy"
_FILES = {IMAGE_TO_TEXT: "{}_image_to_caption.json", TEXT_TO_IMAGE: "{}_caption_to_image.json"}


def read_eccv(kind: str = "eccv", direction: str = IMAGE_TO_TEXT, outside: bool = False) -> Relevance:
    """The positives of the COCO 5K test split.

    kind: ``eccv`` (ECCV Caption, verified by people among what models found), ``cxc`` (Crisscrossed Captions), or
        ``coco`` (each image's own captions)
    direction: ``i2t`` or ``t2i``; ECCV Caption judged different queries in each, so one is not the other flipped
    outside: keep positives that are not in the split

    Ids are COCO's, in the order of the split: all 5,000 images and all 25,000 captions, whether judged or not. So both
    directions go with the Karpathy split: ``evaluate(dataset, …, relevance={"i2t": read_eccv("eccv", "i2t"), "t2i":
    read_eccv("eccv", "t2i")})``.

    ECCV Caption's i2t judgements name two captions that the split leaves out. No system can find them, yet the package
    ``eccv_caption`` counts them among the relevant ones, and so do published figures: they are lower by a hair (mAP@R
    0.2027555 instead of 0.2027888 for one system). ``outside=True`` keeps them, behind the captions of the split;
    evaluate ranked lists with it, and without a dataset, for the package's own figure.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}", fix=f"use one of: {', '.join(KINDS)}")
    if direction not in _FILES:
        raise UsageError(f"unknown direction {direction!r}", fix="use 'i2t' or 't2i'")
    folder = _folder()
    images, captions = _split_ids(folder)
    file = folder / _FILES[direction].format(KINDS[kind])
    pairs = _pairs(file)
    query_ids, item_ids = (images, captions) if direction == IMAGE_TO_TEXT else (captions, images)
    if outside:
        item_ids = tuple(dict.fromkeys((*item_ids, *(str(item) for items in pairs.values() for item in items))))
    else:
        known = set(item_ids)
        pairs = {query: [item for item in items if str(item) in known] for query, items in pairs.items()}
    with reading(file):
        return Relevance.from_pairs(
            [query for query, items in pairs.items() for _ in items],
            [item for items in pairs.values() for item in items],
            query_ids=query_ids,
            item_ids=item_ids,
            source=kind,
        )


def eccv_files(kind: str) -> list[Path]:
    """The files of the package that the positives of a kind come from."""
    folder = _folder()
    kinds = {KINDS[kind], KINDS["coco"]}  # the order of the split comes from the latter
    return [folder / _SPLIT, *(folder / name.format(kind) for kind in sorted(kinds) for name in _FILES.values())]


def _folder() -> Path:
    # Found, not imported: the package itself warns about optional parts on import, and only its data are needed.
    spec = importlib.util.find_spec("eccv_caption")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("reading ECCV Caption and CxC positives", "eccv_caption", "eccv")
    return Path(spec.submodule_search_locations[0]) / "data"


def _split_ids(folder: Path) -> tuple[Ids, Ids]:
    """Images and captions in the order of the Karpathy test split."""
    captions = tuple(str(caption) for caption in np.asarray(read_array(folder / _SPLIT)))
    owner = _pairs(folder / _FILES[TEXT_TO_IMAGE].format(KINDS["coco"]))
    return tuple(dict.fromkeys(str(owner[caption][0]) for caption in captions)), captions


def _pairs(file: Path) -> dict[str, list[Any]]:
    content = read_json(file)
    if not isinstance(content, dict) or not all(isinstance(items, list) for items in content.values()):
        raise InputError(
            "not a table of positives", file=file, expected="{query: [items]}", fix="install eccv_caption again"
        )
    return content
