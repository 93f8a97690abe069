"""Annotation problems apart from model failures: which labels a person should look at, and why.

Words, models and copies each give signals of their own. Only words and copies excuse a failure: that every model gets
a caption wrong is a reason to look at it, but never a reason not to count it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from crosslens.analyze.label_quality_copies import Twins, copied_captions, twin_images, words_of
from crosslens.analyze.label_quality_result import RUN_COLUMNS, LabelQuality
from crosslens.analyze.label_quality_runs import AnyRun, Standing, caption_ranking, rival_of, standings
from crosslens.analyze.label_quality_signals import CaptionEvidence, review_table
from crosslens.analyze.label_quality_words import Agreement, Concepts, concepts_of
from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import UsageError
from crosslens.core.progress import Progress
from crosslens.core.run import Run
from crosslens.explain.failures import failures_of, outcomes_of


@dataclass(frozen=True)
class LabelSettings:
    """What makes a label suspect.

    ``threshold``  the keyword filter: a smaller share of the caption's concepts than this occurs elsewhere
    ``far``        the own image stands behind this share of the gallery, in every run
    ``shortest``   a caption of fewer words says too little
    ``bits``       pictures whose hashes (192 bits) differ in at most so many are one; -1: never
    ``cosine``     images whose vectors are at least so near are one; 2: never
    """

    threshold: float = 1 / 3
    far: float = 0.05
    shortest: int = 3
    bits: int = 6
    cosine: float = 0.99

    def __post_init__(self) -> None:
        for name, least, most in (("threshold", 0, 1), ("far", 0, 1), ("cosine", -1, 2), ("bits", -1, 192)):
            value = getattr(self, name)
            if not least <= value <= most:  # NaN too
                raise UsageError(f"{name} = {value}", fix=f"choose a number from {least} to {most}")
        if self.shortest < 0:
            raise UsageError(f"shortest = {self.shortest}", fix="choose 0 words or more")


def label_quality(
    dataset: Dataset,
    runs: Mapping[str, AnyRun] | Sequence[Run] | Run = (),
    *,
    pictures: Mapping[str, str] | None = None,
    images: Embeddings | None = None,
    direction: str | None = None,
    words: bool = True,
    settings: LabelSettings | None = None,
    progress: Progress | None = None,
) -> LabelQuality:
    """The labels to review, the most suspect first, and what of each run's failures remains the model's.

    ``runs`` are runs, or under names of your choice the rankings that :func:`crosslens.rank_both` gives; ``direction``
    is t2i or t2t. ``pictures`` maps image ids to files, ``images`` are vectors of images: either finds duplicates.
    ``words=False`` does without parsing (and without the extra ``language``), and so without the keyword filter.
    """
    settings = settings or LabelSettings()
    named = _named(runs)
    concepts = concepts_of(dataset, progress) if words else None
    twins = twin_images(dataset, pictures, images, bits=settings.bits, cosine=settings.cosine, progress=progress)
    evidence = _Evidence(dataset, settings, concepts, twins, copied_captions(dataset))
    for one in named.values():
        evidence.add(standings(one, dataset, direction))
    captions = map(evidence.about, range(len(dataset.texts)))
    table = review_table(dataset, captions, twins, far=settings.far, shortest=settings.shortest)
    failures = [evidence.run_row(name, one, direction) for name, one in named.items()]
    return LabelQuality(
        dataset,
        table,
        pl.DataFrame(failures, schema=dict(RUN_COLUMNS), orient="row"),
        {name: getattr(settings, name) for name in ("threshold", "far", "shortest", "bits", "cosine")},
        tuple(_notes(dataset, named, concepts, compared_pictures=bool(pictures) or images is not None)),
    )


@dataclass
class _Evidence:
    """Everything that is known about each caption."""

    dataset: Dataset
    settings: LabelSettings
    concepts: Concepts | None
    twins: Sequence[Twins]
    copies: Mapping[int, tuple[tuple[int, ...], bool]]
    standing: dict[int, list[Standing]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.alike: dict[int, set[int]] = {}
        for pair in self.twins:
            self.alike.setdefault(pair.one, set()).add(pair.other)
            self.alike.setdefault(pair.other, set()).add(pair.one)
        captions = range(len(self.dataset.texts))
        self.agreements: list[Agreement | None] = [
            None if self.concepts is None else self.concepts.agreement(row) for row in captions
        ]

    def add(self, standing: Mapping[int, Standing]) -> None:
        """What one run says."""
        for row, one in standing.items():
            self.standing.setdefault(row, []).append(one)

    def about(self, row: int) -> CaptionEvidence:
        """One caption."""
        owner = self.dataset.caption_image
        alike = self.alike.get(int(owner[row]), set())
        standing, filtered = self.standing.get(row, []), self.filtered(row)
        rival = rival_of(standing, alike)
        fit = self.concepts.agreement(row, rival.image) if self.concepts and rival else None
        rows, in_order = self.copies.get(row, ((), True))
        copies = tuple(other for other in rows if int(owner[other]) not in alike)
        words = len(words_of(self.dataset.texts[row]))
        agreement = self.agreements[row]
        pointless = bool(agreement and not agreement.concepts and agreement.agreed and agreement.told == 0)
        return CaptionEvidence(row, words, agreement, filtered, pointless, standing, rival, fit, copies, in_order)

    def filtered(self, row: int) -> bool:
        """Whether the keyword filter takes a caption out."""
        agreement = self.agreements[row]
        share = None if agreement is None else agreement.share
        return share is not None and share < self.settings.threshold

    def run_row(self, name: str, run: AnyRun, direction: str | None) -> tuple[object, ...]:
        """How many failures of a run are annotation problems, by reason, and how many remain the model's."""
        ranking = caption_ranking(run, direction)
        rankings = {ranking.direction: ranking}
        failures = failures_of(rankings, self.dataset, ranking.direction)
        caption = {one: row for row, one in enumerate(self.dataset.caption_ids)}
        image = {one: row for row, one in enumerate(self.dataset.image_ids)}
        counts = [0, 0, 0, 0]
        for query, truth, found in failures.select("query", "ground_truth", "retrieved").iter_rows():
            row, owner = caption[query], self.dataset.caption_image
            copied = any(owner[other] == image[found] for other in self.copies.get(row, ((), False))[0])
            why = (self.filtered(row), copied, image[found] in self.alike.get(image[truth], ()))
            counts = [total + one for total, one in zip(counts, (*why, any(why)), strict=True)]
        asked = outcomes_of(rankings, self.dataset, ranking.direction).height
        return (name, ranking.direction, asked, failures.height, *counts, failures.height - counts[-1])


def _named(runs: Mapping[str, AnyRun] | Sequence[Run] | Run) -> dict[str, AnyRun]:
    if isinstance(runs, Run):
        return {runs.name: runs}
    if isinstance(runs, Mapping):
        return dict(runs)
    names = [run.name for run in runs]
    return {
        name if names.count(name) == 1 else f"{name} ({n})": run
        for n, (name, run) in enumerate(zip(names, runs, strict=True), 1)
    }


def _notes(
    dataset: Dataset, runs: Mapping[str, AnyRun], concepts: Concepts | None, *, compared_pictures: bool
) -> list[str]:
    notes = []
    if not runs:
        notes.append("no runs: nothing is said about where captions are ranked")
    if concepts is None:
        notes.append("the keyword filter was left out")
    else:
        alone = sum(
            len(rows) == 1 and not objects for rows, objects in zip(concepts.captions, concepts.objects, strict=True)
        )
        if alone:
            notes.append(f"{alone:,} images have one caption and no annotated objects: the keyword filter passes them")
    if not compared_pictures:
        notes.append("no pictures and no image vectors: duplicate images were not looked for")
    return notes
