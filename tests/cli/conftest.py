"""The command line called in this process, and a small study to call it on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.cli import main
from crosslens.data import write_dataset
from crosslens.synth.toy import toy_dataset


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Outcome]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run ``crosslens`` with these words; a bug's traceback fails the test."""

    def run(*words: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files as a person has them: a COCO captions file, embeddings of two models, a score matrix."""
    folder = tmp_path_factory.mktemp("study")
    dataset, models = toy_dataset(images=40, captions_per_image=3)
    write_dataset(dataset, folder / "captions.json", "coco")
    for model, (images, captions) in models.items():
        np.save(folder / f"{model}-img.npy", images)
        np.save(folder / f"{model}-cap.npy", captions)
    np.save(folder / "scores.npy", models["model-a"][0] @ models["model-a"][1].T)
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
