"""Where the numbers come from, and the commands that compute them again."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from crosslens import __version__
from crosslens.core import Grid, Run
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Content, ReportSection, notes, table_of
from crosslens.report.forms.page import paragraph
from crosslens.report.html import folded


def provenance(context: ReportContext) -> ReportSection:
    """What every run was made from."""
    runs = context.inputs.runs
    facts = {name: _facts(run) for name, run in runs.items()}
    rows = tuple(
        (label, *(own.get(label, "–") for own in facts.values()))
        for label in dict.fromkeys(label for own in facts.values() for label in own)
    )
    parts: list[Content] = [
        paragraph(f"Written by crosslens {__version__}. Everything below is stored in the run folders."),
        table_of("Runs", Grid(("", *runs), rows, "l" * (1 + len(runs)))),
        *(notes([str(line) for line in run.provenance.get("notes", ())], f"Notes of {name}")
          for name, run in runs.items()),
    ]  # fmt: skip
    return ReportSection("provenance", "Provenance", tuple(part for part in parts if part))


def _facts(run: Run) -> dict[str, str]:
    known = run.provenance
    dataset: Mapping[str, Any] = known.get("dataset") or {}
    options: Mapping[str, Any] = known.get("options") or {}
    inputs: Mapping[str, Any] = known.get("inputs") or {}
    models = dict.fromkeys(
        str(side["model"]) for side in inputs.values() if isinstance(side, Mapping) and side.get("model")
    )
    versions: Mapping[str, Any] = known.get("versions") or {}
    facts = {
        "dataset": dataset.get("name"),
        "images": _count(dataset.get("images")),
        "captions": _count(dataset.get("captions")),
        "fingerprint of the dataset": dataset.get("fingerprint"),
        "model": ", ".join(models),
        "protocol": run.protocol.get("name"),
        "score": known.get("score"),
        "relevance": _source(known.get("relevance")),
        "ties": options.get("ties"),
        "depth of lists": options.get("depth"),
        "seed": options.get("seed"),
        "resamples": _count(options.get("resamples")),
        "fingerprint of the run": run.fingerprint,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
    }
    return {label: str(value) for label, value in facts.items() if value not in (None, "")}


def _count(value: Any) -> str | None:
    return f"{value:,}" if isinstance(value, int) else None


def _source(relevance: Any) -> str | None:
    if not isinstance(relevance, Mapping):
        return None
    return str(relevance["source"]) if "source" in relevance else None


def reproduction(context: ReportContext) -> ReportSection | None:
    """Commands, each of which computes a part of the report by itself; and the recipes."""
    runs = context.inputs.runs
    commands = [
        f"crosslens run {folder}/recipe.toml" for name, folder in context.inputs.sources.items() if runs[name].recipe
    ]
    commands += list(dict.fromkeys(result.command for result in context.inputs.results if result.command))
    commands += [context.inputs.command] if context.inputs.command else []
    commands = list(dict.fromkeys(commands))
    recipes = [
        folded(f"Recipe of {name}", f'<pre tabindex="0"><code>{escape(run.recipe)}</code></pre>')
        for name, run in runs.items()
        if run.recipe
    ]
    if not commands and not recipes:
        return None
    lead = paragraph("The same seed gives the same numbers. Each of these commands computes a part of this report:")
    text = escape("\n".join(commands))
    shown = [lead, f'<pre tabindex="0"><code>{text}</code></pre>'] if commands else []
    return ReportSection("reproduce", "How to reproduce", (*shown, *recipes))
