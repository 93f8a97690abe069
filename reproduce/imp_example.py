"""An IMP build from real photos: Flickr8k's test photos, and the captions of COCO photos as the pool.

    make reproduce-imp                         # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/imp_example.py --write    # put the figures into docs/results/built-benchmarks.md

Photos are compared by stored EfficientNet features, captions by all-MiniLM-L6-v2. Nobody is asked: two rules stand in
for the annotators. Both look at the photo's own five captions, which the build never sees, and call a candidate good if
its mean cosine with them reaches a threshold; they differ in the threshold and in the sentence encoder. So the figures
say that the stages work, and nothing about the captions' truth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crosslens as cl
from crosslens.build import Imp, SamplingSettings, SelectionSettings, build_imp
from crosslens.build.imp.benchmark import agreement_line, dropped_captions
from crosslens.cli.console import progress_bar
from crosslens.encode import Cache, Encoder, encode_texts
from flickr8k import encoders
from pages import real_data, update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "built-benchmarks.md"
SETTINGS = SamplingSettings(count=100, band=(0.5, 0.8), cluster_sizes=(10, 60), candidates=30)
GOOD, UNSURE = 0.35, 0.04
"""From which mean cosine a rule calls a caption good, and how near to it the rule is unsure."""
Array = np.ndarray[Any, Any]


def flickr_photos(data: Path) -> tuple[cl.Dataset, cl.Embeddings]:
    """The 1,000 test photos with their features; the captions are for the rules."""
    names = (data / "flickr8k" / "features" / "names.txt").read_text().split()
    features = np.load(data / "flickr8k" / "features" / "efficientnet_lite0_global.npy")
    row_of = {name: row for row, name in enumerate(names)}
    every = cl.load_dataset("flickr", captions=data / "flickr8k" / "Flickr8k.token.txt")
    photos = sorted(file.name for file in (data / "flickr8k" / "images").glob("*.jpg"))
    dataset = replace(every.select(photos), name="flickr8k-test", home=data / "flickr8k" / "images")
    return dataset, cl.Embeddings(tuple(photos), features[[row_of[name] for name in photos]].astype(np.float32))


def coco_pool(data: Path) -> tuple[cl.Dataset, cl.Embeddings]:
    """The captions of 4,339 COCO photos, and the features of these."""
    folder = data / "coco_val2017"
    pool = replace(cl.load_dataset("coco", captions=folder / "captions.json.gz"), name="coco-val2017")
    names = [str(int(Path(name).stem)) for name in (folder / "names.txt").read_text().split()]
    features = np.load(folder / "efficientnet_lite0_global.npy").astype(np.float32)
    row_of = {name: row for row, name in enumerate(names)}
    return pool, cl.Embeddings(pool.image_ids, features[[row_of[image] for image in pool.image_ids]])


def mean_cosines(encoder: Encoder, sheet: pl.DataFrame, captions: Mapping[str, list[str]]) -> Array:
    """Of each candidate with its photo's own captions."""

    def unit(texts: list[str]) -> Array:
        rows = encode_texts(encoder, texts, cache=Cache(), progress=progress_bar()).rows.astype(np.float64)
        normed: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return normed

    candidates = unit(sheet["text"].to_list())
    images = list(dict.fromkeys(sheet["image"]))
    own = unit([text for image in images for text in captions[image]]).reshape(len(images), 5, -1)
    at = {image: number for number, image in enumerate(images)}
    return np.array(
        [float((own[at[image]] @ row).mean()) for image, row in zip(sheet["image"], candidates, strict=True)]
    )


def judge(file: Path, cosines: Array, threshold: float) -> None:
    """Fill in a sheet by the rule."""
    verdicts = [
        "unsure" if abs(value - threshold) < UNSURE / 2 else "good" if value >= threshold else "bad"
        for value in cosines.tolist()
    ]
    pl.read_csv(file, infer_schema=False).with_columns(verdict=pl.Series(verdicts)).write_csv(file)


def build(scratch: Path, how: str) -> Imp:
    """All stages, with rules in the place of people."""
    data = real_data("flickr8k", "coco_val2017")
    (photos, photo_features), (pool, pool_features) = flickr_photos(data), coco_pool(data)
    captions: dict[str, list[str]] = {}
    for image, text in photos.captions.select("image", "text").iter_rows():
        captions.setdefault(image, []).append(text)
    models, output = encoders(), scratch / "bench"

    def run() -> Imp:
        return build_imp(
            replace(photos, captions=photos.captions.clear()), pool, None, SETTINGS,
            selection=SelectionSettings(diverse=how), text_encoder=next(iter(models.values())),
            image_embeddings=photo_features, pool_embeddings=pool_features, output=output, cache=True,
            progress=progress_bar(),
        )  # fmt: skip

    run()
    scores = []
    for number, encoder in enumerate(models.values(), start=1):
        sheet = output / f"annotate-{number}.csv"
        scores.append(mean_cosines(encoder, pl.read_csv(sheet, infer_schema=False), captions))
        judge(sheet, scores[-1], GOOD)
    run()
    if (output / "agree.csv").exists():
        order = {caption: row for row, caption in enumerate(pl.read_csv(output / "annotate-1.csv")["caption"])}
        rows = [order[caption] for caption in pl.read_csv(output / "agree.csv")["caption"]]
        agreed = (scores[0] + scores[1])[rows] / 2
        verdicts = pl.Series(["good" if value >= GOOD else "bad" for value in agreed.tolist()])
        table = pl.read_csv(output / "agree.csv", infer_schema=False)
        table.with_columns(verdict=verdicts, correction=pl.lit(None), change=pl.lit(None)).write_csv(
            output / "agree.csv"
        )
    return run()


def tables(built: Mapping[str, Imp]) -> dict[str, str]:
    """The figures as the page shows them."""
    first = next(iter(built.values()))
    counts = ["| stage | number |", "|---|---|", *(f"| {name} | {count:,} |" for name, count in first.counts.items())]
    spread = ["| sampled in | nearest, mean | nearest, least | coverage, mean | coverage, most |", "|" + "---|" * 5]
    spread += [f"| {own.space} | " + " | ".join(f"{value:.3f}" for value in list(vars(own).values())[1:]) + " |"
               for own in first.spreads]  # fmt: skip
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in dropped_captions(first).items())
    diverse = ["| chosen by | mean cosine of an image's five captions | of all its good captions |", "|" + "---|" * 3]
    for how, imp in built.items():
        chosen = [entry for entry in imp.log.of("selected") if "captions" in entry]
        means = [float(np.mean([entry[name] for entry in chosen])) for name in ("similarity", "similarity_of_all")]
        diverse.append(f"| `{how}` | {means[0]:.3f} | {means[1]:.3f} |")
    return {
        "imp-counts": "\n".join([*counts, "", f"Dropped before annotation: {dropped}. {agreement_line(first)}"]),
        "imp-spread": "\n".join(spread),
        "imp-diverse": "\n".join(diverse),
    }


def main() -> int:
    """Build with both ways of choosing, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    asked = parser.parse_args()
    start = time.perf_counter()
    built = {}
    for how in ("lowest-similarity", "k-means"):
        with tempfile.TemporaryDirectory() as scratch:
            built[how] = build(Path(scratch), how)
    status = update_page(PAGE, tables(built), write=asked.write)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
