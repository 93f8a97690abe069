"""What is known of the images of failed queries: annotated objects first, captions second, and the limits of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from crosslens.core import Dataset, Progress
from crosslens.explanations.concepts.lexicon import ATTRIBUTE_FAMILIES, attribute_bits, same_meaning
from crosslens.explanations.concepts.objects import ImageObjects, caption_objects
from crosslens.explanations.words.checks import Vocabulary
from crosslens.explanations.words.images import AnnotatedImage, ImageObject, annotated_images, crowd_flags
from crosslens.explanations.words.mentions import QueryMentions
from crosslens.language import Parse, parse_texts


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

    def contain(self, part: str, word: str, query: str | None = None) -> bool:
        """Whether a caption contains the word, a synonym or, of a noun, a hyponym of it.

        A caption that is the text ``query`` itself does not count: nothing confirms its own words.
        """
        own = set() if query is None else {plain_text(query)}
        texts = self.words.get((part, word))
        if texts is not None and texts - own:
            return True
        return any(
            other == part and texts - own and same_meaning(part, word, lemma)
            for (other, lemma), texts in self.words.items()
        )


def caption_words(dataset: Dataset, images: Iterable[str], progress: Progress | None = None) -> dict[str, CaptionWords]:
    """Per image, the words of its captions (of the corpus, if there is one); parses are kept between runs."""
    by_image = {image: CaptionWords() for image in images}
    captions = dataset.described.captions.filter(pl.col("image").is_in(list(by_image)))
    parses = parse_texts(captions["text"].to_list(), progress=progress)
    for text, image, parse in zip(captions["text"], captions["image"], parses, strict=True):
        for key in _content_words(parse):
            by_image[image].words.setdefault(key, set()).add(plain_text(text))
    return by_image


def _content_words(parse: Parse) -> set[tuple[str, str]]:
    """The content words; participles are both verbs and adjectives: *seated*, *parked*."""
    words = set()
    for lemma, pos, tag in zip(parse.lemmas, parse.pos, parse.tags, strict=True):
        if (part := _PART.get(pos)) is not None:
            words.add((part, lemma))
            if tag in ("VBN", "VBG"):
                words.add(("a", lemma))
    return words


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

    def has_or_mentions(self, image: str, noun: str) -> bool:
        """Whether the annotation of an image may have it, or a caption mentions it."""
        return self.has(image, noun) or self.words[image].contain("n", noun)


def limitations(
    dataset: Dataset, objects: ImageObjects, failures: pl.DataFrame, queries: Sequence[QueryMentions]
) -> tuple[str, ...]:
    """Sentences about what is not annotated, and what decides instead."""
    corpus = () if dataset.corpus is None else (_CORPUS,)
    if objects.source == "captions":
        return (
            *corpus,
            "No objects are annotated: concepts are those that captions mention. There are no boxes, so that size and "
            "position are not judged, and a thing that no caption mentions counts as missing.",
            _judged_share(failures),
        )
    notes = [*corpus, _vocabulary_share(objects, queries)]
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
    return (*notes, _judged_share(failures))


def _vocabulary_share(objects: ImageObjects, queries: Sequence[QueryMentions]) -> str:
    """How many of the objects that queries name can be annotated at all."""
    nouns = Counter(mention.noun for query in queries for mention in query.of("object"))
    items = [ImageObject("", synset) for synset in objects.synsets]
    known = sum(count for noun, count in nouns.items() if any(item.is_a(noun) or item.may_be_a(noun) for item in items))
    share = f"{100 * known / max(1, nouns.total()):.0f}%"
    return (
        f"The annotation knows {len(objects.synsets):,} concepts, and {share} of the things that failed queries name; "
        "the others are judged as details, by captions."
    )


def _judged_share(failures: pl.DataFrame) -> str:
    mentions, unjudged = int(failures["mentions"].sum()), int(failures["unjudged"].sum())
    if not mentions:
        return "The queries mention nothing that could be judged."
    return (
        f"Of {mentions:,} mentions in failed queries {unjudged:,} ({100 * unjudged / mentions:.0f}%) could not be "
        "judged. Where nothing is violated, a failure is a near miss if at least as much is there as is open, else "
        "unclear."
    )
