"""Charts as PDF files, printed by a browser of the system."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from crosslens.core import CrosslensError
from crosslens.report.charts.drawing import ChartHtml
from crosslens.report.html import html_page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 60
_DATES = re.compile(rb"(/(?:CreationDate|ModDate) \(D:)[^)]*\)")


def find_browser() -> str | None:
    """A Chromium or Chrome: the one in ``$CROSSLENS_CHROMIUM``, or the first on the path."""
    return os.environ.get("CROSSLENS_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def pdf_of(chart: ChartHtml, browser: str) -> bytes:
    """The chart on a page of its own size. Dates are taken out: the same chart gives the same bytes."""
    width, height = chart.size
    style = f"@page {{ size: {width:g}px {height:g}px; margin: 0; }} body {{ margin: 0; padding: 0; max-width: none; }}"
    with tempfile.TemporaryDirectory() as folder:
        page, output = Path(folder) / "chart.html", Path(folder) / "chart.pdf"
        page.write_text(html_page(chart.name, chart.file(), style=style, heading=False), encoding="utf-8")
        # A process of root has no sandbox to start in; the page is our own and has no script.
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [
            browser, "--headless", "--disable-gpu", "--no-pdf-header-footer", *sandbox,
            f"--user-data-dir={folder}/profile", f"--print-to-pdf={output}", page.as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _failed(browser, str(error)) from error
        if not output.exists():
            raise _failed(browser, done.stderr.decode(errors="replace"))
        return _DATES.sub(rb"\g<1>20000101000000Z)", output.read_bytes())


def _failed(browser: str, reason: str) -> CrosslensError:
    lines = reason.strip().splitlines()
    return CrosslensError(
        f"{browser} did not draw the chart{f': {lines[-1]}' if lines else ''}",
        fix="name another Chromium in CROSSLENS_CHROMIUM",
    )
