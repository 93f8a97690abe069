"""A real server on a free port, and a browser that notes what pages complain about."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from crosslens.web import WebSettings, create_app


@contextmanager
def running_server(folder: Path, cache: Path, **settings: Any) -> Iterator[str]:
    """Serve a folder on this computer; yields the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(WebSettings(folder, cache=cache, **settings))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)
    listener.close()


class WatchedPage:
    """A page of a browser; ``complaints`` are errors in its console, failed and foreign requests."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        page.on("console", lambda message: self._note(message.type in ("error", "warning"), message.text))
        page.on("pageerror", lambda error: self._note(True, str(error)))
        page.on("request", lambda request: self._note(not request.url.startswith((address, "blob:")), request.url))

    def _note(self, wrong: bool, text: str) -> None:
        if wrong:
            self.complaints.append(text)

    def open(self, path: str) -> Any:
        """Go to a page, and wait for the parts that load after it."""
        self.page.goto(self.address + path)
        if "/query?" in path:
            self.page.wait_for_load_state("networkidle")
        return self.page

    @property
    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than the window."""
        root = "document.documentElement"
        return bool(self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))
