"""Commands with vectors beyond the limit of memory: none of them holds them all, and results are the same.

What counts as memory is the most a process held beyond mapped files (RssAnon): pages of files that the system keeps in
memory are given back when others need them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.commands import Call, call as call

LIMIT = "CROSSLENS_MAX_VECTOR_BYTES"
SHARDS = 8
VECTORS = ("--dataset", "captions.parquet", "--image-embeddings", "img", "--caption-embeddings", "text")
METRICS = ("--metrics", "Hit@1 MRR", "--resamples", "50")
COMMANDS: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", *VECTORS, *METRICS),
    "a sample of queries": ("evaluate", *VECTORS, *METRICS, "--queries", "30"),
    "graded by φ": ("evaluate", *VECTORS, "--metrics", "NCS[embed:vectors:text]@5", "--resamples", "50"),
    "similarity": ("similarity", *VECTORS[:2], "--phi", "embed:vectors:text", "-o", "out.npy"),
    "similarity of pairs": ("similarity", *VECTORS[:2], "--phi", "embed-max:vectors:text", "--pairs", "pairs.csv",
                            "-o", "out.csv"),
    "neighbours of captions": ("analyze", "discriminability", *VECTORS, "--temperature", "0.05", "--k", "5"),
    "neighbours of images": ("analyze", "polysemy", *VECTORS, "--sizes", "1,5", "--resamples", "50", "--no-cider"),
    "robustness": ("robustness", *VECTORS, "--variants", "variants", *METRICS),
}  # fmt: skip


def write_world(folder: Path, images: int, each: int, width: int) -> Path:
    """Captions near their image in float16 shards, a variant of them, and pairs to compare."""
    rng = np.random.default_rng(0)
    names = [f"i{image}" for image in range(images) for _ in range(each)]
    texts = [f"caption {number}" for number in range(len(names))]
    pl.DataFrame({"image": names, "text": texts}).write_parquet(folder / "captions.parquet")
    pictures = rng.standard_normal((images, width), np.float32)
    for name in ("img", "text", "variants/changed"):
        (folder / name).mkdir(parents=True)
    np.save(folder / "img" / "img_0.npy", pictures.astype(np.float16))
    for number, part in enumerate(np.array_split(pictures, SHARDS)):
        repeated = part.repeat(each, 0)
        shard = (repeated + 3 * rng.standard_normal(repeated.shape, np.float32)).astype(np.float16)
        np.save(folder / "text" / f"text_{number}.npy", shard)
        changed = folder / "variants" / "changed" / f"v_{number}.npy"
        if number:  # the variant differs in the captions of the first shard, and takes little room
            os.link(folder / "text" / f"text_{number}.npy", changed)
        else:
            np.save(changed, shard + shard[::-1])
    pairs = [(f"i{number % images}", f"i{number // each}#{number % each}") for number in range(0, len(names), 23)]
    pl.DataFrame(pairs, schema=["image", "caption"], orient="row").write_csv(folder / "pairs.csv")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_the_limit_changes_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, name: str) -> None:
    monkeypatch.chdir(write_world(tmp_path, 16, 4, 24))
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    results, files = [], []
    for limit in ("1", "1000000000"):
        monkeypatch.setenv(LIMIT, limit)
        done = call(*COMMANDS[name], "--json")
        assert done.code == 0, done.err
        results.append(done.json)
        files.append({file.name: file.read_bytes() for file in tmp_path.glob("out.*")})
        for file in tmp_path.glob("out.*"):
            file.unlink()
    assert results[0] == results[1]
    assert files[0] == files[1]


BASE = 150 << 20
"""What Python and the packages take."""
WATCHED = """
import sys, threading, time
from pathlib import Path
from crosslens.cli import main

peak = 0
def watch():
    global peak
    while True:
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
        peak = max(peak, int(line.split()[1]) << 10)
        time.sleep(0.002)

threading.Thread(target=watch, daemon=True).start()
code = main(sys.argv[1:])
print(peak, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def large_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captions of 491 MB in float16, twice that in float32."""
    return write_world(tmp_path_factory.mktemp("large"), 1_200, 50, 4_096)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "graded by φ"])  # holds the matrix of φ
def test_the_vectors_are_never_all_in_memory(large_world: Path, tmp_path: Path, name: str) -> None:
    words = [str(tmp_path / word) if word.startswith("out.") else word for word in COMMANDS[name]]
    environment = {**os.environ, LIMIT: str(16 << 20), "CROSSLENS_CACHE": str(tmp_path)}
    script = [sys.executable, "-c", WATCHED, *words, "--json"]
    done = subprocess.run(script, cwd=large_world, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    peak = int(done.stderr.splitlines()[-1])
    stored = sum(file.stat().st_size for file in (large_world / "text").iterdir())
    print(f"{name}: {peak / 1e6:.0f} MB")
    assert peak < BASE + 0.75 * stored, f"{peak / 1e6:.0f} MB"
