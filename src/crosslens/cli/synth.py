"""``crosslens synth``: a dataset of drawn scenes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json

EXAMPLES = examples(
    "crosslens synth --images 1000 --tasks all --seed 7 -o scenes/",
    "crosslens synth --images 500 --tasks colour,count,ocr -o few/",
    "crosslens synth --images 1000 --version v2 --gallery 16000 -o hard/",
)


def synth(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the set is written.")],
    images: Annotated[int, typer.Option(min=1, metavar="N", help="How many captioned scenes to draw.")] = 1000,
    tasks: Annotated[
        str, typer.Option(metavar="NAMES", help="all, or names separated by commas; they take turns.")
    ] = "all",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same files.")] = 0,
    version: Annotated[
        str, typer.Option(help="v0; v1 adds a confusable twin of each scene; v2 adds similar scenes without captions.")
    ] = "v0",
    gallery: Annotated[
        int | None, typer.Option(metavar="N", help="For v2: how many pictures in all. [default: 16 times --images]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Drawing processes. [default: one per core]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another set that stands there.")] = False,
    json: Json = False,
) -> None:
    """Draw scenes with captions, objects and boxes.

    The twelve tasks: colour, count, location, figure, object, action, scene, ocr, landmark, calculation, code,
    translation. Run the same command again to go on where it was stopped.
    """
    from crosslens.synth.tasks import ALL, NO_FONT, available_tasks
    from crosslens.synth.writing import write_scenes

    if ALL in tasks.split(",") and "translation" not in available_tasks():
        note(NO_FONT)
    dataset = write_scenes(
        output,
        images,
        tasks,
        seed,
        version=version,
        gallery=gallery,
        workers=workers,
        overwrite=overwrite,
        progress=progress(),
    )
    per_task = dict(dataset.images["task"].value_counts(sort=True).sort("task").iter_rows())
    if json:
        say_json(
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
    say(f"{len(dataset.image_ids):,} pictures and {len(dataset.caption_ids):,} captions in {output}")
    say("  " + ", ".join(f"{task} {count:,}" for task, count in per_task.items()))
    say(f"Look at it: crosslens data describe {output}/")
