"""The command line called in this process, and a small study to call it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.analyze import ANALYSES
from crosslens.cli import main
from crosslens.core import FINDING_KINDS, Registry, user_code
from crosslens.data import READERS, write_dataset
from crosslens.encode import ENCODERS
from crosslens.metrics import METRICS
from crosslens.perturbations import IMAGE_PERTURBATIONS, PERTURBATIONS
from crosslens.pipeline import PROTOCOLS
from crosslens.report import EXPORTS
from crosslens.similarity import SIMILARITIES
from crosslens.values import Dataset, run as metric_values
from tests.commands import Call as Call, Outcome as Outcome, call as call, tiny_opened_once as tiny_opened_once

REGISTRIES: tuple[Registry[Any], ...] = (
    METRICS,
    PROTOCOLS,
    READERS,
    SIMILARITIES,
    PERTURBATIONS,
    IMAGE_PERTURBATIONS,
    ENCODERS,
    EXPORTS,
    ANALYSES,
    FINDING_KINDS,
)


@pytest.fixture(autouse=True)
def forget_plugins() -> Iterator[Callable[[], None]]:
    """Forget what a test's plugins registered, afterwards or when called: as in another process."""

    def forget() -> None:
        user_code._FILES.clear()
        user_code._USER_CODE.clear()
        metric_values._STORED_FACTS.clear()
        for registry in REGISTRIES:
            registry._entries = {name: entry for name, entry in registry._entries.items() if not entry.plugin}

    forget()
    yield forget
    forget()


IMAGES, PER_IMAGE, DIMENSION = 40, 3, 64
CATEGORIES = ("animals", "food", "indoors", "people", "vehicles")
NOISE = {"model-a": 2.0, "model-b": 1.6}


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files as a person has them: a COCO captions file, embeddings of two models, a score matrix.

    The models are points with noise: good enough to be right sometimes, and to be wrong sometimes.
    """
    folder = tmp_path_factory.mktemp("study")
    ids = [f"picture-{number:02}" for number in range(IMAGES)]
    dataset = Dataset.of(
        {image: [f"{word} {image}" for word in ("a", "one", "the")] for image in ids},
        images={"category": [CATEGORIES[number % len(CATEGORIES)] for number in range(IMAGES)]},
    )
    write_dataset(dataset, folder / "captions.json", "coco")
    random = np.random.default_rng(0)
    points = random.standard_normal((IMAGES, DIMENSION))
    for model, noise in NOISE.items():
        image_vectors = points + noise * random.standard_normal(points.shape)
        read = np.repeat(points, PER_IMAGE, axis=0) + noise * random.standard_normal((IMAGES * PER_IMAGE, DIMENSION))
        np.save(folder / f"{model}-img.npy", image_vectors.astype(np.float32))
        np.save(folder / f"{model}-cap.npy", read.astype(np.float32))
        if model == "model-a":
            np.save(folder / "scores.npy", (image_vectors @ read.T).astype(np.float32))
    return folder


def flags(study: Path, model: str = "model-a") -> list[str | Path]:
    """The usual words after ``crosslens evaluate``."""
    return [
        *("--dataset", "coco", "--captions", study / "captions.json"),
        *("--image-embeddings", study / f"{model}-img.npy", "--caption-embeddings", study / f"{model}-cap.npy"),
        *("--resamples", "50"),
    ]


@pytest.fixture(scope="session")
def runs(study: Path) -> tuple[Path, Path]:
    """Two run folders, written once."""
    folders = study / "runs" / "a", study / "runs" / "b"
    for folder, model in zip(folders, ("model-a", "model-b"), strict=True):
        assert main([str(word) for word in ("evaluate", *flags(study, model), "-o", folder)]) == 0
    return folders
