"""The server itself: a socket, the application, and the line that says where it is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from crosslens.core import MissingExtraError, UsageError, argument
from crosslens.encode import split_model
from crosslens.storage import offline
from crosslens.web.settings import WebSettings, is_loopback


def serve_pages(settings: WebSettings, warn: Callable[[str], None], announce: Callable[[str], None]) -> None:
    """Serve the application until it is interrupted; ``warn`` takes what to know, ``announce`` the address."""
    for model in settings.models:  # a name that nothing loads is refused now, not by the first search
        split_model(model)
    try:
        from crosslens.web.app import create_app
        from crosslens.web.connections import make_server
    except ImportError as error:
        if (error.name or "").startswith("crosslens"):
            raise
        raise MissingExtraError("the web application", error.name or "fastapi", "web") from error
    # A recipe may name a dataset or a model of a hub: looking at a page downloads nothing.
    with offline():
        app = create_app(settings)
    try:  # here, so that an occupied port is an error of ours
        family, kind, protocol, _, address_of = socket.getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address_of)
        listener.listen(128)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}",
            fix=f"choose another port: {argument('port', settings.port + 1)}",
            option="port",
        ) from error
    host = f"[{settings.host}]" if ":" in settings.host and not settings.host.startswith("[") else settings.host
    address = f"http://{host}:{listener.getsockname()[1]}/"
    if not is_loopback(settings.host):
        warn(
            "warning: other computers can reach this server, and without HTTPS passwords and pages can be read on the "
            "way; put it behind a proxy with HTTPS, or use an SSH tunnel"
        )
    announce(address)
    for note in app.state.services.start_notes:
        warn(note.replace("{address}", address))

    def prepare() -> None:
        for work in app.state.services.start_work:
            work()

    with offline(), _findable(settings.folder, address):
        threading.Thread(target=prepare, daemon=True).start()
        make_server(app, settings).run(sockets=[listener])


def running_address(folder: Path) -> str | None:
    """Where a server of this user shows ``folder`` now; None where none answers, or one that listens everywhere."""
    with suppress(OSError, ValueError):
        address = _address_file(folder).read_text(encoding="utf-8")
        place = urlsplit(address)
        if place.hostname not in (None, "0.0.0.0", "::"):  # at these nobody else reaches this computer
            with socket.create_connection((place.hostname, place.port or 80), timeout=1):
                return address
    return None


@contextmanager
def _findable(folder: Path, address: str) -> Iterator[None]:
    """Inside, :func:`running_address` finds the server. The served folder itself may be read-only."""
    from crosslens.storage import remove, write_text

    file = _address_file(folder)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, address, wait=True)
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_text(encoding="utf-8") == address:  # not that of a server that was started later
                remove(file)


def _address_file(folder: Path) -> Path:
    from crosslens.storage import cache_folder, fingerprint

    return cache_folder() / "servers" / fingerprint("served folder", {"path": str(folder.resolve())})
