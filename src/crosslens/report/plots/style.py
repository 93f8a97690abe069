"""How figures look (colours that colour-blind readers can distinguish, fonts, layout), and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil
from pathlib import Path
from typing import Any

from crosslens.core import ConflictError, CrosslensError, MissingExtraError, UsageError
from crosslens.report.charts.theme import LEVEL_COLOURS
from crosslens.report.export.files import write_changed
from crosslens.report.html import html_page

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#4D4D4D")
"""Okabe and Ito's palette without its yellow, which is too light for paper."""
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
INK, SOFT, FAINT = "#1A1A1A", "#666666", "#E3E3E3"
CLEAR = "rgba(0, 0, 0, 0)"
WIDTH = 860
_LONGEST = 60
"""Letters of a group's name that an axis shows."""


def plotly_objects() -> Any:
    """plotly's figures; a clear error where it is not installed."""
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise MissingExtraError("drawing figures", "plotly", "plot") from error
    return plotly.graph_objects


def check_series_count(series: int, noun: str) -> None:
    """Raise where a figure has more series than there are colours."""
    if series > len(COLOURS):
        raise UsageError(
            f"{series} {noun} exceed the {len(COLOURS)} colours of a figure", fix=f"draw up to {len(COLOURS)}"
        )


def category_colours(names: Sequence[str], noun: str) -> dict[str, str]:
    """A colour for each of these categories: of a level of difficulty its own, of the others the next that is free."""
    check_series_count(len(names), noun)
    own = {name: LEVEL_COLOURS[name] for name in names if name in LEVEL_COLOURS}
    free = (colour for colour in COLOURS if colour not in own.values())
    return {name: own.get(name) or next(free) for name in names}


def label(text: str) -> str:
    """A name as plotly shows it literally: in its labels ``<b>`` would make bold."""
    return escape(text, quote=False)


def axis_label(text: str) -> str:
    """A group's name beside an axis: a very long one is cut, so that the figure has room."""
    return label(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def figure_layout(
    title: str, subtitle: str, height: float, *, font_size: int = 13, title_top: int = 32
) -> dict[str, Any]:
    """Size, fonts, title and subtitle (which is markup already): the layout that every figure has."""
    return {
        "template": "none",
        "width": WIDTH,
        "height": height,
        "font": {"family": FONT, "size": font_size, "color": INK},
        "title": {
            "text": f"<b>{label(title)}</b>",
            "subtitle": {"text": subtitle, "font": {"size": 12.5, "color": SOFT}},
            "font": {"size": 18}, "x": 0, "xref": "container", "xanchor": "left", "pad": {"l": 24},
            "y": 1 - title_top / height, "yref": "container", "yanchor": "bottom",
        },
        "hoverlabel": {"bgcolor": "white", "font": {"size": 12.5, "color": INK}, "align": "left"},
    }  # fmt: skip


def panel_figure(titles: Sequence[str], columns: int, **spacing: float) -> Any:
    """An empty figure of panels with these titles, row by row."""
    plotly_objects()
    from plotly.subplots import make_subplots

    return make_subplots(ceil(len(titles) / columns), columns, subplot_titles=titles, **spacing)


def style_panels(drawn: Any) -> None:
    """Titles and axes of panels, once they are drawn."""
    drawn.update_annotations(font={"size": 13, "color": INK})
    drawn.update_xaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)
    drawn.update_yaxes(gridcolor=FAINT, zeroline=False, linecolor=SOFT)


HTML = ".html"
IMAGES = (".svg", ".png", ".pdf")
SUFFIXES = (HTML, *IMAGES)

_CONFIG = {"displaylogo": False, "responsive": False, "toImageButtonOptions": {"format": "svg"}}
_SHARPNESS = 2  # of a .png: pixels per pixel of the figure


def figure_suffix(output: str | Path) -> str:
    """The suffix of a file's name; raises unless figures can be written in that format."""
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{output}: unknown figure format {suffix or '(no suffix)'}", fix=f"end the name in {', '.join(SUFFIXES)}"
        )
    return suffix


def write_figures(
    output: str | Path,
    title: str,
    draw: Callable[[], Sequence[Any]],
    tables: Callable[[], Sequence[str]],
    *,
    overwrite: bool,
) -> Path:
    """Write a page with all figures and the tables of their numbers, or an image of the only figure."""
    output, suffix = Path(output), figure_suffix(output)
    figures = draw()
    if suffix == HTML:
        content = figures_page(figures, title, tables()).encode()
    elif len(figures) == 1:
        content = figure_image(figures[0], suffix)
    else:
        raise UsageError(
            f"{len(figures)} figures do not fit into one {suffix} file",
            fix=f"write a page: {HTML}",
        )
    if output.is_dir():
        raise ConflictError(f"{output} is a folder", fix="name a file")
    write_changed({output: content}, overwrite)
    return output


def figures_page(figures: Sequence[Any], title: str, tables: Sequence[str]) -> str:
    """A page that needs no other file: plotly's script once, the figures, and their numbers as tables."""
    from plotly.offline import get_plotlyjs

    body = "\n".join([*(figure_html(drawn, number) for number, drawn in enumerate(figures, start=1)), *tables])
    return html_page(title, body, style=_STYLE, script=get_plotlyjs(), heading=False)


def figure_html(drawn: Any, number: int) -> str:
    """A figure of a page that has plotly's script already."""
    part = drawn.to_html(full_html=False, include_plotlyjs=False, div_id=f"figure-{number}", config=_CONFIG)
    return f"<figure>{part}</figure>"


def figure_image(drawn: Any, suffix: str) -> bytes:
    """The figure as the bytes of an image file."""
    try:
        import kaleido  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"writing {suffix} files", "kaleido", "plot-static") from error
    try:
        content: bytes = drawn.to_image(format=suffix.removeprefix("."), scale=_SHARPNESS if suffix == ".png" else 1)
    except Exception as error:  # whatever a browser that will not start raises: there is no common type
        raise CrosslensError(
            f"the browser that draws {suffix} files failed: {str(error).strip().splitlines()[0]}",
            fix="install Chromium or Google Chrome (or set BROWSER_PATH), or write .html",
        ) from error
    return content


_STYLE = """
figure { margin: 0 0 28px; overflow-x: auto; }
summary { color: #666; }
details { margin: 0 0 12px 24px; }
table { font-variant-numeric: tabular-nums; }
td:nth-child(3), td:nth-child(5), th:nth-child(3), th:nth-child(5) { text-align: right; }
"""
