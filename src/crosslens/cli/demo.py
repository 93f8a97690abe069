"""``crosslens demo``: the whole way on scenes of its own, nothing needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width

if TYPE_CHECKING:
    from crosslens.core.run import Run
    from crosslens.report.plots import Chart

EXAMPLES = examples("crosslens demo", "crosslens demo -o tryout --images 60 --json")

METRIC = "t2i/Hit@1"
_COLUMN = "task"


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where pictures, runs and plots are written.")
    ] = Path("runs/demo"),
    images: Annotated[
        int, typer.Option(min=3, metavar="N", help="How many scenes to draw; the largest gallery has 16 times as many.")
    ] = 240,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the scenes.")] = 7,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The encoder: the built-in one, or KIND:SOURCE as in encode.")
    ] = "tiny",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier, different demo.")] = False,
    json: Json = False,
) -> None:
    """Draw scenes, encode them, and show where a model fails.

    The same command again goes on where it was stopped, or finds everything done.
    """
    from crosslens.pipeline.demo import Demo, demand_extras, demand_model
    from crosslens.report.plots import chart, write_plot
    from crosslens.synth.generation import VERSIONS
    from crosslens.synth.tasks import NO_FONT, available_tasks

    demand_extras(model)
    demand_model(model, note)
    if "translation" not in available_tasks():
        note(f"note: {NO_FONT}")
    work = Demo(output, overwrite, progress())
    note(f"drawing {images:,} scenes, a confusable twin of each, and similar ones …")
    drawn = work.draw(images, seed)
    runs = {}
    for version in VERSIONS:
        note(f"evaluating {model} on {version} …")
        runs[version] = work.evaluate(drawn, version, model, command=sys.argv, tell=note)
    charts = chart(runs["v0"], _COLUMN, METRIC), chart(list(runs.values()), _COLUMN, METRIC)
    page = write_plot(charts, output / "tasks.html", overwrite=True)  # made from the runs beside it: never somebody's
    note("")
    if json:
        _say_as_json(output, model, runs, page)
    else:
        _say_as_text(output, model, runs, page, charts[0])


def _say_as_json(output: Path, model: str, runs: dict[str, Run], page: Path) -> None:
    from crosslens.report.side_by_side import side_by_side

    say_json(
        {
            "model": model,
            "runs": {str(output / version): run.as_dict() for version, run in runs.items()},
            "side_by_side": side_by_side(list(runs.values()), METRIC, column=_COLUMN).as_dict(),
            "page": str(page),
        }
    )


def _say_as_text(output: Path, model: str, runs: dict[str, Run], page: Path, easiest: Chart) -> None:
    from crosslens.report.bars import terminal_bars
    from crosslens.report.side_by_side import side_by_side

    groups = {group: easiest.series[0].groups[group] for group in easiest.groups}
    sizes = {version: run.provenance["dataset"]["images"] for version, run in runs.items()}
    say(_about(model, sizes["v0"], runs["v0"].provenance["dataset"]["captions"]))
    say(f"\n{easiest.title}: the share of captions whose picture comes first\n")
    say(terminal_bars(_COLUMN, groups, width()))
    say(
        f"\nThe same with harder galleries: v0 has {sizes['v0']:,} pictures; v1 adds a confusable\n"
        f"twin of each, whose captions ask too; v2 has {sizes['v2']:,} pictures.\n"
    )
    say(side_by_side(list(runs.values()), METRIC, column=_COLUMN).in_order(easiest.groups).text(width()))
    say(f"\nBars and radar charts, for any browser: {page}\n\n{_next_steps(output, page)}")


def _about(model: str, images: int, captions: int) -> str:
    lines = [f"{model} looks for {images:,} drawn scenes by {captions:,} captions."]
    if model == "tiny":
        lines += [
            "It comes with crosslens and was trained on other scenes of this kind: its figures",
            "show what an evaluation looks like, and say nothing about photographs.",
        ]
    return "\n".join(lines)


def _next_steps(output: Path, page: Path) -> str:
    steps = {
        f"open {page}": "the plots (or xdg-open)",
        f"crosslens show {output}/v0": "every metric, both directions",
        f"crosslens show {output}/v0 --by style": "which captions are hard?",
        f"crosslens data describe {output}/scenes-v0/": "what was drawn",
        f"crosslens run {output}/v0/recipe.toml": "the same evaluation, repeated",
        "crosslens evaluate --help": "your own model, embeddings or lists",
    }
    room = max(map(len, steps))
    return "What to try next\n" + "\n".join(f"  {command:<{room}}   {why}" for command, why in steps.items())
