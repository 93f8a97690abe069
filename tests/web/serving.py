"""A server in a thread, and runs with vectors for it to serve."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from crosslens.pipeline import EvaluateOptions, InputOptions, ModelOptions, Recipe, run_recipe
from crosslens.synth import write_scenes
from crosslens.values import Dataset, Embeddings
from crosslens.web import WebSettings, create_app
from crosslens.web.connections import make_server


@contextmanager
def served(
    folder: Path, cache: Path, login: Callable[[Request], Awaitable[Response | None]] | None = None, **settings: object
) -> Iterator[str]:
    """The address of an application over the folder; ``login`` replaces its own."""
    web_settings = WebSettings(folder, cache=cache, **settings)  # type: ignore[arg-type]
    app = create_app(web_settings)
    if login is not None:
        app.state.services.require_login = login
    with listening(app, web_settings) as address:
        yield address


@contextmanager
def listening(app: Any, settings: WebSettings) -> Iterator[str]:
    """The address of an application, behind a real socket as ``crosslens serve`` opens it."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = make_server(app, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def drawn_vectors(
    dataset: Dataset, seed: int = 0, dimension: int = 8, spread: float = 1.2
) -> tuple[Embeddings, Embeddings]:
    """An image's vector is drawn; those of its captions are near it, or the same without a ``spread``."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(len(dataset.image_ids), dimension))
    captions = images[dataset.caption_image] + spread * rng.normal(size=(len(dataset.caption_ids), dimension))
    return (
        Embeddings(dataset.image_ids, images.astype(np.float32)),
        Embeddings(dataset.caption_ids, captions.astype(np.float32)),
    )


def write_vector_run(folder: Path, name: str, dataset: Path, seed: int = 0, spread: float = 1.2) -> Path:
    """A run computed from stored embeddings, with the recipe that says so."""
    images, captions = drawn_vectors(Dataset.load(dataset), seed, spread=spread)
    vectors = folder / "vectors" / name
    images.save(vectors / "images")
    captions.save(vectors / "captions")
    inputs = InputOptions(image_embeddings=str(vectors / "images"), caption_embeddings=str(vectors / "captions"))
    options = EvaluateOptions(metrics=("Hit@1", "MRR", "MedR"), resamples=20)
    run_recipe(Recipe(str(dataset), inputs=inputs, options=options), folder / name)
    return folder / name


def write_scene_run(folder: Path, images: int = 24) -> Path:
    """Drawn scenes, and a run of the built-in encoder over them."""
    write_scenes(folder / "scenes", images, ("colour", "count", "object"), 3, workers=1)
    model = ModelOptions("tiny", str(folder / "scenes"))
    options = EvaluateOptions(metrics=("Hit@1", "MRR"), resamples=20)
    run_recipe(Recipe(str(folder / "scenes"), model=model, options=options), folder / "tiny")
    return folder


class Visitor:
    """A browser page, with what it asked for from elsewhere and what it complained about."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._hear)
        page.on("request", self._see)

    def _hear(self, line: Any) -> None:
        if line.type == "error" or "Content Security Policy" in line.text:  # drivers warn of slow graphics
            self.complaints.append(line.text)

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self.address, "blob:", "data:")):
            self.elsewhere.append(request.url)

    def open(self, path: str) -> Any:
        """Open a page of the server."""
        self.page.goto(f"{self.address}{path}")
        return self.page

    def serious(self) -> list[str]:
        """What axe finds that keeps people out; the rules are evaluated in Playwright's own world, not the page's."""
        from axe_playwright_python.sync_playwright import Axe

        violations = Axe().run(self.page).response["violations"]
        return [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in violations
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]

    def is_too_wide(self) -> bool:
        """Whether the page scrolls sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@contextmanager
def visit(browser: Any, address: str, **context: Any) -> Iterator[Visitor]:
    """A page in a context of its own; ``context`` holds Playwright's options, such as the size of the window."""
    opened = browser.new_context(**context)
    opened.set_default_timeout(30_000)
    yield Visitor(opened.new_page(), address)
    opened.close()
