"""What the pages of judging share: the database, who is asking, and what they may do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Annotated, TypeVar
from urllib.parse import quote

from fastapi import Path as PathParameter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError
from crosslens.web import security
from crosslens.web.access import LoginLimit
from crosslens.web.judging.accounts import (
    SESSION_SECONDS,
    Account,
    Member,
    in_turn,
    may_see_picture,
    name_key,
    new_token,
    owner_count,
    session_account,
    session_member,
)
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.options import DATABASE_FILE
from crosslens.web.pages import refused
from crosslens.web.settings import WebSettings

LARGEST_ID = 2**31 - 1
RowId = Annotated[int, PathParameter(ge=1, le=LARGEST_ID)]
"""The id of a project, an item … in an address; larger numbers would not fit into the database."""
SESSION_COOKIE = "crosslens_session"
_SHARED_PATHS = ("/pictures/", "/judging", "/projects/", "/account")
"""What somebody who owns nothing reaches where the server asks everybody to log in."""
_ROW_ID = re.compile("[1-9][0-9]{0,9}")
T = TypeVar("T")


class JudgingContext:
    """The database of the server, opened when it is first needed, and the rules of access."""

    def __init__(self, settings: WebSettings, limit: LoginLimit | None = None) -> None:
        self.settings = settings
        self._limit = limit or LoginLimit()
        self._address: str | Path = settings.database or settings.folder / DATABASE_FILE
        self._database: Database | None = None
        self._opening = Lock()
        self.setup_token = new_token()
        if self.exists:
            self._database = open_database(self._address)

    @property
    def exists(self) -> bool:
        """Whether there is a database. In a served folder, none is made before somebody wants to judge."""
        return self._database is not None or not isinstance(self._address, Path) or self._address.exists()

    @property
    def database(self) -> Database:
        """The database, created and brought to the newest format where necessary."""
        with self._opening:
            if self._database is None:
                self._database = open_database(self._address)
            return self._database

    @property
    def has_owner(self) -> bool:
        """Whether anybody may create projects."""
        if not self.exists:
            return False
        with self.database.reading() as session:
            return bool(owner_count(session))

    @property
    def setup_path(self) -> str | None:
        """Where the first account is made; only the terminal of the server shows it."""
        return None if self.has_owner else f"/setup/{self.setup_token}"

    def account(self, request: Request) -> Account | None:
        token = request.cookies.get(SESSION_COOKIE)
        return session_account(self.database, token) if token and self.exists else None

    def require_account(self, request: Request) -> Account:
        """Who is logged in; everybody else is sent to the login page."""
        account = self.account(request)
        if account is None:
            raise _log_in_first(request)
        return account

    def require_owner_account(self, request: Request) -> Account:
        account = self.require_account(request)
        if not account.is_owner:
            raise HTTPException(403, "Only an owner can do this.")
        return account

    def require_member(self, request: Request, project: RowId) -> Member:
        """A member of the project, or an owner of the server. Others learn nothing, not even that it exists.

        A dependency of routes with ``{project}``, as is :meth:`require_owner`; the check of the route asks first.
        """
        member: Member | None = getattr(request.state, "member", None)
        if member is not None and member.project.id == project:
            return member
        token = request.cookies.get(SESSION_COOKIE)
        visitor = session_member(self.database, token, project) if token and self.exists else None
        if visitor is None:
            raise _log_in_first(request)
        if visitor[1] is None:
            raise HTTPException(404, "There is no such project.")
        request.state.member = visitor[1]
        return visitor[1]

    def require_owner(self, request: Request, project: RowId) -> Account:
        """An owner of the project; annotators are refused."""
        member = self.require_member(request, project)
        if not member.is_owner:
            raise HTTPException(403, "Only an owner of the project can see this page.")
        return member.account

    def may_see_picture(self, request: Request, dataset: str, image: str) -> bool:
        """Whether a picture is shown: to owners all, to others those of their projects.

        Where nobody has to log in, or all share one password, who is not logged in as a judge sees what the explorer
        shows: everything.
        """
        token = request.cookies.get(SESSION_COOKIE)
        if self.settings.password is not None or not self.exists:
            return True
        if token and may_see_picture(self.database, token, dataset, image):
            return True
        return self.settings.is_local and self.account(request) is None

    def require_login(self, request: Request) -> Response | None:
        """For a server that others can reach: owners see everything, annotators only what they judge."""
        account, path = self.account(request), request.scope["path"]
        if account is None:
            return refused(request, _log_in_first(request))
        if not account.is_owner and not path.startswith(_SHARED_PATHS):
            if path == "/":
                return RedirectResponse("/judging", 303)
            return refused(request, HTTPException(403, "Not allowed: this is for owners."))
        return None

    def refuse_route(self, route: str, request: Request, values: Mapping[str, str]) -> Response | None:
        """The answer to who may not ask for a route, before anything of the request is read; None for the others."""
        try:
            if route.startswith("/accounts"):
                self.require_owner_account(request)
            elif (number := values.get("project")) is None:
                if route != "/judging" or self.has_owner:
                    self.require_account(request)
            elif _ROW_ID.fullmatch(number) and int(number) <= LARGEST_ID:
                is_owners = "/owner" in route or route.startswith(("/judging/upload/", "/api/"))
                (self.require_owner if is_owners else self.require_member)(request, int(number))
            else:
                self.require_account(request)
                raise HTTPException(404, "There is no such project.")
        except HTTPException as error:
            return refused(request, error)
        return None

    async def limited(self, request: Request, name: str, check: Callable[[], T]) -> T:
        """What ``check`` returns, within the limit of wrong passwords; it raises where the password is wrong."""
        async with self._limit.attempt(request, f"account {name_key(name)[:200]}") as attempt:
            result = await in_turn(check)
            attempt.is_right = True
            return result


def _log_in_first(request: Request) -> HTTPException:
    path = request.scope["path"]
    if path.startswith(("/api/", "/pictures/")):
        return HTTPException(401, "Log in first.")
    address = quote(path) + ("?" + request.scope["query_string"].decode("latin-1")).rstrip("?")
    follows = f"?next={quote(address, safe='')}" if request.method == "GET" else ""
    return HTTPException(303, "Log in first.", {"Location": f"/login{follows}"})


def start_session(request: Request, response: Response, token: str) -> Response:
    """Give the browser the cookie of a new session."""
    response.set_cookie(
        SESSION_COOKIE, token, max_age=SESSION_SECONDS, httponly=True, samesite="lax",
        secure=request.scope["scheme"] == "https",
    )  # fmt: skip
    return response


def local_path(address: str | None) -> str:
    """Where to go after the login: a path of this server, whatever the address says."""
    return security.local_path(address or "") or "/judging"


def sentence(error: CrosslensError) -> str:
    """The error as a sentence on a page."""
    text = error.problem if error.fix is None else f"{error.problem}: {error.fix}"
    return f"{text[:1].upper()}{text[1:]}."
