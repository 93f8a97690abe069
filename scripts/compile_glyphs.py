"""Compile the outlines of the characters that scenes show into the one file that crosslens ships.

    pip install fonttools mplfonts
    python scripts/compile_glyphs.py

Needs NotoSansCJKsc-Regular.otf and NotoSansMonoCJKsc-Regular.otf, version 1.004, as in the package mplfonts (or in
``--fonts FOLDER``), and fontTools, which crosslens itself does not. Curves become polygons, no corner of them further
than a unit from the curve. The same fonts give the same content; its form is described in
``synth/drawing.py``, the licence is beside it.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import math
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont

from crosslens.storage import atomic_file
from crosslens.synth.drawing import COMPILED
from crosslens.synth.tasks.signs import CHINESE

FONTS = {"sans": "NotoSansCJKsc-Regular.otf", "mono": "NotoSansMonoCJKsc-Regular.otf"}
VERSION = "1.004"
PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
CHARACTERS = {"sans": PRINTABLE + "".join(sorted(set("".join(CHINESE)))), "mono": PRINTABLE}
TOLERANCE = 1.0

Point = tuple[float, float]


def flatten(start: Point, first: Point, second: Point, end: Point) -> Iterable[Point]:
    """Points along a cubic Bézier curve, its start left out."""
    bend = max(
        math.hypot(a[0] - 2 * b[0] + c[0], a[1] - 2 * b[1] + c[1])
        for a, b, c in ((start, first, second), (first, second, end))
    )
    steps = max(1, math.ceil(math.sqrt(0.75 * bend / TOLERANCE)))
    for step in range(1, steps + 1):
        t = step / steps
        weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        corners = (start, first, second, end)
        yield (
            sum(weight * corner[0] for weight, corner in zip(weights, corners, strict=True)),
            sum(weight * corner[1] for weight, corner in zip(weights, corners, strict=True)),
        )


def contours(glyphs: Any, name: str) -> list[list[int]]:
    """The outline of a glyph as polygons: the first corner, then steps from corner to corner."""
    pen = DecomposingRecordingPen(glyphs)
    glyphs[name].draw(pen)
    outlines: list[list[Point]] = []
    for command, points in pen.value:
        if command == "moveTo":
            outlines.append([points[0]])
        elif command == "lineTo":
            outlines[-1].append(points[0])
        elif command == "curveTo":
            outlines[-1].extend(flatten(outlines[-1][-1], *points))
    return [_steps([(round(x), round(y)) for x, y in outline]) for outline in outlines]


def _steps(corners: list[tuple[int, int]]) -> list[int]:
    distinct = [corners[0], *(after for before, after in pairwise(corners) if after != before)]
    if len(distinct) > 1 and distinct[-1] == distinct[0]:
        distinct.pop()
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(distinct)]
    return [number for pair in (distinct[0], *steps) for number in pair]


def compile_glyphs(folder: Path) -> dict[str, Any]:
    """The content of the file."""
    compiled: dict[str, Any] = {"format": "crosslens/glyphs", "version": 1}
    for face, file in FONTS.items():
        font = TTFont(folder / file)
        assert f"Version {VERSION};" in font["name"].getDebugName(5), f"{file} is another version than {VERSION}"
        glyphs, names = font.getGlyphSet(), font.getBestCmap()
        compiled.setdefault("em", font["head"].unitsPerEm)
        compiled[face] = {
            character: [glyphs[names[ord(character)]].width, contours(glyphs, names[ord(character)])]
            for character in CHARACTERS[face]
        }
    return compiled


def main() -> None:
    """Read the fonts, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fonts", type=Path, help="where the fonts are; default: in the package mplfonts")
    parser.add_argument("--output", type=Path, default=COMPILED)
    arguments = parser.parse_args()
    package = importlib.util.find_spec("mplfonts")
    if arguments.fonts is None and (package is None or package.origin is None):
        parser.error("no fonts: pip install mplfonts, or name their folder with --fonts")
    folder = arguments.fonts or Path(package.origin).parent / "fonts"
    text = json.dumps(compile_glyphs(folder), ensure_ascii=False, separators=(",", ":"))
    with atomic_file(arguments.output) as file:
        file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
