"""Scenes out of a seed: each depends on the seed, the tasks and its own number, on nothing else.

Versions are nested: a v2 set holds a v1 set, and that a v0 set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from crosslens.core import Dataset, InputError, UsageError, random_stream
from crosslens.synth.layout import Plan, arrange, slots
from crosslens.synth.scene import SIZE, SceneObject, SyntheticScene, relations_between
from crosslens.synth.tasks import EVERY_TASK, chosen_tasks

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
        images: int,
        tasks: str | Iterable[str] = "all",
        seed: int = 0,
        version: str = "v0",
        gallery: int | None = None,
    ) -> SceneRecipe:
        """Checked and complete."""
        _check_version(version)
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
    images: int,
    tasks: str | Iterable[str] = "all",
    seed: int = 0,
    *,
    version: str = "v0",
    gallery: int | None = None,
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
        relations=relations_between([item.box for item in objects], _planned_relations(plan)),
        captions=facts.describe(objects, random("captions")).captions() if role != "similar" else (),
    )


def _planned_relations(plan: Plan) -> dict[tuple[int, int], str]:
    return {(subject, part.inside): "inside" for subject, part in enumerate(plan.parts) if part.inside is not None}


def select_version(dataset: Dataset, version: str) -> Dataset:
    """The scenes of a set that belong to ``version``: v0 the originals, v1 their twins too, v2 all.

    Scenes of one number are the same in all versions, so this is the very set that ``write_scenes`` would write; the
    pictures stay in their folder.
    """
    _check_version(version)
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


def _check_version(version: str) -> None:
    if version not in VERSIONS:
        raise UsageError(f"unknown version {version!r}", fix=f"use one of {', '.join(VERSIONS)}")
