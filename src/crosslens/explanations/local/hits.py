"""Why a sentence that belongs to no image retrieved what it did: what it mentions, checked against the first images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosslens.core import Dataset, MissingExtraError
from crosslens.explanations.concepts.objects import image_objects, objects_of
from crosslens.explanations.local.sentences import listed
from crosslens.explanations.words.checks import SATISFIED, VIOLATED, MentionCheck, Vocabulary, check_mentions
from crosslens.explanations.words.images import annotated_image, crowd_flags
from crosslens.explanations.words.mentions import mentioned_concepts


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

    def satisfied(self, image: int) -> list[str]:
        """What of the sentence an image has, as written."""
        return [own[image].word.text for own in self.checks if own[image].verdict == SATISFIED]

    def violated(self, image: int) -> list[str]:
        """What of the sentence an image does not have, as written; nothing is said of objects that are not there."""
        present = {own[image].word.noun for own in self.checks if own[image].verdict == SATISFIED}
        return [
            own[image].word.text
            for own in self.checks
            if own[image].verdict == VIOLATED and (own[image].word.kind == "object" or own[image].word.noun in present)
        ]

    @property
    def sentences(self) -> list[str]:
        """What was found, in words."""
        names = ("first", "second")[: len(self.images)]
        stated = []
        for number, name in enumerate(names):
            has, lacks = (list(dict.fromkeys(words)) for words in (self.satisfied(number), self.violated(number)))
            if has or lacks:
                parts = [f"has {listed(has)}"] if has else []
                parts += [f"lacks {listed(lacks)}"] if lacks else []
                stated.append(f"Of what the sentence mentions, the {name} image {' and '.join(parts)}.")
        return stated


def compare_hits(dataset: Dataset, text: str | None, images: Sequence[str]) -> HitComparison:
    """The first images of a search, compared by their objects; with ``text``, by what the sentence mentions, too.

    Where nothing is annotated, an image has what its captions mention; only those of these images are read.
    """
    images = tuple(images[:2])
    annotated = dataset.objects is not None and dataset.objects.height > 0
    try:
        objects = image_objects(dataset) if annotated else objects_of(dataset.select(images))
        mentions = None if text is None else mentioned_concepts([text])[0]
    except MissingExtraError as error:
        return HitComparison(images, notes=(f"The words were not parsed: {error.problem}; {error.fix}.",))
    crowds = crowd_flags(dataset, objects) if annotated else None
    shown = [annotated_image(dataset, objects, image, crowds) for image in images]
    vocabulary = Vocabulary.of(objects)
    columns = [] if mentions is None else [check_mentions(mentions, image, vocabulary) for image in shown]
    names = [dict.fromkeys(item.name for item in image.objects) for image in shown]
    first, second = names[0], names[1] if len(names) > 1 else {}
    return HitComparison(
        images,
        objects.source,
        tuple(zip(*columns, strict=True)),
        tuple(name for name in first if name in second),
        tuple(name for name in first if name not in second) if len(names) > 1 else (),
        tuple(name for name in second if name not in first),
    )
