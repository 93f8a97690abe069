"""The application: shared services, the features that are installed, and what protects all of them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from itertools import chain

from fastapi import Depends, FastAPI

from crosslens import __version__
from crosslens.web import errors, picture_routes
from crosslens.web.access import password_login
from crosslens.web.layout import rendering, static_files
from crosslens.web.library import RunLibrary
from crosslens.web.pictures import PictureStore
from crosslens.web.security import Guard, check_csrf
from crosslens.web.services import Services
from crosslens.web.settings import WebSettings, refuse_open_server

FEATURES = ("explorer", "map", "search", "judging")
"""The folders of this room that hold pages. Each has a module ``routes`` with ``routers(services) -> list[APIRouter]``;
it may extend the navigation, the body limits and the login of the services. The application includes each router: one
that includes others makes FastAPI analyse every address once more, which is most of the time a start takes."""


def create_app(settings: WebSettings) -> FastAPI:
    """The application for these settings; refuses an address that others can reach while nobody has to log in."""
    library = RunLibrary(settings.folder, settings.datasets)
    pictures = PictureStore(library, settings.image_folders, settings.cache_folder, settings.thumbnails << 20)
    services = Services(settings, library, pictures)
    app = FastAPI(
        title="crosslens", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json",
        dependencies=[Depends(check_csrf)], responses=errors.RESPONSES,
    )  # fmt: skip
    app.state.services = services
    static_files.add_to(app)
    app.include_router(picture_routes.router(services))
    installed = [feature for feature in FEATURES if find_spec(f"crosslens.web.{feature}") is not None]
    routers = [import_module(f"crosslens.web.{feature}.routes").routers(services) for feature in installed]
    for router in chain.from_iterable(reversed(routers)):  # judging has most visitors, and addresses are tried in turn
        app.include_router(router)
    if settings.password is not None:
        services.require_login = password_login(settings.password, services.login_limit)
    if not settings.is_local and services.require_login is None:
        raise refuse_open_server(settings)
    rendering.add_to(app, services)
    errors.add_to(app)
    app.add_middleware(Guard, services=services)
    return app
