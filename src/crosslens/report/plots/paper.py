"""Figures as files: a page that needs no network, or a picture for a paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from crosslens.core.atomic import atomic_file
from crosslens.core.errors import ConflictError, CrosslensError, MissingExtraError, UsageError

PAGE = ".html"
PICTURES = (".svg", ".png", ".pdf")
SUFFIXES = (PAGE, *PICTURES)

_CONFIG = {"displaylogo": False, "responsive": False, "toImageButtonOptions": {"format": "svg"}}
_SHARPNESS = 2  # of a .png: pixels per pixel of the figure


def suffix_of(output: Path) -> str:
    """What kind of file is wanted, by its name; raises unless figures are written as such."""
    suffix = output.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{output}: no figure is written as {suffix or 'a file without a suffix'}",
            fix=f"end the name in {', '.join(SUFFIXES)}",
        )
    return suffix


def write_figures(
    figures: Sequence[Any], output: Path, title: str, tables: Callable[[], Sequence[str]], *, overwrite: bool
) -> Path:
    """Write a page with all figures and the tables of their numbers, or a picture of the one figure there is."""
    suffix = suffix_of(output)
    if suffix == PAGE:
        content = page(figures, title, tables()).encode()
    elif len(figures) == 1:
        content = picture(figures[0], suffix)
    else:
        raise UsageError(f"{len(figures)} figures do not fit into one {suffix} file", fix="choose bar or radar")
    return _write(output, content, overwrite)


def page(figures: Sequence[Any], title: str, tables: Sequence[str]) -> str:
    """A page that stands alone: plotly's program once, the figures, and their numbers as tables."""
    from plotly.offline import get_plotlyjs

    drawn = "\n".join(
        f"<figure>{one.to_html(full_html=False, include_plotlyjs=False, div_id=f'figure-{n}', config=_CONFIG)}</figure>"
        for n, one in enumerate(figures, start=1)
    )
    return _PAGE.format(
        title=escape(title), style=_STYLE, program=get_plotlyjs(), figures=drawn, tables="\n".join(tables)
    )


def folded_table(
    summary: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, about: str = "", shown: bool = False
) -> str:
    """A table under a line to click on; ``shown`` opens it from the start."""
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    note = f"<p>{escape(about)}</p>\n" if about else ""
    return (
        f"<details{' open' if shown else ''}><summary>{escape(summary)}</summary>\n{note}"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></details>"
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
