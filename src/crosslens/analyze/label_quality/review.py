"""The list of suspect labels to review, and the reviewed list read back as a cleaned dataset with judgements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from crosslens.analyze.label_quality.pictures import SamePicture
from crosslens.analyze.label_quality.swapped import MovedCaptions
from crosslens.analyze.pair_scores import rows_of, write_table
from crosslens.core import (
    Cards,
    Effect,
    Evidence,
    FactList,
    Figure,
    InputError,
    Observation,
    Part,
    PictureCard,
    Presented,
    Section,
    Table,
    Text,
)
from crosslens.data import existing_file
from crosslens.metrics import format_count
from crosslens.storage import json_form
from crosslens.values import Dataset, Relevance, listed_id

_SHOWN, _ON_PAGES = 10, 60
WORDS, EMPTY, FAR = "words", "says nothing", "far"
SAME_CAPTION, SAME_PICTURE, EXCHANGED = "same caption", "same picture", "exchanged"
REASONS: Mapping[str, str] = {
    SAME_PICTURE: "another id has this very picture too",
    SAME_CAPTION: "another image has this caption too, word for word",
    EXCHANGED: "another image has captions in its words, and its own has none",
    WORDS: "few of the things that it names are named by anything else about the image",
    EMPTY: "it has hardly a word, or names no thing where the others agree on one",
    FAR: "in every run its own image is far down",
}
"""Why a label is listed. The last three accuse no label: a model may err, and a caption may say what no other does."""
KEEP, REMOVE, ALSO_FITS, MOVE = "keep", "remove", "also-fits", "move"
VERDICTS = (KEEP, REMOVE, ALSO_FITS, MOVE)

ANNOTATED, SUSPECTED = 2, 1
"""Grades in the proposed judgements: pairs of the dataset, and pairs that the list proposes."""

RUN_COLUMNS: Mapping[str, Any] = {
    **dict.fromkeys(("run", "direction"), pl.String),
    **dict.fromkeys(("queries", "failures", "words", "same_caption", "same_picture", "excused", "model"), pl.Int64),
}
"""Of each run: its failures, those that the keyword filter sets apart, those that retrieve an equal caption's image or
an equal picture, those two together, and the rest, which are the model's."""
REVIEW_COLUMNS: Mapping[str, Any] = {
    "place": pl.Int64,
    **dict.fromkeys(("image", "caption", "text", "reason", "evidence", "proposal"), pl.String),
    **dict.fromkeys(("suggested_image", "suggested_text", "verdict"), pl.String),
    "certain": pl.Boolean,
    "concept_share": pl.Float64,
}
"""The columns of the list; ``verdict`` is empty, for who reviews it. What is not ``certain`` is worth a look;
``concept_share`` is what the keyword filter measures."""

REVIEW_ENDINGS = (".csv", ".parquet", ".jsonl")
_NEEDED = ("verdict", "image", "caption", "suggested_image")


@dataclass(frozen=True, eq=False)
class LabelQuality(Presented):
    """Labels to review (``table``), and what remains of each run's failures (``runs``).

    The first ``suspects`` rows can be corrected: equal pictures, equal captions, exchanged captions. The others are
    worth a look. ``copies`` are captions (rows) and the images (rows) that have them too; ``pictures`` are files
    of images; ``shown`` labels are in a terminal (None: 10) and in JSON (None: all).
    """

    dataset: Dataset
    table: pl.DataFrame = field()
    runs: pl.DataFrame
    settings: Mapping[str, float]
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    same_pictures: tuple[SamePicture, ...] = ()
    copies: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    swaps: MovedCaptions = field(default_factory=MovedCaptions)
    shown: int | None = None

    @property
    def title(self) -> str:
        return f"Labels to review: {self.dataset.name}"

    def sections(self) -> Iterator[Section]:
        """Which misses no model could avoid, why labels are listed, and the first of them."""
        head = f"{self.dataset.name}: {format_count(self.suspects, 'label')} to correct"
        parts: list[Part] = [Text.of(f"{head}, {len(self) - self.suspects:,} more worth a look")]
        if self.runs.height:
            columns = ("failures", "words", "same_caption", "same_picture", "excused")
            rows = []
            for row in self.runs.iter_rows(named=True):
                share = f"({100 * row['model'] / row['failures']:.1f} %)" if row["failures"] else ""
                model = Figure(row["model"] if row["failures"] else None, digits=0, mark=share)
                rows.append((row["run"], *(row[name] for name in columns), model))
            header = ("run", *(name.replace("_", " ") for name in columns), "model")
            explained = (
                f"words: less than {self.settings['threshold']:.3g} of what the query names is named elsewhere (the "
                "keyword filter; no excuse). Excused: the first place has the same caption word for word, or is the "
                "same picture; model: the rest."
            )
            parts.append(Table(header, rows, "l" + "r" * 6, notes=(explained,)))
        if doubted := len(self.swaps.captions):
            sure, chance = len(self.swaps.evidence), "" if self.swaps.p is None else f" (p = {self.swaps.p:.2g})"
            why = (
                f"{sure:,} of them can hardly be odd captions of their own"
                if self.swaps.many
                else f"of {sure:,} of the plainest ones that image has a doubted caption itself"
            )
            parts.append(Text.of(f"{format_count(doubted, 'caption')} may belong to another image; {why}{chance}."))
        if reasons := self.reasons:
            facts = ((f"{name}: {reasons[name]:,}", f"{words}.") for name, words in REASONS.items() if name in reasons)
            parts.append(FactList(tuple(facts)))
        limit = _SHOWN if self.shown is None else self.shown
        cards = []
        for row in self.table.head(max(limit, _ON_PAGES)).iter_rows(named=True):
            caption, text = row["caption"], f"“{' '.join(row['text'].split())}”" if row["text"] else ""
            second = f" and image {row['suggested_image']}" if caption is None else f", caption {caption}"
            then = row["proposal"] if row["certain"] else "worth a look"
            title = f"{row['place']}. image {row['image']}{second}: {row['reason']} → {then}"
            cards.append(PictureCard(title, tuple(filter(None, (text, row["evidence"]))), image=row["image"]))
        if cards:
            parts.append(Cards("The first:", tuple(cards), self.pictures, most=limit))
        parts.append(Text.of(*(f"note: {note}" for note in self.notes), note=True))
        yield Section("", tuple(parts))

    def findings(self) -> Iterator[Observation]:
        """Equal pictures, equal captions and exchanged captions, whether there are any or not."""
        images, captions = self.dataset.image_ids, self.dataset.caption_ids

        def observation(
            kind: str, count: int, noun: str, of_all: float, p: float, evidence: Sequence[Evidence], **words: str
        ) -> Observation:
            effect = Effect(count, None, None, f"{noun}s")
            return Observation(kind, words | {"count": format_count(count, noun)}, effect, of_all, p, evidence=evidence)

        if self.pictures:
            pairs = [(pair.first, pair.second) for pair in self.same_pictures]
            yield observation(
                "same-image", len(pairs), "pair", len({image for pair in pairs for image in pair}) / len(images),
                0.0 if pairs else 1.0, [{"items": [images[image] for image in pair]} for pair in pairs],
                show="shows" if len(pairs) == 1 else "show", excused=self._excused("same_picture", "such a picture"),
            )  # fmt: skip
        copied = [{"query": captions[row], "item": images[other]} for row in self.copies for other in self.copies[row]]
        yield observation(
            "same-caption", len(self.copies), "caption", len(self.copies) / max(len(captions), 1),
            0.0 if copied else 1.0, copied, are="is" if len(self.copies) == 1 else "are",
            excused=self._excused("same_caption", "the image of such a caption"),
        )  # fmt: skip
        if self.swaps.p is not None:
            swapped = self.swaps.evidence
            yield observation(
                "swapped-captions", len(swapped), "caption", len(swapped) / max(self.swaps.queries, 1), self.swaps.p,
                [{"query": captions[swap.caption], "item": images[swap.image]} for swap in swapped],
                belong="belongs" if len(swapped) == 1 else "belong",
            )  # fmt: skip

    def _excused(self, column: str, noun: str) -> str:
        """How many misses they excuse, of the run in which they are most."""
        most, failures = max(self.runs.select(column, "failures").iter_rows(), key=itemgetter(0), default=(0, 0))
        return f"; {most:,} of {failures:,} misses {'retrieves' if most == 1 else 'retrieve'} {noun}" if most else ""

    def __len__(self) -> int:
        return self.table.height

    @property
    def suspects(self) -> int:
        """The number of labels that can be corrected."""
        return int(self.table["certain"].sum())

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason applies."""
        every = self.table["reason"].str.split(" + ").explode().value_counts(sort=True)
        return dict(every.iter_rows())

    def write(self, path: str | Path, limit: int | None = None) -> Path:
        """Write the list for a reviewer as .csv, .parquet or .jsonl (.gz too); an existing file is replaced."""
        return write_table(self._first(limit), path, endings=REVIEW_ENDINGS)

    def relevance(self, limit: int | None = None) -> Relevance:
        """A proposal, images × captions: the annotated pairs with grade 2, and suspected further ones with grade 1."""
        owners = dict(_owners(self.dataset))
        proposed = self._first(limit).filter(pl.col("proposal").is_in([ALSO_FITS, MOVE]))
        extra = _fitting(owners, proposed.select("image", "caption", "suggested_image").iter_rows())
        return _graded(self.dataset, extra, ANNOTATED, SUSPECTED, "captions + suspected")

    def left_out(self, limit: int | None = None) -> list[str]:
        """The captions that should not be queries: those that the list proposes to remove or to move."""
        proposed = pl.col("proposal").is_in([REMOVE, MOVE]) & pl.col("caption").is_not_null()
        return self._first(limit).filter(proposed)["caption"].to_list()

    def as_dict(self) -> dict[str, Any]:
        swaps = self.swaps
        return json_form({
            "dataset": self.dataset.name, "suspects": self.suspects, "worth_a_look": len(self) - self.suspects,
            "swaps": {
                "doubted": len(swaps.captions), "mutual": sum(swap.mutual for swap in swaps.captions), "p": swaps.p
            },
            "reasons": self.reasons, "runs": self.runs, "settings": self.settings, "notes": self.notes,
            "review": self._first(self.shown),
        })  # fmt: skip

    def _first(self, limit: int | None) -> pl.DataFrame:
        return self.table if limit is None else self.table.head(limit)


@dataclass(frozen=True, eq=False)
class ReviewedLabels(Presented):
    """The dataset and its judgements (images × captions) after a review; ``counts`` of each verdict and of blanks."""

    dataset: Dataset
    relevance: Relevance
    counts: dict[str, int]

    @property
    def title(self) -> str:
        return f"Reviewed labels: {self.dataset.name}"

    def sections(self) -> Iterator[Section]:
        """What the review changed."""
        counts = [f"{self.counts[verdict]:,} {verdict}" for verdict in (*VERDICTS, "undecided") if self.counts[verdict]]
        dataset = self.dataset
        yield Section("", (Text.of(
            f"{', '.join(counts) or 'no verdicts'}: {format_count(len(dataset.image_ids), 'image')}, "
            f"{format_count(len(dataset.caption_ids), 'caption')}, "
            f"{format_count(len(self.relevance.items), 'relevant pair')}"
        ),))  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdicts": self.counts,
            "images": len(self.dataset.image_ids),
            "captions": len(self.dataset.caption_ids),
            "pairs": len(self.relevance.items),
        }


class _Decision(NamedTuple):
    verdict: str
    image: str
    caption: str | None
    suggested: str | None
    row: int | str


def apply_review(dataset: Dataset, path: str | Path) -> ReviewedLabels:
    """Apply the ``verdict`` column of a reviewed list (.csv, .tsv, .jsonl or .parquet).

    ``keep`` or nothing   leaves the row as it is
    ``remove``            removes the caption; in a row without a caption, the image with its captions
    ``also-fits``         the caption fits the suggested image too; without a caption, both images' captions fit both
    ``move``              the caption belongs to the suggested image instead
    """
    decisions = list(_decisions(path, dataset))
    by_verdict = {verdict: [entry for entry in decisions if entry.verdict == verdict] for verdict in (*VERDICTS, "")}
    images = {removed.image for removed in by_verdict[REMOVE] if removed.caption is None}
    captions = [removed.caption for removed in by_verdict[REMOVE] if removed.caption is not None]
    for moved in by_verdict[MOVE]:
        if moved.suggested in images:
            problem = f"caption {moved.caption!r} moves to image {moved.suggested!r}, which is removed"
            raise InputError(problem, file=path, row=moved.row, fix="keep the image, or remove the caption")
    new_owner = {moved.caption: moved.suggested for moved in by_verdict[MOVE]}
    owners = [new_owner.get(caption) or image for caption, image in _owners(dataset)]
    table = dataset.captions.with_columns(pl.Series("image", owners, dtype=pl.String))
    table = table.filter(~pl.col("caption").is_in(captions) & ~pl.col("image").is_in(list(images)))
    cleaned = replace(dataset.select(image for image in dataset.image_ids if image not in images), captions=table)
    extra = _fitting(dict(_owners(cleaned)), (fits[1:4] for fits in by_verdict[ALSO_FITS]))
    counts = {verdict or "undecided": len(by_verdict[verdict]) for verdict in by_verdict}
    return ReviewedLabels(cleaned, _graded(cleaned, extra, 1, 1, "captions + review"), counts)


def _owners(dataset: Dataset) -> Iterator[tuple[str, str]]:
    yield from dataset.captions.select("caption", "image").iter_rows()


def _fitting(owners: Mapping[str, str], rows: Iterable[tuple[str, str | None, str | None]]) -> set[tuple[str, str]]:
    """Images and captions that fit where a caption fits another image too, or (without one) two images are one."""
    extra = set()
    for image, caption, other in rows:
        if other is None:
            continue
        if caption is None:
            extra |= {
                (fit, text) for text, owner in owners.items() if owner in (image, other) for fit in (image, other)
            }
        elif caption in owners:
            extra.add((other, caption))
    return extra


def _graded(dataset: Dataset, extra: set[tuple[str, str]], grade: int, extra_grade: int, source: str) -> Relevance:
    """Each caption with its own image, and further pairs of the dataset's images."""
    pairs = {(image, caption): grade for caption, image in _owners(dataset)}
    image_ids = set(dataset.image_ids)
    pairs = {pair: extra_grade for pair in extra if pair[0] in image_ids} | pairs
    images, captions = zip(*pairs, strict=True) if pairs else ((), ())
    return Relevance.from_pairs(
        images, captions, list(pairs.values()), query_ids=dataset.image_ids, item_ids=dataset.caption_ids, source=source
    )


def _decisions(path: str | Path, dataset: Dataset) -> Iterator[_Decision]:
    fix = "review a list that crosslens analyze labels -o wrote"
    with rows_of(existing_file(path), _NEEDED, fix=fix) as (frame, row_name):
        images, owners = set(dataset.image_ids), dict(_owners(dataset))
        verdicts: dict[tuple[str, str], str] = {}
        for number, cells in enumerate(frame.select(_NEEDED).iter_rows()):
            cell = None if cells[0] is None else str(cells[0]).strip() or None
            verdict = (cell or "").lower().replace(" ", "-").replace("_", "-")
            image, caption, suggested = map(listed_id, cells[1:], (images, owners, images))
            try:
                if verdict and verdict not in VERDICTS:
                    expected = f"one of {', '.join(VERDICTS)}, or nothing"
                    raise InputError(f"the verdict {cell!r}", expected=expected, fix="correct the verdict")
                for noun, row_id in (("an image", image), ("a caption", caption), ("an image", suggested)):
                    if row_id is not None and row_id not in (owners if noun == "a caption" else images):
                        problem, expected = f"unknown {noun.split()[1]} {row_id!r}", f"{noun} of {dataset.name}"
                        raise InputError(problem, expected=expected, fix="review a list of this dataset")
                if image is None or (caption is not None and owners[caption] != image):
                    problem, expected = (
                        f"image {image!r} of caption {caption!r}",
                        "the image that the caption belongs to",
                    )
                    raise InputError(problem, expected=expected, fix="leave the columns image and caption as they were")
                if verdict in (ALSO_FITS, MOVE) and suggested is None:
                    raise InputError(f"{verdict} without a suggested_image", fix="name the image in suggested_image")
                if verdict == MOVE and caption is None:
                    raise InputError("move without a caption", fix="use remove or also-fits")
                if caption is not None and verdict not in ("", ALSO_FITS):  # a merged file may have a caption twice
                    before = verdicts.setdefault((image, caption), verdict)
                    if before != verdict:
                        problem = f"{verdict} for caption {caption!r}, but {before} in an earlier row"
                        raise InputError(problem, fix="keep one of the two")
            except InputError as error:
                error.file, error.row = str(path), row_name(number)
                raise
            yield _Decision(verdict, image, caption, suggested, row_name(number))
