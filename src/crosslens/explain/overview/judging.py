"""Every mention of a query against the retrieved image, by annotations first and captions second.

One principle decides: a mention is violated where the right image bears it out and the retrieved one contradicts it. A
query whose words the right image's own annotation does not bear out says nothing about the retrieved one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.progress import Progress
from crosslens.explain.concepts.objects import ImageObjects, caption_objects
from crosslens.explain.overview.causes import Judged
from crosslens.explain.words.caption_words import Said, caption_words
from crosslens.explain.words.idle_words import NOT_PLACES, NOT_VERBS, NOTHING_HAPPENS, NOTHING_SAID, NOTHING_TO_SEE
from crosslens.explain.words.pictures import Box, Picture, Thing
from crosslens.explain.words.query_answers import OPEN, SATISFIED, VIOLATED, Vocabulary, answer
from crosslens.explain.words.query_words import QueryWords, Word
from crosslens.language.wordnet import wordnet

ANNOTATIONS, CAPTIONS = "annotations", "captions"
SALIENT = 1 / 10
"""A query may or may not count what is smaller than this share of the largest thing of its kind: passers-by behind."""


@dataclass(frozen=True)
class Witnesses:
    """What is known of every image: annotated things, things that captions mention, words that captions say."""

    annotated: Mapping[str, Picture]
    mentioned: Mapping[str, Picture]
    said: Mapping[str, Said]
    vocabulary: Vocabulary

    @staticmethod
    def of(
        dataset: Dataset,
        objects: ImageObjects,
        images: Sequence[str],
        *,
        looks: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Witnesses:
        """Of these images. What captions say things look like is read of ``looks`` only (default: of all): it takes
        their scene graphs, and few queries ask for it."""
        wanted = sorted(set(images))
        annotated = _pictures(objects, wanted, _crowds(dataset, objects))
        asked = wanted if looks is None else sorted(set(looks))
        if objects.source == "captions":
            mentioned: Mapping[str, Picture] = annotated
        else:
            mentioned = (
                _pictures(caption_objects(dataset.select(asked), progress=progress), asked, None) if asked else {}
            )
        return Witnesses(annotated, mentioned, caption_words(dataset, wanted, progress), Vocabulary.of(objects))


def judge(query: QueryWords, caption: str | None, right: str, wrong: str, known: Witnesses) -> list[Judged]:
    """Every mention of a query, judged; ``caption`` is the query's id, whose own words are no witness.

    What is said of a thing that the retrieved image lacks is left out: the object is what is wrong then. So are words
    that say nothing one could see.
    """
    found = []
    for word in query:
        about = (word.thing, word.other) if word.kind == "relation" else (word.thing,)
        if word.kind == "object":
            one = _object(word, caption, right, wrong, known)
        elif all(_there(name, wrong, known) for name in about):
            one = _said_of_a_thing(word, caption, right, wrong, known)
        else:
            one = None
        found += [one] if one is not None else []
    return found


def _object(word: Word, caption: str | None, right: str, wrong: str, known: Witnesses) -> Judged | None:
    """Missing where the annotation of the right image has it, that of the retrieved one not, nor a caption of it."""
    if word.thing in NOTHING_TO_SEE:
        return None
    source = known.annotated[wrong].source
    if _has(known.annotated[wrong], word.thing):
        return Judged("object", True, source)
    if not _has(known.annotated[right], word.thing):
        return _by_words("detail", (("n", word.thing),), caption, right, wrong, known)
    if known.said[wrong].says("n", word.thing):
        return Judged("object", True, CAPTIONS)
    return Judged("object", False, source)


def _said_of_a_thing(word: Word, caption: str | None, right: str, wrong: str, known: Witnesses) -> Judged | None:
    verb = word.value.split(" ")[0]
    if word.kind == "action" or (word.kind == "relation" and _is_verb(verb)):
        return None if verb in NOTHING_HAPPENS else _by_words("action", (("v", verb),), caption, right, wrong, known)
    if word.kind == "detail" and word.value in NOTHING_SAID:
        return None
    if word.kind == "count":
        return _count(word, right, wrong, known)
    cause = {"material": "detail", "relation": "position"}.get(word.kind, word.kind)
    here, there = (answer(word, known.annotated[image], known.vocabulary).verdict for image in (wrong, right))
    source = known.annotated[wrong].source
    if here == SATISFIED:
        return Judged(cause, True, source)
    if here == VIOLATED:
        return Judged(cause, False if there == SATISFIED else None, source)
    if word.kind == "relation":
        return Judged(cause, None) if _is_place(word.value) else None
    if word.kind == "detail":
        return _by_words(cause, (("a", word.value), ("v", verb)), caption, right, wrong, known)
    return _by_mentioned(cause, word, wrong, known)


def _count(word: Word, right: str, wrong: str, known: Witnesses) -> Judged:
    """Whether the number asked for lies between how many stand out and how many there are, in either image."""
    ranges = [_numbers(known.annotated[image], word.thing) for image in (right, wrong)]
    asked, source = word.number, known.annotated[wrong].source
    if asked is None or ranges[0] is None or ranges[1] is None:
        return Judged("count", None, source)
    there, here = ranges[0][0] <= asked <= ranges[0][1], ranges[1][0] <= asked <= ranges[1][1]
    return Judged("count", True if here else False if there else None, source)


def _numbers(picture: Picture, name: str) -> tuple[int, int] | None:
    """The fewest and the most that a person would count; None where nobody can, as in a crowd.

    Two men are among the persons annotated: at most all of them, at least none.
    """
    surely = [thing for thing in picture.things if thing.is_a(name)]
    perhaps = [thing for thing in picture.things if thing.may_be_a(name) and not thing.is_a(name)]
    if picture.source == CAPTIONS or any(thing.crowd for thing in (*surely, *perhaps)):
        return None
    areas = [thing.area or 0.0 for thing in surely]
    salient = sum(area >= SALIENT * max(areas) for area in areas)
    return salient, len(surely) + len(perhaps)


def _by_mentioned(cause: str, word: Word, wrong: str, known: Witnesses) -> Judged:
    """By what captions say a thing is like: contradicted only where they say something else."""
    if known.annotated[wrong].source == CAPTIONS or wrong not in known.mentioned:
        return Judged(cause, None)
    verdict = answer(word, known.mentioned[wrong], Vocabulary((), (), complete=True)).verdict
    if not known.mentioned[wrong].of(word.thing):
        return Judged(cause, None)
    return Judged(cause, {SATISFIED: True, VIOLATED: False, OPEN: None}[verdict], CAPTIONS)


def _by_words(
    cause: str, words: Sequence[tuple[str, str]], caption: str | None, right: str, wrong: str, known: Witnesses
) -> Judged:
    """By what captions say at all: contradicted where another caption of the right image says it, and none of these."""
    if any(known.said[wrong].says(*word) for word in words):
        return Judged(cause, True, CAPTIONS)
    borne_out = any(known.said[right].says(*word, besides=caption) for word in words)
    return Judged(cause, False if borne_out and known.said[wrong].words else None, CAPTIONS)


def _has(picture: Picture, name: str) -> bool:
    """By its own name, a kind of it, or something annotated so widely that it may be it."""
    return bool(picture.of(name)) or picture.may_have(name)


def _there(name: str, image: str, known: Witnesses) -> bool:
    return _has(known.annotated[image], name) or known.said[image].says("n", name)


@lru_cache(maxsize=1 << 14)
def _is_verb(word: str) -> bool:
    return word not in NOT_VERBS and bool(wordnet().synsets(word, "v").size)


def _is_place(relation: str) -> bool:
    return relation.split(" ")[0] not in NOT_PLACES


def _pictures(objects: ImageObjects, images: Sequence[str], crowds: Any) -> dict[str, Picture]:
    """Pictures without their captions and sizes: many at once."""
    rows = objects.rows(images)
    return {
        image: Picture(image, tuple(_thing(objects, at, crowds) for at in objects.inside(int(row))), objects.source)
        for image, row in zip(images, rows, strict=True)
    }


def _thing(objects: ImageObjects, at: int, crowds: Any) -> Thing:
    box, area = objects.boxes[at], float(objects.areas[at])
    placed: Box | None = None if np.isnan(box).any() else (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
    return Thing(
        objects.names[at], objects.synset(at), placed, None if np.isnan(area) else area, objects.attributes[at],
        crowd=bool(crowds[at]) if crowds is not None else False,
    )  # fmt: skip


def _crowds(dataset: Dataset, objects: ImageObjects) -> Any:
    """Per object whether it stands for many; objects lie as in the dataset, image after image."""
    table = dataset.objects
    if objects.source == CAPTIONS or table is None or "iscrowd" not in table.columns:
        return None
    order = pl.DataFrame({"image": dataset.image_ids, "at": range(len(dataset.image_ids))})
    ordered = table.join(order, on="image", how="left", maintain_order="left").sort("at", maintain_order=True)
    return ordered["iscrowd"].fill_null(0).cast(pl.Int64).to_numpy() != 0
