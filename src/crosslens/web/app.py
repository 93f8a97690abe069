"""The application: shared services, the features that are installed, and what protects all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query
from fastapi.responses import Response
from pydantic import BeforeValidator
from starlette.exceptions import HTTPException
from starlette.requests import Request

from crosslens import __version__
from crosslens.core import UsageError, argument
from crosslens.storage import cache_folder
from crosslens.web.access import password_login
from crosslens.web.library import RunLibrary
from crosslens.web.pages import RESPONSES, add_pages
from crosslens.web.pictures import PictureStore, Size
from crosslens.web.security import Guard, Services, check_csrf
from crosslens.web.settings import WebSettings, is_loopback

FEATURES = ("explorer", "map", "search", "judging")
"""The folders that hold pages. Each has a module ``routes`` with ``routers(services) -> list[APIRouter]``; it may
extend the navigation, the body limits and the login of the services. The application takes the routes of each router:
FastAPI would analyse those of an included one a second time, which is most of the time a start takes."""
SizeText = Annotated[Size, BeforeValidator(int), Query()]
"""A size as an address holds it: text."""


def create_app(settings: WebSettings) -> FastAPI:
    """The application for these settings; refuses an address that others can reach while nobody has to log in."""
    library = RunLibrary(settings.folder, settings.datasets)
    pictures = PictureStore(
        library, settings.image_folders, cache_folder(settings.cache) / "web", settings.thumbnails << 20,
        linked_folders=settings.is_local,
    )  # fmt: skip
    services = Services(settings, library, pictures)

    @asynccontextmanager
    async def stopping(_: FastAPI) -> AsyncIterator[None]:
        yield
        for stop in services.stop_work:
            stop()

    app = FastAPI(
        title="crosslens", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json",
        dependencies=[Depends(check_csrf)], responses=RESPONSES, lifespan=stopping,
    )  # fmt: skip
    app.state.services = services
    add_pages(app, services)
    jpeg: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}

    @app.get("/pictures/{dataset}/{image:path}", response_class=Response, tags=["pictures"], responses=jpeg)
    def picture(request: Request, dataset: str, image: str, size: SizeText = 320) -> Response:
        """A picture of a dataset as JPEG, its longer side at most ``size`` pixels."""
        if not services.may_see_picture(request, dataset, image):
            raise HTTPException(404, "There is no such picture.")
        content = services.pictures.thumbnail(dataset, image, size)
        # Whoever logs in next in the same browser asks anew.
        headers = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie"}
        return Response(content, media_type="image/jpeg", headers=headers)

    installed = [feature for feature in FEATURES if find_spec(f"crosslens.web.{feature}") is not None]
    routers = [import_module(f"crosslens.web.{feature}.routes").routers(services) for feature in installed]
    for router in chain.from_iterable(reversed(routers)):  # judging has most visitors, and addresses are tried in turn
        app.router.routes += router.routes
    if settings.password is not None:
        services.require_login = password_login(settings.password, services.login_limit)
    if not settings.is_local and services.require_login is None:
        if not is_loopback(settings.host):
            name, reached = "host", f"the address {settings.host}"
        else:
            name, reached = "forwarded_allow_ips" if settings.proxies else "allowed_hosts", "a server behind a proxy"
        raise UsageError(
            f"{reached} can be reached from other computers, and no login is set up",
            fix=f"pass {argument('password_file', 'FILE')}, or leave {argument(name)} out and use an SSH tunnel",
            option=name,
        )
    app.add_middleware(Guard, services=services)
    return app
