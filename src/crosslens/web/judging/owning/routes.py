"""All addresses of owners."""

from __future__ import annotations

from fastapi import APIRouter

from crosslens.web.judging.context import JudgingContext
from crosslens.web.judging.owning import deciding, exchanging, people, results_pages
from crosslens.web.judging.owning.kept_results import KeptResults
from crosslens.web.services import Services

UPLOAD_BYTES = 20 << 20


def router(context: JudgingContext, services: Services) -> APIRouter:
    """Results, people, disagreements, correlations, models, import and export: for owners of the project only."""
    services.body_limits["/judging/upload/"] = UPLOAD_BYTES
    kept = KeptResults()
    routes = APIRouter()
    results_pages.add_pages(routes, context, services, kept)
    people.add_pages(routes, context, kept)
    deciding.add_pages(routes, context, kept)
    exchanging.add_pages(routes, context, services, kept)
    return routes
