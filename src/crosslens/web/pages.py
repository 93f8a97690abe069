"""Pages: templates, errors, addresses, and static files under a hash, so that browsers may keep them for good.

``web/<feature>/static/x.js`` is ``/static/<hash>/<feature>/x.js``. The hash is of all files together and stands in the
folder part: a script can import another one by its relative path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response

from crosslens.core import (
    ConflictError,
    CrosslensError,
    InputError,
    MissingExtraError,
    Section,
    UnknownNameError,
    printable,
)
from crosslens.report import SECTION_STYLE, EmbeddedImage, section_html
from crosslens.web.security import CSRF_FIELD, Services, check_csrf, csrf_token

_FOLDER = Path(__file__).resolve().parent
_MEDIA = {
    ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".json":
    "application/json", ".wasm": "application/wasm", ".woff2": "font/woff2", ".txt": "text/plain",
}  # fmt: skip


@cache
def static_files() -> dict[str, Path]:
    """Every static file of the package: ``explorer/x.js`` → its path. What is not listed here is not served."""
    files = {}
    for folder in sorted(_FOLDER.rglob("static")):
        feature = folder.parent.relative_to(_FOLDER).as_posix()
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix in _MEDIA:
                files[f"{feature}/{file.relative_to(folder).as_posix()}"] = file
    return files


@cache
def version() -> str:
    """Changes when any static file does."""
    builder = hashlib.sha256()
    for name, file in static_files().items():
        builder.update(f"{name}:{file.stat().st_size}:".encode())
        builder.update(file.read_bytes())
    return builder.hexdigest()[:12]


def static_address(name: str) -> str:
    """The address of ``feature/file``; an unknown name is a bug in a template."""
    if name not in static_files():
        raise KeyError(f"no static file {name!r}")
    return f"/static/{version()}/{name}"


def cache_control(hashed: str) -> str:
    """How long browsers keep a file under this hash: for good, unless it is that of another version."""
    return "public, max-age=31536000, immutable" if hashed == version() else "no-store"


def add_pages(app: FastAPI, services: Services) -> None:
    """Give the application its templates, its static files and an answer to every error.

    In templates everything is escaped, and an unknown name is an error. Every form with ``method="post"`` has the
    hidden field ``{{ csrf_field(request) }}``.
    """
    # A template is beside the code of its feature; one without a folder belongs to the layout.
    features = {folder.parent.name: FileSystemLoader(folder) for folder in _FOLDER.glob("*/templates")}
    environment = Environment(
        loader=ChoiceLoader([PrefixLoader(features), features["layout"]]), autoescape=True, auto_reload=False,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    hidden = Markup('<input type="hidden" name="{}" value="{}">')
    environment.globals |= {
        "static": static_address, "csrf_field": lambda request: hidden.format(CSRF_FIELD, csrf_token(request)),
        "address": address, "query_address": query_address, "navigation": services.navigation,
        "folder_name": services.settings.folder.resolve().name,
    }  # fmt: skip
    environment.filters |= {"segment": lambda text: quote(str(text), safe="")}
    app.state.templates = environment

    @app.get("/charts.css", include_in_schema=False)
    def chart_style() -> Response:
        """The style that sections and their charts have in reports, too."""
        return Response(SECTION_STYLE, media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    @app.get("/static/{hashed}/{name:path}", include_in_schema=False)
    def static(hashed: str, name: str) -> FileResponse:
        file = static_files().get(name)
        if file is None:
            raise HTTPException(404, "There is no such file.")
        return FileResponse(file, media_type=_MEDIA[file.suffix], headers={"Cache-Control": cache_control(hashed)})

    @app.exception_handler(CrosslensError)
    def failure(request: Request, error: CrosslensError) -> Response:
        # The file is left out: who reads the page need not know where things are on this computer.
        row = f"row {error.row}: " if isinstance(error, InputError) and error.row is not None else ""
        return answer(request, status_of(error), printable(row + error.problem), error.fix)

    app.add_exception_handler(HTTPException, refused)  # type: ignore[arg-type]

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        parts = [f"{'.'.join(map(str, part['loc'][1:]))}: {part['msg']}" for part in error.errors()[:5]]
        return answer(request, 422, printable("; ".join(parts)))


def sections_html(sections: Iterable[Section], pictures: Mapping[str, EmbeddedImage] | None = None) -> Markup:
    """Sections as reports show them: escaped where they are made; ``pictures`` are by image."""
    return Markup("".join(section_html(section, pictures) for section in sections if section.parts))


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from ``feature/name.html``, which extends ``base.html`` and is given these values and the request."""
    content = {"request": request, "page_path": request.scope["path"], **values}
    return HTMLResponse(request.app.state.templates.get_template(template).render(content), status)


_HEADINGS = {
    400: "Not understood", 401: "Log in first", 403: "Not allowed", 404: "Not found", 405: "Not possible",
    409: "Already changed", 413: "Too large", 415: "Another kind of file", 422: "Not valid", 429: "Too many requests",
    500: "Something failed", 501: "Not installed",
}  # fmt: skip


class Problem(BaseModel):
    """What went wrong, and what can be done about it."""

    problem: str
    fix: str | None = None


# FastAPI analyses a model for each status of each route: for one it does, and the others refer to that.
_PROBLEM = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": description, **({"model": Problem} if status == 422 else _PROBLEM)}
    for status, description in {
        400: "The request is not well-formed: its host, its length or its body.",
        401: "Log in first.",
        403: "Not allowed, sent by a page of another site, or without the token of its page.",
        404: "There is no such run, dataset, query, image, map, point, encoder or project.",
        409: "It has changed meanwhile, or too much is waiting.",
        413: "The body is too large.",
        421: "The server does not answer under that host name.",
        422: "A parameter is not valid, or the run cannot answer.",
        429: "Too many wrong passwords: Retry-After says how long to wait.",
        500: "A bug of the server.",
        501: "A package that this needs is not installed.",
    }.items()
}
"""What every operation of the JSON interface may answer besides its result; there is no other status."""
feature_router = partial(APIRouter, dependencies=[Depends(check_csrf)], responses=RESPONSES)
"""A router whose routes all check tokens; one that the description leaves out needs no ``responses``."""


def status_of(error: CrosslensError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, UnknownNameError) or error.code in ("unknown-id", "unknown-name", "gone"):
        return 404
    if error.code in ("outside", "too-many"):
        return 403 if error.code == "outside" else 429
    if isinstance(error, ConflictError):
        return 409
    return 501 if isinstance(error, MissingExtraError) else 422


def refused(request: Request, error: HTTPException) -> Response:
    """The answer to a request that is not allowed, possible or complete."""
    response = answer(request, error.status_code, str(error.detail))
    response.headers.update(error.headers or {})
    return response


def answer(request: Request, status: int, problem: str, fix: str | None = None) -> Response:
    """The error as JSON below ``/api`` and for pictures, else as a page."""
    if request.scope["path"].startswith(("/api/", "/pictures/")):
        return JSONResponse(Problem(problem=problem, fix=fix).model_dump(), status)
    return render(
        request, "error.html", status=status, heading=_HEADINGS.get(status, "Error"), problem=problem, fix=fix
    )


_USUAL: Mapping[str, Any] = {"sort": "surest", "offset": 0, "descending": False}


def address(path: str, state: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """A path with these parameters; ``changes`` replace some of them."""
    values = {**(state or {}), **changes}
    stated = [
        (name, str(value).lower() if isinstance(value, bool) else value)
        for name, value in values.items()
        if value not in ("", None) and _USUAL.get(name) != value
    ]
    words = urlencode(stated, doseq=True)
    return f"{path}?{words}" if words else path


def query_address(run: str, query: str, state: Mapping[str, Any], **changes: Any) -> str:
    """The page of a query, which remembers the list that it was chosen from."""
    return address(f"/runs/{quote(run, safe='')}/query", {"id": query, **state}, **changes)
