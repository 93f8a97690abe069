"""Who takes part: members and invitations of a project, all accounts of the server, and the log of what was done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError
from crosslens.web.judging.accounts.invitations import create_invitation, open_invitations, revoke_invitation
from crosslens.web.judging.accounts.people import Account
from crosslens.web.judging.accounts.revoking import (
    RESET_DAYS,
    close_account,
    end_sessions,
    list_accounts,
    make_reset_link,
    remove_member,
)
from crosslens.web.judging.context import JudgingContext, RowId
from crosslens.web.judging.database.audit import audit_log
from crosslens.web.judging.database.projects import members
from crosslens.web.judging.database.tables import OWNER
from crosslens.web.judging.owning.kept_results import KeptResults
from crosslens.web.judging.owning.results_pages import page
from crosslens.web.judging.wording import sentence
from crosslens.web.layout.rendering import render
from crosslens.web.security import own_address

LOG_PAGE = 100
Before = Annotated[int, Query(ge=0, le=10**9)]


def add_pages(routes: APIRouter, context: JudgingContext, kept: KeptResults) -> None:
    """Add the addresses: those of a project for its owners, those of all accounts for owners of the server."""
    _add_members(routes, context, kept)
    _add_accounts(routes, context)


def _add_members(routes: APIRouter, context: JudgingContext, kept: KeptResults) -> None:
    owner = Depends(context.require_owner)

    def people_page(request: Request, project: int, account: Account, **values: Any) -> Response:
        results = kept.of(context.database, project)
        rows = {row["account"]: row for row in results.people.iter_rows(named=True)}
        listed = [(number, name, role, rows.get(name)) for number, name, role in members(context.database, project)]
        links = open_invitations(context.database, project)
        shown = {"link": "", "problem": ""} | values
        return page(request, "people.html", account, results, people=listed, invitations=links, **shown)

    @routes.get("/projects/{project}/owner/people", include_in_schema=False)
    def people(request: Request, project: RowId, account: Account = owner) -> Response:
        return people_page(request, project, account)

    @routes.post("/projects/{project}/owner/invite", include_in_schema=False)
    def invite(
        request: Request, project: RowId, account: Account = owner, uses: Annotated[int, Form()] = 1,
        days: Annotated[float, Form()] = 7, role: Annotated[str, Form()] = "annotator",
    ) -> Response:  # fmt: skip
        try:
            token = create_invitation(context.database, project, role=role, uses=uses, days=days, by=account.id)
        except CrosslensError as error:
            return people_page(request, project, account, problem=sentence(error))
        return people_page(request, project, account, link=f"{own_address(request)}/join/{token}")

    def after(change: Callable[[], None], request: Request, project: int, account: Account) -> Response:
        try:
            change()
        except CrosslensError as error:
            return people_page(request, project, account, problem=sentence(error))
        return RedirectResponse(f"/projects/{project}/owner/people", 303)

    @routes.post("/projects/{project}/owner/people/{member}/remove", include_in_schema=False)
    def remove(request: Request, project: RowId, member: RowId, account: Account = owner) -> Response:
        removal = partial(remove_member, context.database, project, member, account.id)
        return after(removal, request, project, account)

    @routes.post("/projects/{project}/owner/invitations/{invitation}/revoke", include_in_schema=False)
    def revoke(request: Request, project: RowId, invitation: str, account: Account = owner) -> Response:
        revocation = partial(revoke_invitation, context.database, project, invitation, account.id)
        return after(revocation, request, project, account)

    @routes.get("/projects/{project}/owner/log", include_in_schema=False)
    def project_log(request: Request, project: RowId, account: Account = owner, before: Before = 0) -> Response:
        entries = audit_log(context.database, project, limit=LOG_PAGE + 1, before=before)
        return page(
            request, "log.html", account, kept.of(context.database, project), entries=entries[:LOG_PAGE],
            older=before + LOG_PAGE if len(entries) > LOG_PAGE else None,
        )  # fmt: skip


def _add_accounts(routes: APIRouter, context: JudgingContext) -> None:
    owner = Depends(context.require_owner_account)

    def accounts_page(
        request: Request, account: Account, problem: str = "", link: str = "", note: str = ""
    ) -> Response:
        return render(
            request, "judging/owning/accounts.html", status=422 if problem else 200, account=account,
            accounts=list_accounts(context.database), invitations=open_invitations(context.database, None),
            problem=problem, link=link, note=note,
        )  # fmt: skip

    @routes.get("/accounts", include_in_schema=False)
    def accounts(request: Request, account: Account = owner) -> Response:
        return accounts_page(request, account)

    @routes.post("/accounts/{other}/{action}", include_in_schema=False)
    def change(
        request: Request, other: RowId, action: Literal["sessions", "reset", "close"], account: Account = owner
    ) -> Response:
        try:
            if action == "sessions":
                ended = end_sessions(context.database, other, account.id)
                return accounts_page(request, account, note=f"Sessions ended: {ended}.")
            if action == "reset":
                token = make_reset_link(context.database, other, account.id)
                note = (
                    f"The old password and all sessions have ended. The link sets a new one, within {RESET_DAYS} days."
                )
                return accounts_page(request, account, link=f"{own_address(request)}/reset/{token}", note=note)
            pseudonym = close_account(context.database, other, account.id)
        except CrosslensError as error:
            return accounts_page(request, account, problem=sentence(error))
        if other == account.id:
            return RedirectResponse("/login", 303)
        return accounts_page(request, account, note=f"The account was closed; it is now {pseudonym}.")

    @routes.post("/accounts/invite", include_in_schema=False)
    def invite_owner(request: Request, account: Account = owner) -> Response:
        token = create_invitation(context.database, None, role=OWNER, by=account.id)
        note = "The link makes one person an owner of the server, who sees and changes everything, within 7 days."
        return accounts_page(request, account, link=f"{own_address(request)}/join/{token}", note=note)

    @routes.post("/accounts/invitations/{invitation}/revoke", include_in_schema=False)
    def revoke_owner(request: Request, invitation: str, account: Account = owner) -> Response:
        try:
            revoke_invitation(context.database, None, invitation, account.id)
        except CrosslensError as error:
            return accounts_page(request, account, problem=sentence(error))
        return RedirectResponse("/accounts", 303)

    @routes.get("/accounts/log", include_in_schema=False)
    def log(request: Request, account: Account = owner, before: Before = 0) -> Response:
        entries = audit_log(context.database, limit=LOG_PAGE + 1, before=before)
        older = before + LOG_PAGE if len(entries) > LOG_PAGE else None
        return render(request, "judging/owning/full_log.html", account=account, entries=entries[:LOG_PAGE], older=older)
