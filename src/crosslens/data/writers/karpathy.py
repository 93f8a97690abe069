"""Karpathy's ``dataset_*.json``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from crosslens.core import Dataset
from crosslens.data.conversion_loss import lost_columns, lost_objects
from crosslens.data.io.json_ids import is_number, with_json_ids, write_json
from crosslens.data.registries import WRITERS


def _lost(dataset: Dataset, path: Path, images: Path | None) -> list[str]:
    return lost_columns("caption", dataset.captions) + lost_objects(dataset)


@WRITERS.register("karpathy", loses=_lost, by_image=True)
def write_karpathy(dataset: Dataset, path: Path) -> None:
    """``dataset_*.json``; the split is the images' column ``split``, or ``test``."""
    sentences: dict[str, list[dict[str, Any]]] = {image: [] for image in dataset.image_ids}
    number_of = {image: number for number, image in enumerate(dataset.image_ids)}
    for caption, image, text in dataset.captions.select("caption", "image", "text").iter_rows():
        tokens = re.findall(r"[\w']+", text.lower())
        sentence = {"tokens": tokens, "raw": text, "imgid": number_of[image], "sentid": caption}
        sentences[image].append(with_json_ids(sentence, "sentid"))
    images = []
    for row in dataset.images.iter_rows(named=True):
        image = row.pop("image")
        folder, _, name = (row.pop("file", None) or image).rpartition("/")
        entry = {"filepath": folder, "filename": name, "imgid": number_of[image], "split": row.pop("split", "test")}
        if is_number(image):
            entry["cocoid"] = int(image)
        sentids = [sentence["sentid"] for sentence in sentences[image]]
        images.append(entry | row | {"sentids": sentids, "sentences": sentences[image]})
    write_json({"images": images, "dataset": dataset.name.partition("/")[0]}, path)
