"""Hard negatives from files: SugarCrepe, ARO and Winoground as published, or cases in a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from crosslens.analyze.hard_negatives.cases import RIGHT, WRONG, HardNegatives, hard_negatives_of, perturbed_negatives
from crosslens.core import InputError, UnknownNameError, UsageError, argument, reading
from crosslens.data import (
    Records,
    check_unique,
    crop_path,
    existing_file,
    format_stem,
    format_suffix,
    load_dataset,
    read_json,
    read_records,
)
from crosslens.engine import Progress
from crosslens.perturbations import perturbations_with
from crosslens.storage import HEADER_FILE, is_finite_number
from crosslens.values import Dataset

FORMS = ("sugar_crepe", "aro", "aro_order", "winoground", "cases")
ORDER = "aro_order"
SUGAR_CREPE = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
SUGAR_LAYOUT = '{"0": {"filename", "caption", "negative_caption"}, …}'
ARO_LAYOUT = '[{"image_path", "true_caption", "false_caption", "bbox_x", …, "relation_name" or "attributes"}, …]'
ORDER_LAYOUT = '[{"image": …, "caption": [ … ]}, …]'
WINOGROUND_FILE = "examples.jsonl"

_ATTRIBUTES_FEWEST = 25
_PICTURES = (".png", ".jpg", ".jpeg", ".webp")

Caption = tuple[str, str, str, str, bool]


def read_sugar_crepe(path: str | Path) -> HardNegatives:
    """SugarCrepe's folder of seven files, or one of them: ``replace_obj.json`` is kind replace_obj, group replace."""
    path = Path(path)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if path.is_dir():
        files = [file for file in files if file.stem in SUGAR_CREPE]
        if not files:
            problem = "contains none of SugarCrepe's files"
            raise InputError(problem, file=path, expected=f"{SUGAR_CREPE[0]}.json, …", fix="check the path")
    captions: list[Caption] = []
    kinds: list[str] = []
    names: list[str] = []
    for file in files:
        with reading(file):
            kind, content = format_stem(file), read_json(file)
            if isinstance(content, list):
                content = dict(enumerate(content))
            if not isinstance(content, dict) or not content:
                raise InputError("no cases", expected=SUGAR_LAYOUT, fix="check that the file is one of SugarCrepe's")
            for key, row in content.items():
                if not isinstance(row, dict):
                    problem = f"{row!r:.60} is not an object"
                    raise InputError(problem, row=f"case {key}", expected=SUGAR_LAYOUT, fix="remove this entry")
            keys = list(content)
            rows = Records(list(content.values()), [f"case {key}" for key in keys].__getitem__)
            photos = rows.ids("filename")
            texts = zip(rows.texts("caption"), rows.texts("negative_caption"), strict=True)
            for key, photo, (right, wrong) in zip(keys, photos, texts, strict=True):
                captions += _one_wrong(f"{kind}/{key}", photo, right, wrong)
        names += photos
        kinds += [kind] * len(keys)
    return HardNegatives.of(
        "sugar_crepe" if path.is_dir() else kinds[0],
        {"image": names, "file": names},
        captions,
        {"group": [kind.partition("_")[0] for kind in kinds], "kind": kinds},
        averaged="kind",
        home=path if path.is_dir() else path.parent,
    )


def _one_wrong(case: str, image: str, right: str, wrong: str) -> list[Caption]:
    return [(f"{case}:{RIGHT}", image, right, case, True), (f"{case}:{WRONG}", image, wrong, case, False)]


def read_aro(path: str | Path, *, crop: bool = True) -> HardNegatives:
    """ARO's Visual Genome Relation or Attribution file, photos in ``images`` beside it.

    ``crop`` shows of each photo the box that holds both things, as ARO does; without it the whole photo. Attributions
    have a category per pair of attributes, and those with fewer than 25 cases are not averaged, as in ARO.
    """
    path = Path(path)
    with reading(path):
        rows = Records.of(read_json(path), "case", ARO_LAYOUT)
        photos = rows.ids("image_path")
        images = _boxes(rows, photos) if crop else [(photo, photo) for photo in photos]
        relation = rows.has("relation_name")
        if relation:
            labels = rows.ids("relation_name")
        else:
            attributes = rows.lists("attributes")
            for index, pair in enumerate(attributes):
                if len(pair) != 2:
                    raise InputError(
                        f"'attributes' is {rows.rows[index].get('attributes')!r:.60}",
                        row=rows.row_name(index),
                        expected="two attributes in a list, or relation_name",
                        fix="check that the file is ARO's",
                    )
            labels = ["_".join(map(str, pair)) for pair in attributes]
        captions: list[Caption] = []
        pairs = zip(rows.texts("true_caption"), rows.texts("false_caption"), strict=True)
        for number, ((image, _), (right, wrong)) in enumerate(zip(images, pairs, strict=True)):
            captions += _one_wrong(str(number), image, right, wrong)
        grouping = "relation" if relation else "attributes"
        return HardNegatives.of(
            format_stem(path),
            {"image": [image for image, _ in images], "file": [file for _, file in images], "photo": photos},
            captions,
            {grouping: labels},
            averaged=grouping,
            fewest=1 if relation else _ATTRIBUTES_FEWEST,
            home=_pictures_beside(path.parent),
        )


def _boxes(rows: Records, photos: list[str]) -> list[tuple[str, str]]:
    """For each case the id and the address of the part of the photo that it is about."""
    boxes = []
    columns = [rows.values(f"bbox_{side}") for side in "xywh"]
    for index, (photo, *box) in enumerate(zip(photos, *columns, strict=True)):
        if not all(map(is_finite_number, box)) or min(box[2:]) <= 0:
            raise InputError(
                f"bad box {box!r:.100}",
                row=rows.row_name(index),
                expected="bbox_x, bbox_y, bbox_w, bbox_h in pixels, width and height above 0",
                fix=f"correct the box, or read whole photos: {argument('crop', False)}",
            )
        address = crop_path(photo, (box[0], box[1], box[2], box[3]))
        boxes.append((address, address))
    return boxes


def read_winoground(path: str | Path) -> HardNegatives:
    """Winoground's ``examples.jsonl`` (or its folder), pictures in ``images`` beside it."""
    path = Path(path) / WINOGROUND_FILE if Path(path).is_dir() else Path(path)
    home = _pictures_beside(path.parent)
    with reading(path):
        rows = read_records(path)
        ids = rows.ids("id")
        check_unique(ids, "case", rows.row_name)
        pictures = [
            [Path(name).stem if Path(name).suffix.lower() in _PICTURES else name for name in rows.ids(f"image_{side}")]
            for side in (0, 1)
        ]
        texts = [rows.texts(f"caption_{side}") for side in (0, 1)]
        for index, (first, second) in enumerate(zip(*pictures, strict=True)):
            if first == second:
                problem = f"both pictures are {first!r}"
                raise InputError(problem, row=rows.row_name(index), expected="two pictures", fix="correct the case")
        captions = [
            (f"{case}:caption_{side}", pictures[side][row], texts[side][row], case, True)
            for row, case in enumerate(ids)
            for side in (0, 1)
        ]
        names = [pictures[side][row] for row in range(len(ids)) for side in (0, 1)]
        # Winoground names its pictures without their ending.
        files = [
            next((name + ending for ending in _PICTURES if (home / (name + ending)).exists()), name + _PICTURES[0])
            for name in names
        ]
        groups = {
            key: [None if label is None or label == "" else str(label) for label in rows.optional(key)]
            for key in ("collapsed_tag", "secondary_tag", "num_main_preds", "tag")
        }
        groups = {key: labels for key, labels in groups.items() if any(labels)}
        return HardNegatives.of(
            "winoground",
            {"image": names, "file": files},
            captions,
            groups,
            groupings=tuple(key for key in groups if key != "tag"),
            home=home,
        )


def read_annotations(path: str | Path) -> Dataset:
    """The captions that COCO-Order and Flickr30k-Order are made of: an array of images with lists of captions."""
    path = Path(path)
    with reading(path):
        rows = Records.of(read_json(path), "image", ORDER_LAYOUT)
        images = rows.ids("image")
        check_unique(images, "image", rows.row_name)
        captions = []
        for index, (image, value) in enumerate(zip(images, rows.values("caption"), strict=True)):
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
                problem = f"'caption' is {value!r:.60}"
                raise InputError(problem, row=rows.row_name(index), expected="a list of texts", fix="correct it")
            captions += [(f"{image}#{number}", image, text) for number, text in enumerate(texts)]
        schema = dict.fromkeys(("caption", "image", "text"), pl.String)
        return Dataset(
            format_stem(path),
            pl.DataFrame({"image": images, "file": images}),
            pl.DataFrame(captions, schema=schema, orient="row"),
            home=path.parent,
        )


def _pictures_beside(folder: Path) -> Path:
    return folder / "images" if (folder / "images").is_dir() else folder


def load_hard_negatives(
    source: str | Path,
    form: str | None = None,
    *,
    crop: bool = True,
    by: Sequence[str] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> HardNegatives:
    """Read hard negatives.

    source: SugarCrepe's folder or one of its files; ARO's ``visual_genome_relation.json`` or ``…_attribution.json``;
        Winoground's folder or ``examples.jsonl``; or cases: a table or JSONL file or a dataset's folder whose captions
        have the columns ``case`` and ``right``
    form: ``sugar_crepe``, ``aro``, ``aro_order``, ``winoground`` or ``cases``; by default detected from the content
    crop: of ARO's photos, show the box that the case is about
    by: the columns to group by, instead of the form's own

    ``aro_order``, the images and captions that COCO-Order and Flickr30k-Order start from, becomes cases with four wrong
    captions each, made by crosslens's own shuffles under ``seed``.
    """
    path = Path(source)
    if not path.exists():
        existing_file(path)  # raises, with similar names
    form = form or _detect_form(path)
    if form not in FORMS:
        raise UnknownNameError("form of hard negatives", form, FORMS)
    if form == "cases":
        with reading(path):
            return hard_negatives_of(load_dataset(path), by)
    if form == ORDER:
        if by:
            problem = "images with lists of captions have no columns to group by"
            raise UsageError(problem, fix=f"leave out {argument('by')}", option="by")
        captions = read_annotations(path)
        return perturbed_negatives(captions, perturbations_with("aro"), together=True, seed=seed, progress=progress)
    if form == "aro":
        negatives = read_aro(path, crop=crop)
    else:
        negatives = read_sugar_crepe(path) if form == "sugar_crepe" else read_winoground(path)
    return negatives.by(by) if by else negatives


def _detect_form(path: Path) -> str:
    if path.is_dir():
        if (path / WINOGROUND_FILE).exists():
            return "winoground"
        if (path / HEADER_FILE).exists():
            return "cases"
        if any((path / f"{kind}.json").exists() for kind in SUGAR_CREPE):
            return "sugar_crepe"
        raise InputError(
            "contains no known hard negatives",
            file=path,
            expected=f"SugarCrepe's files, Winoground's {WINOGROUND_FILE}, or a dataset with case and right",
            fix="pass the file inside it",
        )
    if format_suffix(path) == ".jsonl":
        with reading(path):
            rows = read_records(path).rows
        return "winoground" if rows and "caption_0" in rows[0] else "cases"
    if format_suffix(path) != ".json":
        return "cases"
    if format_stem(path) in SUGAR_CREPE:
        return "sugar_crepe"
    content = read_json(path)
    rows = list(content.values()) if isinstance(content, dict) else content
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    marks = {"negative_caption": "sugar_crepe", "false_caption": "aro", "caption": ORDER}
    for key, form in marks.items():
        if key in first:
            return form
    fix = f"pass {argument('form')}, one of {', '.join(FORMS)}"
    raise UsageError(f"{path}: unknown form of hard negatives", fix=fix, option="form")
