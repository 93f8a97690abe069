"""A set being written: its specification, and shards of fifty scenes, each written whole.

``synth.json`` says what the set is; ``parts/00012.jsonl`` appears when all pictures of shard 12 are on disk. Whatever a
killed process leaves, running the same command again draws only the missing shards.

Run as a module, this file is a worker process: shard numbers in on standard input, numbers out when done. A worker ends
when its input does, so none outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, Progress, read_header, write_header, write_text
from crosslens.synth.drawing.canvas import pillow
from crosslens.synth.generation import SceneRecipe
from crosslens.synth.scene import SIZE, SyntheticScene

SPEC_FILE = "synth.json"
SHARD_SIZE = 50
DRAWING = 2
"""Raised whenever the same seed gives other pictures or captions than before."""
IMAGE_DIGITS = 7
_PER_IMAGE = 100
"""Ids of captions and objects are the number of their image followed by two digits: numbers, as COCO has them."""


def set_spec(recipe: SceneRecipe) -> dict[str, Any]:
    """What makes two sets the same: the recipe, and the program it is drawn with."""
    return {
        "format": "crosslens/synth",
        "version": 1,
        "recipe": {**asdict(recipe), "tasks": list(recipe.tasks)},
        "drawing": DRAWING,
        "pillow": pillow().__version__,
    }


def read_spec(folder: Path) -> dict[str, Any]:
    """The specification of the set in a folder."""
    return read_header(folder / SPEC_FILE, "synth")


def write_spec(folder: Path, spec: dict[str, Any]) -> None:
    """The first file written into a new folder."""
    write_header(folder / SPEC_FILE, spec)


def part_file(folder: Path, shard: int) -> Path:
    """Where the records of a shard go."""
    return folder / "parts" / f"{shard:05d}.jsonl"


def shard_count(recipe: SceneRecipe) -> int:
    """How many shards a set has."""
    return -(-len(recipe) // SHARD_SIZE)


def missing_shards(folder: Path, recipe: SceneRecipe) -> list[int]:
    """Shards that are not written yet."""
    return [shard for shard in range(shard_count(recipe)) if not part_file(folder, shard).exists()]


def record(scene: SyntheticScene) -> dict[str, list[dict[str, Any]]]:
    """The rows of a scene in each table."""
    image = {"image": str(scene.number)}
    ids = [str(scene.number * _PER_IMAGE + 1 + position) for position in range(_PER_IMAGE - 1)]
    images = {
        **image,
        "file": _image_file(scene.number),
        "width": SIZE,
        "height": SIZE,
        "task": scene.task,
        "source": scene.source,
        "backdrop": scene.backdrop,
        "things": len(scene.objects),
        "role": scene.role,
        "original": None if scene.of is None else str(scene.of),
        "changed": ", ".join(scene.changed) or None,
    }
    captions = [
        {"caption": id, **image, "text": caption.text, "style": caption.style, "difficulty": caption.difficulty}
        for id, caption in zip(ids, scene.captions, strict=False)
    ]
    objects = [
        {
            **image,
            "object": id,
            "name": item.name,
            "synset": item.synset,
            **asdict(item.box),
            "attributes": list(item.attributes),
            "category": item.category,
            "colour": item.colour if item.category != "landmark" else None,
            "size": item.size,
            "pose": item.look.pose or None,
            "text": item.look.text or None,
        }
        for id, item in zip(ids, scene.objects, strict=False)
    ]
    relations = [
        {**image, "subject": ids[link.subject], "predicate": link.predicate, "object": ids[link.object]}
        for link in scene.relations
    ]
    return {"images": [images], "captions": captions, "objects": objects, "relations": relations}


def _image_file(number: int) -> str:
    return f"images/{number:0{IMAGE_DIGITS}d}.png"


def read_records(folder: Path, shard: int) -> list[dict[str, list[dict[str, Any]]]]:
    """The records of a written shard."""
    return [json.loads(line) for line in part_file(folder, shard).read_text(encoding="utf-8").splitlines()]


def _draw_shard(folder: Path, recipe: SceneRecipe, shard: int) -> None:
    """Draw the pictures of a shard, then write its records."""
    lines = []
    for index in range(shard * SHARD_SIZE, min((shard + 1) * SHARD_SIZE, len(recipe))):
        scene = recipe.scene(index)
        (folder / _image_file(scene.number)).write_bytes(scene.png())
        lines.append(json.dumps(record(scene), ensure_ascii=False) + "\n")
    write_text(part_file(folder, shard), "".join(lines))


def draw_shards(folder: Path, recipe: SceneRecipe, shards: Sequence[int], workers: int, progress: Progress) -> None:
    """Draw these shards, in this process or in several others; the files are the same either way."""
    if workers <= 1 or len(shards) <= 1:
        for shard in shards:
            _draw_shard(folder, recipe, shard)
            progress.advance(SHARD_SIZE)
        return
    left = deque(shards)
    with ThreadPoolExecutor(min(workers, len(shards))) as pool:
        try:
            futures = [pool.submit(_drive_worker, folder, left, progress) for _ in range(min(workers, len(shards)))]
            for future in futures:
                future.result()
        finally:
            left.clear()


def _take(left: deque[int]) -> int | None:
    """The next shard for one of several threads; None if there are no more."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _drive_worker(folder: Path, left: deque[int], progress: Progress) -> None:
    """Feed one worker process until no shards are left."""
    # -P: nothing is imported from the current folder, which may be somebody else's.
    command = [sys.executable, "-P", "-m", "crosslens.synth.shards", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        while (shard := _take(left)) is not None:
            try:
                worker.stdin.write(f"{shard}\n")
                worker.stdin.flush()
                answer = worker.stdout.readline()
            except OSError:
                answer = ""
            if answer.strip() != str(shard):
                left.clear()
                raise CrosslensError(
                    f"a drawing process exited unexpectedly at shard {shard}",
                    fix="see its message above; run the same command again to resume",
                )
            progress.advance(SHARD_SIZE)
        worker.stdin.close()


def main(folder: Path) -> None:
    """Draw the shards named on standard input."""
    # Ctrl-C goes to the whole group; the parent stops by closing the input, and a shard is finished first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spec = read_spec(folder)
    recipe = SceneRecipe(**{**spec["recipe"], "tasks": tuple(spec["recipe"]["tasks"])})
    for line in sys.stdin:
        _draw_shard(folder, recipe, int(line))
        try:
            print(line.strip(), flush=True)
        except BrokenPipeError:  # nobody waits for the answer any more; the shard is written all the same
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
