"""How long the concept metrics of 28,000 failures take, and how much longer nltk and networkx would.

    python benchmarks/explain.py
    python benchmarks/explain.py --sample 300

Both images of a failure have 20 objects with boxes, half of them with attributes; their concepts come from 2,000 nouns,
a few of them frequent. nltk and networkx get a sample of the failures and only the paper's four metrics (CA, NCS, CE,
SD): their time per failure is compared with ours for everything. Needs nltk and the dict files of WordNet 3.0 for that
(apt install wordnet-base wordnet-sense-index, or CROSSLENS_WORDNET_DICT); without them only our figures are printed.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.explanations.concept_batches import concept_table
from crosslens.explanations.objects import ImageObjects, image_objects
from crosslens.language.wordnet import load_wordnet
from crosslens.values.dataset import Dataset

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the slow reference and nltk's reader are the tests'

IMAGES, OBJECTS, NOUNS = 10_000, 20, 2_000
WORDS = ("red", "green", "white", "black", "small", "large", "wooden", "metal")


def pictures(rng: np.random.Generator) -> Dataset:
    """Annotated images; every second draw repeats an object of the same image, as herds and crowds do."""
    wn = load_wordnet()
    nouns = np.flatnonzero([wn.part(row) == "n" for row in range(len(wn))])
    names = [wn.name(int(row)) for row in rng.choice(nouns, NOUNS, replace=False)]
    chances = 1 / np.arange(1, NOUNS + 1) ** 1.2
    drawn = rng.choice(NOUNS, (IMAGES, OBJECTS), p=chances / chances.sum())
    again = rng.random((IMAGES, OBJECTS)) < 0.3
    for place in range(1, OBJECTS):
        drawn[:, place] = np.where(again[:, place], drawn[:, place - 1], drawn[:, place])
    count = IMAGES * OBJECTS
    sides = rng.uniform(5, 200, (count, 4))
    objects = pl.DataFrame(
        {
            "image": np.repeat(np.arange(IMAGES), OBJECTS).astype(str).tolist(),
            "object": [str(number) for number in range(count)],
            "name": ["thing"] * count,
            "synset": [names[one] for one in drawn.ravel()],
            **{side: sides[:, at] for at, side in enumerate("xywh")},
            "attributes": [[WORDS[one]] if one < len(WORDS) else [] for one in rng.integers(0, 2 * len(WORDS), count)],
        }
    )
    images = pl.DataFrame({"image": [str(one) for one in range(IMAGES)], "width": 640, "height": 480})
    captions = pl.DataFrame(schema={"caption": pl.String, "image": pl.String, "text": pl.String})
    return Dataset("made up", images, captions, objects)


class Peer:
    """The paper's four metrics by nltk and networkx, failure by failure; synsets are read only once."""

    def __init__(self, reader: Any, objects: ImageObjects) -> None:
        wn = load_wordnet()
        self.objects = objects
        self.read = cache(lambda name: reader.synset_from_pos_and_offset("n", wn.offset(name)))

    def similarity(self, one: str, other: str) -> float:
        return float(self.read(one).path_similarity(self.read(other)))

    def areas(self, image: int) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for thing in self.objects.inside(image):
            found.setdefault(str(self.objects.synset(thing)), []).append(float(self.objects.areas[thing]))
        return found

    def metrics(self, ground_truth: int, retrieved: int) -> tuple[float, float | None, float, float | None]:
        from tests.explanations.slow_concepts import matched_areas, matched_concepts

        mine, theirs = self.areas(ground_truth), self.areas(retrieved)
        common, missing, extra = mine.keys() & theirs.keys(), mine.keys() - theirs.keys(), theirs.keys() - mine.keys()
        pairs = matched_concepts(missing, extra, self.similarity) if missing and extra else []
        counts = [Counter({one: len(areas) for one, areas in side.items()}) for side in (mine, theirs)]
        differences = [matched_areas(mine[one], theirs[one], "ground_truth") for one in common]
        return (
            len(common) / len(mine),
            math.fsum(pair[2] for pair in pairs) / len(pairs) if pairs else None,
            sum(abs(counts[0][one] - counts[1][one]) for one in common),
            math.fsum(math.fsum(one) / len(one) for one in differences) if differences else None,
        )


def compare(objects: ImageObjects, rows: Any, others: Any, table: pl.DataFrame, each: float) -> None:
    """The peer's time per failure on the first few, and whether it agrees."""
    from tests.language.nltk_reader import missing, open_reader

    if why := missing():
        print(f"nltk: {why}")
        return
    with tempfile.TemporaryDirectory() as place:
        peer = Peer(open_reader(Path(place)), objects)
        sample = list(zip(rows.tolist(), others.tolist(), strict=True))[: table.height]
        for pair in sample:
            peer.metrics(*pair)  # reads the synsets and their hypernyms: not timed
        start = time.perf_counter()
        found = [peer.metrics(*pair) for pair in sample]
        theirs = (time.perf_counter() - start) / len(sample)
    print(f"nltk + networkx, four metrics    {1e6 * theirs:10,.0f} µs per failure, on {len(sample)} of them")
    print(f"crosslens, all metrics           {1e6 * each:10,.0f} µs per failure   {theirs / each:8,.0f} ×")
    for name, values in zip(("CA", "NonCommonSimilarity", "CE", "SD"), zip(*found, strict=True), strict=True):
        for mine, other in zip(table[name], values, strict=True):
            if (mine is None) != (other is None) or not math.isclose(mine or 0, other or 0, abs_tol=1e-9):
                raise SystemExit(f"{name}: crosslens says {mine}, nltk and networkx say {other}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=28_000)
    parser.add_argument("--sample", type=int, default=100, help="failures that nltk and networkx get")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    dataset = pictures(rng)
    start = time.perf_counter()
    objects = image_objects(dataset)
    print(f"{objects.images:,} images, {len(objects):,} objects into arrays {time.perf_counter() - start:8.2f} s")
    rows, others = rng.integers(0, IMAGES, (2, asked.failures))
    start = time.perf_counter()
    concept_table(objects, rows[:2], others[:2])
    print(f"the first table, compiled or read         {time.perf_counter() - start:8.2f} s")
    start = time.perf_counter()
    table = concept_table(objects, rows, others)
    took = time.perf_counter() - start
    print(f"{asked.failures:,} failures of {OBJECTS} + {OBJECTS} objects         {took:8.2f} s", flush=True)
    print(f"on average {table['common'].mean():.2f} common concepts, {table['box_pairs'].mean():.2f} pairs of boxes")
    compare(objects, rows, others, table.head(asked.sample), took / asked.failures)


if __name__ == "__main__":
    main()
