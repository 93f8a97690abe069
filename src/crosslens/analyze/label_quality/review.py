"""The list of suspect labels to review, and the reviewed list read back as a cleaned dataset with judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.label_quality.pictures import SamePicture
from crosslens.analyze.label_quality.swapped import Swaps
from crosslens.analyze.pair_scores import rows_of, write_table
from crosslens.core import (
    Cards,
    Dataset,
    Effect,
    FactList,
    Figure,
    InputError,
    Observation,
    Part,
    PictureCard,
    Presented,
    Relevance,
    Section,
    Table,
    Text,
    json_form,
    listed_id,
)
from crosslens.data import existing_file
from crosslens.metrics import format_count

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
    swaps: Swaps = field(default_factory=Swaps)
    shown: int | None = None

    @property
    def title(self) -> str:
        return f"Labels to review: {self.dataset.name}"

    def sections(self) -> Iterator[Section]:
        """Which misses no model could avoid, why labels are listed, and the first of them."""
        head = f"{self.dataset.name}: {format_count(self.suspects, 'label')} to correct"
        parts: list[Part] = [Text.of(f"{head}, {len(self) - self.suspects:,} more worth a look")]
        if self.runs.height:
            counted = ("failures", "words", "same_caption", "same_picture", "excused")
            rows = []
            for row in self.runs.iter_rows(named=True):
                share = f"({100 * row['model'] / row['failures']:.1f} %)" if row["failures"] else ""
                model = Figure(row["model"] if row["failures"] else None, digits=0, mark=share)
                rows.append((row["run"], *(row[name] for name in counted), model))
            header = ("run", *(name.replace("_", " ") for name in counted), "model")
            explained = (
                f"words: less than {self.settings['threshold']:.3g} of what the query names is named elsewhere (the "
                "keyword filter; no excuse). Excused: the first place has the same caption word for word, or is the "
                "same picture; model: the rest."
            )
            parts.append(Table(header, tuple(rows), "l" + "r" * 6, notes=(explained,)))
        if self.swaps.captions:
            chance = "" if self.swaps.p is None else f" (chance: {self.swaps.expected:.1f}; p = {self.swaps.p:.2g})"
            mutual = len(self.swaps.mutual)
            parts.append(
                Text.of(
                    f"{format_count(len(self.swaps.captions), 'caption')} may belong to another image; of {mutual:,} "
                    f"that image has a doubted caption itself{chance}."
                )
            )
        if reasons := self.reasons:
            facts = ((f"{name}: {reasons[name]:,}", f"{words}.") for name, words in REASONS.items() if name in reasons)
            parts.append(FactList(tuple(facts)))
        shown = _SHOWN if self.shown is None else self.shown
        cards = []
        for row in self.table.head(max(shown, _ON_PAGES)).iter_rows(named=True):
            caption, text = row["caption"], f"“{' '.join(row['text'].split())}”" if row["text"] else ""
            other = f" and image {row['suggested_image']}" if caption is None else f", caption {caption}"
            then = row["proposal"] if row["certain"] else "worth a look"
            title = f"{row['place']}. image {row['image']}{other}: {row['reason']} → {then}"
            said = tuple(line for line in (text, row["evidence"]) if line)
            cards.append(PictureCard(title, said, image=row["image"]))
        if cards:
            parts.append(Cards("The first:", tuple(cards), self.pictures, most=shown))
        parts.append(Text.of(*(f"note: {note}" for note in self.notes), note=True))
        yield Section("", tuple(parts))

    def findings(self) -> Iterator[Observation]:
        """Equal pictures, equal captions and exchanged captions, whether there are any or not."""
        images, captions = self.dataset.image_ids, self.dataset.caption_ids
        if self.pictures:
            pairs = [{"items": [images[pair.first], images[pair.second]]} for pair in self.same_pictures]
            touched = {image for pair in self.same_pictures for image in (pair.first, pair.second)}
            yield self._counted(
                "same-image", len(pairs), "pair", pairs, len(touched) / len(images), self._excused("same_picture"),
                show="shows" if len(pairs) == 1 else "show",
            )  # fmt: skip
        copied = [
            {"query": captions[row], "item": images[image]} for row, others in self.copies.items() for image in others
        ]
        yield self._counted(
            "same-caption", len(self.copies), "caption", copied, len(self.copies) / max(len(captions), 1),
            self._excused("same_caption"), are="is" if len(self.copies) == 1 else "are",
        )  # fmt: skip
        if self.swaps.p is not None:
            mutual = self.swaps.mutual
            evidence = [{"query": captions[swap.caption], "item": images[swap.image]} for swap in mutual]
            words = {
                "count": format_count(len(mutual), "caption"),
                "belong": "belongs" if len(mutual) == 1 else "belong",
            }
            share = len(mutual) / max(self.swaps.asked, 1)
            effect = Effect(len(mutual), None, None, "captions")
            yield Observation("swapped-captions", words, effect, share, self.swaps.p, evidence=evidence)

    def _counted(
        self, kind: str, count: int, what: str, evidence: list[dict[str, Any]], share: float, excused: str, **words: str
    ) -> Observation:
        words |= {"count": format_count(count, what), "excused": excused}
        effect, p = Effect(count, None, None, f"{what}s"), 0.0 if count else 1.0
        return Observation(kind, words, effect, share, p, evidence=evidence)

    def _excused(self, column: str) -> str:
        """How many misses they excuse, of the run in which they are most."""
        rows = [row for row in self.runs.iter_rows(named=True) if row[column]]
        if not rows:
            return ""
        most = max(rows, key=lambda row: int(row[column]))
        what = "such a picture" if column == "same_picture" else "the image of such a caption"
        return f"; {most[column]:,} of {most['failures']:,} misses retrieve {what}"

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
        dataset = self.dataset
        pairs = set(zip(dataset.caption_image.tolist(), range(len(dataset.caption_ids)), strict=True))
        image, caption = dataset.image_rows, dataset.caption_rows
        extra = set()
        table = self._first(limit).filter(pl.col("proposal").is_in([ALSO_FITS, MOVE]))
        for image_id, caption_id, other in table.select("image", "caption", "suggested_image").iter_rows():
            if caption_id is not None:
                extra.add((image[other], caption[caption_id]))
            else:  # one picture under two ids
                extra |= {(image[other], row) for owner, row in pairs if owner == image[image_id]}
                extra |= {(image[image_id], row) for owner, row in pairs if owner == image[other]}
        listed = [*sorted(pairs), *sorted(extra - pairs)]
        rows, columns = np.array(listed, np.int64).reshape(-1, 2).T
        grades = [ANNOTATED] * len(pairs) + [SUSPECTED] * (len(listed) - len(pairs))
        return Relevance.from_indices(
            dataset.image_ids, dataset.caption_ids, rows, columns, np.array(grades, np.float32), "captions + suspected"
        )

    def left_out(self, limit: int | None = None) -> list[str]:
        """The captions that should not be queries: those that the list proposes to remove or to move."""
        chosen = pl.col("proposal").is_in([REMOVE, MOVE]) & pl.col("caption").is_not_null()
        return self._first(limit).filter(chosen)["caption"].to_list()

    def as_dict(self) -> dict[str, Any]:
        return json_form(
            {
                "dataset": self.dataset.name,
                "suspects": self.suspects,
                "worth_a_look": len(self) - self.suspects,
                "swaps": {
                    "doubted": len(self.swaps.captions),
                    "mutual": len(self.swaps.mutual),
                    "expected": self.swaps.expected,
                    "p": self.swaps.p,
                },
                "reasons": self.reasons,
                "runs": self.runs,
                "settings": self.settings,
                "notes": self.notes,
                "review": self._first(self.shown),
            }
        )

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


@dataclass(frozen=True)
class _Decision:
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
    removed = [decision for decision in decisions if decision.verdict == REMOVE]
    images = {decision.image for decision in removed if decision.caption is None}
    captions = {decision.caption for decision in removed if decision.caption is not None}
    new_owner = {decision.caption: decision.suggested for decision in decisions if decision.verdict == MOVE}
    for decision in decisions:
        if decision.verdict == MOVE and decision.suggested in images:
            problem = f"caption {decision.caption!r} moves to image {decision.suggested!r}, which is removed"
            raise InputError(problem, file=path, row=decision.row, fix="keep the image, or remove the caption")
    owners = [new_owner.get(caption) or image for caption, image in _owners(dataset)]
    table = dataset.captions.with_columns(pl.Series("image", owners, dtype=pl.String))
    table = table.filter(~pl.col("caption").is_in(list(captions)) & ~pl.col("image").is_in(list(images)))
    remaining = dataset.select(image for image in dataset.image_ids if image not in images)
    cleaned = replace(remaining, captions=table)
    counts = dict.fromkeys((*VERDICTS, "undecided"), 0)
    for decision in decisions:
        counts[decision.verdict or "undecided"] += 1
    return ReviewedLabels(cleaned, _relevance(cleaned, decisions), counts)


def _owners(dataset: Dataset) -> Iterator[tuple[str, str]]:
    yield from dataset.captions.select("caption", "image").iter_rows()


def _relevance(cleaned: Dataset, decisions: list[_Decision]) -> Relevance:
    owners = dict(_owners(cleaned))
    pairs = {(image, caption) for caption, image in owners.items()}
    extra = set()
    for decision in decisions:
        if decision.verdict == ALSO_FITS and decision.suggested is not None:
            both = {decision.image, decision.suggested}
            if decision.caption is None:
                fitting = [caption for caption, image in owners.items() if image in both]
                extra |= {(image, caption) for image in both for caption in fitting}
            elif decision.caption in owners:
                extra.add((decision.suggested, decision.caption))
    images = set(cleaned.image_ids)
    listed = sorted(pairs | {pair for pair in extra if pair[0] in images})
    return Relevance.from_pairs(
        [image for image, _ in listed],
        [caption for _, caption in listed],
        query_ids=cleaned.image_ids,
        item_ids=cleaned.caption_ids,
        source="captions + review",
    )


def _decisions(path: str | Path, dataset: Dataset) -> Iterator[_Decision]:
    fix = "review a list that crosslens analyze labels -o wrote"
    with rows_of(existing_file(path), _NEEDED, fix=fix) as (frame, row_name):
        images, owners = set(dataset.image_ids), dict(_owners(dataset))
        seen: dict[tuple[str, str], str] = {}
        for number, cells in enumerate(frame.select(_NEEDED).iter_rows()):
            written = None if cells[0] is None else str(cells[0]).strip() or None
            image, caption, suggested = map(listed_id, cells[1:], (images, owners, images))
            try:
                verdict = (written or "").lower().replace(" ", "-").replace("_", "-")
                if verdict and verdict not in VERDICTS:
                    expected = f"one of {', '.join(VERDICTS)}, or nothing"
                    raise InputError(f"the verdict {written!r}", expected=expected, fix="correct the verdict")
                for what, row_id, known in (
                    ("image", image, images),
                    ("caption", caption, owners),
                    ("image", suggested, images),
                ):
                    if row_id is not None and row_id not in known:
                        expected = f"{'an' if what == 'image' else 'a'} {what} of {dataset.name}"
                        problem = f"unknown {what} {row_id!r}"
                        raise InputError(problem, expected=expected, fix="review a list of this dataset")
                if image is None or (caption is not None and owners[caption] != image):
                    raise InputError(
                        f"image {image!r} of caption {caption!r}",
                        expected="the image that the caption belongs to",
                        fix="leave the columns image and caption as they were",
                    )
                if verdict in (ALSO_FITS, MOVE) and suggested is None:
                    raise InputError(f"{verdict} without a suggested_image", fix="name the image in suggested_image")
                if verdict == MOVE and caption is None:
                    raise InputError("move without a caption", fix="use remove or also-fits")
                if caption is not None and verdict not in ("", ALSO_FITS):  # a merged file may have a caption twice
                    before = seen.setdefault((image, caption), verdict)
                    if before != verdict:
                        problem = f"{verdict} for caption {caption!r}, but {before} in an earlier row"
                        raise InputError(problem, fix="keep one of the two")
            except InputError as error:
                error.file, error.row = str(path), row_name(number)
                raise
            yield _Decision(verdict, image, caption, suggested, row_name(number))
