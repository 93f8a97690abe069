"""How pages look: their colours for light screens, dark screens and paper, charts, texts and tables, the frame."""

from __future__ import annotations

import re

LIGHT = {
    "ink": "#1b1f24", "soft": "#57606a", "paper": "#ffffff", "panel": "#f5f7f9", "line": "#d5dae0", "frame": "#eef0f3",
    "accent": "#1a4fa0", "good": "#0072b2", "bad": "#b35900", "mid": "#68717b",
    "c1": "#0072B2", "c2": "#B35900", "c3": "#007A5A", "c4": "#A3427F", "c5": "#5B5FC7", "c6": "#6B6B6B",
}  # fmt: skip
DARK = {
    "ink": "#e6e8eb", "soft": "#a9b1ba", "paper": "#14171a", "panel": "#1c2024", "line": "#3a4047", "frame": "#23282d",
    "accent": "#8fb8ff", "good": "#56b4e9", "bad": "#f0a23c", "mid": "#929ba4",
    "c1": "#56B4E9", "c2": "#E69F00", "c3": "#3CC79E", "c4": "#E58FC2", "c5": "#A5A8FF", "c6": "#B5B5B5",
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

_MULTIPLES = (
    "\n".join(
        f".multiples.of-{count} .line {{ grid-template-columns: minmax(6rem, 9rem) repeat({count}, minmax(0, 1fr)); }}"
        for count in range(1, 7)
    )
    + "\n@media screen and (max-width: 700px) {\n"
    + "\n".join(
        f".multiples.of-{count} .line {{ grid-template-columns: repeat({min(count, 3)}, minmax(0, 1fr)); }}"
        for count in range(1, 7)
    )
    + "\n}"
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
.chart .reference {{ stroke: var(--mid); stroke-width: 1.5; stroke-dasharray: 4 3; }}
.chart .dot {{ fill: var(--ink); }} .chart .range {{ fill: var(--ink); fill-opacity: 0.28; }}
.chart .unsure .dot, .chart .unsure .range, .chart.unsure .dot, .chart.unsure .range, .chart .piece,
.chart .of-piece .key {{ fill: var(--mid); }}
.chart .good .dot, .chart .good .range, .chart.good .dot, .chart.good .range, .chart .piece.good,
.chart .of-piece.good .key {{ fill: var(--good); }}
.chart .bad .dot, .chart .bad .range, .chart.bad .dot, .chart.bad .range, .chart .piece.bad,
.chart .of-piece.bad .key {{ fill: var(--bad); }}
.chart .piece:not(.good, .bad, .unsure) {{ fill: var(--line); }}
.chart.bar-of-pairs .piece:not(.good, .bad, .unsure) + text {{ fill: var(--ink); }}
.chart .span {{ fill: var(--ink); fill-opacity: 0.75; }}
.chart.small {{ display: inline-block; max-width: none; background: var(--panel); vertical-align: -1px;
                margin-right: 8px; }}
.chart text.over {{ fill: var(--paper); }} .chart text.on-level {{ fill: {LIGHT["ink"]}; }}
.chart-figure {{ margin: 12px 0; min-width: 0; }}
.chart-figure > figcaption {{ font-weight: 600; margin-bottom: 4px; overflow-wrap: anywhere; }}
.chart-scroll {{ overflow-x: auto; }}
@media (max-width: 1000px) {{ .chart-figure.natural .chart {{ max-width: none; }} }}
.scales > figcaption {{ font-size: 15px; }} .scales svg.chart {{ width: 100%; overflow: visible; }}
.scales small {{ color: var(--soft); font-size: 13px; font-weight: 400; }} .scales a {{ color: inherit; }}
.scales .label {{ line-height: 1.25; overflow-wrap: anywhere; }} .scales .label small {{ display: block; }}
.scales .value {{ font-variant-numeric: tabular-nums; white-space: nowrap; }}
.intervals {{ display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr) max-content;
              gap: 6px 14px; align-items: center; }}
.intervals > div {{ display: contents; }}
.intervals .value b {{ font-size: 18px; }}
.multiples .line {{ display: grid; gap: 0 22px; align-items: center; }}
{_MULTIPLES}
.multiples .line > .label {{ text-align: right; font-size: 14px; }} .multiples .heads {{ align-items: end; }}
.multiples .head b, .multiples .head small {{ display: block; font-size: 13px; line-height: 1.3; }}
.multiples .group {{ font-size: 13px; font-weight: 600; color: var(--soft); border-top: 1px solid var(--line);
                     padding-top: 8px; margin-top: 6px; }}
.chart text.value {{ font-size: 11.5px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }}
.bar-line {{ display: grid; grid-template-columns: minmax(6rem, 15rem) minmax(0, 1fr) 8.4rem 12px; gap: 14px;
             align-items: center; padding: 5px 0; }}
.pictured .bar-line {{ grid-template-columns: 104px minmax(6rem, 15rem) minmax(0, 1fr) 8.4rem 12px; }}
.pairs:not(.pictured) .bar-line > .pictures {{ display: none; }}
.bar-line .pictures {{ display: flex; gap: 4px; }}
.bar-line .pictures > * {{ width: 50px; height: 50px; border-radius: 3px; object-fit: cover; }}
.bar-head {{ font-size: 13px; color: var(--soft); align-items: end; }}
.bar-line u {{ text-decoration: none; border-bottom: 2px solid var(--good); }}
.bar-line u + u {{ border-color: var(--bad); }} .bar-line .label b {{ font-weight: 600; font-size: 15px; }}
.pair-row {{ border-top: 1px solid var(--line); margin: 0; }}
.pair-row:last-child {{ border-bottom: 1px solid var(--line); }}
.pair-row > summary {{ color: inherit; font-size: inherit; list-style: none; }}
.pair-row > summary::-webkit-details-marker {{ display: none; }}
.pair-row > summary:hover {{ background: var(--panel); }}
.pair-row > summary::after {{ content: "▸"; color: var(--soft); }}
.pair-row[open] > summary::after {{ content: "▾"; }}
.bar-of-pairs {{ background: var(--panel); }} .chart.bar-of-pairs text {{ fill: var(--paper); pointer-events: none; }}
.tone.good {{ color: var(--good); }} .tone.bad {{ color: var(--bad); }} .tone.unsure {{ color: var(--mid); }}
@media screen and (max-width: 700px) {{
  .intervals {{ display: block; }}
  .intervals > div {{ display: grid; grid-template-columns: minmax(0, 1fr) max-content; padding: 2px 0; }}
  .intervals > div > svg, .intervals > div > a {{ grid-column: 1 / -1; order: 3; }}
  .intervals > div > span:empty {{ display: none; }}
  .multiples .line > .label {{ grid-column: 1 / -1; text-align: left; padding-top: 3px; }}
  .multiples .line {{ gap: 0 10px; }} .multiples .heads > span {{ display: none; }}
  .multiples text.value, .multiples .axis text:nth-of-type(2) {{ display: none; }}
  .bar-line, .pictured .bar-line {{ grid-template-columns: minmax(0, 1fr) max-content 12px; gap: 3px 10px; }}
  .pictured .bar-line {{ grid-template-columns: 84px minmax(0, 1fr) 12px; }}
  .bar-line > svg {{ grid-column: 1 / -1; grid-row: 2; }} .pictured .bar-line > .value {{ grid-column: 1 / -1; }}
  .bar-head > :not(:nth-child(3)) {{ display: none; }} .bar-head > :nth-child(3) {{ grid-column: 1 / -1; }}
  .pair-row > summary::after {{ display: none; }}
  .bar-line .pictures > * {{ width: 40px; height: 40px; }}
}}
"""
"""How charts look: only classes, so that a page may forbid styles inside its markup."""

PAPER_STYLE = re.sub(r"var\(--(\w+)\)", lambda name: LIGHT[name[1]], CHART_STYLE.partition(".chart-figure")[0])
"""The colours of a drawing in a file of its own: programs that place it may know no variables."""

CONTENT_STYLE = """
a { color: var(--accent); }
h2 { font-size: 20px; margin: 0 0 8px; overflow-wrap: anywhere; }
h3 { font-size: 16px; margin: 16px 0 6px; overflow-wrap: anywhere; }
h4 { font-size: 15px; margin: 18px 0 4px; overflow-wrap: anywhere; }
p { margin: 6px 0; max-width: 80ch; overflow-wrap: anywhere; }
.about, .facts, .id { color: var(--soft); } .facts { font-size: 14px; }
table { border-collapse: collapse; font-size: 14px; }
th, td { padding: 4px 16px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
         font-variant-numeric: tabular-nums; }
thead th { color: var(--soft); font-weight: 600; } tbody th { font-weight: 500; min-width: 9ch; }
th.number, td.number { text-align: right; padding: 4px 0 4px 16px; }
th.number + :not(.number), td.number + :not(.number) { padding-left: 20px; }
td.best { font-weight: 700; } td.figure { white-space: nowrap; }
.wide { overflow-x: auto; } .wide td, .wide th { max-width: 60ch; }
details { margin: 8px 0; } summary { cursor: pointer; color: var(--soft); font-size: 14px; }
.block { margin: 14px 0; } .block h4 { margin-top: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(420px, 100%), 1fr)); gap: 8px 28px; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; font-size: 13px;
      line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; }
ul { padding-left: 22px; } li { overflow-wrap: anywhere; }
q { display: block; font-style: italic; overflow-wrap: anywhere; } q::before, q::after { content: none; }
.query { font-size: 16px; font-weight: 600; margin: 4px 0; }
.hits { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 10px; margin-top: 8px; }
figure { margin: 0; min-width: 0; }
.hits:not(:has(img)), .hits:has(.facts) { grid-template-columns: repeat(auto-fill, minmax(min(160px, 100%), 1fr)); }
.hits img { max-width: 100%; height: auto; } .hits .facts { display: block; font-size: 12px; }
.hits figure { border: 2px solid var(--line); border-radius: 6px; padding: 6px; font-size: 13px; }
.hits figure.truth { border-style: dashed; } .hits figure.right { border: 4px double var(--good); padding: 4px; }
.diffs { width: 100%; } .diffs th { width: 9ch; overflow-wrap: anywhere; } .diffs td { overflow-wrap: anywhere; }
.diffs .facts { display: block; } del { color: var(--bad); } ins { color: var(--good); }
svg.missing { background: var(--frame); } svg.missing text { fill: var(--soft); font-size: 13px; }
figcaption { margin-top: 4px; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(280px, 100%), 1fr)); gap: 14px; }
.pair svg, .pair img { display: block; width: 100%; max-height: 380px; }
.pair img { object-fit: contain; object-position: left; height: auto; } .pair .facts { display: block; }
mark { background: none; color: inherit; padding: 0 1px; border-bottom: 2px solid var(--line); }
mark.yes { border-color: var(--good); } mark.yes sup { color: var(--good); }
mark.no { border-color: var(--bad); color: var(--bad); }
.term, .sure { cursor: help; position: relative; text-decoration: underline dotted var(--mid);
               text-underline-offset: 3px; }
.sure { font-size: 13px; white-space: nowrap; } .sure b { font-weight: 600; margin-left: 4px; }
.sure i { display: inline-block; width: 8px; height: 8px; border-radius: 50%; background: var(--line);
          margin-right: 2px; } .sure i.on { background: var(--ink); }
.tip { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
:is(.term, .sure):is(:hover, :focus) > .tip { width: min(24rem, 80vw); height: auto; clip-path: none; z-index: 2;
  left: 0; top: 1.6em; padding: 10px 14px; background: var(--paper); color: var(--ink); border: 1px solid var(--line);
  border-radius: 8px; box-shadow: 0 6px 24px #0003; font-size: 14px; font-weight: 400; font-style: normal;
  line-height: 1.45; white-space: normal; text-align: left; }
.sure:is(:hover, :focus) > .tip { left: auto; right: 0; }
.claim { display: flex; gap: 6px 18px; align-items: baseline; justify-content: space-between; flex-wrap: wrap; }
.answers { border-top: 1px solid var(--line); margin: 22px 0 0; }
.answers > div { display: grid; grid-template-columns: 10.5rem minmax(0, 1fr) 6rem; gap: 4px 14px; padding: 9px 0;
                 border-bottom: 1px solid var(--line); }
.answers dt { font-weight: 650; } .answers dd { margin: 0; } .answers a { white-space: nowrap; font-size: 14px; }
.beside { display: grid; grid-template-columns: minmax(0, 7fr) minmax(0, 4.6fr); gap: 20px 36px; align-items: start; }
.beside.even { grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
.query-card[hidden] { display: none; }
.query-cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(236px, 100%), 1fr)); gap: 14px 18px; }
.query-cards.large { grid-template-columns: 1fr; }
.query-card { border: 0; border-top: 1px solid var(--line); border-radius: 0; padding: 8px 0 0; font-size: 14px; }
.query-cards.large .query-card { border: 0; padding: 0; font-size: 16px; } .query-card p { margin: 4px 0; }
.query-card .two { display: grid; grid-template-columns: 1fr 1fr; gap: 8px; margin: 5px 0 3px; }
.query-card :is(img, svg) { display: block; width: 100%; height: auto; border-radius: 3px; }
.query-card .tag { display: block; font-size: 12.5px; font-weight: 600; margin-bottom: 3px; }
.tag.right { color: var(--good); } .tag.wrong { color: var(--bad); }
.query-card figcaption { font-size: 12.5px; line-height: 1.25; color: var(--soft); }
.facet { display: flex; flex-wrap: wrap; gap: 6px; margin: 6px 0; align-items: baseline; }
.facet > span { font-size: 13px; color: var(--soft); }
.chip { font: inherit; font-size: 13px; color: var(--ink); background: none; border: 1px solid var(--line);
        border-radius: 999px; padding: 2px 10px; text-decoration: none; } button.chip:enabled { cursor: pointer; }
.chip:is([aria-pressed="true"], [aria-current]) { background: var(--ink); color: var(--paper); }
.chip small { opacity: 0.8; }
.fold { border-top: 1px solid var(--line); padding: 8px 0; margin: 0; }
.fold > summary { font-weight: 600; font-size: 15px; color: var(--ink); }
.fold > summary small { font-weight: 400; color: var(--soft); }
.evidence ul { columns: 22rem; font-size: 13px; scroll-margin-top: 40px; }
@media screen and (max-width: 700px) {
  .beside { grid-template-columns: minmax(0, 1fr); }
  .answers > div { grid-template-columns: minmax(0, 1fr) max-content; }
  .answers dd:nth-of-type(1) { grid-column: 1 / -1; }
  .answers dd:nth-of-type(2) { grid-column: 2; grid-row: 1; }
  .query-cards { grid-template-columns: 1fr 1fr; } .query-cards.large { grid-template-columns: minmax(0, 1fr); }
}
@media print { .tip { display: none; } }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
"""
"""How texts, tables and pictures look, on a page and in a notebook."""
SECTION_STYLE = f"{CHART_STYLE}.sections {{{CONTENT_STYLE}}}"
"""Of the sections of a page that has colours and a look of its own, as the web application has."""

PAGE_STYLE = (
    f"{THEME_STYLE}{CHART_STYLE}{CONTENT_STYLE}"
    + """
body { margin: 0; background: var(--paper); color: var(--ink);
       font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, "Liberation Sans", sans-serif; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: 8px; top: -60px; background: var(--paper); padding: 8px 12px; z-index: 3; }
.skip:focus { top: 8px; }
main { max-width: 1120px; margin: 0 auto; padding: 12px 28px 60px; min-width: 0; box-sizing: border-box; }
.top { display: flex; justify-content: space-between; align-items: center; gap: 4px 16px; font-size: 13.5px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
#answer > h1 { font-size: clamp(23px, 2.8vw, 32px); line-height: 1.2; margin: 6px 0 14px; text-wrap: balance;
               max-width: 46rem; }
.theme { flex: none; font: inherit; font-size: 13px; color: var(--ink); background: var(--panel);
         border: 1px solid var(--line); border-radius: 6px; padding: 3px 10px; cursor: pointer; }
.links { font-size: 14px; } .links a { display: inline-block; margin: 0 12px 4px 0; overflow-wrap: anywhere; }
section { padding: 22px 0; border-top: 1px solid var(--line); scroll-margin-top: 8px; }
#answer ~ section { border: 0; padding: 40px 0 0; } #answer ~ section h2 { font-size: 22px; text-wrap: balance; }
section:first-of-type { border-top: 0; }
.store { position: absolute; width: 0; height: 0; overflow: hidden; }
footer { color: var(--soft); font-size: 13px; border-top: 1px solid var(--line); padding-top: 10px; margin-top: 28px; }
@media screen and (max-width: 700px) {
  .chart.small { display: none; } td.figure { white-space: normal; } tbody th { max-width: 9rem; }
  td.figure .facts { display: block; font-size: 12.5px; } th, td { padding-right: 10px; }
  main { padding: 10px 14px 40px; } #answer ~ section { padding-top: 30px; } }
@media print {
  body { font-size: 10.5pt; } .theme, .skip, .facets, .more, .count, .evidence { display: none; }
  .fold:not(.paper):not([open]) { display: none; }
  main { padding: 0; max-width: none; } a { color: inherit; text-decoration: none; } #answer > h1 { font-size: 19pt; }
  section, #answer ~ section { padding: 10pt 0 0; } h2, h3, h4, figcaption, .claim { break-after: avoid; }
  figure:not(.scales), tr, .query-card, .pair-row, .answers > div, .multiples .line { break-inside: avoid; }
  .wide, .chart-scroll { overflow: visible; }
  .chart-figure.natural .chart { max-width: 100%; } td.figure { white-space: normal; }
  .wide table { font-size: 8.5pt; } .wide td, .wide th { padding-right: 8pt; overflow-wrap: anywhere; }
  td .facts { font-size: inherit; } .scales > details, .chart-figure > details { display: none; }
  .pictured .bar-line { grid-template-columns: 104px 8.5rem minmax(0, 1fr) 7.4rem; gap: 8px; }
  details > summary { list-style: none; } .pair-row > summary::after { content: ""; }
  .fold.paper::details-content { content-visibility: visible; display: block; }
  .chart, .pair svg, .chip { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .hits svg { max-height: 110pt; } .pair svg, .pair img { max-height: 160pt; } .query-cards { gap: 8pt 12pt; }
  .query-cards:not(.large) { grid-template-columns: repeat(4, 1fr); } .chart.small { width: 40px; }
}
"""
)
"""All of a page, with its frame: on a desk, on a phone, on paper."""

_ON_PAPER = "background: var(--paper); color: var(--ink); padding: 4px 8px;"
"""A notebook may be light where the browser asks for dark."""
NOTEBOOK_STYLE = f"{THEME_STYLE}.crosslens.crosslens {{{_ON_PAPER}{CHART_STYLE}{CONTENT_STYLE}}}"
"""Rules that keep to this element. Named twice, it counts more than Jupyter's rules, which align tables right."""

SCRIPT = """
(function () {
  var root = document.documentElement, key = "crosslens-theme", stored = null;
  try { stored = localStorage.getItem(key); } catch (error) { stored = null; }
  if (stored === "dark" || stored === "light") { root.dataset.theme = stored; }
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  document.addEventListener("DOMContentLoaded", function () {
    var button = document.getElementById("theme");
    function say() { button.textContent = isDark() ? "Light colours" : "Dark colours"; }
    button.hidden = false;
    say();
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(key, root.dataset.theme); } catch (error) { /* not kept for next time */ }
      say();
    });
    var closed = [];
    addEventListener("beforeprint", function () {
      closed = Array.from(document.querySelectorAll("details.paper:not([open])"));
      closed.forEach(function (details) { details.open = true; });
    });
    addEventListener("afterprint", function () {
      closed.forEach(function (details) { details.open = false; });
    });
    document.querySelectorAll(".browse").forEach(narrowed);
  });
  function narrowed(browse) {
    var chips = Array.from(browse.querySelectorAll("button.chip")), chosen = {};
    var cards = Array.from(browse.querySelectorAll("[data-values]"));
    var count = browse.querySelector(".count"), more = browse.querySelector(".more");
    function fits(card) {
      var values = card.dataset.values.split("\\n");
      return Object.keys(chosen).every(function (facet) { return values[facet] === chosen[facet]; });
    }
    function show() {
      var shown = 0, narrow = Object.keys(chosen).length > 0;
      cards.forEach(function (card) { card.hidden = !fits(card); shown += !card.hidden; });
      if (count) { count.textContent = narrow ? shown + " of " + cards.length + " cards" : ""; }
      if (more && narrow) { more.open = true; }
      chips.forEach(function (chip) {
        chip.setAttribute("aria-pressed", chosen[chip.dataset.facet] === chip.dataset.value);
      });
    }
    chips.forEach(function (chip) {
      chip.disabled = false;
      chip.addEventListener("click", function () {
        var facet = chip.dataset.facet;
        if (chosen[facet] === chip.dataset.value) { delete chosen[facet]; } else { chosen[facet] = chip.dataset.value; }
        show();
      });
    });
  }
})();
"""
"""What a report does: it switches between light and dark, facets narrow its cards, printing opens what is folded."""
