"""``crosslens build clean``: web titles become captions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import crosslens.build as build
from crosslens.build import CleaningSettings
from crosslens.cli.answers import wrote
from crosslens.cli.console import check_outputs, progress_bar
from crosslens.cli.flags import OUTPUT, Overwrite, command
from crosslens.core import option


@command(
    "crosslens build clean titles.txt",
    "crosslens build clean titles.csv --column title -o cleaned.parquet",
    "crosslens build clean pool.parquet --languages any --near-duplicates 0.8 \\",
    "    -o cleaned.parquet",
    "crosslens build clean titles.txt --minimum-words 3 --no-tagging -o kept.txt",
)
def clean(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="Captions: .txt (one per line), .csv, .tsv or .parquet.")
    ],
    settings: CleaningSettings,
    column: str | None = option(
        None, "The column with the captions. [default: caption, captions, text, title or alt]", metavar="NAME"
    ),
    near_duplicates: float | None = option(
        None,
        "Also drop captions that share at least this much of their character trigrams with an earlier one.",
        metavar="SHARE",
        minimum=0.1,
        maximum=1,
    ),
    seed: int = option(0, "Seed of the search for near-duplicates.", metavar="N"),
    output: Path | None = option(
        None,
        "Where the table is written: .parquet, .csv, or .txt for the kept captions alone.",
        metavar="FILE",
        flags=OUTPUT,
    ),
    overwrite: Overwrite = False,
) -> build.CleanedCaptions:
    """Clean web titles: repair captions, drop the rest with a reason.

    Wrong encodings, markup, addresses, names of sites, hashtags, credits and advertising are repaired; what is no
    caption afterwards is dropped. The output has a row per caption: text, cleaned, kept, reason, changes.
    """
    if output is not None:
        build.check_cleaned_output(output)
    check_outputs(output, overwrite=overwrite)
    texts, others = build.read_captions(source, column)
    result = build.clean_captions(texts, settings, progress=progress_bar())
    if near_duplicates is not None:
        result = result.without_near_duplicates(near_duplicates, seed=seed)
    if output is not None:
        build.write_cleaned(result, output, others)
        wrote(output)
    return replace(result, output=output)
