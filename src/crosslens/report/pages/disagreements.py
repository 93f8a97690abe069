"""A page of the pairs on which two scorers disagree most, with their pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from crosslens.analyze import ScorerComparison
from crosslens.report.html import html_page, html_table
from crosslens.report.pages.hardest_pairs import PAIRS_STYLE, picture_html, texts_of_images
from crosslens.report.pages.pictures import embed_image
from crosslens.report.text.panels.scorers import (
    agreement_grid,
    correlations_grid,
    disagreement_facts,
    distributions_grid,
)


def disagreements_page(result: ScorerComparison, files: Mapping[str, str] | None = None, *, most: int = 40) -> str:
    """The figures, then the ``most`` disagreements, largest first; ``files`` are the paths of pictures by image id."""
    grids = {
        "Scores": distributions_grid(result),
        "Correlation": correlations_grid(result),
        f"Bland–Altman: {result.second} − {result.first}": agreement_grid(result),
    }
    rows, told = result.disagreements(most).to_dicts(), texts_of_images(result.table)
    note = f"{len(rows):,} of {len(result):,} pairs: those whose ranks by the two scorers differ most, in that order."
    body = "\n".join(
        [
            *(
                f'<h2>{escape(title)}</h2>\n<div class="wide">{html_table(grid.header, grid.rows)}</div>'
                for title, grid in grids.items()
            ),
            "<h2>Largest disagreements</h2>",
            f'<p class="note">{escape(note)}</p>',
            '<div class="pairs">',
            *(_article(result, row, told[row["image"]], (files or {}).get(row["image"])) for row in rows),
            "</div>",
        ]
    )
    return html_page(f"{result.first} and {result.second}", body, style=PAIRS_STYLE)


def _article(result: ScorerComparison, row: Mapping[str, Any], told: Sequence[str], file: str | None) -> str:
    return "\n".join(
        [
            "<article>",
            picture_html(str(row["image"]), embed_image(file), row["text"], told),
            f'<q dir="auto">{escape(row["text"])}</q>',
            f'<p class="facts">{escape(disagreement_facts(result, row))}</p>',
            "</article>",
        ]
    )
