"""Sets of scenes as folders that other tools read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import available_cores
from crosslens.data import VISUAL_GENOME_LAYOUT, write_dataset
from crosslens.engine import Progress, note_resumed, shown_progress, stage
from crosslens.storage import (
    Layout,
    ResumableFolder,
    Workspace,
    fingerprint,
    read_header,
    remove,
    write_header,
    write_text,
)
from crosslens.synth.generation import SHARD_SIZE, SPEC_FILE, SceneRecipe, draw_shards, part_file, set_spec, shard_count
from crosslens.synth.scene import IMAGE_DIGITS
from crosslens.values import DATASET_LAYOUT, OBJECT_COLUMNS, RELATION_COLUMNS, Card, Dataset

_IMAGES = ("image", "file", "width", "height", "task", "source", "backdrop", "things", "role", "original", "changed")
_CAPTIONS = ("caption", "image", "text", "style", "difficulty")
_OBJECTS = (*OBJECT_COLUMNS, "category", "colour", "size", "pose", "text")
_SCHEMAS: dict[str, dict[str, Any]] = {
    "images": dict.fromkeys(_IMAGES, pl.String) | dict.fromkeys(("width", "height", "things"), pl.Int64),
    "captions": dict.fromkeys(_CAPTIONS, pl.String),
    "objects": dict.fromkeys(_OBJECTS, pl.String) | dict(OBJECT_COLUMNS),
    "relations": dict(RELATION_COLUMNS),
}
"""Written out, as a shard may have no value from which a type would show."""
_LAYOUT = Layout(
    "a set of scenes",
    SPEC_FILE,
    (
        DATASET_LAYOUT.marker,
        *DATASET_LAYOUT.files,
        "README.md",
        f"images/{'[0-9]' * IMAGE_DIGITS}*.png",
        "coco/captions.json",
        "coco/instances.json",
        *VISUAL_GENOME_LAYOUT.within("visual_genome"),
    ),
)


def write_scenes(
    folder: str | Path,
    images: int,
    tasks: str | Iterable[str] = "all",
    seed: int = 0,
    *,
    version: str = "v0",
    gallery: int | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Generate scenes and write them as a folder; interrupted runs resume.

    The folder is a dataset that ``load_dataset`` reads; it also holds the pictures (``images/``), COCO captions and
    instances (``coco/``) and Visual Genome graphs (``visual_genome/``). The same arguments give the same bytes, with
    any number of ``workers`` (processes; default: one per core).
    """
    folder, progress = Path(folder), shown_progress(progress)
    recipe = SceneRecipe.of(images, tasks, seed, version, gallery)
    spec = set_spec(recipe)

    def different(folder: Path) -> list[str]:
        stored = read_header(folder / SPEC_FILE, "synth")
        changed = [name for name in spec["recipe"] if stored.get("recipe", {}).get(name) != spec["recipe"][name]]
        return changed or [name for name in spec if name != "pillow" and stored.get(name) != spec[name]]

    def write(work: Workspace) -> Dataset:
        for name in ("images", "parts"):
            (work.new / name).mkdir(exist_ok=True)
        write_header(work.new / SPEC_FILE, spec)
        total = shard_count(recipe)
        shards = [shard for shard in range(total) if not part_file(work.new, shard).exists()]
        count = (total - len(shards)) * SHARD_SIZE
        note_resumed(progress, "drawing scenes", min(count, len(recipe)), len(recipe), "scene")
        with stage(progress, "drawing scenes", total * SHARD_SIZE):
            progress.advance(count)
            draw_shards(work.new, recipe, shards, workers or available_cores(), progress)
        dataset = _assemble(work.new, recipe, spec)
        for name, format in (("captions", "coco"), ("instances", "coco_instances")):
            write_dataset(dataset, work.new / "coco" / f"{name}.json", format, overwrite=True)
        write_dataset(dataset, work.new / "visual_genome", "visual_genome", overwrite=True)
        write_text(work.new / "README.md", _readme(dataset))
        dataset.write_into(work.new)
        remove(work.new / "parts")
        work.publish(_LAYOUT)
        return replace(dataset, home=folder)

    key = fingerprint("synth", spec)
    scenes = ResumableFolder(
        _LAYOUT, folder, key, overwrite, lambda path: f" (different: {', '.join(different(path))})"
    )
    return scenes.make(lambda path: None if different(path) else key, Dataset.load, write)


def _assemble(folder: Path, recipe: SceneRecipe, spec: dict[str, Any]) -> Dataset:
    notes = (
        f"{recipe.images:,} drawn scenes, tasks {', '.join(recipe.tasks)}, seed {recipe.seed}; "
        f"drawn with Pillow {spec['pillow']}"
    )
    card = Card("drawn by crosslens synth", f"{recipe.version}, drawing {spec['drawing']}", "Apache-2.0", "", notes)
    # Shard by shard: as Python objects all records at once would take ten times the memory.
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _SCHEMAS}
    for shard in range(shard_count(recipe)):
        lines = part_file(folder, shard).read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        for name, schema in _SCHEMAS.items():
            rows = [row for record in records for row in record[name]]
            parts[name].append(pl.DataFrame(rows, schema=schema, orient="row"))
    tables: dict[str, Any] = {name: pl.concat(frames, rechunk=True) for name, frames in parts.items()}
    return Dataset(f"scenes-{recipe.version}", **tables, card=card, home=folder)


def _readme(dataset: Dataset) -> str:
    card = dataset.card
    return f"""# {dataset.name}

{card.notes}.

{dataset.images.height:,} pictures, {dataset.captions.height:,} captions.
Revision: {card.revision}. Licence: {card.licence}.

- `header.json`, `*.parquet`: the dataset, as `crosslens.load_dataset` reads it
- `images/`: the pictures; `file` in the tables is relative to this folder
- `coco/captions.json`, `coco/instances.json`: the same in the form of COCO
- `visual_genome/`: objects, attributes, relationships and captions in the form of Visual Genome
- `synth.json`: what the set was generated from
"""
