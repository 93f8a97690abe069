"""All addresses of the explorer: its pages, and below ``/api`` the same values as JSON, for scripts."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.core import Link, Section, Table, UsageError
from crosslens.web.explorer.queries import (
    Explanations,
    LikelyPositives,
    LikelyPositiveSearch,
    QueryList,
    QueryView,
    perturbations_of,
    query_list,
    query_view,
)
from crosslens.web.explorer.retrieval import ORDER, RANK, QueryFilter, QueryTables
from crosslens.web.explorer.runs import Comparisons, DatasetPages, RunFilter, comparison_sections, run_list
from crosslens.web.pages import feature_router, render, sections_html
from crosslens.web.security import Services

Words = Annotated[str, Query(max_length=500)]
Name = Annotated[str, Query(max_length=2000)]
Offset = Annotated[int, Query(ge=0, le=100_000_000)]
Limit = Annotated[int, Query(ge=1, le=200)]
TopK = Annotated[int, Query(ge=1, le=100)]
Others = Annotated[list[str] | None, Query(alias="with", max_length=16)]
OutcomeFilter = Literal["", "hit", "failed"]
_PAGE, _IMAGES = 25, 24


def _chosen_queries(
    search: Words = "", sort: Name = ORDER, descending: bool = False, group: Name = "", value: Name = "",
    outcome: OutcomeFilter = "",
) -> QueryFilter:  # fmt: skip
    return QueryFilter(search, sort, descending, group, value if group else "", outcome)


def _chosen_runs(
    dataset: Name = "", name: Words = "", metric: Words = "", sort: Name = "", descending: bool = True
) -> RunFilter:
    return RunFilter(dataset, name, metric, sort, descending)


Chosen = Annotated[QueryFilter, Depends(_chosen_queries)]
ChosenRuns = Annotated[RunFilter, Depends(_chosen_runs)]


def routers(services: Services) -> list[APIRouter]:
    """The explorer on these services. A page that shows what an address of the JSON answers asks that address."""
    services.navigation += [("/", "Runs"), ("/datasets", "Datasets")]
    api = feature_router(prefix="/api", tags=["explorer"])
    pages = feature_router(include_in_schema=False, responses=None, default_response_class=HTMLResponse)
    tables = QueryTables(services)
    for add in (_add_runs, _add_queries, _add_datasets):
        add(api, pages, tables)
    return [api, pages]


def _add_runs(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    library, comparisons = tables.library, Comparisons(tables)

    @api.get("/runs")
    def runs(chosen: ChosenRuns) -> dict[str, Any]:
        """All runs in the folder; damaged ones have a ``problem``."""
        return run_list(library.runs(), chosen).as_dict()

    @pages.get("/")
    def runs_page(request: Request, chosen: ChosenRuns) -> HTMLResponse:
        listed = run_list(library.runs(), chosen)
        return render(
            request, "explorer/runs.html", listed=listed, chosen=chosen, article=sections_html(listed.sections()),
            readable=[run for run in listed.runs if run.problem is None],
        )  # fmt: skip

    @api.get("/runs/{run}")
    def run_summary(run: str) -> dict[str, Any]:
        """A run with all its metrics."""
        return library.summary(run).as_dict()

    @api.get("/comparison")
    def comparison(baseline: Name, other: Name, metric: Words = "") -> dict[str, Any]:
        """Two runs on the same queries, as ``crosslens compare --json`` prints it: differences, intervals, tests."""
        content = comparisons.compare(baseline, other, metric).as_dict()
        return {**content, "metrics": content["comparisons"]}

    @pages.get("/compare")
    def compare_page(
        request: Request, run: Annotated[list[str] | None, Query(max_length=16)] = None, metric: Words = ""
    ) -> HTMLResponse:
        chosen = list(dict.fromkeys(run or ()))
        if len(chosen) != 2:
            raise UsageError(f"{len(chosen)} runs are chosen", fix="Go back and choose two different runs.")
        baseline, other = chosen
        result = comparisons.compare(baseline, other, metric)
        article = sections_html(comparison_sections(result, baseline, other))
        return render(request, "explorer/compare.html", result=result, article=article, chosen=chosen, metric=metric)


def _add_queries(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    library, explanations, likely = tables.library, Explanations(tables), LikelyPositiveSearch(tables)
    tables.services.start_work.append(explanations.load_parser)

    @api.get("/runs/{run}/queries")
    def queries(
        run: str, chosen: Chosen, direction: Name | None = None, offset: Offset = 0, limit: Limit = 50
    ) -> QueryList:
        """A page of the queries of a run."""
        return query_list(tables, run, direction, chosen, offset, limit)

    @pages.get("/runs/{run}")
    def queries_page(
        request: Request, run: str, chosen: Chosen, direction: Name | None = None, offset: Offset = 0
    ) -> HTMLResponse:
        listed = queries(run, chosen, direction, offset, _PAGE)
        summary, problem = library.summary(run), tables.dataset_if_known(run)[1]
        figures = (replace(section, title="") for section in library.run(run).sections())
        return render(
            request, "explorer/queries.html", run=summary, listed=listed, dataset=summary.dataset, problem=problem,
            state={"direction": listed.direction, **asdict(chosen)}, sorts=[ORDER, RANK, *listed.metrics],
            figures=sections_html(figures),
        )  # fmt: skip

    @api.get("/runs/{run}/query")
    def query(run: str, id: Name, direction: Name | None = None, k: TopK = 10, others: Others = None) -> QueryView:
        """A query: what is relevant to it, and what this run and others over the same dataset retrieve."""
        return query_view(tables, run, direction, id, others or (), k)

    viewed = Depends(query)

    @pages.get("/runs/{run}/query")
    def query_page(
        request: Request, run: str, chosen: Chosen, view: QueryView = viewed, at: Offset | None = None
    ) -> HTMLResponse:
        steps: dict[str, tuple[int, str]] = {}
        if at is not None:  # the queries before and after it in the list that the reader came from
            retrieval = tables.retrieval(run, view.direction)
            rows, ids = retrieval.select(chosen), retrieval.query_ids
            near = {"previous": at - 1, "next": at + 1}
            steps = {name: (step, ids[int(rows[step])]) for name, step in near.items() if 0 <= step < len(rows)}
        changed = perturbations_of(tables, run, view.direction, view.query)
        return render(
            request, "explorer/query.html", run=library.summary(run), view=view, steps=steps, at=at,
            state={"direction": view.direction, **asdict(chosen)}, marks=likely.of_view(run, view),
            perturbations=sections_html(changed.sections()) if changed.rows else "",
        )  # fmt: skip

    @api.get("/runs/{run}/explanation")
    def explanation(run: str, id: Name, direction: Name | None = None) -> dict[str, Any]:
        """Why a query retrieved what it did, as ``crosslens explain --json`` prints it."""
        return explanations.explanation(run, direction, id).as_dict()

    @pages.get("/runs/{run}/explanation")
    def explanation_page(request: Request, run: str, id: Name, direction: Name | None = None) -> HTMLResponse:
        """The explanation alone: the query's page loads it, and it is a page of its own without scripts."""
        article = Markup(explanations.article(run, direction, id))
        summary = library.summary(run)
        return render(request, "explorer/explanation.html", run=summary, query=id, direction=direction, article=article)

    @api.get("/runs/{run}/perturbations")
    def perturbations(run: str, id: Name, direction: Name | None = None) -> dict[str, Any]:
        """What perturbations do to a query, from the robustness studies in the folder."""
        return perturbations_of(tables, run, direction, id).as_dict()

    @api.get("/runs/{run}/likely-positives")
    def likely_positives(run: str, id: Name, direction: Name | None = None, k: TopK = 10) -> LikelyPositives:
        """Items of the top k that are not marked as relevant although their captions say they are."""
        return likely.search(run, direction, id, k=k)


def _add_datasets(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    served = DatasetPages(tables)

    @api.get("/datasets")
    def datasets() -> list[dict[str, Any]]:
        """All datasets of the runs."""
        return served.rows()

    @pages.get("/datasets")
    def datasets_page(request: Request) -> HTMLResponse:
        read = []
        damaged = []
        for row in datasets():
            if row["problem"] is None:
                name = Link(row["name"], f"/datasets/{quote(row['id'], safe='')}")
                read.append((name, row["images"], row["captions"], len(row["runs"])))
            else:
                damaged.append((row["name"], row["problem"]))
        parts = [Table(("Dataset", "Images", "Captions", "Runs"), read)] if read else []
        parts += [Table(("Dataset", "Problem"), damaged, title="Cannot be read")] if damaged else []
        return render(request, "explorer/datasets.html", article=sections_html([Section("", tuple(parts))]))

    @api.get("/datasets/{dataset}")
    def dataset_description(dataset: str) -> dict[str, Any]:
        """What a dataset is like."""
        shown, runs = served.dataset(dataset)
        return {**shown.as_dict(), "runs": runs}

    @api.get("/datasets/{dataset}/images")
    def images(dataset: str, search: Words = "", offset: Offset = 0, limit: Limit = 50) -> dict[str, Any]:
        """A page of the images of a dataset with their captions."""
        return served.images(dataset, search, offset, limit)

    @pages.get("/datasets/{dataset}")
    def dataset_page(request: Request, dataset: str, search: Words = "", offset: Offset = 0) -> HTMLResponse:
        shown, runs = served.dataset(dataset)
        return render(
            request, "explorer/dataset.html", dataset=shown, runs=runs, search=search,
            article=sections_html(shown.sections()), images=images(dataset, search, offset, _IMAGES),
        )  # fmt: skip

    @api.get("/datasets/{dataset}/image")
    def image(dataset: str, id: Name) -> dict[str, Any]:
        """An image with all captions, and who retrieves it."""
        return served.image(dataset, id)

    @pages.get("/datasets/{dataset}/image")
    def image_page(request: Request, dataset: str, id: Name) -> HTMLResponse:
        return render(request, "explorer/image.html", view=image(dataset, id))
