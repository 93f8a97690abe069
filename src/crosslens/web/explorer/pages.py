"""The pages of the explorer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.core import UsageError
from crosslens.report import chart_html
from crosslens.web.explorer.addresses import address, query_address
from crosslens.web.explorer.api import Name, Offset, OutcomeFilter, TopK, Words
from crosslens.web.explorer.context import ExplorerContext
from crosslens.web.explorer.dataset_views import LONGEST
from crosslens.web.explorer.figures import length_chart, shown_difference, shown_figure, shown_p
from crosslens.web.explorer.query_table import ORDER, RANK, QueryFilter
from crosslens.web.explorer.query_views import query_list, query_view
from crosslens.web.layout.rendering import render

_PAGE, _IMAGES = 25, 24
_FORMS: dict[str, Any] = {
    "shown_figure": shown_figure,
    "shown_difference": shown_difference,
    "shown_p": shown_p,
    "address": address,
}


def page_router(context: ExplorerContext) -> APIRouter:
    """All pages."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    _add_run_pages(routes, context)
    _add_query_pages(routes, context)
    _add_dataset_pages(routes, context)
    return routes


def _add_run_pages(routes: APIRouter, context: ExplorerContext) -> None:
    @routes.get("/")
    def runs(
        request: Request, dataset: Name = "", name: Words = "", metric: Words = "", sort: Name = "",
        descending: bool = True,
    ) -> HTMLResponse:  # fmt: skip
        listed = context.leaderboard(dataset=dataset, name=name, metric=metric, sort=sort, descending=descending)
        chosen = {"dataset": dataset, "name": name, "metric": metric, "sort": sort, "descending": descending}
        return render(request, "explorer/runs.html", listed=listed, chosen=chosen, **_FORMS)

    @routes.get("/compare")
    def compare(
        request: Request, run: Annotated[list[str] | None, Query(max_length=16)] = None, metric: Words = ""
    ) -> HTMLResponse:
        chosen = list(dict.fromkeys(run or ()))
        if len(chosen) != 2:
            raise UsageError(f"{len(chosen)} runs are chosen", fix="Go back and tick two runs.")
        view = context.comparison(chosen[0], chosen[1], metric)
        return render(request, "explorer/compare.html", view=view, metric=metric, **_FORMS)


def _add_query_pages(routes: APIRouter, context: ExplorerContext) -> None:
    @routes.get("/runs/{run}")
    def queries(
        request: Request, run: str, direction: Name | None = None, search: Words = "", sort: Name = ORDER,
        descending: bool = False, group: Name = "", value: Name = "", outcome: OutcomeFilter = "", offset: Offset = 0,
    ) -> HTMLResponse:  # fmt: skip
        value = value if group else ""
        chosen = QueryFilter(search, sort, descending, group, value, outcome)
        listed = query_list(context.tables, run, direction, chosen, offset, _PAGE)
        state = {
            "direction": listed.direction, "search": search, "sort": sort, "descending": descending, "group": group,
            "value": value, "outcome": outcome,
        }  # fmt: skip
        return render(
            request, "explorer/queries.html", run=context.run_row(run), listed=listed, state=state,
            dataset=context.library.summary(run).dataset, sorts=[ORDER, RANK, *listed.metrics],
            problem=context.tables.dataset_if_known(run)[1], query_address=query_address, **_FORMS,
        )  # fmt: skip

    @routes.get("/runs/{run}/query")
    def query(
        request: Request, run: str, id: Name, direction: Name | None = None, search: Words = "", sort: Name = ORDER,
        descending: bool = False, group: Name = "", value: Name = "", outcome: OutcomeFilter = "",
        at: Offset | None = None, k: TopK = 10,
        others: Annotated[list[str] | None, Query(alias="with", max_length=16)] = None,
    ) -> HTMLResponse:  # fmt: skip
        view = query_view(context.tables, run, direction, id, others or (), k)
        chosen = QueryFilter(search, sort, descending, group, value if group else "", outcome)
        state = {
            "direction": view.direction, "search": search, "sort": sort, "descending": descending, "group": group,
            "value": value, "outcome": outcome,
        }  # fmt: skip
        steps = _steps(context, run, view.direction, chosen, at)
        return render(
            request, "explorer/query.html", run=context.run_row(run), view=view, state=state, steps=steps, at=at,
            perturbations=context.perturbations(run, view.direction, id).rows, query_address=query_address,
            marks=context.likely_positives.of_view(run, view), **_FORMS,
        )  # fmt: skip

    @routes.get("/runs/{run}/explanation")
    def explanation(request: Request, run: str, id: Name, direction: Name | None = None) -> HTMLResponse:
        """The explanation alone: the query's page loads it, and it is a page of its own without scripts."""
        article = Markup(context.explanations.article(run, direction, id))  # escaped where it is made
        return render(
            request, "explorer/explanation.html", run=context.run_row(run), article=article, query=id,
            direction=direction, address=address,
        )  # fmt: skip


def _steps(
    context: ExplorerContext, run: str, direction: str, chosen: QueryFilter, at: int | None
) -> dict[str, tuple[int, str]]:
    """The queries before and after position ``at`` of the list that the reader came from: (position, id)."""
    if at is None:
        return {}
    table = context.tables.table(run, direction)
    rows = table.select(chosen)
    near = {"previous": at - 1, "next": at + 1}
    return {
        name: (step, table.retrieval.query_ids[int(rows[step])]) for name, step in near.items() if 0 <= step < len(rows)
    }


def _add_dataset_pages(routes: APIRouter, context: ExplorerContext) -> None:
    @routes.get("/datasets")
    def datasets(request: Request) -> HTMLResponse:
        return render(request, "explorer/datasets.html", datasets=context.datasets.rows())

    @routes.get("/datasets/{dataset}")
    def dataset_page(request: Request, dataset: str, search: Words = "", offset: Offset = 0) -> HTMLResponse:
        view = context.datasets.view(dataset)
        images = context.datasets.images(dataset, search, offset, _IMAGES)
        chart = length_chart(view.word_counts, LONGEST)
        lengths = None if chart is None else Markup(chart_html(chart))
        return render(
            request, "explorer/dataset.html", view=view, images=images, search=search, lengths=lengths, address=address
        )

    @routes.get("/datasets/{dataset}/image")
    def image(request: Request, dataset: str, id: Name) -> HTMLResponse:
        view = context.datasets.image(dataset, id)
        return render(request, "explorer/image.html", view=view, query_address=query_address)
