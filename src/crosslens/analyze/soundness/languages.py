"""Captions that are not in English."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from crosslens.analyze.soundness.firsts import share_of
from crosslens.analyze.subject import Planted, Subject
from crosslens.core import Figure, MissingExtraError, Observation, finding_kind
from crosslens.language import COMMON_LANGUAGES, language_identifier

_ENGLISH = "en"
_MARGIN = 15.0
"""How much likelier another language must be than English (difference of log-likelihoods). Of captions of Flickr8k and
COCO none is by so much, with eight letters swapped in each 0.6 %."""
_BY_MISTAKE = 0.004
"""The share of English captions that is taken for one certain other language at most: with eight letters swapped."""
_NAMES = """ar:Arabic bg:Bulgarian bn:Bengali ca:Catalan cs:Czech da:Danish de:German el:Greek es:Spanish et:Estonian
fa:Persian fi:Finnish fr:French he:Hebrew hi:Hindi hr:Croatian hu:Hungarian id:Indonesian it:Italian ja:Japanese
ko:Korean lt:Lithuanian lv:Latvian ms:Malay nl:Dutch no:Norwegian pl:Polish pt:Portuguese ro:Romanian ru:Russian
sk:Slovak sl:Slovenian sr:Serbian sv:Swedish ta:Tamil th:Thai tl:Tagalog tr:Turkish uk:Ukrainian ur:Urdu
vi:Vietnamese zh:Chinese"""
_LANGUAGES = dict(pair.split(":") for pair in _NAMES.split())
_GERMAN = (
    "Ein Hund läuft über eine grüne Wiese.",
    "Zwei Kinder spielen am Strand mit einem Ball.",
    "Eine Frau mit rotem Hut sitzt auf einer Bank im Park.",
    "Ein Mann fährt mit dem Fahrrad durch die Stadt.",
    "Mehrere Leute stehen vor einem alten Haus.",
    "Auf dem Tisch liegen drei Bücher neben einer blauen Tasse.",
    "Ein kleiner Junge springt in das Wasser.",
    "Neben dem Auto wartet ein schwarzes Pferd.",
)


@finding_kind(
    "language",
    "{share} of the captions are in {language}, not in English.",
    stage="soundness", strengths=(0.02, 0.05, 0.2), strength_words="{:.0%} of the captions in German",
    unsound=True, explains=("group",), causes=("blank-vectors", "same-caption", "hub"),
)  # fmt: skip
def plant_language(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
    """German sentences for some of the captions, encoded where the model is there."""
    dataset = subject.dataset
    texts = list(dataset.texts)
    rows = np.sort(stream.choice(len(texts), max(1, round(strength * len(texts))), replace=False))
    for number, row in enumerate(rows):
        texts[row] = f"{_GERMAN[number % len(_GERMAN)][:-1]}, Bild {number + 1}."
    changed = replace(subject, dataset=replace(dataset, captions=dataset.captions.with_columns(text=pl.Series(texts))))
    if subject.encode is not None and subject.captions is not None and subject.images is not None:
        vectors = np.array(subject.captions.vectors)
        vectors[rows] = subject.encode([texts[row] for row in rows])
        changed = changed.with_vectors(captions=vectors)
    return Planted.at(changed, captions=rows)


def languages(subject: Subject) -> Iterator[Observation]:
    """The language that most captions are in beside English, where more are than by mistake."""
    try:
        identifier = language_identifier(frozenset(COMMON_LANGUAGES | {_ENGLISH}))
    except MissingExtraError:
        return
    from scipy.stats import binom

    codes: dict[str, str] = {}
    for text in dict.fromkeys(subject.dataset.texts):
        scores = dict(identifier.rank(text.lower()))
        best = max(scores, key=lambda code: scores[code])
        if best != _ENGLISH and scores[best] - scores[_ENGLISH] >= _MARGIN:
            codes[text] = str(best)
    spoken = [codes.get(text, "") for text in subject.dataset.texts]
    if not spoken:
        return
    code, _ = next(iter(Counter(filter(None, spoken)).most_common(1)), ("", 0))
    foreign = np.array([bool(code) and language == code for language in spoken])
    # The captions of an image may be by one author: an image counts by the share of its captions.
    captions = np.bincount(subject.owner)
    shares = np.bincount(subject.owner, foreign) / np.maximum(captions, 1)
    images = np.count_nonzero(captions)
    p = float(binom.sf(int(shares.sum()) - 1, images, _BY_MISTAKE)) if code else 1.0
    effect = share_of(foreign, subject.owner, "share of captions")
    words = {"share": Figure.share(*effect[:3]), "language": _LANGUAGES.get(code, code) or "another language"}
    rows = np.flatnonzero(foreign) if p < 0.05 else ()
    evidence = [{"query": subject.dataset.caption_ids[row]} for row in rows]
    yield Observation("language", words, effect, effect.value, p, evidence=evidence)
