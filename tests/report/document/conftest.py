"""A small study with pictures, two runs with recipes, and the results of stages as their commands print them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.pipeline import StageResult

NASTY = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> \"quoted\" & 'so' שלום"
IMAGES, PER_IMAGE = 24, 3
COLOURS = ("red", "green", "blue", "grey")
METRICS = "Hit@1 Hit@5 Hit@10 Recall@1 Recall@5 CappedRecall@5 MedR mAP@R NCS[cider]@5"


@dataclass(frozen=True)
class Study:
    """Folders of two runs, the dataset behind them, and the scores that they were made from."""

    folder: Path
    dataset: cl.Dataset
    scores: dict[str, np.ndarray[Any, Any]]

    @property
    def runs(self) -> list[Path]:
        return [self.folder / "runs" / name for name in self.scores]


def drawn_pictures(folder: Path, names: list[str], side: int = 64) -> None:
    """Noise in one colour each: pictures that do not compress well."""
    from PIL import Image

    random = np.random.default_rng(5)
    folder.mkdir(parents=True)
    for row, name in enumerate(names):
        pixels = random.integers(0, 255, (side, side, 3), np.uint8)
        pixels[..., row % 3] = 255
        Image.fromarray(pixels).save(folder / name, compress_level=0)


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    ids = [f"picture {number:02}" for number in range(IMAGES)]
    drawn_pictures(folder / "photos", [f"{image}.png" for image in ids])
    captions = {
        image: [f"a {COLOURS[row % 4]} picture of {row}", f"picture {row}, mostly {COLOURS[row % 4]}", NASTY]
        for row, image in enumerate(ids)
    }
    dataset = cl.Dataset.of(
        captions,
        images={"file": [f"{image}.png" for image in ids], "colour": [COLOURS[row % 4] for row in range(IMAGES)]},
        name="colours",
    )
    dataset.save(folder / "dataset")
    random = np.random.default_rng(1)
    owner = np.repeat(np.arange(IMAGES), PER_IMAGE)
    scores = {}
    for name, noise in (("first model", 0.55), ("second <b>model", 0.45)):
        matrix = (np.arange(IMAGES)[:, None] == owner[None, :]) + noise * random.standard_normal((IMAGES, len(owner)))
        matrix[:, owner % 4 == 3] = random.standard_normal((IMAGES, int((owner % 4 == 3).sum())))  # grey is hard
        scores[name] = matrix.astype(np.float32)
        np.save(folder / f"{len(scores)}.npy", scores[name])
        words = ["evaluate", "--dataset", folder / "dataset", "--scores", folder / f"{len(scores)}.npy", "--metrics",
                 METRICS, "--resamples", "200", "--name", name, "-o", folder / "runs" / name]  # fmt: skip
        command(*words)
    return Study(folder, dataset, scores)


def command(*words: str | Path) -> str:
    """What a command prints."""
    out, told = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(told):
        code = main([str(word) for word in words])
    assert code == 0, told.getvalue()
    return out.getvalue()


@dataclass(frozen=True)
class Drawn:
    """Drawn scenes, a run on them, and the result of every stage, as its command prints it with ``--json``."""

    folder: Path
    run: Path
    results: tuple[StageResult, ...]


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawn]:
    """Takes a while: for slow tests."""
    folder = tmp_path_factory.mktemp("drawn")
    scenes, run = folder / "scenes", folder / "tiny"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSLENS_CACHE", str(folder / "cache"))
        command("synth", "--images", "40", "--seed", "7", "-o", scenes)
        source = ("--dataset", scenes)
        metrics = "Hit@1 Hit@5 Hit@10 Recall@1 Recall@5 CappedRecall@5 MRR NCS[cider]@10"
        table = folder / "difficulty" / "pairs.parquet"
        table.parent.mkdir()
        commands: dict[str, tuple[Any, ...]] = {
            "evaluate": ("evaluate", *source, "--model", "tiny", "--metrics", metrics, "-o", run),
            "robustness": ("robustness", *source, "--model", "tiny", "--perturbations", "char_swap,shuffle_all_words",
                           "--permutations", "200", "-o", folder / "robustness"),
            "hard-negatives": ("hard-negatives", *source, "--perturb", "antonym,number_change", "--model", "tiny"),
            "missing-positives": ("missing-positives", *source, "--phi", "cider"),
            "granularity": ("analyze", "granularity", *source),
            "label-quality": ("analyze", "labels", run),
            "polysemy": ("analyze", "polysemy", *source, "--model", "tiny", "--sizes", "1,5,10"),
            "difficulty": ("analyze", "difficulty", "--runs", run, "--calibration", "self", "-o", table),
            "curve": ("curve", run, "--m", "1,2,5"),
            "explain": ("explain", run, "-o", folder / "explanations"),
        }  # fmt: skip
        results = []
        for stage, words in commands.items():
            payload = json.loads(command(*words, "--json"))
            where = {"explain": folder / "explanations", "difficulty": table.parent}.get(stage)
            about = "tiny" if stage in ("evaluate", "robustness", "hard-negatives", "polysemy", "explain") else ""
            told = " ".join(["crosslens", *map(str, words)])
            results.append(StageResult(stage, payload, told, about, "scenes-v0", where))
        yield Drawn(folder, run, tuple(results))
