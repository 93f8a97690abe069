"""A browser that pages are opened in, and what they asked for and complained about."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def chromium() -> str:
    """A browser of the system, or a skip."""
    executable = os.environ.get("CROSSLENS_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not executable:
        pytest.skip(
            "no Chromium here: install one (Debian: apt-get install chromium), or name it in CROSSLENS_CHROMIUM"
        )
    return executable


_FLAGS = [
    *("--headless", "--no-sandbox", "--remote-debugging-port=0", "--no-first-run", "--force-color-profile=srgb"),
    # nothing beside the page that is looked at
    *("--hide-scrollbars", "--mute-audio", "--disable-gpu", "--disable-extensions", "--disable-component-update"),
    *("--disable-background-networking", "--disable-default-apps", "--disable-sync", "--disable-breakpad"),
    *("--disable-dev-shm-usage", "--metrics-recording-only", "--no-service-autorun", "--password-store=basic"),
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,PaintHolding",
]


@contextmanager
def running_chromium() -> Iterator[str]:
    """The address at which a browser of the system can be steered, or a skip."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [chromium(), *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                port = Path(profile, "DevToolsActivePort")
                while not (port.exists() and port.read_text().count("\n") == 1):
                    assert process.poll() is None, "the browser ended before it could be steered"
                    time.sleep(0.02)
                yield f"http://127.0.0.1:{port.read_text().split()[0]}"
            finally:
                process.terminate()


@contextmanager
def opened_browser(address: str) -> Iterator[Any]:
    """The running browser, for a while: as long as it is open, no event loop can run in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'crosslens[test]'")
    with playwright.sync_playwright() as started:
        browser = started.chromium.connect_over_cdp(address)
        yield browser
        browser.close()


class Watched:
    """A page with all it asked for and complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(line.text))
        page.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))
