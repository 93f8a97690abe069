"""A RECOS benchmark from 1,000 real photos (COCO val2017), with features that were computed beforehand.

    make reproduce-recos           # the data: CROSSLENS_DATA, or ../shared/data beside the repository

The image tower is a closed-form ridge regression from stored EfficientNet features to a sentence encoder's space,
fitted on the 3,339 photos that are not among the 1,000. Descriptions outside the band are rewritten by rule, from
COCO's boxes. The three versions are then evaluated with that model, and with a second one that had no say in building
them. Vectors are kept in crosslens' cache: a second call is quick.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crosslens as cl
from crosslens.build import RecosSettings, build_recos
from crosslens.build.pages import check_summary
from crosslens.cli.console import progress_bar
from crosslens.encode import Cache, Encoder, encode_texts
from flickr8k import encoders
from pages import real_data

LAMBDA = 3000.0
TEMPERATURE = 0.02
VERSIONS = {"v0": ("i2t", "t2i"), "v1": ("i2t", "t2i"), "v2": ("t2i",)}
TASKS = {  # how many of a photo's captions must say so, and what; the first that fits
    "count": (3, r"\b(two|three|four|five|six|seven|eight|nine|ten)\b"),
    "colour": (2, r"\b(red|orange|yellow|green|blue|purple|pink|brown|black|white|gr[ae]y)\b"),
    "location": (2, r"\b(next to|behind|in front of|on top of|under|between|above|below|beside)\b"),
    "action": (3, r"\b\w+ing\b"),
}
Array = np.ndarray[Any, Any]


class Tower:
    """A ridge regression: image features → the space of a sentence encoder, both centred on the fitted photos."""

    def __init__(self, encoder: Encoder, features: Array, texts: Sequence[Sequence[str]]) -> None:
        self.name, self.revision = f"ridge:{encoder.name}", encoder.revision
        self._encoder = encoder
        vectors = self._read([text for own in texts for text in own])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        ends = np.cumsum([len(own) for own in texts])
        means = np.stack([vectors[end - len(own) : end].mean(axis=0) for own, end in zip(texts, ends, strict=True)])
        self.centre = means.mean(axis=0)
        self._mean, self._spread = features.mean(axis=0), features.std(axis=0) + 1e-6
        seen = (features - self._mean) / self._spread
        self._weights = np.linalg.solve(seen.T @ seen + LAMBDA * np.eye(seen.shape[1]), seen.T @ (means - self.centre))

    def see(self, features: Array) -> Array:
        """Features → vectors."""
        mapped: Array = ((features - self._mean) / self._spread @ self._weights).astype(np.float32)
        return mapped

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """Texts → vectors of the same space."""
        vectors = self._read(texts)
        centred: Array = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) - self.centre).astype(np.float32)
        return centred

    def _read(self, texts: Sequence[str]) -> Array:
        return encode_texts(self._encoder, texts, cache=Cache(), progress=progress_bar()).rows.astype(np.float64)


def task_of(captions: Sequence[str]) -> str:
    """COCO names no tasks: what a photo's captions agree on is taken for one."""
    for task, (least, pattern) in TASKS.items():
        if sum(bool(re.search(pattern, caption.lower())) for caption in captions) >= least:
            return task
    return "object"


def captions_of(dataset: cl.Dataset) -> dict[str, list[str]]:
    """Image → its captions."""
    found: dict[str, list[str]] = {image: [] for image in dataset.image_ids}
    for image, text in dataset.captions.select("image", "text").iter_rows():
        found[image].append(text)
    return found


def evaluate(
    dataset: cl.Dataset, tower: Tower, vectors: dict[str, Array], directions: Sequence[str]
) -> dict[str, float]:
    """Hit@1 in each direction."""
    images = cl.Embeddings.of(np.stack([vectors[image] for image in dataset.image_ids]), dataset.image_ids)
    captions = cl.Embeddings.of(tower.encode_texts(dataset.texts), dataset.caption_ids)
    run = cl.evaluate(
        dataset, images=images, captions=captions, directions=directions, metrics=["Hit@1", "Hit@10"], resamples=0
    )
    return {name: value.mean for name, value in run.values.items()}


def main(output: str | None = None) -> int:
    """Build the benchmark (into ``output``, or a temporary folder) and print what came out."""
    data = real_data("coco_val2017", "coco_val2017_1k")
    start = time.perf_counter()
    photos = data / "coco_val2017_1k"
    dataset = cl.load_dataset("coco", captions=photos / "captions.json", instances=photos / "instances.json")
    told = captions_of(dataset)
    tasks = pl.Series("task", [task_of(told[image]) for image in dataset.image_ids])
    dataset = replace(dataset, images=dataset.images.with_columns(tasks))

    every = cl.load_dataset("coco", captions=data / "coco_val2017" / "captions.json.gz")
    stored = np.load(data / "coco_val2017" / "efficientnet_lite0_global.npy").astype(np.float64)
    row_of = {Path(name).stem.lstrip("0"): row for row, name in
              enumerate((data / "coco_val2017" / "names.txt").read_text().split())}  # fmt: skip
    others = {image: texts for image, texts in captions_of(every).items() if image not in told}
    fitted = stored[[row_of[image] for image in others]]
    features = stored[[row_of[image] for image in dataset.image_ids]]
    towers = {name: Tower(encoder, fitted, list(others.values())) for name, encoder in encoders().items()}
    seen = {name: dict(zip(dataset.image_ids, tower.see(features), strict=True)) for name, tower in towers.items()}

    with tempfile.TemporaryDirectory() as scratch:
        place = Path(output or Path(scratch) / "bench")
        builder = next(iter(towers))
        for name, vectors in (("joint", np.stack(list(seen[builder].values()))), ("likeness", features)):
            ids = dataset.image_ids
            cl.Embeddings(ids, vectors.astype(np.float32), model=name).save(Path(scratch) / name / "images")
        found = build_recos(
            dataset, f"file:{scratch}/joint", RecosSettings(temperature=TEMPERATURE, originals=300),
            text_encoder=towers[builder], image_encoder=f"file:{scratch}/likeness", image_folder=photos / "images",
            output=place, progress=progress_bar(),
        )  # fmt: skip
        print(check_summary(found))
        print("\n" + "\n".join(f"note: {one}" for one in found.notes))
        header = ("i2t/Hit@1", "t2i/Hit@1", "t2i/Hit@10")
        print(f"\n{'':28}{'images':>8}{'captions':>10}" + "".join(f"{name:>12}" for name in header))
        for name, tower in towers.items():
            for version, directions in VERSIONS.items():
                one = found.versions[version]
                values = evaluate(one, tower, seen[name], directions)
                cells = "".join(f"{values[metric]:>12.3f}" if metric in values else f"{'–':>12}" for metric in header)
                print(f"{name:25}{version:3}{len(one.image_ids):>8,}{len(one.caption_ids):>10,}{cells}")
    print(f"\n{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
