"""Figures as files: a page that needs no network, or a picture for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from crosslens.core.atomic import atomic_file
from crosslens.core.errors import ConflictError, CrosslensError, MissingExtraError, UnknownNameError, UsageError
from crosslens.metrics.figures import figure, interval
from crosslens.report.plots.bars import bar_figure
from crosslens.report.plots.chart import Chart
from crosslens.report.plots.radar import fits_radar, radar_figure

KINDS = ("bar", "radar", "both")
PAGE = ".html"
PICTURES = (".svg", ".png", ".pdf")
SUFFIXES = (PAGE, *PICTURES)

_DRAW = {"bar": bar_figure, "radar": radar_figure}
_SHARPNESS = 2  # of a .png: pixels per pixel of the figure


def draw(chart: Chart, kind: str = "both") -> list[Any]:
    """The plotly figures of a chart: bars, a radar chart, or both (only bars, where a radar would show nothing)."""
    if kind not in KINDS:
        raise UnknownNameError("kind of figure", kind, KINDS)
    if kind == "both":
        return [bar_figure(chart)] if fits_radar(chart) else [bar_figure(chart), radar_figure(chart)]
    return [_DRAW[kind](chart)]


def write_plot(
    charts: Chart | Sequence[Chart], output: str | Path, kind: str | None = None, *, overwrite: bool = False
) -> Path:
    """Draw charts into a file, by its suffix: a page (``.html``) with all of them, or a picture of one.

    ``kind`` is ``bar``, ``radar`` or ``both`` (the default of a page; of a picture, ``bar``). A page holds all it needs
    and opens without a network. A different file that stands there is kept unless ``overwrite``.
    """
    charts = [charts] if isinstance(charts, Chart) else list(charts)
    output = Path(output)
    suffix = output.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{output}: no figure is written as {suffix or 'a file without a suffix'}",
                         fix=f"end the name in {', '.join(SUFFIXES)}")  # fmt: skip
    kind = kind or ("both" if suffix == PAGE else "bar")
    figures = [one for chart in charts for one in draw(chart, kind)]
    if suffix == PAGE:
        content = page(charts, figures).encode()
    elif len(figures) == 1:
        content = picture(figures[0], suffix)
    else:
        raise UsageError(f"{len(figures)} figures do not fit into one {suffix} file", fix="choose bar or radar")
    return _write(output, content, overwrite)


def page(charts: Sequence[Chart], figures: Sequence[Any]) -> str:
    """A page that stands alone: plotly's program once, the figures, and their numbers as tables."""
    from plotly.offline import get_plotlyjs

    config = {"displaylogo": False, "responsive": False, "toImageButtonOptions": {"format": "svg"}}
    drawn = "\n".join(
        f"<figure>{one.to_html(full_html=False, include_plotlyjs=False, div_id=f'figure-{n}', config=config)}</figure>"
        for n, one in enumerate(figures, start=1)
    )
    title = escape(charts[0].title if len(charts) == 1 else f"{charts[0].title} and {len(charts) - 1} more")
    return _PAGE.format(
        title=title, style=_STYLE, program=get_plotlyjs(), figures=drawn, tables="\n".join(map(_table, charts))
    )


def picture(drawn: Any, suffix: str) -> bytes:
    """The figure as the bytes of a picture file."""
    try:
        import kaleido  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"writing {suffix} files", "kaleido", "plot-static") from error
    try:
        content: bytes = drawn.to_image(format=suffix.removeprefix("."), scale=_SHARPNESS if suffix == ".png" else 1)
    except Exception as error:  # whatever a browser that will not start raises: there is no common type
        raise CrosslensError(
            f"the browser that draws {suffix} files did not work: {str(error).strip().splitlines()[0]}",
            fix="install Chromium or Google Chrome (BROWSER_PATH names one that is not found), or write .html",
        ) from error
    return content


def _write(output: Path, content: bytes, overwrite: bool) -> Path:
    if output.is_dir():
        raise ConflictError(f"{output} is a folder", fix="name a file")
    if output.exists():
        if output.read_bytes() == content:
            return output
        if not overwrite:
            raise ConflictError(
                f"{output} already exists, and is another file", fix="choose another name, or pass --overwrite"
            )
    with atomic_file(output) as partial:
        partial.write_bytes(content)
    return output


def _table(chart: Chart) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in (chart.column, "run", "figure", "interval", "queries"))
    rows = []
    for group in chart.groups:
        for series in chart.series:
            if (one := series.groups.get(group)) is not None:
                numbers = figure(one.name, one.mean), interval(one.name, one.low, one.high), f"{one.n:,}"
                cells = "".join(f"<td>{escape(text)}</td>" for text in (group, series.name, *numbers))
                rows.append(f"<tr>{cells}</tr>")
    body = "\n".join(rows)
    return (
        f"<details><summary>The numbers: {escape(chart.title)}</summary>\n<p>{escape(' · '.join(chart.facts))}</p>\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></details>"
    )


_STYLE = """
body { margin: 0 auto; max-width: 900px; padding: 16px; background: #fff; color: #222;
       font: 14px/1.5 Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; }
figure { margin: 0 0 28px; overflow-x: auto; }
summary { cursor: pointer; color: #666; }
details { margin: 0 0 12px 24px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 14px 2px 0; text-align: left; border-bottom: 1px solid #e3e3e3; }
td:nth-child(3), td:nth-child(5), th:nth-child(3), th:nth-child(5) { text-align: right; }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
<script>{program}</script>
</head>
<body>
{figures}
{tables}
</body>
</html>
"""
