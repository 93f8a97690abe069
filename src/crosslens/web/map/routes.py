"""The pages and the JSON of the map."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from crosslens.core import IMAGE_TO_TEXT, InputError, Run
from crosslens.web.explorer.addresses import query_address
from crosslens.web.kept import Kept
from crosslens.web.layout.rendering import render
from crosslens.web.map.answers import ItemsAnswer, MapAnswer, MapItemAnswer, RowsAnswer, map_answer
from crosslens.web.map.binary import BinaryAnswers, pack_colouring, pack_points
from crosslens.web.map.colours import Palette
from crosslens.web.map.frame import PAGE_POLICY, add_frame, frame_address
from crosslens.web.map.items import MOST_ROWS, ItemLookup, MapItem
from crosslens.web.map.projection import METHODS, PCA, has_umap
from crosslens.web.map.service import Maps, dataset_or_none
from crosslens.web.map.stored import EmbeddingMap
from crosslens.web.security import csrf_token
from crosslens.web.services import Services

Method = Literal["pca", "umap"]


_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "The browser has them already: If-None-Match names their ETag."},
}


class MapPages:
    """What the addresses of the map share."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.maps = Maps(services.settings.cache)
        self.lookups: Kept[ItemLookup] = Kept(2)
        self.binary = BinaryAnswers()

    def run(self, run: str) -> Run:
        """A run by its id in addresses."""
        return self.services.library.run(run)

    def drawn(self, run: str, method: str | None) -> EmbeddingMap:
        """The map of a run, which must be there."""
        return self.maps.drawn(run, self.run(run), method)

    def palette(self, run: str, drawn: EmbeddingMap) -> Palette:
        """What its points can be coloured by."""
        dataset = dataset_or_none(lambda: self.services.library.dataset_of(run))
        return Palette(drawn, self.run(run), dataset)

    def lookup(self, run: str, drawn: EmbeddingMap) -> ItemLookup:
        """What its points stand for."""
        dataset = dataset_or_none(lambda: self.services.library.dataset_of(run))
        key = (drawn.key, None if dataset is None else dataset.fingerprint)
        return self.lookups.get(key, lambda: ItemLookup(drawn, dataset))

    def item(self, run: str, item: MapItem) -> MapItemAnswer:
        """A point with the addresses of its picture and of its query."""
        dataset = self.services.library.summary(run).dataset
        picture = f"/pictures/{dataset}/{quote(item.image)}?size=160" if dataset and item.image else None
        return MapItemAnswer(
            row=item.row, kind="image" if item.is_image else "caption", id=item.id, text=item.text, image=item.image,
            picture=picture, page=query_page(run, self.run(run), item),
        )  # fmt: skip


def query_page(run_id: str, run: Run, item: MapItem) -> str | None:
    """The address of the page of an item's query; None where it was no query."""
    directions = [name for name in run.rankings if (name == IMAGE_TO_TEXT) == item.is_image]
    return query_address(run_id, item.id, {"direction": directions[0]}) if directions else None


def routers(services: Services) -> list[APIRouter]:
    """All addresses of the map."""
    services.navigation.append(("/map", "Map"))
    pages = MapPages(services)

    @asynccontextmanager
    async def stopping(_: Any) -> AsyncIterator[None]:
        yield
        pages.maps.stop()

    routes = APIRouter(lifespan=stopping)
    add_frame(routes, services)
    _add_pages(routes, pages)
    _add_state(routes, pages)
    _add_content(routes, pages)
    return [routes]


def _add_pages(routes: APIRouter, pages: MapPages) -> None:
    @routes.get("/map", response_class=HTMLResponse, include_in_schema=False)
    def maps(request: Request) -> HTMLResponse:
        return render(request, "map/maps.html", runs=pages.services.library.runs())

    @routes.get("/map/{run}", response_class=HTMLResponse, include_in_schema=False)
    def map_page(request: Request, run: str, method: Method | None = None) -> HTMLResponse:
        state = pages.maps.state(run, pages.run(run), method)
        page = render(
            request, "map/map.html", run=pages.services.library.summary(run), state=state, methods=_methods(),
            frame=frame_address(), token=csrf_token(request),
        )  # fmt: skip
        page.headers["Content-Security-Policy"] = PAGE_POLICY
        return page


def _add_state(routes: APIRouter, pages: MapPages) -> None:
    def answer(run: str, method: str | None, *, start: bool) -> MapAnswer:
        act = pages.maps.start if start else pages.maps.state
        state = act(run, pages.run(run), method)
        names = [] if state.drawn is None else pages.palette(run, state.drawn).names()
        return map_answer(state, _methods(), names)

    @routes.get("/api/map/{run}", tags=["map"])
    def map_state(run: str, method: Method | None = None) -> MapAnswer:
        """Where the map of a run stands."""
        return answer(run, method, start=False)

    @routes.post("/api/map/{run}", tags=["map"])
    def start_map(run: str, method: Method | None = None) -> MapAnswer:
        """Compute the map of a run in the background, unless it is there."""
        return answer(run, method, start=True)


def _add_content(routes: APIRouter, pages: MapPages) -> None:
    @routes.get("/api/map/{run}/points", response_class=Response, tags=["map"], responses=_BYTES)
    def points(request: Request, run: str, method: Method | None = None) -> Response:
        """All points: a header (JSON) and x and y (float32), as docs/how-to/map-and-search.md describes."""
        drawn = pages.drawn(run, method)
        return pages.binary.answer(request, (drawn.key, "points"), lambda: pack_points(drawn))

    @routes.get("/api/map/{run}/colours", response_class=Response, tags=["map"], responses=_BYTES)
    def colours(request: Request, run: str, name: str, method: Method | None = None) -> Response:
        """The colour of every point by one of the names that the state lists: a header (JSON) and one byte each."""
        drawn = pages.drawn(run, method)
        palette = pages.palette(run, drawn)
        data = "" if palette.dataset is None else palette.dataset.fingerprint
        key = (drawn.key, palette.run.fingerprint, data, name)
        return pages.binary.answer(request, key, lambda: pack_colouring(palette.colouring(name)))

    @routes.get("/api/map/{run}/items", tags=["map"])
    def items(run: str, rows: Annotated[str, Query(max_length=2400)], method: Method | None = None) -> ItemsAnswer:
        """What these points stand for: their rows, separated by commas."""
        lookup = pages.lookup(run, pages.drawn(run, method))
        return ItemsAnswer(items=[pages.item(run, item) for item in lookup.items(_rows(rows))])

    @routes.get("/api/map/{run}/find", tags=["map"])
    def find(run: str, text: Annotated[str, Query(max_length=500)], method: Method | None = None) -> RowsAnswer:
        """The points whose caption or id contains all the words."""
        return RowsAnswer(rows=pages.lookup(run, pages.drawn(run, method)).matching(text))


def _rows(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError:
        raise InputError("rows are whole numbers separated by commas", expected=f"at most {MOST_ROWS}") from None


def _methods() -> list[str]:
    return [method for method in METHODS if method == PCA or has_umap()]
