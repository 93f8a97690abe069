"""What the captions of each image mention, where nobody annotated its objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from crosslens.core.dataset import Dataset
from crosslens.core.progress import Progress
from crosslens.explain.concepts.naming import synset_of_name
from crosslens.language.parsing import parse_texts
from crosslens.language.scene_graph import SceneGraph, scene_graph
from crosslens.language.scene_words import NUMBERS, is_number


@dataclass(frozen=True)
class Thing:
    """Something that a caption mentions."""

    name: str
    synset: str | None
    attributes: tuple[str, ...]


@dataclass
class _Mentioned:
    name: str
    count: int = 1
    attributes: dict[str, None] = field(default_factory=dict)


def things_of(dataset: Dataset, progress: Progress | None = None) -> list[list[Thing]]:
    """Per image, the things that its captions mention, each as often as the largest number that a caption states."""
    graphs: list[list[SceneGraph]] = [[] for _ in dataset.image_ids]
    parses = parse_texts(dataset.texts, progress=progress)
    for image, parse in zip(dataset.caption_image, parses, strict=True):
        graphs[int(image)].append(scene_graph(parse))
    return [_things(some) for some in graphs]


def _things(graphs: Iterable[SceneGraph]) -> list[Thing]:
    """Several captions speak of the same things: a bike here and a bicycle there are one, of one synset."""
    found: dict[str, _Mentioned] = {}
    for graph in graphs:
        for name in graph.objects:
            found.setdefault(_key(name), _Mentioned(name))
        for name, word in graph.attributes:
            if (mentioned := found.get(_key(name))) is None:
                continue
            if is_number(word):
                mentioned.count = max(mentioned.count, NUMBERS.index(word) if word in NUMBERS else 1)
            else:
                mentioned.attributes[word] = None
    return [
        Thing(one.name, synset_of_name(one.name), tuple(one.attributes))
        for one in found.values()
        for _ in range(one.count)
    ]


def _key(name: str) -> str:
    return synset_of_name(name) or name
