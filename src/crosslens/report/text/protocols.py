"""The protocol that figures follow, as the block under their table, and all protocols as a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslens.core import PAGE_WIDTH, two_columns
from crosslens.pipeline import Protocol, protocol_facts


def protocol_text(record: Mapping[str, Any], width: int | None = None) -> str:
    """A stored protocol: its paper, φ with its tokens, and the conventions, one sentence each; nothing without one."""
    if not record:
        return ""
    facts = protocol_facts(record)
    return f"{facts.title}\n{two_columns(facts.rows, min(width or PAGE_WIDTH, PAGE_WIDTH), indent=2)}"


def protocol_description(protocol: Protocol, width: int | None = None) -> str:
    """A registered protocol in full: its metrics, what it sets in which command, and every convention."""
    rows = [("metrics", ", ".join(protocol.metrics))]
    rows += [(f"φ = {name}", f"tokens: {tokens}") for name, tokens in protocol.phi.items()]
    rows += [
        (command, "; ".join(f"{key} = {written(value)}" for key, value in settings.items()))
        for command, settings in protocol.settings.items()
    ]
    rows += [(convention.key, f"{convention.value}: {convention.about}") for convention in protocol.conventions]
    listed = two_columns(rows, min(width or PAGE_WIDTH, PAGE_WIDTH), indent=2)
    return f"{protocol.name}: {protocol.paper}\n{protocol.summary}\n{listed}"


def written(value: Any) -> str:
    """A setting as a reader writes it."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
