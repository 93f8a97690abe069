"""Pages from templates. ``explorer/runs.html`` is ``web/explorer/templates/runs.html``; all texts are escaped."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.web.layout.static_files import ROOM, static_address
from crosslens.web.security import CSRF_FIELD, csrf_token
from crosslens.web.services import Services


class _FeatureLoader(BaseLoader):
    """Templates beside the code of their feature; one without a folder belongs to the layout."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Any]:
        feature, _, name = template.rpartition("/")
        file = ROOM / (feature or "layout") / "templates" / name
        if not file.is_file():
            raise TemplateNotFound(template)
        return file.read_text(encoding="utf-8"), str(file), lambda: True


def make_environment() -> Environment:
    """Jinja2 with everything escaped, and an unknown name as an error."""
    environment = Environment(
        loader=_FeatureLoader(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"static": static_address, "csrf_field": _csrf_field}
    environment.filters |= {"segment": lambda text: quote(str(text), safe="")}
    return environment


def _csrf_field(request: Request) -> Markup:
    """The hidden field that every form with ``method="post"`` has: ``{{ csrf_field(request) }}``."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(CSRF_FIELD, csrf_token(request))


def add_to(app: FastAPI, services: Services) -> None:
    """Give the application its templates; call it when the features have extended the navigation."""
    app.state.templates = make_environment()
    app.state.templates.globals["navigation"] = tuple(services.navigation)
    app.state.templates.globals["folder_name"] = services.settings.folder.resolve().name


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from ``feature/name.html``, which extends ``base.html`` and is given these values and the request."""
    environment: Environment = request.app.state.templates
    shown = {"request": request, "page_path": request.scope["path"], **values}
    page = environment.get_template(template).render(shown)
    return HTMLResponse(page, status)
