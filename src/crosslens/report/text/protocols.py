"""The protocol that figures follow, as the block under their table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosslens.core import PAGE_WIDTH, two_columns
from crosslens.pipeline import protocol_facts


def protocol_text(record: Mapping[str, Any], width: int | None = None) -> str:
    """A stored protocol: its paper, φ with its tokens, and the conventions, one sentence each; nothing without one."""
    if not record:
        return ""
    facts = protocol_facts(record)
    return f"{facts.title}\n{two_columns(facts.rows, min(width or PAGE_WIDTH, PAGE_WIDTH), indent=2)}"
