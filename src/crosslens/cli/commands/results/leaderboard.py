"""``crosslens leaderboard``: models × datasets in one table, with tests against the best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.core as core
import crosslens.pipeline as pipeline
from crosslens.cli.console import print_note
from crosslens.cli.flags import Json, command
from crosslens.cli.stored_runs import load_runs
from crosslens.core import option


@command(
    "crosslens leaderboard runs/*",
    'crosslens leaderboard runs/coco-* runs/f30k-* --metrics "t2i/Hit@1 MedR"',
    "crosslens leaderboard runs/* --write table.tex --write leaderboard.html",
)
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, of any models and datasets.")],
    *,
    metrics: str | None = option(
        None,
        'These, such as "t2i/Hit@1 MedR". [default: the first of each direction]',
        metavar="NAMES",
        joins=" ",
    ),
    correction: str = option("holm", "For multiple comparisons: holm, bh or none.", metavar="NAME"),
    permutations: int = option(10_000, "Permutations of the paired test.", metavar="N", minimum=1, maximum=10_000_000),
    seed: int = option(0, "Seed of the permutations.", metavar="N"),
    json: Json = False,
) -> pipeline.Leaderboard:
    """Compare models over datasets, with the best marked.

    Runs are grouped by their model's name and their dataset. On each dataset every model is tested against the best;
    tests are paired, over images, and corrected for multiple comparisons. Cells may be missing.
    """
    loaded = load_runs(runs)
    if metrics is None and not json:
        print_note("note: the first metric of each direction; choose others with --metrics")
    return pipeline.leaderboard(
        pipeline.group_runs(loaded), _first_of_each_direction(loaded) if metrics is None else metrics,
        correction=correction, permutations=permutations, seed=seed,
    )  # fmt: skip


def _first_of_each_direction(runs: list[core.Run]) -> list[str]:
    first: dict[str, str] = {}
    for run in runs:
        for name in run:
            first.setdefault(core.split_name(name)[0], name)
    if len(first) > 1:
        first.pop(core.BOTH, None)
    return list(first.values())
