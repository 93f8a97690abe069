"""Annotation problems apart from model failures: which labels a person should review, and why.

Words, models and duplicates are independent signals. Only words and duplicates excuse a failure: that every model gets
a caption wrong is a reason to review it, but never a reason not to count it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import polars as pl

from crosslens.analyze.label_quality.concepts import ConceptAgreement, DatasetConcepts, extract_concepts, label_texts
from crosslens.analyze.label_quality.duplicates import (
    NO_COPIES,
    CaptionCopies,
    DuplicateImages,
    duplicate_captions,
    duplicate_images,
)
from crosslens.analyze.label_quality.review import RUN_COLUMNS, LabelQuality
from crosslens.analyze.label_quality.settings import LabelSettings
from crosslens.analyze.label_quality.signals import (
    AnyRun,
    CaptionEvidence,
    OwnImageRank,
    caption_ranking,
    own_image_ranks,
    preferred_image,
    review_table,
)
from crosslens.core import Dataset, Embeddings, Progress, Run
from crosslens.explanations import failed_queries, query_outcomes
from crosslens.language import count_words

_FEWEST_CAPTIONS = 20
_MOST_LISTED = 0.5
"""The share of captions from which on a list points to the inputs, and the number of captions that this takes."""


def assess_label_quality(
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
    """The labels to review, the most suspect first, and how many of each run's failures remain the model's.

    ``runs`` are runs, or by name the rankings that :func:`crosslens.rank_both` returns; ``direction`` is t2i or t2t.
    ``pictures`` maps image ids to files, ``images`` are vectors of images: either finds duplicates. ``words=False``
    skips parsing (and the extra ``language``), and so the keyword filter.
    """
    settings = settings or LabelSettings()
    named = _named(runs)
    concepts = extract_concepts(dataset, progress) if words else None
    duplicates = duplicate_images(
        dataset, pictures, images, bits=settings.bits, cosine=settings.cosine, progress=progress
    )
    evidence = _Evidence(dataset, settings, concepts, duplicates, duplicate_captions(dataset))
    for run in named.values():
        evidence.add(own_image_ranks(run, dataset, direction))
    captions = map(evidence.about, range(len(dataset.texts)))
    table = review_table(dataset, captions, duplicates, far=settings.far, shortest=settings.shortest)
    failures = [evidence.run_row(name, run, direction) for name, run in named.items()]
    return LabelQuality(
        dataset,
        table,
        pl.DataFrame(failures, schema=dict(RUN_COLUMNS), orient="row"),
        asdict(settings),
        (
            *_note_on_length(dataset, table, bool(named)),
            *_notes(dataset, named, concepts, compared_pictures=bool(pictures) or images is not None),
        ),
        pictures or {},
    )


@dataclass
class _Evidence:
    """Everything that is known about each caption."""

    dataset: Dataset
    settings: LabelSettings
    concepts: DatasetConcepts | None
    duplicates: Sequence[DuplicateImages]
    copies: Mapping[int, CaptionCopies]
    ranks: dict[int, list[OwnImageRank]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.duplicates_of: dict[int, set[int]] = {}
        for pair in self.duplicates:
            self.duplicates_of.setdefault(pair.first, set()).add(pair.second)
            self.duplicates_of.setdefault(pair.second, set()).add(pair.first)
        captions = range(len(self.dataset.texts))
        self.words: list[int] = count_words(self.dataset.captions["text"]).to_list()
        self.agreements: list[ConceptAgreement | None] = [
            None if self.concepts is None else self.concepts.agreement(row) for row in captions
        ]

    def add(self, ranks: Mapping[int, OwnImageRank]) -> None:
        """The ranks of one run."""
        for row, rank in ranks.items():
            self.ranks.setdefault(row, []).append(rank)

    def about(self, row: int) -> CaptionEvidence:
        """One caption."""
        owner = self.dataset.caption_image
        duplicates = self.duplicates_of.get(int(owner[row]), set())
        ranks, filtered = self.ranks.get(row, []), self.filtered(row)
        preferred = preferred_image(ranks, duplicates)
        fit = self.concepts.agreement(row, preferred.image) if self.concepts and preferred else None
        elsewhere = self.copies.get(row, NO_COPIES)
        copies = replace(elsewhere, captions=tuple(copy for copy in elsewhere.captions if copy[0] not in duplicates))
        agreement = self.agreements[row]
        pointless = bool(agreement and not agreement.concepts and agreement.agreed and agreement.named_share == 0)
        return CaptionEvidence(row, self.words[row], agreement, filtered, pointless, ranks, preferred, fit, copies)

    def filtered(self, row: int) -> bool:
        """Whether the keyword filter removes a caption."""
        agreement = self.agreements[row]
        share = None if agreement is None else agreement.share
        return share is not None and share < self.settings.threshold

    def run_row(self, name: str, run: AnyRun, direction: str | None) -> tuple[object, ...]:
        """How many failures of a run are annotation problems, by reason, and how many remain the model's."""
        ranking = caption_ranking(run, direction)
        rankings = {ranking.direction: ranking}
        failures = failed_queries(rankings, self.dataset, ranking.direction)
        caption = {caption_id: row for row, caption_id in enumerate(self.dataset.caption_ids)}
        image = {image_id: row for row, image_id in enumerate(self.dataset.image_ids)}
        counts = [0, 0, 0, 0]
        for query, truth, retrieved in failures.select("query", "ground_truth", "retrieved").iter_rows():
            row = caption[query]
            copied = any(owner == image[retrieved] for owner, _ in self.copies.get(row, NO_COPIES).captions)
            reasons = (self.filtered(row), copied, image[retrieved] in self.duplicates_of.get(image[truth], ()))
            counts = [total + applies for total, applies in zip(counts, (*reasons, any(reasons)), strict=True)]
        queries = query_outcomes(rankings, self.dataset, ranking.direction).height
        return (name, ranking.direction, queries, failures.height, *counts, failures.height - counts[-1])


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


def _note_on_length(dataset: Dataset, table: pl.DataFrame, ranked: bool) -> list[str]:
    """A list that holds most captions says little about each of them."""
    listed, captions = table["caption"].drop_nulls().n_unique(), len(dataset.caption_ids)
    if captions < _FEWEST_CAPTIONS or listed < _MOST_LISTED * captions:
        return []
    question = (
        "are the rows of the runs in the dataset's order?" if ranked else "do the captions belong to these images?"
    )
    return [f"{listed:,} of {captions:,} captions are listed, so the inputs may be wrong, not the labels: {question}"]


def _notes(
    dataset: Dataset, runs: Mapping[str, AnyRun], concepts: DatasetConcepts | None, *, compared_pictures: bool
) -> list[str]:
    notes = []
    if not runs:
        notes.append("no runs: nothing is said about where captions are ranked")
    if concepts is None:
        notes.append("the keyword filter was left out")
    else:
        if concepts.alone:
            what = "one caption" if dataset.corpus is None else "no other text"
            notes.append(
                f"{concepts.alone:,} images have {what} and no annotated objects: the keyword filter passes them"
            )
        if label_texts(dataset) is not dataset:
            notes.append("labels are the queries; the texts of the corpus say what is in an image")
    if not compared_pictures:
        notes.append("no pictures and no image vectors: duplicate images were not looked for")
    return notes
