"""The kinds of findings that probes make; each is planted by taking away what the model is not to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from crosslens.analyze.probes.edits import FACTS
from crosslens.analyze.probes.orders import swaps
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import finding_kind
from crosslens.language import Words
from crosslens.storage import Array
from crosslens.values import Embeddings

_UNREAD = (
    "The model {reads} {what}: of {n} captions that were made false in this alone, it notices {share} (chance: 50 %)"
    "{same}. {editable} of the captions state such a fact."
)
_STRENGTHS = (0.5, 0.9, 1.0)


def _with_encoder(subject: Subject, reread: Callable[[Sequence[str]], Array]) -> Subject:
    """The subject of a model that encodes texts so, its captions encoded and ranked again."""
    assert subject.captions is not None
    texts = list(subject.dataset.texts)
    changed = replace(subject, captions=Embeddings(subject.captions.ids, reread(texts)), encode=reread)
    return changed.ranked()


def _chance(text: str) -> float:
    """A number from 0 to 1 that belongs to a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64


def _unreading(
    subject: Subject, strength: float, without: Callable[[str], str], states: Callable[[str], bool]
) -> Planted:
    """A model that sees a share of texts without some fact: by what is left of them, so that edits share their fate."""
    encode = subject.encode
    if encode is None or subject.images is None or subject.captions is None:
        return Planted(subject, frozenset())

    def reread(texts: Sequence[str]) -> Array:
        bare = [without(text) for text in texts]
        visible = [reduced if _chance(reduced) < strength else text for reduced, text in zip(bare, texts, strict=True)]
        return encode([text or "a" for text in visible])

    stating = (
        caption
        for caption, text in zip(subject.dataset.caption_ids, subject.dataset.texts, strict=True)
        if states(text) and _chance(without(text)) < strength
    )
    return Planted(_with_encoder(subject, reread), frozenset(stating))


def _register(name: str, plural: str, without: Callable[[str], str], states: Callable[[str], bool]) -> None:
    def plant(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
        del stream  # which texts are concerned is decided by their words
        return _unreading(subject, strength, without, states)

    plant.__doc__ = f"A model that does not read {plural} of a share of texts."
    finding_kind(
        name, _UNREAD, stage="probes", strengths=_STRENGTHS,
        strength_words=f"{plural} of {{:.0%}} of the texts not read", causes=("group",),
    )(plant)  # fmt: skip


for _fact in FACTS:
    _register(_fact.name, _fact.plural, _fact.without, lambda text, fact=_fact: bool(fact.pattern.search(text)))  # type: ignore[misc]


def sorted_words(text: str) -> str:
    """The words of a text in alphabetical order."""
    return " ".join(sorted(re.findall(r"\w[\w'’-]*", text.lower())))


_register("order", "the order of words", sorted_words, lambda text: bool(swaps(Words(text))))


@finding_kind(
    "truncation",
    "The model reads no more than the first {words} words of a caption; "
    "{cut} of {total} captions ({share}) are longer.",
    stage="probes",
    strengths=(0.05, 0.2, 0.5),
    strength_words="{:.0%} of the captions cut off",
    causes=(*(fact.name for fact in FACTS), "order"),
)
def plant_truncation(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A model that reads so few words that a share of the captions is cut off."""
    del stream
    encode, texts = subject.encode, subject.dataset.texts
    if encode is None or subject.images is None or subject.captions is None:
        return Planted(subject, frozenset())
    counts = np.array([len(text.split()) for text in texts])
    most = max(int(np.quantile(counts, 1 - strength, method="lower")), 1)

    def reread(texts: Sequence[str]) -> Array:
        return encode([" ".join(text.split()[:most]) for text in texts])

    cut = frozenset(subject.dataset.caption_ids[row] for row in np.flatnonzero(counts > most))
    return Planted(_with_encoder(subject, reread), cut)


@finding_kind(
    "typos",
    "One typing error in a caption costs {loss} points of Hit@1 ({before} without, {after} with one; {n} captions).",
    stage="probes",
    strengths=(0.5, 1.0, 2.0),
    strength_words="vectors of texts with an unknown word moved by {:.1f} times their length",
)
def plant_typos(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """A model whose vectors move at random where a text has a word that no caption has."""
    del stream
    encode = subject.encode
    if encode is None or subject.images is None or subject.captions is None:
        return Planted(subject, frozenset())
    spelled = {word for text in subject.dataset.texts for word in Words(text).lower}

    def reread(texts: Sequence[str]) -> Array:
        vectors = np.array(encode(texts), np.float32)
        for row, text in enumerate(texts):
            if any(word not in spelled for word in Words(text).lower):
                noise = np.random.default_rng(int(_chance(text) * 2**53)).standard_normal(vectors[row].shape)
                size = np.linalg.norm(vectors[row]) / np.linalg.norm(noise)
                vectors[row] += (strength * size * noise).astype(np.float32)
        return vectors

    return Planted(_with_encoder(subject, reread), frozenset(subject.dataset.caption_ids))
