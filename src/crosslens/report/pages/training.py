"""The page of a training: loss, validation and learning rate against steps, the numbers behind, and the recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from crosslens.metrics import facts_of, format_count, format_figure
from crosslens.report.charts.drawing import Point
from crosslens.report.charts.lines import line_chart
from crosslens.report.charts.theme import CHART_STYLE, THEME_STYLE
from crosslens.report.html import folded, folded_table, html_page, html_table


def training_page(card: Mapping[str, Any]) -> str:
    """The page of a trained model, from its card; it needs no other file."""
    (metric, best_value), history = next(iter(card["validation"].items())), card["history"]
    steps = [row["step"] for row in history]
    best = steps.index(card["best_step"])

    def figure(value: float) -> str:
        return format_figure(metric, value)

    charts = [
        _chart("Training loss", steps, [row["loss"] for row in history], lambda value: f"{value:.4g}"),
        _chart(f"Validation {metric}{_direction(metric)}", steps, [row["value"] for row in history], figure, best),
    ]
    if all("rate" in row for row in history):
        charts.append(_chart("Learning rate", steps, [row["rate"] for row in history], lambda value: f"{value:.3g}"))
    marked = f"Ring: the checkpoint that is kept, at step {card['best_step']:,}, {metric} {figure(best_value)}."
    body = [
        f"<p>{escape(_facts(card))}</p>",
        f'<div class="charts">{"".join(charts)}</div>\n<p>{escape(marked)}</p>',
        f"<h2>Figures of this checkpoint</h2>\n{_figures(card)}",
        folded_table(f"Every validation ({len(history)})", *_rows(metric, history, best)),
        folded("The recipe", f"<pre>{escape(recipe_text(card['identity']))}</pre>"),
    ]
    return html_page(f"Training of {card['recipe']}", "\n".join(body), style=THEME_STYLE + _STYLE + CHART_STYLE)


def _chart(title: str, steps: Sequence[int], values: Sequence[float], number: Any, marked: int | None = None) -> str:
    series = {title: [Point(value) for value in values]}
    drawn = line_chart(title, steps, series, axis="step", number=number, marked=marked).svg  # one table has all values
    return f"<figure><figcaption>{escape(title)}</figcaption>\n{drawn}</figure>"


def _direction(metric: str) -> str:
    return "" if facts_of(metric).higher_is_better else " (lower is better)"


def _facts(card: Mapping[str, Any]) -> str:
    data = card["training"]
    settings = card["identity"]["settings"]
    return (
        f"{data['dataset']}: {format_count(data['images'], 'image')} with {format_count(data['captions'], 'caption')} "
        f"({100 * settings['fraction']:g} % of the training images), seed {settings['seed']}. "
        f"{card['identity']['model']}, {format_count(card['parameters'], 'parameter')}, "
        f"{format_count(card['steps'], 'step')}."
    )


def _figures(card: Mapping[str, Any]) -> str:
    rows = [(f"{split} {name}", format_figure(name, value))
            for split in ("validation", "test") for name, value in card[split].items()]  # fmt: skip
    return html_table(("figure", "value"), rows, kind="numbers")


def _rows(
    metric: str, history: Sequence[Mapping[str, Any]], best: int
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    header = ("step", "epoch", "loss", f"validation {metric}", "learning rate", "")
    rows: list[tuple[str, ...]] = [
        (
            f"{row['step']:,}", f"{row['epoch']:g}", f"{row['loss']:.6g}", format_figure(metric, row["value"]),
            f"{row['rate']:.3g}" if "rate" in row else "–", "best" if at == best else "",
        )
        for at, row in enumerate(history)
    ]  # fmt: skip
    return header, rows


def recipe_text(identity: Mapping[str, Any]) -> str:
    """What decides about a training, as the TOML file that repeats it."""
    tables = {"data": {"kind": identity["layout"], **identity["data"]},
              "model": {"kind": identity["model"], **identity["model_settings"]}}  # fmt: skip
    known = ("layout", "data", "model", "model_settings", "losses", "settings")
    entries = {name: value for name, value in identity.items() if name not in known}
    parts = [_entries(entries), *(f"[{name}]\n{_entries(table)}" for name, table in tables.items())]
    parts += [f"[[loss]]\n{_entries(entry)}" for entry in identity["losses"]]
    return "\n\n".join([*parts, f"[training]\n{_entries(identity['settings'])}"]) + "\n"


def _entries(table: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in table.items() if value not in (None, "")}
    return "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in kept.items())


_STYLE = """
body { max-width: 1240px; background: var(--paper); color: var(--ink); }
h1 { overflow-wrap: anywhere; }
th, td { border-color: var(--line); font-variant-numeric: tabular-nums; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: bold; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); gap: 16px 24px; }
details { overflow-x: auto; margin: 12px 0; }
pre { font-size: 13px; }
"""
