"""Does a relevance function agree with people? φ against their scores, on all pairs and outside the ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.agreement.sections import (
    ALL_PAIRS,
    BINARY,
    NOT_A_REFERENCE,
    OUTSIDE_GROUND_TRUTH,
    agreement_sections,
)
from crosslens.analyze.ground_truth import ground_truth_of
from crosslens.core import (
    Dataset,
    InputError,
    Presented,
    Progress,
    Relevance,
    Section,
    UnknownNameError,
    UsageError,
    json_form,
)
from crosslens.data import Judgements, read_judgements
from crosslens.similarity import IdSimilarity, Phi, load_similarity, references_of
from crosslens.statistics import COEFFICIENTS, Estimate, JudgeAgreement, correlations, judge_agreement

Array = np.ndarray[Any, Any]
Coefficients = Mapping[str, Estimate]


@dataclass(frozen=True)
class AgreementSubset:
    """Coefficients over some of the judged pairs.

    ``figures`` holds the coefficients of each φ; ``differences`` those of each two φ, first less second, on the same
    pairs. ``observations`` is the number of pairs, or of single judgements where they were pooled. ``judges`` says how
    far people agree with each other on these pairs; None where nobody judged a pair that another did.
    """

    pairs: int
    observations: int
    images: int
    figures: Mapping[str, Coefficients]
    differences: Mapping[tuple[str, str], Coefficients]
    judges: JudgeAgreement | None = None

    def of_ceiling(self, phi: str, pooled: bool = False) -> float:
        """Pearson's r of a φ as a share of the human ceiling; NaN where people did not judge the same pairs."""
        ceiling = float("nan") if self.judges is None else self.judges.ceiling(pooled)
        return self.figures[phi]["pearson"].mean / ceiling if ceiling > 0 else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "pairs": self.pairs,
            "observations": self.observations,
            "images": self.images,
            "phi": {name: _as_dict(coefficients) for name, coefficients in self.figures.items()},
            "differences": [
                {"first": first, "second": second, **_as_dict(coefficients)}
                for (first, second), coefficients in self.differences.items()
            ],
            "judges": _judges_dict(self.judges),
        }


@dataclass(frozen=True, eq=False)
class HumanAgreement(Presented):
    """Each φ against people; prints as a table.

    ``values`` holds φ of every judged pair, ``truth`` whether the pair is in the ground truth. ``kendall`` is which of
    Kendall's τ is printed, ``b`` or ``c``.
    """

    dataset: str
    judgements: Judgements
    values: Mapping[str, Array]
    truth: Array
    subsets: Mapping[str, AgreementSubset]
    pooled: bool = False
    level: float = 0.95
    kendall: str = "b"

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"Agreement with people: {self.judgements.source} on {self.dataset}"

    def sections(self, kendall: str | None = None, **options: Any) -> Iterator[Section]:
        """A chart per φ, a table per subset, and what they mean."""
        return agreement_sections(self, kendall or self.kendall)

    @property
    def judges(self) -> JudgeAgreement | None:
        """How far people agree with each other, over all pairs."""
        return self.subsets[ALL_PAIRS].judges

    def figure(self, phi: str, coefficient: str = "pearson", subset: str = ALL_PAIRS) -> Estimate:
        """One coefficient of one φ, with its interval."""
        for kind, name, known in (
            ("subset", subset, self.subsets),
            ("φ", phi, self.values),
            ("coefficient", coefficient, COEFFICIENTS),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)
        return self.subsets[subset].figures[phi][coefficient]

    @property
    def table(self) -> pl.DataFrame:
        """One row per subset, φ and coefficient."""
        rows = [
            (part, phi, coefficient, subset.pairs, estimate.mean, estimate.low, estimate.high)
            for part, subset in self.subsets.items()
            for phi, coefficients in subset.figures.items()
            for coefficient, estimate in coefficients.items()
        ]
        return pl.DataFrame(rows, ["pairs", "phi", "coefficient", "n", "value", "low", "high"], orient="row")

    def as_dict(self) -> dict[str, Any]:
        """Everything but the values of single pairs, as JSON can hold it."""
        content = {
            "dataset": self.dataset,
            "judgements": self.judgements.source,
            "skipped": self.judgements.skipped,
            "pooled": self.pooled,
            "level": self.level,
            "subsets": {
                part: subset.as_dict()
                | {"of_ceiling": {phi: subset.of_ceiling(phi, self.pooled) for phi in self.values}}
                for part, subset in self.subsets.items()
            },
            "judges": _judges_dict(self.judges),
        }
        return dict(json_form(content))


def _judges_dict(judges: JudgeAgreement | None) -> dict[str, Any] | None:
    if judges is None:
        return None
    return asdict(judges) | {"ceiling": judges.ceiling(), "single_ceiling": judges.ceiling(pooled=True)}


def _as_dict(coefficients: Coefficients) -> dict[str, Any]:
    return {
        name: {"value": estimate.mean, "low": estimate.low, "high": estimate.high}
        for name, estimate in coefficients.items()
    }


def measure_agreement(
    dataset: Dataset,
    judgements: Judgements | str | Path,
    phi: Phi | Sequence[Phi] | Mapping[str, Phi] = ("cider",),
    *,
    ground_truth: Relevance | None = None,
    without_references: bool = False,
    pooled: bool = False,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> HumanAgreement:
    """How well each φ agrees with people: Pearson, Spearman, Kendall τ-b and τ-c, with intervals that resample images.

    ``judgements`` are a :class:`crosslens.data.Judgements` or a file (see :func:`crosslens.data.read_judgements`).
    ``phi`` is one or several of: a name (``cider``, ``semantic``), a matrix or its file, a function
    φ(references, caption), or one number per judged pair; a mapping names them. The ground truth itself (``binary``)
    is always the first.

    Results are over all pairs and over pairs outside the ground truth, which is each caption's own image unless
    ``ground_truth`` says more. ``without_references`` adds the pairs whose caption is not word for
    word one of the image's references: a φ that sees the answer among its references has an easy task there.
    ``pooled`` takes every judge's score as an observation of its own, as some papers do, not the mean of a pair.

    Where pairs have several judges, each subset also says how far people agree with each other, and the highest
    Pearson that a φ can be expected to reach (``result.subsets["non-gt"].judges.ceiling()``).
    """
    if not isinstance(judgements, Judgements):
        judgements = read_judgements(judgements, dataset)
    judgements.check(dataset)
    truth = judgements.is_relevant(ground_truth_of(dataset, ground_truth))
    values = {BINARY: truth.astype(np.float64)}
    for name, similarity in name_similarities(phi).items():
        is_binary = isinstance(similarity, str) and similarity == BINARY
        values[name] = (
            values[BINARY] if is_binary else _pair_values(dataset, judgements, name, similarity, threads, progress)
        )
    parts = {ALL_PAIRS: np.ones(len(judgements), np.bool_), OUTSIDE_GROUND_TRUTH: ~truth}
    if without_references:
        parts[NOT_A_REFERENCE] = ~judgements.among_references(dataset)
    resampling = {"resamples": resamples, "seed": seed, "threads": threads}
    subsets = {part: _subset(judgements, values, rows, pooled, level, resampling) for part, rows in parts.items()}
    return HumanAgreement(dataset.name, judgements, values, truth, subsets, pooled=pooled, level=level)


def name_similarities(phi: Phi | Sequence[Phi] | Mapping[str, Phi]) -> dict[str, Phi]:
    """Every φ under the name that it has in results."""
    if isinstance(phi, Mapping):
        return {str(name): similarity for name, similarity in phi.items()}
    several = list(phi) if isinstance(phi, Sequence) and not isinstance(phi, str) else [phi]
    by_name: dict[str, Phi] = {}
    for number, item in enumerate(several, start=1):
        name = item if isinstance(item, str) else getattr(item, "name", None) or getattr(item, "__name__", None)
        name = f"phi {number}" if not isinstance(name, str) or isinstance(item, np.ndarray) else name
        if name in by_name:
            raise UsageError(
                f"two φ are named {name!r}", fix="drop one, or name them in a mapping: {'first': …, 'second': …}"
            )
        by_name[name] = item
    return by_name


def _pair_values(
    dataset: Dataset, judgements: Judgements, name: str, phi: Phi, threads: int | None, progress: Progress | None
) -> Array:
    """φ of every judged pair."""
    if isinstance(phi, np.ndarray) and phi.ndim == 1:
        values = np.asarray(phi, np.float64)
        if len(values) != len(judgements):
            raise InputError(
                f"{name}: {len(values):,} numbers for {len(judgements):,} judged pairs", expected="one each"
            )
    else:
        values = pair_similarity(dataset, judgements, phi, threads, progress)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        image = dataset.image_ids[judgements.images[row]]
        raise InputError(f"{name} of judged pair {row} (image {image!r}) is {values[row]}", expected="finite numbers")
    return values


def pair_similarity(
    dataset: Dataset, judgements: Judgements, phi: Phi, threads: int | None = None, progress: Progress | None = None
) -> Array:
    """φ of every judged pair, from the image's captions as references."""
    similarity = load_similarity(phi)
    if isinstance(similarity, IdSimilarity):
        if judgements.others:
            raise UsageError(
                f"{len(judgements.others):,} judged captions are not in the dataset: a matrix has no φ for them",
                fix="use a φ that reads texts, such as cider, or add the captions to the dataset",
            )
        prepared = similarity.prepare_ids(dataset)
        return np.asarray(prepared.pairs(judgements.images, judgements.captions), np.float64)
    # Only the judged captions: there are often far fewer than the dataset has.
    judged, columns = np.unique(judgements.captions, return_inverse=True)
    known = (*dataset.texts, *judgements.others)
    texts = [known[caption] for caption in judged.tolist()]
    prepared = similarity.prepare(references_of(dataset), texts, progress=progress, threads=threads)
    return np.asarray(prepared.pairs(judgements.images, columns.reshape(-1)), np.float64)


def _subset(
    judgements: Judgements,
    values: Mapping[str, Array],
    chosen: Array,
    pooled: bool,
    level: float,
    resampling: Mapping[str, Any],
) -> AgreementSubset:
    """The coefficients over the chosen pairs."""
    pairs = np.flatnonzero(chosen)
    scores = judgements.scores[pairs]
    people = judge_agreement(judgements.judges[pairs], judgements.same_persons)
    if pooled:
        single = np.isfinite(judgements.judges[pairs])
        pairs, scores = np.repeat(pairs, single.sum(axis=1)), judgements.judges[pairs][single]
    images = judgements.images[pairs]
    fits = {phi: correlations(own[pairs], scores, images, **resampling) for phi, own in values.items()}
    figures = {phi: {key: fit.estimate(key, level) for key in COEFFICIENTS} for phi, fit in fits.items()}
    differences = {
        (second, first): {key: fits[second].less(fits[first], key, level) for key in COEFFICIENTS}
        for first, second in combinations(fits, 2)
    }
    return AgreementSubset(int(chosen.sum()), len(pairs), len(np.unique(images)), figures, differences, people)
