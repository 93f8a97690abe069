"""Datasets out again, in the forms other tools read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError, UsageError
from crosslens.data.files import format_suffix, refuse_existing, writing_bytes, writing_text
from crosslens.data.genome_writing import write_visual_genome
from crosslens.data.losses import by_image
from crosslens.data.numbered import is_number, numbered
from crosslens.data.plain import PLAIN_SUFFIXES


def write_dataset(
    dataset: Dataset,
    path: str | Path,
    to: str = "plain",
    *,
    images: str | Path | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a dataset in the form ``to``; gzipped where the name ends in ``.gz``.

    ``coco``            captions JSON, with the columns of images and captions
    ``coco_instances``  instances JSON: the objects, their names as categories
    ``karpathy``        ``dataset_*.json``; the split is the images' column ``split``, or ``test``
    ``visual_genome``   a folder of five JSON files: captions as regions, objects, attributes and relationships
    ``flickr``          token file ``image#0<TAB>caption``, image by image; line breaks inside captions become spaces
    ``plain``           .jsonl, .csv, .tsv or .parquet, one row per caption; ``images`` names a second file with one row
                        per image, and in JSONL its objects and relations
    ``folder``          the folder of Parquet tables that ``Dataset.load`` reads

    A form keeps what it has a place for (:func:`crosslens.data.left_out` says what it drops); but a file that would
    lose an image, or give the images another order, is refused.
    """
    if to == "folder":
        return dataset.save(path, overwrite=overwrite)
    if to not in _WRITERS and to != "plain":
        raise UnknownNameError("dataset form", to, [*_WRITERS, "plain", "folder"])
    if images is not None and to != "plain":
        raise UsageError(f"the form {to!r} has no second file", fix="leave --images-output (images=) out")
    refuse_existing(path, overwrite)
    if to == "plain":
        if images is not None:
            _write_table(_image_rows(dataset, images), refuse_existing(images, overwrite))
        else:
            fix = "pass --images-output (images=) to write the images to a file of their own"
            _check_images_stay(dataset, dataset.captions["image"], path, fix)
        _write_table(dataset.captions.select("image", "caption", "text", pl.exclude("image", "caption", "text")), path)
    else:
        _WRITERS[to](dataset, Path(path))
    return Path(path)


def _write_coco(dataset: Dataset, path: Path) -> None:
    images = dataset.images.rename({"image": "id", "file": "file_name"}, strict=False)
    captions = dataset.captions.rename({"caption": "id", "image": "image_id", "text": "caption"})
    _write_json(
        {
            "images": [numbered(row, "id") for row in images.iter_rows(named=True)],
            "annotations": [numbered(row, "id", "image_id") for row in captions.iter_rows(named=True)],
        },
        path,
    )


def _write_instances(dataset: Dataset, path: Path) -> None:
    if dataset.objects is None:
        raise UsageError(f"dataset {dataset.name!r} has no objects", fix="write its captions: to='coco'")
    images = dataset.images.rename({"image": "id", "file": "file_name"}, strict=False)
    kinds = {name: number for number, name in enumerate(sorted(set(dataset.objects["name"].drop_nulls())), start=1)}
    annotations = []
    for row in dataset.objects.iter_rows(named=True):
        if row["name"] is None or row["x"] is None:
            raise InputError(
                f"object {row['object']!r} in image {row['image']!r} has no {'name' if row['name'] is None else 'box'}",
                expected="a name and a box for every object: COCO has no place for one without",
                fix="filter such objects out first",
            )
        entry = {"id": row["object"], "image_id": row["image"], "category_id": kinds[row["name"]]}
        entry |= {"bbox": [row[side] for side in "xywh"], "area": row["w"] * row["h"]}
        annotations.append(numbered(entry | {"iscrowd": row.get("iscrowd") or 0}, "id", "image_id"))
    categories = [{"id": number, "name": name} for name, number in kinds.items()]
    entries = [numbered(row, "id") for row in images.iter_rows(named=True)]
    _write_json({"images": entries, "annotations": annotations, "categories": categories}, path)


def _write_karpathy(dataset: Dataset, path: Path) -> None:
    sentences: dict[str, list[dict[str, Any]]] = {image: [] for image in dataset.image_ids}
    number_of = {image: number for number, image in enumerate(dataset.image_ids)}
    for caption, image, text in dataset.captions.select("caption", "image", "text").iter_rows():
        tokens = re.findall(r"[\w']+", text.lower())
        sentence = {"tokens": tokens, "raw": text, "imgid": number_of[image], "sentid": caption}
        sentences[image].append(numbered(sentence, "sentid"))
    images = []
    for row in dataset.images.iter_rows(named=True):
        image = row.pop("image")
        folder, _, name = (row.pop("file", None) or image).rpartition("/")
        entry = {"filepath": folder, "filename": name, "imgid": number_of[image], "split": row.pop("split", "test")}
        if is_number(image):
            entry["cocoid"] = int(image)
        listed = sentences[image]
        images.append(entry | row | {"sentids": [one["sentid"] for one in listed], "sentences": listed})
    _write_json({"images": images, "dataset": dataset.name.partition("/")[0]}, path)


def _write_flickr(dataset: Dataset, path: Path) -> None:
    captions = by_image(dataset)
    _check_images_stay(dataset, captions["image"], path, "write a form that lists images: coco, karpathy or folder")
    counts: Counter[str] = Counter()
    with writing_text(path) as out:
        for image, text in captions.select("image", "text").iter_rows():
            if re.search(r"[\t\n\r]", image):
                raise InputError(f"image id {image!r} holds a tab or line break", file=path, fix="rename the image")
            out.write(f"{image}#{counts[image]}\t{' '.join(text.split())}\n")
            counts[image] += 1


_WRITERS: dict[str, Callable[[Dataset, Path], None]] = {
    "coco": _write_coco,
    "coco_instances": _write_instances,
    "karpathy": _write_karpathy,
    "flickr": _write_flickr,
    "visual_genome": write_visual_genome,
}


def _check_images_stay(dataset: Dataset, owners: pl.Series, path: str | Path, fix: str) -> None:
    """A file of captions alone gives its images the order in which they appear; that must be the dataset's."""
    if tuple(dict.fromkeys(owners)) == dataset.image_ids:
        return
    lost = len(set(dataset.image_ids) - set(owners))
    problem = f"images without a caption: {lost}" if lost else "the captions do not come in the order of the images"
    raise UsageError(f"{problem}; read back from {path} the images would not be the same", fix=fix)


def _image_rows(dataset: Dataset, path: str | Path) -> pl.DataFrame:
    """One row per image; for JSON lines with lists of what stands in it."""
    images = dataset.images
    if format_suffix(path) != ".jsonl":
        return images
    for name, table in (("objects", dataset.objects), ("relations", dataset.relations)):
        if table is not None:
            rows = pl.struct(pl.exclude("image")).alias(name)
            images = images.join(
                table.group_by("image", maintain_order=True).agg(rows), on="image", how="left", maintain_order="left"
            )
    return images


def _write_table(frame: pl.DataFrame, path: str | Path) -> None:
    suffix = format_suffix(path)
    if suffix not in PLAIN_SUFFIXES:
        raise UsageError(f"{path} ends in {suffix!r}", fix=f"use one of: {', '.join(PLAIN_SUFFIXES)}")
    flat = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    with writing_bytes(path) as out:
        if suffix == ".jsonl":
            frame.write_ndjson(out)
        elif suffix == ".parquet":
            frame.write_parquet(out)
        elif suffix == ".csv":
            frame.select(flat).write_csv(out)
        else:
            _check_tabs(frame.select(flat), path)
            frame.select(flat).write_csv(out, separator="\t", quote_style="never")


def _check_tabs(frame: pl.DataFrame, path: str | Path) -> None:
    for name in frame.columns:
        if frame[name].dtype == pl.String and frame[name].str.contains(r"[\t\n\r]").any():
            row = int(frame[name].str.contains(r"[\t\n\r]").fill_null(False).arg_true()[0])
            raise InputError(
                f"the {name} {frame[name][row]!r:.60} holds a tab or line break",
                file=path,
                row=row,
                expected="values on one line: a .tsv file has no quotes",
                fix="write a .csv or .jsonl file",
            )


def _write_json(content: Any, path: Path) -> None:
    with writing_text(path) as out:
        out.write(json.dumps(content, ensure_ascii=False, default=str))  # dates from Parquet files become texts
        out.write("\n")
