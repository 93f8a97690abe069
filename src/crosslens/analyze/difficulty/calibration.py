"""The threshold of a model from a calibration set: its own pairs match, other images' captions do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.difficulty.assignment import dataset_pairs, pair_scores
from crosslens.analyze.difficulty.options import ALL_NEGATIVES, IN_BATCH, CalibrationOptions
from crosslens.analyze.difficulty.threshold import PairCounter, PrecisionRecall, check_threshold
from crosslens.core import (
    FORMAT_VERSION,
    CrosslensError,
    Dataset,
    InputError,
    Progress,
    Relevance,
    SilentProgress,
    random_stream,
    read_header,
    require_entries,
    stage,
    write_text,
)

Array = np.ndarray[Any, Any]

THRESHOLDS_FILE = "thresholds.json"
"""What a file of thresholds is called inside a folder."""
_CELLS = 1 << 20


@dataclass(frozen=True)
class Calibration:
    """A model's threshold and what it comes from; ``curve`` is precision and recall, which files do not keep.

    A threshold that somebody chose has no dataset, and NaN for what was not measured.
    """

    threshold: float
    dataset: str = ""
    model: str = ""
    fingerprint: str = ""
    negatives: str = ""
    batch_size: int = 0
    seed: int = 0
    matching: int = 0
    mismatches: int = 0
    precision: float = float("nan")
    recall: float = float("nan")
    f1: float = float("nan")
    curve: PrecisionRecall | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """What a file keeps: nothing of what is not known."""
        facts = asdict(self) | {"curve": None}
        return {name: value for name, value in facts.items() if value not in (None, "", 0) and value == value}


def calibrate(
    dataset: Dataset,
    scores: Any,
    *,
    model: str = "the model",
    negatives: str = IN_BATCH,
    batch_size: int = 256,
    seed: int = 0,
    relevance: Relevance | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """The threshold of highest F1 between a dataset's pairs and mismatches of it.

    ``scores`` is a matrix of images × captions, or a scorer of them. With ``negatives="in-batch"`` the pairs are
    shuffled and cut into batches of ``batch_size``; within a batch, an image and another pair's caption are a mismatch.
    With ``"all"`` every image and caption of the dataset are one. A pair of the ground truth is never a mismatch.
    The scores are looked at in blocks: memory does not grow with images × captions.
    """
    settings = CalibrationOptions(negatives, batch_size, seed)
    images, captions = dataset_pairs(dataset, relevance)
    try:
        counter = PairCounter(pair_scores(dataset, scores, images, captions, model))
        width = len(dataset.caption_ids)
        matching = np.unique(images * width + captions)
        cells = _cells(dataset, images, captions, settings)
        with stage(progress or SilentProgress(), f"calibrating {model}", sum(len(a) * len(b) for a, b in cells)) as bar:
            for rows, columns in _blocks(cells):
                inside = np.isin(rows * width + columns, matching)
                counter.add(pair_scores(dataset, scores, rows[~inside], columns[~inside], model))
                bar.advance(len(rows))
        curve = counter.curve()
    except CrosslensError as error:
        error.add_context(f"no threshold for {model} from {dataset.name}")
        raise
    best = curve.best
    batch = settings.batch_size if negatives == IN_BATCH else 0
    return Calibration(
        curve.threshold, dataset.name, model, dataset.fingerprint, negatives, batch, seed, curve.positives,
        curve.negatives, float(curve.precision[best]), float(curve.recall[best]), float(curve.f1[best]), curve,
    )  # fmt: skip


def _cells(dataset: Dataset, images: Array, captions: Array, settings: CalibrationOptions) -> list[tuple[Array, Array]]:
    """Images and captions, every two of which are a pair to look at."""
    if settings.negatives == ALL_NEGATIVES:
        return [(np.arange(len(dataset.image_ids)), np.arange(len(dataset.caption_ids)))]
    order = random_stream(settings.seed, "calibration batches").permutation(len(images))
    batches = (order[start : start + settings.batch_size] for start in range(0, len(order), settings.batch_size))
    return [(images[batch], captions[batch]) for batch in batches]


def _blocks(cells: list[tuple[Array, Array]]) -> Iterator[tuple[Array, Array]]:
    for images, captions in cells:
        step = max(1, _CELLS // max(1, len(captions)))
        for start in range(0, len(images), step):
            rows = images[start : start + step]
            yield np.repeat(rows, len(captions)), np.tile(captions, len(rows))


def write_thresholds(path: str | Path, thresholds: Mapping[str, Calibration]) -> Path:
    """Write thresholds with what they come from, as JSON; an existing file is replaced."""
    models = {model: calibration.as_dict() for model, calibration in thresholds.items()}
    content = {"format": "crosslens/thresholds", "version": FORMAT_VERSION, "models": models}
    write_text(Path(path), json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return Path(path)


def read_thresholds(path: str | Path) -> dict[str, Calibration]:
    """Read what :func:`write_thresholds` wrote; of a folder, its ``thresholds.json``."""
    file = Path(path) / THRESHOLDS_FILE if Path(path).is_dir() else Path(path)
    if not file.exists():
        raise InputError(
            "no such file",
            file=file,
            expected="thresholds that crosslens analyze difficulty --save-thresholds wrote",
            fix="check the path",
        )
    content = read_header(file, "thresholds")
    require_entries(content, {"models": dict}, file)
    numbers = ("threshold", "batch_size", "seed", "matching", "mismatches", "precision", "recall", "f1")
    kinds = {**dict.fromkeys(numbers, float), **dict.fromkeys(("dataset", "model", "fingerprint", "negatives"), str)}
    thresholds = {}
    for model, facts in content.get("models", {}).items():
        require_entries(facts, kinds, file, inside=model)
        check_threshold(facts.get("threshold"), model)
        thresholds[model] = Calibration(**{name: facts[name] for name in kinds if name in facts})
    return thresholds
