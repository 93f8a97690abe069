"""``crosslens synth`` and ``demo``: a dataset of drawn scenes, and a whole evaluation on such scenes."""

from __future__ import annotations

import sys
from pathlib import Path

import crosslens.core as core
import crosslens.pipeline as pipeline
import crosslens.report as report
import crosslens.synth as synthesis
from crosslens.cli.console import duration, print_json, print_note, print_result, progress_bar, terminal_width
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.core import option

METRIC = "t2i/Hit@1"
_COLUMN = "task"
_START_UP, _PER_SCENE = 5.0, 0.4
"""Seconds that the demo takes on one core: in any case, and for each scene with its twin and those like it."""


@command(
    "crosslens synth --images 1000 --tasks all --seed 7 -o scenes/",
    "crosslens synth --images 500 --tasks colour,count,ocr -o few/",
    "crosslens synth --images 1000 --version v2 --gallery 16000 -o hard/",
)
def synth(
    output: Path = option(..., "Where the dataset is written.", metavar="FOLDER", flags=OUTPUT),
    images: int = option(1000, "How many captioned scenes to draw.", metavar="N", minimum=1, maximum=100_000_000),
    tasks: str = option("all", "all, or names separated by commas.", metavar="NAMES", joins=","),
    seed: int = option(0, "The same seed gives the same files.", metavar="N"),
    version: str = option(
        "v0", "v0; v1 adds a confusable twin of each scene; v2 similar scenes without captions.", metavar="NAME"
    ),
    gallery: int | None = option(None, "For v2: images in all. [default: 16 times --images]", metavar="N"),
    workers: int | None = option(
        None, "Drawing processes. [default: one per core]", metavar="N", minimum=1, maximum=4096
    ),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Draw scenes with captions, objects and boxes.

    The twelve tasks: colour, count, location, figure, object, action, scene, ocr, landmark, calculation, code,
    translation. A thirteenth, area, draws figures whose area is to be calculated; all does not include it, and its
    scenes are of the task calculation. Running the same command again resumes where it was interrupted.
    """
    dataset = synthesis.write_scenes(
        output,
        images,
        tasks,
        seed,
        version=version,
        gallery=gallery,
        workers=workers,
        overwrite=overwrite,
        progress=progress_bar(),
    )
    per_task = dict(dataset.images["task"].value_counts(sort=True).sort("task").iter_rows())
    if json:
        print_json(
            {
                "output": str(output),
                "name": dataset.name,
                "images": len(dataset.image_ids),
                "captions": len(dataset.caption_ids),
                "tasks": per_task,
                "fingerprint": dataset.fingerprint,
            }
        )
        return
    print_result(f"{len(dataset.image_ids):,} pictures and {len(dataset.caption_ids):,} captions in {output}")
    print_result("  " + ", ".join(f"{task} {count:,}" for task, count in per_task.items()))
    print_result(f"Look at it: crosslens data describe {output}/")


@command("crosslens demo", "crosslens demo -o tryout --images 60 --json")
def demo(
    output: Path = option(
        Path("runs/demo"), "Where pictures, runs and plots are written.", metavar="FOLDER", flags=OUTPUT
    ),
    images: int = option(
        240,
        "How many scenes to draw; the largest gallery has 16 times as many.",
        metavar="N",
        minimum=3,
        maximum=1_000_000,
    ),
    seed: int = option(7, "Seed of the scenes.", metavar="N"),
    model: str = option("tiny", "The encoder: the built-in one, or KIND:SOURCE as in encode.", metavar="NAME"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Draw scenes, encode them, and show where a model fails.

    Running the same command again resumes where it was interrupted, or finds everything complete.
    """
    pipeline.require_extras(model)
    pipeline.require_model(model, print_note)
    work = pipeline.Demo(output, overwrite, progress_bar())
    cores = core.available_cores()
    seconds = _START_UP + _PER_SCENE * images / cores
    print_note(
        f"this takes about {duration(seconds)} on {cores} cores, less if an earlier call has done a part; "
        f"everything is written to {output}"
    )
    print_note(f"drawing {images:,} scenes, a confusable twin of each, and similar ones …")
    drawn = work.draw(images, seed)
    runs = {}
    for version in synthesis.VERSIONS:
        print_note(f"evaluating {model} on {version} …")
        runs[version] = work.evaluate(drawn, version, model, command=sys.argv, notify=print_note)
    charts = report.chart(runs["v0"], _COLUMN, METRIC), report.chart(list(runs.values()), _COLUMN, METRIC)
    page = report.write_plot(charts, output / "tasks.html", overwrite=True)  # derived from the runs beside it
    print_note("")
    if json:
        _print_as_json(output, model, runs, page)
    else:
        _print_as_text(output, model, runs, page, charts[0])


def _print_as_json(output: Path, model: str, runs: dict[str, core.Run], page: Path) -> None:
    print_json(
        {
            "model": model,
            "runs": {str(output / version): run.as_dict() for version, run in runs.items()},
            "side_by_side": report.side_by_side(list(runs.values()), METRIC, column=_COLUMN).as_dict(),
            "page": str(page),
        }
    )


def _print_as_text(output: Path, model: str, runs: dict[str, core.Run], page: Path, easiest: report.Chart) -> None:
    groups = {group: easiest.series[0].groups[group] for group in easiest.groups}
    sizes = {version: run.provenance["dataset"]["images"] for version, run in runs.items()}
    print_result(_about(model, sizes["v0"], runs["v0"].provenance["dataset"]["captions"]))
    print_result(f"\n{easiest.title}: the share of captions whose picture comes first\n")
    print_result(report.terminal_bars(_COLUMN, groups, terminal_width()))
    print_result(
        f"\nThe same with harder galleries: v0 has {sizes['v0']:,} pictures; v1 adds a confusable\n"
        f"twin of each, whose captions are queries too; v2 has {sizes['v2']:,} pictures.\n"
    )
    table = report.side_by_side(list(runs.values()), METRIC, column=_COLUMN).in_order(easiest.groups)
    print_result(table.text(terminal_width()))
    print_result(f"\nBars and radar charts, for any browser: {page}\n\n{_next_steps(output, page)}")


def _about(model: str, images: int, captions: int) -> str:
    lines = [f"{model} searches {images:,} drawn scenes with {captions:,} captions."]
    if model == "tiny":
        lines += [
            "It comes with crosslens and was trained on other scenes of this kind: its results",
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
    width = max(map(len, steps))
    return "What to try next\n" + "\n".join(f"  {command:<{width}}   {why}" for command, why in steps.items())
