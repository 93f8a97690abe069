"""Bodies with joints: animals on four legs (one skeleton, many builds, five poses) and people, who have more poses."""

from __future__ import annotations

from functools import partial
from typing import Any

from crosslens.synth.drawing import Pen, draw_rows, drawing, points, read_rows, read_table

_PARTS = read_rows("kinds/parts.txt") | read_rows("kinds/props.txt")
_POSES = ("standing", "running", "sitting", "jumping", "sleeping")
_USUAL: dict[str, Any] = {"thick": 13.0, "leg": 28.0, "leg_width": 7.0, "neck": 10.0, "head": 12.0, "snout": 9.0} | {
    "ears": "pointed", "tail": "long", "coat": "",
}  # fmt: skip
"""What makes a dog a dog: proportions, ears, tail, coat."""


def _draw_body(pen: Pen, name: str, **names: Any) -> None:
    draw_rows(pen, _PARTS[name], {**pen.names, **names, "parts": _PARTS})


for _name, (_row,) in read_table("kinds/builds.txt").items():
    _build: dict[str, Any] = dict(item.split("=") for item in _row.split())
    _build |= {_field: float(_value) for _field, _value in _build.items() if not _value.isalpha()}
    drawing(_name, _POSES)(partial(_draw_body, name="animal", **(_USUAL | _build)))

_STANCES: dict[str, dict[str, Any]] = {}
"""Elbow and hand of both arms, knee and foot of both legs, and how far the whole figure is lowered."""
for _pose, (_arms, _legs, *_drop) in read_table("kinds/stances.txt").items():
    _lower = float(*_drop)
    _limbs = ([[(x, y + _lower) for x, y in points(limb)] for limb in side.split("|")] for side in (_arms, _legs))
    _STANCES[_pose] = {**dict(zip(("arms", "legs"), _limbs, strict=True)), "drop": _lower}


def _draw_person(pen: Pen, **names: Any) -> None:
    _draw_body(pen, "person", **_STANCES[pen.pose or "standing"], **names)


for _name, _hair, _dress, _size in (
    ("man", "short hair", False, 12),
    ("woman", "long hair", True, 12),
    ("boy", "hair under a cap", False, 14),
    ("girl", "pigtails", True, 14),
):
    drawing(_name, tuple(_STANCES))(partial(_draw_person, hair=_hair, dress=_dress, head=_size))
