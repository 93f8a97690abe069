"""A page of clusters of similar images: a map, a table, and of the most polysemous clusters pictures and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from crosslens.analyze import ImageCluster, PolysemyClusters
from crosslens.core import Dataset
from crosslens.metrics import format_count
from crosslens.report.html import html_page, raw_table
from crosslens.report.pages.pictures import embed_image
from crosslens.report.plots import style
from crosslens.report.plots.polysemy import cluster_map
from crosslens.report.text.polysemy import CLUSTERS_READING, clusters_grid
from crosslens.similarity import references_of

_TITLE = "Clusters of similar images"
_MOST_ROWS = 200
_THUMBNAIL = 220
_CAPTIONS, _MOST = 2, 5
"""Captions that are shown of an image with a picture, and of one without."""


def clusters_page(
    results: Sequence[tuple[PolysemyClusters, Dataset]],
    files: Mapping[str, Mapping[str, str | Path]],
    *,
    shown: int = 12,
    examples: int = 6,
) -> str:
    """All datasets on one page; ``files`` are the paths of pictures by dataset and image id."""
    style.plotly_objects()
    from plotly.offline import get_plotlyjs

    intro = (
        f"<p>{escape(CLUSTERS_READING)} The map is drawn by UMAP, its dense parts are found by HDBSCAN; all figures "
        "come from the vectors themselves.</p>"
    )
    sections = [
        _dataset_section(number, result, dataset, files.get(result.name, {}), shown, examples)
        for number, (result, dataset) in enumerate(results, start=1)
    ]
    return html_page(_TITLE, "\n".join([intro, *sections]), style=_STYLE, script=get_plotlyjs())


def _dataset_section(
    number: int,
    result: PolysemyClusters,
    dataset: Dataset,
    files: Mapping[str, str | Path],
    shown: int,
    examples: int,
) -> str:
    outside = int((result.labels == 0).sum())
    counts = (
        f"{format_count(len(result.image_ids), 'image')}, {format_count(len(result.clusters), 'cluster')}, "
        f"{format_count(outside, 'image')} in none of them"
    )
    captions = references_of(dataset)
    drawn = result.clusters[:shown]
    parts = [
        f"<h2>{escape(result.name)}</h2>\n<p>{counts}.</p>",
        style.figure_html(cluster_map(result, shown), number),
        _table(number, result, len(drawn)) if result.clusters else "",
        *(_cluster(number, cluster, result, captions, files, examples) for cluster in drawn),
    ]
    return "\n".join(["<section>", *filter(None, parts), "</section>"])


def _table(number: int, result: PolysemyClusters, linked: int) -> str:
    grid = clusters_grid(result, _MOST_ROWS)
    rows = []
    for position, cells in enumerate(grid.rows):
        first = f'<a href="#d{number}-c{cells[0]}">{cells[0]}</a>' if position < linked else cells[0]
        rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in (first, *map(escape, cells[1:]))) + "</tr>")
    return f'<div class="wide">{raw_table(grid.header, rows)}</div>'


def _cluster(
    number: int,
    cluster: ImageCluster,
    result: PolysemyClusters,
    captions: Sequence[Sequence[str]],
    files: Mapping[str, str | Path],
    examples: int,
) -> str:
    category = f", {100 * cluster.purity:.0f} % {escape(cluster.category)}" if cluster.category else ""
    facts = (
        f"{format_count(cluster.size, 'image')}, image similarity {cluster.image_similarity:.3f}, "
        f"caption diversity {cluster.caption_diversity:.3f}{category}"
    )
    figures = [
        _picture(result.image_ids[row], captions[row], files.get(result.image_ids[row]))
        for row in cluster.rows[:examples]
    ]
    heading = f'<h3 id="d{number}-c{cluster.number}">Cluster {cluster.number} <small>{facts}</small></h3>'
    return f'{heading}\n<div class="pictures">{"".join(figures)}</div>'


def _picture(image: str, captions: Sequence[str], file: str | Path | None) -> str:
    """The picture and some captions; without a picture, more of them under the name of the image."""
    picture = embed_image(file, _THUMBNAIL)
    quotes = [f'<q dir="auto">{escape(caption)}</q>' for caption in captions]
    if picture is None:
        told = f"<b>{escape(image)}</b>{''.join(quotes[:_MOST])}"
        return f'<figure class="in-words"><figcaption>{told}</figcaption></figure>'
    shown = f'<img src="{picture.address}" alt="{escape(image)}" loading="lazy">'
    return f"<figure>{shown}<figcaption>{''.join(quotes[:_CAPTIONS])}</figcaption></figure>"


_STYLE = """
body { max-width: 1000px; }
h3 { margin: 26px 0 6px; font-size: 15px; } h3 small { color: #555; font-weight: normal; }
figure { margin: 0; }
.wide { overflow-x: auto; }
table { font-variant-numeric: tabular-nums; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 12px; }
.pictures img { width: 100%; height: 130px; object-fit: contain; background: #f1f1f1; }
.pictures:has(.in-words) { grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); }
.in-words { border-left: 3px solid #ccc; padding-left: 10px; overflow-wrap: anywhere; }
figcaption q { display: block; margin: 4px 0; font-size: 13px; line-height: 1.35; }
"""
