"""From a run and the ids of queries to their explanations; what all of them need is read once."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import CrosslensError, InputError, MissingExtraError, UsageError
from crosslens.core.ranking import UNRANKED, Ranking
from crosslens.core.relevance import IMAGE_TO_TEXT
from crosslens.core.run import Run
from crosslens.explain.concepts.comparison import Rules, compare_images
from crosslens.explain.concepts.metrics import METRICS
from crosslens.explain.concepts.objects import ImageObjects, objects_of
from crosslens.explain.failures import DIRECTIONS, outcomes_of, ranking_of
from crosslens.explain.local.explanation import Competitor, Explanation, Verdict
from crosslens.explain.local.facts import Facts, picture_facts, word_facts
from crosslens.explain.local.sentences import sentences
from crosslens.explain.words.pictures import Picture, picture_of
from crosslens.explain.words.query_answers import Vocabulary, answers
from crosslens.explain.words.query_words import QueryWords, mentioned_concepts

COMPETITORS = 5
_SUGGESTED = 3
_NO_OBJECTS = "Nobody annotated objects: the pictures are compared by what their captions mention, without boxes."
_NO_BOXES = "The objects have no boxes: sizes and places are not compared."


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
) -> list[Explanation]:
    """Each query in full. Without a ``direction``, texts are looked for first, then images."""
    if isinstance(queries, str):
        raise UsageError("one query where a list belongs", fix=f"write [{queries!r}]")
    directions = [_direction_of(run, str(query), direction) for query in queries]
    objects = _Objects(dataset, areas)
    views = {one: _View(run, dataset, one, objects, Rules(threshold, base), competitors) for one in set(directions)}
    for one, view in views.items():
        view.read([str(query) for query, its in zip(queries, directions, strict=True) if its == one])
    return [views[one].explain(str(query)) for query, one in zip(queries, directions, strict=True)]


def _direction_of(run: Run | Mapping[str, Ranking], query: str, direction: str | None) -> str:
    """The direction that has such a query."""
    rankings = run.rankings if isinstance(run, Run) else run
    usual = ranking_of(run, direction)
    having = [usual] if direction else [ranking_of(run, one) for one in DIRECTIONS if one in rankings]
    for ranking in having:
        if query in ranking.query_ids:
            return ranking.direction
    known = [one for ranking in having for one in ranking.query_ids]
    near = difflib.get_close_matches(query, known[:100_000], n=_SUGGESTED, cutoff=0.5)
    fix = f"did you mean {' or '.join(near)}?" if near else f"the ids are such as {', '.join(known[:_SUGGESTED])}"
    raise UsageError(f"no query {query!r} in this run", fix=fix)


class _Objects:
    """What stands in the pictures, read when first needed."""

    def __init__(self, dataset: Dataset, areas: str) -> None:
        self._dataset, self._areas = dataset, areas
        self._found: ImageObjects | None = None
        self._vocabulary: Vocabulary | None = None

    def of(self) -> ImageObjects:
        if self._found is None:
            self._found = objects_of(self._dataset, areas=self._areas)
        return self._found

    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            self._vocabulary = Vocabulary.of(self.of())
        return self._vocabulary


class _View:
    """One direction of a run."""

    def __init__(
        self,
        run: Run | Mapping[str, Ranking],
        dataset: Dataset,
        direction: str,
        objects: _Objects,
        rules: Rules,
        competitors: int,
    ) -> None:
        self.name = run.name if isinstance(run, Run) else "run"
        self.dataset, self.direction, self.objects, self.rules = dataset, direction, objects, rules
        self.ranking = ranking_of(run, direction)
        self.outcomes = outcomes_of(run, dataset, direction)
        self.answered = {one: row for row, one in enumerate(self.outcomes["query"])}
        self.competitors = competitors
        self.rows = {one: row for row, one in enumerate(self.ranking.query_ids)}
        self.captions = dict(dataset.captions.select("caption", "text").iter_rows())
        self.images = dict(dataset.captions.select("caption", "image").iter_rows())
        self.found: dict[str, QueryWords] = {}
        self.unread: list[str] = []

    def read(self, queries: Sequence[str]) -> None:
        """Read the words of all queries at once: a parser takes longer to start than to read."""
        spoken = [self._heard(query)[2] for query in queries]
        texts = list(dict.fromkeys(text for text in spoken if text is not None))
        try:
            self.found = dict(zip(texts, mentioned_concepts(texts), strict=True)) if texts else {}
        except MissingExtraError as error:
            self.unread = [f"The words were not read: {_fixed(error)}"]

    def _heard(self, query: str) -> tuple[dict[str, Any], Competitor | None, str | None]:
        """How a query went, what it is compared with, and the text whose words are checked."""
        outcome = self._outcome(query)
        other = self._other(outcome, self._listed(query), outcome["rank"] == 1)
        if self.direction != IMAGE_TO_TEXT:
            return outcome, other, outcome["text"]
        return outcome, other, None if other is None else other.text

    def explain(self, query: str) -> Explanation:
        outcome, other, spoken = self._heard(query)
        succeeded = outcome["rank"] == 1
        objects = self.objects.of()
        right = picture_of(self.dataset, objects, outcome["ground_truth"])
        wrong = None if other is None else picture_of(self.dataset, objects, other.image)
        words = None if spoken is None else self.found.get(spoken)
        margin = self._margin(outcome, other, succeeded)
        verdicts = self._verdicts(words, right, wrong)
        compared, informed = self._compared(words, right, wrong)
        facts = self._facts(outcome, margin, right, wrong, words, verdicts)
        return Explanation(
            run=self.name,
            dataset=self.dataset.name,
            direction=self.direction,
            source=objects.source,
            query=query,
            text=outcome["text"],
            succeeded=succeeded,
            rank=outcome["rank"],
            gallery=facts.gallery,
            score=outcome["score"],
            truth_score=outcome["truth_score"],
            margin=margin,
            margin_at_least=outcome["margin_at_least"],
            right=right,
            other=wrong,
            other_item=None if other is None else other.item,
            spoken=spoken,
            competitors=tuple(self._listed(query)[: self.competitors]),
            words=verdicts,
            comparison=compared,
            informed=informed,
            sentences=sentences(facts),
            notes=(*self.unread, *self._notes(objects, right, wrong)),
        )

    def _outcome(self, query: str) -> dict[str, Any]:
        found = self.answered.get(query)
        if found is None:
            raise InputError(
                f"the query {query!r} has no right answer in this run, or its list is empty",
                expected="a query that something is relevant to",
                fix="explain another one",
            )
        return self.outcomes.row(found, named=True)

    def _listed(self, query: str) -> list[Competitor]:
        """Every place of the kept list."""
        row, ranking = self.rows[query], self.ranking
        inside = slice(ranking.offsets[row], ranking.offsets[row + 1])
        right = set(ranking.relevant[inside][ranking.grades[inside] > 0].tolist())
        items = [int(item) for item in ranking.top_items[row] if item != UNRANKED]
        found = []
        for place, item in enumerate(items, start=1):
            name, score = ranking.item_ids[item], float(ranking.top_scores[row, place - 1])
            image, text = (self.images[name], self.captions[name]) if self.direction == IMAGE_TO_TEXT else (name, None)
            found.append(Competitor(place, name, image, score if np.isfinite(score) else None, item in right, text))
        return found

    def _other(self, outcome: Mapping[str, Any], listed: Sequence[Competitor], succeeded: bool) -> Competitor | None:
        """What came first; of a success, the first wrong answer, which must be of another picture."""
        if not succeeded:
            return listed[0]
        return next((one for one in listed if not one.right and one.image != outcome["ground_truth"]), None)

    def _margin(self, outcome: Mapping[str, Any], other: Competitor | None, succeeded: bool) -> float | None:
        if not succeeded:
            return None if outcome["margin"] is None else float(outcome["margin"])
        if other is None or other.score is None or outcome["score"] is None:
            return None
        return float(outcome["score"]) - other.score

    def _verdicts(self, words: QueryWords | None, right: Picture, wrong: Picture | None) -> tuple[Verdict, ...]:
        if words is None or wrong is None:
            return ()
        vocabulary = self.objects.vocabulary()
        return tuple(
            Verdict(one, two)
            for one, two in zip(answers(words, right, vocabulary), answers(words, wrong, vocabulary), strict=True)
        )

    def _compared(
        self, words: QueryWords | None, right: Picture, wrong: Picture | None
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        if wrong is None:
            return {}, {}
        objects = self.objects.of()
        rows = [int(row) for row in objects.rows([right.image, wrong.image])]
        whole = compare_images(objects, rows[0], rows[1], rules=self.rules)
        if words is None:
            return whole, {}
        mentioned = words.mentioned(objects.synsets)
        informed = compare_images(objects, rows[0], rows[1], mentioned=mentioned, rules=self.rules)
        return whole, {name: informed[name] for name in METRICS}

    def _facts(
        self,
        outcome: Mapping[str, Any],
        margin: float | None,
        right: Picture,
        wrong: Picture | None,
        words: QueryWords | None,
        verdicts: Sequence[Verdict],
    ) -> Facts:
        known: dict[str, Any] = {}
        if words is not None and verdicts:
            own, others = [one.right for one in verdicts], [one.other for one in verdicts]
            checked, home = (own, others) if self.direction == IMAGE_TO_TEXT else (others, own)
            known |= word_facts(words, checked, home)
        if wrong is not None:
            said = [asked.thing for name in ("lacking", "lacking_both") for asked in known.get(name, ())]
            known |= picture_facts(right, wrong, said)
        return Facts(
            direction=self.direction,
            source=self.objects.of().source,
            succeeded=outcome["rank"] == 1,
            rank=outcome["rank"],
            gallery=int(self.ranking.known[self.rows[outcome["query"]]]),
            margin=margin,
            margin_at_least=outcome["margin_at_least"],
            compared=wrong is not None,
            checked=words is not None,
            **known,
        )

    def _notes(self, objects: ImageObjects, right: Picture, wrong: Picture | None) -> list[str]:
        if objects.source == "captions":
            return [_NO_OBJECTS]
        pictures = [right] if wrong is None else [right, wrong]
        empty = [one.image for one in pictures if not one.things]
        notes = [f"No object of picture {image} is annotated." for image in empty]
        if any(one.things for one in pictures) and not any(thing.box for one in pictures for thing in one.things):
            notes.append(_NO_BOXES)
        return notes


def _fixed(error: CrosslensError) -> str:
    return f"{error.problem}; {error.fix}." if error.fix else f"{error.problem}."
