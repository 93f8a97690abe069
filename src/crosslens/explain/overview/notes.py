"""What the facts behind an overview cannot see, in plain words: no number should be read without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.explain.concepts.attributes import FAMILIES, attribute_bits
from crosslens.explain.concepts.objects import ImageObjects
from crosslens.explain.words.query_words import QueryWords


def blind_spots(
    dataset: Dataset, objects: ImageObjects, failures: pl.DataFrame, words: Sequence[QueryWords]
) -> tuple[str, ...]:
    """Sentences about what was not annotated, and who was asked instead."""
    if objects.source == "captions":
        return (
            "No objects are annotated: concepts are those that captions mention. There are no boxes, so that size and "
            "position are not judged, and a thing that no caption mentions counts as missing.",
            *_ends(failures),
        )
    notes = [_vocabulary(objects, words)]
    bits = attribute_bits(objects.attributes)
    missing = [family for place, family in enumerate(FAMILIES) if not bits[:, place].any()]
    if missing:
        notes.append(
            f"No {' or '.join(missing)} is annotated: what the captions of the retrieved image say of the thing "
            "decides where they say it, otherwise it is left open."
        )
    if not np.isfinite(objects.boxes).any():
        notes.append("No boxes are annotated: size and position are not judged.")
    elif not np.isfinite(objects.areas).any():
        notes.append("The pictures' sizes are unknown: sizes of objects are not compared.")
    notes.append("A size word is never judged by boxes: how large a thing is and how near it stands look the same.")
    notes.append(
        "Actions and details are judged by captions alone: wrong where another caption of the right image says so and "
        "none of the retrieved image does."
    )
    return (*notes, *_ends(failures))


def _vocabulary(objects: ImageObjects, words: Sequence[QueryWords]) -> str:
    """How much of what queries name can be seen in the annotation at all."""
    names: dict[str, int] = {}
    for query in words:
        for word in query.of("object"):
            names[word.thing] = names.get(word.thing, 0) + 1
    known = {name: _annotated(name, objects) for name in names}
    seen = sum(count for name, count in names.items() if known[name])
    share = f"{100 * seen / max(1, sum(names.values())):.0f}%"
    return (
        f"The annotation knows {len(objects.synsets):,} concepts, and {share} of the things that failed queries name; "
        "the others are judged as details, by captions."
    )


def _annotated(name: str, objects: ImageObjects) -> bool:
    from crosslens.explain.words.pictures import Thing

    things = (Thing("", synset) for synset in objects.synsets)
    return any(thing.is_a(name) or thing.may_be_a(name) for thing in things)


def _ends(failures: pl.DataFrame) -> list[str]:
    mentions, unjudged = int(failures["mentions"].sum()), int(failures["unjudged"].sum())
    if not mentions:
        return ["The queries mention nothing that could be judged."]
    return [
        f"Of {mentions:,} mentions in failed queries {unjudged:,} ({100 * unjudged / mentions:.0f}%) could not be "
        "judged. Where nothing is violated, a failure is a near miss if at least as much is there as is open, else "
        "unclear."
    ]
