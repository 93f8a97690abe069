"""What is known of the images of failed queries: annotated objects first, captions second, and the limits of both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.engine import Progress, shown_progress, stage
from crosslens.explanations.lexicon import (
    ATTRIBUTE_FAMILIES,
    GENERIC_NOUNS,
    attribute_bits,
    is_object_word,
    same_meaning,
)
from crosslens.explanations.mentions import (
    LIGHT_VERBS,
    NON_SPATIAL_PREPOSITIONS,
    OPEN,
    PARTICLES,
    SATISFIED,
    VAGUE_ATTRIBUTES,
    VIOLATED,
    Mention,
    QueryMentions,
    Vocabulary,
    check_mention,
)
from crosslens.explanations.objects import (
    AnnotatedImage,
    ImageObject,
    ImageObjects,
    annotated_images,
    caption_objects,
    crowd_flags,
)
from crosslens.language import FACT_READERS, Words, load_wordnet, parse_texts, read_number
from crosslens.statistics import Bootstrap
from crosslens.values import Dataset


def plain_text(text: str) -> str:
    """A text without the full stop at its end, which makes it no other text."""
    return text.strip(" .\n\t")


_CORPUS = (
    "The captions of an image are the texts of the corpus, which stand for it; queries ask, and are no evidence. A "
    "text that is the query itself confirms nothing."
)
_PART = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r", "NUM": "a"}


@dataclass(frozen=True)
class CaptionWords:
    """The words of one image's captions: (part of speech, lemma) → the texts of the captions that contain it."""

    words: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    written: dict[str, set[str]] = field(default_factory=dict)
    """Words in quotes, and numbers that count nothing → the texts of the captions that contain them."""

    def contain(self, part: str, word: str, query: str | None = None) -> bool:
        """Whether a caption contains the word, a synonym or, of a noun, a hyponym of it.

        A caption that is the text ``query`` itself does not count: nothing confirms its own words.
        """
        same = set() if query is None else {plain_text(query)}
        texts = self.words.get((part, word))
        if texts is not None and texts - same:
            return True
        return any(
            kind == part and texts - same and same_meaning(part, word, lemma)
            for (kind, lemma), texts in self.words.items()
        )


def written_words(text: str) -> dict[str, tuple[int, int]]:
    """What may be read in a picture, with its characters in a text: what stands in quotes, numbers that count nothing.

    Both as they compare: letters and digits in lower case, numbers in digits.
    """
    words = Words(text)
    quoted = {re.sub(r"\W", "", fact.value).lower(): (fact.first, fact.last) for fact in FACT_READERS["text"](words)}
    inside = {
        at for key in ("text", "count") for fact in FACT_READERS[key](words) for at in range(fact.first, fact.last + 1)
    }
    at = 0
    while at < len(words):
        value, length = read_number(words.lower, at) or (None, 1)
        if value is not None and at not in inside and words[at] != "one":  # which may stand for a thing
            quoted.setdefault(str(value), (at, at + length - 1))
        at += length
    return {word: (words.spans[first][0], words.spans[last][1]) for word, (first, last) in quoted.items()}


def caption_words(dataset: Dataset, images: Iterable[str], progress: Progress | None = None) -> dict[str, CaptionWords]:
    """Per image, the words of its captions (of the corpus, if there is one); parses are kept between runs."""
    by_image = {image: CaptionWords() for image in images}
    captions = dataset.described.captions.filter(pl.col("image").is_in(list(by_image)))
    parses = parse_texts(captions["text"].to_list(), progress=progress)
    for text, image, parse in zip(captions["text"], captions["image"], parses, strict=True):
        words = by_image[image].words
        for word in written_words(text):
            by_image[image].written.setdefault(word, set()).add(plain_text(text))
        for lemma, pos, tag in zip(parse.lemmas, parse.pos, parse.tags, strict=True):
            if (part := _PART.get(pos)) is not None:  # participles are both verbs and adjectives: seated, parked
                for letter in {part, "a"} if tag in ("VBN", "VBG") else {part}:
                    words.setdefault((letter, lemma), set()).add(plain_text(text))
    return by_image


@dataclass(frozen=True)
class Evidence:
    """What is known of every image: annotated objects, objects that captions mention, words of captions."""

    annotated: Mapping[str, AnnotatedImage]
    mentioned: Mapping[str, AnnotatedImage]
    words: Mapping[str, CaptionWords]
    vocabulary: Vocabulary

    @staticmethod
    def of(
        dataset: Dataset,
        objects: ImageObjects,
        images: Sequence[str],
        *,
        attributes_of: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Evidence:
        """Of these images. The attributes that captions state are only read of ``attributes_of`` (default: of all): it
        takes their scene graphs, and few queries mention an attribute."""
        distinct = sorted(set(images))
        annotated = annotated_images(objects, distinct, crowd_flags(dataset, objects))
        described = distinct if attributes_of is None else sorted(set(attributes_of))
        mentioned: Mapping[str, AnnotatedImage] = {}
        if objects.source == "captions":
            mentioned = annotated
        elif described:
            texts = dataset.described.select(described)
            mentioned = annotated_images(caption_objects(texts, progress=progress), described)
        words = caption_words(dataset, distinct, progress)
        return Evidence(annotated, mentioned, words, Vocabulary.of(objects))

    def has(self, image: str, noun: str) -> bool:
        """Whether the annotation of an image has it, or something more general that may be it."""
        annotated = self.annotated[image]
        return bool(annotated.of(noun)) or annotated.may_have(noun)


def limitations(
    dataset: Dataset, objects: ImageObjects, failures: pl.DataFrame, queries: Sequence[QueryMentions]
) -> tuple[str, ...]:
    """Sentences about what is not annotated, and what decides instead."""
    corpus = () if dataset.corpus is None else (_CORPUS,)
    mentions, unjudged = int(failures["mentions"].sum()), int(failures["unjudged"].sum())
    remark = "The queries mention nothing that could be judged."
    if mentions:
        remark = (
            f"Of {mentions:,} mentions in failed queries {unjudged:,} ({100 * unjudged / mentions:.0f}%) could not be "
            "judged. A failure of which nothing is known to be violated is not explained."
        )
    if objects.source == "captions":
        return (
            *corpus,
            "No objects are annotated: concepts are those that captions mention. There are no boxes, so that size and "
            "position are not judged, and a thing that no caption mentions counts as missing.",
            remark,
        )
    # How many of the objects that queries name can be annotated at all.
    nouns = Counter(mention.noun for query in queries for mention in query.of("object"))
    items = [ImageObject("", synset) for synset in objects.synsets]
    hits = sum(count for noun, count in nouns.items() if any(item.is_a(noun) or item.may_be_a(noun) for item in items))
    notes = [
        *corpus,
        f"The annotation knows {len(objects.synsets):,} concepts, and {100 * hits / max(1, nouns.total()):.0f}% of "
        "the things that failed queries name; the others are judged as details, by captions.",
    ]
    bits = attribute_bits(objects.attributes)
    absent = [family for column, family in enumerate(ATTRIBUTE_FAMILIES) if not bits[:, column].any()]
    if absent:
        notes.append(
            f"No {' or '.join(absent)} is annotated: what the captions of the retrieved image say of the thing "
            "decides where they say it, otherwise it is left open."
        )
    if not np.isfinite(objects.boxes).any():
        notes.append("No boxes are annotated: size and position are not judged.")
    elif not np.isfinite(objects.areas).any():
        notes.append("The sizes of the images are unknown: sizes of objects are not compared.")
    notes += [
        "A size word is never judged by boxes: how large a thing is and how near it stands look the same.",
        "Actions and details are judged by captions alone: wrong where another caption of the right image says so and "
        "none of the retrieved image does.",
    ]
    return (*notes, remark)


CAUSES = ("object", "count", "colour", "size", "position", "action", "detail")
"""What may be wrong, in the order by which the main cause is chosen."""
UNEXPLAINED = "not explained"
"""Nothing that the query mentions is known to be violated: that does not make the retrieved image right."""
OUTCOMES = (*CAUSES, UNEXPLAINED)
"""Every failure has one of them as its main cause."""
MAIN = "main_cause"
SALIENT = 1 / 10
"""A query may or may not count what is smaller than this share of the largest object of its kind: passers-by behind."""

_SHARES: dict[str, Any] = {
    "cause": pl.String,
    **dict.fromkeys(("asked", "open", "count"), pl.Int64),
    **dict.fromkeys(("share", "low", "high", "of_asked"), pl.Float64),
    "main": pl.Int64,
    "main_share": pl.Float64,
    "alone": pl.Int64,
}


_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("causes", "count"), pl.Int64),
    **dict.fromkeys(("share", "low", "high", "of_caused"), pl.Float64),
}


class MentionJudgement(NamedTuple):
    """One mention of a query, judged against the retrieved image.

    ``holds`` is None where nothing is known; ``evidence`` names what decided: the ``annotations`` or the ``captions``.
    """

    cause: str
    holds: bool | None
    evidence: str = ""


def texts_of(failures: pl.DataFrame) -> list[str]:
    """The text whose mentions are judged: the query or, of an image query, the caption that it retrieved."""
    return failures["text"].fill_null(failures["answer"]).fill_null("").to_list()


def judge_failures(
    failures: pl.DataFrame,
    dataset: Dataset,
    objects: ImageObjects,
    queries: Sequence[QueryMentions],
    progress: Progress | None = None,
) -> list[list[tuple[Mention, MentionJudgement]]]:
    """Per row of :func:`failed_queries`, every mention with its judgement; ``queries`` are the mentions of the rows."""
    if not failures.height:
        return []
    # An image query is judged by the caption it retrieved: that caption's own image confirms its words.
    by_images = failures["text"][0] is None
    right, wrong = ("retrieved", "ground_truth") if by_images else ("ground_truth", "retrieved")
    with_attributes = [
        image for image, query in zip(failures[wrong], queries, strict=True) if any(map(query.of, ATTRIBUTE_FAMILIES))
    ]
    images = [*failures["ground_truth"], *failures["retrieved"]]
    evidence = Evidence.of(dataset, objects, images, attributes_of=with_attributes, progress=progress)
    judgements = []
    with stage(shown_progress(progress), "judging failures", failures.height) as bar:
        for query, image, wrong_image in zip(queries, failures[right], failures[wrong], strict=True):
            judgements.append(judge_mentions(query, image, wrong_image, evidence))
            bar.advance()
    return judgements


def judge_mentions(
    query: QueryMentions, right: str, wrong: str, evidence: Evidence
) -> list[tuple[Mention, MentionJudgement]]:
    """Every mention of a query with its judgement.

    Mentions of an object that the retrieved image lacks are left out: the object is what is wrong then. So are words
    without visible meaning.
    """
    judge = _Judge(query.text, right, wrong, evidence)
    judgements = [(mention, judgement) for mention in query if (judgement := judge.judge(mention)) is not None]
    return [*judgements, *judge.written_mentions()]


@dataclass(frozen=True)
class _Judge:
    """Judges the mentions of one failed query; ``right`` is the relevant image, ``wrong`` the retrieved one."""

    query: str
    right: str
    wrong: str
    evidence: Evidence

    @property
    def source(self) -> str:
        return self.evidence.annotated[self.wrong].source

    def judge(self, mention: Mention) -> MentionJudgement | None:
        """A count, attribute, action or relation is judged where its objects are there."""
        noun = mention.noun
        if mention.kind == "object":
            # Missing where the annotation of the right image has it, and neither annotation nor captions of the wrong.
            if noun in GENERIC_NOUNS or (self.source == "captions" and not is_object_word(noun)):
                return None
            if self.evidence.has(self.wrong, noun):
                return MentionJudgement("object", True, self.source)
            if not self.evidence.has(self.right, noun):
                return self._by_words("detail", ("n", noun))
            if self.evidence.words[self.wrong].contain("n", noun):
                return MentionJudgement("object", True, "captions")
            return MentionJudgement("object", False, self.source)
        nouns = (noun, mention.other) if mention.kind == "relation" else (noun,)
        words = self.evidence.words[self.wrong]
        if not all(self.evidence.has(self.wrong, noun) or words.contain("n", noun) for noun in nouns):
            return None
        verb = mention.value.split(" ")[0]
        if mention.kind == "action" or (mention.kind == "relation" and _is_verb(verb)):
            return None if verb in LIGHT_VERBS else self._by_words("action", ("v", verb))
        if mention.kind == "detail" and mention.value in VAGUE_ATTRIBUTES:
            return None
        if mention.kind == "count":
            return self._count(mention)
        cause = {"material": "detail", "relation": "position"}.get(mention.kind, mention.kind)
        annotated, vocabulary = self.evidence.annotated, self.evidence.vocabulary
        wrong = check_mention(mention, annotated[self.wrong], vocabulary).verdict
        if wrong == SATISFIED:
            return MentionJudgement(cause, True, self.source)
        if wrong == VIOLATED:
            right = check_mention(mention, annotated[self.right], vocabulary).verdict
            return MentionJudgement(cause, False if right == SATISFIED else None, self.source)
        if mention.kind == "relation":
            return MentionJudgement(cause, None) if verb not in NON_SPATIAL_PREPOSITIONS else None
        if mention.kind == "detail":
            return self._by_words(cause, ("a", mention.value), ("v", verb))
        # By the attributes that captions state: contradicted only where they state another value.
        image = self.evidence.mentioned.get(self.wrong)
        if self.source == "captions" or image is None or not image.of(noun):
            return MentionJudgement(cause, None)
        verdict = check_mention(mention, image, Vocabulary((), (), complete=True)).verdict
        return MentionJudgement(cause, {SATISFIED: True, VIOLATED: False, OPEN: None}[verdict], "captions")

    def _count(self, mention: Mention) -> MentionJudgement:
        """Whether the number lies between the fewest and the most that a person would count, in either image.

        Two men are among the persons annotated: at most all of them, at least none. A crowd cannot be counted.
        """
        required, noun = mention.number, mention.noun
        fits = []
        for image in (self.evidence.annotated[self.right], self.evidence.annotated[self.wrong]):
            certain = image.of(noun)
            possible = [item for item in image.objects if item.may_be_a(noun) and not item.is_a(noun)]
            crowded = any(item.crowd for item in (*certain, *possible))
            if required is None or image.source == "captions" or crowded:
                return MentionJudgement("count", None, self.source)
            areas = [item.area or 0.0 for item in certain]
            fewest = sum(area >= SALIENT * max(areas) for area in areas)
            fits.append(fewest <= required <= len(certain) + len(possible))
        right, wrong = fits
        return MentionJudgement("count", True if wrong else False if right else None, self.source)

    def written_mentions(self) -> Iterator[tuple[Mention, MentionJudgement]]:
        """Quoted words and numbers that another caption of the right image has, where captions here have others."""
        right, wrong, same = self.evidence.words[self.right], self.evidence.words[self.wrong], {plain_text(self.query)}
        for word, (start, end) in written_words(self.query).items() if wrong.written else ():
            if word not in wrong.written and right.written.get(word, set()) - same:
                text = self.query[start:end]
                mention = Mention("detail", text, start, end, text, None, word)
                yield mention, MentionJudgement("detail", False, "captions")

    def _by_words(self, cause: str, *words: tuple[str, str]) -> MentionJudgement:
        """By the words of captions: contradicted where another caption of the right image has one, and none here."""
        right, wrong = self.evidence.words[self.right], self.evidence.words[self.wrong]
        if any(wrong.contain(*word) for word in words):
            return MentionJudgement(cause, True, "captions")
        confirmed = any(right.contain(*word, query=self.query) for word in words)
        return MentionJudgement(cause, False if confirmed and wrong.words else None, "captions")


@lru_cache(maxsize=1 << 14)
def _is_verb(word: str) -> bool:
    return word not in PARTICLES and bool(load_wordnet().synsets(word, "v").size)


def cause_column(cause: str) -> str:
    """The column of a cause in the table of failures."""
    return f"cause_{cause.replace(' ', '_')}"


def cause_table(by_failure: Sequence[Iterable[MentionJudgement]]) -> pl.DataFrame:
    """One row per failure: a boolean column per cause, for those that are not explained, and the main cause.

    ``mentions`` and ``unjudged`` count what the query mentions and what of it could not be judged; ``by_captions`` is
    true where captions decided about a cause.
    """
    rows = []
    for judgements in map(list, by_failure):
        holds = {cause: [item.holds for item in judgements if item.cause == cause] for cause in CAUSES}
        violated = {
            cause: True if False in marks else None if None in marks else False for cause, marks in holds.items()
        }
        main = next((cause for cause in CAUSES if violated[cause]), UNEXPLAINED)
        rows.append(
            {
                **{cause_column(cause): violated[cause] for cause in CAUSES},
                cause_column(UNEXPLAINED): main == UNEXPLAINED,
                MAIN: main,
                "mentions": len(judgements),
                "unjudged": sum(item.holds is None for item in judgements),
                "by_captions": any(item.holds is False and item.evidence == "captions" for item in judgements),
                **{f"asks_{cause}": len(holds[cause]) for cause in CAUSES},
            }
        )
    schema: dict[str, Any] = {cause_column(cause): pl.Boolean for cause in OUTCOMES}
    schema |= {MAIN: pl.String, "mentions": pl.Int64, "unjudged": pl.Int64, "by_captions": pl.Boolean}
    return pl.DataFrame(rows, schema=schema | {f"asks_{cause}": pl.Int64 for cause in CAUSES})


def cause_shares(failures: pl.DataFrame, draws: Bootstrap, level: float = 0.95) -> pl.DataFrame:
    """One row per cause, then the failures that are not explained.

    ``asked``: failures whose query mentions anything of the kind; ``open``: those of them that could not be judged;
    ``count``: failures with this cause, ``share`` of all failures with its interval over images; ``of_asked``: of those
    asked and judged; ``main`` and ``main_share``: where it is the main cause; ``alone``: where it is the only one.
    """
    causes = pl.col([cause_column(cause) for cause in CAUSES]).fill_null(False).cast(pl.Int64)
    single = failures.select(single=pl.sum_horizontal(causes) == 1)["single"]
    rows = []
    for cause in OUTCOMES:
        column = failures[cause_column(cause)]
        true, unknown = column.fill_null(False), column.null_count()
        estimate = draws.estimate(true.cast(pl.Float64).to_numpy(), level=level, bounds=(0, 1))
        asking = int((failures[f"asks_{cause}"] > 0).sum()) if cause in CAUSES else None
        count, main = int(true.sum()), int((failures[MAIN] == cause).sum())
        rows.append({
            "cause": cause, "asked": asking, "open": unknown, "count": count,
            **dict(zip(("share", "low", "high"), estimate.cells, strict=True)),
            "of_asked": count / (asking - unknown) if asking is not None and asking > unknown else None,
            "main": main, "main_share": main / failures.height if failures.height else None,
            "alone": int((true & single).sum()) if cause in CAUSES else None,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=_SHARES)


def cause_numbers(causes: pl.DataFrame, draws: Bootstrap, level: float = 0.95) -> pl.DataFrame:
    """One row per number of causes, from 0 to the largest, over a table with a boolean column per cause.

    ``count`` and ``share``: rows with exactly so many causes, with the interval over images; ``of_caused``: of those
    with any cause. Failures that are not explained have none.
    """
    numbers = causes.select(pl.all().fill_null(False).cast(pl.Int64)).sum_horizontal().to_numpy()
    caused = int((numbers > 0).sum())
    rows = []
    for number in range(int(numbers.max(initial=0)) + 1):
        exactly = (numbers == number).astype(np.float64)
        share = draws.estimate(exactly, level=level, bounds=(0, 1)).cells
        count = int(exactly.sum())
        rows.append((number, count, *share, count / caused if number and caused else None))
    return pl.DataFrame(rows, schema=_NUMBERS, orient="row")
