"""What the pages of judging share: the database, who is asking, and what they may do."""

from __future__ import annotations

import secrets
from pathlib import Path
from threading import Lock
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Path as PathParameter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.web.judging.accounts.people import Account, has_owner
from crosslens.web.judging.accounts.sessions import SESSION_SECONDS, LoginLimits, session_account, session_visit
from crosslens.web.judging.accounts.tokens import new_token
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.projects import JudgingProject
from crosslens.web.judging.database.tables import OWNER
from crosslens.web.judging.options import DATABASE_FILE
from crosslens.web.settings import WebSettings

LARGEST_ID = 2**31 - 1
RowId = Annotated[int, PathParameter(ge=1, le=LARGEST_ID)]
"""The id of a project, an item … in an address; larger numbers would not fit into the database."""
SESSION_COOKIE = "crosslens_session"
_SHARED_PATHS = ("/pictures/", "/judging", "/projects/", "/account")
"""What somebody who owns nothing reaches where the server asks everybody to log in."""


class JudgingContext:
    """The database of the server, opened when it is first needed, and the rules of access."""

    def __init__(self, settings: WebSettings) -> None:
        self.settings = settings
        self.limits = LoginLimits()
        self._address: str | Path = settings.database or settings.folder / DATABASE_FILE
        self._database: Database | None = None
        self._opening = Lock()
        self._setup_token = new_token()
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
        """Whether the first account has been made."""
        return self.exists and has_owner(self.database)

    @property
    def setup_path(self) -> str | None:
        """Where the first account is made; only the terminal of the server shows it."""
        return None if self.has_owner else f"/setup/{self._setup_token}"

    def may_set_up(self, token: str) -> bool:
        """Whether this is the token of the set-up page, and it has not been used yet."""
        return secrets.compare_digest(token.encode(), self._setup_token.encode()) and not self.has_owner

    def account(self, request: Request) -> Account | None:
        """Who is logged in; None for nobody."""
        token = request.cookies.get(SESSION_COOKIE)
        return session_account(self.database, token) if token and self.exists else None

    def require_account(self, request: Request) -> Account:
        """Who is logged in; everybody else is sent to the login page."""
        account = self.account(request)
        if account is None:
            raise _log_in_first(request)
        return account

    def require_owner_account(self, request: Request) -> Account:
        """An account that may create projects."""
        account = self.require_account(request)
        if not account.is_owner:
            raise HTTPException(403, "Only an owner can do this.")
        return account

    def require_member(self, request: Request, project: int) -> tuple[Account, JudgingProject, bool]:
        """Account, project, and whether the account owns it. Others learn nothing, not even that it exists."""
        token = request.cookies.get(SESSION_COOKIE)
        visit = session_visit(self.database, token, project) if token and self.exists else None
        if visit is None:
            raise _log_in_first(request)
        if visit.project is None or (visit.role is None and not visit.account.is_owner):
            raise HTTPException(404, "There is no such project.")
        return visit.account, visit.project, visit.role == OWNER or visit.account.is_owner

    def require_owner(self, request: Request, project: RowId) -> Account:
        """An owner of the project; annotators are refused. Also a dependency of routes with ``{project}``."""
        account, _, is_owner = self.require_member(request, project)
        if not is_owner:
            raise HTTPException(403, "Only an owner of the project can see this page.")
        return account

    def require_login(self, request: Request) -> Response | None:
        """For a server that others can reach: owners see everything, annotators only what they judge."""
        account = self.account(request)
        if account is None:
            return RedirectResponse(_login_address(request), 303)
        if not account.is_owner and not request.url.path.startswith(_SHARED_PATHS):
            return RedirectResponse("/judging", 303) if request.url.path == "/" else Response("Not allowed.", 403)
        return None


def _log_in_first(request: Request) -> HTTPException:
    return HTTPException(303, "Log in first.", {"Location": _login_address(request)})


def start_session(request: Request, response: Response, token: str) -> Response:
    """Give the browser the cookie of a new session."""
    response.set_cookie(
        SESSION_COOKIE, token, max_age=SESSION_SECONDS, httponly=True, samesite="lax",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return response


def local_path(address: str | None) -> str:
    """Where to go after the login: a path of this server, whatever the address says."""
    parts = urlsplit((address or "").replace("\\", "/"))
    is_local = not parts.scheme and not parts.netloc and parts.path.startswith("/") and not parts.path.startswith("//")
    printable = address is not None and address.isprintable()
    return address if address and is_local and printable else "/judging"


def _login_address(request: Request) -> str:
    if request.method != "GET":
        return "/login"
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/login?next={quote(request.url.path + query, safe='')}"
