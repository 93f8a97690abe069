"""Pairs that nobody annotated and that are worth a look: as similar as annotated ones, and denied by no caption.

What is as similar as an annotated pair? One caption of each image is held out, and φ compares it with the others (over
two text sets, with the corpus): so high is φ for a caption that people wrote about the image. A quantile of these
values (half of them are above the median) is the threshold for all other pairs.

φ never says that a caption fits. A pair that a caption of the image contradicts is left out, and captions edited in one
fact, which cannot fit, are put to the same two questions: where more than one in five passes, similarity cannot tell on
this data, and no pair is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.label_quality.contradictions import contradicts, edited_captions, near_twins
from crosslens.analyze.pair_scores import ground_truth_of
from crosslens.analyze.subject import Subject, analysis
from crosslens.core import (
    Cards,
    Cell,
    Effect,
    Figure,
    InputError,
    Observation,
    Part,
    PictureCard,
    Presented,
    Section,
    Table,
    Text,
    UsageError,
    argument,
)
from crosslens.data import writing_bytes
from crosslens.engine import Progress, shown_progress, stage
from crosslens.metrics import format_count
from crosslens.similarity import (
    IdSimilarity,
    Phi,
    PreparedSimilarity,
    Similarity,
    load_similarity,
    prepare_dataset,
    references_of,
)
from crosslens.statistics import Estimate, share_of_sums
from crosslens.storage import Array, for_spreadsheets, json_form, random_stream
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, Relevance, match_ids

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of annotated pairs' φ: thresholds at which counts are reported beside the chosen one."""
_CELLS = 1 << 22
_SHOWN, _EXAMINED = 5, 100
_FEWEST, _CONTROLS, _MOST_PASS = 20, 200, 0.2
"""Edited captions that a control takes at least and at most, and the share of them that may pass."""


def _percent(value: float, low: float = nan, high: float = nan) -> Figure:
    """In percent; a very small share with two digits that count."""
    digits = len(f"{100 * value:.2g}".partition(".")[2]) if 0 < value < 0.001 else 1
    return Figure(value, low, high, scale=100, digits=digits, unit=" %")


@dataclass(frozen=True)
class Verification:
    """Precision and recall of the chosen threshold over the pairs of judged images and captions, outside the truth.

    People reviewed the pairs that some systems had found and confirmed part of them; a pair that they never saw counts
    as wrong here. So precision is a lower bound. ``average_precision`` is Σ (Rₙ − Rₙ₋₁) Pₙ over all thresholds.
    """

    pairs: int
    positives: int
    precision: Estimate
    recall: Estimate
    average_precision: float

    @property
    def chance(self) -> float:
        """The precision, and the average precision, of guessing."""
        return self.positives / self.pairs if self.pairs else nan


class _JudgedPairs:
    """Which pairs people judged and verified, and how many of them reach each level of φ, a few rows at a time."""

    def __init__(
        self, verified: Relevance | Mapping[str, Relevance], truth: Relevance, prepared: PreparedSimilarity,
        thresholds: Array,
    ) -> None:  # fmt: skip
        """``verified`` are positives of one direction or both; ids that the dataset lacks are left out."""
        sides = truth.query_ids, truth.item_ids
        if not isinstance(verified, Mapping):
            matched_ids = [
                sum((match_ids(names, side) >= 0).sum() for names, side in zip(ids, sides, strict=True))
                for ids in ((verified.query_ids, verified.item_ids), (verified.item_ids, verified.query_ids))
            ]
            verified = {IMAGE_TO_TEXT if matched_ids[0] >= matched_ids[1] else TEXT_TO_IMAGE: verified}
        self.images, self.captions = (np.zeros(len(side), np.bool_) for side in sides)
        width, relevant = len(self.captions), truth.relevant()
        keys = [np.empty(0, np.int64)]
        for direction, relevance in verified.items():
            pairs = relevance.relevant() if direction == IMAGE_TO_TEXT else relevance.relevant().flip()
            rows = match_ids(pairs.query_ids, sides[0])[pairs.rows]
            columns = match_ids(pairs.item_ids, sides[1])[pairs.items]
            inside = (rows >= 0) & (columns >= 0)
            mask, query_rows = (self.images, rows) if direction == IMAGE_TO_TEXT else (self.captions, columns)
            mask[query_rows[inside]] = True
            keys.append(rows[inside] * width + columns[inside])
        positives = np.setdiff1d(np.concatenate(keys), relevant.rows * width + relevant.items)
        if not len(positives):
            raise InputError(
                "no verified positive lies outside the ground truth",
                expected="verified pairs of the dataset's own images and captions",
                fix="check that both are of the same collection and split",
            )
        self.owners = positives // width
        self.values = np.asarray(prepared.pairs(self.owners, positives % width), np.float32)
        self.thresholds = thresholds
        self.levels = np.unique(np.concatenate([thresholds, self.values]))
        self.counts = np.zeros(len(self.levels) + 1, np.int64)
        self.per_image: list[Array] = []
        self.pairs = 0

    def add(self, rows: slice, values: Array) -> None:
        """Count the pairs of these rows; those of the ground truth are −∞."""
        judged_cells = (self.images[rows, None] | self.captions[None]) & (values > -np.inf)
        self.pairs += int(judged_cells.sum())
        bins = np.searchsorted(self.levels, values[judged_cells & (values >= self.levels[0])], side="right")
        self.counts += np.bincount(bins, minlength=len(self.counts))
        self.per_image.append((judged_cells & (values >= self.thresholds[0])).sum(axis=1))

    def totals(self) -> tuple[list[tuple[int, int]], Verification]:
        """How many judged and how many verified pairs reach each threshold; and the chosen one in figures."""
        # A pair in bin b reaches the first b levels: those at least as high as level n are in the bins above n.
        judged_counts = self.counts[::-1].cumsum()[::-1][1:]
        level_of = np.searchsorted(self.levels, self.values)
        hits = np.bincount(level_of, minlength=len(self.levels))[::-1].cumsum()[::-1]
        reached = np.unique(level_of)[::-1]
        steps = np.diff(hits[reached], prepend=0) / len(self.values)
        area = float((steps * hits[reached] / judged_counts[reached]).sum())
        proposed = np.concatenate(self.per_image)
        own_hits = np.bincount(self.owners, self.values >= self.thresholds[0], len(proposed))
        precision = share_of_sums(own_hits, proposed)
        recall = share_of_sums(own_hits, np.bincount(self.owners, minlength=len(proposed)))
        at = np.searchsorted(self.levels, self.thresholds)
        points = list(zip(judged_counts[at].tolist(), hits[at].tolist(), strict=True))
        return points, Verification(self.pairs, len(self.values), precision, recall, area)


@dataclass(frozen=True)
class ThresholdCount:
    """How many pairs outside the ground truth reach a threshold; ``found`` are judged ones, ``hits`` verified ones."""

    threshold: float
    pairs: int
    found: int = 0
    hits: int = 0


@dataclass(frozen=True)
class Control:
    """How many captions that cannot fit pass all the same: edited in one fact, or of an image's near-twin."""

    edited: int
    edited_passed: int
    twins: int
    twins_passed: int

    @property
    def fails(self) -> bool:
        """Whether more than one in five passes, of captions enough to say so."""
        counts = ((self.edited, self.edited_passed), (self.twins, self.twins_passed))
        return any(passed > n * _MOST_PASS for n, passed in counts if n >= _FEWEST)

    @property
    def can_tell(self) -> bool:
        """Whether at most one in five passes, of captions enough to say so; twins count where there are as many."""
        return self.edited >= _FEWEST and not self.fails

    def __str__(self) -> str:
        text = f"Of {self.edited:,} captions edited in one fact {self.edited_passed:,} pass as well"
        return text + (f", of {self.twins:,} of near-twins {self.twins_passed:,}" if self.twins else "")


@dataclass(frozen=True, eq=False)
class MissingPositives(Presented):
    """Pairs outside the ground truth that are worth a look, the highest φ first; prints as a summary.

    ``images`` and ``captions`` are rows of the dataset. ``annotated`` is φ of captions that people wrote about an
    image, each against the image's others. ``levels`` begin with the threshold itself. Of the ``compared`` pairs,
    ``denied`` ones were contradicted. Where the ``control`` says that similarity cannot tell, no pair is listed.
    """

    dataset: Dataset
    phi: str
    truth: Relevance
    images: Array
    captions: Array
    values: Array
    threshold: float
    annotated: Array
    levels: tuple[ThresholdCount, ...]
    verification: Verification | None = None
    control: Control | None = None
    denied: int = 0
    compared: int = 0

    def __len__(self) -> int:
        return len(self.values)

    @property
    def title(self) -> str:
        return f"Missing positives: {self.dataset.name}"

    def sections(self) -> Iterator[Section]:
        """A summary, the counts at several thresholds, and the first pairs."""
        head = f"{self.phi} on {self.dataset.name}: "
        if self.control is not None and self.control.fails:
            head += f"similarity cannot tell on this data ({self.control})"
        else:
            head += f"{format_count(len(self), 'pair')} outside the ground truth worth a look"
        rows: list[tuple[Cell, ...]] = []
        for level in sorted(self.levels, key=lambda level: -level.threshold):
            reached = float(np.mean(self.annotated >= np.float32(level.threshold))) if len(self.annotated) else nan
            mark = " ←" if level is self.levels[0] else ""
            row = (f"{level.threshold:.4g}{mark}", Figure(reached, scale=100, digits=0, unit=" %"), level.pairs)
            rows.append((*row, *map(_percent, self._shares(level))))
        share_names = () if self.verification is None else ("precision", "recall")
        header = ("φ at least", "annotated pairs", "other pairs", *share_names)
        notes = ["← the threshold. Annotated pairs: how many captions, each against the others of its image, reach it."]
        if self.left_out:
            more = format_count(self.left_out, "pair")
            notes.append(f"Compared: the {self.compared:,} highest; {more} more reach the threshold.")
        if self.denied:
            notes.append(f"{format_count(self.denied, 'pair')} left out: a caption of the image denies the caption.")
        if self.control is None:
            notes.append("φ has no texts here, so that nothing says whether it can tell a caption from an edited one.")
        else:
            few = "" if self.control.can_tell else " That is too few to say whether similarity can tell."
            notes.append(f"{self.control}.{few} That a pair is listed says no more than that it is worth a look.")
        if (verified := self.verification) is not None:
            precision, recall = (_percent(*astuple(share)) for share in (verified.precision, verified.recall))
            notes.append(
                f"φ alone, on the {verified.pairs:,} pairs of queries that people judged, {verified.positives:,} of "
                f"them verified: precision {precision}, recall {recall}, average precision "
                f"{_percent(verified.average_precision)} (guessing: {_percent(verified.chance)}). A pair "
                "that nobody looked at counts as wrong: precision is a lower bound."
            )
        parts: list[Part] = []
        if self.control is None or not self.control.fails or self.verification is not None:
            parts.append(Table(header, tuple(rows), "l" + "r" * (len(header) - 1)))
            parts.append(Text(tuple(notes), note=True))
        if len(self):
            table = self.table.head(_EXAMINED).with_columns(
                pl.col("text", "image_caption").str.replace_all(r"\s+", " ")
            )
            table = table.unique(("image", pl.col("text").str.to_lowercase()), keep="first", maintain_order=True)
            parts.append(Cards("The first:", tuple(
                PictureCard(f"{phi:.4g}  image {image}, “{caption}”:", (f"“{text}”",), image=image)
                for image, phi, text, caption in table.head(_SHOWN)["image", "phi", "text", "image_caption"].iter_rows()
            )))  # fmt: skip
        yield Section(head, tuple(parts))

    def findings(self) -> Iterator[Observation]:
        """That the list is there to be looked at, where similarity can tell."""
        if self.control is None or not self.control.can_tell or not len(self):
            return
        ids, pairs = self.dataset, zip(self.images.tolist(), self.captions.tolist(), strict=True)
        evidence = [{"query": ids.caption_ids[caption], "item": ids.image_ids[image]} for image, caption in pairs]
        words = {"count": format_count(len(self), "pair"), "are": "is" if len(self) == 1 else "are"}
        words["phi"] = f"similarity ({self.phi})"
        yield Observation(
            "missing-positives", words, Effect(len(self), None, None, "pairs"), weight=0.0, worth_a_look=True,
            evidence=evidence[:_EXAMINED], subject=self.phi,
        )  # fmt: skip

    def _shares(self, level: ThresholdCount) -> tuple[float, ...]:
        """Precision and recall among the judged pairs, if there are any."""
        if self.verification is None:
            return ()
        return level.hits / level.found if level.found else nan, level.hits / self.verification.positives

    @property
    def left_out(self) -> int:
        """How many pairs reach the threshold and were not compared any further."""
        return self.levels[0].pairs - self.compared

    def relevance(self, *, extra_only: bool = False) -> Relevance:
        """The ground truth and the missing pairs, as judgements to evaluate with; or the missing pairs alone."""
        truth = self.truth.relevant()
        images, captions = self.images, self.captions
        grades = np.ones(len(images), np.float32)
        if not extra_only:
            images, captions = np.concatenate([truth.rows, images]), np.concatenate([truth.items, captions])
            grades = np.concatenate([truth.grades, grades])
        source = f"{self.phi} ≥ {self.threshold:.4g}"
        source = source if extra_only else f"{truth.source} + {source}"
        return Relevance.from_indices(truth.query_ids, truth.item_ids, images, captions, grades, source)

    @property
    def table(self) -> pl.DataFrame:
        """One row per pair: image, caption, φ, the caption's text and its own image, and a caption of the image."""
        first = [next(iter(texts), "") for texts in references_of(self.dataset)]
        columns: dict[str, Any] = {
            "image": [self.dataset.image_ids[row] for row in self.images],
            "caption": [self.dataset.caption_ids[row] for row in self.captions],
            "phi": self.values,
            "text": [self.dataset.texts[row] for row in self.captions],
            "caption_of": [self.dataset.image_ids[self.dataset.caption_image[row]] for row in self.captions],
            "image_caption": [first[row] for row in self.images],
        }
        return pl.DataFrame(columns, schema_overrides={**dict.fromkeys(columns, pl.String), "phi": pl.Float32})

    def write_table(self, path: str | Path) -> Path:
        """Write the table as a CSV file (.gz too); an existing file is replaced."""
        with writing_bytes(path) as out:
            for_spreadsheets(self.table).write_csv(out)
        return Path(path)

    def as_dict(self) -> dict[str, Any]:
        """The counts, without the pairs."""
        quantiles = {f"q{100 * q:g}": float(np.quantile(self.annotated, q)) for q in QUANTILES if len(self.annotated)}
        content: dict[str, Any] = {
            "dataset": self.dataset.name, "phi": self.phi, "threshold": self.threshold, "pairs": self.levels[0].pairs,
            "kept": len(self), "denied": self.denied,
            "control": None if self.control is None else {**vars(self.control), "can_tell": self.control.can_tell},
            "annotated": {"pairs": len(self.annotated), **quantiles},
            "levels": [{"threshold": level.threshold, "pairs": level.pairs} for level in self.levels],
        }  # fmt: skip
        if (verified := self.verification) is not None:
            points = [
                dict(zip(("precision", "recall"), self._shares(level), strict=True), threshold=level.threshold,
                     found=level.found)
                for level in self.levels
            ]  # fmt: skip
            shares = {
                name: dict(zip(("value", "low", "high"), astuple(getattr(verified, name)), strict=True))
                for name in ("precision", "recall")
            }
            content["verification"] = {**vars(verified), **shares, "chance": verified.chance, "points": points}
        return json_form(content)


def find_missing_positives(
    dataset: Dataset,
    phi: Phi = "semantic",
    *,
    quantile: float = 0.5,
    threshold: float | None = None,
    ground_truth: Relevance | None = None,
    verified: Relevance | Mapping[str, Relevance] | None = None,
    most: int | None = 1_000_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MissingPositives:
    """Pairs outside the ground truth with φ as high as annotated pairs' that no caption denies, the highest first.

    φ is computed a few rows at a time: memory does not grow with images × captions.

    Args:
        dataset: Images and their captions.
        phi: As in :func:`crosslens.relevance_matrix`.
        quantile: The threshold as a quantile of the annotated pairs' φ, each caption compared with the image's others.
        threshold: The threshold itself.
        ground_truth: What is annotated; by default each caption's own image.
        verified: Positives that people confirmed, such as :func:`crosslens.data.read_eccv` gives: precision and recall
            are measured against them.
        most: How many pairs are kept.
        seed: Decides which captions are held out, and which are edited to see whether φ notices.
        threads: Threads to use.
        progress: Told how much is done.
    """
    if not 0 < quantile < 1:
        raise UsageError(f"quantile = {quantile}", fix="use a number between 0 and 1, such as 0.5", option="quantile")
    if threshold is not None and not np.isfinite(threshold):
        raise UsageError(f"threshold = {threshold}", fix="use a finite number, or leave it out", option="threshold")
    if most is not None and most < 0:
        raise UsageError(f"most = {most}", fix="use 0 or more", option="most")
    similarity = load_similarity(phi)
    truth = ground_truth_of(dataset, ground_truth)
    annotated = held_out_similarity(dataset, similarity, seed, threads=threads, progress=progress)
    if threshold is None:
        if not len(annotated):
            reason = "a matrix has no captions" if isinstance(similarity, IdSimilarity) else "no image has two captions"
            fix = f"pass {argument('threshold')}"
            raise UsageError(f"{reason} to derive the threshold from", fix=fix, option="threshold")
        threshold = float(np.quantile(annotated, quantile))
    prepared = prepare_dataset(dataset, similarity, progress=progress, threads=threads)
    usual = [float(np.quantile(annotated, q)) for q in QUANTILES] if len(annotated) else []
    thresholds = list(dict.fromkeys([threshold, *usual]))  # the chosen one first
    levels = np.asarray(thresholds, np.float32)
    judged_pairs = None if verified is None else _JudgedPairs(verified, truth, prepared, levels)
    totals = np.zeros(len(levels), np.int64)
    parts: list[tuple[Array, Array, Array]] = []
    images, captions = prepared.shape
    step, relevant = max(1, _CELLS // max(captions, 1)), truth.relevant()
    with stage(shown_progress(progress), f"looking for missing positives by {similarity.name}", images) as bar:
        for start in range(0, images, step):
            rows = slice(start, min(start + step, images))
            values = np.array(prepared.block(rows), np.float32)
            if np.isnan(values).any():
                row, column = np.argwhere(np.isnan(values))[0]
                problem = f"φ of image {truth.query_ids[start + row]!r} and caption {truth.item_ids[column]!r} is NaN"
                raise InputError(problem, expected="finite numbers", fix="compute φ again")
            inside = slice(relevant.offsets[rows.start], relevant.offsets[rows.stop])
            values[relevant.rows[inside] - start, relevant.items[inside]] = -np.inf
            above = np.nonzero(values >= levels[0])
            parts.append((above[0] + start, above[1], values[above]))
            if most is not None and sum(len(part[2]) for part in parts) > 2 * max(most, 1):
                parts = [_highest(parts, most)]
            totals += [int((values >= level).sum()) for level in levels]
            if judged_pairs is not None:
                judged_pairs.add(rows, values)
            bar.advance(rows.stop - rows.start)
    points, verification = ([(0, 0)] * len(levels), None) if judged_pairs is None else judged_pairs.totals()
    counts = zip(thresholds, totals.tolist(), points, strict=True)
    kept_images, kept_captions, kept_values = _highest(parts, most)
    compared, control = len(kept_values), None
    keep = np.ones(compared, np.bool_)
    if not isinstance(similarity, IdSimilarity):
        control = check_similarity(dataset, similarity, threshold, seed, threads, progress)
        references = references_of(dataset)
        with stage(shown_progress(progress), "looking for contradictions", compared) as bar:
            for position, (image, caption) in enumerate(zip(kept_images.tolist(), kept_captions.tolist(), strict=True)):
                keep[position] = not is_denied(dataset.texts[caption], references[image])
                bar.advance()
    denied = compared - int(keep.sum())
    keep &= control is None or not control.fails
    return MissingPositives(
        dataset, similarity.name, truth, kept_images[keep], kept_captions[keep], kept_values[keep], threshold,
        annotated,
        tuple(ThresholdCount(level, total, *point) for level, total, point in counts), verification, control, denied,
        compared,
    )  # fmt: skip


@analysis("missing-positives")
def look_for_missing_positives(subject: Subject) -> MissingPositives:
    """Pairs that nobody annotated and that are worth a look, where similarity can tell on this data."""
    return find_missing_positives(subject.dataset, seed=subject.seed, progress=subject.progress)


def _highest(parts: Sequence[tuple[Array, Array, Array]], most: int | None) -> tuple[Array, Array, Array]:
    """Images, captions and φ of pairs: highest φ first, equal ones by image and caption, at most so many."""
    empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    images, captions, values = map(np.concatenate, zip(empty, *parts, strict=True))
    order = np.lexsort((captions, images, -values))[:most]
    return images[order], captions[order], values[order]


def is_denied(text: str, references: Sequence[str]) -> bool:
    """Whether one of an image's captions denies another caption."""
    return any(contradicts(text, reference) for reference in references)


def check_similarity(
    dataset: Dataset, similarity: Similarity, threshold: float, seed: int = 0, threads: int | None = None,
    progress: Progress | None = None,
) -> Control:  # fmt: skip
    """Captions that are wrong about an image, compared with its captions but the one that was edited, or the twin's."""
    stream = random_stream(seed, "edited captions")
    references, owner, texts = references_of(dataset), dataset.caption_image.tolist(), dataset.texts
    several = [row for row, image in enumerate(owner) if {*references[image]} - {texts[row]}]
    rows = sorted(stream.permutation(several)[:_CONTROLS].tolist())
    edited = edited_captions([texts[row] for row in rows], seed, stream, progress)
    twins = near_twins(dataset)
    near = [twins[row] for row in sorted(stream.permutation(len(twins))[:_CONTROLS].tolist())]
    wrong = (
        [(row, text) for row, text in zip(rows, edited, strict=True) if text is not None],
        [(row, texts[other]) for row, other in near if texts[other] not in references[owner[row]]],
    )
    counts: list[int] = []
    for captions in wrong:
        others = ([other for other in references[owner[row]] if other != texts[row]] for row, _ in captions)
        compared = [(text, rest) for (_, text), rest in zip(captions, others, strict=True) if rest]
        high = np.zeros(0, np.bool_)
        if compared:
            prepared = similarity.prepare(
                [rest for _, rest in compared], [text for text, _ in compared], progress=progress, threads=threads
            )
            diagonal = np.arange(len(compared))
            high = np.asarray(prepared.pairs(diagonal, diagonal)) >= np.float32(threshold)
        counts += [len(compared), sum(not is_denied(*compared[row]) for row in np.flatnonzero(high))]
    return Control(*counts)


def held_out_similarity(
    dataset: Dataset,
    similarity: Similarity,
    seed: int = 0,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """φ of one caption of each image, drawn by the seed, against the image's other captions, or its corpus without it.

    Images without another text are left out; a matrix, which has no texts, gives none.
    """
    if isinstance(similarity, IdSimilarity):
        return np.empty(0, np.float32)
    references, captions = references_of(dataset), references_of(replace(dataset, corpus=None))
    chances = random_stream(seed, "left-out caption").random(len(references))
    held_out: dict[int, str] = {}
    for row, texts in enumerate(captions):
        text, others = texts[int(chances[row] * len(texts))] if texts else "", references[row].copy()
        if text in others:
            others.remove(text)
        if texts and others:
            held_out[row], references[row] = text, others
    if not held_out:
        return np.empty(0, np.float32)
    prepared = similarity.prepare(references, list(held_out.values()), progress=progress, threads=threads)
    return prepared.pairs(np.array(list(held_out)), np.arange(len(held_out)))
