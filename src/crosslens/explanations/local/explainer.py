"""From a run and the ids of queries to their explanations; what all of them need is read once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from crosslens.core import (
    IMAGE_TO_TEXT,
    UNRANKED,
    Dataset,
    InputError,
    MissingExtraError,
    Ranking,
    Run,
    UsageError,
    match_ids,
)
from crosslens.explanations.concepts.comparison import SizeComparison, compare_images
from crosslens.explanations.concepts.metrics import METRICS
from crosslens.explanations.concepts.objects import ImageObjects, objects_of
from crosslens.explanations.failures import DIRECTIONS, query_outcomes, ranking_of
from crosslens.explanations.local.explanation import Competitor, Explanation, MentionComparison
from crosslens.explanations.local.findings import Findings, image_findings, mention_findings
from crosslens.explanations.local.sentences import sentences
from crosslens.explanations.words.checks import Vocabulary, check_mentions
from crosslens.explanations.words.images import AnnotatedImage, annotated_image, crowd_flags, finite
from crosslens.explanations.words.mentions import QueryMentions, mentioned_concepts

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
    searched = [_find_query(run, str(query), direction, dataset) for query in queries]
    ids, directions = [query for query, _ in searched], [name for _, name in searched]
    sizes = SizeComparison(threshold, base)
    explainers = {name: _Explainer(run, dataset, name, sizes, competitors) for name in set(directions)}
    for name, explainer in explainers.items():
        explainer.parse([query for query, own in zip(ids, directions, strict=True) if own == name])
    compared = {
        image for query, name in zip(ids, directions, strict=True) for image in explainers[name].images_of(query)
    }
    shared = (objects or DatasetObjects(dataset, areas)).of(compared)
    for explainer in explainers.values():
        explainer.shared = shared
    return [explainers[name].explain(query) for query, name in zip(ids, directions, strict=True)]


def _find_query(
    run: Run | Mapping[str, Ranking], query: str, direction: str | None, dataset: Dataset
) -> tuple[str, str]:
    """The query as the dataset writes it, and the direction that has it."""
    rankings = run.rankings if isinstance(run, Run) else run
    names = [ranking_of(run, direction).direction] if direction else [name for name in DIRECTIONS if name in rankings]
    searched = [ranking_of(run, name, dataset) for name in names] or [ranking_of(run)]
    for ranking in searched:
        row = int(match_ids([query], ranking.query_ids)[0])
        if row >= 0:
            return ranking.query_ids[row], ranking.direction
    known = [query_id for ranking in searched for query_id in ranking.query_ids]
    near = difflib.get_close_matches(query, known[:100_000], n=_SUGGESTED, cutoff=0.5)
    fix = f"did you mean {' or '.join(near)}?" if near else f"ids look like {', '.join(known[:_SUGGESTED])}"
    raise UsageError(f"no query {query!r} in this run", fix=fix, code="unknown-id", subject=query)


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
        """The same for these images, where no others are needed: captions say all that is known of an image.

        Annotated objects stay those of all images: an object that was annotated in no image at all may be in any.
        """
        annotated = self.dataset.objects is not None and self.dataset.objects.height > 0
        if annotated or "objects" in vars(self):
            return self
        return DatasetObjects(self.dataset.select(images), self.areas)

    def image(self, image: str) -> AnnotatedImage:
        return annotated_image(self.dataset, self.objects, image, self.crowds)


class _Explainer:
    """Explains the queries of one direction of a run."""

    def __init__(
        self,
        run: Run | Mapping[str, Ranking],
        dataset: Dataset,
        direction: str,
        sizes: SizeComparison,
        competitors: int,
    ) -> None:
        self.name = run.name if isinstance(run, Run) else "run"
        self.dataset, self.direction, self.sizes = dataset, direction, sizes
        self.shared = DatasetObjects(dataset)
        self.ranking = ranking_of(run, direction, dataset)
        self.outcomes = query_outcomes(run, dataset, direction)
        self.outcome_rows = {query: row for row, query in enumerate(self.outcomes["query"])}
        self.competitors = competitors
        self.rows = {query: row for row, query in enumerate(self.ranking.query_ids)}
        self.mentions: dict[str, QueryMentions] = {}
        self.parse_notes: list[str] = []

    def parse(self, queries: Sequence[str]) -> None:
        """Parse the texts of all queries at once: a parser takes longer to start than to parse."""
        texts = list(dict.fromkeys(text for query in queries if (text := self._inputs(query)[2]) is not None))
        try:
            self.mentions = dict(zip(texts, mentioned_concepts(texts), strict=True)) if texts else {}
        except MissingExtraError as error:
            self.parse_notes = [f"The words were not parsed: {error.problem}; {error.fix}."]

    def _inputs(self, query: str) -> tuple[dict[str, Any], Competitor | None, str | None]:
        """The outcome of a query, the item it is compared with, and the text whose mentions are checked."""
        outcome = self._outcome(query)
        other = self._compared_item(outcome, self._top_items(query))
        if self.direction != IMAGE_TO_TEXT:
            return outcome, other, outcome["text"]
        return outcome, other, None if other is None else other.text

    def images_of(self, query: str) -> tuple[str, ...]:
        """The images that are compared: the right one, and that of the item it is compared with."""
        outcome, other, _ = self._inputs(query)
        return (outcome["ground_truth"], *([other.image] if other else ()))

    def explain(self, query: str) -> Explanation:
        outcome, other, spoken = self._inputs(query)
        images = [self.shared.image(image) for image in self.images_of(query)]
        mentions = None if spoken is None else self.mentions.get(spoken)
        checks = self._check(mentions, images)
        compared, informed = self._compare(mentions, images)
        findings = self._findings(outcome, _margin(outcome, other), images, mentions, checks)
        shared = ("direction", "source", "succeeded", "rank", "margin", "margin_at_least")
        return Explanation(
            run=self.name,
            dataset=self.dataset.name,
            query=query,
            query_text=outcome["text"],
            **{name: outcome[name] for name in ("score", "truth_score")},
            **{name: getattr(findings, name) for name in shared},
            gallery=None if findings.listed else findings.gallery,
            right=images[0],
            other=images[1] if other else None,
            other_item=other.item if other else None,
            spoken=spoken,
            competitors=tuple(self._top_items(query)[: self.competitors]),
            words=checks,
            comparison=compared,
            informed=informed,
            sentences=sentences(findings),
            notes=(*self.parse_notes, *_notes(images), *self._size_notes(compared)),
        )

    def _outcome(self, query: str) -> dict[str, Any]:
        row = self.outcome_rows.get(query)
        if row is None:
            raise InputError(
                f"the query {query!r} has no relevant item in this run, or its list is empty or names unknown items",
                expected="a query with a relevant item, and a list of items of the dataset",
                fix="explain another query",
                subject=query,
            )
        return self.outcomes.row(row, named=True)

    def _top_items(self, query: str) -> list[Competitor]:
        """Every item of the top k."""
        row, ranking = self.rows[query], self.ranking
        own = slice(ranking.offsets[row], ranking.offsets[row + 1])
        relevant = set(ranking.relevant[own][ranking.grades[own] > 0].tolist())
        items = [int(item) for item in ranking.top_items[row] if item != UNRANKED]
        competitors = []
        for rank, item in enumerate(items, start=1):
            name, score = ranking.item_ids[item], finite(ranking.top_scores[row, rank - 1])
            image, text = self._caption(name) if self.direction == IMAGE_TO_TEXT else (name, None)
            competitors.append(Competitor(rank, name, image, score, item in relevant, text))
        return competitors

    def _caption(self, caption: str) -> tuple[str, str]:
        """The image and the text of a caption."""
        row = self.dataset.caption_rows[caption]
        return self.dataset.image_ids[self.dataset.caption_image[row]], self.dataset.texts[row]

    def _compared_item(self, outcome: Mapping[str, Any], top: Sequence[Competitor]) -> Competitor | None:
        """The top-1 item; of a success, the first item that is not relevant, which must be of another image."""
        if outcome["rank"] != 1:
            return top[0]
        return next((item for item in top if not item.right and item.image != outcome["ground_truth"]), None)

    def _check(self, mentions: QueryMentions | None, images: Sequence[AnnotatedImage]) -> tuple[MentionComparison, ...]:
        if mentions is None or len(images) < 2:
            return ()
        both = (check_mentions(mentions, image, self.shared.vocabulary) for image in images)
        return tuple(MentionComparison(*checks) for checks in zip(*both, strict=True))

    def _compare(
        self, mentions: QueryMentions | None, images: Sequence[AnnotatedImage]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Every concept metric, and those over what the query mentions only."""
        if len(images) < 2:
            return {}, {}
        objects = self.shared.objects
        right, other = (int(row) for row in objects.rows([image.image for image in images]))
        compared = compare_images(objects, right, other, sizes=self.sizes)
        if mentions is None:
            return compared, {}
        mentioned = mentions.mentioned(objects.synsets)
        informed = compare_images(objects, right, other, mentioned=mentioned, sizes=self.sizes)
        return compared, {name: informed[name] for name in METRICS}

    def _size_notes(self, compared: Mapping[str, Any]) -> list[str]:
        """What SD does not see, where there is such a pair of boxes."""
        blind = self.sizes.base == "ground_truth" and self.sizes.threshold >= 1
        shrunk = any(2 * pair[4] < pair[3] for pair in compared.get("box_pairs", ()))
        return [_SHRUNK] if blind and shrunk else []

    def _findings(
        self,
        outcome: Mapping[str, Any],
        margin: float | None,
        images: Sequence[AnnotatedImage],
        mentions: QueryMentions | None,
        checks: Sequence[MentionComparison],
    ) -> Findings:
        known: dict[str, Any] = {}
        if mentions is not None and checks:
            own, others = [check.right for check in checks], [check.other for check in checks]
            known |= mention_findings(mentions, *((own, others) if self.direction == IMAGE_TO_TEXT else (others, own)))
        if len(images) == 2:
            reported = [phrase.noun for name in ("lacking", "lacking_both") for phrase in known.get(name, ())]
            known |= image_findings(images[0], images[1], reported)
        return Findings(
            direction=self.direction,
            source=images[0].source,
            succeeded=outcome["rank"] == 1,
            rank=outcome["rank"],
            gallery=int(self.ranking.known[self.rows[outcome["query"]]]),
            listed=not self.ranking.complete,
            margin=margin,
            margin_at_least=outcome["margin_at_least"],
            compared=len(images) == 2,
            checked=mentions is not None,
            **known,
        )


def _margin(outcome: Mapping[str, Any], other: Competitor | None) -> float | None:
    """The score of the top-1 item minus that of the relevant item or, of a success, of the next item."""
    if outcome["rank"] != 1:
        return None if outcome["margin"] is None else float(outcome["margin"])
    if other is None or other.score is None or outcome["score"] is None:
        return None
    return float(outcome["score"]) - other.score


def _notes(images: Sequence[AnnotatedImage]) -> list[str]:
    if images[0].source == "captions":
        return [_NO_OBJECTS]
    notes = [f"No object of image {image.image} is annotated." for image in images if not image.objects]
    objects = [item for image in images for item in image.objects]
    return [*notes, _NO_BOXES] if objects and not any(item.box for item in objects) else notes
