"""What scores pairs: the models behind stored runs, models that are named, and tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import crosslens.analyze as analyze
import crosslens.core as core
import crosslens.encode as encoders
import crosslens.explanations as explanations
import crosslens.pipeline as pipeline
from crosslens.cli.console import confirm_code, progress_bar
from crosslens.cli.stored_runs import check_same_captions, load_run
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions

StoredRuns: TypeAlias = "dict[str, tuple[Path, core.Run]]"
"""Runs and their folders, by name."""


@dataclass(frozen=True)
class SourceOptions(Options):
    """What scores pairs besides runs."""

    model: tuple[str, ...] = option((), "A model, or file:FOLDER; may be repeated.", metavar="KIND:SOURCE")
    pair_model: tuple[str, ...] = option(
        (), "A model that scores pairs, such as blip:… or vqa:…; may be repeated.", metavar="KIND:SOURCE"
    )
    scores: tuple[Path, ...] = option((), "A table: image, caption, score; may be repeated.", metavar="FILE")

    @property
    def given(self) -> bool:
        """Whether any is named."""
        return bool(self.model or self.pair_model or self.scores)

    def cosines(self, pairs: analyze.ImageCaptionPairs, encoding: EncodeOptions) -> dict[str, Any]:
        """The scores of the models with vectors."""
        scores = {}
        for name in self.model:
            encoder = encoders.load_encoder(name, encoding)
            scores[encoder.name] = pairs.from_model(encoder, encoding, progress=progress_bar())
        return scores

    def others(self, pairs: analyze.ImageCaptionPairs, encoding: EncodeOptions) -> dict[str, Any]:
        """The scores of models of pairs, and those in tables."""
        scores: dict[str, Any] = {}
        for name in self.pair_model:
            scorer = encoders.load_pair_scorer(name, encoding)
            scores[scorer.name] = pairs.from_pair_model(scorer, encoding, progress_bar())
        return scores | {file.stem: pairs.from_table(file) for file in self.scores}


def load_runs(folders: list[Path]) -> StoredRuns:
    """The runs, which are over the same captions, under the names of their folders."""
    names = [folder.resolve().name for folder in folders]
    runs = {
        name if names.count(name) == 1 else str(folder): (folder, load_run(folder))
        for name, folder in zip(names, folders, strict=True)
    }
    if runs:
        check_same_captions({str(folder): run for folder, run in runs.values()})
    return runs


def dataset_of(runs: StoredRuns) -> core.Dataset:
    """The dataset that the first run's recipe names."""
    if not runs:
        raise UsageError("neither runs nor a dataset", fix="name run folders, or pass --dataset")
    return explanations.dataset_of_run(next(iter(runs.values()))[1])


def scores_of_run(name: str, folder: Path, encoding: EncodeOptions, *, trust_code: bool) -> pipeline.ModelScores:
    """The scores that a run was computed from."""
    trusted = trust_code or confirm_code
    return pipeline.read_panel([f"{name}={folder}"], encoding=encoding, trust_code=trusted, progress=progress_bar())[0]
