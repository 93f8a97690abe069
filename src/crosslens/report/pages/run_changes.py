"""A page of what one run changed against another: the figures, the causes, and the queries won and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from crosslens.core import IMAGE_TO_TEXT, Dataset, decimal
from crosslens.explanations import DIRECTION_NAMES, QueryChange, RunChanges, TopHit
from crosslens.metrics import unit_sentence
from crosslens.pipeline import Comparison, significance_sentence
from crosslens.report.html import html_page, html_table, links
from crosslens.report.pages.pictures import DARK, PicturePool, embed_thumbnails
from crosslens.report.text.comparison import comparison_grid, p_value

_BUDGET = 8_000_000
"""Bytes of all pictures together."""
_GRADED = "NCS"


def run_changes_page(
    changes: RunChanges,
    comparison: Comparison,
    dataset: Dataset,
    files: Mapping[str, str] | None = None,
    *,
    problem: str | None = None,
) -> str:
    """All of it on one page that needs no other file.

    ``comparison`` has the metrics of the same two runs, side by side; ``files`` are the paths of pictures by image id,
    and ``problem`` says why there are none.
    """
    images = changes.images
    drawn = embed_thumbnails({image: files[image] for image in images if image in files} if files else {}, _BUDGET)
    pictures, captions = PicturePool(drawn), _captions(dataset)
    first, second = map(escape, changes.runs)
    notes = list(changes.notes)
    if len(drawn) < len(images):
        reason = f": {problem}" if problem else ""
        notes.append(f"{len(images) - len(drawn):,} of {len(images):,} pictures are missing{reason}.")
    sections = [("won", f"Queries that {changes.runs[1]} wins", changes.won),
                ("lost", f"Queries that {changes.runs[1]} loses", changes.lost)]  # fmt: skip
    body = [
        f"<p>{escape(DIRECTION_NAMES.get(changes.direction, changes.direction))} on {escape(changes.dataset)}, "
        f"{changes.queries:,} queries: <b>{second}</b> against <b>{first}</b>.</p>",
        links([("figures", "Figures"), ("causes", "Causes"), ("won", "Won"), ("lost", "Lost")], "Sections"),
        _balance(changes),
        _figures(changes, comparison),
        _causes(changes),
        *(f'<p class="note" role="note">{escape(note)}</p>' for note in notes),
        pictures.definitions(),
        *(
            f'<section id="{target}"><h2>{escape(title)}</h2>\n{_lead(changes, target, shown)}\n'
            + "\n".join(_article(change, changes, pictures, captions) for change in shown) + "</section>"
            for target, title, shown in sections
        ),
    ]  # fmt: skip
    return html_page(f"What {changes.runs[1]} changed", "\n".join(part for part in body if part), style=_STYLE)


def _captions(dataset: Dataset) -> dict[str, str]:
    """The first caption of each image; of text-only retrieval, of its corpus."""
    return dict(dataset.described.captions.select("image", "text").reverse().iter_rows())


def _balance(changes: RunChanges) -> str:
    """Won, equal and lost queries as a bar, and whether all of it could be chance."""
    equal = changes.queries - changes.wins - changes.losses
    parts = (("won", changes.wins), ("equal", equal), ("lost", changes.losses))
    bar = "".join(f'<span class="{name}" style="flex-grow:{count}"></span>' for name, count in parts if count)
    words = ", ".join(f"{count:,} {name}" for name, count in parts)
    ranks, phi = changes.ranks, changes.phi
    before, after = changes.phi_means
    moved, grown = (
        [decimal(scale * value, digits, signed=True) for value in (test.difference, test.low, test.high)]
        for test, scale, digits in ((ranks, 100, 1), (phi, 1, 3))
    )
    return (
        f'<div class="bar" role="img" aria-label="{words}">{bar}</div>\n'
        f'<p class="counts"><b class="won">▲ {changes.wins:,} won</b> <span>{equal:,} equal</span> '
        f'<b class="lost">▼ {changes.losses:,} lost</b></p>\n'
        f"<p>A query is won where its first relevant item is ranked higher; φ is how much {_meaning(changes)}.</p>\n"
        f"<p>Mean reciprocal rank: "
        f"<b>{moved[0]}</b> points [{moved[1]}, {moved[2]}], "
        f"p {_p(ranks.p_value, ranks.permutations)}. φ of the top hits: {before:.3f} → "
        f"{after:.3f}, <b>{grown[0]}</b> [{grown[1]}, {grown[2]}], "
        f"p {_p(phi.p_value, phi.permutations)}.</p>"
    )


def _meaning(changes: RunChanges) -> str:
    """What φ compares."""
    if changes.direction == IMAGE_TO_TEXT:
        return f"the top hit says what the captions of the query image say ({escape(changes.phi_name)})"
    return f"the query says what the captions of the top hit say ({escape(changes.phi_name)})"


def _p(value: float, permutations: int) -> str:
    text = p_value(value, permutations)
    return escape(text if text.startswith("<") else f"= {text}").replace("&lt;", "&lt; ")


def _figures(changes: RunChanges, comparison: Comparison) -> str:
    grid = comparison_grid(comparison, comparison.results)
    sentence = significance_sentence(
        "paired permutation test over images", comparison.permutations, comparison.correction, len(comparison.results)
    )
    units, missing = unit_sentence(result.metric for result in comparison.results), ""
    if not any(_GRADED in result.metric for result in comparison.results):
        missing = f' The runs have no graded metric: evaluate with --metrics "… {_GRADED}[cider]@10" to see one here.'
    return (
        f'<section id="figures"><h2>Figures</h2>\n<div class="wide">{html_table(grid.header, grid.rows)}</div>\n'
        f'<p class="facts">{escape(f"{units} {sentence}{missing}")}</p></section>'
    )


def _causes(changes: RunChanges) -> str:
    if not changes.causes.height:
        return ""
    first, second = changes.runs
    rows = [
        (row["cause"], f"{row['first']:,}", f"{row['second']:,}", f"{row['gone']:,}", f"{row['new']:,}")
        for row in changes.causes.to_dicts()
    ]
    header = ("fault of the top hit", first, second, "won: fault gone", "lost: fault new")
    lacking = "what it lacks of what the query mentions"
    if changes.direction == IMAGE_TO_TEXT:
        lacking = "what the retrieved caption mentions and the query image lacks"
    about = (
        f"Queries whose top hit is not relevant, by {lacking}; a hit may have several faults. A near miss lacks "
        "nothing of it; of an unclear one, too little could be judged. The last two columns "
        "count won queries whose hit has the fault no more, and lost queries whose hit did not have it before."
    )
    return (
        f'<section id="causes"><h2>Causes</h2>\n<div class="wide">{html_table(header, rows)}</div>\n'
        f'<p class="facts">{escape(about)}</p></section>'
    )


def _lead(changes: RunChanges, target: str, shown: Sequence[QueryChange]) -> str:
    count = changes.wins if target == "won" else changes.losses
    if not shown:
        return '<p class="facts">None.</p>'
    words = "all of them" if len(shown) == count else f"the {len(shown):,} whose reciprocal rank changes most"
    return f'<p class="facts">{count:,} queries; {words}.</p>'


def _article(change: QueryChange, changes: RunChanges, pictures: PicturePool, captions: Mapping[str, str]) -> str:
    ranks = f"{_rank(change.first.rank)} → {_rank(change.second.rank)}"
    asked = "" if change.text is None else f'<p class="query" dir="auto">{escape(change.text)}</p>'
    what = "Relevant image" if change.text is not None else "Query image"
    said = "" if change.text is not None else _quote(captions.get(change.image))
    truth = (
        f'<figure class="truth">{pictures.show(change.image, f"{what} {change.image}")}'
        f'<figcaption><b>{what}</b>{said}<span class="id">{escape(change.image)}</span></figcaption></figure>'
    )
    hits = [
        _hit(hit, name, pictures, captions)
        for hit, name in zip((change.first, change.second), changes.runs, strict=True)
    ]
    return (
        f"<article><h3>{escape(change.query)} <small>rank {ranks}</small></h3>\n{asked}\n"
        f'<div class="hits">{truth}{"".join(hits)}</div></article>'
    )


def _rank(rank: int | None) -> str:
    return "not listed" if rank is None else f"{rank:,}"


def _hit(hit: TopHit, run: str, pictures: PicturePool, captions: Mapping[str, str]) -> str:
    """The first hit of a run: its picture, what it says, and what of the query it lacks."""
    state = "relevant" if hit.right else "not relevant"
    badge = '<span class="badge">✓ relevant</span>' if hit.right else ""
    phi = "" if hit.phi is None else f'<span class="phi">φ {hit.phi:.2f}</span>'
    causes = ", ".join(hit.causes)
    wrong = "".join(f"<li>{escape(phrase)}</li>" for phrase in hit.wrong)
    faults = f'<ul class="wrong" aria-label="What disagrees">{wrong}</ul>' if wrong else ""
    faults = faults or (f'<p class="cause">{escape(causes)}</p>' if causes else "")
    return (
        f'<figure class="{"right" if hit.right else "other"}">'
        f"{pictures.show(hit.image, f'First hit of {run}: {hit.image}, {state}')}"
        f"<figcaption><b>{escape(run)}</b> {phi} {badge}{_quote(hit.text or captions.get(hit.image))}{faults}"
        f'<span class="id">{escape(hit.item)}</span></figcaption></figure>'
    )


def _quote(text: str | None) -> str:
    return f'<q dir="auto">{escape(text)}</q>' if text else ""


_STYLE = (
    f"{DARK}"
    """
:root { --won: #0b6e3d; --lost: #a02417; }
@media (prefers-color-scheme: dark) { :root { --won: #5fd39a; --lost: #ff9d8f; } }
body { max-width: 1180px; background: var(--paper); color: var(--ink); }
a { color: var(--link); }
a:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
section { scroll-margin-top: 8px; }
th, td { border-color: var(--line); font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } .wide th, .wide td { white-space: nowrap; }
.wide th + th, .wide td + td { text-align: right; }
.facts, .id, small { color: var(--soft); font-weight: normal; }
.store { position: absolute; width: 0; height: 0; }
.bar { display: flex; height: 14px; border-radius: 3px; overflow: hidden; margin-top: 14px; gap: 2px; }
.bar .won { background: var(--won); } .bar .equal { background: var(--line); } .bar .lost { background: var(--lost); }
.counts { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 16px; margin: 4px 0; }
b.won { color: var(--won); } b.lost { color: var(--lost); }
article { border-top: 1px solid var(--line); padding-bottom: 14px; }
h3 { font-size: 15px; margin: 12px 0 4px; overflow-wrap: anywhere; }
.query { font-size: 18px; margin: 4px 0 10px; max-width: 70ch; overflow-wrap: anywhere; }
.hits { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 14px; }
@media (max-width: 640px) { .hits { grid-template-columns: 1fr; } }
figure { margin: 0; border: 2px solid var(--line); border-radius: 4px; padding: 8px; min-width: 0; }
figure.truth { border-style: dashed; }
figure.right { border: 4px double var(--right); padding: 6px; }
.frame { display: block; width: 100%; height: 190px; background: var(--frame); }
.missing { display: grid; place-items: center; color: var(--soft); font-size: 13px; }
figcaption { margin-top: 6px; overflow-wrap: anywhere; }
figcaption .id { display: block; font-size: 12px; }
.phi { font-variant-numeric: tabular-nums; margin-left: 6px; }
.badge { background: var(--right); color: var(--right-ink); border-radius: 3px; padding: 0 5px; white-space: nowrap; }
q { display: block; font-style: italic; overflow-wrap: anywhere; }
ul.wrong { list-style: none; margin: 4px 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px; }
ul.wrong li { border: 1px solid var(--lost); color: var(--lost); border-radius: 3px; padding: 0 6px; }
ul.wrong li::before { content: "✗ "; }
.cause { margin: 4px 0; color: var(--soft); }
.note { border-left: 4px solid var(--line); padding: 2px 12px; }
@media print { article, figure { break-inside: avoid; } nav { display: none; } }
"""
)
