"""What φ costs in a step of training: one negative per pair and direction, or all pairs of the batch.

    python benchmarks/batch_similarity.py --data flickr8k --phi cider --phi spice

Without ``--data``, 6,000 images with five captions each are made up. Batches are drawn anew in every round; figures are
medians of processor time, which a busy machine changes less than the clock, and the fastest round beside them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.similarity import PreparedSimilarity, prepare_dataset
from crosslens.train import load_features
from crosslens.values import Dataset

ROUNDS = 15
DEFAULT = ("cider", "cider:split", "cider-plain", "bleu", "rouge-l")


def captions_of(folder: Path | None, fraction: float) -> Dataset:
    """The training captions of Flickr8k, or made-up ones of words as unequally common as words are."""
    if folder is not None:
        return load_features("flickr8k", folder, {}).train.part(fraction, 0).dataset
    stream = np.random.default_rng(0)
    words = np.array([f"word{n}" for n in range(8000)])
    chance = 1 / np.arange(1, len(words) + 1)
    chance /= chance.sum()
    images = range(round(6000 * fraction))
    return Dataset.of({str(n): [" ".join(stream.choice(words, 11, p=chance)) for _ in range(5)] for n in images})


def seconds(phi: PreparedSimilarity, of_image: Any, size: int, *, all_pairs: bool) -> list[float]:
    """Of each round: φ of a batch as the losses ask for it."""
    stream, taken = np.random.default_rng(1), []
    for _ in range(ROUNDS):
        captions = stream.permutation(len(of_image))[:size]
        images = of_image[captions]
        if all_pairs:
            pairs = np.repeat(images, size), np.tile(captions, size)
        else:  # the pair itself, a negative caption, the caption of a negative image
            pairs = np.tile(images, 3), np.concatenate([captions, np.roll(captions, 1), np.roll(captions, 2)])
        start = time.process_time()
        phi.pairs(*pairs)
        taken.append(time.process_time() - start)
    return taken


def main() -> None:
    """Print a row per φ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of Flickr8k")
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the training images")
    parser.add_argument("--phi", action="append", help="a φ; several times for several")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    dataset = captions_of(asked.data, asked.fraction)
    of_image = np.asarray(dataset.caption_image)
    print(
        f"{len(dataset.image_ids)} images, batches of {asked.batch}, {asked.threads} threads; CPU ms: median (fastest)"
    )
    for name in asked.phi or DEFAULT:
        start = time.process_time()
        phi = prepare_dataset(dataset, name, threads=asked.threads)
        row = [f"prepared in {time.process_time() - start:.1f} s"]
        for label, all_pairs in (("one negative", False), ("all pairs", True)):
            taken = seconds(phi, of_image, asked.batch, all_pairs=all_pairs)
            row.append(f"{label} {1000 * statistics.median(taken):.1f} ({1000 * min(taken):.1f})")
        print(f"{name}: " + ", ".join(row), flush=True)


if __name__ == "__main__":
    main()
