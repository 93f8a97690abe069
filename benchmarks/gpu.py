"""The torch backend on a GPU against the numpy backend: the same rankings, and how much sooner.

python benchmarks/gpu.py                       # 5,000 × 25,000, d = 512, both backends
python benchmarks/gpu.py --largest 100000      # and 100,000 × 500,000, d = 256, on the GPU alone
"""

from __future__ import annotations

import argparse
import time

import torch
from ranking import PER_IMAGE, world

from crosslens.rank import rank_both, scorer_of


def timed(backend: str, data: tuple, device: str | None = None) -> tuple[float, dict]:
    images, captions, relevance = data
    begin = time.perf_counter()
    rankings = rank_both(scorer_of(images, captions), relevance, backend=backend, device=device)
    return time.perf_counter() - begin, rankings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--largest", type=int, default=0, help="images in a larger run on the device alone")
    arguments = parser.parse_args()
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU here: nothing to compare (try --device cpu)")
        return
    small = world(300, 16)
    for backend, device in (("numpy", None), ("torch", arguments.device)):
        timed(backend, small, device)  # compile and warm up
    data = world(5_000, 512)
    rounds = [(timed("numpy", data), timed("torch", data, arguments.device)) for _ in range(3)]
    for (_, ours), (_, theirs) in rounds:
        same = all(ours[one].fingerprint == theirs[one].fingerprint for one in ours)
        assert same, "the backends disagree"
    name = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else arguments.device
    best = [min(one[side][0] for one in rounds) for side in (0, 1)]
    print(f"5,000 × 25,000, d = 512: numpy {best[0]:.2f} s, {name} {best[1]:.2f} s, {best[0] / best[1]:.1f}× faster")
    print("rankings of both backends are identical, scores and ties included")
    if arguments.largest:
        data = world(arguments.largest, 256)
        taken, _ = timed("torch", data, arguments.device)
        print(f"{arguments.largest:,} × {arguments.largest * PER_IMAGE:,}, d = 256: {taken:.1f} s")


if __name__ == "__main__":
    main()
