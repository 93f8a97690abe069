"""The score from which on a model says that an image and a caption match, found on a dataset or read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.options import IN_BATCH, CalibrationOptions
from crosslens.analyze.pair_scores import ImageCaptionPairs
from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.engine import Progress, shown_progress, stage
from crosslens.statistics import PairCounter, PrecisionRecall
from crosslens.storage import FORMAT_VERSION, random_stream, read_header, require_entries, write_text
from crosslens.values import Dataset, Relevance

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
        facts = vars(self) | {"curve": None}
        return {name: value for name, value in facts.items() if value not in (None, "", 0) and value == value}


def check_threshold(value: Any, model: str) -> float:
    """A threshold as a finite number, or an error that names its model."""
    if isinstance(value, (bool, str)) or not np.isscalar(value) or not np.isfinite(np.float64(value)):  # type: ignore[arg-type]
        fix = "pass a finite number, such as match_threshold gives"
        raise UsageError(f"the threshold of {model} is {value!r:.60}", fix=fix, option="thresholds")
    return float(value)  # type: ignore[arg-type]


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
    pairs = ImageCaptionPairs.relevant(dataset, relevance)
    try:
        counter = PairCounter(pairs.from_matrix(scores, model, finite=True))
        width = len(dataset.caption_ids)
        matching = np.unique(pairs.images * width + pairs.captions)
        # Images and captions, every two of which are a pair to look at.
        cells = [(np.arange(len(dataset.image_ids)), np.arange(width))]
        if settings.negatives == IN_BATCH:
            order = random_stream(settings.seed, "calibration batches").permutation(len(pairs))
            batches = np.split(order, range(settings.batch_size, len(order), settings.batch_size))
            cells = [(pairs.images[batch], pairs.captions[batch]) for batch in batches]
        with stage(shown_progress(progress), f"calibrating {model}", sum(len(a) * len(b) for a, b in cells)) as bar:
            for images, captions in cells:
                step = max(1, _CELLS // max(1, len(captions)))
                for start in range(0, len(images), step):
                    part = images[start : start + step]
                    rows, columns = np.repeat(part, len(captions)), np.tile(captions, len(part))
                    outside = ~np.isin(rows * width + columns, matching)
                    mismatches = ImageCaptionPairs(dataset, rows[outside], columns[outside])
                    counter.add(mismatches.from_matrix(scores, model, finite=True))
                    bar.advance(len(rows))
        curve = counter.curve()
    except CrosslensError as error:
        error.add_context(f"no threshold for {model} from {dataset.name}")
        raise
    best, batch = curve.best, settings.batch_size if negatives == IN_BATCH else 0
    return Calibration(
        curve.threshold, dataset.name, model, dataset.fingerprint, negatives, batch, seed, curve.positives,
        curve.negatives, float(curve.precision[best]), float(curve.recall[best]), float(curve.f1[best]), curve,
    )  # fmt: skip


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
