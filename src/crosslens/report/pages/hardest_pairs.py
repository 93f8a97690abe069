"""A page of the hardest pairs: the picture or what else is said of it, the caption, and what models made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from crosslens.analyze import DIFFICULTY, Difficulty
from crosslens.core import Dataset
from crosslens.metrics import format_count
from crosslens.report.html import html_page, html_table, raw_table
from crosslens.report.pages.pictures import EmbeddedImage, embed_image
from crosslens.report.text.difficulty import disagreements_grid, shares_grid

_MOST_TEXTS = 4
"""Captions that stand for a picture."""
PAIRS_STYLE = """
body { max-width: 1100px; }
.pairs { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 20px; margin-top: 20px; }
article { border: 1px solid #ddd; border-radius: 6px; padding: 12px; min-width: 0; }
article img { width: 100%; height: 210px; object-fit: contain; background: #f1f1f1; display: block; }
q { display: block; font-size: 16px; margin: 10px 0 4px; overflow-wrap: anywhere; }
.in-words { border-left: 3px solid #ccc; padding-left: 10px; color: #555; } .in-words p { margin: 0; }
.in-words q { font-size: 14px; margin: 2px 0; }
.facts, .note { color: #555; margin: 0 0 8px; overflow-wrap: anywhere; }
.scores { width: 100%; font-variant-numeric: tabular-nums; }
.scores td, .scores th { padding: 2px 8px 2px 0; }
.scores td + td, .scores th + th { text-align: right; }
.scores td:first-child { overflow-wrap: anywhere; }
.yes { color: #0d5c23; } .no { color: #8f1d14; }
.wide { overflow-x: auto; }
"""


def hardest_pairs_page(
    result: Difficulty,
    dataset: Dataset,
    files: Mapping[str, str] | None = None,
    *,
    most: int = 60,
    disagreements: Mapping[str, pl.DataFrame] | None = None,
) -> str:
    """The ``most`` hardest pairs, hardest first; ``files`` are the paths of pictures by image id.

    With ``disagreements``, of those that only one of two models matches the ``most`` of each.
    """
    texts = dict(zip(dataset.caption_ids, dataset.texts, strict=True))
    told = texts_of_images(dataset.described.captions)
    if disagreements is None:
        title, grid, parts = f"Hardest pairs of {result.dataset}", shares_grid([result]), [result.hardest(most)]
        headings = [f"The {format_count(parts[0].height, 'pair')} with the fewest votes, of {len(result):,}"]
    else:
        title, grid = f"Pairs of {result.dataset} that one of two models matches", disagreements_grid(disagreements)
        parts = [rows.head(most) for rows in disagreements.values()]
        headings = [
            f"{format_count(min(most, rows.height), 'pair')} of {rows.height:,} that only {model} matches"
            for model, rows in disagreements.items()
        ]
    body = [f'<div class="wide">{html_table(grid.header, grid.rows)}</div>']
    for heading, rows in zip(headings, parts, strict=True):
        note = (
            f"{heading}; those with the fewest votes first, of equal votes those furthest below the models' thresholds."
            " ✓ the score reaches the model's threshold: it says match."
        )
        articles = [_article(row, result, texts, told, (files or {}).get(row["image"])) for row in rows.to_dicts()]
        body += [f'<p class="note">{escape(note)}</p>', '<div class="pairs">', *articles, "</div>"]
    return html_page(title, "\n".join(body), style=PAIRS_STYLE)


def _article(
    row: Mapping[str, Any],
    result: Difficulty,
    texts: Mapping[str, str],
    told: Mapping[str, Sequence[str]],
    file: str | None,
) -> str:
    image, text = str(row["image"]), texts.get(row["caption"], row["caption"])
    facts = f"{row['votes']} of {row['models']} votes, {row[DIFFICULTY]} · {image} · caption {row['caption']}"
    return "\n".join(
        [
            "<article>",
            picture_html(image, embed_image(file), text, told.get(image, ())),
            f'<q dir="auto">{escape(text)}</q>',
            f'<p class="facts">{escape(facts)}</p>',
            raw_table(("model", "score", "threshold", ""), _scores(row, result), kind="scores"),
            "</article>",
        ]
    )


def texts_of_images(captions: pl.DataFrame) -> dict[str, list[str]]:
    """What is said of every image, from the columns ``image`` and ``text``."""
    return dict(captions.group_by("image", maintain_order=True).agg("text").iter_rows())


def picture_html(image: str, picture: EmbeddedImage | None, caption: str, told: Sequence[str]) -> str:
    """An image in the card of a caption; without a picture, what the other captions say of it."""
    if picture is not None:
        return f'<img src="{picture.address}" alt="{escape(image)}">'
    others = [text for text in dict.fromkeys(told) if text != caption][:_MOST_TEXTS]
    quotes = "".join(f'<q dir="auto">{escape(text)}</q>' for text in others)
    return f'<div class="in-words"><p>The image, by its other captions</p>{quotes}</div>' if quotes else ""


def _scores(row: Mapping[str, Any], result: Difficulty) -> list[str]:
    rows = []
    for model in result.models:
        score, threshold = row[f"score[{model}]"], result.thresholds.get(model, float("nan"))
        matches = row[f"vote[{model}]"]
        verdict = f'<span class="{"yes" if matches else "no"}">{"✓ match" if matches else "✗ no match"}</span>'
        name = f"{model} (tie-breaker)" if model == result.tie_breaker else model
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (name, f"{score:.4f}", f"{threshold:.4f}"))
        rows.append(f"<tr>{cells}<td>{verdict}</td></tr>")
    return rows
