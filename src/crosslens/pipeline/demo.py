"""The demo's work: scenes drawn once, and a model evaluated on the three versions that are in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslens.core.dataset import Dataset
from crosslens.core.errors import MissingExtraError
from crosslens.core.progress import Progress
from crosslens.core.relevance import TEXT_TO_IMAGE
from crosslens.core.run import Run
from crosslens.encode.encoder import IMAGES, TEXTS, Tell, demand, load_encoder, to_stderr
from crosslens.pipeline.recipe import Encoding, Model, Options, Recipe, execute
from crosslens.synth.generation import VERSIONS
from crosslens.synth.versions import select_version
from crosslens.synth.writing import write_scenes

SEED = 7
"""Scenes of this seed were never among those that ``tiny`` was trained on."""
HARDEST = VERSIONS[-1]


@dataclass(frozen=True)
class Demo:
    """A folder with everything: the pictures, the datasets of the versions, a run for each."""

    folder: Path
    overwrite: bool = False
    progress: Progress | None = None

    @property
    def scenes(self) -> Path:
        """Where the pictures are, and the dataset of the hardest version."""
        return self.folder / "scenes"

    def draw(self, images: int, seed: int = SEED) -> Dataset:
        """Draw the hardest version, which holds the others; what is there already is kept."""
        return write_scenes(
            self.scenes, images, seed=seed, version=HARDEST, overwrite=self.overwrite, progress=self.progress
        )

    def evaluate(
        self, drawn: Dataset, version: str, model: str, *, command: Sequence[str] | None = None, tell: Tell = to_stderr
    ) -> Run:
        """The model on one version, as a run folder of that name.

        Scenes that were added without captions are only there to be found: in the hardest version captions ask, and
        images do not, as for them nothing would change.
        """
        recipe = Recipe(
            dataset=str(self._dataset(drawn, version)),
            model=Model(model, image_folder=str(self.scenes)),
            options=Options(directions=(TEXT_TO_IMAGE,) if version == HARDEST else ()),
            name=version,
        )
        return execute(
            recipe, self.folder / version, overwrite=self.overwrite, progress=self.progress, command=command,
            encoding=Encoding(tell=tell),
        )  # fmt: skip

    def _dataset(self, drawn: Dataset, version: str) -> Path:
        """The folder of a version's dataset, written unless it is there."""
        if version == HARDEST:
            return self.scenes
        dataset = select_version(drawn, version)
        folder = self.folder / f"scenes-{version}"
        if not (folder.exists() and Dataset.load(folder).fingerprint == dataset.fingerprint):
            dataset.save(folder, overwrite=self.overwrite)
        return folder


def demand_extras(model: str) -> None:
    """Raise at once, not after a minute's work, where something that the demo needs is not installed."""
    needed = {"PIL": "pillow", "plotly": "plotly"} | ({"onnxruntime": "onnxruntime"} if model == "tiny" else {})
    for module, package in needed.items():
        try:
            __import__(module)
        except ImportError as error:
            raise MissingExtraError("the demo", package, "demo") from error


def demand_model(model: str, tell: Tell = to_stderr) -> None:
    """Raise at once, not after all is drawn, where the model cannot be loaded or lacks one of the two kinds."""
    encoder = load_encoder(model, tell=tell)
    for ability in (IMAGES, TEXTS):
        demand(encoder, ability)
