"""Errors as pages for people and as JSON below ``/api``: never a traceback, never a path of this computer.

What is not the user's error is answered by :class:`crosslens.web.security.Guard`.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crosslens.core import ConflictError, CrosslensError, InputError, MissingExtraError, UnknownNameError, printable
from crosslens.web.layout.rendering import render

_MISSING = ("unknown-id", "unknown-name", "gone")
_HEADINGS = {
    400: "Not understood", 401: "Log in first", 403: "Not allowed", 404: "Not found", 405: "Not possible",
    409: "Already changed", 413: "Too large", 415: "Another kind of file", 422: "Not valid", 429: "Too many requests",
    500: "Something failed", 501: "Not installed",
}  # fmt: skip


class Problem(BaseModel):
    """What went wrong, and what can be done about it."""

    problem: str
    fix: str | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
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


def status_of(error: CrosslensError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, UnknownNameError) or error.code in _MISSING:
        return 404
    if error.code in ("outside", "too-many"):
        return 403 if error.code == "outside" else 429
    if isinstance(error, ConflictError):
        return 409
    return 501 if isinstance(error, MissingExtraError) else 422


def add_to(app: FastAPI) -> None:
    """Answer every error."""

    @app.exception_handler(CrosslensError)
    def known(request: Request, error: CrosslensError) -> Response:
        # The file is left out: who reads the page need not know where things are on this computer.
        row = f"row {error.row}: " if isinstance(error, InputError) and error.row is not None else ""
        return answer(request, status_of(error), printable(row + error.problem), error.fix)

    app.add_exception_handler(HTTPException, refused)  # type: ignore[arg-type]

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        parts = [f"{'.'.join(map(str, part['loc'][1:]))}: {part['msg']}" for part in error.errors()[:5]]
        return answer(request, 422, printable("; ".join(parts)))


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
