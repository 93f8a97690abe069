"""Scripts and style sheets under addresses that hold their hash, so that browsers may keep them for good.

``web/<feature>/static/x.js`` is ``/static/<hash>/<feature>/x.js``. The hash is of all files together and stands in the
folder part: a script can import another one by its relative path.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from crosslens.report import CHART_STYLE

ROOM = Path(__file__).resolve().parents[1]
_MEDIA = {
    ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".json":
    "application/json", ".wasm": "application/wasm", ".woff2": "font/woff2", ".txt": "text/plain",
}  # fmt: skip


@cache
def static_files() -> dict[str, Path]:
    """Every static file of the room: ``explorer/x.js`` → its path. What is not listed here is not served."""
    files = {}
    for folder in sorted(ROOM.rglob("static")):
        feature = folder.parent.relative_to(ROOM).as_posix()
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


def add_to(app: FastAPI) -> None:
    """Serve the static files, and the style that charts have on all pages and in reports."""

    @app.get("/charts.css", include_in_schema=False)
    def chart_style() -> Response:
        return Response(CHART_STYLE, media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    @app.get("/static/{hashed}/{name:path}", include_in_schema=False)
    def static(hashed: str, name: str) -> FileResponse:
        file = static_files().get(name)
        if file is None:
            raise HTTPException(404, "There is no such file.")
        kept = "public, max-age=31536000, immutable" if hashed == version() else "no-store"
        return FileResponse(file, media_type=_MEDIA[file.suffix], headers={"Cache-Control": kept})
