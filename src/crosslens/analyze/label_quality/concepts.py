"""The keyword filter: which objects that a caption names are named by nothing else about its image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from crosslens.engine import Progress
from crosslens.explanations import (
    GENERIC_NOUNS,
    PERSON,
    hypernyms_of,
    is_tangible,
    meaning,
    plain_text,
    same_meaning,
    senses,
)
from crosslens.language import load_wordnet, parse_texts, restore_verbs, scene_graph
from crosslens.values import Dataset

_GROUPS = frozenset("audience band class couple crowd family group people player team trio".split())  # noqa: SIM905
_COLOURS = frozenset("black blue brown green grey gray orange pink purple red tan white".split())  # noqa: SIM905
_IGNORED = (GENERIC_NOUNS - _GROUPS) | _COLOURS
"""Nouns that say nothing for or against a caption; a *white* is a person to WordNet."""
_AGENT_SUFFIXES = ("er", "or", "ist", "male")
_PERSONAL_PRONOUNS = frozenset("he she they him them someone somebody everyone".split())  # noqa: SIM905


@dataclass(frozen=True)
class ConceptAgreement:
    """The objects that a caption names, compared with what else is said about its image.

    ``concepts``   the objects that it names (lemmas); ``missing`` those that no other text and no annotation names
    ``agreed``     the objects that most of the image's other texts name, two at least; ``silent`` those of them
                   that this caption does not name
    ``compared``   False where nothing else names an object: no other texts, no annotated objects
    """

    concepts: tuple[str, ...]
    missing: tuple[str, ...]
    agreed: tuple[str, ...]
    silent: tuple[str, ...]
    compared: bool

    @property
    def share(self) -> float | None:
        """The share of the concepts that occur elsewhere; None where there is nothing to compare."""
        return 1 - len(self.missing) / len(self.concepts) if self.compared and self.concepts else None


class CaptionNouns(NamedTuple):
    """The nouns of one caption: ``visible`` objects, and all ``nouns``, also inside names.

    Nouns that are not visible can support a caption but not contradict it: a *game* or a *sign* (a word, first) that
    others mention too is a concept; one that no other caption mentions is none.
    """

    visible: tuple[str, ...]
    nouns: tuple[str, ...]


@dataclass(frozen=True)
class DatasetConcepts:
    """The nouns of every text of a dataset, and the annotated objects of every image.

    ``described`` holds of each image the texts that say what is in it: all its captions, or those of the corpus.
    """

    dataset: Dataset
    nouns: Mapping[str, CaptionNouns]
    objects: Mapping[str, set[str]]
    described: Mapping[int, Sequence[str]]

    def agreement(self, caption: int) -> ConceptAgreement:
        """A caption against the texts and objects of its image; its own words do not count."""
        text, image = self.dataset.texts[caption], int(self.dataset.caption_image[caption])
        other_texts = [other for other in self.described.get(image, ()) if plain_text(other) != plain_text(text)]
        objects = self.objects.get(self.dataset.image_ids[image], ())
        return compare_concepts(self.nouns[text], [self.nouns[other] for other in other_texts], objects)


def extract_concepts(dataset: Dataset, progress: Progress | None = None) -> DatasetConcepts:
    """Parse the texts (each distinct one once; parses are cached).

    The nouns of a text are the objects of its scene graph, nouns inside compounds, and the people it means. The parser
    reads *a dog watches* as a name of two words, and *a skateboarder rides* as an adjective and a noun: no object may
    be lost that way. *They* and *someone* are people.
    """
    texts = label_texts(dataset)
    distinct = list(dict.fromkeys((*dataset.texts, *texts.texts)))
    nouns_of = {}
    for text, parse in zip(distinct, map(restore_verbs, parse_texts(distinct, progress=progress)), strict=True):
        names = [name for name in scene_graph(parse).objects if name not in _IGNORED]
        inside = {word for name in names for word in name.split()}
        tagged = (lemma for lemma, pos in zip(parse.lemmas, parse.pos, strict=True) if _may_be_noun(lemma, pos))
        loose = [noun for noun in dict.fromkeys(tagged) if noun not in _IGNORED]
        candidates = (*names, *(noun for noun in loose if noun not in inside))
        visible = [noun for noun in candidates if is_tangible(noun) or _is_person(noun)]
        if any(word.lower() in _PERSONAL_PRONOUNS for word in parse.words) and not any(map(_is_person, visible)):
            visible.append("person")
        nouns_of[text] = CaptionNouns(tuple(dict.fromkeys(visible)), tuple(dict.fromkeys((*visible, *names, *loose))))
    described = defaultdict(list)
    for text, image in zip(texts.texts, texts.caption_image.tolist(), strict=True):
        described[image].append(text)
    objects = defaultdict(set)
    if dataset.objects is not None:
        for image_id, name in dataset.objects.select("image", "name").drop_nulls().iter_rows():
            objects[image_id].add(name.replace("_", " ").lower())
    return DatasetConcepts(dataset, nouns_of, objects, described)


def label_texts(dataset: Dataset) -> Dataset:
    """The texts by which labels are judged: those of the corpus, where the labels are queries of another text set.

    Over one text set every caption is a label, those of the corpus too: it is judged by all others.
    """
    corpus = dataset.corpus
    if corpus is None or not corpus.join(dataset.captions, on=["image", "text"], how="anti").height:
        return dataset
    return dataset.described


def compare_concepts(
    caption: CaptionNouns, others: Sequence[CaptionNouns], objects: Iterable[str] = ()
) -> ConceptAgreement:
    """One caption's nouns against those of each other caption, and against annotated objects.

    An object matches by its lemma, a synonym, its hypernym or a hyponym. People match people: that one annotator
    writes *boy* and another *man* is no contradiction.
    """
    elsewhere = sorted({noun for other in others for noun in other.nouns} | set(objects))
    confirmed = [noun for noun in caption.nouns if noun not in caption.visible and noun in elsewhere]
    visible = sorted({noun for other in others for noun in other.visible})
    counts = {noun: sum(_among(noun, other.nouns) for other in others) for noun in visible}
    agreed = [noun for noun in visible if counts[noun] >= 2 and 2 * counts[noun] > len(others)]
    return ConceptAgreement(
        (*caption.visible, *confirmed),
        tuple(noun for noun in caption.visible if not _among(noun, elsewhere)),
        tuple(agreed),
        tuple(noun for noun in agreed if not _among(noun, caption.nouns)),
        bool(elsewhere),
    )


def _among(noun: str, others: Iterable[str]) -> bool:
    return any(same_object(noun, other) for other in others)


@lru_cache(maxsize=1 << 18)
def same_object(noun: str, other: str) -> bool:
    """Whether two nouns may name the same object."""
    if same_meaning("n", noun, other) or (_is_person(noun) and _is_person(other)):
        return True
    return _rare_kind(noun, other) or _rare_kind(other, noun)


def _rare_kind(noun: str, other: str) -> bool:
    """Whether any sense is a hyponym of the other noun: setters are dogs too. Not of people: every animal is a name."""
    usual = meaning(other)
    if usual is None or PERSON in hypernyms_of(usual):
        return False
    return any(usual in hypernyms_of(sense) for sense in senses(noun.split()[-1]))


@lru_cache(maxsize=1 << 14)
def _is_person(noun: str) -> bool:
    """Whether a noun may name people: first sense, a group of them, or an agent, such as *climber* (a plant, first)."""
    last = noun.split()[-1]
    usual = meaning(noun)
    if last in _GROUPS or (usual is not None and PERSON in hypernyms_of(usual)):
        return True
    synsets = senses(last)
    return last.endswith(_AGENT_SUFFIXES) and (not synsets or any(PERSON in hypernyms_of(sense) for sense in synsets))


@lru_cache(maxsize=1 << 16)
def _may_be_noun(lemma: str, pos: str) -> bool:
    if pos in ("ADJ", "INTJ"):
        return bool(load_wordnet().synsets(lemma, "n").size) and not load_wordnet().synsets(lemma, "a").size
    return pos in ("NOUN", "PROPN")
