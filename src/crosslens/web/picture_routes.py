"""The address of pictures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BeforeValidator

from crosslens.web.pictures import Size
from crosslens.web.services import Services

SizeText = Annotated[Size, BeforeValidator(int), Query()]
"""A size as an address holds it: text."""


def router(services: Services) -> APIRouter:
    """The address of pictures."""
    routes = APIRouter()

    @routes.get("/pictures/{dataset}/{image:path}", response_class=Response, tags=["pictures"])
    def picture(dataset: str, image: str, size: SizeText = 320) -> Response:
        """A picture of a dataset as JPEG, its longer side at most ``size`` pixels."""
        content = services.pictures.thumbnail(dataset, image, size)
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600"})

    return routes
