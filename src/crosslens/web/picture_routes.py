"""The address of pictures."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BeforeValidator
from starlette.exceptions import HTTPException
from starlette.requests import Request

from crosslens.web.pictures import Size
from crosslens.web.services import Services

SizeText = Annotated[Size, BeforeValidator(int), Query()]
"""A size as an address holds it: text."""


def router(services: Services) -> APIRouter:
    """The address of pictures."""
    routes = APIRouter()

    jpeg: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}

    @routes.get("/pictures/{dataset}/{image:path}", response_class=Response, tags=["pictures"], responses=jpeg)
    def picture(request: Request, dataset: str, image: str, size: SizeText = 320) -> Response:
        """A picture of a dataset as JPEG, its longer side at most ``size`` pixels."""
        if not services.may_see_picture(request, dataset, image):
            raise HTTPException(404, "There is no such picture.")
        content = services.pictures.thumbnail(dataset, image, size)
        # Whoever logs in next in the same browser asks anew.
        headers = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie"}
        return Response(content, media_type="image/jpeg", headers=headers)

    return routes
