"""The score from which on a model says that an image and a caption match: the one with the highest F1.

F1 at a threshold t is 2·TP ÷ (P + number of pairs with a score ≥ t), where P is the number of matching pairs. Between
two scores of matching pairs a lower threshold only adds mismatches, so the best threshold is the score of a matching
pair: it is enough to count, for each of those, the mismatches that reach it. That makes the search exact in one pass
over any number of mismatches, in memory of the matching pairs alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.analyze.options import IN_BATCH, CalibrationOptions
from crosslens.analyze.pair_scores import ImageCaptionPairs
from crosslens.core import (
    FORMAT_VERSION,
    CrosslensError,
    Dataset,
    InputError,
    Progress,
    Relevance,
    UsageError,
    random_stream,
    read_header,
    require_entries,
    shown_progress,
    stage,
    write_text,
)

Array = np.ndarray[Any, Any]

_ROUNDING = 1e-12
"""F1 values closer than this, relatively, are compared as fractions."""


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall at the score of every matching pair, ascending, as inclusive thresholds.

    ``matched`` and ``reached`` count the matching pairs, and all pairs, with a score of at least the threshold.
    """

    thresholds: Array
    matched: Array
    reached: Array
    positives: int
    negatives: int

    @property
    def precision(self) -> Array:
        return np.asarray(self.matched / self.reached)

    @property
    def recall(self) -> Array:
        return np.asarray(self.matched / self.positives)

    @property
    def f1(self) -> Array:
        return np.asarray(2 * self.matched / (self.positives + self.reached))

    @property
    def best(self) -> int:
        """The row of the highest F1; of equal ones the lowest threshold."""
        ratios = self.matched / (self.positives + self.reached)
        near = np.flatnonzero(ratios >= ratios.max() * (1 - _ROUNDING)).tolist()
        # Floating point can neither tell apart nor equate all fractions: the nearest ones are compared exactly.
        return max(
            near, key=lambda row: (Fraction(int(self.matched[row]), self.positives + int(self.reached[row])), -row)
        )

    @property
    def threshold(self) -> float:
        """The threshold with the highest F1."""
        return float(self.thresholds[self.best])


def _one_class(missing: str, fix: str) -> InputError:
    expected = "matching pairs (label 1) and mismatches (label 0)"
    return InputError(f"no {missing} to choose a threshold by", expected=expected, fix=fix, code="one-class")


class PairCounter:
    """Collects the scores of mismatches, a block at a time, against those of the matching pairs."""

    def __init__(self, positives: Any) -> None:
        scores = _numbers(positives, "scores of matching pairs")
        if not scores.size:
            raise _one_class("matching pair", "add pairs that match")
        self._thresholds, counts = np.unique(scores, return_counts=True)
        self._matched = counts[::-1].cumsum()[::-1]
        self._negatives = np.zeros(len(self._thresholds) + 1, np.int64)

    def add(self, negatives: Any) -> None:
        """Count the mismatches that reach each threshold."""
        scores = _numbers(negatives, "scores of mismatches")
        reached = np.searchsorted(self._thresholds, scores, side="right")
        self._negatives += np.bincount(reached, minlength=len(self._negatives))

    def curve(self) -> PrecisionRecall:
        """Precision and recall over everything that was added; raises where no mismatch was."""
        total = int(self._negatives.sum())
        if not total:
            fix = "add pairs that do not match: with more than one image, other images' captions do"
            raise _one_class("mismatch", fix)
        above = self._negatives[::-1].cumsum()[::-1][1:]
        return PrecisionRecall(self._thresholds, self._matched, self._matched + above, int(self._matched[0]), total)


def match_threshold(scores: Any, labels: Any) -> float:
    """The score that separates matching pairs from others with the highest F1; a score of at least it is a match.

    ``labels`` says of each score whether the pair matches (1 or True) or not (0 or False). Among thresholds of equal F1
    it is the lowest; it is always the score of a matching pair.
    """
    return precision_recall(scores, labels).threshold


def precision_recall(scores: Any, labels: Any) -> PrecisionRecall:
    """Precision, recall and F1 at the score of every matching pair; see :func:`match_threshold`."""
    values, truth = _numbers(scores, "scores"), _labels(labels)
    if len(values) != len(truth):
        raise InputError(
            f"{len(values):,} scores and {len(truth):,} labels",
            expected="one label per score",
            fix="pass both in the same order, each as a flat list",
        )
    if not len(values):
        raise InputError("no scores", expected="at least one matching pair and one mismatch", fix="pass some pairs")
    counter = PairCounter(values[truth])
    counter.add(values[~truth])
    return counter.curve()


def _numbers(values: Any, what: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" and array.size:
        raise InputError(f"{what} of type {array.dtype}", expected="real numbers")
    flat = array.reshape(-1) if array.ndim != 1 else array
    flat = flat.astype(np.float64, copy=False)
    if not np.isfinite(flat).all():
        row = int(np.argmax(~np.isfinite(flat)))
        fix = "find out why the model gave NaN or infinity"
        problem = f"{flat[row]} among the {what}"
        raise InputError(problem, row=row, expected="finite numbers", fix=fix)
    return flat


def _labels(labels: Any) -> Array:
    array = np.asarray(labels).reshape(-1)
    if array.dtype == np.bool_:
        return array
    wrong = [row for row, label in enumerate(array.tolist()) if label not in (0, 1)]
    if wrong:
        label = array.tolist()[wrong[0]]
        raise InputError(
            f"label {label!r}", row=wrong[0], expected="1 for a pair that matches, 0 for one that does not"
        )
    return array.astype(np.bool_)


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
