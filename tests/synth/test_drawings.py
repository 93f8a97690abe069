"""The language of the tables of drawings: every row, by the strokes that it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crosslens.synth.backdrops import Brush
from crosslens.synth.drawing import Surface, compiled_rows, draw_rows


class Recorder:
    """A pen that notes what it is told to draw."""

    def __init__(self) -> None:
        self.strokes: list[tuple[Any, ...]] = []

    def __getattr__(self, shape: str) -> Any:
        return lambda *places, **style: self.strokes.append((shape, *places, style))

    def turned(self, angle: float) -> Recorder:
        self.strokes.append(("turned", angle))
        return self


def strokes(text: str, **names: Any) -> list[tuple[Any, ...]]:
    pen = Recorder()
    draw_rows(pen, compiled_rows([line[4:] for line in text.splitlines() if line.strip()]), names)  # type: ignore[arg-type]
    return pen.strokes


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("    disc: 1,2 3", [("disc", 1, 2, 3, {})]),
        ("    box 2 gold: 1,2 3,4", [("box", 1, 2, 3, 4, {"fill": "gold", "radius": 2})]),
        ("    line 3 1,2,3: 4,5 6,7", [("line", [(4, 5), (6, 7)], {"fill": (1, 2, 3), "width": 3})]),
        ("    disc: 1,2 3 | 4,5 6", [("disc", 1, 2, 3, {}), ("disc", 4, 5, 6, {})]),
        ("    sky 1,1,1 2,2,2: 9", [("sky", 9, {"above": (1, 1, 1), "below": (2, 2, 2)})]),
        ("    let x y: 3 2*x0\n    disc: x,y x+y", [("disc", 3, 10, 13, {})]),
        ("    let way: ((1,2),(3,4))\n    line: *way 5,6", [("line", [(1, 2), (3, 4), (5, 6)], {})]),
        ("    each x: 1 2\n        disc: x,0 1", [("disc", 1, 0, 1, {}), ("disc", 2, 0, 1, {})]),
        ("    each x y: 1 2 | 3 4\n        disc: x,y 1", [("disc", 1, 2, 1, {}), ("disc", 3, 4, 1, {})]),
        ("    each x y: *((1,2),(3,4))\n        disc: x,y 1", [("disc", 1, 2, 1, {}), ("disc", 3, 4, 1, {})]),
        ("    repeat 2:\n        disc: 0,0 1", [("disc", 0, 0, 1, {})] * 2),
        ("    while x0<7:\n        disc: x0,0 1\n        let x0: x0+1", [("disc", x, 0, 1, {}) for x in (5, 6)]),
        ("    if x0==5:\n        disc: 1,0 1\n    if x0!=5:\n        disc: 2,0 1", [("disc", 1, 0, 1, {})]),
        ("    turn -9:\n        disc: 0,0 1", [("turned", -9), ("disc", 0, 0, 1, {})]),
        ("    part {coat} coat\n    part bare\n    disc: r,0 1", [("oval", 5, 1, {}), ("disc", 8, 0, 1, {})]),
        ("    let tint: (1,2,3)\n    disc tint: 0,0 1", [("disc", 0, 0, 1, {"fill": (1, 2, 3)})]),
    ],
)
def test_rows_make_strokes(table: str, expected: list[tuple[Any, ...]]) -> None:
    parts = {"woolly coat": compiled_rows(["oval: x0,1", "let r: 8"])}
    assert strokes(table, x0=5, coat="woolly", parts=parts) == expected


def test_numbers_between_two_are_drawn_from_the_brushes_own_stream() -> None:
    brush, stream = Brush(Surface(8, 8), 8, np.random.default_rng(3)), np.random.default_rng(3)
    drawn = strokes("    disc: 1~2,4+-3~-1 9\n    disc: below(5),pick(7,8) chance(0.5)", **brush.names)
    first, second = 1 + stream.random(), 4 - 3 + 2 * stream.random()
    assert drawn[0][1:3] == pytest.approx((first, second))
    assert drawn[1][1:4] == (stream.integers(5), (7, 8)[stream.integers(2)], stream.random() < 0.5)
