"""Visual Genome: images, region descriptions (or COCO's captions), objects, attributes and relationships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, reading
from crosslens.data.files import json_file, read_json
from crosslens.data.loading import READERS
from crosslens.data.readers.coco import read_coco
from crosslens.data.rows import (
    OBJECT_TYPES,
    REGION_SIDES,
    Records,
    box_columns,
    box_of,
    check_known,
    check_unique,
    no_captions,
    text_table,
)
from crosslens.values import Dataset

COCO_ID = "coco_id"


def join_coco(genome: Dataset, captions: str | Path) -> Dataset:
    """The images of Visual Genome whose ``coco_id`` has captions in COCO, with those captions.

    ``captions`` is a captions file, or a folder of which every ``captions_*.json`` is read. Images keep the ids of
    Visual Genome, captions have those of COCO. Of several images with one ``coco_id`` the first is kept: a caption
    belongs to one image. What has no counterpart is counted in the notes of the dataset's card.
    """
    # The captions of a file, or of all captions files of a folder: caption, image and text.
    path = Path(captions)
    files = sorted(path.glob("captions_*.json*")) if path.is_dir() else [path]
    if not files:
        raise InputError("no captions_*.json here", file=path, expected="COCO's captions files", fix="check the path")
    tables = [read_coco(file).captions.select("caption", "image", "text") for file in files]
    texts = pl.concat(tables)
    if len(files) > 1:
        names = [file.name for file, table in zip(files, tables, strict=True) for _ in range(table.height)]
        check_unique(texts["caption"].to_list(), "caption", lambda row: names[row])
    if COCO_ID not in genome.images.columns:
        raise InputError(
            f"no image has a {COCO_ID}",
            expected=f"image_data.json with {COCO_ID}, as published",
            fix="use image_data.json of Visual Genome 1.2 or later",
        )
    described = dict.fromkeys(texts["image"])
    image_of: dict[str, str] = {}
    unlinked = absent = repeated = 0
    for image, coco in zip(genome.image_ids, genome.images[COCO_ID].cast(pl.String), strict=True):
        if coco is None:
            unlinked += 1
        elif coco not in described:
            absent += 1
        elif coco in image_of:
            repeated += 1
        else:
            image_of[coco] = image
    if not image_of:
        raise InputError(
            f"no {COCO_ID} of Visual Genome's {len(genome.image_ids):,} images has captions here",
            file=captions,
            expected="COCO captions of images that Visual Genome has",
            fix="name the captions of train2017 and val2017, or of train2014 and val2014: a folder with both files",
        )
    joined = texts.filter(pl.col("image").is_in(list(image_of)))
    joined = joined.with_columns(image=pl.col("image").replace_strict(image_of, return_dtype=pl.String))
    shared = replace(genome, name="visual_genome+coco", captions=joined).select(image_of.values())
    counts = {
        f"images of Visual Genome have no {COCO_ID}": unlinked,
        f"have a {COCO_ID} without captions here": absent,
        f"repeat the {COCO_ID} of an earlier image": repeated,
        "captioned images of COCO are not in Visual Genome": len(described) - len(image_of),
    }
    left_out = "; ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
    note = f"{len(image_of):,} images of Visual Genome have captions in COCO"
    note += f". Left out: {left_out}" if left_out else ""
    return replace(shared, card=replace(genome.card, notes=note))


@READERS.register("visual_genome")
def read_visual_genome(
    folder: str | Path,
    objects: bool = True,
    relations: bool = True,
    skip_empty: bool = False,
    coco_captions: str | Path | None = None,
) -> Dataset:
    """Visual Genome: region descriptions as captions, objects with attributes and synsets, relationships.

    folder: the folder of ``image_data.json`` and, each optional, ``region_descriptions.json``, ``objects.json``,
        ``attributes.json``, ``relationships.json`` (all may be .gz)
    objects: read objects and their attributes
    relations: read relationships, and the objects that only they mention
    skip_empty: leave out regions without a description instead of refusing the file
    coco_captions: COCO's captions instead of the regions: a captions JSON, or a folder of several; kept are the images
        that both datasets have, joined by ``coco_id``

    A caption's id is its region's; the region's box is kept in the columns x, y, width, height of the captions.
    """
    folder = Path(folder)
    images = _images(folder)
    captions = _regions(folder, images, skip_empty) if coco_captions is None else no_captions()
    gathered = _Objects()
    image_ids = set(images["image"])
    steps: tuple[tuple[bool, str, Callable[[Records, list[str]], Any]], ...] = (
        (objects, "objects", gathered.add),
        (objects, "attributes", gathered.describe),
        (relations, "relationships", gathered.relate),
    )
    for is_wanted, key, enter in steps:
        if is_wanted and (file := json_file(folder, key)).exists():
            with reading(file):
                groups = Records.of(read_json(file), "image", f'[{{"image_id", "{key}": [ … ]}}]')
                ids = groups.ids("image_id")
                check_known(ids, image_ids, "image", groups.row_name)
                records, owners = groups.nested(key, key.removesuffix("s"))
                enter(records, [ids[owner] for owner in owners])
    table = None
    if gathered.rows:
        rows = list(gathered.rows.values())
        table = pl.DataFrame(rows, schema_overrides=OBJECT_TYPES, infer_schema_length=None)
    genome = Dataset("visual_genome", images, captions, table, gathered.relations)
    return genome if coco_captions is None else join_coco(genome, coco_captions)


def _images(folder: Path) -> pl.DataFrame:
    file = json_file(folder, "image_data")
    with reading(file):
        records = Records.of(read_json(file), "image", '[{"image_id", "width", "height", "url", …}]')
        ids = records.ids("image_id", unique="image")
        urls = [url if isinstance(url, str) else "" for url in records.optional("url")]
        # Of an address on the web its last folder and name, which is how the published images lie; else all of it.
        files = [("/".join(url.split("/")[-2:]) if "://" in url else url) or None for url in urls]
        sizes = {side: records.sizes(side) for side in ("width", "height")}
        free = records.free((*sizes, "image", "file", "image_id", "url"))
        return text_table(sizes | free, image=ids, file=files)


def _regions(folder: Path, images: pl.DataFrame, skip_empty: bool) -> pl.DataFrame:
    file = json_file(folder, "region_descriptions")
    if not file.exists():
        return no_captions()
    with reading(file):
        groups = Records.of(read_json(file), "image", '[{"id", "regions": [{"region_id", "phrase", …}]}]')
        group_ids = groups.ids("id" if groups.has("id") else "image_id")
        check_known(group_ids, set(images["image"]), "image", groups.row_name)
        regions, owners = groups.nested("regions", "region")
        if skip_empty:
            described = [index for index, phrase in enumerate(regions.values("phrase")) if str(phrase or "").strip()]
            regions, owners = regions.only(described), [owners[index] for index in described]
        ids = regions.ids("region_id", unique="caption")
        try:
            texts = regions.texts("phrase")
        except InputError as error:
            if error.code == "empty-caption":
                error.fix = "write the phrase, or pass skip_empty=True to leave such regions out"
            raise
        images_of = [group_ids[owner] for owner in owners]
        sides = {side: regions.reals(side) for side in REGION_SIDES}
        return text_table(sides, caption=ids, image=images_of, text=texts)


@dataclass
class _Objects:
    """Objects gathered from several files, by image and id; one object may be mentioned in all of them."""

    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    merged: dict[tuple[str, str], str] = field(default_factory=dict)
    relations: pl.DataFrame | None = None

    def add(self, records: Records, images: list[str]) -> list[tuple[str, str]]:
        """Enter the objects not met before; the keys of all."""
        boxes = box_columns([box_of(row) for row in records.rows], records.row_name)
        keys = []
        ids, synsets, twins = records.ids("object_id"), records.lists("synsets"), records.lists("merged_object_ids")
        for index, (image, object_id) in enumerate(zip(images, ids, strict=True)):
            key = (image, self.merged.get((image, object_id), object_id))
            keys.append(key)
            if key in self.rows:
                continue
            self.rows[key] = {
                "image": image,
                "object": object_id,
                "name": _name(records.rows[index], records.row_name(index)),
                "synset": str(synsets[index][0]) if synsets[index] else None,
                **{side: boxes[side][index] for side in "xywh"},
                "attributes": None,
            }
            # Objects that annotators drew twice were merged; relationships still name them by either id.
            for twin in twins[index]:
                self.merged.setdefault((image, str(twin)), object_id)
        return keys

    def describe(self, records: Records, images: list[str]) -> None:
        keys = self.add(records, images)
        for key, words in zip(keys, records.lists("attributes"), strict=True):
            if words:
                self.rows[key]["attributes"] = [str(word).strip() for word in words if str(word).strip()]

    def relate(self, records: Records, images: list[str]) -> None:
        """Enter relationships, and the objects at both ends of them."""
        ends = {}
        for end in ("subject", "object"):
            for index, row in enumerate(records.values(end)):
                if not isinstance(row, dict):
                    expected = f"the {end} as an object with object_id, names and a box"
                    fix = "use relationships.json as published"
                    raise InputError(f"{end!r} is {row!r:.60}", row=records.row_name(index), expected=expected, fix=fix)
            ends[end] = [key[1] for key in self.add(Records(records.values(end), records.row_name), images)]
        self.relations = text_table(image=images, **ends, predicate=records.strings("predicate"))


def _name(row: dict[str, Any], row_name: int | str) -> str:
    names = row.get("names") or [row.get("name")]
    if isinstance(names, list) and isinstance(names[0], str) and names[0].strip():
        return names[0]
    expected = "'names': [name, …] or 'name'"
    fix = "name the object, or remove it"
    raise InputError(f"object {row.get('object_id')} has no name", row=row_name, expected=expected, fix=fix)
