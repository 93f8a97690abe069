"""How pages look: their colours for light screens, dark screens and paper, charts, texts and tables, the frame."""

from __future__ import annotations

import re
from importlib.resources import files

LEVEL_COLOURS = {"easy": "#009E73", "medium": "#E69F00", "hard": "#D55E00"}
"""Of the levels of difficulty, in every chart and map, light or dark; what is written on them is dark."""
SERIES = 6
"""How many series have a colour of their own; further ones begin again."""


def packaged_text(file: str) -> str:
    """A file beside this module."""
    return files("crosslens.report.forms").joinpath(file).read_text(encoding="utf-8")


_THEME, _CHARTS, _CONTENT, _PAGE = (
    "\n" + packaged_text(f"{name}.css") for name in ("theme", "charts", "content", "page")
)
_LIGHT = dict(re.findall(r"--(\w+): ([^;]+);", _THEME.partition("@media")[0]))

PAPER_STYLE = re.sub(r"var\(--(\w+)\)", lambda name: _LIGHT[name[1]], _CHARTS.partition(".chart-figure")[0])
"""The colours of a drawing in a file of its own: programs that place it may know no variables."""
SECTION_STYLE = f"{_CHARTS}.sections {{{_CONTENT}}}"
"""Of the sections of a page that has colours and a look of its own, as the web application has."""
PAGE_STYLE = f"{_THEME}{_CHARTS}{_CONTENT}{_PAGE}"
"""All of a page, with its frame: on a desk, on a phone, on paper."""

_ON_PAPER = "background: var(--paper); color: var(--ink); padding: 4px 8px;"
"""A notebook may be light where the browser asks for dark."""
NOTEBOOK_STYLE = f"{_THEME}.crosslens.crosslens {{{_ON_PAPER}{_CHARTS}{_CONTENT}}}"
"""Rules that keep to this element. Named twice, it counts more than Jupyter's rules, which align tables right."""
