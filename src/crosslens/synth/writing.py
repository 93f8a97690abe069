"""Sets of scenes as folders that other tools read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.atomic import PARTIAL, refuse_strangers, sweep, write_text
from crosslens.core.bundle import HEADER
from crosslens.core.dataset import OBJECT_COLUMNS, RELATION_COLUMNS, Card, Dataset
from crosslens.core.errors import ConflictError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.data.writing import write_dataset
from crosslens.synth.generation import Recipe
from crosslens.synth.shards import (
    REQUEST,
    SHARD,
    missing_shards,
    read_records,
    read_request,
    request,
    shard_count,
    write_request,
)
from crosslens.synth.worker import draw_shards

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
_OWN = (REQUEST, HEADER, "README.md", "*.parquet", "images", "parts", "coco", "visual_genome")
"""All that a set of scenes consists of."""


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
    """Generate scenes and write them as a folder; what a stopped run left there is gone on with.

    The folder is a dataset that ``load_dataset`` reads; it also holds the pictures (``images/``), COCO captions and
    instances (``coco/``) and Visual Genome graphs (``visual_genome/``). The same arguments give the same bytes, with
    any number of ``workers`` (processes; default: one per core).
    """
    folder, progress = Path(folder), progress or Silent()
    recipe = Recipe.of(images, tasks, seed, version, gallery)
    wanted = request(recipe)
    if _finished(folder, wanted, overwrite):
        return Dataset.load(folder)
    _prepare(folder, wanted)
    shards = missing_shards(folder, recipe)
    with stage(progress, "drawing scenes", shard_count(recipe) * SHARD):
        progress.advance((shard_count(recipe) - len(shards)) * SHARD)
        draw_shards(folder, recipe, shards, workers or _cores(), progress)
    dataset = _assemble(folder, recipe, wanted)
    _publish(folder, dataset)
    return dataset


def _finished(folder: Path, wanted: dict[str, Any], overwrite: bool) -> bool:
    """True if the very set stands there complete; raises if something else stands there."""
    if not folder.exists() or not any(folder.iterdir()):
        return False
    there = read_request(folder)
    if there is None:
        raise ConflictError(
            f"{folder} exists and is not a set of scenes", fix="choose another place: it is not replaced"
        )
    complete = (folder / HEADER).exists()
    if there == wanted or (complete and there["recipe"] == wanted["recipe"] and there["drawing"] == wanted["drawing"]):
        return complete
    if not overwrite:
        changed = [name for name in wanted if there.get(name) != wanted[name]]
        inside = [name for name in wanted["recipe"] if there["recipe"].get(name) != wanted["recipe"][name]]
        raise ConflictError(
            f"{folder} holds another set of scenes (different: {', '.join(inside or changed)})",
            fix="choose another place, or pass overwrite=True",
        )
    refuse_strangers(folder, _OWN)
    shutil.rmtree(folder)
    return False


def _prepare(folder: Path, wanted: dict[str, Any]) -> None:
    for name in ("images", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        sweep(folder / name)
    sweep(folder)
    if not (folder / REQUEST).exists():
        write_request(folder, wanted)


def _assemble(folder: Path, recipe: Recipe, wanted: dict[str, Any]) -> Dataset:
    notes = (
        f"{recipe.images:,} drawn scenes, tasks {', '.join(recipe.tasks)}, seed {recipe.seed}; "
        f"drawn with Pillow {wanted['pillow']}" + (f" and {wanted['font']['name']}" if wanted["font"] else "")
    )
    card = Card("drawn by crosslens synth", f"{recipe.version}, drawing {wanted['drawing']}", "Apache-2.0", "", notes)
    # Shard by shard: as Python objects all records at once would take ten times the room.
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _SCHEMAS}
    for shard in range(shard_count(recipe)):
        records = read_records(folder, shard)
        for name, schema in _SCHEMAS.items():
            rows = [row for one in records for row in one[name]]
            parts[name].append(pl.DataFrame(rows, schema=schema, orient="row"))
    tables = {name: pl.concat(frames, rechunk=True) for name, frames in parts.items()}
    captions, objects, relations = (tables[name] for name in ("captions", "objects", "relations"))
    return Dataset(f"scenes-{recipe.version}", tables["images"], captions, objects, relations, card, home=folder)


def _publish(folder: Path, dataset: Dataset) -> None:
    """Everything that is made from all records; the header comes last and says that the set is complete."""
    for name, form in (("captions", "coco"), ("instances", "coco_instances")):
        write_dataset(dataset, folder / "coco" / f"{name}.json", form, overwrite=True)
    write_dataset(dataset, folder / "visual_genome", "visual_genome", overwrite=True)
    write_text(folder / "README.md", _readme(dataset))
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder) as place:
        saved = dataset.save(Path(place) / "dataset")
        for file in sorted(saved.iterdir(), key=lambda file: file.name == HEADER):
            file.replace(folder / file.name)
    shutil.rmtree(folder / "parts", ignore_errors=True)


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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
