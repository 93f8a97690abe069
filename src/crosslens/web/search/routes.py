"""The pages and the JSON of live search."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, File, Query, UploadFile
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.core import CrosslensError, InputError, UnknownNameError
from crosslens.encode import IMAGES, TEXTS
from crosslens.explanations import compare_hits
from crosslens.language import STOP_WORDS
from crosslens.values import Dataset
from crosslens.web.background import DONE, FAILED, JobProgress
from crosslens.web.pages import address, feature_router, render
from crosslens.web.search.encoders import (
    MOST_BYTES,
    EncoderChoice,
    EncoderWorker,
    Hit,
    WordAnswer,
    check_upload,
    encoder_choices,
    word_effects,
    words_of,
)
from crosslens.web.security import Services, csrf_token

MODALITIES = {"images": IMAGES, "captions": TEXTS}
MOST_HITS = 50
LONGEST_TEXT = 1_000
_DEPTH = 12
Among = Literal["images", "captions"]


class Choice(BaseModel):
    """A dataset or an encoder that can be chosen."""

    id: str
    name: str


class Choices(BaseModel):
    """What can be searched, and with what."""

    datasets: list[Choice]
    encoders: list[Choice]


@dataclass(frozen=True)
class Preparation:
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


@dataclass(frozen=True)
class HitAnswer:
    """An item of the list, with the addresses of the picture and of the page of its image."""

    rank: int
    id: str
    kind: str
    score: float
    text: str | None
    image: str
    picture: str
    page: str


@dataclass(frozen=True)
class SearchAnswer:
    """The hits, what was searched, how long each step took, and the effect of every word.

    ``shared_words`` are, of each of the first two captions, the words that it shares with the sentence.
    """

    hits: list[HitAnswer]
    gallery: int
    encoder: str
    milliseconds: dict[str, float]
    words: list[WordAnswer]
    shared_words: list[list[str]]


def check_text(text: str) -> str:
    """The sentence without outer spaces; an empty or a very long one raises."""
    stripped = " ".join(text.split())
    if not stripped:
        raise InputError("the sentence is empty", fix="write what to search for")
    if len(stripped) > LONGEST_TEXT:
        problem = f"the sentence has {len(stripped):,} characters"
        raise InputError(problem, expected=f"at most {LONGEST_TEXT:,}", fix="write a shorter one")
    return stripped


def shared_words(text: str, captions: Sequence[str]) -> list[list[str]]:
    """For each caption the words that it shares with the sentence."""
    words_asked = dict.fromkeys(word[0].lower() for word in words_of(text) if word[0].lower() not in STOP_WORDS)
    words_of_captions = [{word[0].lower() for word in words_of(caption)} for caption in captions]
    return [[word for word in words_asked if word in words] for words in words_of_captions]


@dataclass
class SearchService:
    """Questions become searches here; the client names datasets and encoders by ids only."""

    services: Services
    worker: EncoderWorker

    def inputs_of(self, dataset: str, encoder: str) -> tuple[EncoderChoice, Dataset, tuple[Path, ...]]:
        """The encoder, the dataset, and the folders that may hold its pictures."""
        library, settings = self.services.library, self.services.settings
        choices = {choice.id: choice for choice in encoder_choices(library, settings.models)}
        data = library.dataset(dataset)
        if encoder not in choices:
            raise UnknownNameError("encoder", encoder, choices)
        choice = choices[encoder]
        folders = [*settings.image_folders, *([choice.image_folder] if choice.image_folder else [])]
        with suppress(CrosslensError):
            folders += library.image_folders(dataset)
        return choice, data, tuple(dict.fromkeys(folders))

    def search(
        self, dataset: str, encoder: str, among: str, depth: int, text: str | None = None, picture: bytes = b""
    ) -> SearchAnswer:
        """What is nearest to a sentence or to a picture: its file's content, decoded when the encoder is free."""
        choice, data, folders = self.inputs_of(dataset, encoder)
        worker, started = self.worker, time.perf_counter()

        def rank() -> tuple[Dataset, Sequence[str], list[Hit], list[WordAnswer], list[float]]:
            whole, gallery = worker.gallery(choice, data, MODALITIES[among], folders, None)
            loaded = worker.loaded(choice)
            ticks = [time.perf_counter()]
            query = loaded.embed_picture(picture) if text is None else loaded.embed_texts([text])
            ticks.append(time.perf_counter())
            hits = gallery.search(query, max(2, depth))
            ticks.append(time.perf_counter())
            effects = [] if text is None else word_effects(text, hits, gallery, loaded.embed_texts)
            ticks.append(time.perf_counter())
            return whole, gallery.embeddings.ids, hits[:depth], effects, ticks

        whole, ids, ranked, effects, ticks = worker.call(rank)
        hits, kind, dataset_path = [], among.removesuffix("s"), quote(dataset, safe="")
        for hit in ranked:
            image, caption = ids[hit.row], None
            if among == "captions":
                image, caption = whole.image_ids[whole.caption_image[hit.row]], whole.texts[hit.row]
            thumbnail = f"/pictures/{dataset_path}/{quote(image)}?size=320"
            page = address(f"/datasets/{dataset_path}/image", {"id": image})
            hits.append(HitAnswer(hit.rank, ids[hit.row], kind, hit.score, caption, image, thumbnail, page))
        steps = dict(zip(("encode", "rank", "words"), pairwise(ticks), strict=True))
        steps["total"] = started, time.perf_counter()
        times = {name: round(1000 * (end - start), 2) for name, (start, end) in steps.items()}
        shared = [] if text is None or among == "images" else shared_words(text, [hit.text or "" for hit in hits[:2]])
        return SearchAnswer(hits, len(ids), choice.name, times, effects, shared)

    def prepare(self, dataset: str, encoder: str, among: str) -> JobProgress:
        """Load the encoder and the vectors of the dataset in the background; how far that is.

        A failure is reported once, and tried again when asked for the next time.
        """
        choice, data, folders = self.inputs_of(dataset, encoder)
        modality, key = MODALITIES[among], (dataset, encoder, among)
        if self.worker.has(choice, data, modality):
            return JobProgress(DONE)
        before = self.worker.progress(key)
        if before is not None and before.state == FAILED:
            self.worker.forget(key)
            return before
        return self.worker.start(key, partial(self.worker.gallery, choice, data, modality, folders))


def routers(services: Services) -> list[APIRouter]:
    """All addresses of live search."""
    services.navigation.append(("/search", "Search"))
    services.body_limits["/api/search/picture"] = MOST_BYTES + 65_536  # what a multipart body has besides the picture
    service = SearchService(services, EncoderWorker(services.settings.cache))
    services.stop_work.append(service.worker.stop)
    routes = feature_router(tags=["search"])

    @routes.get("/api/search")
    def search_choices() -> Choices:
        """The datasets that can be searched, and the encoders that can be used."""
        datasets = [Choice(id=data.id, name=data.name) for data in services.library.datasets()]
        encoders = encoder_choices(services.library, services.settings.models)
        return Choices(datasets=datasets, encoders=[Choice(id=choice.id, name=choice.name) for choice in encoders])

    @routes.get("/search", response_class=HTMLResponse, include_in_schema=False)
    def search_page(request: Request, dataset: str = "", text: str = "") -> HTMLResponse:
        return render(
            request, "search/search.html", choices=search_choices(), token=csrf_token(request), dataset=dataset,
            text=text, longest=LONGEST_TEXT, most_bytes=MOST_BYTES,
        )  # fmt: skip

    @routes.post("/api/search/prepare")
    def prepare(dataset: str, encoder: str, among: Among = "images") -> Preparation:
        """Load the encoder and the vectors of the dataset in the background; how far that is."""
        progress = service.prepare(dataset, encoder, among)
        return Preparation(progress.state, problem=progress.problem, **progress.report())

    @routes.post("/api/search/text")
    def search_text(asked: TextQuestion) -> SearchAnswer:
        """The items nearest to a sentence, and what each of its words contributes."""
        return service.search(asked.dataset, asked.encoder, asked.among, asked.depth, text=check_text(asked.text))

    @routes.post("/api/search/picture")
    def search_picture(
        picture: Annotated[UploadFile, File()], dataset: str, encoder: str, among: Among = "images",
        depth: Annotated[int, Query(ge=1, le=MOST_HITS)] = _DEPTH,
    ) -> SearchAnswer:  # fmt: skip
        """The items nearest to a picture, which is kept in memory only while it is encoded."""
        content = check_upload(picture.file.read(MOST_BYTES + 1))
        return service.search(dataset, encoder, among, depth, picture=content)

    @routes.get("/api/search/why")
    def why(
        dataset: str,
        image: Annotated[list[str], Query(min_length=1, max_length=2)],
        text: Annotated[str | None, Query(max_length=LONGEST_TEXT)] = None,
    ) -> dict[str, Any]:
        """What a sentence mentions, checked against the first two images of its search, and their objects."""
        data = services.library.dataset(dataset)
        for name in image:
            if name not in data.image_rows:
                raise InputError(f"no image {name!r} in {data.name}", fix="check the id", code="unknown-id")
        return compare_hits(data, None if text is None else check_text(text), image).as_dict()

    return [routes]
