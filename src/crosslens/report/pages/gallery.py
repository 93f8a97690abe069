"""A page of galleries: for each query the top k of every model, with pictures."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from crosslens.explanations import DIRECTION_NAMES
from crosslens.report.galleries import Gallery, GalleryItem, GalleryList, GalleryQuery, rank_words
from crosslens.report.html import html_page, links
from crosslens.report.pages.pictures import DARK, PicturePool, embed_thumbnails

_MEGABYTE = 1_000_000
_MAX_LINKS = 50
_MOST_RIGHT = 4
"""Relevant images shown beside a text query."""


def gallery_page(gallery: Gallery, files: Mapping[str, str], *, budget: float = 8.0, problem: str | None = None) -> str:
    """All queries on one page that needs no other file.

    ``files`` are the paths of pictures by image id; their thumbnails are made as small as ``budget`` (in MB) asks for.
    ``problem`` says why there are no files.
    """
    images = gallery.images
    drawn = embed_thumbnails({image: files[image] for image in images if image in files}, int(budget * _MEGABYTE))
    pictures = PicturePool(drawn)
    targets = [(f"q{number}", query.query) for number, query in enumerate(gallery.queries)]
    articles = [_article(number, query, gallery, pictures) for number, query in enumerate(gallery.queries)]
    size = sum(len(image.address) for image in drawn.values()) / _MEGABYTE
    missing = len(images) - len(drawn)
    notes = [*gallery.notes]
    if missing:
        reason = f": {problem}" if problem else ""
        notes.append(f"{missing:,} of {len(images):,} pictures are missing or cannot be read{reason}.")
    body = [
        f"<p>{_introduction(gallery)}</p>",
        *(f'<p class="note" role="note">{escape(note)}</p>' for note in notes),
        links(targets[:_MAX_LINKS], "Queries") if len(targets) > 1 else "",
        pictures.definitions(),
        *articles,
        f"<footer>{len(drawn):,} pictures, {size:.1f} MB in this page.</footer>",
    ]
    title = f"Top {gallery.k} on {gallery.dataset}"
    return html_page(title, "\n".join(part for part in body if part), style=_STYLE)


def _introduction(gallery: Gallery) -> str:
    direction = DIRECTION_NAMES.get(gallery.direction, gallery.direction)
    sentences = [
        f"{escape(direction)}: the first {gallery.k} items that {_listed(gallery.models)} retrieved.",
        '<span class="badge">✓ relevant</span> marks relevant items; numbers are scores.',
    ]
    if len(gallery.models) > 1:
        sentences.append(
            f"Overlap@{gallery.k} is the share of items that the lists of two models have in common: "
            f"{gallery.overlap:.2f} over all {gallery.shared:,} queries."
        )
    return " ".join(sentences)


def _listed(models: tuple[str, ...]) -> str:
    names = [f"<b>{escape(model)}</b>" for model in models]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _article(number: int, query: GalleryQuery, gallery: Gallery, pictures: PicturePool) -> str:
    steps = [
        f'<a href="#q{other}">{words}</a>'
        for other, words in ((number - 1, "previous"), (number + 1, "next"))
        if 0 <= other < len(gallery.queries)
    ]
    facts = [f"{query.relevant:,} relevant {'item' if query.relevant == 1 else 'items'}"]
    facts += [f"overlap@{gallery.k} {query.overlap:.2f}"] if len(gallery.models) > 1 else []
    parts = [
        f'<article id="q{number}" aria-labelledby="h{number}">',
        f'<header><h2 id="h{number}">{escape(query.query)}</h2>',
        f'<nav aria-label="Neighbouring queries">{" ".join(steps)}</nav></header>',
        _asked(query, pictures),
        f'<p class="facts">{"; ".join(facts)}</p>',
        *(_list(own, gallery, pictures) for own in query.lists),
        "</article>",
    ]  # fmt: skip
    return "\n".join(parts)


def _asked(query: GalleryQuery, pictures: PicturePool) -> str:
    """The query itself: its picture, or its text beside the images that are relevant."""
    if query.text is None:
        return f'<div class="asked">{pictures.show(query.image, f"Query image {query.query}")}</div>'
    shown = query.right[:_MOST_RIGHT]
    right = "".join(
        f"<figure>{pictures.show(image, f'Relevant image {image}')}<figcaption>relevant</figcaption></figure>"
        for image in shown
    )
    return f'<div class="asked"><p class="query" dir="auto">{escape(query.text)}</p>{right}</div>'


def _list(own: GalleryList, gallery: Gallery, pictures: PicturePool) -> str:
    rank = own.first_relevant
    below = rank is None or rank > gallery.k
    first = f"first relevant item: {rank_words(rank)}" + (f", below the top {gallery.k}" if below and rank else "")
    items = "\n".join(_item(item, gallery, pictures) for item in own.items)
    heading = f"<h3>{escape(own.model)} <small>{first}</small></h3>"
    return f'<section>{heading}\n<ol style="--k:{gallery.k}">\n{items}\n</ol></section>'


def _item(item: GalleryItem, gallery: Gallery, pictures: PicturePool) -> str:
    state = "relevant" if item.relevant else "not relevant"
    what = f"Image {item.item}" if item.text is None else f"Image {item.image} of the caption"
    picture = pictures.show(item.image, f"{what}, rank {item.rank}, {state}")
    badge = '<span class="badge">✓ relevant</span>' if item.relevant else ""
    text = "" if item.text is None else f'<q dir="auto">{escape(item.text)}</q>'
    shared = (
        f'<span class="shared">· in {item.lists} of {len(gallery.models)} lists</span>' if gallery.models[1:] else ""
    )
    return (
        f'<li class="{"right" if item.relevant else "wrong"}">{picture}'
        f'<div class="label"><b>{item.rank}</b> <span class="score">{item.score:.3f}</span> {badge}</div>'
        f'{text}<div class="id">{escape(item.item)} {shared}</div></li>'
    )


_STYLE = (
    f"{DARK}"
    """
body { max-width: 1280px; background: var(--paper); color: var(--ink); }
a { color: var(--link); }
a:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.store { position: absolute; width: 0; height: 0; }
article { border-top: 1px solid var(--line); padding-bottom: 12px; scroll-margin-top: 8px; }
article header { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 4px 16px; }
h2 { font-size: 18px; overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: 14px 0 6px; overflow-wrap: anywhere; }
h3 small { color: var(--soft); font-weight: normal; }
.asked { display: flex; flex-wrap: wrap; gap: 12px 16px; align-items: center; }
.asked .frame { width: 170px; height: 120px; }
.asked figure { margin: 0; } .asked figcaption { color: var(--soft); font-size: 12px; }
.query { font-size: 18px; margin: 4px 0; flex: 0 1 auto; max-width: 70ch; overflow-wrap: anywhere; }
.facts, footer, .id, .shared { color: var(--soft); }
.facts { margin: 6px 0; }
ol { list-style: none; margin: 0; padding: 0; display: grid; gap: 10px;
     grid-template-columns: repeat(min(var(--k), 6), minmax(0, 1fr)); }
@media (max-width: 800px) { ol { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
li { border: 2px solid var(--line); border-radius: 4px; padding: 6px; min-width: 0; break-inside: avoid; }
li.right { border: 4px double var(--right); padding: 4px; }
.frame { display: block; width: 100%; height: 150px; background: var(--frame); }
.missing { display: grid; place-items: center; color: var(--soft); font-size: 13px; }
.label { margin-top: 4px; } .score { font-variant-numeric: tabular-nums; }
.badge { background: var(--right); color: var(--right-ink); border-radius: 3px; padding: 0 5px; white-space: nowrap; }
q { display: block; overflow-wrap: anywhere; }
.id { font-size: 12px; overflow-wrap: anywhere; }
.note { border-left: 4px solid var(--line); padding: 2px 12px; }
footer { border-top: 1px solid var(--line); padding-top: 8px; }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --line: #999; --frame: #fff; --right: #000; --right-ink: #fff; }
  nav { display: none; }
  article header, h3 { break-after: avoid; }
  section { break-inside: avoid; }
  ol { grid-template-columns: repeat(min(var(--k), 6), minmax(0, 1fr)); }
  .frame { height: 90px; }
  .badge { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
)
