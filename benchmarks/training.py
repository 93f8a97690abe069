"""Seconds of a training step by part, the price of SAM's margins, and the time of a whole training.

    python benchmarks/training.py --data flickr8k                 # measures some steps, extrapolates to 100 %
    python benchmarks/training.py --data flickr8k --full          # trains at 100 %, about as long as it says
    python benchmarks/training.py --data flickr8k --minutes NAME  # how long recipes take, for `crosslens train --list`

Steps of the recipe with the fixed margin and of the one with SAM alternate, so that a busy machine slows both alike.
Figures are medians over steps, in wall time and in CPU time: on a machine that others use, only the latter repeats.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from crosslens.engine import SilentProgress, torch_device
from crosslens.train import ImageFeatures, TrainingData, load_features, load_training_recipe, train_model
from crosslens.train.captions import CaptionSource
from crosslens.train.processes import Group
from crosslens.train.training import Training

FIXED, SAM = "flickr8k-vse-triplet", "flickr8k-vse-sam-random"
Seconds = tuple[float, float]
"""Wall and CPU."""


class Stopwatch:
    """Times of named parts; a part's time is without that of the parts inside it."""

    def __init__(self) -> None:
        self.times: dict[str, list[Seconds]] = defaultdict(list)
        self._inside: list[list[float]] = []

    def time(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls are measured as ``part``."""

        def measured(*arguments: Any, **options: Any) -> Any:
            self._inside.append([0.0, 0.0])
            start = time.perf_counter(), time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                spent = time.perf_counter() - start[0], time.process_time() - start[1]
                inner = self._inside.pop()
                self.times[part].append((spent[0] - inner[0], spent[1] - inner[1]))
                for outer in self._inside[-1:]:
                    outer[0] += spent[0]
                    outer[1] += spent[1]

        return measured

    def wrap(self, owner: Any, name: str, part: str) -> None:
        """Measure a method of an object or of a class."""
        setattr(owner, name, self.time(part, getattr(owner, name)))


def prepared(recipe_name: str, data: TrainingData, arguments: argparse.Namespace, folder: Path) -> Any:
    """A training that stands before its first step."""
    settings = {"fraction": arguments.fraction, "seed": 0, "threads": arguments.threads, "device": arguments.device}
    recipe = load_training_recipe(recipe_name).with_settings(settings)
    group = Group(device=torch_device(arguments.device))
    return Training(recipe, data, folder / f"{recipe_name}.safetensors", SilentProgress(), None, group)


def measured_parts(training: Any, watch: Stopwatch) -> None:
    """Let the parts of a training's steps be measured."""
    watch.wrap(training.model, "encode_captions", "text tower")
    watch.wrap(training.model, "encode_images", "image")
    watch.wrap(training.model, "scores", "scores")
    watch.wrap(training, "loss", "loss")
    if training.phi is not None:
        watch.wrap(training.phi, "pairs", "φ")
    watch.wrap(training.optimizer, "step", "optimiser")


def median(times: list[Seconds]) -> Seconds:
    """Of wall and CPU time each."""
    return statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times)


def take_steps(trainings: dict[str, Any], watches: dict[str, Stopwatch], count: int) -> dict[str, list[Seconds]]:
    """Steps of all trainings in turn; the first of each is not counted."""
    spent: dict[str, list[Seconds]] = {name: [] for name in trainings}
    backward = torch.Tensor.backward
    batches = ImageFeatures.batch, CaptionSource.batch
    for step in range(count + 1):
        for name, training in trainings.items():
            torch.Tensor.backward = watches[name].time("backward", backward)  # type: ignore[method-assign]
            ImageFeatures.batch = watches[name].time("features", batches[0])  # type: ignore[method-assign]
            CaptionSource.batch = watches[name].time("words", batches[1])  # type: ignore[method-assign]
            start = time.perf_counter(), time.process_time()
            training._take(step)
            training.step = step + 1
            if step:
                spent[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    torch.Tensor.backward = backward  # type: ignore[method-assign]
    ImageFeatures.batch, CaptionSource.batch = batches  # type: ignore[method-assign]
    return spent


def report(spent: dict[str, list[Seconds]], watches: dict[str, Stopwatch]) -> None:
    """Print the parts of a step, and the price of SAM."""
    for name, times in spent.items():
        step = median(times)
        print(f"{name}: a step takes {1000 * step[0]:.1f} ms, {1000 * step[1]:.1f} ms of CPU time")
        for part, (wall, cpu) in parts_of(watches[name], len(times)).items():
            print(f"  {part:12} {1000 * wall:8.2f} ms {1000 * cpu:8.2f} ms CPU {100 * cpu / step[1]:5.1f} %")
    ratio = median(spent[SAM])[1] / median(spent[FIXED])[1]
    share = parts_of(watches[SAM], len(spent[SAM]))["φ"][1] / median(spent[SAM])[1]
    print(f"a step with SAM takes {ratio:.3f} of one without (CPU time); φ is {100 * share:.1f} % of it")


def parts_of(watch: Stopwatch, steps: int) -> dict[str, Seconds]:
    """Seconds per step of each part, which a step may call several times."""
    seconds = {}
    for part, times in watch.times.items():
        calls = round(len(times) / (steps + 1))
        wall, cpu = median(times)
        seconds[part] = (wall * calls, cpu * calls)
    return seconds


def whole_time(function: Callable[[], None]) -> Seconds:
    """Of one call."""
    start = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def extrapolate(training: Any, step: Seconds, validation: Seconds, checkpoint: Seconds) -> None:
    """Print how long a training at 100 % would take."""
    steps = len(training.data.train.dataset.texts) // training.plan.size
    epochs = training.settings.epochs
    print(f"a validation takes {validation[0]:.2f} s ({validation[1]:.2f} s CPU), a checkpoint {checkpoint[0]:.2f} s")
    for unit, which in (("wall", 0), ("CPU", 1)):
        epoch = steps * step[which] + validation[which] + checkpoint[which]
        print(
            f"{FIXED} at 100 %: {epoch:.1f} s of {unit} time per epoch of {steps} steps, "
            f"{epochs * epoch / 60:.1f} minutes for {epochs} epochs"
        )


def expected_minutes(name: str, imported: float, arguments: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Processor minutes of a recipe, from some steps and one validation: as it is, and on a tenth of the images.

    ``imported``: the seconds that importing torch and the like took.
    """
    start = time.process_time()
    recipe = load_training_recipe(name)
    data = load_features(recipe.layout, arguments.data, recipe.data)
    arguments.fraction = min(recipe.settings.fraction, 0.1)
    training = prepared(name, data, arguments, folder)
    prepared_in = time.process_time() - start
    step = median(take_steps({name: training}, {name: Stopwatch()}, arguments.steps)[name])[1]
    validation = whole_time(training._validate)[1]
    minutes = {}
    for label, fraction in (("recipe", recipe.settings.fraction), ("tenth", 0.1)):
        images = max(1, round(fraction * len(data.train.features)))
        per_epoch = images * len(data.train.dataset.texts) // len(data.train.features) // training.plan.size
        steps = recipe.settings.steps(per_epoch)
        validations = -(-steps // (per_epoch * recipe.settings.validate_every)) + 1  # and the test split, as large
        minutes[label] = round((imported + prepared_in + steps * step + validations * validation) / 60, 1)
    return minutes


def record_minutes(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure recipes one by one; each is written into the package's record as soon as it is measured."""
    imported = time.process_time()
    arguments.threads = 1
    torch.set_num_threads(1)
    file = Path(str(files("crosslens.train").joinpath("minutes.json")))
    for name in arguments.minutes:
        minutes = expected_minutes(name, imported, arguments, folder)
        record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"recipes": {}}
        record["machine"] = arguments.machine
        record["recipes"] = dict(sorted({**record["recipes"], name: minutes}.items()))
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {minutes['recipe']} processor minutes, {minutes['tenth']} on a tenth of the images", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fraction", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true", help="train at 100 %%, too")
    parser.add_argument("--minutes", nargs="+", metavar="RECIPE", help="record how long these take, on one thread")
    parser.add_argument("--machine", default=platform.machine(), help="with --minutes: what the machine is, in words")
    arguments = parser.parse_args()
    if arguments.minutes:
        with tempfile.TemporaryDirectory() as name:
            record_minutes(arguments, Path(name))
        return
    recipe = load_training_recipe(FIXED)
    data = load_features(recipe.layout, arguments.data, recipe.data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.threads:
            torch.set_num_threads(arguments.threads)
        trainings = {kind: prepared(kind, data, arguments, folder) for kind in (FIXED, SAM)}
        watches = {kind: Stopwatch() for kind in trainings}
        for kind, training in trainings.items():
            measured_parts(training, watches[kind])
        spent = take_steps(trainings, watches, arguments.steps)
        report(spent, watches)
        validation = whole_time(trainings[FIXED]._validate)
        checkpoint = whole_time(trainings[FIXED]._save)
        extrapolate(trainings[FIXED], median(spent[FIXED]), validation, checkpoint)
        if arguments.full:
            settings = {"threads": arguments.threads, "device": arguments.device}
            start = time.perf_counter(), time.process_time()
            trained = train_model(recipe.with_settings(settings), data, folder / "full")
            wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
            print(
                f"measured: {wall / 60:.1f} minutes, {cpu / 60:.1f} of CPU time; test Rsum {trained.test['Rsum']:.1f}"
            )


if __name__ == "__main__":
    main()
