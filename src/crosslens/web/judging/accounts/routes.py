"""Pages about accounts: login, password, invitation links, the first account."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError
from crosslens.web.access import TooManyAttempts
from crosslens.web.judging.accounts.invitations import accept_invitation, accept_with_new_account, invitation
from crosslens.web.judging.accounts.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from crosslens.web.judging.accounts.people import LONGEST_NAME, create_first_owner, set_password
from crosslens.web.judging.accounts.revoking import end_sessions, reset_account, reset_password
from crosslens.web.judging.accounts.sessions import account_with_password, log_in, log_out
from crosslens.web.judging.context import SESSION_COOKIE, JudgingContext, local_path, start_session
from crosslens.web.judging.wording import sentence
from crosslens.web.layout.rendering import render

Text = Annotated[str, Form(max_length=1_000)]
_LIMITS = {"shortest": SHORTEST_PASSWORD, "longest": LONGEST_PASSWORD, "longest_name": LONGEST_NAME}


def router(context: JudgingContext) -> APIRouter:
    """Addresses about accounts."""
    routes = APIRouter(include_in_schema=False)
    _add_login(routes, context)
    _add_password(routes, context)
    _add_invitations(routes, context)
    _add_setup(routes, context)
    _add_reset(routes, context)
    return routes


def _page(
    request: Request, context: JudgingContext, page: str, problem: str = "", status: int = 200, **values: object
) -> Response:
    account = context.account(request)
    template = f"judging/accounts/{page}.html"
    return render(request, template, status=status, account=account, problem=problem, **_LIMITS, **values)


def _waiting(page: Response, error: CrosslensError) -> Response:
    if isinstance(error, TooManyAttempts):
        page.headers["Retry-After"] = str(error.seconds)
    return page


def _add_login(routes: APIRouter, context: JudgingContext) -> None:
    @routes.get("/login")
    def login_page(request: Request, next: str = "") -> Response:
        return _page(request, context, "login", next=local_path(next), name="")

    @routes.post("/login")
    async def login(request: Request, name: Text = "", password: Text = "", next: Text = "") -> Response:
        def check() -> str:
            if not context.exists:
                raise CrosslensError("there are no accounts yet")
            return log_in(context.database, name, password)

        def again(error: CrosslensError) -> Response:
            status = 429 if isinstance(error, TooManyAttempts) else 401
            page = _page(request, context, "login", sentence(error), status, next=local_path(next), name=name)
            return _waiting(page, error)

        try:
            token = await context.limited(request, name, check)
        except CrosslensError as error:
            return await run_in_threadpool(again, error)
        return start_session(request, RedirectResponse(local_path(next), 303), token)

    @routes.post("/logout")
    def logout(request: Request) -> Response:
        token = request.cookies.get(SESSION_COOKIE)
        if token and context.exists:
            log_out(context.database, token)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(SESSION_COOKIE)
        return response


def _add_password(routes: APIRouter, context: JudgingContext) -> None:
    @routes.get("/account")
    def account_page(request: Request, changed: bool = False) -> Response:
        context.require_account(request)
        return _page(request, context, "account", changed=changed)

    @routes.post("/account/password")
    async def change_password(request: Request, old: Text = "", new: Text = "") -> Response:
        account = await run_in_threadpool(context.require_account, request)

        def check() -> str:
            known = account_with_password(context.database, account.name, old)
            if known is None:
                raise CrosslensError("the present password is wrong")
            return known[1]

        def change(verified: str) -> Response:
            set_password(context.database, account.id, new, verified=verified)
            # Every session has ended, this one too: whoever knew the old password is out.
            token = log_in(context.database, account.name, new)
            return start_session(request, RedirectResponse("/account?changed=1", 303), token)

        def again(error: CrosslensError) -> Response:
            context.require_account(request)  # the session may have ended meanwhile
            status = 429 if isinstance(error, TooManyAttempts) else 422
            return _waiting(_page(request, context, "account", sentence(error), status, changed=False), error)

        try:
            verified = await context.limited(request, account.name, check)
            return await run_in_threadpool(change, verified)
        except CrosslensError as error:
            return await run_in_threadpool(again, error)

    @routes.post("/account/sessions")
    def log_out_others(request: Request) -> Response:
        account = context.require_account(request)
        end_sessions(context.database, account.id, account.id)
        return RedirectResponse("/login", 303)


def _add_invitations(routes: APIRouter, context: JudgingContext) -> None:
    def shown(request: Request, token: str, problem: str = "", status: int = 200, name: str = "") -> Response:
        offer = invitation(context.database, token) if context.exists else None
        if offer is None:
            raise HTTPException(
                404,
                "This link is not valid: it has been used or has expired. Ask the owner of the project for a new one.",
            )
        return _page(request, context, "join", problem, status, offer=offer, token=token, name=name)

    def target(project: int | None) -> str:
        return "/judging" if project is None else f"/projects/{project}"

    @routes.get("/join/{token}")
    def join_page(request: Request, token: str) -> Response:
        return shown(request, token)

    @routes.post("/join/{token}")
    def join(request: Request, token: str) -> Response:
        account = context.require_account(request)
        return RedirectResponse(target(accept_invitation(context.database, token, account.id)), 303)

    @routes.post("/join/{token}/account")
    def join_with_account(request: Request, token: str, name: Text = "", password: Text = "") -> Response:
        offer = invitation(context.database, token) if context.exists else None
        if offer is None:
            return shown(request, token)
        try:
            account = accept_with_new_account(context.database, token, name, password)
        except CrosslensError as error:
            return shown(request, token, sentence(error), 422, name)
        response = RedirectResponse(target(offer.project), 303)
        return start_session(request, response, log_in(context.database, account.name, password))


def _add_setup(routes: APIRouter, context: JudgingContext) -> None:
    def check(token: str) -> None:
        if not context.may_set_up(token):
            raise HTTPException(404, "This link is not valid. The terminal of the server shows it at each start.")

    @routes.get("/setup/{token}")
    def setup_page(request: Request, token: str) -> Response:
        check(token)
        return _page(request, context, "setup", token=token, name="")

    @routes.post("/setup/{token}")
    def setup(request: Request, token: str, name: Text = "", password: Text = "") -> Response:
        check(token)
        try:
            account = create_first_owner(context.database, name, password)
        except CrosslensError as error:
            check(token)
            return _page(request, context, "setup", sentence(error), 422, token=token, name=name)
        response = RedirectResponse("/judging", 303)
        return start_session(request, response, log_in(context.database, account.name, password))


def _add_reset(routes: APIRouter, context: JudgingContext) -> None:
    def shown(request: Request, token: str, problem: str = "", status: int = 200) -> Response:
        account = reset_account(context.database, token) if context.exists else None
        if account is None:
            raise HTTPException(
                404, "This link is not valid: it has been used or has expired. Ask an owner for a new one."
            )
        return _page(request, context, "reset", problem, status, token=token, of=account)

    @routes.get("/reset/{token}")
    def reset_page(request: Request, token: str) -> Response:
        return shown(request, token)

    @routes.post("/reset/{token}")
    def reset(request: Request, token: str, password: Text = "") -> Response:
        shown(request, token)  # before a hash is computed for nothing
        try:
            account = reset_password(context.database, token, password)
        except CrosslensError as error:
            return shown(request, token, sentence(error), 422)
        return start_session(
            request, RedirectResponse("/judging", 303), log_in(context.database, account.name, password)
        )
