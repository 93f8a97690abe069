"""``crosslens synth``: a dataset of drawn scenes."""

from __future__ import annotations

from pathlib import Path

import crosslens.synth as synthesis
from crosslens.cli.console import print_json, print_result, progress_bar
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.core import option


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
