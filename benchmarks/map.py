"""The map of embeddings at a million points: projection, bytes, first paint and frames in Chromium.

    python benchmarks/map.py --points 1000000

The points are drawn at random around 40 centres. Chromium runs headless; without a graphics card it draws in software,
which is the slowest case. A frame is timed from a movement of the view until the next frame begins.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, RunVectors, run_recipe
from crosslens.values import Dataset, Embeddings, Run
from crosslens.web import WebSettings, create_app
from crosslens.web.map.maps import EmbeddingMap, Maps, draw
from crosslens.web.map.projection import PCA
from crosslens.web.map.routes import pack_points


def clustered(count: int, dimension: int, start: int = 0) -> Embeddings:
    stream = np.random.default_rng(start)
    centres = np.random.default_rng(7).normal(size=(40, dimension)).astype(np.float32)
    vectors = centres[stream.integers(0, 40, count)]
    vectors += stream.normal(size=vectors.shape).astype(np.float32) * 0.5
    return Embeddings(tuple(f"{start}-{row}" for row in range(count)), vectors)


def small_run(folder: Path) -> Run:
    """A run whose recipe leads to stored vectors: what the large map is filed under."""
    dataset = Dataset.of({f"image{n}": [f"caption {n}", f"another caption {n}"] for n in range(50)})
    dataset.save(folder / "data")
    for name, ids in (("images", dataset.image_ids), ("captions", dataset.caption_ids)):
        Embeddings(ids, np.random.default_rng(len(ids)).normal(size=(len(ids), 8))).save(folder / "vectors" / name)
    inputs = InputOptions(
        image_embeddings=str(folder / "vectors/images"), caption_embeddings=str(folder / "vectors/captions")
    )
    options = EvaluateOptions(metrics=("Hit@1", "MRR"), resamples=10)
    run_recipe(Recipe(str(folder / "data"), inputs=inputs, options=options), folder / "run")
    return Run.load(folder / "run")


def timed(label: str, started: float) -> None:
    print(f"{label:<58}{time.perf_counter() - started:>9.2f} s", flush=True)


def large_map(points: int, dimension: int, key: str) -> EmbeddingMap:
    images = points // 6
    vectors = RunVectors(clustered(images, dimension), clustered(points - images, dimension, 1), None)
    started = time.perf_counter()
    drawn = draw(key, vectors, PCA)
    timed(f"principal components and regions, {points:,} × {dimension}", started)
    return drawn


def look(address: str, moves: int, screenshot: Path | None) -> None:
    from playwright.sync_api import sync_playwright

    executable = os.environ.get("CROSSLENS_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(300_000)
        started = time.perf_counter()
        page.goto(f"{address}/map/run?method=pca")
        page.wait_for_selector("#map[data-milliseconds]")
        timed("page opened until all points are painted", started)
        print(
            f"{'  of which inside the frame':<58}{int(page.get_attribute('#map', 'data-milliseconds')) / 1000:>9.2f} s"
        )
        page.wait_for_selector("#map[data-state=drawn]")
        times, sample = page.evaluate(
            """(count) => new Promise((resolve) => {
                addEventListener("message", ({ data }) => {
                    if (data.type === "measured") resolve([data.times, data.sample]);
                });
                document.getElementById("frame").contentWindow.postMessage({ type: "measure", count }, "*");
            })""",
            moves,
        )
        times = sorted(times[len(times) // 2 :])  # the first ones choose how many points are drawn
        print(f"{'points drawn while the view moves':<58}{sample:>9,}")
        print(f"{'frame while the view moves: median, 95th percentile':<58}"
              f"{statistics.median(times):>6.0f}, {times[int(0.95 * len(times))]:.0f} ms")  # fmt: skip
        print(page.inner_text("#status"))
        started = time.perf_counter()
        page.select_option("#colour", "cluster")
        page.wait_for_selector("#map[data-state=drawing]")
        page.wait_for_selector("#map[data-state=drawn]")
        timed("colour by another column", started)
        if screenshot is not None:
            page.wait_for_timeout(2500)
            page.screenshot(path=str(screenshot))
        browser.close()


def serve(folder: Path, cache: Path) -> tuple[uvicorn.Server, str]:
    app: Any = create_app(WebSettings(folder, cache=cache))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return server, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--moves", type=int, default=30)
    parser.add_argument("--screenshot", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "runs", Path(name) / "cache"
        maps = Maps(cache)
        key = maps._stated_key(small_run(folder), PCA)
        assert key is not None
        drawn = large_map(arguments.points, arguments.dimension, key)
        started = time.perf_counter()
        maps.store.save(drawn)
        timed("stored", started)
        plain = pack_points(drawn)
        started = time.perf_counter()
        compressed = gzip.compress(plain, 1)
        timed(f"compressed once: {len(plain) / 1e6:.1f} → {len(compressed) / 1e6:.1f} MB", started)
        server, address = serve(folder, cache)
        look(address, arguments.moves, arguments.screenshot)
        server.should_exit = True


if __name__ == "__main__":
    main()
