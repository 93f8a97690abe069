"""How long pages of the explorer take over runs of 100,000 queries.

    python benchmarks/web.py
    python benchmarks/web.py --queries 10000 --rounds 3

Two runs over 20,000 images with five captions each; lists and ranks are drawn, no model runs. Each page is asked for
once after the server has started (it loads run and dataset then) and then --rounds times with other parameters; printed
are the first time, the median and the slowest of the others, in milliseconds, as a client without a network sees them,
and the time of the processor, which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fastapi.testclient import TestClient

from crosslens.values import Dataset, MetricValues, Ranking, Run
from crosslens.web import WebSettings, create_app

DEPTH, PER_IMAGE = 10, 5
NOUNS = ("dog", "cat", "bicycle", "train", "child", "boat", "horse", "umbrella", "table", "bird", "truck", "kite")
PLACES = ("street", "beach", "kitchen", "field", "station", "garden")


def drawn_dataset(images: int, rng: np.random.Generator) -> Dataset:
    """Captions of a few words, and a category for each image."""
    ids = [f"{number:08d}" for number in range(images)]
    words = rng.choice(NOUNS, (images * PER_IMAGE, 2))
    places = rng.choice(PLACES, images * PER_IMAGE)
    texts = [f"a {first} and a {second} in the {place}" for (first, second), place in zip(words, places, strict=True)]
    captions = [f"{image}#{number}" for image in ids for number in range(PER_IMAGE)]
    frame = pl.DataFrame({"image": ids, "category": rng.choice(PLACES, images).tolist()})
    own = [image for image in ids for _ in range(PER_IMAGE)]
    return Dataset("drawn", frame, pl.DataFrame({"caption": captions, "image": own, "text": texts}))


def drawn_run(dataset: Dataset, name: str, rng: np.random.Generator) -> Run:
    """Ranks as of a fair model, lists that agree with them."""
    queries, items = len(dataset.caption_ids), len(dataset.image_ids)
    own = dataset.caption_image
    ranks = np.minimum(rng.geometric(0.15, queries), items)
    top = rng.integers(0, items, (queries, DEPTH))
    inside = ranks <= DEPTH
    top[np.flatnonzero(inside), ranks[inside] - 1] = own[inside]
    scores = np.sort(rng.random((queries, DEPTH)).astype(np.float32), axis=1)[:, ::-1]
    zeros = np.zeros(queries, np.int64)
    ranking = Ranking(
        "t2i", dataset.caption_ids, dataset.image_ids, top, scores, np.full(queries, items), np.arange(queries + 1),
        own, np.ones(queries, np.float32), ranks - 1, zeros, zeros,
    )  # fmt: skip
    per_query = {"Hit@1": ranks == 1, "Hit@5": ranks <= 5, "Hit@10": ranks <= 10, "MRR": 1 / ranks, "MedR": ranks}
    values = {}
    for metric, numbers in per_query.items():
        array = numbers.astype(np.float64)
        mean = float(np.median(array) if metric == "MedR" else array.mean())
        statistic: Any = "median" if metric == "MedR" else "mean"
        values[f"t2i/{metric}"] = MetricValues(
            f"t2i/{metric}", dataset.caption_ids, array, own, mean, mean - 0.01, mean + 0.01, statistic
        )
    captions = dataset.captions.join(dataset.images, on="image", how="left", maintain_order="left")
    provenance = {"dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint}}
    recipe = 'version = 1\n[dataset]\nsource = "../data"\n'
    return Run(name, values, {"t2i": ranking}, {"t2i": captions.drop("caption")}, provenance, recipe)


def timed(client: TestClient, address: str) -> tuple[float, float]:
    """Milliseconds until the whole answer is there, and those of the processor meanwhile."""
    start, busy = time.perf_counter(), time.process_time()
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.text[:300])
    return 1000 * (time.perf_counter() - start), 1000 * (time.process_time() - busy)


def pages(client: TestClient, queries: int) -> dict[str, Callable[[int], str]]:
    """Name → the address of a round."""
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    names = ("Hit@1", "MRR", "MedR", "rank")
    return {
        "leaderboard": lambda n: f"/?name=model&sort=t2i/Hit@{(1, 5, 10)[n % 3]}",
        "queries, first page": lambda n: f"/runs/model-a?offset={25 * n}",
        "queries, deep page": lambda n: f"/runs/model-a?offset={queries // 2 + 25 * n}",
        "queries, sorted by a metric": lambda n: (
            f"/runs/model-a?sort={names[n % 4]}&descending={n % 2 == 0}&offset={n}"
        ),
        "queries, text search": lambda n: f"/runs/model-a?search={NOUNS[n % len(NOUNS)]}+{PLACES[n % len(PLACES)]}",
        "queries, group, failed, sorted": lambda n: (
            f"/runs/model-a?group=category&value={PLACES[n % len(PLACES)]}&outcome=failed&sort=MRR"
        ),
        "one query, two runs": lambda n: (
            f"/runs/model-a/query?id={(n * 997) % (queries // PER_IMAGE):08d}%230&sort=MRR&at={n}"
        ),
        "dataset": lambda n: f"/datasets/{dataset}?offset={24 * n}",
        "dataset, text search": lambda n: f"/datasets/{dataset}?search={NOUNS[n % len(NOUNS)]}",
        "one image, who retrieves it": lambda n: (
            f"/datasets/{dataset}/image?id={(n * 997) % (queries // PER_IMAGE):08d}"
        ),
        "likely missing positives": lambda n: (
            f"/api/runs/model-a/likely-positives?id={(n * 997) % (queries // PER_IMAGE):08d}%230"
        ),
        "why one query failed": lambda n: f"/runs/model-a/explanation?id={(n * 997) % (queries // PER_IMAGE):08d}%230",
        "comparison": lambda n: f"/compare?run=model-a&run=model-b&metric={('', 'Hit', 'MRR', 'Hit@1')[n % 4]}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    dataset = drawn_dataset(arguments.queries // PER_IMAGE, rng)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "runs"
        dataset.save(folder / "data")
        for name in ("model-a", "model-b"):
            drawn_run(dataset, name, rng).save(folder / name)
        app = create_app(WebSettings(folder, cache=Path(work) / "cache"))
        client = TestClient(app, base_url="http://127.0.0.1:8000")
        for work in app.state.services.start_work:  # what a server does in the background when it starts
            work()
        print(f"{arguments.queries:,} queries; milliseconds, behind the bar those of the processor")
        print(f"{'page':34}{'first':>8}{'median':>8}{'slowest':>9} |{'first':>8}{'median':>8}{'slowest':>9}")
        for name, address in pages(client, arguments.queries).items():
            first = timed(client, address(0))
            others = zip(*(timed(client, address(number)) for number in range(1, arguments.rounds + 1)), strict=True)
            columns = [
                f"{begin:8.0f}{statistics.median(times):8.0f}{max(times):9.0f}"
                for begin, times in zip(first, others, strict=True)
            ]
            print(f"{name:34}{' |'.join(columns)}", flush=True)


if __name__ == "__main__":
    main()
