"""From a run and the ids of queries to their explanations; what all of them need is read once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from crosslens.core import InputError, MissingExtraError, UsageError
from crosslens.explanations.concepts import METRICS, SizeComparison, compare_images
from crosslens.explanations.explanation import Competitor, Explanation, MentionComparison
from crosslens.explanations.failures import DIRECTIONS, query_outcomes, ranking_of
from crosslens.explanations.mentions import (
    SATISFIED,
    VIOLATED,
    MentionCheck,
    QueryMentions,
    Vocabulary,
    check_mentions,
    mentioned_concepts,
)
from crosslens.explanations.objects import (
    AnnotatedImage,
    ImageObjects,
    crowd_flags,
    finite,
    image_object,
    object_name,
    objects_of,
)
from crosslens.explanations.sentences import QueryFacts, image_facts, join_words, mention_facts, sentences
from crosslens.values import IMAGE_TO_TEXT, UNRANKED, Dataset, Ranking, Run, match_ids

COMPETITORS = 5
_SUGGESTED = 3
_NO_OBJECTS = "No objects are annotated: the images are compared by what their captions mention, without boxes."
_SHRUNK = (
    "SD divides by the area of the right image's box: a box that is less than half of it differs by less than 1, and "
    "is not counted in SD[binary]."
)
_NO_BOXES = "The objects have no boxes: sizes and positions are not compared."


def explain_queries(
    run: Run | Mapping[str, Ranking],
    dataset: Dataset,
    queries: Sequence[str],
    direction: str | None = None,
    *,
    threshold: float = 1.0,
    base: str = "ground_truth",
    areas: str = "share",
    competitors: int = COMPETITORS,
    objects: DatasetObjects | None = None,
) -> list[Explanation]:
    """Each query in full. Without a ``direction``, captions are searched for the ids first, then images.

    ``objects`` are those of the dataset where they have been read already. Where objects are what captions mention,
    only the captions of images that are compared are parsed.
    """
    if isinstance(queries, str):
        raise UsageError("queries must be a list", fix=f"write [{queries!r}]", option="queries")
    if not queries:
        return []
    by_name = run.rankings if isinstance(run, Run) else run
    names = [ranking_of(run, direction).direction] if direction else [name for name in DIRECTIONS if name in by_name]
    rankings = [ranking_of(run, name, dataset) for name in names] or [ranking_of(run)]
    searched = []  # each query as the dataset writes it, and the direction that has it
    by_direction: dict[str, list[str]] = {}
    for asked_for in map(str, queries):
        rows = ((ranking, int(match_ids([asked_for], ranking.query_ids)[0])) for ranking in rankings)
        ranking, row = next((pair for pair in rows if pair[1] >= 0), (None, -1))
        if ranking is None:
            ids = [query_id for ranking in rankings for query_id in ranking.query_ids]
            near = difflib.get_close_matches(asked_for, ids[:100_000], n=_SUGGESTED, cutoff=0.5)
            fix = f"did you mean {' or '.join(near)}?" if near else f"ids look like {', '.join(ids[:_SUGGESTED])}"
            raise UsageError(f"no query {asked_for!r} in this run", fix=fix, code="unknown-id", subject=asked_for)
        searched.append((ranking.query_ids[row], ranking.direction))
        by_direction.setdefault(ranking.direction, []).append(ranking.query_ids[row])
    sizes = SizeComparison(threshold, base)
    explainers = {name: _Explainer(run, dataset, name, query_ids, sizes) for name, query_ids in by_direction.items()}
    compared = {image for query, name in searched for image in explainers[name].cases[query].images}
    shared = (objects or DatasetObjects(dataset, areas)).of(compared)
    return [explainers[name].explain(query, shared, competitors) for query, name in searched]


class DatasetObjects:
    """The objects of all images of a dataset, read when first needed: to be kept from one query to the next."""

    def __init__(self, dataset: Dataset, areas: str = "share") -> None:
        self.dataset, self.areas = dataset, areas

    @cached_property
    def objects(self) -> ImageObjects:
        return objects_of(self.dataset, areas=self.areas)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.objects)

    @cached_property
    def crowds(self) -> Any:
        return crowd_flags(self.dataset, self.objects)

    def of(self, images: Collection[str]) -> DatasetObjects:
        """Those of these images alone, where no others are needed: captions say all that is known of an image.

        Annotated objects stay those of all images: an object that was annotated in no image at all may be in any.
        """
        annotated = self.dataset.objects is not None and self.dataset.objects.height > 0
        if annotated or "objects" in vars(self):
            return self
        return DatasetObjects(self.dataset.select(images), self.areas)

    def image(self, image: str) -> AnnotatedImage:
        """The image with this id; its objects in the order of the annotation, each with a readable name.

        Its captions are the texts that say what is in it: those of the corpus, if there is one.
        """
        objects, data = self.objects, self.dataset
        columns = data.images.row(data.image_ids.index(image), named=True)
        captions = data.described.captions.filter(pl.col("image") == image)["text"]
        items = tuple(
            image_object(objects, index, object_name(objects.names[index], objects.synset(index)), self.crowds)
            for index in objects.inside(int(objects.rows([image])[0]))
        )
        width, height = finite(columns.get("width")), finite(columns.get("height"))
        return AnnotatedImage(image, items, objects.source, tuple(captions), width, height, columns.get("file"))


class _Case(NamedTuple):
    """The outcome of a query, its top k, the item it is compared with, and the text whose mentions are checked."""

    outcome: Mapping[str, Any]
    top: Sequence[Competitor]
    other: Competitor | None
    spoken: str | None

    @property
    def images(self) -> tuple[str, ...]:
        """The images that are compared: the right one, and that of the item it is compared with."""
        return (self.outcome["ground_truth"], *([self.other.image] if self.other else ()))


class _Explainer:
    """Explains some queries of one direction of a run."""

    def __init__(
        self,
        run: Run | Mapping[str, Ranking],
        dataset: Dataset,
        direction: str,
        queries: Sequence[str],
        sizes: SizeComparison,
    ) -> None:
        self.name = run.name if isinstance(run, Run) else "run"
        self.dataset, self.direction, self.sizes = dataset, direction, sizes
        self.ranking = ranking_of(run, direction, dataset)
        self.rows = {query: row for row, query in enumerate(self.ranking.query_ids)}
        table = query_outcomes(run, dataset, direction).filter(pl.col("query").is_in(list(queries)))
        outcomes = {row["query"]: row for row in table.iter_rows(named=True)}
        self.cases = {query: self._case(query, outcomes.get(query)) for query in queries}
        self.mentions: dict[str, QueryMentions] = {}
        self.notes: list[str] = []
        # All texts at once: a parser takes longer to start than to parse.
        texts = list(dict.fromkeys(case.spoken for case in self.cases.values() if case.spoken is not None))
        try:
            self.mentions = dict(zip(texts, mentioned_concepts(texts), strict=True)) if texts else {}
        except MissingExtraError as error:
            self.notes = [f"The words were not parsed: {error.problem}; {error.fix}."]

    def _case(self, query: str, outcome: Mapping[str, Any] | None) -> _Case:
        """A query is compared with its top-1 item; a success with the first item of another image that is wrong."""
        if outcome is None:
            raise InputError(
                f"the query {query!r} has no relevant item in this run, or its list is empty or names unknown items",
                expected="a query with a relevant item, and a list of items of the dataset",
                fix="explain another query",
                subject=query,
            )
        row, ranking, data = self.rows[query], self.ranking, self.dataset
        part = slice(ranking.offsets[row], ranking.offsets[row + 1])
        relevant = set(ranking.relevant[part][ranking.grades[part] > 0].tolist())
        top = []
        for rank, item in enumerate((int(item) for item in ranking.top_items[row] if item != UNRANKED), start=1):
            name, text = ranking.item_ids[item], None
            image, score = name, finite(ranking.top_scores[row, rank - 1])
            if self.direction == IMAGE_TO_TEXT:
                caption = data.caption_rows[name]
                image, text = data.image_ids[data.caption_image[caption]], data.texts[caption]
            top.append(Competitor(rank, name, image, score, item in relevant, text))
        other: Competitor | None = top[0]
        if outcome["rank"] == 1:
            wrong = (item for item in top if not item.right and item.image != outcome["ground_truth"])
            other = next(wrong, None)
        spoken = outcome["text"] if self.direction != IMAGE_TO_TEXT else None if other is None else other.text
        return _Case(outcome, top, other, spoken)

    def explain(self, query: str, shared: DatasetObjects, competitors: int) -> Explanation:
        case = self.cases[query]
        outcome, other = case.outcome, case.other
        images = [shared.image(image) for image in case.images]
        mentions = None if case.spoken is None else self.mentions.get(case.spoken)
        checks: tuple[MentionComparison, ...] = ()
        compared: Mapping[str, Any] = {}
        informed: Mapping[str, Any] = {}
        content: dict[str, Any] = {}
        if other is not None:
            objects = shared.objects
            rows = [int(row) for row in objects.rows([image.image for image in images])]
            compared = compare_images(objects, *rows, sizes=self.sizes)
            if mentions is not None:
                checked = [check_mentions(mentions, image, shared.vocabulary) for image in images]
                checks = tuple(MentionComparison(*sides) for sides in zip(*checked, strict=True))
                only = mentions.mentioned(objects.synsets)
                whole = compare_images(objects, *rows, mentioned=only, sizes=self.sizes)
                informed = {name: whole[name] for name in METRICS}
                content = mention_facts(mentions, *(checked if self.direction == IMAGE_TO_TEXT else checked[::-1]))
            reported = [phrase.noun for name in ("lacking", "lacking_both") for phrase in content.get(name, ())]
            content |= image_facts(images[0], images[1], reported)
        notes = [*self.notes, *_notes(images)]
        # What SD does not see, where there is such a pair of boxes.
        shrunk = any(2 * pair[4] < pair[3] for pair in compared.get("box_pairs", ()))
        if shrunk and self.sizes.base == "ground_truth" and self.sizes.threshold >= 1:
            notes.append(_SHRUNK)
        # The score of the top-1 item minus that of the relevant item or, of a success, of the next item.
        margin = outcome["margin"]
        if outcome["rank"] == 1:
            scores = (outcome["score"], None if other is None else other.score)
            margin = None if None in scores else scores[0] - scores[1]
        facts: dict[str, Any] = {
            "direction": self.direction,
            "source": images[0].source,
            "succeeded": outcome["rank"] == 1,
            "rank": outcome["rank"],
            "margin": None if margin is None else float(margin),
            "margin_at_least": outcome["margin_at_least"],
        }
        incomplete, gallery = not self.ranking.complete, int(self.ranking.known[self.rows[query]])
        inputs = {**facts, "gallery": gallery, "incomplete": incomplete, "checked": mentions is not None}
        return Explanation(
            **facts,
            run=self.name,
            dataset=self.dataset.name,
            query=query,
            query_text=outcome["text"],
            gallery=None if incomplete else gallery,
            score=outcome["score"],
            truth_score=outcome["truth_score"],
            right=images[0],
            other=images[1] if other else None,
            other_item=other.item if other else None,
            spoken=case.spoken,
            competitors=tuple(case.top[:competitors]),
            words=checks,
            comparison=compared,
            informed=informed,
            sentences=sentences(QueryFacts(**inputs, compared=other is not None, **content)),
            notes=tuple(notes),
        )


def _notes(images: Sequence[AnnotatedImage]) -> list[str]:
    if images[0].source == "captions":
        return [_NO_OBJECTS]
    notes = [f"No object of image {image.image} is annotated." for image in images if not image.objects]
    objects = [item for image in images for item in image.objects]
    return [*notes, _NO_BOXES] if objects and not any(item.box for item in objects) else notes


@dataclass(frozen=True)
class HitComparison:
    """``checks`` holds, for every mention of the sentence, what it found in each of the ``images``.

    ``common`` are the names of objects that the first two images share, ``only_first`` and ``only_second`` those that
    one of them has. ``source`` says where objects come from: ``annotations``, or ``captions``.
    """

    images: tuple[str, ...]
    source: str = ""
    checks: tuple[tuple[MentionCheck, ...], ...] = ()
    common: tuple[str, ...] = ()
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The comparison with the verdicts and reasons of every mention, in the order of the images."""
        mentions = []
        for row in self.checks:
            results = {"verdicts": [check.verdict for check in row], "reasons": [check.why for check in row]}
            mentions.append({"text": row[0].word.text, "kind": row[0].word.kind, **results})
        content = vars(self) | {"mentions": mentions, "sentences": self.sentences}
        del content["checks"]
        return content

    def satisfied(self, image: int) -> list[str]:
        """What of the sentence an image has, as written."""
        return [row[image].word.text for row in self.checks if row[image].verdict == SATISFIED]

    def violated(self, image: int) -> list[str]:
        """What of the sentence an image does not have, as written; nothing is said of objects that are not there."""
        checks = [row[image] for row in self.checks]
        present = {check.word.noun for check in checks if check.verdict == SATISFIED}
        violated = (check.word for check in checks if check.verdict == VIOLATED)
        return [word.text for word in violated if word.kind == "object" or word.noun in present]

    @property
    def sentences(self) -> list[str]:
        """What was found, in words."""
        names = ("first", "second")[: len(self.images)]
        lines = []
        for number, name in enumerate(names):
            has, lacks = (list(dict.fromkeys(words)) for words in (self.satisfied(number), self.violated(number)))
            if has or lacks:
                parts = [f"has {join_words(has)}"] if has else []
                parts += [f"lacks {join_words(lacks)}"] if lacks else []
                lines.append(f"Of what the sentence mentions, the {name} image {' and '.join(parts)}.")
        return lines


def compare_hits(dataset: Dataset, text: str | None, images: Sequence[str]) -> HitComparison:
    """The first images of a search, compared by their objects; with ``text``, by what the sentence mentions, too.

    Where nothing is annotated, an image has what its captions mention; only those of these images are read.
    """
    images = tuple(images[:2])
    shared = DatasetObjects(dataset).of(images)
    try:
        source = shared.objects.source
        mentions = None if text is None else mentioned_concepts([text])[0]
    except MissingExtraError as error:
        return HitComparison(images, notes=(f"The words were not parsed: {error.problem}; {error.fix}.",))
    annotated = [shared.image(image) for image in images]
    columns = [] if mentions is None else [check_mentions(mentions, image, shared.vocabulary) for image in annotated]
    names = [dict.fromkeys(item.name for item in image.objects) for image in annotated]
    first, second = names[0], names[1] if len(names) > 1 else {}
    return HitComparison(
        images,
        source,
        tuple(zip(*columns, strict=True)),
        tuple(name for name in first if name in second),
        tuple(name for name in first if name not in second) if len(names) > 1 else (),
        tuple(name for name in second if name not in first),
    )
