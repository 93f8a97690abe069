"""Scenes out of a seed, and drawn: each depends on the seed, the tasks and its own number, on nothing else.

Versions are nested: a v2 set holds a v1 set, and that a v0 set.

A set is drawn in shards of fifty scenes, each written whole: ``synth.json`` says what the set is, and
``parts/00012.jsonl`` appears when all pictures of shard 12 are on disk. Whatever a killed process leaves, running the
same command again draws only the missing shards. Run as a module, this file is a worker process: shard numbers in on
standard input, numbers out when done. A worker ends when its input does, so none outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.engine import Progress
from crosslens.storage import random_stream, read_header, write_text
from crosslens.synth.drawing import pillow
from crosslens.synth.scene import SIZE, SceneObject, SyntheticScene, arrange, relations_between, slots
from crosslens.synth.tasks import EVERY_TASK, chosen_tasks
from crosslens.values import Dataset

VERSIONS = ("v0", "v1", "v2")
ROLES = ("original", "twin", "similar")
MAX_IMAGES = 1_000_000
"""Numbers of originals are below this, those of twins from it on, those of similar scenes from twice it on."""
GALLERY_FACTOR = 16
"""How many pictures a v2 set has for every original by default."""


@dataclass(frozen=True)
class SceneRecipe:
    """All that decides a set of scenes."""

    images: int
    tasks: tuple[str, ...]
    seed: int = 0
    version: str = "v0"
    gallery: int = 0
    """How many pictures a v2 set has in all."""

    @staticmethod
    def of(
        images: int, tasks: str | Iterable[str] = "all", seed: int = 0, version: str = "v0", gallery: int | None = None
    ) -> SceneRecipe:
        """Checked and complete."""
        check_version(version)
        if not 1 <= images < MAX_IMAGES:
            raise UsageError(f"images must be between 1 and {MAX_IMAGES - 1:,}, got {images:,}")
        if gallery is not None and version != "v2":
            raise UsageError(f"gallery requires version v2, got {version}", fix="omit gallery, or choose version v2")
        size = (GALLERY_FACTOR * images if gallery is None else gallery) if version == "v2" else 0
        if version == "v2" and not 2 * images < size < MAX_IMAGES:
            raise UsageError(
                f"gallery must hold more than {images:,} images and their twins, and fewer than {MAX_IMAGES:,} images,"
                f" got {size:,}",
                fix=f"choose more than {2 * images:,} and fewer than {MAX_IMAGES:,}",
            )
        return SceneRecipe(images, chosen_tasks(tasks), seed, version, size)

    def __len__(self) -> int:
        return {"v0": self.images, "v1": 2 * self.images, "v2": self.gallery}[self.version]

    def scene(self, index: int) -> SyntheticScene:
        """The scene at an index of the set: originals first, then twins, then similar ones."""
        if index < self.images:
            return make_scene(self.seed, index, self.tasks)
        if index < 2 * self.images:
            return make_scene(self.seed, index - self.images, self.tasks, "twin")
        copy, original = divmod(index - 2 * self.images, self.images)
        number = 2 * MAX_IMAGES + index - 2 * self.images + 1
        return make_scene(self.seed, original, self.tasks, "similar", copy, number)


def generate(
    images: int, tasks: str | Iterable[str] = "all", seed: int = 0, *, version: str = "v0", gallery: int | None = None
) -> Iterator[SyntheticScene]:
    """Scenes one after the other: originals, then for v1 a twin of each, then for v2 similar ones without captions.

    ``tasks`` is ``"all"`` or names of tasks; they take turns. ``gallery`` is how many pictures v2 has in all (default
    16 for every original). Nothing is drawn until :meth:`SyntheticScene.render` is called.
    """
    recipe = SceneRecipe.of(images, tasks, seed, version, gallery)
    return (recipe.scene(index) for index in range(len(recipe)))


def make_scene(
    seed: int, index: int, tasks: tuple[str, ...], role: str = "original", copy: int = 0, number: int | None = None
) -> SyntheticScene:
    """One scene. A twin shares its original's random streams: what was not changed stays where and as it was."""
    task = EVERY_TASK[tasks[index % len(tasks)]]

    def random(purpose: str) -> np.random.Generator:
        return random_stream(seed, "scene", index, task.name, purpose)

    facts = task.facts.draw(random("facts"))
    changed: tuple[str, ...] = ()
    layout = random("layout")
    if role == "twin":
        facts, changed = task.twin(facts, random("twin"))
    elif role == "similar":
        twin, _ = task.twin(facts, random("twin"))
        facts, changed = task.similar(facts, twin, random(f"similar {copy}"))
        layout = random(f"similar layout {copy}")
    plan = facts.plan()
    variant = int(layout.integers(1 << 30))
    placed = arrange(slots(plan, SIZE, layout), SIZE, layout)
    objects = tuple(
        SceneObject.of(item.look, part.colour, item.box) for item, part in zip(placed, plan.parts, strict=True)
    )
    inside = {(subject, part.inside): "inside" for subject, part in enumerate(plan.parts) if part.inside is not None}
    return SyntheticScene(
        number=number or index + 1 + (MAX_IMAGES if role == "twin" else 0),
        task=task.label or task.name,
        role=role,
        of=None if role == "original" else index + 1,
        changed=changed,
        source=f"{task.name}: {plan.backdrop}",
        facts=facts,
        backdrop=plan.backdrop,
        variant=variant,
        objects=objects,
        relations=relations_between([item.box for item in objects], inside),
        captions=task.describe(facts, objects, random("captions")) if role != "similar" else (),
    )


def select_version(dataset: Dataset, version: str) -> Dataset:
    """The scenes of a set that belong to ``version``: v0 the originals, v1 their twins too, v2 all.

    Scenes of one number are the same in all versions, so this is the very set that ``write_scenes`` would write; the
    pictures stay in their folder.
    """
    check_version(version)
    if "role" not in dataset.images.columns:
        raise InputError(
            f"the dataset {dataset.name!r} has no column 'role'",
            expected="a set of scenes, as crosslens synth writes it",
            fix="draw one: crosslens synth --version v2 -o FOLDER",
        )
    present = set(dataset.images["role"])
    roles = ROLES[: VERSIONS.index(version) + 1]
    if roles[-1] not in present:
        raise UsageError(
            f"{dataset.name} has no {roles[-1]} scenes, so version {version} cannot be selected",
            fix=f"draw it: crosslens synth --version {version} -o FOLDER",
        )
    stored = max(name for name, role in zip(VERSIONS, ROLES, strict=True) if role in present)
    images = dataset.images.filter(dataset.images["role"].is_in(roles))["image"]
    card = replace(dataset.card, revision=dataset.card.revision.replace(stored, version, 1))
    return replace(dataset.select(images), name=f"scenes-{version}", card=card)


def check_version(version: str) -> None:
    """Raise unless the version is one of the three."""
    if version not in VERSIONS:
        raise UsageError(f"unknown version {version!r}", fix=f"use one of {', '.join(VERSIONS)}")


SPEC_FILE = "synth.json"
SHARD_SIZE = 50
DRAWING = 2
"""Raised whenever the same seed gives other pictures or captions than before."""
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


def part_file(folder: Path, shard: int) -> Path:
    """Where the records of a shard go."""
    return folder / "parts" / f"{shard:05d}.jsonl"


def shard_count(recipe: SceneRecipe) -> int:
    """How many shards a set has."""
    return -(-len(recipe) // SHARD_SIZE)


def record(scene: SyntheticScene) -> dict[str, list[dict[str, Any]]]:
    """The rows of a scene in each table."""
    image = {"image": str(scene.number)}
    ids = [str(scene.number * _PER_IMAGE + 1 + position) for position in range(_PER_IMAGE - 1)]
    images = {
        **image,
        "file": scene.file,
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
            **item.box._asdict(),
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


def _draw_shard(folder: Path, recipe: SceneRecipe, shard: int) -> None:
    """Draw the pictures of a shard, then write its records."""
    lines = []
    for index in range(shard * SHARD_SIZE, min((shard + 1) * SHARD_SIZE, len(recipe))):
        scene = recipe.scene(index)
        (folder / scene.file).write_bytes(scene.png())
        lines.append(json.dumps(record(scene), ensure_ascii=False) + "\n")
    write_text(part_file(folder, shard), "".join(lines))


def draw_shards(folder: Path, recipe: SceneRecipe, shards: Sequence[int], workers: int, progress: Progress) -> None:
    """Draw these shards, in this process or in several others; the files are the same either way."""
    if workers <= 1 or len(shards) <= 1:
        for shard in shards:
            _draw_shard(folder, recipe, shard)
            progress.advance(SHARD_SIZE)
        return
    queue = deque(shards)
    with ThreadPoolExecutor(min(workers, len(shards))) as pool:
        try:
            futures = [pool.submit(_drive_worker, folder, queue, progress) for _ in range(min(workers, len(shards)))]
            for future in futures:
                future.result()
        finally:
            queue.clear()


def _drive_worker(folder: Path, queue: deque[int], progress: Progress) -> None:
    """Feed one worker process until no shards are left."""
    # -P: nothing is imported from the current folder, which may be somebody else's.
    command = [sys.executable, "-P", "-m", "crosslens.synth.generation", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        while True:
            try:
                shard = queue.popleft()
            except IndexError:  # no more; another thread may have taken the last one
                break
            try:
                worker.stdin.write(f"{shard}\n")
                worker.stdin.flush()
                answer = worker.stdout.readline()
            except OSError:
                answer = ""
            if answer.strip() != str(shard):
                queue.clear()
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
    spec = read_header(folder / SPEC_FILE, "synth")
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
