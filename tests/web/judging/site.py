"""The application with a judging database, and clients that are logged in to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from crosslens.web import WebSettings, app as application
from crosslens.web.judging.accounts import open_session
from crosslens.web.judging.context import SESSION_COOKIE
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.tables import AccountRow

ADDRESS = "http://127.0.0.1:8000"


class Visitor:
    """A browser without a window: keeps cookies, repeats the token of each form."""

    def __init__(self, app: Any, address: str = ADDRESS) -> None:
        self.client = TestClient(app, base_url=address, raise_server_exceptions=False, follow_redirects=False)

    def get(self, path: str) -> Response:
        return self.client.get(path)

    def post(self, path: str, data: Mapping[str, Any] | None = None, token: str | None = None) -> Response:
        if token is None:
            if "crosslens_csrf" not in self.client.cookies:
                self.get("/login")
            token = self.client.cookies["crosslens_csrf"]
        return self.client.post(path, data={**(data or {}), "csrf_token": token})


class Site:
    """An application over an empty folder, with some features or all.

    FastAPI analyses every address of every application: most of what a short test takes.
    """

    def __init__(self, folder: Path, features: Sequence[str] = application.FEATURES, **settings: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.settings = WebSettings(folder, cache=folder.parent / "cache", **settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(application, "FEATURES", features)
            self.app = application.create_app(self.settings)
        self.address = settings.get("database") or f"sqlite:///{folder}/judging.sqlite"
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """A second connection to the application's database."""
        if self._database is None:
            self._database = open_database(self.address)
        return self._database

    def visitor(self, account: int | None = None, address: str = ADDRESS) -> Visitor:
        visitor = Visitor(self.app, address)
        if account is not None:
            visitor.client.cookies.set(SESSION_COOKIE, open_session(self.database, account))
        return visitor

    def owner(self, name: str = "olga") -> int:
        """An owner's account."""
        with self.database.writing() as session:
            row = AccountRow(name=name, name_key=name, password_hash=None, is_owner=True, created=self.database.now())
            session.add(row)
            session.flush()
            return row.id


def assignment_on(page: Response) -> int:
    """The assignment that a page asks about."""
    match = re.search(r'name="assignment" value="(\d+)"', page.text)
    assert match is not None, page.text
    return int(match[1])


def addresses(routes: Iterable[Any]) -> list[tuple[str, str]]:
    """Method and path of everything an application offers, in the routers that it includes too."""
    routes_of_app: list[tuple[str, str]] = []
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            routes_of_app += addresses(inner.routes)
        else:
            routes_of_app += [(method, route.path) for method in sorted(getattr(route, "methods", None) or ())]
    return routes_of_app
