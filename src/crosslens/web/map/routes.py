"""The pages and the JSON of the map."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from crosslens.core import IMAGE_TO_TEXT, InputError, Run, json_form
from crosslens.web.background import RecentCache
from crosslens.web.map.colours import MOST_ROWS, Colouring, ItemLookup, MapItem, Palette
from crosslens.web.map.maps import EmbeddingMap, Maps, MapState, dataset_or_none
from crosslens.web.map.projection import METHODS, PCA, has_umap
from crosslens.web.pages import query_address, render, version
from crosslens.web.security import CONTENT_SECURITY_POLICY, Services, csrf_token

_LEVEL = 1
"""Coordinates hardly become smaller with more effort."""
_KEPT = 8
_MEDIA = "application/octet-stream"


class _Packed(NamedTuple):
    tag: str
    plain: bytes
    compressed: bytes


class BinaryAnswers:
    """The last few answers, plain and compressed."""

    def __init__(self) -> None:
        self._kept: RecentCache[_Packed] = RecentCache(_KEPT)

    def answer(self, request: Request, key: tuple[str, ...], make: Callable[[], bytes]) -> Response:
        """The bytes of ``key``, as this browser takes them; 304 where it has them already."""
        packed = self._kept.get(key, lambda: _pack(make()))
        headers = {"ETag": packed.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if packed.tag in known:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed.compressed, media_type=_MEDIA, headers={**headers, "Content-Encoding": "gzip"})
        return Response(packed.plain, media_type=_MEDIA, headers=headers)


def _pack(content: bytes) -> _Packed:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _Packed(tag, content, gzip.compress(content, _LEVEL, mtime=0))


def pack(header: Mapping[str, Any], content: bytes) -> bytes:
    """A header and the bytes that it describes."""
    text = json.dumps(json_form(header), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + content


def pack_points(drawn: EmbeddingMap) -> bytes:
    """The points of a map: its images first."""
    header = {"points": len(drawn), "images": len(drawn.image_ids), "method": drawn.method}
    return pack(header, np.ascontiguousarray(drawn.points.T, "<f4").tobytes())


def pack_colouring(colouring: Colouring) -> bytes:
    """The colours of all points."""
    return pack(colouring.about(), np.ascontiguousarray(colouring.codes, np.uint8).tobytes())


FRAME = "/map-frame"
FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
PAGE_POLICY = f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"
"""Of the page that holds the frame: the policy of all pages, and this one frame."""

_STATIC = Path(__file__).with_name("static")
LIBRARY = next(file.name for file in sorted((_STATIC / "vendor").glob("regl-scatterplot-*.js")))
_FILES = {
    "frame.js": (_STATIC / "frame.js", "text/javascript"),
    "frame.css": (_STATIC / "frame.css", "text/css"),
    LIBRARY: (_STATIC / "vendor" / LIBRARY, "text/javascript"),
}
_READABLE = {"Cross-Origin-Resource-Policy": "cross-origin"}
"""The frame has no origin, so that even the files of its own server are another origin's to it."""


def add_frame(routes: APIRouter, services: Services) -> None:
    """The frame and its files. They hold no data, and a frame without an origin has no cookie to log in with."""
    services.open_paths.append(f"{FRAME}/")

    @routes.get(f"{FRAME}/{{hashed}}", response_class=HTMLResponse, include_in_schema=False)
    def frame(request: Request, hashed: str) -> HTMLResponse:
        page = render(request, "map/frame.html", base=f"{FRAME}/{version()}", library=LIBRARY)
        page.headers["Content-Security-Policy"] = FRAME_POLICY
        page.headers["X-Frame-Options"] = "SAMEORIGIN"
        return page

    @routes.get(f"{FRAME}/{{hashed}}/{{name}}", include_in_schema=False)
    def file(hashed: str, name: str) -> FileResponse:
        if name not in _FILES:
            raise HTTPException(404, "There is no such file.")
        path, media = _FILES[name]
        kept = "public, max-age=31536000, immutable" if hashed == version() else "no-store"
        return FileResponse(path, media_type=media, headers={**_READABLE, "Cache-Control": kept})


def frame_address() -> str:
    """The address of the frame, which changes with its files."""
    return f"{FRAME}/{version()}"


class ColouringName(BaseModel):
    """Something that points can be coloured by."""

    name: str
    label: str


class Region(BaseModel):
    """A cluster of points: its words, how many images and captions, its centre."""

    number: int
    name: str
    images: int
    captions: int
    x: float
    y: float


class MapAnswer(BaseModel):
    """Where the map of a run stands.

    ``state`` is ``absent`` (not computed), ``waiting``, ``running`` (with stage, done and total; total 0: unknown),
    ``failed``, ``impossible`` (both with the reason) or ``ready`` (with all the rest).
    """

    state: str
    method: str
    methods: list[str]
    reason: str = ""
    fix: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    points: int = 0
    images: int = 0
    colourings: list[ColouringName] = []
    regions: list[Region] = []


class MapItemAnswer(BaseModel):
    """A point; the addresses are null where there is no such page or picture."""

    row: int
    kind: str
    id: str
    text: str | None
    image: str | None
    picture: str | None
    page: str | None


class ItemsAnswer(BaseModel):
    """Several points."""

    items: list[MapItemAnswer]


class RowsAnswer(BaseModel):
    """The points that a text occurs in."""

    rows: list[int]


def map_answer(state: MapState, methods: list[str], colourings: list[tuple[str, str]]) -> MapAnswer:
    """The JSON of a state."""
    answer = MapAnswer(state=state.state, method=state.method, methods=methods, reason=state.reason)
    if state.progress is not None:
        answer.stage, answer.done, answer.total = state.progress.stage, state.progress.done, state.progress.total
        answer.seconds, answer.fix = round(state.progress.seconds, 1), state.progress.fix
    if state.drawn is not None:
        answer.points, answer.images = len(state.drawn), len(state.drawn.image_ids)
        answer.colourings = [ColouringName(name=name, label=label) for name, label in colourings]
        answer.regions = [
            Region(**{**region._asdict(), "x": region.centre[0], "y": region.centre[1]})
            for region in state.drawn.regions
        ]
    return answer


Method = Literal["pca", "umap"]


_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "The browser has them already: If-None-Match names their ETag."},
}


class MapPages:
    """What the addresses of the map share."""

    def __init__(self, services: Services) -> None:
        self.library = services.library
        self.maps = Maps(services.settings.cache)
        self.lookups: RecentCache[ItemLookup] = RecentCache(2)
        self.binary = BinaryAnswers()

    def drawn(self, run: str, method: str | None) -> EmbeddingMap:
        return self.maps.drawn(run, self.library.run(run), method)

    def palette(self, run: str, drawn: EmbeddingMap) -> Palette:
        dataset = dataset_or_none(lambda: self.library.dataset_of(run))
        return Palette(drawn, self.library.run(run), dataset)

    def lookup(self, run: str, drawn: EmbeddingMap) -> ItemLookup:
        dataset = dataset_or_none(lambda: self.library.dataset_of(run))
        key = (drawn.key, None if dataset is None else dataset.fingerprint)
        return self.lookups.get(key, lambda: ItemLookup(drawn, dataset))

    def item(self, run: str, item: MapItem) -> MapItemAnswer:
        """A point with the addresses of its picture and of its query."""
        dataset = self.library.summary(run).dataset
        picture = f"/pictures/{dataset}/{quote(item.image)}?size=160" if dataset and item.image else None
        return MapItemAnswer(
            row=item.row, kind="image" if item.is_image else "caption", id=item.id, text=item.text, image=item.image,
            picture=picture, page=query_page(run, self.library.run(run), item),
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
        return render(request, "map/maps.html", runs=pages.library.runs())

    @routes.get("/map/{run}", response_class=HTMLResponse, include_in_schema=False)
    def map_page(request: Request, run: str, method: Method | None = None) -> HTMLResponse:
        state = pages.maps.state(run, pages.library.run(run), method)
        page = render(
            request, "map/map.html", run=pages.library.summary(run), state=state, methods=_methods(),
            frame=frame_address(), token=csrf_token(request),
        )  # fmt: skip
        page.headers["Content-Security-Policy"] = PAGE_POLICY
        return page


def _add_state(routes: APIRouter, pages: MapPages) -> None:
    def answer(run: str, method: str | None, *, start: bool) -> MapAnswer:
        act = pages.maps.start if start else pages.maps.state
        state = act(run, pages.library.run(run), method)
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
        """All points: a header (JSON) and x and y (float32), as docs/how-to/serve.md describes."""
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
