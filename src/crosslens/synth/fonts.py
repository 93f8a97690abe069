"""Fonts from installed packages: Pillow's own for Latin letters; a Chinese one where the system or PyPI gives it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.core.errors import InputError
from crosslens.synth.canvas import pillow

if TYPE_CHECKING:
    from PIL import ImageFont

CJK_VARIABLE = "CROSSLENS_CJK_FONT"
"""Names a font file to use for Chinese; empty means none."""

_PLACES = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "C:/Windows/Fonts",
)
_NAMES = (
    "NotoSansCJK*",
    "NotoSansSC*",
    "SourceHanSans*",
    "wqy-*",
    "DroidSansFallback*",
    "NotoSerifCJK*",
    "PingFang*",
    "STHeiti*",
    "Hiragino Sans GB*",
    "msyh*",
    "simhei*",
    "simsun*",
)
_LARGEST, _SMALLEST = 400, 6


@lru_cache(maxsize=64)
def latin_font(size: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow, the same wherever the same Pillow is installed."""
    font: ImageFont.FreeTypeFont = pillow().ImageFont.load_default(size)
    return font


@lru_cache(maxsize=64)
def _chinese(path: str, size: int) -> ImageFont.FreeTypeFont:
    font: ImageFont.FreeTypeFont = pillow().ImageFont.truetype(path, size)
    return font


@lru_cache(maxsize=1)
def chinese_font_file() -> Path | None:
    """A font file with simplified Chinese characters, or None where there is none.

    The environment variable CROSSLENS_CJK_FONT comes first, then the package ``mplfonts``, which is the same
    everywhere, then the usual places of the system. A variable that names no font raises: somebody chose it.
    """
    chosen = os.environ.get(CJK_VARIABLE)
    if chosen is not None:
        return _checked(Path(chosen).expanduser()) if chosen else None
    package = importlib.util.find_spec("mplfonts")
    for place in [] if package is None else package.submodule_search_locations or []:
        for found in sorted(Path(place, "fonts").glob("NotoSansCJK*.otf")):
            return found
    for name in _NAMES:
        for place in _PLACES:
            folder = Path(place).expanduser()
            found_here = sorted(folder.rglob(name)) if folder.is_dir() else []
            for file in found_here:
                if file.suffix.lower() in (".ttf", ".otf", ".ttc"):
                    return file
    return None


def _checked(file: Path) -> Path:
    fix = f"name a .ttf, .otf or .ttc file in the environment variable {CJK_VARIABLE}, or unset it"
    if not file.is_file():
        raise InputError("no such file", file=file, expected="a font with Chinese characters", fix=fix)
    try:
        _chinese(str(file), _SMALLEST)
    except (OSError, ValueError) as error:
        raise InputError(
            f"not a font: {error}", file=file, expected="a font with Chinese characters", fix=fix
        ) from error
    return file


def fitting_font(lines: Sequence[str], width: float, height: float) -> ImageFont.FreeTypeFont:
    """The largest font in which every line is at most this wide and high."""
    size = int(min(max(height * 0.82, _SMALLEST), _LARGEST))
    font = font_for(lines, size)
    widest = max(font.getlength(line) for line in lines)
    if widest > width:
        font = font_for(lines, max(_SMALLEST, int(size * width / widest)))
    return font


def font_for(lines: Sequence[str], size: int) -> ImageFont.FreeTypeFont:
    """A font that has these characters."""
    chinese = any(ord(character) > 0x2E80 for line in lines for character in line)
    file = chinese_font_file() if chinese else None
    return _chinese(str(file), size) if file is not None else latin_font(size)
