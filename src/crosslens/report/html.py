"""HTML pages that need no other file: one frame, tables, and escaping in one place."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = """
body { margin: 0 auto; max-width: 900px; padding: 16px; background: #fff; color: #222;
       font: 14px/1.5 Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; }
nav a { margin-right: 12px; display: inline-block; }
h1 { font-size: 22px; }
h2 { margin: 28px 0 4px; font-size: 17px; }
summary { cursor: pointer; }
table { border-collapse: collapse; }
th, td { padding: 3px 14px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e3e3e3; }
"""


def html_page(
    title: str, body: str, *, style: str = "", script: str = "", heading: bool = True, before: str = "", after: str = ""
) -> str:
    """A whole page around a body that is HTML already; ``style`` and ``script`` are put into it.

    ``before`` and ``after`` are what surrounds the main part, such as navigation.
    """
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}{style}</style>",
        *([f"<script>{script}</script>"] if script else []),
        "</head>",
        "<body>",
        *([before] if before else []),
        "<main>",
        *([f"<h1>{escape(title)}</h1>"] if heading else []),
        body,
        "</main>",
        *([after] if after else []),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def links(targets: Sequence[tuple[str, str]], label: str) -> str:
    """A navigation bar of ids on the page and their names."""
    anchors = "\n".join(f'<a href="#{escape(target)}">{escape(name)}</a>' for target, name in targets)
    return f'<nav aria-label="{escape(label)}">\n{anchors}\n</nav>'


def folded(summary: str, content: str) -> str:
    """Content that is HTML already, under a line to click on."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}</details>"
