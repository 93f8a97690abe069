"""How many scenes a second are drawn and written, in one process and on all cores.

python benchmarks/synth.py                  # 600 scenes, every task
python benchmarks/synth.py --images 5000
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from crosslens.synth import TASKS, generate, write_scenes


def per_task(images: int) -> None:
    for task in TASKS:
        start = time.perf_counter()
        size = sum(len(scene.png()) for scene in generate(images, [task], seed=1))
        rate = images / (time.perf_counter() - start)
        print(f"  {task:<12} {rate:7.0f} scenes/s   {size / images / 1024:5.1f} KB a picture")


def whole_sets(images: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        for workers in sorted({1, os.cpu_count() or 1}):
            start = time.perf_counter()
            write_scenes(Path(place) / str(workers), images, seed=1, workers=workers)
            rate = images / (time.perf_counter() - start)
            print(f"  {workers} process(es): {rate:.0f} scenes/s, 100,000 scenes in {100_000 / rate / 60:.0f} min")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=600)
    images = parser.parse_args().images
    print("drawn and compressed, one process")
    per_task(max(10, images // 12))
    print("written as a set, with annotations")
    whole_sets(images)


if __name__ == "__main__":
    main()
