"""A set in the making: what it is to become, and shards of fifty scenes, each written whole.

``synth.json`` says what the set is; ``parts/00012.jsonl`` appears when all pictures of shard 12 are on disk. Whatever a
killed process leaves, running the same command again does only the missing shards.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crosslens.core.atomic import write_text
from crosslens.core.bundle import read_header
from crosslens.core.fingerprint import file_fingerprint
from crosslens.synth.canvas import pillow
from crosslens.synth.fonts import chinese_font_file
from crosslens.synth.generation import Recipe
from crosslens.synth.records import from_lines, image_file, record, to_lines

REQUEST = "synth.json"
SHARD = 50
DRAWING = 1
"""Raised whenever the same seed gives other pictures or captions than before."""


def request(recipe: Recipe) -> dict[str, Any]:
    """What makes two sets the same: the recipe, and the programs and fonts it is drawn with."""
    font = chinese_font_file() if "translation" in recipe.tasks else None
    return {
        "format": "crosslens/synth",
        "version": 1,
        "recipe": {**asdict(recipe), "tasks": list(recipe.tasks)},
        "drawing": DRAWING,
        "pillow": pillow().__version__,
        "font": None if font is None else {"name": font.name, "fingerprint": file_fingerprint([font])},
    }


def read_request(folder: Path) -> dict[str, Any] | None:
    """What the set in a folder is, or is to become; None where there is none."""
    file = folder / REQUEST
    return read_header(file, "synth") if file.exists() else None


def write_request(folder: Path, content: dict[str, Any]) -> None:
    """The first thing written into a new folder."""
    write_text(folder / REQUEST, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def recipe_in(folder: Path) -> Recipe:
    """The recipe of the set in a folder."""
    content = read_request(folder)
    assert content is not None
    return Recipe(**{**content["recipe"], "tasks": tuple(content["recipe"]["tasks"])})


def part_file(folder: Path, shard: int) -> Path:
    """Where the records of a shard go."""
    return folder / "parts" / f"{shard:05d}.jsonl"


def shard_count(recipe: Recipe) -> int:
    """How many shards a set has."""
    return -(-len(recipe) // SHARD)


def missing_shards(folder: Path, recipe: Recipe) -> list[int]:
    """Shards that are not there yet."""
    return [shard for shard in range(shard_count(recipe)) if not part_file(folder, shard).exists()]


def draw_shard(folder: Path, recipe: Recipe, shard: int) -> None:
    """Draw the pictures of a shard, then write its records."""
    records = []
    for place in range(shard * SHARD, min((shard + 1) * SHARD, len(recipe))):
        scene = recipe.scene(place)
        (folder / image_file(scene.number)).write_bytes(scene.png())
        records.append(record(scene))
    write_text(part_file(folder, shard), to_lines(records))


def read_records(folder: Path, shard: int) -> list[dict[str, Any]]:
    """The records of a shard that is there."""
    return from_lines(part_file(folder, shard).read_text(encoding="utf-8"))
