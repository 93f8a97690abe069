"""A scene as rows of plain values: what is stored while a set is being written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from crosslens.synth.scene import SIZE, Scene

_PER_IMAGE = 100
"""Ids of captions and objects are the number of their image followed by two digits: numbers, as COCO has them."""


def image_file(number: int) -> str:
    """Where the picture lies, seen from the folder of the set."""
    return f"images/{number:07d}.png"


def record(scene: Scene) -> dict[str, Any]:
    """The row of the image, and the rows of what belongs to it."""
    number = scene.number
    first = number * _PER_IMAGE + 1
    image = {
        "image": str(number),
        "file": image_file(number),
        "width": SIZE,
        "height": SIZE,
        "task": scene.task,
        "source": scene.source,
        "backdrop": scene.backdrop,
        "things": len(scene.objects),
        "role": scene.role,
        "original": None if scene.of is None else str(scene.of),
        "changed": ", ".join(scene.changed) or None,
    }
    captions = [
        {
            "caption": str(first + place),
            "image": str(number),
            "text": caption.text,
            "style": caption.style,
            "difficulty": caption.difficulty,
        }
        for place, caption in enumerate(scene.captions)
    ]
    objects = [
        {
            "image": str(number),
            "object": str(first + place),
            "name": one.name,
            "synset": one.synset,
            "x": one.box.x,
            "y": one.box.y,
            "w": one.box.w,
            "h": one.box.h,
            "attributes": list(one.attributes),
            "category": one.category,
            "colour": one.colour if one.category != "landmark" else None,
            "size": one.size,
            "pose": one.look.pose or None,
            "text": one.look.text or None,
        }
        for place, one in enumerate(scene.objects)
    ]
    relations = [
        {
            "image": str(number),
            "subject": str(first + one.subject),
            "predicate": one.predicate,
            "object": str(first + one.object),
        }
        for one in scene.relations
    ]
    return {"images": [image], "captions": captions, "objects": objects, "relations": relations}


def to_lines(records: Iterable[dict[str, Any]]) -> str:
    """One JSON line per scene."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


def from_lines(text: str) -> list[dict[str, Any]]:
    """The records again."""
    return [json.loads(line) for line in text.splitlines()]
