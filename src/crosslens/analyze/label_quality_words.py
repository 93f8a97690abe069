"""Which of the things that a caption names does nothing else about its image name: the keyword filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from crosslens.core.dataset import Dataset
from crosslens.core.progress import Progress
from crosslens.explain.words.caption_words import alike
from crosslens.explain.words.idle_words import NOTHING_TO_SEE
from crosslens.explain.words.kinship import kinds_above
from crosslens.explain.words.query_words import PERSON, is_tangible, meaning, senses
from crosslens.language.parse import Parse
from crosslens.language.parsing import parse_texts
from crosslens.language.scene_graph import scene_graph
from crosslens.language.wordnet import wordnet

_GROUPS = frozenset(
    ["audience", "band", "class", "couple", "crowd", "family", "group", "people", "player", "team", "trio"]
)
_COLOURS = frozenset(
    ["black", "blue", "brown", "green", "grey", "gray", "orange", "pink", "purple", "red", "tan", "white"]
)
_IDLE = (NOTHING_TO_SEE - _GROUPS) | _COLOURS
"""Nouns that neither confirm nor accuse; a *white* is a person to WordNet."""
_DOERS = ("er", "or", "ist", "male")
_SOMEBODY = frozenset(["he", "she", "they", "him", "them", "someone", "somebody", "everyone"])


@dataclass(frozen=True)
class Agreement:
    """What a caption names, held against what else is said about its image.

    ``concepts``   the things that it names (lemmas); ``missing`` those that no other caption and no annotation names
    ``agreed``     the things that most of the image's other captions name, two at least; ``silent`` those of them that
                   this caption does not name
    ``compared``   False where nothing else names a thing: no other captions, no annotated objects
    """

    concepts: tuple[str, ...]
    missing: tuple[str, ...]
    agreed: tuple[str, ...]
    silent: tuple[str, ...]
    compared: bool

    @property
    def share(self) -> float | None:
        """How many of the concepts occur elsewhere, from 0 to 1; None where there is nothing to compare."""
        if not self.compared or not self.concepts:
            return None
        return (len(self.concepts) - len(self.missing)) / len(self.concepts)

    @property
    def told(self) -> float | None:
        """How many of the things that the others agree on the caption names too; None where they agree on none."""
        return (len(self.agreed) - len(self.silent)) / len(self.agreed) if self.agreed else None


@dataclass(frozen=True)
class Named:
    """What one caption names: ``things`` that can be seen, and ``nouns``, all its nouns, also inside names.

    Other nouns than things can confirm a caption but not accuse it: a *game* or a *sign* (a word, first) that others
    mention too is a concept that is found; one that nobody else mentions is none.
    """

    things: tuple[str, ...]
    nouns: tuple[str, ...]


@dataclass(frozen=True)
class Concepts:
    """What every caption of a dataset names, and what is annotated in every image."""

    dataset: Dataset
    named: tuple[Named, ...]
    objects: tuple[frozenset[str], ...]
    captions: tuple[tuple[int, ...], ...]
    """Of each image, the rows of its captions."""

    def agreement(self, caption: int, image: int | None = None) -> Agreement:
        """A caption against the other captions and objects of its own image, or against those of another."""
        image = int(self.dataset.caption_image[caption]) if image is None else image
        others = [self.named[other] for other in self.captions[image] if other != caption]
        return agreement_of(self.named[caption], others, self.objects[image])


def concepts_of(dataset: Dataset, progress: Progress | None = None) -> Concepts:
    """Parse the captions (each distinct text once; parses are kept between runs)."""
    distinct = list(dict.fromkeys(dataset.texts))
    parses = parse_texts(distinct, progress=progress)
    named = {text: named_in(parse) for text, parse in zip(distinct, parses, strict=True)}
    captions: list[list[int]] = [[] for _ in dataset.image_ids]
    for row, image in enumerate(dataset.caption_image.tolist()):
        captions[image].append(row)
    every = tuple(named[text] for text in dataset.texts)
    return Concepts(dataset, every, _object_names(dataset), tuple(map(tuple, captions)))


def agreement_of(caption: Named, others: Sequence[Named], objects: Iterable[str] = ()) -> Agreement:
    """What one caption names against what each other caption names, and against annotated objects.

    A thing is found by its lemma, a synonym, the name of its kind or of a kind of it. People are people: that one
    annotator writes *boy* and another *man* is no contradiction.
    """
    witnesses = sorted({noun for other in others for noun in other.nouns} | set(objects))
    confirmed = [noun for noun in caption.nouns if noun not in caption.things and noun in witnesses]
    things = sorted({name for other in others for name in other.things})
    agreed = [name for name in things if _many(sum(_among(name, other.nouns) for other in others), len(others))]
    return Agreement(
        (*caption.things, *confirmed),
        tuple(one for one in caption.things if not _among(one, witnesses)),
        tuple(agreed),
        tuple(one for one in agreed if not _among(one, caption.nouns)),
        bool(witnesses),
    )


def _many(saying: int, captions: int) -> bool:
    return saying >= 2 and 2 * saying > captions


def _among(name: str, others: Iterable[str]) -> bool:
    return any(same_thing(name, other) for other in others)


@lru_cache(maxsize=1 << 18)
def same_thing(one: str, other: str) -> bool:
    """Whether two nouns may name the same thing."""
    if alike("n", one, other) or (_is_person(one) and _is_person(other)):
        return True
    return _rare_kind(one, other) or _rare_kind(other, one)


def _rare_kind(one: str, other: str) -> bool:
    """Whether any sense of one is a kind of the other: setters are dogs too. Of people not: every animal is a name."""
    usual = meaning(other)
    if usual is None or PERSON in kinds_above(usual):
        return False
    return any(usual in kinds_above(sense) for sense in senses(one.split()[-1]))


@lru_cache(maxsize=1 << 14)
def _is_person(name: str) -> bool:
    """Whether a noun may name people: first sense, a group of them, or a doer, such as *climber* (a plant, first)."""
    last = name.split()[-1]
    usual = meaning(name)
    if last in _GROUPS or (usual is not None and PERSON in kinds_above(usual)):
        return True
    known = senses(last)
    return last.endswith(_DOERS) and (not known or any(PERSON in kinds_above(one) for one in known))


def named_in(parse: Parse) -> Named:
    """What a caption names: the things of its scene graph, nouns lost in compounds, and the people it means.

    The parser reads *a dog watches* as a name of two words, and *a skateboarder rides* as an adjective and a noun:
    nobody may vanish that way. *They* and *someone* are people.
    """
    names = [name for name in scene_graph(parse).objects if name not in _IDLE]
    inside = {word for name in names for word in name.split()}
    tagged = (lemma for lemma, pos in zip(parse.lemmas, parse.pos, strict=True) if _may_be_noun(lemma, pos))
    loose = [noun for noun in dict.fromkeys(tagged) if noun not in _IDLE]
    things = [one for one in (*names, *(noun for noun in loose if noun not in inside)) if _is_thing(one)]
    if any(word.lower() in _SOMEBODY for word in parse.words) and not any(map(_is_person, things)):
        things.append("person")
    return Named(tuple(dict.fromkeys(things)), tuple(dict.fromkeys((*things, *names, *loose))))


def _is_thing(name: str) -> bool:
    return is_tangible(name) or _is_person(name)


@lru_cache(maxsize=1 << 16)
def _may_be_noun(lemma: str, pos: str) -> bool:
    if pos in ("ADJ", "INTJ"):
        return bool(wordnet().synsets(lemma, "n").size) and not wordnet().synsets(lemma, "a").size
    return pos in ("NOUN", "PROPN")


def _object_names(dataset: Dataset) -> tuple[frozenset[str], ...]:
    names: dict[str, set[str]] = {image: set() for image in dataset.image_ids}
    if dataset.objects is not None:
        for image, name in dataset.objects.select("image", "name").drop_nulls().iter_rows():
            names[image].add(name.replace("_", " ").lower())
    return tuple(frozenset(names[image]) for image in dataset.image_ids)
