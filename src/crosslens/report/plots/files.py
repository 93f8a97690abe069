"""Figures as files: a page that needs no network, or an image for a paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crosslens.core import ConflictError, CrosslensError, MissingExtraError, UsageError, argument, atomic_file
from crosslens.report.html import html_page

HTML = ".html"
IMAGES = (".svg", ".png", ".pdf")
SUFFIXES = (HTML, *IMAGES)

_CONFIG = {"displaylogo": False, "responsive": False, "toImageButtonOptions": {"format": "svg"}}
_SHARPNESS = 2  # of a .png: pixels per pixel of the figure


def figure_suffix(output: Path) -> str:
    """The suffix of a file's name; raises unless figures can be written in that format."""
    suffix = output.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{output}: unknown figure format {suffix or '(no suffix)'}",
            fix=f"end the name in {', '.join(SUFFIXES)}",
        )
    return suffix


def write_figures(
    figures: Sequence[Any], output: Path, title: str, tables: Callable[[], Sequence[str]], *, overwrite: bool
) -> Path:
    """Write a page with all figures and the tables of their numbers, or an image of the only figure."""
    suffix = figure_suffix(output)
    if suffix == HTML:
        content = figures_page(figures, title, tables()).encode()
    elif len(figures) == 1:
        content = figure_image(figures[0], suffix)
    else:
        raise UsageError(
            f"{len(figures)} figures do not fit into one {suffix} file",
            fix=f"pass {argument('kind', 'bar')} or {argument('kind', 'radar')}",
        )
    return _write(output, content, overwrite)


def figures_page(figures: Sequence[Any], title: str, tables: Sequence[str]) -> str:
    """A page that needs no other file: plotly's script once, the figures, and their numbers as tables."""
    from plotly.offline import get_plotlyjs

    parts = [
        drawn.to_html(full_html=False, include_plotlyjs=False, div_id=f"figure-{number}", config=_CONFIG)
        for number, drawn in enumerate(figures, start=1)
    ]
    body = "\n".join([*(f"<figure>{part}</figure>" for part in parts), *tables])
    return html_page(title, body, style=_STYLE, script=get_plotlyjs(), heading=False)


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


def _write(output: Path, content: bytes, overwrite: bool) -> Path:
    if output.is_dir():
        raise ConflictError(f"{output} is a folder", fix="name a file")
    if output.exists():
        if output.read_bytes() == content:
            return output
        if not overwrite:
            raise ConflictError(
                f"{output} already exists with other content",
                fix=f"choose another name, or pass {argument('overwrite', True)}",
            )
    with atomic_file(output) as partial:
        partial.write_bytes(content)
    return output


_STYLE = """
figure { margin: 0 0 28px; overflow-x: auto; }
summary { color: #666; }
details { margin: 0 0 12px 24px; }
table { font-variant-numeric: tabular-nums; }
td:nth-child(3), td:nth-child(5), th:nth-child(3), th:nth-child(5) { text-align: right; }
"""
