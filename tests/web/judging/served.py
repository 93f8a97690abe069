"""The application behind a real socket, with pictures, for browsers and for load."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image, ImageDraw

import crosslens as cl
from crosslens.web.judging.database.projects import create_project
from crosslens.web.judging.tasks import ItemContent, NewItem, ShownPicture, ShownText
from tests.web.judging.samples import add_items
from tests.web.judging.site import Site
from tests.web.serving import listening

PICTURES = 24


def pictures(folder: Path) -> cl.Dataset:
    """A dataset of drawn pictures in a folder."""
    folder.mkdir()
    names = [f"p{n}" for n in range(PICTURES)]
    for n, name in enumerate(names):
        picture = Image.new("RGB", (480, 320), (200, 215, 225))
        draw = ImageDraw.Draw(picture)
        for k in range(1 + n % 4):
            draw.ellipse((40 + 100 * k, 90, 120 + 100 * k, 170), fill=(30 * (n % 8), 90, 200 - 20 * (n % 9)))
        draw.rectangle((0, 260, 480, 320), fill=(110, 150, 90))
        picture.save(folder / f"{name}.png")
    plain = cl.Dataset.of({name: [f"{1 + n % 4} balls on grass"] for n, name in enumerate(names)}, name="balls")
    return replace(plain, images=plain.images.with_columns(pl.Series("file", [f"{name}.png" for name in names])))


def running(site: Site) -> AbstractContextManager[str]:
    """The site at an address, while the block lasts."""
    return listening(site.app, site.settings)


def picture_project(site: Site, task: str, real: int, **values: Any) -> int:
    """A project over the pictures: one, or for failures two, per item."""
    dataset = site.app.state.services.library.datasets()[0].id
    practice = values.pop("practice", 0)
    new_project = create_project(site.database, values.pop("name", "Balls on grass"), task, **values)
    label = [new_project.form.labels[0].name]

    def content(n: int) -> ItemContent:
        pictures = [ShownPicture(dataset, f"p{n % PICTURES}", "Retrieved")]
        if task == "failures":
            pictures.append(ShownPicture(dataset, f"p{(n + 1) % PICTURES}", "Expected"))
        return ItemContent(tuple(pictures), (ShownText(f"{1 + n % 3} red balls on grass", "Query"),))

    new = [NewItem(content(n)) for n in range(real)]
    expected = {"labels": label, "why": "Count the balls."}
    add_items(
        site.database, new_project.id, [*(NewItem(content(n), "practice", expected) for n in range(practice)), *new]
    )
    return new_project.id
