"""The protocol that figures follow, as the block under their table, and all protocols as a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslens.core import PAGE_WIDTH, two_columns
from crosslens.pipeline import Protocol


def protocol_text(record: Mapping[str, Any], width: int | None = None) -> str:
    """A stored protocol: its paper, φ with its tokens, and the conventions, one sentence each; nothing without one."""
    if not record:
        return ""
    tokens = record.get("tokens", {})
    rows = [(f"φ = {name}", f"tokens: {tokens[name]}") for name in record.get("phi", ()) if name in tokens]
    rows += [(str(row["key"]), f"{row['value']}: {row['about']}") for row in record.get("conventions", ())]
    listed = two_columns(rows, min(width or PAGE_WIDTH, PAGE_WIDTH), indent=2)
    return f"Protocol {record['name']}: {record['paper']}\n{listed}"


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
