"""Errors as pages for people and as JSON below ``/api``: never a traceback, never a path of this computer.

What is not the user's error is answered by :class:`crosslens.web.security.Guard`.
"""

from __future__ import annotations

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
    401: "Log in first", 403: "Not allowed", 404: "Not found", 405: "Not possible", 409: "Already changed",
    413: "Too large", 415: "Another kind of file", 422: "Not valid", 429: "Too many requests", 500: "Something failed",
    501: "Not installed",
}  # fmt: skip


class Problem(BaseModel):
    """What went wrong, and what can be done about it."""

    problem: str
    fix: str | None = None


def status_of(error: CrosslensError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, UnknownNameError) or error.code in _MISSING:
        return 404
    if error.code == "outside":
        return 403
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

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        response = answer(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        parts = [f"{'.'.join(map(str, part['loc'][1:]))}: {part['msg']}" for part in error.errors()[:5]]
        return answer(request, 422, printable("; ".join(parts)))


def answer(request: Request, status: int, problem: str, fix: str | None = None) -> Response:
    """The error as JSON below ``/api``, as plain text for pictures, else as a page."""
    path = request.url.path
    if path.startswith("/api/"):
        return JSONResponse(Problem(problem=problem, fix=fix).model_dump(), status)
    if path.startswith("/pictures/"):
        return Response(problem, status, media_type="text/plain")
    return render(
        request, "error.html", status=status, heading=_HEADINGS.get(status, "Error"), problem=problem, fix=fix
    )
