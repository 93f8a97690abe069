"""All addresses of judging."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from crosslens.web.judging.accounts import routes as account_routes
from crosslens.web.judging.annotating import routes as annotating_routes
from crosslens.web.judging.context import JudgingContext
from crosslens.web.judging.owning import deciding, exchanging, people, results_pages
from crosslens.web.judging.owning.kept_results import KeptResults
from crosslens.web.services import Services

UPLOAD_BYTES = 20 << 20


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
    parts = [annotating_routes.router(context), account_routes.router(context), _owner_router(context, services)]
    for route in (route for part in parts for route in part.routes):
        if isinstance(route, Route) and not services.is_open(route.path):
            services.route_checks.append((route.path_regex, partial(context.refuse_route, route.path)))
    return parts


def _owner_router(context: JudgingContext, services: Services) -> APIRouter:
    """Results, people, disagreements, correlations, models, import and export: for owners of the project only."""
    services.body_limits["/judging/upload/"] = UPLOAD_BYTES
    kept = KeptResults()
    routes = APIRouter()
    results_pages.add_pages(routes, context, services, kept)
    people.add_pages(routes, context, kept)
    deciding.add_pages(routes, context, kept)
    exchanging.add_pages(routes, context, services, kept)
    return routes
