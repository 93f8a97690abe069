"""``crosslens compare``: runs on the same queries, tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, say, say_json, width

EXAMPLES = examples(
    "crosslens compare runs/clip-b32 runs/siglip",
    'crosslens compare runs/clip-b32 runs/siglip --metrics "t2i/Hit@1 i2t/mAP@R"',
    "crosslens compare runs/clip-b32 runs/siglip runs/align --json",
)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders; the first is compared with the others.")],
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help='Only these, such as "t2i/Hit@1 i2t/mAP@R".')
    ] = None,
    correction: Annotated[
        str, typer.Option(metavar="NAME", help="For several tests at once: holm, bh or none.")
    ] = "holm",
    permutations: Annotated[int, typer.Option(metavar="N", help="Permutations of the paired test.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the permutations.")] = 0,
    json: Json = False,
) -> None:
    """Test whether runs differ, and say who wins where.

    Runs must share their queries. Tests are paired, resample images, and are corrected for their number.
    """
    from crosslens.cli.stored import load_run
    from crosslens.core.errors import UsageError
    from crosslens.pipeline.compare import compare as compare_runs

    if len(runs) < 2:
        raise UsageError("a comparison needs two runs", fix="name a second run folder")
    loaded = [load_run(folder) for folder in runs]
    comparison = compare_runs(*loaded, metrics=metrics, correction=correction, permutations=permutations, seed=seed)
    if json:
        say_json(comparison.as_dict())
    else:
        say(comparison.text(width()))
