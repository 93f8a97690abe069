"""The demo: scenes drawn once, and what an audit of a model on the three versions in them takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crosslens.audits.sources import AuditRequest, DatasetSource
from crosslens.core import needs_extra, to_stderr
from crosslens.encode import EncodeOptions
from crosslens.engine import Progress
from crosslens.pipeline import ModelOptions, load_dual_encoder
from crosslens.synth import VERSIONS, select_version, write_scenes
from crosslens.values import Dataset

SEED = 7
"""Scenes of this seed were never among those that ``tiny`` was trained on."""
HARDEST = VERSIONS[-1]
GALLERY_FACTOR = 8
"""Pictures of the hardest version for every scene: drawing them takes a quarter of the demo's time."""


@dataclass(frozen=True)
class Demo:
    """A folder with everything: the pictures, the datasets of the versions, and the audit."""

    folder: Path
    overwrite: bool = False
    progress: Progress | None = None

    @property
    def scenes(self) -> Path:
        """The folder of the pictures, and of the dataset of the hardest version."""
        return self.folder / "scenes"

    @property
    def audit(self) -> Path:
        return self.folder / "audit"

    def draw(self, images: int, seed: int = SEED) -> Dataset:
        """Draw the hardest version, which holds the others; finished scenes are kept."""
        return write_scenes(
            self.scenes, images, seed=seed, version=HARDEST, gallery=GALLERY_FACTOR * images,
            overwrite=self.overwrite, progress=self.progress,
        )  # fmt: skip

    def request(self, hardest: Dataset, model: str) -> AuditRequest:
        folders = []
        for version in VERSIONS:
            folder = self.scenes
            if version != HARDEST:
                folder, dataset = self.folder / f"scenes-{version}", select_version(hardest, version)
                if not (folder.exists() and Dataset.load(folder).fingerprint == dataset.fingerprint):
                    dataset.save(folder, overwrite=self.overwrite)
            folders.append(DatasetSource(str(folder)))
        return AuditRequest(tuple(folders), (model,), model=ModelOptions(image_folder=str(self.scenes)))


def require_model(model: str, notify: Callable[[str], None] = to_stderr) -> None:
    """Raise before the work if a package is missing, or the model cannot be loaded or does not take both sides."""
    required = {"PIL": "pillow"} | ({"onnxruntime": "onnxruntime"} if model == "tiny" else {})
    for module, package in required.items():
        with needs_extra("the demo", package, "demo"):
            __import__(module)
    load_dual_encoder(model, EncodeOptions(notify=notify))
