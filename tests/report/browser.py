"""A browser that pages are opened in, and what they asked for and complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def opened_browser() -> Iterator[Any]:
    """A browser of the system, or a skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'crosslens[test]'")
    executable = chromium()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable, headless=True, args=["--no-sandbox"])
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
