"""Annotation problems apart from model failures: which labels a person should review, and why.

Words, models and duplicates are independent signals. Only words and duplicates excuse a failure: that every model gets
a caption wrong is a reason to review it, but never a reason not to count it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import log
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.label_quality.concepts import ConceptAgreement, DatasetConcepts, extract_concepts, label_texts
from crosslens.analyze.label_quality.review import (
    ALSO_FITS,
    ANOTHER_IMAGE,
    EMPTY,
    FAR,
    KEEP,
    MOVE,
    REASONS,
    REMOVE,
    RUN_COLUMNS,
    SAME_CAPTION,
    SAME_PICTURE,
    WORDS,
    LabelQuality,
)
from crosslens.analyze.near_duplicates import (
    NO_COPIES,
    CaptionCopies,
    DuplicateImages,
    duplicate_captions,
    duplicate_images,
)
from crosslens.analyze.options import LabelSettings
from crosslens.core import (
    TEXT_TO_IMAGE,
    UNRANKED,
    Dataset,
    Embeddings,
    Progress,
    Ranking,
    Run,
    UsageError,
    argument,
    distinct_names,
    positions,
)
from crosslens.explanations import TEXT_TO_TEXT, failed_queries, item_rows, query_outcomes, ranking_of
from crosslens.language import count_words

AnyRun = Run | Mapping[str, Ranking]


@dataclass(frozen=True)
class OwnImageRank:
    """One caption in one run: the rank of its own image among so many, and the images before it that the run kept.

    ``rank`` is a lower bound where a truncated list ends before the image. ``before`` maps rows of images to (rank,
    lead): by how much the image is scored above the caption's own, at least.
    """

    rank: int
    gallery: int
    before: Mapping[int, tuple[int, float]]

    @property
    def depth(self) -> float:
        """0 for the first rank, 1 for the last, by the logarithm of the rank."""
        return log(self.rank) / log(self.gallery) if self.gallery > 1 else 0.0


@dataclass(frozen=True)
class PreferredImage:
    """An image that ranks before a caption's own in every run; ``lead`` is the smallest of the runs."""

    image: int
    ranks: tuple[int, ...]
    lead: float


def own_image_ranks(run: AnyRun, dataset: Dataset, direction: str | None = None) -> dict[int, OwnImageRank]:
    """The captions (rows of the dataset) that are queries of a run, with the ranks of their images."""
    ranking = caption_ranking(run, direction, dataset)
    outcomes = query_outcomes({ranking.direction: ranking}, dataset, ranking.direction)
    rows = positions(outcomes["query"].to_list(), dataset.caption_ids, "caption").tolist()
    queries = positions(outcomes["query"].to_list(), ranking.query_ids, "query").tolist()
    images = item_rows(ranking, dataset)
    own_scores = (outcomes["score"] - outcomes["margin"]).to_list()
    ranks = {}
    for row, query, rank, truth in zip(rows, queries, outcomes["rank"].to_list(), own_scores, strict=True):
        least = int(ranking.known[query]) + 1 if rank is None else rank
        listed = ranking.top_items[query] != UNRANKED
        scores = ranking.top_scores[query][listed].astype(np.float64)
        leads = scores[: least - 1] - (float(scores[-1]) if truth is None else truth)
        above = images[ranking.top_items[query][listed][: least - 1]]
        before = {
            int(image): (place, lead) for place, (image, lead) in enumerate(zip(above, leads.tolist(), strict=True), 1)
        }
        ranks[row] = OwnImageRank(least, max(len(ranking.item_ids), least), before)
    return ranks


def caption_ranking(run: AnyRun, direction: str | None = None, dataset: Dataset | None = None) -> Ranking:
    """The ranking in which captions are the queries: t2i, or t2t of text-only retrieval."""
    if direction is not None and direction not in (TEXT_TO_IMAGE, TEXT_TO_TEXT):
        raise UsageError(
            f"direction {direction!r}", fix="labels need captions as queries: use t2i or t2t", option="direction"
        )
    rankings = run.rankings if isinstance(run, Run) else run
    with_captions = {name: rankings[name] for name in (TEXT_TO_IMAGE, TEXT_TO_TEXT) if name in rankings}
    if not with_captions and rankings:
        name = f"the run {run.name!r}" if isinstance(run, Run) else "a run"
        raise UsageError(
            f"{name} has no captions as queries, only {', '.join(rankings)}",
            fix=f"evaluate in both directions (the default), or with {argument('direction', TEXT_TO_IMAGE)}",
        )
    return ranking_of(run, direction or next(iter(with_captions), None), dataset)


def preferred_image(ranks: Sequence[OwnImageRank], excluded: Collection[int] = ()) -> PreferredImage | None:
    """Of the images before the caption's own in every run, the one with the smallest sum of ranks.

    ``excluded`` are images that do not count, such as the same picture under another id.
    """
    shared = set.intersection(*(set(rank.before) for rank in ranks)) - set(excluded) if ranks else set()
    if not shared:
        return None
    best = min(shared, key=lambda image: (sum(rank.before[image][0] for rank in ranks), image))
    above = [rank.before[best] for rank in ranks]
    return PreferredImage(best, tuple(rank for rank, _ in above), min(lead for _, lead in above))


BY_MODELS = frozenset((ANOTHER_IMAGE, FAR))
"""That models miss a caption makes no label suspect by itself; it adds to what words or copies say against it."""
SIGNAL_GROUPS = (frozenset((WORDS, EMPTY)), BY_MODELS | {SAME_CAPTION})
"""Reasons of one group count once: that models prefer the other image of a copied caption is no second signal."""

REVIEW_COLUMNS: Mapping[str, Any] = {
    "place": pl.Int64,
    **dict.fromkeys(("image", "caption", "text", "reason", "evidence", "proposal"), pl.String),
    **dict.fromkeys(("suggested_image", "suggested_text", "verdict"), pl.String),
    "signals": pl.Int64,
    **dict.fromkeys(("severity", "concept_share"), pl.Float64),
    **dict.fromkeys(("rank", "best_rank"), pl.Int64),
    "lead": pl.Float64,
}
"""The columns of the list; ``verdict`` is empty, for the person who reviews it. ``rank`` is the worst of the runs.

A label with 0 ``signals`` is not suspect: models miss it, no more.
"""

_FITS = 0.5
"""A filtered caption is moved to the preferred image if at least this share of its concepts occurs there."""
_OTHER_ORDER, _LONG = 0.9, 12


@dataclass(frozen=True)
class CaptionEvidence:
    """Everything that is known about one caption (row).

    ``agreement``  with what else is said about its image; ``filtered`` whether the keyword filter takes it out,
                   ``short`` whether it has too few words, ``pointless`` whether it names nothing although the others
                   agree on something
    ``ranks``      one per run; ``far`` whether all are far down, ``preferred`` the image before its own in all of them,
                   ``fit`` the agreement with it
    ``copies``     captions of other images in the same words
    """

    caption: int
    words: int
    agreement: ConceptAgreement | None
    filtered: bool
    short: bool
    pointless: bool
    ranks: Sequence[OwnImageRank]
    far: bool
    preferred: PreferredImage | None
    fit: ConceptAgreement | None
    copies: CaptionCopies

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why it is suspect."""
        applies = {
            WORDS: self.filtered,
            EMPTY: self.pointless or self.short,
            ANOTHER_IMAGE: self.preferred is not None,
            FAR: self.far,
            SAME_CAPTION: bool(self.copies.captions),
        }
        return tuple(reason for reason in REASONS if applies.get(reason))

    @property
    def severity(self) -> float:
        """The doubt from words plus the larger of models' and duplicates', each from 0 to 1.

        Words: the mean share of concepts that occur nowhere else and of agreed objects that it leaves out. Models: how
        far down its own image is, on average over runs. Duplicates: three equal words may be chance, twelve are not.
        """
        words = 1.0
        if not self.short and not self.pointless:
            shares = () if self.agreement is None else (self.agreement.share, self.agreement.named_share)
            known = [share for share in shares if share is not None]
            words = 1 - fmean(known) if known else 0.0
        models = fmean(rank.depth for rank in self.ranks) if self.ranks else 0.0
        copies = 0.0
        if self.copies.captions:
            copies = min(1.0, self.words / _LONG) * (1 if self.copies.in_order else _OTHER_ORDER)
        return words + max(models, copies)

    @property
    def proposal(self) -> str:
        """What a reviewer may do about it."""
        if SAME_CAPTION in self.reasons:
            return REMOVE if self.filtered else ALSO_FITS  # the image that it belongs to has it already
        if self.filtered and self.fit is not None and (self.fit.share or 0) >= _FITS:
            return MOVE
        if self.filtered or EMPTY in self.reasons:
            return REMOVE
        # That models prefer an image must not make it relevant to them; that it has all the caption names may.
        return ALSO_FITS if self.fit is not None and self.fit.share == 1 else KEEP

    def facts(self, image_ids: Sequence[str]) -> Iterator[str]:
        """The facts behind the reasons."""
        if self.filtered and self.agreement is not None:
            yield f"only here: {', '.join(self.agreement.missing)}"
        if (self.filtered or EMPTY in self.reasons) and self.agreement is not None and self.agreement.silent:
            yield f"the others: {', '.join(self.agreement.silent)}"
        if EMPTY in self.reasons and not self.pointless:
            yield f"{self.words} word{'' if self.words == 1 else 's'}"
        if copies := self.copies.captions:
            kind = "same words" if self.copies.in_order else "same words in another order"
            named = ", ".join(name for _, name in copies[:3])
            yield f"{kind}: {named}{f' and {len(copies) - 3} more' if copies[3:] else ''}"
        if self.preferred is not None:
            ranks = ", ".join(f"{rank:,}" for rank in self.preferred.ranks)
            yield f"{image_ids[self.preferred.image]} at place {ranks}"
        if self.ranks and (self.far or self.preferred is not None):
            ranks = ", ".join(f"{rank.rank:,}" for rank in self.ranks)
            yield f"its own at {ranks} of {self.ranks[0].gallery:,}"


def review_table(
    dataset: Dataset, captions: Iterable[CaptionEvidence], duplicates: Sequence[DuplicateImages]
) -> pl.DataFrame:
    """One list of captions and of pairs of images: by number of signals, then by severity, then in dataset order.

    Captions that models miss and nothing else speaks against come last, and only those that every run ranks far down or
    whose words fit the preferred image too.
    """
    texts = label_texts(dataset)
    first = {int(image): text for text, image in reversed(list(zip(texts.texts, texts.caption_image, strict=True)))}
    rows: list[dict[str, Any]] = []
    for caption in captions:
        reasons = caption.reasons
        if not reasons or (reasons == (ANOTHER_IMAGE,) and caption.proposal != ALSO_FITS):
            continue
        suggested = None if caption.preferred is None else caption.preferred.image
        if caption.copies.captions:
            suggested = caption.copies.captions[0][0]
        ranks = [rank.rank for rank in caption.ranks]
        groups = () if BY_MODELS.issuperset(reasons) else SIGNAL_GROUPS
        rows.append({
            "image": dataset.image_ids[dataset.caption_image[caption.caption]],
            "caption": dataset.caption_ids[caption.caption],
            "text": dataset.texts[caption.caption],
            "reason": " + ".join(reasons),
            "evidence": "; ".join(caption.facts(dataset.image_ids)),
            "proposal": caption.proposal,
            "suggested_image": None if suggested is None else dataset.image_ids[suggested],
            "suggested_text": None if suggested is None else first.get(suggested),
            "signals": sum(not group.isdisjoint(reasons) for group in groups),
            "severity": caption.severity,
            "concept_share": None if caption.agreement is None else caption.agreement.share,
            "rank": max(ranks, default=None),
            "best_rank": min(ranks, default=None),
            "lead": None if caption.preferred is None else caption.preferred.lead,
        })  # fmt: skip
    for pair in duplicates:
        signals = pair.same_file + (pair.bits is not None) + (pair.cosine is not None)
        rows.append({
            "image": dataset.image_ids[pair.first],
            "text": first.get(pair.first),
            "reason": SAME_PICTURE,
            "evidence": str(pair),
            "proposal": ALSO_FITS,
            "suggested_image": dataset.image_ids[pair.second],
            "suggested_text": first.get(pair.second),
            "signals": signals,
            "severity": signals * pair.severity,
        })  # fmt: skip
    rows.sort(key=lambda row: (-row["signals"], -row["severity"]))
    ordered = [{**row, "place": place} for place, row in enumerate(rows, start=1)]
    return pl.DataFrame(ordered, schema=dict(REVIEW_COLUMNS))


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
    if isinstance(runs, Mapping):
        named = dict(runs)
    else:
        several = [runs] if isinstance(runs, Run) else list(runs)
        named = dict(zip(distinct_names(run.name for run in several), several, strict=True))
    concepts = extract_concepts(dataset, progress) if words else None
    duplicates = duplicate_images(
        dataset, pictures, images, bits=settings.bits, cosine=settings.cosine, progress=progress
    )
    evidence = _Evidence(dataset, settings, concepts, duplicates, duplicate_captions(dataset))
    image_rows = dataset.image_rows
    remaining: list[tuple[object, ...]] = []
    for name, run in named.items():
        for row, rank in own_image_ranks(run, dataset, direction).items():
            evidence.ranks.setdefault(row, []).append(rank)
        # How many failures of the run are annotation problems, by reason, and how many remain the model's.
        ranking = caption_ranking(run, direction)
        rankings = {ranking.direction: ranking}
        failures = failed_queries(rankings, dataset, ranking.direction)
        counts = [0, 0, 0, 0]
        for query, truth, retrieved in failures.select("query", "ground_truth", "retrieved").iter_rows():
            row, image = dataset.caption_rows[query], image_rows[retrieved]
            copied = any(owner == image for owner, _ in evidence.copies.get(row, NO_COPIES).captions)
            same_picture = image in evidence.duplicates_of.get(image_rows[truth], ())
            reasons = (evidence.filtered(row), copied, same_picture)
            counts = [total + applies for total, applies in zip(counts, (*reasons, any(reasons)), strict=True)]
        queries = query_outcomes(rankings, dataset, ranking.direction).height
        remaining.append((name, ranking.direction, queries, failures.height, *counts, failures.height - counts[-1]))
    table = review_table(dataset, map(evidence.about, range(len(dataset.texts))), duplicates)
    return LabelQuality(
        dataset,
        table,
        pl.DataFrame(remaining, schema=dict(RUN_COLUMNS), orient="row"),
        asdict(settings),
        tuple(_notes(dataset, table, named, concepts, compared_pictures=bool(pictures) or images is not None)),
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

    def about(self, row: int) -> CaptionEvidence:
        """One caption."""
        duplicates = self.duplicates_of.get(int(self.dataset.caption_image[row]), set())
        ranks, agreement = self.ranks.get(row, []), self.agreements[row]
        preferred = preferred_image(ranks, duplicates)
        elsewhere = self.copies.get(row, NO_COPIES)
        return CaptionEvidence(
            row, self.words[row], agreement, self.filtered(row), self.words[row] < self.settings.shortest,
            bool(agreement and not agreement.concepts and agreement.agreed and agreement.named_share == 0), ranks,
            bool(ranks) and all(rank.rank > max(1, self.settings.far * rank.gallery) for rank in ranks), preferred,
            self.concepts.agreement(row, preferred.image) if self.concepts and preferred else None,
            replace(elsewhere, captions=tuple(copy for copy in elsewhere.captions if copy[0] not in duplicates)),
        )  # fmt: skip

    def filtered(self, row: int) -> bool:
        """Whether the keyword filter removes a caption."""
        agreement = self.agreements[row]
        share = None if agreement is None else agreement.share
        return share is not None and share < self.settings.threshold


def _notes(
    dataset: Dataset,
    table: pl.DataFrame,
    runs: Mapping[str, AnyRun],
    concepts: DatasetConcepts | None,
    *,
    compared_pictures: bool,
) -> list[str]:
    notes = []
    listed, captions = table["caption"].drop_nulls().n_unique(), len(dataset.caption_ids)
    if captions >= _FEWEST_CAPTIONS and listed >= _MOST_LISTED * captions:  # says little about each of them
        question = (
            "are the rows of the runs in the dataset's order?" if runs else "do the captions belong to these images?"
        )
        notes.append(
            f"{listed:,} of {captions:,} captions are listed, so the inputs may be wrong, not the labels: {question}"
        )
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
