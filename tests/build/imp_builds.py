"""Small IMP builds on drawn scenes, with annotators that know what is in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crosslens as cl
from crosslens.build import CleaningSettings, Imp, SamplingSettings, SelectionSettings, build_imp
from tests.build.toy_models import Words

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

SETTINGS = SamplingSettings(
    count=12, sampling="full", compare_sampling=False, band=(0.0, 0.95), cluster_sizes=(3, 20), candidates=14,
    captions=3,
)  # fmt: skip
CLEANING = CleaningSettings(minimum_words=3, tagging=False, languages=("any",))
Judge = Callable[[str, str], str]


def split_scenes(scenes: cl.Dataset, folder: Path, count: int = 20) -> tuple[cl.Dataset, cl.Dataset]:
    """The first scenes as images, the others with their captions as the pool."""
    scenes = replace(scenes, home=folder)
    images, pool = scenes.select(scenes.image_ids[:count]), scenes.select(scenes.image_ids[count:])
    return replace(images, captions=images.captions.clear(), name="images"), replace(pool, name="pool")


def build(
    scenes: cl.Dataset, folder: Path, settings: SamplingSettings = SETTINGS, count: int = 20, **options: Any
) -> Imp:
    images, pool = split_scenes(scenes, folder, count)
    options = {"cleaning": CLEANING, "selection": SelectionSettings(), "encoder": Words(), **options}
    return build_imp(options.pop("images", images), options.pop("pool", pool), settings=settings, **options)


def truth(scenes: cl.Dataset) -> Judge:
    """A caption of a pool scene is good for an image that shows one of the same kinds of objects."""
    assert scenes.objects is not None
    kinds: dict[str, set[str]] = {}
    for image, name in scenes.objects.select("image", "name").iter_rows():
        kinds.setdefault(image, set()).add(name)

    def judge(image: str, pool_image: str) -> str:
        return "good" if kinds[image] & kinds[pool_image] else "bad"

    return judge


def fill_in(sheet: Path, candidates: pl.DataFrame, judge: Judge, changes: Mapping[int, dict[str, str]] = {}) -> None:
    """Write the verdicts of a judge into a sheet; ``changes`` replace cells of rows."""
    pool_image = dict(candidates.select("caption", "pool_image").iter_rows())
    table = pl.read_csv(sheet, infer_schema=False)
    verdicts = [judge(image, pool_image[caption]) for image, caption in table.select("image", "caption").iter_rows()]
    rows = [{**row, "verdict": verdict} for row, verdict in zip(table.iter_rows(named=True), verdicts, strict=True)]
    for number, cells in changes.items():
        rows[number].update(cells)
    pl.DataFrame(rows, schema=table.schema).write_csv(sheet)


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
