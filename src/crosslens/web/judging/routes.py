"""All addresses of judging."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from crosslens.core import CrosslensError
from crosslens.web.access import TooManyAttempts
from crosslens.web.judging.accounts import (
    LONGEST_NAME,
    LONGEST_PASSWORD,
    SHORTEST_PASSWORD,
    Member,
    OpenInvitation,
    accept_invitation,
    accept_with_new_account,
    account_with_password,
    create_first_owner,
    end_sessions,
    in_turn,
    invitation,
    log_in,
    log_out,
    reset_account,
    reset_password,
    set_password,
)
from crosslens.web.judging.context import (
    LARGEST_ID,
    SESSION_COOKIE,
    JudgingContext,
    RowId,
    local_path,
    sentence,
    start_session,
)
from crosslens.web.judging.database.assigning import Assigned, annotator_progress, assigned_item, next_item
from crosslens.web.judging.database.judgements import judge, undo
from crosslens.web.judging.database.projects import as_item, join, projects
from crosslens.web.judging.database.tables import OPEN, OWNER, ItemRow, JudgementRow
from crosslens.web.judging.owner_pages import owner_routers
from crosslens.web.judging.tasks import MOST_CHARACTERS, Answer, InvalidChoice, is_expected
from crosslens.web.pages import feature_router, render
from crosslens.web.security import Services

Text = Annotated[str, Form(max_length=1_000)]
_LIMITS = {"shortest": SHORTEST_PASSWORD, "longest": LONGEST_PASSWORD, "longest_name": LONGEST_NAME}


def _page(
    request: Request, context: JudgingContext, page: str, error: CrosslensError | None = None, status: int = 422,
    **values: object,
) -> Response:  # fmt: skip
    """A page about accounts, again with what is wrong where there is an error."""
    if isinstance(error, TooManyAttempts):
        status = 429
    answer = render(
        request, f"judging/{page}.html", status=200 if error is None else status,
        account=context.account(request), problem="" if error is None else sentence(error), **_LIMITS, **values,
    )  # fmt: skip
    if isinstance(error, TooManyAttempts):
        answer.headers["Retry-After"] = str(error.seconds)
    return answer


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

        try:
            token = await context.limited(request, name, check)
        except CrosslensError as error:
            again = partial(_page, request, context, "login", error, 401, next=local_path(next), name=name)
            return await run_in_threadpool(again)
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
            verified = account_with_password(context.database, account.name, old)
            if verified is None:
                raise CrosslensError("the present password is wrong")
            return verified[1]

        def again(error: CrosslensError) -> Response:
            context.require_account(request)  # the session may have ended meanwhile
            return _page(request, context, "account", error, changed=False)

        try:
            verified = await context.limited(request, account.name, check)
            # Every session ends, this one too: whoever knew the old password is out.
            token = await in_turn(partial(set_password, context.database, account.id, new, verified=verified))
            return start_session(request, RedirectResponse("/account?changed=1", 303), token)
        except CrosslensError as error:
            return await run_in_threadpool(again, error)

    @routes.post("/account/sessions")
    def log_out_others(request: Request) -> Response:
        account = context.require_account(request)
        end_sessions(context.database, account.id, account.id)
        return RedirectResponse("/login", 303)


def _add_invitations(routes: APIRouter, context: JudgingContext) -> None:
    def invited_to(token: str) -> OpenInvitation:
        invited = invitation(context.database, token) if context.exists else None
        if invited is None:
            raise HTTPException(
                404,
                "This link is not valid: it has been used or has expired. Ask the owner of the project for a new one.",
            )
        return invited

    def join_form(request: Request, token: str, error: CrosslensError | None = None, name: str = "") -> Response:
        return _page(request, context, "join", error, invited=invited_to(token), token=token, name=name)

    def target(project: int | None) -> str:
        return "/judging" if project is None else f"/projects/{project}"

    @routes.get("/join/{token}")
    def join_page(request: Request, token: str) -> Response:
        return join_form(request, token)

    @routes.post("/join/{token}")
    def join(request: Request, token: str) -> Response:
        account = context.require_account(request)
        return RedirectResponse(target(accept_invitation(context.database, token, account.id)), 303)

    @routes.post("/join/{token}/account")
    async def join_with_account(request: Request, token: str, name: Text = "", password: Text = "") -> Response:
        invited = await run_in_threadpool(invited_to, token)
        try:
            session = await in_turn(partial(accept_with_new_account, context.database, token, name, password))
        except CrosslensError as error:
            return await run_in_threadpool(join_form, request, token, error, name)
        return start_session(request, RedirectResponse(target(invited.project), 303), session)


def _add_setup(routes: APIRouter, context: JudgingContext) -> None:
    def check(token: str) -> None:
        is_right = secrets.compare_digest(token.encode(), context.setup_token.encode())
        if not is_right or context.has_owner:  # it has been used
            raise HTTPException(404, "This link is not valid. The terminal of the server shows it at each start.")

    @routes.get("/setup/{token}")
    def setup_page(request: Request, token: str) -> Response:
        check(token)
        return _page(request, context, "setup", token=token, name="")

    @routes.post("/setup/{token}")
    async def setup(request: Request, token: str, name: Text = "", password: Text = "") -> Response:
        def again(error: CrosslensError) -> Response:
            check(token)
            return _page(request, context, "setup", error, token=token, name=name)

        await run_in_threadpool(check, token)
        try:
            session = await in_turn(partial(create_first_owner, context.database, name, password))
        except CrosslensError as error:
            return await run_in_threadpool(again, error)
        return start_session(request, RedirectResponse("/judging", 303), session)


def _add_reset(routes: APIRouter, context: JudgingContext) -> None:
    def reset_form(request: Request, token: str, error: CrosslensError | None = None) -> Response:
        account = reset_account(context.database, token) if context.exists else None
        if account is None:
            raise HTTPException(
                404, "This link is not valid: it has been used or has expired. Ask an owner for a new one."
            )
        return _page(request, context, "reset", error, token=token, of=account)

    @routes.get("/reset/{token}")
    def reset_page(request: Request, token: str) -> Response:
        return reset_form(request, token)

    @routes.post("/reset/{token}")
    async def reset(request: Request, token: str, password: Text = "") -> Response:
        await run_in_threadpool(reset_form, request, token)  # before a hash is computed for nothing
        try:
            session = await in_turn(partial(reset_password, context.database, token, password))
        except CrosslensError as error:
            return await run_in_threadpool(reset_form, request, token, error)
        return start_session(request, RedirectResponse("/judging", 303), session)


NOTES = {
    "expired": "That item had been open for too long and went to somebody else. Your answer was not needed.",
    "again": "You have already judged that item, and the first answer counts. Use “Undo” to change your last answer.",
    "undone": "Your last answer was taken back. Answer again.",
    "nothing": "There is nothing to take back.",
}
_MOST_CHOSEN = 100


def _add_annotating(routes: APIRouter, context: JudgingContext) -> None:
    of_project = Depends(context.require_member)

    @routes.get("/judging")
    def own_projects(request: Request) -> Response:
        if not context.has_owner:
            return render(request, "judging/empty.html", account=None)
        account = context.require_account(request)
        visible = projects(context.database, None if account.is_owner else account.id)
        entries = [(project, annotator_progress(context.database, project, account.id)) for project in visible]
        return render(request, "judging/projects.html", account=account, projects=entries)

    def page(request: Request, member: Member, template: str, status: int = 200, **values: object) -> Response:
        content = {"account": member.account, "project": member.project, **values}
        return render(request, f"judging/{template}.html", status=status, **content)

    def item_page(request: Request, member: Member, task: Assigned, note: str = "", problem: str = "") -> Response:
        return page(
            request, member, "item", 422 if problem else 200, form=member.project.form, assignment=task.assignment,
            item=task.item, answer=task.answer or Answer(()), progress=task.progress, following=task.following,
            time_left=duration(task.progress.seconds_left), note=note, problem=problem, longest_text=MOST_CHARACTERS,
        )  # fmt: skip

    def to(member: Member, path: str) -> Response:
        return RedirectResponse(f"/projects/{member.project.id}/{path}", 303)

    @routes.get("/projects/{project}")
    def overview(request: Request, member: Member = of_project) -> Response:
        progress = annotator_progress(context.database, member.project, member.account.id)
        time_left = duration(progress.seconds_left)
        return page(request, member, "project", progress=progress, is_owner=member.is_owner, time_left=time_left)

    @routes.get("/projects/{project}/guidelines")
    def guidelines(request: Request, member: Member = of_project) -> Response:
        return page(request, member, "guidelines")

    @routes.get("/projects/{project}/annotate")
    def annotate(request: Request, member: Member = of_project, note: str = "") -> Response:
        account, project = member.account.id, member.project
        if member.role is None:  # an owner of the server
            join(context.database, project.id, account, OWNER)
        assigned = next_item(context.database, project, account)
        if assigned is None:
            progress = annotator_progress(context.database, project, account)
            return page(request, member, "finished", note=NOTES.get(note, ""), progress=progress)
        return item_page(request, member, assigned, NOTES.get(note, ""))

    @routes.post("/projects/{project}/judge")
    def submit(
        request: Request,
        assignment: Annotated[int, Form(ge=1, le=LARGEST_ID)],
        member: Member = of_project,
        label: Annotated[list[str] | None, Form(max_length=_MOST_CHOSEN)] = None,
        rating: Annotated[str, Form(max_length=10)] = "",
        text: Annotated[str, Form(max_length=4 * MOST_CHARACTERS)] = "",
    ) -> Response:
        account, project = member.account.id, member.project
        number = int(rating) if rating.isascii() and rating.isdecimal() else None
        answer = Answer(tuple(label or ()), number, text.replace("\r\n", "\n"))
        try:
            result = judge(context.database, assignment, account, answer)
        except InvalidChoice as error:
            stored = assigned_item(context.database, assignment, account)
            if stored is None or stored[1] != OPEN or stored[0].project != project.id:
                return to(member, "annotate?note=again")
            progress = annotator_progress(context.database, project, account)
            assigned = Assigned(assignment, stored[0], progress, answer=answer)
            return item_page(request, member, assigned, problem=sentence(error))
        except CrosslensError as error:
            if error.code != "no-assignment":
                raise
            return to(member, "annotate?note=expired")
        if not result.is_new:
            return to(member, "annotate?note=again")
        return to(member, f"feedback/{result.judgement}" if result.kind == "practice" else "annotate")

    @routes.get("/projects/{project}/feedback/{judgement}")
    def feedback(request: Request, judgement: RowId, member: Member = of_project) -> Response:
        mine = (JudgementRow.id == judgement, JudgementRow.account == member.account.id)
        practice = (ItemRow.project == member.project.id, ItemRow.kind == "practice")
        query = select(JudgementRow, ItemRow).join(ItemRow, ItemRow.id == JudgementRow.item).where(*mine, *practice)
        with context.database.reading() as session:
            row = session.execute(query).one_or_none()
            if row is None:
                raise HTTPException(404, "There is nothing to show here.")
            answer, item = Answer(tuple(row[0].labels), row[0].rating, row[0].text), as_item(row[1])
        is_right = is_expected(item.expected, answer)
        return page(request, member, "feedback", item=item, answer=answer, is_right=is_right, judgement=judgement)

    @routes.post("/projects/{project}/undo")
    def take_back(judgement: Annotated[int, Form(ge=1, le=LARGEST_ID)], member: Member = of_project) -> Response:
        undone = undo(context.database, member.project.id, member.account.id, judgement)
        return to(member, f"annotate?note={'nothing' if undone is None else 'undone'}")


def duration(seconds: float | None) -> str:
    """A rough time: ``about 5 minutes``; empty where it is not known."""
    if seconds is None:
        return ""
    if seconds < 60:
        return "less than a minute"
    if seconds < 5400:
        minutes = round(seconds / 60)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {round(seconds / 1800) / 2:g} hours"


def routers(services: Services) -> list[APIRouter]:
    """Accounts, annotating, and the pages of owners."""
    context = JudgingContext(services.settings, services.login_limit)
    services.navigation.append(("/judging", "Judging"))
    services.open_paths += ["/login", "/logout", "/join/", "/setup/", "/reset/"]
    services.may_see_picture = context.may_see_picture
    if context.has_owner:
        services.require_login = lambda request: run_in_threadpool(context.require_login, request)
    if context.setup_path is not None:
        services.start_notes.append(f"to judge, make the first account at {{address}}{context.setup_path[1:]}")
    pages = feature_router(include_in_schema=False, responses=None)
    for add in (_add_annotating, _add_login, _add_password, _add_invitations, _add_setup, _add_reset):
        add(pages, context)
    parts = [pages, *owner_routers(context, services)]
    for route in (route for part in parts for route in part.routes):
        if isinstance(route, Route) and not services.is_open(route.path):
            services.route_checks.append((route.path_regex, partial(context.refuse_route, route.path)))
    return parts
