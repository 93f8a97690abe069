"""How long SPICE takes for 5,000 images × 25,000 captions, and how many pairs a second against a plain per-pair loop.

    python benchmarks/spice.py                # needs the COCO 5K captions (CROSSLENS_DATA or ../shared/data)
    python benchmarks/spice.py --pairs 500

Every stage is timed once, from nothing: parses are not taken from a cache. The per-pair loop is the slow reference that
the tests compare with; it gets graphs that are already built, as the matrix does.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np

from crosslens.language.parsing import parse_texts
from crosslens.language.scene_graphs import SceneGraph, scene_graph
from crosslens.similarity.measures.spice import prepare_graphs

HERE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CROSSLENS_DATA", HERE.parent / "shared" / "data"))


def read() -> tuple[list[str], list[int]]:
    """Texts, and the number of each text's image."""
    with gzip.open(DATA / "coco_karpathy_test" / "captions.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][1:]
    number = {image: place for place, image in enumerate(dict.fromkeys(row[1] for row in rows))}
    return [row[2] for row in rows], [number[row[1]] for row in rows]


def timed(label: str, start: float) -> float:
    seconds = time.perf_counter() - start
    print(f"  {label:<34}{seconds:8.2f} s", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=2_000, help="pairs for the per-pair loop")
    pairs = parser.parse_args().pairs
    if not (DATA / "coco_karpathy_test").is_dir():
        print("the COCO 5K captions are not here: nothing measured")
        return
    texts, image_of = read()
    start = time.perf_counter()
    parses = parse_texts(texts, cache=False)
    total = timed(f"parsing {len(texts):,} captions", start)
    start = time.perf_counter()
    graphs = [scene_graph(parse) for parse in parses]
    total += timed("scene graphs", start)
    references: list[list[SceneGraph]] = [[] for _ in range(max(image_of) + 1)]
    for graph, image in zip(graphs, image_of, strict=True):
        references[image].append(graph)
    prepare_graphs(references[:1], graphs[:1]).block(slice(None))  # compiles
    start = time.perf_counter()
    prepared = prepare_graphs(references, graphs)
    total += timed("merging references, indexing", start)
    start = time.perf_counter()
    matrix = prepared.block(slice(None))
    seconds = timed(f"matrix {matrix.shape[0]:,} × {matrix.shape[1]:,}", start)
    print(f"  {'in all':<34}{total + seconds:8.2f} s")
    compare(references, graphs, matrix, pairs, matrix.size / seconds)


def compare(
    references: list[list[SceneGraph]], graphs: list[SceneGraph], matrix: np.ndarray, pairs: int, rate: float
) -> None:
    """The slow loop on random pairs: its rate, and whether it says the same."""
    sys.path.insert(0, str(HERE))
    from tests.similarity.spice_reference import spice

    rng = np.random.default_rng(0)
    images, captions = rng.integers(0, matrix.shape[0], pairs), rng.integers(0, matrix.shape[1], pairs)
    start = time.perf_counter()
    slow = [spice(references[i], graphs[c]) for i, c in zip(images, captions, strict=True)]
    slow_rate = pairs / (time.perf_counter() - start)
    print(
        f"  pairs a second: {rate:,.0f} as a matrix, {slow_rate:,.0f} one by one, {rate / slow_rate:,.0f} times as many"
    )
    print(f"  equal on {(matrix[images, captions] == np.array(slow, np.float32)).sum():,} of {pairs:,} pairs")


if __name__ == "__main__":
    main()
