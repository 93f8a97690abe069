"""Measured runs of this machine, from which plans are made.

    python -m crosslens.planning.calibration --device cuda --name h200 > h200.json

prints the entry of a device for ``rates.json``. For ranking alone, which is all that a GPU is measured for, numpy and
torch are enough: nothing else of the package is loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Clock = Callable[[], float]

PER_IMAGE = 5
_ROUNDS = 3
_SIZES = ((500, 64), (1000, 512), (2000, 64), (2000, 256), (1500, 1024), (4000, 64), (3000, 512))
"""Images and dimensions: small and large in both, so that what grows with either can be told apart."""
_LARGER = 16
"""How many times as many images a GPU is measured with."""
_NOISE = 0.27
_MEMORY_SIZES = (1000, 16_000)
_MEMORY_DIM = 16


def calibrate_device(
    device: str = "cpu", *, threads: int | None = None, sizes: Sequence[tuple[int, int]] | None = None,
    rounds: int = _ROUNDS, memory: bool = True, report: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """The entry of this machine's ``device`` (``cpu``, ``cuda``, …): what was measured, the best of some rounds each.

    With one thread the clock counts CPU seconds: those of an idle core, however busy the machine is.
    """
    shapes = sizes or [(images * (1 if device == "cpu" else _LARGER), dim) for images, dim in _SIZES]
    ranking, evaluation = [], []
    for images, dim in shapes:
        run = measure_run(images, dim, device, threads=threads, rounds=rounds)
        shape = {"images": images, "captions": images * PER_IMAGE, "dim": dim}
        ranking.append({**shape, "seconds": run["ranking"]})
        evaluation += [{**shape, "seconds": run["evaluation"]}] if "evaluation" in run else []
        report(f"ranking {images:,} × {shape['captions']:,}, d = {dim}: {run['ranking']:.3f} s")
    label, capacity = device, None
    if device.startswith("cuda"):
        import torch

        properties = torch.cuda.get_device_properties(torch.device(device))
        label, capacity = str(properties.name), int(properties.total_memory)
    elif device == "cpu":
        from crosslens.core import available_cores

        cores = threads or available_cores()
        label = f"{cores} CPU core{'s' * (cores > 1)}, {platform.machine()}"
    measured = [memory_of(images) for images in _MEMORY_SIZES] if memory and device == "cpu" else []
    return {"about": label, "memory_bytes": capacity, "ranking": ranking, "evaluation": evaluation, "memory": measured}


def measure_run(
    images: int, dim: int, device: str = "cpu", *, threads: int | None = None, rounds: int = _ROUNDS
) -> dict[str, float]:
    """Seconds of ranking so many images with five captions each and, on a CPU, of what follows; the best of rounds."""
    data = _vectors(images, dim)
    clock = time.process_time if device == "cpu" and threads == 1 else time.perf_counter
    _ranked(*_vectors(200, 16), device, threads)  # imports and compiles before the clock starts
    times = {"ranking": min(_seconds(lambda: _ranked(*data, device, threads), clock) for _ in range(rounds))}
    if device == "cpu":
        from crosslens.metrics import measure
        from crosslens.values import Run

        # What an evaluation does beside ranking: metrics, intervals, and the run folder; from a ranking made before.
        clusters = {"i2t": np.arange(images), "t2i": np.repeat(np.arange(images), PER_IMAGE)}
        rankings = _ranked(*data, "cpu", None)

        def finish(folder: str) -> None:
            Run("plan", measure(rankings, clusters), rankings).save(Path(folder) / "run")

        seconds = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(_seconds(partial(finish, folder), clock))
        times["evaluation"] = min(seconds)
    return times


def memory_of(images: int) -> dict[str, int]:
    """The most memory that evaluating so many images takes, in a process of its own."""
    words = [sys.executable, "-m", "crosslens.planning.calibration", "--memory", str(images), str(_MEMORY_DIM)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    peak = int(process.stdout.split()[-1])
    return {"images": images, "captions": images * PER_IMAGE, "dim": _MEMORY_DIM, "bytes": peak}


def _peak_of_evaluation(images: int, dim: int) -> int:
    """Evaluate, and return the most memory that this process had meanwhile."""
    import resource

    _evaluate(200, dim)  # imports and compiles, which takes memory of its own
    with contextlib.suppress(OSError):  # not Linux: the peak is then the one since the start
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    _evaluate(images, dim)
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _evaluate(images: int, dim: int) -> None:
    from crosslens.pipeline import evaluate
    from crosslens.values import Dataset, Embeddings

    pictures, texts = _vectors(images, dim)
    dataset = Dataset.of({f"i{n}": [f"{n} {m}" for m in range(PER_IMAGE)] for n in range(images)})
    vectors = Embeddings(dataset.image_ids, pictures), Embeddings(dataset.caption_ids, texts)
    with tempfile.TemporaryDirectory() as folder:
        evaluate(dataset, images=vectors[0], captions=vectors[1], output=Path(folder) / "run")


def _vectors(images: int, dim: int) -> tuple[Any, Any]:
    """Vectors of a middling model: five captions scattered around each image."""
    random = np.random.default_rng(0)
    pictures = random.standard_normal((images, dim), dtype=np.float32)
    texts = np.repeat(pictures, PER_IMAGE, axis=0)
    texts += random.standard_normal(texts.shape, dtype=np.float32) * np.float32(_NOISE * dim**0.5)
    return pictures, texts


def _ranked(pictures: Any, texts: Any, device: str, threads: int | None) -> Any:
    from crosslens.rank import rank_both, scorer_of
    from crosslens.values import Embeddings, Relevance

    images = Embeddings(tuple(f"i{number}" for number in range(len(pictures))), pictures)
    captions = Embeddings(tuple(f"c{number}" for number in range(len(texts))), texts)
    rows = np.repeat(np.arange(len(pictures)), PER_IMAGE)
    relevance = Relevance.from_indices(images.ids, captions.ids, rows, np.arange(len(texts)))
    backend: dict[str, Any] = {"threads": threads} if device == "cpu" else {"backend": "torch", "device": device}
    return rank_both(scorer_of(images, captions), relevance, **backend)


def _seconds(function: Callable[[], Any], clock: Clock) -> float:
    begin = clock()
    function()
    return round(clock() - begin, 6)


def main(words: Sequence[str] | None = None) -> None:
    """Print the entry of a device, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--name", help="what the device is called in plans")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--threads", type=int, help="of a CPU; with 1, CPU seconds are counted")
    parser.add_argument("--memory", type=int, nargs=2, metavar=("IMAGES", "DIM"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.memory:
        print(_peak_of_evaluation(*arguments.memory))
        return
    entry = calibrate_device(
        arguments.device,
        threads=arguments.threads,
        rounds=arguments.rounds,
        report=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(json.dumps({arguments.name or arguments.device: entry}, indent=1))


if __name__ == "__main__":
    main()
