"""The pages and the JSON of live search."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, File, Query, UploadFile
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.core import CrosslensError, Dataset, InputError, UnknownNameError
from crosslens.encode import IMAGES, TEXTS
from crosslens.explanations import HitComparison, compare_hits
from crosslens.language import STOP_WORDS
from crosslens.web.background import DONE, FAILED, JobProgress, carry_out
from crosslens.web.pages import address, render
from crosslens.web.search.encoders import (
    MOST_BYTES,
    EncoderChoice,
    EncoderWorker,
    Hit,
    SearchGallery,
    WordEffect,
    check_upload,
    encoder_choices,
    word_effects,
    words_of,
)
from crosslens.web.security import Services, csrf_token

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


class SearchService:
    """Questions become searches here; the client names datasets and encoders by ids only."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.worker = EncoderWorker(services.settings.cache)
        self._preparing: dict[tuple[str, str, str], JobProgress] = {}
        self._lock = Lock()

    def encoders(self) -> list[EncoderChoice]:
        return encoder_choices(self.services.library, self.services.settings.models)

    def encoder(self, name: str) -> EncoderChoice:
        known = {choice.id: choice for choice in self.encoders()}
        if name not in known:
            raise UnknownNameError("encoder", name, known)
        return known[name]

    def question(self, dataset: str, encoder: str, among: str, depth: int) -> Question:
        """A question without its sentence or picture."""
        data = self.services.library.dataset(dataset)
        choice = self.encoder(encoder)
        return Question(data, choice, among, depth, folders=self._folders(dataset, choice))

    def prepare(self, dataset: str, encoder: str, among: str) -> JobProgress:
        """Load the encoder and the vectors of the dataset in the background; how far that is.

        A failure is reported once, and tried again when asked for the next time.
        """
        question = self.question(dataset, encoder, among, 1)
        side = SIDES[among]
        if self.worker.has(question.encoder, question.dataset, side):
            return JobProgress(DONE)
        key = (dataset, encoder, among)
        with self._lock:
            known = self._preparing.get(key)
            if known is not None and known.state != DONE:
                if known.state == FAILED:
                    del self._preparing[key]
                return known
            progress = JobProgress(is_stopped=self.worker.stopped.is_set)
            self.worker.submit(
                lambda: carry_out(
                    progress,
                    lambda: self.worker.gallery(question.encoder, question.dataset, side, question.folders, progress),
                )
            )
            self._preparing[key] = progress
            return progress

    def _folders(self, dataset: str, choice: EncoderChoice) -> tuple[Path, ...]:
        own = [] if choice.image_folder is None else [choice.image_folder]
        try:
            known = self.services.library.image_folders(dataset)
        except CrosslensError:
            known = []
        return tuple(dict.fromkeys([*self.services.settings.image_folders, *own, *known]))


Among = Literal["images", "captions"]
_DEPTH = 12


class Choice(BaseModel):
    """A dataset or an encoder that can be chosen."""

    id: str
    name: str


class Choices(BaseModel):
    """What can be searched, and with what."""

    datasets: list[Choice]
    encoders: list[Choice]


class Preparation(BaseModel):
    """Whether the vectors of the dataset are in memory.

    ``state`` is ``done``, ``waiting``, ``running`` (with stage, done and total; total 0: unknown) or ``failed``.
    """

    state: str
    stage: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    problem: str = ""
    fix: str = ""


class TextQuestion(BaseModel):
    """A sentence to search with."""

    dataset: str
    encoder: str
    text: str = Field(max_length=LONGEST_TEXT)
    among: Among = "images"
    depth: int = Field(_DEPTH, ge=1, le=MOST_HITS)


class HitAnswer(BaseModel):
    """An item of the list, with the addresses of the picture and of the page of its image."""

    rank: int
    id: str
    kind: str
    score: float
    text: str | None
    image: str
    picture: str
    page: str


class WordAnswer(BaseModel):
    """What a word adds to the score of the first hit, and to its lead over the second."""

    word: str
    start: int
    end: int
    effect: float
    lead: float | None


class SearchAnswer(BaseModel):
    """The hits, what was searched, how long each step took, and the effect of every word."""

    hits: list[HitAnswer]
    gallery: int
    encoder: str
    milliseconds: dict[str, float]
    words: list[WordAnswer]
    shared_words: list[list[str]]


class MentionAnswer(BaseModel):
    """Something that the sentence mentions, and whether each of the two images has it, with the reason."""

    text: str
    kind: str
    verdicts: list[str]
    reasons: list[str]


class WhyAnswer(BaseModel):
    """How the first two images compare: what the sentence mentions, and their objects."""

    images: list[str]
    source: str
    sentences: list[str]
    mentions: list[MentionAnswer]
    common: list[str]
    only_first: list[str]
    only_second: list[str]
    notes: list[str]


def preparation(progress: JobProgress) -> Preparation:
    """The JSON of a progress."""
    return Preparation(
        state=progress.state, stage=progress.stage, done=progress.done, total=progress.total,
        seconds=round(progress.seconds, 1), problem=progress.problem, fix=progress.fix,
    )  # fmt: skip


def search_answer(result: SearchResult, among: str, encoder: str, dataset: str) -> SearchAnswer:
    """The JSON of a result in a dataset, which is known by its id."""
    return SearchAnswer(
        hits=[_hit(item, among, dataset) for item in result.items],
        gallery=result.gallery,
        encoder=encoder,
        milliseconds={name: round(value, 2) for name, value in result.milliseconds.items()},
        words=[WordAnswer(**word._asdict()) for word in result.words],
        shared_words=[list(words) for words in result.shared_words],
    )


def _hit(item: FoundItem, among: str, dataset: str) -> HitAnswer:
    own = quote(dataset, safe="")
    return HitAnswer(
        rank=item.hit.rank, id=item.id, kind=among.removesuffix("s"), score=item.hit.score, text=item.text,
        image=item.image, picture=f"/pictures/{own}/{quote(item.image)}?size=320",
        page=address(f"/datasets/{own}/image", {"id": item.image}),
    )  # fmt: skip


def why_answer(comparison: HitComparison) -> WhyAnswer:
    """The JSON of a comparison of the first images."""
    mentions = [
        MentionAnswer(
            text=checks[0].word.text, kind=checks[0].word.kind, verdicts=[check.verdict for check in checks],
            reasons=[check.why for check in checks],
        )
        for checks in comparison.checks
    ]  # fmt: skip
    return WhyAnswer(
        images=list(comparison.images), source=comparison.source, sentences=comparison.sentences, mentions=mentions,
        common=list(comparison.common), only_first=list(comparison.only_first),
        only_second=list(comparison.only_second), notes=list(comparison.notes),
    )  # fmt: skip


_FORM_BYTES = 65_536
"""What a multipart body has besides the picture."""
Depth = Annotated[int, Query(ge=1, le=MOST_HITS)]


def routers(services: Services) -> list[APIRouter]:
    """All addresses of live search."""
    services.navigation.append(("/search", "Search"))
    services.body_limits["/api/search/picture"] = MOST_BYTES + _FORM_BYTES
    service = SearchService(services)

    @asynccontextmanager
    async def stopping(_: Any) -> AsyncIterator[None]:
        yield
        service.worker.stop()

    routes = APIRouter(lifespan=stopping)
    _add_choices(routes, service)
    _add_searches(routes, service)
    return [routes]


def _add_choices(routes: APIRouter, service: SearchService) -> None:
    def choices() -> Choices:
        datasets = [Choice(id=data.id, name=data.name) for data in service.services.library.datasets()]
        return Choices(datasets=datasets, encoders=[Choice(id=own.id, name=own.name) for own in service.encoders()])

    @routes.get("/search", response_class=HTMLResponse, include_in_schema=False)
    def search_page(request: Request, dataset: str = "", text: str = "") -> HTMLResponse:
        return render(
            request, "search/search.html", choices=choices(), token=csrf_token(request), dataset=dataset, text=text,
            longest=LONGEST_TEXT, most_bytes=MOST_BYTES,
        )  # fmt: skip

    @routes.get("/api/search", tags=["search"])
    def search_choices() -> Choices:
        """The datasets that can be searched, and the encoders that can be used."""
        return choices()

    @routes.post("/api/search/prepare", tags=["search"])
    def prepare(dataset: str, encoder: str, among: Among = "images") -> Preparation:
        """Load the encoder and the vectors of the dataset in the background; how far that is."""
        return preparation(service.prepare(dataset, encoder, among))


def _add_searches(routes: APIRouter, service: SearchService) -> None:
    def answer(question: Question, dataset: str) -> SearchAnswer:
        return search_answer(search(question, service.worker), question.among, question.encoder.name, dataset)

    @routes.post("/api/search/text", tags=["search"])
    def search_text(asked: TextQuestion) -> SearchAnswer:
        """The items nearest to a sentence, and what each of its words contributes."""
        question = service.question(asked.dataset, asked.encoder, asked.among, asked.depth)
        return answer(replace(question, text=check_text(asked.text)), asked.dataset)

    @routes.post("/api/search/picture", tags=["search"])
    def search_picture(
        picture: Annotated[UploadFile, File()], dataset: str, encoder: str, among: Among = "images", depth: Depth = 12
    ) -> SearchAnswer:
        """The items nearest to a picture, which is kept in memory only while it is encoded."""
        question = service.question(dataset, encoder, among, depth)
        content = picture.file.read(MOST_BYTES + 1)
        return answer(replace(question, picture=check_upload(content)), dataset)

    @routes.get("/api/search/why", tags=["search"])
    def why(
        dataset: str,
        image: Annotated[list[str], Query(min_length=1, max_length=2)],
        text: Annotated[str | None, Query(max_length=LONGEST_TEXT)] = None,
    ) -> WhyAnswer:
        """What a sentence mentions, checked against the first two images of its search, and their objects."""
        data = service.services.library.dataset(dataset)
        for name in image:
            if name not in data.image_rows:
                raise InputError(f"no image {name!r} in {data.name}", fix="check the id", code="unknown-id")
        return why_answer(compare_hits(data, None if text is None else check_text(text), image))
