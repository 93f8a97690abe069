"""Disagreements side by side, and the owner's decisions about them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError
from crosslens.web.judging.context import JudgingContext, RowId
from crosslens.web.judging.owning.kept_results import KeptResults
from crosslens.web.judging.owning.results_pages import page
from crosslens.web.judging.results.stored import adjudicate, withdraw_decision
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.wording import sentence

PAGE = 20
_MOST_LABELS = 100


def add_pages(routes: APIRouter, context: JudgingContext, kept: KeptResults) -> None:
    """Add the addresses."""

    def cases(
        request: Request, project: int, shown: str, start: int, problem: str = "", at: int | None = None,
        answer: Answer | None = None,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        every = [case for case in results.disagreements if shown == "all" or case.adjudicated is None]
        start = max(0, min(start, len(every) - 1)) // PAGE * PAGE
        return page(
            request, "disagreements.html", account, results, cases=every[start : start + PAGE], total=len(every),
            decided=sum(case.adjudicated is not None for case in results.disagreements), shown=shown, start=start,
            size=PAGE, items=results.answers.items, problem=problem, at=at, answer=answer,
        )  # fmt: skip

    @routes.get("/projects/{project}/owner/disagreements", include_in_schema=False)
    def disagreements(request: Request, project: RowId, shown: str = "open", start: int = 0) -> Response:
        return cases(request, project, "all" if shown == "all" else "open", start)

    @routes.post("/projects/{project}/owner/items/{item}/decide", include_in_schema=False)
    def decide(
        request: Request, project: RowId, item: RowId, label: Annotated[list[str] | None, Form()] = None,
        rating: Annotated[str, Form()] = "", text: Annotated[str, Form()] = "",
        shown: Annotated[str, Form()] = "open", start: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        number = int(rating) if rating.isascii() and rating.isdigit() and len(rating) < 5 else None
        answer = Answer(tuple(label or ())[:_MOST_LABELS], number, text.replace("\r\n", "\n"))
        try:
            adjudicate(context.database, project, item, account.id, answer)
        except CrosslensError as error:
            return cases(request, project, shown, start, sentence(error), item, answer)
        return RedirectResponse(_back(project, shown, start), 303)

    @routes.post("/projects/{project}/owner/items/{item}/reopen", include_in_schema=False)
    def reopen(
        request: Request, project: RowId, item: RowId, shown: Annotated[str, Form()] = "all",
        start: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        withdraw_decision(context.database, project, item, account.id)
        return RedirectResponse(_back(project, shown, start), 303)


def _back(project: int, shown: str, start: int) -> str:
    return f"/projects/{project}/owner/disagreements?shown={'all' if shown == 'all' else 'open'}&start={max(0, start)}"
