"""The colours of pages, by name, for light screens, dark screens and paper; and how charts use them."""

from __future__ import annotations

import re

LIGHT = {
    "ink": "#1b1f24", "soft": "#57606a", "paper": "#ffffff", "panel": "#f5f7f9", "line": "#d5dae0", "frame": "#eef0f3",
    "accent": "#1a4fa0", "good": "#0b6e3d", "bad": "#a02417", "c1": "#0072B2", "c2": "#B35900", "c3": "#007A5A",
    "c4": "#A3427F", "c5": "#5B5FC7", "c6": "#6B6B6B",
}  # fmt: skip
DARK = {
    "ink": "#e6e8eb", "soft": "#a9b1ba", "paper": "#14171a", "panel": "#1c2024", "line": "#3a4047", "frame": "#23282d",
    "accent": "#8fb8ff", "good": "#5fd39a", "bad": "#ff9d8f", "c1": "#56B4E9", "c2": "#E69F00", "c3": "#3CC79E",
    "c4": "#E58FC2", "c5": "#A5A8FF", "c6": "#B5B5B5",
}  # fmt: skip
LEVEL_COLOURS = {"easy": "#009E73", "medium": "#E69F00", "hard": "#D55E00"}
"""Of the levels of difficulty, in every chart and map, light or dark; what is written on them is dark."""
SERIES = 6
"""How many series have a colour of their own; further ones begin again."""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


THEME_STYLE = f"""
:root {{ color-scheme: light; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{
:root:not([data-theme="light"]) {{ color-scheme: dark; {_variables(DARK)} }} }}
@media screen {{ :root[data-theme="dark"] {{ color-scheme: dark; {_variables(DARK)} }} }}
"""
"""The variables; the attribute ``data-theme`` overrides what the reader's system asks for; paper is light."""

_SERIES_COLOURS = {f"s{number}": f"var(--c{number})" for number in range(1, SERIES + 1)} | {
    f"level-{level}": colour for level, colour in LEVEL_COLOURS.items()
}
_SERIES_STYLE = "\n".join(
    f".chart .{name} .bar, .chart .{name} .point, .chart .{name} .key, .chart .{name} .band, .chart .strip.{name} "
    f"{{ fill: {colour}; }} .chart .{name} .curve, .chart .{name} .point.beyond {{ stroke: {colour}; }}"
    for name, colour in _SERIES_COLOURS.items()
)

CHART_STYLE = f"""
.chart {{ display: block; max-width: 100%; height: auto;
          font-family: system-ui, "Segoe UI", Helvetica, Arial, "Liberation Sans", sans-serif; }}
.chart text {{ fill: var(--ink); font-size: 12px; }}
.chart text.soft {{ fill: var(--soft); }}
.chart text.end {{ text-anchor: end; }} .chart text.middle {{ text-anchor: middle; }}
.chart .grid {{ stroke: var(--line); stroke-width: 1; }}
{_SERIES_STYLE}
.chart .curve {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.chart .s2 .curve {{ stroke-dasharray: 7 3; }} .chart .s3 .curve {{ stroke-dasharray: 2 3; }}
.chart .s4 .curve {{ stroke-dasharray: 9 3 2 3; }}
.chart g .curve.beyond {{ stroke-width: 1.4; stroke-dasharray: 1.5 4; }}
.chart g .point.beyond {{ fill: var(--paper); stroke-width: 1.4; }}
.chart .band {{ fill-opacity: 0.18; }}
.chart .mark {{ stroke: var(--ink); stroke-width: 2; }}
.chart .trend {{ fill: none; stroke: var(--ink); stroke-width: 1.6; }}
.chart .zone {{ fill: var(--line); fill-opacity: 0.45; }}
.chart .faint {{ fill-opacity: 0.45; }} .chart .rest .point, .chart .rest .key {{ fill: var(--line); }}
.chart .ring .point, .chart .ring .key {{ fill: none; stroke: var(--ink); stroke-width: 2; }}
.chart .interval {{ stroke: var(--ink); stroke-width: 1.4; }}
.chart .best {{ fill: var(--paper); stroke: var(--bad); stroke-width: 3; }}
.chart .best-line {{ stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }}
.chart .cell {{ stroke: var(--line); stroke-width: 0.5; fill: var(--accent); }}
.chart .cell.worse {{ fill: var(--bad); }} .chart .cell.better {{ fill: var(--good); }}
.chart .strip {{ fill: var(--accent); stroke: var(--paper); stroke-width: 1; }}
.chart text.over {{ fill: var(--paper); }} .chart text.on-level {{ fill: {LIGHT["ink"]}; }}
.chart-figure {{ margin: 12px 0; min-width: 0; }}
.chart-figure > figcaption {{ font-weight: 600; margin-bottom: 4px; overflow-wrap: anywhere; }}
.chart-scroll {{ overflow-x: auto; }}
.chart-figure.natural .chart {{ max-width: none; }}
"""
"""How charts look: only classes, so that a page may forbid styles inside its markup."""

PAPER_STYLE = re.sub(r"var\(--(\w+)\)", lambda name: LIGHT[name[1]], CHART_STYLE.partition(".chart-figure")[0])
"""The same for a drawing in a file of its own: programs that place it may know no variables."""
