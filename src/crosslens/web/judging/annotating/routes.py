"""The pages of an annotator: projects, guidelines, one item after another, what practice taught."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError
from crosslens.web.judging.accounts.people import Account
from crosslens.web.judging.context import LARGEST_ID, JudgingContext, RowId
from crosslens.web.judging.database.assigning import assigned_item, next_item
from crosslens.web.judging.database.judging import judge, own_judgement, undo
from crosslens.web.judging.database.progress import AnnotatorProgress, annotator_progress
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, join, projects, role_in
from crosslens.web.judging.database.tables import OPEN, OWNER
from crosslens.web.judging.tasks.answers import Answer, InvalidChoice, is_expected
from crosslens.web.judging.tasks.form import MOST_CHARACTERS
from crosslens.web.judging.wording import duration, sentence
from crosslens.web.layout.rendering import render

NOTES = {
    "expired": "That item had been open for too long and went to somebody else. Your answer was not needed.",
    "again": "You have already judged that item, and the first answer counts. Use “Undo” to change your last answer.",
    "undone": "Your last answer was taken back. Answer again.",
    "nothing": "There is nothing to take back.",
}
_MOST_CHOSEN = 100


def router(context: JudgingContext) -> APIRouter:
    """Addresses of annotators."""
    routes = APIRouter(include_in_schema=False)
    _add_overviews(routes, context)
    _add_judging(routes, context)
    return routes


def _add_overviews(routes: APIRouter, context: JudgingContext) -> None:
    @routes.get("/judging")
    def own_projects(request: Request) -> Response:
        if not context.has_owner:
            return render(request, "judging/annotating/empty.html", account=None)
        account = context.require_account(request)
        shown = projects(context.database, None if account.is_owner else account.id)
        entries = [(project, annotator_progress(context.database, project, account.id)) for project in shown]
        return render(request, "judging/annotating/projects.html", account=account, projects=entries)

    @routes.get("/projects/{project}")
    def overview(request: Request, project: RowId) -> Response:
        account, shown, is_owner = context.require_member(request, project)
        progress = annotator_progress(context.database, shown, account.id)
        return render(
            request, "judging/annotating/project.html", account=account, project=shown, progress=progress,
            is_owner=is_owner, time_left=duration(progress.seconds_left),
        )  # fmt: skip

    @routes.get("/projects/{project}/guidelines")
    def guidelines(request: Request, project: RowId) -> Response:
        account, shown, _ = context.require_member(request, project)
        return render(request, "judging/annotating/guidelines.html", account=account, project=shown)


def _add_judging(routes: APIRouter, context: JudgingContext) -> None:
    @routes.get("/projects/{project}/annotate")
    def annotate(request: Request, project: RowId, note: str = "") -> Response:
        account, shown, _ = context.require_member(request, project)
        if account.is_owner and role_in(context.database, project, account.id) is None:
            join(context.database, project, account.id, OWNER)
        assigned = next_item(context.database, shown, account.id)
        if assigned is None:
            return _finished(request, context, account, shown, NOTES.get(note, ""))
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
            request, "judging/annotating/feedback.html", account=account, project=shown, item=item, answer=answer,
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
        request, "judging/annotating/item.html", status=422 if problem else 200, account=account, project=project,
        form=project.form, assignment=assignment, item=item, answer=answer or Answer(()), progress=progress,
        time_left=duration(progress.seconds_left), following=following, note=note, problem=problem,
        longest_text=MOST_CHARACTERS,
    )  # fmt: skip


def _finished(
    request: Request, context: JudgingContext, account: Account, project: JudgingProject, note: str
) -> Response:
    progress = annotator_progress(context.database, project, account.id)
    return render(
        request, "judging/annotating/finished.html", account=account, project=project, note=note, progress=progress
    )
