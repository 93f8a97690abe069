"""What every feature of the application is given."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from crosslens.web.access import LoginLimit
from crosslens.web.library import RunLibrary
from crosslens.web.pictures import PictureStore
from crosslens.web.settings import WebSettings

BODY_BYTES = 1 << 20
"""The largest body of a request, where a feature does not declare another."""
RouteCheck = Callable[[Request, Mapping[str, str]], Response | None]


@dataclass
class Services:
    """The library of runs, the pictures, and what features add while their routers are made.

    ``require_login`` answers a request of somebody who is not logged in (a redirect to a login page) and returns None
    for everybody else; it is asked for every request where the server can be reached from other computers, except for
    ``open_paths``, those that end in ``/`` with all below them. ``route_checks`` hold for their paths on every server:
    they are given the parts of the path, and answer whom it is not for. Both are asked before anything else of a
    request is read. ``may_see_picture`` says whether a request is answered with a picture (dataset, image); it is asked
    for every picture. ``body_limits`` maps the beginning of a path to the largest body it takes, in bytes.
    ``navigation`` holds address and title of each page that the head of all pages links to. ``start_notes`` are printed
    when the server starts, with ``{address}`` replaced by its own; ``start_work`` is done in the background then, one
    after the other: what the first visitor would have to wait for.
    """

    settings: WebSettings
    library: RunLibrary
    pictures: PictureStore
    login_limit: LoginLimit = field(default_factory=LoginLimit)
    require_login: Callable[[Request], Awaitable[Response | None]] | None = None
    may_see_picture: Callable[[Request, str, str], bool] = lambda request, dataset, image: True
    route_checks: list[tuple[re.Pattern[str], RouteCheck]] = field(default_factory=list)
    open_paths: list[str] = field(default_factory=lambda: ["/static/", "/charts.css"])
    body_limits: dict[str, int] = field(default_factory=dict)
    navigation: list[tuple[str, str]] = field(default_factory=list)
    start_notes: list[str] = field(default_factory=list)
    start_work: list[Callable[[], None]] = field(default_factory=list)

    def is_open(self, path: str) -> bool:
        """Whether nobody has to log in for this path."""
        return any(path.startswith(start) if start.endswith("/") else path == start for start in self.open_paths)

    def body_limit(self, path: str) -> int:
        """The largest body of a request to this path."""
        longest = max((start for start in self.body_limits if path.startswith(start)), key=len, default=None)
        return BODY_BYTES if longest is None else self.body_limits[longest]
