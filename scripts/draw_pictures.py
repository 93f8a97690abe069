"""Draw the pictures of the documentation: scenes are drawn, a model is audited on them, and the pages are photographed.

``make docs-pictures`` runs this; it needs Chromium and the packages of the extra ``test``, and takes some minutes.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image
from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH, HEIGHT = 1240, 900
TERMINAL = "width: 760px; padding: 16px; background: #1d1f21; color: #e8e8e8; font: 14px/1.45 monospace; margin: 0"
CELL = "padding: 10px; background: #f4f4f6; border: 1px solid #ddd; font: 14px/1.5 monospace"
MOST_BYTES = 4_000_000
"""All pictures together."""


def main() -> None:
    """Draw every picture anew."""
    browser = shutil.which("chromium")
    assert browser is not None, "install Chromium: make system-packages"
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        os.chdir(folder)
        os.environ["CROSSLENS_CACHE"] = folder + "/cache"
        crosslens("synth", "--images", "120", "--seed", "7", "-o", "scenes")
        contact_sheet(sorted(Path("scenes/images").iterdir())[:10], columns=5).save(
            PICTURES / "scenes.webp", quality=80
        )
        draw_charts()
        launched = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = launched.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        photograph_terminal(page)
        photograph_notebook(page)
        photograph_written_pages(page)
        photograph_server(page)
        launched.close()
    sizes = {picture.name: picture.stat().st_size for picture in sorted(PICTURES.iterdir())}
    for name, size in sizes.items():
        print(f"{size / 1000:8.0f} kB  {name}")
    assert sum(sizes.values()) <= MOST_BYTES, f"{sum(sizes.values())} bytes together; at most {MOST_BYTES}"


def draw_charts() -> None:
    """Runs and a study on the scenes, and the charts that commands write of them."""
    crosslens("perturb", "--dataset", "scenes", "--name", "blur@3", "-o", "perturbed", "--sheet", "sheet.png")
    Image.open("sheet.png").convert("RGB").save(PICTURES / "perturbed-images.webp", quality=80)
    crosslens("evaluate", "--dataset", "scenes", "--model", "tiny", "-o", "served/sharp")
    crosslens("evaluate", "--dataset", "perturbed/blur@3", "--model", "tiny", "-o", "served/blurred")
    crosslens("audit", "--dataset", "scenes", "--model", "tiny", "--quick", "-o", "audit")
    runs = ("served/sharp", "served/blurred")
    crosslens("plot", *runs, "--by", "style", "--metric", "t2i/Hit@1", "--write", PICTURES / "group-bars.svg")
    crosslens("robustness", "--dataset", "scenes", "--model", "tiny", "--perturbations", "all", "-o", "study")
    crosslens("plot", "study", "--write", PICTURES / "robustness-heat.svg")
    crosslens(
        "analyze", "polysemy", "--dataset", "scenes", "--model", "tiny", "--write", PICTURES / "polysemy-curves.svg"
    )


def photograph_terminal(page: Page) -> None:
    """What ``crosslens evaluate`` prints."""
    words = ("evaluate", "--dataset", "scenes", "--model", "tiny", "-o", "served/again")
    lines = html.escape(f"$ crosslens {' '.join(words)}\n\n{crosslens(*words)}".rstrip())
    page.set_content(f'<pre id="shown" style="{TERMINAL}">{lines}</pre>')
    photograph(page, "evaluate", "#shown")


def photograph_notebook(page: Page) -> None:
    """A cell of a notebook, and what a result shows below it."""
    import crosslens as cl

    code = 'cl.plot([sharp, blurred], "task", "t2i/Hit@1")'
    shown = cl.plot([cl.Run.load(f"served/{name}") for name in ("sharp", "blurred")], "task", "t2i/Hit@1")
    style = "width: 560px; height: 610px; overflow: hidden; padding: 12px; font-family: sans-serif"
    page.set_content(f'<div id="shown" style="{style}"><pre style="{CELL}">{code}</pre>{shown._repr_html_()}</div>')
    photograph(page, "notebook", "#shown")


def photograph_written_pages(page: Page) -> None:
    """The report of an audit, and the pages of single results."""
    page.goto(Path("audit/report.html").resolve().as_uri())
    photograph(page, "report")
    photograph(page, "findings", ".answers")
    failures = pl.read_parquet("audit/explanations/tiny/failures.parquet")
    failures = failures.filter(pl.col("CA") > 0, main_cause="object").sort("query")
    crosslens("explain", "served/sharp", "--query", failures["query"][0], "--write", "explanation.html")
    crosslens("compare", "served/sharp", "served/blurred", "--changes", "--write", "comparison.html")
    for name in ("explanation", "comparison"):
        page.goto(Path(f"{name}.html").resolve().as_uri())
        page.evaluate("document.querySelectorAll('h2')[1]?.scrollIntoView()")  # what two runs retrieved for one query
        photograph(page, name)


def photograph_server(page: Page) -> None:
    """The explorer, the map and the judging pages, as somebody sees them who opens them first."""
    crosslens("judging", "new", "Failures of tiny", "--folder", "served")
    crosslens("judging", "import", "Failures of tiny", "served/sharp", "--limit", "20", "--folder", "served")
    with server() as (address, setup):
        page.goto(address + "runs/sharp")
        photograph(page, "explorer")
        page.goto(address + "map/sharp?method=pca")
        page.click("#compute-form button")
        page.wait_for_selector("#map[data-state=drawn]")
        photograph(page, "map")
        page.goto(setup)
        page.fill("input[name=name]", "Ada")
        page.fill("input[name=password]", "only for a picture")
        page.click("button[type=submit]")
        page.goto(address + "projects/1/annotate")
        photograph(page, "judging")


def crosslens(*words: str | Path) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "crosslens", *map(str, words)]
    if "--write" in words:
        command.append("--overwrite")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def server() -> Iterator[tuple[str, str]]:
    """The address of a server of the runs, and the link by which the first account is made."""
    command = [sys.executable, "-m", "crosslens", "serve", "served", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        setup = next(match[0] for line in process.stderr if (match := re.search(r"http\S+/setup/\S+", line)))
        try:
            yield setup.partition("setup/")[0], setup
        finally:
            process.terminate()


def photograph(page: Page, name: str, selector: str | None = None) -> None:
    """Write what the window shows, or one element of the page."""
    page.wait_for_function("[...document.images].every(image => image.complete || image.loading == 'lazy')")
    time.sleep(2)  # lazy pictures load, points of the map fade in
    content = page.screenshot() if selector is None else page.locator(selector).first.screenshot()
    Image.open(BytesIO(content)).convert("RGB").save(PICTURES / f"{name}.webp", quality=80, method=6)


def contact_sheet(files: list[Path], columns: int, size: int = 240) -> Image.Image:
    """Pictures in rows."""
    sheet = Image.new("RGB", (columns * size, -(-len(files) // columns) * size), "white")
    for number, file in enumerate(files):
        tile: Any = Image.open(file).convert("RGB").resize((size - 8, size - 8))
        sheet.paste(tile, (number % columns * size + 4, number // columns * size + 4))
    return sheet


if __name__ == "__main__":
    main()
