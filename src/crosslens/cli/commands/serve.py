"""``crosslens serve``: runs, queries and datasets in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import crosslens.web as web
from crosslens.cli.console import print_json, print_note
from crosslens.cli.datasets import DATASET_WORDS, served_data
from crosslens.cli.flags import Json, command
from crosslens.core import option
from crosslens.web import ServeOptions


@command(
    "crosslens serve runs/",
    "crosslens serve runs/ --port 8080 --data pictures/",
    'crosslens serve runs/ --data "coco captions=captions_val2017.json"',
    "crosslens serve runs/ --host 0.0.0.0 --password-file password.txt",
)
def serve(
    folder: Annotated[Path, typer.Argument(help="A folder that holds run folders, at any depth.")],
    options: ServeOptions,
    data: list[str] | None = option(
        None,
        "A folder of pictures, a dataset for runs whose recipe does not lead to theirs, or a folder of build imp; "
        "may be repeated.",
        metavar=f"FOLDER|{DATASET_WORDS}",
    ),
    json: Json = False,
) -> None:
    """Look at runs, queries and datasets in a browser.

    Answers on this computer only, unless --host says otherwise. Run folders are only read, and a run that is written
    while the server is open shows up. With --json the address is printed as JSON once the server answers.
    """
    settings = web.WebSettings.of(folder, options, *served_data(data or ()))

    def announce(address: str) -> None:
        if json:
            print_json({"address": address, "folder": str(folder)})
            sys.stdout.flush()
        else:
            print_note(f"{folder} is at {address} (Ctrl-C stops it)")

    web.serve_pages(settings, print_note, announce)
