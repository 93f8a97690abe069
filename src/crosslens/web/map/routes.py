"""The pages and the JSON of the map."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from crosslens.core import CrosslensError, InputError
from crosslens.storage import json_form
from crosslens.values import IMAGE_TO_TEXT, Dataset
from crosslens.web.background import RecentCache
from crosslens.web.map.colours import MOST_ROWS, Colouring, ItemLookup, MapItem, Palette
from crosslens.web.map.maps import EmbeddingMap, Maps, MapState
from crosslens.web.map.projection import METHODS, PCA, Region, has_umap
from crosslens.web.pages import cache_control, feature_router, query_address, render, version
from crosslens.web.security import CONTENT_SECURITY_POLICY, Services, csrf_token


def pack(header: Mapping[str, Any], content: bytes) -> bytes:
    """A header and the bytes that it describes."""
    text = json.dumps(json_form(header), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + content


def pack_points(layout: EmbeddingMap) -> bytes:
    """The points of a map: its images first."""
    header = {"points": len(layout), "images": len(layout.image_ids), "method": layout.method}
    return pack(header, np.ascontiguousarray(layout.points.T, "<f4").tobytes())


def pack_colouring(colouring: Colouring) -> bytes:
    """The colours of all points."""
    header = {name: value for name, value in vars(colouring).items() if name != "codes"}
    return pack(header, np.ascontiguousarray(colouring.codes, np.uint8).tobytes())


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
        return FileResponse(path, media_type=media, headers={**_READABLE, "Cache-Control": cache_control(hashed)})


class ColouringName(BaseModel):
    """Something that points can be coloured by."""

    name: str
    label: str


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


@dataclass(frozen=True)
class MapItemAnswer(MapItem):
    """A point; the addresses are null where there is no such page or picture."""

    picture: str | None
    page: str | None


class ItemsAnswer(BaseModel):
    """Several points."""

    items: list[MapItemAnswer]


class RowsAnswer(BaseModel):
    """The points that a text occurs in."""

    rows: list[int]


Method = Literal["pca", "umap"]


_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "The browser has them already: If-None-Match names their ETag."},
}


def routers(services: Services) -> list[APIRouter]:
    """All addresses of the map."""
    services.navigation.append(("/map", "Map"))
    library, maps = services.library, Maps(services.settings.cache)
    lookups: RecentCache[ItemLookup] = RecentCache(2)
    packed: RecentCache[tuple[str, bytes, bytes]] = RecentCache(8)
    methods = [method for method in METHODS if method == PCA or has_umap()]

    services.stop_work.append(maps.jobs.stop)
    routes = feature_router(tags=["map"])
    add_frame(routes, services)

    def dataset_of(run: str) -> Dataset | None:
        try:
            return library.dataset_of(run)
        except CrosslensError:  # a map needs ids only
            return None

    def lookup(run: str, method: str | None) -> ItemLookup:
        layout, dataset = maps.drawn(run, library.run(run), method), dataset_of(run)
        key = (layout.key, None if dataset is None else dataset.fingerprint)
        return lookups.get(key, lambda: ItemLookup(layout, dataset))

    def binary(request: Request, key: tuple[str, ...], make: Callable[[], bytes]) -> Response:
        """The bytes of ``key``, as this browser takes them; 304 where it has them already."""

        def pack_both() -> tuple[str, bytes, bytes]:
            content = make()
            # Coordinates hardly become smaller with more effort.
            compressed = gzip.compress(content, compresslevel=1, mtime=0)
            return f'"{hashlib.sha256(content).hexdigest()[:32]}"', content, compressed

        tag, content, compressed = packed.get(key, pack_both)
        headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
        tags = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
        if tag in tags:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = compressed, "gzip"
        return Response(content, media_type="application/octet-stream", headers=headers)

    def answer(run: str, state: MapState) -> MapAnswer:
        facts = {} if state.progress is None else state.progress.report()
        if (layout := state.drawn) is not None:
            colourings = Palette(layout, library.run(run), dataset_of(run)).names()
            facts |= {"points": len(layout), "images": len(layout.image_ids), "regions": layout.regions}
            facts["colourings"] = [{"name": name, "label": label} for name, label in colourings]
        return MapAnswer(state=state.state, method=state.method, methods=methods, reason=state.reason, **facts)

    @routes.get("/map", response_class=HTMLResponse, include_in_schema=False)
    def maps_page(request: Request) -> HTMLResponse:
        return render(request, "map/maps.html", runs=library.runs())

    @routes.get("/map/{run}", response_class=HTMLResponse, include_in_schema=False)
    def map_page(request: Request, run: str, method: Method | None = None) -> HTMLResponse:
        state = maps.state(run, library.run(run), method)
        page = render(
            request, "map/map.html", run=library.summary(run), state=state, methods=methods,
            frame=f"{FRAME}/{version()}", token=csrf_token(request),
        )  # fmt: skip
        page.headers["Content-Security-Policy"] = PAGE_POLICY
        return page

    @routes.get("/api/map/{run}")
    def map_state(run: str, method: Method | None = None) -> MapAnswer:
        """Where the map of a run stands."""
        return answer(run, maps.state(run, library.run(run), method))

    @routes.post("/api/map/{run}")
    def start_map(run: str, method: Method | None = None) -> MapAnswer:
        """Compute the map of a run in the background, unless it is there."""
        return answer(run, maps.start(run, library.run(run), method))

    @routes.get("/api/map/{run}/points", response_class=Response, responses=_BYTES)
    def points(request: Request, run: str, method: Method | None = None) -> Response:
        """All points: a header (JSON) and x and y (float32), as docs/how-to/serve.md describes."""
        layout = maps.drawn(run, library.run(run), method)
        return binary(request, (layout.key, "points"), lambda: pack_points(layout))

    @routes.get("/api/map/{run}/colours", response_class=Response, responses=_BYTES)
    def colours(request: Request, run: str, name: str, method: Method | None = None) -> Response:
        """The colour of every point by one of the names that the state lists: a header (JSON) and one byte each."""
        layout, dataset = maps.drawn(run, library.run(run), method), dataset_of(run)
        palette = Palette(layout, library.run(run), dataset)
        key = (layout.key, palette.run.fingerprint, "" if dataset is None else dataset.fingerprint, name)
        return binary(request, key, lambda: pack_colouring(palette.colouring(name)))

    @routes.get("/api/map/{run}/items")
    def items(run: str, rows: Annotated[str, Query(max_length=2400)], method: Method | None = None) -> ItemsAnswer:
        """What these points stand for: their rows, separated by commas."""
        try:
            numbers = [int(part) for part in rows.split(",") if part]
        except ValueError:
            raise InputError("rows are whole numbers separated by commas", expected=f"at most {MOST_ROWS}") from None
        dataset, answers = library.summary(run).dataset, []
        for item in lookup(run, method).items(numbers):
            picture = f"/pictures/{dataset}/{quote(item.image)}?size=160" if dataset and item.image else None
            rankings = library.run(run).rankings
            directions = [name for name in rankings if (name == IMAGE_TO_TEXT) == (item.kind == "image")]
            page = query_address(run, item.id, {"direction": directions[0]}) if directions else None
            answers.append(MapItemAnswer(**vars(item), picture=picture, page=page))
        return ItemsAnswer(items=answers)

    @routes.get("/api/map/{run}/find")
    def find(run: str, text: Annotated[str, Query(max_length=500)], method: Method | None = None) -> RowsAnswer:
        """The points whose caption or id contains all the words."""
        return RowsAnswer(rows=lookup(run, method).matching(text))

    return [routes]
