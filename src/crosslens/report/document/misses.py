"""Failed queries: what came first in place of the right item and why, the surest first; and what is behind findings.

A query has one card on a page, an entry in lists as often as figures count it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze import RelatedPictures, changed_sentence, changed_words, group_columns
from crosslens.core import CrosslensError, Facet, Figure, PairedBar, PairedBars, PictureCard, QueryCard, Tone
from crosslens.data import read_table
from crosslens.explanations import Explanation, explain_queries
from crosslens.metrics import format_count
from crosslens.report.document.context import ReportContext
from crosslens.statistics import estimate
from crosslens.storage import read_parquet_file
from crosslens.values import IMAGE_TO_TEXT, Dataset, Run

FAILED = pl.col("rank").is_null() | (pl.col("rank") != 1)
_LEAD = pl.coalesce("margin", "margin_at_least")
_MOST_COLUMNS, _MOST_GROUPS = 2, 20
_EXCUSE = "same caption"
"""The reason for listing a label that excuses a miss."""
_SAME_CAPTION = "Doubtful label: another picture has this very caption."
_UNANNOTATED = "Doubtful label: nobody annotated the pair, and its captions are as alike as those of annotated pairs."
CAME_FIRST, _WRONG = "what came first", "what differs"
_ANOTHER = "another picture"


@dataclass(frozen=True)
class Miss:
    """A failed query: its row of :func:`query_outcomes`, and what came first, seen from the right picture.

    ``reason`` says what differs, where that is known. ``values`` has its group in each column; ``doubt`` is why the
    label may be at fault.
    """

    row: Mapping[str, Any]
    first: str
    reason: str = ""
    values: Mapping[str, str | None] = field(default_factory=dict)
    doubt: str = ""

    @property
    def lead(self) -> float:
        """By how much what came first scores above the right item, as far as that is known."""
        return float(next((row for row in (self.row["margin"], self.row["margin_at_least"]) if row is not None), 0.0))


class RunMisses:
    """The misses of a run in a direction (default: that which the report looks at); empty without its dataset."""

    def __init__(self, context: ReportContext, name: str, direction: str = "") -> None:
        self.context, self.name, self.direction = context, name, direction or context.direction
        self.run: Run = context.inputs.runs[name]
        self.dataset: Dataset | None = context.inputs.dataset_of(self.run)
        outcomes = None if self.dataset is None else context.outcomes(name, self.direction)
        self.asked = 0 if outcomes is None else outcomes.height
        self.table = pl.DataFrame() if outcomes is None else outcomes.filter(FAILED)
        self.by_images = self.direction == IMAGE_TO_TEXT

    @property
    def files(self) -> Mapping[str, str]:
        """The picture files of its dataset by image."""
        return self.context.files(self.name)

    @cached_property
    def misses(self) -> tuple[Miss, ...]:
        """All of them, the surest mistakes first."""
        if self.dataset is None or not self.table.height:
            return ()
        read, part = self.context.read_stored, "the misses"
        suspect: set[str] = read(partial(_suspect_labels, self.context, self.name), part, set())
        fitting: set[tuple[str, str]] = read(partial(_unannotated_pairs, self.context, self.name), part, set())
        causes: dict[str, str] = read(partial(_main_causes, self.context, self.name), part, {})
        relatives = RelatedPictures(self.dataset)
        groups = self.groups
        ordered = self.table.sort(_LEAD.fill_null(0.0), "query", descending=[True, False])
        misses = []
        for row in ordered.to_dicts():
            pair = (row["query"], row["item"]) if self.by_images else (row["retrieved"], row["query"])
            doubt = _SAME_CAPTION if row["query"] in suspect else _UNANNOTATED if pair in fitting else ""
            first, fact, reason = relatives.seen_from(row, self.by_images)
            values = {name: of_query.get(row["query"]) for name, of_query in groups.items()}
            values[_WRONG] = fact or causes.get(row["query"], "not in the sample" if causes else None)
            first = first or self._by_group(row["ground_truth"], row["retrieved"])
            misses.append(Miss(row, first, reason, values, doubt))
        return tuple(misses)

    def came_first(self) -> tuple[str, list[PairedBars]]:
        """What came first instead, as a bar; and a claim of what most misses share, if their interval shows it."""
        (most, _), *others = counts = Counter(miss.first for miss in self.misses).most_common() or [("", 0)]
        if not others:
            return "", []
        images = np.unique([miss.row["ground_truth"] for miss in self.misses], return_inverse=True)[1]
        share = estimate(np.array([float(miss.first == most) for miss in self.misses]), images, bounds=(0, 1))
        figure = Figure.share(share.mean, share.low, share.high)
        bar = PairedBar(format_count(len(self.misses), "missed query"), tuple(dict(counts).values()), figure)
        tones: tuple[Tone, ...] = ("bad", "unsure", "", "good")  # of four kinds at most
        levels = tuple(zip(dict(counts), tones, strict=False))
        bars = PairedBars(title="What came first instead", levels=levels, rows=(bar,), noun="misses", measure=most)
        of = f" of {self.context.short(self.name)}" if len(self.context.inputs.runs) > 1 else ""
        what = most.replace("its ", "the right picture's ").replace(" of it", " of the right picture")
        return f"In {figure.number} of the misses{of}, {what} came first" if share.low > 0.5 else "", [bars]

    @cached_property
    def groups(self) -> dict[str, dict[str, str]]:
        """Of the columns that make a few groups, the group of each query."""
        ranking, table = self.run.rankings.get(self.direction), self.run.columns.get(self.direction)
        if ranking is None or table is None:
            return {}
        able = {} if self.dataset is None else group_columns(self.dataset)  # none that names other images
        columns = [name for name in self.context.columns(self.run) if name in table.columns and name in able]
        kinds = {name: table[name].n_unique() for name in columns if table[name].dtype == pl.String}
        kinds = {name: number for name, number in kinds.items() if number <= _MOST_GROUPS}
        # A column whose groups are made of another's says less than that.
        finest = [name for name in kinds if not any(
            kinds[name] < kinds[other] == table.select(name, other).n_unique() for other in kinds)]  # fmt: skip
        valued = {name: zip(ranking.query_ids, table[name], strict=True) for name in finest[:_MOST_COLUMNS]}
        return {name: {query: value for query, value in pairs if value} for name, pairs in valued.items()}

    def _by_group(self, right: str, retrieved: str) -> str:
        """Whether another picture that came first is of the group of the right one."""
        assert self.dataset is not None
        images = self.dataset.images
        column = next((name for name in self.groups if name in images.columns), None)
        if column is None:
            return _ANOTHER
        mine, theirs = (images[column][self.dataset.image_rows[image]] for image in (right, retrieved))
        return f"the same {column}" if mine == theirs else f"another {column}"

    @cached_property
    def captions(self) -> dict[str, list[str]]:
        """What is said of the pictures of misses."""
        assert self.dataset is not None
        images = {*self.table["ground_truth"], *self.table["retrieved"]}
        captions = self.dataset.described.captions.filter(pl.col("image").is_in(list(images)))
        return dict(captions.group_by("image", maintain_order=True).agg("text").iter_rows())

    def explained(self, misses: Sequence[Miss]) -> dict[str, Explanation]:
        """Those whose reason is not known yet, compared object by object and word by word."""
        asked = [miss.row["query"] for miss in misses if not miss.reason]
        assert self.dataset is not None
        try:
            explained = explain_queries(self.run, self.dataset, asked, self.direction)
        except CrosslensError as error:
            self.context.notes.append(f"The failures of {self.name} are not explained: {error.problem}.")
            return {}
        return dict(zip(asked, explained, strict=True))

    def cards(self, misses: Sequence[Miss], facets: Sequence[Facet] = ()) -> tuple[QueryCard, ...]:
        """A card per miss: what was asked, what came first and the right picture, and why."""
        explained = self.explained(misses)
        return tuple(self._card(miss, explained.get(miss.row["query"]), facets) for miss in misses)

    def _card(self, miss: Miss, explanation: Explanation | None, facets: Sequence[Facet]) -> QueryCard:
        row = miss.row
        reason, doubt = miss.reason, miss.doubt
        if explanation is not None:
            reason, lacking = reason_of(explanation, self._in_other_words(row))
            doubt = doubt or lacking
        rank = "not in the list" if row["rank"] is None else f"rank {row['rank']:,}"
        scored = "" if row["truth_score"] is None else f", {row['truth_score']:.3f}"
        first, right = f"first, {row['score']:.3f}", f"{rank}{scored}"
        lines: tuple[str, ...] = ()
        if self.by_images:
            caption = next(iter(self.captions.get(row["ground_truth"], ())), "")
            pictures: tuple[PictureCard, ...] = (PictureCard("asked with", (), row["ground_truth"]),)
            lines = (f"{first}: “{row['answer']}”", f"its own: {right}{f', such as “{caption}”' if caption else ''}")
        else:
            pictures = (
                PictureCard(first, self._said_of(row), row["retrieved"], "wrong"),
                PictureCard(right, (), row["ground_truth"], "right"),
            )
        own_values = {CAME_FIRST: miss.first, **miss.values}
        values = tuple(own_values.get(facet.name) or "" for facet in facets)
        said_softly = (value for name, value in own_values.items() if name != _WRONG and value != _ANOTHER)
        facts = (*filter(None, said_softly), row["query"])
        return QueryCard(
            row["query"], row["text"] or "", pictures, tuple(filter(None, (*lines, reason, doubt))), facts, values
        )

    def _said_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """A caption of the picture that came first: the most like the query, and never the query itself unless it is
        one; of a picture without captions nothing is said."""
        asked = _words(row["text"])

        def unlike(text: str) -> tuple[bool, float]:
            words = _words(text)
            return text == row["text"], -len(asked & words) / max(len(asked | words), 1)

        return tuple(sorted(self.captions.get(row["retrieved"], []), key=unlike)[:1])

    def _in_other_words(self, row: Mapping[str, Any]) -> str:
        """What a caption of the picture that came first says instead, where most of the words are the same."""
        caption = next(iter(self._said_of(row)), "") if row["text"] else ""
        changed = changed_sentence(row["text"], caption) if caption else ""
        same = sum(len(mine.split()) for mine, theirs in changed_words(row["text"] or "", caption) if mine == theirs)
        if not changed or 2 * same < len(caption.split()):
            return ""
        return f"A caption of the picture that came first says {changed[2:]}."

    def named(self, item: Any) -> str:
        """An item as a list has it: its id, with what it says or what is said of it."""
        caption = next(iter(self.captions_of(item)), "")
        return f"{item}: “{caption}”" if caption else str(item)

    def captions_of(self, item: Any) -> Sequence[str]:
        data = self.dataset
        if data is not None and item in data.caption_rows:
            return (data.texts[data.caption_rows[item]],)
        if data is None or item not in data.image_rows:
            return ()
        return [data.texts[row] for row in np.flatnonzero(data.caption_image == data.image_rows[item])]

    def entry(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """A query in a list: its id, what it asks, and what came first instead."""
        asked = f"“{row['text']}”" if row["text"] else ""
        if row["rank"] == 1:
            return row["query"], f"{asked} finds the right one first".strip()
        rank = "beyond the list" if row["rank"] is None else f"at rank {row['rank']:,}"
        came = self.named(row["item"])
        return row["query"], f"{asked} {came} came first, the right one {rank}".strip()


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?") for word in text.casefold().split()}


def reason_of(explanation: Explanation, other_words: str = "") -> tuple[str, str]:
    """What is wrong in words, as far as it is known; and why the label may be at fault.

    ``other_words`` are those by which a caption of what came first differs, said where no object or value is wrong.
    """
    words, ranking = explanation.sentences
    kinds = {claim.kind for claim in words.claims if claim.about == "words"}
    lacking = [
        {claim.name for claim in words.claims if (claim.about, claim.kind) == (side, "lacks")}
        for side in ("right", "other")
    ]
    doubt = "Worth a look: the right picture lacks it too." if lacking[0] & lacking[1] else ""
    if kinds and not kinds & {"no fault", "unchecked"}:
        return words.text, doubt
    if other_words:
        return other_words, doubt
    _, _, difference = ranking.text.partition("; ")
    difference = re.sub(r"\bit has\b", "the right picture has", difference, count=1)
    difference = re.sub(r"\bits captions\b", "the captions of the right picture", difference, count=1)
    return difference[:1].upper() + difference[1:], doubt


def _stage_table(context: ReportContext, stage: str, name: str, file: str) -> pl.DataFrame | None:
    """A table that a stage wrote about a run or its dataset."""
    result = context.inputs.stage_of(stage, name)
    path = None if result is None or result.folder is None else result.folder / file
    if path is None or not path.exists():
        return None
    return read_parquet_file(path) if path.suffix == ".parquet" else read_table(path).frame


def _main_causes(context: ReportContext, name: str) -> dict[str, str]:
    """The main cause of each failure, where the audit looked for causes."""
    table = _stage_table(context, "explain", name, "failures.parquet")
    return {} if table is None else dict(table.select("query", "main_cause").drop_nulls().iter_rows())


def _suspect_labels(context: ReportContext, name: str) -> set[str]:
    """Captions that another image has too, word for word."""
    result = context.inputs.stage_of("label-quality", name)
    table = _stage_table(context, "label-quality", name, "review.csv")
    rows = table.to_dicts() if table is not None else result.payload.get("review", ()) if result is not None else ()
    return {str(row["caption"]) for row in rows if row["caption"] and _EXCUSE in str(row["reason"]).split(" + ")}


def _unannotated_pairs(context: ReportContext, name: str) -> set[tuple[str, str]]:
    """Image and caption of pairs that nobody annotated, and that are as similar as annotated ones."""
    table = _stage_table(context, "missing-positives", name, "missing.csv")
    return set() if table is None else set(table.select("image", "caption").iter_rows())
