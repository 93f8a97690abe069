"""A live search from its query to its answer: hits, latency, and why the first hit won."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosslens.core import Dataset, InputError
from crosslens.encode import IMAGES, TEXTS
from crosslens.language import STOP_WORDS
from crosslens.web.search.encoders import EncoderChoice, EncoderWorker
from crosslens.web.search.ranking import Hit, SearchGallery, WordEffect, word_effects, words_of

SIDES = {"images": IMAGES, "captions": TEXTS}
MOST_HITS = 50
LONGEST_TEXT = 1_000


@dataclass(frozen=True)
class Question:
    """A sentence or a picture, what it is searched among, and how many hits are wanted.

    ``picture`` is the content of its file, decoded when the encoder is free: pictures that wait are small.
    """

    dataset: Dataset
    encoder: EncoderChoice
    among: str
    depth: int
    text: str | None = None
    picture: bytes = b""
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True)
class FoundItem:
    """A hit: the item, its image, and the text of a caption."""

    hit: Hit
    id: str
    image: str
    text: str | None


@dataclass(frozen=True)
class SearchResult:
    """The hits in order, milliseconds by step, the effect of each word, the words that the first captions share."""

    items: tuple[FoundItem, ...]
    gallery: int
    milliseconds: dict[str, float]
    words: tuple[WordEffect, ...] = ()
    shared_words: tuple[tuple[str, ...], ...] = ()


def check_text(text: str) -> str:
    """The sentence without outer spaces; an empty or a very long one raises."""
    stripped = " ".join(text.split())
    if not stripped:
        raise InputError("the sentence is empty", fix="write what to search for")
    if len(stripped) > LONGEST_TEXT:
        problem = f"the sentence has {len(stripped):,} characters"
        raise InputError(problem, expected=f"at most {LONGEST_TEXT:,}", fix="write a shorter one")
    return stripped


def search(question: Question, worker: EncoderWorker) -> SearchResult:
    """Search in the encoder's thread, which other searches may have to be waited for."""
    started = time.perf_counter()
    hits, gallery, dataset, times, words = worker.call(lambda: _rank(question, worker))
    items = tuple(found_items(hits, gallery, dataset, question.among))
    times["total"] = 1000 * (time.perf_counter() - started)
    shared = shared_words(question.text, items) if question.among == "captions" else ()
    return SearchResult(items, len(gallery.embeddings.ids), times, tuple(words), shared)


def _rank(
    question: Question, worker: EncoderWorker
) -> tuple[list[Hit], SearchGallery, Dataset, dict[str, float], list[WordEffect]]:
    side = SIDES[question.among]
    dataset, gallery = worker.gallery(question.encoder, question.dataset, side, question.folders, None)
    loaded = worker.loaded(question.encoder)
    started = time.perf_counter()
    text = question.text
    query = loaded.embed_picture(question.picture) if text is None else loaded.embed_texts([text])
    encoded = time.perf_counter()
    hits = gallery.search(query, max(2, question.depth))
    ranked = time.perf_counter()
    effects = [] if text is None else word_effects(text, hits, gallery, loaded.embed_texts)
    ended = time.perf_counter()
    names, ticks = ("encode", "rank", "words"), (started, encoded, ranked, ended)
    times = {name: 1000 * (ticks[i + 1] - ticks[i]) for i, name in enumerate(names)}
    return hits[: question.depth], gallery, dataset, times, effects


def found_items(hits: Sequence[Hit], gallery: SearchGallery, dataset: Dataset, among: str) -> list[FoundItem]:
    """The hits with what the dataset says of them."""
    ids = gallery.embeddings.ids
    if among == "images":
        return [FoundItem(hit, ids[hit.row], ids[hit.row], None) for hit in hits]
    return [
        FoundItem(hit, ids[hit.row], dataset.image_ids[dataset.caption_image[hit.row]], dataset.texts[hit.row])
        for hit in hits
    ]


def shared_words(text: str | None, items: Sequence[FoundItem]) -> tuple[tuple[str, ...], ...]:
    """For each of the first two captions, the words that it shares with the sentence."""
    if text is None:
        return ()
    asked = dict.fromkeys(word[0].lower() for word in words_of(text) if word[0].lower() not in STOP_WORDS)
    captions = [{word[0].lower() for word in words_of(item.text or "")} for item in items[:2]]
    return tuple(tuple(word for word in asked if word in caption) for caption in captions)
