"""CIDEr-D of every image and caption, against the captioning package one pair at a time, in the same run.

    pip install pycocoevalcap
    python benchmarks/cider.py --captions captions.tsv.gz     # caption id, image id, text; a header line

Without a file, 5,000 images with five captions each are made up. Our time is everything from texts to the finished
matrix: tokens, counts, index, all cells (compiling is done before, on a few rows); the package's is only its scoring
loop. Rounds alternate, so that a busy machine slows both alike; figures are medians. About half a minute on two quiet
cores.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.cores import available_cores
from crosslens.language.tokens import tokenize
from crosslens.similarity import Cider

Texts = list[list[str]]
ROUNDS = 3


def read_captions(file: Path) -> Texts:
    """The captions of each image, from a table of caption id, image id, text."""
    by_image: dict[str, list[str]] = {}
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        for line in list(lines)[1:]:
            _, image, text = line.rstrip("\n").split("\t")
            by_image.setdefault(image, []).append(text)
    return list(by_image.values())


def made_up(images: int, rng: np.random.Generator) -> Texts:
    """Captions of words that are as unequally common as words are."""
    words = np.array([f"word{n}" for n in range(8000)])
    chance = 1 / np.arange(1, len(words) + 1)
    lengths = rng.integers(8, 14, (images, 5))
    return [[" ".join(rng.choice(words, n, p=chance / chance.sum())) for n in row] for row in lengths]


def package_scorer(references: Texts) -> tuple[Any, list[Any]]:
    """pycocoevalcap with its document frequencies counted, and the references as it wants them."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer

    scorer = CiderScorer()
    for image in references:
        written = [" ".join(one) for one in tokenize(image)]
        scorer += (written[0], written)
    scorer.compute_doc_freq()
    return scorer, scorer.crefs


def package_pairs(scorer: Any, cooked: Sequence[Any], texts: Sequence[Any], pairs: np.ndarray) -> list[float]:
    scorer.crefs = [cooked[image] for image, _ in pairs]
    scorer.ctest = [texts[caption] for _, caption in pairs]
    found: list[float] = scorer.compute_cider()
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--captions", type=Path, help="a table of caption id, image id, text (.tsv or .tsv.gz)")
    arguments.add_argument("--images", type=int, default=5000, help="how many images are made up without a file")
    asked = arguments.parse_args()
    rng = np.random.default_rng(0)
    references = made_up(asked.images, rng) if asked.captions is None else read_captions(asked.captions)
    captions = [text for image in references for text in image]
    Cider().prepare(references[:3], captions[:3]).block(slice(None))

    scorer, cooked = package_scorer(references)
    own_image = np.repeat(np.arange(len(references)), [len(image) for image in references])
    # The package takes the number of images from the number of pairs: as many pairs as images, a fifth of them true.
    pairs = np.column_stack(
        [rng.integers(0, len(references), len(cooked)), rng.integers(0, len(captions), len(cooked))]
    )
    pairs[::5, 0] = own_image[pairs[::5, 1]]
    from pycocoevalcap.cider.cider_scorer import cook_test

    texts = [cook_test(" ".join(one)) for one in tokenize(captions)]
    ours, theirs = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        matrix = Cider().prepare(references, captions).block(slice(None))
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        expected = package_pairs(scorer, cooked, texts, pairs)
        theirs.append(time.perf_counter() - began)

    worst = float(np.abs(matrix[pairs[:, 0], pairs[:, 1]] - expected).max())
    rates = [matrix.size / statistics.median(ours), len(pairs) / statistics.median(theirs)]
    print(f"{len(references):,} images × {len(captions):,} captions, {available_cores()} cores, {ROUNDS} rounds")
    print(f"crosslens       {statistics.median(ours):8.2f} s   {rates[0]:14,.0f} pairs/s")
    print(f"pycocoevalcap   {statistics.median(theirs):8.2f} s   {rates[1]:14,.0f} pairs/s   ({len(pairs):,} pairs)")
    print(f"ratio {rates[0] / rates[1]:,.0f}; largest difference {worst:.1e}")


if __name__ == "__main__":
    main()
