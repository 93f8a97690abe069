"""Scenes out of a seed: each depends on the seed, the tasks and its own number, on nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from crosslens.core.errors import UsageError
from crosslens.core.seeds import stream
from crosslens.synth.layout import arrange
from crosslens.synth.plan import slots
from crosslens.synth.relations import relations_between
from crosslens.synth.scene import SIZE, Scene, thing
from crosslens.synth.tasks import TASKS, chosen_tasks
from crosslens.synth.tasks.task import Facts, Task

VERSIONS = ("v0", "v1", "v2")
ROLES = ("original", "twin", "similar")
MOST = 1_000_000
"""Numbers of originals are below this, those of twins from it on, those of similar scenes from twice it on."""
GALLERY = 16
"""How many pictures a v2 set has for every original, unless asked otherwise."""


@dataclass(frozen=True)
class Recipe:
    """All that decides a set of scenes."""

    images: int
    tasks: tuple[str, ...]
    seed: int = 0
    version: str = "v0"
    gallery: int = 0
    """How many pictures a v2 set has in all."""

    @staticmethod
    def of(
        images: int,
        tasks: str | Iterable[str] = "all",
        seed: int = 0,
        version: str = "v0",
        gallery: int | None = None,
    ) -> Recipe:
        """Checked and complete."""
        if version not in VERSIONS:
            raise UsageError(f"unknown version {version!r}", fix=f"use one of {', '.join(VERSIONS)}")
        if not 1 <= images < MOST:
            raise UsageError(f"{images} images", fix=f"ask for 1 to {MOST - 1:,}")
        if gallery is not None and version != "v2":
            raise UsageError(f"version {version} has no gallery of its own", fix="leave gallery out, or choose v2")
        size = (GALLERY * images if gallery is None else gallery) if version == "v2" else 0
        if version == "v2" and not 2 * images < size < MOST:
            raise UsageError(
                f"a gallery of {size:,} for {images:,} images and their twins",
                fix=f"ask for more than {2 * images:,} and fewer than {MOST:,}",
            )
        return Recipe(images, chosen_tasks(tasks), seed, version, size)

    def __len__(self) -> int:
        return {"v0": self.images, "v1": 2 * self.images, "v2": self.gallery}[self.version]

    def scene(self, place: int) -> Scene:
        """The scene at a place of the set: originals first, then twins, then similar ones."""
        if place < self.images:
            return make(self.seed, place, self.tasks)
        if place < 2 * self.images:
            return make(self.seed, place - self.images, self.tasks, "twin")
        copy, index = divmod(place - 2 * self.images, self.images)
        return make(self.seed, index, self.tasks, "similar", copy, number=2 * MOST + place - 2 * self.images + 1)


def generate(
    images: int,
    tasks: str | Iterable[str] = "all",
    seed: int = 0,
    *,
    version: str = "v0",
    gallery: int | None = None,
) -> Iterator[Scene]:
    """Scenes one after the other: originals, then for v1 a twin of each, then for v2 similar ones without captions.

    ``tasks`` is ``"all"`` or names of tasks; they take turns. ``gallery`` is how many pictures v2 has in all (default
    16 for every original). Nothing is drawn until :meth:`Scene.render` is called.
    """
    recipe = Recipe.of(images, tasks, seed, version, gallery)
    return (recipe.scene(place) for place in range(len(recipe)))


def make(
    seed: int, index: int, tasks: tuple[str, ...], role: str = "original", copy: int = 0, number: int | None = None
) -> Scene:
    """One scene. A twin shares its original's chances: what was not changed stays where and as it was."""
    task = TASKS[tasks[index % len(tasks)]]

    def chance(purpose: str) -> np.random.Generator:
        return stream(seed, "scene", index, task.name, purpose)

    facts = task.draw(chance("facts"))
    changed: tuple[str, ...] = ()
    layout = chance("layout")
    if role == "twin":
        facts, changed = task.twin(facts, chance("twin"))
    elif role == "similar":
        twin, _ = task.twin(facts, chance("twin"))
        facts, changed = task.similar(facts, twin, chance(f"similar {copy}"))
        layout = chance(f"similar layout {copy}")
    numbers = {"original": index + 1, "twin": MOST + index + 1, "similar": number}
    own = numbers[role]
    assert own is not None
    of = None if role == "original" else index + 1
    return _compose(task, facts, layout, chance("captions"), (own, role, of, changed))


def _compose(
    task: Task,
    facts: Facts,
    layout: np.random.Generator,
    wording: np.random.Generator,
    identity: tuple[int, str, int | None, tuple[str, ...]],
) -> Scene:
    number, role, of, changed = identity
    plan = task.plan(facts)
    variant = int(layout.integers(1 << 30))
    placed = arrange(slots(plan, SIZE, layout), SIZE, layout)
    things = tuple(thing(one.look, part.colour, one.box) for one, part in zip(placed, plan.parts, strict=True))
    known = {
        (here, there): word
        for here, part in enumerate(plan.parts)
        for word, there in (("on", part.on), ("inside", part.inside))
        if there is not None
    }
    captions = task.describe(facts, things, wording).captions() if role != "similar" else ()
    return Scene(
        number=number,
        task=task.name,
        role=role,
        of=of,
        changed=changed,
        source=f"{task.name}: {plan.backdrop}",
        facts=facts,
        backdrop=plan.backdrop,
        variant=variant,
        objects=things,
        relations=relations_between([one.box for one in things], known),
        captions=captions,
    )
