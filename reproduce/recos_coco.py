"""A RECOS benchmark from 1,000 real photos (COCO val2017), with features that were computed beforehand.

    make reproduce-recos                      # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/recos_coco.py --write    # put the tables into docs/results/built-benchmarks.md

The image tower is a closed-form ridge regression from stored EfficientNet features to a sentence encoder's space,
fitted on the 3,339 photos that are not among the 1,000. Descriptions outside the band are rewritten by rule, from
COCO's boxes. Two benchmarks are built: with crosslens' settings, and with the paper's procedure (50 photos for each of
the paper's tasks that COCO's captions show, descriptions checked against the selected photos, a grammar check). Their
versions are then evaluated with that model, and with a second one that had no say in building them. Vectors are kept in
crosslens' cache: a second call is quick.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crosslens as cl
from crosslens.build import Recos, RecosSettings, build_recos, grammar_counts, verdict_counts
from crosslens.cli.console import progress_bar
from crosslens.encode import Cache, Encoder, encode_texts
from flickr8k import encoders
from pages import real_data, update_page

LAMBDA = 3000.0
TEMPERATURE = 0.02
VERSIONS = {"v0": ("i2t", "t2i"), "v1": ("i2t", "t2i"), "v2": ("t2i",)}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "built-benchmarks.md"
BUILDS: dict[str, tuple[RecosSettings, str | None]] = {
    "default": (RecosSettings(temperature=TEMPERATURE, originals=300), None),
    "as in the paper": (RecosSettings(temperature=TEMPERATURE, quota=50, check_gallery="selected"), "rules"),
}
METRICS = ("i2t/Hit@1", "t2i/Hit@1", "t2i/Hit@10")
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
    texts: dict[str, list[str]] = {image: [] for image in dataset.image_ids}
    for image, text in dataset.captions.select("image", "text").iter_rows():
        texts[image].append(text)
    return texts


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


class Photos:
    """The 1,000 photos with their tasks, and what each model sees in them: both sentence encoders, or those named."""

    def __init__(self, models: Sequence[str] = ()) -> None:
        data = real_data("coco_val2017", "coco_val2017_1k")
        self.folder = data / "coco_val2017_1k"
        dataset = cl.load_dataset(
            "coco", captions=self.folder / "captions.json", instances=self.folder / "instances.json"
        )
        texts = captions_of(dataset)
        tasks = pl.Series("task", [task_of(texts[image]) for image in dataset.image_ids])
        self.dataset = replace(dataset, images=dataset.images.with_columns(tasks))
        every = cl.load_dataset("coco", captions=data / "coco_val2017" / "captions.json.gz")
        stored = np.load(data / "coco_val2017" / "efficientnet_lite0_global.npy").astype(np.float64)
        names = (data / "coco_val2017" / "names.txt").read_text().split()
        row_of = {Path(name).stem.lstrip("0"): row for row, name in enumerate(names)}
        others = {image: own for image, own in captions_of(every).items() if image not in texts}
        fitted = stored[[row_of[image] for image in others]]
        self.features = stored[[row_of[image] for image in dataset.image_ids]]
        chosen = {name: encoder for name, encoder in encoders().items() if not models or name in models}
        self.towers = {name: Tower(encoder, fitted, list(others.values())) for name, encoder in chosen.items()}
        self.seen = {
            name: dict(zip(dataset.image_ids, tower.see(self.features), strict=True))
            for name, tower in self.towers.items()
        }

    def build(self, settings: RecosSettings, grammar: str | None, scratch: Path) -> Recos:
        """A benchmark of these photos; the first model checks the descriptions."""
        builder = next(iter(self.towers))
        joint = np.stack(list(self.seen[builder].values()))
        for name, vectors in (("joint", joint), ("likeness", self.features)):
            cl.Embeddings(self.dataset.image_ids, vectors.astype(np.float32), model=name).save(
                scratch / name / "images"
            )
        return build_recos(
            self.dataset, f"file:{scratch}/joint", settings, grammar=grammar, text_encoder=self.towers[builder],
            image_encoder=f"file:{scratch}/likeness", image_folder=self.folder / "images", output=scratch / "bench",
            progress=progress_bar(),
        )  # fmt: skip


def build_row(name: str, built: Recos) -> str:
    """What a build did: descriptions checked, in the band, too vague, too detailed; originals, confusables, texts."""
    counts, v1 = verdict_counts(built.log), built.versions["v1"]
    written = sum(origin == "rules" for origin in v1.captions["origin"])
    grammar = f"{grammar_counts(built.log)['ungrammatical']:,}" if "grammar" in built.log.head else "–"
    rounds = sum(entry["verdict"] == "dropped" for entry in built.log.of("original"))
    cells = [f"{count:,}" for count in (sum(counts.values()), *counts.values(), len(built.versions["v0"].image_ids),
                                       v1.images.filter(role="confusable").height)]  # fmt: skip
    return f"| {name} | {' | '.join(cells)} | {rounds:,} | {written:,} of {len(v1.caption_ids):,} | {grammar} |"


def hit_rows(name: str, built: Recos, photos: Photos) -> Iterator[str]:
    """Hits of both models on the three versions."""
    for model, tower in photos.towers.items():
        for version, directions in VERSIONS.items():
            dataset = built.versions[version]
            values = evaluate(dataset, tower, photos.seen[model], directions)
            cells = " | ".join(f"{values[metric]:.3f}" if metric in values else "–" for metric in METRICS)
            sizes = f"{len(dataset.image_ids):,} | {len(dataset.caption_ids):,}"
            yield f"| {name} | {model} | {version} | {sizes} | {cells} |"


def main() -> int:
    """Build, evaluate, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    asked = parser.parse_args()
    start = time.perf_counter()
    photos = Photos()
    builds = [
        "| build | checked | in the band | too vague | too detailed | originals | with a confusable | dropped "
        "| written by rule | ungrammatical |",
        "|" + "---|" * 10,
    ]
    hits = [
        "| build | model | version | images | captions | i2t Hit@1 | t2i Hit@1 | t2i Hit@10 |",
        "|" + "---|" * 8,
    ]
    notes = []
    for name, (settings, grammar) in BUILDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            built = photos.build(settings, grammar, Path(scratch))
            print(f"\n{name}\n\n{built}")
            builds.append(build_row(name, built))
            hits += hit_rows(name, built, photos)
            notes += [f"- {name}: {note}" for note in built.notes]
    tables = {"recos-builds": "\n".join(builds), "recos-hits": "\n".join(hits), "recos-notes": "\n".join(notes)}
    status = update_page(PAGE, tables, write=asked.write)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
