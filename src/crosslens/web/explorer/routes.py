"""All addresses of the explorer: its pages, and its JSON."""

from __future__ import annotations

from fastapi import APIRouter

from crosslens.web.explorer.api import api_router
from crosslens.web.explorer.context import ExplorerContext
from crosslens.web.explorer.pages import page_router
from crosslens.web.services import Services


def routers(services: Services) -> list[APIRouter]:
    """The explorer on these services."""
    services.navigation += [("/", "Runs"), ("/datasets", "Datasets")]
    context = ExplorerContext(services)
    services.start_work.append(context.explanations.load_parser)
    return [api_router(context), page_router(context)]
