"""Sheets of photos with their captions, for a person to look at; they are never part of a page or of the repository."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import crosslens as cl
from crosslens.data import image_files

ACROSS, DOWN, SIDE = 3, 2, 500
LINE, LINES = 78, 14


def write_sheets(dataset: cl.Dataset, captions: Sequence[str], pictures: Path, target: Path, name: str) -> None:
    """Six photos on each sheet: the caption in question first, the photo's other captions below."""
    from PIL import Image, ImageDraw

    files = dict(zip(dataset.image_ids, image_files(dataset, pictures), strict=True))
    texts = dict(zip(dataset.caption_ids, dataset.texts, strict=True))
    image_of = dict(zip(dataset.caption_ids, dataset.captions["image"], strict=True))
    owned: dict[str, list[str]] = {}
    for caption, image in image_of.items():
        owned.setdefault(image, []).append(caption)
    target.mkdir(parents=True, exist_ok=True)
    size = ACROSS * DOWN
    for start in range(0, len(captions), size):
        sheet = Image.new("RGB", (ACROSS * SIDE, DOWN * SIDE), "white")
        draw = ImageDraw.Draw(sheet)
        for cell, caption in enumerate(captions[start : start + size]):
            left, top = SIDE * (cell % ACROSS), SIDE * (cell // ACROSS)
            photo = Image.open(files[image_of[caption]]).convert("RGB")
            photo.thumbnail((SIDE - 20, SIDE - 200))
            sheet.paste(photo, (left, top))
            others = [other for other in owned[image_of[caption]] if other != caption]
            lines = [f"{start + cell + 1} {caption}", f"> {texts[caption]}", *(f"- {texts[other]}" for other in others)]
            wrapped = [line[at : at + LINE] for line in lines for at in range(0, len(line), LINE)]
            draw.multiline_text((left, top + SIDE - 195), "\n".join(wrapped[:LINES]), fill="black")
        sheet.save(target / f"{name}-{start // size + 1}.png")
