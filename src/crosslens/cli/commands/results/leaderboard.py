"""``crosslens leaderboard``: models × datasets in one table, with tests against the best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.core as core
import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.console import check_outputs, print_json, print_note, print_result, terminal_width
from crosslens.cli.flags import Json, Overwrite, command
from crosslens.cli.stored_runs import load_runs
from crosslens.core import UsageError, option


@command(
    "crosslens leaderboard runs/*",
    'crosslens leaderboard runs/coco-* runs/f30k-* --metrics "t2i/Hit@1 MedR"',
    "crosslens leaderboard runs/* --metrics Hit@1 --latex > table.tex",
    "crosslens leaderboard runs/* --html leaderboard.html",
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
    latex: bool = option(False, "Print a LaTeX table: the best in bold, and the marks of the text."),
    html: Path | None = option(None, "Write a page, too.", metavar="FILE"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Compare models over datasets, with the best marked.

    Runs are grouped by their model's name and their dataset. On each dataset every model is tested against the best;
    tests are paired, over images, and corrected for multiple comparisons. Cells may be missing.
    """
    if latex and json:
        raise UsageError("--latex does not go with --json", fix="drop one of them")
    check_outputs(html, overwrite=overwrite)
    loaded = load_runs(runs)
    if metrics is None and not json:
        print_note("note: the first metric of each direction; choose others with --metrics")
    board = pipeline.leaderboard(
        pipeline.group_runs(loaded), _first_of_each_direction(loaded) if metrics is None else metrics,
        correction=correction, permutations=permutations, seed=seed,
    )  # fmt: skip
    if html is not None:
        core.write_text(html, report.leaderboard_page(board))
        print_note(f"written: {html}")
    if json:
        print_json(board.as_dict())
    elif latex:
        print_result(report.leaderboard_latex(board).removesuffix("\n"))
    else:
        print_result(board.text(terminal_width()))


def _first_of_each_direction(runs: list[core.Run]) -> list[str]:
    first: dict[str, str] = {}
    for run in runs:
        for name in run:
            first.setdefault(core.split_name(name)[0], name)
    if len(first) > 1:
        first.pop(core.BOTH, None)
    return list(first.values())
