"""What was judged: agreement, shares, ratings, causes, rules, people, models, correlations."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Form
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import percent
from crosslens.report import chart_html
from crosslens.web.judging.context import JudgingContext, RowId
from crosslens.web.judging.database.model_requests import requests_by_model
from crosslens.web.judging.database.progress import project_progress
from crosslens.web.judging.database.projects import set_guidelines, set_overlap
from crosslens.web.judging.owning import figures
from crosslens.web.judging.owning.kept_results import KeptResults
from crosslens.web.judging.results.automatic import run_metrics
from crosslens.web.judging.results.summary import ProjectResults
from crosslens.web.layout.rendering import render
from crosslens.web.services import Services

_LONGEST_GUIDELINES, _MOST_PEOPLE = 20_000, 1000
TABS = (
    ("", "Results"), ("/people", "People"), ("/disagreements", "Disagreements"), ("/correlations", "Correlations"),
    ("/models", "Models"), ("/items", "Items and export"), ("/log", "Log"),
)  # fmt: skip


def add_pages(routes: APIRouter, context: JudgingContext, services: Services, kept: KeptResults) -> None:
    """Add the addresses."""
    _add_results(routes, context, kept)
    _add_comparisons(routes, context, services, kept)


def page(request: Request, template: str, account: Any, results: ProjectResults, **values: Any) -> Response:
    """A page of the owner, with the tabs of the project."""
    shown: dict[str, Any] = {"project": results.answers.project, "results": results, "titles": results.answers.titles}
    shown |= {"percent": percent, "number": figures.number, "interval": figures.interval}
    status = 422 if values.get("problem") else 200
    return render(request, f"judging/owning/{template}", status=status, account=account, tabs=TABS, **shown, **values)


def _add_results(routes: APIRouter, context: JudgingContext, kept: KeptResults) -> None:
    @routes.get("/projects/{project}/owner", include_in_schema=False)
    def overview(request: Request, project: RowId, note: str = "") -> Response:
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        charts = [Markup(chart_html(chart)) for chart in figures.charts(results)]
        return page(
            request, "results.html", account, results, charts=charts, rules=figures.shown_rules(results),
            progress=project_progress(context.database, project), note=_NOTES.get(note, ""),
        )  # fmt: skip

    @routes.get("/api/projects/{project}/results", tags=["judging"])
    def results_json(request: Request, project: RowId) -> dict[str, Any]:
        """Agreement, shares of labels, people, models and correlations of a project; for its owners."""
        context.require_owner(request, project)
        return kept.of(context.database, project).as_dict()

    @routes.post("/projects/{project}/owner/settings", include_in_schema=False)
    def change_settings(
        request: Request,
        project: RowId,
        overlap: Annotated[int, Form(ge=1, le=_MOST_PEOPLE)],
        guidelines: Annotated[str, Form()] = "",
    ) -> Response:
        account = context.require_owner(request, project)
        set_overlap(context.database, project, overlap, account.id)
        text = guidelines.replace("\r\n", "\n")[:_LONGEST_GUIDELINES]
        set_guidelines(context.database, project, text, account.id)
        return RedirectResponse(f"/projects/{project}/owner?note=saved", 303)


_NOTES = {"saved": "The settings were saved."}


def _add_comparisons(routes: APIRouter, context: JudgingContext, services: Services, kept: KeptResults) -> None:
    @routes.get("/projects/{project}/owner/correlations", include_in_schema=False)
    def correlations(request: Request, project: RowId, run: str = "") -> Response:
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        runs = [summary for summary in services.library.runs() if summary.problem is None]
        further: dict[str, dict[str, float]] = {}
        if run:
            directions = {str(item.content.about.get("direction", "t2i")) for item in results.answers.items.values()}
            loaded = services.library.run(run)
            for direction in sorted(directions):
                further |= run_metrics(loaded, direction, results.answers.queries)
        table = results.correlations(further).filter(pl.col("pearson").is_not_null())
        return page(
            request, "correlations.html", account, results, rows=table.to_dicts(), runs=runs, chosen=run,
            scores=results.agreement.scores, derived=results.derived_causes,
        )  # fmt: skip

    @routes.get("/projects/{project}/owner/models", include_in_schema=False)
    def models(request: Request, project: RowId) -> Response:
        account = context.require_owner(request, project)
        asked = requests_by_model(context.database, project)
        return page(request, "models.html", account, kept.of(context.database, project), asked=asked)
