"""Does a relevance function agree with people? φ against their scores, on all pairs and outside the ground truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.pair_scores import ground_truth_of
from crosslens.core import (
    Cell,
    Cloud,
    Figure,
    InputError,
    Presented,
    Row,
    Scatter,
    Section,
    Table,
    Text,
    UnknownNameError,
    UsageError,
)
from crosslens.data import Judgements, read_judgements
from crosslens.engine import Progress
from crosslens.metrics import format_count
from crosslens.similarity import IdSimilarity, Phi, load_similarity, references_of
from crosslens.statistics import COEFFICIENTS, Estimate, JudgeAgreement, correlations, judge_agreement
from crosslens.storage import Array, json_form, random_stream
from crosslens.values import Dataset, Relevance

BINARY = "binary"
"""The φ of ordinary recall: 1 for a pair of the ground truth, 0 for any other."""
ALL_PAIRS, OUTSIDE_GROUND_TRUTH, NOT_A_REFERENCE = "all", "non-gt", "non-reference"
SUBSET_TITLES = {
    ALL_PAIRS: "All pairs",
    OUTSIDE_GROUND_TRUTH: "Outside the ground truth",
    NOT_A_REFERENCE: "Caption not among the references",
}
COEFFICIENT_LABELS = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall-b": "Kendall τ-b",
    "kendall-c": "Kendall τ-c",
}
ONE_JUDGE, CEILING, OF_CEILING = "one judge", "ceiling", "of ceiling"
"""The rows below the φ that say how far people agree with each other."""
_KINDS = ((True, "in the ground truth"), (False, "outside the ground truth"))
_MOST_DOTS = 1500
_MEAN_STEPS, _FEWEST = 12, 8


def _table(part: str, subset: AgreementSubset, names: tuple[str, ...], pooled: bool) -> Table:
    """Each φ, under it how much it is above the first that is not the ground truth itself; then people themselves."""
    size = format_count(subset.pairs, "pair") + (f", {format_count(subset.observations, 'score')}" if pooled else "")
    title = f"{SUBSET_TITLES[part]}: {size} of {format_count(subset.images, 'image')}"
    first = next((phi for phi in subset.figures if phi != BINARY), "")
    rows: list[tuple[Cell, ...]] = []
    for phi, coefficients in subset.figures.items():
        share = subset.of_ceiling(phi, pooled)
        beside = Figure(share, scale=100, digits=0, unit=" %") if isfinite(share) else None
        rows.append((phi, beside, *(_coefficient(coefficients[name]) for name in names)))
        if (difference := subset.differences.get((phi, first))) is not None:
            cells = (_coefficient(difference[name], signed=True) for name in names)
            rows.append((f"  − {first}", None, *cells))
    ceiling = Figure(None)
    if (judges := subset.judges) is not None:
        ceiling = Figure(judges.ceiling(pooled), *judges.ceiling_interval(pooled), digits=3, short=True)
        rows.append((ONE_JUDGE, None, *(Figure(judges.one_against_others[name], digits=3) for name in names)))
        rows.append((CEILING, None, *(ceiling if name == "pearson" else Figure(None) for name in names)))
    labels = tuple(COEFFICIENT_LABELS[name] for name in names)
    if not ceiling.known:
        return Table(("φ", *labels), tuple((row[0], *row[2:]) for row in rows), title=title)
    ordered = tuple((row[0], row[2], row[1], *row[3:]) for row in rows)
    return Table(("φ", labels[0], OF_CEILING, *labels[1:]), ordered, title=title)


def _coefficient(estimate: Estimate, signed: bool = False) -> Figure:
    return Figure(estimate.mean, estimate.low, estimate.high, digits=3, signed=signed, short=True)


def _notes(result: HumanAgreement) -> Iterator[str]:
    yield "binary: 1 for a pair of the ground truth, 0 for any other; outside it, it says nothing (–)."
    yield f"In brackets: {100 * result.level:g}% intervals from resampling images."
    if any(len(subset.figures) > 2 for subset in result.subsets.values()):
        yield "−: the difference on the same pairs, with its own interval."
    if NOT_A_REFERENCE in result.subsets:
        yield "Not among the references: word for word, whichever image the caption was written for."
    if result.pooled:
        yield "Each judge's score is an observation of its own."
    if (judges := result.judges) is not None:
        scores = "single scores" if result.pooled else "the mean scores"
        yield (
            f"{ONE_JUDGE}: one judge against the mean of the pair's others. {CEILING}: Pearson between {scores} and "
            "scores without the judges' noise (the root of the reliability), which no φ is expected to exceed. "
            f"{OF_CEILING}: Pearson of a φ as a share of that."
        )
        values = (judges.reliability, judges.single_reliability, judges.alpha, *judges.kappa.values())
        mean, single, alpha, *kappas = (Figure(value, digits=3) for value in values)
        agreement = (
            f"; Cohen's κ of two judges {kappas[0]}, weighted linearly {kappas[1]}, quadratically {kappas[2]}"
            if kappas[0].known
            else ""
        )
        yield (
            f"People: {format_count(judges.judgements, 'score')} for {format_count(judges.pairs, 'pair')}; reliability "
            f"of their mean {mean}, of one score {single}; Krippendorff's α {alpha}{agreement}."
        )
    if result.judgements.skipped:
        yield f"{format_count(result.judgements.skipped, 'row')} of images or captions not in the dataset left out."


def _scatters(result: HumanAgreement) -> Iterator[Scatter]:
    """Of each φ the judged pairs, and the mean score of pairs outside the ground truth with about the same φ.

    Where φ agrees with people, that line rises.
    """
    dots = np.zeros(len(result.truth), np.bool_)
    for inside, words in _KINDS:
        members = np.flatnonzero(result.truth == inside)
        if len(members) > _MOST_DOTS:
            members = random_stream(0, "dots", words).choice(members, _MOST_DOTS, replace=False)
        dots[members] = True
    scores, pairs = result.judgements.scores, len(result.truth)
    steps = np.diff(np.unique(scores))
    step = min(float(np.median(steps)), float(np.ptp(scores)) / 12) if len(steps) else 0.0
    fewer = f", {int(dots.sum()):,} of them drawn" if not dots.all() else ""
    outside = ~result.truth if (~result.truth).any() else np.ones(pairs, np.bool_)
    for name, values in result.values.items():
        if name == BINARY:
            continue
        # The mean score over steps of φ; a far outlier must not stretch the steps over everything else.
        edges = np.linspace(values[outside].min(), np.quantile(values[outside], 0.995), _MEAN_STEPS + 1)[1:-1]
        steps_of = np.searchsorted(edges, values[outside], side="right")
        counts = np.bincount(steps_of, minlength=_MEAN_STEPS)
        filled = counts >= min(_FEWEST, counts.max())  # a step with few pairs is skipped
        across, up = (
            (np.bincount(steps_of, column[outside], _MEAN_STEPS)[filled] / counts[filled]).tolist()
            for column in (values, scores)
        )
        estimates = [
            f"{figure} {words}"
            for part, words in ((ALL_PAIRS, "all"), (OUTSIDE_GROUND_TRUTH, "outside"))
            if (figure := Figure(result.figure(name, "pearson", part).mean, digits=3)).known
        ]
        yield Scatter(
            title=name,
            about=f"Pearson {', '.join(estimates) or '–'}; {pairs:,} judged pairs{fewer}; line: mean score outside the "
            "ground truth",
            clouds=tuple(
                Cloud(words, tuple(zip(values[shown_pairs].tolist(), scores[shown_pairs].tolist(), strict=True)))
                for inside, words in _KINDS
                if (shown_pairs := dots & (result.truth == inside)).any()
            ),
            axis=name, up="people's score", spread=0.35 * step,
            trends=(Cloud("", tuple(zip(across, up, strict=True))),),
        )  # fmt: skip


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
        differences = [
            {"first": first, "second": second, **_as_dict(coefficients)}
            for (first, second), coefficients in self.differences.items()
        ]
        return {
            **{name: getattr(self, name) for name in ("pairs", "observations", "images")},
            "phi": {name: _as_dict(coefficients) for name, coefficients in self.figures.items()},
            "differences": differences,
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
        return f"Agreement with people: {self.judgements.source} on {self.dataset}"

    def sections(self) -> Iterator[Section]:
        """A chart per φ, a table per subset, and what they mean."""
        if self.kendall not in ("b", "c"):
            raise UsageError(f"Kendall's τ-{self.kendall}", fix="use 'b' or 'c'", option="kendall")
        names = ("pearson", "spearman", f"kendall-{self.kendall}")
        tables = (_table(part, subset, names, self.pooled) for part, subset in self.subsets.items())
        notes = Text(tuple(_notes(self)), note=True)
        yield Section(f"{self.judgements.source} on {self.dataset}", (Row(tuple(_scatters(self))), *tables, notes))

    @property
    def judges(self) -> JudgeAgreement | None:
        """How far people agree with each other, over all pairs."""
        return self.subsets[ALL_PAIRS].judges

    def figure(self, phi: str, coefficient: str = "pearson", subset: str = ALL_PAIRS) -> Estimate:
        """One coefficient of one φ, with its interval."""
        for kind, name, names in (
            ("subset", subset, self.subsets),
            ("φ", phi, self.values),
            ("coefficient", coefficient, COEFFICIENTS),
        ):
            if name not in names:
                raise UnknownNameError(kind, name, names)
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
        subsets = {
            part: subset.as_dict() | {"of_ceiling": {phi: subset.of_ceiling(phi, self.pooled) for phi in self.values}}
            for part, subset in self.subsets.items()
        }
        return json_form(
            {
                "dataset": self.dataset,
                "judgements": self.judgements.source,
                "skipped": self.judgements.skipped,
                "pooled": self.pooled,
                "level": self.level,
                "subsets": subsets,
                "judges": _judges_dict(self.judges),
            }
        )


def _judges_dict(judges: JudgeAgreement | None) -> dict[str, Any] | None:
    if judges is None:
        return None
    return vars(judges) | {
        f"{name}{part}": figure(pooled=pooled)
        for name, pooled in (("ceiling", False), ("single_ceiling", True))
        for part, figure in (("", judges.ceiling), ("_interval", judges.ceiling_interval))
    }


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

    The ground truth itself (``binary``) is always the first φ. Results are over all pairs and over pairs outside the
    ground truth. Where pairs have several judges, each subset also says how far people agree with each other, and the
    highest Pearson that a φ can be expected to reach (``result.subsets["non-gt"].judges.ceiling()``).

    Args:
        dataset: Images and their captions.
        judgements: A :class:`crosslens.data.Judgements` or a file (see :func:`crosslens.data.read_judgements`).
        phi: One or several of: a name (``cider``, ``semantic``), a matrix or its file, a function φ(references,
            caption), or one number per judged pair; a mapping names them.
        ground_truth: By default each caption's own image.
        without_references: Add the pairs whose caption is not word for word one of the image's references: a φ that
            sees the answer among its references has an easy task there.
        pooled: Take every judge's score as an observation of its own, as some papers do, not the mean of a pair.
        resamples: Resamples for the intervals.
        level: Confidence level of the intervals.
        seed: Seed of the intervals.
        threads: Threads to use.
        progress: Told how much is done.
    """
    if not isinstance(judgements, Judgements):
        judgements = read_judgements(judgements, dataset)
    judgements.check(dataset)
    truth = judgements.is_relevant(ground_truth_of(dataset, ground_truth))
    by_name: dict[str, Phi] = {}  # the names that they have in results
    if isinstance(phi, Mapping):
        by_name = {str(name): similarity for name, similarity in phi.items()}
    else:
        several = list(phi) if isinstance(phi, Sequence) and not isinstance(phi, str) else [phi]
        for number, item in enumerate(several, start=1):
            name = item if isinstance(item, str) else getattr(item, "name", None) or getattr(item, "__name__", None)
            name = f"phi {number}" if not isinstance(name, str) or isinstance(item, np.ndarray) else name
            if name in by_name:
                fix = "drop one, or name them in a mapping: {'first': …, 'second': …}"
                raise UsageError(f"two φ are named {name!r}", fix=fix)
            by_name[name] = item
    values = {BINARY: truth.astype(np.float64)}
    for name, similarity in by_name.items():
        if isinstance(similarity, str) and similarity == BINARY:
            values[name] = values[BINARY]
        else:
            values[name] = pair_similarity(dataset, judgements, similarity, threads, progress, name=name)
    parts = {ALL_PAIRS: np.ones(len(judgements), np.bool_), OUTSIDE_GROUND_TRUTH: ~truth}
    if without_references:
        parts[NOT_A_REFERENCE] = ~judgements.among_references(dataset)
    resampling: dict[str, Any] = {"resamples": resamples, "seed": seed, "threads": threads}
    subsets = {}
    for part, members in parts.items():
        rows = np.flatnonzero(members)
        scores, judges = judgements.scores[rows], judgements.judges[rows]
        people = judge_agreement(
            judges, judgements.same_persons, judgements.images[rows], resamples=resamples, level=level, seed=seed
        )
        if pooled:
            single = np.isfinite(judges)
            rows, scores = np.repeat(rows, single.sum(axis=1)), judges[single]
        images = judgements.images[rows]
        fits = {phi: correlations(column[rows], scores, images, **resampling) for phi, column in values.items()}
        figures = {phi: {key: fit.estimate(key, level) for key in COEFFICIENTS} for phi, fit in fits.items()}
        differences = {
            (second, first): {key: fits[second].less(fits[first], key, level) for key in COEFFICIENTS}
            for first, second in combinations(fits, 2)
        }
        sizes = int(members.sum()), len(rows), len(np.unique(images))
        subsets[part] = AgreementSubset(*sizes, figures, differences, people)
    return HumanAgreement(dataset.name, judgements, values, truth, subsets, pooled=pooled, level=level)


def pair_similarity(
    dataset: Dataset,
    judgements: Judgements,
    phi: Phi,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    name: str = "φ",
) -> Array:
    """φ of every judged pair: as given, of a matrix, or from the image's captions as references."""
    if isinstance(phi, np.ndarray) and phi.ndim == 1:
        values = np.asarray(phi, np.float64)
        if len(values) != len(judgements):
            raise InputError(
                f"{name}: {len(values):,} numbers for {len(judgements):,} judged pairs", expected="one each"
            )
    elif isinstance(similarity := load_similarity(phi), IdSimilarity):
        if judgements.others:
            raise UsageError(
                f"{len(judgements.others):,} judged captions are not in the dataset: a matrix has no φ for them",
                fix="use a φ that reads texts, such as cider, or add the captions to the dataset",
            )
        prepared = similarity.prepare_ids(dataset)
        values = np.asarray(prepared.pairs(judgements.images, judgements.captions), np.float64)
    else:
        # Only the judged captions: there are often far fewer than the dataset has.
        captions, columns = np.unique(judgements.captions, return_inverse=True)
        all_texts = (*dataset.texts, *judgements.others)
        texts = [all_texts[caption] for caption in captions.tolist()]
        by_text = similarity.prepare(references_of(dataset), texts, progress=progress, threads=threads)
        values = np.asarray(by_text.pairs(judgements.images, columns.reshape(-1)), np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        image = dataset.image_ids[judgements.images[row]]
        raise InputError(f"{name} of judged pair {row} (image {image!r}) is {values[row]}", expected="finite numbers")
    return values
