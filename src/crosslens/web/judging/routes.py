"""All addresses of judging."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form
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
    Account,
    accept_invitation,
    accept_with_new_account,
    account_with_password,
    create_first_owner,
    end_sessions,
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
from crosslens.web.judging.database.assigning import AnnotatorProgress, annotator_progress, assigned_item, next_item
from crosslens.web.judging.database.judgements import judge, own_judgement, undo
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, join, projects, role_in
from crosslens.web.judging.database.tables import OPEN, OWNER
from crosslens.web.judging.owner_pages import owner_router
from crosslens.web.judging.tasks import MOST_CHARACTERS, Answer, InvalidChoice, is_expected
from crosslens.web.pages import render
from crosslens.web.security import Services

Text = Annotated[str, Form(max_length=1_000)]
_LIMITS = {"shortest": SHORTEST_PASSWORD, "longest": LONGEST_PASSWORD, "longest_name": LONGEST_NAME}


def account_router(context: JudgingContext) -> APIRouter:
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
    template = f"judging/{page}.html"
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


NOTES = {
    "expired": "That item had been open for too long and went to somebody else. Your answer was not needed.",
    "again": "You have already judged that item, and the first answer counts. Use “Undo” to change your last answer.",
    "undone": "Your last answer was taken back. Answer again.",
    "nothing": "There is nothing to take back.",
}
_MOST_CHOSEN = 100


def annotator_router(context: JudgingContext) -> APIRouter:
    """Addresses of annotators."""
    routes = APIRouter(include_in_schema=False)
    _add_overviews(routes, context)
    _add_judging(routes, context)
    return routes


def _add_overviews(routes: APIRouter, context: JudgingContext) -> None:
    @routes.get("/judging")
    def own_projects(request: Request) -> Response:
        if not context.has_owner:
            return render(request, "judging/empty.html", account=None)
        account = context.require_account(request)
        shown = projects(context.database, None if account.is_owner else account.id)
        entries = [(project, annotator_progress(context.database, project, account.id)) for project in shown]
        return render(request, "judging/projects.html", account=account, projects=entries)

    @routes.get("/projects/{project}")
    def overview(request: Request, project: RowId) -> Response:
        account, shown, is_owner = context.require_member(request, project)
        progress = annotator_progress(context.database, shown, account.id)
        return render(
            request, "judging/project.html", account=account, project=shown, progress=progress,
            is_owner=is_owner, time_left=duration(progress.seconds_left),
        )  # fmt: skip

    @routes.get("/projects/{project}/guidelines")
    def guidelines(request: Request, project: RowId) -> Response:
        account, shown, _ = context.require_member(request, project)
        return render(request, "judging/guidelines.html", account=account, project=shown)


def _add_judging(routes: APIRouter, context: JudgingContext) -> None:
    @routes.get("/projects/{project}/annotate")
    def annotate(request: Request, project: RowId, note: str = "") -> Response:
        account, shown, _ = context.require_member(request, project)
        if account.is_owner and role_in(context.database, project, account.id) is None:
            join(context.database, project, account.id, OWNER)
        assigned = next_item(context.database, shown, account.id)
        if assigned is None:
            progress = annotator_progress(context.database, shown, account.id)
            return render(
                request, "judging/finished.html", account=account, project=shown, note=NOTES.get(note, ""),
                progress=progress,
            )  # fmt: skip
        return _item_page(
            request, account, shown, assigned.assignment, assigned.item, assigned.progress,
            answer=assigned.taken_back, following=assigned.following, note=NOTES.get(note, ""),
        )  # fmt: skip

    @routes.post("/projects/{project}/judge")
    def submit(
        request: Request,
        project: RowId,
        assignment: Annotated[int, Form(ge=1, le=LARGEST_ID)],
        label: Annotated[list[str] | None, Form(max_length=_MOST_CHOSEN)] = None,
        rating: Annotated[str, Form(max_length=10)] = "",
        text: Annotated[str, Form(max_length=4 * MOST_CHARACTERS)] = "",
    ) -> Response:
        account, shown, _ = context.require_member(request, project)
        number = int(rating) if rating.isascii() and rating.isdecimal() else None
        answer = Answer(tuple(label or ()), number, text.replace("\r\n", "\n"))
        return _submit(request, context, account, shown, assignment, answer)

    @routes.get("/projects/{project}/feedback/{judgement}")
    def feedback(request: Request, project: RowId, judgement: RowId) -> Response:
        account, shown, _ = context.require_member(request, project)
        own = own_judgement(context.database, judgement, account.id)
        if own is None or own[0].project != project or own[0].kind != "practice":
            raise HTTPException(404, "There is nothing to show here.")
        item, answer = own
        return render(
            request, "judging/feedback.html", account=account, project=shown, item=item, answer=answer,
            is_right=is_expected(item.expected, answer), judgement=judgement,
        )  # fmt: skip

    @routes.post("/projects/{project}/undo")
    def take_back(request: Request, project: RowId, judgement: Annotated[int, Form(ge=1, le=LARGEST_ID)]) -> Response:
        account, _, _ = context.require_member(request, project)
        done = undo(context.database, project, account.id, judgement)
        return _to(project, f"annotate?note={'nothing' if done is None else 'undone'}")


def _submit(
    request: Request,
    context: JudgingContext,
    account: Account,
    project: JudgingProject,
    assignment: int,
    answer: Answer,
) -> Response:
    try:
        judged = judge(context.database, assignment, account.id, answer)
    except InvalidChoice as error:
        held = assigned_item(context.database, assignment, account.id)
        if held is None or held[1] != OPEN or held[0].project != project.id:
            return _to(project.id, "annotate?note=again")
        progress = annotator_progress(context.database, project, account.id)
        return _item_page(
            request, account, project, assignment, held[0], progress, answer=answer, problem=sentence(error)
        )
    except CrosslensError as error:
        if error.code != "no-assignment":
            raise
        return _to(project.id, "annotate?note=expired")
    if not judged.is_new:
        return _to(project.id, "annotate?note=again")
    return _to(project.id, f"feedback/{judged.judgement}" if judged.kind == "practice" else "annotate")


def _to(project: int, page: str) -> Response:
    return RedirectResponse(f"/projects/{project}/{page}", 303)


def _item_page(
    request: Request,
    account: Account,
    project: JudgingProject,
    assignment: int,
    item: StoredItem,
    progress: AnnotatorProgress,
    *,
    answer: Answer | None = None,
    following: StoredItem | None = None,
    note: str = "",
    problem: str = "",
) -> Response:
    return render(
        request, "judging/item.html", status=422 if problem else 200, account=account, project=project,
        form=project.form, assignment=assignment, item=item, answer=answer or Answer(()), progress=progress,
        time_left=duration(progress.seconds_left), following=following, note=note, problem=problem,
        longest_text=MOST_CHARACTERS,
    )  # fmt: skip


def duration(seconds: float | None) -> str:
    """A rough time: ``about 5 minutes``; empty where it is not known."""
    if seconds is None:
        return ""
    minutes = seconds / 60
    if minutes < 1:
        return "less than a minute"
    if minutes < 90:
        rounded = round(minutes)
        return f"about {rounded} minute{'s' if rounded > 1 else ''}"
    hours = round(minutes / 30) / 2
    return f"about {hours:g} hours"


def routers(services: Services) -> list[APIRouter]:
    """Accounts, annotating, and the pages of owners."""
    context = JudgingContext(services.settings, services.login_limit)
    services.navigation.append(("/judging", "Judging"))
    services.open_paths += ["/login", "/logout", "/join/", "/setup/", "/reset/"]
    services.may_see_picture = context.may_see_picture

    async def require_login(request: Request) -> Response | None:
        return await run_in_threadpool(context.require_login, request)

    if context.has_owner:
        services.require_login = require_login
    if context.setup_path is not None:
        services.start_notes.append(f"to judge, make the first account at {{address}}{context.setup_path[1:]}")
    parts = [annotator_router(context), account_router(context), owner_router(context, services)]
    for route in (route for part in parts for route in part.routes):
        if isinstance(route, Route) and not services.is_open(route.path):
            services.route_checks.append((route.path_regex, partial(context.refuse_route, route.path)))
    return parts
