"""The frame that draws the points, the only document of the server that may evaluate strings.

regl, which regl-scatterplot draws with, compiles its drawing commands with ``Function(…)``, which the policy of pages
forbids. So the points are drawn in a frame with a policy of its own, which takes everything else away: ``sandbox``
without ``allow-same-origin`` gives it an origin that is nobody's, so it has no cookies and cannot look into the page,
and ``default-src 'none'`` leaves it no network but its own three files. It is sent numbers and sends numbers.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse

from crosslens.web.layout.rendering import render
from crosslens.web.layout.static_files import version
from crosslens.web.security import CONTENT_SECURITY_POLICY
from crosslens.web.services import Services

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
