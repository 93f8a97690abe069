"""Requirements and their verdicts as text, and as annotations of a GitHub workflow."""

from __future__ import annotations

import textwrap

from crosslens.core import PAGE_WIDTH, RENDERERS, Grid
from crosslens.metrics import format_count, format_figure, format_interval, unit_sentence
from crosslens.pipeline import RequirementCheck, RequirementResult


@RENDERERS.register("RequirementCheck")
def requirements_text(check: RequirementCheck, width: int | None = PAGE_WIDTH) -> str:
    """A row per requirement: what was required, what was measured, and the verdict with its reason."""
    models = len({result.model for result in check.results}) > 1
    header = (*(("model",) if models else ()), "measure", "required", "value", "interval", "verdict", "reason")
    rows = tuple(
        (*((result.model,) if models else ()), result.measure, _required(result), *_figures(result),
         "met" if result.met else "NOT MET", result.reason)
        for result in check.results
    )  # fmt: skip
    grid = Grid(header, rows, "l" * models + "llrlll")
    return "\n\n".join([grid.text(width), "\n".join(_sentences(check))])


def _required(result: RequirementResult) -> str:
    sign = {">=": "≥", "<=": "≤"}.get(result.comparison, result.comparison)
    return f"{sign} {format_figure(result.metric, result.bound, signed=result.is_difference)}"


def _figures(result: RequirementResult) -> tuple[str, str]:
    signed = result.is_difference
    return (
        format_figure(result.metric, result.value, signed=signed),
        format_interval(result.metric, result.low, result.high, signed=signed),
    )


def _sentences(check: RequirementCheck) -> list[str]:
    unmet = len(check.unmet)
    count = format_count(len(check.results), "requirement")
    verdict = f"{count}: all met." if check.met else f"{count}: {unmet:,} not met."
    rule = "The whole interval had to keep the bound." if check.confident else ""
    differences = "Differences of shares are in points." if any(entry.is_difference for entry in check.results) else ""
    unit = unit_sentence(result.metric for result in check.results)
    return textwrap.wrap(" ".join(filter(None, [verdict, rule, unit, differences])), PAGE_WIDTH)


def github_annotations(check: RequirementCheck) -> list[str]:
    """A line per requirement as a GitHub workflow command: an error where it is not met, else a notice."""
    lines = []
    for result in check.results:
        title = _property(f"{result.model}: {result.requirement}")
        text = _data(f"{result.measure}: {result.reason}")
        lines.append(f"::{'notice' if result.met else 'error'} title={title}::{text}")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
