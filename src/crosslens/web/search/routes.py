"""The pages and the JSON of live search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, File, Query, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.core import InputError
from crosslens.explanations import compare_hits
from crosslens.web.layout.rendering import render
from crosslens.web.search.answers import (
    Among,
    Choice,
    Choices,
    Preparation,
    SearchAnswer,
    TextQuestion,
    WhyAnswer,
    preparation,
    search_answer,
    why_answer,
)
from crosslens.web.search.desk import SearchDesk
from crosslens.web.search.search import LONGEST_TEXT, MOST_HITS, Question, check_text, search
from crosslens.web.search.uploads import MOST_BYTES, check_upload
from crosslens.web.security import csrf_token
from crosslens.web.services import Services

_FORM_BYTES = 65_536
"""What a multipart body has besides the picture."""
Depth = Annotated[int, Query(ge=1, le=MOST_HITS)]


def routers(services: Services) -> list[APIRouter]:
    """All addresses of live search."""
    services.navigation.append(("/search", "Search"))
    services.body_limits["/api/search/picture"] = MOST_BYTES + _FORM_BYTES
    desk = SearchDesk(services)

    @asynccontextmanager
    async def stopping(_: Any) -> AsyncIterator[None]:
        yield
        desk.worker.stop()

    routes = APIRouter(lifespan=stopping)
    _add_choices(routes, desk)
    _add_searches(routes, desk)
    return [routes]


def _add_choices(routes: APIRouter, desk: SearchDesk) -> None:
    def choices() -> Choices:
        datasets = [Choice(id=data.id, name=data.name) for data in desk.services.library.datasets()]
        return Choices(datasets=datasets, encoders=[Choice(id=own.id, name=own.name) for own in desk.encoders()])

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
        return preparation(desk.prepare(dataset, encoder, among))


def _add_searches(routes: APIRouter, desk: SearchDesk) -> None:
    def answer(question: Question, dataset: str) -> SearchAnswer:
        return search_answer(search(question, desk.worker), question.among, question.encoder.name, dataset)

    @routes.post("/api/search/text", tags=["search"])
    def search_text(asked: TextQuestion) -> SearchAnswer:
        """The items nearest to a sentence, and what each of its words contributes."""
        question = desk.question(asked.dataset, asked.encoder, asked.among, asked.depth)
        return answer(replace(question, text=check_text(asked.text)), asked.dataset)

    @routes.post("/api/search/picture", tags=["search"])
    def search_picture(
        picture: Annotated[UploadFile, File()], dataset: str, encoder: str, among: Among = "images", depth: Depth = 12
    ) -> SearchAnswer:
        """The items nearest to a picture, which is kept in memory only while it is encoded."""
        question = desk.question(dataset, encoder, among, depth)
        content = picture.file.read(MOST_BYTES + 1)
        return answer(replace(question, picture=check_upload(content)), dataset)

    @routes.get("/api/search/why", tags=["search"])
    def why(
        dataset: str,
        image: Annotated[list[str], Query(min_length=1, max_length=2)],
        text: Annotated[str | None, Query(max_length=LONGEST_TEXT)] = None,
    ) -> WhyAnswer:
        """What a sentence mentions, checked against the first two images of its search, and their objects."""
        data = desk.services.library.dataset(dataset)
        for name in image:
            if name not in data.image_rows:
                raise InputError(f"no image {name!r} in {data.name}", fix="check the id", code="unknown-id")
        return why_answer(compare_hits(data, None if text is None else check_text(text), image))
