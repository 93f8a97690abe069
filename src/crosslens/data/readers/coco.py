"""JSON captions of COCO and Flickr photos: COCO's own files, Karpathy's splits, BLIP's annotations, finer captions."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from crosslens.core import InputError, UsageError, argument, reading
from crosslens.data.files import format_stem, json_file, read_json
from crosslens.data.loading import READERS, JsonFile
from crosslens.data.rows import Records, box_columns, check_known, check_texts, check_unique, number_within, text_table
from crosslens.values import Dataset, without_image_ending

CAPTIONS_LAYOUT = '{"images": [{"id", "file_name", …}], "annotations": [{"id", "image_id", "caption"}]}'
INSTANCES_LAYOUT = '{"annotations": [{"id", "image_id", "category_id", "bbox"}], "categories": [{"id", "name"}]}'
# What every published image entry carries and nobody groups results by.
_BOOKKEEPING = ("license", "flickr_url", "coco_url", "date_captured")


def _holds(beside: str, key: str, content: Any) -> bool:
    """Whether a file is laid out like COCO's, with annotations that have this key; without any, by what is beside."""
    annotations = content.get("annotations") if isinstance(content, dict) else None
    if not isinstance(annotations, list) or not isinstance(content.get(beside), list):
        return False
    rows = [row for row in annotations[:100] if isinstance(row, dict)]
    return any(key in row for row in rows) if rows else beside == "categories" or "categories" not in content


@READERS.register(
    "coco",
    json_files=(
        JsonFile("captions", "COCO captions", CAPTIONS_LAYOUT, partial(_holds, "images", "caption")),
        JsonFile("instances", "COCO instances", INSTANCES_LAYOUT, partial(_holds, "categories", "category_id")),
    ),
)
def read_coco(captions: str | Path, instances: str | Path | None = None, split: str | None = None) -> Dataset:
    """COCO captions, with the boxes of an instances file.

    captions: the captions JSON (may be .gz), or the folder that holds ``captions_<split>.json``
    instances: the instances JSON, or its folder; its boxes become the dataset's objects, crowds marked in ``iscrowd``
    split: which file of the folder to read, such as ``val2017``; of a single file, keep the images whose entry
        ``split`` has this value

    Other single values in the image and annotation entries become columns. Images come in the order of the file.
    Objects of images that only the instances file knows are left out; a box of no width or height is kept as an object
    without a box.
    """
    content, file = _open(captions, "captions", split)
    with reading(file):
        images = Records.under(content, "images", "image", CAPTIONS_LAYOUT)
        annotations = Records.under(content, "annotations", "annotation", CAPTIONS_LAYOUT)
        image_ids, caption_ids = images.ids("id", unique="image"), annotations.ids("id", unique="caption")
        owners = annotations.ids("image_id")
        check_known(owners, image_ids, "image", annotations.row_name)
        files = {"file": images.strings("file_name")} if images.has("file_name") else {}
        sizes = {side: images.sizes(side) for side in ("width", "height") if images.has(side)}
        free = images.free(("id", "image", "file", "file_name", "width", "height", *_BOOKKEEPING))
        dataset = Dataset(
            "coco" if split is None else f"coco/{split}",
            text_table(sizes | free, image=image_ids, **files),
            text_table(
                annotations.free(("id", "image_id", "caption", "text", "image")),
                caption=caption_ids,
                image=owners,
                text=annotations.texts("caption"),
            ),
        )
    if instances is not None:
        dataset = _with_objects(dataset, instances, split)
    if split is not None and Path(captions).is_file():
        if "split" not in dataset.images.columns:
            expected = f"entries with 'split': {split!r}"
            fix = "leave split out, or pass the folder that holds one file per split"
            raise InputError("the image entries have no key 'split'", file=file, expected=expected, fix=fix)
        selected = dataset.images.filter(pl.col("split") == split)["image"]
        if not len(selected):
            splits = ", ".join(str(name) for name in dataset.images["split"].unique(maintain_order=True))
            raise UsageError(f"no image has the split {split!r}", fix=f"use one of: {splits}")
        dataset = dataset.select(selected)
    return dataset


def _open(path: str | Path, kind: str, split: str | None) -> tuple[Any, Path]:
    path = Path(path)
    if path.is_dir():
        if split is None:
            names = sorted(file.name for file in path.glob(f"{kind}_*.json*"))
            splits = ", ".join(name.removeprefix(f"{kind}_").partition(".")[0] for name in names) or "none here"
            raise UsageError(
                f"{path} is a folder",
                fix=f"name the file, or pass {argument('split')} for one of its {kind} files ({splits})",
            )
        path = json_file(path, f"{kind}_{split}")
    return read_json(path), path


def _with_objects(dataset: Dataset, instances: str | Path, split: str | None) -> Dataset:
    content, file = _open(instances, "instances", split)
    with reading(file):
        annotations = Records.under(content, "annotations", "annotation", INSTANCES_LAYOUT)
        categories = Records.under(content, "categories", "category", INSTANCES_LAYOUT)
        name_of = dict(zip(categories.ids("id", unique="category"), categories.strings("name"), strict=True))
        ids, owners = annotations.ids("id", unique="object"), annotations.ids("image_id")
        category_ids = annotations.ids("category_id")
        check_known(category_ids, name_of, "category", annotations.row_name)
        # An object's image must be in one of the two files.
        listed = content.get("images")
        more = Records.of(listed, "image", INSTANCES_LAYOUT).ids("id") if isinstance(listed, list) else []
        check_known(owners, {*dataset.image_ids, *more}, "image", annotations.row_name)
        boxes = box_columns(annotations.values("bbox"), annotations.row_name)
        sides = {side: pl.Series(side, values, pl.Float64) for side, values in boxes.items()}
        crowds = pl.Series("iscrowd", [int(bool(crowd)) for crowd in annotations.optional("iscrowd")], pl.Int64)
        names = [name_of[category] for category in category_ids]
        objects = text_table({**sides, "iscrowd": crowds}, image=owners, object=ids, name=names)
        # The instances file of a full split may cover more images than a captions file cut to some of them.
        return replace(dataset, objects=objects.filter(pl.col("image").is_in(list(dataset.image_ids))))


_KARPATHY = '{"images": [{"filename", "split", "sentences": [{"raw", "sentid"}], …}], "dataset"}'
_KNOWN = ("image", "file", "filepath", "filename", "split", "sentids", "sentences", "imgid", "cocoid")


def _holds_sentences(content: Any) -> bool:
    images = content.get("images") if isinstance(content, dict) else None
    return isinstance(images, list) and any(isinstance(row, dict) and "sentences" in row for row in images[:100])


@READERS.register(
    "karpathy", json_files=(JsonFile("captions", "Karpathy's dataset_*.json", _KARPATHY, _holds_sentences),)
)
def read_karpathy(
    captions: str | Path, split: str | None = None, restval: bool = False, image_key: str | None = None
) -> Dataset:
    """Karpathy's ``dataset_*.json``: images with their sentences and the split they belong to.

    captions: ``dataset_coco.json``, ``dataset_flickr30k.json`` or another file of that form (may be .gz)
    split: keep the images of ``train``, ``val``, ``test`` or ``restval`` only; all of them by default
    restval: count the images of ``restval`` as training images, as most papers do
    image_key: which entry is an image's id: ``cocoid``, ``filename`` or ``imgid``; by default ``cocoid`` where every
        image has one, otherwise ``filename``

    A caption's id is its ``sentid``. The split of every image is kept in the column ``split``.
    """
    with reading(captions):
        content = read_json(captions)
        images = Records.under(content, "images", "image", _KARPATHY)
        splits = images.strings("split")
        if restval:
            splits = ["train" if name == "restval" else name for name in splits]
        if split is not None:
            rows = [index for index, name in enumerate(splits) if name == split]
            if not rows:
                raise UsageError(
                    f"no image has the split {split!r}", fix=f"use one of: {', '.join(dict.fromkeys(splits))}"
                )
            images, splits = images.only(rows), [split] * len(rows)
        key = image_key or ("cocoid" if all("cocoid" in row for row in images.rows) else "filename")
        ids = images.ids(key, unique="image")
        sentences, owners = images.nested("sentences", "sentence")
        caption_ids = sentences.ids("sentid", unique="caption")
        # An image lists its sentence ids twice; both lists must be equal.
        for index, row in enumerate(images.rows):
            listed = row.get("sentids")
            if listed is not None and listed != [sentence["sentid"] for sentence in row["sentences"]]:
                raise InputError(
                    f"'sentids' is {listed!r:.60}, which are not the ids of its sentences",
                    row=images.row_name(index),
                    expected="the sentid of every sentence, in order",
                    fix="correct 'sentids', or leave it out",
                )
        collection = content.get("dataset") or Path(captions).name.partition(".")[0].removeprefix("dataset_")
        names = zip(images.optional("filepath"), images.strings("filename"), strict=True)
        files = [f"{folder}/{name}" if isinstance(folder, str) and folder else name for folder, name in names]
        return Dataset(
            f"{collection}/{split}" if split else str(collection),
            text_table(images.free(_KNOWN), image=ids, file=files, split=splits),
            text_table(
                sentences.free(("caption", "image", "text", "raw", "tokens", "imgid", "sentid")),
                caption=caption_ids,
                image=[ids[owner] for owner in owners],
                text=sentences.texts("raw"),
            ),
        )


_BLIP = '[{"image": "folder/photo.jpg", "caption": ["caption", …]}, …]'


def _holds_images_with_captions(content: Any) -> bool:
    rows = content[:100] if isinstance(content, list) else []
    return bool(rows) and all(
        isinstance(row, dict) and isinstance(row.get("image"), str) and isinstance(row.get("caption"), str | list)
        for row in rows
    )


@READERS.register("blip", json_files=(JsonFile("captions", "BLIP annotations", _BLIP, _holds_images_with_captions),))
def read_blip(captions: str | Path, coco_ids: bool = False) -> Dataset:
    """BLIP and ALBEF annotations: a JSON array of images with their captions.

    captions: the file, such as ``flickr30k_test.json`` or ``coco_karpathy_test.json`` (may be .gz)
    coco_ids: call ``COCO_val2014_000000391895.jpg`` by its COCO id, ``391895``, to match other COCO files

    Training files have an entry for each caption: entries of one image are joined. An image's id is the name of its
    file, without the folder unless two folders have a file of that name; a caption's id is its image's id, ``#``, and
    its index. Other single values in the entries become columns of the captions.
    """
    with reading(captions):
        rows = Records.of(read_json(captions), "entry", _BLIP)
        image_files = rows.ids("image")
        if not image_files:
            raise InputError("no images", expected="at least one image", fix="check how the file was written")
        files = list(dict.fromkeys(image_files))
        names = [PurePosixPath(file).name for file in files]
        ids = _coco_ids(names, files) if coco_ids else names if len(set(names)) == len(names) else files
        id_of = dict(zip(files, ids, strict=True))
        texts: list[Any] = []
        indices: list[int] = []
        row_names: list[str] = []
        for index, caption in enumerate(rows.values("caption")):
            several = caption if isinstance(caption, list) else [caption]
            row_name = f"{rows.row_name(index)}" + (", caption {}" if isinstance(caption, list) else "")
            texts += several
            indices += [index] * len(several)
            row_names += map(row_name.format, range(len(several)))
        owners = [id_of[image_files[index]] for index in indices]
        check_texts(texts, row_names.__getitem__)
        free = {name: values.gather(indices) for name, values in rows.free(("image", "caption", "text")).items()}
        return Dataset(
            format_stem(captions),
            text_table(image=ids, file=files),
            text_table(free, caption=number_within(owners), image=owners, text=texts),
        )


def _coco_ids(names: list[str], files: list[str]) -> list[str]:
    """The numbers at the end of COCO's file names: 391895 of ``COCO_val2014_000000391895.jpg``."""
    ids = []
    for name, file in zip(names, files, strict=True):
        number = re.search(r"(\d+)$", without_image_ending(name))
        if number is None:
            problem = f"the file name {name!r} does not end in a number"
            fix = "pass coco_ids=False to use the names as ids"
            expected = "a name such as COCO_val2014_000000391895"
            raise InputError(problem, row=f"image {file!r}", expected=expected, fix=fix)
        ids.append(str(int(number[1])))
    check_unique(ids, "image", lambda index: f"image {files[index]!r}")
    return ids


_FINE_GRAINED = '{"file stem": ["caption", …], …}'


def _holds_lists_of_texts(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and bool(content)
        and all(isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in content.values())
    )


@READERS.register(
    "fine_grained", json_files=(JsonFile("captions", "fine-grained captions", _FINE_GRAINED, _holds_lists_of_texts),)
)
def read_fine_grained(captions: str | Path, coco_ids: bool = False, extension: str = ".jpg") -> Dataset:
    """MSCOCO-FG and Flickr30K-FG captions: a JSON object from file stems to lists of captions.

    captions: the JSON file (may be .gz)
    coco_ids: call ``COCO_val2014_000000391895`` by its COCO id, ``391895``, to match other COCO files
    extension: what the photos' names end in after the stem, where the file does not say it

    A caption's id is its image's id, ``#``, and its index in the list.
    """
    with reading(captions):
        content = read_json(captions)
        if not isinstance(content, dict) or not content:
            top = "an empty object" if content == {} else f"{type(content).__name__}"
            raise InputError(
                f"the file holds {top} at its top", expected=_FINE_GRAINED, fix="check that it is of this format"
            )
        for stem, texts in content.items():
            if not isinstance(texts, list):
                problem = f"the captions are {type(texts).__name__}"
                fix = "put the captions in a list"
                raise InputError(problem, row=f"image {stem!r}", expected="a list of captions", fix=fix)
        stems = list(content)
        ids = _coco_ids(stems, stems) if coco_ids else stems
        owners = [image for image, stem in zip(ids, stems, strict=True) for _ in content[stem]]
        row_names = [f"image {stem!r}, caption {n}" for stem in stems for n in range(len(content[stem]))]
        texts = check_texts([text for stem in stems for text in content[stem]], row_names.__getitem__)
        files = [stem + extension if without_image_ending(stem) == stem else stem for stem in stems]
        return Dataset(
            format_stem(captions),
            text_table(image=ids, file=files),
            text_table(caption=number_within(owners), image=owners, text=texts),
        )
