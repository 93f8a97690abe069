"""The page of an IMP benchmark: every picture with its captions, where they come from, and what people rejected."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from crosslens.build import Imp, agreement_line
from crosslens.report.html import folded, html_page, html_table
from crosslens.report.pages.pictures import embed_image
from crosslens.report.text.benchmarks.imp import spread_grid

MOST_SHOWN = 100
"""How many images the page shows: pictures are part of it."""
_MOST_REJECTED = 5
_PIXELS = 280
_STYLE = """
.image { display: flex; gap: 18px; margin: 22px 0; flex-wrap: wrap; }
.image img { width: 220px; height: auto; align-self: flex-start; }
.image .none { width: 220px; height: 120px; background: #eee; color: #555; display: flex; align-items: center;
               justify-content: center; }
.image .texts { flex: 1 1 300px; min-width: 0; overflow-wrap: anywhere; }
.image ol { margin: 4px 0 8px; padding-left: 22px; }
.image li { margin-bottom: 5px; }
.about { color: #5b5b5b; font-size: 12px; }
del { background: #fbe3e0; color: #8f1d14; }
table td:not(:first-child), table th:not(:first-child) { text-align: right; }
"""


def imp_page(imp: Imp) -> str:
    """The counts, then the first images of the benchmark."""
    assert imp.dataset is not None
    counts = html_table(("stage", "number"), [(name, f"{count:,}") for name, count in imp.counts.items()])
    grid = spread_grid(imp)
    spread = (
        "<p>Distances between sampled images (nearest), and from any image to the nearest sampled one (coverage): "
        "1 − cosine in the full space.</p>\n" + html_table(grid.header, grid.rows)
    )
    agreement = f"<p>{escape(agreement_line(imp))}</p>" if imp.agreement is not None else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in imp.notes)
    total = len(imp.dataset.image_ids)
    few = f"<p>The first {MOST_SHOWN} of {total:,} images.</p>" if total > MOST_SHOWN else ""
    about = folded("How it was built", "\n".join([counts, spread, agreement, f"<ul>{notes}</ul>" if notes else ""]))
    facts = f"<p>{total:,} images, {len(imp.dataset.caption_ids):,} captions.</p>"
    return html_page("An IMP benchmark", "\n".join([facts, about, few, *_images(imp)]), style=_STYLE)


def _images(imp: Imp) -> Iterable[str]:
    dataset, rejected = imp.dataset, imp.rejected
    assert dataset is not None
    assert rejected is not None
    captions: dict[str, list[dict[str, Any]]] = {}
    for row in dataset.captions.iter_rows(named=True):
        captions.setdefault(row["image"], []).append(row)
    refused: dict[str, list[str]] = {}
    for image, text, verdict in rejected.select("image", "text", "verdict").iter_rows():
        refused.setdefault(image, []).append(f"{verdict}: {text}")
    files = dict(imp.candidates.images.select("image", "file").iter_rows())
    for image in dataset.image_ids[:MOST_SHOWN]:
        texts = "\n".join(map(_caption, captions[image]))
        yield (
            f'<section class="image">\n{_picture(image, files.get(image))}\n<div class="texts">'
            f"<b>{escape(image)}</b>\n<ol>\n{texts}\n</ol>\n{_refused(refused.get(image, []))}</div>\n</section>"
        )


def _picture(image: str, file: str | None) -> str:
    embedded = embed_image(Path(file) if file else None, largest=_PIXELS)
    if embedded is None:
        return '<div class="none">no picture here</div>'
    return f'<img src="{embedded.address}" alt="{escape(image)}">'


def _caption(row: dict[str, Any]) -> str:
    before = f"<del>{escape(row['before'])}</del> " if row["before"] else ""
    change = f", corrected: {row['change']}" if row["change"] else ", corrected" if row["before"] else ""
    is_title = row["pool_image"] is None
    origin = ("a title of the image" if is_title else f"from {row['pool_image']}, cosine {row['cosine']:.2f}") + change
    return f'<li>{before}<span dir="auto">{escape(row["text"])}</span> <span class="about">{escape(origin)}</span></li>'


def _refused(texts: list[str]) -> str:
    if not texts:
        return ""
    items = "".join(f'<li dir="auto">{escape(text)}</li>' for text in texts[:_MOST_REJECTED])
    more = f'<p class="about">and {len(texts) - _MOST_REJECTED:,} more</p>' if len(texts) > _MOST_REJECTED else ""
    return folded(f"{len(texts):,} rejected", f"<ul>{items}</ul>{more}")
