"""The explorer as JSON, for scripts: the same values that the pages show. Described at ``/api/openapi.json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from crosslens.web.explorer.context import ExplorerContext
from crosslens.web.explorer.models import (
    ComparisonView,
    DatasetRow,
    DatasetView,
    ImageList,
    ImageView,
    LikelyPositives,
    PerturbationList,
    QueryList,
    QueryView,
    RunList,
    RunRow,
)
from crosslens.web.explorer.query_table import ORDER, QueryFilter
from crosslens.web.explorer.query_views import query_list, query_view

Words = Annotated[str, Query(max_length=500)]
Name = Annotated[str, Query(max_length=2000)]
Offset = Annotated[int, Query(ge=0, le=100_000_000)]
Limit = Annotated[int, Query(ge=1, le=200)]
TopK = Annotated[int, Query(ge=1, le=100)]
OutcomeFilter = Literal["", "hit", "failed"]


def api_router(context: ExplorerContext) -> APIRouter:
    """Everything below ``/api``."""
    routes = APIRouter(prefix="/api", tags=["explorer"])
    _add_runs(routes, context)
    _add_queries(routes, context)
    _add_datasets(routes, context)
    return routes


def _add_runs(routes: APIRouter, context: ExplorerContext) -> None:
    @routes.get("/runs")
    def runs(
        dataset: Name = "", name: Words = "", metric: Words = "", sort: Name = "", descending: bool = True
    ) -> RunList:
        """All runs in the folder; damaged ones have a ``problem``."""
        return context.leaderboard(dataset=dataset, name=name, metric=metric, sort=sort, descending=descending)

    @routes.get("/runs/{run}")
    def run_summary(run: str) -> RunRow:
        """A run with all its metrics."""
        return context.run_row(run)

    @routes.get("/comparison")
    def comparison(baseline: Name, other: Name, metric: Words = "") -> ComparisonView:
        """Two runs on the same queries: differences, intervals, paired tests."""
        return context.comparison(baseline, other, metric)


def _add_queries(routes: APIRouter, context: ExplorerContext) -> None:
    @routes.get("/runs/{run}/queries")
    def queries(
        run: str, direction: Name | None = None, search: Words = "", sort: Name = ORDER, descending: bool = False,
        group: Name = "", value: Name = "", outcome: OutcomeFilter = "", offset: Offset = 0, limit: Limit = 50,
    ) -> QueryList:  # fmt: skip
        """A page of the queries of a run."""
        chosen = QueryFilter(search, sort, descending, group, value, outcome)
        return query_list(context.tables, run, direction, chosen, offset, limit)

    @routes.get("/runs/{run}/query")
    def query(
        run: str, id: Name, direction: Name | None = None, k: TopK = 10,
        others: Annotated[list[str] | None, Query(alias="with", max_length=16)] = None,
    ) -> QueryView:  # fmt: skip
        """A query: what is relevant to it, and what this run and others over the same dataset retrieve."""
        return query_view(context.tables, run, direction, id, others or (), k)

    @routes.get("/runs/{run}/explanation")
    def explanation(run: str, id: Name, direction: Name | None = None) -> dict[str, Any]:
        """Why a query retrieved what it did, as ``crosslens explain --json`` prints it."""
        return context.explanations.explanation(run, direction, id).as_dict()

    @routes.get("/runs/{run}/perturbations")
    def perturbations(run: str, id: Name, direction: Name | None = None) -> PerturbationList:
        """What perturbations do to a query, from the robustness studies in the folder."""
        return context.perturbations(run, direction, id)

    @routes.get("/runs/{run}/likely-positives")
    def likely_positives(run: str, id: Name, direction: Name | None = None, k: TopK = 10) -> LikelyPositives:
        """Items of the top k that are not marked as relevant although their captions say they are."""
        return context.likely_positives.search(run, direction, id, k=k)


def _add_datasets(routes: APIRouter, context: ExplorerContext) -> None:
    @routes.get("/datasets")
    def datasets() -> list[DatasetRow]:
        """All datasets of the runs."""
        return context.datasets.rows()

    @routes.get("/datasets/{dataset}")
    def dataset_description(dataset: str) -> DatasetView:
        """What a dataset is like."""
        return context.datasets.view(dataset)

    @routes.get("/datasets/{dataset}/images")
    def images(dataset: str, search: Words = "", offset: Offset = 0, limit: Limit = 50) -> ImageList:
        """A page of the images of a dataset with their captions."""
        return context.datasets.images(dataset, search, offset, limit)

    @routes.get("/datasets/{dataset}/image")
    def image(dataset: str, id: Name) -> ImageView:
        """An image with all captions, and who retrieves it."""
        return context.datasets.image(dataset, id)
