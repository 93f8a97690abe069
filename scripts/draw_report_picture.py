"""Draw docs/assets/report.png again: the first screen of the report on drawn scenes.

``python scripts/draw_report_picture.py`` needs Chromium and the packages of the extra ``test``; it takes a minute.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "assets" / "report.png"
WIDTH, HEIGHT = 1240, 900
COLOURS = 96
"""Enough for text and bars, and a third of the bytes."""


def main() -> None:
    """Draw scenes, audit the built-in model on them, and photograph the page."""
    with tempfile.TemporaryDirectory() as folder:
        scenes, audit = Path(folder) / "scenes", Path(folder) / "audit"
        run("synth", "--images", "120", "--seed", "7", "-o", scenes)
        run("audit", "--dataset", scenes, "--model", "tiny", "--quick", "-o", audit)
        picture = Image.open(BytesIO(photograph(audit / "report.html")))
    PICTURE.parent.mkdir(exist_ok=True)
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"wrote {PICTURE} ({PICTURE.stat().st_size / 1000:.0f} kB)")


def run(*words: str | Path) -> None:
    """Call the command line."""
    subprocess.run([sys.executable, "-m", "crosslens", *map(str, words)], check=True, env=os.environ)


def photograph(page: Path) -> bytes:
    """The first screen of a page."""
    browser = shutil.which("chromium")
    assert browser is not None, "install Chromium"
    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        opened = running.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(page.as_uri())
        content: bytes = opened.screenshot()
        running.close()
    return content


if __name__ == "__main__":
    main()
