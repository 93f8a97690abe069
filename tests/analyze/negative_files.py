"""Hard negatives for the tests: files as SugarCrepe, ARO and Winoground publish theirs, with captions of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.data.files import write, write_json

SUGAR: dict[str, dict[str, Any]] = {
    "replace_obj": {
        "0": {"filename": "1.jpg", "caption": "A red square.", "negative_caption": "A red circle on a mat."},
        "7": {"filename": "2.jpg", "caption": "A blue square.", "negative_caption": "A blue tree."},
    },
    "replace_att": {"0": {"filename": "1.jpg", "caption": "A red square.", "negative_caption": "A blue square."}},
    "swap_obj": {"0": {"filename": "2.jpg", "caption": "Blue over red.", "negative_caption": "Red over blue."}},
}


def write_sugar(folder: Path) -> Path:
    for kind, content in SUGAR.items():
        write_json(folder / f"{kind}.json", content)
    write_json(folder / "notes.json", {"unrelated": True})
    return folder


def aro_case(photo: str, box: tuple[int, int, int, int], right: str, wrong: str, **more: Any) -> dict[str, Any]:
    sides = dict(zip(("bbox_x", "bbox_y", "bbox_w", "bbox_h"), box, strict=True))
    return {"image_id": photo.removesuffix(".png"), "image_path": photo, "true_caption": right, "false_caption": wrong,
            **sides, **more}  # fmt: skip


def relations() -> list[dict[str, Any]]:
    return [
        aro_case("9.png", (0, 0, 4, 4), "the red is left of the blue", "the blue is left of the red",
                 relation_name="to the left of"),
        aro_case("9.png", (4, 0, 4, 4), "blue is under the sky", "the sky is under blue", relation_name="under"),
        aro_case("8.png", (0, 0, 8, 4), "a cup on a table", "a table on a cup", relation_name="on"),
        aro_case("8.png", (0, 0, 8, 4), "a hat on a head", "a head on a hat", relation_name="on"),
    ]  # fmt: skip


def attributions(many: int = 25) -> list[dict[str, Any]]:
    common = aro_case("9.png", (0, 0, 4, 4), "the red cup and the old man", "the old cup and the red man",
                      attributes=["red", "old"], obj1_name="cup", obj2_name="man")  # fmt: skip
    rare = {**common, "attributes": ["wet", "tall"]}
    return [*([common] * many), rare]


def winoground() -> list[dict[str, Any]]:
    def row(number: int, captions: tuple[str, str], **tags: Any) -> dict[str, Any]:
        return {
            "id": number, "caption_0": captions[0], "caption_1": captions[1], "image_0": f"ex_{number}_img_0",
            "image_1": f"ex_{number}_img_1", "tag": "Noun", "secondary_tag": "", "num_main_preds": 1,
            "collapsed_tag": "Object", **tags,
        }  # fmt: skip

    return [
        row(0, ("red over blue", "blue over red")),
        row(1, ("a dog bites a man", "a man bites a dog"), collapsed_tag="Relation", secondary_tag="Series"),
        row(2, ("some plants surround a lamp", "a lamp surrounds some plants"), num_main_preds=2),
    ]


def write_winoground(folder: Path, rows: list[dict[str, Any]] | None = None) -> Path:
    lines = [json.dumps(row) for row in (winoground() if rows is None else rows)]
    write(folder / "examples.jsonl", "\n".join(lines) + "\n")
    (folder / "images").mkdir(exist_ok=True)
    return folder
