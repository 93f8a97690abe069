"""The pictures and captions a training run reads: scenes drawn once, kept as plain arrays.

Pictures are stored at the size the image tower takes, resized exactly as the encoder resizes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.synth.generation import SceneRecipe, set_spec

Array = np.ndarray[Any, Any]

BILINEAR = 2
_CHUNK = 500


@dataclass(frozen=True)
class Corpus:
    """``pixels`` is n×size×size×3 bytes; ``captions`` has five texts for each row."""

    pixels: Array
    captions: list[list[str]]


def draw(folder: Path, scenes: int, seed: int, size: int, workers: int, version: str = "v0") -> Corpus:
    """Draw the corpus, or read it if it is drawn already. Of version v1 the second half are twins of the first."""
    recipe = SceneRecipe.of(scenes, "all", seed, version)
    spec = {**set_spec(recipe), "size": size}
    done, pixels_file, captions_file = (folder / name for name in ("corpus.json", "pixels.npy", "captions.jsonl"))
    if not done.exists() or json.loads(done.read_text()) != spec:
        folder.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)
        shape = (len(recipe), size, size, 3)
        np.lib.format.open_memmap(pixels_file, "w+", np.uint8, shape).flush()
        jobs = [(recipe, start, size, str(pixels_file)) for start in range(0, len(recipe), _CHUNK)]
        with get_context("spawn").Pool(workers) as pool, captions_file.open("w", encoding="utf-8") as file:
            for lines in pool.imap(_draw_chunk, jobs):  # in order, whichever worker is first
                file.write(lines)
        done.write_text(json.dumps(spec))
    with captions_file.open(encoding="utf-8") as file:
        captions = [json.loads(line) for line in file]
    return Corpus(np.load(pixels_file, mmap_mode="r"), captions)


def _draw_chunk(job: tuple[SceneRecipe, int, int, str]) -> str:
    recipe, start, size, file = job
    pixels = np.load(file, mmap_mode="r+")
    lines = []
    for index in range(start, min(start + _CHUNK, len(recipe))):
        scene = recipe.scene(index)
        pixels[index] = np.asarray(scene.render().convert("RGB").resize((size, size), BILINEAR))
        lines.append(json.dumps([caption.text for caption in scene.captions]) + "\n")
    return "".join(lines)
