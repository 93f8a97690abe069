"""What every feature of the application is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from crosslens.web.library import RunLibrary
from crosslens.web.pictures import PictureStore
from crosslens.web.settings import WebSettings

BODY_BYTES = 1 << 20
"""The largest body of a request, where a feature does not declare another."""


@dataclass
class Services:
    """The library of runs, the pictures, and what features add while their routers are made.

    ``require_login`` answers a request of somebody who is not logged in (a redirect to a login page) and returns None
    for everybody else; it is asked for every request where the server can be reached from other computers, except below
    ``open_paths``. ``body_limits`` maps the beginning of a path to the largest body it takes, in bytes. ``navigation``
    holds address and title of each page that the head of all pages links to. ``start_notes`` are printed when the
    server starts, with ``{address}`` replaced by its own; ``start_work`` is done in the background then, one after the
    other: what the first visitor would have to wait for.
    """

    settings: WebSettings
    library: RunLibrary
    pictures: PictureStore
    require_login: Callable[[Request], Response | None] | None = None
    open_paths: list[str] = field(default_factory=lambda: ["/static/", "/charts.css"])
    body_limits: dict[str, int] = field(default_factory=dict)
    navigation: list[tuple[str, str]] = field(default_factory=list)
    start_notes: list[str] = field(default_factory=list)
    start_work: list[Callable[[], None]] = field(default_factory=list)

    def body_limit(self, path: str) -> int:
        """The largest body of a request to this path."""
        longest = max((start for start in self.body_limits if path.startswith(start)), key=len, default=None)
        return BODY_BYTES if longest is None else self.body_limits[longest]


def services_of(request: Request) -> Services:
    """The services of the application that received the request."""
    services: Services = request.app.state.services
    return services
