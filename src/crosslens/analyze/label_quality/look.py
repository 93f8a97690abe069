"""What may be said about labels: which pictures and captions are there twice, and which captions were exchanged.

Only equal pictures and equal captions excuse a miss. The keyword filter, captions without words and captions that every
run ranks far down are worth a look: they accuse no label and excuse no model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.label_quality.concepts import ConceptAgreement, extract_concepts, label_texts
from crosslens.analyze.label_quality.contradictions import words_in_order
from crosslens.analyze.label_quality.pictures import SamePicture, same_pictures
from crosslens.analyze.label_quality.review import (
    ALSO_FITS,
    EMPTY,
    EXCHANGED,
    FAR,
    KEEP,
    MOVE,
    REVIEW_COLUMNS,
    RUN_COLUMNS,
    SAME_CAPTION,
    SAME_PICTURE,
    WORDS,
    LabelQuality,
)
from crosslens.analyze.label_quality.swapped import CHANCE, MovedCaption, MovedCaptions, find_swaps, only_at_home
from crosslens.analyze.options import LabelSettings
from crosslens.analyze.subject import Planted, Subject, analysis
from crosslens.core import UsageError, argument, finding_kind
from crosslens.engine import Progress
from crosslens.explanations import TEXT_TO_TEXT, query_outcomes, ranking_of
from crosslens.language import count_words
from crosslens.metrics import format_count
from crosslens.storage import IntArray
from crosslens.values import TEXT_TO_IMAGE, Dataset, Embeddings, Ranking, Run, distinct_names

AnyRun = Run | Mapping[str, Ranking]


@analysis("label-quality")
def look_at_labels(subject: Subject, settings: LabelSettings | None = None, *, words: bool = False) -> LabelQuality:
    """What may be said about the labels of a dataset, by its pictures, its captions and what a model makes of them."""
    rankings = {subject.dataset.name: subject.rankings} if TEXT_TO_IMAGE in subject.rankings else {}
    return assess_label_quality(
        subject.dataset, rankings, pictures=subject.pictures, images=subject.images, words=words, settings=settings,
        progress=subject.progress, seed=subject.seed,
    )  # fmt: skip


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
    seed: int = 0,
) -> LabelQuality:
    """The labels to correct, those worth a look, and how many of each run's misses no model could have avoided.

    Args:
        dataset: Images and their captions.
        runs: Runs, or by name the rankings that :func:`crosslens.rank.rank_both` returns.
        pictures: Image ids → files; which of them are one picture, their pixels decide.
        images: Vectors of the images, which, like hashes, only propose pairs.
        direction: t2i or t2t.
        words: Parse captions; without (and without the extra ``language``) there is no keyword filter.
        settings: What is listed.
        progress: Told how much is done.
        seed: Seed of the tests for swapped captions.
    """
    settings = settings or LabelSettings()
    if not isinstance(runs, Mapping):
        several = [runs] if isinstance(runs, Run) else runs
        runs = dict(zip(distinct_names(run.name for run in several), several, strict=True))
    rankings = {name: caption_ranking(run, direction, dataset) for name, run in runs.items()}
    outcomes = {
        name: query_outcomes({ranking.direction: ranking}, dataset, ranking.direction)
        for name, ranking in rankings.items()
    }
    same = same_pictures(dataset, pictures or {}, images, bits=settings.bits, cosine=settings.cosine, progress=progress)
    twins: dict[int, set[int]] = defaultdict(set)
    for pair in same:
        twins[pair.first].add(pair.second)
        twins[pair.second].add(pair.first)
    owner, copies = dataset.caption_image.tolist(), {}
    for row, text_ids in same_captions(dataset).items():
        if distinct := {image: text_ids[image] for image in text_ids if image not in twins[owner[row]]}:
            copies[row] = distinct
    swaps = find_swaps(dataset, [ranking for ranking in rankings.values() if ranking.direction == TEXT_TO_IMAGE], seed)
    concepts = extract_concepts(dataset, progress) if words else None
    agreements = [None if concepts is None else concepts.agreement(row) for row in range(len(dataset.texts))]
    doubts = _worth_a_look(dataset, outcomes.values(), settings, agreements)
    shares = [None if agreement is None else agreement.share for agreement in agreements]
    filtered = {row for row, facts in doubts.items() if WORDS in facts}
    remaining = [
        (name, rankings[name].direction, *_misses(outcome, dataset, twins, copies, filtered))
        for name, outcome in outcomes.items()
    ]
    notes = (
        "" if runs else "no runs: nothing is said about where captions are ranked",
        "" if words else "the keyword filter was left out",
        "" if pictures else "no pictures: equal ones were not looked for",
    )
    return LabelQuality(
        dataset, _review_table(dataset, same, copies, swaps, doubts, shares),
        pl.DataFrame(remaining, schema=dict(RUN_COLUMNS), orient="row"), asdict(settings), tuple(filter(None, notes)),
        pictures or {}, tuple(same), {row: tuple(text_ids) for row, text_ids in copies.items()}, swaps,
    )  # fmt: skip


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


def same_captions(dataset: Dataset) -> dict[int, dict[int, str]]:
    """For each caption (row) that is word for word a text of other images: these images (rows) and the texts' ids."""
    same: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for source in (dataset, dataset.described):
        for text, image, name in zip(source.texts, source.caption_image.tolist(), source.caption_ids, strict=True):
            same[words_in_order(text)][image] = name
    copies = {}
    for row, (text, owner) in enumerate(zip(dataset.texts, dataset.caption_image.tolist(), strict=True)):
        words = words_in_order(text)
        if text_ids := {image: name for image, name in same[words].items() if words and image != owner}:
            copies[row] = text_ids
    return copies


def _misses(
    outcomes: pl.DataFrame, dataset: Dataset, twins: Mapping[int, set[int]], copies: Mapping[int, Mapping[int, str]],
    filtered: set[int],
) -> tuple[int, ...]:  # fmt: skip
    """The misses of a run: all, those that the keyword filter sets apart, those that retrieve an equal thing."""
    failures = outcomes.filter(pl.col("rank").is_null() | (pl.col("rank") != 1))
    counts = np.zeros(4, np.int64)
    for query, truth, retrieved in failures.select("query", "ground_truth", "retrieved").iter_rows():
        row, image = dataset.caption_rows[query], dataset.image_rows[retrieved]
        copied, pictured = image in copies.get(row, ()), image in twins.get(dataset.image_rows[truth], ())
        counts += [row in filtered, copied, pictured, copied or pictured]
    return outcomes.height, failures.height, *counts.tolist(), failures.height - int(counts[-1])


def _worth_a_look(
    dataset: Dataset, outcomes: Any, settings: LabelSettings, agreements: Sequence[ConceptAgreement | None]
) -> dict[int, dict[str, str]]:
    """Of captions (rows), what is odd about them, and the facts."""
    doubts: dict[int, dict[str, str]] = defaultdict(dict)
    for row, (length, agreement) in enumerate(zip(count_words(dataset.captions["text"]), agreements, strict=True)):
        if agreement is not None and agreement.share is not None and agreement.share < settings.threshold:
            doubts[row][WORDS] = f"only here: {', '.join(agreement.missing)}"
        if length < settings.shortest:
            doubts[row][EMPTY] = format_count(length, "word")
        elif (
            agreement is not None
            and agreement.agreed
            and not agreement.concepts
            and agreement.silent == agreement.agreed
        ):
            doubts[row][EMPTY] = f"the others: {', '.join(agreement.silent)}"
    ranks: dict[str, list[int | None]] = defaultdict(list)
    gallery = len(dataset.image_ids)
    for outcome in outcomes:
        for query, rank in outcome.select("query", "rank").iter_rows():
            ranks[query].append(rank)
    for query, several in ranks.items():
        if all(rank is not None and rank > max(1, settings.far * gallery) for rank in several):
            fact = f"its own at {', '.join(f'{rank:,}' for rank in several)} of {gallery:,}"
            doubts[dataset.caption_rows[query]][FAR] = fact
    return doubts


def _review_table(
    dataset: Dataset, pairs: Sequence[SamePicture], copies: Mapping[int, Mapping[int, str]], swaps: MovedCaptions,
    doubts: Mapping[int, Mapping[str, str]], shares: Sequence[float | None],
) -> pl.DataFrame:  # fmt: skip
    """What can be corrected comes first: equal pictures, equal captions, exchanged captions; then what is odd."""
    texts = label_texts(dataset)
    first = {int(image): text for text, image in reversed(list(zip(texts.texts, texts.caption_image, strict=True)))}
    rows: list[dict[str, Any]] = [
        {"image": pair.first, "text": first.get(pair.first), "reason": SAME_PICTURE, "evidence": str(pair)}
        | {"proposal": ALSO_FITS, "suggested": pair.second, "certain": True}
        for pair in pairs
    ]
    owner = dataset.caption_image.tolist()
    exchanged: dict[int, MovedCaption] = {swap.caption: swap for swap in swaps.captions}
    home_only = only_at_home(dataset, copies)
    sure = swaps.p is not None and swaps.p < CHANCE
    for row in sorted({*copies, *exchanged, *doubts}):
        facts, suggested, proposal, certain = dict(doubts.get(row, {})), None, KEEP, False
        if swap := exchanged.get(row):
            suggested = swap.image
            facts = {EXCHANGED: f"{dataset.image_ids[swap.image]} has captions in its words", **facts}
            if sure and swap in swaps.evidence:
                proposal, certain = (MOVE if swap.first else KEEP), True
        if text_ids := copies.get(row):
            names = list(text_ids.values())
            more = f" and {len(names) - 3} more" if names[3:] else ""
            facts = {SAME_CAPTION: f"same words: {', '.join(names[:3])}{more}", **facts}
            fitting = [image for image in text_ids if (row, image) not in home_only]
            certain = bool(fitting)
            suggested, proposal = (fitting[0], ALSO_FITS) if certain else (next(iter(text_ids)), KEEP)
        rows.append({
            "image": owner[row], "caption": dataset.caption_ids[row], "text": dataset.texts[row],
            "reason": " + ".join(facts), "evidence": "; ".join(facts.values()), "proposal": proposal,
            "suggested": suggested, "certain": certain, "reasons": len(facts), "concept_share": shares[row],
        })  # fmt: skip
    rows.sort(key=lambda entry: (not entry["certain"], -entry.pop("reasons", 1)))
    for rank, entry in enumerate(rows, start=1):
        suggested_row = entry.pop("suggested")
        entry |= {"place": rank, "image": dataset.image_ids[entry["image"]]}
        if suggested_row is not None:
            entry |= {"suggested_image": dataset.image_ids[suggested_row], "suggested_text": first.get(suggested_row)}
    return pl.DataFrame(rows, schema=dict(REVIEW_COLUMNS))


@finding_kind(
    "same-image",
    "{count} of images {show} one and the same picture{excused}.",
    accuses=True, stage="label-quality", strengths=(0.01, 0.03, 0.1),
    strength_words="{:.0%} of the pictures under a second id",
    causes=("same-caption", "ties"),
)  # fmt: skip
def plant_same_image(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Pictures that other images get instead of their own: file and vector."""
    ids, pictures = subject.dataset.image_ids, dict(subject.pictures)
    rows = [row for row, image in enumerate(ids) if image in pictures]
    if len(rows) < 2:
        return Planted(subject)
    order = stream.permutation(rows)[: 2 * max(1, round(strength * len(rows)))].tolist()
    originals, replaced = order[: len(order) // 2 * 2 : 2], order[1::2]
    pictures |= {ids[row]: pictures[ids[original]] for row, original in zip(replaced, originals, strict=True)}
    planted = replace(subject, pictures=pictures)
    if subject.images is not None and subject.captions is not None:
        source = np.arange(len(ids))
        source[replaced] = originals
        planted = planted.with_vectors(subject.images.vectors[source])
    return Planted.at(planted, images=[*originals, *replaced])


@finding_kind(
    "same-caption",
    "{count} {are} word for word the caption of another image too: of two such captions, one must miss{excused}.",
    accuses=True, stage="label-quality", strengths=(0.01, 0.03, 0.1),
    strength_words="{:.0%} of the captions copied from another image", causes=("ties",),
)  # fmt: skip
def plant_same_caption(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Captions that are replaced by those of other images: text and vector."""
    owner = subject.owner
    count = max(1, round(strength * len(owner)))
    rows = stream.permutation(len(owner))
    copied, original = rows[:count], np.roll(rows, -count)[:count]
    copied, original = (side[owner[copied] != owner[original]] for side in (copied, original))
    source = np.arange(len(owner))
    source[copied] = original
    texts = pl.Series("text", [subject.dataset.texts[row] for row in source], dtype=pl.String)
    return Planted.at(_with_captions(subject, texts, source), captions=[*copied, *original])


@finding_kind(
    "swapped-captions",
    "{count} {belong} to another image, as the model and the words of other captions agree.",
    accuses=True, stage="label-quality", strengths=(0.02, 0.05, 0.1),
    strength_words="{:.0%} of the captions exchanged between images",
)  # fmt: skip
def plant_swapped_captions(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Captions that are exchanged between images, one after the other in a circle."""
    owner = subject.owner
    rows = stream.permutation(len(owner))[: max(2, round(strength * len(owner)))]
    images = owner.copy()
    images[rows] = owner[np.roll(rows, 1)]
    names = pl.Series("image", [subject.dataset.image_ids[image] for image in images], dtype=pl.String)
    planted = _with_captions(subject, names, np.arange(len(owner)))
    return Planted.at(planted, captions=np.flatnonzero(images != owner))


def _with_captions(subject: Subject, column: pl.Series, source: IntArray) -> Subject:
    """The subject with another column of captions, whose vectors are those of the rows ``source``."""
    dataset = subject.dataset
    planted = replace(subject, dataset=replace(dataset, captions=dataset.captions.with_columns(column)))
    if subject.images is None or subject.captions is None:
        return planted
    return planted.with_vectors(captions=subject.captions.vectors[source])


@finding_kind(
    "missing-positives",
    "{count} of an image and a caption that nobody annotated {are} worth a look: {phi} is as high as between captions "
    "of one image, and none of them denies the other.",
    stage="missing-positives",
    strengths=(0.02, 0.05, 0.1),
    strength_words="{:.0%} of the images there twice, each with half of the captions",
    causes=("same-image", "same-caption", "blank-vectors"),
)
def plant_missing_positives(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """Images whose captions are divided between them and a second one that shows the same."""
    dataset, owner = subject.dataset, subject.owner
    images = np.unique(owner)
    sample = np.sort(stream.permutation(images)[: max(1, round(strength * len(images)))])
    divided = sample[np.bincount(owner, minlength=len(dataset.image_ids))[sample] >= 2]
    again = {image: f"{dataset.image_ids[image]} again" for image in divided.tolist()}
    names = [dataset.image_ids[row] for row in owner.tolist()]
    for image, name in again.items():
        captions = np.flatnonzero(owner == image)
        for row in captions[len(captions) // 2 :]:
            names[row] = name
    second = dataset.images[divided].with_columns(pl.Series("image", list(again.values()), dtype=pl.String))
    planted = replace(subject, dataset=replace(
        dataset, images=pl.concat([dataset.images, second]), objects=None,
        captions=dataset.captions.with_columns(pl.Series("image", names, dtype=pl.String)),
    ))  # fmt: skip
    if subject.images is not None and subject.captions is not None:
        planted = planted.with_vectors(np.concatenate([subject.images.vectors, subject.images.vectors[divided]]))
    return Planted.at(planted, images=[*divided, *range(len(dataset.image_ids), len(planted.dataset.image_ids))])
