"""Pages of edited captions: what was removed is struck out, what was inserted is underlined."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from crosslens.explanations import Counterfactual, Counterfactuals
from crosslens.perturbations import Perturbed
from crosslens.report.html import html_page, html_table, links, raw_table
from crosslens.report.text.caption_changes import CaptionChanges, DiffSpan, changed_share, diff_spans
from crosslens.report.text.counterfactuals import (
    as_perturbed,
    counterfactuals_head,
    counterfactuals_notes,
    edit_facts,
    perturbation_grid,
    radius_grid,
    smallest_first,
    verdict,
)

_STYLE = """
p { margin: 0 0 8px; color: #555; }
table { width: 100%; }
td:first-child { color: #666; white-space: nowrap; max-width: 220px; overflow: hidden; text-overflow: ellipsis; }
td + td { white-space: pre-wrap; overflow-wrap: anywhere; width: 100%; }
table.figures { width: auto; margin: 16px 0; }
.figures td + td { width: auto; white-space: nowrap; overflow-wrap: normal; }
del { background: #fbe3e0; color: #8f1d14; }
ins { background: #dff3e2; color: #0d5c23; }
.why { color: #666; font-style: italic; }
"""


def changes_page(groups: Sequence[CaptionChanges], title: str) -> str:
    """One section per perturbation, with the captions before and after it."""
    parts = [links([(changes.name, changes.name) for changes in groups], "Perturbations"), *map(_section, groups)]
    return html_page(title, "\n".join(parts), style=_STYLE)


def counterfactuals_page(result: Counterfactuals) -> str:
    """The summary, then every query with its edit."""
    notes = [f"<p>{escape(note)}</p>" for note in (counterfactuals_head(result), *counterfactuals_notes(result))]
    grids = [grid for grid in (radius_grid(result), perturbation_grid(result)) if grid is not None]
    tables = [html_table(grid.header, grid.rows, kind="figures") for grid in grids]
    queries = raw_table(("query", "edit"), [_counterfactual_row(edit) for edit in smallest_first(result)])
    body = "\n".join([*notes, *tables, "<h2>Queries</h2>", queries])
    return html_page(f"Counterfactuals: {result.dataset}", body, style=_STYLE)


def diff_html(perturbed: Perturbed) -> str:
    """The caption with its edits marked."""
    return "".join(map(_span, diff_spans(perturbed)))


def _section(changes: CaptionChanges) -> str:
    rows = [_caption_row(caption, perturbed) for caption, perturbed in changes.captions.items()]
    shown, captions = len(changes.captions), changes.counts["captions"]
    about = f"{escape(changes.summary)}<br>{escape(changed_share(changes.counts))}"
    few = f"<p>The first {shown:,} captions of {captions:,}.</p>\n" if shown < captions else ""
    name = escape(changes.name)
    table = raw_table(("caption", "change"), rows)
    return f'<section id="{name}">\n<h2>{name}</h2>\n<p>{about}</p>\n{few}{table}\n</section>'


def _caption_row(caption: str, perturbed: Perturbed) -> str:
    if perturbed.applied:
        text = diff_html(perturbed)
    else:
        text = f'{escape(perturbed.original)} <span class="why">unchanged: {escape(perturbed.reason)}</span>'
    return f'<tr><td>{escape(caption)}</td><td dir="auto">{text}</td></tr>'


def _counterfactual_row(edit: Counterfactual) -> str:
    facts = [verdict(edit), *(edit_facts(edit) if edit.after is not None else ())]
    about = "<br>".join(map(escape, facts))
    text = diff_html(as_perturbed(edit))
    return f'<tr><td>{escape(edit.query)}</td><td dir="auto">{text}\n<span class="why">{about}</span></td></tr>'


def _span(span: DiffSpan) -> str:
    if span.before == span.after:
        return escape(span.before)
    removed = f"<del>{escape(span.before)}</del>" if span.before else ""
    inserted = f"<ins>{escape(span.after)}</ins>" if span.after else ""
    return removed + inserted
