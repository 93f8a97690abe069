"""An audit as text: what was found, the most important first, and what could not be looked at."""

from __future__ import annotations

import textwrap

from crosslens.core import PAGE_WIDTH, RENDERERS
from crosslens.pipeline import Audit, Finding

SHOWN = 10
"""Findings that are printed; all of them are in the folder."""
_PERCENT = "\N{NO-BREAK SPACE}%"


@RENDERERS.register("Audit")
def audit_text(audit: Audit, width: int | None = PAGE_WIDTH, *, shown: int = SHOWN) -> str:
    """The most important findings, numbered; without a width, one per line."""
    lines = [f"{number:>2}. {_sentence(audit, finding)}" for number, finding in enumerate(audit.findings[:shown], 1)]
    return "\n".join(lines if width is None else [part for line in lines for part in _wrapped(line, width)])


def _wrapped(line: str, width: int) -> list[str]:
    parts = textwrap.wrap(line.replace(" %", _PERCENT), width, subsequent_indent=" " * len("10. "))
    return [part.replace(_PERCENT, " %") for part in parts]


def _sentence(audit: Audit, finding: Finding) -> str:
    """The text, and of several runs which one it is about."""
    return f"{_about(finding)}{finding.text}" if len(audit.runs) > 1 else finding.text


def _about(finding: Finding) -> str:
    """Which run or dataset it is about, unless the sentence says so."""
    subject = finding.model or finding.dataset
    return f"{subject}: " if subject and subject not in finding.text else ""
