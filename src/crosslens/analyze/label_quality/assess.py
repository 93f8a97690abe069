"""Annotation problems apart from model failures: which labels a person should review, and why.

Words, models and duplicates are independent signals. Only words and duplicates excuse a failure: that every model gets
a caption wrong is a reason to review it, but never a reason not to count it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
    positions,
)
from crosslens.explanations import TEXT_TO_TEXT, failed_queries, item_rows, query_outcomes, ranking_of
from crosslens.language import count_words

Array = np.ndarray[Any, Any]
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
    own = (outcomes["score"] - outcomes["margin"]).to_list()
    ranks = {}
    for row, query, rank, truth in zip(rows, queries, outcomes["rank"].to_list(), own, strict=True):
        known = int(ranking.known[query])
        least = known + 1 if rank is None else rank
        ranks[row] = OwnImageRank(
            least, max(len(ranking.item_ids), least), _before(ranking, query, least, truth, images)
        )
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


def _before(ranking: Ranking, row: int, rank: int, truth: float | None, images: Array) -> dict[int, tuple[int, float]]:
    items = ranking.top_items[row][: rank - 1]
    items = items[items != UNRANKED]
    scores = ranking.top_scores[row][: len(items)].astype(np.float64)
    kept = ranking.top_scores[row][ranking.top_items[row] != UNRANKED]
    beyond = float(kept[-1]) if truth is None else truth
    leads = (scores - beyond).tolist()
    return {
        int(image): (rank_above, lead)
        for rank_above, (image, lead) in enumerate(zip(images[items], leads, strict=True), 1)
    }


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
                   ``pointless`` whether it names nothing although the others agree on something
    ``ranks``      one per run; ``preferred`` the image before its own in all of them, ``fit`` the agreement with it
    ``copies``     captions of other images in the same words
    """

    caption: int
    words: int
    agreement: ConceptAgreement | None = None
    filtered: bool = False
    pointless: bool = False
    ranks: Sequence[OwnImageRank] = ()
    preferred: PreferredImage | None = None
    fit: ConceptAgreement | None = None
    copies: CaptionCopies = NO_COPIES

    def reasons(self, far: float, shortest: int) -> tuple[str, ...]:
        """Why it is suspect."""
        applies = {
            WORDS: self.filtered,
            EMPTY: self.pointless or self.words < shortest,
            ANOTHER_IMAGE: self.preferred is not None,
            FAR: bool(self.ranks) and all(rank.rank > max(1, far * rank.gallery) for rank in self.ranks),
            SAME_CAPTION: bool(self.copies.captions),
        }
        return tuple(reason for reason in REASONS if applies.get(reason))

    def severity(self, shortest: int) -> float:
        """The doubt from words plus the larger of models' and duplicates', each from 0 to 1.

        Words: the mean share of concepts that occur nowhere else and of agreed objects that it leaves out. Models: how
        far down its own image is, on average over runs. Duplicates: three equal words may be chance, twelve are not.
        """
        words = 1.0
        if self.words >= shortest and not self.pointless:
            shares = () if self.agreement is None else (self.agreement.share, self.agreement.named_share)
            known = [share for share in shares if share is not None]
            words = 1 - fmean(known) if known else 0.0
        models = fmean(rank.depth for rank in self.ranks) if self.ranks else 0.0
        copies = 0.0
        if self.copies.captions:
            copies = min(1.0, self.words / _LONG) * (1 if self.copies.in_order else _OTHER_ORDER)
        return words + max(models, copies)


def review_table(
    dataset: Dataset,
    captions: Iterable[CaptionEvidence],
    duplicates: Sequence[DuplicateImages],
    *,
    far: float,
    shortest: int,
) -> pl.DataFrame:
    """One list of captions and of pairs of images: by number of signals, then by severity, then in dataset order.

    Captions that models miss and nothing else speaks against come last, and only those that every run ranks far down or
    whose words fit the preferred image too.
    """
    texts = label_texts(dataset)
    first = {int(image): text for text, image in reversed(list(zip(texts.texts, texts.caption_image, strict=True)))}
    rows = [
        _caption_row(dataset, first, caption, reasons, caption.severity(shortest))
        for caption in captions
        if (reasons := caption.reasons(far, shortest))
        and (reasons != (ANOTHER_IMAGE,) or _proposal(caption, reasons) == ALSO_FITS)
    ]
    rows += [_duplicate_row(dataset, first, pair) for pair in duplicates]
    rows.sort(key=lambda row: (-row["signals"], -row["severity"]))
    for number, row in enumerate(rows, start=1):
        row["place"] = number
    return pl.DataFrame(rows, schema=dict(REVIEW_COLUMNS))


def _caption_row(
    dataset: Dataset, first: Mapping[int, str], caption: CaptionEvidence, reasons: tuple[str, ...], severity: float
) -> dict[str, Any]:
    owner = dataset.caption_image
    suggested = None if caption.preferred is None else caption.preferred.image
    if SAME_CAPTION in reasons:
        suggested = caption.copies.captions[0][0]
    ranks = [rank.rank for rank in caption.ranks]
    return {
        "image": dataset.image_ids[owner[caption.caption]],
        "caption": dataset.caption_ids[caption.caption],
        "text": dataset.texts[caption.caption],
        "reason": " + ".join(reasons),
        "evidence": "; ".join(_evidence(dataset, caption, reasons)),
        "proposal": _proposal(caption, reasons),
        "suggested_image": None if suggested is None else dataset.image_ids[suggested],
        "suggested_text": None if suggested is None else first.get(suggested),
        "signals": 0
        if BY_MODELS.issuperset(reasons)
        else sum(not group.isdisjoint(reasons) for group in SIGNAL_GROUPS),
        "severity": severity,
        "concept_share": None if caption.agreement is None else caption.agreement.share,
        "rank": max(ranks, default=None),
        "best_rank": min(ranks, default=None),
        "lead": None if caption.preferred is None else caption.preferred.lead,
    }


def _duplicate_row(dataset: Dataset, first: Mapping[int, str], pair: DuplicateImages) -> dict[str, Any]:
    signals = pair.same_file + (pair.bits is not None) + (pair.cosine is not None)
    return {
        "image": dataset.image_ids[pair.first],
        "text": first.get(pair.first),
        "reason": SAME_PICTURE,
        "evidence": str(pair),
        "proposal": ALSO_FITS,
        "suggested_image": dataset.image_ids[pair.second],
        "suggested_text": first.get(pair.second),
        "signals": signals,
        "severity": signals * pair.severity,
    }


def _proposal(caption: CaptionEvidence, reasons: tuple[str, ...]) -> str:
    if SAME_CAPTION in reasons:
        return REMOVE if WORDS in reasons else ALSO_FITS  # the image that it belongs to has it already
    if WORDS in reasons and caption.fit is not None and (caption.fit.share or 0) >= _FITS:
        return MOVE
    if WORDS in reasons or EMPTY in reasons:
        return REMOVE
    # That models prefer an image must not make it relevant to them; that it has all the caption names may.
    return ALSO_FITS if caption.fit is not None and caption.fit.share == 1 else KEEP


def _evidence(dataset: Dataset, caption: CaptionEvidence, reasons: tuple[str, ...]) -> Iterable[str]:
    """The reasons with their facts."""
    if WORDS in reasons and caption.agreement is not None:
        yield f"only here: {', '.join(caption.agreement.missing)}"
    if (WORDS in reasons or EMPTY in reasons) and caption.agreement is not None and caption.agreement.silent:
        yield f"the others: {', '.join(caption.agreement.silent)}"
    if EMPTY in reasons and not caption.pointless:
        yield f"{caption.words} word{'' if caption.words == 1 else 's'}"
    if SAME_CAPTION in reasons:
        copies = caption.copies.captions
        kind = "same words" if caption.copies.in_order else "same words in another order"
        named = ", ".join(name for _, name in copies[:3])
        yield f"{kind}: {named}{f' and {len(copies) - 3} more' if copies[3:] else ''}"
    if ANOTHER_IMAGE in reasons and caption.preferred is not None:
        ranks = ", ".join(f"{rank:,}" for rank in caption.preferred.ranks)
        yield f"{dataset.image_ids[caption.preferred.image]} at place {ranks}"
    if caption.ranks and (ANOTHER_IMAGE in reasons or FAR in reasons):
        ranks = ", ".join(f"{rank.rank:,}" for rank in caption.ranks)
        yield f"its own at {ranks} of {caption.ranks[0].gallery:,}"


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
        names = [run.name for run in several]
        named = {
            name if names.count(name) == 1 else f"{name} ({number})": run
            for number, (name, run) in enumerate(zip(names, several, strict=True), 1)
        }
    concepts = extract_concepts(dataset, progress) if words else None
    duplicates = duplicate_images(
        dataset, pictures, images, bits=settings.bits, cosine=settings.cosine, progress=progress
    )
    evidence = _Evidence(dataset, settings, concepts, duplicates, duplicate_captions(dataset))
    for run in named.values():
        for row, rank in own_image_ranks(run, dataset, direction).items():
            evidence.ranks.setdefault(row, []).append(rank)
    captions = map(evidence.about, range(len(dataset.texts)))
    table = review_table(dataset, captions, duplicates, far=settings.far, shortest=settings.shortest)
    failures = [evidence.run_row(name, run, direction) for name, run in named.items()]
    return LabelQuality(
        dataset,
        table,
        pl.DataFrame(failures, schema=dict(RUN_COLUMNS), orient="row"),
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
