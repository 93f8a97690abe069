"""How much memory an evaluation takes whose vectors fit no memory: float16 shards on disk, read a block at a time.

    python benchmarks/inputs.py                             # 200,000 × 1,000,000, d = 512: a sample of 1,000 queries
    python benchmarks/inputs.py --images 2000000            # × 10,000,000 captions: 12 GB on disk
    python benchmarks/inputs.py --plan                      # complete rankings of growing size, and what follows
    python benchmarks/inputs.py --overhead                  # what reading blocks costs, beside vectors in memory

Every evaluation runs in a process of its own through ``crosslens.evaluate``: the dataset is read, the shards are
checked and hashed, queries ranked against the whole gallery, metrics and intervals computed. "Own" memory is the most
the process held beyond mapped files (RssAnon); pages of the shards that the system keeps in memory are given back when
others need them. Figures for people go to stderr, with --json those for programs to stdout. Files are removed in the
end; with --folder they are kept, and used again. Some of the ranks are compared with those counted from float64 cosines
of the stored numbers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

EACH = 5
"""Captions per image."""
SHARD = 1_000_000
"""Rows of a shard, as clip-retrieval writes them by default."""
CHECKED = 5
TARGET = (2_000_000, 10_000_000, 512)
LIMIT = 24 << 30


def write_world(folder: Path, images: int, dimension: int) -> None:
    """Vectors as of a model (captions scattered around their image) in float16 shards, and the dataset."""
    import polars as pl

    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((min(64, dimension), dimension), dtype=np.float32)
    for part in ("img_emb", "text_emb"):
        (folder / part).mkdir(parents=True)
    step = SHARD // EACH
    for number, start in enumerate(range(0, images, step)):
        size = min(step, images - start)
        latent = rng.standard_normal((size, len(mixing)), dtype=np.float32)
        noise = rng.standard_normal((size * EACH, len(mixing)), dtype=np.float32)
        np.save(folder / "img_emb" / f"img_emb_{number}.npy", (latent @ mixing).astype(np.float16))
        texts = (latent.repeat(EACH, 0) + np.float32(0.8) * noise) @ mixing
        np.save(folder / "text_emb" / f"text_emb_{number}.npy", texts.astype(np.float16))
    image = pl.Series("image", np.arange(images)).cast(pl.String)
    rows = pl.Series("image", np.arange(images).repeat(EACH)).cast(pl.String)
    captions = pl.DataFrame({"image": rows, "text": "a caption of image " + rows})
    captions.write_parquet(folder / "captions.parquet")
    pl.DataFrame({"image": image}).write_parquet(folder / "images.parquet")


def evaluate(folder: Path, queries: int | None) -> dict[str, Any]:
    """The evaluation, its times and its memory."""
    from crosslens.data import load_dataset, read_vectors_and_ids
    from crosslens.values import Embeddings

    own = PeakMemory()
    times = {}
    start = time.perf_counter()
    dataset = load_dataset(folder / "captions.parquet")
    times["dataset"] = time.perf_counter() - start
    after_dataset = own.peak
    start = time.perf_counter()
    vectors = {
        "images": Embeddings(dataset.image_ids, read_vectors_and_ids(folder / "img_emb", "image").vectors),
        "captions": Embeddings(dataset.caption_ids, read_vectors_and_ids(folder / "text_emb", "caption").vectors),
    }
    times["opening and checking"] = time.perf_counter() - start
    import crosslens as cl

    start = time.perf_counter()
    run = cl.evaluate(dataset, **vectors, queries=queries, metrics="Hit@1 Hit@10 MRR MedR", cache=False)
    times["evaluation"] = time.perf_counter() - start
    most = own.peak  # without the check, which is not a part of an evaluation
    checked = {name: wrong_ranks(vectors, run.rankings[name]) for name in ("i2t", "t2i")}
    return {
        "seconds": {name: round(value, 1) for name, value in times.items()},
        "own": most,
        "own after the dataset": after_dataset,
        "stored": sum(file.stat().st_size for file in folder.rglob("*.npy")),
        "wrong ranks": checked,
        "values": {name: [run[name].mean, *run[name].interval] for name in run},
    }


def wrong_ranks(vectors: dict[str, Any], ranking: Any) -> int:
    """Of some queries, how many relevant items do not have the rank that float64 cosines of the stored numbers give.

    Scores are cosines of unit vectors rounded to float32, themselves rounded once: so is the reference.
    """
    sides = ("images", "captions") if ranking.direction == "i2t" else ("captions", "images")
    asked, gallery = (vectors[side] for side in sides)
    row_of = {name: row for row, name in enumerate(asked.ids)}
    chosen = np.linspace(0, len(ranking.query_ids) - 1, CHECKED).astype(np.int64)
    queries = _unit(asked.rows(np.array([row_of[ranking.query_ids[row]] for row in chosen])))
    scores = np.concatenate(
        [
            (queries @ _unit(gallery.block(start, start + 50_000)).T).astype(np.float32)
            for start in range(0, len(gallery), 50_000)
        ],
        axis=1,
    )
    wrong = 0
    for number, row in enumerate(chosen):
        for pair in range(ranking.offsets[row], ranking.offsets[row + 1]):
            above = int((scores[number] > scores[number, ranking.relevant[pair]]).sum())
            wrong += int(above != ranking.above[pair])
    return wrong


def _unit(block: Array) -> Array:
    wide = block.astype(np.float64)
    return (wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True))).astype(np.float32).astype(np.float64)


class PeakMemory:
    """The most anonymous memory of this process so far, looked at a hundred times a second."""

    def __init__(self) -> None:
        self.peak = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            self.peak = max(self.peak, *(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")))
            time.sleep(0.01)


def refuse_little_room(folder: Path, images: int, dimension: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    needed, free = images * (1 + EACH) * (2 * dimension + 50), shutil.disk_usage(folder).free
    if needed > free:
        sys.exit(f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free: pass another --folder")


def measure(folder: Path, images: int, dimension: int, queries: int | None) -> dict[str, Any]:
    """The figures of an evaluation in a process of its own."""
    world = folder / f"{images}-{dimension}"
    if not world.exists():
        unfinished = world.with_suffix(".partial")
        shutil.rmtree(unfinished, ignore_errors=True)
        refuse_little_room(folder, images, dimension)
        start = time.perf_counter()
        write_world(unfinished, images, dimension)
        unfinished.rename(world)
        print(f"files written in {time.perf_counter() - start:,.0f} s", file=sys.stderr)
    words = [sys.executable, __file__, "--world", str(world), *(() if queries is None else ("--queries", str(queries)))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"images": images, "captions": images * EACH, "dimension": dimension, "queries": queries, **figures}


def shown(figures: dict[str, Any]) -> str:
    size = f"{figures['images']:,} × {figures['captions']:,}, d = {figures['dimension']}"
    asked = "all queries" if figures["queries"] is None else f"{figures['queries']:,} queries of each direction"
    seconds = ", ".join(f"{name} {value:,.0f} s" for name, value in figures["seconds"].items())
    return (
        f"{size}: {figures['stored'] / 1e9:.2f} GB of float16 on disk, {asked}\n"
        f"  {seconds}\n"
        f"  own memory at most {figures['own'] / 1e9:.2f} GB ({figures['own after the dataset'] / 1e9:.2f} GB with the "
        f"dataset alone); wrong ranks among those checked: {figures['wrong ranks']}"
    )


def plan(folder: Path, sizes: tuple[int, ...], dimension: int) -> dict[str, Any]:
    """Complete rankings of growing size, and the memory of the target that follows from them."""
    from crosslens.storage import VECTOR_BYTES

    measured = []
    for images in sizes:
        measured.append(measure(folder, images, dimension, None))
        print(shown(measured[-1]), file=sys.stderr, flush=True)
    # The vectors of both sides are held here; what is left grows with the number of items.
    rest = [each["own"] - 4 * dimension * (each["images"] + each["captions"]) for each in measured]
    items = [each["images"] + each["captions"] for each in measured]
    slope = (rest[-1] - rest[0]) / (items[-1] - items[0])
    images, captions, width = TARGET
    held = sum(size for size in (4 * width * images,) if size <= VECTOR_BYTES.value)
    total = rest[0] - slope * items[0] + slope * (images + captions) + held
    print(
        f"{slope:,.0f} bytes per image and caption beside the vectors; {images:,} × {captions:,}, d = {width}: "
        f"{held / 1e9:.1f} GB of vectors held, {total / 1e9:.1f} GB in all ({LIMIT / 1e9:.1f} GB allowed)",
        file=sys.stderr,
    )
    return {"measured": measured, "bytes per item": slope, "held": held, "total": total, "allowed": LIMIT}


def overhead(images: int, dimension: int, rounds: int) -> dict[str, float]:
    """How long ranking takes with both sides in memory, with one and with none, in turn; ratios of the same round."""
    import os

    from crosslens.rank import rank_both, scorer_of
    from crosslens.storage import ShardedBlocks
    from crosslens.values import Embeddings, Relevance

    rng = np.random.default_rng(0)
    latent = rng.standard_normal((images, dimension), dtype=np.float32)
    texts = latent.repeat(EACH, 0) + np.float32(2) * rng.standard_normal((images * EACH, dimension), dtype=np.float32)
    sides = [
        Embeddings([str(row) for row in range(len(side))], ShardedBlocks.of(np.array_split(side.astype(np.float16), 7)))
        for side in (latent, texts)
    ]
    owners, columns = np.arange(images).repeat(EACH), np.arange(images * EACH)
    relevance = Relevance.from_indices(sides[0].ids, sides[1].ids, owners, columns)
    limits = {"held": 1 << 40, "larger side streamed": 4 * dimension * images, "both streamed": 1}
    ratios: dict[str, list[float]] = {name: [] for name in limits}
    results = {}
    for number in range(rounds + 1):
        seconds = {}
        for name, limit in limits.items():
            os.environ["CROSSLENS_MAX_VECTOR_BYTES"] = str(limit)
            start = time.perf_counter()
            rankings = rank_both(scorer_of(*sides), relevance)
            seconds[name] = time.perf_counter() - start
            results[name] = [ranking.fingerprint for ranking in rankings.values()]
        assert results["held"] == results["larger side streamed"] == results["both streamed"]
        for name in limits if number else ():  # the first round compiles
            ratios[name].append(seconds[name] / seconds["held"])
    medians = {name: float(np.median(values)) for name, values in ratios.items()}
    for name, values in ratios.items():
        spread = f"({min(values):.2f} to {max(values):.2f})"
        print(f"{name}: {medians[name]:.2f} times as long as held {spread}", file=sys.stderr)
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200_000, help=f"with {EACH} captions each")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--queries", type=int, help="queries of each direction; default: 1000")
    parser.add_argument("--folder", type=Path, help="where the files are written, and kept; default: removed")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--world", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.world is not None:
        print(json.dumps(evaluate(given.world, given.queries)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if given.plan:
            figures: dict[str, Any] = plan(folder, (10_000, 20_000, 40_000), 16)
        elif given.overhead:
            figures = dict(overhead(4_000, given.dim, given.rounds))
        else:
            figures = measure(folder, given.images, given.dim, given.queries or 1_000)
            print(shown(figures), file=sys.stderr)
    if given.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
